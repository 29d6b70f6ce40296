# SPDX-License-Identifier: Apache-2.0
# Tests. Everything speaks TAP.
#
# A test of a module is tests/test_NAME.c and one line here, nothing else: it is built from the file of its own name and
# links core (internal names, too), ops and tests/support. See tests/support/tap.h for how such a file looks.
TN_UNIT_TESTS = \
  tests/stress_ends \
  tests/stress_sessions \
  tests/test_array_ops \
  tests/test_audio \
  tests/test_barriers \
  tests/test_base \
  tests/test_bench_child \
  tests/test_bench_histogram \
  tests/test_blocked_steps \
  tests/test_branches \
  tests/test_broadcast \
  tests/test_callable \
  tests/test_calls \
  tests/test_cancel \
  tests/test_config \
  tests/test_containers \
  tests/test_control_flow \
  tests/test_conv_windows \
  tests/test_convert \
  tests/test_default_session \
  tests/test_detection_ops \
  tests/test_discovery \
  tests/test_dlpack \
  tests/test_eager_away \
  tests/test_eager_devices \
  tests/test_eager_handles \
  tests/test_eager_named \
  tests/test_eager_ops \
  tests/test_eager_reset \
  tests/test_eager_session \
  tests/test_eager_threads \
  tests/test_elementwise_affine \
  tests/test_elementwise_program \
  tests/test_error \
  tests/test_eval \
  tests/test_exec \
  tests/test_export \
  tests/test_fork \
  tests/test_function_loops \
  tests/test_function_shapes \
  tests/test_functions \
  tests/test_gate \
  tests/test_gemm \
  tests/test_gpu_clblast \
  tests/test_gpu_data_faults \
  tests/test_gpu_device \
  tests/test_gpu_eager \
  tests/test_gpu_elementwise \
  tests/test_gpu_faults \
  tests/test_graph \
  tests/test_graph_read \
  tests/test_gpu_flow \
  tests/test_gpu_memory \
  tests/test_gpu_places \
  tests/test_gpu_products \
  tests/test_gpu_programs \
  tests/test_gpu_queues \
  tests/test_gpu_step \
  tests/test_gpu_tensors \
  tests/test_half \
  tests/test_host_table \
  tests/test_import \
  tests/test_import_budget \
  tests/test_import_bytes \
  tests/test_import_options \
  tests/test_import_tensor \
  tests/test_inline \
  tests/test_kernel_plugins \
  tests/test_kernels \
  tests/test_kit \
  tests/test_kit_layout \
  tests/test_large_constants \
  tests/test_layer_bits \
  tests/test_layout \
  tests/test_layout_cache \
  tests/test_layout_ops \
  tests/test_loader \
  tests/test_log \
  tests/test_manifest \
  tests/test_map \
  tests/test_memory_limit \
  tests/test_messages \
  tests/test_metadata \
  tests/test_move \
  tests/test_nested_loops \
  tests/test_npy \
  tests/test_npz \
  tests/test_offload \
  tests/test_onednn \
  tests/test_op_plugins \
  tests/test_optional \
  tests/test_options \
  tests/test_oracle_run \
  tests/test_packs \
  tests/test_partial_help \
  tests/test_partial_run \
  tests/test_partial_steps \
  tests/test_passes \
  tests/test_pbtxt \
  tests/test_placement \
  tests/test_plan \
  tests/test_plan_graphs \
  tests/test_plugin_choice \
  tests/test_plugin_files \
  tests/test_plugin_input \
  tests/test_plugin_threads \
  tests/test_pool \
  tests/test_pool_choice \
  tests/test_pool_linger \
  tests/test_preloaded \
  tests/test_probe \
  tests/test_queue_attempts \
  tests/test_queues \
  tests/test_random_ops \
  tests/test_recurrent \
  tests/test_reduce \
  tests/test_registry \
  tests/test_reset_state \
  tests/test_resize \
  tests/test_run_options \
  tests/test_schema \
  tests/test_scoped_session \
  tests/test_session \
  tests/test_session_graph \
  tests/test_session_lives \
  tests/test_session_quotas \
  tests/test_session_run \
  tests/test_session_step \
  tests/test_session_threads \
  tests/test_shapes \
  tests/test_sniff \
  tests/test_staging \
  tests/test_stop \
  tests/test_strided \
  tests/test_string \
  tests/test_string_ops \
  tests/test_table_rows \
  tests/test_tables \
  tests/test_tasks \
  tests/test_tasks_effects \
  tests/test_tensor \
  tests/test_tensor_array_cost \
  tests/test_tensor_arrays \
  tests/test_tensor_lists \
  tests/test_text \
  tests/test_threaded \
  tests/test_threads \
  tests/test_training \
  tests/test_training_rules \
  tests/test_variable_locks \
  tests/test_variable_refs \
  tests/test_variables \
  tests/test_warm_up \
  tests/test_vector_math \
  tests/test_vectors \
  tests/test_walk \
  tests/test_window_ops \
  tests/test_workspace

