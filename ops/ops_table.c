/* SPDX-License-Identifier: Apache-2.0 */
/* Made by build-aux/gen-table.sh from the list of ops; do not edit. */
#include <stddef.h>

#include <tenon/op.h>

extern const tn_op_family tn__ops_activation;
extern const tn_op_family tn__ops_activation_grad;
extern const tn_op_family tn__ops_batch_norm;
extern const tn_op_family tn__ops_batch_norm_grad;
extern const tn_op_family tn__ops_bias;
extern const tn_op_family tn__ops_bitwise;
extern const tn_op_family tn__ops_broadcast_args;
extern const tn_op_family tn__ops_cast;
extern const tn_op_family tn__ops_compare;
extern const tn_op_family tn__ops_concat;
extern const tn_op_family tn__ops_constants;
extern const tn_op_family tn__ops_conv;
extern const tn_op_family tn__ops_conv3d;
extern const tn_op_family tn__ops_conv_grad;
extern const tn_op_family tn__ops_depthwise;
extern const tn_op_family tn__ops_diag;
extern const tn_op_family tn__ops_dilation;
extern const tn_op_family tn__ops_einsum;
extern const tn_op_family tn__ops_fill;
extern const tn_op_family tn__ops_functions;
extern const tn_op_family tn__ops_fuse;
extern const tn_op_family tn__ops_fused;
extern const tn_op_family tn__ops_gather;
extern const tn_op_family tn__ops_gru;
extern const tn_op_family tn__ops_lrn;
extern const tn_op_family tn__ops_lstm;
extern const tn_op_family tn__ops_lstm_grad;
extern const tn_op_family tn__ops_math_binary;
extern const tn_op_family tn__ops_math_unary;
extern const tn_op_family tn__ops_matmul;
extern const tn_op_family tn__ops_matrix_diag;
extern const tn_op_family tn__ops_mirror_pad;
extern const tn_op_family tn__ops_one_hot;
extern const tn_op_family tn__ops_pad;
extern const tn_op_family tn__ops_partition;
extern const tn_op_family tn__ops_patches;
extern const tn_op_family tn__ops_pool;
extern const tn_op_family tn__ops_pool3d;
extern const tn_op_family tn__ops_pool_argmax;
extern const tn_op_family tn__ops_pool_grad;
extern const tn_op_family tn__ops_range;
extern const tn_op_family tn__ops_reduce;
extern const tn_op_family tn__ops_reshape;
extern const tn_op_family tn__ops_reverse;
extern const tn_op_family tn__ops_roll;
extern const tn_op_family tn__ops_scan;
extern const tn_op_family tn__ops_scatter;
extern const tn_op_family tn__ops_search;
extern const tn_op_family tn__ops_select;
extern const tn_op_family tn__ops_slice;
extern const tn_op_family tn__ops_softmax;
extern const tn_op_family tn__ops_space_batch;
extern const tn_op_family tn__ops_space_depth;
extern const tn_op_family tn__ops_split;
extern const tn_op_family tn__ops_strided_slice;
extern const tn_op_family tn__ops_tile;
extern const tn_op_family tn__ops_top_k;
extern const tn_op_family tn__ops_transpose;
extern const tn_op_family tn__ops_unique;
extern const tn_op_family tn__ops_view;
extern const tn_op_family tn__ops_where;
extern const tn_op_family *const tn__op_families[];
extern const size_t tn__n_op_families;

const tn_op_family *const tn__op_families[] = {
  &tn__ops_activation,
  &tn__ops_activation_grad,
  &tn__ops_batch_norm,
  &tn__ops_batch_norm_grad,
  &tn__ops_bias,
  &tn__ops_bitwise,
  &tn__ops_broadcast_args,
  &tn__ops_cast,
  &tn__ops_compare,
  &tn__ops_concat,
  &tn__ops_constants,
  &tn__ops_conv,
  &tn__ops_conv3d,
  &tn__ops_conv_grad,
  &tn__ops_depthwise,
  &tn__ops_diag,
  &tn__ops_dilation,
  &tn__ops_einsum,
  &tn__ops_fill,
  &tn__ops_functions,
  &tn__ops_fuse,
  &tn__ops_fused,
  &tn__ops_gather,
  &tn__ops_gru,
  &tn__ops_lrn,
  &tn__ops_lstm,
  &tn__ops_lstm_grad,
  &tn__ops_math_binary,
  &tn__ops_math_unary,
  &tn__ops_matmul,
  &tn__ops_matrix_diag,
  &tn__ops_mirror_pad,
  &tn__ops_one_hot,
  &tn__ops_pad,
  &tn__ops_partition,
  &tn__ops_patches,
  &tn__ops_pool,
  &tn__ops_pool3d,
  &tn__ops_pool_argmax,
  &tn__ops_pool_grad,
  &tn__ops_range,
  &tn__ops_reduce,
  &tn__ops_reshape,
  &tn__ops_reverse,
  &tn__ops_roll,
  &tn__ops_scan,
  &tn__ops_scatter,
  &tn__ops_search,
  &tn__ops_select,
  &tn__ops_slice,
  &tn__ops_softmax,
  &tn__ops_space_batch,
  &tn__ops_space_depth,
  &tn__ops_split,
  &tn__ops_strided_slice,
  &tn__ops_tile,
  &tn__ops_top_k,
  &tn__ops_transpose,
  &tn__ops_unique,
  &tn__ops_view,
  &tn__ops_where,
  NULL,
};
const size_t tn__n_op_families = sizeof(tn__op_families) / sizeof(tn__op_families[0]) - 1;
