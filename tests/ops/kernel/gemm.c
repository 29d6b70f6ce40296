/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: correct for every size around the edges of tiles, with the same bits on every
 * path. */
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/elements/vectors.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <conformance/support/tap.h>

/* Small integers, so that sums are exact in every type and order. */
static double number_at(int64_t i) { return (double)((i * 7919 + 13) % 17 - 8); }

typedef struct matrices {
  tn__gemm_plan plan;
  int parts; /* numbers per element: 2 if complex */
  void *a, *b, *c, *scratch, *packed;
} matrices;

static size_t number_size(tn__gemm_type type)
{
  return type == TN__GEMM_F32 || type == TN__GEMM_I32 || type == TN__GEMM_C64 ? 4 : 8;
}

static double get(tn__gemm_type type, const void *data, int64_t i)
{
  switch (type) {
  case TN__GEMM_F32:
  case TN__GEMM_C64: return ((const float *)data)[i];
  case TN__GEMM_I32: return ((const int32_t *)data)[i];
  case TN__GEMM_I64: return (double)((const int64_t *)data)[i];
  default: return ((const double *)data)[i];
  }
}

static void put(tn__gemm_type type, void *data, int64_t i, double value)
{
  switch (type) {
  case TN__GEMM_F32:
  case TN__GEMM_C64: ((float *)data)[i] = (float)value; break;
  case TN__GEMM_I32: ((int32_t *)data)[i] = (int32_t)value; break;
  case TN__GEMM_I64: ((int64_t *)data)[i] = (int64_t)value; break;
  default: ((double *)data)[i] = value;
  }
}

static void fill(tn__gemm_type type, void *data, int64_t n)
{
  for (int64_t i = 0; i < n; i++) put(type, data, i, number_at(i));
}

/* Exactly as large as the matrix, so that a memory checker detects reads past its end. */
static void *room(int64_t n, size_t size) { return malloc((size_t)n * size + (n == 0)); }

static void make(matrices *x, tn__gemm_type type, int64_t m, int64_t n, int64_t k, bool across_a, bool across_b,
                 bool serial)
{
  *x = (matrices){ .parts = type == TN__GEMM_C64 || type == TN__GEMM_C128 ? 2 : 1 };
  x->plan = (tn__gemm_plan){ .type = type, .m = m, .n = n, .k = k, .serial = serial, .c_row = n };
  x->plan.a_row = across_a ? 1 : k;
  x->plan.a_col = across_a ? m : 1;
  x->plan.b_row = across_b ? 1 : n;
  x->plan.b_col = across_b ? k : 1;
  tn__gemm_plan_choose(&x->plan);
  size_t size = number_size(type);
  x->a = room(m * k * x->parts, size);
  x->b = room(k * n * x->parts, size);
  x->c = room(m * n * x->parts, size);
  x->scratch = aligned_alloc(64, (x->plan.scratch + 127) / 64 * 64);
  fill(type, x->a, m * k * x->parts);
  fill(type, x->b, k * n * x->parts);
  memset(x->c, 0x5a, (size_t)(m * n * x->parts) * size);
}

static void drop(matrices *x)
{
  free(x->a);
  free(x->b);
  free(x->c);
  free(x->scratch);
  free(x->packed);
}

/* One element of C by the definition; part 1 is the imaginary part. */
static double element(const matrices *x, int64_t i, int64_t j, int part)
{
  const tn__gemm_plan *p = &x->plan;
  double re = 0, im = 0;
  for (int64_t t = 0; t < p->k; t++) {
    int64_t at = (i * p->a_row + t * p->a_col) * x->parts, bt = (t * p->b_row + j * p->b_col) * x->parts;
    double ar = get(p->type, x->a, at), br = get(p->type, x->b, bt);
    double ai = x->parts == 2 ? get(p->type, x->a, at + 1) : 0, bi = x->parts == 2 ? get(p->type, x->b, bt + 1) : 0;
    re += ar * br - ai * bi;
    im += ar * bi + ai * br;
  }
  return part == 0 ? re : im;
}

