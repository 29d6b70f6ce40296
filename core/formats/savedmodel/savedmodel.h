/* SPDX-License-Identifier: Apache-2.0 */
/* SavedModels and MetaGraphs: reading the messages around a graph, and writing them. */
#ifndef TN_CORE_FORMATS_SAVEDMODEL_SAVEDMODEL_H
#define TN_CORE_FORMATS_SAVEDMODEL_SAVEDMODEL_H

#include <core/base/arena.h>
#include <core/formats/format.h>

/* A tensor of a signature. `tensor` is "node:0". */
typedef struct tn__endpoint {
  const char *key;
  const char *tensor;
  tn_dtype dtype; /* TN_DTYPE_INVALID: unknown */
  int32_t rank;   /* -1: unknown */
  const int64_t *dims;
  tn__slice value; /* a TensorProto, encoded: the signature's default for this input; no data: none */
} tn__endpoint;

/* Inputs and outputs are sorted by key. A composite one is an endpoint for each component: KEY/values, KEY/indices and
 * KEY/dense_shape of a coo_sparse, KEY/0, KEY/1, ... of a composite_tensor. */
typedef struct tn__signature_def {
  const char *name, *method_name; /* never NULL */
  tn__endpoint *inputs, *outputs;
  size_t n_inputs, n_outputs;
  tn__slice bytes; /* the SignatureDef, encoded, which is written unchanged; no data: it was built */
} tn__signature_def;

typedef struct tn__asset_def {
  const char *tensor;   /* "node:0" */
  const char *filename; /* within the folder assets, as the file says */
} tn__asset_def;

/* A MetaGraphDef without its graph, which stays encoded. Texts are UTF-8 without control characters; they are never
 * NULL unless it says so. */
typedef struct tn__metagraph {
  tn__slice graph; /* a GraphDef */
  const char *const *tags; /* sorted, without duplicates */
  size_t n_tags;
  const char *version, *git_version; /* of the TensorFlow that wrote it; "": unknown */
  bool stripped_defaults;
  tn__slice info; /* the MetaInfoDef, encoded, which is written unchanged; no data: none, or it was built */
  tn__signature_def *signatures; /* sorted by name; without those of the init op and of the training op */
  size_t n_signatures;
  const char *saver_filename, *saver_restore, *saver_save; /* "save/Const:0", "save/restore_all"; NULL: no saver */
  bool saver_sharded;
  int32_t saver_version; /* 1 or 2; 0: no saver */
  tn__slice saver;       /* the SaverDef, encoded, which is written unchanged; no data: none, or it was built */
  tn__asset_def *assets; /* in the order of the file, without duplicates */
  size_t n_assets;
  const char *init_op;    /* node name of the main or legacy init op; NULL: none */
  const char *train_op;   /* node name of the training op; NULL: none */
  tn__slice object_graph; /* SavedObjectGraph, encoded; no data: none */
  tn__slice bytes; /* the whole message, whose collections are written unchanged; no data: it was built */
} tn__metagraph;

/* The MetaGraphs of a file. Everything is in the arena, or in the bytes that `file` owns. */
typedef struct tn__saved_model {
  tn__arena arena;
  tn_buffer *file; /* a reference: the file's bytes, or those that its text was translated to */
  const char *name; /* of the file, for messages */
  bool is_text;
  bool is_meta; /* a MetaGraph (.meta), else a SavedModel */
  tn__metagraph *graphs;
  size_t n_graphs; /* at least 1 */
} tn__saved_model;

/* Whether bytes are a SavedModel or a MetaGraph, in wire format or as text, and not a GraphDef: by the structure of the
 * outer messages. Damaged bytes may be taken for neither. */
bool tn__saved_model_fits(tn__slice bytes);

/* Reads a saved_model.pb, or a saved_model.pbtxt (text form), or a MetaGraph (.meta, as bytes or text): *out has one
 * graph then. The content decides which it is. TN_DATA_LOSS: cut or malformed, with the byte (of text: line and
 * column). TN_NOT_FOUND: no such file, or the file has no MetaGraph: TensorFlow writes none into an empty file. */
tn_status tn__saved_model_open(const char *path, tn__saved_model **out, tn_error *err);
/* Likewise from bytes in memory, to which the model gets a reference. name: for messages, copied. */
tn_status tn__saved_model_read(tn_buffer *file, const char *name, tn__saved_model **out, tn_error *err);
void tn__saved_model_close(tn__saved_model *model); /* NULL allowed */

/* The number of the MetaGraph with exactly these tags, in any order; n 0: the one with only the tag "serve", else the
 * only one. TN_NOT_FOUND and TN_INVALID_ARGUMENT list the tag sets there are. */
tn_status tn__saved_model_choose(const tn__saved_model *model, const char *const *tags, size_t n, size_t *out,
                                 tn_error *err);

/* The path of an asset of the model in `folder`, with symbolic links resolved. TN_INVALID_ARGUMENT: it leads out of the
 * folder (.., an absolute name, a symbolic link), or is not a regular file; TN_NOT_FOUND: there is no such file. *path
 * is to be freed with tn__strfree. */
tn_status tn__asset_path(const char *folder, const char *filename, char **path, tn_error *err);

/* write.c: writes a saved_model.pb of one MetaGraph: `m` with the graph replaced by `graph`. The object graph is left
 * out, so TensorFlow loads it as a model of its first version. A collection of nodes that the graph lacks is left out,
 * too. A model that was not read from a file sets `tags`, `signatures` and what it has of the rest: slices have no
 * data, texts that are NULL count as empty, and names and keys need not be sorted. Errors of tn_graph_export and of
 * writing the file, which is then not there; TN_INVALID_ARGUMENT: it is larger than 2 GiB. */
tn_status tn__saved_model_write(const tn__metagraph *m, tn_graph *graph, const char *path, tn_error *err);

#endif
