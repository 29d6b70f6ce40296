/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds of other shapes than the graph says (S-RUN-16). The planner takes what the graph knows of shapes for certain; a feed
 * that contradicts it has a plan of its own, which does not. */
#include <core/session/session_internal.h>
#include <core/graph/graph_structs.h>

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
    for (size_t k = 0; st == TN_OK && !any && k < s->n_feeds; k++) s->assumed[k] = (tn__assumed){ NULL, -1 };
    if (st == TN_OK) s->assumed[i] = (tn__assumed){ shapes->outputs[o.index].dims, (int32_t)shapes->outputs[o.index].rank };
    any = true;
  }
  return st;
}

bool tn__feeds_contradict(const tn__signature *s, tn_tensor *const *feeds)
{
  for (size_t i = 0; i < s->n_feeds; i++) {
    const tn__assumed *a = &s->assumed[i];
    if (a->rank < 0) continue;
    if (a->rank != feeds[i]->rank) return true;
    for (int32_t d = 0; d < feeds[i]->rank; d++)
      if (a->dims[d] >= 0 && a->dims[d] != feeds[i]->dims[d]) return true;
  }
  return false;
}

tn_status tn__signature_loose(tn__signature *s, const tn__signature **out, tn_error *err)
{
  tn__signature *there = atomic_load_explicit(&s->loose, memory_order_acquire), *mine;
  *out = there;
  if (there != NULL) return TN_OK;
  tn_graph *graph = atomic_load_explicit(&s->session->graph, memory_order_acquire);
  tn__signature_spec spec = tn__spec_of(s->session, s->wanted, s->n_feeds, s->wanted + s->n_feeds, s->n_fetches, s->targets, s->n_targets);
  spec.unsure = true;
  tn_status st = tn__signature_compile(s->session, graph, &spec, &mine, err);
  if (st != TN_OK) return st;
  bool kept = atomic_compare_exchange_strong(&s->loose, &there, mine);
  if (!kept) tn__signature_unref(mine);
  *out = kept ? mine : there;
  return TN_OK;
}

void tn__signature_assume_nothing(tn__signature *s)
{
  tn__signature_unref(atomic_load(&s->loose));
  if (s->assumed != NULL) tn__free(s->assumed, (s->n_feeds + 1) * sizeof *s->assumed);
  if (s->wanted != NULL) tn__free(s->wanted, (s->n_feeds + s->n_fetches + 1) * sizeof *s->wanted);
  if (s->targets != NULL) tn__free(s->targets, (s->n_targets + 1) * sizeof *s->targets);
}
