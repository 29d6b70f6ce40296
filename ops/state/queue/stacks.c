/* SPDX-License-Identifier: Apache-2.0 */
/* Stack StackPush StackPop StackClose and their V2: tensors that a step stores and retrieves in
 * reverse order.
 *
 * Each run of the op Stack creates a new stack, in no container. It is destroyed with the last
 * handle, so with the step. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <core/graph/graph_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/resources.h>

typedef struct stack {
  tn__mutex mu;
  char *name;
  tn_dtype dtype;
  int64_t most; /* maximum elements; -1: no limit */
  tn_tensor **items; /* guarded by mu, like the members below */
  size_t n, room;
  bool closed;
} stack;

static void stack_destroy(void *object)
{
  stack *s = object;
  for (size_t i = 0; i < s->n; i++) tn_tensor_unref(s->items[i]);
  tn__free(s->items, s->room * sizeof s->items[0]);
  tn__mutex_fini(&s->mu);
  tn__strfree(s->name);
  tn__free(s, sizeof *s);
}

static const tn_resource_class stack_class = { .struct_size = sizeof(tn_resource_class), .name = "Stack",
                                               .destroy = stack_destroy };

/* ---- Stack ---- */

typedef struct stack_state {
  char *name;
  tn_dtype dtype;
} stack_state;

static tn_status stack_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *text = "";
  size_t length = 0;
  *state = NULL;
  if (tn_operation_attr_string(op, "stack_name", &text, &length, NULL) != TN_OK) length = 0;
  stack_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->dtype = tn__attr_type(op, "elem_type");
  s->name = length > 0 ? tn__strndup(text, length) : tn__strdup(tn__operation_own_name(op));
  if (s->name != NULL) {
    *state = s;
    return TN_OK;
  }
  tn__free(s, sizeof *s);
  return tn__no_memory(err, "kernel", length);
}

static void stack_state_destroy(void *state)
{
  stack_state *s = state;
  tn__strfree(s->name);
  tn__free(s, sizeof *s);
}

static tn_status stack_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = ctx->n_inputs > 0 ? tn__want_rank(ctx, 0, 0, err) : TN_OK;
  return st == TN_OK ? tn__prepare_handle(ctx, 0, err) : st;
}

static tn_status stack_compute(tn_kernel_ctx *ctx)
{
  const stack_state *state = ctx->state;
  tn_resource *r;
  stack *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(ctx->err, "a stack", sizeof *s);
  tn__mutex_init(&s->mu, "stack", TN_RANK_WAITING);
  s->dtype = state->dtype;
  s->most = ctx->n_inputs > 0 ? *(const int32_t *)ctx->inputs[0]->data : -1;
  s->name = tn__strdup(state->name);
  if (s->name == NULL) {
    stack_destroy(s);
    return tn__no_memory(ctx->err, "a stack", 0);
  }
  tn_status st = tn_resource_create(&stack_class, s->name, s, &r, ctx->err);
  return st == TN_OK ? tn__give_handle(ctx, 0, r) : st;
}

/* ---- operations ---- */

/* Gets the stack of input 0 and checks its dtype. */
static tn_status get_stack(const tn_kernel_ctx *ctx, tn_dtype dtype, stack **out)
{
  void *object;
  tn_status st = tn__resource_input(ctx, 0, &stack_class, &object, NULL);
  *out = object;
  if (st != TN_OK || dtype == (*out)->dtype) return st;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "stack '%s' is of type %s, the node's element is %s", (*out)->name,
                      tn_dtype_name((*out)->dtype), tn_dtype_name(dtype));
}

static tn_status check_open(const tn_kernel_ctx *ctx, const stack *s)
{
  if (!s->closed) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "stack '%s' is closed", s->name);
}

static tn_status push_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_output_like(ctx, 0, 1, err);
  return st == TN_OK ? tn_prepare_given(ctx, 0, err) : st;
}

/* On success the stack holds its own reference. */
static tn_status push(tn_kernel_ctx *ctx, stack *s, tn_tensor *tensor)
{
  tn__mutex_lock(&s->mu);
  tn_status st = check_open(ctx, s);
  if (st == TN_OK && s->most >= 0 && s->n >= (uint64_t)s->most)
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "stack '%s' is full: it takes %lld elements", s->name,
                      (long long)s->most);
  if (st == TN_OK && !tn__grow((void **)&s->items, &s->room, s->n + 1, sizeof s->items[0]))
    st = tn__no_memory(ctx->err, "a stack", (s->n + 1) * sizeof s->items[0]);
  if (st == TN_OK) s->items[s->n++] = tn_tensor_ref(tensor);
  tn__mutex_unlock(&s->mu);
  return st;
}

