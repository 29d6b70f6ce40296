/* SPDX-License-Identifier: Apache-2.0 */
/* What a queue is like: its kind, its capacity, dtypes and shapes of the components of an element. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_SPEC_H
#define TN_OPS_STATE_QUEUE_QUEUE_SPEC_H

#include <ops/kernel/shapes.h>
#include <stdatomic.h>

typedef enum tn__queue_kind {
  TN__QUEUE_FIFO,
  TN__QUEUE_PADDING,  /* dimensions may differ from element to element: a batch is padded */
  TN__QUEUE_RANDOM,
  TN__QUEUE_PRIORITY  /* component 0 is an int64: the lowest comes first */
} tn__queue_kind;

typedef struct tn__queue_component {
  tn_dtype dtype;
  int32_t rank;        /* -1: any shape */
  const int64_t *dims; /* -1: any, in a padding queue */
} tn__queue_component;

/* Immutable, counted: kernels and the queues that they make share one. */
typedef struct tn__queue_spec {
  _Atomic uint32_t refs;
  tn__queue_kind kind;
  bool has_shapes;
  uint32_t n; /* components */
  int64_t capacity; /* INT64_MAX: without end */
  int64_t min_after_dequeue;
  int64_t seed, seed2;
  size_t bytes; /* of this allocation */
  tn__queue_component components[];
} tn__queue_spec;

/* From the attributes of a node that makes a queue; `leading` are the dtypes of n_leading scalars in front of its
 * component_types. TN_INVALID_ARGUMENT names the attribute. */
tn_status tn__queue_spec_read(const tn_operation *op, tn__queue_kind kind, const tn_dtype *leading, uint32_t n_leading,
                              tn__queue_spec **out, tn_error *err);
tn__queue_spec *tn__queue_spec_ref(tn__queue_spec *spec);
void tn__queue_spec_unref(tn__queue_spec *spec); /* NULL allowed */

/* TN_INVALID_ARGUMENT says how what is there differs from what a node wants; `what` is "queue" or "barrier". */
tn_status tn__queue_spec_match(const tn__queue_spec *found, const tn__queue_spec *wanted, const char *what,
                               const char *name, tn_error *err);

/* Whether elements of this shape fit component i; `rows`: the shape has a dimension in front. */
bool tn__queue_spec_fits(const tn__queue_spec *spec, uint32_t i, const int64_t *dims, int32_t rank, bool rows);

#endif