static void check(const matrices *x, const char *path)
{
  const tn__gemm_plan *p = &x->plan;
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n * x->parts; j++) {
      double found = get(p->type, x->c, i * p->n * x->parts + j);
      double wanted = element(x, i, j / x->parts, (int)(j % x->parts));
      if (found == wanted) continue;
      FAIL("type %d, %d x %d x %d, strides %d %d, %s: element %d %d is %g, wanted %g", (int)p->type, (int)p->m,
           (int)p->n, (int)p->k, (int)p->a_col, (int)p->b_col, path, (int)i, (int)j, found, wanted);
      return;
    }
}

static void check_product(tn__gemm_type type, int64_t m, int64_t n, int64_t k, bool across_a, bool across_b)
{
  matrices x;
  make(&x, type, m, n, k, across_a, across_b, true);
  tn__gemm_run(&x.plan, NULL, x.a, x.b, x.c, NULL);
  check(&x, "serial");
  x.packed = aligned_alloc(64, (tn__gemm_packed_bytes(&x.plan) + 127) / 64 * 64);
  tn__gemm_pack(&x.plan, x.b, x.packed);
  x.plan.packed = true;
  memset(x.c, 0x5a, (size_t)(m * n * x.parts) * number_size(type));
  tn__gemm_run(&x.plan, NULL, x.a, x.packed, x.c, NULL);
  check(&x, "packed");
  drop(&x);
}

static const tn__gemm_type types[] = { TN__GEMM_F32, TN__GEMM_F64, TN__GEMM_I32,
                                       TN__GEMM_I64, TN__GEMM_C64, TN__GEMM_C128 };

static void gemm__is_correct_around_the_edges_of_tiles(void)
{
  static const int64_t sizes[] = { 1, 2, 3, 5, 6, 7, 8, 12, 13, 16, 17, 26, 33 };
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    for (size_t t = 0; t < 6; t++)
      for (size_t i = 0; i < 13; i++)
        for (size_t j = 0; j < 13; j++) {
          bool across_a = (i + j) % 2 != 0, across_b = (i + j) % 3 == 0;
          check_product(types[t], sizes[i], sizes[j], sizes[(i + 2 * j) % 13], across_a, across_b);
        }
  }
  tn__vectors_limit(TN__VECTORS);
}

/* Rows that are a page apart are copied together; for a single row, B is read row by row. */
static void gemm__is_correct_for_rows_that_collide_in_the_cache(void)
{
  check_product(TN__GEMM_F32, 15, 20, 1024, false, false);
  check_product(TN__GEMM_F64, 25, 9, 1024, false, false);
  check_product(TN__GEMM_F32, 1, 4200, 37, false, false);
  check_product(TN__GEMM_I32, 1, 1030, 50, false, false);
}

static void gemm__is_correct_beyond_one_block_of_terms(void)
{
  for (size_t t = 0; t < 6; t++) {
    check_product(types[t], 7, 18, TN__GEMM_KC + 3, false, false);
    check_product(types[t], 1, 140, 2 * TN__GEMM_KC + 1, false, true);
    check_product(types[t], 13, 5, 3 * TN__GEMM_KC, true, true);
  }
}

/* Several groups of a transposed A are gathered at once, and the last two groups share their rows. */
static void gemm__is_correct_for_many_groups_of_a_transposed_a(void)
{
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    for (size_t t = 0; t < 6; t++)
      for (int64_t m = 22; m < 63; m += t == 0 ? 1 : 13)
        check_product(types[t], m, m % 2 == 0 ? 32 : 37, TN__GEMM_KC + 5, true, false);
  }
  tn__vectors_limit(TN__VECTORS);
}

static void gemm__wide_panels_serve_one_row(void)
{
  for (int64_t n = 60; n < 140; n++) check_product(TN__GEMM_F32, 1, n, 5, false, false);
}

