/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference, on demand.
 *
 * The walk over inputs whose shapes are not known yet keeps its stack on the heap, so a chain of a million nodes is no
 * problem. It needs no marks against cycles: all cycles of a graph go through a loop's back edge or through an
 * unregistered op, and both count as unknown. No lock is held while a shape function runs; results are published by
 * compare-and-swap.
 *
 * Setting a shape (set_shape.c) begins a new epoch, in which all shapes inferred before are stale. They are inferred
 * again at the next query. */
#include <core/graph/graph_structs.h>

#include <string.h>

#define MAX_IDENTITIES 64 /* followed to find a value */

/* A longer dimension counts as unknown, so shape functions can add and scale sizes without overflow checks. No tensor
 * in memory has one, unless another dimension is 0. */
#define MAX_DIM (INT64_C(1) << 48)

struct tn_infer_ctx {
  const tn_operation *op;
  size_t n_outputs;
  tn__shape *outputs; /* dims in arena */
  tn__ints *ints;     /* items in arena; NULL: the shape function has set none */
  tn__arena *arena;
  tn_tensor **values; /* of inputs, references, made for tn_infer_input_value; NULL: none yet */
  bool no_memory;     /* an answer is missing because memory ran out */
};

static uint32_t epoch_of(const tn_graph *graph)
{
  return graph == NULL ? 0 : atomic_load_explicit(&graph->shape_epoch, memory_order_acquire);
}

/* The operation's shapes if they were inferred in the current epoch, else NULL. */
static const tn__op_shapes *known(const tn_operation *op)
{
  const tn__op_shapes *s = atomic_load_explicit(&op->shapes, memory_order_acquire);
  return s != NULL && atomic_load_explicit(&s->epoch, memory_order_relaxed) == epoch_of(op->graph) ? s : NULL;
}

static const tn__op_shapes *given(const tn_operation *op)
{
  return atomic_load_explicit(&op->given, memory_order_acquire);
}

/* Whether the operation's shapes are unknown whatever its inputs are. */
static bool is_opaque(const tn_operation *op)
{
  return op->schema == NULL || op->n_outputs == 0 || (op->schema->def->infer == NULL && given(op) == NULL);
}

/* ---- the interface for shape functions ---- */

const tn_operation *tn_infer_operation(const tn_infer_ctx *ctx) { return ctx->op; }
size_t tn_infer_n_inputs(const tn_infer_ctx *ctx) { return ctx->op->n_inputs; }

int32_t tn_infer_input(const tn_infer_ctx *ctx, size_t i, const int64_t **dims)
{
  /* Used if there are no dimensions: shape functions may do pointer arithmetic on it, which NULL does not allow. */
  static const int64_t none = -1;
  const int64_t *dummy;
  if (dims == NULL) dims = &dummy;
  *dims = &none;
  if (i >= ctx->op->n_inputs) return -1;
  tn_output in = ctx->op->inputs[i];
  if (is_opaque(in.op) || tn__is_back_edge(in.op, ctx->op)) return -1;
  const tn__op_shapes *shapes = known(in.op);
  if (shapes == NULL) return -1;
  if (shapes->outputs[in.index].rank > 0) *dims = shapes->outputs[in.index].dims;
  return (int32_t)shapes->outputs[in.index].rank;
}

/* Moves *in back through one identity. False: the value is produced here. */
static bool step_back(tn_output *in)
{
  if ((in->op->traits & TN_TRAIT_IDENTITY) == 0 || (uint32_t)in->index >= in->op->n_inputs) return false;
  *in = in->op->inputs[in->index];
  return true;
}

/* The output that produces the value of input i, behind any identities. */
static tn_output source_of(const tn_infer_ctx *ctx, size_t i)
{
  tn_output in = ctx->op->inputs[i];
  for (int steps = 0; steps < MAX_IDENTITIES && step_back(&in); steps++) {}
  return in;
}

bool tn__infer_reads_any(const tn_operation *op, size_t i, const tn_output *outputs, size_t n)
{
  tn_output in = op->inputs[i];
  for (int steps = 0; steps <= MAX_IDENTITIES; steps++) {
    for (size_t k = 0; k < n; k++)
      if (outputs[k].op == in.op && outputs[k].index == in.index) return true;
    if (!step_back(&in)) return false;
  }
  return false;
}

