/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `tenon run`.
 *
 * A name on the command line is a key of the signature or the name of a tensor; the steps use names of tensors. */
#ifndef TENON_TOOLS_RUN_RUN_H
#define TENON_TOOLS_RUN_RUN_H

#include <tools/run/trace.h>

typedef struct run_names {
  const char **items;
  size_t n;
  size_t room;
} run_names;

typedef struct run_request {
  tool_source_request source;
  const char *after_signature; /* whose keys --after and --feed may name; NULL = none */
  const char *save;            /* prefix of a checkpoint; NULL = none */
  const char *save_model;      /* folder of a SavedModel; NULL = none */
  uint64_t save_every;         /* steps; 0 = at the end only */
  const char *runtime;
  const char *level;
  const char *config; /* file of a ConfigProto; NULL = none */
  run_names feed_args, fetch_args, after_args, inits, targets, options, read_folders, write_folders;
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
  const char **feed_tensors, **fetch_tensors; /* the tensors that the names denote */
  tool_place *places; /* destination of each fetch */
  tn_tensor **feeds, **fetched;
  tn_cancellation *cancellation; /* borrowed */
  run_trace *trace;              /* data collected about the steps */
} run_request;

/* Checks, as far as possible, that the checkpoint and the SavedModel can be written; returns an exit status. */
int run_check_saves(const run_request *r);

/* Finds the tensors and makes the feeds (model.c). */
tn_status run_find_tensors(const run_request *r, const tool_source *source, tn_error *err);
tn_status run_open_session(const run_request *r, const tool_source *source, tn_session **out, tn_error *err);
/* Writes the SavedModel of --save-model. */
tn_status run_save_model(const run_request *r, const tool_source *source, tn_session *session, tn_error *err);
/* Adds to an error about a placeholder which key of the signature feeds it. */
void run_explain_missing(const run_request *r, const tool_source *source, tn_error *err);
/* The output of `tenon run MODEL` without other options; returns an exit status. */
int run_describe(const run_request *r, const tool_source *source);

/* Runs the initialisers and the steps (steps.c). Returns CANCELLED if interrupted; tool_interrupted is then
 * nonzero. */
tn_status run_in_session(const run_request *r, tn_session *session, tn_error *err);

#endif
