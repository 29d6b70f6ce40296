/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of version 2 ("bundles"): PREFIX.index, a table of BundleEntryProto messages, and PREFIX.data-N-of-M, the
 * bytes of the tensors. Reading is the store kind tn__store_bundle (../checkpoint/checkpoint.h). */
#ifndef TN_CORE_FORMATS_BUNDLE_BUNDLE_H
#define TN_CORE_FORMATS_BUNDLE_BUNDLE_H

#include <core/formats/checkpoint/checkpoint.h>

/* A bundle being written. All files have temporary names until commit, which syncs them and puts the index in place
 * last: a former bundle of this prefix can be read until then, and the new one after it. One thread at a time. */
typedef struct tn__bundle_writer tn__bundle_writer;

/* shards: data files among which tensors are distributed, at least 1. There may be one more, which is empty. */
tn_status tn__bundle_writer_open(const char *prefix, unsigned shards, tn__bundle_writer **out, tn_error *err);
/* Adds a whole tensor. The tensor's bytes are written at once. TN_INVALID_ARGUMENT: an empty or repeated key, or
 * handles. */
tn_status tn__bundle_writer_add(tn__bundle_writer *w, tn__slice key, const tn_tensor *tensor, tn_error *err);
/* Adds a region of a tensor with these dims; the regions of one key need not cover it (other processes may add more).
 */
tn_status tn__bundle_writer_add_slice(tn__bundle_writer *w, tn__slice key, int32_t rank, const int64_t *dims,
                                      const tn__region *region, const tn_tensor *tensor, tn_error *err);
/* Closes and frees the writer, also on failure. Then the former bundle is whole, or the new one if only the names in
 * its folder could not be synced. */
tn_status tn__bundle_writer_commit(tn__bundle_writer *w, tn_error *err);
void tn__bundle_writer_abandon(tn__bundle_writer *w); /* NULL allowed */

/* merge.c: makes one bundle of several (MergeV2Checkpoints): data files are renamed, the indexes are merged. With
 * `remove`, the folders of the parts are removed if they are empty afterwards. On failure the parts are whole, unless
 * the new bundle is. */
tn_status tn__bundle_merge(const char *const *prefixes, size_t n, const char *destination, bool remove, tn_error *err);

/* ---- index.c ---- */

#define TN__BUNDLE_VERSION 1 /* of the form of bundles that is read and written */

/* Fields of BundleHeaderProto and VersionDef; of BundleEntryProto, TensorShapeProto and its dimensions; of
 * TensorSliceProto and its extents. */
enum { TN__HEADER_SHARDS = 1, TN__HEADER_ENDIANNESS = 2, TN__HEADER_VERSION = 3 };
enum { TN__VERSION_PRODUCER = 1, TN__VERSION_MIN_CONSUMER = 2, TN__VERSION_BAD_CONSUMERS = 3 };
enum { TN__ENTRY_DTYPE = 1, TN__ENTRY_SHAPE = 2, TN__ENTRY_SHARD = 3, TN__ENTRY_OFFSET = 4, TN__ENTRY_SIZE = 5 };
enum { TN__ENTRY_CRC = 6, TN__ENTRY_SLICES = 7 };
enum { TN__SHAPE_DIM = 2, TN__SHAPE_UNKNOWN_RANK = 3, TN__DIM_SIZE = 1 };
enum { TN__SLICE_EXTENT = 1, TN__EXTENT_START = 1, TN__EXTENT_LENGTH = 2 };

/* An entry of an index: a tensor, a slice under its own key, or a tensor in slices. */
typedef struct tn__bundle_entry {
  tn__slice key; /* NUL-terminated */
  tn_dtype dtype;
  int32_t rank;
  uint32_t shard, crc;
  const int64_t *dims;
  int64_t elements;
  uint64_t offset, size;
  tn__region *slices; /* not resolved: as in their keys */
  size_t n_slices;    /* 0: the entry has bytes */
  bool taken;         /* for the caller; false at first */
} tn__bundle_entry;

typedef struct tn__bundle_index {
  tn__bundle_entry *entries; /* sorted by key; owned */
  size_t n, room;
  uint32_t shards;
} tn__bundle_index;

