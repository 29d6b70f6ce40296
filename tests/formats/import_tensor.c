/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in a GraphDef: every type and form, and false sizes. */
#include "core/formats/graphdef/graphdef.h"
#include "conformance/support/graph_kit.h"

#include <stdlib.h>
#include <string.h>

static tn_tensor *constant(gk_bytes *proto, tn_graph **graph, tn_error *err)
{
  gk_bytes g = { 0 }, node = { 0 };
  gk_node(&node, "c", "Mystery", NULL); /* the type is that of the tensor */
  gk_attr_tensor(&node, "value", proto);
  gk_add_node(&g, &node);
  *graph = gk_import(&g, err);
  gk_bytes_free(&g);
  tn_tensor *tensor = NULL;
  if (*graph != NULL) tn_operation_attr_tensor(tn_graph_operation(*graph, 0), "value", &tensor, err);
  return tensor;
}

/* Values in the field of their type: packed and not, fewer than there are elements, and more. */
static void tensor__numbers_of_every_type(void)
{
  static const struct {
    int dtype, field, wire; /* 0 varint, 4 fixed32, 8 fixed64 */
  } types[] = {
    { TN_FLOAT, 5, 4 },  { TN_DOUBLE, 6, 8 },    { TN_INT32, 7, 0 },   { TN_UINT8, 7, 0 },   { TN_INT16, 7, 0 },
    { TN_INT8, 7, 0 },   { TN_COMPLEX64, 9, 4 }, { TN_INT64, 10, 0 },  { TN_BOOL, 11, 0 },   { TN_QINT8, 7, 0 },
    { TN_QUINT8, 7, 0 }, { TN_QINT32, 7, 0 },    { TN_BFLOAT16, 13, 0 }, { TN_QINT16, 7, 0 }, { TN_QUINT16, 7, 0 },
    { TN_UINT16, 7, 0 }, { TN_COMPLEX128, 12, 8 }, { TN_HALF, 13, 0 }, { TN_UINT32, 16, 0 }, { TN_UINT64, 17, 0 },
    { TN_INT4, 7, 0 },   { TN_UINT4, 7, 0 },     { TN_UINT2, 7, 0 },
  };
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    for (int packed = 0; packed <= 1; packed++) {
      for (int n = 0; n <= 5; n++) { /* values for 3 elements */
        tn_error err = TN_ERROR_INIT;
        gk_bytes proto = { 0 }, run = { 0 };
        const int64_t dims[] = { 3 };
        int parts = types[k].dtype == TN_COMPLEX64 || types[k].dtype == TN_COMPLEX128 ? 2 : 1;
        gk_tensor(&proto, types[k].dtype, dims, 1, NULL, 0);
        for (int i = 0; i < n * parts; i++) {
          float f = (float)(i + 1);
          double d = i + 1;
          if (types[k].wire == 0 && packed) gk_varint(&run, (uint64_t)(i + 1));
          if (types[k].wire == 0 && !packed) gk_int(&proto, (unsigned)types[k].field, i + 1);
          if (types[k].wire == 4 && packed) gk_put(&run, &f, 4);
          if (types[k].wire == 4 && !packed) gk_float(&proto, (unsigned)types[k].field, f);
          if (types[k].wire == 8 && packed) gk_put(&run, &d, 8);
          if (types[k].wire == 8 && !packed) gk_double(&proto, (unsigned)types[k].field, d);
        }
        if (packed && n > 0) gk_message(&proto, (unsigned)types[k].field, &run);
        tn_graph *graph;
        tn_tensor *t = constant(&proto, &graph, &err);
        REQUIRE_MSG(t != NULL, "type %d: %s", types[k].dtype, tn_error_message(&err));
        CHECK_INT(tn_tensor_dtype(t), types[k].dtype);
        size_t size = tn_dtype_size(types[k].dtype) / (size_t)parts;
        const char *data = tn_tensor_data(t);
        for (int i = 0; i < 3 * parts; i++) {
          int element = i / parts, from = element < n ? element : n - 1; /* the last value is repeated */
          double wanted = n == 0 ? 0 : from * parts + i % parts + 1, found = 0;
          if (types[k].dtype == TN_BOOL && wanted != 0) wanted = 1;
          uint64_t bits = 0;
          memcpy(&bits, data + (size_t)i * size, size);
          if (types[k].wire == 4) found = ((const float *)data)[i];
          if (types[k].wire == 8) found = ((const double *)data)[i];
          if (types[k].wire == 0) found = (double)bits;
          CHECK_MSG(found == wanted, "type %s, packed %d, %d values: element %d is %g, wanted %g",
                    tn_dtype_name(types[k].dtype), packed, n, i, found, wanted);
        }
        tn_graph_unref(graph);
      }
    }
  }
}

