/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a plan in a run: from begin to end, and their tapes. */
#ifndef TN_CORE_EXEC_SEGMENT_H
#define TN_CORE_EXEC_SEGMENT_H

#include <core/exec/run.h>

/* segment.c: the begin of a segment, its tape and its end. */
tn_status tn__segment_begin(tn__run *run, uint32_t number, tn__instance **out);
tn_status tn__segment_tape(tn__run *run, uint32_t number,
                           tn__instance *instance); /* of one that has begun, any number of times */
void tn__segment_end(tn__run *run, uint32_t number);
/* The three, one after the other. Inline: most steps run one segment. */
static inline tn_status tn__segment_run(tn__run *run, uint32_t number)
{
  tn__instance *instance;
  tn_status st = tn__segment_begin(run, number, &instance);
  if (st == TN_OK) st = tn__segment_tape(run, number, instance);
  if (st == TN_OK) tn__segment_end(run, number);
  return st;
}
void tn__segment_release(tn__run *run, const tn__segment *s);
void tn__run_drop(tn__run *run); /* all tensors that are left */

/* tape.c: the calls one after the other, whether the layout has tasks or not. */
tn_status tn__tape_run(tn__run *run, uint32_t number, tn__instance *instance);
/* One call of a task; its caller releases the values that it reads last. */
tn_status tn__tape_call(tn__call *call, const tn__tape *tape, struct tn__trace *trace);
/* The one call of a segment that may wait: again and again until it does not return TN_PENDING. */
tn_status tn__segment_call(tn__call *call);
/* Releases a heap value, or one of an earlier segment. */
void tn__slot_release(const tn__run *run, const tn__instance *instance, uint32_t slot);

#endif
