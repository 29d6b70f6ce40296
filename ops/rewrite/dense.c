/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites of the passes "algebra" and "activation" for dense layers on sequences, which exporters write as a product
 * between two Reshapes:
 *
 *   before_reshape  a bias or an activation after the second Reshape moves before it, beside the product, which can
 *                   then compute it
 *
 * The bits stay the same. A Reshape that fails still fails, since it stays. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <string.h>
#include <tenon/rewrite.h>

/* True if a value is read once, by the node that is being moved. */
static bool is_read_once(const tn_rewriter *rw, uint32_t value) { return tn_rewrite_n_uses(rw, value) == 1; }

static bool is_channels_last(const tn_operation *op)
{
  const char *text;
  size_t size;
  return tn_operation_attr_string(op, "data_format", &text, &size, NULL) != TN_OK ||
         (size == 4 && memcmp(text, "NHWC", 4) == 0);
}

static bool is_sum(const tn_rewriter *rw, uint32_t node)
{
  return tn_rewrite_is(rw, node, "BiasAdd") || tn_rewrite_is(rw, node, "AddV2") || tn_rewrite_is(rw, node, "Add");
}

/* The size of the last dimension; -1 if it is unknown or there is none. */
static int64_t last_dim(const tn_rewriter *rw, uint32_t value)
{
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, value, dims);
  return rank < 1 ? -1 : dims[rank - 1];
}

/* True if the value is a vector of n numbers. */
static bool is_vector(const tn_rewriter *rw, uint32_t value, int64_t n)
{
  int64_t dims[TN_MAX_RANK];
  return tn_rewrite_shape(rw, value, dims) == 1 && dims[0] == n && n > 0;
}

/* True if the value is that of a MatMul, or of one with a bias. */
static bool is_dense(const tn_rewriter *rw, uint32_t value)
{
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  if (node != TN_NO_NODE && is_sum(rw, node) && is_vector(rw, tn_rewrite_input(rw, node, 1), last_dim(rw, value)) &&
      is_read_once(rw, tn_rewrite_input(rw, node, 0)))
    node = tn_rewrite_producer(rw, tn_rewrite_input(rw, node, 0), NULL);
  return node != TN_NO_NODE && tn_rewrite_is(rw, node, "MatMul");
}

/* The Reshape that computes a value, if what is done to each row may be done before it; otherwise TN_NO_NODE. */
static uint32_t reshape_of_dense(const tn_rewriter *rw, uint32_t value)
{
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  if (node == TN_NO_NODE || !tn_rewrite_is(rw, node, "Reshape") || !is_read_once(rw, value)) return TN_NO_NODE;
  uint32_t inner = tn_rewrite_input(rw, node, 0);
  return is_read_once(rw, inner) && is_dense(rw, inner) && last_dim(rw, inner) > 0 &&
                 last_dim(rw, inner) == last_dim(rw, value)
             ? node
             : TN_NO_NODE;
}

/* Makes the node anew on the input of the Reshape, and the Reshape on its result. The other input is a vector, or
 * TN_NO_NODE. */
static tn_status move_before(tn_rewriter *rw, uint32_t node, uint32_t reshape, uint32_t other, tn_error *err)
{
  uint32_t inputs[2] = { tn_rewrite_input(rw, reshape, 0), other }, made;
  tn_operation_builder *b = tn_rewrite_begin(rw, tn_operation_type(tn_rewrite_operation(rw, node)), node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, "T data_format alpha");
  tn_status st = tn_rewrite_finish(rw, b, inputs, other == TN_NO_NODE ? 1 : 2, TN_NO_LIST, &made, err);
  if (st != TN_OK) return st;
  inputs[0] = tn_rewrite_output(rw, made, 0);
  inputs[1] = tn_rewrite_input(rw, reshape, 1);
  b = tn_rewrite_begin(rw, "Reshape", reshape);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, reshape, "T Tshape");
  st = tn_rewrite_finish(rw, b, inputs, 2, TN_NO_LIST, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

static tn_status move_bias(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  bool either = !tn_rewrite_is(rw, node, "BiasAdd");
  if (!is_channels_last(tn_rewrite_operation(rw, node))) return TN_OK;
  for (uint32_t side = 0; side < (either ? 2u : 1u); side++) {
    uint32_t value = tn_rewrite_input(rw, node, side), other = tn_rewrite_input(rw, node, 1 - side);
    uint32_t reshape = reshape_of_dense(rw, value);
    if (reshape != TN_NO_NODE && is_vector(rw, other, last_dim(rw, value)))
      return move_before(rw, node, reshape, other, err);
  }
  return TN_OK;
}

static tn_status move_activation(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  uint32_t reshape = reshape_of_dense(rw, tn_rewrite_input(rw, node, 0));
  return reshape == TN_NO_NODE ? TN_OK : move_before(rw, node, reshape, TN_NO_NODE, err);
}

#define IN(in, type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = in, .name = "before_reshape", .op = type, .apply = fn }
#define REWRITE(type, fn) IN("algebra", type, fn)
#define CURVE(type) IN("activation", type, move_activation)

static const tn_rewrite_def rewrites[] = {
  REWRITE("BiasAdd", move_bias),
  REWRITE("Add", move_bias),
  REWRITE("AddV2", move_bias),
  REWRITE("Relu", move_activation),
  REWRITE("Relu6", move_activation),
  REWRITE("LeakyRelu", move_activation),
  REWRITE("Tanh", move_activation),
  REWRITE("Sigmoid", move_activation),
  CURVE("_TnSwish"),
  CURVE("_TnHardSigmoid"),
  CURVE("_TnHardSwish"),
  CURVE("_TnMish"),
  CURVE("_TnGelu"),
  CURVE("_TnGeluTanh"),
};

TN_REWRITE_FAMILY(dense)