# Shell scripts that print TAP.
TN_SCRIPT_TESTS = \
  tests/check-abi.sh \
  tests/check-abi-rules.sh \
  tests/check-after-install.sh \
  tests/check-conformance.sh \
  tests/check-conformance-faults.sh \
  tests/check-discovery.sh \
  tests/check-dlpack.sh \
  tests/check-exports.sh \
  tests/check-gpu-sample.sh \
  tests/check-guide-build.sh \
  tests/check-guide-errors.sh \
  tests/check-goals.sh \
  tests/check-headers.sh \
  tests/check-includes.sh \
  tests/check-oracle.sh \
  tests/check-reinstall.sh \
  tests/check-rules.sh \
  tests/check-style.sh \
  tests/check-test-programs.sh \
  tests/check-uninstalled.sh \
  tests/test_compare.sh \
  tests/test_conformance.sh \
  tests/test_examples.sh \
  tests/test_tool.sh \
  tests/test_tool_bench.sh \
  tests/test_tool_convert.sh \
  tests/test_tool_eager_demo.sh \
  tests/test_tool_graph.sh \
  tests/test_tool_op_library.sh \
  tests/test_tool_plan.sh \
  tests/test_tool_run.sh \
  tests/test_tool_ending.sh \
  tests/test_tool_runtimes.sh \
  tests/test_tool_trace.sh

# Plugins that misbehave on purpose, and other modules that only tests load, found below TENON_TEST_PLUGINS. One is
# tests/plugins/NAME.c (it is built from the file of its own name), one line `tests/plugins/NAME.la` here, and at the end of
# this file
#   tests_plugins_NAME_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=NAME
#   tests_plugins_NAME_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
TN_TEST_PLUGINS = \
  tests/plugins/aborts.la \
  tests/plugins/acme_ops.la \
  tests/plugins/chameleon.la \
  tests/plugins/crashing.la \
  tests/plugins/ender.la \
  tests/plugins/faster.la \
  tests/plugins/faults.la \
  tests/plugins/faulty.la \
  tests/plugins/kernel_faults.la \
  tests/plugins/kernels_only.la \
  tests/plugins/minimal.la \
  tests/plugins/no_entry.la \
  tests/plugins/no_manifest.la \
  tests/plugins/own_heap.la \
  tests/plugins/scheduler.la \
  tests/plugins/straight.la \
  tests/plugins/executor.la \
  tests/plugins/offload.la \
  tests/plugins/two_symbols.la \
  tests/plugins/undefined.la \
  tests/plugins/unloads.la

