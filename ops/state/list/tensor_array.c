/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor arrays, element by element: TensorArray TensorArrayGrad TensorArrayGradWithShape
 * TensorArrayWrite TensorArrayRead TensorArraySize TensorArrayClose, in their three versions.
 *
 * V3 has handles of dtype resource. Older versions have string handles, container and name, and
 * keep the array in the step's container. The first version's handle by reference is treated as one
 * of dtype resource. Elements are stored and returned without a copy. The flow is a number whose
 * value is never read: it only orders the ops. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/graph/graph_internal.h>
#include <ops/kernel/family.h>
#include <ops/state/list/tensor_array_ops.h>
#include <string.h>

/* ---- creation ---- */

typedef struct array_state {
  tn__array_spec spec; /* except the size */
  char *name;
  bool in_step; /* handles are strings */
} array_state;

static void destroy_state(void *state)
{
  array_state *s = state;
  tn__strfree(s->name);
  tn__free(s, sizeof *s);
}

/* A string attribute up to its first zero byte; the node's name if that is empty. NULL if out of
 * memory. */
static char *text_or_name(const tn_operation *op, const char *attr)
{
  const char *text = "";
  size_t length = 0;
  if (tn_operation_attr_string(op, attr, &text, &length, NULL) != TN_OK || strnlen(text, length) == 0)
    return tn__strdup(tn__operation_own_name(op));
  return tn__strndup(text, strnlen(text, length));
}

static tn_status array_create(const tn_operation *op, void **state, tn_error *err)
{
  array_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->in_step = tn_operation_output_dtype(op, 0) != TN_RESOURCE;
  s->name = text_or_name(op, "tensor_array_name");
  s->spec =
      (tn__array_spec){ .dtype = tn__attr_type(op, "dtype"),
                        .rank = -1,
                        .grows = tn__attr_bool(op, "dynamic_size", false),
                        .clear_after_read = tn__attr_bool(op, "clear_after_read", true),
                        .identical_shapes = tn_operation_attr_kind(op, "identical_element_shapes") != TN_ATTR_NONE &&
                                            tn__attr_bool(op, "identical_element_shapes", false) };
  tn_status st = s->name == NULL ? tn__no_memory(err, "kernel", sizeof *s)
                                 : tn_operation_attr_shape(op, "element_shape", &s->spec.dims, &s->spec.rank, err);
  if (st == TN_OK) *state = s;
  else destroy_state(s);
  return st;
}

static tn_status array_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  if (st == TN_OK) st = tn__array_prepare_handle(ctx, 0, err);
  return st == TN_OK && ctx->n_outputs > 1 ? tn_prepare_output(ctx, 1, NULL, 0, err) : st;
}

static void no_flow(tn_kernel_ctx *ctx, uint32_t i)
{
  if (i < ctx->n_outputs) *(float *)ctx->outputs[i]->data = 0;
}

static tn_status array_compute(tn_kernel_ctx *ctx)
{
  const array_state *s = ctx->state;
  tn__array_spec spec = s->spec;
  tn__array *array;
  tn_resource *resource;
  spec.size = *(const int32_t *)ctx->inputs[0]->data;
  if (spec.size < 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "the size of a TensorArray is %lld, wanted 0 or more", (long long)spec.size);
  tn_status st = tn__array_create(&spec, &array, ctx->err);
  if (st == TN_OK) st = tn__array_register(ctx, array, s->name, s->in_step, &resource);
  if (st != TN_OK) return st;
  no_flow(ctx, 1);
  return tn__array_give(ctx, 0, resource);
}

/* ---- gradients ---- */

static tn_status grad_create(const tn_operation *op, void **state, tn_error *err)
{
  array_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->name = text_or_name(op, "source");
  if (s->name != NULL) {
    *state = s;
    return TN_OK;
  }
  destroy_state(s);
  return tn__no_memory(err, "kernel", sizeof *s);
}

static tn_status grad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = ctx->n_inputs > 2 ? tn__want_rank(ctx, 2, 1, err) : TN_OK;
  if (st == TN_OK) st = tn__array_prepare_handle(ctx, 0, err);
  return st == TN_OK && ctx->n_outputs > 1 ? tn_prepare_output(ctx, 1, NULL, 0, err) : st;
}

