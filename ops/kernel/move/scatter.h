/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters slices to indices, in tensors and in variables: the update of an element, shape checks, and the
 * iteration. */
#ifndef TN_OPS_KERNEL_MOVE_SCATTER_H
#define TN_OPS_KERNEL_MOVE_SCATTER_H

#include <ops/kernel/indices.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>

/* How an update combines with the current element. SET replaces it. JOIN is ADD that also appends strings. */
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
  tn__scatter_fn fn; /* NULL: copy elements, or append strings if `append` is set */
  bool append;
} tn__scatter;

/* TN_UNIMPLEMENTED if the dtype does not support the step. SET supports all dtypes. */
tn_status tn__scatter_init(tn__scatter *s, const tn_operation *op, tn__scatter_step step, tn_dtype dtype,
                           tn_error *err);

/* Checks the shapes of indices (input i), [..., depth], and of updates (input u): the dimensions of the indices
 * except the last, then those of the output after the first `depth`. Unknown parts fit. */
tn_status tn__scatter_check(const char *op, const tn__shape *out, const tn__shape *indices, uint32_t i,
                            const tn__shape *updates, uint32_t u, tn_error *err);
/* The same for known shapes. Also checks that the output has elements if there are updates or indices. */
tn_status tn__scatter_check_all(const char *op, const tn__shape *out, const tn_view *indices, uint32_t i,
                                const tn_view *updates, uint32_t u, tn_error *err);

/* Flags. An index out of range ends the iteration if STOP is set; otherwise that update is skipped. */
enum { TN__SCATTER_STOP = 1, TN__SCATTER_SAME = 2 /* `from` is a single element, used for every target */ };

/* Applies pieces of `piece` elements, one for each index of the space, to `to`, which must have elements. Fails if
 * out of memory (only for dtypes that own memory), and with TN_CANCELLED once `poll` is over; poll may be NULL. */
tn_status tn__scatter_run(const tn__scatter *s, const tn__index_space *space, void *to, const void *from, int64_t piece,
                          uint32_t flags, tn__poll *poll, tn_error *err);

#endif
