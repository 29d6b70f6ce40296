/* SPDX-License-Identifier: Apache-2.0 */
/* Copying between two arrangements of the same elements: transposing, reversing, taking boxes apart.
 *
 * A copy is a list of dimensions, each with the elements from one place to the next on both sides. Neighbours that lie
 * together are merged, what is dense on both sides becomes the unit that is moved, and where the source is dense along
 * another dimension than the target the copy goes in blocks that stay in the first cache.
 *
 *   tn__strided s;
 *   tn__strided_init(&s, dtype);
 *   tn__strided_add(&s, rows, 1, cols); ... outermost dimension of the target first
 *   tn__strided_plan(&s);
 *   tn__strided_run(&s, ctx, from, to); */
#ifndef TN_OPS_KERNEL_MOVE_STRIDED_H
#define TN_OPS_KERNEL_MOVE_STRIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/op.h>

/* Dimensions of two elements or more whose product is an int64_t. */
#define TN__STRIDED_DIMS 63

typedef struct tn__strided_dim {
  int64_t size, from, to; /* bytes from one place to the next; may be negative */
} tn__strided_dim;

/* `n` units of `width` bytes from `from` to `to`, a unit at a time. */
typedef void (*tn__strided_line)(size_t width, int64_t n, const char *from, int64_t from_step, char *to,
                                 int64_t to_step);
/* A block of units that lie together along a dimension of the source, and along another one of the target. */
typedef void (*tn__strided_block)(int64_t n_from, int64_t n_to, const char *from, int64_t from_step, char *to,
                                  int64_t to_step);

/* Freely copied; no memory of its own. */
typedef struct tn__strided {
  tn_dtype dtype;
  bool empty;
  int32_t rank;             /* before _plan all dimensions, afterwards those outside of a block */
  size_t element, width;    /* bytes: of an element; of the unit that is moved */
  tn__strided_dim dims[TN__STRIDED_DIMS];
  tn__strided_dim side, last; /* of a block: the target is dense along `last`, or as near as there is */
  int64_t side_tile, last_tile; /* places of a block */
  int64_t side_tiles, last_tiles, units;
  tn__strided_line line;
  tn__strided_block block;  /* NULL: a block goes by lines */
  double unit_ns, cost_ns;  /* rough times of a block and of all, on one thread */
} tn__strided;

void tn__strided_init(tn__strided *s, tn_dtype dtype);
/* One more dimension, outermost of the target first; steps in elements. The sizes of one copy are those of a tensor. */
void tn__strided_add(tn__strided *s, int64_t size, int64_t from, int64_t to);
void tn__strided_plan(tn__strided *s);
/* True for a copy of `count` adjacent elements to adjacent ones. */
bool tn__strided_is_flat(const tn__strided *s);

/* Runs it. Strings and handles are copied one by one into elements that are zeroed. ctx NULL: on the calling thread,
 * and not for strings and handles. Fails without memory only. */
tn_status tn__strided_run(const tn__strided *s, tn_kernel_ctx *ctx, const void *from, void *to);

/* The loop for units of this width. */
tn__strided_line tn__strided_line_of(size_t width);

#endif
