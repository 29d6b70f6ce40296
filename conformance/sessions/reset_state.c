/* SPDX-License-Identifier: Apache-2.0 */
/* Resets: which sessions end, which variables and queues remain, and what steps of an old session
 * can still access. */
#include <tenon/resource.h>
#include <tenon/runtime.h>

#include "conformance/support/blocked_kit.h"

/* ---- a resource whose lifetime is observed ---- */

static atomic_int numbers; /* live objects */

static void destroy_number(void *object)
{
  atomic_fetch_sub(&numbers, 1);
  tn_free(object);
}

static const tn_resource_class number = { sizeof number, "Number", destroy_number, NULL };

static tn_status make_number(void *user, void **object, tn_error *err)
{
  (void)user;
  *object = tn_alloc(sizeof(atomic_int));
  if (*object == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a number");
  atomic_init((atomic_int *)*object, 0);
  atomic_fetch_add(&numbers, 1);
  return TN_OK;
}

static tn_status prepare_scalar(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output_like(ctx, 0, 0, err); }

/* Location of a node's number: its attributes; if they have no name, the node's own name. */
typedef struct place {
  char container[32], name[32];
} place;

static tn_status read_text(const tn_operation *op, const char *attr, char *text, size_t size, tn_error *err)
{
  const char *value;
  size_t length;
  tn_status st = tn_operation_attr_string(op, attr, &value, &length, err);
  if (st == TN_OK && length >= size) st = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is too long", attr);
  if (st != TN_OK) return st;
  memcpy(text, value, length);
  text[length] = 0;
  return TN_OK;
}

static void destroy_place(void *state) { tn_free(state); }

static tn_status create_place(const tn_operation *op, void **state, tn_error *err)
{
  place *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a kernel");
  p->name[0] = 0;
  tn_status st = read_text(op, "container", p->container, sizeof p->container, err);
  if (st == TN_OK) st = read_text(op, "shared_name", p->name, sizeof p->name, err);
  if (p->name[0] == 0) snprintf(p->name, sizeof p->name, "%s", tn_operation_name(op));
  if (st == TN_OK) *state = p;
  else tn_free(p);
  return st;
}

/* Adds one to its number and outputs it. */
static tn_status add_one(tn_kernel_ctx *ctx)
{
  const place *p = ctx->state;
  tn_resource *r;
  tn_status st = tn_kernel_obtain(ctx, p->container, p->name, &number, make_number, NULL, &r);
  if (st != TN_OK) return st;
  *(float *)ctx->outputs[0]->data = (float)(atomic_fetch_add((atomic_int *)tn_resource_object(r), 1) + 1);
  tn_resource_unref(r);
  return TN_OK;
}

static atomic_int late_value; /* the number read by a kernel that is not waited for */

/* Waits for the gate, even if its step ends. */
static tn_status add_after(tn_kernel_ctx *ctx)
{
  tn_status st;
  atomic_fetch_add(&ts_watched.at_gate, 1);
  while (!atomic_load(&ts_watched.gate)) ts_sleep_ms(1);
  st = add_one(ctx);
  atomic_store(&late_value, st == TN_OK ? (int)*(float *)ctx->outputs[0]->data : -1);
  return st;
}

static tn_status add_late(tn_kernel_ctx *ctx)
{
  tn_status st = add_one(ctx);
  return st == TN_OK ? add_after(ctx) : st;
}

static ts *inside; /* the session used by the kernels below */

static tn_status reset_inside(tn_kernel_ctx *ctx)
{
  *(float *)ctx->outputs[0]->data = 1;
  return tn_reset(inside->options, NULL, 0, ctx->err);
}

static tn_status run_inside(tn_kernel_ctx *ctx)
{
  bk_step s = { .session = inside->session, .fetch = "begun", .x = *(const float *)ctx->inputs[0]->data };
  tn_status st = bk_run(&s);
  *(float *)ctx->outputs[0]->data = s.value + 1;
  bk_done(&s);
  return st;
}

#define OP(name_, attrs_)                                                                                \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = "x: float", .outputs = "y: float", .attrs = attrs_, \
    .traits = TN_TRAIT_STATEFUL }
