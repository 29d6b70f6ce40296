/* SPDX-License-Identifier: Apache-2.0 */
/* State kept between steps: steps of known shapes allocate only the tensors they return and take
 * no lock, however many segments they have; memory used by one segment is reused by the next. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

#include "conformance/support/session_kit.h"

/* ---- locks ---- */

#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
static uint64_t locks_taken(void) { return 0; } /* the sanitizers have their own functions there */
#else
static _Atomic uint64_t n_locks;
static uint64_t locks_taken(void) { return n_locks; }

#define COUNTED(name_, type_)                                                  \
  int name_(type_ *lock)                                                       \
  {                                                                            \
    static int (*real)(type_ *);                                               \
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name_);              \
    n_locks++;                                                                 \
    return real(lock);                                                         \
  }
int pthread_mutex_lock(pthread_mutex_t *lock);
int pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int pthread_rwlock_wrlock(pthread_rwlock_t *lock);
COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
#endif

/* ---- signatures ---- */

typedef struct subject {
  tn_session *session;
  tn_callable callable;
  const char **feeds, **fetches;
  tn_tensor **values, **out;
  size_t n_feeds, n_fetches;
} subject;

static tn_status step(const subject *s)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st =
      tn_session_run_callable(s->session, s->callable, s->values, s->n_feeds, s->out, s->n_fetches, NULL, &err);
  if (st != TN_OK) CHECK_OK(st, &err); /* a check takes a lock itself */
  tn_error_clear(&err);
  return st;
}

static void drop(const subject *s)
{
  for (size_t i = 0; i < s->n_fetches; i++) {
    tn_tensor_unref(s->out[i]);
    s->out[i] = NULL;
  }
}

static bool prepare(subject *s)
{
  return tn_session_make_callable(s->session, NULL, s->feeds, s->n_feeds, s->fetches, s->n_fetches, NULL, 0,
                                  &s->callable, NULL) == TN_OK;
}

/* From the second step on: one allocation per returned tensor, and no lock. */
static void check_steps(const subject *s, const char *name)
{
  bool ok = step(s) == TN_OK;
  drop(s);
  for (int round = 0; ok && round < 3; round++) {
    uint64_t allocations = tn_test_allocations(), locks = locks_taken(), blocks = tn_test_live_blocks();
    ok = step(s) == TN_OK;
    allocations = tn_test_allocations() - allocations;
    locks = locks_taken() - locks;
    CHECK_MSG(allocations == s->n_fetches, "%s: step %d makes %d allocations for %d tensors", name, round + 2,
              (int)allocations, (int)s->n_fetches);
    CHECK_MSG(locks == 0, "%s: step %d takes %d locks", name, round + 2, (int)locks);
    drop(s);
    CHECK_MSG(tn_test_live_blocks() == blocks, "%s: step %d leaks memory", name, round + 2);
  }
}

/* ---- graphs ---- */

static tn_output head(ts *t, const char *name, tn_output x, tn_output n)
{
  return ts_op2(t->graph, "TestHead", name, x, n);
}

static tn_output ints(ts *t, const char *name, int64_t n, const int32_t *values)
{
  tn_tensor *made;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, 1, values, (size_t)n * sizeof *values, &made, &t->err), &t->err);
  tn_output o = ts_const_tensor(t->graph, name, made);
  tn_tensor_unref(made);
  return o;
}

static tn_tensor *number(int32_t value)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &value, sizeof value, &t, NULL), NULL);
  return t;
}

static tn_tensor *counted(int64_t n)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, &n, 1, &t, NULL), NULL);
  for (int64_t i = 0; i < n; i++) ((float *)tn_tensor_data(t))[i] = (float)(i % 23 - 11) / 8;
  return t;
}

/* "in" and "n"; each link takes the first n elements of its input and computes a little, in one
 * or two segments. Results of the link before are read again, some through views made in a
 * different segment than the viewed value. Its nodes are neg<i>, wide<i>, shown<i>, sum<i>. */