# The suites that keep the rules of sessions and so hold for every runtime. tenon-conformance is made of their objects
# (conformance/): they use public headers and names only.
TN_CONFORMANCE_TESTS = \
  tests/test_barriers.c \
  tests/test_blocked_steps.c \
  tests/test_branches.c \
  tests/test_callable.c \
  tests/test_calls.c \
  tests/test_cancel.c \
  tests/test_config.c \
  tests/test_control_flow.c \
  tests/test_default_session.c \
  tests/test_eager_handles.c \
  tests/test_eager_ops.c \
  tests/test_eager_reset.c \
  tests/test_eager_session.c \
  tests/test_eager_threads.c \
  tests/test_eval.c \
  tests/test_function_loops.c \
  tests/test_metadata.c \
  tests/test_partial_run.c \
  tests/test_partial_steps.c \
  tests/test_placement.c \
  tests/test_queues.c \
  tests/test_recurrent.c \
  tests/test_reset_state.c \
  tests/test_run_options.c \
  tests/test_scoped_session.c \
  tests/test_session.c \
  tests/test_session_graph.c \
  tests/test_session_lives.c \
  tests/test_session_quotas.c \
  tests/test_session_run.c \
  tests/test_session_step.c \
  tests/test_session_threads.c \
  tests/test_staging.c \
  tests/test_tables.c \
  tests/test_tensor_arrays.c \
  tests/test_training.c \
  tests/test_variable_refs.c \
  tests/test_variables.c \
  tests/test_warm_up.c

tests_libtestmain_a_SOURCES = tests/support/tap_cunit.c tests/support/tap_program.c
# What a program that is started by hand takes for the variables of AM_TESTS_ENVIRONMENT that are not set.
tests_libtestmain_a_CPPFLAGS = $(AM_CPPFLAGS) -DTAP_SRCDIR='"$(abs_top_srcdir)"' -DTAP_BUILDDIR='"$(abs_top_builddir)"' \
  -DTAP_OBJDIR='"$(TN_OBJDIR)"'

noinst_LIBRARIES += tests/libtestsupport.a
tests_libtestsupport_a_SOURCES = \
  tests/support/blocked_kit.c \
  tests/support/blocked_kit.h \
  tests/support/calls_kit.c \
  tests/support/calls_kit.h \
  tests/support/default_kit.h \
  tests/support/eager_kit.h \
  tests/support/elementwise_kit.h \
  tests/support/gpu_faults.h \
  tests/support/gpu_kit.c \
  tests/support/gpu_kit.h \
  tests/support/graph_kit.c \
  tests/support/graph_kit.h \
  tests/support/loader_kit.h \
  tests/support/meet_op.h \
  tests/support/oom.c \
  tests/support/oom.h \
  tests/support/op_kit.c \
  tests/support/op_kit.h \
  tests/support/partial_kit.c \
  tests/support/partial_kit.h \
  tests/support/plan_kit.c \
  tests/support/plan_kit.h \
  tests/support/pool_kit.h \
  tests/support/plugin_files.c \
  tests/support/plugin_files.h \
  tests/support/rnn_kit.c \
  tests/support/rnn_kit.h \
  tests/support/session_kit.c \
  tests/support/session_kit.h \
  tests/support/threads.h \
  tests/support/session_ops.c \
  tests/support/tap.c \
  tests/support/tap.h \
  tests/support/tasks_kit.c \
  tests/support/tasks_kit.h \
  tests/support/variable_kit.c \
  tests/support/variable_kit.h

# tests/oracle_run: cases recorded from TensorFlow and models, on the public API.
TN_ORACLE_FILES = \
  tests/oracle_run.c \
  tests/support/oracle.h \
  tests/support/oracle_case.c \
  tests/support/oracle_claims.c \
  tests/support/oracle_compare.c \
  tests/support/oracle_eager.c \
  tests/support/oracle_files.c \
  tests/support/oracle_find.c \
  tests/support/oracle_kernels.c \
  tests/support/oracle_model.c \
  tests/support/oracle_report.c \
  tests/support/oracle_step.c \
  tests/support/oracle_tensor.c \
  tests/support/oracle_worker.c

noinst_PROGRAMS += tests/oracle_run
tests_oracle_run_SOURCES = $(TN_ORACLE_FILES)
tests_oracle_run_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) \
  -DORACLE_SRCDIR='"$(abs_top_srcdir)"' -DORACLE_PLUGIN_PATH='"$(TN_BUILT_PLUGIN_PATH)"'
