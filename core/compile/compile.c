/* SPDX-License-Identifier: Apache-2.0 */
/* The order of compilation: prune (import/prune.c), passes (ir/passes.c), instructions (lower/emit.c), segments
 * (lower/segments.c). */
#include <core/plan/callee_table.h>
#include <core/layout/layout.h>
#include <core/compile/compile.h>
#include <core/compile/lower/lower.h>
#include <core/compile/import/partial.h>
#include <core/compile/ir/passes.h>
#include <core/compile/import/prune.h>

#include <string.h>

/* An empty plan with the settings of the spec; NULL if memory is exhausted. */
static tn_plan *new_plan(tn_graph *graph, const tn__signature_spec *spec)
{
  tn_plan *plan = tn__zalloc(sizeof *plan);
  if (plan == NULL) return NULL;
  atomic_init(&plan->refs, 1);
  plan->settings.level = spec->level;
  plan->settings.max_layouts = spec->max_layouts > 0 ? spec->max_layouts : 1;
  plan->settings.evaluate = spec->evaluate;
  plan->settings.call_kernel = spec->level > 0 ? spec->call_kernel : NULL;
  plan->graphs.main = tn_graph_ref(graph);
  plan->settings.want_always = spec->want_always;
  plan->settings.cpu_only = spec->cpu_only;
  plan->settings.reproducible = spec->reproducible;
  plan->settings.weights = spec->weights;
  plan->settings.states = spec->states;
  plan->caches.layouts = &tn__plan_layouts;
  tn__arena_init(&plan->arena, 4096);
  tn__mutex_init(&plan->caches.mu, "plan", TN_RANK_PLAN);
  return plan;
}

/* If a plan has contractions but no kernel plugins were requested, their sizes are small or unknown. Steps then measure
 * whether faster kernels are worth loading. */
static void watch_cost(tn_plan *plan, const tn__ir *ir)
{
  plan->upgrade.want_kernels = ir->spec->want_kernels;
  bool products = false;
  for (uint32_t i = 0; i < plan->n_instrs && !products; i++)
    products = (plan->instrs[i].traits & TN_TRAIT_CONTRACTION) != 0;
  atomic_store(&plan->upgrade.may, products && plan->upgrade.want_kernels != NULL && !ir->asked);
}

/* Stores what functions need to be compiled at their first call: the disabled passes and the table of callees. */
static tn_status add_callees(tn_plan *plan, const tn__signature_spec *spec, tn_error *err)
{
  bool calls = false;
  for (uint32_t i = 0; i < plan->n_instrs && !calls; i++)
    calls = (plan->instrs[i].traits & TN_TRAIT_FUNCTION_CALL) != 0 || plan->instrs[i].frame != NULL;
  if (spec->disabled != NULL)
    plan->settings.disabled = tn__arena_string(&plan->arena, spec->disabled, strlen(spec->disabled));
  if (spec->disabled != NULL && plan->settings.disabled == NULL) return tn__no_memory(err, "plan", 0);
  plan->caches.callees = spec->callees;
  if (!calls || plan->caches.callees != NULL) return TN_OK;
  plan->caches.callees = tn__callees_create();
  plan->caches.owns_callees = plan->caches.callees != NULL;
  return plan->caches.callees != NULL ? TN_OK : tn__no_memory(err, "plan", 0);
}

/* Makes the plan from the ir, which it frees in any case. */
static tn_status finish(tn__ir *ir, tn_graph *graph, tn_status st, tn_plan **out, tn_error *err)
{
  tn_plan *plan = st == TN_OK ? new_plan(graph, ir->spec) : NULL;
  if (st == TN_OK && plan == NULL) st = tn__no_memory(err, "plan", sizeof *plan);
  if (st == TN_OK) st = tn__ir_emit(ir, plan);
  if (st == TN_OK) st = tn__plan_cut(plan, err);
  if (st == TN_OK && ir->partial) st = tn__plan_find_needs(plan, err);
  if (st == TN_OK) st = add_callees(plan, ir->spec, err);
  if (st == TN_OK) watch_cost(plan, ir);
  tn__ir_fini(ir);
  if (st == TN_OK) *out = plan;
  else tn__plan_unref(plan);
  return st;
}

/* Runs the passes and makes the plan. */
static tn_status complete(tn__ir *ir, tn_graph *graph, tn_status st, tn_plan **out, tn_error *err)
{
  if (st == TN_OK && ir->spec->level > 0) st = tn__passes_run(ir);
  if (st == TN_OK) st = tn__ir_want_kernels(ir);
  /* a rewrite or fold that was stopped may have been taken for a refusal, so check again */
  if (st == TN_OK) st = tn__prepare_check(NULL, ir->err);
  return finish(ir, graph, st, out, err);
}

/* The spec with the functions that compile the plans inside this plan. */
static tn__signature_spec whole_spec(const tn__signature_spec *spec)
{
  tn__signature_spec whole = *spec;
  whole.compile = tn__plan_compile;
  whole.compile_with = tn__plan_compile_with;
  return whole;
}

tn_status tn__plan_compile(tn_graph *graph, const tn__signature_spec *spec, tn_plan **out, tn_error *err)
{
  *out = NULL;
  tn__ir ir;
  const tn__signature_spec whole = whole_spec(spec);
  tn_status st = tn__ir_from_graph(&ir, graph, &whole, err);
  if (st == TN_OK && tn__spec_is_partial(spec)) st = tn__ir_hold_feeds(&ir);
  return complete(&ir, graph, st, out, err);
}

tn_status tn__plan_compile_with(tn_graph *graph, const tn__signature_spec *spec, tn__ir_fill_fn fill, const void *user,
                                tn_plan **out, tn_error *err)
{
  *out = NULL;
  tn__ir ir;
  const tn__signature_spec whole = whole_spec(spec);
  tn_status st = tn__ir_init(&ir, graph, &whole, err);
  if (st == TN_OK) st = fill(&ir, user);
  for (size_t i = 0; st == TN_OK && i < spec->n_fetches; i++) ir.values[tn__ir_value_of(&ir, ir.outputs[i])].n_uses++;
  return complete(&ir, graph, st, out, err);
}

tn_status tn__plan_operation(const tn_operation *op, const tn__signature_spec *spec, tn_plan **out, tn_error *err)
{
  *out = NULL;
  tn__ir ir;
  tn_status st = tn__ir_from_operation(&ir, op, spec, err);
  return finish(&ir, tn__operation_graph(op), st, out, err);
}
