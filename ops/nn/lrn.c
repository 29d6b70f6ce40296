/* SPDX-License-Identifier: Apache-2.0 */
/* LRN and LRNGrad: every element is divided by a power of a sum over neighbouring channels.
 *
 *   size[c] = bias + alpha * sum of x[k]^2, |k - c| <= radius
 *   y[c]    = x[c] / size[c]^beta */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <string.h>

typedef struct lrn_state {
  tn_dtype dtype;
  int64_t radius;
  float bias, alpha, beta;
} lrn_state;

typedef struct lrn_plan {
  int64_t pixels, c;
  tn__form form[4];         /* of the inputs, then of the output */
  size_t at_size, at_share; /* offsets in scratch, of arrays with an element for each image element */
} lrn_plan;

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, 4, &s, err);
  if (st != TN_OK) return st;
  return tn__infer_merged(ctx, err);
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  lrn_state s = { .dtype = tn_operation_input_dtype(op, 0), .radius = tn__attr_int(op, "depth_radius", 5),
                  .bias = tn__attr_float(op, "bias", 1), .alpha = tn__attr_float(op, "alpha", 1),
                  .beta = tn__attr_float(op, "beta", 0.5f) };
  if (s.radius < 0 || s.radius > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'depth_radius' is %lld, wanted 0 to %d",
                        tn_operation_type(op), (long long)s.radius, INT32_MAX);
  return tn__keep_state(&s, sizeof s, "LRN", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(lrn_state)); }
static void destroy_plan(void *plan) { tn__free(plan, sizeof(lrn_plan)); }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const lrn_state *s = ctx->state;
  const tn_view *x = &ctx->inputs[0];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  for (uint32_t i = 1; i < ctx->n_inputs && st == TN_OK; i++) st = tn__want_same_shape(ctx, 0, i, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  lrn_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "LRN", sizeof *p);
  ctx->shape_state = p;
  if (x->count == 0) return TN_OK;
  p->c = x->dims[3];
  p->pixels = x->count / p->c;
  const tn__volume v = { 1, { 1, 1, p->pixels }, p->c };
  size_t scratch = 0;
  for (uint32_t i = 0; i <= ctx->n_inputs; i++) tn__form_plan(&p->form[i], s->dtype, false, &v, &scratch);
  p->at_size = tn__take(&scratch, (size_t)x->count * sizeof(float));
  if (ctx->n_inputs > 1) p->at_share = tn__take(&scratch, (size_t)x->count * sizeof(float));
  ctx->scratch_bytes = scratch;
  ctx->cost_ns = (double)x->count * (5 + (double)(s->radius < p->c ? s->radius : p->c));
  return TN_OK;
}

/* ---- computing ---- */

typedef struct run {
  const lrn_state *state;
  const lrn_plan *plan;
  const float *x, *y, *dy;
  float *size, *share, *out;
} run;

static inline int64_t first_of(int64_t c, int64_t radius) { return c > radius ? c - radius : 0; }
static inline int64_t end_of(int64_t c, int64_t radius, int64_t n) { return n - c > radius ? c + radius + 1 : n; }

/* Loops over channels, for this machine's vectors. If there are few neighbours, each is added to all channels at
 * once, from a copy that is padded with zeros at both ends; zeros do not change a sum. */
#define BLOCK 512
#define FEW 32 /* maximum radius for that */

#define ADD_FOR(count)                         \
  for (int64_t k = 0; k < taps; k++)           \
    for (int64_t c = 0; c < (count); c++) sum[c] += values[c + k];
#define SIZE_FOR(count) \
  TN__IVDEP             \
  for (int64_t c = 0; c < (count); c++) size[c] = bias + alpha * size[c];
