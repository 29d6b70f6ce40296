/* SPDX-License-Identifier: Apache-2.0 */
/* MapStage MapUnstage MapUnstageNoKey MapPeek MapSize MapIncompleteSize MapClear and the OrderedMap
 * variants: tuples of tensors by key. Both kinds keep the keys in order. */
#include <ops/kernel/family.h>
#include <ops/state/queue/staging_map.h>

static tn_status get_map(tn_kernel_ctx *ctx, tn__staging_map **out, tn_resource **r)
{
  const tn__staging_state *s = ctx->state;
  tn_status st = tn_kernel_obtain(ctx, s->place.container, s->place.name, &tn__staging_map_class,
                                  tn__staging_map_create, (void *)s, r);
  *out = st == TN_OK ? tn_resource_object(*r) : NULL;
  return st;
}

/* ---- attempts ---- */

static tn_status report(tn_kernel_ctx *ctx, const tn__staging_attempt *t)
{
  tn_status st = t->base.status;
  const char *name = t->map->name;
  if (st == TN_CANCELLED) return tn_error_set(ctx->err, st, "waiting at staging area '%s' was cancelled", name);
  if (t->problem == NULL) return tn_error_set(ctx->err, st, "out of memory: staging area '%s'", name);
  return tn_error_set(ctx->err, st, "staging area '%s', key %lld: index %lld %s", name, (long long)t->key,
                      (long long)t->index, t->problem);
}

static tn_status finish(tn_kernel_ctx *ctx, tn__attempt *attempt)
{
  tn__staging_attempt *t = (tn__staging_attempt *)attempt;
  if (t->base.status != TN_OK) return report(ctx, t);
  if (t->action == TN__STAGING_PUT) return TN_OK;
  if (t->action == TN__STAGING_TAKE && ctx->resume && tn_kernel_cancelled(ctx)) {
    tn__staging_give_back(t);
    t->base.status = TN_CANCELLED;
    return report(ctx, t);
  }
  if (t->any_key) *(int64_t *)ctx->outputs[0]->data = t->key;
  return tn__staging_give(ctx, t->any_key, t->tuple);
}

static const tn__attempt_kind map_kind = { .size = sizeof(tn__staging_attempt), .attempt = tn__staging_attempt_now,
                                           .enter = tn__staging_enter, .finish = finish,
                                           .release = tn__staging_attempt_fini };

/* ---- compute ---- */

/* Checks that there are n indices and that they ascend. */
static tn_status check_indices(tn_kernel_ctx *ctx, const tn_view *indices, uint32_t n)
{
  const int32_t *index = indices->data;
  if (indices->count != n || n == 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are %lld indices for %u tensors, wanted one for each",
                        (long long)indices->count, n);
  for (uint32_t i = 1; i < n; i++)
    if (index[i] <= index[i - 1])
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %d follows index %d, wanted rising ones", index[i],
                          index[i - 1]);
  return TN_OK;
}

/* Sets the attempt's indices and tuple; releases the attempt on failure. */
static tn_status fill(tn_kernel_ctx *ctx, tn__staging_attempt *t, uint32_t at, uint32_t n)
{
  tn_status st = check_indices(ctx, ctx->inputs[at], n);
  if (st == TN_OK) st = tn_kernel_keep_input(ctx, at, &t->indices);
  if (st == TN_OK && t->action == TN__STAGING_PUT) {
    st = tn__staging_keep(ctx, at + 1, n, &t->tuple, &t->bytes);
  } else if (st == TN_OK) {
    t->tuple = tn__queue_element_create(n);
    if (t->tuple == NULL) st = tn_error_set(ctx->err, TN_RESOURCE_EXHAUSTED, "out of memory: a staged tuple");
  }
  if (st != TN_OK) tn__staging_attempt_fini(&t->base);
  return st;
}

static tn_status start(tn_kernel_ctx *ctx, tn__staging_action action, bool any_key)
{
  tn__staging_map *m;
  tn_resource *r;
  tn__staging_attempt t;
  if (ctx->resume) return tn__attempt_resume(ctx, &map_kind);
  tn_status st = get_map(ctx, &m, &r);
  if (st != TN_OK) return st;
  uint32_t indices = any_key ? 0 : 1;
  tn__staging_attempt_init(&t, m, r, action);
  tn_resource_unref(r);
  t.node = ctx->state;
  t.any_key = any_key;
  t.key = any_key ? 0 : *(const int64_t *)ctx->inputs[0]->data;
  st = fill(ctx, &t, indices, action == TN__STAGING_PUT ? ctx->n_inputs - 2 : ctx->n_outputs - any_key);
  return st == TN_OK ? tn__attempt_submit(ctx, &t.base, &map_kind) : st;
}

static tn_status stage(tn_kernel_ctx *ctx) { return start(ctx, TN__STAGING_PUT, false); }
static tn_status unstage(tn_kernel_ctx *ctx) { return start(ctx, TN__STAGING_TAKE, false); }
static tn_status unstage_any(tn_kernel_ctx *ctx) { return start(ctx, TN__STAGING_TAKE, true); }
static tn_status peek(tn_kernel_ctx *ctx) { return start(ctx, TN__STAGING_PEEK, false); }

