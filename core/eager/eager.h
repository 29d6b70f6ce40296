/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions: what their files share.
 *
 * Slots. A handle names a slot: its number, the slot's generation, and a tag of the session. Slots lie in blocks that never move
 * and go with the session, so any number may be looked at, whatever it is. All that is decided about a slot at once is in one
 * word: generation, flags, and pins: how many calls use the tensor now. Who releases a handle sets RELEASED; whoever makes that
 * and "no pins" true together - the one who releases, or the last who unpins - puts the slot into a list, once.
 *
 * Lanes. Threads count, and put slots down, in lanes of their own, as far as there are enough of them. `unused` of a lane is a list
 * that anybody adds to without a lock, and that is taken as a whole; whoever takes it deletes the tensors and gives the slots
 * back. Everything else in a lane is guarded by its bit `busy`, which nobody holds for long; who finds one busy goes to the next.
 *
 * Life. Calls go through the gate. A reset of the runtime sets `closed`, which ends calls. Close sets it and `ending`, shuts the gate, waits until all have left, ends the thread, and deletes
 * what is left by walking the slots. The struct stays until it is destroyed and no op of it is left. */
#ifndef TN_CORE_EAGER_H
#define TN_CORE_EAGER_H

#include <core/base/gate.h>
#include <core/base/lock.h>
#include <core/base/map.h>
#include <core/exec/wait.h>
#include <core/host/host.h>
#include <core/plan/plan.h>
#include <core/plan/states.h>
#include <core/registry/registry.h>
#include <core/resource/container.h>
#include <core/tensor/tensor_internal.h>
#include <string.h>
#include <tenon/eager.h>

/* ---- slots ---- */

#define TN__EAGER_NUMBER_BITS 27
#define TN__EAGER_GENERATION_BITS 25
#define TN__EAGER_TAG_BITS 12
#define TN__EAGER_MOST_SLOTS ((1u << TN__EAGER_NUMBER_BITS) - 1)
#define TN__EAGER_LAST_GENERATION ((1u << TN__EAGER_GENERATION_BITS) - 1)

/* The word of a slot: generation << 32, these, and pins. */
#define TN__EAGER_HELD ((uint64_t)1 << 31)     /* there is a handle, or it is released and not deleted yet */
#define TN__EAGER_RELEASED ((uint64_t)1 << 30)
#define TN__EAGER_TAKEN ((uint64_t)1 << 29)    /* detached while it was pinned: not the session's to delete */
#define TN__EAGER_PINS (TN__EAGER_TAKEN - 1)

typedef struct tn__eager_slot {
  _Alignas(64) _Atomic uint64_t word;
  _Atomic(tn_tensor *) tensor; /* the session's reference; NULL: none, or it is still to be made */
  _Atomic uint64_t below;      /* in a list of what is unused: bytes in it up to this one */
  _Atomic uint32_t depth;      /* the same, slots */
  _Atomic uint32_t next;       /* in any list: number of the next, 0 = the end */
  uint32_t number;             /* from 1 */
  uint16_t device;             /* in the session's list; 0 = the default one */
  uint8_t dtype;               /* tn_dtype */
  bool heavy;                  /* deleting it calls functions of the program or of a plugin, or clears elements */
  size_t bytes;                /* of elements */
  struct tn__eager_task *task; /* that is to make the tensor, a reference; NULL = none */
} tn__eager_slot;

#define TN__EAGER_HEAVY ((uint64_t)1 << 62) /* in `below`: one of them is not simply freed */

#define TN__EAGER_BLOCK 64   /* slots of the first block; each further one is twice as large */
#define TN__EAGER_BLOCKS 22

/* ---- lanes ---- */

#define TN__EAGER_LANES 16
#define TN__EAGER_SPARES 8
#define TN__EAGER_TAKES ((uint64_t)1 << 40)

typedef struct tn__eager_lane {
  _Alignas(64) _Atomic uint32_t unused; /* number of the slot that was put down last, 0 = none */
  _Alignas(64) _Atomic uint32_t busy;
  _Atomic uint32_t backlog;    /* list of slots that were taken out of `unused`, and wait to be deleted; guarded by busy */
  _Atomic uint32_t n_spares;   /* as what follows */
  tn_tensor *spares[TN__EAGER_SPARES]; /* small ones that were deleted: their memory serves for the next of their shape */
  uint32_t free;               /* slots to give out; guarded by busy, as what follows is written under it, but read at any time */
  _Atomic uint64_t allocated, deleted, detached;
  _Atomic int64_t bytes;       /* made in it, less deleted in it */
  int64_t untold;              /* part of them that session->bytes does not have yet */
  _Atomic uint64_t taken;      /* slots of the list `unused` that are not deleted yet, and TN__EAGER_TAKES for each thread that is
                                * about to take that list; no guard */
} tn__eager_lane;

