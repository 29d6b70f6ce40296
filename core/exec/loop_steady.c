/* SPDX-License-Identifier: Apache-2.0 */
/* Rotated loops whose variables keep their shapes. Every turn has the layout of the turn before, so
 * nothing is looked up. A variable that a turn computes has two tensors: the turn reads one and
 * writes the other, and they are swapped after it.
 *
 * This is an optimisation of loop.c only: whenever something is unusual, the general way runs the
 * next turn. */
#include <core/exec/loop.h>
#include <core/exec/segment.h>
#include <core/exec/step/env.h>
#include <core/exec/step/trace.h>
#include <core/exec/values.h>

/* How the next turn gets a variable, or the condition. */
typedef struct source {
  bool computed;    /* the turn writes it into a tensor allocated before; else it makes the tensor */
  bool stays;       /* the variable keeps its value in all turns */
  uint32_t value;   /* of the plan */
  uint32_t root;    /* slot that the turn writes */
  uint32_t slot;    /* with the shape; of the same memory as root */
  tn_tensor *other; /* a reference: the tensor to write into, NULL = none yet */
} source;

/* An entry of the segment that is a variable: its slot, and the input of the plan. */
typedef struct entry {
  uint32_t slot, input;
} entry;

/* The arrays are one allocation, `memory`. */
typedef struct steady {
  tn__loop *loop;
  tn__instance *instance;
  uint32_t n_sources, n_entries;
  source *sources; /* by variable, then the condition */
  entry *entries;  /* of variables; the other entries stay bound */
  tn_tensor **moved; /* by variable: scratch of steady_move */
  bool moves; /* some variables are neither computed nor stay */
  bool own;   /* the tensors that the turn reads are of its own, not those of the general way: they may be rewritten */
  size_t bytes; /* of memory */
  void *memory;
} steady;

static bool same_shape(const tn__slot *slot, const tn_tensor *t)
{
  if (t == NULL || slot->rank != t->rank || slot->dtype != t->dtype) return false;
  for (int32_t d = 0; d < t->rank; d++)
    if (slot->dims[d] != t->dims[d]) return false;
  return true;
}

/* The loop's value that a feed of the turn takes. */
static const tn__turn_feed *feed_of(const tn__loop *l, const tn__plan_value *v)
{
  return &l->frame->turn_feeds[v->index];
}

/* Whether the turn is one tape whose only effect is its outputs. */
static bool is_plain(const tn__loop *l, const tn__instance *in)
{
  const tn_plan *plan = l->inner.run.plan;
  const tn__segment *s = &plan->segments[0];
  const tn__layout *layout = in->layout;
  return s->n_operands == 0 && s->n_ends == 0 && s->n_predicates == 0 && layout->n_holds == 0 && layout->n_tape > 0 &&
         tn__step_trace(l->inner.run.step) == NULL;
}

/* Whether the next turn has the layout of the last one; then all further turns have it, as long as
 * the variables that are moved keep their shapes. */
static bool fits(const tn__loop *l, const tn__instance *in)
{
  const tn_plan *plan = l->inner.run.plan;
  const tn__segment *s = &plan->segments[0];
  for (uint32_t e = 0; e < s->n_entries; e++) {
    const tn__plan_value *v = &plan->values[s->entries[e]];
    if (v->kind != TN_VALUE_FEED) return false;
    const tn__turn_feed *f = feed_of(l, v);
    if (!same_shape(&in->layout->slots[e], f->is_variable ? l->nexts[f->index] : l->enters[f->index])) return false;
  }
  return true;
}

static void find_source(const tn__loop *l, const tn__instance *in, uint32_t o, source *out)
{
  const tn_plan *plan = l->inner.run.plan;
  const tn__plan_value *v = &plan->values[plan->outputs[o]];
  *out = (source){ .value = plan->outputs[o] };
  if (v->kind == TN_VALUE_FEED) out->stays = feed_of(l, v)->is_variable && feed_of(l, v)->index == o;
  if (v->kind != TN_VALUE_COMPUTED || v->whole) return;
  out->slot = v->slot;
  out->root = in->layout->output_root[plan->output_places[o]];
  out->computed = out->root != TN__NONE;
}

/* False if the turn does not compute the condition: the loop is of another kind, or endless, and
 * the general way runs it. */
static bool find_all(steady *s)
{
  const tn__loop *l = s->loop;
  const tn_plan *plan = l->inner.run.plan;
  const tn__segment *segment = &plan->segments[0];
  for (uint32_t o = 0; o < s->n_sources; o++) {
    find_source(l, s->instance, o, &s->sources[o]);
    s->moves |= !s->sources[o].computed && !s->sources[o].stays;
  }
  for (uint32_t e = 0; e < segment->n_entries; e++) {
    const tn__plan_value *v = &plan->values[segment->entries[e]];
    if (feed_of(l, v)->is_variable) s->entries[s->n_entries++] = (entry){ e, v->index };
  }
  return s->sources[s->n_sources - 1].computed;
}

static bool steady_make(tn__loop *l, steady *s)
{
  const tn__plan_frame *f = l->frame;
  size_t n = (size_t)f->n_nexts + 1, room = l->inner.run.plan->segments[0].n_entries, sources, entries, moved;
  bool ok = tn__size_mul(n, sizeof *s->sources, &sources) && tn__size_mul(n, sizeof *s->moved, &moved) &&
            tn__size_mul(room, sizeof *s->entries, &entries) && tn__size_add(sources, moved, &s->bytes) &&
            tn__size_add(s->bytes, entries, &s->bytes);
  char *memory = ok ? tn__alloc(s->bytes) : NULL;
  s->memory = memory;
  if (memory == NULL) return false; /* the general way needs no further memory */
  s->sources = (source *)memory;
  s->moved = (tn_tensor **)(memory + sources);
  s->entries = (entry *)(memory + sources + moved);
  s->n_sources = (uint32_t)n;
  return true;
}

