/* SPDX-License-Identifier: Apache-2.0 */
/* Errors for files that are not a GraphDef name their format. */
#include <conformance/support/tap.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <core/formats/sniff.h>
#include <tenon/graph.h>

#include <conformance/support/graph_kit.h>

#define BYTES(text) text, sizeof(text) - 1

static tn_error err = TN_ERROR_INIT;

/* Imports bytes, which must be rejected, and returns the message. */
static const char *refused(const void *bytes, size_t size, const char *file)
{
  tn_graph *graph;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  const tn_import_options options = { .struct_size = sizeof options, .file = file };
  CHECK_STATUS(tn_graph_import(graph, bytes, size, &options, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_INT(tn_graph_n_operations(graph), 0);
  tn_graph_unref(graph);
  return tn_error_message(&err);
}

static void check_named(const void *bytes, size_t size, const char *file, const char *kind)
{
  char wanted[200];
  snprintf(wanted, sizeof wanted, "%s: this is %s, wanted a GraphDef (.pb, .pbtxt)", file, kind);
  CHECK_CONTAINS(refused(bytes, size, file), wanted);
}

static void sniff__names_files_by_their_signature(void)
{
  static const struct {
    const char *bytes;
    size_t size;
    const char *kind;
  } cases[] = {
    { BYTES("\x93NUMPY\1\0v\0{'descr': '<f4'}"), "a NumPy array (.npy)" },
    { BYTES("PK\3\4-\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0x.npy...."),
      "an archive of NumPy arrays (.npz)" },
    { BYTES("PK\3\4-\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0\0\0metadata.json...."), "a Keras model (.keras)" },
    { BYTES("PK\3\4-\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\12\0\0\0n/data.pkl...."), "a PyTorch model" },
    { BYTES("PK\3\4-\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\377\377\0\0a.txt"), "a ZIP archive" },
    { BYTES("PK\5\6\0\0\0\0"), "a ZIP archive" },
    { BYTES("\x1f\x8b\10\0\0\0\0\0"), "a gzip-compressed file" },
    { BYTES("\xfd"
            "7zXZ\0\0\4"),
      "a compressed file or archive" },
    { BYTES("\x7f"
            "ELF\2\1\1\0"),
      "a program or shared object (ELF)" },
    { BYTES("\x89HDF\r\n\x1a\n\0"), "an HDF5 file, as written by Keras (.h5)" },
    { BYTES("\x1c\0\0\0TFL3\0\0"), "a TensorFlow Lite model (.tflite)" },
    { BYTES("\x89PNG\r\n\x1a\n"), "a picture" },
    { BYTES("{\"node\": 1}"), "JSON" },
    { BYTES("\n [1, 2]"), "JSON" },
    { BYTES("<!DOCTYPE html><html>"), "an HTML page or XML" },
    { BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
      "a Git LFS pointer instead of the file" },
    { BYTES("model_checkpoint_path: \"model.ckpt\"\n"), "the list of the checkpoints in a folder" },
    { BYTES("saved_model_schema_version: 1\nmeta_graphs {\n}\n"), "a SavedModel as text (saved_model.pbtxt)" },
    { BYTES("meta_info_def {\n}\ngraph_def {\n}\n"), "a MetaGraph as text" },
    { BYTES("# A model\n\nGr\xc3\xbc\xc3\x9f"
            "e\n"),
      "text" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_named(cases[i].bytes, cases[i].size, "model.pb", cases[i].kind);
  char table[64] = { 0, 0, 6 };
  memcpy(table + 56, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
  check_named(table, sizeof table, "model.ckpt", "the index of a checkpoint (.index), or a checkpoint of version 1");
  check_named(BYTES("\0\1\2\3"), "a/model.ckpt.data-00000-of-00001", "a file with the values of a checkpoint (.data)");
}

static void sniff__names_messages_by_their_fields(void)
{
  gk_bytes node = { 0 }, graph = { 0 }, info = { 0 }, meta = { 0 }, saved = { 0 }, onnx = { 0 };
  gk_node(&node, "x", "NoOp", NULL);
  gk_add_node(&graph, &node);
  gk_data(&info, 5, "2.21.0", 6);
  gk_data(&meta, 1, info.data, info.size);
  gk_data(&meta, 2, graph.data, graph.size);
  check_named(meta.data, meta.size, "model.meta", "a MetaGraph of a checkpoint (.meta)");
  gk_int(&saved, 1, 1);
  gk_data(&saved, 2, meta.data, meta.size);
  check_named(saved.data, saved.size, "saved_model.pb", "a SavedModel (saved_model.pb)");
  gk_int(&onnx, 1, 8);
  gk_data(&onnx, 2, "pytorch", 7);
  gk_data(&onnx, 7, "\x0a\x00", 2);
  check_named(onnx.data, onnx.size, "model.onnx", "an ONNX model");
  gk_bytes *all[] = { &graph, &info, &meta, &saved, &onnx };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) gk_bytes_free(all[i]);
}

/* The error for a model in another format names the call and the command that open it. */
static void sniff__names_what_opens_models_and_checkpoints(void)
{
  static const struct {
    const char *bytes;
    size_t size;
    const char *advice;
  } cases[] = {
    { BYTES("\x08\x01\x12\x00"), "open it with tn_model_open, or with 'tenon run FOLDER'" },
    { BYTES("saved_model_schema_version: 1\n"), "open it with tn_model_open, or with 'tenon run FOLDER'" },
    { BYTES("meta_info_def {\n}\n"), "'tenon run X.meta --checkpoint PREFIX'" },
    { BYTES("model_checkpoint_path: \"model.ckpt\"\n"), "'tenon checkpoint' lists its tensors" },
    { BYTES("\x1c\0\0\0TFL3\0\0"), "the SavedModel or GraphDef that it was made from can be read" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    CHECK_CONTAINS(refused(cases[i].bytes, cases[i].size, "x.pb"), cases[i].advice);
  CHECK_CONTAINS(refused(BYTES("\0\1\2\3"), "model.data-00000-of-00001"), "'tenon checkpoint' lists its tensors");
}

/* The error for a faulty GraphDef, also one in text form, gives the position of the fault. */
static void sniff__errors_of_faulty_graphs_are_kept(void)
{
  CHECK_STR(refused(BYTES("\x0a\x05\x0a"), "model.pb"), "model.pb: byte 0: a field is longer than its message");
  CHECK_STR(refused(BYTES("node { name: 'x' op: 'NoOp' "), "model.pb"), "model.pb:1:6: NodeDef has no '}'");
  CHECK_CONTAINS(refused(BYTES("node { nmae: 'x' }"), "model.pb"), "model.pb:1:");
  CHECK_INT(tn_error_n_causes(&err), 0);
}

static void sniff__graphs_are_not_mistaken_for_other_formats(void)
{
  tn_graph *graph, *empty;
  void *bytes;
  size_t size;
  static const char functions[] = "library { function { signature { name: 'f' } } } versions { producer: 27 }";
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  CHECK_OK(tn_graph_import(graph, BYTES(functions), &options, &err), &err);
  REQUIRE_OK(tn_graph_export(graph, 0, &bytes, &size, &err), &err);
  CHECK(tn__sniff((tn__slice){ bytes, size }, "x.pb", false) == NULL);
  REQUIRE_OK(tn_graph_create(&empty, &err), &err);
  CHECK_OK(tn_graph_import(empty, bytes, size, NULL, &err), &err);
  CHECK_OK(tn_graph_import(empty, BYTES("\x22\x02\x08\x1b"), NULL, &err), &err); /* only versions */
  CHECK_OK(tn_graph_import(empty, "", 0, NULL, &err), &err);
  tn_free(bytes);
  tn_graph_unref(empty);
  tn_graph_unref(graph);
}

/* No prefix of such a file is read past its end. */
static void sniff__short_files_are_not_read_past_their_ends(void)
{
  static const char *const heads[] = { "\x93NUMPY",
                                       "PK\3\4aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                       "\x89HDF\r\n\x1a\n",
                                       "\x1c\1\1\1TFL3",
                                       "version https://git-lfs",
                                       "\xe2\x82\xac\xf0\x9f\x98\x80",
                                       "  \xef\xbb\xbf{" };
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
    for (size_t n = 0; n <= strlen(heads[i]); n++) {
      char *exact = malloc(n + (n == 0)); /* lets a sanitizer detect reads past the end */
      REQUIRE_PTR(exact);
      memcpy(exact, heads[i], n);
      tn__sniff((tn__slice){ exact, n }, n % 2 ? "x" : NULL, false);
      free(exact);
    }
}

static void make_file(const char *folder, const char *name)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  REQUIRE_PTR(file);
  fclose(file);
}

static void sniff__names_folders(void)
{
  static const struct {
    const char *name, *file, *kind;
  } cases[] = { { "saved", "saved_model.pb", "is the folder of a SavedModel, wanted a file with a GraphDef" },
                { "ckpt", "model.ckpt.index", "is a folder of checkpoints, wanted a file with a GraphDef" },
                { "other", "model.pb", "is a directory, wanted a regular file" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char folder[4000];
    tn_graph *graph;
    snprintf(folder, sizeof folder, "%s/%s", tap_scratch_dir(), cases[i].name);
    REQUIRE_INT(mkdir(folder, 0755), 0);
    make_file(folder, cases[i].file);
    REQUIRE_OK(tn_graph_create(&graph, &err), &err);
    CHECK_STATUS(tn_graph_import_file(graph, folder, NULL, &err), TN_INVALID_ARGUMENT, &err);
    CHECK_CONTAINS(tn_error_message(&err), folder);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].kind);
    tn_graph_unref(graph);
  }
  CHECK(tn__sniff_folder("/nowhere") == NULL);
  tn_error_clear(&err);
}

TAP_MAIN(
  TAP_TEST(sniff__names_files_by_their_signature),
  TAP_TEST(sniff__names_messages_by_their_fields),
  TAP_TEST(sniff__names_what_opens_models_and_checkpoints),
  TAP_TEST(sniff__errors_of_faulty_graphs_are_kept),
  TAP_TEST(sniff__graphs_are_not_mistaken_for_other_formats),
  TAP_TEST(sniff__short_files_are_not_read_past_their_ends),
  TAP_TEST(sniff__names_folders))
