/* SPDX-License-Identifier: Apache-2.0 */
/* Building one operation.
 *
 * A builder collects everything in its own memory. tn_operation_finish first makes the operation there, with all checks
 * and its shape function, without a lock. Then it makes the operation again in the graph's memory, under the graph's
 * lock, where only a duplicate name or a lack of memory can still make it fail. So no callback runs under the lock, and
 * a refused operation leaves no trace in the graph.
 *
 * Setters return no status. The first error is kept in the builder and reported by tn_operation_finish. */
#include <core/graph/functions.h>

#include <stdarg.h>
#include <string.h>

/* ---- the first error, kept until the end ---- */

static tn_status keep(tn_operation_builder *b, tn_status code, const char *format, ...) TN_PRINTF(3, 4);
static tn_status keep(tn_operation_builder *b, tn_status code, const char *format, ...)
{
  char text[512];
  va_list args;
  va_start(args, format);
  tn__vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tn_error_set(&b->error, code, "%s", text); /* does nothing if there is an error already */
}

static void keep_no_memory(tn_operation_builder *b) { tn__no_memory(&b->error, "operation builder", 0); }

static bool is_sound(const tn_operation_builder *b) { return b != NULL && tn_error_code(&b->error) == TN_OK; }

/* ---- begin and end ---- */

/* Looks in the op table, then in the graph's functions, then in plugins that are not loaded yet. */
static void find_schema(tn_operation_builder *b, const char *op)
{
  if (tn__ops_ensure(&b->error) != TN_OK) return;
  b->schema = tn_op_schema_find(op);
  if (b->schema == NULL)
    b->schema = tn__functions_schema(atomic_load_explicit(&b->graph->functions, memory_order_acquire), op, strlen(op));
  if (b->schema == NULL) b->schema = tn__schema_need(op, strlen(op));
  if (b->schema == NULL && (b->flags & TN_BUILD_KEEP_UNKNOWN_OP) == 0)
    tn__op_not_registered(op, &b->error); /* S-GRA-06; does nothing if there is an error already */
  else if (b->schema == NULL && !tn__op_type_is_valid(op, strlen(op)))
    keep(b, TN_INVALID_ARGUMENT, "'%.200s' is not a valid op name", op);
}

static tn__slice copy_text(tn_operation_builder *b, const char *text, size_t size)
{
  tn__slice slice = { tn__arena_string(&b->arena, text, size), size };
  if (slice.data == NULL) {
    keep_no_memory(b);
    return (tn__slice){ "", 0 };
  }
  return slice;
}

tn_operation_builder *tn_operation_begin(tn_graph *graph, const char *op, const char *name, uint32_t flags)
{
  tn_operation_builder *b = tn__zalloc(sizeof *b);
  if (b == NULL) return NULL;
  tn_error_init(&b->error);
  tn__arena_init(&b->arena, 512);
  b->graph = tn_graph_ref(graph);
  b->flags = flags;
  b->device = (tn__slice){ "", 0 };
  b->name = copy_text(b, name == NULL ? "" : name, name == NULL ? 0 : strlen(name));
  b->type = copy_text(b, op == NULL ? "" : op, op == NULL ? 0 : strlen(op));
  if (!is_sound(b)) return b;
  if (graph == NULL)
    keep(b, TN_INVALID_ARGUMENT, "no graph given");
  else if ((flags & ~(uint32_t)(TN_BUILD_KEEP_UNKNOWN_OP | TN__BUILD_FOREIGN_INPUTS)) != 0)
    keep(b, TN_INVALID_ARGUMENT, "unknown flags 0x%x", (unsigned)flags);
  else if (op == NULL || name == NULL)
    keep(b, TN_INVALID_ARGUMENT, "no %s given", op == NULL ? "op" : "name");
  else if (!tn__name_is_valid(b->name.data, b->name.size))
    keep(b, TN_INVALID_ARGUMENT, "the node name is not valid"); /* S-GRA-07 */
  else
    find_schema(b, op);
  return b;
}

