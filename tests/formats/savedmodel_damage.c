/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged SavedModels: what is refused, what is ignored, and which byte a message names. */
#define _GNU_SOURCE
#include "tests/support/savedmodel_kit.h"

/* ---- damage ---- */

static void savedmodel_damage__refuses_what_is_none(void)
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

static void savedmodel_damage__refuses_keys_that_are_there_twice(void)
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

static void savedmodel_damage__refuses_bad_endpoints(void)
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
static void savedmodel_damage__refuses_names_with_control_characters(void)
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
static void savedmodel_damage__ignores_unknown_fields(void)
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
static void savedmodel_damage__reports_the_byte_where_a_file_is_cut(void)
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
static void savedmodel_damage__survives_changed_bytes(void)
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
static void savedmodel_damage__memory_is_bounded_by_the_size_of_the_file(void)
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

static void savedmodel_damage__missing_files_are_not_found(void)
{
  tn__saved_model *model = (tn__saved_model *)&err;
  CHECK_STATUS(tn__saved_model_open(in_scratch("none.pb"), &model, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "none.pb");
  CHECK_NULL(model);
  CHECK_STATUS(tn__saved_model_open(tap_scratch_dir(), &model, &err), TN_INVALID_ARGUMENT, &err);
  tn_error_clear(&err);
  tn__saved_model_close(NULL);
}

TAP_MAIN(
  TAP_TEST(savedmodel_damage__refuses_what_is_none),
  TAP_TEST(savedmodel_damage__refuses_keys_that_are_there_twice),
  TAP_TEST(savedmodel_damage__refuses_bad_endpoints),
  TAP_TEST(savedmodel_damage__refuses_names_with_control_characters),
  TAP_TEST(savedmodel_damage__ignores_unknown_fields),
  TAP_TEST(savedmodel_damage__reports_the_byte_where_a_file_is_cut),
  TAP_TEST(savedmodel_damage__survives_changed_bytes),
  TAP_TEST(savedmodel_damage__memory_is_bounded_by_the_size_of_the_file),
  TAP_TEST(savedmodel_damage__missing_files_are_not_found))
