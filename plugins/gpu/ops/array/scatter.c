/* SPDX-License-Identifier: Apache-2.0 */
/* Slices stored at indices: ScatterNd ScatterNdNonAliasingAdd, TensorScatterAdd ...Max ...Min ...Sub ...Update.
 *
 * Several updates may have the same place; they are applied in order, as on the CPU. First the place of each update is
 * found, then the next update with the same place; the first update of each place then applies all of them. */
#include "ops/kernel/move.h"

#include <string.h>

enum { DEPTH = 8, MOST = 16384 /* updates: each looks for those of its place among the others */ };
enum { SET, ADD, SUB, MAX, MIN, JOIN };

typedef struct form {
  int step;
  uint32_t indices, updates; /* inputs */
  int64_t n, piece, depth;   /* updates, elements of one, numbers of an index */
  int64_t places;            /* that are counted */
} form;

static int step_of(const char *op)
{
  if (strcmp(op, "ScatterNd") == 0 || strcmp(op, "ScatterNdNonAliasingAdd") == 0) return ADD;
  const char *tail = op + strlen("TensorScatter");
  if (strcmp(tail, "Add") == 0) return ADD;
  if (strcmp(tail, "Sub") == 0) return SUB;
  if (strcmp(tail, "Max") == 0) return MAX;
  return strcmp(tail, "Min") == 0 ? MIN : SET;
}

/* The place of a fault is that of the number among all indices. */
static tn_status explain(const gpu_fault *f, tn_error *err)
{
  const gpu_value *x = &f->inputs[f->limit];
  int64_t depth = x->dims[x->rank - 1], d = f->place % depth;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "index %lld is %lld in dimension %d, wanted one in [0, %lld)",
                      (long long)(f->place / depth), (long long)f->value, (int)d, (long long)f->outputs[0].dims[d]);
}

static gpu_launch *begin(gpu_node *n, const form *f, const char *kernel)
{
  const gpu_value *out = &n->outputs[0];
  const gpu_element *t = f->step == SET ? gpu_element_of(gpu_moved_as(out->dtype)) : gpu_element_of(out->dtype);
  gpu_launch *l = gpu_launch_file(n, "scatter", kernel);
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "C", "%s", t->computed);
  gpu_define(l, "LOAD", "LOAD_%s", t->access);
  gpu_define(l, "STORE", "STORE_%s", t->access);
  gpu_define(l, "ROUND", "ROUND_%s", t->access);
  gpu_define(l, "W", "%s", gpu_sum_type(t));
  gpu_define(l, "J", "%s", gpu_type(n->inputs[f->indices].dtype));
  gpu_define(l, "STEP", "%d", t->kind == GPU_TRUTH ? (int)JOIN : f->step);
  gpu_define(l, "DEPTH", "%d", (int)f->depth);
  if (gpu_attr_text_is(n, "bad_indices_policy", "IGNORE")) gpu_define(l, "IGNORES", "1");
  gpu_define_places(l, f->places);
  return l;
}

static void find_places(gpu_node *n, const form *f, size_t places)
{
  const gpu_value *out = &n->outputs[0];
  gpu_launch *l = begin(n, f, "places");
  gpu_arg_input(l, f->indices);
  gpu_arg_scratch(l, places);
  gpu_arg_place(l, f->places, f->n);
  for (int d = 0; d < DEPTH; d++) gpu_arg_place(l, f->places, d < f->depth ? out->dims[d] : 1);
  gpu_arg_fault(l, explain, f->indices);
  gpu_range_1d(l, f->n, 64);
}

static void put_updates(gpu_node *n, const form *f, size_t places, size_t chain)
{
  gpu_launch *l = begin(n, f, "chain");
  gpu_arg_scratch(l, places);
  gpu_arg_scratch(l, chain);
  gpu_arg_place(l, f->places, f->n);
  gpu_range_1d(l, f->n, 64);
  l = begin(n, f, "put");
  gpu_arg_input(l, f->updates);
  gpu_arg_scratch(l, places);
  gpu_arg_scratch(l, chain);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, f->places, f->n * f->piece);
  gpu_arg_place(l, f->places, f->piece);
  gpu_range_1d(l, f->n * f->piece, 64);
}

static tn_status plan_scatter(gpu_node *n, tn_error *err)
{
  bool zeros = strcmp(tn_operation_type(n->op), "ScatterNd") == 0;
  form f = { .step = step_of(tn_operation_type(n->op)), .indices = zeros ? 0 : 1, .updates = zeros ? 1 : 2, .n = 1 };
  const gpu_value *x = &n->inputs[f.indices], *updates = &n->inputs[f.updates], *out = &n->outputs[0];
  f.depth = x->dims[x->rank - 1];
  f.places = updates->count > out->count ? updates->count : out->count;
  for (int32_t d = 0; d + 1 < x->rank; d++) f.n *= x->dims[d];
  f.piece = f.n > 0 ? updates->count / f.n : 0;
  if (f.depth > DEPTH)
    return gpu_decline(err, "indices of %lld numbers, at most %d are walked", (long long)f.depth, DEPTH);
  if (f.n > MOST) return gpu_decline(err, "%lld updates, at most %d are looked through", (long long)f.n, MOST);
  if (zeros) gpu_clear(n, 0);
  else gpu_copy(n, 0, 0);
  if (updates->count == 0 || out->count == 0) return gpu_node_done(n, err);
  size_t places = gpu_scratch(n, (size_t)f.n * sizeof(cl_long)), chain = gpu_scratch(n, (size_t)f.n * sizeof(cl_long));
  find_places(n, &f, places);
  put_updates(n, &f, places, chain);
  n->cost_ns = (double)f.n * (double)f.n / 100 + (double)(2 * updates->bytes + out->bytes) / 100;
  return gpu_node_done(n, err);
}

#define ORDERED "T=" GPU_FLOATS "|" GPU_INTEGERS
#define INDICES ",Tindices=int32|int64"

extern const gpu_op gpu_scatter_ops[];
const gpu_op gpu_scatter_ops[] = {
  { "ScatterNd", ORDERED "|bool,Tindices=int16|int32|int64", plan_scatter, .host_inputs = 1u << 2 },
  { "ScatterNdNonAliasingAdd", ORDERED "|bool" INDICES, plan_scatter },
  { "TensorScatterAdd", ORDERED INDICES, plan_scatter },
  { "TensorScatterMax", ORDERED INDICES, plan_scatter },
  { "TensorScatterMin", ORDERED INDICES, plan_scatter },
  { "TensorScatterSub", ORDERED INDICES, plan_scatter },
  { "TensorScatterUpdate", "T=" GPU_MOVED ",Tindices=int16|int32|int64|uint16", plan_scatter },
  { NULL },
};
