# SPDX-License-Identifier: Apache-2.0
# tenon-conformance: the suites of tests/tests.mk (TN_CONFORMANCE_TESTS) with a main of their own. It is linked with
# libtenon, so a suite that needs more than public names does not link. It has no flags of its own: the objects of the
# suites are those of the test programs.
TN_CONFORMANCE_FILES = \
  conformance/child.c \
  conformance/conformance.h \
  conformance/main.c \
  conformance/plugin.h \
  conformance/plugin_cases.c \
  conformance/plugin_cases.h \
  conformance/plugin_elf.c \
  conformance/plugin_front.c \
  conformance/plugin_heap.c \
  conformance/plugin_host.c \
  conformance/plugin_world.c \
  conformance/plugin_world.h \
  conformance/run.c \
  conformance/runtime.c \
  conformance/select.c

# Its own suites.
TN_CONFORMANCE_SUITES = \
  conformance/plugin_eager.c \
  conformance/plugin_effects.c \
  conformance/plugin_file.c \
  conformance/plugin_kernels.c \
  conformance/plugin_life.c \
  conformance/plugin_load.c \
  conformance/plugin_memory.c \
  conformance/plugin_options.c \
  conformance/plugin_reset.c \
  conformance/plugin_steps.c \
  conformance/runtime_works.c

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
