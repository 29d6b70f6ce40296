/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference through functions: the body of the called function is made for the shapes of the node's inputs, and
 * the shapes of its outputs are inferred as in any graph.
 *
 * A library can be written so that this never ends: functions that call themselves, or each the next one twice. So
 * results are remembered by function and shapes within a query, the nesting of calls is limited, and the nodes of all
 * bodies come from a budget that grows with the graph. If a limit or the end of the stack is reached, shapes are
 * unknown, which is always a correct answer. */
#include <core/base/threads/thread.h>
#include <core/graph/functions.h>

#include <string.h>

#define MAX_DEPTH 32  /* of nested calls */
#define LOOP_ROUNDS 8 /* after which a loop variable that still changes gets an unknown rank */

/* BUDGET: nodes and edges of bodies for all calls of a graph within one epoch. ROOM: those alive at the same time.
 * PER_NODE: more for each node of the graph and of the library. */
#define BUDGET_BASE (INT64_C(1) << 22)
#define BUDGET_PER_NODE 64
#define ROOM_BASE (INT64_C(1) << 18)
#define ROOM_PER_NODE 2

/* ---- the state of a query ---- */

/* Renews the graph's budget if a new epoch has begun, and returns it. Threads may race; the budget need not be
 * exact. */
static int64_t refill(tn_graph *root, int64_t n_nodes)
{
  uint32_t epoch = atomic_load_explicit(&root->shape_epoch, memory_order_acquire) + 1;
  if (atomic_exchange_explicit(&root->call_epoch, epoch, memory_order_relaxed) != epoch)
    atomic_store_explicit(&root->call_budget, BUDGET_BASE + BUDGET_PER_NODE * n_nodes, memory_order_relaxed);
  return atomic_load_explicit(&root->call_budget, memory_order_relaxed);
}

static void state_init(tn__call_state *state, tn_graph *root)
{
  *state = (tn__call_state){ .root = root,
                             .functions = atomic_load_explicit(&root->functions, memory_order_acquire) };
  tn__arena_init(&state->arena, 1024);
  tn__map_init(&state->memo);
  int64_t n = (int64_t)tn_graph_n_operations(root);
  if (state->functions != NULL) n += (int64_t)state->functions->n_nodes;
  state->budget = refill(root, n);
  state->room = ROOM_BASE + ROOM_PER_NODE * n;
}

static void state_fini(tn__call_state *state, tn_graph *root, int64_t budget)
{
  atomic_fetch_sub_explicit(&root->call_budget, budget - state->budget, memory_order_relaxed);
  tn__map_fini(&state->memo);
  tn__arena_fini(&state->arena);
}

/* ---- a call ---- */

typedef struct tn__callee {
  tn__call_frame frame;
  const tn_function *f; /* NULL: not in the library */
  size_t n_inputs, n_outputs;
} callee;

/* Sets the attributes of the call to those of the function value, with placeholders replaced by attributes of the
 * enclosing call. */
static tn_status set_attrs(tn_operation *call, const tn_operation *op, const tn__func *func, tn__arena *arena,
                           tn_error *err)
{
  if (func->attrs == NULL) return TN_OK;
  tn__decoded_func *d;
  tn_status st = tn__func_attrs_get(op, func->attrs, &d, err);
  if (st != TN_OK) return st;
  call->attrs = tn__arena_array(arena, func->attrs->n, sizeof *call->attrs);
  if (call->attrs == NULL) return tn__no_memory(err, "call", func->attrs->n * sizeof *call->attrs);
  const tn_operation *outer = op->graph->frame == NULL ? NULL : op->graph->frame->call;
  for (size_t i = 0; st == TN_OK && i < func->attrs->n; i++) {
    const tn__attr *from = &d->attrs[i], *value = from;
    if (from->kind == TN_ATTR_PLACEHOLDER) st = tn__call_attr(outer, &from->v.text, &value, err);
    if (st != TN_OK) return st;
    tn__attr *to = &call->attrs[call->n_attrs++];
    *to = *value;
    to->name = from->name;
    to->name_size = from->name_size;
  }
  return st;
}

