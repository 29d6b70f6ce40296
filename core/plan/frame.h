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

/* What goes round: where its first value comes from, and which NextIteration gives the next one. */
typedef struct tn__frame_variable {
  uint32_t enter, next;
} tn__frame_variable;

typedef struct tn__turn_feed {
  bool is_variable;
  uint32_t index; /* of the variable, or of the Enter */
} tn__turn_feed;

typedef struct tn__plan_frame {
  tn_plan *body;  /* a reference */
  uint32_t n_feeds, n_nexts, n_exits;
  /* A loop that could be turned (turn.c), else NULL: `first` tells from the variables whether there is a first iteration,
   * `turn` gives the variables of the next one, and whether there is one. */
  tn_plan *first, *turn;
  tn__turn_feed *first_feeds, *turn_feeds;
  uint32_t n_first_feeds, n_turn_feeds;
  tn__frame_variable *variables; /* n_nexts */
  uint32_t *exit_variables;      /* n_exits */
  bool any_rank;  /* a condition that is no scalar holds when it has elements */
  bool simple;    /* all that goes round lives and dies together, and so do the Exits, at the end */
  tn__frame_feed feeds[];
} tn__plan_frame;

void tn__plan_frame_free(tn__plan_frame *frame); /* NULL allowed */
/* Takes away what turn.c gave it. */
void tn__plan_frame_unturn(tn__plan_frame *frame);

#endif
