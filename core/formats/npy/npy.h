/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy format: magic, version, the length of a header, the header (a Python dict literal), the elements. */
#ifndef TN_CORE_FORMATS_NPY_NPY_H
#define TN_CORE_FORMATS_NPY_NPY_H

#include <core/base/text.h>
#include <tenon/tensor.h>

/* Magic, version and the longest form of the header's length. */
#define TN_NPY_PREFIX 12
/* A longer header is refused: NumPy's own are of some hundred bytes. */
#define TN_NPY_MAX_HEADER ((size_t)1 << 20)

typedef struct tn__npy_header {
  size_t header_at;   /* where the header begins, */
  size_t data_at;     /* and where the elements do */
  char type[24];      /* as the file has it, "<f4", for messages; a longer one is cut */
  char kind;          /* b i u f c S U V */
  bool swap;          /* the elements are big-endian */
  bool fortran;       /* the first index changes fastest */
  size_t item;        /* bytes an element in the file */
  tn_dtype dtype;     /* that the file asks for; TN_DTYPE_INVALID for V */
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
} tn__npy_header;

/* Reads magic, version and length from the first bytes (TN_NPY_PREFIX, or all that there are) of a file of `size`
 * bytes: sets header_at and data_at. `name` is for messages. */
tn_status tn__npy_prefix(const void *bytes, uint64_t size, const char *name, tn__npy_header *h, tn_error *err);

/* Reads the header, data_at - header_at bytes. */
tn_status tn__npy_dict(const char *text, const char *name, tn__npy_header *h, tn_error *err);

/* Where the bytes of an .npy file come from: memory, or a function when `bytes` is NULL. That is asked for them from
 * front to back, but for the first TN_NPY_PREFIX, which may be asked for twice; and for no more than `size`. */
typedef struct tn__npy_source {
  const char *name; /* for messages */
  uint64_t size;
  uint64_t limit; /* the most bytes that the tensor may have */
  const uint8_t *bytes;
  tn_status (*read)(void *user, uint64_t offset, void *to, size_t n, tn_error *err);
  void *user;
} tn__npy_source;

/* tn_npy_load and tn_npy_parse from any source. *out is set on success only. */
tn_status tn__npy_read(const tn__npy_source *source, tn_dtype as, tn_tensor **out, tn_error *err);

/* The kind (i u f c b V S) that a dtype is written as; 0 for one that is not. */
char tn__npy_kind(tn_dtype dtype);

/* The bytes that stand before the elements of `tensor` in a file. `item` gets the bytes of an element there: those of
 * the tensor, or the width of the longest string. */
tn_status tn__npy_format_header(const tn_tensor *tensor, tn__text *out, size_t *item, tn_error *err);

#endif
