/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts instructions into tasks by a timetable. In order, each instruction is assigned to the thread on which it can
 * begin first. A result of another thread arrives after a delay, so an instruction stays on the thread of its inputs
 * unless another thread is faster by more than that. Consecutive instructions of one thread are a task. A task ends
 * where another thread needs its result, and a new one begins where it has to wait for another thread.
 *
 * The times prove that tasks cannot wait for each other in a circle: in the timetable, a task has ended when the tasks
 * that wait for it begin. The timetable is for cutting only: at run time, any idle thread runs any ready task. */
#include <core/layout/tasks.h>

#define MOST_COVERS 16 /* maximum edges of a task that are searched for one that exists already */

/* Times are in ns from the start of the segment. */
typedef struct cutter {
  const tn__task_graph *g; /* borrowed */
  uint32_t n_threads;
  double delay_ns;
  double *free_at;     /* by thread: the end of its last instruction */
  double *begin, *end; /* by instruction */
  uint32_t *thread;    /* by instruction */
  uint32_t *place;     /* by instruction: its index in `list` */
  uint32_t *list;      /* instructions, sorted by thread */
  uint32_t *first;     /* by thread: its first index in `list`; n_threads + 1 */
  bool *last;          /* by instruction: a task ends after it */
  uint32_t *open;      /* by thread: its current task; TN__NONE = none yet */
  uint32_t *opener;    /* by thread: the first instruction of that task */
} cutter;

static void cutter_fini(cutter *c)
{
  size_t n = c->g->n, t = c->n_threads;
  tn__free(c->free_at, (t + 1) * sizeof *c->free_at);
  tn__free(c->begin, (n + 1) * sizeof *c->begin);
  tn__free(c->end, (n + 1) * sizeof *c->end);
  tn__free(c->thread, (n + 1) * sizeof *c->thread);
  tn__free(c->place, (n + 1) * sizeof *c->place);
  tn__free(c->list, (n + 1) * sizeof *c->list);
  tn__free(c->first, (t + 2) * sizeof *c->first);
  tn__free(c->last, (n + 1) * sizeof *c->last);
  tn__free(c->open, (t + 1) * sizeof *c->open);
  tn__free(c->opener, (t + 1) * sizeof *c->opener);
}

static bool cutter_init(cutter *c)
{
  size_t n = c->g->n, t = c->n_threads;
  c->free_at = tn__alloc_array(t + 1, sizeof *c->free_at);
  c->begin = tn__alloc_array(n + 1, sizeof *c->begin);
  c->end = tn__alloc_array(n + 1, sizeof *c->end);
  c->thread = tn__alloc_array(n + 1, sizeof *c->thread);
  c->place = tn__alloc_array(n + 1, sizeof *c->place);
  c->list = tn__alloc_array(n + 1, sizeof *c->list);
  c->first = tn__alloc_array(t + 2, sizeof *c->first);
  c->last = tn__alloc_array(n + 1, sizeof *c->last);
  c->open = tn__alloc_array(t + 1, sizeof *c->open);
  c->opener = tn__alloc_array(t + 1, sizeof *c->opener);
  return c->free_at != NULL && c->begin != NULL && c->end != NULL && c->thread != NULL && c->place != NULL &&
         c->list != NULL && c->first != NULL && c->last != NULL && c->open != NULL && c->opener != NULL;
}

/* ---- the timetable ---- */

/* When the instructions that one waits for have ended. */
typedef struct arrival {
  double latest;   /* the last of all */
  double other;    /* the last of those on other threads than the latest one; -1 = there are none */
  uint32_t thread; /* thread of the latest one */
} arrival;

/* An instruction that waits for nothing counts as if it waited for thread 0 at time 0. */
static arrival arrival_of(const cutter *c, uint32_t i)
{
  arrival a = { 0, -1, TN__NONE };
  for (uint32_t e = c->g->first_edge[i]; e < c->g->first_edge[i + 1]; e++) {
    uint32_t from = c->g->edges[e];
    if (a.thread == TN__NONE || c->end[from] >= a.latest) {
      if (a.thread != TN__NONE && a.thread != c->thread[from]) a.other = a.latest;
      a.latest = c->end[from];
      a.thread = c->thread[from];
    } else if (c->thread[from] != a.thread && c->end[from] > a.other) {
      a.other = c->end[from];
    }
  }
  if (a.thread == TN__NONE) a.thread = 0;
  return a;
}

