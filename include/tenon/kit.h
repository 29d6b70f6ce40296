/* SPDX-License-Identifier: Apache-2.0 */
/* The executor kit: what a runtime builds on. Three levels, each usable from any plugin:
 *
 *   (a) run this plan for me     tn_kit_prepare, tn_kit_step: put them in the factory's slots, or leave those NULL. With
 *                                tn_kit_prepare_offloaded parts of any plan, of its loops and functions, too, are offered to the
 *                                runtime, which runs those that it takes, as on a device.
 *   (b) I schedule               tn_kit_prepare_scheduled with a tn_kit_scheduler: the kit says which instructions are
 *                                ready, the runtime calls tn_kit_run_instructions where and when it likes.
 *   (c) I execute                tn_plan_... read the plan: instructions and values; tn_step_... the step. The runtime
 *                                computes with code of its own, in memory of its own; tn_kit_layout has the shapes,
 *                                tn_kit_compute calls a kernel of the plan. Plans with branches, loops, calls of functions
 *                                or kernels that wait (tn_plan_check_straight) are for (a).
 *
 * Since 0.1 */
#ifndef TENON_KIT_H
#define TENON_KIT_H

#include <tenon/op.h>

TN_BEGIN_DECLS

/* ---- the step ---- */

/* A step is made by the session layer and lives until the runtime's `step` has returned. Readable from any thread that
 * works for it. */
/* Tells steps apart, as in a log: a number of the process, from 1 up, whatever the session. A step is given one when
 * somebody first asks for it, so it is no count of steps. Since 0.1 */
TN_API uint64_t tn_step_id(const tn_step *step);
TN_API size_t tn_step_n_inputs(const tn_step *step);
TN_API tn_tensor *tn_step_input(const tn_step *step, size_t i); /* borrowed, never written */
TN_API size_t tn_step_n_outputs(const tn_step *step);
/* The tensor that the caller wants output i written into, or NULL: then one is made and given by tn_step_set_output. Who executes
 * by himself (level (c)) refuses one of another dtype or shape than the output's with TN_INVALID_ARGUMENT. */
TN_API tn_tensor *tn_step_output(const tn_step *step, size_t i);
/* Gives output i; takes over one reference of the caller's. The tensor must be the program's alone: no constant, no
 * variable, no feed. */
TN_API void tn_step_set_output(tn_step *step, size_t i, tn_tensor *tensor);
TN_API tn_bool tn_step_cancelled(const tn_step *step);
/* When the step has to end, in nanoseconds of CLOCK_MONOTONIC; 0 = no limit. */
TN_API int64_t tn_step_deadline_ns(const tn_step *step);
/* Whether the step goes on: TN_OK, or what it ends with: TN_CANCELLED (also when its session was closed), TN_DEADLINE_EXCEEDED.
 * op: the node that it came to, named in the message; NULL: none. For who executes by himself. Since 0.1 */
TN_API tn_status tn_step_check(const tn_step *step, const tn_operation *op, tn_error *err);
/* What the caller gave to cancel the step with, borrowed, for registering callbacks; NULL when he gave none. The session's
 * close and time limits do not go through it: tn_step_cancelled knows of all, and the factory's `cancel` of close. */
TN_API tn_cancellation *tn_step_cancellation(tn_step *step);

/* ---- level (a) ---- */

enum {
  TN_KIT_INLINE = 0, /* on the calling thread, in a fixed order */
  TN_KIT_POOL = 1    /* on the calling thread and on workers (tn_kit_step_with) */
};
/* Added to TN_KIT_POOL: about so many threads will work for a step, so that kernels can divide their work. */
#define TN_KIT_THREADS(n) ((uint32_t)(n) << 8)

/* Makes an executable of a plan that tn_kit_step runs; flags is one of the above. Since 0.1 */
TN_API tn_status tn_kit_prepare(const tn_plan *plan, uint32_t flags, tn_executable **out, tn_error *err);
TN_API void tn_kit_release(tn_executable *executable); /* NULL allowed */
TN_API tn_status tn_kit_step(tn_executable *executable, tn_step *step, tn_error *err);

/* Threads that help with steps: so many workers of a pool as may work for one session at once. The pool of the process has as
 * many workers as there are usable CPUs; it starts them when there is work for the first time. */
