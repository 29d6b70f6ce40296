/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the program of one signature (feeds, fetches, targets) of a graph. Concurrent steps share it. The program is
 * immutable once compiled; its caches change, each under a rule of its own.
 *
 * Instructions are in an order in which they can run. They are cut into segments: within a segment every shape follows
 * from what is known at its start. A new segment begins where an op needs the value of a computed tensor to know its
 * output shape, or uses a tensor whose shape its producer chose while running. */
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
  uint8_t kind;       /* TN_VALUE_FEED, _CONSTANT or _COMPUTED; what is a view is known only with the shapes */
  bool dynamic_user;  /* used in a later segment than its own */
  bool whole;         /* output of a Merge or a loop, or a feed given later: always a tensor of its own, in `held` */
  bool from_shapes; /* small integers that follow from shapes and constants: computed with the layout, not in a step */
  uint32_t index;     /* FEED: input of the step; so it is of a value that a TN__SEGMENT_FEED makes */
  uint32_t producer;  /* COMPUTED: instruction */
  uint32_t n_uses;
  uint32_t last_use;  /* last instruction that reads it; TN__NONE = none */
  tn_tensor *constant; /* CONSTANT: a reference; with a recipe it has no elements (tn__tensor_outline) */
  tn__recipe *recipe;  /* of a large constant; NULL = none */
  tn_tensor
      *elements; /* with a recipe: the constant with its elements, or NULL while they are not needed. guarded by mu */
  bool keeps_elements; /* some kernel reads them in its steps. guarded by mu */
  bool lent;           /* a runtime that runs the plan itself has them: they stay as long as the plan. guarded by mu */
  tn_output output;
  uint32_t segment, slot; /* COMPUTED: of its producer, and its slot there */
  uint32_t
      predicate; /* COMPUTED: 1 + its number among the predicates of branches that a tape computes, 0 = it is none */
  uint32_t held;          /* COMPUTED: its number among the values that outlive their segment, TN__NONE = it does not */
  bool fetched;           /* an output of the plan: held until the step ends */
} tn__plan_value;

/* A kernel that may compute an instruction, with the state that its create returned. */
typedef struct tn__plan_kernel {
  const tn_kernel_def *def;
  void *state;
  bool kept; /* the state is in plan->states */
  const tn__guest *guest; /* the plugin that it belongs to; NULL: none */
} tn__plan_kernel;

/* A record of a call into a kernel; of the library's own kernels it is that of the call around it. `call` is static. */
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

/* Best first; a layout uses the first whose prepare does not decline the shapes. Immutable. */
typedef struct tn__plan_kernels {
  uint32_t n; /* not 0 */
  tn__plan_kernel items[];
} tn__plan_kernels;

typedef struct tn__plan_instr {
  const tn_operation *op;
  _Atomic(const tn__plan_kernels *) kernels; /* NULL: nothing to compute. Faster ones may replace them (kernels.c) */
  uint32_t traits;
  uint32_t shape_operands;
  uint32_t n_inputs, n_outputs, n_after;
  uint32_t first; /* in plan->ids: inputs, outputs, after, one behind the other */
  uint32_t segment;
  uint32_t context;
  uint8_t kind; /* of the segment that it needs; TN__SEGMENT_TAPE: it shares one */
  const uint32_t *input_contexts; /* of a Merge */
  _Atomic(struct tn__instr_callees *) callees; /* functions called so far; owned, NULL = none yet (callee_table.h) */
  struct tn__plan_frame *frame; /* of a loop; owned */
} tn__plan_instr;

/* Calls a kernel outside any step. */
typedef tn_status (*tn__call_kernel_fn)(const tn__plan_kernel *kernel, const void *shape_state, tn_view *const *inputs,
                                        uint32_t n_inputs, tn_view *const *outputs, uint32_t n_outputs, void *scratch,
                                        tn_error *err);

typedef struct tn__layout tn__layout;
typedef struct tn__workspace tn__workspace; /* core/exec: the memory of one step */

#define TN__MAX_IDLE 8 /* maximum idle workspaces of a plan; a power of 2 */

/* Frees a workspace of a plan; core/exec sets it before it makes the first. */
typedef void (*tn__workspace_free_fn)(tn_plan *plan, tn__workspace *workspace);
extern _Atomic(tn__workspace_free_fn) tn__workspace_free;

typedef struct tn__segment {
  uint32_t begin, end;     /* instructions */
  uint32_t context;
  uint8_t kind;
  const uint32_t *entries; /* values from outside that it reads: feeds and values of earlier segments */
  uint32_t n_entries;
  const uint32_t *operands; /* entries whose value decides a shape */
  uint32_t n_operands;
  uint32_t n_slots;        /* of a layout: the same for all shapes */
  uint32_t *outputs;       /* of the step, made here */
  uint32_t n_outputs;
  uint32_t *held;          /* values made here that outlive it */
  uint32_t n_held;
  uint32_t *ends;          /* held values of any segment, by tn__plan_value.held, that no later segment needs */
  uint32_t n_ends;
  uint32_t *predicates;    /* of branches: values made here */
  uint32_t n_predicates;
  /* guarded by plan->mu: */
  tn__layout *layouts; /* latest used first */
  uint32_t n_layouts;
} tn__segment;

