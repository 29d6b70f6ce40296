/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns offsets in the arenas: blocks that are not used at the same time may overlap. The largest blocks
 * are placed first, each at the lowest offset that is free for its whole time of use. An arena larger than
 * the largest allocation of a device consists of several parts: offsets continue through all of them, and no
 * block crosses a border. */
#include "device/base.h"
#include "schedule/order.h"

#include <stdlib.h>

#define PART_ALIGN 4096

typedef struct block {
  gpu_span *span;
  size_t bytes;
  uint32_t memory; /* the order's */
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

/* Unless one is not used any more whenever the other one is. */
static bool meet(const gpu_order *o, const block *a, const block *b)
{
  return !gpu_order_over(o, a->memory, b->span->first) && !gpu_order_over(o, b->memory, a->span->first);
}

/* The first place from `at` on that is in one part. */
static size_t in_one_part(size_t at, size_t bytes, size_t part)
{
  return bytes == 0 || at / part == (at + bytes - 1) / part ? at : (at / part + 1) * part;
}

static tn_status too_large(const char *what, size_t bytes, size_t part, tn_error *err)
{
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: %s has %zu bytes; its device gives at most %zu at once", what,
                      bytes, part);
}

/* Places block i; `near` has room for those that live when it does. */
static tn_status place(const gpu_order *o, block *blocks, size_t i, const block **near, size_t part, size_t *end,
                       tn_error *err)
{
  size_t n = 0, at = 0, bytes = blocks[i].bytes;
  if (bytes > part) return too_large("a value of the step", bytes, part, err);
  for (size_t j = 0; j < i; j++)
    if (meet(o, &blocks[i], &blocks[j])) near[n++] = &blocks[j];
  qsort(near, n, sizeof *near, compare_places);
  for (size_t j = 0; j < n; j++) {
    size_t begin = near[j]->span->at, over = begin + near[j]->bytes;
    if (begin >= at && begin - at >= bytes) break;
    if (over > at) at = in_one_part(over, bytes, part);
  }
  if (bytes > (size_t)PTRDIFF_MAX - at)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the values of a step need more than %zu bytes",
                        (size_t)PTRDIFF_MAX);
  blocks[i].span->at = at;
  if (at + bytes > *end) *end = at + bytes;
  return TN_OK;
}

static tn_status assign(const gpu_order *o, block *blocks, size_t n, size_t part, size_t *bytes, tn_error *err)
{
  const block **near = gpu_new(n + 1, sizeof *near);
  tn_status st = near == NULL ? gpu_no_memory(err, "a schedule") : TN_OK;
  if (n > 0) qsort(blocks, n, sizeof *blocks, compare);
  *bytes = 0;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = place(o, blocks, i, near, part, bytes, err);
  tn_free(near);
  return st;
}

/* Whether a value is in the device's arena: constants and values that follow from shapes are stored elsewhere. */
static bool in_arena(const gpu_slot *v) { return v->kind != GPU_FROM_CONSTANT && v->kind != GPU_FROM_KNOWN; }

