/* SPDX-License-Identifier: Apache-2.0 */
/* A layout: one segment of a plan with concrete shapes. It has the place of each value and the tape that a step runs.
 * It is immutable once made, except for measurements of its tasks. It is reference-counted, because the cache may drop
 * it while a step uses it. */
#ifndef TN_CORE_LAYOUT_LAYOUT_H
#define TN_CORE_LAYOUT_LAYOUT_H

#include <core/plan/plan.h>

/* Where the memory of a value is. */
enum {
  TN_STORE_ENTRY,    /* outside the segment: a feed or a value of an earlier segment; each step binds it */
  TN_STORE_CONSTANT, /* the plan's constant */
  TN_STORE_ARENA,    /* at `offset` of the instance's arena */
  TN_STORE_OUTPUT,   /* the memory of output `offset` of the step */
  TN_STORE_KNOWN,    /* at `known`, computed when the layout was made */
  TN_STORE_HEAP      /* a tensor of the step's own: strings, handles, shapes known only after compute, values that
                      * outlive the segment */
};

/* A value in this layout. Slots are numbered densely within the segment, the same in all its layouts. */
typedef struct tn__slot {
  uint32_t value;  /* in plan->values */
  uint32_t root;   /* slot that has the memory; itself if it is not a view */
  uint8_t store;   /* TN_STORE_..., that of the root */
  bool dynamic;    /* its shape is known only after compute */
  bool given;      /* compute supplies the tensor */
  bool fetched;    /* root only: an output of the step uses its memory */
  int32_t rank;
  tn_dtype dtype;
  int64_t *dims;       /* `rank` of them; in the layout's arena, or those of the constant */
  int64_t count;       /* elements */
  size_t bytes;
  size_t offset;       /* TN_STORE_ARENA: in the arena; TN_STORE_OUTPUT: number of the output */
  void *known;         /* root with TN_STORE_KNOWN: the elements, in the layout's arena */
  tn_tensor *elements; /* TN_STORE_CONSTANT: owned reference; NULL if no kernel reads the elements */
  uint32_t next_alias; /* next slot with the same root, which is bound together with it; TN__NONE = none */
} tn__slot;

/* Flags of a call. */
enum {
  TN_TAPE_HEAP = 1,    /* some outputs are TN_STORE_HEAP and not dynamic: allocated before compute */
  TN_TAPE_RELEASE = 2, /* it is the last reader of some heap values */
  TN_TAPE_DYNAMIC = 4, /* some outputs are dynamic, or supplied by compute */
  TN_TAPE_GUEST = 8    /* the kernel belongs to a plugin: its calls are recorded (core/base/plugin_call.h) */
};

/* One call of a kernel. */
typedef struct tn__tape {
  tn_status (*compute)(tn_kernel_ctx *ctx);
  const void *state;       /* from the kernel's create; borrowed from the plan */
  const void *shape_state; /* from its prepare; in layout->shape_states */
  size_t scratch;          /* offset in the arena, in bytes */
  uint32_t operands;       /* index in layout->operands: slots of inputs, then of outputs */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t instr;              /* instruction of the plan */
  uint32_t flags;              /* TN_TAPE_... */
  uint32_t release, n_release; /* index in layout->operands: slots to release after the call */
  uint32_t scratch_units;      /* size of the scratch in units of TN_ALIGN bytes, for traces */
} tn__tape;

/* The result of prepare for an instruction that reads an operand. If prepare gives the same for another value of the
 * operand, the layout can be shared (variant.c). */
typedef struct tn__prepare_memo {
  uint32_t instr;
  uint32_t tape; /* its call; TN__NONE = it has none */
  size_t scratch_bytes;
  const uint32_t *views; /* by output: the input that it is a view of; TN__NONE = none */
  const struct tn__pair *pairs;
  size_t n_pairs;
  uint32_t any_values; /* as in tn__prepared */
} tn__prepare_memo;

/* A value outlives its segment through a reference to the tensor whose memory it uses: a heap value of the segment, or
 * the tensor that holds a value of an earlier segment. */
typedef struct tn__hold {
  uint32_t root; /* slot of the heap value; TN__NONE = the tensor is one of an earlier segment */
  uint32_t from; /* in the latter case: its tn__plan_value.held */
  uint32_t held; /* tn__plan_value.held of the value */
} tn__hold;

