/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for the benchmarks, written as GraphDef bytes (fields of graph.proto and node_def.proto). */
#include <bench/bench.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(bench_bytes *b, const void *data, size_t n)
{
  if (b->size + n > b->room) {
    b->room = (b->size + n) * 2;
    b->data = realloc(b->data, b->room);
    if (b->data == NULL) exit(1);
  }
  memcpy(b->data + b->size, data, n);
  b->size += n;
}

static void put_varint(bench_bytes *b, uint64_t v)
{
  unsigned char byte;
  for (; v >= 128; v >>= 7) {
    byte = (unsigned char)(v | 128);
    put(b, &byte, 1);
  }
  byte = (unsigned char)v;
  put(b, &byte, 1);
}

static void put_bytes(bench_bytes *b, int field, const void *data, size_t n)
{
  put_varint(b, (uint64_t)field << 3 | 2);
  put_varint(b, n);
  put(b, data, n);
}

static void put_text(bench_bytes *b, int field, const char *text) { put_bytes(b, field, text, strlen(text)); }

/* attr { key: `key` value { `field`: `number` } } */
static void put_attr(bench_bytes *node, const char *key, int field, uint64_t number)
{
  bench_bytes value = { 0 }, entry = { 0 };
  put_varint(&value, (uint64_t)field << 3);
  put_varint(&value, number);
  put_text(&entry, 1, key);
  put_bytes(&entry, 2, value.data, value.size);
  put_bytes(node, 5, entry.data, entry.size);
  free(value.data);
  free(entry.data);
}

static void begin(bench_bytes *node, const char *name, const char *op)
{
  node->size = 0;
  put_text(node, 1, name);
  put_text(node, 2, op);
}

static void placeholder(bench_bytes *graph, bench_bytes *node, const char *name)
{
  begin(node, name, "Placeholder");
  put_attr(node, "dtype", 6, TN_FLOAT);
  put_bytes(graph, 1, node->data, node->size);
}

static void add(bench_bytes *graph, bench_bytes *node, const char *name, const char *x, const char *y)
{
  begin(node, name, "AddV2");
  put_text(node, 3, x);
  put_text(node, 3, y);
  put_attr(node, "T", 6, TN_FLOAT);
  put_bytes(graph, 1, node->data, node->size);
}

void bench_graph_chain(bench_bytes *out, int n)
{
  bench_bytes node = { 0 };
  placeholder(out, &node, "x");
  placeholder(out, &node, "y");
  for (int i = 0; i < n; i++) {
    char name[32], before[32];
    snprintf(name, sizeof name, "add_%d", i);
    snprintf(before, sizeof before, "add_%d", i - 1);
    add(out, &node, name, i == 0 ? "x" : before, "y");
  }
  free(node.data);
}

void bench_graph_wide(bench_bytes *out, int n)
{
  bench_bytes node = { 0 };
  char name[32];
  placeholder(out, &node, "x");
  placeholder(out, &node, "y");
  for (int i = 0; i < n; i++) {
    snprintf(name, sizeof name, "add_%d", i);
    add(out, &node, name, "x", "y");
  }
  begin(&node, "sum", "AddN");
  for (int i = 0; i < n; i++) {
    snprintf(name, sizeof name, "add_%d", i);
    put_text(&node, 3, name);
  }
  put_attr(&node, "N", 3, (uint64_t)n);
  put_attr(&node, "T", 6, TN_FLOAT);
  put_bytes(out, 1, node.data, node.size);
  free(node.data);
}

/* Const of floats: attr value { tensor { dtype tensor_shape { dim { size } } tensor_content } } */
static void constant(bench_bytes *graph, bench_bytes *node, const char *name, const float *values, size_t n)
{
  bench_bytes dim = { 0 }, shape = { 0 }, tensor = { 0 }, value = { 0 }, entry = { 0 };
  put_varint(&dim, 1 << 3);
  put_varint(&dim, n);
  put_bytes(&shape, 2, dim.data, dim.size);
  put_varint(&tensor, 1 << 3);
  put_varint(&tensor, TN_FLOAT);
  put_bytes(&tensor, 2, shape.data, shape.size);
  put_bytes(&tensor, 4, values, n * sizeof *values);
  put_bytes(&value, 8, tensor.data, tensor.size);
  put_text(&entry, 1, "value");
  put_bytes(&entry, 2, value.data, value.size);
  begin(node, name, "Const");
  put_bytes(node, 5, entry.data, entry.size);
  put_attr(node, "dtype", 6, TN_FLOAT);
  put_bytes(graph, 1, node->data, node->size);
  free(dim.data);
  free(shape.data);
  free(tensor.data);
  free(value.data);
  free(entry.data);
}

void bench_graph_weights(bench_bytes *out, int n, size_t bytes)
{
  bench_bytes node = { 0 };
  size_t each = bytes / sizeof(float) / (size_t)(n / 2);
  float *values = bench_alloc(each * sizeof *values);
  placeholder(out, &node, "x");
  for (int i = 0; i < n / 2; i++) {
    char name[32], weight[32], before[32];
    for (size_t k = 0; k < each; k++) values[k] = (float)(k + (size_t)i);
    snprintf(name, sizeof name, "add_%d", i);
    snprintf(weight, sizeof weight, "weight_%d", i);
    snprintf(before, sizeof before, "add_%d", i - 1);
    constant(out, &node, weight, values, each);
    add(out, &node, name, i == 0 ? "x" : before, weight);
  }
  free(values);
  free(node.data);
}

tn_graph *bench_import(const bench_bytes *bytes)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *g;
  bench_check(tn_graph_create(&g, &err), &err, "graph");
  bench_check(tn_graph_import(g, bytes->data, bytes->size, NULL, &err), &err, "import");
  return g;
}

tn_session *bench_session(const bench *b, tn_graph *graph, int level)
{
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options;
  tn_session *session;
  bench_check(tn_session_options_create(&options, &err), &err, "options");
  bench_check(tn_session_options_set_target(options, b->runtime, &err), &err, "target");
  bench_check(tn_session_options_set_int(options, "level", level, &err), &err, "level");
  bench_check(tn_session_create(options, &session, &err), &err, "session");
  bench_check(tn_session_set_graph(session, graph, &err), &err, "set_graph");
  tn_session_options_destroy(options);
  return session;
}

tn_tensor *bench_scalar(float value)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  bench_check(tn_tensor_from_data(TN_FLOAT, NULL, 0, &value, sizeof value, &t, &err), &err, "scalar");
  return t;
}
