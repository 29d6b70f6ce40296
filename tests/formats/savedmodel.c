/* SPDX-License-Identifier: Apache-2.0 */
/* SavedModels and MetaGraphs: tags, signatures, savers, assets, damaged files, the text form, writing. The messages are
 * made here, field by field. */
#define _GNU_SOURCE
#include <core/formats/savedmodel/savedmodel.h>

#include <core/formats/file.h>
#include <core/formats/pbtxt/pbtxt.h>
#include <core/formats/wire.h>
#include <conformance/support/graph_kit.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tn_error err = TN_ERROR_INIT;

/* ---- messages ---- */

enum { INFO = 1, GRAPH = 2, SAVER = 3, COLLECTION = 4, SIGNATURE = 5, ASSET = 6, OBJECTS = 7 };
enum { INPUT = 1, OUTPUT = 2, METHOD = 3, DEFAULT = 4 };

static void put_tags(gk_bytes *meta, const char *const *tags, size_t n)
{
  gk_bytes info = { 0 };
  for (size_t i = 0; i < n; i++) gk_text(&info, 4, tags[i]);
  gk_text(&info, 5, "2.21.0");
  gk_text(&info, 6, "v2.21.0-rc1");
  gk_int(&info, 7, 1);
  gk_message(meta, INFO, &info);
}

static void put_tag(gk_bytes *meta, const char *tag) { put_tags(meta, &tag, 1); }

/* Two nodes: an input x, and y which is x + x. */
static void put_graph(gk_bytes *meta)
{
  gk_bytes graph = { 0 };
  gk_in(&graph, "x");
  gk_add(&graph, "y", "x x");
  gk_message(meta, GRAPH, &graph);
}

static void put_entry(gk_bytes *to, unsigned field, const char *key, gk_bytes *value)
{
  gk_bytes entry = { 0 };
  gk_text(&entry, 1, key);
  gk_message(&entry, 2, value);
  gk_message(to, field, &entry);
}

/* A TensorInfo; rank -1: unknown, -2: none. */
static void put_info(gk_bytes *info, const char *tensor, int64_t dtype, const int64_t *dims, int rank)
{
  gk_bytes shape = { 0 };
  if (tensor != NULL) gk_text(info, 1, tensor);
  if (dtype != 0) gk_int(info, 2, dtype);
  if (rank == -2) return;
  gk_shape(&shape, dims, rank);
  gk_message(info, 3, &shape);
}

static void put_endpoint(gk_bytes *signature, unsigned field, const char *key, const char *tensor, int64_t dtype)
{
  gk_bytes info = { 0 };
  put_info(&info, tensor, dtype, (const int64_t[]){ -1, 3 }, 2);
  put_entry(signature, field, key, &info);
}

static void put_collection(gk_bytes *meta, const char *key, const char *const *nodes, size_t n)
{
  gk_bytes list = { 0 }, collection = { 0 };
  for (size_t i = 0; i < n; i++) gk_text(&list, 1, nodes[i]);
  gk_message(&collection, 1, &list);
  put_entry(meta, COLLECTION, key, &collection);
}

/* A signature that names an op for the loader. */
static void put_op(gk_bytes *meta, const char *key, const char *op)
{
  gk_bytes signature = { 0 }, info = { 0 };
  put_info(&info, op, 0, NULL, -1);
  put_entry(&signature, OUTPUT, key, &info);
  put_entry(meta, SIGNATURE, key, &signature);
}

static void put_asset_def(gk_bytes *to, unsigned field, const char *tensor, const char *filename)
{
  gk_bytes info = { 0 }, asset = { 0 };
  put_info(&info, tensor, TN_STRING, NULL, 0);
  gk_message(&asset, 1, &info);
  gk_text(&asset, 2, filename);
  gk_message(to, field, &asset);
}

/* A signature "serving_default" with an input x and an output y. */
static void put_signature(gk_bytes *meta)
{
  gk_bytes signature = { 0 };
  put_endpoint(&signature, INPUT, "x", "x:0", TN_FLOAT);
  put_endpoint(&signature, OUTPUT, "y", "y:0", TN_FLOAT);
  gk_text(&signature, METHOD, "tensorflow/serving/predict");
  put_entry(meta, SIGNATURE, "serving_default", &signature);
}

static void put_saver(gk_bytes *meta)
{
  gk_bytes saver = { 0 };
  gk_text(&saver, 1, "save/Const:0");
  gk_text(&saver, 2, "save/control_dependency:0");
  gk_text(&saver, 3, "save/restore_all");
  gk_int(&saver, 5, 1);
  gk_int(&saver, 7, 2);
  gk_message(meta, SAVER, &saver);
}

/* Adds the MetaGraph to a SavedModel and frees it. */
static void add_meta(gk_bytes *saved, gk_bytes *meta)
{
  if (saved->size == 0) gk_int(saved, 1, 1);
  gk_message(saved, 2, meta);
}

/* A whole SavedModel with most of what one can have. */
static void rich(gk_bytes *saved)
{
  gk_bytes meta = { 0 };
  put_tag(&meta, "serve");
  put_graph(&meta);
  put_saver(&meta);
  put_collection(&meta, "saved_model_main_op", (const char *const[]){ "y" }, 1);
  put_signature(&meta);
  put_asset_def(&meta, ASSET, "x:0", "words.txt");
  add_meta(saved, &meta);
}

/* ---- reading ---- */

static tn_status read_bytes(const gk_bytes *bytes, tn__saved_model **out)
{
  tn_buffer *file;
  gk_register();
  tn_status st = tn__bytes_copy(bytes->data, bytes->size, &file, &err);
  if (st != TN_OK) return st;
  st = tn__saved_model_read(file, "model.pb", out, &err);
  tn_buffer_unref(file);
  return st;
}

/* Reads and frees the bytes, which must be right. */
static tn__saved_model *read_model(gk_bytes *bytes)
{
  tn__saved_model *model = NULL;
  REQUIRE_OK(read_bytes(bytes, &model), &err);
  gk_bytes_free(bytes);
  return model;
}

/* Likewise a MetaGraph, with the other parts that each one needs. */
static tn__saved_model *read_meta(gk_bytes *meta)
{
  gk_bytes saved = { 0 };
  put_tag(meta, "serve");
  put_graph(meta);
  add_meta(&saved, meta);
  return read_model(&saved);
}

/* Frees the bytes, which must be refused. */
static void check_refused(gk_bytes *bytes, tn_status status, const char *part)
{
  tn__saved_model *model = (tn__saved_model *)bytes;
  CHECK_STATUS(read_bytes(bytes, &model), status, &err);
  CHECK_CONTAINS(tn_error_message(&err), "model.pb");
  CHECK_CONTAINS(tn_error_message(&err), part);
  CHECK_NULL(model);
  tn_error_clear(&err);
  gk_bytes_free(bytes);
}

static void check_meta_refused(gk_bytes *meta, tn_status status, const char *part)
{
  gk_bytes saved = { 0 };
  put_tag(meta, "serve");
  put_graph(meta);
  add_meta(&saved, meta);
  check_refused(&saved, status, part);
}

static void check_endpoint(const tn__endpoint *e, const char *key, const char *tensor, tn_dtype dtype,
                           const char *shape)
{
  char text[100];
  CHECK_STR(e->key, key);
  CHECK_STR(e->tensor, tensor);
  CHECK_INT(e->dtype, dtype);
  CHECK_STR(tn__format_shape(text, sizeof text, e->dims, e->rank), shape);
}

