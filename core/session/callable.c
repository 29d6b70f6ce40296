/* SPDX-License-Identifier: Apache-2.0 */
/* Callables: prepared signatures, found by a slot number and a generation.
 *
 * An id is generation << 32 | slot number + 1; generations start at 1. Slots are in blocks that never move, so a
 * run finds its slot without a lock. Protocol of a slot: a run enters the slot's gate and then compares the
 * generation. If it is that of the id, `entry` stays valid until the run has left the gate. Release raises the
 * generation and shuts the gate. The thread that the gate tells that no run is inside frees the entry, and only
 * then makes the slot available again. A late run of a released callable may enter and leave at any time. */
#include <core/session/entry.h>
#include <core/session/feeds.h>
#include <core/session/step.h>

#define CALLABLE_BLOCK 8 /* block b holds CALLABLE_BLOCK << b slots */

typedef struct tn__callable_slot {
  tn__gate gate; /* entered by each run */
  _Atomic uint32_t generation; /* odd: in use; even: released, or never used */
  _Atomic(tn__entry_point *) entry; /* a reference; NULL: none */
} tn__callable_slot;

static uint32_t block_of(uint32_t number) { return 31 - (uint32_t)__builtin_clz(number / CALLABLE_BLOCK + 1); }
static size_t bytes_of(uint32_t block) { return ((size_t)CALLABLE_BLOCK << block) * sizeof(tn__callable_slot); }

/* The slot with a number; NULL: its block was not allocated. */
static tn__callable_slot *slot_at(const tn_session *session, uint32_t number)
{
  uint32_t block = block_of(number), first = CALLABLE_BLOCK * ((1u << block) - 1);
  tn__callable_slot *slots = atomic_load_explicit(&session->callable_blocks[block], memory_order_acquire);
  return slots == NULL ? NULL : &slots[number - first];
}

static tn_status bad_callable(tn_callable c, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "callable %#llx: %s", (unsigned long long)c.id, why);
}

/* The slot of an id. TN_INVALID_ARGUMENT if the id was never given out. */
static tn_status find_slot(const tn_session *session, tn_callable c, tn__callable_slot **out, tn_error *err)
{
  uint32_t number = (uint32_t)c.id - 1, generation = (uint32_t)(c.id >> 32);
  *out = NULL;
  if ((uint32_t)c.id != 0 && number / CALLABLE_BLOCK < (1u << (TN__CALLABLE_BLOCKS - 1)))
    *out = slot_at(session, number);
  if (*out == NULL || generation == 0 || generation > atomic_load(&(*out)->generation))
    return bad_callable(c, "no such callable", err);
  return TN_OK;
}

/* Called when the callable was released and no run uses it. */
static void end_slot(tn_session *session, tn__callable_slot *slot, uint32_t number)
{
  tn__entry_unref(atomic_exchange(&slot->entry, NULL));
  tn__mutex_lock(&session->mu);
  if (tn__grow((void **)&session->free_callables, &session->free_room, session->n_free_callables + 1,
               sizeof *session->free_callables))
    session->free_callables[session->n_free_callables++] = number; /* without memory the slot stays unused */
  tn__mutex_unlock(&session->mu);
}

/* ---- making ---- */

/* The number of an unused slot. Allocates its block if necessary; blocks are freed with the
 * session. */
static tn_status take_number(tn_session *session, uint32_t *number, tn_error *err)
{
  tn_status st = TN_OK;
  tn__mutex_lock(&session->mu);
  if (session->n_free_callables > 0) {
    *number = session->free_callables[--session->n_free_callables];
  } else {
    *number = session->n_callables;
    uint32_t block = block_of(*number);
    if (block >= TN__CALLABLE_BLOCKS) {
      st = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the session has %u callables", *number);
    } else if (atomic_load(&session->callable_blocks[block]) == NULL) {
      tn__callable_slot *slots = tn__alloc_aligned(bytes_of(block), _Alignof(tn__callable_slot));
      if (slots != NULL) memset(slots, 0, bytes_of(block));
      if (slots == NULL) st = tn__no_memory(err, "callables", bytes_of(block));
      else atomic_store_explicit(&session->callable_blocks[block], slots, memory_order_release);
    }
    if (st == TN_OK) session->n_callables++;
  }
  tn__mutex_unlock(&session->mu);
  return st;
}

