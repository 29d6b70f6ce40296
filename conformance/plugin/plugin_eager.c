/* SPDX-License-Identifier: Apache-2.0 */
/* Extensions of the factory, and the only one so far: single operations for eager sessions. The suites eager_* test
 * such sessions; this suite tests errors that only a plugin can make. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include <conformance/plugin/plugin.h>
#include <conformance/support/eager_kit.h>

enum { ELEMENTS = 1024, MOST = 65536 };

/* ---- get_extension ---- */

#define NEEDS_EXTENSIONS()                                                                \
  if (cf_under_test->plugin == NULL) TAP_SKIP("it is in no file");                        \
  pg_start();                                                                             \
  if (pg_it.slots.get_extension == NULL) TAP_SKIP("UNIMPLEMENTED: it has no get_extension")

static void plugin_eager__sets_the_size_of_its_extension(void) /* P-24, P-26, P-34 */
{
  NEEDS_EXTENSIONS();
  const tn_eager_runtime *eager = pg_extension(TN_EAGER_EXTENSION, 1);
  if (eager == NULL) TAP_SKIP("UNIMPLEMENTED: it has no extension '%s'", TN_EAGER_EXTENSION);
  CHECK_MSG(eager->struct_size >= TN_EAGER_RUNTIME_MIN_SIZE && eager->struct_size <= MOST,
            "struct_size of its extension '%s' is %zu, wanted at least %zu", TN_EAGER_EXTENSION, eager->struct_size,
            (size_t)TN_EAGER_RUNTIME_MIN_SIZE);
}

static void plugin_eager__returns_null_for_unknown_extensions(void) /* P-34 */
{
  static const char *const names[] = { "conformance.absent", "", "tn_eage", "tn_eager_", "TN_EAGER", " tn_eager" };
  static const uint32_t versions[] = { 0, UINT32_MAX };
  NEEDS_EXTENSIONS();
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    CHECK_MSG(pg_extension(names[i], 1) == NULL, "it gives something for the extension '%s', which it cannot know",
              names[i]);
  for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
    CHECK_MSG(pg_extension(TN_EAGER_EXTENSION, versions[i]) == NULL,
              "it gives something for version %u of '%s', which there is not", (unsigned)versions[i],
              TN_EAGER_EXTENSION);
  CHECK_MSG(pg_extension(NULL, 1) == NULL, "it gives something for the name NULL");
}

typedef struct asked {
  const void *found[4];
} asked;

static void ask(void *user, int thread)
{
  asked *a = user;
  for (int i = 0; i < 1000; i++) a->found[thread] = pg_it.slots.get_extension(pg_it.factory, TN_EAGER_EXTENSION, 1);
}

/* Static data: the same at any time, on any thread, and after all sessions are destroyed. */
static void plugin_eager__returns_the_same_each_time(void) /* P-34, P-47, P-69 */
{
  asked a;
  tn_error err = TN_ERROR_INIT;
  tn_runtime_session *session;
  NEEDS_EXTENSIONS();
  const tn_eager_runtime *first = pg_extension(TN_EAGER_EXTENSION, 1);
  if (first == NULL) TAP_SKIP("UNIMPLEMENTED: it has no extension '%s'", TN_EAGER_EXTENSION);
  const tn_eager_runtime before = *pg_eager();
  tn_session_options *options = pg_options(NULL);
  if (pg_new_session(options, &session, &err) == TN_OK) pg_destroy_session(session);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  CHECK_MSG(pg_extension(TN_EAGER_EXTENSION, 1) == first, "it gives another pointer the second time");
  cf_reached("its get_extension, on 4 threads");
  pg_threads(4, ask, &a);
  for (int i = 0; i < 4; i++) CHECK_MSG(a.found[i] == first, "it gives another pointer on another thread");
  const tn_eager_runtime *after = pg_eager();
  CHECK_MSG(after->struct_size == before.struct_size && after->execute == before.execute,
            "its extension has changed later");
}

/* ---- devices of other types than CPU ---- */

/* Finds the first such device; false: the session has none. */
static bool find_away(tn_runtime_session *session, size_t *out)
{
  tn_error err = TN_ERROR_INIT;
  bool found = false;
  for (size_t i = 0; !found && pg_it.slots.list_devices != NULL; i++) {
    tn_device_info info = { .struct_size = sizeof info };
    if (pg_it.slots.list_devices(pg_it.factory, session, i, &info, &err) != TN_OK) break;
    found = strcmp(info.type, "CPU") != 0;
    *out = i;
  }
  tn_error_clear(&err);
  return found;
}

