/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: layout, creation and destruction.
 *
 * A tensor with its own memory is one allocation: the tensor, dims that do not fit inside it, the buffer, the elements.
 * It is freed when the last reference to the buffer is released, of which the tensor has one. A view of another buffer
 * has an allocation with the tensor and its dims only. */
#include <core/tensor/tensor_internal.h>

#include <inttypes.h>
#include <string.h>

/* Offsets of the parts of an allocation, in bytes. */
typedef struct layout {
  size_t dims;   /* 0: inside the tensor */
  size_t buffer; /* 0: none */
  size_t data;   /* 0: none */
  size_t size;   /* of the whole */
} layout;

/* The head: everything but the elements. */
static void lay_out_head(layout *l, int32_t rank, bool with_buffer)
{
  size_t at = sizeof(tn_tensor);
  memset(l, 0, sizeof(*l));
  if (rank > TN_INLINE_RANK) {
    l->dims = tn__round_up(at, _Alignof(int64_t));
    at = l->dims + (size_t)rank * sizeof(int64_t);
  }
  if (with_buffer) {
    l->buffer = tn__round_up(at, _Alignof(tn_buffer));
    at = l->buffer + sizeof(tn_buffer);
  }
  l->size = at;
}

/* Initialises the tensor itself; buffer and data are set by the caller. */
static tn_tensor *fill_tensor(void *block, const layout *l, tn_dtype dtype, const int64_t *dims, int32_t rank,
                              int64_t count, size_t bytes)
{
  tn_tensor *t = block;
  atomic_init(&t->refs, 1);
  t->dtype = dtype;
  t->rank = rank;
  t->alloc_size = l->size;
  t->count = count;
  t->bytes = bytes;
  t->offset = 0;
  t->data = NULL;
  t->buffer = NULL;
  t->dims = l->dims == 0 ? t->inline_dims : (int64_t *)((char *)block + l->dims);
  for (int32_t i = 0; i < rank; i++) t->dims[i] = dims[i];
  return t;
}

/* Initialises the buffer inside the tensor's allocation, over host memory. */
static tn_buffer *fill_buffer(tn_tensor *t, const layout *l, void *data, int32_t ownership)
{
  tn_buffer *b = (tn_buffer *)((char *)t + l->buffer);
  memset(b, 0, sizeof(*b));
  atomic_init(&b->refs, 1);
  b->desc.struct_size = sizeof(b->desc);
  b->desc.memory = TN_MEMORY_HOST;
  b->desc.ownership = ownership;
  b->desc.data = data;
  b->desc.bytes = t->bytes;
  b->inside = t;
  t->buffer = b;
  t->data = data;
  return b;
}

/* Makes a tensor with its own memory, charged to the account of the current step. */
static tn_status create(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                        int32_t ownership, tn_tensor **out, tn_error *err)
{
  layout l;
  lay_out_head(&l, rank, true);
  l.data = tn__round_up(l.size, TN_ALIGN);
  *out = NULL;
  char *block = NULL;
  tn__account *account = tn__account_now;
  bool fits = tn__size_add(l.data, bytes, &l.size);
  if (fits && !tn__account_charge(account, l.size)) return tn__account_refuse(account, "a tensor", l.size, err);
  if (fits) block = tn__alloc_aligned(l.size, TN_ALIGN);
  if (block == NULL) {
    if (fits) tn__account_credit(account, l.size);
    char shape[160];
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory: a tensor %s %s, %zu bytes", tn_dtype_name(dtype),
                        tn__format_shape(shape, sizeof(shape), dims, rank), bytes);
  }
  tn_tensor *t = fill_tensor(block, &l, dtype, dims, rank, count, bytes);
  tn_buffer *b = fill_buffer(t, &l, block + l.data, ownership);
  b->account = tn__account_ref(account);
  if (tn__dtype_is_managed(dtype)) {
    b->managed = dtype;
    memset(t->data, 0, bytes);
  }
  *out = t;
  return TN_OK;
}

