/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that a test can observe (session_kit.h). A kernel's state is its slot. */
#include "conformance/support/session_kit.h"

#include <pthread.h>

ts_watch ts_watched;

void ts_watch_reset(void)
{
  for (int i = 0; i < TS_SLOTS; i++) {
    atomic_store(&ts_watched.count[i], 0);
    atomic_store(&ts_watched.created[i], 0);
    atomic_store(&ts_watched.destroyed[i], 0);
    atomic_store(&ts_watched.step_id[i], 0);
    atomic_store(&ts_watched.thread[i], 0);
    atomic_store(&ts_watched.input[i], 0);
  }
  atomic_store(&ts_watched.n_log, 0);
  atomic_store(&ts_watched.at_gate, 0);
  atomic_store(&ts_watched.gate, 0);
  atomic_store(&ts_watched.passed, 0);
  atomic_store(&ts_watched.live_bytes, 0);
}

tn_output ts_open_watched(ts *t, int level)
{
  ts_watch_reset();
  ts_init(t, level);
  return ts_placeholder(t->graph, "in", TN_FLOAT);
}

uintptr_t ts_this_thread(void)
{
  static _Thread_local char own;
  return (uintptr_t)&own;
}

int ts_counted(int slot) { return atomic_load(&ts_watched.count[slot]); }

bool ts_wait_at_gate(int n)
{
  for (int64_t end = ts_now_ms() + 10000; ts_now_ms() < end; ts_sleep_ms(1))
    if (atomic_load(&ts_watched.at_gate) >= n) return true;
  return false;
}

void ts_open_gate(void) { atomic_store(&ts_watched.gate, 1); }

/* --- state -------------------------------------------------------------------------------------------------------- */

/* slot + 1, so never NULL. */
static tn_status create_slot(const tn_operation *op, void **state, tn_error *err)
{
  int64_t slot = 0;
  tn_status status = tn_operation_attr_int(op, "slot", &slot, err);
  if (status != TN_OK) return status;
  if (slot < 0 || slot >= TS_SLOTS) return tn_error_set(err, TN_INVALID_ARGUMENT, "slot %d", (int)slot);
  atomic_fetch_add(&ts_watched.created[slot], 1);
  *state = (void *)(intptr_t)(slot + 1);
  return TN_OK;
}

static void destroy_slot(void *state)
{
  if (state)
    atomic_fetch_add(&ts_watched.destroyed[(intptr_t)state - 1], 1);
  else
    FAIL("destroy was called for a state that was never made");
}

static tn_status refuse(const tn_operation *op, void **state, tn_error *err)
{
  (void)op;
  *state = NULL;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "refused by its kernel");
}

static int slot_of(const tn_kernel_ctx *ctx) { return (int)((intptr_t)ctx->state - 1); }

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static tn_status prepare_same(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output_like(ctx, 0, 0, err); }

static tn_status prepare_nothing(tn_prepare_ctx *ctx, tn_error *err)
{
  (void)ctx;
  (void)err;
  return TN_OK;
}

static tn_status prepare_dynamic(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_dynamic(ctx, 0, err); }

/* --- compute ------------------------------------------------------------------------------------------------------ */

static void pass_on(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *y = ctx->outputs[0];
  if (x->count > 0 && x->data != y->data) memcpy(y->data, x->data, (size_t)x->count * tn_dtype_size(x->dtype));
}

static tn_status compute_count(tn_kernel_ctx *ctx)
{
  int slot = slot_of(ctx);
  atomic_fetch_add(&ts_watched.count[slot], 1);
  atomic_store(&ts_watched.step_id[slot], tn_step_id(ctx->step));
  atomic_store(&ts_watched.live_bytes, tn_test_live_bytes());
  atomic_store(&ts_watched.thread[slot], ts_this_thread());
  atomic_store(&ts_watched.input[slot], (uintptr_t)ctx->inputs[0]->data);
  pass_on(ctx);
  return TN_OK;
}

static tn_status compute_effect(tn_kernel_ctx *ctx)
{
  int slot = slot_of(ctx), at = atomic_fetch_add(&ts_watched.n_log, 1);
  atomic_fetch_add(&ts_watched.count[slot], 1);
  if (at < (int)(sizeof(ts_watched.log) / sizeof(ts_watched.log[0]))) atomic_store(&ts_watched.log[at], slot);
  return TN_OK;
}

