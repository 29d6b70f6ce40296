/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes rewrite: the operations that a signature needs, as nodes and values that can be replaced. It lives
 * while a plan is compiled. Nodes and values are numbered and never move out of their number; nodes stand in a list in
 * an order in which they can run. */
#ifndef TN_CORE_COMPILE_IR_IR_H
#define TN_CORE_COMPILE_IR_IR_H

#include <core/base/map.h>
#include <core/plan/plan.h>
#include <core/plan/spec.h>

typedef struct tn__ir_value {
  uint8_t kind;        /* TN_VALUE_FEED, _CONSTANT or _COMPUTED */
  tn_dtype dtype;      /* no reference; TN_DTYPE_INVALID: a feed without a reader so far */
  uint32_t node;       /* that computes it, or that has the constant; TN__NONE = none */
  uint32_t index;      /* output of the node, or number of the feed */
  uint32_t n_uses;     /* as inputs of live nodes and as fetches */
  uint32_t same_as;    /* the value that replaced it, TN__NONE = none */
  bool by_ref;         /* a reference to a variable: dtype is resource */
  uint32_t planned;    /* its number in the plan, TN__NONE = not in the plan (yet) */
  tn_tensor *constant; /* a reference; with a recipe it may be without elements */
  tn__recipe *recipe;  /* of the constant, a reference; NULL = none */
  tn_output output;    /* in the graph, or in `extra` */
} tn__ir_value;

typedef struct tn__ir_node {
  const tn_operation *op;
  uint32_t traits;
  uint32_t n_inputs, n_outputs, n_controls;
  uint32_t edges;       /* in ir->edges: values that it reads, then nodes that it waits for */
  uint32_t first_value; /* of its outputs */
  uint32_t next, prev;  /* in the order; TN__NONE at the ends */
  uint32_t instr;       /* in the plan; TN__NONE = none */
  bool live;
  bool waited_for; /* a node waits for it by a control edge */
  bool wanted;     /* a target of the signature */
  bool dereferences; /* reads a variable (import/dereference.c) */
  bool may_be_dead;  /* on a branch, or after one */
  bool late;         /* an effect, or after one: state may have changed by then (while the ir is made) */
  struct tn__plan_frame *frame; /* a loop: owned until the plan takes it; NULL = none */
  uint32_t feed; /* 1 + the number of the feed given here during a partial run; 0 = none (import/partial.c) */
} tn__ir_node;

typedef struct tn__ir {
  tn_graph *graph;
  const tn__signature_spec *spec;
  tn__ir_node *nodes;
  tn__ir_value *values;
  uint32_t *edges;
  uint32_t *inputs;  /* value of each feed */
  uint32_t *outputs; /* value of each fetch */
  size_t n_nodes, node_room, n_values, value_room, n_edges, edge_room, n_live;
  uint32_t first, last;
  tn_graph *extra; /* operations that passes made; NULL = none yet */
  tn_graph **inlined; /* bodies of functions that have some of the operations: references */
  size_t n_inlined, inlined_room, n_inlined_nodes;
  uint32_t n_extra;
  tn__pass_note *passes; /* notes of each */
  tn__rewrite_note *rewrites;
  size_t n_passes, pass_room, n_rewrites, rewrite_room, n_graph, n_needed;
  bool has_branches; /* some value may be dead */
  bool partial; /* of a partial run: nodes stand for its feeds */
  bool asked; /* kernel plugins were requested, so a step need not */
  double folded_ns; /* estimated, of folded nodes */
  tn_error *err;
} tn__ir;

/* An empty one for a signature; before anything is added. tn__ir_fini also after a failure. */
tn_status tn__ir_init(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err);
void tn__ir_fini(tn__ir *ir);

/* ---- reading ---- */

