/* SPDX-License-Identifier: Apache-2.0 */
/* A loop in a plan: an instruction that runs a plan of its own, the body, once an iteration. The body's feeds are what Enters
 * bring and what goes round; its fetches are the NextIterations, then the Exits. */
#ifndef TN_CORE_PLAN_FRAME_H
#define TN_CORE_PLAN_FRAME_H

#include <core/plan/plan.h>

enum {
  TN__FEED_CONSTANT, /* the Enter's value, in each iteration */
  TN__FEED_FIRST,    /* the Enter's value, in the first iteration only */
  TN__FEED_ROUND,    /* the Enter's value first, then what the NextIteration gave */
  TN__FEED_INDEX,    /* which of the two it was: 0 or 1 */
  TN__FEED_BACK      /* what the NextIteration gave; dead in the first iteration */
};

typedef struct tn__frame_feed {
  uint8_t kind;
  uint32_t enter; /* input of the instruction */
  uint32_t next;  /* fetch of the body */
} tn__frame_feed;

typedef struct tn__plan_frame {
  tn_plan *body;  /* a reference */
  uint32_t n_feeds, n_nexts, n_exits;
  bool simple;    /* all that goes round lives and dies together, and so do the Exits, at the end */
  tn__frame_feed feeds[];
} tn__plan_frame;

void tn__plan_frame_free(tn__plan_frame *frame); /* NULL allowed */

#endif
