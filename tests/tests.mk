# SPDX-License-Identifier: Apache-2.0
# Tests. All of them print TAP.
#
# A test of a module is tests/ROOM/NAME.c and one line here, nothing else: it is built from the file of its own name and
# links core (including internal names), ops and tests/support. conformance/support/tap.h explains the form of such a file.
TN_UNIT_TESTS = $(TN_CONFORMANCE_TESTS:.c=) \
  tests/base/base \
  tests/base/error \
  tests/base/fork \
  tests/base/gate \
  tests/base/log \
  tests/base/map \
  tests/base/path \
  tests/base/text \
  tests/base/threads \
  tests/bench/bench_child \
  tests/compile/inline \
  tests/compile/activation \
  tests/compile/attention \
  tests/compile/gradients \
  tests/compile/layers \
  tests/compile/nested_loops \
  tests/compile/passes \
  tests/compile/plan \
  tests/compile/plan_graphs \
  tests/compile/weights \
  tests/eager/eager_away \
  tests/eager/eager_devices \
  tests/eager/eager_named \
  tests/exec/exec \
  tests/exec/kernels \
  tests/exec/memory_limit \
  tests/exec/move \
  tests/exec/stop \
  tests/exec/tasks \
  tests/exec/tasks_effects \
  tests/exec/threaded \
  tests/exec/workspace \
  tests/formats/bundle \
  tests/formats/bundle_damage \
  tests/formats/bundle_replace \
  tests/formats/checkpoint_slices \
  tests/formats/checkpoint_state \
  tests/formats/checkpoint_v1 \
  tests/formats/export \
  tests/formats/import \
  tests/formats/import_budget \
  tests/formats/import_bytes \
  tests/formats/import_options \
  tests/formats/import_tensor \
  tests/formats/npy \
  tests/formats/npz \
  tests/formats/objectgraph \
  tests/formats/pbtxt \
  tests/formats/savedmodel \
  tests/formats/savedmodel_damage \
  tests/formats/savedmodel_write \
  tests/formats/sniff \
  tests/formats/table \
  tests/gpu/gpu_clblast \
  tests/gpu/gpu_data_faults \
  tests/gpu/gpu_device \
  tests/gpu/gpu_eager \
  tests/gpu/gpu_elementwise \
  tests/gpu/gpu_faults \
  tests/gpu/gpu_flow \
  tests/gpu/gpu_memory \
  tests/gpu/gpu_places \
  tests/gpu/gpu_products \
  tests/gpu/gpu_programs \
  tests/gpu/gpu_queues \
  tests/gpu/gpu_step \
  tests/gpu/gpu_tensors \
  tests/graph/function_shapes \
  tests/graph/functions \
  tests/graph/graph \
  tests/graph/graph_read \
  tests/graph/schema \
  tests/graph/shapes \
  tests/graph/walk \
  tests/kit/kit \
  tests/kit/kit_layout \
  tests/kit/offload \
  tests/layout/layout \
  tests/layout/layout_cache \
  tests/layout/packs \
  tests/model/checkpoint \
  tests/model/freeze \
  tests/model/model \
  tests/model/save_faults \
  tests/onednn/onednn \
  tests/ops/array_ops \
  tests/ops/audio \
  tests/ops/costs \
  tests/ops/detection_ops \
  tests/ops/elementwise_affine \
  tests/ops/elementwise_program \
  tests/ops/example_ops \
  tests/ops/layout_ops \
  tests/ops/messages \
  tests/ops/optional \
  tests/ops/random_ops \
  tests/ops/regex \
  tests/ops/resize \
  tests/ops/sparse_ops \
  tests/ops/string_ops \
  tests/ops/kernel/broadcast \
  tests/ops/kernel/convert \
  tests/ops/kernel/double_math \
  tests/ops/kernel/gemm \
  tests/ops/kernel/pairs \
  tests/ops/kernel/reduce \
  tests/ops/kernel/strided \
  tests/ops/kernel/vector_math \
  tests/ops/kernel/vectors \
  tests/ops/kernel/weights \
  tests/ops/nn/conv_windows \
  tests/ops/nn/layer_bits \
  tests/ops/nn/losses \
  tests/ops/nn/window_ops \
  tests/ops/state/queue_attempts \
  tests/ops/state/table_rows \
  tests/ops/state/tensor_array_cost \
  tests/ops/state/tensor_lists \
  tests/ops/state/training_rules \
  tests/ops/state/variable_locks \
  tests/pool/pool \
  tests/pool/pool_choice \
  tests/pool/pool_linger \
  tests/registry/discovery \
  tests/registry/host_table \
  tests/registry/kernel_plugins \
  tests/registry/loader \
  tests/registry/manifest \
  tests/registry/op_plugins \
  tests/registry/options \
  tests/registry/plugin_choice \
  tests/registry/plugin_files \
  tests/registry/plugin_input \
  tests/registry/plugin_threads \
  tests/registry/preloaded \
  tests/registry/probe \
  tests/registry/registry \
  tests/session/containers \
  tests/session/partial_help \
  tests/stress/stress_ends \
  tests/stress/stress_sessions \
  tests/tensor/dlpack \
  tests/tensor/half \
  tests/tensor/large_constants \
  tests/tensor/string \
  tests/tensor/tensor \
  tests/tools/bench_histogram \
  tests/tools/oracle_run \
  tests/tools/shares

