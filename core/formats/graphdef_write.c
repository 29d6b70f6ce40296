/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as a GraphDef.
 *
 * A node that came from a file is written as its bytes stood there, so that nothing gets lost that this library does not
 * know. One that was built is encoded; sizes of nested messages are found by counting the same function's output.
 *
 * Operations never change and never go, so the lock is held only to see how many there are: a slow disk keeps nobody. */
#include <core/formats/pbtxt.h>
#include <core/graph/graph_structs.h>

#include <string.h>

enum { G_NODE = 1, G_VERSIONS = 4, V_PRODUCER = 1 };
enum { N_NAME = 1, N_OP = 2, N_INPUT = 3, N_DEVICE = 4, N_ATTR = 5, E_KEY = 1, E_VALUE = 2 };
enum { A_LIST = 1, A_S = 2, A_I = 3, A_F = 4, A_B = 5, A_TYPE = 6, A_SHAPE = 7, A_TENSOR = 8, A_PLACEHOLDER = 9,
       A_FUNC = 10, L_FUNC = 9 };
enum { F_NAME = 1, S_DIM = 2, S_UNKNOWN_RANK = 3, D_SIZE = 1 };
enum { T_DTYPE = 1, T_SHAPE = 2, T_CONTENT = 4, T_STRING = 8 };

/* The version of the format that a graph without a file is written in: ops mean what TensorFlow 2 means by them. */
#define PRODUCER 1882
/* Protobuf reads no longer message. */
#define SIZE_LIMIT ((size_t)INT32_MAX)

typedef void (*body_fn)(tn__sink *s, const void *what);

/* A message whose size comes from counting what it will write. */
static void put_message(tn__sink *s, uint32_t field, body_fn body, const void *what)
{
  if (s->status != TN_OK) return;
  tn__sink count = tn__sink_counter(s->err);
  body(&count, what);
  tn__sink_tag(s, field, TN__WIRE_BYTES);
  tn__sink_varint(s, count.before);
  if (count.status != TN_OK)
    s->status = count.status;
  else if (s->counts)
    s->before += count.before;
  else
    body(s, what);
}

/* ---- shapes and tensors ---- */

static void write_dim(tn__sink *s, const void *what)
{
  const int64_t *size = what;
  if (*size != 0) tn__sink_int(s, D_SIZE, (uint64_t)*size);
}

static void write_shape(tn__sink *s, const void *what)
{
  const tn__shape *shape = what;
  if (shape->rank < 0) tn__sink_int(s, S_UNKNOWN_RANK, 1);
  for (int64_t i = 0; i < shape->rank; i++) put_message(s, S_DIM, write_dim, &shape->dims[i]);
}

static void write_strings(tn__sink *s, const tn_tensor *t)
{
  for (int64_t i = 0; s->status == TN_OK && i < tn_tensor_elements(t); i++) {
    tn__slice text = { NULL, 0 };
    s->status = tn_tensor_get_string(t, i, &text.data, &text.size, s->err);
    if (s->status == TN_OK) tn__sink_bytes(s, T_STRING, text);
  }
}

static void write_content(tn__sink *s, const tn_tensor *t)
{
  size_t bytes = tn_tensor_bytes(t);
  if (bytes == 0) return;
  tn__sink_tag(s, T_CONTENT, TN__WIRE_BYTES);
  tn__sink_varint(s, bytes);
  if (s->counts || tn_tensor_data(t) != NULL) {
    tn__sink_put(s, tn_tensor_data(t), bytes);
    return;
  }
  tn_tensor *copy = NULL; /* of memory that the host does not see */
  tn_status st = s->status == TN_OK ? tn_tensor_copy(t, &copy, s->err) : s->status;
  if (st == TN_OK)
    tn__sink_put(s, tn_tensor_data(copy), bytes);
  else
    s->status = st;
  tn_tensor_unref(copy);
}

static void write_tensor(tn__sink *s, const void *what)
{
  const tn_tensor *t = what;
  tn_dtype dtype = tn_tensor_dtype(t);
  if (dtype == TN_RESOURCE || dtype == TN_VARIANT) {
    s->status = tn_error_set(s->err, TN_UNIMPLEMENTED, "a tensor of type %s cannot be written", tn_dtype_name(dtype));
    return;
  }
  tn__shape shape = { t->dims, t->rank };
  tn__sink_int(s, T_DTYPE, (uint64_t)dtype);
  put_message(s, T_SHAPE, write_shape, &shape);
  if (dtype == TN_STRING)
    write_strings(s, t);
  else
    write_content(s, t);
}

