/* SPDX-License-Identifier: Apache-2.0 */
/* The pass "norm": e / sum(e) with e = exp(x - max(x)), along the last dimension, becomes one Softmax. The pass
 * "attention" then finds it.
 *
 * Without the maximum it stays as it is: large x would give infinities. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <tenon/rewrite.h>

static uint32_t in(const tn_rewriter *rw, uint32_t node, uint32_t i) { return tn_rewrite_input(rw, node, i); }

/* The node of this op that computes a value which `uses` nodes read; otherwise TN_NO_NODE. */
static uint32_t made_by(const tn_rewriter *rw, uint32_t value, const char *op, uint32_t uses)
{
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  return tn_rewrite_is(rw, node, op) && tn_rewrite_n_uses(rw, value) == uses ? node : TN_NO_NODE;
}

/* True if an operand is one constant integer: the last of `rank` dimensions. */
static bool is_last(const tn_rewriter *rw, uint32_t value, int32_t rank)
{
  const tn_tensor *t = tn_rewrite_is_constant(rw, value) ? tn_rewrite_constant(rw, value) : NULL;
  if (t == NULL || tn_tensor_elements(t) != 1 || tn_tensor_data(t) == NULL) return false;
  if (tn_tensor_dtype(t) != TN_INT32 && tn_tensor_dtype(t) != TN_INT64) return false;
  const int64_t axis = tn__tensor_int_at(t, 0);
  return axis == -1 || axis == rank - 1;
}

/* The value that a node reduces along its last dimension, which is kept or added again; otherwise TN_NO_NODE. */
static uint32_t reduced(const tn_rewriter *rw, uint32_t value, const char *op)
{
  int64_t dims[TN_MAX_RANK];
  const int32_t rank = tn_rewrite_shape(rw, value, dims);
  const uint32_t expand = made_by(rw, value, "ExpandDims", 1);
  if (rank < 1 || (expand != TN_NO_NODE && !is_last(rw, in(rw, expand, 1), rank))) return TN_NO_NODE;
  const uint32_t node = made_by(rw, expand != TN_NO_NODE ? in(rw, expand, 0) : value, op, 1);
  if (node == TN_NO_NODE || tn_rewrite_shape(rw, in(rw, node, 0), dims) != rank) return TN_NO_NODE;
  const bool keeps = tn__attr_bool(tn_rewrite_operation(rw, node), "keep_dims", false);
  return keeps == (expand == TN_NO_NODE) && is_last(rw, in(rw, node, 1), rank) ? in(rw, node, 0) : TN_NO_NODE;
}

/* The x of exp(x - max(x)); otherwise TN_NO_NODE. */
static uint32_t exponent_of(const tn_rewriter *rw, uint32_t e)
{
  const uint32_t exp = made_by(rw, e, "Exp", 2);
  const uint32_t less = exp == TN_NO_NODE ? TN_NO_NODE : made_by(rw, in(rw, exp, 0), "Sub", 1);
  if (less == TN_NO_NODE) return TN_NO_NODE;
  const uint32_t x = in(rw, less, 0);
  return reduced(rw, in(rw, less, 1), "Max") == x ? x : TN_NO_NODE;
}

static tn_status make(tn_rewriter *rw, uint32_t node, uint32_t e, tn_error *err)
{
  uint32_t x = exponent_of(rw, e), made;
  if (x == TN_NO_NODE) return TN_OK;
  const tn_dtype dtype = tn_rewrite_dtype(rw, x);
  if (dtype != TN_FLOAT && dtype != TN_DOUBLE && dtype != TN_HALF && dtype != TN_BFLOAT16) return TN_OK;
  tn_operation_builder *b = tn_rewrite_begin(rw, "Softmax", node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_operation_set_type(b, "T", dtype);
  tn_status st = tn_rewrite_finish(rw, b, &x, 1, TN_NO_LIST, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

/* e / sum */
static tn_status fuse_quotient(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  const uint32_t e = in(rw, node, 0);
  return reduced(rw, in(rw, node, 1), "Sum") == e ? make(rw, node, e, err) : TN_OK;
}

/* e * (1 / sum) */
static tn_status fuse_product(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  for (uint32_t side = 0; side < 2; side++) {
    const uint32_t inverse = made_by(rw, in(rw, node, 1 - side), "Reciprocal", 1), e = in(rw, node, side);
    if (inverse != TN_NO_NODE && reduced(rw, in(rw, inverse, 0), "Sum") == e) return make(rw, node, e, err);
  }
  return TN_OK;
}

#define REWRITE(type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "norm", .name = "softmax", .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("RealDiv", fuse_quotient),
  REWRITE("Div", fuse_quotient),
  REWRITE("Mul", fuse_product),
};

TN_REWRITE_FAMILY(fuse_softmax)