tn_status tn__call_create(const tn_operation *op, const tn__func *func, const tn_function *f, tn__arena *arena,
                        tn_operation **out, tn_error *err)
{
  tn_operation *call = tn__arena_zalloc(arena, sizeof *call);
  if (call == NULL) return tn__no_memory(err, "call", sizeof *call);
  call->graph = op->graph;
  call->name = op->name;
  call->name_size = op->name_size;
  call->type = f->name;
  call->device = "";
  call->schema = &f->schema;
  tn_status st = set_attrs(call, op, func, arena, err);
  if (st == TN_OK) st = tn__op_check_attrs(call, arena, err);
  if (st == TN_OK) st = tn__op_set_outputs(call, arena, err);
  *out = call;
  return st;
}

static tn_status set_callee(callee *c, tn__call_state *state, const tn_function *f, const tn_operation *call,
                            tn_error *err)
{
  *c = (callee){ .frame = { state, call }, .f = f };
  tn_status st = tn__signature_count(call, f->schema.inputs, f->schema.n_inputs, &c->n_inputs, err);
  if (st == TN_OK) st = tn__signature_count(call, f->schema.outputs, f->schema.n_outputs, &c->n_outputs, err);
  return st;
}

/* Prepares a call of `func` with the inputs of op from `first` on, whose number and types must fit. c->f is NULL if the
 * library has no such function. */
static tn_status find_callee(callee *c, tn__call_state *state, const tn_operation *op, const tn__func *func,
                             size_t first, tn_error *err)
{
  *c = (callee){ .f = NULL };
  if (first > op->n_inputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the arguments begin at input %zu, but there are %u inputs", first,
                        op->n_inputs);
  const tn_function *f = tn__functions_find(state->functions, func->name.data, func->name.size);
  if (f == NULL) return TN_OK;
  size_t n_attrs = func->attrs == NULL ? 0 : func->attrs->n;
  state->budget -= (int64_t)(n_attrs + n_attrs * f->schema.n_attrs / 16); /* attributes are copied and searched */
  tn_operation *call = NULL;
  tn_status st = tn__call_create(op, func, f, &state->arena, &call, err);
  if (st == TN_OK) st = set_callee(c, state, f, call, err);
  if (st == TN_OK) {
    call->n_inputs = op->n_inputs - (uint32_t)first;
    call->inputs = call->n_inputs > 0 ? op->inputs + first : NULL;
    st = tn__op_check_inputs(call, &state->arena, err);
  }
  if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) tn_error_prefix(err, "function '%s'", f->name);
  return st;
}

/* Checks that the function returns as many tensors, of the same types, as the node has outputs. */
static tn_status check_outputs(const callee *c, const tn_operation *op, tn_error *err)
{
  if (c->n_outputs != op->n_outputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "function '%s' returns %zu tensors, but the node has %u outputs",
                        c->f->name, c->n_outputs, op->n_outputs);
  for (size_t i = 0; i < c->n_outputs; i++) {
    tn_dtype found = tn_operation_output_dtype(c->frame.call, i), wanted = tn_operation_output_dtype(op, i);
    if (tn__dtype_base(found) != tn__dtype_base(wanted))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "output %zu of function '%s' has type %s, but that of the node has type %s", i, c->f->name,
                          tn_dtype_name(found), tn_dtype_name(wanted));
  }
  return TN_OK;
}

/* ---- remembered results ---- */

typedef struct key {
  char *data;
  size_t size, room;
  bool failed;
} key;

static void key_put(key *k, const void *data, size_t size)
{
  k->failed = k->failed || !tn__grow((void **)&k->data, &k->room, k->size + size, 1);
  if (k->failed || size == 0) return;
  memcpy(k->data + k->size, data, size);
  k->size += size;
}

void tn__attr_words(const tn__attr *a, int64_t words[3])
{
  words[0] = a->kind;
  words[1] = words[2] = 0;
  switch (a->kind) {
  case TN_ATTR_INT: words[1] = a->v.i; break;
  case TN_ATTR_FLOAT: memcpy(&words[1], &a->v.f, sizeof a->v.f); break;
  case TN_ATTR_BOOL: words[1] = a->v.b; break;
  case TN_ATTR_TYPE: words[1] = a->v.type; break;
  case TN_ATTR_SHAPE: words[1] = (int64_t)(intptr_t)a->v.shape.dims, words[2] = a->v.shape.rank; break;
  case TN_ATTR_TENSOR: words[1] = (int64_t)(intptr_t)a->v.tensor; break;
  case TN_ATTR_FUNC:
    words[1] = (int64_t)(intptr_t)a->v.func.name.data;
    words[2] = (int64_t)(intptr_t)a->v.func.attrs;
    break;
  case TN_ATTR_STRING: words[1] = (int64_t)(intptr_t)a->v.text.data, words[2] = (int64_t)a->v.text.size; break;
  default: words[1] = (int64_t)(intptr_t)a->v.list.items, words[2] = (int64_t)a->v.list.n; break;
  }
}

