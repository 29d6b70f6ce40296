/* SPDX-License-Identifier: Apache-2.0 */
/* The state of reading one file, shared by the files that read a SavedModel: open.c, read.c, metagraph.c, signature.c,
 * assets.c. */
#ifndef TN_CORE_FORMATS_SAVEDMODEL_READER_H
#define TN_CORE_FORMATS_SAVEDMODEL_READER_H

#include <core/formats/savedmodel/savedmodel.h>
#include <core/formats/wire.h>

/* Entries of maps. */
enum { TN__SM_KEY = 1, TN__SM_VALUE = 2 };
/* The fields of a MetaGraphDef. */
enum { TN__MG_INFO = 1, TN__MG_GRAPH = 2, TN__MG_SAVER = 3, TN__MG_COLLECTION = 4, TN__MG_SIGNATURE = 5,
       TN__MG_ASSET = 6, TN__MG_OBJECTS = 7 };

/* Names of signatures that are instructions to the loader, and the key of the output that they have. */
#define TN__SM_INIT_OP "__saved_model_init_op"
#define TN__SM_TRAIN_OP "__saved_model_train_op"
/* Collections with the same meaning, and the one with the assets. */
#define TN__SM_MAIN_OP "saved_model_main_op"
#define TN__SM_LEGACY_OP "legacy_init_op"
#define TN__SM_TRAIN_OPS "saved_model_train_op"
#define TN__SM_ASSETS "saved_model_assets"

typedef struct tn__sm_reader {
  tn__saved_model *model; /* its arena gets everything that is read */
  tn__slice file;         /* all bytes */
  tn_error *err;
} tn__sm_reader;

/* ---- read.c ---- */

/* TN_DATA_LOSS at a byte. */
tn_status tn__sm_malformed(const tn__sm_reader *r, const void *at, const char *what);
tn_status tn__sm_no_memory(const tn__sm_reader *r);
/* Turns TN_INVALID_ARGUMENT, of a reader of other files, into TN_DATA_LOSS. */
tn_status tn__sm_damage(tn_status st, tn_error *err);
/* The status after a loop over fields: TN_OK, or TN_DATA_LOSS for malformed bytes. */
tn_status tn__sm_after(const tn__sm_reader *r, const tn__wire *w);
/* Copies a text: UTF-8 without control characters. what: "a tag". */
tn_status tn__sm_text(const tn__sm_reader *r, tn__slice text, const char *what, const char **out);
/* An array of n zeroed elements in the arena. */
tn_status tn__sm_array(const tn__sm_reader *r, size_t n, size_t size, void *out);
/* Counts the fields of wire type bytes with this number. */
tn_status tn__sm_count(const tn__sm_reader *r, tn__slice message, uint32_t field, size_t *n);
/* Reads an entry of a map; what is missing is empty. */
tn_status tn__sm_entry(const tn__sm_reader *r, tn__slice entry, tn__slice *key, tn__slice *value);
/* The length of a text for a message. */
static inline int tn__sm_shown(tn__slice text) { return text.size > 200 ? 200 : (int)text.size; }

/* ---- metagraph.c ---- */

tn_status tn__sm_read_metagraph(tn__sm_reader *r, tn__slice bytes, tn__metagraph *out);

/* ---- signature.c ---- */

/* Reads the map of signatures of the MetaGraph; also sets init_op and train_op. */
tn_status tn__sm_read_signatures(tn__sm_reader *r, tn__metagraph *m);
/* The tensor that a TensorInfo names; "" if it names none. */
tn_status tn__sm_read_tensor_name(const tn__sm_reader *r, tn__slice info, const char *what, const char **out);
/* Replaces the name of a node by that of its output 0, "node:0". Names of tensors and "" stay. */
tn_status tn__sm_complete_name(const tn__sm_reader *r, const char **name);

/* ---- assets.c ---- */

/* Reads the asset_file_def fields of the MetaGraph, or else the assets in `collection`, a CollectionDef. */
tn_status tn__sm_read_assets(tn__sm_reader *r, tn__metagraph *m, tn__slice collection);

#endif
