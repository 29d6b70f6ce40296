/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes, clocks, and which lane a node is given. */
#include "schedule/order.h"

#include "device/base.h"

#define AWAIT_NS 10000.0 /* what it costs to wait for another lane */

struct gpu_order {
  gpu_schedule *s;
  uint32_t *clocks;   /* by action, then lane: the last action that is over, and 1; 0: none */
  double *ends;       /* by action: about when it is over */
  size_t room;
  uint32_t *last;     /* by lane: its last action, and 1 */
  uint32_t *known;    /* by lane: what the calling thread knows to be over */
  uint32_t *fences;   /* by lane: what its next action waits for; GPU_NONE */
  uint32_t *uses;     /* by memory, then lane: 1 + the last action there that uses it */
  double now;         /* of the calling thread */
};

/* ---- lanes ---- */

/* On a device that is a CPU one kernel uses all cores; on others small kernels leave room for more. */
static uint32_t queues_for(const gpu_schedule *s, const gpu_site *site)
{
  uint32_t n = (uint32_t)s->executable->session->settings.queues;
  if (n > 0) return n;
  return site->device->type & CL_DEVICE_TYPE_CPU ? 1 : 2;
}

/* With several queues, copies have a separate one for each direction, so that uploads do not wait for reads. */
static uint32_t lanes_for(const gpu_schedule *s, uint32_t n) { return n > 1 && !s->memory.shared ? n + 2 : n; }

static tn_status make_lanes(gpu_schedule *s, tn_error *err)
{
  uint32_t n = 1;
  for (uint32_t k = 0; k < s->n_sites; k++)
    if (s->sites[k].used) n += lanes_for(s, queues_for(s, &s->sites[k]));
  s->lanes = gpu_new(n, sizeof *s->lanes);
  if (s->lanes == NULL) return gpu_no_memory(err, "a schedule");
  s->lanes[0].site = GPU_NONE;
  s->n_lanes = 1;
  for (uint32_t k = 0; k < s->n_sites; k++) {
    gpu_site *site = &s->sites[k];
    uint32_t kernels = queues_for(s, site), all = lanes_for(s, kernels);
    if (!site->used) continue;
    site->first_lane = s->n_lanes;
    site->n_lanes = kernels;
    site->up = all > kernels ? s->n_lanes + kernels : GPU_NONE;
    site->down = all > kernels ? s->n_lanes + kernels + 1 : GPU_NONE;
    for (uint32_t l = 0; l < all; l++) s->lanes[s->n_lanes++].site = k;
  }
  return TN_OK;
}

tn_status gpu_order_create(gpu_schedule *s, tn_error *err)
{
  tn_status st = make_lanes(s, err);
  gpu_order *o = st == TN_OK ? gpu_new(1, sizeof *o) : NULL;
  if (o == NULL) return st != TN_OK ? st : gpu_no_memory(err, "a schedule");
  s->work.order = o;
  o->s = s;
  o->last = gpu_new(s->n_lanes, sizeof *o->last);
  o->known = gpu_new(s->n_lanes, sizeof *o->known);
  o->fences = gpu_new(s->n_lanes, sizeof *o->fences);
  o->uses = gpu_new(((size_t)s->n_sites + 1) * (s->n_slots + 1) * s->n_lanes, sizeof *o->uses);
  if (o->last == NULL || o->known == NULL || o->fences == NULL || o->uses == NULL)
    return gpu_no_memory(err, "a schedule");
  for (uint32_t l = 0; l < s->n_lanes; l++) o->fences[l] = GPU_NONE;
  return TN_OK;
}

void gpu_order_destroy(gpu_order *o)
{
  if (o == NULL) return;
  tn_free(o->clocks);
  tn_free(o->ends);
  tn_free(o->last);
  tn_free(o->known);
  tn_free(o->fences);
  tn_free(o->uses);
  tn_free(o);
}

/* ---- actions ---- */

static uint32_t *clock_of(const gpu_order *o, uint32_t action) { return &o->clocks[(size_t)action * o->s->n_lanes]; }

