/* SPDX-License-Identifier: Apache-2.0 */
/* GraphDef import: files, truncated and changed bytes, lack of memory, real models. */
#include "core/formats/graphdef/graphdef.h"
#include "conformance/support/graph_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

static void write_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  REQUIRE_PTR(f);
  CHECK_INT(fwrite(data, 1, size, f), size);
  fclose(f);
}

static void import_file__reads_and_rejects(void)
{
  tn_error err = TN_ERROR_INIT;
  char path[4200], text[4400];
  gk_bytes g = { 0 };
  tn_graph *graph;
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  gk_const(&g, "c", 3);
  snprintf(path, sizeof path, "%s/model.pb", tap_scratch_dir());
  write_file(path, g.data, g.size);
  CHECK_OK(tn_graph_import_file(graph, path, NULL, &err), &err);
  tn_tensor *t;
  CHECK_OK(tn__operation_constant(tn_graph_find(graph, "c"), &t, &err), &err);
  CHECK_DOUBLE(*(float *)tn_tensor_data(t), 3, 0);

  write_file(path, g.data, g.size - 1);
  CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_INVALID_ARGUMENT, &err);
  snprintf(text, sizeof text, "%s: byte 0: a field is longer", path);
  CHECK_CONTAINS(tn_error_message(&err), text);
  tn_import_options options = { .struct_size = sizeof options, .file = "the model" };
  CHECK_STATUS(tn_graph_import_file(graph, path, &options, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the model: byte 0");

  CHECK_STATUS(tn_graph_import_file(graph, tap_scratch_dir(), NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "a directory");
  CHECK_STATUS(tn_graph_import_file(graph, NULL, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_import_file(graph, "", NULL, &err), TN_INVALID_ARGUMENT, &err);
  snprintf(path, sizeof path, "%s/none.pb", tap_scratch_dir());
  CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "none.pb");
  snprintf(path, sizeof path, "%s/fifo", tap_scratch_dir());
  REQUIRE_INT(mkfifo(path, 0600), 0);
  CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "a FIFO");
  CHECK_STATUS(tn_graph_import_file(graph, "/dev/zero", NULL, &err), TN_INVALID_ARGUMENT, &err);
  snprintf(path, sizeof path, "%s/secret.pb", tap_scratch_dir());
  write_file(path, g.data, g.size);
  chmod(path, 0);
  if (geteuid() != 0) CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_PERMISSION_DENIED, &err);
  snprintf(path, sizeof path, "%s/huge.pb", tap_scratch_dir());
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  REQUIRE(fd >= 0);
  if (ftruncate(fd, (off_t)1 << 40) == 0) {
    CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_INVALID_ARGUMENT, &err);
    CHECK_CONTAINS(tn_error_message(&err), "1099511627776 bytes");
  }
  close(fd);
  unlink(path);
  CHECK_INT(tn_graph_n_operations(graph), 1);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

/* ---- mutations ---- */

