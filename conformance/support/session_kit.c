/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "conformance/support/session_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *ts_runtime(void)
{
  const char *name = getenv("TENON_TEST_RUNTIME");
  return name && *name ? name : "direct";
}

const char *ts_runtime_name(void)
{
  static char name[80];
  snprintf(name, sizeof(name), "%s", ts_runtime());
  name[strcspn(name, ":")] = 0;
  return name;
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

void ts_init(ts *t, int level)
{
  memset(t, 0, sizeof(*t));
  tn_error_init(&t->err);
  ts_register_ops();
  REQUIRE_OK(tn_graph_create(&t->graph, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_create(&t->options, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_target(t->options, ts_runtime(), &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_int(t->options, "level", level, &t->err), &t->err);
}

void ts_start(ts *t)
{
  REQUIRE_OK(tn_session_create(t->options, &t->session, &t->err), &t->err);
  REQUIRE_OK(tn_session_set_graph(t->session, t->graph, &t->err), &t->err);
}

void ts_fini(ts *t)
{
  tn_session_destroy(t->session);
  tn_session_options_destroy(t->options);
  tn_graph_unref(t->graph);
  tn_error_clear(&t->err);
  memset(t, 0, sizeof(*t));
}

bool ts_has_reset(void)
{
  static const char *const nothing = "test.nothing";
  tn_session_options *options = NULL;
  tn_status st = tn_session_options_create(&options, NULL);
  if (st == TN_OK) st = tn_session_options_set_target(options, ts_runtime(), NULL);
  if (st == TN_OK) st = tn_reset(options, &nothing, 1, NULL);
  tn_session_options_destroy(options);
  return st != TN_UNIMPLEMENTED;
}

void ts_clean(ts *t, const char *container)
{
  tn_status st = tn_reset(t->options, &container, container != NULL, &t->err);
  if (st != TN_UNIMPLEMENTED) CHECK_OK(st, &t->err);
  tn_error_clear(&t->err);
}

void ts_usual_graph(tn_graph *graph)
{
  tn_output x = ts_placeholder(graph, "x", TN_FLOAT), y = ts_placeholder(graph, "y", TN_FLOAT);
  tn_output z = ts_placeholder(graph, "z", TN_FLOAT), two = ts_const(graph, "two", 2);
  ts_const(graph, "half", 0.5f);
  ts_op2(graph, "Mul", "twice", ts_op2(graph, "AddV2", "sum", x, y), two);
  ts_op1(graph, "Neg", "neg", x);
  ts_op2(graph, "AddV2", "lone", z, two);
}

void ts_open(ts *t, int level)
{
  ts_init(t, level);
  ts_usual_graph(t->graph);
  ts_start(t);
}

tn_status ts_open_isolated(const char *text, tn_session **out)
{
  const tn_import_options import = { .struct_size = sizeof import, .flags = TN_IMPORT_TEXT };
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  *out = NULL;
  tn_status st = tn_graph_create(&graph, NULL);
  if (st == TN_OK) st = tn_graph_import(graph, text, strlen(text), &import, NULL);
  if (st == TN_OK) st = tn_session_options_create(&options, NULL);
  if (st == TN_OK) st = tn_session_options_set_target(options, ts_runtime(), NULL);
  if (st == TN_OK) st = tn_session_options_set_bool(options, "isolate_session_state", 1, NULL);
  if (st == TN_OK) st = tn_session_options_add_write_folder(options, tap_scratch_dir(), NULL);
  if (st == TN_OK) st = tn_session_create(options, out, NULL);
  if (st == TN_OK) st = tn_session_set_graph(*out, graph, NULL);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  return st;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static tn_output finish(tn_operation_builder *b)
{
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  tn_error_clear(&err);
  return (tn_output){ op, 0 };
}

tn_output ts_placeholder(tn_graph *graph, const char *name, tn_dtype dtype)
{
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", name, 0);
  tn_operation_set_type(b, "dtype", dtype);
  return finish(b);
}

tn_output ts_const_tensor(tn_graph *graph, const char *name, tn_tensor *value)
{
  tn_operation_builder *b = tn_operation_begin(graph, "Const", name, 0);
  tn_operation_set_type(b, "dtype", tn_tensor_dtype(value));
  tn_operation_set_tensor(b, "value", value);
  return finish(b);
}

tn_output ts_const(tn_graph *graph, const char *name, float value)
{
  tn_tensor *tensor = ts_scalar(value);
  tn_output output = ts_const_tensor(graph, name, tensor);
  tn_tensor_unref(tensor);
  return output;
}

tn_output ts_op1(tn_graph *graph, const char *op, const char *name, tn_output x)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation_add_input(b, x);
  return finish(b);
}

tn_output ts_op2(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, y);
  return finish(b);
}

tn_operation *ts_test_op(tn_graph *graph, const char *op, const char *name, const tn_output *x, int slot,
                         tn_operation *const *controls, size_t n_controls)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  if (x) tn_operation_add_input(b, *x);
  for (size_t i = 0; i < n_controls; i++) tn_operation_add_control_input(b, controls[i]);
  tn_operation_set_int(b, "slot", slot);
  return finish(b).op;
}

tn_output ts_watch_op(tn_graph *graph, const char *op, const char *name, tn_output x, int slot)
{
  return (tn_output){ ts_test_op(graph, op, name, &x, slot, NULL, 0), 0 };
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

tn_tensor *ts_filled(int32_t rank, const int64_t *dims, float value)
{
  tn_tensor *tensor = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &tensor, &err), &err);
  float *data = tn_tensor_data(tensor);
  for (int64_t i = 0; i < tn_tensor_elements(tensor); i++) data[i] = value;
  return tensor;
}

tn_tensor *ts_scalar(float value) { return ts_filled(0, NULL, value); }

tn_tensor *ts_vector(size_t n, const float *values)
{
  int64_t dims[1] = { (int64_t)n };
  tn_tensor *tensor = ts_filled(1, dims, 0);
  if (n) memcpy(tn_tensor_data(tensor), values, n * sizeof(*values));
  return tensor;
}

float ts_float(const tn_tensor *tensor)
{
  if (!tensor || tn_tensor_dtype(tensor) != TN_FLOAT || tn_tensor_elements(tensor) < 1) return NAN;
  return *(const float *)tn_tensor_data(tensor);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

#define MOST 64

static size_t length(const char *const *names)
{
  size_t n = 0;
  while (names && names[n]) n++;
  return n;
}

tn_status ts_run(ts *t, const ts_feed *feeds, const char *const *fetches, tn_tensor **fetched,
                 const char *const *targets)
{
  const char *names[MOST] = { NULL };
  tn_tensor *values[MOST] = { NULL };
  size_t n = 0, n_fetches = length(fetches);
  for (; feeds && feeds[n].name && n < MOST; n++) {
    names[n] = feeds[n].name;
    values[n] = ts_scalar(feeds[n].value);
  }
  for (size_t i = 0; i < n_fetches; i++) fetched[i] = NULL;
  tn_status status = tn_session_run(t->session, NULL, names, values, n, fetches, fetched, n_fetches, targets,
                                    length(targets), NULL, &t->err);
  for (size_t i = 0; i < n; i++) tn_tensor_unref(values[i]);
  tap_answered(status, &t->err);
  return status;
}

float ts_run1(ts *t, const ts_feed *feeds, const char *fetch)
{
  tn_tensor *fetched = NULL;
  const char *const fetches[] = { fetch, NULL };
  ts_run(t, feeds, fetches, &fetched, NULL);
  float value = ts_float(fetched);
  tn_tensor_unref(fetched);
  return value;
}

/* --- time --------------------------------------------------------------------------------------------------------- */

void ts_sleep_ms(int ms)
{
  struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
  nanosleep(&t, NULL);
}

int64_t ts_now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- hand-coded GraphDefs ----------------------------------------------------------------------------------------- */

static void put(ts_bytes *b, const void *data, size_t size)
{
  REQUIRE(size <= sizeof(b->data) - b->size);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static void put_varint(ts_bytes *b, uint64_t value)
{
  do {
    unsigned char byte = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
    put(b, &byte, 1);
    value >>= 7;
  } while (value);
}

/* Field `number` of wire type 2: bytes. */
static void put_field(ts_bytes *b, int number, const void *data, size_t size)
{
  put_varint(b, (uint64_t)number << 3 | 2);
  put_varint(b, size);
  put(b, data, size);
}

static void put_int_field(ts_bytes *b, int number, uint64_t value)
{
  put_varint(b, (uint64_t)number << 3);
  put_varint(b, value);
}

static void put_text(ts_bytes *b, int number, const char *text) { put_field(b, number, text, strlen(text)); }

/* NodeDef.attr: a map entry of key and AttrValue. */
static void put_attr(ts_bytes *node, const char *name, const ts_bytes *value)
{
  ts_bytes entry = { .size = 0 };
  put_text(&entry, 1, name);
  put_field(&entry, 2, value->data, value->size);
  put_field(node, 5, entry.data, entry.size);
}

static void begin_node(ts_bytes *node, const char *op, const char *name)
{
  node->size = 0;
  put_text(node, 1, name);
  put_text(node, 2, op);
}

void ts_node(ts_bytes *def, const char *op, const char *name, const char *const *inputs, const char *type_attr,
             tn_dtype dtype)
{
  ts_bytes node;
  begin_node(&node, op, name);
  for (size_t i = 0; inputs && inputs[i]; i++) put_text(&node, 3, inputs[i]);
  if (dtype != 0) {
    ts_bytes type = { .size = 0 };
    put_int_field(&type, 6, (uint64_t)dtype);
    put_attr(&node, type_attr, &type);
  }
  put_field(def, 1, node.data, node.size);
}

void ts_node_const(ts_bytes *def, const char *name, float value)
{
  ts_bytes node, type = { .size = 0 }, tensor = { .size = 0 }, attr = { .size = 0 };
  begin_node(&node, "Const", name);
  put_int_field(&type, 6, TN_FLOAT);
  put_attr(&node, "dtype", &type);
  put_int_field(&tensor, 1, TN_FLOAT);
  put_field(&tensor, 2, "", 0);
  put_field(&tensor, 4, &value, sizeof(value));
  put_field(&attr, 8, tensor.data, tensor.size);
  put_attr(&node, "value", &attr);
  put_field(def, 1, node.data, node.size);
}
