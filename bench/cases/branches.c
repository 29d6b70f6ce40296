/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of heavy kernels that cannot divide their work: two parallel chains in one step. Each number that such a
 * kernel computes depends on the previous one. */
#include <bench/bench.h>
#include <stdio.h>
#include <tenon/op.h>

enum { LENGTH = 25000, NODES = 8 };
#define NUMBER_NS 4.0 /* roughly */

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = NUMBER_NS * (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t branch = 0;
  tn_status st = tn_operation_attr_int(op, "branch", &branch, err);
  *state = (void *)(intptr_t)(branch + 1);
  return st;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const float *x = ctx->inputs[0]->data;
  float *y = ctx->outputs[0]->data, last = (float)(intptr_t)ctx->state;
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) y[i] = last = last / 1.5f + x[i];
  return TN_OK;
}

static void register_op(void)
{
  static const tn_op_def op = { .struct_size = TN_OP_DEF_SIZE,
                                .name = "BenchRecur",
                                .inputs = "x: float",
                                .outputs = "y: float",
                                .attrs = "branch: int = 0" };
  static const tn_kernel_def kernel = { .struct_size = TN_KERNEL_DEF_SIZE, .op = "BenchRecur", .device = "CPU",
                                        .name = "recur_c", .rank = TN_RANK_C, .create = create, .prepare = prepare,
                                        .compute = compute };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "bench", .ops = &op, .n_ops = 1,
                                       .kernels = &kernel, .n_kernels = 1 };
  static bool done;
  tn_error err = TN_ERROR_INIT;
  if (done) return;
  bench_check(tn_register_ops(&family, &err), &err, "op");
  done = true;
}

static tn_output node(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y, int branch)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *made;
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  if (x.op == NULL) tn_operation_set_type(b, "dtype", TN_FLOAT);
  else tn_operation_add_input(b, x);
  if (y.op != NULL) tn_operation_add_input(b, y);
  if (branch >= 0) tn_operation_set_int(b, "branch", branch);
  bench_check(tn_operation_finish(b, &made, &err), &err, name);
  return (tn_output){ made, 0 };
}

/* x -> a chain of nodes for each branch -> their sum, "sum". */
static tn_graph *make(int branches)
{
  const tn_output none = { NULL, 0 };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  char name[32];
  bench_check(tn_graph_create(&graph, &err), &err, "graph");
  tn_output x = node(graph, "Placeholder", "x", none, none, -1), sum = none;
  for (int b = 0; b < branches; b++) {
    tn_output at = x;
    for (int i = 0; i < NODES; i++) {
      snprintf(name, sizeof name, "n%d_%d", b, i);
      at = node(graph, "BenchRecur", name, at, none, b);
    }
    snprintf(name, sizeof name, b + 1 < branches ? "sum_%d" : "sum", b);
    sum = b == 0 ? node(graph, "AddV2", name, at, x, -1) : node(graph, "AddV2", name, sum, at, -1);
  }
  return graph;
}

typedef struct stepped {
  tn_session *session;
  tn_callable callable;
  tn_tensor *x;
} stepped;

static void step(void *user)
{
  stepped *s = user;
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_run_callable(s->session, s->callable, &s->x, 1, &out, 1, NULL, &err), &err, "run");
  tn_tensor_unref(out);
}

static void measure(bench *b, const char *name, int branches, const char *limit)
{
  static const char *const feeds[] = { "x" }, *const fetches[] = { "sum" };
  tn_error err = TN_ERROR_INIT;
  double median, p99;
  int64_t n = LENGTH;
  stepped s;
  if (!bench_wants(name)) return;
  register_op();
  tn_graph *graph = make(branches);
  s.session = bench_session(b, graph, 1);
  tn_graph_unref(graph);
  bench_check(tn_session_make_callable(s.session, NULL, feeds, 1, fetches, 1, NULL, 0, &s.callable, &err), &err,
              "callable");
  bench_check(tn_tensor_create(TN_FLOAT, &n, 1, &s.x, &err), &err, "tensor");
  for (int64_t i = 0; i < n; i++) ((float *)tn_tensor_data(s.x))[i] = (float)(i % 100) * 0.01f;
  bench_time(b, 1, step, &s, &median, &p99);
  bench_report(b, name, median * 1e3, p99 * 1e3, "ms", limit);
  tn_tensor_unref(s.x);
  tn_session_destroy(s.session);
}

void bench_branches(bench *b)
{
  measure(b, "branches_1", 1, "");
  measure(b, "branches_2", 2, "threaded: as branches_1");
  measure(b, "branches_4", 4, "threaded: 4 / its threads");
}