static void tensor__negative_and_wide_numbers(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes proto = { 0 };
  const int64_t dims[] = { 2, 1 };
  tn_graph *graph;
  gk_tensor(&proto, TN_INT8, dims, 2, NULL, 0);
  gk_int(&proto, 7, -3);
  tn_tensor *t = constant(&proto, &graph, &err);
  REQUIRE_PTR(t);
  CHECK_INT(tn_tensor_rank(t), 2);
  CHECK_INT(((int8_t *)tn_tensor_data(t))[1], -3);
  tn_graph_unref(graph);
  gk_tensor(&proto, TN_UINT64, dims, 2, NULL, 0);
  gk_int(&proto, 17, -1);
  gk_int(&proto, 17, 1);
  t = constant(&proto, &graph, &err);
  REQUIRE_PTR(t);
  CHECK(((uint64_t *)tn_tensor_data(t))[0] == UINT64_MAX && ((uint64_t *)tn_tensor_data(t))[1] == 1);
  tn_graph_unref(graph);
  gk_tensor(&proto, TN_FLOAT8_E5M2, dims, 2, NULL, 0);
  gk_data(&proto, 18, "\x3c\x40", 2);
  t = constant(&proto, &graph, &err);
  REQUIRE_PTR(t);
  CHECK_INT(((uint8_t *)tn_tensor_data(t))[1], 0x40);
  tn_graph_unref(graph);
}

/* A byte out of the range of its type is mapped into it, so that kernels need not check. */
static void tensor__types_narrower_than_a_byte(void)
{
  static const struct {
    int64_t dtype;
    uint8_t wanted[4]; /* for bytes 0, 1, 2, 0xff */
  } cases[] = { { TN_BOOL, { 0, 1, 1, 1 } },        { TN_UINT4, { 0, 1, 2, 15 } }, { TN_UINT2, { 0, 1, 2, 3 } },
                { TN_INT4, { 0, 1, 2, 255 } },      { TN_INT2, { 0, 1, 254, 255 } }, { TN_INT8, { 0, 1, 2, 255 } } };
  const int64_t dims[] = { 4 };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_error err = TN_ERROR_INIT;
    gk_bytes proto = { 0 };
    tn_graph *graph;
    gk_tensor(&proto, cases[i].dtype, dims, 1, "\0\1\2\xff", 4);
    tn_tensor *t = constant(&proto, &graph, &err);
    REQUIRE_MSG(t != NULL, "%s", tn_error_message(&err));
    CHECK_BYTES(tn_tensor_data(t), cases[i].wanted, 4);
    tn_graph_unref(graph);
  }
}

