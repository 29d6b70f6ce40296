/* SPDX-License-Identifier: Apache-2.0 */
/* Slots behind handles, and lanes of threads.
 *
 * Slots. A handle names a slot: its number, the slot's generation, and a tag of the session. Slots are in
 * blocks that never move and are freed with the session, so any number may be looked up. All state that
 * changes together is in one word: generation, flags, and pins, the number of calls that use the tensor now.
 * A release sets RELEASED. The thread that makes "released" and "no pins" true together, the releasing thread
 * or the last one to unpin, adds the slot to a list, once.
 *
 * Lanes. Each thread uses a lane of its own for counters and unused slots, as long as there are enough lanes.
 * Any thread may add to a lane's list `unused` without a lock; the list is only taken as a whole, and the
 * thread that takes it deletes the tensors and frees the slots. Everything else in a lane is guarded by its
 * bit `busy`, which is held briefly; a thread that finds a lane busy tries the next one. */
#ifndef TN_CORE_EAGER_LANES_H
#define TN_CORE_EAGER_LANES_H

#include <core/tensor/tensor_internal.h>

#define TN__EAGER_NUMBER_BITS 27
#define TN__EAGER_GENERATION_BITS 25
#define TN__EAGER_TAG_BITS 12
#define TN__EAGER_MOST_SLOTS ((1u << TN__EAGER_NUMBER_BITS) - 1)
#define TN__EAGER_LAST_GENERATION ((1u << TN__EAGER_GENERATION_BITS) - 1)

/* The word of a slot: generation << 32, these, and pins. */
#define TN__EAGER_HELD ((uint64_t)1 << 31)     /* a handle exists, or was released and is not deleted yet */
#define TN__EAGER_RELEASED ((uint64_t)1 << 30)
#define TN__EAGER_TAKEN ((uint64_t)1 << 29)    /* detached while pinned: the session does not delete the tensor */
#define TN__EAGER_PINS (TN__EAGER_TAKEN - 1)

typedef struct tn__eager_slot {
  _Alignas(64) _Atomic uint64_t word;
  _Atomic(tn_tensor *) tensor; /* the session's reference; NULL: none, or not computed yet */
  _Atomic uint64_t below;      /* in a list of unused slots: bytes of this slot and those below */
  _Atomic uint32_t depth;      /* the same for the number of slots */
  _Atomic uint32_t next;       /* in any list: number of the next, 0 = the end */
  uint32_t number;             /* from 1 */
  uint16_t device;             /* in the session's list; 0 = the default one */
  uint8_t dtype;               /* tn_dtype */
  bool heavy;                  /* deleting it calls functions of the program or of a plugin, or clears elements */
  size_t bytes;                /* of elements */
  struct tn__eager_task *task; /* the task that computes the tensor, a reference; NULL = none */
} tn__eager_slot;

#define TN__EAGER_HEAVY ((uint64_t)1 << 62) /* in `below`: one of the slots is heavy */

#define TN__EAGER_BLOCK 64   /* slots of the first block; each further one is twice as large */
#define TN__EAGER_BLOCKS 22

/* ---- lanes ---- */

#define TN__EAGER_LANES 16
#define TN__EAGER_SPARES 8 /* of a lane */
#define TN__EAGER_TAKES ((uint64_t)1 << 40) /* one thread, in tn__eager_lane.taken */

typedef struct tn__eager_lane {
  _Alignas(64) _Atomic uint32_t unused; /* number of the slot added last, 0 = none */
  _Alignas(64) _Atomic uint32_t busy; /* a lock: 1 = a thread has it */
  _Atomic uint32_t backlog;    /* list of slots taken from `unused` that wait for deletion; guarded by busy */
  _Atomic uint32_t n_spares;   /* guarded by busy, as are they */
  tn_tensor *spares[TN__EAGER_SPARES]; /* small deleted tensors, reused for the next one of their shape */
  uint32_t free;               /* list of free slots; guarded by busy */
  /* Written under busy, read at any time. */
  _Atomic uint64_t allocated, deleted, detached;
  _Atomic int64_t bytes;       /* created in the lane minus deleted in the lane */
  int64_t untold;              /* the part not yet added to session->bytes; guarded by busy */
  _Atomic uint64_t taken; /* slots of the list `unused` that are not deleted yet, and TN__EAGER_TAKES for each thread
                           * that is about to take that list; no guard */
} tn__eager_lane;

#endif
