/* SPDX-License-Identifier: Apache-2.0 */
/* The session that programs hold.
 *
 * Life: every call that uses the runtime enters the session and leaves it (the gate `calls`). Close sets `closed`,
 * which running steps check. Destroy closes the session, shuts the gate and waits until all calls have left. The
 * gate tells the last call to leave what to do. That call wakes the destroyer through a lock that does not belong
 * to the session, so no thread touches a session that was freed.
 *
 * Signatures: the names of a call, in its order, lead to a `tn__entry_point` (entry_point.h), which maps positions
 * to the order of a `tn__signature` (signature.h). Several entry points share a signature, which owns the plan and
 * the runtime's executable. Both are reference-counted, and their caches are bounded.
 *
 * Files, from the bottom up: enter, placement/, graph; signature_compile, shape_assumption, entry_point, signature;
 * names, feeds, entry; metadata/, step, warm; run, callable, partial/, eval; session. None calls a file above it. */
#ifndef TN_CORE_SESSION_INTERNAL_H
#define TN_CORE_SESSION_INTERNAL_H

#include <core/base/threads/gate.h>
#include <core/base/map.h>
#include <core/exec/step/sleepers.h>
#include <core/graph/graph_internal.h>
#include <core/host/host.h>
#include <core/compile/compile.h>
#include <core/plan/plan.h>
#include <core/plan/states.h>
#include <core/registry/registry.h>
#include <core/resource/container.h>
#include <core/session/placement/placement.h>
#include <string.h>
#include <tenon/default.h>
#include <tenon/session.h>

/* How the gate of a session is shut. TN__DESTROYED: a destroyer waits for the last call to leave.
 * TN__RELEASED: the last call to leave frees the session. */
enum { TN__DESTROYED = 1, TN__RELEASED };

#define TN__CALLABLE_BLOCKS 28 /* of slots for callables, each twice as large as the one before (callable.c) */

struct tn_session {
  tn__gate calls;
  void (*free)(tn_session *session); /* called by the last call to leave a session that was released */
  _Atomic int64_t closed; /* when, on the monotonic clock; 0 = open. Set once; running steps read it */
  tn__session_base on;          /* the runtime, the options */
  bool strict_shapes, static_graph;
  bool opened_default;     /* opened as default session: it is one until it is closed */
  _Atomic uint32_t on_stacks; /* its places on stacks of default sessions */

  tn__mutex mu;
  _Atomic(tn_graph *) graph; /* a reference; set once, under mu */
  tn__map entries;           /* names -> tn__entry_point, guarded by mu */
  tn__map signatures;        /* canonical key -> tn__signature, guarded by mu */
  tn__kernel_states states;  /* of stateful nodes, shared by all signatures */
  uint64_t clock;            /* counts uses of signatures and entry points, for eviction; guarded by mu */
  uint64_t compiled;         /* signatures compiled so far; guarded by mu */
  bool compiling, finalized; /* a thread compiles a signature; no further one may be compiled; guarded by mu */
  tn__cond compiled_one;     /* signalled when `compiling` becomes false */
  tn__sleepers sleepers;     /* steps in which every kernel waits */
  uint32_t n_callables;      /* slots used so far, also for released callables; guarded by mu, as are the next three */
  uint32_t *free_callables;  /* numbers of slots that can be used again */
  size_t n_free_callables, free_room;
  _Atomic(struct tn__callable_slot *) callable_blocks[TN__CALLABLE_BLOCKS];
  tn__map partials; /* partial runs that are open, by id; guarded by mu, as is the list */
  struct tn__partial_run *untold_partials; /* those that the session's close has not cancelled */
  _Atomic(tn__devices *) devices; /* NULL: one CPU, or the runtime was not asked yet */
  tn__placing placing;
  tn__session_threads threads;
  void *held;                      /* what the session keeps alive, such as its model; NULL: nothing */
  void (*release_held)(void *held); /* called when the session is freed */
};

/* Gives the session an object to keep alive. Call it once, before other threads know the session. */
static inline void tn__session_hold(tn_session *session, void *object, void (*release)(void *object))
{
  session->held = object;
  session->release_held = release;
}

/* enter.c. Counts a call, so that the session is not freed before tn__session_leave. TN_CANCELLED:
 * it is closed; TN_FAILED_PRECONDITION: this is a child of the process that created it. */
tn_status tn__session_enter(tn_session *session, tn_error *err);
void tn__session_leave(tn_session *session); /* may free the session */
/* The same for a caller that has its tn__thread_number at hand. */
tn_status tn__session_enter_as(tn_session *session, uint32_t thread, tn_error *err);
void tn__session_leave_as(tn_session *session, uint32_t thread);
/* Shuts the gate and waits until all calls have left. */
void tn__session_drain(tn_session *session);

/* graph.c: gives the session its first graph, which may be empty; adds a reference.
 * TN_ALREADY_EXISTS if it has one. */
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

/* callable.c. No call may be in the session. */
void tn__callables_fini(tn_session *session);

/* partial/life.c */
/* The session is closed: cancels all partial runs, also those that are in no call. */
void tn__partials_tell(tn_session *session);
void tn__partials_fini(tn_session *session);

#endif
