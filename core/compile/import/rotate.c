/* SPDX-License-Identifier: Apache-2.0 */
/* Rotates loops in TensorFlow's usual form: whether an iteration runs is computed at the end of the previous one, on
 * the new values of the loop's variables. A turn (the body, then the condition of the next iteration) is thus one plan
 * without a condition. In it, each Merge is replaced by its NextIteration, and the feeds replace the Switches.
 *
 * The usual form: every variable is a Merge of an Enter and a NextIteration of its own; every Exit reads a Switch of a
 * variable; and all these Switches have the one LoopCond of the loop as predicate. */
#include <core/compile/import/inline.h>
#include <core/compile/import/rotate.h>

typedef struct rotator {
  tn__pruner *c;                 /* borrowed */
  const tn__loop_ops *l;         /* borrowed */
  const tn_operation *condition; /* the LoopCond; NULL = not found yet */
  tn_operation **switches;       /* with that predicate; owned */
  size_t n_switches, room;
  /* Feeds of the plan being compiled: n; owned. */
  tn_output *cuts;      /* the output that each replaces */
  tn__turn_feed *feeds; /* where the loop takes its value from */
  size_t n;
} rotator;

static bool has(const tn_operation *op, uint32_t trait) { return (tn__operation_traits(op) & trait) != 0; }

/* Index of op in the list; n if it is not there. */
static size_t place_of(tn_operation *const *list, size_t n, const tn_operation *op)
{
  size_t i = 0;
  while (i < n && list[i] != op) i++;
  return i;
}

/* Whether a Merge joins an Enter and a NextIteration of this loop and nothing else; stores their indices. */
static bool is_variable(const tn__loop_ops *l, const tn_operation *merge, size_t *enter, size_t *next)
{
  size_t n, n_control;
  const tn_output *in = tn__operation_inputs(merge, &n);
  tn__operation_control_inputs(merge, &n_control);
  if (n != 2 || n_control != 0) return false;
  *enter = place_of(l->enters, l->n_enters, in[0].op);
  *next = place_of(l->nexts, l->n_nexts, in[1].op);
  return *enter < l->n_enters && *next < l->n_nexts;
}

/* Index of the variable (Merge) that a Switch by the loop's condition forwards; n_merges if op is not such a Switch.
 * The first LoopCond seen becomes the loop's condition. */
static size_t variable_of(rotator *t, const tn_operation *op)
{
  size_t n, n_control;
  const tn_output *in = tn__operation_inputs(op, &n);
  tn__operation_control_inputs(op, &n_control);
  if (!has(op, TN_TRAIT_SWITCH) || n != 2 || n_control != 0 || !has(in[1].op, TN_TRAIT_LOOP_COND))
    return t->l->n_merges;
  if (t->condition == NULL) t->condition = in[1].op;
  if (t->condition != in[1].op || in[0].index != 0) return t->l->n_merges;
  return place_of(t->l->merges, t->l->n_merges, in[0].op);
}

/* Whether every Exit reads a Switch of a variable, and every Merge is a variable with a NextIteration of its own. Fills
 * frame->variables and frame->exit_variables. */
static bool is_canonical(rotator *t, tn__plan_frame *frame)
{
  const tn__loop_ops *l = t->l;
  for (size_t i = 0; i < l->n_exits; i++) {
    size_t n;
    const tn_output *in = tn__operation_inputs(l->exits[i], &n);
    size_t k = in[0].index == 0 ? variable_of(t, in[0].op) : l->n_merges;
    if (k == l->n_merges) return false;
    frame->exit_variables[i] = (uint32_t)k;
  }
  for (size_t i = 0; i < l->n_merges; i++) {
    size_t enter, next;
    if (!is_variable(l, l->merges[i], &enter, &next) || tn__pruned(t->c, l->merges[i])->index_read) return false;
    for (size_t k = 0; k < i; k++)
      if (frame->variables[k].next == next) return false;
    frame->variables[i] = (tn__frame_variable){ (uint32_t)enter, (uint32_t)next };
  }
  return t->condition != NULL;
}

/* Lists all Switches by the loop's condition. *ok is false if one of them does not forward a variable. */
static tn_status find_switches(rotator *t, bool *ok)
{
  tn__pruner *c = t->c;
  *ok = true;
  for (size_t i = 0; *ok && i < c->n_order; i++) {
    tn_operation *op = c->order[i];
    size_t n;
    const tn_output *in = tn__operation_inputs(op, &n);
    if (!has(op, TN_TRAIT_SWITCH) || n != 2 || in[1].op != t->condition) continue;
    *ok = variable_of(t, op) < t->l->n_merges;
    if (!tn__grow((void **)&t->switches, &t->room, t->n_switches + 1, sizeof *t->switches))
      return tn__ir_no_memory(c->ir);
    t->switches[t->n_switches++] = op;
  }
  return TN_OK;
}

/* Adds a feed in place of output `index` of op. `of` is the index of a variable, or else of an Enter. */
static void add(rotator *t, tn_operation *op, int32_t index, bool variable, size_t of)
{
  t->cuts[t->n] = (tn_output){ op, index };
  t->feeds[t->n++] = (tn__turn_feed){ variable, (uint32_t)of };
}

