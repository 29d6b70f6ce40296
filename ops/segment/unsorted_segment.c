/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of the rows of a tensor by segment ids in any order: UnsortedSegmentSum UnsortedSegmentProd
 * UnsortedSegmentMax UnsortedSegmentMin. Rows with a negative id are dropped. A row of the output is reduced in the
 * order of the ids, whatever the number of threads: parts of the work are ranges of rows of the output, each of which
 * reads all ids. */
#include <core/base/text.h>
#include <float.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>

/* ---- loops ---- */

/* As in TensorFlow, x replaces a if x is NaN or a is NaN. */
#define STEP_sum(a, x) ((a) + (x))
#define STEP_prod(a, x) TN__MUL(a, x)
#define STEP_max(a, x) ((x) < (a) ? (a) : (x))
#define STEP_min(a, x) ((a) < (x) ? (a) : (x))

#define START_sum(d) 0
#define START_prod(d) 1
#define START_max(d) LOWEST_##d
#define START_min(d) HIGHEST_##d
#define LOWEST_f32 (-FLT_MAX)
#define LOWEST_f64 (-DBL_MAX)
#define LOWEST_f16 (-65504.0f)
#define LOWEST_bf16 (-0x1.fep127f)
#define LOWEST_i8 INT8_MIN
#define LOWEST_i16 INT16_MIN
#define LOWEST_i32 INT32_MIN
#define LOWEST_i64 INT64_MIN
#define LOWEST_u8 0
#define LOWEST_u16 0
#define LOWEST_u32 0
#define LOWEST_u64 0
#define HIGHEST_f32 FLT_MAX
#define HIGHEST_f64 DBL_MAX
#define HIGHEST_f16 65504.0f
#define HIGHEST_bf16 0x1.fep127f
#define HIGHEST_i8 INT8_MAX
#define HIGHEST_i16 INT16_MAX
#define HIGHEST_i32 INT32_MAX
#define HIGHEST_i64 INT64_MAX
#define HIGHEST_u8 UINT8_MAX
#define HIGHEST_u16 UINT16_MAX
#define HIGHEST_u32 UINT32_MAX
#define HIGHEST_u64 UINT64_MAX

/* Reduces `rows` rows of n elements into out: row r into row ids[r], if that is in [low, high). */
typedef void (*add_fn)(void *out, const void *in, const int64_t *ids, int64_t rows, int64_t n, int64_t low,
                       int64_t high);

#define LOOP(op, d, unused)                                                                                \
  static void op##_##d(void *out_, const void *in_, const int64_t *ids, int64_t rows, int64_t n,           \
                       int64_t low, int64_t high)                                                          \
  {                                                                                                        \
    tn__S_##d *out = out_;                                                                                 \
    const tn__S_##d *in = in_;                                                                             \
    for (int64_t r = 0; r < rows; r++) {                                                                   \
      if (ids[r] < low || ids[r] >= high) continue;                                                        \
      tn__S_##d *restrict to = out + ids[r] * n;                                                           \
      const tn__S_##d *from = in + r * n;                                                                  \
      for (int64_t j = 0; j < n; j++) {                                                                    \
        tn__C_##d a = TN__L_##d(to[j]), x = TN__L_##d(from[j]);                                            \
        to[j] = TN__P_##d(STEP_##op(a, x));                                                                \
      }                                                                                                    \
    }                                                                                                      \
  }                                                                                                        \
  static void op##_start_##d(void *out) { *(tn__S_##d *)out = TN__P_##d((tn__C_##d)START_##op(d)); }

#define NUMBERS(X, op) TN__SAME_FLOATS_COMPLEXES(X, op) TN__WRAP_SIGNED(X, op)
#define ORDERED(X, op) TN__SAME_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
NUMBERS(LOOP, sum)
NUMBERS(LOOP, prod)
ORDERED(LOOP, max)
ORDERED(LOOP, min)

typedef struct loop {
  tn_dtype dtype, twin; /* twin: the unsigned dtype with the same wrapping arithmetic, or the dtype itself */
  add_fn add;
  void (*start)(void *out); /* stores the result of no rows */
} loop;

/* ---- the kernel ---- */

