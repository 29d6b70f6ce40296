/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the schedule of a plan with concrete shapes. */
#include "schedule/schedule.h"

#include "device/base.h"
#include "device/program.h"
#include "node/built.h"
#include "schedule/order.h"

#include <stddef.h>

/* ---- reading the plan ---- */

static uint8_t kind_of(const gpu_schedule *s, uint32_t i, const tn_layout_value *l, const tn_plan_value *v)
{
  const tn_executable *e = s->executable;
  if (v->kind == TN_VALUE_CONSTANT) return GPU_FROM_CONSTANT;
  if (v->kind == TN_VALUE_FEED || e->made_in[i] < s->segment) return GPU_FROM_FEED;
  if (l->place == TN_PLACE_KNOWN) return GPU_FROM_KNOWN;
  if (l->place == TN_PLACE_GIVEN || l->rank < 0) return GPU_FROM_GIVEN;
  return l->place == TN_PLACE_OWN || !gpu_is_plain(l->dtype) ? GPU_FROM_OWN : GPU_FROM_NODE;
}

/* A value that an earlier segment made: as the step has it. */
static void read_entry(gpu_schedule *s, gpu_slot *slot, uint32_t i, const tn_tensor *t, int64_t **dims)
{
  slot->source = i;
  if (t == NULL) return; /* this segment does not read it */
  slot->rank = tn_tensor_rank(t);
  slot->count = tn_tensor_elements(t);
  slot->bytes = tn_tensor_bytes(t);
  slot->dims = *dims;
  for (int32_t d = 0; d < slot->rank; d++) *(*dims)++ = tn_tensor_dims(t)[d];
  slot->fed_at = gpu_feed_site(s->executable->session, t);
  if (slot->fed_at != GPU_NONE) s->sites[slot->fed_at].used = true;
  if (s->executable->gives_shapes[i] && gpu_is_plain(slot->dtype)) slot->fed = tn_tensor_data(t);
}

static uint32_t place_of_output(const gpu_schedule *s, uint32_t number)
{
  for (uint32_t o = 0; o < s->io.n_outs; o++)
    if (s->io.outs[o].number == number) return o;
  return GPU_NONE;
}

static tn_status read_value(gpu_schedule *s, uint32_t i, const gpu_values *values, int64_t **dims, tn_error *err)
{
  tn_layout_value l = { .struct_size = sizeof l };
  tn_plan_value v = { .struct_size = sizeof v };
  tn_status st = tn_kit_layout_value(s->layout, i, &l, err);
  if (st == TN_OK) st = tn_plan_get_value(s->executable->plan, i, &v, err);
  if (st != TN_OK) return st;
  gpu_slot *slot = &s->slots[i];
  *slot = (gpu_slot){ .dims = l.dims,
                      .count = l.count,
                      .bytes = l.bytes,
                      .op = v.output.op,
                      .dtype = l.dtype,
                      .rank = l.rank,
                      .source = l.source,
                      .output = GPU_NONE,
                      .kind = kind_of(s, i, &l, &v),
                      .root = GPU_NONE,
                      .fed_at = GPU_NONE,
                      .home = GPU_NONE };
  if (slot->kind == GPU_FROM_KNOWN) slot->data = l.data;
  if (slot->kind == GPU_FROM_NODE && l.place == TN_PLACE_OUTPUT && l.source == i)
    slot->output = place_of_output(s, l.index);
  if (slot->kind == GPU_FROM_CONSTANT) {
    slot->constant = v.constant;
    slot->data = tn_tensor_data(v.constant); /* strings, too: CPU nodes of the schedule read them */
  }
  if (slot->kind == GPU_FROM_FEED) read_entry(s, slot, i, values->tensors[i], dims);
  return TN_OK;
}

static tn_status read_item(gpu_schedule *s, uint32_t i, tn_error *err)
{
  gpu_item *item = &s->items[i];
  size_t number = s->executable->segments[s->segment].begin + i;
  tn_layout_instruction l = { .struct_size = sizeof l };
  item->in.struct_size = sizeof item->in;
  tn_status st = tn_plan_get_instruction(s->executable->plan, number, &item->in, err);
  if (st == TN_OK) st = tn_kit_layout_instruction(s->layout, number, &l, err);
  if (st != TN_OK) return st;
  item->computes = l.computes;
  item->host_scratch = l.scratch_bytes;
  if (item->in.n_outputs > s->max_outputs) s->max_outputs = item->in.n_outputs;
  return TN_OK;
}