static void savedmodel__reads_what_is_around_a_graph(void)
{
  gk_bytes saved = { 0 };
  rich(&saved);
  tn__saved_model *model = read_model(&saved);
  REQUIRE_INT(model->n_graphs, 1);
  CHECK(!model->is_meta && !model->is_text);
  const tn__metagraph *m = &model->graphs[0];
  REQUIRE_INT(m->n_tags, 1);
  CHECK_STR(m->tags[0], "serve");
  CHECK_STR(m->version, "2.21.0");
  CHECK_STR(m->git_version, "v2.21.0-rc1");
  CHECK(m->stripped_defaults);
  CHECK_STR(m->saver_filename, "save/Const:0");
  CHECK_STR(m->saver_save, "save/control_dependency:0");
  CHECK_STR(m->saver_restore, "save/restore_all");
  CHECK(m->saver_sharded);
  CHECK_INT(m->saver_version, 2);
  CHECK_STR(m->init_op, "y");
  CHECK_NULL(m->train_op);
  REQUIRE_INT(m->n_assets, 1);
  CHECK_STR(m->assets[0].tensor, "x:0");
  CHECK_STR(m->assets[0].filename, "words.txt");
  REQUIRE_INT(m->n_signatures, 1);
  const tn__signature_def *s = &m->signatures[0];
  CHECK_STR(s->name, "serving_default");
  CHECK_STR(s->method_name, "tensorflow/serving/predict");
  REQUIRE_INT(s->n_inputs, 1);
  REQUIRE_INT(s->n_outputs, 1);
  check_endpoint(&s->inputs[0], "x", "x:0", TN_FLOAT, "[?,3]");
  check_endpoint(&s->outputs[0], "y", "y:0", TN_FLOAT, "[?,3]");
  CHECK_NULL(m->object_graph.data);
  tn__saved_model_close(model);
}

/* A model can have next to nothing: then texts are empty, and there is no saver. */
static void savedmodel__reads_a_bare_graph(void)
{
  gk_bytes saved = { 0 }, meta = { 0 };
  put_graph(&meta);
  add_meta(&saved, &meta);
  tn__saved_model *model = read_model(&saved);
  const tn__metagraph *m = &model->graphs[0];
  size_t chosen = 7;
  CHECK_INT(m->n_tags + m->n_signatures + m->n_assets, 0);
  CHECK_STR(m->version, "");
  CHECK_STR(m->git_version, "");
  CHECK(m->saver_restore == NULL && m->saver_filename == NULL && m->init_op == NULL);
  CHECK_INT(m->saver_version, 0);
  CHECK_OK(tn__saved_model_choose(model, NULL, 0, &chosen, &err), &err);
  CHECK_INT(chosen, 0);
  tn__saved_model_close(model);
}

/* A .meta file is one MetaGraph, and a checkpoint of version 1 says nothing about its version. */
static void savedmodel__reads_meta_graphs(void)
{
  gk_bytes meta = { 0 }, saver = { 0 };
  put_tags(&meta, NULL, 0);
  put_graph(&meta);
  gk_text(&saver, 3, "save/restore_all");
  gk_message(&meta, SAVER, &saver);
  CHECK(tn__saved_model_fits((tn__slice){ (const char *)meta.data, meta.size }));
  tn__saved_model *model = read_model(&meta);
  REQUIRE_INT(model->n_graphs, 1);
  CHECK(model->is_meta);
  CHECK_INT(model->graphs[0].n_tags, 0);
  CHECK_STR(model->graphs[0].saver_restore, "save/restore_all");
  CHECK_NULL(model->graphs[0].saver_filename);
  CHECK_INT(model->graphs[0].saver_version, 1);
  tn__saved_model_close(model);
}

static void savedmodel__is_not_mistaken_for_a_graph(void)
{
  gk_bytes saved = { 0 }, graph = { 0 };
  static const char text[] = "node { name: 'x' op: 'NoOp' }";
  static const char meta_text[] = " # A model\nmeta_info_def { tags: 'serve' }";
  rich(&saved);
  gk_in(&graph, "x");
  CHECK(tn__saved_model_fits((tn__slice){ (const char *)saved.data, saved.size }));
  CHECK(!tn__saved_model_fits((tn__slice){ (const char *)graph.data, graph.size }));
  CHECK(!tn__saved_model_fits((tn__slice){ text, sizeof text - 1 }));
  CHECK(tn__saved_model_fits((tn__slice){ meta_text, sizeof meta_text - 1 }));
  CHECK(!tn__saved_model_fits((tn__slice){ NULL, 0 }));
  gk_bytes_free(&saved);
  gk_bytes_free(&graph);
}

/* ---- signatures ---- */

static void savedmodel__sorts_signatures_and_keys(void)
{
  gk_bytes meta = { 0 }, first = { 0 }, second = { 0 }, info = { 0 }, tensor = { 0 };
  put_endpoint(&first, INPUT, "b", "b", TN_INT32); /* a node's name is its output 0 */
  put_endpoint(&first, INPUT, "a", "a:2", TN_FLOAT + TN_DTYPE_REF);
  put_info(&info, "k:0", TN_BOOL, NULL, -1);
  put_entry(&first, INPUT, "k", &info);
  put_info(&info, "n:0", 0, NULL, -2);
  put_entry(&first, INPUT, "n", &info);
  put_info(&info, "s:0", TN_STRING, NULL, 0);
  put_entry(&first, INPUT, "s", &info);
  gk_tensor(&tensor, TN_BOOL, NULL, 0, "\1", 1);
  put_entry(&first, DEFAULT, "k", &tensor);
  gk_tensor(&tensor, TN_BOOL, NULL, 0, "\1", 1);
  put_entry(&first, DEFAULT, "unknown", &tensor);
  put_entry(&meta, SIGNATURE, "zoo", &first);
  put_endpoint(&second, OUTPUT, "y", "y:0", TN_HALF);
  put_entry(&meta, SIGNATURE, "\xc3\xa4", &second);
  tn__saved_model *model = read_meta(&meta);
  const tn__signature_def *s = model->graphs[0].signatures;
  REQUIRE_INT(model->graphs[0].n_signatures, 2);
  CHECK_STR(s[1].name, "\xc3\xa4");
  CHECK_STR(s[1].method_name, "");
  REQUIRE_INT(s[0].n_inputs, 5);
  check_endpoint(&s[0].inputs[0], "a", "a:2", TN_FLOAT, "[?,3]");
  check_endpoint(&s[0].inputs[1], "b", "b:0", TN_INT32, "[?,3]");
  check_endpoint(&s[0].inputs[2], "k", "k:0", TN_BOOL, "unknown rank");
  check_endpoint(&s[0].inputs[3], "n", "n:0", TN_DTYPE_INVALID, "unknown rank");
  check_endpoint(&s[0].inputs[4], "s", "s:0", TN_STRING, "[]");
  CHECK(s[0].inputs[2].value.size > 0);
  CHECK_NULL(s[0].inputs[0].value.data);
  tn__saved_model_close(model);
}

