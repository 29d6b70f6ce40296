/* SPDX-License-Identifier: Apache-2.0 */
/* What the node of a record costs: the default of tn_cost_ctx (<tenon/op.h>), or what the op's own function makes of
 * it. */
#include <core/session/metadata/metadata.h>

#define FEW 16 /* operands described on the stack */

/* Ops whose records have no cost: what they call or choose has records of its own. */
#define NO_COST                                                                                         \
  (TN_TRAIT_FUNCTION_CALL | TN_TRAIT_OWN_CALL | TN_TRAIT_LOOP_CALL | TN_TRAIT_SWITCH | TN_TRAIT_MERGE | \
   TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | TN_TRAIT_LOOP_COND | TN_TRAIT_NO_EFFECT)

static const tn__trace_output *describe(const tn__trace_output *o, tn_view *views, uint32_t n, double *bytes)
{
  for (uint32_t k = 0; k < n; k++, o = tn__trace_next_output(o)) {
    views[k] = (tn_view){ .dims = o->dims, .count = 1, .dtype = o->dtype, .rank = o->rank };
    for (int32_t d = 0; d < o->rank; d++) views[k].count *= o->dims[d];
    *bytes += (double)o->bytes;
  }
  return o;
}

static bool computes_with_floats(tn_dtype t)
{
  switch (t) {
  case TN_HALF:
  case TN_BFLOAT16:
  case TN_FLOAT:
  case TN_DOUBLE:
  case TN_COMPLEX64:
  case TN_COMPLEX128: return true;
  default: return false;
  }
}

/* Each weight is multiplied once for each position of the output outside the last dimension, which weights and output
 * share. */
static double products(const tn_cost_ctx *ctx)
{
  const tn_view *out = &ctx->outputs[0];
  double last = out->rank > 0 ? (double)out->dims[out->rank - 1] : 1;
  return last > 0 ? 2 * (double)out->count * (double)ctx->inputs[1].count / last : 0;
}

static double default_flops(const tn_cost_ctx *ctx, uint32_t traits)
{
  int64_t most = 0;
  bool floats = false;
  if (traits & TN_TRAIT_CONTRACTION && ctx->n_inputs >= 2 && ctx->n_outputs >= 1) return products(ctx);
  for (uint32_t k = 0; k < ctx->n_outputs; k++) {
    floats |= computes_with_floats(ctx->outputs[k].dtype);
    if (ctx->outputs[k].count > most) most = ctx->outputs[k].count;
  }
  for (uint32_t k = 0; k < ctx->n_inputs; k++)
    if (ctx->inputs[k].count > most) most = ctx->inputs[k].count;
  return floats ? (double)most : 0;
}

bool tn__metadata_cost(const tn__trace_record *from, tn__metadata_record *to)
{
  const tn_op_schema *schema = from->op->schema;
  uint32_t traits = from->op->traits;
  bool by_executor = from->kernel == NULL && from->device == NULL; /* a loop or a Merge */
  if (from->kind != TN_RECORD_NODE || from->status != TN_OK || by_executor || (traits & NO_COST)) return true;
  tn_view few[FEW], *views = few;
  size_t n = (size_t)from->n_outputs + from->n_inputs;
  if (n > FEW && (views = tn__alloc_array(n, sizeof *views)) == NULL) return false;
  tn_cost_ctx ctx = { .struct_size = sizeof ctx,
                      .op = from->op,
                      .outputs = views,
                      .inputs = views + from->n_outputs,
                      .n_outputs = from->n_outputs,
                      .n_inputs = from->n_inputs };
  const tn__trace_output *inputs = describe(tn__trace_first_output(from), views, from->n_outputs, &ctx.bytes);
  double in_bytes = 0;
  describe(inputs, views + from->n_outputs, from->n_inputs, &in_bytes);
  if (!(traits & TN_TRAIT_SHAPE_ONLY)) ctx.bytes += in_bytes;
  ctx.flops = default_flops(&ctx, traits);
  const tn_cost_def *def = schema == NULL ? NULL : atomic_load_explicit(&schema->cost, memory_order_acquire);
  if (def != NULL) def->cost(&ctx);
  to->flops = ctx.flops > 0 ? ctx.flops : 0;
  to->moved_bytes = ctx.bytes > 0 && ctx.bytes < 0x1p63 ? (uint64_t)ctx.bytes : 0;
  if (views != few) tn__free(views, n * sizeof *views);
  return true;
}
