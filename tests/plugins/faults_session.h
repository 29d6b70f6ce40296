/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of faults.c: options, sessions, steps, resets. */
#ifndef TENON_TESTS_PLUGINS_FAULTS_SESSION_H
#define TENON_TESTS_PLUGINS_FAULTS_SESSION_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tenon/runtime.h>

#include "effects.h"

TN_PLUGIN_MANIFEST("runtime", "test.faults", "CPU\0spare=________\0other=________", "0", "1.0.0", "Tests", "")

static const char *fault = "none";
static int is(const char *name) { return strcmp(fault, name) == 0; }
static int begins_with(const char *prefix) { return strncmp(fault, prefix, strlen(prefix)) == 0; }

/* Ends by a signal, even if a sanitizer would report it and exit. */
static void crash(void)
{
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

struct tn_runtime_session {
  void *more;
  const char *target;  /* from the options */
  int first;           /* first letter of target when the session was created */
  tn_runtime_session *next;
};

static atomic_int live;    /* sessions */
static atomic_int is_shut; /* its shutdown was called */
static atomic_int inside;  /* calls of new_session */
static tn_runtime_session *kept;

/* A thread that works until the process ends. */
static void *work_on(void *user)
{
  (void)user;
  for (;;) sleep(10);
  return NULL;
}

static void start_thread(void)
{
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  if (pthread_create(&thread, &attributes, work_on, NULL) == 0) pthread_detach(thread);
  pthread_attr_destroy(&attributes);
}

static void pause_ms(int ms)
{
  const struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
  nanosleep(&t, NULL);
}

/* ---- options ---- */

static void *volatile leaked; /* volatile, so that compilers keep the allocation */

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  static atomic_int calls;
  bool good = tn_session_options_check_settings(options, NULL, 0, NULL) == TN_OK;
  int n = atomic_fetch_add(&calls, 1);
  (void)self;
  effects_of(fault, "accepts");
  if (is("accepts_crash")) crash();
  if (is("accepts_hang")) pause_ms(3600000);
  if (is("accepts_slow")) pause_ms(3);
  if (is("accepts_leaks")) leaked = malloc(40);
  if (is("accepts_leaks_host")) leaked = tn_alloc(40);
  if (is("accepts_opens")) leaked = (void *)(intptr_t)open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (is("accepts_threads") && n % 1000 == 0) start_thread();
  if (is("accepts_state")) return n % 1000 != 999 && good;
  if (is("accepts_all")) return 1;
  if (is("accepts_none")) return n % 10000 < 2 && good; /* after it was chosen */
  return good;
}

static void explain_options(const tn_session_factory *self, const tn_session_options *options, tn_error *err)
{
  (void)self;
  effects_of(fault, "explain");
  if (!is("explain_silent")) tn_session_options_check_settings(options, NULL, 0, err);
}

static int32_t rank_for_options(const tn_session_factory *self, const tn_session_options *options, int32_t rank)
{
  (void)self, (void)options;
  effects_of(fault, "rank");
  if (is("rank_raises")) return rank + 1;
  return is("rank_below") ? -1 : rank;
}

static tn_status health(const tn_session_factory *self, tn_error *err)
{
  (void)self, (void)err;
  effects_of(fault, "health");
  return is("health_silent") ? TN_UNAVAILABLE : TN_OK;
}

/* ---- sessions ---- */

static tn_status refuse(const tn_session_options *options, tn_error *err)
{
  tn_error words = TN_ERROR_INIT;
  tn_status st = tn_session_options_check_settings(options, NULL, 0, &words);
  if (st != TN_OK && is("refusal_nonsense")) st = tn_error_set(err, 4711, "a code of its own");
  else if (st != TN_OK && !is("refusal_silent")) tn_error_set(err, st, "%s", tn_error_message(&words));
  if (st != TN_OK && is("refusal_leaks")) leaked = tn_alloc(100);
  tn_error_clear(&words);
  return st;
}

