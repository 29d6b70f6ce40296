/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions the device could run, and with which launches. */
#include "device/base.h"
#include "node/built.h"
#include "node/table.h"
#include "schedule/schedule.h"

typedef struct planner {
  gpu_schedule *schedule;
  gpu_value *values; /* of the largest node: inputs, then outputs */
  uint32_t *made_at; /* by value: the site that makes or holds it; GPU_NONE: the CPU */
} planner;

static gpu_value value_of(const gpu_schedule *s, uint32_t id)
{
  const gpu_slot *v = &s->slots[id], *source = &s->slots[v->source];
  return (gpu_value){ .dtype = v->dtype,
                      .rank = v->rank,
                      .dims = v->dims,
                      .count = v->count,
                      .bytes = v->bytes,
                      .host = source->data != NULL ? source->data : source->fed,
                      .constant = source->kind == GPU_FROM_CONSTANT };
}

static char *copy_text(const char *text)
{
  size_t n = strlen(text) + 1;
  char *copy = tn_alloc(n);
  if (copy != NULL) memcpy(copy, text, n);
  return copy;
}

static void refuse(gpu_item *item, const char *why)
{
  tn_free(item->reason);
  item->reason = copy_text(why);
}

/* Why no kernel of the device can compute the node, whatever its op; NULL: one may. */
static const char *unfit(const gpu_schedule *s, const gpu_item *item, const gpu_op *op)
{
  for (uint32_t k = 0; k < item->in.n_inputs; k++) {
    const gpu_slot *v = &s->slots[item->in.inputs[k]];
    if (!gpu_is_plain(v->dtype)) return "an input's elements are no plain numbers";
    if (v->rank < 0) return "an input's shape is known only when it is computed";
    if (k < 32 && (op->host_inputs >> k & 1) != 0 && s->slots[v->source].data == NULL &&
        s->slots[v->source].fed == NULL && v->count > 0)
      return "it needs an input that is known only in the step";
  }
  for (uint32_t k = 0; k < item->in.n_outputs; k++) {
    const gpu_slot *v = &s->slots[item->in.outputs[k]];
    uint8_t kind = s->slots[v->source].kind;
    if (!gpu_is_plain(v->dtype)) return "an output's elements are no plain numbers";
    if (v->rank < 0 || kind == GPU_FROM_GIVEN) return "its kernel makes the output";
  }
  return NULL;
}

static void note_read(gpu_item *item, uint32_t i)
{
  if (i < item->in.n_inputs) item->reads[i / 32] |= UINT32_C(1) << i % 32;
}

/* Inputs that no launch has are not sent. */
static tn_status note_reads(gpu_item *item, tn_error *err)
{
  item->reads = gpu_new(item->in.n_inputs / 32 + 1, sizeof *item->reads);
  if (item->reads == NULL) return gpu_no_memory(err, "a node");
  item->n_calls = 0;
  for (const gpu_launch *l = item->built->launches; l != NULL; l = l->next) {
    item->n_calls++;
    if (l->copies) note_read(item, l->copy_from);
    for (size_t a = 0; a < l->n_args; a++)
      if (l->args[a].kind == GPU_ARG_INPUT) note_read(item, l->args[a].index);
  }
  return TN_OK;
}

static tn_status plan_item(planner *p, gpu_item *item, const gpu_op *op, tn_error *err)
{
  gpu_schedule *s = p->schedule;
  gpu_node node = { .op = item->in.op,
                    .device = s->sites[item->site].device,
                    .blas = s->executable->session->settings.blas,
                    .n_inputs = item->in.n_inputs,
                    .n_outputs = item->in.n_outputs,
                    .inputs = p->values,
                    .outputs = p->values + item->in.n_inputs };
  tn_error why = TN_ERROR_INIT;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) p->values[k] = value_of(s, item->in.inputs[k]);
  for (uint32_t k = 0; k < item->in.n_outputs; k++) p->values[item->in.n_inputs + k] = value_of(s, item->in.outputs[k]);
  tn_status st = gpu_node_plan(&node, op, &why);
  if (st == TN_OK) {
    item->op = op;
    item->built = node.built;
    item->device_ns = node.cost_ns;
    st = note_reads(item, err);
  } else if (st == TN_UNIMPLEMENTED) {
    refuse(item, tn_error_message(&why));
    st = TN_OK;
  } else {
    tn_error_copy(err, &why);
    tn_error_prefix(err, "node '%s' on a device", tn_operation_name(item->in.op));
    tn_error_set_node(err, tn_operation_name(item->in.op));
  }
  tn_error_clear(&why);
  return st;
}