static const tn_tensor *constant_of(tn_output from)
{
  tn_tensor *value;
  if ((from.op->traits & TN_TRAIT_CONSTANT) == 0 || from.index != 0) return NULL;
  /* Large constants of other types are weights. They decide no shape, and decoding would keep them in memory. */
  tn_dtype dtype = tn_operation_output_dtype(from.op, 0);
  if (dtype != TN_INT32 && dtype != TN_INT64 && tn__operation_constant_is_large(from.op)) return NULL;
  return tn__operation_constant(from.op, &value, NULL) == TN_OK ? value : NULL;
}

/* The elements that the source's shape function has set; NULL: none. If the walk ended at a loop, the shapes of a
 * source behind an identity may not be inferred yet; they count as unknown. */
static const tn__ints *ints_of(const tn_infer_ctx *ctx, tn_output from, const tn__shape **shape)
{
  if (is_opaque(from.op) || tn__is_back_edge(from.op, ctx->op)) return NULL;
  const tn__op_shapes *s = known(from.op);
  if (s == NULL || s->ints == NULL || s->ints[from.index].n < 0) return NULL;
  *shape = &s->outputs[from.index];
  return &s->ints[from.index];
}

static tn_tensor *tensor_of(const tn__ints *ints, tn_dtype dtype, const tn__shape *shape)
{
  tn_tensor *t;
  if (tn_tensor_create(dtype, shape->dims, (int32_t)shape->rank, &t, NULL) != TN_OK) return NULL;
  void *data = tn_tensor_data(t);
  for (int64_t k = 0; k < ints->n; k++) {
    if (dtype == TN_INT64)
      ((int64_t *)data)[k] = ints->items[k];
    else
      ((int32_t *)data)[k] = (int32_t)ints->items[k];
  }
  return t;
}

/* Casting away const is valid: contexts are made, not const, by `call` below. */
const tn_tensor *tn_infer_input_value(const tn_infer_ctx *ctx, size_t i)
{
  if (i >= ctx->op->n_inputs) return NULL;
  tn_infer_ctx *c = (tn_infer_ctx *)ctx;
  if (c->values != NULL && c->values[i] != NULL) return c->values[i];
  tn_output from = source_of(ctx, i);
  const tn_tensor *constant = constant_of(from);
  if (constant != NULL) return constant;
  const tn__shape *shape;
  const tn__ints *ints = ints_of(ctx, from, &shape);
  if (ints == NULL) return NULL;
  for (int64_t k = 0; k < ints->n; k++)
    if (ints->items[k] == TN_UNKNOWN_INT) return NULL;
  if (c->values == NULL) {
    c->values = tn__arena_alloc(c->arena, ctx->op->n_inputs * sizeof *c->values);
    if (c->values != NULL) memset(c->values, 0, ctx->op->n_inputs * sizeof *c->values);
  }
  if (c->values != NULL)
    c->values[i] = tensor_of(ints, tn_operation_output_dtype(from.op, (size_t)from.index), shape);
  if (c->values == NULL || c->values[i] == NULL) c->no_memory = true;
  return c->values == NULL ? NULL : c->values[i];
}

static int64_t ints_of_constant(const tn_tensor *t, tn__arena *arena, const int64_t **items, bool *no_memory)
{
  tn_dtype dtype = tn_tensor_dtype(t);
  int64_t n = tn_tensor_elements(t);
  const void *data = tn_tensor_data(t);
  if ((dtype != TN_INT32 && dtype != TN_INT64) || tn_tensor_rank(t) > 1 || n > TN_MAX_INFER_INTS) return -1;
  if (data == NULL && n > 0) return -1;
  int64_t *copy = tn__arena_alloc(arena, ((size_t)n + 1) * sizeof *copy);
  if (copy == NULL) {
    *no_memory = true;
    return -1;
  }
  for (int64_t k = 0; k < n; k++)
    copy[k] = dtype == TN_INT64 ? ((const int64_t *)data)[k] : ((const int32_t *)data)[k];
  *items = copy;
  return n;
}

