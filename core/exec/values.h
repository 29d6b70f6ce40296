/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a run as tensors, and the outputs of its step. */
#ifndef TN_CORE_EXEC_VALUES_H
#define TN_CORE_EXEC_VALUES_H

#include <core/exec/step/run_state.h>
#include <core/exec/step/step.h>
#include <core/exec/step/workspace.h>

/* The tensor of a value that is a tensor of its own: a feed, or the output of a Merge or a loop.
 * Else NULL. Borrowed. */
static inline tn_tensor *tn__run_whole(const tn__run *run, uint32_t value)
{
  const tn__plan_value *v = &run->plan->values[value];
  if (v->kind == TN_VALUE_FEED) return run->step->inputs[v->index];
  return v->whole ? run->workspace->held[v->held] : NULL;
}

/* View of a computed value, in the instance of its segment: the first of the list, since the
 * segment has run. */
static inline tn_view *tn__run_view(const tn__run *run, uint32_t value, uint32_t *slot, tn__instance **instance)
{
  const tn__plan_value *v = &run->plan->values[value];
  *instance = run->workspace->instances[v->segment];
  *slot = v->slot;
  return &(*instance)->views[v->slot];
}

/* values.c: a reference to a tensor with the value: the one that has its memory if that no longer
 * changes, else a copy. */
tn_status tn__run_tensor(tn__run *run, uint32_t value, tn_tensor **out);
/* The tensor whose memory a slot of the call's instance shows, if that memory no longer changes;
 * else NULL. Borrowed. */
tn_tensor *tn__call_lasting(const tn__call *call, uint32_t slot);
/* The buffer of tensors whose memory is borrowed for the duration of a call (call.c). No reference
 * to such a tensor may be kept. */
extern tn_buffer tn__borrowed;

/* outputs.c: binds memory for the outputs of a segment before it runs; copies or hands over the others at the end. */
tn_status tn__outputs_bind(tn__run *run, tn__instance *instance);
tn_status tn__outputs_finish(tn__run *run);
/* The error of an output without a value; returns its code. */
tn_status tn__output_dead(const tn__run *run, uint32_t output);
/* Releases all outputs, after an error. */
void tn__outputs_drop(tn__run *run);

/* memory_report.c: adds the largest tensors of the step to the error if it is of the session's
 * memory limit; once a step. */
void tn__memory_explain(const tn__run *run, tn_status st);

#endif
