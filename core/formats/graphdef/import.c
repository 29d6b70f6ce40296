/* SPDX-License-Identifier: Apache-2.0 */
/* Imports a GraphDef into a graph.
 *
 * The bytes are read in place and kept by the graph: names are copied, the other parts of a node that are not needed at
 * once stay slices of the bytes. The passes:
 *   1. count the nodes;
 *   2. read each node: name, op, attributes, types of outputs, and inputs if they name earlier nodes;
 *   3. resolve the inputs that name later nodes;
 *   4. look for cycles, if there were such inputs.
 * The new nodes are published at the end, all at once. If a pass fails, the graph's arena and index are restored. */
#include <core/formats/graphdef/import.h>
#include <core/formats/sniff.h>

#include <string.h>

/* Field number of GraphDef. */
enum { G_NODE = 1 };

#define LEAST_NODE 6 /* bytes of the smallest valid node: a name and an op of one byte each */

/* The default limit of an import's memory: a factor per byte of the file, plus a base in bytes. Nodes without inputs
 * and attributes take the most memory per byte; docs/formats.md has measurements. */
#define BUDGET_FACTOR 64
#define BUDGET_BASE ((size_t)16 << 20)
/* The memory of a node outside the arena. The factors account for storage and index that double when they are full. */
#define NODE_BYTES (2 * sizeof(tn_operation) + 6 * sizeof(uint64_t))

#define no_memory tn__import_no_memory

/* ---- memory ---- */

static size_t budget_of(const tn_import_options *o, size_t given)
{
  if (o->budget != 0) return o->budget < SIZE_MAX ? (size_t)o->budget : SIZE_MAX;
  return given > (SIZE_MAX - BUDGET_BASE) / BUDGET_FACTOR ? SIZE_MAX : given * BUDGET_FACTOR + BUDGET_BASE;
}

/* Replaces the error "out of memory" by one that names the budget. */
static void over_budget(tn__importer *im, size_t refused)
{
  char node[256] = "";
  const char *why = im->options->budget != 0 ? "tn_import_options.budget" : "64 for each byte of the file and 16 MiB";
  if (im->at.size > 0) tn__snprintf(node, sizeof node, "node '%.*s': ", tn__import_shown(im->at), im->at.data);
  tn__error_reset(im->err); /* tn_error_set keeps an existing error */
  tn_error_set(im->err, TN_RESOURCE_EXHAUSTED,
               "%s: %sthe import takes more memory than its budget of %zu bytes (%s): %zu more are needed",
               im->name, node, im->budget, why, refused);
}

/* ---- count ---- */

/* Counts nodes and other fields, and refuses files that are recognisably not a GraphDef. */
static tn_status count_nodes(tn__importer *im)
{
  tn__wire w = tn__wire_read(im->bytes);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) {
      im->n_nodes++;
      if (w.bytes.size < LEAST_NODE) break; /* it will be refused, so later nodes need no room */
    } else if (w.field == G_NODE) {
      /* Protobuf would ignore the field, and a SavedModel would be taken for a graph without nodes. */
      tn__fault fault = { w.at, "a node is a number: this is not a GraphDef" };
      return tn__import_malformed(im, &fault);
    } else {
      im->n_rest++;
    }
  }
  if (w.error != NULL) return tn__import_malformed_field(im, &w);
  /* To protobuf a message of another type may look like a GraphDef with unknown fields only. */
  if (im->n_nodes > 0 || im->translated || im->is_part || tn__sniff(im->bytes, im->name, false) == NULL) return TN_OK;
  return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: it contains no node", im->name);
}

/* ---- the import ---- */

/* Records the fields other than nodes, for export. */
static tn_status keep_rest(tn__importer *im, tn__import_record **out)
{
  tn__import_record *r = tn__arena_alloc(&im->graph->arena, sizeof *r);
  tn__slice *rest = tn__arena_alloc(&im->graph->arena, im->n_rest * sizeof *rest);
  if (r == NULL || rest == NULL) return no_memory(im);
  *r = (tn__import_record){ .file = im->file, .rest = rest };
  tn__wire w = tn__wire_read(im->bytes);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) continue;
    rest[r->n_rest++] = (tn__slice){ (const char *)w.at, (size_t)(w.p - w.at) };
  }
  *out = r;
  return TN_OK;
}

/* Functions first: nodes may call them. */
static tn_status read_all(tn__importer *im, tn__import_record **record)
{
  tn_status st = tn__functions_read(im->graph, im->bytes, &im->origin, &im->functions, im->err);
  if (st == TN_OK) st = tn__import_read(im);
  if (st == TN_OK) im->at.size = 0;
  if (st == TN_OK) st = tn__import_check_cycles(im);
  if (st == TN_OK && im->n_nodes + im->n_rest > 0) st = keep_rest(im, record);
  if (st == TN_OK && im->options->results != NULL) st = tn__import_make_results(im, im->options->results);
  return st;
}

