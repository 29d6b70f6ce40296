# SPDX-License-Identifier: Apache-2.0
# The library's core, one list for each room, in the order in which rooms may use each other (docs/design.md).
# To add a file, add one line in alphabetical order, with headers beside their sources.
noinst_LTLIBRARIES += core/libcore.la
core_libcore_la_SOURCES = \
  $(TN_BASE_FILES) \
  $(TN_TENSOR_FILES) \
  $(TN_GRAPH_FILES) \
  $(TN_FORMATS_FILES) \
  $(TN_GRAPH_FORMATS) \
  $(TN_RESOURCE_FILES) \
  $(TN_POOL_FILES) \
  $(TN_PLAN_FILES) \
  $(TN_LAYOUT_FILES) \
  $(TN_COMPILE_FILES) \
  $(TN_EXEC_FILES) \
  $(TN_KIT_FILES) \
  $(TN_REGISTRY_FILES) \
  $(TN_HOST_FILES) \
  $(TN_SESSION_FILES) \
  $(TN_MODEL_FILES) \
  $(TN_EAGER_FILES)
core_libcore_la_CPPFLAGS = $(AM_CPPFLAGS) $(TN_NPZ_CPPFLAGS) $(TN_SNAPPY_CPPFLAGS) -DTN_PLUGIN_DIR='"$(plugindir)"' \
  -DTN_OBJDIR='"$(TN_OBJDIR)"' \
  -DTN_PROBE_PROGRAM='"$(tenonlibexecdir)/tenon-probe"'
nodist_core_libcore_la_SOURCES = core/formats/formats_table.c
CLEANFILES += core/formats/formats_table.c
# A file that left the list must leave the archive.
EXTRA_core_libcore_la_DEPENDENCIES = $(top_srcdir)/core/core.mk

# Replaces the table of the plugins that libtenon contains (Makefile.am).
noinst_LTLIBRARIES += core/libalone.la
core_libalone_la_SOURCES = core/registry/preloaded_none.c

TN_BASE_FILES = \
  core/base/alloc.c \
  core/base/alloc.h \
  core/base/arena.c \
  core/base/arena.h \
  core/base/error.c \
  core/base/file.c \
  core/base/file.h \
  core/base/log.c \
  core/base/map.c \
  core/base/map.h \
  core/base/near.c \
  core/base/near.h \
  core/base/path.c \
  core/base/path.h \
  core/base/plugin_call.c \
  core/base/plugin_call.h \
  core/base/print.c \
  core/base/print.h \
  core/base/process.c \
  core/base/registrar.c \
  core/base/registrar.h \
  core/base/temporary.c \
  core/base/temporary.h \
  core/base/text.c \
  core/base/text.h \
  core/base/threads/gate.c \
  core/base/threads/gate.h \
  core/base/threads/lock.c \
  core/base/threads/lock.h \
  core/base/threads/stop.c \
  core/base/threads/stop.h \
  core/base/threads/thread.c \
  core/base/threads/thread.h

TN_TENSOR_FILES = \
  core/tensor/account.c \
  core/tensor/account.h \
  core/tensor/buffer.c \
  core/tensor/dlpack.c \
  core/tensor/dlpack.h \
  core/tensor/dtype.c \
  core/tensor/elements.c \
  core/tensor/shape.c \
  core/tensor/string.c \
  core/tensor/tensor.c \
  core/tensor/tensor_internal.h

