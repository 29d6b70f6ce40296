/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a kernel has called, after it has returned or while it waits. */
#ifndef TN_CORE_EXEC_CALL_H
#define TN_CORE_EXEC_CALL_H

#include <core/exec/step/pending.h>

/* The kernel that called functions has ended; gives their workspaces back. NULL allowed. */
void tn__calls_end(tn__calling *calling);
bool tn__calls_wait(const tn__calling *calling); /* whether one of them waits */
/* Resumes the waiting calls of a step that has failed; their results are discarded. TN_PENDING: some still wait. */
tn_status tn__calls_drain(tn__calling *calling, tn_error *err);

#endif