static void chain(ts *t, int links)
{
  char name[32];
  tn_output x = ts_open_watched(t, 1), n = ts_placeholder(t->graph, "n", TN_INT32), before = x, shown = { NULL, 0 };
  tn_output column = ints(t, "column", 2, (const int32_t[]){ -1, 1 }), row = ints(t, "row", 1, (const int32_t[]){ -1 });
  for (int i = 0; i < links; i++) {
    snprintf(name, sizeof name, "head%d", i);
    tn_output taken = head(t, name, x, n);
    snprintf(name, sizeof name, "neg%d", i);
    tn_output neg = ts_op1(t->graph, "Neg", name, taken);
    snprintf(name, sizeof name, "wide%d", i);
    tn_output wide = ts_op2(t->graph, "Reshape", name, neg, column);
    snprintf(name, sizeof name, "flat%d", i);
    tn_output flat = ts_op2(t->graph, "Reshape", name, wide, row);
    snprintf(name, sizeof name, "again%d", i);
    before = head(t, name, before, n);
    snprintf(name, sizeof name, "last%d", i);
    if (i > 0) before = ts_op2(t->graph, "AddV2", name, before, shown);
    snprintf(name, sizeof name, "sum%d", i);
    x = ts_op2(t->graph, "AddV2", name, flat, before);
    before = flat;
    snprintf(name, sizeof name, "shown%d", i);
    shown = ts_op2(t->graph, "Reshape", name, taken, row);
  }
  ts_start(t);
}

static void workspace__steps_of_one_segment_allocate_only_results(void)
{
  FOR_LEVELS(level) {
    ts t;
    ts_open(&t, level);
    tn_tensor *values[] = { counted(100), counted(100) }, *out[2] = { NULL };
    subject s = { .session = t.session, .feeds = (const char *[]){ "x", "y" }, .values = values, .n_feeds = 2,
                  .fetches = (const char *[]){ "twice", "neg" }, .out = out, .n_fetches = 2 };
    CHECK(prepare(&s));
    check_steps(&s, "two outputs");
    tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
    ts_fini(&t);
  }
}

static void workspace__steps_of_many_segments_allocate_only_results(void)
{
  for (int links = 1; links <= 200; links = links * 3 + 2) {
    ts t;
    char name[32];
    chain(&t, links);
    snprintf(name, sizeof name, "sum%d", links - 1);
    tn_tensor *values[] = { counted(60), number(50) }, *out[4] = { NULL };
    subject s = { .session = t.session, .feeds = (const char *[]){ "in", "n" }, .values = values, .n_feeds = 2,
                  .fetches = (const char *[]){ name, "head0", "shown0", "again0" }, .out = out, .n_fetches = 4 };
    CHECK(prepare(&s));
    check_steps(&s, name);
    s.n_fetches = 1;
    CHECK(prepare(&s));
    check_steps(&s, name);
    tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
    ts_fini(&t);
  }
}

/* Intermediate values, including views, are the same when fetched with others and when fetched
 * alone. */
static void workspace__values_outlive_their_segments(void)
{
  enum { LINKS = 9, N = 4 * LINKS };
  static const char *const kinds[] = { "neg", "wide", "shown", "sum" };
  ts t;
  char names[N][32];
  const char *fetches[N], *feeds[] = { "in", "n" };
  tn_tensor *all[N];
  chain(&t, LINKS);
  for (int i = 0; i < N; i++) {
    snprintf(names[i], sizeof names[i], "%s%d", kinds[i % 4], i / 4);
    fetches[i] = names[i];
  }
  for (int round = 0; round < 6; round++) {
    for (int i = 0; i < N; i++) all[i] = NULL;
    tn_tensor *values[] = { counted(40), number(37 - 5 * round) };
    CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, fetches, all, N, NULL, 0, NULL, &t.err), &t.err);
    for (int i = 0; i < N; i++) {
      tn_tensor *alone = NULL;
      CHECK(tn_tensor_is_exclusive(all[i]));
      CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, &fetches[i], &alone, 1, NULL, 0, NULL, &t.err),
               &t.err);
      bool same = alone != NULL && tn_tensor_bytes(alone) == tn_tensor_bytes(all[i]) &&
                  memcmp(tn_tensor_data(alone), tn_tensor_data(all[i]), tn_tensor_bytes(alone)) == 0;
      CHECK_MSG(same, "%s differs when it is fetched alone", names[i]);
      tn_tensor_unref(alone);
    }
    for (int i = 0; i < N; i++) tn_tensor_unref(all[i]);
    tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
  }
  ts_fini(&t);
}

/* ---- random graphs ---- */

#define NODES 50

/* Vectors of length n, made by kernels, as views, and with a shape known only after running;
 * names[i] names node i. */
