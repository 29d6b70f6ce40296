/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `tenon run` share. */
#ifndef TENON_TOOLS_RUN_RUN_H
#define TENON_TOOLS_RUN_RUN_H

#include <tools/run/trace.h>

typedef struct run_names {
  const char **items;
  size_t n;
  size_t room;
} run_names;

typedef struct run_request {
  const char *model;
  const char *runtime;
  const char *level;
  const char *config; /* file of a ConfigProto; NULL = none */
  run_names feed_args, fetch_args, after_args, inits, targets, options;
  size_t n_stepped; /* fetches of the steps; those behind them in fetch_args are of the step after them */
  uint64_t steps;
  uint64_t every;      /* 0 = values of the last step only */
  uint64_t timeout_ms; /* of a step; 0 = none of its own */
  bool warm_up;        /* what a first step does besides its work is done before it */
  bool soft_placement;
  bool log_placement;
  bool measure;
  bool verbose;
  /* From the arguments: names before the "=", what follows it (NULL when there is none). */
  char **feed_names, **fetch_names;
  const char **feed_values, **fetch_files;
  tool_place *places; /* where each fetch goes */
  tn_tensor **feeds, **fetched;
  tn_cancellation *cancellation; /* borrowed */
  run_trace *trace;              /* what is to be known of the steps */
} run_request;

/* Runs the initialisers and the steps (run_steps.c). A run that was interrupted is CANCELLED, and tool_interrupted
 * tells. */
tn_status run_in_session(const run_request *r, tn_session *session, tn_error *err);

#endif
