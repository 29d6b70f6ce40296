/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tasks of a layout from its tape: the calls of each task, the tasks that wait for it, and the values that
 * are released after it. */
#include <core/layout/layout.h>
#include <core/layout/tasks.h>

typedef struct maker {
  const tn__task_order *order;
  tn__layout *layout;
  tn__plan_tasks *tasks;
} maker;

static tn_status allocate(maker *m, tn_error *err)
{
  const tn__task_order *o = m->order;
  tn__arena *a = &m->layout->arena;
  tn__plan_tasks *s = m->tasks = tn__arena_zalloc(a, sizeof *s);
  uint32_t n_edges = o->first_edge[o->n_tasks];
  if (s == NULL) return tn__no_memory(err, "layout", sizeof *s);
  s->n_tasks = o->n_tasks;
  s->measured = o->measured;
  s->tasks = tn__arena_array(a, (size_t)o->n_tasks + 1, sizeof *s->tasks);
  s->calls = tn__arena_array(a, (size_t)m->layout->n_tape + 1, sizeof *s->calls);
  s->nexts = tn__arena_array(a, (size_t)n_edges + 1, sizeof *s->nexts);
  s->roots = tn__arena_array(a, (size_t)o->n_tasks + 1, sizeof *s->roots);
  bool ok = s->tasks != NULL && s->calls != NULL && s->nexts != NULL && s->roots != NULL;
  return ok ? TN_OK : tn__no_memory(err, "layout", o->n_tasks * sizeof *s->tasks);
}

/* Sorts the calls of the tape by task, and sums their costs. */
static void place_calls(maker *m)
{
  const tn__layout *l = m->layout;
  tn__plan_tasks *s = m->tasks;
  for (uint32_t i = 0; i < l->n_tape; i++) s->tasks[tn__task_of(m->order, l->tape[i].instr)].n_calls++;
  for (uint32_t t = 0, at = 0; t < s->n_tasks; t++) {
    s->tasks[t].calls = at;
    at += s->tasks[t].n_calls;
    s->tasks[t].n_calls = 0;
  }
  for (uint32_t i = 0; i < l->n_tape; i++) {
    uint32_t instr = l->tape[i].instr;
    tn__plan_task *t = &s->tasks[tn__task_of(m->order, instr)];
    s->calls[t->calls + t->n_calls++] = i;
    t->cost_ns += (float)m->order->costs[instr - m->order->begin];
  }
}

/* Inserts a task in a list sorted by descending path_ns. Lists are usually short. */
static void insert_by_path(const tn__plan_tasks *s, uint32_t *list, uint32_t n, uint32_t task)
{
  while (n > 0 && s->tasks[list[n - 1]].path_ns < s->tasks[task].path_ns) {
    list[n] = list[n - 1];
    n--;
  }
  list[n] = task;
}

/* Lists the tasks that wait for each task, and computes ahead_ns and path_ns. Runs from the last task to the first,
 * because tasks that wait for one have higher numbers. */
static void link_tasks(maker *m)
{
  const tn__task_order *o = m->order;
  tn__plan_tasks *s = m->tasks;
  for (uint32_t t = 0; t < o->n_tasks; t++) {
    s->tasks[t].n_before = o->first_edge[t + 1] - o->first_edge[t];
    for (uint32_t e = o->first_edge[t]; e < o->first_edge[t + 1]; e++) s->tasks[o->edges[e]].n_nexts++;
  }
  for (uint32_t t = 0, at = 0; t < o->n_tasks; t++) {
    s->tasks[t].nexts = at;
    at += s->tasks[t].n_nexts;
    s->tasks[t].n_nexts = 0;
  }
  for (uint32_t t = o->n_tasks; t-- > 0;) {
    tn__plan_task *task = &s->tasks[t];
    for (uint32_t k = 0; k < task->n_nexts; k++) {
      const tn__plan_task *next = &s->tasks[s->nexts[task->nexts + k]];
      if (next->path_ns > task->path_ns) task->path_ns = next->path_ns;
      if (next->n_before == 1 && next->ahead_ns > task->ahead_ns) task->ahead_ns = next->ahead_ns;
    }
    task->path_ns += task->cost_ns;
    task->ahead_ns += task->cost_ns;
    for (uint32_t e = o->first_edge[t]; e < o->first_edge[t + 1]; e++) {
      tn__plan_task *before = &s->tasks[o->edges[e]];
      insert_by_path(s, s->nexts + before->nexts, before->n_nexts++, t);
    }
    if (task->n_before == 0) insert_by_path(s, s->roots, s->n_roots++, t);
  }
}

