/* SPDX-License-Identifier: Apache-2.0 */
/* The handles that a thread made since it opened a scope. */
#ifndef TN_CORE_EAGER_SCOPE_H
#define TN_CORE_EAGER_SCOPE_H

#include <core/eager/eager.h>

/* Adds handles to the calling thread's scope, if it has one. `room` reserves space first, so that `note`
 * cannot fail. */
tn_status tn__eager_scope_room(const tn_eager_session *session, size_t n, tn_error *err);
void tn__eager_scope_note(const tn_eager_session *session, const tn_eager_handle *handles, size_t n);
/* The session is being destroyed: no scope refers to it any more. */
void tn__eager_scopes_forget(tn_eager_session *session);

#endif
