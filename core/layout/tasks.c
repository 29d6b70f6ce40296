/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which instructions of a segment threads may run concurrently: finds their dependences, cuts them into tasks,
 * and estimates whether tasks are worth it.
 *
 * An instruction depends on the producers of its inputs, on its control inputs, and, if it has an effect, on earlier
 * instructions with effects on the same resource. State is thus read and written in the order of the tape, whichever
 * threads run it. */
#include <core/layout/effect_order.h>
#include <core/plan/frame.h>
#include <core/layout/layout.h>
#include <core/layout/tasks.h>

#define MOST_THREADS 64     /* maximum threads of a timetable */
#define THREADS_FOR_EACH 4  /* timetable threads per real thread: tasks are fewer than calls, but enough to share */
#define MOST_TRIES 12       /* maximum cuts, each with a delay four times as long */
#define SHARED_NS 20000.0   /* kernels of at least this cost share their loops with other threads themselves */
#define MIN_GAIN_NS 15000.0 /* minimum gain of a step by tasks: the cost of waking a thread */
#define MIN_GAIN 0.08       /* minimum gain, as a part of the step's time */
#define PASS_NS 1500.0      /* latency until another thread begins a task, if that thread is awake */

_Atomic bool tn__tasks_always;

/* ---- dependences ---- */

/* Nodes are the instructions that are called, and others that depend on more than one node. */
typedef struct graph {
  const tn_plan *plan;
  const tn__segment *segment;
  const double *costs; /* by instruction of the segment, in ns */
  uint32_t *node;      /* by instruction: its node, or the only one that it depends on; TN__NONE = none */
  uint32_t *edges;     /* nodes that a node depends on: those of node v begin at first_edge[v] */
  uint32_t *first_edge; /* n_nodes + 1 */
  double *node_costs;   /* by node, in ns */
  size_t edge_room;
  uint32_t n_nodes, n_instrs, n_edges;
} graph;

static void graph_fini(graph *g)
{
  size_t n = (size_t)g->n_instrs + 2;
  tn__free(g->node, n * sizeof *g->node);
  tn__free(g->first_edge, n * sizeof *g->first_edge);
  tn__free(g->node_costs, n * sizeof *g->node_costs);
  tn__free(g->edges, g->edge_room * sizeof *g->edges);
}

/* Makes the current node depend on instruction i of the plan. Ignores instructions outside the segment, and the same
 * edge twice in a row. */
static void add_edge(graph *g, uint32_t i)
{
  uint32_t from =
      i == TN__NONE || i < g->segment->begin || i >= g->segment->end ? TN__NONE : g->node[i - g->segment->begin];
  if (from == TN__NONE || (g->n_edges > g->first_edge[g->n_nodes] && g->edges[g->n_edges - 1] == from)) return;
  g->edges[g->n_edges++] = from;
}

/* Makes the node of instruction i. False if memory is exhausted. */
static bool add_node(graph *g, uint32_t i, tn__effect_order *effects)
{
  const tn__plan_instr *instr = &g->plan->instrs[i];
  uint32_t at = i - g->segment->begin;
  if (!tn__effect_order_add(effects, i)) return false;
  size_t most = (size_t)g->n_edges + instr->n_inputs + instr->n_after + effects->n_waits;
  if (!tn__grow((void **)&g->edges, &g->edge_room, most, sizeof *g->edges)) return false;
  g->first_edge[g->n_nodes] = g->n_edges;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    const tn__plan_value *v = &g->plan->values[tn__instr_inputs(g->plan, instr)[k]];
    if (v->kind == TN_VALUE_COMPUTED) add_edge(g, v->producer);
  }
  for (uint32_t k = 0; k < instr->n_after; k++) add_edge(g, tn__instr_after(g->plan, instr)[k]);
  for (uint32_t k = 0; k < effects->n_waits; k++) add_edge(g, effects->waits[k]);
  uint32_t n = g->n_edges - g->first_edge[g->n_nodes];
  if (g->costs[at] <= 0 && n <= 1) { /* not called: no node */
    g->node[at] = n == 0 ? TN__NONE : g->edges[--g->n_edges];
    return true;
  }
  g->node_costs[g->n_nodes] = g->costs[at];
  g->node[at] = g->n_nodes++;
  return true;
}

