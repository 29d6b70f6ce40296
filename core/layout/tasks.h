/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: the calls of a layout's tape, cut into pieces that threads may run concurrently. Dependences are edges between
 * tasks. A layout has no tasks if one thread alone is as fast. */
#ifndef TN_CORE_LAYOUT_TASKS_H
#define TN_CORE_LAYOUT_TASKS_H

#include <core/plan/plan.h>

struct tn__layout;

#define TN__TASK_NS 10000   /* about the time until another thread begins with a task given to it */
#define TN__MOST_TASKS 1024 /* of a layout: with more they are made fewer and larger */

/* One task: calls in the order of the tape. Tasks are numbered in an order in which they can run. */
typedef struct tn__plan_task {
  uint32_t calls, n_calls; /* in tn__plan_tasks.calls */
  uint32_t nexts,
      n_nexts; /* in tn__plan_tasks.nexts: tasks that wait for it, the one with the longest way to the end first */
  uint32_t n_before;       /* tasks that it waits for */
  uint32_t counts, n_counts; /* in tn__plan_tasks.counts */
  float cost_ns;
  float ahead_ns; /* with the later tasks that wait for no other task */
  float path_ns;  /* the longest way from its begin to the end */
} tn__plan_task;

/* A heap value that is released when several tasks have ended, in whatever order. */
typedef struct tn__plan_count {
  uint32_t slot; /* root */
  uint32_t n;    /* number of tasks that use it */
} tn__plan_count;

typedef struct tn__plan_tasks {
  tn__plan_task *tasks;
  uint32_t n_tasks;
  uint32_t n_roots, n_counted, n_counts;
  uint32_t *calls;  /* places in the tape */
  uint32_t *nexts;  /* tasks */
  uint32_t *roots;  /* tasks that wait for none, the one with the longest way first */
  tn__plan_count *counted;
  uint32_t *counts; /* indices into `counted`, by task */
  bool *is_counted; /* by slot; NULL = none is */
  bool measured;    /* runs decide whether they are faster */
  /* Measurements of core/exec/tasks.c. */
  _Atomic uint32_t turn;
  _Atomic uint32_t one_ns, all_ns; /* the fastest time of this trial in order, and by tasks; 0 = none yet */
  _Atomic bool chosen;             /* tasks are faster */
} tn__plan_tasks;

/* While a layout is made: the task of each instruction, the order of tasks, the tasks that use each slot. */
typedef struct tn__task_order {
  uint32_t begin, n_instrs, n_tasks, n_slots, words;
  uint32_t *task_of; /* by instruction of the segment */
  uint64_t *before;  /* by task, `words` each: itself, and the tasks that have ended when it begins */
  uint64_t *touched; /* by slot, of roots: tasks that use the memory so far */
  uint32_t *edges;   /* by task: the tasks that it waits for */
  uint32_t *first_edge; /* n_tasks + 1 */
  uint32_t edge_room;
  double *costs;     /* by instruction of the segment */
  bool measured;
} tn__task_order;

/* Cuts the segment; *out is NULL if one thread is enough. costs: by instruction of the segment, in nanoseconds, 0 for
 * one that is not called (tasks.c). */
tn_status tn__task_order_make(const tn_plan *plan, const tn__segment *segment, const double *costs,
                              tn__task_order **out, tn_error *err);
void tn__task_order_free(tn__task_order *order); /* NULL allowed */

static inline uint32_t tn__task_of(const tn__task_order *o, uint32_t instr) { return o->task_of[instr - o->begin]; }
static inline uint64_t *tn__task_before(const tn__task_order *o, uint32_t task)
{
  return o->before + (size_t)task * o->words;
}
static inline uint64_t *tn__task_touched(const tn__task_order *o, uint32_t slot)
{
  return o->touched + (size_t)slot * o->words;
}

/* Notes that the instruction reads or writes the memory of the root. Called in the order of the instructions. */
static inline void tn__task_touch(const tn__task_order *o, uint32_t root, uint32_t instr)
{
  uint32_t t = tn__task_of(o, instr);
  tn__task_touched(o, root)[t / 64] |= UINT64_C(1) << t % 64;
}
/* Whether all in the set have ended when a task begins, or are earlier calls of it. */
static inline bool tn__task_follows(const tn__task_order *o, const uint64_t *set, uint32_t task)
{
  const uint64_t *before = tn__task_before(o, task);
  for (uint32_t w = 0; w < o->words; w++)
    if (set[w] & ~before[w]) return false;
  return true;
}

/* Makes layout->tasks, once the layout has its tape (tasks_tape.c). */
tn_status tn__tasks_make(const tn__task_order *order, struct tn__layout *layout, tn_error *err);

/* tasks_cut.c: a schedule for that many threads, on which a result of one is known to the others after delay_ns. */
typedef struct tn__task_graph {
  uint32_t n;           /* instructions of the segment */
  const double *costs;
  const uint32_t *edges; /* by instruction: earlier ones that it needs; from 0 */
  const uint32_t *first_edge; /* n + 1 */
} tn__task_graph;
/* Fills task_of; *n_tasks may be above TN__MOST_TASKS. */
tn_status tn__tasks_cut(const tn__task_graph *graph, uint32_t threads, double delay_ns, uint32_t *task_of,
                        uint32_t *n_tasks, tn_error *err);

/* For tests: tasks of any size, wherever more than one thread may work, and no measuring whether they are faster. */
extern _Atomic bool tn__tasks_always;

#endif
