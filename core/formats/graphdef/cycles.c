/* SPDX-License-Identifier: Apache-2.0 */
/* Cycles among the nodes of an import: a depth-first walk with a stack on the heap. */
#include <core/formats/graphdef/import.h>

typedef struct frame {
  tn_operation *op;
  size_t next; /* number of the next edge: data inputs, then control inputs */
} frame;

typedef struct walker {
  tn__importer *im;
  uint8_t *seen; /* for each new node: 0 not visited, 1 on the stack, 2 done */
  frame *stack;
  size_t depth, room;
} walker;

/* The next new node to visit from f, NULL = none. Edges that may close a cycle are skipped: back edges of loops, and
 * all edges into an unregistered op, which may be part of a loop. */
static tn_operation *next_edge(const walker *wk, frame *f)
{
  size_t n = (size_t)f->op->n_inputs + f->op->n_controls;
  if (f->op->schema == NULL) return NULL;
  while (f->next < n) {
    size_t i = f->next++;
    tn_operation *from = i < f->op->n_inputs ? f->op->inputs[i].op : f->op->controls[i - f->op->n_inputs];
    if (from->id < wk->im->first || (i < f->op->n_inputs && tn__is_back_edge(from, f->op))) continue;
    if (wk->seen[from->id - wk->im->first] != 2) return from;
  }
  return NULL;
}

/* Names the nodes of the cycle, which are the top of the stack down to `again`, in the direction of the edges. */
static tn_status report_cycle(const walker *wk, const tn_operation *again)
{
  tn__text t;
  tn__text_init(&t, 1000);
  size_t i = wk->depth;
  while (i > 0 && wk->stack[i - 1].op != again) i--;
  tn__text_printf(&t, "'%s'", again->name);
  for (size_t k = wk->depth; k > i; k--) tn__text_printf(&t, " -> '%s'", wk->stack[k - 1].op->name);
  tn__text_printf(&t, " -> '%s'", again->name);
  tn_error_set(wk->im->err, TN_INVALID_ARGUMENT, "%s: nodes form a cycle: %s%s", wk->im->name, tn__text_get(&t),
               t.failed ? " ..." : "");
  tn_error_set_node(wk->im->err, again->name);
  tn__text_fini(&t);
  return TN_INVALID_ARGUMENT; /* S-GRA-09 */
}

/* A node that is on the stack already closes a cycle. */
static tn_status push(walker *wk, tn_operation *op)
{
  uint8_t *seen = &wk->seen[op->id - wk->im->first];
  if (*seen == 1) return report_cycle(wk, op);
  if (!tn__import_grow(wk->im, (void **)&wk->stack, &wk->room, wk->depth + 1, sizeof *wk->stack))
    return tn__import_no_memory(wk->im);
  *seen = 1;
  wk->stack[wk->depth++] = (frame){ op, 0 };
  return TN_OK;
}

/* Visits everything that root depends on. */
static tn_status walk_from(walker *wk, tn_operation *root)
{
  if (wk->seen[root->id - wk->im->first] != 0) return TN_OK;
  tn_status st = push(wk, root);
  while (st == TN_OK && wk->depth > 0) {
    tn_operation *next = next_edge(wk, &wk->stack[wk->depth - 1]);
    if (next != NULL)
      st = push(wk, next);
    else
      wk->seen[wk->stack[--wk->depth].op->id - wk->im->first] = 2;
  }
  return st;
}

tn_status tn__import_check_cycles(tn__importer *im)
{
  if (im->n_waiting == 0) return TN_OK; /* every edge is from an earlier node, so there is no cycle */
  size_t n = im->graph->staged - im->first;
  walker wk = { .im = im, .seen = tn__zalloc(n) };
  if (wk.seen == NULL) return tn__import_no_memory(im);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = walk_from(&wk, tn__graph_at(im->graph, im->first + i));
  tn__free(wk.stack, wk.room * sizeof *wk.stack);
  tn__free(wk.seen, n);
  return st;
}
