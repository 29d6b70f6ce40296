/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the actions of a step, in order: walks the instructions of a schedule once, records for each value
 * which memories have its content, and copies a value before it is read in another memory. Copies between
 * devices go through host memory. */
#include "device/base.h"
#include "schedule/order.h"

#define FOREVER (UINT32_MAX - 1)
#define COPY_BYTES_PER_NS 10.0
#define LONG_NS 20e6  /* a step that takes longer than this on devices is checked for being stopped meanwhile, */
#define PAUSE_NS 10e6 /* at this interval */

/* ---- the memory of a value ---- */

/* The memory of an item's output: an input's, or its own. On the CPU a kernel may write over an input, or
 * return an input as its output: the layout gives both a common source. */
static uint32_t root_of(const gpu_schedule *s, const gpu_item *item, uint32_t out)
{
  const gpu_slot *v = &s->slots[out];
  if (v->kind == GPU_FROM_KNOWN || v->kind == GPU_FROM_GIVEN || (item->computes && item->where == GPU_ON_DEVICE))
    return out;
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
    slot->root = slot->kind <= GPU_FROM_KNOWN ? v : GPU_NONE;
    slot->last = 0;
  }
  for (uint32_t p = 0; p < s->n_items; p++) {
    const gpu_item *item = &s->items[s->sequence[p]];
    for (uint32_t k = 0; item->computes && k < item->in.n_inputs; k++)
      s->slots[s->slots[item->in.inputs[k]].root].last = p;
    for (uint32_t k = 0; k < item->in.n_outputs; k++)
      s->slots[item->in.outputs[k]].root = root_of(s, item, item->in.outputs[k]);
  }
  for (uint32_t o = 0; o < s->io.n_outs; o++) s->slots[s->slots[s->io.outs[o].value].root].last = FOREVER;
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
  double pause_ns; /* 0: the step is too short for pauses */
  double since_ns; /* what devices were given since the last one */
  uint32_t paused; /* the previous call; GPU_NONE if there is none */
  tn_error *err;
} walk;

static uint32_t current(const walk *w) { return w->s->work.n_actions - 1; }

static tn_status begin(walk *w, uint8_t what, uint32_t id, uint32_t lane)
{
  return gpu_order_begin(w->s->work.order, what, id, lane, w->err);
}

static void touch(gpu_span *span, uint32_t now)
{
  if (span->first == GPU_NONE) span->first = now;
  span->last = now;
}

/* With one arena for both sides there is one site. */
static gpu_place *unified_place(const gpu_schedule *s, uint32_t root) { return gpu_place_at(s, 0, root); }

static uint32_t host_memory(const walk *w, uint32_t root)
{
  const gpu_order *o = w->s->work.order;
  return w->s->slots[root].unified ? gpu_order_device(o, 0, root) : gpu_order_host(o, root);
}

static void touch_host(walk *w, uint32_t root, uint32_t now)
{
  gpu_slot *v = &w->s->slots[root];
  if (v->unified) touch(&unified_place(w->s, root)->span, now);
  else if (v->kind == GPU_FROM_NODE ? !v->straight : v->fed_at != GPU_NONE) touch(&v->host, now);
}

/* The action uses it in host memory. */
static void use_host(walk *w, uint32_t root)
{
  touch_host(w, root, current(w));
  gpu_order_use(w->s->work.order, host_memory(w, root));
}

static void use_place(walk *w, uint32_t site, uint32_t root)
{
  gpu_place *p = gpu_place_at(w->s, site, root);
  if (p->dynamic == GPU_NONE) touch(&p->span, current(w));
  gpu_order_use(w->s->work.order, gpu_order_device(w->s->work.order, site, root));
}

static tn_status read_place(walk *w, uint32_t site, uint32_t root)
{
  tn_status st = gpu_order_after(w->s->work.order, gpu_place_at(w->s, site, root)->written, w->err);
  use_place(w, site, root);
  return st;
}

