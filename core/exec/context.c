/* SPDX-License-Identifier: Apache-2.0 */
/* Whether contexts hold: the conditions under which segments run and values are there, as far as the step has decided
 * them. */
#include <core/exec/control.h>
#include <core/exec/pending.h>

#include <string.h>

#define OTHER_FIRST (-2) /* another context has to be decided before this one */
#define LOOKED_AT 3 /* checked in this pass, and undecided: what decides a context is decided before it is checked */

static int bad_predicate(const tn__run *run, uint32_t value)
{
  const tn_output from = run->plan->values[value].output;
  tn_error_set(run->err, TN_INVALID_ARGUMENT, "predicate '%s:%d' of a branch is no scalar", tn_operation_name(from.op),
               (int)from.index);
  return TN__FAULT;
}

static int branch_state(tn__run *run, const tn__atom *a)
{
  const tn__plan_value *v = &run->plan->values[a->id];
  uint8_t p;
  if (v->predicate != 0) {
    p = run->workspace->predicates[v->predicate - 1];
  } else {
    const tn_tensor *t = v->kind == TN_VALUE_CONSTANT ? v->constant : run->step->inputs[v->index];
    p = t->count == 1 ? *(const uint8_t *)t->data != 0 : TN__NO_SCALAR;
  }
  if (p == TN__NO_SCALAR) return bad_predicate(run, a->id);
  return p == a->side ? TN__LIVE : TN__DEAD;
}

/* The state of an instruction that is alone in its segment. */
static int segment_state(const tn__run *run, uint32_t instr)
{
  uint8_t state = run->workspace->segment_states[run->plan->instrs[instr].segment];
  return state == TN__STATE_DONE ? TN__LIVE : state == TN__STATE_SKIPPED ? TN__DEAD : TN__UNDECIDED;
}

static int exit_state(const tn__run *run, uint32_t instr, uint32_t exit)
{
  int state = segment_state(run, instr);
  if (state != TN__LIVE) return state;
  return run->workspace->pending[run->plan->instrs[instr].segment]->left[exit] ? TN__LIVE : TN__DEAD;
}

static int done_state(const tn__run *run, uint32_t context)
{
  uint8_t state = run->workspace->context_states[context];
  if (context == 0 || state == TN__LIVE || state == TN__DEAD) return TN__LIVE;
  return state == LOOKED_AT ? TN__UNDECIDED : OTHER_FIRST;
}

static int atom_state(tn__run *run, const tn__atom *a)
{
  switch (a->kind) {
  case TN__ATOM_BRANCH: return branch_state(run, a);
  case TN__ATOM_FEED: return run->dead_feeds != NULL && run->dead_feeds[a->id] ? TN__DEAD : TN__LIVE;
  case TN__ATOM_EXIT: return exit_state(run, a->id, a->side);
  case TN__ATOM_MERGE: /* it is skipped if no input is live */
  case TN__ATOM_WAIT: return segment_state(run, a->id);
  default: return done_state(run, a->id);
  }
}

/* Earlier atoms decide whether later ones can be checked. OTHER_FIRST: *other is the other context; its number is
 * lower. */
static int decide(tn__run *run, uint32_t context, uint32_t *other)
{
  const tn__context *c = &run->plan->contexts[context];
  uint8_t *known = &run->workspace->context_states[context];
  for (uint32_t k = 0; k < c->n; k++) {
    const tn__atom *a = &run->plan->atoms[run->plan->context_atoms[c->first + k]];
    int state = atom_state(run, a);
    if (state == TN__LIVE) continue;
    if (state == TN__DEAD) *known = TN__DEAD;
    if (state == TN__UNDECIDED) *known = LOOKED_AT;
    *other = a->id;
    return state;
  }
  *known = TN__LIVE;
  return TN__LIVE;
}

/* Thousands of contexts may depend on each other, so there is no recursion. As a rule the contexts that one depends on
 * were decided before it, so the loop hardly ever turns. */
int tn__context_state(tn__run *run, uint32_t context)
{
  uint8_t known = run->workspace->context_states[context];
  if (context == 0) return TN__LIVE;
  if (known != TN__UNDECIDED) return known == LOOKED_AT ? TN__UNDECIDED : known;
  for (uint32_t at = context;;) {
    uint32_t other;
    int state = decide(run, at, &other);
    if (state == OTHER_FIRST) at = other;
    else if (at == context || state == TN__FAULT) return state;
    else at = context;
  }
}

/* A context undecided in one pass may be decided in the next. */
void tn__contexts_look_again(tn__run *run)
{
  uint8_t *states = run->workspace->context_states;
  for (uint32_t i = 0; i < run->plan->n_contexts; i++)
    if (states[i] == LOOKED_AT) states[i] = TN__UNDECIDED;
}

/* ---- segments ---- */

bool tn__run_waits(const tn__run *run)
{
  const uint8_t *states = run->workspace->segment_states;
  return run->plan->has_waits && memchr(states, TN__STATE_WAITING, run->plan->n_segments) != NULL;
}

bool tn__segment_has_run(const tn__run *run, uint32_t number)
{
  return run->workspace->segment_states[number] == TN__STATE_DONE;
}