# Shell scripts that print TAP. Those of the first list find the same in every build of the same sources: another build
# can leave them out, by "make check TN_SOURCE_CHECKS=".
TN_SOURCE_TESTS = \
  tests/conformance/check-conformance-faults.sh \
  tests/conformance/command.sh \
  tests/repo/check-abi-rules.sh \
  tests/repo/check-goals.sh \
  tests/repo/check-guide-build.sh \
  tests/repo/check-guide-errors.sh \
  tests/repo/check-headers.sh \
  tests/repo/check-includes.sh \
  tests/repo/check-rings.sh \
  tests/repo/check-rules.sh \
  tests/repo/check-style.sh \
  tests/repo/check-test-programs.sh
TN_SCRIPT_TESTS = \
  tests/conformance/check-conformance.sh \
  tests/gpu/check-gpu-sample.sh \
  tests/oracle/check-oracle.sh \
  tests/registry/check-discovery.sh \
  tests/registry/check-uninstalled.sh \
  tests/repo/check-abi.sh \
  tests/repo/check-after-install.sh \
  tests/repo/check-exports.sh \
  tests/repo/check-reinstall.sh \
  tests/tensor/check-dlpack.sh \
  tests/tools/bench.sh \
  tests/tools/checkpoint.sh \
  tests/tools/command.sh \
  tests/tools/compare.sh \
  tests/tools/convert.sh \
  tests/tools/eager_demo.sh \
  tests/tools/ending.sh \
  tests/tools/examples.sh \
  tests/tools/graph.sh \
  tests/tools/op_library.sh \
  tests/tools/plan.sh \
  tests/tools/roofline.sh \
  tests/tools/run.sh \
  tests/tools/runtimes.sh \
  tests/tools/saved_model.sh \
  tests/tools/trace.sh

# Plugins that misbehave on purpose, and other modules that only tests load, found below TENON_TEST_PLUGINS. One is
# tests/plugins/NAME.c and two lines here. build-aux/modules.mk lets it be a plugin called NAME.
TN_TEST_MODULE = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
TN_TEST_PLUGINS =
TN_TEST_PLUGINS += tests/plugins/aborts.la
tests_plugins_aborts_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/acme_ops.la
tests_plugins_acme_ops_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/chameleon.la
tests_plugins_chameleon_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/crashing.la
tests_plugins_crashing_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/ender.la
tests_plugins_ender_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/executor.la
tests_plugins_executor_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/faster.la
tests_plugins_faster_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/faults.la
tests_plugins_faults_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/faulty.la
tests_plugins_faulty_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/kernel_faults.la
tests_plugins_kernel_faults_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/kernels_only.la
tests_plugins_kernels_only_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/minimal.la
tests_plugins_minimal_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/no_entry.la
tests_plugins_no_entry_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/no_manifest.la
tests_plugins_no_manifest_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/offload.la
tests_plugins_offload_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/own_heap.la
tests_plugins_own_heap_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/scheduler.la
tests_plugins_scheduler_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/straight.la
tests_plugins_straight_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/two_symbols.la
tests_plugins_two_symbols_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/undefined.la
tests_plugins_undefined_la_LDFLAGS = $(TN_TEST_MODULE)
TN_TEST_PLUGINS += tests/plugins/unloads.la
tests_plugins_unloads_la_LDFLAGS = $(TN_TEST_MODULE)

