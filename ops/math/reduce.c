/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes: All Any EuclideanNorm Max Mean Min Prod Sum, and ArgMax ArgMin along one axis. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/reduce/reduce_plan.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* ---- axes ---- */

/* Marks an axis as reduced. Each axis may be named at most once. */
static tn_status mark_axis(const char *op, int64_t axis, int32_t rank, bool *reduced, tn_error *err)
{
  int32_t i;
  tn_status st = tn__shape_axis(op, axis, rank, &i, err);
  if (st != TN_OK) return st;
  if (reduced[i]) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: axis %lld is named twice", op, (long long)axis);
  reduced[i] = true;
  return TN_OK;
}

static void reduced_shape(tn__shape *s, const bool *reduced, bool keep_dims)
{
  int32_t n = 0;
  for (int32_t i = 0; i < s->rank; i++) {
    if (!reduced[i])
      s->dims[n++] = s->dims[i];
    else if (keep_dims)
      s->dims[n++] = 1;
  }
  s->rank = n;
}

static tn_status infer_reduce(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  bool keep_dims = tn__attr_bool(tn_infer_operation(ctx), "keep_dims", false);
  if (s.rank < 0) return tn__infer_set(ctx, 0, &s, err);
  const tn_tensor *axes = tn_infer_input_value(ctx, 1);
  if (axes == NULL) {
    for (int32_t i = 0; i < s.rank; i++) s.dims[i] = -1;
    if (!keep_dims) s.rank = -1;
    return tn__infer_set(ctx, 0, &s, err);
  }
  bool reduced[TN_MAX_RANK] = { false };
  for (int64_t k = 0; k < tn_tensor_elements(axes); k++) {
    tn_status st = mark_axis(tn__infer_op(ctx), tn__tensor_int_at(axes, k), s.rank, reduced, err);
    if (st != TN_OK) return st;
  }
  reduced_shape(&s, reduced, keep_dims);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- the kernel over axes ---- */

typedef struct reduce_state {
  const tn__reduce_loops *loops;
  bool keep_dims;
} reduce_state;

static tn_status reduce_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const names[] = { "Sum", "Prod", "Mean", "EuclideanNorm", "Max", "Min", "All", "Any" };
  *state = NULL;
  int which = 0;
  while (which < TN__REDUCE_ANY && strcmp(names[which], tn_operation_type(op)) != 0) which++;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  const tn__reduce_loops *loops = tn__reduce_loops_find((tn__reduce_op)which, dtype);
  if (loops == NULL) return tn__no_kernel(err, op, dtype);
  reduce_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "reduction", sizeof *s);
  s->loops = loops;
  s->keep_dims = tn__attr_bool(op, "keep_dims", false);
  *state = s;
  return TN_OK;
}

static void reduce_destroy(void *state) { tn__free(state, sizeof(reduce_state)); }

static bool has_zero(const int64_t *dims, int32_t rank)
{
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] == 0) return true;
  return false;
}

static tn_status reduce_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const reduce_state *state = ctx->state;
  const tn_view *in = &ctx->inputs[0], *axes = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  bool reduced[TN_MAX_RANK] = { false };
  if (axes->count > 0 && axes->data == NULL) return tn_error_set(err, TN_INTERNAL, "%s: the axes are not known", op);
  for (int64_t k = 0; k < axes->count; k++) {
    tn_status st = mark_axis(op, tn__view_int_at(axes, k), in->rank, reduced, err);
    if (st != TN_OK) return st;
  }
  tn__shape s;
  tn__shape_set(&s, in->dims, in->rank);
  reduced_shape(&s, reduced, state->keep_dims);
  tn_status st = tn_prepare_output(ctx, 0, s.dims, s.rank, err);
  if (st != TN_OK) return st;
  bool nothing_gone = true;
  for (int32_t i = 0; i < in->rank; i++) nothing_gone &= !reduced[i] || in->dims[i] == 1;
  /* The reduction of a single element is that element, except for the norm, which is its magnitude. */
  if (nothing_gone && state->loops->op != TN__REDUCE_NORM) return tn_prepare_view(ctx, 0, 0, err);
  if (has_zero(in->dims, in->rank)) return TN_OK; /* no elements to reduce: compute fills the results, if any */
  tn__reduce_plan *plan = tn__reduce_plan_create(state->loops, in->dims, in->rank, reduced);
  if (plan == NULL) return tn__no_memory(err, "reduction plan", sizeof *plan);
  ctx->shape_state = plan;
  ctx->scratch_bytes = tn__reduce_plan_scratch(plan);
  ctx->cost_ns = 50 + tn__reduce_plan_cost(plan);
  return TN_OK;
}

