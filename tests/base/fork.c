/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that fork: in a child of a process that had sessions every call fails and says why,
 * whatever other threads did at the time of the fork. The child never waits for a thread that
 * does not exist there, and can exec (P-72, S-THR-08). */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/plugin_files.h"
#include "conformance/support/session_kit.h"

/* ---- a kernel whose loop waits at the gate, on all threads that work for the step ---- */

enum { ITEMS = 4 };

static void wait_part(void *user, int64_t begin, int64_t end)
{
  tn_kernel_ctx *ctx = user;
  atomic_fetch_add(&ts_watched.at_gate, 1);
  while (!atomic_load(&ts_watched.gate) && !tn_kernel_cancelled(ctx)) ts_sleep_ms(1);
  for (int64_t i = begin; i < end; i++) ((float *)ctx->outputs[0]->data)[i] = ((const float *)ctx->inputs[0]->data)[i];
}

static tn_status compute_wait(tn_kernel_ctx *ctx)
{
  tn_parallel_for(ctx, ctx->inputs[0]->count, 1, 1e9, wait_part, ctx);
  return TN_OK;
}

static tn_status prepare_same(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output_like(ctx, 0, 0, err); }

static const tn_op_def ops[] = { { .struct_size = TN_OP_DEF_SIZE, .name = "TestWait", .inputs = "x: float",
                                   .outputs = "y: float", .attrs = "", .traits = TN_TRAIT_STATEFUL } };
static const tn_kernel_def kernels[] = { { .struct_size = TN_KERNEL_DEF_SIZE, .op = "TestWait", .device = "CPU",
                                           .name = "test_wait", .rank = TN_RANK_C, .prepare = prepare_same,
                                           .compute = compute_wait } };
static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "test fork", .ops = ops, .n_ops = 1,
                                     .kernels = kernels, .n_kernels = 1 };

/* ---- children ---- */

/* AddressSanitizer's malloc does not hold its locks across a fork: a child created while another
 * thread was inside malloc can block forever, even in a program that does nothing but malloc. A
 * child that hangs like this is no failure of the library. */
#if defined(__SANITIZE_ADDRESS__)
enum { MALLOC_SURVIVES_FORK = 0 };
#else
enum { MALLOC_SURVIVES_FORK = 1 };
#endif

enum { STUCK = 256 + SIGALRM };

/* Runs fn in a child with a limit of twenty seconds. fn's return value becomes the exit status. */
static int in_child(int (*fn)(void *arg), void *arg)
{
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL); /* the parent reports which child was killed */
    alarm(20);
    _exit(fn(arg));
  }
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- before the first session ---- */

static int use_a_session(void *arg)
{
  (void)arg;
  ts t;
  ts_open(&t, 1);
  float two = ts_run1(&t, NULL, "two");
  ts_fini(&t);
  return two == 2 ? 0 : 1;
}

static int use_eager_sessions(void *arg)
{
  (void)arg;
  tn_eager_session *sessions[2];
  tn_error err = TN_ERROR_INIT;
  if (tn_eager_session_create(NULL, &sessions[0], &err) != TN_OK || tn_eager_default(&sessions[1], &err) != TN_OK)
    return 1;
  for (int i = 0; i < 2; i++) {
    tn_eager_handle x, y;
    const float one = 1;
    if (tn_eager_from_data(sessions[i], TN_FLOAT, NULL, 0, &one, sizeof one, &x, &err) != TN_OK) return 2;
    if (tn_eager_add(sessions[i], x, x, &y, &err) != TN_OK || tn_eager_release(sessions[i], y, &err) != TN_OK) return 3;
  }
  tn_eager_session_destroy(sessions[0]);
  return 0;
}

/* A program that becomes a daemon before it creates its first session. */
static void fork__before_there_is_a_session(void)
{
  tn_runtime_info info = { .struct_size = sizeof info };
  CHECK_OK(tn_runtime_at(0, &info, NULL), NULL); /* the list of plugins does not count as a session */
  CHECK_INT(in_child(use_a_session, NULL), 0);
  CHECK_INT(in_child(use_eager_sessions, NULL), 0);
}

/* ---- every call ---- */

typedef struct scene {
  ts t;
  tn_callable callable;
  tn_partial_run partial;
  tn_cancellation *cancellation;
  tn_eager_session *eager, *background; /* the default session; a session with a thread of its own, and calls */
  tn_eager_op *op;
  tn_eager_handle handles[2]; /* one of each session */
} scene;