#define DIVIDE_FOR(count)                                                                               \
  if (beta == 0.5f) {                                                                                   \
    TN__IVDEP                                                                                           \
    for (int64_t c = 0; c < (count); c++) out[c] = x[c] / sqrtf(size[c]);                               \
  } else if (beta == 0.75f) {                                                                           \
    TN__IVDEP                                                                                           \
    for (int64_t c = 0; c < (count); c++) out[c] = x[c] / (sqrtf(size[c]) * sqrtf(sqrtf(size[c])));     \
  } else {                                                                                              \
    TN__IVDEP                                                                                           \
    for (int64_t c = 0; c < (count); c++) out[c] = x[c] / size[c];                                      \
  }
TN__APART static void add_taps(float *restrict sum, const float *restrict values, int64_t taps, int64_t n)
{
  ADD_FOR(n)
}
TN__APART static void scale_sums(float bias, float alpha, float *size, int64_t n) { SIZE_FOR(n) }
TN__APART static void divide_by(float beta, const float *x, const float *size, float *out, int64_t n) { DIVIDE_FOR(n) }
#define WIDE_LOOPS(nothing, end, attribute)                                                                            \
  attribute static void add_taps_##end(float *restrict sum, const float *restrict values, int64_t taps, int64_t n)     \
  {                                                                                                                    \
    int64_t whole = n & -INT64_C(16);                                                                                  \
    ADD_FOR(whole)                                                                                                     \
    if (whole < n) add_taps(sum + whole, values + whole, taps, n - whole);                                             \
  }                                                                                                                    \
  attribute static void scale_sums_##end(float bias, float alpha, float *size, int64_t n)                              \
  {                                                                                                                    \
    int64_t whole = n & -INT64_C(16);                                                                                  \
    SIZE_FOR(whole)                                                                                                    \
    if (whole < n) scale_sums(bias, alpha, size + whole, n - whole);                                                   \
  }                                                                                                                    \
  attribute static void divide_by_##end(float beta, const float *x, const float *size, float *out, int64_t n)          \
  {                                                                                                                    \
    int64_t whole = n & -INT64_C(16);                                                                                  \
    DIVIDE_FOR(whole)                                                                                                  \
    if (whole < n) divide_by(beta, x + whole, size + whole, out + whole, n - whole);                                   \
  }
TN__AVX2_LOOPS(WIDE_LOOPS, )

/* sum[c] = sum of values[k], or of their squares, over the neighbours k of c. */
static void sum_neighbours(const float *values, bool squares, int64_t radius, float *sum, int64_t n)
{
  static void (*const add[])(float *, const float *, int64_t, int64_t) = TN__AVX2_FNS(add_taps);
  float part[BLOCK + 2 * FEW];
  tn__poll poll = tn__poll_here();
  for (int64_t at = 0, m; at < n && radius <= FEW; at += m) {
    m = n - at < BLOCK ? n - at : BLOCK;
    const int64_t first = first_of(at, radius), end = end_of(at + m - 1, radius, n), before = first - (at - radius);
    memset(part, 0, (size_t)before * sizeof *part);
    memset(part + before + (end - first), 0, (size_t)(m + 2 * radius - before - (end - first)) * sizeof *part);
    if (squares)
      for (int64_t i = 0; i < end - first; i++) part[before + i] = values[first + i] * values[first + i];
    else memcpy(part + before, values + first, (size_t)(end - first) * sizeof *part);
    memset(sum + at, 0, (size_t)m * sizeof *sum);
    add[tn__vectors()](sum + at, part, 2 * radius + 1, m);
  }
  for (int64_t c = 0; c < n && radius > FEW; c++) {
    float total = 0;
    if (tn__poll_over(&poll, end_of(c, radius, n) - first_of(c, radius))) return;
    for (int64_t k = first_of(c, radius), end = end_of(c, radius, n); k < end; k++)
      total += squares ? values[k] * values[k] : values[k];
    sum[c] = total;
  }
}

static void sizes_of(const lrn_state *s, const float *x, float *size, int64_t n)
{
  static void (*const scale[])(float, float, float *, int64_t) = TN__AVX2_FNS(scale_sums);
  sum_neighbours(x, true, s->radius, size, n);
  scale[tn__vectors()](s->bias, s->alpha, size, n);
}

