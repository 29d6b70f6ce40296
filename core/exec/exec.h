/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: steps, workspaces, the tape loop.
 *
 * A step takes a workspace: an arena, and for each segment instances, which are layouts with addresses. What differs from
 * step to step is bound again: entries (feeds, values of earlier segments) and the memory of outputs. Workspaces that no
 * step uses wait at plan->idle. */
#ifndef TN_CORE_EXEC_EXEC_H
#define TN_CORE_EXEC_EXEC_H

#include <core/base/stop.h>
#include <core/pool/pool.h>
#include <core/layout/layout.h>
#include <core/resource/container.h>
#include <tenon/session.h>

#define TN__MAX_INSTANCES 8 /* of one segment in a workspace */

struct tn_cancellation {
  _Atomic uint32_t refs;
  _Atomic int64_t cancelled; /* when, on the monotonic clock; 0 = not. tn__stop points here */
  tn__mutex mu; /* callbacks, children, the parent link */
  tn__cond ended;
  struct tn__cancel_callback *callbacks; /* guarded by mu */
  uint64_t next_key;
  uint64_t running; /* key of the callback that runs, 0 = none */
  pthread_t runner;
  tn_cancellation *parent; /* a reference */
  uint64_t parent_key;
};

/* Steps of a session that sleep, so that its close can wake them. */
typedef struct tn__sleepers {
  tn__mutex mu;
  struct tn__sleeper *first; /* guarded by mu */
} tn__sleepers;

struct tn__jobs;

/* What a step has of its session, and what is its own alone; shared by all that runs in it. */
typedef struct tn__step_env {
  tn__container_view *containers; /* NULL = none */
  tn__mutex *mu;                  /* of the session; guards own */
  tn__container *own;             /* of the step (S-RST-22), NULL = not asked for yet */
  tn__sleepers *sleepers;         /* NULL = nobody wakes it when the session is closed */
  struct tn__sleeper *sleeper;    /* made when a kernel waits for the first time */
  tn__account *account;           /* of the session's memory, NULL = it has no limit */
  bool explained;                 /* what holds its memory was said */
  _Atomic bool failed;            /* something went wrong: what waits is cancelled, nothing new begins */
  tn_status cause;                /* what it was, when it failed */
  int32_t pool;                   /* that the caller asked for; -1 = the calling thread alone */
  tn__pool_client *client;        /* whose workers may help; NULL = nobody but the caller */
  tn__crew *crew;                 /* of this step, taken when it is wanted first; put when the step ends */
  struct tn__trace *trace;        /* what ran is recorded (trace.h); NULL = it is not */
  const void *kind;               /* steps with the same one do the same; NULL = not known */
  _Atomic uint64_t id;            /* of the step; 0 = nobody asked yet */
  const tn_kit_scheduler *scheduler; /* it runs tasks of the step; NULL = the step's crew does */
  void (*schedule)(struct tn__jobs *jobs); /* with a scheduler: has it run them all (core/kit/schedule.c) */
  tn_step *scheduled;             /* the step as the scheduler knows it */
  _Atomic(struct tn__jobs *) jobs; /* that the scheduler has now (core/kit/schedule.c); NULL = none */
  struct tn__offload *offload;    /* who is offered parts of plans (offload.h); NULL = nobody */
} tn__step_env;

struct tn_step {
  tn_tensor *const *inputs;
  tn_tensor **outputs;      /* set by the runtime; those that the caller gave stand in `given` */
  tn_tensor *const *given;  /* NULL = none given */
  size_t n_inputs, n_outputs;
  const _Atomic int64_t *closed; /* when the session was, 0 = it is open; NULL = none */
  tn_cancellation *cancellation;  /* NULL = none */
  int64_t deadline_ns;            /* monotonic, 0 = none */
  tn__step_env *env;              /* NULL: outside of a session */
  uint32_t depth;                 /* calls of functions that it is inside of */
  tn_tensor **again;              /* by output: as in tn__run; NULL = none */
};

