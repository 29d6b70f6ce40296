/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/curves.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/vector_math.h>
#include <string.h>

/* ---- functions: the results for infinities are those of the separate steps ---- */

/* Of e^x and e^-x the one that is at most 1 is used, so there is one bound. */
TN__INLINED float swish_float(const int fused, float x, float alpha)
{
  const float t = alpha * x, e = tn__expf_below_by(fused, -fabsf(t));
  return (t < 0 ? x * e : x) / (1 + e);
}
TN__INLINED double swish_double(const int fused, double x, double alpha)
{
  (void)fused;
  return x / (1 + exp(-alpha * x));
}

/* 1 + erf(u) is erfc(t) or 2 - erfc(t) with t = |u|, and erfc(t) = exp(-t H(t)), a fit to the error of erfc (3e-8). */
TN__INLINED float gelu_float(const int fused, float x, float alpha)
{
  const float u = alpha * x, t = fabsf(u), t2 = t * t;
  const float h0 = TN__MADD(fused, t, 0x1.45f024p-1f, 0x1.20dd88p+0f);
  const float h1 = TN__MADD(fused, t, -0x1.40dd14p-6f, 0x1.a58f0ap-4f);
  const float h2 = TN__MADD(fused, t, 0x1.0ea35cp-10f, 0x1.1981ccp-11f);
  const float h3 = TN__MADD(fused, t, 0x1.07bd4cp-15f, -0x1.43cd86p-12f);
  const float h = TN__MADD(fused, t2, TN__MADD(fused, t2, TN__MADD(fused, t2, h3, h2), h1), h0);
  const float rest = t < 4.0f ? tn__expf_within_by(fused, -t * h) : 0; /* from 4 on 1 + erf(-t) rounds to 0 */
  return x * 0.5f * (u < 0 ? rest : 2 - rest);
}
TN__INLINED double gelu_double(const int fused, double x, double alpha)
{
  (void)fused;
  return x * 0.5 * (1 + erf(alpha * x));
}

/* (1 + tanh u) / 2 = sigmoid(2 u) */
TN__INLINED float gelu_tanh_float(const int fused, float x, float alpha)
{
  return swish_float(fused, x, 2 * alpha * (1 + 0.044715f * x * x));
}
TN__INLINED double gelu_tanh_double(const int fused, double x, double alpha)
{
  return swish_double(fused, x, 2 * alpha * (1 + 0.044715 * x * x));
}

#define HARD(T)                                                                 \
  TN__INLINED T hard_sigmoid_##T(const int fused, T x, T alpha)                 \
  {                                                                             \
    T t = x + 3;                                                                \
    (void)fused;                                                                \
    t = t < 0 ? 0 : t;                                                          \
    return (t > 6 ? 6 : t) * alpha;                                             \
  }                                                                             \
  TN__INLINED T hard_swish_##T(const int fused, T x, T alpha)                   \
  {                                                                             \
    return x * hard_sigmoid_##T(fused, x, alpha);                               \
  }
HARD(float)
HARD(double)

/* tanh(log(1 + w)) = n / (n + 2) with n = w (w + 2); for positive x both are divided by w^2. */
#define MISH(T, EXP)                                                    \
  TN__INLINED T mish_##T(const int fused, T x, T alpha)                 \
  {                                                                     \
    const T e = EXP(fused, -(x < 0 ? -x : x));                          \
    const T n = x < 0 ? e * (e + 2) : 1 + 2 * e;                        \
    (void)alpha;                                                        \
    return x * (n / (n + (x < 0 ? 2 : 2 * e * e)));                     \
  }
#define DOUBLE_EXP(fused, x) ((void)(fused), exp(x))
MISH(float, tn__expf_below_by)
MISH(double, DOUBLE_EXP)

/* ---- loops ---- */

#define CURVE_FOR(fused, name, T, count)                                              \
  const T *xs = x_;                                                                   \
  T *out = out_, alpha = (T)alpha_;                                                   \
  (void)y_;                                                                           \
  TN__IVDEP                                                                           \
  for (int64_t i = 0; i < (count); i++) out[i] = name##_##T(fused, xs[i], alpha);
#define CURVE_ARGS const void *x_, const void *y_, void *out_, int64_t n, float alpha_

#define CURVE_WIDE(name, end, attribute)                                                       \
  attribute static void name##_##end(CURVE_ARGS)                                               \
  {                                                                                            \
    int64_t whole = n & -TN__WHOLE(f32, f32);                                                  \
    CURVE_FOR(0, name, float, whole)                                                           \
    if (whole < n) name(xs + whole, xs + whole, out + whole, n - whole, alpha_);               \
  }
#define CURVE_FUSED(name, end, attribute)            \
  attribute static void name##_##end(CURVE_ARGS)     \
  {                                                  \
    CURVE_FOR(1, name, float, n)                     \
  }
#define CURVE(name)                                                          \
  TN__APART static void name(CURVE_ARGS) { CURVE_FOR(0, name, float, n) }    \
  TN__AVX2_LOOPS(CURVE_WIDE, name)                                           \
  TN__FUSED_LOOPS(CURVE_FUSED, name)                                         \
  static void name##_of_double(CURVE_ARGS) { CURVE_FOR(0, name, double, n) } \
  static const tn__leaky_fn name##_of_float[] = TN__FUSED_FNS(name);         \
  SHORT(name, half, false)                                                   \
  SHORT(name, half, true)                                                    \
  SHORT(name, bfloat16, false)                                               \
  SHORT(name, bfloat16, true)

