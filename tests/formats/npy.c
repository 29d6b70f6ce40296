/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files, read and written. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/tensor.h>

#include "conformance/support/oom.h"

static tn_error err;

/* ---- handmade files ---- */

static struct {
  unsigned char bytes[70000];
  size_t size;
} file;

/* Format 1.0 with this header, unchanged, and these elements. */
static void make(const char *header, const void *data, size_t bytes)
{
  size_t n = strlen(header);
  memcpy(file.bytes, "\x93NUMPY\1\0", 8);
  file.bytes[8] = (unsigned char)(n & 0xff);
  file.bytes[9] = (unsigned char)(n >> 8);
  memcpy(file.bytes + 10, header, n);
  if (bytes > 0) memcpy(file.bytes + 10 + n, data, bytes);
  file.size = 10 + n + bytes;
}

static void make_array(const char *type, const char *fortran, const char *shape, const void *data, size_t bytes)
{
  char header[500];
  snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", type, fortran, shape);
  make(header, data, bytes);
}

static tn_status parse(tn_dtype as, tn_tensor **out)
{
  return tn_npy_parse(file.bytes, file.size, "x.npy", as, out, &err);
}

/* The file is rejected with this status and a message that contains `part`. */
static void check_refused(tn_status status, const char *part)
{
  tn_tensor *t = (tn_tensor *)file.bytes;
  CHECK_STATUS(parse(0, &t), status, &err);
  CHECK_CONTAINS(tn_error_message(&err), part);
  CHECK_CONTAINS(tn_error_message(&err), "'x.npy'");
  CHECK_NULL(t);
}

static const char *scratch(const char *name)
{
  static char paths[4][300];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", tap_scratch_dir(), name);
  return path;
}

static size_t files_in(const char *folder)
{
  size_t n = 0;
  DIR *dir = opendir(folder);
  REQUIRE_PTR(dir);
  while (readdir(dir) != NULL) n++;
  closedir(dir);
  return n - 2;
}

/* ---- reading ---- */

static void npy__reads_files_of_numpy(void)
{
  const float values[] = { 1, -2, 3.5f, 4, 5, 6 };
  tn_tensor *t = NULL;
  make_array("<f4", "False", "(2, 3)", values, sizeof(values));
  REQUIRE_OK(parse(0, &t), &err);
  CHECK_INT(tn_tensor_dtype(t), TN_FLOAT);
  CHECK_INT(tn_tensor_rank(t), 2);
  CHECK_INT(tn_tensor_dims(t)[0], 2);
  CHECK_INT(tn_tensor_dims(t)[1], 3);
  CHECK_BYTES(tn_tensor_data(t), values, sizeof(values));
  CHECK(tn_tensor_is_exclusive(t));
  tn_tensor_unref(t);
}

static void npy__headers_have_many_forms(void)
{
  static const char *const headers[] = {
    "{'descr':'<i2','fortran_order':False,'shape':(3,)}",
    "{ \"shape\" : ( 3 , ) , \"descr\" : \"<i2\" , \"fortran_order\" : False , }      \n",
    "{'fortran_order': True, 'shape': (3L,), 'descr': '=i2'}\n\n",
    "\n{\t'shape': (1,3,1), 'fortran_order': False, 'descr': '|i2'\r\n}",
  };
  const int16_t values[] = { 1, 2, -3 };
  tn_tensor *t = NULL;
  for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
    make(headers[i], values, sizeof(values));
    REQUIRE_OK(parse(0, &t), &err);
    CHECK_INT(tn_tensor_dtype(t), TN_INT16);
    CHECK_BYTES(tn_tensor_data(t), values, sizeof(values));
    tn_tensor_unref(t);
  }
}

static void npy__versions_2_and_3_have_a_longer_length(void)
{
  const char *header = "{'descr': '<i4', 'fortran_order': False, 'shape': ()}";
  size_t n = strlen(header);
  tn_tensor *t = NULL;
  for (int version = 2; version <= 3; version++) {
    memcpy(file.bytes, "\x93NUMPY\0\0\0\0\0\0", 12);
    file.bytes[6] = (unsigned char)version;
    file.bytes[8] = (unsigned char)n;
    memcpy(file.bytes + 12, header, n);
    memcpy(file.bytes + 12 + n, "\x2a\0\0\0", 4);
    file.size = 12 + n + 4;
    REQUIRE_OK(parse(0, &t), &err);
    CHECK_INT(tn_tensor_rank(t), 0);
    CHECK_INT(*(int32_t *)tn_tensor_data(t), 42);
    tn_tensor_unref(t);
  }
  file.bytes[6] = 4;
  check_refused(TN_INVALID_ARGUMENT, "byte 6: format 4.0, wanted 1.0, 2.0 or 3.0");
}