static tn_status write_place(walk *w, uint32_t site, uint32_t root)
{
  tn_status st = gpu_order_after_uses(w->s->work.order, gpu_order_device(w->s->work.order, site, root), w->err);
  use_place(w, site, root);
  gpu_place_at(w->s, site, root)->written = current(w);
  return st;
}

/* Copies that still read, or write, what it will write over. */
static tn_status await_uses(walk *w, uint32_t root)
{
  tn_status st = TN_OK;
  uint32_t action;
  while (st == TN_OK && (action = gpu_order_unknown_use(w->s->work.order, host_memory(w, root))) != GPU_NONE) {
    st = begin(w, GPU_DO_AWAIT, action, 0);
    if (st == TN_OK) st = gpu_order_after(w->s->work.order, action, w->err);
    if (st == TN_OK) gpu_order_known(w->s->work.order, action);
  }
  return st;
}

/* ---- copies ---- */

static uint32_t site_with(const gpu_schedule *s, uint32_t root)
{
  for (uint32_t k = 0; k < s->n_sites; k++)
    if (gpu_place_at(s, k, root)->there) return k;
  return GPU_NONE;
}

/* The lane in which a value is read from a site to another memory. */
static uint32_t reading_lane(const gpu_schedule *s, uint32_t site, uint32_t root)
{
  uint32_t written = gpu_place_at(s, site, root)->written;
  if (s->sites[site].down != GPU_NONE) return s->sites[site].down;
  return written == GPU_NONE ? s->sites[site].first_lane : s->work.actions[written].lane;
}

static tn_status read_value(walk *w, uint32_t site, uint32_t root)
{
  gpu_slot *v = &w->s->slots[root];
  tn_status st =
      w->s->n_sites > 1 ? await_uses(w, root) : TN_OK; /* queues of one device cannot wait for those of another */
  if (st == TN_OK) st = begin(w, GPU_DO_READ, root, reading_lane(w->s, site, root));
  if (st == TN_OK) st = read_place(w, site, root);
  if (st == TN_OK) st = gpu_order_after_uses(w->s->work.order, host_memory(w, root), w->err);
  if (st != TN_OK) return st;
  use_host(w, root);
  gpu_order_takes(w->s->work.order, (double)v->bytes / COPY_BYTES_PER_NS);
  v->on_host = true;
  w->s->counts.n_copies++;
  return TN_OK;
}

/* The last in each lane of the reads since `first` is waited for. */
static void wait_for_reads(walk *w, uint32_t first)
{
  gpu_schedule *s = w->s;
  for (uint32_t a = first; a < s->work.n_actions; a++) {
    bool last = s->work.actions[a].what == GPU_DO_READ;
    for (uint32_t b = a + 1; last && b < s->work.n_actions; b++)
      last = s->work.actions[b].what != GPU_DO_READ || s->work.actions[b].lane != s->work.actions[a].lane;
    if (!last) continue;
    s->work.actions[a].waits = true;
    gpu_order_known(s->work.order, a);
  }
}

static tn_status send(walk *w, uint32_t site, uint32_t root, uint32_t lane)
{
  gpu_schedule *s = w->s;
  gpu_slot *v = &s->slots[root];
  gpu_place *p = gpu_place_at(s, site, root);
  tn_status st = TN_OK;
  if (p->there || v->bytes == 0) return TN_OK;
  if (!v->on_host) { /* another device has it */
    uint32_t first = s->work.n_actions;
    st = read_value(w, site_with(s, root), root);
    wait_for_reads(w, first);
  }
  if (st == TN_OK) st = begin(w, GPU_DO_UPLOAD, root, s->sites[site].up != GPU_NONE ? s->sites[site].up : lane);
  if (st != TN_OK) return st;
  use_host(w, root);
  p->there = true;
  s->counts.n_copies++;
  st = write_place(w, site, root);
  gpu_order_takes(s->work.order, (double)v->bytes / COPY_BYTES_PER_NS);
  return st;
}

/* ---- what the CPU does ---- */

