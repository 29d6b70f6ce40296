/* SPDX-License-Identifier: Apache-2.0 */
/* Random work on a few sessions from many threads: steps that wait, loop, fail and are cancelled, whole or partial, by
 * names and by callables, in sessions with all kinds of pools, as default sessions, and with graphs that grow, against
 * Close, Reset and Delete. Checked are codes, values, that no element of a queue is taken twice, and that no memory
 * leaks.
 *
 *   stress_sessions [--seconds N] [--seed S] [--threads T] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenon/metadata.h>

#include "conformance/support/blocked_kit.h"

#define GRAPH \
  MANY NODE("minus", "Neg", "input: 'x'", F) /* an op is read when it is first used */ \
  LOOP_LIBRARY START QUEUE(TEXT_ATTR("shared_name", "q") TEXT_ATTR("container", "lines")) NARROW LOOP WHILE COUNTS \
  SCALAR_VARIABLE(TEXT_ATTR("shared_name", "v")) TRUTH("no", "false", "") \
  NODE("claim", "Assert", "input: 'no' input: 'x' input: '^begun'", LIST("T", "type: DT_FLOAT")) \
  NODE("ref", "VariableV2", "", DT SHAPE("") TEXT_ATTR("container", "refs")) \
  NODE("assign", "Assign", "input: 'ref' input: 'x'", F) NODE("bump", "AssignAdd", "input: 'ref' input: 'x'", F) \
  NODE("value", "Identity", "input: 'ref'", F) CALL("once", "Same", "DT_FLOAT") CALL("whether", "Ever", "DT_BOOL")
#define CALL(name, function, type)                                                                             \
  NODE(name, "PartitionedCall", "input: 'x'", LIST("Tin", "type: DT_FLOAT") LIST("Tout", "type: " type)         \
       "attr { key: 'f' value { func { name: '" function "' } } }")

/* "heavy" is worth several threads: sums of 200000 values on two branches, all of them integers
 * that a float can hold. */
#define MANY                                                                                             \
  NODE("many", "Const", "",                                                                              \
       TYPE("dtype", "DT_FLOAT") "attr { key: 'value' value { tensor { dtype: DT_FLOAT "                 \
                                 "tensor_shape { dim { size: 200000 } } float_val: 1 } } }")             \
  TENSOR("all", "DT_INT32", "dim { size: 1 }", "int_val: 0")                                             \
  NODE("left", "Mul", "input: 'many' input: 'x'", F) NODE("right", "Sub", "input: 'many' input: 'x'", F) \
      TOTAL("l_sum", "left") TOTAL("r_sum", "right") NODE("heavy", "AddV2", "input: 'l_sum' input: 'r_sum'", F)
#define TOTAL(name, of) NODE(name, "Sum", "input: '" of "' input: 'all'", F TYPE("Tidx", "DT_INT32"))

enum { SLOTS = 6, CALLABLES = 3, MAX_VALUES = 1 << 22 };

static struct {
  int64_t seconds;
  uint64_t seed;
  int threads;
} asked = { 2, 1, 8 };

static ts shared, isolated; /* graphs and options */
static struct {
  void *bytes;
  size_t size;
} exported; /* the same graph, for sessions with a graph of their own */
static atomic_bool stop;
static atomic_uint_fast32_t next_value, steps, ok_steps, resets, deletes, extensions, called, defaults, records;
static _Atomic unsigned char taken[MAX_VALUES]; /* in this round: 1 = offered to a queue, 2 = taken by a step */

typedef enum session_sort { SHARED, ISOLATED, GROWING } session_sort;

/* Runtimes and pools. All ways that name a pool give it the same number of threads. */
static const struct {
  const char *target, *pools;
  int32_t n_pools;
  bool own;
} ways[] = {
  { "direct", "", 1, false },
  { "threaded", "", 1, false },
  { "threaded:threads=3", "", 1, true },
  { "direct", "2@team,1", 2, false },
  { "threaded", "-1,2@team,3", 3, false },
  { "threaded:threads=2,spin_us=0", "4@crowd,2@team", 2, false },
  { "threaded:threads=3,pin=1", "", 1, false },
};
enum { WAYS = sizeof ways / sizeof *ways };

