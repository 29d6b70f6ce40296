/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in random order: RandomShuffle StatelessShuffle. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/random/random_source.h>
#include <string.h>

static double shuffle_cost(const tn_view *v)
{
  return 20 + 0.2 * (double)v->count * (double)tn_dtype_size(v->dtype) + 10.0 * (double)(v->rank > 0 ? v->dims[0] : 0);
}

static bool in_order(const tn_view *v) { return v->rank == 0 || v->dims[0] < 2 || v->count == 0; }

/* The order is drawn in scratch memory, 8 bytes per row. */
static tn_status shuffle_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *v = &ctx->inputs[0];
  if (ctx->n_inputs > 1) {
    tn_status st = tn__random_want_key(ctx, 1, err);
    if (st != TN_OK) return st;
  }
  if (!in_order(v) && !tn__size_mul((size_t)v->dims[0], sizeof(int64_t), &ctx->scratch_bytes))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has %lld rows, too many", tn_operation_type(ctx->op),
                        (long long)v->dims[0]);
  ctx->cost_ns = shuffle_cost(v);
  return tn_prepare_output_like(ctx, 0, 0, err);
}

/* Fisher-Yates shuffle: each place gets one of the remaining rows. */
static void draw_order(const tn__philox *from, int64_t *order, int64_t n, tn__poll *poll)
{
  tn__philox_words words;
  tn__philox_words_init(&words, from);
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = 0; i + 1 < n && !tn__poll_over(poll, 10); i++) {
    uint32_t left = (uint32_t)(n - i);
    int64_t j = i + (left == 0 ? 0 : tn__philox_word(&words) % left), taken = order[j];
    order[j] = order[i];
    order[i] = taken;
  }
}

static tn_status shuffle(tn_kernel_ctx *ctx, const tn__philox *from)
{
  const tn_view *in = ctx->inputs[0], *out = ctx->outputs[0];
  if (in_order(in)) return tn__copy_elements(in->dtype, out->data, in->data, in->count, ctx->err);
  int64_t n = in->dims[0], row = in->count / n, *order = ctx->scratch;
  size_t bytes = (size_t)row * tn_dtype_size(in->dtype);
  tn__poll poll = tn__poll_of(ctx);
  draw_order(from, order, n, &poll);
  tn_status st = TN_OK;
  for (int64_t i = 0; i < n && st == TN_OK && !tn__poll_over(&poll, 10 + (int64_t)bytes / 4); i++)
    st = tn__copy_elements(in->dtype, (char *)out->data + (size_t)i * bytes,
                           (const char *)in->data + (size_t)order[i] * bytes, row, ctx->err);
  return st;
}

static tn_status shuffle_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  tn__philox from = tn__random_reserve(ctx->state, in_order(in) ? 0 : (in->dims[0] - 1 + 3) / 4, 1);
  return shuffle(ctx, &from);
}

static tn_status keyed_compute(tn_kernel_ctx *ctx)
{
  tn__philox from;
  tn_status st = tn__random_keyed(ctx, 1, "StatelessShuffle", &from);
  return st != TN_OK ? st : shuffle(ctx, &from);
}

static tn_status infer_keyed(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn__infer_key(ctx, 1, err);
  return st != TN_OK ? st : tn__infer_unchanged(ctx, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "RandomShuffle", .inputs = "value: T", .outputs = "output: T",
    .attrs = "seed: int = 0; seed2: int = 0; T: type", .traits = TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM,
    .infer = tn__infer_unchanged, .summary = "shuffles rows randomly" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "StatelessShuffle",
    .inputs = "value: T, key: uint64, counter: uint64, alg: int32", .outputs = "output: T", .attrs = "T: type",
    .infer = infer_keyed, .summary = "shuffles rows in an order determined by a key" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RandomShuffle", .device = "CPU", .name = "random_shuffle_cpu",
    .rank = TN_RANK_C, .create = tn__random_create, .destroy = tn__random_destroy, .prepare = shuffle_prepare,
    .compute = shuffle_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "StatelessShuffle", .device = "CPU", .name = "keyed_shuffle_cpu",
    .rank = TN_RANK_C, .prepare = shuffle_prepare, .compute = keyed_compute },
};

TN_OP_FAMILY(shuffle)