/* The value that replaces this one now. */
static inline uint32_t tn__ir_value_of(const tn__ir *ir, uint32_t value)
{
  while (ir->values[value].same_as != TN__NONE) value = ir->values[value].same_as;
  return value;
}
static inline uint32_t tn__ir_input(const tn__ir *ir, const tn__ir_node *node, uint32_t i)
{
  return tn__ir_value_of(ir, ir->edges[node->edges + i]);
}
static inline uint32_t tn__ir_control(const tn__ir *ir, const tn__ir_node *node, uint32_t i)
{
  return ir->edges[node->edges + node->n_inputs + i];
}
/* Whether it is there whatever else runs: no constant that waits for something, and may be dead with it. */
static inline bool tn__ir_is_bare_constant(const tn__ir *ir, const tn__ir_value *v)
{
  return v->constant != NULL && (v->node == TN__NONE || ir->nodes[v->node].n_controls == 0);
}
/* A reference to the elements of a constant; made for the caller if the ir has none. */
tn_status tn__ir_elements(const tn__ir *ir, uint32_t value, tn_tensor **out, tn_error *err);
/* What is known of a value's shape before any step: its rank, -1 = unknown; dims has room for TN_MAX_RANK. */
int32_t tn__ir_shape(const tn__ir *ir, uint32_t value, int64_t *dims);
/* Whether a value is computed after an effect (while the ir is made). */
static inline bool tn__ir_is_late(const tn__ir *ir, uint32_t value)
{
  const tn__ir_value *v = &ir->values[value];
  return v->node != TN__NONE && ir->nodes[v->node].late;
}
/* Whether a value may be on a branch that is not taken (while the ir is made; passes do not maintain it). */
bool tn__ir_may_be_dead(const tn__ir *ir, uint32_t value);
/* Whether a pass may remove or replace the node: no control edge on either side, no effect. */
bool tn__ir_is_free(const tn__ir_node *node);

/* ---- changing ---- */

tn_status tn__ir_add_value(tn__ir *ir, tn__ir_value value, uint32_t *out);
tn_status tn__ir_add_constant(tn__ir *ir, tn_tensor *tensor, uint32_t node, tn_output output,
                              uint32_t *out); /* adds a reference */
/* A node in front of `before` (TN__NONE: at the end), with fresh values for its outputs. */
tn_status tn__ir_add_node(tn__ir *ir, const tn_operation *op, const uint32_t *inputs, uint32_t n, uint32_t before,
                          uint32_t *out);
/* A node that is not `op`, but has its name: n_outputs values, whose dtypes and outputs the caller sets. */
tn_status tn__ir_add_special(tn__ir *ir, const tn_operation *op, uint32_t traits, const uint32_t *inputs, uint32_t n,
                             uint32_t n_outputs, uint32_t *out);
/* The node, which is the last one made, waits for another one. */
tn_status tn__ir_add_control(tn__ir *ir, uint32_t node, uint32_t to);
/* All uses of `from` become uses of `to`. */
void tn__ir_replace(tn__ir *ir, uint32_t from, uint32_t to);
/* Removes a node from the order, and its uses from its inputs. */
void tn__ir_remove(tn__ir *ir, uint32_t node);
/* Whether a value of the node is read, or the node may not be removed. */
bool tn__ir_is_needed(const tn__ir *ir, const tn__ir_node *node);
/* Removes nodes that are not needed any more; returns how many. */
size_t tn__ir_sweep(tn__ir *ir);

/* Replaces a node whose inputs are all constants by constants, and counts that in *changes. Their elements are computed
 * now, or, if there are many, when they are first read. Does nothing if the kernel refuses (fold.c). */
tn_status tn__ir_compute_node(tn__ir *ir, uint32_t node, size_t *changes);
/* The same, always computed now. */
tn_status tn__ir_fold_node(tn__ir *ir, uint32_t node, size_t *changes);

static inline tn_status tn__ir_no_memory(const tn__ir *ir) { return tn__no_memory(ir->err, "plan", 0); }
/* Names the node in the error and returns the code. */
static inline tn_status tn__ir_refuse(const tn__ir *ir, const tn_operation *op, tn_status code)
{
  tn_error_set_node(ir->err, tn_operation_name(op));
  return code;
}

#endif
