/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of names: of nodes, ops, and ends of edges. Device names are in devices.c. */
#include <core/graph/graph_structs.h>

#include <string.h>

enum { LETTER = 1, DIGIT = 2, NAME_FIRST = 4, NAME = 8, TYPE = 16 };

/* Not <ctype.h>, which depends on the locale. */
static const uint8_t class_of[256] = {
  ['a' ... 'z'] = LETTER | NAME_FIRST | NAME | TYPE,
  ['A' ... 'Z'] = LETTER | NAME_FIRST | NAME | TYPE,
  ['0' ... '9'] = DIGIT | NAME_FIRST | NAME | TYPE,
  ['.'] = NAME_FIRST | NAME | TYPE,
  ['_'] = NAME | TYPE,
  ['-'] = NAME | TYPE,
  ['>'] = NAME | TYPE,
  ['/'] = NAME | TYPE,
  ['\\'] = NAME,
  [':'] = TYPE,
};

static bool is(char c, unsigned wanted) { return (class_of[(unsigned char)c] & wanted) != 0; }

static bool all_are(const char *text, size_t size, unsigned wanted)
{
  for (size_t i = 0; i < size; i++)
    if (!is(text[i], wanted)) return false;
  return true;
}

bool tn__name_is_valid(const char *name, size_t size)
{
  return size > 0 && is(name[0], NAME_FIRST) && all_are(name, size, NAME);
}

bool tn__op_type_is_valid(const char *name, size_t size) { return size > 0 && all_are(name, size, TYPE); }

/* ---- ends of edges ---- */

bool tn__edge_name_parse(const char *text, size_t size, tn__edge_name *out)
{
  *out = (tn__edge_name){ { text, size }, 0, false };
  if (size == 0) return false;
  if (text[0] == '^') {
    *out = (tn__edge_name){ { text + 1, size - 1 }, -1, true };
    return size > 1 && memchr(text, ':', size) == NULL;
  }
  size_t digits = 0;
  while (digits < size && is(text[size - 1 - digits], DIGIT)) digits++;
  if (digits == size || text[size - 1 - digits] != ':') return memchr(text, ':', size) == NULL;
  if (digits == 0 || size - digits - 1 == 0) return false;
  int64_t index = 0;
  for (const char *p = text + size - digits; p < text + size; p++) {
    index = index * 10 + (*p - '0');
    if (index > INT32_MAX) index = INT32_MAX; /* no node has this output, so it is refused later */
  }
  out->node.size = size - digits - 1;
  out->index = (int32_t)index;
  return memchr(text, ':', out->node.size) == NULL;
}

tn_status tn__graph_parse_output(tn_graph *graph, const char *name, tn_output *out, tn_error *err)
{
  *out = (tn_output){ NULL, 0 };
  tn__edge_name edge;
  if (name == NULL || *name == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "a tensor name is %s",
                        name == NULL ? "NULL" : "empty"); /* S-NAM-08 */
  if (!tn__edge_name_parse(name, strlen(name), &edge))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "malformed tensor name '%s': wanted 'node' or 'node:index'", name);
  tn_operation *op = tn__graph_find_staged(graph, edge.node.data, edge.node.size);
  if (op == NULL)
    return tn_error_set(err, TN_NOT_FOUND, "'%s': the graph has no node '%.*s'", name, (int)edge.node.size,
                        edge.node.data); /* S-NAM-05 */
  if (edge.is_control)
    return tn_error_set(err, TN_OUT_OF_RANGE, "'%s' names a control edge, which carries no tensor",
                        name); /* S-NAM-04 */
  if (op->schema != NULL && (uint32_t)edge.index >= op->n_outputs)
    return tn_error_set(err, TN_OUT_OF_RANGE, "'%s': node '%s' (%s) has %u outputs", name, op->name, op->type,
                        op->n_outputs);
  *out = (tn_output){ op, edge.index };
  return TN_OK;
}
