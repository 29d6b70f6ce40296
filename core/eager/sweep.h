/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting unused tensors. */
#ifndef TN_CORE_EAGER_SWEEP_H
#define TN_CORE_EAGER_SWEEP_H

#include <core/eager/eager.h>

/* When memory is exhausted: deletes unused tensors, and waits for deletions by other threads. False if the
 * strategy keeps everything until the session is closed. Otherwise the caller tries again, even if nothing
 * was left to delete: another thread may have deleted it after the first try. */
bool tn__eager_reclaim(tn_eager_session *session);
void tn__eager_safe_point(tn_eager_session *session); /* with ON_SAFE_POINTS; else does nothing */
void tn__eager_help(tn_eager_session *session);       /* with IN_BACKGROUND: for calls that make tensors */
/* The session's thread of IN_BACKGROUND. Ending it joins it. */
tn_status tn__eager_thread_start(tn_eager_session *session, tn_error *err);
void tn__eager_thread_end(tn_eager_session *session);
/* At close: deletes all tensors, used or not. */
void tn__eager_delete_all(tn_eager_session *session);

/* Small deleted tensors, to be reused for the next one of their shape. */
tn_tensor *tn__eager_spare_take(tn_eager_session *session); /* NULL if there is none */

#endif