/* A sparse or ragged value is one endpoint for each of its tensors. */
static void savedmodel__lists_the_components_of_composite_values(void)
{
  gk_bytes meta = { 0 }, signature = { 0 }, info = { 0 }, coo = { 0 }, composite = { 0 }, part = { 0 };
  put_info(&info, NULL, TN_FLOAT, (const int64_t[]){ -1, 7 }, 2);
  gk_text(&coo, 1, "v:0");
  gk_text(&coo, 2, "i:0");
  gk_text(&coo, 3, "d:0");
  gk_message(&info, 4, &coo);
  put_entry(&signature, OUTPUT, "sparse", &info);
  put_info(&info, NULL, TN_STRING, NULL, -1);
  gk_text(&coo, 1, "v:1");
  gk_text(&coo, 2, "i:1");
  gk_text(&coo, 3, "d:1");
  gk_message(&info, 4, &coo);
  put_entry(&signature, OUTPUT, "any", &info);
  for (int i = 0; i < 11; i++) {
    char name[32];
    snprintf(name, sizeof name, "part:%d", i);
    put_info(&part, name, TN_INT64, (const int64_t[]){ -1 }, 1);
    gk_message(&composite, 2, &part);
  }
  gk_message(&info, 5, &composite);
  put_entry(&signature, OUTPUT, "ragged", &info);
  put_entry(&meta, SIGNATURE, "s", &signature);
  tn__saved_model *model = read_meta(&meta);
  const tn__signature_def *s = &model->graphs[0].signatures[0];
  REQUIRE_INT(s->n_outputs, 17);
  check_endpoint(&s->outputs[0], "any/dense_shape", "d:1", TN_INT64, "[?]");
  check_endpoint(&s->outputs[1], "any/indices", "i:1", TN_INT64, "[?,?]");
  check_endpoint(&s->outputs[2], "any/values", "v:1", TN_STRING, "[?]");
  check_endpoint(&s->outputs[3], "ragged/0", "part:0", TN_INT64, "[?]");
  check_endpoint(&s->outputs[4], "ragged/1", "part:1", TN_INT64, "[?]");
  check_endpoint(&s->outputs[5], "ragged/10", "part:10", TN_INT64, "[?]");
  check_endpoint(&s->outputs[14], "sparse/dense_shape", "d:0", TN_INT64, "[2]");
  check_endpoint(&s->outputs[15], "sparse/indices", "i:0", TN_INT64, "[?,2]");
  check_endpoint(&s->outputs[16], "sparse/values", "v:0", TN_FLOAT, "[?]");
  tn__saved_model_close(model);
}

static void savedmodel__init_and_train_ops_are_no_signatures(void)
{
  gk_bytes meta = { 0 };
  put_op(&meta, "__saved_model_init_op", "init:0");
  put_op(&meta, "__saved_model_train_op", "step");
  put_collection(&meta, "saved_model_main_op", (const char *const[]){ "other" }, 1);
  tn__saved_model *model = read_meta(&meta);
  CHECK_INT(model->graphs[0].n_signatures, 0);
  CHECK_STR(model->graphs[0].init_op, "init");
  CHECK_STR(model->graphs[0].train_op, "step");
  tn__saved_model_close(model);
  put_collection(&meta, "legacy_init_op", (const char *const[]){ "legacy" }, 1);
  put_collection(&meta, "saved_model_main_op", NULL, 0);
  model = read_meta(&meta);
  CHECK_STR(model->graphs[0].init_op, "legacy");
  tn__saved_model_close(model);
  put_collection(&meta, "legacy_init_op", (const char *const[]){ "a", "b" }, 2);
  check_meta_refused(&meta, TN_INVALID_ARGUMENT, "the collection 'legacy_init_op' has 2 nodes, wanted one");
}

/* ---- tags ---- */

static void check_choice(const tn__saved_model *model, const char *const *tags, size_t n, size_t wanted)
{
  size_t found = 99;
  CHECK_OK(tn__saved_model_choose(model, tags, n, &found, &err), &err);
  CHECK_INT(found, wanted);
}

static void check_no_choice(const tn__saved_model *model, const char *const *tags, size_t n, tn_status status,
                            const char *message)
{
  size_t found = 99;
  CHECK_STATUS(tn__saved_model_choose(model, tags, n, &found, &err), status, &err);
  CHECK_STR(tn_error_message(&err), message);
  tn_error_clear(&err);
}

static void savedmodel__is_chosen_by_tags(void)
{
  static const char *const sets[][3] = { { "train" }, { "serve", "gpu", "serve" }, { "serve" }, { NULL } };
  static const size_t counts[] = { 1, 3, 1, 0 };
  gk_bytes saved = { 0 }, meta = { 0 };
  for (size_t i = 0; i < 4; i++) {
    put_tags(&meta, sets[i], counts[i]);
    put_graph(&meta);
    add_meta(&saved, &meta);
  }
  tn__saved_model *model = read_model(&saved);
  CHECK_INT(model->graphs[1].n_tags, 2); /* a set */
  check_choice(model, NULL, 0, 2);
  check_choice(model, (const char *const[]){ "train" }, 1, 0);
  check_choice(model, (const char *const[]){ "gpu", "serve" }, 2, 1);
  check_choice(model, (const char *const[]){ "serve", "gpu", "gpu" }, 3, 1);
  check_no_choice(model, (const char *const[]){ "gpu" }, 1, TN_NOT_FOUND,
                  "model.pb: no MetaGraph has exactly the tags {gpu}; there are: {train}, {gpu, serve}, {serve}, {}");
  check_no_choice(model, (const char *const[]){ "serve", NULL }, 2, TN_INVALID_ARGUMENT, "model.pb: tag 1 is NULL");
  tn__saved_model_close(model);
}

static void savedmodel__needs_tags_if_there_are_several(void)
{
  gk_bytes saved = { 0 }, meta = { 0 };
  for (int i = 0; i < 3; i++) {
    put_tag(&meta, i == 0 ? "train" : "eval");
    put_graph(&meta);
    add_meta(&saved, &meta);
  }
  tn__saved_model *model = read_model(&saved);
  check_no_choice(model, NULL, 0, TN_INVALID_ARGUMENT,
                  "model.pb: tags must be given: several MetaGraphs, and none with only 'serve'; there are: {train}, "
                  "{eval}, {eval}");
  check_no_choice(model, (const char *const[]){ "eval" }, 1, TN_INVALID_ARGUMENT,
                  "model.pb: several MetaGraphs have exactly the tags {eval}; there are: {train}, {eval}, {eval}");
  tn__saved_model_close(model);
}

/* A message stays short even if there are many tags, or long ones. */
static void savedmodel__shortens_lists_of_tags(void)
{
  gk_bytes saved = { 0 }, meta = { 0 };
  char tag[1000];
  size_t chosen;
  memset(tag, 'a', sizeof tag);
  tag[sizeof tag - 1] = 0;
  for (int i = 0; i < 1000; i++) {
    tag[0] = (char)('a' + i % 26);
    put_tag(&meta, tag);
    put_graph(&meta);
    add_meta(&saved, &meta);
  }
  tn__saved_model *model = read_model(&saved);
  CHECK_STATUS(tn__saved_model_choose(model, NULL, 0, &chosen, &err), TN_INVALID_ARGUMENT, &err);
  CHECK(strlen(tn_error_message(&err)) < 3000);
  CHECK_CONTAINS(tn_error_message(&err), ", ...");
  tn_error_clear(&err);
  tn__saved_model_close(model);
}

/* ---- assets ---- */

/* TensorFlow 1 lists assets in a collection, in messages of any type. */
static void put_asset_collection(gk_bytes *meta)
{
  gk_bytes list = { 0 }, collection = { 0 };
  static const char *const files[] = { "a.txt", "b.txt", "a.txt" };
  for (int i = 0; i < 4; i++) {
    gk_bytes any = { 0 }, holder = { 0 };
    tn__wire w;
    gk_text(&any, 1, i == 3 ? "type.googleapis.com/tensorflow.Other" : "type.googleapis.com/tensorflow.AssetFileDef");
    put_asset_def(&holder, 1, i == 1 ? "b:0" : "a:0", i == 3 ? "other" : files[i]);
    w = tn__wire_read((tn__slice){ (const char *)holder.data, holder.size });
    REQUIRE(tn__wire_next(&w));
    gk_data(&any, 2, w.bytes.data, w.bytes.size);
    gk_bytes_free(&holder);
    gk_message(&list, 1, &any);
  }
  gk_message(&collection, 5, &list);
  put_entry(meta, COLLECTION, "saved_model_assets", &collection);
}