/* The key of a result: the function, its attribute values, and the facts of the arguments. */
static void make_key(key *k, const callee *c, const tn__value_shape *in)
{
  key_put(k, &c->f, sizeof c->f);
  for (uint32_t i = 0; i < c->f->schema.n_attrs; i++) {
    int64_t words[3];
    tn__attr_words(tn__op_attr(c->frame.call, i), words);
    key_put(k, words, sizeof words);
  }
  for (size_t i = 0; i < c->n_inputs; i++) {
    key_put(k, &in[i].shape.rank, sizeof in[i].shape.rank);
    if (in[i].shape.rank > 0) key_put(k, in[i].shape.dims, (size_t)in[i].shape.rank * sizeof(int64_t));
    key_put(k, &in[i].ints.n, sizeof in[i].ints.n);
    if (in[i].ints.n > 0) key_put(k, in[i].ints.items, (size_t)in[i].ints.n * sizeof(int64_t));
  }
}

/* ---- the body ---- */

static const int64_t *copy_numbers(tn__arena *arena, const int64_t *items, int64_t n, tn_status *st, tn_error *err)
{
  if (n <= 0) return NULL;
  int64_t *to = tn__arena_alloc(arena, (size_t)n * sizeof *to);
  if (to != NULL) return memcpy(to, items, (size_t)n * sizeof *to);
  *st = tn__no_memory(err, "shape", (size_t)n * sizeof *to);
  return NULL;
}

/* Copies the facts of a body's output into the state's arena, because the body is freed before the state. */
static tn_status read_output(tn__call_state *state, tn_output from, tn__value_shape *out, tn_error *err)
{
  const tn__op_shapes *shapes;
  tn_status st = tn__op_shapes_get(from.op, &shapes, err);
  if (st != TN_OK || shapes == NULL) return st;
  const tn__shape *shape = &shapes->outputs[from.index];
  out->shape = (tn__shape){ copy_numbers(&state->arena, shape->dims, shape->rank, &st, err), shape->rank };
  if (st != TN_OK || shapes->ints == NULL) return st;
  const tn__ints *ints = &shapes->ints[from.index];
  out->ints = (tn__ints){ copy_numbers(&state->arena, ints->items, ints->n, &st, err), ints->n };
  return st;
}

/* Infers the outputs of a call from its body. A limit that is reached leaves them unknown; it is not an error. */
static tn_status run_body(const callee *c, const tn__value_shape *in, tn__value_shape *out, tn_error *err)
{
  tn__call_state *state = c->frame.state;
  if (state->exhausted || state->depth == MAX_DEPTH || tn__stack_left() == 0) return TN_OK;
  state->depth++;
  tn__body_graph body;
  tn__call_frame frame = c->frame;
  tn_error why = TN_ERROR_INIT;
  tn_status st = tn__body_graph_begin(&body, c->f, &why);
  if (st == TN_OK) st = tn__body_graph_fill(&body, c->f, &frame, state, in, false, &why);
  for (size_t i = 0; st == TN_OK && i < body.n_outputs; i++) st = read_output(state, body.outputs[i], &out[i], &why);
  tn__body_graph_fini(&body);
  state->depth--;
  if (st != TN_OK && state->exhausted && st != TN_RESOURCE_EXHAUSTED) st = TN_OK;
  if (st != TN_OK && err != NULL) tn_error_copy(err, &why);
  tn_error_clear(&why);
  return st;
}

/* Returns the facts of all outputs of a call, remembered or from its body; in the state's arena. The costs of keys and
 * results are charged to the budget, too: arguments may be many. */