/* ---- devices ---- */

#define TN__EAGER_ANYWHERE UINT16_MAX

typedef struct tn__eager_device {
  char *name;             /* the full one; its own, as the other texts */
  char *type, *model;
  int64_t memory_bytes;
  tn__device_name parsed; /* in name */
  size_t number;          /* of list_devices */
} tn__eager_device;

/* ---- operations ---- */

/* A plan for one tuple of input types, and a device. */
typedef struct tn__eager_plan {
  struct tn__eager_plan *next;
  tn_graph *graph; /* a reference */
  tn_plan *plan;
  tn_executable *executable;
  tn__kernel_states states;
  uint32_t n_inputs, n_outputs;
  uint16_t asked;          /* the device that it is for, when that is not a CPU; else 0 */
  bool moved;              /* it runs on the default device: `asked` has no kernel for it */
  uint64_t on_host;        /* bit i: input i gives shapes, so it is read on the host wherever the operation runs */
  tn_dtype *outputs; /* in dtypes, behind those of the inputs */
  tn_dtype dtypes[];
} tn__eager_plan;

struct tn_eager_op {
  tn_eager_session *session; /* counted */
  tn_eager_op *prev, *next;  /* of the session, guarded by its mu */
  char *name, *device;       /* in the arena, as what follows */
  tn_eager_attr *attrs;      /* copies; tensors are references */
  size_t n_attrs;
  tn__arena arena;
  tn__mutex mu;              /* of making plans */
  _Atomic(tn__eager_plan *) plans; /* newest first; they go with the op, or when the session is closed */
  _Atomic(tn__eager_plan *) last;  /* that was used */
  _Atomic uint32_t n_plans;
  bool takes_list;           /* more than one count of inputs is possible */
  uint16_t place;            /* the device on which it runs, or TN__EAGER_ANYWHERE */
};

/* Ops by name and attributes: a table that is replaced when it grows, and read without a lock. */
typedef struct tn__eager_named {
  uint64_t hash;
  size_t size;
  tn_eager_op *op;
  char key[];
} tn__eager_named;
typedef struct tn__eager_table {
  struct tn__eager_table *older;
  size_t capacity; /* a power of two */
  _Atomic(tn__eager_named *) at[];
} tn__eager_table;

/* ---- sessions ---- */

typedef struct tn__eager_frame {
  const tn_eager_session *session;
  struct tn__eager_frame *around;
} tn__eager_frame;
extern _Thread_local tn__eager_frame *tn__eager_inside TN__THREAD_WORD; /* sessions that this thread is inside of */

struct tn__eager_queue; /* async.c */
typedef struct tn__eager_task tn__eager_task;

struct tn_eager_session {
  tn__gate calls;
  _Alignas(64) _Atomic int64_t closed; /* or reset: when, on the monotonic clock; 0 = open */
  _Atomic uint32_t ending;  /* somebody closes it */
  _Atomic uint32_t asleep;  /* the thread sleeps until it is woken */
  int32_t strategy, policy;
  bool soft;                /* option allow_soft_placement */
  uint32_t n_devices, n_cpus; /* of `devices`, which stay as they are while the session is open; CPUs come first */
  uint32_t tag;
  tn__step_fn execute;      /* of the runtime; NULL: the kit's */
  struct tn__eager_queue *queue; /* NULL = not asynchronous */
  _Atomic(tn__eager_table *) table;
  _Atomic(tn__eager_slot *) blocks[TN__EAGER_BLOCKS];

  tn__eager_lane lanes[TN__EAGER_LANES];
  _Alignas(64) _Atomic int64_t bytes, peak; /* as far as lanes told */
  _Atomic uint32_t n_slots;                 /* given out so far, in turns of several */
  _Atomic uint64_t pauses, pause_ns, longest_pause_ns;

  _Atomic uint32_t refs; /* the program's, and its ops' */
  void (*destroy)(tn_eager_session *session); /* session.c's, after the last reference */
  tn__mutex mu;          /* ops, named ops, the state of closing */
  tn__mutex step_mu;     /* of steps (core/exec/step.h) */
  tn__sleepers sleepers;
  tn_eager_op *ops;      /* guarded by mu */
  size_t n_named, named_bytes; /* guarded by mu */
  tn_graph *library;     /* functions; guarded by mu, set once, a reference. NULL = none */
  bool ended;            /* all is deleted; guarded by mu */
  tn__cond end;
  _Atomic uint32_t is_default;

