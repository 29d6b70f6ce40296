/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts instructions into tasks by a timetable: each instruction, in its turn, is given to the thread on which it begins
 * first. A thread hears of what others have done after a delay, so what follows stays where it is unless there is
 * something to be gained. What stands on one thread in a row is a task; it ends where another thread would have to wait
 * for it, and a new one begins where it has to wait for another one.
 *
 * The times show that no tasks wait for each other: a task that others wait for has ended, in the timetable, when they
 * begin. The timetable is for cutting only: whoever is free runs what is ready. */
#include <core/layout/tasks.h>

#define MOST_COVERS 16 /* edges of a task that are looked through for one that is there already */

typedef struct cutter {
  const tn__task_graph *g;
  uint32_t n_threads;
  double delay_ns;
  double *free_at;    /* by thread */
  double *begin, *end; /* by instruction */
  uint32_t *thread;
  uint32_t *place;    /* among those of its thread */
  uint32_t *list;     /* instructions by thread */
  uint32_t *first;    /* of each thread in the list; n_threads + 1 */
  bool *last;         /* a task ends behind this instruction */
  uint32_t *open;     /* by thread: its task, TN__NONE = none yet */
  uint32_t *opener;   /* by thread: the first instruction of that */
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

/* When what an instruction waits for has ended. */
typedef struct arrival {
  double latest, other; /* of all; of those on another thread than the latest one, -1 = there are none */
  uint32_t thread;      /* of the latest one */
} arrival;

/* What waits for nothing waits for the first thread to begin. */
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

/* When it may begin on a thread. */
static double begins(const cutter *c, const arrival *a, uint32_t thread)
{
  double ready = thread != a->thread ? a->latest + c->delay_ns : a->latest;
  if (a->other >= 0 && a->other + c->delay_ns > ready) ready = a->other + c->delay_ns;
  return ready > c->free_at[thread] ? ready : c->free_at[thread];
}

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

static void list_by_thread(cutter *c)
{
  for (uint32_t t = 0; t < c->n_threads; t++) c->first[t + 1] += c->first[t];
  for (uint32_t t = 0; t < c->n_threads; t++) c->open[t] = c->first[t]; /* where its next one goes */
  for (uint32_t i = 0; i < c->g->n; i++) {
    c->place[i] = c->open[c->thread[i]]++;
    c->list[c->place[i]] = i;
  }
}

/* What another thread needs ends a task, not before it has to: what is done by then goes with it. */
static void end_in_time(cutter *c, uint32_t from, uint32_t to)
{
  double time = c->begin[to] - c->delay_ns;
  uint32_t low = c->place[from], high = c->first[c->thread[from] + 1];
  while (high - low > 1) { /* the last one that has ended by then */
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

/* Whether the task that is open waits for the task of `from` anyway. */
static bool covers(const cutter *c, const uint32_t *task_of, uint32_t thread, uint32_t from)
{
  uint32_t first = c->g->first_edge[c->opener[thread]], end = c->g->first_edge[c->opener[thread] + 1];
  if (end - first > MOST_COVERS) end = first + MOST_COVERS;
  for (uint32_t e = first; e < end; e++)
    if (task_of[c->g->edges[e]] == task_of[from]) return true;
  return false;
}

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
