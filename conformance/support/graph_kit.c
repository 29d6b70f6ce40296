/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/support/graph_kit.h"

#include <stdlib.h>
#include <string.h>

/* ---- shape functions ---- */

static tn_status infer_same(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  return tn_infer_output(ctx, 0, dims, rank, err);
}

/* Both inputs have the same shape. */
static tn_status infer_add(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *x, *y;
  int32_t rx = tn_infer_input(ctx, 0, &x), ry = tn_infer_input(ctx, 1, &y);
  if (rx < 0) return tn_infer_output(ctx, 0, y, ry, err);
  if (ry < 0) return tn_infer_output(ctx, 0, x, rx, err);
  if (rx != ry) return tn_error_set(err, TN_INVALID_ARGUMENT, "ranks %d and %d differ", (int)rx, (int)ry);
  int64_t dims[TN_MAX_RANK];
  for (int32_t i = 0; i < rx; i++) {
    if (x[i] >= 0 && y[i] >= 0 && x[i] != y[i])
      return tn_error_set(err, TN_INVALID_ARGUMENT, "dimension %d is %d and %d", (int)i, (int)x[i], (int)y[i]);
    dims[i] = x[i] >= 0 ? x[i] : y[i];
  }
  return tn_infer_output(ctx, 0, dims, rx, err);
}

static tn_status infer_const(tn_infer_ctx *ctx, tn_error *err)
{
  tn_tensor *value;
  tn_status st = tn_operation_attr_tensor(tn_infer_operation(ctx), "value", &value, err);
  return st != TN_OK ? st : tn_infer_output(ctx, 0, tn_tensor_dims(value), tn_tensor_rank(value), err);
}

static tn_status infer_shape_attr(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank;
  tn_status st = tn_operation_attr_shape(tn_infer_operation(ctx), "shape", &dims, &rank, err);
  return st != TN_OK ? st : tn_infer_output(ctx, 0, dims, rank, err);
}

static tn_status infer_reshape(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_tensor *shape = tn_infer_input_value(ctx, 1);
  if (shape == NULL) return TN_OK;
  int64_t dims[TN_MAX_RANK];
  int64_t n = tn_tensor_elements(shape);
  for (int64_t i = 0; i < n; i++) dims[i] = ((const int32_t *)tn_tensor_data(shape))[i];
  return tn_infer_output(ctx, 0, dims, (int32_t)n, err);
}

/* ---- the family ---- */

#define OP(name_, inputs_, outputs_, attrs_, traits_, infer_) \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_, \
    .traits = traits_, .infer = infer_, .constant_attr = (traits_) == TN_TRAIT_CONSTANT ? "value" : NULL }

static const tn_op_def ops[] = {
  OP("GkIn", "", "y: T", "T: type; shape: shape = ?", TN_TRAIT_PLACEHOLDER, infer_shape_attr),
  OP("GkConst", "", "y: T", "value: tensor; T: type", TN_TRAIT_CONSTANT, infer_const),
  OP("GkAdd", "x: T, y: T", "z: T", "T: {half, float, double, int32, int64}", TN_TRAIT_COMMUTATIVE, infer_add),
  OP("GkAddN", "inputs: N * T", "sum: T", "N: int >= 1; T: numbertype", 0, infer_same),
  OP("GkPack", "first: float, rest: Tlist", "y: variant", "Tlist: list(type) >= 1", 0, NULL),
  OP("GkSplit", "x: T", "parts: N * T, rest: T", "N: int >= 0; T: type", 0, NULL),
  OP("GkReshape", "x: T, shape: int32", "y: T", "T: type", TN_TRAIT_RESHAPE, infer_reshape),
  OP("GkVar", "", "ref: Ref(T)", "T: type", TN_TRAIT_STATEFUL, NULL),
  OP("GkAssign", "ref: Ref(T), value: T", "out: Ref(T)", "T: type", TN_TRAIT_STATEFUL, NULL),
  OP("GkMerge", "inputs: N * T", "out: T, which: int32", "N: int >= 1; T: type", TN_TRAIT_MERGE, infer_same),
  OP("GkNext", "x: T", "y: T", "T: type", TN_TRAIT_NEXT_ITERATION, infer_same),
  OP("GkPass", "x: T", "y: T", "T: type", TN_TRAIT_IDENTITY, infer_same),
  OP("GkRun", "", "", "", TN_TRAIT_NO_EFFECT, NULL),
  OP("GkAttrs", "", "",
     "s: string = 'plain'; mode: {'SAME', 'VALID'} = 'SAME'; i: int >= -5 = 7; f: float = 1.5; b: bool = true;"
     "t: type = int32; shape: shape = [2, ?]; l: list(int) = [1, 2]; lf: list(float) = []; lb: list(bool) = [true];"
     "lt: list({float, int32}) = [float]; ls: list(string) = ['a', 'b']; lsh: list(shape) = [[], ?]; fn: func = 'f'",
     0, NULL),
};