  bool has_thread;       /* of IN_BACKGROUND */
  pthread_t thread;
  tn__mutex wake_mu;
  tn__cond wake;         /* with wake_mu */
  bool stop;             /* guarded by wake_mu */
  tn__opened on;         /* the runtime, the options */
  tn__eager_device *devices;
  size_t device_room;
  tn_status (*prepare_on)(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                          tn_executable **out, tn_error *err); /* the runtime's, as `copy`; both or none */
  tn_status (*copy)(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                    tn_tensor **out, tn_error *err);
};

/* gate.c */
/* An open gate, for a new session. */
void tn__eager_gate_init(tn_eager_session *session);
/* Shuts the gate and waits until all calls have left. */
void tn__eager_drain(tn_eager_session *session);
/* Why nothing is done any more: closed or forked FAILED_PRECONDITION, reset CANCELLED. */
tn_status tn__eager_closed(const tn_eager_session *session, tn_error *err);
/* Every call but releasing: in, and out. On failure nobody is inside. */
tn_status tn__eager_enter(tn_eager_session *session, tn__eager_frame *frame, uint32_t thread, tn_error *err);
void tn__eager_leave(tn_eager_session *session, tn__eager_frame *frame, uint32_t thread);
bool tn__eager_enter_to_free(tn_eager_session *session, tn__eager_frame *frame, uint32_t thread); /* after a reset, too */
void tn__eager_unref(tn_eager_session *session);
bool tn__eager_is_inside(const tn_eager_session *session); /* this thread runs a call, a deletion, or the end of it */
void tn__eager_wait_for_end(tn_eager_session *session); /* of who closes it */

/* slots.c */
/* The slot of a handle that this session gave out; NULL: it is none. */
tn__eager_slot *tn__eager_slot_of(const tn_eager_session *session, tn_eager_handle handle);
static inline uint32_t tn__eager_block_of(uint32_t number)
{
  return 31 - (uint32_t)__builtin_clz((number - 1) / TN__EAGER_BLOCK + 1);
}
/* Slot `number`, which is there. */
static inline tn__eager_slot *tn__eager_slot_at(const tn_eager_session *session, uint32_t number)
{
  uint32_t block = tn__eager_block_of(number), first = TN__EAGER_BLOCK * ((1u << block) - 1);
  return atomic_load_explicit(&session->blocks[block], memory_order_acquire) + (number - 1 - first);
}
tn_status tn__eager_bad_handle(const tn_eager_session *session, tn_eager_handle handle, tn_error *err);
/* Keeps the tensor from being deleted until unpin. */
tn_status tn__eager_pin(tn_eager_session *session, tn_eager_handle handle, tn__eager_slot **out, tn_error *err);
void tn__eager_unpin(tn_eager_session *session, tn__eager_slot *slot);
/* Slots for n tensors, taken over (NULL: they come later, from `task`, with these types); all or none. */
tn_status tn__eager_publish(tn_eager_session *session, tn_tensor *const *tensors, const tn_dtype *dtypes,
                            struct tn__eager_task *task, size_t n, tn_eager_handle *out, tn_error *err);
/* Sets RELEASED, and more; false: it was no handle. *slot: nobody pins it, and it is the caller's to put down or give back. */
bool tn__eager_let_go(tn_eager_session *session, tn_eager_handle handle, uint64_t more, tn__eager_slot **slot);
void tn__eager_put_down(tn_eager_session *session, tn__eager_slot *slot); /* it is unused now */
tn__eager_lane *tn__eager_lane_lock(tn_eager_session *session);
void tn__eager_lane_unlock(tn__eager_lane *lane);
bool tn__eager_is_heavy(const tn_tensor *tensor);
tn_tensor *tn__eager_spare_take(tn_eager_session *session); /* NULL: there is none */
void tn__eager_spares_free(tn_eager_session *session);
/* The slot is free; the lane is locked. */
void tn__eager_slot_free(tn__eager_lane *lane, tn__eager_slot *slot);
void tn__eager_lane_count(tn_eager_session *session, tn__eager_lane *lane, int64_t bytes);
void tn__eager_blocks_free(tn_eager_session *session);