void tn_operation_abandon(tn_operation_builder *b)
{
  if (b == NULL) return;
  for (size_t i = 0; i < b->n_attrs; i++) tn__builder_drop_tensors(&b->attrs[i]);
  tn__free(b->attrs, b->attr_room * sizeof *b->attrs);
  tn__free(b->groups, b->group_room * sizeof *b->groups);
  tn__free(b->inputs, b->input_room * sizeof *b->inputs);
  tn__free(b->controls, b->control_room * sizeof *b->controls);
  tn__arena_fini(&b->arena);
  tn_error_clear(&b->error);
  tn_graph_unref(b->graph);
  tn__free(b, sizeof *b);
}

void tn_operation_set_device(tn_operation_builder *b, const char *device)
{
  if (!is_sound(b)) return;
  if (device == NULL) device = "";
  if (tn__device_is_valid(device, strlen(device)))
    b->device = copy_text(b, device, strlen(device));
  else
    keep(b, TN_INVALID_ARGUMENT, "malformed device '%.200s', wanted as '/device:CPU:0'", device); /* S-CFG-06 */
}

/* ---- inputs ---- */

static void add_inputs(tn_operation_builder *b, const tn_output *inputs, size_t n, bool is_list)
{
  if (!is_sound(b)) return;
  if (n > INT32_MAX || !tn__grow((void **)&b->groups, &b->group_room, b->n_groups + 1, sizeof *b->groups) ||
      !tn__grow((void **)&b->inputs, &b->input_room, b->n_inputs + n, sizeof *b->inputs)) {
    keep_no_memory(b);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    tn_operation *op = inputs[i].op;
    if (op == NULL || (op->graph != b->graph && !(b->flags & TN__BUILD_FOREIGN_INPUTS))) {
      keep(b, TN_INVALID_ARGUMENT, "input %zu %s", b->n_inputs + i,
           op == NULL ? "has no operation" : "belongs to another graph");
      return;
    }
    if (inputs[i].index < 0 || (op->schema != NULL && (uint32_t)inputs[i].index >= op->n_outputs)) {
      keep(b, TN_INVALID_ARGUMENT, "input %zu is '%s:%d', but node '%s' (%s) has %u outputs", b->n_inputs + i, op->name,
           (int)inputs[i].index, op->name, op->type, op->n_outputs);
      return;
    }
  }
  if (n > 0) memcpy(b->inputs + b->n_inputs, inputs, n * sizeof *inputs);
  b->groups[b->n_groups++] = (struct tn__input_group){ b->n_inputs, n, is_list };
  b->n_inputs += n;
}

void tn_operation_add_input(tn_operation_builder *b, tn_output input) { add_inputs(b, &input, 1, false); }

void tn_operation_add_input_list(tn_operation_builder *b, const tn_output *inputs, size_t n)
{
  add_inputs(b, inputs, n, true);
}

void tn_operation_add_control_input(tn_operation_builder *b, tn_operation *input)
{
  if (!is_sound(b)) return;
  if (input == NULL || input->graph != b->graph)
    keep(b, TN_INVALID_ARGUMENT, "control input %zu %s", b->n_controls,
         input == NULL ? "is NULL" : "belongs to another graph");
  else if (!tn__grow((void **)&b->controls, &b->control_room, b->n_controls + 1, sizeof *b->controls))
    keep_no_memory(b);
  else
    b->controls[b->n_controls++] = input;
}

/* ---- attributes derived from inputs ---- */

static tn__attr *find_attr(tn_operation_builder *b, const char *name, size_t size)
{
  for (size_t i = 0; i < b->n_attrs; i++)
    if (b->attrs[i].name_size == size && memcmp(b->attrs[i].name, name, size) == 0) return &b->attrs[i];
  return NULL;
}

static void infer_number(tn_operation_builder *b, const tn__attr_spec *spec, const tn__arg_spec *arg, size_t n)
{
  tn__attr *a = find_attr(b, spec->value.name, spec->value.name_size);
  if (a == NULL) {
    tn_operation_set_int(b, spec->value.name, (int64_t)n);
  } else if (a->kind == TN_ATTR_INT && a->v.i != (int64_t)n) {
    keep(b, TN_INVALID_ARGUMENT, "input '%s' has %zu tensors, but attribute '%s' is %lld", arg->name, n,
         spec->value.name, (long long)a->v.i);
  }
}

static tn_dtype base_type(tn_output input)
{
  tn_dtype d = tn_operation_output_dtype(input.op, (size_t)input.index);
  return tn__dtype_base(d);
}