static void npy__every_type_is_known(void)
{
  static const struct {
    const char *type;
    tn_dtype dtype;
  } cases[] = {
    { "<f2", TN_HALF },      { "<f4", TN_FLOAT },       { "<f8", TN_DOUBLE },      { "|i1", TN_INT8 },
    { "<i2", TN_INT16 },     { "<i4", TN_INT32 },       { "<i8", TN_INT64 },       { "|u1", TN_UINT8 },
    { "<u2", TN_UINT16 },    { "<u4", TN_UINT32 },      { "<u8", TN_UINT64 },      { "|b1", TN_BOOL },
    { "<c8", TN_COMPLEX64 }, { "<c16", TN_COMPLEX128 }, { "<f1", TN_FLOAT8_E5M2 },
  };
  unsigned char data[32];
  for (int i = 0; i < 32; i++) data[i] = (unsigned char)(i % 2);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tn_tensor *t = NULL;
    size_t bytes = 2 * tn_dtype_size(cases[i].dtype);
    make_array(cases[i].type, "False", "(2,)", data, bytes);
    REQUIRE_OK(parse(0, &t), &err);
    CHECK_INT(tn_tensor_dtype(t), cases[i].dtype);
    CHECK_BYTES(tn_tensor_data(t), data, bytes);
    tn_tensor_unref(t);
    REQUIRE_OK(parse(cases[i].dtype, &t), &err);
    tn_tensor_unref(t);
  }
}

static void npy__big_endian_is_converted(void)
{
  const unsigned char number[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, turned[] = { 8, 7, 6, 5, 4, 3, 2, 1 },
                      halves[] = { 4, 3, 2, 1, 8, 7, 6, 5 };
  tn_tensor *t = NULL;
  make_array(">f8", "False", "()", number, 8);
  REQUIRE_OK(parse(0, &t), &err);
  CHECK_BYTES(tn_tensor_data(t), turned, 8);
  tn_tensor_unref(t);
  make_array(">c8", "False", "(1, 1)", number, 8); /* the real part stays first */
  REQUIRE_OK(parse(0, &t), &err);
  CHECK_BYTES(tn_tensor_data(t), halves, 8);
  tn_tensor_unref(t);
  make_array(">i1", "False", "(8,)", number, 8);
  REQUIRE_OK(parse(0, &t), &err);
  CHECK_BYTES(tn_tensor_data(t), number, 8);
  tn_tensor_unref(t);
}

static void npy__fortran_order_is_transposed(void)
{
  static const struct {
    const char *type;
    size_t item;
  } widths[] = { { "<i1", 1 }, { "<i2", 2 }, { ">i4", 4 }, { "<i8", 8 }, { "<c16", 16 } };
  for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
    unsigned char data[24 * 16] = { 0 };
    size_t item = widths[w].item;
    tn_tensor *t = NULL;
    /* Element (i, j, k) of shape (2, 3, 4) is the number 100i + 10j + k; in the file i changes fastest. */
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 3; j++)
        for (int k = 0; k < 4; k++)
          data[(size_t)(i + 2 * (j + 3 * k)) * item + (widths[w].type[0] == '>' ? item - 1 : 0)] =
              (unsigned char)(100 * i + 10 * j + k);
    make_array(widths[w].type, "True", "(2, 3, 4)", data, 24 * item);
    REQUIRE_OK(parse(0, &t), &err);
    const unsigned char *p = tn_tensor_data(t);
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 3; j++)
        for (int k = 0; k < 4; k++, p += item) CHECK_INT(*p, 100 * i + 10 * j + k);
    tn_tensor_unref(t);
  }
  tn_tensor *t = NULL;
  make_array("<i4", "True", "(0, 5)", NULL, 0);
  REQUIRE_OK(parse(0, &t), &err);
  CHECK_INT(tn_tensor_elements(t), 0);
  tn_tensor_unref(t);
}

