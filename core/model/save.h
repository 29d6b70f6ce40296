/* SPDX-License-Identifier: Apache-2.0 */
/* The state of saving a model, for the files of tn_model_save. */
#ifndef TN_CORE_MODEL_SAVE_H
#define TN_CORE_MODEL_SAVE_H

#include <core/model/model.h>
#include <core/resource/folders.h>

typedef struct tn__saving {
  tn_session *session;   /* borrowed */
  const tn_model *model; /* the session's; NULL: none */
  tn_graph *graph;       /* that is written: the session's, or a copy with a saver; a reference */
  tn_graph *held;        /* the session's graph if `graph` is a copy; a reference */
  tn__metagraph meta;    /* what is written around it */
  char *folder;          /* with a temporary name; NULL: not made yet */
  tn__arena arena;       /* of what `meta` refers to, unless the model has it */
} tn__saving;

/* save_saver.c: replaces the graph by a copy with nodes that save and restore all variables that have a value, and sets
 * the saver of the MetaGraph. *out lists the variables, as operations of the session's graph. A graph without such
 * variables stays as it is, and has no saver. */
tn_status tn__saver_add_new(tn__saving *saving, tn__saver *out, tn_error *err);

/* tree.c: removes a folder and everything in it, as far as possible. Follows no symbolic link. */
void tn__tree_remove(const char *folder);

#endif
