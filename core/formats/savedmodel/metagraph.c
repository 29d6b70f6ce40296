/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a MetaGraphDef: tags and versions, the saver, collections. Of a field that occurs twice the last one counts,
 * but a second graph is refused. */
#include <core/formats/savedmodel/reader.h>

#include <stdlib.h>
#include <string.h>

/* MetaInfoDef */
enum { I_TAG = 4, I_VERSION = 5, I_GIT_VERSION = 6, I_STRIPPED = 7 };
/* SaverDef */
enum { V_FILENAME = 1, V_SAVE = 2, V_RESTORE = 3, V_SHARDED = 5, V_VERSION = 7 };
/* CollectionDef and its NodeList */
enum { C_NODES = 1, L_VALUE = 1 };

/* ---- MetaInfoDef ---- */

static int compare_texts(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the tags and removes duplicates: they are a set. */
static size_t sort_tags(const char **tags, size_t n)
{
  size_t kept = 0;
  if (n > 1) qsort(tags, n, sizeof *tags, compare_texts);
  for (size_t i = 0; i < n; i++)
    if (kept == 0 || strcmp(tags[kept - 1], tags[i]) != 0) tags[kept++] = tags[i];
  return kept;
}

static tn_status read_tags(tn__sm_reader *r, tn__metagraph *m)
{
  const char **tags;
  size_t n;
  tn_status st = tn__sm_count(r, m->info, I_TAG, &n);
  if (st == TN_OK) st = tn__sm_array(r, n, sizeof *tags, &tags);
  tn__wire w = tn__wire_read(m->info);
  for (size_t i = 0; st == TN_OK && tn__wire_next(&w);)
    if (tn__wire_is(&w, I_TAG, TN__WIRE_BYTES)) st = tn__sm_text(r, w.bytes, "a tag", &tags[i++]);
  if (st != TN_OK) return st;
  m->n_tags = sort_tags(tags, n);
  m->tags = tags;
  return TN_OK;
}

static tn_status read_info(tn__sm_reader *r, tn__metagraph *m)
{
  tn__slice version = { NULL, 0 }, git = version;
  tn__wire w = tn__wire_read(m->info);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, I_VERSION, TN__WIRE_BYTES)) version = w.bytes;
    if (tn__wire_is(&w, I_GIT_VERSION, TN__WIRE_BYTES)) git = w.bytes;
    if (tn__wire_is(&w, I_STRIPPED, TN__WIRE_VARINT)) m->stripped_defaults = w.value != 0;
  }
  tn_status st = tn__sm_after(r, &w);
  if (st == TN_OK) st = tn__sm_text(r, version, "tensorflow_version", &m->version);
  if (st == TN_OK) st = tn__sm_text(r, git, "tensorflow_git_version", &m->git_version);
  return st == TN_OK ? read_tags(r, m) : st;
}

/* ---- SaverDef ---- */

/* An empty name counts as none. */
static tn_status read_name(tn__sm_reader *r, tn__slice text, const char *what, const char **out)
{
  tn_status st = tn__sm_text(r, text, what, out);
  if (st == TN_OK && **out == 0) *out = NULL;
  return st;
}

/* The version 0 is the legacy form, which is that of version 1. */
static tn_status read_saver_version(tn__sm_reader *r, uint64_t version, tn__metagraph *m)
{
  m->saver_version = version == 2 ? 2 : 1;
  if (version <= 2) return TN_OK;
  return tn_error_set(r->err, TN_DATA_LOSS, "%s: saver_def: a checkpoint of version %lld, wanted 1 or 2",
                      r->model->name, (long long)version);
}

static tn_status read_saver(tn__sm_reader *r, tn__metagraph *m)
{
  tn__slice filename = { m->saver.data, 0 }, save = filename, restore = filename;
  uint64_t version = 0;
  tn__wire w = tn__wire_read(m->saver);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, V_FILENAME, TN__WIRE_BYTES)) filename = w.bytes;
    if (tn__wire_is(&w, V_SAVE, TN__WIRE_BYTES)) save = w.bytes;
    if (tn__wire_is(&w, V_RESTORE, TN__WIRE_BYTES)) restore = w.bytes;
    if (tn__wire_is(&w, V_SHARDED, TN__WIRE_VARINT)) m->saver_sharded = w.value != 0;
    if (tn__wire_is(&w, V_VERSION, TN__WIRE_VARINT)) version = w.value;
  }
  tn_status st = tn__sm_after(r, &w);
  if (st == TN_OK) st = read_name(r, filename, "the saver's filename_tensor_name", &m->saver_filename);
  if (st == TN_OK) st = read_name(r, save, "the saver's save_tensor_name", &m->saver_save);
  if (st == TN_OK) st = read_name(r, restore, "the saver's restore_op_name", &m->saver_restore);
  return st == TN_OK ? read_saver_version(r, version, m) : st;
}

