/* SPDX-License-Identifier: Apache-2.0 */
/* A rewrite of the pass "algebra":
 *
 *   size_of   one size of a product of matrices, or of such a product times a number, is read from the shape of the
 *             operand that has it. Masks ask for the sizes of scores; then nothing but the softmax reads the scores.
 *
 * Products of other shapes fail as before. */
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/rewrite.h>

static int32_t rank_of(const tn_rewriter *rw, uint32_t value)
{
  int64_t dims[TN_MAX_RANK];
  return tn_rewrite_shape(rw, value, dims);
}

static int64_t number(const tn_rewriter *rw, uint32_t node, const char *name)
{
  return tn__attr_int(tn_rewrite_operation(rw, node), name, 0);
}

static bool flag(const tn_rewriter *rw, uint32_t node, const char *name)
{
  return tn__attr_bool(tn_rewrite_operation(rw, node), name, false);
}

/* The only element of a constant vector. */
static bool element_of(const tn_rewriter *rw, uint32_t value, int64_t *out)
{
  const tn_tensor *t = tn_rewrite_constant(rw, value);
  if (t == NULL || tn_tensor_rank(t) != 1 || tn_tensor_elements(t) != 1 || tn_tensor_data(t) == NULL) return false;
  if (tn_tensor_dtype(t) == TN_INT32) *out = *(const int32_t *)tn_tensor_data(t);
  else if (tn_tensor_dtype(t) == TN_INT64) *out = *(const int64_t *)tn_tensor_data(t);
  else return false;
  return true;
}

/* The value that a node multiplies by, divides by or adds to a scalar; otherwise TN_NO_NODE. */
static uint32_t scaled(const tn_rewriter *rw, uint32_t node)
{
  static const char *const ops[] = { "Mul", "RealDiv", "AddV2", "Sub" };
  bool known = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) known |= tn_rewrite_is(rw, node, ops[i]);
  for (uint32_t side = 0; known && side < 2; side++)
    if (rank_of(rw, tn_rewrite_input(rw, node, 1 - side)) == 0) return tn_rewrite_input(rw, node, side);
  return TN_NO_NODE;
}

/* A softmax is to be read by its product alone, too. */
static bool is_softmax(const tn_rewriter *rw, uint32_t value)
{
  return tn_rewrite_is(rw, tn_rewrite_producer(rw, value, NULL), "Softmax");
}

/* Follows dimension *at of a value back to the operand of a product. */
static bool find_operand(const tn_rewriter *rw, uint32_t *value, int64_t *at)
{
  for (;;) {
    const uint32_t node = tn_rewrite_producer(rw, *value, NULL);
    const int32_t rank = rank_of(rw, *value);
    if (node == TN_NO_NODE || rank < 2) return false;
    if (tn_rewrite_is(rw, node, "BatchMatMulV2") || tn_rewrite_is(rw, node, "BatchMatMul")) {
      if (*at < rank - 2) return false;
      const bool column = *at == rank - 1, across = flag(rw, node, column ? "adj_y" : "adj_x");
      *value = tn_rewrite_input(rw, node, column);
      *at = rank_of(rw, *value) - (column != across ? 1 : 2);
      return *at >= 0 && !is_softmax(rw, *value);
    }
    const uint32_t before = scaled(rw, node);
    if (before == TN_NO_NODE || rank_of(rw, before) != rank) return false;
    *value = before;
  }
}

/* Adds the constant vector [n] of the type of another one. */
static tn_status add_vector(tn_rewriter *rw, int64_t n, tn_dtype dtype, uint32_t *value, tn_error *err)
{
  const int64_t one = 1;
  tn_tensor *t;
  tn_status st = tn_tensor_create(dtype, &one, 1, &t, err);
  if (st != TN_OK) return st;
  if (dtype == TN_INT64) *(int64_t *)tn_tensor_data(t) = n;
  else *(int32_t *)tn_tensor_data(t) = (int32_t)n;
  st = tn_rewrite_add_constant(rw, t, value, err);
  tn_tensor_unref(t);
  return st;
}

/* Takes element `at` of the shape of a value instead. */
static tn_status read_size(tn_rewriter *rw, uint32_t node, uint32_t shape, uint32_t value, int64_t at, tn_error *err)
{
  const tn_dtype index = tn_rewrite_dtype(rw, tn_rewrite_input(rw, node, 1));
  uint32_t inputs[4] = { TN_NO_NODE, TN_NO_NODE, TN_NO_NODE, tn_rewrite_input(rw, node, 3) }, made;
  tn_status st = add_vector(rw, at, index, &inputs[1], err);
  if (st == TN_OK) st = add_vector(rw, at + 1, index, &inputs[2], err);
  if (st != TN_OK) return st;
  tn_operation_builder *b = tn_rewrite_begin(rw, "Shape", shape);
  tn_rewrite_copy_attrs(rw, b, shape, "T out_type");
  st = tn_rewrite_finish(rw, b, &value, 1, TN_NO_LIST, &made, err);
  if (st != TN_OK) return st;
  inputs[0] = tn_rewrite_output(rw, made, 0);
  b = tn_rewrite_begin(rw, "StridedSlice", node);
  tn_rewrite_copy_attrs(rw, b, node, "T Index begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask");
  st = tn_rewrite_finish(rw, b, inputs, 4, TN_NO_LIST, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

static tn_status move_size(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  const uint32_t shape = tn_rewrite_producer(rw, tn_rewrite_input(rw, node, 0), NULL);
  int64_t at, stride;
  if (shape == TN_NO_NODE || !tn_rewrite_is(rw, shape, "Shape") || number(rw, node, "shrink_axis_mask") != 1)
    return TN_OK;
  if (number(rw, node, "begin_mask") != 0 || number(rw, node, "ellipsis_mask") != 0 ||
      number(rw, node, "new_axis_mask") != 0)
    return TN_OK;
  if (!element_of(rw, tn_rewrite_input(rw, node, 1), &at) || !element_of(rw, tn_rewrite_input(rw, node, 3), &stride))
    return TN_OK;
  uint32_t value = tn_rewrite_input(rw, shape, 0);
  const int32_t rank = rank_of(rw, value);
  if (at < 0) at += rank;
  if (stride != 1 || at < 0 || at >= rank || !find_operand(rw, &value, &at)) return TN_OK;
  return read_size(rw, node, shape, value, at, err);
}

static const tn_rewrite_def rewrites[] = {
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "algebra", .name = "size_of", .op = "StridedSlice",
    .apply = move_size },
};

TN_REWRITE_FAMILY(sizes)
