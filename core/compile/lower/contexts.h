/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of nodes and values, found before a plan is made of them. */
#ifndef TN_CORE_COMPILE_LOWER_CONTEXTS_H
#define TN_CORE_COMPILE_LOWER_CONTEXTS_H

#include <core/compile/ir/ir.h>

/* Atoms name nodes and values of the ir here; emit.c exchanges them for those of the plan. */
typedef struct tn__contexts {
  bool waits;         /* some node so far may wait */
  bool any;           /* false: all contexts are 0, and the arrays NULL */
  uint32_t *nodes;    /* by node: when it runs */
  uint32_t *after;    /* by node: what holds once it has run */
  uint32_t *values;   /* by value */
  size_t n_nodes, n_values;
  tn__atom *atoms;
  size_t n_atoms, atom_room;
  tn__context *contexts;
  size_t n_contexts, context_room;
  uint32_t *lists; /* of all contexts, one behind the other */
  size_t n_lists, list_room;
  uint32_t only;   /* what is gathered for a node: one context, or atoms of several */
  uint32_t *gathered;
  size_t n_gathered, gather_room;
  tn__map known;       /* contexts by their lists; its keys are copies */
  tn__map known_atoms; /* contexts of one atom by that */
  tn__arena keys;
} tn__contexts;

/* tn__contexts_fini also after a failure. */
tn_status tn__contexts_find(const tn__ir *ir, tn__contexts *out);
void tn__contexts_fini(tn__contexts *contexts);

#endif
