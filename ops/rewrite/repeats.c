/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/rewrite/repeats.h>
#include <string.h>

static uint32_t in(const tn_rewriter *rw, uint32_t node, uint32_t i) { return tn_rewrite_input(rw, node, i); }

static int64_t flag(const tn_rewriter *rw, uint32_t node, const char *name)
{
  return tn__attr_int(tn_rewrite_operation(rw, node), name, 0);
}

/* ---- sizes ---- */

#define MOST_SIZES 16

/* An element of a vector of sizes: a number, or a dimension of a value (of < 0: neither is known). */
typedef struct size {
  uint32_t of; /* TN_NO_NODE: a number */
  int64_t number;
} size;
static const size unknown = { TN_NO_NODE, INT64_MIN };

typedef struct sizes {
  int32_t n;
  size at[MOST_SIZES];
} sizes;

static bool read_ints(const tn_rewriter *rw, uint32_t value, sizes *out)
{
  const tn_tensor *t = tn_rewrite_is_constant(rw, value) ? tn_rewrite_constant(rw, value) : NULL;
  if (t == NULL || tn_tensor_rank(t) > 1 || tn_tensor_elements(t) > MOST_SIZES) return false;
  if (tn_tensor_dtype(t) != TN_INT32 && tn_tensor_dtype(t) != TN_INT64) return false;
  out->n = (int32_t)tn_tensor_elements(t);
  if (out->n > 0 && tn_tensor_data(t) == NULL) return false;
  for (int32_t i = 0; i < out->n; i++) out->at[i] = (size){ TN_NO_NODE, tn__tensor_int_at(t, i) };
  return true;
}

static bool read_shape(const tn_rewriter *rw, uint32_t value, sizes *out)
{
  int64_t dims[TN_MAX_RANK];
  out->n = tn_rewrite_shape(rw, value, dims);
  for (int32_t i = 0; i < out->n && i < MOST_SIZES; i++)
    out->at[i] = dims[i] >= 0 ? (size){ TN_NO_NODE, dims[i] } : (size){ value, i };
  return out->n >= 0 && out->n <= MOST_SIZES;
}

#define MOST_NESTED 4
static bool read_sizes(const tn_rewriter *rw, uint32_t value, int depth, sizes *out);

/* Elements [begin, end) of a vector, or one of them as a scalar. */
static bool read_slice(const tn_rewriter *rw, uint32_t node, int depth, sizes *out)
{
  sizes all, begin, end, stride;
  if (!read_sizes(rw, in(rw, node, 0), depth, &all) || !read_ints(rw, in(rw, node, 1), &begin) ||
      !read_ints(rw, in(rw, node, 2), &end) || !read_ints(rw, in(rw, node, 3), &stride))
    return false;
  if (begin.n != 1 || end.n != 1 || stride.n != 1 || stride.at[0].number != 1) return false;
  if (flag(rw, node, "ellipsis_mask") != 0 || flag(rw, node, "new_axis_mask") != 0) return false;
  int64_t first = flag(rw, node, "begin_mask") != 0 ? 0 : begin.at[0].number, last = end.at[0].number;
  if (first < 0) first += all.n;
  if (last < 0) last += all.n;
  if (flag(rw, node, "end_mask") != 0 || last > all.n) last = all.n;
  if (flag(rw, node, "shrink_axis_mask") != 0) last = first + 1;
  if (first < 0 || last > all.n || first > last) return false;
  out->n = (int32_t)(last - first);
  for (int32_t i = 0; i < out->n; i++) out->at[i] = all.at[first + i];
  return true;
}

/* The elements of some inputs, in order. */
static bool read_list(const tn_rewriter *rw, uint32_t node, uint32_t n, int depth, sizes *out)
{
  out->n = 0;
  for (uint32_t i = 0; i < n; i++) {
    sizes part;
    if (!read_sizes(rw, in(rw, node, i), depth, &part) || out->n + part.n > MOST_SIZES) return false;
    for (int32_t k = 0; k < part.n; k++) out->at[out->n++] = part.at[k];
  }
  return true;
}

/* The elements of a scalar or vector, as far as they follow from constants and shapes. */
static bool read_sizes(const tn_rewriter *rw, uint32_t value, int depth, sizes *out)
{
  int64_t dims[TN_MAX_RANK];
  if (read_ints(rw, value, out)) return true;
  const uint32_t node = tn_rewrite_producer(rw, value, NULL);
  if (node == TN_NO_NODE || depth > MOST_NESTED) return false;
  if (tn_rewrite_is(rw, node, "Shape")) return read_shape(rw, in(rw, node, 0), out);
  if (tn_rewrite_is(rw, node, "StridedSlice")) return read_slice(rw, node, depth + 1, out);
  if (tn_rewrite_is(rw, node, "Pack")) return read_list(rw, node, tn_rewrite_n_inputs(rw, node), depth + 1, out);
  if (tn_rewrite_is(rw, node, "ConcatV2"))
    return read_list(rw, node, tn_rewrite_n_inputs(rw, node) - 1, depth + 1, out);
  if (tn_rewrite_is(rw, node, "Cast") || tn_rewrite_is(rw, node, "Reshape") || tn_rewrite_is(rw, node, "Identity"))
    return read_sizes(rw, in(rw, node, 0), depth + 1, out);
  if (tn_rewrite_shape(rw, value, dims) != 0) return false;
  out->n = 1;
  out->at[0] = unknown;
  return true;
}

