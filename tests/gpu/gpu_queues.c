/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the runtime gpu on several queues and devices: results equal those of `direct`,
 * whatever runs concurrently. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/support/calls_kit.h"
#include "tests/support/gpu_kit.h"

#define OTHERWISE(condition, ...)                                            \
  do {                                                                       \
    if (!(condition)) {                                                      \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #condition), printf(" " __VA_ARGS__), printf("\n"); \
      return false;                                                          \
    }                                                                        \
  } while (0)

/* ---- random graphs ---- */

enum { SIDE = 24, MOST_NODES = 60, MOST_FETCHES = 6 };

typedef struct drawn {
  char text[1 << 15];
  size_t size;
  int n;
  char names[MOST_FETCHES][16];
  const char *fetches[MOST_FETCHES];
  size_t n_fetches;
} drawn;

static uint32_t next(uint32_t *seed)
{
  *seed ^= *seed << 13;
  *seed ^= *seed >> 17;
  *seed ^= *seed << 5;
  return *seed;
}

static void add_text(drawn *d, const char *text)
{
  size_t n = strlen(text);
  REQUIRE(d->size + n < sizeof d->text);
  memcpy(d->text + d->size, text, n + 1);
  d->size += n;
}

/* An input of the next node: one of the latest nodes, to make chains, or any node, to make
 * branches. */
static int input_of(const drawn *d, uint32_t *seed)
{
  uint32_t r = next(seed), n = (uint32_t)d->n;
  if (r % 3 == 0) return (int)(r / 3 % n);
  return d->n - 1 - (int)(r / 3 % (n < 4 ? n : 4));
}

static void add_node(drawn *d, uint32_t *seed, int devices)
{
  static const char *const ops[] = { "Tanh", "Neg",     "Sigmoid", "Abs",     "AddV2",
                                     "Sub",  "Maximum", "MatMul",  "Softmax", "Reshape" };
  uint32_t op = next(seed) % 10, where = next(seed) % 8;
  char device[32] = "", node[600], second[32] = "";
  if (where == 0) snprintf(device, sizeof device, "/device:CPU:0");
  else if (where < 6) snprintf(device, sizeof device, "/device:GPU:%d", (int)(next(seed) % (uint32_t)devices));
  if (op >= 4 && op < 8) snprintf(second, sizeof second, "input: 'n%d'", input_of(d, seed));
  if (op == 9) snprintf(second, sizeof second, "input: 'side'");
  const char *type = op == 9 ? T("DT_FLOAT") "attr { key: 'Tshape' value { type: DT_INT32 } }" : T("DT_FLOAT");
  bool grows = op >= 4 && op < 8;
  int from = input_of(d, seed);
  snprintf(node, sizeof node, "node { name: '%c%d' op: '%s' input: 'n%d' %s device: '%s' %s }\n", grows ? 's' : 'n',
           d->n, ops[op], from, second, device, type);
  if (grows)
    snprintf(node + strlen(node), sizeof node - strlen(node),
             "node { name: 'n%d' op: 'Tanh' input: 's%d' device: '%s' %s }\n", d->n, d->n,
             next(seed) % 2 == 0 ? device : "", type);
  add_text(d, node);
  d->n++;
}

/* Two feeds, one of which may be on a device, and nodes that keep their values small. */
static void draw(drawn *d, uint32_t seed, int devices)
{
  char text[400];
  *d = (drawn){ .n = 2 };
  add_text(d, "node { name: 'n0' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
              "node { name: 'n1' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n");
  snprintf(text, sizeof text,
           "node { name: 'side' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' "
           "value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: %d int_val: %d } } } }\n",
           SIDE, SIDE);
  add_text(d, text);
  int n = 4 + (int)(next(&seed) % (MOST_NODES - 4));
  while (d->n < n) add_node(d, &seed, devices);
  d->n_fetches = 1 + next(&seed) % MOST_FETCHES;
  for (size_t f = 0; f < d->n_fetches; f++) {
    snprintf(d->names[f], sizeof d->names[f], "n%d", f == 0 ? d->n - 1 : (int)(next(&seed) % (uint32_t)d->n));
    d->fetches[f] = d->names[f];
  }
}

static tn_tensor *filled(float step)
{
  const int64_t dims[] = { SIDE, SIDE };
  tn_tensor *x = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, &x, NULL), NULL);
  for (int i = 0; i < SIDE * SIDE; i++) ((float *)tn_tensor_data(x))[i] = (float)(i % 13 - 6) * step;
  return x;
}

static void open_drawn(ts *t, const char *target, int level, const drawn *d)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_bool(t->options, "allow_soft_placement", true, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, d->text, d->size, &options, &t->err), &t->err);
  ts_start(t);
}

