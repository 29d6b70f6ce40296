/* SPDX-License-Identifier: Apache-2.0 */
/* Session options: the target and the fields. */
#include <string.h>

#include <tenon/options.h>

#include "conformance/support/oom.h"
#include "conformance/support/tap.h"

static tn_session_options *options;
static tn_error err = TN_ERROR_INIT;

static void begin(void)
{
  tn_session_options_destroy(options);
  options = NULL;
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
}

static void end(void)
{
  tn_session_options_destroy(options);
  options = NULL;
  tn_error_clear(&err);
}

/* S-OPT-01 */
static void options__are_empty_and_default_initially(void)
{
  int64_t number = -1;
  tn_bool flag = 1;
  const char *text = NULL;
  begin();
  CHECK_STR(tn_session_options_target(options), "");
  CHECK_STR(tn_session_options_runtime(options), "");
  CHECK_NULL(tn_session_options_setting_at(options, 0, NULL));
  CHECK_OK(tn_session_options_get_int(options, "level", &number, &err), &err);
  CHECK_INT(number, 1);
  CHECK_OK(tn_session_options_get_bool(options, "allow_soft_placement", &flag, &err), &err);
  CHECK_INT(flag, 0); /* S-CFG-01 */
  CHECK_OK(tn_session_options_get_string(options, "session_name", &text, &err), &err);
  CHECK_STR(text, "");
  CHECK_OK(tn_session_options_get_int(options, "max_signatures", &number, &err), &err);
  CHECK_INT(number, 64);
  end();
}

/* S-OPT-10 */
static void options__target_names_a_runtime_and_its_settings(void)
{
  const char *value = NULL;
  begin();
  CHECK_OK(tn_session_options_set_target(options, "acme.fast_2:threads=4,pin=,path=/a:b=c", &err), &err);
  CHECK_STR(tn_session_options_target(options), "acme.fast_2:threads=4,pin=,path=/a:b=c");
  CHECK_STR(tn_session_options_runtime(options), "acme.fast_2");
  CHECK_STR(tn_session_options_setting(options, "threads"), "4");
  CHECK_STR(tn_session_options_setting(options, "pin"), "");
  CHECK_STR(tn_session_options_setting(options, "path"), "/a:b=c");
  CHECK_NULL(tn_session_options_setting(options, "thread"));
  CHECK_STR(tn_session_options_setting_at(options, 2, &value), "path");
  CHECK_STR(value, "/a:b=c");
  CHECK_NULL(tn_session_options_setting_at(options, 3, &value));
  CHECK_NULL(value);
  CHECK_OK(tn_session_options_set_target(options, "", &err), &err);
  CHECK_STR(tn_session_options_runtime(options), "");
  CHECK_NULL(tn_session_options_setting(options, "threads"));
  end();
}

/* S-OPT-10, P-79: a rejected target leaves the previous one in place. */
static void options__malformed_targets_are_rejected(void)
{
  static const struct {
    const char *target, *part;
  } cases[] = {
    { "Direct", "byte 0" },
    { "1st", "byte 0" },
    { "../direct", "byte 0" },
    { "a/b", "byte 0" },
    { ":a=1", "byte 0" },
    { "direct ", "byte 0" },
    { "direct:", "byte 7" },
    { "direct:threads", "byte 7" },
    { "direct:a=1,", "byte 11" },
    { "direct:a=1,,b=2", "byte 11" },
    { "direct:A=1", "byte 7" },
    { "direct:=1", "byte 7" },
    { "direct:a=1,a=2", "a repeated setting at byte 11" },
    { "direct:a=\x01", "control character at byte 9" },
    { "grpc://host:2222", "byte 5" },
    { "dir\nect", "byte 0" },
  };
  char long_name[80];
  begin();
  REQUIRE_OK(tn_session_options_set_target(options, "threaded:threads=2", &err), &err);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    CHECK_MSG(tn_session_options_set_target(options, cases[i].target, &err) == TN_INVALID_ARGUMENT, "'%s' is taken",
              cases[i].target);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].part);
  }
  CHECK_STR(tn_session_options_target(options), "threaded:threads=2");
  memset(long_name, 'a', sizeof(long_name));
  long_name[65] = 0;
  CHECK_STATUS(tn_session_options_set_target(options, long_name, &err), TN_INVALID_ARGUMENT, &err);
  long_name[64] = 0;
  CHECK_OK(tn_session_options_set_target(options, long_name, &err), &err);
  CHECK_STATUS(tn_session_options_set_target(options, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_set_target(NULL, "direct", &err), TN_INVALID_ARGUMENT, &err);
  end();
}

