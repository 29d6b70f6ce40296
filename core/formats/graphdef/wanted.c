/* SPDX-License-Identifier: Apache-2.0 */
/* Unregistered ops in a file: plugins that offer them are loaded before the import takes the graph's lock, because the
 * plugins' code runs then. Reads only names; malformed bytes are left to the import to report. */
#include <core/formats/graphdef/functions.h>
#include <core/formats/graphdef/import.h>

#include <string.h>

/* Field numbers of GraphDef and FunctionDefLibrary. */
enum { G_NODE = 1, G_LIBRARY = 2, L_FUNCTION = 1 };

typedef struct wanted {
  const tn_graph *graph;
  tn__slice file;
  tn__slice seen[TN__IMPORT_CACHE]; /* recent ops: most nodes of a graph have one of a few ops */
} wanted;

static tn__slice *place_of(wanted *w, tn__slice op)
{
  const unsigned char *p = (const unsigned char *)op.data;
  size_t h = op.size * 31 + p[0] * 7u + p[op.size / 2] * 13u + p[op.size - 1] * 17u;
  return &w->seen[h % TN__IMPORT_CACHE];
}

/* Whether the file or the graph has a function of this name, which the nodes then call. */
static bool is_function(const wanted *w, tn__slice name)
{
  const tn__functions *there = atomic_load_explicit(&w->graph->functions, memory_order_acquire);
  if (tn__functions_find(there, name.data, name.size) != NULL) return true;
  tn__wire file = tn__wire_read(w->file);
  while (tn__wire_next(&file)) {
    if (!tn__wire_is(&file, G_LIBRARY, TN__WIRE_BYTES)) continue;
    tn__wire library = tn__wire_read(file.bytes);
    while (tn__wire_next(&library))
      if (tn__wire_is(&library, L_FUNCTION, TN__WIRE_BYTES) &&
          tn__slice_equal(tn__field_text(tn__field_text(library.bytes, TN__F_SIGNATURE), 1), name))
        return true;
  }
  return false;
}

/* The fast path: writers begin a node with its name and its op. Both must be shorter than 128 bytes, so that tag and
 * size take one byte each. */
static bool begins_with_op(tn__slice node, tn__slice *op)
{
  enum { NAME_TAG = TN__N_NAME << 3 | TN__WIRE_BYTES, OP_TAG = TN__N_OP << 3 | TN__WIRE_BYTES, SHORT = 128 };
  const unsigned char *p = (const unsigned char *)node.data;
  if (node.size < 2 || p[0] != NAME_TAG || p[1] >= SHORT || node.size < 4u + p[1]) return false;
  const unsigned char *q = p + 2 + p[1];
  if (q[0] != OP_TAG || q[1] >= SHORT || (size_t)q[1] > node.size - 4 - p[1]) return false;
  *op = (tn__slice){ (const char *)q + 2, q[1] };
  return true;
}

/* The op of a node; empty if it has none. */
static tn__slice op_of(tn__slice node)
{
  tn__slice op = { NULL, 0 };
  if (begins_with_op(node, &op)) return op;
  tn__wire fields = tn__wire_read(node);
  while (tn__wire_next(&fields))
    if (tn__wire_is(&fields, TN__N_OP, TN__WIRE_BYTES)) return fields.bytes;
  return op;
}

/* A function of the file or graph hides an op of the same name, so no plugin is loaded for it. */
static void look_at_node(wanted *w, tn__slice node)
{
  tn__slice op = op_of(node);
  if (op.size == 0) return;
  tn__slice *seen = place_of(w, op);
  if (tn__slice_equal(*seen, op)) return;
  *seen = op;
  if (tn__schema_find(op.data, op.size) == NULL && tn__op_source.offered(op.data, op.size) && !is_function(w, op))
    tn__op_source.load(op.data, op.size);
}

/* Nodes in function bodies need their ops, too. */
static void look_at_library(wanted *w, tn__slice library)
{
  tn__wire functions = tn__wire_read(library);
  while (tn__wire_next(&functions)) {
    if (!tn__wire_is(&functions, L_FUNCTION, TN__WIRE_BYTES)) continue;
    tn__wire f = tn__wire_read(functions.bytes);
    while (tn__wire_next(&f))
      if (tn__wire_is(&f, TN__F_NODE, TN__WIRE_BYTES)) look_at_node(w, f.bytes);
  }
}

void tn__import_want_ops(const tn_graph *graph, tn__slice file)
{
  wanted w = { .graph = graph, .file = file };
  tn__wire fields = tn__wire_read(file);
  while (tn__wire_next(&fields)) {
    if (tn__wire_is(&fields, G_NODE, TN__WIRE_BYTES)) look_at_node(&w, fields.bytes);
    if (tn__wire_is(&fields, G_LIBRARY, TN__WIRE_BYTES)) look_at_library(&w, fields.bytes);
  }
}