TN_GRAPH_FILES = \
  core/graph/attr_equal.c \
  core/graph/attr_value.c \
  core/graph/attrs.c \
  core/graph/builder.c \
  core/graph/builder_attrs.c \
  core/graph/check.c \
  core/graph/constant.c \
  core/graph/devices.c \
  core/graph/function_graph.c \
  core/graph/function_instance.c \
  core/graph/function_instance.h \
  core/graph/functions.c \
  core/graph/functions.h \
  core/graph/graph.c \
  core/graph/graph_internal.h \
  core/graph/graph_structs.h \
  core/graph/infer.c \
  core/graph/infer_calls.c \
  core/graph/names.c \
  core/graph/op_table.c \
  core/graph/operation.c \
  core/graph/prepare.h \
  core/graph/schema.c \
  core/graph/schema_ask.c \
  core/graph/schema_parse.c \
  core/graph/schema_walk.c \
  core/graph/set_shape.c \
  core/graph/shapes.c \
  core/graph/walk.c

TN_FORMATS_FILES = \
  core/formats/bundle/bundle.h \
  core/formats/bundle/encode.c \
  core/formats/bundle/index.c \
  core/formats/bundle/merge.c \
  core/formats/bundle/read.c \
  core/formats/bundle/replace.c \
  core/formats/bundle/shards.c \
  core/formats/bundle/strings.c \
  core/formats/bundle/write.c \
  core/formats/checkpoint/block.c \
  core/formats/checkpoint/block.h \
  core/formats/checkpoint/checkpoint.h \
  core/formats/checkpoint/files.c \
  core/formats/checkpoint/kinds.c \
  core/formats/checkpoint/open.c \
  core/formats/checkpoint/read.c \
  core/formats/checkpoint/slice_key.c \
  core/formats/checkpoint/slices.c \
  core/formats/checkpoint/slices.h \
  core/formats/checkpoint/state.c \
  core/formats/checkpoint_v1/files.c \
  core/formats/checkpoint_v1/index.c \
  core/formats/checkpoint_v1/open.c \
  core/formats/checkpoint_v1/read.c \
  core/formats/checkpoint_v1/v1.h \
  core/formats/checkpoint_v1/write.c \
  core/formats/checkpoint_v1/write.h \
  core/formats/export.c \
  core/formats/file.c \
  core/formats/file.h \
  core/formats/format.c \
  core/formats/format.h \
  core/formats/graphdef/attr.c \
  core/formats/graphdef/body.c \
  core/formats/graphdef/codec.c \
  core/formats/graphdef/cycles.c \
  core/formats/graphdef/functions.c \
  core/formats/graphdef/functions.h \
  core/formats/graphdef/graphdef.h \
  core/formats/graphdef/import.c \
  core/formats/graphdef/import.h \
  core/formats/graphdef/importer.c \
  core/formats/graphdef/library.c \
  core/formats/graphdef/map.c \
  core/formats/graphdef/names.c \
  core/formats/graphdef/node.c \
  core/formats/graphdef/proto.c \
  core/formats/graphdef/read.c \
  core/formats/graphdef/signature.c \
  core/formats/graphdef/tensor.c \
  core/formats/graphdef/tensor_values.c \
  core/formats/graphdef/tensor_values.h \
  core/formats/graphdef/wanted.c \
  core/formats/graphdef/write.c \
  core/formats/import.c \
  core/formats/import_options.c \
  core/formats/npy/header.c \
  core/formats/npy/npy.h \
  core/formats/npy/read.c \
  core/formats/npy/write.c \
  core/formats/npz/end.c \
  core/formats/npz/npz.h \
  core/formats/npz/open.c \
  core/formats/npz/read.c \
  core/formats/npz/write.c \
  core/formats/npz/zip.c \
  core/formats/objectgraph/nodes.h \
  core/formats/objectgraph/objectgraph.h \
  core/formats/objectgraph/paths.c \
  core/formats/objectgraph/read.c \
  core/formats/objectgraph/resolve.c \
  core/formats/pbtxt/config.c \
  core/formats/pbtxt/meta.c \
  core/formats/pbtxt/parse.c \
  core/formats/pbtxt/pbtxt.h \
  core/formats/pbtxt/print.c \
  core/formats/pbtxt/schema.c \
  core/formats/run_metadata.c \
  core/formats/run_metadata.h \
  core/formats/savedmodel/assets.c \
  core/formats/savedmodel/choose.c \
  core/formats/savedmodel/metagraph.c \
  core/formats/savedmodel/open.c \
  core/formats/savedmodel/read.c \
  core/formats/savedmodel/reader.h \
  core/formats/savedmodel/savedmodel.h \
  core/formats/savedmodel/signature.c \
  core/formats/savedmodel/write.c \
  core/formats/sink.c \
  core/formats/sink.h \
  core/formats/sniff.c \
  core/formats/sniff.h \
  core/formats/table/block.c \
  core/formats/table/block.h \
  core/formats/table/crc32c.c \
  core/formats/table/crc32c.h \
  core/formats/table/read.c \
  core/formats/table/snappy.c \
  core/formats/table/snappy.h \
  core/formats/table/table.h \
  core/formats/table/write.c \
  core/formats/wire.c \
  core/formats/wire.h

