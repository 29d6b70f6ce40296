/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "tests/support/tasks_kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

atomic_int ts_breaks, ts_stays, ts_goes, ts_spoilt, ts_at_once, ts_most_at_once;
_Atomic double ts_speed = 1;
tn_session *ts_nested;

typedef struct work {
  int64_t n, ns, slot;
} work;

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  work *w = tn_alloc(sizeof *w);
  if (w == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a kernel");
  tn_status st = tn_operation_attr_int(op, "n", &w->n, err);
  if (st == TN_OK) st = tn_operation_attr_int(op, "ns", &w->ns, err);
  if (st == TN_OK) st = tn_operation_attr_int(op, "slot", &w->slot, err);
  if (st == TN_OK) *state = w;
  else tn_free(w);
  return st;
}

static void destroy(void *state) { tn_free(state); }

static tn_status prepare_out(tn_prepare_ctx *ctx, tn_error *err)
{
  const work *w = ctx->state;
  ctx->cost_ns = (double)w->ns;
  return tn_prepare_output(ctx, 0, &w->n, 1, err);
}

static tn_status prepare_scan(tn_prepare_ctx *ctx, tn_error *err)
{
  const work *w = ctx->state;
  ctx->scratch_bytes = (size_t)w->n * sizeof(float);
  return prepare_out(ctx, err);
}

static tn_status prepare_work(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = prepare_out(ctx, err);
  if (st == TN_OK) st = tn_prepare_in_place(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_in_place(ctx, 0, 1, err) : st;
}

static tn_status prepare_make(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = prepare_out(ctx, err);
  return st == TN_OK ? tn_prepare_given(ctx, 0, err) : st;
}

/* ---- time, and detection of concurrent writes ---- */

static int64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void begin(void)
{
  int now = atomic_fetch_add(&ts_at_once, 1) + 1, most = atomic_load(&ts_most_at_once);
  while (now > most && !atomic_compare_exchange_weak(&ts_most_at_once, &most, now)) continue;
}

static void end(void) { atomic_fetch_sub(&ts_at_once, 1); }

static void spend(const tn_kernel_ctx *ctx)
{
  const work *w = ctx->state;
  int64_t until = now_ns() + (int64_t)((double)w->ns * atomic_load(&ts_speed));
  while (w->ns > 0 && now_ns() < until && !tn_kernel_cancelled(ctx)) continue;
}

static uint32_t sum_of(const tn_view *v)
{
  uint32_t sum = 7;
  if (v->dtype != TN_FLOAT) return sum;
  for (int64_t i = 0; i < v->count; i++) {
    uint32_t bits;
    memcpy(&bits, (const float *)v->data + i, sizeof bits);
    sum = (sum << 5 | sum >> 27) ^ bits;
  }
  return sum;
}

static float at(const tn_view *v, int64_t i) { return v->count == 0 ? 1 : ((const float *)v->data)[i % v->count]; }

static float mix(float a, float b, int64_t i) { return 0.5f * a - 0.25f * b + 0.125f * (float)(i % 7) + 0.01f; }

/* At the end, inputs must be unchanged, except for one whose memory the output reuses; so must
 * the output. */
static tn_status work_on(tn_kernel_ctx *ctx, float *out)
{
  const tn_view *x = ctx->inputs[0], *y = ctx->inputs[ctx->n_inputs - 1];
  uint32_t before[2] = { sum_of(x), sum_of(y) };
  int64_t n = ((const work *)ctx->state)->n;
  for (int64_t i = 0; i < n; i++) out[i] = mix(at(x, i), at(y, i), i);
  const tn_view made = { .data = out, .count = n, .dtype = TN_FLOAT };
  uint32_t after = sum_of(&made);
  spend(ctx);
  if (x->data != out && sum_of(x) != before[0]) atomic_fetch_add(&ts_spoilt, 1);
  if (y->data != out && sum_of(y) != before[1]) atomic_fetch_add(&ts_spoilt, 1);
  if (sum_of(&made) != after) atomic_fetch_add(&ts_spoilt, 1);
  return TN_OK;
}

/* In place, each element may read only its own place: this holds if sizes are equal; otherwise
 * there is a copy. */
static tn_status compute_work(tn_kernel_ctx *ctx)
{
  begin();
  tn_status st = work_on(ctx, ctx->outputs[0]->data);
  end();
  return st;
}

static tn_status compute_scan(tn_kernel_ctx *ctx)
{
  begin();
  float *scratch = ctx->scratch, *out = ctx->outputs[0]->data;
  tn_status st = work_on(ctx, scratch);
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) out[i] = scratch[i];
  end();
  return st;
}

