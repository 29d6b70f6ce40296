/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of sessions: list options, a ConfigProto as bytes and as text, and how
 * NewSession uses them. */
#include <stdio.h>
#include <string.h>

#include "conformance/support/graph_kit.h"
#include "conformance/support/session_kit.h"

static tn_session_options *options;
static tn_error err = TN_ERROR_INIT;

static void begin(void)
{
  tn_session_options_destroy(options);
  options = NULL;
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, ts_runtime(), &err), &err);
}

static void end(void)
{
  tn_session_options_destroy(options);
  options = NULL;
  tn_error_clear(&err);
}

static int64_t number_of(const tn_session_options *o, const char *field)
{
  int64_t number = -99;
  CHECK_OK(tn_session_options_get_int(o, field, &number, &err), &err);
  return number;
}

static bool flag_of(const tn_session_options *o, const char *field)
{
  tn_bool flag = 2;
  CHECK_OK(tn_session_options_get_bool(o, field, &flag, &err), &err);
  return flag != 0;
}

static double real_of(const tn_session_options *o, const char *field)
{
  double real = -99;
  CHECK_OK(tn_session_options_get_float(o, field, &real, &err), &err);
  return real;
}

/* A list as "text=number;text=number;". */
static const char *items_of(const tn_session_options *o, const char *field)
{
  static char shown[1000];
  const char *text;
  int64_t number;
  size_t used = 0;
  shown[0] = 0;
  for (size_t i = 0; tn_session_options_get_item(o, field, i, &text, &number, &err) == TN_OK; i++)
    used += (size_t)snprintf(shown + used, sizeof shown - used, "%s=%lld;", text, (long long)number);
  return shown;
}

/* ---- lists ---- */

static void config__lists_are_built_item_by_item(void)
{
  const char *text = "";
  begin();
  CHECK_STR(items_of(options, "device_count"), "");
  CHECK_OK(tn_session_options_set_device_count(options, "CPU", 3, &err), &err);
  CHECK_OK(tn_session_options_set_device_count(options, "GPU", 1, &err), &err);
  CHECK_OK(tn_session_options_set_device_count(options, "CPU", 2, &err), &err);
  CHECK_STR(items_of(options, "device_count"), "CPU=2;GPU=1;");
  CHECK_OK(tn_session_options_add_device_filter(options, "/device:CPU:*", &err), &err);
  CHECK_OK(tn_session_options_add_device_filter(options, "", &err), &err);
  CHECK_STR(items_of(options, "device_filters"), "/device:CPU:*=0;=0;");
  CHECK_OK(tn_session_options_add_inter_op_pool(options, 4, "shared", &err), &err);
  CHECK_OK(tn_session_options_add_inter_op_pool(options, -1, NULL, &err), &err);
  CHECK_STR(items_of(options, "session_inter_op_pools"), "shared=4;=-1;");
  CHECK_STATUS(tn_session_options_get_item(options, "device_count", 2, &text, NULL, &err), TN_OUT_OF_RANGE, NULL);
  CHECK_NULL(text);
  CHECK_OK(tn_session_options_clear(options, "device_count", &err), &err);
  CHECK_STR(items_of(options, "device_count"), "");
  end();
}

static void config__lists_are_read_from_text(void)
{
  begin();
  CHECK_OK(tn_session_options_parse(options, "device_count", "CPU=3,GPU=0,CPU=2", &err), &err);
  CHECK_STR(items_of(options, "device_count"), "CPU=2;GPU=0;");
  CHECK_OK(tn_session_options_parse(options, "session_inter_op_pools", "2,8@a@b\\,c\\\\,-1@", &err), &err);
  CHECK_STR(items_of(options, "session_inter_op_pools"), "=2;a@b,c\\=8;=-1;");
  CHECK_OK(tn_session_options_parse(options, "device_filters", "/device:CPU:0,/job:localhost", &err), &err);
  CHECK_STR(items_of(options, "device_filters"), "/device:CPU:0=0;/job:localhost=0;");
  CHECK_OK(tn_session_options_parse(options, "device_filters", "", &err), &err);
  CHECK_STR(items_of(options, "device_filters"), "");
  CHECK_OK(tn_session_options_parse(options, "memory_fraction", "0.25", &err), &err);
  CHECK_DOUBLE(real_of(options, "memory_fraction"), 0.25, 0);
  end();
}