static void savedmodel__lists_assets_of_both_versions(void)
{
  gk_bytes meta = { 0 };
  put_asset_collection(&meta);
  tn__saved_model *model = read_meta(&meta);
  const tn__metagraph *m = &model->graphs[0];
  REQUIRE_INT(m->n_assets, 2); /* one is listed twice */
  CHECK_STR(m->assets[0].filename, "a.txt");
  CHECK_STR(m->assets[1].filename, "b.txt");
  CHECK_STR(m->assets[1].tensor, "b:0");
  tn__saved_model_close(model);
  put_asset_collection(&meta);
  put_asset_def(&meta, ASSET, "c", "c.txt");
  model = read_meta(&meta);
  REQUIRE_INT(model->graphs[0].n_assets, 1);
  CHECK_STR(model->graphs[0].assets[0].filename, "c.txt");
  CHECK_STR(model->graphs[0].assets[0].tensor, "c:0");
  tn__saved_model_close(model);
  put_asset_def(&meta, ASSET, "c:0", "c.txt");
  put_asset_def(&meta, ASSET, "c:0", "d.txt");
  check_meta_refused(&meta, TN_DATA_LOSS, "the assets 'c.txt' and 'd.txt' have the same tensor 'c:0'");
  put_asset_def(&meta, ASSET, "", "c.txt");
  check_meta_refused(&meta, TN_DATA_LOSS, "an asset has no tensor");
}

static const char *in_scratch(const char *name)
{
  static char paths[8][4200];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", tap_scratch_dir(), name);
  return path;
}

static void write_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  REQUIRE_PTR(f);
  CHECK_INT(fwrite(data, 1, size, f), size);
  fclose(f);
}

static void check_no_asset(const char *filename, tn_status status, const char *part)
{
  char *path = (char *)filename;
  CHECK_STATUS(tn__asset_path(in_scratch("model"), filename, &path, &err), status, &err);
  CHECK_CONTAINS(tn_error_message(&err), part);
  CHECK_NULL(path);
  tn_error_clear(&err);
}

static void check_asset(const char *folder, const char *filename, const char *end)
{
  char *path = NULL;
  CHECK_OK(tn__asset_path(folder, filename, &path, &err), &err);
  REQUIRE_PTR(path);
  CHECK(path[0] == '/');
  CHECK_CONTAINS(path, end);
  tn__strfree(path);
}

static void make_folders(void)
{
  static const char *const folders[] = { "model", "model/assets", "model/assets/sub", "model/..data", "other" };
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) mkdir(in_scratch(folders[i]), 0755);
  write_file(in_scratch("model/assets/words.txt"), "a\n", 2);
  write_file(in_scratch("model/assets/..words"), "a\n", 2);
  write_file(in_scratch("model/assets/sub/more.txt"), "a\n", 2);
  write_file(in_scratch("model/..data/mounted.txt"), "a\n", 2);
  write_file(in_scratch("other/secret.txt"), "a\n", 2);
}

/* Links within the folder are what Kubernetes makes of a volume; one that leaves it is refused. */
static void savedmodel__assets_stay_in_the_folder(void)
{
  make_folders();
  REQUIRE_INT(symlink("../..data/mounted.txt", in_scratch("model/assets/mounted.txt")), 0);
  REQUIRE_INT(symlink("../../other/secret.txt", in_scratch("model/assets/secret.txt")), 0);
  REQUIRE_INT(symlink("../../other/none.txt", in_scratch("model/assets/nowhere.txt")), 0);
  REQUIRE_INT(symlink(in_scratch("other"), in_scratch("model/assets/away")), 0);
  REQUIRE_INT(symlink("loop", in_scratch("model/assets/loop")), 0);
  REQUIRE_INT(symlink("model", in_scratch("linked")), 0);
  check_asset(in_scratch("model"), "words.txt", "/model/assets/words.txt");
  check_asset(in_scratch("model/"), "sub/more.txt", "/model/assets/sub/more.txt");
  check_asset(in_scratch("model"), "..words", "/model/assets/..words");
  check_asset(in_scratch("model"), "mounted.txt", "/model/..data/mounted.txt");
  check_asset(in_scratch("linked"), "mounted.txt", "/model/..data/mounted.txt");
  check_no_asset("../../other/secret.txt", TN_INVALID_ARGUMENT, "the name contains '..'");
  check_no_asset("sub/../words.txt", TN_INVALID_ARGUMENT, "the name contains '..'");
  check_no_asset("sub/..", TN_INVALID_ARGUMENT, "the name contains '..'");
  check_no_asset(in_scratch("model/assets/words.txt"), TN_INVALID_ARGUMENT, "the name is absolute");
  check_no_asset("secret.txt", TN_INVALID_ARGUMENT, "a symbolic link leads out of it");
  check_no_asset("nowhere.txt", TN_INVALID_ARGUMENT, "a symbolic link leads out of it");
  check_no_asset("away/secret.txt", TN_INVALID_ARGUMENT, "a symbolic link leads out of it");
  check_no_asset("none.txt", TN_NOT_FOUND, "none.txt");
  check_no_asset("words.txt/more", TN_NOT_FOUND, "words.txt/more");
  check_no_asset("sub", TN_INVALID_ARGUMENT, "is not a regular file");
  check_no_asset("", TN_INVALID_ARGUMENT, "is not a regular file");
  check_no_asset("loop", TN_INVALID_ARGUMENT, "loop");
}

static void savedmodel__names_of_folders_that_only_begin_alike_are_outside(void)
{
  make_folders();
  mkdir(in_scratch("models"), 0755);
  write_file(in_scratch("models/secret.txt"), "a\n", 2);
  REQUIRE_INT(symlink("../../models/secret.txt", in_scratch("model/assets/alike.txt")), 0);
  check_no_asset("alike.txt", TN_INVALID_ARGUMENT, "a symbolic link leads out of it");
}

/* ---- damage ---- */

static void savedmodel__refuses_what_is_none(void)
{
  gk_bytes saved = { 0 }, meta = { 0 };
  gk_put(&saved, "", 0);
  check_refused(&saved, TN_NOT_FOUND, "the file is empty");
  gk_int(&saved, 1, 1);
  check_refused(&saved, TN_NOT_FOUND, "the SavedModel has no MetaGraph");
  gk_put(&saved, "\x08\x01\x18\x05", 4);
  check_refused(&saved, TN_DATA_LOSS, "it has no MetaGraph");
  gk_put(&saved, "no protocol buffer", 18);
  check_refused(&saved, TN_DATA_LOSS, "byte ");
  put_tag(&meta, "serve");
  add_meta(&saved, &meta);
  check_refused(&saved, TN_DATA_LOSS, "byte 4: a MetaGraph has no graph");
  put_tag(&meta, "serve");
  gk_int(&meta, GRAPH, 5); /* of another wire type */
  add_meta(&saved, &meta);
  check_refused(&saved, TN_DATA_LOSS, "a MetaGraph has no graph");
  put_graph(&meta);
  put_graph(&meta);
  add_meta(&saved, &meta);
  check_refused(&saved, TN_DATA_LOSS, "a MetaGraph has two graphs");
}

static void savedmodel__refuses_keys_that_are_there_twice(void)
{
  gk_bytes meta = { 0 }, signature = { 0 }, info = { 0 }, coo = { 0 };
  put_signature(&meta);
  put_signature(&meta);
  check_meta_refused(&meta, TN_DATA_LOSS, "the signature 'serving_default' is there twice");
  put_endpoint(&signature, INPUT, "x", "x:0", TN_FLOAT);
  put_endpoint(&signature, INPUT, "x", "y:0", TN_FLOAT);
  put_entry(&meta, SIGNATURE, "s", &signature);
  check_meta_refused(&meta, TN_DATA_LOSS, "signature 's': input 'x': the key is there twice");
  put_endpoint(&signature, OUTPUT, "x/values", "x:0", TN_FLOAT);
  put_info(&info, NULL, TN_FLOAT, NULL, -1);
  gk_text(&coo, 1, "v:0");
  gk_text(&coo, 2, "i:0");
  gk_text(&coo, 3, "d:0");
  gk_message(&info, 4, &coo);
  put_entry(&signature, OUTPUT, "x", &info);
  put_entry(&meta, SIGNATURE, "s", &signature);
  check_meta_refused(&meta, TN_DATA_LOSS, "signature 's': output 'x/values': the key is there twice");
}