static tn_status create(const tn_operation *op, const loop *loops, size_t n, void **state, tn_error *err)
{
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  *state = NULL;
  for (size_t i = 0; i < n; i++) {
    if (loops[i].dtype != dtype && loops[i].twin != dtype) continue;
    *state = (void *)&loops[i]; /* only read through it */
    return TN_OK;
  }
  return tn__no_kernel(err, op, dtype);
}

/* The output's shape: `segments` rows of the dimensions of data after those of the ids. */
static tn_status output_shape(const char *op, const tn__shape *data, const tn__shape *ids, int64_t segments,
                              tn__shape *out, tn_error *err)
{
  char x[160], y[160];
  tn__shape begin = *ids;
  tn__shape_unknown(out);
  if (data->rank < 0 || ids->rank < 0) return TN_OK;
  if (data->rank < ids->rank || !tn__shape_merge(&begin, data->dims, ids->rank))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: data of shape %s does not begin with the shape of the ids, %s",
                        op, tn__format_shape(x, sizeof x, data->dims, data->rank),
                        tn__format_shape(y, sizeof y, ids->dims, ids->rank));
  out->rank = 0;
  tn__shape_append(out, segments);
  for (int32_t d = ids->rank; d < data->rank; d++)
    if (!tn__shape_append(out, data->dims[d]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output would have more than %d dimensions", op,
                          TN_MAX_RANK);
  return TN_OK;
}

static tn_status bad_number(tn_error *err, const char *op, int64_t n)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld segments are wanted", op, (long long)n);
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *data = &ctx->inputs[0], *ids = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  tn__shape in, of, out;
  tn_status st = tn__want_rank(ctx, 2, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, 2, err);
  if (st != TN_OK) return st;
  int64_t n = tn__operand_int(&ctx->inputs[2], 0);
  if (n < 0) return bad_number(err, op, n);
  tn__shape_set(&in, data->dims, data->rank);
  tn__shape_set(&of, ids->dims, ids->rank);
  st = output_shape(op, &in, &of, n, &out, err);
  ctx->cost_ns = 50 + 3 * (double)ids->count + 0.6 * (double)data->count;
  ctx->shape_state = (void *)(uintptr_t)ctx->threads;
  return st == TN_OK ? tn_prepare_output(ctx, 0, out.dims, out.rank, err) : st;
}

static tn_status check_ids(const tn_kernel_ctx *ctx, const tn_view *ids, int64_t segments)
{
  int64_t block[TN__INDEX_BLOCK];
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t at = 0, n; at < ids->count; at += n) {
    n = ids->count - at < TN__INDEX_BLOCK ? ids->count - at : TN__INDEX_BLOCK;
    if (tn__poll_over(&poll, n)) return TN_CANCELLED;
    tn__indices_load(ids, at, n, block);
    for (int64_t i = 0; i < n; i++)
      if (block[i] >= segments)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "segment id %lld is %lld, wanted less than %lld",
                            (long long)(at + i), (long long)block[i], (long long)segments);
  }
  return TN_OK;
}

typedef struct unsorted_run {
  const loop *how;
  const tn_view *data, *ids;
  tn_view *out;
  int64_t rows, inner, part; /* rows of the output, their elements, rows per part */
  size_t size;
} unsorted_run;

