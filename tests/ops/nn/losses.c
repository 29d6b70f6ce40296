/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, cross entropies and L2Loss: rows of all lengths around the sizes of vectors and blocks, compared with sums
 * in double, for each kind of vectors; NaN and infinities. */
#include <math.h>
#include <ops/kernel/elements/vectors.h>
#include <stdlib.h>

#include "conformance/support/plan_kit.h"

#define FEED(name, type, dims) \
  NODE(name, "Placeholder", "", TYPE("dtype", type) "attr { key: 'shape' value { shape { " dims " } } }")
#define ROWS D(-1) D(-1)
#define GRAPH                                                                                                \
  FEED("x", "DT_FLOAT", ROWS) FEED("w", "DT_FLOAT", ROWS) FEED("c", "DT_INT32", D(-1))                        \
      NODE("softmax", "Softmax", "input: 'x'", F) NODE("half", "L2Loss", "input: 'x'", F)                     \
          NODE("dense", "SoftmaxCrossEntropyWithLogits", "input: 'x' input: 'w'", F)                          \
              NODE("sparse", "SparseSoftmaxCrossEntropyWithLogits", "input: 'x' input: 'c'",                  \
                   F TYPE("Tlabels", "DT_INT32"))

enum { SOFTMAX, LOSS, GRADIENT, SPARSE_LOSS, SPARSE_GRADIENT, HALF, FETCHES };
static const char *const fetches[] = { "softmax:0", "dense:0", "dense:1", "sparse:0", "sparse:1", "half:0" };

typedef struct batch {
  int64_t rows, n;
  tn_tensor *t[3]; /* x, w, c */
  tn_tensor *out[FETCHES];
} batch;

static float *floats(tn_tensor *t) { return tn_tensor_data(t); }

static void make(batch *b, int64_t rows, int64_t n)
{
  const int64_t dims[] = { rows, n };
  *b = (batch){ .rows = rows, .n = n };
  for (int k = 0; k < 2; k++) {
    REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, &b->t[k], NULL), NULL);
    for (int64_t i = 0; i < rows * n; i++)
      floats(b->t[k])[i] = k == 0 ? (float)((i * 7919) % 211 - 105) / 10 : (float)((i * 31) % 7) / 8;
  }
  REQUIRE_OK(tn_tensor_create(TN_INT32, dims, 1, &b->t[2], NULL), NULL);
  for (int64_t i = 0; i < rows; i++) ((int32_t *)tn_tensor_data(b->t[2]))[i] = (int32_t)((i * 5 + 3) % n);
}

static void drop(batch *b)
{
  for (int k = 0; k < 3; k++) tn_tensor_unref(b->t[k]);
  for (int k = 0; k < FETCHES; k++) tn_tensor_unref(b->out[k]);
}

static void run(batch *b)
{
  static const char *const feeds[] = { "x:0", "w:0", "c:0" };
  ts t;
  tp_open(&t, GRAPH, 1, "");
  REQUIRE_OK(tn_session_run(t.session, NULL, feeds, b->t, 3, fetches, b->out, FETCHES, NULL, 0, NULL, &t.err), &t.err);
  ts_fini(&t);
}

static void check(const char *what, int64_t at, double found, double wanted)
{
  CHECK_MSG(fabs(found - wanted) <= 2e-6 * (1 + fabs(wanted)), "%s %d is %.9g, wanted %.9g", what, (int)at, found,
            wanted);
}

static void check_row(const batch *b, int64_t row)
{
  const float *x = floats(b->t[0]) + row * b->n, *w = floats(b->t[1]) + row * b->n;
  const int32_t class = ((int32_t *)tn_tensor_data(b->t[2]))[row];
  double most = -INFINITY, total = 0, loss = 0;
  for (int64_t i = 0; i < b->n; i++) most = fmax(most, (double)x[i]);
  for (int64_t i = 0; i < b->n; i++) total += exp((double)x[i] - most);
  for (int64_t i = 0; i < b->n; i++) {
    const double p = exp((double)x[i] - most) / total;
    loss += (double)w[i] * (log(total) - ((double)x[i] - most));
    check("softmax", i, (double)floats(b->out[SOFTMAX])[row * b->n + i], p);
    check("gradient", i, (double)floats(b->out[GRADIENT])[row * b->n + i], p - (double)w[i]);
    check("sparse gradient", i, (double)floats(b->out[SPARSE_GRADIENT])[row * b->n + i], p - (i == class));
  }
  check("loss", row, (double)floats(b->out[LOSS])[row], loss);
  check("sparse loss", row, (double)floats(b->out[SPARSE_LOSS])[row], log(total) - ((double)x[class] - most));
}

static void losses__are_right_for_all_lengths(void)
{
  static const int64_t lengths[] = { 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 1000, 1024, 1025, 2100 };
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
      batch b;
      make(&b, 3, lengths[k]);
      run(&b);
      for (int64_t row = 0; row < 3; row++) check_row(&b, row);
      drop(&b);
    }
  }
  tn__vectors_limit(TN__VECTORS);
}

/* More elements than one thread adds. */
static void losses__squares_are_added_in_parts(void)
{
  batch b;
  double sum = 0;
  make(&b, 70, 1001);
  run(&b);
  for (int64_t i = 0; i < 70 * 1001; i++) sum += (double)floats(b.t[0])[i] * (double)floats(b.t[0])[i] / 2;
  check("L2Loss", 0, (double)floats(b.out[HALF])[0], sum);
  drop(&b);
}

static void losses__keep_nan_and_infinities(void)
{
  static const float odd[] = { NAN, INFINITY, -INFINITY };
  for (size_t k = 0; k < 3; k++)
    for (int64_t at = 0; at < 70; at += 23) {
      batch b;
      make(&b, 2, 70);
      floats(b.t[0])[at] = odd[k];
      run(&b);
      const float *p = floats(b.out[SOFTMAX]);
      for (int64_t i = 0; i < 70; i++) {
        if (odd[k] < 0) CHECK(i == at ? p[i] < 1e-30f : !isnan(p[i]));
        else CHECK(isnan(p[i]));
        CHECK(!isnan(p[70 + i]));
      }
      CHECK(isnan(floats(b.out[SPARSE_LOSS])[0]) == (odd[k] >= 0 || isnan(odd[k])));
      CHECK(!isnan(floats(b.out[SPARSE_LOSS])[1]));
      drop(&b);
    }
}

TAP_MAIN(
  TAP_TEST(losses__are_right_for_all_lengths),
  TAP_TEST(losses__squares_are_added_in_parts),
  TAP_TEST(losses__keep_nan_and_infinities))
