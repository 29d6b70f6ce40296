/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table, compared with a plain list. */
#include <ops/state/table/table_rows.h>

#include "conformance/support/tap.h"

#define RANGE 500

static void table_rows__are_found_after_removals(void)
{
  tn__rows rows;
  int64_t shadow[RANGE];
  uint32_t seed = 12345;
  tn_error err = { .struct_size = sizeof err };
  size_t count = 0;
  REQUIRE_OK(tn__rows_init(&rows, TN_INT32, 1, TN_INT64, 1, &err), &err);
  for (int i = 0; i < RANGE; i++) shadow[i] = -1;
  for (int step = 0; step < 20000; step++) {
    seed = seed * 1664525 + 1013904223;
    int32_t key = (int32_t)(seed >> 8) % RANGE;
    int64_t value = step;
    char gone[64] = { 0 };
    if (seed >> 30 != 0) {
      REQUIRE_OK(tn__rows_reserve(&rows, 1, &err), &err);
      tn__rows_put(&rows, &key, &value);
      count += shadow[key] < 0;
      shadow[key] = value;
    } else {
      CHECK_INT(tn__rows_remove(&rows, &key, gone), shadow[key] >= 0);
      count -= shadow[key] >= 0;
      shadow[key] = -1;
    }
    if (step % 100 != 0) continue;
    CHECK_INT(rows.n, count);
    for (int32_t k = 0; k < RANGE; k++) {
      const int64_t *found = tn__rows_find(&rows, &k);
      CHECK_INT(found == NULL ? -1 : *found, shadow[k]);
    }
  }
  tn__rows_fini(&rows);
}

TAP_MAIN(TAP_TEST(table_rows__are_found_after_removals))
