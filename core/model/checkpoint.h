/* SPDX-License-Identifier: Apache-2.0 */
/* An open checkpoint: the store with its tensors, and the object graph if it has one.
 *
 * The object graph and the list of its paths are read at first use. Threads that need one of them at the same time may
 * each read it; the first to finish publishes its own, the others free theirs. So no lock is held while files are
 * read. After an error nothing is published, and the next use tries again. */
#ifndef TN_CORE_MODEL_CHECKPOINT_H
#define TN_CORE_MODEL_CHECKPOINT_H

#include <core/formats/checkpoint/checkpoint.h>
#include <core/formats/objectgraph/objectgraph.h>
#include <stdatomic.h>
#include <tenon/checkpoint.h>

/* The object graph with the tensor whose bytes it borrows. */
typedef struct tn__objects {
  tn_tensor *message;
  tn__object_graph *graph;
} tn__objects;

/* A path through the object graph to a tensor of the checkpoint. */
typedef struct tn__listed_path {
  const char *path;
  const tn__stored *entry;
} tn__listed_path;

typedef struct tn__path_list {
  tn__arena arena;
  tn__listed_path *paths;
  size_t n;
} tn__path_list;

struct tn_checkpoint {
  tn__store *store;
  _Atomic(tn__objects *) objects;     /* NULL: not read yet */
  _Atomic(tn__path_list *) path_list; /* NULL: not read yet */
};

/* checkpoint_paths.c. The object graph, borrowed; NULL: the checkpoint has none. Errors of tn__store_read and
 * tn__object_graph_read. Any thread. */
tn_status tn__checkpoint_graph(const tn_checkpoint *checkpoint, const tn__object_graph **out, tn_error *err);
/* The tensor of a key, or else of a path through the object graph. Errors as tn_checkpoint_resolve; if there is no
 * object graph, those of tn__store_get. */
tn_status tn__checkpoint_locate(const tn_checkpoint *checkpoint, const char *key_or_path, const tn__stored **out,
                                tn_error *err);
/* The tensor that was saved from a variable of this name: the key itself, or the only key that the object graph has for
 * the name. *out is NULL if there is none, or several. */
tn_status tn__checkpoint_named(const tn_checkpoint *checkpoint, const char *name, const tn__stored **out,
                               tn_error *err);
void tn__objects_destroy(tn__objects *objects);  /* NULL allowed */
void tn__path_list_destroy(tn__path_list *list); /* NULL allowed */

#endif
