/* SPDX-License-Identifier: Apache-2.0 */
/* Calling a signature of a model by the keys of its inputs and outputs. */
#include <core/model/model.h>

/* The tensors of a call, in the order of its keys. */
typedef struct call_names {
  const tn__signature_def *signature; /* NULL: the model has none */
  const char **feeds, **fetches;      /* owned; names are borrowed */
  size_t n_feeds, n_fetches;
} call_names;

static void fini(call_names *names)
{
  tn__free(names->feeds, names->n_feeds * sizeof *names->feeds);
  tn__free(names->fetches, names->n_fetches * sizeof *names->fetches);
}

static tn_status check(const tn_session *session, const char *const *inputs, size_t n_inputs,
                       const char *const *outputs, size_t n_outputs, tn_error *err)
{
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_call: session is NULL");
  if ((inputs == NULL && n_inputs > 0) || (outputs == NULL && n_outputs > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_call: %s is NULL",
                        outputs == NULL && n_outputs > 0 ? "outputs" : "inputs");
  if (tn_session_model(session) == NULL)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "the session is not of a model: make it with tn_model_session, or run it with tn_session_run");
  return TN_OK;
}

/* Call fini also after a failure. */
static tn_status find_names(const tn_session *session, const char *signature, const char *const *inputs,
                            size_t n_inputs, const char *const *outputs, size_t n_outputs, call_names *out,
                            tn_error *err)
{
  *out = (call_names){ .n_feeds = n_inputs, .n_fetches = n_outputs };
  const tn_model *model = tn_session_model(session);
  const tn__metagraph *m = tn__model_meta(model);
  bool none = signature == NULL && (m == NULL || m->n_signatures == 0);
  tn_status st = none ? TN_OK : tn__model_signature(model, signature, &out->signature, err);
  out->feeds = tn__alloc(n_inputs * sizeof *out->feeds);
  out->fetches = tn__alloc(n_outputs * sizeof *out->fetches);
  if (st == TN_OK && ((out->feeds == NULL && n_inputs > 0) || (out->fetches == NULL && n_outputs > 0)))
    st = tn__no_memory(err, "names of a call", n_inputs + n_outputs);
  if (st == TN_OK) st = tn__model_tensors(model, out->signature, false, inputs, n_inputs, out->feeds, err);
  return st == TN_OK ? tn__model_tensors(model, out->signature, true, outputs, n_outputs, out->fetches, err) : st;
}

tn_status tn_model_call(tn_session *session, const char *signature, const char *const *inputs, tn_tensor *const *feeds,
                        size_t n_inputs, const char *const *outputs, tn_tensor **fetched, size_t n_outputs,
                        tn_error *err)
{
  tn__error_reset(err);
  for (size_t i = 0; fetched != NULL && i < n_outputs; i++) fetched[i] = NULL;
  tn_status st = check(session, inputs, n_inputs, outputs, n_outputs, err);
  if (st != TN_OK) return st;
  call_names names;
  st = find_names(session, signature, inputs, n_inputs, outputs, n_outputs, &names, err);
  bool found = st == TN_OK;
  if (found)
    st = tn_session_run(session, NULL, names.feeds, feeds, n_inputs, names.fetches, fetched, n_outputs, NULL, 0, NULL,
                        err);
  if (found && st == TN_INVALID_ARGUMENT)
    tn__model_check_inputs(tn_session_model(session), names.signature, names.feeds, n_inputs, err);
  fini(&names);
  return st;
}

tn_status tn_model_callable(tn_session *session, const tn_run_options *options, const char *signature,
                            const char *const *inputs, size_t n_inputs, const char *const *outputs, size_t n_outputs,
                            tn_callable *out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) out->id = 0;
  tn_status st = check(session, inputs, n_inputs, outputs, n_outputs, err);
  if (st != TN_OK) return st;
  call_names names;
  st = find_names(session, signature, inputs, n_inputs, outputs, n_outputs, &names, err);
  if (st == TN_OK)
    st = tn_session_make_callable(session, options, names.feeds, n_inputs, names.fetches, n_outputs, NULL, 0, out, err);
  fini(&names);
  return st;
}
