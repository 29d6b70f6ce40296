/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a plan in a run: from begin to end, and their tapes. */
#ifndef TN_CORE_EXEC_SEGMENT_H
#define TN_CORE_EXEC_SEGMENT_H

#include <core/exec/step/offload.h>
#include <core/exec/step/run_state.h>
#include <core/exec/step/workspace.h>

struct tn__trace;

/* segment.c. Begins a segment: finds the instance for the shapes of its entries, makes room in the
 * arena, and binds entries and outputs. *out is borrowed until the segment ends. */
tn_status tn__segment_begin(tn__run *run, uint32_t number, tn__instance **out);
/* Runs the tape of a segment that has begun; any number of times. */
tn_status tn__segment_tape(tn__run *run, uint32_t number, tn__instance *instance);
/* Ends a segment whose tape has succeeded: keeps the predicates and values that outlive it,
 * releases those that it was the last to read. */
void tn__segment_end(tn__run *run, uint32_t number);
/* All three, one after the other. Inline, because most steps run a single segment. */
static inline tn_status tn__segment_run(tn__run *run, uint32_t number)
{
  tn__instance *instance;
  tn_status st = tn__segment_begin(run, number, &instance);
  if (st == TN_OK) st = tn__segment_tape(run, number, instance);
  if (st == TN_OK) tn__segment_end(run, number);
  return st;
}
/* Releases the held values that no other segment has yet to read. Also for a segment that is
 * skipped. */
void tn__segment_release(tn__run *run, const tn__segment *s);
/* Releases all values that the run still holds; after an error there may be many. */
void tn__run_drop(tn__run *run);

/* Whether a part of the instance's tape is to be run by this run's runtime. */
static inline bool tn__offload_takes(const tn__run *run, const tn__instance *instance)
{
  return run->offload != NULL && instance->offloaded != NULL && instance->offloaded->offload == run->offload;
}

/* tape.c: runs the calls one after the other, whether the layout has tasks or not. */
tn_status tn__tape_run(tn__run *run, uint32_t number, tn__instance *instance);
/* One call of a task. Does not release the values that it reads last; the task does. */
tn_status tn__tape_call(tn__call *call, const tn__tape *tape, struct tn__trace *trace);
/* The one call of a segment that may wait. While it returns TN_PENDING, call it again with
 * ctx.resume set. */
tn_status tn__segment_call(tn__call *call);
/* Releases a heap value, or one of an earlier segment. */
void tn__slot_release(const tn__run *run, const tn__instance *instance, uint32_t slot);

#endif