static size_t count_dims(const tn_executable *e, const gpu_values *values)
{
  size_t n = 1;
  for (uint32_t v = 0; v < e->n_values; v++)
    if (values->tensors[v] != NULL) n += (size_t)tn_tensor_rank(values->tensors[v]);
  return n;
}

static tn_status read_plan(gpu_schedule *s, const gpu_values *values, tn_error *err)
{
  const tn_executable *e = s->executable;
  const gpu_segment *g = &e->segments[s->segment];
  tn_status st = TN_OK;
  s->n_slots = e->n_values;
  s->n_items = g->end - g->begin;
  s->io.n_outs = g->n_outputs;
  s->io.n_feeds = g->n_entries;
  s->slots = gpu_new(s->n_slots + 1, sizeof *s->slots);
  s->items = gpu_new(s->n_items + 1, sizeof *s->items);
  s->io.outs = gpu_new(s->io.n_outs + 1, sizeof *s->io.outs);
  s->dims = gpu_new(count_dims(e, values), sizeof *s->dims);
  if (s->slots == NULL || s->items == NULL || s->io.outs == NULL || s->dims == NULL)
    return gpu_no_memory(err, "a schedule");
  int64_t *dims = s->dims;
  for (uint32_t i = 0; i < s->io.n_outs; i++)
    s->io.outs[i] = (gpu_out){ .value = tn_plan_output(e->plan, g->outputs[i]), .number = g->outputs[i] };
  for (uint32_t i = 0; st == TN_OK && i < s->n_slots; i++) st = read_value(s, i, values, &dims, err);
  for (uint32_t i = 0; st == TN_OK && i < s->n_items; i++) st = read_item(s, i, err);
  for (uint32_t o = 0; st == TN_OK && o < s->io.n_outs; o++)
    s->slots[s->slots[s->io.outs[o].value].source].escapes = s->slots[s->io.outs[o].value].escapes = true;
  return st;
}

/* ---- programs ---- */

static tn_status request(const gpu_launch *l, const gpu_item *item, gpu_program_request *r, tn_error *err)
{
  size_t size;
  r->text = l->file == NULL ? l->text : gpu_source_find(l->file, &size);
  r->options = l->options == NULL ? "" : l->options;
  r->label = l->file == NULL ? tn_operation_name(item->in.op) : l->file;
  if (r->text != NULL) return TN_OK;
  return tn_error_set(err, TN_INTERNAL, "node '%s': there is no file '%s.cl'", tn_operation_name(item->in.op), l->file);
}

static bool needs_program(const gpu_schedule *s, const gpu_call *c, uint32_t site)
{
  return s->items[c->item].site == site && gpu_has_kernel(c->launch);
}

static tn_status get_programs(gpu_schedule *s, uint32_t site, gpu_program_request *requests, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = 0;
  for (uint32_t c = 0; st == TN_OK && c < s->n_calls; c++)
    if (needs_program(s, &s->calls[c], site))
      st = request(s->calls[c].launch, &s->items[s->calls[c].item], &requests[n++], err);
  if (st == TN_OK && n > 0) st = gpu_programs_get(s->sites[site].device->programs, requests, n, err);
  n = 0;
  for (uint32_t c = 0; st == TN_OK && c < s->n_calls; c++)
    if (needs_program(s, &s->calls[c], site)) s->calls[c].program = requests[n++].program;
  return st;
}

static tn_status get_all_programs(gpu_schedule *s, tn_error *err)
{
  gpu_program_request *requests = gpu_new(s->n_calls + 1, sizeof *requests);
  tn_status st = requests == NULL ? gpu_no_memory(err, "programs") : TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < s->n_sites; k++) st = get_programs(s, k, requests, err);
  tn_free(requests);
  return st;
}

static tn_status collect_calls(gpu_schedule *s, tn_error *err)
{
  for (uint32_t i = 0; i < s->n_items; i++) {
    gpu_item *item = &s->items[i];
    if (item->where == GPU_ON_HOST) {
      item->first_operand = s->n_operands;
      s->n_operands += item->in.n_inputs + item->in.n_outputs;
    }
    if (item->where == GPU_ON_DEVICE) s->n_calls += item->n_calls;
  }
  s->calls = gpu_new(s->n_calls + 1, sizeof *s->calls);
  if (s->calls == NULL) return gpu_no_memory(err, "a schedule");
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_items; i++) {
    gpu_item *item = &s->items[i];
    if (item->where != GPU_ON_DEVICE) continue;
    item->first_call = n;
    for (const gpu_launch *l = item->built->launches; l != NULL; l = l->next)
      s->calls[n++] = (gpu_call){ .launch = l, .item = i };
  }
  s->counts.n_launches = n;
  return TN_OK;
}

