/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `tenon bench`. */
#ifndef TENON_TOOLS_BENCH_BENCH_H
#define TENON_TOOLS_BENCH_BENCH_H

#include <tools/bench/histogram.h>
#include <tools/tool.h>

typedef struct bench_list {
  const char **items;
  size_t n, room;
} bench_list;

void bench_list_add(bench_list *list, const char *item);

/* A fed tensor. */
typedef struct bench_input {
  char *name;
  tn_tensor *value;
  bool made; /* the value was generated, not given */
} bench_input;

/* One runtime with one number of threads: a row of the table. */
typedef struct bench_case {
  char *target;     /* target for the session options */
  char *label;      /* "threaded:pin=1" */
  uint64_t threads; /* requested number; 0 = not set */
  bool by_options;  /* set by inter_op_threads and intra_op_threads: the runtime has no setting */
  tn_session *session;
  tn_callable callable;
  char *runtime, *version; /* the session's runtime */
  uint64_t session_ns, prepare_ns, first_ns;
  uint64_t warm_steps, warm_ns;
  bool stable;      /* the warm-up ended because its median was stable */
  uint64_t steps;   /* all steps started, for messages */
  uint64_t turns;   /* number of turns measured */
  uint64_t wall_ns; /* total time of the turns */
  bench_histogram *latencies;
  struct roofline *roofline; /* NULL: not measured */
} bench_case;

typedef struct bench_request {
  tool_source_request source;
  const char *level;
  bench_list feed_args, fetches, targets, inits, options, runtimes;
  uint64_t *threads;
  size_t n_threads, thread_room;
  uint64_t batch; /* 0 = not set */
  uint64_t concurrency;
  uint64_t timeout_ms; /* time limit of a step; 0 = not set */
  double seconds;
  bool json, no_histogram, reuse;
  bool roofline;
  const char *svg; /* file for the roofline's chart; NULL: none */
  bool warm_up; /* tn_session_warm_callable before the first step */
} bench_request;

typedef struct bench {
  const bench_request *request;
  tool_source source;
  tn_cancellation *cancellation; /* borrowed */
  uint64_t load_ns;
  bench_input *inputs;
  size_t n_inputs, input_room;
  const char **feed_names; /* names of `inputs` as an array for the library */
  tn_tensor **feeds;
  bench_list fetches, targets; /* fetches are default outputs if none were requested */
  char **made;
  size_t n_made, made_room;
  bench_case *cases;
  size_t n_cases, case_room;
  char **notes;
  size_t n_notes, note_room;
  uint64_t peak_bytes; /* peak memory of the process; 0 = unknown */
} bench;

/* Prints a note about the figures on standard error; also included in the JSON output. */
void bench_note(bench *b, const char *format, ...) TN_PRINTF(2, 3);

/* Determines feeds and fetches; generates those not given in the request (inputs.c). */
tn_status bench_make_signature(bench *b, tn_error *err);
void bench_free_signature(bench *b);

/* Creates the rows from --runtime and --threads (cases.c). */
tn_status bench_make_cases(bench *b, tn_error *err);
tn_status bench_open_case(const bench *b, bench_case *c, tn_error *err);
void bench_free_cases(bench *b);
/* Appends "runtime 'threaded', 2 threads". */
void bench_case_text(const bench_case *c, tool_text *out);

/* Opens the sessions, warms up and measures in turns (measure.c). CANCELLED if interrupted; results so far are
 * kept. */
tn_status bench_measure(bench *b, tn_error *err);

/* Runs a step of a callable of the row. Entries of `fetched` are released, or kept for the next step with --reuse. */
tn_status bench_step(const bench *b, const bench_case *c, tn_callable callable, tn_tensor **fetched,
                     tn_run_metadata *metadata, tn_error *err);

/* Results (print.c, json.c). */
void bench_print(const bench *b);
int bench_print_json(const bench *b); /* returns an exit status */
/* The first row's median divided by this row's: above 1, this row is faster. 0 = not measured. */
double bench_ratio(const bench *b, const bench_case *c);
double bench_steps_per_second(const bench_case *c);

#endif
