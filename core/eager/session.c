/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing eager sessions. */
#include <core/eager/eager.h>
#include <core/host/host.h>

#define DRAINED 1

/* Where closers wait for the last call: of the process, since whoever leaves last must not touch the session any more. */
static tn__mutex drain_mu = TN__MUTEX_INIT("eager drain", TN_RANK_STEP);
static tn__cond drain_cond;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t existed, forked, next_tag;
_Thread_local tn__eager_frame *tn__eager_inside TN__THREAD_WORD;

static void in_child(void)
{
  if (atomic_load(&existed) != 0) atomic_store(&forked, 1);
}

static void install(void)
{
  tn__cond_init(&drain_cond);
  pthread_atfork(NULL, NULL, in_child);
}

bool tn__eager_forked(void) { return atomic_load_explicit(&forked, memory_order_relaxed) != 0; }

tn_status tn__eager_closed(tn_error *err)
{
  if (tn__eager_forked())
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "eager sessions cannot be used in a process forked after one existed; exec a new program");
  return tn_error_set(err, TN_FAILED_PRECONDITION, "the eager session has been closed");
}

/* ---- in and out ---- */

static void left(tn_eager_session *s, uint32_t thread)
{
  if (__builtin_expect(tn__gate_leave_as(&s->calls, thread) == 0, 1)) return;
  tn__mutex_lock(&drain_mu);
  tn__cond_broadcast(&drain_cond);
  tn__mutex_unlock(&drain_mu);
}

tn_status tn__eager_enter(tn_eager_session *s, tn__eager_frame *frame, uint32_t thread, tn_error *err)
{
  if (__builtin_expect(tn__eager_forked(), 0)) return tn__eager_closed(err);
  tn__gate_enter_as(&s->calls, thread);
  if (__builtin_expect(atomic_load(&s->closed) != 0, 0)) {
    left(s, thread);
    return tn__eager_closed(err);
  }
  frame->session = s;
  frame->around = tn__eager_inside;
  tn__eager_inside = frame;
  return TN_OK;
}

void tn__eager_leave(tn_eager_session *s, tn__eager_frame *frame, uint32_t thread)
{
  tn__eager_inside = frame->around;
  left(s, thread);
}

static void drain(tn_eager_session *s)
{
  if (tn__gate_shut(&s->calls, DRAINED)) return;
  tn__mutex_lock(&drain_mu);
  while (!tn__gate_is_empty(&s->calls)) tn__cond_wait(&drain_cond, &drain_mu);
  tn__mutex_unlock(&drain_mu);
}

/* ---- opening ---- */

static tn_status read_kernel_plugins(tn_eager_session *s, tn_error *err)
{
  const char *text = tn__option_string(s->options, TN__OPTION_kernel_plugins);
  s->want_kernels_always = strcmp(text, "always") == 0;
  s->want_kernels = s->want_kernels_always || strcmp(text, "auto") == 0;
  if (s->want_kernels || strcmp(text, "never") == 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "option kernel_plugins is '%.80s', it must be auto, always or never", text);
}

static tn_status read_options(tn_eager_session *s, const tn_eager_options *o, tn_error *err)
{
  const tn_session_options *from = o->session;
  tn_status st = from != NULL ? tn_session_options_copy(from, &s->options, err) : tn_session_options_create(&s->options, err);
  if (st != TN_OK) return st;
  s->strategy = o->strategy;
  s->policy = o->device_policy;
  s->level = (int32_t)tn__option_number(s->options, TN__OPTION_level);
  s->timeout_ms = tn__option_number(s->options, TN__OPTION_operation_timeout_ms);
  s->max_layouts = (uint32_t)tn__option_number(s->options, TN__OPTION_max_layouts);
  s->max_plans = (uint32_t)tn__option_number(s->options, TN__OPTION_max_signatures);
  s->disabled_passes = tn__option_string(s->options, TN__OPTION_disable_passes);
  st = tn__passes_check(s->disabled_passes, err);
  int64_t limit = tn__option_number(s->options, TN__OPTION_memory_limit_bytes);
  if (o->memory_limit_bytes > 0) limit = o->memory_limit_bytes;
  if (st == TN_OK && limit > 0 && (s->account = tn__account_create(limit)) == NULL)
    st = tn__no_memory(err, "eager session", 0);
  return st == TN_OK ? read_kernel_plugins(s, err) : st;
}