static void reduce_destroy_plan(void *plan) { tn__reduce_plan_destroy(plan); }

static void fill_empty(const tn__reduce_loops *loops, tn_view *out)
{
  _Alignas(16) char acc[64 * TN__REDUCE_ACC_MAX];
  size_t element = tn_dtype_size(loops->dtype);
  loops->init(acc, 64);
  for (int64_t i = 0; i < out->count; i += 64)
    loops->finish((char *)out->data + (size_t)i * element, acc, out->count - i < 64 ? out->count - i : 64, 0);
}

static tn_status reduce_compute(tn_kernel_ctx *ctx)
{
  const reduce_state *state = ctx->state;
  if (ctx->shape_state == NULL)
    fill_empty(state->loops, ctx->outputs[0]);
  else
    tn__reduce_plan_run(ctx->shape_state, ctx, ctx->inputs[0]->data, ctx->outputs[0]->data);
  return TN_OK;
}

/* ---- ArgMax and ArgMin ---- */

static tn_status infer_arg(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, axis;
  tn_status st = tn__infer_rank(ctx, 1, 0, &axis, err);
  if (st != TN_OK) return st;
  tn__infer_get(ctx, 0, &s);
  if (s.rank <= 0) {
    if (s.rank == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 is a scalar and has no axis", tn__infer_op(ctx));
    return tn__infer_set(ctx, 0, &s, err);
  }
  const tn_tensor *value = tn_infer_input_value(ctx, 1);
  bool reduced[TN_MAX_RANK] = { false };
  if (value == NULL) {
    for (int32_t i = 0; i < s.rank; i++) s.dims[i] = -1;
    s.rank--;
    return tn__infer_set(ctx, 0, &s, err);
  }
  bool is_short = tn_tensor_dtype(value) == TN_INT16;
  int64_t a = is_short ? *(const int16_t *)tn_tensor_data(value) : tn__tensor_int_at(value, 0);
  st = mark_axis(tn__infer_op(ctx), a, s.rank, reduced, err);
  if (st != TN_OK) return st;
  reduced_shape(&s, reduced, false);
  return tn__infer_set(ctx, 0, &s, err);
}

/* Results [begin, end) of an array outer x n x inner: the index of the best element of each column, the first one among
 * equals. A NaN is never better. Columns are processed in blocks, so that memory is read in order. */
#define ARG_BLOCK 128
#define ARG(name, T, E, LOAD, BETTER, WORST)                                                                     \
  static void arg_##name(const void *data, int64_t n, int64_t inner, int64_t begin, int64_t end, int64_t *where) \
  {                                                                                                              \
    E best[ARG_BLOCK];                                                                                           \
    while (begin < end) {                                                                                        \
      int64_t o = begin / inner, j = begin % inner, w = inner - j;                                               \
      const T *in = (const T *)data + o * n * inner + j;                                                         \
      if (w > end - begin) w = end - begin;                                                                      \
      if (w > ARG_BLOCK) w = ARG_BLOCK;                                                                          \
      for (int64_t k = 0; k < w; k++) {                                                                          \
        best[k] = WORST;                                                                                         \
        where[k] = 0;                                                                                            \
      }                                                                                                          \
      for (int64_t i = 0; i < n; i++, in += inner) {                                                             \
        for (int64_t k = 0; k < w; k++) {                                                                        \
          E v = LOAD(in[k]);                                                                                     \
          bool better = v BETTER best[k];                                                                        \
          best[k] = better ? v : best[k];                                                                        \
          where[k] = better ? i : where[k];                                                                      \
        }                                                                                                        \
      }                                                                                                          \
      begin += w;                                                                                                \
      where += w;                                                                                                \
    }                                                                                                            \
  }

/* The same for frequent types. Indices are counted in integers of the size of an element, so that the loops vectorise;
 * long columns are therefore cut into stretches. A contiguous column is processed in lanes. */
#define ARG_LANES 32
#define ARG_STRETCH (INT64_C(1) << 25) /* indices within the lanes stay in range of int32_t */
#define NOWHERE INT32_MAX

#define ARG_FOR(T, BETTER, at, count)                           \
  for (int64_t k = 0; k < (count); k++) {                       \
    T v = in[k];                                                \
    where[k] = v BETTER best[k] ? (int32_t)(at) : where[k];     \
    best[k] = v BETTER best[k] ? v : best[k];                   \
  }
/* walk: n rows of w elements, `inner` apart. lanes: n adjacent rows of ARG_LANES elements. */
#define ARG_WALK(name, T, BETTER)                                                                                \
  TN__APART static void walk_##name(const T *restrict in, int64_t n, int64_t inner, int64_t w, T *restrict best, \
                                    int32_t *restrict where)                                                     \
  {                                                                                                              \
    for (int64_t i = 0; i < n; i++, in += inner) {                                                               \
      ARG_FOR(T, BETTER, i, w)                                                                                   \
    }                                                                                                            \
  }                                                                                                              \
  TN__APART static void lanes_##name(const T *restrict in, int64_t n, T *restrict best, int32_t *restrict where) \
  {                                                                                                              \
    for (int64_t i = 0; i < n; i++, in += ARG_LANES) {                                                           \
      ARG_FOR(T, BETTER, i * ARG_LANES + k, ARG_LANES)                                                           \
    }                                                                                                            \
  }
