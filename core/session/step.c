/* SPDX-License-Identifier: Apache-2.0 */
/* One step: maps positions to the signature's order and back, calls the runtime's slot, and checks its results. */
#include <core/exec/step/env.h>
#include <core/exec/step/wait.h>
#include <core/session/feeds.h>
#include <core/session/metadata/metadata.h>
#include <core/session/step.h>

#define ON_STACK 16 /* up to 4 times as many pointers to feeds and fetches need no allocation */

/* Calls the runtime's `step`, or the kit if it has none, and normalises the status. */
static tn_status call_runtime(tn_session *session, const tn__signature *s, tn_step *step, tn_error *err)
{
  if (session->on.slots->step == NULL) return tn_kit_step(s->executable, step, err);
  tn_status st = tn__session_base_run(&session->on, session->on.slots->step, s->executable, step, err);
  if (st != TN_OK && (err == NULL || err->code != st)) st = tn__factory_status(session->on.factory, "step", st, err);
  return st;
}

/* The same with tn__stop_now set to the limits of this step, which end work outside of its kernels, too. Not inline: as
 * a rule a step has no limits. */
__attribute__((noinline)) static tn_status call_within(tn_session *session, const tn__signature *s, tn_step *step,
                                                       tn_error *err)
{
  const tn__stop limits = tn__step_limits(step), *around = tn__stop_now;
  tn__stop_now = &limits;
  tn_status st = call_runtime(session, s, step, err);
  tn__stop_now = around;
  return st;
}

/* If tn__stop_now is set, a kernel of another step runs this one: the limits of that step do not apply to it. */
static tn_status call_limited(tn_session *session, const tn__signature *s, tn_step *step, tn_error *err)
{
  bool limited = step->deadline_ns != 0 || step->cancellation != NULL || tn__stop_now != NULL;
  return limited ? call_within(session, s, step, err) : call_runtime(session, s, step, err);
}

/* Checks the outputs that the runtime returned: each fetch is there, unless it was given, and has
 * the right type. */
static tn_status check_outputs(const tn_session *session, const tn__signature *s, tn_tensor *const *out,
                               tn_tensor *const *given, tn_error *err)
{
  for (size_t c = 0; c < s->n_fetches; c++) {
    if (out[c] == NULL && given != NULL && given[c] != NULL) continue;
    const tn__plan_value *v = &s->plan->values[s->plan->outputs[c]];
    if (out[c] != NULL && (out[c]->dtype == v->dtype || v->dtype == TN_DTYPE_INVALID)) continue;
    const char *name = tn_operation_name(v->output.op);
    if (out[c] == NULL)
      return tn_error_set(err, TN_INTERNAL, "runtime '%s' returned OK without fetch '%s'", session->on.info.name, name);
    return tn_error_set(err, TN_INTERNAL, "runtime '%s' returned fetch '%s' as %s, but it is %s",
                        session->on.info.name, name, tn_dtype_name(out[c]->dtype), tn_dtype_name(v->dtype));
  }
  return TN_OK;
}

/* Runs the step in the signature's order. The step and its environment live on the stack: the
 * runtime must not use them after its `step` has returned. given: by fetch, NULL = none. */
static tn_status run_canonical(tn_session *session, const tn__signature *s, const tn_run_options *options,
                               int64_t deadline_ns, tn_tensor **in, tn_tensor **out, tn_tensor **given,
                               tn_run_metadata *metadata, tn_error *err)
{
  tn__step_env env = { .containers = session->on.containers, .mu = &session->mu, .sleepers = &session->sleepers,
                       .account = session->on.account,
                       .pool = options != NULL ? options->inter_op_pool : 0 };
  tn__account *around = tn__account_now; /* the account of the enclosing step, if a kernel started this one */
  tn_step step = { .inputs = in,
                   .outputs = out,
                   .given = given,
                   .n_inputs = s->n_feeds,
                   .n_outputs = s->n_fetches,
                   .env = &env,
                   .closed = &session->closed,
                   .cancellation = options != NULL ? options->cancellation : NULL };
  int64_t timeout =
      options != NULL && options->timeout_ms > 0 ? options->timeout_ms : session->on.timeout_ms; /* S-RO-04 */
  step.deadline_ns = deadline_ns != TN__FROM_NOW ? deadline_ns : tn__step_deadline(timeout);
  if (__builtin_expect(metadata != NULL, 0)) tn__metadata_begin(metadata, options, &env);
  tn__account_now = session->on.account;
  tn_status st = call_limited(session, s, &step, err);
  if (env.crew != NULL) tn__step_dismiss(&env); /* the helpers of a runtime that executes by itself */
  tn__account_now = around;
  if (__builtin_expect(metadata != NULL, 0)) tn__metadata_end(metadata, session, s->plan, &step, options, env.trace);
  tn__container_leave(env.own);
  tn__sleeper_unref(env.sleeper);
  if (st != TN_OK) return st;
  tn__error_reset(err); /* the runtime may have set a text without failing: S-ERR-02 */
  int why = tn__step_stop(&step); /* the step may have been stopped after its last instruction: S-LIFE-04, S-RO-03 */
  return why == TN__GO_ON ? check_outputs(session, s, out, given, err) : tn__step_stopped(why, NULL, err);
}