static void infer_type(tn_operation_builder *b, const tn__attr_spec *spec, const tn_output *inputs, size_t n)
{
  /* If it was set explicitly, tn__op_check_inputs compares it with the inputs. */
  if (find_attr(b, spec->value.name, spec->value.name_size) != NULL) return;
  for (size_t i = 0; i < n; i++) {
    tn_dtype d = base_type(inputs[i]);
    if (d == TN_DTYPE_INVALID) continue;
    tn_operation_set_type(b, spec->value.name, d);
    return;
  }
}

/* Sets a list attribute to the types of the inputs, unless one of them is unknown. */
static void infer_types(tn_operation_builder *b, const tn__attr_spec *spec, const tn__arg_spec *arg,
                        const tn_output *inputs, size_t n)
{
  tn__attr *a = find_attr(b, spec->value.name, spec->value.name_size);
  if (a != NULL) {
    if ((a->kind & TN_ATTR_LIST) != 0 && a->v.list.n != n)
      keep(b, TN_INVALID_ARGUMENT, "input '%s' has %zu tensors, but attribute '%s' has %zu types", arg->name, n,
           spec->value.name, a->v.list.n);
    return;
  }
  tn_dtype *types = n == 0 ? NULL : tn__arena_alloc(&b->arena, n * sizeof *types);
  if (n != 0 && types == NULL) {
    keep_no_memory(b);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    types[i] = base_type(inputs[i]);
    if (types[i] == TN_DTYPE_INVALID) return; /* unknown: the program must set the attribute */
  }
  tn_operation_set_types(b, spec->value.name, types, n);
}

/* Sets attributes that the inputs determine: numbers and types. Those that were set explicitly must agree. */
static void infer_attrs(tn_operation_builder *b)
{
  const tn_op_schema *s = b->schema;
  if (b->n_groups != s->n_inputs) {
    keep(b, TN_INVALID_ARGUMENT, "op '%s' takes %u inputs (a list counts as one), found %zu", s->name, s->n_inputs,
         b->n_groups);
    return;
  }
  for (uint32_t k = 0; k < s->n_inputs && is_sound(b); k++) {
    const tn__arg_spec *arg = &s->inputs[k];
    const struct tn__input_group *g = &b->groups[k];
    bool wants_list = arg->number_attr >= 0 || arg->list_attr >= 0;
    if (wants_list != g->is_list) {
      keep(b, TN_INVALID_ARGUMENT, "input '%s' is %s, found %s", arg->name, wants_list ? "a list" : "one tensor",
           g->is_list ? "a list" : "one tensor that was not given as a list");
      return;
    }
    const tn_output *in = g->n > 0 ? b->inputs + g->first : NULL; /* b->inputs may be NULL, and NULL + 0 is undefined */
    if (arg->number_attr >= 0) infer_number(b, &s->attrs[arg->number_attr], arg, g->n);
    if (arg->type_attr >= 0) infer_type(b, &s->attrs[arg->type_attr], in, g->n);
    if (arg->list_attr >= 0) infer_types(b, &s->attrs[arg->list_attr], arg, in, g->n);
  }
}

/* ---- the operation ---- */

/* Makes the operation of a builder in a given arena: first in the builder's, then in the graph's. */
typedef struct maker {
  tn_operation_builder *b;
  tn__arena *arena;
  tn_error *err;
} maker;

static void *copy_bytes(maker *m, const void *from, size_t count, size_t size)
{
  size_t bytes;
  void *to = tn__size_mul(count, size, &bytes) ? tn__arena_alloc(m->arena, bytes) : NULL;
  if (to == NULL) tn__no_memory(m->err, "operation", count * size);
  if (to != NULL && bytes > 0) memcpy(to, from, bytes);
  return to;
}

static bool copy_string(maker *m, tn__slice *text)
{
  text->data = tn__arena_string(m->arena, text->data, text->size);
  if (text->data == NULL) tn__no_memory(m->err, "operation", text->size);
  return text->data != NULL;
}

static bool copy_func(maker *m, tn__func *func)
{
  if (!copy_string(m, &func->name)) return false;
  if (func->attrs == NULL) return true;
  func->attrs = copy_bytes(m, func->attrs, 1, sizeof *func->attrs);
  return func->attrs != NULL && copy_string(m, &func->attrs->proto);
}

