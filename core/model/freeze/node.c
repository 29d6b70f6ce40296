/* SPDX-License-Identifier: Apache-2.0 */
/* Writes nodes of the new graph and of its functions: a node that takes a variable becomes one that takes its value. */
#include <core/model/freeze/freeze.h>

#include <string.h>

/* Fields of a TensorProto with values of these types. */
enum { T_INT = 7, T_BOOL = 11 };

static bool in_main(const tn__freeze_writer *w) { return w->use->body->function == NULL; }

/* The type of input i. */
static uint32_t input_type(const tn__freeze_use *use, const tn__freeze_node *node, uint32_t i)
{
  return i < node->n_data ? tn__freeze_bound(use, &use->body->edges[node->first + i]) : 0;
}

bool tn__freeze_converts(const tn__freeze *fz, const tn__freeze_use *use, uint32_t number)
{
  const tn__freeze_node *node = use->body->nodes[number];
  if (tn__freeze_is_variable(node->kind)) return true;
  bool merge = node->kind == TN__FREEZE_MERGE || node->kind == TN__FREEZE_MERGE_REFERENCE;
  const tn__freeze_edge output = { .from = number };
  uint32_t type = merge ? tn__freeze_bound(use, &output) : input_type(use, node, 0);
  if (type == 0) return false;
  bool reference = tn__freeze_type_of(fz, type)->is_reference;
  switch (node->kind) {
  case TN__FREEZE_PASS_REFERENCE:
  case TN__FREEZE_MERGE_REFERENCE:
  case TN__FREEZE_IS_SET_REFERENCE: return reference;
  default: return !reference && (node->kind == TN__FREEZE_PASS || merge || tn__freeze_reads(node->kind));
  }
}

/* ---- inputs ---- */

/* Writes an edge's text, with the name that the output has now. */
void tn__freeze_put_edge_text(const tn__freeze *fz, tn__sink *s, uint32_t field, const tn__freeze_use *use,
                              tn__slice text)
{
  tn__function_edge edge;
  size_t found = 0;
  if (tn__function_edge_parse(text.data, text.size, &edge) && !edge.is_control && edge.output.data != NULL)
    found = (size_t)tn__map_get(&use->body->names, edge.node.data, edge.node.size);
  const char *output = found == 0 ? NULL : use->body->nodes[found - 1]->row->output;
  if (output == NULL || !tn__freeze_converts(fz, use, (uint32_t)(found - 1))) {
    tn__sink_bytes(s, field, text);
    return;
  }
  const char *rest = edge.output.data + edge.output.size;
  size_t place = tn__freeze_open(s, field);
  tn__sink_put(s, text.data, edge.node.size + 1);
  tn__sink_put(s, output, strlen(output));
  tn__sink_put(s, rest, text.size - (size_t)(rest - text.data));
  tn__sink_end(s, place);
}

/* Writes data input i of the node, or control input i - n_data. */
static void put_input(tn__freeze_writer *w, uint32_t i)
{
  const tn__freeze_edge *edge = &w->use->body->edges[w->node->first + i];
  if (!in_main(w)) {
    tn__freeze_put_edge_text(w->fz, w->s, TN__FZ_N_INPUT, w->use, edge->text);
    return;
  }
  const tn__slice from = w->use->body->nodes[edge->from]->name;
  char port[16] = "";
  size_t place = tn__freeze_open(w->s, TN__FZ_N_INPUT);
  if (i >= w->node->n_data)
    tn__sink_put(w->s, "^", 1);
  else if (edge->port != 0)
    tn__snprintf(port, sizeof port, ":%u", edge->port);
  tn__sink_put(w->s, from.data, from.size);
  tn__sink_put(w->s, port, strlen(port));
  tn__sink_end(w->s, place);
}

static void put_inputs(tn__freeze_writer *w, uint32_t first, uint32_t end)
{
  for (uint32_t i = first; i < end; i++) put_input(w, i);
}

