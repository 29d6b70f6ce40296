/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers across steps: the sequence, other sessions, concurrent steps, shapes, and lack
 * of memory. Recorded cases check the numbers of a single step. */
#include "conformance/support/session_kit.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define TYPE(key, type) "attr { key: '" key "' value { type: " type " } }"
#define SEEDS(a, b) "attr { key: 'seed' value { i: " #a " } } attr { key: 'seed2' value { i: " #b " } }"
#define SHAPE(name, n)                                                                                           \
  NODE(name, "Const", "", TYPE("dtype", "DT_INT32") "attr { key: 'value' value { tensor { dtype: DT_INT32 "      \
       "tensor_shape { dim { size: 1 } } int_val: " #n " } } }")
#define UNIFORM(name, type, seeds) \
  NODE(name, "RandomUniform", "input: 'n'", TYPE("dtype", type) TYPE("T", "DT_INT32") seeds)
#define GRAPH                                                                                                    \
  SHAPE("n", 5) NODE("any", "Placeholder", "", TYPE("dtype", "DT_INT32"))                                        \
  UNIFORM("seeded", "DT_FLOAT", SEEDS(1, 2)) UNIFORM("twin", "DT_FLOAT", SEEDS(1, 2))                            \
  UNIFORM("wide", "DT_DOUBLE", SEEDS(7, 0)) UNIFORM("free", "DT_DOUBLE", "")                                     \
  NODE("open", "RandomStandardNormal", "input: 'any'", TYPE("dtype", "DT_FLOAT") TYPE("T", "DT_INT32"))

static void open_graph(ts *t)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  REQUIRE_OK(tn_graph_import(t->graph, GRAPH, strlen(GRAPH), &options, &t->err), &t->err);
  ts_start(t);
}

static void fetch(ts *t, const char *name, tn_tensor **out)
{
  REQUIRE_OK(tn_session_run(t->session, NULL, NULL, NULL, 0, &name, out, 1, NULL, 0, NULL, &t->err), &t->err);
}

static void check_next(ts *t, const float *wanted)
{
  tn_tensor *out;
  fetch(t, "seeded:0", &out);
  for (int i = 0; i < 5; i++) CHECK(((const float *)tn_tensor_data(out))[i] == wanted[i]);
  tn_tensor_unref(out);
}

/* The numbers of three steps of one session of TensorFlow. */
static void random_ops__each_session_restarts_the_sequence(void)
{
  static const float steps[3][5] = {
    { 0.406396746635437f, 0.8575996160507202f, 0.05539584159851074f, 0.08587229251861572f, 0.41215360164642334f },
    { 0.15982985496520996f, 0.3912637233734131f, 0.9523847103118896f, 0.584368109703064f, 0.7269216775894165f },
    { 0.4056532382965088f, 0.4999755620956421f, 0.7835102081298828f, 0.41521596908569336f, 0.8788332939147949f }
  };
  for (int session = 0; session < 2; session++) {
    ts t;
    open_graph(&t);
    for (int k = 0; k < 3; k++) check_next(&t, steps[k]);
    ts_fini(&t);
  }
}

static void random_ops__equal_nodes_are_not_merged(void)
{
  static const char *const names[] = { "seeded:0", "twin:0", "free:0" };
  ts t;
  tn_tensor *a[3], *b[3];
  open_graph(&t);
  REQUIRE_OK(tn_session_run(t.session, NULL, NULL, NULL, 0, names, a, 3, NULL, 0, NULL, &t.err), &t.err);
  REQUIRE_OK(tn_session_run(t.session, NULL, NULL, NULL, 0, names, b, 3, NULL, 0, NULL, &t.err), &t.err);
  CHECK(ts_float(a[0]) == ts_float(a[1])); /* each has its own sequence */
  CHECK(ts_float(a[0]) != ts_float(b[0]));
  CHECK(*(const double *)tn_tensor_data(a[2]) != *(const double *)tn_tensor_data(b[2]));
  for (int i = 0; i < 3; i++) {
    tn_tensor_unref(a[i]);
    tn_tensor_unref(b[i]);
  }
  ts_fini(&t);
}

/* ---- concurrent steps ---- */

enum { THREADS = 4, RUNS = 100 };

typedef struct drawer {
  ts *t;
  double first[RUNS];
  pthread_t thread;
} drawer;

