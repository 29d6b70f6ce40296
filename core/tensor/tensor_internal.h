/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of buffers and tensors, for core and the executor's hot path. */
#ifndef TN_CORE_TENSOR_INTERNAL_H
#define TN_CORE_TENSOR_INTERNAL_H

#include <core/base/lock.h>
#include <core/base/text.h>
#include <core/tensor/account.h>
#include <stdatomic.h>
#include <tenon/tensor.h>

/* Plugins that made buffers stay loaded; core/registry sets these at its first use (NULL before). */
extern void (*tn__plugin_hold)(void *self);
extern void (*tn__plugin_drop)(void *self);

typedef struct tn__buffer_map tn__buffer_map;

/* desc.device points behind the struct. When refs is 0 the struct's memory is freed: that of `inside`, or its own. */
struct tn_buffer {
  _Atomic uint32_t refs;
  tn_dtype managed;    /* string, resource or variant: the elements are cleared at the end; 0: nothing to clear */
  tn_buffer_desc desc;
  tn_tensor *inside;   /* the tensor whose allocation holds this struct, or NULL */
  size_t alloc_size;   /* of this struct's own allocation when `inside` is NULL */
  tn__buffer_map *map; /* serialises desc.map; NULL without one */
  tn__account *account; /* that the tensor inside of which it is was charged to, a reference; NULL = none */
};

/* A tensor of up to this rank keeps its dims inside. */
#define TN_INLINE_RANK 6

struct tn_tensor {
  _Atomic uint32_t refs;
  tn_dtype dtype;
  int32_t rank;
  size_t alloc_size;   /* bytes of the allocation that this struct begins, with its own buffer and elements if inside */
  int64_t count;       /* elements */
  size_t bytes;
  size_t offset;       /* of the first element in the buffer */
  void *data;          /* host address or NULL */
  tn_buffer *buffer;   /* always set; for a tensor made by tn_tensor_create it may lie in the same allocation */
  int64_t *dims;       /* = inline_dims, or behind the struct */
  int64_t inline_dims[TN_INLINE_RANK];
};

/* As tn_tensor_create, without the check of dims and sizes: count and bytes are known to be right. For the executor. */
tn_status tn__tensor_create_known(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                                  tn_tensor **out, tn_error *err);

/* The tensor is the program's from now on, and counts no more. */
void tn__tensor_leave_account(tn_tensor *tensor);

/* A constant without a copy: a tensor over `data`, part of a block of memory that `holder_buffer` holds (IMMUTABLE).
 * The data may be unaligned for its type, so it is copied to aligned memory unless data is aligned to the element
 * size. */
tn_status tn__tensor_constant(tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data, size_t bytes,
                              tn_buffer *holder_buffer, tn_tensor **out, tn_error *err);

/* Gives up a large tensor that will hardly be followed by one of its size: with the last reference its pages go back to
 * the system at once, where an allocator would keep them. */
void tn__tensor_unref_large(tn_tensor *tensor);

/* What a tensor is like, without its elements: data is NULL, whatever `bytes` says. For plans that can make the
 * elements again. */
tn_status tn__tensor_outline(tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count, size_t bytes,
                             tn_tensor **out, tn_error *err);
bool tn__tensor_is_outline(const tn_tensor *tensor);

/* Makes room for `length` bytes in an element and gives their address; the text is not set. What the element held is
 * freed. NULL without memory: the element is as it was. */
char *tn__string_reserve(tn_string *s, size_t length);

/* Frees or copies elements that own memory; nothing for other dtypes. tn__elements_copy wants `to` zeroed, and clears
 * what it made when it fails. */
void tn__elements_clear(tn_dtype dtype, void *data, int64_t count);
tn_status tn__elements_copy(tn_dtype dtype, void *to, const void *from, int64_t count, tn_error *err);

/* Alignment that elements need: their size, half of it for complex types, 8 for string and handle elements. */
size_t tn__dtype_align(tn_dtype dtype);

/* Copies bytes [offset, offset + bytes) of a buffer of any memory kind to the host. */
tn_status tn__buffer_read(tn_buffer *buffer, size_t offset, void *to, size_t bytes, tn_error *err);

/* Fills a view (op.h) from a tensor is in core/exec; this room does not know views. */

static inline bool tn__dtype_is_ref(tn_dtype d) { return d > TN_DTYPE_REF; }
static inline tn_dtype tn__dtype_base(tn_dtype d) { return d > TN_DTYPE_REF ? d - TN_DTYPE_REF : d; }
/* Elements own heap memory or references: string, resource, variant. */
static inline bool tn__dtype_is_managed(tn_dtype d) { return d == TN_STRING || d == TN_RESOURCE || d == TN_VARIANT; }

#endif
