# SPDX-License-Identifier: Apache-2.0
# The tenon command. A subcommand is tools/NAME.c, or tools/NAME/NAME.c if it has several files. It defines
# `const tool_command tool_cmd_NAME` (tools/tool.h) and has one line here; the table of subcommands is generated from this list.
TN_TOOL_COMMANDS = \
  tools/bench/bench.c \
  tools/checkpoint/checkpoint.c \
  tools/convert.c \
  tools/eager_demo/eager_demo.c \
  tools/freeze.c \
  tools/graph.c \
  tools/inspect/inspect.c \
  tools/ops.c \
  tools/plan/plan.c \
  tools/run/run.c \
  tools/runtimes/runtimes.c

# main.c, code shared by subcommands (common/, picture/), and the further files of subcommands.
TN_TOOL_FILES = \
  tools/main.c \
  tools/tool.h \
  tools/bench/bench.h \
  tools/bench/cases.c \
  tools/bench/histogram.c \
  tools/bench/histogram.h \
  tools/bench/inputs.c \
  tools/bench/json.c \
  tools/bench/measure.c \
  tools/bench/print.c \
  tools/bench/roofline/collect.c \
  tools/bench/roofline/groups.c \
  tools/bench/roofline/json.c \
  tools/bench/roofline/print.c \
  tools/bench/roofline/roofline.h \
  tools/bench/roofline/steps.c \
  tools/bench/roofline/svg.c \
  tools/checkpoint/checkpoint.h \
  tools/checkpoint/diff.c \
  tools/checkpoint/export.c \
  tools/checkpoint/import.c \
  tools/checkpoint/list.c \
  tools/checkpoint/paths.c \
  tools/checkpoint/show.c \
  tools/checkpoint/statistics.c \
  tools/common/describe.c \
  tools/common/ending.c \
  tools/common/error.c \
  tools/common/feed.c \
  tools/common/interrupt.c \
  tools/common/literal.c \
  tools/common/memory.c \
  tools/common/model.c \
  tools/common/model_functions.c \
  tools/common/number.c \
  tools/common/print.c \
  tools/common/progress.c \
  tools/common/save.c \
  tools/common/screen.c \
  tools/common/shares.c \
  tools/common/shares.h \
  tools/common/signatures.c \
  tools/common/source.c \
  tools/common/table.c \
  tools/common/target.c \
  tools/common/text.c \
  tools/common/values.c \
  tools/eager_demo/eager_demo.h \
  tools/eager_demo/json.c \
  tools/eager_demo/loop.c \
  tools/eager_demo/memory.c \
  tools/eager_demo/print.c \
  tools/eager_demo/svg.c \
  tools/inspect/about.c \
  tools/inspect/functions.c \
  tools/inspect/inspect.h \
  tools/inspect/ops.c \
  tools/picture/columns.c \
  tools/picture/fold.c \
  tools/picture/nodes.c \
  tools/picture/picture.h \
  tools/picture/render.c \
  tools/picture/scopes.c \
  tools/picture/text.c \
  tools/picture/write.c \
  tools/plan/json.c \
  tools/plan/picture.c \
  tools/plan/plan.h \
  tools/plan/print.c \
  tools/run/model.c \
  tools/run/profile.c \
  tools/run/run.h \
  tools/run/steps.c \
  tools/run/timeline.c \
  tools/run/trace.c \
  tools/run/trace.h \
  tools/run/trace_json.c \
  tools/runtimes/advice.c \
  tools/runtimes/doctor.c \
  tools/runtimes/probe.c \
  tools/runtimes/runtimes.h

# What this machine can do at most, also measured by bench/model.
noinst_LTLIBRARIES += tools/libmachine.la
tools_libmachine_la_SOURCES = tools/common/machine.c tools/common/machine.h
tools_libmachine_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast

bin_PROGRAMS += tenon
tenon_SOURCES = $(TN_TOOL_FILES) $(TN_TOOL_COMMANDS)
nodist_tenon_SOURCES = tools/tools_table.c
tenon_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tenon_LDADD = tools/libmachine.la libtenon.la $(JANSSON_LIBS) $(TN_MATH_LIBS) -lpthread
CLEANFILES += tools/tools_table.c

# What the library starts to try a plugin in a process of its own (core/registry/probe/probe.c).
tenonlibexecdir = $(libexecdir)/tenon
tenonlibexec_PROGRAMS = tools/tenon-probe
tools_tenon_probe_SOURCES = tools/probe_program.c
tools_tenon_probe_LDADD = libtenon.la

tools/tools_table.c: $(top_srcdir)/tools/tools.mk $(top_srcdir)/build-aux/gen-table.sh
	$(TN_GEN_TABLE) tools $(TN_TOOL_COMMANDS) >$@.tmp && mv -f $@.tmp $@