static void check_copy(tn_runtime_session *session, size_t device, const tn_tensor *tensor)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *there = NULL, *back = NULL;
  tn_status st = pg_eager()->copy(pg_it.factory, session, tensor, device, &there, &err);
  pg_check_refusal(st, &err, "its copy");
  REQUIRE_OK(st, &err);
  REQUIRE_MSG(there != NULL, "its copy gives OK without a tensor");
  CHECK_INT(tn_tensor_dtype(there), tn_tensor_dtype(tensor));
  CHECK_INT(tn_tensor_rank(there), tn_tensor_rank(tensor));
  REQUIRE_INT(tn_tensor_bytes(there), tn_tensor_bytes(tensor));
  REQUIRE_OK(tn_tensor_copy(there, &back, &err), &err);
  size_t bytes = tn_tensor_bytes(tensor);
  CHECK_MSG(bytes == 0 || memcmp(tn_tensor_data(back), tn_tensor_data(tensor), bytes) == 0,
            "its copy has other elements");
  tn_tensor_unref(there);
  tn_tensor_unref(back);
  tn_error_clear(&err);
}

static void check_no_copy(tn_runtime_session *session, size_t device)
{
  static const char *const word[] = { "a word" };
  tn_error err = TN_ERROR_INIT;
  tn_tensor *words, *there = NULL;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, word, NULL, &words, &err), &err);
  tn_status st = pg_eager()->copy(pg_it.factory, session, words, device, &there, &err);
  pg_check_refusal(st, &err, "its copy");
  CHECK_MSG(st == TN_OK || there == NULL, "its copy fails and gives a tensor");
  tn_tensor_unref(there);
  tn_tensor_unref(words);
  tn_error_clear(&err);
}

/* Tensors that the device cannot store are rejected with a reason. */
static void plugin_eager__copies_to_a_device_are_the_same(void) /* S-EAG-26, P-61 */
{
  static const int64_t dims[][2] = { { 3, 40 }, { 0, 4 }, { 1, 1 } };
  tn_error err = TN_ERROR_INIT;
  tn_runtime_session *session;
  size_t device;
  NEEDS_EXTENSIONS();
  const tn_eager_runtime *eager = pg_eager();
  if (eager == NULL) TAP_SKIP("UNIMPLEMENTED: it has no extension '%s'", TN_EAGER_EXTENSION);
  CHECK_MSG((eager->copy == NULL) == (eager->prepare_on == NULL), "it has only one of prepare_on and copy");
  if (eager->copy == NULL || eager->prepare_on == NULL) TAP_SKIP("UNIMPLEMENTED: it runs single operations on CPUs");
  tn_session_options *options = pg_options(NULL);
  REQUIRE_OK(pg_new_session(options, &session, &err), &err);
  bool found = find_away(session, &device);
  for (size_t i = 0; found && i < 3; i++) {
    tn_tensor *tensor = ts_filled(2, dims[i], 3);
    cf_reached("its copy");
    check_copy(session, device, tensor);
    tn_tensor_unref(tensor);
  }
  if (found) check_no_copy(session, device);
  pg_destroy_session(session);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  if (!found) TAP_SKIP("UNIMPLEMENTED: it has no device but CPUs");
}

/* ---- operations ---- */

static void enter(void)
{
  bool found = cf_runtime_enter(cf_under_test);
  REQUIRE_MSG(found, "%s is not found", cf_under_test->name != NULL ? cf_under_test->name : "it");
}

/* Ends the test if it does not run single operations. */
static void open_session(te *t)
{
  enter();
  cf_reached("opening an eager session");
  te_open(t, ts_runtime(), TN_EAGER_IN_BACKGROUND);
  cf_reached("an operation");
}

