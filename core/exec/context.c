/* SPDX-License-Identifier: Apache-2.0 */
/* The states of contexts: whether the conditions hold under which segments run and values exist, as
 * far as the step has decided them. A context is a list of atoms, all of which must hold; an atom
 * may refer to another context. */
#include <core/exec/control.h>
#include <core/exec/step/pending.h>

#include <core/exec/step/step.h>
#include <core/exec/step/workspace.h>
#include <string.h>

#define OTHER_FIRST (-2) /* another context has to be decided before this one */
/* A context that was checked in this pass and is undecided. There is no need to check it again in
 * the same pass: the segments that decide a context come before all that depend on it. */
#define LOOKED_AT 3

static int bad_predicate(const tn__run *run, uint32_t value)
{
  const tn_output from = run->plan->values[value].output;
  tn_error_set(run->err, TN_INVALID_ARGUMENT, "predicate '%s:%d' of a branch is not a scalar",
               tn_operation_name(from.op), (int)from.index);
  return TN__FAULT;
}

/* The predicate is a constant, a feed, or a value that some segment computed: then the segment
 * noted it. */
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
  switch (run->workspace->segment_states[run->plan->instrs[instr].segment]) {
  case TN__STATE_DONE: return TN__LIVE;
  case TN__STATE_SKIPPED: return TN__DEAD;
  default: return TN__UNDECIDED;
  }
}

/* A loop that has run may still have an Exit without a value. */
static int exit_state(const tn__run *run, uint32_t instr, uint32_t exit)
{
  int state = segment_state(run, instr);
  if (state != TN__LIVE) return state;
  return run->workspace->pending[run->plan->instrs[instr].segment]->left[exit] ? TN__LIVE : TN__DEAD;
}

/* The atom that holds as soon as the other context is decided, whether it is live or dead. */
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
  case TN__ATOM_MERGE: /* a Merge is skipped if none of its inputs is live */
  case TN__ATOM_WAIT: return segment_state(run, a->id);
  default: return done_state(run, a->id);
  }
}

/* Checks the atoms in order, since whether a later one can be checked depends on the earlier ones,
 * and notes the result. OTHER_FIRST: *other is the context to decide before this one; its number is
 * lower. */
static int decide(tn__run *run, uint32_t context, uint32_t *other)
{
  const tn__context *c = &run->plan->conditions.contexts[context];
  uint8_t *known = &run->workspace->context_states[context];
  for (uint32_t k = 0; k < c->n; k++) {
    const tn__atom *a = &run->plan->conditions.atoms[run->plan->conditions.context_atoms[c->first + k]];
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

/* Not recursive, because chains of contexts may be thousands long: if another context has to be
 * decided first, that one is decided, and then this one is tried again. As a rule the contexts that
 * one depends on were decided before it, so there is only one turn. */
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
  for (uint32_t i = 0; i < run->plan->conditions.n_contexts; i++)
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
