/* SPDX-License-Identifier: Apache-2.0 */
/* Lower and upper case of UTF-8. The lower case of one letter depends on context: sigma at the end
 * of a word. */
#include <ops/string/unicode/string_case.h>

/* ---- UTF-8 ---- */

/* The number of bytes that follow a first byte, and the range of the second one; 0 if it is no
 * first byte. */
static int follow(unsigned char c, unsigned char *low, unsigned char *high)
{
  *low = 0x80;
  *high = 0xbf;
  if (c >= 0xc2 && c <= 0xdf) return 1;
  if (c == 0xe0) *low = 0xa0;
  if (c == 0xed) *high = 0x9f;
  if (c >= 0xe0 && c <= 0xef) return 2;
  if (c == 0xf0) *low = 0x90;
  if (c == 0xf4) *high = 0x8f;
  return c >= 0xf0 && c <= 0xf4 ? 3 : 0;
}

uint32_t tn__utf8_next(const char *text, size_t n, size_t *at, bool *bad)
{
  unsigned char c = (unsigned char)text[(*at)++], low, high;
  *bad = false;
  if (c < 0x80) return c;
  int more = follow(c, &low, &high);
  uint32_t all = c & (0x3fu >> more);
  *bad = more == 0;
  for (; more > 0; more--) {
    unsigned char next = *at < n ? (unsigned char)text[*at] : 0;
    *bad = next < low || next > high;
    if (*bad) break;
    all = all << 6 | (next & 0x3fu);
    low = 0x80;
    high = 0xbf;
    ++*at;
  }
  return *bad ? TN__NO_CHARACTER : all;
}

size_t tn__utf8_put(uint32_t c, char *to)
{
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  size_t n = c < 0x10000 ? 3 : 4;
  if (c < 0x800) n = 2;
  for (size_t i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)(0xf00u >> n | c);
  return n;
}

/* ---- tables ---- */

/* Finds the last range that begins at or before a character, by bisection. */
static size_t last_from(const void *ranges, size_t n, size_t stride, uint32_t c)
{
  size_t low = 0, high = n;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (*(const uint32_t *)((const char *)ranges + mid * stride) <= c) low = mid + 1;
    else high = mid;
  }
  return low; /* its index plus one; 0 = none */
}

static bool is_in(const uint32_t (*ranges)[2], size_t n, uint32_t c)
{
  size_t at = last_from(ranges, n, sizeof ranges[0], c);
  return at > 0 && c <= ranges[at - 1][1];
}

static uint32_t moved(const tn__case_range *ranges, size_t n, uint32_t c)
{
  size_t at = last_from(ranges, n, sizeof ranges[0], c);
  if (at == 0) return c;
  const tn__case_range *r = &ranges[at - 1];
  return c <= r->last && (c - r->first) % (uint32_t)r->step == 0 ? c + (uint32_t)r->delta : c;
}

/* ---- sigma ---- */

#define SIGMA 0x3a3u
#define SMALL_SIGMA 0x3c3u
#define FINAL_SIGMA 0x3c2u

/* Whether a cased letter follows, with only characters in between that belong to the word. */
static bool word_goes_on(const char *text, size_t n, size_t at)
{
  bool bad;
  while (at < n) {
    uint32_t c = tn__utf8_next(text, n, &at, &bad);
    if (is_in(tn__case_ignored, tn__case_ignored_n, c)) continue;
    return is_in(tn__case_cased, tn__case_cased_n, c);
  }
  return false;
}

static void put(tn__text *t, uint32_t c)
{
  char bytes[4];
  tn__text_append(t, bytes, tn__utf8_put(c, bytes));
}

static bool put_many(tn__text *t, const tn__case_many *many, size_t n, uint32_t c)
{
  size_t at = last_from(many, n, sizeof many[0], c);
  if (at == 0 || many[at - 1].from != c) return false;
  for (int k = 0; k < 3 && many[at - 1].to[k] != 0; k++) put(t, many[at - 1].to[k]);
  return true;
}

void tn__change_case(tn__text *t, const char *text, size_t n, bool upper)
{
  bool bad, in_word = false;
  for (size_t at = 0; at < n && !t->failed;) {
    uint32_t c = tn__utf8_next(text, n, &at, &bad);
    if (c < 0x80 && (upper || (c | 0x20) - 'a' < 26)) {
      if ((c | 0x20) - 'a' < 26) c = upper ? c & ~0x20u : c | 0x20u;
      put(t, c);
      in_word = true;
    } else if (upper) {
      if (!put_many(t, tn__case_upper_many, tn__case_upper_many_n, c))
        put(t, moved(tn__case_upper, tn__case_upper_n, c));
    } else {
      if (c == SIGMA) put(t, in_word && !word_goes_on(text, n, at) ? FINAL_SIGMA : SMALL_SIGMA);
      else if (!put_many(t, tn__case_lower_many, tn__case_lower_many_n, c))
        put(t, moved(tn__case_lower, tn__case_lower_n, c));
      if (!is_in(tn__case_ignored, tn__case_ignored_n, c)) in_word = is_in(tn__case_cased, tn__case_cased_n, c);
    }
  }
}