static void npy__strings_become_string_tensors(void)
{
  tn_tensor *t = NULL;
  const char *text;
  size_t length;
  make_array("|S3", "False", "(2, 2)", "a\0\0bcd\0\0\0x\0y", 12);
  REQUIRE_OK(parse(TN_STRING, &t), &err);
  CHECK_INT(tn_tensor_dtype(t), TN_STRING);
  static const char *const wanted[] = { "a", "bcd", "", "x\0y" };
  static const size_t lengths[] = { 1, 3, 0, 3 };
  for (int i = 0; i < 4; i++) {
    CHECK_OK(tn_tensor_get_string(t, i, &text, &length, &err), &err);
    CHECK_INT(length, lengths[i]);
    CHECK_BYTES(text, wanted[i], length);
  }
  tn_tensor_unref(t);

  /* U+E9, U+65E5, U+1D11E as UCS-4 */
  make_array("<U3", "False", "(1,)", "\xe9\0\0\0\xe5\x65\0\0\x1e\xd1\1\0", 12);
  REQUIRE_OK(parse(0, &t), &err);
  CHECK_OK(tn_tensor_get_string(t, 0, &text, &length, &err), &err);
  CHECK_INT(length, 9);
  CHECK_BYTES(text, "\xc3\xa9\xe6\x97\xa5\xf0\x9d\x84\x9e", 9);
  tn_tensor_unref(t);

  make_array(">U1", "True", "(2, 2)", "\0\0\0a\0\0\0b\0\0\0c\0\0\0d", 16);
  REQUIRE_OK(parse(0, &t), &err);
  for (int i = 0; i < 4; i++) {
    CHECK_OK(tn_tensor_get_string(t, i, &text, &length, &err), &err);
    CHECK_INT(length, 1);
    CHECK_INT(*text, "acbd"[i]);
  }
  tn_tensor_unref(t);

  make_array("<U2", "False", "(1,)", "a\0\0\0\0\xd8\0\0", 8);
  check_refused(TN_INVALID_ARGUMENT, ": 0xd800 is not a Unicode character");
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* If the file's type allows several dtypes, the caller decides; elements are not converted. */
static void npy__the_caller_selects_types_that_numpy_lacks(void)
{
  static const struct {
    const char *type;
    tn_dtype as;
    tn_status status;
  } cases[] = {
    { "<V2", TN_BFLOAT16, TN_OK },
    { "<u2", TN_BFLOAT16, TN_OK },
    { "|V1", TN_FLOAT8_E4M3FN, TN_OK },
    { "|i1", TN_QINT8, TN_OK },
    { "|u1", TN_QUINT8, TN_OK },
    { "<i4", TN_QINT32, TN_OK },
    { "|u1", TN_BOOL, TN_OK },
    { "|i1", TN_INT4, TN_OK },
    { "|u1", TN_UINT2, TN_OK },
    { "<V4", TN_FLOAT, TN_OK },
    { "<V2", TN_DTYPE_INVALID, TN_INVALID_ARGUMENT },
    { "<V2", TN_FLOAT, TN_INVALID_ARGUMENT },
    { "<u2", TN_QINT8, TN_INVALID_ARGUMENT },
    { "|u1", TN_FLOAT8_E5M2, TN_OK },
    { "|i1", TN_QUINT8, TN_INVALID_ARGUMENT },
    { "<i2", TN_BFLOAT16, TN_INVALID_ARGUMENT },
    { "<f4", TN_DOUBLE, TN_INVALID_ARGUMENT },
    { "<i4", TN_UINT32, TN_INVALID_ARGUMENT },
    { "<i4", TN_FLOAT, TN_INVALID_ARGUMENT },
    { "<f2", TN_BFLOAT16, TN_INVALID_ARGUMENT },
    { "|S8", TN_RESOURCE, TN_INVALID_ARGUMENT },
    { "|V8", TN_VARIANT, TN_INVALID_ARGUMENT },
    { "|V24", TN_STRING, TN_INVALID_ARGUMENT },
    { "<f4", 77, TN_INVALID_ARGUMENT },
  };
  const unsigned char data[24] = { 1, 0, 1, 0, 1 };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tn_tensor *t = NULL;
    make_array(cases[i].type, "False", "(1,)", data, (size_t)atoi(cases[i].type + 2));
    CHECK_STATUS(parse(cases[i].as, &t), cases[i].status, &err);
    CHECK_MSG((t != NULL) == (cases[i].status == TN_OK), "%s as %s", cases[i].type, tn_dtype_name(cases[i].as));
    if (t != NULL) CHECK_INT(tn_tensor_dtype(t), cases[i].as);
    tn_tensor_unref(t);
  }
  tn_tensor *t = NULL;
  make_array("<f8", "False", "(1,)", data, 8);
  CHECK_STATUS(parse(TN_FLOAT, &t), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "'x.npy': the elements' type is '<f8' (float64), wanted float32");
}

