/* SPDX-License-Identifier: Apache-2.0 */
/* Slices put at indices: ScatterNd ScatterNdNonAliasingAdd, TensorScatterAdd ...Max ...Min ...Sub ...Update. */
#include <ops/support/elementwise.h>

#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/support/elements.h>
#include <ops/support/indices.h>
#include <string.h>

/* ---- what is done to an element ---- */

#define STEP_add(a, x) ((a) + (x))
#define STEP_sub(a, x) ((a) - (x))
#define STEP_max(a, x) ((a) < (x) ? (x) : (a)) /* NaN: what is there stays */
#define STEP_min(a, x) ((x) < (a) ? (x) : (a))
#define STEP_or(a, x) ((a) | (x))

typedef void (*scatter_fn)(void *to, const void *from, int64_t n);

#define SCATTER_LOOP(op, d, unused)                                                    \
  static void op##_##d(void *to, const void *from, int64_t n)                          \
  {                                                                                    \
    tn__S_##d *out = to;                                                               \
    const tn__S_##d *in = from;                                                        \
    for (int64_t i = 0; i < n; i++) {                                                  \
      tn__C_##d a = TN__L_##d(out[i]), x = TN__L_##d(in[i]);                           \
      out[i] = TN__P_##d(STEP_##op(a, x));                                             \
    }                                                                                  \
  }
#define SUMS(X, op) TN__SAME_FLOATS_COMPLEXES(X, op) TN__WRAP_SIGNED(X, op)
#define ORDERED(X, op) TN__SAME_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
#define BOOLS(X, op) X(op, b8, b8)
SUMS(SCATTER_LOOP, add)
SUMS(SCATTER_LOOP, sub)
ORDERED(SCATTER_LOOP, max)
ORDERED(SCATTER_LOOP, min)
BOOLS(SCATTER_LOOP, or)

/* twin: the unsigned type that has the same sums, or the same again. */
typedef struct scatter_loop {
  tn_dtype dtype, twin;
  scatter_fn fn;
} scatter_loop;

#define TWIN_f32 TN_FLOAT
#define TWIN_f64 TN_DOUBLE
#define TWIN_f16 TN_HALF
#define TWIN_bf16 TN_BFLOAT16
#define TWIN_c64 TN_COMPLEX64
#define TWIN_c128 TN_COMPLEX128
#define TWIN_wi8 TN_UINT8
#define TWIN_wi16 TN_UINT16
#define TWIN_wi32 TN_UINT32
#define TWIN_wi64 TN_UINT64
#define TWIN_i8 TN_INT8
#define TWIN_i16 TN_INT16
#define TWIN_i32 TN_INT32
#define TWIN_i64 TN_INT64
#define TWIN_u8 TN_UINT8
#define TWIN_u16 TN_UINT16
#define TWIN_u32 TN_UINT32
#define TWIN_u64 TN_UINT64
#define TWIN_b8 TN_BOOL
#define ENTRY(op, d, unused) { TN__D_##d, TWIN_##d, op##_##d },
static const scatter_loop add_loops[] = { SUMS(ENTRY, add) BOOLS(ENTRY, or) };
static const scatter_loop sub_loops[] = { SUMS(ENTRY, sub) };
static const scatter_loop max_loops[] = { ORDERED(ENTRY, max) };
static const scatter_loop min_loops[] = { ORDERED(ENTRY, min) };

/* ---- create ---- */

typedef struct scatter_state {
  scatter_fn fn; /* NULL: elements are copied, strings appended to what is there when `append` says so */
  bool append, ignore_bad;
  bool from_zeros; /* input 0 is no tensor */
} scatter_state;

static tn_status scatter_create(const tn_operation *op, const scatter_loop *loops, size_t n, bool from_zeros,
                                void **state, tn_error *err)
{
  void *policy;
  *state = NULL;
  tn_status st = tn__bad_indices_create(op, &policy, err);
  if (st != TN_OK) return st;
  tn_dtype dtype = tn_operation_output_dtype(op, 0);
  scatter_state s = { NULL, n > 0, ((const tn__bad_indices *)policy)->ignore, from_zeros };
  for (size_t i = 0; i < n && s.fn == NULL; i++)
    if (loops[i].dtype == dtype || loops[i].twin == dtype) s.fn = loops[i].fn;
  if (n > 0 && s.fn == NULL && dtype != TN_STRING) return tn__no_kernel(err, op, dtype);
  scatter_state *made = tn__alloc(sizeof *made);
  if (made == NULL) return tn__no_memory(err, "state of a scatter", sizeof *made);
  *made = s;
  *state = made;
  return TN_OK;
}

