/* SPDX-License-Identifier: Apache-2.0 */
/* .npz files, read and written. Archives that NumPy would not write are made by hand, stored. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tensor.h>

#include "conformance/support/oom.h"

static tn_error err;

/* ---- handmade archives ---- */

static struct {
  unsigned char bytes[100000];
  size_t size;
  unsigned char directory[8000];
  size_t directory_size;
  unsigned count;
} zip;

typedef struct special {
  unsigned method, flags;    /* 0 = stored, not encrypted */
  uint32_t crc_change;       /* xored into the checksum */
  uint32_t packed, unpacked; /* sizes to claim, 0 = the true size */
} special;

static void put(unsigned char **to, uint64_t value, int n)
{
  for (int i = 0; i < n; i++) *(*to)++ = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
}

static uint32_t crc_of(const unsigned char *p, size_t n)
{
  uint32_t crc = ~0u;
  for (size_t i = 0; i < n; i++) {
    crc ^= p[i];
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

static void begin(void) { zip.size = zip.directory_size = zip.count = 0; }

static void add_special(const char *name, const void *data, size_t n, special how)
{
  unsigned char *p = zip.bytes + zip.size, *d = zip.directory + zip.directory_size;
  uint32_t at = (uint32_t)zip.size, crc = crc_of(data, n) ^ how.crc_change;
  uint32_t packed = how.packed != 0 ? how.packed : (uint32_t)n,
           unpacked = how.unpacked != 0 ? how.unpacked : (uint32_t)n;
  for (int local = 1; local >= 0; local--) {
    unsigned char **to = local ? &p : &d;
    put(to, local ? 0x04034b50 : 0x02014b50, 4);
    if (!local) put(to, 0x0314, 2);
    put(to, 20, 2);
    put(to, how.flags, 2);
    put(to, how.method, 2);
    put(to, 0x00210000, 4);
    put(to, crc, 4);
    put(to, packed, 4);
    put(to, unpacked, 4);
    put(to, strlen(name), 2);
    put(to, 0, 2);              /* extra fields */
    if (!local) put(to, 0, 10); /* comment, disk, attributes */
    if (!local) put(to, at, 4);
    memcpy(*to, name, strlen(name));
    *to += strlen(name);
  }
  if (n > 0) memcpy(p, data, n);
  zip.size = (size_t)(p - zip.bytes) + n;
  zip.directory_size = (size_t)(d - zip.directory);
  zip.count++;
}

static void add(const char *name, const void *data, size_t n) { add_special(name, data, n, (special){ 0 }); }

static void finish(void)
{
  unsigned char *p = zip.bytes + zip.size;
  uint32_t at = (uint32_t)zip.size;
  memcpy(p, zip.directory, zip.directory_size);
  p += zip.directory_size;
  put(&p, 0x06054b50, 4);
  put(&p, 0, 4);
  put(&p, zip.count, 2);
  put(&p, zip.count, 2);
  put(&p, zip.directory_size, 4);
  put(&p, at, 4);
  put(&p, 0, 2);
  zip.size = (size_t)(p - zip.bytes);
}

/* The bytes of an .npy file, valid until the next call. */
static const void *npy(const char *type, const char *shape, const void *data, size_t bytes, size_t *size)
{
  static unsigned char file[70000];
  char header[200];
  int n = snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': %s}\n", type, shape);
  memcpy(file, "\x93NUMPY\1\0", 8);
  file[8] = (unsigned char)n;
  file[9] = 0;
  memcpy(file + 10, header, (size_t)n);
  if (bytes > 0) memcpy(file + 10 + n, data, bytes);
  *size = 10 + (size_t)n + bytes;
  return file;
}

static void add_array(const char *name, special how)
{
  const float values[] = { 1, 2 };
  size_t n;
  const void *file = npy("<f4", "(2,)", values, sizeof(values), &n);
  add_special(name, file, n, how);
}

static tn_status open_zip(tn_npz **out) { return tn_npz_open_bytes(zip.bytes, zip.size, "x.npz", out, &err); }

/* The archive is rejected. */
static void check_refused(tn_status status, const char *part)
{
  tn_npz *npz = (tn_npz *)zip.bytes;
  CHECK_STATUS(open_zip(&npz), status, NULL);
  CHECK_CONTAINS(tn_error_message(&err), part);
  CHECK_CONTAINS(tn_error_message(&err), "'x.npz'");
  CHECK_NULL(npz);
}

/* The only array of the archive is rejected. */
static void check_array_refused(tn_status status, const char *part)
{
  tn_npz *npz = NULL;
  tn_tensor *t = (tn_tensor *)zip.bytes;
  finish();
  REQUIRE_OK(open_zip(&npz), &err);
  CHECK_STATUS(tn_npz_load(npz, tn_npz_key(npz, 0), 0, &t, &err), status, NULL);
  CHECK_CONTAINS(tn_error_message(&err), part);
  CHECK_CONTAINS(tn_error_message(&err), "'x.npz:");
  CHECK_NULL(t);
  tn_npz_close(npz);
}

/* ---- files ---- */

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

static void read_back(const char *path)
{
  FILE *f = fopen(path, "rb");
  REQUIRE_PTR(f);
  zip.size = fread(zip.bytes, 1, sizeof(zip.bytes), f);
  fclose(f);
}

static tn_tensor *floats(int64_t n, float first)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, &n, 1, &t, &err), &err);
  for (int64_t i = 0; i < n; i++) ((float *)tn_tensor_data(t))[i] = first + (float)i;
  return t;
}

