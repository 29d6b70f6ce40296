/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norms with activations, over a tensor or a concatenation: computed in one pass over the
 * columns, they have the same bits as the separate ops, on each kind of vectors and for any
 * division of the rows. */
#include <ops/kernel/elements/vectors.h>

#include "tests/support/elementwise_kit.h"

#define MAX_PARTS 4

/* Rows x the widths of the parts, then ops: a capital M or A has the tensor as its second
 * operand. */
typedef struct chain {
  const char *ops; /* m: Mul, a: AddV2, b: BiasAdd, r: Relu, 6: Relu6 */
  int64_t rows, widths[MAX_PARTS];
} chain;

static tn_output add_op(ts *t, char op, int i, tn_output x, int64_t columns)
{
  char name[24], by[24];
  snprintf(name, sizeof name, "op%d", i);
  snprintf(by, sizeof by, "by%d", i);
  if (op == 'r') return ts_op1(t->graph, "Relu", name, x);
  if (op == '6') return ts_op1(t->graph, "Relu6", name, x);
  tn_output y = constant(t->graph, by, TN_FLOAT, 1, &columns);
  switch (op) {
  case 'm': return ts_op2(t->graph, "Mul", name, x, y);
  case 'M': return ts_op2(t->graph, "Mul", name, y, x);
  case 'a': return ts_op2(t->graph, "AddV2", name, x, y);
  case 'A': return ts_op2(t->graph, "Add", name, y, x);
  default: return ts_op2(t->graph, "BiasAdd", name, x, y);
  }
}

/* Runs a graph with the same constants and inputs each time on a runtime, and returns the
 * result. */
static tn_tensor *compute(const chain *c, const char *runtime, bool off)
{
  ts t;
  tn_output parts[MAX_PARTS], x;
  tn_tensor *in[MAX_PARTS], *out = NULL;
  const char *names[] = { "x0", "x1", "x2", "x3" }, *fetch[1];
  size_t n = 0;
  int64_t columns = 0;
  char last[24];
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_target(t.options, runtime, &t.err), &t.err);
  if (off) REQUIRE_OK(tn_session_options_set_string(t.options, "disable_passes", "elementwise", &t.err), &t.err);
  seed = 77;
  for (; n < MAX_PARTS && c->widths[n] > 0; n++) {
    parts[n] = placeholder(t.graph, names[n], TN_FLOAT, 2, (int64_t[]){ -1, c->widths[n] });
    in[n] = numbers(TN_FLOAT, 2, (int64_t[]){ c->rows, c->widths[n] });
    columns += c->widths[n];
  }
  x = n == 1 ? parts[0] : concat(t.graph, "all", parts, n, 1, false);
  for (int i = 0; c->ops[i] != 0; i++) x = add_op(&t, c->ops[i], i, x, columns);
  snprintf(last, sizeof last, "op%zu", strlen(c->ops) - 1);
  fetch[0] = last;
  ts_start(&t);
  for (int step = 0; step < 2; step++) {
    tn_tensor_unref(out);
    tn_status st = tn_session_run(t.session, NULL, names, in, n, fetch, &out, 1, NULL, 0, NULL, &t.err);
    REQUIRE_OK(st, &t.err);
  }
  for (size_t i = 0; i < n; i++) tn_tensor_unref(in[i]);
  ts_fini(&t);
  return out;
}

static const chain chains[] = {
  { "mar", 36, { 256, 32, 32, 32 } },  { "mar", 36, { 640 } },           { "ma6", 9, { 64, 17, 33 } },
  { "MAr", 600, { 100 } },             { "MA6", 600, { 37, 64 } },       { "ar", 50, { 70 } },
  { "mr", 50, { 70, 30 } },            { "ma", 144, { 96, 32 } },        { "br", 20, { 128 } },
  { "mb6", 20, { 16, 16, 16, 16 } },   { "r", 40, { 48, 48 } },          { "a", 40, { 65, 31 } },
  { "m", 40, { 65, 31 } },             { "mar", 1, { 128, 64 } },        { "mar", 1, { 128 } },
  { "mar", 40, { 3, 64 } },            { "mar", 40, { 5 } },             { "mar", 3000, { 8, 9, 10 } },
  { "am", 30, { 80 } },                { "rm", 30, { 80, 16 } },         { "mmar", 30, { 80, 16 } },
  { "aar", 30, { 80, 16 } },           { "marr", 30, { 80, 16 } },       { "mar6", 30, { 80, 16 } },
  { "marm", 30, { 80, 16 } },          { "mar", 70, { 9003, 997 } },
};

static void affine__has_the_bits_of_the_separate_ops(void)
{
  for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
    for (int kind = TN__BASELINE; kind < TN__VECTORS; kind++) {
      if (tn__vectors_limit(kind) != kind) continue;
      tn_tensor *apart = compute(&chains[i], "direct", true), *one = compute(&chains[i], "direct", false);
      CHECK_MSG(same(apart, one), "chain %zu (%s) with vectors %d", i, chains[i].ops, kind);
      tn_tensor_unref(one);
      tn_tensor_unref(apart);
    }
  tn__vectors_limit(TN__VECTORS);
}

static void affine__may_be_shared_by_threads(void)
{
  for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
    tn_tensor *alone = compute(&chains[i], "direct", true), *shared = compute(&chains[i], "threaded:threads=3", false);
    CHECK_MSG(same(alone, shared), "chain %zu (%s)", i, chains[i].ops);
    tn_tensor_unref(shared);
    tn_tensor_unref(alone);
  }
}

TAP_MAIN(TAP_TEST(affine__has_the_bits_of_the_separate_ops), TAP_TEST(affine__may_be_shared_by_threads))
