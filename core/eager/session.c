/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing eager sessions. */
#include <core/eager/async.h>
#include <core/eager/cache.h>
#include <core/eager/devices.h>
#include <core/eager/scope.h>
#include <core/eager/slots.h>
#include <core/eager/sweep.h>
#include <core/host/host.h>

static _Atomic uint32_t next_tag;
static _Atomic(tn_eager_session *) the_default; /* of the process */

/* ---- opening ---- */

/* Finds the runtime's extension for single operations. */
static tn_status need_eager(tn_eager_session *s, tn_error *err)
{
  const tn_session_factory *slots = s->runtime.on.slots;
  tn__plugin_call calling = tn__session_base_call(&s->runtime.on, "its get_extension");
  tn__plugin_call_enter(&calling);
  const tn_eager_runtime *eager =
      slots->get_extension == NULL ? NULL : slots->get_extension(s->runtime.on.self, TN_EAGER_EXTENSION, 1);
  tn__plugin_call_leave(&calling);
  if (eager == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED,
                        "runtime '%s' (%s) does not run single operations: it has no extension '%s'",
                        s->runtime.on.info.name, s->runtime.on.info.file, TN_EAGER_EXTENSION);
  s->runtime.execute =
      TN_HAS_FIELD(eager, tn_eager_runtime, execute) && eager->execute != NULL ? eager->execute : slots->step;
  if (TN_HAS_FIELD(eager, tn_eager_runtime, copy) && eager->prepare_on != NULL && eager->copy != NULL) {
    s->runtime.prepare_on = eager->prepare_on;
    s->runtime.copy = eager->copy;
  }
  return TN_OK;
}

/* Reads the options, chooses the runtime, and starts its session. */
static tn_status open_runtime(tn_eager_session *s, const tn_eager_options *o, tn_error *err)
{
  s->strategy = o->strategy;
  s->policy = o->device_policy;
  tn_status st = tn__session_base_read(&s->runtime.on, o->session, o->memory_limit_bytes, err);
  if (st == TN_OK) st = tn__session_base_choose(&s->runtime.on, err);
  if (st == TN_OK) st = need_eager(s, err);
  return st == TN_OK ? tn__session_base_start(&s->runtime.on, err) : st;
}

/* True for the first caller. */
static bool mark_closed(tn_eager_session *s)
{
  int64_t open = 0;
  return atomic_compare_exchange_strong(&s->closed, &open, tn__now_ns());
}

/* Wakes waiting kernels, which see that the session is closed. */
static void tell_steps(tn_eager_session *s)
{
  tn__sleepers_wake(&s->sleepers);
  tn__cancel_notify_all(&s->runtime.on);
}

static tn_eager_session *session_of(tn__session_base *on)
{
  return (tn_eager_session *)((char *)on - offsetof(tn_eager_session, runtime.on));
}

/* A reset. The session is no longer the default session. */
static bool shut(tn__session_base *on)
{
  tn_eager_session *s = session_of(on), *self = s;
  if (!mark_closed(s)) return false;
  atomic_fetch_add(&s->refs, 1);
  atomic_compare_exchange_strong(&the_default, &self, NULL);
  return true;
}

/* Releases the reference that `shut` took. */
static void tell(tn__session_base *on)
{
  tell_steps(session_of(on));
  tn__eager_unref(session_of(on));
}

static const tn__session_kind eager_session = { shut, tell };

/* After the last reference: the program's and those of ops are dropped. */
static void destroy(tn_eager_session *s)
{
  tn__eager_scopes_forget(s);
  tn__eager_blocks_destroy(s);
  tn__eager_devices_close(s);
  tn__session_base_fini(&s->runtime.on);
  tn__sleepers_fini(&s->sleepers);
  tn__cond_fini(&s->worker.wake);
  tn__cond_fini(&s->end);
  tn__mutex_fini(&s->worker.wake_mu);
  tn__mutex_fini(&s->step_mu);
  tn__mutex_fini(&s->mu);
  tn__free_aligned(s, sizeof *s, _Alignof(tn_eager_session));
}

