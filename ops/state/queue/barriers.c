/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier BarrierInsertMany BarrierTakeMany BarrierClose BarrierReadySize BarrierIncompleteSize:
 * elements by key whose components are inserted at different times. Complete elements are taken in
 * the order in which their keys were first inserted.
 *
 * Complete elements are in a priority queue, ordered by the number of the insertion that added the
 * key. The lock of that queue guards the whole barrier. */
#include <core/base/alloc.h>
#include <core/base/map.h>
#include <ops/kernel/family.h>
#include <ops/state/queue/queue_step.h>

/* Parts of an element: the number of the insertion, the key, then the components. */
enum { PART_NUMBER, PART_KEY, PARTS_BEFORE };

typedef struct barrier {
  tn__queue ready;
  tn__map incomplete;    /* elements by key; the keys are owned by the elements' parts */
  int64_t n_insertions;  /* insertions that added keys; the first one is numbered INT64_MIN */
  bool closed, cancelled;
} barrier;

static void clear_incomplete(tn__map *incomplete)
{
  size_t place = 0;
  for (tn__map_entry *e; (e = tn__map_next(incomplete, &place)) != NULL;) tn__queue_element_destroy(e->value);
  tn__map_fini(incomplete);
}

static void barrier_destroy(void *object)
{
  barrier *b = object;
  clear_incomplete(&b->incomplete);
  tn__queue_fini(&b->ready);
  tn__free(b, sizeof *b);
}

static const tn_resource_class barrier_class = { .struct_size = sizeof(tn_resource_class), .name = "Barrier",
                                                 .destroy = barrier_destroy };

static tn_status get_barrier(const tn_kernel_ctx *ctx, barrier **b, tn_resource **r)
{
  void *object;
  tn_status st = tn__resource_input(ctx, 0, &barrier_class, &object, r);
  *b = object;
  return st;
}

/* ---- Barrier ---- */

typedef struct barrier_state {
  tn__resource_place place;
  tn__queue_spec *spec;
} barrier_state;

static void state_destroy(void *state)
{
  barrier_state *s = state;
  tn__resource_place_fini(&s->place);
  tn__queue_spec_unref(s->spec);
  tn__free(s, sizeof *s);
}

static tn_status barrier_create(const tn_operation *op, void **state, tn_error *err)
{
  static const tn_dtype before[PARTS_BEFORE] = { TN_INT64, TN_STRING };
  int64_t capacity = tn__attr_int(op, "capacity", -1);
  *state = NULL;
  if (capacity != -1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'capacity' is %lld, wanted -1: a barrier has no limit",
                        tn_operation_type(op), (long long)capacity);
  barrier_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn_status st = tn__resource_place_init(&s->place, op, err);
  if (st == TN_OK) st = tn__queue_spec_read(op, TN__QUEUE_PRIORITY, before, PARTS_BEFORE, &s->spec, err);
  if (st == TN_OK) *state = s;
  else state_destroy(s);
  return st;
}

static tn_status barrier_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn__prepare_handle(ctx, 0, err); }

static tn_status make_barrier(void *user, void **object, tn_error *err)
{
  const barrier_state *s = user;
  barrier *b = tn__zalloc(sizeof *b);
  *object = NULL;
  if (b == NULL) return tn__no_memory(err, "a barrier", sizeof *b);
  tn_status st = tn__queue_init(&b->ready, s->spec, "barrier", s->place.name, err);
  if (st == TN_OK) *object = b;
  else tn__free(b, sizeof *b);
  return st;
}

static tn_status barrier_compute(tn_kernel_ctx *ctx)
{
  const barrier_state *s = ctx->state;
  tn_resource *r;
  tn_status st = tn_kernel_obtain(ctx, s->place.container, s->place.name, &barrier_class, make_barrier, (void *)s, &r);
  if (st != TN_OK) return st;
  const barrier *b = tn_resource_object(r);
  st = tn__queue_spec_match(b->ready.spec, s->spec, "barrier", b->ready.name, ctx->err);
  if (st == TN_OK) return tn__give_handle(ctx, 0, r);
  tn_resource_unref(r);
  return st;
}

/* ---- BarrierInsertMany ---- */

/* One call: its operands, and its changes so far. */
typedef struct insertion {
  barrier *b;
  const tn_string *keys;
  int64_t n;
  uint32_t part;               /* the part of elements that is inserted */
  tn_tensor *values;           /* one row per key */
  tn_tensor *number;           /* int64 scalar */
  tn__queue_element **touched; /* one per key; the first n_touched are set */
  int64_t n_touched, n_new;
} insertion;

