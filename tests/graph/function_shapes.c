/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes through functions: calls by name, ops that call functions, and libraries built to take
 * forever. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conformance/support/graph_kit.h"

#define IN(name, dims) \
  "node { name: '" name "' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }" \
  " attr { key: 'shape' value { shape { " dims " } } } }\n"
#define T(type) "attr { key: 'T' value { type: " type " } }"
#define D(n) "dim { size: " #n " } "
/* f(x: float) -> (y: float) */
#define UNARY(name) \
  "signature { name: '" name "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } }"
#define RET(from) "ret { key: 'y' value: '" from "' }"
#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define BODY(name, op, inputs, attrs) "node_def { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define FUNC(key, name) "attr { key: '" key "' value { func { name: '" name "' } } }"
#define TYPES(key, types) "attr { key: '" key "' value { list { " types " } } }"
#define ONE "type: DT_FLOAT"

static tn_graph *import_text(const char *text, tn_error *err)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_graph *graph;
  if (tn_graph_create(&graph, err) != TN_OK) return NULL;
  if (tn_graph_import(graph, text, strlen(text), &options, err) == TN_OK) return graph;
  tn_graph_unref(graph);
  return NULL;
}

/* "[2,?]", "?" for an unknown rank. */
static const char *shape_of(tn_graph *graph, const char *node, int32_t output)
{
  static char text[200];
  int64_t dims[20];
  int32_t rank;
  tn_output o = { tn_graph_find(graph, node), output };
  if (o.op == NULL || tn_output_shape(o, dims, 20, &rank, NULL) != TN_OK) return "none";
  if (rank < 0) return "?";
  strcpy(text, "[");
  for (int32_t k = 0; k < rank; k++) {
    char number[24] = "?";
    if (dims[k] >= 0) snprintf(number, sizeof number, "%lld", (long long)dims[k]);
    if (k > 0) strcat(text, ",");
    strcat(text, number);
  }
  return strcat(text, "]");
}

static void expect(const char *text, const char *const *pairs)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = import_text(text, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  for (; pairs[0] != NULL; pairs += 2) CHECK_STR(shape_of(graph, pairs[0], 0), pairs[1]);
  tn_graph_unref(graph);
}

#define TWICE "function { " UNARY("Twice") BODY("s", "AddV2", "input: 'x' input: 'x'", T("DT_FLOAT")) RET("s:z:0") "}\n"
#define TIMES \
  "function { signature { name: 'Times' input_arg { name: 'a' type_attr: 'T' } input_arg { name: 'b' type_attr: 'T' }" \
  " output_arg { name: 'y' type_attr: 'T' } attr { name: 'T' type: 'type' } }" \
  BODY("p", "MatMul", "input: 'a' input: 'b'", "attr { key: 'T' value { placeholder: 'T' } }") RET("p:product:0") "}\n"
#define AGAIN "function { " UNARY("Again") BODY("c", "Twice", "input: 'x'", "") RET("c:y:0") "}\n"

static void function_shapes__of_calls_by_name(void)
{
  expect("library { " TWICE TIMES AGAIN "}" IN("a", D(2) D(3)) IN("b", D(3) D(-1)) NODE("t", "Twice", "input: 'a'", "")
         NODE("u", "Twice", "input: 'b'", "") NODE("n", "Again", "input: 'b'", "")
         NODE("m", "Times", "input: 'a' input: 'b'", T("DT_FLOAT")) NODE("r", "Relu", "input: 'm'", T("DT_FLOAT")),
         (const char *const[]){ "t", "[2,3]", "u", "[3,?]", "n", "[3,?]", "m", "[2,?]", "r", "[2,?]", NULL });
}

/* Known values are passed into functions and out of them, too. */
static void function_shapes__of_computed_sizes(void)
{
  expect(
      "library { function { signature { name: 'To' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 's' type: "
      "DT_INT32 } output_arg { name: 'y' type: DT_FLOAT } output_arg { name: 'n' type: DT_INT32 } }" BODY(
          "r", "Reshape", "input: 'x' input: 's'", T("DT_FLOAT"))
          BODY("h", "Shape", "input: 'r:output:0'", T("DT_FLOAT"))
              RET("r:output:0") "ret { key: 'n' value: 'h:output:0' } } }" IN("a", D(2) D(6)) IN("b", D(-1))
                  NODE("s", "Const", "",
                       "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: "
                       "DT_INT32 tensor_shape { dim { size: 2 } } int_val: 3 int_val: 4 } } }")
                      NODE("c", "To", "input: 'a' input: 's'", "")
                          NODE("d", "Reshape", "input: 'b' input: 'c:1'", T("DT_FLOAT")),
      (const char *const[]){ "c", "[3,4]", "d", "[3,4]", NULL });
}

