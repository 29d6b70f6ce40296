/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of UTF-8, and their small and capital forms. */
#ifndef TN_OPS_STRING_STRING_CASE_H
#define TN_OPS_STRING_STRING_CASE_H

#include <core/base/text.h>

/* ---- UTF-8 ---- */

#define TN__NO_CHARACTER 0xfffdu /* stands for bytes that are none */

/* The character at text[*at], and moves *at behind it. Of a character that is cut short, or of bytes that are none,
 * what cannot begin a longer one is taken at once, and TN__NO_CHARACTER given; *bad says so. */
uint32_t tn__utf8_next(const char *text, size_t n, size_t *at, bool *bad);
/* Bytes of a character; at most 4 are written. */
size_t tn__utf8_put(uint32_t c, char *to);

/* ---- case ---- */

/* Appends a text in small or in capital letters; bytes that are no UTF-8 become TN__NO_CHARACTER. */
void tn__change_case(tn__text *t, const char *text, size_t n, bool upper);

/* The tables: first to last by `step` are moved by `delta`; one character becomes several. */
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
