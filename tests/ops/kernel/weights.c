/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in shorter types: rounding, scales, and products with the same bits on every path. */
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/product/weights.h>
#include <ops/kernel/elements/vectors.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <conformance/support/tap.h>

static float of_bits(uint32_t bits)
{
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static float of_bfloat16(uint16_t half) { return of_bits((uint32_t)half << 16); }

static void weights__round_to_the_nearest_bfloat16(void)
{
  static const struct { uint32_t from; uint16_t to; } cases[] = {
    { 0x00000000, 0x0000 }, { 0x80000000, 0x8000 }, { 0x3f800000, 0x3f80 },
    { 0x3f808000, 0x3f80 }, { 0x3f818000, 0x3f82 }, /* ties to even */
    { 0x3f808001, 0x3f81 }, { 0x3f807fff, 0x3f80 }, { 0xbf80ffff, 0xbf81 },
    { 0x7f7fffff, 0x7f80 }, /* larger than all numbers */
    { 0x7f800000, 0x7f80 }, { 0xff800000, 0xff80 }, { 0x00008001, 0x0001 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint16_t to;
    const float from = of_bits(cases[i].from);
    tn__weights_to_bfloat16(&from, 1, &to);
    CHECK_MSG(to == cases[i].to, "%08x becomes %04x, wanted %04x", (unsigned)cases[i].from, to, cases[i].to);
  }
  static const uint32_t nans[] = { 0x7f800001, 0x7fffffff, 0xffc00000, 0xffffffff };
  for (size_t i = 0; i < 4; i++) {
    uint16_t to;
    const float from = of_bits(nans[i]);
    tn__weights_to_bfloat16(&from, 1, &to);
    CHECK_MSG(of_bfloat16(to) != of_bfloat16(to), "the NaN %08x becomes %04x", (unsigned)nans[i], to);
  }
}

static void weights__scales_are_those_of_columns(void)
{
  const float w[3][4] = { { 1, 0, -2, 1e-44f }, { -127, 0, 1, 0 }, { 63, -0.0f, 0.5f, 0 } };
  float by_row[4], by_column[4];
  int8_t q[3][4];
  CHECK(tn__weights_scales(w[0], 3, 4, 4, 1, by_row));
  CHECK(by_row[0] == 1 && by_row[1] == 0 && by_row[2] == 2.0f / 127);
  float turned[4][3];
  for (int i = 0; i < 12; i++) turned[i % 4][i / 4] = w[i / 4][i % 4];
  CHECK(tn__weights_scales(turned[0], 3, 4, 1, 3, by_column));
  CHECK_BYTES(by_row, by_column, sizeof by_row);
  tn__weights_to_int8(w[0], 3, 4, by_row, q[0]);
  CHECK(q[0][0] == 1 && q[1][0] == -127 && q[2][0] == 63);
  CHECK(q[0][1] == 0 && q[1][1] == 0 && q[2][1] == 0);
  CHECK(q[0][2] == -127 && q[1][2] == 64 && q[2][2] == 32); /* 63.5 and 31.75 */
}

static void weights__int8_has_no_infinity_and_no_nan(void)
{
  static const float odd[] = { INFINITY, -INFINITY, NAN };
  for (int i = 0; i < 3; i++) {
    float w[6] = { 1, 2, 3, 4, 5, 6 }, scales[3];
    w[4] = odd[i];
    CHECK(!tn__weights_scales(w, 2, 3, 3, 1, scales));
    CHECK(!tn__weights_scales(w, 3, 2, 1, 3, scales));
  }
}

/* ---- products ---- */

typedef struct sizes {
  int64_t m, n, k;
} sizes;

/* One after another, as the product's kernels add, with the column's scale at the end. */
static float wanted(const tn__gemm_plan *p, const float *a, const float *b, const float *scales, int64_t i, int64_t j)
{
  const bool fused = tn__gemm_variant_find(p->type, p->n, p->reproducible) >= TN__GEMM_FUSED;
  float sum = 0;
  for (int64_t t = 0; t < p->k; t++) {
    float w = b[t * p->b_row + j * p->b_col];
    if (p->weights == TN__GEMM_INT8) {
      int8_t q;
      tn__weights_to_int8(&w, 1, 1, scales + j, &q);
      w = q;
    } else {
      uint16_t half;
      tn__weights_to_bfloat16(&w, 1, &half);
      w = of_bfloat16(half);
    }
    volatile float product = a[i * p->k + t] * w;
    sum = fused ? fmaf(a[i * p->k + t], w, sum) : sum + product;
  }
  return p->weights == TN__GEMM_INT8 ? sum * scales[j] : sum;
}

static void check_product(sizes z, tn__gemm_weights weights, bool across, bool reproducible, const tn__gemm_then *then)
{
  tn__gemm_plan p = { .type = TN__GEMM_F32, .m = z.m, .n = z.n, .k = z.k, .a_row = z.k, .a_col = 1, .c_row = z.n,
                      .b_row = across ? 1 : z.n, .b_col = across ? z.k : 1, .serial = true, .packed = true,
                      .weights = weights, .reproducible = reproducible };
  tn__gemm_plan_choose(&p);
  float *a = malloc((size_t)(z.m * z.k) * sizeof *a), *b = malloc((size_t)(z.k * z.n) * sizeof *b);
  float *c = malloc((size_t)(z.m * z.n) * sizeof *c), *scales = malloc((size_t)z.n * sizeof *scales);
  for (int64_t i = 0; i < z.m * z.k; i++) a[i] = (float)((i * 7919 + 13) % 31 - 15) / 7;
  for (int64_t i = 0; i < z.k * z.n; i++) b[i] = (float)((i * 104729 + 7) % 101 - 50) / 13;
  void *packed = aligned_alloc(64, (tn__gemm_packed_bytes(&p) + 127) / 64 * 64);
  CHECK(tn__gemm_pack(&p, b, packed));
  tn__weights_scales(b, z.k, z.n, p.b_row, p.b_col, scales);
  tn__gemm_run_then(&p, NULL, a, packed, c, NULL, then);
  for (int64_t i = 0; i < z.m; i++)
    for (int64_t j = 0; j < z.n; j++) {
      float x = wanted(&p, a, b, scales, i, j);
      if (then != NULL) x += then->bias[j];
      if (then != NULL && then->clamp == TN__GEMM_RELU && x < 0) x = 0;
      CHECK_MSG(c[i * z.n + j] == x, "%d x %d x %d, weights %d, across %d, vectors %d: element %d %d is %g, wanted %g",
                (int)z.m, (int)z.n, (int)z.k, (int)weights, across, tn__vectors_for(reproducible), (int)i, (int)j,
                (double)c[i * z.n + j], (double)x);
    }
  free(a);
  free(b);
  free(c);
  free(scales);
  free(packed);
}

static void weights__products_have_the_same_bits_everywhere(void)
{
  static const sizes all[] = { { 1, 1, 1 }, { 1, 7, 1 }, { 2, 1, 9 }, { 1, 130, 300 }, { 2, 33, 513 }, { 3, 16, 20 },
                               { 6, 45, 257 }, { 13, 70, 40 }, { 21, 17, 300 }, { 1, 65, 2500 }, { 60, 300, 270 } };
  static float bias[300];
  for (int j = 0; j < 300; j++) bias[j] = (float)(j % 9 - 4);
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
      for (int way = 0; way < 8; way++) {
        const tn__gemm_then then = { bias, way & 1 ? TN__GEMM_RELU : TN__GEMM_NO_CLAMP, NULL };
        check_product(all[i], way & 4 ? TN__GEMM_INT8 : TN__GEMM_BFLOAT16, way & 1, way & 2, i % 2 ? &then : NULL);
      }
  }
  tn__vectors_limit(TN__VECTORS);
}

static void weights__of_zeros_give_exact_zeros(void)
{
  static float b[64][20], a[64], c[20];
  for (int i = 0; i < 64; i++) a[i] = 1e30f, b[i][3] = 1;
  tn__gemm_plan p = { .type = TN__GEMM_F32, .m = 1, .n = 20, .k = 64, .a_row = 64, .a_col = 1, .b_row = 20, .b_col = 1,
                      .c_row = 20, .serial = true, .packed = true, .weights = TN__GEMM_INT8 };
  tn__gemm_plan_choose(&p);
  void *packed = aligned_alloc(64, (tn__gemm_packed_bytes(&p) + 127) / 64 * 64);
  CHECK(tn__gemm_pack(&p, b, packed));
  tn__gemm_run(&p, NULL, a, packed, c, NULL);
  for (int j = 0; j < 20; j++) CHECK(j == 3 ? fabsf(c[j] - 64e30f) < 1e26f : c[j] == 0);
  free(packed);
}

TAP_MAIN(
  TAP_TEST(weights__round_to_the_nearest_bfloat16),
  TAP_TEST(weights__scales_are_those_of_columns),
  TAP_TEST(weights__int8_has_no_infinity_and_no_nan),
  TAP_TEST(weights__products_have_the_same_bits_everywhere),
  TAP_TEST(weights__of_zeros_give_exact_zeros))
