/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of numbers: Range LinSpace. */
#include <core/base/text.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

#define TOO_MANY (INT64_C(1) << 62)

/* ---- Range: how many ---- */

/* A number as given: an integer of either sign, or a double. */
typedef struct number {
  bool integer;
  int64_t i;  /* the bits of a uint64 */
  double d;
} number;

static number number_at(tn_dtype dtype, const void *data)
{
  switch (dtype) {
  case TN_INT8: return (number){ true, *(const int8_t *)data, 0 };
  case TN_INT16: return (number){ true, *(const int16_t *)data, 0 };
  case TN_UINT16: return (number){ true, *(const uint16_t *)data, 0 };
  case TN_INT32: return (number){ true, *(const int32_t *)data, 0 };
  case TN_UINT32: return (number){ true, *(const uint32_t *)data, 0 };
  case TN_INT64:
  case TN_UINT64: return (number){ true, *(const int64_t *)data, 0 };
  case TN_HALF: return (number){ false, 0, tn__half_to_float(*(const uint16_t *)data) };
  case TN_BFLOAT16: return (number){ false, 0, tn__bfloat16_to_float(*(const uint16_t *)data) };
  case TN_FLOAT: return (number){ false, 0, *(const float *)data };
  default: return (number){ false, 0, *(const double *)data };
  }
}

static tn_status wrong_way(tn_error *err, const char *op)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: start (input 0) is beyond limit (input 1) in the direction of delta (input 2)", op);
}

static tn_status zero_delta(tn_error *err, const char *op)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: delta (input 2) is 0", op);
}

static tn_status too_many(tn_error *err, const char *op)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: start, limit and delta ask for too many elements", op);
}

static tn_status range_float_length(const char *op, double start, double limit, double delta, bool single, int64_t *n,
                                    tn_error *err)
{
  if (delta == 0) return zero_delta(err, op);
  if (!(delta > 0 ? start <= limit : start >= limit)) return wrong_way(err, op);
  /* Computed in the operands' own type, in which a quotient that should be whole is whole. */
  double size = single ? ceilf(fabsf(((float)limit - (float)start) / (float)delta))
                       : ceil(fabs((limit - start) / delta));
  if (!(size < (double)TOO_MANY)) return too_many(err, op);
  *n = (int64_t)size;
  return TN_OK;
}

static tn_status range_length(const char *op, tn_dtype dtype, const void *start, const void *limit, const void *delta,
                              int64_t *n, tn_error *err)
{
  number a = number_at(dtype, start), b = number_at(dtype, limit), d = number_at(dtype, delta);
  *n = 0;
  if (!a.integer) return range_float_length(op, a.d, b.d, d.d, dtype != TN_DOUBLE, n, err);
  if (d.i == 0) return zero_delta(err, op);
  bool natural = dtype == TN_UINT64, up = natural || d.i > 0;
  bool ordered = up ? a.i <= b.i : a.i >= b.i;
  if (natural) ordered = (uint64_t)a.i <= (uint64_t)b.i;
  if (!ordered) return wrong_way(err, op);
  uint64_t way = up ? (uint64_t)b.i - (uint64_t)a.i : (uint64_t)a.i - (uint64_t)b.i;
  uint64_t step = up ? (uint64_t)d.i : 0 - (uint64_t)d.i;
  uint64_t size = way / step + (way % step != 0);
  if (size >= (uint64_t)TOO_MANY) return too_many(err, op);
  *n = (int64_t)size;
  return TN_OK;
}

/* Old graphs pass a vector of one element instead of a scalar. */
static tn_status want_number(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  if (v->rank > 1 || v->count != 1) return tn__want_rank(ctx, i, 0, err);
  if (v->data != NULL) return TN_OK;
  return tn_error_set(err, TN_INTERNAL, "%s: the value of input %u is not known", tn_operation_type(ctx->op), i);
}

static tn_status range_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = ctx->inputs;
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < 3; i++) st = want_number(ctx, i, err);
  int64_t n = 0;
  if (st == TN_OK)
    st = range_length(tn_operation_type(ctx->op), in[0].dtype, in[0].data, in[1].data, in[2].data, &n, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = 10 + 0.5 * (double)n;
  return tn_prepare_output(ctx, 0, &n, 1, err);
}

