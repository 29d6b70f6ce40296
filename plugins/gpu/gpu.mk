# SPDX-License-Identifier: Apache-2.0
# Built if the OpenCL headers are available.

# Ops on the device. ops/SUBJECT/NAME.c defines the table `const gpu_op gpu_NAME_ops[]`; the list of tables is generated from
# this one, so a new op is its file and one line here. Its kernels are in TN_GPU_CL; helpers of several ops are in TN_GPU_OP_PARTS.
TN_GPU_OPS = \
  plugins/gpu/ops/array/batches.c \
  plugins/gpu/ops/array/check.c \
  plugins/gpu/ops/array/concat.c \
  plugins/gpu/ops/array/fill.c \
  plugins/gpu/ops/array/gather.c \
  plugins/gpu/ops/array/move.c \
  plugins/gpu/ops/array/pad.c \
  plugins/gpu/ops/array/roll.c \
  plugins/gpu/ops/array/scatter.c \
  plugins/gpu/ops/array/select.c \
  plugins/gpu/ops/array/top_k.c \
  plugins/gpu/ops/elementwise/elementwise.c \
  plugins/gpu/ops/image/resize.c \
  plugins/gpu/ops/image/resize_taps.c \
  plugins/gpu/ops/math/binary.c \
  plugins/gpu/ops/math/einsum.c \
  plugins/gpu/ops/math/matmul.c \
  plugins/gpu/ops/math/reduce.c \
  plugins/gpu/ops/math/scan.c \
  plugins/gpu/ops/math/unary.c \
  plugins/gpu/ops/nn/conv.c \
  plugins/gpu/ops/nn/depthwise.c \
  plugins/gpu/ops/nn/gradient.c \
  plugins/gpu/ops/nn/layer_norm.c \
  plugins/gpu/ops/nn/norm.c \
  plugins/gpu/ops/nn/pool.c \
  plugins/gpu/ops/nn/softmax.c \
  plugins/gpu/ops/rnn/lstm.c

TN_GPU_OP_PARTS = \
  plugins/gpu/ops/elementwise/elementwise.h \
  plugins/gpu/ops/elementwise/elementwise_text.c \
  plugins/gpu/ops/elementwise/elementwise_walk.c \
  plugins/gpu/ops/elementwise/steps.c \
  plugins/gpu/ops/elementwise/steps.h \
  plugins/gpu/ops/image/resize.h \
  plugins/gpu/ops/kernel/columns.c \
  plugins/gpu/ops/kernel/columns.h \
  plugins/gpu/ops/kernel/elements.c \
  plugins/gpu/ops/kernel/elements.h \
  plugins/gpu/ops/kernel/move.h \
  plugins/gpu/ops/kernel/move_walk.c \
  plugins/gpu/ops/kernel/product.c \
  plugins/gpu/ops/kernel/product.h \
  plugins/gpu/ops/kernel/window.c \
  plugins/gpu/ops/kernel/window.h

# Embedded in the plugin under its name without folder and suffix, so the name occurs once in all folders.
TN_GPU_CL = \
  plugins/gpu/ops/array/batches.cl \
  plugins/gpu/ops/array/check.cl \
  plugins/gpu/ops/array/fill.cl \
  plugins/gpu/ops/array/gather.cl \
  plugins/gpu/ops/array/roll.cl \
  plugins/gpu/ops/array/scatter.cl \
  plugins/gpu/ops/array/top_k.cl \
  plugins/gpu/ops/image/resize.cl \
  plugins/gpu/ops/image/resize_taps.cl \
  plugins/gpu/ops/kernel/columns.cl \
  plugins/gpu/ops/kernel/move.cl \
  plugins/gpu/ops/kernel/product.cl \
  plugins/gpu/ops/math/einsum.cl \
  plugins/gpu/ops/math/reduce.cl \
  plugins/gpu/ops/math/scan.cl \
  plugins/gpu/ops/nn/depthwise.cl \
  plugins/gpu/ops/nn/layer_norm.cl \
  plugins/gpu/ops/nn/norm.cl \
  plugins/gpu/ops/nn/pool.cl \
  plugins/gpu/ops/nn/softmax.cl \
  plugins/gpu/ops/rnn/lstm.cl \
  plugins/gpu/prelude.cl

