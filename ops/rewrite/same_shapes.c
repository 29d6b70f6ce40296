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
#include <ops/rewrite/same_shapes.h>
#include <stdbool.h>
#include <tenon/rewrite.h>

#define MOST_STEPS 64 /* from a value to one that has its shape */
#define MOST_LEVELS 3 /* of such searches for operands */
#define MOST_VALUES 200 /* that all of them may examine */

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

/* A search for a value's shape. What it found when it has to end holds, too. */
typedef struct search {
  const tn_rewriter *rw;
  int left; /* values that may be examined */
} search;

static uint32_t root_of(search *s, uint32_t value, int levels);

static bool is_elementwise(const tn_rewriter *rw, uint32_t node)
{
  const tn_op_schema *schema = node == TN_NO_NODE ? NULL : tn_operation_schema(tn_rewrite_operation(rw, node));
  return schema != NULL && (tn_op_schema_traits(schema) & TN_TRAIT_ELEMENTWISE);
}

/* True if a value broadcasts to the shape of x: it has that shape, is a reduction of such a value that keeps the
 * reduced dimensions, or is computed of values that do. */
static bool fits_into(search *s, uint32_t value, uint32_t x, int levels)
{
  if (value == x || keeps_shape(s->rw, x, value)) return true;
  if (levels <= 0) return false;
  value = root_of(s, value, levels - 1);
  if (value == root_of(s, x, levels - 1)) return true;
  const uint32_t node = tn_rewrite_producer(s->rw, value, NULL);
  if (node == TN_NO_NODE) return false;
  if (IS_ANY(s->rw, node, "Sum", "Mean", "Max", "Min", "Prod"))
    return tn__attr_bool(tn_rewrite_operation(s->rw, node), "keep_dims", false) &&
           root_of(s, in(s->rw, node, 0), levels - 1) == root_of(s, x, levels - 1);
  return is_elementwise(s->rw, node) && tn_rewrite_n_inputs(s->rw, node) == 2 &&
         fits_into(s, in(s->rw, node, 0), x, levels - 1) && fits_into(s, in(s->rw, node, 1), x, levels - 1);
}

/* The operand of a node with two that has the shape of the result; otherwise TN_NO_NODE. */
static uint32_t larger_of(search *s, uint32_t node, int levels)
{
  const uint32_t x = in(s->rw, node, 0), y = in(s->rw, node, 1);
  if (fits_into(s, y, x, levels)) return x;
  return fits_into(s, x, y, levels) ? y : TN_NO_NODE;
}

static bool has_no_axes(const tn_rewriter *rw, uint32_t node)
{
  const uint32_t axes = in(rw, node, 1);
  int64_t dims[TN_MAX_RANK];
  return tn_rewrite_is_constant(rw, axes) && tn_rewrite_shape(rw, axes, dims) == 1 && dims[0] == 0;
}

/* A value that has the shape of this one and is computed earlier; otherwise TN_NO_NODE. */
static uint32_t before(search *s, uint32_t value, int levels)
{
  uint32_t output, node = tn_rewrite_producer(s->rw, value, &output);
  if (node == TN_NO_NODE || output != 0) return TN_NO_NODE;
  if (IS_ANY(s->rw, node, "AddN", "BiasAdd", "BiasAddV1", "Softmax", "LogSoftmax", "FusedBatchNormV3",
             "FusedBatchNormGradV3"))
    return in(s->rw, node, 0);
  if (tn_rewrite_is(s->rw, node, "Reshape")) {
    const uint32_t shape = tn_rewrite_producer(s->rw, in(s->rw, node, 1), NULL);
    return tn_rewrite_is(s->rw, shape, "Shape") ? in(s->rw, shape, 0) : TN_NO_NODE;
  }
  if (IS_ANY(s->rw, node, "Sum", "Mean", "Max", "Min", "Prod"))
    return has_no_axes(s->rw, node) ? in(s->rw, node, 0) : TN_NO_NODE;
  if (!is_elementwise(s->rw, node)) return TN_NO_NODE;
  const uint32_t n = tn_rewrite_n_inputs(s->rw, node);
  if (n == 1) return in(s->rw, node, 0);
  return n == 2 ? larger_of(s, node, levels) : TN_NO_NODE;
}

/* The earliest value that is found to have the shape of this one. */
static uint32_t root_of(search *s, uint32_t value, int levels)
{
  for (int i = 0; i < MOST_STEPS; i++) {
    const uint32_t next = --s->left < 0 ? TN_NO_NODE : before(s, value, levels);
    if (next == TN_NO_NODE) break;
    value = next;
  }
  return value;
}

static uint32_t find_root(const tn_rewriter *rw, uint32_t value)
{
  search s = { rw, MOST_VALUES };
  return root_of(&s, value, MOST_LEVELS);
}

bool tn__have_one_shape(const tn_rewriter *rw, uint32_t x, uint32_t y)
{
  return x == y || find_root(rw, x) == find_root(rw, y);
}

static bool is_part(const tn_rewriter *rw, uint32_t value, uint32_t x)
{
  search s = { rw, MOST_VALUES };
  return fits_into(&s, value, x, MOST_LEVELS);
}

/* ---- rewrites ---- */

/* A value that nothing else reads stays, so that its operation can still fail. */
static tn_status move_shape(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  if (tn_rewrite_n_uses(rw, in(rw, node, 0)) < 2) return TN_OK;
  uint32_t value = find_root(rw, in(rw, node, 0)), made;
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
  const bool both = of[0].value != TN_NO_NODE && of[1].value != TN_NO_NODE;
  for (uint32_t k = 0; k < 2 && st == TN_OK; k++)
    if (broadcasts_to(of[1 - k].dims, of[1 - k].rank, of[k].dims, of[k].rank) ||
        (both && is_part(rw, of[1 - k].value, of[k].value)))
      st = drop_axes(rw, node, k, err);
  return st;
}

static tn_status drop_reduction(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  if (has_no_axes(rw, node)) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), in(rw, node, 0));
  return TN_OK;
}

/* True if x, where it has as many elements as y, has the shape of y: all dimensions but one are known to be equal, and
 * x is computed of a value that broadcasts to y and another one. Gradients are: the incoming one times an operand. */
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
  const uint32_t node = tn_rewrite_producer(rw, find_root(rw, x), NULL);
  if (unknown > 1 || node == TN_NO_NODE || !IS_ANY(rw, node, "Mul", "RealDiv", "AddV2", "Add", "Sub")) return false;
  return is_part(rw, in(rw, node, 0), y) || is_part(rw, in(rw, node, 1), y);
}

static tn_status drop_reshape(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  const uint32_t shape = tn_rewrite_producer(rw, in(rw, node, 1), NULL), x = in(rw, node, 0);
  if (tn_rewrite_is(rw, shape, "Shape") &&
      (tn__have_one_shape(rw, x, in(rw, shape, 0)) || same_if_as_many(rw, x, in(rw, shape, 0))))
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
