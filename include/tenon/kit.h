/* SPDX-License-Identifier: Apache-2.0 */
/* The executor kit: building blocks for runtimes. Three levels, each usable from any plugin:
 *
 *   (a) run this plan for me     tn_kit_prepare, tn_kit_step: put them in the factory's slots, or leave
 *                                those NULL. With tn_kit_prepare_offloaded, parts of any plan, including
 *                                its loops and functions, are offered to the runtime, which runs the
 *                                parts that it takes, for example on a device.
 *   (b) I schedule               tn_kit_prepare_scheduled with a tn_kit_scheduler: the kit reports which
 *                                instructions are ready; the runtime calls tn_kit_run_instructions where
 *                                and when it likes.
 *   (c) I execute                tn_plan_... read the plan (instructions and values), tn_step_... the
 *                                step. The runtime computes with its own code in its own memory;
 *                                tn_kit_layout supplies the shapes, tn_kit_compute calls a kernel of the
 *                                plan. Plans with branches, loops, function calls or kernels that wait
 *                                (tn_plan_check_straight) need level (a).
 *
 * Since 0.1 */
#ifndef TENON_KIT_H
#define TENON_KIT_H

#include <tenon/op.h>

TN_BEGIN_DECLS

/* ---- the step ---- */

/* The session layer creates a step; it lives until the runtime's `step` has returned. Any thread
 * working for the step may read it. */
/* Identifies a step, for example in a log: a number unique in the process, from 1 up, across all
 * sessions. Ids are assigned on the first call, so they do not count steps. Since 0.1 */
TN_API uint64_t tn_step_id(const tn_step *step);
TN_API size_t tn_step_n_inputs(const tn_step *step);
TN_API tn_tensor *tn_step_input(const tn_step *step, size_t i); /* borrowed, never written */
TN_API size_t tn_step_n_outputs(const tn_step *step);
/* The caller's tensor to write output i into, or NULL: then the runtime makes a tensor and passes
 * it to tn_step_set_output. A level (c) runtime refuses a tensor whose dtype or shape differs from
 * the output's with TN_INVALID_ARGUMENT. */
TN_API tn_tensor *tn_step_output(const tn_step *step, size_t i);
/* Sets output i; takes over one reference from the caller. The tensor must belong to the program
 * alone: not a constant, a variable or a feed. */
TN_API void tn_step_set_output(tn_step *step, size_t i, tn_tensor *tensor);
/* Whether the step is cancelled, its session closed, or its time limit passed. */
TN_API tn_bool tn_step_cancelled(const tn_step *step);
/* The deadline of the step, in nanoseconds of CLOCK_MONOTONIC; 0 = no limit. */
TN_API int64_t tn_step_deadline_ns(const tn_step *step);
/* Whether the step may continue: TN_OK, TN_CANCELLED (also if its session was closed) or
 * TN_DEADLINE_EXCEEDED. For level (c) runtimes.
 * op  the node that the step has reached, named in the message; NULL: none. Since 0.1 */
TN_API tn_status tn_step_check(const tn_step *step, const tn_operation *op, tn_error *err);
/* The cancellation that the caller supplied for the step, borrowed, for registering callbacks; NULL
 * if none. Closing the session and time limits do not go through it: tn_step_cancelled covers all
 * of them, and the factory's `cancel` covers close. */
TN_API tn_cancellation *tn_step_cancellation(tn_step *step);

/* ---- level (a) ---- */

enum {
  TN_KIT_INLINE = 0, /* on the calling thread, in a fixed order */
  TN_KIT_POOL = 1    /* on the calling thread and on workers (tn_kit_step_with) */
};
/* Added to TN_KIT_POOL: the approximate number of threads that will work for a step, so that
 * kernels can divide their work. */
#define TN_KIT_THREADS(n) ((uint32_t)(n) << 8)

/* Makes an executable of a plan for tn_kit_step; flags is one of the above. Since 0.1 */
TN_API tn_status tn_kit_prepare(const tn_plan *plan, uint32_t flags, tn_executable **out, tn_error *err);
TN_API void tn_kit_release(tn_executable *executable); /* NULL allowed */
TN_API tn_status tn_kit_step(tn_executable *executable, tn_step *step, tn_error *err);

/* Threads that help with steps: a pool, and the maximum number of its workers that may work for one
 * session at once. The pool of the process has one worker per usable CPU; its workers are started
 * when there is work for the first time. */
