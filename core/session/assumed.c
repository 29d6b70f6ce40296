/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds of other shapes than the graph says (S-RUN-16). The planner takes the shapes that the graph knows for certain. A feed
 * that contradicts them is refused where strict_shapes is set; else it has a plan of its own, which assumes nothing. */
#include <core/session/session_internal.h>
#include <core/base/text.h>
#include <core/graph/graph_structs.h>

/* Small integers of the graph decide shapes, through arithmetic, too; of other types a shape function reads only its own inputs. */
static bool is_size(tn_output o)
{
  if ((size_t)o.index >= tn_operation_n_outputs(o.op)) return false;
  tn_dtype dtype = tn__dtype_base(tn_operation_output_dtype(o.op, (size_t)o.index));
  return dtype == TN_INT32 || dtype == TN_INT64;
}

static bool reads_other(const tn_operation *op, const tn_output *feeds, size_t n)
{
  size_t n_in;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  for (size_t i = 0; i < n_in; i++)
    if (tn__operation_is_shape_operand(op, (uint32_t)i) && !is_size(in[i]) && tn__infer_reads_any(op, i, feeds, n)) return true;
  return false;
}

bool tn__feeds_unsettle_shapes(tn_graph *graph, const tn_output *feeds, size_t n)
{
  bool others = false;
  for (size_t i = 0; i < n; i++) {
    if (tn__operation_traits(feeds[i].op) & TN_TRAIT_PLACEHOLDER) continue; /* no value was known of it */
    if (is_size(feeds[i])) return true;
    others = true;
  }
  for (size_t i = 0, n_ops = others ? tn_graph_n_operations(graph) : 0; i < n_ops; i++)
    if (reads_other(tn_graph_operation(graph, i), feeds, n)) return true;
  return false;
}

/* Known dimensions only are compared. */
static bool contradicts(const int64_t *dims, int64_t rank, const tn_tensor *t)
{
  if (rank < 0) return false;
  if (rank != t->rank) return true;
  for (int32_t d = 0; d < t->rank; d++)
    if (dims[d] >= 0 && dims[d] != t->dims[d]) return true;
  return false;
}

/* ---- feeds that are refused ---- */

/* The shape that the graph knows for an endpoint; NULL: it knows none. */
static tn_status known_shape(tn_output o, const tn__shape **out, tn_error *err)
{
  const tn__op_shapes *shapes = NULL;
  *out = NULL;
  if ((size_t)o.index >= tn_operation_n_outputs(o.op)) return TN_OK; /* of an op that is not registered */
  tn_status st = tn__op_shapes_get(o.op, &shapes, err);
  if (shapes != NULL) *out = &shapes->outputs[o.index];
  return st;
}

tn_status tn__feed_check_shape(tn_output o, const tn_tensor *t, tn_error *err)
{
  const tn__shape *shape;
  tn_status st = known_shape(o, &shape, err);
  if (st != TN_OK || shape == NULL || !contradicts(shape->dims, shape->rank, t)) return st;
  char want[128], have[128];
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "feed '%s:%d' has shape %s, its declared shape is %s: the option strict_shapes refuses it",
                      tn_operation_name(o.op), (int)o.index, tn__format_shape(have, sizeof have, t->dims, t->rank),
                      tn__format_shape(want, sizeof want, shape->dims, (int32_t)shape->rank));
}

void tn__feed_explain(tn_output o, const tn_tensor *t, tn_error *err)
{
  const tn__shape *shape;
  char want[128], have[128];
  if (known_shape(o, &shape, NULL) != TN_OK || shape == NULL || !contradicts(shape->dims, shape->rank, t)) return;
  tn__error_add_cause(err, "feed '%s:%d' has shape %s, its declared shape is %s", tn_operation_name(o.op), (int)o.index,
                      tn__format_shape(have, sizeof have, t->dims, t->rank),
                      tn__format_shape(want, sizeof want, shape->dims, (int32_t)shape->rank));
}

/* ---- what a plan takes for certain ---- */

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
    if (contradicts(a->dims, a->rank, feeds[i])) return true;
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
