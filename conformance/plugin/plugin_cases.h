/* SPDX-License-Identifier: Apache-2.0 */
/* Small graphs for the ops that a kernel plugin has kernels for, made from the schemas alone (plugin_cases.c). */
#ifndef TENON_CONFORMANCE_PLUGIN_PLUGIN_CASES_H
#define TENON_CONFORMANCE_PLUGIN_PLUGIN_CASES_H

#include <conformance/plugin/plugin.h>

enum { PG_MOST_INPUTS = 3, PG_MOST_OUTPUTS = 4, PG_MOST_RANK = 5 };

/* An entry of the manifest's `kernels`, one for each element type: "MatMul@CPU:float|bfloat16" is two. */
typedef struct pg_claim {
  char op[128];
  char device[32];
  tn_dtype dtype; /* TN_DTYPE_INVALID: it names none */
} pg_claim;

/* All entries, to be freed with free(); *n may be 0. A malformed entry is recorded as a failure. */
pg_claim *pg_claims(size_t *n);

/* The shapes of the inputs of one case. */
typedef struct pg_shapes {
  int n; /* inputs */
  int32_t rank[PG_MOST_INPUTS];
  int64_t dims[PG_MOST_INPUTS][PG_MOST_RANK];
} pg_shapes;

/* Common input shapes; from pg_first_empty on they have no elements. */
extern const pg_shapes pg_all_shapes[];
extern const size_t pg_n_shapes, pg_first_empty;

/* A node "node" of the op with placeholders "in0", ...; NULL if the schema requires a value that cannot be guessed. */
tn_graph *pg_case_graph(const pg_claim *claim, const pg_shapes *shapes);

/* Feeds for it: small numbers in read-only memory. */
bool pg_case_feeds(const pg_claim *claim, const pg_shapes *shapes, tn_tensor **feeds);

/* A session on direct; plugins: the option kernel_plugins. NULL: the graph was rejected. */
tn_session *pg_case_session(tn_graph *graph, const char *plugins);

/* Runs it; kernel (80 bytes, or NULL) receives the name of the kernel that ran. */
tn_status pg_case_run(tn_session *session, tn_tensor *const *feeds, int n, tn_tensor **out, char *kernel,
                      tn_error *err);

/* Whether two values are equal up to rounding; *at is the first element that differs. */
bool pg_same_values(const tn_tensor *a, const tn_tensor *b, int64_t *at);
double pg_element(const tn_tensor *t, int64_t i);

#endif
