/* SPDX-License-Identifier: Apache-2.0 */
/* The host table: each function is in its slot and can be looked up by name. */
#include <string.h>

#include <core/host/host.h>
#include <tenon/host.h>
#include <tenon/resource.h>

#include "conformance/support/tap.h"

typedef void (*function)(void);
#define SLOT(type, name, params, args) { #name, (function)name },
#define SLOT_VOID(name, params, args) { #name, (function)name },
typedef struct slot {
  const char *name;
  function at;
} slot;
static const slot of_base[] = {
  { "tn_error_set", (function)tn_error_set },
  { "tn_error_wrap", (function)tn_error_wrap },
  { "tn_error_prefix", (function)tn_error_prefix },
  { "tn_log", (function)tn_log },
  TN_HOST_BASE(SLOT, SLOT_VOID)
};
static const slot of_tensor[] = { TN_HOST_TENSOR(SLOT, SLOT_VOID) };
static const slot of_graph[] = { TN_HOST_GRAPH(SLOT, SLOT_VOID) };
static const slot of_op[] = { TN_HOST_OP(SLOT, SLOT_VOID) };
static const slot of_kit[] = { TN_HOST_KIT(SLOT, SLOT_VOID) };

/* A table is its size, followed by functions in the order of the list. */
static void check_table(const void *table, const slot *slots, size_t n)
{
  const tn_host *host = tn__host_table();
  size_t size;
  memcpy(&size, table, sizeof(size));
  REQUIRE_INT(size, sizeof(size) + n * sizeof(function));
  for (size_t i = 0; i < n; i++) {
    function at;
    memcpy(&at, (const char *)table + sizeof(size) + i * sizeof(at), sizeof(at));
    CHECK_MSG(at == slots[i].at, "slot %zu is not %s", i, slots[i].name);
    const void *named = host->get_extension(slots[i].name, 1);
    CHECK_MSG(memcmp(&named, &at, sizeof(at)) == 0, "%s by name", slots[i].name);
  }
}
#define CHECK_TABLE(part) check_table(tn__host_table()->part, of_##part, sizeof(of_##part) / sizeof(of_##part[0]))

/* P-34 P-35 */
static void host_table__has_each_function_in_its_slot_and_by_name(void)
{
  CHECK_TABLE(base);
  CHECK_TABLE(tensor);
  CHECK_TABLE(graph);
  CHECK_TABLE(op);
  CHECK_TABLE(kit);
}

/* P-34 */
static void host_table__has_null_for_unknown_extensions(void)
{
  const tn_host *host = tn__host_table();
  CHECK_NULL(host->get_extension("tn_no_such_function", 1));
  CHECK_NULL(host->get_extension("tn_kit_step", 0));
  CHECK_NULL(host->get_extension("tn_kit_step", 2));
  CHECK_NULL(host->get_extension("", 1));
  CHECK_NULL(host->get_extension(NULL, 1));
}

TAP_MAIN(TAP_TEST(host_table__has_each_function_in_its_slot_and_by_name),
         TAP_TEST(host_table__has_null_for_unknown_extensions))