static void config__wrong_items_are_refused_and_change_nothing(void)
{
  static const struct {
    const char *field, *text, *part;
  } cases[] = {
    { "device_count", "CPU", "'CPU' at byte 0, wanted TYPE=N" },
    { "device_count", "CPU=", "'CPU=' at byte 0, wanted TYPE=N" },
    { "device_count", "=1", "wanted TYPE=N" },
    { "device_count", "CPU=1,", "at byte 6" },
    { "device_count", "CPU=1,,GPU=2", "at byte 6, wanted TYPE=N" },
    { "device_count", "CPU=99999999999", "does not fit in 32 bits" },
    { "device_filters", ",", "at byte 0" },
    { "session_inter_op_pools", "x", "wanted THREADS or THREADS@NAME" },
    { "session_inter_op_pools", "@name", "wanted THREADS or THREADS@NAME" },
    { "session_inter_op_pools", "4294967296", "does not fit in 32 bits" },
    { "memory_fraction", "half", "wanted a number" },
  };
  begin();
  REQUIRE_OK(tn_session_options_parse(options, "device_count", "CPU=7", &err), &err);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_MSG(tn_session_options_parse(options, cases[i].field, cases[i].text, &err) == TN_INVALID_ARGUMENT,
              "%s '%s' is taken", cases[i].field, cases[i].text);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].part);
  }
  CHECK_STR(items_of(options, "device_count"), "CPU=7;");
  CHECK_STATUS(tn_session_options_set_device_count(options, NULL, 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_set_device_count(options, "", 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_set_device_count(NULL, "CPU", 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_add_device_filter(options, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_add_inter_op_pool(options, INT64_MAX, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_set_float(options, "level", 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_get_item(options, "level", 0, NULL, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_clear(options, "levle", &err), TN_NOT_FOUND, &err);
  end();
}

/* ---- a ConfigProto ---- */

/* Every field that is an option, with a value other than its default, and some fields that are only
 * preserved. */
static void whole_config(gk_bytes *c)
{
  gk_bytes m = { 0 }, inner = { 0 };
  gk_text(&m, 1, "CPU");
  gk_int(&m, 2, 3);
  gk_message(c, 1, &m);
  gk_int(c, 2, 2);  /* intra_op_parallelism_threads */
  gk_int(c, 3, 55); /* placement_period: preserved */
  gk_text(c, 4, "/job:localhost");
  gk_int(c, 5, -1); /* inter_op_parallelism_threads */
  gk_double(&m, 1, 0.5);
  gk_int(&m, 4, 1); /* allow_growth: preserved */
  gk_message(c, 6, &m);
  gk_int(c, 7, 1);
  gk_int(c, 8, 1);
  gk_int(c, 9, 1);
  gk_int(&inner, 3, -1); /* opt_level L0 */
  gk_int(&inner, 2, 1);  /* do_constant_folding: preserved */
  gk_message(&m, 3, &inner);
  gk_int(&m, 6, 1); /* place_pruned_graph */
  gk_message(c, 10, &m);
  gk_int(c, 11, 1234);
  gk_int(&m, 1, 4);
  gk_text(&m, 2, "shared");
  gk_message(c, 12, &m);
  gk_int(c, 15, 1);
  gk_text(&inner, 1, "serving");
  gk_int(&inner, 2, 7);
  gk_message(&m, 11, &inner);
  gk_int(&m, 12, 1);
  gk_int(&m, 14, 1);
  gk_message(c, 16, &m);
  gk_text(c, 99, "of the future");
}

static void check_whole(const tn_session_options *o)
{
  const char *text = NULL;
  CHECK_STR(items_of(o, "device_count"), "CPU=3;");
  CHECK_STR(items_of(o, "device_filters"), "/job:localhost=0;");
  CHECK_STR(items_of(o, "session_inter_op_pools"), "shared=4;");
  CHECK_INT(number_of(o, "intra_op_threads"), 2);
  CHECK_INT(number_of(o, "inter_op_threads"), -1);
  CHECK_DOUBLE(real_of(o, "memory_fraction"), 0.5, 0);
  CHECK(flag_of(o, "allow_soft_placement"));
  CHECK(flag_of(o, "log_device_placement"));
  CHECK(flag_of(o, "use_per_session_threads"));
  CHECK(flag_of(o, "place_pruned_graph"));
  CHECK(flag_of(o, "isolate_session_state"));
  CHECK(flag_of(o, "static_graph"));
  CHECK(flag_of(o, "disable_output_partition_graphs"));
  CHECK_INT(number_of(o, "level"), 0);
  CHECK_INT(number_of(o, "operation_timeout_ms"), 1234);
  CHECK_INT(number_of(o, "session_version"), 7);
  CHECK_OK(tn_session_options_get_string(o, "session_name", &text, &err), &err);
  CHECK_STR(text, "serving");
}

/* S-CFG: the options are set from the message, except those that ConfigProto cannot express. */
static void config__a_config_proto_sets_all_its_options(void)
{
  gk_bytes c = { 0 };
  begin();
  whole_config(&c);
  REQUIRE_OK(tn_session_options_set_int(options, "max_signatures", 3, &err), &err);
  REQUIRE_OK(tn_session_options_set_string(options, "session_name", "old", &err), &err);
  CHECK_OK(tn_session_options_from_config(options, c.data, c.size, &err), &err);
  check_whole(options);
  CHECK_INT(number_of(options, "max_signatures"), 3);
  CHECK_STR(tn_session_options_target(options), ts_runtime());
  CHECK_OK(tn_session_options_from_config(options, NULL, 0, &err), &err); /* all have their defaults again */
  CHECK_STR(items_of(options, "device_count"), "");
  CHECK_INT(number_of(options, "level"), 1);
  CHECK_DOUBLE(real_of(options, "memory_fraction"), 1, 0);
  CHECK(!flag_of(options, "allow_soft_placement"));
  gk_bytes_free(&c);
  end();
}

/* Protobuf semantics: the last value counts, messages are merged, a field with another wire type is
 * unknown. */
static void config__repeated_and_odd_fields_are_read_as_protobuf_does(void)
{
  gk_bytes c = { 0 }, m = { 0 };
  begin();
  gk_int(&c, 5, 3);
  gk_int(&c, 5, INT64_C(0x100000004)); /* an int32 takes the lower half */
  gk_text(&c, 2, "no number");
  gk_int(&c, 7, 2);
  gk_int(&m, 6, 1);
  gk_message(&c, 10, &m);
  gk_int(&m, 2, 1);
  gk_message(&c, 10, &m);
  gk_text(&m, 1, "CPU");
  gk_int(&m, 2, 9);
  gk_message(&c, 1, &m);
  gk_int(&m, 2, 2);
  gk_text(&m, 1, "CPU");
  gk_message(&c, 1, &m);
  gk_int(&m, 2, 5); /* with an empty type */
  gk_message(&c, 1, &m);
  gk_int(&c, 11, -5);
  gk_double(&m, 1, 0.0);
  gk_message(&c, 6, &m);
  CHECK_OK(tn_session_options_from_config(options, c.data, c.size, &err), &err);
  CHECK_INT(number_of(options, "inter_op_threads"), 4);
  CHECK_INT(number_of(options, "intra_op_threads"), 0);
  CHECK(flag_of(options, "allow_soft_placement"));
  CHECK(flag_of(options, "place_pruned_graph"));
  CHECK_STR(items_of(options, "device_count"), "CPU=2;");
  CHECK_INT(number_of(options, "operation_timeout_ms"), 0);
  CHECK_DOUBLE(real_of(options, "memory_fraction"), 1, 0);
  gk_bytes_free(&c);
  end();
}

static void config__malformed_bytes_are_refused_with_their_offset(void)
{
  static const struct {
    const char *bytes;
    size_t size;
    const char *part;
  } cases[] = {
    { "\x38", 1, "byte 0: a number is cut short" },
    { "\x38\x01\x0a\x05\x0a\x03", 6, "byte 2: a field is longer than its message" },
    { "\x38\x01\x0a\x04\x0a\x03"
      "CP",
      8, "byte 4: a field is longer than its message" },
    { "\x22\x02\xc3\x28", 4, "byte 2: a text is not UTF-8" },
    { "\x22\x02\x61\x00", 4, "byte 2: a text has a NUL in it" },
    { "\x52\x02\x1a\x02", 4, "byte 2: a field is longer than its message" },
    { "\x72\x03\x0a\x01\x07", 5, "byte 4: " }, /* in cluster_def, which is only preserved */
    { "\x3f", 1, "byte 0: a field has an unknown wire type" },
  };
  begin();
  REQUIRE_OK(tn_session_options_set_int(options, "inter_op_threads", 5, &err), &err);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_MSG(tn_session_options_from_config(options, cases[i].bytes, cases[i].size, &err) == TN_INVALID_ARGUMENT,
              "case %zu is accepted", i);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].part);
  }
  CHECK_INT(number_of(options, "inter_op_threads"), 5);
  CHECK_STATUS(tn_session_options_from_config(NULL, "", 0, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_from_config(options, NULL, 1, &err), TN_INVALID_ARGUMENT, &err);
  end();
}

/* Truncated anywhere, or with any one byte changed: options or a status, never a crash. */
static void config__any_bytes_are_options_or_a_status(void)
{
  gk_bytes c = { 0 };
  begin();
  whole_config(&c);
  for (size_t n = 0; n < c.size; n++) tn_session_options_from_config(options, c.data, n, &err);
  for (size_t i = 0; i < c.size; i++)
    for (int bit = 0; bit < 8; bit++) {
      void *bytes;
      size_t size;
      c.data[i] ^= (uint8_t)(1 << bit);
      if (tn_session_options_from_config(options, c.data, c.size, &err) == TN_OK) {
        CHECK_OK(tn_session_options_to_config(options, &bytes, &size, &err), &err);
        CHECK(size == c.size && memcmp(bytes, c.data, size) == 0);
        tn_free(bytes);
      } else {
        CHECK(tn_error_message(&err)[0] != 0);
      }
      c.data[i] ^= (uint8_t)(1 << bit);
    }
  gk_bytes_free(&c);
  end();
}

/* ---- writing ---- */

static void config__a_config_read_is_written_back(void)
{
  gk_bytes c = { 0 };
  void *bytes;
  size_t size;
  begin();
  whole_config(&c);
  gk_put(&c, "\x9b\x06\x08\x01\x9c\x06", 6); /* a group, field 99 */
  REQUIRE_OK(tn_session_options_from_config(options, c.data, c.size, &err), &err);
  CHECK_OK(tn_session_options_to_config(options, &bytes, &size, &err), &err);
  CHECK_INT(size, c.size);
  if (size == c.size) CHECK_BYTES(bytes, c.data, size);
  tn_free(bytes);
  gk_bytes_free(&c);
  end();
}

static void config__changed_options_replace_only_their_fields(void)
{
  gk_bytes c = { 0 }, wanted = { 0 }, m = { 0 }, inner = { 0 };
  void *bytes;
  size_t size;
  begin();
  gk_int(&c, 5, 3);
  gk_int(&c, 3, 55);
  gk_int(&inner, 3, -1);
  gk_int(&inner, 2, 1);
  gk_message(&m, 3, &inner);
  gk_message(&c, 10, &m);
  gk_text(&c, 99, "of the future");
  REQUIRE_OK(tn_session_options_from_config(options, c.data, c.size, &err), &err);
  REQUIRE_OK(tn_session_options_set_int(options, "inter_op_threads", 4, &err), &err);
  REQUIRE_OK(tn_session_options_set_int(options, "level", 1, &err), &err); /* L1 is the default in protobuf */
  REQUIRE_OK(tn_session_options_set_device_count(options, "CPU", 2, &err), &err);
  REQUIRE_OK(tn_session_options_set_bool(options, "static_graph", 1, &err), &err);
  CHECK_OK(tn_session_options_to_config(options, &bytes, &size, &err), &err);
  gk_int(&wanted, 3, 55);
  gk_int(&inner, 2, 1);
  gk_message(&m, 3, &inner);
  gk_message(&wanted, 10, &m);
  gk_text(&wanted, 99, "of the future");
  gk_text(&m, 1, "CPU");
  gk_int(&m, 2, 2);
  gk_message(&wanted, 1, &m);
  gk_int(&wanted, 5, 4);
  gk_int(&m, 12, 1);
  gk_message(&wanted, 16, &m);
  CHECK_INT(size, wanted.size);
  if (size == wanted.size) CHECK_BYTES(bytes, wanted.data, size);
  tn_free(bytes);
  gk_bytes_free(&c);
  gk_bytes_free(&wanted);
  end();
}

/* In a message split into two parts, changed values are written once. */
static void config__a_message_in_two_parts_is_changed_once(void)
{
  gk_bytes c = { 0 }, m = { 0 };
  void *bytes;
  size_t size;
  begin();
  gk_int(&m, 6, 1);
  gk_message(&c, 10, &m);
  gk_int(&m, 6, 1);
  gk_int(&m, 4, 9); /* preserved */
  gk_message(&c, 10, &m);
  REQUIRE_OK(tn_session_options_from_config(options, c.data, c.size, &err), &err);
  REQUIRE_OK(tn_session_options_set_bool(options, "place_pruned_graph", 0, &err), &err);
  REQUIRE_OK(tn_session_options_set_int(options, "level", 0, &err), &err);
  CHECK_OK(tn_session_options_to_config(options, &bytes, &size, &err), &err);
  CHECK_INT(size, 19); /* 10 { 3 { 3: -1 } } and 10 { 4: 9 } */
  if (size == 19) CHECK_BYTES((char *)bytes + 15, "\x52\x02\x20\x09", 4);
  tn_free(bytes);
  gk_bytes_free(&c);
  end();
}

static void config__options_alone_become_a_config_proto(void)
{
  tn_session_options *again = NULL;
  gk_bytes c = { 0 };
  void *bytes;
  size_t size = 5;
  begin();
  CHECK_OK(tn_session_options_to_config(options, &bytes, &size, &err), &err);
  CHECK_INT(size, 0); /* all defaults */
  tn_free(bytes);
  whole_config(&c);
  REQUIRE_OK(tn_session_options_from_config(options, c.data, c.size, &err), &err);
  REQUIRE_OK(tn_session_options_copy(options, &again, &err), &err);
  CHECK_OK(tn_session_options_to_config(again, &bytes, &size, &err), &err); /* a copy also has the message */
  CHECK_INT(size, c.size);
  tn_free(bytes);
  tn_session_options_destroy(again);
  REQUIRE_OK(tn_session_options_set_int(options, "inter_op_threads", INT64_C(1) << 40, &err), &err);
  CHECK_STATUS(tn_session_options_to_config(options, &bytes, &size, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "inter_op_threads");
  CHECK_NULL(bytes);
  gk_bytes_free(&c);
  end();
}

/* ---- files ---- */

static const char *write_file(const char *name, const void *data, size_t size)
{
  static char path[500];
  snprintf(path, sizeof path, "%s/%s", tap_scratch_dir(), name);
  FILE *f = fopen(path, "wb");
  REQUIRE(f != NULL);
  REQUIRE(fwrite(data, 1, size, f) == size);
  REQUIRE(fclose(f) == 0);
  return path;
}

static void config__a_file_may_be_bytes_or_text(void)
{
  static const char text[] =
      "# what a session wants\n"
      "device_count { key: \"CPU\" value: 3 }\n"
      "intra_op_parallelism_threads: 2\n"
      "inter_op_parallelism_threads: -1\n"
      "use_per_session_threads: true  log_device_placement: true  allow_soft_placement: true\n"
      "session_inter_op_thread_pool { num_threads: 4 global_name: \"shared\" }\n"
      "device_filters: \"/job:localhost\"\n"
      "operation_timeout_in_ms: 1234  isolate_session_state: true\n"
      "gpu_options { per_process_gpu_memory_fraction: 0.5 allow_growth: true }\n"
      "graph_options { optimizer_options { opt_level: L0 } place_pruned_graph: true\n"
      "  rewrite_options { constant_folding: OFF\n"
      "    custom_optimizers { name: \"x\" parameter_map { key: \"k\" value { s: \"\\377\" } } } } }\n"
      "experimental { session_metadata { name: \"serving\" version: 7 } optimize_for_static_graph: true\n"
      "  disable_output_partition_graphs: true }\n";
  gk_bytes c = { 0 };
  begin();
  CHECK_OK(tn_session_options_load_config(options, write_file("session.txt", text, strlen(text)), &err), &err);
  check_whole(options);
  whole_config(&c);
  begin();
  CHECK_OK(tn_session_options_load_config(options, write_file("session.pb", c.data, c.size), &err), &err);
  check_whole(options);
  CHECK_OK(tn_session_options_load_config(options, write_file("empty", "", 0), &err), &err);
  CHECK_INT(number_of(options, "level"), 1);
  CHECK_STATUS(tn_session_options_load_config(options, write_file("bad.pb", "\x38", 1), &err), TN_INVALID_ARGUMENT,
               &err);
  CHECK_CONTAINS(tn_error_message(&err), "bad.pb: ConfigProto: byte 0");
  const char *wrong = "allow_soft_placement: true\nlog_devices: true\n";
  CHECK_STATUS(tn_session_options_load_config(options, write_file("wrong.txt", wrong, strlen(wrong)), &err),
               TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "wrong.txt:2:1: ConfigProto has no field 'log_devices'");
  CHECK(!flag_of(options, "allow_soft_placement"));
  CHECK_STATUS(tn_session_options_load_config(options, "/nowhere/at/all", &err), TN_NOT_FOUND, &err);
  gk_bytes_free(&c);
  end();
}

static gk_bytes sweep_bytes;
static const char *sweep_file;

static tn_status use_config(void *arg)
{
  tn_session_options *made = NULL, *copy = NULL;
  void *bytes = NULL;
  size_t size;
  (void)arg;
  tn_status st = tn_session_options_create(&made, NULL);
  if (st == TN_OK) st = tn_session_options_parse(made, "session_inter_op_pools", "1@a,2@b,3@c,4,5,6,7,8,9", NULL);
  if (st == TN_OK) st = tn_session_options_from_config(made, sweep_bytes.data, sweep_bytes.size, NULL);
  if (st == TN_OK) st = tn_session_options_add_device_filter(made, "/device:CPU:*", NULL);
  if (st == TN_OK) st = tn_session_options_copy(made, &copy, NULL);
  if (st == TN_OK) st = tn_session_options_to_config(copy, &bytes, &size, NULL);
  if (st == TN_OK) st = tn_session_options_load_config(copy, sweep_file, NULL);
  tn_free(bytes);
  tn_session_options_destroy(copy);
  tn_session_options_destroy(made);
  return st;
}

static void config__survives_lack_of_memory(void)
{
  static const char text[] = "device_count { key: \"CPU\" value: 3 } device_filters: [\"/job:localhost\", \"/cpu:0\"]";
  whole_config(&sweep_bytes);
  sweep_file = write_file("sweep.txt", text, strlen(text));
  tn_test_oom_sweep(use_config, NULL);
  gk_bytes_free(&sweep_bytes);
}

/* ---- NewSession ---- */

static int others; /* devices of the last session other than CPUs */

/* Opens and deletes a session with these options. Sets *devices to its CPUs, such as "CPU:0 CPU:1
 * ". */
static tn_status open_with(const char *field, const char *text, const char **devices)
{
  static char shown[300];
  tn_session *session = (tn_session *)&err;
  begin();
  REQUIRE_OK(tn_session_options_parse(options, field, text, &err), &err);
  tn_status st = tn_session_create(options, &session, &err);
  if (st != TN_OK) {
    CHECK_NULL(session); /* S-OPT-06 */
    return st;
  }
  shown[0] = 0;
  size_t used = 0;
  tn_device_info info = { .struct_size = sizeof info };
  others = 0;
  for (size_t i = 0; tn_session_device(session, i, &info, NULL) == TN_OK; i++)
    if (strcmp(info.type, "CPU") != 0) others++;
    else
      used += (size_t)snprintf(shown + used, sizeof shown - used, "%s ", strrchr(info.name, ':') - strlen(info.type));
  tn_session_destroy(session);
  if (devices != NULL) *devices = shown;
  return TN_OK;
}

/* S-CFG-18 */
static void config__device_count_gives_devices(void)
{
  const char *devices = NULL;
  CHECK_OK(open_with("device_count", "", &devices), &err);
  CHECK_STR(devices, "CPU:0 ");
  CHECK_OK(open_with("device_count", "CPU=3", &devices), &err);
  CHECK_STR(devices, "CPU:0 CPU:1 CPU:2 ");
  CHECK_OK(open_with("device_count", "FOO=7,BAR=-1", &devices), &err);
  CHECK_STR(devices, "CPU:0 ");
  CHECK_STATUS(open_with("device_count", "CPU=0", NULL), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "device_count asks for 0 devices");
  CHECK_STATUS(open_with("device_count", "CPU=-1", NULL), TN_NOT_FOUND, &err);
  CHECK_STATUS(open_with("device_count", "CPU=2000000000", NULL), TN_RESOURCE_EXHAUSTED, &err);
  end();
}

/* S-CFG-19, S-OPT-14 */
static void config__device_filters_hide_devices(void)
{
  const char *devices = NULL;
  begin();
  CHECK_OK(open_with("device_filters", "/job:localhost", &devices), &err);
  CHECK_STR(devices, "CPU:0 ");
  CHECK_STATUS(open_with("device_filters", "/job:worker", NULL), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "device_filters hide them all");
  CHECK_STATUS(open_with("device_filters", "/cpu:0,x!!", NULL), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'x!!' is malformed");
  begin();
  tn_session *session = NULL;
  tn_device_info info = { .struct_size = sizeof info };
  REQUIRE_OK(tn_session_options_set_device_count(options, "CPU", 4, &err), &err);
  REQUIRE_OK(tn_session_options_parse(options, "device_filters", "/cpu:1,/task:0/device:CPU:3", &err), &err);
  REQUIRE_OK(tn_session_create(options, &session, &err), &err);
  CHECK_OK(tn_session_device(session, 0, &info, &err), &err);
  CHECK_STR(info.name, "/job:localhost/replica:0/task:0/device:CPU:1");
  CHECK_OK(tn_session_device(session, 1, &info, &err), &err);
  CHECK_STR(info.name, "/job:localhost/replica:0/task:0/device:CPU:3");
  CHECK_STATUS(tn_session_device(session, 2, &info, &err), TN_OUT_OF_RANGE, &err);
  tn_session_destroy(session);
  end();
}

/* S-CFG-13, S-CFG-14, S-OPT-14 */
static void config__a_shared_pool_has_one_number_of_threads(void)
{
  tn_session *first = NULL, *second = NULL;
  begin();
  REQUIRE_OK(tn_session_options_parse(options, "session_inter_op_pools", "0,2@together,-1,3", &err), &err);
  REQUIRE_OK(tn_session_create(options, &first, &err), &err);
  CHECK_OK(open_with("session_inter_op_pools", "2@together", NULL), &err);
  CHECK_STATUS(open_with("session_inter_op_pools", "1,3@together", NULL), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "session_inter_op_pools, pool 1");
  CHECK_CONTAINS(tn_error_message(&err), "together");
  begin();
  REQUIRE_OK(tn_session_options_parse(options, "session_inter_op_pools", "2@together", &err), &err);
  REQUIRE_OK(tn_session_create(options, &second, &err), &err);
  tn_session_destroy(first);
  CHECK_STATUS(open_with("session_inter_op_pools", "3@together", NULL), TN_INVALID_ARGUMENT, &err);
  tn_session_destroy(second);
  CHECK_OK(open_with("session_inter_op_pools", "3@together", NULL), &err); /* no session uses the pool any more */
  CHECK_STATUS(open_with("session_inter_op_pools", "0@auto,-1@auto", NULL), TN_INVALID_ARGUMENT, &err); /* S-CFG-10 */
  end();
}

static uint64_t blocks_of_session(const char *target, const char *pools, int64_t threads)
{
  tn_session *session = NULL;
  begin();
  REQUIRE_OK(tn_session_options_set_target(options, target, &err), &err);
  REQUIRE_OK(tn_session_options_parse(options, "session_inter_op_pools", pools, &err), &err);
  REQUIRE_OK(tn_session_options_set_bool(options, "use_per_session_threads", true, &err), &err);
  REQUIRE_OK(tn_session_options_set_int(options, "inter_op_threads", threads, &err), &err);
  uint64_t before = tn_test_live_blocks();
  REQUIRE_OK(tn_session_create(options, &session, &err), &err);
  uint64_t blocks = tn_test_live_blocks() - before;
  tn_session_destroy(session);
  return blocks;
}

/* Pools without a name belong to their runtime: a runtime that needs none opens none, others open
 * each pool once. */
static void config__pools_are_opened_once(void)
{
  if (strcmp(ts_runtime_name(), "direct") != 0) TAP_SKIP("it counts blocks of direct and threaded");
  blocks_of_session("direct", "4", 0); /* loads the plugin */
  CHECK_INT(blocks_of_session("direct", "4,4,4,4", 0), blocks_of_session("direct", "-1,-1,-1,-1", 0));
  blocks_of_session("threaded", "4", 0);
  uint64_t one =
      blocks_of_session("threaded", "", 4) - blocks_of_session("threaded", "", -1); /* the session's own pool */
  CHECK(one > 0);
  CHECK_INT(blocks_of_session("threaded", "4,4,4,4", 0) - blocks_of_session("threaded", "-1,-1,-1,-1", 0), 4 * one);
  end();
}

/* S-RO-09, S-RO-13 */
static void config__calls_choose_an_existing_pool(void)
{
  static const struct {
    const char *pools;
    int32_t pool;
    bool partition_graphs;
    tn_status wanted;
  } cases[] = {
    { "", 0, true, TN_OK },
    { "", 1, false, TN_INVALID_ARGUMENT },
    { "1,2,3", 2, false, TN_OK },
    { "1,2,3", -1, false, TN_OK },
    { "1,2,3", 3, false, TN_INVALID_ARGUMENT },
    { "1,2,3", 0, true, TN_INVALID_ARGUMENT }, /* all but the first case forbid them */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ts t;
    ts_init(&t, 1);
    ts_usual_graph(t.graph);
    REQUIRE_OK(tn_session_options_parse(t.options, "session_inter_op_pools", cases[i].pools, &t.err), &t.err);
    REQUIRE_OK(tn_session_options_set_bool(t.options, "disable_output_partition_graphs", i > 0, &t.err), &t.err);
    ts_start(&t);
    tn_run_options run;
    tn_tensor *fetched = NULL;
    tn_run_options_init(&run);
    run.inter_op_pool = cases[i].pool;
    run.output_partition_graphs = cases[i].partition_graphs;
    CHECK_STATUS(tn_session_run(t.session, &run, NULL, NULL, 0, NAMES("half"), &fetched, 1, NULL, 0, NULL, &t.err),
                 cases[i].wanted, &t.err);
    tn_tensor_unref(fetched);
    ts_fini(&t);
  }
}

/* S-CFG-16 */
static void config__negative_threads_never_fail(void)
{
  CHECK_OK(open_with("inter_op_threads", "-3", NULL), &err);
  CHECK_OK(open_with("intra_op_threads", "-7", NULL), &err);
  CHECK_OK(open_with("session_inter_op_pools", "-2,-2@below", NULL), &err);
  end();
}

/* S-CFG-22: rejected when they are set, on any runtime. */
static void config__numbers_out_of_range_are_refused(void)
{
  static const char *const texts[] = { "nan", "-nan", "inf", "-inf", "0", "-2", "17", "1.0000001", "1e308", "-1e-300" };
  static const double numbers[] = { NAN, INFINITY, -INFINITY, 0, -2, 17, 1.0000001 };
  /* ConfigProto: gpu_options (6) of 9 bytes, per_process_gpu_memory_fraction (1) as a double */
  unsigned char proto[] = { 0x32, 9, 0x09, 0, 0, 0, 0, 0, 0, 0, 0 };
  begin();
  REQUIRE_OK(tn_session_options_set_float(options, "memory_fraction", 0.5, &err), &err);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    CHECK_MSG(tn_session_options_parse(options, "memory_fraction", texts[i], &err) == TN_INVALID_ARGUMENT,
              "'%s' is taken", texts[i]);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    CHECK_STATUS(tn_session_options_set_float(options, "memory_fraction", numbers[i], &err), TN_INVALID_ARGUMENT, &err);
    CHECK_CONTAINS(tn_error_message(&err), ", wanted above 0 and at most 1");
    if (numbers[i] == 0) continue; /* selects the default in a ConfigProto */
    memcpy(proto + 3, &numbers[i], sizeof numbers[i]);
    CHECK_STATUS(tn_session_options_from_config(options, proto, sizeof proto, &err), TN_INVALID_ARGUMENT, &err);
  }
  CHECK_DOUBLE(real_of(options, "memory_fraction"), 0.5, 0);
  CHECK_OK(tn_session_options_parse(options, "memory_fraction", "1", &err), &err);
  CHECK_OK(tn_session_options_parse(options, "memory_fraction", "1e-300", &err), &err);
  end();
}

static tn_status open_session(void *arg)
{
  tn_session *session = NULL;
  (void)arg;
  tn_status st = tn_session_create(options, &session, NULL);
  tn_session_destroy(session);
  return st;
}

static void config__opening_survives_lack_of_memory(void)
{
  begin();
  REQUIRE_OK(tn_session_options_parse(options, "device_count", "CPU=9", &err), &err);
  REQUIRE_OK(tn_session_options_parse(options, "device_filters", "/cpu:1,/cpu:2,/cpu:3,/cpu:4,/cpu:5", &err), &err);
  REQUIRE_OK(tn_session_options_parse(options, "session_inter_op_pools", "1,1@one,2@two", &err), &err);
  tn_test_oom_sweep(open_session, NULL);
  end();
}

TAP_MAIN(TAP_TEST(config__lists_are_built_item_by_item), TAP_TEST(config__lists_are_read_from_text),
         TAP_TEST(config__wrong_items_are_refused_and_change_nothing),
         TAP_TEST(config__a_config_proto_sets_all_its_options),
         TAP_TEST(config__repeated_and_odd_fields_are_read_as_protobuf_does),
         TAP_TEST(config__malformed_bytes_are_refused_with_their_offset),
         TAP_TEST(config__any_bytes_are_options_or_a_status), TAP_TEST(config__a_config_read_is_written_back),
         TAP_TEST(config__changed_options_replace_only_their_fields),
         TAP_TEST(config__a_message_in_two_parts_is_changed_once),
         TAP_TEST(config__options_alone_become_a_config_proto), TAP_TEST(config__a_file_may_be_bytes_or_text),
         TAP_TEST(config__survives_lack_of_memory), TAP_TEST(config__device_count_gives_devices),
         TAP_TEST(config__device_filters_hide_devices), TAP_TEST(config__a_shared_pool_has_one_number_of_threads),
         TAP_TEST(config__pools_are_opened_once), TAP_TEST(config__calls_choose_an_existing_pool),
         TAP_TEST(config__negative_threads_never_fail), TAP_TEST(config__numbers_out_of_range_are_refused),
         TAP_TEST(config__opening_survives_lack_of_memory))
