/* SPDX-License-Identifier: Apache-2.0 */
/* Rotated loops: frames.c finds loops, rotate.c rotates those that it can. */
#ifndef TN_CORE_COMPILE_IMPORT_ROTATE_H
#define TN_CORE_COMPILE_IMPORT_ROTATE_H

#include <core/compile/import/prune.h>

/* The operations of a loop in its own frame; borrowed from frames.c. n_targets counts those in its inner frames,
 * too. */
typedef struct tn__loop_ops {
  tn_operation *const *enters, *const *merges, *const *nexts, *const *exits;
  size_t n_enters, n_merges, n_nexts, n_exits, n_targets;
} tn__loop_ops;

/* Adds the plans of a rotated loop to the frame if the loop can be rotated. `body` is the spec with which its body was
 * compiled. */
tn_status tn__loop_rotate(tn__pruner *c, const tn__loop_ops *loop, const tn__body_spec *body, tn__plan_frame *frame);

#endif
