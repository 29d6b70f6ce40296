/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: elements by key, which can be taken when they are complete. */
#include <pthread.h>

#include "conformance/support/op_kit.h"

#define LIST(key, values) "attr { key: '" key "' value { list { " values " } } }"
#define TYPES LIST("component_types", "type: DT_FLOAT type: DT_FLOAT")
#define B "input: 'b'"
#define INSERT(name, component) \
  NODE(name, "BarrierInsertMany", B " input: 'keys' input: 'x'", F INT("component_index", component))
#define YES(key) "attr { key: '" key "' value { b: true } }"
#define BARRIER                                                                                              \
  NODE("b", "Barrier", "", TYPES LIST("shapes", "shape { } shape { }"))                                      \
  ANY("keys", "DT_STRING") ANY("x", "DT_FLOAT") ANY("n", "DT_INT32")                                         \
  INSERT("put0", 0) INSERT("put1", 1) INSERT("put2", 2)                                                      \
  NODE("take", "BarrierTakeMany", B " input: 'n'", TYPES)                                                    \
  NODE("some", "BarrierTakeMany", B " input: 'n'", TYPES YES("allow_small_batch"))                           \
  NODE("ready", "BarrierReadySize", B, "") NODE("rest", "BarrierIncompleteSize", B, "")                      \
  NODE("close", "BarrierClose", B, "") NODE("shut", "BarrierClose", B, YES("cancel_pending_enqueues"))

