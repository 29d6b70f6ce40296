/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `tenon eager-demo` share. */
#ifndef TENON_TOOLS_EAGER_DEMO_EAGER_DEMO_H
#define TENON_TOOLS_EAGER_DEMO_EAGER_DEMO_H

#include <tools/tool.h>

enum { DEMO_STRATEGIES = 3, DEMO_BINS = 2048 };

/* Bytes held in a piece of time. */
typedef struct demo_bin {
  uint64_t least, most;
} demo_bin;

/* Bytes held over time, from the beginning of the loop on. However long that is there are at most DEMO_BINS bins: they
 * grow. */
typedef struct demo_track {
  uint64_t began_ns; /* tool_now_ns */
  uint64_t bin_ns;
  uint64_t last; /* bytes */
  size_t n;
  demo_bin *bins;
} demo_track;

/* The loop under one strategy. What the session has before the loop is not counted in it. */
typedef struct demo_run {
  int32_t strategy;    /* TN_EAGER_... */
  uint64_t iterations; /* that are wanted */
  uint64_t done;       /* that were whole */
  uint64_t loop_ns, close_ns;
  uint64_t end_ns; /* since the loop began, all is closed */
  uint64_t made, deleted;
  uint64_t deleted_before; /* close */
  uint64_t peak_bytes;
  uint64_t pauses, pause_ns, longest_pause_ns;
  demo_track track;
} demo_run;

/* The same tensors without a session, given back one after the other. */
typedef struct demo_plain {
  bool at_end; /* all at once, not those of each iteration */
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
  bool named; /* strategies were asked for by name */
  demo_run runs[DEMO_STRATEGIES];
  size_t n_runs; /* that are wanted */
  size_t n_begun;
  demo_plain plains[2];
  size_t n_plains;
  char *runtime, *version;
  tool_text note; /* "" or one line */
} demo;

const char *demo_strategy_name(int32_t strategy);
/* Bytes in units of those that an iteration makes. */
double demo_in_iterations(const demo *d, uint64_t bytes);
/* Deletions a second in the time that they took: of safe points, of close, of the whole loop where a thread deletes
 * meanwhile. 0 when there were none. */
double demo_deletions_per_second(const demo_run *run);
double demo_plain_per_second(const demo_plain *plain);

/* Whether memory is there for what is wanted; a run that nobody named gets fewer iterations, with a note
 * (eager_demo_memory.c). */
tn_status demo_check_memory(demo *d, tn_error *err);

/* Runs the loops (eager_demo_loop.c). CANCELLED when interrupted; what was measured until then stays. */
tn_status demo_run_all(demo *d, tn_error *err);

/* Results (eager_demo_print.c, eager_demo_svg.c, eager_demo_json.c). */
void demo_print(const demo *d);
void demo_svg(const demo *d, tool_text *out);
int demo_print_json(const demo *d); /* an exit status */

/* Bytes held between two times since the loop began. */
demo_bin demo_track_between(const demo_track *track, uint64_t from_ns, uint64_t to_ns);
void demo_track_add(demo_track *track, uint64_t now_ns, uint64_t bytes);
/* Runs whose peaks are alike share a scale: the highest peak among those of its size. */
uint64_t demo_scale(const demo *d, const demo_run *run);
/* Until the last of the sessions is closed. */
uint64_t demo_end_ns(const demo *d);

#endif