# The formats of graphs: each file defines tn__format_NAME (core/formats/format.h). The table of them is made from this list. The one
# that is read if no other one fits comes first.
TN_GRAPH_FORMATS = \
  core/formats/graphdef/graphdef.c \
  core/formats/pbtxt/pbtxt.c

core/formats/formats_table.c: $(top_srcdir)/core/core.mk $(top_srcdir)/build-aux/gen-table.sh
	$(TN_GEN_TABLE) formats $(TN_GRAPH_FORMATS) >$@.tmp && mv -f $@.tmp $@

TN_RESOURCE_FILES = \
  core/resource/container.c \
  core/resource/container.h \
  core/resource/containers.c \
  core/resource/folders.c \
  core/resource/folders.h

TN_POOL_FILES = \
  core/pool/cpus.c \
  core/pool/crew.c \
  core/pool/deque.c \
  core/pool/deque.h \
  core/pool/float_mode.h \
  core/pool/parallel.c \
  core/pool/park.c \
  core/pool/park.h \
  core/pool/pool.c \
  core/pool/pool.h \
  core/pool/pool_internal.h \
  core/pool/profile.c \
  core/pool/workers.c

TN_PLAN_FILES = \
  core/plan/atoms.c \
  core/plan/callee_table.c \
  core/plan/callee_table.h \
  core/plan/constants.c \
  core/plan/frame.h \
  core/plan/kernels.c \
  core/plan/limits.c \
  core/plan/partial_plan.h \
  core/plan/plan.c \
  core/plan/plan.h \
  core/plan/recipe.c \
  core/plan/recipe.h \
  core/plan/spec.c \
  core/plan/spec.h \
  core/plan/states.c \
  core/plan/states.h \
  core/plan/status.c

TN_LAYOUT_FILES = \
  core/layout/arena.c \
  core/layout/arena_order.c \
  core/layout/arena_tasks.c \
  core/layout/arena_threads.c \
  core/layout/build.c \
  core/layout/builder.h \
  core/layout/cache.c \
  core/layout/effect_order.c \
  core/layout/effect_order.h \
  core/layout/layout.c \
  core/layout/layout.h \
  core/layout/lives.c \
  core/layout/pack.c \
  core/layout/prepare.c \
  core/layout/tape_build.c \
  core/layout/tasks.c \
  core/layout/tasks.h \
  core/layout/tasks_cut.c \
  core/layout/tasks_tape.c \
  core/layout/variant.c