static void npy__small_integers_and_booleans_are_checked(void)
{
  tn_tensor *t = NULL;
  make_array("|b1", "False", "(3,)", "\0\1\x80", 3);
  REQUIRE_OK(parse(0, &t), &err);
  CHECK_BYTES(tn_tensor_data(t), "\0\1\1", 3);
  tn_tensor_unref(t);
  make_array("|i1", "False", "(3,)", "\x07\xf8\x08", 3);
  CHECK_STATUS(parse(TN_INT4, &t), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "element 2 is 8, wanted -8 to 7 for int4");
  make_array("|u1", "False", "(2,)", "\x0f\x10", 2);
  CHECK_STATUS(parse(TN_UINT4, &t), TN_INVALID_ARGUMENT, NULL);
  make_array("|V1", "False", "(4,)", "\x07\x0f\x08\xff", 4); /* only the low bits, as in ml_dtypes */
  REQUIRE_OK(parse(TN_INT4, &t), &err);
  CHECK_BYTES(tn_tensor_data(t), "\x07\xff\xf8\xff", 4);
  tn_tensor_unref(t);
  make_array("|V1", "False", "(2,)", "\x03\x01", 2);
  REQUIRE_OK(parse(TN_INT2, &t), &err);
  CHECK_BYTES(tn_tensor_data(t), "\xff\x01", 2);
  tn_tensor_unref(t);
}

/* ---- bad files ---- */

static void npy__errors_name_unreadable_types(void)
{
  make_array("|O", "False", "(1,)", "12345678", 8);
  check_refused(TN_UNIMPLEMENTED,
                "byte 20: the elements' type '|O' is Python objects, which would have to be unpickled");
  make_array("<M8[ns]", "False", "(1,)", "12345678", 8);
  check_refused(TN_UNIMPLEMENTED, "dates and times");
  make_array("<f16", "False", "(1,)", "1234567812345678", 16);
  check_refused(TN_UNIMPLEMENTED, "'<f16'");
  make("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234", 4);
  check_refused(TN_UNIMPLEMENTED, "byte 20: elements are records of several fields");
  static const char *const wrong[] = { "",
                                       "<",
                                       "f4",
                                       "<f",
                                       "<fx",
                                       "<f-4",
                                       "<f+4",
                                       "?f4",
                                       "<q4",
                                       "<i3",
                                       "<S0",
                                       "|V0",
                                       "<S99999999999999999999",
                                       "<f4 ",
                                       "a long type that is not a type at all" };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    make_array(wrong[i], "False", "(1,)", "1234", 4);
    tn_tensor *t = NULL;
    tn_status s = parse(0, &t);
    CHECK_MSG(s == TN_INVALID_ARGUMENT || s == TN_UNIMPLEMENTED, "type '%s' gives %s", wrong[i], tn_status_name(s));
    CHECK_CONTAINS(tn_error_message(&err), "is not a type that can be read");
    CHECK_NULL(t);
  }
}

static void npy__errors_locate_faults_of_headers(void)
{
  static const struct {
    const char *header, *part;
  } cases[] = {
    { "", "byte 10: the header ends, wanted '{'" },
    { "[]", "byte 10: found '[', wanted '{'" },
    { "{", "byte 11: the header ends, wanted a key" },
    { "{}", "has no 'descr'" },
    { "{'descr': '<f4', 'shape': (1,)}", "has no 'fortran_order'" },
    { "{'descr': '<f4', 'descr': '<f4'}", "byte 27: key 'descr' occurs twice" },
    { "{'extra': 1}", "byte 11: key 'extra' is not known" },
    { "{'descr' '<f4'}", "byte 19: found ''', wanted ':'" },
    { "{'descr': '<f4' 'shape': (1,)}", "byte 26: found ''', wanted ',' or '}'" },
    { "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", "byte 44: found '1', wanted True or False" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}", "found '[', wanted the shape, a tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "found ')', wanted ',' because a shape is a tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2}", "found '}', wanted ',' or ')'" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "found ',', wanted a dimension" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}", "found '.', wanted ','" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "dimension 0 is -1, wanted 0 or more" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}",
      "dimension 99999999999999999999 is out of range" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "found 'x', wanted the end of the header" },
    { "{'descr': '<f4\\x00', 'fortran_order': False, 'shape': (1,)}", "found '\\', wanted a plain character" },
    { "{'descr': '<f4, }", "the header ends, wanted the end of the string" },
    { "{'descr': \x01", "found 0x01, wanted the type, a string" },
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    make(cases[i].header, "1234", 4);
    check_refused(TN_INVALID_ARGUMENT, cases[i].part);
  }
}

