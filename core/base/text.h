/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text with a ceiling, string slices, number parsing that knows no locale. */
#ifndef TN_CORE_BASE_TEXT_H
#define TN_CORE_BASE_TEXT_H

#include <core/base/alloc.h>
#include <stdarg.h>

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

/* A text buffer; once an append fails (no memory, or above `limit`) it stays failed and later appends do nothing. */
typedef struct tn__text {
  char *data; /* always ends in a NUL when not NULL */
  size_t size, capacity, limit;
  bool failed;
} tn__text;
void tn__text_init(tn__text *t, size_t limit);
void tn__text_fini(tn__text *t);
void tn__text_append(tn__text *t, const char *data, size_t size);
void tn__text_puts(tn__text *t, const char *text);
void tn__text_printf(tn__text *t, const char *format, ...) TN_PRINTF(2, 3);
const char *tn__text_get(const tn__text *t); /* "" when empty */

/* As snprintf, but in the C locale whatever the program has set. */
int tn__vsnprintf(char *buffer, size_t size, const char *format, va_list args) TN_PRINTF(3, 0);
int tn__snprintf(char *buffer, size_t size, const char *format, ...) TN_PRINTF(3, 4);

/* A shape for messages: "[2,?,3]"; "unknown rank" for rank -1. At most `size` bytes with the NUL, shortened with "...".
 * Returns buffer. */
char *tn__format_shape(char *buffer, size_t size, const int64_t *dims, int32_t rank);

/* A copy of a text from tn__alloc; free it with tn__strfree. */
char *tn__strdup(const char *text);
char *tn__strndup(const char *text, size_t size);
void tn__strfree(char *text);

/* The whole slice as a number, without locale; false when it is none or out of range. */
bool tn__parse_int(tn__slice text, int64_t *out);
bool tn__parse_double(tn__slice text, double *out); /* also inf, nan, 1e5 */

/* The system's text for an error number, in English. Any thread. */
const char *tn__strerror(int number);

/* A line for the log that somebody asked for by name: shown at every level. */
void tn__log_asked(const char *format, ...) TN_PRINTF(1, 2);

/* An environment variable; NULL when it is unset or the process has more rights than who started it. */
const char *tn__getenv(const char *name);

#endif