static tn_status run(const callee *c, const tn__value_shape *in, tn__value_shape **out, tn_error *err)
{
  tn__call_state *state = c->frame.state;
  key k = { 0 };
  make_key(&k, c, in);
  state->budget -= (int64_t)(k.size / 256);
  *out = k.failed ? NULL : tn__map_get(&state->memo, k.data, k.size);
  tn_status st = k.failed ? tn__no_memory(err, "shapes of a call", k.size) : TN_OK;
  if (st == TN_OK && *out == NULL) {
    tn__value_shape *mine = tn__arena_array(&state->arena, c->n_outputs + 1, sizeof *mine);
    char *name = tn__arena_string(&state->arena, k.data, k.size);
    if (mine == NULL || name == NULL) st = tn__no_memory(err, "shapes of a call", k.size);
    for (size_t i = 0; st == TN_OK && i < c->n_outputs; i++)
      mine[i] = (tn__value_shape){ { NULL, -1 }, { NULL, -1 } };
    if (st == TN_OK) st = run_body(c, in, mine, err);
    if (st == TN_OK && !tn__map_put(&state->memo, name, k.size, mine, NULL))
      st = tn__no_memory(err, "shapes of a call", k.size);
    state->budget -= (int64_t)((k.size + c->n_outputs * sizeof *mine) / 64);
    *out = mine;
  }
  tn__free(k.data, k.room);
  return st;
}

/* ---- for shape functions ---- */

/* One query of a shape function. A node in a body shares the state of the query that made the body; any other node
 * begins a query of its own. */
typedef struct asker {
  tn_infer_ctx *ctx;
  const tn_operation *op;
  tn__call_state *state, own; /* state points to `own` if the query begins here */
  int64_t budget;             /* of `own` at the start */
  tn_error *err;
} asker;

static void ask(asker *a, tn_infer_ctx *ctx, tn_error *err)
{
  *a = (asker){ .ctx = ctx, .op = tn_infer_operation(ctx), .err = err };
  const tn__call_frame *frame = a->op->graph->frame;
  a->state = frame != NULL && frame->state != NULL ? frame->state : &a->own;
  if (a->state == &a->own) state_init(&a->own, a->op->graph);
  a->budget = a->own.budget;
}

static tn_status asked(asker *a, tn_status st)
{
  if (a->state == &a->own) state_fini(&a->own, a->op->graph, a->budget);
  return st;
}

static tn_status get_inputs(asker *a, size_t first, bool with_ints, tn__value_shape **out)
{
  size_t n = first < a->op->n_inputs ? a->op->n_inputs - first : 0;
  tn__value_shape *in = *out = tn__arena_array(&a->state->arena, n, sizeof *in);
  if (in == NULL) return tn__no_memory(a->err, "shapes of a call", n * sizeof *in);
  for (size_t i = 0; i < n; i++) {
    const int64_t *dims, *items = NULL;
    int32_t rank = tn_infer_input(a->ctx, first + i, &dims);
    in[i].shape = (tn__shape){ dims, rank };
    int64_t n_ints = with_ints ? tn_infer_input_ints(a->ctx, first + i, &items) : -1;
    bool fits = n_ints >= 0 && (rank == 0 ? n_ints == 1 : rank == 1 && dims[0] == n_ints);
    in[i].ints = fits ? (tn__ints){ items, n_ints } : (tn__ints){ NULL, -1 };
  }
  return TN_OK;
}

static tn_status set_outputs(asker *a, const tn__value_shape *values, bool with_ints)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < a->op->n_outputs; i++) {
    st = tn_infer_output(a->ctx, i, values[i].shape.dims, (int32_t)values[i].shape.rank, a->err);
    if (st == TN_OK && with_ints && values[i].ints.n >= 0)
      st = tn_infer_output_ints(a->ctx, i, values[i].ints.items, values[i].ints.n, a->err);
  }
  return st;
}

/* Widens *to to what it has in common with `with`. False: nothing changed. */
static bool join(tn__arena *arena, tn__shape *to, const tn__shape *with)
{
  if (to->rank < 0) return false;
  bool keeps_rank = to->rank == with->rank, same = keeps_rank;
  for (int64_t k = 0; same && k < to->rank; k++) same = to->dims[k] < 0 || to->dims[k] == with->dims[k];
  if (same) return false;
  int64_t *dims = keeps_rank ? tn__arena_alloc(arena, (size_t)to->rank * sizeof *dims) : NULL;
  for (int64_t k = 0; dims != NULL && k < to->rank; k++) dims[k] = to->dims[k] == with->dims[k] ? to->dims[k] : -1;
  *to = (tn__shape){ dims, dims == NULL ? -1 : to->rank }; /* without memory the shape is unknown, which is correct */
  return true;
}