static void function_shapes__of_lists(void)
{
  expect("library { function { signature { name: 'L' input_arg { name: 'x' type: DT_FLOAT number_attr: 'N' }"
         " output_arg { name: 'y' type: DT_FLOAT number_attr: 'N' } output_arg { name: 'last' type: DT_FLOAT }"
         " attr { name: 'N' type: 'int' has_minimum: true minimum: 1 } }"
         BODY("i", "IdentityN", "input: 'x'", TYPES("T", "type: DT_FLOAT type: DT_FLOAT"))
         RET("i:output") "ret { key: 'last' value: 'x:1' } } }" IN("a", D(2)) IN("b", D(3))
         NODE("c", "L", "input: 'b' input: 'a'", "attr { key: 'N' value { i: 2 } }")
         NODE("d", "Relu", "input: 'c:1'", T("DT_FLOAT")) NODE("e", "Relu", "input: 'c:2'", T("DT_FLOAT")),
         (const char *const[]){ "c", "[3]", "d", "[2]", "e", "[2]", NULL });
}

static void function_shapes__of_partitioned_calls(void)
{
  static const char *const ops[] = { "PartitionedCall", "StatefulPartitionedCall" };
  for (int i = 0; i < 2; i++) {
    char text[6000];
    snprintf(text, sizeof text,
             "library { " TWICE TIMES "}" IN("a", D(2) D(3)) IN("b", D(3) D(5))
                 NODE("c", "%s", "input: 'a'", FUNC("f", "Twice") TYPES("Tin", ONE) TYPES("Tout", ONE)) NODE(
                     "m", "%s", "input: 'a' input: 'b'",
                     "attr { key: 'f' value { func { name: 'Times' " T("DT_FLOAT") " } } }" TYPES("Tin", ONE " " ONE)
                         TYPES("Tout", ONE))
                     NODE("g", "%s", "input: 'a'", FUNC("f", "Gone") TYPES("Tin", ONE) TYPES("Tout", ONE)),
             ops[i], ops[i], ops[i]);
    expect(text, (const char *const[]){ "c", "[2,3]", "m", "[2,5]", "g", "?", NULL });
  }
}

#define BOOL "node { name: 'k' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }\n"
#define NUMBER "node { name: 'j' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }\n"
#define AXIS(name, n)                                                                                \
  BODY(name, "Const", "",                                                                            \
       "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: " \
       "DT_INT32 tensor_shape { } int_val: " n " } } }")
/* Drop removes the first dimension; the other adds one in front. */
#define DROP "function { " UNARY("Drop") AXIS("ax", "0") \
  BODY("s", "Sum", "input: 'x' input: 'ax:output:0'", T("DT_FLOAT")) RET("s:output:0") "}\n"
#define KEEP "function { " UNARY("Keep") AXIS("ax", "0") \
  BODY("s", "Sum", "input: 'x' input: 'ax:output:0'", T("DT_FLOAT") "attr { key: 'keep_dims' value { b: true } }") \
  RET("s:output:0") "}\n"
#define LISTS TYPES("Tin", ONE) TYPES("Tout", ONE)
#define IF(name, op, a, b, more) \
  NODE(name, op, "input: 'k' input: 'a'", "attr { key: 'Tcond' value { type: DT_BOOL } }" LISTS FUNC("then_branch", a) \
       FUNC("else_branch", b) more)
#define GIVEN(dims) "attr { key: 'output_shapes' value { list { shape { " dims " } } } }"

