/* SPDX-License-Identifier: Apache-2.0 */
/* Searches a plan, the bodies of its loops, and the functions that it calls for effects. Visits each plan once, because
 * functions may be recursive. */
#include <core/compile/effects.h>

#include <core/compile/callees.h>
#include <core/plan/frame.h>

typedef struct plans {
  tn_plan **at; /* in the order in which they were found; borrowed from the first one */
  size_t n, room;
} plans;

/* Appends a plan unless it is NULL or already listed. */
static tn_status add(plans *p, tn_plan *plan, tn_error *err)
{
  for (size_t i = 0; i < p->n; i++)
    if (p->at[i] == plan) return TN_OK;
  if (plan == NULL) return TN_OK;
  if (!tn__grow((void **)&p->at, &p->room, p->n + 1, sizeof *p->at))
    return tn__no_memory(err, "plans", p->n * sizeof *p->at);
  p->at[p->n++] = plan;
  return TN_OK;
}

static tn_status add_frame(plans *p, const tn__plan_frame *frame, tn_error *err)
{
  tn_status st = add(p, frame->body, err);
  if (st == TN_OK) st = add(p, frame->first, err);
  return st == TN_OK ? add(p, frame->turn, err) : st;
}

static tn_status add_functions(plans *p, tn_plan *plan, tn__plan_instr *instr, tn_error *err)
{
  tn_status st = TN_OK;
  uint32_t n = tn_operation_n_functions(instr->op);
  for (uint32_t k = 0; st == TN_OK && k < n; k++) {
    const tn__callee *callee;
    st = tn__plan_callee(plan, instr, k, &callee, err);
    if (st == TN_OK) st = add(p, callee->plan, err);
  }
  return st;
}

/* Loops of the plan and function calls have no effects of their own: those of their bodies count. Reads of state are no
 * effect. */
static bool has_effect(const tn__plan_instr *instr)
{
  if (instr->frame != NULL) return false;
  if ((instr->traits & (TN_TRAIT_RANDOM | TN_TRAIT_MAY_WAIT)) != 0 && (instr->traits & TN_TRAIT_FUNCTION_CALL) == 0)
    return true;
  return (instr->traits & TN_TRAIT_STATEFUL) != 0 && (instr->traits & TN_TRAIT_READS) == 0;
}

/* Searches one plan, and lists the plans that it runs. */
static tn_status look(plans *p, tn_plan *plan, const tn_operation **out, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && *out == NULL && i < plan->n_instrs; i++) {
    tn__plan_instr *instr = &plan->instrs[i];
    if (has_effect(instr)) *out = instr->op;
    else if (instr->frame != NULL) st = add_frame(p, instr->frame, err);
    else if ((instr->traits & TN_TRAIT_FUNCTION_CALL) != 0) st = add_functions(p, plan, instr, err);
  }
  return st;
}

tn_status tn__plan_effect(tn_plan *plan, const tn_operation **out, tn_error *err)
{
  plans p = { 0 };
  *out = NULL;
  tn_status st = add(&p, plan, err);
  for (size_t i = 0; st == TN_OK && *out == NULL && i < p.n; i++) st = look(&p, p.at[i], out, err);
  tn__free(p.at, p.room * sizeof *p.at);
  return st;
}
