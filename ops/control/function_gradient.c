/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of functions for which the library names none. The function's body is traversed from
 * its outputs back to its arguments, adding the gradient nodes of each node on the way. A table
 * holds the gradient of each op. */
#include <ops/control/function_gradient.h>

#include <core/base/alloc.h>
#include <core/tensor/tensor_internal.h>
#include <string.h>

typedef struct maker {
  tn_graph *graph;
  const char *function;
  tn_output *of;   /* gradient so far of each output of the body's operations; no op = none */
  size_t *first;   /* by operation: its first output in `of` */
  size_t n_ops;    /* operations of the body; later ones are added here */
  size_t n_outputs;
  uint32_t n_made;
  tn_status status;
  tn_error *err;
} maker;

static const tn_output none;

/* ---- new nodes ---- */

static tn_operation_builder *begin(maker *m, const char *op)
{
  char name[32];
  tn__snprintf(name, sizeof name, "gradient/%u", (unsigned)m->n_made++);
  return tn_operation_begin(m->graph, op, name, 0);
}

/* Returns output 0; no op after a failure. */
static tn_output finish(maker *m, tn_operation_builder *b)
{
  tn_operation *op = NULL;
  tn_status st = tn_operation_finish(b, &op, m->err);
  if (m->status == TN_OK) m->status = st;
  return (tn_output){ op, 0 };
}

static tn_output op1(maker *m, const char *type, tn_output x)
{
  if (x.op == NULL) return none;
  tn_operation_builder *b = begin(m, type);
  tn_operation_add_input(b, x);
  return finish(m, b);
}

static tn_output op2(maker *m, const char *type, tn_output x, tn_output y)
{
  if (x.op == NULL || y.op == NULL) return none;
  tn_operation_builder *b = begin(m, type);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, y);
  return finish(m, b);
}

static tn_output product(maker *m, tn_output a, bool transpose_a, tn_output b, bool transpose_b)
{
  if (a.op == NULL || b.op == NULL) return none;
  tn_operation_builder *builder = begin(m, "MatMul");
  tn_operation_add_input(builder, a);
  tn_operation_add_input(builder, b);
  tn_operation_set_bool(builder, "transpose_a", transpose_a);
  tn_operation_set_bool(builder, "transpose_b", transpose_b);
  return finish(m, builder);
}

static tn_output cast(maker *m, tn_output x, tn_dtype to)
{
  tn_operation_builder *b = begin(m, "Cast");
  tn_operation_add_input(b, x);
  tn_operation_set_type(b, "DstT", to);
  return finish(m, b);
}

static tn_output placeholder(maker *m, tn_dtype dtype)
{
  tn_operation_builder *b = begin(m, "Placeholder");
  tn_operation_set_type(b, "dtype", dtype);
  return finish(m, b);
}

/* ---- gradients of ops ---- */

static bool is_differentiable(tn_output o)
{
  tn_dtype d = tn_operation_output_dtype(o.op, (size_t)o.index);
  return d == TN_FLOAT || d == TN_DOUBLE || d == TN_HALF || d == TN_BFLOAT16;
}

/* Adds to the gradient of a value. Values of integer type have none. */
static void add(maker *m, tn_output to, tn_output gradient)
{
  tn_dtype dtype = tn_operation_output_dtype(to.op, (size_t)to.index);
  if (dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128)
    m->status =
        tn_error_set(m->err, TN_UNIMPLEMENTED, "function '%s': no gradients of complex values are known (node '%s')",
                     m->function, tn_operation_name(to.op));
  if (gradient.op == NULL || !is_differentiable(to)) return;
  tn_output *sum = &m->of[m->first[tn__operation_id(to.op)] + (size_t)to.index];
  *sum = sum->op == NULL ? gradient : op2(m, "AddV2", *sum, gradient);
}

/* Adds to the gradient of operand k of two that were broadcast; `gradient` has the result's shape. */
static void add_broadcast(maker *m, const tn_operation *op, int k, tn_output gradient)
{
  tn_output shape[2];
  for (size_t i = 0; i < 2; i++) shape[i] = op1(m, "Shape", tn_operation_input(op, i));
  tn_output axes = op2(m, "BroadcastGradientArgs", shape[0], shape[1]);
  if (axes.op == NULL || gradient.op == NULL) return;
  axes.index = k;
  tn_output sum = op2(m, "Sum", gradient, axes);
  add(m, tn_operation_input(op, (size_t)k), op2(m, "Reshape", sum, shape[k]));
}

#define RULE(name) static void name(maker *m, tn_operation *op, tn_output dy)
#define IN(i) tn_operation_input(op, i)
#define OUT ((tn_output){ op, 0 })