static void open_eager(scene *s)
{
  tn_eager_options options;
  const float one = 1;
  tn_eager_options_init(&options);
  options.session = s->t.options;
  tn_eager_set_default_options(&options, NULL); /* sets the runtime; takes effect only the first time */
  options.async = 1;
  REQUIRE_OK(tn_eager_default(&s->eager, &s->t.err), &s->t.err);
  REQUIRE_OK(tn_eager_session_create(&options, &s->background, &s->t.err), &s->t.err);
  REQUIRE_OK(tn_eager_op_create(s->background, "Neg", NULL, NULL, 0, &s->op, &s->t.err), &s->t.err);
  REQUIRE_OK(tn_eager_scope_push(s->background, &s->t.err), &s->t.err);
  for (int i = 0; i < 2; i++)
    REQUIRE_OK(tn_eager_from_data(i == 0 ? s->eager : s->background, TN_FLOAT, NULL, 0, &one, sizeof one,
                                  &s->handles[i], &s->t.err),
               &s->t.err);
}

static void close_eager(scene *s)
{
  tn_tensor *one;
  CHECK_OK(tn_eager_tensor(s->eager, s->handles[0], &one, &s->t.err), &s->t.err);
  CHECK_DOUBLE(ts_float(one), 1, 0);
  tn_tensor_unref(one);
  CHECK_OK(tn_eager_release(s->eager, s->handles[0], &s->t.err), &s->t.err);
  CHECK_OK(tn_eager_scope_pop(s->background, NULL, 0, &s->t.err), &s->t.err);
  tn_eager_op_destroy(s->op);
  tn_eager_session_destroy(s->background);
}

/* A session with workers, a callable, an open partial run and a place on the stack of defaults;
 * also the eager sessions. */
static void open_scene(scene *s)
{
  static bool registered;
  if (!registered) REQUIRE_OK(tn_register_ops(&family, NULL), NULL);
  registered = true;
  *s = (scene){ 0 };
  ts_init(&s->t, 1);
  REQUIRE_OK(tn_session_options_set_target(s->t.options, "threaded:threads=4", &s->t.err), &s->t.err);
  ts_usual_graph(s->t.graph);
  tn_output in = ts_placeholder(s->t.graph, "in", TN_FLOAT);
  ts_op1(s->t.graph, "TestWait", "wait", in);
  ts_start(&s->t);
  const char *x = "x", *neg = "neg";
  REQUIRE_OK(tn_session_make_callable(s->t.session, NULL, &x, 1, &neg, 1, NULL, 0, &s->callable, &s->t.err), &s->t.err);
  REQUIRE_OK(tn_session_partial_setup(s->t.session, NULL, &x, 1, &neg, 1, NULL, 0, &s->partial, &s->t.err), &s->t.err);
  REQUIRE_OK(tn_session_enter_default(s->t.session, &s->t.err), &s->t.err);
  open_eager(s);
  ts_watch_reset();
}

static void close_scene(scene *s)
{
  close_eager(s);
  CHECK_OK(tn_session_leave_default(s->t.session, &s->t.err), &s->t.err);
  CHECK_OK(tn_session_partial_release(s->t.session, s->partial, &s->t.err), &s->t.err);
  ts_fini(&s->t);
}

static void *run_wait(void *arg)
{
  scene *s = arg;
  const char *in = "in", *wait = "wait";
  const float values[ITEMS] = { 1, 2, 3, 4 };
  tn_tensor *x = ts_vector(ITEMS, values), *y = NULL;
  tn_status st = tn_session_run(s->t.session, NULL, &in, &x, 1, &wait, &y, 1, NULL, 0, NULL, NULL);
  CHECK(st == TN_OK && memcmp(tn_tensor_data(y), values, sizeof values) == 0);
  tn_tensor_unref(y);
  tn_tensor_unref(x);
  return NULL;
}

/* Line of the first call that is not refused, or 0. */
#define REFUSED(call) \
  if ((call) != TN_FAILED_PRECONDITION) return __LINE__ - from

