/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of JSON, with what protobuf's parser accepts besides: single quotes, names without quotes, a comma after the
 * last item, control characters in texts. Duplicates its other rules, so that the same texts are rejected. */
#ifndef TN_OPS_EXAMPLE_JSON_H
#define TN_OPS_EXAMPLE_JSON_H

#include <core/base/text.h>

#define TN__JSON_DEPTH 100 /* the maximum nesting of objects and arrays; protobuf's own limit */

/* A position in a text. A function that returns false has set `error`, unless it says otherwise. */
typedef struct tn__json {
  const char *begin, *p, *end;
  const char *error; /* static */
} tn__json;

/* Always false. */
static inline bool tn__json_fail(tn__json *j, const char *error)
{
  if (j->error == NULL) j->error = error;
  return false;
}

/* The next character after white space, which is skipped; '\0' at the end, and for a zero byte. */
char tn__json_next(tn__json *j);
/* Skips the character if it is next; else false, without an error. */
bool tn__json_take(tn__json *j, char c);
/* Skips a text, which must be next. */
bool tn__json_expect(tn__json *j, const char *text);
/* Reads a text in quotes into *to, which is cleared first. */
bool tn__json_text(tn__json *j, tn__text *to);
/* Reads the name of an object's member, with or without quotes, and the colon. */
bool tn__json_name(tn__json *j, tn__text *to);
/* Reads a number without converting it; *out is borrowed from the text. */
bool tn__json_number(tn__json *j, tn__slice *out);

/* Walks the members of an object: true for each, with the name read. Begin with *first true. At the end, and after an
 * error, false. */
bool tn__json_member(tn__json *j, bool *first, tn__text *name);

#endif