int64_t tn_infer_input_ints(const tn_infer_ctx *ctx, size_t i, const int64_t **items)
{
  *items = NULL;
  if (i >= ctx->op->n_inputs) return -1;
  tn_output from = source_of(ctx, i);
  const tn_tensor *t = constant_of(from);
  if (t == NULL) {
    const tn__shape *shape;
    const tn__ints *ints = ints_of(ctx, from, &shape);
    if (ints == NULL) return -1;
    *items = ints->items;
    return ints->n;
  }
  return ints_of_constant(t, ctx->arena, items, &((tn_infer_ctx *)ctx)->no_memory);
}

int32_t tn_infer_input_as_shape(const tn_infer_ctx *ctx, size_t i, int64_t *dims)
{
  const int64_t *items, *of;
  int64_t n = tn_infer_input_ints(ctx, i, &items);
  if (n < 0) { /* elements unknown: their number is still the rank */
    if (tn_infer_input(ctx, i, &of) != 1 || of[0] < 0 || of[0] > TN_MAX_RANK) return -1;
    for (int64_t k = 0; k < of[0]; k++) dims[k] = -1;
    return (int32_t)of[0];
  }
  if (n > TN_MAX_RANK) return -1;
  for (int64_t k = 0; k < n; k++) dims[k] = items[k] < 0 ? -1 : items[k];
  return (int32_t)n;
}

tn_status tn_infer_output_ints(tn_infer_ctx *ctx, size_t i, const int64_t *items, int64_t n, tn_error *err)
{
  if (i >= ctx->n_outputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "shape function names output %zu of %zu", i, ctx->n_outputs);
  const tn__shape *shape = &ctx->outputs[i];
  tn_dtype dtype = tn_operation_output_dtype(ctx->op, i);
  bool fits = shape->rank == 0 ? n == 1 : shape->rank == 1 && shape->dims[0] == n;
  if (!fits || (dtype != TN_INT32 && dtype != TN_INT64))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "shape function sets %lld elements of output %zu, which is not an "
                        "int32 or int64 scalar or vector of that size", (long long)n, i);
  if (n > TN_MAX_INFER_INTS) return TN_OK;
  size_t bytes = ctx->n_outputs * sizeof *ctx->ints;
  if (ctx->ints == NULL) {
    tn__ints *ints = tn__arena_alloc(ctx->arena, bytes);
    if (ints == NULL) return tn__no_memory(err, "shape", bytes);
    for (size_t k = 0; k < ctx->n_outputs; k++) ints[k] = (tn__ints){ NULL, -1 };
    ctx->ints = ints;
  }
  int64_t *copy = tn__arena_alloc(ctx->arena, ((size_t)n + 1) * sizeof *copy);
  if (copy == NULL) return tn__no_memory(err, "shape", (size_t)n * sizeof *copy);
  for (int64_t k = 0; k < n; k++) {
    bool wide = dtype == TN_INT32 && (items[k] < INT32_MIN || items[k] > INT32_MAX);
    copy[k] = wide ? TN_UNKNOWN_INT : items[k]; /* if it really does not fit, the step reports it */
  }
  ctx->ints[i] = (tn__ints){ copy, n };
  return TN_OK;
}

