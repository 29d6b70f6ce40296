/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the program of one signature (feeds, fetches, targets) of a graph. Concurrent steps share it. The program is
 * immutable once compiled. Its caches change; the field comments state the rule for each.
 *
 * Instructions are in an order in which they can run. They are divided into segments: all shapes in a segment follow
 * from what is known at its start. A new segment begins where an op needs the value of a computed tensor to know its
 * output shape, or uses a tensor whose shape its producer determined at run time. */
#ifndef TN_CORE_PLAN_PLAN_H
#define TN_CORE_PLAN_PLAN_H

#include <core/base/arena.h>
#include <core/graph/graph_internal.h>
#include <core/plan/recipe.h>
#include <core/tensor/tensor_internal.h>
#include <stdatomic.h>
#include <tenon/kit.h>
#include <tenon/resource.h>

#define TN__NONE UINT32_MAX

/* The device type that every runtime has: its kernels compute in host memory. */
#define TN__HOST_DEVICE "CPU"

typedef struct tn__plan_value {
  tn_dtype dtype;
  uint8_t kind; /* TN_VALUE_FEED, _CONSTANT or _COMPUTED. Which values are views is known only with the shapes */
  bool dynamic_user; /* used in a later segment than its own */
  bool whole; /* output of a Merge or a loop, or a feed of a partial run: always a tensor of its own, and held */
  bool from_shapes; /* small integers that follow from shapes and constants: computed with the layout, not in a step */
  uint32_t index;      /* FEED, or the output of a TN__SEGMENT_FEED: number of the feed */
  uint32_t producer;   /* COMPUTED: instruction; else TN__NONE */
  uint32_t n_uses;     /* as inputs of instructions, fetches and predicates */
  uint32_t last_use;   /* last instruction that reads it; TN__NONE = none */
  tn_tensor *constant; /* CONSTANT: owned reference; with a recipe it has no elements (tn__tensor_outline) */
  tn__recipe *recipe;  /* of a large constant; owned reference; NULL = none */
  /* Guarded by mu: */
  tn_tensor *elements; /* with a recipe: the constant with its elements, owned reference; NULL = released */
  bool keeps_elements; /* some kernel reads the elements in steps: they must not be released */
  bool lent;           /* a runtime that runs the plan itself uses the elements: they are kept as long as the plan */
  /* Immutable again: */
  tn_output output;       /* the output in a graph that it stands for; borrowed */
  uint32_t segment, slot; /* COMPUTED: segment of its producer, and its slot there */
  uint32_t predicate; /* COMPUTED: 1 + its number among the predicates that tapes compute; 0 = not a predicate */
  uint32_t held;      /* COMPUTED: its number among the values that outlive their segment; TN__NONE = it does not */
  bool fetched;       /* an output of the plan: held until the step ends */
} tn__plan_value;

/* A kernel that may compute an instruction, with the state that its create returned. */
typedef struct tn__plan_kernel {
  const tn_kernel_def *def; /* registered: outlives the plan */
  void *state;              /* owned by the plan, unless `kept` */
  bool kept;                /* the state belongs to plan->states */
  const tn__guest *guest;   /* the plugin that it belongs to; NULL = the library */
} tn__plan_kernel;

/* The record of a call into a kernel. Calls of the library's own kernels keep the record of the call around them.
 * `call` must be static. */
static inline tn__plugin_call tn__kernel_call(const tn__plan_kernel *kernel, const tn_operation *op, const char *call)
{
  const tn__plugin_call *around = tn__plugin_call_now;
  if (kernel->guest == NULL) return around != NULL ? *around : (tn__plugin_call){ 0 };
  return (tn__plugin_call){ .plugin = kernel->guest->name,
                            .file = kernel->guest->file,
                            .call = call,
                            .kernel = kernel->def->name,
                            .node = op != NULL ? tn_operation_name(op) : NULL };
}