static tn_status insert_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t *index = tn__alloc(sizeof *index);
  *state = index;
  if (index == NULL) return tn__no_memory(err, "kernel", sizeof *index);
  *index = tn__attr_int(op, "component_index", -1);
  return TN_OK;
}

static void insert_destroy(void *state) { tn__free(state, sizeof(int64_t)); }

static tn_status insert_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 2, 1, err);
  if (st != TN_OK || ctx->inputs[1].count == ctx->inputs[2].dims[0]) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %lld keys and %lld rows of values, wanted equal numbers",
                      tn_operation_type(ctx->op), (long long)ctx->inputs[1].count, (long long)ctx->inputs[2].dims[0]);
}

static tn_status check_values(const tn_kernel_ctx *ctx, const barrier *b, int64_t component)
{
  const tn__queue_spec *spec = b->ready.spec;
  const tn_view *v = ctx->inputs[2];
  int64_t n = spec->n - PARTS_BEFORE;
  char found[96], wanted[96];
  if (component < 0 || component >= n)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "component_index is %lld, barrier '%s' has %lld components",
                        (long long)component, b->ready.name, (long long)n);
  const tn__queue_component *c = &spec->components[component + PARTS_BEFORE];
  bool fits = tn__queue_spec_fits(spec, (uint32_t)component + PARTS_BEFORE, v->dims, v->rank, true);
  if (!fits || v->dtype != c->dtype)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "values are %s %s, component %lld of barrier '%s' wants %s rows of shape %s",
                        tn_dtype_name(v->dtype), tn__format_shape(found, sizeof found, v->dims, v->rank),
                        (long long)component, b->ready.name, tn_dtype_name(c->dtype),
                        tn__format_shape(wanted, sizeof wanted, c->dims, c->rank));
  if (v->count > 0 || ctx->inputs[1]->count == 0) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "values have shape %s, a barrier takes none without elements",
                      tn__format_shape(found, sizeof found, v->dims, v->rank));
}

/* A new element with this key. Returns NULL if out of memory. */
static tn__queue_element *new_element(insertion *in, const char *key, size_t size, tn_error *err)
{
  tn__queue_element *e = tn__queue_element_create(in->b->ready.spec->n);
  if (e == NULL) return NULL;
  tn_status st = tn_tensor_create(TN_STRING, NULL, 0, &e->parts[PART_KEY].whole, err);
  if (st == TN_OK) st = tn_tensor_set_string(e->parts[PART_KEY].whole, 0, key, size, err);
  e->parts[PART_NUMBER] = (tn__queue_part){ tn_tensor_ref(in->number), -1 };
  e->parts[PART_KEY].row = -1;
  e->priority = *(const int64_t *)tn_tensor_data(in->number);
  if (st == TN_OK) {
    const char *own;
    size_t own_size;
    tn_tensor_get_string(e->parts[PART_KEY].whole, 0, &own, &own_size, NULL);
    if (tn__map_put(&in->b->incomplete, own, own_size, e, NULL)) return e;
  }
  tn__queue_element_destroy(e);
  return NULL;
}

/* Inserts the value of key i. Called under the lock. */
static tn_status insert_one(insertion *in, int64_t i, tn_error *err)
{
  barrier *b = in->b;
  size_t size;
  const char *key = tn_string_data(&in->keys[i], &size);
  int shown = size > 100 ? 100 : (int)size;
  tn__queue_element *e = tn__map_get(&b->incomplete, key, size);
  if (e == NULL && b->closed)
    return tn_error_set(err, TN_CANCELLED, "barrier '%s' is closed, key '%.*s' is a new one", b->ready.name, shown,
                        key);
  if (e != NULL && e->parts[in->part].whole != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "barrier '%s' has a value of component %u for key '%.*s' already",
                        b->ready.name, in->part - PARTS_BEFORE, shown, key);
  if (e == NULL) {
    e = new_element(in, key, size, err);
    if (e == NULL) return tn__no_memory(err, "an element of a barrier", size);
    e->owner = 1; /* added by this insertion */
    in->n_new++;
  }
  e->parts[in->part] = (tn__queue_part){ tn_tensor_ref(in->values), i };
  in->touched[in->n_touched++] = e;
  return TN_OK;
}

/* Reverts the insertion. Called under the lock. */
static void undo(insertion *in)
{
  while (in->n_touched > 0) {
    tn__queue_element *e = in->touched[--in->n_touched];
    tn_tensor_unref(e->parts[in->part].whole); /* never the last reference */
    e->parts[in->part].whole = NULL;
    if (e->owner == 0) continue;
    const char *key;
    size_t size;
    tn_tensor_get_string(e->parts[PART_KEY].whole, 0, &key, &size, NULL);
    tn__map_remove(&in->b->incomplete, key, size);
    tn__queue_element_destroy(e);
  }
}

