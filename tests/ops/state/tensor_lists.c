/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor lists: values that are not copied when they change, and the ops on them. */
#include "conformance/support/op_kit.h"

#include <ops/state/list/tensor_list_store.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- the list itself ---- */

static const tn__list_kind numbers = { TN_INT32, 0, NULL, -1 };

static tn_tensor *number(int32_t value)
{
  tn_tensor *t;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &value, sizeof value, &t, NULL), NULL);
  return t;
}

static tn__list *new_list(int64_t length)
{
  tn__list *l;
  REQUIRE_OK(tn__list_create(&numbers, length, &l, NULL), NULL);
  return l;
}

/* -1: not set. */
static int32_t value_at(tn__list *l, int64_t i)
{
  tn_tensor *t = tn__list_get(l, i);
  int32_t value = t == NULL ? -1 : *(const int32_t *)tn_tensor_data(t);
  tn_tensor_unref(t);
  return value;
}

/* A new version with `length` elements, with element i (none if negative) set to `value`. */
static tn__list *changed(tn__list *l, int64_t length, int64_t i, int32_t value)
{
  tn__list *out;
  tn_tensor *t = i < 0 ? NULL : number(value);
  REQUIRE_OK(tn__list_change(l, length, i >= 0, &out, NULL), NULL);
  if (i >= 0) tn__list_put(out, i, t);
  tn__list_done(out);
  return out;
}

#define VERSIONS 12
#define LONGEST 10

/* A version and its expected contents. */
typedef struct known {
  tn__list *list;
  int64_t length;
  int32_t values[LONGEST];
} known;

static void check_known(const known *k)
{
  tn_tensor **all;
  if (k->list == NULL) return;
  REQUIRE_INT(tn__list_length(k->list), k->length);
  REQUIRE_OK(tn__list_all(k->list, &all, NULL), NULL);
  for (int64_t i = 0; i < k->length; i++) {
    CHECK_INT(value_at(k->list, i), k->values[i]);
    CHECK_INT(all[i] == NULL ? -1 : *(const int32_t *)tn_tensor_data(all[i]), k->values[i]);
  }
  tn__list_all_destroy(all, k->length);
}

/* Replaces version `to` by one made from version `from`. */
static void change_known(known *to, const known *from, unsigned *seed)
{
  known next = *from;
  int64_t i = -1;
  int32_t value = (int32_t)(rand_r(seed) % 1000);
  switch (rand_r(seed) % 4) {
  case 0: next.length = rand_r(seed) % (LONGEST + 1); break;
  case 1: next.length = next.length > 0 ? next.length - 1 : 0; break;
  case 2: next.length = i = next.length < LONGEST ? next.length : 0, next.length++; break;
  default: i = next.length > 0 ? rand_r(seed) % next.length : -1;
  }
  for (int64_t k = from->length; k < next.length; k++) next.values[k] = -1;
  if (i >= 0) next.values[i] = value;
  next.list = changed(from->list, next.length, i, value);
  tn__list_unref(to->list);
  *to = next;
}

static void tensor_lists__versions_do_not_affect_each_other(void)
{
  uint64_t before = tn_test_live_blocks();
  for (unsigned seed = 1; seed <= 60; seed++) {
    unsigned state = seed;
    known k[VERSIONS] = { { .list = new_list(0) } };
    for (int step = 0; step < 150; step++) {
      int from = rand_r(&state) % VERSIONS, to = rand_r(&state) % VERSIONS;
      if (k[from].list == NULL) from = 0;
      if (rand_r(&state) % 4 == 0 && to != 0) {
        tn__list_unref(k[to].list);
        k[to].list = NULL;
      } else {
        change_known(&k[to], &k[from], &state);
      }
      for (int i = 0; i < VERSIONS; i++) check_known(&k[i]);
    }
    for (int i = 0; i < VERSIONS; i++) tn__list_unref(k[i].list);
  }
  CHECK_INT(tn_test_live_blocks(), before);
}

/* n elements are pushed, or set one after another; holding the first version makes no
 * difference. */
static uint64_t allocations_of_loop(int n, bool push, bool hold_first)
{
  tn__list *first = new_list(push ? 0 : n), *l = tn__list_ref(first);
  tn_tensor *value = number(7);
  uint64_t made = tn_test_allocations();
  for (int i = 0; i < n; i++) {
    tn__list *next;
    REQUIRE_OK(tn__list_change(l, push ? i + 1 : n, !push, &next, NULL), NULL);
    tn__list_put(next, i, tn_tensor_ref(value));
    tn__list_done(next);
    tn__list_unref(l);
    l = next;
    if (i == 0 && !hold_first) {
      tn__list_unref(first);
      first = NULL;
    }
  }
  made = tn_test_allocations() - made;
  CHECK_INT(value_at(l, n - 1), 7);
  if (first != NULL) CHECK_INT(tn__list_length(first), push ? 0 : n);
  tn__list_unref(l);
  if (first != NULL && !push) CHECK_INT(value_at(first, n - 1), -1);
  tn__list_unref(first);
  tn_tensor_unref(value);
  return made;
}

