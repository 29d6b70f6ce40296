/* SPDX-License-Identifier: Apache-2.0 */
/* The intermediate representation that passes rewrite: the operations that a signature needs, as nodes and values that
 * can be replaced. It exists while a plan is compiled, on one thread. Nodes and values are identified by numbers that
 * never change; pointers to them are valid until the next one is added. Nodes are linked in an order in which they can
 * run. */
#ifndef TN_CORE_COMPILE_IR_IR_H
#define TN_CORE_COMPILE_IR_IR_H

#include <core/base/map.h>
#include <core/plan/plan.h>
#include <core/plan/spec.h>

typedef struct tn__ir_value {
  uint8_t kind;        /* TN_VALUE_FEED, _CONSTANT or _COMPUTED */
  tn_dtype dtype;      /* never a reference dtype; TN_DTYPE_INVALID: a feed whose dtype its first reader decides */
  uint32_t node;       /* computes it, or holds the constant; TN__NONE = none */
  uint32_t index;      /* output of the node, or number of the feed */
  uint32_t n_uses;     /* as inputs of live nodes and as fetches */
  uint32_t same_as;    /* the value that replaced it; TN__NONE = none */
  bool by_ref;         /* a reference to a variable: dtype is TN_RESOURCE */
  uint32_t planned;    /* its number in the plan; TN__NONE = not in the plan (yet) */
  tn_tensor *constant; /* owned reference; NULL = not a constant. With a recipe it may be without elements */
  tn__recipe *recipe;  /* makes the constant's elements again; owned reference; NULL = none */
  tn_output output;    /* the output in a graph that it stands for, borrowed: its shape and name */
} tn__ir_value;

typedef struct tn__ir_node {
  const tn_operation *op; /* of the graph, an inlined body or `extra`; borrowed */
  uint32_t traits;        /* TN_TRAIT_...: those of op, unless import changed them */
  uint32_t n_inputs, n_outputs, n_controls;
  uint32_t edges;       /* index in ir->edges: values that it reads, then nodes that it waits for */
  uint32_t first_value; /* its outputs have the values from here on */
  uint32_t next, prev;  /* in the order; TN__NONE at the ends */
  uint32_t instr;       /* its instruction in the plan; TN__NONE = none (yet) */
  bool live;            /* in the order; false = removed */
  bool waited_for;      /* a node waits for it by a control edge */
  bool wanted;          /* a target of the signature */
  bool dereferences;    /* reads a variable (import/dereference.c) */
  bool may_be_dead;     /* on a branch or after one; valid during import only */
  bool late;            /* an effect or after one, so state may have changed by then; valid during import only */
  struct tn__plan_frame *frame; /* a loop: owned until the plan takes it over; NULL = none */
  uint32_t feed; /* 1 + the number of the feed given here during a partial run; 0 = none (import/partial.c) */
} tn__ir_node;

/* What the passes did, for the report of the plan. */
typedef struct tn__ir_notes {
  tn__pass_note *passes;  /* what each run of a pass did */
  tn__rewrite_note *rewrites;
  size_t n_passes, pass_room, n_rewrites, rewrite_room;
  size_t n_graph, n_needed; /* number of nodes: of the graph, and after import */
  double folded_ns;  /* estimated time for all nodes folded so far */
} tn__ir_notes;

/* Operations that are not in the graph: made by passes, or by inlining functions. */
typedef struct tn__ir_made {
  tn_graph *extra;       /* operations made by passes; owned reference; NULL = none yet */
  tn_graph **inlined;    /* bodies of inlined functions, which hold some of the operations; owned references */
  size_t n_inlined, inlined_room;
  size_t n_inlined_nodes; /* the inline budget's counter, if the spec has none (import/inline.h) */
  uint32_t n_extra;       /* counter for unique names in `extra` */
} tn__ir_made;

typedef struct tn__ir {
  tn_graph *graph;                /* borrowed */
  const tn__signature_spec *spec; /* borrowed */
  tn__ir_node *nodes;
  tn__ir_value *values;
  uint32_t *edges;   /* see tn__ir_node.edges */
  uint32_t *inputs;  /* value of each feed; TN__NONE = nothing reads it */
  uint32_t *outputs; /* value of each fetch */
  size_t n_nodes, node_room, n_values, value_room, n_edges, edge_room, n_live;
  uint32_t first, last;  /* ends of the order; TN__NONE = no nodes */
  tn__ir_made made;
  tn__ir_notes notes;
  bool has_branches; /* some value may be dead */
  bool partial;      /* of a partial run: nodes stand for its feeds */
  bool asked;        /* kernel plugins were requested, so steps need not request them */
  tn_error *err;     /* the caller's; receives the text of every failure */
} tn__ir;

/* Initialises an empty ir for a signature. Call tn__ir_fini also after a failure. */
tn_status tn__ir_init(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err);
void tn__ir_fini(tn__ir *ir);