static void put_tensor(tn__sink *s, uint32_t field, tn__lazy_tensor *lazy)
{
  if (lazy->proto.data != NULL)
    tn__sink_bytes(s, field, lazy->proto);
  else
    put_message(s, field, write_tensor, atomic_load_explicit(&lazy->tensor, memory_order_acquire));
}

/* ---- attributes ---- */

static void write_func(tn__sink *s, const void *what)
{
  const tn__slice *name = what;
  if (name->size > 0) tn__sink_bytes(s, F_NAME, *name);
}

static void put_float(tn__sink *s, float value) { tn__sink_put(s, &value, sizeof value); /* little-endian */ }

/* Numbers of a list, packed. */
static void write_numbers(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  const void *items = a->v.list.items;
  for (size_t i = 0; i < a->v.list.n; i++) {
    switch (a->kind - TN_ATTR_LIST) {
    case TN_ATTR_INT: tn__sink_varint(s, (uint64_t)((const int64_t *)items)[i]); break;
    case TN_ATTR_FLOAT: put_float(s, ((const float *)items)[i]); break;
    case TN_ATTR_BOOL: tn__sink_varint(s, ((const tn_bool *)items)[i] != 0); break;
    default: tn__sink_varint(s, (uint64_t)((const tn_dtype *)items)[i]); break;
    }
  }
}

static void write_list(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  const void *items = a->v.list.items;
  static const uint8_t fields[] = { [TN_ATTR_INT] = A_I, [TN_ATTR_FLOAT] = A_F, [TN_ATTR_BOOL] = A_B,
                                    [TN_ATTR_TYPE] = A_TYPE };
  int32_t kind = a->kind - TN_ATTR_LIST;
  if (a->v.list.n == 0) return;
  if (kind == TN_ATTR_INT || kind == TN_ATTR_FLOAT || kind == TN_ATTR_BOOL || kind == TN_ATTR_TYPE) {
    put_message(s, fields[kind], write_numbers, a);
    return;
  }
  for (size_t i = 0; i < a->v.list.n; i++) {
    switch (kind) {
    case TN_ATTR_STRING: tn__sink_bytes(s, A_S, ((const tn__slice *)items)[i]); break;
    case TN_ATTR_SHAPE: put_message(s, A_SHAPE, write_shape, (const tn__shape *)items + i); break;
    case TN_ATTR_TENSOR: put_tensor(s, A_TENSOR, ((tn__lazy_tensor *const *)items)[i]); break;
    case TN_ATTR_FUNC: put_message(s, L_FUNC, write_func, (const tn__slice *)items + i); break;
    default: break;
    }
  }
}

static void write_value(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  switch (a->kind) {
  case TN_ATTR_STRING: tn__sink_bytes(s, A_S, a->v.text); break;
  case TN_ATTR_PLACEHOLDER: tn__sink_bytes(s, A_PLACEHOLDER, a->v.text); break;
  case TN_ATTR_INT: tn__sink_int(s, A_I, (uint64_t)a->v.i); break;
  case TN_ATTR_BOOL: tn__sink_int(s, A_B, a->v.b != 0); break;
  case TN_ATTR_TYPE: tn__sink_int(s, A_TYPE, (uint64_t)a->v.type); break;
  case TN_ATTR_FLOAT:
    tn__sink_tag(s, A_F, TN__WIRE_FIXED32);
    put_float(s, a->v.f);
    break;
  case TN_ATTR_SHAPE: put_message(s, A_SHAPE, write_shape, &a->v.shape); break;
  case TN_ATTR_TENSOR: put_tensor(s, A_TENSOR, a->v.tensor); break;
  case TN_ATTR_FUNC: put_message(s, A_FUNC, write_func, &a->v.text); break;
  default:
    if ((a->kind & TN_ATTR_LIST) != 0) put_message(s, A_LIST, write_list, a);
    break;
  }
}

static void write_entry(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  tn__sink_bytes(s, E_KEY, (tn__slice){ a->name, a->name_size });
  if (a->proto.data != NULL)
    tn__sink_bytes(s, E_VALUE, a->proto);
  else
    put_message(s, E_VALUE, write_value, a);
}

/* ---- nodes ---- */

static void write_input(tn__sink *s, const tn_operation *from, const char *before, const char *after)
{
  size_t n = strlen(before), m = strlen(after);
  tn__sink_tag(s, N_INPUT, TN__WIRE_BYTES);
  tn__sink_varint(s, n + from->name_size + m);
  tn__sink_put(s, before, n);
  tn__sink_put(s, from->name, from->name_size);
  tn__sink_put(s, after, m);
}

