/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of session factories, and choosing among factories that the program registers. No
 * files here. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/registry/registry.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"
#include "conformance/support/tap.h"

static tn_error err = TN_ERROR_INIT;

/* A factory that counts its calls. The library's struct is its first member, as in a plugin. */
typedef struct fake {
  tn_session_factory base;
  bool refuses;
  const char *why;        /* explanation of a refusal */
  int32_t lower;          /* rank_for_options; -1: unchanged */
  const char *calls_load; /* accepts_options asks the registry for this runtime */
  int asked, made;
} fake;

static tn_status fake_new_session(const tn_session_factory *self, const tn_session_options *options,
                                  tn_runtime_session **out, tn_error *e)
{
  (void)options, (void)e;
  ((fake *)self)->made++;
  *out = (tn_runtime_session *)self;
  return TN_OK;
}

static tn_bool fake_accepts(const tn_session_factory *self, const tn_session_options *options)
{
  fake *f = (fake *)self;
  __atomic_fetch_add(&f->asked, 1, __ATOMIC_SEQ_CST);
  if (f->calls_load != NULL) {
    tn_runtime_info info = { .struct_size = sizeof(info) };
    CHECK_OK(tn_runtime_load(f->calls_load, &info, NULL), NULL);
    CHECK_OK(tn_runtime_at(0, &info, NULL), NULL);
  }
  return !f->refuses && tn_session_options_check_settings(options, NULL, 0, NULL) == TN_OK;
}

static void fake_destroy(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }

static void fake_explain(const tn_session_factory *self, const tn_session_options *options, tn_error *e)
{
  const fake *f = (const fake *)self;
  if (f->why != NULL)
    tn_error_set(e, TN_INVALID_ARGUMENT, "%s", f->why);
  else
    tn_session_options_check_settings(options, NULL, 0, e);
}

static int32_t fake_rank(const tn_session_factory *self, const tn_session_options *options, int32_t rank)
{
  (void)options;
  return ((const fake *)self)->lower >= 0 ? ((const fake *)self)->lower : rank;
}

static fake make(const char *name)
{
  fake f = { .base = { .struct_size = TN_SESSION_FACTORY_SIZE,
                       .name = name,
                       .new_session = fake_new_session,
                       .accepts_options = fake_accepts,
                       .destroy_session = fake_destroy,
                       .explain_options = fake_explain,
                       .rank_for_options = fake_rank },
             .lower = -1 };
  return f;
}

static void add(fake *f) { REQUIRE_OK(tn_runtime_register(f->base.name, &f->base, &err), &err); }
static void drop(fake *f) { CHECK_OK(tn_runtime_unregister(f->base.name, &err), &err); }

/* The factory chosen by a target, or NULL with the status in *status. */
static const tn_session_factory *find(const char *target, tn_status *status)
{
  tn_session_options *options = NULL;
  const tn_session_factory *found = (const tn_session_factory *)&err; /* must become NULL on failure */
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, target, &err), &err);
  *status = tn_runtime_find(options, &found, &err);
  tn_session_options_destroy(options);
  return found;
}

static void ranks(const char *text)
{
  if (text != NULL)
    setenv("TENON_RANK", text, 1);
  else
    unsetenv("TENON_RANK");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
}

static const char *explain(const char *target)
{
  static char text[4000];
  size_t needed = 0;
  tn_session_options *options = NULL;
  REQUIRE_OK(tn_session_options_create(&options, NULL), NULL);
  REQUIRE_OK(tn_session_options_set_target(options, target, NULL), NULL);
  tn_explain_selection(options, text, sizeof(text), &needed, &err);
  CHECK_INT(needed, strlen(text));
  tn_session_options_destroy(options);
  return text;
}