/* What ends a step, and what is prepared for it. */
static inline tn__stop tn__step_limits(const tn_step *step)
{
  return (tn__stop){ .closed = step->closed, .cancelled = step->cancellation == NULL ? NULL : &step->cancellation->cancelled,
                     .deadline_ns = step->deadline_ns };
}

static inline tn_cancellation *tn__stop_cancellation(const tn__stop *stop)
{
  if (stop->cancelled == NULL) return NULL;
  return (tn_cancellation *)(uintptr_t)((const char *)stop->cancelled - offsetof(tn_cancellation, cancelled));
}

static inline int tn__step_stop(const tn_step *step)
{
  int64_t closed = step->closed == NULL ? 0 : atomic_load_explicit(step->closed, memory_order_relaxed);
  const tn_cancellation *c = step->cancellation;
  int64_t cancelled = c == NULL ? 0 : atomic_load_explicit(&c->cancelled, memory_order_relaxed);
  return tn__stop_first(closed, cancelled, step->deadline_ns);
}

/* Something in it went wrong: its own thread and those that work for it ask. */
static inline bool tn__step_failed(const tn_step *step)
{
  return step->env != NULL && atomic_load_explicit(&step->env->failed, memory_order_relaxed);
}

/* step.c: unique in the process, larger than that of any step which ended before this one began; 0 outside of a session. */
uint64_t tn__step_id(const tn_step *step);
/* Releases the step's helper threads. Call it on the thread that runs the step, or one that takes the step over from it. */
void tn__step_dismiss(tn__step_env *env);
/* The status of a step that is stopped; op: the node that was late, NULL = not known. */
tn_status tn__step_stopped(int why, const tn_operation *op, tn_error *err);

/* A layout with addresses. */
typedef struct tn__instance {
  struct tn__instance *next;
  tn__layout *layout; /* a reference */
  const char *arena;  /* that its views point into */
  tn_view *views;     /* by slot */
  tn_view **operands; /* as layout->operands */
  tn_tensor **heap;   /* by slot, NULL when the layout has no heap values */
  size_t block_bytes; /* of this allocation */
  struct tn__jobs *jobs; /* of a layout with tasks (tasks.h); NULL = none were run so far */
  struct tn__offloaded *offloaded; /* the layout's, or its base's; NULL = the tape has all of it */
  tn_view **part_views; /* of the parts that are offloaded: inputs, then outputs, one part after the other */
  size_t part_views_bytes;
  bool offered;         /* its parts were */
} tn__instance;

/* Memory of a tensor that ended, for the next one that it fits. */
typedef struct tn__spare {
  tn_tensor *tensor; /* exclusive, plain bytes */
  size_t room;
  uint32_t since;    /* step of the workspace that gave it */
} tn__spare;

typedef struct tn__loop tn__loop;
typedef struct tn__pending tn__pending;

/* What one step works in: one step at a time, without a lock. Segments run one after the other and share the arena. */
struct tn__workspace {
  uint32_t generation; /* of the plan's kernels */
  uint32_t step;       /* counts */
  uint32_t place;      /* in plan->idle, where it goes back */
  uint32_t n_small;    /* looks in a row that found the arena much too large */
  size_t used;         /* most of the arena that a step needed since the last look */
  uint8_t *segment_states; /* of a plan with control flow, as contexts */
  uint8_t *context_states;
  uint32_t *readers_left;  /* as plan->held_readers: segments that did not have their turn */
  uint8_t *predicates;     /* of branches: 0, 1, or that it is no scalar */
  struct tn__pending **pending; /* by segment: of what may wait, kept for the next step; NULL = none yet */
  char *arena;
  size_t arena_bytes;
  tn__account *account; /* that the arena was charged to, a reference; NULL = none */
  tn__spare *spares;   /* smallest first */
  size_t n_spares, spare_room;
  tn__mutex *guard;    /* of the spares, while several threads work in it; NULL = there is one */
  tn_tensor **held;    /* memory of values that outlive their segment, by tn__plan_value.held; NULL = none, or elsewhere */
  tn__entry *entries;  /* of one segment */
  tn_resource **_Atomic resources; /* by instruction: what its kernel asked for last, remembered; NULL = nothing so far */
  size_t block_bytes;
  tn__instance *instances[]; /* by segment: used last first */
};

