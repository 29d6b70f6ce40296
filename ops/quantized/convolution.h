/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of convolutions over any number of spatial dimensions, in any order of dimensions, with dilated inputs
 * and groups. A product of matrices is one without spatial dimensions. */
#ifndef OPS_QUANTIZED_CONVOLUTION_H
#define OPS_QUANTIZED_CONVOLUTION_H

#include <ops/kernel/shapes.h>
#include <stdint.h>

/* Numbers of dimensions: of the input, the kernel and the output. For the kernel, `first` is the output's feature. */
typedef struct tn__dimensions {
  int64_t first, feature; /* batch (or output feature) and feature */
  int64_t spatial[TN_MAX_RANK];
  int64_t n;
} tn__dimensions;

typedef struct tn__ints {
  int64_t items[2 * TN_MAX_RANK];
  int64_t n;
} tn__ints;

typedef struct tn__convolution_attrs {
  bool product;     /* of matrices: there are no attributes */
  bool numbered;    /* the dimensions are given */
  enum { TN__CONV_EXPLICIT, TN__CONV_SAME, TN__CONV_VALID } padding;
  tn__ints strides, paddings, lhs_dilation, rhs_dilation;
  int64_t feature_groups, batch_groups;
  tn__dimensions lhs, rhs, out;
} tn__convolution_attrs;
tn_status tn__convolution_read(const tn_operation *op, tn__convolution_attrs *out, tn_error *err);

/* A spatial dimension: sizes and strides, in elements, of the input, the kernel and the output. */
typedef struct tn__conv_axis {
  int64_t in, in_stride, kernel, kernel_stride, out, out_stride;
  int64_t stride, in_dilation, dilation, before;
} tn__conv_axis;

typedef struct tn__convolution {
  int32_t rank, spatial;
  int64_t out[TN_MAX_RANK];
  tn__conv_axis axis[TN_MAX_RANK];
  int64_t batches, batch_stride, feature_stride, in_count;  /* of the input */
  int64_t out_batches, out_batch_stride, out_feature_stride;
  int64_t kernel_out_stride, kernel_in_stride, in_features; /* of the kernel */
  int64_t rows, features, terms; /* of the product: output positions, output features, length of the sums */
  int64_t feature_groups, batch_groups;
  int64_t rhs_feature, out_feature; /* their dimensions */
} tn__convolution;
tn_status tn__convolution_fit(const tn__convolution_attrs *a, const char *op, const tn_view *lhs, const tn_view *rhs,
                              tn__convolution *out, tn_error *err);

/* In each group, all features read the same inputs. */
int64_t tn__convolution_groups(const tn__convolution *c);
/* The position in the output of feature 0 of a row, and the batch of the input that a feature of it reads. */
int64_t tn__convolution_out(const tn__convolution *c, int64_t row);
int64_t tn__convolution_batch(const tn__convolution *c, int64_t row, int64_t feature);

/* The kernel as rows of terms, one for each output feature. */
void tn__convolution_kernel(const tn__convolution *c, const int8_t *from, int8_t *to);
/* Quantises each batch of a float input; scales and zeros have an element for each. */
void tn__convolution_quantize(const tn__convolution *c, const float *from, int8_t *to, float *scales, int32_t *zeros);

/* The rows that the features of a group multiply; a tn__bytes_rows. */
typedef struct tn__convolution_rows {
  const tn__convolution *c;
  const int8_t *values;
  const int32_t *zeros; /* subtracted; for each batch if zero_step is 1 */
  int64_t zero_step, feature;
  bool ones;
} tn__convolution_rows;
void tn__convolution_read_row(const void *user, int64_t row, int64_t term, int64_t n, int16_t *to);

#endif