static void in_attr(tn__sink *s, const tn_operation *op, const tn__attr *a)
{
  if (s->status == TN_RESOURCE_EXHAUSTED) return;
  tn_error_prefix(s->err, "node '%s': attribute '%s'", op->name, a->name);
  tn_error_set_node(s->err, op->name);
}

static void write_node(tn__sink *s, const void *what)
{
  const tn_operation *op = what;
  tn__sink_bytes(s, N_NAME, (tn__slice){ op->name, op->name_size });
  tn__sink_bytes(s, N_OP, tn__slice_of(op->type));
  for (uint32_t i = 0; i < op->n_inputs; i++) {
    char index[16] = "";
    if (op->inputs[i].index != 0) tn__snprintf(index, sizeof index, ":%d", (int)op->inputs[i].index);
    write_input(s, op->inputs[i].op, "", index);
  }
  for (uint32_t i = 0; i < op->n_controls; i++) write_input(s, op->controls[i], "^", "");
  if (op->device[0] != 0) tn__sink_bytes(s, N_DEVICE, tn__slice_of(op->device));
  for (uint32_t i = 0; s->status == TN_OK && i < op->n_attrs; i++) {
    put_message(s, N_ATTR, write_entry, &op->attrs[i]);
    if (s->status != TN_OK && s->counts) in_attr(s, op, &op->attrs[i]);
  }
}

/* ---- the graph ---- */

typedef struct exporter {
  tn_graph *graph;
  size_t n_ops;
  tn__slice *rest; /* what is written behind the nodes: whole fields */
  size_t n_rest, rest_room;
} exporter;

static size_t count_records(const tn__import_record *newest, size_t *n_rest)
{
  size_t n = 0;
  *n_rest = 0;
  for (const tn__import_record *r = newest; r != NULL; r = r->next) {
    *n_rest += r->n_rest;
    n++;
  }
  return n;
}

static bool add_record(exporter *ex, tn__map *known, bool alone, const tn__import_record *r)
{
  for (size_t i = 0; i < r->n_rest; i++)
    if (alone || tn__map_get(known, r->rest[i].data, r->rest[i].size) == NULL) ex->rest[ex->n_rest++] = r->rest[i];
  for (size_t i = 0; !alone && i < r->n_rest; i++)
    if (!tn__map_put(known, r->rest[i].data, r->rest[i].size, ex, NULL)) return false;
  return true;
}

/* Versions, libraries and so on in the order of the imports. What a later import brings once more, as a second import of
 * one model does, is left out: a library may have a function only once. */
static tn_status gather_rest(exporter *ex, const tn__import_record *newest, tn_error *err)
{
  size_t n = count_records(newest, &ex->rest_room);
  if (ex->rest_room == 0) return TN_OK;
  tn__map known;
  tn__map_init(&known);
  const tn__import_record **records = tn__alloc_array(n, sizeof *records);
  ex->rest = tn__alloc_array(ex->rest_room, sizeof *ex->rest);
  bool ok = records != NULL && ex->rest != NULL;
  size_t i = n;
  for (const tn__import_record *r = newest; ok && r != NULL; r = r->next) records[--i] = r;
  for (i = 0; ok && i < n; i++) ok = add_record(ex, &known, n == 1, records[i]);
  tn__free(records, n * sizeof *records);
  tn__map_fini(&known);
  return ok ? TN_OK : tn__no_memory(err, "graph to write", ex->rest_room * sizeof *ex->rest);
}

static void exporter_fini(exporter *ex) { tn__free(ex->rest, ex->rest_room * sizeof *ex->rest); }

static tn_status exporter_init(exporter *ex, tn_graph *graph, tn_error *err)
{
  *ex = (exporter){ .graph = graph };
  tn__graph_read_lock(graph);
  const tn__import_record *newest = graph->imports;
  ex->n_ops = tn_graph_n_operations(graph);
  tn__graph_unlock(graph);
  tn_status st = gather_rest(ex, newest, err);
  if (st != TN_OK) exporter_fini(ex);
  return st;
}

static void write_versions(tn__sink *s, const void *what)
{
  (void)what;
  tn__sink_int(s, V_PRODUCER, PRODUCER);
}

/* Whether all of the graph was built: then the file has to say what the ops mean. */
static bool is_built(const exporter *ex)
{
  if (ex->n_rest > 0) return false;
  for (size_t i = 0; i < ex->n_ops; i++)
    if (tn__graph_at(ex->graph, i)->proto.data != NULL) return false;
  return ex->n_ops > 0;
}

