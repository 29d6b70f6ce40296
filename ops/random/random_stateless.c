/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are functions of their operands: StatelessRandomUniform StatelessRandomNormal
 * StatelessTruncatedNormal StatelessRandomUniformInt StatelessRandomUniformFullInt, from seeds or
 * (V2) from a key and a counter. StatelessRandomGetKeyCounter and its variants convert seeds to
 * keys and counters. */
#include <ops/kernel/family.h>
#include <ops/random/random_source.h>

enum { PHILOX = 1 }; /* TensorFlow's number of the algorithm */

/* ---- from seeds ---- */

static tn_status seeded_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__random_want_seed(ctx, 1, err);
  for (uint32_t i = 2; st == TN_OK && i < ctx->n_inputs; i++) st = tn__want_rank(ctx, i, 0, err);
  return st != TN_OK ? st : tn__random_prepare(ctx, tn__random_cost(TN__RANDOM_NORMAL), err);
}

static tn_status seeded(tn_kernel_ctx *ctx, tn__random_kind kind)
{
  tn__philox from = tn__random_seeded(ctx->inputs[1]);
  tn__random_fill(ctx, kind, &from, ctx->outputs[0], 0, 0);
  return TN_OK;
}

static tn_status seeded_uniform(tn_kernel_ctx *ctx) { return seeded(ctx, TN__RANDOM_UNIFORM); }
static tn_status seeded_normal(tn_kernel_ctx *ctx) { return seeded(ctx, TN__RANDOM_NORMAL); }
static tn_status seeded_truncated(tn_kernel_ctx *ctx) { return seeded(ctx, TN__RANDOM_TRUNCATED); }
static tn_status seeded_bits(tn_kernel_ctx *ctx) { return seeded(ctx, TN__RANDOM_BITS); }

static tn_status seeded_int(tn_kernel_ctx *ctx)
{
  tn__philox from = tn__random_seeded(ctx->inputs[1]);
  return tn__random_fill_between(ctx, &from, 2, "StatelessRandomUniformInt");
}

static tn_status infer_scalars(const tn_infer_ctx *ctx, size_t from, tn_error *err)
{
  tn__shape unused;
  tn_status st = TN_OK;
  for (size_t i = from; st == TN_OK && i < tn_infer_n_inputs(ctx); i++) st = tn__infer_rank(ctx, i, 0, &unused, err);
  return st;
}

static tn_status infer_seeded_int(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = infer_scalars(ctx, 2, err);
  return st != TN_OK ? st : tn__infer_seeded(ctx, err);
}

/* ---- from a key and a counter ---- */

static tn_status keyed_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__random_want_key(ctx, 1, err);
  for (uint32_t i = 4; st == TN_OK && i < ctx->n_inputs; i++) st = tn__want_rank(ctx, i, 0, err);
  return st != TN_OK ? st : tn__random_prepare(ctx, tn__random_cost(TN__RANDOM_NORMAL), err);
}

static tn_status keyed(tn_kernel_ctx *ctx, const char *op, tn__random_kind kind)
{
  tn__philox from;
  tn_status st = tn__random_keyed(ctx, 1, op, &from);
  if (st == TN_OK) tn__random_fill(ctx, kind, &from, ctx->outputs[0], 0, 0);
  return st;
}

static tn_status keyed_uniform(tn_kernel_ctx *ctx)
{
  return keyed(ctx, "StatelessRandomUniformV2", TN__RANDOM_UNIFORM);
}

static tn_status keyed_normal(tn_kernel_ctx *ctx) { return keyed(ctx, "StatelessRandomNormalV2", TN__RANDOM_NORMAL); }

static tn_status keyed_truncated(tn_kernel_ctx *ctx)
{
  return keyed(ctx, "StatelessTruncatedNormalV2", TN__RANDOM_TRUNCATED);
}

static tn_status keyed_bits(tn_kernel_ctx *ctx)
{
  return keyed(ctx, "StatelessRandomUniformFullIntV2", TN__RANDOM_BITS);
}

static tn_status keyed_int(tn_kernel_ctx *ctx)
{
  static const char op[] = "StatelessRandomUniformIntV2";
  tn__philox from;
  tn_status st = tn__random_keyed(ctx, 1, op, &from);
  return st != TN_OK ? st : tn__random_fill_between(ctx, &from, 4, op);
}

static tn_status infer_keyed_int(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = infer_scalars(ctx, 4, err);
  return st != TN_OK ? st : tn__infer_keyed(ctx, err);
}

/* ---- keys and counters ---- */

static const int64_t key_dims[] = { 1 }, counter_dims[] = { 2 };

static tn_status alg_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status alg_compute(tn_kernel_ctx *ctx)
{
  *(int32_t *)ctx->outputs[0]->data = PHILOX;
  return TN_OK;
}

static tn_status key_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__random_want_seed(ctx, 0, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, key_dims, 1, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 1, counter_dims, 1, err);
  return st != TN_OK || ctx->n_outputs < 3 ? st : tn_prepare_output(ctx, 2, NULL, 0, err);
}

static tn_status key_compute(tn_kernel_ctx *ctx)
{
  tn__philox p = tn__random_seeded(ctx->inputs[0]);
  uint64_t *key = ctx->outputs[0]->data, *counter = ctx->outputs[1]->data;
  key[0] = (uint64_t)p.key[1] << 32 | p.key[0];
  counter[0] = (uint64_t)p.counter[1] << 32 | p.counter[0];
  counter[1] = (uint64_t)p.counter[3] << 32 | p.counter[2];
  if (ctx->n_outputs > 2) *(int32_t *)ctx->outputs[2]->data = PHILOX;
  return TN_OK;
}