/* ---- Range: the elements ---- */

typedef struct range_run {
  const void *start, *delta;
  void *out;
} range_run;

/* Integers wrap: computed in the unsigned type U. */
#define RANGE_INTS(name, U)                                                          \
  static void range_##name(void *user, int64_t begin, int64_t end)                   \
  {                                                                                  \
    const range_run *r = user;                                                       \
    U start = *(const U *)r->start, delta = *(const U *)r->delta, *out = r->out;     \
    for (int64_t i = begin; i < end; i++) out[i] = (U)(start + (uint64_t)i * delta); \
  }
RANGE_INTS(8, uint8_t)
RANGE_INTS(16, uint16_t)
RANGE_INTS(32, uint32_t)
RANGE_INTS(64, uint64_t)

#define RANGE_FLOATS(name, T, S, load, store)                                               \
  static void range_##name(void *user, int64_t begin, int64_t end)                          \
  {                                                                                         \
    const range_run *r = user;                                                              \
    T start = load(*(const S *)r->start), delta = load(*(const S *)r->delta);               \
    S *out = r->out;                                                                        \
    for (int64_t i = begin; i < end; i++) out[i] = store(start + (T)i * delta);             \
  }
RANGE_FLOATS(f32, float, float, , )
RANGE_FLOATS(f64, double, double, , )
RANGE_FLOATS(f16, float, uint16_t, tn__half_to_float, tn__half_from_float)
RANGE_FLOATS(bf16, float, uint16_t, tn__bfloat16_to_float, tn__bfloat16_from_float)

typedef void (*range_fn)(void *user, int64_t begin, int64_t end);

static range_fn range_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return range_f32;
  case TN_DOUBLE: return range_f64;
  case TN_HALF: return range_f16;
  case TN_BFLOAT16: return range_bf16;
  default: break;
  }
  switch (tn_dtype_size(dtype)) {
  case 1: return range_8;
  case 2: return range_16;
  case 4: return range_32;
  default: return range_64;
  }
}

static tn_status range_compute(tn_kernel_ctx *ctx)
{
  tn_view *out = ctx->outputs[0];
  range_run r = { ctx->inputs[0]->data, ctx->inputs[2]->data, out->data };
  range_fn fn = range_of(out->dtype);
  if (out->count <= TN__SERIAL_ELEMENTS)
    fn(&r, 0, out->count);
  else
    tn_parallel_for(ctx, out->count, TN__SERIAL_ELEMENTS, 0.5, fn, &r);
  return TN_OK;
}

/* ---- Range: the shape function ---- */

static tn_status infer_number(const tn_infer_ctx *ctx, size_t i, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, i, &dims);
  if (rank <= 0 || (rank == 1 && (dims[0] < 0 || dims[0] == 1))) return TN_OK;
  tn__shape s;
  return tn__infer_rank(ctx, i, 0, &s, err);
}

/* The output's values are inferred if known: a range may be a list of axes or sizes. */
static tn_status infer_range_ints(tn_infer_ctx *ctx, const tn_tensor *start, const tn_tensor *delta, int64_t n,
                                  tn_error *err)
{
  int64_t items[TN_MAX_INFER_INTS];
  tn_dtype dtype = tn_tensor_dtype(start);
  if ((dtype != TN_INT32 && dtype != TN_INT64) || n > TN_MAX_INFER_INTS) return TN_OK;
  uint64_t a = (uint64_t)tn__tensor_int_at(start, 0), d = (uint64_t)tn__tensor_int_at(delta, 0);
  for (int64_t k = 0; k < n; k++) items[k] = (int64_t)(a + (uint64_t)k * d);
  return tn_infer_output_ints(ctx, 0, items, n, err);
}