static void random_graph(ts *t, int level, char names[NODES][16])
{
  static const char *const binary[] = { "Sub", "Maximum", "AddV2" };
  char name[32];
  tn_output x = ts_open_watched(t, level), n = ts_placeholder(t->graph, "n", TN_INT32), nodes[NODES];
  tn_output column = ints(t, "column", 2, (const int32_t[]){ -1, 1 }), row = ints(t, "row", 1, (const int32_t[]){ -1 });
  for (int i = 0; i < NODES; i++) {
    snprintf(names[i], sizeof names[i], "v%d", i);
    snprintf(name, sizeof name, "wide%d", i);
    int back = i < 9 ? i : 9, kind = i == 0 ? 0 : rand() % 9;
    tn_output a = i == 0 ? x : nodes[i - 1 - rand() % back], b = i == 0 ? x : nodes[i - 1 - rand() % back];
    if (kind == 0) nodes[i] = head(t, names[i], a, n);
    else if (kind == 1) nodes[i] = ts_op2(t->graph, "Reshape", names[i], a, row);
    else if (kind == 2)
      nodes[i] = ts_op2(t->graph, "Reshape", names[i], ts_op2(t->graph, "Reshape", name, a, column), row);
    else if (kind == 3) nodes[i] = ts_op1(t->graph, "Identity", names[i], a);
    else if (kind < 6) nodes[i] = ts_op1(t->graph, kind == 4 ? "Neg" : "Square", names[i], a);
    else nodes[i] = ts_op2(t->graph, binary[kind - 6], names[i], a, b);
  }
  ts_start(t);
}

static bool same_bytes(const tn_tensor *a, const tn_tensor *b)
{
  return a != NULL && b != NULL && tn_tensor_bytes(a) == tn_tensor_bytes(b) &&
         memcmp(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a)) == 0;
}

/* All nodes at once against one or three of them: fetching other nodes changes the places of
 * values, not the values. */
static void workspace__values_of_random_graphs_are_the_same(void)
{
  static const char *const feeds[] = { "in", "n" };
  srand(17);
  for (int g = 0; g < 30; g++) {
    ts t;
    char names[NODES][16];
    const char *fetches[NODES];
    random_graph(&t, g % 2, names);
    for (int i = 0; i < NODES; i++) fetches[i] = names[i];
    for (int round = 0; round < 2; round++) {
      int32_t n = 1 + rand() % 60;
      tn_tensor *values[] = { counted(60), number(n) }, *all[NODES] = { NULL };
      CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, fetches, all, NODES, NULL, 0, NULL, &t.err), &t.err);
      for (int i = 0; i < NODES; i += 1 + rand() % 4) {
        int at[] = { i, rand() % NODES, rand() % NODES }, n_some = rand() % 2 ? 3 : 1;
        const char *some[] = { names[at[0]], names[at[1]], names[at[2]] };
        tn_tensor *out[3] = { NULL };
        CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, some, out, (size_t)n_some, NULL, 0, NULL, &t.err),
                 &t.err);
        for (int k = 0; k < n_some; k++) {
          CHECK_MSG(same_bytes(out[k], all[at[k]]), "graph %d: %s differs, fetched with %d more", g, some[k],
                    n_some - 1);
          tn_tensor_unref(out[k]);
        }
      }
      for (int i = 0; i < NODES; i++) tn_tensor_unref(all[i]);
      tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
    }
    ts_fini(&t);
  }
}

/* ---- threads ---- */

typedef struct worker {
  pthread_t thread;
  tn_session *session;
  unsigned seed;
  bool ok;
} worker;

/* sum0 is -in plus in cut to the first n, which is 0; neg1 is -sum0, also 0; shown0 is in. */
static void *work(void *arg)
{
  static const char *const feeds[] = { "in", "n" }, *const fetches[] = { "neg1", "shown0", "sum2" };
  worker *w = arg;
  w->ok = true;
  for (int i = 0; i < 60 && w->ok; i++) {
    tn_tensor *out[3] = { NULL };
    w->seed = w->seed * 1103515245 + 12345;
    int32_t n = (int32_t)(w->seed >> 16) % 90 + 1;
    tn_tensor *values[] = { counted(90 + (w->seed >> 24) % 3), number(n) };
    w->ok = tn_session_run(w->session, NULL, feeds, values, 2, fetches, out, 3, NULL, 0, NULL, NULL) == TN_OK;
    for (int k = 0; k < 3; k++) w->ok = w->ok && tn_tensor_elements(out[k]) == n;
    for (int32_t k = 0; w->ok && k < n; k++) {
      float x = ((float *)tn_tensor_data(values[0]))[k];
      w->ok = ((float *)tn_tensor_data(out[0]))[k] == 0 && ((float *)tn_tensor_data(out[1]))[k] == x;
    }
    for (int k = 0; k < 3; k++) tn_tensor_unref(out[k]);
    tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
  }
  return NULL;
}

