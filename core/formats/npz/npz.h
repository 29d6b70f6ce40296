/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npz format: a zip archive with one .npy file an array, named by its key with ".npy" behind. libzip does the
 * archive. It is loaded when the first .npz file is met: most programs never see one, and libzip brings a library for
 * encryption along, which costs every start of a process 1 ms and 1.7 MB. */
#ifndef TN_CORE_FORMATS_NPZ_NPZ_H
#define TN_CORE_FORMATS_NPZ_NPZ_H

#include <core/base/arena.h>
#include <core/base/file.h>
#include <core/base/map.h>
#include <core/formats/npy/npy.h>
#include <zip.h>

/* The functions of libzip that are used. */
#define TN_ZIP_MAP(X)  \
  X(close)             \
  X(discard)           \
  X(error_fini)        \
  X(error_init)        \
  X(error_code_system) \
  X(error_code_zip)    \
  X(error_set)         \
  X(error_strerror)    \
  X(error_to_data)     \
  X(fclose)            \
  X(file_add)          \
  X(file_get_error)    \
  X(file_set_dostime)  \
  X(fopen_index)       \
  X(fread)             \
  X(get_error)         \
  X(get_name)          \
  X(get_num_entries)   \
  X(open_from_source)  \
  X(set_file_compression)   \
  X(source_free)            \
  X(source_function)        \
  X(source_function_create) \
  X(stat_index)

/* libzip's functions. Each user has a table of its own, so that there is nothing to share or lock; once loaded the
 * library stays. */
typedef struct tn__zip {
#define TN__ZIP_MEMBER(name) __typeof__(zip_##name) *name;
  TN_ZIP_MAP(TN__ZIP_MEMBER)
#undef TN__ZIP_MEMBER
} tn__zip;

/* TN_UNAVAILABLE when libzip is not there, TN_UNIMPLEMENTED in a build without it. `name` is for the message. */
tn_status tn__zip_load(tn__zip *zip, const char *name, tn_error *err);

/* Records the error of libzip: "'x.npz': <what>: CRC error". Returns the code. */
tn_status tn__zip_failed(const tn__zip *zip, zip_error_t *error, const char *name, const char *what, tn_error *err);

/* The commands that a source answers, as a set. */
#define TN_ZIP_CAN(command) ((zip_int64_t)1 << (command))

typedef struct tn__npz_entry {
  const char *key; /* ends in a NUL */
  zip_uint64_t index;
  bool plain; /* the name in the archive is the key, without .npy */
} tn__npz_entry;

struct tn_npz {
  tn__zip zip;
  zip_t *archive;
  const char *name; /* for messages */
  /* The bytes: in memory, or in a file when `bytes` is NULL. */
  const uint8_t *bytes;
  tn__file file;
  uint64_t size;
  /* libzip reads through a source of ours. */
  uint64_t at;
  zip_error_t source_error;
  tn_status source_status; /* why a read failed; the words are in *err already */
  tn_error *err;           /* of the call that runs */
  /* The arrays, in the archive's order. */
  tn__npz_entry *entries;
  size_t n;
  tn__map by_key;
  tn__arena arena;
  uint64_t budget;
};

/* end.c: reads n bytes of the archive itself, from `offset`. */
tn_status tn__npz_read_raw(const tn_npz *npz, uint64_t offset, void *to, size_t n, tn_error *err);

/* Whether the end of the archive is one that libzip may be given. */
tn_status tn__npz_check_end(const tn_npz *npz, tn_error *err);

#endif
