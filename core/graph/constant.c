/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that the library adds to its own graphs. The op is found by its trait, because this room names no op. */
#include <core/graph/graph_structs.h>

static const tn_op_schema *constant_schema(void)
{
  const tn_op_schema *s;
  for (size_t i = 0; (s = tn_op_schema_at(i)) != NULL; i++)
    if ((tn_op_schema_traits(s) & TN_TRAIT_CONSTANT) && s->n_inputs == 0 && s->n_outputs == 1 &&
        s->outputs[0].type_attr >= 0)
      return s;
  return NULL;
}

tn_status tn__graph_add_constant(tn_graph *graph, const char *name, tn_tensor *tensor, tn_output *out, tn_error *err)
{
  *out = (tn_output){ NULL, 0 };
  const tn_op_schema *s = constant_schema();
  if (s == NULL) return tn_error_set(err, TN_NOT_FOUND, "no op for constants is registered");
  tn_operation_builder *b = tn_operation_begin(graph, s->name, name, 0);
  if (b == NULL) return tn__no_memory(err, "constant", sizeof *b);
  tn_operation_set_tensor(b, s->def->constant_attr, tensor);
  tn_operation_set_type(b, s->attrs[s->outputs[0].type_attr].value.name, tn_tensor_dtype(tensor));
  return tn_operation_finish(b, &out->op, err);
}