#define KERNEL(op_, create_, destroy_, compute_)                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = op_ "_cpu", .rank = TN_RANK_C, \
    .create = create_, .destroy = destroy_, .prepare = prepare_scalar, .compute = compute_ }
#define PLACE "container: string = ''; shared_name: string = ''"

static const tn_op_def ops[] = { OP("TestNumber", PLACE), OP("TestNumberLate", PLACE), OP("TestNumberAfter", PLACE),
                                 OP("TestReset", ""), OP("TestNested", "") };
static const tn_kernel_def kernels[] = {
  KERNEL("TestNumber", create_place, destroy_place, add_one),
  KERNEL("TestNumberLate", create_place, destroy_place, add_late),
  KERNEL("TestNumberAfter", create_place, destroy_place, add_after),
  KERNEL("TestReset", NULL, NULL, reset_inside),
  KERNEL("TestNested", NULL, NULL, run_inside),
};
static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "test reset", .ops = ops,
                                     .n_ops = sizeof ops / sizeof *ops, .kernels = kernels,
                                     .n_kernels = sizeof kernels / sizeof *kernels };

static void register_ops(void)
{
  static bool done;
  if (!done) REQUIRE_OK(tn_register_ops(&family, NULL), NULL);
  done = true;
}

/* ---- variables and queues in containers ---- */

/* In container `box`: variable "set_", "read_" and queue "put_", "size_", "get_", each with this
 * suffix. */
#define BOX(s, box)                                                                                            \
  NODE("v_" s, "VarHandleOp", "", DT SHAPE("") TEXT_ATTR("shared_name", "state") TEXT_ATTR("container", box))  \
  NODE("set_" s, "AssignVariableOp", "input: 'v_" s "' input: 'x'", DT)                                        \
  NODE("read_" s, "ReadVariableOp", "input: 'v_" s "'", DT)                                                    \
  NODE("is_" s, "VarIsInitializedOp", "input: 'v_" s "'", "")                                                  \
  NODE("q_" s, "FIFOQueueV2", "", QT SCALARS TEXT_ATTR("shared_name", "line") TEXT_ATTR("container", box))     \
  NODE("put_" s, "QueueEnqueueV2", "input: 'q_" s "' input: 'x'", PUTS)                                        \
  NODE("size_" s, "QueueSizeV2", "input: 'q_" s "'", "") NODE("get_" s, "QueueDequeueV2", "input: 'q_" s "'", QT)
#define BOXES START BOX("0", "") BOX("1", "box1") BOX("2", "box2")

static const char *const all_boxes[] = { "localhost", "box1", "box2" };
enum { N_BOXES = 3 };

static const char *named(const char *what, int box)
{
  static char text[32];
  snprintf(text, sizeof text, "%s_%d", what, box);
  return text;
}

static void fill_boxes(tn_session *s)
{
  for (int b = 0; b < N_BOXES; b++) {
    CHECK_INT(bk_target(s, named("set", b), 10.f + (float)b), TN_OK);
    CHECK_INT(bk_target(s, named("put", b), 20.f + (float)b), TN_OK);
  }
}

static void check_box(tn_session *s, int b, bool is_new)
{
  if (is_new) {
    bk_step read = { .session = s, .fetch = named("read", b) };
    CHECK_STATUS(bk_run(&read), TN_FAILED_PRECONDITION, &read.err); /* S-RST-10 */
    CHECK_CONTAINS(tn_error_message(&read.err), "state");
    bk_done(&read);
    CHECK_DOUBLE(bk_fetch(s, named("size", b)), 0, 0);
    CHECK_INT(bk_target(s, named("set", b), 5), TN_OK);
    CHECK_DOUBLE(bk_fetch(s, named("read", b)), 5, 0);
    return;
  }
  CHECK_DOUBLE(bk_fetch(s, named("read", b)), 10 + b, 0);
  CHECK_DOUBLE(bk_fetch(s, named("size", b)), 1, 0);
  CHECK_DOUBLE(bk_fetch(s, named("get", b)), 20 + b, 0);
}