struct tn_kit_workers_config {
  size_t struct_size;
  int32_t threads;     /* that work for one step at most, the one that runs it among them; 0: one for each usable CPU, 1 or
                        * below 0: that one alone. More than the pool has are as many as it has */
  int32_t loop_threads; /* of one kernel, as above; 0: as many as there are */
  int32_t spin_us;     /* microseconds that who finds nothing to do looks on, within a step; below 0: the usual 50 */
  tn_bool own_pool;    /* a pool of their own instead of the process's, gone with them */
  tn_bool pin;         /* of own_pool: each worker stays on a CPU of its own, where the system can do that */
  tn_bool reserved[6];
  const char *name;    /* not NULL or "": the pool of this name, which all who name it share */
  int32_t linger_us;   /* microseconds that a worker looks on after it had something to do, also when the step is over: the next
                        * one finds it awake, and an idle program burns a CPU for so long. 0: it sleeps between steps; below 0:
                        * spin_us where steps follow each other closely, else 0 */
};
#define TN_KIT_WORKERS_CONFIG_SIZE TN_SIZE_TO(tn_kit_workers_config, linger_us)

/* Workers for the steps of one session; threads are started when a step has work for them. config NULL: the defaults.
 * Returns  TN_INVALID_ARGUMENT (struct_size not set; a pool of this name has another count of threads),
 *          TN_RESOURCE_EXHAUSTED. Close them when no step uses them; NULL allowed.
 * Threads  any. Since 0.1, S-CFG-10 to 16 */
TN_API tn_status tn_kit_workers_open(const tn_kit_workers_config *config, tn_kit_workers **out, tn_error *err);
TN_API void tn_kit_workers_close(tn_kit_workers *workers);
/* How many threads may work for one step, the one that runs it among them: at least 1. */
TN_API uint32_t tn_kit_workers_threads(const tn_kit_workers *workers);
/* As tn_kit_step, with the help of workers: kernels share their loops with them. NULL, an executable that was prepared
 * TN_KIT_INLINE: as tn_kit_step. Any thread, also one that runs a kernel. Since 0.1 */
TN_API tn_status tn_kit_step_with(tn_executable *executable, tn_step *step, tn_kit_workers *workers, tn_error *err);
/* The pool that the caller of the step asked for by its index (tn_run_options.inter_op_pool): -1 = the calling thread alone. */
TN_API int32_t tn_step_pool(const tn_step *step);

/* For the factory's `reset` slot: closes the factory's sessions, without waiting for their steps, and detaches the containers:
 * those listed, n = 0: the default one, flags TN_RESET_ALL: all. A name that nobody has used is no error. TN_INVALID_ARGUMENT
 * (NULL, unknown flags), TN_FAILED_PRECONDITION (not registered; after a fork), TN_RESOURCE_EXHAUSTED. Any thread. Since 0.1, S-RST, P-42 */
TN_API tn_status tn_kit_reset(const tn_session_factory *factory, const char *const *containers, size_t n, uint32_t flags,
                              tn_error *err);

/* ---- level (a) with parts that the runtime runs ---- */

/* Instructions [begin, end) of a plan, or of the body of a loop or a function in it, with concrete shapes: plain calls of kernels
 * that stand one behind the other under the same condition. They read plain elements and compute plain elements of shapes that are
 * known before; none keeps state. Good until its `release`. Since 0.1 */
struct tn_kit_part {
  size_t struct_size;
  const tn_plan *plan;          /* its own: that of the body, for what stands in one */
  const tn_plan_layout *layout; /* has the shapes of what the part reads and makes: tn_kit_layout_value and _instruction,
                                 * tn_kit_compute, tn_step_record. Not for tn_kit_layout_next and _release */
  uint32_t begin, end;
  uint32_t n_inputs, n_outputs;
  const uint32_t *inputs;  /* values that it reads and does not make, but for constants and TN_PLACE_KNOWN; the plan's */
  const uint32_t *outputs; /* of those that it computes what others read */
  uint32_t depth;          /* calls of functions that it stood in when it was offered; 0: its nodes are the graph's own */
};
#define TN_KIT_PART_SIZE TN_SIZE_TO(tn_kit_part, depth)

