/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs: built, launched, and read from _TnElementwise, the planner's fused chains. */
#include "ops/elementwise/elementwise.h"

#include <stdio.h>
#include <string.h>

/* ---- building ---- */

tn_status gpu_ew_begin(gpu_ew *e, gpu_node *n, uint32_t output, tn_error *err)
{
  return gpu_ew_begin_as(e, n, output, &n->outputs[output], err);
}

tn_status gpu_ew_begin_as(gpu_ew *e, gpu_node *n, uint32_t output, const gpu_value *out, tn_error *err)
{
  *e = (gpu_ew){ .n = n, .output = output, .dtype = out->dtype, .result = out->dtype, .count = out->count };
  if (out->rank > GPU_WALK_DIMS)
    return e->status = gpu_decline(err, "output %u has rank %d, at most %d are walked", (unsigned)output,
                                   (int)out->rank, GPU_WALK_DIMS);
  e->rank = out->rank;
  for (int32_t d = 0; d < e->rank; d++) e->dims[d] = out->dims[d];
  return TN_OK;
}

/* The strides of contiguous dims that broadcast to the result; false when they do not. */
static bool find_strides(const gpu_ew *e, const int64_t *dims, int32_t rank, int64_t *strides)
{
  int64_t stride = 1;
  for (int32_t d = 0; d < GPU_WALK_DIMS; d++) strides[d] = 0;
  for (int32_t i = 1; i <= rank; i++) {
    int64_t size = dims[rank - i];
    int32_t d = e->rank - i;
    if (size != 1 && (d < 0 || size != e->dims[d])) return false;
    if (size != 1) strides[d] = stride;
    stride *= size;
  }
  return true;
}

static gpu_ew_arg *add_arg(gpu_ew *e, tn_error *err)
{
  if (e->status != TN_OK) return NULL;
  if (e->n_args < GPU_EW_VALUES) return &e->args[e->n_args++];
  e->status = gpu_decline(err, "it has more than %d arguments", GPU_EW_VALUES);
  return NULL;
}

static tn_status does_not_broadcast(gpu_ew *e, uint32_t input, tn_error *err)
{
  return e->status = gpu_decline(err, "input %u does not broadcast to the result", (unsigned)input);
}

uint32_t gpu_ew_input(gpu_ew *e, uint32_t input, tn_error *err)
{
  const gpu_value *v = &e->n->inputs[input];
  return gpu_ew_input_as(e, input, v->dims, v->rank, err);
}

uint32_t gpu_ew_input_as(gpu_ew *e, uint32_t input, const int64_t *dims, int32_t rank, tn_error *err)
{
  gpu_ew_arg *a = add_arg(e, err);
  if (a == NULL) return 0;
  *a = (gpu_ew_arg){ .dtype = e->n->inputs[input].dtype, .input = input, .n_inputs = 1 };
  if (!find_strides(e, dims, rank, a->strides)) (void)does_not_broadcast(e, input, err);
  return e->n_args - 1;
}

uint32_t gpu_ew_joined(gpu_ew *e, uint32_t input, uint32_t n, const int64_t *dims, int32_t rank, tn_error *err)
{
  gpu_ew_arg *a = add_arg(e, err);
  if (a == NULL) return 0;
  *a = (gpu_ew_arg){ .dtype = e->n->inputs[input].dtype, .input = input, .n_inputs = n, .rows = 1 };
  /* Rows as if the last dimension were 1. */
  int64_t strides[GPU_WALK_DIMS], outer[GPU_WALK_DIMS];
  bool fits = rank >= 1 && rank <= e->rank;
  for (int32_t d = 0; fits && d < rank; d++) {
    outer[d] = d + 1 < rank ? dims[d] : 1;
    a->rows *= outer[d];
  }
  if (!fits || !find_strides(e, outer, rank, strides)) return (void)does_not_broadcast(e, input, err), 0;
  memcpy(a->strides, strides, sizeof strides);
  return e->n_args - 1;
}