static void put_controls(tn__freeze_writer *w)
{
  put_inputs(w, w->node->n_data, w->node->n_data + w->node->n_controls);
}

static void put_device(tn__freeze_writer *w)
{
  tn__slice device = tn__field_text(w->node->bytes, TN__FZ_N_DEVICE);
  if (device.size == 0) device = w->node->device;
  if (device.size > 0) tn__sink_bytes(w->s, TN__FZ_N_DEVICE, device);
}

static void put_head(tn__freeze_writer *w, tn__slice op)
{
  tn__sink_bytes(w->s, TN__FZ_N_NAME, w->node->name);
  tn__sink_bytes(w->s, TN__FZ_N_OP, op);
}

/* Writes the node with another op and its first n inputs. */
static void put_changed(tn__freeze_writer *w, tn__slice op, uint32_t n)
{
  put_head(w, op);
  put_inputs(w, 0, n);
  put_controls(w);
  put_device(w);
}

/* Copies an attribute under another name. */
static void put_renamed(tn__freeze_writer *w, const char *from, const char *to)
{
  tn__slice value = tn__freeze_attr(w->node->bytes, from);
  const tn__freeze_places places = tn__freeze_open_attr(w->s, tn__slice_of(to));
  tn__sink_put(w->s, value.data, value.size);
  tn__freeze_close_attr(w->s, places);
}

/* ---- each kind ---- */

/* A constant without a device: the one of the variable may not exist where the graph is run. */
static void put_variable(tn__freeze_writer *w)
{
  tn_graph *graph;
  tn_output constant;
  void *bytes = NULL;
  size_t size = 0;
  tn_error *err = w->fz->err;
  tn_status st = tn_graph_create(&graph, err);
  if (st == TN_OK) st = tn__graph_add_constant(graph, "value", w->node->value, &constant, err);
  if (st == TN_OK) st = tn_operation_attr_proto(constant.op, "value", &bytes, &size, err);
  if (st == TN_OK) {
    put_head(w, tn__slice_of("Const"));
    put_controls(w);
    tn__freeze_put_type(w->s, "dtype", tn_tensor_dtype(w->node->value));
    const tn__freeze_places places = tn__freeze_open_attr(w->s, tn__slice_of("value"));
    tn__sink_put(w->s, bytes, size);
    tn__freeze_close_attr(w->s, places);
  } else if (w->s->status == TN_OK) {
    w->s->status = st;
  }
  tn_free(bytes);
  tn_graph_unref(graph);
}

static void put_read(tn__freeze_writer *w)
{
  put_changed(w, tn__slice_of("Identity"), 1);
  tn__freeze_put_type(w->s, "T", tn__freeze_type_of(w->fz, w->type)->dtype);
  tn__freeze_copy_attrs(w, tn__freeze_edit_private);
}

/* In a loop that is made of nodes, and in a branch, a constant must belong to the same frame as the node that it
 * replaces or serves: it waits for the source of input i. */
static void put_wait(tn__freeze_writer *w, uint32_t i)
{
  if (!w->fz->has_flow || !in_main(w)) return;
  const tn__freeze_body *body = w->use->body;
  const tn__slice from = body->nodes[body->edges[w->node->first + i].from]->name;
  size_t place = tn__freeze_open(w->s, TN__FZ_N_INPUT);
  tn__sink_put(w->s, "^", 1);
  tn__sink_put(w->s, from.data, from.size);
  tn__sink_end(w->s, place);
}

