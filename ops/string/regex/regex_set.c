/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of characters, as sorted ranges. */
#include <ops/string/regex/regex.h>

#include <ops/string/unicode/string_case.h>
#include <stdlib.h>
#include <string.h>

bool tn__char_set_add(tn__char_set *set, uint32_t first, uint32_t last)
{
  if (!tn__grow((void **)&set->ranges, &set->room, set->n + 1, sizeof *set->ranges)) return false;
  set->ranges[set->n++] = (tn__char_range){ first, last };
  return true;
}

bool tn__char_set_add_all(tn__char_set *set, const tn__char_set *other)
{
  bool ok = true;
  for (size_t i = 0; ok && i < other->n; i++) ok = tn__char_set_add(set, other->ranges[i].first, other->ranges[i].last);
  return ok;
}

static int compare(const void *a, const void *b)
{
  const tn__char_range *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

static void note_ascii(tn__char_set *set)
{
  memset(set->ascii, 0, sizeof set->ascii);
  for (size_t i = 0; i < set->n && set->ranges[i].first < 128; i++)
    for (uint32_t c = set->ranges[i].first; c <= set->ranges[i].last && c < 128; c++)
      set->ascii[c >> 6] |= (uint64_t)1 << (c & 63);
}

void tn__char_set_close(tn__char_set *set)
{
  size_t kept = 0;
  if (set->n > 1) qsort(set->ranges, set->n, sizeof *set->ranges, compare);
  for (size_t i = 0; i < set->n; i++) {
    tn__char_range r = set->ranges[i];
    tn__char_range *last = kept == 0 ? NULL : &set->ranges[kept - 1];
    if (last == NULL || r.first > last->last + 1) set->ranges[kept++] = r;
    else if (r.last > last->last) last->last = r.last;
  }
  set->n = kept;
  note_ascii(set);
}

bool tn__char_set_has_slow(const tn__char_set *set, uint32_t c)
{
  size_t low = 0, high = set->n;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (set->ranges[mid].last < c) low = mid + 1;
    else high = mid;
  }
  return low < set->n && set->ranges[low].first <= c;
}

bool tn__char_set_negate(tn__char_set *set)
{
  tn__char_set others = { 0 };
  uint32_t next = 0;
  bool ok = true;
  for (size_t i = 0; ok && i < set->n; i++) {
    if (set->ranges[i].first > next) ok = tn__char_set_add(&others, next, set->ranges[i].first - 1);
    next = set->ranges[i].last + 1;
  }
  if (ok && next <= TN__LAST_CHAR) ok = tn__char_set_add(&others, next, TN__LAST_CHAR);
  tn__char_set_fini(set);
  note_ascii(&others);
  *set = others;
  return ok;
}

/* Adds the counterparts of characters by one table; each entry works in both directions. */
static bool fold_by(const tn__char_set *set, tn__char_set *more, const tn__case_range *table, size_t n)
{
  for (size_t i = 0; i < n; i++)
    for (uint32_t c = table[i].first; c <= table[i].last; c += (uint32_t)table[i].step) {
      uint32_t other = (uint32_t)((int32_t)c + table[i].delta);
      bool has = tn__char_set_has(set, c), has_other = tn__char_set_has(set, other);
      if (has == has_other) continue;
      if (!tn__char_set_add(more, has ? other : c, has ? other : c)) return false;
    }
  return true;
}

/* Some letters have three forms (k, K and the Kelvin sign), which two rounds find. */
bool tn__char_set_fold(tn__char_set *set)
{
  bool ok = true;
  for (int round = 0; ok && round < 2; round++) {
    tn__char_set more = { 0 };
    ok = fold_by(set, &more, tn__case_lower, tn__case_lower_n) &&
         fold_by(set, &more, tn__case_upper, tn__case_upper_n) && tn__char_set_add_all(set, &more);
    tn__char_set_fini(&more);
    tn__char_set_close(set);
  }
  return ok;
}

void tn__char_set_fini(tn__char_set *set)
{
  tn__free(set->ranges, set->room * sizeof *set->ranges);
  memset(set, 0, sizeof *set);
}
