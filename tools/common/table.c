/* SPDX-License-Identifier: Apache-2.0 */
/* Output in columns, and as JSON. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

void tool_table_init(tool_table *table, size_t columns, uint32_t right)
{
  memset(table, 0, sizeof(*table));
  table->columns = columns;
  table->right = right;
}

void tool_table_cell(tool_table *table, const char *format, ...)
{
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) length = 0;
  char *cell = tool_alloc((size_t)length + 1, 1);
  vsnprintf(cell, (size_t)length + 1, format, again);
  va_end(again);
  for (char *c = cell; *c != '\0'; c++) /* keep each row on one line */
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  table->cells = tool_grow(table->cells, table->n, &table->room, sizeof(*table->cells));
  table->cells[table->n++] = cell;
}

/* Number of cells up to the last non-empty one, to avoid trailing blanks. */
static size_t row_length(const tool_table *table, size_t first)
{
  size_t n = table->n - first < table->columns ? table->n - first : table->columns;
  while (n > 0 && table->cells[first + n - 1][0] == '\0') n--;
  return n;
}

static void print_row(const tool_table *table, size_t first, const size_t *widths, FILE *out)
{
  size_t n = row_length(table, first);
  for (size_t c = 0; c < n; c++) {
    const char *cell = table->cells[first + c];
    size_t length = strlen(cell);
    int pad = widths[c] > length ? (int)(widths[c] - length) : 0;
    bool right = (table->right >> c & 1) != 0;
    int before = right ? pad : 0, after = pad - before + 2;
    fprintf(out, "%*s%s%*s", before, "", cell, c + 1 == n ? 0 : after, "");
  }
  fputc('\n', out);
}

void tool_table_print(tool_table *table, const char *indent, FILE *out)
{
  size_t *widths = tool_alloc(table->columns, sizeof(*widths));
  for (size_t i = 0; i < table->n; i++) {
    size_t length = strlen(table->cells[i]), *width = &widths[i % table->columns];
    /* A cell alone in its row does not affect the column width. */
    if (i % table->columns == 0 && row_length(table, i) == 1 && table->columns > 1) continue;
    /* One very long name must not widen the column for all rows. */
    if (length > 48) length = 48;
    if (length > *width) *width = length;
  }
  for (size_t i = 0; i < table->n; i += table->columns) {
    fputs(indent, out);
    print_row(table, i, widths, out);
  }
  free(widths);
  tool_table_fini(table);
}

void tool_table_fini(tool_table *table)
{
  for (size_t i = 0; i < table->n; i++) free(table->cells[i]);
  free(table->cells);
  tool_table_init(table, table->columns, table->right);
}

/* ---- JSON ---- */

static json_t *have(json_t *value)
{
  if (value != NULL) return value;
  fputs("tenon: RESOURCE_EXHAUSTED: no memory\n", stderr);
  tool_exit(TOOL_FAILED);
}

json_t *tool_json_text(const char *text)
{
  tool_text clean = { 0 };
  tool_text_add(&clean, "", 0);
  while (*text != '\0') {
    size_t n = tool_utf8_length(text, strnlen(text, 4));
    if (n > 0)
      tool_text_add(&clean, text, n);
    else
      tool_text_add(&clean, "\xEF\xBF\xBD", 3);
    text += n > 0 ? n : 1;
  }
  json_t *value = json_string(clean.data);
  tool_text_fini(&clean);
  return have(value);
}

json_t *tool_json_shape(const int64_t *dims, int32_t rank)
{
  if (rank < 0) return json_null();
  json_t *shape = have(json_array());
  for (int32_t i = 0; i < rank; i++) tool_json_append(shape, dims[i] < 0 ? json_null() : json_integer(dims[i]));
  return shape;
}

void tool_json_set(json_t *object, const char *key, json_t *value)
{
  if (json_object_set_new(object, key, have(value)) != 0) have(NULL);
}

void tool_json_append(json_t *array, json_t *value)
{
  if (json_array_append_new(array, have(value)) != 0) have(NULL);
}

int tool_json_print(json_t *value)
{
  /* tool_finish detects a failed write. */
  /* Fifteen digits print 0.2 as 0.2; no measured value has more. */
  json_dumpf(have(value), stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
  fputc('\n', stdout);
  json_decref(value);
  return TOOL_OK;
}
