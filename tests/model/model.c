/* SPDX-License-Identifier: Apache-2.0 */
/* Models through the public calls: what they are, sessions of them, calls by key, restoring and saving. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/model/model.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"

static tn_error err;

/* y = a * x + b with a = 0.5 and b = 2; the signature train changes both. */
static const char *half_plus_two(void) { return tap_source_path("tests/data/saved/half_plus_two"); }

static tn_model *open_model(const char *path, const tn_model_options *options)
{
  tn_model *model = NULL;
  tn_error_clear(&err);
  REQUIRE_OK(tn_model_open(path, options, &model, &err), &err);
  REQUIRE_PTR(model);
  return model;
}

static tn_session *session_of(const char *path)
{
  tn_model *model = open_model(path, NULL);
  tn_session *session = NULL;
  REQUIRE_OK(tn_model_session(model, NULL, &session, &err), &err);
  tn_model_close(model); /* the session holds it */
  return session;
}

static tn_tensor *vector(float a, float b)
{
  const float values[] = { a, b };
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, (const int64_t[]){ 2 }, 1, values, sizeof values, &t, &err), &err);
  return t;
}

static const char *const key_x[] = { "x" }, *const key_y[] = { "y" };

/* Calls serving_default with x = (x0, x1). */
static tn_status call(tn_session *session, float x0, float x1, float y[2])
{
  tn_tensor *x = vector(x0, x1), *out = NULL;
  tn_error_clear(&err);
  tn_status st = tn_model_call(session, NULL, key_x, &x, 1, key_y, &out, 1, &err);
  if (st == TN_OK) memcpy(y, tn_tensor_data(out), 2 * sizeof y[0]);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  return st;
}

static void check_call(tn_session *session, float y0, float y1)
{
  float y[2] = { 0, 0 };
  CHECK_OK(call(session, 1, 2, y), &err);
  CHECK_DOUBLE(y[0], y0, 1e-6);
  CHECK_DOUBLE(y[1], y1, 1e-6);
}

/* One step of the signature train. */
static void train(tn_session *session)
{
  static const char *const in[] = { "x", "t" }, *const out[] = { "loss" };
  tn_tensor *feeds[] = { vector(1, 2), vector(5, 7) }, *loss = NULL;
  CHECK_OK(tn_model_call(session, "train", in, feeds, 2, out, &loss, 1, &err), &err);
  tn_tensor_unref(loss);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
}

/* ---- what a model is ---- */

static void model__says_what_it_is(void)
{
  tn_model *model = open_model(half_plus_two(), NULL);
  tn_model_info info = { .struct_size = sizeof info };
  REQUIRE_OK(tn_model_info_of(model, &info, &err), &err);
  CHECK_INT(info.kind, TN_MODEL_SAVED);
  CHECK_STR(info.made_by, "2.21.0");
  CHECK_CONTAINS(info.checkpoint, "/variables/variables");
  CHECK_INT(info.n_tag_sets, 1);
  CHECK_INT(info.n_signatures, 2);
  CHECK_STR(tn_model_tag(model, 0, 0), "serve");
  CHECK_NULL(tn_model_tag(model, 0, 1));
  CHECK_NULL(tn_model_tag(model, 1, 0));
  CHECK_NULL(tn_model_asset(model, 0, NULL));
  tn_model_close(model);
}

static void model__signatures_name_inputs_and_outputs(void)
{
  tn_model *model = open_model(half_plus_two(), NULL);
  tn_model_signature s = { .struct_size = sizeof s };
  tn_model_endpoint e = { .struct_size = sizeof e };
  REQUIRE_OK(tn_model_signature_at(model, 1, &s, &err), &err);
  CHECK_STR(s.name, "train");
  CHECK_INT(s.n_inputs, 2);
  REQUIRE_OK(tn_model_signature_find(model, NULL, &s, &err), &err);
  CHECK_STR(s.name, "serving_default");
  CHECK_STR(s.method_name, "tensorflow/serving/predict");
  REQUIRE_OK(tn_model_input_at(model, "serving_default", 0, &e, &err), &err);
  CHECK_STR(e.key, "x");
  CHECK_STR(e.tensor, "serving_default_x:0");
  CHECK_INT(e.dtype, TN_FLOAT);
  REQUIRE_INT(e.rank, 1);
  CHECK_INT(e.dims[0], -1);
  CHECK_INT(e.has_default, 0);
  REQUIRE_OK(tn_model_output_at(model, "train", 0, &e, &err), &err);
  CHECK_STR(e.key, "loss");
  CHECK_INT(e.rank, 0);
  CHECK_STATUS(tn_model_output_at(model, "train", 1, &e, &err), TN_OUT_OF_RANGE, &err);
  CHECK_STATUS(tn_model_signature_at(model, 2, &s, &err), TN_OUT_OF_RANGE, &err);
  tn_model_close(model);
}

