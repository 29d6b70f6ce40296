/* SPDX-License-Identifier: Apache-2.0 */
/* Index arithmetic on lists of sizes and positions: BroadcastArgs BroadcastGradientArgs
 * InvertPermutation. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

static void put_int(tn_view *out, int64_t k, int64_t number)
{
  if (out->dtype == TN_INT64)
    ((int64_t *)out->data)[k] = number;
  else
    ((int32_t *)out->data)[k] = (int32_t)number;
}

/* Size k of a list of n sizes, counted from the last. Lists are padded with leading 1s. */
static int64_t size_from_end(const tn_view *v, int64_t k)
{
  return k < v->count ? tn__view_int_at(v, v->count - 1 - k) : 1;
}

static tn_status sizes_error(tn_error *err, const char *op, int64_t k, int64_t a, int64_t b)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: sizes %lld and %lld, number %lld from the end, do not broadcast",
                      op, (long long)a, (long long)b, (long long)k + 1);
}

static tn_status infer_two_vectors(const tn_infer_ctx *ctx, tn__shape s[2], tn_error *err)
{
  tn_status st = tn__infer_rank(ctx, 0, 1, &s[0], err);
  return st != TN_OK ? st : tn__infer_rank(ctx, 1, 1, &s[1], err);
}

/* ---- BroadcastArgs ---- */

/* The state is the op's type, which compute names in errors. */
static tn_status name_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)tn_operation_type(op); /* only read through it */
  return TN_OK;
}

static tn_status args_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  int64_t a = ctx->inputs[0].count, b = ctx->inputs[1].count, n = a > b ? a : b;
  ctx->cost_ns = 10;
  return tn_prepare_output(ctx, 0, &n, 1, err);
}

static tn_status args_compute(tn_kernel_ctx *ctx)
{
  tn_view *out = ctx->outputs[0];
  for (int64_t k = 0; k < out->count; k++) {
    int64_t a = size_from_end(ctx->inputs[0], k), b = size_from_end(ctx->inputs[1], k);
    if (a != b && a != 1 && b != 1) return sizes_error(ctx->err, ctx->state, k, a, b);
    put_int(out, out->count - 1 - k, a == 1 ? b : a);
  }
  return TN_OK;
}

/* Infers the elements of the result that are known. If sizes may not fit, the step checks them. */
static tn_status infer_args_items(tn_infer_ctx *ctx, int64_t n, tn_error *err)
{
  const int64_t *x, *y;
  int64_t items[TN_MAX_INFER_INTS];
  int64_t n_x = tn_infer_input_ints(ctx, 0, &x), n_y = tn_infer_input_ints(ctx, 1, &y);
  if (n_x < 0 || n_y < 0 || n > TN_MAX_INFER_INTS) return TN_OK;
  for (int64_t k = 0; k < n; k++) {
    int64_t a = k < n_x ? x[n_x - 1 - k] : 1, b = k < n_y ? y[n_y - 1 - k] : 1, *item = &items[n - 1 - k];
    if (a == 1 || a == b) *item = b;
    else if (b == 1) *item = a;
    else if (a == TN_UNKNOWN_INT) *item = b; /* a is 1 or b, because b is not 1 */
    else if (b == TN_UNKNOWN_INT) *item = a;
    else return sizes_error(err, tn__infer_op(ctx), k, a, b);
  }
  return tn_infer_output_ints(ctx, 0, items, n, err);
}

static tn_status infer_args(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s[2];
  tn_status st = infer_two_vectors(ctx, s, err);
  if (st != TN_OK) return st;
  int64_t a = s[0].dims[0], b = s[1].dims[0], n = a > b ? a : b;
  if (a < 0 || b < 0) n = -1;
  st = tn_infer_output(ctx, 0, &n, 1, err);
  return st == TN_OK && n >= 0 ? infer_args_items(ctx, n, err) : st;
}

/* ---- BroadcastGradientArgs ---- */

/* The role of one dimension of two shapes that broadcast: bit 0 if the gradient of the first
 * operand is summed over it, bit 1 if that of the second is, -1 if the sizes do not fit. A
 * dimension of 1 in both sets both bits. */
static int summed(int64_t a, int64_t b)
{
  if (a == b) return a == 1 ? 3 : 0;
  if (a == 1) return 1;
  return b == 1 ? 2 : -1;
}

static bool same_sizes(const tn_view *a, const tn_view *b)
{
  return a->count == b->count &&
         (a->count == 0 || memcmp(a->data, b->data, (size_t)a->count * tn_dtype_size(a->dtype)) == 0);
}

static tn_status gradient_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn_prepare_dynamic(ctx, 0, err);
  ctx->cost_ns = 100;
  return st != TN_OK ? st : tn_prepare_dynamic(ctx, 1, err);
}

static tn_status gradient_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *y = ctx->inputs[1];
  int64_t n = x->count > y->count ? x->count : y->count;
  if (same_sizes(x, y)) n = 0;
  int64_t counts[2] = { 0, 0 };
  for (int64_t k = 0; k < n; k++) {
    int64_t a = size_from_end(x, k), b = size_from_end(y, k);
    int who = summed(a, b);
    if (who < 0) return sizes_error(ctx->err, ctx->state, k, a, b);
    counts[0] += who & 1;
    counts[1] += who >> 1;
  }
  for (uint32_t i = 0; i < 2; i++) {
    tn_status st = tn_kernel_allocate(ctx, i, &counts[i], 1);
    if (st != TN_OK) return st;
  }
  for (int64_t k = 0; k < n; k++) { /* from the last dimension to the first one */
    int who = summed(size_from_end(x, k), size_from_end(y, k));
    if (who & 1) put_int(ctx->outputs[0], --counts[0], n - 1 - k);
    if (who & 2) put_int(ctx->outputs[1], --counts[1], n - 1 - k);
  }
  return TN_OK;
}