static void plugin_eager__outputs_are_whole(void) /* S-EAG-01, P-34 */
{
  static const int64_t dims[][2] = { { 3, 4 }, { 0, 4 }, { 1, 1 } };
  te t;
  open_session(&t);
  for (size_t k = 0; k < 3; k++) {
    tn_tensor *feed = ts_filled(2, dims[k], 3), *got[2] = { NULL, NULL };
    tn_eager_handle x, y[2];
    REQUIRE_OK(tn_eager_from_tensor(t.session, feed, &x, &t.err), &t.err);
    for (int i = 0; i < 2; i++) {
      tn_status st = i == 0 ? tn_eager_neg(t.session, x, &y[0], &t.err) : tn_eager_shape(t.session, x, &y[1], &t.err);
      REQUIRE_OK(st, &t.err);
      REQUIRE_OK(tn_eager_tensor(t.session, y[i], &got[i], &t.err), &t.err);
    }
    CHECK_INT(tn_tensor_dtype(got[0]), TN_FLOAT);
    CHECK_INT(tn_tensor_rank(got[0]), 2);
    CHECK_INT(tn_tensor_dims(got[0])[0], dims[k][0]);
    if (tn_tensor_elements(got[0]) > 0) CHECK_DOUBLE(ts_float(got[0]), -3, 0);
    CHECK_INT(tn_tensor_dtype(got[1]), TN_INT32);
    CHECK_INT(tn_tensor_elements(got[1]), 2);
    CHECK_INT(((const int32_t *)tn_tensor_data(got[1]))[1], dims[k][1]);
    for (int i = 0; i < 2; i++) tn_tensor_unref(got[i]);
    tn_tensor_unref(feed);
  }
  te_fini(&t);
}

/* A write by a kernel or the runtime raises a signal. */
static void plugin_eager__inputs_are_not_written(void) /* S-RUN-28, P-46 */
{
  static const int64_t dims[] = { ELEMENTS };
  te t;
  tn_tensor *tensor;
  tn_eager_handle in, out;
  open_session(&t);
  float *data = mmap(NULL, ELEMENTS * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(data != MAP_FAILED);
  for (int i = 0; i < ELEMENTS; i++) data[i] = (float)i;
  REQUIRE(mprotect(data, ELEMENTS * sizeof(float), PROT_READ) == 0);
  REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, dims, 1, data, ELEMENTS * sizeof(float), NULL, NULL, &tensor, &t.err), &t.err);
  REQUIRE_OK(tn_eager_from_tensor(t.session, tensor, &in, &t.err), &t.err);
  tn_tensor_unref(tensor);
  cf_reached("an operation with an input that cannot be written");
  for (int i = 0; i < 3; i++) {
    REQUIRE_OK(tn_eager_add(t.session, in, in, &out, &t.err), &t.err);
    REQUIRE_OK(tn_eager_tensor(t.session, out, &tensor, &t.err), &t.err);
    for (int k = 0; k < ELEMENTS; k += 100) CHECK_DOUBLE(((const float *)tn_tensor_data(tensor))[k], 2 * k, 0);
    tn_tensor_unref(tensor);
  }
  te_fini(&t);
}

