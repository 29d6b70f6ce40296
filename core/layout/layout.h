/* SPDX-License-Identifier: Apache-2.0 */
/* A layout: one segment of a plan with concrete shapes. It has the place of each value and the tape that a step runs.
 * Immutable once made, except for measurements of its tasks; counted, since the cache may drop it while a step uses
 * it. */
#ifndef TN_CORE_LAYOUT_LAYOUT_H
#define TN_CORE_LAYOUT_LAYOUT_H

#include <core/plan/plan.h>

enum {
  TN_STORE_ENTRY,    /* outside: a feed or a value of an earlier segment; each step binds it */
  TN_STORE_CONSTANT, /* the plan's constant */
  TN_STORE_ARENA,    /* at `offset` of the instance's arena */
  TN_STORE_OUTPUT,   /* the memory of output `offset` of the step */
  TN_STORE_KNOWN,    /* `known`, computed with the layout */
  TN_STORE_HEAP      /* a tensor of the step's own: strings, handles, shapes known only after compute, values that
                      * outlive the segment */
};

/* A value in this layout. Slots are numbered densely within the layout. */
typedef struct tn__slot {
  uint32_t value;
  uint32_t root;   /* slot whose memory it is; itself when not a view */
  uint8_t store;   /* of the root */
  bool dynamic;    /* shape known after compute */
  bool given;      /* compute gives the tensor */
  bool fetched;    /* of a root: an output of the step shows its memory */
  int32_t rank;
  tn_dtype dtype;
  int64_t *dims;   /* rank numbers, in the layout's arena */
  int64_t count;
  size_t bytes;
  size_t offset;
  void *known;     /* TN_STORE_KNOWN, of the root */
  tn_tensor *elements; /* TN_STORE_CONSTANT: a reference; NULL when no kernel reads them */
  uint32_t next_alias; /* further slot with the same root, TN__NONE = none: they are bound together */
} tn__slot;

enum {
  TN_TAPE_HEAP = 1,    /* some outputs are TN_STORE_HEAP and not dynamic: made before compute */
  TN_TAPE_RELEASE = 2, /* some heap values are read for the last time */
  TN_TAPE_DYNAMIC = 4, /* some outputs are dynamic, or given by compute */
  TN_TAPE_GUEST = 8    /* the kernel is a plugin's: its calls are recorded (core/base/plugin_call.h) */
};

/* One call of a kernel. */
typedef struct tn__tape {
  tn_status (*compute)(tn_kernel_ctx *ctx);
  const void *state;
  const void *shape_state;
  size_t scratch;    /* offset in the arena */
  uint32_t operands; /* in layout->operands: slots of inputs, then of outputs */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t instr;
  uint32_t flags;
  uint32_t release, n_release; /* slots, in layout->operands */
  uint32_t scratch_units; /* size of the scratch in units of TN_ALIGN bytes, for traces */
} tn__tape;

/* The result of prepare of a kernel that reads an operand: it may hold for other values of the operand, too. */
typedef struct tn__again {
  uint32_t instr;
  uint32_t tape; /* its call, TN__NONE = it has none */
  size_t scratch_bytes;
  const uint32_t *views; /* input that each output is a view of, TN__NONE = none */
  const struct tn__pair *pairs;
  size_t n_pairs;
  uint32_t any_values;
} tn__again;

/* A value outlives its segment through a reference to the tensor that it shows: a heap value of the segment, or the
 * tensor by which a value of an earlier segment is held. */
typedef struct tn__hold {
  uint32_t root; /* heap value, TN__NONE = of an earlier segment */
  uint32_t from; /* in the latter case: as tn__plan_value.held */
  uint32_t held;
} tn__hold;

struct tn__layout {
  _Atomic uint32_t refs;
  tn__layout *next;  /* in the segment's list, guarded by plan->mu */
  tn_plan *plan;     /* not a reference: the plan outlives its layouts */
  tn__segment *segment;
  tn__arena arena;
  const unsigned char *key; /* shapes of the entries, bytes of the operands */
  size_t key_size;
  bool *by_value; /* by entry: an operand whose value had an effect; NULL = there are no operands */
  tn__slot *slots;
  uint32_t n_slots;
  const uint32_t *operands; /* slots */
  uint32_t n_operands;
  tn__tape *tape;
  uint32_t n_tape;
  void **shape_states; /* of each instruction of the segment, for freeing */
  const tn__plan_kernel **choices; /* the kernel that each instruction of the segment uses */
  double cost_ns;      /* of a step, estimated by the kernels */
  uint32_t generation; /* of the plan's kernels */
  size_t arena_bytes;
  size_t live_bytes; /* the largest sum of blocks that live at one time: no arena can be smaller */
  size_t in_place_bytes; /* of outputs that are written over an input */
  const uint32_t *output_root; /* slot with the memory of each of segment->outputs; TN__NONE = copied */
  struct tn__hold *holds; /* of values that outlive the segment */
  uint32_t n_holds;
  uint32_t *predicates; /* of branches, as segment->predicates: slot, number */
  const uint32_t *heaps; /* roots that are TN_STORE_HEAP */
  uint32_t n_heaps;
  bool has_outputs;
  struct tn__pack_use *packs; /* packed constants of its kernels (pack.c) */
  bool fixed;        /* other values of the operands need a layout of their own */
  tn__again *again;  /* else: instructions that read an operand */
  uint32_t n_again;
  tn__layout
      *base; /* a reference: the layout whose arrays this one shares but for tape and shape_states; NULL = none */
  struct tn__plan_tasks *tasks; /* calls that may run concurrently (tasks.h); NULL = they run one after the other */
  _Atomic(struct tn__offloaded *)
      offloaded; /* without a base: parts for a runtime (core/exec/offload.h); NULL = not offered */
};

