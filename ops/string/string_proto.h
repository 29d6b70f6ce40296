/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as serialised TensorProto messages of protobuf. */
#ifndef TN_OPS_STRING_STRING_PROTO_H
#define TN_OPS_STRING_STRING_PROTO_H

#include <core/base/text.h>
#include <ops/kernel/shapes.h>

/* Appends a tensor: its elements as in memory, strings one by one. Handles are not supported. */
void tn__proto_put_tensor(tn__text *t, const tn_view *view);

/* The same with strings in one run of bytes, as SerializeSparse writes them: all lengths, then all texts. */
void tn__proto_put_content(tn__text *t, const tn_view *view);

/* A parsed TensorProto; slices are borrowed from the text. */
typedef struct tn__proto_tensor {
  tn__slice all;
  tn_dtype dtype;
  tn__shape shape;   /* a scalar's if the rank is unknown */
  tn__slice content; /* empty: the elements are in typed fields */
} tn__proto_tensor;

/* TN_INVALID_ARGUMENT if the text is no TensorProto, or its shape is invalid. */
tn_status tn__proto_read_tensor(tn__slice text, tn__proto_tensor *out, tn_error *err);
/* The bytes of all elements in memory. A few bytes can request any number of repetitions of a value, so the size is
 * limited: TN_RESOURCE_EXHAUSTED. */
tn_status tn__proto_tensor_bytes(const tn__proto_tensor *proto, size_t *bytes, tn_error *err);
/* Reads `count` elements. If there are fewer values, the last one is repeated; without values
 * elements are 0. Surplus values are ignored. */
tn_status tn__proto_read_elements(const tn__proto_tensor *proto, int64_t count, void *to, tn_error *err);

#endif
