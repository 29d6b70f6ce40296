/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of a GraphDef. */
#define _GNU_SOURCE
#include "core/formats/pbtxt/pbtxt.h"
#include "conformance/support/graph_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static tn_status parse(const char *text, size_t size, tn__sink *out, tn_error *err)
{
  *out = tn__sink_memory(err);
  return tn__pbtxt_parse((tn__slice){ text, size }, "m.pbtxt", &tn__pb_graphdef, out, err);
}

/* The text form of the bytes of a text; freed by the next call. */
static const char *normal(const char *text)
{
  static tn__sink out;
  tn__sink bytes;
  tn_error err = TN_ERROR_INIT;
  tn__sink_fini(&out);
  out = tn__sink_memory(&err);
  bool ok = CHECK_OK(parse(text, strlen(text), &bytes, &err), &err) &&
            CHECK_OK(tn__pbtxt_print((tn__slice){ bytes.data, bytes.used }, &tn__pb_graphdef, &out, &err), &err);
  tn__sink_put(&out, "", 1);
  out.err = NULL;
  tn__sink_fini(&bytes);
  tn_error_clear(&err);
  return ok && out.data != NULL ? out.data : "";
}

/* The normalized text of an attribute's value. */
static const char *value(const char *text)
{
  static char found[400];
  char whole[400];
  snprintf(whole, sizeof whole, "node { attr { value { %s } } }", text);
  const char *at = normal(whole);
  const char *begin = strstr(at, "value {\n"), *end = strstr(at, "\n    }\n  }\n}");
  snprintf(found, sizeof found, "%.*s", begin == NULL || end == NULL || end < begin + 8 ? 0 : (int)(end - begin - 8),
           begin == NULL ? "" : begin + 8);
  size_t n = strspn(found, " ");
  memmove(found, found + n, strlen(found + n) + 1);
  return found;
}

static void refused(const char *text, const char *wanted)
{
  tn_error err = TN_ERROR_INIT;
  tn__sink bytes;
  CHECK_STATUS(parse(text, strlen(text), &bytes, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), wanted);
  tn__sink_fini(&bytes);
  tn_error_clear(&err);
}

/* ---- values ---- */

static void pbtxt__one_graph_in_many_forms(void)
{
  static const char wanted[] = "node {\n  name: \"x\"\n  input: \"a\"\n  input: \"b:1\"\n  attr {\n    key: \"T\"\n"
                               "    value {\n      type: DT_FLOAT\n    }\n  }\n}\nversions {\n  producer: 21\n}\n";
  CHECK_STR(normal(wanted), wanted);
  CHECK_STR(normal("node{name:'x'input:\"a\"input:\"b:1\"attr{key:\"T\"value{type:1}}}versions{producer:21}"), wanted);
  CHECK_STR(normal("\xef\xbb\xbf# a comment\r\nnode: <name: 'x'; input: ['a', 'b' \n':' # here, too\n '1'],\n"
                   "attr [ { key: \"T\", value: < type: DT_FLOAT > } ]> ; versions: { producer: 0x15, } # end"),
            wanted);
  CHECK_STR(normal(""), "");
  CHECK_STR(normal(" \n# nothing"), "");
  CHECK_STR(normal("node [ ] node []"), "");
}

/* The numbers of a list are packed together in the bytes; the field that follows is not part of
 * the list. */
static void pbtxt__a_list_ends_where_another_field_begins(void)
{
  const char *wanted = "versions {\n  bad_consumers: 170\n  bad_consumers: 3\n  min_consumer: 2474\n}\n";
  CHECK_STR(normal(wanted), wanted);
  CHECK_STR(normal("versions { bad_consumers: [170, 3] min_consumer: 2474 }"), wanted);
}

