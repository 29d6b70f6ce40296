/* SPDX-License-Identifier: Apache-2.0 */
/* What a step does, in order: the instructions of a schedule are gone through once, with a note for each value of where its content
 * is, and what somebody reads on the other side is copied there before. */
#include "schedule.h"

#define FOREVER (UINT32_MAX - 1)

/* ---- whose memory a value is ---- */

/* What the output of an item shows: an input's memory, or its own. On the CPU a kernel may be told to write over an input, or to
 * have an output that is one: the layout says so by a common source. */
static uint32_t root_of(const gpu_schedule *s, const gpu_item *item, uint32_t out)
{
  const gpu_slot *v = &s->slots[out];
  if (v->kind == GPU_FROM_KNOWN || v->kind == GPU_FROM_GIVEN || (item->computes && item->where == GPU_ON_DEVICE)) return out;
  if (v->source == out) return out;
  for (uint32_t k = 0; k < item->in.n_inputs; k++)
    if (s->slots[item->in.inputs[k]].source == v->source) return s->slots[item->in.inputs[k]].root;
  return v->source != out && !item->computes ? s->slots[v->source].root : out;
}

/* Roots before device kernels write over inputs, and the last reader of each. */
static void find_last(gpu_schedule *s)
{
  for (uint32_t i = 0; i < s->n_items; i++) /* what it makes for others is its own memory wherever that is */
    for (uint32_t k = 0; s->items[i].where == GPU_ON_DEVICE && k < s->items[i].in.n_outputs; k++) {
      gpu_slot *slot = &s->slots[s->items[i].in.outputs[k]];
      if (slot->kind == GPU_FROM_OWN) slot->kind = GPU_FROM_NODE;
    }
  for (uint32_t v = 0; v < s->n_slots; v++) {
    gpu_slot *slot = &s->slots[v];
    slot->root = slot->kind <= GPU_FROM_CONSTANT ? v : GPU_NONE;
    slot->last = 0;
  }
  for (uint32_t i = 0; i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    for (uint32_t k = 0; item->computes && k < item->in.n_inputs; k++) s->slots[s->slots[item->in.inputs[k]].root].last = i;
    for (uint32_t k = 0; k < item->in.n_outputs; k++) s->slots[item->in.outputs[k]].root = root_of(s, item, item->in.outputs[k]);
  }
  for (uint32_t o = 0; o < s->n_outs; o++) s->slots[s->slots[s->outs[o].value].root].last = FOREVER;
  for (uint32_t v = 0; v < s->n_slots; v++) {
    if (!gpu_hands_on(s, v)) continue;
    gpu_slot *root = &s->slots[s->slots[v].root];
    root->last = FOREVER;
    root->crosses = true;
  }
}

/* ---- actions ---- */

typedef struct walk {
  gpu_schedule *s;
  bool on_host;   /* between what the host does */
  bool entered;   /* the host has the shared arena */
  tn_error *err;
} walk;

static tn_status add(walk *w, uint8_t what, uint32_t id)
{
  gpu_schedule *s = w->s;
  if (s->n_actions == s->actions_room) {
    uint32_t room = s->actions_room * 2 + 16;
    gpu_action *more = gpu_new(room, sizeof *more);
    if (more == NULL) return gpu_no_memory(w->err, "a schedule");
    if (s->n_actions > 0) memcpy(more, s->actions, s->n_actions * sizeof *more);
    tn_free(s->actions);
    s->actions = more;
    s->actions_room = room;
  }
  s->actions[s->n_actions++] = (gpu_action){ what, false, id };
  return TN_OK;
}

static void touch(gpu_span *span, uint32_t now)
{
  if (span->first == GPU_NONE) span->first = now;
  span->last = now;
}

static void touch_host(walk *w, uint32_t root, uint32_t now)
{
  gpu_slot *v = &w->s->slots[root];
  if (v->unified) touch(&v->device, now);
  else if (v->kind == GPU_FROM_NODE ? !v->straight : v->device_feed) touch(&v->host, now);
}

static void touch_device(walk *w, uint32_t root, uint32_t now)
{
  gpu_slot *v = &w->s->slots[root];
  if (v->dynamic == GPU_NONE) touch(&v->device, now);
}

static tn_status read_value(walk *w, uint32_t root)
{
  gpu_slot *v = &w->s->slots[root];
  touch_device(w, root, w->s->n_actions);
  touch_host(w, root, w->s->n_actions);
  v->on_host = true;
  w->s->n_copies++;
  return add(w, GPU_DO_READ, root);
}

