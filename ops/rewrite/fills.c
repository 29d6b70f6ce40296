/* SPDX-License-Identifier: Apache-2.0 */
/* A rewrite of the pass "algebra":
 *
 *   select_number   Select(mask, x, y), where all elements of y are one known number and its shape is that of x, reads
 *                   the number instead; so it does with x and y exchanged. Masks of attention are written with
 *                   ones_like(scores) * -1e9, which reads the scores once more.
 *
 * The elements of y are computed in its own type, so the bits stay the same. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/rewrite/same_shapes.h>
#include <string.h>
#include <tenon/rewrite.h>

#define MOST_DEPTH 4

static uint32_t in(const tn_rewriter *rw, uint32_t node, uint32_t i) { return tn_rewrite_input(rw, node, i); }

/* The element of a constant of one element that has no more dimensions than x. */
static bool read_number(const tn_rewriter *rw, uint32_t value, uint32_t x, double *out)
{
  int64_t dims[TN_MAX_RANK];
  const tn_tensor *t = tn_rewrite_is_constant(rw, value) ? tn_rewrite_constant(rw, value) : NULL;
  if (t == NULL || tn_tensor_elements(t) != 1 || tn_tensor_data(t) == NULL) return false;
  if (tn_tensor_rank(t) > tn_rewrite_shape(rw, x, dims)) return false;
  if (tn_tensor_dtype(t) == TN_DOUBLE) *out = *(const double *)tn_tensor_data(t);
  else if (tn_tensor_dtype(t) == TN_FLOAT) *out = (double)*(const float *)tn_tensor_data(t);
  else return false;
  return true;
}

/* A sum or product of two floats, or doubles, rounded as their kernels do. */
static double combine(bool times, bool wide, double a, double b)
{
  if (wide) return times ? a * b : a + b;
  return (double)(times ? (float)a * (float)b : (float)a + (float)b);
}

/* True if a value has the shape of x, and all its elements are *out. */
static bool is_filled(const tn_rewriter *rw, uint32_t value, uint32_t x, int depth, double *out)
{
  const uint32_t node = tn_rewrite_producer(rw, value, NULL);
  double a, b;
  if (node == TN_NO_NODE || depth > MOST_DEPTH) return false;
  const bool ones = tn_rewrite_is(rw, node, "OnesLike");
  if (ones || tn_rewrite_is(rw, node, "ZerosLike")) {
    *out = ones ? 1 : 0;
    return in(rw, node, 0) == x;
  }
  if (tn_rewrite_is(rw, node, "Fill")) {
    const uint32_t shape = tn_rewrite_producer(rw, in(rw, node, 0), NULL);
    return tn_rewrite_is(rw, shape, "Shape") && tn__have_one_shape(rw, in(rw, shape, 0), x) &&
           read_number(rw, in(rw, node, 1), x, out);
  }
  const bool times = tn_rewrite_is(rw, node, "Mul");
  if (!times && !tn_rewrite_is(rw, node, "AddV2") && !tn_rewrite_is(rw, node, "Add")) return false;
  for (uint32_t side = 0; side < 2; side++) {
    if (!read_number(rw, in(rw, node, 1 - side), x, &b) || !is_filled(rw, in(rw, node, side), x, depth + 1, &a))
      continue;
    *out = combine(times, tn_rewrite_dtype(rw, value) == TN_DOUBLE, a, b);
    return true;
  }
  return false;
}

/* Whether two shapes are the same as far as they are known. */
static bool same_shape(const tn_rewriter *rw, uint32_t a, uint32_t b)
{
  int64_t x[TN_MAX_RANK], y[TN_MAX_RANK];
  const int32_t rank = tn_rewrite_shape(rw, a, x);
  if (rank < 0 || tn_rewrite_shape(rw, b, y) != rank) return false;
  for (int32_t d = 0; d < rank; d++)
    if (x[d] != y[d]) return false;
  return true;
}

static tn_status add_number(tn_rewriter *rw, double number, tn_dtype dtype, uint32_t *value, tn_error *err)
{
  tn_tensor *t;
  tn_status st = tn_tensor_create(dtype, NULL, 0, &t, err);
  if (st != TN_OK) return st;
  if (dtype == TN_DOUBLE) *(double *)tn_tensor_data(t) = number;
  else *(float *)tn_tensor_data(t) = (float)number;
  st = tn_rewrite_add_constant(rw, t, value, err);
  tn_tensor_unref(t);
  return st;
}

static tn_status select_number(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  uint32_t inputs[3] = { in(rw, node, 0), in(rw, node, 1), in(rw, node, 2) }, made;
  const tn_dtype dtype = tn_rewrite_dtype(rw, inputs[1]);
  if (dtype != TN_FLOAT && dtype != TN_DOUBLE) return TN_OK;
  for (uint32_t side = 1; side <= 2; side++) {
    const uint32_t x = inputs[3 - side];
    double number;
    if (!is_filled(rw, inputs[side], x, 0, &number)) continue;
    if (tn_rewrite_is(rw, node, "Select") && !same_shape(rw, inputs[0], x)) return TN_OK; /* it may fail */
    tn_status st = add_number(rw, number, dtype, &inputs[side], err);
    if (st != TN_OK) return st;
    tn_operation_builder *b = tn_rewrite_begin(rw, "SelectV2", node);
    if (b == NULL) return tn__no_memory(err, "plan", 0);
    tn_operation_set_type(b, "T", dtype);
    st = tn_rewrite_finish(rw, b, inputs, 3, TN_NO_LIST, &made, err);
    if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
    return st;
  }
  return TN_OK;
}

#define REWRITE(type) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "algebra", .name = "select_number", .op = type, .apply = select_number }

static const tn_rewrite_def rewrites[] = { REWRITE("Select"), REWRITE("SelectV2") };

TN_REWRITE_FAMILY(fills)