/* Moves complete elements to the queue, from which they can be taken. Called under the lock. */
static void move_complete(insertion *in)
{
  barrier *b = in->b;
  int64_t n_ready = 0;
  for (int64_t i = 0; i < in->n; i++) {
    tn__queue_element *e = in->touched[i];
    bool complete = true;
    e->owner = 0;
    for (uint32_t k = PARTS_BEFORE; k < e->n; k++) complete = complete && e->parts[k].whole != NULL;
    if (!complete) continue;
    const char *key;
    size_t size;
    tn_tensor_get_string(e->parts[PART_KEY].whole, 0, &key, &size, NULL);
    tn__map_remove(&b->incomplete, key, size);
    e->order = b->ready.n_elements++;
    tn__queue_store_put(&b->ready.store, e);
    n_ready++;
  }
  tn__queue_store_release(&b->ready.store, (size_t)(in->n - n_ready));
  if (in->n_new > 0) b->n_insertions++;
  if (b->closed && b->incomplete.count == 0) b->ready.closed = true; /* no more elements can become ready */
  tn__queue_serve(&b->ready);
}

static tn_status insert_all(insertion *in, tn_error *err)
{
  barrier *b = in->b;
  if (b->closed && (b->cancelled || (in->n > 0 && b->incomplete.count == 0)))
    return tn_error_set(err, TN_CANCELLED, "barrier '%s' is closed", b->ready.name);
  *(int64_t *)tn_tensor_data(in->number) = INT64_MIN + b->n_insertions;
  if (!tn__queue_store_reserve(&b->ready.store, (size_t)in->n)) return tn__no_memory(err, "a barrier", 0);
  tn_status st = TN_OK;
  for (int64_t i = 0; st == TN_OK && i < in->n; i++) st = insert_one(in, i, err);
  if (st == TN_OK) {
    move_complete(in);
    return TN_OK;
  }
  undo(in);
  tn__queue_store_release(&b->ready.store, (size_t)in->n);
  return st;
}

static tn_status insert_compute(tn_kernel_ctx *ctx)
{
  insertion in = { .keys = ctx->inputs[1]->data, .n = ctx->inputs[1]->count };
  int64_t component = *(const int64_t *)ctx->state;
  tn_status st = get_barrier(ctx, &in.b, NULL);
  if (st == TN_OK) st = check_values(ctx, in.b, component);
  if (st != TN_OK) return st;
  in.part = (uint32_t)component + PARTS_BEFORE;
  in.touched = tn__alloc_array((size_t)in.n, sizeof in.touched[0]);
  if (in.touched == NULL && in.n > 0) return tn__no_memory(ctx->err, "an insertion", 0);
  st = tn_kernel_keep_input(ctx, 2, &in.values);
  if (st == TN_OK) st = tn_tensor_create(TN_INT64, NULL, 0, &in.number, ctx->err);
  if (st == TN_OK) {
    tn__waitable_lock(&in.b->ready.place);
    st = insert_all(&in, ctx->err);
    tn__waitable_unlock(&in.b->ready.place);
  }
  tn_tensor_unref(in.number);
  tn_tensor_unref(in.values);
  tn__free(in.touched, (size_t)in.n * sizeof in.touched[0]);
  return st;
}

/* ---- BarrierTakeMany ---- */

static tn_status take_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* If the barrier is closed, reduces *n to the elements it has (`small`), or fails if it cannot have
 * as many. */
static tn_status limit(tn_kernel_ctx *ctx, barrier *b, bool small, int64_t *n)
{
  int64_t wanted = *n, there = 0;
  tn__waitable_lock(&b->ready.place);
  bool closed = b->closed;
  if (closed) there = (int64_t)b->ready.store.n + (small ? 0 : (int64_t)b->incomplete.count);
  tn__waitable_unlock(&b->ready.place);
  if (closed && small && *n > there) *n = there;
  if (!closed || (there >= *n && there >= 1)) return TN_OK;
  return tn_error_set(ctx->err, TN_OUT_OF_RANGE, "barrier '%s' is closed and has %lld elements, %lld are asked for",
                      b->ready.name, (long long)there, (long long)wanted);
}