static void init(tn_eager_session *s)
{
  memset(s, 0, sizeof *s);
  atomic_init(&s->refs, 1);
  s->runtime.on.kind = &eager_session;
  s->tag = atomic_fetch_add(&next_tag, 1) % ((1u << TN__EAGER_TAG_BITS) - 1) + 1;
  s->destroy = destroy;
  tn__eager_gate_init(s);
  tn__mutex_init(&s->mu, "eager session", TN_RANK_SESSION);
  tn__mutex_init(&s->step_mu, "eager steps", TN_RANK_SESSION);
  tn__mutex_init(&s->worker.wake_mu, "eager thread", TN_RANK_PARKED);
  tn__cond_init(&s->end);
  tn__cond_init(&s->worker.wake);
  tn__sleepers_init(&s->sleepers);
}

/* The last part of close, also for a session whose opening failed. */
static void end_runtime(tn_eager_session *s)
{
  tn__eager_named_destroy(s);
  for (tn_eager_op *op = s->ops; op != NULL; op = op->next) tn__eager_plans_destroy(s, op);
  tn_graph_unref(s->library);
  s->library = NULL;
  tn__session_base_end(&s->runtime.on);
}

/* The threads are started last, when everything that they use is there. */
static tn_status create(const tn_eager_options *options, tn_eager_session **out, tn_error *err)
{
  tn__host_install();
  tn_eager_session *s = tn__alloc_aligned(sizeof *s, _Alignof(tn_eager_session));
  if (s == NULL) return tn__no_memory(err, "eager session", sizeof *s);
  init(s);
  tn_status st = open_runtime(s, options, err);
  if (st == TN_OK) st = tn__eager_devices_open(s, err);
  if (st == TN_OK && options->async) st = tn__eager_queue_open(s, err);
  if (st == TN_OK) st = tn__live_sessions_add(&s->runtime.on, err);
  if (st == TN_OK && s->strategy == TN_EAGER_IN_BACKGROUND) st = tn__eager_thread_start(s, err);
  if (st == TN_OK) {
    *out = s;
    return TN_OK;
  }
  tn__live_sessions_remove(&s->runtime.on);
  mark_closed(s);
  tn__eager_queue_close(s);
  end_runtime(s);
  tn__eager_unref(s);
  return st;
}

/* Copies the options; the session options in them are borrowed. */
static tn_status check_options(const tn_eager_options *given, tn_eager_options *o, tn_error *err)
{
  tn_eager_options_init(o);
  if (given == NULL) return TN_OK;
  if (given->struct_size < TN_EAGER_OPTIONS_SIZE)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "eager options: struct_size is %zu: tn_eager_options_init was not called", given->struct_size);
  *o = *given;
  if (o->strategy < TN_EAGER_IN_BACKGROUND || o->strategy > TN_EAGER_ON_SESSION_CLOSE) /* S-EAG-03 */
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "eager options: strategy is %d, it must be one of TN_EAGER_IN_BACKGROUND, "
                        "TN_EAGER_ON_SAFE_POINTS and TN_EAGER_ON_SESSION_CLOSE",
                        (int)o->strategy);
  if (o->device_policy < TN_EAGER_SILENT || o->device_policy > TN_EAGER_SILENT_FOR_INT32)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "eager options: there is no device policy %d", (int)o->device_policy);
  if (o->memory_limit_bytes < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "eager options: memory_limit_bytes is %lld, it must not be negative",
                        (long long)o->memory_limit_bytes);
  return TN_OK;
}

tn_status tn_eager_session_create(const tn_eager_options *options, tn_eager_session **out, tn_error *err)
{
  tn_eager_options checked;
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_session_create: out is NULL");
  *out = NULL;
  tn_status st = check_options(options, &checked, err);
  if (st != TN_OK) return st;
  if (tn__forked()) return tn__session_forked(err);
  tn__live_sessions_begin();
  st = create(&checked, out, err);
  tn__live_sessions_end(st);
  return st;
}

/* ---- closing ---- */

/* False for a default session that was reset. */
static bool is_default(const tn_eager_session *s)
{
  return atomic_load(&s->is_default) != 0 && atomic_load(&s->closed) == 0;
}

/* Of several closing threads the first does it, the others wait for it. The order: no new calls,
 * running calls end, threads end, tensors are deleted, and then the runtime's session ends. */