static tn_status enter(walk *w)
{
  gpu_schedule *s = w->s;
  const gpu_site *site = &s->sites[0];
  tn_status st = begin(w, GPU_DO_ENTER, 0, site->first_lane);
  uint32_t enters = current(w);
  for (uint32_t a = enters; st == TN_OK && a-- > 0;)
    if (s->work.actions[a].lane != 0) st = gpu_order_after(s->work.order, a, w->err);
  gpu_order_known(s->work.order, enters);
  w->entered = true;
  return st;
}

/* All that the CPU nodes from `first` to the next device node read, and that is on a device only. */
static tn_status begin_host(walk *w, uint32_t first)
{
  gpu_schedule *s = w->s;
  uint32_t before = s->work.n_actions;
  tn_status st = TN_OK;
  for (uint32_t p = first; st == TN_OK && p < s->n_items; p++) {
    const gpu_item *item = &s->items[s->sequence[p]];
    if (item->computes && item->where == GPU_ON_DEVICE) break;
    for (uint32_t k = 0; st == TN_OK && item->computes && k < item->in.n_inputs; k++) {
      uint32_t root = s->slots[item->in.inputs[k]].root;
      if (root == GPU_NONE || (root = s->slots[root].root) == GPU_NONE) continue;
      uint32_t site = s->slots[root].on_host || s->slots[root].bytes == 0 ? GPU_NONE : site_with(s, root);
      if (site != GPU_NONE) st = read_value(w, site, root);
    }
  }
  wait_for_reads(w, before);
  w->on_host = true;
  return st == TN_OK && s->memory.shared ? enter(w) : st;
}

static tn_status end_host(walk *w)
{
  bool entered = w->entered;
  w->on_host = w->entered = false;
  if (!entered) return TN_OK;
  tn_status st = begin(w, GPU_DO_LEAVE, 0, w->s->sites[0].first_lane);
  if (st == TN_OK) gpu_order_fence(w->s->work.order, current(w));
  return st;
}

static void set_root(gpu_schedule *s, const gpu_item *item, uint32_t out)
{
  s->slots[out].root = root_of(s, item, out);
}

static void host_makes(walk *w, uint32_t out)
{
  gpu_schedule *s = w->s;
  gpu_slot *root = &s->slots[s->slots[out].root];
  uint32_t r = s->slots[out].root;
  use_host(w, r);
  root->on_host = true;
  if (root->kind == GPU_FROM_CONSTANT || root->kind == GPU_FROM_KNOWN) return;
  for (uint32_t k = 0; k < s->n_sites; k++) { /* new content */
    gpu_place_at(s, k, r)->there = root->unified && k == 0;
    gpu_place_at(s, k, r)->written = GPU_NONE;
  }
}

static tn_status do_host(walk *w, uint32_t i)
{
  gpu_schedule *s = w->s;
  gpu_item *item = &s->items[i];
  tn_status st = w->on_host ? TN_OK : begin_host(w, item->position);
  for (uint32_t k = 0; st == TN_OK && k < item->in.n_outputs; k++) {
    uint32_t out = item->in.outputs[k];
    gpu_slot *v = &s->slots[out];
    set_root(s, item, out);
    if (v->root == out && v->kind == GPU_FROM_NODE) {
      v->straight = v->output != GPU_NONE;
      v->unified = s->memory.shared && !v->straight;
    }
    st = await_uses(w, v->root);
  }
  if (st == TN_OK) st = begin(w, GPU_DO_HOST, i, 0);
  if (st != TN_OK) return st;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) use_host(w, s->slots[item->in.inputs[k]].root);
  for (uint32_t k = 0; k < item->in.n_outputs; k++) host_makes(w, item->in.outputs[k]);
  gpu_order_takes(s->work.order, item->host_ns);
  return TN_OK;
}

/* ---- what a device does ---- */

