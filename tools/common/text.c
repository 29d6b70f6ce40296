/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, growable text, and suggestions for misspelt names. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <tools/tool.h>

static void out_of_memory(void) __attribute__((noreturn));

static void out_of_memory(void)
{
  fputs("tenon: RESOURCE_EXHAUSTED: no memory\n", stderr);
  tool_exit(TOOL_FAILED);
}

void *tool_alloc(size_t count, size_t size)
{
  void *memory = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
  if (memory == NULL) out_of_memory();
  return memory;
}

void *tool_grow(void *items, size_t n, size_t *room, size_t size)
{
  if (n < *room) return items;
  size_t more = *room < 16 ? 16 : *room * 2;
  if (more > SIZE_MAX / 2 / size) out_of_memory();
  items = realloc(items, more * size);
  if (items == NULL) out_of_memory();
  *room = more;
  return items;
}

static void text_reserve(tool_text *text, size_t more)
{
  if (more >= SIZE_MAX / 2 - text->length) out_of_memory();
  size_t wanted = text->length + more + 1;
  if (wanted <= text->room) return;
  size_t room = text->room < 128 ? 128 : text->room * 2;
  if (room < wanted) room = wanted;
  char *data = realloc(text->data, room);
  if (data == NULL) out_of_memory();
  text->data = data;
  text->room = room;
}

void tool_text_add(tool_text *text, const char *data, size_t length)
{
  text_reserve(text, length);
  if (length > 0) memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = '\0';
}

void tool_text_printf(tool_text *text, const char *format, ...)
{
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length > 0) {
    text_reserve(text, (size_t)length);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
}

void tool_text_fini(tool_text *text)
{
  free(text->data);
  memset(text, 0, sizeof(*text));
}

const char *tool_bytes_text(char buffer[32], uint64_t bytes)
{
  static const char *const units[] = { "kB", "MB", "GB", "TB" };
  if (bytes < 1000) {
    snprintf(buffer, 32, "%" PRIu64 " B", bytes);
    return buffer;
  }
  double value = (double)bytes / 1000;
  size_t unit = 0;
  while (value >= 999.95 && unit < 3) {
    value /= 1000;
    unit++;
  }
  snprintf(buffer, 32, "%.1f %s", value, units[unit]);
  return buffer;
}

size_t tool_utf8_length(const char *text, size_t length)
{
  unsigned char c = (unsigned char)text[0];
  size_t n = 1;
  if (c >= 0x80) n = c < 0xE0 ? 2 : 3;
  if (c >= 0xF0) n = 4;
  if ((c >= 0x80 && c < 0xC2) || c > 0xF4 || n > length) return 0;
  for (size_t i = 1; i < n; i++)
    if (((unsigned char)text[i] & 0xC0) != 0x80) return 0;
  /* Overlong forms, surrogates and numbers above U+10FFFF. */
  unsigned char second = n > 1 ? (unsigned char)text[1] : 0;
  if ((c == 0xE0 && second < 0xA0) || (c == 0xED && second > 0x9F) || (c == 0xF0 && second < 0x90) ||
      (c == 0xF4 && second > 0x8F))
    return 0;
  return n;
}

int tool_decimals(double value)
{
  if (value >= 99.95) return 0;
  return value >= 9.995 ? 1 : 2;
}

const char *tool_duration_text(char buffer[32], double ns)
{
  static const char *const units[] = { "ns", "us", "ms", "s" };
  size_t unit = 0;
  while (ns >= 999.5 && unit < 3) {
    ns /= 1000;
    unit++;
  }
  snprintf(buffer, 32, "%.*f %s", unit == 0 ? 0 : tool_decimals(ns), ns, units[unit]);
  return buffer;
}

void tool_text_shape(tool_text *text, const int64_t *dims, int32_t rank)
{
  if (rank < 0) {
    tool_text_printf(text, "unknown shape");
    return;
  }
  tool_text_add(text, "[", 1);
  for (int32_t i = 0; i < rank; i++) {
    if (i > 0) tool_text_add(text, ", ", 2);
    if (dims[i] < 0)
      tool_text_add(text, "?", 1);
    else
      tool_text_printf(text, "%" PRId64, dims[i]);
  }
  tool_text_add(text, "]", 1);
}

/* ---- similar names ---- */

static size_t min3(size_t a, size_t b, size_t c)
{
  if (b < a) a = b;
  return c < a ? c : a;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Case-insensitive edit distance with transpositions; SIZE_MAX if above `limit`. */
static size_t edit_distance(const char *a, const char *b, size_t limit)
{
  enum { LONGEST = 128 };
  size_t na = strlen(a), nb = strlen(b);
  if (na > LONGEST || nb > LONGEST || (na > nb ? na - nb : nb - na) > limit) return SIZE_MAX;
  size_t rows[3][LONGEST + 1];
  size_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= nb; j++) last[j] = before[j] = j;
  for (size_t i = 1; i <= na; i++) {
    size_t least = now[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
          before[j - 2] + 1 < now[j])
        now[j] = before[j - 2] + 1;
      if (now[j] < least) least = now[j];
    }
    if (least > limit) return SIZE_MAX;
    size_t *spare = before;
    before = last;
    last = now;
    now = spare;
  }
  return last[nb] <= limit ? last[nb] : SIZE_MAX;
}

void tool_near_init(tool_near *near, const char *wanted)
{
  memset(near, 0, sizeof(*near));
  near->wanted = wanted;
}

/* The last part of a name, after its slashes. */
static const char *last_part(const char *name)
{
  const char *slash = strrchr(name, '/');
  return slash != NULL ? slash + 1 : name;
}

void tool_near_offer(tool_near *near, const char *name)
{
  size_t length = strlen(near->wanted);
  size_t distance = edit_distance(near->wanted, name, length / 3 + 1);
  /* The leading scopes may be missing or wrong. */
  if (distance > 1 && length > 0 && strcasecmp(last_part(near->wanted), last_part(name)) == 0) distance = 1;
  if (distance == SIZE_MAX) return;
  for (size_t i = 0; i < 3; i++) {
    if (near->best[i] != NULL && near->distance[i] <= distance) continue;
    for (size_t j = 2; j > i; j--) {
      near->best[j] = near->best[j - 1];
      near->distance[j] = near->distance[j - 1];
    }
    near->best[i] = name;
    near->distance[i] = distance;
    return;
  }
}

void tool_near_text(const tool_near *near, tool_text *out)
{
  if (near->best[0] == NULL) return;
  tool_text_printf(out, " (did you mean '%s'", near->best[0]);
  /* Offer others only if they are equally near. */
  for (size_t i = 1; i < 3 && near->best[i] != NULL && near->distance[i] == near->distance[0]; i++)
    tool_text_printf(out, "%s '%s'",
                     i == 2 || near->best[i + 1] == NULL || near->distance[i + 1] != near->distance[0] ? " or" : ",",
                     near->best[i]);
  tool_text_add(out, "?)", 2);
}
