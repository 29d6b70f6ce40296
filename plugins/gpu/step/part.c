/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of plans that the kit runs: the contents of branches, loops and functions. The kit owns all memory,
 * on the host. A part is a schedule whose feeds are its inputs, and whose outputs are read back into the
 * kit's memory. */
#include "step/part.h"

#include "device/base.h"
#include "step/lane.h"

typedef struct gpu_part {
  tn_executable executable; /* as if the part were a plan of one segment */
  gpu_segment segment;
  gpu_schedule schedule;
  gpu_values values; /* a part has no feeds: all tensors are NULL */
  const tn_kit_part *kit;
} gpu_part;

/* ---- reading ---- */

/* Values without readers have no rank. */
static tn_status read_value(gpu_part *p, uint32_t v, tn_layout_value *l, tn_error *err)
{
  gpu_slot *slot = &p->schedule.slots[v];
  tn_plan_value plan = { .struct_size = sizeof plan };
  *l = (tn_layout_value){ .struct_size = sizeof *l };
  tn_status st = tn_kit_layout_value(p->kit->layout, v, l, err);
  if (st == TN_OK) st = tn_plan_get_value(p->kit->plan, v, &plan, err);
  if (st != TN_OK) return st;
  const tn_operation *op = plan.output.op;
  if (l->place == TN_PLACE_CONSTANT && l->source != v) st = tn_plan_get_value(p->kit->plan, l->source, &plan, err);
  if (st != TN_OK) return st;
  *slot = (gpu_slot){ .dims = l->dims,
                      .count = l->count,
                      .bytes = l->bytes,
                      .op = op,
                      .dtype = l->dtype,
                      .rank = l->rank,
                      .source = v,
                      .output = GPU_NONE,
                      .kind = GPU_FROM_FEED,
                      .root = GPU_NONE,
                      .fed_at = GPU_NONE,
                      .home = GPU_NONE };
  if (l->place == TN_PLACE_CONSTANT) { /* or a view of one */
    slot->kind = GPU_FROM_CONSTANT;
    slot->constant = plan.constant;
    slot->data = tn_tensor_data(plan.constant);
  } else if (l->place == TN_PLACE_KNOWN) {
    slot->kind = GPU_FROM_KNOWN;
    slot->data = l->data;
  }
  return st;
}

static bool is_read(const gpu_part *p, uint32_t v) { return p->schedule.slots[v].dtype != TN_DTYPE_INVALID; }

/* The output of an instruction that computes nothing is an input's memory; every other output has its own. */
static tn_status read_output(gpu_part *p, const gpu_item *item, uint32_t v, tn_error *err)
{
  tn_layout_value l, from;
  tn_status st = read_value(p, v, &l, err);
  gpu_slot *slot = &p->schedule.slots[v];
  if (st != TN_OK || slot->kind == GPU_FROM_KNOWN) return st;
  slot->kind = GPU_FROM_NODE;
  for (uint32_t k = 0; st == TN_OK && !item->computes && k < item->in.n_inputs; k++) {
    from = (tn_layout_value){ .struct_size = sizeof from };
    st = tn_kit_layout_value(p->kit->layout, item->in.inputs[k], &from, err);
    if (st == TN_OK && from.source == l.source) slot->source = p->schedule.slots[item->in.inputs[k]].source;
  }
  return st;
}

static tn_status read_item(gpu_part *p, uint32_t i, tn_error *err)
{
  gpu_schedule *s = &p->schedule;
  gpu_item *item = &s->items[i];
  tn_layout_instruction l = { .struct_size = sizeof l };
  tn_layout_value unused;
  item->in.struct_size = sizeof item->in;
  tn_status st = tn_kit_part_instruction(p->kit, p->kit->begin + i, &item->in, err);
  if (st == TN_OK) st = tn_kit_layout_instruction(p->kit->layout, p->kit->begin + i, &l, err);
  if (st != TN_OK) return st;
  item->computes = l.computes;
  item->host_scratch = l.scratch_bytes;
  if (item->in.n_outputs > s->max_outputs) s->max_outputs = item->in.n_outputs;
  for (uint32_t k = 0; st == TN_OK && k < item->in.n_inputs; k++)
    if (!is_read(p, item->in.inputs[k])) st = read_value(p, item->in.inputs[k], &unused, err);
  for (uint32_t k = 0; st == TN_OK && k < item->in.n_outputs; k++) st = read_output(p, item, item->in.outputs[k], err);
  return st;
}