static bool copy_shape(maker *m, tn__shape *shape)
{
  if (shape->rank <= 0) return true;
  shape->dims = copy_bytes(m, shape->dims, (size_t)shape->rank, sizeof *shape->dims);
  return shape->dims != NULL;
}

/* Copies only the struct; own_tensors takes the reference to the tensor. */
static bool copy_tensor(maker *m, tn__lazy_tensor **tensor)
{
  *tensor = copy_bytes(m, *tensor, 1, sizeof **tensor);
  return *tensor != NULL;
}

static bool copy_item(maker *m, int32_t kind, void *items, size_t i)
{
  switch (kind) {
  case TN_ATTR_STRING: return copy_string(m, (tn__slice *)items + i);
  case TN_ATTR_FUNC: return copy_func(m, (tn__func *)items + i);
  case TN_ATTR_SHAPE: return copy_shape(m, (tn__shape *)items + i);
  case TN_ATTR_TENSOR: return copy_tensor(m, (tn__lazy_tensor **)items + i);
  default: return true;
  }
}

static bool copy_list(maker *m, tn__attr *a)
{
  int32_t kind = a->kind & ~TN_ATTR_LIST;
  size_t n = a->v.list.n;
  void *items = copy_bytes(m, a->v.list.items, n, tn__attr_item_size(kind));
  a->v.list.items = items;
  for (size_t i = 0; items != NULL && i < n; i++)
    if (!copy_item(m, kind, items, i)) return false;
  return items != NULL;
}

static bool copy_attr(maker *m, tn__attr *a)
{
  tn__slice name = { a->name, a->name_size };
  if (!copy_string(m, &name)) return false;
  a->name = name.data;
  if (a->proto.data != NULL && !copy_string(m, &a->proto)) return false;
  switch (a->kind) {
  case TN_ATTR_STRING:
  case TN_ATTR_PLACEHOLDER: return copy_string(m, &a->v.text);
  case TN_ATTR_FUNC: return copy_func(m, &a->v.func);
  case TN_ATTR_SHAPE: return copy_shape(m, &a->v.shape);
  case TN_ATTR_TENSOR: return copy_tensor(m, &a->v.tensor);
  default: return (a->kind & TN_ATTR_LIST) == 0 || copy_list(m, a);
  }
}

/* Fills in op, whose graph and id are set, from the builder. Allocates in m->arena. */
static tn_status make(maker *m, tn_operation *op)
{
  tn_operation_builder *b = m->b;
  tn__slice name = b->name, type = b->type, device = b->device;
  op->schema = b->schema;
  op->traits = b->schema == NULL ? 0 : b->schema->traits;
  op->attrs = copy_bytes(m, b->attrs, b->n_attrs, sizeof *b->attrs);
  op->inputs = copy_bytes(m, b->inputs, b->n_inputs, sizeof *b->inputs);
  op->controls = copy_bytes(m, b->controls, b->n_controls, sizeof *b->controls);
  if (op->attrs == NULL || op->inputs == NULL || op->controls == NULL || !copy_string(m, &name) ||
      (b->schema == NULL && !copy_string(m, &type)) || (device.size > 0 && !copy_string(m, &device)))
    return TN_RESOURCE_EXHAUSTED;
  op->name = name.data;
  op->name_size = (uint32_t)name.size;
  op->hash = tn__hash(name.data, name.size);
  op->type = b->schema == NULL ? type.data : b->schema->name;
  op->device = device.size > 0 ? device.data : ""; /* an empty device was not copied */
  if (device.size > 0) atomic_store_explicit(&b->graph->names_devices, true, memory_order_relaxed);
  op->n_inputs = (uint32_t)b->n_inputs;
  op->n_controls = (uint32_t)b->n_controls;
  op->n_attrs = (uint32_t)b->n_attrs;
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (!copy_attr(m, &op->attrs[i])) return TN_RESOURCE_EXHAUSTED;
  tn_status st = tn__op_check_attrs(op, m->arena, m->err);
  if (st == TN_OK) st = tn__op_set_outputs(op, m->arena, m->err);
  if (st == TN_OK) st = tn__op_check_inputs(op, m->arena, m->err);
  return st;
}

/* ---- adding it to the graph ---- */

