/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that may wait, or run other plans: their calls, loops and functions. */
#ifndef TN_CORE_EXEC_PENDING_H
#define TN_CORE_EXEC_PENDING_H

#include <core/exec/run.h>

typedef struct tn__loop tn__loop;
typedef struct tn__calling tn__calling;

/* pending.c: a call that may wait, or a loop, as long as its workspace. */
typedef struct tn__pending {
  tn__call call;
  tn_wait_token *token; /* NULL = it waits for what is inside of it */
  tn__loop *loop;       /* NULL = none yet (loop.c) */
  void (*free_loop)(tn__loop *loop);
  const bool *left; /* of a loop that has run, by exit: it had a value */
  tn__calling *calling; /* functions that the kernel called; NULL = none yet (call.c) */
  void (*free_calling)(tn__calling *calling);
  bool over;            /* the kernel has ended, and functions that it called have not */
  int64_t began_ns;     /* of a step that is traced: when it was called first */
} tn__pending;
tn__pending *tn__pending_get(tn__run *run, uint32_t number); /* NULL without memory, and the error is set */
void tn__pending_free(tn__pending *pending); /* NULL allowed */

/* loop.c */
tn_status tn__loop_run(tn__run *run, uint32_t number);

/* call.c: the kernel that called functions has ended. NULL allowed. */
void tn__calls_end(tn__calling *calling);
bool tn__calls_wait(const tn__calling *calling); /* whether one of them waits */
/* Resumes the waiting calls of a step that has failed; their results are discarded. TN_PENDING: some still wait. */
tn_status tn__calls_drain(tn__calling *calling, tn_error *err);

#endif
