/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a SavedModel of one MetaGraph. What was read from a file and still holds is written as its original bytes:
 * versions, saver, signatures, collections.
 *
 * Without an object graph TensorFlow makes a function of each signature, and refuses one that depends on a placeholder,
 * as an init op does on those of the assets. So the init op and the training op are named by collections, as TensorFlow
 * 1 does, and not by signatures.
 *
 * The graph may be large, so it is streamed to the file. The parts before and after it are encoded in memory first,
 * because the message begins with its size. */
#include <core/formats/graphdef/graphdef.h>
#include <core/formats/savedmodel/reader.h>
#include <tenon/version.h>

#include <string.h>

/* SavedModel */
enum { S_VERSION = 1, S_GRAPH = 2, SCHEMA = 1 /* the value of S_VERSION */ };
/* MetaInfoDef */
enum { I_TAG = 4, I_VERSION = 5, I_GIT_VERSION = 6, I_STRIPPED = 7 };
/* SaverDef */
enum { V_FILENAME = 1, V_SAVE = 2, V_RESTORE = 3, V_SHARDED = 5, V_VERSION = 7 };
/* SignatureDef */
enum { D_INPUT = 1, D_OUTPUT = 2, D_METHOD = 3, D_DEFAULT = 4 };
/* TensorInfo; TensorShapeProto and its dimensions */
enum { T_NAME = 1, T_DTYPE = 2, T_SHAPE = 3, P_DIM = 2, P_UNKNOWN_RANK = 3, M_SIZE = 1 };
/* AssetFileDef; CollectionDef and its NodeList */
enum { A_TENSOR = 1, A_FILENAME = 2, C_NODES = 1, L_VALUE = 1 };

/* ---- parts of messages ---- */

static size_t begin(tn__sink *s, uint32_t field)
{
  tn__sink_tag(s, field, TN__WIRE_BYTES);
  return tn__sink_begin(s);
}

/* Empty texts are left out, as in protobuf. */
static void put_text(tn__sink *s, uint32_t field, const char *text)
{
  if (text != NULL && *text != 0) tn__sink_bytes(s, field, tn__slice_of(text));
}

/* Writes an encoded message if there is one. */
static bool put_ready(tn__sink *s, uint32_t field, tn__slice bytes)
{
  if (bytes.data != NULL) tn__sink_bytes(s, field, bytes);
  return bytes.data != NULL;
}

static void put_shape(tn__sink *s, const int64_t *dims, int32_t rank)
{
  size_t shape = begin(s, T_SHAPE);
  if (rank < 0) tn__sink_int(s, P_UNKNOWN_RANK, 1);
  for (int32_t i = 0; i < rank; i++) {
    size_t dim = begin(s, P_DIM);
    if (dims[i] != 0) tn__sink_int(s, M_SIZE, (uint64_t)dims[i]);
    tn__sink_end(s, dim);
  }
  tn__sink_end(s, shape);
}

static void put_tensor(tn__sink *s, uint32_t field, const tn__endpoint *e)
{
  size_t info = begin(s, field);
  put_text(s, T_NAME, e->tensor);
  if (e->dtype != TN_DTYPE_INVALID) tn__sink_int(s, T_DTYPE, (uint64_t)e->dtype);
  put_shape(s, e->dims, e->rank);
  tn__sink_end(s, info);
}

/* ---- signatures ---- */

static void put_endpoints(tn__sink *s, uint32_t field, const tn__endpoint *e, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    size_t entry = begin(s, field);
    put_text(s, TN__SM_KEY, e[i].key);
    put_tensor(s, TN__SM_VALUE, &e[i]);
    tn__sink_end(s, entry);
  }
}

static void put_defaults(tn__sink *s, const tn__endpoint *e, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (e[i].value.data == NULL) continue;
    size_t entry = begin(s, D_DEFAULT);
    put_text(s, TN__SM_KEY, e[i].key);
    tn__sink_bytes(s, TN__SM_VALUE, e[i].value);
    tn__sink_end(s, entry);
  }
}

