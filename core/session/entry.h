/* SPDX-License-Identifier: Apache-2.0 */
/* From the names of a call to its entry point. The caller releases *out. */
#ifndef TN_CORE_SESSION_ENTRY_H
#define TN_CORE_SESSION_ENTRY_H

#include <core/session/entry_point.h>

/* The entry point of a Run: finds or makes it, and checks the feeds. If it has to be made, the time limit counts from
 * this call, limits the preparation, and is stored in *deadline_ns. */
tn_status tn__entry_get(tn_session *session, const tn_run_options *options, const tn__names *names,
                        tn_tensor *const *feeds, int64_t *deadline_ns, tn__entry_point **out, tn_error *err);
/* Parses the names, then finds or compiles the signature. feeds, unless NULL, are checked for their types before
 * compilation. */
tn_status tn__entry_resolve(tn_session *session, const tn__names *names, tn_tensor *const *feeds, tn__entry_point **out,
                         tn_error *err);
/* The same for a partial run: its plan takes feeds one by one, it has no executable, and no output is both fed and
 * fetched. */
tn_status tn__entry_make_partial(tn_session *session, const tn__names *names, tn__entry_point **out, tn_error *err);

#endif
