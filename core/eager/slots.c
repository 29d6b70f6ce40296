/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: handles to tensors, pins, lanes. lanes.h describes the protocol. */
#include <core/eager/slots.h>
#include <core/eager/task.h>

#include <sched.h>

#define BATCH 16        /* slots added to a lane at once; a block holds whole batches */
#define TELL_BYTES 16384 /* a lane adds its bytes to the session's beyond this */
#define WAKE_DEPTH 1024  /* unused slots of a lane at which the thread is woken before its tick */

static size_t bytes_of(uint32_t block) { return ((size_t)TN__EAGER_BLOCK << block) * sizeof(tn__eager_slot); }

/* ---- unused slots ---- */

/* Wakes the session's thread. */
static void wake(tn_eager_session *s)
{
  tn__mutex_lock(&s->worker.wake_mu);
  tn__cond_signal(&s->worker.wake);
  tn__mutex_unlock(&s->worker.wake_mu);
}

/* Adds the slot to the unused ones of this thread's lane. The slot is in no other list, and its
 * tensor is not used. Each slot has the number and the bytes of the slots below it, so the head of
 * the list tells both for the whole list. */
static void eager_put_down(tn_eager_session *s, tn__eager_slot *slot)
{
  tn__eager_lane *lane = &s->lanes[tn__thread_place(TN__EAGER_LANES)];
  uint64_t own = slot->bytes | (slot->heavy ? TN__EAGER_HEAVY : 0);
  uint32_t head = atomic_load_explicit(&lane->unused, memory_order_acquire), depth;
  do {
    const tn__eager_slot *top = head == 0 ? NULL : tn__eager_slot_at(s, head);
    uint64_t below = top == NULL ? 0 : atomic_load_explicit(&top->below, memory_order_relaxed);
    depth = 1 + (top == NULL ? 0 : atomic_load_explicit(&top->depth, memory_order_relaxed));
    atomic_store_explicit(&slot->depth, depth, memory_order_relaxed);
    atomic_store_explicit(&slot->below,
                          ((below & ~TN__EAGER_HEAVY) + (own & ~TN__EAGER_HEAVY)) | ((below | own) & TN__EAGER_HEAVY),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->next, head, memory_order_relaxed);
  } while (!atomic_compare_exchange_weak(&lane->unused, &head, slot->number));
  if (!s->worker.has_thread) return;
  if (__builtin_expect(atomic_load(&s->asleep) != 0, 0)) {
    if (atomic_exchange(&s->asleep, 0) != 0) wake(s);
  } else if (__builtin_expect(depth == WAKE_DEPTH, 0)) {
    wake(s);
  }
}

/* ---- handles ---- */

/* tag, generation and number of the slot, from the highest bits to the lowest. */
static uint64_t id_of(const tn_eager_session *s, const tn__eager_slot *slot, uint64_t generation)
{
  return ((uint64_t)s->tag << TN__EAGER_GENERATION_BITS | generation) << TN__EAGER_NUMBER_BITS | slot->number;
}

static uint64_t generation_of(tn_eager_handle h)
{
  return h.id >> TN__EAGER_NUMBER_BITS & TN__EAGER_LAST_GENERATION;
}

tn__eager_slot *tn__eager_slot_of(const tn_eager_session *s, tn_eager_handle h)
{
  uint32_t number = (uint32_t)h.id & TN__EAGER_MOST_SLOTS;
  if (number == 0 || h.id >> (TN__EAGER_NUMBER_BITS + TN__EAGER_GENERATION_BITS) != s->tag) return NULL;
  return atomic_load_explicit(&s->blocks[tn__eager_block_of(number)], memory_order_acquire) == NULL
             ? NULL
             : tn__eager_slot_at(s, number);
}

/* Whether the word of a slot is that of a valid handle. */
static bool is_held(uint64_t word, tn_eager_handle h)
{
  return (word & (TN__EAGER_HELD | TN__EAGER_RELEASED)) == TN__EAGER_HELD && word >> 32 == generation_of(h);
}

