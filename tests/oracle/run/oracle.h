/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of tests/oracle/run/oracle_run: runs cases recorded from TensorFlow, and models, through the public API.
 *
 * find.c     folders, archives and indexes to a list of cases
 * files.c    files, zip archives, npz
 * tensor.c   stored arrays to tensors
 * compare.c  a fetched tensor against the expected one
 * eager.c    one step, operation by operation
 * step.c     one step in a session, with the checks made for every step
 * case.c     one case of an index
 * model.c    one folder with a case.json
 * kernels.c  a sample of the cases: one for each type of each op that a device's kernels claim
 * claims.c   the list of claimed ops; which op of a graph is missing
 * worker.c   cases in a child process, so that a crash or a hang costs one case
 * report.c   the table, the failures, the JSON file
 *
 * A test program: it ends if memory is exhausted. tests/oracle/README.md describes the files. */
#ifndef TENON_TESTS_ORACLE_RUN_ORACLE_H
#define TENON_TESTS_ORACLE_RUN_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <tenon/metadata.h>
#include <tenon/tenon.h>

/* ---- shared by all parts ---- */

typedef enum oracle_verdict {
  ORACLE_PASSED = 0,
  ORACLE_FAILED = 1,
  ORACLE_SKIPPED = 2,
  ORACLE_UNNEEDED = 3 /* not in the sample (kernels.c): not counted */
} oracle_verdict;

typedef struct oracle_result {
  oracle_verdict verdict;
  double seconds;
  char reason[1600];
} oracle_result;

