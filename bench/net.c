/* SPDX-License-Identifier: Apache-2.0 */
/* Networks for the benchmarks, made by the graph builder: blocks as exporters of real networks write them. */
#include <bench/bench.h>
#include <stdarg.h>
#include <stdio.h>

#define WIDTH 32

typedef struct writer {
  tn_graph *graph;
  int block;
  int64_t seed;
} writer;

/* An operation of the block; the input after the last one has no op. */
static tn_output op(writer *w, const char *type, const char *name, ...)
{
  char full[64];
  tn_error err = TN_ERROR_INIT;
  tn_operation *made;
  va_list inputs;
  snprintf(full, sizeof full, "block_%d/%s", w->block, name);
  tn_operation_builder *b = tn_operation_begin(w->graph, type, full, 0);
  va_start(inputs, name);
  for (tn_output in = va_arg(inputs, tn_output); in.op != NULL; in = va_arg(inputs, tn_output))
    tn_operation_add_input(b, in);
  va_end(inputs);
  bench_check(tn_operation_finish(b, &made, &err), &err, full);
  return (tn_output){ made, 0 };
}
#define OP(type, name, ...) op(w, type, name, __VA_ARGS__, (tn_output){ NULL, 0 })

/* Adds the inputs as one list. */
static tn_output joined(writer *w, const char *type, const char *name, const tn_output *list, size_t n, tn_output axis)
{
  char full[64];
  tn_error err = TN_ERROR_INIT;
  tn_operation *made;
  snprintf(full, sizeof full, "block_%d/%s", w->block, name);
  tn_operation_builder *b = tn_operation_begin(w->graph, type, full, 0);
  tn_operation_add_input_list(b, list, n);
  if (axis.op != NULL) tn_operation_add_input(b, axis);
  bench_check(tn_operation_finish(b, &made, &err), &err, full);
  return (tn_output){ made, 0 };
}

static tn_output keep(writer *w, const char *name, tn_tensor *value)
{
  char full[64];
  tn_error err = TN_ERROR_INIT;
  tn_operation *made;
  snprintf(full, sizeof full, "block_%d/%s", w->block, name);
  tn_operation_builder *b = tn_operation_begin(w->graph, "Const", full, 0);
  tn_operation_set_type(b, "dtype", tn_tensor_dtype(value));
  tn_operation_set_tensor(b, "value", value);
  bench_check(tn_operation_finish(b, &made, &err), &err, full);
  tn_tensor_unref(value);
  return (tn_output){ made, 0 };
}

/* Values that differ from all other blocks'. */
static tn_output weights(writer *w, const char *name, const int64_t *dims, int32_t rank)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  bench_check(tn_tensor_create(TN_FLOAT, dims, rank, &t, &err), &err, name);
  float *values = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) values[i] = (float)(++w->seed % 8191 - 4096) / 65536;
  return keep(w, name, t);
}

static tn_output ints(writer *w, const char *name, int32_t rank, int64_t n, int32_t a, int32_t b, int32_t c)
{
  const int32_t values[] = { a, b, c };
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  bench_check(tn_tensor_from_data(TN_INT32, &n, rank, values, (size_t)n * sizeof *values, &t, &err), &err, name);
  return keep(w, name, t);
}

static tn_output dense(writer *w, tn_output x, tn_output *product)
{
  static const int64_t dims[] = { WIDTH, WIDTH };
  tn_output filter = OP("Identity", "filter/read", weights(w, "filter", dims, 2));
  *product = OP("MatMul", "product", x, filter);
  tn_output y = OP("BiasAdd", "with_bias", *product, weights(w, "bias", dims, 1));
  y = OP("Mul", "scaled", OP("Relu", "relu", y), weights(w, "scale", dims, 1));
  return OP("AddV2", "shifted", y, weights(w, "shift", dims, 1));
}