static tn_status compute_tell(tn_kernel_ctx *ctx)
{
  begin();
  const tn_view *x = ctx->inputs[0];
  tn_string *out = ctx->outputs[0]->data;
  tn_status st = TN_OK;
  spend(ctx);
  for (int64_t i = 0; st == TN_OK && i < ctx->outputs[0]->count; i++) {
    char text[64];
    int n = snprintf(text, sizeof text, "a text that is not short, %.9g", (double)at(x, i));
    st = tn_string_set(&out[i], text, (size_t)n, ctx->err);
  }
  end();
  return st;
}

static tn_status compute_hear(tn_kernel_ctx *ctx)
{
  begin();
  const tn_view *x = ctx->inputs[0], *y = ctx->inputs[1];
  float *out = ctx->outputs[0]->data;
  spend(ctx);
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) {
    size_t n;
    const char *text = tn_string_data((const tn_string *)x->data + i % x->count, &n);
    float sum = 0;
    for (size_t k = 0; k < n; k++) sum += (float)text[k];
    out[i] = sum / (float)n + 0.5f * at(y, i);
  }
  end();
  return TN_OK;
}

static tn_status compute_make(tn_kernel_ctx *ctx)
{
  begin();
  tn_tensor *t;
  tn_status st = tn_tensor_create(TN_FLOAT, &((const work *)ctx->state)->n, 1, &t, ctx->err);
  if (st == TN_OK) {
    st = work_on(ctx, tn_tensor_data(t));
    if (st == TN_OK) st = tn_kernel_set_output(ctx, 0, t);
    tn_tensor_unref(t);
  }
  end();
  return st;
}

static tn_status compute_note(tn_kernel_ctx *ctx)
{
  begin();
  int n = atomic_fetch_add(&ts_watched.n_log, 1);
  if (n < (int)(sizeof ts_watched.log / sizeof *ts_watched.log))
    atomic_store(&ts_watched.log[n], (int)((const work *)ctx->state)->slot);
  tn_status st = work_on(ctx, ctx->outputs[0]->data);
  end();
  return st;
}

static tn_status compute_break(tn_kernel_ctx *ctx)
{
  tn_status st = compute_scan(ctx);
  int slot = (int)((const work *)ctx->state)->slot;
  return atomic_load(&ts_breaks) == slot + 1 ? tn_error_set(ctx->err, TN_ABORTED, "broken in slot %d", slot) : st;
}

static tn_status compute_stay(tn_kernel_ctx *ctx)
{
  atomic_fetch_add(&ts_stays, 1);
  while (!atomic_load(&ts_goes) && !tn_kernel_cancelled(ctx)) ts_sleep_ms(1);
  atomic_fetch_sub(&ts_stays, 1);
  if (tn_kernel_cancelled(ctx)) return tn_error_set(ctx->err, TN_CANCELLED, "it was told to stop");
  return compute_scan(ctx);
}

static tn_status compute_nest(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  float *out = ctx->outputs[0]->data;
  const char *feed = "x", *fetch = "sum";
  tn_tensor *x, *y = NULL;
  tn_status st =
      tn_tensor_from_data(TN_FLOAT, in->dims, in->rank, in->data, (size_t)in->count * sizeof(float), &x, ctx->err);
  if (st == TN_OK) st = tn_session_run(ts_nested, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, ctx->err);
  const tn_view all = { .data = y == NULL ? NULL : tn_tensor_data(y), .count = y == NULL ? 0 : tn_tensor_elements(y) };
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) out[i] = at(&all, i);
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  return st;
}

#define ATTRS "n: int = 1; ns: int = 0; slot: int = 0"
#define OP(name_, in_, out_, traits_) \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = in_, .outputs = out_, .attrs = ATTRS, .traits = traits_ }
#define KERNEL(op_, prepare_, compute_)                                                                   \
  {                                                                                                       \
    .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = op_ "_cpu", .rank = TN_RANK_C, \
    .create = create, .destroy = destroy, .prepare = prepare_, .compute = compute_                        \
  }