#define ARG_WALK_WIDE(name, T, BETTER, end, attribute)                                                           \
  attribute static void walk_##name##_##end(const T *restrict in, int64_t n, int64_t inner, int64_t w,           \
                                            T *restrict best, int32_t *restrict where)                           \
  {                                                                                                              \
    int64_t whole = w & -INT64_C(16);                                                                            \
    if (whole < w) walk_##name(in + whole, n, inner, w - whole, best + whole, where + whole);                    \
    for (int64_t i = 0; i < n && whole > 0; i++, in += inner) {                                                  \
      ARG_FOR(T, BETTER, i, whole)                                                                               \
    }                                                                                                            \
  }                                                                                                              \
  attribute static void lanes_##name##_##end(const T *restrict in, int64_t n, T *restrict best,                  \
                                             int32_t *restrict where)                                            \
  {                                                                                                              \
    for (int64_t i = 0; i < n; i++, in += ARG_LANES) {                                                           \
      ARG_FOR(T, BETTER, i * ARG_LANES + k, ARG_LANES)                                                           \
    }                                                                                                            \
  }
#define WIDE_ARG(name, T, BETTER, WORST)                                                                         \
  ARG_WALK(name, T, BETTER)                                                                                      \
  TN__WIDE_LOOPS(ARG_WALK_WIDE, name, T, BETTER)                                                                 \
  static int64_t row_##name(const T *in, int64_t n)                                                              \
  {                                                                                                              \
    static void (*const lanes[])(const T *, int64_t, T *, int32_t *) = TN__FNS(lanes_##name);                    \
    T best = WORST, lane[ARG_LANES];                                                                             \
    int32_t place[ARG_LANES];                                                                                    \
    int64_t where = 0, i = 0;                                                                                    \
    for (int64_t steps; n - i >= ARG_LANES; i += steps * ARG_LANES) {                                            \
      steps = (n - i) / ARG_LANES < ARG_STRETCH ? (n - i) / ARG_LANES : ARG_STRETCH;                             \
      for (int l = 0; l < ARG_LANES; l++) lane[l] = best, place[l] = NOWHERE;                                    \
      lanes[tn__vectors()](in + i, steps, lane, place);                                                          \
      for (int half = ARG_LANES / 2; half > 0; half /= 2)                                                        \
        for (int l = 0; l < half; l++) {                                                                         \
          bool other = (lane[l + half] BETTER lane[l]) |                                                         \
                       ((lane[l + half] == lane[l]) & (place[l + half] < place[l]));                             \
          lane[l] = other ? lane[l + half] : lane[l];                                                            \
          place[l] = other ? place[l + half] : place[l];                                                         \
        }                                                                                                        \
      where = lane[0] BETTER best ? i + place[0] : where;                                                        \
      best = lane[0];                                                                                            \
    }                                                                                                            \
    for (; i < n; i++) {                                                                                         \
      where = in[i] BETTER best ? i : where;                                                                     \
      best = in[i] BETTER best ? in[i] : best;                                                                   \
    }                                                                                                            \
    return where;                                                                                                \
  }                                                                                                              \
  static void arg_##name(const void *data, int64_t n, int64_t inner, int64_t begin, int64_t end, int64_t *where) \
  {                                                                                                              \
    static void (*const walk[])(const T *, int64_t, int64_t, int64_t, T *, int32_t *) = TN__FNS(walk_##name);    \
    T best[ARG_BLOCK];                                                                                           \
    int32_t place[ARG_BLOCK];                                                                                    \
    for (int64_t w; begin < end; begin += w, where += w) {                                                       \
      int64_t o = begin / inner, j = begin % inner;                                                              \
      const T *in = (const T *)data + o * n * inner + j;                                                         \
      w = inner - j < end - begin ? inner - j : end - begin;                                                     \
      if (w > ARG_BLOCK) w = ARG_BLOCK;                                                                          \
      if (inner == 1) {                                                                                          \
        where[0] = row_##name(in, n);                                                                            \
        continue;                                                                                                \
      }                                                                                                          \
      for (int64_t k = 0; k < w; k++) best[k] = WORST, where[k] = 0;                                             \
      for (int64_t i = 0, rows; i < n; i += rows) {                                                              \
        rows = n - i < ARG_STRETCH ? n - i : ARG_STRETCH;                                                        \
        for (int64_t k = 0; k < w; k++) place[k] = NOWHERE;                                                      \
        walk[tn__vectors()](in + i * inner, rows, inner, w, best, place);                                        \
        for (int64_t k = 0; k < w; k++) where[k] = place[k] == NOWHERE ? where[k] : i + place[k];                \
      }                                                                                                          \
    }                                                                                                            \
  }
#define SAME(x) (x)
#define ARGS(name, T, E, LOAD, LOWEST, HIGHEST) \
  ARG(max_##name, T, E, LOAD, >, LOWEST)        \
  ARG(min_##name, T, E, LOAD, <, HIGHEST)
WIDE_ARG(max_f32, float, >, -INFINITY)
WIDE_ARG(min_f32, float, <, INFINITY)
ARGS(f64, double, double, SAME, -(double)INFINITY, (double)INFINITY)
ARGS(f16, uint16_t, float, tn__half_to_float, -INFINITY, INFINITY)
ARGS(b16, uint16_t, float, tn__bfloat16_to_float, -INFINITY, INFINITY)
ARGS(i8, int8_t, int8_t, SAME, INT8_MIN, INT8_MAX)
ARGS(i16, int16_t, int16_t, SAME, INT16_MIN, INT16_MAX)
WIDE_ARG(max_i32, int32_t, >, INT32_MIN)
WIDE_ARG(min_i32, int32_t, <, INT32_MAX)
ARGS(i64, int64_t, int64_t, SAME, INT64_MIN, INT64_MAX)
ARGS(u8, uint8_t, uint8_t, SAME, 0, UINT8_MAX)
ARGS(u16, uint16_t, uint16_t, SAME, 0, UINT16_MAX)
ARGS(u32, uint32_t, uint32_t, SAME, 0, UINT32_MAX)
ARGS(u64, uint64_t, uint64_t, SAME, 0, UINT64_MAX)

typedef void (*arg_fn)(const void *data, int64_t n, int64_t inner, int64_t begin, int64_t end, int64_t *where);

static const struct {
  tn_dtype dtype;
  arg_fn max, min;
} arg_table[] = {
  { TN_FLOAT, arg_max_f32, arg_min_f32 },
  { TN_DOUBLE, arg_max_f64, arg_min_f64 },
  { TN_HALF, arg_max_f16, arg_min_f16 },
  { TN_BFLOAT16, arg_max_b16, arg_min_b16 },
  { TN_INT8, arg_max_i8, arg_min_i8 },
  { TN_INT16, arg_max_i16, arg_min_i16 },
  { TN_INT32, arg_max_i32, arg_min_i32 },
  { TN_INT64, arg_max_i64, arg_min_i64 },
  { TN_UINT8, arg_max_u8, arg_min_u8 },
  { TN_UINT16, arg_max_u16, arg_min_u16 },
  { TN_UINT32, arg_max_u32, arg_min_u32 },
  { TN_UINT64, arg_max_u64, arg_min_u64 },
  { TN_BOOL, arg_max_u8, arg_min_u8 },
};

typedef struct arg_state {
  arg_fn fn;
  tn_dtype out;
} arg_state;

typedef struct arg_plan {
  int64_t n, inner;
} arg_plan;

static tn_status arg_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  arg_fn fn = NULL;
  for (size_t i = 0; i < sizeof arg_table / sizeof arg_table[0]; i++)
    if (arg_table[i].dtype == dtype)
      fn = strcmp(tn_operation_type(op), "ArgMax") == 0 ? arg_table[i].max : arg_table[i].min;
  if (fn == NULL) return tn__no_kernel(err, op, dtype);
  arg_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "state of ArgMax", sizeof *s);
  s->fn = fn;
  s->out = tn_operation_output_dtype(op, 0);
  *state = s;
  return TN_OK;
}

static void arg_destroy(void *state) { tn__free(state, sizeof(arg_state)); }
static void arg_destroy_plan(void *plan) { tn__free(plan, sizeof(arg_plan)); }

static tn_status arg_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *axis = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  bool reduced[TN_MAX_RANK] = { false };
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  if (st != TN_OK) return st;
  if (axis->data == NULL) return tn_error_set(err, TN_INTERNAL, "%s: the axis is not known", op);
  int64_t value = axis->dtype == TN_INT16 ? *(const int16_t *)axis->data : tn__view_int_at(axis, 0);
  st = mark_axis(op, value, in->rank, reduced, err);
  if (st != TN_OK) return st;
  int64_t n = 0, inner = 1;
  for (int32_t i = in->rank - 1; i >= 0; i--) {
    if (reduced[i]) {
      n = in->dims[i];
      break;
    }
    if (in->count > 0) inner *= in->dims[i]; /* otherwise the product of sizes might overflow */
  }
  if (n == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has no elements along axis %lld", op, (long long)value);
  tn__shape s;
  tn__shape_set(&s, in->dims, in->rank);
  reduced_shape(&s, reduced, false);
  st = tn_prepare_output(ctx, 0, s.dims, s.rank, err);
  if (st != TN_OK) return st;
  arg_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "plan of ArgMax", sizeof *p);
  p->n = n;
  p->inner = inner;
  ctx->shape_state = p;
  ctx->cost_ns = 50 + (double)in->count * 0.7;
  return TN_OK;
}

typedef struct arg_run {
  const arg_state *state;
  const arg_plan *plan;
  const void *in;
  void *out;
} arg_run;

static void arg_store(const arg_run *r, int64_t at, const int64_t *where, int64_t n)
{
  if (r->state->out == TN_INT64) {
    memcpy((int64_t *)r->out + at, where, (size_t)n * sizeof *where);
  } else if (r->state->out == TN_INT32) {
    int32_t *out = (int32_t *)r->out + at;
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)where[i];
  } else { /* int16 and uint16: the low bits */
    uint16_t *out = (uint16_t *)r->out + at;
    for (int64_t i = 0; i < n; i++) out[i] = (uint16_t)where[i];
  }
}

