/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/kernel/elements/curves.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/leaky.h>

/* ---- loops ---- */

#define LEAKY_FOR(T, count)                      \
  const T *xs = x_, *ys = y_;                    \
  T *out = out_, alpha = (T)alpha_;              \
  TN__IVDEP                                      \
  for (int64_t i = 0; i < (count); i++) {        \
    T x = xs[i], y = ys[i], scaled = x * alpha;  \
    out[i] = y > 0 ? x : scaled;                 \
  }
#define LEAKY_WIDE(d, T, end, attribute)                                                                             \
  attribute static void leaky_##d##_##end(const void *x_, const void *y_, void *out_, int64_t n, float alpha_)       \
  {                                                                                                                  \
    int64_t whole = n & -TN__WHOLE(d, d);                                                                            \
    LEAKY_FOR(T, whole)                                                                                              \
    if (whole < n) leaky_##d(xs + whole, ys + whole, out + whole, n - whole, alpha_);                                \
  }
#define LEAKY(d, T)                                                                           \
  TN__APART static void leaky_##d(const void *x_, const void *y_, void *out_, int64_t n, float alpha_) \
  {                                                                                           \
    LEAKY_FOR(T, n)                                                                           \
  }                                                                                           \
  TN__AVX2_LOOPS(LEAKY_WIDE, d, T)
LEAKY(f32, float)
LEAKY(f64, double)
static const tn__leaky_fn by_float[] = TN__AVX2_FNS(leaky_f32), by_double[] = TN__AVX2_FNS(leaky_f64);

#define FLOATS 512 /* block size: small enough to stay in the cache */

static void via_float(const tn__short_format *format, const void *x, const void *y, void *out, int64_t n, float alpha)
{
  float xs[FLOATS], ys[FLOATS];
  tn__leaky_fn fn = by_float[tn__vectors()];
  for (int64_t at = 0, k; at < n; at += k) {
    k = n - at < FLOATS ? n - at : FLOATS;
    format->to_floats((const uint16_t *)x + at, xs, k);
    if (y != x) format->to_floats((const uint16_t *)y + at, ys, k);
    fn(xs, y != x ? ys : xs, xs, k, alpha);
    format->from_floats(xs, (uint16_t *)out + at, k);
  }
}

static void leaky_f16(const void *x, const void *y, void *out, int64_t n, float alpha)
{
  via_float(&tn__half_format, x, y, out, n, tn__half_to_float(tn__half_from_float(alpha)));
}

static void leaky_bf16(const void *x, const void *y, void *out, int64_t n, float alpha)
{
  via_float(&tn__bfloat16_format, x, y, out, n, tn__bfloat16_to_float(tn__bfloat16_from_float(alpha)));
}

tn__leaky_fn tn__leaky_find(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return by_float[tn__vectors()];
  case TN_DOUBLE: return by_double[tn__vectors()];
  case TN_HALF: return leaky_f16;
  case TN_BFLOAT16: return leaky_bf16;
  default: return NULL;
  }
}

/* ---- kernel ---- */

typedef struct leaky_state {
  tn__leaky_fn fn[2]; /* [1]: for reproducible sessions */
  int64_t size;
  double cost_ns;
  float alpha;
} leaky_state;

tn_status tn__leaky_create(const tn_operation *node, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(node, 0);
  const char *op = tn_operation_type(node);
  leaky_state s = { { tn__curve_find(op, dtype, false), tn__curve_find(op, dtype, true) },
                    (int64_t)tn_dtype_size(dtype), tn__curve_ns(op), tn__attr_float(node, "alpha", 0.2f) };
  if (s.fn[0] == NULL || s.fn[1] == NULL) return tn__no_kernel(err, node, dtype);
  return tn__keep_state(&s, sizeof s, tn_operation_type(node), state, err);
}

void tn__leaky_destroy(void *state) { tn__free(state, sizeof(leaky_state)); }

tn_status tn__leaky_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = ctx->n_inputs == 1 ? TN_OK : tn__want_same_shape(ctx, 0, 1, err);
  ctx->cost_ns = ((const leaky_state *)ctx->state)->cost_ns * (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn__prepare_unchanged(ctx, err);
}

typedef struct leaky_run {
  const leaky_state *state;
  tn__leaky_fn fn;
  const char *x, *y;
  char *out;
} leaky_run;

static void leaky_part(void *user, int64_t begin, int64_t end)
{
  const leaky_run *r = user;
  int64_t at = begin * r->state->size;
  r->fn(r->x + at, r->y + at, r->out + at, end - begin, r->state->alpha);
}

tn_status tn__leaky_compute(tn_kernel_ctx *ctx)
{
  const leaky_state *s = ctx->state;
  leaky_run run = { s, s->fn[ctx->reproducible], ctx->inputs[0]->data, ctx->inputs[ctx->n_inputs - 1]->data,
                    ctx->outputs[0]->data };
  int64_t n = ctx->outputs[0]->count;
  if (n == 0) return TN_OK;
  if (n <= TN__SERIAL_ELEMENTS) leaky_part(&run, 0, n);
  else tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, s->cost_ns, leaky_part, &run);
  return TN_OK;
}