void tn__tensor_leave_account(tn_tensor *t)
{
  tn_buffer *b = t->buffer;
  if (b->account == NULL || b->inside == NULL) return;
  tn__account_credit(b->account, b->inside->alloc_size);
  tn__account_unref(b->account);
  b->account = NULL;
}

tn_status tn__tensor_create_known(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                                  tn_tensor **out, tn_error *err)
{
  return create(dtype, dims, rank, count, bytes, TN_BUFFER_OWNED, out, err);
}

/* The common start of the public functions that make a tensor. */
static tn_status open_call(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, int64_t *count,
                           size_t *bytes, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "out is NULL: the tensor cannot be returned");
  *out = NULL;
  tn_status s = tn_shape_bytes(dtype, dims, rank, bytes, err);
  if (s == TN_OK) *count = (int64_t)(*bytes / tn_dtype_size(dtype));
  return s;
}

static tn_status check_bytes(tn_dtype dtype, const int64_t *dims, int32_t rank, size_t found, size_t wanted,
                             tn_error *err)
{
  char shape[160];
  if (found == wanted) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%zu bytes are given for a tensor %s %s, wanted %zu", found,
                      tn_dtype_name(dtype), tn__format_shape(shape, sizeof(shape), dims, rank), wanted);
}

tn_status tn_tensor_create(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err)
{
  int64_t count = 0;
  size_t bytes = 0;
  tn_status s = open_call(dtype, dims, rank, out, &count, &bytes, err);
  return s != TN_OK ? s : create(dtype, dims, rank, count, bytes, TN_BUFFER_OWNED, out, err);
}

tn_status tn_tensor_from_data(tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data, size_t bytes,
                              tn_tensor **out, tn_error *err)
{
  int64_t count = 0;
  size_t wanted = 0;
  tn_status s = open_call(dtype, dims, rank, out, &count, &wanted, err);
  if (s == TN_OK && tn__dtype_is_managed(dtype))
    s = tn_error_set(err, TN_INVALID_ARGUMENT, "elements of dtype %s are not plain bytes", tn_dtype_name(dtype));
  if (s == TN_OK) s = check_bytes(dtype, dims, rank, bytes, wanted, err);
  if (s == TN_OK && data == NULL && bytes > 0) s = tn_error_set(err, TN_INVALID_ARGUMENT, "no data is given");
  if (s == TN_OK) s = create(dtype, dims, rank, count, bytes, TN_BUFFER_OWNED, out, err);
  if (s == TN_OK && bytes > 0) memcpy((*out)->data, data, bytes);
  return s;
}

static tn_status check_alignment(tn_dtype dtype, const void *data, tn_error *err)
{
  size_t align = tn__dtype_align(dtype);
  if ((uintptr_t)data % align == 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "data at %p is not aligned to the %zu bytes that dtype %s needs", data,
                      align, tn_dtype_name(dtype));
}

tn_status tn_tensor_wrap(tn_dtype dtype, const int64_t *dims, int32_t rank, void *data, size_t bytes,
                         tn_release_fn release, void *user, tn_tensor **out, tn_error *err)
{
  int64_t count = 0;
  size_t wanted = 0;
  tn_status s = open_call(dtype, dims, rank, out, &count, &wanted, err);
  if (s == TN_OK && tn__dtype_is_managed(dtype) && dtype != TN_STRING)
    s = tn_error_set(err, TN_INVALID_ARGUMENT, "elements of dtype %s cannot be wrapped", tn_dtype_name(dtype));
  if (s == TN_OK) s = check_bytes(dtype, dims, rank, bytes, wanted, err);
  if (s == TN_OK && data == NULL && bytes > 0) s = tn_error_set(err, TN_INVALID_ARGUMENT, "no data is given");
  if (s == TN_OK) s = check_alignment(dtype, data, err);
  if (s != TN_OK) return s;

  layout l;
  lay_out_head(&l, rank, true);
  void *block = tn__alloc_aligned(l.size, TN_ALIGN);
  if (block == NULL) return tn__no_memory(err, "a tensor over memory of the program", l.size);
  tn_tensor *t = fill_tensor(block, &l, dtype, dims, rank, count, bytes);
  tn_buffer *b = fill_buffer(t, &l, data, TN_BUFFER_FOREIGN);
  b->desc.release = release;
  b->desc.user = user;
  *out = t;
  return TN_OK;
}