static gpu_ew_step *add_step(gpu_ew *e, tn_error *err)
{
  if (e->status != TN_OK) return NULL;
  if (e->n_args + e->n_steps < GPU_EW_VALUES) return &e->steps[e->n_steps++];
  e->status = gpu_decline(err, "it has more than %d values", GPU_EW_VALUES);
  return NULL;
}

void gpu_ew_step_of(gpu_ew *e, const gpu_step_info *info, uint32_t x, uint32_t y, uint32_t z, tn_error *err)
{
  gpu_ew_step *s = add_step(e, err);
  const gpu_element *element = gpu_element_of(e->dtype);
  if (s == NULL) return;
  *s = (gpu_ew_step){ .info = info, .at = { (uint8_t)x, (uint8_t)y, (uint8_t)z } };
  if (element == NULL || gpu_step_text(info, element->kind) == NULL)
    e->status = gpu_decline(err, "step %s is not for %s", info->op, tn_dtype_name(e->dtype));
}

void gpu_ew_text_step(gpu_ew *e, const char *text, uint32_t x, tn_error *err)
{
  gpu_ew_step *s = add_step(e, err);
  if (s != NULL) *s = (gpu_ew_step){ .text = text, .at = { (uint8_t)x } };
}

/* ---- launching ---- */

/* Columns [first, end) of the result; `at` is the part of each joined argument that column first is in, and where it
 * begins. */
typedef struct window {
  int64_t first, end;
  uint32_t part[GPU_EW_VALUES];
  int64_t begin[GPU_EW_VALUES];
} window;

static int64_t part_width(const gpu_ew *e, const gpu_ew_arg *a, uint32_t k)
{
  return k < a->n_inputs ? e->n->inputs[a->input + k].count / a->rows : 0;
}

/* Moves the window past its end, as far as `slots` parts of each joined argument reach. */
static void next_window(const gpu_ew *e, window *w)
{
  w->first = w->end;
  w->end = e->dims[e->rank - 1];
  for (uint32_t i = 0; i < e->n_args; i++) {
    const gpu_ew_arg *a = &e->args[i];
    if (!gpu_ew_is_joined(a)) continue;
    while (w->part[i] < a->n_inputs && w->begin[i] + part_width(e, a, w->part[i]) <= w->first)
      w->begin[i] += part_width(e, a, w->part[i]++);
    int64_t end = w->begin[i];
    for (uint32_t k = 0; k < e->slots; k++) end += part_width(e, a, w->part[i] + k);
    if (end < w->end) w->end = end;
  }
}

static void put_pointers(gpu_launch *l, const gpu_ew *e, const window *w)
{
  for (uint32_t i = 0; i < e->n_args; i++) {
    const gpu_ew_arg *a = &e->args[i];
    for (uint32_t k = 0; k < (gpu_ew_is_joined(a) ? e->slots : 1); k++) {
      uint32_t part = gpu_ew_is_joined(a) ? w->part[i] + k : 0;
      gpu_arg_input(l, a->input + (part < a->n_inputs ? part : a->n_inputs - 1));
    }
  }
  gpu_arg_output(l, e->output);
}

static void put_parts(gpu_launch *l, const gpu_ew *e, const window *w, uint32_t i)
{
  int64_t begin = w->begin[i];
  for (uint32_t k = 0; k < e->slots; k++) {
    int64_t width = part_width(e, &e->args[i], w->part[i] + k);
    /* A missing part begins after all columns. */
    gpu_arg_place(l, e->count, w->part[i] + k < e->args[i].n_inputs ? begin : e->dims[e->rank - 1]);
    gpu_arg_place(l, e->count, width);
    begin += width;
  }
}

