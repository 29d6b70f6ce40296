/* SPDX-License-Identifier: Apache-2.0 */
/* Nested loops, as frames: their results, and a cost of planning that depends on their nodes,
 * and does not grow with each enclosing loop. */
#include "conformance/support/oom.h"
#include "conformance/support/session_kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TEXT = 1 << 19 };

typedef struct text {
  char bytes[MOST_TEXT];
  size_t size;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  t->size += (size_t)vsnprintf(t->bytes + t->size, sizeof t->bytes - t->size, format, args);
  va_end(args);
  REQUIRE(t->size < sizeof t->bytes);
}

#define F "attr { key: 'T' value { type: DT_FLOAT } }"
#define VALUE                                                                                                         \
  "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape " \
  "{ } "                                                                                                              \
  "float_val: %d } } }"

/* Loop `k` of `depth`: while v < limit: v += 1, `length` times; then the inner loop. Loop `odd`
 * has a Merge with a control input, so its body is not simple. */
static void put_loop(text *t, int k, int depth, int length, int limit, int odd)
{
  char input[32] = "x";
  if (k > 1) snprintf(input, sizeof input, "add%d_%d", k - 1, length);
  put(t, "node { name: 'enter%d' op: 'Enter' input: '%s' " F " attr { key: 'frame_name' value { s: 'f%d' } } }\n", k,
      input, k);
  put(t,
      "node { name: 'merge%d' op: 'Merge' input: 'enter%d' input: 'next%d' %s " F
      " attr { key: 'N' value { i: 2 } } }\n",
      k, k, k, k == odd ? "input: '^odd'" : "");
  if (k == odd) put(t, "node { name: 'odd' op: 'Identity' input: 'enter%d' " F " }\n", k);
  put(t, "node { name: 'limit%d' op: 'Const' input: '^merge%d' " VALUE " }\n", k, k, limit);
  put(t, "node { name: 'less%d' op: 'Less' input: 'merge%d' input: 'limit%d' " F " }\n", k, k, k);
  put(t, "node { name: 'cond%d' op: 'LoopCond' input: 'less%d' }\n", k, k);
  put(t, "node { name: 'switch%d' op: 'Switch' input: 'merge%d' input: 'cond%d' " F " }\n", k, k, k);
  put(t, "node { name: 'add%d_0' op: 'Identity' input: 'switch%d:1' " F " }\n", k, k);
  put(t, "node { name: 'one%d' op: 'Const' input: '^add%d_0' " VALUE " }\n", k, k, 1);
  for (int i = 1; i <= length; i++)
    put(t, "node { name: 'add%d_%d' op: 'AddV2' input: 'add%d_%d' input: 'one%d' " F " }\n", k, i, k, i - 1, k);
  if (k < depth) put_loop(t, k + 1, depth, length, limit, odd);
  put(t, "node { name: 'next%d' op: 'NextIteration' input: '", k);
  if (k < depth) put(t, "exit%d", k + 1);
  else put(t, "add%d_%d", k, length);
  put(t, "' " F " }\nnode { name: 'exit%d' op: 'Exit' input: 'switch%d' " F " }\n", k, k);
}

static void open_nest(ts *t, int level, int depth, int length, int limit, int odd)
{
  text *source = calloc(1, sizeof *source);
  REQUIRE_PTR(source);
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  put(source, "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n");
  put_loop(source, 1, depth, length, limit, odd);
  ts_init(t, level);
  REQUIRE_OK(tn_graph_import(t->graph, source->bytes, source->size, &options, &t->err), &t->err);
  ts_start(t);
  free(source);
}

/* The result of the innermost loop is at least its limit, so every enclosing loop ends, too. */
static float expected(float x, int depth, int length, int limit)
{
  while (x < (float)limit) {
    x += (float)length;
    if (depth > 1) x = expected(x, depth - 1, length, limit);
  }
  return x;
}

static void nested_loops__compute_at_any_depth(void) /* S-EXE-13, S-EXE-14 */
{
  FOR_LEVELS(level)
  {
    for (int depth = 1; depth <= 12; depth++)
      for (int odd = 0; odd <= depth; odd++) {
        ts t;
        open_nest(&t, level, depth, 3, 20, odd);
        for (int x = 0; x <= 24; x += 8)
          CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", (float)x }), "exit1"), expected((float)x, depth, 3, 20), 0);
        ts_fini(&t);
      }
  }
}

/* Allocations measure the amount of planning, whatever else the machine does. */
static double planning(int depth, int length, int odd)
{
  ts t;
  static const char *const feed = "x", *const fetch = "exit1";
  tn_callable callable;
  open_nest(&t, 1, depth, length, 20, odd);
  uint64_t before = tn_test_allocations();
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, &feed, 1, &fetch, 1, NULL, 0, &callable, &t.err), &t.err);
  double n = (double)(tn_test_allocations() - before);
  ts_fini(&t);
  return n;
}

static void nested_loops__are_planned_once(void)
{
  planning(1, 3, 0); /* objects made once per process */
  double four = planning(4, 30, 0), twelve = planning(12, 30, 0), many = planning(48, 30, 0);
  CHECK_MSG(twelve < 4 * four, "12 loops: %.0f allocations, 4: %.0f", twelve, four);
  CHECK_MSG(many < 5 * twelve, "48 loops: %.0f allocations, 12: %.0f", many, twelve);
  double odd = planning(48, 30, 48); /* found last */
  CHECK_MSG(odd < 20 * many, "48 loops, the innermost with a control input: %.0f allocations, without: %.0f", odd,
            many);
}

TAP_MAIN(TAP_TEST(nested_loops__compute_at_any_depth), TAP_TEST(nested_loops__are_planned_once))