/* The kernels of an instruction, best first. A layout uses the first whose prepare does not decline the shapes.
 * Immutable; in the plan's arena. */
typedef struct tn__plan_kernels {
  uint32_t n; /* not 0 */
  tn__plan_kernel items[];
} tn__plan_kernels;

typedef struct tn__plan_instr {
  const tn_operation *op; /* borrowed from the plan's graphs */
  _Atomic(const tn__plan_kernels *) kernels; /* NULL = nothing to compute. Faster ones may replace them (kernels.c) */
  uint32_t traits;
  uint32_t shape_operands; /* of the op's schema */
  uint32_t n_inputs, n_outputs, n_after;
  uint32_t first; /* index in plan->ids: inputs, then outputs (values), then instructions that it waits for */
  uint32_t segment;
  uint32_t context;               /* the condition under which it runs */
  uint8_t kind;                   /* of the segment that it needs; only those of TN__SEGMENT_TAPE are shared */
  const uint32_t *input_contexts; /* Merge: the condition of each input; else NULL */
  _Atomic(struct tn__instr_callees *) callees; /* functions called so far; owned; NULL = none yet (callee_table.h) */
  struct tn__plan_frame *frame; /* loop: owned; else NULL */
} tn__plan_instr;

/* Calls a kernel of a plan outside any step. */
typedef tn_status (*tn__call_kernel_fn)(const tn_plan *plan, const tn__plan_kernel *kernel, const void *shape_state,
                                        tn_view *const *inputs, uint32_t n_inputs, tn_view *const *outputs,
                                        uint32_t n_outputs, void *scratch, tn_error *err);

typedef struct tn__layout tn__layout;
typedef struct tn__workspace tn__workspace; /* core/exec: the memory of one step */

#define TN__MAX_IDLE 8 /* maximum idle workspaces of a plan; a power of 2 */

/* Frees a workspace of a plan. core/exec sets it before it makes the first one. */
typedef void (*tn__workspace_free_fn)(tn_plan *plan, tn__workspace *workspace);
extern _Atomic(tn__workspace_free_fn) tn__workspace_destroy;

typedef struct tn__segment {
  uint32_t begin, end; /* instructions [begin, end) */
  uint32_t context;    /* of all its instructions */
  uint8_t kind;        /* TN__SEGMENT_... */
  const uint32_t *entries; /* values from outside that it reads: feeds and values of earlier segments */
  uint32_t n_entries;
  const uint32_t *operands; /* indices of entries whose value decides a shape */
  uint32_t n_operands;
  uint32_t n_slots;  /* of a layout: the same for all shapes */
  uint32_t *outputs; /* outputs of the plan that are computed here */
  uint32_t n_outputs;
  uint32_t *held; /* values computed here that outlive the segment */
  uint32_t n_held;
  uint32_t *ends; /* held values of any segment, by tn__plan_value.held, that no later segment needs */
  uint32_t n_ends;
  uint32_t *predicates; /* values computed here that are predicates of branches */
  uint32_t n_predicates;
  /* Guarded by plan->mu: */
  tn__layout *layouts; /* most recently used first; each has a reference */
  uint32_t n_layouts;
} tn__segment;

/* The effect of one run of a pass, and of one of its rewrites: for reports. */
typedef struct tn__pass_note {
  const char *name; /* static */
  uint32_t changes, nodes; /* nodes: left after it */
  uint32_t first_rewrite, n_rewrites; /* range of the notes of its rewrites */
  bool off; /* disabled by an option */
} tn__pass_note;
typedef struct tn__rewrite_note {
  const char *name;
  uint32_t count;
} tn__rewrite_note;

/* A context is the condition under which an instruction runs or a value is live: a list of atoms that all have to hold,
 * in an order in which they can be decided. Context 0 is the empty list. */