tests_oracle_run_LDADD = libtenon.la $(JANSSON_LIBS) $(LIBZIP_LIBS) $(TN_MATH_LIBS)

# Stands in place of the OpenCL loader.
if HAVE_OPENCL
check_LTLIBRARIES += tests/plugins/opencl_faults.la
tests_plugins_opencl_faults_la_SOURCES = tests/plugins/opencl_faults.c
tests_plugins_opencl_faults_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_opencl_faults_la_LIBADD = -ldl
# And of CLBlast.
check_LTLIBRARIES += tests/plugins/clblast_faults.la
tests_plugins_clblast_faults_la_SOURCES = tests/plugins/clblast_faults.c
tests_plugins_clblast_faults_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
endif
tests_test_gpu_clblast_CPPFLAGS = $(AM_CPPFLAGS) $(TN_GPU_CLBLAST)

# Its program uses OpenMP itself.
if HAVE_ONEDNN
TN_TEST_ONEDNN_CPPFLAGS = -DTEST_ONEDNN
TN_TEST_ONEDNN_CFLAGS = -fopenmp
endif
tests_test_onednn_CPPFLAGS = $(AM_CPPFLAGS) $(TN_TEST_ONEDNN_CPPFLAGS)
tests_test_onednn_CFLAGS = $(AM_CFLAGS) $(TN_TEST_ONEDNN_CFLAGS)

# Parts of plugins/gpu, linked into the test.
if HAVE_OPENCL
TN_TEST_GPU_PARTS = \
  tests/support/gpu_parts.h \
  plugins/gpu/built.c \
  plugins/gpu/cl.c \
  plugins/gpu/clblast.c \
  plugins/gpu/constants.c \
  plugins/gpu/device.c \
  plugins/gpu/driver.c \
  plugins/gpu/memory.c \
  plugins/gpu/node.c \
  plugins/gpu/program.c \
  plugins/gpu/program_build.c \
  plugins/gpu/program_cache.c \
  plugins/gpu/tensor.c
TN_TEST_GPU_MADE = plugins/gpu/embedded.c
TN_TEST_GPU_CPPFLAGS = -DTEST_GPU $(TN_GPU_CLBLAST) -I$(srcdir)/plugins/gpu
endif
tests_test_gpu_memory_SOURCES = tests/test_gpu_memory.c $(TN_TEST_GPU_PARTS)
nodist_tests_test_gpu_memory_SOURCES = $(TN_TEST_GPU_MADE)
tests_test_gpu_memory_CPPFLAGS = $(AM_CPPFLAGS) $(TN_TEST_GPU_CPPFLAGS)
tests_test_gpu_programs_SOURCES = tests/test_gpu_programs.c $(TN_TEST_GPU_PARTS)
nodist_tests_test_gpu_programs_SOURCES = $(TN_TEST_GPU_MADE)
tests_test_gpu_programs_CPPFLAGS = $(AM_CPPFLAGS) $(TN_TEST_GPU_CPPFLAGS)

tests_test_bench_child_SOURCES = tests/test_bench_child.c bench/child.c bench/common.c bench/memory.c
tests_test_bench_histogram_SOURCES = tests/test_bench_histogram.c tools/bench/histogram.c

tests_test_workspace_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_test_workspace_LDADD = $(LDADD) $(JANSSON_LIBS)

tests_test_oracle_run_CPPFLAGS = $(AM_CPPFLAGS) $(LIBZIP_CFLAGS)
tests_test_oracle_run_LDADD = $(LDADD) $(LIBZIP_LIBS)

