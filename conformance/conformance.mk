# SPDX-License-Identifier: Apache-2.0
# tenon-conformance: the suites of tests/tests.mk (TN_CONFORMANCE_TESTS) with a main of their own. It is linked with
# libtenon, so a suite that needs more than public names does not link. It has no flags of its own: the objects of the
# suites are those of the test programs.
TN_CONFORMANCE_FILES = \
  conformance/child.c \
  conformance/conformance.h \
  conformance/main.c \
  conformance/run.c \
  conformance/runtime.c \
  conformance/runtime_works.c \
  conformance/select.c

bin_PROGRAMS += tenon-conformance
tenon_conformance_SOURCES = $(TN_CONFORMANCE_FILES) $(TN_CONFORMANCE_TESTS)
nodist_tenon_conformance_SOURCES = conformance/citations.c
tenon_conformance_LDADD = tests/libtestsupport.a libtenon.la $(TN_MATH_LIBS)
CLEANFILES += conformance/citations.c

TN_CITING_FILES = $(TN_CONFORMANCE_TESTS) conformance/runtime_works.c
conformance/citations.c: $(TN_CITING_FILES) $(top_srcdir)/build-aux/rules.awk
	$(AM_V_GEN)$(MKDIR_P) conformance && \
	  files=; for f in $(TN_CITING_FILES); do files="$$files $(top_srcdir)/$$f"; done; \
	  $(AWK) -v table=1 -f $(top_srcdir)/build-aux/rules.awk $$files >$@.tmp && mv -f $@.tmp $@
EXTRA_DIST += build-aux/rules.awk