enum {
  TN__ATOM_BRANCH, /* value `id` is a bool, and is `side` */
  TN__ATOM_FEED,   /* feed `id` is live */
  TN__ATOM_MERGE,  /* instruction `id`, a Merge, found an input */
  TN__ATOM_EXIT,   /* output `side` of instruction `id`, a loop, is live */
  TN__ATOM_WAIT,   /* instruction `id`, which may wait, has ended */
  TN__ATOM_DONE    /* context `id` is decided, either way */
};
typedef struct tn__atom {
  uint8_t kind;
  uint32_t id, side;
} tn__atom;
typedef struct tn__context {
  uint32_t first, n; /* range in plan->conditions.context_atoms: numbers of atoms */
} tn__context;

/* Kinds of segments. Those from TN__SEGMENT_MERGE on have no layout. */
enum {
  TN__SEGMENT_TAPE,  /* calls of kernels: the tape of a layout */
  TN__SEGMENT_WAIT,  /* the same, with one call that may wait */
  TN__SEGMENT_MERGE, /* one Merge */
  TN__SEGMENT_LOOP,  /* one loop */
  TN__SEGMENT_FEED   /* one feed of a partial run: runs when it is given */
};

/* A plan keeps lists of layouts and knows nothing else about them: core/layout is above core/plan and supplies
 * these. */
typedef struct tn__layout_calls {
  void (*drop)(tn_plan *plan); /* kernels have changed: no later step may use the current layouts */
  void (*end)(tn_plan *plan);  /* the plan is being freed: releases its layouts */
} tn__layout_calls;

/* Notes of the compilation, for reports. */
typedef struct tn__plan_notes {
  tn__pass_note *passes; /* in the order in which they ran */
  tn__rewrite_note *rewrites;
  uint32_t n_passes, n_rewrites;
  uint32_t n_graph_nodes, n_needed_nodes, n_nodes; /* number of nodes: of the graph, before the passes, after them */
} tn__plan_notes;

/* Whether faster kernels are worth loading, and the generation of the current ones (kernels.c). */
typedef struct tn__plan_upgrade {
  void (*want_kernels)(const char *const *ops, size_t n, const char *device); /* NULL = none are loaded */
  _Atomic bool may;            /* faster kernels may be requested: they have not been */
  _Atomic int64_t spent_ns;    /* estimated time of steps so far, while `may` is set */
  _Atomic uint32_t generation; /* of the kernels; changed under plan->mu. Layouts of older ones are not kept */
} tn__plan_upgrade;

/* Settings of the session, for the program and for the functions that it calls. */
typedef struct tn__plan_settings {
  int32_t level;
  uint32_t max_layouts;
  char *disabled; /* as in the spec; in the arena; NULL = none */
  bool want_always, cpu_only, reproducible; /* as in the spec */
  tn_dtype weights;                         /* as in the spec */
  tn__call_kernel_fn call_kernel; /* NULL = nothing is computed with a layout */
  tn__evaluate_fn evaluate;       /* for recipes */
  struct tn__kernel_states *states; /* as in the spec: borrowed */
  _Atomic uint32_t threads; /* maximum threads that share the loops of kernels; 0 = not set, which means 1 */
  _Atomic bool scheduled;   /* a scheduler runs its tasks (core/layout/tasks.h) */
} tn__plan_settings;

/* What steps leave for the next ones: layouts, packed constants, plans of functions, workspaces. */
typedef struct tn__plan_caches {
  const tn__layout_calls *layouts; /* static */
  tn__mutex mu; /* guards the segments' lists of layouts, and fields that say so. Held briefly, not while kernels run */
  struct tn__pack_use *unfinished; /* packed constants of a layout that ran out of time; guarded by mu
                                    * (core/layout/pack.c) */
  bool owns_callees;
  struct tn__callees *callees; /* plans of functions; thread-safe. Owned if owns_callees, else the outer plan's */
  struct { /* idle workspaces; taken and put back by atomic exchange, without a lock */
    _Atomic(tn__workspace *) at;
    char apart[64 - sizeof(void *)]; /* each entry has its own cache line, since threads use different ones */
  } idle[TN__MAX_IDLE];
} tn__plan_caches;