static void add(block *blocks, size_t *n, gpu_span *span, size_t bytes, uint32_t memory)
{
  if (span->first == GPU_NONE) return;
  blocks[(*n)++] = (block){ span, (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN, memory };
}

static void add_places(const gpu_schedule *s, uint32_t site, block *blocks, size_t *n)
{
  for (uint32_t v = 0; v < s->n_slots; v++)
    if (in_arena(&s->slots[v]))
      add(blocks, n, &gpu_place_at(s, site, v)->span, s->slots[v].bytes, gpu_order_device(s->work.order, site, v));
}

static void add_host(gpu_schedule *s, block *blocks, size_t *n)
{
  for (uint32_t v = 0; v < s->n_slots; v++)
    add(blocks, n, &s->slots[v].host, s->slots[v].bytes, gpu_order_host(s->work.order, v));
}

/* Each lane has separate scratch memory, after the values. */
static tn_status add_scratch(gpu_schedule *s, uint32_t lane, tn_error *err)
{
  gpu_site *site = &s->sites[s->lanes[lane].site];
  size_t most = 0;
  for (uint32_t i = 0; i < s->n_items; i++)
    if (s->items[i].where == GPU_ON_DEVICE && s->items[i].lane == lane && s->items[i].built->scratch_bytes > most)
      most = s->items[i].built->scratch_bytes;
  if (most > (size_t)PTRDIFF_MAX - GPU_ALIGN - site->arena_bytes)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the values of a step need more than %zu bytes",
                        (size_t)PTRDIFF_MAX);
  most = (most + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN;
  if (most > site->part_bytes) return too_large("scratch memory of a node", most, site->part_bytes, err);
  s->lanes[lane].scratch_at = in_one_part(site->arena_bytes, most, site->part_bytes);
  site->arena_bytes = s->lanes[lane].scratch_at + most;
  return TN_OK;
}

/* An arena shared with the host is one allocation; if that would be too large, the schedule is made without sharing. */
static tn_status check_shared(gpu_schedule *s, tn_error *err)
{
  const gpu_site *site = &s->sites[0];
  s->memory.too_large = s->memory.shared && site->arena_bytes > site->device->max_alloc_bytes;
  return s->memory.too_large ? too_large("the arena of a step", site->arena_bytes, site->device->max_alloc_bytes, err)
                             : TN_OK;
}

static size_t part_of(const gpu_schedule *s, const gpu_site *site)
{
  cl_ulong most = site->device->max_alloc_bytes / PART_ALIGN * PART_ALIGN;
  return s->memory.shared || most == 0 || most > PTRDIFF_MAX ? PTRDIFF_MAX : (size_t)most;
}

/* The parts after the first one of each site. */
static void count_parts(gpu_schedule *s)
{
  s->memory.n_arenas = s->n_sites;
  for (uint32_t k = 0; k < s->n_sites; k++) {
    gpu_site *site = &s->sites[k];
    site->more_parts = s->memory.n_arenas;
    if (site->arena_bytes > 0) s->memory.n_arenas += (uint32_t)((site->arena_bytes - 1) / site->part_bytes);
  }
}

static tn_status assign_all(gpu_schedule *s, block *blocks, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = 0;
  for (uint32_t k = 0; st == TN_OK && k < s->n_sites; k++) {
    n = 0;
    add_places(s, k, blocks, &n);
    if (s->memory.shared) add_host(s, blocks, &n);
    s->sites[k].part_bytes = part_of(s, &s->sites[k]);
    st = assign(s->work.order, blocks, n, s->sites[k].part_bytes, &s->sites[k].arena_bytes, err);
  }
  if (st != TN_OK || s->memory.shared) return st;
  n = 0;
  add_host(s, blocks, &n);
  return assign(s->work.order, blocks, n, PTRDIFF_MAX, &s->memory.host_bytes, err);
}

tn_status gpu_arenas(gpu_schedule *s, tn_error *err)
{
  block *blocks = gpu_new((size_t)s->n_slots * 2 + 1, sizeof *blocks);
  if (blocks == NULL) return gpu_no_memory(err, "a schedule");
  tn_status st = assign_all(s, blocks, err);
  tn_free(blocks);
  for (uint32_t l = 1; st == TN_OK && l < s->n_lanes; l++) st = add_scratch(s, l, err);
  for (uint32_t i = 0; i < s->n_items; i++)
    if (s->items[i].where == GPU_ON_HOST && s->items[i].host_scratch > s->memory.host_scratch)
      s->memory.host_scratch = s->items[i].host_scratch;
  if (st == TN_OK) st = check_shared(s, err);
  if (st == TN_OK) count_parts(s);
  gpu_order_destroy(s->work.order);
  s->work.order = NULL;
  return st;
}