/* All that the CPU nodes from `first` to the next device node read, and that is on the device only. */
static tn_status begin_host(walk *w, uint32_t first)
{
  gpu_schedule *s = w->s;
  uint32_t before = s->n_actions;
  tn_status st = TN_OK;
  for (uint32_t i = first; st == TN_OK && i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    if (item->computes && item->where == GPU_ON_DEVICE) break;
    for (uint32_t k = 0; st == TN_OK && item->computes && k < item->in.n_inputs; k++) {
      uint32_t root = s->slots[item->in.inputs[k]].root;
      if (root == GPU_NONE || (root = s->slots[root].root) == GPU_NONE) continue;
      if (s->slots[root].on_device && !s->slots[root].on_host && s->slots[root].bytes > 0) st = read_value(w, root);
    }
  }
  if (st == TN_OK && s->n_actions > before) s->actions[s->n_actions - 1].waits = true;
  w->on_host = true;
  if (st != TN_OK || !s->shared) return st;
  w->entered = true;
  return add(w, GPU_DO_ENTER, 0);
}

static tn_status end_host(walk *w)
{
  bool entered = w->entered;
  w->on_host = w->entered = false;
  return entered ? add(w, GPU_DO_LEAVE, 0) : TN_OK;
}

static void set_root(gpu_schedule *s, const gpu_item *item, uint32_t out)
{
  s->slots[out].root = root_of(s, item, out);
}

static tn_status do_host(walk *w, uint32_t i)
{
  gpu_schedule *s = w->s;
  gpu_item *item = &s->items[i];
  tn_status st = w->on_host ? TN_OK : begin_host(w, i);
  if (st != TN_OK) return st;
  uint32_t now = s->n_actions;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) touch_host(w, s->slots[item->in.inputs[k]].root, now);
  for (uint32_t k = 0; k < item->in.n_outputs; k++) {
    uint32_t out = item->in.outputs[k];
    gpu_slot *v = &s->slots[out];
    set_root(s, item, out);
    gpu_slot *root = &s->slots[v->root];
    if (v->root == out && v->kind == GPU_FROM_NODE) {
      v->straight = v->output != GPU_NONE;
      v->unified = s->shared && !v->straight;
    }
    touch_host(w, v->root, now);
    root->on_host = true;
    if (root->kind == GPU_FROM_NODE) root->on_device = root->unified; /* new content */
  }
  return add(w, GPU_DO_HOST, i);
}

static tn_status send(walk *w, uint32_t root)
{
  gpu_slot *v = &w->s->slots[root];
  if (v->on_device || v->bytes == 0) return TN_OK;
  v->on_device = true;
  touch_host(w, root, w->s->n_actions);
  touch_device(w, root, w->s->n_actions);
  w->s->n_copies++;
  return add(w, GPU_DO_UPLOAD, root);
}

/* The device's kernel may write output 0 over an input that nobody reads any more. */
static uint32_t over_input(const gpu_schedule *s, uint32_t i, uint32_t out)
{
  const gpu_item *item = &s->items[i];
  for (uint32_t k = 0; item->op->in_place && k < item->in.n_inputs; k++) {
    uint32_t root = s->slots[item->in.inputs[k]].root;
    const gpu_slot *r = &s->slots[root];
    bool fits = r->kind == GPU_FROM_NODE && r->dynamic == GPU_NONE && !r->straight && r->last == i && r->on_device &&
                r->bytes == s->slots[out].bytes && gpu_reads(item, k);
    for (uint32_t j = 0; fits && j < item->in.n_inputs; j++) /* another shape of it would be read while it changes */
      fits = item->in.inputs[j] == item->in.inputs[k] || s->slots[item->in.inputs[j]].root != root;
    if (fits) return root;
  }
  return out;
}

static uint32_t new_dynamic(gpu_schedule *s, uint32_t value, size_t bytes)
{
  s->dynamic_value[s->n_dynamic] = value;
  s->dynamic_bytes[s->n_dynamic] = bytes;
  return s->n_dynamic++;
}

static bool is_fetched(const gpu_schedule *s, uint32_t value)
{
  for (uint32_t o = 0; o < s->n_outs; o++)
    if (s->outs[o].value == value) return true;
  return false;
}

static void make_output(walk *w, uint32_t i, uint32_t k, uint32_t now)
{
  gpu_schedule *s = w->s;
  uint32_t out = s->items[i].in.outputs[k];
  gpu_slot *v = &s->slots[out];
  v->root = out;
  if (v->bytes > 0 && (v->crosses || (s->executable->session->settings.fetch_device && v->escapes && is_fetched(s, out))))
    v->dynamic = new_dynamic(s, out, v->bytes);
  else if (k == 0)
    v->root = over_input(s, i, out);
  gpu_slot *root = &s->slots[v->root];
  if (v->root != out && v->last > root->last) root->last = v->last;
  else if (v->root == out) root->unified = s->shared && v->dynamic == GPU_NONE;
  touch_device(w, v->root, now);
  root->on_device = true;
  root->on_host = root->unified;
}

