/* SPDX-License-Identifier: Apache-2.0 */
/* From the names of a call to an entry point: found in the cache, or made. */
#include <core/session/entry.h>
#include <core/session/feeds.h>
#include <core/session/step.h>

#define KEY_ON_STACK 1024 /* bytes; longer keys are allocated */

/* Parses the names, brings them into canonical order, and gets the signature. All checks that need
 * no plan are made before the signature is compiled. */
static tn_status make_entry(tn_session *session, const tn__names *names, tn_tensor *const *feeds, bool partial,
                            tn__entry_point **out, tn_error *err)
{
  *out = NULL;
  tn_graph *graph;
  tn_status st = tn__session_need_graph(session, &graph, err);
  if (st != TN_OK) return st;
  tn__parsed_names p = { .partial = partial };
  tn__entry_point *e = NULL;
  st = tn__names_parse(graph, names, &p, err);
  if (st == TN_OK) st = tn__entry_create(names, &e, err);
  if (st == TN_OK) st = tn__parsed_order(&p, names, e, err);
  if (st == TN_OK && partial) st = tn__parsed_check_distinct(&p, err);
  if (st == TN_OK) st = tn__feeds_check_declared(e, names, feeds, err);
  if (st == TN_OK && names->n_fetches == 0 && names->n_targets == 0) /* S-RUN-05 */
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "no fetches or targets were given");
  if (st == TN_OK) st = tn__parsed_make_key(&p, err);
  if (st == TN_OK) st = tn__signature_get(session, graph, &p, &e->signature, err);
  tn__parsed_fini(&p);
  if (st != TN_OK) tn__entry_unref(e);
  else *out = e;
  return st;
}

tn_status tn__entry_resolve(tn_session *session, const tn__names *names, tn_tensor *const *feeds, tn__entry_point **out,
                         tn_error *err)
{
  return make_entry(session, names, feeds, false, out, err);
}

tn_status tn__entry_make_partial(tn_session *session, const tn__names *names, tn__entry_point **out, tn_error *err)
{
  return make_entry(session, names, NULL, true, out, err);
}

/* The time limit of the call counts from here, since the call prepares the step. */
static tn_status make_in_time(tn_session *session, const tn_run_options *options, const tn__names *names,
                              tn_tensor *const *feeds, int64_t *deadline_ns, tn__entry_point **out, tn_error *err)
{
  *deadline_ns = tn__call_deadline(session, options);
  const tn__stop limits = tn__call_limits(session, options, *deadline_ns), *around = tn__stop_now;
  tn__stop_now = &limits;
  tn_status st = tn__entry_resolve(session, names, feeds, out, err);
  tn__stop_now = around;
  return st;
}

tn_status tn__entry_get(tn_session *session, const tn_run_options *options, const tn__names *names,
                        tn_tensor *const *feeds, int64_t *deadline_ns, tn__entry_point **out, tn_error *err)
{
  char fixed[KEY_ON_STACK], *key = fixed;
  *out = NULL;
  size_t size = tn__names_key(names, fixed, sizeof fixed);
  if (size > sizeof fixed) {
    key = tn__alloc(size);
    if (key == NULL) return tn__no_memory(err, "names of a call", size);
    tn__names_key(names, key, size);
  }
  tn_status st = TN_OK;
  *out = tn__entry_find(session, key, size);
  if (*out == NULL) {
    st = make_in_time(session, options, names, feeds, deadline_ns, out, err);
    if (st == TN_OK) tn__entry_keep(session, *out, key, size);
  }
  if (key != fixed) tn__free(key, size);
  return st == TN_OK ? tn__feeds_check(*out, names->feeds, feeds, err) : st;
}
