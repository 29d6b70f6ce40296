/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that runs the calls of an asynchronous session. */
#ifndef TN_CORE_EAGER_ASYNC_H
#define TN_CORE_EAGER_ASYNC_H

#include <core/eager/eager.h>

tn_status tn__eager_queue_open(tn_eager_session *session, tn_error *err);
/* Fails calls that have not begun, and joins the thread; without a queue does nothing. */
void tn__eager_queue_close(tn_eager_session *session);

#endif
