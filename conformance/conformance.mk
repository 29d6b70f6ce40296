# SPDX-License-Identifier: Apache-2.0
# tenon-conformance: the suites with a main function. It is linked with libtenon, so a suite that uses non-public names does
# not link. It has no flags of its own, so it shares the suites' objects with the test programs.
#
# The suites of sessions, for every runtime. Each is also a test program of make check: a file and one line here.
TN_CONFORMANCE_TESTS = \
  conformance/eager/eager_handles.c \
  conformance/eager/eager_ops.c \
  conformance/eager/eager_reset.c \
  conformance/eager/eager_session.c \
  conformance/eager/eager_threads.c \
  conformance/flow/blocked_steps.c \
  conformance/flow/branches.c \
  conformance/flow/calls.c \
  conformance/flow/control_flow.c \
  conformance/flow/function_loops.c \
  conformance/flow/recurrent.c \
  conformance/sessions/callable.c \
  conformance/sessions/cancel.c \
  conformance/sessions/config.c \
  conformance/sessions/default_session.c \
  conformance/sessions/eval.c \
  conformance/sessions/folders.c \
  conformance/sessions/metadata.c \
  conformance/sessions/partial_run.c \
  conformance/sessions/partial_steps.c \
  conformance/sessions/placement.c \
  conformance/sessions/reset_state.c \
  conformance/sessions/run_options.c \
  conformance/sessions/scoped_session.c \
  conformance/sessions/session.c \
  conformance/sessions/session_graph.c \
  conformance/sessions/session_lives.c \
  conformance/sessions/session_quotas.c \
  conformance/sessions/session_run.c \
  conformance/sessions/session_step.c \
  conformance/sessions/session_threads.c \
  conformance/sessions/warm_up.c \
  conformance/state/barriers.c \
  conformance/state/checkpoints.c \
  conformance/state/queues.c \
  conformance/state/staging.c \
  conformance/state/tables.c \
  conformance/state/tensor_arrays.c \
  conformance/state/training.c \
  conformance/state/variable_refs.c \
  conformance/state/variables.c

# The program.
TN_CONFORMANCE_FILES = \
  conformance/child.c \
  conformance/conformance.h \
  conformance/main.c \
  conformance/plugin/plugin.h \
  conformance/plugin/plugin_cases.c \
  conformance/plugin/plugin_cases.h \
  conformance/plugin/plugin_elf.c \
  conformance/plugin/plugin_front.c \
  conformance/plugin/plugin_heap.c \
  conformance/plugin/plugin_host.c \
  conformance/plugin/plugin_world.c \
  conformance/plugin/plugin_world.h \
  conformance/run.c \
  conformance/runtime.c \
  conformance/select.c

# The suites of plugins.
TN_CONFORMANCE_SUITES = \
  conformance/plugin/plugin_eager.c \
  conformance/plugin/plugin_effects.c \
  conformance/plugin/plugin_file.c \
  conformance/plugin/plugin_kernels.c \
  conformance/plugin/plugin_life.c \
  conformance/plugin/plugin_load.c \
  conformance/plugin/plugin_memory.c \
  conformance/plugin/plugin_options.c \
  conformance/plugin/plugin_reset.c \
  conformance/plugin/plugin_steps.c \
  conformance/plugin/runtime_works.c

bin_PROGRAMS += tenon-conformance
tenon_conformance_SOURCES = $(TN_CONFORMANCE_FILES) $(TN_CONFORMANCE_SUITES) $(TN_CONFORMANCE_TESTS)
nodist_tenon_conformance_SOURCES = conformance/citations.c conformance/rules.c
tenon_conformance_LDADD = tests/libtestsupport.a libtenon.la $(TN_MATH_LIBS)
CLEANFILES += conformance/citations.c conformance/rules.c

TN_CITING_FILES = $(TN_CONFORMANCE_TESTS) $(TN_CONFORMANCE_SUITES)
conformance/citations.c: $(TN_CITING_FILES) $(top_srcdir)/build-aux/rules.awk
	$(AM_V_GEN)$(MKDIR_P) conformance && \
	  files=; for f in $(TN_CITING_FILES); do files="$$files $(top_srcdir)/$$f"; done; \
	  $(AWK) -v table=1 -f $(top_srcdir)/build-aux/rules.awk $$files >$@.tmp && mv -f $@.tmp $@

TN_RULE_FILES = docs/spec/session-semantics.md docs/spec/plugin-abi.md
conformance/rules.c: $(TN_RULE_FILES) $(top_srcdir)/build-aux/rule-texts.awk
	$(AM_V_GEN)$(MKDIR_P) conformance && \
	  files=; for f in $(TN_RULE_FILES); do files="$$files $(top_srcdir)/$$f"; done; \
	  $(AWK) -f $(top_srcdir)/build-aux/rule-texts.awk $$files >$@.tmp && mv -f $@.tmp $@
EXTRA_DIST += build-aux/rules.awk build-aux/rule-texts.awk