/* A graph with an instance of everything. */
static void rich_graph(gk_bytes *g)
{
  gk_bytes node = { 0 }, v = { 0 }, list = { 0 }, func = { 0 }, proto = { 0 }, entry = { 0 };
  const int64_t dims[] = { 2, 3 };
  const float values[] = { 1, 2, 3, 4, 5, 6 };
  gk_in(g, "x");
  gk_add(g, "sum", "merge c");
  gk_const(g, "c", 1);
  gk_node(&node, "big", "GkConst", "^x");
  gk_tensor(&proto, TN_FLOAT, dims, 2, values, sizeof values);
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(g, &node);
  gk_node(&node, "ints", "GkConst", NULL);
  gk_tensor(&proto, TN_INT64, dims, 2, NULL, 0);
  gk_data(&proto, 10, "\x01\x80\x01\x03", 4);
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_INT64);
  gk_add_node(g, &node);
  gk_node(&node, "texts", "GkConst", NULL);
  gk_tensor(&proto, TN_STRING, dims, 2, NULL, 0);
  gk_text(&proto, 8, "hello");
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_STRING);
  gk_add_node(g, &node);
  gk_node(&node, "merge", "GkMerge", "x next ^big");
  gk_attr_int(&node, "N", 2);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(g, &node);
  gk_node(&node, "next", "GkNext", "sum:0");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_text(&node, 4, "/job:a/device:CPU:0");
  gk_add_node(g, &node);
  gk_node(&node, "attrs", "GkAttrs", NULL);
  gk_attr_shape(&node, "shape", dims, 2);
  gk_data(&list, 3, "\x05\xac\x02", 3);
  gk_message(&v, 1, &list);
  gk_attr(&node, "l", &v);
  gk_text(&list, 2, "one");
  gk_text(&list, 2, "two");
  gk_message(&v, 1, &list);
  gk_attr(&node, "ls", &v);
  gk_text(&func, 1, "body");
  gk_text(&entry, 1, "T");
  gk_int(&v, 6, 1);
  gk_message(&entry, 2, &v);
  gk_message(&func, 2, &entry);
  gk_message(&v, 10, &func);
  gk_attr(&node, "fn", &v);
  gk_add_node(g, &node);
  gk_node(&node, "odd", "Mystery", "sum split:2 ^attrs");
  gk_tensor(&proto, TN_HALF, dims, 2, NULL, 0);
  gk_int(&proto, 13, 15360);
  gk_message(&list, 8, &proto);
  gk_message(&v, 1, &list);
  gk_attr(&node, "tensors", &v);
  gk_add_node(g, &node);
  gk_node(&node, "split", "GkSplit", "x");
  gk_attr_int(&node, "N", 3);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(g, &node);
  gk_data(g, 2, "\x0a\x00", 2);
}

/* Calls every getter of the graph. */
static void read_everything(tn_graph *graph)
{
  for (size_t i = 0; i < tn_graph_n_operations(graph); i++) {
    tn_operation *op = tn_graph_operation(graph, i);
    CHECK(tn_graph_find(graph, tn_operation_name(op)) == op);
    for (size_t k = 0; k < tn_operation_n_attrs(op); k++) {
      const char *name = tn_operation_attr_name(op, k);
      tn_tensor *t;
      const char *text;
      const int64_t *dims;
      size_t n;
      int32_t rank;
      tn_operation_attr_tensor(op, name, &t, NULL);
      tn_operation_attr_tensor_at(op, name, 0, &t, &n, NULL);
      tn_operation_attr_string_at(op, name, 0, &text, &n, &n, NULL);
      tn_operation_attr_shape(op, name, &dims, &rank, NULL);
      tn_operation_attr_func(op, name, &text, NULL);
      tn_operation_attr_ints(op, name, &dims, &n, NULL);
    }
    for (size_t k = 0; k < tn_operation_n_outputs(op) && k < 100; k++) {
      int64_t dims[TN_MAX_RANK];
      int32_t rank;
      CHECK_INT(tn_output_shape((tn_output){ op, (int32_t)k }, dims, TN_MAX_RANK, &rank, NULL), TN_OK);
      tn_operation_output_dtype(op, k);
    }
    for (size_t k = 0; k < tn_operation_n_inputs(op); k++) {
      REQUIRE_PTR(tn_operation_input(op, k).op);
      tn_operation_input_dtype(op, k);
    }
    tn_tensor *t;
    if (tn_operation_schema(op) != NULL) tn__operation_constant(op, &t, NULL);
  }
}

/* Imports arbitrary bytes, in memory of exactly their size. True if they were accepted. */
static bool try_bytes(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  uint8_t *exact = malloc(size + 1);
  memcpy(exact, data, size);
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_status st = tn_graph_import(graph, exact, size, NULL, &err);
  free(exact);
  CHECK(st == TN_OK || st == TN_INVALID_ARGUMENT || st == TN_RESOURCE_EXHAUSTED);
  CHECK((st == TN_OK) == (*tn_error_message(&err) == 0));
  if (st != TN_OK) CHECK_INT(tn_graph_n_operations(graph), 0);
  read_everything(graph);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st == TN_OK;
}

static void import__survives_every_cut(void)
{
  gk_bytes g = { 0 };
  gk_register();
  rich_graph(&g);
  CHECK(try_bytes(g.data, g.size));
  uint64_t before = tn_test_live_bytes();
  for (size_t n = 0; n < g.size; n++) try_bytes(g.data, n);
  CHECK_INT(tn_test_live_bytes(), before);
  gk_bytes_free(&g);
}

