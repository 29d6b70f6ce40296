/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined calls: prune.c finds them, inline.c replaces each by the body of its function. */
#ifndef TN_CORE_COMPILE_IMPORT_INLINE_H
#define TN_CORE_COMPILE_IMPORT_INLINE_H

#include <core/compile/import/prune.h>

/* A call that is being inlined. */
struct tn__scope {
  struct tn__scope *up;   /* the call around it, while bodies are added; NULL = none */
  const void *function;   /* identity */
  uint32_t depth;
  const tn_operation *op;
  const uint32_t *before; /* nodes that it waits for: those of its inputs, and by control edges */
  size_t n_before;
  const uint32_t *given;  /* values that it waits for as well: feeds of a partial run */
  size_t n_given;
  bool asked;
  uint32_t begin;         /* node that waits for all of these; TN__NONE = there are none. Made when it is needed */
};

/* A call that was replaced by the body of its function. */
struct tn__inlined {
  struct tn__scope scope; /* up is valid until the walk around it ends */
  uint32_t *outputs;      /* values */
  uint32_t *lists;        /* what scope.before and scope.given point into */
  size_t n_outputs, n_lists;
  uint32_t first, end; /* range of the nodes of the body */
  uint32_t done;       /* node for the end of the call; TN__NONE = not needed so far */
};

/* Whether a call by this operation may be replaced by its function's body, or by a loop. */
static inline bool tn__is_inlinable(const tn_operation *op)
{
  return (tn__operation_traits(op) & (TN_TRAIT_PLAIN_CALL | TN_TRAIT_LOOP_CALL)) != 0;
}
/* Number of nodes made from functions so far, in this ir and in all others for the same plan. */
static inline size_t *tn__inlined_nodes(tn__ir *ir)
{
  return ir->spec->inlined_nodes != NULL ? ir->spec->inlined_nodes : &ir->n_inlined_nodes;
}
/* Inlines the call. *done false: it stays a call, and the ir is unchanged. */
tn_status tn__prune_inline(tn__pruner *c, tn_operation *op, bool *done);
/* The node to wait for in the place of an inlined call. */
tn_status tn__inlined_end(tn__pruner *c, const tn_operation *op, uint32_t *node);
/* prune.c: the node that a node with effects in a body waits for: the begin of the call; TN__NONE = nothing. */
tn_status tn__scope_begin(tn__ir *ir, struct tn__scope *scope, uint32_t *node);
void tn__inlined_fini(tn__pruner *c);

#endif