static tn_status read_part(gpu_part *p, tn_error *err)
{
  gpu_schedule *s = &p->schedule;
  tn_status st = TN_OK;
  for (uint32_t v = 0; v < s->n_slots; v++)
    s->slots[v] = (gpu_slot){
      .rank = -1, .source = v, .output = GPU_NONE, .root = GPU_NONE, .fed_at = GPU_NONE, .home = GPU_NONE
    };
  for (uint32_t i = 0; st == TN_OK && i < s->n_items; i++) st = read_item(p, i, err);
  for (uint32_t o = 0; st == TN_OK && o < s->io.n_outs; o++) {
    gpu_slot *v = &s->slots[p->kit->outputs[o]];
    s->io.outs[o] = (gpu_out){ .value = p->kit->outputs[o], .number = o };
    v->escapes = s->slots[v->source].escapes = true;
  }
  return st;
}

/* ---- life ---- */

static void destroy(gpu_part *p)
{
  p->schedule.layout = NULL; /* the kit's */
  gpu_schedule_clear(&p->schedule);
  pthread_mutex_destroy(&p->executable.mu);
  tn_free(p->values.tensors);
  tn_free(p->executable.made_in);
  tn_free(p->executable.crosses);
  tn_free(p);
}

static bool make_lists(gpu_part *p)
{
  gpu_schedule *s = &p->schedule;
  tn_executable *e = &p->executable;
  size_t n = (size_t)e->n_values + 1;
  s->slots = gpu_new(n, sizeof *s->slots);
  s->items = gpu_new((size_t)s->n_items + 1, sizeof *s->items);
  s->io.outs = gpu_new((size_t)s->io.n_outs + 1, sizeof *s->io.outs);
  p->values.tensors = gpu_new(n, sizeof *p->values.tensors);
  e->crosses = e->gives_shapes = gpu_new(n, sizeof *e->crosses);
  e->made_in = e->read_in = e->computed_from = gpu_new(n, sizeof *e->made_in);
  return s->slots != NULL && s->items != NULL && s->io.outs != NULL && p->values.tensors != NULL &&
         e->crosses != NULL && e->made_in != NULL;
}

static gpu_part *make(const tn_executable *around, const tn_kit_part *kit)
{
  gpu_part *p = gpu_new(1, sizeof *p);
  if (p == NULL) return NULL;
  p->kit = kit;
  p->segment =
      (gpu_segment){ .begin = kit->begin, .end = kit->end, .entries = kit->inputs, .n_entries = kit->n_inputs };
  p->executable = (tn_executable){ .plan = kit->plan,
                                   .session = around->session,
                                   .instances_free = gpu_instances_destroy,
                                   .n_values = (uint32_t)tn_plan_n_values(kit->plan),
                                   .n_outputs = kit->n_outputs,
                                   .n_segments = 1,
                                   .segments = &p->segment };
  p->schedule = (gpu_schedule){ .executable = &p->executable,
                                .layout = (tn_plan_layout *)kit->layout,
                                .part = true,
                                .n_slots = p->executable.n_values,
                                .n_items = kit->end - kit->begin,
                                .io.n_outs = kit->n_outputs,
                                .io.n_feeds = kit->n_inputs };
  pthread_mutex_init(&p->executable.mu, NULL);
  if (make_lists(p)) return p;
  destroy(p);
  return NULL;
}