static tn_status graph_make(graph *g, tn_error *err)
{
  size_t n = (size_t)g->n_instrs + 2;
  g->node = tn__alloc_array(n, sizeof *g->node);
  g->first_edge = tn__alloc_array(n, sizeof *g->first_edge);
  g->node_costs = tn__alloc_array(n, sizeof *g->node_costs);
  bool ok = g->node != NULL && g->first_edge != NULL && g->node_costs != NULL;
  tn__effect_order effects;
  tn__effect_order_init(&effects, g->plan);
  for (uint32_t i = g->segment->begin; ok && i < g->segment->end; i++) ok = add_node(g, i, &effects);
  tn__effect_order_fini(&effects);
  if (!ok) return tn__no_memory(err, "layout", n * sizeof *g->node);
  g->first_edge[g->n_nodes] = g->n_edges;
  return TN_OK;
}

/* ---- tasks, and their order ---- */

void tn__task_order_destroy(tn__task_order *o)
{
  if (o == NULL) return;
  tn__free(o->task_of, ((size_t)o->n_instrs + 1) * sizeof *o->task_of);
  tn__free(o->costs, ((size_t)o->n_instrs + 1) * sizeof *o->costs);
  tn__free(o->before, ((size_t)o->n_tasks * o->words + 1) * sizeof *o->before);
  tn__free(o->touched, ((size_t)o->n_slots * o->words + 1) * sizeof *o->touched);
  tn__free(o->first_edge, ((size_t)o->n_tasks + 2) * sizeof *o->first_edge);
  tn__free(o->edges, ((size_t)o->edge_room + 1) * sizeof *o->edges);
  tn__free(o, sizeof *o);
}

/* Lists the tasks that each task waits for, each once, from the edges of its nodes. by_task receives the nodes, sorted
 * by task. */
static bool find_edges(tn__task_order *o, const graph *g, const uint32_t *task_of, uint32_t *by_task, uint32_t *seen)
{
  uint32_t *begin = o->first_edge; /* first used for the range of each task in by_task */
  for (uint32_t v = 0; v < g->n_nodes; v++) begin[task_of[v] + 1]++;
  for (uint32_t t = 0; t < o->n_tasks; t++) begin[t + 1] += begin[t];
  for (uint32_t v = 0; v < g->n_nodes; v++) by_task[begin[task_of[v]]++] = v;
  uint32_t n = 0, at = 0;
  for (uint32_t t = 0; t < o->n_tasks; t++) {
    uint32_t end = begin[t];
    begin[t] = n;
    for (; at < end; at++) {
      uint32_t v = by_task[at];
      for (uint32_t e = g->first_edge[v]; e < g->first_edge[v + 1]; e++) {
        uint32_t from = task_of[g->edges[e]];
        if (from == t || seen[from] == t + 1) continue;
        seen[from] = t + 1;
        o->edges[n++] = from;
      }
    }
  }
  begin[o->n_tasks] = n;
  return true;
}

/* Fills o->before. Tasks wait for earlier tasks only, so one pass is enough. */
static void find_before(tn__task_order *o)
{
  for (uint32_t t = 0; t < o->n_tasks; t++) {
    uint64_t *before = tn__task_before(o, t);
    before[t / 64] |= UINT64_C(1) << t % 64;
    for (uint32_t e = o->first_edge[t]; e < o->first_edge[t + 1]; e++) {
      const uint64_t *more = tn__task_before(o, o->edges[e]);
      for (uint32_t w = 0; w < o->words; w++) before[w] |= more[w];
    }
  }
}

/* An instruction that has no node of its own is in the task of the one that it depends on, or in any. */
static void place_instructions(tn__task_order *o, const graph *g, const uint32_t *task_of)
{
  for (uint32_t i = 0; i < g->n_instrs; i++) {
    o->task_of[i] = g->node[i] == TN__NONE ? 0 : task_of[g->node[i]];
    o->costs[i] = g->costs[i];
  }
}

