/* SPDX-License-Identifier: Apache-2.0 */
/* Text buffers with a maximum size, string slices, formatting and number parsing independent of the locale. */
#ifndef TN_CORE_BASE_TEXT_H
#define TN_CORE_BASE_TEXT_H

#include <core/base/alloc.h>
#include <stdarg.h>

/* A borrowed byte string. It may contain NULs and has none at its end; data may be NULL if size is 0. */
typedef struct tn__slice {
  const char *data;
  size_t size;
} tn__slice;

static inline tn__slice tn__slice_of(const char *text)
{
  tn__slice s = { text, text == NULL ? 0 : __builtin_strlen(text) };
  return s;
}
bool tn__slice_equal(tn__slice a, tn__slice b);
bool tn__slice_is(tn__slice a, const char *text);

/* A text buffer. If an append fails (out of memory, or above `limit`), it stays failed and later appends do nothing. So
 * a caller tests `failed` once, at the end. One thread at a time. */
typedef struct tn__text {
  char *data;                   /* owned; NUL-terminated if not NULL */
  size_t size, capacity, limit; /* in bytes; size and limit without the NUL */
  bool failed;
} tn__text;
void tn__text_init(tn__text *t, size_t limit);
void tn__text_fini(tn__text *t);
void tn__text_append(tn__text *t, const char *data, size_t size);
void tn__text_puts(tn__text *t, const char *text);
void tn__text_printf(tn__text *t, const char *format, ...) TN_PRINTF(2, 3);
const char *tn__text_get(const tn__text *t); /* "" when empty */

/* Like snprintf, but in the C locale whatever the program has set. */
int tn__vsnprintf(char *buffer, size_t size, const char *format, va_list args) TN_PRINTF(3, 0);
int tn__snprintf(char *buffer, size_t size, const char *format, ...) TN_PRINTF(3, 4);

/* Formats a shape for messages: "[2,?,3]"; "unknown rank" for rank -1. At most `size` bytes with the NUL, shortened
 * with "...". Returns buffer. */
char *tn__format_shape(char *buffer, size_t size, const int64_t *dims, int32_t rank);

/* Copies a text with tn__alloc; free it with tn__strfree. NULL: text is NULL, or out of memory. */
char *tn__strdup(const char *text);
char *tn__strndup(const char *text, size_t size);
void tn__strfree(char *text);

/* The number of bytes of the character in UTF-8 at p, of which `left` bytes (at least 1) may be read. 0: it is
 * malformed, that is, cut off, encoded too long, a surrogate, or beyond U+10FFFF. */
size_t tn__utf8_size(const unsigned char *p, size_t left);

/* Parses the whole slice as a number, independent of the locale. False: not a number, or out of range. */
bool tn__parse_int(tn__slice text, int64_t *out);
bool tn__parse_double(tn__slice text, double *out); /* also inf, nan, 1e5 */

/* The system's text for an errno, in English. Any thread. */
const char *tn__strerror(int number);

/* Logs a line that the user requested explicitly (TENON_DEBUG): it is shown at every log level. */
void tn__log_asked(const char *format, ...) TN_PRINTF(1, 2);

/* An environment variable. NULL: it is unset, or the process has more rights than the user who started it (set-uid), so
 * that the environment cannot be trusted. */
const char *tn__getenv(const char *name);

#endif
