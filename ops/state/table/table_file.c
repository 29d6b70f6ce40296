/* SPDX-License-Identifier: Apache-2.0 */
/* Text files as rows of tables. Lines may have any length; the file is read in blocks. */
#include <ops/string/string_number.h>
#include <ops/string/string_path.h>
#include <ops/state/table/table.h>
#include <ops/state/table/table_file.h>

#include <string.h>

#define BLOCK ((size_t)1 << 16)

/* ---- lines ---- */

typedef struct reader {
  tn__file file;
  uint64_t offset; /* of the next byte to read */
  char *data;      /* unread data is [begin, end) */
  size_t capacity, begin, end;
} reader;

/* Reads more of the file and appends it to the buffer. *more is false at the end of the file. */
static tn_status fill(reader *r, bool *more, tn_error *err)
{
  uint64_t left = r->file.size - r->offset;
  size_t n = left < BLOCK ? (size_t)left : BLOCK;
  *more = n > 0;
  if (n == 0) return TN_OK;
  if (r->begin > 0) memmove(r->data, r->data + r->begin, r->end - r->begin);
  r->end -= r->begin;
  r->begin = 0;
  if (!tn__grow((void **)&r->data, &r->capacity, r->end + n, 1))
    return tn__no_memory(err, "line of a file", r->end + n);
  tn_status st = tn__file_read(&r->file, r->offset, r->data + r->end, n, err);
  if (st != TN_OK) return st;
  r->offset += n;
  r->end += n;
  return TN_OK;
}

/* The next line without its end, borrowed until the next call. *found is false after the last line. */
static tn_status next_line(reader *r, tn__slice *line, bool *found, tn_error *err)
{
  size_t searched = 0;
  bool more = true;
  const char *stop = NULL;
  while (more) {
    size_t n = r->end - r->begin;
    if (n > searched) stop = memchr(r->data + r->begin + searched, '\n', n - searched);
    if (stop != NULL) break;
    searched = n;
    tn_status st = fill(r, &more, err);
    if (st != TN_OK) return st;
  }
  line->data = r->data == NULL ? "" : r->data + r->begin; /* an empty file has no data */
  line->size = stop != NULL ? (size_t)(stop - line->data) : r->end - r->begin;
  *found = stop != NULL || line->size > 0;
  r->begin += line->size + (stop != NULL);
  if (stop != NULL && line->size > 0 && line->data[line->size - 1] == '\r') line->size--;
  return TN_OK;
}

static uint64_t position(const reader *r) { return r->offset - (r->end - r->begin); }

/* ---- fields ---- */

/* Field k of a line. Returns false if the line has fewer, and their number in *n. */
static bool field_of(tn__slice line, char delimiter, int64_t k, tn__slice *out, int64_t *n)
{
  const char *at = line.data, *end = line.data + line.size;
  for (*n = 1;; ++*n) {
    const char *stop = at < end ? memchr(at, delimiter, (size_t)(end - at)) : NULL;
    *out = (tn__slice){ at, (size_t)((stop == NULL ? end : stop) - at) };
    if (*n == k + 1) return true;
    if (stop == NULL) return false;
    at = stop + 1;
  }
}

typedef union cell {
  tn_string string;
  int64_t i;
  double d;
} cell;

static tn_status set_cell(tn_dtype dtype, tn__slice text, int64_t line, cell *out, tn_error *err)
{
  if (dtype == TN_STRING) return tn_string_set(&out->string, text.data, text.size, err);
  if (dtype != TN_INT32 && dtype != TN_INT64 && dtype != TN_FLOAT && dtype != TN_DOUBLE)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s cannot be read from files", tn_dtype_name(dtype));
  if (tn__text_to_number(dtype, text, out)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "line %lld: '%.*s' is not a valid %s", (long long)line,
                      text.size > 100 ? 100 : (int)text.size, text.data, tn_dtype_name(dtype));
}

/* Parses the key or the value of a line. */
static tn_status read_cell(const tn__table_file *how, int64_t index, tn_dtype dtype, tn__slice line, int64_t number,
                           cell *out, tn_error *err)
{
  tn__slice field = line;
  int64_t n;
  if (index == TN__LINE_NUMBER) {
    out->i = (int64_t)((uint64_t)number + (uint64_t)how->offset);
    return TN_OK;
  }
  if (index >= 0 && !field_of(line, how->delimiter, index, &field, &n))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "line %lld has %lld fields, wanted at least %lld", (long long)number,
                        (long long)n, (long long)index + 1);
  return set_cell(dtype, field, number, out, err);
}

static tn_status read_row(const tn__table_file *how, tn__slice line, int64_t number, tn__rows *rows, tn_error *err)
{
  cell key, value;
  memset(&key, 0, sizeof key);
  memset(&value, 0, sizeof value);
  tn_status st = read_cell(how, how->key, rows->key_dtype, line, number, &key, err);
  if (st == TN_OK) st = read_cell(how, how->value, rows->value_dtype, line, number, &value, err);
  if (st == TN_OK) st = tn__table_add_row(rows, &key, &value, err);
  tn__elements_clear(rows->key_dtype, &key, 1);
  tn__elements_clear(rows->value_dtype, &value, 1);
  return st;
}

/* ---- files ---- */

static tn_status read_rows(const tn__table_file *how, reader *r, tn__rows *rows, tn_error *err)
{
  int64_t number = 0;
  for (; how->lines == TN__ALL_LINES || number < how->lines; number++) {
    tn__slice line;
    bool found;
    uint64_t at = position(r);
    tn_status st = next_line(r, &line, &found, err);
    if (st != TN_OK) return st;
    if (!found) break;
    if (line.size == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "line %lld, at byte %llu, is empty", (long long)number,
                          (unsigned long long)at);
    st = read_row(how, line, number, rows, err);
    if (st != TN_OK) return st;
  }
  if (number == 0) return tn_error_set(err, TN_OUT_OF_RANGE, "no line is read");
  if (how->lines != TN__ALL_LINES && number < how->lines)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "there are %lld lines, wanted %lld", (long long)number,
                        (long long)how->lines);
  return TN_OK;
}

static tn_status check_types(const tn__table_file *how, const tn__rows *rows, tn_error *err)
{
  bool key = how->key == TN__LINE_NUMBER && rows->key_dtype != TN_INT64;
  bool value = how->value == TN__LINE_NUMBER && rows->value_dtype != TN_INT64;
  if (!key && !value) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the table's %s are %s, line numbers are int64",
                      key ? "keys" : "values", tn_dtype_name(key ? rows->key_dtype : rows->value_dtype));
}

tn_status tn__table_file_read(const tn__table_file *how, const char *path, tn__rows *rows, tn_error *err)
{
  reader r = { .offset = 0 };
  tn_status st = check_types(how, rows, err);
  if (st != TN_OK) return st;
  st = tn__named_file_open(path, &r.file, err);
  if (st != TN_OK) return st;
  st = read_rows(how, &r, rows, err);
  tn__file_close(&r.file);
  tn__free(r.data, r.capacity);
  return st == TN_OK ? TN_OK : tn_error_prefix(err, "'%s'", path);
}