/* ---- the chain ---- */

/* True if a size is that of dimension `at` of `from`. */
static bool is_kept(const tn_rewriter *rw, const size *s, uint32_t from, int32_t at)
{
  int64_t dims[TN_MAX_RANK];
  tn_rewrite_shape(rw, from, dims);
  if (dims[at] >= 0) return s->of == TN_NO_NODE && s->number == dims[at];
  return s->of == from && s->number == at;
}

/* The value from which one differs by a new dimension of size 1 at `at`; otherwise TN_NO_NODE. */
static uint32_t before_new_axis(const tn_rewriter *rw, uint32_t value, int32_t at)
{
  int64_t dims[TN_MAX_RANK], own[TN_MAX_RANK];
  const uint32_t node = tn_rewrite_producer(rw, value, NULL);
  const int32_t rank = tn_rewrite_shape(rw, value, dims);
  if (node == TN_NO_NODE || tn_rewrite_n_uses(rw, value) != 1 || rank < 1 || dims[at] != 1) return TN_NO_NODE;
  const uint32_t from = in(rw, node, 0);
  if (tn_rewrite_shape(rw, from, own) != rank - 1) return TN_NO_NODE;
  sizes axis;
  if (tn_rewrite_is(rw, node, "ExpandDims")) {
    if (!read_ints(rw, in(rw, node, 1), &axis) || axis.n != 1) return TN_NO_NODE;
    return axis.at[0].number == at || axis.at[0].number == at - rank ? from : TN_NO_NODE;
  }
  if (tn_rewrite_is(rw, node, "Reshape")) {
    for (int32_t d = 0, k = 0; d < rank; d++)
      if (d != at && (dims[d] < 0 || own[k++] != dims[d])) return TN_NO_NODE;
    return from;
  }
  const int64_t kept = ((int64_t)1 << at) - 1;
  const bool plain = tn_rewrite_is(rw, node, "StridedSlice") && flag(rw, node, "new_axis_mask") == (int64_t)1 << at &&
                     (flag(rw, node, "begin_mask") & kept) == kept && (flag(rw, node, "end_mask") & kept) == kept &&
                     flag(rw, node, "shrink_axis_mask") == 0 && flag(rw, node, "ellipsis_mask") == 0 &&
                     read_ints(rw, in(rw, node, 1), &axis) && axis.n == at + 1;
  if (!plain || !read_ints(rw, in(rw, node, 3), &axis)) return TN_NO_NODE;
  for (int32_t i = 0; i < axis.n; i++)
    if (axis.at[i].number != 1) return TN_NO_NODE;
  return from;
}

/* True if a Tile or BroadcastTo changes only dimension `at`. */
static bool only_repeats(const tn_rewriter *rw, uint32_t node, int32_t at, uint32_t from, int32_t rank)
{
  sizes s;
  const bool tile = tn_rewrite_is(rw, node, "Tile");
  if (!tile && !tn_rewrite_is(rw, node, "BroadcastTo")) return false;
  if (!read_sizes(rw, in(rw, node, 1), 0, &s) || s.n != rank) return false;
  for (int32_t d = 0; d < rank; d++) {
    if (d == at) continue;
    if (!tile && !is_kept(rw, &s.at[d], from, d - (d > at))) return false;
    if (tile && (s.at[d].of != TN_NO_NODE || s.at[d].number != 1)) return false;
  }
  return true;
}

bool tn__repeated(const tn_rewriter *rw, uint32_t value, int32_t dimension, uint32_t *from, int64_t *repeat)
{
  int64_t dims[TN_MAX_RANK], own[TN_MAX_RANK], wide[TN_MAX_RANK];
  const uint32_t joined = tn_rewrite_producer(rw, value, NULL);
  const int32_t rank = tn_rewrite_shape(rw, value, dims), at = dimension + 1;
  if (joined == TN_NO_NODE || rank < 1 || !tn_rewrite_is(rw, joined, "Reshape")) return false;
  const uint32_t larger = in(rw, joined, 0), node = tn_rewrite_producer(rw, larger, NULL);
  if (node == TN_NO_NODE || tn_rewrite_n_uses(rw, larger) != 1 || tn_rewrite_shape(rw, larger, wide) != rank + 1)
    return false;
  *from = before_new_axis(rw, in(rw, node, 0), at);
  if (*from == TN_NO_NODE || tn_rewrite_shape(rw, *from, own) != rank) return false;
  if (own[dimension] < 1 || wide[at] < 1) return false;
  if (!only_repeats(rw, node, at, *from, rank + 1)) return false;
  sizes s;
  int32_t open = 0;
  if (!read_sizes(rw, in(rw, joined, 1), 0, &s) || s.n != rank) return false;
  for (int32_t d = 0; d < rank; d++) {
    const bool any = s.at[d].of == TN_NO_NODE && s.at[d].number == -1;
    open += any;
    if (!any && d != dimension && !is_kept(rw, &s.at[d], *from, d)) return false;
  }
  *repeat = wide[at];
  if (open > 1) return false;
  const size *joint = &s.at[dimension]; /* -1: what the other sizes leave */
  int64_t all;
  if (joint->of != TN_NO_NODE || __builtin_mul_overflow(own[dimension], *repeat, &all)) return false;
  return joint->number == -1 || joint->number == all;
}