/* Who runs parts of plans that the kit runs.
 *
 * take     asked once for each part of each layout, before it runs for the first time with these shapes; *handle: what `run` gets,
 *          the runtime's; NULL: the kit runs it as usual. What it returns, but for TN_OK, is the step's. Any thread, several at once,
 *          also for the same part: then one of the handles is released.
 * run      what the instructions compute: inputs and outputs are views in host memory, in the order of the part's, with the shapes of
 *          the layout. All outputs are there when it has returned. It may call tn_kit_compute for those instructions that it does not
 *          compute by itself, in memory of its own. It ends soon when the step is over (tn_step_check). Several steps at once.
 * release  what a handle holds goes: with the layout, or with tn_kit_release at the latest. No step uses it.
 *
 * No locks of the kit are held in any of them. */
struct tn_kit_offload {
  size_t struct_size;
  void *user;
  tn_status (*take)(void *user, const tn_kit_part *part, void **handle, tn_error *err);
  tn_status (*run)(void *user, void *handle, tn_step *step, tn_view *const *inputs, tn_view *const *outputs, tn_error *err);
  void (*release)(void *user, void *handle);
};
#define TN_KIT_OFFLOAD_SIZE TN_SIZE_TO(tn_kit_offload, release)

/* As tn_kit_prepare; parts of the plan are offered. *offload is copied, but for what `user` points to. Of several executables of one
 * plan only the first is asked. A partial run is the kit's alone.
 * Returns  TN_INVALID_ARGUMENT (NULL, struct_size not set, no take, run or release), TN_RESOURCE_EXHAUSTED. Goes with
 *          tn_kit_release, which releases all handles. Any thread. Since 0.1 */
TN_API tn_status tn_kit_prepare_offloaded(const tn_plan *plan, uint32_t flags, const tn_kit_offload *offload, tn_executable **out,
                                          tn_error *err);
/* As tn_plan_get_instruction, for the part's instructions, whatever the condition under which they run: i counts in the plan.
 * Returns TN_OUT_OF_RANGE for others. Any thread. Since 0.1 */
TN_API tn_status tn_kit_part_instruction(const tn_kit_part *part, size_t i, tn_plan_instruction *out, tn_error *err);

/* ---- level (b) ---- */

/* Who decides on which thread the instructions of a step run, and which first.
 *
 * A step is run in parts, one after the other: what stands between conditions, loops, calls of functions and kernels that wait,
 * which the kit does by itself on the thread of tn_kit_step (the bodies of loops and functions are made of such parts, too). In
 * each part instructions are numbered from 0, and one that is cheap is taken together with those that need it or that it needs:
 * the numbers are not those of tn_plan_get_instruction. A plan without branches has parts of one instruction.
 *
 * ready   n instructions of the part may run now, in any order or at once; costs[i] is a rough time in nanoseconds. The
 *         scheduler sees to it that tn_kit_run_instructions is called for each, once, also when the step has failed or was
 *         cancelled: then that returns soon. n = 0: the part is over. Called from tn_kit_step and from
 *         tn_kit_run_instructions, on their threads, so perhaps on several at once; the lists are good for the call.
 * wait    called on the thread of tn_kit_step, once for each part, after what may run at first was given to `ready`: returns
 *         when the part is over (tn_kit_instructions_left is 0), and may run instructions meanwhile. When it returns before,
 *         the step fails.
 *
 * A number that is not ready, or was run before, fails the step with TN_INTERNAL. No locks of the kit are held in either. A step
 * whose caller wants no thread but his own (tn_step_pool is -1) is run by the kit alone.
 * `step` is the one that tn_kit_step was called with, and good until `wait` of the last part has returned. */
struct tn_kit_scheduler {
  size_t struct_size;
  void *user;
  void (*ready)(void *user, tn_step *step, const uint32_t *instructions, const float *costs, size_t n);
  void (*wait)(void *user, tn_step *step);
};
#define TN_KIT_SCHEDULER_SIZE TN_SIZE_TO(tn_kit_scheduler, wait)

/* Makes an executable whose steps (tn_kit_step) the scheduler sees to. *scheduler is copied, but for what `user` points to.
 * Returns  TN_INVALID_ARGUMENT (NULL, struct_size not set, no ready or wait), TN_RESOURCE_EXHAUSTED. Goes with tn_kit_release.
 * Any thread. Since 0.1 */
