/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: the calls of a layout's tape, cut into pieces that threads may run concurrently. Dependences are edges between
 * tasks. A layout has no tasks if one thread alone is as fast. */
#ifndef TN_CORE_LAYOUT_TASKS_H
#define TN_CORE_LAYOUT_TASKS_H

#include <core/plan/plan.h>

struct tn__layout;

#define TN__TASK_NS 10000   /* approximate time until another thread begins a task handed to it */
#define TN__MOST_TASKS 1024 /* maximum of a layout; if there would be more, fewer and larger ones are made */

/* One task: calls in the order of the tape. Tasks are numbered in an order in which they can run. */
typedef struct tn__plan_task {
  uint32_t calls, n_calls; /* range in tn__plan_tasks.calls */
  uint32_t nexts, n_nexts; /* range in tn__plan_tasks.nexts: tasks that wait for it, largest path_ns first */
  uint32_t n_before;         /* number of tasks that it waits for */
  uint32_t counts, n_counts; /* range in tn__plan_tasks.counts */
  float cost_ns;             /* of its calls */
  float ahead_ns; /* of it and the costliest chain of tasks after it that each wait for their predecessor only */
  float path_ns;  /* of it and the costliest chain of tasks after it, to the end */
} tn__plan_task;

/* A heap value that is released when all tasks that use it have ended, in whatever order. */
typedef struct tn__plan_count {
  uint32_t slot; /* root */
  uint32_t n;    /* number of tasks that use it */
} tn__plan_count;

/* All arrays are in the layout's arena. */
typedef struct tn__plan_tasks {
  tn__plan_task *tasks;
  uint32_t n_tasks;
  uint32_t n_roots, n_counted, n_counts;
  uint32_t *calls;  /* indices in layout->tape */
  uint32_t *nexts;  /* tasks */
  uint32_t *roots;  /* tasks that wait for no other, largest path_ns first */
  tn__plan_count *counted;
  uint32_t *counts; /* indices in `counted`, by task */
  bool *is_counted; /* by slot; NULL = none is */
  bool measured;    /* steps measure whether tasks are faster than one thread */
  /* Measurements of core/exec/tasks.c, in ns. */
  _Atomic uint32_t turn;
  _Atomic uint32_t one_ns, all_ns; /* fastest time of this trial in order, and by tasks; 0 = none yet */
  _Atomic bool chosen;             /* tasks are faster */
} tn__plan_tasks;

/* Exists while a layout is made: the task of each instruction, the order of tasks, the tasks that use each slot. Sets
 * of tasks are bit sets of `words` words. */
typedef struct tn__task_order {
  uint32_t begin; /* first instruction of the segment */
  uint32_t n_instrs, n_tasks, n_slots, words;
  uint32_t *task_of; /* by instruction of the segment */
  uint64_t *before;  /* by task, a set: itself, and the tasks that have ended when it begins */
  uint64_t *touched; /* by slot, for roots, a set: the tasks that use its memory, so far */
  uint32_t *edges;   /* tasks that a task waits for: those of task t begin at first_edge[t] */
  uint32_t *first_edge; /* n_tasks + 1 */
  uint32_t edge_room;
  double *costs; /* by instruction of the segment, in ns */
  bool measured; /* as in tn__plan_tasks */
} tn__task_order;

/* Cuts the segment into tasks (tasks.c). *out is NULL if one thread is enough. costs: by instruction of the segment, in
 * ns, 0 for one that needs no call. */
tn_status tn__task_order_create(const tn_plan *plan, const tn__segment *segment, const double *costs,
                              tn__task_order **out, tn_error *err);
void tn__task_order_destroy(tn__task_order *order); /* NULL allowed */

static inline uint32_t tn__task_of(const tn__task_order *o, uint32_t instr) { return o->task_of[instr - o->begin]; }
static inline uint64_t *tn__task_before(const tn__task_order *o, uint32_t task)
{
  return o->before + (size_t)task * o->words;
}
static inline uint64_t *tn__task_touched(const tn__task_order *o, uint32_t slot)
{
  return o->touched + (size_t)slot * o->words;
}

/* Records that the instruction reads or writes the memory of the root. Call it in the order of the instructions. */
static inline void tn__task_touch(const tn__task_order *o, uint32_t root, uint32_t instr)
{
  uint32_t t = tn__task_of(o, instr);
  tn__task_touched(o, root)[t / 64] |= UINT64_C(1) << t % 64;
}
/* Whether every task of the set has ended when `task` begins, or is `task` itself, whose calls run in order. */
static inline bool tn__task_follows(const tn__task_order *o, const uint64_t *set, uint32_t task)
{
  const uint64_t *before = tn__task_before(o, task);
  for (uint32_t w = 0; w < o->words; w++)
    if (set[w] & ~before[w]) return false;
  return true;
}

/* Sets layout->tasks. The layout must have its tape (tasks_tape.c). */
tn_status tn__tasks_build(const tn__task_order *order, struct tn__layout *layout, tn_error *err);

/* The instructions to be cut, numbered from 0. */
typedef struct tn__task_graph {
  uint32_t n;
  const double *costs;        /* in ns */
  const uint32_t *edges;      /* earlier instructions that one needs: those of i begin at first_edge[i] */
  const uint32_t *first_edge; /* n + 1 */
} tn__task_graph;
/* Cuts by a timetable for `threads` threads, where a result of one thread reaches the others after delay_ns
 * (tasks_cut.c). Fills task_of, by instruction; *n_tasks may exceed TN__MOST_TASKS. */
tn_status tn__tasks_cut(const tn__task_graph *graph, uint32_t threads, double delay_ns, uint32_t *task_of,
                        uint32_t *n_tasks, tn_error *err);

/* For tests: makes tasks of any size if more than one thread may work, and does not measure whether they are faster. */
extern _Atomic bool tn__tasks_always;

#endif