static void model__what_does_not_exist_is_answered_with_what_does(void)
{
  tn_model *model = NULL;
  static const char *const tags[] = { "train" };
  const tn_model_options options = { .struct_size = sizeof options, .tags = tags, .n_tags = 1 };
  CHECK_STATUS(tn_model_open(half_plus_two(), &options, &model, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "serve");
  CHECK_STATUS(tn_model_open(tap_scratch_path("none"), NULL, &model, &err), TN_NOT_FOUND, &err);
  REQUIRE_INT(mkdir(tap_scratch_path("empty"), 0777), 0);
  CHECK_STATUS(tn_model_open(tap_scratch_path("empty"), NULL, &model, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "saved_model.pb");
  CHECK_NULL(model);
  model = open_model(half_plus_two(), NULL);
  tn_model_signature s = { .struct_size = sizeof s };
  CHECK_STATUS(tn_model_signature_find(model, "serve", &s, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'serving_default', 'train'");
  tn_model_close(model);
}

/* ---- sessions and calls ---- */

static void model__a_session_has_the_saved_values(void)
{
  tn_session *session = session_of(half_plus_two());
  REQUIRE_PTR(tn_session_model(session));
  check_call(session, 2.5f, 3);
  tn_session_destroy(session);
}

static void model__sessions_have_variables_of_their_own(void)
{
  tn_session *one = session_of(half_plus_two()), *two = session_of(half_plus_two());
  float y[2];
  train(one);
  REQUIRE_OK(call(one, 1, 2, y), &err);
  CHECK(y[0] != 2.5f);
  check_call(two, 2.5f, 3);
  tn_session_destroy(one);
  tn_session_destroy(two);
}

static void model__tensor_names_serve_as_keys(void)
{
  static const char *const in[] = { "serving_default_x:0" }, *const out[] = { "StatefulPartitionedCall:0" };
  tn_session *session = session_of(half_plus_two());
  tn_tensor *x = vector(1, 2), *y = NULL;
  CHECK_OK(tn_model_call(session, "serving_default", in, &x, 1, out, &y, 1, &err), &err);
  CHECK_DOUBLE(((float *)tn_tensor_data(y))[1], 3, 1e-6);
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  tn_session_destroy(session);
}

static void model__a_callable_is_prepared_by_keys(void)
{
  tn_session *session = session_of(half_plus_two());
  tn_tensor *x = vector(3, 4), *y = NULL;
  tn_callable callable;
  REQUIRE_OK(tn_model_callable(session, NULL, NULL, key_x, 1, key_y, 1, &callable, &err), &err);
  CHECK_OK(tn_session_run_callable(session, callable, &x, 1, &y, 1, NULL, &err), &err);
  CHECK_DOUBLE(((float *)tn_tensor_data(y))[0], 3.5, 1e-6);
  CHECK_OK(tn_session_release_callable(session, callable, &err), &err);
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  tn_session_destroy(session);
}

static void model__wrong_calls_name_the_key(void)
{
  static const char *const wrong[] = { "z" };
  tn_session *session = session_of(half_plus_two()), *other = NULL;
  tn_tensor *x = vector(1, 2), *y = NULL;
  CHECK_STATUS(tn_model_call(session, NULL, wrong, &x, 1, key_y, &y, 1, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'z'");
  CHECK_CONTAINS(tn_error_message(&err), "'x'");
  CHECK_STATUS(tn_model_call(session, NULL, key_x, &x, 1, wrong, &y, 1, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'y'");
  CHECK_STATUS(tn_model_call(session, "train", key_x, &x, 1, (const char *const[]){ "loss" }, &y, 1, &err),
               TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "input 't' of signature 'train' was not given");
  CHECK_NULL(y);
  tn_session_options *options;
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_create(options, &other, &err), &err);
  CHECK_STATUS(tn_model_call(other, NULL, key_x, &x, 1, key_y, &y, 1, &err), TN_FAILED_PRECONDITION, &err);
  tn_session_options_destroy(options);
  tn_session_destroy(other);
  tn_tensor_unref(x);
  tn_session_destroy(session);
}

/* ---- saving and restoring ---- */

static void model__what_was_trained_is_saved_and_restored(void)
{
  char prefix[300];
  tn_session *session = session_of(half_plus_two());
  float trained[2];
  train(session);
  REQUIRE_OK(call(session, 1, 2, trained), &err);
  snprintf(prefix, sizeof prefix, "%s", tap_scratch_path("trained"));
  REQUIRE_OK(tn_session_save(session, prefix, NULL, 0, NULL, &err), &err);
  tn_session_destroy(session);

  tn_checkpoint *c = NULL;
  tn_restore_report *report = NULL;
  session = session_of(half_plus_two());
  check_call(session, 2.5f, 3);
  REQUIRE_OK(tn_checkpoint_open(prefix, &c, &err), &err);
  CHECK_OK(tn_session_restore(session, c, NULL, &report, &err), &err);
  CHECK_INT(tn_restore_report_count(report, TN_RESTORED), 2);
  CHECK_INT(tn_restore_report_count(report, TN_RESTORE_LEFT_OVER), 0);
  check_call(session, trained[0], trained[1]);
  tn_restore_report_destroy(report);
  tn_checkpoint_close(c);
  tn_session_destroy(session);

  const tn_model_options options = { .struct_size = sizeof options, .checkpoint = prefix };
  tn_model *model = open_model(half_plus_two(), &options);
  REQUIRE_OK(tn_model_session(model, NULL, &session, &err), &err);
  check_call(session, trained[0], trained[1]);
  tn_session_destroy(session);
  tn_model_close(model);
}

/* A checkpoint with the variable a, and a tensor that no variable uses. */
static tn_checkpoint *part_of_a_checkpoint(const int64_t *dims, int32_t rank)
{
  static const char *const keys[] = { "a", "other" };
  static const float values[] = { 10, 11 };
  tn_tensor *t[2] = { NULL, vector(1, 2) };
  tn_checkpoint *c = NULL;
  size_t bytes = rank == 0 ? sizeof values[0] : sizeof values;
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, dims, rank, values, bytes, &t[0], &err), &err);
  REQUIRE_OK(tn_checkpoint_save(tap_scratch_path("part"), keys, t, 2, NULL, &err), &err);
  REQUIRE_OK(tn_checkpoint_open(tap_scratch_path("part"), &c, &err), &err);
  tn_tensor_unref(t[0]);
  tn_tensor_unref(t[1]);
  return c;
}

static void model__a_part_is_restored_only_on_request(void)
{
  tn_restore_report *report = NULL;
  const char *text;
  tn_session *session = session_of(half_plus_two());
  tn_checkpoint *c = part_of_a_checkpoint(NULL, 0);
  tn_restore_options options = { .struct_size = sizeof options };
  CHECK_STATUS(tn_session_restore(session, c, &options, &report, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'b'");
  CHECK_STR(tn_restore_report_at(report, TN_RESTORE_MISSING, 0, NULL), "b");
  tn_restore_report_destroy(report);
  check_call(session, 2.5f, 3); /* nothing was restored */
  options.flags = TN_RESTORE_PARTIAL;
  CHECK_OK(tn_session_restore(session, c, &options, &report, &err), &err);
  CHECK_STR(tn_restore_report_at(report, TN_RESTORED, 0, &text), "a");
  CHECK_STR(text, "");
  CHECK_STR(tn_restore_report_at(report, TN_RESTORE_LEFT_OVER, 0, NULL), "other");
  tn_restore_report_destroy(report);
  check_call(session, 12, 22);
  tn_checkpoint_close(c);
  tn_session_destroy(session);
}

static void model__a_value_of_another_shape_is_refused(void)
{
  tn_restore_report *report = NULL;
  const char *text;
  tn_session *session = session_of(half_plus_two());
  tn_checkpoint *c = part_of_a_checkpoint((const int64_t[]){ 2 }, 1);
  static const char *const variables[] = { "a" };
  tn_restore_options options = { .struct_size = sizeof options, .variables = variables, .n = 1 };
  CHECK_STATUS(tn_session_restore(session, c, &options, &report, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_restore_report_at(report, TN_RESTORE_MISFIT, 0, &text), "a");
  CHECK_STR(text, "float32 [2] in the checkpoint, float32 [] wanted");
  tn_restore_report_destroy(report);
  check_call(session, 2.5f, 3);
  tn_checkpoint_close(c);
  tn_session_destroy(session);
}

static void model__other_keys_are_mapped_by_name(void)
{
  tn_session *session = session_of(half_plus_two());
  tn_checkpoint *c = part_of_a_checkpoint(NULL, 0);
  static const char *const variables[] = { "b" }, *const keys[] = { "a" };
  tn_restore_options options = { .struct_size = sizeof options, .variables = variables, .keys = keys, .n = 1 };
  CHECK_OK(tn_session_restore(session, c, &options, NULL, &err), &err);
  check_call(session, 10.5f, 11);
  tn_checkpoint_close(c);
  tn_session_destroy(session);
}

/* A checkpoint of an object that has the model as its part. */
static void model__a_part_of_another_object_is_found_by_its_key(void)
{
  static const char *const keys[] = { "net/a/.ATTRIBUTES/VARIABLE_VALUE", "net/b/.ATTRIBUTES/VARIABLE_VALUE" };
  static const float values[] = { 3, 4 };
  tn_tensor *t[2] = { NULL, NULL };
  tn_checkpoint *c = NULL;
  tn_session *session = session_of(half_plus_two());
  for (int i = 0; i < 2; i++)
    REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, NULL, 0, &values[i], sizeof values[i], &t[i], &err), &err);
  REQUIRE_OK(tn_checkpoint_save(tap_scratch_path("longer"), keys, t, 2, NULL, &err), &err);
  REQUIRE_OK(tn_checkpoint_open(tap_scratch_path("longer"), &c, &err), &err);
  CHECK_OK(tn_session_restore(session, c, NULL, NULL, &err), &err);
  check_call(session, 7, 10);
  tn_checkpoint_close(c);
  tn_tensor_unref(t[0]);
  tn_tensor_unref(t[1]);
  tn_session_destroy(session);
}

static void model__is_saved_with_its_present_values(void)
{
  char folder[300];
  tn_session *session = session_of(half_plus_two());
  float trained[2];
  train(session);
  REQUIRE_OK(call(session, 1, 2, trained), &err);
  snprintf(folder, sizeof folder, "%s", tap_scratch_path("saved"));
  REQUIRE_OK(tn_model_save(session, folder, NULL, &err), &err);
  CHECK_STATUS(tn_model_save(session, folder, NULL, &err), TN_ALREADY_EXISTS, &err);
  tn_session_destroy(session);
  session = session_of(folder);
  check_call(session, trained[0], trained[1]);
  train(session); /* the other signature is there, too */
  tn_session_destroy(session);
}

/* Saves the variables of the session and returns the bytes of the data file; *size is their number. */
static char *saved_bytes(tn_session *session, const char *name, size_t *size)
{
  REQUIRE_OK(tn_session_save(session, tap_scratch_path("%s", name), NULL, 0, NULL, &err), &err);
  FILE *f = fopen(tap_scratch_path("%s.data-00000-of-00001", name), "rb");
  char *bytes = malloc(4096);
  REQUIRE(f != NULL && bytes != NULL);
  *size = fread(bytes, 1, 4096, f);
  fclose(f);
  return bytes;
}

/* Variables are restored without a run of the saver; a run gives the same values. */
static void model__the_savers_own_run_restores_the_same(void)
{
  tn_model *model = open_model(half_plus_two(), NULL);
  const tn__metagraph *meta = tn__model_meta(model);
  tn_model_info info = { .struct_size = sizeof info };
  REQUIRE_OK(tn_model_info_of(model, &info, &err), &err);
  tn_session *direct = session_of(half_plus_two()), *run = NULL;
  tn_session_options *options = NULL;
  tn_tensor *prefix = NULL, *done = NULL;
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_parse(options, "read_folders", half_plus_two(), &err), &err);
  REQUIRE_OK(tn_session_create(options, &run, &err), &err);
  REQUIRE_OK(tn_session_set_graph(run, tn_model_graph(model), &err), &err);
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &info.checkpoint, NULL, &prefix, &err), &err);
  REQUIRE_OK(tn_session_run(run, NULL, &meta->saver_filename, &prefix, 1, &meta->saver_restore, &done, 1, NULL, 0, NULL,
                            &err),
             &err);
  size_t n = 0, m = 0;
  char *a = saved_bytes(direct, "by_hand", &n), *b = saved_bytes(run, "by_saver", &m);
  CHECK(n > 0 && n == m && memcmp(a, b, n) == 0);
  free(a);
  free(b);
  tn_tensor_unref(prefix);
  tn_tensor_unref(done);
  tn_session_destroy(direct);
  tn_session_destroy(run);
  tn_session_options_destroy(options);
  tn_model_close(model);
}

/* y = v * x as a graph of its own, with v in a variable. */
static tn_session *built_session(void)
{
  tn_graph *graph = NULL;
  tn_session *session = NULL;
  tn_session_options *options = NULL;
  tn_operation *x, *v, *read, *y;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  REQUIRE_OK(tn_operation_finish(b, &x, &err), &err);
  b = tn_operation_begin(graph, "VarHandleOp", "v", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", NULL, 0);
  tn_operation_set_string(b, "shared_name", "v", 1);
  REQUIRE_OK(tn_operation_finish(b, &v, &err), &err);
  b = tn_operation_begin(graph, "ReadVariableOp", "v/Read", 0);
  tn_operation_add_input(b, (tn_output){ v, 0 });
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  REQUIRE_OK(tn_operation_finish(b, &read, &err), &err);
  b = tn_operation_begin(graph, "Mul", "y", 0);
  tn_operation_add_input(b, (tn_output){ read, 0 });
  tn_operation_add_input(b, (tn_output){ x, 0 });
  REQUIRE_OK(tn_operation_finish(b, &y, &err), &err);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_create(options, &session, &err), &err);
  REQUIRE_OK(tn_session_set_graph(session, graph, &err), &err);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  return session;
}

static void model__a_graph_built_in_c_becomes_a_model(void)
{
  static const char *const tensors_x[] = { "x:0" }, *const tensors_y[] = { "y:0" }, *const a[] = { "a" },
                    *const v[] = { "v" };
  tn_model_signature_spec s = { .struct_size = sizeof s, .name = "serving_default", .input_keys = key_x,
                                .input_tensors = tensors_x, .n_inputs = 1, .output_keys = key_y,
                                .output_tensors = tensors_y, .n_outputs = 1 };
  const tn_model_save_options options = { .struct_size = sizeof options, .signatures = &s, .n_signatures = 1 };
  const tn_restore_options restore = { .struct_size = sizeof restore, .variables = v, .keys = a, .n = 1 };
  tn_session *session = built_session();
  tn_checkpoint *c = part_of_a_checkpoint(NULL, 0);
  CHECK_OK(tn_session_restore(session, c, &restore, NULL, &err), &err);
  tn_checkpoint_close(c);
  CHECK_OK(tn_model_save(session, tap_scratch_path("built"), &options, &err), &err);
  s.input_tensors = a;
  CHECK_STATUS(tn_model_save(session, tap_scratch_path("wrong"), &options, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'a'");
  CHECK(access(tap_scratch_path("wrong"), F_OK) != 0);
  tn_session_destroy(session);
  session = session_of(tap_scratch_path("built"));
  check_call(session, 10, 20);
  tn_session_destroy(session);
}

/* ---- savers as TensorFlow 2 has them ---- */

#define SAVED(nodes, arguments, body)                                                                          \
  "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def { " nodes              \
  " node { name: 'file' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } } "                   \
  "library { function { signature { name: 'restore_all' input_arg { name: 'prefix' type: DT_STRING } " arguments \
  " is_stateful: true } " body " } } } "                                                                        \
  "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'restore' version: V2 } "
#define CALL(second) \
  "node { name: 'restore' op: 'StatefulPartitionedCall' input: 'file' input: '" second "' " \
  "attr { key: 'Tin' value { list { type: [DT_STRING, DT_RESOURCE] } } } attr { key: 'Tout' value { list { } } } " \
  "attr { key: 'f' value { func { name: 'restore_all' } } } } "
#define TEXTS(name, n, values)                                                                                 \
  "node_def { name: '" name "' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' " \
  "value { tensor { dtype: DT_STRING tensor_shape { dim { size: " n " } } string_val: [" values "] } } } } "
#define RESTORE(name, keys, slices, types)                                                                     \
  "node_def { name: '" name "' op: 'RestoreV2' input: 'prefix' input: '" keys ":output:0' input: '" slices       \
  ":output:0' attr { key: 'dtypes' value { list { type: [" types "] } } } } "
#define SIGNATURE(input, output)                                                                               \
  "signature_def { key: 'serving_default' value { inputs { key: 'x' value { name: '" input "' dtype: DT_INT64 " \
  "tensor_shape { } } } outputs { key: 'y' value { name: '" output "' dtype: DT_FLOAT tensor_shape { } } } } } }"

/* Writes the text of a SavedModel, and its variables: v or the keys and values of a table, and a tensor that nothing
 * uses. */
static void write_saved(const char *folder, const char *text)
{
  static const char *const keys[] = { "extra", "keys", "v", "values" };
  char path[400];
  const float v = 3, extra = 9, values[] = { 5, 6 };
  const int64_t numbers[] = { 1, 2 }, two[] = { 2 };
  tn_tensor *t[4];
  snprintf(path, sizeof path, "mkdir -p '%s/variables'", folder);
  REQUIRE_INT(system(path), 0);
  snprintf(path, sizeof path, "%s/saved_model.pbtxt", folder);
  REQUIRE_OK(tn_file_save(path, text, strlen(text), &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, NULL, 0, &extra, sizeof extra, &t[0], &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_INT64, two, 1, numbers, sizeof numbers, &t[1], &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, NULL, 0, &v, sizeof v, &t[2], &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, two, 1, values, sizeof values, &t[3], &err), &err);
  snprintf(path, sizeof path, "%s/variables/variables", folder);
  REQUIRE_OK(tn_checkpoint_save(path, keys, t, 4, NULL, &err), &err);
  for (int i = 0; i < 4; i++) tn_tensor_unref(t[i]);
}

/* The key `extra` is read by two nodes, and no variable gets it. */
static void model__keys_that_a_saver_only_reads_are_saved_once(void)
{
  static const char text[] = SAVED(
      "node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
      "shape { } } } attr { key: 'shared_name' value { s: 'v' } } } " CALL("v"),
      "input_arg { name: 'v' type: DT_RESOURCE }",
      TEXTS("keys", "2", "'v', 'extra'") TEXTS("slices", "2", "'', ''")
          RESTORE("one", "keys", "slices", "DT_FLOAT, DT_FLOAT") RESTORE(
              "two", "keys", "slices", "DT_FLOAT, DT_FLOAT") "node_def { name: 'assign' op: 'AssignVariableOp' input: "
                                                             "'v' input: 'one:tensors:0' attr { key: 'dtype' value { "
                                                             "type: DT_FLOAT } } }") "}";
  char folder[300], saved[300], prefix[400];
  snprintf(folder, sizeof folder, "%s", tap_scratch_path("reads"));
  snprintf(saved, sizeof saved, "%s", tap_scratch_path("reads_saved"));
  write_saved(folder, text);
  tn_session *session = session_of(folder);
  CHECK_OK(tn_model_save(session, saved, NULL, &err), &err);
  tn_session_destroy(session);
  tn_checkpoint *c = NULL;
  tn_tensor *extra = NULL;
  snprintf(prefix, sizeof prefix, "%s/variables/variables", saved);
  REQUIRE_OK(tn_checkpoint_open(prefix, &c, &err), &err);
  CHECK_INT(tn_checkpoint_count(c), 2);
  CHECK_OK(tn_checkpoint_read(c, "extra", &extra, &err), &err);
  tn_tensor_unref(extra);
  tn_checkpoint_close(c);
}

/* The saver imports a table: with a checkpoint from the options, too. */
static void model__tables_are_restored_from_another_checkpoint(void)
{
  static const char text[] = SAVED(
      "node { name: 't' op: 'MutableHashTableV2' attr { key: 'key_dtype' value { type: DT_INT64 } } attr { key: "
      "'value_dtype' value { type: DT_FLOAT } } attr { key: 'shared_name' value { s: 't' } } } "
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT64 } } } "
      "node { name: 'none' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { "
      "tensor { dtype: DT_FLOAT tensor_shape { } float_val: -1 } } } } "
      "node { name: 'y' op: 'LookupTableFindV2' input: 't' input: 'x' input: 'none' attr { key: 'Tin' value { type: "
      "DT_INT64 } } attr { key: 'Tout' value { type: DT_FLOAT } } } " CALL("t"),
      "input_arg { name: 't' type: DT_RESOURCE }",
      TEXTS("keys", "2", "'keys', 'values'") TEXTS("slices", "2", "'', ''")
          RESTORE("read", "keys", "slices",
                  "DT_INT64, DT_FLOAT") "node_def { name: 'import' op: 'LookupTableImportV2' input: 't' input: "
                                        "'read:tensors:0' input: "
                                        "'read:tensors:1' attr { key: 'Tin' value { type: DT_INT64 } } attr { key: "
                                        "'Tout' value { type: DT_FLOAT } } }") SIGNATURE("x:0", "y:0");
  char folder[300], prefix[400];
  const int64_t two = 2;
  tn_tensor *x = NULL, *y = NULL;
  tn_session *session = NULL;
  snprintf(folder, sizeof folder, "%s", tap_scratch_path("table"));
  write_saved(folder, text);
  snprintf(prefix, sizeof prefix, "%s/variables/variables", folder);
  const tn_model_options options = { .struct_size = sizeof options, .checkpoint = prefix };
  tn_model *model = open_model(folder, &options);
  REQUIRE_OK(tn_model_session(model, NULL, &session, &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_INT64, NULL, 0, &two, sizeof two, &x, &err), &err);
  REQUIRE_OK(tn_model_call(session, NULL, key_x, &x, 1, key_y, &y, 1, &err), &err);
  CHECK_DOUBLE(*(float *)tn_tensor_data(y), 6, 0);
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  tn_session_destroy(session);
  tn_model_close(model);
}

/* ---- what a graph may read ---- */

static tn_status read_file(tn_session *session, const char *path)
{
  static const char *const feed = "path", *const fetch = "text";
  tn_tensor *name = NULL, *text = NULL;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &path, NULL, &name, &err), &err);
  tn_error_clear(&err);
  tn_status st = tn_session_run(session, NULL, &feed, &name, 1, &fetch, &text, 1, NULL, 0, NULL, &err);
  tn_tensor_unref(name);
  tn_tensor_unref(text);
  return st;
}