struct tn_kit_workers_config {
  size_t struct_size;
  int32_t threads;     /* maximum for one step, including the thread that runs it; 0: one per usable
                        * CPU; 1 or negative: only that thread. At most as many as the pool has */
  int32_t loop_threads; /* maximum for one kernel, as above; 0: no separate limit */
  int32_t spin_us;     /* how long an idle worker spins within a step, in microseconds; negative: the default, 50 */
  tn_bool own_pool;    /* a private pool instead of that of the process, freed with the workers */
  tn_bool pin;         /* with own_pool: pins each worker to a CPU, where the system supports it */
  tn_bool reserved[6];
  const char *name;    /* neither NULL nor "": the pool of this name, shared by all that name it */
  int32_t linger_us;   /* how long a worker spins after its last work, in microseconds, even if the
                        * step is over: the next step finds it awake, but an idle program uses a CPU
                        * for that time. 0: workers sleep between steps; negative: spin_us if steps
                        * follow each other closely, else 0 */
};
#define TN_KIT_WORKERS_CONFIG_SIZE TN_SIZE_TO(tn_kit_workers_config, linger_us)

/* Opens workers for the steps of one session. Their threads are started when a step has work for
 * them. config NULL: the defaults.
 * Returns  TN_INVALID_ARGUMENT (struct_size not set; a pool of this name has another number of
 *          threads), TN_RESOURCE_EXHAUSTED. Close the workers once no step uses them; NULL allowed.
 * Threads  any. Since 0.1, S-CFG-10 to 16 */
TN_API tn_status tn_kit_workers_open(const tn_kit_workers_config *config, tn_kit_workers **out, tn_error *err);
TN_API void tn_kit_workers_close(tn_kit_workers *workers);
/* Maximum number of threads for one step, including the one that runs it: at least 1. */
TN_API uint32_t tn_kit_workers_threads(const tn_kit_workers *workers);
/* Like tn_kit_step, with the help of workers: kernels share their loops with them. If workers is
 * NULL or the executable was prepared with TN_KIT_INLINE, same as tn_kit_step. Any thread, also one
 * that runs a kernel. Since 0.1 */
TN_API tn_status tn_kit_step_with(tn_executable *executable, tn_step *step, tn_kit_workers *workers, tn_error *err);
/* The index of the pool that the caller of the step requested (tn_run_options.inter_op_pool): -1 =
 * the calling thread alone. */
TN_API int32_t tn_step_pool(const tn_step *step);

/* For the factory's `reset` slot: closes the factory's sessions, without waiting for their steps,
 * and detaches the containers listed (n = 0: the default one; flags TN_RESET_ALL: all). A name that
 * was never used is not an error. Returns TN_INVALID_ARGUMENT (NULL, unknown flags),
 * TN_FAILED_PRECONDITION (not registered; after a fork), TN_RESOURCE_EXHAUSTED. Any thread.
 * Since 0.1, S-RST, P-42 */
TN_API tn_status tn_kit_reset(const tn_session_factory *factory, const char *const *containers, size_t n,
                              uint32_t flags, tn_error *err);

/* ---- level (a) with parts that the runtime runs ---- */

/* Instructions [begin, end) of a plan, or of the body of a loop or function in it, with concrete
 * shapes. All are plain kernel calls, consecutive and under the same condition. They read plain
 * elements and compute plain elements of known shapes; none keeps state. Valid until its `release`.
 * Since 0.1 */
struct tn_kit_part {
  size_t struct_size;
  const tn_plan *plan;          /* that of the body, if the part is in one */
  const tn_plan_layout *layout; /* has the shapes of the part's inputs and results: use with
                                 * tn_kit_layout_value and _instruction, tn_kit_compute,
                                 * tn_step_record, but not with tn_kit_layout_next and _release */
  uint32_t begin, end;
  uint32_t n_inputs, n_outputs;
  const uint32_t *inputs;  /* values that it reads and does not compute, except constants and
                            * TN_PLACE_KNOWN; owned by the plan */
  const uint32_t *outputs; /* values that it computes and others read */
  uint32_t depth;          /* nesting depth of function calls when it was offered; 0: its nodes are
                            * those of the graph itself */
};
#define TN_KIT_PART_SIZE TN_SIZE_TO(tn_kit_part, depth)