/* Fills a slot. The generation is stored last: it makes the slot valid for runs. Takes over the
 * entry on success. */
static tn_status publish(tn_session *session, tn__entry_point *e, tn_callable *out, tn_error *err)
{
  uint32_t number;
  tn_status st = take_number(session, &number, err);
  if (st != TN_OK) return st;
  tn__callable_slot *slot = slot_at(session, number);
  atomic_store(&slot->entry, e);
  tn__gate_open(&slot->gate);
  uint32_t generation = atomic_load(&slot->generation) + 1;
  atomic_store(&slot->generation, generation | 1); /* odd: in use */
  out->id = (uint64_t)(generation | 1) << 32 | (number + 1);
  return TN_OK;
}

tn_status tn_session_make_callable(tn_session *session, const tn_run_options *options, const char *const *feed_names,
                                   size_t n_feeds, const char *const *fetch_names, size_t n_fetches,
                                   const char *const *targets, size_t n_targets, tn_callable *out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) out->id = 0;
  if (session == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_make_callable: %s is NULL",
                        out == NULL ? "out" : "session");
  const tn__names names = { feed_names, fetch_names, targets, n_feeds, n_fetches, n_targets };
  tn_status st = tn__names_check(&names, err);
  if (st == TN_OK) st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn__entry_point *e = NULL;
  /* The options apply to runs of the callable, not to making it. */
  const tn__stop limits = tn__call_limits(session, NULL, 0), *around = tn__stop_now;
  tn__stop_now = &limits;
  st = tn__entry_resolve(session, &names, NULL, &e, err);
  tn__stop_now = around;
  if (st == TN_OK) st = tn__run_options_check(session, options, err);
  if (st == TN_OK) {
    tn__run_options_copy(&e->options, options);
    tn_cancellation_ref(e->options.cancellation);
    st = publish(session, e, out, err);
  }
  if (st != TN_OK) tn__entry_unref(e);
  tn__session_leave(session);
  return st;
}

/* ---- running ---- */

/* A tensor to write into must have no other holder, be in host memory, and be no feed of the call. */
static tn_status check_given(tn_tensor *const *feeds, size_t n_feeds, tn_tensor *const *fetched, size_t i,
                             tn_error *err)
{
  const tn_tensor *t = fetched[i];
  const char *why = NULL;
  if (t->data == NULL && t->bytes > 0) why = "is not in host memory";
  else if (t->buffer != NULL && t->buffer->desc.ownership == TN_BUFFER_IMMUTABLE) why = "may not be written";
  else if (tn__dtype_is_managed(t->dtype) && t->buffer->desc.ownership == TN_BUFFER_FOREIGN)
    why = "has elements of the program's own";
  else if (atomic_load(&t->refs) != 1 || (t->buffer != NULL && atomic_load(&t->buffer->refs) != 1))
    why = "has other holders";
  for (size_t k = 0; why == NULL && k < n_feeds; k++)
    if (feeds[k] == t) why = "is a feed of the same call";
  for (size_t k = 0; why == NULL && k < i; k++)
    if (fetched[k] == t) why = "is given for another fetch, too";
  return why == NULL ? TN_OK : tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor to write fetch %zu into %s", i, why);
}

/* Runs the entry point of a callable; the slot's gate keeps it alive. */
static tn_status run_entry(tn_session *session, tn__entry_point *e, tn_tensor *const *feeds, size_t n_feeds,
                           tn_tensor **fetched, size_t n_fetches, tn_run_metadata *metadata, tn_error *err)
{
  if (n_feeds != e->n_feeds || n_fetches != e->n_fetches) /* S-CAL-02 */
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "the callable takes %zu feeds and %zu fetches, %zu and %zu were given", e->n_feeds,
                        e->n_fetches, n_feeds, n_fetches);
  for (size_t i = 0; i < n_fetches; i++) {
    tn_status st = fetched[i] == NULL ? TN_OK : check_given(feeds, n_feeds, fetched, i, err);
    if (st != TN_OK) return st;
  }
  tn_status st = tn__feeds_check(e, NULL, feeds, err);
  return st == TN_OK ? tn__step_run(session, e, &e->options, TN__FROM_NOW, feeds, fetched, metadata, err) : st;
}