static tn_status count(tn_kernel_ctx *ctx, bool complete)
{
  tn__staging_map *m;
  tn_resource *r;
  tn_status st = get_map(ctx, &m, &r);
  if (st != TN_OK) return st;
  tn__waitable_lock(&m->place);
  size_t n = complete ? m->complete.n : m->incomplete.n;
  tn__waitable_unlock(&m->place);
  *(int32_t *)ctx->outputs[0]->data = n > INT32_MAX ? INT32_MAX : (int32_t)n;
  tn_resource_unref(r);
  return TN_OK;
}

static tn_status size(tn_kernel_ctx *ctx) { return count(ctx, true); }
static tn_status incomplete_size(tn_kernel_ctx *ctx) { return count(ctx, false); }

static tn_status clear(tn_kernel_ctx *ctx)
{
  tn__staging_map *m;
  tn_resource *r;
  tn_status st = get_map(ctx, &m, &r);
  if (st != TN_OK) return st;
  tn__staging_map_clear(m);
  tn_resource_unref(r);
  return TN_OK;
}

/* ---- prepare ---- */

static tn_status check_key(tn_prepare_ctx *ctx, tn_error *err)
{
  if (ctx->inputs[0].count == 1) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0, the key, has %lld elements, wanted a scalar",
                      tn_operation_type(ctx->op), (long long)ctx->inputs[0].count);
}

static tn_status take_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = check_key(ctx, err);
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

static tn_status any_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_output(ctx, 0, NULL, 0, err);
  for (uint32_t i = 1; st == TN_OK && i < ctx->n_outputs; i++) st = tn_prepare_dynamic(ctx, i, err);
  return st;
}

/* ---- tables ---- */

#define AREA(types) "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type)" types \
                    "; container: string = ''; shared_name: string = ''"
#define SOME " >= 1"
#define FAKE "; fake_dtypes: list(type) >= 1"
#define WAITS TN_TRAIT_MAY_WAIT
#define TAKES (TN_TRAIT_MAY_WAIT | TN_TRAIT_DYNAMIC)

#define OP(op, in, out, types, flags, shapes, text)                                                            \
  { .struct_size = TN_OP_DEF_SIZE, .name = "Map" op, .inputs = in, .outputs = out, .attrs = AREA(types),       \
    .traits = TN_TRAIT_STATEFUL | (flags), .infer = shapes, .summary = text },                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = "OrderedMap" op, .inputs = in, .outputs = out, .attrs = AREA(types), \
    .traits = TN_TRAIT_STATEFUL | (flags), .infer = shapes, .summary = text " (in order)" }

static const tn_op_def ops[] = {
  OP("Stage", "key: int64, indices: int32, values: fake_dtypes", "", FAKE, WAITS, NULL,
     "stores tensors in a staging area by key"),
  OP("Unstage", "key: int64, indices: int32", "values: dtypes", SOME, TAKES, NULL,
     "removes and returns the tensors of a key from a staging area"),
  OP("UnstageNoKey", "indices: int32", "key: int64, values: dtypes", SOME, TAKES, NULL,
     "removes and returns a key and its tensors from a staging area"),
  OP("Peek", "key: int64, indices: int32", "values: dtypes", SOME, TAKES, NULL,
     "reads the tensors of a key in a staging area without removing them"),
  OP("Size", "", "size: int32", "", 0, tn__infer_scalar, "number of complete tuples in a staging area"),
  OP("IncompleteSize", "", "size: int32", "", 0, tn__infer_scalar, "number of incomplete tuples in a staging area"),
  OP("Clear", "", "", "", 0, NULL, "clears a staging area"),
};

#define KERNELS(kernel_op, kernel_name, kernel_prepare, kernel_compute)                                             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Map" kernel_op, .device = "CPU", .name = "map_" kernel_name "_cpu",   \
    .rank = TN_RANK_C, .create = tn__staging_create, .destroy = tn__staging_destroy, .prepare = kernel_prepare,     \
    .compute = kernel_compute },                                                                                    \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "OrderedMap" kernel_op, .device = "CPU",                               \
    .name = "ordered_map_" kernel_name "_cpu", .rank = TN_RANK_C, .create = tn__staging_create,                     \
    .destroy = tn__staging_destroy, .prepare = kernel_prepare, .compute = kernel_compute }

static const tn_kernel_def kernels[] = {
  KERNELS("Stage", "stage", check_key, stage),
  KERNELS("Unstage", "unstage", take_prepare, unstage),
  KERNELS("UnstageNoKey", "unstage_no_key", any_prepare, unstage_any),
  KERNELS("Peek", "peek", take_prepare, peek),
  KERNELS("Size", "size", tn__prepare_scalar, size),
  KERNELS("IncompleteSize", "incomplete_size", tn__prepare_scalar, incomplete_size),
  KERNELS("Clear", "clear", tn__prepare_nothing, clear),
};

TN_OP_FAMILY(staging_maps)
