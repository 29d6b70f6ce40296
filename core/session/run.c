/* SPDX-License-Identifier: Apache-2.0 */
/* Run by names: the usual call. Its entry point is found by the names, then the step is run in the
 * signature's order. */
#include <core/session/entry.h>
#include <core/session/step.h>

static tn_status check_arguments(tn_session *session, const tn__names *names, tn_tensor *const *feeds,
                                 tn_tensor **fetched, tn_error *err)
{
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_run: session is NULL");
  tn_status st = tn__names_check(names, err);
  if (st != TN_OK) return st;
  if (names->n_fetches > 0 && fetched == NULL) /* S-RUN-07 */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_run: fetched is NULL but n_fetches is %zu",
                        names->n_fetches);
  if (names->n_feeds > 0 && feeds == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_run: feeds is NULL");
  for (size_t i = 0; i < names->n_feeds; i++)
    if (feeds[i] == NULL) /* S-RUN-18 */
      return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor for feed '%s' is NULL", names->feeds[i]);
  return TN_OK;
}

tn_status tn_session_run(tn_session *session, const tn_run_options *options, const char *const *feed_names,
                         tn_tensor *const *feeds, size_t n_feeds, const char *const *fetch_names, tn_tensor **fetched,
                         size_t n_fetches, const char *const *targets, size_t n_targets, tn_run_metadata *metadata,
                         tn_error *err)
{
  tn__error_reset(err);
  const tn__names names = { feed_names, fetch_names, targets, n_feeds, n_fetches, n_targets };
  for (size_t i = 0; fetched != NULL && i < n_fetches; i++) fetched[i] = NULL; /* S-RUN-08 */
  tn_status st = check_arguments(session, &names, feeds, fetched, err);
  if (st != TN_OK) return st;
  st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn__entry_point *e;
  int64_t deadline_ns = TN__FROM_NOW;
  st = tn__entry_get(session, options, &names, feeds, &deadline_ns, &e, err);
  if (st == TN_OK) st = tn__run_options_check(session, options, err);
  if (st == TN_OK) st = tn__step_run(session, e, options, deadline_ns, feeds, fetched, metadata, err);
  tn__entry_unref(e);
  tn__session_leave(session);
  return st;
}