static uint64_t next_random(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void import__survives_changed_bytes(void)
{
  gk_bytes g = { 0 };
  gk_register();
  rich_graph(&g);
  uint8_t *copy = malloc(g.size);
  uint64_t seed = 0x74656e6f6e, before = tn_test_live_bytes();
  size_t taken = 0, rounds = 6000;
  const char *more = getenv("TENON_TEST_ROUNDS");
  if (more != NULL) rounds = strtoul(more, NULL, 10);
  for (size_t round = 0; round < rounds; round++) {
    memcpy(copy, g.data, g.size);
    size_t changes = 1 + next_random(&seed) % 4;
    for (size_t i = 0; i < changes; i++) {
      uint8_t *byte = &copy[next_random(&seed) % g.size];
      switch (next_random(&seed) % 4) {
      case 0: *byte ^= (uint8_t)(1 << next_random(&seed) % 8); break;
      case 1: *byte = (uint8_t)next_random(&seed); break;
      case 2: *byte = 0xff; break;
      default: *byte = (uint8_t)(*byte + 1); break;
      }
    }
    taken += try_bytes(copy, g.size);
  }
  tap_note("%zu of %zu changed graphs were accepted", taken, rounds);
  CHECK(taken > 0 && taken < rounds);
  CHECK_INT(tn_test_live_bytes(), before);
  free(copy);
  gk_bytes_free(&g);
}

/* ---- lack of memory ---- */

static tn_status import_rich(void *arg)
{
  const gk_bytes *g = arg;
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_tensor *t;
  const char *text;
  size_t n;
  int32_t rank;
  tn_status st = tn_graph_create(&graph, &err);
  if (st == TN_OK) st = tn_graph_import(graph, g->data, g->size, NULL, &err);
  if (graph != NULL && st != TN_OK) CHECK_INT(tn_graph_n_operations(graph), 0);
  if (st == TN_OK) st = tn__operation_constant(tn_graph_find(graph, "ints"), &t, &err);
  if (st == TN_OK) st = tn__operation_constant(tn_graph_find(graph, "texts"), &t, &err);
  if (st == TN_OK) st = tn_operation_attr_tensor_at(tn_graph_find(graph, "odd"), "tensors", 0, &t, &n, &err);
  if (st == TN_OK) st = tn_operation_attr_string_at(tn_graph_find(graph, "attrs"), "ls", 0, &text, &n, &n, &err);
  if (st == TN_OK) st = tn_output_shape((tn_output){ tn_graph_find(graph, "next"), 0 }, NULL, 0, &rank, &err);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
}

static void import__nothing_leaks_without_memory(void)
{
  gk_bytes g = { 0 };
  gk_register();
  rich_graph(&g);
  tn_test_oom_sweep(import_rich, &g);
  gk_bytes_free(&g);
}

/* ---- real models ---- */

static void import__real_models(void)
{
  const char *root = getenv("TENON_MODELS");
  DIR *dir = root == NULL ? NULL : opendir(root);
  if (dir == NULL) TAP_SKIP("no models: set TENON_MODELS to their folder");
  size_t n = 0, nodes = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    tn_error err = TN_ERROR_INIT;
    char path[4200];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s/model.pb", root, entry->d_name);
    if (entry->d_name[0] == '.' || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
    tn_graph *graph;
    REQUIRE_OK(tn_graph_create(&graph, &err), &err);
    CHECK_OK(tn_graph_import_file(graph, path, NULL, &err), &err);
    nodes += tn_graph_n_operations(graph);
    read_everything(graph);
    tn_graph_unref(graph);
    tn_error_clear(&err);
    n++;
  }
  closedir(dir);
  tap_note("%zu models, %zu nodes", n, nodes);
  CHECK(n > 0);
}

TAP_MAIN(TAP_TEST(import_file__reads_and_rejects), TAP_TEST(import__survives_every_cut),
         TAP_TEST(import__survives_changed_bytes), TAP_TEST(import__nothing_leaks_without_memory),
         TAP_TEST(import__real_models))