static void arg_part(void *user, int64_t begin, int64_t end)
{
  const arg_run *r = user;
  int64_t where[ARG_BLOCK];
  for (int64_t at = begin; at < end; at += ARG_BLOCK) {
    int64_t n = end - at < ARG_BLOCK ? end - at : ARG_BLOCK;
    r->state->fn(r->in, r->plan->n, r->plan->inner, at, at + n, where);
    arg_store(r, at, where, n);
  }
}

static tn_status arg_compute(tn_kernel_ctx *ctx)
{
  arg_run r = { ctx->state, ctx->shape_state, ctx->inputs[0]->data, ctx->outputs[0]->data };
  int64_t outs = ctx->outputs[0]->count;
  if (ctx->inputs[0]->count <= TN__SERIAL_ELEMENTS)
    arg_part(&r, 0, outs);
  else
    tn_parallel_for(ctx, outs, TN__SERIAL_ELEMENTS / r.plan->n + 1, (double)r.plan->n * 0.7, arg_part, &r);
  return TN_OK;
}

/* ---- tables ---- */

#define NUMBERS                                                                                                     \
  "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, " \
  "uint16, complex128, half, uint32, uint64}"
#define REAL_NUMBERS                                                                                                  \
  "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, " \
  "qint16, quint16}"