static bool run_drawn(ts *t, const drawn *d, tn_tensor *const *in, tn_tensor **out)
{
  const char *feeds[] = { "n0", "n1" };
  tn_status st = tn_session_run(t->session, NULL, feeds, in, 2, d->fetches, out, d->n_fetches, NULL, 0, NULL, &t->err);
  OTHERWISE(st == TN_OK, "%s", tn_error_message(&t->err));
  return true;
}

static bool agree(tn_tensor *a, tn_tensor *b)
{
  static float x[SIDE * SIDE], y[SIDE * SIDE];
  OTHERWISE(tn_tensor_read(a, x, sizeof x, NULL) == TN_OK && tn_tensor_read(b, y, sizeof y, NULL) == TN_OK);
  for (int i = 0; i < SIDE * SIDE; i++)
    OTHERWISE(fabsf(x[i] - y[i]) <= 1e-3f, "element %d is %g instead of %g", i, (double)y[i], (double)x[i]);
  return true;
}

/* Three steps, the second with other values, the third with n1 fed from a result of the second. */
static bool same_as_direct(const char *target, uint32_t seed, int devices)
{
  static drawn d;
  ts t, direct;
  tn_tensor *in[2] = { filled(0.05f), filled(-0.02f) };
  draw(&d, seed, devices);
  open_drawn(&t, target, (int)(seed % 2), &d);
  open_drawn(&direct, "direct", 1, &d);
  bool same = true;
  for (int step = 0; same && step < 3; step++) {
    tn_tensor *a[MOST_FETCHES] = { NULL }, *b[MOST_FETCHES] = { NULL }, *host[2] = { in[0], NULL };
    same =
        tn_tensor_copy(in[1], &host[1], NULL) == TN_OK && run_drawn(&direct, &d, host, a) && run_drawn(&t, &d, in, b);
    for (size_t f = 0; same && f < d.n_fetches; f++) same = agree(a[f], b[f]);
    tn_tensor_unref(in[1]);
    in[1] = step == 0 ? filled(0.01f) : tn_tensor_ref(b[0]);
    for (size_t f = 0; f < d.n_fetches; f++) tn_tensor_unref(a[f]), tn_tensor_unref(b[f]);
    tn_tensor_unref(host[1]);
    if (!same) printf("%s, graph %u, step %d:\n%s", target, (unsigned)seed, step, d.text);
  }
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  ts_fini(&t);
  ts_fini(&direct);
  return same;
}

static const char *const one_device[] = { "gpu:placement=device,queues=3",
                                          "gpu:placement=device,queues=3,copies=always",
                                          "gpu:placement=device,queues=1,copies=always",
                                          "gpu:placement=device,queues=4,copies=always,fetch=device", "gpu:queues=2" };

static void gpu_queues__random_graphs_give_the_results_of_direct(void)
{
  gpu_kit_begin();
  GPU_NEEDS_DEVICE();
  for (uint32_t seed = 1; seed <= 40; seed++) CHECK(same_as_direct(one_device[seed % 5], seed * 2654435761u, 1));
}

/* ---- several devices ---- */

static const char *const two_devices[] = { "gpu:device=0+1,placement=device",
                                           "gpu:device=1+0,placement=device,queues=2",
                                           "gpu:device=0+1,placement=device,fetch=device",
                                           "gpu:device=0+1,queues=3,fetch=device" };

static int scene_random(void)
{
  for (uint32_t seed = 1; seed <= 32; seed++) SCENE_CHECK(same_as_direct(two_devices[seed % 4], seed * 2246822519u, 2));
  return 0;
}

static bool starts_second_device(void)
{
  ts t;
  ts_init(&t, 1);
  bool there = tn_session_options_set_target(t.options, "gpu:device=1", &t.err) == TN_OK &&
               tn_session_create(t.options, &t.session, &t.err) == TN_OK;
  if (!there) printf("%s", tn_error_message(&t.err));
  ts_fini(&t);
  return there;
}

#define ON(device) "device: '" device "' "
static const char pinned_text[] =
    IN("n0", "DT_FLOAT") IN("n1", "DT_FLOAT") NODE("first", "Tanh", "input: 'n0' " ON("/device:GPU:0"), T("DT_FLOAT"))
    NODE("second", "MatMul", "input: 'n1' input: 'n1' " ON("/device:GPU:1"), T("DT_FLOAT"))
    NODE("behind", "Sigmoid", "input: 'second'", T("DT_FLOAT"))
    NODE("both", "AddV2", "input: 'first' input: 'behind' " ON("/device:GPU:0"), T("DT_FLOAT"))
    NODE("text", "AsString", "input: 'both' " ON("/device:GPU:1"), T("DT_FLOAT"));

