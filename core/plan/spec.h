/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a compilation: a signature of a graph, and the settings of its session. All pointers are borrowed until
 * the compilation ends, unless noted. */
#ifndef TN_CORE_PLAN_SPEC_H
#define TN_CORE_PLAN_SPEC_H

#include <core/plan/plan.h>

/* Adds the nodes of a plan that is not made from a graph. Stores the values of the feeds in ir->inputs and those of the
 * fetches in ir->outputs. */
struct tn__ir;
typedef tn_status (*tn__ir_fill_fn)(struct tn__ir *ir, const void *user);

/* For a plan that is one iteration of a loop's body. */
typedef struct tn__body_spec {
  tn_operation *const *own; /* the frame's own Exits, NextIterations and Enters of constants, which only forward here */
  size_t n_own;
  size_t n_plain; /* feeds from here on replace NextIterations of the previous iteration, which Merges read */
  const bool *gated; /* by feed: it may be dead in an iteration; NULL = none may be */
  tn_operation *const *rotated; /* Merges replaced by their second input, a NextIteration. Only the last fetch may need
                                * them, else the result is TN_UNIMPLEMENTED (rotate.c) */
  size_t n_rotated;
} tn__body_spec;

typedef struct tn__signature_spec {
  const tn_output *feeds; /* distinct */
  size_t n_feeds;
  const tn_output *fetches;
  size_t n_fetches;
  tn_operation *const *targets;
  size_t n_targets;
  int32_t level;
  uint32_t max_layouts; /* maximum layouts that a segment keeps */
  const char *disabled; /* comma-separated names of passes that are off; NULL = none */
  tn__evaluate_fn evaluate; /* folds constants and follows recipes; NULL = nothing is folded */
  /* Loads kernel plugins that offer one of these ops. Called with the ops of a plan that is worth it, before its
   * kernels are chosen, with no lock held. NULL = none are loaded. */
  void (*want_kernels)(const char *const *ops, size_t n, const char *device);
  bool want_always; /* call want_kernels for any plan, however small */
  bool cpu_only; /* the runtime has no devices of other types */
  bool reproducible; /* no kernels of plugins, and the library's own give the same bits on every processor */
  tn_dtype weights;  /* of constants that products multiply by: TN_FLOAT, TN_BFLOAT16 or TN_INT8; 0 is TN_FLOAT */
  tn__call_kernel_fn call_kernel; /* computes values that follow from shapes; NULL = steps compute them */
  const tn__body_spec *body; /* NULL = not the body of a loop */
  uint32_t depth;            /* number of loops around the plan */
  uint32_t *failed_tries; /* counter of failed attempts to compile a body as simple; NULL = outside loops (frames.c) */
  bool unsure; /* feeds may have shapes or values other than those of the graph, so its shapes are not used */
  struct tn__callees *callees; /* of the plan around this one, which outlives it; NULL = the plan has its own */
  struct tn__kernel_states *states; /* states of stateful nodes' kernels, which outlive the plan (states.h); NULL = the
                                     * plan has its own */
  bool partial; /* of a partial run: feeds are given one by one, and placeholders may be missing */
  size_t *inlined_nodes; /* counter of the plan around this one (import/inline.h); NULL = the plan has its own */
  /* Compile the plans inside this one: bodies of loops. Set by tn__plan_compile. */
  tn_status (*compile)(tn_graph *graph, const struct tn__signature_spec *spec, tn_plan **out, tn_error *err);
  tn_status (*compile_with)(tn_graph *graph, const struct tn__signature_spec *spec, tn__ir_fill_fn fill,
                            const void *user, tn_plan **out, tn_error *err);
} tn__signature_spec;

/* Whether the plan's own feeds are given one by one. Loops and functions inside a partial run get all feeds at once. */
static inline bool tn__spec_is_partial(const tn__signature_spec *spec)
{
  return spec->partial && spec->body == NULL && spec->depth == 0;
}

/* Whether the option disable_passes names the pass. */
bool tn__pass_is_off(const tn__signature_spec *spec, const char *name);

#endif
