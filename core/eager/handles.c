/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that take handles, counters, and the functions of a session. */
#include <core/eager/devices.h>
#include <core/eager/queue.h>
#include <core/eager/scope.h>
#include <core/eager/slots.h>
#include <core/eager/sweep.h>
#include <core/formats/wire.h>
#include <tenon/process.h>

/* Refuses a call without a session, or without another argument that it needs. */
static tn_status need(const char *call, const tn_eager_session *s, const char *name, const void *argument,
                      tn_error *err)
{
  if (s != NULL && argument != NULL) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is NULL", call, s == NULL ? "session" : name);
}

/* ---- in and out ---- */

/* Makes a handle of a tensor. On success the tensor's reference is taken over. */
static tn_status make_handle(tn_eager_session *s, tn_tensor *t, tn_eager_handle *out, tn_error *err)
{
  tn_status st = tn__eager_scope_room(s, 1, err);
  if (st == TN_OK) st = tn__eager_publish(s, &t, NULL, NULL, 1, out, err);
  if (st == TN_OK) tn__eager_scope_note(s, out, 1);
  return st;
}

tn_status tn_eager_from_tensor(tn_eager_session *s, tn_tensor *tensor, tn_eager_handle *out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) out->id = 0;
  tn_status st = need("tn_eager_from_tensor", s, "tensor", tensor, err);
  if (st == TN_OK) st = need("tn_eager_from_tensor", s, "out", out, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  tn__eager_help(s);
  st = make_handle(s, tn_tensor_ref(tensor), out, err);
  if (st != TN_OK) tn_tensor_unref(tensor);
  tn__eager_leave(s, &frame, thread);
  return st;
}

