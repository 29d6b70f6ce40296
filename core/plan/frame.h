/* SPDX-License-Identifier: Apache-2.0 */
/* A loop in a plan: an instruction that runs a plan of its own, the body, once for each iteration. The feeds of the
 * body are the values of Enters and of the loop's variables; its fetches are the NextIterations, then the Exits. */
#ifndef TN_CORE_PLAN_FRAME_H
#define TN_CORE_PLAN_FRAME_H

#include <core/plan/plan.h>

enum {
  TN__FEED_CONSTANT, /* the Enter's value, in each iteration */
  TN__FEED_FIRST,    /* the Enter's value, in the first iteration only */
  TN__FEED_ROUND,    /* the Enter's value first, then that of the NextIteration */
  TN__FEED_INDEX,    /* which of the two: 0 or 1 */
  TN__FEED_BACK      /* the value of the NextIteration; dead in the first iteration */
};

typedef struct tn__frame_feed {
  uint8_t kind;
  uint32_t enter; /* input of the instruction */
  uint32_t next;  /* fetch of the body */
} tn__frame_feed;

/* A variable of a loop: the Enter of its first value, and the NextIteration of the next. */
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
  /* Of a loop that could be rotated (core/compile/import/turn.c), else NULL: `first` computes from the variables
   * whether there is a first iteration; `turn` computes the variables of the next one, and whether there is one. */
  tn_plan *first, *turn;
  tn__turn_feed *first_feeds, *turn_feeds;
  uint32_t n_first_feeds, n_turn_feeds;
  tn__frame_variable *variables; /* n_nexts */
  uint32_t *exit_variables;      /* n_exits */
  bool any_rank;  /* a condition that is no scalar holds if it has elements */
  bool simple;    /* all variables live or die together, and so do the Exits, at the end */
  tn__frame_feed feeds[];
} tn__plan_frame;

void tn__plan_frame_free(tn__plan_frame *frame); /* NULL allowed */
/* Releases the plans of a rotated loop. */
void tn__plan_frame_unturn(tn__plan_frame *frame);

#endif