static void unsorted_part(void *user, int64_t begin, int64_t end)
{
  const unsorted_run *r = user;
  int64_t low = begin * r->part, high = end * r->part < r->rows ? end * r->part : r->rows, block[TN__INDEX_BLOCK];
  _Alignas(16) char start[16];
  tn__poll poll = tn__poll_here();
  r->how->start(start);
  tn__fill_bytes(r->size, (char *)r->out->data + (size_t)(low * r->inner) * r->size, start, (high - low) * r->inner);
  for (int64_t at = 0, n; at < r->ids->count; at += n) {
    n = r->ids->count - at < TN__INDEX_BLOCK ? r->ids->count - at : TN__INDEX_BLOCK;
    if (tn__poll_over(&poll, n * (4 + r->inner / 4))) return;
    tn__indices_load(r->ids, at, n, block);
    r->how->add(r->out->data, (const char *)r->data->data + (size_t)(at * r->inner) * r->size, block, n, r->inner, low,
                high);
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn_view *data = ctx->inputs[0], *ids = ctx->inputs[1];
  tn_view *out = ctx->outputs[0];
  tn_status st = data->count == 0 ? TN_OK : check_ids(ctx, ids, out->dims[0]);
  if (st != TN_OK || out->count == 0) return st;
  unsorted_run r = { ctx->state, data, ids, out, out->dims[0], out->count / out->dims[0], out->dims[0],
                     tn_dtype_size(data->dtype) };
  double work = (double)data->count * 0.5 + (double)out->count * 0.1, reading = 2 * (double)ids->count;
  int64_t parts = (int64_t)(uintptr_t)ctx->shape_state; /* a part for each thread */
  if (parts < 1 || work < 100000 || work < 4 * reading) parts = 1;
  if (parts > r.rows) parts = r.rows;
  r.part = (r.rows + parts - 1) / parts;
  parts = (r.rows + r.part - 1) / r.part;
  if (parts == 1) unsorted_part(&r, 0, 1);
  else tn_parallel_for(ctx, parts, 1, reading + work / (double)parts, unsorted_part, &r);
  return TN_OK;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape data, ids, scalar, out;
  const int64_t *number;
  tn__infer_get(ctx, 0, &data);
  tn__infer_get(ctx, 1, &ids);
  tn_status st = tn__infer_rank(ctx, 2, 0, &scalar, err);
  if (st != TN_OK) return st;
  int64_t n = tn_infer_input_ints(ctx, 2, &number) == 1 && number[0] != TN_UNKNOWN_INT ? number[0] : -1;
  if (n < -1) return bad_number(err, tn__infer_op(ctx), n);
  st = output_shape(tn__infer_op(ctx), &data, &ids, n, &out, err);
  return st == TN_OK ? tn__infer_set(ctx, 0, &out, err) : st;
}

/* ---- tables ---- */

#define ENTRY(op, d, unused) { TN__D_##d, TN__TWIN_##d, op##_##d, op##_start_##d },
#define CREATE(op, TYPES)                                                              \
  static tn_status op##_create(const tn_operation *node, void **state, tn_error *err)  \
  {                                                                                    \
    static const loop loops[] = { TYPES(ENTRY, op) };                                  \
    return create(node, loops, sizeof loops / sizeof loops[0], state, err);            \
  }
CREATE(sum, NUMBERS)
CREATE(prod, NUMBERS)
CREATE(max, ORDERED)
CREATE(min, ORDERED)

#define OP(op, types, ids, text)                                                                               \
  { .struct_size = TN_OP_DEF_SIZE, .name = op,                                                                 \
    .inputs = "data: T, segment_ids: Tindices, num_segments: Tnumsegments", .outputs = "output: T",            \
    .attrs = "T: " types "; Tindices: {" ids "int32, int64}; Tnumsegments: {int32, int64} = int32",            \
    .shape_operands = 1u << 2, .infer = infer, .summary = text }
#define T_NUMBERS "{numbertype, qint16, quint16}"

static const tn_op_def ops[] = {
  OP("UnsortedSegmentMax", "realnumbertype", "", "maximum of the rows with each id"),
  OP("UnsortedSegmentMin", "realnumbertype", "", "minimum of the rows with each id"),
  OP("UnsortedSegmentProd", T_NUMBERS, "", "product of the rows with each id"),
  OP("UnsortedSegmentSum", T_NUMBERS, "int16, ", "sum of the rows with each id"),
};

#define KERNEL(which, constraint, title, fn)                                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,  \
    .rank = TN_RANK_C, .create = fn, .prepare = prepare, .compute = compute }
#define NUMBER_TYPES                                                                                            \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128"

static const tn_kernel_def kernels[] = {
  KERNEL("UnsortedSegmentMax", NULL, "unsorted_segment_max_cpu", max_create),
  KERNEL("UnsortedSegmentMin", NULL, "unsorted_segment_min_cpu", min_create),
  KERNEL("UnsortedSegmentProd", NUMBER_TYPES, "unsorted_segment_prod_cpu", prod_create),
  KERNEL("UnsortedSegmentSum", NUMBER_TYPES, "unsorted_segment_sum_cpu", sum_create),
};

TN_OP_FAMILY(unsorted_segment)