typedef struct slot {
  pthread_rwlock_t lock; /* for writing: the session is replaced */
  tn_session *session;
  session_sort sort;
  uint32_t way;
  atomic_uint named; /* of a growing session: names given to new nodes */
  _Atomic uint64_t callables[CALLABLES]; /* ids, of the kinds in `prepared`; 0 = none now */
} slot;
static slot slots[SLOTS];

typedef struct worker {
  pthread_t thread;
  uint64_t random;
  pthread_mutex_t mu; /* of the token */
  tn_cancellation *token;
} worker;
static worker workers[64];

static uint32_t any(worker *w, uint32_t below)
{
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return (uint32_t)(w->random >> 33) % below;
}

/* ---- steps ---- */

typedef struct kind {
  const char *fetch, *target;
  bool waits; /* it may wait until another thread ends it */
  float value; /* NAN = any */
  tn_status also; /* status allowed besides OK; OK = none */
} kind;

static const kind kinds[] = {
  { "ten", NULL, false, 10, TN_OK },         { "few", NULL, false, 10, TN_OK },
  { "heavy", NULL, false, 200000, TN_OK },   { "heavy", "add", false, 200000, TN_NOT_FOUND },
  { "read", NULL, false, NAN, TN_FAILED_PRECONDITION },  { NULL, "set", false, NAN, TN_OK },
  { NULL, "add", false, NAN, TN_NOT_FOUND },   { "value", NULL, false, NAN, TN_FAILED_PRECONDITION },
  { NULL, "assign", false, NAN, TN_OK },     { "bump", NULL, false, NAN, TN_FAILED_PRECONDITION },
  { NULL, "put", false, NAN, TN_OK },        { "late", NULL, true, NAN, TN_OK },
  { "get", "put", false, NAN, TN_OK },       { "size", NULL, false, NAN, TN_OK },
  { NULL, "squeeze", true, NAN, TN_OK },     { "drain", NULL, true, NAN, TN_OK },
  { "exit", NULL, true, NAN, TN_CANCELLED }, { "while", NULL, true, NAN, TN_CANCELLED },
  { "late", "claim", false, NAN, TN_INVALID_ARGUMENT },  { "exit", "claim", false, NAN, TN_INVALID_ARGUMENT },
};

static bool is_dequeue(const kind *k)
{
  return k->fetch != NULL && (strcmp(k->fetch, "late") == 0 || strcmp(k->fetch, "get") == 0);
}

/* The metadata of a step must be readable, however the step ended. */
static void check_metadata(const tn_run_metadata *m)
{
  tn_metadata_summary s = { .struct_size = sizeof s };
  CHECK_INT(tn_run_metadata_summary(m, &s, NULL), TN_OK);
  CHECK(!s.cut);
  for (size_t i = 0; i < s.records; i++) {
    tn_node_record r = { .struct_size = sizeof r };
    CHECK_INT(tn_run_metadata_record(m, i, &r, NULL), TN_OK);
    CHECK(*r.node != 0 && *r.device != 0 && r.start_ns >= 0 && r.duration_ns >= 0 &&
          r.start_ns + r.duration_ns <= s.duration_ns);
  }
  atomic_fetch_add(&records, (uint_fast32_t)s.records);
}

static void check_step(const kind *k, const bk_step *s, bool limited)
{
  tn_status st = s->status;
  bool endless = k->fetch != NULL && (strcmp(k->fetch, "exit") == 0 || strcmp(k->fetch, "while") == 0);
  bool fails = k->also == TN_INVALID_ARGUMENT;
  CHECK_MSG(st == TN_CANCELLED || (st == TN_DEADLINE_EXCEEDED && limited) || (st == TN_OK && !endless && !fails) ||
                (st != TN_OK && st == k->also),
            "%s %s: %s %s", k->fetch ? k->fetch : "", k->target ? k->target : "", tn_status_name(st),
            tn_error_message(&s->err));
  if (st == TN_INVALID_ARGUMENT) CHECK_STR(tn_error_node(&s->err), "claim");
  if (st != TN_OK) CHECK_MSG(*tn_error_message(&s->err) != 0, "an error without a message");
  if (st != TN_OK) return;
  atomic_fetch_add(&ok_steps, 1);
  if (!isnan(k->value)) CHECK_DOUBLE(s->value, k->value, 0);
  if (!is_dequeue(k)) return;
  unsigned char was = atomic_exchange(&taken[(uint32_t)s->value % MAX_VALUES], 2);
  CHECK_MSG(was == 1, "value %u came out of a queue: %s", (unsigned)s->value, was == 2 ? "twice" : "it was not put in");
}

