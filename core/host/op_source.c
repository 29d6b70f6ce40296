/* SPDX-License-Identifier: Apache-2.0 */
/* Where the op table looks for ops that it does not have: in plugins (core/registry/kernel_plugins.c). */
#include <core/graph/graph_structs.h>
#include <core/host/host.h>
#include <core/registry/registry.h>

static void load(const char *name, size_t size)
{
  tn__host_install();
  tn__registry_want_op(name, size);
}

const tn__op_source_fns tn__op_source = { tn__registry_offers_op, load, tn__registry_explain_op };
