/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions: the object, and the gate through which calls enter it.
 *
 * Life. Calls go through the gate. A reset of the runtime sets `closed`, which ends calls. Close sets it and
 * `ending`, shuts the gate, waits until all have left, ends the thread, and deletes what is left by walking
 * the slots. The struct stays until it is destroyed and no op of it is left.
 *
 * Order of the files, each of which uses those before it: gate, slots, task, sweep, queue, plan, devices, op,
 * cache, scope, call, async, handles, session. */
#ifndef TN_CORE_EAGER_H
#define TN_CORE_EAGER_H

#include <core/base/threads/gate.h>
#include <core/base/threads/lock.h>
#include <core/eager/lanes.h>
#include <core/exec/step/sleepers.h>
#include <core/host/host.h>
#include <core/plan/plan.h>
#include <core/registry/registry.h>
#include <core/resource/container.h>
#include <core/tensor/tensor_internal.h>
#include <string.h>
#include <tenon/eager.h>

/* A session that a thread is inside of; on the thread's stack. */
typedef struct tn__eager_frame {
  const tn_eager_session *session;
  struct tn__eager_frame *around;
} tn__eager_frame;
extern _Thread_local tn__eager_frame *tn__eager_inside TN__THREAD_WORD; /* the sessions that this thread is inside of */

struct tn__eager_queue;  /* queue.h */
struct tn__eager_device; /* devices.h */
struct tn__eager_table; /* cache.h */
/* The session's thread, which deletes tensors and, in asynchronous sessions, runs calls. */
typedef struct tn__eager_worker {
  bool has_thread; /* with IN_BACKGROUND */
  pthread_t thread;
  tn__mutex wake_mu;
  tn__cond wake; /* with wake_mu */
  bool stop;     /* guarded by wake_mu */
} tn__eager_worker;

/* What runs the calls: the runtime with its devices. */
typedef struct tn__eager_backend {
  tn__step_fn execute; /* the runtime's; NULL: the kit's */
  tn__session_base on; /* the runtime, the options */
  struct tn__eager_device *devices;
  size_t device_room;
  tn_status (*prepare_on)(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                          tn_executable **out, tn_error *err); /* the runtime's, as `copy`; both or none */
  tn_status (*copy)(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                    tn_tensor **out, tn_error *err);
} tn__eager_backend;

struct tn_eager_session {
  tn__gate calls;
  _Alignas(64) _Atomic int64_t closed; /* time of close or reset, on the monotonic clock; 0 = open */
  _Atomic uint32_t ending;  /* a thread is closing it */
  _Atomic uint32_t asleep;  /* the session's thread sleeps until it is woken */
  int32_t strategy, policy; /* when tensors are deleted; whether inputs are copied to other devices */
  bool soft;                /* option allow_soft_placement */
  uint32_t n_devices, n_cpus; /* of `devices`, which does not change while the session is open; CPUs come first */
  uint32_t tag;             /* part of each handle: handles of most other sessions are recognised */
  struct tn__eager_queue *queue; /* NULL = not asynchronous */
  _Atomic(struct tn__eager_table *) table;            /* of named ops (cache.h); NULL = none yet */
  _Atomic(tn__eager_slot *) blocks[TN__EAGER_BLOCKS]; /* owned; NULL = not allocated yet */

  tn__eager_lane lanes[TN__EAGER_LANES];
  _Alignas(64) _Atomic int64_t bytes, peak; /* as last added by the lanes */
  _Atomic uint32_t n_slots;                 /* created so far, in batches */
  _Atomic uint64_t pauses, pause_ns, longest_pause_ns; /* of safe points that deleted tensors */

  _Atomic uint32_t refs; /* the program's, and its ops' */
  void (*destroy)(tn_eager_session *session); /* set by session.c, called after the last reference */
  tn__mutex mu;          /* ops, named ops, the state of closing */
  tn__mutex step_mu;     /* of steps (core/exec/step/step.h) */
  tn__sleepers sleepers;
  tn_eager_op *ops;      /* those of the program; guarded by mu */
  size_t n_named, named_bytes; /* guarded by mu */
  tn_graph *library;     /* functions; guarded by mu, set once, a reference. NULL = none */
  bool ended;            /* all tensors are deleted; guarded by mu */
  tn__cond end;          /* signalled when `ended` is set */
  _Atomic uint32_t is_default; /* it is, or was, the default session of the process */

  tn__eager_backend runtime;
  tn__eager_worker worker;
};

/* gate.c */
/* An open gate, for a new session. */
void tn__eager_gate_init(tn_eager_session *session);
/* Shuts the gate and waits until all calls have left. */
void tn__eager_drain(tn_eager_session *session);
/* The error of a session that takes no calls: FAILED_PRECONDITION if it is closed or was forked, CANCELLED
 * after a reset. */
tn_status tn__eager_closed(const tn_eager_session *session, tn_error *err);
/* Every call except releases enters and leaves. After a failed enter the caller is not inside. */
tn_status tn__eager_enter(tn_eager_session *session, tn__eager_frame *frame, uint32_t thread, tn_error *err);
void tn__eager_leave(tn_eager_session *session, tn__eager_frame *frame, uint32_t thread);
/* Enters even after a reset; false if the session is being closed. */
bool tn__eager_enter_to_free(tn_eager_session *session, tn__eager_frame *frame, uint32_t thread);
void tn__eager_unref(tn_eager_session *session);
/* This thread runs a call, a deletion or the close of the session. */
bool tn__eager_is_inside(const tn_eager_session *session);
void tn__eager_wait_for_end(tn_eager_session *session); /* until the closing thread is done */

#endif