/* ---- life ---- */

/* Frees the launches of nodes that run on the CPU. */
static void drop_unused(gpu_schedule *s)
{
  for (uint32_t v = 0; v < s->n_slots; v++) s->slots[v].fed = NULL;
  for (uint32_t i = 0; i < s->n_items; i++) {
    gpu_item *item = &s->items[i];
    if (item->built != NULL) s->possible = true;
    if (item->where == GPU_ON_DEVICE || item->built == NULL) continue;
    gpu_built_destroy(item->built);
    item->built = NULL;
  }
}

void gpu_schedule_log(const gpu_schedule *s, int64_t ns)
{
  const gpu_site *first = &s->sites[0];
  size_t device_bytes = 0, statics_bytes = 0;
  uint32_t n = 0;
  for (uint32_t k = 0; k < s->n_sites; k++) {
    if (s->sites[k].used && n++ == 0) first = &s->sites[k];
    device_bytes += s->sites[k].arena_bytes;
    statics_bytes += s->sites[k].statics_bytes;
  }
  tn_log(TN_LOG_INFO,
         "gpu: a plan for %s%s: %u nodes on the device, %u on the CPU; a step has %u launches and %u copies in %u "
         "queues; arena %zu "
         "bytes, host %zu, constants %zu; made in %.1f ms",
         first->device->name, n > 1 ? " and others" : "", s->counts.n_device, s->counts.n_host, s->counts.n_launches,
         s->counts.n_copies, s->n_lanes > 0 ? s->n_lanes - 1 : 0, device_bytes,
         s->memory.host_bytes + s->memory.host_scratch, s->memory.constant_bytes + statics_bytes, (double)ns / 1e6);
}

/* Lays out the segment. Layouts of earlier segments exist, so the layout only advances through them. */
static tn_status lay_out(gpu_schedule *s, const gpu_values *values, tn_error *err)
{
  const tn_executable *e = s->executable;
  tn_view **views = gpu_new(e->n_values + 1, sizeof *views);
  if (views == NULL) return gpu_no_memory(err, "a layout");
  for (uint32_t v = 0; values->views != NULL && v < e->n_values; v++)
    views[v] = values->views[v].dtype != TN_DTYPE_INVALID ? &values->views[v] : NULL;
  tn_status st = tn_kit_layout(e->plan, values->feeds, values->n_feeds, &s->layout, err);
  for (uint32_t k = 1; st == TN_OK && k <= s->segment; k++) st = tn_kit_layout_next(s->layout, views, e->n_values, err);
  tn_free(views);
  return st;
}

/* Whether the value's memory is known only in a step. */
static bool is_late(const gpu_slot *root)
{
  if (root->kind == GPU_FROM_FEED) return root->fed_at == GPU_NONE;
  return root->kind == GPU_FROM_NODE ? root->straight : root->kind > GPU_FROM_NODE;
}

/* Lists the values that a step passes, or that a kernel makes. */
static tn_status find_late(gpu_schedule *s, tn_error *err)
{
  s->memory.late = gpu_new(s->n_slots + 1, sizeof *s->memory.late);
  if (s->memory.late == NULL) return gpu_no_memory(err, "a schedule");
  for (uint32_t v = 0; v < s->n_slots; v++) {
    const gpu_slot *root = s->slots[v].root == GPU_NONE ? NULL : &s->slots[s->slots[v].root];
    if (root == NULL || (root->kind == GPU_FROM_FEED && root->rank < 0)) continue; /* not read in this segment */
    if (is_late(root)) s->memory.late[s->memory.n_late++] = v;
  }
  return TN_OK;
}

static bool count_nodes(gpu_schedule *s)
{
  for (uint32_t i = 0; i < s->n_items; i++) {
    s->counts.n_device += s->items[i].where == GPU_ON_DEVICE;
    s->counts.n_host += s->items[i].where == GPU_ON_HOST;
    if (s->items[i].where == GPU_ON_DEVICE) s->sites[s->items[i].site].used = true;
  }
  return s->counts.n_device > 0;
}