#define CREATE(name, loops, n, from_zeros)                                            \
  static tn_status name##_create(const tn_operation *op, void **state, tn_error *err) \
  {                                                                                   \
    return scatter_create(op, loops, n, from_zeros, state, err);                      \
  }
CREATE(zeros_add, add_loops, sizeof add_loops / sizeof add_loops[0], true)
CREATE(add, add_loops, sizeof add_loops / sizeof add_loops[0], false)
CREATE(sub, sub_loops, sizeof sub_loops / sizeof sub_loops[0], false)
CREATE(max, max_loops, sizeof max_loops / sizeof max_loops[0], false)
CREATE(min, min_loops, sizeof min_loops / sizeof min_loops[0], false)
CREATE(update, NULL, 0, false)

static void scatter_destroy(void *state) { tn__free(state, sizeof(scatter_state)); }

/* ---- shapes ---- */

/* Updates [the indices' dimensions but the last, the output's behind `depth`]: inputs `i` and `u` are indices and
 * updates. Unknown parts fit. */
static tn_status check_updates(const char *op, const tn__shape *out, const tn__shape *indices, uint32_t i,
                               const tn__shape *updates, uint32_t u, tn_error *err)
{
  char x[160], y[160];
  if (indices->rank < 0 || indices->dims[indices->rank - 1] < 0 || out->rank < 0) return TN_OK;
  int64_t depth = indices->dims[indices->rank - 1];
  if (depth > out->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has indices of %lld numbers, the output has shape %s",
                        op, i, (long long)depth, tn__format_shape(x, sizeof x, out->dims, out->rank));
  tn__shape wanted;
  tn__shape_set(&wanted, indices->dims, indices->rank - 1);
  bool fits = true;
  for (int32_t d = (int32_t)depth; d < out->rank; d++) fits = fits && tn__shape_append(&wanted, out->dims[d]);
  tn__shape both = wanted;
  if (fits && tn__shape_merge(&both, updates->dims, updates->rank)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has shape %s, wanted %s", op, u,
                      tn__format_shape(x, sizeof x, updates->dims, updates->rank),
                      tn__format_shape(y, sizeof y, wanted.dims, wanted.rank));
}

static tn_status check_inputs(const tn_prepare_ctx *ctx, const tn__shape *out, uint32_t i, uint32_t u, tn_error *err)
{
  const tn_view *x = &ctx->inputs[i], *up = &ctx->inputs[u];
  const char *op = tn_operation_type(ctx->op);
  tn__shape indices, updates;
  tn__shape_set(&indices, x->dims, x->rank);
  tn__shape_set(&updates, up->dims, up->rank);
  tn_status st = tn__want_rank_at_least(ctx, i, 1, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, u, 1, err);
  if (st != TN_OK) return st;
  bool empty = x->count == 0;
  for (int32_t d = 0; d < out->rank; d++) empty = empty || out->dims[d] == 0;
  if (out->rank < 1 || (empty && (x->count > 0 || up->count > 0)))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s", op,
                        out->rank < 1 ? "the output is a scalar, wanted rank 1 or more"
                                      : "the output or the indices have no elements, but there are updates or indices");
  return check_updates(op, out, &indices, i, &updates, u, err);
}

static double cost_of(const tn_view *updates, const tn_view *out)
{
  return 50 + 2 * (double)updates->count + 0.1 * (double)out->count;
}