static void pbtxt__texts(void)
{
  CHECK_STR(value("s: 'a' \"b\"\n'c'"), "s: \"abc\"");
  CHECK_STR(value("s: \"\\n\\r\\t\\\"\\'\\\\\\a\\b\\f\\v\\?\""), "s: \"\\n\\r\\t\\\"\\'\\\\\\007\\010\\014\\013?\"");
  CHECK_STR(value("s: '\\0\\18\\377\\x4\\x41B\\X7fz'"), "s: \"\\000\\0018\\377\\004AB\\177z\"");
  CHECK_STR(value("s: '\\u00e9\\u20ac\\U0001f600\\ud83d\\ude00'"),
            "s: \"\\303\\251\\342\\202\\254\\360\\237\\230\\200\\360\\237\\230\\200\"");
  CHECK_STR(value("s: \"it's\""), "s: \"it\\'s\"");
  CHECK_STR(value("s: ''"), "s: \"\"");
  refused("node { name: 'x\n' }", "m.pbtxt:1:14: a text is not closed in its line");
  refused("node { name: 'x\\", "m.pbtxt:1:16: a text is not closed");
  refused("node { name: 'x' 'y }", "1:18: a text is not closed");
  refused("node { name: '\\400' }", "an escape is a number above 255");
  refused("node { name: '\\xg' }", "has no digits");
  refused("node { name: '\\q' }", "a backslash must be followed by one of");
  refused("node { name: '\\ud83d' }", "not a Unicode character");
  refused("node { name: '\\U00110000' }", "not a Unicode character");
  refused("node { name: '\\u12' }", "not a Unicode character");
  refused("node { name: x }", "found 'x', wanted a text in quotes");
}

static void pbtxt__integers(void)
{
  CHECK_STR(value("i: -9223372036854775808"), "i: -9223372036854775808");
  CHECK_STR(value("i: 0x7fffffffffffffff"), "i: 9223372036854775807");
  CHECK_STR(value("i: - 017"), "i: -15");
  CHECK_STR(value("i: 0"), "i: 0"); /* differs from an absent value */
  CHECK_STR(value("tensor { uint64_val: 18446744073709551615 }"),
            "tensor {\n        uint64_val: 18446744073709551615\n      }");
  CHECK_STR(value("tensor { int_val: [-1, 2147483647] }"),
            "tensor {\n        int_val: -1\n        int_val: 2147483647\n      }");
  CHECK_STR(value("tensor { uint32_val: 4294967295 }"), "tensor {\n        uint32_val: 4294967295\n      }");
  refused("node { attr { value { i: 9223372036854775808 } } }",
          "1:26: '9223372036854775808' is not an integer of 64 bits");
  refused("version: -2147483649", "'-2147483649' is not an integer of 32 bits");
  refused("version: 08", "'08' is not");
  refused("version: 0x", "'0x' is not");
  refused("version: 1.5", "'1.5' is not");
  refused("version: 'x'", "found ''', wanted an integer of 32 bits");
  refused("node { attr { value { tensor { uint32_val: -1 } } } }", "that is not negative");
}

static void pbtxt__truth_and_types(void)
{
  CHECK_STR(value("b: t"), "b: true");
  CHECK_STR(value("b: False"), "b: false");
  CHECK_STR(value("b: 1"), "b: true");
  CHECK_STR(value("type: DT_BFLOAT16_REF"), "type: DT_BFLOAT16_REF");
  CHECK_STR(value("type: 9"), "type: DT_INT64");
  CHECK_STR(value("type: 999"), "type: 999");
  CHECK_STR(value("list { type: [DT_INT32, 1] type: -5 }"),
            "list {\n        type: DT_INT32\n        type: DT_FLOAT\n        type: -5\n      }");
  refused("node { attr { value { b: 2 } } }", "'2' is not true or false");
  refused("node { attr { value { b: -1 } } }", "'-1' is not true or false");
  refused("node { attr { value { type: DT_NONE } } }", "DataType has no value 'DT_NONE'");
}

static void pbtxt__reals(void)
{
  CHECK_STR(value("f: 0.1"), "f: 0.1");
  CHECK_STR(value("f: 1.5F"), "f: 1.5");
  CHECK_STR(value("f: -2"), "f: -2");
  CHECK_STR(value("f: .25e+1f"), "f: 2.5");
  CHECK_STR(value("f: 1e-45"), "f: 1.4013e-45");
  CHECK_STR(value("f: 16777217"), "f: 16777216");
  CHECK_STR(value("f: -inf"), "f: -inf");
  CHECK_STR(value("f: Infinity"), "f: inf");
  CHECK_STR(value("f: nan"), "f: nan");
  CHECK_STR(value("f: -0.0"), "f: -0");
  CHECK_STR(value("tensor { double_val: 0.1 double_val: 0.30000000000000004 }"),
            "tensor {\n        double_val: 0.1\n        double_val: 0.30000000000000004\n      }");
  refused("node { attr { value { f: 0x10 } } }", "'0x10' is not a number");
  refused("node { attr { value { f: nanny } } }", "'nanny' is not a number");
  refused("node { attr { value { f: } } }", "found '}', wanted a number");
}