/* Frees the parts of a layout that a runtime runs; core/kit sets it before it makes the first. */
typedef void (*tn__offloaded_free_fn)(struct tn__offloaded *offloaded);
extern _Atomic(tn__offloaded_free_fn) tn__offloaded_free;

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
  void *data; /* needed for operands only */
} tn__entry;

/* Returns a reference to the layout for these entries (segment->n_entries of them), from the cache or made now. */
tn_status tn__layout_get(tn_plan *plan, tn__segment *segment, const tn__entry *entries, tn__layout **out,
                         tn_error *err);
/* Whether a layout was made for these entries. */
bool tn__layout_fits(const tn_plan *plan, const tn__layout *layout, const tn__entry *entries);
void tn__layout_unref(tn__layout *layout);

/* For new plans (cache.c). */
extern const tn__layout_calls tn__plan_layouts;

/* Release the packed constants of this layout (pack.c). */
void tn__packs_release(tn__layout *layout);
void tn__packs_leave(tn__layout *layout); /* leaves them to the next attempt */
void tn__packs_forget(tn_plan *plan);     /* releases those left to a next attempt */
/* The number of forms that the plan's layouts use, and their bytes; plan->mu is held. */
void tn__packs_count(tn_plan *plan, uint64_t *n, uint64_t *bytes);

/* Makes a layout (build.c); not in the cache. */
tn_status tn__layout_build(tn_plan *plan, tn__segment *segment, const tn__entry *entries, tn__layout **out,
                           tn_error *err);

/* From a layout for entries of the same shapes, makes one for these values of the operands; *out is NULL if that is not
 * possible. `from` is not fixed (variant.c). */
tn_status tn__layout_vary(tn_plan *plan, tn__layout *from, const tn__entry *entries, tn__layout **out, tn_error *err);

/* Arena offsets by liveness (arena.c). Lives come in the order in which they begin; a block lives from instruction
 * `first` through `last`. */
typedef struct tn__life {
  uint32_t slot;
  uint32_t first, last;
  bool shared;   /* threads share the loop that writes it */
  size_t bytes;
  size_t offset; /* out */
} tn__life;
tn_status tn__layout_assign(tn__life *lives, size_t n, size_t *arena_bytes, size_t *live_bytes, tn_error *err);
/* The same for calls that run at once (arena_tasks.c). */
struct tn__task_order;
tn_status tn__layout_assign_tasks(tn__life *lives, size_t n, const struct tn__task_order *order, size_t *arena_bytes,
                                  size_t *live_bytes, tn_error *err);
/* Searches for better offsets if the present ones need more than the live bytes (arena_order.c); else they stay. */
void tn__layout_improve(tn__life *lives, size_t n, size_t live_bytes, size_t *arena_bytes);
/* Searches for offsets with which each of that many threads writes where it wrote before, in an arena of up to 1.5
 * times the live bytes (arena_threads.c). False: the offsets stay as they are. */
bool tn__layout_share(tn__life *lives, size_t n, uint32_t threads, size_t live_bytes, size_t *arena_bytes);

/* Output `out` may be written over input `in`. */
struct tn__pair {
  uint32_t out, in;
};

/* The results of prepare for one instruction (prepare.c). */
typedef struct tn__prepared {
  tn_prepare_ctx ctx;
  tn_plan *plan;
  const tn__plan_instr *instr;
  const tn__plan_kernel *kernel; /* out: the one that accepted the shapes; NULL: there is nothing to compute */
  tn__arena *arena;
  tn__layout *layout;
  bool *packed; /* by input: the kernel has a packed form of that constant; NULL = not requested */
  struct tn__prepared_output {
    int64_t *dims;
    int64_t count;
    int32_t rank;
    bool known, dynamic, given;
    uint32_t view;     /* input, TN__NONE = none */
  } *outputs;
  struct tn__pair *pairs; /* the caller frees it */
  size_t n_pairs, pair_room;
  uint32_t any_values; /* inputs, as bits, of which the kernel accepts any value */
} tn__prepared;

/* Tries the instruction's kernels in turn: if one declines the shapes (TN_UNIMPLEMENTED), the next is tried. */
tn_status tn__prepare_run(tn__prepared *p, tn_error *err);

#endif
