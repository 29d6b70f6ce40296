/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the nodes. Nodes on the CPU keep the plan's order. Nodes on devices between two of those have
 * no effects, so a step with several queues enqueues them in the order in which they may begin, as estimated
 * by costs: no queue waits for the calling thread while that fills another queue or waits for a copy between
 * devices. */
#include "device/base.h"
#include "schedule/order.h"

#define WINDOW 64 /* maximum nodes without a place that are considered at once */

typedef struct sequencer {
  gpu_schedule *s;
  double *ready;  /* by value: estimated time at which it is computed */
  bool *pending;  /* by value: it is computed by a node of this run that has no place yet */
  double *idle;   /* by lane: time from which on it is idle */
  uint32_t *left; /* items of this run without a place, in the plan's order */
} sequencer;

static bool has_several_queues(const gpu_schedule *s)
{
  uint32_t n = 0;
  for (uint32_t k = 0; k < s->n_sites; k++) n += s->sites[k].used ? s->sites[k].n_lanes : 0;
  return n > 1;
}

static bool is_of_host(const gpu_item *item) { return item->computes && item->where == GPU_ON_HOST; }

static bool is_ready(const sequencer *q, const gpu_item *item)
{
  for (uint32_t k = 0; k < item->in.n_inputs; k++)
    if (q->pending[item->in.inputs[k]]) return false;
  return true;
}

static uint32_t first_idle(const sequencer *q, const gpu_site *site)
{
  uint32_t best = site->first_lane;
  for (uint32_t l = best + 1; l < site->first_lane + site->n_lanes; l++)
    if (q->idle[l] < q->idle[best]) best = l;
  return best;
}

/* When it may begin; views at once. */
static double begins(const sequencer *q, const gpu_item *item)
{
  double ns = 0;
  for (uint32_t k = 0; k < item->in.n_inputs; k++)
    if (q->ready[item->in.inputs[k]] > ns) ns = q->ready[item->in.inputs[k]];
  if (!item->computes) return -1;
  double idle = q->idle[first_idle(q, &q->s->sites[item->site])];
  return ns > idle ? ns : idle;
}

static void put(sequencer *q, uint32_t i, uint32_t position)
{
  const gpu_item *item = &q->s->items[i];
  double ns = 0;
  q->s->sequence[position] = i;
  if (item->computes) {
    ns = begins(q, item) + item->device_ns;
    q->idle[first_idle(q, &q->s->sites[item->site])] = ns;
  } else {
    for (uint32_t k = 0; k < item->in.n_inputs; k++)
      if (q->ready[item->in.inputs[k]] > ns) ns = q->ready[item->in.inputs[k]];
  }
  for (uint32_t k = 0; k < item->in.n_outputs; k++) {
    q->ready[item->in.outputs[k]] = ns;
    q->pending[item->in.outputs[k]] = false;
  }
}

/* The first remaining item can always be placed: in the plan it follows its inputs. */
static void order_run(sequencer *q, uint32_t first, uint32_t end)
{
  const gpu_schedule *s = q->s;
  for (uint32_t i = first; i < end; i++) {
    q->left[i] = i;
    for (uint32_t k = 0; k < s->items[i].in.n_outputs; k++) q->pending[s->items[i].in.outputs[k]] = true;
  }
  for (uint32_t position = first; position < end; position++) {
    uint32_t best = position;
    for (uint32_t c = position + 1; c < end && c - position < WINDOW; c++) {
      const gpu_item *item = &s->items[q->left[c]];
      if (is_ready(q, item) && begins(q, item) < begins(q, &s->items[q->left[best]])) best = c;
    }
    uint32_t chosen = q->left[best];
    memmove(&q->left[position + 1], &q->left[position], (best - position) * sizeof *q->left);
    put(q, chosen, position);
  }
}

static tn_status order_all(gpu_schedule *s, tn_error *err)
{
  sequencer q = { .s = s,
                  .ready = gpu_new(s->n_slots + 1, sizeof *q.ready),
                  .pending = gpu_new(s->n_slots + 1, sizeof *q.pending),
                  .idle = gpu_new(s->n_lanes + 1, sizeof *q.idle),
                  .left = gpu_new(s->n_items + 1, sizeof *q.left) };
  bool there = q.ready != NULL && q.pending != NULL && q.idle != NULL && q.left != NULL;
  for (uint32_t i = 0, end; there && i < s->n_items; i = end + 1) {
    for (end = i; end < s->n_items && !is_of_host(&s->items[end]);) end++;
    order_run(&q, i, end);
  }
  tn_free(q.ready);
  tn_free(q.pending);
  tn_free(q.idle);
  tn_free(q.left);
  return there ? TN_OK : gpu_no_memory(err, "a schedule");
}

tn_status gpu_sequence(gpu_schedule *s, tn_error *err)
{
  s->sequence = gpu_new(s->n_items + 1, sizeof *s->sequence);
  if (s->sequence == NULL) return gpu_no_memory(err, "a schedule");
  for (uint32_t i = 0; i < s->n_items; i++) s->sequence[i] = i;
  tn_status st = has_several_queues(s) ? order_all(s, err) : TN_OK;
  for (uint32_t p = 0; p < s->n_items; p++) s->items[s->sequence[p]].position = p;
  return st;
}
