/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `tenon bench` share. */
#ifndef TENON_TOOLS_BENCH_BENCH_H
#define TENON_TOOLS_BENCH_BENCH_H

#include <tools/bench/histogram.h>
#include <tools/tool.h>

typedef struct bench_list {
  const char **items;
  size_t n, room;
} bench_list;

void bench_list_add(bench_list *list, const char *item);

/* A tensor that is fed. */
typedef struct bench_input {
  char *name;
  tn_tensor *value;
  bool made; /* nobody gave a value */
} bench_input;

/* One runtime with one number of threads: a row of the table. */
typedef struct bench_case {
  char *target;     /* as the session's options take it */
  char *label;      /* "threaded:pin=1" */
  uint64_t threads; /* that were asked for; 0 = none were */
  bool by_options;  /* the runtime has no setting for them: inter_op_threads and intra_op_threads */
  tn_session *session;
  tn_callable callable;
  char *runtime, *version; /* what the session runs on */
  uint64_t session_ns, prepare_ns, first_ns;
  uint64_t warm_steps, warm_ns;
  bool stable;      /* the warm-up ended as its figure no longer changed */
  uint64_t steps;   /* all that began, for messages */
  uint64_t turns;   /* in which it was measured */
  uint64_t wall_ns; /* of them together */
  bench_histogram *latencies;
} bench_case;

typedef struct bench_request {
  const char *model, *level;
  bench_list feed_args, fetches, targets, inits, options, runtimes;
  uint64_t *threads;
  size_t n_threads, thread_room;
  uint64_t batch; /* 0 = none was asked for */
  uint64_t concurrency;
  uint64_t timeout_ms; /* of a step; 0 = none of its own */
  double seconds;
  bool json, no_histogram, reuse;
  bool warm_up; /* tn_session_warm_callable before the first step */
} bench_request;

typedef struct bench {
  const bench_request *request;
  tn_graph *graph;
  tn_cancellation *cancellation; /* borrowed */
  uint64_t load_ns;
  bench_input *inputs;
  size_t n_inputs, input_room;
  const char **feed_names; /* those of inputs, as the library takes them */
  tn_tensor **feeds;
  bench_list fetches, targets; /* fetches: names of its own where none were asked for */
  char **made;
  size_t n_made, made_room;
  bench_case *cases;
  size_t n_cases, case_room;
  char **notes;
  size_t n_notes, note_room;
  uint64_t peak_bytes; /* of the process; 0 = not known */
} bench;

/* Says something on standard error that belongs to the figures; JSON has it, too. */
void bench_note(bench *b, const char *format, ...) TN_PRINTF(2, 3);

/* What is fed and fetched; made where the request does not tell (bench_inputs.c). */
tn_status bench_make_signature(bench *b, tn_error *err);
void bench_free_signature(bench *b);

/* The rows, from --runtime and --threads (bench_cases.c). */
tn_status bench_make_cases(bench *b, tn_error *err);
tn_status bench_open_case(const bench *b, bench_case *c, tn_error *err);
void bench_free_cases(bench *b);
/* "runtime 'threaded', 2 threads". */
void bench_case_text(const bench_case *c, tool_text *out);

/* Opens the sessions, warms up, measures in turns (bench_measure.c). CANCELLED when interrupted; what was measured
 * until then stays. */
tn_status bench_measure(bench *b, tn_error *err);

/* Results (bench_print.c, bench_json.c). */
void bench_print(const bench *b);
int bench_print_json(const bench *b); /* an exit status */
/* How often the median of a row fits into that of the first one: above 1 it is faster. 0 = not measured. */
double bench_ratio(const bench *b, const bench_case *c);
double bench_steps_per_second(const bench_case *c);

#endif
