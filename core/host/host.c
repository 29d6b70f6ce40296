/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of include/tenon/host.h, filled from the lists of that header: if a list names a function that the library
 * lacks, linking fails. Also the hooks that lower rooms call: the source of missing ops, and the containers of a
 * factory. */
#include <core/host/host.h>

#include <pthread.h>
#include <string.h>

#include <core/graph/graph_structs.h>
#include <core/registry/registry.h>
#include <core/resource/container.h>
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

/* The functions of the tables by name, for plugins in languages that cannot read the header. */
typedef void (*function)(void);
#define NAMED(type, name, params, args) { #name, (function)name },
#define NAMED_VOID(name, params, args) { #name, (function)name },
static const struct {
  const char *name;
  function at;
} functions[] = {
  { "tn_error_set", (function)tn_error_set },
  { "tn_error_wrap", (function)tn_error_wrap },
  { "tn_error_prefix", (function)tn_error_prefix },
  { "tn_log", (function)tn_log },
  TN_HOST_BASE(NAMED, NAMED_VOID)
  TN_HOST_TENSOR(NAMED, NAMED_VOID)
  TN_HOST_GRAPH(NAMED, NAMED_VOID)
  TN_HOST_OP(NAMED, NAMED_VOID)
  TN_HOST_KIT(NAMED, NAMED_VOID)
};

/* The only extensions so far are these functions, each in version 1. */
static const void *get_extension(const char *name, uint32_t version)
{
  if (name == NULL || version != 1) return NULL;
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
    if (strcmp(functions[i].name, name) == 0) return (const void *)(uintptr_t)functions[i].at;
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

/* ---- ops of plugins ---- */

/* The op table looks for a missing op in plugins (core/registry/kernel_plugins.c). */
static void load_op(const char *name, size_t size)
{
  tn__host_install();
  tn__registry_want_op(name, size);
}

const tn__op_source_fns tn__op_source = { tn__registry_offers_op, load_op, tn__registry_explain_op };

/* ---- containers ---- */

static void free_containers(void *slot) { tn__containers_unref(slot); }

/* If two threads make the set at once, the first tn__factory_set_slot wins and the other thread uses its set. */
tn__containers *tn__factory_containers(tn__factory *factory)
{
  tn__containers *set = tn__factory_slot(factory);
  if (set != NULL) return set;
  set = tn__containers_create();
  if (set == NULL || tn__factory_set_slot(factory, set, free_containers)) return set;
  tn__containers_unref(set);
  return tn__factory_slot(factory);
}