/* Reserves room for all nodes. Charged per node, not by the growth of the storage: that depends on the graph's size. */
static tn_status reserve(tn__importer *im)
{
  size_t bytes, one = NODE_BYTES + (im->names.renames ? TN__IMPORT_ENTRY : 0);
  if (!tn__size_mul(im->n_nodes, one, &bytes) || !tn__arena_charge(&im->graph->arena, bytes)) return no_memory(im);
  return tn__graph_reserve(im->graph, im->n_nodes, im->err);
}

/* Release order of both stores: a reader that sees a node also sees the functions that it calls. */
static void publish(tn__importer *im, tn__import_record *record)
{
  tn_graph *g = im->graph;
  if (record == NULL) return; /* the file is empty */
  tn_buffer_ref(im->file);
  record->next = g->imports;
  g->imports = record;
  tn__functions_publish(g, im->functions, im->file);
  tn__graph_publish(g);
}

/* Bytes that were translated from another format are kept by the graph, so they are charged, too. */
static tn_status begin_budget(tn__importer *im)
{
  tn__arena_limit(&im->graph->arena, im->budget);
  return !im->translated || tn__arena_charge(&im->graph->arena, im->bytes.size) ? TN_OK : no_memory(im);
}

/* Runs the caller's check on the new nodes while they are still invisible. */
static tn_status check_devices(const tn__importer *im)
{
  tn_status st = TN_OK;
  for (size_t i = im->first; i < im->graph->staged && st == TN_OK; i++) {
    const tn_operation *op = tn__graph_at(im->graph, i);
    if (op->device[0] != 0) st = im->check->node(im->check->user, op, im->err);
  }
  return st;
}

/* The whole import, with the graph's lock held for writing. On failure the graph is as before. */
static tn_status run(tn__importer *im)
{
  tn_graph *g = im->graph;
  im->first = g->staged;
  tn__arena_mark mark = tn__arena_get_mark(&g->arena);
  tn_status st = begin_budget(im);
  if (st == TN_OK) st = count_nodes(im);
  if (st == TN_OK) st = tn__import_begin_map(im);
  if (st == TN_OK) st = tn__import_begin_names(im);
  if (st == TN_OK) st = reserve(im);
  tn__import_record *record = NULL;
  if (st == TN_OK) {
    atomic_store_explicit(&g->codec, &tn__graphdef_codec, memory_order_release);
    st = read_all(im, &record);
  }
  if (st == TN_OK && im->check != NULL) st = check_devices(im);
  size_t refused = tn__arena_end_limit(&g->arena);
  if (st == TN_OK) {
    publish(im, record);
    return st;
  }
  if (st == TN_RESOURCE_EXHAUSTED && refused > 0) over_budget(im, refused);
  tn__functions_abandon(im->functions);
  tn__graph_unstage(g, im->first, im->n_indexed);
  tn__arena_rewind(&g->arena, mark);
  return st;
}

static void importer_init(tn__importer *im, tn_graph *graph, const tn__source *source, size_t translated_from,
                          const tn_import_options *o)
{
  bool translated = translated_from != 0;
  *im = (tn__importer){ .graph = graph,
                        .file = source->file,
                        .bytes = source->bytes,
                        .name = source->name,
                        .flags = o->flags,
                        .translated = translated,
                        .is_part = source->is_part,
                        .origin = { source->name, tn_buffer_describe(source->file)->data,
                                    source->is_part ? TN_DATA_LOSS : TN_INVALID_ARGUMENT },
                        .options = o,
                        .budget = budget_of(o, translated ? translated_from : source->bytes.size) };
}

static void importer_fini(tn__importer *im)
{
  tn__import_end_names(im);
  tn__import_end_map(im);
  tn__free(im->inputs.at, im->inputs.room * sizeof *im->inputs.at);
  tn__free(im->entries.at, im->entries.room * sizeof *im->entries.at);
  tn__free(im->attrs, im->attr_room * sizeof *im->attrs);
  tn__free(im->waiting, im->waiting_room * sizeof *im->waiting);
}

tn_status tn__graphdef_import(tn_graph *graph, const tn__source *source, size_t translated_from,
                              const tn_import_options *o, const tn__import_check *check, tn_error *err)
{
  tn_status st = tn__ops_ensure(err);
  tn__importer *im = st == TN_OK ? tn__alloc(sizeof *im) : NULL;
  if (st == TN_OK && im == NULL) st = tn__no_memory(err, source->name, sizeof *im);
  if (st != TN_OK) return st;
  importer_init(im, graph, source, translated_from, o);
  im->check = check;
  im->err = err;
  tn__import_want_ops(graph, im->bytes);
  tn__rwlock_write(&graph->lock);
  st = run(im);
  tn__rwlock_unlock(&graph->lock);
  importer_fini(im);
  tn__free(im, sizeof *im);
  return st;
}
