/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the program with small stacks, and threads that are cancelled. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/support/calls_kit.h"

static const char *const runtimes[] = { "direct", "threaded:threads=2" };
#define FOR_BOTH(r) for (size_t r = 0; r < sizeof runtimes / sizeof *runtimes; r++)

static void open_on(ts *t, const char *runtime, int level, const char *text)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, runtime, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

/* ---- small stacks ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_UNIT ((size_t)8 << 10) /* frames are several times larger */
#else
#define STACK_UNIT ((size_t)1 << 10)
#endif

typedef struct step {
  ts *t;
  const char *fetch;
  float value;
  tn_status status;
} step;

static void *run_step(void *arg)
{
  step *s = arg;
  tn_tensor *out = NULL;
  s->status = ts_run(s->t, FEEDS({ "x", 1 }), NAMES(s->fetch), &out, NULL);
  s->value = s->status == TN_OK ? ts_float(out) : -1;
  tn_tensor_unref(out);
  return NULL;
}

static void run_on_stack(step *s, size_t bytes)
{
  pthread_t thread;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  REQUIRE_INT(pthread_attr_setstacksize(&attr, bytes > PTHREAD_STACK_MIN ? bytes : PTHREAD_STACK_MIN), 0);
  REQUIRE_INT(pthread_create(&thread, &attr, run_step, s), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
}

#define CALL_IN(op, f) BODY("c", op, "input: 'x'", FUNC("f", f) TYPES("Tin", F) TYPES("Tout", F)) RET("y", "c:output:0")
#define BOOL(type) "attr { key: 'Tcond' value { type: " type " } }"
#define IF_IN(f)                                                                       \
  BODY("c", "If", "input: 'x' input: 'x'", BOOL("DT_FLOAT") TYPES("Tin", F) TYPES("Tout", F) \
       FUNC("then_branch", f) FUNC("else_branch", f)) RET("y", "c:output:0")
#define EVER FUNCTION("Ever", ARG("x", "DT_FLOAT") RESULT("y", "DT_BOOL"), \
                      BODY("c", "Const", "", FILLED("DT_BOOL", "bool_val: true")) RET("y", "c:output:0"))
#define WHILE_IN(f) \
  BODY("c", "While", "input: 'x'", TYPES("T", F) FUNC("cond", "Ever") FUNC("body", f)) RET("y", "c:output:0")

/* However small the thread's stack is, endless recursion of a function is an error, not a crash,
 * and a few nested calls work. */
static void threads__recursion_is_limited_by_the_stack(void) /* S-THR-10 */
{
  static const char text[] =
      LIBRARY(EVER UNARY("One", BODY("n", "Neg", "input: 'x'", T("DT_FLOAT"))
                                    RET("y", "n:y:0")) UNARY("Two", CALL_IN("StatefulPartitionedCall", "One"))
                  UNARY("Three", CALL_IN("PartitionedCall", "Two")) UNARY("Call", CALL_IN("PartitionedCall", "Call"))
                      UNARY("Stateful", CALL_IN("StatefulPartitionedCall", "Stateful")) UNARY("Branch", IF_IN("Branch"))
                          UNARY("Loop", WHILE_IN("Loop"))) IN("x", "DT_FLOAT")
          CALL("nested", "PartitionedCall", "Three", "x") CALL("call", "PartitionedCall", "Call", "x")
              CALL("stateful", "StatefulPartitionedCall", "Stateful", "x")
                  CALL("branch", "PartitionedCall", "Branch", "x") CALL("loop", "PartitionedCall", "Loop", "x");
  static const char *const endless[] = { "call", "stateful", "branch", "loop" };
  static const size_t sizes[] = { 128, 192, 256, 320, 448, 512, 1024, 8192 };
  FOR_BOTH(r) FOR_LEVELS(level)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      ts t;
      open_on(&t, runtimes[r], level, text);
      step s = { .t = &t, .fetch = "nested" };
      run_on_stack(&s, sizes[i] * STACK_UNIT);
      CHECK_MSG(s.status == TN_OK && s.value == -1, "%zu KiB: %s", sizes[i], tn_error_message(&t.err));
      for (int k = 0; k < 4; k++) {
        s.fetch = endless[k];
        run_on_stack(&s, sizes[i] * STACK_UNIT);
        CHECK_STATUS(s.status, TN_RESOURCE_EXHAUSTED, &t.err);
        CHECK_CONTAINS(tn_error_message(&t.err), "call depth");
        tn_error_clear(&t.err);
      }
      ts_fini(&t);
    }
}

