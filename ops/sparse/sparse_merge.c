/* SPDX-License-Identifier: Apache-2.0 */
/* Two sparse tensors of one shape, entry by entry: SparseAdd, its gradient SparseAddGrad, SparseSparseMaximum and
 * SparseSparseMinimum. Entries are merged by their indices, which are assumed to ascend, as in TensorFlow. */
#include <core/base/text.h>
#include <math.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* Position of a merge: the next entries of a and b. */
typedef struct merge {
  const int64_t *a, *b;
  int64_t n_a, n_b, i, k;
  int32_t rank;
} merge;

static merge merge_of(const tn_kernel_ctx *ctx, uint32_t a, uint32_t b)
{
  const tn_view *x = ctx->inputs[a], *y = ctx->inputs[b];
  return (merge){ x->data, y->data, x->dims[0], y->dims[0], 0, 0, (int32_t)x->dims[1] };
}

static int compare(const int64_t *x, const int64_t *y, int32_t rank)
{
  for (int32_t d = 0; d < rank; d++)
    if (x[d] != y[d]) return x[d] < y[d] ? -1 : 1;
  return 0;
}

/* The next entry: from_a and from_b are its positions, -1 where there is none. False at the end. */
static bool next_entry(merge *m, int64_t *from_a, int64_t *from_b)
{
  *from_a = *from_b = -1;
  if (m->i >= m->n_a && m->k >= m->n_b) return false;
  int order = 0;
  if (m->i >= m->n_a) order = 1;
  else if (m->k >= m->n_b) order = -1;
  else order = compare(m->a + m->i * m->rank, m->b + m->k * m->rank, m->rank);
  if (order <= 0) *from_a = m->i++;
  if (order >= 0) *from_b = m->k++;
  return true;
}

static void copy_index(const merge *m, int64_t *to, int64_t from_a, int64_t from_b)
{
  memcpy(to, from_a >= 0 ? m->a + from_a * m->rank : m->b + from_b * m->rank, (size_t)m->rank * sizeof *to);
}