static void come_to_grief_in_new_session(void)
{
  if (is("new_session_crash")) *(volatile int *)NULL = 1;
  if (is("new_session_abort")) abort();
  if (is("new_session_exit")) exit(0);
  while (is("new_session_hang")) sleep(1);
}

static void begin_to_leak(void)
{
  if (is("session_leaks")) leaked = tn_alloc(100);
  if (is("session_leaks_own")) leaked = malloc(1000);
  if (is("session_leaks_file")) leaked = (void *)(intptr_t)open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (is("session_threads")) start_thread();
}

static tn_status make_session(const tn_session_options *options, tn_runtime_session **out, tn_error *err)
{
  tn_runtime_session *s = tn_alloc(sizeof *s);
  if (s == NULL && is("oom_silent")) return TN_RESOURCE_EXHAUSTED;
  if (s == NULL && !is("oom_crash")) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  memset(s, 0, sizeof *s);
  s->more = tn_alloc(64);
  if (s->more == NULL) {
    if (!is("oom_leaks")) tn_free(s);
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session's more");
  }
  s->target = tn_session_options_target(options);
  s->first = s->target[0];
  atomic_fetch_add(&live, 1);
  *out = s;
  return TN_OK;
}

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  effects_of(fault, "new_session");
  come_to_grief_in_new_session();
  if (is("null_session")) return TN_OK;
  tn_status st = refuse(options, err);
  if (st != TN_OK) return st;
  if (is("not_ready")) return tn_error_set(err, TN_INVALID_ARGUMENT, "it takes no options at all");
  if (is("one_at_a_time")) {
    bool alone = atomic_fetch_add(&inside, 1) == 0;
    if (alone) pause_ms(1);
    atomic_fetch_sub(&inside, 1);
    if (!alone) return tn_error_set(err, TN_FAILED_PRECONDITION, "it makes one session after the other");
  }
  if (is("shutdown_half") && atomic_load(&is_shut)) return tn_error_set(err, TN_INTERNAL, "it was shut down");
  begin_to_leak();
  return make_session(options, out, err);
}

static void drop_kept(void)
{
  while (kept != NULL) {
    tn_runtime_session *s = kept;
    kept = s->next;
    tn_free(s->more);
    tn_free(s);
  }
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *s)
{
  (void)self;
  effects_of(fault, "destroy");
  if (is("destroy_crash")) *(volatile int *)NULL = 1;
  if (is("destroy_exit")) exit(0);
  atomic_fetch_sub(&live, 1);
  if (is("session_outlives")) { /* freed by its factory's shutdown */
    s->next = kept;
    kept = s;
    return;
  }
  if (is("stale_target") && s->target[0] != s->first) abort();
  if (is("frees_twice")) tn_free(s->more);
  if (is("wrong_heap")) free(s->more);
  else tn_free(s->more);
  tn_free(s);
}

/* ---- steps ---- */

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self, (void)session;
  effects_of(fault, "prepare");
  return tn_kit_prepare(plan, TN_KIT_INLINE, out, err);
}

static void release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  (void)self, (void)session;
  effects_of(fault, "release");
  tn_kit_release(executable);
}

static void cancel(const tn_session_factory *self, tn_runtime_session *session, tn_step *s)
{
  (void)self, (void)session, (void)s;
  effects_of(fault, "cancel");
}

static tn_status partial_runs(const tn_session_factory *self, tn_runtime_session *session, tn_error *err)
{
  (void)self, (void)session, (void)err;
  effects_of(fault, "partial");
  return TN_OK;
}

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *user)
{
  (void)user;
  if (atomic_load(&is_shut)) abort(); /* it assumes that the runtime is gone */
}

static void make_key(void) { pthread_key_create(&key, thread_ends); }

static void given_back(void *user, void *data, size_t bytes)
{
  (void)user, (void)bytes;
  free(data);
}

