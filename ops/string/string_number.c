/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in texts. Floats are rewritten without a decimal point, so that the C library rounds them
 * the same way in every locale. */
#include <ops/string/string_number.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

tn__slice tn__text_strip(tn__slice text)
{
  while (text.size > 0 && is_space(text.data[0])) text.data++, text.size--;
  while (text.size > 0 && is_space(text.data[text.size - 1])) text.size--;
  return text;
}

/* ---- integers ---- */

static bool to_uint64(tn__slice text, uint64_t *out)
{
  uint64_t value = 0;
  if (text.size > 0 && text.data[0] == '+') text.data++, text.size--;
  if (text.size == 0) return false;
  for (size_t i = 0; i < text.size; i++) {
    unsigned digit = (unsigned)text.data[i] - '0';
    if (digit > 9 || __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
      return false;
  }
  *out = value;
  return true;
}

/* ---- floats ---- */

/* Further digits do not affect how a double is rounded, except whether any of them is not 0. */
#define MAX_DIGITS 800

typedef struct scanned {
  char text[MAX_DIGITS + 32]; /* digits, after 0x if hexadecimal; scan appends the exponent */
  size_t n, digits;
  int64_t exponent; /* of the last digit, as a power of the base, or of two */
  bool more;        /* non-zero digits were omitted */
} scanned;

static int digit_of(char c, bool hex)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (!hex) return -1;
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void add_digit(scanned *s, char c, bool fraction, int64_t step)
{
  if (s->digits == 0 && c == '0') {
    s->exponent -= fraction ? step : 0;
  } else if (s->digits < MAX_DIGITS) {
    s->text[s->n++] = c;
    s->digits++;
    s->exponent -= fraction ? step : 0;
  } else {
    s->more |= c != '0';
    s->exponent += fraction ? 0 : step;
  }
}

/* The whole text must be [sign] digits. Digits past a bound that no float reaches are ignored. */
static bool scan_exponent(tn__slice text, int64_t *out)
{
  const int64_t bound = INT64_C(1) << 50;
  bool negative = false;
  if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
    negative = text.data[0] == '-';
    text.data++, text.size--;
  }
  if (text.size == 0) return false;
  int64_t e = 0;
  for (size_t i = 0; i < text.size; i++) {
    int d = digit_of(text.data[i], false);
    if (d < 0) return false;
    if (e < bound) e = e * 10 + d;
  }
  *out = negative ? -e : e;
  return true;
}

/* Parses digits [. digits] [exponent], without a sign. Returns true if that is the whole text. */
static bool scan(tn__slice text, bool hex, scanned *s)
{
  int64_t step = hex ? 4 : 1, more = 0;
  size_t i = 0, seen = 0;
  if (hex) memcpy(s->text, "0x", s->n = 2);
  for (; i < text.size && digit_of(text.data[i], hex) >= 0; i++, seen++) add_digit(s, text.data[i], false, step);
  if (i < text.size && text.data[i] == '.')
    for (i++; i < text.size && digit_of(text.data[i], hex) >= 0; i++, seen++) add_digit(s, text.data[i], true, step);
  if (seen == 0) return false;
  if (i < text.size) {
    if ((text.data[i] | 0x20) != (hex ? 'p' : 'e')) return false;
    if (!scan_exponent((tn__slice){ text.data + i + 1, text.size - i - 1 }, &more)) return false;
  }
  if (s->more) {
    s->text[s->n++] = '1';
    s->exponent -= step;
  }
  if (s->digits == 0) s->text[s->n++] = '0', s->exponent = 0;
  else s->exponent += more;
  if (s->exponent > 1000000) s->exponent = 1000000;
  if (s->exponent < -1000000) s->exponent = -1000000;
  tn__snprintf(s->text + s->n, sizeof s->text - s->n, "%c%lld", hex ? 'p' : 'e', (long long)s->exponent);
  return true;
}

static bool equals_word(tn__slice text, const char *word)
{
  size_t n = strlen(word);
  if (text.size != n) return false;
  for (size_t i = 0; i < n; i++)
    if ((text.data[i] | 0x20) != word[i]) return false;
  return true;
}

/* inf, infinity, nan, nan(anything); without a sign. */
static bool is_special(tn__slice text, double *out)
{
  bool is_inf = equals_word(text, "inf") || equals_word(text, "infinity");
  bool is_nan = equals_word(text, "nan") ||
                (text.size > 4 && text.data[3] == '(' && text.data[text.size - 1] == ')' &&
                 equals_word((tn__slice){ text.data, 3 }, "nan"));
  *out = is_inf ? (double)INFINITY : (double)NAN;
  return is_inf || is_nan;
}

static bool to_float(tn__slice text, bool single, double *out)
{
  bool negative = false;
  if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
    negative = text.data[0] == '-';
    text.data++, text.size--;
  }
  if (!is_special(text, out)) {
    scanned s = { .n = 0 };
    bool hex = text.size > 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x';
    if (!scan(hex ? (tn__slice){ text.data + 2, text.size - 2 } : text, hex, &s)) return false;
    *out = single ? (double)strtof(s.text, NULL) : strtod(s.text, NULL);
  }
  if (negative) *out = -*out;
  return true;
}

bool tn__text_to_number(tn_dtype dtype, tn__slice text, void *out)
{
  int64_t i = 0;
  uint64_t u = 0;
  double d = 0;
  text = tn__text_strip(text);
  switch (dtype) {
  case TN_INT32:
    if (!tn__parse_int(text, &i) || i < INT32_MIN || i > INT32_MAX) return false;
    *(int32_t *)out = (int32_t)i;
    return true;
  case TN_INT64: return tn__parse_int(text, out);
  case TN_UINT32:
    if (!to_uint64(text, &u) || u > UINT32_MAX) return false;
    *(uint32_t *)out = (uint32_t)u;
    return true;
  case TN_UINT64: return to_uint64(text, out);
  case TN_FLOAT:
    if (!to_float(text, true, &d)) return false;
    *(float *)out = (float)d;
    return true;
  case TN_DOUBLE: return to_float(text, false, out);
  default: return false;
  }
}