/* A runtime's callbacks for parts of plans that the kit runs.
 *
 * take     called once for each part of each layout, before it first runs with these shapes.
 *          *handle is the runtime's own, passed to `run`; NULL: the kit runs the part as usual. An
 *          error that it returns becomes that of the step. Any thread, several at once, also for
 *          the same part: then one of the handles is released.
 * run      computes what the instructions compute. Inputs and outputs are views in host memory, in
 *          the order of the part's, with the shapes of the layout. All outputs are complete when it
 *          returns. It may call tn_kit_compute, with its own memory, for instructions that it does
 *          not compute itself. It returns soon once the step is over (tn_step_check). Several steps
 *          at once.
 * release  frees a handle: together with the layout, or in tn_kit_release at the latest. No step
 *          uses the handle.
 *
 * The kit holds no locks while it calls them. */
struct tn_kit_offload {
  size_t struct_size;
  void *user;
  tn_status (*take)(void *user, const tn_kit_part *part, void **handle, tn_error *err);
  tn_status (*run)(void *user, void *handle, tn_step *step, tn_view *const *inputs, tn_view *const *outputs,
                   tn_error *err);
  void (*release)(void *user, void *handle);
};
#define TN_KIT_OFFLOAD_SIZE TN_SIZE_TO(tn_kit_offload, release)

/* Like tn_kit_prepare; parts of the plan are offered to the runtime. *offload is copied, but not
 * the data of `user`. If there are several executables of one plan, only the first is offered
 * parts. Partial runs are not offered.
 * Returns  TN_INVALID_ARGUMENT (NULL, struct_size not set, no take, run or release),
 *          TN_RESOURCE_EXHAUSTED. Free it with tn_kit_release, which releases all handles.
 *          Any thread. Since 0.1 */
TN_API tn_status tn_kit_prepare_offloaded(const tn_plan *plan, uint32_t flags, const tn_kit_offload *offload,
                                          tn_executable **out, tn_error *err);
/* Like tn_plan_get_instruction, for the part's instructions, under any condition; i is an index in
 * the plan. Returns TN_OUT_OF_RANGE for other instructions. Any thread. Since 0.1 */
TN_API tn_status tn_kit_part_instruction(const tn_kit_part *part, size_t i, tn_plan_instruction *out, tn_error *err);

/* ---- level (b) ---- */

/* A runtime's callbacks that decide which thread runs the instructions of a step, and in which
 * order.
 *
 * A step runs in parts, one after the other. Conditions, loops, function calls and kernels that
 * wait separate the parts; the kit handles these itself on the thread of tn_kit_step. The bodies of
 * loops and functions consist of such parts too. In each part instructions are numbered from 0, and
 * a cheap instruction is merged with instructions that depend on it or that it depends on: the
 * numbers are not those of tn_plan_get_instruction. A part in which nothing can run in parallel is
 * one instruction.
 *
 * ready   n instructions of the part may run now, in any order or concurrently; costs[i] is an
 *         approximate time in nanoseconds. The scheduler must ensure that tn_kit_run_instructions
 *         is called exactly once for each, even if the step has failed or was cancelled: the call
 *         then returns soon. n = 0: the part is over. Called from tn_kit_step and from
 *         tn_kit_run_instructions, on their threads, so possibly concurrently; the arrays are valid
 *         during the call.
 * wait    called on the thread of tn_kit_step, once for each part, after the instructions that may
 *         run first were passed to `ready`. Returns once the part is over (tn_kit_instructions_left
 *         is 0), and may run instructions meanwhile. If it returns earlier, the step fails.
 *
 * A number that is not ready, or was run before, fails the step with TN_INTERNAL. The kit holds no
 * locks while it calls them. If the caller allows no thread but its own (tn_step_pool is -1), the
 * kit runs the step without the scheduler.
 * `step` is the argument of tn_kit_step, valid until `wait` of the last part has returned. */
struct tn_kit_scheduler {
  size_t struct_size;
  void *user;
  void (*ready)(void *user, tn_step *step, const uint32_t *instructions, const float *costs, size_t n);
  void (*wait)(void *user, tn_step *step);
};
#define TN_KIT_SCHEDULER_SIZE TN_SIZE_TO(tn_kit_scheduler, wait)

/* Makes an executable whose steps (tn_kit_step) the scheduler distributes. *scheduler is copied,
 * but not the data of `user`.
 * Returns  TN_INVALID_ARGUMENT (NULL, struct_size not set, no ready or wait),
 *          TN_RESOURCE_EXHAUSTED. Free it with tn_kit_release. Any thread. Since 0.1 */
