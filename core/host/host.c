/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of include/tenon/host.h, filled from its own lists: a function that a list names and the library lacks
 * does not link. */
#include <core/host/host.h>

#include <pthread.h>

#include <core/registry/registry.h>
#include <core/tensor/tensor_internal.h>
#include <tenon/host.h>
#include <tenon/resource.h>

#define ENTRY(type, name, params, args) name,
#define ENTRY_VOID(name, params, args) name,

static const tn_host_base base = { sizeof(base),    tn_error_set, tn_error_wrap,
                                   tn_error_prefix, tn_log,       TN_HOST_BASE(ENTRY, ENTRY_VOID) };
static const tn_host_tensor tensor = { sizeof(tensor), TN_HOST_TENSOR(ENTRY, ENTRY_VOID) };
static const tn_host_graph graph = { sizeof(graph), TN_HOST_GRAPH(ENTRY, ENTRY_VOID) };
static const tn_host_op op = { sizeof(op), TN_HOST_OP(ENTRY, ENTRY_VOID) };
static const tn_host_kit kit = { sizeof(kit), TN_HOST_KIT(ENTRY, ENTRY_VOID) };

/* No optional table yet. */
static const void *get_extension(const char *name, uint32_t version)
{
  (void)name;
  (void)version;
  return NULL;
}

static const tn_host table = {
  .struct_size = TN_HOST_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .get_extension = get_extension,
  .base = &base,
  .tensor = &tensor,
  .graph = &graph,
  .op = &op,
  .kit = &kit,
};

const tn_host *tn__host_table(void) { return &table; }

static void install(void)
{
  tn__plugin_hold = tn__registry_hold_plugin;
  tn__plugin_drop = tn__registry_drop_plugin;
  tn__registry_set_host(&table);
}

void tn__host_install(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
}
