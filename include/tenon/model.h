/* SPDX-License-Identifier: Apache-2.0 */
/* Models: a graph with what belongs to it. A SavedModel folder, a MetaGraph with a checkpoint, or a
 * frozen GraphDef is opened; a session of it has its variables restored and its tables initialised;
 * signatures name inputs and outputs by key.
 *
 *   tn_model *model;
 *   tn_session *session;
 *   tn_model_open("half_plus_two", NULL, &model, err);
 *   tn_model_session(model, NULL, &session, err);
 *   tn_model_call(session, "serving_default", (const char *[]){ "x" }, &x, 1, (const char *[]){ "y" }, &y, 1, err);
 *
 * Threads: any thread may use an open model. Since 0.1 */
#ifndef TENON_MODEL_H
#define TENON_MODEL_H

#include <tenon/session.h>

TN_BEGIN_DECLS

#ifndef TN_PLUGIN

typedef struct tn_model tn_model;

/* Options of opening; NULL = all defaults. New fields are only added at the end. */
typedef struct tn_model_options {
  size_t struct_size;
  const char *const *tags; /* n_tags tags; the MetaGraph with exactly these is chosen. NULL: the one with the tag
                            * "serve", else the only one */
  size_t n_tags;
  const char *checkpoint;  /* a checkpoint whose variables are restored, instead of the model's own: as for
                            * tn_checkpoint_open. NULL: the model's own, if it has one */
  const char *const *folders; /* n_folders folders that the graph may read besides the model's own */
  size_t n_folders;
} tn_model_options;

enum { TN_MODEL_GRAPH = 1, TN_MODEL_META_GRAPH = 2, TN_MODEL_SAVED = 3 };

/* Opens a model: reads its graph, signatures and lists of assets, but no variables.
 * path     the folder of a SavedModel (or its saved_model.pb or .pbtxt), a MetaGraph (.meta), or a
 *          GraphDef in any format that tn_graph_import_file reads.
 * Returns  TN_NOT_FOUND (no such file; no MetaGraph has these tags: the message lists those there
 *          are), TN_DATA_LOSS (damaged), TN_INVALID_ARGUMENT (not a model; several MetaGraphs and no
 *          tags; an asset outside of the folder), TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_model_open(const char *path, const tn_model_options *options, tn_model **out, tn_error *err);
/* Frees the model when the last session of it is destroyed. NULL allowed. Since 0.1 */
TN_API void tn_model_close(tn_model *model);

/* ---- what a model is ---- */

/* All facts are borrowed from the model. */
typedef struct tn_model_info {
  size_t struct_size;
  int32_t kind;               /* TN_MODEL_... */
  const char *path;           /* of the file that was read, absolute */
  const char *made_by;        /* version of the TensorFlow that wrote it: "2.21.0"; "" = unknown */
  const char *git_version;    /* of that TensorFlow, "" = unknown */
  const char *checkpoint;     /* prefix of the variables' checkpoint, NULL = none */
  const char *restore_op;     /* of the saver, NULL = none */
  const char *init_op;        /* NULL = none */
  size_t n_tag_sets;          /* MetaGraphs in the file */
  size_t tag_set;             /* the opened one */
  size_t n_signatures;
  size_t n_assets;
  tn_bool stripped_defaults;  /* attributes with default values were left out of the file */
  tn_bool reserved[7];
} tn_model_info;

/* A signature: inputs and outputs by key. */
typedef struct tn_model_signature {
  size_t struct_size;
  const char *name;        /* "serving_default" */
  const char *method_name; /* "tensorflow/serving/predict"; "" for none */
  size_t n_inputs, n_outputs; /* keys of tensors: a sparse or ragged one has a key for each component */
} tn_model_signature;

/* An input or output of a signature. A sparse or ragged one is listed with one entry for each
 * component, KEY/values, KEY/indices, KEY/dense_shape or KEY/0, KEY/1, ... */
typedef struct tn_model_endpoint {
  size_t struct_size;
  const char *key;
  const char *tensor;  /* "serving_default_x:0" */
  tn_dtype dtype;
  int32_t rank;        /* -1 = unknown */
  const int64_t *dims; /* -1 = unknown */
  tn_bool has_default; /* need not be fed */
  tn_bool reserved[3];
} tn_model_endpoint;

/* The caller sets out->struct_size. Since 0.1 */
TN_API tn_status tn_model_info_of(const tn_model *model, tn_model_info *out, tn_error *err);
/* The tags of MetaGraph i; tag k, NULL past the end. Since 0.1 */
TN_API const char *tn_model_tag(const tn_model *model, size_t i, size_t k);
/* Signature i, in the order of the names. TN_OUT_OF_RANGE past the end. Since 0.1 */
TN_API tn_status tn_model_signature_at(const tn_model *model, size_t i, tn_model_signature *out, tn_error *err);
/* The signature of a name; NULL: "serving_default", else the only one. TN_NOT_FOUND lists the
 * signatures. Since 0.1 */
TN_API tn_status tn_model_signature_find(const tn_model *model, const char *name, tn_model_signature *out,
                                         tn_error *err);
/* Input or output i of a signature, in the order of the keys. TN_NOT_FOUND (the signature),
 * TN_OUT_OF_RANGE. Since 0.1 */
