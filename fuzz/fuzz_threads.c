/* SPDX-License-Identifier: Apache-2.0 */
/* One session and one eager session used by several threads, with a schedule given by the bytes.
 *
 * Three bytes are a call: the thread that makes it, the call with its arguments, and how long the schedule waits
 * before the next one: until the call has returned, until it has begun, or not at all. So the bytes decide the order
 * in which calls begin and which ones overlap. For every schedule: every call returns, a failed status has a message
 * and is not TN_INTERNAL, fetches exist exactly if the call was OK, and destroying everything frees all memory. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define THREADS 3
#define HANDLES 4
#define MOST_CALLS 60
#define TIMES 5
#define QUEUE 64

#define TYPED(attr, type) "attr { key: '" attr "' value { type: " type " } } "
#define NODE(name, op, rest) "node { name: '" name "' op: '" op "' " rest "}\n"
#define IN(name) "input: '" name "' "
#define T TYPED("T", "DT_FLOAT")
#define LIST(attr) "attr { key: '" attr "' value { list { type: DT_FLOAT } } } "

static const char text[] = NODE("x", "Placeholder", TYPED("dtype", "DT_FLOAT"))
    NODE("z", "Placeholder", TYPED("dtype", "DT_FLOAT")) NODE("y", "AddV2", IN("x") IN("x") T) NODE("w", "Mul",
                                                                                                    IN("y") IN("z") T)
        NODE("one", "Const",
             TYPED("dtype", "DT_FLOAT") "attr { key: 'value' value { tensor { dtype: DT_FLOAT float_val: 1 } } } ")
            NODE("v", "VarHandleOp", TYPED("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { } } } ")
                NODE("init", "AssignVariableOp", IN("v") IN("one") TYPED("dtype", "DT_FLOAT"))
                    NODE("inc", "AssignAddVariableOp", IN("v") IN("one") TYPED("dtype", "DT_FLOAT"))
                        NODE("read", "ReadVariableOp", IN("v") TYPED("dtype", "DT_FLOAT"))
                            NODE("q", "FIFOQueueV2", LIST("component_types") "attr { key: 'capacity' value { i: 1 } } ")
                                NODE("put", "QueueEnqueueV2", IN("q") IN("one") LIST("Tcomponents"))
                                    NODE("get", "QueueDequeueV2", IN("q") LIST("component_types"))
                                        NODE("got", "Neg", IN("get") T) NODE("end", "QueueCloseV2", IN("q"));
static const char extension[] =
    NODE("e", "Const",
         TYPED("dtype", "DT_FLOAT") "attr { key: 'value' value { tensor { dtype: DT_FLOAT float_val: 1 } } } ");

static void *more_bytes;
static size_t more_size;
static tn_graph *graph;
static tn_tensor *value;

/* ---- shared by the threads ---- */

typedef struct call {
  uint8_t what, how;
} call;

typedef struct worker {
  pthread_t thread;
  struct world *world;
  call queue[QUEUE];
  size_t given, begun, done;
} worker;

typedef struct world {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  worker workers[THREADS];
  bool ends;
  tn_session *session;
  tn_eager_session *eager;
  tn_callable callables[HANDLES]; /* mu protects these three */
  tn_partial_run runs[HANDLES];
  tn_eager_handle handles[HANDLES];
  tn_cancellation *cancellation;
} world;

static void said(tn_status status, tn_error *err)
{
  check_status(status, err);
#ifdef FUZZ_SHOW
  fprintf(stderr, "  %s %s\n", tn_status_name(status), tn_error_message(err));
#endif
  if (status == TN_INTERNAL || status != tn_error_code(err)) {
    fprintf(stderr, "%s: %s\n", tn_status_name(status), tn_error_message(err));
    abort();
  }
}

static void fetched(tn_status status, tn_tensor **out, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if ((out[i] != NULL) != (status == TN_OK)) abort();
    tn_tensor_unref(out[i]);
  }
}

/* ---- calls ---- */

static const struct {
  const char *feeds[2], *fetches[2], *target;
} signatures[] = { { { "x" }, { "y" }, NULL },      { { "x", "z" }, { "y", "w" }, NULL },
                   { { NULL }, { "read" }, "inc" }, { { NULL }, { NULL }, "init" },
                   { { NULL }, { "got" }, NULL },   { { NULL }, { "read" }, "put" },
                   { { "get" }, { "got" }, "end" }, { { "x" }, { "w" }, NULL } };
#define SIGNATURES (sizeof signatures / sizeof signatures[0])

static size_t count(const char *const *names)
{
  if (names[0] == NULL) return 0;
  return names[1] == NULL ? 1 : 2;
}

static void options_for(const world *w, uint8_t how, tn_run_options *options)
{
  tn_run_options_init(options);
  options->timeout_ms = 30;
  if (how & 64) options->cancellation = w->cancellation;
}

