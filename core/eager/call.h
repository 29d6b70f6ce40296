/* SPDX-License-Identifier: Apache-2.0 */
/* Running an operation, for a caller that is inside the session. */
#ifndef TN_CORE_EAGER_CALL_H
#define TN_CORE_EAGER_CALL_H

#include <core/eager/op.h>

tn_status tn__eager_run(tn_eager_op *op, const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs,
                        size_t room, size_t *n_outputs, tn_error *err);
/* again: a spare for the one output, or NULL; NULL afterwards when it was taken. */
tn_status tn__eager_step(tn_eager_session *session, const tn__eager_plan *plan, tn_tensor **inputs, tn_tensor **outputs,
                         tn_tensor **again, tn_error *err);

#endif