static void end_boxes(ts *t)
{
  CHECK_OK(tn_reset(t->options, all_boxes, N_BOXES, &t->err), &t->err);
  ts_fini(t);
}

/* Two old sessions fill the boxes; `is_new` tells which boxes a later session finds empty. */
/* S-RST-01, S-RST-06 to S-RST-11, S-RST-16, S-RST-17, P-42, P-43 */
static void reset_state__listed_containers_are_new(void)
{
  static const struct {
    const char *list[3];
    size_t n;
    bool is_new[N_BOXES];
  } cases[] = {
    { { NULL }, 0, { true, false, false } },
    { { "box1" }, 1, { false, true, false } },
    { { "localhost" }, 1, { true, false, false } },
    { { "box2", "localhost" }, 2, { true, false, true } },
    { { "box1", "box1" }, 2, { false, true, false } },
    { { "no such box" }, 1, { false, false, false } },
    { { "no such box", "box2" }, 2, { false, false, true } },
    { { "localhost", "box1", "box2" }, 3, { true, true, true } },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t;
    bk_open(&t, false, BOXES);
    tn_session *second = bk_session(&t);
    fill_boxes(second);
    CHECK_DOUBLE(bk_fetch(t.session, "read_1"), 11, 0);
    CHECK_OK(tn_reset(t.options, cases[i].list, cases[i].n, &t.err), &t.err);
    CHECK_INT(bk_fails(t.session, "read_1"), TN_CANCELLED); /* S-RST-02, S-RST-04: whichever containers were listed */
    CHECK_INT(bk_target(second, "set_1", 1), TN_CANCELLED);
    tn_session *young = bk_session(&t);
    for (int b = 0; b < N_BOXES; b++) check_box(young, b, cases[i].is_new[b]);
    CHECK_OK(tn_session_close(second, &t.err), &t.err); /* S-RST-05 */
    tn_session_destroy(second);
    CHECK_DOUBLE(bk_fetch(young, "read_2"), cases[i].is_new[2] ? 5 : 12, 0);
    tn_session_destroy(young);
    end_boxes(&t);
  }
}

/* The default container and all others, whatever is listed in addition to the flag. */
static void reset_state__all_containers_are_new(void) /* P-42 */
{
  static const char *const list[] = { "box1", "no such box" };
  for (size_t n = 0; n <= 2; n++) {
    ts t;
    tn_bool found[] = { 7, 7, 7 };
    bk_open(&t, false, BOXES);
    fill_boxes(t.session);
    CHECK_OK(tn_reset_containers(t.options, list, n, TN_RESET_ALL, found, &t.err), &t.err);
    CHECK_INT(found[0], n > 0 ? 1 : 7);
    CHECK_INT(found[1], n > 1 ? 0 : 7);
    CHECK_INT(bk_fails(t.session, "read_1"), TN_CANCELLED);
    tn_session *young = bk_session(&t);
    for (int b = 0; b < N_BOXES; b++) check_box(young, b, true);
    tn_session_destroy(young);
    CHECK_OK(tn_reset_containers(t.options, NULL, 0, TN_RESET_ALL, NULL, &t.err), &t.err); /* no users are left */
    ts_fini(&t);
  }
}

