/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph says about the shapes of variables behind handles. A value of any shape may be assigned to a variable,
 * so the shape that its handle declares is known to hold only if each assignment in the graph has a value of that
 * shape. */
#include <core/base/text.h>
#include <ops/kernel/shapes.h>
#include <ops/state/variable/variable.h>
#include <string.h>

#define MOST_CONSUMERS 256 /* of a handle; one with more is not examined */
#define MOST_STEPS 12      /* operations in a row from an assigned value to the constants that give its shape */

static bool is_op(const tn_operation *op, const char *type) { return strcmp(tn_operation_type(op), type) == 0; }

static uint32_t traits_of(const tn_operation *op)
{
  const tn_op_schema *schema = tn_operation_schema(op);
  return schema == NULL ? 0 : tn_op_schema_traits(schema);
}

/* ---- shapes of assigned values ---- */

static bool shape_of(tn_output value, int steps, tn__shape *out);

static bool constant_shape(const tn_operation *op, tn__shape *out)
{
  return tn_operation_attr_tensor_shape(op, "value", NULL, out->dims, &out->rank, NULL) == TN_OK && out->rank >= 0;
}

/* The shape that the elements of a small constant give. */
static bool sizes_of(tn_output sizes, tn__shape *out)
{
  tn_tensor *t = NULL;
  if (sizes.op == NULL || !is_op(sizes.op, "Const") ||
      tn_operation_attr_tensor(sizes.op, "value", &t, NULL) != TN_OK)
    return false;
  const int64_t n = tn_tensor_elements(t);
  const void *data = tn_tensor_data(t);
  bool known = tn_tensor_rank(t) == 1 && n <= TN_MAX_RANK && (n == 0 || data != NULL) &&
               (tn_tensor_dtype(t) == TN_INT32 || tn_tensor_dtype(t) == TN_INT64);
  out->rank = 0;
  for (int64_t i = 0; known && i < n; i++) {
    int64_t size = tn_tensor_dtype(t) == TN_INT32 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
    known = size >= 0 && tn__shape_append(out, size);
  }
  return known;
}

/* Ops whose first input is the shape of the output. */
static bool makes_shape(const tn_operation *op)
{
  static const char *const types[] = { "Fill", "RandomUniform", "RandomStandardNormal", "TruncatedNormal",
                                       "StatelessRandomUniform", "StatelessRandomUniformV2", "StatelessRandomNormal",
                                       "StatelessRandomNormalV2", "StatelessTruncatedNormal",
                                       "StatelessTruncatedNormalV2" };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (is_op(op, types[i])) return true;
  return false;
}

static bool elementwise_shape(const tn_operation *op, int steps, tn__shape *out)
{
  tn__shape one, both;
  out->rank = 0;
  for (size_t i = 0; i < tn_operation_n_inputs(op); i++) {
    if (!shape_of(tn_operation_input(op, i), steps, &one) ||
        !tn__broadcast_shapes(out->dims, out->rank, one.dims, one.rank, &both))
      return false;
    *out = both;
  }
  return true;
}

/* A value that is read from a variable has the shape that its handle declares: if it has not, the assignment that made
 * it so is found when that handle is examined. */
static bool shape_of(tn_output value, int steps, tn__shape *out)
{
  const tn_operation *op = value.op;
  const int64_t *dims;
  if (op == NULL || value.index != 0 || steps == 0) return false;
  if (is_op(op, "Const")) return constant_shape(op, out);
  if (makes_shape(op)) return sizes_of(tn_operation_input(op, 0), out);
  if (is_op(op, "ReadVariableOp")) {
    int32_t rank = tn__handle_declared(op, 0, &dims);
    if (rank >= 0) tn__shape_set(out, dims, rank);
    return rank >= 0;
  }
  if (traits_of(op) & TN_TRAIT_IDENTITY) return shape_of(tn_operation_input(op, 0), steps - 1, out);
  return traits_of(op) & TN_TRAIT_ELEMENTWISE ? elementwise_shape(op, steps - 1, out) : false;
}

/* ---- handles ---- */

/* True if the op that is given a handle leaves the variable's shape as it is. One that may pass the handle on does not
 * count. */
static bool keeps_shape(const tn_operation *op, const int64_t *dims, int32_t rank)
{
  tn__shape value;
  if (tn_operation_schema(op) == NULL || (traits_of(op) & TN_TRAIT_FUNCTION_CALL)) return false;
  for (size_t i = 0; i < tn_operation_n_outputs(op); i++) {
    tn_dtype dtype = tn_operation_output_dtype(op, i);
    if (dtype == TN_RESOURCE || dtype == TN_VARIANT) return false;
  }
  if (!is_op(op, "AssignVariableOp")) return true;
  if (!shape_of(tn_operation_input(op, 1), MOST_STEPS, &value) || value.rank != rank) return false;
  return rank == 0 || memcmp(value.dims, dims, (size_t)rank * sizeof *dims) == 0;
}

static bool all_keep_shape(tn_output handle, const int64_t *dims, int32_t rank)
{
  tn_consumer consumers[MOST_CONSUMERS];
  size_t n;
  if (tn_output_consumers(handle, consumers, MOST_CONSUMERS, &n, NULL) != TN_OK || n > MOST_CONSUMERS) return false;
  for (size_t i = 0; i < n; i++)
    if (!keeps_shape(consumers[i].op, dims, rank)) return false;
  return true;
}

int32_t tn__handle_declared(const tn_operation *op, size_t i, const int64_t **dims)
{
  int32_t rank = -1;
  tn_output from = tn_operation_input(op, i);
  *dims = NULL;
  if (from.op == NULL || !is_op(from.op, "VarHandleOp") ||
      tn_operation_attr_shape(from.op, "shape", dims, &rank, NULL) != TN_OK)
    return -1;
  for (int32_t d = 0; d < rank; d++)
    if ((*dims)[d] < 0) return -1;
  return rank;
}

int32_t tn__handle_shape(const tn_operation *op, size_t i, const int64_t **dims)
{
  int32_t rank = tn__handle_declared(op, i, dims);
  return rank >= 0 && all_keep_shape(tn_operation_input(op, i), *dims, rank) ? rank : -1;
}

tn_status tn__variable_check_shape(const tn__variable *v, const tn_tensor *value, const int64_t *dims, int32_t rank,
                                   tn_error *err)
{
  char x[160], y[160];
  const int64_t *found = tn_tensor_dims(value);
  bool fits = rank < 0 || tn_tensor_rank(value) == rank;
  for (int32_t d = 0; fits && d < rank; d++) fits = dims[d] == found[d];
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "variable '%s' has shape %s, which this graph does not assign: the handle declares %s", v->name,
                      tn__format_shape(x, sizeof x, found, tn_tensor_rank(value)),
                      tn__format_shape(y, sizeof y, dims, rank));
}