static void open(ts *t, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  REQUIRE_OK(tn_session_options_set_bool(t->options, "isolate_session_state", 1, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

/* Puts a value for each letter of `keys`: from, from + 1, ... */
static tn_status put(ts *t, const char *target, const char *keys, float from)
{
  const char *names[] = { "keys", "x" }, *texts[8];
  char letters[8][2];
  float values[8];
  int64_t n = (int64_t)strlen(keys);
  tn_tensor *feeds[2];
  for (int i = 0; i < n; i++) {
    letters[i][0] = keys[i];
    letters[i][1] = 0;
    texts[i] = letters[i];
    values[i] = from + (float)i;
  }
  tn_error_clear(&t->err);
  REQUIRE_OK(tn_tensor_from_strings(&n, 1, texts, NULL, &feeds[0], NULL), NULL);
  feeds[1] = ts_vector((size_t)n, values);
  tn_status st = tn_session_run(t->session, NULL, names, feeds, 2, NULL, NULL, 0, &target, 1, NULL, &t->err);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return st;
}

/* Result of taking n elements: "a1,5 b2,6 " for keys a and b with their two values. */
typedef struct taken {
  ts *t;
  const char *how;
  int32_t n;
  int64_t timeout_ms;
  tn_status status;
  char text[100];
  pthread_t thread;
} taken;

static void *take_thread(void *arg)
{
  taken *k = arg;
  char name[3][16];
  const char *in = "n", *fetches[3];
  tn_tensor *feed, *fetched[3] = { NULL, NULL, NULL };
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = k->timeout_ms;
  k->text[0] = 0;
  for (int i = 0; i < 3; i++) {
    snprintf(name[i], sizeof name[i], "%s:%d", k->how, i + 1);
    fetches[i] = name[i];
  }
  if (tn_tensor_from_data(TN_INT32, NULL, 0, &k->n, 4, &feed, NULL) != TN_OK) return NULL;
  k->status = tn_session_run(k->t->session, &options, &in, &feed, 1, fetches, fetched, 3, NULL, 0, NULL, NULL);
  for (int64_t i = 0; k->status == TN_OK && i < tn_tensor_elements(fetched[0]); i++) {
    const char *key;
    size_t size, at = strlen(k->text);
    tn_tensor_get_string(fetched[0], i, &key, &size, NULL);
    snprintf(k->text + at, sizeof k->text - at, "%.*s%g,%g ", (int)size, key,
             (double)((const float *)tn_tensor_data(fetched[1]))[i],
             (double)((const float *)tn_tensor_data(fetched[2]))[i]);
  }
  for (int i = 0; i < 3; i++) tn_tensor_unref(fetched[i]);
  tn_tensor_unref(feed);
  return NULL;
}

static taken take(ts *t, const char *how, int32_t n, int64_t timeout_ms)
{
  taken k = { .t = t, .how = how, .n = n, .timeout_ms = timeout_ms };
  take_thread(&k);
  return k;
}

static int size(ts *t, const char *name)
{
  tn_tensor *fetched = NULL;
  CHECK_OK(tn_session_run(t->session, NULL, NULL, NULL, 0, &name, &fetched, 1, NULL, 0, NULL, &t->err), &t->err);
  int n = fetched == NULL ? -1 : *(const int32_t *)tn_tensor_data(fetched);
  tn_tensor_unref(fetched);
  return n;
}

static tn_status target(ts *t, const char *name)
{
  tn_error_clear(&t->err);
  return tn_session_run(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, &name, 1, NULL, &t->err);
}

static void barriers__give_complete_elements_in_the_order_of_their_keys(void)
{
  ts t;
  open(&t, BARRIER);
  CHECK_OK(put(&t, "put0", "ab", 1), &t.err);
  CHECK_OK(put(&t, "put1", "cb", 5), &t.err);
  CHECK_INT(size(&t, "ready"), 1);
  CHECK_INT(size(&t, "rest"), 2);
  CHECK_OK(put(&t, "put0", "c", 8), &t.err); /* complete before a, but put in later */
  CHECK_OK(put(&t, "put1", "a", 9), &t.err);
  taken k = take(&t, "take", 3, 0);
  CHECK_STR(k.text, "b2,6 a1,9 c8,5 ");
  CHECK_OK(put(&t, "put0", "a", 1), &t.err); /* a new element */
  CHECK_INT(size(&t, "rest"), 1);
  ts_fini(&t);
}

/* S-RO-07, S-CAN-12 */
static void barriers__keep_elements_after_a_time_out(void)
{
  ts t;
  open(&t, BARRIER);
  CHECK_OK(put(&t, "put0", "ab", 1), &t.err);
  CHECK_OK(put(&t, "put1", "a", 5), &t.err);
  CHECK_INT(take(&t, "take", 2, 10).status, TN_DEADLINE_EXCEEDED);
  CHECK_INT(size(&t, "ready"), 1);
  taken k = { .t = &t, .how = "take", .n = 2 };
  REQUIRE_INT(pthread_create(&k.thread, NULL, take_thread, &k), 0);
  CHECK_OK(put(&t, "put1", "b", 6), &t.err);
  pthread_join(k.thread, NULL);
  CHECK_STR(k.text, "a1,5 b2,6 ");
  ts_fini(&t);
}

static void barriers__closed_ones_complete_existing_elements(void)
{
  ts t;
  open(&t, BARRIER);
  CHECK_OK(put(&t, "put0", "abc", 1), &t.err);
  CHECK_OK(put(&t, "put1", "a", 5), &t.err);
  CHECK_OK(target(&t, "close"), &t.err);
  CHECK_INT(target(&t, "close"), TN_CANCELLED);
  CHECK_STATUS(put(&t, "put1", "bz", 6), TN_CANCELLED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "key 'z' is a new one");
  CHECK_INT(size(&t, "rest"), 2); /* b is unchanged */
  CHECK_INT(take(&t, "take", 4, 0).status, TN_OUT_OF_RANGE);
  CHECK_STR(take(&t, "some", 4, 0).text, "a1,5 ");
  taken k = { .t = &t, .how = "take", .n = 2 }, never = { .t = &t, .how = "take", .n = 2 };
  REQUIRE_INT(pthread_create(&k.thread, NULL, take_thread, &k), 0);
  CHECK_OK(put(&t, "put1", "cb", 7), &t.err);
  pthread_join(k.thread, NULL);
  CHECK_STR(k.text, "c3,7 b2,8 ");
  take_thread(&never);
  CHECK_INT(never.status, TN_OUT_OF_RANGE);
  CHECK_INT(put(&t, "put0", "d", 7), TN_CANCELLED);
  ts_fini(&t);
}

/* A step that waits for two elements gets none if only one more can become complete. */
static void barriers__fail_waiting_takes_that_can_never_complete(void)
{
  ts t;
  open(&t, BARRIER);
  CHECK_OK(put(&t, "put0", "a", 1), &t.err);
  taken k = { .t = &t, .how = "take", .n = 2, .timeout_ms = 20000 };
  REQUIRE_INT(pthread_create(&k.thread, NULL, take_thread, &k), 0);
  ts_sleep_ms(20); /* a later call would be refused at once */
  CHECK_OK(target(&t, "close"), &t.err);
  CHECK_OK(put(&t, "put1", "a", 2), &t.err);
  pthread_join(k.thread, NULL);
  CHECK_INT(k.status, TN_OUT_OF_RANGE);
  CHECK_STR(take(&t, "some", 2, 0).text, "a1,2 ");
  ts_fini(&t);
}

static void barriers__cancelling_close_drops_incomplete_elements(void)
{
  ts t;
  open(&t, BARRIER);
  CHECK_OK(put(&t, "put0", "ab", 1), &t.err);
  CHECK_OK(put(&t, "put1", "b", 5), &t.err);
  taken k = { .t = &t, .how = "take", .n = 2 };
  REQUIRE_INT(pthread_create(&k.thread, NULL, take_thread, &k), 0);
  CHECK_OK(target(&t, "shut"), &t.err);
  pthread_join(k.thread, NULL);
  CHECK_INT(k.status, TN_OUT_OF_RANGE);
  CHECK_INT(size(&t, "rest"), 0);
  CHECK_INT(put(&t, "put1", "a", 5), TN_CANCELLED);
  CHECK_STR(take(&t, "take", 1, 0).text, "b2,5 ");
  CHECK_INT(target(&t, "shut"), TN_CANCELLED);
  ts_fini(&t);
}

static void check_refused(const char *text, const char *part)
{
  ts t;
  open(&t, text);
  CHECK_STATUS(target(&t, "y"), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), part);
  ts_fini(&t);
}

static void barriers__reject_mismatched_inputs(void)
{
  ts t;
#define READY NODE("y", "BarrierReadySize", B, "")
  check_refused(NODE("b", "Barrier", "", TYPES INT("capacity", 5)) READY, "'capacity' is 5");
  check_refused(NODE("b", "Barrier", "", TYPES) READY, "2 component_types and 0 shapes");
  check_refused(BARRIER INTS("k", "", "int_val: -1") NODE("y", "BarrierTakeMany", B " input: 'k'", TYPES),
                "num_elements is -1");
  check_refused(BARRIER INTS("k", "", "int_val: 1") NODE("y", "BarrierTakeMany", B " input: 'k'",
                                                         LIST("component_types", "type: DT_FLOAT type: DT_INT32")),
                "component 3 of barrier 'b' is of type float32");
  open(&t, BARRIER);
  CHECK_INT(put(&t, "put2", "a", 1), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "component_index is 2, barrier 'b' has 2 components");
  CHECK_OK(put(&t, "put0", "a", 1), &t.err);
  CHECK_INT(put(&t, "put0", "cba", 1), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "has a value of component 0 for key 'a' already");
  CHECK_INT(put(&t, "put0", "dd", 1), TN_INVALID_ARGUMENT);
  CHECK_INT(size(&t, "rest"), 1); /* all or nothing */
  ts_fini(&t);
}

/* ---- memory ---- */

static tn_status whole_life(void *unused)
{
  (void)unused;
  static const char text[] = BARRIER;
  static const char *const targets[] = { "put0", "put1", "close", NULL };
  tn_session *session = NULL;
  tn_tensor *feeds[3] = { NULL, NULL, NULL };
  const float values[] = { 1, 2 };
  const char *names[] = { "keys", "x", "n" }, *fetch = "take:2";
  const char *const keys[] = { "a", "a key that is longer than 22 bytes" };
  int64_t two = 2;
  const int32_t n = 2;
  tn_status st = ts_open_isolated(text, &session);
  if (st == TN_OK) st = tn_tensor_from_strings(&two, 1, keys, NULL, &feeds[0], NULL);
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, &two, 1, values, sizeof values, &feeds[1], NULL);
  if (st == TN_OK) st = tn_tensor_from_data(TN_INT32, NULL, 0, &n, 4, &feeds[2], NULL);
  for (int i = 0; st == TN_OK && i < 4; i++) {
    bool take_it = targets[i] == NULL;
    tn_tensor *fetched = NULL;
    st = tn_session_run(session, NULL, names, feeds, 3, &fetch, &fetched, take_it, &targets[i], !take_it, NULL, NULL);
    tn_tensor_unref(fetched);
  }
  for (int i = 0; i < 3; i++) tn_tensor_unref(feeds[i]);
  tn_session_destroy(session);
  return st;
}

static void barriers__survive_failing_allocations(void) { tn_test_oom_sweep(whole_life, NULL); }

TAP_MAIN(
  TAP_TEST(barriers__give_complete_elements_in_the_order_of_their_keys),
  TAP_TEST(barriers__keep_elements_after_a_time_out),
  TAP_TEST(barriers__closed_ones_complete_existing_elements),
  TAP_TEST(barriers__fail_waiting_takes_that_can_never_complete),
  TAP_TEST(barriers__cancelling_close_drops_incomplete_elements),
  TAP_TEST(barriers__reject_mismatched_inputs),
  TAP_TEST(barriers__survive_failing_allocations))
