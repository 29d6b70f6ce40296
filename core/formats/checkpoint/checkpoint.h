/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of any version: the tensors that a file or a set of files stores under keys, and the readers of the
 * versions. A version is a folder beside this one (bundle, checkpoint_v1) with one constant object of type
 * tn__store_kind, and a line in the table of kinds.c. */
#ifndef TN_CORE_FORMATS_CHECKPOINT_CHECKPOINT_H
#define TN_CORE_FORMATS_CHECKPOINT_CHECKPOINT_H

#include <core/base/arena.h>
#include <core/base/file.h>
#include <core/base/map.h>
#include <core/formats/checkpoint/slices.h>
#include <core/tensor/tensor_internal.h>

/* A stored part of a tensor, or a whole tensor. Where it lies is the version's affair. */
typedef struct tn__stored_part {
  tn__region region;     /* of the tensor; of a whole tensor: everything */
  uint64_t offset, size; /* bytes in the file; of strings with lengths and their CRC */
  uint32_t file;         /* number of the shard */
  uint32_t crc;          /* masked, as stored */
} tn__stored_part;

/* A tensor under a key. Everything is allocated in the store's arena and immutable once the store is open. */
typedef struct tn__stored {
  const char *key; /* NUL-terminated; may contain other zero bytes, see key_size */
  size_t key_size;
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims; /* none is negative, and the elements are at most INT64_MAX */
  int64_t elements;
  uint64_t bytes; /* sum of the parts' sizes */
  bool sliced;    /* stored in parts */
  tn__stored_part *parts;
  size_t n_parts; /* 1 unless sliced */
} tn__stored;

typedef struct tn__store tn__store;

typedef struct tn__store_kind {
  int32_t version;
  const char *name; /* "checkpoint (V2)" */
  /* Whether the version's reader should open the path: its files exist. */
  bool (*fits)(const char *path);
  /* Reads the index: sets the entries of a store that is empty but for kind, arena and prefix. If it fails, close is
   * called. */
  tn_status (*open)(tn__store *store, tn_error *err);
  void (*close)(tn__store *store);
  /* Reads the elements of a part, checks their CRC, and stores them at `to`, contiguous in C order. `to` has room for
   * the elements of the part's region: their bytes, or initialised tn_string elements. Any thread. */
  tn_status (*read_part)(tn__store *store, const tn__stored *entry, const tn__stored_part *part, void *to,
                         tn_error *err);

  /* The rest may be NULL. */

  /* Checks that the file has the part's bytes, before memory is allocated for them. Any thread. */
  tn_status (*check_part)(tn__store *store, const tn__stored *entry, const tn__stored_part *part, tn_error *err);
  /* For a version whose parts are plain bytes: reads n bytes from byte `from` of a part that is not of strings, and
   * continues *crc over them; so a large part is read on several threads. `verify` is called with the CRC of the whole
   * part. Any thread. */
  tn_status (*read_some)(tn__store *store, const tn__stored *entry, const tn__stored_part *part, uint64_t from,
                         size_t n, void *to, uint32_t *crc, tn_error *err);
  tn_status (*verify)(tn__store *store, const tn__stored *entry, const tn__stored_part *part, uint32_t crc,
                      tn_error *err);
} tn__store_kind;

extern const tn__store_kind tn__store_bundle; /* ../bundle */
extern const tn__store_kind tn__store_v1;     /* ../checkpoint_v1 */

struct tn__store {
  const tn__store_kind *kind;
  char *prefix; /* owned */
  tn__arena arena;
  tn__stored *entries; /* sorted by the bytes of the keys; in the arena */
  size_t n;
  tn__map by_key; /* key -> tn__stored; made by tn__store_open from the entries */
  void *own;      /* of the kind: open files and the like */
};

/* open.c: `path` as for tn_checkpoint_open. */
tn_status tn__store_open(const char *path, tn__store **out, tn_error *err);
void tn__store_close(tn__store *store); /* NULL allowed */
/* kinds.c. The version of the files of a prefix or path, NULL: there are none. */
const tn__store_kind *tn__store_kind_of(const char *path);
/* Whether there are files of a checkpoint of this prefix, or a table of version 1. */
bool tn__checkpoint_exists(const char *prefix);
/* NULL: there is no such key. */
const tn__stored *tn__store_find(const tn__store *store, tn__slice key);
/* The same as an error: TN_NOT_FOUND with the nearest keys. */
tn_status tn__store_get(const tn__store *store, tn__slice key, const tn__stored **out, tn_error *err);

/* read.c: reads a tensor, putting slices together. The size is checked against the files before memory is allocated.
 * Any thread. */
tn_status tn__store_read(tn__store *store, const tn__stored *entry, tn_tensor **out, tn_error *err);
/* Reads one region of a tensor, from whichever stored parts it lies in. */
tn_status tn__store_read_region(tn__store *store, const tn__stored *entry, const tn__region *region, tn_tensor **out,
                                tn_error *err);
/* Reads n tensors; at most `threads` threads are used, 0: as many as are useful. All or none. */
tn_status tn__store_read_many(tn__store *store, const tn__stored *const *entries, size_t n, unsigned threads,
                              tn_tensor **out, tn_error *err);

/* state.c: the state file `checkpoint` of a folder. *prefix is the newest checkpoint, to be freed with tn__strfree. */
tn_status tn__checkpoint_latest(const char *folder, char **prefix, tn_error *err);
/* Names `prefix` as the newest, and deletes those beyond `keep` (0: none). */
tn_status tn__checkpoint_update_state(const char *prefix, int32_t keep, tn_error *err);

/* files.c: calls `found` for each file PREFIX.data-N-of-M in the folder of the prefix, with its path (borrowed) and M.
 * If there is no such folder it does nothing. */
tn_status tn__data_files(const char *prefix, void (*found)(void *arg, const char *path, uint32_t shards), void *arg,
                         tn_error *err);

#endif
