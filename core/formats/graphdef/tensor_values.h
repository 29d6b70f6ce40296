/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a TensorProto, without its dtype and shape: those are in the message for a constant, and elsewhere
 * for the values of a checkpoint (V1). */
#ifndef TN_CORE_FORMATS_GRAPHDEF_TENSOR_VALUES_H
#define TN_CORE_FORMATS_GRAPHDEF_TENSOR_VALUES_H

#include <core/formats/wire.h>
#include <tenon/tensor.h>

/* TensorProto */
enum {
  TN__TENSOR_DTYPE = 1,
  TN__TENSOR_SHAPE = 2,
  TN__TENSOR_CONTENT = 4,
  TN__TENSOR_FLOAT = 5,
  TN__TENSOR_DOUBLE = 6,
  TN__TENSOR_INT = 7,
  TN__TENSOR_STRING = 8,
  TN__TENSOR_SCOMPLEX = 9,
  TN__TENSOR_INT64 = 10,
  TN__TENSOR_BOOL = 11,
  TN__TENSOR_DCOMPLEX = 12,
  TN__TENSOR_HALF = 13,
  TN__TENSOR_UINT32 = 16,
  TN__TENSOR_UINT64 = 17,
  TN__TENSOR_FLOAT8 = 18
};

/* The field that has the elements of a dtype. */
typedef struct tn__values_field {
  uint32_t number; /* 0: the dtype has none */
  int wire;        /* wire type of one number */
  size_t parts;    /* numbers per element */
  bool bytes;      /* each byte of the field is a number */
} tn__values_field;

tn__values_field tn__values_field_of(tn_dtype dtype);

/* The count of numbers in the field, single ones and those in packed runs; of texts for strings. The message is
 * well-formed. */
size_t tn__values_count(tn__slice proto, tn_dtype dtype);
/* Stores numbers in the order of the message, until there are `limit` of them. Returns how many were stored. Not for
 * strings. */
size_t tn__values_store(tn__slice proto, tn_dtype dtype, void *to, size_t limit);
/* Whether elements do not use all bits of their byte, so that not every byte is a valid one. */
static inline bool tn__values_masked(tn_dtype dtype)
{
  return dtype == TN_BOOL || dtype == TN_UINT4 || dtype == TN_UINT2 || dtype == TN_INT4 || dtype == TN_INT2;
}
/* Masks a value of such a type: the low bits count, as in a cast. */
uint64_t tn__values_narrow(tn_dtype dtype, uint64_t value);
/* Finds the one run of bytes that has all numbers as in memory: tensor_content, or a packed field of numbers of a fixed
 * size. False: there are several, or the numbers have another form, or must be masked. */
bool tn__values_run(tn__slice proto, tn_dtype dtype, tn__slice *run);

/* The number of elements that a message has. False: the message is malformed, or its bytes are no whole elements.
 * tensor_content of strings is not accepted. */
bool tn__values_elements(tn__slice proto, tn_dtype dtype, uint64_t *elements);
/* Stores exactly `elements` elements, which is what tn__values_elements found. Strings must be initialised. Fails only
 * without memory for strings. */
tn_status tn__values_read(tn__slice proto, tn_dtype dtype, uint64_t elements, void *to, tn_error *err);

#endif