static void tensor_lists__grow_and_change_without_copies(void)
{
  CHECK(allocations_of_loop(20000, true, false) < 20000 + 50);  /* one per version, and occasionally for the store */
  CHECK(allocations_of_loop(20000, true, true) < 20000 + 50);
  CHECK(allocations_of_loop(20000, false, false) <= 2 * 20000); /* also for the element of the version before */
  CHECK(allocations_of_loop(20000, false, true) <= 2 * 20000);
}

static void tensor_lists__release_elements_of_newer_versions(void)
{
  tn__list *empty = new_list(0), *first = changed(empty, 3, 1, 5);
  uint64_t before = tn_test_live_blocks();
  tn__list *l = tn__list_ref(first);
  for (int32_t i = 0; i < 500; i++) {
    tn__list *next = changed(l, i % 3 == 0 ? i + 4 : tn__list_length(l), i % 3, i);
    tn__list_unref(l);
    l = next;
  }
  CHECK(tn_test_live_blocks() > before);
  tn__list_unref(l);
  CHECK_INT(tn_test_live_blocks(), before);
  CHECK_INT(value_at(first, 1), 5);
  CHECK_INT(value_at(first, 0), -1);
  tn__list *again = changed(first, 4, 3, 9); /* no copy, as it is the newest again */
  CHECK_INT(value_at(again, 1), 5);
  CHECK_INT(value_at(again, 3), 9);
  tn__list_unref(again);
  tn__list_unref(first);
  tn__list_unref(empty);
}

/* A list in a list in a list: destroying it does not recurse. */
static void tensor_lists__of_any_depth_are_destroyed(void)
{
  const tn__list_kind lists = { TN_VARIANT, 0, NULL, -1 };
  uint64_t before = tn_test_live_blocks();
  tn__list *inner = new_list(0);
  for (int i = 0; i < 200000; i++) {
    tn__list *outer;
    tn_tensor *t;
    REQUIRE_OK(tn__list_create(&lists, 1, &outer, NULL), NULL);
    REQUIRE_OK(tn_tensor_create(TN_VARIANT, NULL, 0, &t, NULL), NULL);
    *(tn_handle **)tn_tensor_data(t) = tn__list_handle(inner);
    tn__list_put(outer, 0, t);
    inner = outer;
  }
  tn__list_unref(inner);
  CHECK_INT(tn_test_live_blocks(), before);
}

static void *work_on_shared(void *base)
{
  unsigned seed = (unsigned)(uintptr_t)&seed;
  bool right = true;
  for (int round = 0; round < 300; round++) {
    tn__list *l = tn__list_ref(base);
    for (int32_t i = 0; i < 20; i++) {
      tn__list *next = changed(l, 8, i % 8, 100 + i);
      right = right && value_at(next, i % 8) == 100 + i && value_at(base, i % 8) == i % 8;
      tn__list_unref(l);
      l = next;
    }
    tn__list_unref(l);
    if (rand_r(&seed) % 8 == 0) sched_yield();
  }
  return right ? base : NULL;
}

static void tensor_lists__are_shared_by_threads(void)
{
  tn__list *base = new_list(0);
  for (int32_t i = 0; i < 8; i++) {
    tn__list *next = changed(base, i + 1, i, i);
    tn__list_unref(base);
    base = next;
  }
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, work_on_shared, base), 0);
  for (int i = 0; i < 4; i++) {
    void *right;
    pthread_join(threads[i], &right);
    CHECK(right == base);
  }
  for (int32_t i = 0; i < 8; i++) CHECK_INT(value_at(base, i), i);
  tn__list_unref(base);
}

/* Failed changes leave the list unchanged. */
static tn_status change_all(void *arg)
{
  tn__list *base = arg, *out = NULL, *copy = NULL;
  tn_tensor **all = NULL;
  tn_status st = tn__list_change(base, 9, 1, &out, NULL);
  if (st == TN_OK) {
    tn__list_put(out, 0, NULL);
    tn__list_done(out);
    st = tn__list_change(base, 2, 0, &copy, NULL); /* of a version that is not the newest */
    if (st == TN_OK) tn__list_done(copy);
  }
  if (st == TN_OK) st = tn__list_all(out, &all, NULL);
  if (st == TN_OK) CHECK_INT(value_at(copy, 0), 4);
  tn__list_all_destroy(all, 9);
  tn__list_unref(copy);
  tn__list_unref(out);
  CHECK_INT(tn__list_length(base), 3);
  CHECK_INT(value_at(base, 0), 4);
  return st;
}

