/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: the body runs once for each iteration, in order, until no value is passed to a next one.
 *
 * If the loop was rotated when it was compiled (core/compile/import/rotate.c), a small plan decides
 * whether there is a first iteration, and each further run of `turn` computes the variables
 * together with the next condition. Other loops run the whole body, in which the condition kills
 * values by Switches. */
#include <core/exec/loop.h>
#include <core/exec/values.h>

/* The struct with its arrays, in one block. */
static tn__loop *loop_make(const tn__plan_frame *frame, uint32_t n_enters, tn_error *err)
{
  uint32_t n_inputs = frame->n_feeds > frame->n_turn_feeds ? frame->n_feeds : frame->n_turn_feeds;
  size_t n = (size_t)n_enters + frame->n_nexts + frame->n_exits + n_inputs, size;
  bool ok = tn__size_mul(n, sizeof(tn_tensor *), &size) &&
            tn__size_add(size, sizeof(tn__loop) + frame->n_feeds + frame->n_exits, &size);
  tn__loop *l = ok ? tn__zalloc(size) : NULL;
  if (l == NULL) {
    tn__no_memory(err, "loop", n * sizeof(tn_tensor *));
    return NULL;
  }
  l->frame = frame;
  l->n_enters = n_enters;
  l->block_bytes = size;
  l->enters = (tn_tensor **)(l + 1);
  l->nexts = l->enters + n_enters;
  l->exits = l->nexts + frame->n_nexts;
  l->inputs = l->exits + frame->n_exits;
  l->dead = (bool *)(l->inputs + n_inputs);
  l->left = l->dead + frame->n_feeds;
  return l;
}

static void free_loop(tn__loop *l)
{
  tn_tensor_unref(l->index[0]);
  tn_tensor_unref(l->index[1]);
  tn__free(l, l->block_bytes);
}

static void tensors_drop(tn_tensor **list, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    tn_tensor_unref(list[i]);
    list[i] = NULL;
  }
}

/* Releases all values; the struct is kept for the next step. */
static void loop_end(tn__loop *l)
{
  tn__inner_end(&l->inner);
  tensors_drop(l->enters, l->n_enters);
  tensors_drop(l->nexts, l->frame->n_nexts);
  tensors_drop(l->exits, l->frame->n_exits);
  l->running = false;
}

/* The index outputs of Merges are 0 in the first iteration and 1 afterwards. */
static tn_status need_indices(tn__loop *l, tn_error *err)
{
  bool read = false;
  for (uint32_t i = 0; i < l->frame->n_feeds; i++) read |= l->frame->feeds[i].kind == TN__FEED_INDEX;
  for (int32_t k = 0; read && k < 2; k++) {
    tn_status st = l->index[k] == NULL ? tn_tensor_create(TN_INT32, NULL, 0, &l->index[k], err) : TN_OK;
    if (st != TN_OK) return st;
    *(int32_t *)l->index[k]->data = k;
  }
  return TN_OK;
}

static tn_status loop_begin(tn__run *run, const tn__plan_instr *instr, tn__loop *l)
{
  l->running = l->first = true;
  l->unsteady = false;
  tn_status st = tn__inner_begin(&l->inner, l->frame->turn != NULL ? l->frame->turn : l->frame->body, instr->op,
                                 run->step, run->err);
  if (st == TN_OK) st = need_indices(l, run->err);
  for (uint32_t i = 0; st == TN_OK && i < l->n_enters; i++)
    st = tn__run_tensor(run, tn__instr_inputs(run->plan, instr)[i], &l->enters[i]);
  return st;
}

/* Feed i of the body for the next iteration. A feed without a value is dead. */
static void set_input(tn__loop *l, uint32_t i)
{
  const tn__frame_feed *f = &l->frame->feeds[i];
  tn_tensor *next = l->first || f->kind < TN__FEED_ROUND ? NULL : l->nexts[f->next];
  switch (f->kind) {
  case TN__FEED_CONSTANT: l->inputs[i] = l->enters[f->enter]; break;
  case TN__FEED_FIRST: l->inputs[i] = l->first ? l->enters[f->enter] : NULL; break;
  case TN__FEED_ROUND: l->inputs[i] = l->first ? l->enters[f->enter] : next; break;
  case TN__FEED_INDEX:
    if (l->first) l->inputs[i] = l->index[0];
    else l->inputs[i] = next == NULL ? NULL : l->index[1];
    break;
  default: l->inputs[i] = next; break;
  }
  l->dead[i] = l->inputs[i] == NULL;
}

/* Takes the outputs of the iteration; returns whether a value is passed to a next one. */
static bool take_outputs(tn__loop *l)
{
  bool more = false;
  tn_tensor **out = l->inner.outputs;
  for (uint32_t i = 0; i < l->frame->n_nexts; i++) {
    tn__spare_give(l->inner.run.workspace, l->nexts[i]);
    l->nexts[i] = out[i];
    more |= out[i] != NULL;
    out[i] = NULL;
  }
  out += l->frame->n_nexts;
  for (uint32_t i = 0; i < l->frame->n_exits; i++) {
    if (out[i] == NULL) continue;
    tn_tensor_unref(l->exits[i]);
    l->exits[i] = out[i];
    out[i] = NULL;
  }
  l->first = false;
  return more;
}