/* A further position of a fetch gets a copy, in the caller's tensor if there is one. */
static tn_status copy_repeated(const tn_tensor *from, tn_tensor **place, tn_error *err)
{
  if (*place == NULL) return tn_tensor_copy(from, place, err);
  tn_tensor *to = *place;
  bool same = to->dtype == from->dtype && to->rank == from->rank && to->bytes == from->bytes;
  for (int32_t d = 0; same && d < to->rank; d++) same = to->dims[d] == from->dims[d];
  if (!same)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor to write a fetch into has another type or shape");
  if (!tn__dtype_is_managed(to->dtype)) return tn_tensor_read(from, to->data, to->bytes, err);
  if (to->dtype != TN_STRING)
    return tn_error_set(err, TN_UNIMPLEMENTED, "a handle that is fetched twice cannot be written into a given tensor");
  tn_status st = TN_OK;
  for (int64_t i = 0; st == TN_OK && i < from->count; i++) {
    size_t n;
    const char *text = tn_string_data((const tn_string *)from->data + i, &n);
    st = tn_string_set((tn_string *)to->data + i, text, n, err);
  }
  return st;
}

/* Moves outputs from the signature's order to the caller's. Copies are made first, as long as `out`
 * still has the originals. Outputs leave the session's memory account: the program owns them now. */
static tn_status hand_out_fetched(const tn__entry_point *e, tn_tensor **out, tn_tensor **fetched, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < e->n_fetches; i++) {
    uint32_t c = e->fetch_map[i];
    if (e->first[c] == i) continue;
    const tn_tensor *from = out[c] != NULL ? out[c] : fetched[e->first[c]];
    st = copy_repeated(from, &fetched[i], err);
  }
  for (size_t c = 0; st == TN_OK && c < e->signature->n_fetches; c++)
    if (out[c] != NULL) {
      tn__tensor_leave_account(out[c]);
      fetched[e->first[c]] = out[c];
      out[c] = NULL;
    }
  return st;
}

/* Feeds contradict the shapes that the plan assumes: refuses them, or finds the plan that assumes nothing. */
__attribute__((noinline, cold)) static tn_status take_contradiction(tn_session *session, const tn__entry_point *e,
                                                                    const tn_run_options *options,
                                                                    tn_tensor *const *feeds, int64_t *deadline_ns,
                                                                    const tn__signature **out, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; session->strict_shapes && st == TN_OK && i < e->n_feeds; i++)
    st = tn__feed_check_shape(e->feeds[i], feeds[i], err);
  if (st != TN_OK) return st;
  if (*deadline_ns == TN__FROM_NOW) *deadline_ns = tn__call_deadline(session, options);
  const tn__stop limits = tn__call_limits(session, options, *deadline_ns), *around = tn__stop_now;
  tn__stop_now = &limits;
  st = tn__signature_loose(e->signature, out, err);
  tn__stop_now = around;
  return st;
}

/* After a failure: restores the caller's array, releases all outputs, and explains the error by
 * feeds of unexpected shapes. */
__attribute__((noinline, cold)) static void restore_fetched(const tn_session *session, const tn__entry_point *e,
                                                            tn_tensor *const *feeds, tn_tensor *const *out,
                                                            tn_tensor *const *before, tn_tensor **fetched, tn_status st,
                                                            tn_error *err)
{
  for (size_t i = 0; st == TN_INVALID_ARGUMENT && !session->strict_shapes && i < e->n_feeds; i++)
    tn__feed_explain(e->feeds[i], feeds[i], err);
  for (size_t c = 0; c < e->signature->n_fetches; c++) tn_tensor_unref(out[c]);
  for (size_t i = 0; i < e->n_fetches; i++)
    if (fetched[i] != before[i]) {
      tn_tensor_unref(fetched[i]);
      fetched[i] = before[i];
    }
}

/* One block has four arrays of pointers: in, out and given in the signature's order, before in the
 * caller's. */
tn_status tn__step_run(tn_session *session, const tn__entry_point *e, const tn_run_options *options,
                       int64_t deadline_ns, tn_tensor *const *feeds, tn_tensor **fetched, tn_run_metadata *metadata,
                       tn_error *err)
{
  const tn__signature *s = e->signature;
  tn_tensor *fixed[4 * ON_STACK], **block = fixed;
  size_t n_block = s->n_feeds + 2 * s->n_fetches + e->n_fetches;
  if (n_block > 4 * ON_STACK) {
    block = tn__alloc_array(n_block, sizeof *block);
    if (block == NULL) return tn__no_memory(err, "feeds and fetches of a step", n_block * sizeof *block);
  }
  tn_tensor **in = block, **out = in + s->n_feeds, **given = out + s->n_fetches, **before = given + s->n_fetches;
  bool any_given = false;
  for (size_t i = 0; i < e->n_feeds; i++) in[e->feed_map[i]] = feeds[i];
  for (size_t i = 0; i < e->n_fetches; i++) before[i] = fetched[i];
  for (size_t c = 0; c < s->n_fetches; c++) {
    out[c] = NULL;
    given[c] = fetched[e->first[c]];
    any_given |= given[c] != NULL;
  }
  tn_status st = TN_OK;
  if (s->assumed != NULL && tn__feeds_contradict(s, in)) {
    int64_t from = deadline_ns;
    const tn__signature *loose = NULL;
    st = take_contradiction(session, e, options, feeds, &from, &loose, err);
    deadline_ns = from;
    s = loose;
  }
  if (st == TN_OK)
    st = run_canonical(session, s, options, deadline_ns, in, out, any_given ? given : NULL, metadata, err);
  if (st == TN_OK) st = hand_out_fetched(e, out, fetched, err);
  if (__builtin_expect(st != TN_OK, 0)) restore_fetched(session, e, feeds, out, before, fetched, st, err);
  if (block != fixed) tn__free(block, n_block * sizeof *block);
  return st;
}
