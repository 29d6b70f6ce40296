/* SPDX-License-Identifier: Apache-2.0 */
/* Eager operations called by name with tensor attributes, whose plans are kept for the next
 * call; memory limits and tensors created by the program. */
#include "conformance/support/eager_kit.h"
#include "conformance/support/oom.h"

/* A constant with the elements of a tensor. The caller owns the tensor exclusively again
 * afterwards. */
static tn_status constant(te *t, tn_tensor *value, tn_eager_handle *out)
{
  const tn_eager_attr attrs[] = { { .name = "value", .kind = TN_ATTR_TENSOR, .at = value },
                                  { .name = "dtype", .kind = TN_ATTR_TYPE, .i = tn_tensor_dtype(value) } };
  return tn_eager_call(t->session, "Const", attrs, 2, NULL, 0, out, 1, NULL, &t->err);
}

/* A constant of copied elements. */
static tn_eager_handle constant_of(te *t, tn_dtype dtype, int64_t n, const void *data)
{
  tn_tensor *value;
  tn_eager_handle out;
  REQUIRE_OK(tn_tensor_from_data(dtype, &n, 1, data, (size_t)n * tn_dtype_size(dtype), &value, &t->err), &t->err);
  REQUIRE_OK(constant(t, value, &out), &t->err);
  CHECK(tn_tensor_is_exclusive(value)); /* no other owner */
  tn_tensor_unref(value);
  return out;
}

static void check_bytes(te *t, tn_eager_handle h, tn_dtype dtype, int64_t n, const void *data)
{
  tn_tensor *tensor;
  REQUIRE_OK(tn_eager_tensor(t->session, h, &tensor, &t->err), &t->err);
  CHECK_INT(tn_tensor_dtype(tensor), dtype);
  REQUIRE_INT(tn_tensor_elements(tensor), n);
  CHECK_BYTES(tn_tensor_data(tensor), data, (size_t)n * tn_dtype_size(dtype));
  tn_tensor_unref(tensor);
  te_release(t, h);
}

/* The same elements and type in another shape. */
static void check_shape(te *t, int64_t rows, int64_t columns, const float *data)
{
  const int64_t dims[] = { rows, columns };
  tn_tensor *value, *made;
  tn_eager_handle h;
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, dims, 2, data, (size_t)(rows * columns) * sizeof *data, &value, &t->err),
             &t->err);
  REQUIRE_OK(constant(t, value, &h), &t->err);
  REQUIRE_OK(tn_eager_tensor(t->session, h, &made, &t->err), &t->err);
  REQUIRE_INT(tn_tensor_rank(made), 2);
  CHECK_BYTES(tn_tensor_dims(made), dims, sizeof dims);
  tn_tensor_unref(value);
  tn_tensor_unref(made);
  te_release(t, h);
}

/* A tensor whose dtype differs from the attribute's; its bytes equal those of a valid one. */
static void check_type(te *t, const int32_t *data)
{
  static const int64_t three[] = { 3 };
  tn_tensor *value;
  tn_eager_handle h;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, three, 1, data, 3 * sizeof *data, &value, &t->err), &t->err);
  const tn_eager_attr attrs[] = { { .name = "value", .kind = TN_ATTR_TENSOR, .at = value },
                                  { .name = "dtype", .kind = TN_ATTR_TYPE, .i = TN_FLOAT } };
  CHECK_STATUS(tn_eager_call(t->session, "Const", attrs, 2, NULL, 0, &h, 1, NULL, &t->err), TN_INVALID_ARGUMENT,
               &t->err);
  tn_tensor_unref(value);
}