const tn_op_family gk_family = { .struct_size = TN_OP_FAMILY_SIZE,
                                 .name = "graph tests",
                                 .ops = ops,
                                 .n_ops = sizeof ops / sizeof *ops };

void gk_register(void)
{
  static int done;
  tn_error err = TN_ERROR_INIT;
  if (!done) REQUIRE_OK(tn_register_ops(&gk_family, &err), &err);
  done = 1;
  tn_error_clear(&err);
}

/* ---- bytes ---- */

void gk_bytes_free(gk_bytes *b)
{
  free(b->data);
  *b = (gk_bytes){ NULL, 0, 0 };
}

void gk_put(gk_bytes *b, const void *data, size_t size)
{
  if (b->size + size > b->room) {
    b->room = (b->size + size) * 2 + 16;
    uint8_t *grown = realloc(b->data, b->room);
    if (grown == NULL) abort();
    b->data = grown;
  }
  if (size > 0) memcpy(b->data + b->size, data, size);
  b->size += size;
}

void gk_varint(gk_bytes *b, uint64_t value)
{
  uint8_t text[10];
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) text[n++] = (uint8_t)(value | 0x80);
  text[n++] = (uint8_t)value;
  gk_put(b, text, n);
}

static void tag(gk_bytes *b, unsigned field, unsigned type) { gk_varint(b, (uint64_t)field << 3 | type); }

void gk_int(gk_bytes *b, unsigned field, int64_t value)
{
  tag(b, field, 0);
  gk_varint(b, (uint64_t)value);
}

void gk_float(gk_bytes *b, unsigned field, float value)
{
  tag(b, field, 5);
  gk_put(b, &value, sizeof value);
}

void gk_double(gk_bytes *b, unsigned field, double value)
{
  tag(b, field, 1);
  gk_put(b, &value, sizeof value);
}

void gk_data(gk_bytes *b, unsigned field, const void *data, size_t size)
{
  tag(b, field, 2);
  gk_varint(b, size);
  gk_put(b, data, size);
}

void gk_text(gk_bytes *b, unsigned field, const char *text) { gk_data(b, field, text, strlen(text)); }

void gk_message(gk_bytes *b, unsigned field, gk_bytes *message)
{
  gk_data(b, field, message->data, message->size);
  gk_bytes_free(message);
}

/* ---- GraphDefs ---- */

void gk_node(gk_bytes *node, const char *name, const char *op, const char *inputs)
{
  gk_text(node, 1, name);
  gk_text(node, 2, op);
  while (inputs != NULL && *inputs != 0) {
    size_t n = strcspn(inputs, " ");
    gk_data(node, 3, inputs, n);
    inputs += n + (inputs[n] == ' ');
  }
}

void gk_attr(gk_bytes *node, const char *name, gk_bytes *value)
{
  gk_bytes entry = { 0 };
  gk_text(&entry, 1, name);
  gk_message(&entry, 2, value);
  gk_message(node, 5, &entry);
}

