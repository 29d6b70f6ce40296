/* SPDX-License-Identifier: Apache-2.0 */
/* Reports about the plan of a signature: what each pass changed, the instructions that a step runs,
 * and their memory. For people who examine a model (`tenon plan`) and for tests.
 *
 * A report is a copy: it does not change while the session runs, and outlives it. The caller owns
 * it; any thread may read it. Strings and arrays are borrowed from the report. So are operations,
 * which live as long as the report, independently of the session.
 *
 * The caller sets each struct's struct_size; the library fills in the fields that it covers and
 * zeroes those that it does not know. Returns TN_OUT_OF_RANGE for an index past the end,
 * TN_INVALID_ARGUMENT for a NULL pointer or a struct_size that is not set.
 * Since 0.1 */
#ifndef TENON_PLAN_H
#define TENON_PLAN_H

#include <tenon/session.h>

TN_BEGIN_DECLS

/* A pass of the planner. */
struct tn_pass_info {
  size_t struct_size;
  const char *name;  /* as in the option disable_passes */
  const char *about; /* description in one line */
};

/* Totals of a report. */
struct tn_plan_summary {
  size_t struct_size;
  int32_t level;           /* of the session; at 0 no pass runs */
  int32_t reserved;
  uint64_t graph_nodes;    /* in the graph, when the signature was compiled */
  uint64_t needed_nodes;   /* needed for fetches and targets, before the passes */
  uint64_t nodes;          /* after the passes */
  uint64_t instructions;   /* nodes without the constants */
  uint64_t values;         /* feeds, constants and outputs of instructions */
  uint64_t segments;       /* runs of instructions whose shapes are all known before the first of them runs */
  uint64_t layouts;        /* segments laid out so far, one per tuple of input shapes */
  uint64_t passes;         /* pass runs, in order of execution; some passes run several times */
  uint64_t constants;      /* read by instructions and fetches */
  uint64_t constant_bytes; /* their total size */
  uint64_t packed;         /* packed forms of constants made by kernels; shared by the sessions of a graph */
  uint64_t packed_bytes;   /* their total size */
  uint64_t arena_bytes;    /* memory of a step: the arena of its largest layout, since segments run
                            * one after the other; without fetched values and values that outlive
                            * their segment */
  uint64_t live_bytes;     /* lower bound for arena_bytes: the maximum, over time, of the total size
                            * of the live values */
  uint64_t held_bytes;     /* part of constant_bytes held in original form, whether also packed or not */
};

/* One run of a pass. */
struct tn_plan_pass {
  size_t struct_size;
  const char *name;  /* as in tn_pass_info */
  tn_bool off;       /* disabled by disable_passes */
  tn_bool reserved[7];
  uint64_t changes;  /* nodes removed, merged or rewritten */
  uint64_t nodes;    /* after the pass */
  uint64_t rewrites; /* number of entries of tn_plan_report_rewrite */
};

/* A rewrite (tn_rewrite_def) that changed something in a run of a pass. */
struct tn_plan_rewrite {
  size_t struct_size;
  const char *name; /* "conv_bias" */
  uint64_t count;   /* nodes that it replaced */
};

/* No kernel, no instruction. */
#define TN_NOT_IN_PLAN UINT32_MAX

/* One call of a kernel. Instructions are in an order in which they can run. */
struct tn_plan_call {
  size_t struct_size;
  const tn_operation *op;
  const char *const *kernels; /* candidates, best first; none if no call is needed (an identity) */
  size_t n_kernels;
  uint32_t kernel;            /* index of the kernel in the layout used last; TN_NOT_IN_PLAN: no
                               * layout, or no call needed */
  uint32_t segment;
  const uint32_t *inputs;     /* indices of values */
  const uint32_t *outputs;    /* indices of values */
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
  tn_output output;   /* the corresponding output, in the program's graph or made by a pass */
  uint32_t producer;  /* instruction that computes it; TN_NOT_IN_PLAN = none */
  uint32_t n_uses;    /* number of reads by instructions and fetches */
  uint64_t bytes;     /* size of a constant */
};

/* A segment laid out for given shapes of its inputs. */
struct tn_plan_layout_info {
  size_t struct_size;
  uint32_t segment;
  uint32_t calls;       /* kernel calls in a step */
  uint64_t arena_bytes; /* size of its arena */
  uint64_t live_bytes;  /* lower bound for arena_bytes */
  uint64_t in_place_bytes; /* bytes of outputs written over an input that is no longer needed */
};

#ifndef TN_PLUGIN
/* Pass i of all passes, in the order in which they first run. Since 0.1 */
TN_API tn_status tn_pass_at(size_t i, tn_pass_info *out, tn_error *err);

/* Makes a report about the plan of a signature. Compiles the signature unless the session has it
 * already; no step runs, so there are layouts only if the session ran the signature before. Names
 * as in tn_session_run.
 * Returns as tn_session_make_callable. The caller owns *out and releases it with
 *         tn_plan_report_release.
 * Threads any. Since 0.1 */
TN_API tn_status tn_session_plan_report(tn_session *session, const char *const *feed_names, size_t n_feeds,
                                        const char *const *fetch_names, size_t n_fetches, const char *const *targets,
                                        size_t n_targets, tn_plan_report **out, tn_error *err);
TN_API void tn_plan_report_release(tn_plan_report *report); /* NULL allowed */

/* Part i of a report; see the counts in tn_plan_summary. Since 0.1 */
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
