/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of graphs: assigns the needed operations to frames, and replaces each loop by one node.
 *
 * An Enter opens a frame, identified by its name and the frame of its input; an Exit leads out of it. Operations that
 * are connected within the outermost frames form one loop. Its body is compiled as a signature of the same graph. The
 * signature is fed at the Enters and at the Merges that begin an iteration, and fetches the NextIterations and the
 * Exits. Inner loops are found when the body is compiled. */
#include <core/compile/import/frames.h>

/* ---- the order ---- */

/* The next operation that a unit needs: one of the plan's own frame, or one in a loop. NULL if there is none left. For
 * a loop, the upper 32 bits of u->next are the index of an Enter, the lower 32 bits that of an edge of it. */
static tn_operation *next_needed(tn__frame_finder *f, tn__frame_unit *u)
{
  size_t n = SIZE_MAX;
  if (u->loop == TN__NONE) {
    while (u->next < n) {
      tn_operation *from = tn__frames_source(f, u->op, u->next, &n);
      u->next++;
      if (from != NULL && !tn__is_back_edge(from, u->op)) return from;
    }
    return NULL;
  }
  const tn__frame_loop *l = &f->loops[u->loop];
  while (u->next >> 32 < l->enters.n) {
    tn_operation *from = tn__frames_source(f, l->enters.items[u->next >> 32], (uint32_t)u->next, &n);
    u->next = (uint32_t)u->next + 1 < n ? u->next + 1 : ((u->next >> 32) + 1) << 32;
    if (from != NULL) return from;
  }
  return NULL;
}

/* Pushes the unit of an operation unless it has been seen. */
static tn_status push(tn__frame_finder *f, tn_operation *op)
{
  uint8_t *seen = &f->seen[tn__operation_id(op)];
  tn__frame_unit u = { op, TN__NONE, 0 };
  if (tn__pruned(f->c, op)->frame != 0) {
    tn_status st = tn__frames_loop_of(f, op, &u.loop);
    if (st != TN_OK) return st;
    seen = &f->loops[u.loop].visit;
    if (*seen == 1) /* the graph refuses cycles outside loops */
      return tn__ir_refuse(f->c->ir, op,
                           tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                        "node '%s': an input of its loop depends on "
                                        "an output of the loop",
                                        tn_operation_name(op)));
  }
  if (*seen != 0) return TN_OK;
  if (!tn__grow((void **)&f->stack, &f->stack_room, f->depth + 1, sizeof *f->stack)) return tn__frames_no_memory(f);
  *seen = 1;
  f->stack[f->depth++] = u;
  return TN_OK;
}

/* Adds the nodes of a unit after those of everything that it needs. */
static tn_status add_in_order(tn__frame_finder *f, tn_operation *root)
{
  tn_status st = push(f, root);
  while (st == TN_OK && f->depth > 0) {
    tn_operation *from = next_needed(f, &f->stack[f->depth - 1]);
    if (from != NULL) {
      st = push(f, from);
      continue;
    }
    const tn__frame_unit u = f->stack[--f->depth];
    st = u.loop == TN__NONE ? tn__prune_add(f->c, u.op) : tn__frames_add_loop(f, &f->loops[u.loop]);
    if (u.loop == TN__NONE) f->seen[tn__operation_id(u.op)] = 2;
    else f->loops[u.loop].visit = 2;
  }
  return st;
}

static void list_fini(tn__op_list *l) { tn__free(l->items, l->room * sizeof *l->items); }

static void finder_fini(tn__frame_finder *f)
{
  for (size_t i = 1; i < f->n_frames; i++) tn__free(f->frames[i].key, f->frames[i].key_size);
  tn__free(f->frames, f->frame_room * sizeof *f->frames);
  tn__map_fini(&f->by_key);
  for (size_t i = 0; i < f->n_loops; i++) {
    tn__frame_loop *l = &f->loops[i];
    tn__op_list *const lists[] = { &l->enters, &l->nexts, &l->exits, &l->merges, &l->targets, &l->own };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) list_fini(lists[k]);
  }
  tn__free(f->loops, f->loop_room * sizeof *f->loops);
  tn__free(f->stack, f->stack_room * sizeof *f->stack);
  tn__free(f->seen, f->c->n_ops + 1);
}

tn_status tn__prune_add_loops(tn__pruner *c)
{
  tn__frame_finder f = { .c = c, .err = c->ir->err };
  tn__map_init(&f.by_key);
  f.seen = tn__alloc_array(c->n_ops + 1, 1);
  tn_status st = f.seen == NULL ? tn__frames_no_memory(&f) : tn__frames_find_loops(&f);
  for (size_t i = 0; st == TN_OK && i < c->n_order; i++) st = add_in_order(&f, c->order[i]);
  finder_fini(&f);
  return st;
}