static tn_status order_make(const graph *g, const uint32_t *task_of, uint32_t n_tasks, tn__task_order **out,
                            tn_error *err)
{
  tn__task_order *o = *out = tn__zalloc(sizeof *o);
  if (o == NULL) return tn__no_memory(err, "layout", sizeof *o);
  o->begin = g->segment->begin;
  o->n_instrs = g->n_instrs;
  o->n_slots = g->segment->n_slots;
  o->n_tasks = n_tasks;
  o->words = (n_tasks + 63) / 64;
  o->edge_room = g->n_edges;
  o->task_of = tn__alloc_array((size_t)o->n_instrs + 1, sizeof *o->task_of);
  o->costs = tn__alloc_array((size_t)o->n_instrs + 1, sizeof *o->costs);
  o->before = tn__alloc_array((size_t)n_tasks * o->words + 1, sizeof *o->before);
  o->touched = tn__alloc_array((size_t)o->n_slots * o->words + 1, sizeof *o->touched);
  o->first_edge = tn__alloc_array((size_t)n_tasks + 2, sizeof *o->first_edge);
  o->edges = tn__alloc_array((size_t)o->edge_room + 1, sizeof *o->edges);
  uint32_t *by_task = tn__alloc_array((size_t)g->n_nodes + 1, sizeof *by_task);
  uint32_t *seen = tn__alloc_array((size_t)n_tasks + 1, sizeof *seen);
  bool ok = o->task_of != NULL && o->costs != NULL && o->before != NULL && o->touched != NULL &&
            o->first_edge != NULL && o->edges != NULL && by_task != NULL && seen != NULL;
  if (ok) {
    place_instructions(o, g, task_of);
    find_edges(o, g, task_of, by_task, seen);
    find_before(o);
  }
  tn__free(by_task, ((size_t)g->n_nodes + 1) * sizeof *by_task);
  tn__free(seen, ((size_t)n_tasks + 1) * sizeof *seen);
  return ok ? TN_OK : tn__no_memory(err, "layout", (size_t)o->n_slots * o->words * sizeof *o->touched);
}

/* ---- the gain ---- */

/* Time of an instruction without tasks, in ns. Kernels that share their loops take less than their cost. This is a
 * rough estimate; steps measure the real gain (core/exec/tasks.c). */
static double alone(const graph *g, uint32_t instr, uint32_t threads)
{
  double cost = g->costs[instr];
  bool shares =
      (g->plan->instrs[g->segment->begin + instr].traits & (TN_TRAIT_CONTRACTION | TN_TRAIT_ELEMENTWISE)) != 0;
  return shares && cost > SHARED_NS ? cost / threads + PASS_NS : cost;
}

/* The time, in ns, in which `threads` threads run the tasks, if each task, in the order of their numbers, begins on the
 * thread on which it can begin first. end, on: by task; scratch. */
static double makespan(const tn__task_order *o, const double *costs, uint32_t threads, double *end, uint32_t *on)
{
  double free_at[MOST_THREADS] = { 0 }, all = 0;
  for (uint32_t t = 0; t < o->n_tasks; t++) {
    uint32_t best = 0;
    double at = -1;
    for (uint32_t p = 0; p < threads; p++) {
      double begin = free_at[p];
      for (uint32_t e = o->first_edge[t]; e < o->first_edge[t + 1]; e++) {
        double there = end[o->edges[e]] + (on[o->edges[e]] == p ? 0 : PASS_NS);
        if (there > begin) begin = there;
      }
      if (at >= 0 && begin >= at) continue;
      at = begin;
      best = p;
    }
    end[t] = free_at[best] = at + costs[t];
    on[t] = best;
    if (end[t] > all) all = end[t];
  }
  return all;
}

/* Whether tasks shorten a step by the minimum gain. */
static tn_status is_worth_it(const graph *g, const tn__task_order *o, uint32_t threads, bool *worth, tn_error *err)
{
  size_t n = (size_t)o->n_tasks + 1;
  double *costs = tn__alloc_array(2 * n, sizeof *costs), now = 0, work = 0;
  uint32_t *on = tn__alloc_array(n, sizeof *on);
  bool ok = costs != NULL && on != NULL;
  for (uint32_t i = 0; ok && i < g->n_instrs; i++) {
    double cost = alone(g, i, threads);
    now += cost;
    work += g->costs[i];
    costs[o->task_of[i]] += cost;
  }
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  double then = ok ? makespan(o, costs, threads, costs + n, on) : 0;
  if (then < work / threads) then = work / threads;
  *worth = now - then >= MIN_GAIN_NS && now - then >= MIN_GAIN * now;
  tn__free(costs, 2 * n * sizeof *costs);
  tn__free(on, n * sizeof *on);
  return ok ? TN_OK : tn__no_memory(err, "layout", 2 * n * sizeof *costs);
}