#define NESTED 30000

static char *nested_functions(void)
{
  static const char calls[] =
      "attr { key: 'Tin' value { list { type: DT_FLOAT } } } attr { key: 'Tout' value { list { type: DT_FLOAT } } } "
      "attr { key: 'f' value { func { name: 'F%d' } } }";
  size_t room = (size_t)NESTED * 600, used = 0;
  char *text = malloc(room);
  REQUIRE(text != NULL);
  used += (size_t)snprintf(text, room, IN("x", "DT_FLOAT") CALL("nested", "PartitionedCall", "F0", "x") "library { ");
  for (int i = 0; i < NESTED; i++) {
    used += (size_t)snprintf(text + used, room - used,
                             "function { signature { name: 'F%d' input_arg { name: 'x' type: DT_FLOAT } "
                             "output_arg { name: 'y' type: DT_FLOAT } } ",
                             i);
    if (i + 1 < NESTED) {
      used += (size_t)snprintf(text + used, room - used, "node_def { name: 'c' op: 'PartitionedCall' input: 'n:y:0' ");
      used += (size_t)snprintf(text + used, room - used, calls, i + 1);
      used += (size_t)snprintf(text + used, room - used, " } ");
    }
    used += (size_t)snprintf(text + used, room - used,
                             BODY("n", "Neg", "input: 'x'", T("DT_FLOAT")) " ret { key: 'y' value: '%s' } } ",
                             i + 1 < NESTED ? "c:output:0" : "n:y:0");
  }
  snprintf(text + used, room - used, "}");
  return text;
}

/* The planner inlines bodies, which leaves far fewer calls; the work for each function is the
 * same at all levels. */
static void threads__functions_are_nested_30000_deep(void) /* S-THR-10 */
{
  char *text = nested_functions();
  FOR_LEVELS(level)
  {
    ts t;
    open_on(&t, "direct", level, text);
    step s = { .t = &t, .fetch = "nested" };
    run_on_stack(&s, 128 * STACK_UNIT);
    if (s.status == TN_OK) CHECK(s.value == 1); /* if frames are small */
    else CHECK_STATUS(s.status, TN_RESOURCE_EXHAUSTED, &t.err);
    if (s.status != TN_OK) CHECK_CONTAINS(tn_error_message(&t.err), "call depth");
    tn_error_clear(&t.err);
    ts_fini(&t);
    open_on(&t, "direct", level, text);
    s = (step){ .t = &t, .fetch = "nested" };
    run_on_stack(&s, 8192 * STACK_UNIT);
    if (level == 0) CHECK_STATUS(s.status, TN_RESOURCE_EXHAUSTED, &t.err);
    else CHECK_MSG(s.status == TN_OK && s.value == 1, "%s", tn_error_message(&t.err));
    tn_error_clear(&t.err);
    ts_fini(&t);
  }
  free(text);
}

/* ---- threads that are cancelled ---- */

#define QUEUE                                                                              \
  NODE("q", "FIFOQueueV2", "", TYPES("component_types", F))                                \
  NODE("get", "QueueDequeueV2", "input: 'q' input: '^begun'", TYPES("component_types", F)) \
  NODE("put", "QueueEnqueueV2", "input: 'q' input: 'x'", TYPES("Tcomponents", F))          \
  IN("x", "DT_FLOAT")                                                                      \
  NODE("begun", "TestCount", "input: 'x'", SLOT("1")) NODE("neg", "Neg", "input: 'x'", T("DT_FLOAT"))

