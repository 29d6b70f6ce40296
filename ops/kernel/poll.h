/* SPDX-License-Identifier: Apache-2.0 */
/* Long loops look now and then whether what they work for goes on, so that a time limit, a cancellation, a close end them
 * soon. tn_parallel_for does it between its slices; here is the same for loops that it does not cut: those of kernels that
 * run by themselves, and single items that take long.
 *
 *     tn__poll poll = tn__poll_of(ctx);              in compute; in an item of tn_parallel_for or in prepare: tn__poll_here()
 *     for (...) {
 *       if (tn__poll_over(&poll, ns)) return ...;    ns: of this turn, roughly
 *
 * Once it was over it stays over, and nobody looks at what the loop has made: an item just returns. A kernel returns
 * TN_CANCELLED, and goes on with nothing that a loop before has made without asking tn_kernel_cancelled. A kernel that changes
 * state polls before it begins with that only. */
#ifndef TN_OPS_KERNEL_POLL_H
#define TN_OPS_KERNEL_POLL_H

#include <core/base/stop.h>
#include <tenon/op.h>

#define TN__POLL_NS 200000 /* of work between two looks */

typedef struct tn__poll {
  const tn_kernel_ctx *ctx; /* NULL: it asks what this thread works for */
  int64_t left;
} tn__poll;

static inline tn__poll tn__poll_of(const tn_kernel_ctx *ctx) { return (tn__poll){ ctx, TN__POLL_NS }; }
static inline tn__poll tn__poll_here(void) { return (tn__poll){ NULL, TN__POLL_NS }; }

static inline bool tn__poll_over(tn__poll *p, int64_t ns)
{
  p->left -= ns;
  if (__builtin_expect(p->left > 0, 1)) return false;
  bool over = p->ctx != NULL ? tn_kernel_cancelled(p->ctx) != 0 : tn__stopped_now();
  p->left = over ? 0 : TN__POLL_NS; /* and asked again each time, then */
  return over;
}

static inline tn_status tn__poll_status(tn__poll *p, int64_t ns) { return tn__poll_over(p, ns) ? TN_CANCELLED : TN_OK; }

#endif
