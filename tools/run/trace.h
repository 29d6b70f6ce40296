/* SPDX-License-Identifier: Apache-2.0 */
/* Data collected by `tenon run --trace --timeline --profile`, and its output. */
#ifndef TENON_TOOLS_RUN_TRACE_H
#define TENON_TOOLS_RUN_TRACE_H

#include <tools/tool.h>

/* A node, identified by name, kernel and outputs. */
typedef struct trace_node {
  char *key; /* the strings below, concatenated */
  const char *name, *op, *kernel, *device, *outputs;
  uint64_t calls, self_ns; /* from TN_RECORD_NODE; self_ns excludes nested nodes */
} trace_node;

typedef struct trace_event {
  uint32_t node;
  uint32_t step;  /* index in run_trace.steps */
  uint32_t thread;
  uint8_t kind;   /* TN_RECORD_... */
  bool waited;
  int64_t start_ns; /* since the first step began */
  int64_t duration_ns;
  uint64_t bytes;
} trace_event;

typedef struct trace_step {
  uint64_t number; /* from 1 */
  int64_t start_ns, duration_ns;
  size_t first; /* event */
} trace_step;

typedef struct run_trace {
  const char *file;     /* from --trace, NULL = none */
  const char *timeline; /* from --timeline */
  bool profile;
  const char *model;
  tn_run_metadata *metadata; /* of the last step; NULL: tracing is off */
  trace_node *nodes;
  size_t n_nodes, node_room;
  uint32_t *places; /* hash table of node numbers + 1, 0 = free */
  size_t n_places;
  trace_event *events;
  size_t n_events, event_room;
  trace_step *steps;
  size_t n_steps, step_room;
  uint64_t all_steps; /* including steps whose events are not kept */
  uint64_t costed_steps; /* steps whose costs are counted in the nodes */
  int64_t costed_ns;
  uint64_t began_ns;  /* start of the first step */
  bool cut;           /* the trace of a step is incomplete */
} run_trace;

/* Whether steps are traced. */
static inline bool trace_wanted(const run_trace *t) { return t->file != NULL || t->timeline != NULL || t->profile; }
bool trace_wants_protobuf(const run_trace *t); /* the file is to be a RunMetadata message */

/* Checks in advance, as far as possible, that the files can be written. Returns an exit status. */
int trace_check(const run_trace *t);
tn_status trace_begin(run_trace *t, tn_error *err);
/* Adds the metadata of a step that began at this time (tool_now_ns). The step's duration is taken from the metadata,
 * because the time measured by the caller includes the creation of the metadata. */
void trace_take(run_trace *t, uint64_t step, uint64_t began_ns);
/* Writes the files, prints the profile. */
tn_status trace_finish(run_trace *t, tn_error *err);
void trace_free(run_trace *t);

/* trace_json.c, timeline.c, profile.c */
void trace_json(const run_trace *t, tool_text *out);
void trace_timeline(const run_trace *t, tool_text *out);
void trace_profile(const run_trace *t, FILE *out);

#endif