static int call_on_session(scene *s, tn_tensor *x)
{
  const int from = __LINE__;
  tn_session *session = s->t.session;
  const char *in = "x", *out = "neg";
  tn_tensor *y = NULL;
  tn_callable callable;
  tn_partial_run partial;
  tn_device_info device = { .struct_size = sizeof device };
  tn_placement place = { .struct_size = sizeof place };
  REFUSED(tn_session_set_graph(session, s->t.graph, NULL));
  REFUSED(tn_session_extend(session, "x", 1, NULL));
  REFUSED(tn_session_finalize(session, NULL));
  REFUSED(tn_session_run(session, NULL, &in, &x, 1, &out, &y, 1, NULL, 0, NULL, NULL));
  REFUSED(tn_session_make_callable(session, NULL, &in, 1, &out, 1, NULL, 0, &callable, NULL));
  REFUSED(tn_session_run_callable(session, s->callable, &x, 1, &y, 1, NULL, NULL));
  REFUSED(tn_session_release_callable(session, s->callable, NULL));
  REFUSED(tn_session_partial_setup(session, NULL, &in, 1, &out, 1, NULL, 0, &partial, NULL));
  REFUSED(tn_session_partial_run(session, s->partial, &in, &x, 1, &out, &y, 1, NULL));
  REFUSED(tn_session_partial_release(session, s->partial, NULL));
  REFUSED(tn_session_device(session, 0, &device, NULL));
  REFUSED(tn_session_device_of(session, "neg", &place, NULL));
  REFUSED(tn_session_close(session, NULL));
  return y == NULL ? 0 : __LINE__ - from;
}

static int call_without_session(scene *s, tn_tensor *x)
{
  const int from = __LINE__ - 100;
  const char *in = "x", *box = "localhost";
  tn_session *session = s->t.session;
  tn_tensor *y = NULL;
  uint64_t compiled, held;
  tn_error err = TN_ERROR_INIT;
  REFUSED(tn_session_create(s->t.options, &session, &err));
  if (session != NULL || strstr(tn_error_message(&err), "forked") == NULL) return __LINE__ - from;
  tn_error_clear(&err);
  REFUSED(tn_session_open_scoped(s->t.options, NULL, &session, NULL));
  REFUSED(tn_session_open_interactive(s->t.options, NULL, &session, NULL));
  REFUSED(tn_reset(s->t.options, &box, 1, NULL));
  REFUSED(tn_reset_containers(s->t.options, NULL, 0, TN_RESET_ALL, NULL, NULL));
  REFUSED(tn_session_enter_default(s->t.session, NULL));
  REFUSED(tn_session_leave_default(s->t.session, NULL));
  REFUSED(tn_eval_name(NULL, "neg", &in, &x, 1, &y, NULL));
  REFUSED(tn_eval_name(s->t.session, "neg", &in, &x, 1, &y, NULL));
  REFUSED(tn_run_operation_name(s->t.session, "neg", &in, &x, 1, NULL));
  if (tn_session_default() != NULL) return __LINE__ - from;
  tn_session_signature_counts(s->t.session, &compiled, &held);
  tn_session_release(s->t.session);
  tn_session_destroy(s->t.session); /* no effect: the session stays as it is */
  return 0;
}

/* Sessions of the parent, also the default session. Releasing them has no effect. */
static int call_eager(scene *s, tn_eager_session *session, tn_eager_handle h, tn_tensor *x)
{
  const int from = __LINE__ - 150;
  tn_eager_handle out;
  tn_tensor *tensor;
  tn_eager_op *op;
  tn_eager_counters counters = { .struct_size = sizeof counters };
  REFUSED(tn_eager_neg(session, h, &out, NULL));
  REFUSED(tn_eager_op_create(session, "Neg", NULL, NULL, 0, &op, NULL));
  REFUSED(tn_eager_op_call(s->op, &h, 1, &out, 1, NULL, NULL));
  REFUSED(tn_eager_from_tensor(session, x, &out, NULL));
  REFUSED(tn_eager_tensor(session, h, &tensor, NULL));
  REFUSED(tn_eager_detach(session, h, &tensor, NULL));
  REFUSED(tn_eager_copy_to_device(session, h, "", &out, NULL));
  REFUSED(tn_eager_add_functions(session, s->t.graph, NULL));
  REFUSED(tn_eager_safe_point(session, NULL));
  REFUSED(tn_eager_wait(session, NULL));
  REFUSED(tn_eager_scope_push(session, NULL));
  REFUSED(tn_eager_scope_pop(session, NULL, 0, NULL));
  REFUSED(tn_eager_session_close(session, NULL));
  for (int i = 0; i < 2; i++)
    if (tn_eager_release(session, h, NULL) != TN_OK) return __LINE__ - from;
  if (tn_eager_get_counters(session, &counters, NULL) != TN_OK || counters.live == 0) return __LINE__ - from;
  tn_eager_session_destroy(session); /* no effect */
  return 0;
}

