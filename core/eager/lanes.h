/* SPDX-License-Identifier: Apache-2.0 */
/* Slots behind handles, and lanes of threads.
 *
 * Slots. A handle names a slot: its number, the slot's generation, and a tag of the session. Slots lie in blocks that never move
 * and go with the session, so any number may be looked at, whatever it is. All that is decided about a slot at once is in one
 * word: generation, flags, and pins: how many calls use the tensor now. Who releases a handle sets RELEASED; whoever makes that
 * and "no pins" true together - the one who releases, or the last who unpins - puts the slot into a list, once.
 *
 * Lanes. Threads count, and put slots down, in lanes of their own, as far as there are enough of them. `unused` of a lane is a list
 * that anybody adds to without a lock, and that is taken as a whole; whoever takes it deletes the tensors and gives the slots
 * back. Everything else in a lane is guarded by its bit `busy`, which nobody holds for long; who finds one busy goes to the next. */
#ifndef TN_CORE_EAGER_LANES_H
#define TN_CORE_EAGER_LANES_H

#include <core/tensor/tensor_internal.h>

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

#endif