static void register_once(void)
{
  static const tn_op_def ops[] = {
    OP("TestWork", "x: float, y: float", "z: float", 0),   OP("TestScan", "x: float, y: float", "z: float", 0),
    OP("TestTell", "x: float", "z: string", 0),            OP("TestHear", "x: string, y: float", "z: float", 0),
    OP("TestMake", "x: float", "z: float", 0),             OP("TestNote", "x: float", "z: float", TN_TRAIT_STATEFUL),
    OP("TestBreak", "x: float", "z: float", 0),            OP("TestStay", "x: float", "z: float", 0),
    OP("TestNest", "x: float", "z: float", 0),
  };
  static const tn_kernel_def kernels[] = {
    KERNEL("TestWork", prepare_work, compute_work), KERNEL("TestScan", prepare_scan, compute_scan),
    KERNEL("TestTell", prepare_out, compute_tell),  KERNEL("TestHear", prepare_out, compute_hear),
    KERNEL("TestMake", prepare_make, compute_make), KERNEL("TestNote", prepare_out, compute_note),
    KERNEL("TestBreak", prepare_scan, compute_break), KERNEL("TestStay", prepare_scan, compute_stay),
    KERNEL("TestNest", prepare_out, compute_nest),
  };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "test_tasks", .ops = ops, .n_ops = 9,
                                       .kernels = kernels, .n_kernels = 9 };
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_register_ops(&family, &err), &err);
}

void ts_register_tasks(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_once);
}

tn_output ts_task_op(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y, int n, int ns,
                     int slot)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation *made = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_operation_add_input(b, x);
  if (y.op != NULL) tn_operation_add_input(b, y);
  tn_operation_set_int(b, "n", n);
  tn_operation_set_int(b, "ns", ns);
  tn_operation_set_int(b, "slot", slot);
  REQUIRE_OK(tn_operation_finish(b, &made, &err), &err);
  return (tn_output){ made, 0 };
}

/* ---- random graphs ---- */

static uint32_t draw(uint32_t *seed, uint32_t n)
{
  *seed = *seed * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(*seed >> 8) * n >> 24);
}

size_t ts_random_branches(tn_graph *graph, uint32_t seed, int most_nodes, char fetches[TS_MOST_FETCHES][16])
{
  enum { MOST = 512 };
  static const int sizes[] = { 1, 7, 64, 64, 64, 300, 1000 };
  tn_output floats[MOST], texts[MOST];
  int n_floats = 1, n_texts = 0,
      n_nodes = 2 + (int)draw(&seed, (uint32_t)(most_nodes < MOST - 1 ? most_nodes : MOST - 1));
  const tn_output none = { NULL, 0 };
  uint32_t far = 1 + draw(&seed, 40); /* the usual distance to inputs */
  floats[0] = ts_placeholder(graph, "x", TN_FLOAT);
  for (int i = 0; i < n_nodes; i++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    uint32_t reach = draw(&seed, 8) == 0 || (uint32_t)n_floats < far ? (uint32_t)n_floats : far, kind = draw(&seed, 20);
    tn_output x = floats[(uint32_t)n_floats - 1 - draw(&seed, reach)],
              y = floats[(uint32_t)n_floats - 1 - draw(&seed, reach)];
    int n = sizes[draw(&seed, 7)], ns = draw(&seed, 4) == 0 ? 0 : (int)draw(&seed, 30000), slot = i % TS_SLOTS;
    if (kind < 9) floats[n_floats++] = ts_task_op(graph, "TestWork", name, x, y, n, ns, slot);
    else if (kind < 13) floats[n_floats++] = ts_task_op(graph, "TestScan", name, x, y, n, ns, slot);
    else if (kind < 15) floats[n_floats++] = ts_task_op(graph, "TestMake", name, x, none, n, ns, slot);
    else if (kind < 16) floats[n_floats++] = ts_task_op(graph, "TestNote", name, x, none, n, ns, slot);
    else if (kind < 17) floats[n_floats++] = ts_op1(graph, "Identity", name, x);
    else if (kind < 18 || n_texts == 0) texts[n_texts++] = ts_task_op(graph, "TestTell", name, x, none, n, ns, slot);
    else
      floats[n_floats++] = ts_task_op(graph, "TestHear", name, texts[draw(&seed, (uint32_t)n_texts)], y, n, ns, slot);
  }
  size_t n = 1 + draw(&seed, TS_MOST_FETCHES), got = 0;
  for (size_t i = 0; i < n; i++) {
    int at = n_floats - 1 - (int)draw(&seed, i == 0 || n_floats < 3 ? 1 : (uint32_t)n_floats - 1);
    snprintf(fetches[got++], 16, "%s", tn_operation_name(floats[at].op));
  }
  return got;
}