/* Concurrent steps of changing shapes, each with its own workspace. */
static void workspace__concurrent_steps_do_not_interfere(void)
{
  enum { N = 6 };
  ts t;
  worker workers[N];
  chain(&t, 3);
  for (unsigned i = 0; i < N; i++) {
    workers[i] = (worker){ .session = t.session, .seed = 77 * i + 1 };
    REQUIRE(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < N; i++) {
    pthread_join(workers[i].thread, NULL);
    CHECK(workers[i].ok);
  }
  ts_fini(&t);
}

/* ---- memory ---- */

/* A hundred consecutive segments need about as much as the largest, not a hundred times that. */
static void workspace__segments_share_memory(void)
{
  ts t;
  const int64_t n = 20000;
  chain(&t, 100);
  tn_tensor *values[] = { counted(n), number((int32_t)n) }, *out[1] = { NULL };
  subject s = { .session = t.session, .feeds = (const char *[]){ "in", "n" }, .values = values, .n_feeds = 2,
                .fetches = (const char *[]){ "sum99" }, .out = out, .n_fetches = 1 };
  CHECK(prepare(&s));
  uint64_t before = tn_test_live_bytes();
  CHECK_INT(step(&s), TN_OK);
  drop(&s);
  CHECK(tn_test_live_bytes() - before < 8 * n * sizeof(float) + 1000000);
  tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
  ts_fini(&t);
}

/* The memory of large shapes is returned when they are no longer used. */
static void workspace__memory_of_large_steps_is_freed(void)
{
  ts t;
  const int64_t n = 200000;
  chain(&t, 3);
  tn_tensor *large[] = { counted(n), number((int32_t)n) }, *small[] = { counted(10), number(10) }, *out[1] = { NULL };
  subject s = { .session = t.session, .feeds = (const char *[]){ "in", "n" }, .values = large, .n_feeds = 2,
                .fetches = (const char *[]){ "sum2" }, .out = out, .n_fetches = 1 };
  CHECK(prepare(&s));
  uint64_t before = tn_test_live_bytes();
  CHECK_INT(step(&s), TN_OK);
  drop(&s);
  CHECK(tn_test_live_bytes() - before > n * sizeof(float));
  s.values = small;
  for (int i = 0; i < 300; i++) {
    CHECK_INT(step(&s), TN_OK);
    drop(&s);
  }
  CHECK(tn_test_live_bytes() - before < n * sizeof(float) / 8);
  for (int i = 0; i < 2; i++) tn_tensor_unref(large[i]), tn_tensor_unref(small[i]);
  ts_fini(&t);
}

static tn_status run_chain(void *arg)
{
  const subject *s = arg;
  tn_tensor *out = NULL;
  tn_status st =
      tn_session_run(s->session, NULL, s->feeds, s->values, s->n_feeds, s->fetches, &out, 1, NULL, 0, NULL, NULL);
  tn_tensor_unref(out);
  return st;
}

/* In a session that has run before, so that leftovers of a failed step are noticed. */
static void workspace__survives_lack_of_memory(void)
{
  ts t;
  chain(&t, 4);
  tn_tensor *values[] = { counted(60), number(50) };
  subject s = { .session = t.session, .feeds = (const char *[]){ "in", "n" }, .values = values, .n_feeds = 2,
                .fetches = (const char *[]){ "sum3" }, .n_fetches = 1 };
  CHECK_INT(run_chain(&s), TN_OK);
  tn_tensor_unref(values[0]);
  values[0] = counted(3000); /* a new layout, and more memory */
  tn_tensor_unref(values[1]);
  values[1] = number(2000);
  for (uint64_t nth = 1;; nth++) {
    tn_test_fail_allocation(nth, 0);
    tn_status st = run_chain(&s);
    bool failed = tn_test_allocation_failed();
    tn_test_fail_allocation(0, 0);
    if (!failed) break;
    CHECK(st == TN_OK || st == TN_RESOURCE_EXHAUSTED);
    CHECK_INT(run_chain(&s), TN_OK);
  }
  tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
  ts_fini(&t);
}

/* ---- shapes ---- */

/* Runs `shapes` shapes in turns; returns the allocations of the last round's steps beyond the
 * tensors that they return. */
static uint64_t extra_allocations(subject *s, int64_t shapes, uint64_t *layouts)
{
  uint64_t n = 0;
  for (int round = 0; round < 3; round++) {
    for (int64_t rows = 1; rows <= shapes; rows++) {
      tn_tensor *values[] = { counted(rows), counted(rows) };
      s->values = values;
      uint64_t before = tn_test_allocations();
      step(s);
      if (round == 2) n += tn_test_allocations() - before - s->n_fetches;
      drop(s);
      tn_tensor_unref(values[0]), tn_tensor_unref(values[1]);
    }
  }
  tn_plan_summary summary = { .struct_size = sizeof summary };
  tn_plan_report *report;
  REQUIRE_OK(tn_session_plan_report(s->session, s->feeds, s->n_feeds, s->fetches, s->n_fetches, NULL, 0, &report, NULL),
             NULL);
  REQUIRE_OK(tn_plan_report_summary(report, &summary, NULL), NULL);
  tn_plan_report_release(report);
  *layouts = summary.layouts;
  return n;
}

/* Repeated shapes cost nothing while there are at most max_layouts; beyond that, the least
 * recently used are evicted. */
static void workspace__known_shapes_are_kept(void)
{
  static const struct {
    int64_t max_layouts, shapes;
    bool kept;
  } cases[] = { { 3, 2, true }, { 3, 3, true }, { 3, 4, false }, { 1, 1, true }, { 1, 2, false }, { 8, 8, true } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t;
    tn_tensor *out[1] = { NULL };
    uint64_t layouts;
    ts_init(&t, 1);
    ts_usual_graph(t.graph);
    CHECK_OK(tn_session_options_set_int(t.options, "max_layouts", cases[i].max_layouts, &t.err), &t.err);
    ts_start(&t);
    subject s = { .session = t.session, .feeds = (const char *[]){ "x", "y" }, .n_feeds = 2,
                  .fetches = (const char *[]){ "twice" }, .out = out, .n_fetches = 1 };
    CHECK(prepare(&s));
    uint64_t extra = extra_allocations(&s, cases[i].shapes, &layouts);
    CHECK_MSG((extra == 0) == cases[i].kept, "%d shapes, %d layouts: %d allocations", (int)cases[i].shapes,
              (int)cases[i].max_layouts, (int)extra);
    CHECK(layouts <= (uint64_t)cases[i].max_layouts);
    ts_fini(&t);
  }
}

/* ---- models ---- */

static bool read_tensors(const json_t *list, const char *folder, const char **names, tn_tensor **values, size_t room)
{
  bool ok = json_array_size(list) <= room;
  for (size_t i = 0; ok && i < json_array_size(list); i++) {
    char path[4096];
    const json_t *entry = json_array_get(list, i);
    const char *file = json_string_value(json_object_get(entry, "file"));
    names[i] = json_string_value(json_object_get(entry, "tensor"));
    if (values == NULL) continue;
    ok = file != NULL && json_object_get(entry, "offsets") == NULL;
    if (ok) snprintf(path, sizeof path, "%s/%s", folder, file);
    ok = ok && tn_npy_load(path, TN_DTYPE_INVALID, &values[i], NULL) == TN_OK;
  }
  return ok;
}

/* A loop creates tensors each time round and may keep state: memory does not grow from the first
 * half of the steps to the second. */
static void check_growth(const subject *s, const char *name)
{
  uint64_t most[2] = { 0, 0 }; /* of the first half and of the second */
  for (int round = 0; round < 128; round++) {
    if (step(s) != TN_OK) return;
    drop(s);
    uint64_t blocks = tn_test_live_blocks();
    if (blocks > most[round / 64]) most[round / 64] = blocks;
  }
  CHECK_MSG(most[1] <= most[0], "%s: %d blocks in 64 steps, %d in the next 64", name, (int)most[0], (int)most[1]);
}

/* Returns whether the model could be run. */
static bool check_model(const char *folder, const char *name, const json_t *json)
{
  enum { ROOM = 16 };
  char path[4096];
  const char *feeds[ROOM] = { NULL }, *fetches[ROOM] = { NULL },
             *model = json_string_value(json_object_get(json, "model"));
  const json_t *in = json_object_get(json, "feeds"), *out = json_object_get(json, "fetches");
  tn_tensor *values[ROOM] = { NULL }, *given[ROOM] = { NULL };
  subject s = { .feeds = feeds, .values = values, .n_feeds = json_array_size(in), .fetches = fetches, .out = given,
                .n_fetches = json_array_size(out) };
  ts t;
  ts_init(&t, 1);
  snprintf(path, sizeof path, "%s/%s", folder, model == NULL ? "" : model);
  bool ok = model != NULL && json_object_get(json, "init") == NULL && read_tensors(in, folder, feeds, values, ROOM) &&
            read_tensors(out, folder, fetches, NULL, ROOM) &&
            tn_graph_import_file(t.graph, path, NULL, &t.err) == TN_OK;
  tn_error_clear(&t.err);
  CHECK_OK(tn_session_options_set_string(t.options, "kernel_plugins", "never", &t.err),
           &t.err); /* steps do not check for overdue operations */
  if (ok) ts_start(&t);
  s.session = t.session;
  ok = ok && prepare(&s);
  bool loops = json_object_get(json_object_get(json, "ops"), "Enter") != NULL;
  if (ok && loops) check_growth(&s, name);
  else if (ok) check_steps(&s, name);
  for (size_t i = 0; i < ROOM; i++) tn_tensor_unref(values[i]);
  ts_fini(&t);
  return ok;
}

/* A step that would exceed the session's limit fails and reports the use of memory; the next
 * step succeeds. */
static void workspace__memory_of_a_session_has_a_limit(void)
{
  FOR_LEVELS(level) {
    ts t;
    ts_init(&t, level);
    tn_output n = ts_placeholder(t.graph, "n", TN_INT64);
    tn_output filled = ts_op2(t.graph, "Fill", "filled", n, ts_const(t.graph, "half", 0.5f));
    tn_output head = ts_op2(t.graph, "TestHead", "head", filled, ts_placeholder(t.graph, "k", TN_INT32));
    ts_op1(t.graph, "Neg", "y", ts_op2(t.graph, "Add", "sum", head, head));
    CHECK_OK(tn_session_options_set_int(t.options, "memory_limit_bytes", 1000000, &t.err), &t.err);
    ts_start(&t);
    for (int i = 0; i < 4; i++) {
      const int64_t one = 1, size = i == 1 ? 2000000 : 50000;
      const int32_t k = i == 1 ? 1 : 50000;
      const char *feeds[] = { "n", "k" }, *fetch = "y";
      tn_tensor *values[2], *y = NULL;
      REQUIRE_OK(tn_tensor_from_data(TN_INT64, &one, 1, &size, sizeof size, &values[0], &t.err), &t.err);
      REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &k, sizeof k, &values[1], &t.err), &t.err);
      tn_status st = tn_session_run(t.session, NULL, feeds, values, 2, &fetch, &y, 1, NULL, 0, NULL, &t.err);
      CHECK_STATUS(st, i == 1 ? TN_RESOURCE_EXHAUSTED : TN_OK, &t.err);
      if (i == 1) CHECK_CONTAINS(tn_error_message(&t.err), "memory_limit_bytes");
      tn_error_clear(&t.err);
      tn_tensor_unref(y); /* a returned tensor belongs to the program and is not counted */
      tn_tensor_unref(values[0]);
      tn_tensor_unref(values[1]);
    }
    ts_fini(&t);
  }
}

