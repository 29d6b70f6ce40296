/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <core/base/text.h>

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/auxv.h>
#else
#include <unistd.h>
#endif

/* ---- the C locale ---- */

/* Numbers are formatted and parsed in this locale, whatever the program has set: some locales have a decimal comma.
 * (locale_t)0: it could not be created, and the program's locale is used. */
static locale_t c_locale;

static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static locale_t get_c_locale(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_c_locale);
  return c_locale;
}

int tn__vsnprintf(char *buffer, size_t size, const char *format, va_list args)
{
  locale_t c = get_c_locale(), before = (locale_t)0;
  if (c != (locale_t)0) before = uselocale(c);
  int n = vsnprintf(buffer, size, format, args);
  if (c != (locale_t)0) uselocale(before);
  return n;
}

int tn__snprintf(char *buffer, size_t size, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = tn__vsnprintf(buffer, size, format, args);
  va_end(args);
  return n;
}

const char *tn__strerror(int number)
{
  locale_t c = get_c_locale();
  const char *text = c != (locale_t)0 ? strerror_l(number, c) : NULL;
  return text != NULL ? text : "unknown system error";
}

/* ---- slices and growing texts ---- */

bool tn__slice_equal(tn__slice a, tn__slice b)
{
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool tn__slice_is(tn__slice a, const char *text) { return tn__slice_equal(a, tn__slice_of(text)); }

void tn__text_init(tn__text *t, size_t limit)
{
  memset(t, 0, sizeof(*t));
  t->limit = limit;
}

void tn__text_fini(tn__text *t)
{
  tn__free(t->data, t->capacity);
  tn__text_init(t, t->limit);
}

/* Makes room for `more` bytes and the NUL. */
static bool text_room(tn__text *t, size_t more)
{
  size_t size, whole;
  if (t->failed) return false;
  if (tn__size_add(t->size, more, &size) && size <= t->limit && tn__size_add(size, 1, &whole) &&
      tn__grow((void **)&t->data, &t->capacity, whole, 1))
    return true;
  t->failed = true;
  return false;
}

void tn__text_append(tn__text *t, const char *data, size_t size)
{
  if (!text_room(t, size)) return;
  if (size != 0) memcpy(t->data + t->size, data, size);
  t->size += size;
  t->data[t->size] = 0;
}

void tn__text_puts(tn__text *t, const char *text) { tn__text_append(t, text, strlen(text)); }

void tn__text_printf(tn__text *t, const char *format, ...)
{
  if (t->failed) return;
  size_t room = t->capacity - t->size;
  va_list args;
  va_start(args, format);
  int n = tn__vsnprintf(room == 0 ? NULL : t->data + t->size, room, format, args);
  va_end(args);
  if (n >= 0 && (size_t)n >= room && text_room(t, (size_t)n)) {
    va_start(args, format);
    n = tn__vsnprintf(t->data + t->size, t->capacity - t->size, format, args);
    va_end(args);
  }
  if (n >= 0 && !t->failed && t->size + (size_t)n <= t->limit)
    t->size += (size_t)n;
  else
    t->failed = true;
  if (t->data != NULL) t->data[t->size] = 0;
}

const char *tn__text_get(const tn__text *t) { return t->data == NULL ? "" : t->data; }

static char *copy_text(const char *text, size_t length)
{
  char *copy = tn__alloc(length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

char *tn__strdup(const char *text) { return text == NULL ? NULL : copy_text(text, strlen(text)); }

/* The copy ends at a NUL in the text, because tn__strfree recovers the size by strlen. A size above PTRDIFF_MAX means
 * no limit: strnlen must not be passed it. */
char *tn__strndup(const char *text, size_t size)
{
  if (text == NULL) return NULL;
  return copy_text(text, size > PTRDIFF_MAX ? strlen(text) : strnlen(text, size));
}

void tn__strfree(char *text)
{
  if (text != NULL) tn__free(text, strlen(text) + 1);
}

/* ---- shapes ---- */

char *tn__format_shape(char *buffer, size_t size, const int64_t *dims, int32_t rank)
{
  if (size == 0) return buffer;
  if (rank < 0 || (dims == NULL && rank > 0)) {
    tn__snprintf(buffer, size, "unknown rank");
    return buffer;
  }
  char item[32];
  size_t used = 0, mark = 0; /* mark: end of the last item after which "..." still fits */
  for (int32_t i = 0; i <= rank; i++) {
    if (i == rank)
      tn__snprintf(item, sizeof(item), rank == 0 ? "[]" : "]");
    else if (dims[i] == -1)
      tn__snprintf(item, sizeof(item), "%c?", i == 0 ? '[' : ',');
    else
      tn__snprintf(item, sizeof(item), "%c%" PRId64, i == 0 ? '[' : ',', dims[i]);
    size_t length = strlen(item);
    if (used + length >= size) {
      tn__snprintf(buffer + mark, size - mark, "...");
      return buffer;
    }
    memcpy(buffer + used, item, length);
    used += length;
    if (used + 3 < size) mark = used;
  }
  buffer[used] = 0;
  return buffer;
}

/* ---- numbers ---- */

bool tn__parse_int(tn__slice text, int64_t *out)
{
  size_t i = 0;
  bool negative = false;
  if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) negative = text.data[i++] == '-';
  if (i == text.size) return false;
  int64_t value = 0;
  for (; i < text.size; i++) {
    int digit = text.data[i] - '0';
    if (digit < 0 || digit > 9) return false;
    if (__builtin_mul_overflow(value, 10, &value)) return false;
    if (negative ? __builtin_sub_overflow(value, digit, &value) : __builtin_add_overflow(value, digit, &value))
      return false;
  }
  *out = value;
  return true;
}

/* 767 digits determine the rounding of any double. Of further digits only matters whether one is not zero. */
#define MAX_DIGITS 780

/* A decimal number: digits[0..n) times 10^exponent, plus a little if `more`. */
typedef struct decimal {
  char digits[MAX_DIGITS + 1]; /* without leading zeros; one more for the digit that stands for `more` */
  size_t n;
  bool more;        /* non-zero digits were dropped */
  int64_t exponent; /* of the last digit kept */
} decimal;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void add_digit(decimal *d, char c, bool fraction)
{
  if (d->n == 0 && c == '0') {
    d->exponent -= fraction;
  } else if (d->n < MAX_DIGITS) {
    d->digits[d->n++] = c;
    d->exponent -= fraction;
  } else {
    d->exponent += !fraction;
    d->more |= c != '0';
  }
}

/* Parses  digits [ . digits ] [ e [sign] digits ]  with at least one digit before the e. */
static bool scan_decimal(tn__slice s, decimal *d)
{
  size_t i = 0, seen = 0;
  for (; i < s.size && is_digit(s.data[i]); i++, seen++) add_digit(d, s.data[i], false);
  if (i < s.size && s.data[i] == '.')
    for (i++; i < s.size && is_digit(s.data[i]); i++, seen++) add_digit(d, s.data[i], true);
  if (seen == 0) return false;
  if (i == s.size) return true;
  if (s.data[i] != 'e' && s.data[i] != 'E') return false;
  i++;
  bool negative = false;
  if (i < s.size && (s.data[i] == '-' || s.data[i] == '+')) negative = s.data[i++] == '-';
  if (i == s.size) return false;
  int64_t e = 0;
  for (; i < s.size; i++) {
    if (!is_digit(s.data[i])) return false;
    if (e < INT64_C(100000000000000000))
      e = e * 10 + (s.data[i] - '0'); /* a larger exponent is out of range whatever follows */
  }
  return !(negative ? __builtin_sub_overflow(d->exponent, e, &d->exponent)
                    : __builtin_add_overflow(d->exponent, e, &d->exponent));
}

/* Whether s is `lower` (in lower case), ignoring the case of ASCII letters in s. */
static bool slice_is_nocase(tn__slice s, const char *lower)
{
  for (size_t i = 0; i < s.size; i++) {
    char c = s.data[i];
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    if (lower[i] == 0 || c != lower[i]) return false;
  }
  return lower[s.size] == 0;
}

/* An exponent beyond these is zero or infinity with any digits, and short enough for the buffer. */
static int64_t clamp_exponent(int64_t e)
{
  if (e < -100000) return -100000;
  return e > 100000 ? 100000 : e;
}

bool tn__parse_double(tn__slice text, double *out)
{
  bool negative = false;
  if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
    negative = text.data[0] == '-';
    text.data++;
    text.size--;
  }
  double value;
  decimal d = { .n = 0 };
  if (slice_is_nocase(text, "inf") || slice_is_nocase(text, "infinity")) {
    value = INFINITY;
  } else if (slice_is_nocase(text, "nan")) {
    value = NAN;
  } else if (!scan_decimal(text, &d)) {
    return false;
  } else if (d.n == 0) {
    value = 0;
  } else {
    char buffer[MAX_DIGITS + 40];
    if (d.more) {
      d.digits[d.n++] = '1';
      d.exponent--;
    }
    tn__snprintf(buffer, sizeof(buffer), "%.*se%" PRId64, (int)d.n, d.digits, clamp_exponent(d.exponent));
    locale_t c = get_c_locale();
    value = c != (locale_t)0 ? strtod_l(buffer, NULL, c) : strtod(buffer, NULL);
    if (isinf(value)) return false;
  }
  *out = negative ? -value : value;
  return true;
}

/* ---- environment ---- */

const char *tn__getenv(const char *name)
{
#if defined(__linux__)
  if (getauxval(AT_SECURE) != 0) return NULL;
#else
  if (geteuid() != getuid() || getegid() != getgid()) return NULL;
#endif
  return getenv(name);
}

/* ---- UTF-8 ---- */

/* The number of bytes of a character by its first byte; 0: no character begins with it. */
static size_t utf8_length(unsigned char first)
{
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0; /* a continuation byte, or an encoding that is too long */
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0; /* beyond U+10FFFF */
}

size_t tn__utf8_size(const unsigned char *p, size_t left)
{
  size_t n = utf8_length(p[0]);
  if (n == 0 || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
  if (p[0] == 0xed && p[1] >= 0xa0) return 0;
  if (p[0] == 0xf0 && p[1] < 0x90) return 0;
  return p[0] == 0xf4 && p[1] >= 0x90 ? 0 : n;
}