TN_API tn_status tn_kit_prepare_scheduled(const tn_plan *plan, const tn_kit_scheduler *scheduler, tn_executable **out,
                                          tn_error *err);
/* Runs n instructions of a step in the order given, and reports them done: what becomes ready is given to the scheduler.
 * Inside of `ready` they are only noted, and run on the same thread when that has returned. Any thread, several at once.
 * Since 0.1 */
TN_API void tn_kit_run_instructions(tn_step *step, const uint32_t *instructions, size_t n);
/* Instructions of the part that have not ended; 0 also between parts. For `wait`. Any thread, as long as the step is there.
 * Since 0.1 */
TN_API size_t tn_kit_instructions_left(const tn_step *step);

/* ---- level (c): reading a plan ---- */

enum {
  TN_VALUE_FEED = 0,     /* input `index` of the step */
  TN_VALUE_CONSTANT = 1, /* `constant` */
  TN_VALUE_COMPUTED = 2, /* made by instruction `producer` */
  TN_VALUE_VIEW = 3      /* the memory of value `source`; not met in 0.1: views are known only with the shapes */
};

/* A value of a plan: one output of an operation, or a feed. */
struct tn_plan_value {
  size_t struct_size;
  int32_t kind;  /* TN_VALUE_... */
  tn_dtype dtype;
  uint32_t index;    /* of a feed: its number, that of its tensor in a step; else UINT32_MAX */
  uint32_t producer; /* of a computed value: the instruction that makes it; else UINT32_MAX */
  uint32_t source;   /* of a view: the value whose memory it shows; else UINT32_MAX */
  uint32_t n_uses;   /* how often instructions, branches and fetches read it */
  const tn_tensor *constant; /* of a constant: its value, borrowed from the plan; else NULL */
  tn_output output; /* where it comes from in the graph */
};

/* One call of a kernel. `op` says which operation's it is; an op that takes the value of a variable to which it has a reference
 * has the reading in front of it, an instruction of the variable's op with one input, the reference, and a kernel of its own.
 * Instructions of a straight plan (tn_plan_check_straight) stand in an order in which they can run. */
struct tn_plan_instruction {
  size_t struct_size;
  const tn_operation *op;
  const tn_kernel_def *kernel; /* NULL: nothing to compute; outputs, if there are any, are the inputs */
  const void *state;           /* from the kernel's create */
  uint32_t traits;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_after;
  const uint32_t *inputs;  /* ids of values */
  const uint32_t *outputs;
  const uint32_t *after;   /* instructions that must have ended: control edges only */
};

TN_API size_t tn_plan_n_instructions(const tn_plan *plan);
TN_API size_t tn_plan_n_values(const tn_plan *plan);
TN_API size_t tn_plan_n_inputs(const tn_plan *plan);
TN_API size_t tn_plan_n_outputs(const tn_plan *plan);
/* Instruction i; out->struct_size is set by the caller. Pointers are borrowed from the plan.
 * Returns  TN_OUT_OF_RANGE past the end; TN_UNIMPLEMENTED, naming the node and why, for an instruction that is more than the
 *          struct says: a loop, a Merge, one that runs under a condition. */
TN_API tn_status tn_plan_get_instruction(const tn_plan *plan, size_t i, tn_plan_instruction *out, tn_error *err);
TN_API tn_status tn_plan_get_value(const tn_plan *plan, size_t i, tn_plan_value *out, tn_error *err);
TN_API uint32_t tn_plan_output(const tn_plan *plan, size_t i); /* the value that output i of the step is */

/* Whether the instructions alone say what a step does: all of them run, each once, in the order in which they stand, and every
 * output is there in the end. Who executes plans by himself asks in `prepare`, and returns what this returns.
 * Returns  TN_OK, or TN_UNIMPLEMENTED with the first node that is more: what tn_plan_get_instruction refuses, a fetch that is
 *          there under a condition, a kernel that may wait for a later instruction, or that calls functions.
 * Any thread. Since 0.1 */
TN_API tn_status tn_plan_check_straight(const tn_plan *plan, tn_error *err);

