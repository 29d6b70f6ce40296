/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as protobuf's TensorProto, in texts. */
#ifndef TN_OPS_STRING_STRING_PROTO_H
#define TN_OPS_STRING_STRING_PROTO_H

#include <core/base/text.h>
#include <ops/kernel/shapes.h>

/* Appends a tensor: its elements as they lie in memory, strings one by one. Not for handles. */
void tn__proto_put_tensor(tn__text *t, const tn_view *view);

/* What a TensorProto says; slices are borrowed from it. */
typedef struct tn__proto_tensor {
  tn__slice all;
  tn_dtype dtype;
  tn__shape shape;   /* that of a scalar when its rank is not known */
  tn__slice content; /* empty: the elements are in fields of their own */
} tn__proto_tensor;

/* TN_INVALID_ARGUMENT: it is none, or its shape is none. */
tn_status tn__proto_read_tensor(tn__slice text, tn__proto_tensor *out, tn_error *err);
/* Its `count` elements. Fewer values than elements: the last one is repeated, none is 0; more are left out. */
tn_status tn__proto_read_elements(const tn__proto_tensor *proto, int64_t count, void *to, tn_error *err);

#endif