static void npy__false_sizes_are_errors_before_allocation(void)
{
  uint64_t before = tn_test_allocations();
  make_array("<f4", "False", "(1000000, 1000000, 1000)", "1234", 4);
  check_refused(TN_DATA_LOSS,
                "is cut short: shape [1000000,1000000,1000] of type '<f4' needs 1000000000000000 times 4 bytes "
                "from byte 88, but the file ends at byte 92");
  make_array("<f4", "False", "(4611686018427387904, 4)", "1234", 4);
  check_refused(TN_INVALID_ARGUMENT, "the shape in the header is not possible");
  make_array("<f4", "False", "(4611686018427387904, 4, 0)", NULL, 0);
  check_refused(TN_INVALID_ARGUMENT, "the shape in the header is not possible");
  make_array("|S9000000000000000000", "False", "(3,)", "1234", 4);
  check_refused(TN_INVALID_ARGUMENT, "is not a type");
  make_array("|S2000000000000000000", "False", "(100,)", "1234", 4);
  check_refused(TN_DATA_LOSS, "is cut short");
  make_array("<f4", "False", "(3,)", "123456781234567", 15);
  check_refused(TN_INVALID_ARGUMENT, "3 bytes are left over after shape [3]");
  CHECK(tn_test_allocations() - before < 20); /* the texts of these errors */

  char shape[2000] = "(";
  for (int i = 0; i < 255; i++) strcat(shape, "1, ");
  strcat(shape, ")");
  char header[2500];
  snprintf(header, sizeof(header), "{'descr': '<f4', 'fortran_order': False, 'shape': %s}", shape);
  make(header, "1234", 4);
  check_refused(TN_INVALID_ARGUMENT, "more than 254 dimensions");
}