/* Whether a step of matrices of many sizes, each made of the one before, has enough memory. */
static bool is_enough(const char *target, int64_t limit)
{
  static const int64_t widths[] = { 64, 512, 256, 1536, 384, 96, 576, 144, 192, 48, 16 };
  const int64_t first[] = { 256, widths[0] };
  ts t;
  char name[32];
  ts_init(&t, 1);
  tn_output at = ts_placeholder(t.graph, "x", TN_FLOAT);
  for (size_t i = 1; i < sizeof widths / sizeof *widths; i++) {
    const int64_t dims[] = { widths[i - 1], widths[i] };
    snprintf(name, sizeof name, "w%zu", i);
    tn_tensor *w = ts_filled(2, dims, 0.01f);
    tn_output by = ts_const_tensor(t.graph, name, w);
    snprintf(name, sizeof name, "y%zu", i);
    at = ts_op2(t.graph, "MatMul", name, at, by);
    tn_tensor_unref(w);
  }
  ts_op1(t.graph, "Neg", "out", at);
  REQUIRE_OK(tn_session_options_set_target(t.options, target, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_int(t.options, "memory_limit_bytes", limit, &t.err), &t.err);
  ts_start(&t);
  const char *feed = "x", *fetch = "out";
  tn_tensor *x = ts_filled(2, first, 1), *out = NULL;
  tn_status st = tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, &t.err);
  CHECK_MSG(st == TN_OK || st == TN_RESOURCE_EXHAUSTED, "%s", tn_error_message(&t.err));
  tn_error_clear(&t.err);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  ts_fini(&t);
  return st == TN_OK;
}

