/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of nodes: requested devices, soft placement, the log, and queries. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tenon/runtime.h>

#include "conformance/support/graph_kit.h"
#include "conformance/support/session_kit.h"

#define CPU(n) "/job:localhost/replica:0/task:0/device:CPU:" #n

/* ---- a graph and its placement ---- */

static tn_output add(tn_graph *graph, const char *name, tn_output x, tn_output y, const char *device)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(graph, "AddV2", name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, y);
  tn_operation_set_device(b, device);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  tn_error_clear(&err);
  return (tn_output){ op, 0 };
}

/* Whether the runtime's sessions have devices other than CPUs. */
static bool has_other_devices(void)
{
  static int found = -1;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_device_info info = { .struct_size = sizeof info };
  if (found >= 0) return found;
  found = 0;
  if (tn_session_options_create(&options, NULL) == TN_OK &&
      tn_session_options_set_target(options, ts_runtime(), NULL) == TN_OK &&
      tn_session_create(options, &session, NULL) == TN_OK)
    for (size_t i = 0; tn_session_device(session, i, &info, NULL) == TN_OK; i++) found |= strcmp(info.type, "CPU") != 0;
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  return found;
}

/* in: a placeholder; good = in + in; bad = good + in on `device`; last = bad + in. Not yet opened.
 * The session has CPUs only; other devices are hidden. */
static void begin(ts *t, const char *device)
{
  ts_init(t, 1);
  if (has_other_devices())
    REQUIRE_OK(tn_session_options_parse(t->options, "device_filters", "/device:CPU:*", &t->err), &t->err);
  tn_output in = ts_placeholder(t->graph, "in", TN_FLOAT);
  tn_output good = add(t->graph, "good", in, in, ""), bad = add(t->graph, "bad", good, in, device);
  add(t->graph, "last", bad, in, "");
}

static void set(ts *t, const char *field, const char *text)
{
  REQUIRE_OK(tn_session_options_parse(t->options, field, text, &t->err), &t->err);
}

static tn_status start(ts *t)
{
  REQUIRE_OK(tn_session_create(t->options, &t->session, &t->err), &t->err);
  return tn_session_set_graph(t->session, t->graph, &t->err);
}

static const char *device_of(ts *t, const char *node)
{
  tn_placement p = { .struct_size = sizeof p };
  return tn_session_device_of(t->session, node, &p, &t->err) == TN_OK ? p.device : tn_error_message(&t->err);
}

/* ---- requested devices ---- */

/* S-CFG-02: device names that TensorFlow accepts and rejects, in a session with CPU:0 and CPU:1. */
static void placement__names_of_devices_may_be_partial(void)
{
  static const struct {
    const char *device, *wanted; /* NULL: rejected */
  } cases[] = {
    { "", CPU(0) },
    { "/", CPU(0) },
    { "/cpu:0", CPU(0) },
    { "/CPU:1", CPU(1) },
    { "/cpu:*", CPU(0) },
    { "/device:CPU:1", CPU(1) },
    { "/device:CPU", CPU(0) },
    { "/device:CPU:*", CPU(0) },
    { "/device:*:1", CPU(1) },
    { "/job:localhost", CPU(0) },
    { "/job:*/replica:*/task:*/device:*:*", CPU(0) },
    { "/task:0/cpu:1", CPU(1) },
    { "/device:CPU:1/task:0/replica:0/job:localhost", CPU(1) },
    { "/job:worker/job:localhost", CPU(0) },
    { CPU(1), CPU(1) },
    { "/device:CPU:2", NULL },
    { "/device:cpu:0", NULL }, /* the long form is exact */
    { "/gpu:0", NULL },
    { "/device:GPU:*", NULL },
    { "/job:worker", NULL },
    { "/job:LOCALHOST", NULL },
    { "/replica:1", NULL },
    { "/task:1/cpu:0", NULL },
    { "/job:localhost/job:worker", NULL },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ts t;
    begin(&t, cases[i].device);
    set(&t, "device_count", "CPU=2");
    tn_status st = start(&t);
    if (cases[i].wanted == NULL) {
      CHECK_MSG(st == TN_INVALID_ARGUMENT, "'%s' gives %s", cases[i].device, tn_status_name(st));
    } else {
      CHECK_OK(st, &t.err);
      CHECK_STR(device_of(&t, "bad"), cases[i].wanted);
      CHECK_STR(device_of(&t, "good"), CPU(0));
      CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "last"), 8, 0);
    }
    ts_fini(&t);
  }
}