static void tensor_lists__survive_failing_allocations(void)
{
  tn__list *empty = new_list(3), *base = changed(empty, 3, 0, 4);
  tn_test_oom_sweep(change_all, base);
  tn__list_unref(base);
  tn__list_unref(empty);
}

/* ---- the ops ---- */

#define E TYPE("element_dtype", "DT_FLOAT")
#define NEW(name, shape, n) \
  NODE(name, "TensorListReserve", "input: '" shape "' input: '" n "'", E TYPE("shape_type", "DT_INT32"))
#define SET(name, list, index, value) \
  NODE(name, "TensorListSetItem", "input: '" list "' input: '" index "' input: '" value "'", E)
#define GET(name, list, index, shape) \
  NODE(name, "TensorListGetItem", "input: '" list "' input: '" index "' input: '" shape "'", E)
#define PUSH(name, list, value) NODE(name, "TensorListPushBack", "input: '" list "' input: '" value "'", E)
#define POP(name, list, shape) NODE(name, "TensorListPopBack", "input: '" list "' input: '" shape "'", E)
#define LENGTH(name, list) NODE(name, "TensorListLength", "input: '" list "'", "")
#define STACK(name, list, shape) NODE(name, "TensorListStack", "input: '" list "' input: '" shape "'", E)
#define BASIC                                                                                                       \
  INTS("any", "", "int_val: -1") INTS("scalar", D(0), "") INTS("two", D(1), "int_val: 2") INTS("0", "", "int_val: 0") \
  INTS("1", "", "int_val: 1") INTS("3", "", "int_val: 3") INTS("m1", "", "int_val: -1") ANY("x", "DT_FLOAT")         \
  NODE("empty", "EmptyTensorList", "input: 'any' input: 'm1'", E TYPE("shape_type", "DT_INT32"))                     \
  NODE("xx", "Add", "input: 'x' input: 'x'", F)                                                                     \
  TENSOR("12", "DT_FLOAT", D(2), "float_val: 1 float_val: 2")

/* The first element of a fetch of dtype float or int32. */
static double fetched(ts *t, const char *name)
{
  tn_tensor *out[1];
  if (ts_run(t, FEEDS({ "x", 5 }), NAMES(name), out, NULL) != TN_OK) return NAN;
  const void *data = tn_tensor_data(out[0]);
  double v = tn_tensor_dtype(out[0]) == TN_FLOAT ? (double)*(const float *)data : *(const int32_t *)data;
  tn_tensor_unref(out[0]);
  return v;
}

static void fails(ts *t, const char *name, const char *message)
{
  tn_tensor *out[1] = { NULL };
  CHECK_INT(ts_run(t, FEEDS({ "x", 5 }), NAMES(name), out, NULL), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t->err), message);
  CHECK_CONTAINS(tn_error_message(&t->err), "node '");
  CHECK_NULL(out[0]);
}

static void tensor_lists__keep_their_value_in_a_step(void)
{
  ts t;
  ops_open_text(&t,
                BASIC PUSH("a", "empty", "x") PUSH("b", "a", "xx") PUSH("c", "a", "12") POP("p", "b", "any")
                    PUSH("again", "p", "x") LENGTH("na", "a") LENGTH("nb", "b") LENGTH("np", "p") LENGTH("ne", "empty")
                        GET("b1", "b", "1", "any") GET("c1", "c", "1", "any") GET("again1", "again", "1", "any")
                            NODE("all", "Pack", "input: 'na' input: 'nb' input: 'np' input: 'ne'",
                                 TYPE("T", "DT_INT32") INT("N", 4))
                                NODE("sum", "AddN", "input: 'b1' input: 'p:1' input: 'again1'", F INT("N", 3)));
  tn_tensor *out[3];
  REQUIRE_OK(ts_run(&t, FEEDS({ "x", 5 }), NAMES("all", "sum", "c1"), out, NULL), &t.err);
  const int32_t *n = tn_tensor_data(out[0]);
  CHECK_INT(n[0], 1);
  CHECK_INT(n[1], 2);
  CHECK_INT(n[2], 1);
  CHECK_INT(n[3], 0);
  CHECK_DOUBLE(ts_float(out[1]), 10 + 10 + 5, 0);
  CHECK_DOUBLE(ts_float(out[2]), 1, 0);
  for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
  ts_fini(&t);
}

