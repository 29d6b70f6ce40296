/* SPDX-License-Identifier: Apache-2.0 */
/* The start of generators, and the shapes of outputs. */
#include <core/base/alloc.h>
#include <core/base/map.h>
#include <ops/kernel/operands.h>
#include <ops/random/random_source.h>
#include <stdatomic.h>

/* ---- stateful generators: they advance from step to step ---- */

/* Kernel states are const; the counter that steps advance is reached through a pointer. */
typedef struct stream {
  tn__philox start;
  _Atomic uint64_t *used;
  _Atomic uint64_t counter;
} stream;

/* Seed from the system's entropy: hash keys are random per process, so the hashes of numbers are
 * unpredictable. */
static uint64_t entropy(void)
{
  static _Atomic uint64_t drawn;
  uint64_t n = atomic_fetch_add_explicit(&drawn, 1, memory_order_relaxed);
  return tn__hash(&n, sizeof n);
}

tn_status tn__random_create(const tn_operation *op, void **state, tn_error *err)
{
  uint64_t seed = (uint64_t)tn__attr_int(op, "seed", 0), seed2 = (uint64_t)tn__attr_int(op, "seed2", 0);
  stream *s = tn__zalloc(sizeof *s);
  *state = s;
  if (s == NULL) return tn__no_memory(err, "state of a random generator", sizeof *s);
  if (seed == 0 && seed2 == 0) {
    seed = entropy();
    seed2 = entropy();
  }
  tn__philox_init(&s->start, seed, 0, seed2);
  atomic_init(&s->counter, 0);
  s->used = &s->counter;
  return TN_OK;
}

void tn__random_destroy(void *state) { tn__free(state, sizeof(stream)); }

tn__philox tn__random_reserve(const void *state, int64_t count, uint64_t each)
{
  const stream *s = state;
  tn__philox p = s->start;
  tn__philox_skip(&p, atomic_fetch_add_explicit(s->used, (uint64_t)count * each, memory_order_relaxed));
  return p;
}

/* ---- stateless generators: functions of their operands ---- */

#define SCRAMBLE_KEY UINT64_C(0x02461e293ec8f720)

tn__philox tn__random_seeded(const tn_view *seed)
{
  tn__philox p;
  uint32_t mixed[4];
  tn__philox_init(&p, SCRAMBLE_KEY, (uint64_t)tn__view_int_at(seed, 0), (uint64_t)tn__view_int_at(seed, 1));
  tn__philox_next(&p, mixed);
  tn__philox_init(&p, (uint64_t)mixed[1] << 32 | mixed[0], 0, (uint64_t)mixed[3] << 32 | mixed[2]);
  return p;
}

tn_status tn__random_want_seed(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  static const int64_t two = 2;
  const tn_view *v = &ctx->inputs[i];
  if (v->rank != 1 || v->count != 2) return tn__shape_error(err, ctx, i, &two, 1);
  if (v->dtype == TN_INT32 || v->dtype == TN_INT64) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u, the seed, is of type %s, wanted int32 or int64",
                      tn_operation_type(ctx->op), (unsigned)i, tn_dtype_name(v->dtype));
}

tn_status tn__random_want_key(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  static const int64_t one = 1;
  const tn_view *key = &ctx->inputs[i], *counter = &ctx->inputs[i + 1];
  if (key->rank != 1 || key->count != 1) return tn__shape_error(err, ctx, i, &one, 1);
  if (counter->rank != 1) return tn__want_rank(ctx, i + 1, 1, err);
  if (counter->count < 2)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u, the counter, has %lld elements, wanted 2",
                        tn_operation_type(ctx->op), (unsigned)i + 1, (long long)counter->count);
  return tn__want_rank(ctx, i + 2, 0, err);
}

tn_status tn__random_keyed(const tn_kernel_ctx *ctx, uint32_t i, const char *op, tn__philox *out)
{
  enum { PHILOX = 1, AUTO_SELECT = 3 };
  const uint64_t *key = ctx->inputs[i]->data, *counter = ctx->inputs[i + 1]->data;
  int32_t alg = *(const int32_t *)ctx->inputs[i + 2]->data;
  if (alg != PHILOX && alg != AUTO_SELECT)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "%s: input %u asks for algorithm %d, only Philox (1) is supported", op,
                        (unsigned)i + 2, (int)alg);
  tn__philox_init(out, key[0], counter[0], counter[1]);
  return TN_OK;
}

/* ---- shapes ---- */

tn_status tn__random_shape(const tn_prepare_ctx *ctx, uint32_t i, tn__shape *out, tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  const char *op = tn_operation_type(ctx->op);
  out->rank = 0;
  tn_status st = tn__want_rank(ctx, i, 1, err);
  if (st == TN_OK) st = tn__want_value(ctx, i, err);
  if (st != TN_OK) return st;
  if (v->count > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld dimensions are wanted, at most %d are possible", op,
                        (long long)v->count, TN_MAX_RANK);
  for (int64_t k = 0; k < v->count; k++) {
    out->dims[k] = tn__view_int_at(v, k);
    if (out->dims[k] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: size %lld of the shape wanted is %lld", op, (long long)k,
                          (long long)out->dims[k]);
  }
  out->rank = (int32_t)v->count;
  return TN_OK;
}

tn_status tn__random_prepare(tn_prepare_ctx *ctx, double cost_ns, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__random_shape(ctx, 0, &s, err);
  if (st != TN_OK) return st;
  double count = 1;
  for (int32_t k = 0; k < s.rank; k++) count *= (double)s.dims[k];
  ctx->cost_ns = 20 + count * cost_ns;
  return tn_prepare_output(ctx, 0, s.dims, s.rank, err);
}

tn_status tn__infer_random(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, 1, &s, err);
  if (st != TN_OK) return st;
  s.rank = tn_infer_input_as_shape(ctx, 0, s.dims);
  return tn__infer_set(ctx, 0, &s, err);
}

/* Checks that input i is a vector of n elements. */
static tn_status infer_vector(const tn_infer_ctx *ctx, size_t i, int64_t n, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, i, 1, &s, err);
  if (st != TN_OK || s.dims[0] < 0 || s.dims[0] == n) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has shape [%lld], wanted [%lld]", tn__infer_op(ctx),
                      (unsigned)i, (long long)s.dims[0], (long long)n);
}

tn_status tn__infer_seeded(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = infer_vector(ctx, 1, 2, err);
  return st != TN_OK ? st : tn__infer_random(ctx, err);
}

tn_status tn__infer_key(const tn_infer_ctx *ctx, size_t i, tn_error *err)
{
  tn__shape unused;
  tn_status st = infer_vector(ctx, i, 1, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, i + 1, 1, &unused, err);
  return st != TN_OK ? st : tn__infer_rank(ctx, i + 2, 0, &unused, err);
}

tn_status tn__infer_keyed(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn__infer_key(ctx, 1, err);
  return st != TN_OK ? st : tn__infer_random(ctx, err);
}