static const char *place_of(ts *t, const char *node)
{
  static tn_placement placed;
  placed = (tn_placement){ .struct_size = sizeof placed };
  return tn_session_device_of(t->session, node, &placed, &t->err) == TN_OK ? placed.device : tn_error_message(&t->err);
}

/* The devices named by the records of a step: bit i for GPU:i. */
static int devices_in(ts *t, tn_run_metadata *m, tn_tensor *const *in)
{
  const char *feeds[] = { "n0", "n1" }, *fetch = "both";
  tn_run_options options;
  tn_tensor *y = NULL;
  tn_metadata_summary sum = { .struct_size = sizeof sum };
  int found = 0;
  tn_run_options_init(&options);
  options.trace_level = 3;
  REQUIRE_OK(tn_session_run(t->session, &options, feeds, in, 2, &fetch, &y, 1, NULL, 0, m, &t->err), &t->err);
  tn_tensor_unref(y);
  REQUIRE_OK(tn_run_metadata_summary(m, &sum, &t->err), &t->err);
  for (size_t i = 0; i < sum.records; i++) {
    tn_node_record r = { .struct_size = sizeof r };
    REQUIRE_OK(tn_run_metadata_record(m, i, &r, &t->err), &t->err);
    if (strstr(r.device, "device:GPU:0") != NULL) found |= 1;
    if (strstr(r.device, "device:GPU:1") != NULL) found |= 2;
  }
  return found;
}

/* Nodes run on the device named in the graph, others where their inputs are; the places that the
 * session reports agree. */
static int scene_named(void)
{
  ts t;
  drawn d = { 0 };
  tn_run_metadata *m = NULL;
  memcpy(d.text, pinned_text, sizeof pinned_text);
  d.size = strlen(pinned_text);
  tn_tensor *in[2] = { filled(0.1f), filled(0.01f) };
  open_drawn(&t, "gpu:device=0+1,placement=device", 0, &d);
  SCENE_CHECK(tn_run_metadata_create(&m, &t.err) == TN_OK);
  for (int step = 0; step < 2; step++) SCENE_CHECK(devices_in(&t, m, in) == 3, "%d", devices_in(&t, m, in));
  SCENE_CHECK(strstr(place_of(&t, "first"), "GPU:0") != NULL, "%s", place_of(&t, "first"));
  SCENE_CHECK(strstr(place_of(&t, "second"), "GPU:1") != NULL, "%s", place_of(&t, "second"));
  SCENE_CHECK(strstr(place_of(&t, "behind"), "GPU:1") != NULL, "%s", place_of(&t, "behind"));
  SCENE_CHECK(strstr(place_of(&t, "both"), "GPU:0") != NULL, "%s", place_of(&t, "both"));
  SCENE_CHECK(strstr(place_of(&t, "text"), "CPU:0") != NULL, "%s", place_of(&t, "text"));
  tn_run_metadata_destroy(m);
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  ts_fini(&t);
  return 0;
}

static const char beside_text[] = IN("n0", "DT_FLOAT") IN("n1", "DT_FLOAT")
    NODE("a0", "MatMul", "input: 'n0' input: 'n1' " ON("/device:GPU:0"), T("DT_FLOAT"))
        NODE("a1", "MatMul", "input: 'a0' input: 'n1'", T("DT_FLOAT"))
            NODE("a2", "MatMul", "input: 'a1' input: 'n1'", T("DT_FLOAT"))
                NODE("b0", "MatMul", "input: 'n1' input: 'n0' " ON("/device:GPU:1"), T("DT_FLOAT"))
                    NODE("b1", "MatMul", "input: 'b0' input: 'n0'", T("DT_FLOAT"))
                        NODE("both", "AddV2", "input: 'a2' input: 'b1'", T("DT_FLOAT"));

static int64_t begin_of(tn_run_metadata *m, const char *node)
{
  tn_metadata_summary sum = { .struct_size = sizeof sum };
  REQUIRE_OK(tn_run_metadata_summary(m, &sum, NULL), NULL);
  for (size_t i = 0; i < sum.records; i++) {
    tn_node_record r = { .struct_size = sizeof r };
    REQUIRE_OK(tn_run_metadata_record(m, i, &r, NULL), NULL);
    if (strcmp(r.node, node) == 0) return r.start_ns;
  }
  return -1;
}

/* Long work on one device does not delay the start of the other, even if the graph lists it
 * first. */