TN_API tn_status tn_kit_prepare_scheduled(const tn_plan *plan, const tn_kit_scheduler *scheduler, tn_executable **out,
                                          tn_error *err);
/* Runs n instructions of a step in the given order and reports them done; instructions that become
 * ready are passed to the scheduler. A call inside `ready` only queues them; the same thread runs
 * them once `ready` has returned. Any thread, several at once. Since 0.1 */
TN_API void tn_kit_run_instructions(tn_step *step, const uint32_t *instructions, size_t n);
/* Number of instructions of the part that have not ended; 0 also between parts. For `wait`. Any
 * thread, as long as the step lives. Since 0.1 */
TN_API size_t tn_kit_instructions_left(const tn_step *step);

/* ---- level (c): reading a plan ---- */

enum {
  TN_VALUE_FEED = 0,     /* input `index` of the step */
  TN_VALUE_CONSTANT = 1, /* `constant` */
  TN_VALUE_COMPUTED = 2, /* computed by instruction `producer` */
  TN_VALUE_VIEW = 3      /* the memory of value `source`; does not occur in 0.1: views are known
                          * only with the shapes */
};

/* A value of a plan: one output of an operation, or a feed. */
struct tn_plan_value {
  size_t struct_size;
  int32_t kind;  /* TN_VALUE_... */
  tn_dtype dtype;
  uint32_t index;    /* of a feed: its index among the inputs of the step; else UINT32_MAX */
  uint32_t producer; /* of a computed value: the instruction that computes it; else UINT32_MAX */
  uint32_t source;   /* of a view: the value whose memory it shares; else UINT32_MAX */
  uint32_t n_uses;   /* number of reads by instructions, branches and fetches */
  const tn_tensor *constant; /* of a constant: its value, borrowed from the plan; else NULL */
  tn_output output; /* the output of the graph that it corresponds to */
};

/* One kernel call. `op` is the operation that it belongs to. If an op takes the value of a variable
 * to which it has a reference, the read is a separate instruction before it: its `op` is the
 * variable's op, its one input is the reference, and it has a kernel of its own. The instructions
 * of a straight plan (tn_plan_check_straight) are in an order in which they can run. */
struct tn_plan_instruction {
  size_t struct_size;
  const tn_operation *op;
  const tn_kernel_def *kernel; /* NULL: nothing to compute; the outputs, if any, are the inputs */
  const void *state;           /* from the kernel's create */
  uint32_t traits;             /* TN_TRAIT_... of the op */
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_after;        /* length of `after` */
  const uint32_t *inputs;  /* indices of values */
  const uint32_t *outputs; /* indices of values */
  const uint32_t *after;   /* instructions that must end first because of control edges only */
};

TN_API size_t tn_plan_n_instructions(const tn_plan *plan);
TN_API size_t tn_plan_n_values(const tn_plan *plan);
TN_API size_t tn_plan_n_inputs(const tn_plan *plan);
TN_API size_t tn_plan_n_outputs(const tn_plan *plan);
/* Instruction i; the caller sets out->struct_size. Pointers are borrowed from the plan.
 * Returns  TN_OUT_OF_RANGE past the end; TN_UNIMPLEMENTED, naming the node and the reason, for an
 *          instruction that the struct cannot describe: a loop, a Merge, one that runs under a
 *          condition. */
TN_API tn_status tn_plan_get_instruction(const tn_plan *plan, size_t i, tn_plan_instruction *out, tn_error *err);
/* Value i; the caller sets out->struct_size. Pointers are borrowed from the plan. TN_OUT_OF_RANGE
 * past the end. */
TN_API tn_status tn_plan_get_value(const tn_plan *plan, size_t i, tn_plan_value *out, tn_error *err);
TN_API uint32_t tn_plan_output(const tn_plan *plan, size_t i); /* the value that is output i of the step */

/* Whether the instructions fully describe a step: each runs exactly once, in the order of the plan,
 * and every output is available at the end. A level (c) runtime calls this in `prepare` and returns
 * its result.
 * Returns  TN_OK, or TN_UNIMPLEMENTED naming the first node that prevents it: one that
 *          tn_plan_get_instruction refuses, a fetch under a condition, a kernel that may wait for a
 *          later instruction or calls functions.
 * Any thread. Since 0.1 */
TN_API tn_status tn_plan_check_straight(const tn_plan *plan, tn_error *err);

/* ---- level (c): shapes, memory, kernels ---- */

