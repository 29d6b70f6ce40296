/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: what has only constant inputs is computed once, here, by its own kernel, so results are the very bits of
 * a step. A node whose kernel refuses stays: running it says why. */
#include <core/plan/passes.h>

#define MAX_BYTES (UINT64_C(64) << 20) /* of an output that is larger than all inputs together */

static bool is_plain(tn_dtype dtype) { return dtype == TN_STRING || !tn__dtype_is_managed(dtype); }

/* Whether the outputs are of a size that is worth keeping: a Fill of a gigabyte is better made when it is needed. */
static bool is_small(const tn__ir *ir, const tn__ir_node *node)
{
  uint64_t in = 0, out = 0;
  for (uint32_t i = 0; i < node->n_inputs; i++) in += ir->values[tn__ir_input(ir, node, i)].constant->bytes;
  for (uint32_t k = 0; k < node->n_outputs; k++) {
    int64_t dims[TN_MAX_RANK], count;
    int32_t rank;
    tn_output output = { (tn_operation *)node->op, (int32_t)k };
    if (tn_output_shape(output, dims, TN_MAX_RANK, &rank, NULL) != TN_OK) return false;
    bool known = rank >= 0;
    for (int32_t d = 0; known && d < rank; d++) known = dims[d] >= 0;
    if (!known) continue; /* nothing here makes much of little but ops whose shape is known from constants */
    if (tn_shape_elements(dims, rank, &count, NULL) != TN_OK || (uint64_t)count > MAX_BYTES) return false;
    out += (uint64_t)count * tn_dtype_size(ir->values[node->first_value + k].dtype);
  }
  return out <= in || out <= MAX_BYTES;
}

static bool may_fold(const tn__ir *ir, const tn__ir_node *node)
{
  if (!tn__ir_is_free(node) || node->n_inputs == 0 || node->n_outputs == 0) return false;
  if (node->traits & (TN_TRAIT_CONSTANT | TN_TRAIT_IDENTITY)) return false;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
    if (v->kind != TN_VALUE_CONSTANT || !is_plain(v->dtype) || (v->constant->data == NULL && v->constant->bytes > 0))
      return false;
  }
  for (uint32_t k = 0; k < node->n_outputs; k++)
    if (!is_plain(ir->values[node->first_value + k].dtype)) return false;
  return is_small(ir, node);
}

/* *outputs are n_outputs tensors, NULL when the kernel refused. */
static tn_status evaluate(tn__ir *ir, const tn__ir_node *node, tn_tensor **inputs, tn_tensor **outputs, bool *done)
{
  tn_error why = TN_ERROR_INIT;
  *done = false;
  for (uint32_t i = 0; i < node->n_inputs; i++) inputs[i] = ir->values[tn__ir_input(ir, node, i)].constant;
  tn_status st = ir->spec->evaluate(node->op, inputs, node->n_inputs, outputs, node->n_outputs, &why);
  *done = st == TN_OK;
  tn_error_clear(&why);
  return st == TN_RESOURCE_EXHAUSTED ? tn__ir_no_memory(ir) : TN_OK;
}

static tn_status keep_results(tn__ir *ir, uint32_t id, tn_tensor **outputs)
{
  tn_status st = TN_OK;
  uint32_t n = ir->nodes[id].n_outputs, first = ir->nodes[id].first_value, value;
  for (uint32_t k = 0; k < n; k++) {
    if (st == TN_OK) st = tn__ir_add_constant(ir, outputs[k], TN__NONE, ir->values[first + k].output, &value);
    if (st == TN_OK) tn__ir_replace(ir, first + k, value);
    tn_tensor_unref(outputs[k]);
  }
  if (st == TN_OK) tn__ir_remove(ir, id);
  return st;
}

static tn_status fold(tn__ir *ir, uint32_t id, size_t *changes)
{
  size_t n_in = ir->nodes[id].n_inputs, n = n_in + ir->nodes[id].n_outputs;
  tn_tensor **tensors = tn__alloc_array(n, sizeof *tensors);
  if (tensors == NULL) return tn__ir_no_memory(ir);
  bool done;
  tn_status st = evaluate(ir, &ir->nodes[id], tensors, tensors + n_in, &done);
  if (st == TN_OK && done) {
    st = keep_results(ir, id, tensors + n_in);
    ++*changes;
  }
  tn__free(tensors, n * sizeof *tensors);
  return st;
}

tn_status tn__pass_fold(tn__ir *ir, size_t *changes)
{
  tn_status st = TN_OK;
  for (uint32_t id = ir->first; st == TN_OK && id != TN__NONE && ir->spec->evaluate != NULL;) {
    uint32_t next = ir->nodes[id].next;
    if (may_fold(ir, &ir->nodes[id])) st = fold(ir, id, changes);
    id = next;
  }
  return st;
}