/* S-CFG-02, S-CFG-04: the message names the node, the requested device and the session's devices;
 * the session has no graph afterwards. */
static void placement__an_absent_device_fails_create(void)
{
  ts t;
  begin(&t, "/device:GPU:0");
  CHECK_STATUS(start(&t), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(tn_error_message(&t.err), "node 'bad' asks for device '/device:GPU:0': the session has no device "
                                      "'/device:GPU:0'; it has " CPU(0));
  CHECK_STR(tn_error_node(&t.err), "bad");
  CHECK_NULL(tn_session_graph(t.session));
  ts_run1(&t, FEEDS({ "in", 2 }), "good");
  CHECK_CONTAINS(tn_error_message(&t.err), "has no graph");
  tn_graph *other = NULL;
  REQUIRE_OK(tn_graph_create(&other, &t.err), &t.err);
  tn_output in = ts_placeholder(other, "in", TN_FLOAT);
  add(other, "good", in, in, "/cpu:0");
  CHECK_OK(tn_session_set_graph(t.session, other, &t.err), &t.err);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "good"), 4, 0);
  CHECK_STR(device_of(&t, "good"), CPU(0));
  tn_graph_unref(other);
  ts_fini(&t);
}

/* S-CFG-04: a node of an unregistered op is not placed. */
static void placement__unregistered_ops_are_not_placed(void)
{
  ts t;
  ts_init(&t, 1);
  gk_bytes def = { 0 }, node = { 0 };
  gk_node(&node, "strange", "NoOpOfThisName", "");
  gk_text(&node, 4, "/device:GPU:0");
  gk_add_node(&def, &node);
  gk_node(&node, "nothing", "NoOp", "");
  gk_text(&node, 4, "/device:CPU:0");
  gk_add_node(&def, &node);
  REQUIRE_OK(tn_graph_import(t.graph, def.data, def.size, NULL, &t.err), &t.err);
  CHECK_OK(start(&t), &t.err);
  CHECK_STR(device_of(&t, "nothing"), CPU(0));
  CHECK_CONTAINS(device_of(&t, "strange"), "not registered");
  CHECK_INT(tn_error_code(&t.err), TN_FAILED_PRECONDITION);
  gk_bytes_free(&def);
  ts_fini(&t);
}

/* S-CFG-03 */
static void placement__soft_placement_runs_it_on_the_cpu_and_says_why(void)
{
  ts t;
  tn_placement p = { .struct_size = sizeof p };
  begin(&t, "/device:GPU:0");
  set(&t, "allow_soft_placement", "1");
  CHECK_OK(start(&t), &t.err);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "last"), 8, 0);
  CHECK_OK(tn_session_device_of(t.session, "bad", &p, &t.err), &t.err);
  CHECK_STR(p.device, CPU(0));
  CHECK_STR(p.asked, "/device:GPU:0");
  CHECK_STR(p.reason, "the session has no device '/device:GPU:0'");
  const char *reason = p.reason;
  CHECK_OK(tn_session_device_of(t.session, "bad", &p, &t.err), &t.err);
  CHECK(p.reason == reason); /* the text is made once and kept by the session */
  CHECK_OK(tn_session_device_of(t.session, "good", &p, &t.err), &t.err);
  CHECK_STR(p.asked, "");
  CHECK_STR(p.reason, "");
  ts_fini(&t);
  begin(&t, "/job:worker/cpu:0"); /* it can only mean this process, as in TensorFlow */
  set(&t, "allow_soft_placement", "1");
  CHECK_STATUS(start(&t), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "of another job, replica or task");
  ts_fini(&t);
}

/* S-CFG-06: such a node is rejected by the graph, and so by every session; soft placement does not
 * help. */