/* S-OPT-10 */
static void options__errors_list_the_existing_settings(void)
{
  static const char *const keys[] = { "threads", "pin" };
  begin();
  CHECK_OK(tn_session_options_check_settings(options, NULL, 0, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "threaded:pin=1,spin=9", &err), &err);
  CHECK_STATUS(tn_session_options_check_settings(options, keys, 2, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "target 'threaded:pin=1,spin=9': there is no setting 'spin' (did you mean 'pin'?); "
                                    "available: threads, pin");
  CHECK_STATUS(tn_session_options_check_settings(options, NULL, 0, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "there is no setting 'pin'; the runtime has none");
  REQUIRE_OK(tn_session_options_set_target(options, "threaded:pin=1", &err), &err);
  CHECK_OK(tn_session_options_check_settings(options, keys, 2, &err), &err);
  end();
}

static void options__fields_can_be_listed(void)
{
  int32_t kind = 0;
  const char *text = NULL, *name;
  size_t n = 0;
  for (; (name = tn_session_options_field(n, &kind, &text)) != NULL; n++) {
    CHECK(kind >= TN_OPTION_INT && kind <= TN_OPTION_LIST);
    CHECK(text != NULL && strlen(text) > 5);
  }
  CHECK(n >= 16);
  CHECK_INT(kind, 0);
  CHECK_STR(tn_session_options_field(0, NULL, NULL), "level");
}

static void options__fields_are_set_and_read(void)
{
  int64_t number = 0;
  tn_bool flag = 0;
  const char *text = NULL;
  begin();
  CHECK_OK(tn_session_options_set_int(options, "inter_op_threads", -3, &err), &err); /* S-CFG-16 */
  CHECK_OK(tn_session_options_get_int(options, "inter_op_threads", &number, &err), &err);
  CHECK_INT(number, -3);
  CHECK_OK(tn_session_options_set_bool(options, "static_graph", 7, &err), &err);
  CHECK_OK(tn_session_options_get_bool(options, "static_graph", &flag, &err), &err);
  CHECK_INT(flag, 1);
  CHECK_OK(tn_session_options_set_string(options, "session_name", "a", &err), &err);
  CHECK_OK(tn_session_options_set_string(options, "session_name", "serving \xc3\xa9", &err), &err);
  CHECK_OK(tn_session_options_get_string(options, "session_name", &text, &err), &err);
  CHECK_STR(text, "serving \xc3\xa9");
  CHECK_OK(tn_session_options_parse(options, "level", "0", &err), &err);
  CHECK_OK(tn_session_options_get_int(options, "level", &number, &err), &err);
  CHECK_INT(number, 0);
  CHECK_OK(tn_session_options_parse(options, "static_graph", "no", &err), &err);
  CHECK_OK(tn_session_options_get_bool(options, "static_graph", &flag, &err), &err);
  CHECK_INT(flag, 0);
  end();
}

static void options__wrong_fields_and_values_are_rejected(void)
{
  int64_t number = 5;
  const char *text = "x";
  begin();
  CHECK_STATUS(tn_session_options_set_int(options, "levle", 1, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err),
                 "there is no option 'levle' (did you mean 'level'?); available: level, strict_shapes, ");
  CHECK_STATUS(tn_session_options_set_int(options, "colour", 1, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "there is no option 'colour'; available: level, strict_shapes, ");
  CHECK_STATUS(tn_session_options_set_int(options, "session_name", 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "option 'session_name' is a text, not a number");
  CHECK_STATUS(tn_session_options_set_bool(options, "level", 1, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_set_int(options, "level", 2, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "option 'level' is 2, wanted at most 1");
  CHECK_STATUS(tn_session_options_set_int(options, "session_version", -1, &err), TN_INVALID_ARGUMENT,
               &err); /* S-LIFE-15 */
  CHECK_STR(tn_error_message(&err), "option 'session_version' is -1, wanted at least 0");
  CHECK_STATUS(tn_session_options_parse(options, "level", "1 ", &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_parse(options, "static_graph", "maybe", &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "option 'static_graph' is 'maybe', wanted true or false");
  CHECK_STATUS(tn_session_options_get_int(options, "static_graph", &number, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_INT(number, 0);
  CHECK_STATUS(tn_session_options_get_string(options, "nothing", &text, &err), TN_NOT_FOUND, &err);
  CHECK_NULL(text);
  CHECK_STATUS(tn_session_options_set_string(options, "session_name", NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_set_int(options, NULL, 0, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_set_int(NULL, "level", 0, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_get_int(NULL, "level", &number, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_get_int(options, "level", NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_session_options_create(NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_OK(tn_session_options_get_int(options, "level", &number, &err), &err);
  CHECK_INT(number, 1);
  end();
}

/* S-OPT-02 */
static void options__copies_are_independent(void)
{
  tn_session_options *copy = NULL;
  const char *text = NULL;
  begin();
  REQUIRE_OK(tn_session_options_set_target(options, "direct:a=1", &err), &err);
  REQUIRE_OK(tn_session_options_set_string(options, "session_name", "one", &err), &err);
  REQUIRE_OK(tn_session_options_copy(options, &copy, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "threaded", &err), &err);
  REQUIRE_OK(tn_session_options_set_string(options, "session_name", "two", &err), &err);
  end();
  CHECK_STR(tn_session_options_setting(copy, "a"), "1");
  CHECK_OK(tn_session_options_get_string(copy, "session_name", &text, &err), &err);
  CHECK_STR(text, "one");
  tn_session_options_destroy(copy);
  copy = (tn_session_options *)&err;
  CHECK_STATUS(tn_session_options_copy(NULL, &copy, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_NULL(copy);
  end();
}

static tn_status make_one(void *arg)
{
  tn_session_options *made = NULL, *copy = NULL;
  tn_status status = tn_session_options_create(&made, NULL);
  (void)arg;
  if (status == TN_OK) status = tn_session_options_set_target(made, "direct:a=1,b=2,c=3", NULL);
  if (status == TN_OK) status = tn_session_options_set_target(made, "threaded:threads=1,pin=2", NULL);
  if (status == TN_OK) status = tn_session_options_set_string(made, "session_name", "name", NULL);
  if (status == TN_OK) status = tn_session_options_copy(made, &copy, NULL);
  if (status != TN_OK && copy != NULL) status = TN_INTERNAL;
  tn_session_options_destroy(copy);
  tn_session_options_destroy(made);
  return status;
}

static void options__survive_lack_of_memory(void) { tn_test_oom_sweep(make_one, NULL); }

TAP_MAIN(TAP_TEST(options__are_empty_and_default_initially),
         TAP_TEST(options__target_names_a_runtime_and_its_settings),
         TAP_TEST(options__malformed_targets_are_rejected),
         TAP_TEST(options__errors_list_the_existing_settings), TAP_TEST(options__fields_can_be_listed),
         TAP_TEST(options__fields_are_set_and_read), TAP_TEST(options__wrong_fields_and_values_are_rejected),
         TAP_TEST(options__copies_are_independent), TAP_TEST(options__survive_lack_of_memory))
