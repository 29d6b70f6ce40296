/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of a plan that exclude each other (plan.h). */
#include <core/plan/plan.h>

/* Whether two atoms are the two sides of one branch. */
static bool are_sides(const tn__atom *a, const tn__atom *b)
{
  return a->kind == TN__ATOM_BRANCH && b->kind == TN__ATOM_BRANCH && a->id == b->id && a->side != b->side;
}

bool tn__atoms_oppose(const tn__atom *atoms, const uint32_t *xs, size_t n_x, const uint32_t *ys, size_t n_y)
{
  size_t i = 0, n_sides = 0;
  if (n_x != n_y) return false;
  for (; i < n_x; i++) {
    if (xs[i] == ys[i]) continue;
    if (!are_sides(&atoms[xs[i]], &atoms[ys[i]])) return false;
    n_sides++;
  }
  return n_sides == 1;
}

bool tn__contexts_oppose(const tn_plan *plan, uint32_t a, uint32_t b)
{
  const tn__plan_conditions *c = &plan->conditions;
  if (c->n_contexts == 0) return false;
  const tn__context *x = &c->contexts[a], *y = &c->contexts[b];
  return x->n == 1 && /* with further atoms in common, both could be false */
         tn__atoms_oppose(c->atoms, c->context_atoms + x->first, x->n, c->context_atoms + y->first, y->n);
}