static uint32_t current(const gpu_order *o) { return o->s->work.n_actions - 1; }

/* Replaces a list by a longer one with its content. NULL without memory: the list is kept. */
static void *longer(void *old, size_t n, size_t room, size_t size)
{
  void *more = gpu_new(room, size);
  if (more == NULL) return NULL;
  if (n > 0) memcpy(more, old, n * size);
  tn_free(old);
  return more;
}

/* Room for one action more, and its clock. */
static tn_status grow(gpu_order *o, tn_error *err)
{
  gpu_schedule *s = o->s;
  if (s->work.n_actions < o->room) return TN_OK;
  size_t room = o->room * 2 + 16;
  gpu_action *actions = longer(s->work.actions, s->work.n_actions, room, sizeof *actions);
  if (actions != NULL) s->work.actions = actions;
  uint32_t *clocks = longer(o->clocks, (size_t)s->work.n_actions * s->n_lanes, room * s->n_lanes, sizeof *clocks);
  if (clocks != NULL) o->clocks = clocks;
  double *ends = longer(o->ends, s->work.n_actions, room, sizeof *ends);
  if (ends != NULL) o->ends = ends;
  if (actions == NULL || clocks == NULL || ends == NULL) return gpu_no_memory(err, "a schedule");
  o->room = room;
  return TN_OK;
}

static void raise(uint32_t *to, const uint32_t *from, uint32_t n)
{
  for (uint32_t l = 0; l < n; l++)
    if (from[l] > to[l]) to[l] = from[l];
}

tn_status gpu_order_begin(gpu_order *o, uint8_t what, uint32_t id, uint32_t lane, tn_error *err)
{
  gpu_schedule *s = o->s;
  tn_status st = grow(o, err);
  if (st != TN_OK) return st;
  uint32_t a = s->work.n_actions++, before = o->last[lane];
  uint32_t *clock = clock_of(o, a);
  s->work.actions[a] = (gpu_action){ .what = what, .id = id, .lane = lane, .first_wait = s->work.n_waits };
  memcpy(clock, o->known, s->n_lanes * sizeof *clock);
  if (before > 0) raise(clock, clock_of(o, before - 1), s->n_lanes);
  if (before > clock[lane]) clock[lane] = before;
  o->last[lane] = a + 1;
  o->ends[a] = before > 0 && o->ends[before - 1] > o->now ? o->ends[before - 1] : o->now;
  if (lane == 0) o->known[0] = a + 1;
  uint32_t fence = o->fences[lane];
  o->fences[lane] = GPU_NONE;
  return gpu_order_after(o, fence, err);
}

static tn_status add_wait(gpu_schedule *s, uint32_t action, tn_error *err)
{
  if (s->work.n_waits == s->work.waits_room) {
    uint32_t room = s->work.waits_room * 2 + 16;
    uint32_t *more = longer(s->work.waits, s->work.n_waits, room, sizeof *more);
    if (more == NULL) return gpu_no_memory(err, "a schedule");
    s->work.waits = more;
    s->work.waits_room = room;
  }
  s->work.waits[s->work.n_waits++] = action;
  s->work.actions[action].awaited = true;
  s->work.actions[s->work.n_actions - 1].n_waits++;
  return TN_OK;
}

tn_status gpu_order_after(gpu_order *o, uint32_t action, tn_error *err)
{
  gpu_schedule *s = o->s;
  if (action == GPU_NONE || action == current(o)) return TN_OK;
  uint32_t *clock = clock_of(o, current(o)), lane = s->work.actions[action].lane;
  if (clock[lane] > action) return TN_OK;
  raise(clock, clock_of(o, action), s->n_lanes);
  clock[lane] = action + 1;
  if (o->ends[action] > o->ends[current(o)]) o->ends[current(o)] = o->ends[action];
  return add_wait(s, action, err);
}

