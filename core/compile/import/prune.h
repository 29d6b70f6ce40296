/* SPDX-License-Identifier: Apache-2.0 */
/* The walk from fetches and targets to the operations that they need, and the nodes made of these: prune.c and
 * frames.c. */
#ifndef TN_CORE_COMPILE_IMPORT_PRUNE_H
#define TN_CORE_COMPILE_IMPORT_PRUNE_H

#include <core/plan/frame.h>
#include <core/compile/ir/ir.h>
#include <core/compile/import/partial.h>

/* State of the walk for an operation, by its id. */
typedef struct tn__op_state {
  uint32_t fed;   /* first feed of one of its outputs, chained by feed_next; TN__NONE = none */
  uint32_t back;  /* of a NextIteration: the feed with its value of the iteration before; TN__NONE = none */
  uint32_t node;  /* TN__NONE = not added */
  uint32_t call;  /* 1 + its number among the inlined calls; 0: none */
  uint32_t frame; /* in which it runs; 0: the plan's own (frames.c) */
  uint32_t exit;  /* of an Exit: its number among those of its loop */
  uint32_t part;  /* of operations in frames: another one of the same loop, or itself */
  uint32_t loop;  /* of that last one: its number among the loops */
  uint8_t visit;  /* 0 not seen, 1 the walk is at its inputs, 2 done */
  bool own;       /* an Exit or NextIteration of the body being compiled */
  bool turned;    /* a Merge replaced by its NextIteration */
  bool cut;       /* an Enter or Merge at the beginning of the body being compiled: it has run */
  bool wanted;    /* a target */
  bool leaves;    /* an Exit of a loop that is one node in the plan */
  bool in_loop;   /* in a frame other than the plan's: `node` is the loop's */
  bool index_read; /* of a Merge: output 1 is read */
} tn__op_state;

typedef struct tn__walk_frame {
  tn_operation *op;
  size_t next; /* edge to look at: data inputs, then control inputs */
} tn__walk_frame;

typedef struct tn__pruner {
  tn__ir *ir;
  tn_graph *graph;                 /* being walked: the signature's, or the body of a function in it */
  const tn__signature_spec *spec;  /* of that walk */
  uint32_t *feeds, *fetches;       /* values of them */
  tn__op_state *ops;
  size_t n_ops;
  uint32_t *feed_next; /* n_feeds */
  tn__walk_frame *stack;
  size_t depth, stack_room;
  tn_operation **order;
  size_t n_order, order_room;
  tn_operation **later; /* NextIterations that Merges read: walked last, so that the order has no cycle */
  size_t n_later, later_room;
  struct tn__scope *scope;   /* the call whose function's body is walked; NULL: none (inline.h) */
  struct tn__inlined *calls; /* that were inlined */
  size_t n_calls, call_room;
  bool inlines;
  bool has_frames;
  bool failed;         /* no memory while walking */
  bool met_turned;     /* the walk has met a replaced Merge */
  uint32_t *inputs; /* of one node */
  size_t input_room;
  uint32_t *reads; /* of one node that reads a variable: the reference, and the values that it waits for */
  size_t read_room;
  uint32_t *controls; /* of one node */
  size_t control_room;
} tn__pruner;

static inline tn__op_state *tn__pruned(const tn__pruner *c, const tn_operation *op)
{
  return &c->ops[tn__operation_id(op)];
}

/* The number of the feed that replaces an output; TN__NONE = the output is not fed. */
static inline uint32_t tn__feed_of(const tn__pruner *c, tn_output output)
{
  uint32_t f = tn__pruned(c, output.op)->fed;
  while (f != TN__NONE && c->spec->feeds[f].index != output.index) f = c->feed_next[f];
  return f;
}
static inline bool tn__is_fed(const tn__pruner *c, tn_output output) { return tn__feed_of(c, output) != TN__NONE; }

/* Whether an Enter passes on a constant of the graph that is not fed, in any frame. */
bool tn__enters_constant(const tn__pruner *c, const tn_operation *op);
/* Whether this edge goes from one iteration to the next. */
static inline bool tn__is_back_edge(const tn_operation *from, const tn_operation *to)
{
  return (tn__operation_traits(from) & TN_TRAIT_NEXT_ITERATION) && (tn__operation_traits(to) & TN_TRAIT_MERGE);
}

/* Whether a control edge from the operation delays nothing: it has run before this plan does, or is a placeholder whose
 * value is given. */
static inline bool tn__is_past(const tn__pruner *c, const tn_operation *op)
{
  const tn__op_state *s = tn__pruned(c, op);
  bool given = s->fed != TN__NONE && (tn__operation_traits(op) & TN_TRAIT_PLACEHOLDER);
  return s->cut || (given && !tn__spec_is_partial(c->spec));
}

/* The operation from which this plan reads an edge of `op`. */
static inline tn_operation *tn__turned(const tn__pruner *c, tn_operation *op)
{
  size_t n;
  return tn__pruned(c, op)->turned ? tn__operation_inputs(op, &n)[1].op : op;
}

/* prune.c: the value that an edge carries, and nodes for an operation of the plan's own frame. */
tn_status tn__prune_value(tn__pruner *c, tn_output output, uint32_t *out);
/* The first n inputs of an operation, as it takes them: a variable's value where it takes no reference. */
tn_status tn__prune_inputs(tn__pruner *c, const tn_operation *op, uint32_t *inputs, size_t n);
tn_status tn__prune_add(tn__pruner *c, tn_operation *op);
/* Makes nodes for n control inputs, in c->controls. */
tn_status tn__prune_controls(tn__pruner *c, tn_operation *const *control, size_t n, size_t *n_out);
/* The whole walk; ir, graph, spec, feeds and fetches are set. */
tn_status tn__prune(tn__pruner *c);

/* From graph and signature: prune and order (prune.c). Takes the graph's read lock. ir_fini also after a failure. */
tn_status tn__ir_from_graph(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err);
/* One operation alone: the spec feeds its inputs and fetches its outputs, in their order. */
tn_status tn__ir_from_operation(tn__ir *ir, const tn_operation *op, const tn__signature_spec *spec, tn_error *err);

/* frames.c: adds nodes for all that is in c->order, loops as one node each. */
tn_status tn__prune_add_loops(tn__pruner *c);

#endif