tn_status tn_infer_output(tn_infer_ctx *ctx, size_t i, const int64_t *dims, int32_t rank, tn_error *err)
{
  if (i >= ctx->n_outputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "shape function names output %zu of %zu", i, ctx->n_outputs);
  if (rank < -1 || rank > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "output %zu has rank %d, wanted -1 to %d", i, (int)rank,
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

/* Merges shapes set by tn_graph_set_shape into the inferred ones. If they contradict each other (an input's shape was
 * set later), the shape function wins: a step will see its result. */
static tn_status merge_given(tn_infer_ctx *ctx, tn_error *err)
{
  const tn__op_shapes *g = given(ctx->op);
  for (size_t i = 0; g != NULL && i < ctx->n_outputs; i++) {
    int64_t merged[TN_MAX_RANK];
    tn__shape both;
    if (!tn__shapes_merge(&ctx->outputs[i], &g->outputs[i], merged, &both)) continue;
    tn_status st = tn_infer_output(ctx, i, both.dims, (int32_t)both.rank, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* Always true, for use in conditions. */
static bool set_unknown(tn_infer_ctx *ctx)
{
  for (size_t i = 0; i < ctx->n_outputs; i++) ctx->outputs[i] = (tn__shape){ NULL, -1 };
  ctx->ints = NULL;
  return true;
}

/* Calls the shape function and packs its result. If the function fails, *why has its error and *out only the shapes
 * that were set. Returns an error only if memory ran out. */
static tn_status call(const tn_operation *op, tn__op_shapes **out, tn_error *why, tn_error *err)
{
  tn__arena arena;
  tn__arena_init(&arena, 512);
  *out = NULL;
  tn_infer_ctx ctx = { .op = op, .n_outputs = op->n_outputs, .arena = &arena };
  ctx.outputs = tn__arena_alloc(&arena, op->n_outputs * sizeof *ctx.outputs);
  if (ctx.outputs != NULL && set_unknown(&ctx)) {
    tn_status st = op->schema->def->infer == NULL ? TN_OK : op->schema->def->infer(&ctx, why);
    bool failed = st != TN_OK;
    if (ctx.no_memory) st = TN_RESOURCE_EXHAUSTED;
    if (failed) set_unknown(&ctx);
    if (st != TN_RESOURCE_EXHAUSTED && merge_given(&ctx, NULL) == TN_OK)
      *out = tn__shapes_pack(ctx.outputs, ctx.ints, ctx.n_outputs);
    if (*out != NULL) (*out)->failed = failed;
  }
  for (size_t i = 0; ctx.values != NULL && i < op->n_inputs; i++) tn_tensor_unref(ctx.values[i]);
  tn__arena_fini(&arena);
  if (*out == NULL) return tn__no_memory(err, "shapes", op->n_outputs * sizeof(tn__shape));
  return TN_OK;
}

static bool same_shapes(const tn__op_shapes *a, const tn__op_shapes *b, size_t n)
{
  if (a->size != b->size || a->failed != b->failed || (a->ints == NULL) != (b->ints == NULL)) return false;
  for (size_t i = 0; i < n; i++) {
    const tn__shape *x = &a->outputs[i], *y = &b->outputs[i];
    if (x->rank != y->rank || (x->rank > 0 && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) != 0))
      return false;
    if (a->ints == NULL) continue;
    const tn__ints *v = &a->ints[i], *w = &b->ints[i];
    if (v->n != w->n || (v->n > 0 && memcmp(v->items, w->items, (size_t)v->n * sizeof *v->items) != 0)) return false;
  }
  return true;
}

/* Publishes the block. A published block is kept until the graph is freed, because readers borrow its dims. So a block
 * equal to the current one is dropped and only the epoch is advanced: memory is used only where shapes change. */
static void show(const tn_operation *op, tn__op_shapes *mine)
{
  tn_operation *target = (tn_operation *)op;
  tn__op_shapes *there = atomic_load_explicit(&target->shapes, memory_order_acquire);
  if (there != NULL && same_shapes(there, mine, op->n_outputs)) {
    uint32_t epoch = atomic_load_explicit(&mine->epoch, memory_order_relaxed);
    atomic_store_explicit(&there->epoch, epoch, memory_order_relaxed);
    mine->owned.free(&mine->owned);
    return;
  }
  /* Release: a reader of the pointer sees the dims. If another thread was first, its result is as good. */
  if (atomic_compare_exchange_strong_explicit(&target->shapes, &there, mine, memory_order_acq_rel,
                                              memory_order_acquire))
    tn__graph_own(op->graph, &mine->owned);
  else
    mine->owned.free(&mine->owned);
}

/* Infers and publishes the shapes of one operation. `epoch` is that of the whole walk, and so of the inputs' shapes. */
static tn_status infer_one(const tn_operation *op, uint32_t epoch, tn_error *err)
{
  tn_error why = TN_ERROR_INIT;
  tn__op_shapes *mine;
  tn_status st = call(op, &mine, &why, err);
  if (st == TN_OK && mine->failed)
    tn_log(TN_LOG_DEBUG, "node '%s' (%s): no shapes: %s", op->name, op->type, tn_error_message(&why));
  tn_error_clear(&why);
  if (st != TN_OK) return st;
  atomic_store_explicit(&mine->epoch, epoch, memory_order_relaxed);
  show(op, mine);
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

/* Infers the shapes of everything that op depends on, but not of op itself. */
static tn_status infer_inputs(const tn_operation *op, uint32_t epoch, tn_error *err)
{
  frame first = { op, 0 }, *stack = NULL;
  size_t room = 0, depth = 0;
  tn_status st = TN_OK;
  /* If a new epoch begins, all results are stale and the walk would not end. It stops, and the caller starts again. */
  while (st == TN_OK && epoch_of(op->graph) == epoch) {
    frame *at = depth == 0 ? &first : &stack[depth - 1];
    const tn_operation *next = pending_input(at);
    if (next != NULL) {
      if (tn__grow((void **)&stack, &room, depth + 1, sizeof *stack))
        stack[depth++] = (frame){ next, 0 };
      else
        st = tn__no_memory(err, "shapes", (depth + 1) * sizeof *stack);
    } else if (depth > 0) {
      if (known(at->op) == NULL) st = infer_one(at->op, epoch, err);
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
  while (st == TN_OK && (*out = known(op)) == NULL) { /* again if another thread has set a shape meanwhile */
    uint32_t epoch = epoch_of(op->graph);
    st = infer_inputs(op, epoch, err);
    if (st == TN_OK) st = infer_one(op, epoch, err);
  }
  return st;
}

/* Elements are dropped unless they fit the shape, which the program may have set. */
tn_status tn__output_known(tn_output from, tn__arena *arena, tn__shape *shape, tn__ints *ints, tn_error *err)
{
  const tn__op_shapes *shapes;
  bool no_memory = false;
  *shape = (tn__shape){ NULL, -1 };
  *ints = (tn__ints){ NULL, -1 };
  tn_status st = tn__op_shapes_get(from.op, &shapes, err);
  if (st != TN_OK || shapes == NULL) return st;
  *shape = shapes->outputs[from.index];
  const tn_tensor *constant = constant_of(from);
  if (constant != NULL) ints->n = ints_of_constant(constant, arena, &ints->items, &no_memory);
  else if (shapes->ints != NULL) *ints = shapes->ints[from.index];
  if (no_memory) return tn__no_memory(err, "shape", 0);
  bool fits = ints->n >= 0 && (shape->rank == 0 ? ints->n == 1 : shape->rank == 1 && shape->dims[0] == ints->n);
  if (!fits) *ints = (tn__ints){ NULL, -1 };
  return TN_OK;
}

tn_status tn__operation_check_shapes(const tn_operation *op, tn_error *err)
{
  if (is_opaque(op)) return TN_OK;
  tn_status st = infer_inputs(op, epoch_of(op->graph), err);
  if (st != TN_OK) return st;
  tn_error why = TN_ERROR_INIT;
  tn__op_shapes *shapes;
  st = call(op, &shapes, &why, err);
  if (st == TN_OK) {
    if (shapes->failed) st = tn_error_set(err, tn_error_code(&why) == TN_OK ? TN_INVALID_ARGUMENT : tn_error_code(&why),
                                          "%s", tn_error_message(&why));
    shapes->owned.free(&shapes->owned);
  }
  tn_error_clear(&why);
  return st;
}

/* ---- public ---- */

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

tn_status tn__placeholder_missing(const tn_operation *op, const char *lacks, tn_error *err)
{
  char text[160], shape[192] = "";
  const tn__op_shapes *shapes = NULL;
  if (tn__op_shapes_get(op, &shapes, NULL) == TN_OK && shapes != NULL && shapes->outputs[0].rank >= 0)
    tn__snprintf(shape, sizeof shape, " and shape %s",
                 tn__format_shape(text, sizeof text, shapes->outputs[0].dims, (int32_t)shapes->outputs[0].rank));
  tn_error_set(err, TN_INVALID_ARGUMENT, "placeholder '%s' of type %s%s is needed and was not %s",
               tn_operation_name(op), tn_dtype_name(tn_operation_output_dtype(op, 0)), shape, lacks);
  tn_error_set_node(err, tn_operation_name(op));
  return TN_INVALID_ARGUMENT;
}
