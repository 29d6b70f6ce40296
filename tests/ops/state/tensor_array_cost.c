/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a tensor array. */
#include <ops/state/list/tensor_array_store.h>

#include "conformance/support/session_kit.h"

/* The cost depends on the elements written, not on the index: here about a million. */
static void tensor_array_cost__depends_on_written_elements(void)
{
  const tn__array_spec spec = { .dtype = TN_FLOAT, .size = 1, .rank = -1, .grows = true };
  tn__array *a;
  tn_tensor *out[1] = { NULL }, *value[2] = { ts_scalar(3) };
  int32_t far = 1 << 20;
  REQUIRE_OK(tn__array_create(&spec, &a, NULL), NULL);
  REQUIRE_OK(tn__array_write(a, "a", &far, value, 1, NULL), NULL);
  CHECK_NULL(value[0]);
  uint64_t made = tn_test_allocations();
  CHECK_OK(tn__array_read(a, "a", &far, out, 1, NULL), NULL); /* returns the tensor itself, not a copy */
  CHECK_INT(tn_test_allocations(), made);
  CHECK_DOUBLE(ts_float(out[0]), 3, 0);
  tn_tensor_unref(out[0]);
  tn__array_destroy(a);
}

TAP_MAIN(TAP_TEST(tensor_array_cost__depends_on_written_elements))
