/* SPDX-License-Identifier: Apache-2.0 */
/* Decides where the instructions run. Nodes with a device name run there; the settings place the others, or
 * the lower cost: that of the nodes and of copies of values that are read on the other side. */
#include "device/base.h"
#include "schedule/schedule.h"

#define LAUNCH_NS 5000.0     /* overhead of a launch */
#define HOST_CALL_NS 1000.0
#define COPY_NS 15000.0      /* a copy between the memories, and the wait for it */
#define COPY_BYTES_PER_NS 10.0
#define HOST_BYTES_PER_NS 5.0
#define HOST_FLOPS_PER_NS 20.0
#define DEVICE_BYTES_PER_NS 100.0
#define CPU_DEVICE_FACTOR \
  50.0 /* a device that is a CPU, against what cost_ns of nodes assumes: no faster than this one */
#define TINY 64              /* maximum elements of an integer computation that stays on the CPU */
#define SWEEPS 4

/* ---- cost of nodes ---- */

static double bytes_of(const gpu_schedule *s, const gpu_item *item)
{
  double bytes = 0;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) bytes += (double)s->slots[item->in.inputs[k]].bytes;
  for (uint32_t k = 0; k < item->in.n_outputs; k++) bytes += (double)s->slots[item->in.outputs[k]].bytes;
  return bytes;
}

/* Of sums of products: two for each element of the output and of a column of input 1. */
static double flops_of(const gpu_schedule *s, const gpu_item *item)
{
  if ((item->in.traits & TN_TRAIT_CONTRACTION) == 0 || item->in.n_inputs < 2 || item->in.n_outputs < 1) return 0;
  const gpu_slot *w = &s->slots[item->in.inputs[1]], *y = &s->slots[item->in.outputs[0]];
  if (w->rank < 1 || w->dims[w->rank - 1] == 0) return 0;
  return 2 * (double)y->count * (double)(w->count / w->dims[w->rank - 1]);
}

static void estimate(const gpu_schedule *s, gpu_item *item)
{
  double bytes = bytes_of(s, item);
  item->host_ns = HOST_CALL_NS + bytes / HOST_BYTES_PER_NS + flops_of(s, item) / HOST_FLOPS_PER_NS;
  if (item->built == NULL) return;
  if (item->device_ns <= 0) item->device_ns = bytes / DEVICE_BYTES_PER_NS;
  if (s->sites[item->site].device->type & CL_DEVICE_TYPE_CPU) item->device_ns *= CPU_DEVICE_FACTOR;
  item->device_ns += LAUNCH_NS * item->n_calls;
}

/* ---- readers of values ---- */

typedef struct graph {
  gpu_schedule *s;
  uint32_t *behind;    /* by value: the value whose memory it is, before all views */
  uint32_t *producer;  /* by value: its item; GPU_NONE: nothing computes it in a step */
  uint32_t *first_use; /* by value, in `uses`; one more at the end */
  uint32_t *uses;      /* items */
} graph;

/* The value whose memory it shows, before all views. */
static uint32_t seen_through(const gpu_schedule *s, const gpu_item *item, uint32_t out)
{
  for (uint32_t k = 0; k < item->in.n_inputs; k++)
    if (s->slots[item->in.inputs[k]].source == s->slots[out].source) return item->in.inputs[k];
  return GPU_NONE;
}

static void find_producers(graph *g)
{
  gpu_schedule *s = g->s;
  for (uint32_t v = 0; v < s->n_slots; v++) {
    g->producer[v] = GPU_NONE;
    g->behind[v] = v;
  }
  for (uint32_t i = 0; i < s->n_items; i++)
    for (uint32_t k = 0; k < s->items[i].in.n_outputs; k++) {
      uint32_t out = s->items[i].in.outputs[k],
               from = s->items[i].computes ? GPU_NONE : seen_through(s, &s->items[i], out);
      if (s->items[i].computes) g->producer[out] = i;
      if (from == GPU_NONE) continue;
      g->behind[out] = g->behind[from];
      g->producer[out] = g->producer[from];
    }
}

