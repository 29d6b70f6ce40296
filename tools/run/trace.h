/* SPDX-License-Identifier: Apache-2.0 */
/* What `tenon run --trace --timeline --profile` collects of the steps, and what is made of it. */
#ifndef TENON_TOOLS_RUN_TRACE_H
#define TENON_TOOLS_RUN_TRACE_H

#include <tools/tool.h>

/* A node, by name, kernel and what it gave. */
typedef struct trace_node {
  char *key; /* all below, one behind the other */
  const char *name, *op, *kernel, *device, *outputs;
  uint64_t calls, self_ns; /* of TN_RECORD_NODE: times of nodes inside of it are not in it */
} trace_node;

typedef struct trace_event {
  uint32_t node;
  uint32_t step;  /* in run_trace.steps */
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
  const char *file;     /* of --trace, NULL = none */
  const char *timeline; /* of --timeline */
  bool profile;
  const char *model;
  tn_run_metadata *metadata; /* of the last step; NULL: nothing is traced */
  trace_node *nodes;
  size_t n_nodes, node_room;
  uint32_t *places; /* a hash table: 1 + number of a node, 0 = free */
  size_t n_places;
  trace_event *events;
  size_t n_events, event_room;
  trace_step *steps;
  size_t n_steps, step_room;
  uint64_t all_steps; /* also those whose events are not kept */
  uint64_t costed_steps; /* whose costs are in the nodes */
  int64_t costed_ns;
  uint64_t began_ns;  /* the first step */
  bool cut;           /* memory ran out in a step */
} run_trace;

/* Whether a step is to be traced. */
static inline bool trace_wanted(const run_trace *t) { return t->file != NULL || t->timeline != NULL || t->profile; }
bool trace_wants_protobuf(const run_trace *t); /* the file is a RunMetadata */

/* Returns an exit status: whether the files can be written, as far as that is known before. */
int trace_check(const run_trace *t);
tn_status trace_begin(run_trace *t, tn_error *err);
/* Takes over what the metadata has of a step that began at this time (tool_now_ns). How long the step took is in it: the time
 * that the caller measured has the making of the metadata in it. */
void trace_take(run_trace *t, uint64_t step, uint64_t began_ns);
/* Writes the files, prints the profile. */
tn_status trace_finish(run_trace *t, tn_error *err);
void trace_free(run_trace *t);

/* run_trace_json.c, run_timeline.c, run_profile.c */
void trace_json(const run_trace *t, tool_text *out);
void trace_timeline(const run_trace *t, tool_text *out);
void trace_profile(const run_trace *t, FILE *out);

#endif