/* Placement that suits threads may take more memory, but not in a session with a memory limit. */
static void workspace__threads_respect_the_memory_limit(void)
{
  int64_t low = 0, high = 16 << 20;
  CHECK(is_enough("direct", high));
  while (high - low > 4096) {
    int64_t middle = (low + high) / 2;
    if (is_enough("direct", middle)) high = middle;
    else low = middle;
  }
  CHECK_MSG(is_enough("threaded:threads=2", high + high / 16), "%lld bytes are enough for one thread", (long long)high);
}

static void workspace__steps_of_models_allocate_only_results(void)
{
  const char *root = getenv("TENON_MODELS");
  DIR *all = root == NULL ? NULL : opendir(root);
  int n = 0;
  for (struct dirent *d; all != NULL && (d = readdir(all)) != NULL;) {
    char folder[2048], path[4096];
    snprintf(folder, sizeof folder, "%s/%s", root, d->d_name);
    snprintf(path, sizeof path, "%s/case.json", folder);
    json_t *json = d->d_name[0] == '.' ? NULL : json_load_file(path, 0, NULL);
    const char *format = json_string_value(json_object_get(json, "format"));
    if (format != NULL && strcmp(format, "graphdef") == 0) n += check_model(folder, d->d_name, json);
    json_decref(json);
  }
  if (all != NULL) closedir(all);
  if (n == 0) tap_skip("no models, see TENON_MODELS");
}