RULE(of_identity) { add(m, IN(0), dy); }
RULE(of_nothing) { (void)m, (void)op, (void)dy; }
RULE(of_neg) { add(m, IN(0), op1(m, "Neg", dy)); }
RULE(of_exp) { add(m, IN(0), op2(m, "Mul", dy, OUT)); }
RULE(of_log) { add(m, IN(0), op2(m, "RealDiv", dy, IN(0))); }
RULE(of_sin) { add(m, IN(0), op2(m, "Mul", dy, op1(m, "Cos", IN(0)))); }
RULE(of_cos) { add(m, IN(0), op1(m, "Neg", op2(m, "Mul", dy, op1(m, "Sin", IN(0))))); }
RULE(of_tanh) { add(m, IN(0), op2(m, "TanhGrad", OUT, dy)); }
RULE(of_sigmoid) { add(m, IN(0), op2(m, "SigmoidGrad", OUT, dy)); }
RULE(of_relu) { add(m, IN(0), op2(m, "ReluGrad", dy, OUT)); }
RULE(of_sqrt) { add(m, IN(0), op2(m, "SqrtGrad", OUT, dy)); }
RULE(of_reshape) { add(m, IN(0), op2(m, "Reshape", dy, op1(m, "Shape", IN(0)))); }
RULE(of_cast) { if (is_differentiable(IN(0))) add(m, IN(0), cast(m, dy, tn_operation_input_dtype(op, 0))); }

RULE(of_square)
{
  tn_output half = op2(m, "Mul", dy, IN(0));
  add(m, IN(0), op2(m, "AddV2", half, half));
}

RULE(of_add)
{
  for (int k = 0; k < 2; k++) add_broadcast(m, op, k, dy);
}

RULE(of_sub)
{
  add_broadcast(m, op, 0, dy);
  add_broadcast(m, op, 1, op1(m, "Neg", dy));
}

RULE(of_mul)
{
  add_broadcast(m, op, 0, op2(m, "Mul", dy, IN(1)));
  add_broadcast(m, op, 1, op2(m, "Mul", IN(0), dy));
}

RULE(of_div)
{
  add_broadcast(m, op, 0, op2(m, "RealDiv", dy, IN(1)));
  add_broadcast(m, op, 1, op1(m, "Neg", op2(m, "Mul", dy, op2(m, "RealDiv", OUT, IN(1)))));
}

RULE(of_add_n)
{
  for (size_t i = 0; i < tn_operation_n_inputs(op); i++) add(m, IN(i), dy);
}

RULE(of_mat_mul)
{
  tn_bool a = 0, b = 0;
  tn_operation_attr_bool(op, "transpose_a", &a, NULL);
  tn_operation_attr_bool(op, "transpose_b", &b, NULL);
  add(m, IN(0), a ? product(m, IN(1), b, dy, true) : product(m, dy, false, IN(1), !b));
  add(m, IN(1), b ? product(m, dy, true, IN(0), a) : product(m, IN(0), !a, dy, false));
}

static const struct {
  const char *op;
  void (*rule)(maker *m, tn_operation *op, tn_output dy);
} rules[] = {
  { "Add", of_add },           { "AddN", of_add_n },        { "AddV2", of_add },
  { "Cast", of_cast },         { "Cos", of_cos },           { "Div", of_div },
  { "Exp", of_exp },           { "Identity", of_identity }, { "Log", of_log },
  { "MatMul", of_mat_mul },    { "Mul", of_mul },           { "Neg", of_neg },
  { "OnesLike", of_nothing },  { "RealDiv", of_div },       { "Relu", of_relu },
  { "Reshape", of_reshape },   { "Sigmoid", of_sigmoid },   { "Sin", of_sin },
  { "Sqrt", of_sqrt },         { "Square", of_square },     { "StopGradient", of_nothing },
  { "Sub", of_sub },           { "Tanh", of_tanh },         { "ZerosLike", of_nothing },
};

/* ---- traversal ---- */

static void apply(maker *m, tn_operation *op)
{
  const tn_output dy = m->of[m->first[tn__operation_id(op)]];
  bool any = false;
  for (size_t k = 0; k < tn_operation_n_outputs(op); k++) any |= m->of[m->first[tn__operation_id(op)] + k].op != NULL;
  if (!any || tn_operation_n_inputs(op) == 0) return; /* an argument or a constant, or not reached */
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    if (strcmp(rules[i].op, tn_operation_type(op)) != 0) continue;
    rules[i].rule(m, op, dy);
    return;
  }
  m->status = tn_error_set(m->err, TN_UNIMPLEMENTED, "function '%s': no gradient of op '%s' (node '%s') is known",
                           m->function, tn_operation_type(op), tn_operation_name(op));
}