/* S-REG-01, S-REG-03 */
static void registry__a_registered_factory_is_found_by_name(void)
{
  fake a = make("test.a");
  tn_status status;
  CHECK_NULL(find("test.a", &status));
  CHECK_INT(status, TN_NOT_FOUND);
  add(&a);
  CHECK(find("test.a", &status) == &a.base);
  CHECK_INT(status, TN_OK);
  CHECK_INT(a.asked, 1);
  CHECK_INT(a.made, 0); /* S-OPT-08 */
  drop(&a);
  CHECK_NULL(find("test.a", &status));
  CHECK_INT(status, TN_NOT_FOUND);
}

/* S-REG-02, P-48 */
static void registry__a_duplicate_name_does_not_replace_the_first(void)
{
  fake first = make("test.same"), second = make("test.same");
  tn_status status;
  add(&first);
  CHECK_STATUS(tn_runtime_register("test.same", &second.base, &err), TN_ALREADY_EXISTS, &err);
  CHECK_STR(tn_error_message(&err), "runtime 'test.same' exists already (registered by the program); the second one "
                                    "(registered by the program) is not registered");
  CHECK(find("test.same", &status) == &first.base);
  CHECK_INT(second.asked, 0);
  CHECK_STATUS(tn_runtime_register("test.other", &first.base, &err), TN_ALREADY_EXISTS, &err);
  drop(&first);
}

