/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of eager sessions: stale and foreign handles, detaching, sharing with graph sessions,
 * scopes, counters. */
#include "conformance/support/eager_kit.h"

static void check_refused(te *t, tn_eager_handle h, const char *why)
{
  tn_eager_handle out = { 9 };
  tn_tensor *tensor;
  CHECK_STATUS(tn_eager_tensor(t->session, h, &tensor, &t->err), TN_FAILED_PRECONDITION, &t->err);
  CHECK_CONTAINS(tn_error_message(&t->err), why);
  CHECK_STATUS(tn_eager_detach(t->session, h, &tensor, &t->err), TN_FAILED_PRECONDITION, &t->err);
  CHECK_NULL(tensor);
  CHECK_STATUS(tn_eager_copy_to_device(t->session, h, "", &out, &t->err), TN_FAILED_PRECONDITION, &t->err);
  CHECK_STATUS(tn_eager_neg(t->session, h, &out, &t->err), TN_FAILED_PRECONDITION, &t->err);
  CHECK_CONTAINS(tn_error_message(&t->err), why);
  CHECK_INT(out.id, 0);
  CHECK_STATUS(tn_eager_release(t->session, h, &t->err), TN_FAILED_PRECONDITION, &t->err);
}

static void eager_handles__released_ones_are_detected(void) /* S-EAG-21 */
{
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SESSION_CLOSE; strategy++) {
    te t;
    te_told told = { 0 };
    te_open(&t, te_runtime(0), strategy);
    tn_eager_handle h = te_telling(&t, &told), more[100];
    te_release(&t, h);
    check_refused(&t, h, "released");
    tn_eager_safe_point(t.session, NULL);
    for (int i = 0; i < 100; i++) more[i] = te_scalar(&t, (float)i); /* possibly in the same slot */
    for (int i = 0; i < 100; i++) CHECK(more[i].id != h.id);
    check_refused(&t, h, "released");
    for (int i = 0; i < 100; i++) CHECK_DOUBLE(te_value(&t, more[i]), i, 0);
    te_fini(&t);
    CHECK_INT(atomic_load(&told.n), 1);
  }
}

static void eager_handles__foreign_ones_are_detected(void)
{
  te t[2];
  for (int i = 0; i < 2; i++) te_open(&t[i], te_runtime(0), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle a = te_scalar(&t[0], 1), b = te_scalar(&t[1], 2);
  CHECK(a.id != b.id);
  check_refused(&t[0], b, "not this session's");
  check_refused(&t[1], a, "not this session's");
  static const uint64_t made_up[] = { 1, 77, UINT64_MAX, 1ull << 63, 0x7ffffff, 0xfff0000000000001 };
  for (int i = 0; i < 6; i++) check_refused(&t[0], (tn_eager_handle){ made_up[i] }, "it is not");
  for (int bit = 0; bit < 64; bit++) /* similar ids */
    check_refused(&t[0], (tn_eager_handle){ a.id ^ 1ull << bit }, "eager handle");
  CHECK_OK(tn_eager_release(t[0].session, (tn_eager_handle){ 0 }, &t[0].err), &t[0].err);
  CHECK_DOUBLE(te_value(&t[0], a), 1, 0);
  for (int i = 0; i < 2; i++) te_fini(&t[i]);
}

static void eager_handles__detached_tensors_are_the_callers(void) /* S-EAG-20 */
{
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SESSION_CLOSE; strategy++) {
    te t;
    te_told told = { .value = 5 };
    tn_tensor *mine, *made;
    te_open(&t, te_runtime(0), strategy);
    tn_eager_handle h = te_telling(&t, &told), sum = te_add(&t, h, h);
    REQUIRE_OK(tn_eager_detach(t.session, h, &mine, &t.err), &t.err);
    check_refused(&t, h, "released");
    REQUIRE_OK(tn_eager_detach(t.session, sum, &made, &t.err), &t.err);
    CHECK(tn_tensor_is_exclusive(made));
    tn_eager_counters c = te_counters(&t);
    CHECK_INT(c.detached, 2);
    CHECK_INT(c.live, 0);
    CHECK_INT(c.deleted, 0);
    CHECK_INT(c.bytes, 0);
    te_fini(&t);
    CHECK_INT(atomic_load(&told.n), 0);
    CHECK_DOUBLE(ts_float(mine), 5, 0);
    CHECK_DOUBLE(ts_float(made), 10, 0);
    tn_tensor_unref(mine);
    tn_tensor_unref(made);
    CHECK_INT(atomic_load(&told.n), 1);
  }
}

