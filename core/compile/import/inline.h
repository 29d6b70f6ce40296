/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined calls: prune.c finds calls, inline.c replaces each by the body of its function. */
#ifndef TN_CORE_COMPILE_IMPORT_INLINE_H
#define TN_CORE_COMPILE_IMPORT_INLINE_H

#include <core/compile/import/prune.h>

/* A call that is being inlined. All pointers are borrowed: scopes of nested calls live on the stack of the walk. */
struct tn__scope {
  struct tn__scope *up;   /* the call around it, while bodies are added; NULL = none */
  const void *function;   /* identity of the function, to detect recursion */
  uint32_t depth;         /* nesting depth of the body, from 1 */
  const tn_operation *op; /* the call */
  const uint32_t *before; /* nodes that it waits for: producers of its inputs, and control inputs */
  size_t n_before;
  const uint32_t *given;  /* values that it waits for as well: feeds of a partial run */
  size_t n_given;
  bool asked;             /* `begin` is valid */
  uint32_t begin;         /* node that waits for all of these, made when first needed; TN__NONE = nothing to wait for */
};

/* A call that was replaced by the body of its function. */
struct tn__inlined {
  struct tn__scope scope; /* up is valid until the walk around it ends */
  uint32_t *outputs;      /* values of the call's outputs; owned */
  uint32_t *lists;        /* storage of scope.before and scope.given; owned */
  size_t n_outputs, n_lists;
  uint32_t first, end; /* the body's nodes have the ids [first, end) */
  uint32_t done;       /* node for the end of the call; TN__NONE = not needed so far */
};

/* Whether a call by this operation may be replaced by its function's body, or by a loop. */
static inline bool tn__is_inlinable(const tn_operation *op)
{
  return (tn__operation_traits(op) & (TN_TRAIT_PLAIN_CALL | TN_TRAIT_LOOP_CALL)) != 0;
}
/* Counter of nodes made from functions, shared by everything that is compiled for one plan. */
static inline size_t *tn__inlined_nodes(tn__ir *ir)
{
  return ir->spec->inlined_nodes != NULL ? ir->spec->inlined_nodes : &ir->made.n_inlined_nodes;
}
/* Inlines the call. If *done is false, it remains a call and its own node must be added. */
tn_status tn__prune_inline(tn__pruner *c, tn_operation *op, bool *done);
/* The node that represents the end of an inlined call: control successors of the call wait for it. Made when first
 * needed. */
tn_status tn__inlined_end(tn__pruner *c, const tn_operation *op, uint32_t *node);
/* The node that represents the beginning of a call, for which nodes with effects in its body wait; TN__NONE if there is
 * nothing to wait for, or scope is NULL. Made when first needed (prune.c). */
tn_status tn__scope_begin(tn__ir *ir, struct tn__scope *scope, uint32_t *node);
/* Frees the pruner's list of inlined calls. */
void tn__inlined_fini(tn__pruner *c);

#endif
