/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy format: magic, version, length of the header, the header (a Python dict literal), the elements. */
#ifndef TN_CORE_FORMATS_NPY_NPY_H
#define TN_CORE_FORMATS_NPY_NPY_H

#include <core/base/text.h>
#include <tenon/tensor.h>

/* Bytes of magic, version and the longest form of the header's length. */
#define TN_NPY_PREFIX 12
/* A longer header is refused. NumPy's own headers have a few hundred bytes. */
#define TN_NPY_MAX_HEADER ((size_t)1 << 20)

typedef struct tn__npy_header {
  size_t header_at; /* offset of the header in the file */
  size_t data_at;   /* offset of the elements in the file */
  char type[24];    /* as in the file, "<f4", for messages; a longer one is cut */
  char kind;        /* b i u f c S U V */
  bool swap;        /* the elements are big-endian */
  bool fortran;     /* the first index changes fastest */
  size_t item;      /* bytes of an element in the file */
  tn_dtype dtype;   /* of the file; TN_DTYPE_INVALID for kind V */
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
} tn__npy_header;

/* Reads magic, version and length from the first bytes (TN_NPY_PREFIX, or all that there are) of a file of `size`
 * bytes: sets header_at and data_at. `name` is for messages. */
tn_status tn__npy_prefix(const void *bytes, uint64_t size, const char *name, tn__npy_header *h, tn_error *err);

/* Reads the header, data_at - header_at bytes. */
tn_status tn__npy_dict(const char *text, const char *name, tn__npy_header *h, tn_error *err);

/* The source of an .npy file's bytes: memory, or a function if `bytes` is NULL. The function is called for ascending
 * offsets within `size`, except that the first TN_NPY_PREFIX bytes may be requested twice. So it can decompress. */
typedef struct tn__npy_source {
  const char *name;     /* for messages */
  uint64_t size;        /* of the file in bytes */
  uint64_t limit;       /* maximum size of the tensor in bytes */
  const uint8_t *bytes; /* borrowed */
  tn_status (*read)(void *user, uint64_t offset, void *to, size_t n, tn_error *err);
  void *user;
} tn__npy_source;

/* Like tn_npy_load and tn_npy_parse, from any source. *out is set on success only. */
tn_status tn__npy_read(const tn__npy_source *source, tn_dtype as, tn_tensor **out, tn_error *err);

/* The kind (i u f c b V S) as which a dtype is written; 0: it cannot be written. */
char tn__npy_kind(tn_dtype dtype);

/* Makes the bytes of a file before the elements of `tensor`. *item gets the bytes of an element in the file: those of
 * the dtype, or the width of the longest string. */
tn_status tn__npy_format_header(const tn_tensor *tensor, tn__text *out, size_t *item, tn_error *err);

#endif
