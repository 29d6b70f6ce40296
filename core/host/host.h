/* SPDX-License-Identifier: Apache-2.0 */
/* The host table for plugins (include/tenon/host.h), and the common part of all kinds of sessions: opening on a
 * runtime, the list in which a reset finds them, and the notification of the runtime about steps that must end. */
#ifndef TN_CORE_HOST_H
#define TN_CORE_HOST_H

#include <core/base/threads/lock.h>
#include <core/registry/registry.h>
#include <core/resource/container.h>
#include <core/resource/folders.h>
#include <core/tensor/account.h>
#include <tenon/runtime.h>
#include <string.h>

/* Passes the host table to the registry, and to buffers the functions that keep their plugin loaded. Cheap after the
 * first call; any thread. Every public call that may load a plugin calls it first. */
void tn__host_install(void);

const tn_host *tn__host_table(void);

/* The containers of a factory, which its graph sessions and its eager sessions share. Made by the first call; borrowed,
 * valid while the factory is registered. NULL: out of memory. */
tn__containers *tn__factory_containers(tn__factory *factory);

/* ---- sessions ---- */

typedef struct tn__session_base tn__session_base;

/* How a reset closes a session. */
typedef struct tn__session_kind {
  /* Marks the session closed and keeps it alive; false: it was closed already. Must not block: a lock is held. */
  bool (*shut)(tn__session_base *on);
  /* Called after a successful shut, without the lock: cancels the session's steps, then lets it be freed. */
  void (*tell)(tn__session_base *on);
} tn__session_kind;

/* A session on its runtime; embedded in the session's own struct. Members without a lock are set while the session is
 * opened and do not change afterwards. */
struct tn__session_base {
  tn_session_options *options;     /* a copy, owned */
  tn__factory *factory;            /* a reference */
  const tn_session_factory *slots; /* the factory's, full size: missing slots are NULL */
  const tn_session_factory *self;  /* the factory's own pointer, passed to its slots */
  tn_runtime_session *runtime;     /* owned; destroyed by tn__session_base_end */
  tn__container_view *containers;  /* owned; made when the session becomes live */
  tn__account *account;            /* a reference; NULL = memory is not limited */
  int64_t timeout_ms;              /* default for steps; 0 = none */
  int32_t level;                   /* of compilation passes */
  uint32_t max_layouts;
  size_t max_signatures;
  const char *disabled_passes;            /* borrowed from options */
  bool want_kernels, want_kernels_always; /* option kernel_plugins */
  bool reproducible;                      /* the option; want_kernels is then false */
  tn_dtype weights;                       /* the option, as in tn__signature_spec */
  bool isolated;                          /* has its own set of containers */
  tn_runtime_info info;
  tn__plugin_call stepping; /* the record of every step: it never changes, so steps share it */

  const tn__session_kind *kind;
  tn__session_base *prev, *next; /* in the list of live sessions; guarded by its lock */
  tn__session_base *next_shut;   /* in the list of sessions that one reset closes; used by that thread alone */
  bool listed;             /* in the list of live sessions; guarded by its lock */
  const char *name;        /* borrowed from options; unique with the version among live sessions; "" = none */
  int64_t version;
  tn__folders folders;     /* whose files the graph may read and write */

  tn__mutex steps_mu;
  struct tn__cancel_notice *steps; /* running steps; guarded by steps_mu */
  tn__cond notified;               /* signalled when a call of cancel has returned; with steps_mu */
};

/* Whether the runtime has no devices of other types. Valid once the runtime is chosen. */
static inline bool tn__session_base_cpu_only(const tn__session_base *on)
{
  return on->info.types != NULL && strcmp(on->info.types, "CPU") == 0;
}

/* A record of a call into the session's runtime; `call` is static. */
static inline tn__plugin_call tn__session_base_call(const tn__session_base *on, const char *call)
{
  return (tn__plugin_call){ .plugin = on->info.name, .file = on->info.file, .call = call };
}

/* session_base.c */
/* The calls in order: read, choose, start; end, fini. */

/* Copies the options (NULL: the defaults) and reads those that all kinds of sessions use. `on` must be zeroed. Call
 * tn__session_base_fini afterwards, also if this fails. A memory limit above 0 (in bytes) replaces the options' limit.
 */
tn_status tn__session_base_read(tn__session_base *on, const tn_session_options *options, int64_t limit, tn_error *err);
/* choose selects the factory; start makes the runtime's session. */
tn_status tn__session_base_choose(tn__session_base *on, tn_error *err);
tn_status tn__session_base_start(tn__session_base *on, tn_error *err);
/* Lets the runtime prepare a plan for execution. *out is NULL on failure. */
tn_status tn__session_base_prepare(tn__session_base *on, const tn_plan *plan, tn_executable **out, tn_error *err);
void tn__session_base_release(tn__session_base *on, tn_executable *executable); /* NULL allowed */
/* Calls of optional slots; the runtime must have them. */
tn_status tn__session_base_device(const tn__session_base *on, size_t i, tn_device_info *out, tn_error *err);
tn_kit_workers *tn__session_base_workers(const tn__session_base *on, int32_t pool);
void tn__session_base_end(
    tn__session_base *on); /* destroys the runtime's session and the container view; no step may be running */
void tn__session_base_fini(tn__session_base *on);
/* The deadline, as a tn__now_ns time, of a step that starts now; 0 = none. */
int64_t tn__step_deadline(int64_t timeout_ms);

/* live_sessions.c: the live sessions of the process */
/* Adds the session to the list and makes its container view, atomically with respect to resets. TN_INVALID_ARGUMENT: a
 * live session has the same name and version. */
tn_status tn__live_sessions_add(tn__session_base *on, tn_error *err);
void tn__live_sessions_remove(tn__session_base *on); /* does nothing if the session is not listed */
/* Bracket each call that makes a session or calls into a runtime, so that a child forked meanwhile is recognised.
 * status TN_OK: a session was made. */
void tn__live_sessions_begin(void);
void tn__live_sessions_end(tn_status status);
/* Whether this process was forked from one that had sessions. */
extern _Atomic uint32_t tn__fork_seen;
static inline bool tn__forked(void) { return atomic_load_explicit(&tn__fork_seen, memory_order_relaxed) != 0; }
tn_status tn__session_forked(tn_error *err); /* sets the error that every call then returns */

/* cancel_notify.c: steps of runtimes that have the slot `cancel` */
typedef tn_status (*tn__step_fn)(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                                 tn_step *step, tn_error *err);
/* Calls fn, a slot of the runtime, on this thread. If the step is cancelled or its session closed during the call,
 * another thread calls the runtime's cancel; that call has returned when this function returns. */
tn_status tn__cancel_notify_run(tn__session_base *on, tn__step_fn fn, tn_executable *executable, tn_step *step,
                                tn_error *err);
static inline tn_status tn__session_base_run(tn__session_base *on, tn__step_fn fn, tn_executable *executable,
                                             tn_step *step, tn_error *err)
{
  const tn__plugin_call *around = tn__plugin_call_now;
  tn__plugin_call_now = &on->stepping;
  tn_status st = __builtin_expect(on->slots->cancel == NULL, 1) ? fn(on->self, on->runtime, executable, step, err)
                                                                : tn__cancel_notify_run(on, fn, executable, step, err);
  tn__plugin_call_now = around;
  return st;
}
/* Notifies the runtime of all running steps. The caller has marked the session closed, so a step that starts meanwhile
 * notifies itself. */
void tn__cancel_notify_all(tn__session_base *on);

#endif
