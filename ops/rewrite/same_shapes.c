/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites of the pass "algebra" for values whose shape is that of another one, whatever it will be. Gradients reduce
 * to the shape of each operand, since it may have been broadcast, and ask for the shapes of all values of the forward
 * pass.
 *
 *   shape_of         the shape of an elementwise result is read from an operand that has it, so that the result is
 *                    stored only if its elements are read
 *   no_broadcasting  BroadcastGradientArgs has no axes for an operand with the shape of the result
 *   no_axes          a reduction over no axes is its operand
 *   same_reshape     a value that is reshaped to its own shape stays as it is
 *
 * Sums of one element, which BroadcastGradientArgs asks for where both operands have a dimension of 1, are left out. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <stdbool.h>
#include <tenon/rewrite.h>

#define MOST_STEPS 64 /* from a value to one that has its shape */
#define MOST_LEVELS 3 /* of such searches for operands */

static uint32_t in(const tn_rewriter *rw, uint32_t node, uint32_t i) { return tn_rewrite_input(rw, node, i); }

static bool is_any(const tn_rewriter *rw, uint32_t node, const char *const *ops, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (tn_rewrite_is(rw, node, ops[i])) return true;
  return false;
}
#define IS_ANY(rw, node, ...) \
  is_any(rw, node, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* ---- values of one shape ---- */

/* True if shape `by`, where it broadcasts to the other one, leaves that as it is, as far as dimensions are known. */
static bool broadcasts_to(const int64_t *by, int32_t n, const int64_t *dims, int32_t rank)
{
  if (n < 0 || (n > 0 && rank < n)) return false;
  for (int32_t d = 0; d < n; d++)
    if (by[d] != 1 && (by[d] < 0 || by[d] != dims[rank - n + d])) return false;
  return true;
}

/* The same for the shapes of values. */
static bool keeps_shape(const tn_rewriter *rw, uint32_t x, uint32_t by)
{
  int64_t dims[TN_MAX_RANK], own[TN_MAX_RANK];
  const int32_t rank = tn_rewrite_shape(rw, x, dims);
  return broadcasts_to(own, tn_rewrite_shape(rw, by, own), dims, rank);
}

static uint32_t root_of(const tn_rewriter *rw, uint32_t value, int levels);

/* The operand of a node with two that has the shape of the result; otherwise TN_NO_NODE. */
static uint32_t larger_of(const tn_rewriter *rw, uint32_t node, int levels)
{
  const uint32_t x = in(rw, node, 0), y = in(rw, node, 1);
  if (x == y || keeps_shape(rw, x, y)) return x;
  if (keeps_shape(rw, y, x)) return y;
  return levels > 0 && root_of(rw, x, levels - 1) == root_of(rw, y, levels - 1) ? x : TN_NO_NODE;
}

static bool has_no_axes(const tn_rewriter *rw, uint32_t node)
{
  const uint32_t axes = in(rw, node, 1);
  int64_t dims[TN_MAX_RANK];
  return tn_rewrite_is_constant(rw, axes) && tn_rewrite_shape(rw, axes, dims) == 1 && dims[0] == 0;
}

/* A value that has the shape of this one and is computed earlier; otherwise TN_NO_NODE. */
static uint32_t before(const tn_rewriter *rw, uint32_t value, int levels)
{
  uint32_t output, node = tn_rewrite_producer(rw, value, &output);
  if (node == TN_NO_NODE || output != 0) return TN_NO_NODE;
  const tn_op_schema *schema = tn_operation_schema(tn_rewrite_operation(rw, node));
  if (IS_ANY(rw, node, "AddN", "BiasAdd", "BiasAddV1", "Softmax", "LogSoftmax", "FusedBatchNormV3",
             "FusedBatchNormGradV3"))
    return in(rw, node, 0);
  if (tn_rewrite_is(rw, node, "Reshape")) {
    const uint32_t shape = tn_rewrite_producer(rw, in(rw, node, 1), NULL);
    return tn_rewrite_is(rw, shape, "Shape") ? in(rw, shape, 0) : TN_NO_NODE;
  }
  if (IS_ANY(rw, node, "Sum", "Mean", "Max", "Min", "Prod"))
    return has_no_axes(rw, node) ? in(rw, node, 0) : TN_NO_NODE;
  if (schema == NULL || !(tn_op_schema_traits(schema) & TN_TRAIT_ELEMENTWISE)) return TN_NO_NODE;
  const uint32_t n = tn_rewrite_n_inputs(rw, node);
  if (n == 1) return in(rw, node, 0);
  return n == 2 ? larger_of(rw, node, levels) : TN_NO_NODE;
}

/* The earliest value that is found to have the shape of this one. */
static uint32_t root_of(const tn_rewriter *rw, uint32_t value, int levels)
{
  for (int i = 0; i < MOST_STEPS; i++) {
    const uint32_t next = before(rw, value, levels);
    if (next == TN_NO_NODE) break;
    value = next;
  }
  return value;
}

static bool same_shape(const tn_rewriter *rw, uint32_t x, uint32_t y)
{
  return x == y || root_of(rw, x, MOST_LEVELS) == root_of(rw, y, MOST_LEVELS);
}

/* ---- rewrites ---- */

static tn_status move_shape(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  uint32_t value = root_of(rw, in(rw, node, 0), MOST_LEVELS), made;
  if (value == in(rw, node, 0)) return TN_OK;
  tn_operation_builder *b = tn_rewrite_begin(rw, "Shape", node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, "out_type");
  tn_operation_set_type(b, "T", tn_rewrite_dtype(rw, value));
  tn_status st = tn_rewrite_finish(rw, b, &value, 1, TN_NO_LIST, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

/* Output k becomes an empty list. */
static tn_status drop_axes(tn_rewriter *rw, uint32_t node, uint32_t k, tn_error *err)
{
  const int64_t none = 0;
  tn_tensor *t;
  uint32_t value, old = tn_rewrite_output(rw, node, k);
  if (tn_rewrite_n_uses(rw, old) == 0) return TN_OK;
  tn_status st = tn_tensor_create(tn_rewrite_dtype(rw, old), &none, 1, &t, err);
  if (st != TN_OK) return st;
  st = tn_rewrite_add_constant(rw, t, &value, err);
  tn_tensor_unref(t);
  if (st == TN_OK) tn_rewrite_replace(rw, old, value);
  return st;
}

/* An operand of BroadcastGradientArgs: the shape of a value, or a constant. */
typedef struct operand {
  uint32_t value; /* or TN_NO_NODE */
  int64_t dims[TN_MAX_RANK];
  int32_t rank; /* -1: unknown */
} operand;

static bool read_operand(const tn_rewriter *rw, uint32_t shape, operand *o)
{
  const uint32_t node = tn_rewrite_producer(rw, shape, NULL);
  o->value = tn_rewrite_is(rw, node, "Shape") ? in(rw, node, 0) : TN_NO_NODE;
  o->rank = -1;
  if (o->value != TN_NO_NODE) {
    o->rank = tn_rewrite_shape(rw, o->value, o->dims);
    return true;
  }
  const tn_tensor *t = tn_rewrite_constant(rw, shape);
  if (t == NULL || tn_tensor_rank(t) != 1 || tn_tensor_elements(t) > TN_MAX_RANK) return false;
  if (tn_tensor_elements(t) > 0 && tn_tensor_data(t) == NULL) return false;
  if (tn_tensor_dtype(t) != TN_INT32 && tn_tensor_dtype(t) != TN_INT64) return false;
  o->rank = (int32_t)tn_tensor_elements(t);
  for (int32_t d = 0; d < o->rank; d++)
    o->dims[d] = tn_tensor_dtype(t) == TN_INT32 ? ((const int32_t *)tn_tensor_data(t))[d]
                                                : ((const int64_t *)tn_tensor_data(t))[d];
  return true;
}

static tn_status drop_broadcasting(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  operand of[2];
  tn_status st = TN_OK;
  for (uint32_t k = 0; k < 2; k++)
    if (!read_operand(rw, in(rw, node, k), &of[k])) return TN_OK;
  const bool same = of[0].value != TN_NO_NODE && of[1].value != TN_NO_NODE && same_shape(rw, of[0].value, of[1].value);
  for (uint32_t k = 0; k < 2 && st == TN_OK; k++)
    if (same || broadcasts_to(of[1 - k].dims, of[1 - k].rank, of[k].dims, of[k].rank)) st = drop_axes(rw, node, k, err);
  return st;
}

static tn_status drop_reduction(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  if (has_no_axes(rw, node)) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), in(rw, node, 0));
  return TN_OK;
}

/* True if x, where it has as many elements as y, has the shape of y: all dimensions but one are known to be equal, and
 * x is computed of a value of that shape and another operand. Gradients are: the incoming one times another operand. */
static bool same_if_as_many(const tn_rewriter *rw, uint32_t x, uint32_t y)
{
  int64_t dims[TN_MAX_RANK], own[TN_MAX_RANK];
  const int32_t rank = tn_rewrite_shape(rw, x, dims);
  int32_t unknown = 0;
  if (rank < 0 || tn_rewrite_shape(rw, y, own) != rank) return false;
  for (int32_t d = 0; d < rank; d++) {
    unknown += dims[d] < 0 || own[d] < 0;
    if (dims[d] >= 0 && own[d] >= 0 && (dims[d] != own[d] || dims[d] == 0)) return false;
  }
  const uint32_t node = tn_rewrite_producer(rw, root_of(rw, x, MOST_LEVELS), NULL), root = root_of(rw, y, MOST_LEVELS);
  if (unknown > 1 || node == TN_NO_NODE || !IS_ANY(rw, node, "Mul", "RealDiv", "AddV2", "Add", "Sub")) return false;
  return root_of(rw, in(rw, node, 0), MOST_LEVELS) == root || root_of(rw, in(rw, node, 1), MOST_LEVELS) == root;
}

static tn_status drop_reshape(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  const uint32_t shape = tn_rewrite_producer(rw, in(rw, node, 1), NULL), x = in(rw, node, 0);
  if (tn_rewrite_is(rw, shape, "Shape") &&
      (same_shape(rw, x, in(rw, shape, 0)) || same_if_as_many(rw, x, in(rw, shape, 0))))
    tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), in(rw, node, 0));
  return TN_OK;
}

#define REWRITE(title, type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "algebra", .name = title, .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("shape_of", "Shape", move_shape),
  REWRITE("no_broadcasting", "BroadcastGradientArgs", drop_broadcasting),
  REWRITE("no_axes", "Sum", drop_reduction),
  REWRITE("no_axes", "Mean", drop_reduction),
  REWRITE("no_axes", "Max", drop_reduction),
  REWRITE("no_axes", "Min", drop_reduction),
  REWRITE("no_axes", "Prod", drop_reduction),
  REWRITE("same_reshape", "Reshape", drop_reshape),
};

TN_REWRITE_FAMILY(same_shapes)