/* ---- level (c): shapes, memory, kernels ---- */

/* Where a layout puts a value. */
enum {
  TN_PLACE_UNKNOWN = 0,  /* said when its segment is laid out */
  TN_PLACE_INPUT = 1,    /* input `index` of the step */
  TN_PLACE_CONSTANT = 2, /* the plan's constant */
  TN_PLACE_ARENA = 3,    /* `offset` bytes from the beginning of its segment's arena */
  TN_PLACE_OUTPUT = 4,   /* the memory of output `index` of the step */
  TN_PLACE_KNOWN = 5,    /* `data`: it follows from the shapes, there is nothing to compute */
  TN_PLACE_OWN = 6,      /* memory of its own, `bytes` large: elements that own memory (make a tensor for them), and what later
                          * segments read */
  TN_PLACE_GIVEN = 7     /* a tensor that the kernel makes: tn_kit_compute's `made` */
};

struct tn_layout_value {
  size_t struct_size;
  int32_t place; /* TN_PLACE_... */
  tn_dtype dtype;
  int32_t rank;        /* -1: running tells, or the segment is not laid out yet */
  uint32_t source;     /* value whose memory it shares; itself when it shares none */
  const int64_t *dims; /* borrowed from the layout */
  int64_t count;       /* elements */
  size_t bytes;
  size_t offset;
  const void *data; /* TN_PLACE_KNOWN; borrowed from the layout */
  uint32_t index;
};
#define TN_LAYOUT_VALUE_SIZE TN_SIZE_TO(tn_layout_value, index)

/* A part of the plan in which every shape follows from what is known at its start. */
struct tn_layout_segment {
  size_t struct_size;
  uint32_t begin, end; /* instructions, in the plan's order */
  size_t arena_bytes;  /* values in it that do not live at once share places; aligned to 64 */
  tn_bool is_last;
};
#define TN_LAYOUT_SEGMENT_SIZE TN_SIZE_TO(tn_layout_segment, is_last)

struct tn_layout_instruction {
  size_t struct_size;
  const tn_kernel_def *kernel; /* that tn_kit_compute calls; NULL with computes 0 */
  size_t scratch_bytes;
  tn_bool computes; /* 0: its outputs are views, or known: nothing to do */
};
#define TN_LAYOUT_INSTRUCTION_SIZE TN_SIZE_TO(tn_layout_instruction, computes)

/* A straight plan with concrete shapes: what one that executes by itself needs besides the instructions. Layouts are cached by the
 * plan, so asking again for shapes that were met is cheap. The first segment is laid out; where shapes depend on data there are
 * more, each with tn_kit_layout_next when those before it were run. With one segment it may be kept and used by several steps at
 * once. Counted by its one holder, and goes with tn_kit_layout_release.
 * inputs   n tensors, the step's, borrowed for the call
 * Returns  what tn_plan_check_straight returns; TN_INVALID_ARGUMENT; TN_FAILED_PRECONDITION when a shape follows from a tensor that
 *          is not in host memory; what kernels say of shapes. Any thread. Since 0.1 */
TN_API tn_status tn_kit_layout(const tn_plan *plan, tn_tensor *const *inputs, size_t n, tn_plan_layout **out, tn_error *err);
TN_API void tn_kit_layout_release(tn_plan_layout *layout); /* NULL allowed */
/* Lays the next segment out. values: by value of the plan, n = tn_plan_n_values; views of the feeds and of what was computed so
 * far, NULL for others and for constants.
 * Returns TN_OUT_OF_RANGE when there is no other segment. One thread at a time. */
TN_API tn_status tn_kit_layout_next(tn_plan_layout *layout, tn_view *const *values, size_t n, tn_error *err);
/* Segment i, value i, instruction i; out->struct_size is set by the caller. TN_OUT_OF_RANGE past the end, or for a segment that is
 * not laid out; TN_FAILED_PRECONDITION for an instruction of one. Any thread. */
TN_API tn_status tn_kit_layout_segment(const tn_plan_layout *layout, size_t i, tn_layout_segment *out, tn_error *err);
TN_API tn_status tn_kit_layout_value(const tn_plan_layout *layout, size_t i, tn_layout_value *out, tn_error *err);
TN_API tn_status tn_kit_layout_instruction(const tn_plan_layout *layout, size_t i, tn_layout_instruction *out, tn_error *err);
/* Whether shapes follow from the elements of value i, a feed or what an earlier segment computed, so that steps which differ in
 * them have different layouts; false past the end. Any thread. Since 0.1 */