static tn_status infer_key(tn_infer_ctx *ctx, tn_error *err)
{
  static const int64_t two = 2;
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, 1, &s, err);
  if (st != TN_OK) return st;
  if (!tn__shape_merge(&s, &two, 1))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has shape [%lld], wanted [2]", tn__infer_op(ctx),
                        (long long)s.dims[0]);
  st = tn_infer_output(ctx, 0, key_dims, 1, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 1, counter_dims, 1, err);
  if (st != TN_OK || tn_operation_n_outputs(tn_infer_operation(ctx)) < 3) return st;
  return tn_infer_output(ctx, 2, NULL, 0, err);
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, operands, shapes, text)                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .shape_operands = operands, .infer = shapes, .summary = text }
#define SEEDED(name, also, types, seed_types, shapes, text)                                                      \
  OP(name, "shape: T, seed: Tseed" also, "output: dtype",                                                        \
     "dtype: " types "; T: {int32, int64} = int32; Tseed: {" seed_types "} = int64", 1u << 0, shapes, text)
#define KEYED(name, also, types, shapes, text)                                                         \
  OP(name, "shape: Tshape, key: uint64, counter: uint64, alg: int32" also, "output: dtype",            \
     "dtype: " types "; Tshape: {int32, int64} = int32", 1u << 0, shapes, text)
#define BETWEEN ", minval: dtype, maxval: dtype"
#define FLOATS "{half, bfloat16, float, double} = float"
#define INTS "{int32, int64, uint32, uint64}"
#define SEED "int32, int64"
#define ANY_SEED "int32, int64, uint32, uint64"
#define UNIFORM "numbers of [0, 1) that follow from a seed"
#define NORMAL "numbers of mean 0 and deviation 1 that follow from a seed"
#define TRUNCATED "numbers of mean 0 and deviation 1, none beyond 2, that follow from a seed"
#define RANGE "integers of [minval, maxval) that follow from a seed"
#define BITS "integers that follow from a seed"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "StatelessRandomGetAlg", .inputs = "", .outputs = "alg: int32", .attrs = "",
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .infer = tn__infer_scalar,
    .summary = "algorithm number of the stateless random ops" },
  OP("StatelessRandomGetKeyCounter", "seed: Tseed", "key: uint64, counter: uint64", "Tseed: {int32, int64} = int64", 0,
     infer_key, "derives a key and a counter from a seed"),
  OP("StatelessRandomGetKeyCounterAlg", "seed: Tseed", "key: uint64, counter: uint64, alg: int32",
     "Tseed: {int32, int64} = int64", 0, infer_key,
     "derives a key and a counter from a seed, with the algorithm number"),
  SEEDED("StatelessRandomNormal", "", FLOATS, SEED, tn__infer_seeded, NORMAL),
  KEYED("StatelessRandomNormalV2", "", FLOATS, tn__infer_keyed, NORMAL),
  SEEDED("StatelessRandomUniform", "", FLOATS, SEED, tn__infer_seeded, UNIFORM),
  SEEDED("StatelessRandomUniformFullInt", "", INTS " = uint64", ANY_SEED, tn__infer_seeded, BITS),
  KEYED("StatelessRandomUniformFullIntV2", "", INTS " = uint64", tn__infer_keyed, BITS),
  OP("StatelessRandomUniformInt", "shape: T, seed: Tseed" BETWEEN, "output: dtype",
     "dtype: {int32, int64}; T: {int32, int64}; Tseed: {int32, int64} = int64", 1u << 0, infer_seeded_int, RANGE),
  KEYED("StatelessRandomUniformIntV2", BETWEEN, INTS, infer_keyed_int, RANGE),
  KEYED("StatelessRandomUniformV2", "", FLOATS, tn__infer_keyed, UNIFORM),
  SEEDED("StatelessTruncatedNormal", "", FLOATS, SEED, tn__infer_seeded, TRUNCATED),
  KEYED("StatelessTruncatedNormalV2", "", FLOATS, tn__infer_keyed, TRUNCATED),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("StatelessRandomGetAlg", "random_alg_cpu", alg_prepare, alg_compute),
  KERNEL("StatelessRandomGetKeyCounter", "random_key_cpu", key_prepare, key_compute),
  KERNEL("StatelessRandomGetKeyCounterAlg", "random_key_alg_cpu", key_prepare, key_compute),
  KERNEL("StatelessRandomNormal", "seeded_normal_cpu", seeded_prepare, seeded_normal),
  KERNEL("StatelessRandomNormalV2", "keyed_normal_cpu", keyed_prepare, keyed_normal),
  KERNEL("StatelessRandomUniform", "seeded_uniform_cpu", seeded_prepare, seeded_uniform),
  KERNEL("StatelessRandomUniformFullInt", "seeded_bits_cpu", seeded_prepare, seeded_bits),
  KERNEL("StatelessRandomUniformFullIntV2", "keyed_bits_cpu", keyed_prepare, keyed_bits),
  KERNEL("StatelessRandomUniformInt", "seeded_int_cpu", seeded_prepare, seeded_int),
  KERNEL("StatelessRandomUniformIntV2", "keyed_int_cpu", keyed_prepare, keyed_int),
  KERNEL("StatelessRandomUniformV2", "keyed_uniform_cpu", keyed_prepare, keyed_uniform),
  KERNEL("StatelessTruncatedNormal", "seeded_truncated_cpu", seeded_prepare, seeded_truncated),
  KERNEL("StatelessTruncatedNormalV2", "keyed_truncated_cpu", keyed_prepare, keyed_truncated),
};

TN_OP_FAMILY(random_stateless)