# The claimed cases, packed, with what makes them.
TN_ORACLE_CASES = \
  tests/oracle/README.md \
  tests/oracle/array.zip \
  tests/oracle/audio.zip \
  tests/oracle/binary.zip \
  tests/oracle/bitwise.zip \
  tests/oracle/codecs.zip \
  tests/oracle/compare.zip \
  tests/oracle/constants.zip \
  tests/oracle/control-flow.zip \
  tests/oracle/conv.zip \
  tests/oracle/found.zip \
  tests/oracle/functions.zip \
  tests/oracle/gather.zip \
  tests/oracle/image.zip \
  tests/oracle/layout.zip \
  tests/oracle/loss.zip \
  tests/oracle/math.zip \
  tests/oracle/matmul.zip \
  tests/oracle/nn.zip \
  tests/oracle/norm.zip \
  tests/oracle/pool.zip \
  tests/oracle/queues.zip \
  tests/oracle/random.zip \
  tests/oracle/reduce.zip \
  tests/oracle/scan.zip \
  tests/oracle/sessions.zip \
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

# The default of every program that does not say otherwise, that is, of the unit tests.
LDADD = tests/libtestmain.a tests/libtestsupport.a libtenon_core.la $(TN_CORE_LIBS) $(CUNIT_LIBS)

if HAVE_CUNIT
check_LIBRARIES += tests/libtestmain.a
check_PROGRAMS += $(TN_UNIT_TESTS)
TESTS += $(TN_UNIT_TESTS)
else
check-local:
	@echo "make check needs CUnit for the unit tests: apt-get install libcunit1-dev, then ./configure again" >&2; exit 1
endif

check_LTLIBRARIES += $(TN_TEST_PLUGINS)
# The modules alone, for a test program that is started by hand.
test-modules: $(TN_TEST_PLUGINS)
.PHONY: test-modules
TN_TEST_PLUGIN_LINK = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
dist_check_SCRIPTS += $(TN_SCRIPT_TESTS)
TESTS += $(TN_SCRIPT_TESTS)

TN_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TN_LOG_DRIVER)
TEST_EXTENSIONS = .sh
SH_LOG_DRIVER = $(TN_LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)

# Plugins that are linked into tests/test_preloaded, from the sources of those that are loaded.
tests_libpreloaded_la_SOURCES =
TN_TEST_PRELOADED = tests/plugins/preloaded/minimal.la tests/plugins/preloaded/kernels_only.la \
  tests/plugins/preloaded/unloads.la
check_LTLIBRARIES += tests/libpreloaded.la $(TN_TEST_PRELOADED)
tests_libpreloaded_la_LIBADD = -dlpreopen tests/plugins/preloaded/minimal.la \
  -dlpreopen tests/plugins/preloaded/kernels_only.la -dlpreopen tests/plugins/preloaded/unloads.la
EXTRA_tests_libpreloaded_la_DEPENDENCIES = $(TN_TEST_PRELOADED)
tests_plugins_preloaded_minimal_la_SOURCES = tests/plugins/minimal.c
tests_plugins_preloaded_minimal_la_CPPFLAGS = $(tests_plugins_minimal_la_CPPFLAGS)
tests_plugins_preloaded_minimal_la_LDFLAGS = $(TN_PRELOAD_LINK)
tests_plugins_preloaded_kernels_only_la_SOURCES = tests/plugins/kernels_only.c
tests_plugins_preloaded_kernels_only_la_CPPFLAGS = $(tests_plugins_kernels_only_la_CPPFLAGS)
tests_plugins_preloaded_kernels_only_la_LDFLAGS = $(TN_PRELOAD_LINK)
tests_plugins_preloaded_unloads_la_SOURCES = tests/plugins/unloads.c
tests_plugins_preloaded_unloads_la_CPPFLAGS = $(tests_plugins_unloads_la_CPPFLAGS)
tests_plugins_preloaded_unloads_la_LDFLAGS = $(TN_PRELOAD_LINK)
tests_test_preloaded_LDADD = tests/libtestmain.a tests/libtestsupport.a tests/libpreloaded.la libtenon_core.la $(TN_CORE_LIBS) \
  $(CUNIT_LIBS)

# What a test may rely on. Models come from TENON_MODELS, or from ../shared/models where that is.
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

