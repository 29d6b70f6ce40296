/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "tests/oracle/run/oracle.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <zip.h>

/* --- shared by all parts
 * ------------------------------------------------------------------------------------------ */

static bool settle(oracle_result *result, oracle_verdict verdict, const char *format, va_list args)
{
  if (result->verdict != ORACLE_PASSED) return false;
  result->verdict = verdict;
  vsnprintf(result->reason, sizeof(result->reason), format, args);
  return false;
}

bool oracle_fail(oracle_result *result, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  settle(result, ORACLE_FAILED, format, args);
  va_end(args);
  return false;
}

bool oracle_skip(oracle_result *result, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  settle(result, ORACLE_SKIPPED, format, args);
  va_end(args);
  return false;
}

bool oracle_fail_status(oracle_result *result, const tn_error *err, const char *what)
{
  char text[1000];
  tn_error_format(err, text, sizeof(text));
  return oracle_fail(result, "%s: %s", what, text);
}

void oracle_prefix(oracle_result *result, const char *text)
{
  char *reason = oracle_format("%s: %s", text, result->reason);
  snprintf(result->reason, sizeof(result->reason), "%s", reason);
  free(reason);
}

static void no_memory(void)
{
  fputs("oracle_run: out of memory\n", stderr);
  exit(2);
}

void *oracle_alloc(size_t bytes)
{
  void *memory = calloc(1, bytes ? bytes : 1);
  if (!memory) no_memory();
  return memory;
}

void *oracle_grow(void *array, size_t n, size_t *room, size_t element)
{
  if (n < *room) return array;
  *room = *room ? *room * 2 : 16;
  array = realloc(array, *room * element);
  if (!array) no_memory();
  return array;
}

char *oracle_format(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *text = oracle_alloc((size_t)length + 1);
  va_start(args, format);
  vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  return text;
}

