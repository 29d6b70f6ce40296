/* SPDX-License-Identifier: Apache-2.0 */
/* The pass "weights": with the option `weights`, products of float by a constant matrix keep the constant in a shorter
 * type. A product of few rows takes as long as reading the constant from memory, so it is faster, too.
 *
 * Constants of less than MIN_BYTES stay float: they save little, and stay in the cache. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/epilogue.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#define MIN_BYTES (64 << 10)
#define MOST_INPUTS (2 + TN__EPILOGUE_STEPS)

/* True if a value is a constant float matrix that is worth it. */
static bool is_large_matrix(const tn_rewriter *rw, uint32_t value)
{
  int64_t dims[TN_MAX_RANK];
  if (!tn_rewrite_is_constant(rw, value) || tn_rewrite_dtype(rw, value) != TN_FLOAT) return false;
  if (tn_rewrite_shape(rw, value, dims) != 2 || dims[0] < 1 || dims[1] < 1) return false;
  return dims[0] >= MIN_BYTES / (int64_t)sizeof(float) / dims[1];
}

static tn_status reduce(tn_rewriter *rw, uint32_t node, const char *op, const char *attrs, tn_error *err)
{
  uint32_t inputs[MOST_INPUTS], n = tn_rewrite_n_inputs(rw, node), made;
  if (tn_rewrite_weights(rw) == TN_FLOAT || !tn_rewrite_cpu_only(rw) || n < 2 || n > MOST_INPUTS) return TN_OK;
  for (uint32_t i = 0; i < n; i++) inputs[i] = tn_rewrite_input(rw, node, i);
  if (tn_rewrite_dtype(rw, inputs[0]) != TN_FLOAT || !is_large_matrix(rw, inputs[1])) return TN_OK;
  if (tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0)) != TN_FLOAT) return TN_OK;
  tn_operation_builder *b = tn_rewrite_begin(rw, op, node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, attrs);
  tn_operation_set_type(b, "T", TN_FLOAT);
  tn_operation_set_type(b, "W", tn_rewrite_weights(rw));
  tn_operation_set_int(b, "num_args", (int64_t)n - 2);
  tn_status st = tn_rewrite_finish(rw, b, inputs, n, 2, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

static tn_status reduce_matmul(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  return reduce(rw, node, "_TnReducedMatMul", "transpose_a transpose_b fused_ops leakyrelu_alpha", err);
}

/* A transposed x of several matrices cannot be treated as one matrix, and the first version of the op has no broadcast
 * batches. */
static tn_status reduce_batch_matmul(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  int64_t dims[TN_MAX_RANK];
  bool one = tn_rewrite_is(rw, node, "BatchMatMul") || tn__attr_bool(tn_rewrite_operation(rw, node), "adj_x", false);
  if (one &&
      tn_rewrite_shape(rw, tn_rewrite_input(rw, node, 0), dims) != 2)
    return TN_OK;
  return reduce(rw, node, "_TnReducedBatchMatMul", "adj_x adj_y", err);
}

#define REWRITE(type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "weights", .name = "reduce_weights", .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("MatMul", reduce_matmul),
  REWRITE("_TnMatMul", reduce_matmul),
  REWRITE("BatchMatMul", reduce_batch_matmul),
  REWRITE("BatchMatMulV2", reduce_batch_matmul),
  REWRITE("BatchMatMulV3", reduce_batch_matmul),
};

TN_REWRITE_FAMILY(reduce_weights)