/* Returns whether its session was closed. */
static bool step(worker *w, slot *at)
{
  const kind *k = &kinds[any(w, sizeof kinds / sizeof *kinds)];
  bk_step s = { .fetch = k->fetch, .target = k->target, .x = (float)any(w, 10) };
  if (k->target != NULL && strcmp(k->target, "put") == 0) {
    uint32_t v = atomic_fetch_add(&next_value, 1) % MAX_VALUES;
    s.x = (float)v;
    atomic_store(&taken[v], 1);
  }
  if (any(w, 2) || (k->waits && any(w, 8))) s.timeout_ms = 1 + any(w, 10);
  if (any(w, 4) == 0 && tn_cancellation_create(NULL, &s.cancellation, NULL) == TN_OK) {
    pthread_mutex_lock(&w->mu);
    w->token = tn_cancellation_ref(s.cancellation);
    pthread_mutex_unlock(&w->mu);
  }
  s.session = at->session;
  s.partial = any(w, 3) == 0;
  s.pool = (int32_t)any(w, (uint32_t)ways[at->way].n_pools + 1) - 1;
  if (any(w, 6) == 0) CHECK_INT(tn_run_metadata_create(&s.metadata, NULL), TN_OK);
  bk_run(&s);
  atomic_fetch_add(&steps, 1);
  check_step(k, &s, s.timeout_ms > 0);
  if (s.metadata != NULL) check_metadata(s.metadata);
  tn_run_metadata_destroy(s.metadata);
  bool closed = s.status == TN_CANCELLED && strstr(tn_error_message(&s.err), "closed") != NULL;
  bk_done(&s);
  pthread_mutex_lock(&w->mu);
  tn_cancellation_unref(w->token);
  w->token = NULL;
  pthread_mutex_unlock(&w->mu);
  tn_cancellation_unref(s.cancellation);
  return closed;
}

/* ---- callables run by several threads and released by some ---- */

static const kind prepared[CALLABLES] = {
  { "ten", NULL, false, 10, TN_OK },
  { "heavy", "set", false, 200000, TN_OK },
  { "value", NULL, false, NAN, TN_FAILED_PRECONDITION },
};

static void release(tn_session *session, uint64_t id)
{
  if (id != 0) CHECK_INT(tn_session_release_callable(session, (tn_callable){ id }, NULL), TN_OK);
}

static void make_callable(worker *w, slot *at, uint32_t i)
{
  static const char *const feed = "x";
  const kind *k = &prepared[i];
  tn_callable made;
  tn_run_options options;
  tn_run_options_init(&options);
  options.inter_op_pool = (int32_t)any(w, (uint32_t)ways[at->way].n_pools + 1) - 1;
  tn_status st = tn_session_make_callable(at->session, &options, &feed, 1, &k->fetch, 1, &k->target, k->target != NULL,
                                          &made, NULL);
  CHECK_MSG(st == TN_OK || st == TN_CANCELLED, "a callable: %s", tn_status_name(st));
  if (st == TN_OK) release(at->session, atomic_exchange(&at->callables[i], made.id));
}

static void call(worker *w, slot *at)
{
  uint32_t i = any(w, CALLABLES), what = any(w, 8);
  const kind *k = &prepared[i];
  uint64_t id = atomic_load(&at->callables[i]);
  if (id == 0 || what == 0) make_callable(w, at, i);
  if (id == 0 || what == 0) return;
  if (what == 1 && atomic_compare_exchange_strong(&at->callables[i], &id, 0)) release(at->session, id);
  tn_tensor *x = ts_scalar((float)any(w, 10)), *out = NULL;
  bk_step s = { .err = TN_ERROR_INIT, .value = NAN };
  s.status = tn_session_run_callable(at->session, (tn_callable){ id }, &x, 1, &out, 1, NULL, &s.err);
  if (out != NULL) s.value = ts_float(out);
  if (s.status == TN_INVALID_ARGUMENT) CHECK_CONTAINS(tn_error_message(&s.err), "released");
  else check_step(k, &s, false);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  tn_error_clear(&s.err);
  atomic_fetch_add(&called, 1);
}

/* ---- default sessions ---- */