/* The axis is a constant of its own, which is written first (put_axis). */
static void put_gather(tn__freeze_writer *w, const char *axis)
{
  put_head(w, tn__slice_of("GatherV2"));
  put_inputs(w, 0, 2);
  size_t place = tn__freeze_open(w->s, TN__FZ_N_INPUT);
  tn__sink_put(w->s, axis, strlen(axis));
  if (!in_main(w)) tn__sink_put(w->s, ":output:0", strlen(":output:0"));
  tn__sink_end(w->s, place);
  put_controls(w);
  put_device(w);
  tn__freeze_put_type(w->s, "Tparams", tn__freeze_type_of(w->fz, w->type)->dtype);
  tn__freeze_put_type(w->s, "Taxis", TN_INT32);
  put_renamed(w, "Tindices", "Tindices");
  if (tn__freeze_attr_int(w->node->bytes, "batch_dims", 0) != 0) put_renamed(w, "batch_dims", "batch_dims");
  tn__freeze_copy_attrs(w, tn__freeze_edit_private);
}

static void put_axis(tn__freeze_writer *w, const char *axis)
{
  tn__sink_bytes(w->s, TN__FZ_N_NAME, tn__slice_of(axis));
  tn__sink_bytes(w->s, TN__FZ_N_OP, tn__slice_of("Const"));
  put_wait(w, 1);
  tn__freeze_put_type(w->s, "dtype", TN_INT32);
  tn__freeze_put_scalar(w->s, "value", TN_INT32, T_INT, (uint64_t)tn__freeze_attr_int(w->node->bytes, "batch_dims", 0));
}

static void put_gather_nd(tn__freeze_writer *w)
{
  put_changed(w, tn__slice_of("GatherNd"), 2);
  tn__freeze_put_type(w->s, "Tparams", tn__freeze_type_of(w->fz, w->type)->dtype);
  put_renamed(w, "Tindices", "Tindices");
  tn__freeze_copy_attrs(w, tn__freeze_edit_private);
}

static void put_shape(tn__freeze_writer *w)
{
  put_changed(w, tn__slice_of("Shape"), 1);
  tn__freeze_put_type(w->s, "T", tn__freeze_type_of(w->fz, w->type)->dtype);
  if (tn__freeze_attr(w->node->bytes, "out_type").data != NULL) put_renamed(w, "out_type", "out_type");
  tn__freeze_copy_attrs(w, tn__freeze_edit_private);
}

static void put_is_set(tn__freeze_writer *w)
{
  put_changed(w, tn__slice_of("Const"), 0);
  put_wait(w, 0);
  tn__freeze_put_type(w->s, "dtype", TN_BOOL);
  tn__freeze_put_scalar(w->s, "value", TN_BOOL, T_BOOL, 1);
  tn__freeze_copy_attrs(w, tn__freeze_edit_private);
}

static bool is_pure_call(const tn__freeze_writer *w)
{
  for (uint32_t i = w->node->first_call; i < w->node->first_call + w->node->n_calls; i++)
    if (w->use->callees[i] == NULL || !w->use->callees[i]->pure) return false;
  return tn_op_schema_find(w->node->row->pure) != NULL;
}

/* Writes a node that stays, a call with the functions that it calls now. */
static void put_other(tn__freeze_writer *w)
{
  const tn__freeze_node *node = w->node;
  tn__slice op = node->op;
  if (node->kind == TN__FREEZE_OWN_CALL)
    op = tn__slice_of(w->use->callees[node->first_call]->name);
  else if (node->row->pure != NULL && is_pure_call(w))
    op = tn__slice_of(node->row->pure);
  put_changed(w, op, node->n_data);
  bool each = node->kind == TN__FREEZE_PASS_EACH && w->bound;
  tn__freeze_copy_attrs(w, each ? tn__freeze_edit_each : tn__freeze_edit_call);
  tn__wire rest = tn__wire_read(node->bytes);
  while (tn__wire_next(&rest)) /* but the type of its outputs, which may have changed */
    if (rest.field > TN__FZ_N_ATTR && (rest.field != TN__FZ_N_TYPE || !w->bound))
      tn__sink_put(w->s, rest.at, (size_t)(rest.p - rest.at));
}

static void put_pass(tn__freeze_writer *w)
{
  const tn__freeze_edge output = { .from = w->number };
  w->type = tn__freeze_bound(w->use, &output);
  put_changed(w, w->node->row->becomes != NULL ? tn__slice_of(w->node->row->becomes) : w->node->op, w->node->n_data);
  tn__freeze_copy_attrs(w, tn__freeze_edit_pass);
}

