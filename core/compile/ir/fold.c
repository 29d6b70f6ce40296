/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: a node with only constant inputs is computed once, here, by its own kernel, so the results are the
 * same bits as in a step. A node whose kernel refuses is left for the steps, which report the error. */
#include <core/compile/ir/ir.h>

/* Maximum bytes of outputs, unless the inputs have more: a Fill of a gigabyte is better computed when it is needed. */
#define MAX_BYTES (UINT64_C(64) << 20)
/* Maximum time for everything that a plan folds, in ns, as estimated by the kernels. The rest is left to the steps,
 * which may not need it, and have time limits. */
#define MAX_NS 2e9

/* Whether values of this dtype can be constants of a plan: strings and plain elements, no handles. */
static bool is_plain(tn_dtype dtype) { return dtype == TN_STRING || !tn__dtype_is_managed(dtype); }

/* Whether all inputs are constants with elements, and the node has no effect. */
static bool may_fold(const tn__ir *ir, const tn__ir_node *node)
{
  if (!tn__ir_is_free(node) || node->n_inputs == 0 || node->n_outputs == 0) return false;
  if (node->traits & (TN_TRAIT_CONSTANT | TN_TRAIT_IDENTITY)) return false;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
    if (v->kind != TN_VALUE_CONSTANT || !is_plain(v->dtype)) return false;
    if (v->recipe == NULL && v->constant->data == NULL && v->constant->bytes > 0) return false;
    if (!tn__ir_is_bare_constant(ir, v)) return false;
  }
  for (uint32_t k = 0; k < node->n_outputs; k++)
    if (!is_plain(ir->values[node->first_value + k].dtype)) return false;
  return true;
}

/* Runs the node's kernel. outputs are owned references. False if the kernel refuses or memory is exhausted: then the
 * node is left to the steps. */
static bool evaluate(tn__ir *ir, const tn__ir_node *node, tn_tensor **inputs, tn_tensor **outputs)
{
  tn_error why = TN_ERROR_INIT;
  uint64_t bytes = 0;
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < node->n_inputs; i++) {
    st = tn__ir_elements(ir, tn__ir_input(ir, node, i), &inputs[i], &why);
    if (st == TN_OK) bytes += inputs[i]->bytes;
  }
  tn__evaluate_limits limits = { bytes > MAX_BYTES ? bytes : MAX_BYTES, MAX_NS - ir->notes.folded_ns };
  if (st == TN_OK) st = ir->spec->evaluate(node->op, inputs, node->n_inputs, outputs, node->n_outputs, &limits, &why);
  ir->notes.folded_ns = MAX_NS - limits.ns;
  for (uint32_t i = 0; i < node->n_inputs; i++) tn_tensor_unref(inputs[i]);
  tn_error_clear(&why);
  return st == TN_OK;
}

/* The recipe by which output k of the node can be made again; NULL if it has none. */
static tn__recipe *recipe_of(const tn__ir *ir, const tn__ir_node *node, uint32_t k, const tn_tensor *output)
{
  if (output->bytes < TN__LARGE_CONSTANT) return NULL;
  tn__ingredient *inputs = tn__alloc_array(node->n_inputs, sizeof *inputs);
  if (inputs == NULL) return NULL;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
    inputs[i] = (tn__ingredient){ v->constant, v->recipe };
  }
  tn__recipe *r = tn__recipe_create(node->op, k, inputs, node->n_inputs, output);
  tn__free(inputs, node->n_inputs * sizeof *inputs);
  return r;
}

/* Replaces the output of a node by an outline with a recipe, to be computed when the elements are first read. *done is
 * false if it is small or its shape is unknown. */
static tn_status promise(tn__ir *ir, uint32_t id, bool *done)
{
  const tn__ir_node *node = &ir->nodes[id];
  int64_t dims[TN_MAX_RANK], count;
  size_t bytes;
  tn_dtype dtype = ir->values[node->first_value].dtype;
  int32_t rank = node->n_outputs == 1 ? tn__ir_shape(ir, node->first_value, dims) : -1;
  *done = false;
  if (rank < 0 || tn_shape_elements(dims, rank, &count, NULL) != TN_OK ||
      !tn__size_mul((size_t)count, tn_dtype_size(dtype), &bytes) || bytes < TN__LARGE_CONSTANT)
    return TN_OK;
  tn_tensor *outline;
  tn_status st = tn__tensor_outline(dtype, dims, rank, count, bytes, &outline, ir->err);
  if (st != TN_OK) return st;
  tn__recipe *recipe = recipe_of(ir, node, 0, outline);
  uint32_t value;
  if (recipe != NULL) {
    st = tn__ir_add_constant(ir, outline, TN__NONE, ir->values[node->first_value].output, &value);
    if (st == TN_OK) {
      ir->values[value].recipe = recipe;
      tn__ir_replace(ir, ir->nodes[id].first_value, value);
      tn__ir_remove(ir, id);
      *done = true;
    } else {
      tn__recipe_unref(recipe);
    }
  }
  tn_tensor_unref(outline);
  return st;
}

/* Replaces the node by its results, and releases `outputs`. */
static tn_status keep_results(tn__ir *ir, uint32_t id, tn_tensor **outputs)
{
  tn_status st = TN_OK;
  uint32_t n = ir->nodes[id].n_outputs, first = ir->nodes[id].first_value, value;
  for (uint32_t k = 0; k < n; k++) {
    if (st == TN_OK) st = tn__ir_add_constant(ir, outputs[k], TN__NONE, ir->values[first + k].output, &value);
    if (st == TN_OK) ir->values[value].recipe = recipe_of(ir, &ir->nodes[id], k, outputs[k]);
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
  if (st == TN_OK) st = tn__prepare_check(ir->nodes[id].op, ir->err);
  tn__free(tensors, n * sizeof *tensors);
  return st;
}

tn_status tn__ir_fold_node(tn__ir *ir, uint32_t id, size_t *changes)
{
  return ir->spec->evaluate != NULL && may_fold(ir, &ir->nodes[id]) ? fold(ir, id, changes) : TN_OK;
}

tn_status tn__ir_compute_node(tn__ir *ir, uint32_t id, size_t *changes)
{
  bool promised = false;
  tn_status st = ir->spec->evaluate != NULL && may_fold(ir, &ir->nodes[id]) ? promise(ir, id, &promised) : TN_OK;
  *changes += promised;
  return st == TN_OK && !promised ? tn__ir_fold_node(ir, id, changes) : st;
}
