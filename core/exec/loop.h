/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a running loop: its variables and its exits so far.
 *
 * Kept with its segment's tn__pending, so the next step allocates nothing. The struct and its
 * arrays are one allocation. */
#ifndef TN_CORE_EXEC_LOOP_H
#define TN_CORE_EXEC_LOOP_H

#include <core/exec/inner.h>
#include <core/exec/step/pending.h>
#include <core/plan/frame.h>

struct tn__loop {
  const tn__plan_frame *frame;
  tn__inner inner;  /* runs the body; open while `running` */
  bool running;     /* it has begun and not ended */
  bool first;       /* this is the first iteration */
  bool unsteady;    /* loop_steady.c cannot run it */
  uint32_t n_enters;
  size_t block_bytes; /* of this allocation */
  tn_tensor *index[2];  /* second outputs of Merges: from which input their value came; made if they are read */
  tn_tensor **enters;   /* by Enter: references, as are nexts and exits */
  tn_tensor **nexts;    /* by NextIteration: the variables of the next iteration; NULL = dead */
  tn_tensor **exits;    /* by Exit: its last value; NULL = none so far */
  tn_tensor **inputs;   /* by feed of the body; borrowed */
  bool *dead;           /* by feed of the body */
  bool *left;           /* by Exit: it had a value in the last run */
};

/* Whether the condition that a turn of a rotated loop returned holds; NULL: it is dead, so it does
 * not. */
static inline bool tn__loop_goes_on(const tn__plan_frame *f, const tn_tensor *t)
{
  if (t != NULL && f->any_rank && t->rank > 0) return t->count > 0;
  return t != NULL && t->count == 1 && *(const uint8_t *)t->data != 0;
}

/* loop.c: runs, or resumes, the loop of a segment. TN_PENDING: a call in its body waits. */
tn_status tn__loop_run(tn__run *run, uint32_t number);
/* loop_steady.c: after one turn by the general way, runs further turns as long as the variables keep their shapes.
 * *more: whether another turn follows. */
tn_status tn__loop_turn_steadily(tn__loop *loop, bool *more);

#endif