static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const array_state *s = ctx->state;
  tn__array_ref a;
  tn__shape prepend;
  tn_resource *gradient;
  tn__shape_scalar(&prepend);
  tn_status st = ctx->n_inputs > 2 ? tn__shape_operand(ctx, 2, &prepend) : TN_OK;
  if (st == TN_OK && !tn__shape_is_known(prepend.dims, prepend.rank))
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 2, the shape to prepend, has a dimension below 0");
  if (st == TN_OK) st = tn__array_input(ctx, &a);
  if (st != TN_OK) return st;
  st = tn__array_gradient_of(a.array, a.name, s->name, &prepend, &gradient, ctx->err);
  tn__array_input_end(&a);
  if (st != TN_OK) return st;
  no_flow(ctx, 1);
  return tn__array_give(ctx, 0, gradient);
}

/* ---- one element ---- */

static tn_status write_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  return st == TN_OK ? tn__array_prepare_flow(ctx, err) : st;
}

static tn_status write_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  tn_tensor *value[2] = { NULL };
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) st = tn__array_want(a.array, a.name, ctx->inputs[2]->dtype, ctx->err);
  if (st == TN_OK) st = tn_kernel_keep_input(ctx, 2, &value[0]);
  if (st == TN_OK) st = tn__array_write(a.array, a.name, ctx->inputs[1]->data, value, 1, ctx->err);
  tn__drop_tensors(value, 2);
  tn__array_input_end(&a);
  return st;
}

static tn_status read_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

static tn_status read_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  tn_tensor *value = NULL;
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) st = tn__array_want(a.array, a.name, ctx->outputs[0]->dtype, ctx->err);
  if (st == TN_OK) st = tn__array_read(a.array, a.name, ctx->inputs[1]->data, &value, 1, ctx->err);
  if (st == TN_OK) st = tn_kernel_set_output(ctx, 0, value);
  tn_tensor_unref(value);
  tn__array_input_end(&a);
  return st;
}

/* ---- the whole array ---- */

static tn_status size_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  int64_t size = 0;
  bool grows;
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) st = tn__array_size(a.array, a.name, &size, &grows, ctx->err);
  tn__array_input_end(&a);
  *(int32_t *)ctx->outputs[0]->data = (int32_t)size;
  return st;
}

static tn_status close_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) tn__array_close(a.array);
  tn__array_input_end(&a);
  return st;
}

/* ---- shape functions ---- */

/* A handle of the older versions is a vector of two strings. */
static tn_status infer_handle(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t two = 2;
  const tn_operation *op = tn_infer_operation(ctx);
  bool text = tn_operation_output_dtype(op, 0) != TN_RESOURCE; /* true for handles by reference, too */
  tn_status st = tn_infer_output(ctx, 0, &two, text, err);
  return st == TN_OK && tn_operation_n_outputs(op) > 1 ? tn_infer_output(ctx, 1, NULL, 0, err) : st;
}

static tn_status infer_array(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank(ctx, 0, 0, &unused, err);
  return st == TN_OK ? infer_handle(ctx, err) : st;
}

static tn_status infer_write(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank(ctx, 1, 0, &unused, err);
  return st == TN_OK ? tn__infer_scalar(ctx, err) : st;
}

/* Traces a handle through the graph to the node that made the array; NULL if that fails. */
static const tn_operation *maker_of(const tn_operation *op)
{
  static const char *const on[] = { "Enter", "RefEnter", "Identity", "RefIdentity", "Switch", "TensorArrayGrad",
                                    "TensorArrayGradV2", "TensorArrayGradV3" };
  for (int steps = 0; op != NULL && steps < 64; steps++) {
    const char *type = tn_operation_type(op);
    if (strcmp(type, "TensorArray") == 0 || strcmp(type, "TensorArrayV2") == 0 || strcmp(type, "TensorArrayV3") == 0)
      return op;
    size_t k = 0;
    while (k < sizeof on / sizeof on[0] && strcmp(type, on[k]) != 0) k++;
    op = k < sizeof on / sizeof on[0] ? tn_operation_input(op, 0).op : NULL;
  }
  return NULL;
}

/* Elements have the shape that the array was created for. */
static tn_status infer_read(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  const int64_t *dims;
  int32_t rank;
  tn_status st = tn__infer_rank(ctx, 1, 0, &unused, err);
  const tn_operation *maker = maker_of(tn_operation_input(tn_infer_operation(ctx), 0).op);
  if (st != TN_OK) return st;
  if (maker == NULL || tn_operation_attr_shape(maker, "element_shape", &dims, &rank, NULL) != TN_OK)
    return tn__infer_unknown(ctx, err);
  return tn_infer_output(ctx, 0, dims, rank, err);
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, bits, shapes, text)                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes,         \
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS | (bits), .infer = shapes, .summary = text }