static tn_status try_item(planner *p, gpu_item *item, tn_error *err)
{
  const gpu_op *op = gpu_op_find(item->in.op);
  const char *why = op == NULL ? "the device has no kernel for it" : unfit(p->schedule, item, op);
  if (why == NULL) return plan_item(p, item, op, err);
  refuse(item, why);
  return TN_OK;
}

/* "/job:localhost/device:GPU:1", "/gpu:0": finds the type and the number after it. */
static uint8_t wanted(const char *name, const char **number)
{
  static const struct { const char *text; uint8_t where;
  } types[] = {
    { "device:gpu:", GPU_ON_DEVICE },
    { "/gpu:", GPU_ON_DEVICE },
    { "device:cpu:", GPU_ON_HOST },
    { "/cpu:", GPU_ON_HOST },
  };
  for (const char *at = name; *at != 0; at++)
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
      size_t n = 0;
      while (types[i].text[n] != 0 && at[n] != 0 && (at[n] | 0x20) == (types[i].text[n] | 0x20)) n++;
      *number = at + n;
      if (types[i].text[n] == 0) return types[i].where;
    }
  return GPU_ON_NOTHING;
}

/* The device that its name says, where the session has that one; else the one where its inputs are made; else
 * the first. */
static uint32_t choose_site(const gpu_schedule *s, const gpu_item *item, const char *number, const uint32_t *made_at)
{
  uint32_t site = 0, found = GPU_NONE;
  for (; item->wanted == GPU_ON_DEVICE && *number >= '0' && *number <= '9' && site < s->n_sites; number++)
    site = site * 10 + (uint32_t)(*number - '0');
  if (item->wanted == GPU_ON_DEVICE) return site < s->n_sites ? site : 0;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) {
    uint32_t at = made_at[item->in.inputs[k]];
    if (at == GPU_NONE || at == found) continue;
    if (found != GPU_NONE) return 0;
    found = at;
  }
  return found == GPU_NONE ? 0 : found;
}

static tn_status plan_one(planner *p, gpu_item *item, tn_error *err)
{
  gpu_schedule *s = p->schedule;
  const char *number;
  item->wanted = wanted(tn_operation_device(item->in.op), &number);
  item->site = choose_site(s, item, number, p->made_at);
  tn_status st = TN_OK;
  if (item->computes && item->wanted == GPU_ON_HOST) refuse(item, "its device is a CPU");
  else if (item->computes && s->executable->session->settings.placement == GPU_PLACE_HOST &&
           item->wanted == GPU_ON_NOTHING)
    refuse(item, "the setting placement=host");
  else if (item->computes) st = try_item(p, item, err);
  for (uint32_t k = 0; k < item->in.n_outputs; k++)
    p->made_at[item->in.outputs[k]] = item->computes && item->built == NULL ? GPU_NONE : item->site;
  return st;
}

tn_status gpu_nodes_plan(gpu_schedule *s, tn_error *err)
{
  planner p = { .schedule = s };
  uint32_t most = 1;
  for (uint32_t i = 0; i < s->n_items; i++) {
    uint32_t n = s->items[i].in.n_inputs + s->items[i].in.n_outputs;
    if (n > most) most = n;
  }
  p.values = gpu_new(most, sizeof *p.values);
  p.made_at = gpu_new(s->n_slots + 1, sizeof *p.made_at);
  tn_status st = p.values == NULL || p.made_at == NULL ? gpu_no_memory(err, "a plan") : TN_OK;
  for (uint32_t v = 0; st == TN_OK && v < s->n_slots; v++) p.made_at[v] = s->slots[v].fed_at;
  for (uint32_t i = 0; st == TN_OK && i < s->n_items; i++) st = plan_one(&p, &s->items[i], err);
  tn_free(p.values);
  tn_free(p.made_at);
  return st;
}
