/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: what has only constant inputs is computed once, here, by its own kernel, so results are the very bits of
 * a step. A node whose kernel refuses stays: running it says why. */
#include <core/plan/passes.h>

/* Of outputs that are larger than all inputs together: a Fill of a gigabyte is better made when it is needed. */
#define MAX_BYTES (UINT64_C(64) << 20)

static bool is_plain(tn_dtype dtype) { return dtype == TN_STRING || !tn__dtype_is_managed(dtype); }

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
  return true;
}

/* False when the kernel refuses, or there is no memory for it now: then a step will see. */
static bool evaluate(const tn__ir *ir, const tn__ir_node *node, tn_tensor **inputs, tn_tensor **outputs)
{
  tn_error why = TN_ERROR_INIT;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    inputs[i] = ir->values[tn__ir_input(ir, node, i)].constant;
    bytes += inputs[i]->bytes;
  }
  tn_status st = ir->spec->evaluate(node->op, inputs, node->n_inputs, outputs, node->n_outputs,
                                    bytes > MAX_BYTES ? bytes : MAX_BYTES, &why);
  tn_error_clear(&why);
  return st == TN_OK;
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
  tn_status st = TN_OK;
  if (evaluate(ir, &ir->nodes[id], tensors, tensors + n_in)) {
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