#define ARG_INPUTS                                                                                                    \
  "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, " \
  "qint16, quint16, bool}"
#define REDUCE_OP(op, set, text)                                                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: T, reduction_indices: Tidx", .outputs = "output: T", \
    .attrs = "keep_dims: bool = false; T: " set "; Tidx: {int32, int64} = int32", .shape_operands = 1u << 1,          \
    .infer = infer_reduce, .summary = text }
#define TRUTH_OP(op, text)                                                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: bool, reduction_indices: Tidx", \
    .outputs = "output: bool", .attrs = "keep_dims: bool = false; Tidx: {int32, int64} = int32", \
    .shape_operands = 1u << 1, .infer = infer_reduce, .summary = text }
#define ARG_OP(op, axis, out, text)                                                         \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: T, dimension: Tidx",       \
    .outputs = "output: output_type",                                                       \
    .attrs = "T: " ARG_INPUTS "; Tidx: {" axis "} = int32; output_type: {" out "} = int64", \
    .shape_operands = 1u << 1,                                                              \
    .infer = infer_arg, .summary = text }

static const tn_op_def ops[] = {
  TRUTH_OP("All", "whether all elements along axes are true"),
  TRUTH_OP("Any", "whether any element along axes is true"),
  ARG_OP("ArgMax", "int16, int32, int64", "int16, uint16, int32, int64", "index of the largest element along an axis"),
  ARG_OP("ArgMin", "int32, int64", "int32, int64", "index of the smallest element along an axis"),
  REDUCE_OP("EuclideanNorm", NUMBERS, "square root of the sum of squares along axes"),
  REDUCE_OP("Max", REAL_NUMBERS, "largest element along axes"),
  REDUCE_OP("Mean", NUMBERS, "mean along axes"),
  REDUCE_OP("Min", REAL_NUMBERS, "smallest element along axes"),
  REDUCE_OP("Prod", NUMBERS, "product along axes"),
  REDUCE_OP("Sum", NUMBERS, "sum along axes"),
};