/* Runs iterations of a loop that was not rotated. TN_PENDING: a call in the body waits; continues
 * when called again. */
static tn_status go_round(tn__loop *l)
{
  for (;;) {
    if (!l->inner.busy)
      for (uint32_t i = 0; i < l->frame->n_feeds; i++) set_input(l, i);
    tn_status st = tn__inner_go(&l->inner, l->inputs, l->dead);
    if (st != TN_OK) return st;
    if (!take_outputs(l)) return TN_OK;
  }
}

/* ---- rotated loops ---- */

static void set_turn_inputs(tn__loop *l, const tn__turn_feed *feeds, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    l->inputs[i] = feeds[i].is_variable ? l->nexts[feeds[i].index] : l->enters[feeds[i].index];
}

/* Whether there is a first iteration. Its plan never waits. */
static tn_status ask_first(tn__run *run, tn__loop *l, bool *more)
{
  tn__inner first;
  tn_status st = tn__inner_begin(&first, l->frame->first, l->inner.run.op, run->step, run->err);
  set_turn_inputs(l, l->frame->first_feeds, l->frame->n_first_feeds);
  if (st == TN_OK) st = tn__inner_go(&first, l->inputs, NULL);
  *more = st == TN_OK && tn__loop_goes_on(l->frame, first.outputs[0]);
  if (st == TN_OK) {
    tn__spare_give(first.run.workspace, first.outputs[0]);
    first.outputs[0] = NULL;
  }
  tn__inner_end(&first);
  return st;
}

/* Runs a rotated loop; `nexts` has the variables. Only plans that cannot wait are rotated. */
static tn_status turn_round(tn__run *run, tn__loop *l)
{
  const tn__plan_frame *f = l->frame;
  bool more;
  for (uint32_t i = 0; i < f->n_nexts; i++) l->nexts[i] = tn_tensor_ref(l->enters[f->variables[i].enter]);
  tn_status st = ask_first(run, l, &more);
  while (st == TN_OK && more) {
    set_turn_inputs(l, f->turn_feeds, f->n_turn_feeds);
    st = tn__inner_go(&l->inner, l->inputs, NULL);
    if (st != TN_OK) return st;
    tn_tensor **out = l->inner.outputs;
    tn__workspace *w = l->inner.run.workspace;
    for (uint32_t i = 0; i < f->n_nexts; i++) {
      tn__spare_give(w, l->nexts[i]);
      l->nexts[i] = out[i];
      out[i] = NULL;
    }
    more = tn__loop_goes_on(f, out[f->n_nexts]);
    tn__spare_give(w, out[f->n_nexts]);
    out[f->n_nexts] = NULL;
    if (more) st = tn__loop_turn_steadily(l, &more);
  }
  for (uint32_t i = 0; st == TN_OK && i < f->n_exits; i++) l->exits[i] = tn_tensor_ref(l->nexts[f->exit_variables[i]]);
  return st;
}

/* Moves the values of the Exits to the run, as the loop's outputs. */
static void give_exits(tn__run *run, const tn__plan_instr *instr, tn__loop *l)
{
  for (uint32_t k = 0; k < instr->n_outputs; k++) {
    const tn__plan_value *v = &run->plan->values[tn__instr_outputs(run->plan, instr)[k]];
    run->workspace->held[v->held] = l->exits[k];
    l->left[k] = l->exits[k] != NULL;
    l->exits[k] = NULL;
  }
}

tn_status tn__loop_run(tn__run *run, uint32_t number)
{
  const tn__plan_instr *instr = &run->plan->instrs[run->plan->segments[number].begin];
  tn__pending *p = tn__pending_get(run, number);
  if (p == NULL) return TN_RESOURCE_EXHAUSTED;
  if (p->loop == NULL) p->loop = loop_make(instr->frame, instr->n_inputs, run->err);
  if (p->loop == NULL) return TN_RESOURCE_EXHAUSTED;
  tn__loop *l = p->loop;
  p->free_loop = free_loop;
  p->left = l->left;
  tn_status st = l->running ? TN_OK : loop_begin(run, instr, l);
  if (st == TN_OK) st = l->frame->turn != NULL ? turn_round(run, l) : go_round(l);
  if (st == TN_PENDING) return st;
  /* A time limit noticed between two iterations has no node yet: name the loop. */
  if (st == TN_DEADLINE_EXCEEDED && run->err != NULL && *tn_error_node(run->err) == 0) {
    tn_error_clear(run->err);
    st = tn__step_stopped(TN__STOP_DEADLINE, instr->op, run->err);
  }
  if (st == TN_OK) give_exits(run, instr, l);
  loop_end(l);
  return st;
}