/* Merges an attribute with a list of shapes, empty or one for each output, into the inferred shapes. */
static tn_status merge_given(asker *a, const char *attr, tn__value_shape *values)
{
  const tn__attr *list = attr == NULL ? NULL : tn__op_attr_named(a->op, attr, strlen(attr));
  if (list == NULL || list->kind != TN_ATTR_SHAPE + TN_ATTR_LIST || list->v.list.n == 0) return TN_OK;
  if (list->v.list.n != a->op->n_outputs)
    return tn_error_set(a->err, TN_INVALID_ARGUMENT, "attribute '%s' has %zu shapes, but there are %u outputs", attr,
                        list->v.list.n, a->op->n_outputs);
  const tn__shape *given = list->v.list.items;
  for (size_t i = 0; i < a->op->n_outputs; i++) {
    int64_t dims[TN_MAX_RANK];
    tn__shape both;
    if (!tn__shapes_merge(&values[i].shape, &given[i], dims, &both)) continue; /* the inferred shape wins */
    tn_status st = TN_OK;
    values[i].shape.dims = copy_numbers(&a->state->arena, both.dims, both.rank, &st, a->err);
    values[i].shape.rank = both.rank;
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

static tn_status unknown(asker *a, tn__value_shape **out)
{
  size_t n = a->op->n_outputs;
  *out = tn__arena_array(&a->state->arena, n, sizeof **out);
  if (*out == NULL) return tn__no_memory(a->err, "shapes of a call", n * sizeof **out);
  for (size_t i = 0; i < n; i++) (*out)[i] = (tn__value_shape){ { NULL, -1 }, { NULL, -1 } };
  return TN_OK;
}

/* Item i of an attribute that is a function or a list of functions; NULL past the end. */
static const tn__func *func_of(const asker *a, const char *attr, size_t i)
{
  const tn__attr *value = tn__op_attr_named(a->op, attr, strlen(attr));
  if (value == NULL) return NULL;
  if (value->kind == TN_ATTR_FUNC) return i == 0 ? &value->v.func : NULL;
  bool is_list = value->kind == TN_ATTR_FUNC + TN_ATTR_LIST && i < value->v.list.n;
  return is_list ? (const tn__func *)value->v.list.items + i : NULL;
}

static tn_status own_call(asker *a)
{
  tn__value_shape *in, *out;
  callee c;
  const tn_function *f = tn__functions_find(a->state->functions, a->op->type, strlen(a->op->type));
  if (f == NULL || a->op->schema != &f->schema) return TN_OK;
  tn_status st = set_callee(&c, a->state, f, a->op, a->err);
  if (st == TN_OK) st = get_inputs(a, 0, true, &in);
  if (st == TN_OK) st = run(&c, in, &out, a->err);
  return st == TN_OK ? set_outputs(a, out, true) : st;
}

tn_status tn__infer_own_call(tn_infer_ctx *ctx, tn_error *err)
{
  asker a;
  ask(&a, ctx, err);
  return asked(&a, own_call(&a));
}

static tn_status call(asker *a, const char *attr, size_t first)
{
  tn__value_shape *in, *out;
  callee c;
  const tn__func *func = func_of(a, attr, 0);
  if (func == NULL) return TN_OK;
  tn_status st = find_callee(&c, a->state, a->op, func, first, a->err);
  if (st != TN_OK || c.f == NULL) return st;
  st = check_outputs(&c, a->op, a->err);
  if (st == TN_OK) st = get_inputs(a, first, true, &in);
  if (st == TN_OK) st = run(&c, in, &out, a->err);
  return st == TN_OK ? set_outputs(a, out, true) : st;
}

tn_status tn__infer_call(tn_infer_ctx *ctx, const char *function, size_t first, tn_error *err)
{
  asker a;
  ask(&a, ctx, err);
  return asked(&a, call(&a, function, first));
}

/* ---- branches ---- */

/* Adds a branch. *out is NULL before the first one, then the facts that all branches so far have in common. */
static tn_status add_branch(asker *a, const tn__func *func, const tn__value_shape *in, size_t first,
                            tn__value_shape **out)
{
  callee c;
  tn_status st = find_callee(&c, a->state, a->op, func, first, a->err);
  if (st == TN_OK && c.f == NULL) return unknown(a, out);
  if (st == TN_OK) st = check_outputs(&c, a->op, a->err);
  tn__value_shape *mine, *all = *out;
  if (st == TN_OK) st = run(&c, in, &mine, a->err);
  if (st == TN_OK && all == NULL) st = unknown(a, out);
  for (size_t i = 0; st == TN_OK && i < a->op->n_outputs; i++) {
    if (all == NULL)
      (*out)[i].shape = mine[i].shape;
    else
      join(&a->state->arena, &all[i].shape, &mine[i].shape);
  }
  return st;
}

static tn_status branches(asker *a, const char *const *attrs, size_t n, size_t first, const char *shapes)
{
  tn__value_shape *in, *out = NULL;
  const tn__func *func;
  tn_status st = get_inputs(a, first, true, &in);
  for (size_t k = 0; st == TN_OK && k < n; k++)
    for (size_t i = 0; st == TN_OK && (func = func_of(a, attrs[k], i)) != NULL; i++)
      st = add_branch(a, func, in, first, &out);
  if (st == TN_OK && out == NULL) st = unknown(a, &out);
  if (st == TN_OK) st = merge_given(a, shapes, out);
  return st == TN_OK ? set_outputs(a, out, false) : st;
}

tn_status tn__infer_branches(tn_infer_ctx *ctx, const char *const *functions, size_t n, size_t first,
                             const char *shapes, tn_error *err)
{
  asker a;
  ask(&a, ctx, err);
  return asked(&a, branches(&a, functions, n, first, shapes));
}

/* ---- loops ---- */

/* Widens the shapes of the loop variables until the body keeps them: first dimensions become unknown, later ranks. Each
 * change makes a shape less known, so this ends. */
static tn_status settle(asker *a, const callee *body, tn__value_shape *vars)
{
  bool changed = true;
  for (size_t round = 0; changed; round++) {
    tn__value_shape *out;
    tn_status st = run(body, vars, &out, a->err);
    if (st != TN_OK) return st;
    changed = false;
    for (size_t i = 0; i < a->op->n_outputs; i++) {
      if (!join(&a->state->arena, &vars[i].shape, &out[i].shape)) continue;
      changed = true;
      if (round >= LOOP_ROUNDS) vars[i].shape = (tn__shape){ NULL, -1 };
    }
  }
  return TN_OK;
}

static tn_status loop(asker *a, const char *cond_attr, const char *body_attr, const char *shapes)
{
  const tn__func *cond_func = func_of(a, cond_attr, 0), *body_func = func_of(a, body_attr, 0);
  callee cond = { .f = NULL }, body = { .f = NULL };
  tn__value_shape *vars;
  tn_status st = TN_OK;
  if (cond_func != NULL) st = find_callee(&cond, a->state, a->op, cond_func, 0, a->err);
  if (st == TN_OK && cond.f != NULL && cond.n_outputs != 1)
    st = tn_error_set(a->err, TN_INVALID_ARGUMENT, "the condition, function '%s', returns %zu tensors, wanted one",
                      cond.f->name, cond.n_outputs);
  if (st == TN_OK && body_func != NULL) st = find_callee(&body, a->state, a->op, body_func, 0, a->err);
  if (st == TN_OK && body.f != NULL) st = check_outputs(&body, a->op, a->err);
  if (st == TN_OK && a->op->n_inputs != a->op->n_outputs)
    st = tn_error_set(a->err, TN_INVALID_ARGUMENT, "%u inputs, but %u outputs", a->op->n_inputs, a->op->n_outputs);
  if (st == TN_OK) st = body.f == NULL ? unknown(a, &vars) : get_inputs(a, 0, false, &vars);
  if (st == TN_OK && body.f != NULL) st = settle(a, &body, vars);
  if (st == TN_OK) st = merge_given(a, shapes, vars);
  return st == TN_OK ? set_outputs(a, vars, false) : st;
}

tn_status tn__infer_loop(tn_infer_ctx *ctx, const char *cond, const char *body, const char *shapes, tn_error *err)
{
  asker a;
  ask(&a, ctx, err);
  return asked(&a, loop(&a, cond, body, shapes));
}