static tn_status take_compute(tn_kernel_ctx *ctx)
{
  static const tn__queue_list none = { NULL, NULL, 0 };
  const tn__queue_wanted *w = ctx->state;
  barrier *b;
  tn_resource *r;
  tn__queue_attempt a;
  if (ctx->resume) return tn__queue_resume(ctx);
  tn_status st = get_barrier(ctx, &b, &r);
  if (st == TN_OK) st = tn__queue_check_outputs(ctx, &b->ready, w);
  if (st != TN_OK) return st;
  int64_t n = *(const int32_t *)ctx->inputs[1]->data;
  if (n < 0) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "num_elements is %lld, wanted 0 or more", (long long)n);
  st = limit(ctx, b, w->small, &n);
  if (st != TN_OK) return st;
  if (n == 0) return tn__queue_write_outputs(ctx, b->ready.spec, &none, true);
  tn__queue_attempt_init(&a, &b->ready, r, TN__QUEUE_TAKE);
  a.asked = n;
  a.many = true;
  a.up_to = w->small;
  return tn__queue_submit(ctx, &a);
}

/* ---- the others ---- */

/* Closing a barrier twice is an error, except to drop incomplete elements when the first close kept
 * them. */
static tn_status close_compute(tn_kernel_ctx *ctx)
{
  barrier *b;
  bool cancel = ctx->state != NULL;
  tn__map gone;
  tn_status st = get_barrier(ctx, &b, NULL);
  if (st != TN_OK) return st;
  tn__map_init(&gone);
  tn__waitable_lock(&b->ready.place);
  if (b->closed && (b->cancelled || !cancel)) {
    st = tn_error_set(ctx->err, TN_CANCELLED, "barrier '%s' is closed already", b->ready.name);
  } else {
    b->closed = true;
    b->cancelled = cancel;
    if (cancel) {
      gone = b->incomplete;
      tn__map_init(&b->incomplete);
    }
    if (b->incomplete.count == 0) b->ready.closed = true;
    tn__queue_serve(&b->ready);
  }
  tn__waitable_unlock(&b->ready.place);
  clear_incomplete(&gone);
  return st;
}

static tn_status count(tn_kernel_ctx *ctx, bool ready)
{
  barrier *b;
  tn_status st = get_barrier(ctx, &b, NULL);
  if (st != TN_OK) return st;
  tn__waitable_lock(&b->ready.place);
  size_t n = ready ? b->ready.store.n : b->incomplete.count;
  tn__waitable_unlock(&b->ready.place);
  *(int32_t *)ctx->outputs[0]->data = n > INT32_MAX ? INT32_MAX : (int32_t)n;
  return TN_OK;
}

static tn_status ready_size(tn_kernel_ctx *ctx) { return count(ctx, true); }
static tn_status incomplete_size(tn_kernel_ctx *ctx) { return count(ctx, false); }

/* ---- tables ---- */

#define OP(op, in, out, attributes, flags, shapes, text)                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes,          \
    .traits = TN_TRAIT_STATEFUL | (flags), .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Barrier", "", "handle: Ref(string)",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''", 0, NULL, "barrier: elements by key, whose components arrive at different times"),
  OP("BarrierInsertMany", "handle: Ref(string), keys: string, values: T", "", "T: type; component_index: int", 0, NULL,
     "inserts one component of elements into a barrier"),
  OP("BarrierTakeMany", "handle: Ref(string), num_elements: int32",
     "indices: int64, keys: string, values: component_types",
     "component_types: list(type) >= 1; allow_small_batch: bool = false; wait_for_incomplete: bool = false; "
     "timeout_ms: int = -1", TN_TRAIT_MAY_WAIT | TN_TRAIT_DYNAMIC, NULL, "takes complete elements from a barrier"),
  OP("BarrierClose", "handle: Ref(string)", "", "cancel_pending_enqueues: bool = false", 0, NULL, "closes a barrier"),
  OP("BarrierReadySize", "handle: Ref(string)", "size: int32", "", 0, tn__infer_scalar,
     "number of complete elements in a barrier"),
  OP("BarrierIncompleteSize", "handle: Ref(string)", "size: int32", "", 0, tn__infer_scalar,
     "number of incomplete elements in a barrier"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("Barrier", "barrier_cpu", barrier_create, state_destroy, barrier_prepare, barrier_compute),
  TN__KERNEL("BarrierInsertMany", "barrier_insert_many_cpu", insert_create, insert_destroy, insert_prepare,
             insert_compute),
  TN__KERNEL("BarrierTakeMany", "barrier_take_many_cpu", tn__queue_take_create, tn__queue_take_destroy, take_prepare,
             take_compute),
  TN__KERNEL("BarrierClose", "barrier_close_cpu", tn__queue_close_create, NULL, tn__prepare_nothing, close_compute),
  TN__KERNEL("BarrierReadySize", "barrier_ready_size_cpu", NULL, NULL, tn__prepare_scalar, ready_size),
  TN__KERNEL("BarrierIncompleteSize", "barrier_incomplete_size_cpu", NULL, NULL, tn__prepare_scalar, incomplete_size),
};

TN_OP_FAMILY(barriers)