static bool elsewhere(const gpu_schedule *s, uint32_t site, uint32_t root)
{
  for (uint32_t k = 0; k < s->n_sites; k++) {
    const gpu_place *p = gpu_place_at(s, k, root);
    if (k != site && (p->there || p->span.first != GPU_NONE)) return true;
  }
  return false;
}

/* The device's kernel may write output 0 over an input that has no later reader. */
static uint32_t over_input(const gpu_schedule *s, uint32_t i, uint32_t out)
{
  const gpu_item *item = &s->items[i];
  for (uint32_t k = 0; item->op->in_place && k < item->in.n_inputs; k++) {
    uint32_t root = s->slots[item->in.inputs[k]].root;
    const gpu_slot *r = &s->slots[root];
    const gpu_place *p = gpu_place_at(s, item->site, root);
    bool fits = r->kind == GPU_FROM_NODE && p->dynamic == GPU_NONE && !r->straight && r->last == item->position &&
                p->there && r->bytes == s->slots[out].bytes && gpu_reads(item, k) && !elsewhere(s, item->site, root);
    for (uint32_t j = 0; fits && j < item->in.n_inputs; j++) /* another shape of it would be read while it changes */
      fits = item->in.inputs[j] == item->in.inputs[k] || s->slots[item->in.inputs[j]].root != root;
    if (fits) return root;
  }
  return out;
}

static uint32_t new_dynamic(gpu_schedule *s, uint32_t value, uint32_t site, size_t bytes)
{
  s->dynamics[s->n_dynamic] = (gpu_dynamic){ value, site, bytes };
  return s->n_dynamic++;
}

static bool is_fetched(const gpu_schedule *s, uint32_t value)
{
  for (uint32_t o = 0; o < s->io.n_outs; o++)
    if (s->io.outs[o].value == value) return true;
  return false;
}

/* The first launch writes output k. */
static tn_status make_output(walk *w, uint32_t i, uint32_t k)
{
  gpu_schedule *s = w->s;
  uint32_t out = s->items[i].in.outputs[k], site = s->items[i].site;
  gpu_slot *v = &s->slots[out];
  v->root = out;
  if (v->bytes > 0 && (v->crosses || (gpu_outputs_stay(s) && v->escapes && is_fetched(s, out))))
    gpu_place_at(s, site, out)->dynamic = new_dynamic(s, out, site, v->bytes);
  else if (k == 0)
    v->root = over_input(s, i, out);
  gpu_slot *root = &s->slots[v->root];
  if (v->root != out && v->last > root->last) root->last = v->last;
  else if (v->root == out) root->unified = s->memory.shared && gpu_place_at(s, site, out)->dynamic == GPU_NONE;
  root->on_host = root->unified;
  for (uint32_t other = 0; other < s->n_sites; other++) gpu_place_at(s, other, v->root)->there = other == site;
  return s->items[i].n_calls == 0 ? TN_OK : write_place(w, site, v->root);
}

/* A running kernel cannot be stopped, but launches that are not enqueued yet can be left out. In a long step
 * the calling thread continues when the call before the last pause has ended, so a cancelled or late step
 * ends soon, and devices never idle. */
static tn_status pause_after(walk *w, double ns)
{
  uint32_t before = w->paused;
  w->since_ns += ns;
  if (w->pause_ns == 0 || w->since_ns < w->pause_ns) return TN_OK;
  w->since_ns = 0;
  w->paused = current(w);
  tn_status st = before == GPU_NONE ? TN_OK : begin(w, GPU_DO_AWAIT, before, 0);
  if (st != TN_OK || before == GPU_NONE) return st;
  st = gpu_order_after(w->s->work.order, before, w->err);
  if (st == TN_OK) gpu_order_known(w->s->work.order, before);
  return st;
}

static void choose_pauses(walk *w)
{
  double ns = 0;
  for (uint32_t i = 0; i < w->s->n_items; i++)
    if (w->s->items[i].where == GPU_ON_DEVICE) ns += w->s->items[i].device_ns;
  w->pause_ns = ns < LONG_NS ? 0 : PAUSE_NS;
  w->paused = GPU_NONE;
}

