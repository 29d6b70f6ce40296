/* SPDX-License-Identifier: Apache-2.0 */
/* Reads .npy files. Sizes are compared with the size of the file before memory is allocated for them. */
#include <core/formats/npy/npy.h>

#include <inttypes.h>
#include <string.h>

#include <core/base/file.h>
#include <core/tensor/tensor_internal.h>

typedef tn__npy_source source;

static tn_status read_at(const source *src, uint64_t offset, void *to, size_t n, tn_error *err)
{
  if (src->bytes == NULL) return src->read(src->user, offset, to, n, err);
  if (n > 0) memcpy(to, src->bytes + offset, n);
  return TN_OK;
}

/* A range of the source, copied unless the source is in memory; freed by drop. */
typedef struct block {
  const void *data;
  void *owned; /* NULL: data is borrowed */
  size_t size;
} block;

/* In memory the range is borrowed; otherwise it is read into a new block. */
static tn_status fetch(const source *src, uint64_t offset, size_t n, const char *what, block *out, tn_error *err)
{
  *out = (block){ .size = n };
  if (src->bytes != NULL || n == 0) {
    out->data = n == 0 ? (const void *)"" : src->bytes + offset;
    return TN_OK;
  }
  out->data = out->owned = tn__alloc(n);
  return out->owned == NULL ? tn__no_memory(err, what, n) : src->read(src->user, offset, out->owned, n, err);
}

static void drop(block *b) { tn__free(b->owned, b->size); }

/* ---- dtype ---- */

/* Whether elements of the file's type may be read as `as`: a type that NumPy lacks, in the form in which it is written
 * or as an unsigned number with its bits. */
static bool may_be(const tn__npy_header *h, tn_dtype as)
{
  char kind = tn__npy_kind(as);
  if (tn__dtype_is_managed(as) || tn_dtype_size(as) != h->item) return false;
  switch (h->kind) {
  case 'V': return true;
  case 'i': return kind == 'i' || as == TN_BOOL;
  case 'u': return kind == 'u' || kind == 'V' || as == TN_BOOL;
  default: return false;
  }
}

/* Chooses the dtype of the tensor: that of the file, or `as` if the file's type allows it. */
static tn_status choose_dtype(const tn__npy_header *h, const char *name, tn_dtype as, tn_dtype *out, tn_error *err)
{
  *out = h->dtype;
  if (as != TN_DTYPE_INVALID && tn_dtype_size(as) == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%" PRId32 " is not a data type of tensors", as);
  if (as == TN_DTYPE_INVALID && h->kind == 'V')
    return tn_error_set(
        err, TN_INVALID_ARGUMENT,
        "'%s': the elements' type '%s' is raw bytes: the wanted dtype must be given", name, h->type);
  if (as == TN_DTYPE_INVALID || as == h->dtype) return TN_OK;
  if (!may_be(h, as))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': the elements' type is '%s'%s%s%s, wanted %s", name, h->type,
                        h->dtype != 0 ? " (" : "", h->dtype != 0 ? tn_dtype_name(h->dtype) : "",
                        h->dtype != 0 ? ")" : "", tn_dtype_name(as));
  *out = as;
  return TN_OK;
}

/* ---- plain elements ---- */

/* Reverses the bytes of every number. */
static void swap_bytes(void *data, size_t bytes, size_t width)
{
  uint8_t *p = data;
  for (size_t i = 0; i < bytes; i += width)
    for (size_t a = i, b = i + width - 1; a < b; a++, b--) {
      uint8_t t = p[a];
      p[a] = p[b];
      p[b] = t;
    }
}

/* Walks an array in Fortran order (the first index changes fastest) in C order (the last one does), one row at a time:
 * calls put(arg, to, from, n, stride), where element to + i of the result is element from + i * stride of the file. The
 * rank is at least 1. */
