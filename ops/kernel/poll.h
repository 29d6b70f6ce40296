/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation checks for long loops. A long loop polls from time to time whether its step has been stopped, so
 * that a time limit, a cancellation or a close ends it soon. tn_parallel_for polls between its slices. This header
 * is for loops that it does not split: loops that a kernel runs itself, and single items that take long.
 *
 *     tn__poll poll = tn__poll_of(ctx);              in compute; tn__poll_here() in a parallel item or in prepare
 *     for (...) {
 *       if (tn__poll_over(&poll, ns)) return ...;    ns: approximate cost of this iteration
 *
 * Once stopped, a step stays stopped, and the loop's results are discarded. An item simply returns. A kernel returns
 * TN_CANCELLED; it must check tn_kernel_cancelled before it uses the results of an earlier loop. A kernel that changes
 * state polls only before the first change. */
#ifndef TN_OPS_KERNEL_POLL_H
#define TN_OPS_KERNEL_POLL_H

#include <core/base/threads/stop.h>
#include <tenon/op.h>

#define TN__POLL_NS 200000 /* work between two checks */

typedef struct tn__poll {
  const tn_kernel_ctx *ctx; /* NULL: check the work of the calling thread (tn__stopped_now) */
  int64_t left;
} tn__poll;

static inline tn__poll tn__poll_of(const tn_kernel_ctx *ctx) { return (tn__poll){ ctx, TN__POLL_NS }; }
static inline tn__poll tn__poll_here(void) { return (tn__poll){ NULL, TN__POLL_NS }; }

static inline bool tn__poll_over(tn__poll *p, int64_t ns)
{
  p->left -= ns;
  if (__builtin_expect(p->left > 0, 1)) return false;
  bool over = p->ctx != NULL ? tn_kernel_cancelled(p->ctx) != 0 : tn__stopped_now();
  p->left = over ? 0 : TN__POLL_NS; /* once stopped, every later call checks again */
  return over;
}

static inline tn_status tn__poll_status(tn__poll *p, int64_t ns) { return tn__poll_over(p, ns) ? TN_CANCELLED : TN_OK; }

#endif
