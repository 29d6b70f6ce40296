/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of Run: records of the executed nodes, the executed graphs, their serialised form.
 * Collecting it never makes a step fail. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tenon/metadata.h>

#include "conformance/support/calls_kit.h"

/* ---- a run and its metadata ---- */

static tn_run_metadata *new_metadata(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_run_metadata *m = NULL;
  REQUIRE_OK(tn_run_metadata_create(&m, &err), &err);
  return m;
}

static tn_metadata_summary summary_of(const tn_run_metadata *m)
{
  tn_metadata_summary s = { .struct_size = sizeof s };
  tn_error err = TN_ERROR_INIT;
  CHECK_OK(tn_run_metadata_summary(m, &s, &err), &err);
  return s;
}

static tn_node_record record_at(const tn_run_metadata *m, size_t i)
{
  tn_node_record r = { .struct_size = sizeof r };
  tn_error err = TN_ERROR_INIT;
  CHECK_OK(tn_run_metadata_record(m, i, &r, &err), &err);
  return r;
}

/* Number of records of a node. */
static int count_of(const tn_run_metadata *m, const char *node)
{
  int n = 0;
  for (size_t i = 0; i < summary_of(m).records; i++) n += strcmp(record_at(m, i).node, node) == 0;
  return n;
}

static tn_node_record record_of(const tn_run_metadata *m, const char *node)
{
  for (size_t i = 0; i < summary_of(m).records; i++)
    if (strcmp(record_at(m, i).node, node) == 0) return record_at(m, i);
  FAIL("node '%s' is not in the trace", node);
  return (tn_node_record){ .node = "", .op = "", .kernel = "", .label = "", .device = "" };
}

static bool is_empty(const tn_run_metadata *m)
{
  void *bytes;
  size_t size;
  tn_metadata_summary s = summary_of(m);
  CHECK_INT(tn_run_metadata_serialize(m, &bytes, &size, NULL), TN_OK);
  tn_free(bytes);
  return size == 0 && s.records == 0 && s.devices == 0 && s.partition_graphs == 0 && !s.traced && !s.cut;
}

/* Feeds scalar x, fetches a scalar. */
static tn_status run_x(ts *t, float x, const char *fetch, int32_t level, bool graphs, tn_run_metadata *m, float *value)
{
  const char *feed = "x";
  tn_tensor *in = ts_scalar(x), *out = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.trace_level = level;
  options.output_partition_graphs = graphs;
  tn_status st = tn_session_run(t->session, &options, &feed, &in, 1, &fetch, &out, 1, NULL, 0, m, &t->err);
  if (value != NULL) *value = ts_float(out);
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  return st;
}

#define X NODE("x", "Placeholder", "", "attr { key: 'dtype' value { type: DT_FLOAT } }")
#define SIMPLE                                                                                          \
  X NODE("one", "Const", "", FLOAT_OF("1")) NODE("sum", "AddV2", "input: 'x' input: 'one'", T("DT_FLOAT")) \
  NODE("root", "Sqrt", "input: 'sum'", T("DT_FLOAT")) NODE("other", "Neg", "input: 'x'", T("DT_FLOAT"))

/* ---- what is recorded ---- */

static void metadata__has_each_node_that_ran_and_no_other(void) /* S-MD-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_run_metadata *m = new_metadata();
    ck_open(&t, level, SIMPLE);
    for (int32_t trace = 1; trace <= 3; trace++) { /* S-RO-11 */
      float value;
      REQUIRE_OK(run_x(&t, 8, "root", trace, false, m, &value), &t.err);
      CHECK_DOUBLE(value, 3, 1e-6);
      tn_metadata_summary s = summary_of(m);
      CHECK(s.traced && !s.cut);
      CHECK_INT(s.devices, 1);
      CHECK(s.threads >= 1 && s.threads <= 2); /* a runtime may use threads of its own */
      CHECK_INT(s.partition_graphs, 0);
      CHECK_STR(tn_run_metadata_device(m, 0), "/job:localhost/replica:0/task:0/device:CPU:0");
      CHECK_NULL(tn_run_metadata_device(m, 1));
      CHECK_INT(count_of(m, "root"), 1);
      CHECK_INT(count_of(m, "other"), 0);
      CHECK(count_of(m, "x") == 0 || record_of(m, "x").kind == TN_RECORD_EMPTY); /* S-MD-03: a fed node does no work */
      tn_node_record r = record_of(m, "root");
      CHECK_STR(r.device, tn_run_metadata_device(m, 0));
      CHECK(r.thread == 0 || r.thread >= 65536);
      CHECK_INT(r.n_outputs, 1);
      CHECK_INT(r.output_bytes, 4);
      CHECK_INT(r.kind, TN_RECORD_NODE);
      CHECK(r.kernel[0] != 0);
      CHECK(r.start_ns >= 0 && r.duration_ns >= 0 && r.start_ns + r.duration_ns <= s.duration_ns);
      if (level == 0) {
        CHECK_INT(count_of(m, "sum"), 1);
        CHECK_STR(r.op, "Sqrt");
        CHECK_STR(r.label, "root = Sqrt(sum)");
        CHECK_STR(record_of(m, "sum").label, "sum = AddV2(x, one)");
      }
    }
    ts_fini(&t);
    CHECK_STR(record_of(m, "root").node, "root"); /* the metadata does not need the session */
    tn_run_metadata_destroy(m);
  }
}