/* ---- reading ---- */

static void npz__reads_archives_of_numpy(void)
{
  tn_npz *npz = NULL;
  tn_tensor *t = NULL;
  const char *text;
  size_t length;
  const float values[] = { 1, 2 };
  REQUIRE_OK(tn_npz_open(tap_source_path("fuzz/corpus/fuzz_npz/stored.npz"), &npz, &err), &err);
  REQUIRE_INT(tn_npz_count(npz), 1);
  CHECK_STR(tn_npz_key(npz, 0), "only");
  CHECK_NULL(tn_npz_key(npz, 1));
  REQUIRE_OK(tn_npz_load(npz, "only", 0, &t, &err), &err);
  CHECK_INT(tn_tensor_dtype(t), TN_FLOAT);
  CHECK_INT(tn_tensor_rank(t), 2);
  CHECK_BYTES(tn_tensor_data(t), values, sizeof(values));
  CHECK(tn_tensor_is_exclusive(t));
  tn_npz_close(npz);
  CHECK_BYTES(tn_tensor_data(t), values, sizeof(values)); /* it does not depend on the archive */
  tn_tensor_unref(t);

  REQUIRE_OK(tn_npz_open(tap_source_path("fuzz/corpus/fuzz_npz/deflated.npz"), &npz, &err), &err);
  REQUIRE_INT(tn_npz_count(npz), 3);
  REQUIRE_OK(tn_npz_load(npz, "arr_0", 0, &t, &err), &err);
  CHECK_BYTES(tn_tensor_data(t), values, sizeof(values));
  tn_tensor_unref(t);
  REQUIRE_OK(tn_npz_load(npz, "n.npy", 0, &t, &err), &err);
  CHECK_INT(*(int64_t *)tn_tensor_data(t), 7);
  tn_tensor_unref(t);
  REQUIRE_OK(tn_npz_load(npz, "words", TN_STRING, &t, &err), &err);
  CHECK_OK(tn_tensor_get_string(t, 1, &text, &length, &err), &err);
  CHECK_INT(length, 3);
  CHECK_BYTES(text, "n\xc3\xa9", 3);
  tn_tensor_unref(t);
  tn_npz_close(npz);
}

