/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a session, the placement of its nodes on them, and the pools of threads that its configuration
 * names. The configuration is checked when the session is opened.
 *
 * If no node of a graph names a device, the graph is not walked, unless placements are logged: all its nodes are on
 * the first CPU. */
#ifndef TN_CORE_SESSION_PLACEMENT_PLACEMENT_H
#define TN_CORE_SESSION_PLACEMENT_PLACEMENT_H

#include <core/base/map.h>
#include <core/pool/pool.h>
#include <core/graph/graph_internal.h>
#include <tenon/session.h>

/* ---- devices ---- */

typedef struct tn__device {
  const char *name, *type; /* full name, for example "/job:localhost/replica:0/task:0/device:CPU:0"; "CPU" */
  int64_t memory_bytes;    /* 0 = not known */
  tn__device_name parsed; /* of the name */
  const char *model;      /* NULL: not known */
} tn__device;

/* Immutable once made. */
typedef struct tn__devices {
  tn__device *at;
  size_t n, room;
  size_t client; /* the first CPU: S-CFG-20 */
} tn__devices;

/* Applies the counts and filters of the options to the runtime's devices. TN_NOT_FOUND if no CPU is left,
 * TN_INVALID_ARGUMENT for a malformed filter. Called once, when the runtime is open. */
tn_status tn__devices_open(tn_session *session, tn_error *err);
void tn__devices_close(tn_session *session);
/* The list, borrowed as long as the session. The caller holds no lock, since this may call the
 * runtime. */
tn_status tn__devices_get(tn_session *session, const tn__devices **out, tn_error *err);

/* ---- placement ---- */

typedef struct tn__stand tn__stand; /* the reason given to programs for a soft placement */

typedef struct tn__placing {
  tn__mutex mu;     /* guards the placement, not the three options, which are constant */
  bool soft, pruned, log; /* allow_soft_placement, place_pruned_graph, log_device_placement */
  const tn_graph *graph; /* the graph of the fields below; guarded by mu */
  size_t placed;    /* without `pruned` all operations below this number are placed; guarded by mu */
  uint32_t *where;  /* by operation: 0, or 1 + its device, with MOVED for a soft placement; guarded by mu */
  size_t room;
  tn__map told;     /* operation number -> tn__stand; guarded by mu */
} tn__placing;

/* Whether nodes have to be placed one by one. */
bool tn__placement_wanted(const tn_session *session, const tn_graph *graph);
/* Places all nodes that the graph has now. TN_INVALID_ARGUMENT names the node at fault; then no node was placed. */
tn_status tn__placement_all(tn_session *session, tn_graph *graph, tn_error *err);
/* Called before a signature is compiled: places all nodes, or with place_pruned_graph those that the signature
 * needs. */
tn_status tn__placement_for(tn_session *session, tn_graph *graph, const tn_output *feeds, size_t n_feeds,
                            const tn_output *fetches, size_t n_fetches, tn_operation *const *targets, size_t n_targets,
                            tn_error *err);
/* Imports into the session's graph, unless a new node cannot be placed. */
tn_status tn__placement_import(tn_session *session, tn_graph *graph, const void *graph_def, size_t size, tn_error *err);
void tn__placement_init(tn_session *session);
void tn__placement_fini(tn_session *session);

/* ---- threads ---- */

/* The option session_inter_op_pools. */
typedef struct tn__session_threads {
  size_t n_pools;
  tn__pool **pools; /* pools with a global name; NULL for one that is the runtime's alone */
} tn__session_threads;

/* TN_INVALID_ARGUMENT if a pool with a global name has another number of threads: S-CFG-13. */
tn_status tn__threads_open(tn_session *session, tn_error *err);
void tn__threads_close(tn_session *session);

#endif
