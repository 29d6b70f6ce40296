/* SPDX-License-Identifier: Apache-2.0 */
/* The host table for plugins (include/tenon/host.h); and what sessions of every kind have in common: opening on a
 * runtime, the list in which a reset finds them, notifying the runtime of steps that have to end. */
#ifndef TN_CORE_HOST_H
#define TN_CORE_HOST_H

#include <core/base/lock.h>
#include <core/registry/registry.h>
#include <core/resource/container.h>
#include <core/tensor/account.h>
#include <tenon/runtime.h>

/* Gives the registry the host table, and buffers the way to hold their plugin. Cheap after the first call; any thread.
 * Every public call that may load a plugin makes it first. */
void tn__host_install(void);

const tn_host *tn__host_table(void);

/* The containers of a factory, which its graph sessions and its eager sessions share. Made by the first call; they live
 * as long as the factory is registered. NULL if memory ran out. */
tn__containers *tn__factory_containers(tn__factory *factory);

/* ---- sessions ---- */

typedef struct tn__opened tn__opened;

/* How a reset closes a session. */
typedef struct tn__session_kind {
  bool (*shut)(
      tn__opened *on); /* closes the session and keeps it alive; false: it was closed. Must not block: a lock is held */
  void (*tell)(tn__opened *on); /* then, without the lock: cancels its steps, and releases what keeps it alive */
} tn__session_kind;

/* A session on its runtime; part of the session's own struct. */
struct tn__opened {
  tn_session_options *options; /* a copy */
  tn__factory *factory;        /* a reference */
  const tn_session_factory *slots; /* of the factory, full size */
  const tn_session_factory *self;
  tn_runtime_session *runtime;
  tn__container_view *containers; /* made when it becomes a live one */
  tn__account *account;        /* NULL = no limit of memory */
  int64_t timeout_ms;
  int32_t level;
  uint32_t max_layouts;
  size_t max_signatures;
  const char *disabled_passes; /* in options, as the name */
  bool want_kernels, want_kernels_always; /* option kernel_plugins */
  bool isolated;               /* from the containers of other sessions */
  tn_runtime_info info;
  tn__plugin_call stepping;    /* recorded by every step: one record for all, since it does not change */

  const tn__session_kind *kind;
  tn__opened *prev, *next;     /* live sessions, guarded by the list's lock */
  tn__opened *next_shut;       /* sessions that one reset closed */
  bool listed;                 /* guarded by the list's lock */
  const char *name;            /* unique among live sessions, together with the version; "" = none */
  int64_t version;

  tn__mutex steps_mu;
  struct tn__cancel_notice *steps; /* guarded by steps_mu */
  tn__cond notified;           /* a call of cancel has returned; with steps_mu */
};

/* A record of a call into the session's runtime; `call` is static. */
static inline tn__plugin_call tn__opened_call(const tn__opened *on, const char *call)
{
  return (tn__plugin_call){ .plugin = on->info.name, .file = on->info.file, .call = call };
}

/* opened.c */
/* Copies the options (NULL: the defaults) and reads those that all kinds of sessions use. `on` is zeroed;
 * tn__opened_fini afterwards, also when this fails. limit: of memory, in place of the options' where it is above 0. */
tn_status tn__opened_read(tn__opened *on, const tn_session_options *options, int64_t limit, tn_error *err);
/* Chooses the factory; then makes the runtime's session. */
tn_status tn__opened_choose(tn__opened *on, tn_error *err);
tn_status tn__opened_start(tn__opened *on, tn_error *err);
/* Makes a plan what the runtime executes. *out is NULL on failure. */
tn_status tn__opened_prepare(tn__opened *on, const tn_plan *plan, tn_executable **out, tn_error *err);
void tn__opened_release(tn__opened *on, tn_executable *executable); /* NULL allowed */
/* Slots that the runtime has. */
tn_status tn__opened_device(const tn__opened *on, size_t i, tn_device_info *out, tn_error *err);
tn_kit_workers *tn__opened_workers(const tn__opened *on, int32_t pool);
void tn__opened_end(tn__opened *on); /* the runtime's session and the view of containers go; nothing runs in it */
void tn__opened_fini(tn__opened *on);
/* What a step of so many milliseconds has for its end; 0 = none. */
int64_t tn__step_deadline(int64_t timeout_ms);

/* live_sessions.c: the live sessions of the process */
/* Adds the session and makes its view of containers in one step as seen by a reset. Its name and version must not be in
 * use. */
tn_status tn__live_sessions_add(tn__opened *on, tn_error *err);
void tn__live_sessions_remove(tn__opened *on); /* does nothing if the session is not listed */
/* Called around each call that makes a session or calls into a runtime, so that the child of a fork in between knows of
 * it. status TN_OK: a session was made. */
void tn__live_sessions_begin(void);
void tn__live_sessions_end(tn_status status);
/* This process is a child of one that had sessions. */
extern _Atomic uint32_t tn__fork_seen;
static inline bool tn__forked(void) { return atomic_load_explicit(&tn__fork_seen, memory_order_relaxed) != 0; }
tn_status tn__session_forked(tn_error *err); /* the error of every call then */

/* cancel_notify.c: steps of runtimes that have the slot `cancel` */
typedef tn_status (*tn__step_fn)(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                                 tn_step *step, tn_error *err);
/* Calls fn, a slot of the runtime. If the step is cancelled or its session closed during the call, calls the runtime's
 * cancel. */
tn_status tn__cancel_notify_run(tn__opened *on, tn__step_fn fn, tn_executable *executable, tn_step *step,
                                tn_error *err);
static inline tn_status tn__opened_run(tn__opened *on, tn__step_fn fn, tn_executable *executable, tn_step *step,
                                       tn_error *err)
{
  const tn__plugin_call *around = tn__plugin_call_now;
  tn__plugin_call_now = &on->stepping;
  tn_status st = __builtin_expect(on->slots->cancel == NULL, 1) ? fn(on->self, on->runtime, executable, step, err)
                                                                : tn__cancel_notify_run(on, fn, executable, step, err);
  tn__plugin_call_now = around;
  return st;
}
/* Notifies the runtime of all running steps. The session is marked closed. */
void tn__cancel_notify_all(tn__opened *on);

#endif