static void close_session(tn_eager_session *s)
{
  /* Set first: a session that is closed and not ending is taken to be reset. */
  bool ends = atomic_exchange(&s->ending, 1) != 0;
  mark_closed(s);
  if (ends) {
    tn__eager_wait_for_end(s);
    return;
  }
  tn__eager_frame frame = { s, tn__eager_inside }; /* deletions may call the session */
  tn__eager_inside = &frame;
  tn__live_sessions_remove(&s->runtime.on);
  tell_steps(s);
  tn__eager_drain(s);
  tn__eager_queue_close(s);
  tn__eager_thread_end(s); /* S-EAG-09 */
  tn__eager_delete_all(s); /* S-EAG-02 */
  end_runtime(s);
  tn__eager_inside = frame.around;
  tn__mutex_lock(&s->mu);
  s->ended = true;
  tn__cond_broadcast(&s->end);
  tn__mutex_unlock(&s->mu);
}

tn_status tn_eager_session_close(tn_eager_session *s, tn_error *err)
{
  tn__error_reset(err);
  if (s == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_session_close: session is NULL");
  if (tn__forked()) return tn__session_forked(err);
  if (is_default(s))
    return tn_error_set(err, TN_FAILED_PRECONDITION, "the default eager session cannot be closed"); /* S-EAG-23 */
  if (tn__eager_is_inside(s))
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "an eager session cannot be closed from inside of one of its calls, or of "
                        "a function that is called when a tensor is deleted");
  close_session(s);
  return TN_OK;
}

/* Has no error to return: a default session, or one that this thread is inside of, stays as it is. */
void tn_eager_session_destroy(tn_eager_session *s)
{
  if (s == NULL || tn__forked() || is_default(s) || tn__eager_is_inside(s)) return;
  close_session(s);
  tn__eager_unref(s);
}

const tn_runtime_info *tn_eager_session_runtime(const tn_eager_session *s)
{
  return s == NULL ? NULL : &s->runtime.on.info;
}

/* ---- the session of the process ---- */

static tn__mutex default_mu = TN__MUTEX_INIT("default eager session", TN_RANK_EAGER_DEFAULT);
static bool options_set;                 /* guarded by default_mu, as is default_options */
static tn_eager_options default_options; /* with a copy of its session's options */

tn_status tn_eager_set_default_options(const tn_eager_options *options, tn_error *err)
{
  tn_eager_options checked;
  tn_session_options *copy = NULL;
  tn__error_reset(err);
  tn_status st = check_options(options, &checked, err);
  if (st == TN_OK && checked.session != NULL) st = tn_session_options_copy(checked.session, &copy, err);
  if (st != TN_OK) return st;
  tn__mutex_lock(&default_mu);
  if (options_set || atomic_load(&the_default) != NULL) { /* S-EAG-24 */
    st =
        tn_error_set(err, TN_FAILED_PRECONDITION, "the default eager session %s",
                     options_set ? "has its options already" : "exists already, so its options cannot be set any more");
    tn_session_options_destroy(copy);
  } else {
    default_options = checked;
    default_options.session = copy;
    options_set = true;
  }
  tn__mutex_unlock(&default_mu);
  return st;
}

/* A reset may come between the two stores, so `closed` is checked after them. */
static void become_default(tn_eager_session *s)
{
  atomic_store(&s->is_default, 1);
  atomic_store(&the_default, s);
  if (atomic_load(&s->closed) != 0)
    atomic_compare_exchange_strong(&the_default, &s, NULL); /* it was reset in between */
}

tn_status tn_eager_default(tn_eager_session **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_default: out is NULL");
  *out = NULL;
  if (tn__forked()) return tn__session_forked(err);
  *out = atomic_load_explicit(&the_default, memory_order_acquire);
  if (*out != NULL) return TN_OK;
  tn_status st = TN_OK;
  tn_eager_options options;
  /* One thread at a time makes it. Code of a plugin that is called meanwhile must not call this
   * function. */
  tn__mutex_lock(&default_mu);
  *out = atomic_load(&the_default);
  if (*out == NULL) {
    if (options_set) options = default_options;
    else tn_eager_options_init(&options);
    st = tn_eager_session_create(&options, out, err);
    if (st == TN_OK) become_default(*out);
  }
  tn__mutex_unlock(&default_mu);
  return st;
}
