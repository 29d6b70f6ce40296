/* SPDX-License-Identifier: Apache-2.0 */
/* The session that programs hold.
 *
 * Life: every call that uses the runtime enters the session and leaves it (the gate `calls`). Close sets `closed`, which
 * running steps watch. Destroy closes, shuts the gate and waits until all have left: the last one learns from the gate what
 * to do, and wakes the destroyer through a lock that is not the session's, so that nothing touches a session that is gone.
 *
 * Signatures: names in the order of a call lead to a `tn__entry_point` (a map from positions to the signature's own order),
 * several of those to one signature, which owns the plan and the runtime's executable. All are counted; the caches are
 * bounded. */
#ifndef TN_CORE_SESSION_INTERNAL_H
#define TN_CORE_SESSION_INTERNAL_H

#include <core/base/gate.h>
#include <core/base/map.h>
#include <core/exec/wait.h>
#include <core/graph/graph_internal.h>
#include <core/host/host.h>
#include <core/compile/compile.h>
#include <core/plan/plan.h>
#include <core/plan/states.h>
#include <core/registry/registry.h>
#include <core/resource/container.h>
#include <core/session/placement.h>
#include <string.h>
#include <tenon/default.h>
#include <tenon/session.h>

/* How the gate of a session is shut: a destroyer waits for the last call to leave; the last call to leave frees the session. */
enum { TN__DESTROYED = 1, TN__RELEASED };

typedef struct tn__assumed {
  const int64_t *dims; /* -1: any */
  int32_t rank;        /* -1: nothing is taken for certain */
} tn__assumed;

typedef struct tn__signature {
  _Atomic uint32_t refs;
  tn_session *session; /* borrowed: it outlives its signatures */
  char *key;           /* canonical, in the session's map */
  size_t key_size;
  tn_plan *plan;
  tn_executable *executable;
  size_t n_feeds, n_fetches;
  tn_dtype *feed_dtypes; /* 0 = any: the operation is not registered and nothing reads it */
  tn__assumed *assumed;  /* by feed: what the plan takes its shape to be, dims borrowed from the graph; NULL = nothing */
  _Atomic(struct tn__signature *) loose; /* for feeds of other shapes, owned; made when such a one comes */
  tn_output *wanted;     /* what it is compiled from: feeds, then fetches; NULL with `assumed` */
  tn_operation **targets;
  size_t n_targets;
  uint64_t used;         /* stamp of the last use, guarded by session->mu */
} tn__signature;

#define TN__FROM_NOW INT64_MIN

/* A signature with the order of one caller. */
typedef struct tn__entry_point {
  _Atomic uint32_t refs;
  tn__signature *signature; /* a reference */
  char *key;                /* names; NULL for a callable */
  size_t key_size;
  size_t n_feeds, n_fetches;
  uint32_t *feed_map;  /* position -> feed of the signature */
  uint32_t *fetch_map; /* position -> fetch of the signature */
  uint32_t *first;     /* fetch of the signature -> first position that asks for it */
  tn_output *feeds;    /* by position, for messages */
  tn_run_options options; /* of a callable */
  uint64_t used;          /* guarded by session->mu */
  struct tn__entry_point *next_evicted;
} tn__entry_point;

/* A callable's place; see callable.c. */
typedef struct tn__callable_slot {
  tn__gate gate; /* of runs */
  _Atomic uint32_t generation;
  _Atomic(tn__entry_point *) entry;
} tn__callable_slot;

#define TN__CALLABLE_BLOCKS 28 /* block b holds TN__CALLABLE_BLOCK << b slots */
#define TN__CALLABLE_BLOCK 8

struct tn_session {
  tn__gate calls;
  void (*free)(tn_session *session); /* called by the last call to leave a session that was released */
  _Atomic int64_t closed; /* when, on the monotonic clock; 0 = open */
  tn__opened on;          /* the runtime, the options */
  bool strict_shapes, static_graph;
  bool opened_default;     /* opened as default session: it is one until it is closed */
  _Atomic uint32_t on_stacks; /* its places on stacks of default sessions */

  tn__mutex mu;
  _Atomic(tn_graph *) graph; /* a reference; set once, under mu */
  tn__map entries;           /* names -> tn__entry_point, guarded by mu */
  tn__map signatures;        /* canonical key -> tn__signature, guarded by mu */
  tn__kernel_states states;  /* of stateful nodes, for all signatures */
  uint64_t clock;            /* of uses, guarded by mu */
  uint64_t compiled;         /* guarded by mu */
  bool compiling, finalized; /* guarded by mu */
  tn__cond compiled_one;
  tn__sleepers sleepers;     /* steps in which every kernel waits */
  uint32_t n_callables;      /* guarded by mu */
  uint32_t *free_callables;  /* guarded by mu */
  size_t n_free_callables, free_room;
  _Atomic(tn__callable_slot *) callable_blocks[TN__CALLABLE_BLOCKS];
  tn__map partials; /* partial runs that are open, by id; guarded by mu, as is the list */
  struct tn__partial_run *untold_partials;
  _Atomic(tn__devices *) devices; /* NULL: one CPU, or the runtime was not asked yet */
  tn__placing placing;
  tn__session_threads threads;
};

/* enter.c */
tn_status tn__session_enter(tn_session *session, tn_error *err); /* closed: TN_CANCELLED, forked: FAILED_PRECONDITION */
void tn__session_leave(tn_session *session);
/* The same for a caller that has its tn__thread_number at hand. */
tn_status tn__session_enter_as(tn_session *session, uint32_t thread, tn_error *err);
void tn__session_leave_as(tn_session *session, uint32_t thread);
/* Shuts the gate and waits until all calls have left. */
void tn__session_drain(tn_session *session);