/* The graphs that own the operations of a plan. */
typedef struct tn__plan_graphs {
  tn_graph *main;     /* of the signature; owned reference */
  tn_graph *extra;    /* operations made by passes; owned reference; NULL = none */
  tn_graph **inlined; /* bodies of inlined functions; owned references */
  uint32_t n_inlined;
} tn__plan_graphs;

/* The conditions of a plan with control flow. */
typedef struct tn__plan_conditions {
  tn__atom *atoms; /* an atom depends only on atoms with lower numbers */
  tn__context *contexts;
  uint32_t *context_atoms; /* the lists of all contexts, concatenated */
  uint32_t *outputs;       /* by fetch: the context in which it is live */
  uint32_t n_atoms, n_contexts, n_predicates;
} tn__plan_conditions;

struct tn_plan {
  _Atomic uint32_t refs;

  /* The program: made once, never changed. Its arrays are in the arena. */
  bool has_control; /* it has conditions: not all segments run, or not in order */
  bool has_waits;   /* some segments may wait, so segments may run out of order */
  tn__plan_graphs graphs;
  tn__arena arena;
  tn__plan_value *values;
  tn__plan_instr *instrs;
  uint32_t *ids; /* see tn__plan_instr.first */
  tn__segment *segments;
  uint32_t *inputs;  /* value of each feed; TN__NONE = nothing reads it */
  uint32_t *outputs; /* value of each fetch */
  uint32_t n_values, n_instrs, n_segments, n_inputs, n_outputs;
  uint32_t *slots;         /* as ids, for values: the slot in the layouts of the instruction's segment */
  uint32_t *output_places; /* by fetch that is computed: its index among the outputs of its segment */
  uint32_t *held_readers;  /* by held value: number of readers; only if has_waits */
  uint32_t n_held;         /* number of values that outlive their segment */
  uint32_t max_entries;    /* maximum n_entries of a segment */
  tn_output *asked;        /* by fetch: the output as requested; passes may compute it by another operation */
  tn__plan_conditions conditions;
  struct tn__partial_plan *partial; /* of a partial run (partial_plan.h); NULL = of a whole one */
  tn__plan_notes notes;

  tn__plan_settings settings;
  tn__plan_upgrade upgrade;
  tn__plan_caches caches;
};

/* Thread-safe. NULL is allowed. */
tn_plan *tn__plan_ref(tn_plan *plan);
void tn__plan_unref(tn_plan *plan);

/* Whether the preparation of this thread may continue (base/threads/stop.h): TN_OK, TN_CANCELLED or
 * TN_DEADLINE_EXCEEDED. op: the node that it has reached, for the message; NULL = unknown. If it may not, callers
 * discard incomplete plans, layouts and packed constants (limits.c). */
tn_status tn__prepare_check(const tn_operation *op, tn_error *err);

/* Suffix of the name of an operation, if a pass made several operations from one node. Error messages omit it. */
#define TN__MADE_NAME "/_tn_"

/* Completes an error of a kernel's function (`slot` is its name): a valid code, a text, and the node (status.c). */
tn_status tn__kernel_status(const tn_operation *op, const tn_kernel_def *kernel, const char *slot, tn_status st,
                            tn_error *err);
/* Appends the name of the program's node for which an operation was made. */
void tn__plan_node_name(const tn_operation *op, tn__text *out);

static inline const tn__plan_kernels *tn__instr_kernels(const tn__plan_instr *i)
{
  return atomic_load_explicit(&i->kernels, memory_order_acquire);
}
static inline const uint32_t *tn__instr_inputs(const tn_plan *p, const tn__plan_instr *i) { return p->ids + i->first; }
static inline const uint32_t *tn__instr_outputs(const tn_plan *p, const tn__plan_instr *i)
{
  return p->ids + i->first + i->n_inputs;
}
static inline const uint32_t *tn__instr_after(const tn_plan *p, const tn__plan_instr *i)
{
  return p->ids + i->first + i->n_inputs + i->n_outputs;
}