/* The entries that a layout is for. */
typedef struct tn__layout_key {
  const unsigned char *bytes; /* shapes of the entries, then bytes of the operands; owned */
  size_t n_bytes;
  bool *by_value; /* by entry: an operand whose value decided something; NULL = there are no operands */
  bool fixed;     /* other values of the operands need a layout of their own */
  tn__prepare_memo *again; /* if not fixed: instructions that read an operand */
  uint32_t n_again;
} tn__layout_key;

/* The memory of a step. */
typedef struct tn__layout_memory {
  size_t arena_bytes;
  size_t live_bytes;     /* maximum sum of blocks that live at one time: no arena can be smaller */
  size_t in_place_bytes; /* of outputs that are written over an input */
} tn__layout_memory;

struct tn__layout {
  _Atomic uint32_t refs;
  tn__layout *next;  /* in the segment's list, guarded by plan->mu */
  tn_plan *plan;     /* borrowed: the plan outlives its layouts */
  tn__segment *segment;
  tn__arena arena;          /* all arrays, unless `base` has them */
  tn__layout_key key;
  tn__slot *slots;
  uint32_t n_slots;
  const uint32_t *operands; /* slots: see tn__tape */
  uint32_t n_operands;
  tn__tape *tape; /* the calls of a step, in order */
  uint32_t n_tape;
  void **shape_states;             /* by instruction of the segment; owned: destroyed with the layout */
  const tn__plan_kernel **choices; /* by instruction of the segment: the kernel that it uses; borrowed */
  double cost_ns;                  /* of a step, estimated by the kernels */
  uint32_t generation;             /* plan->upgrade.generation when it was made */
  tn__layout_memory memory;
  const uint32_t *output_root; /* by entry of segment->outputs: slot with the memory; TN__NONE = must be copied */
  struct tn__hold *holds;      /* of values that outlive the segment */
  uint32_t n_holds;
  uint32_t *predicates;  /* pairs, as segment->predicates: slot, then number of the predicate */
  const uint32_t *heaps; /* roots that are TN_STORE_HEAP */
  uint32_t n_heaps;
  bool has_outputs;           /* some values are TN_STORE_OUTPUT */
  struct tn__pack_use *packs; /* packed constants of its kernels (pack.c); owned */
  tn__layout *base; /* owned reference to the layout whose arrays this one shares, except tape and shape_states;
                     * NULL = none */
  struct tn__plan_tasks *tasks; /* calls that may run concurrently (tasks.h); NULL = they run one after the other */
  _Atomic(struct tn__offloaded *) offloaded; /* parts that a runtime runs (core/exec/step/offload.h); owned. Only
                                              * without a base; NULL = not offered (yet) */
};

/* Frees the parts of a layout that a runtime runs. core/kit sets it before it makes the first one. */
typedef void (*tn__offloaded_destroy_fn)(struct tn__offloaded *offloaded);
extern _Atomic(tn__offloaded_destroy_fn) tn__offloaded_destroy;

/* Whether input k of an instruction is an operand of the segment: its value is known when a layout is made. */
static inline bool tn__layout_reads_operand(const tn_plan *plan, const tn__segment *s, const tn__plan_instr *instr,
                                            uint32_t k)
{
  if (plan->slots[instr->first + k] >= s->n_entries) return false;
  return plan->values[tn__instr_inputs(plan, instr)[k]].from_shapes ||
         (instr->shape_operands != 0 && tn__operation_is_shape_operand(instr->op, k));
}

/* The kernel that instruction i of the plan uses in this layout. */
static inline const tn__plan_kernel *tn__layout_kernel(const tn__layout *l, uint32_t i)
{
  return l->choices[i - l->segment->begin];
}

/* An entry for which a step needs a layout. */
typedef struct tn__entry {
  const int64_t *dims;
  int32_t rank;
  int64_t count;
  void *data; /* set for operands only */
} tn__entry;

/* Returns a new reference to the layout for these entries (segment->n_entries of them), from the cache or made now.
 * Takes plan->mu, but not while kernels' prepare runs; two threads may make the same layout, and one is kept. */
tn_status tn__layout_get(tn_plan *plan, tn__segment *segment, const tn__entry *entries, tn__layout **out,
                         tn_error *err);