/* Where some of its steps may fault it is one step: fused chains are of floats. */
static tn_status explain(const gpu_fault *f, tn_error *err)
{
  const char *op = tn_operation_type(f->op);
  const gpu_step_info *info = gpu_step_find(op, strlen(op));
  return tn_error_set(err, info->fault, "%s", info->fault_text);
}

static void launch(const gpu_ew *e, const char *text, const window *w)
{
  bool joined = e->n_joined > 0;
  int64_t n = joined ? e->count / e->dims[e->rank - 1] * (w->end - w->first) : e->count;
  gpu_launch *l = gpu_launch_text(e->n, text, "elementwise");
  gpu_define_places(l, e->count);
  put_pointers(l, e, w);
  gpu_arg_place(l, e->count, n);
  if (joined) gpu_arg_place(l, e->count, w->end - w->first);
  if (joined) gpu_arg_place(l, e->count, w->first);
  for (int32_t d = 1; d < e->rank; d++) gpu_arg_place(l, e->count, e->dims[d]);
  for (uint32_t i = 0; i < e->n_args; i++) {
    const gpu_ew_arg *a = &e->args[i];
    for (int32_t d = 0; d + 1 < e->rank && !gpu_ew_is_flat(e, a); d++)
      if (a->strides[d] != 0) gpu_arg_place(l, e->count, a->strides[d]);
    if (gpu_ew_is_joined(a)) put_parts(l, e, w, i);
  }
  for (uint32_t i = 0; i < e->n_steps; i++)
    if (e->steps[i].info != NULL && e->steps[i].info->attr != NULL) gpu_arg_float(l, e->steps[i].attr);
  if (gpu_ew_faults(e)) gpu_arg_fault(l, explain, 0);
  gpu_range_1d(l, (n + e->width - 1) / e->width, GPU_EW_GROUP);
}

