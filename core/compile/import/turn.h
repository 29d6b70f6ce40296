/* SPDX-License-Identifier: Apache-2.0 */
/* Turning loops: between frames.c, which finds them, and turn.c. */
#ifndef TN_CORE_COMPILE_IMPORT_TURN_H
#define TN_CORE_COMPILE_IMPORT_TURN_H

#include <core/compile/import/prune.h>

/* What a loop is made of: operations of its own frame. */
typedef struct tn__loop_ops {
  tn_operation *const *enters, *const *merges, *const *nexts, *const *exits;
  size_t n_enters, n_merges, n_nexts, n_exits, n_targets;
} tn__loop_ops;

/* Gives the frame plans for its turns, when the loop is one that can be turned; else it is left as it is. `body` is what its
 * body was compiled with. */
tn_status tn__plan_turn(tn__pruner *c, const tn__loop_ops *loop, const tn__body_spec *body, tn__plan_frame *frame);

#endif