static void function_shapes__of_branches_are_merged(void)
{
  expect("library { " TWICE DROP KEEP "}" BOOL NUMBER IN("a", D(2) D(3)) IF("same", "If", "Twice", "Twice", "")
             IF("dim", "StatelessIf", "Twice", "Keep", "") IF("rank", "If", "Twice", "Drop", "")
                 IF("gone", "If", "Twice", "Gone", "") IF("given", "If", "Twice", "Gone", GIVEN(D(7) D(-1)))
                     IF("both", "If", "Twice", "Keep", GIVEN(D(9) D(-1)))
                         NODE("case", "Case", "input: 'j' input: 'a'",
                              LISTS "attr { key: 'branches' value { list { func { name: 'Twice' } "
                                    "func { name: 'Keep' } func { name: 'Twice' } } } }")
                             NODE("less", "StatelessCase", "input: 'j' input: 'a'",
                                  LISTS "attr { key: 'branches' value { list { func { name: "
                                        "'Drop' } } } }"),
         (const char *const[]){ "same", "[2,3]", "dim", "[?,3]", "rank", "?", "gone", "?", "given", "[7,?]", "both",
                                "[9,3]", "case", "[?,3]", "less", "[3]", NULL });
}

#define TRUE_FUNCTION                                                                                                \
  "function { signature { name: 'Go' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_BOOL } " \
  "}" BODY("c", "Const", "",                                                                                         \
           "attr { key: 'dtype' value { type: DT_BOOL } } attr { key: 'value' value { tensor { dtype: DT_BOOL "      \
           "tensor_shape { } bool_val: true } } }") RET("c:output:0") "}\n"
#define WHILE(name, op, body, more) \
  NODE(name, op, "input: 'a'", TYPES("T", ONE) FUNC("cond", "Go") FUNC("body", body) more)

static void function_shapes__of_loops_are_invariant(void)
{
  expect("library { " TWICE KEEP DROP TRUE_FUNCTION "}" IN("a", D(2) D(3)) WHILE("same", "While", "Twice", "")
             WHILE("dim", "StatelessWhile", "Keep", "") WHILE("rank", "While", "Drop", "")
                 WHILE("gone", "While", "Gone", "") WHILE("given", "While", "Gone", GIVEN(D(-1) D(3))),
         (const char *const[]){ "same", "[2,3]", "dim", "[?,3]", "rank", "?", "gone", "?", "given", "[?,3]", NULL });
}

static void function_shapes__of_gradients_are_those_of_inputs(void)
{
  expect("library { " TWICE "}" IN("a", D(2) D(3)) IN("g", D(2) D(3))
         NODE("d", "SymbolicGradient", "input: 'a' input: 'g'", FUNC("f", "Twice") TYPES("Tin", ONE " " ONE)
              TYPES("Tout", ONE)),
         (const char *const[]){ "d", "[2,3]", NULL });
}

/* An import accepts whatever TensorFlow accepts; a program that builds such a node gets an
 * error. */