static int scene_beside(void)
{
  const int64_t dims[] = { 384, 384 };
  ts t;
  drawn d = { 0 };
  tn_run_metadata *m = NULL;
  tn_tensor *x = ts_filled(2, dims, 0.01f), *in[2] = { x, x };
  memcpy(d.text, beside_text, sizeof beside_text);
  d.size = strlen(beside_text);
  open_drawn(&t, "gpu:device=0+1,placement=device", 0, &d);
  SCENE_CHECK(tn_run_metadata_create(&m, &t.err) == TN_OK);
  for (int step = 0; step < 2; step++) SCENE_CHECK(devices_in(&t, m, in) == 3);
  SCENE_CHECK(begin_of(m, "b0") < begin_of(m, "a2"), "%lld, %lld", (long long)begin_of(m, "b0"),
              (long long)begin_of(m, "a2"));
  tn_run_metadata_destroy(m);
  tn_tensor_unref(x);
  ts_fini(&t);
  return 0;
}

/* Each device has its own limit; the error is about the device whose limit is exceeded. */
static int scene_limits(void)
{
  ts t;
  drawn d = { 0 };
  const char *feeds[] = { "n0", "n1" }, *fetch = "both";
  tn_tensor *in[2] = { filled(0.1f), filled(0.01f) }, *y = NULL;
  memcpy(d.text, pinned_text, sizeof pinned_text);
  d.size = strlen(pinned_text);
  open_drawn(&t, "gpu:device=0+1,placement=device,memory=4K", 0, &d);
  tn_status st = tn_session_run(t.session, NULL, feeds, in, 2, &fetch, &y, 1, NULL, 0, NULL, &t.err);
  SCENE_CHECK(st == TN_RESOURCE_EXHAUSTED, "%d %s", (int)st, tn_error_message(&t.err));
  SCENE_CHECK(strstr(tn_error_message(&t.err), "the session may have 4096") != NULL, "%s", tn_error_message(&t.err));
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  ts_fini(&t);
  return 0;
}

static int scene_two(void)
{
  if (!starts_second_device()) return 77;
  return scene_named() != 0 || scene_beside() != 0 || scene_limits() != 0 || scene_random() != 0;
}

static void gpu_queues__nodes_run_on_the_device_they_name(void)
{
  GPU_NEEDS_DEVICE();
  const char *environment[] = { "POCL_DEVICES=pthread basic", NULL }, *text;
  int status = gpu_kit_run("two", environment, &text);
  if (status == 77) TAP_SKIP("OpenCL has a single device: %s", text);
  CHECK_MSG(status == 0, "%d: %s", status, text);
}

/* ---- concurrency ---- */

static struct {
  pthread_mutex_t mu;
  char text[1 << 14];
} said = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  pthread_mutex_lock(&said.mu);
  size_t at = strlen(said.text);
  snprintf(said.text + at, sizeof said.text - at, "%s\n", line);
  pthread_mutex_unlock(&said.mu);
}

/* The number before a word in the last line about a plan; -1 if it is missing. */
static int said_of(const char *word)
{
  const char *at = NULL;
  for (const char *next = said.text; (next = strstr(next, word)) != NULL; next++) at = next;
  if (at == NULL) return -1;
  while (at > said.text && at[-1] >= '0' && at[-1] <= '9') at--;
  return atoi(at);
}

/* Copies have two queues of their own with copies=always, and on a device with memory of its
 * own. */
static void count_queues(const char *target, int alone, int with_copies)
{
  static drawn d;
  ts t;
  tn_tensor *in[2] = { filled(0.1f), filled(0.01f) }, *out[MOST_FETCHES] = { NULL };
  draw(&d, 77, 1);
  said.text[0] = '\0';
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
  open_drawn(&t, target, 0, &d);
  CHECK(run_drawn(&t, &d, in, out));
  ts_fini(&t);
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
  int found = said_of(" queues;");
  CHECK_MSG(found == alone || found == with_copies, "%s: %s", target, said.text);
  for (int f = 0; f < MOST_FETCHES; f++) tn_tensor_unref(out[f]);
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
}

static void gpu_queues__the_setting_limits_their_number(void)
{
  GPU_NEEDS_DEVICE();
  count_queues("gpu:placement=device,queues=1,copies=always", 1, 1);
  count_queues("gpu:placement=device,queues=3", 3, 5);
  count_queues("gpu:placement=device,queues=3,copies=always", 5, 5);
}

static const gpu_scene scenes[] = { { "two", scene_two } };

static void setup(void)
{
  gpu_kit_scenes("gpu_queues__random_graphs_give_the_results_of_direct", scenes, sizeof scenes / sizeof *scenes);
}

TAP_MAIN_WITH(setup, NULL,
  TAP_TEST(gpu_queues__random_graphs_give_the_results_of_direct),
  TAP_TEST(gpu_queues__nodes_run_on_the_device_they_name),
  TAP_TEST(gpu_queues__the_setting_limits_their_number))