static void placement__malformed_devices_are_refused(void)
{
  static const char *const cases[] = { "cpu:0",          "/cpu",           "//",
                                       "/device:",       "/device:CPU:",   "/device:CPU:-1",
                                       "/device:3CPU:0", "/task:x",        "/job:",
                                       "/job:1a",        "/job:a-b",       "/cpu:0 ",
                                       " /cpu:0",        "/device:CPU:0/", "/job:localhost//task:0",
                                       "/Device:CPU:0" };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ts t;
    begin(&t, "");
    set(&t, "allow_soft_placement", "1");
    CHECK_OK(start(&t), &t.err);
    gk_bytes def = { 0 }, node = { 0 };
    gk_node(&node, "n", "NoOp", "");
    gk_text(&node, 4, cases[i]);
    gk_add_node(&def, &node);
    CHECK_MSG(tn_session_extend(t.session, def.data, def.size, &t.err) == TN_INVALID_ARGUMENT, "'%s' is taken",
              cases[i]);
    CHECK_CONTAINS(tn_error_message(&t.err), "malformed device");
    gk_bytes_free(&def);
    ts_fini(&t);
  }
}

/* S-CFG-05 */
static void placement__a_pruned_graph_is_placed_call_by_call(void)
{
  ts t;
  begin(&t, "/device:GPU:0");
  set(&t, "place_pruned_graph", "1");
  CHECK_OK(start(&t), &t.err);
  CHECK_CONTAINS(device_of(&t, "good"), "has not been placed");
  CHECK_INT(tn_error_code(&t.err), TN_FAILED_PRECONDITION);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "good"), 4, 0);
  CHECK_STR(device_of(&t, "good"), CPU(0));
  ts_run1(&t, FEEDS({ "in", 2 }), "last");
  CHECK_INT(tn_error_code(&t.err), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "node 'bad' asks for device '/device:GPU:0'");
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }, { "bad", 5 }), "last"), 7, 0); /* it is fed, so it is not needed */
  CHECK_STR(device_of(&t, "last"), CPU(0));
  CHECK_CONTAINS(device_of(&t, "bad"), "has not been placed");
  ts_fini(&t);
}

/* ---- graphs that grow ---- */

static void one_more(gk_bytes *def, const char *name, const char *device)
{
  gk_bytes node = { 0 };
  gk_node(&node, name, "AddV2", "good good");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_text(&node, 4, device);
  gk_add_node(def, &node);
}

/* S-CFG-04: an extension with a misplaced node is rejected as a whole. */
static void placement__an_extension_is_placed_or_refused_as_a_whole(void)
{
  ts t;
  begin(&t, "");
  CHECK_OK(start(&t), &t.err);
  gk_bytes def = { 0 };
  one_more(&def, "fine", "/cpu:0");
  one_more(&def, "other", "/gpu:1");
  CHECK_STATUS(tn_session_extend(t.session, def.data, def.size, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(tn_error_node(&t.err), "other");
  CHECK_NULL(tn_graph_find(t.graph, "fine"));
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "last"), 8, 0);
  gk_bytes_free(&def);
  one_more(&def, "fine", "/cpu:0");
  CHECK_OK(tn_session_extend(t.session, def.data, def.size, &t.err), &t.err);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "fine"), 8, 0);
  gk_bytes_free(&def);
  ts_fini(&t);
}

/* Nodes added with the builder are placed when the next signature is compiled; compiled signatures
 * remain usable. */
static void placement__nodes_added_later_are_placed_with_the_next_signature(void)
{
  ts t;
  begin(&t, "");
  CHECK_OK(start(&t), &t.err);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "last"), 8, 0);
  tn_output in = { tn_graph_find(t.graph, "in"), 0 };
  add(t.graph, "late", in, in, "/gpu:0");
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), "last"), 12, 0);
  ts_run1(&t, FEEDS({ "in", 2 }), "good");
  CHECK_INT(tn_error_code(&t.err), TN_INVALID_ARGUMENT);
  CHECK_STR(tn_error_node(&t.err), "late");
  CHECK_CONTAINS(device_of(&t, "in"), "node 'late'");
  ts_fini(&t);
}

/* ---- the log ---- */

static char logged[4000];
static int n_logged;

static void take_line(void *user, const char *line)
{
  size_t used = strlen(logged);
  (void)user;
  snprintf(logged + used, sizeof logged - used, "%s\n", line);
  n_logged++;
}

static void log_begin(void)
{
  logged[0] = 0;
  n_logged = 0;
  tn_set_placement_sink(take_line, NULL);
}