# What was installed works without the build folder; make distcheck runs it, too.
EXTRA_DIST += tests/dlpack_numpy.py
EXTRA_DIST += tests/check-static.sh tests/installed.sh tests/check-guide.sh tests/tool_kit.sh tests/tool_plugins.sh tests/untested-rules.txt
installcheck-local:
	CC='$(CC)' TENON_SANITIZE='$(TN_SANITIZE)' $(SHELL) $(srcdir)/tests/installed.sh '$(libdir)' '$(bindir)' '$(plugindir)' '$(PACKAGE_VERSION)'
	CC='$(CC)' CXX='$(CXX)' TENON_SANITIZE='$(TN_SANITIZE)' $(SHELL) $(srcdir)/tests/check-templates.sh '$(srcdir)' '$(libdir)' '$(bindir)'
	TENON_SANITIZE='$(TN_SANITIZE)' $(SHELL) $(srcdir)/tests/check-guide.sh '$(docdir)' '$(libdir)' '$(bindir)'

# What takes hours.
EXTRA_DIST += tests/check-gpu.sh tests/gpu_runs.sh
check-long: check
	@$(AM_TESTS_ENVIRONMENT) TENON_STOP_MS=50 TENON_TEST_TIMEOUT=3000 tests/test_stop$(EXEEXT)
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/check-gpu.sh >tests/check-gpu.tap; cat tests/check-gpu.tap
	@grep -q '^1\.\.' tests/check-gpu.tap && ! grep -q '^not ok' tests/check-gpu.tap
CLEANFILES += tests/check-gpu.tap

# The ABI that was recorded: by its table, as in make check, and by abidiff where it is installed. And a new record.
EXTRA_DIST += tests/abi/README.md tests/abi/abidiff.suppressions tests/abi/recorded.txt \
  build-aux/abi-compare.awk build-aux/abi-scan.awk build-aux/abi-stub.awk
check-abi: libtenon.la tenon$(EXEEXT)
	@$(AM_TESTS_ENVIRONMENT) $(SHELL) $(srcdir)/tests/check-abi.sh --abidiff >tests/check-abi.tap; cat tests/check-abi.tap
	@grep -q '^1\.\.' tests/check-abi.tap && ! grep -q '^not ok' tests/check-abi.tap

update-abi:
	@$(AM_TESTS_ENVIRONMENT) ABI_BREAK='$(ABI_BREAK)' $(SHELL) $(srcdir)/tests/check-abi.sh --update
CLEANFILES += tests/check-abi.tap
.PHONY: check-abi update-abi

# The test plugins, each as its own module.
tests_plugins_aborts_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=aborts
tests_plugins_aborts_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_acme_ops_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=acme_ops
tests_plugins_acme_ops_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_chameleon_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=chameleon
tests_plugins_chameleon_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_crashing_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=crashing
tests_plugins_crashing_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_ender_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=ender
tests_plugins_ender_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_faster_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=faster
tests_plugins_faster_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_faults_la_SOURCES = tests/plugins/faults.c tests/plugins/faults_session.h tests/plugins/effects.h
tests_plugins_faults_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=faults
tests_plugins_faults_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK) -lpthread
tests_plugins_kernel_faults_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=kernel_faults
tests_plugins_kernel_faults_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_two_symbols_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=two_symbols
tests_plugins_two_symbols_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
EXTRA_DIST += tests/plugins/throws.cc
tests_plugins_faulty_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=faulty
tests_plugins_faulty_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_kernels_only_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=kernels_only
tests_plugins_kernels_only_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_minimal_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=minimal
tests_plugins_minimal_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_no_entry_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=no_entry
tests_plugins_no_entry_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_no_manifest_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=no_manifest
tests_plugins_no_manifest_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_scheduler_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=scheduler
tests_plugins_scheduler_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK) -lpthread
tests_plugins_own_heap_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=own_heap
tests_plugins_own_heap_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_straight_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=straight
tests_plugins_straight_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_executor_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=executor
tests_plugins_executor_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_offload_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=offload
tests_plugins_offload_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_undefined_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=undefined
tests_plugins_undefined_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
tests_plugins_unloads_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN_PLUGIN=unloads
tests_plugins_unloads_la_LDFLAGS = $(TN_TEST_PLUGIN_LINK)
