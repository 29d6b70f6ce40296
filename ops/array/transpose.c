/* SPDX-License-Identifier: Apache-2.0 */
/* Permuted dimensions: Transpose ConjugateTranspose. If only dimensions of size 1 move, nothing is
 * copied. Otherwise ops/kernel/move/strided.c does the copy. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* ---- shapes ---- */

/* Checks that items is a permutation of `rank` dimensions. Negative numbers count from the end. */
static tn_status read_order(const char *op, const int64_t *items, int64_t n, int32_t rank, int32_t *order,
                            tn_error *err)
{
  bool seen[TN_MAX_RANK] = { false };
  if (n != rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 orders %lld dimensions, input 0 has %d", op,
                        (long long)n, (int)rank);
  for (int32_t i = 0; i < rank; i++) {
    tn_status st = tn__shape_axis(op, items[i], rank, &order[i], err);
    if (st != TN_OK) return st;
    if (seen[order[i]])
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 names dimension %d twice", op, (int)order[i]);
    seen[order[i]] = true;
  }
  return TN_OK;
}

/* Infers the rank alone if the order is unknown: the input's, or the length of the order. */
static tn_status infer_rank_only(tn_infer_ctx *ctx, const tn__shape *in, const tn__shape *perm, tn_error *err)
{
  tn__shape out;
  tn__shape_unknown(&out);
  if (in->rank >= 0)
    out.rank = in->rank;
  else if (perm->dims[0] >= 0 && perm->dims[0] <= TN_MAX_RANK)
    out.rank = (int32_t)perm->dims[0];
  if (in->rank >= 0 && perm->dims[0] >= 0 && perm->dims[0] != in->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 orders %lld dimensions, input 0 has %d",
                        tn__infer_op(ctx), (long long)perm->dims[0], (int)in->rank);
  for (int32_t i = 0; i < out.rank; i++) out.dims[i] = -1;
  if (in->rank == 1) out.dims[0] = in->dims[0];
  return tn__infer_set(ctx, 0, &out, err);
}

static tn_status infer_transpose(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in, perm, out;
  int32_t order[TN_MAX_RANK];
  int64_t items[TN_MAX_RANK];
  const tn_tensor *value;
  int64_t n;
  tn__infer_get(ctx, 0, &in);
  tn_status st = tn__infer_rank(ctx, 1, 1, &perm, err);
  if (st != TN_OK) return st;
  if (!tn__infer_ints(ctx, 1, &value, &n) || n > TN_MAX_RANK) return infer_rank_only(ctx, &in, &perm, err);
  for (int64_t i = 0; i < n; i++) items[i] = tn__tensor_int_at(value, i);
  out.rank = (int32_t)n;
  st = read_order(tn__infer_op(ctx), items, n, in.rank >= 0 ? in.rank : out.rank, order, err);
  if (st != TN_OK) return st;
  for (int32_t i = 0; i < out.rank; i++) out.dims[i] = in.rank >= 0 ? in.dims[order[i]] : -1;
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- the kernel ---- */

static tn_status transpose_create(const tn_operation *op, void **state, tn_error *err)
{
  tn_dtype d = tn_operation_output_dtype(op, 0);
  *state = NULL;
  if (strcmp(tn_operation_type(op), "ConjugateTranspose") == 0 && d == TN_STRING)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: strings have no conjugate", tn_operation_type(op));
  return TN_OK;
}

/* Whether the order moves dimensions of size 1 only. */
static bool moves_nothing(const tn_view *in, const int32_t *order)
{
  int32_t last = -1;
  for (int32_t i = 0; i < in->rank; i++) {
    if (in->dims[order[i]] == 1) continue;
    if (order[i] < last) return false;
    last = order[i];
  }
  return true;
}

static tn_status plan_copy(tn_prepare_ctx *ctx, const int32_t *order, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int64_t steps[TN_MAX_RANK], step = 1;
  tn__strided *s = tn__alloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "the plan of a transposition", sizeof *s);
  ctx->shape_state = s;
  tn__strided_init(s, in->dtype);
  for (int32_t i = in->rank - 1; i >= 0 && in->count > 0; i--) {
    steps[i] = step;
    step *= in->dims[i];
  }
  int64_t to = in->count;
  s->empty = in->count == 0;
  for (int32_t i = 0; i < in->rank && in->count > 0; i++) {
    int64_t size = in->dims[order[i]];
    to /= size;
    tn__strided_add(s, size, steps[order[i]], to);
  }
  tn__strided_plan(s);
  ctx->cost_ns = s->cost_ns;
  return TN_OK;
}