static void npy__every_truncated_file_is_rejected(void)
{
  const double values[] = { 1, 2, 3 };
  make_array("<f8", "False", "(3,)", values, sizeof(values));
  size_t whole = file.size;
  for (file.size = 0; file.size < whole; file.size++) {
    tn_tensor *t = NULL;
    CHECK_STATUS(parse(0, &t), TN_DATA_LOSS, &err);
    CHECK_NULL(t);
  }
  memcpy(file.bytes, "\x93NUMPY\2\0\xff\xff\xff\xff", 12);
  check_refused(TN_INVALID_ARGUMENT, "a header of 4294967295 bytes, at most 1048576 are read");
  memcpy(file.bytes, "\x93NUMPX", 6);
  check_refused(TN_INVALID_ARGUMENT, "byte 0: this is not an .npy file");
  tn_tensor *t = NULL;
  CHECK_STATUS(tn_npy_parse(NULL, 0, NULL, 0, &t, &err), TN_DATA_LOSS, NULL);
  CHECK_STR(tn_error_message(&err), "'memory' is empty, wanted an .npy file");
  CHECK_STATUS(tn_npy_parse(NULL, 5, NULL, 0, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npy_parse(file.bytes, 5, NULL, 0, NULL, &err), TN_INVALID_ARGUMENT, NULL);
}

/* Any single changed byte results in a status, not a crash; the sanitizers check that. */
static void npy__mutated_files_give_a_status(void)
{
  const char *data = "abcdefghijklmnopqrstuvwx";
  static const char *const types[] = { "<f4", "|S4", "<U1", "|V4" };
  for (size_t k = 0; k < 4; k++) {
    make_array(types[k], "True", "(2, 3)", data, 24);
    for (size_t i = 0; i < file.size; i++) {
      unsigned char old = file.bytes[i];
      for (int value = 0; value < 256; value += 3) {
        tn_tensor *t = NULL;
        file.bytes[i] = (unsigned char)value;
        tn_status s = parse(value % 2 ? 0 : TN_QINT32, &t);
        CHECK((s == TN_OK) == (t != NULL));
        tn_tensor_unref(t);
      }
      file.bytes[i] = old;
    }
  }
  tn_error_clear(&err);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* ---- paths ---- */

static void npy__errors_name_paths_that_are_not_regular_files(void)
{
  tn_tensor *t = NULL;
  const char *fifo = scratch("fifo.npy");
  REQUIRE_INT(mkfifo(fifo, 0600), 0);
  CHECK_STATUS(tn_npy_load(fifo, 0, &t, &err), TN_INVALID_ARGUMENT, NULL); /* and does not wait for a writer */
  CHECK_CONTAINS(tn_error_message(&err), "fifo.npy' is a FIFO, wanted a regular file");
  CHECK_STATUS(tn_npy_load(tap_scratch_dir(), 0, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "is a directory");
  CHECK_STATUS(tn_npy_load(scratch("missing.npy"), 0, &t, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "missing.npy': No such file or directory");
  CHECK_STATUS(tn_npy_load(NULL, 0, &t, &err), TN_INVALID_ARGUMENT, NULL);
  unlink(fifo);
}

static void npy__missing_permission_is_an_error(void)
{
  tn_tensor *t = NULL;
  const char *path = scratch("secret.npy");
  int fd = open(path, O_CREAT | O_WRONLY, 0000);
  REQUIRE(fd >= 0);
  close(fd);
  bool root = geteuid() == 0;
  if (root && (chmod(tap_scratch_dir(), 0755) != 0 || seteuid(65534) != 0)) TAP_SKIP("cannot switch to another user");
  CHECK_STATUS(tn_npy_load(path, 0, &t, &err), TN_PERMISSION_DENIED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "secret.npy': Permission denied");
  if (root) {
    REQUIRE_OK(tn_tensor_create(TN_FLOAT, NULL, 0, &t, &err), &err);
    *(float *)tn_tensor_data(t) = 0;
    CHECK_STATUS(tn_npy_save(t, scratch("not-mine.npy"), &err), TN_PERMISSION_DENIED, NULL);
    tn_tensor_unref(t);
    CHECK_INT(seteuid(0), 0);
  }
  unlink(path);
}

/* ---- writing ---- */

static void npy__every_type_round_trips(void)
{
  const int64_t dims[] = { 2, 3, 1 };
  const char *path = scratch("types.npy");
  for (tn_dtype d = 1; d <= TN_UINT2; d++) {
    tn_tensor *t = NULL, *back = NULL;
    if (d == TN_STRING) continue;
    REQUIRE_OK(tn_tensor_create(d, dims, 3, &t, &err), &err);
    if (d == TN_RESOURCE || d == TN_VARIANT) {
      CHECK_STATUS(tn_npy_save(t, path, &err), TN_UNIMPLEMENTED, NULL);
      CHECK_CONTAINS(tn_error_message(&err), tn_dtype_name(d));
    } else {
      memset(tn_tensor_data(t), 1, tn_tensor_bytes(t));
      REQUIRE_OK(tn_npy_save(t, path, &err), &err);
      REQUIRE_OK(tn_npy_load(path, d, &back, &err), &err);
      CHECK_INT(tn_tensor_dtype(back), d);
      CHECK_INT(tn_tensor_rank(back), 3);
      CHECK_BYTES(tn_tensor_dims(back), dims, sizeof(dims));
      CHECK_BYTES(tn_tensor_data(back), tn_tensor_data(t), tn_tensor_bytes(t));
    }
    tn_tensor_unref(t);
    tn_tensor_unref(back);
  }
}

static void npy__headers_equal_those_of_numpy(void)
{
  static const struct {
    int32_t rank;
    const char *shape;
  } cases[] = { { 0, "()" }, { 1, "(2,)" }, { 2, "(2, 3)" } };
  const int64_t dims[] = { 2, 3 };
  const char *path = scratch("header.npy");
  for (size_t i = 0; i < 3; i++) {
    char bytes[300], wanted[100];
    tn_tensor *t = NULL;
    REQUIRE_OK(tn_tensor_create(TN_INT64, dims, cases[i].rank, &t, &err), &err);
    memset(tn_tensor_data(t), 0, tn_tensor_bytes(t));
    REQUIRE_OK(tn_npy_save(t, path, &err), &err);
    FILE *f = fopen(path, "rb");
    REQUIRE_PTR(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    CHECK_INT(n, 128 + tn_tensor_bytes(t));
    CHECK_BYTES(bytes, "\x93NUMPY\1\0\x76\0", 10);
    snprintf(wanted, sizeof(wanted), "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }  ", cases[i].shape);
    CHECK_BYTES(bytes + 10, wanted, strlen(wanted));
    CHECK_INT(bytes[127], '\n');
    tn_tensor_unref(t);
  }
}

static void npy__tensors_of_every_rank_round_trip(void)
{
  int64_t dims[TN_MAX_RANK];
  const char *path = scratch("rank.npy");
  for (int i = 0; i < TN_MAX_RANK; i++) dims[i] = i % 100 == 50 ? 2 : 1;
  for (int32_t rank = 0; rank <= TN_MAX_RANK; rank += 127) {
    tn_tensor *t = NULL, *back = NULL;
    REQUIRE_OK(tn_tensor_create(TN_UINT8, dims, rank, &t, &err), &err);
    memset(tn_tensor_data(t), 7, tn_tensor_bytes(t));
    REQUIRE_OK(tn_npy_save(t, path, &err), &err);
    REQUIRE_OK(tn_npy_load(path, 0, &back, &err), &err);
    CHECK_INT(tn_tensor_rank(back), rank);
    CHECK_BYTES(tn_tensor_dims(back), dims, (size_t)rank * 8);
    tn_tensor_unref(t);
    tn_tensor_unref(back);
  }
}

static void npy__strings_round_trip(void)
{
  const char *texts[] = { "", "a", "a longer text, which does not fit into an element", "x\0y" };
  const size_t lengths[] = { 0, 1, 49, 3 };
  const int64_t dims[] = { 2, 2 }, none[] = { 0 };
  const char *path = scratch("strings.npy"), *text;
  tn_tensor *t = NULL, *back = NULL;
  size_t length;
  REQUIRE_OK(tn_tensor_from_strings(dims, 2, texts, lengths, &t, &err), &err);
  REQUIRE_OK(tn_npy_save(t, path, &err), &err);
  REQUIRE_OK(tn_npy_load(path, 0, &back, &err), &err);
  for (int i = 0; i < 4; i++) {
    CHECK_OK(tn_tensor_get_string(back, i, &text, &length, &err), &err);
    CHECK_INT(length, lengths[i]);
    CHECK_BYTES(text, texts[i], length);
  }
  tn_tensor_unref(back);
  CHECK_OK(tn_tensor_set_string(t, 3, "end\0", 4, &err), &err);
  CHECK_STATUS(tn_npy_save(t, path, &err), TN_UNIMPLEMENTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "strings.npy': element 3 ends in a zero byte");
  tn_tensor_unref(t);
  REQUIRE_OK(tn_tensor_create(TN_STRING, none, 1, &t, &err), &err);
  REQUIRE_OK(tn_npy_save(t, path, &err), &err);
  REQUIRE_OK(tn_npy_load(path, 0, &back, &err), &err);
  CHECK_INT(tn_tensor_elements(back), 0);
  tn_tensor_unref(back);
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* If the disk is full, the old file remains, and no other file is left. */
static void npy__a_full_disk_keeps_the_old_file(void)
{
  const int64_t small_dims[] = { 4 }, dims[] = { 100000 };
  const char *folder = scratch("full"), *path = scratch("full/x.npy");
  tn_tensor *small = NULL, *t = NULL, *back = NULL;
  struct rlimit old, limit;
  REQUIRE_INT(mkdir(folder, 0700), 0);
  REQUIRE_OK(tn_tensor_create(TN_UINT8, small_dims, 1, &small, &err), &err);
  REQUIRE_OK(tn_tensor_create(TN_UINT8, dims, 1, &t, &err), &err);
  memset(tn_tensor_data(small), 1, 4);
  memset(tn_tensor_data(t), 2, 100000);
  REQUIRE_OK(tn_npy_save(small, path, &err), &err);

  CHECK_STATUS(tn_npy_save(t, "/dev/full", &err), TN_RESOURCE_EXHAUSTED, NULL);
  CHECK_STR(tn_error_message(&err), "cannot write '/dev/full': No space left on device");
  CHECK_OK(tn_npy_save(t, "/dev/null", &err), &err);
  struct stat st;
  CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));

  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  REQUIRE_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
  limit = old;
  limit.rlim_cur = 50000;
  REQUIRE_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  tn_status s = tn_npy_save(t, path, &err);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  CHECK_STATUS(s, TN_RESOURCE_EXHAUSTED, &err);
  CHECK_INT(files_in(folder), 1);
  REQUIRE_OK(tn_npy_load(path, 0, &back, &err), &err);
  CHECK_INT(tn_tensor_elements(back), 4);
  tn_tensor_unref(back);
  CHECK_OK(tn_npy_save(t, path, &err), &err);
  CHECK_INT(files_in(folder), 1);
  CHECK_STATUS(tn_npy_save(t, folder, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npy_save(NULL, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npy_save(t, NULL, &err), TN_INVALID_ARGUMENT, NULL);
  tn_tensor_unref(small);
  tn_tensor_unref(t);
}

/* ---- lack of memory ---- */

static tn_status save_and_load(void *arg)
{
  tn_tensor *t = NULL, *back = NULL;
  const char *texts[] = { "a", "a longer text, which does not fit into an element" };
  const int64_t dims[] = { 2 };
  tn_status s = tn_tensor_from_strings(dims, 1, texts, NULL, &t, NULL);
  if (s == TN_OK) s = tn_npy_save(t, arg, NULL);
  if (s == TN_OK) s = tn_npy_load(arg, 0, &back, NULL);
  tn_tensor_unref(t);
  tn_tensor_unref(back);
  return s;
}

static tn_status parse_again(void *arg)
{
  tn_tensor *t = NULL;
  (void)arg;
  tn_status s = tn_npy_parse(file.bytes, file.size, "x.npy", 0, &t, NULL);
  tn_tensor_unref(t);
  return s;
}

static tn_status load_again(void *arg)
{
  tn_tensor *t = NULL;
  tn_status s = tn_npy_load(arg, 0, &t, NULL);
  tn_tensor_unref(t);
  return s;
}

static void npy__nothing_leaks_without_memory(void)
{
  static char path[300];
  mkdir(scratch("sweep"), 0700);
  snprintf(path, sizeof(path), "%s", scratch("sweep/x.npy"));
  tn_error_clear(&err);
  tn_test_oom_sweep(save_and_load, path);
  CHECK_INT(files_in(scratch("sweep")), 1);
  static const char utf32[100] = "a\0\0\0b";
  make_array("<U25", "True", "(1, 1)", utf32, sizeof(utf32));
  tn_test_oom_sweep(parse_again, NULL);
  make_array(">f4", "True", "(5, 5)", utf32, sizeof(utf32));
  tn_test_oom_sweep(parse_again, NULL);
  FILE *f = fopen(path, "wb");
  REQUIRE_PTR(f);
  fwrite(file.bytes, 1, file.size, f);
  fclose(f);
  tn_test_oom_sweep(load_again, path);
}

TAP_MAIN(
  TAP_TEST(npy__reads_files_of_numpy),
  TAP_TEST(npy__headers_have_many_forms),
  TAP_TEST(npy__versions_2_and_3_have_a_longer_length),
  TAP_TEST(npy__every_type_is_known),
  TAP_TEST(npy__big_endian_is_converted),
  TAP_TEST(npy__fortran_order_is_transposed),
  TAP_TEST(npy__strings_become_string_tensors),
  TAP_TEST(npy__the_caller_selects_types_that_numpy_lacks),
  TAP_TEST(npy__small_integers_and_booleans_are_checked),
  TAP_TEST(npy__errors_name_unreadable_types),
  TAP_TEST(npy__errors_locate_faults_of_headers),
  TAP_TEST(npy__false_sizes_are_errors_before_allocation),
  TAP_TEST(npy__every_truncated_file_is_rejected),
  TAP_TEST(npy__mutated_files_give_a_status),
  TAP_TEST(npy__errors_name_paths_that_are_not_regular_files),
  TAP_TEST(npy__missing_permission_is_an_error),
  TAP_TEST(npy__every_type_round_trips),
  TAP_TEST(npy__headers_equal_those_of_numpy),
  TAP_TEST(npy__tensors_of_every_rank_round_trip),
  TAP_TEST(npy__strings_round_trip),
  TAP_TEST(npy__a_full_disk_keeps_the_old_file),
  TAP_TEST(npy__nothing_leaks_without_memory))