static tn_status need_eager(tn_eager_session *s, tn_error *err)
{
  const void *found = s->slots->get_extension == NULL ? NULL : s->slots->get_extension(s->self, TN_EAGER_EXTENSION, 1);
  const tn_eager_runtime *eager = found;
  if (eager == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "runtime '%s' (%s) does not run single operations: it has no extension '%s'",
                        s->info.name, s->info.file, TN_EAGER_EXTENSION);
  s->execute = TN_HAS_FIELD(eager, tn_eager_runtime, execute) && eager->execute != NULL ? eager->execute : s->slots->step;
  return TN_OK;
}

static tn_status open_runtime(tn_eager_session *s, tn_error *err)
{
  tn_status st = tn__registry_acquire(s->options, &s->factory, err);
  if (st == TN_OK) st = tn__factory_complete(s->factory, s->options, err);
  if (st != TN_OK) return st;
  s->slots = tn__factory_vtable(s->factory);
  s->self = tn__factory_self(s->factory);
  tn__factory_info(s->factory, &s->info);
  st = need_eager(s, err);
  if (st != TN_OK) return st;
  st = s->slots->new_session(s->self, s->options, &s->runtime, err);
  if (st != TN_OK) {
    s->runtime = NULL;
    return tn__factory_status(s->factory, "new_session", st, err);
  }
  if (s->runtime == NULL)
    return tn_error_set(err, TN_INTERNAL, "runtime '%s' (%s): new_session returned OK without a session", s->info.name,
                        s->info.file);
  return TN_OK;
}

/* Shared with the graph sessions of the runtime. */
static tn_status open_containers(tn_eager_session *s, tn_error *err)
{
  bool isolated = tn__option_number(s->options, TN__OPTION_isolate_session_state) != 0;
  tn__containers *set = isolated ? tn__containers_create() : tn__containers_ref(tn__factory_containers(s->factory));
  if (set == NULL) return tn__no_memory(err, "containers", 0);
  tn_status st = tn__container_view_create(set, &s->containers, err);
  tn__containers_unref(set);
  return st;
}

static void init(tn_eager_session *s)
{
  memset(s, 0, sizeof *s);
  atomic_init(&s->refs, 1);
  s->tag = atomic_fetch_add(&next_tag, 1) % ((1u << TN__EAGER_TAG_BITS) - 1) + 1;
  tn__gate_open(&s->calls);
  tn__mutex_init(&s->mu, "eager session", TN_RANK_SESSION);
  tn__mutex_init(&s->step_mu, "eager steps", TN_RANK_SESSION);
  tn__mutex_init(&s->wake_mu, "eager thread", TN_RANK_PARKED);
  tn__cond_init(&s->end);
  tn__cond_init(&s->wake);
  tn__sleepers_init(&s->sleepers);
}

/* What close takes down; also of one whose opening failed. */
static void end_runtime(tn_eager_session *s)
{
  tn__eager_named_free(s);
  for (tn_eager_op *op = s->ops; op != NULL; op = op->next) tn__eager_plans_free(s, op);
  tn_graph_unref(s->library);
  s->library = NULL;
  if (s->runtime != NULL) s->slots->destroy_session(s->self, s->runtime);
  s->runtime = NULL;
  tn__container_view_destroy(s->containers);
  s->containers = NULL;
}

void tn__eager_unref(tn_eager_session *s)
{
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  tn__eager_scopes_forget(s);
  tn__eager_blocks_free(s);
  tn__account_unref(s->account);
  tn__factory_release(s->factory);
  tn_session_options_destroy(s->options);
  tn__sleepers_fini(&s->sleepers);
  tn__cond_fini(&s->wake);
  tn__cond_fini(&s->end);
  tn__mutex_fini(&s->wake_mu);
  tn__mutex_fini(&s->step_mu);
  tn__mutex_fini(&s->mu);
  tn__free_aligned(s, sizeof *s, _Alignof(tn_eager_session));
}

static tn_status create(const tn_eager_options *options, tn_eager_session **out, tn_error *err)
{
  tn__host_install();
  tn_eager_session *s = tn__alloc_aligned(sizeof *s, _Alignof(tn_eager_session));
  if (s == NULL) return tn__no_memory(err, "eager session", sizeof *s);
  init(s);
  tn_status st = read_options(s, options, err);
  if (st == TN_OK) st = open_runtime(s, err);
  if (st == TN_OK) st = open_containers(s, err);
  if (st == TN_OK && options->async) st = tn__eager_queue_open(s, err);
  if (st == TN_OK && s->strategy == TN_EAGER_IN_BACKGROUND) st = tn__eager_thread_start(s, err);
  if (st == TN_OK) {
    *out = s;
    return TN_OK;
  }
  atomic_store(&s->closed, tn__now_ns());
  tn__eager_queue_close(s);
  end_runtime(s);
  tn__eager_unref(s);
  return st;
}

