/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of outputs, worked out when somebody asks.
 *
 * The walk over the inputs that are not known yet keeps its own stack, so a chain of a million nodes is no deeper than
 * one of two. It needs no marks against cycles: the only cycles of a graph go through a loop's back edge or through an
 * op that is not registered, and both count as unknown. No lock is held while a shape function runs; results are
 * published by compare-and-swap. */
#include <core/graph/graph_structs.h>

#include <string.h>

#define MAX_IDENTITIES 64

/* No memory holds a longer dimension (but beside one of 0), so it counts as unknown: shape functions can add and scale
 * sizes without a thought of overflow. */
#define MAX_DIM (INT64_C(1) << 48)

struct tn_infer_ctx {
  const tn_operation *op;
  size_t n_outputs;
  tn__shape *outputs; /* dims in arena */
  tn__arena *arena;
};

static const tn__op_shapes *known(const tn_operation *op)
{
  return atomic_load_explicit(&op->shapes, memory_order_acquire);
}

/* Whether the shapes of the operation are unknown without a look at its inputs. */
static bool is_opaque(const tn_operation *op)
{
  return op->schema == NULL || op->schema->def->infer == NULL || op->n_outputs == 0;
}

/* ---- what a shape function sees ---- */

const tn_operation *tn_infer_operation(const tn_infer_ctx *ctx) { return ctx->op; }
size_t tn_infer_n_inputs(const tn_infer_ctx *ctx) { return ctx->op->n_inputs; }

int32_t tn_infer_input(const tn_infer_ctx *ctx, size_t i, const int64_t **dims)
{
  const int64_t *dummy;
  if (dims == NULL) dims = &dummy;
  *dims = NULL;
  if (i >= ctx->op->n_inputs) return -1;
  tn_output in = ctx->op->inputs[i];
  if (is_opaque(in.op) || tn__is_back_edge(in.op, ctx->op)) return -1;
  const tn__op_shapes *shapes = known(in.op);
  if (shapes == NULL) return -1;
  *dims = shapes->outputs[in.index].dims;
  return (int32_t)shapes->outputs[in.index].rank;
}

const tn_tensor *tn_infer_input_value(const tn_infer_ctx *ctx, size_t i)
{
  if (i >= ctx->op->n_inputs) return NULL;
  tn_output in = ctx->op->inputs[i];
  for (int steps = 0; steps < MAX_IDENTITIES; steps++) {
    if ((in.op->traits & TN_TRAIT_CONSTANT) != 0) {
      tn_tensor *value;
      return in.index == 0 && tn__operation_constant(in.op, &value, NULL) == TN_OK ? value : NULL;
    }
    if ((in.op->traits & TN_TRAIT_IDENTITY) == 0 || (uint32_t)in.index >= in.op->n_inputs) return NULL;
    in = in.op->inputs[in.index];
  }
  return NULL;
}

tn_status tn_infer_output(tn_infer_ctx *ctx, size_t i, const int64_t *dims, int32_t rank, tn_error *err)
{
  if (i >= ctx->n_outputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "shape function names output %zu of %zu", i, ctx->n_outputs);
  if (rank < -1 || rank > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "output %zu has rank %d, at most %d wanted", i, (int)rank,
                        TN_MAX_RANK);
  for (int32_t k = 0; k < rank; k++)
    if (dims[k] < -1)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "dimension %d of output %zu is %lld", (int)k, i,
                          (long long)dims[k]);
  ctx->outputs[i] = (tn__shape){ NULL, rank };
  if (rank <= 0) return TN_OK;
  int64_t *copy = tn__arena_alloc(ctx->arena, (size_t)rank * sizeof *copy);
  if (copy == NULL) return tn__no_memory(err, "shape", (size_t)rank * sizeof *copy);
  for (int32_t k = 0; k < rank; k++) copy[k] = dims[k] > MAX_DIM ? -1 : dims[k];
  ctx->outputs[i].dims = copy;
  return TN_OK;
}

/* ---- one operation ---- */

static void free_shapes(tn__owned *owned)
{
  tn__op_shapes *s = (tn__op_shapes *)owned;
  tn__free(s, s->size);
}

/* What the shape function said, packed into one block. */
static tn__op_shapes *pack(const tn_infer_ctx *ctx, bool failed)
{
  size_t n_dims = 0;
  for (size_t i = 0; i < ctx->n_outputs; i++)
    if (ctx->outputs[i].rank > 0) n_dims += (size_t)ctx->outputs[i].rank;
  size_t size = sizeof(tn__op_shapes) + ctx->n_outputs * sizeof(tn__shape) + n_dims * sizeof(int64_t);
  tn__op_shapes *s = tn__alloc(size);
  if (s == NULL) return NULL;
  s->owned = (tn__owned){ NULL, free_shapes };
  s->size = size;
  s->failed = failed;
  int64_t *dims = (int64_t *)&s->outputs[ctx->n_outputs];
  for (size_t i = 0; i < ctx->n_outputs; i++) {
    tn__shape from = failed ? (tn__shape){ NULL, -1 } : ctx->outputs[i];
    s->outputs[i] = (tn__shape){ from.rank > 0 ? dims : NULL, from.rank };
    if (from.rank <= 0) continue;
    memcpy(dims, from.dims, (size_t)from.rank * sizeof *dims);
    dims += from.rank;
  }
  return s;
}