/* Keeps the first reason. Both return false, so that `return oracle_fail(...)` reads well. */
bool oracle_fail(oracle_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool oracle_skip(oracle_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool oracle_fail_status(oracle_result *result, const tn_error *err, const char *what);

/* Prepends "text: " to the reason. */
void oracle_prefix(oracle_result *result, const char *text);

/* These end the program if memory is exhausted. */
void *oracle_alloc(size_t bytes); /* zeroed, never NULL */
void *oracle_grow(void *array, size_t n, size_t *room, size_t element);
char *oracle_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with exit status 2: the call, or a file that lists cases, is wrong. */
void oracle_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- files ---- */

typedef struct oracle_bytes {
  unsigned char *data;
  size_t size;
} oracle_bytes;

/* Returns false, with the reason in `why`, if the file cannot be read. */
bool oracle_read_file(const char *path, oracle_bytes *out, char *why, size_t why_size);
bool oracle_zip_entry(const char *path, const char *name, oracle_bytes *out, char *why, size_t why_size);

/* A packed family (tests/oracle/pack.py): graphs and arrays of all its cases, one after another. */
typedef struct oracle_archive {
  char *path;
  bool loaded;
  oracle_bytes graphs;
  oracle_bytes arrays;
} oracle_archive;

/* ---- cases ---- */

typedef enum oracle_kind { ORACLE_IN_FOLDER, ORACLE_IN_ARCHIVE, ORACLE_MODEL } oracle_kind;

typedef struct oracle_case {
  oracle_kind kind;
  char *id;     /* "math/Abs-000", "models/digits" */
  char *family; /* "math", "models" */
  char *folder; /* of the index, or of the case.json */
  oracle_archive *archive;
  json_t *entry; /* its object in the index, or the whole case.json */
} oracle_case;

typedef struct oracle_list {
  oracle_case *cases;
  size_t n;
  size_t room;
  oracle_archive **archives;
  size_t n_archives;
  size_t archives_room;
} oracle_list;

/* Adds the cases below `path`: a folder, an archive, an index.json or a case.json. */
void oracle_find(oracle_list *list, const char *path);

/* Sorts by family (in order of names) and id, and keeps those whose id matches one of the globs
 * (none: all). */
void oracle_select(oracle_list *list, const char *const *globs, size_t n_globs);
void oracle_list_free(oracle_list *list);

/* ---- claimed ops ---- */

typedef struct oracle_claims {
  char **ops; /* sorted */
  size_t n;
  size_t room;
} oracle_claims;

void oracle_claims_read(oracle_claims *claims, const char *path);
void oracle_claims_free(oracle_claims *claims);
bool oracle_claimed(const oracle_claims *claims, const char *op);

/* Why the library cannot run this op (not registered, or without a kernel), or NULL if it
 * should. Static text. */
const char *oracle_op_missing(const char *op);

/* ---- a sample ---- */

typedef struct oracle_kernels oracle_kernels;

/* path: output of `tenon ops --json`. few: two types of each attribute. within: seconds after
 * which no further case is started, 0: no limit. Ends the program if the file cannot be read or
 * has no kernel for the device. */
oracle_kernels *oracle_kernels_read(const char *path, const char *device, bool few, int within);
void oracle_kernels_free(oracle_kernels *kernels); /* NULL allowed */

/* Whether the graph of a case contains a claim that no node has fulfilled on the device yet. */
bool oracle_kernels_want(oracle_kernels *kernels, const oracle_case *c, const tn_graph *graph);
void oracle_kernels_note(oracle_kernels *kernels, tn_session *session, const tn_run_metadata *metadata);

/* Prints the claims that did not run on the device, and those without a case. */
void oracle_kernels_report(const oracle_kernels *kernels);

/* ---- running ---- */

typedef struct oracle_config {
  const char *target; /* of the session: "direct", "threaded:threads=4" */
  int level;
  int timeout_s;
  const char **options; /* "field=value" */
  size_t n_options, options_room;
  bool in_process; /* no child process */
  bool verbose;
  bool eager; /* stateless cases once more, operation by operation */
  const char *eager_device; /* used for ops with kernels there; NULL: the session decides */
  oracle_claims claims;
  oracle_kernels *kernels; /* NULL: all cases */
} oracle_config;

void oracle_run_one(const oracle_config *config, const oracle_case *c, oracle_result *result);
void oracle_run_case(const oracle_config *config, const oracle_case *c, oracle_result *result);
void oracle_run_model(const oracle_config *config, const oracle_case *c, oracle_result *result);

/* Runs every case; result[i] is that of case i. Returns whether the process itself ended
 * normally; otherwise `why` explains how it ended. */
bool oracle_run_all(const oracle_config *config, const oracle_list *list, oracle_result *results, char *why,
                    size_t why_size);

/* ---- arrays ---- */

/* The location of the arrays of one case. */
typedef struct oracle_arrays {
  void *zip; /* zip_t, or NULL for an archive */
  oracle_bytes npz;
  json_t *index; /* archive: name to [offset, size] */
  oracle_bytes packed;
  char scratch[300]; /* folder that replaces @SCRATCH@ in strings; "" until one is needed */
} oracle_arrays;

/* Graph and arrays of a case. */
bool oracle_open_case(const oracle_case *c, oracle_bytes *graph, oracle_arrays *arrays, oracle_result *result);
void oracle_arrays_close(oracle_arrays *arrays); /* removes the scratch folder, too */

/* The .npy of this name; *owned: the caller frees it. */
bool oracle_arrays_bytes(oracle_arrays *arrays, const char *name, oracle_bytes *out, bool *owned,
                         oracle_result *result);

/* The array of this name as a tensor of the named dtype ("bfloat16", "string", ...). */
bool oracle_arrays_tensor(oracle_arrays *arrays, const char *name, const char *dtype, tn_tensor **out,
                          oracle_result *result);

/* The same from .npy files. Strings have a second file with offsets, and their shape is `dims`. */
bool oracle_npy_tensor(const char *path, const char *offsets, const char *dtype, const int64_t *dims, int32_t rank,
                       tn_tensor **out, oracle_result *result);

/* ---- comparing ---- */

typedef enum oracle_mode { ORACLE_VALUES, ORACLE_SHAPE, ORACLE_RANGE, ORACLE_MEAN_ABS } oracle_mode;

typedef struct oracle_tolerance {
  oracle_mode mode;
  double rtol;
  double atol;
  double int_atol; /* of integers */
  double low;      /* of a range */
  double high;
  double limit; /* of the mean absolute difference */
} oracle_tolerance;

/* Returns false, with the first wrong element in the reason, if `got` is not as expected. `name`
 * is the tensor's. */
bool oracle_compare(const oracle_tolerance *tolerance, const char *name, const tn_tensor *want, const tn_tensor *got,
                    oracle_result *result);

/* ---- one step ---- */

typedef struct oracle_step {
  const char **feed_names;
  tn_tensor **feeds;
  size_t n_feeds;
  const char **fetch_names;
  tn_tensor **fetched;
  size_t n_fetches;
  const char **targets;
  size_t n_targets;
  tn_run_metadata *metadata; /* for oracle_step_run, with a record for each node; NULL: not collected */
} oracle_step;

/* Allocates room for the given numbers; oracle_step_free frees it, with its tensors. */
void oracle_step_init(oracle_step *step, size_t n_feeds, size_t n_fetches, size_t n_targets);
void oracle_step_free(oracle_step *step);

/* Runs the step. Returns false if the library broke a rule that holds for every step: a feed was
 * written to (S-RUN-28), a fetched tensor is not owned exclusively (S-RUN-27), a failed step
 * returned tensors (S-RUN-08) or no message (S-ERR-01). */
bool oracle_step_run(tn_session *session, oracle_step *step, tn_status *status, tn_error *err, oracle_result *result);

/* Releases the fetched tensors. */
void oracle_step_drop(oracle_step *step);

/* The same step as a callable that writes into step->fetched, filled by an earlier run. */
bool oracle_step_call(tn_session *session, oracle_step *step, tn_status *status, tn_error *err, oracle_result *result);

/* Runs the step once more, its operations one by one in an eager session; fetched tensors as
 * after oracle_step_run. *ran false: the graph has control flow, or something else that is not a
 * single operation. */
bool oracle_step_eager(const oracle_config *config, tn_graph *graph, oracle_step *step, bool *ran,
                       oracle_result *result);

/* An open session of the configured runtime on the graph. */
bool oracle_open_session(const oracle_config *config, tn_graph *graph, tn_session **out, tn_error *err);

/* ---- reporting ---- */

typedef struct oracle_counts {
  size_t passed;
  size_t failed;
  size_t skipped;
} oracle_counts;

void oracle_report(const oracle_config *config, const oracle_list *list, const oracle_result *results,
                   oracle_counts *total);
bool oracle_write_json(const char *path, const oracle_config *config, const oracle_list *list,
                       const oracle_result *results, const oracle_counts *total);

#endif