static tn_status build(gpu_part *p, tn_error *err)
{
  tn_status st = read_part(p, err);
  if (st == TN_OK) st = gpu_schedule_sites(&p->schedule, err);
  return st == TN_OK ? gpu_schedule_build(&p->schedule, err) : st;
}

static tn_status take(void *user, const tn_kit_part *kit, void **handle, tn_error *err)
{
  int64_t begun = gpu_now_ns();
  gpu_part *p = make(user, kit);
  tn_status st = p == NULL ? gpu_no_memory(err, "a part of a plan") : build(p, err);
  if (p != NULL && p->schedule.memory.too_large) { /* for one memory of host and device */
    tn_error_clear(err);
    destroy(p);
    p = make(user, kit);
    if (p != NULL) p->schedule.memory.apart = true;
    st = p == NULL ? gpu_no_memory(err, "a part of a plan") : build(p, err);
  }
  if (p == NULL) return st;
  if (st == TN_OK && kit->depth == 0) gpu_placement_note(&p->schedule);
  if (st != TN_OK || p->schedule.counts.n_device == 0) {
    destroy(p);
    return st;
  }
  gpu_schedule_log(&p->schedule, gpu_now_ns() - begun);
  *handle = p;
  return TN_OK;
}

static void release(void *user, void *handle)
{
  (void)user;
  destroy(handle);
}

/* ---- steps ---- */

static tn_status read_given(gpu_run *run, uint32_t action, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_action *a = &s->work.actions[action];
  const gpu_slot *v = &s->slots[s->io.outs[a->id].value];
  gpu_memory from = gpu_memory_of(run->in, v->root, s->io.outs[a->id].site);
  gpu_links l = gpu_step_links(run, action);
  cl_int code = cl.EnqueueReadBuffer(l.queue, from.mem, CL_FALSE, from.at, v->bytes, run->given[a->id]->data, l.n_waits,
                                     l.waits, l.event);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, a->lane, code, "clEnqueueReadBuffer", v->op, err);
}

static tn_status give_host(gpu_run *run, tn_error *err)
{
  (void)err;
  const gpu_schedule *s = run->schedule;
  for (uint32_t o = 0; o < s->io.n_outs; o++) {
    const gpu_slot *v = &s->slots[s->io.outs[o].value];
    if (s->io.outs[o].how == GPU_OUT_HOST && v->bytes > 0)
      memcpy(run->given[o]->data, run->in->views[s->io.outs[o].value].data, v->bytes);
  }
  return TN_OK;
}

/* The kit owns the memory of a part's outputs. */
static const gpu_output_policy part_outputs = { .read = read_given, .give = give_host };

static tn_status run_part(void *user, void *handle, tn_step *step, tn_view *const *inputs, tn_view *const *outputs,
                          tn_error *err)
{
  gpu_part *p = handle;
  gpu_instance *in;
  (void)user;
  tn_status st = gpu_devices_check(p->executable.session, err);
  if (st == TN_OK) st = gpu_instance_take(&p->schedule, &in, err);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < p->kit->n_inputs; i++) {
    in->views[p->kit->inputs[i]].data = inputs[i]->data;
    in->views[p->kit->inputs[i]].buffer = inputs[i]->buffer;
  }
  gpu_run run = { .in = in,
                  .schedule = &p->schedule,
                  .step = step,
                  .values = &p->values,
                  .policy = &part_outputs,
                  .tensors = in->tensors,
                  .outputs = in->outputs,
                  .blocks = in->blocks,
                  .made = in->made,
                  .given = outputs };
  st = gpu_run_step(&run, err);
  gpu_instance_leave(in, st == TN_OK || run.unharmed);
  return st;
}

tn_kit_offload gpu_parts_of(tn_executable *executable)
{
  return (tn_kit_offload){
    .struct_size = TN_KIT_OFFLOAD_SIZE, .user = executable, .take = take, .run = run_part, .release = release
  };
}
