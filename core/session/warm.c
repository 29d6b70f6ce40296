/* SPDX-License-Identifier: Apache-2.0 */
/* Does the one-time work of a first step in advance. If the step has no effect it is run: only that reaches all of the
 * work in any runtime (loops, functions, programs of a device, pages of memory). If it has an effect, the plan is laid
 * out. */
#include <core/compile/effects.h>
#include <core/exec/step/step.h>
#include <core/session/feeds.h>
#include <core/session/step.h>
#include <core/exec/run.h>

/* Runs a step and drops its fetches. */
static tn_status run_and_discard(tn_session *session, const tn__entry_point *e, const tn_run_options *options,
                                 tn_tensor *const *feeds, tn_error *err)
{
  tn_tensor **fetched = tn__alloc_array(e->n_fetches + 1, sizeof *fetched);
  if (fetched == NULL) return tn__no_memory(err, "fetches", e->n_fetches * sizeof *fetched);
  for (size_t i = 0; i < e->n_fetches; i++) fetched[i] = NULL;
  tn_status st = tn__step_run(session, e, options, TN__FROM_NOW, feeds, fetched, NULL, err);
  for (size_t i = 0; i < e->n_fetches; i++) tn_tensor_unref(fetched[i]);
  tn__free(fetched, (e->n_fetches + 1) * sizeof *fetched);
  return st;
}

/* Makes the layouts and allocates the memory, in the session's memory account, without running
 * anything. */
static tn_status lay_out(tn_session *session, const tn__signature *s, const tn_run_options *options, tn_tensor **in,
                         tn_error *err)
{
  tn_step step = { .inputs = in,
                   .n_inputs = s->n_feeds,
                   .closed = &session->closed,
                   .cancellation = options != NULL ? options->cancellation : NULL,
                   .deadline_ns = tn__call_deadline(session, options) };
  tn__account *around = tn__account_now;
  tn__account_now = session->on.account;
  tn_status st = tn__plan_warm(s->plan, &step, err);
  tn__account_now = around;
  return st;
}

/* The signature whose plan fits these feeds, and the feeds in its order. The caller frees *in with tn__free. */
static tn_status find_signature(const tn__entry_point *e, tn_tensor *const *feeds, const tn__signature **s,
                                tn_tensor ***in, tn_error *err)
{
  *s = e->signature;
  *in = tn__alloc_array(e->signature->n_feeds + 1, sizeof **in);
  if (*in == NULL) return tn__no_memory(err, "feeds", e->signature->n_feeds * sizeof **in);
  for (size_t i = 0; i < e->n_feeds; i++) (*in)[e->feed_map[i]] = feeds[i];
  return (*s)->assumed != NULL && tn__feeds_contradict(*s, *in) ? tn__signature_loose(e->signature, s, err) : TN_OK;
}

tn_status tn__step_warm(tn_session *session, const tn__entry_point *e, const tn_run_options *options,
                        tn_tensor *const *feeds, tn_bool *ran, tn_error *err)
{
  const tn__signature *s;
  const tn_operation *effect = NULL;
  tn_tensor **in;
  tn_status st = find_signature(e, feeds, &s, &in, err);
  if (st == TN_OK) st = tn__plan_effect(s->plan, &effect, err);
  if (st == TN_OK && effect != NULL) {
    tn_log(TN_LOG_INFO, "warming up without a step: node '%s' (%s) has an effect", tn_operation_name(effect),
           tn_operation_type(effect));
    st = lay_out(session, s, options, in, err);
  } else if (st == TN_OK) {
    st = run_and_discard(session, e, options, feeds, err);
    if (st == TN_OK && ran != NULL) *ran = 1;
  }
  if (in != NULL) tn__free(in, (e->signature->n_feeds + 1) * sizeof *in);
  return st;
}
