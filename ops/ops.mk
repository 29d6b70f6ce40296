# SPDX-License-Identifier: Apache-2.0
# Families of ops. ops/NAME.c defines `const tn_op_family tn__ops_NAME`; the table of families is made from this list, so a
# new family is its file and one line here.
TN_OPS_FILES = \
  ops/activation.c \
  ops/activation_grad.c \
  ops/algebra.c \
  ops/batch_norm.c \
  ops/batch_norm_grad.c \
  ops/bias.c \
  ops/bitwise.c \
  ops/broadcast_args.c \
  ops/cast.c \
  ops/compare.c \
  ops/concat.c \
  ops/constants.c \
  ops/conv.c \
  ops/conv3d.c \
  ops/conv_grad.c \
  ops/depthwise.c \
  ops/diag.c \
  ops/dilation.c \
  ops/einsum.c \
  ops/elementwise_program.c \
  ops/fill.c \
  ops/functions.c \
  ops/fuse.c \
  ops/fuse_elementwise.c \
  ops/fuse_gru.c \
  ops/fuse_gru_layer.c \
  ops/fuse_lstm.c \
  ops/fuse_lstm_layer.c \
  ops/fused.c \
  ops/gather.c \
  ops/gru.c \
  ops/gru_layer.c \
  ops/loss.c \
  ops/lrn.c \
  ops/lstm.c \
  ops/lstm_cell.c \
  ops/lstm_grad.c \
  ops/lstm_layer.c \
  ops/math_binary.c \
  ops/math_unary.c \
  ops/matmul.c \
  ops/matrix_diag.c \
  ops/mirror_pad.c \
  ops/multinomial.c \
  ops/one_hot.c \
  ops/pad.c \
  ops/partition.c \
  ops/patches.c \
  ops/pool.c \
  ops/pool3d.c \
  ops/pool_argmax.c \
  ops/pool_grad.c \
  ops/random.c \
  ops/random_rates.c \
  ops/random_stateless.c \
  ops/range.c \
  ops/reduce.c \
  ops/reshape.c \
  ops/reverse.c \
  ops/roll.c \
  ops/scan.c \
  ops/scatter.c \
  ops/search.c \
  ops/select.c \
  ops/shuffle.c \
  ops/slice.c \
  ops/softmax.c \
  ops/space_batch.c \
  ops/space_depth.c \
  ops/special.c \
  ops/split.c \
  ops/strided_slice.c \
  ops/tile.c \
  ops/top_k.c \
  ops/transpose.c \
  ops/unique.c \
  ops/view.c \
  ops/where.c

# What several families share.
TN_OPS_SHARED_FILES = \
  ops/support/after_product.c \
  ops/support/after_product.h \
  ops/support/batch_norm.c \
  ops/support/batch_norm.h \
  ops/support/broadcast.c \
  ops/support/broadcast.h \
  ops/support/channels.c \
  ops/support/channels.h \
  ops/support/complex.h \
  ops/support/conv_product.c \
  ops/support/conv_product.h \
  ops/support/convert.c \
  ops/support/convert.h \
  ops/support/convolution.c \
  ops/support/convolution.h \
  ops/support/elements.c \
  ops/support/elements.h \
  ops/support/elementwise.c \
  ops/support/elementwise.h \
  ops/support/epilogue.c \
  ops/support/epilogue.h \
  ops/support/equation.c \
  ops/support/equation.h \
  ops/support/gates.c \
  ops/support/gates.h \
  ops/support/gemm.c \
  ops/support/gemm.h \
  ops/support/gemm_kernel.h \
  ops/support/gemm_tile.h \
  ops/support/gemm_tiles.c \
  ops/support/half.c \
  ops/support/half.h \
  ops/support/index_group.h \
  ops/support/indices.c \
  ops/support/indices.h \
  ops/support/join.c \
  ops/support/join.h \
  ops/support/leaky.c \
  ops/support/leaky.h \
  ops/support/lstm.c \
  ops/support/lstm.h \
  ops/support/operands.c \
  ops/support/operands.h \
  ops/support/order.c \
  ops/support/order.h \
  ops/support/padding.c \
  ops/support/padding.h \
  ops/support/philox.c \
  ops/support/philox.h \
  ops/support/pooling.c \
  ops/support/pooling.h \
  ops/support/product_loops.c \
  ops/support/product_loops.h \
  ops/support/program.c \
  ops/support/program.h \
  ops/support/program_plan.c \
  ops/support/random.c \
  ops/support/random.h \
  ops/support/random_fill.c \
  ops/support/recurrent.c \
  ops/support/recurrent.h \
  ops/support/reduce_loops.c \
  ops/support/reduce_loops.h \
  ops/support/reduce_plan.c \
  ops/support/reduce_plan.h \
  ops/support/resources.c \
  ops/support/resources.h \
  ops/support/rounding.h \
  ops/support/shapes.c \
  ops/support/shapes.h \
  ops/support/slicing.c \
  ops/support/slicing.h \
  ops/support/special_functions.c \
  ops/support/special_functions.h \
  ops/support/steps.c \
  ops/support/steps.h \
  ops/support/strided.c \
  ops/support/strided.h \
  ops/support/strided_blocks.c \
  ops/support/strided_blocks.h \
  ops/support/vector_math.h \
  ops/support/vectors.c \
  ops/support/vectors.h \
  ops/support/volume.c \
  ops/support/volume.h \
  ops/support/widen.c \
  ops/support/widen.h \
  ops/support/window.c \
  ops/support/window.h

noinst_LTLIBRARIES += ops/libops.la
ops_libops_la_SOURCES = $(TN_OPS_FILES) $(TN_OPS_SHARED_FILES)
nodist_ops_libops_la_SOURCES = ops/ops_table.c
ops_libops_la_CFLAGS = $(TN_CFLAGS) $(TN_OPS_OPT) $(TN_OPS_CFLAGS) $(TN_SANITIZE)
EXTRA_ops_libops_la_DEPENDENCIES = $(top_srcdir)/ops/ops.mk
CLEANFILES += ops/ops_table.c

ops/ops_table.c: $(top_srcdir)/ops/ops.mk $(top_srcdir)/build-aux/gen-table.sh
	$(TN_GEN_TABLE) ops $(TN_OPS_FILES) >$@.tmp && mv -f $@.tmp $@