/* Restarts the list of feeds with the Enters whose value is the same in all iterations. */
static void add_constants(rotator *t)
{
  t->n = 0;
  for (size_t i = 0; i < t->l->n_enters; i++) {
    tn_bool constant = 0;
    tn_operation_attr_bool(t->l->enters[i], "is_constant", &constant, NULL);
    if (constant) add(t, t->l->enters[i], 0, false, i);
  }
}

static tn_status compile(rotator *t, const tn__body_spec *body, const tn_output *fetches, size_t n_fetches,
                         tn_plan **out)
{
  tn__signature_spec spec = *t->c->spec;
  spec.feeds = t->cuts;
  spec.n_feeds = t->n;
  spec.fetches = fetches;
  spec.n_fetches = n_fetches;
  spec.targets = NULL;
  spec.n_targets = 0;
  spec.body = body;
  spec.inlined_nodes = tn__inlined_nodes(t->c->ir);
  spec.depth++;
  return spec.compile(t->c->graph, &spec, out, t->c->ir->err);
}

static tn_status keep_feeds(const rotator *t, tn__turn_feed **out, uint32_t *n)
{
  *out = tn__alloc_array(t->n + 1, sizeof **out);
  if (*out == NULL) return tn__ir_no_memory(t->c->ir);
  for (size_t i = 0; i < t->n; i++) (*out)[i] = t->feeds[i];
  *n = (uint32_t)t->n;
  return TN_OK;
}

/* `first` is fed at the Merges and fetches the condition. `turn` is fed at the Switches' outputs for a true condition
 * and fetches the NextIterations, then the condition. */
static tn_status compile_both(rotator *t, tn__plan_frame *frame, const tn__body_spec *around)
{
  const tn__loop_ops *l = t->l;
  tn__body_spec body = *around;
  tn_output *fetches = tn__alloc_array(l->n_merges + 1, sizeof *fetches);
  if (fetches == NULL) return tn__ir_no_memory(t->c->ir);
  fetches[l->n_merges] = (tn_output){ (tn_operation *)t->condition, 0 };
  add_constants(t);
  for (size_t i = 0; i < l->n_merges; i++) {
    add(t, l->merges[i], 0, true, i);
    fetches[i] = (tn_output){ l->nexts[frame->variables[i].next], 0 };
  }
  body.n_plain = t->n;
  body.gated = NULL;
  tn_status st = keep_feeds(t, &frame->first_feeds, &frame->n_first_feeds);
  if (st == TN_OK) st = compile(t, &body, fetches + l->n_merges, 1, &frame->first);
  add_constants(t);
  for (size_t i = 0; i < t->n_switches; i++) add(t, t->switches[i], 1, true, variable_of(t, t->switches[i]));
  body.n_plain = t->n;
  body.rotated = l->merges;
  body.n_rotated = l->n_merges;
  if (st == TN_OK) st = keep_feeds(t, &frame->turn_feeds, &frame->n_turn_feeds);
  if (st == TN_OK) st = compile(t, &body, fetches, l->n_merges + 1, &frame->turn);
  tn__free(fetches, (l->n_merges + 1) * sizeof *fetches);
  return st;
}

/* A body with inner loops is not rotated: these would all be compiled again. */
static bool has_loops(const tn_plan *plan)
{
  for (uint32_t i = 0; i < plan->n_instrs; i++)
    if (plan->instrs[i].frame != NULL) return true;
  return false;
}

tn_status tn__loop_rotate(tn__pruner *c, const tn__loop_ops *l, const tn__body_spec *body, tn__plan_frame *frame)
{
  rotator t = { .c = c, .l = l };
  bool ok = frame->simple && !has_loops(frame->body) && !frame->body->has_waits && l->n_merges > 0 &&
            l->n_merges == l->n_nexts && l->n_targets == 0;
  if (!ok) return TN_OK;
  frame->variables = tn__alloc_array(l->n_nexts + 1, sizeof *frame->variables);
  frame->exit_variables = tn__alloc_array(l->n_exits + 1, sizeof *frame->exit_variables);
  tn_status st = frame->variables == NULL || frame->exit_variables == NULL ? tn__ir_no_memory(c->ir) : TN_OK;
  ok = st == TN_OK && is_canonical(&t, frame);
  if (ok) st = find_switches(&t, &ok);
  size_t room = l->n_enters + l->n_merges + t.n_switches + 1;
  if (ok && st == TN_OK) {
    t.cuts = tn__alloc_array(room, sizeof *t.cuts);
    t.feeds = tn__alloc_array(room, sizeof *t.feeds);
    st = t.cuts == NULL || t.feeds == NULL ? tn__ir_no_memory(c->ir) : compile_both(&t, frame, body);
    if (st == TN_UNIMPLEMENTED) { /* the body reads what the condition computes */
      tn_error_clear(c->ir->err);
      ok = false;
      st = TN_OK;
    }
    /* here fewer calls may have been inlined than in the body, so check again */
    if (ok && st == TN_OK) ok = !frame->first->has_waits && !frame->turn->has_waits;
  }
  if (t.cuts != NULL) tn__free(t.cuts, room * sizeof *t.cuts);
  if (t.feeds != NULL) tn__free(t.feeds, room * sizeof *t.feeds);
  tn__free(t.switches, t.room * sizeof *t.switches);
  if (!ok || st != TN_OK) tn__plan_frame_drop_rotation(frame);
  return st;
}