/* Inputs 0 to 2 and 3 to 5 are sparse tensors. */
static tn_status merge_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK) st = tn__want_sparse(ctx, 3, 4, 5, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 2, 5, err);
  if (st == TN_OK && ctx->inputs[2].count == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the sparse tensors are scalars", tn_operation_type(ctx->op));
  if (st == TN_OK && ctx->n_inputs > 6) st = tn__want_rank(ctx, 6, 0, err);
  ctx->cost_ns = 100 + 10 * (double)(ctx->inputs[0].count + ctx->inputs[3].count);
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* ---- SparseAdd ---- */

/* The sum of elements i and k, and whether its magnitude is at least `least`. */
typedef bool (*sum_fn)(const void *a, int64_t i, const void *b, int64_t k, void *out, int64_t at, double least);

/* Of the lowest integer, the magnitude is itself if it does not fit an int, as in TensorFlow. */
#define SIZE_f32(x) fabs((double)(x))
#define SIZE_f64(x) fabs(x)
#define SIZE_c64(x) (double)cabsf(x)
#define SIZE_c128(x) cabs(x)
#define SIZE_wi8(x) fabs((double)(int8_t)(x))
#define SIZE_wi16(x) fabs((double)(int16_t)(x))
#define SIZE_wi32(x) (double)((int32_t)(x) < 0 ? (int32_t)(0 - (x)) : (int32_t)(x))
#define SIZE_wi64(x) (double)((int64_t)(x) < 0 ? (int64_t)(0 - (x)) : (int64_t)(x))

#define SUM_FN(op, d, unused)                                                                                   \
  static bool op##_##d(const void *a, int64_t i, const void *b, int64_t k, void *out, int64_t at, double least) \
  {                                                                                                             \
    tn__C_##d sum = TN__L_##d(((const tn__S_##d *)a)[i]) + TN__L_##d(((const tn__S_##d *)b)[k]);                \
    ((tn__S_##d *)out)[at] = TN__P_##d(sum);                                                                    \
    return least <= SIZE_##d(sum);                                                                              \
  }
#define SUMS(X, op) X(op, f32, f32) X(op, f64, f64) TN__SAME_COMPLEXES(X, op) TN__WRAP_SIGNED(X, op)
SUMS(SUM_FN, sum)

static sum_fn sum_of(tn_dtype dtype)
{
  switch (dtype) {
#define CASE(op, d, unused) case TN__D_##d: return op##_##d;
    SUMS(CASE, sum)
#undef CASE
  default: return NULL;
  }
}

/* Input 6: a real number of any dtype. */
static double threshold(const tn_view *v)
{
  switch (v->dtype) {
  case TN_FLOAT: return (double)*(const float *)v->data;
  case TN_DOUBLE: return *(const double *)v->data;
  case TN_HALF: return (double)tn__half_to_float(*(const uint16_t *)v->data);
  case TN_BFLOAT16: return (double)tn__bfloat16_to_float(*(const uint16_t *)v->data);
  case TN_INT8: return *(const int8_t *)v->data;
  case TN_UINT8: return *(const uint8_t *)v->data;
  case TN_INT16: return *(const int16_t *)v->data;
  case TN_UINT16: return *(const uint16_t *)v->data;
  case TN_INT32: return *(const int32_t *)v->data;
  case TN_UINT32: return *(const uint32_t *)v->data;
  case TN_UINT64: return (double)*(const uint64_t *)v->data;
  default: return (double)*(const int64_t *)v->data;
  }
}

/* Counts the entries, of which a sum below the threshold is none. */
static int64_t count_sums(const tn_kernel_ctx *ctx, merge m, sum_fn sum, double least, tn__poll *poll)
{
  _Alignas(16) char unused[16];
  int64_t from_a, from_b, n = 0;
  while (next_entry(&m, &from_a, &from_b)) {
    if (tn__poll_over(poll, 5 + m.rank)) return -1;
    n += from_a < 0 || from_b < 0 || sum(ctx->inputs[1]->data, from_a, ctx->inputs[4]->data, from_b, unused, 0, least);
  }
  return n;
}

static tn_status add_compute(tn_kernel_ctx *ctx)
{
  const tn_view *a = ctx->inputs[1], *b = ctx->inputs[4], *shape = ctx->inputs[2];
  sum_fn sum = sum_of(a->dtype);
  double least = threshold(ctx->inputs[6]);
  merge m = merge_of(ctx, 0, 3);
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn__sparse_same_shapes(ctx, 2, 5);
  if (st != TN_OK) return st;
  int64_t n = count_sums(ctx, m, sum, least, &poll), from_a, from_b;
  if (n < 0) return TN_CANCELLED;
  st = tn__give_entries(ctx, 0, n, m.rank);
  if (st == TN_OK) st = tn__give_ints(ctx, 2, shape->data, shape->count);
  if (st != TN_OK) return st;
  int64_t *to = ctx->outputs[0]->data, at = 0;
  tn_view *out = ctx->outputs[1];
  while (at < n && next_entry(&m, &from_a, &from_b)) {
    if (tn__poll_over(&poll, 5 + m.rank)) return TN_CANCELLED;
    if (from_a < 0) tn__copy_value(out, at, b, from_b, ctx->err);
    else if (from_b < 0) tn__copy_value(out, at, a, from_a, ctx->err);
    else if (!sum(a->data, from_a, b->data, from_b, out->data, at, least)) continue;
    copy_index(&m, to, from_a, from_b);
    to += m.rank;
    at++;
  }
  return TN_OK;
}

static tn_status infer_merged(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t n_a, n_b, rank, other;
  tn__shape scalar;
  tn_status st = tn__infer_sparse(ctx, 0, 1, 2, &n_a, &rank, err);
  if (st == TN_OK) st = tn__infer_sparse(ctx, 3, 4, 5, &n_b, &other, err);
  if (st == TN_OK && tn_infer_n_inputs(ctx) > 6) st = tn__infer_rank(ctx, 6, 0, &scalar, err);
  if (st != TN_OK) return st;
  if (!tn__dim_merge(&rank, other))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: sparse tensors of %lld and %lld dimensions", tn__infer_op(ctx),
                        (long long)rank, (long long)other);
  if (tn_operation_n_outputs(tn_infer_operation(ctx)) > 2) return tn__infer_sparse_output(ctx, 0, -1, rank, err);
  return tn__infer_entries(ctx, 0, -1, rank, err);
}

/* ---- SparseAddGrad ---- */

static tn_status grad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *grad = &ctx->inputs[0], *a = &ctx->inputs[1], *b = &ctx->inputs[2], *sum = &ctx->inputs[3];
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  for (uint32_t i = 1; st == TN_OK && i < 4; i++) st = tn__want_rank(ctx, i, 2, err);
  if (st != TN_OK) return st;
  const int64_t wanted[2] = { grad->count, a->dims[1] }, any[2] = { -1, a->dims[1] };
  if (b->dims[1] != a->dims[1]) return tn__shape_error(err, ctx, 2, any, 2);
  if (sum->dims[0] != wanted[0] || sum->dims[1] != wanted[1]) return tn__shape_error(err, ctx, 3, wanted, 2);
  ctx->cost_ns = 100 + 5 * (double)sum->count;
  st = tn_prepare_output(ctx, 0, a->dims, 1, err);
  return st == TN_OK ? tn_prepare_output(ctx, 1, b->dims, 1, err) : st;
}

/* An operand of the sum, and how far its entries have been found. */
typedef struct operand {
  const int64_t *at;
  int64_t n, i;
  tn_view *grad;
} operand;

/* Compares the operand's next entry with entry k of the sum. False: it is before that one, and was skipped. */
static bool take_grad(operand *o, const int64_t *sum, int64_t k, const tn_view *grad, int32_t rank, tn_error *err)
{
  if (o->i >= o->n) return true;
  int order = compare(o->at + o->i * rank, sum + k * rank, rank);
  if (order == 0) tn__copy_value(o->grad, o->i, grad, k, err);
  if (order <= 0) o->i++;
  return order >= 0;
}

static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const tn_view *grad = ctx->inputs[0], *sum = ctx->inputs[3];
  int32_t rank = (int32_t)sum->dims[1];
  operand of[2];
  for (uint32_t i = 0; i < 2; i++) {
    tn_view *out = ctx->outputs[i];
    of[i] = (operand){ ctx->inputs[1 + i]->data, out->count, 0, out };
    if (out->count > 0) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  }
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t k = 0; k < sum->dims[0] && (of[0].i < of[0].n || of[1].i < of[1].n);) {
    if (tn__poll_over(&poll, 4 + rank)) return TN_CANCELLED;
    bool a = take_grad(&of[0], sum->data, k, grad, rank, ctx->err);
    bool b = take_grad(&of[1], sum->data, k, grad, rank, ctx->err);
    k += a && b;
  }
  return TN_OK;
}