/* Replaces output 0 by a value in memory of the plugin, or by one of another type. */
static tn_status replace_output(tn_step *s, tn_dtype dtype, bool own, tn_error *err)
{
  tn_tensor *t = NULL;
  const tn_tensor *before = tn_step_n_outputs(s) > 0 ? tn_step_output(s, 0) : NULL;
  if (tn_step_n_outputs(s) == 0 || before != NULL) return TN_OK;
  static const double value = 6;
  float *data = own ? malloc(sizeof *data) : NULL;
  tn_status st;
  if (own) {
    if (data == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
    *data = 6;
    st = tn_tensor_wrap(TN_FLOAT, NULL, 0, data, sizeof *data, given_back, NULL, &t, err);
  } else {
    st = tn_tensor_from_data(dtype, NULL, 0, &value, tn_dtype_size(dtype), &t, err);
  }
  if (st == TN_OK) tn_step_set_output(s, 0, t);
  return st;
}

static void scribble(tn_step *s)
{
  for (size_t i = 0; i < tn_step_n_inputs(s); i++) {
    tn_tensor *t = tn_step_input(s, i);
    if (tn_tensor_dtype(t) == TN_FLOAT && tn_tensor_bytes(t) > 0) *(volatile float *)tn_tensor_data(t) += 1;
  }
}

/* Changes the results of a step run by the kit. */
static tn_status spoil(tn_step *s, tn_status st, tn_error *err)
{
  if (st != TN_OK && is("step_silent")) return tn_error_clear(err), TN_INTERNAL;
  if (st != TN_OK && is("step_hides")) return tn_error_clear(err), TN_OK;
  if (st != TN_OK) return st;
  if (is("step_scribbles")) scribble(s);
  if (is("step_loses") && tn_step_n_outputs(s) > 0) tn_step_set_output(s, 0, NULL);
  if (is("step_other_type")) return replace_output(s, TN_DOUBLE, false, err);
  if (is("buffer_unheld")) return replace_output(s, TN_FLOAT, true, err);
  return st;
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *s, tn_error *err)
{
  (void)self;
  effects_of(fault, "step");
  if (is("stale_step") && session->target[0] != session->first) abort();
  if (is("step_crash")) *(volatile int *)NULL = 1;
  if (is("step_exit")) exit(0);
  if (is("step_open_thread") && atomic_fetch_add(&inside, 1) == 0) start_thread();
  if (is("thread_left") && tn_step_id(s) % 4 == 1) start_thread();
  if (is("key_abort")) {
    pthread_once(&once, make_key);
    pthread_setspecific(key, &key);
  }
  if (is("step_one_at_a_time")) {
    bool alone = atomic_fetch_add(&inside, 1) == 0;
    if (alone) pause_ms(1);
    atomic_fetch_sub(&inside, 1);
    if (!alone) return tn_error_set(err, TN_FAILED_PRECONDITION, "one step after the other");
  }
  return spoil(s, tn_kit_step(executable, s, err), err);
}

/* ---- single operations ---- */

static tn_status execute(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                         tn_step *s, tn_error *err)
{
  (void)self, (void)session;
  effects_of(fault, "execute");
  if (is("eager_crash")) *(volatile int *)NULL = 1;
  if (is("eager_empty")) return TN_OK;
  if (is("eager_one_at_a_time")) {
    bool alone = atomic_fetch_add(&inside, 1) == 0;
    if (alone) pause_ms(1);
    atomic_fetch_sub(&inside, 1);
    if (!alone) return tn_error_set(err, TN_FAILED_PRECONDITION, "one operation after the other");
  }
  tn_status st = tn_kit_step(executable, s, err);
  while (is("eager_deaf") && st == TN_CANCELLED) st = tn_kit_step(executable, s, err); /* insists on its result */
  if (st != TN_OK && is("eager_silent")) return tn_error_clear(err), TN_INTERNAL;
  if (st != TN_OK && is("eager_hides")) return tn_error_clear(err), TN_OK;
  if (st == TN_OK && is("eager_scribbles")) scribble(s);
  if (st == TN_OK && is("eager_loses")) tn_step_set_output(s, 0, NULL);
  return st == TN_OK && is("eager_other_type") ? replace_output(s, TN_DOUBLE, false, err) : st;
}

/* A device that is host memory under another name. */
static tn_status prepare_on(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                            tn_executable **out, tn_error *err)
{
  (void)self, (void)session, (void)i;
  return tn_kit_prepare(plan, TN_KIT_INLINE, out, err);
}

static tn_status copy(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                      tn_tensor **out, tn_error *err)
{
  (void)self, (void)session, (void)i;
  if (is("copy_nothing")) return TN_OK;
  if (is("copy_silent") && tn_tensor_dtype(tensor) == TN_STRING) return TN_UNIMPLEMENTED;
  tn_status st = tn_tensor_copy(tensor, out, err);
  if (st == TN_OK && is("copy_wrong") && tn_tensor_bytes(*out) > 0)
    memset(tn_tensor_data(*out), 0, tn_tensor_bytes(*out));
  return st;
}

static tn_status list_devices(const tn_session_factory *self, tn_runtime_session *session, size_t i,
                              tn_device_info *out, tn_error *err)
{
  static const char *const types[] = { "CPU", "GPU" };
  static const char *const names[] = { "/job:localhost/replica:0/task:0/device:CPU:0",
                                       "/job:localhost/replica:0/task:0/device:GPU:0" };
  (void)self, (void)session, (void)err;
  effects_of(fault, "devices");
  if (i >= 2) return TN_OUT_OF_RANGE;
  out->name = names[i];
  out->type = types[i];
  return TN_OK;
}

static const void *get_extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static tn_eager_runtime eager = { .struct_size = TN_EAGER_RUNTIME_SIZE, .execute = execute }, others[4096];
  static atomic_int n;
  (void)self;
  if (is("extension_crash") && strlen(name) == 0) return NULL; /* also for an empty name */
  if (begins_with("copy_")) eager.prepare_on = is("copy_alone") ? NULL : prepare_on, eager.copy = copy;
  if (is("extension_short")) eager.struct_size = 0;
  if (is("extension_huge")) eager.struct_size = (size_t)1 << 40;
  bool known = name != NULL && strncmp(name, TN_EAGER_EXTENSION, is("extension_prefix") ? 7 : 9) == 0;
  if (!known && !is("extension_any_name")) return NULL;
  if (version != 1 && !is("extension_any_version")) return NULL;
  if (!is("extension_new")) return &eager;
  tn_eager_runtime *other = &others[atomic_fetch_add(&n, 1) % 4096];
  *other = eager;
  return other;
}

