/* SPDX-License-Identifier: Apache-2.0 */
/* Stage Unstage StagePeek StageSize StageClear: a FIFO of tuples of tensors between the steps of a
 * pipeline. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/state/queue/staging_area.h>

/* The tuples, with lines of attempts on both sides. All but the limits and the name is guarded by
 * place.mu. */
typedef struct area {
  tn__waitable place;
  char *name;
  int64_t capacity, memory_limit;
  tn__queue_list tuples; /* an element's `owner` is its size in bytes */
  int64_t bytes;
  tn__line stagers, takers, peekers;
} area;

static void area_destroy(void *object)
{
  area *a = object;
  tn__queue_list_clear(&a->tuples);
  tn__waitable_fini(&a->place);
  tn__strfree(a->name);
  tn__free(a, sizeof *a);
}

static const tn_resource_class area_class = { .struct_size = sizeof(tn_resource_class), .name = "Staging area",
                                              .destroy = area_destroy };

static tn_status area_make(void *user, void **object, tn_error *err)
{
  const tn__staging_state *s = user;
  area *a = tn__zalloc(sizeof *a);
  *object = NULL;
  if (a != NULL) a->name = tn__strdup(s->place.name);
  if (a == NULL || a->name == NULL) {
    tn__free(a, sizeof *a);
    return tn__no_memory(err, "a staging area", sizeof *a);
  }
  tn__waitable_init(&a->place, "staging area");
  a->capacity = s->capacity;
  a->memory_limit = s->memory_limit;
  *object = a;
  return TN_OK;
}

static tn_status get_area(tn_kernel_ctx *ctx, area **out, tn_resource **r)
{
  const tn__staging_state *s = ctx->state;
  tn_status st = tn_kernel_obtain(ctx, s->place.container, s->place.name, &area_class, area_make, (void *)s, r);
  *out = st == TN_OK ? tn_resource_object(*r) : NULL;
  return st;
}

/* ---- attempts, under the lock ---- */

typedef enum area_action { STAGE, TAKE, PEEK } area_action;

/* tuple: the one to stage; room for the one peeked at; or the one taken. */
typedef struct area_attempt {
  tn__attempt base;
  area *area;
  area_action action;
  int64_t index;
  const tn__staging_state *wanted; /* dtypes of the outputs */
  tn__queue_element *tuple;
} area_attempt;

static bool fits(const area *a, const tn__queue_element *tuple)
{
  return (a->capacity <= 0 || a->tuples.n < a->capacity) &&
         (a->memory_limit <= 0 || (int64_t)tuple->owner <= a->memory_limit - a->bytes);
}

static const tn__queue_element *tuple_at(const area *a, int64_t index)
{
  const tn__queue_element *e = a->tuples.first;
  for (int64_t i = 0; i < index; i++) e = e->next;
  return e;
}

static bool has_dtypes(const tn__queue_element *e, const tn__staging_state *wanted)
{
  bool same = e->n == wanted->n;
  for (uint32_t i = 0; same && i < e->n; i++) same = tn_tensor_dtype(e->parts[i].whole) == wanted->dtypes[i];
  return same;
}

/* Returns false if the attempt has to wait. */
static bool run(area_attempt *t)
{
  area *a = t->area;
  if (t->action == STAGE) {
    if (!fits(a, t->tuple)) return false;
    a->bytes += (int64_t)t->tuple->owner;
    tn__queue_list_add(&a->tuples, t->tuple);
    t->tuple = NULL;
    tn__attempt_serve(&t->base, TN_OK);
    return true;
  }
  if (t->index >= a->tuples.n) return false;
  const tn__queue_element *e = tuple_at(a, t->index);
  bool right = has_dtypes(e, t->wanted);
  if (right && t->action == TAKE) {
    t->tuple = tn__queue_list_take(&a->tuples);
    a->bytes -= (int64_t)t->tuple->owner;
  }
  for (uint32_t i = 0; right && t->action == PEEK && i < e->n; i++)
    t->tuple->parts[i].whole = tn_tensor_ref(e->parts[i].whole);
  tn__attempt_serve(&t->base, right ? TN_OK : TN_INVALID_ARGUMENT);
  return true;
}