/* graph.c: gives the session its first graph, which may be empty; adds a reference. */
tn_status tn__session_adopt(tn_session *session, tn_graph *graph, tn_error *err);
/* The session's graph, borrowed. */
static inline tn_status tn__session_need_graph(tn_session *session, tn_graph **out, tn_error *err)
{
  *out = atomic_load_explicit(&session->graph, memory_order_acquire);
  return *out != NULL ? TN_OK : tn_error_set(err, TN_INVALID_ARGUMENT, "the session has no graph"); /* S-GRA-01 */
}

/* default_stack.c: stacks of default sessions */
tn_status tn__default_enter(tn_session **out, tn_error *err); /* tn__session_enter on the thread's default session */
/* Pushes the session on the calling thread's stack. opened: its place lasts until the session is closed. */
tn_status tn__default_push(tn_session *session, bool opened, tn_error *err);
/* Removes the session from all stacks. opened_only: only the places that opening it as default made. */
void tn__default_forget(tn_session *session, bool opened_only);

/* signature.c */
typedef struct tn__names {
  const char *const *feeds, *const *fetches, *const *targets;
  size_t n_feeds, n_fetches, n_targets;
} tn__names;
tn_status tn__names_check(const tn__names *names, tn_error *err); /* NULLs, empty, nothing asked */
/* Parses and compiles (or finds the signature). feeds, when not NULL, are checked for their types before compilation. The
 * caller holds *out. */
tn_status tn__entry_make(tn_session *session, const tn__names *names, tn_tensor *const *feeds, tn__entry_point **out,
                         tn_error *err);
/* The same for a partial run: the plan is one whose feeds come one by one, there is no executable, and feeds are no fetches. */
tn_status tn__entry_make_partial(tn_session *session, const tn__names *names, tn__entry_point **out, tn_error *err);
void tn__entry_unref(tn__entry_point *entry);
tn_status tn__feeds_check(const tn__entry_point *entry, const char *const *names, tn_tensor *const *feeds, tn_error *err);
/* One feed, by its number in the signature. */
tn_status tn__feed_check(const tn__signature *signature, uint32_t feed, tn_output output, const char *name,
                         const tn_tensor *tensor, tn_error *err);
/* The cache of entry points. names_key writes what has room and returns the size wanted. */
size_t tn__names_key(const tn__names *names, char *to, size_t room);
tn__entry_point *tn__entry_find(tn_session *session, const char *key, size_t size); /* held for the caller, or NULL */
void tn__entry_keep(tn_session *session, tn__entry_point *entry, const char *key, size_t size);
tn__signature_spec tn__spec_of(tn_session *session, const tn_output *feeds, size_t n_feeds, const tn_output *fetches,
                               size_t n_fetches, tn_operation *const *targets, size_t n_targets);
tn_status tn__signature_compile(tn_session *session, tn_graph *graph, const tn__signature_spec *spec, tn__signature **out,
                                tn_error *err);
void tn__signature_unref(tn__signature *signature); /* NULL allowed */

/* assumed.c: the shapes of feeds. What the plan of a new signature may take them to be; and gives that up. */
tn_status tn__signature_assume(tn__signature *signature, const tn__signature_spec *spec, tn_error *err);
void tn__signature_assume_nothing(tn__signature *signature);
/* A signature for feeds whose shapes are not those that this one's plan was made for, borrowed from it; compiled once. */
tn_status tn__signature_loose(tn__signature *signature, const tn__signature **out, tn_error *err);
/* Whether the graph's shapes were worked out from values that these feeds take the place of. */
bool tn__feeds_unsettle_shapes(tn_graph *graph, const tn_output *feeds, size_t n);
/* Refuses a feed whose shape contradicts what the graph knows of it. */
tn_status tn__feed_check_shape(tn_output output, const tn_tensor *tensor, tn_error *err);
/* Adds to the error of a step that this feed of it contradicts the graph, if it does: that may be why. */
void tn__feed_explain(tn_output output, const tn_tensor *tensor, tn_error *err);
bool tn__feeds_contradict(const tn__signature *signature, tn_tensor *const *feeds);
void tn__signatures_fini(tn_session *session);

/* run_options.c */
tn_status tn__run_options_check(const tn_session *session, const tn_run_options *options, tn_error *err);
/* Copies the fields that both structs have (rule P-26), or the defaults if `from` is NULL. Adds no reference. */
void tn__run_options_copy(tn_run_options *to, const tn_run_options *from);
/* The time at which a call that begins now has to end, 0 = never; and the limits on what the call prepares. options need not be
 * checked. */
int64_t tn__call_deadline(const tn_session *session, const tn_run_options *options);
tn__stop tn__call_limits(const tn_session *session, const tn_run_options *options, int64_t deadline_ns);

/* step.c: runs a step, which has to end at deadline_ns (0 = never, TN__FROM_NOW: the time limit counts from here). fetched[i] is
 * NULL or the tensor to write into. On error those that were NULL are NULL. */
tn_status tn__step_run(tn_session *session, const tn__entry_point *entry, const tn_run_options *options, int64_t deadline_ns,
                       tn_tensor *const *feeds, tn_tensor **fetched, tn_run_metadata *metadata, tn_error *err);
/* warm.c: does the one-time work of such a step in advance. *ran, unless NULL: whether the step was run for that. */
tn_status tn__step_warm(tn_session *session, const tn__entry_point *entry, const tn_run_options *options,
                        tn_tensor *const *feeds, tn_bool *ran, tn_error *err);

/* callable.c */
void tn__callables_fini(tn_session *session);

/* partial_life.c */
void tn__partials_tell(tn_session *session); /* the session is closed: those that nobody calls now end, too */
void tn__partials_fini(tn_session *session);

#endif