/* When an instruction can begin on a thread. */
static double begins(const cutter *c, const arrival *a, uint32_t thread)
{
  double ready = thread != a->thread ? a->latest + c->delay_ns : a->latest;
  if (a->other >= 0 && a->other + c->delay_ns > ready) ready = a->other + c->delay_ns;
  return ready > c->free_at[thread] ? ready : c->free_at[thread];
}

/* Assigns an instruction to a thread: that of its latest input, unless it can begin earlier on another one. */
static void settle(cutter *c, uint32_t i)
{
  const arrival a = arrival_of(c, i);
  uint32_t best = a.thread;
  double at = begins(c, &a, best);
  for (uint32_t t = 0; t < c->n_threads && c->g->costs[i] > 0 && at > a.latest; t++) {
    double there = begins(c, &a, t);
    if (there >= at) continue;
    at = there;
    best = t;
  }
  c->thread[i] = best;
  c->begin[i] = at;
  c->end[i] = c->free_at[best] = at + c->g->costs[i];
  c->first[best + 1]++;
}

/* ---- cutting ---- */

/* Sorts the instructions by thread, in the order in which each thread runs them. */
static void list_by_thread(cutter *c)
{
  for (uint32_t t = 0; t < c->n_threads; t++) c->first[t + 1] += c->first[t];
  for (uint32_t t = 0; t < c->n_threads; t++) c->open[t] = c->first[t]; /* the next index of each thread */
  for (uint32_t i = 0; i < c->g->n; i++) {
    c->place[i] = c->open[c->thread[i]]++;
    c->list[c->place[i]] = i;
  }
}

/* Another thread needs the result of `from` for `to`, so a task must end after `from`. It ends as late as possible: it
 * includes what its thread has finished by the time at which the result must be sent. */
static void end_in_time(cutter *c, uint32_t from, uint32_t to)
{
  double time = c->begin[to] - c->delay_ns;
  uint32_t low = c->place[from], high = c->first[c->thread[from] + 1];
  while (high - low > 1) { /* binary search for the last instruction that has ended by then */
    uint32_t middle = low + (high - low) / 2;
    if (c->end[c->list[middle]] <= time) low = middle;
    else high = middle;
  }
  c->last[c->list[low]] = true;
}

static void find_ends(cutter *c)
{
  for (uint32_t i = 0; i < c->g->n; i++)
    for (uint32_t e = c->g->first_edge[i]; e < c->g->first_edge[i + 1]; e++)
      if (c->thread[c->g->edges[e]] != c->thread[i]) end_in_time(c, c->g->edges[e], i);
}

/* Whether the thread's current task waits for the task of `from` already. */
static bool covers(const cutter *c, const uint32_t *task_of, uint32_t thread, uint32_t from)
{
  uint32_t first = c->g->first_edge[c->opener[thread]], end = c->g->first_edge[c->opener[thread] + 1];
  if (end - first > MOST_COVERS) end = first + MOST_COVERS;
  for (uint32_t e = first; e < end; e++)
    if (task_of[c->g->edges[e]] == task_of[from]) return true;
  return false;
}

/* Whether instruction i begins a new task: the previous one ended, or i has to wait for a further task. */
static bool begins_one(const cutter *c, const uint32_t *task_of, uint32_t i)
{
  uint32_t thread = c->thread[i];
  if (c->open[thread] == TN__NONE || c->last[c->list[c->place[i] - 1]]) return true;
  for (uint32_t e = c->g->first_edge[i]; e < c->g->first_edge[i + 1]; e++) {
    uint32_t from = c->g->edges[e];
    if (c->thread[from] != thread && !covers(c, task_of, thread, from)) return true;
  }
  return false;
}

tn_status tn__tasks_cut(const tn__task_graph *g, uint32_t threads, double delay_ns, uint32_t *task_of,
                        uint32_t *n_tasks, tn_error *err)
{
  cutter c = { .g = g, .n_threads = threads, .delay_ns = delay_ns };
  bool ok = cutter_init(&c);
  *n_tasks = 0;
  for (uint32_t i = 0; ok && i < g->n; i++) settle(&c, i);
  if (ok) {
    list_by_thread(&c);
    find_ends(&c);
    for (uint32_t t = 0; t < threads; t++) c.open[t] = TN__NONE;
  }
  for (uint32_t i = 0; ok && i < g->n; i++) {
    uint32_t t = c.thread[i];
    if (begins_one(&c, task_of, i)) {
      c.open[t] = (*n_tasks)++;
      c.opener[t] = i;
    }
    task_of[i] = c.open[t];
  }
  cutter_fini(&c);
  return ok ? TN_OK : tn__no_memory(err, "layout", g->n * sizeof(double));
}