/* Like tn_plan_get_instruction, but also for instructions that run under a condition (plan.c). */
void tn__plan_instruction(const tn_plan *plan, uint32_t i, tn_plan_instruction *out);

/* Sets the number of threads that may share the loops of kernels, also in the plan's loops and functions. Call it
 * before the first step. */
void tn__plan_set_threads(tn_plan *plan, uint32_t threads);
static inline uint32_t tn__plan_threads(const tn_plan *plan)
{
  uint32_t n = atomic_load_explicit(&plan->settings.threads, memory_order_relaxed);
  return n > 1 ? n : 1;
}

/* Records that a scheduler of the runtime runs the plan, which takes tasks of any size; also in its loops and
 * functions. */
void tn__plan_set_scheduled(tn_plan *plan);

/* Frees the workspaces that no step uses. */
void tn__plan_drop_workspaces(tn_plan *plan);

/* Whether two lists of atoms are equal except for one position, where they have the two sides of one branch. If the
 * common atoms hold, exactly one of the lists holds. */
bool tn__atoms_oppose(const tn__atom *atoms, const uint32_t *xs, size_t n_x, const uint32_t *ys, size_t n_y);
/* Whether exactly one of two contexts holds in every step: they are the two sides of one branch, and nothing else. */
bool tn__contexts_oppose(const tn_plan *plan, uint32_t a, uint32_t b);

/* ---- kernels.c ---- */

/* Makes the list of kernels for an operation; it takes the states of those in `old` (NULL = none). */
tn_status tn__plan_kernels_create(tn_plan *plan, const tn_operation *op, const tn__plan_kernels *old,
                                const tn__plan_kernels **out, tn_error *err);
/* Makes a list of one kernel of the library, which must not have a create function. */
tn_status tn__plan_kernels_one(tn_plan *plan, const tn_kernel_def *def, const tn__plan_kernels **out, tn_error *err);
void tn__plan_kernels_destroy(const tn__plan_kernels *list); /* destroys states; NULL allowed */
/* Adds the estimated cost of a step, in ns. Call it for each step while plan->upgrade.may is set. May load kernel
 * plugins: hold no lock. */
void tn__plan_note_cost(tn_plan *plan, double ns);

/* ---- constants.c: elements of constants that have a recipe. They take plan->mu unless noted. ---- */

/* A new reference to value v, a constant, with its elements; NULL if they were released. */
tn_tensor *tn__plan_elements(tn_plan *plan, uint32_t v);
/* The same, but makes released elements again. Runs kernels and reads files: hold no lock. */
tn_status tn__plan_need_elements(tn_plan *plan, uint32_t v, tn_tensor **out, tn_error *err);
/* Records that a kernel reads the elements in steps: they are kept until the plan's kernels change. If the plan has
 * none now, it takes a reference to `elements`. */
void tn__plan_keep_elements(tn_plan *plan, uint32_t v, tn_tensor *elements);
/* Keeps the elements as long as the plan, and makes them if necessary. *out is borrowed. */
tn_status tn__plan_lend_elements(tn_plan *plan, uint32_t v, tn_tensor **out, tn_error *err);
/* Revokes tn__plan_keep_elements for all values, when the kernels change. Call it with plan->mu held. */
void tn__plan_forget_kept(tn_plan *plan);
/* Releases the elements, unless a kernel reads them in steps or they are lent. */
void tn__plan_drop_elements(tn_plan *plan, uint32_t v);

/* Copies as much of `from` as the caller's struct has room for, and zeroes fields that only a newer header has. The
 * caller's struct_size is unchanged (rule P-26). */
void tn__copy_sized(void *to, const void *from, size_t size, size_t room);

#endif
