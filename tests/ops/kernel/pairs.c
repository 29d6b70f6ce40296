/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit integers: exact for all types, numbers of terms, transposed and broadcast operands. */
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <stdlib.h>

#include "conformance/support/session_kit.h"

/* All values of 16 bits, also those that 8-bit operands do not have. */
static int16_t value(int64_t i) { return (int16_t)((i * 40503 + 12345) % 65536 - 32768); }

static void check_kernel(int64_t m, int64_t n, int64_t k, bool packed)
{
  tn__gemm_plan p = { .type = TN__GEMM_PAIRS, .m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = n, .b_col = 1,
                      .c_row = n, .serial = true };
  tn__gemm_plan_choose(&p);
  int16_t *a = malloc((size_t)(m * k) * 4), *b = malloc((size_t)(k * n) * 4);
  uint32_t *c = malloc((size_t)(m * n) * 4);
  void *panels = aligned_alloc(64, (tn__gemm_packed_bytes(&p) + 127) / 64 * 64);
  for (int64_t i = 0; i < 2 * m * k; i++) a[i] = value(i) / 2; /* two products of -2^15 squared exceed 32 bits */
  for (int64_t i = 0; i < 2 * k * n; i++) b[i] = value(3 * i);
  CHECK(tn__gemm_pack(&p, b, panels));
  p.packed = packed;
  tn__gemm_run(&p, NULL, a, packed ? panels : (void *)b, c, NULL);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      uint32_t sum = 0;
      for (int64_t t = 0; t < k; t++)
        for (int64_t h = 0; h < 2; h++) sum += (uint32_t)(a[2 * (i * k + t) + h] * b[2 * (t * n + j) + h]);
      CHECK_MSG(c[i * n + j] == sum, "%d x %d x %d, vectors %d: element %d %d is %u, wanted %u", (int)m, (int)n, (int)k,
                tn__vectors(), (int)i, (int)j, c[i * n + j], sum);
    }
  free(a);
  free(b);
  free(c);
  free(panels);
}

static void pairs__are_multiplied_exactly(void)
{
  static const int64_t sizes[][3] = { { 1, 1, 1 }, { 1, 130, 70 }, { 3, 17, 5 }, { 6, 32, 260 }, { 13, 45, 9 } };
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    tn__vectors_limit(vectors);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int packed = 0; packed < 2; packed++) check_kernel(sizes[i][0], sizes[i][1], sizes[i][2], packed != 0);
  }
  tn__vectors_limit(TN__VECTORS);
}

/* ---- BatchMatMulV3 ---- */

typedef struct shapes {
  int64_t m, n, k, a_batch, b_batch;
} shapes;

static int number(const tn_tensor *t, int64_t i)
{
  return tn_tensor_dtype(t) == TN_INT8 ? ((const int8_t *)tn_tensor_data(t))[i]
                                       : ((const uint8_t *)tn_tensor_data(t))[i];
}

static tn_tensor *bytes(tn_dtype dtype, int64_t batch, int64_t rows, int64_t columns)
{
  const int64_t dims[] = { batch, rows, columns };
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(dtype, dims, 3, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++)
    ((uint8_t *)tn_tensor_data(t))[i] = (uint8_t)(i % 11 == 0 ? 255 - i % 2 * 127 : i * 89 + 7); /* 255 and 128 often */
  return t;
}

/* b is a constant or fed. */
static tn_tensor *multiply(tn_tensor *const *in, bool across_a, bool across_b, bool constant)
{
  ts t;
  tn_operation *op;
  tn_tensor *y = NULL;
  ts_init(&t, 1);
  tn_operation_builder *b = tn_operation_begin(t.graph, "BatchMatMulV3", "y", 0);
  tn_output x = ts_placeholder(t.graph, "a", tn_tensor_dtype(in[0]));
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, constant ? ts_const_tensor(t.graph, "b", in[1])
                                     : ts_placeholder(t.graph, "b", tn_tensor_dtype(in[1])));
  tn_operation_set_type(b, "Tout", TN_INT32);
  tn_operation_set_bool(b, "adj_x", across_a);
  tn_operation_set_bool(b, "adj_y", across_b);
  REQUIRE_OK(tn_operation_finish(b, &op, &t.err), &t.err);
  ts_start(&t);
  const size_t n = constant ? 1 : 2;
  CHECK_OK(tn_session_run(t.session, NULL, NAMES("a:0", "b:0"), (tn_tensor **)in, n, NAMES("y:0"), &y, 1, NULL, 0, NULL,
                          &t.err), &t.err);
  ts_fini(&t);
  return y;
}

static void check_bytes(const shapes *z, int way, bool constant)
{
  const bool across_a = way & 1, across_b = way & 2;
  const tn_dtype ta = way & 4 ? TN_INT8 : TN_UINT8, tb = way & 8 ? TN_INT8 : TN_UINT8;
  tn_tensor *in[] = { bytes(ta, z->a_batch, across_a ? z->k : z->m, across_a ? z->m : z->k),
                      bytes(tb, z->b_batch, across_b ? z->n : z->k, across_b ? z->k : z->n) };
  tn_tensor *y = multiply(in, across_a, across_b, constant);
  const int64_t batch = z->a_batch > z->b_batch ? z->a_batch : z->b_batch;
  const int32_t *found = y == NULL ? NULL : tn_tensor_data(y);
  CHECK(found != NULL && tn_tensor_elements(y) == batch * z->m * z->n);
  for (int64_t i = 0; found != NULL && i < batch * z->m * z->n; i++) {
    const int64_t column = i % z->n, row = i / z->n % z->m, at = i / (z->m * z->n);
    const int64_t a = (z->a_batch > 1 ? at : 0) * z->m * z->k, b = (z->b_batch > 1 ? at : 0) * z->k * z->n;
    int32_t sum = 0;
    for (int64_t k = 0; k < z->k; k++)
      sum += number(in[0], a + (across_a ? k * z->m + row : row * z->k + k)) *
             number(in[1], b + (across_b ? column * z->k + k : k * z->n + column));
    CHECK_MSG(found[i] == sum, "%d x %d x %d, way %d: element %d is %d, wanted %d", (int)z->m, (int)z->n, (int)z->k,
              way, (int)i, found[i], sum);
  }
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  tn_tensor_unref(y);
}

static void pairs__of_bytes_give_exact_products(void)
{
  static const shapes all[] = { { 1, 1, 1, 1, 1 }, { 3, 5, 7, 1, 1 }, { 4, 33, 64, 2, 2 }, { 5, 16, 9, 3, 1 },
                                { 2, 20, 31, 1, 4 }, { 3, 4, 0, 2, 1 }, { 70, 90, 301, 1, 1 }, { 0, 3, 2, 1, 1 } };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (int way = 0; way < 32; way++) check_bytes(&all[i], way % 16, way >= 16);
}

TAP_MAIN(
  TAP_TEST(pairs__are_multiplied_exactly),
  TAP_TEST(pairs__of_bytes_give_exact_products))