tn_status tn_eager_from_data(tn_eager_session *s, tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data,
                             size_t bytes, tn_eager_handle *out, tn_error *err)
{
  tn_tensor *t = NULL;
  tn__error_reset(err);
  if (out != NULL) out->id = 0;
  tn_status st = need("tn_eager_from_data", s, "out", out, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  tn__eager_help(s);
  tn__account *around = tn__account_now;
  tn__account_now = s->runtime.on.account;
  st = tn_tensor_from_data(dtype, dims, rank, data, bytes, &t, err);
  if (st == TN_RESOURCE_EXHAUSTED && tn__eager_reclaim(s)) {
    tn__error_reset(err);
    st = tn_tensor_from_data(dtype, dims, rank, data, bytes, &t, err);
  }
  tn__account_now = around;
  if (st == TN_OK) st = make_handle(s, t, out, err);
  if (st != TN_OK) tn_tensor_unref(t);
  tn__eager_leave(s, &frame, thread);
  return st;
}

/* Returns a reference to the tensor of a handle, and its device unless `device` is NULL. The caller is inside. */
static tn_status get_tensor(tn_eager_session *s, tn_eager_handle handle, tn_tensor **out, uint16_t *device,
                            tn_error *err)
{
  tn__eager_slot *slot;
  tn_status st = tn__eager_pin(s, handle, &slot, err);
  if (st != TN_OK) return st;
  if (device != NULL) *device = slot->device;
  st = tn__eager_slot_tensor(s, slot, out, err);
  tn__eager_unpin(s, slot);
  return st;
}

tn_status tn_eager_tensor(tn_eager_session *s, tn_eager_handle handle, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  tn_status st = need("tn_eager_tensor", s, "out", out, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  st = get_tensor(s, handle, out, NULL, err);
  tn__eager_leave(s, &frame, thread);
  return st;
}

/* Frees the slot of a detached tensor; it is not pinned, and its handle is no longer valid. The
 * tensor leaves the session's memory account unless others use it, too. */
static void free_taken(tn_eager_session *s, tn__eager_slot *slot, tn_tensor *caller)
{
  tn_tensor *t = atomic_exchange(&slot->tensor, NULL);
  tn__eager_task_unref(slot->task);
  slot->task = NULL;
  int64_t bytes = (int64_t)slot->bytes;
  tn__eager_lane *lane = tn__eager_lane_lock(s);
  tn__eager_slot_free(lane, slot);
  atomic_store_explicit(&lane->detached, atomic_load_explicit(&lane->detached, memory_order_relaxed) + 1,
                        memory_order_relaxed);
  tn__eager_lane_count(s, lane, -bytes);
  tn__eager_lane_unlock(lane);
  tn_tensor_unref(t); /* the caller has a reference */
  if (tn_tensor_is_exclusive(caller)) tn__tensor_leave_account(caller);
}

/* Of several threads that detach or release a handle, one succeeds: the exchange in
 * tn__eager_let_go decides. If calls still use the tensor, the last one to unpin it puts the slot
 * into the list of unused ones, and TAKEN tells that it is counted as detached. */
tn_status tn_eager_detach(tn_eager_session *s, tn_eager_handle handle, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  tn_status st = need("tn_eager_detach", s, "out", out, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  st = get_tensor(s, handle, out, NULL, err);
  tn__eager_slot *slot;
  if (st == TN_OK && !tn__eager_let_go(s, handle, TN__EAGER_TAKEN, &slot)) { /* another thread was faster */
    tn_tensor_unref(*out);
    *out = NULL;
    st = tn__eager_bad_handle(s, handle, err);
  } else if (st == TN_OK && slot != NULL) {
    free_taken(s, slot, *out);
  }
  tn__eager_leave(s, &frame, thread);
  return st;
}

tn_status tn_eager_copy_to_device(tn_eager_session *s, tn_eager_handle handle, const char *device, tn_eager_handle *out,
                                  tn_error *err)
{
  tn_tensor *t = NULL, *there = NULL;
  tn__error_reset(err);
  if (out != NULL) out->id = 0;
  tn_status st = need("tn_eager_copy_to_device", s, "device", device, err);
  if (st == TN_OK) st = need("tn_eager_copy_to_device", s, "out", out, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  uint16_t from, to;
  st = tn__eager_device_find(s, device, &to, err);
  if (st == TN_OK && to == TN__EAGER_ANYWHERE) to = 0;
  if (st == TN_OK) st = get_tensor(s, handle, &t, &from, err);
  if (st == TN_OK) st = tn__eager_bring(s, t, from, to, &there, err);
  if (st == TN_OK) st = make_handle(s, there, out, err);
  if (st != TN_OK) tn_tensor_unref(there);
  else if (to != 0) tn__eager_set_device(s, out, 1, to);
  tn_tensor_unref(t);
  tn__eager_leave(s, &frame, thread);
  return st;
}

tn_status tn_eager_device(tn_eager_session *s, tn_eager_handle handle, const char **out, tn_error *err)
{
  tn__eager_slot *slot;
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  tn_status st = need("tn_eager_device", s, "out", out, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  st = tn__eager_pin(s, handle, &slot, err);
  if (st == TN_OK) {
    *out = s->runtime.devices[slot->device].name;
    tn__eager_unpin(s, slot);
  }
  tn__eager_leave(s, &frame, thread);
  return st;
}

/* ---- deleting, waiting ---- */

tn_status tn_eager_safe_point(tn_eager_session *s, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = need("tn_eager_safe_point", s, "session", s, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  tn__eager_safe_point(s);
  tn__eager_leave(s, &frame, thread);
  return TN_OK;
}

tn_status tn_eager_wait(tn_eager_session *s, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = need("tn_eager_wait", s, "session", s, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  st = s->queue == NULL ? TN_OK : tn__eager_queue_wait(s, err, true);
  tn__eager_leave(s, &frame, thread);
  return st;
}

/* ---- counters ---- */

/* Unused tensors of a lane: those in its list, and those that a thread has taken and not deleted
 * yet. */
static uint64_t unused_in(const tn_eager_session *s, const tn__eager_lane *lane)
{
  uint32_t head = atomic_load_explicit(&lane->unused, memory_order_acquire);
  uint64_t n = atomic_load_explicit(&lane->taken, memory_order_relaxed) % TN__EAGER_TAKES;
  return head == 0 ? n : n + atomic_load_explicit(&tn__eager_slot_at(s, head)->depth, memory_order_relaxed);
}

/* Does not enter the session: counters can be read after it was closed. They are only consistent if
 * no other thread uses the session. */
tn_status tn_eager_get_counters(const tn_eager_session *s, tn_eager_counters *out, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = need("tn_eager_get_counters", s, "out", out, err);
  if (st != TN_OK) return st;
  if (!TN_HAS_FIELD(out, tn_eager_counters, allocated))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_get_counters: struct_size is %zu", out->struct_size);
  tn_eager_counters c = { .struct_size = sizeof c };
  int64_t bytes = 0, peak = atomic_load_explicit(&s->peak, memory_order_relaxed);
  for (uint32_t i = 0; i < TN__EAGER_LANES; i++) {
    const tn__eager_lane *lane = &s->lanes[i];
    c.deleted += atomic_load_explicit(&lane->deleted, memory_order_relaxed);
    c.detached += atomic_load_explicit(&lane->detached, memory_order_relaxed);
    c.unused += unused_in(s, lane);
    c.allocated += atomic_load_explicit(&lane->allocated, memory_order_relaxed);
    bytes += atomic_load_explicit(&lane->bytes, memory_order_relaxed);
  }
  /* Handles that another thread deletes at this time may be counted as unused and as deleted, and close
   * leaves lists of deleted handles. */
  uint64_t gone = c.deleted + c.detached, left = gone < c.allocated ? c.allocated - gone : 0;
  if (c.unused > left) c.unused = left;
  c.live = left - c.unused;
  c.bytes = bytes > 0 ? (uint64_t)bytes : 0;
  c.peak_bytes = bytes > peak ? c.bytes : (uint64_t)peak;
  c.pauses = atomic_load_explicit(&s->pauses, memory_order_relaxed);
  c.longest_pause_ns =
      atomic_load_explicit(&s->longest_pause_ns, memory_order_acquire); /* no longer than the sum, read after it */
  c.pause_ns = atomic_load_explicit(&s->pause_ns, memory_order_relaxed);
  tn__copy_sized(out, &c, sizeof c, out->struct_size);
  return TN_OK;
}

/* ---- functions ---- */

/* Removes the nodes from a GraphDef, in place; they are field 1 of the message. Returns the new
 * size. */
static size_t leave_nodes_out(char *bytes, size_t size)
{
  tn__wire w = tn__wire_read((tn__slice){ bytes, size });
  size_t kept = 0;
  while (tn__wire_next(&w)) {
    size_t n = (size_t)(w.p - w.at);
    if (w.field == 1) continue;
    memmove(bytes + kept, w.at, n);
    kept += n;
  }
  return kept;
}

/* Imports the functions of a graph into the session's library, which is made at the first call. */
static tn_status add_functions(tn_eager_session *s, tn_graph *graph, tn_error *err)
{
  void *bytes = NULL;
  size_t size = 0;
  tn_graph *library = NULL;
  tn_status st = tn_graph_export(graph, 0, &bytes, &size, err);
  tn__mutex_lock(&s->mu);
  if (st == TN_OK && s->library == NULL) st = tn_graph_create(&s->library, err);
  if (st == TN_OK) library = tn_graph_ref(s->library);
  tn__mutex_unlock(&s->mu);
  if (st == TN_OK) st = tn_graph_import(library, bytes, leave_nodes_out(bytes, size), NULL, err);
  tn_graph_unref(library);
  tn_free(bytes);
  return st;
}

tn_status tn_eager_add_functions(tn_eager_session *s, tn_graph *graph, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = need("tn_eager_add_functions", s, "graph", graph, err);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  if (st == TN_OK) st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  st = add_functions(s, graph, err);
  tn__eager_leave(s, &frame, thread);
  return st;
}