static void npz__keys_are_names_without_npy(void)
{
  tn_npz *npz = NULL;
  tn_tensor *t = NULL;
  begin();
  add_array("step/0/x.npy", (special){ 0 });
  add("folder/", NULL, 0);
  add_array("plain", (special){ 0 });
  add("readme.txt", "hello", 5);
  add_array("twice.npy.npy", (special){ 0 });
  add_array(".npy", (special){ 0 });
  finish();
  REQUIRE_OK(open_zip(&npz), &err);
  static const char *const keys[] = { "step/0/x", "plain", "readme.txt", "twice.npy", "" };
  REQUIRE_INT(tn_npz_count(npz), 5);
  for (size_t i = 0; i < 5; i++) CHECK_STR(tn_npz_key(npz, i), keys[i]);
  static const char *const found[] = { "step/0/x", "step/0/x.npy", "plain", "twice.npy", "twice.npy.npy", "", ".npy" };
  for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
    REQUIRE_OK(tn_npz_load(npz, found[i], 0, &t, &err), &err);
    tn_tensor_unref(t);
  }
  CHECK_STATUS(tn_npz_load(npz, "plain.npy", 0, &t, &err), TN_NOT_FOUND, NULL);
  CHECK_NULL(t);
  CHECK_STATUS(tn_npz_load(npz, "readme.txt", 0, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'x.npz:readme.txt': byte 0: this is not an .npy file");
  CHECK_STATUS(tn_npz_load(npz, "x", 0, &t, &err), TN_NOT_FOUND, NULL);
  CHECK_STR(tn_error_message(&err),
            "'x.npz' has no array 'x'; it has 'step/0/x', 'plain', 'readme.txt', 'twice.npy', ''");
  tn_npz_close(npz);
  begin();
  for (int i = 0; i < 10; i++) add_array((char[]){ (char)('a' + i), 0 }, (special){ 0 });
  finish();
  REQUIRE_OK(open_zip(&npz), &err);
  CHECK_STATUS(tn_npz_load(npz, "x", 0, &t, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'g', 'h' and 2 more");
  tn_npz_close(npz);
}

static void npz__the_caller_selects_types_as_in_npy(void)
{
  tn_npz *npz = NULL;
  tn_tensor *t[2];
  size_t n;
  const void *file = npy("<V2", "(2,)", "\x80\x3f\0\x40", 4, &n);
  begin();
  add("b.npy", file, n);
  add_array("f.npy", (special){ 0 });
  finish();
  REQUIRE_OK(open_zip(&npz), &err);
  CHECK_STATUS(tn_npz_load(npz, "b", 0, t, &err), TN_INVALID_ARGUMENT, NULL);
  REQUIRE_OK(tn_npz_load(npz, "b", TN_BFLOAT16, t, &err), &err);
  CHECK_INT(tn_tensor_dtype(t[0]), TN_BFLOAT16);
  tn_tensor_unref(t[0]);
  CHECK_STATUS(tn_npz_load(npz, "f", TN_DOUBLE, t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "'x.npz:f': the elements' type is '<f4' (float32), wanted float64");
  CHECK_STATUS(tn_npz_load_all(npz, NULL, t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_NULL(t[0]);
  CHECK_NULL(t[1]);
  REQUIRE_OK(tn_npz_load_all(npz, (const tn_dtype[]){ TN_BFLOAT16, 0 }, t, &err), &err);
  CHECK_INT(tn_tensor_dtype(t[0]), TN_BFLOAT16);
  CHECK_INT(tn_tensor_dtype(t[1]), TN_FLOAT);
  tn_tensor_unref(t[0]);
  tn_tensor_unref(t[1]);
  tn_npz_close(npz);
  begin();
  finish();
  REQUIRE_OK(open_zip(&npz), &err); /* numpy.savez without arrays */
  CHECK_INT(tn_npz_count(npz), 0);
  CHECK_OK(tn_npz_load_all(npz, NULL, NULL, &err), &err);
  CHECK_STATUS(tn_npz_load(npz, "x", 0, t, &err), TN_NOT_FOUND, NULL);
  tn_npz_close(npz);
}

/* ---- bad archives ---- */

static void npz__errors_name_files_that_are_not_archives(void)
{
  tn_npz *npz = NULL;
  zip.size = 0;
  check_refused(TN_DATA_LOSS, "is empty");
  memcpy(zip.bytes, "hello", zip.size = 5);
  check_refused(TN_INVALID_ARGUMENT, "is not an .npz file");
  memcpy(zip.bytes, "\x93NUMPY\1\0", zip.size = 8);
  check_refused(TN_INVALID_ARGUMENT, "is an .npy file, a single array");
  CHECK_STATUS(tn_npz_open(scratch("nothing.npz"), &npz, &err), TN_NOT_FOUND, NULL);
  CHECK_STATUS(tn_npz_open(tap_scratch_dir(), &npz, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "is a directory");
  CHECK_STATUS(tn_npz_open(NULL, &npz, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_open("x", NULL, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_open_bytes(NULL, 5, NULL, &npz, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_load(NULL, "x", 0, NULL, &err), TN_INVALID_ARGUMENT, NULL);
  tn_npz_close(NULL);
}

static void npz__every_truncated_archive_is_rejected(void)
{
  begin();
  add_array("a.npy", (special){ 0 });
  add_array("b.npy", (special){ 0 });
  finish();
  for (size_t n = zip.size; n-- > 2;) {
    tn_npz *npz = NULL;
    CHECK_STATUS(tn_npz_open_bytes(zip.bytes, n, "x.npz", &npz, &err), TN_DATA_LOSS, NULL);
    CHECK_CONTAINS(tn_error_message(&err), "'x.npz'");
    CHECK_NULL(npz);
  }
  /* The beginning is missing: all positions in the directory are wrong. */
  memmove(zip.bytes, zip.bytes + 50, zip.size -= 50);
  check_refused(TN_DATA_LOSS, "directory cannot be read");
}

static void npz__mutated_archives_give_a_status(void)
{
  tn_tensor *tensors[] = { floats(20, 1), floats(3, 5) };
  const char *const keys[] = { "a", "b" }, *path = scratch("mutated.npz");
  REQUIRE_OK(tn_npz_save(keys, tensors, 2, TN_NPZ_DEFLATE, path, &err), &err);
  read_back(path);
  for (size_t i = 0; i < zip.size * 8; i++) {
    tn_npz *npz = NULL;
    tn_tensor *t[2] = { NULL, NULL };
    zip.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    tn_status s = open_zip(&npz);
    if (s == TN_OK && tn_npz_count(npz) == 2 && tn_npz_load_all(npz, NULL, t, &err) == TN_OK) {
      CHECK_BYTES(tn_tensor_data(t[0]), tn_tensor_data(tensors[0]), 80);
      CHECK_BYTES(tn_tensor_data(t[1]), tn_tensor_data(tensors[1]), 12);
    }
    CHECK_MSG(s != TN_UNKNOWN && s != TN_INTERNAL, "bit %zu: %s", i, tn_error_message(&err));
    tn_tensor_unref(t[0]);
    tn_tensor_unref(t[1]);
    tn_npz_close(npz);
    zip.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
  }
  tn_tensor_unref(tensors[0]);
  tn_tensor_unref(tensors[1]);
}

static void npz__the_checksum_detects_damage(void)
{
  begin();
  add_array("a.npy", (special){ .crc_change = 1 });
  check_array_refused(TN_DATA_LOSS, "'x.npz:a': the array is damaged");
}

static void npz__an_entry_has_the_length_of_its_header(void)
{
  const char zeros[100] = { 0 };
  size_t n;
  const void *file = npy("<f4", "(3,)", zeros, 8, &n);
  begin();
  add("short.npy", file, n);
  check_array_refused(TN_DATA_LOSS, "'x.npz:short' is cut short: shape [3] of type '<f4' needs 3 times 4 bytes");
  file = npy("<f4", "(3,)", zeros, 16, &n);
  begin();
  add("long.npy", file, n);
  check_array_refused(TN_INVALID_ARGUMENT, "4 bytes are left over");
  begin();
  add_array("a.npy", (special){ .packed = 5000, .unpacked = 5000 });
  check_array_refused(TN_DATA_LOSS, "'x.npz:a' takes 5000 bytes in the archive, which has");
  begin();
  add_array("a.npy", (special){ .unpacked = 5000 });
  check_array_refused(TN_INVALID_ARGUMENT, "is stored, but");
}

static void npz__errors_name_arrays_that_cannot_be_unpacked(void)
{
  begin();
  add_array("a.npy", (special){ .flags = 1 });
  check_array_refused(TN_UNIMPLEMENTED, "'x.npz:a' is encrypted");
  begin();
  add_array("a.npy", (special){ .method = 12 });
  check_array_refused(TN_UNIMPLEMENTED, "'x.npz:a' is compressed by method 12, wanted stored (0) or deflated (8)");
  begin();
  add_array("a.npy", (special){ .method = 8 });
  check_array_refused(TN_DATA_LOSS, "'x.npz:a': the array cannot be unpacked");
}

static void npz__duplicate_keys_are_rejected(void)
{
  begin();
  add_array("a.npy", (special){ 0 });
  add_array("b.npy", (special){ 0 });
  add_array("a.npy", (special){ 0 });
  finish();
  check_refused(TN_INVALID_ARGUMENT, "two arrays have the key 'a'");
  begin();
  add_array("a", (special){ 0 });
  add_array("a.npy", (special){ 0 });
  finish();
  check_refused(TN_INVALID_ARGUMENT, "two arrays have the key 'a'");
}

/* ---- bombs ---- */

static void npz__impossible_compression_ratios_are_rejected(void)
{
  begin();
  add_array("a.npy", (special){ .method = 8, .unpacked = 4000000000u });
  check_array_refused(TN_RESOURCE_EXHAUSTED,
                      "bytes would become 4000000000, but deflate packs no more than 1032 into one");
}

static void npz__arrays_stay_within_the_budget(void)
{
  const int64_t dims[] = { 10000000 };
  const char *const keys[] = { "a", "b" }, *path = scratch("zeros.npz");
  tn_tensor *tensors[2], *t[2];
  tn_npz *npz = NULL;
  struct stat st;
  REQUIRE_OK(tn_tensor_create(TN_UINT8, dims, 1, &tensors[0], &err), &err);
  memset(tn_tensor_data(tensors[0]), 0, (size_t)dims[0]);
  tensors[1] = tensors[0];
  REQUIRE_OK(tn_npz_save(keys, tensors, 2, TN_NPZ_DEFLATE, path, &err), &err);
  tn_tensor_unref(tensors[0]);
  REQUIRE(stat(path, &st) == 0 && st.st_size < 40000);
  REQUIRE_OK(tn_npz_open(path, &npz, &err), &err);
  REQUIRE_OK(tn_npz_load_all(npz, NULL, t, &err), &err); /* highly compressible data is fine */
  CHECK_INT(tn_tensor_elements(t[1]), dims[0]);
  tn_tensor_unref(t[0]);
  tn_tensor_unref(t[1]);
  tn_npz_set_budget(npz, 15000000);
  CHECK_STATUS(tn_npz_load_all(npz, NULL, t, &err), TN_RESOURCE_EXHAUSTED, NULL); /* their sum exceeds the budget */
  CHECK_CONTAINS(tn_error_message(&err), ":b': ");
  CHECK_CONTAINS(tn_error_message(&err), " bytes would become 10000128, but at most 4999872");
  CHECK_NULL(t[0]);
  REQUIRE_OK(tn_npz_load(npz, "b", 0, t, &err), &err);
  tn_tensor_unref(t[0]);
  tn_npz_set_budget(npz, 1000);
  CHECK_STATUS(tn_npz_load(npz, "b", 0, t, &err), TN_RESOURCE_EXHAUSTED, NULL);
  tn_npz_close(npz);

  /* Strings of one byte take 24 in memory. */
  size_t n;
  char texts[1000];
  memset(texts, 'x', sizeof(texts));
  const void *file = npy("|S1", "(1000,)", texts, sizeof(texts), &n);
  begin();
  add("s.npy", file, n);
  finish();
  REQUIRE_OK(open_zip(&npz), &err);
  tn_npz_set_budget(npz, 20000);
  CHECK_STATUS(tn_npz_load(npz, "s", 0, t, &err), TN_RESOURCE_EXHAUSTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err),
                 "'x.npz:s': shape [1000] of string takes 24000 bytes of memory, at most 20000");
  tn_npz_close(npz);
}

/* Entries that overlap unpack to more than the file holds. */
static void npz__overlapping_entries_stay_within_the_budget(void)
{
  enum { COPIES = 20 };
  tn_npz *npz = NULL;
  tn_tensor *t[COPIES];
  begin();
  add_array("a.npy", (special){ 0 });
  size_t one = zip.directory_size;
  for (int i = 1; i < COPIES; i++) {
    memcpy(zip.directory + zip.directory_size, zip.directory, one);
    zip.directory[zip.directory_size + 46] = (unsigned char)('a' + i);
    zip.directory_size += one;
    zip.count++;
  }
  finish();
  REQUIRE_OK(open_zip(&npz), &err);
  REQUIRE_INT(tn_npz_count(npz), COPIES);
  tn_npz_set_budget(npz, 1000);
  CHECK_STATUS(tn_npz_load_all(npz, NULL, t, &err), TN_RESOURCE_EXHAUSTED, NULL);
  for (int i = 0; i < COPIES; i++) CHECK_NULL(t[i]);
  tn_npz_close(npz);
}

static void npz__false_directories_do_not_allocate(void)
{
  begin();
  unsigned char *p = zip.bytes;
  put(&p, 0x06064b50, 4); /* the end record of a large archive */
  put(&p, 44, 8);
  put(&p, 45, 2);
  put(&p, 45, 2);
  put(&p, 0, 8);
  put(&p, (uint64_t)1 << 40, 8);
  put(&p, (uint64_t)1 << 40, 8);
  put(&p, (uint64_t)46 << 40, 8);
  put(&p, 0, 8);
  put(&p, 0x07064b50, 4); /* its position */
  put(&p, 0, 12);
  put(&p, 1, 4);
  zip.size = (size_t)(p - zip.bytes);
  size_t at = zip.size;
  put(&p, 0x06054b50, 4);
  put(&p, 0, 4);
  put(&p, UINT64_MAX, 8);
  put(&p, UINT32_MAX, 4);
  put(&p, 0, 2);
  zip.size = (size_t)(p - zip.bytes);
  check_refused(TN_INVALID_ARGUMENT,
                "byte 32: the archive claims 1099511627776 entries, but its 98 bytes have room for 2");
  for (int i = 0; i < 20; i++) memcpy(zip.bytes + at + 22 * (size_t)i, zip.bytes + at, 22);
  memset(zip.bytes, 0, at);
  zip.size = at + 20 * 22;
  check_refused(TN_INVALID_ARGUMENT, "more than 16 places");
}

/* ---- writing ---- */

static void check_round_trip(uint32_t flags)
{
  const char *texts[] = { "short", "", "a longer text, which does not fit into an element" };
  const char *const keys[] = { "a", "dir/s", "\xe6\x97\xa5", "empty", "half" }, *path = scratch("round.npz");
  const int64_t three[] = { 3 }, none[] = { 0, 4 };
  tn_tensor *in[5] = { floats(100000, 0) }, *out[5];
  tn_npz *npz = NULL;
  REQUIRE_OK(tn_tensor_from_strings(three, 1, texts, NULL, &in[1], &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_INT64, NULL, 0, (int64_t[]){ -5 }, 8, &in[2], &err), &err);
  REQUIRE_OK(tn_tensor_create(TN_DOUBLE, none, 2, &in[3], &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_BFLOAT16, three, 1, "abcdef", 6, &in[4], &err), &err);
  REQUIRE_OK(tn_npz_save(keys, in, 5, flags, path, &err), &err);
  REQUIRE_OK(tn_npz_open(path, &npz, &err), &err);
  REQUIRE_INT(tn_npz_count(npz), 5);
  for (size_t i = 0; i < 5; i++) CHECK_STR(tn_npz_key(npz, i), keys[i]);
  REQUIRE_OK(tn_npz_load_all(npz, (const tn_dtype[]){ 0, 0, 0, 0, TN_BFLOAT16 }, out, &err), &err);
  tn_npz_close(npz);
  for (size_t i = 0; i < 5; i++) {
    REQUIRE_INT(tn_tensor_dtype(out[i]), tn_tensor_dtype(in[i]));
    REQUIRE_INT(tn_tensor_rank(out[i]), tn_tensor_rank(in[i]));
    REQUIRE_INT(tn_tensor_bytes(out[i]), tn_tensor_bytes(in[i]));
    if (i != 1 && i != 3) CHECK_BYTES(tn_tensor_data(out[i]), tn_tensor_data(in[i]), tn_tensor_bytes(in[i]));
  }
  for (int64_t i = 0; i < 3; i++) {
    const char *text;
    size_t length;
    CHECK_OK(tn_tensor_get_string(out[1], i, &text, &length, &err), &err);
    CHECK_INT(length, strlen(texts[i]));
    CHECK_BYTES(text, texts[i], length);
  }
  for (size_t i = 0; i < 5; i++) {
    tn_tensor_unref(in[i]);
    tn_tensor_unref(out[i]);
  }
}

static void npz__stored_arrays_round_trip(void) { check_round_trip(0); }
static void npz__deflated_arrays_round_trip(void) { check_round_trip(TN_NPZ_DEFLATE); }

static void npz__equal_tensors_give_equal_files(void)
{
  static unsigned char first[sizeof(zip.bytes)];
  tn_tensor *t = floats(10, 1);
  const char *key = "x", *path = scratch("equal.npz");
  for (uint32_t flags = 0; flags <= TN_NPZ_DEFLATE; flags++) {
    REQUIRE_OK(tn_npz_save(&key, &t, 1, flags, path, &err), &err);
    read_back(path);
    size_t size = zip.size;
    memcpy(first, zip.bytes, size);
    REQUIRE_OK(tn_npz_save(&key, &t, 1, flags, path, &err), &err);
    read_back(path);
    CHECK_INT(zip.size, size);
    CHECK_BYTES(zip.bytes, first, size);
  }
  tn_tensor_unref(t);
}

static void npz__errors_name_arrays_that_cannot_be_written(void)
{
  tn_tensor *t = floats(2, 1), *handles = NULL;
  const char *const keys[] = { "a", "b", "a" }, *path = scratch("refused.npz");
  tn_tensor *tensors[] = { t, t, t };
  static char long_key[66000];
  CHECK_STATUS(tn_npz_save(keys, tensors, 3, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "refused.npz': two arrays have the key 'a'");
  CHECK_STATUS(tn_npz_save(keys, tensors, 0, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_save(keys, tensors, 1, 2, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_save(keys, tensors, 1, 0, NULL, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_save(NULL, tensors, 1, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_save((const char *[]){ NULL }, tensors, 1, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_save(keys, (tn_tensor *[]){ NULL }, 1, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_npz_save((const char *[]){ "\xff\xfe" }, tensors, 1, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "the key is not UTF-8");
  memset(long_key, 'k', sizeof(long_key) - 1);
  CHECK_STATUS(tn_npz_save((const char *[]){ long_key }, tensors, 1, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "the key of array 0 has 65999 bytes, wanted at most 65531");
  REQUIRE_OK(tn_tensor_create(TN_VARIANT, NULL, 0, &handles, &err), &err);
  CHECK_STATUS(tn_npz_save(keys, &handles, 1, 0, path, &err), TN_UNIMPLEMENTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "refused.npz:a': a tensor of dtype variant cannot be written");
  tn_tensor_unref(handles);
  CHECK(access(path, F_OK) != 0);

  long_key[65531] = 0;
  CHECK_OK(tn_npz_save((const char *[]){ long_key }, tensors, 1, 0, path, &err), &err);
  tn_tensor_unref(t);
}

static void npz__pipes_are_rejected(void)
{
  tn_tensor *t = floats(2, 1);
  const char *key = "a", *path = scratch("pipe");
  REQUIRE_INT(mkfifo(path, 0600), 0);
  FILE *reader = fopen(path, "r+");
  REQUIRE_PTR(reader);
  CHECK_STATUS(tn_npz_save(&key, &t, 1, 0, path, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "wanted a regular file");
  fclose(reader);
  tn_tensor_unref(t);
}

/* If the disk is full, the old file remains, and no other file is left. */
static void npz__a_full_disk_keeps_the_old_file(void)
{
  const char *folder = scratch("full"), *path = scratch("full/x.npz"), *key = "a";
  tn_tensor *small = floats(4, 1), *large = floats(100000, 1), *back = NULL;
  tn_npz *npz = NULL;
  struct rlimit old, limit;
  REQUIRE_INT(mkdir(folder, 0700), 0);
  REQUIRE_OK(tn_npz_save(&key, &small, 1, 0, path, &err), &err);
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  REQUIRE_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
  limit = old;
  limit.rlim_cur = 50000;
  REQUIRE_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  tn_status s = tn_npz_save(&key, &large, 1, 0, path, &err);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  CHECK_STATUS(s, TN_RESOURCE_EXHAUSTED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "cannot write '");
  CHECK_INT(files_in(folder), 1);
  REQUIRE_OK(tn_npz_open(path, &npz, &err), &err);
  REQUIRE_OK(tn_npz_load(npz, "a", 0, &back, &err), &err);
  CHECK_INT(tn_tensor_elements(back), 4);
  tn_tensor_unref(back);
  CHECK_OK(tn_npz_save(&key, &large, 1, 0, path, &err), &err); /* an open archive is not affected */
  REQUIRE_OK(tn_npz_load(npz, "a", 0, &back, &err), &err);
  CHECK_INT(tn_tensor_elements(back), 4);
  tn_npz_close(npz);
  tn_tensor_unref(back);
  tn_tensor_unref(small);
  tn_tensor_unref(large);
}

/* A file may be truncated while it is open. */
static void npz__a_file_truncated_while_open_gives_a_status(void)
{
  const char *path = scratch("cut.npz"), *key = "a";
  tn_tensor *t = floats(100000, 1), *back = NULL;
  tn_npz *npz = NULL;
  REQUIRE_OK(tn_npz_save(&key, &t, 1, 0, path, &err), &err);
  REQUIRE_OK(tn_npz_open(path, &npz, &err), &err);
  REQUIRE_INT(truncate(path, 1000), 0);
  CHECK_STATUS(tn_npz_load(npz, "a", 0, &back, &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "cut.npz' ends at byte 1000");
  CHECK_NULL(back);
  tn_npz_close(npz);
  tn_tensor_unref(t);
}

static tn_status save_and_load(void *arg)
{
  tn_tensor *in[2] = { NULL, NULL }, *out[2] = { NULL, NULL };
  tn_npz *npz = NULL;
  const char *texts[] = { "a", "a longer text, which does not fit into an element" };
  const char *const keys[] = { "strings", "numbers" };
  const int64_t dims[] = { 2 };
  tn_status s = tn_tensor_from_strings(dims, 1, texts, NULL, &in[0], NULL);
  if (s == TN_OK) s = tn_tensor_from_data(TN_INT16, dims, 1, "abcd", 4, &in[1], NULL);
  if (s == TN_OK) s = tn_npz_save(keys, in, 2, TN_NPZ_DEFLATE, arg, NULL);
  if (s == TN_OK) s = tn_npz_open(arg, &npz, NULL);
  if (s == TN_OK) s = tn_npz_load_all(npz, NULL, out, NULL);
  for (int i = 0; i < 2; i++) {
    tn_tensor_unref(in[i]);
    tn_tensor_unref(out[i]);
  }
  tn_npz_close(npz);
  return s;
}

static tn_status open_bytes(void *arg)
{
  tn_npz *npz = NULL;
  (void)arg;
  tn_status s = tn_npz_open_bytes(zip.bytes, zip.size, NULL, &npz, NULL);
  tn_npz_close(npz);
  return s;
}

static void npz__nothing_leaks_without_memory(void)
{
  static char path[300];
  tn_error_clear(&err);
  mkdir(scratch("sweep"), 0700);
  snprintf(path, sizeof(path), "%s", scratch("sweep/x.npz"));
  tn_test_oom_sweep(save_and_load, path);
  CHECK_INT(files_in(scratch("sweep")), 1);
  begin();
  for (int i = 0; i < 20; i++) add_array((char[]){ (char)('a' + i), 0 }, (special){ 0 });
  finish();
  tn_test_oom_sweep(open_bytes, NULL);
}

/* Without libzip, at run time or at build time, there is nothing to test. Checked in a child
 * process, as the tests' allocator must be set before the first use of the library. */
static bool have_npz(void)
{
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    tn_npz *npz = NULL;
    begin();
    finish();
    tn_status s = tn_npz_open_bytes(zip.bytes, zip.size, NULL, &npz, NULL);
    tn_npz_close(npz);
    _exit(s == TN_UNIMPLEMENTED || s == TN_UNAVAILABLE);
  }
  return child < 0 || waitpid(child, &status, 0) != child || status == 0;
}

int main(int argc, char **argv)
{
  static const tap_test tests[] = {
    TAP_TEST(npz__reads_archives_of_numpy),
    TAP_TEST(npz__keys_are_names_without_npy),
    TAP_TEST(npz__the_caller_selects_types_as_in_npy),
    TAP_TEST(npz__errors_name_files_that_are_not_archives),
    TAP_TEST(npz__every_truncated_archive_is_rejected),
    TAP_TEST(npz__mutated_archives_give_a_status),
    TAP_TEST(npz__the_checksum_detects_damage),
    TAP_TEST(npz__an_entry_has_the_length_of_its_header),
    TAP_TEST(npz__errors_name_arrays_that_cannot_be_unpacked),
    TAP_TEST(npz__duplicate_keys_are_rejected),
    TAP_TEST(npz__impossible_compression_ratios_are_rejected),
    TAP_TEST(npz__arrays_stay_within_the_budget),
    TAP_TEST(npz__overlapping_entries_stay_within_the_budget),
    TAP_TEST(npz__false_directories_do_not_allocate),
    TAP_TEST(npz__stored_arrays_round_trip),
    TAP_TEST(npz__deflated_arrays_round_trip),
    TAP_TEST(npz__equal_tensors_give_equal_files),
    TAP_TEST(npz__errors_name_arrays_that_cannot_be_written),
    TAP_TEST(npz__pipes_are_rejected),
    TAP_TEST(npz__a_full_disk_keeps_the_old_file),
    TAP_TEST(npz__a_file_truncated_while_open_gives_a_status),
    TAP_TEST(npz__nothing_leaks_without_memory)
  };
  if (!have_npz()) return puts("1..0 # SKIP libzip is not available") < 0;
  return tap_main(argc, argv, __FILE__, tests, sizeof(tests) / sizeof(tests[0]));
}
