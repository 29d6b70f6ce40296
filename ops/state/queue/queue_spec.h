/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a queue: its kind, its capacity, dtypes and shapes of an element's components. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_SPEC_H
#define TN_OPS_STATE_QUEUE_QUEUE_SPEC_H

#include <ops/kernel/shapes.h>
#include <stdatomic.h>

typedef enum tn__queue_kind {
  TN__QUEUE_FIFO,
  TN__QUEUE_PADDING,  /* unknown dimensions may differ between elements: batches are padded */
  TN__QUEUE_RANDOM,
  TN__QUEUE_PRIORITY  /* component 0 is an int64; the lowest value is taken first */
} tn__queue_kind;

typedef struct tn__queue_component {
  tn_dtype dtype;
  int32_t rank;        /* -1: any shape */
  const int64_t *dims; /* -1: any size, in a padding queue */
} tn__queue_component;

/* Immutable and reference-counted: a kernel shares one with the queues that it creates. */
typedef struct tn__queue_spec {
  _Atomic uint32_t refs;
  tn__queue_kind kind;
  bool has_shapes;
  uint32_t n; /* components */
  int64_t capacity; /* INT64_MAX: unlimited */
  int64_t min_after_dequeue;
  int64_t seed, seed2;
  size_t bytes; /* of this allocation */
  tn__queue_component components[];
} tn__queue_spec;

/* Reads the attributes of a node that creates a queue. `leading` are the dtypes of n_leading scalar
 * components before its component_types. TN_INVALID_ARGUMENT; the error names the attribute. */
tn_status tn__queue_spec_read(const tn_operation *op, tn__queue_kind kind, const tn_dtype *leading, uint32_t n_leading,
                              tn__queue_spec **out, tn_error *err);
tn__queue_spec *tn__queue_spec_ref(tn__queue_spec *spec);
void tn__queue_spec_unref(tn__queue_spec *spec); /* NULL allowed */

/* TN_INVALID_ARGUMENT if an existing object differs from what a node wants; the error says how.
 * `what` is "queue" or "barrier". */
tn_status tn__queue_spec_match(const tn__queue_spec *found, const tn__queue_spec *wanted, const char *what,
                               const char *name, tn_error *err);

/* Whether elements of this shape fit component i. `rows`: the shape has a leading batch dimension. */
bool tn__queue_spec_fits(const tn__queue_spec *spec, uint32_t i, const int64_t *dims, int32_t rank, bool rows);

#endif
