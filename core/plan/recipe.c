/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes of large constants (recipe.h). */
#include <core/plan/recipe.h>

#include <string.h>

#define MAX_DEPTH 32 /* maximum nesting of recipes: they are followed recursively */

struct tn__recipe {
  _Atomic uint32_t refs;
  const tn_operation *op; /* computes the constant, or is a Const */
  tn_graph *graph;        /* has the operation; owned reference */
  tn_tensor *outline;     /* dtype and shape of the constant, no elements; owned reference */
  uint32_t output;        /* of the operation */
  uint32_t n_inputs;      /* 0 = a constant of the graph */
  uint32_t depth;         /* maximum number of recipes below this one */
  tn__ingredient inputs[]; /* owned references */
};

static size_t size_of(uint32_t n) { return sizeof(tn__recipe) + (size_t)n * sizeof(tn__ingredient); }

tn__recipe *tn__recipe_create(const tn_operation *op, uint32_t output, const tn__ingredient *inputs, uint32_t n,
                            const tn_tensor *like)
{
  if (like->bytes < TN__LARGE_CONSTANT || tn__dtype_is_managed(like->dtype)) return NULL;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < n; i++) {
    const tn__ingredient *in = &inputs[i];
    if (in->recipe == NULL && in->tensor->bytes >= TN__LARGE_CONSTANT) return NULL; /* holds more than it frees */
    if (in->recipe != NULL && in->recipe->depth >= depth) depth = in->recipe->depth + 1;
  }
  tn__recipe *r = depth > MAX_DEPTH ? NULL : tn__zalloc(size_of(n));
  if (r == NULL) return NULL;
  if (tn__tensor_outline(like->dtype, like->dims, like->rank, like->count, like->bytes, &r->outline, NULL) != TN_OK) {
    tn__free(r, size_of(n));
    return NULL;
  }
  atomic_init(&r->refs, 1);
  r->op = op;
  r->graph = tn_graph_ref(tn__operation_graph(op));
  r->output = output;
  r->n_inputs = n;
  r->depth = depth;
  for (uint32_t i = 0; i < n; i++) {
    r->inputs[i].recipe = tn__recipe_ref(inputs[i].recipe);
    if (inputs[i].recipe == NULL) r->inputs[i].tensor = tn_tensor_ref(inputs[i].tensor);
  }
  return r;
}

tn__recipe *tn__recipe_ref(tn__recipe *r)
{
  if (r != NULL) atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
  return r;
}

void tn__recipe_unref(tn__recipe *r)
{
  if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; i < r->n_inputs; i++) {
    tn__recipe_unref(r->inputs[i].recipe);
    tn_tensor_unref(r->inputs[i].tensor);
  }
  tn_tensor_unref(r->outline);
  tn_graph_unref(r->graph);
  tn__free(r, size_of(r->n_inputs));
}

static bool same_tensors(const tn_tensor *a, const tn_tensor *b)
{
  if (a == b) return true;
  if (a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes || tn__dtype_is_managed(a->dtype))
    return false;
  if (a->rank > 0 && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0) return false;
  return a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0;
}

bool tn__recipe_same(const tn__recipe *a, const tn__recipe *b)
{
  if (a == b) return true;
  if (a->outline->bytes != b->outline->bytes || a->output != b->output || a->n_inputs != b->n_inputs ||
      a->depth != b->depth)
    return false;
  if (a->n_inputs == 0) return a->op == b->op;
  if (!tn__operation_same_attrs(a->op, b->op)) return false;
  for (uint32_t i = 0; i < a->n_inputs; i++) {
    const tn__ingredient *x = &a->inputs[i], *y = &b->inputs[i];
    if ((x->recipe == NULL) != (y->recipe == NULL)) return false;
    if (x->recipe != NULL ? !tn__recipe_same(x->recipe, y->recipe) : !same_tensors(x->tensor, y->tensor)) return false;
  }
  return true;
}

/* Allocates the result before the inputs: they are released first, and leave no hole in the heap below the result.
 * Leaves *out NULL for an operation with several outputs. */
static tn_status make_room(const tn__recipe *r, tn_tensor **out, tn_error *err)
{
  const tn_tensor *o = r->outline;
  *out = NULL;
  return tn_operation_n_outputs(r->op) == 1 ? tn_tensor_create(o->dtype, o->dims, o->rank, out, err) : TN_OK;
}

/* Stores the inputs, then the outputs of the operation in `tensors`. The caller releases them, also after a failure. */
static tn_status compute(const tn__recipe *r, tn__evaluate_fn evaluate, tn_tensor **tensors, tn_error *err)
{
  tn_tensor **outputs = tensors + r->n_inputs, *room;
  tn_status st = make_room(r, &room, err);
  for (uint32_t i = 0; st == TN_OK && i < r->n_inputs; i++) {
    const tn__ingredient *in = &r->inputs[i];
    if (in->recipe == NULL) tensors[i] = tn_tensor_ref(in->tensor);
    else st = tn__recipe_follow(in->recipe, evaluate, &tensors[i], err);
  }
  outputs[0] = room;
  if (st == TN_OK)
    st = evaluate(r->op, tensors, r->n_inputs, outputs, tn_operation_n_outputs(r->op), NULL, err);
  if (st != TN_OK) {
    outputs[0] = NULL;
    tn_tensor_unref(room);
  }
  return st;
}

tn_status tn__recipe_follow(const tn__recipe *r, tn__evaluate_fn evaluate, tn_tensor **out, tn_error *err)
{
  *out = NULL;
  if (r->n_inputs == 0) return tn__operation_take_constant(r->op, false, out, err);
  size_t n = r->n_inputs + tn_operation_n_outputs(r->op);
  tn_tensor **tensors = tn__alloc_array(n, sizeof *tensors);
  if (tensors == NULL) return tn__no_memory(err, "constant", r->outline->bytes);
  tn_status st = compute(r, evaluate, tensors, err);
  if (st == TN_OK && tensors[r->n_inputs + r->output]->bytes != r->outline->bytes)
    st = tn_error_set(err, TN_INTERNAL, "node '%s': a constant of %zu bytes has another size when computed again",
                      tn_operation_name(r->op), r->outline->bytes);
  if (st == TN_OK) *out = tn_tensor_ref(tensors[r->n_inputs + r->output]);
  for (size_t i = 0; i < n; i++) tn_tensor_unref(tensors[i]);
  tn__free(tensors, n * sizeof *tensors);
  return st;
}
