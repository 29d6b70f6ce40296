/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of functions in the place of their calls: between prune.c, which meets calls, and inline.c. */
#ifndef TN_CORE_COMPILE_IMPORT_INLINE_H
#define TN_CORE_COMPILE_IMPORT_INLINE_H

#include <core/compile/import/prune.h>

/* A call whose function's body is added to the plan. */
struct tn__scope {
  struct tn__scope *up;   /* the call that it is inside of, while bodies are added; NULL = none */
  const void *function;   /* identity */
  uint32_t depth;
  const tn_operation *op;
  const uint32_t *before; /* nodes that it waits for: of its inputs, and by control edges */
  size_t n_before;
  const uint32_t *given;  /* values that it waits for, too: feeds of a partial run */
  size_t n_given;
  bool asked;
  uint32_t begin;         /* node that stands for all of these; TN__NONE = there are none. Made when somebody asks */
};

/* A call that the body of its function took the place of. */
struct tn__inlined {
  struct tn__scope scope; /* up is valid until the walk around it ends */
  uint32_t *outputs;      /* values */
  uint32_t *lists;        /* what scope.before and scope.given point into */
  size_t n_outputs, n_lists;
  uint32_t first, end; /* nodes of the body: they and their effects are the call */
  uint32_t done;       /* node that stands for the end of the call; TN__NONE = nobody asked */
};

/* Whether a call by this operation is one that its function's body, or a loop, may stand for. */
static inline bool tn__is_inlinable(const tn_operation *op)
{
  return (tn__operation_traits(op) & (TN_TRAIT_PLAIN_CALL | TN_TRAIT_LOOP_CALL)) != 0;
}
/* How many nodes were made of functions by now: in this ir and all that is compiled for the same plan. */
static inline size_t *tn__inlined_nodes(tn__ir *ir)
{
  return ir->spec->inlined_nodes != NULL ? ir->spec->inlined_nodes : &ir->n_inlined_nodes;
}
/* Puts it there; *done false: it stays a call, for whatever reason, and the ir is as it was. */
tn_status tn__prune_inline(tn__pruner *c, tn_operation *op, bool *done);
/* The node that who waits for an inlined call waits for. */
tn_status tn__inlined_end(tn__pruner *c, const tn_operation *op, uint32_t *node);
/* prune.c: the node that a node with effects in a body waits for: the begin of the call; TN__NONE = nothing. */
tn_status tn__scope_begin(tn__ir *ir, struct tn__scope *scope, uint32_t *node);
void tn__inlined_fini(tn__pruner *c);

#endif