static void walk_fortran(const tn__npy_header *h, int64_t count,
                         void (*put)(void *arg, int64_t to, int64_t from, int64_t n, int64_t stride), void *arg)
{
  int64_t index[TN_MAX_RANK] = { 0 }, stride[TN_MAX_RANK], at = 0;
  int32_t last = h->rank - 1;
  for (int32_t d = 0; d <= last; d++) stride[d] = d == 0 ? 1 : stride[d - 1] * h->dims[d - 1];
  for (int64_t i = 0; i < count; i += h->dims[last]) {
    put(arg, i, at, h->dims[last], stride[last]);
    for (int32_t d = last - 1; d >= 0; d--) {
      at += stride[d];
      if (++index[d] < h->dims[d]) break;
      at -= stride[d] * h->dims[d];
      index[d] = 0;
    }
  }
}

typedef struct copy_arg {
  char *to;
  const char *from;
  size_t item;
} copy_arg;

static inline void gather(char *to, const char *from, int64_t n, int64_t stride, size_t item)
{
  for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * item, from + (size_t)(i * stride) * item, item);
}

static void put_plain(void *arg, int64_t to, int64_t from, int64_t n, int64_t stride)
{
  copy_arg *c = arg;
  char *out = c->to + (size_t)to * c->item;
  const char *in = c->from + (size_t)from * c->item;
  switch (c->item) { /* with a constant size, each copy is a single move */
  case 1: gather(out, in, n, stride, 1); break;
  case 2: gather(out, in, n, stride, 2); break;
  case 4: gather(out, in, n, stride, 4); break;
  case 8: gather(out, in, n, stride, 8); break;
  default: gather(out, in, n, stride, c->item);
  }
}

/* The values of a type with fewer bits than a byte; false: another type. */
static bool small_range(tn_dtype dtype, int *low, int *high)
{
  switch (dtype) {
  case TN_INT4: *low = -8, *high = 7; return true;
  case TN_UINT4: *low = 0, *high = 15; return true;
  case TN_INT2: *low = -2, *high = 1; return true;
  case TN_UINT2: *low = 0, *high = 3; return true;
  default: return false;
  }
}

/* Makes every non-zero bool 1, and refuses numbers outside the range of a type with few bits. In elements of kind V, as
 * ml_dtypes writes them, the upper bits of a negative number may be missing; it is sign-extended. */
static tn_status check_values(tn_tensor *t, const tn__npy_header *h, const char *name, tn_error *err)
{
  tn_dtype dtype = tn_tensor_dtype(t);
  uint8_t *p = tn_tensor_data(t);
  int64_t n = tn_tensor_elements(t);
  int low, high;
  if (dtype == TN_BOOL)
    for (int64_t i = 0; i < n; i++) p[i] = p[i] != 0;
  if (!small_range(dtype, &low, &high)) return TN_OK;
  for (int64_t i = 0; i < n; i++) {
    int value = low < 0 ? (int8_t)p[i] : p[i];
    if (h->kind == 'V' && low < 0 && value > high && value <= high - low) value += 2 * low;
    if (value < low || value > high)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': element %" PRId64 "%s is %d, wanted %d to %d for %s", name,
                          i, h->fortran ? " (in C order)" : "", value, low, high, tn_dtype_name(dtype));
    p[i] = (uint8_t)value;
  }
  return TN_OK;
}

/* Reads numbers: directly into the tensor, or through a copy if they are in Fortran order. */
static tn_status read_plain(const source *src, const tn__npy_header *h, tn_tensor *t, tn_error *err)
{
  char *to = tn_tensor_data(t);
  size_t bytes = tn_tensor_bytes(t);
  tn_status s;
  if (h->fortran && h->rank > 1) {
    block b;
    s = fetch(src, h->data_at, bytes, "an array in Fortran order", &b, err);
    copy_arg c = { to, b.data, h->item };
    if (s == TN_OK) walk_fortran(h, tn_tensor_elements(t), put_plain, &c);
    drop(&b);
  } else {
    s = read_at(src, h->data_at, to, bytes, err);
  }
  if (s == TN_OK && h->swap) swap_bytes(to, bytes, h->kind == 'c' ? h->item / 2 : h->item);
  return s != TN_OK ? s : check_values(t, h, src->name, err);
}