/* The references that the graph has to the tensors in an operation's attributes. */
typedef struct tensor_owner {
  tn__owned owned;
  size_t n;
  tn_tensor *tensors[];
} tensor_owner;

static void free_owner(tn__owned *owned)
{
  tensor_owner *o = (tensor_owner *)owned;
  for (size_t i = 0; i < o->n; i++) tn_tensor_unref(o->tensors[i]);
  tn__free(o, sizeof *o + o->n * sizeof *o->tensors);
}

static size_t count_tensors(const tn__attr *a)
{
  if (a->kind == TN_ATTR_TENSOR) return 1;
  return a->kind == TN_ATTR_TENSOR + TN_ATTR_LIST ? a->v.list.n : 0;
}

/* Takes a reference to each tensor in op's attributes. NULL: there are none, or out of memory (*failed). */
static tensor_owner *own_tensors(const tn_operation *op, bool *failed)
{
  size_t n = 0;
  for (uint32_t i = 0; i < op->n_attrs; i++) n += count_tensors(&op->attrs[i]);
  *failed = false;
  if (n == 0) return NULL;
  tensor_owner *o = tn__alloc_array(1, sizeof *o + n * sizeof *o->tensors);
  *failed = o == NULL;
  if (o == NULL) return NULL;
  o->owned.free = free_owner;
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    const tn__attr *a = &op->attrs[i];
    size_t k = count_tensors(a);
    for (size_t j = 0; j < k; j++) {
      tn__lazy_tensor *t = a->kind == TN_ATTR_TENSOR ? a->v.tensor : ((tn__lazy_tensor *const *)a->v.list.items)[j];
      o->tensors[o->n++] = tn_tensor_ref(atomic_load(&t->tensor));
    }
  }
  return o;
}

/* Makes and publishes the operation, or restores the graph. The graph's lock is held for writing. */
static tn_status add_locked(tn_operation_builder *b, tn_operation **out, tn_error *err)
{
  tn_graph *g = b->graph;
  tn_status st = tn__graph_reserve(g, 1, err);
  if (st != TN_OK) return st;
  tn__arena_mark mark = tn__arena_get_mark(&g->arena);
  maker m = { b, &g->arena, err };
  tn_operation *op = tn__graph_stage(g);
  tensor_owner *owner = NULL;
  bool failed;
  st = make(&m, op);
  if (st == TN_OK) {
    owner = own_tensors(op, &failed);
    if (failed) st = tn__no_memory(err, "operation", 0);
  }
  if (st == TN_OK && !tn__graph_index_add(g, op))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "the graph has a node of this name"); /* S-GRA-08 */
  if (st != TN_OK) {
    if (owner != NULL) free_owner(&owner->owned);
    tn__graph_unstage(g, op->id, 0);
    tn__arena_rewind(&g->arena, mark);
    return st;
  }
  if (owner != NULL) tn__graph_own(g, &owner->owned);
  tn__graph_publish(g);
  *out = op;
  return TN_OK;
}

/* Makes the operation in the builder's memory, to check everything but the uniqueness of the name. */
static tn_status try_out(tn_operation_builder *b)
{
  tn_operation op;
  memset(&op, 0, sizeof op);
  op.graph = b->graph;
  maker m = { b, &b->arena, &b->error };
  tn_status st = make(&m, &op);
  return st == TN_OK ? tn__operation_check_shapes(&op, &b->error) : st;
}

tn_status tn_operation_finish(tn_operation_builder *b, tn_operation **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (b == NULL) return tn__no_memory(err, "operation builder", sizeof *b);
  if (is_sound(b) && b->schema != NULL) infer_attrs(b);
  tn_operation *op = NULL;
  if (is_sound(b) && try_out(b) == TN_OK) {
    tn__rwlock_write(&b->graph->lock);
    add_locked(b, &op, &b->error);
    tn__rwlock_unlock(&b->graph->lock);
  }
  tn_status st = tn_error_code(&b->error);
  if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) {
    tn_error_prefix(&b->error, "node '%s' (%s)", b->name.data, b->type.data);
    tn_error_set_node(&b->error, b->name.data);
  }
  if (st != TN_OK && err != NULL) tn_error_copy(err, &b->error);
  if (st == TN_OK && out != NULL) *out = op;
  tn_operation_abandon(b);
  return st;
}
