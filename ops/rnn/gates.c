/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/rnn/gates.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/elements/vectors.h>
#include <string.h>

/* ---- attributes ---- */

tn_status tn__lstm_form_read(const tn_operation *op, tn__lstm_form *form, tn_error *err)
{
  const int64_t *gates;
  size_t n;
  unsigned seen = 0;
  tn_status st = tn_operation_attr_ints(op, "gates", &gates, &n, err);
  if (st != TN_OK) return st;
  for (size_t k = 0; k < n && k < 4; k++)
    if (gates[k] >= 0 && gates[k] < 4) seen |= 1u << gates[k];
  if (n != 4 || seen != 15)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: gates is not a permutation of 0, 1, 2 and 3",
                        tn_operation_type(op));
  memcpy(form->gate, gates, sizeof form->gate);
  form->forget_bias = tn__attr_float(op, "forget_bias", 0);
  form->apart = tn__attr_bool(op, "apart", false);
  return TN_OK;
}

tn_status tn__layer_steps(const tn_operation *op, const char *name, size_t first, int64_t steps, int32_t *of_step,
                          size_t *n, tn_error *err)
{
  const int64_t *list;
  tn_status st = tn_operation_attr_ints(op, name, &list, n, err);
  for (int64_t t = 0; t < steps; t++) of_step[t] = -1;
  for (size_t k = 0; st == TN_OK && k < *n; k++) {
    if (list[k] < 0 || list[k] >= steps || of_step[list[k]] >= 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s has %lld, wanted each of 0 to %lld once at most",
                          tn_operation_type(op), name, (long long)list[k], (long long)steps - 1);
    of_step[list[k]] = (int32_t)(first + k);
  }
  return st;
}

/* ---- a block of cells ---- */

#define INLINE static inline __attribute__((always_inline))

INLINE void state_rows(const tn__lstm_block *b)
{
  const float *bi = b->bias[0], *bj = b->bias[1], *bf = b->bias[2], *bo = b->bias[3], forget = b->forget_bias;
  for (int64_t row = 0; row < b->rows; row++) {
    const float *sums = b->sums + row * b->sums_row, *c = b->c + row * b->c_row;
    const float *i = sums + b->part[0], *j = sums + b->part[1], *f = sums + b->part[2], *o = sums + b->part[3];
    float *to_c = b->to_c + row * b->to_c_row, *to_h = b->to_h + row * b->to_h_row;
    TN__IVDEP
    for (int64_t k = 0; k < b->cells; k++) {
      float kept = c[k] * tn__sigmoidf(f[k] + bf[k] + forget);
      float now = tn__sigmoidf(i[k] + bi[k]) * tn__tanhf(j[k] + bj[k]);
      to_c[k] = kept + now;
      to_h[k] = tn__sigmoidf(o[k] + bo[k]);
    }
  }
}

INLINE void output_rows(const tn__lstm_block *b)
{
  for (int64_t row = 0; row < b->rows; row++) {
    const float *c = b->to_c + row * b->to_c_row;
    float *h = b->to_h + row * b->to_h_row;
    TN__IVDEP
    for (int64_t k = 0; k < b->cells; k++) h[k] = tn__tanhf(c[k]) * h[k];
  }
}

INLINE void gate_rows(const tn__gru_gates *b, int gate, float *to, bool scale)
{
  const float *bias = b->bias[gate], *more = b->more[gate];
  for (int64_t row = 0; row < b->rows; row++) {
    const float *sums = b->sums + row * b->sums_row + b->part[gate], *h = b->h + row * b->h_row;
    float *out = to + row * b->to_row;
    TN__IVDEP
    for (int64_t k = 0; k < b->cells; k++) {
      float x = sums[k] + bias[k];
      if (more != NULL) x += more[k];
      x = tn__sigmoidf(x);
      out[k] = scale ? x * h[k] : x;
    }
  }
}

INLINE void gru_rows(const tn__gru_gates *b)
{
  if (b->scale) gate_rows(b, 0, b->to_r, true);
  else gate_rows(b, 0, b->to_r, false);
  gate_rows(b, 1, b->to_u, false);
}

