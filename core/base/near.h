/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": finds the existing name that is closest to a misspelt one. init, offer for each name, append. */
#ifndef TN_CORE_BASE_NEAR_H
#define TN_CORE_BASE_NEAR_H

#include <core/base/text.h>

typedef struct tn__near {
  const char *wanted, *best; /* borrowed; best is NULL while no name is close to the wanted one */
  size_t edits;              /* distance of best, in letters */
} tn__near;

void tn__near_init(tn__near *near, const char *wanted);
/* Offers an existing name. The first name with the fewest edits wins. A name does not count if it needs more edits than
 * a third of the wanted name's letters plus one, or as many as the shorter name has letters. */
void tn__near_offer(tn__near *near, const char *name);
/* Appends " (did you mean 'direct'?)", or nothing if no name is close. */
void tn__near_append(const tn__near *near, tn__text *text);

#endif