static tn_status check_options(const tn_eager_options *given, tn_eager_options *o, tn_error *err)
{
  tn_eager_options_init(o);
  if (given == NULL) return TN_OK;
  if (given->struct_size < TN_EAGER_OPTIONS_SIZE)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "eager options: struct_size is %zu: tn_eager_options_init was not called",
                        given->struct_size);
  *o = *given;
  if (o->strategy < TN_EAGER_IN_BACKGROUND || o->strategy > TN_EAGER_ON_SESSION_CLOSE) /* S-EAG-03 */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "eager options: strategy is %d, it must be one of TN_EAGER_IN_BACKGROUND, "
                        "TN_EAGER_ON_SAFE_POINTS and TN_EAGER_ON_SESSION_CLOSE", (int)o->strategy);
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
  if (tn__eager_forked()) return tn__eager_closed(err);
  pthread_once(&once, install);
  atomic_store(&existed, 1);
  return create(&checked, out, err);
}

/* ---- closing ---- */

bool tn__eager_is_inside(const tn_eager_session *s)
{
  for (const tn__eager_frame *f = tn__eager_inside; f != NULL; f = f->around)
    if (f->session == s) return true;
  return false;
}

void tn__eager_wait_for_end(tn_eager_session *s)
{
  tn__mutex_lock(&s->mu);
  while (!s->ended) tn__cond_wait(&s->end, &s->mu);
  tn__mutex_unlock(&s->mu);
}

static void close_session(tn_eager_session *s)
{
  int64_t open = 0;
  if (!atomic_compare_exchange_strong(&s->closed, &open, tn__now_ns())) {
    tn__eager_wait_for_end(s);
    return;
  }
  tn__eager_frame frame = { s, tn__eager_inside }; /* deletions may call the session */
  tn__eager_inside = &frame;
  tn__sleepers_wake(&s->sleepers); /* what waits in a kernel sees that it is closed */
  drain(s);
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
  if (tn__eager_forked()) return tn__eager_closed(err);
  if (s->is_default)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "the default eager session cannot be closed"); /* S-EAG-23 */
  if (tn__eager_is_inside(s))
    return tn_error_set(err, TN_FAILED_PRECONDITION, "an eager session cannot be closed from inside of one of its calls, or of "
                        "a function that is called when a tensor is deleted");
  close_session(s);
  return TN_OK;
}

void tn_eager_session_destroy(tn_eager_session *s)
{
  if (s == NULL || s->is_default || tn__eager_forked() || tn__eager_is_inside(s)) return;
  close_session(s);
  tn__eager_unref(s);
}

const tn_runtime_info *tn_eager_session_runtime(const tn_eager_session *s) { return s == NULL ? NULL : &s->info; }

/* ---- the session of the process ---- */

static tn__mutex default_mu = TN__MUTEX_INIT("default eager session", TN_RANK_DEFAULT_LIST);
static _Atomic(tn_eager_session *) the_default;
static bool options_set;                 /* guarded by default_mu, as what follows */
static tn_eager_options default_options; /* with a copy of its session's */

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
    st = tn_error_set(err, TN_FAILED_PRECONDITION, "the default eager session %s",
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

tn_status tn_eager_default(tn_eager_session **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_default: out is NULL");
  *out = atomic_load_explicit(&the_default, memory_order_acquire);
  if (*out != NULL) return TN_OK;
  tn_status st = TN_OK;
  tn_eager_options options;
  tn__mutex_lock(&default_mu); /* one maker at a time; a plugin's code must not ask for the default session */
  *out = atomic_load(&the_default);
  if (*out == NULL) {
    if (options_set) options = default_options;
    else tn_eager_options_init(&options);
    st = tn_eager_session_create(&options, out, err);
    if (st == TN_OK) {
      (*out)->is_default = true;
      atomic_store_explicit(&the_default, *out, memory_order_release);
    }
  }
  tn__mutex_unlock(&default_mu);
  return st;
}
