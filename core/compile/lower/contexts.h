/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of nodes and values: the conditions under which they are live. Found before the ir becomes a plan. A context
 * is the number of a list of atoms (core/plan/plan.h); 0 is the empty list, and equal lists have one number. */
#ifndef TN_CORE_COMPILE_LOWER_CONTEXTS_H
#define TN_CORE_COMPILE_LOWER_CONTEXTS_H

#include <core/compile/ir/ir.h>

/* The ids of atoms are nodes and values of the ir here; emit.c replaces them by instructions and values of the plan. */
typedef struct tn__contexts {
  bool waits;       /* some node visited so far may wait */
  bool any;         /* false: all contexts are 0, and the arrays are NULL */
  uint32_t *nodes;  /* by node: the context in which it runs */
  uint32_t *after;  /* by node: the context that holds after it ran, for its control successors */
  uint32_t *values; /* by value: the context in which it is live; TN__NONE = not known yet */
  size_t n_nodes, n_values;
  tn__atom *atoms; /* an atom depends only on atoms with lower numbers */
  size_t n_atoms, atom_room;
  tn__context *contexts;
  size_t n_contexts, context_room;
  uint32_t *lists; /* the lists of all contexts, concatenated: numbers of atoms, ascending */
  size_t n_lists, list_room;
  /* The conditions gathered so far for one node: `only` while there is at most one context, else their atoms. */
  uint32_t only;
  uint32_t *gathered; /* unsorted, with duplicates */
  size_t n_gathered, gather_room;
  tn__map known;       /* from a list of atoms to its context */
  tn__map known_atoms; /* from the fields of an atom to the context of this one atom */
  tn__arena keys;      /* the keys of both maps */
} tn__contexts;

/* Call tn__contexts_fini also after a failure. */
tn_status tn__contexts_find(const tn__ir *ir, tn__contexts *out);
void tn__contexts_fini(tn__contexts *contexts);

#endif
