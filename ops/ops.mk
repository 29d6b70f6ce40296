# SPDX-License-Identifier: Apache-2.0
# Families of ops. ops/NAME.c defines `const tn_op_family tn__ops_NAME`; the table of families is made from this list, so a
# new family is its file and one line here.
TN_OPS_FILES = \
  ops/activation.c \
  ops/bias.c \
  ops/cast.c \
  ops/compare.c \
  ops/constants.c \
  ops/conv.c \
  ops/fuse.c \
  ops/fused.c \
  ops/math_binary.c \
  ops/math_unary.c \
  ops/matmul.c \
  ops/pool.c \
  ops/reduce.c \
  ops/reshape.c \
  ops/softmax.c

# What several families share.
TN_OPS_SHARED_FILES = \
  ops/support/broadcast.c \
  ops/support/broadcast.h \
  ops/support/complex.h \
  ops/support/convert.c \
  ops/support/convert.h \
  ops/support/elementwise.c \
  ops/support/elementwise.h \
  ops/support/epilogue.c \
  ops/support/epilogue.h \
  ops/support/gemm.c \
  ops/support/gemm.h \
  ops/support/gemm_kernel.h \
  ops/support/gemm_tile.h \
  ops/support/gemm_tiles.c \
  ops/support/half.c \
  ops/support/half.h \
  ops/support/reduce_loops.c \
  ops/support/reduce_loops.h \
  ops/support/reduce_plan.c \
  ops/support/reduce_plan.h \
  ops/support/rounding.h \
  ops/support/shapes.c \
  ops/support/shapes.h \
  ops/support/vector_math.h \
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