/* Computes the lists of axes if all sizes are known; returns false if not. */
static bool infer_axes(const tn_infer_ctx *ctx, int64_t axes[2][TN_MAX_INFER_INTS], int64_t counts[2])
{
  const int64_t *x, *y;
  int64_t n_x = tn_infer_input_ints(ctx, 0, &x), n_y = tn_infer_input_ints(ctx, 1, &y), n = n_x > n_y ? n_x : n_y;
  if (n_x < 0 || n_y < 0 || n > TN_MAX_INFER_INTS) return false;
  counts[0] = counts[1] = 0;
  bool same = n_x == n_y;
  for (int64_t k = 0; k < n; k++) {
    int64_t a = k < n - n_x ? 1 : x[k - (n - n_x)], b = k < n - n_y ? 1 : y[k - (n - n_y)];
    int who = summed(a, b);
    if (a == TN_UNKNOWN_INT || b == TN_UNKNOWN_INT || who < 0) return false;
    same = same && a == b;
    if (who & 1) axes[0][counts[0]++] = k;
    if (who & 2) axes[1][counts[1]++] = k;
  }
  if (same) counts[0] = counts[1] = 0;
  return true;
}

static tn_status infer_gradient(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s[2];
  int64_t axes[2][TN_MAX_INFER_INTS], counts[2] = { -1, -1 };
  tn_status st = infer_two_vectors(ctx, s, err);
  bool known = st == TN_OK && infer_axes(ctx, axes, counts);
  if (!known) counts[0] = counts[1] = -1;
  for (size_t i = 0; st == TN_OK && i < 2; i++) {
    st = tn_infer_output(ctx, i, &counts[i], 1, err);
    if (st == TN_OK && known) st = tn_infer_output_ints(ctx, i, axes[i], counts[i], err);
  }
  return st;
}

/* ---- InvertPermutation ---- */

static tn_status invert_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  ctx->cost_ns = 10 + 2 * (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status not_a_permutation(tn_error *err, const char *op, int64_t i, int64_t x, int64_t n, bool twice)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: element %lld is %lld, %s [0, %lld)", op, (long long)i,
                      (long long)x, twice ? "which is a repetition; wanted each number once of" : "wanted a number of",
                      (long long)n);
}

#define INVERT(T)                                                                                          \
  static tn_status invert_##T(tn_kernel_ctx *ctx, const T *x, T *y, int64_t n)                             \
  {                                                                                                        \
    for (int64_t i = 0; i < n; i++) y[i] = -1;                                                             \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      if (x[i] < 0 || x[i] >= n) return not_a_permutation(ctx->err, ctx->state, i, x[i], n, false);        \
      if (y[x[i]] != -1) return not_a_permutation(ctx->err, ctx->state, i, x[i], n, true);                 \
      y[x[i]] = (T)i;                                                                                      \
    }                                                                                                      \
    return TN_OK;                                                                                          \
  }
INVERT(int32_t)
INVERT(int64_t)

static tn_status invert_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *y = ctx->outputs[0];
  return x->dtype == TN_INT64 ? invert_int64_t(ctx, x->data, y->data, x->count)
                              : invert_int32_t(ctx, x->data, y->data, x->count);
}

static tn_status infer_invert(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, 1, &s, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &s, err);
  const int64_t *x;
  int64_t n = tn_infer_input_ints(ctx, 0, &x), y[TN_MAX_INFER_INTS];
  if (st != TN_OK || n < 0 || n > TN_MAX_INFER_INTS || n != s.dims[0]) return st;
  for (int64_t i = 0; i < n; i++) y[i] = TN_UNKNOWN_INT;
  for (int64_t i = 0; i < n; i++)
    if (x[i] >= 0 && x[i] < n) y[x[i]] = i;
  return tn_infer_output_ints(ctx, 0, y, n, err);
}

/* ---- tables ---- */

#define OP(op, in, out, bits, shapes, text)                                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = "T: {int32, int64} = int32", \
    .traits = bits, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("BroadcastArgs", "s0: T, s1: T", "r0: T", 0, infer_args, "shape that results from broadcasting two shapes"),
  OP("BroadcastGradientArgs", "s0: T, s1: T", "r0: T, r1: T", TN_TRAIT_DYNAMIC, infer_gradient,
     "axes over which to sum the gradients of two broadcast operands"),
  OP("InvertPermutation", "x: T", "y: T", 0, infer_invert, "inverse of a permutation"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = name_create, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("BroadcastArgs", "broadcast_args_cpu", args_prepare, args_compute),
  KERNEL("BroadcastGradientArgs", "broadcast_gradient_args_cpu", gradient_prepare, gradient_compute),
  KERNEL("InvertPermutation", "invert_permutation_cpu", invert_prepare, invert_compute),
};

TN_OP_FAMILY(broadcast_args)