static void plugin_eager__errors_keep_their_texts(void) /* P-61, P-63, S-RUN-08 */
{
  static const tn_eager_attr code[] = { { .name = "slot", .kind = TN_ATTR_INT, .i = TN_DATA_LOSS } };
  te t;
  open_session(&t);
  tn_eager_handle x = te_scalar(&t, 1), out;
  for (int i = 0; i < 3; i++) {
    cf_reached("an operation that fails");
    CHECK_STATUS(tn_eager_call(t.session, "TestFail", code, 1, &x, 1, &out, 1, NULL, &t.err), TN_DATA_LOSS, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
    CHECK_INT(out.id, 0);
    cf_reached("an operation after one that failed");
    CHECK_DOUBLE(te_value(&t, te_add(&t, x, x)), 2, 0);
  }
  te_fini(&t);
}

/* ---- several threads ---- */

typedef struct shared {
  te *t;
  tn_eager_op *op;
} shared;

static void run_shared(void *user, int thread)
{
  const shared *s = user;
  tn_eager_session *session = s->t->session;
  for (int i = 0; i < 200; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_eager_handle in[2] = { { 0 }, { 0 } }, out = { 0 };
    tn_tensor *got = NULL;
    const float values[] = { (float)thread, (float)i };
    for (int k = 0; k < 2; k++)
      CHECK_OK(tn_eager_from_data(session, TN_FLOAT, NULL, 0, &values[k], sizeof(float), &in[k], &err), &err);
    CHECK_OK(tn_eager_op_call(s->op, in, 2, &out, 1, NULL, &err), &err);
    CHECK_OK(tn_eager_tensor(session, out, &got, &err), &err);
    CHECK_DOUBLE(ts_float(got), thread + i, 0);
    tn_tensor_unref(got);
    for (int k = 0; k < 2; k++) tn_eager_release(session, in[k], NULL);
    tn_eager_release(session, out, NULL);
    tn_error_clear(&err);
  }
}

/* One executable whose steps run concurrently. */
static void plugin_eager__operations_of_several_threads(void) /* S-EAG-25, P-69 */
{
  te t;
  open_session(&t);
  shared s = { .t = &t };
  REQUIRE_OK(tn_eager_op_create(t.session, "AddV2", NULL, NULL, 0, &s.op, &t.err), &t.err);
  run_shared(&s, 0);
  cf_reached("operations of 4 threads in one session");
  pg_threads(4, run_shared, &s);
  tn_eager_op_destroy(s.op);
  te_fini(&t);
}

/* ---- close and reset ---- */

typedef struct waiting {
  te *t;
  pthread_t thread;
  tn_eager_handle x;
  tn_status status;
} waiting;

static void *call_gate(void *arg)
{
  waiting *w = arg;
  tn_error err = TN_ERROR_INIT;
  tn_eager_handle out;
  w->status = tn_eager_call(w->t->session, "TestGate", NULL, 0, &w->x, 1, &out, 1, NULL, &err);
  tn_error_clear(&err);
  return NULL;
}

static void begin(waiting *w, te *t)
{
  open_session(t);
  *w = (waiting){ .t = t, .x = te_scalar(t, 1) };
  REQUIRE_INT(pthread_create(&w->thread, NULL, call_gate, w), 0);
  REQUIRE(ts_wait_at_gate(1));
}

/* A kernel that waits until its step is stopped. */
static void plugin_eager__close_ends_an_operation_that_waits(void) /* S-EAG-18 */
{
  te t;
  waiting w;
  begin(&w, &t);
  cf_reached("closing an eager session while an operation waits");
  CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
  pthread_join(w.thread, NULL);
  CHECK_INT(w.status, TN_FAILED_PRECONDITION);
  te_fini(&t);
}

static void plugin_eager__reset_ends_an_operation_that_waits(void) /* P-43, S-RST-04 */
{
  te t;
  waiting w;
  enter();
  if (!ts_has_reset()) TAP_SKIP("UNIMPLEMENTED: it has no reset");
  begin(&w, &t);
  cf_reached("its reset, while an operation waits");
  CHECK_OK(tn_reset(t.session_options, NULL, 0, &t.err), &t.err);
  pthread_join(w.thread, NULL);
  CHECK_INT(w.status, TN_CANCELLED);
  te_fini(&t);
}

/* ---- lifetime of arguments ---- */

static void plugin_eager__options_are_read_during_the_call_only(void) /* P-47 */
{
  te t;
  if (cf_under_test->plugin == NULL) TAP_SKIP("it is in no file");
  pg_front_register();
  te_open(&t, ts_runtime(), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle x = te_scalar(&t, 1);
  for (int i = 0; i < 3; i++) {
    cf_reached("an operation, after its options were freed");
    CHECK_DOUBLE(te_value(&t, te_add(&t, x, x)), 2, 0);
  }
  cf_reached("its destroy_session, after its options were freed");
  te_fini(&t);
}

TAP_MAIN(
  TAP_TEST(plugin_eager__sets_the_size_of_its_extension),
  TAP_TEST(plugin_eager__returns_null_for_unknown_extensions),
  TAP_TEST(plugin_eager__returns_the_same_each_time),
  TAP_TEST(plugin_eager__copies_to_a_device_are_the_same),
  TAP_TEST(plugin_eager__outputs_are_whole),
  TAP_TEST(plugin_eager__inputs_are_not_written),
  TAP_TEST(plugin_eager__errors_keep_their_texts),
  TAP_TEST(plugin_eager__operations_of_several_threads),
  TAP_TEST(plugin_eager__close_ends_an_operation_that_waits),
  TAP_TEST(plugin_eager__reset_ends_an_operation_that_waits),
  TAP_TEST(plugin_eager__options_are_read_during_the_call_only))