static void tensor__strings(void)
{
  tn_error err = TN_ERROR_INIT;
  const int64_t dims[] = { 3 };
  tn_graph *graph;
  const char *text;
  size_t length;
  for (int form = 0; form <= 1; form++) {
    gk_bytes proto = { 0 };
    gk_tensor(&proto, TN_STRING, dims, 1, NULL, 0);
    if (form == 0) {
      gk_text(&proto, 8, "first");
      gk_data(&proto, 8, "a text with a \0, longer than fits into an element", 49);
    } else {
      gk_data(&proto, 4, "\x05\x31\x31" "first" "a text with a \0, longer than fits into an element"
                         "a text with a \0, longer than fits into an element", 3 + 5 + 49 + 49);
    }
    tn_tensor *t = constant(&proto, &graph, &err);
    REQUIRE_MSG(t != NULL, "%s", tn_error_message(&err));
    CHECK_OK(tn_tensor_get_string(t, 0, &text, &length, &err), &err);
    CHECK(length == 5 && memcmp(text, "first", 5) == 0);
    CHECK_OK(tn_tensor_get_string(t, 2, &text, &length, &err), &err);
    CHECK(length == 49 && text[14] == 0 && text[48] == 't');
    tn_graph_unref(graph);
  }
  static const struct {
    const char *content;
    size_t size;
  } bad[] = { { "\x01", 1 },
              { "\x01\x01\x01"
                "ab",
                5 },
              { "\x01\x01\x01"
                "abcd",
                7 },
              { "\x01\x01\xff\xff\xff\xff\x7f"
                "ab",
                9 } };
  for (size_t i = 0; i < 4; i++) {
    gk_bytes proto = { 0 };
    gk_tensor(&proto, TN_STRING, dims, 1, bad[i].content, bad[i].size);
    CHECK_NULL(constant(&proto, &graph, &err));
    CHECK_STATUS(tn_error_code(&err), TN_INVALID_ARGUMENT, &err);
    tn_error_clear(&err);
    tn_graph_unref(graph);
  }
}