/* The effect of one turn of a pass, and of one of its rewrites: for reports. */
typedef struct tn__pass_note {
  const char *name;
  uint32_t changes, nodes; /* nodes left */
  uint32_t first_rewrite, n_rewrites;
  bool off;
} tn__pass_note;
typedef struct tn__rewrite_note {
  const char *name;
  uint32_t count;
} tn__rewrite_note;

/* A context is a condition under which an instruction runs, or a value is there: a list of atoms, all of which have to
 * hold, in an order in which they can be decided. Context 0 is empty. */
enum {
  TN__ATOM_BRANCH, /* value `id` is a bool, and is `side` */
  TN__ATOM_FEED,   /* feed `id` is live */
  TN__ATOM_MERGE,  /* instruction `id`, a Merge, found an input */
  TN__ATOM_EXIT,   /* output `side` of instruction `id`, a loop, is live */
  TN__ATOM_WAIT,   /* instruction `id`, which may wait, has ended */
  TN__ATOM_DONE    /* context `id` is decided, one way or the other */
};
typedef struct tn__atom {
  uint8_t kind;
  uint32_t id, side;
} tn__atom;
typedef struct tn__context {
  uint32_t first, n; /* in plan->context_atoms: numbers of atoms */
} tn__context;

enum {
  TN__SEGMENT_TAPE,  /* a layout's tape */
  TN__SEGMENT_WAIT,  /* the same, of one call that may wait */
  TN__SEGMENT_MERGE, /* one Merge */
  TN__SEGMENT_LOOP,  /* one loop */
  TN__SEGMENT_FEED   /* one feed of a partial run: runs when it is given */
};

/* A plan keeps lists of layouts and knows nothing else of them. */
typedef struct tn__layout_calls {
  void (*drop)(tn_plan *plan); /* kernels have changed: no later step uses the layouts of now */
  void (*end)(tn_plan *plan);  /* the plan is freed */
} tn__layout_calls;

/* Notes of the compilation, for reports. */
typedef struct tn__plan_notes {
  tn__pass_note *passes; /* in the order of their turns */
  tn__rewrite_note *rewrites;
  uint32_t n_passes, n_rewrites;
  uint32_t n_graph_nodes, n_needed_nodes, n_nodes; /* of the graph, before the passes, after them */
} tn__plan_notes;

/* Whether faster kernels are worth loading, and which kernels the plan has (kernels.c). */
typedef struct tn__plan_upgrade {
  void (*want_kernels)(const char *const *ops, size_t n, const char *device); /* NULL: none are loaded */
  _Atomic bool may;            /* faster kernels were not asked for yet */
  _Atomic int64_t spent_ns;    /* estimated, by steps, while `may` is set */
  _Atomic uint32_t generation; /* of the kernels; a layout of another one is not kept */
} tn__plan_upgrade;

struct tn_plan {
  _Atomic uint32_t refs;

  /* The program: made once, never changed. */
  bool has_control; /* segments are not simply run one after the other */
  bool has_waits;   /* some may wait */
  tn_graph *graph; /* a reference */
  tn_graph *extra; /* operations that passes made, a reference; NULL = none */
  tn_graph **inlined; /* bodies of functions that are part of it: references; in the arena */
  uint32_t n_inlined;
  tn__arena arena; /* the arrays of the program, and of the notes */
  tn__plan_value *values;
  tn__plan_instr *instrs;
  uint32_t *ids;
  tn__segment *segments;
  uint32_t *inputs;  /* value of each feed; TN__NONE when nothing reads it */
  uint32_t *outputs; /* value of each fetch */
  uint32_t n_values, n_instrs, n_segments, n_inputs, n_outputs;
  uint32_t *slots;         /* of the values in ids, each in the layouts of the instruction's segment */
  uint32_t *output_places; /* of each fetch that is computed: its place among the outputs of its segment */
  uint32_t *held_readers;  /* of a plan in which something may wait, by held value: segments that read it */
  uint32_t n_held;         /* values that outlive their segment; none when there is only one */
  uint32_t max_entries;    /* of a segment */
  tn__atom *atoms;
  tn__context *contexts;
  uint32_t *context_atoms;
  uint32_t *output_contexts; /* of each fetch */
  tn_output *asked;          /* each fetch as requested: passes may compute it elsewhere */
  uint32_t n_atoms, n_contexts, n_predicates;
  struct tn__partial_plan *partial; /* of a partial run (partial_plan.h), in the arena; NULL = of a whole one */
  tn__plan_notes notes;

  /* Settings of its session, for the program and for the functions that it calls. */
  int32_t level;
  uint32_t max_layouts;
  char *disabled; /* as in the spec; in the arena, NULL = none */
  bool want_always;
  tn__call_kernel_fn call_kernel; /* NULL: nothing is computed with a layout */
  tn__evaluate_fn evaluate;       /* for recipes */
  struct tn__kernel_states *states; /* as in the spec */
  _Atomic uint32_t threads; /* that may share the loops of kernels; 0 = not set: one */
  _Atomic bool scheduled;   /* a scheduler takes its tasks (core/layout/tasks.h) */