/* ---- strings ---- */

typedef struct string_arg {
  const tn__npy_header *h;
  const source *src;
  const uint8_t *from; /* the elements in the file */
  tn_string *to;       /* the elements of the tensor */
  char *utf8;          /* room for one element as UTF-8; NULL for kind 'S' */
  tn_status status;
  tn_error *err;
} string_arg;

static uint32_t code_point(const uint8_t *p, bool big)
{
  return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
             : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static size_t utf8_size(uint32_t c)
{
  if (c < 0x80) return 1;
  if (c < 0x800) return 2;
  return c < 0x10000 ? 3 : 4;
}

/* Writes a code point as UTF-8; returns its size. */
static size_t put_utf8(char *to, uint32_t c)
{
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  size_t n = utf8_size(c);
  for (size_t i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)((0xf00 >> n) | c); /* 0xc0, 0xe0, 0xf0 */
  return n;
}

/* The length of an element without the zeros at its end, which are padding. */
static size_t used_width(const uint8_t *p, size_t n)
{
  while (n > 0 && p[n - 1] == 0) n--;
  return n;
}

/* Sets one string. UCS-4 is converted to UTF-8; bytes of kind 'S' are kept. */
static void put_string(string_arg *a, int64_t to, int64_t from)
{
  size_t item = a->h->item, n = 0;
  const uint8_t *p = a->from + (size_t)from * item;
  if (a->utf8 == NULL) {
    a->status = tn_string_set(a->to + to, p, used_width(p, item), a->err);
    return;
  }
  size_t used = (used_width(p, item) + 3) / 4 * 4;
  for (size_t i = 0; i < used; i += 4) {
    uint32_t c = code_point(p + i, a->h->swap);
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
      a->status = tn_error_set(a->err, TN_INVALID_ARGUMENT,
                               "'%s': byte %" PRIu64 ": 0x%" PRIx32 " is not a Unicode character", a->src->name,
                               a->h->data_at + (uint64_t)from * item + i, c);
      return;
    }
    n += put_utf8(a->utf8 + n, c);
  }
  a->status = tn_string_set(a->to + to, a->utf8, n, a->err);
}

static void put_strings(void *arg, int64_t to, int64_t from, int64_t n, int64_t stride)
{
  string_arg *a = arg;
  for (int64_t i = 0; i < n && a->status == TN_OK; i++) put_string(a, to + i, from + i * stride);
}

/* Strings of fixed width. Their bytes are in memory at once, beside the tensor. */
static tn_status read_strings(const source *src, const tn__npy_header *h, size_t bytes, tn_tensor *t, tn_error *err)
{
  block b;
  tn_status s = fetch(src, h->data_at, bytes, "an array of strings", &b, err);
  string_arg a = { h, src, b.data, tn_tensor_data(t), NULL, s, err };
  int64_t count = tn_tensor_elements(t);
  size_t room = h->kind == 'U' && bytes > 0 ? h->item : 0; /* UCS-4: no character is longer in UTF-8 */
  if (room > 0 && s == TN_OK && (a.utf8 = tn__alloc(room)) == NULL)
    a.status = tn__no_memory(err, "a string element", room);
  if (h->fortran && h->rank > 1)
    walk_fortran(h, count, put_strings, &a);
  else
    put_strings(&a, 0, 0, count, 1);
  tn__free(a.utf8, room);
  drop(&b);
  return a.status;
}

/* ---- the whole ---- */