static tn_status infer_grad(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape grad, a, b, sum;
  tn_status st = tn__infer_rank(ctx, 0, 1, &grad, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 2, &a, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 2, &b, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 3, 2, &sum, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 0, a.dims, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, b.dims, 1, err) : st;
}

/* ---- SparseSparseMaximum SparseSparseMinimum ---- */

/* out[at] = the larger or smaller one of a[i] and b[k]; a negative position means 0. */
typedef void (*choose_fn)(const void *a, int64_t i, const void *b, int64_t k, void *out, int64_t at);

#define CHOICE_max(x, y) TN__MAX(x, y)
#define CHOICE_min(x, y) TN__MIN(x, y)
#define CHOOSE_FN(op, d, unused)                                                                       \
  static void op##_##d(const void *a, int64_t i, const void *b, int64_t k, void *out, int64_t at)      \
  {                                                                                                    \
    tn__C_##d x = i < 0 ? 0 : TN__L_##d(((const tn__S_##d *)a)[i]);                                    \
    tn__C_##d y = k < 0 ? 0 : TN__L_##d(((const tn__S_##d *)b)[k]);                                    \
    ((tn__S_##d *)out)[at] = TN__P_##d(CHOICE_##op(x, y));                                             \
  }
#define ORDERED(X, op) TN__SAME_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
ORDERED(CHOOSE_FN, max)
ORDERED(CHOOSE_FN, min)

typedef struct choice {
  tn_dtype dtype;
  choose_fn fn;
} choice;

static tn_status choice_create(const tn_operation *op, const choice *choices, size_t n, void **state, tn_error *err)
{
  tn_dtype dtype = tn_operation_input_dtype(op, 1);
  *state = NULL;
  for (size_t i = 0; i < n; i++) {
    if (choices[i].dtype != dtype) continue;
    *state = (void *)(uintptr_t)&choices[i]; /* only read through it */
    return TN_OK;
  }
  return tn__no_kernel(err, op, dtype);
}

#define CHOICE(op, d, unused) { TN__D_##d, op##_##d },
#define CREATE(op)                                                                     \
  static tn_status op##_create(const tn_operation *node, void **state, tn_error *err)  \
  {                                                                                    \
    static const choice choices[] = { ORDERED(CHOICE, op) };                           \
    return choice_create(node, choices, sizeof choices / sizeof *choices, state, err); \
  }
CREATE(max)
CREATE(min)

static tn_status choose_compute(tn_kernel_ctx *ctx)
{
  const choice *c = ctx->state;
  merge m = merge_of(ctx, 0, 3), first = m;
  int64_t n = 0, from_a, from_b;
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn__sparse_same_shapes(ctx, 2, 5);
  if (st == TN_OK) st = tn__sparse_check_bounds(ctx, 0, ctx->inputs[2]->data, &poll);
  if (st == TN_OK) st = tn__sparse_check_bounds(ctx, 3, ctx->inputs[2]->data, &poll);
  if (st != TN_OK) return st;
  while (next_entry(&first, &from_a, &from_b)) {
    if (tn__poll_over(&poll, 5 + m.rank)) return TN_CANCELLED;
    n++;
  }
  st = tn__give_entries(ctx, 0, n, m.rank);
  if (st != TN_OK) return st;
  int64_t *to = ctx->outputs[0]->data;
  for (int64_t at = 0; next_entry(&m, &from_a, &from_b); at++, to += m.rank) {
    if (tn__poll_over(&poll, 5 + m.rank)) return TN_CANCELLED;
    copy_index(&m, to, from_a, from_b);
    c->fn(ctx->inputs[1]->data, from_a, ctx->inputs[4]->data, from_b, ctx->outputs[1]->data, at);
  }
  return TN_OK;
}

/* ---- tables ---- */

#define T_NUMBERS "T: {numbertype, qint16, quint16}"
#define TWO "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"
#define MERGE_OP(op, in, out, attributes, text)                                                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes,  \
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_merged, .summary = text }

static const tn_op_def ops[] = {
  MERGE_OP("SparseAdd", TWO ", thresh: Treal", "sum_indices: int64, sum_values: T, sum_shape: int64",
           T_NUMBERS "; Treal: realnumbertype", "sum of sparse tensors"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseAddGrad",
    .inputs = "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64",
    .outputs = "a_val_grad: T, b_val_grad: T", .attrs = T_NUMBERS, .infer = infer_grad,
    .summary = "gradient of SparseAdd" },
  MERGE_OP("SparseSparseMaximum", TWO, "output_indices: int64, output_values: T", "T: realnumbertype",
           "the larger elements of sparse tensors"),
  MERGE_OP("SparseSparseMinimum", TWO, "output_indices: int64, output_values: T", T_NUMBERS,
           "the smaller elements of sparse tensors"),
};

#define SUM_TYPES "T=float|double|int8|int16|int32|int64|complex64|complex128"
#define REAL_TYPES "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64"

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseAdd", .device = "CPU", .types = SUM_TYPES, .name = "sparse_add_cpu",
    .rank = TN_RANK_C, .prepare = merge_prepare, .compute = add_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseAddGrad", .device = "CPU", .types = SUM_TYPES,
    .name = "sparse_add_grad_cpu", .rank = TN_RANK_C, .prepare = grad_prepare, .compute = grad_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseSparseMaximum", .device = "CPU",
    .name = "sparse_sparse_maximum_cpu", .rank = TN_RANK_C, .create = max_create, .prepare = merge_prepare,
    .compute = choose_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseSparseMinimum", .device = "CPU", .types = REAL_TYPES,
    .name = "sparse_sparse_minimum_cpu", .rank = TN_RANK_C, .create = min_create, .prepare = merge_prepare,
    .compute = choose_compute },
};

TN_OP_FAMILY(sparse_merge)
