/* SPDX-License-Identifier: Apache-2.0 */
/* SavedModels and MetaGraphs: tags, signatures, savers, assets, the text form, their graph. */
#define _GNU_SOURCE
#include <core/formats/pbtxt/pbtxt.h>

#include "conformance/support/oom.h"
#include "tests/support/savedmodel_kit.h"

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
  TAP_TEST(savedmodel__reads_the_text_form),
  TAP_TEST(savedmodel__text_is_printed_and_read_again),
  TAP_TEST(savedmodel__reports_the_line_of_bad_text),
  TAP_TEST(savedmodel__graphs_are_imported_without_a_copy),
  TAP_TEST(savedmodel__errors_in_a_graph_name_the_byte_of_the_file),
  TAP_TEST(savedmodel__parts_of_a_large_file_are_read_again),
  TAP_TEST(savedmodel__every_allocation_may_fail))