  /* Caches, each with a rule of its own. */
  tn__plan_upgrade upgrade;
  const tn__layout_calls *layouts; /* of the segments */
  tn__mutex mu; /* layouts of the segments; nothing nests inside */
  struct tn__pack_use
      *unfinished; /* forms of constants for a layout that ran out of time; guarded by mu (core/layout/pack.c) */
  bool owns_callees;
  struct tn__callees *callees; /* plans of functions */
  struct { /* workspaces that wait for a step; taken and put back by exchange, without a lock */
    _Atomic(tn__workspace *) at;
    char apart[64 - sizeof(void *)]; /* threads have places of their own, each its own cache line */
  } idle[TN__MAX_IDLE];
};

tn_plan *tn__plan_ref(tn_plan *plan);
void tn__plan_unref(tn_plan *plan);

/* Whether the preparation of this thread continues (core/base/stop.h): TN_OK, TN_CANCELLED, TN_DEADLINE_EXCEEDED. op:
 * the node that it has reached, NULL = not known (limits.c). Incomplete plans, layouts and packed forms are
 * discarded. */
tn_status tn__prepare_check(const tn_operation *op, tn_error *err);

/* Follows the name of a node of the program, if a pass made several operations from it. Errors leave it out. */
#define TN__MADE_NAME "/_tn_"

/* Completes the error of a kernel's slot for the program: a valid code, a text, the node (status.c). */
tn_status tn__kernel_status(const tn_operation *op, const tn_kernel_def *kernel, const char *slot, tn_status st,
                            tn_error *err);
/* Appends the name of the program's node that an operation was made for. */
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

/* plan.c: as tn_plan_get_instruction, whatever the condition under which it runs. */
void tn__plan_instruction(const tn_plan *plan, uint32_t i, tn_plan_instruction *out);

/* Before a step: how many threads may share the loops of kernels, also in its loops and functions. */
void tn__plan_set_threads(tn_plan *plan, uint32_t threads);
static inline uint32_t tn__plan_threads(const tn_plan *plan)
{
  uint32_t n = atomic_load_explicit(&plan->threads, memory_order_relaxed);
  return n > 1 ? n : 1;
}

/* A scheduler of the runtime's runs the plan, which takes tasks of any size; also in its loops and functions. */
void tn__plan_set_scheduled(tn_plan *plan);

/* Frees the workspaces that no step uses. */
void tn__plan_drop_workspaces(tn_plan *plan);

/* Whether two lists of atoms differ in one thing only: they are two sides of one branch. Then one of them holds exactly
 * when the rest holds and the other does not. */
bool tn__atoms_oppose(const tn__atom *atoms, const uint32_t *xs, size_t n_x, const uint32_t *ys, size_t n_y);
/* Whether of two contexts one holds exactly when the other does not: they are the sides of one branch. */
bool tn__contexts_oppose(const tn_plan *plan, uint32_t a, uint32_t b);

/* kernels.c */
tn_status tn__plan_kernels_make(tn_plan *plan, const tn_operation *op, const tn__plan_kernels *old,
                                const tn__plan_kernels **out, tn_error *err);
/* One kernel of the library's, which has no create. */
tn_status tn__plan_kernels_one(tn_plan *plan, const tn_kernel_def *def, const tn__plan_kernels **out, tn_error *err);
void tn__plan_kernels_free(const tn__plan_kernels *list); /* destroys states; NULL allowed */
/* Call it for each step while plan->upgrade.may is set, with its estimated cost. May load kernel plugins: hold no
 * lock. */
void tn__plan_note_cost(tn_plan *plan, double ns);

/* constants.c: elements of constants that have a recipe. */

/* A reference to the elements of value v (of any constant); NULL if they were released. */
tn_tensor *tn__plan_elements(tn_plan *plan, uint32_t v);
/* The same, but released elements are made again. */
tn_status tn__plan_need_elements(tn_plan *plan, uint32_t v, tn_tensor **out, tn_error *err);
/* A kernel reads the elements in its steps: keeps these, unless the plan has others, until its kernels change. */
void tn__plan_keep_elements(tn_plan *plan, uint32_t v, tn_tensor *elements);
/* Keeps the elements as long as the plan: *out is borrowed. */
tn_status tn__plan_lend_elements(tn_plan *plan, uint32_t v, tn_tensor **out, tn_error *err);
void tn__plan_forget_kept(tn_plan *plan); /* when the kernels change; plan->mu is held */
/* Releases the elements, unless a kernel reads them in its steps or they are lent. */
void tn__plan_drop_elements(tn_plan *plan, uint32_t v);

/* Copies as much of `from` as the caller's struct has room for, and zeroes what a newer header has more; its
 * struct_size stays the caller's (rule P-26). */
void tn__copy_sized(void *to, const void *from, size_t size, size_t room);

#endif