/* Whether a layout was made for these entries. */
bool tn__layout_fits(const tn_plan *plan, const tn__layout *layout, const tn__entry *entries);
void tn__layout_unref(tn__layout *layout);

/* The functions that plan->layouts points to (cache.c). */
extern const tn__layout_calls tn__plan_layouts;

/* Packed constants (pack.c). The first three must not be called with plan->mu held. */
void tn__packs_release(tn__layout *layout); /* releases those of this layout */
void tn__packs_leave(tn__layout *layout);   /* leaves them to the next attempt to make the layout */
void tn__packs_forget(tn_plan *plan);       /* releases those left to a next attempt */
/* The number of forms that the plan's layouts use, and their bytes. Call it with plan->mu held. */
void tn__packs_count(tn_plan *plan, uint64_t *n, uint64_t *bytes);

/* Makes a layout without the cache (build.c). */
tn_status tn__layout_build(tn_plan *plan, tn__segment *segment, const tn__entry *entries, tn__layout **out,
                           tn_error *err);

/* Derives a layout for these values of the operands from one for entries of the same shapes. *out is NULL if that is
 * not possible. `from` must not be fixed (variant.c). */
tn_status tn__layout_vary(tn_plan *plan, tn__layout *from, const tn__entry *entries, tn__layout **out, tn_error *err);

/* A block of the arena. It is needed from instruction `first` through `last`. Lists of them must be sorted by
 * `first`. */
typedef struct tn__life {
  uint32_t slot;         /* TN__NONE = scratch memory of a call */
  uint32_t first, last;
  bool shared;   /* threads share the loop that writes it */
  size_t bytes;
  size_t offset; /* out */
} tn__life;
/* Assigns offsets by liveness, for calls that run one after the other (arena.c). */
tn_status tn__layout_assign(tn__life *lives, size_t n, size_t *arena_bytes, size_t *live_bytes, tn_error *err);
/* The same for calls that run concurrently (arena_tasks.c). */
struct tn__task_order;
tn_status tn__layout_assign_tasks(tn__life *lives, size_t n, const struct tn__task_order *order, size_t *arena_bytes,
                                  size_t *live_bytes, tn_error *err);
/* Searches for better offsets if the current ones need more than the live bytes (arena_order.c). */
void tn__layout_improve(tn__life *lives, size_t n, size_t live_bytes, size_t *arena_bytes);
/* Searches for offsets with which each thread writes where it wrote before, in an arena of up to 1.5 times the live
 * bytes (arena_threads.c). False if it found none: then the offsets are unchanged. */
bool tn__layout_share(tn__life *lives, size_t n, uint32_t threads, size_t live_bytes, size_t *arena_bytes);

/* Output `out` may be written over input `in`. */
struct tn__pair {
  uint32_t out, in;
};

/* The call of prepare for one instruction, and its results (prepare.c). */
typedef struct tn__prepared {
  tn_prepare_ctx ctx; /* passed to the kernel */
  tn_plan *plan;
  const tn__plan_instr *instr;
  const tn__plan_kernel *kernel; /* out: the one that accepted the shapes; NULL = there is nothing to compute */
  tn__arena *arena;              /* receives the dims of outputs */
  tn__layout *layout;
  bool *packed; /* by input: the kernel has a packed form of that constant; NULL = the caller does not need it */
  struct tn__prepared_output {
    int64_t *dims;
    int64_t count;
    int32_t rank;
    bool known;    /* the kernel has set a shape, or dynamic */
    bool dynamic;  /* the shape is known only after compute */
    bool given;    /* compute supplies the tensor */
    uint32_t view; /* input that it is a view of; TN__NONE = none */
  } *outputs;      /* n_outputs; the caller's */
  struct tn__pair *pairs; /* the caller frees it */
  size_t n_pairs, pair_room;
  uint32_t any_values; /* bit i: the kernel accepts any value of input i, which it reads in the step */
} tn__prepared;

/* Calls prepare of the instruction's kernels, best first, until one does not decline the shapes (TN_UNIMPLEMENTED). The
 * caller sets plan, instr, arena, layout, packed, outputs and ctx's views; it owns ctx.shape_state afterwards. */
tn_status tn__prepare_run(tn__prepared *p, tn_error *err);

#endif