/* ---- views ---- */

/* Makes a tensor over a part of a buffer; takes a reference to the buffer. */
static tn_status make_view(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                           tn_buffer *buffer, size_t offset, tn_tensor **out, tn_error *err)
{
  layout l;
  lay_out_head(&l, rank, false);
  void *block = tn__alloc_aligned(l.size, TN_ALIGN);
  if (block == NULL) return tn__no_memory(err, "a view of a tensor", l.size);
  tn_tensor *t = fill_tensor(block, &l, dtype, dims, rank, count, bytes);
  t->buffer = tn_buffer_ref(buffer);
  t->offset = offset;
  t->data = buffer->desc.data == NULL ? NULL : (char *)buffer->desc.data + offset;
  *out = t;
  return TN_OK;
}

/* Checks that elements of `dtype` may be viewed in the buffer's memory: managed elements only in a buffer of the same
 * dtype, or strings in memory of the program, which owns them. */
static tn_status check_kind(tn_dtype dtype, const tn_buffer *b, tn_error *err)
{
  bool strings_of_program = dtype == TN_STRING && b->managed == 0 && b->desc.data != NULL;
  if (b->managed == (tn__dtype_is_managed(dtype) ? dtype : 0) || strings_of_program) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "a buffer of %s elements cannot be viewed as %s",
                      b->managed == 0 ? "plain" : tn_dtype_name(b->managed), tn_dtype_name(dtype));
}

tn_status tn_tensor_from_buffer(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_buffer *buffer, size_t offset,
                                tn_tensor **out, tn_error *err)
{
  int64_t count = 0;
  size_t bytes = 0;
  tn_status s = open_call(dtype, dims, rank, out, &count, &bytes, err);
  if (s != TN_OK) return s;
  if (buffer == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no buffer is given");
  const tn_buffer_desc *d = &buffer->desc;
  if (offset > d->bytes || bytes > d->bytes - offset)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%zu bytes from offset %zu are not within a buffer of %zu bytes",
                        bytes, offset, d->bytes);
  s = check_kind(dtype, buffer, err);
  if (s == TN_OK) s = check_alignment(dtype, (const char *)d->data + (d->data == NULL ? 0 : offset), err);
  if (s == TN_OK && offset % tn__dtype_align(dtype) != 0)
    s = tn_error_set(err, TN_INVALID_ARGUMENT,
                     "offset %zu is not a multiple of the %zu bytes to which dtype %s is aligned", offset,
                     tn__dtype_align(dtype), tn_dtype_name(dtype));
  if (s == TN_OK) s = make_view(dtype, dims, rank, count, bytes, buffer, offset, out, err);
  return s;
}

/* The result shares the buffer, so both tensors see later writes. */
tn_status tn_tensor_reshape(tn_tensor *tensor, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err)
{
  char from[160], to[160];
  int64_t count = 0;
  size_t bytes = 0;
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (tensor == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no tensor is given");
  tn_status s = open_call(tensor->dtype, dims, rank, out, &count, &bytes, err);
  if (s != TN_OK) return s;
  if (count != tensor->count)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "shape %s with %" PRId64 " elements cannot become shape %s with %" PRId64 " elements",
                        tn__format_shape(from, sizeof(from), tensor->dims, tensor->rank), tensor->count,
                        tn__format_shape(to, sizeof(to), dims, rank), count);
  return make_view(tensor->dtype, dims, rank, count, bytes, tensor->buffer, tensor->offset, out, err);
}

static tn_buffer nothing = { .refs = 1, .desc = { .struct_size = sizeof(tn_buffer_desc), .memory = TN_MEMORY_HOST,
                                                  .ownership = TN_BUFFER_IMMUTABLE } };