#define REAL "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64"
#define REDUCE_KERNEL(which, set, title)                                                                             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = set, .name = title, .rank = TN_RANK_C, \
    .create = reduce_create, .destroy = reduce_destroy, .prepare = reduce_prepare,                                   \
    .destroy_shape_state = reduce_destroy_plan, .compute = reduce_compute }
#define ARG_KERNEL(which, title)                                                                           \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = REAL "|bool", .name = title, \
    .rank = TN_RANK_C, .create = arg_create, .destroy = arg_destroy, .prepare = arg_prepare,               \
    .destroy_shape_state = arg_destroy_plan, .compute = arg_compute }

static const tn_kernel_def kernels[] = {
  REDUCE_KERNEL("All", NULL, "all_cpu"),
  REDUCE_KERNEL("Any", NULL, "any_cpu"),
  ARG_KERNEL("ArgMax", "argmax_cpu"),
  ARG_KERNEL("ArgMin", "argmin_cpu"),
  REDUCE_KERNEL("EuclideanNorm", REAL "|complex64|complex128", "euclidean_norm_cpu"),
  REDUCE_KERNEL("Max", REAL, "max_cpu"),
  REDUCE_KERNEL("Mean", REAL "|complex64|complex128", "mean_cpu"),
  REDUCE_KERNEL("Min", REAL, "min_cpu"),
  REDUCE_KERNEL("Prod", REAL "|complex64|complex128", "prod_cpu"),
  REDUCE_KERNEL("Sum", REAL "|complex64|complex128", "sum_cpu"),
};

TN_OP_FAMILY(reduce)