/* Runs "ten" in the current default session, which may be about to be deleted. */
static void eval_default(void)
{
  static const char *const feed = "x";
  tn_tensor *x = ts_scalar(1), *out = NULL;
  tn_status st = tn_eval_name(NULL, "ten", &feed, &x, 1, &out, NULL);
  CHECK_MSG(st == TN_OK || st == TN_CANCELLED || st == TN_FAILED_PRECONDITION, "eval: %s", tn_status_name(st));
  if (st == TN_OK) CHECK_DOUBLE(ts_float(out), 10, 0);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  atomic_fetch_add(&defaults, 1);
}

static void in_scope(void)
{
  TN_SCOPED_SESSION(scoped, isolated.options, isolated.graph, NULL);
  CHECK(scoped != NULL && tn_session_default() == scoped);
  eval_default();
}

static void use_default(worker *w, slot *at)
{
  CHECK_INT(tn_session_enter_default(at->session, NULL), TN_OK);
  CHECK(tn_session_default() == at->session);
  eval_default();
  if (any(w, 4) == 0) in_scope();
  if (any(w, 4) != 0)
    CHECK_INT(tn_session_leave_default(at->session, NULL), TN_OK); /* otherwise its end removes it: S-DEF-19 */
}

/* ---- close, reset, delete ---- */

static tn_session *new_session(session_sort sort, uint32_t way)
{
  ts *t = sort == ISOLATED ? &isolated : &shared;
  tn_session *s = NULL;
  tn_session_options *o = NULL;
  CHECK_INT(tn_session_options_copy(t->options, &o, NULL), TN_OK);
  CHECK_INT(tn_session_options_set_target(o, ways[way].target, NULL), TN_OK);
  CHECK_INT(tn_session_options_parse(o, "session_inter_op_pools", ways[way].pools, NULL), TN_OK);
  CHECK_INT(tn_session_options_set_bool(o, "use_per_session_threads", ways[way].own, NULL), TN_OK);
  CHECK_INT(tn_session_create(o, &s, NULL), TN_OK);
  tn_session_options_destroy(o);
  tn_status st = TN_INTERNAL;
  if (s != NULL && sort == GROWING) st = tn_session_extend(s, exported.bytes, exported.size, NULL);
  else if (s != NULL) st = tn_session_set_graph(s, t->graph, NULL);
  CHECK_MSG(st == TN_OK || st == TN_CANCELLED, "the graph: %s", tn_status_name(st)); /* a reset happened in between */
  return s;
}

/* A new node can be fetched immediately; a node with an unknown input leaves no trace. */
static void extend(worker *w, slot *at)
{
  unsigned n = atomic_fetch_add(&at->named, 1);
  bool good = any(w, 4) > 0;
  char name[24];
  ts_bytes def = { .size = 0 };
  snprintf(name, sizeof name, "new%u", n);
  ts_node(&def, "Neg", name, good ? NAMES("x") : NAMES("absent"), "T", TN_FLOAT);
  tn_status st = tn_session_extend(at->session, def.data, def.size, NULL);
  CHECK_MSG(st == TN_CANCELLED || st == (good ? TN_OK : TN_INVALID_ARGUMENT), "extend: %s", tn_status_name(st));
  bk_step s = { .session = at->session, .fetch = name, .x = (float)n };
  bk_run(&s);
  CHECK_MSG(s.status == TN_CANCELLED || s.status == (st == TN_OK ? TN_OK : TN_NOT_FOUND), "%s: %s", name,
            tn_status_name(s.status));
  if (s.status == TN_OK) CHECK_DOUBLE(s.value, -(float)n, 0);
  bk_done(&s);
  atomic_fetch_add(&extensions, 1);
}

static void close_slot(slot *at)
{
  pthread_rwlock_rdlock(&at->lock);
  CHECK_INT(tn_session_close(at->session, NULL), TN_OK);
  pthread_rwlock_unlock(&at->lock);
}

static void fill(slot *at, session_sort sort, uint32_t way)
{
  at->session = new_session(sort, way);
  at->sort = sort;
  at->way = way;
  atomic_store(&at->named, 0);
  for (int i = 0; i < CALLABLES; i++) atomic_store(&at->callables[i], 0);
}

static void replace(worker *w, slot *at)
{
  session_sort sort = (session_sort)any(w, 3);
  uint32_t way = any(w, WAYS);
  close_slot(at); /* makes threads waiting in it release the lock */
  pthread_rwlock_wrlock(&at->lock);
  tn_session_destroy(at->session);
  fill(at, sort, way);
  pthread_rwlock_unlock(&at->lock);
  atomic_fetch_add(&deletes, 1);
}

