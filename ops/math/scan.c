/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulative ops along an axis: Cumsum Cumprod CumulativeLogsumexp. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>

#include <core/base/alloc.h>
#include <core/base/text.h>

/* ---- steps ---- */

/* log(exp a + exp b) without overflow. As in TensorFlow, two positive infinities give NaN, and if b is NaN it is
 * replaced by a. */
#define LOG_SUM(name, T, exp_, log1p_)                                \
  static inline T name(T a, T b)                                      \
  {                                                                   \
    T most = a < b ? b : a, least = b < a ? b : a;                    \
    if (most == (T)-INFINITY) return most;                            \
    return most + log1p_(exp_(least - most));                         \
  }
LOG_SUM(log_sum_f, float, expf, log1pf)
LOG_SUM(log_sum_d, double, exp, log1p)

#define STEP_sum(a, x) ((a) + (x))
#define STEP_prod(a, x) TN__MUL(a, x)
#define STEP_logsum(a, x) _Generic((a), float: log_sum_f, double: log_sum_d)(a, x)
#define START_sum 0
#define START_prod 1
#define START_logsum (-INFINITY)

/* ---- loops ---- */

/* n slices of `inner` elements along the axis. The loops process columns [from, to), forwards or in reverse.
 * Results are rounded at each step, as in TensorFlow. out may equal in if the scan is not exclusive. */
typedef struct slices {
  int64_t n, inner;
  bool exclusive, reverse;
} slices;

#define LINE 4096 /* elements between two cancellation checks */

#define SCAN_LOOP(op, d, unused)                                                                          \
  static void op##_line_##d(const slices *s, const tn__S_##d *in, tn__S_##d *out)                         \
  {                                                                                                       \
    tn__S_##d run = TN__P_##d((tn__C_##d)(START_##op));                                                   \
    int64_t step = s->reverse ? -1 : 1, at = s->reverse ? s->n - 1 : 0;                                   \
    tn__poll poll = tn__poll_here();                                                                      \
    for (int64_t i = 0; i < s->n; i++, at += step) {                                                      \
      if (i % LINE == 0 && tn__poll_over(&poll, 4 * LINE)) return;                                        \
      tn__C_##d a = TN__L_##d(run), x = TN__L_##d(in[at]);                                                \
      tn__S_##d next = TN__P_##d(STEP_##op(a, x));                                                        \
      out[at] = s->exclusive ? run : next;                                                                \
      run = next;                                                                                         \
    }                                                                                                     \
  }                                                                                                       \
  static void op##_##d(const slices *s, const void *in_, void *out_, int64_t from, int64_t to)            \
  {                                                                                                       \
    if (s->inner == 1) {                                                                                  \
      op##_line_##d(s, in_, out_);                                                                        \
      return;                                                                                             \
    }                                                                                                     \
    int64_t step = s->reverse ? -s->inner : s->inner, at = s->reverse ? (s->n - 1) * s->inner : 0;        \
    const tn__S_##d *in = in_;                                                                            \
    tn__S_##d *out = out_;                                                                                \
    tn__C_##d first = (tn__C_##d)(START_##op);                                                            \
    tn__poll poll = tn__poll_here();                                                                      \
    for (int64_t k = 0; k < s->n && !tn__poll_over(&poll, 4 * (to - from)); k++, at += step) {            \
      int64_t last = k == 0 ? at : at - step;                                                             \
      const tn__S_##d *x = in + (s->exclusive ? last : at), *before = out + last;                         \
      tn__S_##d *y = out + at;                                                                            \
      if (k == 0 && s->exclusive) {                                                                       \
        for (int64_t i = from; i < to; i++) y[i] = TN__P_##d(first);                                      \
      } else if (k == 0) {                                                                                \
        for (int64_t i = from; i < to; i++) y[i] = x[i];                                                  \
      } else {                                                                                            \
        TN__IVDEP                                                                                         \
        for (int64_t i = from; i < to; i++) {                                                             \
          tn__C_##d a = TN__L_##d(before[i]), b = TN__L_##d(x[i]);                                        \
          y[i] = TN__P_##d(STEP_##op(a, b));                                                              \
        }                                                                                                 \
      }                                                                                                   \
    }                                                                                                     \
  }

#define SIGNED_TYPES(X, op) TN__SAME_FLOATS_COMPLEXES(X, op) TN__WRAP_SIGNED(X, op)
SIGNED_TYPES(SCAN_LOOP, sum)
SIGNED_TYPES(SCAN_LOOP, prod)
TN__SAME_FLOATS(SCAN_LOOP, logsum)

typedef struct loop {
  tn_dtype dtype, twin; /* twin: the unsigned dtype with the same wrapping arithmetic, or dtype itself */
  double cost_ns;
  void (*fn)(const slices *s, const void *in, void *out, int64_t from, int64_t to);
} loop;

/* ---- the kernels ---- */

typedef struct scan_state {
  loop how;
  bool exclusive, reverse;
  const char *op;
} scan_state;

