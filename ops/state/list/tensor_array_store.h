/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor arrays: tensors by index that are written and read within one step, and associated arrays
 * of gradients.
 *
 * An array is owned by the holders of its handle. Each call takes the array's lock once; tensors
 * are referenced, not copied. The states of an element are: not written, written, read. Reading
 * clears the element unless the array keeps what was read. In an array of gradients, writing an
 * element again adds to it, and a written element may be a mere shape, which reads as zeros. */
#ifndef TN_OPS_STATE_LIST_TENSOR_ARRAY_STORE_H
#define TN_OPS_STATE_LIST_TENSOR_ARRAY_STORE_H

#include <core/base/threads/lock.h>
#include <core/tensor/account.h>
#include <ops/kernel/move/pieces.h>
#include <tenon/resource.h>

typedef struct tn__array_item {
  tn_tensor *tensor; /* NULL: not written, a shape alone, or cleared */
  uint32_t shape;    /* index in `shapes` of its shape, once written */
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
  char *step_name; /* name in the step's container, for string handles; NULL = none */
  /* Guarded by mu from here on. */
  bool grows, closed;
  int64_t size, used; /* elements from `used` on were never written */
  size_t room;
  tn__charge charge;    /* of items */
  tn__array_item *items;
  tn__shape element;    /* partial shape of all elements */
  int64_t *shapes;      /* records of rank and dims */
  size_t n_shapes, shapes_room;
  uint32_t last_shape;  /* the latest record; elements are mostly alike */
  tn__array_gradient *gradients;
  size_t n_gradients, gradients_room;
} tn__array;

extern const tn_resource_class tn__array_class;

/* The first of the two strings of a handle in the older versions. */
#define TN__ARRAY_HOME "_tensor_arrays"

/* Properties of a new array. */
typedef struct tn__array_spec {
  tn_dtype dtype;
  int64_t size;
  const int64_t *dims; /* of the elements, partial */
  int32_t rank;
  bool grows, clear_after_read, identical_shapes;
} tn__array_spec;
tn_status tn__array_create(const tn__array_spec *spec, tn__array **out, tn_error *err);
void tn__array_destroy(void *array);

/* The array of gradients of this name, created on the first call; then the array no longer grows.
 * Shapes of its elements begin with `prepend`. The caller owns the reference *out. */
tn_status tn__array_gradient_of(tn__array *array, const char *name, const char *source, const tn__shape *prepend,
                                tn_resource **out, tn_error *err);

/* The same, but NULL if there is none. */
tn_resource *tn__array_find_gradient(tn__array *array, const char *source);

/* Writes tensors[k], k < n, to element indices[k], or to element k if `indices` is NULL. `tensors`
 * has room for 2 * n, and its second half must be NULL. On return the caller owns the tensors in it
 * and releases them. `name` is for error messages. */
tn_status tn__array_write(tn__array *array, const char *name, const int32_t *indices, tn_tensor **tensors, int64_t n,
                          tn_error *err);

/* Reads element indices[k], or element k if `indices` is NULL, to tensors[k], which must be NULL
 * before. The caller owns the references, also after a failure. */
tn_status tn__array_read(tn__array *array, const char *name, const int32_t *indices, tn_tensor **tensors, int64_t n,
                         tn_error *err);

/* TN_INVALID_ARGUMENT if the array was closed. */
tn_status tn__array_size(tn__array *array, const char *name, int64_t *size, bool *grows, tn_error *err);
void tn__array_close(tn__array *array);

/* Merges a partial shape into that of the elements. *element is the result. */
tn_status tn__array_refine(tn__array *array, const char *name, const int64_t *dims, int32_t rank, tn__shape *element,
                           tn_error *err);

/* TN_INVALID_ARGUMENT unless the array has this dtype. */
tn_status tn__array_want(const tn__array *array, const char *name, tn_dtype dtype, tn_error *err);

#endif