void gk_attr_type(gk_bytes *node, const char *name, int64_t dtype)
{
  gk_bytes value = { 0 };
  gk_int(&value, 6, dtype);
  gk_attr(node, name, &value);
}

void gk_attr_int(gk_bytes *node, const char *name, int64_t number)
{
  gk_bytes value = { 0 };
  gk_int(&value, 3, number);
  gk_attr(node, name, &value);
}

void gk_attr_text(gk_bytes *node, const char *name, const char *text)
{
  gk_bytes value = { 0 };
  gk_text(&value, 2, text);
  gk_attr(node, name, &value);
}

void gk_shape(gk_bytes *out, const int64_t *dims, int rank)
{
  if (rank < 0) gk_int(out, 3, 1);
  for (int i = 0; i < rank; i++) {
    gk_bytes dim = { 0 };
    gk_int(&dim, 1, dims[i]);
    gk_message(out, 2, &dim);
  }
}

void gk_attr_shape(gk_bytes *node, const char *name, const int64_t *dims, int rank)
{
  gk_bytes value = { 0 }, shape = { 0 };
  gk_shape(&shape, dims, rank);
  gk_message(&value, 7, &shape);
  gk_attr(node, name, &value);
}

void gk_attr_tensor(gk_bytes *node, const char *name, gk_bytes *tensor)
{
  gk_bytes value = { 0 };
  gk_message(&value, 8, tensor);
  gk_attr(node, name, &value);
}

void gk_tensor(gk_bytes *out, int64_t dtype, const int64_t *dims, int rank, const void *content, size_t size)
{
  gk_bytes shape = { 0 };
  gk_int(out, 1, dtype);
  gk_shape(&shape, dims, rank);
  gk_message(out, 2, &shape);
  if (content != NULL) gk_data(out, 4, content, size);
}

void gk_add_node(gk_bytes *graph, gk_bytes *node) { gk_message(graph, 1, node); }

void gk_in(gk_bytes *graph, const char *name)
{
  gk_bytes node = { 0 };
  gk_node(&node, name, "GkIn", NULL);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(graph, &node);
}

void gk_const(gk_bytes *graph, const char *name, float value)
{
  gk_bytes node = { 0 }, tensor = { 0 };
  gk_node(&node, name, "GkConst", NULL);
  gk_tensor(&tensor, TN_FLOAT, NULL, 0, &value, sizeof value);
  gk_attr_tensor(&node, "value", &tensor);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(graph, &node);
}

void gk_add(gk_bytes *graph, const char *name, const char *x_and_y)
{
  gk_bytes node = { 0 };
  gk_node(&node, name, "GkAdd", x_and_y);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(graph, &node);
}

tn_graph *gk_import(const gk_bytes *bytes, tn_error *err)
{
  tn_graph *graph = NULL;
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, err), err);
  if (tn_graph_import(graph, bytes->data, bytes->size, NULL, err) == TN_OK) return graph;
  tn_graph_unref(graph);
  return NULL;
}

/* ---- graphs made with the builder ---- */

tn_graph *gk_new_graph(void)
{
  tn_graph *graph = NULL;
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, NULL), NULL);
  return graph;
}

tn_output gk_in_of(tn_graph *graph, const char *name, tn_dtype dtype, const int64_t *dims, int32_t rank)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *op;
  tn_operation_builder *b = tn_operation_begin(graph, "GkIn", name, 0);
  tn_operation_set_type(b, "T", dtype);
  tn_operation_set_shape(b, "shape", dims, rank);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

tn_output gk_float_in(tn_graph *graph, const char *name) { return gk_in_of(graph, name, TN_FLOAT, NULL, -1); }

tn_status gk_build2(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y, tn_operation **out,
                        tn_error *err)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, y);
  return tn_operation_finish(b, out, err);
}