TN_API tn_status tn_model_input_at(const tn_model *model, const char *signature, size_t i, tn_model_endpoint *out,
                                   tn_error *err);
TN_API tn_status tn_model_output_at(const tn_model *model, const char *signature, size_t i, tn_model_endpoint *out,
                                    tn_error *err);
/* Asset i: the path of its file, and the tensor that is fed with the path while the model is
 * initialised. NULL past the end. Since 0.1 */
TN_API const char *tn_model_asset(const tn_model *model, size_t i, const char **tensor);

/* The model's graph, borrowed. Nodes may be added to it. Since 0.1 */
TN_API tn_graph *tn_model_graph(const tn_model *model);

/* ---- sessions ---- */

/* Makes a session of the model: sets the graph, restores the variables, and runs the init op with
 * the assets' paths fed. The session holds the model.
 * options  NULL = defaults. A target "" is the runtime with the highest rank.
 * Returns  as tn_session_create, tn_session_set_graph, tn_checkpoint_read_many and tn_session_run.
 *          The model's graph decides what it needs: a restore or init op that it lacks is
 *          TN_NOT_FOUND. Blocks. Any thread. Since 0.1 */
TN_API tn_status tn_model_session(tn_model *model, const tn_session_options *options, tn_session **out, tn_error *err);

/* The model of a session made by tn_model_session, borrowed; NULL for other sessions. Since 0.1 */
TN_API tn_model *tn_session_model(const tn_session *session);

/* Calls a signature: feeds inputs by key and fetches outputs by key.
 * signature    NULL: as for tn_model_signature_find.
 * inputs       n_inputs keys, one tensor each; borrowed. Inputs with a default may be left out. A
 *              key may also be the name of a tensor, "node:0".
 * outputs      n_outputs keys; fetched[i] receives a new tensor, owned by the caller.
 * Returns      TN_NOT_FOUND (no such signature or key: the message lists those there are),
 *              TN_INVALID_ARGUMENT (an input is missing), TN_FAILED_PRECONDITION (the session is not
 *              of a model), else as tn_session_run. Blocks. Any thread. Since 0.1 */
TN_API tn_status tn_model_call(tn_session *session, const char *signature, const char *const *inputs,
                               tn_tensor *const *feeds, size_t n_inputs, const char *const *outputs,
                               tn_tensor **fetched, size_t n_outputs, tn_error *err);

/* Prepares such a call for repeated use with tn_session_run_callable.
 * options  as for tn_session_make_callable. Since 0.1 */
TN_API tn_status tn_model_callable(tn_session *session, const tn_run_options *options, const char *signature,
                                   const char *const *inputs, size_t n_inputs, const char *const *outputs,
                                   size_t n_outputs, tn_callable *out, tn_error *err);

/* ---- saving ---- */

/* A signature to save. Keys and tensors are given in pairs; tensors as "node:0". */
typedef struct tn_model_signature_spec {
  size_t struct_size;
  const char *name;        /* "serving_default" */
  const char *method_name; /* NULL: "tensorflow/serving/predict" */
  const char *const *input_keys;
  const char *const *input_tensors;
  size_t n_inputs;
  const char *const *output_keys;
  const char *const *output_tensors;
  size_t n_outputs;
} tn_model_signature_spec;

/* Options of saving; NULL = all defaults. New fields are only added at the end. */
typedef struct tn_model_save_options {
  size_t struct_size;
  const char *const *tags; /* n_tags tags; NULL: those of the session's model, else "serve" */
  size_t n_tags;
  const tn_model_signature_spec *signatures; /* n_signatures of them; NULL: those of the session's model */
  size_t n_signatures;
} tn_model_save_options;

/* Writes a SavedModel from a session: its graph, signatures, the current values of its variables,
 * and its assets. The session may be one of a model, or any other session; then the options give
 * the signatures. TensorFlow loads the result as a model of version 1
 * (tf.saved_model.load, tf.compat.v1.saved_model.load). A variable without a value is left out of
 * the files. Memory besides that of the session is at most the size of its graph.
 * folder   must not exist, or be empty. It appears under its name when it is complete.
 * options  may be NULL.
 * Returns  TN_ALREADY_EXISTS, TN_INVALID_ARGUMENT (a signature names a tensor that the graph lacks),
 *          else as tn_checkpoint_save. Blocks. Any thread. Since 0.1 */
TN_API tn_status tn_model_save(tn_session *session, const char *folder, const tn_model_save_options *options,
                               tn_error *err);

enum { TN_FREEZE_INLINE = 1u << 0 /* put the bodies of called functions into the graph */ };

/* Makes a graph of one signature in which variables are constants with their current values, and
 * nodes that the outputs do not need are gone. Inputs keep their tensor names; the outputs' names
 * are those of the signature's tensors.
 * signature  NULL: as for tn_model_signature_find.
 * Returns    TN_FAILED_PRECONDITION (a variable without a value; not a session of a model),
 *            TN_UNIMPLEMENTED (the outputs need a table or another resource that is not a variable,
 *            named), TN_RESOURCE_EXHAUSTED. The caller releases *out with tn_graph_unref. Any thread.
 *            Since 0.1 */
TN_API tn_status tn_model_freeze(tn_session *session, const char *signature, uint32_t flags, tn_graph **out,
                                 tn_error *err);

#endif

TN_END_DECLS

#endif