static tn_status launch(walk *w, uint32_t i)
{
  gpu_schedule *s = w->s;
  gpu_item *item = &s->items[i];
  tn_status st = TN_OK;
  for (uint32_t c = 0; st == TN_OK && c < item->n_calls; c++) {
    st = begin(w, GPU_DO_CALL, item->first_call + c, item->lane);
    if (st != TN_OK) break;
    s->calls[item->first_call + c].action = current(w);
    for (uint32_t k = 0; st == TN_OK && k < item->in.n_inputs; k++)
      if (gpu_reads(item, k)) st = read_place(w, item->site, s->slots[item->in.inputs[k]].root);
    for (uint32_t k = 0; st == TN_OK && k < item->in.n_outputs; k++)
      st = c == 0 ? make_output(w, i, k) : write_place(w, item->site, s->slots[item->in.outputs[k]].root);
    gpu_order_takes(s->work.order, item->device_ns / item->n_calls);
    if (st == TN_OK) st = pause_after(w, item->device_ns / item->n_calls);
  }
  for (uint32_t k = 0; item->n_calls == 0 && k < item->in.n_outputs; k++) make_output(w, i, k); /* without elements */
  return st;
}

static tn_status do_device(walk *w, uint32_t i)
{
  gpu_schedule *s = w->s;
  gpu_item *item = &s->items[i];
  tn_status st = w->on_host ? end_host(w) : TN_OK;
  item->lane = gpu_order_choose(s->work.order, i);
  for (uint32_t k = 0; st == TN_OK && k < item->in.n_inputs; k++)
    if (gpu_reads(item, k)) st = send(w, item->site, s->slots[item->in.inputs[k]].root, item->lane);
  return st == TN_OK ? launch(w, i) : st;
}

/* ---- outputs ---- */

static bool is_first_of(const gpu_schedule *s, uint32_t o)
{
  for (uint32_t p = 0; p < o; p++)
    if (s->slots[s->io.outs[p].value].root == s->slots[s->io.outs[o].value].root) return false;
  return true;
}

/* A whole feed: a single operation returns the feed's tensor itself. */
static bool is_view_of_feed(const gpu_schedule *s, const gpu_slot *v)
{
  const gpu_slot *root = &s->slots[v->root];
  return s->executable->placed && root->fed_at != GPU_NONE && v->dtype == root->dtype && v->bytes == root->bytes;
}

static tn_status end_output(walk *w, uint32_t o)
{
  gpu_schedule *s = w->s;
  gpu_out *out = &s->io.outs[o];
  gpu_slot *v = &s->slots[out->value], *root = &s->slots[v->root];
  bool stays = gpu_outputs_stay(s);
  uint32_t site = root->kind == GPU_FROM_NODE || root->fed_at != GPU_NONE ? site_with(s, v->root) : GPU_NONE;
  out->dynamic = GPU_NONE;
  out->site = site;
  if (root->kind == GPU_FROM_OWN || root->kind == GPU_FROM_GIVEN) out->how = GPU_OUT_TENSOR;
  else if (root->straight && root->output == o) out->how = GPU_OUT_STRAIGHT;
  else if (site == GPU_NONE || v->bytes == 0) out->how = GPU_OUT_HOST;
  else out->how = stays ? GPU_OUT_COPY : GPU_OUT_READ;
  if (out->how != GPU_OUT_COPY && out->how != GPU_OUT_READ) return TN_OK;
  const gpu_place *p = gpu_place_at(s, site, v->root);
  if (stays && is_first_of(s, o) && out->value == v->root && p->dynamic != GPU_NONE && root->fed_at == GPU_NONE &&
      !root->crosses) {
    out->how = GPU_OUT_DYNAMIC;
    out->dynamic = p->dynamic;
  } else if (is_view_of_feed(s, v)) {
    out->how = GPU_OUT_FED;
  } else if (stays) {
    out->dynamic = new_dynamic(s, out->value, site, v->bytes);
  }
  s->counts.n_copies += out->how != GPU_OUT_DYNAMIC && out->how != GPU_OUT_FED;
  /* A value that stays is also read, if a step passes memory for it. */
  tn_status st = begin(w, GPU_DO_OUT, o, reading_lane(s, site, v->root));
  return st == TN_OK ? read_place(w, site, v->root) : st;
}