static void metadata__shows_shapes(void)
{
  ts t;
  const char *feed = "x", *fetch = "p";
  const int64_t dims[] = { 3, 2 };
  tn_tensor *x = ts_filled(2, dims, 1), *out = NULL;
  tn_run_metadata *m = new_metadata();
  tn_run_options options;
  ck_open(&t, 0, X NODE("p", "Softmax", "input: 'x'", T("DT_FLOAT")));
  tn_run_options_init(&options);
  options.trace_level = 3;
  REQUIRE_OK(tn_session_run(t.session, &options, &feed, &x, 1, &fetch, &out, 1, NULL, 0, m, &t.err), &t.err);
  tn_output_record o = { .struct_size = sizeof o };
  REQUIRE_INT(summary_of(m).records, 1);
  REQUIRE_OK(tn_run_metadata_output(m, 0, 0, &o, &t.err), &t.err);
  CHECK_INT(o.dtype, TN_FLOAT);
  REQUIRE_INT(o.rank, 2);
  CHECK_INT(o.dims[0], 3);
  CHECK_INT(o.dims[1], 2);
  CHECK_INT(o.bytes, 24);
  CHECK_STATUS(tn_run_metadata_output(m, 0, 1, &o, &t.err), TN_OUT_OF_RANGE, &t.err);
  CHECK_STATUS(tn_run_metadata_output(m, 1, 0, &o, &t.err), TN_OUT_OF_RANGE, &t.err);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

static void metadata__states_what_nodes_cost(void) /* S-MD-07 */
{
  ts t;
  const char *feeds[] = { "x", "y" }, *fetch = "p";
  const int64_t x_dims[] = { 3, 4 }, y_dims[] = { 4, 5 };
  tn_tensor *values[] = { ts_filled(2, x_dims, 1), ts_filled(2, y_dims, 1) }, *out = NULL;
  tn_run_metadata *m = new_metadata();
  tn_run_options options;
  ck_open(&t, 0,
          X NODE("y", "Placeholder", "", "attr { key: 'dtype' value { type: DT_FLOAT } }")
              NODE("neg", "Neg", "input: 'x'", T("DT_FLOAT")) NODE("same", "Identity", "input: 'neg'", T("DT_FLOAT"))
                  NODE("p", "MatMul", "input: 'same' input: 'y'", T("DT_FLOAT")));
  tn_run_options_init(&options);
  options.trace_level = 3;
  for (int i = 0; i < 2; i++) {
    REQUIRE_OK(tn_session_run(t.session, &options, feeds, values, 2, &fetch, &out, 1, NULL, 0, m, &t.err), &t.err);
    tn_tensor_unref(out);
    CHECK_DOUBLE(record_of(m, "p").flops, 2 * 3 * 4 * 5, 0);
    CHECK_INT(record_of(m, "p").moved_bytes, 4 * (12 + 20 + 15));
    CHECK_DOUBLE(record_of(m, "neg").flops, 12, 0);
    CHECK_INT(record_of(m, "neg").moved_bytes, 4 * (12 + 12));
    CHECK_INT(record_of(m, "same").moved_bytes, 0);
  }
  tn_tensor_unref(values[0]);
  tn_tensor_unref(values[1]);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

static void metadata__names_nodes_that_have_nothing_to_compute(void) /* S-MD-02 */
{
  ts t;
  tn_run_metadata *m = new_metadata();
  ck_open(&t, 0,
          X NODE("same", "Identity", "input: 'x'", T("DT_FLOAT")) NODE("neg", "Neg", "input: 'same'", T("DT_FLOAT"))
              NODE("last", "Identity", "input: 'neg'", T("DT_FLOAT")));
  REQUIRE_OK(run_x(&t, 8, "last", 1, false, m, NULL), &t.err);
  CHECK_INT(summary_of(m).records, 3);
  CHECK_INT(record_of(m, "same").kind, TN_RECORD_EMPTY);
  CHECK_INT(record_of(m, "same").duration_ns, 0);
  CHECK_INT(record_of(m, "neg").kind, TN_RECORD_NODE);
  CHECK_INT(record_of(m, "last").kind, TN_RECORD_EMPTY);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

static void metadata__stays_empty_without_a_request(void) /* S-MD-01, S-MD-06, S-RO-12 */
{
  ts t;
  tn_run_metadata *m = new_metadata();
  ck_open(&t, 1, SIMPLE);
  CHECK(is_empty(m));
  REQUIRE_OK(run_x(&t, 8, "root", 0, false, m, NULL), &t.err);
  CHECK(is_empty(m));
  REQUIRE_OK(run_x(&t, 8, "root", 3, false, NULL, NULL), &t.err); /* the trace is discarded */
  REQUIRE_OK(run_x(&t, 8, "root", 3, true, m, NULL), &t.err);
  CHECK(!is_empty(m));
  REQUIRE_OK(run_x(&t, 8, "root", 0, false, m, NULL), &t.err); /* the previous contents are cleared */
  CHECK(is_empty(m));
  tn_run_metadata_destroy(m);
  tn_run_metadata_destroy(NULL);
  ts_fini(&t);
}

static void metadata__is_unchanged_by_a_refused_call(void) /* S-MD-04 */
{
  ts t;
  tn_run_metadata *m = new_metadata();
  ck_open(&t, 1, SIMPLE);
  REQUIRE_OK(run_x(&t, 8, "root", 3, false, m, NULL), &t.err);
  uint64_t step = summary_of(m).step_id, n = summary_of(m).records;
  CHECK(n > 0);
  CHECK_STATUS(run_x(&t, 8, "absent", 3, false, m, NULL), TN_NOT_FOUND, &t.err);
  CHECK_STATUS(run_x(&t, 8, "root", 4, false, m, NULL), TN_INVALID_ARGUMENT, &t.err);
  CHECK_INT(summary_of(m).records, n);
  CHECK_INT(summary_of(m).step_id, step);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

static void metadata__of_a_step_that_fails_has_what_ran(void) /* S-MD-04 */
{
  ts t;
  tn_run_metadata *m = new_metadata();
  ck_open(&t, 0, X NODE("neg", "Neg", "input: 'x'", T("DT_FLOAT"))
                     NODE("bad", "TestFail", "input: 'neg'", T("DT_FLOAT") " attr { key: 'slot' value { i: 9 } }")
                     NODE("never", "Neg", "input: 'bad'", T("DT_FLOAT")));
  CHECK_STATUS(run_x(&t, 8, "never", 3, false, m, NULL), TN_FAILED_PRECONDITION, &t.err);
  CHECK_INT(count_of(m, "neg"), 1);
  CHECK_INT(record_of(m, "bad").status, TN_FAILED_PRECONDITION);
  CHECK_INT(record_of(m, "bad").n_outputs, 0);
  CHECK_INT(count_of(m, "never"), 0);
  void *bytes;
  size_t size;
  CHECK_OK(tn_run_metadata_serialize(m, &bytes, &size, &t.err), &t.err);
  tn_free(bytes);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

static void metadata__comes_from_callables_too(void)
{
  ts t;
  const char *feed = "x", *fetch = "root";
  tn_callable c;
  tn_run_options options;
  tn_run_metadata *m = new_metadata();
  tn_tensor *x = ts_scalar(8), *out = NULL;
  ck_open(&t, 0, SIMPLE);
  tn_run_options_init(&options);
  options.trace_level = 3;
  REQUIRE_OK(tn_session_make_callable(t.session, &options, &feed, 1, &fetch, 1, NULL, 0, &c, &t.err), &t.err);
  for (int i = 0; i < 3; i++) {
    REQUIRE_OK(tn_session_run_callable(t.session, c, &x, 1, &out, 1, m, &t.err), &t.err);
    tn_tensor_unref(out);
    out = NULL;
    CHECK_INT(summary_of(m).records, 2);
  }
  tn_tensor_unref(x);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

/* ---- control flow ---- */

static void metadata__has_the_branch_that_was_taken(void) /* S-MD-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_run_metadata *m = new_metadata();
    ck_open(&t, level,
            X NODE("zero", "Const", "", FLOAT_OF("0")) NODE("p", "Greater", "input: 'x' input: 'zero'", T("DT_FLOAT"))
                NODE("s", "Switch", "input: 'x' input: 'p'", T("DT_FLOAT"))
                    NODE("a", "Neg", "input: 's'", T("DT_FLOAT")) NODE("b", "Sqrt", "input: 's:1'", T("DT_FLOAT"))
                        NODE("m", "Merge", "input: 'a' input: 'b'", T("DT_FLOAT") " attr { key: 'N' value { i: 2 } }"));
    REQUIRE_OK(run_x(&t, 9, "m", 3, false, m, NULL), &t.err);
    CHECK_INT(count_of(m, "b"), 1);
    CHECK_INT(count_of(m, "a"), 0);
    CHECK_INT(count_of(m, "m"), 1);
    REQUIRE_OK(run_x(&t, -9, "m", 3, false, m, NULL), &t.err);
    CHECK_INT(count_of(m, "b"), 0);
    CHECK_INT(count_of(m, "a"), 1);
    tn_run_metadata_destroy(m);
    ts_fini(&t);
  }
}

#define CALLS                                                                                           \
  LIBRARY(TWICE BELOW("") FUNCTION("Next", COUNTED("") RESULT("j", "DT_INT32") RESULT("m", "DT_INT32"), \
                                   NEXT RET("j", "next:z:0") RET("m", "n")))                            \
  X CALL("call", "StatefulPartitionedCall", "Twice", "x") NODE("bound", "Const", "", INT_OF("5"))       \
      NODE("zero", "Const", "", INT_OF("0")) NODE("w", "While", "input: 'zero' input: 'bound'",         \
                                                  TYPES("T", I I) FUNC("cond", "Below") FUNC("body", "Next"))

static void metadata__names_nodes_in_functions_by_their_path(void)
{
  ts t;
  tn_run_metadata *m = new_metadata();
  ck_open(&t, 0, CALLS);
  REQUIRE_OK(run_x(&t, 9, "call", 3, false, m, NULL), &t.err);
  CHECK_INT(count_of(m, "call"), 1);
  CHECK_INT(count_of(m, "call/s"), 1);
  tn_node_record outer = record_of(m, "call"), inner = record_of(m, "call/s");
  CHECK(outer.start_ns <= inner.start_ns && inner.start_ns + inner.duration_ns <= outer.start_ns + outer.duration_ns);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

static void metadata__has_each_turn_of_a_loop(void) /* S-MD-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_run_metadata *m = new_metadata();
    tn_tensor *out = NULL;
    const char *fetch = "w";
    tn_run_options options;
    tn_run_options_init(&options);
    options.trace_level = 1;
    ck_open(&t, level, CALLS);
    REQUIRE_OK(tn_session_run(t.session, &options, NULL, NULL, 0, &fetch, &out, 1, NULL, 0, m, &t.err), &t.err);
    CHECK_INT(count_of(m, "w"), 1);
    CHECK_INT(count_of(m, "w/body/next"), 5);
    CHECK_INT(count_of(m, "w/cond/l"), 6);
    CHECK_STR(record_of(m, "w").op, "While");
    tn_tensor_unref(out);
    tn_run_metadata_destroy(m);
    ts_fini(&t);
  }
}

static void metadata__marks_nodes_that_waited(void)
{
  ts t;
  tn_run_metadata *m = new_metadata();
  const char *feed = "x", *fetch = "get", *target = "put";
  tn_tensor *x = ts_scalar(4), *out = NULL;
  tn_run_options options;
  ck_open(&t, 1, X NODE("q", "FIFOQueueV2", "", TYPES("component_types", F))
                     NODE("get", "QueueDequeueV2", "input: 'q'", TYPES("component_types", F))
                     NODE("put", "QueueEnqueueV2", "input: 'q' input: 'x'", TYPES("Tcomponents", F)));
  tn_run_options_init(&options);
  options.trace_level = 3;
  REQUIRE_OK(tn_session_run(t.session, &options, &feed, &x, 1, &fetch, &out, 1, &target, 1, m, &t.err), &t.err);
  tn_node_record get = record_of(m, "get"), put = record_of(m, "put");
  CHECK_INT(count_of(m, "get"), 1);
  if (get.waited) CHECK(get.start_ns <= put.start_ns && get.start_ns + get.duration_ns >= put.start_ns);
  CHECK(!put.waited);
  tn_tensor_unref(out);
  options.timeout_ms = 50; /* S-MD-04: a partial trace is well-formed */
  out = NULL;
  CHECK_STATUS(tn_session_run(t.session, &options, &feed, &x, 1, &fetch, &out, 1, NULL, 0, m, &t.err),
               TN_DEADLINE_EXCEEDED, &t.err);
  CHECK(summary_of(m).traced);
  for (size_t i = 0; i < summary_of(m).records; i++) CHECK(record_at(m, i).node[0] != 0);
  tn_tensor_unref(x);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

/* ---- graphs ---- */

/* Whether a field with this text is in the bytes. */
static bool holds(const char *bytes, size_t size, const char *text)
{
  size_t n = strlen(text);
  for (size_t i = 1; i + n <= size; i++)
    if ((size_t)bytes[i - 1] == n && memcmp(bytes + i, text, n) == 0) return true;
  return false;
}

static void metadata__gives_the_graph_that_ran(void) /* S-RO-13 */
{
  FOR_LEVELS(level)
  {
    ts t;
    const void *bytes;
    size_t size;
    tn_run_metadata *m = new_metadata();
    ck_open(&t, level, SIMPLE);
    REQUIRE_OK(run_x(&t, 8, "root", 0, true, m, NULL), &t.err);
    CHECK_INT(summary_of(m).records, 0);
    REQUIRE_INT(summary_of(m).partition_graphs, 1);
    REQUIRE_OK(tn_run_metadata_partition_graph(m, 0, &bytes, &size, &t.err), &t.err);
    CHECK(holds(bytes, size, "root"));
    CHECK(holds(bytes, size, "_arg_x_0_0")); /* as TensorFlow calls feeds and fetches */
    CHECK(holds(bytes, size, "_retval_root_0_0"));
    CHECK(!holds(bytes, size, "other"));
    if (level == 0) CHECK(holds(bytes, size, "one") && holds(bytes, size, "AddV2"));
    CHECK_STATUS(tn_run_metadata_partition_graph(m, 1, &bytes, &size, &t.err), TN_OUT_OF_RANGE, &t.err);
    CHECK_NULL(bytes);
    tn_run_metadata_destroy(m);
    ts_fini(&t);
  }
}

static void metadata__graphs_can_be_forbidden(void) /* S-RO-13 */
{
  ts t;
  tn_run_metadata *m = new_metadata();
  const tn_import_options text = { .struct_size = sizeof text, .flags = TN_IMPORT_TEXT };
  ts_init(&t, 1);
  REQUIRE_OK(tn_graph_import(t.graph, SIMPLE, strlen(SIMPLE), &text, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_bool(t.options, "disable_output_partition_graphs", 1, &t.err), &t.err);
  ts_start(&t);
  CHECK_STATUS(run_x(&t, 8, "root", 0, true, m, NULL), TN_INVALID_ARGUMENT, &t.err);
  CHECK(is_empty(m));
  CHECK_OK(run_x(&t, 8, "root", 3, false, m, NULL), &t.err);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

/* ---- bytes ---- */

/* Reads the next field of a message, if there is one: its bytes or value. Advances *at. */
static bool next_field(const uint8_t **at, const uint8_t *end, unsigned *field, const uint8_t **data, uint64_t *value)
{
  uint64_t parts[2] = { 0, 0 };
  if (*at >= end) return false;
  for (int k = 0; k < 2; k++) {
    unsigned shift = 0;
    do parts[k] |= (uint64_t)(**at & 0x7f) << shift, shift += 7;
    while (*(*at)++ >= 0x80);
  }
  *field = (unsigned)(parts[0] >> 3);
  *value = parts[1];
  *data = *at;
  if ((parts[0] & 7) == 2) *at += parts[1];
  return *at <= end;
}

static void metadata__bytes_are_a_run_metadata(void) /* S-MD-05 */
{
  ts t;
  void *bytes;
  size_t size;
  unsigned field;
  const uint8_t *data, *inner, *at, *end;
  uint64_t value;
  tn_run_metadata *m = new_metadata();
  ck_open(&t, 0, SIMPLE);
  REQUIRE_OK(run_x(&t, 8, "root", 3, true, m, NULL), &t.err);
  REQUIRE_OK(tn_run_metadata_serialize(m, &bytes, &size, &t.err), &t.err);
  at = bytes;
  end = at + size;
  REQUIRE(next_field(&at, end, &field, &data, &value));
  CHECK_INT(field, 1); /* step_stats */
  inner = data;
  REQUIRE(next_field(&inner, data + value, &field, &data, &value));
  CHECK_INT(field, 1); /* dev_stats */
  inner = data;
  const uint8_t *device_end = data + value;
  REQUIRE(next_field(&inner, device_end, &field, &data, &value));
  CHECK_INT(field, 1);
  CHECK_BYTES(data, "/job:localhost/replica:0/task:0/device:CPU:0", value);
  REQUIRE(next_field(&inner, device_end, &field, &data, &value));
  CHECK_INT(field, 2); /* node_stats */
  inner = data;
  const uint8_t *node_end = data + value;
  REQUIRE(next_field(&inner, node_end, &field, &data, &value));
  CHECK_INT(field, 1);
  CHECK_BYTES(data, "sum", value);
  REQUIRE(next_field(&inner, node_end, &field, &data, &value));
  CHECK_INT(field, 2); /* all_start_micros */
  CHECK_INT(value, (uint64_t)(summary_of(m).start_unix_ns + record_of(m, "sum").start_ns) / 1000);
  REQUIRE(next_field(&at, end, &field, &data, &value));
  CHECK_INT(field, 3); /* partition_graphs */
  CHECK(!next_field(&at, end, &field, &data, &value));
  char path[512], found[4096];
  snprintf(path, sizeof path, "%s/m.pb", tap_scratch_dir());
  REQUIRE_OK(tn_run_metadata_save(m, path, &t.err), &t.err);
  FILE *file = fopen(path, "rb");
  REQUIRE_PTR(file);
  CHECK_INT(fread(found, 1, sizeof found, file), size);
  fclose(file);
  CHECK_BYTES(found, bytes, size);
  tn_free(bytes);
  snprintf(path, sizeof path, "%s/none/m.pb", tap_scratch_dir());
  CHECK_STATUS(tn_run_metadata_save(m, path, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_STATUS(tn_run_metadata_save(m, "", &t.err), TN_INVALID_ARGUMENT, &t.err);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

/* ---- threads ---- */

enum { THREADS = 4, STEPS = 100 };

static void *run_traced(void *arg)
{
  ts t = *(ts *)arg;
  tn_run_metadata *m = new_metadata();
  tn_error err = TN_ERROR_INIT;
  t.err = err;
  for (int i = 0; i < STEPS; i++) {
    CHECK_OK(run_x(&t, 8, "root", 3, i % 8 == 0, m, NULL), &t.err);
    CHECK_INT(summary_of(m).records, 2);
    CHECK(summary_of(m).threads >= 1 && summary_of(m).threads <= 2);
  }
  tn_error_clear(&t.err);
  tn_run_metadata_destroy(m);
  return NULL;
}

static void metadata__steps_at_once_have_their_own(void)
{
  ts t;
  pthread_t threads[THREADS];
  ck_open(&t, 0, SIMPLE);
  for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, run_traced, &t), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  ts_fini(&t);
}

/* Whether a worker helps depends on the machine; its work is recorded for the node whose loop it
 * ran. */
static void metadata__records_the_work_of_workers(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  ts t;
  const tn_import_options text = { .struct_size = sizeof text, .flags = TN_IMPORT_TEXT };
  const char *graph = X NODE("p", "MatMul", "input: 'x' input: 'x'", T("DT_FLOAT"));
  const char *feed = "x", *fetch = "p";
  const int64_t dims[] = { 600, 600 };
  tn_run_metadata *m = new_metadata();
  tn_run_options run;
  tn_run_options_init(&run);
  run.trace_level = 3;
  ts_init(&t, 1);
  REQUIRE_OK(tn_graph_import(t.graph, graph, strlen(graph), &text, &err), &err);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "threaded:threads=2", &err), &err);
  tn_status st = tn_session_create(options, &session, &err);
  tn_session_options_destroy(options);
  if (st == TN_OK) st = tn_session_set_graph(session, t.graph, &err);
  for (int i = 0; st == TN_OK && i < 20; i++) {
    tn_tensor *x = ts_filled(2, dims, 1), *out = NULL;
    REQUIRE_OK(tn_session_run(session, &run, &feed, &x, 1, &fetch, &out, 1, NULL, 0, m, &err), &err);
    CHECK_DOUBLE(ts_float(out), 600, 0);
    CHECK_INT(record_at(m, 0).kind, TN_RECORD_NODE);
    CHECK_INT(record_at(m, 0).thread, 0);
    for (size_t k = 1; k < summary_of(m).records; k++) {
      tn_node_record r = record_at(m, k), node = record_at(m, 0);
      CHECK_INT(r.kind, TN_RECORD_PART);
      CHECK(r.thread > 0);
      CHECK_STR(r.node, "p");
      CHECK(r.start_ns >= node.start_ns && r.start_ns + r.duration_ns <= node.start_ns + node.duration_ns);
    }
    tn_tensor_unref(out);
    tn_tensor_unref(x);
  }
  tn_session_destroy(session);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
  if (st != TN_OK) TAP_SKIP("no threaded runtime here: %s", tn_error_message(&err));
}

/* ---- broken paths ---- */

static void metadata__wrong_calls_are_refused(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_run_metadata *m = new_metadata();
  tn_metadata_summary s = { .struct_size = 0 };
  tn_node_record r = { .struct_size = sizeof r };
  size_t size = 1;
  CHECK_STATUS(tn_run_metadata_create(NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_run_metadata_summary(m, &s, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_run_metadata_summary(NULL, &s, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_run_metadata_record(m, 0, &r, &err), TN_OUT_OF_RANGE, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the metadata has 0");
  CHECK_STATUS(tn_run_metadata_record(m, 0, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_run_metadata_serialize(m, NULL, &size, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_INT(size, 0);
  tn_error_clear(&err);
  tn_run_metadata_destroy(m);
}

/* With a larger trace, so that it has several chunks. */
static tn_status run_once(void *arg)
{
  ts *t = arg;
  void *bytes = NULL;
  size_t size;
  const char *fetch = "w";
  tn_tensor *out = NULL;
  tn_run_metadata *m = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.trace_level = 3;
  options.output_partition_graphs = 1;
  tn_status st = tn_run_metadata_create(&m, &t->err);
  if (st == TN_OK) st = tn_session_run(t->session, &options, NULL, NULL, 0, &fetch, &out, 1, NULL, 0, m, &t->err);
  if (st == TN_OK) {
    CHECK_INT(*(const int32_t *)tn_tensor_data(out), 5); /* even if parts of the trace are missing */
    if (!summary_of(m).cut) CHECK_INT(count_of(m, "w/body/next"), 5);
    st = tn_run_metadata_serialize(m, &bytes, &size, &t->err);
  }
  tn_free(bytes);
  tn_tensor_unref(out);
  tn_run_metadata_destroy(m);
  return st;
}

static void metadata__without_memory_the_trace_is_cut(void)
{
  ts t;
  ck_open(&t, 0, CALLS);
  tn_test_oom_sweep(run_once, &t);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(metadata__has_each_node_that_ran_and_no_other),
  TAP_TEST(metadata__shows_shapes),
  TAP_TEST(metadata__states_what_nodes_cost),
  TAP_TEST(metadata__names_nodes_that_have_nothing_to_compute),
  TAP_TEST(metadata__stays_empty_without_a_request),
  TAP_TEST(metadata__is_unchanged_by_a_refused_call),
  TAP_TEST(metadata__of_a_step_that_fails_has_what_ran),
  TAP_TEST(metadata__comes_from_callables_too),
  TAP_TEST(metadata__has_the_branch_that_was_taken),
  TAP_TEST(metadata__names_nodes_in_functions_by_their_path),
  TAP_TEST(metadata__has_each_turn_of_a_loop),
  TAP_TEST(metadata__marks_nodes_that_waited),
  TAP_TEST(metadata__gives_the_graph_that_ran),
  TAP_TEST(metadata__graphs_can_be_forbidden),
  TAP_TEST(metadata__bytes_are_a_run_metadata),
  TAP_TEST(metadata__steps_at_once_have_their_own),
  TAP_TEST(metadata__records_the_work_of_workers),
  TAP_TEST(metadata__wrong_calls_are_refused),
  TAP_TEST(metadata__without_memory_the_trace_is_cut))
