/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of SavedModels: messages, reading them, messages of errors. */
#ifndef TN_TESTS_SAVEDMODEL_KIT_H
#define TN_TESTS_SAVEDMODEL_KIT_H

#include <core/formats/file.h>
#include <core/formats/savedmodel/savedmodel.h>
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

static inline TN_UNUSED void put_tags(gk_bytes *meta, const char *const *tags, size_t n)
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
static inline TN_UNUSED void put_graph(gk_bytes *meta)
{
  gk_bytes graph = { 0 };
  gk_in(&graph, "x");
  gk_add(&graph, "y", "x x");
  gk_message(meta, GRAPH, &graph);
}

static inline TN_UNUSED void put_entry(gk_bytes *to, unsigned field, const char *key, gk_bytes *value)
{
  gk_bytes entry = { 0 };
  gk_text(&entry, 1, key);
  gk_message(&entry, 2, value);
  gk_message(to, field, &entry);
}

/* A TensorInfo; rank -1: unknown, -2: none. */
static inline TN_UNUSED void put_info(gk_bytes *info, const char *tensor, int64_t dtype, const int64_t *dims, int rank)
{
  gk_bytes shape = { 0 };
  if (tensor != NULL) gk_text(info, 1, tensor);
  if (dtype != 0) gk_int(info, 2, dtype);
  if (rank == -2) return;
  gk_shape(&shape, dims, rank);
  gk_message(info, 3, &shape);
}

static inline TN_UNUSED void put_endpoint(gk_bytes *signature, unsigned field, const char *key, const char *tensor,
                                          int64_t dtype)
{
  gk_bytes info = { 0 };
  put_info(&info, tensor, dtype, (const int64_t[]){ -1, 3 }, 2);
  put_entry(signature, field, key, &info);
}

static inline TN_UNUSED void put_collection(gk_bytes *meta, const char *key, const char *const *nodes, size_t n)
{
  gk_bytes list = { 0 }, collection = { 0 };
  for (size_t i = 0; i < n; i++) gk_text(&list, 1, nodes[i]);
  gk_message(&collection, 1, &list);
  put_entry(meta, COLLECTION, key, &collection);
}

/* A signature that names an op for the loader. */
static inline TN_UNUSED void put_op(gk_bytes *meta, const char *key, const char *op)
{
  gk_bytes signature = { 0 }, info = { 0 };
  put_info(&info, op, 0, NULL, -1);
  put_entry(&signature, OUTPUT, key, &info);
  put_entry(meta, SIGNATURE, key, &signature);
}

static inline TN_UNUSED void put_asset_def(gk_bytes *to, unsigned field, const char *tensor, const char *filename)
{
  gk_bytes info = { 0 }, asset = { 0 };
  put_info(&info, tensor, TN_STRING, NULL, 0);
  gk_message(&asset, 1, &info);
  gk_text(&asset, 2, filename);
  gk_message(to, field, &asset);
}

/* A signature "serving_default" with an input x and an output y. */
static inline TN_UNUSED void put_signature(gk_bytes *meta)
{
  gk_bytes signature = { 0 };
  put_endpoint(&signature, INPUT, "x", "x:0", TN_FLOAT);
  put_endpoint(&signature, OUTPUT, "y", "y:0", TN_FLOAT);
  gk_text(&signature, METHOD, "tensorflow/serving/predict");
  put_entry(meta, SIGNATURE, "serving_default", &signature);
}

static inline TN_UNUSED void put_saver(gk_bytes *meta)
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
static inline TN_UNUSED void add_meta(gk_bytes *saved, gk_bytes *meta)
{
  if (saved->size == 0) gk_int(saved, 1, 1);
  gk_message(saved, 2, meta);
}

/* A whole SavedModel with most of what one can have. */
static inline TN_UNUSED void rich(gk_bytes *saved)
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

static inline TN_UNUSED tn_status read_bytes(const gk_bytes *bytes, tn__saved_model **out)
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
static inline TN_UNUSED tn__saved_model *read_model(gk_bytes *bytes)
{
  tn__saved_model *model = NULL;
  REQUIRE_OK(read_bytes(bytes, &model), &err);
  gk_bytes_free(bytes);
  return model;
}

/* Likewise a MetaGraph, with the other parts that each one needs. */
static inline TN_UNUSED tn__saved_model *read_meta(gk_bytes *meta)
{
  gk_bytes saved = { 0 };
  put_tag(meta, "serve");
  put_graph(meta);
  add_meta(&saved, meta);
  return read_model(&saved);
}

/* Frees the bytes, which must be refused. */
static inline TN_UNUSED void check_refused(gk_bytes *bytes, tn_status status, const char *part)
{
  tn__saved_model *model = (tn__saved_model *)bytes;
  CHECK_STATUS(read_bytes(bytes, &model), status, &err);
  CHECK_CONTAINS(tn_error_message(&err), "model.pb");
  CHECK_CONTAINS(tn_error_message(&err), part);
  CHECK_NULL(model);
  tn_error_clear(&err);
  gk_bytes_free(bytes);
}

static inline TN_UNUSED void check_meta_refused(gk_bytes *meta, tn_status status, const char *part)
{
  gk_bytes saved = { 0 };
  put_tag(meta, "serve");
  put_graph(meta);
  add_meta(&saved, meta);
  check_refused(&saved, status, part);
}

static inline TN_UNUSED void check_endpoint(const tn__endpoint *e, const char *key, const char *tensor, tn_dtype dtype,
                           const char *shape)
{
  char text[100];
  CHECK_STR(e->key, key);
  CHECK_STR(e->tensor, tensor);
  CHECK_INT(e->dtype, dtype);
  CHECK_STR(tn__format_shape(text, sizeof text, e->dims, e->rank), shape);
}

static inline TN_UNUSED const char *in_scratch(const char *name)
{
  static char paths[8][4200];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", tap_scratch_dir(), name);
  return path;
}

static inline TN_UNUSED void write_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  REQUIRE_PTR(f);
  CHECK_INT(fwrite(data, 1, size, f), size);
  fclose(f);
}

#endif