/* Where a layout places a value. */
enum {
  TN_PLACE_UNKNOWN = 0,  /* not known until its segment is laid out */
  TN_PLACE_INPUT = 1,    /* input `index` of the step */
  TN_PLACE_CONSTANT = 2, /* the plan's constant */
  TN_PLACE_ARENA = 3,    /* `offset` bytes from the start of its segment's arena */
  TN_PLACE_OUTPUT = 4,   /* the memory of output `index` of the step */
  TN_PLACE_KNOWN = 5,    /* `data`: it follows from the shapes, nothing is computed */
  TN_PLACE_OWN = 6,      /* separate memory of `bytes` bytes: for elements that own memory (make a
                          * tensor for them), and for values that later segments read */
  TN_PLACE_GIVEN = 7     /* a tensor that the kernel makes: `made` of tn_kit_compute */
};

/* A value in a layout. Pointers are borrowed from the layout. */
struct tn_layout_value {
  size_t struct_size;
  int32_t place; /* TN_PLACE_... */
  tn_dtype dtype;
  int32_t rank;        /* -1: known only after the kernel has run, or the segment is not laid out yet */
  uint32_t source;     /* the value whose memory it shares; its own index if none */
  const int64_t *dims; /* rank numbers */
  int64_t count;       /* number of elements */
  size_t bytes;
  size_t offset;
  const void *data; /* of TN_PLACE_KNOWN */
  uint32_t index;   /* of TN_PLACE_INPUT and TN_PLACE_OUTPUT */
};
#define TN_LAYOUT_VALUE_SIZE TN_SIZE_TO(tn_layout_value, index)

/* A part of the plan in which every shape follows from values known at its start. */
struct tn_layout_segment {
  size_t struct_size;
  uint32_t begin, end; /* instructions, in the plan's order */
  size_t arena_bytes;  /* size of its arena, aligned to 64; values with disjoint lifetimes share space */
  tn_bool is_last;
};
#define TN_LAYOUT_SEGMENT_SIZE TN_SIZE_TO(tn_layout_segment, is_last)

/* An instruction in a layout. */
struct tn_layout_instruction {
  size_t struct_size;
  const tn_kernel_def *kernel; /* the kernel that tn_kit_compute calls; NULL if `computes` is 0 */
  size_t scratch_bytes;
  tn_bool computes; /* 0: its outputs are views or known, nothing to do */
};
#define TN_LAYOUT_INSTRUCTION_SIZE TN_SIZE_TO(tn_layout_instruction, computes)

/* Makes a layout: a straight plan with concrete shapes, which a level (c) runtime needs besides the
 * instructions. The plan caches layouts, so another request for the same shapes is cheap. The first
 * segment is laid out; if shapes depend on data, there are more, each laid out by
 * tn_kit_layout_next after the previous ones were run. A layout with one segment may be kept and
 * used by several steps at once. The caller is its one holder and releases it with
 * tn_kit_layout_release.
 * inputs   n tensors, those of the step, borrowed during the call
 * Returns  the result of tn_plan_check_straight; TN_INVALID_ARGUMENT; TN_FAILED_PRECONDITION if a
 *          shape depends on a tensor that is not in host memory; errors of kernels about the
 *          shapes. Any thread. Since 0.1 */
TN_API tn_status tn_kit_layout(const tn_plan *plan, tn_tensor *const *inputs, size_t n, tn_plan_layout **out,
                               tn_error *err);
TN_API void tn_kit_layout_release(tn_plan_layout *layout); /* NULL allowed */
/* Lays out the next segment.
 * values   indexed by the plan's values, n = tn_plan_n_values; views of the feeds and of the values
 *          computed so far, NULL for others and for constants.
 * Returns  TN_OUT_OF_RANGE if there is no further segment. One thread at a time. */
TN_API tn_status tn_kit_layout_next(tn_plan_layout *layout, tn_view *const *values, size_t n, tn_error *err);
/* Segment i, value i, instruction i; the caller sets out->struct_size. TN_OUT_OF_RANGE past the
 * end, or for a segment that is not laid out; TN_FAILED_PRECONDITION for an instruction of such a
 * segment. Any thread. */
TN_API tn_status tn_kit_layout_segment(const tn_plan_layout *layout, size_t i, tn_layout_segment *out, tn_error *err);
TN_API tn_status tn_kit_layout_value(const tn_plan_layout *layout, size_t i, tn_layout_value *out, tn_error *err);
TN_API tn_status tn_kit_layout_instruction(const tn_plan_layout *layout, size_t i, tn_layout_instruction *out,
                                           tn_error *err);
