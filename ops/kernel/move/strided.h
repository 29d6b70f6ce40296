/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between two layouts of the same elements: transposing, reversing, extracting boxes.
 *
 * A copy is a list of dimensions, each with its strides on both sides. Adjacent dimensions that are contiguous are
 * merged. The dimension that is dense on both sides becomes the unit of copying. If source and target are dense
 * along different dimensions, the copy proceeds in blocks that stay in the L1 cache.
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

/* Maximum number of dimensions of size 2 or more whose product fits int64_t. */
#define TN__STRIDED_DIMS 63

typedef struct tn__strided_dim {
  int64_t size, from, to; /* strides in bytes; may be negative */
} tn__strided_dim;

/* Copies `n` units of `width` bytes, unit by unit. Steps are in bytes. */
typedef void (*tn__strided_line)(size_t width, int64_t n, const char *from, int64_t from_step, char *to,
                                 int64_t to_step);
/* Transposes a block of units: contiguous along one dimension in the source, and along the other in the target. */
typedef void (*tn__strided_block)(int64_t n_from, int64_t n_to, const char *from, int64_t from_step, char *to,
                                  int64_t to_step);

/* Owns no memory, so it may be copied by assignment. */
typedef struct tn__strided {
  tn_dtype dtype;
  bool empty;
  int32_t rank;             /* before _plan: all dimensions; after it: those outside a block */
  size_t element, width;    /* bytes per element, and per unit of copying */
  tn__strided_dim dims[TN__STRIDED_DIMS];
  tn__strided_dim side, last; /* dimensions of a block; the target is densest along `last` */
  int64_t side_tile, last_tile; /* size of a block in these dimensions */
  int64_t side_tiles, last_tiles, units;
  tn__strided_line line;
  tn__strided_block block;  /* NULL: a block is copied line by line */
  double unit_ns, cost_ns;  /* estimated time of a block and of the whole copy, on one thread */
} tn__strided;

void tn__strided_init(tn__strided *s, tn_dtype dtype);
/* Adds a dimension, outermost of the target first. Steps are in elements. The product of all sizes must be a valid
 * tensor size. */
void tn__strided_add(tn__strided *s, int64_t size, int64_t from, int64_t to);
void tn__strided_plan(tn__strided *s);
/* True if the copy is contiguous on both sides. */
bool tn__strided_is_flat(const tn__strided *s);

/* Runs the copy. Strings and handles are copied one by one; their target elements must be zeroed. ctx NULL: runs on
 * the calling thread; not allowed for strings and handles. Fails if out of memory, and with TN_CANCELLED if the
 * step has been stopped; both only for elements that own memory. */
tn_status tn__strided_run(const tn__strided *s, tn_kernel_ctx *ctx, const void *from, void *to);

/* Returns the copy loop for units of this width. */
tn__strided_line tn__strided_line_of(size_t width);

#endif