static void tensor_lists__errors_name_mismatches(void)
{
  ts t;
  ops_open_text(
      &t, BASIC NEW("two3", "two", "3") SET("far", "two3", "3", "12") SET("below", "two3", "m1", "12")
              SET("bad", "two3", "0", "x") LENGTH("far_n", "far") LENGTH("below_n", "below") LENGTH("bad_n", "bad")
                  POP("none", "empty", "any") NEW("unset", "any", "3") GET("unknown", "unset", "0", "any")
                      STACK("stack", "unset", "any") STACK("stack0", "empty", "any") GET("out", "unset", "3", "any")
                          NEW("minus", "any", "m1") NEW("shape", "3", "1") GET("other", "two3", "0", "scalar")
                              NODE("int", "TensorListStack", "input: 'two3' input: 'any'",
                                   TYPE("element_dtype", "DT_INT32")));
  fails(&t, "far_n", "element 3 of a list of 3");
  fails(&t, "below_n", "element -1");
  fails(&t, "bad_n", "shape [] does not fit a list of elements of shape [2]");
  fails(&t, "none:1", "an empty list");
  fails(&t, "unknown", "shape of elements is unknown rank");
  fails(&t, "stack", "no element is set");
  fails(&t, "stack0", "unknown rank");
  fails(&t, "out", "element 3");
  fails(&t, "other", "[] and [2] do not fit");
  fails(&t, "int", "a list of dtype float32, wanted int32");
  CHECK_INT(ts_run(&t, NULL, NULL, NULL, NAMES("minus")), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "is -1, wanted 0 or more");
  CHECK_INT(ts_run(&t, NULL, NULL, NULL, NAMES("shape")), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "input 0 must be a shape");
  ts_fini(&t);
}

/* Lists of lists, of strings and of handles; zeros and sums apply to nested lists. */
static void tensor_lists__hold_any_dtype(void)
{
#define V TYPE("element_dtype", "DT_VARIANT")
#define VT TYPE("T", "DT_VARIANT")
#define RS TYPE("element_dtype", "DT_RESOURCE")
  ts t;
  ops_open_text(
      &t,
      BASIC PUSH("a", "empty", "x") PUSH("ab", "a", "xx") NODE("lists", "EmptyTensorList", "input: 'any' input: 'm1'",
                                                               V TYPE("shape_type", "DT_INT32"))
          NODE("deep", "TensorListPushBack", "input: 'lists' input: 'ab'",
               V) NODE("zeros", "ZerosLike", "input: 'deep'",
                       VT) NODE("sum", "AddN", "input: 'deep' input: 'deep' input: 'zeros'", VT INT("N", 3))
              NODE("in", "TensorListPopBack", "input: 'sum' input: 'any'", V) GET("sum1", "in:1", "1", "any")
                  NODE("zin", "TensorListGetItem", "input: 'zeros' input: '0' input: 'any'", V) STACK("z", "zin", "any")
                      NODE("hs", "EmptyTensorList", "input: 'any' input: 'm1'", RS TYPE("shape_type", "DT_INT32")) NODE(
                          "v", "VarHandleOp", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { } } }")
                          NODE("set", "AssignVariableOp", "input: 'v' input: 'x'",
                               TYPE("dtype", "DT_FLOAT")) NODE("h", "TensorListPushBack", "input: 'hs' input: 'v'", RS)
                              NODE("g", "TensorListGetItem", "input: 'h' input: '0' input: 'any' input: '^set'", RS)
                                  NODE("read", "ReadVariableOp", "input: 'g'", TYPE("dtype", "DT_FLOAT"))
                                      NODE("batch", "Pack", "input: 'a' input: 'ab'", VT INT("N", 2))
                                          NODE("longer", "TensorListConcatLists", "input: 'batch' input: 'batch'", E)
                                              NODE("un", "Unpack", "input: 'longer'", VT INT("num", 2))
                                                  LENGTH("n0", "un") LENGTH("n1", "un:1"));
  CHECK_DOUBLE(fetched(&t, "sum1"), 20, 0);
  CHECK_DOUBLE(fetched(&t, "z"), 0, 0);
  CHECK_DOUBLE(fetched(&t, "read"), 5, 0);
  CHECK_DOUBLE(fetched(&t, "n0"), 2, 0);
  CHECK_DOUBLE(fetched(&t, "n1"), 4, 0);
  ts_fini(&t);
}