/* sweep.c */
/* Deletes what is unused in a lane, in all of them; how many there were. */
size_t tn__eager_sweep_lane(tn_eager_session *session, tn__eager_lane *lane);
size_t tn__eager_sweep(tn_eager_session *session);
/* Memory is exhausted: deletes what is unused, and waits for other threads that are deleting. False where the strategy keeps
 * everything until the session is closed. Otherwise the caller tries again, even if there was nothing left to delete: another
 * thread may have deleted it after the first try. */
bool tn__eager_reclaim(tn_eager_session *session);
void tn__eager_safe_point(tn_eager_session *session); /* with ON_SAFE_POINTS; else nothing */
void tn__eager_help(tn_eager_session *session);       /* of a call that made something, IN_BACKGROUND */
tn_status tn__eager_thread_start(tn_eager_session *session, tn_error *err);
void tn__eager_thread_end(tn_eager_session *session);
/* At the end: everything goes, used or not. */
void tn__eager_delete_all(tn_eager_session *session);

/* op.c, plan.c */
tn_status tn__eager_op_new(tn_eager_session *session, const char *op, const char *device, const tn_eager_attr *attrs, size_t n,
                           tn_eager_op **out, tn_error *err);
tn_status tn__eager_attrs_check(const char *op, const tn_eager_attr *attrs, size_t n, tn_error *err);
void tn__eager_op_free(tn_eager_op *op); /* its plans went before */
bool tn__eager_op_copy_tensors(tn_eager_op *op); /* of attributes: what the caller gave is not used any more. False without memory */
void tn__eager_plans_free(tn_eager_session *session, tn_eager_op *op);
void tn__eager_plan_free(tn_eager_session *session, tn__eager_plan *plan);
/* The plan for these types, on device `asked` when that is not a CPU, else 0; *mine: it is not kept, and the caller frees it. */
tn_status tn__eager_plan_get(tn_eager_op *op, const tn_dtype *dtypes, size_t n, uint16_t asked, tn__eager_plan **out, bool *mine,
                             tn_error *err);
/* call.c; the caller is inside. */
tn_status tn__eager_run(tn_eager_op *op, const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs, size_t room,
                        size_t *n_outputs, tn_error *err);
/* again: a spare for the one output, or NULL; NULL afterwards when it was taken. */
tn_status tn__eager_step(tn_eager_session *session, const tn__eager_plan *plan, tn_tensor **inputs, tn_tensor **outputs,
                         tn_tensor **again, tn_error *err);

/* cache.c */
tn_status tn__eager_named_op(tn_eager_session *session, const char *op, const tn_eager_attr *attrs, size_t n, tn_eager_op **out,
                             bool *mine, tn_error *err);
void tn__eager_named_free(tn_eager_session *session);

/* scope.c */
/* Notes handles in the calling thread's scope, if it has one; room first, so that noting does not fail. */
tn_status tn__eager_scope_room(const tn_eager_session *session, size_t n, tn_error *err);
void tn__eager_scope_note(const tn_eager_session *session, const tn_eager_handle *handles, size_t n);
void tn__eager_scopes_forget(tn_eager_session *session);

/* devices.c */
tn_status tn__eager_devices_open(tn_eager_session *session, tn_error *err);
void tn__eager_devices_close(tn_eager_session *session);
/* The first device that a name fits; TN__EAGER_ANYWHERE for "" and NULL. */
tn_status tn__eager_device_find(const tn_eager_session *session, const char *device, uint16_t *out, tn_error *err);
/* Where a call is to run; then, with its plan, whether the inputs may come to where it does run. Of a session that has more than
 * one device. */
tn_status tn__eager_place(tn_eager_op *op, tn__eager_slot *const *inputs, const tn_dtype *dtypes, size_t n, uint16_t *out,
                          tn_error *err);
tn_status tn__eager_admit(const tn_eager_op *op, const tn__eager_plan *plan, tn__eager_slot *const *inputs, size_t n, uint16_t to,
                          tn_error *err);
/* Its memory is not the host's. */
static inline bool tn__eager_is_away(const tn_eager_session *session, uint16_t device) { return device >= session->n_cpus; }
/* A reference to a tensor on device `from` as it is on device `to`: the same, or a copy. */
tn_status tn__eager_bring(tn_eager_session *session, tn_tensor *tensor, uint16_t from, uint16_t to, tn_tensor **out, tn_error *err);
/* Of handles that nobody has yet. */
void tn__eager_set_device(const tn_eager_session *session, const tn_eager_handle *handles, size_t n, uint16_t device);

/* async.c */
tn_status tn__eager_queue_open(tn_eager_session *session, tn_error *err);
void tn__eager_queue_close(tn_eager_session *session); /* what has not begun by now fails; joins its thread. No queue: nothing */

#endif
