/* SPDX-License-Identifier: Apache-2.0 */
/* Object graphs: the objects of a program whose variables an object-based checkpoint stores. A bundle has the graph, a
 * TrackableObjectGraph message, as a scalar string under the key TN__OBJECT_GRAPH_KEY.
 *
 * Node 0 is the root. An object names others (children), has attributes, each with the key under which it is stored,
 * and, if it is an optimizer, slot variables: one for each variable and slot name. Objects may be shared, and the graph
 * may have cycles.
 *
 * A path joins the names from the root with '/'. A '/' within a name is written %2F. The attribute of a variable is
 * VARIABLE_VALUE, which a path does not name; another one follows a colon. */
#ifndef TN_CORE_FORMATS_OBJECTGRAPH_OBJECTGRAPH_H
#define TN_CORE_FORMATS_OBJECTGRAPH_OBJECTGRAPH_H

#include <core/base/arena.h>
#include <core/base/text.h>

#define TN__OBJECT_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

/* Immutable, so any number of threads may read it. Memory is linear in the size of the message. */
typedef struct tn__object_graph tn__object_graph;

/* Parses a message. `proto` and `file`, the name for messages, are borrowed as long as the graph lives. TN_DATA_LOSS:
 * malformed (with the byte), or an id that no node has; TN_RESOURCE_EXHAUSTED. */
tn_status tn__object_graph_read(tn__slice proto, const char *file, tn__object_graph **out, tn_error *err);
void tn__object_graph_destroy(tn__object_graph *graph); /* NULL allowed */

/* The key of a stored tensor: a checkpoint_key, and what an object with several tensors appends to it: the path
 * "table:table-keys" leads to the attribute `table` and the suffix "-keys". Borrowed from the message and the path. */
typedef struct tn__object_key {
  tn__slice key, suffix; /* suffix.size 0: none */
} tn__object_key;

/* Follows a path: "model/dense/kernel", "model/table:table-keys", or "OPTIMIZER:SLOT(VARIABLE)" for a slot variable.
 * TN_NOT_FOUND: the message has the part of the path that leads nowhere and at most 20 of the names there, the nearest
 * ones first. */
tn_status tn__object_graph_resolve(const tn__object_graph *graph, const char *path, tn__object_key *out, tn_error *err);

/* The key of the variable that was saved from the operation `name` of a graph (full_name). Returns the number of keys
 * that were saved under this name: 0; 1, then *key is set; or 2 for several. */
int tn__object_graph_named(const tn__object_graph *graph, tn__slice name, tn__slice *key);

/* The name of the operation that the variable under a key was saved from (full_name); empty: no variable, or no name.
 */
tn__slice tn__object_graph_name_of(const tn__object_graph *graph, tn__slice key);

/* A path that leads to a key. */
typedef struct tn__object_path {
  const char *path;
  tn__slice key;  /* the checkpoint_key */
  bool attribute; /* the path ends in ":attribute" */
} tn__object_path;

/* The most paths that are listed of a key. */
#define TN__OBJECT_PATHS 8

/* Lists paths breadth-first: a path with fewer names comes first. The paths of slot variables follow. Paths that lead
 * through a cycle are listed, too. Listing ends when it takes PATHS_LIMIT bytes (paths.c), which only a hostile graph
 * reaches; tn__object_graph_resolve has no such limit. The result is in the arena. TN_RESOURCE_EXHAUSTED. */
tn_status tn__object_graph_paths(const tn__object_graph *graph, tn__arena *arena, tn__object_path **out, size_t *n,
                                 tn_error *err);

#endif