static tn_status create(const tn_operation *op, const loop *loops, size_t n, void **state, tn_error *err)
{
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  *state = NULL;
  for (size_t i = 0; i < n; i++) {
    if (loops[i].dtype != dtype && loops[i].twin != dtype) continue;
    scan_state *s = tn__alloc(sizeof *s);
    if (s == NULL) return tn__no_memory(err, "state of a scan", sizeof *s);
    *s = (scan_state){ loops[i], tn__attr_bool(op, "exclusive", false), tn__attr_bool(op, "reverse", false),
                       tn_operation_type(op) };
    *state = s;
    return TN_OK;
  }
  return tn__no_kernel(err, op, dtype);
}

static void destroy(void *state) { tn__free(state, sizeof(scan_state)); }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const scan_state *s = ctx->state;
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = 20 + s->how.cost_ns * (double)ctx->inputs[0].count;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st != TN_OK || s->exclusive ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

/* A unit of work is a block of columns of one outer slice. */
#define BLOCK 512

typedef struct scan_run {
  const loop *how;
  slices slices;
  int64_t blocks; /* per outer slice */
  const char *in;
  char *out;
  size_t size;
} scan_run;

static void scan_part(void *user, int64_t begin, int64_t end)
{
  const scan_run *r = user;
  const int64_t each_ns = 4 * r->slices.n * (r->slices.inner < BLOCK ? r->slices.inner : BLOCK);
  tn__poll poll = tn__poll_here();
  for (int64_t k = begin; k < end && !tn__poll_over(&poll, each_ns); k++) {
    size_t at = (size_t)(k / r->blocks * r->slices.n * r->slices.inner) * r->size;
    int64_t from = k % r->blocks * BLOCK, to = from + BLOCK < r->slices.inner ? from + BLOCK : r->slices.inner;
    r->how->fn(&r->slices, r->in + at, r->out + at, from, to);
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const scan_state *s = ctx->state;
  const tn_view *x = ctx->inputs[0];
  tn_view *out = ctx->outputs[0];
  int32_t axis;
  tn_status st = tn__shape_axis(s->op, tn__view_int_at(ctx->inputs[1], 0), x->rank, &axis, ctx->err);
  if (st != TN_OK || x->count == 0) return st;
  int64_t outer = 1, inner = 1;
  for (int32_t i = 0; i < x->rank; i++) {
    if (i < axis) outer *= x->dims[i];
    if (i > axis) inner *= x->dims[i];
  }
  scan_run r = { &s->how, { x->dims[axis], inner, s->exclusive, s->reverse }, (inner - 1) / BLOCK + 1, x->data,
                 out->data, tn_dtype_size(x->dtype) };
  int64_t parts = outer * r.blocks, each = x->count / parts;
  if (x->count <= TN__SERIAL_ELEMENTS)
    scan_part(&r, 0, parts);
  else
    tn_parallel_for(ctx, parts, TN__SERIAL_ELEMENTS / (each + 1) + 1, s->how.cost_ns * (double)each, scan_part, &r);
  return TN_OK;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, scalar;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &s, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 0, &scalar, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define ENTRY(op, d, unused) { TN__D_##d, TN__TWIN_##d, COST_##op, op##_##d },
#define COST_sum 0.5
#define COST_prod 0.5
#define COST_logsum 15

#define CREATE(op, TYPES)                                                              \
  static tn_status op##_create(const tn_operation *node, void **state, tn_error *err)  \
  {                                                                                    \
    static const loop loops[] = { TYPES(ENTRY, op) };                                  \
    return create(node, loops, sizeof loops / sizeof loops[0], state, err);            \
  }
CREATE(sum, SIGNED_TYPES)
CREATE(prod, SIGNED_TYPES)
CREATE(logsum, TN__SAME_FLOATS)

#define OP(op, types, text)                                                                                \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "x: T, axis: Tidx", .outputs = "out: T",          \
    .attrs = "exclusive: bool = false; reverse: bool = false; T: " types "; Tidx: {int32, int64} = int32", \
    .infer = infer, .summary = text }
#define T_NUMBERS                                                                                               \
  "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "      \
  "quint16, uint16, complex128, half, uint32, uint64}"

static const tn_op_def ops[] = {
  OP("Cumprod", T_NUMBERS, "cumulative products along an axis"),
  OP("Cumsum", T_NUMBERS, "cumulative sums along an axis"),
  OP("CumulativeLogsumexp", "{bfloat16, half, float, double}", "cumulative log-sum-exp along an axis"),
};

#define KERNEL(which, constraint, title, fn)                                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,  \
    .rank = TN_RANK_C, .create = fn, .destroy = destroy, .prepare = prepare, .compute = compute }
#define SCAN_TYPES "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128"

static const tn_kernel_def kernels[] = {
  KERNEL("Cumprod", SCAN_TYPES, "cumprod_cpu", prod_create),
  KERNEL("Cumsum", SCAN_TYPES, "cumsum_cpu", sum_create),
  KERNEL("CumulativeLogsumexp", NULL, "cumulative_logsumexp_cpu", logsum_create),
};

TN_OP_FAMILY(scan)