static void function_shapes__of_mismatched_calls_are_unknown(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = import_text(
      "library { " TWICE TIMES
      "}" IN("a", D(2) D(3)) NODE("types", "PartitionedCall", "input: 'a'",
                                  FUNC("f", "Twice") TYPES("Tin", ONE) TYPES("Tout", "type: DT_INT32"))
          NODE("more", "PartitionedCall", "input: 'a'", FUNC("f", "Twice") TYPES("Tin", ONE) TYPES("Tout", ONE " " ONE))
              NODE("less", "PartitionedCall", "", FUNC("f", "Twice") TYPES("Tin", "") TYPES("Tout", ONE))
                  NODE("attr", "PartitionedCall", "input: 'a' input: 'a'",
                       FUNC("f", "Times") TYPES("Tin", ONE " " ONE) TYPES("Tout", ONE)),
      &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  static const struct {
    const char *node, *message;
  } wrong[] = {
    { "types", "output 0 of function 'Twice' has type float32, but that of the node has type int32" },
    { "more", "function 'Twice' returns 1 tensors, but the node has 2 outputs" },
    { "less", "function 'Twice': op 'Twice' takes 1 inputs, found 0" },
    { "attr", "function 'Times': attribute 'T' (a type) is missing" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tn_operation *from = tn_graph_find(graph, wrong[i].node), *op;
    CHECK_STR(shape_of(graph, wrong[i].node, 0), "?");
    tn_operation_builder *b = tn_operation_begin(graph, "PartitionedCall", "copy", 0);
    tn_output inputs[2] = { tn_operation_input(from, 0), tn_operation_input(from, 1) };
    const tn_dtype *types;
    size_t n;
    tn_operation_add_input_list(b, inputs, tn_operation_n_inputs(from));
    const char *f;
    CHECK_OK(tn_operation_attr_func(from, "f", &f, &err), &err);
    tn_operation_set_func(b, "f", f);
    CHECK_OK(tn_operation_attr_types(from, "Tout", &types, &n, &err), &err);
    tn_operation_set_types(b, "Tout", types, n);
    CHECK_STATUS(tn_operation_finish(b, &op, &err), TN_INVALID_ARGUMENT, &err);
    CHECK_CONTAINS(tn_error_message(&err), wrong[i].message);
  }
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* ---- libraries that would take forever ---- */

/* CPU time of this process, so that other load on the machine does not count. The limits are far
 * above the time needed, also with sanitizers, and far below the time of a quadratic algorithm. */
static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void expect_soon(const char *text, const char *node, const char *shape)
{
  double start = seconds();
  expect(text, (const char *const[]){ node, shape, NULL });
  CHECK_MSG(seconds() - start < 40, "took %.1f s", seconds() - start);
}

static void function_shapes__recursion_ends(void)
{
  expect_soon("library { function { " UNARY("R") BODY("c", "R", "input: 'x'", "") RET("c:y:0") "} }" IN("a", D(2))
              NODE("n", "R", "input: 'a'", ""), "n", "?");
  /* The shapes differ every time, so earlier results cannot be reused. */
  expect_soon("library { function { " UNARY("R") AXIS("ax", "0")
                  BODY("e", "ExpandDims", "input: 'x' input: 'ax:output:0'", T("DT_FLOAT"))
                      BODY("c", "R", "input: 'e:output:0'", "") BODY("d", "R", "input: 'c:y:0'", "")
                          RET("d:y:0") "} }" IN("a", D(2)) NODE("n", "R", "input: 'a'", ""),
              "n", "?");
  expect_soon("library { function { " UNARY("C") BODY("p", "Relu", "input: 'q:activations:0'", T("DT_FLOAT"))
              BODY("q", "Relu", "input: 'p:activations:0'", T("DT_FLOAT")) RET("q:activations:0") "} }" IN("a", D(2))
              NODE("n", "C", "input: 'a'", ""), "n", "?");
}

/* Each function calls the next one twice; with `grows` the second call has a longer vector, of a
 * different length on each path. */
static char *chain(int depth, bool grows)
{
  size_t room = 2000 + (size_t)depth * 2000, used = 0;
  char *text = calloc(1, room);
  used += (size_t)snprintf(text, room, "library {");
  for (int i = 0; i < depth; i++)
    used += (size_t)snprintf(text + used, room - used,
                             "function { " UNARY("F%d") BODY("c", "F%d", "input: 'x'", "") AXIS("ax", "0")
                             BODY("k", "Placeholder", "", "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: "
                                  "'shape' value { shape { dim { size: %lld } } } }")
                             BODY("e", "ConcatV2", "input: 'x' input: 'k:output:0' input: 'ax:output:0'", T("DT_FLOAT")
                                  "attr { key: 'N' value { i: 2 } }")
                             BODY("d", "F%d", "input: '%s'", "") BODY("b", "ConcatV2", "input: 'c:y:0' input: 'd:y:0' "
                                  "input: 'ax:output:0'", T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }")
                             RET("%s:0") "}\n",
                             i, i + 1, 1LL << (i % 40), i + 1, grows ? "e:output:0" : "x", grows ? "b:output" : "d:y");
  used += (size_t)snprintf(text + used, room - used, "function { " UNARY("F%d") RET("x") "} }" IN("a", D(2))
                           NODE("n", "F0", "input: 'a'", ""), depth);
  return text;
}

static void function_shapes__exponential_libraries_end(void)
{
  char *text = chain(25, false); /* 2^25 calls, all with one shape */
  expect_soon(text, "n", "[2]");
  free(text);
  text = chain(25, true); /* each with a different shape */
  expect_soon(text, "n", "[?]");
  free(text);
  text = chain(200, false); /* deeper than the search goes */
  expect_soon(text, "n", "?");
  free(text);
}

/* The same with functions as values that have many attributes, all of which each call must copy. */
static void function_shapes__attributes_of_calls_count(void)
{
  enum { DEPTH = 25, N = 300, ROOM = 1 << 20 };
  char *text = calloc(1, ROOM), *attrs = calloc(1, ROOM / 8);
  size_t n = 0, used = (size_t)snprintf(text, ROOM, "library {");
  for (int i = 0; i < N; i++)
    n += (size_t)snprintf(attrs + n, ROOM / 8 - n, "attr { key: 'a%d' value { i: 1 } }", i);
  for (int i = 0; i < DEPTH; i++)
    used += (size_t)snprintf(
        text + used, ROOM - used,
        "function { " UNARY("F%d") BODY("c", "PartitionedCall", "input: 'x'",
                                        "attr { key: 'f' value "
                                        "{ func { name: 'F%d' %s } } } " TYPES("Tin", ONE) TYPES("Tout", ONE))
            AXIS("ax", "0") BODY("k", "Placeholder", "",
                                 "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: "
                                 "'shape' value { shape { dim { size: %lld } } } }")
                BODY("e", "ConcatV2", "input: 'c:output:0' input: 'k:output:0' input: 'ax:output:0'",
                     T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }") BODY("d", "F%d", "input: 'e:output:0'", "")
                    RET("d:y:0") "}\n",
        i, i + 1, attrs, 1LL << i, i + 1);
  snprintf(text + used, ROOM - used,
           "function { " UNARY("F%d") RET("x") "} }" IN("a", D(2)) NODE("n", "F0", "input: 'a'", ""), DEPTH);
  double start = seconds();
  expect(text, (const char *const[]){ "n", "?", NULL });
  CHECK_MSG(seconds() - start < 12, "took %.1f s", seconds() - start);
  free(text);
  free(attrs);
}

/* A node that uses the last of very many outputs very often: each use looks it up by name. */
static void function_shapes__of_very_many_outputs_are_found_quickly(void)
{
  enum { N = 50000, ROOM = 1 << 23 };
  char *text = calloc(1, ROOM);
  size_t used = (size_t)snprintf(text, ROOM, "library { function { signature { name: 'G'");
  for (int i = 0; i < N; i++)
    used += (size_t)snprintf(text + used, ROOM - used, " output_arg { name: 'o%05d' type: DT_FLOAT }", i);
  used += (size_t)snprintf(text + used, ROOM - used, "} } function { " UNARY("F") BODY("g", "G", "", "")
                           " node_def { name: 'p' op: 'NoSuchOp'");
  for (int i = 0; i < N; i++) used += (size_t)snprintf(text + used, ROOM - used, " input: 'g:o%05d:0'", N - 1);
  snprintf(text + used, ROOM - used, " } " RET("p:y:0") "} }" IN("a", D(2)) NODE("n", "F", "input: 'a'", ""));
  double start = seconds();
  expect(text, (const char *const[]){ "n", "?", NULL });
  CHECK_MSG(seconds() - start < 12, "took %.1f s", seconds() - start);
  free(text);
}

/* ---- changed files ---- */

static void read_all(tn_graph *graph)
{
  int32_t rank;
  for (size_t i = 0; i < tn_graph_n_operations(graph); i++)
    for (size_t k = 0; k < tn_operation_n_outputs(tn_graph_operation(graph, i)) && k < 10; k++)
      tn_output_shape((tn_output){ tn_graph_operation(graph, i), (int32_t)k }, NULL, 0, &rank, NULL);
  for (size_t i = 0; i < tn_graph_n_functions(graph); i++) {
    const tn_function *f = tn_graph_function(graph, i);
    const tn_operation *op;
    tn_function_self(f, &op, NULL);
    for (size_t k = 0; k < tn_function_n_nodes(f); k++) {
      if (tn_function_node(f, k, &op, NULL) != TN_OK) continue;
      for (size_t a = 0; a < tn_operation_n_attrs(op); a++) {
        tn_attr_value value = { .struct_size = sizeof value };
        tn_operation_attr_value(op, tn_operation_attr_name(op, a), 0, &value, NULL);
      }
    }
  }
}

static void function_shapes__of_changed_files_do_not_crash(void)
{
  static const char text[] = "library { " TWICE TIMES KEEP TRUE_FUNCTION AGAIN "}" BOOL IN("a", D(2) D(3))
      IN("b", D(3) D(5)) NODE("n", "Again", "input: 'a'", "") IF("i", "If", "Twice", "Keep", GIVEN(D(-1) D(3)))
          WHILE("w", "While", "Keep", "")
              NODE("m", "PartitionedCall", "input: 'a' input: 'b'",
                   "attr { key: 'f' value { func { name: 'Times' " T("DT_FLOAT") " } } }" TYPES("Tin", ONE " " ONE)
                       TYPES("Tout", ONE));
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = import_text(text, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  void *bytes;
  size_t size, taken = 0;
  CHECK_OK(tn_graph_export(graph, 0, &bytes, &size, &err), &err);
  tn_graph_unref(graph);
  unsigned state = 1;
  for (int round = 0; round < 4000; round++) {
    uint8_t *changed = malloc(size);
    memcpy(changed, bytes, size);
    for (int k = 0; k < 1 + round % 3; k++) {
      state = state * 1103515245u + 12345u;
      size_t at = (state >> 8) % size;
      state = state * 1103515245u + 12345u;
      changed[at] = (uint8_t)(state >> 16);
    }
    CHECK_OK(tn_graph_create(&graph, &err), &err);
    if (tn_graph_import(graph, changed, size, NULL, NULL) == TN_OK) {
      read_all(graph);
      taken++;
    }
    tn_graph_unref(graph);
    free(changed);
  }
  CHECK(taken > 50);
  tn_free(bytes);
  tn_error_clear(&err);
}

/* ---- memory ---- */

static tn_status ask_all(void *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_graph *graph;
  tn_status st = tn_graph_create(&graph, NULL);
  if (st == TN_OK) st = tn_graph_import(graph, text, strlen(text), &options, NULL);
  for (size_t i = 0; st == TN_OK && i < tn_graph_n_operations(graph); i++) {
    tn_operation *op = tn_graph_operation(graph, i);
    int32_t rank;
    for (size_t k = 0; st == TN_OK && k < tn_operation_n_outputs(op); k++)
      st = tn_output_shape((tn_output){ op, (int32_t)k }, NULL, 0, &rank, NULL);
  }
  tn_graph_unref(graph);
  return st;
}

static void function_shapes__without_memory(void)
{
  static char text[] = "library { " TWICE TIMES KEEP TRUE_FUNCTION AGAIN "}" BOOL IN("a", D(2) D(3)) IN("b", D(3) D(5))
      NODE("n", "Again", "input: 'a'", "") IF("i", "If", "Twice", "Keep", GIVEN(D(-1) D(3)))
          WHILE("w", "While", "Keep", "")
              NODE("m", "PartitionedCall", "input: 'a' input: 'b'",
                   "attr { key: 'f' value { func { name: 'Times' " T("DT_FLOAT") " } } }" TYPES("Tin", ONE " " ONE)
                       TYPES("Tout", ONE));
  gk_register();
  tn_test_oom_sweep(ask_all, text);
}

TAP_MAIN(
  TAP_TEST(function_shapes__of_calls_by_name),
  TAP_TEST(function_shapes__of_computed_sizes),
  TAP_TEST(function_shapes__of_lists),
  TAP_TEST(function_shapes__of_partitioned_calls),
  TAP_TEST(function_shapes__of_branches_are_merged),
  TAP_TEST(function_shapes__of_loops_are_invariant),
  TAP_TEST(function_shapes__of_gradients_are_those_of_inputs),
  TAP_TEST(function_shapes__of_mismatched_calls_are_unknown),
  TAP_TEST(function_shapes__recursion_ends),
  TAP_TEST(function_shapes__exponential_libraries_end),
  TAP_TEST(function_shapes__attributes_of_calls_count),
  TAP_TEST(function_shapes__of_very_many_outputs_are_found_quickly),
  TAP_TEST(function_shapes__of_changed_files_do_not_crash),
  TAP_TEST(function_shapes__without_memory))
