/* SPDX-License-Identifier: Apache-2.0 */
/* Walking over operands of different shapes as if each had the shape of the result.
 *
 * Neighbouring dimensions in which the same operands stand still are merged and dimensions of one element are left out,
 * so that the walk is over few, long rows: in a row each operand has stride 1 or 0. */
#ifndef TN_OPS_KERNEL_ELEMENTS_BROADCAST_H
#define TN_OPS_KERNEL_ELEMENTS_BROADCAST_H

#include <stdbool.h>
#include <tenon/op.h>

#define TN__BROADCAST_OPERANDS 4
/* Merged dimensions have two elements or more and their product is an int64_t. */
#define TN__BROADCAST_DIMS 63

/* On the stack. dims of the result, outermost first, and by operand the elements from one place to the next. */
typedef struct tn__broadcast {
  int32_t rank; /* merged; 0 for one element, and for none */
  int32_t n;    /* operands */
  int64_t count;
  int64_t dims[TN__BROADCAST_DIMS];
  int64_t strides[TN__BROADCAST_OPERANDS][TN__BROADCAST_DIMS];
} tn__broadcast;

/* Merges. The shape of each operand broadcasts to dims[rank], whose number of elements is known to fit. */
void tn__broadcast_merge(tn__broadcast *b, const int64_t *dims, int32_t rank, const tn_view *const *operands,
                         int32_t n);

/* True when every operand goes through its elements once, in the order of the result. */
bool tn__broadcast_is_flat(const tn__broadcast *b);

/* A copy of the right size, for a kernel's shape state; freed by tn__broadcast_plan_free (NULL allowed). */
typedef struct tn__broadcast_plan {
  int32_t rank; /* of the dimensions outside a row */
  int32_t n;
  int64_t count;
  int64_t row;                              /* elements of a row */
  int64_t row_strides[TN__BROADCAST_OPERANDS]; /* 1 or 0 */
  size_t bytes;
  int64_t tile;                             /* 0; the user of the plan may keep a number here */
  int64_t v[]; /* dims[rank], then strides[rank] of each operand; all outermost first */
} tn__broadcast_plan;
tn_status tn__broadcast_plan_create(const tn__broadcast *b, tn__broadcast_plan **out, tn_error *err);
void tn__broadcast_plan_free(tn__broadcast_plan *plan);

/* Elements [begin, end) of the result in pieces of rows:
 *
 *   tn__broadcast_cursor c;
 *   tn__broadcast_start(&c, plan, begin, end);
 *   while (tn__broadcast_next(&c)) ...
 *
 * Each piece has c.n elements from element c.at of the result on; operand k begins at its element c.offsets[k] and goes
 * on by plan->row_strides[k]. */
typedef struct tn__broadcast_cursor {
  const tn__broadcast_plan *plan;
  int64_t at, n, end;
  int64_t skip; /* elements of the first row that come before `begin`; 0 afterwards */
  int64_t offsets[TN__BROADCAST_OPERANDS];
  int64_t index[TN__BROADCAST_DIMS]; /* in the dimensions outside a row */
} tn__broadcast_cursor;
void tn__broadcast_start(tn__broadcast_cursor *c, const tn__broadcast_plan *plan, int64_t begin, int64_t end);
void tn__broadcast_carry(tn__broadcast_cursor *c); /* part of the next function */

static inline bool tn__broadcast_next(tn__broadcast_cursor *c)
{
  const tn__broadcast_plan *plan = c->plan;
  int32_t last = plan->rank - 1;
  if (c->n == 0) {
    c->n = plan->row - c->skip;
  } else if (c->skip != 0 || last < 0 || c->index[last] + 1 == plan->v[last]) {
    c->at += c->n;
    if (c->at >= c->end) return false;
    tn__broadcast_carry(c);
  } else {
    c->at += c->n;
    c->index[last]++;
    for (int32_t k = 0; k < plan->n; k++) c->offsets[k] += plan->v[plan->rank * (k + 1) + last];
  }
  if (c->n > c->end - c->at) c->n = c->end - c->at;
  return c->n > 0;
}

#endif