INLINE void mix_rows(const tn__gru_output *b, bool inner)
{
  const float *bias = b->bias, *more = b->more;
  for (int64_t row = 0; row < b->rows; row++) {
    const float *sums = b->sums + row * b->sums_row, *in = inner ? b->inner + row * b->sums_row : NULL;
    const float *r = inner ? b->r + row * b->gate_row : NULL, *u = b->u + row * b->gate_row, *h = b->h + row * b->h_row;
    float *to = b->to_h + row * b->to_row;
    TN__IVDEP
    for (int64_t k = 0; k < b->cells; k++) {
      float x = sums[k] + bias[k];
      if (inner) x += r[k] * (in[k] + more[k]);
      to[k] = u[k] * h[k] + (1 - u[k]) * tn__tanhf(x);
    }
  }
}

INLINE void mix(const tn__gru_output *b)
{
  if (b->inner != NULL) mix_rows(b, true);
  else mix_rows(b, false);
}

static void state(const tn__lstm_block *b) { state_rows(b); }
static void output(const tn__lstm_block *b) { output_rows(b); }
static void gru(const tn__gru_gates *b) { gru_rows(b); }
static void gru_output(const tn__gru_output *b) { mix(b); }

#if TN__VECTORS > 1
#include <immintrin.h>

TN__FOR_AVX2 static void state_avx2(const tn__lstm_block *b) { state_rows(b); }
TN__FOR_AVX2 static void output_avx2(const tn__lstm_block *b) { output_rows(b); }
TN__FOR_AVX2 static void gru_avx2(const tn__gru_gates *b) { gru_rows(b); }
TN__FOR_AVX2 static void gru_output_avx2(const tn__gru_output *b) { mix(b); }

/* The functions of vector_math.h, operation for operation. Two operations use AVX-512 instructions that round
 * identically: rounding to an integer, and multiplication by a power of two. */

#define WIDE TN__FOR_AVX512 INLINE

