/* SPDX-License-Identifier: Apache-2.0 */
/* State of segments that may wait, or that run other plans: their calls, loops and functions. */
#ifndef TN_CORE_EXEC_STEP_PENDING_H
#define TN_CORE_EXEC_STEP_PENDING_H

#include <core/exec/step/run_state.h>

typedef struct tn__loop tn__loop;
typedef struct tn__calling tn__calling;

/* A call that may wait, or a loop. Lives as long as its workspace. */
typedef struct tn__pending {
  tn__call call;        /* the first member: tn_kernel_ctx, tn__call and tn__pending have one address */
  tn_wait_token *token; /* owned until it is taken or left; NULL = the call waits for a plan inside of it, or not */
  tn__loop *loop;       /* owned; NULL = none yet (core/exec/loop.c) */
  void (*free_loop)(tn__loop *loop);
  const bool *left;     /* of a loop that has run, by Exit: it had a value */
  tn__calling *calling; /* owned: functions that the kernel called; NULL = none yet (core/exec/call.c) */
  void (*free_calling)(tn__calling *calling);
  bool over;            /* the kernel has ended, but functions that it called have not */
  int64_t began_ns;     /* in a traced step: monotonic time of the first call; 0 = not called yet */
} tn__pending;
tn__pending *tn__pending_get(tn__run *run, uint32_t number); /* NULL without memory, and the error is set */

#endif