/* A fetched list may be fed again, in any step. */
static void tensor_lists__outlive_their_step(void)
{
  ts t;
  tn_tensor *list[1], *length[1];
  ops_open_text(&t, BASIC NODE("in", "Placeholder", "", TYPE("dtype", "DT_VARIANT")) PUSH("a", "empty", "x")
                    PUSH("b", "in", "x") LENGTH("n", "b"));
  REQUIRE_OK(ts_run(&t, FEEDS({ "x", 5 }), NAMES("a"), list, NULL), &t.err);
  for (int i = 0; i < 3; i++) {
    tn_tensor *feeds[2] = { list[0], ts_scalar(2) };
    REQUIRE_OK(
        tn_session_run(t.session, NULL, NAMES("in", "x"), feeds, 2, NAMES("n"), length, 1, NULL, 0, NULL, &t.err),
        &t.err);
    CHECK_INT(*(const int32_t *)tn_tensor_data(length[0]), 2);
    tn_tensor_unref(length[0]);
    tn_tensor_unref(feeds[1]);
  }
  tn_tensor_unref(list[0]);
  ts_fini(&t);
}

static void tensor_lists__shapes_are_known_before_a_step(void)
{
  ts t;
  ops_open_text(&t, BASIC INTS("q3", D(2), "int_val: -1 int_val: 3") NEW("l", "q3", "3") STACK("s", "l", "q3")
                        GET("g", "l", "0", "q3") POP("p", "l", "q3")
                            NODE("s5", "TensorListStack", "input: 'l' input: 'q3'", E INT("num_elements", 5))
                                INTS("i", D(2), "int_val: 0 int_val: 1")
                                    NODE("ga", "TensorListGather", "input: 'l' input: 'i' input: 'q3'", E)
                                        TENSOR("no", "DT_INT64", D(0), "")
                                            NODE("c", "TensorListConcatV2", "input: 'l' input: 'q3' input: 'no'",
                                                 E TYPE("shape_type", "DT_INT32")));
  CHECK_STR(ops_shape_of(&t, "l", 0), "[]");
  CHECK_STR(ops_shape_of(&t, "s", 0), "[?,?,3]");
  CHECK_STR(ops_shape_of(&t, "s5", 0), "[5,?,3]");
  CHECK_STR(ops_shape_of(&t, "g", 0), "[?,3]");
  CHECK_STR(ops_shape_of(&t, "p", 1), "?");
  CHECK_STR(ops_shape_of(&t, "ga", 0), "[2,?,3]");
  CHECK_STR(ops_shape_of(&t, "c", 0), "[?,3]");
  CHECK_STR(ops_shape_of(&t, "c", 1), "[?]");
  ts_fini(&t);
}

static tn_tensor *fed; /* created before memory is limited */

static tn_status run_step(void *arg)
{
  ts *t = arg;
  tn_tensor *out[2] = { NULL };
  tn_status st = tn_session_run(t->session, NULL, NAMES("x"), &fed, 1, NAMES("s", "nb"), out, 2, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK_INT(*(const int32_t *)tn_tensor_data(out[1]), 2);
  tn_tensor_unref(out[0]);
  tn_tensor_unref(out[1]);
  return st;
}

static void tensor_lists__steps_survive_failing_allocations(void)
{
  ts t;
  ops_open_text(&t, BASIC PUSH("a", "empty", "x") PUSH("b", "a", "xx") SET("c", "b", "0", "xx") POP("d", "c", "any")
                    STACK("s", "c", "any") LENGTH("nb", "b")
                    NODE("sum", "AddN", "input: 'c' input: 'b'", TYPE("T", "DT_VARIANT") INT("N", 2)));
  fed = ts_scalar(5);
  tn_test_oom_sweep(run_step, &t);
  tn_tensor_unref(fed);
  ts_fini(&t);
}

TAP_MAIN(
    TAP_TEST(tensor_lists__versions_do_not_affect_each_other),
    TAP_TEST(tensor_lists__grow_and_change_without_copies),
    TAP_TEST(tensor_lists__release_elements_of_newer_versions),
    TAP_TEST(tensor_lists__of_any_depth_are_destroyed),
    TAP_TEST(tensor_lists__are_shared_by_threads),
    TAP_TEST(tensor_lists__survive_failing_allocations),
    TAP_TEST(tensor_lists__keep_their_value_in_a_step),
    TAP_TEST(tensor_lists__errors_name_mismatches),
    TAP_TEST(tensor_lists__hold_any_dtype),
    TAP_TEST(tensor_lists__outlive_their_step),
    TAP_TEST(tensor_lists__shapes_are_known_before_a_step),
    TAP_TEST(tensor_lists__steps_survive_failing_allocations))
