/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `tenon eager-demo`. */
#ifndef TENON_TOOLS_EAGER_DEMO_EAGER_DEMO_H
#define TENON_TOOLS_EAGER_DEMO_EAGER_DEMO_H

#include <tools/tool.h>

enum { DEMO_STRATEGIES = 3, DEMO_BINS = 2048 };

/* Bytes held during a time interval. */
typedef struct demo_bin {
  uint64_t least, most;
} demo_bin;

/* Bytes held over time, from the start of the loop. There are at most DEMO_BINS bins; their width grows with the
 * duration. */
typedef struct demo_track {
  uint64_t began_ns; /* tool_now_ns */
  uint64_t bin_ns;
  uint64_t last; /* bytes last recorded */
  size_t n;
  demo_bin *bins;
} demo_track;

/* The loop with one strategy. Excludes memory that the session holds before the loop. */
typedef struct demo_run {
  int32_t strategy;    /* TN_EAGER_... */
  uint64_t iterations; /* requested */
  uint64_t done;       /* completed */
  uint64_t loop_ns, close_ns;
  uint64_t end_ns; /* when everything was closed, since the loop began */
  uint64_t made, deleted;
  uint64_t deleted_before; /* deleted before close */
  uint64_t peak_bytes;
  uint64_t pauses, pause_ns, longest_pause_ns;
  demo_track track;
} demo_run;

/* The same tensors without a session, released one by one. */
typedef struct demo_plain {
  bool at_end; /* release all at the end, not after each iteration */
  uint64_t tensors, ns;
} demo_plain;

typedef struct demo {
  const char *target; /* "" = the default runtime */
  const char **options;
  size_t n_options, option_room;
  uint64_t ops, iterations, bytes;
  const char *svg; /* file, NULL = none */
  bool svg_on_stdout;
  bool json, plain, no_plot;
  bool named; /* strategies were selected by --strategy */
  demo_run runs[DEMO_STRATEGIES];
  size_t n_runs; /* requested */
  size_t n_begun;
  demo_plain plains[2];
  size_t n_plains;
  char *runtime, *version;
  tool_text note; /* "" or one line */
} demo;

const char *demo_strategy_name(int32_t strategy);
/* Bytes as a multiple of the bytes created per iteration. */
double demo_in_iterations(const demo *d, uint64_t bytes);
/* Deletions per second of the time they took: at safe points, in close, or over the whole loop if a background thread
 * deletes. 0 if there were none. */
double demo_deletions_per_second(const demo_run *run);
double demo_plain_per_second(const demo_plain *plain);

/* Checks that there is enough memory. A run that was not selected by --strategy gets fewer iterations, with a note
 * (memory.c). */
tn_status demo_check_memory(demo *d, tn_error *err);

/* Runs the loops (loop.c). CANCELLED if interrupted; results so far are kept. */
tn_status demo_run_all(demo *d, tn_error *err);

/* Results (print.c, svg.c, json.c). */
void demo_print(const demo *d);
void demo_svg(const demo *d, tool_text *out);
int demo_print_json(const demo *d); /* returns an exit status */

/* Bytes held between two times since the loop began. */
demo_bin demo_track_between(const demo_track *track, uint64_t from_ns, uint64_t to_ns);
/* Runs with similar peaks share a scale, which is the highest of these peaks. */
uint64_t demo_scale(const demo *d, const demo_run *run);
/* The time until the last session is closed. */
uint64_t demo_end_ns(const demo *d);

#endif
