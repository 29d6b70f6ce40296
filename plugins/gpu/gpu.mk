# SPDX-License-Identifier: Apache-2.0
# Built if the OpenCL headers are available.

# Ops on the device. ops/NAME.c defines the table `const gpu_op gpu_NAME_ops[]`; the list of tables is generated from this one,
# so a new op is its file and one line here. Its kernels are in TN_GPU_CL; helpers of several ops are in TN_GPU_OP_PARTS.
TN_GPU_OPS = \
  plugins/gpu/ops/batches.c \
  plugins/gpu/ops/binary.c \
  plugins/gpu/ops/check.c \
  plugins/gpu/ops/concat.c \
  plugins/gpu/ops/conv.c \
  plugins/gpu/ops/depthwise.c \
  plugins/gpu/ops/einsum.c \
  plugins/gpu/ops/elementwise.c \
  plugins/gpu/ops/fill.c \
  plugins/gpu/ops/gather.c \
  plugins/gpu/ops/gradient.c \
  plugins/gpu/ops/lstm.c \
  plugins/gpu/ops/matmul.c \
  plugins/gpu/ops/move.c \
  plugins/gpu/ops/norm.c \
  plugins/gpu/ops/pad.c \
  plugins/gpu/ops/pool.c \
  plugins/gpu/ops/reduce.c \
  plugins/gpu/ops/resize.c \
  plugins/gpu/ops/resize_taps.c \
  plugins/gpu/ops/roll.c \
  plugins/gpu/ops/scan.c \
  plugins/gpu/ops/scatter.c \
  plugins/gpu/ops/select.c \
  plugins/gpu/ops/softmax.c \
  plugins/gpu/ops/top_k.c \
  plugins/gpu/ops/unary.c

TN_GPU_OP_PARTS = \
  plugins/gpu/ops/columns.c \
  plugins/gpu/ops/columns.h \
  plugins/gpu/ops/elements.c \
  plugins/gpu/ops/elements.h \
  plugins/gpu/ops/elementwise.h \
  plugins/gpu/ops/elementwise_text.c \
  plugins/gpu/ops/elementwise_walk.c \
  plugins/gpu/ops/move.h \
  plugins/gpu/ops/move_walk.c \
  plugins/gpu/ops/product.c \
  plugins/gpu/ops/product.h \
  plugins/gpu/ops/resize.h \
  plugins/gpu/ops/steps.c \
  plugins/gpu/ops/steps.h \
  plugins/gpu/ops/window.c \
  plugins/gpu/ops/window.h

# Embedded in the plugin.
TN_GPU_CL = \
  plugins/gpu/ops/batches.cl \
  plugins/gpu/ops/check.cl \
  plugins/gpu/ops/columns.cl \
  plugins/gpu/ops/depthwise.cl \
  plugins/gpu/ops/einsum.cl \
  plugins/gpu/ops/fill.cl \
  plugins/gpu/ops/gather.cl \
  plugins/gpu/ops/lstm.cl \
  plugins/gpu/ops/move.cl \
  plugins/gpu/ops/norm.cl \
  plugins/gpu/ops/pool.cl \
  plugins/gpu/ops/product.cl \
  plugins/gpu/ops/reduce.cl \
  plugins/gpu/ops/resize.cl \
  plugins/gpu/ops/resize_taps.cl \
  plugins/gpu/ops/roll.cl \
  plugins/gpu/ops/scan.cl \
  plugins/gpu/ops/scatter.cl \
  plugins/gpu/ops/softmax.cl \
  plugins/gpu/ops/top_k.cl \
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
plugins_gpu_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=gpu $(TN_GPU_CLBLAST) -I$(srcdir)/plugins/gpu
plugins_gpu_la_CFLAGS = $(AM_CFLAGS)
plugins_gpu_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_gpu_la_LIBADD = -ldl $(TN_MATH_LIBS)
endif