/* ---- reading ---- */

/* The value that currently replaces this one: itself if it was not replaced. */
static inline uint32_t tn__ir_value_of(const tn__ir *ir, uint32_t value)
{
  while (ir->values[value].same_as != TN__NONE) value = ir->values[value].same_as;
  return value;
}
/* The value that input i reads. */
static inline uint32_t tn__ir_input(const tn__ir *ir, const tn__ir_node *node, uint32_t i)
{
  return tn__ir_value_of(ir, ir->edges[node->edges + i]);
}
/* The node of control input i. */
static inline uint32_t tn__ir_control(const tn__ir *ir, const tn__ir_node *node, uint32_t i)
{
  return ir->edges[node->edges + node->n_inputs + i];
}
/* Whether a value is a constant that is always available. A constant with control edges waits for other nodes, and may
 * be dead with them. */
static inline bool tn__ir_is_bare_constant(const tn__ir *ir, const tn__ir_value *v)
{
  return v->constant != NULL && (v->node == TN__NONE || ir->nodes[v->node].n_controls == 0);
}
/* Returns a new reference to a constant with its elements. Makes them if the ir has only an outline. */
tn_status tn__ir_elements(const tn__ir *ir, uint32_t value, tn_tensor **out, tn_error *err);
/* Stores the shape that is known of a value before any step, and returns its rank; -1 = unknown. dims has room for
 * TN_MAX_RANK; unknown dimensions are negative. */
int32_t tn__ir_shape(const tn__ir *ir, uint32_t value, int64_t *dims);
/* Whether a value is computed after an effect. Valid during import only. */
static inline bool tn__ir_is_late(const tn__ir *ir, uint32_t value)
{
  const tn__ir_value *v = &ir->values[value];
  return v->node != TN__NONE && ir->nodes[v->node].late;
}
/* Whether a value may be on a branch that is not taken. Valid during import only: passes do not maintain it. */
bool tn__ir_may_be_dead(const tn__ir *ir, uint32_t value);
/* Whether a pass may remove or replace the node: no control edge on either side, no effect. */
bool tn__ir_is_free(const tn__ir_node *node);
/* Whether a node only computes its outputs from its inputs. */
bool tn__ir_is_pure(const tn__ir_node *node);

/* ---- changing ---- */

/* Adds a copy of `value`, with same_as and planned reset. */
tn_status tn__ir_add_value(tn__ir *ir, tn__ir_value value, uint32_t *out);
/* Adds a constant with a new reference to the tensor. */
tn_status tn__ir_add_constant(tn__ir *ir, tn_tensor *tensor, uint32_t node, tn_output output, uint32_t *out);
/* Adds a node before `before` (TN__NONE = at the end), with new values for its outputs. */
tn_status tn__ir_add_node(tn__ir *ir, const tn_operation *op, const uint32_t *inputs, uint32_t n, uint32_t before,
                          uint32_t *out);
/* Adds a synthetic node at the end. It borrows the name of `op` for diagnostics only. It has n_outputs new values; the
 * caller sets their dtypes and outputs. */
tn_status tn__ir_add_special(tn__ir *ir, const tn_operation *op, uint32_t traits, const uint32_t *inputs, uint32_t n,
                             uint32_t n_outputs, uint32_t *out);
/* Makes a node wait for another one. `node` must be the one made last, because its edges have to be contiguous. */
tn_status tn__ir_add_control(tn__ir *ir, uint32_t node, uint32_t to);
/* All uses of `from` become uses of `to`. */
void tn__ir_replace(tn__ir *ir, uint32_t from, uint32_t to);
/* Removes a node from the order, and its uses from its inputs. */
void tn__ir_remove(tn__ir *ir, uint32_t node);
/* Whether a value of the node is read, or the node may not be removed. */
bool tn__ir_is_needed(const tn__ir *ir, const tn__ir_node *node);
/* Removes nodes that are not needed any more; returns how many. */
size_t tn__ir_sweep(tn__ir *ir);

/* If all inputs of a node are constants, replaces its outputs by constants and adds 1 to *changes. The elements are
 * computed now, or, if there are many, when they are first read. Leaves the node unchanged if the kernel refuses
 * (fold.c). */
tn_status tn__ir_compute_node(tn__ir *ir, uint32_t node, size_t *changes);
/* The same, but the elements are always computed now. */
tn_status tn__ir_fold_node(tn__ir *ir, uint32_t node, size_t *changes);

static inline tn_status tn__ir_no_memory(const tn__ir *ir) { return tn__no_memory(ir->err, "plan", 0); }
/* Names the node in the error and returns the code. */
static inline tn_status tn__ir_refuse(const tn__ir *ir, const tn_operation *op, tn_status code)
{
  tn_error_set_node(ir->err, tn_operation_name(op));
  return code;
}

#endif