/* S-REG-04, P-37 */
static void registry__incomplete_factories_are_rejected(void)
{
  fake good = make("test.incomplete"), f;
  CHECK_STATUS(tn_runtime_register(NULL, &good.base, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_register("test.incomplete", NULL, &err), TN_INVALID_ARGUMENT, &err);
  static const char *const names[] = { "", "Direct", "1a", "a/b", "..", "a b", "a\n" };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    CHECK_MSG(tn_runtime_register(names[i], &good.base, &err) == TN_INVALID_ARGUMENT, "the name '%s' is taken",
              names[i]);
  CHECK_CONTAINS(tn_error_message(&err), "is not a valid runtime name");
  f = good, f.base.new_session = NULL;
  CHECK_STATUS(tn_runtime_register("test.incomplete", &f.base, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "session factory 'test.incomplete' lacks the required callback 'new_session'");
  f = good, f.base.accepts_options = NULL;
  CHECK_STATUS(tn_runtime_register("test.incomplete", &f.base, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'accepts_options'");
  f = good, f.base.destroy_session = NULL;
  CHECK_STATUS(tn_runtime_register("test.incomplete", &f.base, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'destroy_session'");
  f = good, f.base.name = NULL;
  CHECK_STATUS(tn_runtime_register("test.incomplete", &f.base, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'name'");
  f = good, f.base.struct_size = TN_SESSION_FACTORY_MIN_SIZE - 1;
  CHECK_STATUS(tn_runtime_register("test.incomplete", &f.base, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "struct_size");
  CHECK_STATUS(tn_runtime_unregister("test.incomplete", &err), TN_NOT_FOUND, &err); /* S-REG-10 */
}

/* P-26: a slot that the struct does not contain completely is not read. */
static void registry__slots_beyond_struct_size_are_not_read(void)
{
  fake f = make("test.old");
  tn_session_options *options = NULL;
  tn__factory *held = NULL;
  f.base.struct_size = TN_SIZE_TO(tn_session_factory, reset) + 3;
  f.base.list_devices = (void *)fake_accepts;
  f.base.reset = (void *)fake_accepts;
  add(&f);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "test.old", &err), &err);
  REQUIRE_OK(tn__registry_acquire(options, &held, &err), &err);
  const tn_session_factory *table = tn__factory_vtable(held);
  CHECK_INT(table->struct_size, TN_SESSION_FACTORY_SIZE);
  CHECK(table->new_session == fake_new_session);
  CHECK(table->reset != NULL);
  CHECK(table->explain_options == NULL && table->rank_for_options == NULL && table->health == NULL);
  CHECK(tn__factory_self(held) == &f.base);
  tn__factory *again = tn__factory_by_self(&f.base);
  CHECK(again == held);
  CHECK_NULL(tn__factory_by_self(table));
  tn__factory_release(again);
  tn__factory_release(held);
  tn_session_options_destroy(options);
  drop(&f);
}

static int slots_destroyed;
static void destroy_slot(void *slot) { slots_destroyed += *(int *)slot; }

/* S-REG-09, S-REG-10, P-45 */
static void registry__unregister_waits_for_holders(void)
{
  fake f = make("test.held");
  const tn_session_factory *found = NULL;
  tn_session_options *options = NULL;
  tn__factory *one = NULL;
  int seven = 7;
  add(&f);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "test.held", &err), &err);
  REQUIRE_OK(tn_runtime_find(options, &found, &err), &err);
  CHECK(found == &f.base); /* not a holder */
  REQUIRE_OK(tn__registry_acquire(options, &one, &err), &err);
  CHECK(tn__factory_ref(one) == one);
  CHECK_STATUS(tn_runtime_unregister("test.held", &err), TN_FAILED_PRECONDITION, &err);
  CHECK_STR(tn_error_message(&err),
            "runtime 'test.held' cannot be unregistered: it is held by 2 sessions, 0 calls and 0 buffers");
  CHECK(tn__factory_set_slot(one, &seven, destroy_slot));
  CHECK(!tn__factory_set_slot(one, &f, NULL));
  CHECK(tn__factory_slot(one) == &seven);
  tn__factory_release(one);
  CHECK_STATUS(tn_runtime_unregister("test.held", &err), TN_FAILED_PRECONDITION, &err);
  CHECK_OK(tn_runtime_find(options, &found, &err), &err); /* a refusal changes nothing */
  CHECK(found == &f.base);
  tn__factory_release(one);
  CHECK_INT(slots_destroyed, 0);
  drop(&f);
  CHECK_INT(slots_destroyed, 7);
  tn_session_options_destroy(options);
}

/* S-OPT-04, S-OPT-11, P-54 */
static void select__the_error_for_an_unknown_name_lists_the_known_ones(void)
{
  fake a = make("test.a"), b = make("test.b");
  tn_status status;
  add(&b);
  add(&a);
  CHECK_NULL(find("nowhere", &status));
  CHECK_INT(status, TN_NOT_FOUND);
  CHECK_STR(tn_error_message(&err),
            "target 'nowhere': there is no runtime 'nowhere'; registered: test.a (by the program), "
            "test.b (by the program)");
  CHECK_NULL(find("tset.b", &status));
  CHECK_CONTAINS(tn_error_message(&err), "there is no runtime 'tset.b' (did you mean 'test.b'?); registered: ");
  CHECK_INT(a.asked + b.asked, 0);
  drop(&a);
  drop(&b);
  CHECK_NULL(find("nowhere", &status));
  CHECK_STR(tn_error_message(&err), "target 'nowhere': there is no runtime 'nowhere'; no runtime was found");
}

/* P-55, P-60, S-OPT-10 */
static void select__a_named_runtime_that_refuses_is_not_replaced(void)
{
  fake a = make("test.a"), b = make("test.b");
  tn_status status;
  add(&a);
  add(&b);
  CHECK_NULL(find("test.a:speed=9", &status));
  CHECK_INT(status, TN_INVALID_ARGUMENT);
  CHECK_STR(
      tn_error_message(&err),
      "runtime 'test.a' (registered by the program) does not accept the options with target 'test.a:speed=9': target "
      "'test.a:speed=9': there is no setting 'speed'; the runtime has none");
  a.base.explain_options = NULL;
  drop(&a);
  add(&a);
  CHECK_NULL(find("test.a:speed=9", &status));
  CHECK_CONTAINS(tn_error_message(&err), "it gives no reason");
  CHECK_INT(b.asked, 0);
  drop(&a);
  drop(&b);
}

/* P-58: rank 0 means by name only. */
static void select__an_empty_target_needs_a_runtime_with_a_rank(void)
{
  fake a = make("test.a");
  tn_status status;
  add(&a);
  CHECK_NULL(find("", &status));
  CHECK_INT(status, TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&err),
                 "target '' names no runtime, and all runtimes have rank 0, which means selection by name only: "
                 "test.a; ");
  CHECK_INT(a.asked, 0);
  ranks("test.a=10");
  CHECK(find("", &status) == &a.base);
  ranks(NULL);
  CHECK_NULL(find("", &status));
  drop(&a);
}

/* S-OPT-03, P-56: from the highest rank down, until a runtime accepts. */
static void select__the_highest_rank_that_accepts_wins(void)
{
  fake a = make("test.a"), b = make("test.b"), c = make("test.c");
  tn_status status;
  add(&a);
  add(&b);
  add(&c);
  ranks("test.a=100,test.b=300,test.c=200");
  CHECK(find("", &status) == &b.base);
  CHECK_INT(a.asked + c.asked, 0);
  b.refuses = true;
  CHECK(find("", &status) == &c.base);
  CHECK_INT(a.asked, 0);
  b.refuses = false;
  b.lower = 150; /* may lower its own rank */
  CHECK(find("", &status) == &c.base);
  b.lower = 900; /* may not raise it: equal to its own */
  CHECK(find("", &status) == &b.base);
  b.lower = 0;
  c.refuses = a.refuses = true;
  CHECK_NULL(find("", &status));
  CHECK_INT(status, TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&err), "runtime 'test.c' (registered by the program) does not accept the options");
  ranks(NULL);
  drop(&a);
  drop(&b);
  drop(&c);
}

/* S-REG-08: the choice and the messages do not depend on the order of registrations. */
static void select__order_of_registration_does_not_matter(void)
{
  static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
  fake f[3] = { make("test.a"), make("test.b"), make("test.c") };
  char first[4000] = "";
  tn_status status;
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    for (int k = 0; k < 3; k++) add(&f[orders[i][k]]);
    ranks("test.a=100,test.b=300,test.c=200");
    CHECK(find("", &status) == &f[1].base);
    ranks("test.a=300,test.b=100,test.c=300");
    CHECK_NULL(find("", &status));
    CHECK_INT(status, TN_FAILED_PRECONDITION);
    if (i == 0) snprintf(first, sizeof first, "%s", tn_error_message(&err));
    CHECK_STR(tn_error_message(&err), first);
    for (int k = 0; k < 3; k++) drop(&f[orders[i][k]]);
  }
  ranks(NULL);
}

/* P-58: ranks in the options take precedence over those of the environment */
static void select__ranks_of_the_options_take_precedence(void)
{
  fake a = make("test.a"), b = make("test.b");
  const tn_session_factory *found = NULL;
  tn_session_options *options = NULL;
  add(&a);
  add(&b);
  ranks("test.a=100,test.b=300");
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_string(options, "runtime_ranks", "test.a=400", &err), &err);
  CHECK_OK(tn_runtime_find(options, &found, &err), &err);
  CHECK(found == &a.base);
  REQUIRE_OK(tn_session_options_set_string(options, "runtime_ranks", "test.b=0,test.none=900", &err), &err);
  CHECK_OK(tn_runtime_find(options, &found, &err), &err);
  CHECK(found == &a.base);
  REQUIRE_OK(tn_session_options_set_string(options, "runtime_ranks", "test.a=many", &err), &err);
  CHECK_STATUS(tn_runtime_find(options, &found, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'test.a=many'");
  CHECK_NULL(found);
  tn_session_options_destroy(options);
  ranks(NULL);
  drop(&a);
  drop(&b);
}

/* S-OPT-05, P-57 */
static void select__equal_ranks_are_an_error_that_names_all(void)
{
  fake a = make("test.a"), b = make("test.b"), c = make("test.c");
  tn_status status;
  ranks("test.a=300,test.b=300,test.c=299");
  add(&c);
  add(&b);
  add(&a);
  CHECK_NULL(find("", &status));
  CHECK_INT(status, TN_FAILED_PRECONDITION);
  CHECK_STR(
      tn_error_message(&err),
      "target '': several runtimes of equal rank accept the options: test.a (registered by the program) with rank 300, "
      "test.b (registered by the program) with rank 300; name one in the target, such as 'test.b', or give it a higher "
      "rank, such as TENON_RANK=test.b=301; registered: test.a (by the program), test.b (by the program), "
      "test.c (by the program)");
  CHECK(find("test.b", &status) == &b.base);
  b.lower = 298;
  CHECK(find("", &status) == &a.base);
  ranks(NULL);
  drop(&a);
  drop(&b);
  drop(&c);
}

/* P-59 */
static void select__the_explanation_lists_every_candidate(void)
{
  fake a = make("test.a"), b = make("test.b"), c = make("test.c"), d = make("test.d");
  ranks("test.a=100,test.b=300,test.c=200,nonsense,test.d=4000");
  add(&a);
  add(&b);
  add(&c);
  add(&d);
  b.refuses = true;
  b.why = "it is too late";
  CHECK_STR(
      explain(""),
      "test.b (registered by the program) rank 300: refused: runtime 'test.b' (registered by the program) does not "
      "accept the options with target '': it is too late\n"
      "test.c (registered by the program) rank 200: accepted\n"
      "test.a (registered by the program) rank 100: not asked: a runtime of higher rank accepted\n"
      "test.d (registered by the program) rank 0: not asked: rank 0 means selection by name only\n"
      "chosen: test.c\n"
      "TENON_RANK: the element 'nonsense' is skipped: it is not name=rank with a rank from 0 to 1000\n"
      "TENON_RANK: the element 'test.d=4000' is skipped: it is not name=rank with a rank from 0 to 1000\n");
  ranks(NULL);
  CHECK_STR(explain("test.a"),
            "test.b (registered by the program) rank 0: not asked: the target names another runtime\n"
            "test.c (registered by the program) rank 0: not asked: the target names another runtime\n"
            "test.d (registered by the program) rank 0: not asked: the target names another runtime\n"
            "test.a (registered by the program) rank 0: asked by name, accepted\n"
            "chosen: test.a\n");
  CHECK_CONTAINS(explain("test.e"), "none: NOT_FOUND: target 'test.e': there is no runtime 'test.e'");
  CHECK_INT(tn_error_code(&err), TN_NOT_FOUND);
  drop(&a);
  drop(&b);
  drop(&c);
  drop(&d);
}

/* S-OPT-13, S-ERR-04 */
static void select__null_arguments_are_rejected(void)
{
  const tn_session_factory *found = NULL;
  tn_session_options *options = NULL;
  tn_runtime_info info = { .struct_size = sizeof(info) };
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  CHECK_STATUS(tn_runtime_find(NULL, &found, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_find(options, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_explain_selection(NULL, NULL, 0, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_explain_selection(options, NULL, 10, NULL, &err), TN_NOT_FOUND, &err);
  CHECK_STATUS(tn_runtime_load(NULL, &info, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_load("", &info, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_load("direct:a=1", &info, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_load("../direct", &info, &err), TN_INVALID_ARGUMENT, &err); /* P-79 */
  CHECK_STATUS(tn_runtime_load("direct", NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_at(0, NULL, &err), TN_INVALID_ARGUMENT, &err);
  info.struct_size = 0;
  CHECK_STATUS(tn_runtime_load("nowhere", &info, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_unregister(NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_add_directory(NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_add_directory("plugins", &err), TN_INVALID_ARGUMENT, &err); /* P-04 */
  CHECK_STR(tn_error_message(&err), "plugin folder 'plugins' is not an absolute path");
  tn_session_options_destroy(options);
}

/* S-REG-07 */
static void select__a_callback_may_use_the_registry(void)
{
  fake a = make("test.a"), b = make("test.b");
  tn_status status;
  add(&a);
  add(&b);
  a.calls_load = "test.b";
  CHECK(find("test.a", &status) == &a.base);
  drop(&a);
  drop(&b);
}

static void registry__the_listing_is_sorted_and_complete(void)
{
  fake b = make("test.b"), a = make("test.a");
  tn_runtime_info info = { .struct_size = sizeof(info) };
  add(&b);
  add(&a);
  REQUIRE_OK(tn_runtime_at(0, &info, &err), &err);
  CHECK_STR(info.name, "test.a");
  CHECK_STR(info.kind, "runtime");
  CHECK_STR(info.file, "");
  CHECK_STR(info.origin, "program");
  CHECK_INT(info.usable, 1);
  CHECK_STR(info.reason, "");
  REQUIRE_OK(tn_runtime_at(1, &info, &err), &err);
  CHECK_STR(info.name, "test.b");
  CHECK_STATUS(tn_runtime_at(2, &info, &err), TN_OUT_OF_RANGE, &err);
  CHECK_STR(tn_error_message(&err), "runtime 2: there are 2");

  /* A caller with older headers passes a shorter struct; nothing past its end is written (P-26). */
  struct {
    tn_runtime_info info;
  } old;
  memset(&old, 0x55, sizeof(old));
  old.info.struct_size = TN_SIZE_TO(tn_runtime_info, file);
  REQUIRE_OK(tn_runtime_at(0, &old.info, &err), &err);
  CHECK_STR(old.info.name, "test.a");
  CHECK_INT(old.info.struct_size, TN_SIZE_TO(tn_runtime_info, file));
  CHECK_INT(old.info.rank, 0x55555555);
  drop(&a);
  drop(&b);
}

/* P-64: a value returned by a plugin must not do harm, whatever it is. */
static void registry__statuses_of_callbacks_are_normalised(void)
{
  fake a = make("test.a");
  add(&a);
  tn__factory *f = tn__factory_by_self(&a.base);
  tn_error e = TN_ERROR_INIT;
  CHECK_INT(tn__factory_status(f, "new_session", TN_OK, &e), TN_OK);
  CHECK_INT(tn__factory_status(f, "new_session", TN_ABORTED, &e), TN_ABORTED);
  CHECK_STR(tn_error_message(&e),
            "runtime 'test.a' (registered by the program): new_session failed and gave no reason (the "
            "operation was aborted)");
  tn_error_clear(&e);
  tn_error_set(&e, TN_NOT_FOUND, "no wheel");
  CHECK_INT(tn__factory_status(f, "new_session", TN_DATA_LOSS, &e), TN_DATA_LOSS);
  CHECK_INT(tn_error_code(&e), TN_DATA_LOSS);
  CHECK_STR(tn_error_message(&e), "runtime 'test.a' (registered by the program): no wheel");
  tn_error_clear(&e);
  CHECK_INT(tn__factory_status(f, "step", TN_PENDING, &e), TN_INTERNAL);
  CHECK_CONTAINS(tn_error_message(&e), "step returned 1000, which is not a status");
  tn_error_clear(&e);
  CHECK_INT(tn__factory_status(f, "step", -3, NULL), TN_INTERNAL);
  tn_error_set(&e, TN_NOT_FOUND, "set, although the call succeeded");
  CHECK_INT(tn__factory_status(f, "step", TN_OK, &e), TN_OK);
  CHECK_INT(tn_error_code(&e), TN_OK);
  tn__factory_release(f);
  drop(&a);
}

static tn_status register_once(void *arg)
{
  fake *f = arg;
  const tn_session_factory *found = NULL;
  tn_session_options *options = NULL;
  tn_status status = tn_runtime_register(f->base.name, &f->base, NULL);
  if (status != TN_OK) return status;
  status = tn_session_options_create(&options, NULL);
  if (status == TN_OK) status = tn_session_options_set_target(options, f->base.name, NULL);
  if (status == TN_OK) status = tn_runtime_find(options, &found, NULL);
  if (status == TN_OK) status = tn_session_options_set_target(options, "", NULL);
  if (status == TN_OK) status = tn_runtime_find(options, &found, NULL);
  char text[10];
  if (status == TN_OK) status = tn_explain_selection(options, text, sizeof(text), NULL, NULL);
  tn_session_options_destroy(options);
  tn_runtime_unregister(f->base.name, NULL);
  return status;
}

static void registry__survives_lack_of_memory(void)
{
  fake f = make("test.memory");
  ranks("test.memory=5");
  tn_test_oom_sweep(register_once, &f);
  ranks(NULL);
}

/* S-REG-06 */
static void *hammer(void *arg)
{
  char name[32];
  fake own = make(name);
  const tn_session_factory *found = NULL;
  tn_session_options *options = NULL;
  tn_runtime_info info = { .struct_size = sizeof(info) };
  snprintf(name, sizeof(name), "test.t%d", *(int *)arg);
  CHECK_OK(tn_session_options_create(&options, NULL), NULL);
  for (int i = 0; i < 300; i++) {
    CHECK_OK(tn_runtime_register(name, &own.base, NULL), NULL);
    CHECK_OK(tn_session_options_set_target(options, name, NULL), NULL);
    CHECK_OK(tn_runtime_find(options, &found, NULL), NULL);
    CHECK(found == &own.base);
    CHECK_OK(tn_session_options_set_target(options, "test.shared", NULL), NULL);
    CHECK_OK(tn_runtime_find(options, &found, NULL), NULL);
    tn_explain_selection(options, NULL, 0, NULL, NULL);
    for (size_t k = 0; tn_runtime_at(k, &info, NULL) == TN_OK; k++) {}
    tn_status status = tn_runtime_unregister(name, NULL); /* another thread may be calling it */
    while (status == TN_FAILED_PRECONDITION) status = tn_runtime_unregister(name, NULL);
    CHECK_INT(status, TN_OK);
  }
  tn_session_options_destroy(options);
  return NULL;
}

static void registry__threads_register_and_look_up_concurrently(void)
{
  fake shared = make("test.shared");
  pthread_t threads[8];
  int ids[8];
  add(&shared);
  for (int i = 0; i < 8; i++) {
    ids[i] = i;
    REQUIRE_INT(pthread_create(&threads[i], NULL, hammer, &ids[i]), 0);
  }
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  drop(&shared);
}

static void swallow(void *user, int32_t level, const char *line) { (void)user, (void)level, (void)line; }

static void setup(void)
{
  tn_set_log_sink(swallow, NULL);
  setenv("TENON_PLUGIN_PATH", tap_scratch_dir(), 1); /* empty */
  setenv("TENON_PLUGIN_PATH_ONLY", "1", 1);
}

static void teardown(void) { tn_error_clear(&err); }

TAP_MAIN_WITH(setup, teardown, TAP_TEST(registry__a_registered_factory_is_found_by_name),
              TAP_TEST(registry__a_duplicate_name_does_not_replace_the_first),
              TAP_TEST(registry__incomplete_factories_are_rejected),
              TAP_TEST(registry__slots_beyond_struct_size_are_not_read),
              TAP_TEST(registry__unregister_waits_for_holders),
              TAP_TEST(registry__the_listing_is_sorted_and_complete),
              TAP_TEST(registry__statuses_of_callbacks_are_normalised), TAP_TEST(registry__survives_lack_of_memory),
              TAP_TEST(registry__threads_register_and_look_up_concurrently),
              TAP_TEST(select__the_error_for_an_unknown_name_lists_the_known_ones),
              TAP_TEST(select__a_named_runtime_that_refuses_is_not_replaced),
              TAP_TEST(select__an_empty_target_needs_a_runtime_with_a_rank),
              TAP_TEST(select__order_of_registration_does_not_matter),
              TAP_TEST(select__the_highest_rank_that_accepts_wins),
              TAP_TEST(select__ranks_of_the_options_take_precedence),
              TAP_TEST(select__equal_ranks_are_an_error_that_names_all),
              TAP_TEST(select__the_explanation_lists_every_candidate), TAP_TEST(select__null_arguments_are_rejected),
              TAP_TEST(select__a_callback_may_use_the_registry))