void oracle_usage_error(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  fputs("oracle_run: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(2);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

bool oracle_read_file(const char *path, oracle_bytes *out, char *why, size_t why_size)
{
  *out = (oracle_bytes){ NULL, 0 };
  struct stat info;
  FILE *file = fopen(path, "rb");
  if (!file || fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
    snprintf(why, why_size, "%s: %s", path, file ? "not a file" : strerror(errno));
    if (file) fclose(file);
    return false;
  }
  size_t size = (size_t)info.st_size;
  unsigned char *data = oracle_alloc(size);
  size_t got = fread(data, 1, size, file);
  fclose(file);
  if (got != size) {
    free(data);
    snprintf(why, why_size, "%s: read %zu of %zu bytes", path, got, size);
    return false;
  }
  *out = (oracle_bytes){ data, size };
  return true;
}

static bool read_entry(zip_t *zip, const char *path, const char *name, oracle_bytes *out, char *why, size_t why_size)
{
  *out = (oracle_bytes){ NULL, 0 };
  zip_stat_t info;
  zip_stat_init(&info);
  zip_file_t *file = NULL;
  if (zip_stat(zip, name, 0, &info) != 0 || !(info.valid & ZIP_STAT_SIZE) || !(file = zip_fopen(zip, name, 0))) {
    snprintf(why, why_size, "%s: no '%s': %s", path, name, zip_strerror(zip));
    return false;
  }
  unsigned char *data = oracle_alloc(info.size);
  zip_int64_t got = zip_fread(file, data, info.size);
  zip_fclose(file);
  if (got < 0 || (zip_uint64_t)got != info.size) {
    free(data);
    snprintf(why, why_size, "%s: '%s' is damaged", path, name);
    return false;
  }
  *out = (oracle_bytes){ data, info.size };
  return true;
}

bool oracle_zip_entry(const char *path, const char *name, oracle_bytes *out, char *why, size_t why_size)
{
  *out = (oracle_bytes){ NULL, 0 };
  int code = 0;
  zip_t *zip = zip_open(path, ZIP_RDONLY, &code);
  if (!zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    snprintf(why, why_size, "%s: %s", path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return false;
  }
  bool ok = read_entry(zip, path, name, out, why, why_size);
  zip_discard(zip);
  return ok;
}

/* --- the files of a case ------------------------------------------------------------------------------------------ */

/* An npz is opened from memory, so that its many small reads cost nothing. */
static bool open_npz(const char *path, oracle_arrays *arrays, oracle_result *result)
{
  char why[500];
  if (!oracle_read_file(path, &arrays->npz, why, sizeof(why))) return oracle_fail(result, "%s", why);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source = zip_source_buffer_create(arrays->npz.data, arrays->npz.size, 0, &error);
  arrays->zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
  if (!arrays->zip) {
    oracle_fail(result, "%s: %s", path, zip_error_strerror(&error));
    if (source) zip_source_free(source);
  }
  zip_error_fini(&error);
  return arrays->zip != NULL;
}

static bool load_archive(oracle_archive *archive, oracle_result *result)
{
  char why[500];
  if (archive->loaded) return true;
  if (!oracle_zip_entry(archive->path, "graphs", &archive->graphs, why, sizeof(why)) ||
      !oracle_zip_entry(archive->path, "arrays", &archive->arrays, why, sizeof(why)))
    return oracle_fail(result, "%s", why);
  archive->loaded = true;
  return true;
}

/* A part [offset, size] of a packed entry; false if it is not inside. */
static bool part(const oracle_bytes *whole, const json_t *place, oracle_bytes *out)
{
  json_int_t offset = json_integer_value(json_array_get(place, 0));
  json_int_t size = json_integer_value(json_array_get(place, 1));
  if (json_array_size(place) != 2 || offset < 0 || size < 0 || (uint64_t)offset > whole->size ||
      (uint64_t)size > whole->size - (uint64_t)offset)
    return false;
  *out = (oracle_bytes){ whole->data + offset, (size_t)size };
  return true;
}

static bool open_packed(const oracle_case *c, oracle_bytes *graph, oracle_arrays *arrays, oracle_result *result)
{
  oracle_bytes inside;
  if (!load_archive(c->archive, result)) return false;
  if (!part(&c->archive->graphs, json_object_get(c->entry, "graph"), &inside))
    return oracle_fail(result, "%s: case '%s' has no graph", c->archive->path, c->id);
  *graph = (oracle_bytes){ oracle_alloc(inside.size), inside.size };
  if (inside.size) memcpy(graph->data, inside.data, inside.size);
  arrays->index = json_object_get(c->entry, "arrays");
  arrays->packed = c->archive->arrays;
  return true;
}

bool oracle_open_case(const oracle_case *c, oracle_bytes *graph, oracle_arrays *arrays, oracle_result *result)
{
  *graph = (oracle_bytes){ NULL, 0 };
  memset(arrays, 0, sizeof(*arrays));
  if (c->kind == ORACLE_IN_ARCHIVE) return open_packed(c, graph, arrays, result);

  char why[500];
  char *path = oracle_format("%s/%s.pb", c->folder, c->id);
  bool ok = oracle_read_file(path, graph, why, sizeof(why)) || oracle_fail(result, "%s", why);
  free(path);
  if (!ok) return false;
  path = oracle_format("%s/%s.npz", c->folder, c->id);
  ok = open_npz(path, arrays, result);
  free(path);
  return ok;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
  (void)info;
  (void)type;
  (void)where;
  return remove(path);
}

void oracle_arrays_close(oracle_arrays *arrays)
{
  if (arrays->scratch[0]) nftw(arrays->scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  if (arrays->zip) zip_discard(arrays->zip);
  free(arrays->npz.data);
  memset(arrays, 0, sizeof(*arrays));
}

bool oracle_arrays_bytes(oracle_arrays *arrays, const char *name, oracle_bytes *out, bool *owned, oracle_result *result)
{
  char why[500];
  *owned = arrays->zip != NULL;
  if (!arrays->zip) {
    if (part(&arrays->packed, json_object_get(arrays->index, name), out)) return true;
    return oracle_fail(result, "the archive has no array '%s'", name);
  }
  char *entry = oracle_format("%s.npy", name);
  bool ok = read_entry(arrays->zip, "npz", entry, out, why, sizeof(why)) || oracle_fail(result, "%s", why);
  free(entry);
  return ok;
}