/* half and bfloat16, in blocks that stay in the cache. */
#define FLOATS 512
static void via_float(const tn__short_format *format, tn__leaky_fn fn, const void *x, void *out, int64_t n, float alpha)
{
  float xs[FLOATS];
  for (int64_t at = 0, k; at < n; at += k) {
    k = n - at < FLOATS ? n - at : FLOATS;
    format->to_floats((const uint16_t *)x + at, xs, k);
    fn(xs, xs, xs, k, alpha);
    format->from_floats(xs, (uint16_t *)out + at, k);
  }
}
#define SHORT(name, format, reproducible)                                                                      \
  static void name##_of_##format##_##reproducible(CURVE_ARGS)                                                  \
  {                                                                                                            \
    (void)y_;                                                                                                  \
    via_float(&tn__##format##_format, name##_of_float[tn__vectors_for(reproducible)], x_, out_, n, alpha_);    \
  }

CURVE(swish)
CURVE(hard_sigmoid)
CURVE(hard_swish)
CURVE(mish)
CURVE(gelu)
CURVE(gelu_tanh)

/* ---- the table ---- */

typedef struct curve {
  const char *op;
  double cost_ns;
  const tn__leaky_fn *of_float;
  tn__leaky_fn of_double, of_half[2], of_bfloat16[2]; /* [1]: reproducible */
} curve;

#define ENTRY(op, ns, name)                                                                                    \
  { op, ns, name##_of_float, name##_of_double, { name##_of_half_false, name##_of_half_true },                  \
    { name##_of_bfloat16_false, name##_of_bfloat16_true } }
static const curve curves[] = {
  ENTRY("_TnSwish", 1, swish),
  ENTRY("_TnHardSigmoid", 0.4, hard_sigmoid),
  ENTRY("_TnHardSwish", 0.4, hard_swish),
  ENTRY("_TnMish", 1.2, mish),
  ENTRY("_TnGelu", 1.2, gelu),
  ENTRY("_TnGeluTanh", 1, gelu_tanh),
};

static const curve *find(const char *op)
{
  for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
    if (strcmp(curves[i].op, op) == 0) return &curves[i];
  return NULL;
}

tn__leaky_fn tn__curve_find(const char *op, tn_dtype dtype, bool reproducible)
{
  if (strncmp(op, "LeakyRelu", strlen("LeakyRelu")) == 0) return tn__leaky_find(dtype);
  const curve *c = find(op);
  if (c == NULL) return NULL;
  switch (dtype) {
  case TN_FLOAT: return c->of_float[tn__vectors_for(reproducible)];
  case TN_DOUBLE: return c->of_double;
  case TN_HALF: return c->of_half[reproducible];
  case TN_BFLOAT16: return c->of_bfloat16[reproducible];
  default: return NULL;
  }
}

double tn__curve_ns(const char *op)
{
  const curve *c = find(op);
  return c == NULL ? TN__LEAKY_NS : c->cost_ns;
}

/* ---- kernel ---- */

typedef struct curve_state {
  tn__leaky_fn fn[2]; /* [1]: for reproducible sessions */
  int64_t size;
  double cost_ns;
  float alpha;
} curve_state;

tn_status tn__curve_create(const tn_operation *node, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(node, 0);
  const char *op = tn_operation_type(node);
  curve_state s = { { tn__curve_find(op, dtype, false), tn__curve_find(op, dtype, true) },
                    (int64_t)tn_dtype_size(dtype), tn__curve_ns(op), tn__attr_float(node, "alpha", 0.2f) };
  if (s.fn[0] == NULL || s.fn[1] == NULL) return tn__no_kernel(err, node, dtype);
  return tn__keep_state(&s, sizeof s, tn_operation_type(node), state, err);
}

void tn__curve_destroy(void *state) { tn__free(state, sizeof(curve_state)); }

tn_status tn__curve_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = ctx->n_inputs == 1 ? TN_OK : tn__want_same_shape(ctx, 0, 1, err);
  ctx->cost_ns = ((const curve_state *)ctx->state)->cost_ns * (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn__prepare_unchanged(ctx, err);
}

typedef struct curve_run {
  const curve_state *state;
  tn__leaky_fn fn;
  const char *x, *y;
  char *out;
} curve_run;

static void curve_part(void *user, int64_t begin, int64_t end)
{
  const curve_run *r = user;
  int64_t at = begin * r->state->size;
  r->fn(r->x + at, r->y + at, r->out + at, end - begin, r->state->alpha);
}

tn_status tn__curve_compute(tn_kernel_ctx *ctx)
{
  const curve_state *s = ctx->state;
  curve_run run = { s, s->fn[ctx->reproducible], ctx->inputs[0]->data, ctx->inputs[ctx->n_inputs - 1]->data,
                    ctx->outputs[0]->data };
  int64_t n = ctx->outputs[0]->count;
  if (n == 0) return TN_OK;
  if (n <= TN__SERIAL_ELEMENTS) curve_part(&run, 0, n);
  else tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, s->cost_ns, curve_part, &run);
  return TN_OK;
}