static void serve(area *a)
{
  bool changed = true;
  while (changed) {
    changed = false;
    while (a->stagers.first != NULL && run((area_attempt *)a->stagers.first)) changed = true;
    for (tn__attempt *t = a->peekers.first, *next; t != NULL; t = next) { /* each waits for its own index */
      next = t->next;
      run((area_attempt *)t);
    }
    while (a->takers.first != NULL && run((area_attempt *)a->takers.first)) changed = true;
  }
}

static tn__line *line_of(const area_attempt *t)
{
  if (t->action == STAGE) return &t->area->stagers;
  return t->action == TAKE ? &t->area->takers : &t->area->peekers;
}

static bool attempt_now(tn__attempt *attempt)
{
  area_attempt *t = (area_attempt *)attempt;
  if ((t->action != PEEK && line_of(t)->first != NULL) || !run(t)) return false;
  serve(t->area);
  return true;
}

static void enter(tn__attempt *attempt)
{
  area_attempt *t = (area_attempt *)attempt;
  tn__line_join(line_of(t), attempt);
  serve(t->area);
}

static void leave(tn__attempt *attempt) { serve(((area_attempt *)attempt)->area); }

/* ---- attempts, no lock held ---- */

static void release(tn__attempt *attempt)
{
  area_attempt *t = (area_attempt *)attempt;
  if (t->tuple != NULL) tn__queue_element_destroy(t->tuple);
  tn__attempt_fini(attempt);
}

/* Returns a tuple to the front, because the step that took it has ended in the meantime. */
static void give_back(area_attempt *t)
{
  area *a = t->area;
  tn__waitable_lock(&a->place);
  t->tuple->next = a->tuples.first;
  a->tuples.first = t->tuple;
  if (a->tuples.last == NULL) a->tuples.last = t->tuple;
  a->tuples.n++;
  a->bytes += (int64_t)t->tuple->owner;
  t->tuple = NULL;
  serve(a);
  tn__waitable_unlock(&a->place);
}

static tn_status finish(tn_kernel_ctx *ctx, tn__attempt *attempt)
{
  area_attempt *t = (area_attempt *)attempt;
  tn_status st = t->base.status;
  if (st == TN_INVALID_ARGUMENT)
    return tn_error_set(ctx->err, st,
                        "staging area '%s' has tensors of other dtypes, or another number of them, than the "
                        "%u that the node wants",
                        t->area->name, t->wanted->n);
  bool stopped = st == TN_OK && t->action == TAKE && ctx->resume && tn_kernel_cancelled(ctx);
  if (stopped) give_back(t);
  if (stopped || st != TN_OK)
    return tn_error_set(ctx->err, TN_CANCELLED, "waiting at staging area '%s' was cancelled", t->area->name);
  return t->action == STAGE ? TN_OK : tn__staging_give(ctx, 0, t->tuple);
}

static const tn__attempt_kind area_kind = { .size = sizeof(area_attempt), .attempt = attempt_now, .enter = enter,
                                            .finish = finish, .release = release };

/* The attempt takes over the tuple, also on failure. */
static tn_status submit(tn_kernel_ctx *ctx, area *a, tn_resource *r, area_action action, int64_t index,
                        tn__queue_element *tuple)
{
  area_attempt t = { .area = a, .action = action, .index = index, .wanted = ctx->state, .tuple = tuple };
  tn__attempt_init(&t.base, &a->place, r, leave);
  return tn__attempt_submit(ctx, &t.base, &area_kind);
}

/* ---- compute ---- */

static tn_status stage(tn_kernel_ctx *ctx)
{
  area *a;
  tn_resource *r;
  tn__queue_element *tuple = NULL;
  int64_t bytes;
  if (ctx->resume) return tn__attempt_resume(ctx, &area_kind);
  tn_status st = get_area(ctx, &a, &r);
  if (st != TN_OK) return st;
  st = tn__staging_keep(ctx, 0, ctx->n_inputs, &tuple, &bytes);
  if (st == TN_OK) st = tn__staging_check_bytes(ctx, a->name, bytes, a->memory_limit);
  if (st == TN_OK) {
    tuple->owner = (uint64_t)bytes;
    st = submit(ctx, a, r, STAGE, 0, tuple);
  } else if (tuple != NULL) {
    tn__queue_element_destroy(tuple);
  }
  tn_resource_unref(r);
  return st;
}

