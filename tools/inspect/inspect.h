/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `tenon inspect`. */
#ifndef TENON_TOOLS_INSPECT_INSPECT_H
#define TENON_TOOLS_INSPECT_INSPECT_H

#include <tools/tool.h>

enum { INSPECT_SHOWN = 40 }; /* entries of a list; --json shows all */

/* The nodes of an op, or the nodes of an op that cannot run for the same reason. */
typedef struct inspect_group {
  const char *op;
  char *types;          /* "T=float32, Tidx=int32" if these types have no kernel, else NULL */
  const char *function; /* that contains the nodes; NULL: the graph */
  const tn_operation *first;
  size_t order;      /* of the first one */
  uint8_t support;   /* TOOL_... */
  const char *needs; /* TOOL_IN_FUNCTION: the op that the function needs */
  size_t count;
} inspect_group;

typedef struct inspect_groups {
  inspect_group *items;
  size_t n;
  size_t room;
} inspect_groups;

typedef struct inspect_summary {
  const tool_source *source;
  tool_model model;
  inspect_groups ops, function_ops, unsupported;
  uint64_t file_bytes;
  uint64_t constant_bytes;
  size_t n_constants;
  size_t n_broken; /* unreadable constants; `why` describes the first */
  const tn_operation *broken;
  char *why;
  size_t n_blocked; /* nodes that depend on an unsupported node */
} inspect_summary;

/* What belongs to the model besides its graph (about.c). */
uint64_t inspect_file_bytes(const tool_source *source);
void inspect_print_about(const inspect_summary *s);
void inspect_print_files(const tool_source *source);
void inspect_json_about(const inspect_summary *s, json_t *root);

/* Functions (functions.c); prints nothing if there are none. */
void inspect_print_functions(const tn_graph *graph, FILE *out);
json_t *inspect_json_functions(const tn_graph *graph);

/* Counts ops (ops.c). */
void inspect_count_ops(inspect_summary *s);
void inspect_print_ops(const inspect_summary *s);
void inspect_print_unsupported(const inspect_summary *s);
json_t *inspect_json_ops(const inspect_groups *list);
json_t *inspect_json_unsupported(const inspect_summary *s);
void inspect_free_ops(inspect_summary *s);

#endif