static void eager_named__tensors_are_compared_by_their_elements(void)
{
  static const float a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 };
  static const int32_t n[] = { 0x3f800000, 0x40000000, 0x40400000 }; /* the bytes of a */
  FOR_RUNTIMES(runtime)
  {
    for (int async = 0; async < 2; async++) {
      te t;
      te_init(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
      t.options.async = (tn_bool)async;
      te_start(&t);
      for (int i = 0; i < 3; i++) {
        check_bytes(&t, constant_of(&t, TN_FLOAT, 3, a), TN_FLOAT, 3, a);
        check_bytes(&t, constant_of(&t, TN_FLOAT, 3, b), TN_FLOAT, 3, b);
        check_bytes(&t, constant_of(&t, TN_FLOAT, 2, a), TN_FLOAT, 2, a);
        check_bytes(&t, constant_of(&t, TN_INT32, 3, n), TN_INT32, 3, n);
        check_bytes(&t, constant_of(&t, TN_FLOAT, 0, a), TN_FLOAT, 0, a);
        check_shape(&t, 3, 1, a);
        check_shape(&t, 1, 3, a);
        check_type(&t, n);
      }
      te_fini(&t);
    }
  }
}

/* Making a plan takes many allocations; finding a kept plan takes only those of the call. */
static void eager_named__equal_elements_find_the_same_plan(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    static float a[1000];
    tn_eager_handle h[50];
    te_open(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    uint64_t before = tn_test_allocations();
    h[0] = constant_of(&t, TN_FLOAT, 1000, a);
    uint64_t first = tn_test_allocations() - before;
    h[1] = constant_of(&t, TN_FLOAT, 1000, a);
    before = tn_test_allocations();
    for (int i = 2; i < 50; i++) h[i] = constant_of(&t, TN_FLOAT, 1000, a);
    uint64_t each = (tn_test_allocations() - before) / 48;
    CHECK_MSG(each <= 6 && first >= 5 * each, "%d allocations, then %d for each", (int)first, (int)each);
    for (int i = 0; i < 50; i++) check_bytes(&t, h[i], TN_FLOAT, 1000, a);
    te_fini(&t);
  }
}

static void eager_named__strings_are_compared_by_their_texts(void)
{
  static const char *const texts[][2] = { { "ab", "c" }, { "a", "bc" }, { "", "abc" },
                                          { "a text that does not fit in an element", "c" } };
  static const int64_t two[] = { 2 };
  te t;
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  for (int i = 0; i < 12; i++) {
    tn_tensor *value, *made;
    tn_eager_handle h;
    REQUIRE_OK(tn_tensor_from_strings(two, 1, texts[i % 4], NULL, &value, &t.err), &t.err);
    REQUIRE_OK(constant(&t, value, &h), &t.err);
    tn_tensor_unref(value);
    REQUIRE_OK(tn_eager_tensor(t.session, h, &made, &t.err), &t.err);
    for (int64_t k = 0; k < 2; k++) {
      const char *text;
      size_t n;
      REQUIRE_OK(tn_tensor_get_string(made, k, &text, &n, &t.err), &t.err);
      CHECK_INT(n, strlen(texts[i % 4][k]));
      CHECK_BYTES(text, texts[i % 4][k], n);
    }
    tn_tensor_unref(made);
  }
  te_fini(&t);
}

/* The kept plan has a copy of the elements: the program may change its memory, and gets it back. */
static void eager_named__the_tensor_is_read_only_during_the_call(void)
{
  te t;
  te_told told = { 0 };
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  for (int i = 0; i < 6; i++) {
    tn_tensor *value;
    tn_eager_handle h;
    told.value = (float)(i % 2);
    REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, NULL, 0, &told.value, sizeof(float), te_tell, &told, &value, &t.err), &t.err);
    REQUIRE_OK(constant(&t, value, &h), &t.err);
    tn_tensor_unref(value);
    CHECK_INT(atomic_load(&told.n), i + 1);
    told.value = 77;
    CHECK_DOUBLE(te_value(&t, h), i % 2, 0);
  }
  te_fini(&t);
}

