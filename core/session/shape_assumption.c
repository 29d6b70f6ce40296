/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of feeds that a plan assumes (S-RUN-16). The planner assumes the shapes that the graph declares. A feed that
 * contradicts them is refused if the option strict_shapes is set. Otherwise it is run by a second plan, which assumes
 * nothing. */
#include <core/graph/graph_structs.h>
#include <core/session/signature.h>

/* Integer tensors may determine shapes, also through arithmetic. Values of other types are read by a shape function
 * only if they are its own inputs. */
static bool is_size(tn_output o)
{
  if ((size_t)o.index >= tn_operation_n_outputs(o.op)) return false;
  tn_dtype dtype = tn__dtype_base(tn_operation_output_dtype(o.op, (size_t)o.index));
  return dtype == TN_INT32 || dtype == TN_INT64;
}

/* Whether the shape function of `op` reads the value of a feed of another type. */
static bool reads_other(const tn_operation *op, const tn_output *feeds, size_t n)
{
  size_t n_in;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  for (size_t i = 0; i < n_in; i++)
    if (tn__operation_is_shape_operand(op, (uint32_t)i) && !is_size(in[i]) && tn__infer_reads_any(op, i, feeds, n))
      return true;
  return false;
}

bool tn__feeds_unsettle_shapes(tn_graph *graph, const tn_output *feeds, size_t n)
{
  bool others = false;
  for (size_t i = 0; i < n; i++) {
    if (tn__operation_traits(feeds[i].op) & TN_TRAIT_PLACEHOLDER) continue; /* the graph knew no value of it */
    if (is_size(feeds[i])) return true;
    others = true;
  }
  for (size_t i = 0, n_ops = others ? tn_graph_n_operations(graph) : 0; i < n_ops; i++)
    if (reads_other(tn_graph_operation(graph, i), feeds, n)) return true;
  return false;
}

/* Keeps the endpoints and targets, to compile `loose` from. Freed with the signature. */
static tn_status keep_wanted(tn__signature *s, const tn__signature_spec *spec, tn_error *err)
{
  s->n_targets = spec->n_targets;
  s->assumed = tn__alloc_array(s->n_feeds + 1, sizeof *s->assumed);
  s->wanted = tn__alloc_array(s->n_feeds + s->n_fetches + 1, sizeof *s->wanted);
  s->targets = tn__alloc_array(s->n_targets + 1, sizeof *s->targets);
  if (s->assumed == NULL || s->wanted == NULL || s->targets == NULL) return tn__no_memory(err, "signature", s->n_feeds);
  for (size_t i = 0; i < s->n_feeds; i++) s->wanted[i] = spec->feeds[i];
  for (size_t i = 0; i < s->n_fetches; i++) s->wanted[s->n_feeds + i] = spec->fetches[i];
  for (size_t i = 0; i < s->n_targets; i++) s->targets[i] = spec->targets[i];
  return TN_OK;
}

/* No shapes are assumed at level 0, for partial runs, or if feeds make inferred shapes doubtful
 * (unsure). */
tn_status tn__signature_assume(tn__signature *s, const tn__signature_spec *spec, tn_error *err)
{
  tn_status st = TN_OK;
  bool any = false;
  for (size_t i = 0; st == TN_OK && spec->level > 0 && !spec->unsure && i < s->n_feeds; i++) {
    const tn_output o = spec->feeds[i];
    const tn__op_shapes *shapes = NULL;
    if ((size_t)o.index < tn_operation_n_outputs(o.op)) st = tn__op_shapes_get(o.op, &shapes, err);
    if (st != TN_OK || shapes == NULL || shapes->outputs[o.index].rank < 0) continue;
    if (!any) st = keep_wanted(s, spec, err);
    for (size_t k = 0; st == TN_OK && !any && k < s->n_feeds; k++) s->assumed[k] = (tn__shape_assumption){ NULL, -1 };
    if (st == TN_OK)
      s->assumed[i] = (tn__shape_assumption){ shapes->outputs[o.index].dims, (int32_t)shapes->outputs[o.index].rank };
    any = true;
  }
  return st;
}

/* Threads may compile it concurrently; the first one is kept. */
tn_status tn__signature_loose(tn__signature *s, const tn__signature **out, tn_error *err)
{
  tn__signature *there = atomic_load_explicit(&s->loose, memory_order_acquire), *mine;
  *out = there;
  if (there != NULL) return TN_OK;
  tn_graph *graph = atomic_load_explicit(&s->session->graph, memory_order_acquire);
  tn__signature_spec spec =
      tn__spec_of(s->session, s->wanted, s->n_feeds, s->wanted + s->n_feeds, s->n_fetches, s->targets, s->n_targets);
  spec.unsure = true;
  tn_status st = tn__signature_compile(s->session, graph, &spec, &mine, err);
  if (st != TN_OK) return st;
  bool kept = atomic_compare_exchange_strong(&s->loose, &there, mine);
  if (!kept) tn__signature_unref(mine);
  *out = kept ? mine : there;
  return TN_OK;
}