tn_status tn__eager_bad_handle(const tn_eager_session *s, tn_eager_handle h, tn_error *err)
{
  const tn__eager_slot *slot = tn__eager_slot_of(s, h);
  uint64_t word = slot == NULL ? 0 : atomic_load(&slot->word), generation = generation_of(h);
  const char *why = h.id == 0 ? "it names no tensor" : "it is not this session's";
  if (slot != NULL && generation != 0 &&
      (word >> 32 > generation || (word >> 32 == generation && (word & TN__EAGER_HELD))))
    why = "it was released";
  return tn_error_set(err, TN_FAILED_PRECONDITION, "eager handle %#llx: %s", (unsigned long long)h.id, why);
}

/* A pin is one exchange of the slot's word, which at the same time checks the handle: a released
 * slot cannot be pinned. */
tn_status tn__eager_pin(tn_eager_session *s, tn_eager_handle h, tn__eager_slot **out, tn_error *err)
{
  tn__eager_slot *slot = *out = tn__eager_slot_of(s, h);
  if (slot == NULL) return tn__eager_bad_handle(s, h, err);
  uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
  do {
    if (!is_held(word, h)) return tn__eager_bad_handle(s, h, err);
    if ((word & TN__EAGER_PINS) == TN__EAGER_PINS)
      return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "eager handle %#llx: too many calls use it",
                          (unsigned long long)h.id);
  } while (
      !atomic_compare_exchange_weak_explicit(&slot->word, &word, word + 1, memory_order_acq_rel, memory_order_relaxed));
  return TN_OK;
}

/* The last one to unpin a released slot adds it to the unused ones. */
void tn__eager_unpin(tn_eager_session *s, tn__eager_slot *slot)
{
  uint64_t before = atomic_fetch_sub_explicit(&slot->word, 1, memory_order_acq_rel);
  if (__builtin_expect((before & TN__EAGER_RELEASED) != 0 && (before & TN__EAGER_PINS) == 1, 0))
    eager_put_down(s, slot);
}

bool tn__eager_let_go(tn_eager_session *s, tn_eager_handle h, uint64_t more, tn__eager_slot **out)
{
  *out = NULL;
  tn__eager_slot *slot = tn__eager_slot_of(s, h);
  if (slot == NULL) return false;
  uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
  do {
    if (!is_held(word, h)) return false;
  } while (!atomic_compare_exchange_weak_explicit(&slot->word, &word, word | TN__EAGER_RELEASED | more,
                                                  memory_order_acq_rel, memory_order_relaxed));
  if ((word & TN__EAGER_PINS) == 0) *out = slot;
  return true;
}

/* Does not enter the session: releasing must be cheap, and must be possible from within calls and
 * after close (S-EAG-19). */
