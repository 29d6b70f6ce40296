/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a running loop: its variables and its exits so far. */
#ifndef TN_CORE_EXEC_LOOP_H
#define TN_CORE_EXEC_LOOP_H

#include <core/exec/pending.h>
#include <core/plan/frame.h>

struct tn__loop {
  const tn__plan_frame *frame;
  tn__inner inner;
  bool running, first;
  bool unsteady; /* loop_steady.c cannot run it */
  uint32_t n_enters;
  size_t block_bytes;
  tn_tensor *index[2];  /* second outputs of Merges: from which input their value came; made if they are read */
  tn_tensor **enters;   /* references, as are nexts and exits */
  tn_tensor **nexts;
  tn_tensor **exits;
  tn_tensor **inputs;   /* of the body; borrowed */
  bool *dead;
  bool *left;           /* by exit: it had a value in the last run */
};

/* Whether the condition that a turn returned holds. */
static inline bool tn__loop_goes_on(const tn__plan_frame *f, const tn_tensor *t)
{
  if (t != NULL && f->any_rank && t->rank > 0) return t->count > 0;
  return t != NULL && t->count == 1 && *(const uint8_t *)t->data != 0;
}

/* loop_steady.c: after one turn by the general way, runs further turns as long as the variables keep their shapes.
 * *more: whether another turn follows. */
tn_status tn__loop_turn_steadily(tn__loop *loop, bool *more);

#endif