/* A folder of checkpoints opens that folder, and not the one that it is in. */
static void model__no_checkpoint_allows_its_parent(void)
{
  static const char graph[] = "node { name: 'path' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } } "
                              "node { name: 'text' op: 'ReadFile' input: 'path' }";
  char command[900], file[400], checkpoints[300];
  tn_session *session = NULL;
  snprintf(checkpoints, sizeof checkpoints, "%s", tap_scratch_path("parent/checkpoints"));
  snprintf(command, sizeof command, "mkdir -p '%s' '%s' && echo secret >'%s'", checkpoints,
           tap_scratch_path("parent/model"), tap_scratch_path("parent/secret"));
  REQUIRE_INT(system(command), 0);
  REQUIRE_OK(tn_file_save(tap_scratch_path("parent/model/graph.pbtxt"), graph, strlen(graph), &err), &err);
  snprintf(file, sizeof file, "%s/one", checkpoints);
  tn_tensor *value = vector(1, 2);
  const tn_checkpoint_options save = { .struct_size = sizeof save, .update_state = 1 };
  REQUIRE_OK(tn_checkpoint_save(file, (const char *[]){ "unused" }, &value, 1, &save, &err), &err);
  tn_tensor_unref(value);
  const tn_model_options options = { .struct_size = sizeof options, .checkpoint = checkpoints };
  tn_model *model = open_model(tap_scratch_path("parent/model/graph.pbtxt"), &options);
  REQUIRE_OK(tn_model_session(model, NULL, &session, &err), &err);
  snprintf(file, sizeof file, "%s/one.index", checkpoints);
  CHECK_OK(read_file(session, file), &err);
  CHECK_STATUS(read_file(session, tap_scratch_path("parent/secret")), TN_PERMISSION_DENIED, &err);
  tn_session_destroy(session);
  tn_model_close(model);
}

