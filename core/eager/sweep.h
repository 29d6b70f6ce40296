/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting what is unused. */
#ifndef TN_CORE_EAGER_SWEEP_H
#define TN_CORE_EAGER_SWEEP_H

#include <core/eager/eager.h>

/* Deletes what is unused in a lane, in all of them; how many there were. */
size_t tn__eager_sweep_lane(tn_eager_session *session, tn__eager_lane *lane);
size_t tn__eager_sweep(tn_eager_session *session);
/* Memory is exhausted: deletes what is unused, and waits for other threads that are deleting. False where the strategy keeps
 * everything until the session is closed. Otherwise the caller tries again, even if there was nothing left to delete: another
 * thread may have deleted it after the first try. */
bool tn__eager_reclaim(tn_eager_session *session);
void tn__eager_safe_point(tn_eager_session *session); /* with ON_SAFE_POINTS; else nothing */
void tn__eager_help(tn_eager_session *session);       /* of a call that made something, IN_BACKGROUND */
tn_status tn__eager_thread_start(tn_eager_session *session, tn_error *err);
void tn__eager_thread_end(tn_eager_session *session);
/* At the end: everything goes, used or not. */
void tn__eager_delete_all(tn_eager_session *session);

/* Small tensors that were deleted, for the next of their shape. */
tn_tensor *tn__eager_spare_take(tn_eager_session *session); /* NULL: there is none */
void tn__eager_spares_free(tn_eager_session *session);

#endif