static void write_graph(const exporter *ex, tn__sink *s)
{
  for (size_t i = 0; s->status == TN_OK && i < ex->n_ops; i++) {
    const tn_operation *op = tn__graph_at(ex->graph, i);
    if (op->proto.data != NULL)
      tn__sink_bytes(s, G_NODE, op->proto);
    else
      put_message(s, G_NODE, write_node, op);
  }
  for (size_t i = 0; i < ex->n_rest; i++) tn__sink_put(s, ex->rest[i].data, ex->rest[i].size);
  if (is_built(ex)) put_message(s, G_VERSIONS, write_versions, NULL);
}

static tn_status measure(const exporter *ex, size_t *size, tn_error *err)
{
  tn__sink count = tn__sink_counter(err);
  write_graph(ex, &count);
  *size = count.before;
  if (count.status == TN_OK && count.before > SIZE_LIMIT)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the graph takes %zu bytes as a GraphDef, which can have %zu at most",
                        count.before, SIZE_LIMIT);
  return count.status;
}

/* The whole GraphDef in one piece of memory of just its size. */
static tn_status write_memory(const exporter *ex, tn__sink *out, tn_error *err)
{
  size_t size;
  tn_status st = measure(ex, &size, err);
  *out = tn__sink_memory(err);
  if (st != TN_OK) return st;
  out->room = size > 0 ? size : 1;
  out->data = tn_alloc(out->room);
  if (out->data == NULL) return tn__no_memory(err, "graph to write", size);
  write_graph(ex, out);
  if (out->status != TN_OK) tn__sink_fini(out);
  return out->status;
}

static tn_status write_text(const exporter *ex, tn__sink *out, tn_error *err)
{
  tn__sink binary;
  tn_status st = write_memory(ex, &binary, err);
  if (st == TN_OK) st = tn__pbtxt_print((tn__slice){ binary.data, binary.used }, &tn__pb_graphdef, out, err);
  tn__sink_fini(&binary);
  return st;
}

static tn_status check_flags(tn_graph *graph, uint32_t flags, tn_error *err)
{
  if (graph == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no graph given");
  if ((flags & ~(uint32_t)TN_EXPORT_TEXT) == 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "unknown flags 0x%x", (unsigned)flags);
}

tn_status tn_graph_export(tn_graph *graph, uint32_t flags, void **bytes, size_t *size, tn_error *err)
{
  tn__error_reset(err);
  if (bytes != NULL) *bytes = NULL;
  if (size != NULL) *size = 0;
  if (bytes == NULL || size == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no place for the bytes given");
  exporter ex;
  tn_status st = check_flags(graph, flags, err);
  if (st == TN_OK) st = exporter_init(&ex, graph, err);
  if (st != TN_OK) return st;
  tn__sink out = tn__sink_memory(err);
  if ((flags & TN_EXPORT_TEXT) == 0) {
    st = write_memory(&ex, &out, err);
  } else {
    st = write_text(&ex, &out, err);
    if (st == TN_OK) tn__sink_put(&out, "", 1); /* so that it can be taken for a string */
    if (st == TN_OK) st = out.status;
    if (st == TN_OK) out.used--;
  }
  exporter_fini(&ex);
  if (st != TN_OK) {
    tn__sink_fini(&out);
    return st;
  }
  *bytes = out.data;
  *size = out.used;
  return TN_OK;
}

static tn_status write_open(const exporter *ex, bool text, tn__writer *w, tn_error *err)
{
  tn__sink out = tn__sink_file(w, err);
  tn_status st = TN_OK;
  if (text)
    st = write_text(ex, &out, err);
  else
    write_graph(ex, &out);
  if (st == TN_OK) st = tn__sink_flush(&out);
  tn__sink_fini(&out);
  return st;
}

tn_status tn_graph_export_file(tn_graph *graph, const char *path, uint32_t flags, tn_error *err)
{
  tn__error_reset(err);
  exporter ex;
  tn__writer w;
  size_t size;
  tn_status st = check_flags(graph, flags, err);
  if (st == TN_OK && (path == NULL || *path == 0))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "the path of a file is %s", path == NULL ? "NULL" : "empty");
  if (st == TN_OK) st = exporter_init(&ex, graph, err);
  if (st != TN_OK) return st;
  st = measure(&ex, &size, err); /* what cannot be written shows before a file is there */
  if (st == TN_OK) st = tn__writer_open(&w, path, err);
  if (st == TN_OK) {
    bool text = (flags & TN_EXPORT_TEXT) != 0 || tn__pbtxt_is_path(path);
    st = write_open(&ex, text, &w, err);
    if (st == TN_OK)
      st = tn__writer_commit(&w, err);
    else
      tn__writer_abandon(&w);
  }
  exporter_fini(&ex);
  return st;
}
