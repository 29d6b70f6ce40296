/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the value of what a reference refers to. Graphs do not hold this op: where an op takes a value and is given a
 * reference, the planner adds a node with its kernel. */
#include <core/graph/graph_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <tenon/resource.h>

static tn_status read_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_dynamic(ctx, 0, err); }

static tn_status read_compute(tn_kernel_ctx *ctx)
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

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = TN__READ_REFERENCE_OP,
    .inputs = "ref: Ref(T)",
    .outputs = "value: T",
    .attrs = "T: type",
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS | TN_TRAIT_DYNAMIC,
    .infer = tn__infer_unknown,
    .summary = "the value of what a reference refers to" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = TN__READ_REFERENCE_OP,
    .device = "CPU",
    .name = "read_reference",
    .rank = TN_RANK_C,
    .prepare = read_prepare,
    .compute = read_compute },
};

TN_OP_FAMILY(read_reference)
