/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of version 1, for the files of this folder. Reading is the store kind tn__store_v1.
 *
 * A checkpoint is one table, or several: shards named PREFIX-00000-of-0000N, each with its own tensors or slices. The
 * entry with the empty key is a SavedTensorSlices message with `meta`: names, shapes and dtypes. Each other entry is a
 * slice; its key is in ordered code (../checkpoint/slice_key.c), and its value a SavedTensorSlices message with `data`,
 * whose elements are those of a TensorProto.
 *
 * Opening walks over all entries, checks them, and notes where the values are; no value is kept. */
#ifndef TN_CORE_FORMATS_CHECKPOINT_V1_V1_H
#define TN_CORE_FORMATS_CHECKPOINT_V1_V1_H

#include <core/base/threads/lock.h>
#include <core/formats/checkpoint/checkpoint.h>
#include <core/formats/table/block.h>
#include <core/formats/table/table.h>

/* Messages and their fields: SavedTensorSlices, SavedTensorSliceMeta, SavedSliceMeta, SavedSlice, VersionDef. */
enum { TN__V1_META = 1, TN__V1_DATA = 2 };
enum { TN__V1_META_TENSOR = 1, TN__V1_META_VERSIONS = 2 };
enum { TN__V1_TENSOR_NAME = 1, TN__V1_TENSOR_SHAPE = 2, TN__V1_TENSOR_DTYPE = 3 };
enum { TN__V1_SLICE_NAME = 1, TN__V1_SLICE_DATA = 3 };
enum { TN__V1_MIN_CONSUMER = 2, TN__V1_BAD_CONSUMER = 3 };
/* The version of the format that this reader knows. */
#define TN__V1_VERSION 1

/* Where the value of a slice is. The `offset` of a tn__stored_part is the number of its place. */
typedef struct tn__v1_place {
  tn__handle block;
  uint64_t at;   /* of the first byte: in the file if `plain`, else in the contents of the block */
  uint64_t size; /* bytes there: the elements if `plain`, else the message */
  uint32_t crc;  /* of these bytes, when the checkpoint was opened */
  bool plain;    /* the elements are as in memory, in one run of the file */
} tn__v1_place;

/* The state of an open checkpoint, tn__store.own. */
typedef struct tn__v1 {
  tn__file *files; /* the shards; in the store's arena */
  uint32_t n_files;
  tn__v1_place *places;
  size_t n_places, places_capacity;
  tn__mutex mu;               /* guards the members below */
  tn__block block;            /* the last block that was loaded again */
  const tn__file *block_file; /* its file; NULL: none is loaded */
  tn__snappy_uncompress *uncompress;
} tn__v1;

/* files.c: whether there is a file or a shard of this name. */
bool tn__v1_exists(const char *path);
/* Returns the number of shards of a path, and the length of their common prefix; 0: the path is one file itself.
 * TN_INVALID_ARGUMENT: there are files of several numbers of shards. */
tn_status tn__v1_shards(const char *path, uint32_t *shards, size_t *prefix_size, tn_error *err);
/* The path of a shard, in the arena. */
tn_status tn__v1_shard_path(const char *path, size_t prefix_size, uint32_t shard, uint32_t shards, tn__arena *arena,
                            const char **out, tn_error *err);

/* index.c: walks over the table of file `number` and adds its tensors and slices. */
typedef struct tn__v1_index tn__v1_index;
tn_status tn__v1_index_create(tn__store *store, tn__v1_index **out, tn_error *err);
tn_status tn__v1_index_add(tn__v1_index *index, uint32_t number, tn_error *err);
/* Sets the entries of the store. */
tn_status tn__v1_index_finish(tn__v1_index *index, tn_error *err);
void tn__v1_index_destroy(tn__v1_index *index); /* NULL allowed */

/* read.c */
tn_status tn__v1_read_part(tn__store *store, const tn__stored *entry, const tn__stored_part *part, void *to,
                           tn_error *err);

#endif