typedef struct place {
  tn_operation *op;
  size_t next;
} place;

/* Lists the operations that the outputs depend on, each after those that it depends on itself. The
 * only cycles of a body are those of loops, whose ops have no gradient here. */
static size_t order(const tn__function_instance *f, place *stack, uint8_t *seen, tn_operation **to)
{
  size_t n = 0;
  for (size_t i = 0; i < f->n_outputs; i++) {
    size_t depth = 0;
    if (seen[tn__operation_id(f->outputs[i].op)]) continue;
    seen[tn__operation_id(f->outputs[i].op)] = 1;
    stack[depth++] = (place){ f->outputs[i].op, 0 };
    while (depth > 0) {
      place *at = &stack[depth - 1];
      if (at->next == tn_operation_n_inputs(at->op)) {
        to[n++] = at->op;
        depth--;
        continue;
      }
      tn_operation *from = tn_operation_input(at->op, at->next++).op;
      if (seen[tn__operation_id(from)]) continue;
      seen[tn__operation_id(from)] = 1;
      stack[depth++] = (place){ from, 0 };
    }
  }
  return n;
}

static tn_status go_back(maker *m, const tn__function_instance *f)
{
  size_t n = m->n_ops + 1;
  place *stack = tn__alloc_array(n, sizeof *stack);
  uint8_t *seen = tn__alloc_array(n, sizeof *seen);
  tn_operation **ops = tn__alloc_array(n, sizeof *ops);
  if (stack == NULL || seen == NULL || ops == NULL) {
    m->status = tn__no_memory(m->err, "gradient of a function", 0);
  } else {
    for (size_t k = order(f, stack, seen, ops); m->status == TN_OK && k-- > 0;) apply(m, ops[k]);
  }
  tn__free(stack, n * sizeof *stack);
  tn__free(seen, n * sizeof *seen);
  tn__free(ops, n * sizeof *ops);
  return m->status;
}

/* ---- the function ---- */

/* Changes the signature: the gradients of the outputs become further arguments, those of the
 * arguments the outputs. */
static tn_status change(maker *m, tn__function_instance *f)
{
  size_t n_in = f->n_inputs, n_out = f->n_outputs;
  tn_output *inputs = tn__alloc_array(n_in + n_out + 1, sizeof *inputs);
  tn_output *outputs = tn__alloc_array(n_in + 1, sizeof *outputs);
  if (inputs == NULL || outputs == NULL) m->status = tn__no_memory(m->err, "gradient of a function", 0);
  for (size_t i = 0; m->status == TN_OK && i < n_in; i++) inputs[i] = f->inputs[i];
  for (size_t i = 0; m->status == TN_OK && i < n_out; i++) {
    const tn_output o = f->outputs[i];
    inputs[n_in + i] = placeholder(m, tn_operation_output_dtype(o.op, (size_t)o.index));
    add(m, o, inputs[n_in + i]);
  }
  if (m->status == TN_OK) go_back(m, f);
  for (size_t i = 0; m->status == TN_OK && i < n_in; i++) {
    tn_output g = m->of[m->first[tn__operation_id(f->inputs[i].op)] + (size_t)f->inputs[i].index];
    outputs[i] = g.op != NULL ? g : op1(m, "ZerosLike", f->inputs[i]);
  }
  if (m->status == TN_OK) m->status = tn__function_set_signature(f, inputs, n_in + n_out, outputs, n_in, m->err);
  tn__free(inputs, (n_in + n_out + 1) * sizeof *inputs);
  tn__free(outputs, (n_in + 1) * sizeof *outputs);
  return m->status;
}

tn_status tn__function_gradient(tn__function_instance *f, tn_error *err)
{
  maker m = { .graph = f->graph, .function = f->name, .n_ops = tn_graph_n_operations(f->graph), .err = err };
  m.first = tn__alloc_array(m.n_ops + 1, sizeof *m.first);
  for (size_t i = 0; m.first != NULL && i < m.n_ops; i++) {
    m.first[i] = m.n_outputs;
    m.n_outputs += tn_operation_n_outputs(tn_graph_operation(f->graph, i));
  }
  m.of = tn__alloc_array(m.n_outputs + 1, sizeof *m.of);
  tn_status st = m.first == NULL || m.of == NULL ? tn__no_memory(err, "gradient of a function", 0) : change(&m, f);
  tn__free(m.first, (m.n_ops + 1) * sizeof *m.first);
  tn__free(m.of, (m.n_outputs + 1) * sizeof *m.of);
  return st;
}