static tn_status find_uses(graph *g, tn_error *err)
{
  gpu_schedule *s = g->s;
  uint32_t n = 0;
  find_producers(g);
  for (uint32_t i = 0; i < s->n_items; i++)
    for (uint32_t k = 0; s->items[i].computes && k < s->items[i].in.n_inputs; k++, n++)
      g->first_use[g->behind[s->items[i].in.inputs[k]] + 1]++;
  for (uint32_t v = 0; v < s->n_slots; v++) g->first_use[v + 1] += g->first_use[v];
  g->uses = gpu_new(n + 1, sizeof *g->uses);
  uint32_t *at = gpu_new(s->n_slots + 1, sizeof *at);
  for (uint32_t i = 0; g->uses != NULL && at != NULL && i < s->n_items; i++)
    for (uint32_t k = 0; s->items[i].computes && k < s->items[i].in.n_inputs; k++) {
      uint32_t v = g->behind[s->items[i].in.inputs[k]];
      g->uses[g->first_use[v] + at[v]++] = i;
    }
  bool ok = g->uses != NULL && at != NULL;
  tn_free(at);
  return ok ? TN_OK : gpu_no_memory(err, "a placement");
}

static void free_graph(graph *g)
{
  tn_free(g->behind);
  tn_free(g->producer);
  tn_free(g->first_use);
  tn_free(g->uses);
}

/* ---- the choice ---- */

static double copy_ns(const gpu_slot *v) { return COPY_NS + (double)v->bytes / COPY_BYTES_PER_NS; }

/* Copies of one value when its producer is at `from`, but for what item `without` reads. */
static double copies_of(const graph *g, uint32_t v, uint8_t from, uint32_t without)
{
  const gpu_slot *slot = &g->s->slots[v];
  if (slot->escapes && from == GPU_ON_DEVICE) return copy_ns(slot);
  for (uint32_t u = g->first_use[v]; u < g->first_use[v + 1]; u++) {
    const gpu_item *user = &g->s->items[g->uses[u]];
    if (g->uses[u] != without && user->where != from) return copy_ns(slot);
  }
  return 0;
}

/* Where a value is made. */
static uint8_t side_of(const graph *g, uint32_t v)
{
  if (g->producer[v] != GPU_NONE) return g->s->items[g->producer[v]].where;
  return g->s->slots[v].fed_at != GPU_NONE ? GPU_ON_DEVICE : GPU_ON_HOST;
}

/* The cost of placing an item at `where` if all others stay in their places. */
static double cost_at(const graph *g, uint32_t i, uint8_t where)
{
  const gpu_schedule *s = g->s;
  const gpu_item *item = &s->items[i];
  double ns = where == GPU_ON_DEVICE ? item->device_ns : item->host_ns;
  for (uint32_t k = 0; k < item->in.n_outputs; k++) ns += copies_of(g, item->in.outputs[k], where, GPU_NONE);
  for (uint32_t k = 0; k < item->in.n_inputs; k++) {
    uint32_t v = g->behind[item->in.inputs[k]];
    if (s->slots[v].data != NULL) continue; /* sent once */
    uint8_t from = side_of(g, v);
    if (from != where && copies_of(g, v, from, i) == 0) ns += copy_ns(&s->slots[v]);
  }
  return ns;
}

static double total_cost(const graph *g)
{
  const gpu_schedule *s = g->s;
  double ns = 0;
  for (uint32_t i = 0; i < s->n_items; i++)
    if (s->items[i].computes) ns += s->items[i].where == GPU_ON_DEVICE ? s->items[i].device_ns : s->items[i].host_ns;
  for (uint32_t v = 0; v < s->n_slots; v++) {
    if (s->slots[v].data == NULL && g->behind[v] == v) ns += copies_of(g, v, side_of(g, v), GPU_NONE);
  }
  return ns;
}

static bool is_tiny(const gpu_schedule *s, const gpu_item *item)
{
  if ((item->in.traits & TN_TRAIT_SHAPE_ONLY) != 0) return true;
  for (uint32_t k = 0; k < item->in.n_outputs; k++) {
    const gpu_slot *v = &s->slots[item->in.outputs[k]];
    if ((v->dtype != TN_INT32 && v->dtype != TN_INT64) || v->count > TINY) return false;
  }
  for (uint32_t k = 0; k < item->in.n_inputs; k++)
    if (s->slots[item->in.inputs[k]].count > TINY) return false;
  return true;
}