/* Where an offset of the arena is. Without a byte needed there is no arena: numbers, since NULL + 0 is undefined in C. */
static inline void *tn__arena_at(const tn__instance *instance, size_t offset)
{
  return (void *)((uintptr_t)instance->arena + offset);
}

/* workspace.c */
/* NULL without memory. */
tn__workspace *tn__workspace_take(tn_plan *plan, tn_error *err);
void tn__workspace_put(tn_plan *plan, tn__workspace *workspace);
/* A larger arena: what the old one held is gone. in_use: a call that waits will write into its part of the arena, so there has
 * to be one after a failure, too. */
tn_status tn__workspace_reserve(tn__workspace *workspace, size_t bytes, bool in_use, tn_error *err);

/* instance.c: the instance for these entries, in front of its segment's list. */
tn_status tn__instance_find(tn_plan *plan, tn__workspace *workspace, uint32_t segment, const tn__entry *entries,
                            tn_error *err);
/* Points what lies in the arena into the workspace's. */
void tn__instance_bind_arena(tn__instance *instance, const tn__workspace *workspace);
void tn__instance_free(tn__instance *instance);

/* spare.c: tensors of the step's own. They come from the spares when one fits. */
tn_status tn__spare_tensor(tn__workspace *workspace, tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count,
                           size_t bytes, tn_tensor **out, tn_error *err);
/* Gives a reference back; NULL allowed. */
void tn__spare_give(tn__workspace *workspace, tn_tensor *tensor);
/* The same for the tensor of a place, which is empty afterwards. */
static inline void tn__spare_give_from(tn__workspace *workspace, tn_tensor **place)
{
  tn_tensor *t = *place;
  *place = NULL;
  tn__spare_give(workspace, t);
}
/* Frees all of them: the session's limit of memory is near. */
void tn__spare_drop(tn__workspace *workspace);
/* Frees spares that no step took lately. */
void tn__spare_prune(tn__workspace *workspace);

/* One run of a plan for a step. */
typedef struct tn__run {
  tn_plan *plan;
  tn_step *step;
  tn__workspace *workspace;
  tn_error *err;
  const tn_operation *op; /* that it runs inside of, NULL = none */
  const bool *dead_feeds; /* by feed; NULL: none is dead */
  double cost_ns;         /* of what ran, roughly */
  tn_tensor **again;      /* by output: references to tensors that may be written again when nobody else holds them */
  bool inner;             /* of a loop or a function: outputs need not be exclusive, and nobody sleeps */
  bool partial;           /* feeds come later: nobody sleeps */
  struct tn__offload *offload; /* as the step's; NULL = nobody */
  struct tn__jobs *jobs;  /* calls that run at once now (tasks.h); NULL = there is one at a time */
} tn__run;

/* A call for who runs a plan himself (core/kit/layout.c): outputs that the kernel makes go there. */
typedef struct tn__apart {
  const tn__layout *layout;
  tn_view *const *outputs;
  tn_tensor **made; /* by output */
} tn__apart;

/* What compute gets, with what stands behind it. */
typedef struct tn__call {
  tn_kernel_ctx ctx;
  tn__run *run; /* NULL: outside of one */
  tn__instance *instance;
  const tn__tape *tape;
  const tn__apart *apart; /* NULL = it is not */
} tn__call;

/* tape.c: computes, and records that it is in a plugin's kernel. */
tn_status tn__guest_compute(tn__call *call, const tn__layout *layout);
static inline tn_status tn__call_compute(tn__call *call, const tn__layout *layout)
{
  const tn__tape *t = call->tape;
  return __builtin_expect((t->flags & TN_TAPE_GUEST) == 0, 1) ? t->compute(&call->ctx) : tn__guest_compute(call, layout);
}

tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err);
/* warm.c: lays out what the step would, as far as the shapes of its inputs say, and takes the memory; computes nothing. Returns what
 * kernels say of the shapes, and what the step ends with when it is stopped. */
tn_status tn__plan_warm(tn_plan *plan, const tn_step *step, tn_error *err);

