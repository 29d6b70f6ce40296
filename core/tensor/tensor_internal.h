/* SPDX-License-Identifier: Apache-2.0 */
/* Struct definitions of buffers and tensors, for core and the executor's hot path. */
#ifndef TN_CORE_TENSOR_INTERNAL_H
#define TN_CORE_TENSOR_INTERNAL_H

#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <core/tensor/account.h>
#include <stdatomic.h>
#include <tenon/tensor.h>

/* Keep a plugin loaded while a buffer that it made exists (desc.holder). Set by core/host at its first use, NULL
 * before; this room knows no plugins. */
extern void (*tn__plugin_hold)(void *self);
extern void (*tn__plugin_drop)(void *self);

typedef struct tn__buffer_map tn__buffer_map;

/* When refs becomes 0 the struct's memory is freed: the allocation of `inside`, or its own. All other members are
 * immutable while the buffer is shared. */
struct tn_buffer {
  _Atomic uint32_t refs;
  tn_dtype managed;     /* string, resource or variant: elements are cleared at the end; 0: nothing to clear */
  tn_buffer_desc desc;  /* a copy; desc.device is stored after the struct */
  tn_tensor *inside;    /* the tensor whose allocation contains this struct, or NULL */
  size_t alloc_size;    /* of this struct's own allocation if `inside` is NULL, in bytes */
  tn__buffer_map *map;  /* serialises desc.map; NULL if there is no desc.map */
  tn__account *account; /* charged for the allocation of `inside`, a reference; NULL = none */
};

/* A tensor of up to this rank stores its dims in the struct. */
#define TN_INLINE_RANK 6

struct tn_tensor {
  _Atomic uint32_t refs;
  tn_dtype dtype;
  int32_t rank;
  size_t alloc_size;   /* bytes of the allocation that begins with this struct, with buffer and elements if inside */
  int64_t count;       /* number of elements */
  size_t bytes;        /* of all elements */
  size_t offset;       /* of the first element in the buffer, in bytes */
  void *data;          /* host address of the first element, or NULL */
  tn_buffer *buffer;   /* a reference, never NULL; may be in the same allocation */
  int64_t *dims;       /* inline_dims, or in the same allocation after the struct */
  int64_t inline_dims[TN_INLINE_RANK];
};

/* Like tn_tensor_create, but does not check dims and sizes: count and bytes must be right. For the executor. */
tn_status tn__tensor_create_known(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                                  tn_tensor **out, tn_error *err);

/* Credits a tensor that is handed to the program: from now on it does not count against the session's limit. */
void tn__tensor_leave_account(tn_tensor *tensor);

/* Makes a constant. If `data` is aligned to the element size, the tensor is a view of it and has a reference to
 * `holder_buffer` (IMMUTABLE), whose memory contains `data`. Otherwise, or if holder_buffer is NULL, it is a copy. */
tn_status tn__tensor_constant(tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data, size_t bytes,
                              tn_buffer *holder_buffer, tn_tensor **out, tn_error *err);

/* Releases a large tensor whose size is unlikely to be needed again. With the last reference its pages are returned to
 * the system at once, whereas an allocator might keep them. */
void tn__tensor_unref_large(tn_tensor *tensor);

/* Makes an outline: a tensor with dtype, shape and size, but without elements (data is NULL although bytes is not 0).
 * For plans that can produce the elements again. */
tn_status tn__tensor_outline(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                             tn_tensor **out, tn_error *err);
bool tn__tensor_is_outline(const tn_tensor *tensor);

/* Sets the length of an element and returns the address of its uninitialised text; the old text is freed. NULL: out of
 * memory, the element is unchanged. */
char *tn__string_reserve(tn_string *s, size_t length);

/* Free and copy managed elements; they do nothing for other dtypes. tn__elements_clear leaves zeroed elements.
 * tn__elements_copy needs zeroed elements at `to`; if it fails, it has cleared the ones that it copied. */
void tn__elements_clear(tn_dtype dtype, void *data, int64_t count);
tn_status tn__elements_copy(tn_dtype dtype, void *to, const void *from, int64_t count, tn_error *err);

/* Required alignment of elements in bytes: their size, half of it for complex types, 8 for managed elements. */
size_t tn__dtype_align(tn_dtype dtype);

/* Copies bytes [offset, offset + bytes) of a buffer of any kind of memory to the host. Waits while another thread maps
 * the buffer. */
tn_status tn__buffer_read(tn_buffer *buffer, size_t offset, void *to, size_t bytes, tn_error *err);

static inline bool tn__dtype_is_ref(tn_dtype d) { return d > TN_DTYPE_REF; }
static inline tn_dtype tn__dtype_base(tn_dtype d) { return d > TN_DTYPE_REF ? d - TN_DTYPE_REF : d; }
/* Managed: the elements own heap memory or references. */
static inline bool tn__dtype_is_managed(tn_dtype d) { return d == TN_STRING || d == TN_RESOURCE || d == TN_VARIANT; }

#endif
