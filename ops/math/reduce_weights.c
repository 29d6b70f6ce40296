/* SPDX-License-Identifier: Apache-2.0 */
/* The pass "weights": with the option `weights`, products of float by a constant matrix keep the constant in a shorter
 * type. A product of few rows takes as long as reading the constant from memory, so it is faster, too.
 *
 * Constants of less than MIN_BYTES stay float: they save little, and stay in the cache. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/epilogue.h>
#include <ops/kernel/shapes.h>
#include <ops/math/equation.h>
#include <string.h>

#define MIN_BYTES (64 << 10)
#define MOST_INPUTS (2 + TN__EPILOGUE_STEPS)

/* True if a value is a float constant that is worth it, of this rank if that is not 0. */
static bool is_large_constant(const tn_rewriter *rw, uint32_t value, int32_t rank)
{
  int64_t dims[TN_MAX_RANK], count;
  if (!tn_rewrite_is_constant(rw, value) || tn_rewrite_dtype(rw, value) != TN_FLOAT) return false;
  int32_t found = tn_rewrite_shape(rw, value, dims);
  if (found < 0 || (rank != 0 && found != rank) || tn_shape_elements(dims, found, &count, NULL) != TN_OK) return false;
  return count >= MIN_BYTES / (int64_t)sizeof(float);
}

/* True if the session wants it, the operands are float, and the second one is such a constant. */
static bool is_wanted(const tn_rewriter *rw, uint32_t node, int32_t rank)
{
  uint32_t n = tn_rewrite_n_inputs(rw, node);
  return tn_rewrite_weights(rw) != TN_FLOAT && tn_rewrite_cpu_only(rw) && n >= 2 && n <= MOST_INPUTS &&
         tn_rewrite_dtype(rw, tn_rewrite_input(rw, node, 0)) == TN_FLOAT &&
         tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0)) == TN_FLOAT &&
         is_large_constant(rw, tn_rewrite_input(rw, node, 1), rank);
}

static tn_status reduce(tn_rewriter *rw, uint32_t node, const char *op, const char *attrs, uint32_t list_first,
                        tn_error *err)
{
  uint32_t inputs[MOST_INPUTS], n = tn_rewrite_n_inputs(rw, node), made;
  for (uint32_t i = 0; i < n; i++) inputs[i] = tn_rewrite_input(rw, node, i);
  tn_operation_builder *b = tn_rewrite_begin(rw, op, node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, attrs);
  tn_operation_set_type(b, "T", TN_FLOAT);
  tn_operation_set_type(b, "W", tn_rewrite_weights(rw));
  if (list_first > 0) tn_operation_set_int(b, "num_args", (int64_t)(n - list_first));
  tn_status st = tn_rewrite_finish(rw, b, inputs, n, list_first, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

static tn_status reduce_matmul(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  static const char attrs[] = "transpose_a transpose_b fused_ops leakyrelu_alpha";
  return is_wanted(rw, node, 2) ? reduce(rw, node, "_TnReducedMatMul", attrs, 2, err) : TN_OK;
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
  return is_wanted(rw, node, 2) ? reduce(rw, node, "_TnReducedBatchMatMul", "adj_x adj_y", 2, err) : TN_OK;
}

static int32_t place_of(const tn__term *term, uint8_t label)
{
  for (int32_t i = 0; i < term->n; i++)
    if (term->labels[i] == label) return i;
  return -1;
}

static bool is_distinct(const tn__term *term)
{
  for (int32_t i = 0; i < term->n; i++)
    if (place_of(term, term->labels[i]) != i) return false;
  return true;
}

/* True if the second operand is a matrix whose rows or columns are the terms of the sums, and the others the last
 * dimensions of the output, in the same order: "abc,cde->abde", "...cd,ecd->...e". */
static bool is_dense(const tn__equation *e)
{
  const tn__term *x = &e->in[0], *w = &e->in[1], *y = &e->out;
  if (w->ellipsis >= 0 || !is_distinct(x) || !is_distinct(w) || !is_distinct(y)) return false;
  int32_t columns = 0, turns = 0, last = -1;
  for (int32_t i = 0; i < w->n; i++) columns += place_of(y, w->labels[i]) >= 0;
  for (int32_t i = 0, next = y->n - columns; i < w->n; i++) {
    const int32_t in_x = place_of(x, w->labels[i]), in_y = place_of(y, w->labels[i]);
    if ((in_x >= 0) == (in_y >= 0)) return false;
    if (in_y >= 0 && in_y != next++) return false;
    if (in_x >= 0 && in_x <= last) return false;
    if (in_x >= 0) last = in_x;
    if (i > 0 && (in_x >= 0) != (place_of(x, w->labels[i - 1]) >= 0)) turns++;
  }
  return turns == 1 && y->ellipsis <= y->n - columns;
}

static tn_status reduce_einsum(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  tn__equation e;
  if (!is_wanted(rw, node, 0) || tn__equation_read(tn_rewrite_operation(rw, node), &e, err) != TN_OK) return TN_OK;
  return is_dense(&e) ? reduce(rw, node, "_TnReducedEinsum", "equation N", 0, err) : TN_OK;
}

#define REWRITE(type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "weights", .name = "reduce_weights", .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("MatMul", reduce_matmul),
  REWRITE("_TnMatMul", reduce_matmul),
  REWRITE("BatchMatMul", reduce_batch_matmul),
  REWRITE("BatchMatMulV2", reduce_batch_matmul),
  REWRITE("BatchMatMulV3", reduce_batch_matmul),
  REWRITE("Einsum", reduce_einsum),
};

TN_REWRITE_FAMILY(reduce_weights)
