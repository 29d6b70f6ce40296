/* SPDX-License-Identifier: Apache-2.0 */
/* A group of indices of an equation that are traversed together, as a single index if their steps allow it. */
#ifndef TN_OPS_MATH_INDEX_GROUP_H
#define TN_OPS_MATH_INDEX_GROUP_H

#include <ops/math/equation.h>
#include <ops/kernel/move/strided.h>
#include <string.h>

/* Outermost index first. Indices of size 1 are not included. */
typedef struct tn__index_group {
  int32_t n;
  int64_t count; /* product of the sizes */
  struct {
    int64_t size, steps[3]; /* as in tn__index */
  } at[TN__STRIDED_DIMS];
} tn__index_group;

static inline void tn__group_add(tn__index_group *g, const tn__index *index)
{
  g->at[g->n].size = index->size;
  memcpy(g->at[g->n++].steps, index->steps, sizeof index->steps);
  g->count *= index->size;
}

/* True if a single step traverses all indices in operand t. *step is that step; 1 for an empty group. */
static inline bool tn__group_is_one(const tn__index_group *g, int t, int64_t *step)
{
  *step = g->n > 0 ? g->at[g->n - 1].steps[t] : 1;
  for (int32_t i = 0; i + 1 < g->n; i++)
    if (g->at[i].steps[t] != g->at[i + 1].steps[t] * g->at[i + 1].size) return false;
  return true;
}

/* Sets the steps in operand t to those of a dense layout whose innermost index has step `step`. Returns the step of the
 * next outer index. */
static inline int64_t tn__group_set_steps(tn__index_group *g, int t, int64_t step)
{
  for (int32_t i = g->n - 1; i >= 0; i--) {
    g->at[i].steps[t] = step;
    step *= g->at[i].size;
  }
  return step;
}

#endif