static tn_status reset_on(const char *target, const char *const *containers, size_t n)
{
  tn_session_options *o = NULL;
  CHECK_INT(tn_session_options_copy(shared.options, &o, NULL), TN_OK);
  CHECK_INT(tn_session_options_set_target(o, target, NULL), TN_OK);
  tn_status st = tn_reset(o, containers, n, NULL);
  tn_session_options_destroy(o);
  return st;
}

static void reset(worker *w)
{
  static const char *const lists[][3] = { { "lines" }, { "localhost", "refs" }, { "refs", "lines", "localhost" },
                                         { "nothing" } };
  static const size_t n[] = { 1, 2, 3, 1 };
  uint32_t i = any(w, 5);
  CHECK_INT(reset_on(any(w, 2) ? "direct" : "threaded", i < 4 ? lists[i] : NULL, i < 4 ? n[i] : 0), TN_OK);
  atomic_fetch_add(&resets, 1);
}

static void cancel_any(worker *w)
{
  worker *other = &workers[any(w, (uint32_t)asked.threads)];
  pthread_mutex_lock(&other->mu);
  tn_cancellation *token = tn_cancellation_ref(other->token);
  pthread_mutex_unlock(&other->mu);
  if (token != NULL) tn_cancellation_cancel(token);
  tn_cancellation_unref(token);
}

/* The first worker never waits, so that it ends the operations that others wait for. */
static void *work(void *arg)
{
  worker *w = arg;
  while (!atomic_load(&stop)) {
    slot *at = &slots[any(w, SLOTS)];
    uint32_t what = any(w, 100);
    if (w == workers) ts_sleep_ms((int)any(w, 3));
    if (what < 1 || (w == workers && what < 14)) replace(w, at);
    else if (what < 2) close_slot(at), replace(w, at);
    else if (w == workers && what < 26) reset(w);
    else if (what < 8 || w == workers) cancel_any(w);
    else if (what < 12) eval_default(); /* outside of all locks */
    else {
      pthread_rwlock_rdlock(&at->lock);
      bool closed = false;
      if (at->sort == GROWING && any(w, 4) == 0) extend(w, at);
      else if (what < 30) call(w, at);
      else if (what < 36) use_default(w, at);
      else closed = step(w, at);
      pthread_rwlock_unlock(&at->lock);
      if (closed && any(w, 2)) replace(w, at);
    }
  }
  return NULL;
}

static void empty_containers(void)
{
  static const char *const all[] = { "localhost", "lines", "refs" };
  for (uint32_t way = 0; way < 2; way++) { /* one of each runtime */
    CHECK_INT(reset_on(ways[way].target, all, 3), TN_OK);
    tn_session_destroy(
        new_session(SHARED, way)); /* names of deleted containers are forgotten with the last session */
  }
}

static void round_of(double seconds)
{
  atomic_store(&stop, false);
  atomic_store(&next_value, 0);
  for (int i = 0; i < MAX_VALUES && atomic_load(&taken[i]) != 0; i++) atomic_store(&taken[i], 0);
  for (int i = 0; i < SLOTS; i++) {
    pthread_rwlock_init(&slots[i].lock, NULL);
    fill(&slots[i], (session_sort)(i % 3), (uint32_t)(asked.seed + (uint64_t)i) % WAYS);
  }
  for (int i = 0; i < asked.threads; i++) {
    workers[i].random = (asked.seed + 1) * 0x9E3779B97F4A7C15u + (uint64_t)i * 0xD1B54A32D192ED03u;
    pthread_mutex_init(&workers[i].mu, NULL);
  }
  for (int i = 0; i < asked.threads; i++) REQUIRE_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  ts_sleep_ms((int)(seconds * 1000));
  atomic_store(&stop, true);
  for (int i = 0; i < SLOTS; i++) close_slot(&slots[i]);
  pthread_join(workers[0].thread, NULL);
  for (int i = 0; i < SLOTS; i++) close_slot(&slots[i]); /* of sessions made meanwhile */
  for (int i = 1; i < asked.threads; i++) {
    for (int k = 0; k < SLOTS; k++) close_slot(&slots[k]);
    pthread_join(workers[i].thread, NULL);
  }
  for (int i = 0; i < SLOTS; i++) tn_session_destroy(slots[i].session);
  empty_containers();
  for (int i = 0; i < SLOTS; i++) pthread_rwlock_destroy(&slots[i].lock);
  for (int i = 0; i < asked.threads; i++) pthread_mutex_destroy(&workers[i].mu);
}

