# SPDX-License-Identifier: Apache-2.0
# The tenon command. A subcommand is tools/NAME.c, which defines `const tool_command tool_cmd_NAME` (tools/tool.h), and one
# line here; the table of subcommands is made from this list.
TN_TOOL_COMMANDS = \
  tools/bench.c \
  tools/convert.c \
  tools/eager_demo.c \
  tools/graph.c \
  tools/inspect.c \
  tools/ops.c \
  tools/plan.c \
  tools/run.c \
  tools/runtimes.c

# main.c and what subcommands share.
TN_TOOL_FILES = \
  tools/bench_cases.c \
  tools/bench_histogram.c \
  tools/bench_histogram.h \
  tools/bench_inputs.c \
  tools/bench_json.c \
  tools/bench_measure.c \
  tools/bench_print.c \
  tools/bench_tool.h \
  tools/describe.c \
  tools/eager_demo.h \
  tools/eager_demo_json.c \
  tools/eager_demo_loop.c \
  tools/eager_demo_memory.c \
  tools/eager_demo_print.c \
  tools/eager_demo_svg.c \
  tools/ending.c tools/error.c tools/target.c \
  tools/feed.c \
  tools/graph_columns.c \
  tools/graph_fold.c \
  tools/graph_nodes.c \
  tools/graph_picture.h \
  tools/graph_render.c \
  tools/graph_scopes.c \
  tools/graph_text.c \
  tools/graph_write.c \
  tools/inspect_functions.c \
  tools/interrupt.c \
  tools/literal.c \
  tools/main.c \
  tools/memory.c \
  tools/model.c \
  tools/model_functions.c \
  tools/number.c \
  tools/plan_json.c \
  tools/plan_picture.c \
  tools/plan_print.c \
  tools/plan_tool.h \
  tools/print.c \
  tools/progress.c \
  tools/run_profile.c \
  tools/run_steps.c \
  tools/run_timeline.c \
  tools/run_tool.h \
  tools/run_trace.c \
  tools/run_trace.h \
  tools/run_trace_json.c \
  tools/runtimes_advice.c \
  tools/runtimes_doctor.c \
  tools/runtimes_probe.c \
  tools/runtimes_tool.h \
  tools/save.c \
  tools/screen.c \
  tools/table.c \
  tools/text.c \
  tools/tool.h

bin_PROGRAMS += tenon
tenon_SOURCES = $(TN_TOOL_FILES) $(TN_TOOL_COMMANDS)
nodist_tenon_SOURCES = tools/tools_table.c
tenon_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tenon_LDADD = libtenon.la $(JANSSON_LIBS) $(TN_MATH_LIBS)
CLEANFILES += tools/tools_table.c

# What the library starts to try a plugin in a process of its own (core/registry/probe.c).
tenonlibexecdir = $(libexecdir)/tenon
tenonlibexec_PROGRAMS = tools/tenon-probe
tools_tenon_probe_SOURCES = tools/probe_program.c
tools_tenon_probe_LDADD = libtenon.la

tools/tools_table.c: $(top_srcdir)/tools/tools.mk $(top_srcdir)/build-aux/gen-table.sh
	$(TN_GEN_TABLE) tools $(TN_TOOL_COMMANDS) >$@.tmp && mv -f $@.tmp $@