/* Whether shapes depend on the elements of value i, a feed or a result of an earlier segment, so
 * that steps with other elements have other layouts. False past the end. Any thread. Since 0.1 */
TN_API tn_bool tn_plan_value_gives_shapes(const tn_plan *plan, size_t i);
/* A segment of a straight plan, the same for all shapes. */
struct tn_plan_segment {
  size_t struct_size;
  uint32_t begin, end;     /* instructions */
  uint32_t n_entries;
  const uint32_t *entries; /* values that it reads and does not compute, except constants: feeds,
                            * and results of earlier segments; owned by the plan */
};
#define TN_PLAN_SEGMENT_SIZE TN_SIZE_TO(tn_plan_segment, entries)
TN_API size_t tn_plan_n_segments(const tn_plan *plan);
/* Segment i; the caller sets out->struct_size. TN_OUT_OF_RANGE past the end; otherwise the result
 * of tn_plan_check_straight. Any thread. Since 0.1 */
TN_API tn_status tn_plan_get_segment(const tn_plan *plan, size_t i, tn_plan_segment *out, tn_error *err);
/* For metadata (<tenon/metadata.h>) of steps that a level (c) runtime executes: whether records of
 * this step are wanted, and adding a record of an instruction of a laid out segment: when it began
 * and ended (nanoseconds of CLOCK_MONOTONIC), and its status.
 * device  the name of a device of the session's list, borrowed as long as the session; NULL: the
 *         device of the node, with the kernel that tn_kit_compute calls
 * If there is no memory, the trace ends there. Any thread, as long as the step lives. Since 0.1 */
TN_API tn_bool tn_step_wants_records(const tn_step *step);
TN_API void tn_step_record(tn_step *step, const tn_plan_layout *layout, size_t instruction, const char *device,
                           int64_t start_ns, int64_t end_ns, tn_status status);
/* Sets the helpers for the rest of a step that a level (c) runtime executes: kernels that
 * tn_kit_compute calls on this thread share their loops with the workers; kernels on other threads
 * run alone. Call it on the thread that runs the step, before the first kernel. It applies until
 * the step ends or until a call with other workers; NULL: no helpers. tn_kit_step_with sets workers
 * of its own and leaves none.
 * plan     the plan of the step; it records how much its loops gain from help
 * workers  borrowed until then; normally those of the pool that the caller requested (tn_step_pool)
 * If there is no memory, the step runs without helpers. Since 0.1 */
TN_API void tn_kit_step_workers(tn_step *step, const tn_plan *plan, tn_kit_workers *workers);
/* For a step of a level (c) runtime that fails: if *err is TN_RESOURCE_EXHAUSTED, prepends a list
 * of the values that hold the memory of the step, the largest first. Does nothing for other errors,
 * in sessions without memory_limit_bytes, and on a second call.
 * values       indexed by the plan's values, up to n; the existing tensors, NULL for others; feeds
 *              and constants are skipped. Borrowed during the call
 * other_bytes  further memory of the step, such as an arena
 * Call it on the thread of the step. Since 0.1, S-CAN-13 */
TN_API void tn_step_explain_memory(tn_step *step, const tn_plan *plan, tn_tensor *const *values, size_t n,
                                   size_t other_bytes, tn_error *err);
/* Calls the kernel of an instruction.
 * inputs   views with the dtypes and shapes of the layout; `data` of a constant may be NULL if the
 *          kernel has its own packed form (tn_plan_value.constant has the elements)
 * outputs  views with memory; those with place TN_PLACE_GIVEN are filled in
 * scratch  scratch_bytes, aligned to 64; NULL if that is 0
 * made     indexed by output: for place TN_PLACE_GIVEN a reference, owned by the caller; else NULL.
 *          May be NULL if no output is TN_PLACE_GIVEN
 * Returns  TN_INVALID_ARGUMENT for views that do not match, naming the node; TN_CANCELLED or
 *          TN_DEADLINE_EXCEEDED if the step is over; otherwise the status of the kernel. Any
 *          thread, also several instructions of a step at once. Since 0.1 */
TN_API tn_status tn_kit_compute(tn_step *step, const tn_plan_layout *layout, size_t instruction, tn_view *const *inputs,
                                tn_view *const *outputs, void *scratch, tn_tensor **made, tn_error *err);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