/* Each float is read back exactly. */
static void pbtxt__every_float_round_trips(void)
{
  uint32_t bits = 1;
  for (int i = 0; i < 20000; i++) {
    bits = bits * 1664525 + 1013904223;
    float f;
    memcpy(&f, &bits, sizeof f);
    if (isnan(f)) continue;
    gk_bytes v = { 0 }, entry = { 0 }, node = { 0 }, g = { 0 };
    gk_float(&v, 4, f);
    gk_message(&entry, 2, &v);
    gk_message(&node, 5, &entry);
    gk_message(&g, 1, &node);
    tn__sink text = tn__sink_memory(NULL), back = tn__sink_memory(NULL);
    CHECK_INT(tn__pbtxt_print((tn__slice){ (char *)g.data, g.size }, &tn__pb_graphdef, &text, NULL), TN_OK);
    CHECK_INT(tn__pbtxt_parse((tn__slice){ text.data, text.used }, "", &tn__pb_graphdef, &back, NULL), TN_OK);
    bool same = back.used == g.size && memcmp(back.data, g.data, g.size) == 0;
    CHECK_MSG(same, "%a was read back as another number: %.*s", (double)f, (int)text.used, text.data);
    tn__sink_fini(&text);
    tn__sink_fini(&back);
    gk_bytes_free(&g);
    if (!same) break;
  }
}

/* ---- messages ---- */

static void pbtxt__every_message_has_its_fields(void)
{
  static const char text[] =
      "library {\n  function {\n    signature {\n      name: \"f\"\n      input_arg {\n        name: \"x\"\n"
      "        type: DT_FLOAT\n        is_ref: true\n        experimental_full_type {\n          type_id: TFT_PRODUCT\n"
      "          args {\n            type_id: TFT_TENSOR\n            s: \"t\"\n          }\n        }\n      }\n"
      "      attr {\n        name: \"T\"\n        type: \"type\"\n        default_value {\n          type: DT_INT32\n"
      "        }\n        has_minimum: true\n        minimum: -3\n      }\n      deprecation {\n        version: 8\n"
      "      }\n      is_stateful: true\n      control_output: \"c\"\n    }\n    node_def {\n      name: \"n\"\n    }\n"
      "    ret {\n      key: \"y\"\n      value: \"n:out:0\"\n    }\n    arg_attr {\n      key: 0\n      value {\n"
      "        attr {\n          key: \"_u\"\n          value {\n            func {\n              name: \"g\"\n"
      "            }\n          }\n        }\n      }\n    }\n    resource_arg_unique_id {\n      key: 1\n"
      "      value: 2\n    }\n  }\n  gradient {\n    function_name: \"f\"\n    gradient_func: \"df\"\n  }\n"
      "  registered_gradients {\n    gradient_func: \"df\"\n    registered_op_type: \"Op\"\n  }\n}\n"
      "debug_info {\n  files: \"a.py\"\n  frames_by_id {\n    key: 7\n    value {\n      line: 3\n    }\n  }\n"
      "  traces_by_id {\n    key: 8\n    value {\n      frame_id: 7\n      frame_id: 9\n    }\n  }\n}\n";
  CHECK_STR(normal(text), text);
}