static int call_eager_without_session(scene *s)
{
  const int from = __LINE__ - 200;
  tn_eager_session *session = s->eager;
  tn_error err = TN_ERROR_INIT;
  REFUSED(tn_eager_default(&session, &err));
  if (session != NULL || strstr(tn_error_message(&err), "forked") == NULL) return __LINE__ - from;
  tn_error_clear(&err);
  REFUSED(tn_eager_session_create(NULL, &session, NULL));
  REFUSED(tn_eager_set_default_options(NULL, NULL));
  tn_eager_op_destroy(s->op); /* no effect */
  return session == NULL ? 0 : __LINE__ - from;
}

static int call_all(void *arg)
{
  scene *s = arg;
  tn_tensor *x = ts_scalar(1);
  int wrong = call_on_session(s, x);
  if (wrong == 0) wrong = call_without_session(s, x);
  if (wrong == 0) wrong = call_eager(s, s->background, s->handles[1], x);
  if (wrong == 0) wrong = call_eager(s, s->eager, s->handles[0], x);
  if (wrong == 0) wrong = call_eager_without_session(s);
  tn_tensor_unref(x);
  return wrong;
}

static int call_and_exec(void *arg)
{
  int wrong = call_all(arg);
  if (wrong != 0) return wrong;
  execlp("sh", "sh", "-c", "exit 42", (char *)NULL);
  return 1;
}

static int call_and_exit(void *arg)
{
  int wrong = call_all(arg);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (wrong == 0) _exit(43); /* memory held by the parent's threads would be reported as leaks */
#endif
  if (wrong == 0) exit(43); /* runs destructors, too */
  return wrong;
}

/* The workers are inside a kernel when the process forks. */
static void fork__while_the_workers_are_busy(void) /* P-72, S-THR-08 */
{
  scene s;
  pthread_t thread;
  open_scene(&s);
  REQUIRE_INT(pthread_create(&thread, NULL, run_wait, &s), 0);
  CHECK(ts_wait_at_gate(2)); /* the thread of the step and one worker */
  CHECK_INT(in_child(call_all, &s), 0);
  CHECK_INT(in_child(call_and_exec, &s), 42);
  CHECK_INT(in_child(call_and_exit, &s), 43);
  ts_open_gate();
  pthread_join(thread, NULL); /* the parent is not affected */
  CHECK_DOUBLE(ts_run1(&s.t, FEEDS({ "x", 1 }), "neg"), -1, 0);
  close_scene(&s);
}

/* ---- whatever other threads do at that moment ---- */

static atomic_int go_on;

static void *open_and_close(void *arg)
{
  scene *s = arg;
  while (atomic_load(&go_on)) {
    ts t = s->t;
    tn_session *session;
    if (tn_session_create(t.options, &session, NULL) != TN_OK) continue;
    tn_session_set_graph(session, t.graph, NULL);
    t.session = session;
    tn_error_init(&t.err);
    ts_run1(&t, FEEDS({ "x", 1 }), "neg");
    tn_error_clear(&t.err);
    tn_session_destroy(session);
  }
  return NULL;
}

static void *reset_and_list(void *arg)
{
  scene *s = arg;
  const char *box = "no such box";
  tn_session_options *options;
  tn_runtime_info info = { .struct_size = sizeof info };
  REQUIRE_OK(tn_session_options_create(&options, NULL), NULL);
  REQUIRE_OK(tn_session_options_set_target(options, "direct", NULL), NULL); /* only this test's own sessions */
  while (atomic_load(&go_on)) {
    tn_reset(options, &box, 1, NULL);
    tn_runtime_rescan(NULL);
    tn_runtime_at(0, &info, NULL);
    tn_session_signature_counts(s->t.session, NULL, NULL);
  }
  tn_session_options_destroy(options);
  return NULL;
}

