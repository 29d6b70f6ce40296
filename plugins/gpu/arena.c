/* SPDX-License-Identifier: Apache-2.0 */
/* Where blocks lie in the arenas: those that are not used at one time share places. The largest are placed first, each at the
 * lowest place that is free all the time it is used. */
#include "schedule.h"

#include <stdlib.h>

typedef struct block {
  gpu_span *span;
  size_t bytes;
} block;

/* Larger ones first; among equals the one that begins first. */
static int compare(const void *a, const void *b)
{
  const block *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->span->first < y->span->first ? -1 : x->span->first > y->span->first;
}

static int compare_places(const void *a, const void *b)
{
  const block *x = *(const block *const *)a, *y = *(const block *const *)b;
  return x->span->at < y->span->at ? -1 : x->span->at > y->span->at;
}

static bool meet(const gpu_span *a, const gpu_span *b) { return a->first <= b->last && b->first <= a->last; }

/* Places block i; `near` has room for those that live when it does. */
static tn_status place(block *blocks, size_t i, const block **near, size_t *end, tn_error *err)
{
  size_t n = 0, at = 0, bytes = blocks[i].bytes;
  for (size_t j = 0; j < i; j++)
    if (meet(blocks[i].span, blocks[j].span)) near[n++] = &blocks[j];
  qsort(near, n, sizeof *near, compare_places);
  for (size_t j = 0; j < n; j++) {
    size_t begin = near[j]->span->at, over = begin + near[j]->bytes;
    if (begin >= at && begin - at >= bytes) break;
    if (over > at) at = over;
  }
  if (bytes > (size_t)PTRDIFF_MAX - at)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the values of a step need more than %zu bytes", (size_t)PTRDIFF_MAX);
  blocks[i].span->at = at;
  if (at + bytes > *end) *end = at + bytes;
  return TN_OK;
}

static tn_status assign(block *blocks, size_t n, size_t *bytes, tn_error *err)
{
  const block **near = gpu_new(n + 1, sizeof *near);
  tn_status st = near == NULL ? gpu_no_memory(err, "a schedule") : TN_OK;
  if (n > 0) qsort(blocks, n, sizeof *blocks, compare);
  *bytes = 0;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = place(blocks, i, near, bytes, err);
  tn_free(near);
  return st;
}

/* Whether the device has a value in the arena: constants and what follows from shapes lie elsewhere. */
static bool in_arena(const gpu_slot *v) { return v->kind != GPU_FROM_CONSTANT && v->kind != GPU_FROM_KNOWN; }

static void add(block *blocks, size_t *n, gpu_span *span, size_t bytes)
{
  if (span->first == GPU_NONE) return;
  blocks[(*n)++] = (block){ span, (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN };
}

tn_status gpu_arenas(gpu_schedule *s, tn_error *err)
{
  block *blocks = gpu_new((size_t)s->n_slots * 2 + 1, sizeof *blocks);
  size_t n = 0, scratch = 0;
  if (blocks == NULL) return gpu_no_memory(err, "a schedule");
  for (uint32_t v = 0; v < s->n_slots; v++)
    if (in_arena(&s->slots[v])) add(blocks, &n, &s->slots[v].device, s->slots[v].bytes);
  tn_status st = TN_OK;
  if (!s->shared) {
    st = assign(blocks, n, &s->device_bytes, err);
    n = 0;
  }
  for (uint32_t v = 0; v < s->n_slots; v++) add(blocks, &n, &s->slots[v].host, s->slots[v].bytes);
  if (st == TN_OK) st = assign(blocks, n, s->shared ? &s->device_bytes : &s->host_bytes, err);
  tn_free(blocks);
  for (uint32_t i = 0; i < s->n_items; i++)
    if (s->items[i].where == GPU_ON_DEVICE && s->items[i].built->scratch_bytes > scratch)
      scratch = s->items[i].built->scratch_bytes;
  for (uint32_t i = 0; i < s->n_items; i++)
    if (s->items[i].where == GPU_ON_HOST && s->items[i].host_scratch > s->host_scratch) s->host_scratch = s->items[i].host_scratch;
  s->scratch_at = s->device_bytes;
  if (scratch > (size_t)PTRDIFF_MAX - s->device_bytes)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the values of a step need more than %zu bytes", (size_t)PTRDIFF_MAX);
  s->device_bytes += scratch;
  return st;
}
