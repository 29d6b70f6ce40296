/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting: compatible shapes, and walks that visit the right elements. */
#include <ops/kernel/elements/broadcast.h>
#include <ops/kernel/shapes.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

/* ---- shapes ---- */

typedef struct shape {
  int32_t rank;
  int64_t dims[8];
} shape;

static void check_shapes(shape a, shape b, bool fits, shape wanted)
{
  tn__shape out;
  for (int turn = 0; turn < 2; turn++) {
    CHECK_INT(tn__broadcast_shapes(a.dims, a.rank, b.dims, b.rank, &out), fits);
    if (fits) {
      CHECK_INT(out.rank, wanted.rank);
      for (int32_t i = 0; i < wanted.rank && i < out.rank; i++) CHECK_INT(out.dims[i], wanted.dims[i]);
    }
    shape c = a;
    a = b;
    b = c;
  }
}

static void broadcast__known_shapes(void)
{
  check_shapes((shape){ 0 }, (shape){ 0 }, true, (shape){ 0 });
  check_shapes((shape){ 2, { 2, 3 } }, (shape){ 0 }, true, (shape){ 2, { 2, 3 } });
  check_shapes((shape){ 2, { 2, 3 } }, (shape){ 1, { 3 } }, true, (shape){ 2, { 2, 3 } });
  check_shapes((shape){ 2, { 2, 1 } }, (shape){ 3, { 4, 1, 5 } }, true, (shape){ 3, { 4, 2, 5 } });
  check_shapes((shape){ 2, { 0, 3 } }, (shape){ 1, { 1 } }, true, (shape){ 2, { 0, 3 } });
  check_shapes((shape){ 1, { 0 } }, (shape){ 2, { 3, 1 } }, true, (shape){ 2, { 3, 0 } });
  check_shapes((shape){ 2, { 2, 3 } }, (shape){ 1, { 4 } }, false, (shape){ 0 });
  check_shapes((shape){ 1, { 0 } }, (shape){ 1, { 2 } }, false, (shape){ 0 });
}

static void broadcast__unknown_shapes(void)
{
  check_shapes((shape){ -1 }, (shape){ 1, { 3 } }, true, (shape){ -1 });
  check_shapes((shape){ 1, { -1 } }, (shape){ 1, { 3 } }, true, (shape){ 1, { 3 } }); /* 1 or 3 */
  check_shapes((shape){ 1, { -1 } }, (shape){ 1, { 1 } }, true, (shape){ 1, { -1 } });
  check_shapes((shape){ 1, { -1 } }, (shape){ 1, { -1 } }, true, (shape){ 1, { -1 } });
  check_shapes((shape){ 2, { -1, 4 } }, (shape){ 1, { -1 } }, true, (shape){ 2, { -1, 4 } });
  check_shapes((shape){ 2, { -1, 4 } }, (shape){ 1, { 3 } }, false, (shape){ 0 });
}

static void broadcast__the_message_names_op_and_shapes(void)
{
  tn_error err = TN_ERROR_INIT;
  int64_t a[] = { 2, 3 }, b[] = { 4 };
  CHECK_INT(tn__broadcast_error(&err, "Add", a, 2, b, 1), TN_INVALID_ARGUMENT);
  CHECK_STR(tn_error_message(&err), "Add: shapes [2,3] and [4] do not broadcast");
  tn_error_clear(&err);
}

static void broadcast__shapes_merge(void)
{
  tn__shape s;
  int64_t a[] = { -1, 3 }, b[] = { 2, -1 }, c[] = { 2, 4 };
  tn__shape_unknown(&s);
  CHECK(tn__shape_merge(&s, a, 2));
  CHECK(tn__shape_merge(&s, b, 2));
  CHECK(tn__shape_is_known(s.dims, s.rank));
  CHECK_INT(s.dims[0], 2);
  CHECK_INT(s.dims[1], 3);
  CHECK(!tn__shape_merge(&s, c, 2)); /* nothing has changed */
  CHECK(!tn__shape_merge(&s, c, 1));
  CHECK_INT(s.dims[1], 3);
}

/* ---- walks ---- */

static tn_view view_of(const shape *s)
{
  tn_view v = { .dims = s->dims, .rank = s->rank, .count = 1 };
  for (int32_t i = 0; i < s->rank; i++) v.count *= s->dims[i];
  return v;
}

/* The operand's element for element `at` of the result, by definition. */
static int64_t element_of(const shape *out, const shape *operand, int64_t at)
{
  int64_t r = 0, step = 1;
  for (int32_t i = out->rank - 1, k = operand->rank - 1; i >= 0; i--, k--) {
    int64_t index = at % out->dims[i];
    at /= out->dims[i];
    if (k < 0) continue;
    if (operand->dims[k] != 1) r += index * step;
    step *= operand->dims[k];
  }
  return r;
}