/* ---- a turn ---- */

/* Makes sure that there is a tensor to write into. It is written only if no other reference to it
 * exists, since a kernel may have kept one. */
static tn_status need_other(steady *s, source *from)
{
  tn__run *run = &s->loop->inner.run;
  if (from->other != NULL && tn_tensor_is_exclusive(from->other)) return TN_OK;
  tn_tensor_unref(from->other);
  from->other = NULL;
  const tn__slot *slot = &s->instance->layout->slots[from->slot];
  return tn__spare_tensor(run->workspace, slot->dtype, slot->dims, slot->rank, slot->count, slot->bytes, &from->other,
                          run->err);
}

/* Binds the tensors that this turn reads and writes. */
static tn_status steady_bind(steady *s)
{
  tn__loop *l = s->loop;
  for (uint32_t o = 0; o < s->n_sources; o++) {
    source *from = &s->sources[o];
    if (!from->computed) continue;
    tn_status st = need_other(s, from);
    if (st != TN_OK) return st;
    tn__bind_data(s->instance, from->root, from->other->data, from->other->buffer);
    l->inner.outputs[o] = from->other; /* tn_kernel_keep_input finds it there; borrowed */
  }
  const tn__turn_feed *feeds = l->frame->turn_feeds;
  for (uint32_t i = 0; i < l->frame->n_turn_feeds; i++)
    if (feeds[i].is_variable) l->inputs[i] = l->nexts[feeds[i].index];
  for (uint32_t e = 0; e < s->n_entries; e++) {
    const tn_tensor *t = l->inputs[s->entries[e].input];
    tn__bind_data(s->instance, s->entries[e].slot, t->data, t->buffer);
  }
  return TN_OK;
}

static bool alike(const tn_tensor *a, const tn_tensor *b)
{
  if (a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d]) return false;
  return true;
}

/* Variables that take the value of others, or whose tensor the turn has made. All are read before
 * any is replaced. *same becomes false if one has another shape now. */
static tn_status steady_move(steady *s, bool *same)
{
  tn__loop *l = s->loop;
  tn_status st = TN_OK;
  uint32_t n = 0;
  for (; st == TN_OK && n + 1 < s->n_sources; n++) {
    s->moved[n] = NULL;
    if (s->sources[n].computed || s->sources[n].stays) continue;
    st = tn__run_tensor(&l->inner.run, s->sources[n].value, &s->moved[n]);
    if (st == TN_OK && !alike(s->moved[n], l->nexts[n])) *same = false;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (s->moved[i] == NULL) continue;
    tn__spare_give(l->inner.run.workspace, l->nexts[i]);
    l->nexts[i] = s->moved[i];
  }
  return st;
}

/* Swaps the tensors: the next turn reads those that were just written. */
static void steady_rotate(steady *s)
{
  tn__loop *l = s->loop;
  for (uint32_t i = 0; i + 1 < s->n_sources; i++) {
    source *from = &s->sources[i];
    if (!from->computed) continue;
    tn_tensor *old = l->nexts[i];
    l->nexts[i] = from->other;
    from->other = s->own ? old : NULL;
    if (!s->own) tn__spare_give(l->inner.run.workspace, old);
  }
  s->own = true;
}

/* Runs turns until the loop ends, or a variable gets another shape. */
static tn_status steady_turn(steady *s, bool *more)
{
  tn__loop *l = s->loop;
  const tn__layout *layout = s->instance->layout;
  bool same = true;
  while (*more && same) {
    tn_status st = steady_bind(s);
    if (st == TN_OK) st = tn__segment_tape(&l->inner.run, 0, s->instance);
    if (st == TN_OK && s->moves) st = steady_move(s, &same);
    if (st != TN_OK) return st;
    l->inner.run.cost_ns += layout->cost_ns;
    *more = tn__loop_goes_on(l->frame, s->sources[s->n_sources - 1].other);
    steady_rotate(s);
    if (layout->n_heaps > 0) tn__run_drop(&l->inner.run);
  }
  return TN_OK;
}

/* Outputs are borrowed by steady_bind, so they are only cleared. */
static void steady_end(steady *s)
{
  tn__run *run = &s->loop->inner.run;
  for (uint32_t o = 0; o < s->n_sources; o++) {
    run->step->outputs[o] = NULL;
    tn__spare_give(run->workspace, s->sources[o].other);
  }
}

tn_status tn__loop_turn_steadily(tn__loop *l, bool *more)
{
  tn__run *run = &l->inner.run;
  if (l->unsteady || run->plan->has_control || run->plan->n_segments != 1) return TN_OK;
  steady s = { .loop = l, .instance = run->workspace->instances[0] };
  l->unsteady = !is_plain(l, s.instance);
  if (l->unsteady || !fits(l, s.instance) || !steady_make(l, &s)) return TN_OK;
  tn_status st = TN_OK;
  l->unsteady = !find_all(&s);
  if (!l->unsteady) {
    st = steady_turn(&s, more);
    if (st != TN_OK) tn__memory_explain(run, st);
    steady_end(&s);
    tn__run_drop(run);
  }
  tn__free(s.memory, s.bytes);
  return st;
}
