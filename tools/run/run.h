/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `tenon run`. */
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
  size_t n_stepped; /* fetches of the steps; later entries of fetch_args are for --after */
  uint64_t steps;
  uint64_t every;      /* 0 = print values of the last step only */
  uint64_t timeout_ms; /* time limit of a step; 0 = not set */
  bool warm_up;        /* do the one-time preparations before the first step */
  bool soft_placement;
  bool log_placement;
  bool measure;
  bool verbose;
  /* From the arguments: names before the "=", and values after it (NULL if none). */
  char **feed_names, **fetch_names;
  const char **feed_values, **fetch_files;
  tool_place *places; /* destination of each fetch */
  tn_tensor **feeds, **fetched;
  tn_cancellation *cancellation; /* borrowed */
  run_trace *trace;              /* data collected about the steps */
} run_request;

/* Runs the initialisers and the steps (steps.c). Returns CANCELLED if interrupted; tool_interrupted is then
 * nonzero. */
tn_status run_in_session(const run_request *r, tn_session *session, tn_error *err);

#endif