static bool is_free(const gpu_schedule *s, const gpu_item *item)
{
  return item->computes && item->built != NULL && item->wanted == GPU_ON_NOTHING && !is_tiny(s, item);
}

/* Moves one item at a time while that makes the step cheaper. */
static double improve(graph *g)
{
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    bool moved = false;
    for (uint32_t i = 0; i < g->s->n_items; i++) {
      gpu_item *item = &g->s->items[i];
      if (!is_free(g->s, item)) continue;
      uint8_t other = item->where == GPU_ON_DEVICE ? GPU_ON_HOST : GPU_ON_DEVICE;
      if (cost_at(g, i, other) >= cost_at(g, i, item->where)) continue;
      item->where = other;
      moved = true;
    }
    if (!moved) break;
  }
  return total_cost(g);
}

/* From all on the device and from all on the CPU: the better of the two. */
static tn_status choose(graph *g, tn_error *err)
{
  gpu_schedule *s = g->s;
  uint8_t *first = gpu_new(s->n_items + 1, 1);
  if (first == NULL) return gpu_no_memory(err, "a placement");
  for (uint32_t i = 0; i < s->n_items; i++)
    if (is_free(s, &s->items[i])) s->items[i].where = GPU_ON_DEVICE;
  double device = improve(g);
  for (uint32_t i = 0; i < s->n_items; i++) {
    first[i] = s->items[i].where;
    if (is_free(s, &s->items[i])) s->items[i].where = GPU_ON_HOST;
  }
  if (improve(g) > device)
    for (uint32_t i = 0; i < s->n_items; i++) s->items[i].where = first[i];
  tn_free(first);
  return TN_OK;
}

static void log_items(const gpu_schedule *s)
{
  for (uint32_t i = 0; i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    if (!item->computes) continue;
    const char *name = tn_operation_name(item->in.op), *type = tn_operation_type(item->in.op);
    if (item->where == GPU_ON_DEVICE)
      tn_log(TN_LOG_DEBUG, "gpu: node '%s' (%s) on %s", name, type, s->sites[item->site].device->name);
    else
      tn_log(TN_LOG_DEBUG, "gpu: node '%s' (%s) on the CPU: %s", name, type,
             item->reason != NULL ? item->reason : "it costs less there");
  }
}

tn_status gpu_choose_places(gpu_schedule *s, tn_error *err)
{
  graph g = { .s = s,
              .behind = gpu_new(s->n_slots + 1, sizeof *g.behind),
              .producer = gpu_new(s->n_slots + 1, sizeof *g.producer),
              .first_use = gpu_new(s->n_slots + 2, sizeof *g.first_use) };
  tn_status st =
      g.behind == NULL || g.producer == NULL || g.first_use == NULL ? gpu_no_memory(err, "a placement") : TN_OK;
  int placement = s->executable->session->settings.placement;
  for (uint32_t i = 0; i < s->n_items; i++) {
    gpu_item *item = &s->items[i];
    if (!item->computes) continue;
    estimate(s, item);
    item->where = item->built != NULL && (item->wanted == GPU_ON_DEVICE || placement == GPU_PLACE_DEVICE)
                      ? GPU_ON_DEVICE
                      : GPU_ON_HOST;
  }
  if (st == TN_OK && placement == GPU_PLACE_COST) {
    st = find_uses(&g, err);
    if (st == TN_OK) st = choose(&g, err);
  }
  free_graph(&g);
  if (st == TN_OK && tn_log_enabled(TN_LOG_DEBUG)) log_items(s);
  return st;
}

/* ---- the report ---- */

void gpu_placement_note(const gpu_schedule *s)
{
  const tn_runtime_session *session = s->executable->session;
  for (uint32_t i = 0; i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    if (!item->computes) continue;
    const char *device = item->where == GPU_ON_DEVICE ? gpu_device_listed(session, item->site) : NULL;
    const char *reason = item->reason != NULL ? item->reason : "it costs less on the CPU";
    if (!gpu_report_note(session->report, tn_operation_name(item->in.op), device, reason)) break;
  }
}
