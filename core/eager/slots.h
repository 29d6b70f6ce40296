/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: finding, pinning, making and releasing the slots behind them. */
#ifndef TN_CORE_EAGER_SLOTS_H
#define TN_CORE_EAGER_SLOTS_H

#include <core/eager/eager.h>

/* The slot of a handle of this session; NULL if it is none. */
tn__eager_slot *tn__eager_slot_of(const tn_eager_session *session, tn_eager_handle handle);
static inline uint32_t tn__eager_block_of(uint32_t number)
{
  return 31 - (uint32_t)__builtin_clz((number - 1) / TN__EAGER_BLOCK + 1);
}
/* Slot `number`, which must exist. */
static inline tn__eager_slot *tn__eager_slot_at(const tn_eager_session *session, uint32_t number)
{
  uint32_t block = tn__eager_block_of(number), first = TN__EAGER_BLOCK * ((1u << block) - 1);
  return atomic_load_explicit(&session->blocks[block], memory_order_acquire) + (number - 1 - first);
}
/* The error for a handle that is not valid, with the reason. */
tn_status tn__eager_bad_handle(const tn_eager_session *session, tn_eager_handle handle, tn_error *err);
/* Prevents the deletion of the tensor until unpin. */
tn_status tn__eager_pin(tn_eager_session *session, tn_eager_handle handle, tn__eager_slot **out, tn_error *err);
void tn__eager_unpin(tn_eager_session *session, tn__eager_slot *slot);
/* Makes handles of n tensors and takes the tensors over. tensors NULL: `task` computes them later, with these
 * types. Makes all or none. */
tn_status tn__eager_publish(tn_eager_session *session, tn_tensor *const *tensors, const tn_dtype *dtypes,
                            struct tn__eager_task *task, size_t n, tn_eager_handle *out, tn_error *err);
/* Sets RELEASED and the flags `more`; false if it was no handle. If *slot is not NULL, it is not pinned, and
 * the caller must put it down or free it. */
bool tn__eager_let_go(tn_eager_session *session, tn_eager_handle handle, uint64_t more, tn__eager_slot **slot);
/* Locks this thread's lane, or another one that is free. Held only for a moment; nothing is called
 * meanwhile. */
tn__eager_lane *tn__eager_lane_lock(tn_eager_session *session);
void tn__eager_lane_unlock(tn__eager_lane *lane);
/* Whether deleting the tensor may call functions of the program or of a plugin, or has to clear
 * elements. */
bool tn__eager_is_heavy(const tn_tensor *tensor);
/* Frees a slot, whose handle becomes invalid for good; the lane is locked. */
void tn__eager_slot_free(tn__eager_lane *lane, tn__eager_slot *slot);
/* Adds to the bytes of a lane; the lane is locked. The session's counter follows with a delay. */
void tn__eager_lane_count(tn_eager_session *session, tn__eager_lane *lane, int64_t bytes);
void tn__eager_blocks_destroy(tn_eager_session *session);

#endif