EXTRA_DIST += plugins/gpu/README.md $(TN_GPU_CL) build-aux/embed.sh
plugins/gpu/embedded.c: $(TN_GPU_CL) $(top_srcdir)/build-aux/embed.sh
	@$(MKDIR_P) plugins/gpu
	$(AM_V_GEN)files=; for f in $(TN_GPU_CL); do \
	  if test -f $$f; then files="$$files $$f"; else files="$$files $(srcdir)/$$f"; fi; done; \
	  sh $(top_srcdir)/build-aux/embed.sh $$files >$@.new && mv -f $@.new $@
plugins/gpu/op_table.c: $(top_srcdir)/plugins/gpu/gpu.mk $(top_srcdir)/build-aux/gen-table.sh
	$(TN_GEN_TABLE) gpu $(TN_GPU_OPS) >$@.tmp && mv -f $@.tmp $@
CLEANFILES += plugins/gpu/embedded.c plugins/gpu/op_table.c
if HAVE_CLBLAST
TN_GPU_CLBLAST = -DGPU_CLBLAST
endif
if HAVE_OPENCL
TN_PLUGINS += plugins/gpu.la
plugins_gpu_la_SOURCES = \
  $(TN_GPU_OPS) \
  $(TN_GPU_OP_PARTS) \
  plugins/gpu/device/base.h \
  plugins/gpu/device/cl.c \
  plugins/gpu/device/cl.h \
  plugins/gpu/device/clblast.c \
  plugins/gpu/device/clblast.h \
  plugins/gpu/device/device.c \
  plugins/gpu/device/device.h \
  plugins/gpu/device/driver.c \
  plugins/gpu/device/driver.h \
  plugins/gpu/device/embedded.h \
  plugins/gpu/device/memory.c \
  plugins/gpu/device/memory.h \
  plugins/gpu/device/program.c \
  plugins/gpu/device/program.h \
  plugins/gpu/device/program_build.c \
  plugins/gpu/device/program_cache.c \
  plugins/gpu/device/program_parts.h \
  plugins/gpu/device/tensor.c \
  plugins/gpu/device/tensor.h \
  plugins/gpu/node/built.c \
  plugins/gpu/node/built.h \
  plugins/gpu/node/node.c \
  plugins/gpu/node/node.h \
  plugins/gpu/node/table.c \
  plugins/gpu/node/table.h \
  plugins/gpu/schedule/actions.h \
  plugins/gpu/schedule/arena.c \
  plugins/gpu/schedule/bindings.c \
  plugins/gpu/schedule/constants.c \
  plugins/gpu/schedule/constants.h \
  plugins/gpu/schedule/executable.c \
  plugins/gpu/schedule/executable.h \
  plugins/gpu/schedule/faults.c \
  plugins/gpu/schedule/lookup.c \
  plugins/gpu/schedule/lookup.h \
  plugins/gpu/schedule/nodes.c \
  plugins/gpu/schedule/order.c \
  plugins/gpu/schedule/order.h \
  plugins/gpu/schedule/placement.c \
  plugins/gpu/schedule/schedule.c \
  plugins/gpu/schedule/schedule.h \
  plugins/gpu/schedule/sequence.c \
  plugins/gpu/schedule/slots.h \
  plugins/gpu/schedule/transfer.c \
  plugins/gpu/session/placement_report.c \
  plugins/gpu/session/placement_report.h \
  plugins/gpu/session/session.c \
  plugins/gpu/session/session.h \
  plugins/gpu/session/settings.c \
  plugins/gpu/session/settings.h \
  plugins/gpu/step/eager.c \
  plugins/gpu/step/eager.h \
  plugins/gpu/step/fault.c \
  plugins/gpu/step/fault.h \
  plugins/gpu/step/instance.c \
  plugins/gpu/step/instance.h \
  plugins/gpu/step/lane.c \
  plugins/gpu/step/lane.h \
  plugins/gpu/step/outputs.c \
  plugins/gpu/step/part.c \
  plugins/gpu/step/part.h \
  plugins/gpu/step/prepare.c \
  plugins/gpu/step/prepare.h \
  plugins/gpu/step/profile.c \
  plugins/gpu/step/profile.h \
  plugins/gpu/step/run.h \
  plugins/gpu/step/step.c \
  plugins/gpu/plugin.c
nodist_plugins_gpu_la_SOURCES = plugins/gpu/embedded.c plugins/gpu/op_table.c
# -iquote comes before the -I of the top folder, whose ops/ has files of the same names.
plugins_gpu_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=gpu $(TN_GPU_CLBLAST) -iquote $(srcdir)/plugins/gpu
plugins_gpu_la_CFLAGS = $(AM_CFLAGS)
plugins_gpu_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_gpu_la_LIBADD = -ldl $(TN_MATH_LIBS)
endif
