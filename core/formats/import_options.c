/* SPDX-License-Identifier: Apache-2.0 */
/* Options of an import, the same for all formats: copied and checked. */
#include <core/formats/format.h>
#include <core/graph/graph_structs.h>

#include <string.h>

enum {
  KNOWN_FLAGS = TN_IMPORT_REFUSE_UNKNOWN_OPS | TN_IMPORT_TEXT | TN_IMPORT_UNIQUIFY_NAMES | TN_IMPORT_UNIQUIFY_PREFIX |
                TN_IMPORT_SKIP_MAPPED_NODES | TN_IMPORT_KEEP_BYTES
};

/* The caller's struct may be that of an older header with fewer fields; missing fields are 0. */
static void take_options(const tn_import_options *given, tn_import_options *o)
{
#define TAKE(field) \
  if (TN_HAS_FIELD(given, tn_import_options, field)) o->field = given->field
  TAKE(flags);
  TAKE(file);
  TAKE(prefix);
  TAKE(default_device);
  TAKE(input_map);
  TAKE(n_input_map);
  TAKE(control_inputs);
  TAKE(n_control_inputs);
  TAKE(return_outputs);
  TAKE(n_return_outputs);
  TAKE(return_operations);
  TAKE(n_return_operations);
  TAKE(results);
  TAKE(budget);
#undef TAKE
}

/* A prefix must be a valid beginning of names, with or without its slash. */
static tn_status check_names(const tn_import_options *o, tn_error *err)
{
  if (o->prefix != NULL && o->prefix[0] != 0) {
    size_t n = strlen(o->prefix);
    n -= o->prefix[n - 1] == '/';
    if (!tn__name_is_valid(o->prefix, n))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "tn_import_options.prefix is '%.200s', with which a name cannot begin", o->prefix);
  }
  if (o->default_device != NULL && !tn__device_is_valid(o->default_device, strlen(o->default_device))) /* S-CFG-06 */
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_import_options.default_device is malformed: '%.200s', wanted as '/device:CPU:0'",
                        o->default_device);
  return TN_OK;
}

/* Checks that the source of a mapping is an input name and that its target exists. A control edge needs no output. */
static tn_status check_target(const tn_import_mapping *m, size_t i, tn_graph *graph, tn_error *err)
{
  tn__edge_name edge;
  if (m->source == NULL || !tn__edge_name_parse(m->source, strlen(m->source), &edge))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.input_map[%zu]: '%.200s' is not an input name", i,
                        m->source == NULL ? "" : m->source);
  const tn_operation *to = m->target.op;
  if (to == NULL || to->graph != graph)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.input_map[%zu]: '%.200s' is mapped to %s", i,
                        m->source, to == NULL ? "no operation" : "an operation of another graph");
  if (edge.is_control) return TN_OK;
  bool opaque = to->schema == NULL && to->n_outputs == 0;
  if (m->target.index < 0 || (!opaque && (uint32_t)m->target.index >= to->n_outputs))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_import_options.input_map[%zu]: '%.200s' is mapped to '%s:%d', "
                        "but node '%s' (%s) has %u outputs",
                        i, m->source, to->name, (int)m->target.index, to->name, to->type, to->n_outputs);
  return TN_OK;
}

static tn_status check_list(const void *list, size_t n, const char *what, tn_error *err)
{
  if (n == 0 || list != NULL) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.%s is NULL, but n_%s is %zu", what, what, n);
}

static tn_status check_texts(const char *const *texts, size_t n, const char *what, tn_error *err)
{
  tn_status st = check_list(texts, n, what, err);
  for (size_t i = 0; st == TN_OK && i < n; i++)
    if (texts[i] == NULL) st = tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.%s[%zu] is NULL", what, i);
  return st;
}

/* Checks everything that refers to the graph, so that the import need not. */
static tn_status check_map(const tn_import_options *o, tn_graph *graph, tn_error *err)
{
  tn_status st = check_list(o->input_map, o->n_input_map, "input_map", err);
  for (size_t i = 0; st == TN_OK && i < o->n_input_map; i++) st = check_target(&o->input_map[i], i, graph, err);
  if (st == TN_OK) st = check_list(o->control_inputs, o->n_control_inputs, "control_inputs", err);
  for (size_t i = 0; st == TN_OK && i < o->n_control_inputs; i++) {
    const tn_operation *op = o->control_inputs[i];
    if (op == NULL || op->graph != graph)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.control_inputs[%zu] is %s", i,
                        op == NULL ? "NULL" : "an operation of another graph");
  }
  if (st == TN_OK) st = check_texts(o->return_outputs, o->n_return_outputs, "return_outputs", err);
  if (st == TN_OK) st = check_texts(o->return_operations, o->n_return_operations, "return_operations", err);
  if (st == TN_OK && o->results == NULL && o->n_return_outputs + o->n_return_operations > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.results is NULL, but %s are requested",
                        o->n_return_outputs > 0 ? "return_outputs" : "return_operations");
  return st;
}

tn_status tn__import_options_read(const tn_import_options *given, tn_graph *graph, tn_import_options *o, tn_error *err)
{
  *o = (tn_import_options){ .struct_size = sizeof *o };
  if (given == NULL) return TN_OK;
  if (!TN_HAS_FIELD(given, tn_import_options, file))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.struct_size is %zu, wanted at least %zu",
                        given->struct_size, TN_SIZE_TO(tn_import_options, file));
  take_options(given, o);
  if (o->results != NULL) *o->results = NULL;
  uint32_t unknown = o->flags & ~(uint32_t)KNOWN_FLAGS;
  if (unknown != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.flags has unknown bits 0x%x", unknown);
  tn_status st = check_names(o, err);
  return st == TN_OK && graph != NULL ? check_map(o, graph, err) : st;
}
