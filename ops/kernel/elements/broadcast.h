/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over operands of different shapes as if each had the shape of the result.
 *
 * Adjacent dimensions that the same operands are broadcast along are merged, and dimensions of size 1 are dropped. The
 * iteration is then over few, long rows. Within a row each operand has stride 1 or 0. */
#ifndef TN_OPS_KERNEL_ELEMENTS_BROADCAST_H
#define TN_OPS_KERNEL_ELEMENTS_BROADCAST_H

#include <stdbool.h>
#include <tenon/op.h>

#define TN__BROADCAST_OPERANDS 4
/* Merged dimensions have size 2 or more and their product fits int64_t. */
#define TN__BROADCAST_DIMS 63

/* Lives on the stack. dims are those of the result, outermost first; strides are per operand, in elements. */
typedef struct tn__broadcast {
  int32_t rank; /* after merging; 0 if the result has one element or none */
  int32_t n;    /* operands */
  int64_t count;
  int64_t dims[TN__BROADCAST_DIMS];
  int64_t strides[TN__BROADCAST_OPERANDS][TN__BROADCAST_DIMS];
} tn__broadcast;

/* Merges dimensions. Each operand's shape must broadcast to dims[rank], whose element count must fit int64_t. */
void tn__broadcast_merge(tn__broadcast *b, const int64_t *dims, int32_t rank, const tn_view *const *operands,
                         int32_t n);

/* True if every operand is read once, in the order of the result. */
bool tn__broadcast_is_flat(const tn__broadcast *b);

/* A copy of the merged form, allocated at its exact size for a kernel's shape state. Free it with
 * tn__broadcast_plan_destroy (NULL allowed). */
typedef struct tn__broadcast_plan {
  int32_t rank; /* of the dimensions outside a row */
  int32_t n;
  int64_t count;
  int64_t row;                              /* elements of a row */
  int64_t row_strides[TN__BROADCAST_OPERANDS]; /* 1 or 0 */
  size_t bytes;
  int64_t tile;                             /* initially 0; for use by the plan's user */
  int64_t v[]; /* dims[rank], then strides[rank] of each operand; all outermost first */
} tn__broadcast_plan;
tn_status tn__broadcast_plan_create(const tn__broadcast *b, tn__broadcast_plan **out, tn_error *err);
void tn__broadcast_plan_destroy(tn__broadcast_plan *plan);

/* Visits elements [begin, end) of the result in pieces that do not cross rows:
 *
 *   tn__broadcast_cursor c;
 *   tn__broadcast_start(&c, plan, begin, end);
 *   while (tn__broadcast_next(&c)) ...
 *
 * Each piece is c.n elements starting at element c.at of the result. Operand k starts at its element c.offsets[k] and
 * advances by plan->row_strides[k]. */
typedef struct tn__broadcast_cursor {
  const tn__broadcast_plan *plan;
  int64_t at, n, end;
  int64_t skip; /* elements of the first row before `begin`; 0 after the first piece */
  int64_t offsets[TN__BROADCAST_OPERANDS];
  int64_t index[TN__BROADCAST_DIMS]; /* in the dimensions outside a row */
} tn__broadcast_cursor;
void tn__broadcast_start(tn__broadcast_cursor *c, const tn__broadcast_plan *plan, int64_t begin, int64_t end);
void tn__broadcast_carry(tn__broadcast_cursor *c); /* helper of tn__broadcast_next */

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