tn_status tn__tensor_outline(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                             tn_tensor **out, tn_error *err)
{
  return make_view(dtype, dims, rank, count, bytes, &nothing, 0, out, err);
}

bool tn__tensor_is_outline(const tn_tensor *tensor) { return tensor->buffer == &nothing; }

tn_status tn__tensor_constant(tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data, size_t bytes,
                              tn_buffer *holder_buffer, tn_tensor **out, tn_error *err)
{
  int64_t count = 0;
  size_t wanted = 0;
  *out = NULL;
  tn_status s = tn_shape_bytes(dtype, dims, rank, &wanted, err);
  if (s == TN_OK && tn__dtype_is_managed(dtype))
    s = tn_error_set(err, TN_INVALID_ARGUMENT, "elements of dtype %s are not plain bytes", tn_dtype_name(dtype));
  if (s == TN_OK) s = check_bytes(dtype, dims, rank, bytes, wanted, err);
  if (s != TN_OK) return s;
  count = (int64_t)(bytes / tn_dtype_size(dtype));
  if (holder_buffer != NULL && bytes > 0 && (uintptr_t)data % tn_dtype_size(dtype) == 0)
    return make_view(dtype, dims, rank, count, bytes, holder_buffer,
                     (size_t)((const char *)data - (const char *)holder_buffer->desc.data), out, err);
  s = create(dtype, dims, rank, count, bytes, TN_BUFFER_IMMUTABLE, out, err);
  if (s == TN_OK && bytes > 0) memcpy((*out)->data, data, bytes);
  return s;
}

/* ---- references ---- */

tn_tensor *tn_tensor_ref(tn_tensor *tensor)
{
  if (tensor != NULL) atomic_fetch_add_explicit(&tensor->refs, 1, memory_order_relaxed);
  return tensor;
}

void tn_tensor_unref(tn_tensor *t)
{
  if (t == NULL) return;
  if (atomic_load_explicit(&t->refs, memory_order_acquire) != 1 &&
      atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
    return;
  tn_buffer *buffer = t->buffer;
  if (buffer->inside != t) tn__free_aligned(t, t->alloc_size, TN_ALIGN);
  tn_buffer_unref(buffer);
}

void tn__tensor_unref_large(tn_tensor *t)
{
  /* Discard only if no other thread can see the elements: they are in the tensor's own allocation, and the caller has
   * the only references to the tensor and its buffer. */
  if (t != NULL && t->buffer->inside == t && t->buffer->desc.ownership != TN_BUFFER_FOREIGN &&
      !tn__dtype_is_managed(t->dtype) && atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
      atomic_load_explicit(&t->buffer->refs, memory_order_acquire) == 1)
    tn__discard(t->data, t->bytes);
  tn_tensor_unref(t);
}

/* Acquire: accesses by threads that have released their references happen before those of the caller. */
tn_bool tn_tensor_is_exclusive(const tn_tensor *t)
{
  return t != NULL && t->buffer->desc.ownership == TN_BUFFER_OWNED &&
         atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
         atomic_load_explicit(&t->buffer->refs, memory_order_acquire) == 1;
}

/* ---- properties ---- */

tn_dtype tn_tensor_dtype(const tn_tensor *t) { return t == NULL ? TN_DTYPE_INVALID : t->dtype; }

int32_t tn_tensor_rank(const tn_tensor *t) { return t == NULL ? 0 : t->rank; }

const int64_t *tn_tensor_dims(const tn_tensor *t) { return t == NULL ? NULL : t->dims; }

int64_t tn_tensor_elements(const tn_tensor *t) { return t == NULL ? 0 : t->count; }

size_t tn_tensor_bytes(const tn_tensor *t) { return t == NULL ? 0 : t->bytes; }

void *tn_tensor_data(const tn_tensor *t) { return t == NULL ? NULL : t->data; }

tn_buffer *tn_tensor_buffer(const tn_tensor *t) { return t == NULL ? NULL : t->buffer; }