/* The slot is the status code. */
static tn_status compute_fail(tn_kernel_ctx *ctx)
{
  return tn_error_set(ctx->err, slot_of(ctx) ? slot_of(ctx) : TN_UNKNOWN, "told to fail");
}

static tn_status compute_gate(tn_kernel_ctx *ctx)
{
  atomic_fetch_add(&ts_watched.at_gate, 1);
  while (!atomic_load(&ts_watched.gate)) {
    if (tn_kernel_cancelled(ctx)) return tn_error_set(ctx->err, TN_CANCELLED, "cancelled at the gate");
    ts_sleep_ms(1);
  }
  atomic_fetch_add(&ts_watched.passed, 1);
  pass_on(ctx);
  return TN_OK;
}

static tn_status compute_deaf(tn_kernel_ctx *ctx)
{
  atomic_fetch_add(&ts_watched.at_gate, 1);
  while (!atomic_load(&ts_watched.gate)) ts_sleep_ms(1);
  atomic_fetch_add(&ts_watched.passed, 1);
  pass_on(ctx);
  return TN_OK;
}

static tn_status compute_lazy(tn_kernel_ctx *ctx)
{
  (void)ctx;
  return TN_OK;
}

static tn_status compute_head(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  int64_t n = *(const int32_t *)ctx->inputs[1]->data;
  if (n < 0 || n > x->count)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%d of %d elements", (int)n, (int)x->count);
  tn_status status = tn_kernel_allocate(ctx, 0, &n, 1);
  if (status == TN_OK && n > 0) memcpy(ctx->outputs[0]->data, x->data, (size_t)n * sizeof(float));
  return status;
}

/* --- the family --------------------------------------------------------------------------------------------------- */

#define ATTRS "T: {float}; slot: int = 0"
#define OP(name_, inputs_, outputs_, attrs_, traits_)                                                      \
  {                                                                                                        \
    .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_, \
    .traits = traits_                                                                                      \
  }
#define KERNEL(op_, create_, prepare_, compute_)                                                          \
  {                                                                                                       \
    .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = op_ "_cpu", .rank = TN_RANK_C, \
    .create = create_, .destroy = destroy_slot, .prepare = prepare_, .compute = compute_                  \
  }

static const tn_op_def ops[] = {
  OP("TestCount", "x: T", "y: T", ATTRS, TN_TRAIT_STATEFUL),
  OP("TestEffect", "", "", "slot: int = 0", TN_TRAIT_STATEFUL),
  OP("TestRandom", "x: T", "y: T", ATTRS, TN_TRAIT_RANDOM),
  OP("TestPlain", "x: T", "y: T", ATTRS, 0),
  OP("TestFail", "x: T", "y: T", ATTRS, 0),
  OP("TestGate", "x: T", "y: T", ATTRS, TN_TRAIT_STATEFUL),
  OP("TestDeaf", "x: T", "y: T", ATTRS, TN_TRAIT_STATEFUL),
  OP("TestLazy", "x: T", "y: T", ATTRS, TN_TRAIT_DYNAMIC),
  OP("TestHead", "x: T, n: int32", "y: T", ATTRS, TN_TRAIT_DYNAMIC),
  OP("TestRefuse", "x: T", "y: T", ATTRS, 0),
  OP("TestNothing", "", "", "slot: int = 0", TN_TRAIT_NO_EFFECT),
};

static const tn_kernel_def kernels[] = {
  KERNEL("TestCount", create_slot, prepare_same, compute_count),
  KERNEL("TestEffect", create_slot, prepare_nothing, compute_effect),
  KERNEL("TestRandom", create_slot, prepare_same, compute_count),
  KERNEL("TestPlain", create_slot, prepare_same, compute_count),
  KERNEL("TestFail", create_slot, prepare_same, compute_fail),
  KERNEL("TestGate", create_slot, prepare_same, compute_gate),
  KERNEL("TestDeaf", create_slot, prepare_same, compute_deaf),
  KERNEL("TestLazy", create_slot, prepare_dynamic, compute_lazy),
  KERNEL("TestHead", create_slot, prepare_dynamic, compute_head),
  KERNEL("TestRefuse", refuse, prepare_same, compute_lazy),
};

static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE,
                                     .name = "test",
                                     .ops = ops,
                                     .n_ops = sizeof(ops) / sizeof(ops[0]),
                                     .kernels = kernels,
                                     .n_kernels = sizeof(kernels) / sizeof(kernels[0]) };

static void register_family(void)
{
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_register_ops(&family, &err), &err);
  tn_error_clear(&err);
}

void ts_register_ops(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_family);
}