/* out = x / size^beta. The common powers need no call of powf. */
static void divide(float beta, const float *x, const float *size, float *out, int64_t n)
{
  static void (*const by[])(float, const float *, const float *, float *, int64_t) = TN__AVX2_FNS(divide_by);
  if (beta == 0.5f || beta == 0.75f || beta == 1) by[tn__vectors()](beta, x, size, out, n);
  else
    for (int64_t c = 0; c < n; c++) out[c] = x[c] * powf(size[c], -beta);
}

static void forward_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const int64_t n = r->plan->c;
  for (int64_t at = begin * n; at < end * n; at += n) {
    sizes_of(r->state, r->x + at, r->size + at, n);
    divide(r->state->beta, r->x + at, r->size + at, r->out + at, n);
  }
}

/* dx[c] = dy[c] / size[c]^beta - 2 alpha beta x[c] * sum of dy[k] y[k] / size[k] over the neighbours */
static void gradient_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const lrn_state *s = r->state;
  const int64_t n = r->plan->c;
  const float by = 2 * s->alpha * s->beta;
  for (int64_t at = begin * n; at < end * n; at += n) {
    float *size = r->size + at, *share = r->share + at, *out = r->out + at;
    sizes_of(s, r->x + at, size, n);
    for (int64_t c = 0; c < n; c++) share[c] = r->dy[at + c] * r->y[at + c] / size[c];
    divide(s->beta, r->dy + at, size, out, n);
    sum_neighbours(share, false, s->radius, size, n); /* the sizes are no longer needed */
    for (int64_t c = 0; c < n; c++) out[c] -= by * r->x[at + c] * size[c];
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const lrn_plan *p = ctx->shape_state;
  const tn__form *result = &p->form[ctx->n_inputs];
  const float *in[3] = { NULL, NULL, NULL };
  void *data = ctx->outputs[0]->data;
  bool gradient = ctx->n_inputs == 3;
  if (ctx->outputs[0]->count == 0) return TN_OK;
  for (uint32_t i = 0; i < ctx->n_inputs; i++)
    in[i] = tn__form_load(&p->form[i], ctx, ctx->inputs[i]->data, ctx->scratch);
  run r = { .state = ctx->state, .plan = p, .x = in[gradient ? 1 : 0], .y = in[2], .dy = in[0],
            .size = (float *)((char *)ctx->scratch + p->at_size),
            .share = (float *)((char *)ctx->scratch + p->at_share), .out = tn__form_room(result, data, ctx->scratch) };
  int64_t reach = r.state->radius < p->c ? r.state->radius : p->c;
  tn__run_parts(ctx, p->pixels, (double)(p->c * (5 + reach)), gradient ? gradient_part : forward_part, &r);
  tn__form_store(result, ctx, data, ctx->scratch);
  return TN_OK;
}

/* ---- tables ---- */

#define ATTRS                                                                                     \
  "depth_radius: int = 5; bias: float = 1; alpha: float = 1; beta: float = 0.5; "                 \
  "T: {half, bfloat16, float} = float"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "LRN", .inputs = "input: T", .outputs = "output: T", .attrs = ATTRS,
    .infer = infer, .summary = "local response normalisation over neighbouring channels" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "LRNGrad", .inputs = "input_grads: T, input_image: T, output_image: T",
    .outputs = "output: T", .attrs = ATTRS, .infer = infer, .summary = "gradient of LRN" },
};

#define LRN_KERNEL(which, title)                                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,          \
    .create = create, .destroy = destroy, .prepare = prepare, .destroy_shape_state = destroy_plan,              \
    .compute = compute }

static const tn_kernel_def kernels[] = {
  LRN_KERNEL("LRN", "lrn_cpu"),
  LRN_KERNEL("LRNGrad", "lrn_grad_cpu"),
};

TN_OP_FAMILY(lrn)
