/* SPDX-License-Identifier: Apache-2.0 */
/* Products with what follows them: _TnConv2D, _TnDepthwiseConv2D, _TnMatMul. Graphs do not hold them; the planner's "fuse"
 * pass makes them (ops/fuse.c), so that a library's kernel can do all in one pass over the result.
 *
 * The kernels here run the plain op's own kernel and then the epilogue, in place. */
#include <core/base/alloc.h>
#include <core/graph/graph_internal.h>
#include <ops/support/epilogue.h>
#include <ops/support/shapes.h>
#include <string.h>

#define BASE_INPUTS 2

typedef struct fused_state {
  tn__epilogue epilogue;
  const tn_kernel_def *base;
  void *base_state;
} fused_state;

static const char *base_op(const tn_operation *op)
{
  const char *type = tn_operation_type(op);
  if (strcmp(type, "_TnConv2D") == 0) return "Conv2D";
  return strcmp(type, "_TnMatMul") == 0 ? "MatMul" : "DepthwiseConv2dNative";
}

static void fused_destroy(void *state)
{
  fused_state *s = state;
  if (s->base_state != NULL && s->base->destroy != NULL) s->base->destroy(s->base_state);
  tn__free(s, sizeof *s);
}

/* The library's own kernel of the plain op: attributes have the same names. */
static const tn_kernel_def *find_base(const char *op)
{
  const tn_op_schema *schema = tn_op_schema_find(op);
  const tn_kernel_def *k;
  for (size_t i = 0; (k = tn_op_schema_kernel(schema, i)) != NULL; i++)
    if (k->rank == TN_RANK_C && strcmp(k->device, "CPU") == 0) return k;
  return NULL;
}

static tn_status fused_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  fused_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, tn_operation_type(op), sizeof *s);
  s->base = find_base(base_op(op));
  tn_status st = s->base != NULL ? tn__epilogue_read(op, &s->epilogue, err)
                                 : tn_error_set(err, TN_UNIMPLEMENTED, "%s has no kernel", base_op(op));
  if (st == TN_OK && s->base->create != NULL) st = s->base->create(op, &s->base_state, err);
  if (st == TN_OK) {
    *state = s;
  } else {
    s->base_state = NULL;
    fused_destroy(s);
  }
  return st;
}

static tn_status fused_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  fused_state *s = ctx->state;
  uint32_t n_inputs = ctx->n_inputs;
  ctx->state = s->base_state;
  ctx->n_inputs = BASE_INPUTS; /* the plain op knows of no others */
  tn_status st = s->base->prepare(ctx, err);
  ctx->state = s;
  ctx->n_inputs = n_inputs;
  return st;
}

/* All three ops have one base kernel each, so the op says whose state it is. */
#define FUSED_FREE(name, op)                                                                     \
  static void name(void *state)                                                                  \
  {                                                                                              \
    const tn_kernel_def *base = find_base(op);                                                   \
    if (base != NULL && base->destroy_shape_state != NULL) base->destroy_shape_state(state);     \
  }
FUSED_FREE(free_conv, "Conv2D")
FUSED_FREE(free_depthwise, "DepthwiseConv2dNative")
FUSED_FREE(free_matmul, "MatMul")

static tn_status fused_compute(tn_kernel_ctx *ctx)
{
  const fused_state *s = ctx->state;
  uint32_t n_inputs = ctx->n_inputs;
  ctx->state = s->base_state;
  ctx->n_inputs = BASE_INPUTS;
  tn_status st = s->base->compute(ctx);
  ctx->state = s;
  ctx->n_inputs = n_inputs;
  return st == TN_OK ? tn__epilogue_apply(&s->epilogue, ctx, BASE_INPUTS) : st;
}

/* The shape is that of the plain op, whose shape function reads inputs 0 and 1 and attributes of the same names. */
static tn_status infer_as_base(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_op_def *base = tn__schema_def(tn_op_schema_find(base_op(tn_infer_operation(ctx))));
  return base == NULL || base->infer == NULL ? TN_OK : base->infer(ctx, err);
}

#define CONV_ATTRS                                                                             \
  "T: {float}; num_args: int >= 0; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; " \
  "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "                \
  "dilations: list(int) = [1, 1, 1, 1]; " TN__EPILOGUE_ATTRS
#define FUSED_OP(type, in, out, attributes, text)                                                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = type, .inputs = in ", args: num_args * T", .outputs = out, \
    .attrs = attributes, .traits = TN_TRAIT_CONTRACTION, .infer = infer_as_base, .summary = text }
#define FUSED_KERNEL(type, text, free_fn)                                                                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = type, .device = "CPU", .name = text, .rank = TN_RANK_C,                 \
    .create = fused_create, .destroy = fused_destroy, .prepare = fused_prepare, .destroy_shape_state = free_fn,      \
    .compute = fused_compute }

static const tn_op_def ops[] = {
  FUSED_OP("_TnConv2D", "input: T, filter: T", "output: T", CONV_ATTRS, "Conv2D with what follows it"),
  FUSED_OP("_TnDepthwiseConv2D", "input: T, filter: T", "output: T", CONV_ATTRS,
           "DepthwiseConv2dNative with what follows it"),
  FUSED_OP("_TnMatMul", "a: T, b: T", "product: T",
           "T: {float}; num_args: int >= 0; transpose_a: bool = false; transpose_b: bool = false; " TN__EPILOGUE_ATTRS,
           "MatMul with what follows it"),
};

static const tn_kernel_def kernels[] = {
  FUSED_KERNEL("_TnConv2D", "fused_conv2d_cpu", free_conv),
  FUSED_KERNEL("_TnDepthwiseConv2D", "fused_depthwise_cpu", free_depthwise),
  FUSED_KERNEL("_TnMatMul", "fused_matmul_cpu", free_matmul),
};

extern const tn_op_family tn__ops_fused;
const tn_op_family tn__ops_fused = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "fused",
  .ops = ops,
  .n_ops = sizeof ops / sizeof *ops,
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof *kernels,
};