TN_COMPILE_FILES = \
  core/compile/callees.c \
  core/compile/callees.h \
  core/compile/compile.c \
  core/compile/compile.h \
  core/compile/effects.c \
  core/compile/effects.h \
  core/compile/kernel_demand.c \
  core/compile/report.c \
  core/compile/report.h \
  core/compile/import/dereference.c \
  core/compile/import/dereference.h \
  core/compile/import/frames.c \
  core/compile/import/frames.h \
  core/compile/import/frames_build.c \
  core/compile/import/frames_find.c \
  core/compile/import/inline.c \
  core/compile/import/inline.h \
  core/compile/import/loop_call.c \
  core/compile/import/loop_call.h \
  core/compile/import/partial.c \
  core/compile/import/partial.h \
  core/compile/import/prune.c \
  core/compile/import/prune.h \
  core/compile/import/rotate.c \
  core/compile/import/rotate.h \
  core/compile/ir/fold.c \
  core/compile/ir/ir.c \
  core/compile/ir/ir.h \
  core/compile/ir/pass_common.c \
  core/compile/ir/pass_control.c \
  core/compile/ir/pass_fold.c \
  core/compile/ir/pass_identity.c \
  core/compile/ir/pass_inline.c \
  core/compile/ir/passes.c \
  core/compile/ir/passes.h \
  core/compile/ir/rewriter.c \
  core/compile/lower/contexts.c \
  core/compile/lower/contexts.h \
  core/compile/lower/cut.c \
  core/compile/lower/emit.c \
  core/compile/lower/lower.h \
  core/compile/lower/segments.c

TN_EXEC_FILES = \
  core/exec/call.c \
  core/exec/call.h \
  core/exec/compute.h \
  core/exec/context.c \
  core/exec/control.c \
  core/exec/control.h \
  core/exec/evaluate.c \
  core/exec/evaluate.h \
  core/exec/inner.h \
  core/exec/kernel.c \
  core/exec/loop.c \
  core/exec/loop.h \
  core/exec/loop_steady.c \
  core/exec/memory_report.c \
  core/exec/outputs.c \
  core/exec/partial.c \
  core/exec/partial.h \
  core/exec/run.c \
  core/exec/run.h \
  core/exec/segment.c \
  core/exec/segment.h \
  core/exec/tape.c \
  core/exec/tasks.c \
  core/exec/tasks.h \
  core/exec/values.c \
  core/exec/values.h \
  core/exec/warm.c \
  core/exec/step/cancel.c \
  core/exec/step/cancellation.h \
  core/exec/step/env.h \
  core/exec/step/instance.c \
  core/exec/step/jobs.c \
  core/exec/step/jobs.h \
  core/exec/step/offload.h \
  core/exec/step/pending.c \
  core/exec/step/pending.h \
  core/exec/step/resources.c \
  core/exec/step/run_state.h \
  core/exec/step/sleepers.h \
  core/exec/step/spare.c \
  core/exec/step/step.c \
  core/exec/step/step.h \
  core/exec/step/trace.c \
  core/exec/step/trace.h \
  core/exec/step/wait.c \
  core/exec/step/wait.h \
  core/exec/step/workspace.c \
  core/exec/step/workspace.h

TN_KIT_FILES = \
  core/kit/executable.c \
  core/kit/executable.h \
  core/kit/hooks.h \
  core/kit/kit.c \
  core/kit/layout.c \
  core/kit/layout.h \
  core/kit/offload.c \
  core/kit/record.c \
  core/kit/schedule.c \
  core/kit/workers.c \
  core/kit/workers.h

TN_REGISTRY_FILES = \
  core/registry/debug.c \
  core/registry/discovery.c \
  core/registry/elf.c \
  core/registry/elf_note.c \
  core/registry/examine.c \
  core/registry/factory.c \
  core/registry/files.c \
  core/registry/kernel_plugins.c \
  core/registry/listing.c \
  core/registry/loader.c \
  core/registry/manifest.c \
  core/registry/mapped.c \
  core/registry/options.c \
  core/registry/options_internal.h \
  core/registry/options_lists.c \
  core/registry/plugin.c \
  core/registry/preload.c \
  core/registry/preloaded.c \
  core/registry/probe/probe.c \
  core/registry/probe/probe.h \
  core/registry/probe/probe_cache.c \
  core/registry/probe/probe_child.c \
  core/registry/probe/probe_load.c \
  core/registry/probe/probe_report.c \
  core/registry/registry.c \
  core/registry/registry.h \
  core/registry/registry_internal.h \
  core/registry/security.c \
  core/registry/select.c \
  core/registry/sidecar.c \
  core/registry/token.c \
  core/registry/uninstalled.c