static void gemm__uses_scratch_in_chunks(void)
{
  matrices x;
  make(&x, TN__GEMM_F64, 40, 700, 1100, false, true, false); /* more than one chunk of terms and of columns */
  CHECK(x.plan.k_chunk > 0 && x.plan.k_chunk < 1100);
  CHECK(x.plan.n_chunk < 700);
  tn_kernel_ctx ctx = { .struct_size = sizeof ctx };
  tn__gemm_run(&x.plan, &ctx, x.a, x.b, x.c, x.scratch);
  check(&x, "scratch");
  drop(&x);
  make(&x, TN__GEMM_F32, 70, 300, 900, true, false, false); /* both operands are gathered */
  CHECK(x.plan.k_chunk > 0);
  tn__gemm_run(&x.plan, &ctx, x.a, x.b, x.c, x.scratch);
  check(&x, "scratch, transposed");
  drop(&x);
}

/* ---- fused ops ---- */

typedef struct negate {
  tn__gemm_then then;
  int64_t elements;
} negate;

static void negate_rows(const tn__gemm_then *then, int n, void *const *c, int64_t column, int64_t columns)
{
  negate *all = (negate *)then;
  for (int i = 0; i < n; i++)
    for (int64_t j = 0; j < columns; j++) ((float *)c[i])[j] *= -1;
  all->elements += n * columns;
}

/* The clamped value. */
static double followed(double x, tn__gemm_clamp clamp)
{
  if (clamp != TN__GEMM_NO_CLAMP && x < 0) x = 0;
  if (clamp == TN__GEMM_RELU6 && x > 6) x = 6;
  return x;
}

/* All operands are misaligned by one float. */
static void check_followed(int64_t m, int64_t n, int64_t k, tn__gemm_clamp clamp, bool packed)
{
  float *a = malloc((size_t)(m * k + 1) * 4), *b = malloc((size_t)(k * n + 1) * 4);
  float *c = malloc((size_t)(m * n + 1) * 4), *bias = malloc((size_t)(n + 1) * 4);
  tn__gemm_plan p = { .type = TN__GEMM_F32, .m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = n, .b_col = 1,
                      .c_row = n, .serial = true };
  fill(TN__GEMM_F32, a, m * k + 1);
  fill(TN__GEMM_F32, b, k * n + 1);
  fill(TN__GEMM_F32, bias, n + 1);
  tn__gemm_plan_choose(&p);
  void *panels = aligned_alloc(64, (tn__gemm_packed_bytes(&p) + 127) / 64 * 64);
  if (packed) tn__gemm_pack(&p, b + 1, panels);
  p.packed = packed;
  negate all = { { bias + 1, clamp, negate_rows }, 0 };
  tn__gemm_run_then(&p, NULL, a + 1, packed ? panels : (const void *)(b + 1), c + 1, NULL, &all.then);
  CHECK_INT(all.elements, m * n);
  int64_t wrong = 0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t t = 0; t < k; t++) sum += (double)a[1 + i * k + t] * (double)b[1 + t * n + j];
      wrong += c[1 + i * n + j] != -followed(sum + (double)bias[1 + j], clamp);
    }
  CHECK_MSG(wrong == 0, "%d x %d x %d, clamp %d, packed %d: %d elements are wrong", (int)m, (int)n, (int)k, (int)clamp,
            packed, (int)wrong);
  free(a), free(b), free(c), free(bias), free(panels);
}

static void gemm__applies_fused_ops_once(void)
{
  static const int64_t sizes[][3] = { { 1, 1, 1 },   { 1, 70, 9 },  { 2, 37, 5 },   { 13, 16, 4 },  { 14, 10, 300 },
                                      { 26, 24, 17 }, { 5, 300, 3 }, { 3, 10, 5000 }, { 7, 4, 2 }, { 4, 5, 0 } };
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int clamp = 0; clamp <= TN__GEMM_RELU6; clamp++)
        for (int packed = 0; packed < 2; packed++)
          check_followed(sizes[i][0], sizes[i][1], sizes[i][2], (tn__gemm_clamp)clamp, packed != 0);
  }
  tn__vectors_limit(TN__VECTORS);
}