/* ---- bad circumstances ---- */

static void model__null_and_nothing_are_taken_for_what_they_are(void)
{
  static const char *const none[] = { NULL };
  tn_session *session = session_of(half_plus_two());
  tn_tensor *x = vector(1, 2), *y = NULL;
  CHECK_STATUS(tn_model_call(session, NULL, none, &x, 1, key_y, &y, 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_model_call(session, NULL, key_x, &x, 1, none, &y, 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_NULL(tn_checkpoint_prefix(NULL));
  CHECK_INT(tn_checkpoint_version(NULL), 0);
  tn_checkpoint *c = part_of_a_checkpoint(NULL, 0);
  const tn_restore_options options = { .struct_size = sizeof options, .variables = none, .n = 0 };
  CHECK_OK(tn_session_restore(session, c, &options, NULL, &err), &err); /* an empty list: none */
  check_call(session, 2.5f, 3);
  tn_checkpoint_close(c);
  tn_tensor_unref(x);
  tn_session_destroy(session);
}

/* A copy of the model whose own variables were damaged after they were restored: its object graph gives no names. */
static void model__a_damaged_own_checkpoint_hinders_no_other(void)
{
  char command[1200], folder[300];
  snprintf(folder, sizeof folder, "%s", tap_scratch_path("copy"));
  snprintf(command, sizeof command, "cp -R '%s' '%s' && chmod -R u+w '%s'", half_plus_two(), folder, folder);
  REQUIRE_INT(system(command), 0);
  tn_session *session = session_of(folder);
  snprintf(command, sizeof command, "for f in '%s'/variables/*.data-*; do : >\"$f\"; done", folder);
  REQUIRE_INT(system(command), 0);
  tn_checkpoint *c = part_of_a_checkpoint(NULL, 0);
  const tn_restore_options options = { .struct_size = sizeof options, .flags = TN_RESTORE_PARTIAL };
  tn_restore_report *report = NULL;
  CHECK_OK(tn_session_restore(session, c, &options, &report, &err), &err);
  CHECK_INT(tn_restore_report_count(report, TN_RESTORED), 1);
  CHECK_INT(tn_restore_report_count(report, TN_RESTORE_MISSING), 1);
  tn_restore_report_destroy(report);
  check_call(session, 12, 22);
  tn_checkpoint_close(c);
  tn_session_destroy(session);
}

static void model__missing_variables_are_an_error(void)
{
  char command[900];
  tn_model *model;
  tn_session *session = NULL;
  snprintf(command, sizeof command, "mkdir '%s' && cp '%s/saved_model.pb' '%s'", tap_scratch_path("bare"),
           half_plus_two(), tap_scratch_path("bare"));
  REQUIRE_INT(system(command), 0);
  model = open_model(tap_scratch_path("bare"), NULL);
  CHECK_STATUS(tn_model_session(model, NULL, &session, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "variables");
  CHECK_NULL(session);
  tn_model_close(model);
}

static tn_status open_call_close(void *arg)
{
  tn_model *model = NULL;
  tn_session *session = NULL;
  tn_tensor *y = NULL;
  tn_error_clear(&err);
  tn_status st = tn_model_open(half_plus_two(), NULL, &model, &err);
  if (st == TN_OK) st = tn_model_session(model, NULL, &session, &err);
  if (st == TN_OK) st = tn_model_call(session, NULL, key_x, (tn_tensor **)&arg, 1, key_y, &y, 1, &err);
  tn_tensor_unref(y);
  tn_session_destroy(session);
  tn_model_close(model);
  return st;
}

/* A restore that reports a lack of memory has assigned nothing. */
static tn_status restore_trained(void *arg)
{
  tn_session *session = arg;
  tn_checkpoint *c = NULL;
  tn_error_clear(&err);
  tn_status st = tn_checkpoint_open(tap_scratch_path("swept_restore"), &c, &err);
  if (st == TN_OK) st = tn_session_restore(session, c, NULL, NULL, &err);
  tn_checkpoint_close(c);
  return st;
}

static void model__a_restore_without_memory_changes_nothing(void)
{
  static const char *const keys[] = { "a", "b" };
  static const float values[] = { 10, 11 };
  tn_session *session = session_of(half_plus_two());
  tn_tensor *t[2];
  for (int i = 0; i < 2; i++)
    REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, NULL, 0, &values[i], sizeof values[i], &t[i], &err), &err);
  REQUIRE_OK(tn_checkpoint_save(tap_scratch_path("swept_restore"), keys, t, 2, NULL, &err), &err);
  check_call(session, 2.5f, 3);
  bool failed = true;
  for (uint64_t nth = 1; failed && nth < 100000; nth++) {
    tn_test_fail_allocation(nth, 0);
    tn_status st = restore_trained(session);
    failed = tn_test_allocation_failed();
    tn_test_fail_allocation(0, 0);
    if (st != TN_OK) check_call(session, 2.5f, 3);
    else break;
  }
  check_call(session, 21, 31);
  tn_test_oom_sweep(restore_trained, session);
  tn_tensor_unref(t[0]);
  tn_tensor_unref(t[1]);
  tn_session_destroy(session);
}

static void model__nothing_leaks_without_memory(void)
{
  tn_tensor *x = vector(1, 2);
  tn_test_oom_sweep(open_call_close, x);
  tn_tensor_unref(x);
}

static tn_status save_once(void *arg)
{
  char command[400];
  tn_error_clear(&err);
  tn_status st = tn_model_save(arg, tap_scratch_path("swept"), NULL, &err);
  snprintf(command, sizeof command, "rm -rf '%s'", tap_scratch_path("swept"));
  if (st == TN_OK && system(command) != 0) st = TN_INTERNAL;
  return st;
}

static void model__saving_leaks_nothing_without_memory(void)
{
  tn_session *session = session_of(half_plus_two()), *built = built_session();
  tn_test_oom_sweep(save_once, session);
  tn_test_oom_sweep(save_once, built);
  tn_session_destroy(built);
  tn_session_destroy(session);
}

TAP_MAIN(
  TAP_TEST(model__says_what_it_is),
  TAP_TEST(model__signatures_name_inputs_and_outputs),
  TAP_TEST(model__what_does_not_exist_is_answered_with_what_does),
  TAP_TEST(model__a_session_has_the_saved_values),
  TAP_TEST(model__sessions_have_variables_of_their_own),
  TAP_TEST(model__tensor_names_serve_as_keys),
  TAP_TEST(model__a_callable_is_prepared_by_keys),
  TAP_TEST(model__wrong_calls_name_the_key),
  TAP_TEST(model__what_was_trained_is_saved_and_restored),
  TAP_TEST(model__a_part_is_restored_only_on_request),
  TAP_TEST(model__a_value_of_another_shape_is_refused),
  TAP_TEST(model__other_keys_are_mapped_by_name),
  TAP_TEST(model__a_part_of_another_object_is_found_by_its_key),
  TAP_TEST(model__is_saved_with_its_present_values),
  TAP_TEST(model__the_savers_own_run_restores_the_same),
  TAP_TEST(model__a_graph_built_in_c_becomes_a_model),
  TAP_TEST(model__keys_that_a_saver_only_reads_are_saved_once),
  TAP_TEST(model__tables_are_restored_from_another_checkpoint),
  TAP_TEST(model__no_checkpoint_allows_its_parent),
  TAP_TEST(model__null_and_nothing_are_taken_for_what_they_are),
  TAP_TEST(model__a_damaged_own_checkpoint_hinders_no_other),
  TAP_TEST(model__missing_variables_are_an_error),
  TAP_TEST(model__a_restore_without_memory_changes_nothing),
  TAP_TEST(model__nothing_leaks_without_memory),
  TAP_TEST(model__saving_leaks_nothing_without_memory))