/* Outputs in host memory are kept until the end of the step. */
static void keep_to_the_end(walk *w)
{
  gpu_schedule *s = w->s;
  for (uint32_t o = 0; o < s->io.n_outs; o++) {
    uint32_t root = s->slots[s->io.outs[o].value].root;
    if (s->io.outs[o].how != GPU_OUT_HOST) continue;
    touch_host(w, root, s->work.n_actions);
    gpu_order_keep(s->work.order, host_memory(w, root));
  }
}

/* ---- all of it ---- */

static tn_status begin_values(gpu_schedule *s, tn_error *err)
{
  s->dynamics = gpu_new((size_t)s->n_slots + s->io.n_outs + 1, sizeof *s->dynamics);
  if (s->dynamics == NULL) return gpu_no_memory(err, "a schedule");
  for (uint32_t v = 0; v < s->n_slots; v++) {
    gpu_slot *slot = &s->slots[v];
    slot->host.first = GPU_NONE;
    slot->on_host = slot->kind <= GPU_FROM_KNOWN && slot->fed_at == GPU_NONE;
    for (uint32_t k = 0; k < s->n_sites; k++)
      *gpu_place_at(s, k, v) = (gpu_place){ .span = { .first = GPU_NONE }, .dynamic = GPU_NONE, .written = GPU_NONE,
                                            .there = slot->kind == GPU_FROM_CONSTANT || slot->kind == GPU_FROM_KNOWN ||
                                                     slot->fed_at == k };
    if (slot->kind == GPU_FROM_FEED && slot->fed_at != GPU_NONE)
      gpu_place_at(s, slot->fed_at, v)->dynamic = new_dynamic(s, v, slot->fed_at, 0);
  }
  return TN_OK;
}

static void end_values(gpu_schedule *s)
{
  for (uint32_t v = 0; v < s->n_slots; v++) {
    gpu_slot *slot = &s->slots[v];
    slot->home = slot->kind == GPU_FROM_CONSTANT || slot->kind == GPU_FROM_KNOWN ? GPU_NONE : site_with(s, v);
    for (uint32_t k = 0; k < s->n_sites; k++) slot->sent |= gpu_place_at(s, k, v)->span.first != GPU_NONE;
  }
}

static tn_status walk_items(walk *w)
{
  gpu_schedule *s = w->s;
  tn_status st = TN_OK;
  find_last(s);
  choose_pauses(w);
  for (uint32_t p = 0; st == TN_OK && p < s->n_items; p++) {
    uint32_t i = s->sequence[p];
    const gpu_item *item = &s->items[i];
    if (item->computes) st = item->where == GPU_ON_DEVICE ? do_device(w, i) : do_host(w, i);
    else
      for (uint32_t k = 0; k < item->in.n_outputs; k++) set_root(s, item, item->in.outputs[k]);
  }
  if (st == TN_OK && w->on_host) st = end_host(w);
  for (uint32_t o = 0; st == TN_OK && o < s->io.n_outs; o++) st = end_output(w, o);
  return st;
}

tn_status gpu_transfers(gpu_schedule *s, tn_error *err)
{
  walk w = { .s = s, .err = err };
  tn_status st = gpu_order_create(s, err);
  if (st == TN_OK) st = gpu_sequence(s, err);
  if (st == TN_OK) st = begin_values(s, err);
  if (st == TN_OK) st = walk_items(&w);
  if (st == TN_OK) st = gpu_order_end(s->work.order, err);
  if (st != TN_OK) return st;
  keep_to_the_end(&w);
  end_values(s);
  return TN_OK;
}
