/* SPDX-License-Identifier: Apache-2.0 */
/* Work shared by threads: a plan of parts, each with its own primitive, memory objects and scratch, so that any thread
 * may execute any of them. oneDNN caches primitives, so equal parts share their code. */
#include "onednn.h"

#include <string.h>

#define LEAST 2000.0 /* ns; of a part */
#define PART 50000.0 /* ns; of a part if a thread has several: each part reads, and sometimes copies, the weights */
#define PER_THREAD 4 /* maximum parts for each thread: a thread that starts late executes fewer */

double dnn_product_ns(double products, double weights) { return products * 0.02 + weights * 0.2; }

uint32_t dnn_parts_at_most(const tn_prepare_ctx *ctx, uint32_t n, int64_t most)
{
  if (most < (int64_t)n) n = most < 1 ? 1 : (uint32_t)most;
  return n > ctx->threads ? n - n % ctx->threads : n;
}

uint32_t dnn_parts_worth(const tn_prepare_ctx *ctx, double ns)
{
  uint32_t threads = TN_HAS_FIELD(ctx, tn_prepare_ctx, threads) ? ctx->threads : 1;
  if (threads < 2 || !(ns >= DNN_WORTH)) return 1;
  double each = ns / PART / threads, most = ns / LEAST;
  if (each < 1) each = 1;
  uint32_t n = threads * (each > PER_THREAD ? PER_THREAD : (uint32_t)each);
  return dnn_parts_at_most(ctx, n, most < n ? (int64_t)most : n);
}

#define LONGEST 1e7 /* ns of a part: a primitive that has started cannot be stopped, even if its step is cancelled */
#define TOO_LONG 1e8
#define MOST_PARTS 4096

uint32_t dnn_parts_long(const tn_prepare_ctx *ctx, uint32_t n, double ns, int64_t most)
{
  double wanted = ns / LONGEST < MOST_PARTS ? ns / LONGEST : MOST_PARTS;
  if (!(wanted >= 2) || wanted <= n) return n;
  return dnn_parts_at_most(ctx, (uint32_t)wanted, most);
}

bool dnn_too_long(double ns, uint32_t pieces) { return ns / (pieces < 1 ? 1 : pieces) > TOO_LONG; }

tn_status dnn_parts_begin(tn_prepare_ctx *ctx, uint32_t most, double ns, tn_error *err)
{
  dnn_plan *p = tn_alloc(sizeof *p);
  dnn_plan **parts = tn_alloc(most * sizeof *parts);
  if (p == NULL || parts == NULL) {
    tn_free(p);
    tn_free(parts);
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for %u primitives", most);
  }
  memset(p, 0, sizeof *p);
  atomic_init(&p->free_call, NULL);
  p->parts = parts;
  p->most_parts = most;
  p->part_ns = ns / most;
  ctx->shape_state = p;
  return TN_OK;
}

void dnn_plan_undo(tn_prepare_ctx *ctx, tn_error *err)
{
  dnn_plan_destroy(ctx->shape_state);
  ctx->shape_state = NULL;
  ctx->scratch_bytes = 0;
  tn_error_clear(err);
}

bool dnn_parts_add(tn_prepare_ctx *ctx, dnn_plan *part)
{
  dnn_plan *all = ctx->shape_state;
  if (all == NULL || (all->n_parts == all->most_parts && !all->adds_whole)) return false;
  if (all->adds_whole) all->whole = part;
  else all->parts[all->n_parts++] = part;
  return true;
}

void dnn_whole_begin(tn_prepare_ctx *ctx)
{
  dnn_plan *all = ctx->shape_state;
  all->adds_whole = true;
}

void dnn_whole_end(tn_prepare_ctx *ctx, tn_status st, tn_error *err)
{
  dnn_plan *all = ctx->shape_state;
  all->adds_whole = false;
  if (st == TN_OK) return;
  dnn_plan_destroy(all->whole);
  all->whole = NULL;
  tn_error_clear(err);
}

/* ---- a step ---- */

typedef struct job {
  const tn_kernel_ctx *ctx;
  const dnn_plan *plan;
  _Atomic int failed; /* the last failure */
} job;

static void run_parts(void *user, int64_t begin, int64_t end)
{
  job *j = user;
  bool whole = begin == 0 && end == j->plan->n_parts && j->plan->whole != NULL;
  for (int64_t i = begin; i < end; i = whole ? end : i + 1) {
    dnnl_status_t st = dnn_plan_execute(j->ctx, whole ? j->plan->whole : j->plan->parts[i]);
    if (st != dnnl_success) atomic_store_explicit(&j->failed, (int)st, memory_order_relaxed);
  }
}

tn_status dnn_parts_compute(tn_kernel_ctx *ctx, const dnn_plan *p)
{
  job j = { .ctx = ctx, .plan = p };
  tn_parallel_for(ctx, p->n_parts, 1, p->part_ns, run_parts, &j);
  dnnl_status_t st = (dnnl_status_t)atomic_load_explicit(&j.failed, memory_order_relaxed);
  return st == dnnl_success ? TN_OK : dnn_status(st, "step", ctx->err);
}
