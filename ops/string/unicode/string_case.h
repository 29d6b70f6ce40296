/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of UTF-8, and their lower and upper case. */
#ifndef TN_OPS_STRING_UNICODE_STRING_CASE_H
#define TN_OPS_STRING_UNICODE_STRING_CASE_H

#include <core/base/text.h>

/* ---- UTF-8 ---- */

#define TN__NO_CHARACTER 0xfffdu /* replaces invalid bytes */

/* Returns the character at text[*at] and advances *at past it. For a truncated or invalid sequence,
 * consumes the longest prefix that could begin a character (at least one byte), returns
 * TN__NO_CHARACTER and sets *bad. */
uint32_t tn__utf8_next(const char *text, size_t n, size_t *at, bool *bad);
/* Encodes a character. Returns its size in bytes; at most 4 are written. */
size_t tn__utf8_put(uint32_t c, char *to);

/* ---- case ---- */

/* Appends a text in lower or upper case. Invalid UTF-8 becomes TN__NO_CHARACTER. */
void tn__change_case(tn__text *t, const char *text, size_t n, bool upper);

/* The tables: characters from first to last by `step` are shifted by `delta`; one character that
 * becomes several. */
typedef struct tn__case_range {
  uint32_t first, last;
  int32_t step, delta;
} tn__case_range;
typedef struct tn__case_many {
  uint32_t from, to[3];
} tn__case_many;

extern const tn__case_range tn__case_lower[], tn__case_upper[];
extern const tn__case_many tn__case_lower_many[], tn__case_upper_many[];
extern const uint32_t tn__case_cased[][2], tn__case_ignored[][2];
extern const size_t tn__case_lower_n, tn__case_upper_n, tn__case_lower_many_n, tn__case_upper_many_n, tn__case_cased_n,
    tn__case_ignored_n;

#endif