tn_status gpu_ew_end(gpu_ew *e, tn_error *err)
{
  if (e->status != TN_OK) return e->status;
  bool wide = gpu_element_of(e->dtype) == NULL || gpu_element_of(e->result) == NULL;
  for (uint32_t i = 0; i < e->n_args && !wide; i++) wide = gpu_element_of(e->args[i].dtype) == NULL;
  if (wide) return gpu_decline(err, "OpenCL C has no such elements");
  bool doubles = e->dtype == TN_DOUBLE || e->result == TN_DOUBLE || (e->n_args > 0 && e->args[0].dtype == TN_DOUBLE);
  if (doubles && !e->n->device->has_double) return gpu_decline(err, "the device has no double precision");
  if (e->count == 0) return gpu_node_done(e->n, err);
  tn_status st = gpu_ew_walk(e, err);
  if (st != TN_OK) return st;
  char *text = gpu_ew_text(e);
  if (text == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for the text of a kernel");
  window w = { 0 };
  do {
    if (e->n_joined > 0) next_window(e, &w);
    launch(e, text, &w);
  } while (e->n_joined > 0 && w.end < e->dims[e->rank - 1]);
  tn_free(text);
  return gpu_node_done(e->n, err);
}

/* ---- nodes that are one step ---- */

tn_status gpu_plan_step(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  const char *op = tn_operation_type(n->op);
  const gpu_step_info *info = gpu_step_find(op, strlen(op));
  if (info == NULL || info->reads != n->n_inputs) return gpu_decline(err, "%s is no elementwise step", op);
  uint32_t at[3] = { 0 };
  (void)gpu_ew_begin(&e, n, 0, err);
  for (uint32_t i = 0; i < n->n_inputs; i++) at[i] = gpu_ew_input(&e, i, err);
  e.dtype = n->inputs[0].dtype;
  gpu_ew_step_of(&e, info, at[0], at[1], at[2], err);
  if (info->attr != NULL) e.steps[0].attr = gpu_attr_float(n, info->attr, 0);
  return gpu_ew_end(&e, err);
}

/* ---- _TnElementwise ---- */

/* The attributes are those that the CPU's kernel reads (ops/rewrite/program.h). */
typedef struct chain {
  const int64_t *joined, *operands;
  const float *alphas;
  size_t n_joined, n_operands, n_alphas, n_steps;
} chain;

static tn_status read_chain(const tn_operation *op, chain *c, tn_error *err)
{
  const char *text;
  size_t size;
  tn_status st = tn_operation_attr_ints(op, "joined", &c->joined, &c->n_joined, err);
  if (st == TN_OK) st = tn_operation_attr_ints(op, "operands", &c->operands, &c->n_operands, err);
  if (st == TN_OK) st = tn_operation_attr_floats(op, "alphas", &c->alphas, &c->n_alphas, err);
  if (st == TN_OK) st = tn_operation_attr_string_at(op, "steps", 0, &text, &size, &c->n_steps, err);
  if (st == TN_OK && c->n_operands != 2 * c->n_steps)
    st = gpu_decline(err, "%zu operands for %zu steps", c->n_operands, c->n_steps);
  return st;
}

static tn_status read_args(gpu_ew *e, const chain *c, tn_error *err)
{
  size_t n = c->n_joined > 0 ? c->n_joined : e->n->n_inputs;
  uint32_t input = 0;
  for (size_t i = 0; i < n && e->status == TN_OK; i++) {
    int64_t parts = c->n_joined > 0 ? c->joined[i] : 1;
    if (parts < 1 || parts > (int64_t)(e->n->n_inputs - input))
      return gpu_decline(err, "'joined' does not share out the inputs");
    const gpu_value *v = &e->n->inputs[input];
    if (parts == 1) (void)gpu_ew_input(e, input, err);
    else (void)gpu_ew_joined(e, input, (uint32_t)parts, v->dims, v->rank, err);
    input += (uint32_t)parts;
  }
  return e->status;
}

/* A bias of a tensor broadcasts as any vector does, so it is a sum. */
static tn_status read_step(gpu_ew *e, const chain *c, size_t i, size_t *n_alphas, tn_error *err)
{
  const char *name;
  size_t size;
  tn_status st = tn_operation_attr_string_at(e->n->op, "steps", i, &name, &size, NULL, err);
  if (st != TN_OK) return st;
  const gpu_step_info *info =
      size == 7 && memcmp(name, "BiasAdd", 7) == 0 ? gpu_step_find("AddV2", 5) : gpu_step_find(name, size);
  if (info == NULL || info->reads > 2)
    return gpu_decline(err, "step '%.*s' is not known", (int)(size > 99 ? 99 : size), name);
  int64_t x = c->operands[2 * i], y = info->reads > 1 ? c->operands[2 * i + 1] : 0, most = (int64_t)(e->n_args + i);
  if (x < 0 || x >= most || y < 0 || y >= most) return gpu_decline(err, "step %zu reads a later value", i);
  gpu_ew_step_of(e, info, (uint32_t)x, (uint32_t)y, 0, err);
  if (e->status != TN_OK || info->attr == NULL) return e->status;
  if (*n_alphas >= c->n_alphas) return gpu_decline(err, "too few alphas");
  e->steps[i].attr = c->alphas[(*n_alphas)++];
  return TN_OK;
}

static tn_status plan_chain(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  chain c;
  size_t n_alphas = 0;
  tn_status st = gpu_ew_begin(&e, n, 0, err);
  if (st == TN_OK) st = read_chain(n->op, &c, err);
  if (st == TN_OK) st = read_args(&e, &c, err);
  for (size_t i = 0; st == TN_OK && i < c.n_steps; i++) st = read_step(&e, &c, i, &n_alphas, err);
  return st == TN_OK ? gpu_ew_end(&e, err) : st;
}

extern const gpu_op gpu_elementwise_ops[];
const gpu_op gpu_elementwise_ops[] = {
  { .op = "_TnElementwise", .types = "T=" GPU_FLOATS, .plan = plan_chain, .in_place = true },
  { NULL },
};
