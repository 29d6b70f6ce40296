/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor arrays: tensors by index that one step writes and reads, and arrays of gradients beside them.
 *
 * An array belongs to whoever has its handle. Each call takes the array's lock once; tensors are kept, not copied. An element
 * goes through: not written, written, read; after a read it is cleared unless the array keeps what was read. In an array of
 * gradients an element may be written again, which adds, and a written element may be just a shape, which reads as zeros. */
#ifndef TN_OPS_STATE_LIST_TENSOR_ARRAY_STORE_H
#define TN_OPS_STATE_LIST_TENSOR_ARRAY_STORE_H

#include <core/base/lock.h>
#include <core/tensor/account.h>
#include <ops/kernel/move/pieces.h>
#include <tenon/resource.h>

typedef struct tn__array_item {
  tn_tensor *tensor; /* NULL: not written, a shape alone, or cleared */
  uint32_t shape;    /* where in `shapes` its shape is, once it was written */
  uint32_t flags;
} tn__array_item;

typedef struct tn__array_gradient {
  char *source;
  tn_resource *resource;
} tn__array_gradient;

typedef struct tn__array {
  tn__mutex mu;
  tn_dtype dtype;
  bool clear_after_read, identical_shapes, is_gradient;
  char *step_name; /* in the step's container, for handles that are strings; NULL = there is none */
  /* Guarded by mu from here on. */
  bool grows, closed;
  int64_t size, used; /* elements from `used` on were never touched */
  size_t room;
  tn__charge charge;    /* of items */
  tn__array_item *items;
  tn__shape element;    /* partial shape of all elements */
  int64_t *shapes;      /* rank and dims, one after the other */
  size_t n_shapes, shapes_room;
  uint32_t last_shape;  /* the one that was added last; elements are mostly alike */
  tn__array_gradient *gradients;
  size_t n_gradients, gradients_room;
} tn__array;

extern const tn_resource_class tn__array_class;

/* First of the two strings that are a handle in the older versions. */
#define TN__ARRAY_HOME "_tensor_arrays"

/* What an array is to be like. */
typedef struct tn__array_spec {
  tn_dtype dtype;
  int64_t size;
  const int64_t *dims; /* of the elements, partial */
  int32_t rank;
  bool grows, clear_after_read, identical_shapes;
} tn__array_spec;
tn_status tn__array_create(const tn__array_spec *spec, tn__array **out, tn_error *err);
void tn__array_destroy(void *array);

/* The array of gradients of this name, made at the first call: from then on the array does not grow. Shapes of elements begin
 * with `prepend`. *out is a reference. */
tn_status tn__array_gradient_of(tn__array *array, const char *name, const char *source, const tn__shape *prepend,
                                tn_resource **out, tn_error *err);

/* The same when there is one: NULL otherwise. */
tn_resource *tn__array_find_gradient(tn__array *array, const char *source);

/* Writes tensor k of n to element indices[k] (NULL: to element k). tensors has room for 2 * n, the second half NULL: all that
 * is there afterwards is the caller's to drop, outside of the lock. `name` is for messages. */
tn_status tn__array_write(tn__array *array, const char *name, const int32_t *indices, tn_tensor **tensors, int64_t n,
                          tn_error *err);

/* Reads elements indices[k] (NULL: element k) to tensors[k], references that the caller drops, also after a failure; all
 * NULL before. */
tn_status tn__array_read(tn__array *array, const char *name, const int32_t *indices, tn_tensor **tensors, int64_t n,
                         tn_error *err);

/* TN_INVALID_ARGUMENT once it was closed. */
tn_status tn__array_size(tn__array *array, const char *name, int64_t *size, bool *grows, tn_error *err);
void tn__array_close(tn__array *array);

/* Says more of the shape of elements: the array's is then the one of both, *element. */
tn_status tn__array_refine(tn__array *array, const char *name, const int64_t *dims, int32_t rank, tn__shape *element,
                           tn_error *err);

/* The array has this dtype, else TN_INVALID_ARGUMENT. */
tn_status tn__array_want(const tn__array *array, const char *name, tn_dtype dtype, tn_error *err);

#endif
