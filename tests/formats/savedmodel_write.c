/* SPDX-License-Identifier: Apache-2.0 */
/* Writing SavedModels. */
#define _GNU_SOURCE
#include "tests/support/savedmodel_kit.h"

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

static void savedmodel_write__is_written_as_it_was_read(void)
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
static void savedmodel_write__is_written_without_a_file(void)
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
static void savedmodel_write__collections_follow_the_graph(void)
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

static void savedmodel_write__failed_writing_leaves_no_file(void)
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

TAP_MAIN(
  TAP_TEST(savedmodel_write__is_written_as_it_was_read),
  TAP_TEST(savedmodel_write__is_written_without_a_file),
  TAP_TEST(savedmodel_write__collections_follow_the_graph),
  TAP_TEST(savedmodel_write__failed_writing_leaves_no_file))