/* S-CFG-07, S-CFG-08, S-CFG-09 */
static void placement__each_node_is_logged_once(void)
{
  ts t;
  log_begin();
  begin(&t, "/cpu:1");
  set(&t, "device_count", "CPU=2");
  set(&t, "log_device_placement", "1");
  CHECK_OK(start(&t), &t.err);
  CHECK_STR(logged, "in: (Placeholder): " CPU(0) "\n"
                    "good: (AddV2): " CPU(0) "\n"
                    "bad: (AddV2): " CPU(1) "\n"
                    "last: (AddV2): " CPU(0) "\n");
  ts_run1(&t, FEEDS({ "in", 2 }), "last");
  ts_run1(&t, FEEDS({ "in", 2 }), "last");
  ts_run1(&t, FEEDS({ "in", 2 }), "good");
  CHECK_INT(n_logged, 4);
  gk_bytes def = { 0 };
  one_more(&def, "more", "");
  CHECK_OK(tn_session_extend(t.session, def.data, def.size, &t.err), &t.err);
  CHECK_INT(n_logged, 5);
  CHECK_CONTAINS(logged, "more: (AddV2): " CPU(0) "\n");
  gk_bytes_free(&def);
  ts_fini(&t);
  begin(&t, "");
  CHECK_OK(start(&t), &t.err); /* not requested */
  ts_run1(&t, FEEDS({ "in", 2 }), "last");
  CHECK_INT(n_logged, 5);
  ts_fini(&t);
  tn_set_placement_sink(NULL, NULL);
}