static void put_converted(tn__freeze_writer *w, const char *axis)
{
  switch (w->node->kind) {
  case TN__FREEZE_HANDLE:
  case TN__FREEZE_REFERENCE: put_variable(w); break;
  case TN__FREEZE_READ: put_read(w); break;
  case TN__FREEZE_GATHER: put_gather(w, axis); break;
  case TN__FREEZE_GATHER_ND: put_gather_nd(w); break;
  case TN__FREEZE_SHAPE: put_shape(w); break;
  case TN__FREEZE_IS_SET:
  case TN__FREEZE_IS_SET_REFERENCE: put_is_set(w); break;
  default: put_pass(w); break;
  }
}

/* ---- a node ---- */

/* Whether a node of a function is as it was: then its bytes are copied. */
static bool is_unchanged(const tn__freeze_writer *w)
{
  const tn__freeze_body *body = w->use->body;
  const tn__freeze_node *node = w->node;
  if (in_main(w) || w->bound || node->row->pure != NULL) return false;
  for (uint32_t i = node->first_call; i < node->first_call + node->n_calls; i++)
    if (w->use->callees[i] != NULL && w->use->callees[i]->changed) return false;
  for (uint32_t i = node->first; i < node->first + node->n_data; i++) {
    uint32_t from = body->edges[i].from;
    if (from != TN__FREEZE_NONE && body->nodes[from]->row->output != NULL) return false;
  }
  return true;
}

static bool is_bound(const tn__freeze_use *use, const tn__freeze_node *node, uint32_t number)
{
  for (uint32_t i = 0; i < node->n_data; i++)
    if (input_type(use, node, i) != 0) return true;
  return use->bound[number] != NULL;
}

/* A function value with attributes that are functions cannot be followed. */
static tn_status check_nested(tn__freeze_writer *w)
{
  const tn__freeze_body *body = w->use->body;
  for (uint32_t i = w->node->first_call; i < w->node->first_call + w->node->n_calls; i++)
    if (body->calls[i].nested && w->use->callees[i] != NULL && w->use->callees[i]->changed)
      return tn__freeze_refuse(w->fz, body, w->node, TN_UNIMPLEMENTED,
                               "passes function '%.200s', which uses variables, as an attribute of another function",
                               tn_function_name(body->calls[i].body->function));
  return TN_OK;
}

void tn__freeze_put_node(tn__freeze *fz, tn__sink *s, uint32_t field, const tn__freeze_use *use, uint32_t number)
{
  const tn__freeze_node *node = use->body->nodes[number];
  tn__freeze_writer w = { .fz = fz,
                          .s = s,
                          .use = use,
                          .number = number,
                          .node = node,
                          .type = input_type(use, node, 0),
                          .bound = is_bound(use, node, number),
                          .next_call = node->first_call };
  bool converts = tn__freeze_converts(fz, use, number);
  tn_status st = check_nested(&w);
  if (s->status == TN_OK) s->status = st;
  if (s->status != TN_OK) return;
  const char *axis = NULL;
  if (converts && node->kind == TN__FREEZE_GATHER && node->n_data > 1) {
    axis = tn__freeze_join(fz, node->name, tn__slice_of("/axis"));
    if (axis != NULL) axis = tn__freeze_unique(fz, use->body, axis);
    if (axis == NULL) s->status = tn__freeze_no_memory(fz);
    if (axis == NULL) return;
    size_t place = tn__freeze_open(s, field);
    put_axis(&w, axis);
    tn__sink_end(s, place);
  }
  if (!converts && is_unchanged(&w)) {
    tn__sink_bytes(s, field, node->bytes);
    return;
  }
  size_t place = tn__freeze_open(s, field);
  if (converts)
    put_converted(&w, axis);
  else
    put_other(&w);
  tn__sink_end(s, place);
}
