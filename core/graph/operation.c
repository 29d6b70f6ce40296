/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an operation: names, edges, types. No lock is needed, because a published operation never changes. */
#include <core/graph/graph_structs.h>

#include <string.h>

const char *tn_operation_name(const tn_operation *op) { return op == NULL ? "" : op->name; }
const char *tn_operation_type(const tn_operation *op) { return op == NULL ? "" : op->type; }
const char *tn_operation_device(const tn_operation *op) { return op == NULL ? "" : op->device; }
const tn_op_schema *tn_operation_schema(const tn_operation *op) { return op == NULL ? NULL : op->schema; }

uint32_t tn__operation_id(const tn_operation *op) { return op->id; }
tn_graph *tn__operation_graph(const tn_operation *op) { return op->graph; }
const char *tn__operation_own_name(const tn_operation *op) { return op->name + op->graph->path_size; }
bool tn__operation_is_own(const tn_operation *op) { return op->schema != NULL && op->schema->is_own; }
uint32_t tn__operation_traits(const tn_operation *op) { return op->traits; }

const tn_output *tn__operation_inputs(const tn_operation *op, size_t *n)
{
  *n = op->n_inputs;
  return op->inputs;
}

tn_operation *const *tn__operation_control_inputs(const tn_operation *op, size_t *n)
{
  *n = op->n_controls;
  return op->controls;
}

size_t tn_operation_n_inputs(const tn_operation *op) { return op == NULL ? 0 : op->n_inputs; }

tn_output tn_operation_input(const tn_operation *op, size_t i)
{
  return op != NULL && i < op->n_inputs ? op->inputs[i] : (tn_output){ NULL, 0 };
}

size_t tn_operation_n_control_inputs(const tn_operation *op) { return op == NULL ? 0 : op->n_controls; }

tn_operation *tn_operation_control_input(const tn_operation *op, size_t i)
{
  return op != NULL && i < op->n_controls ? op->controls[i] : NULL;
}

size_t tn_operation_n_outputs(const tn_operation *op) { return op == NULL ? 0 : op->n_outputs; }

/* ---- types ---- */

size_t tn__arg_count(const tn_operation *op, const tn__arg_spec *arg)
{
  if (arg->number_attr >= 0)
    return (size_t)tn__op_attr(op, (uint32_t)arg->number_attr)->v.i; /* not negative: the schema has a minimum */
  if (arg->list_attr >= 0) return tn__op_attr(op, (uint32_t)arg->list_attr)->v.list.n;
  return 1;
}

bool tn__operation_is_shape_operand(const tn_operation *op, uint32_t i)
{
  const tn_op_schema *s = op->schema;
  if (s == NULL || s->shape_operands == 0) return false;
  if (s->plain_inputs) return i < 32 && (s->shape_operands >> i & 1);
  for (uint32_t arg = 0; arg < s->n_inputs && arg < 32; arg++) {
    size_t n = tn__arg_count(op, &s->inputs[arg]);
    if (i < n) return s->shape_operands >> arg & 1;
    i -= (uint32_t)n;
  }
  return false;
}

tn_dtype tn__arg_dtype(const tn_operation *op, const tn__arg_spec *arg, size_t i)
{
  tn_dtype d = arg->dtype;
  if (arg->type_attr >= 0)
    d = tn__op_attr(op, (uint32_t)arg->type_attr)->v.type;
  else if (arg->list_attr >= 0)
    d = ((const tn_dtype *)tn__op_attr(op, (uint32_t)arg->list_attr)->v.list.items)[i];
  return arg->is_ref && !tn__dtype_is_ref(d) ? d + TN_DTYPE_REF : d;
}

tn_dtype tn_operation_output_dtype(const tn_operation *op, size_t i)
{
  if (op == NULL || i >= op->n_outputs) return TN_DTYPE_INVALID;
  if (op->output_dtypes != NULL) return op->output_dtypes[i];
  for (uint32_t k = 0; k < op->schema->n_outputs; k++) {
    size_t n = tn__arg_count(op, &op->schema->outputs[k]);
    if (i < n) return tn__arg_dtype(op, &op->schema->outputs[k], i);
    i -= n;
  }
  return TN_DTYPE_INVALID;
}

tn_dtype tn_operation_input_dtype(const tn_operation *op, size_t i)
{
  if (op == NULL || i >= op->n_inputs) return TN_DTYPE_INVALID;
  if (op->schema != NULL) return op->input_dtypes[i];
  return tn_operation_output_dtype(op->inputs[i].op, (size_t)op->inputs[i].index);
}

/* The range of tensors of the argument `name`: *n of them from *first on. */
static tn_status arg_range(const tn_operation *op, const char *which, const tn__arg_spec *args, uint32_t n_args,
                           const char *name, size_t *first, size_t *n, tn_error *err)
{
  size_t at = 0, size = strlen(name);
  for (uint32_t k = 0; k < n_args; k++) {
    size_t count = tn__arg_count(op, &args[k]);
    if (args[k].name_size == size && memcmp(args[k].name, name, size) == 0) {
      *first = at;
      *n = count;
      return TN_OK;
    }
    at += count;
  }
  return tn_error_set(err, TN_NOT_FOUND, "node '%s': op '%s' has no %s '%s'", op->name, op->type, which, name);
}

static tn_status range(const tn_operation *op, bool outputs, const char *arg, size_t *first, size_t *n, tn_error *err)
{
  size_t dummy;
  if (first == NULL) first = &dummy;
  if (n == NULL) n = &dummy;
  *first = *n = 0;
  if (op == NULL || arg == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "no operation or no argument name given");
  const char *which = outputs ? "output" : "input";
  if (op->schema == NULL)
    return tn_error_set(err, TN_NOT_FOUND, "node '%s': op '%s' is not registered, so its %ss have no names", op->name,
                        op->type, which);
  const tn_op_schema *s = op->schema;
  return arg_range(op, which, outputs ? s->outputs : s->inputs, outputs ? s->n_outputs : s->n_inputs, arg, first, n,
                   err);
}

tn_status tn_operation_input_range(const tn_operation *op, const char *arg, size_t *first, size_t *n, tn_error *err)
{
  tn__error_reset(err);
  return range(op, false, arg, first, n, err);
}

tn_status tn_operation_output_range(const tn_operation *op, const char *arg, size_t *first, size_t *n, tn_error *err)
{
  tn__error_reset(err);
  return range(op, true, arg, first, n, err);
}