static void run(world *w, uint8_t how, tn_error *err)
{
  tn_run_options options;
  tn_tensor *feeds[2] = { value, value }, *out[2] = { NULL, NULL };
  size_t s = how % SIGNATURES, n = count(signatures[s].fetches);
  options_for(w, how, &options);
  tn_status st =
      tn_session_run(w->session, &options, signatures[s].feeds, feeds, count(signatures[s].feeds),
                     signatures[s].fetches, out, n, &signatures[s].target, signatures[s].target != NULL, NULL, err);
  said(st, err);
  fetched(st, out, n);
}

static void make_callable(world *w, uint8_t how, tn_error *err)
{
  tn_callable made = { 0 };
  size_t s = how % 2;
  tn_run_options options;
  options_for(w, how, &options);
  tn_status st = tn_session_make_callable(w->session, &options, signatures[s].feeds, count(signatures[s].feeds),
                                          signatures[s].fetches, count(signatures[s].fetches), NULL, 0, &made, err);
  said(st, err);
  pthread_mutex_lock(&w->mu);
  if (st == TN_OK) w->callables[how / 2 % 2 * 2 + s] = made; /* even places have one fetch, odd ones two */
  pthread_mutex_unlock(&w->mu);
}

static void run_callable(world *w, uint8_t how, tn_error *err)
{
  pthread_mutex_lock(&w->mu);
  tn_callable callable = w->callables[how % HANDLES];
  pthread_mutex_unlock(&w->mu);
  tn_tensor *feeds[2] = { value, value }, *out[2] = { NULL, NULL };
  size_t n = how % 2 + 1;
  tn_status st = how & 32 ? tn_session_release_callable(w->session, callable, err)
                          : tn_session_run_callable(w->session, callable, feeds, n, out, n, NULL, err);
  said(st, err);
  if (!(how & 32)) fetched(st, out, n);
}

static void begin_partial(world *w, uint8_t how, tn_error *err)
{
  tn_partial_run made = { 0 };
  size_t s = how % 2;
  tn_run_options options;
  options_for(w, how, &options);
  tn_status st = tn_session_partial_setup(w->session, &options, signatures[s].feeds, s + 1, signatures[s].fetches,
                                          s + 1, NULL, 0, &made, err);
  said(st, err);
  pthread_mutex_lock(&w->mu);
  if (st == TN_OK) w->runs[how / 2 % HANDLES] = made;
  pthread_mutex_unlock(&w->mu);
}

static void go_on(world *w, uint8_t how, tn_error *err)
{
  static const char *const names[] = { "x", "z" }, *const wanted[] = { "y", "w" };
  pthread_mutex_lock(&w->mu);
  tn_partial_run handle = w->runs[how % HANDLES];
  pthread_mutex_unlock(&w->mu);
  tn_tensor *out = NULL;
  size_t which = how >> 3 & 1, n_feeds = how >> 4 & 1, n = how >> 5 & 1;
  tn_status st = how >= 192 ? tn_session_partial_release(w->session, handle, err)
                            : tn_session_partial_run(w->session, handle, names + which, &value, n_feeds, wanted + which,
                                                     &out, n, err);
  said(st, err);
  if (how < 192) fetched(st, &out, n);
}

static void eager(world *w, uint8_t how, tn_error *err)
{
  tn_eager_handle made = { 0 };
  pthread_mutex_lock(&w->mu);
  tn_eager_handle handle = w->handles[how % HANDLES];
  pthread_mutex_unlock(&w->mu);
  tn_tensor *out = NULL;
  tn_status st = TN_OK;
  switch (how / HANDLES % 8) {
  case 0: st = tn_eager_from_tensor(w->eager, value, &made, err); break;
  case 1: st = tn_eager_release(w->eager, handle, err); break;
  case 2: st = tn_eager_detach(w->eager, handle, &out, err); break;
  case 3: st = tn_eager_tensor(w->eager, handle, &out, err); break;
  case 4: st = how > 128 ? tn_eager_safe_point(w->eager, err) : tn_eager_wait(w->eager, err); break;
  case 5: st = how > 240 ? tn_eager_session_close(w->eager, err) : tn_eager_neg(w->eager, handle, &made, err); break;
  default: st = tn_eager_add(w->eager, handle, handle, &made, err); break;
  }
  said(st, err);
  if (made.id != 0 && st != TN_OK) abort();
  tn_tensor_unref(out);
  pthread_mutex_lock(&w->mu);
  if (made.id != 0) w->handles[how / 32 % HANDLES] = made;
  pthread_mutex_unlock(&w->mu);
}

static void end_something(world *w, uint8_t how, tn_error *err)
{
  switch (how % 8) {
  case 0: if (how > 128) said(tn_session_close(w->session, err), err); break;
  case 1: said(tn_reset(options_of[1], NULL, 0, err), err); break;
  case 2: tn_cancellation_cancel(w->cancellation); break;
  case 3: said(tn_session_extend(w->session, more_bytes, more_size, err), err); break;
  default: {
    uint64_t compiled, held;
    tn_session_signature_counts(w->session, &compiled, &held);
  }
  }
}

