/* SPDX-License-Identifier: Apache-2.0 */
/* Slices put at indices, in tensors and in variables: what is done to an element, which shapes fit, and the walk. */
#ifndef TN_OPS_KERNEL_MOVE_SCATTER_H
#define TN_OPS_KERNEL_MOVE_SCATTER_H

#include <ops/kernel/indices.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>

/* What an update does to what is there. SET replaces it, JOIN is ADD that appends strings. */
typedef enum tn__scatter_step {
  TN__SCATTER_SET,
  TN__SCATTER_ADD,
  TN__SCATTER_JOIN,
  TN__SCATTER_SUB,
  TN__SCATTER_MUL,
  TN__SCATTER_DIV,
  TN__SCATTER_MAX,
  TN__SCATTER_MIN
} tn__scatter_step;

/* to[i] = to[i] step from[i] for n elements. */
typedef void (*tn__scatter_fn)(void *to, const void *from, int64_t n);

typedef struct tn__scatter {
  tn_dtype dtype;
  tn__scatter_fn fn; /* NULL: elements are copied, strings appended to what is there when `append` says so */
  bool append;
} tn__scatter;

/* TN_UNIMPLEMENTED where the dtype has no such step. SET takes all dtypes. */
tn_status tn__scatter_init(tn__scatter *s, const tn_operation *op, tn__scatter_step step, tn_dtype dtype,
                           tn_error *err);

/* Indices [..., depth] and updates [the indices' dimensions but the last, the output's behind `depth`], inputs i and
 * u of an op. Unknown parts fit. */
tn_status tn__scatter_check(const char *op, const tn__shape *out, const tn__shape *indices, uint32_t i,
                            const tn__shape *updates, uint32_t u, tn_error *err);
/* The same when all is known: also that there is a place for every update. */
tn_status tn__scatter_check_all(const char *op, const tn__shape *out, const tn_view *indices, uint32_t i,
                                const tn_view *updates, uint32_t u, tn_error *err);

/* How a walk goes on at an index outside: it leaves that update out, or ends. */
enum { TN__SCATTER_STOP = 1, TN__SCATTER_SAME = 2 /* `from` is one element, for all places */ };

/* Puts pieces of `piece` elements, one for each index of the space, to their places in `to`, which has elements.
 * Fails without memory, only for dtypes that own some, and with TN_CANCELLED once `poll` says so; NULL: it is not asked. */
tn_status tn__scatter_run(const tn__scatter *s, const tn__index_space *space, void *to, const void *from, int64_t piece,
                          uint32_t flags, tn__poll *poll, tn_error *err);

#endif
