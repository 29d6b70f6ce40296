/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan is compiled from: a signature of a graph, and the settings of its session. */
#ifndef TN_CORE_PLAN_SPEC_H
#define TN_CORE_PLAN_SPEC_H

#include <core/plan/plan.h>

/* Makes the nodes of a plan without a graph: puts the values of the feeds into ir->inputs, of the fetches into
 * ir->outputs. */
struct tn__ir;
typedef tn_status (*tn__ir_fill_fn)(struct tn__ir *ir, const void *user);

/* For the body of a loop's frame, one iteration. */
typedef struct tn__body_spec {
  tn_operation *const *own; /* the frame's own Exits and NextIterations: in the body each passes on its input */
  size_t n_own;
  size_t n_plain; /* number of feeds before the NextIterations, which Merges of the next iteration read */
  const bool *gated; /* by feed: it may be dead in an iteration; NULL = none is */
  tn_operation *const *turned; /* Merges replaced by the value of their second input, a NextIteration; only the last
                                * fetch may need them, else the result is TN_UNIMPLEMENTED (turn.c) */
  size_t n_turned;
} tn__body_spec;

typedef struct tn__signature_spec {
  const tn_output *feeds; /* no two equal */
  size_t n_feeds;
  const tn_output *fetches;
  size_t n_fetches;
  tn_operation *const *targets;
  size_t n_targets;
  int32_t level;
  uint32_t max_layouts;
  const char *disabled; /* names of passes that are off, between commas; NULL = none */
  tn__evaluate_fn evaluate; /* folds constants and follows recipes; NULL: nothing is folded */
  /* Loads kernel plugins that offer one of these ops. Called with the ops of a plan that is worth it, before its
   * kernels are chosen, and with no lock held. NULL: none are loaded. */
  void (*want_kernels)(const char *const *ops, size_t n, const char *device);
  bool want_always; /* for any plan, however small */
  tn__call_kernel_fn call_kernel; /* computes values that follow from shapes; NULL: steps compute them */
  const tn__body_spec *body; /* NULL: not the body of a frame */
  uint32_t depth; /* number of loops around it */
  uint32_t *failed_tries; /* of bodies deep in loops; NULL: outside of loops (frames.c) */
  bool unsure;    /* feeds may have other shapes, or values, than the graph says: its shapes are not used */
  struct tn__callees *callees; /* of the plan around this one, borrowed; NULL: the plan has its own */
  struct tn__kernel_states *states; /* of stateful nodes' kernels, borrowed (states.h); NULL: the plan has its own */
  bool partial; /* of a partial run: feeds are given one by one, and placeholders may be missing */
  size_t *inlined_nodes; /* of the plan around this one (inline.h), borrowed; NULL: the plan counts for itself */
  /* Compile the plans inside of this one, bodies of loops. tn__plan_compile sets them. */
  tn_status (*compile)(tn_graph *graph, const struct tn__signature_spec *spec, tn_plan **out, tn_error *err);
  tn_status (*compile_with)(tn_graph *graph, const struct tn__signature_spec *spec, tn__ir_fill_fn fill,
                            const void *user, tn_plan **out, tn_error *err);
} tn__signature_spec;

/* Loops and functions inside of a partial run are fed as anywhere. */
static inline bool tn__spec_is_partial(const tn__signature_spec *spec)
{
  return spec->partial && spec->body == NULL && spec->depth == 0;
}

/* Whether a pass is off by the option disable_passes. */
bool tn__pass_is_off(const tn__signature_spec *spec, const char *name);

#endif