/* ---- resets ---- */

static const char *stale_name;

static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *names,
                       size_t n, uint32_t flags, tn_error *err)
{
  static const char *const known[] = { "localhost", "conformance.a", "conformance.b" };
  (void)options;
  effects_of(fault, "reset");
  if (is("reset_crash")) *(volatile int *)NULL = 1;
  if (is("reset_hang")) pause_ms(3600000);
  if (is("reset_nothing")) return TN_OK;
  if (is("reset_fails")) return tn_error_set(err, TN_NOT_FOUND, "it knows no container '%s'", n > 0 ? names[0] : "");
  if (is("reset_unknown_fatal"))
    for (size_t i = 0; i < n; i++)
      if (strstr(names[i], "absent") != NULL)
        return tn_error_set(err, TN_NOT_FOUND, "there is no container '%s'", names[i]);
  if (is("reset_clears")) names = known, n = sizeof known / sizeof *known;
  if (is("reset_forgets") && n > 1) n--;
  if (is("reset_default_too") && n > 0) tn_kit_reset(self, NULL, 0, 0, NULL);
  if (is("reset_empty_is_all") && n == 0) flags |= TN_RESET_ALL;
  if (is("reset_knows_no_flags")) flags = 0;
  if (is("stale_names") && stale_name != NULL && stale_name[0] == 0) abort();
  if (is("stale_names") && n > 0) stale_name = names[0];
  tn_status st = tn_kit_reset(self, names, n, flags, err);
  for (int i = 0; is("reset_waits") && i < 1000 && atomic_load(&live) > 0; i++)
    pause_ms(2); /* time for its sessions to close */
  return st;
}

#endif