/* segment.c: a segment from its beginning to its end, or its begin, its tape and its end. */
tn_status tn__segment_run(tn__run *run, uint32_t number);
tn_status tn__segment_begin(tn__run *run, uint32_t number, tn__instance **out);
tn_status tn__segment_tape(tn__run *run, uint32_t number, tn__instance *instance); /* of one that has begun, any number of times */
void tn__segment_end(tn__run *run, uint32_t number);
void tn__segment_release(tn__run *run, const tn__segment *s);
void tn__run_drop(tn__run *run); /* all tensors that are left */

/* tape.c: the calls one after the other, whether the layout has tasks or not. */
tn_status tn__tape_run(tn__run *run, uint32_t number, tn__instance *instance);
/* One call of a task; its caller releases the values that it reads last. */
tn_status tn__tape_call(tn__call *call, const tn__tape *tape, struct tn__trace *trace);
/* The one call of a segment that may wait: again and again until it does not return TN_PENDING. */
tn_status tn__segment_call(tn__call *call);
/* Releases a heap value, or one of an earlier segment. */
void tn__slot_release(const tn__run *run, const tn__instance *instance, uint32_t slot);
/* tasks.c: the tape of a layout with tasks. */
tn_status tn__tasks_tape(tn__run *run, uint32_t number, tn__instance *instance);
bool tn__jobs_failed(const struct tn__jobs *jobs); /* jobs.c: some call has, and no other begins */

/* control.c: segments whose turn depends on values. TN_PENDING: an inner or a partial run waits, and is called again. */
tn_status tn__run_controlled(tn__run *run);
void tn__run_controlled_reset(tn__run *run);

/* context.c. What a workspace knows of a context, and of a segment. */
enum { TN__UNDECIDED = 0, TN__LIVE, TN__DEAD };
enum { TN__STATE_NEW = 0, TN__STATE_WAITING, TN__STATE_DONE, TN__STATE_SKIPPED };
#define TN__NO_SCALAR 2 /* among the predicates of a workspace */
#define TN__FAULT (-1)  /* a predicate is no scalar: the error says which */
int tn__context_state(tn__run *run, uint32_t context);
/* Forgets which contexts are undecided: more may be known by now. */
void tn__contexts_look_again(tn__run *run);
bool tn__run_waits(const tn__run *run); /* whether some segment has begun, and waits */
bool tn__segment_has_run(const tn__run *run, uint32_t number);

/* limit.c: adds to an error of the memory limit what holds the memory. */
void tn__limit_explain(const tn__run *run, tn_status st);

/* values.c: a value as a tensor, with a reference: the one that has its memory, or a copy. */
tn_status tn__run_tensor(tn__run *run, uint32_t value, tn_tensor **out);
/* The tensor whose memory a slot of the call's instance shows, when that does not change any more; NULL: there is none. */
tn_tensor *tn__call_lasting(const tn__call *call, uint32_t slot);
/* The buffer of tensors that stand for memory which is only lent for the time of a call (call.c). */
extern tn_buffer tn__borrowed;

/* run.c: a plan that runs inside of an instruction, once or again and again. */
typedef struct tn__inner {
  tn__run run;
  tn_step step;
  const tn_step *around;
  tn_tensor **outputs; /* after a run that went well: references, the caller's to take; NULL = dead */
  bool busy;           /* it waits */
} tn__inner;
tn_status tn__inner_begin(tn__inner *inner, tn_plan *plan, const tn_operation *op, const tn_step *around, tn_error *err);
/* Inputs are borrowed until it has ended. TN_PENDING: call tn__inner_go again, without changing anything. */
tn_status tn__inner_go(tn__inner *inner, tn_tensor *const *inputs, const bool *dead);
void tn__inner_end(tn__inner *inner);

/* loop.c */
tn_status tn__loop_run(tn__run *run, uint32_t number);

/* call.c: the kernel that called functions has ended. NULL allowed. */
typedef struct tn__calling tn__calling;
void tn__calls_end(tn__calling *calling);
bool tn__calls_wait(const tn__calling *calling); /* whether one of them waits */
/* Goes on with those that wait, of a step that has failed, whose results nobody wants. TN_PENDING: some still do. */
tn_status tn__calls_drain(tn__calling *calling, tn_error *err);

