/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up a schema by name. tn__schema_need also loads a plugin that offers the op. */
#include <core/graph/graph_structs.h>

#include <string.h>

const tn_op_schema *tn__schema_need(const char *name, size_t size)
{
  const tn_op_schema *s = tn__schema_find(name, size);
  if (s != NULL || !tn__op_source.offered(name, size)) return s;
  tn__op_source.load(name, size);
  return tn__schema_find(name, size);
}

const tn_op_schema *tn_op_schema_find(const char *op) { return op == NULL ? NULL : tn__schema_find(op, strlen(op)); }