static void reset_state__unused_names_are_reported(void) /* P-42 */
{
  static const char *const list[] = { "box2", "box", "localhost", "", "<session>", "box22" };
  static const tn_bool wanted[] = { 1, 0, 1, 1, 0, 0 };
  enum { N = sizeof wanted };
  ts t;
  tn_bool found[N];
  bk_open(&t, false, BOXES);
  fill_boxes(t.session);
  CHECK_STATUS(tn_reset_containers(t.options, list, N, 2, found, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "unknown flags 0x2");
  CHECK_DOUBLE(bk_fetch(t.session, "read_1"), 11, 0); /* the call had no effect */
  CHECK_OK(tn_reset_containers(t.options, list, N, 0, found, &t.err), &t.err);
  for (size_t i = 0; i < N; i++) CHECK_MSG(found[i] == wanted[i], "'%s' is %d", list[i], found[i]);
  tn_session *young = bk_session(&t);
  for (int b = 0; b < N_BOXES; b++) check_box(young, b, b != 1);
  tn_session_destroy(young);
  end_boxes(&t);
}

static void reset_state__isolated_sessions_have_their_own(void) /* S-RST-02, S-RST-18, S-RST-19 */
{
  ts t, own;
  bk_open(&t, false, BOXES);
  bk_open(&own, true, BOXES);
  tn_session *second = bk_session(&own);
  fill_boxes(t.session);
  for (int b = 0; b < N_BOXES; b++) check_box(own.session, b, true);
  for (int b = 0; b < N_BOXES; b++) check_box(second, b, true);
  for (int b = 0; b < N_BOXES; b++) check_box(t.session, b, false);
  const char *none = "no such box";
  CHECK_OK(tn_reset(t.options, &none, 1, &t.err), &t.err); /* also closes them */
  CHECK_INT(bk_fails(own.session, "read_0"), TN_CANCELLED);
  CHECK_INT(bk_fails(second, "read_0"), TN_CANCELLED);
  tn_session_destroy(second);
  ts_fini(&own);
  end_boxes(&t);
}

/* ---- access by old steps ---- */

/* A kernel continues while its session is reset. `listed`: its container is listed. P-43 */
static void late_kernel(bool listed)
{
  register_ops();
  ts t;
  const char *box = listed ? "box" : "no such box", *last = "box";
  bk_open(&t, false, START NODE("late", "TestNumberLate", "input: 'begun'",
                                TEXT_ATTR("container", "box") TEXT_ATTR("shared_name", "n"))
                         NODE("n", "TestNumber", "input: 'x'", TEXT_ATTR("container", "box")));
  for (int i = 1; i <= 5; i++) CHECK_DOUBLE(bk_fetch(t.session, "n"), i, 0);
  bk_step s = { .session = t.session, .fetch = "late" };
  bk_start_late(&s);
  CHECK(ts_wait_at_gate(1)); /* it has counted to 6 */
  CHECK_OK(tn_reset(t.options, &box, 1, &t.err), &t.err);
  CHECK(!atomic_load(&s.ended)); /* S-RST-03 */
  tn_session *young = bk_session(&t);
  CHECK_DOUBLE(bk_fetch(young, "n"), listed ? 1 : 7, 0);
  CHECK_INT(atomic_load(&numbers), listed ? 2 : 1); /* S-RST-20: nothing is freed under the kernel */
  ts_open_gate();
  CHECK_STATUS(bk_join(&s), TN_CANCELLED, &s.err);
  CHECK_CONTAINS(tn_error_message(&s.err), "closed");
  bk_done(&s);
  CHECK_INT(atomic_load(&late_value), listed ? 7 : 8); /* S-RST-06, S-RST-07 */
  CHECK_DOUBLE(bk_fetch(young, "n"), listed ? 2 : 9, 0);
  tn_session_destroy(t.session);
  t.session = NULL;
  CHECK_INT(atomic_load(&numbers), 1); /* the old generation is freed with its last user */
  tn_session_destroy(young);
  CHECK_INT(atomic_load(&numbers), 1);
  CHECK_OK(tn_reset(t.options, &last, 1, &t.err), &t.err);
  CHECK_INT(atomic_load(&numbers), 0);
  ts_fini(&t);
}

static void reset_state__old_steps_keep_the_old_generation(void) { late_kernel(true); }   /* S-RST-06, S-RST-20 */
static void reset_state__old_steps_access_unlisted_containers(void) { late_kernel(false); } /* S-RST-07 */

/* A kernel first uses its container after a new session has recreated it. */
static void late_first_use(uint32_t flags)
{
  register_ops();
  ts t;
  const char *box = "box";
  bk_open(&t, false, START NODE("late", "TestNumberAfter", "input: 'begun'",
                                TEXT_ATTR("container", "box") TEXT_ATTR("shared_name", "n"))
                         NODE("n", "TestNumber", "input: 'x'", TEXT_ATTR("container", "box")));
  bk_step s = { .session = t.session, .fetch = "late" };
  bk_start_late(&s);
  CHECK(ts_wait_at_gate(1));
  CHECK_OK(tn_reset_containers(t.options, &box, flags == 0, flags, NULL, &t.err), &t.err);
  CHECK(!atomic_load(&s.ended));
  tn_session *young = bk_session(&t);
  CHECK_DOUBLE(bk_fetch(young, "n"), 1, 0);
  CHECK_DOUBLE(bk_fetch(young, "n"), 2, 0);
  ts_open_gate();
  CHECK_INT(bk_join(&s), TN_CANCELLED);
  bk_done(&s);
  CHECK_INT(atomic_load(&late_value), 1);
  CHECK_DOUBLE(bk_fetch(young, "n"), 3, 0);
  tn_session_destroy(young);
  CHECK_OK(tn_reset(t.options, &box, 1, &t.err), &t.err);
  ts_fini(&t);
  CHECK_INT(atomic_load(&numbers), 0);
}

static void reset_state__late_first_uses_have_their_own_container(void) /* S-RST-06, S-RST-20, P-43 */
{
  late_first_use(0);
}

static void reset_state__late_first_uses_are_separate_after_a_reset_of_all(void) /* P-42, P-43 */
{
  late_first_use(TN_RESET_ALL);
}

/* The steps of each generation's sessions continue; some sessions are deleted in a different order
 * than they were created. */
static void reset_state__generations_live_side_by_side(void) /* S-RST-06, S-RST-20 */
{
  enum { N = 6 };
  static const int order[N] = { 3, 0, 5, 1, 4, 2 };
  register_ops();
  ts t;
  bk_open(&t, false, START NODE("late", "TestNumberLate", "input: 'begun'", TEXT_ATTR("shared_name", "n")));
  tn_session *sessions[N];
  bk_step steps[N];
  for (int i = 0; i < N; i++) {
    sessions[i] = bk_session(&t);
    steps[i] = (bk_step){ .session = sessions[i], .fetch = "late" };
    bk_start_late(&steps[i]);
    CHECK(ts_wait_at_gate(i + 1));
    CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
  }
  CHECK_INT(atomic_load(&numbers), N);
  ts_open_gate();
  for (int i = 0; i < N; i++) {
    CHECK_INT(bk_join(&steps[i]), TN_CANCELLED);
    bk_done(&steps[i]);
  }
  CHECK_INT(atomic_load(&late_value), 2);
  for (int i = 0; i < N; i++) {
    tn_session_destroy(sessions[order[i]]);
    CHECK_INT(atomic_load(&numbers), N - 1 - i);
  }
  ts_fini(&t);
}

/* ---- names and types ---- */

static void reset_state__free_a_name_for_another_type(void) /* S-RST-21 */
{
#define AT TEXT_ATTR("shared_name", "thing") TEXT_ATTR("container", "types")
  static const char *const fetches[] = { "size", "is" };
  ts t;
  const char *box = "types";
  bk_open(&t, false, START NODE("q", "FIFOQueueV2", "", QT SCALARS AT) NODE("size", "QueueSizeV2", "input: 'q'", "")
          NODE("v", "VarHandleOp", "", DT SHAPE("") AT) NODE("set", "AssignVariableOp", "input: 'v' input: 'x'", DT)
          NODE("is", "VarIsInitializedOp", "input: 'v'", ""));
  for (int i = 0; i < 4; i++) {
    tn_session *s = bk_session(&t);
    if (i % 2) CHECK_INT(bk_target(s, "set", 1), TN_OK);
    CHECK_INT(bk_fails(s, fetches[i % 2]), TN_OK);
    bk_step wrong = { .session = s, .fetch = i % 2 ? "size" : NULL, .target = i % 2 ? NULL : "set" };
    CHECK_STATUS(bk_run(&wrong), TN_INVALID_ARGUMENT, &wrong.err);
    CHECK_CONTAINS(tn_error_message(&wrong.err), "'thing'");
    bk_done(&wrong);
    CHECK_OK(tn_reset(t.options, &box, 1, &t.err), &t.err);
    tn_session_destroy(s);
  }
  ts_fini(&t);
}

/* ---- the choice of a factory ---- */

static tn_bool accept(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  (void)options;
  return 1;
}

static tn_status new_thing(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                           tn_error *err)
{
  (void)self;
  (void)options;
  (void)err;
  *out = tn_alloc(1);
  return *out == NULL ? TN_RESOURCE_EXHAUSTED : TN_OK;
}

static void destroy_thing(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

/* A separate runtime without a reset. */
static void reset_state__is_of_one_factory(void) /* S-RST-01, S-RST-12, S-RST-13, S-REG-05 */
{
  static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE, .name = "test.keeps",
                                              .new_session = new_thing, .accepts_options = accept,
                                              .destroy_session = destroy_thing };
  ts t, other;
  bk_open(&t, false, BOXES);
  fill_boxes(t.session);
  REQUIRE_OK(tn_runtime_register(factory.name, &factory, &t.err), &t.err);
  ts_init(&other, 1);
  REQUIRE_OK(tn_session_options_set_target(other.options, factory.name, &other.err), &other.err);
  tn_graph_unref(other.graph);
  other.graph = tn_graph_ref(t.graph);
  ts_start(&other);
  CHECK_STATUS(tn_reset(other.options, NULL, 0, &t.err), TN_UNIMPLEMENTED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "test.keeps");
  for (int b = 0; b < N_BOXES; b++) check_box(t.session, b, false); /* other factories are unaffected */
  CHECK_INT(bk_target(other.session, "set_0", 77), TN_OK);
  CHECK_DOUBLE(bk_fetch(t.session, "read_0"), 10, 0); /* S-RST-18: containers belong to the factory */
  CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
  CHECK_INT(bk_fails(t.session, "read_0"), TN_CANCELLED);
  CHECK_DOUBLE(bk_fetch(other.session, "read_0"), 77, 0);
  ts_fini(&other);
  REQUIRE_OK(tn_runtime_unregister(factory.name, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_target(t.options, "nowhere", &t.err), &t.err);
  CHECK_STATUS(tn_reset(t.options, NULL, 0, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_STATUS(tn_reset(NULL, NULL, 0, &t.err), TN_INVALID_ARGUMENT, &t.err);
  REQUIRE_OK(tn_session_options_set_target(t.options, ts_runtime(), &t.err), &t.err);
  end_boxes(&t);
  CHECK_INT(tn_reset(NULL, all_boxes, N_BOXES, NULL), TN_INVALID_ARGUMENT);
}

/* ---- several threads, and calls from kernels ---- */

static void reset_state__works_inside_of_a_kernel(void) /* S-RST-15, S-THR-07 */
{
  register_ops();
  ts t, other;
  bk_open(&other, false, START);
  bk_open(&t, false, START NODE("reset", "TestReset", "input: 'x'", "") NODE("nested", "TestNested", "input: 'x'", "")
          NODE("after", "TestCount", "input: 'reset'", SLOT(3)));
  inside = &t;
  CHECK_DOUBLE(bk_fetch(t.session, "nested"), 1, 0); /* a step in the session being reset */
  inside = &other;
  CHECK_DOUBLE(bk_fetch(t.session, "nested"), 1, 0);
  CHECK_INT(ts_counted(BEGUN), 2);
  inside = &t;
  CHECK_INT(bk_fails(t.session, "after"), TN_CANCELLED);
  CHECK_INT(ts_counted(3), 0);
  CHECK_INT(bk_fails(other.session, "begun"), TN_CANCELLED);
  ts_fini(&other);
  ts_fini(&t);
}

static atomic_int resets_begun, resets_ended, go_on;

static void *reset_again(void *arg)
{
  ts *t = arg;
  while (atomic_load(&go_on)) {
    atomic_fetch_add(&resets_begun, 1);
    CHECK_OK(tn_reset(t->options, NULL, 0, NULL), NULL);
    atomic_fetch_add(&resets_ended, 1);
    ts_sleep_ms(1);
  }
  return NULL;
}

/* The session may be closed before it has its graph. */
static tn_session *session_amid_resets(ts *t)
{
  tn_session *s = NULL;
  CHECK_INT(tn_session_create(t->options, &s, NULL), TN_OK);
  tn_status st = tn_session_set_graph(s, t->graph, NULL);
  CHECK(st == TN_OK || st == TN_CANCELLED);
  return s;
}

/* A session created while resets are running is either closed or sees no older state. A value set
 * before a reset began is never read after that reset ended. */
static void reset_state__sessions_are_before_or_after_it(void) /* S-RST-14, S-RST-15 */
{
  enum { THREADS = 3, ROUNDS = 300 };
  ts t;
  pthread_t threads[THREADS];
  int usable = 0, wrong = 0, stale = 0;
  bk_open(&t, false, BOXES);
  atomic_store(&go_on, 1);
  for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, reset_again, &t), 0);
  for (int i = 0; i < ROUNDS; i++) {
    tn_session *old = session_amid_resets(&t);
    bk_target(old, "set_0", (float)i);
    int begun = atomic_load(&resets_begun);
    int64_t end = ts_now_ms() + 10000;
    while (i % 2 && atomic_load(&resets_ended) <= begun + THREADS && ts_now_ms() < end)
      ts_sleep_ms(1); /* one reset began after `begun` was read, and has ended */
    tn_session *young = session_amid_resets(&t);
    bk_step read = { .session = young, .fetch = "read_0" };
    tn_status st = bk_run(&read);
    wrong += st != TN_OK && st != TN_CANCELLED && st != TN_FAILED_PRECONDITION;
    stale += st == TN_OK && (i % 2 || read.value != (float)i);
    usable += st != TN_CANCELLED;
    bk_done(&read);
    tn_session_destroy(i % 3 ? old : young);
    tn_session_destroy(i % 3 ? young : old);
  }
  atomic_store(&go_on, 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_INT(wrong, 0);
  CHECK_INT(stale, 0);
  CHECK_MSG(usable > 0, "no session was usable");
  end_boxes(&t);
}

TAP_MAIN(
  TAP_TEST(reset_state__listed_containers_are_new),
  TAP_TEST(reset_state__all_containers_are_new),
  TAP_TEST(reset_state__unused_names_are_reported),
  TAP_TEST(reset_state__isolated_sessions_have_their_own),
  TAP_TEST(reset_state__old_steps_keep_the_old_generation),
  TAP_TEST(reset_state__old_steps_access_unlisted_containers),
  TAP_TEST(reset_state__late_first_uses_have_their_own_container),
  TAP_TEST(reset_state__late_first_uses_are_separate_after_a_reset_of_all),
  TAP_TEST(reset_state__generations_live_side_by_side),
  TAP_TEST(reset_state__free_a_name_for_another_type),
  TAP_TEST(reset_state__is_of_one_factory),
  TAP_TEST(reset_state__works_inside_of_a_kernel),
  TAP_TEST(reset_state__sessions_are_before_or_after_it))