/* Reads an index file; everything but the list of entries is in the arena. Each entry is sound by itself. TN_DATA_LOSS,
 * TN_INVALID_ARGUMENT (it wants a newer reader), TN_UNIMPLEMENTED (big-endian). */
tn_status tn__bundle_index_read(const char *path, tn__arena *arena, tn__bundle_index *out, tn_error *err);
void tn__bundle_index_fini(tn__bundle_index *index);
/* Reads only the number of data files. */
tn_status tn__bundle_index_shards(const char *path, uint32_t *out, tn_error *err);

/* The names of a bundle's files, to be freed with tn__strfree. NULL: out of memory. */
char *tn__bundle_index_name(const char *prefix);
char *tn__bundle_data_name(const char *prefix, uint32_t shard, uint32_t shards);

/* A key as text for messages, at most `size` bytes; control characters, and the numbers in the key of a slice, are
 * replaced. Returns buffer. */
char *tn__bundle_show_key(char *buffer, size_t size, tn__slice key);

/* ---- encode.c ---- */

/* Sorts the entries and writes the index. The file is committed by the caller. */
tn_status tn__bundle_index_write(tn__writer *file, tn__bundle_entry **entries, size_t n, uint32_t shards,
                                 tn_error *err);

/* ---- replace.c: putting a new bundle in the place of a former one ---- */

/* Chooses the number of data files of a new bundle, at least `wanted`, so that none has the name of one of the former.
 */
tn_status tn__bundle_choose_count(const char *prefix, uint32_t wanted, uint32_t *out, tn_error *err);
/* Writes the index of a bundle whose data files are synced and have their names, and then deletes the data files of
 * other counts. *placed, also on failure: the new bundle has replaced the former one; else that is as it was. */
tn_status tn__bundle_put_index(const char *prefix, tn__bundle_entry **entries, size_t n, uint32_t shards, bool *placed,
                               tn_error *err);
/* Opens a writer as tn__writer_open, which must be for a regular file. */
tn_status tn__bundle_writer_file(tn__writer *w, const char *path, tn_error *err);

/* ---- shards.c: the data files of a bundle that is read ---- */

typedef struct tn__bundle_shards tn__bundle_shards;

/* numbers: of the shards that have bytes, in ascending order; n of them. */
tn_status tn__bundle_shards_create(const char *prefix, uint32_t shards, const uint32_t *numbers, size_t n,
                                   tn__bundle_shards **out, tn_error *err);
void tn__bundle_shards_destroy(tn__bundle_shards *shards); /* NULL allowed */

/* The open file of a shard, until it is put back. TN_NOT_FOUND, TN_DATA_LOSS: it was replaced since it was first
 * opened. Any thread. */
tn_status tn__bundle_shard_get(tn__bundle_shards *shards, uint32_t number, const tn__file **out, tn_error *err);
void tn__bundle_shard_put(tn__bundle_shards *shards, uint32_t number);

/* ---- read.c: members of tn__store_bundle ---- */

tn_status tn__bundle_read_part(tn__store *store, const tn__stored *entry, const tn__stored_part *part, void *to,
                               tn_error *err);
tn_status tn__bundle_check_part(tn__store *store, const tn__stored *entry, const tn__stored_part *part, tn_error *err);
tn_status tn__bundle_read_some(tn__store *store, const tn__stored *entry, const tn__stored_part *part, uint64_t from,
                               size_t n, void *to, uint32_t *crc, tn_error *err);
tn_status tn__bundle_verify(tn__store *store, const tn__stored *entry, const tn__stored_part *part, uint32_t crc,
                            tn_error *err);

/* strings.c: reads the strings of a part from its open file. */
tn_status tn__bundle_read_strings(const tn__file *file, const tn__stored *entry, const tn__stored_part *part,
                                  tn_string *to, tn_error *err);
/* Sets TN_DATA_LOSS: the bytes of a part have another CRC (masked) than the index says. */
tn_status tn__bundle_wrong_crc(const tn__file *file, const tn__stored *entry, const tn__stored_part *part,
                               uint32_t masked, tn_error *err);

#endif