static void placement__a_pruned_graph_is_logged_as_it_is_placed(void)
{
  ts t;
  log_begin();
  begin(&t, "");
  set(&t, "place_pruned_graph", "1");
  set(&t, "log_device_placement", "1");
  CHECK_OK(start(&t), &t.err);
  CHECK_STR(logged, "");
  ts_run1(&t, FEEDS({ "in", 2 }), "good");
  CHECK_INT(n_logged, 1); /* a fed node is not needed */
  ts_run1(&t, FEEDS({ "in", 2 }), "last");
  CHECK_INT(n_logged, 3);
  ts_run1(&t, FEEDS({ "in", 2 }), "bad");
  CHECK_INT(n_logged, 3);
  ts_fini(&t);
  log_begin();
  begin(&t, "/gpu:0");
  set(&t, "log_device_placement", "1");
  CHECK_STATUS(start(&t), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(logged, ""); /* nothing was placed */
  ts_fini(&t);
  tn_set_placement_sink(NULL, NULL);
}

/* ---- queries ---- */

/* S-CFG-09, S-CFG-20 */
static void placement__device_of_reports_errors(void)
{
  ts t;
  tn_placement p = { .struct_size = sizeof p };
  begin(&t, "");
  set(&t, "device_count", "CPU=3");
  set(&t, "device_filters", "/cpu:1,/cpu:2");
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_STATUS(tn_session_device_of(t.session, "in", &p, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "has no graph");
  CHECK_OK(tn_session_set_graph(t.session, t.graph, &t.err), &t.err);
  CHECK_STR(device_of(&t, "in"), CPU(1)); /* the first device that the session sees */
  CHECK_STATUS(tn_session_device_of(t.session, "absent", &p, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_STATUS(tn_session_device_of(t.session, NULL, &p, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_device_of(NULL, "in", &p, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_device_of(t.session, "in", NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  struct {
    size_t struct_size;
    const char *device;
  } shorter = { sizeof shorter, NULL }; /* from a program with an older header */
  CHECK_OK(tn_session_device_of(t.session, "in", (tn_placement *)&shorter, &t.err), &t.err);
  CHECK_STR(shorter.device, CPU(1));
  CHECK_INT(shorter.struct_size, sizeof shorter);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  CHECK_STR(device_of(&t, "in"), CPU(1));
  ts_fini(&t);
}

/* ---- a runtime with a device of another type ---- */

struct tn_runtime_session {
  char unused;
};
static tn_runtime_session the_session;

static tn_status acme_new(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                          tn_error *err)
{
  (void)self, (void)options, (void)err;
  *out = &the_session;
  return TN_OK;
}
static tn_bool acme_accepts(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return strcmp(tn_session_options_runtime(options), "test.acme") == 0;
}
static void acme_destroy(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }
static tn_status acme_list(const tn_session_factory *self, tn_runtime_session *session, size_t i, tn_device_info *out,
                           tn_error *err)
{
  (void)self, (void)session, (void)err;
  if (i > 1) return TN_OUT_OF_RANGE;
  out->name = i == 0 ? CPU(0) : "/job:localhost/replica:0/task:0/device:ACME:0";
  out->type = i == 0 ? "CPU" : "ACME";
  out->memory_bytes = i == 0 ? 0 : 64;
  out->model = i == 0 ? NULL : "Acme 9";
  return TN_OK;
}

static const tn_session_factory acme = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "test.acme",
  .new_session = acme_new,
  .accepts_options = acme_accepts,
  .destroy_session = acme_destroy,
  .list_devices = acme_list,
};

/* S-CFG-02, S-CFG-03: the device exists, but the op has no kernel for it. */
static void placement__a_device_without_a_kernel_is_refused(void)
{
  ts t;
  tn_placement p = { .struct_size = sizeof p };
  tn_device_info info = { .struct_size = sizeof info };
  REQUIRE_OK(tn_runtime_register("test.acme", &acme, NULL), NULL);
  begin(&t, "/device:ACME:0");
  set(&t, "device_filters", "");
  REQUIRE_OK(tn_session_options_set_target(t.options, "test.acme", &t.err), &t.err);
  CHECK_STATUS(start(&t), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(tn_error_message(&t.err),
            "node 'bad' asks for device '/device:ACME:0': op 'AddV2' has no kernel for device "
            "'/device:ACME:0'; it has " CPU(0) ", /job:localhost/replica:0/task:0/device:ACME:0");
  tn_session_destroy(t.session);
  set(&t, "allow_soft_placement", "1");
  CHECK_OK(start(&t), &t.err);
  CHECK_OK(tn_session_device_of(t.session, "bad", &p, &t.err), &t.err);
  CHECK_STR(p.device, CPU(0));
  CHECK_STR(p.reason, "op 'AddV2' has no kernel for device '/device:ACME:0'");
  CHECK_OK(tn_session_device(t.session, 1, &info, &t.err), &t.err);
  CHECK_INT(info.memory_bytes, 64);
  tn_session_destroy(t.session);
  set(&t, "device_filters", "/device:*:0"); /* the filtered list belongs to the session */
  CHECK_OK(start(&t), &t.err);
  CHECK_OK(tn_session_device(t.session, 1, &info, &t.err), &t.err);
  CHECK_STR(info.model, "Acme 9");
  CHECK_OK(tn_session_device(t.session, 0, &info, &t.err), &t.err);
  CHECK_NULL(info.model);
  tn_session_destroy(t.session);
  t.session = NULL;
  set(&t, "allow_soft_placement", "0");
  set(&t, "device_filters", "/device:CPU:*"); /* S-CFG-19 */
  CHECK_STATUS(start(&t), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the session has no device '/device:ACME:0'; it has " CPU(0));
  CHECK_STATUS(tn_session_device(t.session, 1, &info, &t.err), TN_OUT_OF_RANGE, &t.err);
  tn_session_destroy(t.session);
  t.session = NULL;
  set(&t, "device_filters", "/device:ACME:*");
  CHECK_STATUS(tn_session_create(t.options, &t.session, &t.err), TN_NOT_FOUND, &t.err);
  ts_fini(&t);
  CHECK_OK(tn_runtime_unregister("test.acme", NULL), NULL);
}

#define ACME "/job:localhost/replica:0/task:0/device:ACME:0"
static const char *acme_says; /* for each node */

static const char *acme_node(const tn_session_factory *self, tn_runtime_session *session, const tn_operation *op,
                             const char **reason)
{
  (void)self, (void)session;
  if (strcmp(tn_operation_name(op), "good") != 0) return NULL;
  *reason = "it is large";
  return acme_says;
}

/* S-CFG-09: a runtime that chooses devices itself reports the device and the reason; a requested
 * device takes precedence. */
static void placement__the_runtime_says_where_nodes_run(void)
{
  static tn_session_factory chooses;
  tn_placement p = { .struct_size = sizeof p };
  static const struct {
    const char *says, *wanted, *filter;
  } cases[] = {
    { ACME, ACME, "" }, { NULL, CPU(0), "" }, { "/device:GPU:7", CPU(0), "" }, { ACME, CPU(0), "/device:CPU:*" }
  };
  chooses = acme;
  chooses.node_device = acme_node;
  REQUIRE_OK(tn_runtime_register("test.acme", &chooses, NULL), NULL);
  for (int named = 0; named < 2; named++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      ts t;
      begin(&t, named ? "/cpu:0" : ""); /* a graph that names devices is placed; another one is not walked */
      REQUIRE_OK(tn_session_options_set_target(t.options, "test.acme", &t.err), &t.err);
      set(&t, "device_filters", cases[i].filter);
      acme_says = cases[i].says;
      CHECK_OK(start(&t), &t.err);
      CHECK_OK(tn_session_device_of(t.session, "good", &p, &t.err), &t.err);
      CHECK_STR(p.device, cases[i].wanted);
      CHECK_STR(p.reason, "it is large");
      CHECK_STR(device_of(&t, "bad"), CPU(0));
      ts_fini(&t);
    }
  CHECK_OK(tn_runtime_unregister("test.acme", NULL), NULL);
}

/* ---- threads and memory ---- */

enum { ASKERS = 4, NODES = 200 };

static void *ask(void *arg)
{
  ts *t = arg;
  char name[20];
  for (int i = 0; i < NODES; i++) {
    tn_placement p = { .struct_size = sizeof p };
    snprintf(name, sizeof name, "n%d", i);
    tn_error err = TN_ERROR_INIT;
    CHECK_OK(tn_session_device_of(t->session, name, &p, &err), &err);
    CHECK_CONTAINS(p.reason, "no device");
    tn_error_clear(&err);
  }
  return NULL;
}

static void placement__reasons_can_be_queried_by_many_threads(void)
{
  ts t;
  pthread_t threads[ASKERS];
  char name[20];
  begin(&t, "");
  tn_output in = { tn_graph_find(t.graph, "in"), 0 };
  for (int i = 0; i < NODES; i++) {
    snprintf(name, sizeof name, "n%d", i);
    add(t.graph, name, in, in, i % 2 != 0 ? "/gpu:0" : "/device:TPU:7");
  }
  set(&t, "allow_soft_placement", "1");
  CHECK_OK(start(&t), &t.err);
  for (int i = 0; i < ASKERS; i++) REQUIRE(pthread_create(&threads[i], NULL, ask, &t) == 0);
  for (int i = 0; i < ASKERS; i++) pthread_join(threads[i], NULL);
  ts_fini(&t);
}

static ts swept;

static tn_status place_all(void *arg)
{
  tn_session *session = NULL;
  tn_placement p = { .struct_size = sizeof p };
  (void)arg;
  tn_status st = tn_session_create(swept.options, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, swept.graph, NULL);
  if (st == TN_OK) st = tn_session_device_of(session, "bad", &p, NULL);
  tn_session_destroy(session);
  return st;
}

static void placement__survives_lack_of_memory(void)
{
  begin(&swept, "/gpu:0");
  set(&swept, "allow_soft_placement", "1");
  set(&swept, "device_count", "CPU=2");
  tn_test_oom_sweep(place_all, NULL);
  ts_fini(&swept);
}

TAP_MAIN(TAP_TEST(placement__names_of_devices_may_be_partial), TAP_TEST(placement__an_absent_device_fails_create),
         TAP_TEST(placement__unregistered_ops_are_not_placed),
         TAP_TEST(placement__soft_placement_runs_it_on_the_cpu_and_says_why),
         TAP_TEST(placement__malformed_devices_are_refused), TAP_TEST(placement__a_pruned_graph_is_placed_call_by_call),
         TAP_TEST(placement__an_extension_is_placed_or_refused_as_a_whole),
         TAP_TEST(placement__nodes_added_later_are_placed_with_the_next_signature),
         TAP_TEST(placement__each_node_is_logged_once), TAP_TEST(placement__a_pruned_graph_is_logged_as_it_is_placed),
         TAP_TEST(placement__device_of_reports_errors), TAP_TEST(placement__a_device_without_a_kernel_is_refused),
         TAP_TEST(placement__the_runtime_says_where_nodes_run),
         TAP_TEST(placement__reasons_can_be_queried_by_many_threads), TAP_TEST(placement__survives_lack_of_memory))