static tn_status read_header(const source *src, tn__npy_header *h, tn_error *err)
{
  uint8_t prefix[TN_NPY_PREFIX] = { 0 };
  block b;
  tn_status s = read_at(src, 0, prefix, src->size < sizeof(prefix) ? (size_t)src->size : sizeof(prefix), err);
  if (s == TN_OK) s = tn__npy_prefix(prefix, src->size, src->name, h, err);
  if (s != TN_OK) return s;
  s = fetch(src, h->header_at, h->data_at - h->header_at, "the header of an .npy file", &b, err);
  if (s == TN_OK) s = tn__npy_dict(b.data, src->name, h, err);
  drop(&b);
  return s;
}

/* Checks that the file has exactly the bytes of all elements, and returns their number. */
static tn_status check_size(const source *src, const tn__npy_header *h, tn_dtype dtype, size_t *out, tn_error *err)
{
  char shape[160];
  int64_t count;
  size_t bytes;
  tn__format_shape(shape, sizeof(shape), h->dims, h->rank);
  tn_status s = tn_shape_bytes(dtype, h->dims, h->rank, &bytes, err);
  if (s == TN_OK) s = tn_shape_elements(h->dims, h->rank, &count, err);
  if (s != TN_OK) return tn_error_wrap(err, TN_OK, "'%s': the shape in the header is not possible", src->name);
  if (bytes > src->limit)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "'%s': shape %s of %s takes %zu bytes of memory, at most %" PRIu64 " are allowed", src->name,
                        shape, tn_dtype_name(dtype), bytes, src->limit);
  uint64_t have = src->size - h->data_at;
  if (!tn__size_mul((size_t)count, h->item, out) || *out > have)
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s' is cut short: shape %s of type '%s' needs %" PRId64
                        " times %zu bytes from byte %zu, but the "
                        "file ends at byte %" PRIu64,
                        src->name, shape, h->type, count, h->item, h->data_at, src->size);
  if (*out < have)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "'%s': byte %" PRIu64 ": %" PRIu64 " bytes are left over after shape %s of type '%s'",
                        src->name, (uint64_t)(h->data_at + *out), have - *out, shape, h->type);
  return TN_OK;
}

/* The shape is checked against the size of the file before the tensor is allocated. */
tn_status tn__npy_read(const source *src, tn_dtype as, tn_tensor **out, tn_error *err)
{
  tn__npy_header h;
  tn_tensor *t = NULL;
  tn_dtype dtype;
  size_t bytes = 0;
  tn_status s = read_header(src, &h, err);
  if (s == TN_OK) s = choose_dtype(&h, src->name, as, &dtype, err);
  if (s == TN_OK) s = check_size(src, &h, dtype, &bytes, err);
  if (s == TN_OK) s = tn_tensor_create(dtype, h.dims, h.rank, &t, err);
  if (s == TN_OK) s = dtype == TN_STRING ? read_strings(src, &h, bytes, t, err) : read_plain(src, &h, t, err);
  if (s == TN_OK)
    *out = t;
  else
    tn_tensor_unref(t);
  return s;
}

tn_status tn_npy_parse(const void *bytes, size_t size, const char *name, tn_dtype as, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (out == NULL || (bytes == NULL && size > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npy_parse: %s is NULL", out == NULL ? "out" : "bytes");
  source src = { .name = name != NULL ? name : "memory",
                 .bytes = bytes != NULL ? bytes : (const void *)"",
                 .size = size,
                 .limit = UINT64_MAX };
  return tn__npy_read(&src, as, out, err);
}

static tn_status read_file(void *user, uint64_t offset, void *to, size_t n, tn_error *err)
{
  return tn__file_read(user, offset, to, n, err);
}

tn_status tn_npy_load(const char *path, tn_dtype as, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (out == NULL || path == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npy_load: %s is NULL", out == NULL ? "out" : "path");
  tn__file file;
  tn_status s = tn__file_open(path, &file, err);
  if (s != TN_OK) return s;
  source src = { .name = path, .size = file.size, .limit = UINT64_MAX, .read = read_file, .user = &file };
  s = tn__npy_read(&src, as, out, err);
  tn__file_close(&file);
  return s;
}