/* tensor, indices, updates. */
static tn_status tensor_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__shape out;
  tn__shape_set(&out, in->dims, in->rank);
  tn_status st = check_inputs(ctx, &out, 1, 2, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  ctx->cost_ns = cost_of(&ctx->inputs[2], in);
  return st != TN_OK || in->dtype == TN_STRING ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

/* indices, updates, shape. */
static tn_status zeros_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *sizes = &ctx->inputs[2];
  const char *op = tn_operation_type(ctx->op);
  tn_status st = tn__want_rank(ctx, 2, 1, err);
  if (st != TN_OK) return st;
  if (sizes->count > TN_MAX_RANK || (sizes->count > 0 && sizes->data == NULL))
    return sizes->count > TN_MAX_RANK
               ? tn_error_set(err, TN_INVALID_ARGUMENT, "%s: more than %d dimensions are wanted", op, TN_MAX_RANK)
               : tn_error_set(err, TN_INTERNAL, "%s: the value of input 2 is not known", op);
  tn__shape out = { .rank = (int32_t)sizes->count };
  for (int32_t d = 0; d < out.rank; d++) {
    out.dims[d] = tn__index_at(sizes, d);
    if (out.dims[d] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: size %d of the shape wanted is %lld", op, (int)d,
                          (long long)out.dims[d]);
  }
  st = check_inputs(ctx, &out, 0, 1, err);
  ctx->cost_ns = cost_of(&ctx->inputs[1], &ctx->inputs[1]);
  return st != TN_OK ? st : tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

/* ---- compute ---- */

static tn_status append_string(tn_string *to, const tn_string *more, tn_error *err)
{
  size_t n, m;
  const char *text = tn_string_data(to, &n), *tail = tn_string_data(more, &m);
  if (n == 0) return tn_string_set(to, tail, m, err);
  tn_string both;
  memset(&both, 0, sizeof both);
  char *room = m <= SIZE_MAX / 2 - n ? tn__string_reserve(&both, n + m) : NULL;
  if (room == NULL) return tn__no_memory(err, "a string element", n);
  memcpy(room, text, n);
  if (m > 0) memcpy(room + n, tail, m);
  tn_string_clear(to);
  *to = both;
  return TN_OK;
}

/* n elements of updates to their place. */
static tn_status put(tn_kernel_ctx *ctx, const scatter_state *s, char *to, const char *from, int64_t n)
{
  tn_dtype dtype = ctx->outputs[0]->dtype;
  tn_status st = TN_OK;
  if (s->fn != NULL)
    s->fn(to, from, n);
  else if (!s->append)
    st = tn__copy_elements(dtype, to, from, n, ctx->err);
  else
    for (int64_t i = 0; st == TN_OK && i < n; i++)
      st = append_string((tn_string *)(void *)to + i, (const tn_string *)(const void *)from + i, ctx->err);
  return st;
}

static tn_status start(tn_kernel_ctx *ctx, const scatter_state *s)
{
  tn_view *out = ctx->outputs[0];
  const tn_view *in = ctx->inputs[0];
  if (out->count == 0 || (!s->from_zeros && in->data == out->data)) return TN_OK;
  if (!s->from_zeros) return tn__copy_elements(out->dtype, out->data, in->data, out->count, ctx->err);
  if (!tn__dtype_is_managed(out->dtype)) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  return TN_OK;
}

static tn_status scatter_compute(tn_kernel_ctx *ctx)
{
  const scatter_state *s = ctx->state;
  const tn_view *indices = ctx->inputs[s->from_zeros ? 0 : 1], *updates = ctx->inputs[s->from_zeros ? 1 : 2];
  tn_view *out = ctx->outputs[0];
  tn__index_space space;
  tn__space_init(&space, indices, out->dims);
  if (!s->ignore_bad && updates->count > 0 && tn__space_find_bad(&space) >= 0) return tn__space_error(&space, ctx->err);
  tn_status st = start(ctx, s);
  if (st != TN_OK || updates->count == 0) return st;
  int64_t piece = updates->count / space.n, places[TN__INDEX_BLOCK];
  size_t bytes = (size_t)piece * tn_dtype_size(out->dtype);
  const char *from = updates->data;
  char *to = out->data;
  for (int64_t k = 0, n; k < space.n; k += n) {
    n = space.n - k < TN__INDEX_BLOCK ? space.n - k : TN__INDEX_BLOCK;
    tn__space_places(&space, k, n, places);
    for (int64_t i = 0; st == TN_OK && i < n; i++)
      if (places[i] >= 0)
        st = put(ctx, s, to + (size_t)places[i] * bytes, from + (size_t)(k + i) * bytes, piece);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* ---- shape functions ---- */

static tn_status infer_checked(tn_infer_ctx *ctx, const tn__shape *out, size_t i, size_t u, tn_error *err)
{
  tn__shape indices, updates;
  tn_status st = tn__infer_rank_at_least(ctx, i, 1, &indices, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, u, 1, &updates, err);
  if (st == TN_OK) st = check_updates(tn__infer_op(ctx), out, &indices, (uint32_t)i, &updates, (uint32_t)u, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, out, err);
}

static tn_status infer_tensor(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape out;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &out, err);
  return st != TN_OK ? st : infer_checked(ctx, &out, 1, 2, err);
}

static tn_status infer_zeros(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape out, sizes;
  tn_status st = tn__infer_rank(ctx, 2, 1, &sizes, err);
  if (st != TN_OK) return st;
  out.rank = tn_infer_input_as_shape(ctx, 2, out.dims);
  return infer_checked(ctx, &out, 0, 1, err);
}

/* ---- tables ---- */

#define OP(op, in, attributes, operands, shapes, text)                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes,   \
    .shape_operands = operands, .infer = shapes, .summary = text }
#define POLICY "; bad_indices_policy: string = ''"
#define TENSOR(op, text)                                                                                     \
  OP(op, "tensor: T, indices: Tindices, updates: T", "T: type; Tindices: {int32, int64}" POLICY, 0, infer_tensor, text)

static const tn_op_def ops[] = {
  OP("ScatterNd", "indices: Tindices, updates: T, shape: Tindices",
     "T: type; Tindices: {int16, int32, int64}" POLICY, 1u << 2, infer_zeros, "updates added to zeros at indices"),
  OP("ScatterNdNonAliasingAdd", "input: T, indices: Tindices, updates: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64, bool}; Tindices: {int32, int64}" POLICY, 0, infer_tensor,
     "updates added to a tensor at indices"),
  TENSOR("TensorScatterAdd", "updates added to a tensor at indices"),
  TENSOR("TensorScatterMax", "the larger of a tensor and of updates at indices"),
  TENSOR("TensorScatterMin", "the smaller of a tensor and of updates at indices"),
  TENSOR("TensorScatterSub", "updates taken from a tensor at indices"),
  OP("TensorScatterUpdate", "tensor: T, indices: Tindices, updates: T",
     "T: type; Tindices: {int16, int32, int64, uint16}" POLICY, 0, infer_tensor, "a tensor with updates at indices"),
};

#define REALS "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64"
#define NUMBERS REALS "|complex64|complex128"
#define KERNEL(which, constraint, title, create_fn, prepare_fn)                                             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,    \
    .rank = TN_RANK_C, .create = create_fn##_create, .destroy = scatter_destroy, .prepare = prepare_fn,     \
    .compute = scatter_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("ScatterNd", NUMBERS "|bool|string", "scatter_nd_cpu", zeros_add, zeros_prepare),
  KERNEL("ScatterNdNonAliasingAdd", NUMBERS "|bool", "scatter_nd_non_aliasing_add_cpu", add, tensor_prepare),
  KERNEL("TensorScatterAdd", NUMBERS, "tensor_scatter_add_cpu", add, tensor_prepare),
  KERNEL("TensorScatterMax", REALS, "tensor_scatter_max_cpu", max, tensor_prepare),
  KERNEL("TensorScatterMin", REALS, "tensor_scatter_min_cpu", min, tensor_prepare),
  KERNEL("TensorScatterSub", NUMBERS, "tensor_scatter_sub_cpu", sub, tensor_prepare),
  KERNEL("TensorScatterUpdate", NUMBERS "|bool|string", "tensor_scatter_update_cpu", update, tensor_prepare),
};

extern const tn_op_family tn__ops_scatter;
const tn_op_family tn__ops_scatter = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "scatter",
  .ops = ops,
  .n_ops = sizeof ops / sizeof ops[0],
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof kernels[0],
};