/* False sizes cause an error when the tensor is read, and no allocation. */
static void tensor__false_sizes_are_errors(void)
{
  static const struct {
    int64_t dims[3];
    int rank;
    int64_t dtype;
    const char *content;
    tn_status code;
    const char *wanted;
  } cases[] = {
    { { INT64_C(1) << 30, INT64_C(1) << 30, 1 }, 3, TN_FLOAT, NULL, TN_RESOURCE_EXHAUSTED, "has only 1 values" },
    { { INT64_C(1) << 40, 1, 1 }, 1, TN_INT8, NULL, TN_RESOURCE_EXHAUSTED, "takes 1099511627776 bytes" },
    { { INT64_C(1) << 31, INT64_C(1) << 31, 4 }, 3, TN_FLOAT, NULL, TN_INVALID_ARGUMENT, "the tensor's shape" },
    { { INT64_MAX, 2, 1 }, 2, TN_INT8, NULL, TN_INVALID_ARGUMENT, "the tensor's shape" },
    { { -1, 1, 1 }, 1, TN_FLOAT, NULL, TN_INVALID_ARGUMENT, "the tensor's shape" },
    { { 0, 0, 0 }, -1, TN_FLOAT, NULL, TN_INVALID_ARGUMENT, "unknown rank" },
    { { 3, 1, 1 },
      1,
      TN_FLOAT,
      "12345678",
      TN_INVALID_ARGUMENT,
      "tensor_content has 8 bytes, wanted 12 for shape [3] of float32" },
    { { 1, 1, 1 }, 1, TN_FLOAT, "12345678", TN_INVALID_ARGUMENT, "tensor_content has 8 bytes, wanted 4" },
    { { 1, 1, 1 }, 1, 0, NULL, TN_INVALID_ARGUMENT, "is 0, which is not a valid type" },
    { { 1, 1, 1 }, 1, 4711, NULL, TN_INVALID_ARGUMENT, "type is 4711" },
    { { 1, 1, 1 }, 1, 101, NULL, TN_INVALID_ARGUMENT, "type is 101" },
    { { 1, 1, 1 }, 1, TN_VARIANT, NULL, TN_UNIMPLEMENTED, "type variant" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_error err = TN_ERROR_INIT;
    gk_bytes proto = { 0 };
    tn_graph *graph;
    const char *content = cases[i].content;
    gk_tensor(&proto, cases[i].dtype, cases[i].dims, cases[i].rank, content, content == NULL ? 0 : strlen(content));
    if (content == NULL) gk_float(&proto, 5, 1), gk_int(&proto, 7, 1);
    uint64_t before = tn_test_live_bytes();
    CHECK_NULL(constant(&proto, &graph, &err));
    REQUIRE_PTR(graph);
    CHECK_STATUS(tn_error_code(&err), cases[i].code, &err);
    CHECK_CONTAINS(tn_error_message(&err), "node 'c': attribute 'value': ");
    CHECK_CONTAINS(tn_error_message(&err), cases[i].wanted);
    CHECK(tn_test_live_bytes() - before < 1 << 20);
    tn_error_clear(&err);
    tn_graph_unref(graph);
  }
  gk_bytes proto = { 0 }; /* a long string, many times */
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  char *text = calloc(1, 100000);
  gk_tensor(&proto, TN_STRING, (int64_t[]){ 1000000 }, 1, NULL, 0);
  gk_data(&proto, 8, text, 100000);
  CHECK_NULL(constant(&proto, &graph, &err));
  CHECK_STATUS(tn_error_code(&err), TN_RESOURCE_EXHAUSTED, &err);
  free(text);
  tn_error_clear(&err);
  tn_graph_unref(graph);
}

static void tensor__a_constant_must_have_the_type_of_its_attribute(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 }, proto = { 0 };
  gk_node(&node, "c", "GkConst", NULL);
  gk_tensor(&proto, TN_FLOAT, NULL, 0, "1234", 4);
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_INT32);
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_PTR(graph);
  tn_tensor *t;
  CHECK_STATUS(tn__operation_constant(tn_graph_operation(graph, 0), &t, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'c': the tensor in attribute 'value' has type float32, wanted int32");
  CHECK_NULL(t);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

/* Elements that are suitably aligned in the file's bytes are used in place. */
static void tensor__large_tensors_are_not_copied(void)
{
  tn_error err = TN_ERROR_INIT;
  enum { N = 1 << 18 };
  float *values = calloc(N, sizeof *values);
  for (int shift = 0; shift < 8; shift++) {
    gk_bytes g = { 0 }, node = { 0 }, proto = { 0 };
    values[N - 1] = (float)shift;
    char name[16] = "ccccccc";
    name[shift] = 0; /* shifts the elements by one byte */
    gk_node(&node, shift == 0 ? "d" : name, "GkConst", NULL);
    gk_tensor(&proto, TN_FLOAT, (int64_t[]){ N }, 1, values, N * sizeof *values);
    gk_attr_tensor(&node, "value", &proto);
    gk_attr_type(&node, "T", TN_FLOAT);
    gk_add_node(&g, &node);
    tn_graph *graph = gk_import(&g, &err);
    REQUIRE_PTR(graph);
    uint64_t before = tn_test_live_bytes();
    tn_tensor *t;
    REQUIRE_OK(tn__operation_constant(tn_graph_operation(graph, 0), &t, &err), &err);
    const char *data = tn_tensor_data(t);
    CHECK_DOUBLE(((const float *)data)[N - 1], shift, 0);
    CHECK_INT((uintptr_t)data % sizeof(float), 0);
    const char *file = graph->imports->file->desc.data;
    bool in_place = data > file && data < file + graph->imports->file->desc.bytes;
    const char *there = tn_graph_operation(graph, 0)->attrs[0].v.tensor->proto.data;
    size_t size = tn_graph_operation(graph, 0)->attrs[0].v.tensor->proto.size;
    bool aligned = (uintptr_t)(there + size - N * sizeof *values) % sizeof(float) == 0;
    CHECK_MSG(in_place == aligned, "shift %d: in place %d, aligned %d", shift, in_place, aligned);
    if (in_place) CHECK(tn_test_live_bytes() - before < 1000);
    tn_graph_unref(graph);
    gk_bytes_free(&g);
  }
  free(values);
}

TAP_MAIN(TAP_TEST(tensor__numbers_of_every_type), TAP_TEST(tensor__negative_and_wide_numbers),
         TAP_TEST(tensor__types_narrower_than_a_byte), TAP_TEST(tensor__strings),
         TAP_TEST(tensor__false_sizes_are_errors),
         TAP_TEST(tensor__a_constant_must_have_the_type_of_its_attribute),
         TAP_TEST(tensor__large_tensors_are_not_copied))
