/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/near.h>

#include <string.h>

#define LONGEST 64 /* longer names are not compared, which bounds the cost */

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

/* The Damerau-Levenshtein distance: how many letters must be inserted, deleted, replaced or swapped with a neighbour to
 * turn a into b. */
static size_t edits_between(const char *a, size_t n, const char *b, size_t m)
{
  size_t table[3][LONGEST + 1]; /* the rows of letters i - 2, i - 1 and i of a */
  for (size_t j = 0; j <= m; j++) table[0][j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t *row = table[i % 3];
    const size_t *above = table[(i - 1) % 3], *two_above = table[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      row[j] = least_of(above[j - 1] + (a[i - 1] != b[j - 1]), least_of(above[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least_of(row[j], two_above[j - 2] + 1);
    }
  }
  return table[n % 3][m];
}

void tn__near_init(tn__near *near, const char *wanted)
{
  *near = (tn__near){ .wanted = wanted, .edits = SIZE_MAX };
}

void tn__near_offer(tn__near *near, const char *name)
{
  size_t n = strlen(near->wanted), m = strlen(name);
  if (n > LONGEST || m > LONGEST) return;
  size_t edits = edits_between(near->wanted, n, name, m);
  if (edits > n / 3 + 1 || edits >= least_of(n, m) || edits >= near->edits) return;
  near->best = name;
  near->edits = edits;
}

void tn__near_append(const tn__near *near, tn__text *text)
{
  if (near->best != NULL) tn__text_printf(text, " (did you mean '%s'?)", near->best);
}