tests_libtestmain_a_SOURCES = tests/support/tap_cunit.c tests/support/tap_program.c
# Defaults for unset variables of AM_TESTS_ENVIRONMENT, for a program started by hand.
tests_libtestmain_a_CPPFLAGS = $(AM_CPPFLAGS) -DTAP_SRCDIR='"$(abs_top_srcdir)"' -DTAP_BUILDDIR='"$(abs_top_builddir)"' \
  -DTAP_OBJDIR='"$(TN_OBJDIR)"'

noinst_LIBRARIES += tests/libtestsupport.a
tests_libtestsupport_a_SOURCES = \
  conformance/support/blocked_kit.c \
  conformance/support/blocked_kit.h \
  conformance/support/calls_kit.c \
  conformance/support/calls_kit.h \
  conformance/support/default_kit.h \
  conformance/support/eager_kit.h \
  conformance/support/graph_kit.c \
  conformance/support/graph_kit.h \
  conformance/support/oom.c \
  conformance/support/oom.h \
  conformance/support/op_kit.c \
  conformance/support/op_kit.h \
  conformance/support/partial_kit.c \
  conformance/support/partial_kit.h \
  conformance/support/plan_kit.c \
  conformance/support/plan_kit.h \
  conformance/support/rnn_kit.c \
  conformance/support/rnn_kit.h \
  conformance/support/session_kit.c \
  conformance/support/session_kit.h \
  conformance/support/session_ops.c \
  conformance/support/tap.c \
  conformance/support/tap.h \
  conformance/support/threads.h \
  conformance/support/variable_kit.c \
  conformance/support/variable_kit.h \
  tests/support/bundle_kit.h \
  tests/support/elementwise_kit.h \
  tests/support/gpu_faults.h \
  tests/support/gpu_kit.c \
  tests/support/gpu_kit.h \
  tests/support/loader_kit.h \
  tests/support/meet_op.h \
  tests/support/plugin_files.c \
  tests/support/plugin_files.h \
  tests/support/pool_kit.h \
  tests/support/savedmodel_kit.h \
  tests/support/sys_faults.h \
  tests/support/tasks_kit.c \
  tests/support/tasks_kit.h

# tests/oracle/run/oracle_run: cases recorded from TensorFlow and models, on the public API.
TN_ORACLE_FILES = \
  tests/oracle/run/case.c \
  tests/oracle/run/claims.c \
  tests/oracle/run/compare.c \
  tests/oracle/run/eager.c \
  tests/oracle/run/files.c \
  tests/oracle/run/find.c \
  tests/oracle/run/kernels.c \
  tests/oracle/run/model.c \
  tests/oracle/run/oracle.h \
  tests/oracle/run/oracle_run.c \
  tests/oracle/run/report.c \
  tests/oracle/run/step.c \
  tests/oracle/run/tensor.c \
  tests/oracle/run/worker.c

noinst_PROGRAMS += tests/oracle/run/oracle_run
tests_oracle_run_oracle_run_SOURCES = $(TN_ORACLE_FILES)
tests_oracle_run_oracle_run_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) \
  -DORACLE_SRCDIR='"$(abs_top_srcdir)"' -DORACLE_PLUGIN_PATH='"$(TN_BUILT_PLUGIN_PATH)"'
tests_oracle_run_oracle_run_LDADD = libtenon.la $(JANSSON_LIBS) $(LIBZIP_LIBS) $(TN_MATH_LIBS)

# A substitute for the OpenCL loader.
if HAVE_OPENCL
check_LTLIBRARIES += tests/plugins/opencl_faults.la
tests_plugins_opencl_faults_la_LDFLAGS = $(TN_TEST_MODULE)
tests_plugins_opencl_faults_la_LIBADD = -ldl
# A substitute for CLBlast.
check_LTLIBRARIES += tests/plugins/clblast_faults.la
tests_plugins_clblast_faults_la_LDFLAGS = $(TN_TEST_MODULE)
endif
tests_gpu_gpu_clblast_CPPFLAGS = $(AM_CPPFLAGS) $(TN_GPU_CLBLAST)

# The test program itself uses OpenMP.
if HAVE_ONEDNN
TN_TEST_ONEDNN_CPPFLAGS = -DTEST_ONEDNN
TN_TEST_ONEDNN_CFLAGS = -fopenmp
endif
tests_onednn_onednn_CPPFLAGS = $(AM_CPPFLAGS) $(TN_TEST_ONEDNN_CPPFLAGS)
tests_onednn_onednn_CFLAGS = $(AM_CFLAGS) $(TN_TEST_ONEDNN_CFLAGS)