static void eager_handles__share_tensors_with_graph_sessions(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    ts g;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    ts_open(&g, 1);
    tn_eager_handle x = te_scalar(&t, 3), y = te_scalar(&t, 4), back;
    tn_tensor *feeds[2], *again, *fetched = NULL;
    static const char *const names[] = { "x", "y" };
    static const char *const fetch = "twice";
    REQUIRE_OK(tn_eager_tensor(t.session, x, &feeds[0], &t.err), &t.err);
    REQUIRE_OK(tn_eager_tensor(t.session, y, &feeds[1], &t.err), &t.err);
    REQUIRE_OK(tn_eager_tensor(t.session, y, &again, &t.err), &t.err);
    CHECK(tn_tensor_data(feeds[1]) == tn_tensor_data(again)); /* no copy */
    REQUIRE_OK(tn_session_run(g.session, NULL, names, feeds, 2, &fetch, &fetched, 1, NULL, 0, NULL, &g.err), &g.err);
    REQUIRE_OK(tn_eager_from_tensor(t.session, fetched, &back, &t.err), &t.err);
    tn_tensor *same;
    REQUIRE_OK(tn_eager_tensor(t.session, back, &same, &t.err), &t.err);
    CHECK(tn_tensor_data(same) == tn_tensor_data(fetched));
    CHECK_DOUBLE(te_value(&t, te_add(&t, back, x)), 17, 0);
    te_fini(&t);
    CHECK_DOUBLE(ts_float(feeds[0]), 3, 0); /* references outlive the session */
    tn_tensor *all[] = { feeds[0], feeds[1], again, fetched, same };
    for (int i = 0; i < 5; i++) tn_tensor_unref(all[i]);
    ts_fini(&g);
  }
}

/* ---- scopes ---- */

static void eager_handles__a_scope_releases_tensors_made_in_it(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_open(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    tn_eager_handle before = te_scalar(&t, 1), made[20], kept[1], inner;
    REQUIRE_OK(tn_eager_scope_push(t.session, &t.err), &t.err);
    for (int i = 0; i < 20; i++) made[i] = te_add(&t, before, before);
    te_release(&t, made[3]); /* released explicitly: allowed */
    REQUIRE_OK(tn_eager_scope_push(t.session, &t.err), &t.err);
    inner = te_add(&t, made[0], before);
    kept[0] = te_add(&t, inner, before);
    REQUIRE_OK(tn_eager_scope_pop(t.session, kept, 1, &t.err), &t.err);
    check_refused(&t, inner, "released");
    CHECK_DOUBLE(te_value(&t, kept[0]), 4, 0);
    CHECK_DOUBLE(te_value(&t, made[0]), 2, 0);
    REQUIRE_OK(tn_eager_scope_pop(t.session, &made[7], 1, &t.err), &t.err);
    check_refused(&t, kept[0], "released"); /* it was kept in the outer scope, which has ended */
    CHECK_DOUBLE(te_value(&t, made[7]), 2, 0);
    CHECK_DOUBLE(te_value(&t, before), 1, 0);
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK_INT(te_counters(&t).live, 2);
    CHECK_STATUS(tn_eager_scope_pop(t.session, NULL, 0, &t.err), TN_FAILED_PRECONDITION, &t.err);
    te_fini(&t);
  }
}