static void put_signature(tn__sink *s, const tn__signature_def *signature)
{
  size_t entry = begin(s, TN__MG_SIGNATURE);
  put_text(s, TN__SM_KEY, signature->name);
  if (!put_ready(s, TN__SM_VALUE, signature->bytes)) {
    size_t value = begin(s, TN__SM_VALUE);
    put_endpoints(s, D_INPUT, signature->inputs, signature->n_inputs);
    put_endpoints(s, D_OUTPUT, signature->outputs, signature->n_outputs);
    put_text(s, D_METHOD, signature->method_name);
    put_defaults(s, signature->inputs, signature->n_inputs);
    tn__sink_end(s, value);
  }
  tn__sink_end(s, entry);
}

/* ---- the other parts ---- */

static void put_info(tn__sink *s, const tn__metagraph *m)
{
  if (put_ready(s, TN__MG_INFO, m->info)) return;
  size_t info = begin(s, TN__MG_INFO);
  for (size_t i = 0; i < m->n_tags; i++) put_text(s, I_TAG, m->tags[i]);
  put_text(s, I_VERSION, m->version); /* TensorFlow parses it, but accepts none */
  put_text(s, I_GIT_VERSION, m->version == NULL || *m->version == 0 ? "tenon " TN_VERSION_STRING : m->git_version);
  if (m->stripped_defaults) tn__sink_int(s, I_STRIPPED, 1);
  tn__sink_end(s, info);
}

static void put_saver(tn__sink *s, const tn__metagraph *m)
{
  if (put_ready(s, TN__MG_SAVER, m->saver) || m->saver_restore == NULL) return;
  size_t saver = begin(s, TN__MG_SAVER);
  put_text(s, V_FILENAME, m->saver_filename);
  put_text(s, V_SAVE, m->saver_save);
  put_text(s, V_RESTORE, m->saver_restore);
  if (m->saver_sharded) tn__sink_int(s, V_SHARDED, 1);
  tn__sink_int(s, V_VERSION, (uint64_t)(m->saver_version == 1 ? 1 : 2));
  tn__sink_end(s, saver);
}

static void put_asset(tn__sink *s, const tn__asset_def *asset)
{
  tn__endpoint tensor = { .tensor = asset->tensor, .dtype = TN_STRING };
  size_t message = begin(s, TN__MG_ASSET);
  put_tensor(s, A_TENSOR, &tensor);
  put_text(s, A_FILENAME, asset->filename);
  tn__sink_end(s, message);
}

/* Whether the graph has the node of this name, or that of the tensor of this name. */
static bool has_node(tn__sink *s, tn_graph *graph, tn__slice name)
{
  const char *colon = name.size > 0 ? memchr(name.data, ':', name.size) : NULL;
  if (colon != NULL) name.size = (size_t)(colon - name.data);
  char *text = tn__strndup(name.data, name.size);
  if (text == NULL) {
    s->status = tn__no_memory(s->err, "the name of a node", name.size + 1);
    return false;
  }
  bool found = tn_graph_find(graph, text) != NULL;
  tn__strfree(text);
  return found;
}

/* Whether the graph has all nodes of a collection. TensorFlow refuses a MetaGraph with others. */
static bool has_nodes(tn__sink *s, tn_graph *graph, tn__slice entry)
{
  tn__wire w = tn__wire_read(tn__field_text(tn__field_text(entry, TN__SM_VALUE), C_NODES));
  while (s->status == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, L_VALUE, TN__WIRE_BYTES) && !has_node(s, graph, w.bytes)) return false;
  return true;
}

/* A collection of one node. */
static void put_node(tn__sink *s, const char *key, const char *node)
{
  if (node == NULL || *node == 0) return;
  size_t entry = begin(s, TN__MG_COLLECTION);
  put_text(s, TN__SM_KEY, key);
  size_t value = begin(s, TN__SM_VALUE), list = begin(s, C_NODES);
  put_text(s, L_VALUE, node);
  tn__sink_end(s, list);
  tn__sink_end(s, value);
  tn__sink_end(s, entry);
}