# Parts of plugins/gpu, linked into the test.
if HAVE_OPENCL
TN_TEST_GPU_PARTS = \
  tests/support/gpu_parts.h \
  plugins/gpu/node/built.c \
  plugins/gpu/device/cl.c \
  plugins/gpu/device/clblast.c \
  plugins/gpu/schedule/constants.c \
  plugins/gpu/device/device.c \
  plugins/gpu/device/driver.c \
  plugins/gpu/device/memory.c \
  plugins/gpu/node/node.c \
  plugins/gpu/device/program.c \
  plugins/gpu/device/program_build.c \
  plugins/gpu/device/program_cache.c \
  plugins/gpu/device/tensor.c
TN_TEST_GPU_MADE = plugins/gpu/embedded.c
TN_TEST_GPU_CPPFLAGS = -DTEST_GPU $(TN_GPU_CLBLAST) -iquote $(srcdir)/plugins/gpu
endif
tests_gpu_gpu_memory_SOURCES = tests/gpu/gpu_memory.c $(TN_TEST_GPU_PARTS)
nodist_tests_gpu_gpu_memory_SOURCES = $(TN_TEST_GPU_MADE)
tests_gpu_gpu_memory_CPPFLAGS = $(AM_CPPFLAGS) $(TN_TEST_GPU_CPPFLAGS)
tests_gpu_gpu_programs_SOURCES = tests/gpu/gpu_programs.c $(TN_TEST_GPU_PARTS)
nodist_tests_gpu_gpu_programs_SOURCES = $(TN_TEST_GPU_MADE)
tests_gpu_gpu_programs_CPPFLAGS = $(AM_CPPFLAGS) $(TN_TEST_GPU_CPPFLAGS)

tests_bench_bench_child_SOURCES = tests/bench/bench_child.c bench/child.c bench/common.c bench/memory.c
tests_tools_bench_histogram_SOURCES = tests/tools/bench_histogram.c tools/bench/histogram.c
tests_tools_shares_SOURCES = tests/tools/shares.c tools/common/shares.c
tests_tools_shares_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)

tests_exec_workspace_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_exec_workspace_LDADD = $(LDADD) $(JANSSON_LIBS)

tests_tools_oracle_run_CPPFLAGS = $(AM_CPPFLAGS) $(LIBZIP_CFLAGS)
tests_tools_oracle_run_LDADD = $(LDADD) $(LIBZIP_LIBS)

# The packed claimed cases, and the scripts that make them.
TN_ORACLE_CASES = \
  tests/oracle/README.md \
  tests/oracle/array.zip \
  tests/oracle/audio.zip \
  tests/oracle/binary.zip \
  tests/oracle/bitwise.zip \
  tests/oracle/checkpoints.zip \
  tests/oracle/codecs.zip \
  tests/oracle/compare.zip \
  tests/oracle/constants.zip \
  tests/oracle/control-flow.zip \
  tests/oracle/conv.zip \
  tests/oracle/fft.zip \
  tests/oracle/found.zip \
  tests/oracle/functions.zip \
  tests/oracle/gather.zip \
  tests/oracle/image.zip \
  tests/oracle/layout.zip \
  tests/oracle/linalg.zip \
  tests/oracle/loss.zip \
  tests/oracle/math.zip \
  tests/oracle/matmul.zip \
  tests/oracle/nn.zip \
  tests/oracle/norm.zip \
  tests/oracle/pool.zip \
  tests/oracle/quant.zip \
  tests/oracle/queues.zip \
  tests/oracle/ragged.zip \
  tests/oracle/random.zip \
  tests/oracle/reduce.zip \
  tests/oracle/scan.zip \
  tests/oracle/segment.zip \
  tests/oracle/sessions.zip \
  tests/oracle/sets.zip \
  tests/oracle/sparse.zip \
  tests/oracle/special.zip \
  tests/oracle/strings.zip \
  tests/oracle/tables.zip \
  tests/oracle/tensor-arrays.zip \
  tests/oracle/tensor-lists.zip \
  tests/oracle/training.zip \
  tests/oracle/variables.zip \
  tests/oracle/ops.txt \
  tests/oracle/check_import.py \
  tests/oracle/check_opdefs.py \
  tests/oracle/check_roundtrip.py \
  tests/oracle/pack.py \
  tests/oracle/generate/format.py \
  tests/oracle/generate/generate_state.py \
  tests/oracle/generate/ops_array.py \
  tests/oracle/generate/ops_image.py \
  tests/oracle/generate/ops_kit.py \
  tests/oracle/generate/ops_linalg.py \
  tests/oracle/generate/ops_math.py \
  tests/oracle/generate/ops_nn.py