static tn_status make_steps(gpu_schedule *s, tn_error *err)
{
  tn_status st = collect_calls(s, err);
  if (st == TN_OK) st = gpu_transfers(s, err);
  if (st == TN_OK) gpu_faults_plan(s);
  if (st == TN_OK) st = find_late(s, err);
  if (st == TN_OK) st = gpu_arenas(s, err);
  if (st == TN_OK) st = get_all_programs(s, err);
  if (st == TN_OK) st = gpu_bindings(s, err);
  return st == TN_OK ? gpu_statics(s, err) : st;
}

tn_status gpu_schedule_sites(gpu_schedule *s, tn_error *err)
{
  const tn_runtime_session *session = s->executable->session;
  s->sites = gpu_new(session->settings.n_devices, sizeof *s->sites);
  if (s->sites == NULL) return gpu_no_memory(err, "a schedule");
  s->n_sites = (uint32_t)session->settings.n_devices;
  for (uint32_t k = 0; k < s->n_sites; k++)
    s->sites[k] = (gpu_site){ .device = session->settings.devices[k], .budget = session->budgets[k] };
  return TN_OK;
}

/* One memory for both sides, unless other devices take part. */
static bool shares(const gpu_schedule *s)
{
  bool copies = s->memory.apart || s->executable->session->settings.copies;
  return s->n_sites == 1 && s->sites[0].used && s->sites[0].device->host_visible && !copies;
}

tn_status gpu_schedule_build(gpu_schedule *s, tn_error *err)
{
  s->places = gpu_new((size_t)s->n_slots * s->n_sites + 1, sizeof *s->places);
  tn_status st = s->places == NULL ? gpu_no_memory(err, "a schedule") : gpu_nodes_plan(s, err);
  if (st == TN_OK) st = gpu_choose_places(s, err);
  if (st == TN_OK) drop_unused(s);
  bool device = st == TN_OK && count_nodes(s);
  s->memory.shared = device && shares(s);
  if (st == TN_OK && (device || s->executable->placed || s->executable->n_segments > 1)) st = make_steps(s, err);
  return st;
}

static tn_status make(gpu_schedule *s, const gpu_values *values, tn_error *err)
{
  int64_t begun = gpu_now_ns();
  tn_status st = gpu_schedule_sites(s, err);
  if (st == TN_OK) st = lay_out(s, values, err);
  if (st == TN_OK) st = read_plan(s, values, err);
  if (st == TN_OK) st = gpu_schedule_build(s, err);
  if (st == TN_OK) gpu_placement_note(s);
  if (st == TN_OK) gpu_schedule_log(s, gpu_now_ns() - begun);
  return st;
}

static void clear_made(gpu_schedule *s);

tn_status gpu_schedule_complete(gpu_schedule *s, const gpu_values *values, tn_error *err)
{
  tn_status st = make(s, values, err);
  if (!s->memory.too_large) return st;
  tn_error_clear(err);
  clear_made(s);
  memset((char *)s + offsetof(gpu_schedule, dims), 0, sizeof *s - offsetof(gpu_schedule, dims));
  s->memory.apart = true;
  return make(s, values, err);
}

static void clear_item(gpu_item *item)
{
  for (uint32_t p = 0; item->packs != NULL && p < item->built->n_packs; p++) gpu_constant_put(item->packs[p]);
  tn_free(item->packs);
  tn_free(item->tables);
  tn_free(item->reads);
  tn_free(item->reason);
  gpu_built_destroy(item->built);
}

static void clear_made(gpu_schedule *s)
{
  for (uint32_t i = 0; s->items != NULL && i < s->n_items; i++) clear_item(&s->items[i]);
  for (size_t p = 0; s->places != NULL && p < (size_t)s->n_slots * s->n_sites; p++) gpu_constant_put(s->places[p].on);
  for (uint32_t k = 0; k < s->n_sites; k++) gpu_free(&s->sites[k].statics);
  gpu_order_destroy(s->work.order);
  tn_free(s->sites);
  tn_free(s->lanes);
  tn_free(s->places);
  tn_free(s->work.waits);
  tn_free(s->sequence);
  tn_free(s->slots);
  tn_free(s->items);
  tn_free(s->calls);
  tn_free(s->work.actions);
  tn_free(s->io.outs);
  tn_free(s->dims);
  tn_free(s->memory.late);
  tn_free(s->io.bindings);
  tn_free(s->dynamics);
  tn_kit_layout_release(s->layout);
}

void gpu_schedule_clear(gpu_schedule *s)
{
  if (s->entry.idle != NULL) s->executable->instances_free(s->entry.idle);
  clear_made(s);
  tn_free(s->entry.key);
}
