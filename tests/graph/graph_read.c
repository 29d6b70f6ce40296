/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, names, and reading a graph while nodes are added. */
#include "core/graph/graph_structs.h"
#include "conformance/support/graph_kit.h"

#include <pthread.h>
#include <string.h>

/* ---- shapes ---- */

static void shapes__flow_through_a_graph(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  const int64_t left[] = { -1, 3 }, right[] = { 2, -1 };
  tn_output x = gk_in_of(graph, "x", TN_FLOAT, left, 2), y = gk_in_of(graph, "y", TN_FLOAT, right, 2);
  tn_operation *sum;
  REQUIRE_OK(gk_build2(graph, "GkAdd", "sum", x, y, &sum, &err), &err);
  int64_t dims[4];
  int32_t rank;
  CHECK_OK(tn_output_shape((tn_output){ sum, 0 }, dims, 4, &rank, &err), &err);
  CHECK(rank == 2 && dims[0] == 2 && dims[1] == 3);
  CHECK_STATUS(tn_output_shape((tn_output){ sum, 0 }, dims, 1, &rank, &err), TN_OUT_OF_RANGE, &err);
  CHECK_INT(rank, 2);
  CHECK_STATUS(tn_output_shape((tn_output){ sum, 1 }, dims, 4, &rank, &err), TN_OUT_OF_RANGE, &err);
  CHECK_STATUS(tn_output_shape((tn_output){ NULL, 0 }, dims, 4, &rank, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_OK(tn_output_shape(gk_float_in(graph, "z"), dims, 4, &rank, &err), &err);
  CHECK_INT(rank, -1);
  /* A size that exceeds memory is treated as unknown. */
  const int64_t huge[] = { INT64_MAX, 3 };
  CHECK_OK(tn_output_shape(gk_in_of(graph, "huge", TN_FLOAT, huge, 2), dims, 4, &rank, &err), &err);
  CHECK(rank == 2 && dims[0] == -1 && dims[1] == 3);
  /* An impossible pair of shapes is rejected when the node is built. */
  tn_operation *bad;
  const int64_t five[] = { 5, 3 };
  CHECK_STATUS(
      gk_build2(graph, "GkAdd", "bad", (tn_output){ sum, 0 }, gk_in_of(graph, "five", TN_FLOAT, five, 2), &bad, &err),
      TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'bad' (GkAdd): dimension 0 is 2 and 5");
  CHECK_NULL(tn_graph_find(graph, "bad"));
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void shapes__values_of_constants_are_used(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_tensor *wanted;
  const int32_t values[] = { 4, -1 };
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, (int64_t[]){ 2 }, 1, values, sizeof values, &wanted, &err), &err);
  tn_operation *shape, *same, *out;
  tn_operation_builder *b = tn_operation_begin(graph, "GkConst", "shape", 0);
  tn_operation_set_tensor(b, "value", wanted);
  tn_operation_set_type(b, "T", TN_INT32);
  REQUIRE_OK(tn_operation_finish(b, &shape, &err), &err);
  b = tn_operation_begin(graph, "GkPass", "same", 0);
  tn_operation_add_input(b, (tn_output){ shape, 0 });
  REQUIRE_OK(tn_operation_finish(b, &same, &err), &err);
  REQUIRE_OK(gk_build2(graph, "GkReshape", "r", gk_float_in(graph, "x"), (tn_output){ same, 0 }, &out, &err), &err);
  int64_t dims[4];
  int32_t rank;
  CHECK_OK(tn_output_shape((tn_output){ out, 0 }, dims, 4, &rank, &err), &err);
  CHECK(rank == 2 && dims[0] == 4 && dims[1] == -1);
  tn_tensor_unref(wanted);
  tn_graph_unref(graph);
}

/* The walk has a stack of its own: a deep graph does not need a deep stack of the thread. */
static void shapes__of_a_long_chain(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes bytes = { 0 };
  gk_bytes node = { 0 };
  char name[32], inputs[80];
  enum { N = 200000 };
  const int64_t dims[] = { 7 };
  gk_node(&node, "n0", "GkIn", NULL);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_attr_shape(&node, "shape", dims, 1);
  gk_add_node(&bytes, &node);
  for (int i = 1; i < N; i++) {
    snprintf(name, sizeof name, "n%d", i);
    snprintf(inputs, sizeof inputs, "n%d n%d", i - 1, i - 1);
    gk_add(&bytes, name, inputs);
  }
  tn_graph *graph = gk_import(&bytes, &err);
  REQUIRE_PTR(graph);
  int64_t found[1];
  int32_t rank;
  CHECK_OK(tn_output_shape((tn_output){ tn_graph_operation(graph, N - 1), 0 }, found, 1, &rank, &err), &err);
  CHECK(rank == 1 && found[0] == 7);
  tn_graph_unref(graph);
  gk_bytes_free(&bytes);
  tn_error_clear(&err);
}

/* ---- names ---- */

static void names__of_nodes(void) /* S-GRA-07 */
{
  static const char *const good[] = { "a", "A9", ".x", "0", "a/b", "a\\b", "a-b_c.d", "while/Merge>1", "x>y" };
  static const char *const bad[] = { "",    "_a", "/a",  "-a",       ">a",  "\\a", "a b",
                                     "a:0", "^a", "a\n", "\xc3\xa4", "a,b", "a+" };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    CHECK_MSG(tn__name_is_valid(good[i], strlen(good[i])), "'%s' is a name", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_MSG(!tn__name_is_valid(bad[i], strlen(bad[i])), "'%s' is no name", bad[i]);
}

static void names__of_devices(void) /* S-CFG-06 */
{
  static const char *const good[] = { "",
                                      "/",
                                      "/cpu:0",
                                      "/CPU:0",
                                      "/gpu:*",
                                      "/device:CPU:0",
                                      "/device:GPU:*",
                                      "/device:CPU",
                                      "/job:localhost/replica:0/task:0/device:CPU:0",
                                      "/job:w_1/task:3",
                                      "/job:*",
                                      "/task:*/cpu:1" };
  static const char *const bad[] = { "cpu:0",
                                     "CPU",
                                     "/cpu",
                                     "/cpu:",
                                     "/cpu:x",
                                     "/device:",
                                     "/device:CPU:",
                                     "/device:0:0",
                                     "/device:CPU:0/",
                                     "/job:",
                                     "/job:0",
                                     "/job:a b",
                                     "/replica:x",
                                     "/task:99999999999",
                                     "//",
                                     "/device:CPU:0 ",
                                     "/job:a/",
                                     "/device:CPU:-1" };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    CHECK_MSG(tn__device_is_valid(good[i], strlen(good[i])), "'%s' is a device", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_MSG(!tn__device_is_valid(bad[i], strlen(bad[i])), "'%s' is no device", bad[i]);
}

static void names__of_outputs(void)
{
  static const struct {
    const char *name;
    tn_status code;
    int index;
  } cases[] = {
    { "x", TN_OK, 0 },                    /* S-NAM-01 */
    { "x:0", TN_OK, 0 },                  /* S-NAM-02 */
    { "split:2", TN_OK, 2 },
    { "mystery:9", TN_OK, 9 },            /* S-GRA-06 */
    { "x:1", TN_OUT_OF_RANGE, 0 },        /* S-NAM-04 */
    { "run:0", TN_OUT_OF_RANGE, 0 },
    { "run", TN_OUT_OF_RANGE, 0 },
    { "^x", TN_OUT_OF_RANGE, 0 },
    { "y", TN_NOT_FOUND, 0 },             /* S-NAM-05 */
    { "^y", TN_NOT_FOUND, 0 },
    { "y:0", TN_NOT_FOUND, 0 },
    { "", TN_INVALID_ARGUMENT, 0 },       /* S-NAM-08 */
    { NULL, TN_INVALID_ARGUMENT, 0 },
    { "x:", TN_INVALID_ARGUMENT, 0 },
    { ":0", TN_INVALID_ARGUMENT, 0 },
    { "^", TN_INVALID_ARGUMENT, 0 },
    { "x:-1", TN_INVALID_ARGUMENT, 0 },
    { "x:0:0", TN_INVALID_ARGUMENT, 0 },
    { "x:99999999999", TN_OUT_OF_RANGE, 0 },
    { "^x:0", TN_INVALID_ARGUMENT, 0 },
  };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_output x = gk_float_in(graph, "x");
  tn_operation_builder *b = tn_operation_begin(graph, "GkSplit", "split", 0);
  tn_operation_add_input(b, x);
  tn_operation_set_int(b, "N", 2);
  REQUIRE_OK(tn_operation_finish(b, NULL, &err), &err);
  REQUIRE_OK(tn_operation_finish(tn_operation_begin(graph, "GkRun", "run", 0), NULL, &err), &err);
  REQUIRE_OK(tn_operation_finish(tn_operation_begin(graph, "Mystery", "mystery", TN_BUILD_KEEP_UNKNOWN_OP), NULL, &err),
             &err);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_output out;
    tn__graph_read_lock(graph);
    tn_status st = tn__graph_parse_output(graph, cases[i].name, &out, &err);
    tn__graph_unlock(graph);
    const char *name = cases[i].name == NULL ? "NULL" : cases[i].name;
    CHECK_MSG(st == cases[i].code, "'%s' gives %s", name, tn_status_name(st));
    CHECK_MSG((out.op != NULL) == (st == TN_OK) && out.index == cases[i].index, "'%s' gives output %d", name,
              out.index);
    tn_error_clear(&err);
  }
  tn_graph_unref(graph);
}

/* ---- adding nodes while others read ---- */

typedef struct growing {
  tn_graph *graph;
  _Atomic int done;
} growing;

static void *read_while_growing(void *arg)
{
  growing *g = arg;
  while (!atomic_load(&g->done)) {
    size_t n = tn_graph_n_operations(g->graph);
    tn_operation *op = tn_graph_operation(g->graph, n - 1);
    if (op == NULL || tn_graph_find(g->graph, tn_operation_name(op)) != op) return g;
    int32_t rank;
    if (tn_operation_n_outputs(op) != 1 || tn_output_shape((tn_output){ op, 0 }, NULL, 0, &rank, NULL) != TN_OK)
      return g;
    if (tn_graph_find(g->graph, "never") != NULL) return g;
  }
  return NULL;
}

static void graph__grows_during_reads(void)
{
  tn_error err = TN_ERROR_INIT;
  growing g = { gk_new_graph(), 0 };
  tn_output last = gk_float_in(g.graph, "first");
  tn_operation *first = last.op;
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, read_while_growing, &g), 0);
  char name[32];
  for (int i = 0; i < 3000; i++) {
    snprintf(name, sizeof name, "n%d", i);
    REQUIRE_OK(gk_build2(g.graph, "GkAdd", name, last, last, &last.op, &err), &err);
    if (i % 10 == 0) /* a failed build in between */
      CHECK_STATUS(gk_build2(g.graph, "GkAdd", name, last, last, NULL, &err), TN_INVALID_ARGUMENT, &err);
  }
  atomic_store(&g.done, 1);
  for (int i = 0; i < 3; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    CHECK_NULL(failed);
  }
  CHECK_INT(tn_graph_n_operations(g.graph), 3001);
  CHECK(tn_graph_find(g.graph, "first") == first && tn_graph_operation(g.graph, 0) == first);
  tn_graph_unref(g.graph);
  tn_error_clear(&err);
}

TAP_MAIN(TAP_TEST(shapes__flow_through_a_graph), TAP_TEST(shapes__values_of_constants_are_used),
         TAP_TEST(shapes__of_a_long_chain), TAP_TEST(names__of_nodes), TAP_TEST(names__of_devices),
         TAP_TEST(names__of_outputs), TAP_TEST(graph__grows_during_reads))
