/* SPDX-License-Identifier: Apache-2.0 */
/* An op that detects whether its loop is shared:
 *
 * TestMeet   x: float -> y: float   y = the maximum of threads that ran items concurrently; each item waits for another
 *                                   thread, up to meet_wait_ms in total */
#ifndef TENON_TESTS_SUPPORT_MEET_OP_H
#define TENON_TESTS_SUPPORT_MEET_OP_H

#include "conformance/support/session_kit.h"

#include <pthread.h>

static atomic_int meet_now, meet_most;
static int64_t meet_wait_ms; /* long if another thread is expected */

static void meet_part(void *user, int64_t begin, int64_t end)
{
  int now = atomic_fetch_add(&meet_now, 1) + 1, most = atomic_load(&meet_most);
  (void)begin, (void)end;
  while (most < now && !atomic_compare_exchange_weak(&meet_most, &most, now)) continue;
  while (atomic_load(&meet_most) < 2 && ts_now_ms() < *(const int64_t *)user) ts_sleep_ms(1);
  atomic_fetch_sub(&meet_now, 1);
}

static tn_status meet_compute(tn_kernel_ctx *ctx)
{
  int64_t until = ts_now_ms() + meet_wait_ms;
  float *y = ctx->outputs[0]->data;
  atomic_store(&meet_most, 0);
  tn_parallel_for(ctx, ctx->inputs[0]->count, 1, 1e9, meet_part, &until);
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) y[i] = (float)atomic_load(&meet_most);
  return TN_OK;
}

static tn_status meet_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output_like(ctx, 0, 0, err); }

static inline void meet_register(void)
{
  static const tn_op_def ops[] = { { .struct_size = TN_OP_DEF_SIZE, .name = "TestMeet", .inputs = "x: float",
                                     .outputs = "y: float", .attrs = "", .traits = TN_TRAIT_STATEFUL } };
  static const tn_kernel_def kernels[] = { { .struct_size = TN_KERNEL_DEF_SIZE, .op = "TestMeet", .device = "CPU",
                                             .name = "TestMeet_cpu", .rank = TN_RANK_C, .prepare = meet_prepare,
                                             .compute = meet_compute } };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "test_meet", .ops = ops, .n_ops = 1,
                                       .kernels = kernels, .n_kernels = 1 };
  static bool registered;
  tn_error err = TN_ERROR_INIT;
  if (!registered) REQUIRE_OK(tn_register_ops(&family, &err), &err);
  registered = true;
}

/* In a text graph: node "meet" of `from`. */
#define MEET_NODE(from) NODE("meet", "TestMeet", "input: '" from "'", "")

#endif