static void *draw(void *arg)
{
  drawer *d = arg;
  const char *name = "wide:0";
  for (int i = 0; i < RUNS; i++) {
    tn_tensor *out = NULL;
    tn_status st = tn_session_run(d->t->session, NULL, NULL, NULL, 0, &name, &out, 1, NULL, 0, NULL, NULL);
    d->first[i] = st == TN_OK ? *(const double *)tn_tensor_data(out) : (double)NAN;
    tn_tensor_unref(out);
  }
  return NULL;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* In whatever order they run, concurrent steps divide the sequence of a single thread among
 * them. */
static void random_ops__concurrent_steps_share_the_sequence(void)
{
  static drawer drawers[THREADS];
  static double together[THREADS * RUNS], alone[THREADS * RUNS];
  ts t;
  open_graph(&t);
  for (int i = 0; i < THREADS; i++) {
    drawers[i].t = &t;
    REQUIRE_INT(pthread_create(&drawers[i].thread, NULL, draw, &drawers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(drawers[i].thread, NULL);
    memcpy(together + i * RUNS, drawers[i].first, sizeof drawers[i].first);
  }
  ts_fini(&t);
  open_graph(&t);
  drawers[0].t = &t;
  for (int i = 0; i < THREADS; i++) {
    draw(&drawers[0]);
    memcpy(alone + i * RUNS, drawers[0].first, sizeof drawers[0].first);
  }
  ts_fini(&t);
  qsort(together, THREADS * RUNS, sizeof *together, compare);
  qsort(alone, THREADS * RUNS, sizeof *alone, compare);
  CHECK(memcmp(together, alone, sizeof alone) == 0);
  for (int i = 1; i < THREADS * RUNS; i++) CHECK(alone[i - 1] < alone[i]);
}

/* ---- shapes and memory ---- */

static void random_ops__shapes_follow_known_values(void)
{
  ts t;
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  open_graph(&t);
  tn_output seeded = { tn_graph_find(t.graph, "seeded"), 0 }, open = { tn_graph_find(t.graph, "open"), 0 };
  REQUIRE_OK(tn_output_shape(seeded, dims, TN_MAX_RANK, &rank, &t.err), &t.err);
  CHECK_INT(rank, 1);
  CHECK_INT(dims[0], 5);
  REQUIRE_OK(tn_output_shape(open, dims, TN_MAX_RANK, &rank, &t.err), &t.err);
  CHECK_INT(rank, -1);
  ts_fini(&t);
}

static tn_status compile_and_run(void *arg)
{
  static const char *const names[] = { "seeded:0", "free:0" };
  ts *t = arg;
  tn_callable callable;
  tn_tensor *out[2] = { NULL };
  tn_status st = tn_session_make_callable(t->session, NULL, NULL, 0, names, 2, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(t->session, callable, NULL, 0, out, 2, NULL, NULL);
  for (int k = 0; k < 2; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(t->session, callable, NULL);
  return st;
}

static void random_ops__nothing_leaks_without_memory(void)
{
  ts t;
  open_graph(&t);
  CHECK_INT(compile_and_run(&t), TN_OK);
  tn_test_oom_sweep(compile_and_run, &t);
  ts_fini(&t);
}

#define NUMBER(name, type, value)                                                                                \
  NODE(name, "Const", "", TYPE("dtype", type) "attr { key: 'value' value { tensor { dtype: " type               \
       " tensor_shape { dim { size: 1 } } " value " } } }")
#define POISSON(name, type, rate)                               \
  NODE(name, "RandomPoissonV2", "input: 'n' input: '" rate "'", \
       TYPE("S", "DT_INT32") TYPE("R", "DT_DOUBLE") TYPE("dtype", type) SEEDS(1, 2))

static double first(ts *t, const char *name)
{
  tn_tensor *out;
  fetch(t, name, &out);
  const void *data = tn_tensor_data(out);
  double x;
  switch (tn_tensor_dtype(out)) {
  case TN_HALF: x = (double)*(const uint16_t *)data; break;
  case TN_FLOAT: x = (double)*(const float *)data; break;
  case TN_INT32: x = (double)*(const int32_t *)data; break;
  default: x = (double)*(const int64_t *)data; break;
  }
  tn_tensor_unref(out);
  return x;
}

/* Parameters whose samples all exceed the largest number of the output's type, for which
 * TensorFlow never ends; and parameters without any samples. */
static void random_ops__parameters_without_samples_end(void)
{
  static const char graph[] =
      SHAPE("n", 5) NUMBER("small", "DT_DOUBLE", "double_val: 100000") NUMBER("near", "DT_DOUBLE", "double_val: 66000")
          NUMBER("large", "DT_DOUBLE", "double_val: 3e9") NUMBER("huge", "DT_DOUBLE", "double_val: 1e19")
              NUMBER("below", "DT_FLOAT", "float_val: -2") POISSON("half", "DT_HALF", "small")
                  POISSON("half_near", "DT_HALF", "near") POISSON("int", "DT_INT32", "large")
                      POISSON("long", "DT_INT64", "huge") NODE("gamma", "RandomGamma", "input: 'n' input: 'below'",
                                                               TYPE("S", "DT_INT32") TYPE("T", "DT_FLOAT") SEEDS(1, 2));
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_graph_import(t.graph, graph, strlen(graph), &options, &t.err), &t.err);
  ts_start(&t);
  CHECK_DOUBLE(first(&t, "half"), 0x7bff, 0); /* 65504 */
  CHECK(first(&t, "half_near") > 0x7b00);
  CHECK_DOUBLE(first(&t, "int"), INT32_MAX, 0);
  CHECK(first(&t, "long") >= 0x1.fffffffffffffp62);
  CHECK(isnan(first(&t, "gamma")));
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(random_ops__each_session_restarts_the_sequence),
  TAP_TEST(random_ops__equal_nodes_are_not_merged),
  TAP_TEST(random_ops__concurrent_steps_share_the_sequence),
  TAP_TEST(random_ops__shapes_follow_known_values),
  TAP_TEST(random_ops__parameters_without_samples_end),
  TAP_TEST(random_ops__nothing_leaks_without_memory))