TN_API tn_bool tn_plan_value_gives_shapes(const tn_plan *plan, size_t i);
/* A segment of a straight plan, the same for all shapes. */
struct tn_plan_segment {
  size_t struct_size;
  uint32_t begin, end;     /* instructions */
  uint32_t n_entries;
  const uint32_t *entries; /* values that it reads and does not make, but for constants: feeds, and what earlier ones made; the
                            * plan's */
};
#define TN_PLAN_SEGMENT_SIZE TN_SIZE_TO(tn_plan_segment, entries)
TN_API size_t tn_plan_n_segments(const tn_plan *plan);
/* out->struct_size is set by the caller. TN_OUT_OF_RANGE past the end; what tn_plan_check_straight returns. Any thread. Since 0.1 */
TN_API tn_status tn_plan_get_segment(const tn_plan *plan, size_t i, tn_plan_segment *out, tn_error *err);
/* For metadata (<tenon/metadata.h>) of steps that a runtime executes by itself: whether somebody wants records of this step, and a
 * record: an instruction of a laid out segment, when it began and ended (CLOCK_MONOTONIC) and what with.
 * device  the name of a device of the session's list, borrowed as long as the session; NULL: the one that the node stands on,
 *         with the kernel that tn_kit_compute calls
 * Without memory the trace ends there. Any thread, as long as the step is there. Since 0.1 */
TN_API tn_bool tn_step_wants_records(const tn_step *step);
TN_API void tn_step_record(tn_step *step, const tn_plan_layout *layout, size_t instruction, const char *device, int64_t start_ns,
                           int64_t end_ns, tn_status status);
/* Who helps with the rest of a step that a runtime executes by itself: kernels that tn_kit_compute calls on this thread share their
 * loops with the workers; on other threads they run alone. To be called on the thread that runs the step, before the first kernel;
 * it holds until the step ends, or for other workers, NULL: for nobody. tn_kit_step_with has workers of its own, and leaves nobody.
 * plan     whose step it is: what its loops gain by help is remembered
 * workers  borrowed until then; those of the pool that the caller asked for (tn_step_pool)
 * Without memory the step does without help. Since 0.1 */
TN_API void tn_kit_step_workers(tn_step *step, const tn_plan *plan, tn_kit_workers *workers);
/* For a step that a runtime executes by itself, when it fails: puts in front of a TN_RESOURCE_EXHAUSTED in *err which values hold the
 * memory of the step, the largest first. Of other errors, in sessions without memory_limit_bytes, and for a second time: nothing.
 * values       by value of the plan, up to n; the tensors that are there, NULL for others; those of feeds and constants are passed
 *              over. Borrowed for the call
 * other_bytes  that the step has besides, as in an arena
 * The thread of the step. Since 0.1, S-CAN-13 */
TN_API void tn_step_explain_memory(tn_step *step, const tn_plan *plan, tn_tensor *const *values, size_t n, size_t other_bytes,
                                   tn_error *err);
/* Calls the kernel of an instruction.
 * inputs   views with the dtypes and shapes of the layout; `data` of a constant may be NULL when the kernel has a form of its own
 *          (tn_plan_value.constant has the elements)
 * outputs  views with memory; where the place is TN_PLACE_GIVEN they are filled in
 * scratch  scratch_bytes, aligned to 64; NULL when that is 0
 * made     by output: where the place is TN_PLACE_GIVEN a reference, the caller's; else NULL. May be NULL when no output is given
 * Returns  TN_INVALID_ARGUMENT for views that do not fit, naming the node; TN_CANCELLED, TN_DEADLINE_EXCEEDED when the step is
 *          over; what the kernel returns. Any thread, also several instructions of a step at once. Since 0.1 */
TN_API tn_status tn_kit_compute(tn_step *step, const tn_plan_layout *layout, size_t instruction, tn_view *const *inputs,
                                tn_view *const *outputs, void *scratch, tn_tensor **made, tn_error *err);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
