/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of tensors: the slices under which savers store partitioned variables. */
#ifndef TN_CORE_FORMATS_CHECKPOINT_SLICES_H
#define TN_CORE_FORMATS_CHECKPOINT_SLICES_H

#include <core/base/arena.h>
#include <core/base/text.h>
#include <tenon/tensor.h>

/* A box within a tensor. rank numbers each, in an arena. A length of -1 means the whole dimension until
 * tn__region_resolve has replaced it. */
typedef struct tn__region {
  int32_t rank;
  int64_t *starts, *lengths;
} tn__region;

/* Sets the whole of a tensor with these dims. */
tn_status tn__region_all(int32_t rank, const int64_t *dims, tn__arena *arena, tn__region *out, tn_error *err);
/* Makes a copy with arrays of its own. */
tn_status tn__region_copy_of(const tn__region *region, tn__arena *arena, tn__region *out, tn_error *err);
/* Replaces -1 by the dimension and checks the region against the tensor: TN_INVALID_ARGUMENT. */
tn_status tn__region_resolve(tn__region *region, int32_t rank, const int64_t *dims, tn_error *err);
bool tn__region_equals(const tn__region *a, const tn__region *b);
/* Whether the resolved region is the whole of a tensor with these dims. */
bool tn__region_is_all(const tn__region *region, const int64_t *dims);
/* The intersection; false: it is empty. The arrays of *out have room for the rank. */
bool tn__region_common(const tn__region *a, const tn__region *b, tn__region *out);
int64_t tn__region_elements(const tn__region *region);

/* Whether the regions cover `whole` exactly: none overlap inside of it, nothing is missing. Parts outside are
 * ignored. */
tn_status tn__regions_cover(const tn__region *regions, size_t n, const tn__region *whole, bool *out, tn_error *err);

/* The elements that two regions have in common, as runs: `run` elements that are contiguous in the array of each
 * region, where the runs are as long as possible. The struct walks over the runs, in ascending order of both positions.
 */
typedef struct tn__runs {
  int64_t run;      /* elements of each run; 0: the regions have nothing in common */
  int64_t from, to; /* position of the current run in the array of each region, in elements */
  int32_t rank;     /* of the grid of runs */
  struct tn__runs_dim {
    int64_t n, at, from_step, to_step;
  } dims[TN_MAX_RANK];
} tn__runs;

void tn__runs_init(tn__runs *runs, const tn__region *from, const tn__region *to);
bool tn__runs_next(tn__runs *runs); /* false: there is no other run */

/* Copies the common part of two regions from one contiguous array to another. size: bytes of an element; copies plain
 * bytes, unless `move` is given, which moves n elements. */
void tn__region_copy(const tn__region *from_region, const void *from, const tn__region *to_region, void *to,
                     size_t size, void (*move)(void *to, void *from, size_t n));

/* Writes a region as TensorFlow does, "0,2:-", at most `size` bytes with the NUL, cut if it is longer. Returns buffer.
 */
char *tn__region_format(char *buffer, size_t size, const tn__region *region);

/* Parses TensorFlow's "shape_and_slice" text: "" (all; rank is -1 then), or "4 10 0,2:0,10" or "4 10 -:0,10" (`-` is a
 * whole dimension). Sets rank, dims (in the arena) and the resolved region. */
tn_status tn__slice_spec_parse(tn__slice text, tn__arena *arena, int32_t *rank, const int64_t **dims, tn__region *out,
                               tn_error *err);

/* The key of a slice's own entry, in ordered code: slice_key.c. The region has -1 for whole dimensions. The result is
 * in the arena. */
tn_status tn__slice_key(tn__slice name, const tn__region *region, tn__arena *arena, tn__slice *out, tn_error *err);
/* Parses such a key; false: it is not one, or there is no memory. Allocates in the arena. */
bool tn__slice_key_parse(tn__slice key, tn__arena *arena, tn__slice *name, tn__region *region);

#endif