/* X(version, type of the handle) */
#define VERSIONS(X) X("", "Ref(string)") X("V2", "string") X("V3", "resource")

#define ARRAY_TEXT "an array of tensors"
#define GRAD_TEXT "the array of gradients of an array"

#define ELEMENT_OPS(v, handle)                                                                                         \
  OP("TensorArrayWrite" v, "handle: " handle ", index: int32, value: T, flow_in: float", "flow_out: float", "T: type", \
     0, infer_write, "writes an element of an array"),                                                                 \
  OP("TensorArrayRead" v, "handle: " handle ", index: int32, flow_in: float", "value: dtype", "dtype: type",           \
     TN_TRAIT_DYNAMIC, infer_read, "reads an element of an array"),                                                    \
  OP("TensorArraySize" v, "handle: " handle ", flow_in: float", "size: int32", "", 0, tn__infer_scalar,                \
     "number of elements of an array"),                                                                                \
  OP("TensorArrayClose" v, "handle: " handle, "", "", 0, NULL, "closes an array and releases its elements"),

static const tn_op_def ops[] = {
  OP("TensorArray", "size: int32", "handle: Ref(string)",
     "dtype: type; dynamic_size: bool = false; clear_after_read: bool = true; tensor_array_name: string = ''; "
     "element_shape: shape = ?",
     0, infer_array, ARRAY_TEXT),
  OP("TensorArrayV2", "size: int32", "handle: string",
     "dtype: type; element_shape: shape = ?; dynamic_size: bool = false; clear_after_read: bool = true; "
     "tensor_array_name: string = ''",
     0, infer_array, ARRAY_TEXT),
  OP("TensorArrayV3", "size: int32", "handle: resource, flow: float",
     "dtype: type; element_shape: shape = ?; dynamic_size: bool = false; clear_after_read: bool = true; "
     "identical_element_shapes: bool = false; tensor_array_name: string = ''",
     0, infer_array, ARRAY_TEXT),
  OP("TensorArrayGrad", "handle: string, flow_in: float", "grad_handle: Ref(string)", "source: string", 0, infer_handle,
     GRAD_TEXT),
  OP("TensorArrayGradV2", "handle: string, flow_in: float", "grad_handle: string", "source: string", 0, infer_handle,
     GRAD_TEXT),
  OP("TensorArrayGradV3", "handle: resource, flow_in: float", "grad_handle: resource, flow_out: float",
     "source: string", 0, infer_handle, GRAD_TEXT),
  OP("TensorArrayGradWithShape", "handle: resource, flow_in: float, shape_to_prepend: int32",
     "grad_handle: resource, flow_out: float", "source: string", 0, infer_handle,
     "creates the gradient array of an array, with extra leading dimensions"),
  VERSIONS(ELEMENT_OPS)
};

#define STATE_KERNEL(which, title, create_fn, prepare_fn, compute_fn)                                                 \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,               \
    .create = create_fn, .destroy = destroy_state, .prepare = prepare_fn, .compute = compute_fn },
#define KERNEL(which, title, prepare_fn, compute_fn)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .compute = compute_fn },
#define ELEMENT_KERNELS(v, handle)                                                                       \
  STATE_KERNEL("TensorArray" v, "tensor_array" v "_cpu", array_create, array_prepare, array_compute)     \
  STATE_KERNEL("TensorArrayGrad" v, "tensor_array_grad" v "_cpu", grad_create, grad_prepare, grad_compute) \
  KERNEL("TensorArrayWrite" v, "tensor_array_write" v "_cpu", write_prepare, write_compute)              \
  KERNEL("TensorArrayRead" v, "tensor_array_read" v "_cpu", read_prepare, read_compute)                  \
  KERNEL("TensorArraySize" v, "tensor_array_size" v "_cpu", tn__prepare_scalar, size_compute)            \
  KERNEL("TensorArrayClose" v, "tensor_array_close" v "_cpu", tn__prepare_nothing, close_compute)

static const tn_kernel_def kernels[] = {
  VERSIONS(ELEMENT_KERNELS)
  STATE_KERNEL("TensorArrayGradWithShape", "tensor_array_grad_with_shape_cpu", grad_create, grad_prepare, grad_compute)
};

TN_OP_FAMILY(tensor_array)