/* pending.c: a call that may wait, or a loop, as long as its workspace. */
struct tn__pending {
  tn__call call;
  tn_wait_token *token; /* NULL = it waits for what is inside of it */
  tn__loop *loop;       /* NULL = none yet (loop.c) */
  void (*free_loop)(tn__loop *loop);
  const bool *left; /* of a loop that has run, by exit: it had a value */
  tn__calling *calling; /* functions that the kernel called; NULL = none yet (call.c) */
  void (*free_calling)(tn__calling *calling);
  bool over;            /* the kernel has ended, and functions that it called have not */
  int64_t began_ns;     /* of a step that is traced: when it was called first */
};
tn__pending *tn__pending_get(tn__run *run, uint32_t number); /* NULL without memory, and the error is set */
void tn__pending_free(tn__pending *pending); /* NULL allowed */

/* wait.c */
/* Whether what the token stands for has happened; then the token is gone. */
bool tn__wait_take(tn__pending *pending);
void tn__wait_leave(tn__pending *pending); /* the call has ended; NULL token allowed */
/* Until some token is woken, after `seen` of them; TN_CANCELLED, TN_DEADLINE_EXCEEDED. */
uint64_t tn__wakes(const tn_step *step);
tn_status tn__sleep(const tn_step *step, uint64_t seen, tn_error *err);
/* Asks everything in the step that waits to come back. */
void tn__cancel_waits(const tn_step *step);
void tn__sleeper_unref(struct tn__sleeper *sleeper);
void tn__sleepers_init(tn__sleepers *sleepers);
void tn__sleepers_fini(tn__sleepers *sleepers);
void tn__sleepers_wake(tn__sleepers *sleepers);

/* Runs an operation by its kernel on the host (evaluate.c); outputs are NULL on failure, else the caller's. Any thread. */
tn_status tn__call_kernel(const tn__plan_kernel *kernel, const void *shape_state, tn_view *const *inputs,
                          uint32_t n_inputs, tn_view *const *outputs, uint32_t n_outputs, void *scratch, tn_error *err);
tn_status tn__evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                       size_t n_outputs, tn__evaluate_limits *limits, tn_error *err);

/* outputs.c: memory for outputs of a segment before it runs, and what is copied or handed over at the end. */
tn_status tn__outputs_bind(tn__run *run, tn__instance *instance);
tn_status tn__outputs_finish(tn__run *run);
tn_status tn__output_dead(const tn__run *run, uint32_t output); /* says so, and gives the code */
void tn__outputs_drop(tn__run *run); /* after an error */

/* The tensor that a value is, when it is a whole one: a feed, or what a Merge or a loop made; else NULL. */
static inline tn_tensor *tn__run_whole(const tn__run *run, uint32_t value)
{
  const tn__plan_value *v = &run->plan->values[value];
  if (v->kind == TN_VALUE_FEED) return run->step->inputs[v->index];
  return v->whole ? run->workspace->held[v->held] : NULL;
}

/* View of a computed value, in the instance of its segment. */
static inline tn_view *tn__run_view(const tn__run *run, uint32_t value, uint32_t *slot, tn__instance **instance)
{
  const tn__plan_value *v = &run->plan->values[value];
  *instance = run->workspace->instances[v->segment];
  *slot = v->slot;
  return &(*instance)->views[v->slot];
}

/* Where values without elements lie for kernels: an address that can be added to, which NULL is not. */
extern const char tn__nowhere[TN_ALIGN];
static inline void *tn__somewhere(void *data) { return data != NULL ? data : (void *)(uintptr_t)tn__nowhere; }

/* Points a slot and all that share its memory at `data`. */
static inline void tn__bind_data(tn__instance *instance, uint32_t slot, void *data, tn_buffer *buffer)
{
  const tn__slot *slots = instance->layout->slots;
  data = tn__somewhere(data);
  for (uint32_t s = slot; s != TN__NONE; s = slots[s].next_alias) {
    instance->views[s].data = data;
    instance->views[s].buffer = buffer;
  }
}

#endif
