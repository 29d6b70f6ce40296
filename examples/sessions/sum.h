/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the three programs: a graph with the operation "sum" = [1, 2] + [2, 3], and printing
 * its value. */
#ifndef SUM_H
#define SUM_H

#include <stdio.h>
#include <tenon/tenon.h>

static tn_status add_constant(tn_graph *graph, const char *name, float x, float y, tn_output *out, tn_error *err)
{
  const int64_t dims[] = { 2 };
  const float values[] = { x, y };
  tn_tensor *tensor = NULL;
  tn_status status = tn_tensor_from_data(TN_FLOAT, dims, 1, values, sizeof values, &tensor, err);
  if (status != TN_OK) return status;
  tn_operation_builder *b = tn_operation_begin(graph, "Const", name, 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_tensor(b, "value", tensor);
  tn_tensor_unref(tensor);
  out->index = 0;
  return tn_operation_finish(b, &out->op, err);
}

/* Errors of building are returned by tn_operation_finish, so only that is checked. */
static tn_status add_sum(tn_graph *graph, tn_output *sum, tn_error *err)
{
  tn_output a, b;
  tn_status status = add_constant(graph, "a", 1, 2, &a, err);
  if (status == TN_OK) status = add_constant(graph, "b", 2, 3, &b, err);
  if (status != TN_OK) return status;
  tn_operation_builder *builder = tn_operation_begin(graph, "AddV2", "sum", 0);
  tn_operation_add_input(builder, a);
  tn_operation_add_input(builder, b);
  sum->index = 0;
  return tn_operation_finish(builder, &sum->op, err);
}

/* Prints whole numbers as NumPy does. */
static void print_vector(const tn_tensor *vector)
{
  const float *values = tn_tensor_data(vector);
  for (int64_t i = 0; i < tn_tensor_elements(vector); i++) printf("%s%.0f.", i == 0 ? "[" : " ", values[i]);
  printf("]\n");
}

#endif