static tn_status push_compute(tn_kernel_ctx *ctx)
{
  stack *s;
  tn_tensor *t = NULL;
  tn_status st = get_stack(ctx, ctx->inputs[1]->dtype, &s);
  if (st == TN_OK) st = tn_kernel_keep_input(ctx, 1, &t);
  if (st == TN_OK) st = push(ctx, s, t);
  if (st == TN_OK) st = tn_kernel_set_output(ctx, 0, t);
  tn_tensor_unref(t);
  return st;
}

static tn_status pop_create(const tn_operation *op, void **state, tn_error *err)
{
  tn_dtype *dtype = tn__alloc(sizeof *dtype);
  *state = dtype;
  if (dtype == NULL) return tn__no_memory(err, "kernel", sizeof *dtype);
  *dtype = tn__attr_type(op, "elem_type");
  return TN_OK;
}

static void pop_destroy(void *state) { tn__free(state, sizeof(tn_dtype)); }

static tn_status pop_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_dynamic(ctx, 0, err); }

static tn_status pop_compute(tn_kernel_ctx *ctx)
{
  stack *s;
  tn_tensor *t = NULL;
  tn_status st = get_stack(ctx, *(const tn_dtype *)ctx->state, &s);
  if (st != TN_OK) return st;
  tn__mutex_lock(&s->mu);
  st = check_open(ctx, s);
  if (st == TN_OK && s->n == 0) st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "stack '%s' is empty", s->name);
  if (st == TN_OK) t = s->items[--s->n];
  tn__mutex_unlock(&s->mu);
  if (st == TN_OK) st = tn_kernel_set_output(ctx, 0, t);
  tn_tensor_unref(t);
  return st;
}

static tn_status close_compute(tn_kernel_ctx *ctx)
{
  void *object;
  tn_status st = tn__resource_input(ctx, 0, &stack_class, &object, NULL);
  if (st != TN_OK) return st;
  stack *s = object;
  tn__mutex_lock(&s->mu);
  tn_tensor **items = s->items;
  size_t n = s->n, room = s->room;
  s->items = NULL;
  s->n = s->room = 0;
  s->closed = true;
  tn__mutex_unlock(&s->mu);
  for (size_t i = 0; i < n; i++) tn_tensor_unref(items[i]);
  tn__free(items, room * sizeof items[0]);
  return TN_OK;
}

static tn_status infer_push(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 1, &s);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define MAKES "elem_type: type; stack_name: string = ''"

#define BOTH(op, handle, more, out, attributes, flags, shapes, text)                                              \
  { .struct_size = TN_OP_DEF_SIZE,                                                                                \
    .name = op,                                                                                                   \
    .inputs = handle ": Ref(string)" more,                                                                        \
    .outputs = out,                                                                                               \
    .attrs = attributes,                                                                                          \
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS | (flags),                                                       \
    .infer = shapes,                                                                                              \
    .summary = text },                                                                                            \
  {                                                                                                               \
    .struct_size = TN_OP_DEF_SIZE, .name = op "V2", .inputs = handle ": resource" more, .outputs = out,           \
    .attrs = attributes, .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS | (flags), .infer = shapes, .summary = text \
  }

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Stack", .inputs = "", .outputs = "handle: Ref(string)", .attrs = MAKES,
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .summary = "stack of tensors that lives for one step" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "StackV2", .inputs = "max_size: int32", .outputs = "handle: resource",
    .attrs = MAKES, .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .infer = tn__infer_scalar,
    .summary = "stack of tensors that lives for one step" },
  BOTH("StackPush", "handle", ", elem: T", "output: T", "T: type; swap_memory: bool = false", 0, infer_push,
       "pushes a tensor onto a stack and forwards it"),
  BOTH("StackPop", "handle", "", "elem: elem_type", "elem_type: type", TN_TRAIT_DYNAMIC, NULL,
       "pops a tensor from a stack"),
  BOTH("StackClose", "handle", "", "", "", 0, NULL, "closes a stack and releases its tensors"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("Stack", "stack_cpu", stack_create, stack_state_destroy, stack_prepare, stack_compute),
  TN__KERNEL("StackV2", "stack_v2_cpu", stack_create, stack_state_destroy, stack_prepare, stack_compute),
  TN__KERNEL("StackPush", "stack_push_cpu", NULL, NULL, push_prepare, push_compute),
  TN__KERNEL("StackPushV2", "stack_push_v2_cpu", NULL, NULL, push_prepare, push_compute),
  TN__KERNEL("StackPop", "stack_pop_cpu", pop_create, pop_destroy, pop_prepare, pop_compute),
  TN__KERNEL("StackPopV2", "stack_pop_v2_cpu", pop_create, pop_destroy, pop_prepare, pop_compute),
  TN__KERNEL("StackClose", "stack_close_cpu", NULL, NULL, tn__prepare_nothing, close_compute),
  TN__KERNEL("StackCloseV2", "stack_close_v2_cpu", NULL, NULL, tn__prepare_nothing, close_compute),
};

TN_OP_FAMILY(stacks)
