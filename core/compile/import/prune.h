/* SPDX-License-Identifier: Apache-2.0 */
/* Import: the walk from fetches and targets to the operations that they need, and the nodes made for these operations.
 * Implemented by prune.c and frames.c. One pruner serves one walk, on one thread. The walk of an inlined function's
 * body has a pruner of its own that shares the ir. */
#ifndef TN_CORE_COMPILE_IMPORT_PRUNE_H
#define TN_CORE_COMPILE_IMPORT_PRUNE_H

#include <core/plan/frame.h>
#include <core/compile/ir/ir.h>
#include <core/compile/import/partial.h>

/* State of the walk for one operation. Indexed by the operation's id. */
typedef struct tn__op_state {
  uint32_t fed;    /* first feed of one of its outputs, chained by feed_next; TN__NONE = not fed */
  uint32_t back;   /* NextIteration only: the feed that carries its value of the previous iteration; TN__NONE = none */
  uint32_t node;   /* its node in the ir; TN__NONE = not added yet */
  uint32_t call;   /* 1 + its index in `calls` if it is an inlined call; 0 = it is not */
  uint32_t frame;  /* the frame in which it runs; 0 = the plan's own (frames.c) */
  uint32_t exit;   /* Exit or NextIteration: its index among those of its loop */
  uint32_t part;   /* operations in frames: union-find parent, another operation of the same loop or itself */
  uint32_t loop;   /* root of a union-find set: index of the loop; TN__NONE = none yet */
  uint8_t visit;   /* 0 = not seen, 1 = on the stack, 2 = in the order */
  bool own;        /* only forwards in the body being compiled: its Exits, NextIterations and Enters of constants */
  bool rotated;    /* a Merge replaced by its NextIteration (rotate.c) */
  bool cut;        /* an Enter or Merge where the body being compiled begins: it runs before the body */
  bool wanted;     /* a target */
  bool leaves;     /* an Exit of a loop that is one node in the plan */
  bool in_loop;    /* in a frame other than the plan's own: `node` is the loop's node */
  bool index_read; /* Merge only: output 1 is read */
} tn__op_state;

/* An entry of the walk's explicit stack: graphs are too deep for recursion. */
typedef struct tn__walk_frame {
  tn_operation *op;
  size_t next; /* next edge to visit: data inputs, then control inputs */
} tn__walk_frame;

/* Arrays of the node being made. Making another node overwrites them. */
typedef struct tn__prune_scratch {
  uint32_t *inputs; /* its inputs */
  size_t input_room;
  uint32_t *reads; /* inputs of a variable read: the reference, then the values that the read waits for */
  size_t read_room;
  uint32_t *controls; /* nodes that it waits for */
  size_t control_room;
} tn__prune_scratch;

typedef struct tn__pruner {
  tn__ir *ir;                     /* receives the nodes; borrowed */
  tn_graph *graph;                /* being walked: the signature's, or a function's body; borrowed */
  const tn__signature_spec *spec; /* of this walk; borrowed */
  uint32_t *feeds, *fetches;      /* the caller's arrays: value of each feed (TN__NONE = not made yet) and fetch */
  tn__op_state *ops;              /* n_ops, the operations of the graph when the walk began */
  size_t n_ops;
  uint32_t *feed_next; /* by feed: next feed of the same operation; TN__NONE ends the chain */
  tn__walk_frame *stack;
  size_t depth, stack_room;
  tn_operation **order; /* needed operations, inputs first */
  size_t n_order, order_room;
  tn_operation **later; /* NextIterations read by Merges: walked last, so that the order has no cycle */
  size_t n_later, later_room;
  struct tn__scope *scope;   /* the call whose function's body is walked; NULL = none (inline.h) */
  struct tn__inlined *calls; /* the calls inlined by this walk; owned */
  size_t n_calls, call_room;
  bool inlines;    /* the inline pass is on */
  bool has_frames; /* a loop must be replaced by a node (frames.c) */
  bool failed;     /* out of memory while walking */
  bool met_rotated; /* the walk reached a replaced Merge */
  tn__prune_scratch scratch;
} tn__pruner;

/* The walk's state of an operation. */
static inline tn__op_state *tn__pruned(const tn__pruner *c, const tn_operation *op)
{
  return &c->ops[tn__operation_id(op)];
}

/* Index of the feed that replaces an output; TN__NONE = the output is not fed. */
static inline uint32_t tn__feed_of(const tn__pruner *c, tn_output output)
{
  uint32_t f = tn__pruned(c, output.op)->fed;
  while (f != TN__NONE && c->spec->feeds[f].index != output.index) f = c->feed_next[f];
  return f;
}
static inline bool tn__is_fed(const tn__pruner *c, tn_output output) { return tn__feed_of(c, output) != TN__NONE; }

/* Whether an Enter brings an unfed constant of the graph into its loop, through any number of frames. */
bool tn__enters_constant(const tn__pruner *c, const tn_operation *op);
/* Whether this edge leads from one iteration to the next. */
static inline bool tn__is_back_edge(const tn_operation *from, const tn_operation *to)
{
  return (tn__operation_traits(from) & TN_TRAIT_NEXT_ITERATION) && (tn__operation_traits(to) & TN_TRAIT_MERGE);
}

/* Whether a control edge from the operation can be dropped: it runs before this plan starts, or it is a placeholder
 * whose value is fed. */
static inline bool tn__is_past(const tn__pruner *c, const tn_operation *op)
{
  const tn__op_state *s = tn__pruned(c, op);
  bool given = s->fed != TN__NONE && (tn__operation_traits(op) & TN_TRAIT_PLACEHOLDER);
  return s->cut || (given && !tn__spec_is_partial(c->spec));
}

/* The operation that produces the outputs of `op` in this plan: for a replaced Merge, its NextIteration. */
static inline tn_operation *tn__rotated(const tn__pruner *c, tn_operation *op)
{
  size_t n;
  return tn__pruned(c, op)->rotated ? tn__operation_inputs(op, &n)[1].op : op;
}

/* ---- prune.c ---- */

/* Stores the values of the first n inputs of an operation. Where the operation takes a value and the edge carries a
 * reference, adds a node that reads the variable. */
tn_status tn__prune_inputs(tn__pruner *c, const tn_operation *op, uint32_t *inputs, size_t n);
/* Adds an operation of the plan's own frame: its node, or the body of the function that it calls. */
tn_status tn__prune_add(tn__pruner *c, tn_operation *op);
/* Stores the nodes of n control inputs in c->scratch.controls, without those that delay nothing; *n_out is their
 * number. */
tn_status tn__prune_controls(tn__pruner *c, tn_operation *const *control, size_t n, size_t *n_out);
/* Runs the whole walk and frees the pruner's arrays. The caller sets ir, graph, spec, scope, feeds and fetches, and
 * initialises all other fields to zero. feeds may hold values that the caller has made. */
tn_status tn__prune(tn__pruner *c);

/* Initialises the ir from a graph and a signature. Takes the graph's read lock. Call tn__ir_fini also after a
 * failure. */
tn_status tn__ir_from_graph(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err);
/* Initialises the ir from one operation. The spec feeds its inputs and fetches its outputs, in their order. Call
 * tn__ir_fini also after a failure. */
tn_status tn__ir_from_operation(tn__ir *ir, const tn_operation *op, const tn__signature_spec *spec, tn_error *err);

/* ---- frames.c ---- */

/* Adds nodes for everything in c->order. Each loop becomes one node. */
tn_status tn__prune_add_loops(tn__pruner *c);

#endif
