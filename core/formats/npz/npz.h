/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npz format: a zip archive with one .npy file per array, named by its key and ".npy". libzip handles the
 * archive. It is loaded with the first .npz file: most programs never use one, and libzip depends on an encryption
 * library, which would cost every start of a process 1 ms and 1.7 MB. */
#ifndef TN_CORE_FORMATS_NPZ_NPZ_H
#define TN_CORE_FORMATS_NPZ_NPZ_H

#include <core/base/arena.h>
#include <core/base/file.h>
#include <core/base/map.h>
#include <core/formats/npy/npy.h>
#include <zip.h>

/* The functions of libzip that are used, without the prefix zip_. */
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

/* libzip's functions. Each user has its own table, so nothing is shared or locked. The library is never unloaded. */
typedef struct tn__zip {
#define TN__ZIP_MEMBER(name) __typeof__(zip_##name) *name;
  TN_ZIP_MAP(TN__ZIP_MEMBER)
#undef TN__ZIP_MEMBER
} tn__zip;

/* Fills in the table. TN_UNAVAILABLE: libzip is not installed. TN_UNIMPLEMENTED: a build without it. `name` is for the
 * message. */
tn_status tn__zip_load(tn__zip *zip, const char *name, tn_error *err);

/* Sets an error from an error of libzip: "'x.npz': <what>: CRC error". Returns the code. */
tn_status tn__zip_failed(const tn__zip *zip, zip_error_t *error, const char *name, const char *what, tn_error *err);

/* A command that a source supports, as a bit. */
#define TN_ZIP_CAN(command) ((zip_int64_t)1 << (command))

typedef struct tn__npz_entry {
  const char *key;    /* NUL-terminated */
  zip_uint64_t index; /* of the entry in the archive */
  bool plain;         /* the name in the archive is the key itself, without ".npy" */
} tn__npz_entry;

/* An open .npz file. One thread at a time. */
struct tn_npz {
  tn__zip zip;
  zip_t *archive;   /* owned */
  const char *name; /* for messages */
  /* The bytes: in memory (borrowed), or in the file if `bytes` is NULL. */
  const uint8_t *bytes;
  tn__file file;
  uint64_t size; /* in bytes */
  /* libzip reads through our own source (open.c), which has this state. */
  uint64_t at; /* current offset */
  zip_error_t source_error;
  tn_status source_status; /* of a failed read, whose message is in *err; libzip's own error would say less */
  tn_error *err;           /* of the current public call; NULL outside of calls */
  /* The arrays, in the archive's order. */
  tn__npz_entry *entries;
  size_t n;
  tn__map by_key;
  tn__arena arena;
  uint64_t budget; /* maximum bytes of the arrays that one call loads */
};

/* end.c: reads n bytes of the archive file from `offset`, without libzip. */
tn_status tn__npz_read_raw(const tn_npz *npz, uint64_t offset, void *to, size_t n, tn_error *err);

/* Checks that it is safe to pass the archive to libzip. */
tn_status tn__npz_check_end(const tn_npz *npz, tn_error *err);

#endif