static void pbtxt__errors_name_the_position(void)
{
  refused("node {\n  name: \"x\"\n  nam: \"y\"\n}", "m.pbtxt:3:3: NodeDef has no field 'nam'");
  refused("nodes {}", "m.pbtxt:1:1: GraphDef has no field 'nodes'");
  refused("node {", "m.pbtxt:1:6: NodeDef has no '}'");
  refused("node <}", "found '}', wanted the name of a field");
  refused("node { name \"x\" }", "found '\"', wanted ':'");
  refused("node: 3", "found '3', wanted '{'");
  refused("node {}}", "found '}', wanted the name of a field");
  refused("node { name: 'x' name: 'y' }", "NodeDef has a field 'name' already");
  refused("node { name: ['x'] }", "found '[', wanted a text in quotes");
  refused("versions {} versions {}", "GraphDef has a field 'versions' already");
  refused("node { attr { value { i: 1 f: 2 } } }", "AttrValue has a field 'i' already, which excludes 'f'");
  refused("node { input: ['a' 'b' }", "found '}', wanted ',' or ']'");
  refused("node { input: ['a',] }", "wanted a text in quotes");
  refused("[type.googleapis.com/x] {}", "found '[', wanted the name of a field");
  refused("\x01", "m.pbtxt:1:1: found byte 0x01");
  refused("node", "m.pbtxt:1:5: the text ends, wanted '{'");
}

static void nested(gk_bytes *text, int depth)
{
  gk_put(text, "node { attr { value { ", 22);
  for (int i = 0; i < depth; i++) gk_put(text, "func { attr { value { ", 22);
  for (int i = 0; i < 3 * depth + 3; i++) gk_put(text, "}", 1);
}

