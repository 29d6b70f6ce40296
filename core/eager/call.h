/* SPDX-License-Identifier: Apache-2.0 */
/* Running an operation, for a caller that is inside the session. */
#ifndef TN_CORE_EAGER_CALL_H
#define TN_CORE_EAGER_CALL_H

#include <core/eager/op.h>

/* Runs a plan. The outputs are the caller's; after an error they are NULL. again: a spare for the
 * one output, or NULL; *again is NULL afterwards if it was used. Tries once more after deleting
 * unused tensors if memory is exhausted. */
tn_status tn__eager_step(tn_eager_session *session, const tn__eager_plan *plan, tn_tensor **inputs, tn_tensor **outputs,
                         tn_tensor **again, tn_error *err);

#endif
