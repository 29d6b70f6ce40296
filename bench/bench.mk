# SPDX-License-Identifier: Apache-2.0
# `make bench` builds bench/bench, which prints a table and writes bench/results.json in the build folder: name, value, unit,
# runtime, threads. BENCH_FLAGS goes to the program, as in make bench BENCH_FLAGS='--only chain*'.
TN_BENCH_FILES = \
  bench/bench.h \
  bench/export.c \
  bench/graphs.c \
  bench/import.c \
  bench/main.c \
  bench/process.c \
  bench/step.c

BENCH_FLAGS =

if TN_SANITIZED
bench:
	@echo "a build with sanitizers is not worth measuring" >&2; exit 1
else
bench: all bench/bench$(EXEEXT)
	@TENON_SRCDIR='$(abs_top_srcdir)' TENON_BUILDDIR='$(abs_top_builddir)' \
	TENON_PLUGIN_PATH='$(TN_BUILT_PLUGIN_PATH)' TENON_PLUGIN_PATH_ONLY=1 \
	TENON_MODELS="$${TENON_MODELS:-$(abs_top_srcdir)/../shared/models}" \
	bench/bench$(EXEEXT) --json bench/results.json $(BENCH_FLAGS)
endif
CLEANFILES += bench/results.json

EXTRA_PROGRAMS += bench/bench
bench_bench_SOURCES = $(TN_BENCH_FILES)
bench_bench_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_bench_LDADD = libtenon.la $(JANSSON_LIBS) $(TN_MATH_LIBS)
