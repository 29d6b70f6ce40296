/* SPDX-License-Identifier: Apache-2.0 */
/* A signature: feeds, distinct fetches and distinct targets in canonical order, with the plan compiled for them. */
#ifndef TN_CORE_SESSION_SIGNATURE_H
#define TN_CORE_SESSION_SIGNATURE_H

#include <core/session/session_internal.h>

/* The shape that a plan assumes a feed to have. */
typedef struct tn__shape_assumption {
  const int64_t *dims; /* -1: any */
  int32_t rank;        /* -1: no shape is assumed */
} tn__shape_assumption;

/* Immutable once compiled, except for `loose` and `used`; concurrent steps share it. The arrays are
 * owned. */
typedef struct tn__signature {
  _Atomic uint32_t refs;
  tn_session *session; /* borrowed: it outlives its signatures */
  char *key;           /* canonical, in the session's map */
  size_t key_size;
  tn_plan *plan;             /* a reference */
  tn_executable *executable; /* the runtime's, released with the signature; NULL for a partial run */
  size_t n_feeds, n_fetches;
  tn_dtype *feed_dtypes; /* 0 = any: the operation is not registered and nothing reads it */
  tn__shape_assumption *assumed; /* by feed, dims borrowed from the graph; NULL: the plan assumes no shapes */
  _Atomic(struct tn__signature *)
      loose;             /* for feeds of other shapes, owned; compiled when the first such feed is passed */
  tn_output *wanted;     /* the endpoints to compile `loose` from: feeds, then fetches; NULL if `assumed` is */
  tn_operation **targets;
  size_t n_targets;
  uint64_t used;         /* stamp of the last use, guarded by session->mu */
} tn__signature;

/* signature_compile.c. The description that the compiler needs; the arrays are borrowed. */
tn__signature_spec tn__spec_of(tn_session *session, const tn_output *feeds, size_t n_feeds, const tn_output *fetches,
                               size_t n_fetches, tn_operation *const *targets, size_t n_targets);
/* Compiles a plan and lets the runtime prepare it. *out is a reference; the signature is in no
 * cache. */
tn_status tn__signature_compile(tn_session *session, tn_graph *graph, const tn__signature_spec *spec,
                                tn__signature **out, tn_error *err);
void tn__signature_unref(tn__signature *signature); /* NULL allowed */

/* shape_assumption.c: records which shapes of feeds the plan of a new signature assumes. */
tn_status tn__signature_assume(tn__signature *signature, const tn__signature_spec *spec, tn_error *err);
/* A signature for feeds whose shapes differ from the assumed ones, borrowed from this one. Compiled once. */
tn_status tn__signature_loose(tn__signature *signature, const tn__signature **out, tn_error *err);
/* Whether the graph inferred shapes from values that these feeds replace. */
bool tn__feeds_unsettle_shapes(tn_graph *graph, const tn_output *feeds, size_t n);

/* signature.c: the signature of parsed names, a reference for the caller. Found by its canonical key; or compiled by
 * this thread, while other threads wait, and added to the cache. */
struct tn__parsed_names;
tn_status tn__signature_get(tn_session *session, tn_graph *graph, struct tn__parsed_names *parsed, tn__signature **out,
                            tn_error *err);
void tn__signatures_fini(tn_session *session);

#endif