/* A child can list the plugins, or the call says why it cannot. */
static int call_all_and_list(void *arg)
{
  tn_runtime_info info = { .struct_size = sizeof info };
  tn_status st = tn_runtime_at(0, &info, NULL);
  if (st != TN_OK && st != TN_FAILED_PRECONDITION) return 250;
  st = tn_runtime_load("direct", &info, NULL);
  if (st != TN_OK && st != TN_FAILED_PRECONDITION) return 251;
  st = tn_runtime_rescan(NULL);
  if (st != TN_OK && st != TN_FAILED_PRECONDITION) return 252;
  return call_all(arg);
}

static void fork__at_any_moment(void) /* P-72 */
{
  enum { THREADS = 3, ROUNDS = 100 };
  scene s;
  pthread_t threads[THREADS + 1];
  open_scene(&s);
  atomic_store(&go_on, 1);
  for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, open_and_close, &s), 0);
  REQUIRE_INT(pthread_create(&threads[THREADS], NULL, reset_and_list, &s), 0);
  for (int i = 0; i < ROUNDS; i++) {
    int code = in_child(call_all_and_list, &s);
    if (code == STUCK && !MALLOC_SURVIVES_FORK) {
      tap_skip("child %d of %d hangs in the sanitizer's malloc", i, ROUNDS);
      break;
    }
    CHECK_MSG(code == 0, "child %d ended with %d", i, code);
    if (code != 0) break;
  }
  atomic_store(&go_on, 0);
  for (int i = 0; i <= THREADS; i++) pthread_join(threads[i], NULL);
  close_scene(&s);
}

/* ---- during a load ---- */

static void *load_slow(void *name)
{
  tn_runtime_info info = { .struct_size = sizeof info };
  return (void *)(intptr_t)tn_runtime_load(name, &info, NULL);
}

static atomic_int in_init;

static void note_init(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  if (strstr(line, "t.f_slow: init") != NULL) atomic_store(&in_init, 1);
}

static int load_in_child(void *arg)
{
  (void)arg;
  tn_error err = TN_ERROR_INIT;
  tn_runtime_info info = { .struct_size = sizeof info };
  if (tn_runtime_load("t.f_other", &info, &err) != TN_FAILED_PRECONDITION) return 1;
  if (strstr(tn_error_message(&err), "another thread was loading a plugin when this process was forked") == NULL)
    return 2;
  if (tn_runtime_load("t.f_slow", &info, &err) != TN_FAILED_PRECONDITION)
    return 3; /* for good */
  if (tn_runtime_rescan(&err) != TN_FAILED_PRECONDITION) return 4;
  if (tn_runtime_unregister("t.f_first", &err) != TN_FAILED_PRECONDITION) return 5;
  if (tn_freeze(&err) != TN_FAILED_PRECONDITION) return 6;
  if (tn_runtime_at(0, &info, &err) != TN_OK) return 7; /* known plugins can be listed */
  return tn_runtime_load("t.f_first", &info, &err) == TN_OK ? 0 : 8; /* it was loaded before the fork */
}

static void fork__during_a_load(void) /* P-72 */
{
  const char *folder = plugin_folder();
  tn_error err = TN_ERROR_INIT;
  pthread_t thread;
  void *status;
  static char slow[] = "t.f_slow";
  tn_runtime_info info = { .struct_size = sizeof info };
  plugin_chameleon(folder, "a.so", "t.f_slow", 0, "init_slow");
  plugin_chameleon(folder, "b.so", "t.f_other", 0, "none");
  plugin_chameleon(folder, "c.so", "t.f_first", 0, "none");
  plugin_search(folder);
  REQUIRE_OK(tn_runtime_load("t.f_first", &info, &err), &err);
  tn_set_log_sink(note_init, NULL);
  tn_set_log_level(TN_LOG_INFO);
  REQUIRE_INT(pthread_create(&thread, NULL, load_slow, slow), 0);
  int64_t until = ts_now_ms() + 10000;
  while (!atomic_load(&in_init) && ts_now_ms() < until) continue;
  CHECK_INT(in_child(load_in_child, NULL), 0);
  pthread_join(thread, &status);
  tn_set_log_sink(NULL, NULL);
  tn_set_log_level(TN_LOG_WARNING);
  CHECK_INT((int)(intptr_t)status, TN_OK);
  CHECK_OK(tn_runtime_load("t.f_other", &info, &err), &err);
}

/* The first test needs a process without sessions. */
TAP_MAIN(
    TAP_TEST(fork__before_there_is_a_session),
    TAP_TEST(fork__while_the_workers_are_busy),
    TAP_TEST(fork__at_any_moment),
    TAP_TEST(fork__during_a_load))