static bool is_complex(tn_dtype d) { return d == TN_COMPLEX64 || d == TN_COMPLEX128; }

static tn_status transpose_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *perm = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  int32_t order[TN_MAX_RANK];
  int64_t items[TN_MAX_RANK], dims[TN_MAX_RANK];
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  if (perm->count > 0 && perm->data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 1 is not known", op);
  for (int64_t i = 0; i < perm->count && i < TN_MAX_RANK; i++) items[i] = tn__view_int_at(perm, i);
  st = read_order(op, items, perm->count, in->rank, order, err);
  if (st != TN_OK) return st;
  for (int32_t i = 0; i < in->rank; i++) dims[i] = in->dims[order[i]];
  st = tn_prepare_output(ctx, 0, dims, in->rank, err);
  if (st != TN_OK) return st;
  bool conjugates = is_complex(in->dtype) && strcmp(op, "Transpose") != 0;
  if (!conjugates && moves_nothing(in, order)) return tn_prepare_view(ctx, 0, 0, err);
  return plan_copy(ctx, order, err);
}

static void destroy_plan(void *plan) { tn__free(plan, sizeof(tn__strided)); }

static tn_status transpose_compute(tn_kernel_ctx *ctx)
{
  if (ctx->shape_state == NULL) return TN_OK;
  return tn__strided_run(ctx->shape_state, ctx, ctx->inputs[0]->data, ctx->outputs[0]->data);
}

static void conjugate_part(void *user, int64_t begin, int64_t end)
{
  const tn_view *out = user;
  if (out->dtype == TN_COMPLEX64) {
    float *x = out->data;
    for (int64_t i = begin; i < end; i++) x[2 * i + 1] = -x[2 * i + 1];
  } else {
    double *x = out->data;
    for (int64_t i = begin; i < end; i++) x[2 * i + 1] = -x[2 * i + 1];
  }
}

static tn_status conjugate_compute(tn_kernel_ctx *ctx)
{
  tn_view *out = ctx->outputs[0];
  tn_status st = transpose_compute(ctx);
  if (st != TN_OK || !is_complex(out->dtype)) return st;
  if (out->count <= TN__SERIAL_ELEMENTS)
    conjugate_part(out, 0, out->count);
  else
    tn_parallel_for(ctx, out->count, TN__SERIAL_ELEMENTS, 0.5, conjugate_part, out);
  return TN_OK;
}

/* ---- tables ---- */

#define OP(op, text)                                                                                \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "x: T, perm: Tperm", .outputs = "y: T",    \
    .attrs = "T: type; Tperm: {int32, int64} = int32", .shape_operands = 1u << 1,                   \
    .infer = infer_transpose, .summary = text }

static const tn_op_def ops[] = {
  OP("ConjugateTranspose", "permutes dimensions and conjugates elements"),
  OP("Transpose", "permutes dimensions"),
};

#define KERNEL(which, title, compute_fn)                                                           \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title,                \
    .rank = TN_RANK_C, .create = transpose_create, .prepare = transpose_prepare,                   \
    .destroy_shape_state = destroy_plan, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("ConjugateTranspose", "conjugate_transpose_cpu", conjugate_compute),
  KERNEL("Transpose", "transpose_cpu", transpose_compute),
};

TN_OP_FAMILY(transpose)