/* Whether the MetaGraph's own field has what a collection says. */
static bool is_field(tn__slice entry)
{
  tn__slice key = tn__field_text(entry, TN__SM_KEY);
  return tn__slice_is(key, TN__SM_MAIN_OP) || tn__slice_is(key, TN__SM_LEGACY_OP) ||
         tn__slice_is(key, TN__SM_TRAIN_OPS) || tn__slice_is(key, TN__SM_ASSETS);
}

static void put_collections(tn__sink *s, const tn__metagraph *m, tn_graph *graph)
{
  tn__wire w = tn__wire_read(m->bytes);
  while (s->status == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__MG_COLLECTION, TN__WIRE_BYTES) && !is_field(w.bytes) && has_nodes(s, graph, w.bytes))
      tn__sink_bytes(s, TN__MG_COLLECTION, w.bytes);
  put_node(s, TN__SM_MAIN_OP, m->init_op);
  put_node(s, TN__SM_TRAIN_OPS, m->train_op);
}

/* Everything that follows the graph. */
static void put_rest(tn__sink *s, const tn__metagraph *m, tn_graph *graph)
{
  put_saver(s, m);
  put_collections(s, m, graph);
  for (size_t i = 0; i < m->n_signatures; i++) put_signature(s, &m->signatures[i]);
  for (size_t i = 0; i < m->n_assets; i++) put_asset(s, &m->assets[i]);
}

/* ---- the file ---- */

/* The pieces of a MetaGraph: `before`, the graph, `after`. */
typedef struct pieces {
  tn__sink before, after; /* in memory */
  tn__graph_writer *graph;
  size_t graph_size;
} pieces;

static void put_meta_graph(tn__sink *s, const void *what)
{
  const pieces *p = what;
  tn__sink_put(s, p->before.data, p->before.used);
  tn__sink_tag(s, TN__MG_GRAPH, TN__WIRE_BYTES);
  tn__sink_varint(s, p->graph_size);
  if (s->counts)
    s->before += p->graph_size; /* at most TN__FORMAT_LIMIT */
  else
    tn__graph_writer_put(p->graph, s);
  tn__sink_put(s, p->after.data, p->after.used);
}

static void put_saved_model(tn__sink *s, const pieces *p)
{
  tn__sink_int(s, S_VERSION, SCHEMA);
  tn__sink_message(s, S_GRAPH, put_meta_graph, p);
}

static tn_status check_size(const pieces *p, const char *path, tn_error *err)
{
  tn__sink count = tn__sink_counter(err);
  put_saved_model(&count, p);
  if (count.status != TN_OK || count.before <= TN__FORMAT_LIMIT) return count.status;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the model takes %zu bytes, wanted at most %zu", path, count.before,
                      (size_t)TN__FORMAT_LIMIT);
}

static tn_status write_file(const pieces *p, const char *path, tn_error *err)
{
  tn__writer w;
  tn_status st = tn__writer_open(&w, path, err);
  if (st != TN_OK) return st;
  tn__sink out = tn__sink_file(&w, err);
  put_saved_model(&out, p);
  st = tn__sink_flush(&out);
  tn__sink_fini(&out);
  if (st == TN_OK) st = tn__writer_sync(&w, err);
  if (st == TN_OK) return tn__writer_commit(&w, err);
  tn__writer_abandon(&w);
  return st;
}

tn_status tn__saved_model_write(const tn__metagraph *m, tn_graph *graph, const char *path, tn_error *err)
{
  pieces p = { .before = tn__sink_memory(err), .after = tn__sink_memory(err) };
  put_info(&p.before, m);
  put_rest(&p.after, m, graph);
  tn_status st = p.before.status != TN_OK ? p.before.status : p.after.status;
  if (st == TN_OK) st = tn__graph_writer_create(graph, &p.graph, &p.graph_size, err);
  if (st == TN_OK) st = check_size(&p, path, err);
  if (st == TN_OK) st = write_file(&p, path, err);
  tn__graph_writer_destroy(p.graph);
  tn__sink_fini(&p.before);
  tn__sink_fini(&p.after);
  return st;
}