/* ---- heap values ---- */

/* Number of tasks that use the memory of a slot. */
static uint32_t count_tasks(const maker *m, uint32_t slot)
{
  uint32_t n = 0;
  for (uint32_t w = 0; w < m->order->words; w++)
    n += (uint32_t)__builtin_popcountll(tn__task_touched(m->order, slot)[w]);
  return n;
}

/* Whether other tasks that use the value may run after the call that is its last reader in the tape. */
static bool is_counted(const maker *m, const tn__tape *t, uint32_t slot)
{
  return !tn__task_follows(m->order, tn__task_touched(m->order, slot), tn__task_of(m->order, t->instr));
}

/* Lists the heap values that must be counted instead of being released by a call. */
static tn_status list_counted(maker *m, tn_error *err)
{
  tn__layout *l = m->layout;
  tn__plan_tasks *s = m->tasks;
  uint32_t most = 0;
  for (uint32_t i = 0; i < l->n_tape; i++)
    for (uint32_t k = 0; k < l->tape[i].n_release; k++)
      most += is_counted(m, &l->tape[i], l->operands[l->tape[i].release + k]);
  if (most == 0) return TN_OK;
  s->counted = tn__arena_array(&l->arena, most, sizeof *s->counted);
  s->is_counted = tn__arena_array(&l->arena, l->n_slots, sizeof *s->is_counted);
  if (s->counted == NULL || s->is_counted == NULL) return tn__no_memory(err, "layout", l->n_slots);
  for (uint32_t i = 0; i < l->n_tape; i++)
    for (uint32_t k = 0; k < l->tape[i].n_release; k++) {
      uint32_t slot = l->operands[l->tape[i].release + k];
      if (!is_counted(m, &l->tape[i], slot)) continue;
      s->is_counted[slot] = true;
      s->counted[s->n_counted++] = (tn__plan_count){ slot, count_tasks(m, slot) };
      s->n_counts += s->counted[s->n_counted - 1].n;
    }
  return TN_OK;
}

static bool touches(const maker *m, uint32_t slot, uint32_t task)
{
  return (tn__task_touched(m->order, slot)[task / 64] >> task % 64 & 1) != 0;
}

/* Lists, for each task, the counted values that it uses. */
static tn_status list_counts(maker *m, tn_error *err)
{
  tn__plan_tasks *s = m->tasks;
  if (s->n_counted == 0) return TN_OK;
  s->counts = tn__arena_array(&m->layout->arena, s->n_counts, sizeof *s->counts);
  if (s->counts == NULL) return tn__no_memory(err, "layout", s->n_counts * sizeof *s->counts);
  for (uint32_t i = 0; i < s->n_counted; i++)
    for (uint32_t t = 0; t < s->n_tasks; t++) s->tasks[t].n_counts += touches(m, s->counted[i].slot, t);
  for (uint32_t t = 0, at = 0; t < s->n_tasks; t++) {
    s->tasks[t].counts = at;
    at += s->tasks[t].n_counts;
    s->tasks[t].n_counts = 0;
  }
  for (uint32_t i = 0; i < s->n_counted; i++)
    for (uint32_t t = 0; t < s->n_tasks; t++)
      if (touches(m, s->counted[i].slot, t)) s->counts[s->tasks[t].counts + s->tasks[t].n_counts++] = i;
  return TN_OK;
}

tn_status tn__tasks_build(const tn__task_order *order, tn__layout *layout, tn_error *err)
{
  maker m = { .order = order, .layout = layout };
  tn_status st = allocate(&m, err);
  if (st == TN_OK) {
    place_calls(&m);
    link_tasks(&m);
    st = list_counted(&m, err);
  }
  if (st == TN_OK) st = list_counts(&m, err);
  if (st == TN_OK) layout->tasks = m.tasks;
  return st;
}