/* Creates objects that are made once, for the process and for the graphs, including functions,
 * which a graph reads when they are first called. Steps that never end are not run here; their
 * functions are called directly. */
static void warm_up(void)
{
  static const char *const calls[] = { "once", "whether", "few" };
  for (uint32_t i = 0; i < 3 * WAYS; i++) {
    tn_session *session = new_session((session_sort)(i % 3), i / 3);
    for (int k = 0; k < 3; k++) CHECK_INT(bk_fails(session, calls[k]), TN_OK);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      bk_step s = { .session = session, .fetch = kinds[k].fetch, .target = kinds[k].target };
      if (kinds[k].waits) s.timeout_ms = 5;
      bk_run(&s);
      bk_done(&s);
    }
    tn_session_destroy(session);
  }
  empty_containers();
  round_of(0.2);
}

/* S-GRA-10, S-GRA-13, S-GRA-14, S-LIFE-03 to 05, S-LIFE-10, S-LIFE-12, S-RO-07, S-RST-02, S-RST-14, S-RST-15, S-RST-20,
 * S-CAN-04 to 07, S-THR-01 to 06, S-CAL-03, S-DEF-02 to 19, S-CFG-11 to 14, S-PR-23, S-PR-24, S-PR-31 to 34 */
static void stress_sessions__keep_their_promises(void)
{
  bk_open(&shared, false, GRAPH);
  bk_open(&isolated, true, GRAPH);
  /* Objects that plugins make once may be made at any time. */
  CHECK_INT(tn_session_options_set_string(shared.options, "kernel_plugins", "never", NULL), TN_OK);
  CHECK_INT(tn_session_options_set_string(isolated.options, "kernel_plugins", "never", NULL), TN_OK);
  tn_session_destroy(shared.session); /* while it exists the names of resets are kept */
  shared.session = NULL;
  REQUIRE_OK(tn_graph_export(shared.graph, 0, &exported.bytes, &exported.size, &shared.err), &shared.err);
  printf("# seed %llu, %lld s, %d threads\n", (unsigned long long)asked.seed, (long long)asked.seconds, asked.threads);
  alarm((unsigned)(300 + 2 * asked.seconds)); /* replaces the usual limit of a test */
  warm_up();
  uint64_t blocks = tn_test_live_blocks(), bytes = tn_test_live_bytes();
  int rounds = 0;
  for (int64_t end = ts_now_ms() + 1000 * asked.seconds; ts_now_ms() < end; rounds++) round_of(1);
  CHECK_INT(tn_test_live_blocks(), blocks);
  CHECK_INT(tn_test_live_bytes(), bytes);
  printf("# %d rounds, %u steps, %u of them successful, %u calls of callables, %u of default sessions, %u records, %u "
         "extensions, "
         "%u resets, %u sessions deleted\n",
         rounds, (unsigned)steps, (unsigned)ok_steps, (unsigned)called, (unsigned)defaults, (unsigned)records,
         (unsigned)extensions, (unsigned)resets, (unsigned)deletes);
  tn_free(exported.bytes);
  ts_fini(&shared);
  ts_fini(&isolated);
}

static int threads_of(long long n)
{
  if (n < 2) return 2;
  return n > 64 ? 64 : (int)n;
}

int main(int argc, char **argv)
{
  static const tap_test tests[] = { TAP_TEST(stress_sessions__keep_their_promises) };
  int at = 1;
  for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
    long long n = strtoll(argv[at + 1], NULL, 10);
    if (strcmp(argv[at], "--seconds") == 0) asked.seconds = n;
    else if (strcmp(argv[at], "--seed") == 0) asked.seed = (uint64_t)n;
    else if (strcmp(argv[at], "--threads") == 0) asked.threads = threads_of(n);
    else return fprintf(stderr, "stress_sessions: no such option: %s\n", argv[at]), 2;
  }
  argv[at - 1] = argv[0];
  return tap_main(argc - at + 1, argv + at - 1, __FILE__, tests, 1);
}