static void gemm__a_clamp_keeps_nan(void)
{
  static const float values[] = { NAN, -1, 9 };
  float a[2] = { 1, 1 }, b[2][17], c[17], bias[17] = { 0 };
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    for (int j = 0; j < 17; j++) b[0][j] = b[1][j] = values[j % 3];
    tn__gemm_plan p = { .type = TN__GEMM_F32, .m = 1, .n = 17, .k = 2, .a_row = 2, .a_col = 1, .b_row = 17, .b_col = 1,
                        .c_row = 17, .serial = true };
    tn__gemm_plan_choose(&p);
    tn__gemm_run_then(&p, NULL, a, b, c, NULL, &(tn__gemm_then){ bias, TN__GEMM_RELU6, NULL });
    for (int j = 0; j < 17; j++)
      if (j % 3 == 0) CHECK(c[j] != c[j]);
      else CHECK(c[j] == (j % 3 == 1 ? 0 : 6));
  }
  tn__vectors_limit(TN__VECTORS);
}

static void gemm__of_no_terms_is_zero(void)
{
  matrices x;
  make(&x, TN__GEMM_F32, 3, 4, 0, false, false, true);
  tn__gemm_run(&x.plan, NULL, x.a, x.b, x.c, NULL);
  for (int i = 0; i < 12; i++) CHECK_DOUBLE(((float *)x.c)[i], 0, 0);
  drop(&x);
}

/* One after another, with one rounding a term or two. */
static float sum_of(const float *a, const float *b, int terms, int b_row, bool fused)
{
  float sum = 0;
  for (int t = 0; t < terms; t++) {
    volatile float product = a[t] * b[t * b_row];
    sum = fused ? fmaf(a[t], b[t * b_row], sum) : sum + product;
  }
  return sum;
}

/* Results must not depend on whether a constant is packed. If they are reproducible, they do not depend on the
 * processor's vectors either. */
static void check_paths(bool reproducible)
{
  const bool fused = tn__vectors_for(reproducible) >= TN__FUSED_AVX2;
  enum { M = 21, N = 45, K = 300 };
  static float a[M * K], b[K * N], c[3][M * N];
  for (int i = 0; i < M * K; i++) a[i] = 1.0f / (float)(i % 97 + 1);
  for (int i = 0; i < K * N; i++) b[i] = 1.0f / (float)(i % 89 + 3);
  tn__gemm_plan p = { .type = TN__GEMM_F32, .m = M, .n = N, .k = K, .serial = true,
                      .reproducible = reproducible };
  p.a_row = K, p.a_col = 1, p.b_row = N, p.b_col = 1, p.c_row = N;
  tn__gemm_plan_choose(&p);
  tn__gemm_run(&p, NULL, a, b, c[0], NULL);
  void *packed = aligned_alloc(64, (tn__gemm_packed_bytes(&p) + 127) / 64 * 64);
  tn__gemm_pack(&p, b, packed);
  p.packed = true;
  tn__gemm_run(&p, NULL, a, packed, c[1], NULL);
  free(packed);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) c[2][i * N + j] = sum_of(a + i * K, b + j, K, N, fused);
  CHECK_BYTES(c[0], c[2], sizeof c[0]);
  CHECK_BYTES(c[1], c[2], sizeof c[1]);
}

static void gemm__all_paths_have_the_same_bits(void)
{
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    check_paths(true);
    check_paths(false);
  }
  tn__vectors_limit(TN__VECTORS);
}

TAP_MAIN(
  TAP_TEST(gemm__is_correct_around_the_edges_of_tiles),
  TAP_TEST(gemm__is_correct_beyond_one_block_of_terms),
  TAP_TEST(gemm__is_correct_for_many_groups_of_a_transposed_a),
  TAP_TEST(gemm__wide_panels_serve_one_row),
  TAP_TEST(gemm__is_correct_for_rows_that_collide_in_the_cache),
  TAP_TEST(gemm__uses_scratch_in_chunks),
  TAP_TEST(gemm__applies_fused_ops_once),
  TAP_TEST(gemm__a_clamp_keeps_nan),
  TAP_TEST(gemm__of_no_terms_is_zero),
  TAP_TEST(gemm__all_paths_have_the_same_bits))