EXTRA_DIST += $(TN_ORACLE_CASES)

# The default of every program without its own setting, that is, of the unit tests.
LDADD = tests/libtestmain.a tests/libtestsupport.a $(TN_CORE_LIBS) $(CUNIT_LIBS)

if HAVE_CUNIT
check_LIBRARIES += tests/libtestmain.a
check_PROGRAMS += $(TN_UNIT_TESTS)
TESTS += $(TN_UNIT_TESTS)
else
check-local:
	@echo "make check needs CUnit for the unit tests: apt-get install libcunit1-dev, then ./configure again" >&2; exit 1
endif

check_LTLIBRARIES += $(TN_TEST_PLUGINS)
# The modules alone, for a test program started by hand.
test-modules: $(TN_TEST_PLUGINS)
.PHONY: test-modules
EXTRA_DIST += tests/plugins/effects.h tests/plugins/faults_session.h tests/plugins/runtime.h \
  tests/plugins/throws.cc
dist_check_SCRIPTS += $(TN_SOURCE_TESTS) $(TN_SCRIPT_TESTS)
TN_SOURCE_CHECKS = $(TN_SOURCE_TESTS)
TESTS += $(TN_SOURCE_CHECKS) $(TN_SCRIPT_TESTS)

TN_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TN_LOG_DRIVER)
TEST_EXTENSIONS = .sh
SH_LOG_DRIVER = $(TN_LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)

# Plugins linked into tests/registry/preloaded, built from the sources of the loaded ones.
tests_libpreloaded_la_SOURCES =
TN_TEST_PRELOADED = tests/plugins/preloaded/minimal.la tests/plugins/preloaded/kernels_only.la \
  tests/plugins/preloaded/unloads.la
check_LTLIBRARIES += tests/libpreloaded.la $(TN_TEST_PRELOADED)
tests_libpreloaded_la_LIBADD = -dlpreopen tests/plugins/preloaded/minimal.la \
  -dlpreopen tests/plugins/preloaded/kernels_only.la -dlpreopen tests/plugins/preloaded/unloads.la
EXTRA_tests_libpreloaded_la_DEPENDENCIES = $(TN_TEST_PRELOADED)
tests_plugins_preloaded_minimal_la_SOURCES = tests/plugins/minimal.c
tests_plugins_preloaded_minimal_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=minimal
tests_plugins_preloaded_minimal_la_LDFLAGS = $(TN_PRELOAD_LINK)
tests_plugins_preloaded_kernels_only_la_SOURCES = tests/plugins/kernels_only.c
tests_plugins_preloaded_kernels_only_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=kernels_only
tests_plugins_preloaded_kernels_only_la_LDFLAGS = $(TN_PRELOAD_LINK)
tests_plugins_preloaded_unloads_la_SOURCES = tests/plugins/unloads.c
tests_plugins_preloaded_unloads_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=unloads
tests_plugins_preloaded_unloads_la_LDFLAGS = $(TN_PRELOAD_LINK)
tests_registry_preloaded_LDADD = tests/libtestmain.a tests/libtestsupport.a tests/libpreloaded.la $(TN_CORE_LIBS) \
  $(CUNIT_LIBS)