static void eager_handles__scopes_belong_to_their_session(void)
{
  te a, b;
  te_open(&a, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  te_open(&b, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  REQUIRE_OK(tn_eager_scope_push(a.session, &a.err), &a.err);
  tn_eager_handle other = te_scalar(&b, 2), own = te_scalar(&a, 1);
  CHECK_STATUS(tn_eager_scope_pop(b.session, NULL, 0, &b.err), TN_FAILED_PRECONDITION, &b.err);
  CHECK_STATUS(tn_eager_scope_pop(a.session, &other, 1, &a.err), TN_FAILED_PRECONDITION, &a.err);
  CHECK_DOUBLE(te_value(&a, own), 1, 0); /* the failed calls changed nothing */
  REQUIRE_OK(tn_eager_scope_push(b.session, &b.err), &b.err);
  te_scalar(&b, 3);
  REQUIRE_OK(tn_eager_scope_pop(a.session, NULL, 0, &a.err), &a.err); /* out of order: sessions are independent */
  check_refused(&a, own, "released");
  CHECK_DOUBLE(te_value(&b, other), 2, 0);
  REQUIRE_OK(tn_eager_scope_push(a.session, &a.err), &a.err);
  te_scalar(&a, 4);
  te_fini(&a); /* with a scope open */
  REQUIRE_OK(tn_eager_scope_pop(b.session, NULL, 0, &b.err), &b.err);
  te_fini(&b);
}

static void *leave_scopes_open(void *arg)
{
  te *t = arg;
  tn_error err = TN_ERROR_INIT;
  tn_eager_handle h;
  const float one = 1;
  for (int i = 0; i < 3; i++) {
    CHECK_OK(tn_eager_scope_push(t->session, &err), &err);
    CHECK_OK(tn_eager_from_data(t->session, TN_FLOAT, NULL, 0, &one, sizeof one, &h, &err), &err);
  }
  tn_error_clear(&err);
  return NULL;
}

static void eager_handles__a_thread_may_end_in_a_scope(void)
{
  te t;
  pthread_t thread;
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  uint64_t blocks = tn_test_live_blocks();
  REQUIRE_INT(pthread_create(&thread, NULL, leave_scopes_open, &t), 0);
  pthread_join(thread, NULL);
  CHECK_INT(te_counters(&t).live, 3); /* tensors made there remain */
  CHECK(tn_test_live_blocks() <= blocks + 3 + 1);
  te_fini(&t);
}

/* ---- counters ---- */

static void eager_handles__counters_match_the_operations(void)
{
  te t;
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  const int64_t dims[] = { 100000 };
  tn_tensor *big = ts_filled(1, dims, 1);
  tn_eager_handle x, y;
  REQUIRE_OK(tn_eager_from_tensor(t.session, big, &x, &t.err), &t.err);
  tn_tensor_unref(big);
  y = te_add(&t, x, x);
  tn_eager_counters c = te_counters(&t);
  CHECK_INT(c.bytes, 800000);
  CHECK_INT(c.peak_bytes, 800000);
  te_release(&t, x);
  c = te_counters(&t);
  CHECK_INT(c.unused, 1);
  CHECK_INT(c.live, 1);
  CHECK_INT(c.bytes, 800000);
  CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  c = te_counters(&t);
  CHECK_INT(c.allocated, 2);
  CHECK_INT(c.unused, 0);
  CHECK_INT(c.deleted, 1);
  CHECK_INT(c.bytes, 400000);
  CHECK_INT(c.peak_bytes, 800000);
  te_release(&t, y);
  tn_eager_counters small = { .struct_size = TN_SIZE_TO(tn_eager_counters, live), .unused = 77 };
  CHECK_OK(tn_eager_get_counters(t.session, &small, &t.err), &t.err);
  CHECK_INT(small.unused, 77);
  small.struct_size = 1;
  CHECK_STATUS(tn_eager_get_counters(t.session, &small, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eager_get_counters(NULL, &small, &t.err), TN_INVALID_ARGUMENT, &t.err);
  te_fini(&t);
}

static void eager_handles__many_at_once(void)
{
  enum { MANY = 30000 };
  te t;
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  tn_eager_handle *h = malloc(MANY * sizeof *h);
  REQUIRE_PTR(h);
  tn_tensor *one = ts_scalar(1);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < MANY; i++) REQUIRE_OK(tn_eager_from_tensor(t.session, one, &h[i], &t.err), &t.err);
    CHECK_INT(te_counters(&t).live, MANY);
    for (int i = 0; i < MANY; i++) te_release(&t, h[(i * 7919) % MANY]);
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK_INT(te_counters(&t).live, 0);
  }
  CHECK_INT(te_counters(&t).deleted, 3 * MANY);
  tn_tensor_unref(one);
  free(h);
  te_fini(&t);
}

TAP_MAIN(TAP_TEST(eager_handles__released_ones_are_detected), TAP_TEST(eager_handles__foreign_ones_are_detected),
         TAP_TEST(eager_handles__detached_tensors_are_the_callers),
         TAP_TEST(eager_handles__share_tensors_with_graph_sessions),
         TAP_TEST(eager_handles__a_scope_releases_tensors_made_in_it),
         TAP_TEST(eager_handles__scopes_belong_to_their_session), TAP_TEST(eager_handles__a_thread_may_end_in_a_scope),
         TAP_TEST(eager_handles__counters_match_the_operations), TAP_TEST(eager_handles__many_at_once))