static void make_call(world *w, call c)
{
  tn_error err = TN_ERROR_INIT;
  switch (c.what % 8) {
  case 0:
  case 1: run(w, c.how, &err); break;
  case 2: make_callable(w, c.how, &err); break;
  case 3: run_callable(w, c.how, &err); break;
  case 4: begin_partial(w, c.how, &err); break;
  case 5: go_on(w, c.how, &err); break;
  case 6: eager(w, c.how, &err); break;
  default: end_something(w, c.how, &err); break;
  }
  tn_error_clear(&err);
}

/* ---- the schedule ---- */

static void *work(void *user)
{
  worker *me = user;
  world *w = me->world;
  pthread_mutex_lock(&w->mu);
  for (;;) {
    while (me->begun == me->given && !w->ends) pthread_cond_wait(&w->changed, &w->mu);
    if (me->begun == me->given) break;
    call c = me->queue[me->begun++ % QUEUE];
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mu);
    make_call(w, c);
    pthread_mutex_lock(&w->mu);
    me->done++;
    pthread_cond_broadcast(&w->changed);
  }
  pthread_mutex_unlock(&w->mu);
  return NULL;
}

static void give(world *w, uint8_t who, call c)
{
  worker *to = &w->workers[who % THREADS];
  pthread_mutex_lock(&w->mu);
  to->queue[to->given++ % QUEUE] = c;
  pthread_cond_broadcast(&w->changed);
  size_t wanted = to->given;
  if (who < 100)
    while (to->done < wanted) pthread_cond_wait(&w->changed, &w->mu);
  else if (who < 220)
    while (to->begun < wanted) pthread_cond_wait(&w->changed, &w->mu);
  pthread_mutex_unlock(&w->mu);
  for (int n = who >= 160 && who < 220 ? who % 16 : 0; n > 0; n--) sched_yield();
}

static void open_all(world *w, uint8_t kind)
{
  tn_eager_options options;
  tn_error err = TN_ERROR_INIT;
  pthread_mutex_init(&w->mu, NULL);
  pthread_cond_init(&w->changed, NULL);
  tn_eager_options_init(&options);
  options.session = options_of[1];
  options.async = kind >> 1 & 1;
  options.strategy = (kind >> 2 & 3) % 3;
  if (tn_cancellation_create(NULL, &w->cancellation, NULL) != TN_OK ||
      tn_session_create(options_of[kind & 1], &w->session, &err) != TN_OK ||
      tn_session_set_graph(w->session, graph, &err) != TN_OK ||
      tn_eager_session_create(&options, &w->eager, &err) != TN_OK)
    abort();
  tn_error_clear(&err);
}

static void close_all(world *w)
{
  pthread_mutex_lock(&w->mu);
  w->ends = true;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mu);
  for (int i = 0; i < THREADS; i++) pthread_join(w->workers[i].thread, NULL);
  tn_eager_session_destroy(w->eager);
  tn_session_destroy(w->session);
  tn_cancellation_unref(w->cancellation);
  if (tn_reset(options_of[1], NULL, 0, NULL) != TN_OK) abort();
  pthread_mutex_destroy(&w->mu);
  pthread_cond_destroy(&w->changed);
}

static void everything(const uint8_t *data, size_t size)
{
  world w = { .ends = false };
  bytes b = { data, data + size };
  open_all(&w, next(&b));
  for (int i = 0; i < THREADS; i++) {
    w.workers[i].world = &w;
    if (pthread_create(&w.workers[i].thread, NULL, work, &w.workers[i]) != 0) abort();
  }
  for (int n = 0; n < MOST_CALLS && b.at < b.end; n++) {
    uint8_t who = next(&b);
    call c = { .what = next(&b), .how = next(&b) };
    give(&w, who, c);
  }
  close_all(&w);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  const tn_import_options as_text = { .struct_size = sizeof as_text, .flags = TN_IMPORT_TEXT };
  tn_graph *more;
  (void)argc, (void)argv;
  fuzz_limit_memory((size_t)64 << 20);
  fuzz_make_options();
  if (tn_graph_create(&graph, NULL) != TN_OK ||
      tn_graph_import(graph, text, sizeof text - 1, &as_text, NULL) != TN_OK || tn_graph_create(&more, NULL) != TN_OK ||
      tn_graph_import(more, extension, sizeof extension - 1, &as_text, NULL) != TN_OK ||
      tn_graph_export(more, 0, &more_bytes, &more_size, NULL) != TN_OK ||
      tn_tensor_create(TN_FLOAT, NULL, 0, &value, NULL) != TN_OK)
    abort();
  tn_graph_unref(more);
  *(float *)tn_tensor_data(value) = 2;
  return 0;
}

/* Runs repeatedly: the library creates process-wide objects during the first runs, and a thread may free memory
 * late. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  size_t first = 0, before = SIZE_MAX;
  for (int n = 0; n < TIMES; n++) {
    everything(data, size);
    size_t now = fuzz_memory_in_use;
    if (now <= before && n > 0) return 0;
    before = now;
    if (n == 0) first = now;
  }
  fprintf(stderr, "%zu bytes are left, %zu were\n", before, first);
  abort();
}