/* An operand's shape: leading dimensions may be missing, others may be 1. */
static shape part_of(const shape *out)
{
  shape s = { 0 };
  int32_t skip = rand() % 3 == 0 ? rand() % (out->rank + 1) : 0;
  for (int32_t i = skip; i < out->rank; i++) s.dims[s.rank++] = rand() % 3 == 0 ? 1 : out->dims[i];
  return s;
}

static void check_walk(const shape *out, const shape *operands, int32_t n)
{
  tn_view views[TN__BROADCAST_OPERANDS];
  const tn_view *pointers[TN__BROADCAST_OPERANDS];
  for (int32_t k = 0; k < n; k++) {
    views[k] = view_of(&operands[k]);
    pointers[k] = &views[k];
  }
  int64_t count = view_of(out).count;
  tn__broadcast b;
  tn__broadcast_merge(&b, out->dims, out->rank, pointers, n);
  REQUIRE_INT(b.count, count);
  if (tn__broadcast_is_flat(&b)) {
    for (int32_t k = 0; k < n && count > 0; k++) CHECK_INT(views[k].count, count);
    return;
  }
  tn__broadcast_plan *plan;
  REQUIRE_OK(tn__broadcast_plan_create(&b, &plan, NULL), NULL);
  for (int turn = 0; turn < 4; turn++) {
    int64_t begin = turn == 0 ? 0 : rand() % (count + 1);
    int64_t end = turn == 0 ? count : begin + rand() % (count - begin + 1), next = begin;
    tn__broadcast_cursor c;
    tn__broadcast_start(&c, plan, begin, end);
    while (tn__broadcast_next(&c)) {
      REQUIRE_INT(c.at, next);
      for (int64_t i = 0; i < c.n; i++)
        for (int32_t k = 0; k < n; k++)
          REQUIRE_INT(c.offsets[k] + i * plan->row_strides[k], element_of(out, &operands[k], c.at + i));
      next += c.n;
    }
    CHECK_INT(next, end);
  }
  tn__broadcast_plan_destroy(plan);
}

static void broadcast__a_walk_visits_every_element(void)
{
  srand(11);
  for (int round = 0; round < 3000; round++) {
    shape out = { .rank = rand() % 7 };
    for (int32_t i = 0; i < out.rank; i++) out.dims[i] = 1 + rand() % 4;
    if (rand() % 20 == 0 && out.rank > 0) out.dims[rand() % out.rank] = 0;
    shape operands[TN__BROADCAST_OPERANDS];
    int32_t n = 1 + rand() % TN__BROADCAST_OPERANDS;
    for (int32_t k = 0; k < n; k++) operands[k] = part_of(&out);
    check_walk(&out, operands, n);
  }
}

static void broadcast__neighbours_are_merged(void)
{
  /* [2,3,4,5] with [4,5]: two dimensions, one of which is a row. */
  shape x = { 4, { 2, 3, 4, 5 } }, y = { 2, { 4, 5 } };
  tn_view vx = view_of(&x), vy = view_of(&y);
  const tn_view *both[] = { &vx, &vy };
  tn__broadcast b;
  tn__broadcast_merge(&b, x.dims, x.rank, both, 2);
  CHECK_INT(b.rank, 2);
  CHECK_INT(b.dims[0], 6);
  CHECK_INT(b.dims[1], 20);
  CHECK_INT(b.strides[0][0], 20);
  CHECK_INT(b.strides[1][0], 0);
}

static void broadcast__254_dimensions(void)
{
  /* 62 dimensions of size 2, broadcast in turn, between dimensions of size 1. */
  int64_t out[TN_MAX_RANK], x[TN_MAX_RANK], y[TN_MAX_RANK];
  for (int32_t i = 0; i < TN_MAX_RANK; i++) {
    bool two = i % 4 == 0 && i / 4 < 62;
    out[i] = two ? 2 : 1;
    x[i] = two && i % 8 == 0 ? 2 : 1;
    y[i] = two && i % 8 != 0 ? 2 : 1;
  }
  tn_view vx = { .dims = x, .rank = TN_MAX_RANK }, vy = { .dims = y, .rank = TN_MAX_RANK };
  const tn_view *both[] = { &vx, &vy };
  tn__broadcast b;
  tn__broadcast_merge(&b, out, TN_MAX_RANK, both, 2);
  CHECK_INT(b.rank, 62);
  CHECK_INT(b.count, INT64_C(1) << 62);
}

