/* SPDX-License-Identifier: Apache-2.0 */
/* Models, and the files that make them up: a graph, the message around it, a checkpoint, assets.
 *
 * Files, from the bottom up: model, variable, saver_items, saver_function, saver, read_restored; checkpoint,
 * checkpoint_paths, report, restore; restore_model; facts; endpoints, call; open_session; session_save, save; freeze/.
 * A model is immutable once it is open; sessions of it hold a reference. */
#ifndef TN_CORE_MODEL_MODEL_H
#define TN_CORE_MODEL_MODEL_H

#include <core/formats/checkpoint/checkpoint.h>
#include <core/formats/savedmodel/savedmodel.h>
#include <core/session/session_internal.h>
#include <tenon/model.h>

struct tn_model {
  _Atomic uint32_t refs;
  int32_t kind;           /* TN_MODEL_... */
  char *path;             /* absolute; owned, as are the texts below */
  char *folder;           /* the SavedModel's, or that of the file */
  char *checkpoint;       /* prefix or path; NULL: none */
  bool own_checkpoint;    /* it is the one that the saver of the model wrote */
  char **assets;          /* a path for each asset of the MetaGraph */
  size_t n_assets;
  char **folders;         /* that the graph may read besides its own */
  size_t n_folders;
  tn__saved_model *saved; /* NULL: a GraphDef */
  size_t chosen;          /* the MetaGraph */
  tn_graph *graph;        /* a reference */
};

/* The MetaGraph of a model, NULL if it is a GraphDef. */
static inline const tn__metagraph *tn__model_meta(const tn_model *model)
{
  return model->saved == NULL ? NULL : &model->saved->graphs[model->chosen];
}
/* Makes a new session hold its model. */
void tn__model_hold(tn_session *session, tn_model *model);

/* The node's part of a tensor name: "node" of "node:1". */
static inline tn__slice tn__node_part(const char *tensor)
{
  const char *colon = strrchr(tensor, ':');
  return colon == NULL ? tn__slice_of(tensor) : (tn__slice){ tensor, (size_t)(colon - tensor) };
}
/* The node of a tensor name, NULL if the graph has none. */
static inline tn_operation *tn__node_of(const tn_graph *graph, const char *tensor)
{
  return tn__graph_find_text(graph, tn__node_part(tensor));
}

/* ---- facts.c ---- */

/* The signature of a name, NULL: the default one. TN_NOT_FOUND lists those there are. */
tn_status tn__model_signature(const tn_model *model, const char *name, const tn__signature_def **out, tn_error *err);

/* ---- endpoints.c ---- */

/* Finds the tensors of n keys, inputs or outputs of a signature (NULL: the model has none). A name that is no key but
 * the name of a tensor stands for itself. tensors[i] is borrowed from the model or from keys. */
tn_status tn__model_tensors(const tn_model *model, const tn__signature_def *signature, bool outputs,
                            const char *const *keys, size_t n, const char **tensors, tn_error *err);
/* Refuses a call that leaves out an input without a default. */
tn_status tn__model_check_inputs(const tn_model *model, const tn__signature_def *signature, const char *const *tensors,
                                 size_t n, tn_error *err);
/* Whether an endpoint has a default: its node is a PlaceholderWithDefault. */
bool tn__endpoint_has_default(const tn_model *model, const tn__endpoint *endpoint);

/* ---- variable.c: variables of a session ---- */

/* A variable of a graph: an operation VarHandleOp, VariableV2 or Variable. */
bool tn__is_variable(const tn_operation *op);
/* Lists the variables of a graph, an operation for each distinct one, in the order of the operations. *out is from
 * tn__alloc, with room for *n. */
tn_status tn__variables_list(tn_graph *graph, tn_operation ***out, size_t *n, tn_error *err);
/* The declared dtype and shape of a variable. dims is borrowed from the operation; rank -1: unknown. */
tn_status tn__variable_declared(const tn_operation *op, tn_dtype *dtype, const int64_t **dims, int32_t *rank,
                                tn_error *err);
/* Whether a value of this dtype and shape fits the declaration. */
bool tn__variable_fits(const tn_operation *op, tn_dtype dtype, const int64_t *dims, int32_t rank);
/* Creates the resources of n variables that do not exist yet, and gets all of them: references in resources[n], which
 * the caller releases. On failure there are none. */
tn_status tn__variables_get(tn_session *session, tn_operation *const *ops, size_t n, tn_resource **resources,
                            tn_error *err);
/* Gets the resource of a variable if it exists; *out is NULL if not. */
tn_status tn__variable_find(tn_session *session, const tn_operation *op, tn_resource **out, tn_error *err);
/* Reads the value of a variable. *out is NULL if it has none. */
tn_status tn__variable_value(tn_session *session, const tn_operation *op, tn_tensor **out, tn_error *err);
/* Assigns values to n variables: all or none. Takes over the references in values, also on failure. */
tn_status tn__variables_assign(tn_session *session, tn_operation *const *ops, tn_tensor **values, size_t n,
                               tn_error *err);

/* ---- saver.c: the restore op of a saver ---- */

/* A variable, and the tensor that the saver restores it from. Texts are borrowed from the graph. */
typedef struct tn__restored {
  tn_operation *variable;
  tn__slice key;
  tn__slice spec; /* "shape_and_slice" text, empty: the whole tensor */
} tn__restored;

typedef struct tn__saver {
  tn__restored *items;
  size_t n, room;
  tn__slice *unused; /* keys that the restore op reads without assigning them, such as that of an object graph */
  size_t n_unused, unused_room;
  bool usual; /* the items are all that the restore op does */
} tn__saver;

/* Reads what the restore op of a model does. A shape that is not the usual one sets `usual` to false; TN_NOT_FOUND: the
 * graph has no such node. */
tn_status tn__saver_read(const tn_model *model, tn__saver *out, tn_error *err);
/* saver_items.c */
tn_status tn__saver_add(tn__saver *saver, tn__restored item, tn_error *err);
tn_status tn__saver_add_unused(tn__saver *saver, tn__slice key, tn_error *err);
void tn__saver_fini(tn__saver *saver);
/* saver_function.c: adds the items of a call of a function. *usual: false if it does something else. */
tn_status tn__saver_read_function(tn_graph *graph, tn_operation *call, tn__saver *out, bool *usual, tn_error *err);

/* ---- read_restored.c ---- */

/* Whether the entry (NULL: none) has the dtype, and for a whole tensor the shape, that the item's variable declares. */
bool tn__restored_fits(const tn__restored *item, const tn__stored *entry);
/* Reads n values, all or none. *fits: false if one is missing or does not fit its variable; then none is read. */
tn_status tn__restored_read(tn__store *store, const tn__restored *items, size_t n, tn_tensor **values, bool *fits,
                            tn_error *err);
/* Reads n values and assigns them, all or none; nothing changes unless *fits. */
tn_status tn__restored_assign(tn_session *session, tn__store *store, const tn__restored *items, size_t n, bool *fits,
                              tn_error *err);

/* ---- restore_model.c ---- */

/* Restores the variables of a new session from the model's checkpoint. */
tn_status tn__model_restore(tn_model *model, tn_session *session, tn_error *err);

#endif