tn_status tn_eager_release(tn_eager_session *s, tn_eager_handle handle, tn_error *err)
{
  tn__eager_slot *slot;
  tn__error_reset(err);
  if (__builtin_expect(s == NULL, 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_release: session is NULL");
  if (__builtin_expect(handle.id == 0 || tn__forked() || atomic_load(&s->ending) != 0, 0)) return TN_OK; /* S-EAG-19 */
  if (__builtin_expect(!tn__eager_let_go(s, handle, 0, &slot), 0))
    return atomic_load(&s->ending) != 0 ? TN_OK : tn__eager_bad_handle(s, handle, err);
  if (slot != NULL) eager_put_down(s, slot);
  return TN_OK;
}

/* ---- lanes ---- */

/* Reads first, so that a busy lane's cache line is not written. */
static bool try_lock(tn__eager_lane *lane)
{
  return atomic_load_explicit(&lane->busy, memory_order_relaxed) == 0 &&
         atomic_exchange_explicit(&lane->busy, 1, memory_order_acquire) == 0;
}

tn__eager_lane *tn__eager_lane_lock(tn_eager_session *s)
{
  uint32_t own = tn__thread_place(TN__EAGER_LANES);
  for (;;) {
    for (uint32_t k = 0; k < TN__EAGER_LANES; k++) {
      tn__eager_lane *lane = &s->lanes[(own + k) % TN__EAGER_LANES];
      if (try_lock(lane)) return lane;
    }
    sched_yield();
  }
}

void tn__eager_lane_unlock(tn__eager_lane *lane) { atomic_store_explicit(&lane->busy, 0, memory_order_release); }

/* Adds the lane's bytes to the session's, and raises the peak. */
static void tell(tn_eager_session *s, tn__eager_lane *lane)
{
  int64_t now = atomic_fetch_add_explicit(&s->bytes, lane->untold, memory_order_relaxed) + lane->untold;
  int64_t peak = atomic_load_explicit(&s->peak, memory_order_relaxed);
  lane->untold = 0;
  while (now > peak &&
         !atomic_compare_exchange_weak_explicit(&s->peak, &peak, now, memory_order_relaxed, memory_order_relaxed)) {}
}

void tn__eager_lane_count(tn_eager_session *s, tn__eager_lane *lane, int64_t bytes)
{
  int64_t now = atomic_load_explicit(&lane->bytes, memory_order_relaxed) + bytes;
  atomic_store_explicit(&lane->bytes, now, memory_order_relaxed);
  lane->untold += bytes;
  if (lane->untold > TELL_BYTES || lane->untold < -TELL_BYTES) tell(s, lane);
}

void tn__eager_slot_free(tn__eager_lane *lane, tn__eager_slot *slot)
{
  uint64_t generation = (atomic_load_explicit(&slot->word, memory_order_relaxed) >> 32) + 1;
  atomic_store_explicit(&slot->word, generation << 32, memory_order_release);
  if (generation > TN__EAGER_LAST_GENERATION) return; /* its handles would repeat, so it is never used again */
  atomic_store_explicit(&slot->next, lane->free, memory_order_relaxed);
  lane->free = slot->number;
}

/* ---- making ---- */

/* Allocates a block of slots unless it exists. The session's mu is held. */
static tn_status need_block(tn_eager_session *s, uint32_t block, tn_error *err)
{
  if (atomic_load(&s->blocks[block]) != NULL) return TN_OK;
  tn__eager_slot *slots = tn__alloc_aligned(bytes_of(block), _Alignof(tn__eager_slot));
  if (slots == NULL) return tn__no_memory(err, "eager handles", bytes_of(block));
  memset(slots, 0, bytes_of(block));
  atomic_store_explicit(&s->blocks[block], slots, memory_order_release);
  return TN_OK;
}

/* Creates slots for a lane. */
static tn_status refill(tn_eager_session *s, tn_error *err)
{
  tn_status st = TN_OK;
  tn__mutex_lock(&s->mu);
  uint32_t first = atomic_load(&s->n_slots) + 1;
  if (first + BATCH > TN__EAGER_MOST_SLOTS)
    st = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the eager session has %u handles", first - 1);
  if (st == TN_OK) st = need_block(s, tn__eager_block_of(first), err);
  if (st == TN_OK) atomic_store(&s->n_slots, first + BATCH - 1);
  tn__mutex_unlock(&s->mu);
  if (st != TN_OK) return st;
  tn__eager_lane *lane = tn__eager_lane_lock(s);
  for (uint32_t i = BATCH; i-- > 0;) {
    tn__eager_slot *slot = tn__eager_slot_at(s, first + i);
    slot->number = first + i;
    tn__eager_slot_free(lane, slot);
  }
  tn__eager_lane_unlock(lane);
  return TN_OK;
}

/* Takes up to n free slots of the lane and adds them to a chain. */
static size_t pop(tn_eager_session *s, tn__eager_lane *lane, size_t n, uint32_t *chain)
{
  size_t got = 0;
  for (; got < n && lane->free != 0; got++) {
    tn__eager_slot *slot = tn__eager_slot_at(s, lane->free);
    lane->free = atomic_load_explicit(&slot->next, memory_order_relaxed);
    atomic_store_explicit(&slot->next, *chain, memory_order_relaxed);
    *chain = slot->number;
  }
  return got;
}

/* Returns a chain of free slots to a lane. */
static void give_back(tn_eager_session *s, uint32_t chain)
{
  tn__eager_lane *lane = tn__eager_lane_lock(s);
  while (chain != 0) {
    tn__eager_slot *slot = tn__eager_slot_at(s, chain);
    chain = atomic_load_explicit(&slot->next, memory_order_relaxed);
    atomic_store_explicit(&slot->next, lane->free, memory_order_relaxed);
    lane->free = slot->number;
  }
  tn__eager_lane_unlock(lane);
}

/* Takes n free slots as a chain, and counts n tensors of that many bytes as allocated. After an
 * error none is taken. */
static tn_status take_slots(tn_eager_session *s, size_t n, int64_t bytes, uint32_t *chain, tn_error *err)
{
  *chain = 0;
  for (size_t got = 0;;) {
    tn__eager_lane *lane = tn__eager_lane_lock(s);
    got += pop(s, lane, n - got, chain);
    if (got == n) {
      uint64_t before = atomic_load_explicit(&lane->allocated, memory_order_relaxed);
      atomic_store_explicit(&lane->allocated, before + n, memory_order_relaxed);
      tn__eager_lane_count(s, lane, bytes);
    }
    tn__eager_lane_unlock(lane);
    if (got == n) return TN_OK;
    tn_status st = refill(s, err);
    if (st == TN_OK) continue;
    give_back(s, *chain);
    return st;
  }
}

bool tn__eager_is_heavy(const tn_tensor *t)
{
  return t->buffer->managed != 0 || t->buffer->desc.release != NULL || t->buffer->desc.holder != NULL;
}

/* The word of a slot is stored last, with release: it makes the handle valid. */
tn_status tn__eager_publish(tn_eager_session *s, tn_tensor *const *tensors, const tn_dtype *dtypes,
                            struct tn__eager_task *task, size_t n, tn_eager_handle *out, tn_error *err)
{
  uint32_t chain;
  int64_t bytes = 0;
  for (size_t i = 0; tensors != NULL && i < n; i++) bytes += (int64_t)tensors[i]->bytes;
  if (n == 0) return TN_OK;
  tn_status st = take_slots(s, n, bytes, &chain, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < n; i++) {
    tn__eager_slot *slot = tn__eager_slot_at(s, chain);
    chain = atomic_load_explicit(&slot->next, memory_order_relaxed);
    slot->dtype = (uint8_t)(tensors != NULL ? tensors[i]->dtype : dtypes[i]);
    slot->device = 0;
    slot->heavy = tensors == NULL || tn__eager_is_heavy(tensors[i]);
    slot->bytes = tensors != NULL ? tensors[i]->bytes : 0;
    slot->task = task;
    atomic_store_explicit(&slot->tensor, tensors != NULL ? tensors[i] : NULL, memory_order_relaxed);
    uint64_t generation = atomic_load_explicit(&slot->word, memory_order_relaxed) >> 32;
    atomic_store_explicit(&slot->word, generation << 32 | TN__EAGER_HELD, memory_order_release);
    out[i].id = id_of(s, slot, generation);
  }
  return TN_OK;
}

void tn__eager_blocks_destroy(tn_eager_session *s)
{
  for (uint32_t b = 0; b < TN__EAGER_BLOCKS; b++)
    tn__free_aligned(atomic_load(&s->blocks[b]), bytes_of(b), _Alignof(tn__eager_slot));
}