static tn_status do_device(walk *w, uint32_t i)
{
  gpu_schedule *s = w->s;
  gpu_item *item = &s->items[i];
  tn_status st = w->on_host ? end_host(w) : TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < item->in.n_inputs; k++)
    if (gpu_reads(item, k)) st = send(w, s->slots[item->in.inputs[k]].root);
  uint32_t first = s->n_actions;
  for (uint32_t c = 0; st == TN_OK && c < item->n_calls; c++) st = add(w, GPU_DO_CALL, item->first_call + c);
  if (st != TN_OK) return st;
  uint32_t last = s->n_actions == first ? first : s->n_actions - 1;
  for (uint32_t k = 0; k < item->in.n_inputs; k++)
    if (gpu_reads(item, k)) {
      touch_device(w, s->slots[item->in.inputs[k]].root, first);
      touch_device(w, s->slots[item->in.inputs[k]].root, last);
    }
  for (uint32_t k = 0; k < item->in.n_outputs; k++) make_output(w, i, k, first);
  for (uint32_t k = 0; k < item->in.n_outputs; k++) touch_device(w, s->slots[item->in.outputs[k]].root, last);
  return TN_OK;
}

/* ---- outputs ---- */

static void end_output(walk *w, uint32_t o)
{
  gpu_schedule *s = w->s;
  gpu_out *out = &s->outs[o];
  gpu_slot *v = &s->slots[out->value], *root = &s->slots[v->root];
  uint32_t now = s->n_actions;
  bool first = true;
  for (uint32_t p = 0; p < o; p++) first = first && s->slots[s->outs[p].value].root != v->root;
  if (root->kind == GPU_FROM_OWN || root->kind == GPU_FROM_GIVEN) {
    out->how = GPU_OUT_TENSOR;
  } else if (root->straight && root->output == o) {
    out->how = GPU_OUT_STRAIGHT;
  } else if (!root->on_device || (root->kind != GPU_FROM_NODE && !root->device_feed) || v->bytes == 0) {
    out->how = GPU_OUT_HOST;
    touch_host(w, v->root, now);
  } else {
    bool stays = s->executable->session->settings.fetch_device;
    out->how = !stays ? GPU_OUT_READ : first && out->value == v->root && root->dynamic != GPU_NONE && !root->device_feed
                                           && !root->crosses ? GPU_OUT_DYNAMIC : GPU_OUT_COPY;
    out->dynamic = out->how == GPU_OUT_DYNAMIC ? root->dynamic : GPU_NONE;
    touch_device(w, v->root, now);
    s->n_copies += out->how != GPU_OUT_DYNAMIC;
  }
}

/* Host memory that is being sent must stay until the host has waited. */
static void keep_sent(gpu_schedule *s)
{
  uint32_t next = s->n_actions;
  for (uint32_t a = s->n_actions; a-- > 0;) {
    const gpu_action *action = &s->actions[a];
    if (action->what == GPU_DO_ENTER || (action->what == GPU_DO_READ && action->waits)) next = a;
    gpu_slot *v = action->what == GPU_DO_UPLOAD ? &s->slots[action->id] : NULL;
    if (v != NULL && v->host.first != GPU_NONE && v->host.last < next) v->host.last = next;
  }
}

/* ---- all of it ---- */

static tn_status begin(gpu_schedule *s, tn_error *err)
{
  uint32_t most = s->n_slots + 1;
  s->dynamic_bytes = gpu_new(most, sizeof *s->dynamic_bytes);
  s->dynamic_value = gpu_new(most, sizeof *s->dynamic_value);
  if (s->dynamic_bytes == NULL || s->dynamic_value == NULL) return gpu_no_memory(err, "a schedule");
  for (uint32_t v = 0; v < s->n_slots; v++) {
    gpu_slot *slot = &s->slots[v];
    slot->dynamic = GPU_NONE;
    if (slot->kind == GPU_FROM_FEED && slot->rank < 0) continue; /* nothing of this segment */
    slot->host.first = slot->device.first = GPU_NONE;
    slot->on_host = slot->kind <= GPU_FROM_KNOWN && !slot->device_feed;
    slot->on_device = slot->device_feed || slot->kind == GPU_FROM_CONSTANT || slot->kind == GPU_FROM_KNOWN;
    if (slot->device_feed) slot->dynamic = new_dynamic(s, v, 0);
  }
  return TN_OK;
}

tn_status gpu_transfers(gpu_schedule *s, tn_error *err)
{
  walk w = { .s = s, .err = err };
  tn_status st = begin(s, err);
  if (st == TN_OK) find_last(s);
  for (uint32_t i = 0; st == TN_OK && i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    if (item->computes) st = item->where == GPU_ON_DEVICE ? do_device(&w, i) : do_host(&w, i);
    else
      for (uint32_t k = 0; k < item->in.n_outputs; k++) set_root(s, item, item->in.outputs[k]);
  }
  if (st == TN_OK && w.on_host) st = end_host(&w);
  for (uint32_t o = 0; st == TN_OK && o < s->n_outs; o++) end_output(&w, o);
  if (st == TN_OK) keep_sent(s);
  return st;
}