static tn_status make_plan(void *arg)
{
  tn__broadcast_plan *plan;
  tn_status st = tn__broadcast_plan_create(arg, &plan, NULL);
  if (st != TN_OK) CHECK_NULL(plan);
  tn__broadcast_plan_destroy(plan);
  return st;
}

static void broadcast__no_memory(void)
{
  shape x = { 3, { 2, 3, 4 } }, y = { 2, { 3, 1 } };
  tn_view vx = view_of(&x), vy = view_of(&y);
  const tn_view *both[] = { &vx, &vy };
  tn__broadcast b;
  tn__broadcast_merge(&b, x.dims, x.rank, both, 2);
  tn_test_oom_sweep(make_plan, &b);
}

/* ---- shape functions of ops ---- */

static tn_output placeholder(tn_graph *g, const char *name, shape s)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(g, "Placeholder", name, 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", s.dims, s.rank);
  CHECK_OK(tn_operation_finish(b, &op, &err), &err);
  tn_error_clear(&err);
  return (tn_output){ op, 0 };
}

/* Infers "op(a, b)"; compatible_only is the attribute incompatible_shape_error of Equal. Returns
 * the status. */
static tn_status infer(const char *op, shape a, shape b, bool compatible_only, shape *out)
{
  tn_graph *g = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_graph_create(&g, &err), &err);
  tn_operation *y = NULL;
  tn_output x0 = placeholder(g, "a", a), x1 = placeholder(g, "b", b);
  tn_operation_builder *builder = tn_operation_begin(g, op, "y", 0);
  tn_operation_add_input(builder, x0);
  tn_operation_add_input(builder, x1);
  if (!compatible_only) tn_operation_set_bool(builder, "incompatible_shape_error", 0);
  tn_status st = tn_operation_finish(builder, &y, &err);
  out->rank = -2;
  if (st == TN_OK) CHECK_OK(tn_output_shape((tn_output){ y, 0 }, out->dims, 8, &out->rank, NULL), NULL);
  tn_error_clear(&err);
  tn_graph_unref(g);
  return st;
}

static void broadcast__ops_infer_their_shape(void)
{
  shape out;
  CHECK_INT(infer("AddV2", (shape){ 2, { -1, 3 } }, (shape){ 1, { 3 } }, true, &out), TN_OK);
  CHECK_INT(out.rank, 2);
  CHECK_INT(out.dims[0], -1);
  CHECK_INT(out.dims[1], 3);
  CHECK_INT(infer("AddV2", (shape){ 2, { -1, 3 } }, (shape){ 1, { 4 } }, true, &out), TN_INVALID_ARGUMENT);
  CHECK_INT(infer("Less", (shape){ -1 }, (shape){ 1, { 4 } }, true, &out), TN_OK);
  CHECK_INT(out.rank, -1);
}

static void broadcast__equal_may_accept_incompatible_shapes(void)
{
  shape out;
  CHECK_INT(infer("Equal", (shape){ 1, { 3 } }, (shape){ 1, { 4 } }, true, &out), TN_INVALID_ARGUMENT);
  CHECK_INT(infer("Equal", (shape){ 1, { 3 } }, (shape){ 1, { 4 } }, false, &out), TN_OK);
  CHECK_INT(out.rank, 0);
  CHECK_INT(infer("NotEqual", (shape){ 2, { 2, 3 } }, (shape){ 1, { 3 } }, false, &out), TN_OK);
  CHECK_INT(out.rank, 2);
  CHECK_INT(infer("Equal", (shape){ 1, { -1 } }, (shape){ 1, { 3 } }, false, &out), TN_OK);
  CHECK_INT(out.rank, -1); /* [3], or a scalar */
  CHECK_INT(infer("Equal", (shape){ 2, { -1, 3 } }, (shape){ 2, { 1, 3 } }, false, &out), TN_OK);
  CHECK_INT(out.rank, 2);
}

TAP_MAIN(
  TAP_TEST(broadcast__known_shapes),
  TAP_TEST(broadcast__unknown_shapes),
  TAP_TEST(broadcast__the_message_names_op_and_shapes),
  TAP_TEST(broadcast__shapes_merge),
  TAP_TEST(broadcast__a_walk_visits_every_element),
  TAP_TEST(broadcast__neighbours_are_merged),
  TAP_TEST(broadcast__254_dimensions),
  TAP_TEST(broadcast__no_memory),
  TAP_TEST(broadcast__ops_infer_their_shape),
  TAP_TEST(broadcast__equal_may_accept_incompatible_shapes))
