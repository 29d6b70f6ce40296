/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a run as tensors, and the outputs of its step. */
#ifndef TN_CORE_EXEC_VALUES_H
#define TN_CORE_EXEC_VALUES_H

#include <core/exec/run.h>

/* values.c: a value as a tensor, with a reference: the one that has its memory, or a copy. */
tn_status tn__run_tensor(tn__run *run, uint32_t value, tn_tensor **out);
/* The tensor whose memory a slot of the call's instance shows, when that does not change any more; NULL: there is none. */
tn_tensor *tn__call_lasting(const tn__call *call, uint32_t slot);
/* The buffer of tensors that stand for memory which is only lent for the time of a call (call.c). */
extern tn_buffer tn__borrowed;

/* outputs.c: memory for outputs of a segment before it runs, and what is copied or handed over at the end. */
tn_status tn__outputs_bind(tn__run *run, tn__instance *instance);
tn_status tn__outputs_finish(tn__run *run);
tn_status tn__output_dead(const tn__run *run, uint32_t output); /* says so, and gives the code */
void tn__outputs_drop(tn__run *run); /* after an error */

/* limit.c: adds to an error of the memory limit what holds the memory. */
void tn__limit_explain(const tn__run *run, tn_status st);

#endif
