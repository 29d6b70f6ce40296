/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as a GraphDef.
 *
 * A node that came from a file is written as its bytes stood there, so that nothing gets lost that this library
 * does not know. One that was built is encoded (graphdef/node.c).
 *
 * Operations never change and are never removed, so the lock is held only to read how many there are: a slow disk
 * blocks no other thread. */
#include <core/formats/file.h>
#include <core/formats/graphdef/graphdef.h>
#include <core/graph/graph_structs.h>

enum { G_NODE = 1, G_LIBRARY = 2, G_VERSIONS = 4, V_PRODUCER = 1 };

/* The version of the format that a graph without a file is written in: ops mean what TensorFlow 2 means by them. */
#define PRODUCER 1882
/* Protobuf reads no longer message. */
#define SIZE_LIMIT ((size_t)INT32_MAX)

/* ---- the graph ---- */

/* A field that is written after the nodes: a whole field, or a part of a library, which becomes a library of its
 * own. Readers merge consecutive libraries. */
typedef struct rest_field {
  tn__slice bytes;
  bool is_part;
} rest_field;

typedef struct exporter {
  tn_graph *graph;
  size_t n_ops;
  rest_field *rest;
  size_t n_rest, rest_room;
} exporter;

static bool add_rest(exporter *ex, tn__slice bytes, bool is_part)
{
  if (!tn__grow((void **)&ex->rest, &ex->rest_room, ex->n_rest + 1, sizeof *ex->rest)) return false;
  ex->rest[ex->n_rest++] = (rest_field){ bytes, is_part };
  return true;
}

static bool note(tn__map *known, tn__slice bytes)
{
  static char here;
  return tn__map_put(known, bytes.data, bytes.size, &here, NULL);
}

static bool is_known(const tn__map *known, tn__slice bytes)
{
  return tn__map_get(known, bytes.data, bytes.size) != NULL;
}

/* The content of a field that is a library; false for another one. */
static bool is_library(tn__slice field, tn__slice *content)
{
  tn__wire w = tn__wire_read(field);
  if (!tn__wire_next(&w) || !tn__wire_is(&w, G_LIBRARY, TN__WIRE_BYTES)) return false;
  *content = w.bytes;
  return true;
}

/* Functions and gradients of a library. With `whole` they are only noted, for all of it is written. */
static bool add_parts(exporter *ex, tn__map *known, tn__slice library, bool whole)
{
  tn__wire w = tn__wire_read(library);
  while (tn__wire_next(&w)) {
    tn__slice part = { (const char *)w.at, (size_t)(w.p - w.at) };
    if (is_known(known, part)) continue;
    if (!note(known, part) || (!whole && !add_rest(ex, part, true))) return false;
  }
  return true;
}

static bool add_record(exporter *ex, tn__map *known, bool alone, bool first, const tn__import_record *r)
{
  for (size_t i = 0; i < r->n_rest; i++) {
    tn__slice field = r->rest[i], library;
    if (alone) {
      if (!add_rest(ex, field, false)) return false;
      continue;
    }
    bool has_parts = is_library(field, &library);
    if (!first && is_known(known, field)) continue;
    if ((first || !has_parts) && !add_rest(ex, field, false)) return false;
    if (has_parts && !add_parts(ex, known, library, first)) return false;
  }
  for (size_t i = 0; !alone && i < r->n_rest; i++)
    if (!note(known, r->rest[i])) return false;
  return true;
}

/* Versions, libraries and so on in the order of the imports. What a later import brings once more, as a second import
 * of one model does, is left out: a library may have a function only once. */
static tn_status gather_rest(exporter *ex, const tn__import_record *newest, tn_error *err)
{
  size_t n = 0;
  for (const tn__import_record *r = newest; r != NULL; r = r->next) n++;
  if (n == 0) return TN_OK;
  tn__map known;
  tn__map_init(&known);
  const tn__import_record **records = tn__alloc_array(n, sizeof *records);
  bool ok = records != NULL;
  size_t i = n;
  for (const tn__import_record *r = newest; ok && r != NULL; r = r->next) records[--i] = r;
  for (i = 0; ok && i < n; i++) ok = add_record(ex, &known, n == 1, i == 0, records[i]);
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
  tn_status st = TN_OK;
  for (const tn__import_record *r = newest; st == TN_OK && r != NULL; r = r->next)
    st = tn__bytes_keep(r->file, r->file->desc.data, r->file->desc.bytes, err); /* parts may have been released */
  if (st == TN_OK) st = gather_rest(ex, newest, err);
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
    tn__slice bytes = tn__op_bytes(op);
    if (bytes.data != NULL)
      tn__sink_bytes(s, G_NODE, bytes);
    else
      tn__sink_message(s, G_NODE, tn__graphdef_write_node, op);
  }
  for (size_t i = 0; i < ex->n_rest; i++) {
    if (ex->rest[i].is_part)
      tn__sink_bytes(s, G_LIBRARY, ex->rest[i].bytes);
    else
      tn__sink_put(s, ex->rest[i].bytes.data, ex->rest[i].bytes.size);
  }
  if (is_built(ex)) tn__sink_message(s, G_VERSIONS, write_versions, NULL);
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

/* Memory of just the size of the graph. */
static void allocate(size_t size, tn__sink *out)
{
  out->room = size > 0 ? size : 1;
  out->data = tn_alloc(out->room);
  if (out->data == NULL) out->status = tn__no_memory(out->err, "graph to write", size);
}

tn_status tn__graphdef_write(tn_graph *graph, tn__sink *out, tn_error *err)
{
  exporter ex;
  size_t size;
  tn_status st = exporter_init(&ex, graph, err);
  if (st != TN_OK) return st;
  st = measure(&ex, &size, err);
  if (st == TN_OK && out->file == NULL) allocate(size, out);
  if (st == TN_OK && out->status == TN_OK) write_graph(&ex, out);
  if (st == TN_OK) st = out->status;
  exporter_fini(&ex);
  return st;
}
