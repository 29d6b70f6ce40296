/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a session has, where its nodes stand, and which threads it may use: what its configuration says, checked
 * when it is opened.
 *
 * A graph in which no node names a device is not walked at all, unless placements are logged: every node of it stands on
 * the first CPU. */
#ifndef TN_CORE_SESSION_PLACEMENT_H
#define TN_CORE_SESSION_PLACEMENT_H

#include <core/base/map.h>
#include <core/pool/pool.h>
#include <core/graph/graph_internal.h>
#include <tenon/session.h>

/* ---- devices ---- */

typedef struct tn__device {
  const char *name, *type;
  int64_t memory_bytes;
  tn__device_name parsed; /* of the name */
  const char *model;      /* NULL: not known */
} tn__device;

typedef struct tn__devices {
  tn__device *at;
  size_t n, room;
  size_t client; /* the first CPU: S-CFG-20 */
} tn__devices;

/* Counts and filters of the options against the runtime's devices: TN_NOT_FOUND when no CPU is left, TN_INVALID_ARGUMENT for
 * a malformed filter. Once, when the runtime is open. */
tn_status tn__devices_open(tn_session *session, tn_error *err);
void tn__devices_close(tn_session *session);
/* Hold no lock: a runtime may be asked. */
tn_status tn__devices_get(tn_session *session, const tn__devices **out, tn_error *err);

/* ---- placement ---- */

typedef struct tn__stand tn__stand; /* why a node stands elsewhere, as it was told */

typedef struct tn__placing {
  tn__mutex mu;     /* also makes one the first who gives the session its graph */
  bool soft, pruned, log;
  const tn_graph *graph; /* of what follows; guarded by mu */
  size_t placed;    /* without `pruned` all below are placed. guarded by mu */
  uint32_t *where;  /* of operation i: 0, or 1 + its device and MOVED. guarded by mu */
  size_t room;
  tn__map told;     /* operation number -> tn__stand. guarded by mu */
} tn__placing;

/* Whether nodes have to be looked at. */
bool tn__placement_wanted(const tn_session *session, const tn_graph *graph);
/* All nodes that the graph has by now. TN_INVALID_ARGUMENT names the node; then nothing was placed. */
tn_status tn__placement_all(tn_session *session, tn_graph *graph, tn_error *err);
/* Before a signature is compiled: all nodes, or with place_pruned_graph those that it needs. */
tn_status tn__placement_for(tn_session *session, tn_graph *graph, const tn_output *feeds, size_t n_feeds,
                            const tn_output *fetches, size_t n_fetches, tn_operation *const *targets, size_t n_targets,
                            tn_error *err);
/* Imports into the session's graph, unless a node is there that could not be placed. */
tn_status tn__placement_import(tn_session *session, tn_graph *graph, const void *graph_def, size_t size, tn_error *err);
void tn__placement_init(tn_session *session);
void tn__placement_fini(tn_session *session);

/* ---- threads ---- */

/* The option session_inter_op_pools. */
typedef struct tn__session_threads {
  size_t n_pools;
  tn__pool **pools; /* that have a name; NULL for one that is the runtime's alone */
} tn__session_threads;

/* TN_INVALID_ARGUMENT when a pool with a global name has another number of threads: S-CFG-13. */
tn_status tn__threads_open(tn_session *session, tn_error *err);
void tn__threads_close(tn_session *session);

#endif