/* ---- all of it ---- */

/* Cuts with longer and longer delays, which makes fewer tasks, until they are at most TN__MOST_TASKS. *n_tasks is 0 if
 * that fails. */
static tn_status cut(const graph *g, uint32_t threads, double delay_ns, uint32_t *task_of, uint32_t *n_tasks,
                     tn_error *err)
{
  const tn__task_graph plain = {
    .n = g->n_nodes, .costs = g->node_costs, .edges = g->edges, .first_edge = g->first_edge
  };
  tn_status st = TN_OK;
  *n_tasks = TN__MOST_TASKS + 1;
  for (int i = 0; st == TN_OK && i < MOST_TRIES && *n_tasks > TN__MOST_TASKS; i++, delay_ns *= 4)
    st = tn__tasks_cut(&plain, threads, delay_ns, task_of, n_tasks, err);
  if (*n_tasks > TN__MOST_TASKS) *n_tasks = 0;
  return st;
}

/* Makes the order of tasks if there is more than one task and they are worth it. For a scheduler, any task is. */
static tn_status make(const graph *g, uint32_t threads, bool scheduled, tn__task_order **out, tn_error *err)
{
  bool always = scheduled || atomic_load_explicit(&tn__tasks_always, memory_order_relaxed), worth = true;
  uint32_t wide = threads > MOST_THREADS / THREADS_FOR_EACH ? MOST_THREADS : threads * THREADS_FOR_EACH, n_tasks;
  uint32_t *task_of = tn__alloc_array((size_t)g->n_nodes + 1, sizeof *task_of);
  if (task_of == NULL) return tn__no_memory(err, "layout", g->n_nodes * sizeof *task_of);
  tn_status st = cut(g, wide, always ? 1 : TN__TASK_NS, task_of, &n_tasks, err);
  if (st == TN_OK && n_tasks > (scheduled ? 0 : 1)) {
    st = order_make(g, task_of, n_tasks, out, err);
    if (st == TN_OK && !always) st = is_worth_it(g, *out, threads, &worth, err);
    if (st == TN_OK) (*out)->measured = !always;
  }
  if (st != TN_OK || !worth) {
    tn__task_order_destroy(*out);
    *out = NULL;
  }
  tn__free(task_of, ((size_t)g->n_nodes + 1) * sizeof *task_of);
  return st;
}

/* Whether the segment takes long enough that half of it is worth waking a thread. */
static bool is_large(const tn__segment *segment, const double *costs)
{
  double sum = 0;
  for (uint32_t i = 0; i < segment->end - segment->begin; i++) sum += costs[i];
  return sum >= 2 * MIN_GAIN_NS || atomic_load_explicit(&tn__tasks_always, memory_order_relaxed);
}

tn_status tn__task_order_create(const tn_plan *plan, const tn__segment *segment, const double *costs,
                              tn__task_order **out, tn_error *err)
{
  bool scheduled = atomic_load_explicit(&plan->settings.scheduled, memory_order_relaxed);
  uint32_t threads = tn__plan_threads(plan);
  *out = NULL;
  if (segment->kind != TN__SEGMENT_TAPE || (!scheduled && (threads <= 1 || segment->end - segment->begin < 2)))
    return TN_OK;
  if (!scheduled && !is_large(segment, costs)) return TN_OK;
  graph g = { .plan = plan, .segment = segment, .costs = costs, .n_instrs = segment->end - segment->begin };
  tn_status st = graph_make(&g, err);
  if (st == TN_OK) st = make(&g, scheduled ? MOST_THREADS : threads, scheduled, out, err);
  graph_fini(&g);
  return st;
}