WIDE __m512 number(float x) { return _mm512_set1_ps(x); }
WIDE __m512 add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
WIDE __m512 sub(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
WIDE __m512 mul(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }

/* exp(x) for x in [-104, 89]; NaN stays NaN. */
WIDE __m512 exp_within(__m512 x)
{
  __m512 n = _mm512_roundscale_ps(mul(x, number(0x1.715476p0f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = sub(sub(x, mul(n, number(TN__LN2_HIGH))), mul(n, number(TN__LN2_LOW)));
  __m512 q = number(0x1.6a107cp-10f);
  q = add(mul(q, r), number(0x1.1245c8p-7f));
  q = add(mul(q, r), number(0x1.55593cp-5f));
  q = add(mul(q, r), number(0x1.555482p-3f));
  q = add(mul(q, r), number(0x1.fffffcp-2f));
  return _mm512_scalef_ps(add(number(1), add(r, mul(mul(r, r), q))), n);
}

WIDE __m512 sigmoid(__m512 x)
{
  __m512 below = _mm512_or_ps(x, number(-0.0f)); /* -|x| */
  __m512 e = exp_within(_mm512_max_ps(number(-104.0f), below));
  __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  __m512 above = _mm512_div_ps(number(1), add(number(1), e));
  return _mm512_mask_sub_ps(above, negative, e, mul(e, mul(e, above)));
}

WIDE __m512 tanh_of(__m512 x)
{
  __m512 sign = number(-0.0f), a = _mm512_andnot_ps(sign, x), z = mul(x, x);
  __m512 q = number(-0x1.75e1c6p-8f);
  q = add(mul(q, z), number(0x1.52269ap-6f));
  q = sub(mul(q, z), number(0x1.b83c5ap-5f));
  q = add(mul(q, z), number(0x1.110726p-3f));
  q = sub(mul(q, z), number(0x1.555532p-2f));
  __m512 near = add(a, mul(mul(a, z), q));
  __m512 e = exp_within(_mm512_min_ps(number(89.0f), mul(number(2), a)));
  __m512 far = sub(number(1), _mm512_div_ps(number(2), add(e, number(1))));
  __mmask16 small = _mm512_cmp_ps_mask(a, number(0.625f), _CMP_LT_OQ);
  return _mm512_or_ps(_mm512_mask_mov_ps(far, small, near), _mm512_and_ps(sign, x));
}

WIDE __mmask16 lanes(int64_t left) { return (__mmask16)(left >= 16 ? 0xffff : (1 << left) - 1); }
WIDE __m512 load(__mmask16 some, const float *from) { return _mm512_maskz_loadu_ps(some, from); }

TN__FOR_AVX512 static void state_avx512(const tn__lstm_block *b)
{
  for (int64_t k = 0; k < b->cells; k += 16) {
    const __mmask16 some = lanes(b->cells - k);
    __m512 bias[4];
    for (int g = 0; g < 4; g++) bias[g] = load(some, b->bias[g] + k);
    for (int64_t row = 0; row < b->rows; row++) {
      const float *sums = b->sums + row * b->sums_row + k;
      __m512 gate[4];
      for (int g = 0; g < 4; g++) gate[g] = add(load(some, sums + b->part[g]), bias[g]);
      __m512 kept = mul(load(some, b->c + row * b->c_row + k),
                        sigmoid(add(gate[2], number(b->forget_bias))));
      __m512 now = mul(sigmoid(gate[0]), tanh_of(gate[1]));
      _mm512_mask_storeu_ps(b->to_c + row * b->to_c_row + k, some, add(kept, now));
      _mm512_mask_storeu_ps(b->to_h + row * b->to_h_row + k, some, sigmoid(gate[3]));
    }
  }
}

TN__FOR_AVX512 static void output_avx512(const tn__lstm_block *b)
{
  for (int64_t k = 0; k < b->cells; k += 16) {
    const __mmask16 some = lanes(b->cells - k);
    for (int64_t row = 0; row < b->rows; row++) {
      float *h = b->to_h + row * b->to_h_row + k;
      __m512 c = load(some, b->to_c + row * b->to_c_row + k);
      _mm512_mask_storeu_ps(h, some, mul(tanh_of(c), load(some, h)));
    }
  }
}
TN__FOR_AVX512 static void gru_avx512(const tn__gru_gates *b)
{
  for (int64_t k = 0; k < b->cells; k += 16) {
    const __mmask16 some = lanes(b->cells - k);
    for (int64_t row = 0; row < b->rows; row++) {
      const float *sums = b->sums + row * b->sums_row + k;
      __m512 gate[2];
      for (int g = 0; g < 2; g++) {
        gate[g] = add(load(some, sums + b->part[g]), load(some, b->bias[g] + k));
        if (b->more[g] != NULL) gate[g] = add(gate[g], load(some, b->more[g] + k));
        gate[g] = sigmoid(gate[g]);
      }
      if (b->scale) gate[0] = mul(gate[0], load(some, b->h + row * b->h_row + k));
      _mm512_mask_storeu_ps(b->to_r + row * b->to_row + k, some, gate[0]);
      _mm512_mask_storeu_ps(b->to_u + row * b->to_row + k, some, gate[1]);
    }
  }
}

TN__FOR_AVX512 static void gru_output_avx512(const tn__gru_output *b)
{
  for (int64_t k = 0; k < b->cells; k += 16) {
    const __mmask16 some = lanes(b->cells - k);
    for (int64_t row = 0; row < b->rows; row++) {
      __m512 x = add(load(some, b->sums + row * b->sums_row + k), load(some, b->bias + k));
      if (b->inner != NULL) {
        __m512 inner = add(load(some, b->inner + row * b->sums_row + k), load(some, b->more + k));
        x = add(x, mul(load(some, b->r + row * b->gate_row + k), inner));
      }
      __m512 u = load(some, b->u + row * b->gate_row + k), old = load(some, b->h + row * b->h_row + k);
      __m512 h = add(mul(u, old), mul(sub(number(1), u), tanh_of(x)));
      _mm512_mask_storeu_ps(b->to_h + row * b->to_row + k, some, h);
    }
  }
}
#endif

static void (*const state_loops[])(const tn__lstm_block *b) = TN__FNS(state);
static void (*const output_loops[])(const tn__lstm_block *b) = TN__FNS(output);
static void (*const gru_loops[])(const tn__gru_gates *b) = TN__FNS(gru);
static void (*const gru_output_loops[])(const tn__gru_output *b) = TN__FNS(gru_output);

void tn__lstm_block_state(const tn__lstm_block *b) { state_loops[tn__vectors()](b); }
void tn__lstm_block_output(const tn__lstm_block *b) { output_loops[tn__vectors()](b); }
void tn__gru_gates_run(const tn__gru_gates *b) { gru_loops[tn__vectors()](b); }
void tn__gru_output_run(const tn__gru_output *b) { gru_output_loops[tn__vectors()](b); }