/* ---- collections ---- */

/* The collections that are used; no data: absent. */
typedef struct collections {
  tn__slice main_op, legacy_op, train_op, assets;
} collections;

static tn_status find_collection(tn__sm_reader *r, tn__slice entry, collections *c)
{
  tn__slice key, value;
  tn_status st = tn__sm_entry(r, entry, &key, &value);
  if (tn__slice_is(key, TN__SM_MAIN_OP)) c->main_op = value;
  if (tn__slice_is(key, TN__SM_LEGACY_OP)) c->legacy_op = value;
  if (tn__slice_is(key, TN__SM_TRAIN_OPS)) c->train_op = value;
  if (tn__slice_is(key, TN__SM_ASSETS)) c->assets = value;
  return st;
}

/* Reads the only node of a collection. */
static tn_status read_node(tn__sm_reader *r, tn__slice collection, const char *key, const char **out)
{
  tn__slice nodes = { NULL, 0 }, node = nodes;
  size_t n = 0;
  tn__wire w = tn__wire_read(collection), list;
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, C_NODES, TN__WIRE_BYTES)) nodes = w.bytes;
  tn_status st = tn__sm_after(r, &w);
  list = tn__wire_read(nodes);
  while (st == TN_OK && tn__wire_next(&list)) {
    if (!tn__wire_is(&list, L_VALUE, TN__WIRE_BYTES)) continue;
    node = list.bytes;
    n++;
  }
  if (st == TN_OK) st = tn__sm_after(r, &list);
  if (st != TN_OK || n == 0) return st;
  if (n > 1)
    return tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: the collection '%s' has %zu nodes, wanted one",
                        r->model->name, key, n);
  return read_name(r, node, "the node of a collection", out);
}

/* Signatures have priority; the main op replaced the legacy one. */
static tn_status read_collections(tn__sm_reader *r, const collections *c, tn__metagraph *m)
{
  tn_status st = TN_OK;
  if (m->init_op == NULL) st = read_node(r, c->main_op, TN__SM_MAIN_OP, &m->init_op);
  if (st == TN_OK && m->init_op == NULL) st = read_node(r, c->legacy_op, TN__SM_LEGACY_OP, &m->init_op);
  if (st == TN_OK && m->train_op == NULL) st = read_node(r, c->train_op, TN__SM_TRAIN_OPS, &m->train_op);
  return st;
}

/* ---- the whole message ---- */

/* Records the parts; signatures and assets are read from m->bytes later. */
static tn_status find_parts(tn__sm_reader *r, tn__metagraph *m, collections *c)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(m->bytes);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (w.type != TN__WIRE_BYTES) continue;
    if (w.field == TN__MG_INFO) m->info = w.bytes;
    if (w.field == TN__MG_GRAPH && m->graph.data != NULL)
      return tn__sm_malformed(r, w.at, "a MetaGraph has two graphs");
    if (w.field == TN__MG_GRAPH) m->graph = w.bytes;
    if (w.field == TN__MG_SAVER) m->saver = w.bytes;
    if (w.field == TN__MG_COLLECTION) st = find_collection(r, w.bytes, c);
    if (w.field == TN__MG_OBJECTS) m->object_graph = w.bytes;
  }
  if (st == TN_OK) st = tn__sm_after(r, &w);
  if (st == TN_OK && m->graph.data == NULL) st = tn__sm_malformed(r, m->bytes.data, "a MetaGraph has no graph");
  return st;
}

tn_status tn__sm_read_metagraph(tn__sm_reader *r, tn__slice bytes, tn__metagraph *m)
{
  collections c = { 0 };
  *m = (tn__metagraph){ .bytes = bytes, .version = "", .git_version = "" };
  tn_status st = find_parts(r, m, &c);
  if (st == TN_OK) st = read_info(r, m);
  if (st == TN_OK && m->saver.data != NULL) st = read_saver(r, m);
  if (st == TN_OK) st = tn__sm_read_signatures(r, m);
  if (st == TN_OK) st = read_collections(r, &c, m);
  return st == TN_OK ? tn__sm_read_assets(r, m, c.assets) : st;
}