/* Many tensors, some of them large. Room for other ops remains. */
static void eager_named__kept_plans_are_bounded(void)
{
  enum { LARGE = 2 * 1024, BEYOND = 64 * 1024, CALLS = 4000 };
  static float a[BEYOND];
  te t;
  uint64_t most = 0, before = tn_test_live_bytes();
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  for (int i = 0; i < CALLS; i++) {
    a[5] = (float)i;
    tn_eager_handle h = constant_of(&t, TN_FLOAT, i % 50 == 0 ? BEYOND : LARGE, a);
    check_bytes(&t, h, TN_FLOAT, i % 50 == 0 ? BEYOND : LARGE, a);
    uint64_t now = tn_test_live_bytes();
    if (now > most) most = now;
  }
  CHECK_MSG(most - before < CALLS * (uint64_t)LARGE * sizeof(float), "%llu bytes", (unsigned long long)(most - before));
  static const char *const others[] = { "AddV2", "Sub", "Mul", "Maximum" };
  tn_eager_handle x = te_scalar(&t, 1), in[] = { x, x }, out;
  for (int i = 0; i < 8; i++) {
    uint64_t allocations = tn_test_allocations();
    REQUIRE_OK(tn_eager_call(t.session, others[i % 4], NULL, 0, in, 2, &out, 1, NULL, &t.err), &t.err);
    if (i >= 4) CHECK_MSG(tn_test_allocations() - allocations <= 6, "%s was not kept", others[i % 4]);
    te_release(&t, out);
  }
  te_fini(&t);
}

static tn_status use(void *arg)
{
  static const float a[] = { 1, 2, 3 };
  static const int64_t three[] = { 3 };
  te t = { .options = *(tn_eager_options *)arg };
  tn_tensor *value = NULL;
  tn_eager_handle h;
  tn_error_init(&t.err);
  tn_status st = tn_eager_session_create(&t.options, &t.session, &t.err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, three, 1, a, sizeof a, &value, &t.err);
  for (int i = 0; i < 2 && st == TN_OK; i++) st = constant(&t, value, &h);
  tn_tensor_unref(value);
  tn_eager_session_destroy(t.session);
  tn_error_clear(&t.err);
  return st;
}

static void eager_named__nothing_leaks_without_memory(void)
{
  te t;
  te_init(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  tn_test_oom_sweep(use, &t.options);
  te_fini(&t);
}

/* ---- limits of memory ---- */

static void eager_named__tensors_of_the_program_are_not_limited(void)
{
  enum { BYTES = 1 << 20 };
  static char memory[BYTES];
  static const int64_t dims[] = { BYTES / sizeof(float) };
  te t;
  te_init(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  t.options.memory_limit_bytes = 2 * BYTES;
  te_start(&t);
  tn_eager_handle brought[8], made[3];
  for (int i = 0; i < 8; i++) {
    tn_tensor *tensor;
    if (i % 2 == 0) REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, dims, 1, memory, BYTES, NULL, NULL, &tensor, &t.err), &t.err);
    else REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 1, &tensor, &t.err), &t.err);
    memset(tn_tensor_data(tensor), 0, BYTES);
    REQUIRE_OK(tn_eager_from_tensor(t.session, tensor, &brought[i], &t.err), &t.err);
    tn_tensor_unref(tensor);
  }
  CHECK_INT(te_counters(&t).bytes, 8 * BYTES); /* the session deletes them, so they are counted */
  REQUIRE_OK(tn_eager_neg(t.session, brought[0], &made[0], &t.err), &t.err);
  CHECK_STATUS(tn_eager_neg(t.session, brought[1], &made[1], &t.err), TN_RESOURCE_EXHAUSTED,
               &t.err); /* the struct exceeds the limit */
  for (int i = 0; i < 8; i++) te_release(&t, brought[i]);
  CHECK_STATUS(tn_eager_from_data(t.session, TN_FLOAT, dims, 1, memory, BYTES, &made[2], &t.err), TN_RESOURCE_EXHAUSTED,
               &t.err);
  te_release(&t, made[0]);
  REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  REQUIRE_OK(tn_eager_from_data(t.session, TN_FLOAT, dims, 1, memory, BYTES, &made[2], &t.err), &t.err);
  CHECK_INT(te_counters(&t).bytes, BYTES);
  te_fini(&t);
}

TAP_MAIN(TAP_TEST(eager_named__tensors_are_compared_by_their_elements),
         TAP_TEST(eager_named__equal_elements_find_the_same_plan),
         TAP_TEST(eager_named__strings_are_compared_by_their_texts),
         TAP_TEST(eager_named__the_tensor_is_read_only_during_the_call), TAP_TEST(eager_named__kept_plans_are_bounded),
         TAP_TEST(eager_named__nothing_leaks_without_memory),
         TAP_TEST(eager_named__tensors_of_the_program_are_not_limited))