static tn_status unstage(tn_kernel_ctx *ctx)
{
  area *a;
  tn_resource *r;
  if (ctx->resume) return tn__attempt_resume(ctx, &area_kind);
  tn_status st = get_area(ctx, &a, &r);
  if (st != TN_OK) return st;
  st = submit(ctx, a, r, TAKE, 0, NULL);
  tn_resource_unref(r);
  return st;
}

static tn_status peek(tn_kernel_ctx *ctx)
{
  area *a;
  tn_resource *r;
  if (ctx->resume) return tn__attempt_resume(ctx, &area_kind);
  int32_t index = *(const int32_t *)ctx->inputs[0]->data;
  if (index < 0) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index is %d, wanted 0 or more", index);
  tn_status st = get_area(ctx, &a, &r);
  if (st != TN_OK) return st;
  tn__queue_element *tuple = tn__queue_element_create(ctx->n_outputs);
  st = tuple != NULL ? submit(ctx, a, r, PEEK, index, tuple) : tn__no_memory(ctx->err, "a staged tuple", 0);
  tn_resource_unref(r);
  return st;
}

static tn_status size(tn_kernel_ctx *ctx)
{
  area *a;
  tn_resource *r;
  tn_status st = get_area(ctx, &a, &r);
  if (st != TN_OK) return st;
  tn__waitable_lock(&a->place);
  int64_t n = a->tuples.n;
  tn__waitable_unlock(&a->place);
  *(int32_t *)ctx->outputs[0]->data = n > INT32_MAX ? INT32_MAX : (int32_t)n;
  tn_resource_unref(r);
  return TN_OK;
}

static tn_status clear(tn_kernel_ctx *ctx)
{
  area *a;
  tn_resource *r;
  tn_status st = get_area(ctx, &a, &r);
  if (st != TN_OK) return st;
  tn__waitable_lock(&a->place);
  tn__queue_list gone = a->tuples;
  a->tuples = (tn__queue_list){ NULL, NULL, 0 };
  a->bytes = 0;
  serve(a);
  tn__waitable_unlock(&a->place);
  tn__queue_list_clear(&gone);
  tn_resource_unref(r);
  return TN_OK;
}

static tn_status take_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = ctx->n_inputs > 0 ? tn__want_rank(ctx, 0, 0, err) : TN_OK;
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* ---- tables ---- */

#define AREA(types) "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) " types \
                    "; container: string = ''; shared_name: string = ''"
#define WAITS (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT)

#define OP(op, in, out, types, flags, shapes, text)                                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = AREA(types),           \
    .traits = TN_TRAIT_STATEFUL | (flags), .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Stage", "values: dtypes", "", ">= 1", WAITS, NULL, "appends tensors to a staging area"),
  OP("Unstage", "", "values: dtypes", ">= 1", WAITS | TN_TRAIT_DYNAMIC, NULL,
     "removes and returns the first tensors of a staging area"),
  OP("StagePeek", "index: int32", "values: dtypes", ">= 1", WAITS | TN_TRAIT_DYNAMIC, NULL,
     "reads tensors of a staging area without removing them"),
  OP("StageSize", "", "size: int32", "", 0, tn__infer_scalar, "number of elements in a staging area"),
  OP("StageClear", "", "", "", 0, NULL, "clears a staging area"),
};

#define KERNEL(kernel_op, kernel_name, kernel_prepare, kernel_compute)                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = kernel_op, .device = "CPU", .name = kernel_name, .rank = TN_RANK_C,    \
    .create = tn__staging_create, .destroy = tn__staging_destroy, .prepare = kernel_prepare, .compute = kernel_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("Stage", "stage_cpu", tn__prepare_nothing, stage),
  KERNEL("Unstage", "unstage_cpu", take_prepare, unstage),
  KERNEL("StagePeek", "stage_peek_cpu", take_prepare, peek),
  KERNEL("StageSize", "stage_size_cpu", tn__prepare_scalar, size),
  KERNEL("StageClear", "stage_clear_cpu", tn__prepare_nothing, clear),
};

TN_OP_FAMILY(staging)