static void savedmodel__refuses_bad_endpoints(void)
{
  gk_bytes meta = { 0 }, signature = { 0 }, info = { 0 }, part = { 0 }, composite = { 0 };
  static const struct {
    const char *tensor;
    int64_t dtype, dim;
    const char *message;
  } cases[] = {
    { "x:0", 77, 1, "signature 's': input 'k': no type has the number 77" },
    { "x:0", 100, 1, "no type has the number 100" },
    { "x:0", -1, 1, "no type has the number 18446744073709551615" },
    { "x:0", INT64_C(1) << 40, 1, "no type has the number 1099511627776" },
    { "x:0", 1, -2, "signature 's': input 'k': dimension 0 of a shape is -2" },
    { "", 1, 1, "signature 's': input 'k': it names no tensor" },
    { NULL, 1, 1, "signature 's': input 'k': it names no tensor" },
    { "x\n:0", 1, 1, "the name of a tensor has a control character" },
    { "\xff:0", 1, 1, "the name of a tensor is not UTF-8" },
    { "\xed\xa0\x80:0", 1, 1, "the name of a tensor is not UTF-8" }, /* a surrogate */
    { "\xc0\x80:0", 1, 1, "the name of a tensor is not UTF-8" },     /* too long for a NUL */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    put_info(&info, cases[i].tensor, cases[i].dtype, &cases[i].dim, 1);
    put_entry(&signature, INPUT, "k", &info);
    put_entry(&meta, SIGNATURE, "s", &signature);
    check_meta_refused(&meta, TN_DATA_LOSS, cases[i].message);
  }
  put_info(&part, NULL, TN_FLOAT, NULL, 0); /* a composite value within one */
  gk_text(&composite, 3, "");
  gk_message(&part, 5, &composite);
  gk_message(&composite, 2, &part);
  gk_message(&info, 5, &composite);
  put_entry(&signature, OUTPUT, "r", &info);
  put_entry(&meta, SIGNATURE, "s", &signature);
  check_meta_refused(&meta, TN_DATA_LOSS, "signature 's': output 'r/0': it names no tensor");
}

/* Every name is checked, so that messages and other programs can print it. */
static void savedmodel__refuses_names_with_control_characters(void)
{
  gk_bytes saved = { 0 }, meta = { 0 }, signature = { 0 }, saver = { 0 };
  put_tag(&meta, "serve\x1b[0m");
  put_graph(&meta);
  add_meta(&saved, &meta);
  check_refused(&saved, TN_DATA_LOSS, "a tag has a control character");
  put_entry(&meta, SIGNATURE, "a\x7f", &signature);
  check_meta_refused(&meta, TN_DATA_LOSS, "the name of a signature has a control character");
  put_endpoint(&signature, INPUT, "a\tb", "x:0", TN_FLOAT);
  put_entry(&meta, SIGNATURE, "s", &signature);
  check_meta_refused(&meta, TN_DATA_LOSS, "the key of a signature has a control character");
  put_asset_def(&meta, ASSET, "x:0", "a\n.txt");
  check_meta_refused(&meta, TN_DATA_LOSS, "the file name of an asset has a control character");
  gk_data(&saver, 3, "a\0b", 3);
  gk_message(&meta, SAVER, &saver);
  check_meta_refused(&meta, TN_DATA_LOSS, "the saver's restore_op_name has a control character");
  gk_int(&saver, 7, 3);
  gk_message(&meta, SAVER, &saver);
  check_meta_refused(&meta, TN_DATA_LOSS, "a checkpoint of version 3");
}

/* Unknown fields are ignored, whatever their type. */
static void savedmodel__ignores_unknown_fields(void)
{
  gk_bytes meta = { 0 }, signature = { 0 };
  put_endpoint(&signature, INPUT, "x", "x:0", TN_FLOAT);
  gk_text(&signature, 99, "new");
  gk_int(&signature, METHOD, 5); /* of another wire type */
  put_entry(&meta, SIGNATURE, "s", &signature);
  gk_int(&meta, SIGNATURE, 5);
  gk_text(&meta, 100, "new");
  gk_double(&meta, 101, 1.5);
  tn__saved_model *model = read_meta(&meta);
  REQUIRE_INT(model->graphs[0].n_signatures, 1);
  CHECK_STR(model->graphs[0].signatures[0].method_name, "");
  tn__saved_model_close(model);
}

/* No prefix of a model is taken for a model, and none is read past its end. */
static void savedmodel__reports_the_byte_where_a_file_is_cut(void)
{
  gk_bytes saved = { 0 };
  rich(&saved);
  for (size_t n = 0; n < saved.size; n++) {
    gk_bytes part = { malloc(n + (n == 0)), n, n }; /* lets a sanitizer detect reads past the end */
    REQUIRE_PTR(part.data);
    memcpy(part.data, saved.data, n);
    check_refused(&part, n == 0 || n == 2 ? TN_NOT_FOUND : TN_DATA_LOSS, n == 0 || n == 2 ? "" : "byte ");
  }
  gk_bytes_free(&saved);
}

/* A changed byte gives a model or an error, and what is read is consistent. */
static void savedmodel__survives_changed_bytes(void)
{
  gk_bytes saved = { 0 };
  int accepted = 0, n = 0;
  rich(&saved);
  for (size_t i = 0; i < saved.size; i++)
    for (int bit = 0; bit < 8; bit++, n++) {
      tn__saved_model *model;
      saved.data[i] ^= (uint8_t)(1 << bit);
      tn_status st = read_bytes(&saved, &model);
      saved.data[i] ^= (uint8_t)(1 << bit);
      CHECK((st == TN_OK) == (model != NULL));
      if (st != TN_OK) {
        CHECK(st == TN_DATA_LOSS || st == TN_INVALID_ARGUMENT || st == TN_NOT_FOUND);
        CHECK(tn_error_message(&err)[0] != 0);
        tn_error_clear(&err);
        continue;
      }
      accepted++;
      CHECK(model->n_graphs >= 1 && model->graphs[0].version != NULL);
      tn__saved_model_close(model);
    }
  tap_note("%d of %d changed models were accepted", accepted, n);
  gk_bytes_free(&saved);
}

/* Components repeat the key of their endpoint, which a file could use to ask for all memory. */
static void savedmodel__memory_is_bounded_by_the_size_of_the_file(void)
{
  gk_bytes meta = { 0 }, signature = { 0 }, info = { 0 }, composite = { 0 }, part = { 0 };
  enum { N = 100000 };
  char *key = malloc(N);
  REQUIRE_PTR(key);
  memset(key, 'k', N);
  key[N - 1] = 0;
  for (int i = 0; i < 10000; i++) {
    put_info(&part, "x:0", TN_FLOAT, NULL, -2);
    gk_message(&composite, 2, &part);
  }
  gk_message(&info, 5, &composite);
  put_entry(&signature, INPUT, key, &info);
  put_entry(&meta, SIGNATURE, "s", &signature);
  check_meta_refused(&meta, TN_RESOURCE_EXHAUSTED, "64 for each byte of the file");
  free(key);
  for (int i = 0; i < 100000; i++) gk_data(&meta, COLLECTION, "", 0);
  for (int i = 0; i < 100000; i++) gk_data(&signature, 5, "", 0);
  put_entry(&meta, SIGNATURE, "s", &signature);
  tn__saved_model_close(read_meta(&meta));
  for (int i = 0; i < 100000; i++) gk_data(&meta, SIGNATURE, "", 0);
  check_meta_refused(&meta, TN_DATA_LOSS, "the signature '' is there twice");
}

