/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether kernel plugins are loaded before a plan's first step. Loading such a library and creating its first
 * kernels takes 10 to 20 milliseconds, so for most plans they are loaded only after steps have used enough time
 * (plan/kernels.c). The estimate counts the scalar products of contractions; unknown dimensions count as 1. */
#include <core/compile/compile.h>
#include <core/compile/ir/ir.h>

/* Minimum products of a step: they take 40 milliseconds in plain C, of which the first step may save a third. */
#define MIN_PRODUCTS 2e9

/* Number of elements of a value, and its last dimension; unknown ones are 1. */
static double elements(const tn__ir *ir, uint32_t value, int64_t *last)
{
  const tn__ir_value *v = &ir->values[tn__ir_value_of(ir, value)];
  int64_t dims[TN_MAX_RANK];
  int32_t rank = -1;
  *last = 1;
  if (v->constant != NULL) {
    rank = v->constant->rank;
    for (int32_t d = 0; d < rank; d++) dims[d] = v->constant->dims[d];
  } else if (v->output.op == NULL || tn_output_shape(v->output, dims, TN_MAX_RANK, &rank, NULL) != TN_OK) {
    rank = -1;
  }
  double n = 1;
  for (int32_t d = 0; d < rank; d++) n *= dims[d] < 0 ? 1 : (double)dims[d];
  if (rank > 0 && dims[rank - 1] > 0) *last = dims[rank - 1];
  return n;
}

/* Products of a contraction: each weight is multiplied once for each position of the output outside the last dimension,
 * which weights and output share (a depthwise filter has it split in two). If the output's last dimension is unknown,
 * that of the weights takes its place. */
static double products(const tn__ir *ir, const tn__ir_node *node)
{
  int64_t last, out_last;
  double weights = elements(ir, tn__ir_input(ir, node, 1), &last), out = elements(ir, node->first_value, &out_last);
  return out * weights / (double)(out_last > 1 ? out_last : last);
}

static bool is_worth_it(const tn__ir *ir)
{
  double sum = 0;
  if (ir->spec->want_always) return true;
  for (uint32_t id = ir->first; id != TN__NONE && sum < MIN_PRODUCTS; id = ir->nodes[id].next) {
    const tn__ir_node *node = &ir->nodes[id];
    if ((node->traits & TN_TRAIT_CONTRACTION) && node->n_inputs >= 2 && node->n_outputs >= 1) sum += products(ir, node);
  }
  return sum >= MIN_PRODUCTS;
}

tn_status tn__ir_want_kernels(tn__ir *ir)
{
  if (ir->spec->want_kernels == NULL || ir->n_live == 0 || !is_worth_it(ir)) return TN_OK;
  const char **ops = tn__alloc_array(ir->n_live, sizeof *ops);
  tn__map seen;
  size_t n = 0;
  tn_status st = ops == NULL ? tn__ir_no_memory(ir) : TN_OK;
  tn__map_init(&seen);
  for (uint32_t id = ir->first; st == TN_OK && id != TN__NONE; id = ir->nodes[id].next) {
    const char *op = tn_operation_type(ir->nodes[id].op);
    if (tn__map_get(&seen, op, __builtin_strlen(op)) != NULL) continue;
    if (!tn__map_put(&seen, op, __builtin_strlen(op), (void *)op, NULL)) st = tn__ir_no_memory(ir);
    ops[n++] = op;
  }
  if (st == TN_OK) ir->spec->want_kernels(ops, n, TN__HOST_DEVICE);
  ir->asked = true;
  tn__map_fini(&seen);
  tn__free(ops, ir->n_live * sizeof *ops);
  return st;
}
