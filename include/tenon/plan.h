/* SPDX-License-Identifier: Apache-2.0 */
/* What the planner made of a signature: which passes changed what, the instructions that a step runs, and how much memory
 * they take. For people who look at a model (`tenon plan`) and for tests.
 *
 * A report is a copy: it stays as it is while the session runs on, and outlives it. It belongs to whoever asked for it
 * and may be read from any thread. Texts and arrays that it gives are borrowed from it, as are operations, which no
 * longer belong to the session but live as long as the report.
 *
 * Each struct's struct_size is set by the caller; the library fills what it covers and zeroes what it does not know. An
 * index past the end is TN_OUT_OF_RANGE, a NULL pointer or an unset struct_size TN_INVALID_ARGUMENT.
 * Since 0.1 */
#ifndef TENON_PLAN_H
#define TENON_PLAN_H

#include <tenon/session.h>

TN_BEGIN_DECLS

/* One of the planner's passes. */
struct tn_pass_info {
  size_t struct_size;
  const char *name;  /* as in the option disable_passes */
  const char *about; /* one line */
};

struct tn_plan_summary {
  size_t struct_size;
  int32_t level;           /* of the session; at 0 no pass runs */
  int32_t reserved;
  uint64_t graph_nodes;    /* of the graph, when the signature was compiled */
  uint64_t needed_nodes;   /* that fetches and targets need: before the passes */
  uint64_t nodes;          /* after the passes */
  uint64_t instructions;   /* nodes less the constants */
  uint64_t values;
  uint64_t segments;       /* runs of instructions whose shapes are known before the first of them runs */
  uint64_t layouts;        /* segments laid out for tuples of input shapes, so far */
  uint64_t passes;         /* in the order in which they ran; some have several turns */
  uint64_t constants;      /* that instructions and fetches read */
  uint64_t constant_bytes;
  uint64_t packed;         /* forms of constants that kernels made; shared by the sessions of a graph */
  uint64_t packed_bytes;
  uint64_t arena_bytes;    /* memory of a step: that of its largest layout, since segments follow each other in it; what
                            * is fetched, and what outlives its segment, is not in it */
  uint64_t live_bytes;     /* what it needs at least: the largest sum of what lives at one time, as above */
  uint64_t held_bytes;     /* of constant_bytes: what the plan holds as it is in the graph, packed or not */
};

/* One turn of a pass. */
struct tn_plan_pass {
  size_t struct_size;
  const char *name;
  tn_bool off;       /* by disable_passes */
  tn_bool reserved[7];
  uint64_t changes;  /* nodes taken away, merged, rewritten */
  uint64_t nodes;    /* left when it had ended */
  uint64_t rewrites; /* of several kinds, see tn_plan_report_rewrite */
};

/* A rewrite (tn_rewrite_def) that changed something in a turn of a pass. */
struct tn_plan_rewrite {
  size_t struct_size;
  const char *name; /* "conv_bias" */
  uint64_t count;   /* nodes that it replaced */
};

#define TN_NOT_IN_PLAN UINT32_MAX

/* One call of a kernel. Instructions stand in an order in which they can run. */
struct tn_plan_call {
  size_t struct_size;
  const tn_operation *op;
  const char *const *kernels; /* those that fit, best first; none for what needs no call (an identity) */
  size_t n_kernels;
  uint32_t kernel;            /* taken by the layout used last; TN_NOT_IN_PLAN: none was made, or no call is needed */
  uint32_t segment;
  const uint32_t *inputs;     /* values */
  const uint32_t *outputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  tn_bool with_layout;        /* follows from shapes: computed when a layout is made, not in a step */
  tn_bool reserved[7];
};

/* A value: a feed, a constant, or an output of an instruction. */
struct tn_plan_operand {
  size_t struct_size;
  int32_t kind;       /* 0 feed, 1 constant, 2 computed: TN_VALUE_... of <tenon/kit.h> */
  tn_dtype dtype;
  tn_output output;   /* where it comes from: in the program's graph, or made by a pass */
  uint32_t producer;  /* instruction; TN_NOT_IN_PLAN = none */
  uint32_t n_uses;    /* by instructions and as a fetch */
  uint64_t bytes;     /* of a constant */
};

/* A segment laid out for the shapes of what it reads. */
struct tn_plan_layout_info {
  size_t struct_size;
  uint32_t segment;
  uint32_t calls;       /* of kernels, in a step */
  uint64_t arena_bytes;
  uint64_t live_bytes;  /* no arena can be smaller */
  uint64_t in_place_bytes; /* of outputs that are written over an input that nobody needs any more */
};

#ifndef TN_PLUGIN
/* Pass i of those that there are, in the order of their first turns. Since 0.1 */
TN_API tn_status tn_pass_at(size_t i, tn_pass_info *out, tn_error *err);

/* What the planner made of a signature, which is compiled now if the session does not have it yet; no step runs, so there
 * are layouts only if the session ran the signature before. Names as in tn_session_run.
 * Returns as tn_session_make_callable. *out is the caller's; release it with tn_plan_report_release.
 * Threads any. Since 0.1 */
TN_API tn_status tn_session_plan_report(tn_session *session, const char *const *feed_names, size_t n_feeds,
                                        const char *const *fetch_names, size_t n_fetches, const char *const *targets,
                                        size_t n_targets, tn_plan_report **out, tn_error *err);
TN_API void tn_plan_report_release(tn_plan_report *report); /* NULL allowed */

TN_API tn_status tn_plan_report_summary(const tn_plan_report *report, tn_plan_summary *out, tn_error *err);
TN_API tn_status tn_plan_report_pass(const tn_plan_report *report, size_t i, tn_plan_pass *out, tn_error *err);
TN_API tn_status tn_plan_report_rewrite(const tn_plan_report *report, size_t pass, size_t i, tn_plan_rewrite *out,
                                        tn_error *err);
TN_API tn_status tn_plan_report_call(const tn_plan_report *report, size_t i, tn_plan_call *out, tn_error *err);
TN_API tn_status tn_plan_report_operand(const tn_plan_report *report, size_t i, tn_plan_operand *out, tn_error *err);
TN_API tn_status tn_plan_report_layout(const tn_plan_report *report, size_t i, tn_plan_layout_info *out, tn_error *err);
#endif

TN_END_DECLS

#endif