/* pthread_cancel does not take effect inside a waiting step: the thread ends after the step, and
 * the session stays usable by other threads. */
static void threads__are_not_cancelled_in_a_waiting_step(void) /* S-THR-09 */
{
  FOR_BOTH(r)
  {
    ts t;
    pthread_t thread;
    void *result;
    ts_watch_reset();
    open_on(&t, runtimes[r], 1, QUEUE);
    ts other = t;
    step s = { .t = &other, .fetch = "get" };
    tn_error_init(&other.err);
    REQUIRE_INT(pthread_create(&thread, NULL, run_step, &s), 0);
    for (int64_t end = ts_now_ms() + 10000; atomic_load(&ts_watched.count[1]) == 0 && ts_now_ms() < end;)
      ts_sleep_ms(1);
    ts_sleep_ms(5); /* by now it is usually waiting */
    REQUIRE_INT(pthread_cancel(thread), 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 2 }), "neg"), -2, 0);
    CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
    pthread_join(thread, &result);
    CHECK(result == NULL || result == PTHREAD_CANCELED);
    CHECK(result == PTHREAD_CANCELED || s.status == TN_CANCELLED);
    tn_error_clear(&other.err);
    ts_fini(&t); /* waits for unfinished steps */
  }
}

static atomic_int at_sink, let_go;

static void slow_sink(void *user, int32_t level, const char *line)
{
  atomic_store(&at_sink, 1);
  while (atomic_load(&let_go) == 0) ts_sleep_ms(1); /* a cancellation point */
}

static void *log_a_line(void *arg)
{
  tn_log(TN_LOG_ERROR, "a line");
  return NULL;
}

/* The log's lock is released, too. */
static void threads__are_not_cancelled_while_they_log(void) /* S-THR-09 */
{
  pthread_t thread;
  tn_set_log_sink(slow_sink, NULL);
  REQUIRE_INT(pthread_create(&thread, NULL, log_a_line, NULL), 0);
  while (atomic_load(&at_sink) == 0) ts_sleep_ms(1);
  REQUIRE_INT(pthread_cancel(thread), 0);
  ts_sleep_ms(5);
  atomic_store(&let_go, 1);
  pthread_join(thread, NULL);
  tn_set_log_sink(NULL, NULL);
}

enum { FILE_BYTES = 1 << 20 };

static void *save_file(void *path)
{
  static char data[FILE_BYTES];
  CHECK_INT(tn_file_save(path, data, sizeof data, NULL), TN_OK);
  return NULL;
}

/* A file is written to its end. */
static void threads__are_not_cancelled_while_they_write(void) /* S-THR-09 */
{
  char path[100], part[4096];
  size_t got = 0;
  pthread_t thread;
  snprintf(path, sizeof path, "/tmp/tenon-fifo-%ld", (long)getpid());
  REQUIRE_INT(mkfifo(path, 0600), 0);
  int fd = open(path, O_RDONLY | O_NONBLOCK);
  REQUIRE_INT(fcntl(fd, F_SETFL, 0), 0);
  REQUIRE_INT(pthread_create(&thread, NULL, save_file, path), 0);
  for (ssize_t n = read(fd, part, 1); n <= 0; n = read(fd, part, 1)) ts_sleep_ms(1); /* until the writer is there */
  got = 1;
  ts_sleep_ms(5); /* by now it is usually waiting for the reader */
  REQUIRE_INT(pthread_cancel(thread), 0);
  for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) got += (size_t)n;
  pthread_join(thread, NULL);
  CHECK_INT(got, FILE_BYTES);
  close(fd);
  unlink(path);
}

TAP_MAIN(
  TAP_TEST(threads__recursion_is_limited_by_the_stack),
  TAP_TEST(threads__functions_are_nested_30000_deep),
  TAP_TEST(threads__are_not_cancelled_in_a_waiting_step),
  TAP_TEST(threads__are_not_cancelled_while_they_log),
  TAP_TEST(threads__are_not_cancelled_while_they_write))