/* Calls the shape function. *out is NULL when it failed (with its error); a failure for want of memory is returned. */
static tn_status call(const tn_operation *op, tn__op_shapes **out, tn_error *why, tn_error *err)
{
  tn__arena arena;
  tn__arena_init(&arena, 512);
  *out = NULL;
  tn_infer_ctx ctx = { .op = op, .n_outputs = op->n_outputs, .arena = &arena };
  tn_status st = TN_RESOURCE_EXHAUSTED;
  ctx.outputs = tn__arena_alloc(&arena, op->n_outputs * sizeof *ctx.outputs);
  if (ctx.outputs != NULL) {
    for (size_t i = 0; i < ctx.n_outputs; i++) ctx.outputs[i] = (tn__shape){ NULL, -1 };
    st = op->schema->def->infer(&ctx, why);
    if (st != TN_RESOURCE_EXHAUSTED) *out = pack(&ctx, st != TN_OK);
  }
  tn__arena_fini(&arena);
  if (*out == NULL) return tn__no_memory(err, "shapes", op->n_outputs * sizeof(tn__shape));
  return TN_OK;
}

static tn_status infer_one(const tn_operation *op, tn_error *err)
{
  tn_error why = TN_ERROR_INIT;
  tn__op_shapes *mine, *there = NULL;
  tn_status st = call(op, &mine, &why, err);
  if (st == TN_OK && mine->failed)
    tn_log(TN_LOG_DEBUG, "node '%s' (%s): no shapes: %s", op->name, op->type, tn_error_message(&why));
  tn_error_clear(&why);
  if (st != TN_OK) return st;
  tn_operation *target = (tn_operation *)op;
  /* acq_rel: dims are written before the block is seen. */
  if (atomic_compare_exchange_strong_explicit(&target->shapes, &there, mine, memory_order_acq_rel,
                                              memory_order_acquire))
    tn__graph_own(op->graph, &mine->owned);
  else
    free_shapes(&mine->owned);
  return TN_OK;
}

/* ---- the walk ---- */

static bool is_pending(const tn_operation *op) { return !is_opaque(op) && known(op) == NULL; }

typedef struct frame {
  const tn_operation *op;
  uint32_t next; /* input to look at */
} frame;

static const tn_operation *pending_input(frame *f)
{
  while (f->next < f->op->n_inputs) {
    const tn_operation *from = f->op->inputs[f->next++].op;
    if (is_pending(from) && !tn__is_back_edge(from, f->op)) return from;
  }
  return NULL;
}

/* Gives shapes to all that op needs, but not to op itself. */
static tn_status infer_inputs(const tn_operation *op, tn_error *err)
{
  frame first = { op, 0 }, *stack = NULL;
  size_t room = 0, depth = 0;
  tn_status st = TN_OK;
  while (st == TN_OK) {
    frame *at = depth == 0 ? &first : &stack[depth - 1];
    const tn_operation *next = pending_input(at);
    if (next != NULL) {
      if (tn__grow((void **)&stack, &room, depth + 1, sizeof *stack))
        stack[depth++] = (frame){ next, 0 };
      else
        st = tn__no_memory(err, "shapes", (depth + 1) * sizeof *stack);
    } else if (depth > 0) {
      if (known(at->op) == NULL) st = infer_one(at->op, err);
      depth--;
    } else {
      break;
    }
  }
  tn__free(stack, room * sizeof *stack);
  return st;
}

tn_status tn__op_shapes_get(const tn_operation *op, const tn__op_shapes **out, tn_error *err)
{
  *out = NULL;
  if (is_opaque(op)) return TN_OK;
  tn_status st = TN_OK;
  if (known(op) == NULL) {
    st = infer_inputs(op, err);
    if (st == TN_OK) st = infer_one(op, err);
  }
  if (st == TN_OK) *out = known(op);
  return st;
}

tn_status tn__operation_check_shapes(const tn_operation *op, tn_error *err)
{
  if (is_opaque(op)) return TN_OK;
  tn_status st = infer_inputs(op, err);
  if (st != TN_OK) return st;
  tn_error why = TN_ERROR_INIT;
  tn__op_shapes *shapes;
  st = call(op, &shapes, &why, err);
  if (st == TN_OK) {
    if (shapes->failed) st = tn_error_set(err, tn_error_code(&why) == TN_OK ? TN_INVALID_ARGUMENT : tn_error_code(&why),
                                          "%s", tn_error_message(&why));
    free_shapes(&shapes->owned);
  }
  tn_error_clear(&why);
  return st;
}

/* ---- for everybody ---- */

tn_status tn_output_shape(tn_output output, int64_t *dims, int32_t room, int32_t *rank, tn_error *err)
{
  tn__error_reset(err);
  int32_t dummy;
  if (rank == NULL) rank = &dummy;
  *rank = -1;
  if (output.op == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no operation given");
  const tn_operation *op = output.op;
  if (output.index < 0 || (op->schema != NULL && (uint32_t)output.index >= op->n_outputs))
    return tn_error_set(err, TN_OUT_OF_RANGE, "'%s:%d': node '%s' (%s) has %u outputs", op->name, (int)output.index,
                        op->name, op->type, op->n_outputs);
  const tn__op_shapes *shapes;
  tn_status st = tn__op_shapes_get(op, &shapes, err);
  if (st != TN_OK || shapes == NULL) return st;
  const tn__shape *shape = &shapes->outputs[output.index];
  *rank = (int32_t)shape->rank;
  if (dims == NULL || shape->rank <= 0) return TN_OK;
  if (shape->rank > room)
    return tn_error_set(err, TN_OUT_OF_RANGE, "'%s:%d' has %d dimensions, there is room for %d", op->name,
                        (int)output.index, (int)shape->rank, (int)room);
  memcpy(dims, shape->dims, (size_t)shape->rank * sizeof *dims);
  return TN_OK;
}
