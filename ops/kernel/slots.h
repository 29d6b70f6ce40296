/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory for the parts of a parallel loop: as many slots as threads may run parts at a time. A part takes one
 * and gives it back at its end.
 *
 *   prepare   tn__slots_plan, which adds to the kernel's scratch
 *   compute   tn__slots_begin, then tn_parallel_for
 *   a part    tn__slots_take ... tn__slots_give */
#ifndef TN_OPS_KERNEL_SLOTS_H
#define TN_OPS_KERNEL_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/op.h>

typedef struct tn__slots {
  uint32_t n;
  size_t bytes;        /* of a slot */
  size_t at, at_taken; /* offsets in scratch: of the slots, and of a flag for each */
} tn__slots;

/* For a loop of at most ctx->threads threads. False if the size overflows. */
bool tn__slots_plan(tn__slots *s, const tn_prepare_ctx *ctx, size_t bytes, size_t *scratch);
void tn__slots_begin(const tn__slots *s, char *scratch);
/* Returns a slot, aligned to 64, that no other part uses. */
void *tn__slots_take(const tn__slots *s, char *scratch);
void tn__slots_give(const tn__slots *s, char *scratch, const void *slot);

#endif