# The environment of every test. Models are in TENON_MODELS, or else in ../shared/models if it exists.
AM_TESTS_ENVIRONMENT = \
  TENON_SRCDIR='$(abs_top_srcdir)'; export TENON_SRCDIR; \
  TENON_BUILDDIR='$(abs_top_builddir)'; export TENON_BUILDDIR; \
  TENON_PLUGIN_PATH='$(TN_BUILT_PLUGIN_PATH)'; export TENON_PLUGIN_PATH; \
  TENON_PLUGIN_PATH_ONLY=1; export TENON_PLUGIN_PATH_ONLY; \
  TENON_TEST_PLUGINS='$(abs_top_builddir)/tests/plugins/$(TN_OBJDIR)'; export TENON_TEST_PLUGINS; \
  TENON_PROBE_PROGRAM='$(abs_top_builddir)/tools/tenon-probe'; export TENON_PROBE_PROGRAM; \
  if test -z "$$TENON_MODELS" && test -d '$(abs_top_srcdir)/../shared/models'; then \
    TENON_MODELS='$(abs_top_srcdir)/../shared/models'; export TENON_MODELS; fi; \
  CC='$(CC)'; CXX='$(CXX)'; AWK='$(AWK)'; export CC CXX AWK; \
  ASAN_OPTIONS="strict_string_checks=1:detect_stack_use_after_return=1:$$ASAN_OPTIONS"; export ASAN_OPTIONS; \
  UBSAN_OPTIONS="print_stacktrace=1:$$UBSAN_OPTIONS"; export UBSAN_OPTIONS; \
  TSAN_OPTIONS="second_deadlock_stack=1:$$TSAN_OPTIONS"; export TSAN_OPTIONS; \
  LC_ALL=C.UTF-8; export LC_ALL;

# Checks that the installed package works without the build folder. make distcheck also runs it.
EXTRA_DIST += tests/tensor/dlpack_numpy.py
EXTRA_DIST += tests/repo/check-static.sh tests/repo/installed.sh tests/repo/check-guide.sh tests/tools/tool_kit.sh \
  tests/tools/tool_plugins.sh tests/repo/untested-rules.txt \
  tests/repo/rings.txt
installcheck-local:
	CC='$(CC)' TENON_SANITIZE='$(TN_SANITIZE)' $(SHELL) $(srcdir)/tests/repo/installed.sh '$(libdir)' '$(bindir)' '$(plugindir)' '$(PACKAGE_VERSION)'
	CC='$(CC)' CXX='$(CXX)' TENON_SANITIZE='$(TN_SANITIZE)' $(SHELL) $(srcdir)/tests/repo/check-templates.sh '$(srcdir)' '$(libdir)' '$(bindir)'
	TENON_SANITIZE='$(TN_SANITIZE)' $(SHELL) $(srcdir)/tests/repo/check-guide.sh '$(docdir)' '$(libdir)' '$(bindir)'

# Tests that take hours.
EXTRA_DIST += tests/gpu/check-gpu.sh tests/gpu/gpu_runs.sh
check-long: check
	@$(AM_TESTS_ENVIRONMENT) TENON_STOP_MS=50 TENON_TEST_TIMEOUT=3000 tests/exec/stop$(EXEEXT)
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/gpu/check-gpu.sh >tests/gpu/check-gpu.tap; cat tests/gpu/check-gpu.tap
	@grep -q '^1\.\.' tests/gpu/check-gpu.tap && ! grep -q '^not ok' tests/gpu/check-gpu.tap
CLEANFILES += tests/gpu/check-gpu.tap

# Compare with the recorded ABI, by its table as in make check, and by abidiff if installed. The second goal records it anew.
EXTRA_DIST += tests/abi/README.md tests/abi/abidiff.suppressions tests/abi/recorded.txt \
  build-aux/abi-compare.awk build-aux/abi-scan.awk build-aux/abi-stub.awk
check-abi: libtenon.la tenon$(EXEEXT)
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/repo/check-abi.sh --abidiff >tests/repo/check-abi.tap; cat tests/repo/check-abi.tap
	@grep -q '^1\.\.' tests/repo/check-abi.tap && ! grep -q '^not ok' tests/repo/check-abi.tap

update-abi:
	@$(AM_TESTS_ENVIRONMENT) ABI_BREAK='$(ABI_BREAK)' $(SHELL) $(srcdir)/tests/repo/check-abi.sh --update
CLEANFILES += tests/repo/check-abi.tap
.PHONY: check-abi update-abi
EXTRA_DIST += tests/data/saved/half_plus_two/saved_model.pb
EXTRA_DIST += tests/data/saved/half_plus_two/variables/variables.data-00000-of-00001
EXTRA_DIST += tests/data/saved/half_plus_two/variables/variables.index
EXTRA_DIST += tests/data/saved/make.py
EXTRA_DIST += tests/data/checkpoint/make.py
EXTRA_DIST += tests/data/checkpoint/types.data-00000-of-00001
EXTRA_DIST += tests/data/checkpoint/types.index