static void pbtxt__nesting_is_limited(void)
{
  tn_error err = TN_ERROR_INIT;
  tn__sink bytes;
  gk_bytes text = { 0 };
  nested(&text, 32); /* 99 messages */
  CHECK_OK(parse((char *)text.data, text.size, &bytes, &err), &err);
  tn__sink out = tn__sink_memory(&err);
  CHECK_OK(tn__pbtxt_print((tn__slice){ bytes.data, bytes.used }, &tn__pb_graphdef, &out, &err), &err);
  tn__sink_fini(&out);
  tn__sink_fini(&bytes);
  gk_bytes_free(&text);
  nested(&text, 33);
  CHECK_STATUS(parse((char *)text.data, text.size, &bytes, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "nested too deeply");
  tn__sink_fini(&bytes);
  gk_bytes_free(&text);
  tn_error_clear(&err);
}

/* ---- bytes to text ---- */

static const char *printed(gk_bytes *g)
{
  static tn__sink out;
  tn__sink_fini(&out);
  out = tn__sink_memory(NULL);
  CHECK_INT(tn__pbtxt_print((tn__slice){ (char *)g->data, g->size }, &tn__pb_graphdef, &out, NULL), TN_OK);
  tn__sink_put(&out, "", 1);
  gk_bytes_free(g);
  return out.data;
}

static void pbtxt__repeated_fields(void)
{
  gk_bytes g = { 0 }, v = { 0 }, node = { 0 }, entry = { 0 };
  gk_int(&v, 1, 3);
  gk_int(&v, 2, 4);
  gk_message(&g, 4, &v);
  gk_int(&g, 3, 1);
  gk_int(&v, 1, 5);
  gk_message(&g, 4, &v);
  gk_int(&g, 3, 2);
  CHECK_STR(printed(&g), "versions {\n  min_consumer: 4\n  producer: 5\n}\nversion: 2\n");
  /* The last of several mutually exclusive fields wins; earlier ones are discarded. */
  gk_bytes list = { 0 };
  gk_int(&list, 3, 1);
  gk_message(&v, 1, &list);
  gk_int(&v, 3, 7);
  gk_int(&list, 3, 2);
  gk_message(&v, 1, &list);
  gk_int(&list, 3, 3);
  gk_message(&v, 1, &list);
  gk_message(&entry, 2, &v);
  gk_message(&node, 5, &entry);
  gk_message(&g, 1, &node);
  CHECK_STR(printed(&g),
            "node {\n  attr {\n    value {\n      list {\n        i: 2\n        i: 3\n      }\n    }\n  }\n}\n");
}

static void pbtxt__unknown_fields_become_comments(void)
{
  gk_bytes g = { 0 }, node = { 0 };
  gk_text(&node, 1, "x");
  gk_int(&node, 99, 1);
  gk_int(&node, 4, 1); /* a device must not be a number */
  gk_message(&g, 1, &node);
  const char *text = printed(&g);
  CHECK_STR(text, "node {\n  name: \"x\"\n  # field 99 is not known and is left out\n"
                  "  # field 4 is not known and is left out\n}\n");
}

static void pbtxt__malformed_bytes_are_rejected(void)
{
  tn_error err = TN_ERROR_INIT;
  static const char *const cases[] = { "\x12\x05\x0a", "\x12\x02\x0a\x05", "\x22\x03\x1a\x01\x80" };
  static const size_t sizes[] = { 3, 4, 5 };
  for (int i = 0; i < 3; i++) {
    tn__sink out = tn__sink_memory(&err);
    tn_status st = tn__pbtxt_print((tn__slice){ cases[i], sizes[i] }, &tn__pb_graphdef, &out, &err);
    CHECK_STATUS(st, TN_INVALID_ARGUMENT, &err);
    CHECK_CONTAINS(tn_error_message(&err), "malformed ");
    tn__sink_fini(&out);
    tn_error_clear(&err);
  }
}

/* ---- import ---- */

static void pbtxt__import_accepts_text(void)
{
  tn_error err = TN_ERROR_INIT;
  static const char text[] =
      "# a model\nnode { name: 'x' op: 'GkIn' attr { key: 'T' value { type: DT_FLOAT } }\n"
      "  attr { key: 'shape' value { shape { dim { size: 2 } } } } }\n"
      "node { name: 'y' op: 'GkAdd' input: ['x', 'x'] attr { key: 'T' value { type: DT_FLOAT } } }";
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT, .file = "my.graph" };
  tn_graph *graph;
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  CHECK_STATUS(tn_graph_import(graph, text, strlen(text), NULL, &err), TN_INVALID_ARGUMENT,
               &err); /* begins like bytes */
  CHECK_STATUS(tn_graph_import(graph, text, strlen(text) - 1, &options, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "my.graph:4:6: NodeDef has no '}'");
  CHECK_INT(tn_graph_n_operations(graph), 0);
  CHECK_OK(tn_graph_import(graph, text, strlen(text), &options, &err), &err);
  CHECK_INT(tn_graph_n_operations(graph), 2);
  CHECK_OK(tn_graph_import(graph, "node { name: 'z' op: 'GkRun' }", 30, NULL, &err), &err);
  CHECK(tn_graph_find(graph, "z") != NULL);
  CHECK_STATUS(tn_graph_import(graph, "node { name: 'z' op: 'GkRun' }", 30, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'z'");
  CHECK_OK(tn_graph_import(graph, NULL, 0, &options, &err), &err);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* ---- changed texts, large texts, lack of memory ---- */

static const char sample[] =
    "node { name: 'a\\001' op: \"O\" input: ['x', \"y\" 'z'] device: '/device:CPU:0'\n"
    " attr { key: 'k' value { list { i: [1, -2, 0x3] f: 1.5e3 f: inf b: true type: DT_FLOAT s: '\\xff' } } }\n"
    " attr < key: 'v' value < tensor < dtype: 1 tensor_shape { dim { size: 3 } } float_val: 0.5 float_val: nan > > > "
    "}\n"
    "library { function { signature { name: 'f' } ret { key: 'a' value: 'b' } } }\nversions { producer: 21 } # end\n";

static uint32_t next_random(uint32_t *seed) { return *seed = *seed * 1664525 + 1013904223, *seed >> 8; }

static void pbtxt__changed_texts(void)
{
  char copy[sizeof sample];
  uint32_t seed = 7;
  size_t rounds = 3000, taken = 0;
  const char *more = getenv("TENON_TEST_ROUNDS");
  if (more != NULL) rounds = strtoul(more, NULL, 10);
  for (size_t round = 0; round < rounds; round++) {
    memcpy(copy, sample, sizeof sample);
    size_t size = sizeof sample - 1;
    if (round < size) size = round; /* truncated at every byte */
    for (uint32_t k = round < size ? 0 : next_random(&seed) % 3 + 1; k > 0; k--)
      copy[next_random(&seed) % sizeof sample] = "{}<>[]:'\"\\#0x9-"[next_random(&seed) % 15];
    char *exact = malloc(size + 1);
    memcpy(exact, copy, size);
    tn__sink bytes, out = tn__sink_memory(NULL);
    if (parse(exact, size, &bytes, NULL) == TN_OK) {
      taken++;
      CHECK_INT(tn__pbtxt_print((tn__slice){ bytes.data, bytes.used }, &tn__pb_graphdef, &out, NULL), TN_OK);
    }
    tn__sink_fini(&bytes);
    tn__sink_fini(&out);
    free(exact);
  }
  CHECK(taken > 0 && taken < rounds);
}

/* The time is proportional to the text: many nodes, one long text, many numbers. */
static void pbtxt__large_texts(void)
{
  gk_bytes text = { 0 };
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < 30000; i++) {
    char node[100];
    int n = snprintf(node, sizeof node, "node { name: 'n%d' op: 'O' input: 'n%d' }\n", i, i / 2);
    gk_put(&text, node, (size_t)n);
  }
  gk_put(&text, "node { attr { key: 'k' value { tensor { float_val: [0", 53);
  for (int i = 0; i < 100000; i++) gk_put(&text, ", 1.25", 6);
  gk_put(&text, "] tensor_content: '", 19);
  for (int i = 0; i < 200000; i++) gk_put(&text, "\\000x", 5);
  gk_put(&text, "' } } } }", 9);
  clock_t before = clock();
  tn__sink bytes, out = tn__sink_memory(&err);
  CHECK_OK(parse((char *)text.data, text.size, &bytes, &err), &err);
  clock_t between = clock();
  CHECK_OK(tn__pbtxt_print((tn__slice){ bytes.data, bytes.used }, &tn__pb_graphdef, &out, &err), &err);
  tap_note("%.1f MB: read in %.0f ms, written in %.0f ms", (double)text.size / 1e6,
           (double)(between - before) * 1e3 / CLOCKS_PER_SEC, (double)(clock() - between) * 1e3 / CLOCKS_PER_SEC);
  CHECK(bytes.used < 5 * text.size);
  tn__sink_fini(&bytes);
  tn__sink_fini(&out);
  gk_bytes_free(&text);
}

static tn_status import_sample(void *arg)
{
  (void)arg;
  tn_graph *graph;
  tn_error err = TN_ERROR_INIT;
  static const char text[] =
      "node { name: 'x' op: 'GkRun' } node { name: 'y' op: 'O' attr { key: 'k' value { s: '\\n' } } }";
  tn_status st = tn_graph_create(&graph, &err);
  if (st == TN_OK) {
    st = tn_graph_import(graph, text, strlen(text), NULL, &err);
    CHECK_INT(tn_graph_n_operations(graph), st == TN_OK ? 2 : 0);
    tn_graph_unref(graph);
  }
  tn_error_clear(&err);
  return st;
}

static tn_status translate_sample(void *arg)
{
  (void)arg;
  tn__sink bytes, out = tn__sink_memory(NULL);
  tn_status st = parse(sample, sizeof sample - 1, &bytes, NULL);
  if (st == TN_OK) st = tn__pbtxt_print((tn__slice){ bytes.data, bytes.used }, &tn__pb_graphdef, &out, NULL);
  tn__sink_fini(&bytes);
  tn__sink_fini(&out);
  return st;
}

static void pbtxt__without_memory(void)
{
  gk_register();
  tn_test_oom_sweep(import_sample, NULL);
  tn_test_oom_sweep(translate_sample, NULL);
}

TAP_MAIN(TAP_TEST(pbtxt__one_graph_in_many_forms), TAP_TEST(pbtxt__a_list_ends_where_another_field_begins),
  TAP_TEST(pbtxt__texts),
              TAP_TEST(pbtxt__integers), TAP_TEST(pbtxt__truth_and_types), TAP_TEST(pbtxt__reals),
              TAP_TEST(pbtxt__every_float_round_trips), TAP_TEST(pbtxt__every_message_has_its_fields),
              TAP_TEST(pbtxt__errors_name_the_position), TAP_TEST(pbtxt__nesting_is_limited),
              TAP_TEST(pbtxt__repeated_fields), TAP_TEST(pbtxt__unknown_fields_become_comments),
              TAP_TEST(pbtxt__malformed_bytes_are_rejected), TAP_TEST(pbtxt__import_accepts_text),
              TAP_TEST(pbtxt__changed_texts), TAP_TEST(pbtxt__large_texts), TAP_TEST(pbtxt__without_memory))
