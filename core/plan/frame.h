/* SPDX-License-Identifier: Apache-2.0 */
/* A loop in a plan: an instruction that runs a plan of its own, the body, once for each iteration. The feeds of the
 * body are the values of Enters and of the loop's variables; its fetches are the NextIterations, then the Exits.
 * Immutable once compiled. */
#ifndef TN_CORE_PLAN_FRAME_H
#define TN_CORE_PLAN_FRAME_H

#include <core/plan/plan.h>

/* The value of a feed of the body. */
enum {
  TN__FEED_CONSTANT, /* the Enter's value, in each iteration */
  TN__FEED_FIRST,    /* the Enter's value, in the first iteration only */
  TN__FEED_ROUND,    /* the Enter's value first, then that of the NextIteration */
  TN__FEED_INDEX,    /* which of the two: 0 or 1 */
  TN__FEED_BACK      /* the value of the NextIteration; dead in the first iteration */
};

typedef struct tn__frame_feed {
  uint8_t kind;   /* TN__FEED_... */
  uint32_t enter; /* index of the Enter: input of the instruction */
  uint32_t next;  /* index of the NextIteration: fetch of the body */
} tn__frame_feed;

/* A variable of a loop: the index of the Enter with its first value, and of the NextIteration with its next one. */
typedef struct tn__frame_variable {
  uint32_t enter, next;
} tn__frame_variable;

/* A feed of one of the plans of a rotated loop. */
typedef struct tn__turn_feed {
  bool is_variable; /* else the value of an Enter */
  uint32_t index;   /* of the variable, or of the Enter */
} tn__turn_feed;

/* Owned by its instruction, like its arrays. */
typedef struct tn__plan_frame {
  tn_plan *body; /* owned reference */
  uint32_t n_feeds, n_nexts, n_exits;
  /* The plans of a rotated loop (core/compile/import/rotate.c), owned references; NULL if it could not be rotated.
   * `first` computes from the variables whether there is a first iteration. `turn` computes the variables of the next
   * iteration, and whether there is one. */
  tn_plan *first, *turn;
  tn__turn_feed *first_feeds, *turn_feeds;
  uint32_t n_first_feeds, n_turn_feeds;
  tn__frame_variable *variables; /* n_nexts */
  uint32_t *exit_variables;      /* n_exits: the variable whose last value each Exit outputs */
  bool any_rank; /* the condition may have any rank: if it is not a scalar, it holds if it has elements */
  bool simple;   /* all variables are live or dead together; so are the Exits, which are live at the end only */
  tn__frame_feed feeds[]; /* n_feeds, of the body */
} tn__plan_frame;

void tn__plan_frame_destroy(tn__plan_frame *frame); /* NULL allowed */
/* Releases the plans of a rotated loop. */
void tn__plan_frame_drop_rotation(tn__plan_frame *frame);

#endif