/* Reshapes [n,32] to [n,4,8], transposes, and reshapes back, with sizes computed from the shape. */
static tn_output turn(writer *w, tn_output x)
{
  tn_output zero = ints(w, "from", 1, 1, 0, 0, 0), one = ints(w, "to", 1, 1, 1, 0, 0), none = { NULL, 0 };
  char full[64];
  tn_error err = TN_ERROR_INIT;
  tn_operation *rows;
  tn_output shape = OP("Shape", "shape", x);
  snprintf(full, sizeof full, "block_%d/rows", w->block);
  tn_operation_builder *b = tn_operation_begin(w->graph, "StridedSlice", full, 0);
  tn_operation_add_input(b, shape);
  tn_operation_add_input(b, zero);
  tn_operation_add_input(b, one);
  tn_operation_add_input(b, ints(w, "by", 1, 1, 1, 0, 0));
  tn_operation_set_int(b, "shrink_axis_mask", 1);
  bench_check(tn_operation_finish(b, &rows, &err), &err, full);
  const tn_output sizes[] = { { rows, 0 }, ints(w, "four", 0, 1, 4, 0, 0), ints(w, "eight", 0, 1, 8, 0, 0) };
  tn_output y = OP("Reshape", "apart", x, joined(w, "Pack", "apart/shape", sizes, 3, none));
  y = OP("Transpose", "turned", y, ints(w, "order", 1, 3, 0, 2, 1));
  const tn_output back[] = { { rows, 0 }, ints(w, "width", 0, 1, WIDTH, 0, 0) };
  return OP("Reshape", "together", y, joined(w, "Pack", "together/shape", back, 2, none));
}

/* 33 nodes: a dense layer, its result transposed, sliced and gated, added to the input. */
static tn_output block(writer *w, tn_output x)
{
  tn_output product, y = turn(w, dense(w, x, &product));
  const tn_output both[] = { y, x };
  y = joined(w, "ConcatV2", "both", both, 2, ints(w, "axis", 0, 1, 1, 0, 0));
  y = OP("Slice", "middle", y, ints(w, "begin", 1, 2, 0, 16, 0), ints(w, "size", 1, 2, -1, WIDTH, 0));
  y = OP("Mul", "gated", OP("Sigmoid", "gate", y), OP("Tanh", "tanh", product));
  return OP("AddV2", "out", y, x);
}

/* Adds a small multiple of the number of elements above 0, which is known only during a step. */
static tn_output count(writer *w, tn_output x)
{
  char full[64];
  tn_error err = TN_ERROR_INIT;
  tn_operation *number;
  tn_output places = OP("Where", "places", OP("Greater", "above", x, OP("ZerosLike", "zeros", x)));
  tn_output n = OP("Size", "count", places);
  snprintf(full, sizeof full, "block_%d/number", w->block);
  tn_operation_builder *b = tn_operation_begin(w->graph, "Cast", full, 0);
  tn_operation_add_input(b, n);
  tn_operation_set_type(b, "DstT", TN_FLOAT);
  bench_check(tn_operation_finish(b, &number, &err), &err, full);
  tn_output factor = weights(w, "factor", NULL, 0);
  return OP("AddV2", "counted", x, OP("Mul", "small", ((tn_output){ number, 0 }), factor));
}

tn_graph *bench_net(int blocks, int count_every)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *last;
  writer all = { .block = 0 }, *w = &all;
  bench_check(tn_graph_create(&w->graph, &err), &err, "graph");
  tn_operation_builder *b = tn_operation_begin(w->graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", (const int64_t[]){ -1, WIDTH }, 2);
  bench_check(tn_operation_finish(b, &last, &err), &err, "x");
  tn_output x = { last, 0 };
  for (; w->block < blocks; w->block++) {
    x = block(w, x);
    if (count_every > 0 && w->block % count_every == 0) x = count(w, x);
  }
  b = tn_operation_begin(w->graph, "Identity", "y", 0);
  tn_operation_add_input(b, x);
  bench_check(tn_operation_finish(b, &last, &err), &err, "y");
  return w->graph;
}

tn_tensor *bench_rows(int64_t n)
{
  const int64_t dims[] = { n, WIDTH };
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  bench_check(tn_tensor_create(TN_FLOAT, dims, 2, &t, &err), &err, "rows");
  float *values = tn_tensor_data(t);
  for (int64_t i = 0; i < n * WIDTH; i++) values[i] = (float)(i % 19 - 9) / 19;
  return t;
}