static void savedmodel__missing_files_are_not_found(void)
{
  tn__saved_model *model = (tn__saved_model *)&err;
  CHECK_STATUS(tn__saved_model_open(in_scratch("none.pb"), &model, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "none.pb");
  CHECK_NULL(model);
  CHECK_STATUS(tn__saved_model_open(tap_scratch_dir(), &model, &err), TN_INVALID_ARGUMENT, &err);
  tn_error_clear(&err);
  tn__saved_model_close(NULL);
}

/* ---- text ---- */

static const char text_model[] =
  "# Made by hand\nsaved_model_schema_version: 1\n"
  "meta_graphs {\n"
  "  meta_info_def { tags: 'serve' tensorflow_version: '2.21.0' }\n"
  "  graph_def { node { name: 'x' op: 'GkRun' } node { name: 'y' op: 'GkRun' input: '^x' } }\n"
  "  collection_def { key: 'saved_model_main_op' value { node_list { value: 'y' } } }\n"
  "  collection_def { key: 'saved_model_assets' value { any_list { value {\n"
  "    [type.googleapis.com/tensorflow.AssetFileDef] { tensor_info { name: 'x:0' } filename: 'w.txt' } } } } }\n"
  "  signature_def { key: 's' value {\n"
  "    inputs { key: 'k' value { name: 'x:0' dtype: DT_INT32 tensor_shape { dim { size: 2 } } } } } }\n"
  "  object_graph_def { nodes { function { function_spec { fullargspec { int64_value: -3 } } } } }\n"
  "}\n";

static void savedmodel__reads_the_text_form(void)
{
  gk_bytes text = { 0 };
  gk_put(&text, text_model, sizeof text_model - 1);
  tn__saved_model *model = read_model(&text);
  CHECK(model->is_text && !model->is_meta);
  const tn__metagraph *m = &model->graphs[0];
  CHECK_STR(m->tags[0], "serve");
  CHECK_STR(m->init_op, "y");
  REQUIRE_INT(m->n_assets, 1);
  CHECK_STR(m->assets[0].filename, "w.txt");
  check_endpoint(&m->signatures[0].inputs[0], "k", "x:0", TN_INT32, "[2]");
  static const char spec[] = "\x0a\x08\x32\x06\x12\x04\x0a\x02\x60\x05"; /* -3 has its sign in bit 0: 5 */
  REQUIRE_INT(m->object_graph.size, sizeof spec - 1);
  CHECK_BYTES(m->object_graph.data, spec, sizeof spec - 1);
  tn_graph *graph;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  CHECK_OK(tn__graph_import_slice(graph, m->graph, model->file, model->name, NULL, &err), &err);
  CHECK_INT(tn_graph_n_operations(graph), 2);
  tn__saved_model_close(model);
  tn_graph_unref(graph);
  gk_put(&text, "graph_def { node { name: 'x' op: 'NoOp' } }\n", 44);
  model = read_model(&text);
  CHECK(model->is_text && model->is_meta);
  tn__saved_model_close(model);
}

/* The text form of a model is read as the same bytes. */
static void savedmodel__text_is_printed_and_read_again(void)
{
  const tn__slice by_hand = { text_model, sizeof text_model - 1 };
  tn__sink bytes = tn__sink_memory(&err), text = tn__sink_memory(&err), again = tn__sink_memory(&err);
  REQUIRE_OK(tn__pbtxt_parse(by_hand, "x", &tn__pb_saved_model, &bytes, &err), &err);
  const tn__slice message = { bytes.data, bytes.used };
  REQUIRE_OK(tn__pbtxt_print(message, &tn__pb_saved_model, &text, &err), &err);
  const tn__slice printed = { text.data, text.used };
  REQUIRE_OK(tn__pbtxt_parse(printed, "x", &tn__pb_saved_model, &again, &err), &err);
  REQUIRE_INT(again.used, bytes.used);
  CHECK_BYTES(again.data, bytes.data, bytes.used);
  tn__sink_fini(&bytes);
  tn__sink_fini(&text);
  tn__sink_fini(&again);
}

static void savedmodel__reports_the_line_of_bad_text(void)
{
  gk_bytes text = { 0 };
  static const struct {
    const char *text, *message;
  } cases[] = {
    { "meta_graphs {\n  graph_dfe { }\n}\n", "model.pb:2:3: MetaGraphDef has no field 'graph_dfe'" },
    { "meta_graphs {\n", "model.pb:1:13: MetaGraphDef has no '}'" },
    { "meta_graphs { meta_info_def { any_info { [type.googleapis.com/x.Y] { } } } }", "is not known" },
    { "meta_graphs { meta_info_def { any_info { [type", "has no ']'" },
    { "meta_graphs { meta_info_def { any_info { type_url: 'a' [b/tensorflow.GraphDef] {} } } }", "a message already" },
    { "meta_graphs { meta_info_def { tags: 'serve' } }", "model.pb: a MetaGraph has no graph" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gk_put(&text, cases[i].text, strlen(cases[i].text));
    check_refused(&text, TN_DATA_LOSS, cases[i].message);
  }
}

/* ---- the graph ---- */

/* The graph is a slice of the file, of which the imported graph keeps a reference; constants are in place. */
static void savedmodel__graphs_are_imported_without_a_copy(void)
{
  gk_bytes saved = { 0 }, meta = { 0 }, graph = { 0 };
  tn_graph *imported;
  tn_tensor *t;
  void *bytes;
  size_t size;
  put_tag(&meta, "serve");
  gk_const(&graph, "c", 3);
  gk_const(&graph, "d", 4);
  gk_bytes wanted = { 0 };
  gk_put(&wanted, graph.data, graph.size);
  gk_message(&meta, GRAPH, &graph);
  put_signature(&meta);
  add_meta(&saved, &meta);
  tn__saved_model *model = read_model(&saved);
  const tn__metagraph *m = &model->graphs[0];
  REQUIRE_OK(tn_graph_create(&imported, &err), &err);
  REQUIRE_OK(tn__graph_import_slice(imported, m->graph, model->file, "model.pb", NULL, &err), &err);
  tn__saved_model_close(model);
  CHECK_OK(tn__operation_constant(tn_graph_find(imported, "d"), &t, &err), &err);
  CHECK_DOUBLE(*(float *)tn_tensor_data(t), 4, 0);
  REQUIRE_OK(tn_graph_export(imported, 0, &bytes, &size, &err), &err);
  CHECK_INT(size, wanted.size);
  CHECK_BYTES(bytes, wanted.data, wanted.size);
  tn_free(bytes);
  gk_bytes_free(&wanted);
  tn_graph_unref(imported);
}

/* Positions are those in the whole file, and damage is told from a graph that makes no sense. */
static void savedmodel__errors_in_a_graph_name_the_byte_of_the_file(void)
{
  gk_bytes saved = { 0 }, meta = { 0 };
  tn_graph *graph;
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  gk_data(&meta, GRAPH, "\x0a\x05\x0a", 3);
  add_meta(&saved, &meta);
  tn__saved_model *model = read_model(&saved);
  const tn__metagraph *m = &model->graphs[0];
  CHECK_STATUS(tn__graph_import_slice(graph, m->graph, model->file, "model.pb", NULL, &err), TN_DATA_LOSS, &err);
  CHECK_STR(tn_error_message(&err), "model.pb: byte 6: a field is longer than its message");
  tn__saved_model_close(model);
  gk_data(&meta, GRAPH, "\x12\x04\x0a\x02\x0a\x07", 6); /* in a function */
  add_meta(&saved, &meta);
  model = read_model(&saved);
  m = &model->graphs[0];
  CHECK_STATUS(tn__graph_import_slice(graph, m->graph, model->file, "model.pb", NULL, &err), TN_DATA_LOSS, &err);
  CHECK_CONTAINS(tn_error_message(&err), "model.pb: byte 10: ");
  tn__saved_model_close(model);
  static const char missing[] = "\x0a\x0c\x0a\x01x\x12\x04NoOp\x1a\x01y"; /* a node with an input y */
  gk_data(&meta, GRAPH, missing, sizeof missing - 1);
  add_meta(&saved, &meta);
  model = read_model(&saved);
  m = &model->graphs[0];
  CHECK_STATUS(tn__graph_import_slice(graph, m->graph, model->file, "model.pb", NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "model.pb: ");
  const tn_import_options text = { .struct_size = sizeof text, .flags = TN_IMPORT_TEXT };
  CHECK_STATUS(tn__graph_import_slice(graph, m->graph, model->file, "x", &text, &err), TN_INVALID_ARGUMENT, &err);
  tn__saved_model_close(model);
  CHECK_INT(tn_graph_n_operations(graph), 0);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* A constant in a large file is copied out at its first use, and its pages are returned; an export reads them again. */
static void savedmodel__parts_of_a_large_file_are_read_again(void)
{
  gk_bytes saved = { 0 }, meta = { 0 }, graph = { 0 }, node = { 0 }, tensor = { 0 };
  enum { N = 1 << 20 };
  const int64_t n = N;
  float *values = malloc(N * sizeof *values);
  REQUIRE_PTR(values);
  for (int i = 0; i < N; i++) values[i] = (float)i;
  gk_node(&node, "big", "GkConst", NULL);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_tensor(&tensor, TN_FLOAT, &n, 1, values, N * sizeof *values);
  gk_attr_tensor(&node, "value", &tensor);
  gk_add_node(&graph, &node);
  gk_bytes wanted = { 0 };
  gk_put(&wanted, graph.data, graph.size);
  put_tag(&meta, "serve"); /* so that the elements are not aligned as in a graph alone */
  gk_message(&meta, GRAPH, &graph);
  add_meta(&saved, &meta);
  write_file(in_scratch("large.pb"), saved.data, saved.size);
  gk_bytes_free(&saved);
  gk_register();
  tn__saved_model *model;
  tn_graph *imported;
  tn_tensor *t;
  void *bytes;
  size_t size;
  REQUIRE_OK(tn__saved_model_open(in_scratch("large.pb"), &model, &err), &err);
  REQUIRE_OK(tn_graph_create(&imported, &err), &err);
  REQUIRE_OK(tn__graph_import_slice(imported, model->graphs[0].graph, model->file, model->name, NULL, &err), &err);
  CHECK_OK(tn__operation_constant(tn_graph_find(imported, "big"), &t, &err), &err);
  CHECK_BYTES(tn_tensor_data(t), values, N * sizeof *values);
  REQUIRE_OK(tn_graph_export(imported, 0, &bytes, &size, &err), &err);
  CHECK_INT(size, wanted.size);
  CHECK_BYTES(bytes, wanted.data, wanted.size);
  tn__saved_model_close(model);
  tn_free(bytes);
  free(values);
  gk_bytes_free(&wanted);
  tn_graph_unref(imported);
}

/* ---- writing ---- */

static tn_graph *import_graph(const tn__saved_model *model)
{
  tn_graph *graph;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  REQUIRE_OK(tn__graph_import_slice(graph, model->graphs[0].graph, model->file, model->name, NULL, &err), &err);
  return graph;
}

static void check_same(const tn__metagraph *a, const tn__metagraph *b)
{
  CHECK_INT(b->n_tags, a->n_tags);
  CHECK_STR(b->tags[0], a->tags[0]);
  CHECK_STR(b->saver_filename, a->saver_filename);
  CHECK_STR(b->saver_save, a->saver_save);
  CHECK_STR(b->saver_restore, a->saver_restore);
  CHECK_INT(b->saver_sharded, a->saver_sharded);
  CHECK_INT(b->saver_version, a->saver_version);
  CHECK_STR(b->init_op, a->init_op);
  REQUIRE_INT(b->n_assets, a->n_assets);
  CHECK_STR(b->assets[0].tensor, a->assets[0].tensor);
  CHECK_STR(b->assets[0].filename, a->assets[0].filename);
  REQUIRE_INT(b->n_signatures, a->n_signatures);
  const tn__signature_def *s = &a->signatures[0], *t = &b->signatures[0];
  CHECK_STR(t->name, s->name);
  CHECK_STR(t->method_name, s->method_name);
  REQUIRE_INT(t->n_inputs, s->n_inputs);
  REQUIRE_INT(t->n_outputs, s->n_outputs);
  check_endpoint(&t->inputs[0], s->inputs[0].key, s->inputs[0].tensor, s->inputs[0].dtype, "[?,3]");
  check_endpoint(&t->outputs[0], s->outputs[0].key, s->outputs[0].tensor, s->outputs[0].dtype, "[?,3]");
}

/* Writes a model, reads it again and compares. */
static tn__saved_model *write_and_read(const tn__metagraph *m, tn_graph *graph)
{
  tn__saved_model *again;
  const char *path = in_scratch("written.pb");
  REQUIRE_OK(tn__saved_model_write(m, graph, path, &err), &err);
  REQUIRE_OK(tn__saved_model_open(path, &again, &err), &err);
  REQUIRE_INT(again->n_graphs, 1);
  CHECK(!again->is_meta);
  check_same(m, &again->graphs[0]);
  tn_graph *second = import_graph(again);
  CHECK_INT(tn_graph_n_operations(second), tn_graph_n_operations(graph));
  tn_graph_unref(second);
  return again;
}

static void savedmodel__is_written_as_it_was_read(void)
{
  gk_bytes saved = { 0 };
  rich(&saved);
  tn__saved_model *model = read_model(&saved);
  tn_graph *graph = import_graph(model);
  const tn__metagraph *m = &model->graphs[0];
  tn__saved_model *again = write_and_read(m, graph);
  CHECK_STR(again->graphs[0].version, "2.21.0");
  CHECK_STR(again->graphs[0].git_version, "v2.21.0-rc1");
  CHECK(again->graphs[0].stripped_defaults);
  REQUIRE_INT(again->graphs[0].signatures[0].bytes.size, m->signatures[0].bytes.size);
  CHECK_BYTES(again->graphs[0].signatures[0].bytes.data, m->signatures[0].bytes.data, m->signatures[0].bytes.size);
  tn__saved_model_close(again);
  tn__saved_model_close(model);
  tn_graph_unref(graph);
}

/* Without the bytes of a file everything is encoded anew. */
static void savedmodel__is_written_without_a_file(void)
{
  gk_bytes graph_bytes = { 0 };
  gk_in(&graph_bytes, "x");
  gk_add(&graph_bytes, "y", "x x");
  gk_register();
  tn_graph *graph = gk_import(&graph_bytes, &err);
  REQUIRE_PTR(graph);
  gk_bytes_free(&graph_bytes);
  const int64_t dims[] = { -1, 3 };
  const char *const tags[] = { "serve" };
  static const char value[] = "\x08\x01";
  tn__endpoint input = { .key = "x", .tensor = "x:0", .dtype = TN_FLOAT, .rank = 2, .dims = dims };
  tn__endpoint output = { .key = "y", .tensor = "y:0", .dtype = TN_FLOAT, .rank = 2, .dims = dims };
  input.value = (tn__slice){ value, 2 };
  tn__signature_def signature = { .name = "serving_default", .method_name = "", .inputs = &input, .n_inputs = 1,
                                  .outputs = &output, .n_outputs = 1 };
  tn__asset_def asset = { "x:0", "words.txt" };
  const tn__metagraph built = { .tags = tags, .n_tags = 1, .signatures = &signature, .n_signatures = 1,
                                .assets = &asset, .n_assets = 1, .init_op = "y", .train_op = "x",
                                .saver_filename = "x:0", .saver_restore = "y", .saver_save = "y:0",
                                .saver_version = 2 };
  tn__saved_model *again = write_and_read(&built, graph);
  CHECK_STR(again->graphs[0].version, "");
  CHECK_STR(again->graphs[0].git_version, "tenon " TN_VERSION_STRING);
  CHECK_STR(again->graphs[0].train_op, "x");
  CHECK_BYTES(again->graphs[0].signatures[0].inputs[0].value.data, value, 2);
  tn__saved_model_close(again);
  tn_graph_unref(graph);
}

/* TensorFlow refuses a collection of nodes that the graph lacks. Others stay, also those that it does not know. */
static void savedmodel__collections_follow_the_graph(void)
{
  gk_bytes saved = { 0 }, meta = { 0 }, floats = { 0 }, collection = { 0 };
  put_tag(&meta, "serve");
  put_graph(&meta);
  put_collection(&meta, "there", (const char *const[]){ "x", "y:0" }, 2);
  put_collection(&meta, "lost", (const char *const[]){ "x", "z:0" }, 2);
  put_collection(&meta, "legacy_init_op", (const char *const[]){ "y" }, 1);
  gk_float(&floats, 1, 1.5f);
  gk_message(&collection, 4, &floats);
  put_entry(&meta, COLLECTION, "numbers", &collection);
  add_meta(&saved, &meta);
  tn__saved_model *model = read_model(&saved), *again;
  tn_graph *graph = import_graph(model);
  const char *path = in_scratch("collections.pb");
  REQUIRE_OK(tn__saved_model_write(&model->graphs[0], graph, path, &err), &err);
  REQUIRE_OK(tn__saved_model_open(path, &again, &err), &err);
  static const char *const wanted[] = { "there", "numbers", "saved_model_main_op" };
  size_t n = 0;
  tn__wire w = tn__wire_read(again->graphs[0].bytes);
  while (tn__wire_next(&w)) {
    if (!tn__wire_is(&w, COLLECTION, TN__WIRE_BYTES)) continue;
    CHECK(n < 3 && tn__slice_is(tn__field_text(w.bytes, 1), wanted[n]));
    n++;
  }
  CHECK_INT(n, 3);
  CHECK_STR(again->graphs[0].init_op, "y");
  tn__saved_model_close(again);
  tn__saved_model_close(model);
  tn_graph_unref(graph);
}

static void savedmodel__failed_writing_leaves_no_file(void)
{
  gk_bytes saved = { 0 };
  rich(&saved);
  tn__saved_model *model = read_model(&saved);
  tn_graph *graph = import_graph(model);
  CHECK_STATUS(tn__saved_model_write(&model->graphs[0], graph, in_scratch("none/saved_model.pb"), &err), TN_NOT_FOUND,
               &err);
  CHECK_STATUS(tn__saved_model_write(&model->graphs[0], graph, "/dev/full", &err), TN_RESOURCE_EXHAUSTED, &err);
  tn_error_clear(&err);
  tn__saved_model_close(model);
  tn_graph_unref(graph);
}

/* ---- memory ---- */

static tn_status whole_way(void *arg)
{
  const gk_bytes *saved = arg;
  tn__saved_model *model;
  tn_graph *graph = NULL;
  size_t chosen;
  tn_error_clear(&err);
  tn_status st = read_bytes(saved, &model);
  if (st != TN_OK) return st;
  st = tn__saved_model_choose(model, (const char *const[]){ "serve" }, 1, &chosen, &err);
  if (st == TN_OK) st = tn_graph_create(&graph, &err);
  if (st == TN_OK)
    st = tn__graph_import_slice(graph, model->graphs[0].graph, model->file, model->name, NULL, &err);
  if (st == TN_OK) st = tn__saved_model_write(&model->graphs[0], graph, in_scratch("swept.pb"), &err);
  tn_graph_unref(graph);
  tn__saved_model_close(model);
  return st;
}

static tn_status find_asset(void *arg)
{
  char *path;
  tn_error_clear(&err);
  tn_status st = tn__asset_path(arg, "words.txt", &path, &err);
  tn__strfree(path);
  return st;
}

static tn_status choose_wrongly(void *arg)
{
  size_t chosen;
  tn_error_clear(&err);
  tn_status st = tn__saved_model_choose(arg, (const char *const[]){ "gpu" }, 1, &chosen, &err);
  return st == TN_NOT_FOUND ? TN_OK : st;
}

static void savedmodel__every_allocation_may_fail(void)
{
  gk_bytes saved = { 0 }, text = { 0 };
  rich(&saved);
  tn_test_oom_sweep(whole_way, &saved);
  gk_put(&text, text_model, sizeof text_model - 1);
  tn_test_oom_sweep(whole_way, &text);
  make_folders();
  tn_test_oom_sweep(find_asset, (void *)in_scratch("model"));
  tn__saved_model *model = read_model(&saved);
  tn_test_oom_sweep(choose_wrongly, model);
  tn__saved_model_close(model);
  gk_bytes_free(&text);
  tn_error_clear(&err);
}

TAP_MAIN(
  TAP_TEST(savedmodel__reads_what_is_around_a_graph),
  TAP_TEST(savedmodel__reads_a_bare_graph),
  TAP_TEST(savedmodel__reads_meta_graphs),
  TAP_TEST(savedmodel__is_not_mistaken_for_a_graph),
  TAP_TEST(savedmodel__sorts_signatures_and_keys),
  TAP_TEST(savedmodel__lists_the_components_of_composite_values),
  TAP_TEST(savedmodel__init_and_train_ops_are_no_signatures),
  TAP_TEST(savedmodel__is_chosen_by_tags),
  TAP_TEST(savedmodel__needs_tags_if_there_are_several),
  TAP_TEST(savedmodel__shortens_lists_of_tags),
  TAP_TEST(savedmodel__lists_assets_of_both_versions),
  TAP_TEST(savedmodel__assets_stay_in_the_folder),
  TAP_TEST(savedmodel__names_of_folders_that_only_begin_alike_are_outside),
  TAP_TEST(savedmodel__refuses_what_is_none),
  TAP_TEST(savedmodel__refuses_keys_that_are_there_twice),
  TAP_TEST(savedmodel__refuses_bad_endpoints),
  TAP_TEST(savedmodel__refuses_names_with_control_characters),
  TAP_TEST(savedmodel__ignores_unknown_fields),
  TAP_TEST(savedmodel__reports_the_byte_where_a_file_is_cut),
  TAP_TEST(savedmodel__survives_changed_bytes),
  TAP_TEST(savedmodel__memory_is_bounded_by_the_size_of_the_file),
  TAP_TEST(savedmodel__missing_files_are_not_found),
  TAP_TEST(savedmodel__reads_the_text_form),
  TAP_TEST(savedmodel__text_is_printed_and_read_again),
  TAP_TEST(savedmodel__reports_the_line_of_bad_text),
  TAP_TEST(savedmodel__graphs_are_imported_without_a_copy),
  TAP_TEST(savedmodel__errors_in_a_graph_name_the_byte_of_the_file),
  TAP_TEST(savedmodel__parts_of_a_large_file_are_read_again),
  TAP_TEST(savedmodel__is_written_as_it_was_read),
  TAP_TEST(savedmodel__is_written_without_a_file),
  TAP_TEST(savedmodel__collections_follow_the_graph),
  TAP_TEST(savedmodel__failed_writing_leaves_no_file),
  TAP_TEST(savedmodel__every_allocation_may_fail))