tn_status tn_session_run_callable(tn_session *session, tn_callable callable, tn_tensor *const *feeds, size_t n_feeds,
                                  tn_tensor **fetched, size_t n_fetches, tn_run_metadata *metadata, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_run_callable: session is NULL");
  if ((feeds == NULL && n_feeds > 0) || (fetched == NULL && n_fetches > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_run_callable: %s is NULL",
                        feeds == NULL ? "feeds" : "fetched");
  for (size_t i = 0; i < n_feeds; i++)
    if (feeds[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor for feed %zu is NULL", i);
  uint32_t thread = tn__thread_number();
  tn_status st = tn__session_enter_as(session, thread, err);
  if (st != TN_OK) return st;
  tn__callable_slot *slot;
  st = find_slot(session, callable, &slot, err);
  if (st == TN_OK) {
    tn__gate_enter_as(&slot->gate, thread);
    if (atomic_load(&slot->generation) == (uint32_t)(callable.id >> 32))
      st = run_entry(session, atomic_load(&slot->entry), feeds, n_feeds, fetched, n_fetches, metadata, err);
    else
      st = bad_callable(callable, "it was released", err); /* S-CAL-03 */
    if (tn__gate_leave_as(&slot->gate, thread) != 0) end_slot(session, slot, (uint32_t)callable.id - 1);
  }
  tn__session_leave_as(session, thread);
  return st;
}

static tn_status warm_entry(tn_session *session, const tn__entry_point *e, const tn_run_options *options,
                            tn_tensor *const *feeds, size_t n_feeds, tn_bool *ran, tn_error *err)
{
  if (n_feeds != e->n_feeds)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the callable takes %zu feeds, %zu were given", e->n_feeds, n_feeds);
  tn_status st = tn__run_options_check(session, options, err);
  if (st == TN_OK) st = tn__feeds_check(e, NULL, feeds, err);
  return st == TN_OK ? tn__step_warm(session, e, options, feeds, ran, err) : st;
}

tn_status tn_session_warm_callable(tn_session *session, tn_callable callable, const tn_run_options *options,
                                   tn_tensor *const *feeds, size_t n_feeds, tn_bool *ran, tn_error *err)
{
  tn__error_reset(err);
  if (ran != NULL) *ran = 0;
  if (session == NULL || (feeds == NULL && n_feeds > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_warm_callable: %s is NULL",
                        session == NULL ? "session" : "feeds");
  for (size_t i = 0; i < n_feeds; i++)
    if (feeds[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor for feed %zu is NULL", i);
  tn__callable_slot *slot;
  tn_status st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  st = find_slot(session, callable, &slot, err);
  if (st == TN_OK) {
    tn__gate_enter(&slot->gate);
    if (atomic_load(&slot->generation) == (uint32_t)(callable.id >> 32))
      st = warm_entry(session, atomic_load(&slot->entry), options, feeds, n_feeds, ran, err);
    else
      st = bad_callable(callable, "it was released", err);
    if (tn__gate_leave(&slot->gate) != 0) end_slot(session, slot, (uint32_t)callable.id - 1);
  }
  tn__session_leave(session);
  return st;
}

/* Does not enter the session, so that callables can be released while it is being closed. */
tn_status tn_session_release_callable(tn_session *session, tn_callable callable, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_release_callable: session is NULL");
  if (tn__forked()) return tn__session_forked(err);
  tn__callable_slot *slot;
  tn_status st = find_slot(session, callable, &slot, err);
  if (st != TN_OK) return st;
  uint32_t generation = (uint32_t)(callable.id >> 32); /* only one release raises it; releasing twice is OK: S-CAL-04 */
  if (atomic_compare_exchange_strong(&slot->generation, &generation, generation + 1) && tn__gate_shut(&slot->gate, 1))
    end_slot(session, slot, (uint32_t)callable.id - 1);
  return TN_OK;
}

void tn__callables_fini(tn_session *session)
{
  for (uint32_t b = 0; b < TN__CALLABLE_BLOCKS; b++) {
    tn__callable_slot *slots = atomic_load(&session->callable_blocks[b]);
    for (size_t i = 0; slots != NULL && i < (size_t)CALLABLE_BLOCK << b; i++)
      tn__entry_unref(atomic_load(&slots[i].entry));
    tn__free_aligned(slots, bytes_of(b), _Alignof(tn__callable_slot));
  }
  tn__free(session->free_callables, session->free_room * sizeof *session->free_callables);
}
