/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a variable through a reference: a node of the plan's own, with a kernel of its own. */
#include <core/plan/dereference.h>

#define TRAITS (TN_TRAIT_STATEFUL | TN_TRAIT_READS | TN_TRAIT_DYNAMIC)

tn_status tn__ir_add_dereference(tn__ir *ir, const uint32_t *inputs, uint32_t n, uint32_t *node)
{
  const tn_output from = ir->values[inputs[0]].output;
  bool late = false;
  tn_status st = tn__ir_add_special(ir, from.op, TRAITS, inputs, n, 1, node);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < n; i++) late |= tn__ir_is_late(ir, tn__ir_value_of(ir, inputs[i]));
  ir->nodes[*node].late = late; /* a read changes nothing */
  ir->nodes[*node].dereferences = true;
  tn__ir_value *v = &ir->values[ir->nodes[*node].first_value];
  v->output = from;
  v->dtype = tn__dtype_base(tn_operation_output_dtype(from.op, (size_t)from.index));
  return TN_OK;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_dynamic(ctx, 0, err); }

static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  tn_resource *r = in->count == 1 ? tn_handle_resource(*(tn_handle *const *)in->data) : NULL;
  const tn_resource_class *cls = r == NULL ? NULL : tn_resource_class_of(r);
  if (cls == NULL || !TN_HAS_FIELD(cls, tn_resource_class, read) || cls->read == NULL)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "a %s has no value that could be read",
                        cls == NULL ? "reference to nothing" : cls->name);
  tn_tensor *t;
  tn_status st = cls->read(tn_resource_object(r), &t, ctx->err);
  if (st != TN_OK) return st;
  st = tn_kernel_set_output(ctx, 0, t);
  tn_tensor_unref(t);
  return st;
}

const tn_kernel_def tn__dereference_kernel = {
  .struct_size = TN_KERNEL_DEF_SIZE, .op = "", .device = TN__HOST_DEVICE, .name = "read_reference", .rank = TN_RANK_C,
  .prepare = prepare, .compute = compute,
};
