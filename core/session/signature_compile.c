/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling a signature and freeing it. */
#include <core/exec/evaluate.h>
#include <core/session/signature.h>

static void drop_assumptions(tn__signature *s)
{
  tn__signature_unref(atomic_load(&s->loose));
  if (s->assumed != NULL) tn__free(s->assumed, (s->n_feeds + 1) * sizeof *s->assumed);
  if (s->wanted != NULL) tn__free(s->wanted, (s->n_feeds + s->n_fetches + 1) * sizeof *s->wanted);
  if (s->targets != NULL) tn__free(s->targets, (s->n_targets + 1) * sizeof *s->targets);
}

/* The session outlives its signatures, and with it the runtime that made the executable. */
void tn__signature_unref(tn__signature *s)
{
  if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  tn_session *session = s->session;
  tn__session_base_release(&session->on, s->executable);
  tn__plan_unref(s->plan);
  tn__free(s->feed_dtypes, (s->n_feeds + 1) * sizeof *s->feed_dtypes);
  drop_assumptions(s);
  tn__free(s->key, s->key_size);
  tn__free(s, sizeof *s);
}

tn__signature_spec tn__spec_of(tn_session *session, const tn_output *feeds, size_t n_feeds, const tn_output *fetches,
                               size_t n_fetches, tn_operation *const *targets, size_t n_targets)
{
  return (tn__signature_spec){ feeds,
                               n_feeds,
                               fetches,
                               n_fetches,
                               targets,
                               n_targets,
                               session->on.level,
                               session->on.max_layouts,
                               session->on.disabled_passes,
                               session->on.reproducible ? tn__evaluate_reproducible : tn__evaluate,
                               session->on.want_kernels ? tn__registry_want_kernels : NULL,
                               session->on.want_kernels_always,
                               tn__session_base_cpu_only(&session->on),
                               session->on.reproducible,
                               session->on.weights,
                               tn__call_kernel,
                               .states = &session->states };
}

/* The types of the feeds: from the plan for those that it reads, else from the graph. */
static void set_dtypes(tn__signature *s, const tn_output *feeds)
{
  for (size_t i = 0; i < s->n_feeds; i++) {
    const tn_output o = feeds[i];
    uint32_t value = s->plan->inputs[i];
    if (value != TN__NONE) s->feed_dtypes[i] = s->plan->values[value].dtype;
    else if ((size_t)o.index < tn_operation_n_outputs(o.op))
      s->feed_dtypes[i] = tn__dtype_base(tn_operation_output_dtype(o.op, (size_t)o.index));
  }
}

/* Sets the number of threads for the plan of a partial run: the largest of the session's pools.
 * Other plans get it from the runtime, in tn_kit_prepare. */
static void set_threads(const tn_session *session, tn_plan *plan)
{
  uint32_t threads = 1;
  size_t pools = session->threads.n_pools > 0 ? session->threads.n_pools : 1;
  if (session->on.slots->workers == NULL) return;
  for (size_t i = 0; i < pools; i++) {
    uint32_t n = tn_kit_workers_threads(tn__session_base_workers(&session->on, (int32_t)i));
    if (n > threads) threads = n;
  }
  if (threads > 1) tn__plan_set_threads(plan, threads);
}

tn_status tn__signature_compile(tn_session *session, tn_graph *graph, const tn__signature_spec *spec,
                                tn__signature **out, tn_error *err)
{
  tn__signature *s = *out = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "signature", sizeof *s);
  atomic_init(&s->refs, 1);
  s->session = session;
  s->n_feeds = spec->n_feeds;
  s->n_fetches = spec->n_fetches;
  s->feed_dtypes = tn__alloc_array(s->n_feeds + 1, sizeof *s->feed_dtypes);
  tn_status st = s->feed_dtypes == NULL ? tn__no_memory(err, "signature", s->n_feeds) : TN_OK;
  if (st == TN_OK) st = tn__plan_compile(graph, spec, &s->plan, err);
  if (st == TN_OK) set_dtypes(s, spec->feeds);
  if (st == TN_OK && spec->partial) set_threads(session, s->plan);
  else if (st == TN_OK) st = tn__session_base_prepare(&session->on, s->plan, &s->executable, err);
  if (st == TN_OK) return TN_OK;
  tn__signature_unref(s);
  *out = NULL;
  return st;
}
