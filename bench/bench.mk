# SPDX-License-Identifier: Apache-2.0
# `make bench` builds bench/bench, which prints a table and writes bench/results.json in the build folder: name, value, unit,
# runtime, threads. BENCH_FLAGS is passed to the program, as in make bench BENCH_FLAGS='--only chain*'.
TN_BENCH_FILES = \
  bench/bench.h \
  bench/child.c \
  bench/common.c \
  bench/graphs.c \
  bench/main.c \
  bench/memory.c \
  bench/memory.h \
  bench/net.c \
  bench/cases/branches.c \
  bench/cases/checkpoint.c \
  bench/cases/control.c \
  bench/cases/eager.c \
  bench/cases/elementwise.c \
  bench/cases/export.c \
  bench/cases/gpu.c \
  bench/cases/gpu_products.c \
  bench/cases/import.c \
  bench/cases/plugins.c \
  bench/cases/prepare.c \
  bench/cases/process.c \
  bench/cases/session.c \
  bench/cases/step.c

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
if HAVE_OPENCL
TN_BENCH_OPENCL = -DBENCH_OPENCL
endif
bench_bench_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(TN_BENCH_OPENCL)
bench_bench_LDADD = libtenon.la $(JANSSON_LIBS) $(TN_MATH_LIBS) -lpthread -ldl

# Run by bench/compare, and by a test: one model on Tenon, in a separate process.
check_PROGRAMS += bench/model
bench_model_SOURCES = \
  bench/memory.c \
  bench/memory.h \
  bench/model.c \
  bench/model.h \
  bench/model_case.c \
  bench/model_machine.c
bench_model_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
bench_model_LDADD = tools/libmachine.la libtenon.la $(JANSSON_LIBS) $(TN_MATH_LIBS) -lpthread

# bench/compare: Tenon against its peers. The Python files import each other from their own folder.
EXTRA_DIST += \
  bench/compare \
  bench/compare_count.py \
  bench/compare_main.py \
  bench/compare_peer.py \
  bench/compare_report.py \
  bench/compare_setup.py \
  bench/elementwise_peers.py \
  bench/saved_models.py

# Recorded measurements; docs/performance.md shows a selection.
EXTRA_DIST += \
  bench/results/bench.csv \
  bench/results/elementwise.csv \
  bench/results/gpu-products.csv \
  bench/results/models-2-threads.csv \
  bench/results/models.csv \
  bench/results/saved-models.csv

distclean-local:
	-rm -rf compare

# bench/pool: the cost of the worker pool. It links the core, whose names the library does not export.
EXTRA_PROGRAMS += bench/pool
bench_pool_SOURCES = bench/bench.h bench/common.c bench/pool.c
bench_pool_LDADD = $(TN_CORE_LIBS)

# `make bench-check` counts instructions of eight fixed steps and compares them with those of bench/bench-check.txt;
# `make bench-check-record` writes that file.
EXTRA_PROGRAMS += bench/check
bench_check_SOURCES = bench/bench.h bench/check.c bench/common.c bench/graphs.c
bench_check_LDADD = libtenon.la $(TN_MATH_LIBS)
EXTRA_DIST += bench/bench-check.txt bench/check.sh

TN_BENCH_CHECK = TENON_PLUGIN_PATH='$(TN_BUILT_PLUGIN_PATH)' TENON_PLUGIN_PATH_ONLY=1 TENON_SRCDIR='$(abs_top_srcdir)' \
  TENON_SANITIZE='$(TN_SANITIZE)' TENON_FLAGS='$(TN_OPT) $(CFLAGS)' CC='$(CC)' LIBTOOL='$(LIBTOOL)' $(SHELL) $(srcdir)/bench/check.sh
bench-check: all bench/check$(EXEEXT)
	@$(TN_BENCH_CHECK)
bench-check-record: all bench/check$(EXEEXT)
	@$(TN_BENCH_CHECK) --record
.PHONY: bench-check bench-check-record
