/* SPDX-License-Identifier: Apache-2.0 */
/* Which name was meant: of the names that there are, the one most like a wrong one. */
#ifndef TN_CORE_BASE_NEAR_H
#define TN_CORE_BASE_NEAR_H

#include <core/base/text.h>

typedef struct tn__near {
  const char *wanted, *best; /* borrowed; best is NULL when no name is like the wanted one */
  size_t edits;
} tn__near;

void tn__near_init(tn__near *near, const char *wanted);
/* A name that exists. The first of those with the fewest edits wins; one with more than a third of its letters wrong
 * does not count. */
void tn__near_offer(tn__near *near, const char *name);
/* Adds " (did you mean 'direct'?)", or nothing. */
void tn__near_append(const tn__near *near, tn__text *text);

#endif