static tn_status infer_range(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_tensor *v[3];
  int64_t n = -1;
  bool known = true;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < 3; i++) {
    st = infer_number(ctx, i, err);
    v[i] = tn_infer_input_value(ctx, i);
    known = known && v[i] != NULL && tn_tensor_elements(v[i]) == 1 && tn_tensor_data(v[i]) != NULL;
  }
  if (st == TN_OK && known)
    st = range_length(tn__infer_op(ctx), tn_tensor_dtype(v[0]), tn_tensor_data(v[0]), tn_tensor_data(v[1]),
                      tn_tensor_data(v[2]), &n, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 0, &n, 1, err);
  return st == TN_OK && known ? infer_range_ints(ctx, v[0], v[2], n, err) : st;
}

/* ---- LinSpace ---- */

static tn_status linspace_count(const char *op, int64_t n, tn_error *err)
{
  if (n > 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: num (input 2) is %lld, wanted at least 1", op, (long long)n);
}

static tn_status linspace_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const char *op = tn_operation_type(ctx->op);
  for (uint32_t i = 0; i < 3; i++) {
    tn_status st = tn__want_rank(ctx, i, 0, err);
    if (st != TN_OK) return st;
  }
  if (ctx->inputs[2].data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 2 is not known", op);
  int64_t n = tn__view_int_at(&ctx->inputs[2], 0);
  tn_status st = linspace_count(op, n, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = 10 + 0.5 * (double)n;
  return tn_prepare_output(ctx, 0, &n, 1, err);
}

/* The last element is `stop` itself. */
#define LINSPACE(name, T, S, load, store)                                                  \
  static void linspace_##name(const tn_view *const *in, tn_view *to)                       \
  {                                                                                        \
    T start = load(*(const S *)in[0]->data), stop = load(*(const S *)in[1]->data);         \
    int64_t last = to->count - 1;                                                          \
    S *out = to->data;                                                                     \
    T step = last > 0 ? (stop - start) / (T)last : 0;                                      \
    out[0] = *(const S *)in[0]->data;                                                      \
    for (int64_t i = 1; i < last; i++) out[i] = store(start + step * (T)i);                \
    if (last > 0) out[last] = *(const S *)in[1]->data;                                     \
  }
LINSPACE(f32, float, float, , )
LINSPACE(f64, double, double, , )
LINSPACE(f16, float, uint16_t, tn__half_to_float, tn__half_from_float)
LINSPACE(bf16, float, uint16_t, tn__bfloat16_to_float, tn__bfloat16_from_float)

static tn_status linspace_compute(tn_kernel_ctx *ctx)
{
  const tn_view *const *in = (const tn_view *const *)ctx->inputs;
  tn_view *out = ctx->outputs[0];
  switch (out->dtype) {
  case TN_FLOAT: linspace_f32(in, out); break;
  case TN_DOUBLE: linspace_f64(in, out); break;
  case TN_HALF: linspace_f16(in, out); break;
  default: linspace_bf16(in, out);
  }
  return TN_OK;
}

static tn_status infer_linspace(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < 3; i++) st = tn__infer_rank(ctx, i, 0, &s, err);
  const int64_t *items;
  int64_t n = -1;
  if (st == TN_OK && tn_infer_input_ints(ctx, 2, &items) == 1 && items[0] != TN_UNKNOWN_INT) {
    n = items[0];
    st = linspace_count(tn__infer_op(ctx), n, err);
  }
  return st != TN_OK ? st : tn_infer_output(ctx, 0, &n, 1, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "LinSpace", .inputs = "start: T, stop: T, num: Tidx", .outputs = "output: T",
    .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32", .shape_operands = 1u << 2,
    .infer = infer_linspace, .summary = "num evenly spaced numbers from start to stop" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "Range", .inputs = "start: Tidx, limit: Tidx, delta: Tidx",
    .outputs = "output: Tidx",
    .attrs = "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32",
    .shape_operands = 7u, .infer = infer_range,
    .summary = "numbers from start up to but excluding limit, in steps of delta" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "LinSpace", .device = "CPU", .name = "linspace_cpu", .rank = TN_RANK_C,
    .prepare = linspace_prepare, .compute = linspace_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Range", .device = "CPU", .name = "range_cpu", .rank = TN_RANK_C,
    .prepare = range_prepare, .compute = range_compute },
};

TN_OP_FAMILY(range)
