/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <tools/common/shares.h>
#include <tools/tool.h>

typedef struct moment {
  int64_t at;
  size_t span;
  bool ends;
} moment;

/* At equal times, ends sort before starts. Of spans with the same start, the first encloses the others. */
static int compare(const void *a, const void *b)
{
  const moment *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  if (x->ends != y->ends) return x->ends ? -1 : 1;
  bool first = x->span < y->span;
  return first != x->ends ? -1 : 1;
}

/* The spans of a thread that have begun and not ended, in the order of their start. */
typedef struct active {
  size_t *items;
  size_t n, room;
} active;

static void put(active *list, size_t span)
{
  list->items = tool_grow(list->items, list->n, &list->room, sizeof(*list->items));
  list->items[list->n++] = span;
}

static void take_away(active *list, size_t span)
{
  size_t i = list->n;
  while (i > 0 && list->items[i - 1] != span) i--;
  if (i == 0) return;
  memmove(list->items + i - 1, list->items + i, (list->n - i) * sizeof(*list->items));
  list->n--;
}

typedef struct lane {
  uint32_t thread;
  active running, waiting;
} lane;

typedef struct lanes {
  lane *items;
  size_t n, room;
} lanes;

static lane *lane_of(lanes *all, uint32_t thread)
{
  for (size_t i = 0; i < all->n; i++)
    if (all->items[i].thread == thread) return &all->items[i];
  all->items = tool_grow(all->items, all->n, &all->room, sizeof(*all->items));
  all->items[all->n] = (lane){ .thread = thread };
  return &all->items[all->n++];
}

/* Divides an interval among the lanes that run, or, if none runs, among those that wait. */
static void divide(const lanes *all, const time_span *spans, double length, double *ns)
{
  size_t running = 0, waiting = 0;
  for (size_t i = 0; i < all->n; i++) {
    running += all->items[i].running.n > 0;
    waiting += all->items[i].waiting.n > 0;
  }
  size_t n = running > 0 ? running : waiting;
  for (size_t i = 0; i < all->n; i++) {
    const active *list = running > 0 ? &all->items[i].running : &all->items[i].waiting;
    if (list->n > 0) ns[spans[list->items[list->n - 1]].owner] += length / (double)n;
  }
}

void tool_share_time(const time_span *spans, size_t n, double *ns)
{
  moment *moments = tool_alloc(2 * n + 1, sizeof(*moments));
  lanes all = { 0 };
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    if (spans[i].end_ns <= spans[i].start_ns) continue;
    moments[count++] = (moment){ spans[i].start_ns, i, false };
    moments[count++] = (moment){ spans[i].end_ns, i, true };
  }
  qsort(moments, count, sizeof(*moments), compare);
  for (size_t i = 0; i < count; i++) {
    double length = i > 0 ? (double)(moments[i].at - moments[i - 1].at) : 0;
    if (length > 0) divide(&all, spans, length, ns);
    const time_span *span = &spans[moments[i].span];
    lane *l = lane_of(&all, span->thread);
    active *list = span->waited ? &l->waiting : &l->running;
    if (moments[i].ends)
      take_away(list, moments[i].span);
    else
      put(list, moments[i].span);
  }
  for (size_t i = 0; i < all.n; i++) {
    free(all.items[i].running.items);
    free(all.items[i].waiting.items);
  }
  free(all.items);
  free(moments);
}