void gpu_order_known(gpu_order *o, uint32_t action)
{
  uint32_t lane = o->s->work.actions[action].lane;
  raise(o->known, clock_of(o, action), o->s->n_lanes);
  if (o->known[lane] < action + 1) o->known[lane] = action + 1;
  if (o->ends[action] > o->now) o->now = o->ends[action];
}

void gpu_order_fence(gpu_order *o, uint32_t action)
{
  const gpu_schedule *s = o->s;
  uint32_t lane = s->work.actions[action].lane;
  for (uint32_t l = 0; l < s->n_lanes; l++)
    if (l != lane && s->lanes[l].site == s->lanes[lane].site) o->fences[l] = action;
}

tn_status gpu_order_end(gpu_order *o, tn_error *err)
{
  tn_status st = grow(o, err);
  for (uint32_t l = 0; st == TN_OK && l < o->s->n_lanes; l++)
    clock_of(o, o->s->work.n_actions)[l] = o->s->work.n_actions;
  return st;
}

/* ---- memories ---- */

uint32_t gpu_order_host(const gpu_order *o, uint32_t slot)
{
  (void)o;
  return slot;
}

uint32_t gpu_order_device(const gpu_order *o, uint32_t site, uint32_t slot)
{
  return (site + 1) * o->s->n_slots + slot;
}

static uint32_t *uses_of(const gpu_order *o, uint32_t memory) { return &o->uses[(size_t)memory * o->s->n_lanes]; }

void gpu_order_use(gpu_order *o, uint32_t memory)
{
  uses_of(o, memory)[o->s->work.actions[current(o)].lane] = current(o) + 1;
}

tn_status gpu_order_after_uses(gpu_order *o, uint32_t memory, tn_error *err)
{
  const uint32_t *uses = uses_of(o, memory);
  tn_status st = TN_OK;
  for (uint32_t l = 0; st == TN_OK && l < o->s->n_lanes; l++)
    if (uses[l] > 0) st = gpu_order_after(o, uses[l] - 1, err);
  return st;
}

uint32_t gpu_order_unknown_use(const gpu_order *o, uint32_t memory)
{
  const uint32_t *uses = uses_of(o, memory);
  for (uint32_t l = 1; l < o->s->n_lanes; l++)
    if (uses[l] > o->known[l]) return uses[l] - 1;
  return GPU_NONE;
}

void gpu_order_keep(gpu_order *o, uint32_t memory) { uses_of(o, memory)[0] = o->s->work.n_actions + 1; }

bool gpu_order_over(const gpu_order *o, uint32_t memory, uint32_t action)
{
  const uint32_t *uses = uses_of(o, memory), *clock = clock_of(o, action);
  for (uint32_t l = 0; l < o->s->n_lanes; l++)
    if (uses[l] > clock[l]) return false;
  return true;
}

/* ---- choosing ---- */

static double begins(const gpu_order *o, const gpu_item *item, uint32_t lane)
{
  const gpu_schedule *s = o->s;
  double ns = o->last[lane] > 0 ? o->ends[o->last[lane] - 1] : 0;
  if (ns < o->now) ns = o->now;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) {
    uint32_t written =
        gpu_reads(item, k) ? gpu_place_at(s, item->site, s->slots[item->in.inputs[k]].root)->written : GPU_NONE;
    if (written == GPU_NONE) continue;
    double there = o->ends[written] + (s->work.actions[written].lane == lane ? 0 : AWAIT_NS);
    if (there > ns) ns = there;
  }
  return ns;
}

uint32_t gpu_order_choose(const gpu_order *o, uint32_t i)
{
  const gpu_item *item = &o->s->items[i];
  const gpu_site *site = &o->s->sites[item->site];
  uint32_t best = site->first_lane;
  for (uint32_t l = best + 1; l < site->first_lane + site->n_lanes; l++)
    if (begins(o, item, l) < begins(o, item, best)) best = l;
  return best;
}

void gpu_order_takes(gpu_order *o, double ns)
{
  o->ends[current(o)] += ns;
  if (o->s->work.actions[current(o)].lane == 0) o->now = o->ends[current(o)];
}