TN_HOST_FILES = \
  core/host/cancel_notify.c \
  core/host/host.c \
  core/host/host.h \
  core/host/live_sessions.c \
  core/host/runtimes.c \
  core/host/session_base.c

TN_SESSION_FILES = \
  core/session/callable.c \
  core/session/config.c \
  core/session/default.c \
  core/session/default_stack.c \
  core/session/enter.c \
  core/session/entry.c \
  core/session/entry.h \
  core/session/entry_point.c \
  core/session/entry_point.h \
  core/session/eval.c \
  core/session/feeds.c \
  core/session/feeds.h \
  core/session/graph.c \
  core/session/metadata/cost.c \
  core/session/metadata/device.c \
  core/session/metadata/fill.c \
  core/session/metadata/graph.c \
  core/session/metadata/metadata.c \
  core/session/metadata/metadata.h \
  core/session/names.c \
  core/session/names.h \
  core/session/partial/life.c \
  core/session/partial/partial.c \
  core/session/partial/partial.h \
  core/session/placement/devices.c \
  core/session/placement/log.c \
  core/session/placement/log.h \
  core/session/placement/placement.c \
  core/session/placement/placement.h \
  core/session/probe_session.c \
  core/session/report.c \
  core/session/reset.c \
  core/session/run.c \
  core/session/run_options.c \
  core/session/session.c \
  core/session/session_internal.h \
  core/session/shape_assumption.c \
  core/session/signature.c \
  core/session/signature.h \
  core/session/signature_compile.c \
  core/session/step.c \
  core/session/step.h \
  core/session/warm.c

TN_MODEL_FILES = \
  core/model/call.c \
  core/model/checkpoint.c \
  core/model/checkpoint.h \
  core/model/checkpoint_paths.c \
  core/model/endpoints.c \
  core/model/facts.c \
  core/model/freeze/attr.c \
  core/model/freeze/body.c \
  core/model/freeze/edit.c \
  core/model/freeze/flow.c \
  core/model/freeze/freeze.c \
  core/model/freeze/freeze.h \
  core/model/freeze/functions.c \
  core/model/freeze/inline.c \
  core/model/freeze/kind.c \
  core/model/freeze/main.c \
  core/model/freeze/node.c \
  core/model/model.c \
  core/model/model.h \
  core/model/open_session.c \
  core/model/read_restored.c \
  core/model/report.c \
  core/model/report.h \
  core/model/restore.c \
  core/model/restore_model.c \
  core/model/save.c \
  core/model/save.h \
  core/model/save_saver.c \
  core/model/saver.c \
  core/model/saver_function.c \
  core/model/saver_items.c \
  core/model/session_save.c \
  core/model/tree.c \
  core/model/variable.c

TN_EAGER_FILES = \
  core/eager/async.c \
  core/eager/async.h \
  core/eager/cache.c \
  core/eager/cache.h \
  core/eager/call.c \
  core/eager/call.h \
  core/eager/devices.c \
  core/eager/devices.h \
  core/eager/dlpack.c \
  core/eager/eager.h \
  core/eager/gate.c \
  core/eager/handles.c \
  core/eager/lanes.h \
  core/eager/op.c \
  core/eager/op.h \
  core/eager/plan.c \
  core/eager/queue.c \
  core/eager/queue.h \
  core/eager/scope.c \
  core/eager/scope.h \
  core/eager/session.c \
  core/eager/slots.c \
  core/eager/slots.h \
  core/eager/sweep.c \
  core/eager/sweep.h \
  core/eager/task.c \
  core/eager/task.h