/* 2^57 bytes exceed the address space of any machine. */
static void workspace__a_step_too_large_does_not_affect_the_next(void)
{
  ts t;
  ts_init(&t, 0);
  tn_output n = ts_placeholder(t.graph, "n", TN_INT64);
  tn_output filled = ts_op2(t.graph, "Fill", "filled", n, ts_const(t.graph, "half", 0.5f));
  ts_op1(t.graph, "Neg", "y", ts_op1(t.graph, "Neg", "less", filled));
  ts_start(&t);
  const int64_t one = 1, sizes[] = { 3, (int64_t)1 << 55, 3 };
  const char *feed = "n", *fetch = "y";
  for (int i = 0; i < 3; i++) {
    tn_tensor *size, *y;
    REQUIRE_OK(tn_tensor_from_data(TN_INT64, &one, 1, &sizes[i], sizeof sizes[i], &size, &t.err), &t.err);
    tn_status st = tn_session_run(t.session, NULL, &feed, &size, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err);
    CHECK_STATUS(st, i == 1 ? TN_RESOURCE_EXHAUSTED : TN_OK, &t.err);
    if (st == TN_OK) CHECK(ts_float(y) == 0.5f && tn_tensor_elements(y) == 3);
    if (st == TN_OK) tn_tensor_unref(y);
    tn_tensor_unref(size);
  }
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(workspace__a_step_too_large_does_not_affect_the_next),
  TAP_TEST(workspace__steps_of_one_segment_allocate_only_results),
  TAP_TEST(workspace__steps_of_many_segments_allocate_only_results),
  TAP_TEST(workspace__values_outlive_their_segments),
  TAP_TEST(workspace__values_of_random_graphs_are_the_same),
  TAP_TEST(workspace__concurrent_steps_do_not_interfere),
  TAP_TEST(workspace__segments_share_memory),
  TAP_TEST(workspace__memory_of_large_steps_is_freed),
  TAP_TEST(workspace__known_shapes_are_kept),
  TAP_TEST(workspace__survives_lack_of_memory),
  TAP_TEST(workspace__memory_of_a_session_has_a_limit),
  TAP_TEST(workspace__threads_respect_the_memory_limit),
  TAP_TEST(workspace__steps_of_models_allocate_only_results))
