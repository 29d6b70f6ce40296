/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a graph as a GraphDef.
 *
 * A node from a file is written as its original bytes, so that fields which this library does not know are kept. A node
 * that was built or edited is encoded (graphdef/node.c).
 *
 * Operations never change and are never removed, so the lock is held only to read how many there are: a slow disk
 * blocks no other thread. */
#include <core/formats/file.h>
#include <core/formats/graphdef/graphdef.h>
#include <core/graph/graph_structs.h>

/* Field numbers of GraphDef and VersionDef. */
enum { G_NODE = 1, G_LIBRARY = 2, G_VERSIONS = 4, V_PRODUCER = 1 };

/* The format version of a graph that is not from a file: its ops have the meaning of TensorFlow 2. */
#define PRODUCER 1882
/* Protobuf's limit for a message, in bytes. */
#define SIZE_LIMIT ((size_t)INT32_MAX)

/* ---- the graph ---- */

/* A field that is written after the nodes: a whole field, or a part of a library, which becomes a library of its
 * own. Readers merge consecutive libraries. */
typedef struct rest_field {
  tn__slice bytes;
  bool is_part;
} rest_field;

typedef struct tn__graph_writer {
  tn_graph *graph;
  size_t n_ops;     /* operations to write: those of the start, even if the graph grows meanwhile */
  rest_field *rest; /* a heap block */
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

/* Whether a field is a library, and its content. */
static bool is_library(tn__slice field, tn__slice *content)
{
  tn__wire w = tn__wire_read(field);
  if (!tn__wire_next(&w) || !tn__wire_is(&w, G_LIBRARY, TN__WIRE_BYTES)) return false;
  *content = w.bytes;
  return true;
}

/* Records the functions and gradients of a library, and adds the new ones. With `whole` they are only recorded, because
 * the library itself was added. */
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

/* Adds the fields of one import. The first import's fields are all written unchanged; if it is alone, nothing need be
 * recorded. Of a later one, known fields and parts are left out, and the new parts of a library are added. */
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

/* Collects versions, libraries and other fields in the order of the imports. Duplicates, as from a second import of the
 * same model, are left out: a library may have a function only once. */
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

/* Records the number of operations and the imports under the lock, then collects the other fields without it. */
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

/* Whether no part of the graph is from a file: then versions must be written, which say what the ops mean. */
static bool is_built(const exporter *ex)
{
  if (ex->n_rest > 0) return false;
  for (size_t i = 0; i < ex->n_ops; i++)
    if (tn__graph_at(ex->graph, i)->proto.data != NULL) return false;
  return ex->n_ops > 0;
}

/* Called twice: to count, and to write. */
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

/* The first call of write_graph: finds errors and the size before any byte is written. */
static tn_status measure(const exporter *ex, size_t *size, tn_error *err)
{
  tn__sink count = tn__sink_counter(err);
  write_graph(ex, &count);
  *size = count.before;
  if (count.status == TN_OK && count.before > SIZE_LIMIT)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the graph takes %zu bytes as a GraphDef, wanted at most %zu",
                        count.before, SIZE_LIMIT);
  return count.status;
}

/* Allocates exactly the size of the graph. */
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

tn_status tn__graph_writer_create(tn_graph *graph, tn__graph_writer **out, size_t *size, tn_error *err)
{
  *out = NULL;
  exporter *ex = tn__alloc(sizeof *ex);
  if (ex == NULL) return tn__no_memory(err, "graph to write", sizeof *ex);
  tn_status st = exporter_init(ex, graph, err);
  if (st != TN_OK) {
    tn__free(ex, sizeof *ex);
    return st;
  }
  st = measure(ex, size, err);
  if (st == TN_OK)
    *out = ex;
  else
    tn__graph_writer_destroy(ex);
  return st;
}

void tn__graph_writer_put(const tn__graph_writer *writer, tn__sink *to) { write_graph(writer, to); }

void tn__graph_writer_destroy(tn__graph_writer *writer)
{
  if (writer == NULL) return;
  exporter_fini(writer);
  tn__free(writer, sizeof *writer);
}
