/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/example/json.h>

#include <math.h>
#include <ops/string/string_number.h>
#include <ops/string/unicode/string_case.h>
#include <string.h>

char tn__json_next(tn__json *j)
{
  while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\r' || *j->p == '\n')) j->p++;
  return j->p < j->end ? *j->p : '\0';
}

bool tn__json_take(tn__json *j, char c)
{
  if (tn__json_next(j) != c || j->p == j->end) return false;
  j->p++;
  return true;
}

bool tn__json_expect(tn__json *j, const char *text)
{
  size_t n = strlen(text);
  tn__json_next(j);
  if ((size_t)(j->end - j->p) < n || memcmp(j->p, text, n) != 0)
    return tn__json_fail(j, j->p == j->end ? "the text ends too soon" : "an unexpected character");
  j->p += n;
  return true;
}

/* ---- texts ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int hex_digit(char c)
{
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_unit(tn__json *j, uint32_t *unit)
{
  *unit = 0;
  for (int i = 0; i < 4; i++, j->p++) {
    int digit = j->p < j->end ? hex_digit(*j->p) : -1;
    if (digit < 0) return tn__json_fail(j, "an escape has no four hexadecimal digits");
    *unit = *unit << 4 | (uint32_t)digit;
  }
  return true;
}

/* A character given by its number in UTF-16, two units above 0xffff. */
static bool read_unicode(tn__json *j, tn__text *to)
{
  char bytes[4];
  uint32_t c, low;
  if (!read_unit(j, &c)) return false;
  if (c >= 0xdc00 && c <= 0xdfff) return tn__json_fail(j, "an escape is a low surrogate without a high one");
  if (c >= 0xd800 && c <= 0xdbff) {
    if (!tn__json_expect(j, "\\u") || !read_unit(j, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return tn__json_fail(j, "an escape is a high surrogate without a low one");
    c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
    if (c == 0x10ffff) return tn__json_fail(j, "an escape is no valid character"); /* as in protobuf */
  }
  tn__text_append(to, bytes, tn__utf8_put(c, bytes));
  return true;
}

static bool read_escape(tn__json *j, tn__text *to)
{
  static const char from[] = "\"\\/bfnrt'", is[] = "\"\\/\b\f\n\r\t'";
  if (j->p == j->end) return tn__json_fail(j, "a text has no end");
  char c = *j->p++;
  if (c == 'u' || c == 'U') return read_unicode(j, to);
  const char *at = c == '\0' ? NULL : strchr(from, c);
  if (at == NULL) return tn__json_fail(j, "an unknown escape");
  tn__text_append(to, is + (at - from), 1);
  return true;
}

/* The bytes of a character, which is checked only for its lead and continuation bytes. */
static bool read_character(tn__json *j, tn__text *to)
{
  unsigned char lead = (unsigned char)*j->p;
  size_t n = 0;
  if (lead < 0x80) n = 1;
  else if (lead >= 0xc0 && lead < 0xf8) n = 2 + (lead >= 0xe0) + (lead >= 0xf0);
  if (n == 0 || (size_t)(j->end - j->p) < n) return tn__json_fail(j, "a text is not UTF-8");
  for (size_t i = 1; i < n; i++)
    if (((unsigned char)j->p[i] & 0xc0) != 0x80) return tn__json_fail(j, "a text is not UTF-8");
  tn__text_append(to, j->p, n);
  j->p += n;
  return true;
}

bool tn__json_text(tn__json *j, tn__text *to)
{
  char quote = tn__json_next(j) == '\'' ? '\'' : '"';
  to->size = 0;
  if (!tn__json_take(j, quote)) return tn__json_fail(j, "wanted a text in quotes");
  while (j->p < j->end && *j->p != quote) {
    bool escaped = *j->p == '\\';
    j->p += escaped;
    if (escaped ? !read_escape(j, to) : !read_character(j, to)) return false;
  }
  if (j->p == j->end) return tn__json_fail(j, "a text has no end");
  j->p++;
  return true;
}

static bool is_word(char c)
{
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool tn__json_name(tn__json *j, tn__text *to)
{
  char c = tn__json_next(j);
  if (c == '"' || c == '\'') return tn__json_text(j, to) && tn__json_expect(j, ":");
  tn__slice word = { j->p, 0 };
  while (j->p < j->end && is_word(*j->p)) j->p++;
  word.size = (size_t)(j->p - word.data);
  if (word.size == 0 || is_digit(word.data[0]) || tn__slice_is(word, "null") || tn__slice_is(word, "true") ||
      tn__slice_is(word, "false"))
    return tn__json_fail(j, "wanted a name");
  to->size = 0;
  tn__text_append(to, word.data, word.size);
  return tn__json_expect(j, ":");
}

/* ---- numbers ---- */

/* Whether a number goes on with c after the character `before`. *part is 0 in the integer, 1 in the fraction, 2 in the
 * exponent. */
static bool goes_on(char before, char c, int *part)
{
  if (is_digit(c)) return true;
  if (*part == 0 && c == '-') return !is_digit(before);
  if (*part == 0 && is_digit(before) && c == '.') *part = 1;
  else if (*part < 2 && is_digit(before) && (c == 'e' || c == 'E')) *part = 2;
  else return (before == 'e' || before == 'E') && (c == '-' || c == '+');
  return true;
}

bool tn__json_number(tn__json *j, tn__slice *out)
{
  double value;
  char before = '\0';
  int part = 0;
  tn__json_next(j);
  const char *from = j->p;
  for (; j->p < j->end && goes_on(before, *j->p, &part); j->p++) before = *j->p;
  *out = (tn__slice){ from, (size_t)(j->p - from) };
  const char *digits = from + (out->size > 0 && *from == '-');
  if (before == '.' || (j->p - digits > 1 && digits[0] == '0' && is_digit(digits[1])) ||
      !tn__text_to_number(TN_DOUBLE, *out, &value) || !isfinite(value))
    return tn__json_fail(j, "not a number");
  char next = tn__json_next(j);
  return j->p == j->end || next == ',' || next == ']' || next == '}' || tn__json_fail(j, "an unexpected character");
}

/* ---- objects ---- */

bool tn__json_member(tn__json *j, bool *first, tn__text *name)
{
  if (j->error != NULL) return false;
  if (*first) {
    *first = false;
    if (!tn__json_expect(j, "{") || tn__json_take(j, '}')) return false;
  } else {
    bool comma = tn__json_take(j, ',');
    if (tn__json_take(j, '}')) return false;
    if (!comma) return tn__json_fail(j, "wanted ','");
  }
  return tn__json_name(j, name);
}
