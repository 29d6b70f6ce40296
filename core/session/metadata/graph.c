/* SPDX-License-Identifier: Apache-2.0 */
/* Partition graphs: the instructions of a plan as nodes of one GraphDef per device. As in TensorFlow, feeds are nodes
 * _Arg and fetches are nodes _Retval. A constant is a Const. A loop is one node. Nodes that run under a condition are
 * written without it. */
#include <core/formats/graphdef/graphdef.h>
#include <core/session/metadata/metadata.h>

/* Field numbers of GraphDef (G_), VersionDef (V_), NodeDef (N_), an entry of a map (E_) and
 * AttrValue (A_). */
enum { G_NODE = 1, G_VERSIONS = 4, V_PRODUCER = 1, N_NAME = 1, N_OP = 2, N_INPUT = 3, N_DEVICE = 4, N_ATTR = 5 };
enum { E_KEY = 1, E_VALUE = 2, A_I = 3, A_TYPE = 6 };

#define PRODUCER 1882 /* the version of graphs that is written */

/* The state of writing the graphs of one plan. Names are in the metadata's arena. */
typedef struct drawing {
  tn_run_metadata *m;
  tn_session *session;
  tn_plan *plan;
  tn__sink *sinks;      /* by device */
  uint32_t n_sinks;
  const char **names;   /* by value: the name of the node that outputs it, NULL = not written yet */
  uint32_t *indices;    /* by value: the number of that output */
  const char **instrs;  /* names of the instructions' nodes */
  tn__map taken;        /* names */
} drawing;

/* ---- pieces ---- */

/* Begins a nested message; the result is for tn__sink_end. */
static size_t begin(tn__sink *s, uint32_t field)
{
  tn__sink_tag(s, field, TN__WIRE_BYTES);
  return tn__sink_begin(s);
}

static void put_text(tn__sink *s, uint32_t field, const char *text) { tn__sink_bytes(s, field, tn__slice_of(text)); }

static void put_number_attr(tn__sink *s, const char *name, uint32_t kind, int64_t value)
{
  size_t entry = begin(s, N_ATTR);
  put_text(s, E_KEY, name);
  size_t place = begin(s, E_VALUE);
  tn__sink_int(s, kind, (uint64_t)value);
  tn__sink_end(s, place);
  tn__sink_end(s, entry);
}

static bool put_input(tn__sink *s, const char *before, const char *name, uint32_t index)
{
  tn__text text;
  tn__text_init(&text, 1 << 20);
  tn__text_printf(&text, index == 0 ? "%s%s" : "%s%s:%u", before, name, index);
  bool ok = !text.failed;
  if (ok) tn__sink_bytes(s, N_INPUT, (tn__slice){ tn__text_get(&text), text.size });
  tn__text_fini(&text);
  return ok;
}

/* A unique name: several instructions may be made from one node. */
static const char *free_name(drawing *d, const char *name)
{
  tn__text text;
  const char *kept = NULL;
  bool ok = true;
  for (uint32_t i = 0; ok && kept == NULL; i++) {
    tn__text_init(&text, 1 << 20);
    tn__text_printf(&text, i == 0 ? "%s" : "%s_%u", name, i);
    const char *try = tn__text_get(&text);
    ok = !text.failed;
    if (ok && tn__map_get(&d->taken, try, text.size) == NULL) {
      kept = tn__arena_string(&d->m->arena, try, text.size);
      ok = kept != NULL && tn__map_put(&d->taken, kept, text.size, d, NULL);
    }
    tn__text_fini(&text);
  }
  return ok ? kept : NULL;
}

/* The sink of the device of an operation; NULL if memory ran out. */
static tn__sink *sink_of(drawing *d, const tn_operation *op)
{
  uint32_t device = tn__metadata_device(d->m, d->session, op);
  if (device == TN__NONE) return NULL;
  if (device >= d->n_sinks) {
    tn__sink *more = tn__alloc_array((size_t)device + 1, sizeof *more);
    if (more == NULL) return NULL;
    for (uint32_t i = 0; i <= device; i++) more[i] = i < d->n_sinks ? d->sinks[i] : tn__sink_memory(NULL);
    tn__free(d->sinks, d->n_sinks * sizeof *d->sinks);
    d->sinks = more;
    d->n_sinks = device + 1;
  }
  return &d->sinks[device];
}

/* ---- nodes ---- */

/* Writes attributes: the fields of a node besides its name, op, inputs and device. */
static bool put_rest(tn__sink *s, const tn_operation *op)
{
  void *bytes;
  size_t size;
  if (tn_operation_node_def(op, &bytes, &size, NULL) != TN_OK) return false;
  tn__wire w = tn__wire_read((tn__slice){ bytes, size });
  while (tn__wire_next(&w))
    if (w.field >= N_ATTR) tn__sink_put(s, w.at, (size_t)(w.p - w.at));
  tn_free(bytes);
  return true;
}

static void put_value_attr(tn__sink *s, tn_tensor *t)
{
  tn__lazy_tensor lazy = { .tensor = t };
  const tn__attr attr = { .name = "value", .name_size = 5, .kind = TN_ATTR_TENSOR, .v.tensor = &lazy };
  size_t entry = begin(s, N_ATTR);
  put_text(s, E_KEY, attr.name);
  tn__sink_message(s, E_VALUE, tn__graphdef_write_value, &attr);
  tn__sink_end(s, entry);
}

static bool put_constant(drawing *d, uint32_t value)
{
  const tn__plan_value *v = &d->plan->values[value];
  const tn_operation *op = v->output.op;
  tn__sink *s = sink_of(d, op);
  d->names[value] = s == NULL ? NULL : free_name(d, op->name);
  if (d->names[value] == NULL) return false;
  size_t node = begin(s, G_NODE);
  bool ok = true, own = op->traits & TN_TRAIT_CONSTANT;
  put_text(s, N_NAME, d->names[value]);
  put_text(s, N_OP, own ? op->type : "Const");
  if (own) {
    ok = put_rest(s, op);
  } else { /* folded */
    tn_tensor *t = NULL;
    put_number_attr(s, "dtype", A_TYPE, v->dtype);
    ok = tn__plan_need_elements(d->plan, value, &t, NULL) == TN_OK;
    if (ok) put_value_attr(s, t);
    tn_tensor_unref(t);
  }
  tn__sink_end(s, node);
  return ok;
}

/* "_arg_x_0_2": output 0 of x is feed 2. */
static bool put_end(drawing *d, bool feed, uint32_t number, uint32_t value)
{
  const tn__plan_value *v = &d->plan->values[value];
  const tn_operation *op = v->output.op;
  tn__text text;
  tn__text_init(&text, 1 << 20);
  tn__text_printf(&text, "%s_%s_%d_%u", feed ? "_arg" : "_retval", op->name, (int)v->output.index, number);
  tn__sink *s = text.failed ? NULL : sink_of(d, op);
  const char *name = s == NULL ? NULL : free_name(d, tn__text_get(&text));
  tn__text_fini(&text);
  if (name == NULL) return false;
  if (feed) d->names[value] = name;
  size_t node = begin(s, G_NODE);
  put_text(s, N_NAME, name);
  put_text(s, N_OP, feed ? "_Arg" : "_Retval");
  bool ok = feed || put_input(s, "", d->names[value], d->indices[value]);
  put_number_attr(s, "T", A_TYPE, v->dtype);
  put_number_attr(s, "index", A_I, number);
  tn__sink_end(s, node);
  return ok;
}

/* Writes the node of an instruction. A loop has no attributes; its op is _TnLoop. */
static bool put_instr(drawing *d, uint32_t i)
{
  tn_plan *plan = d->plan;
  const tn__plan_instr *instr = &plan->instrs[i];
  tn__sink *s = sink_of(d, instr->op);
  if (s == NULL) return false;
  bool ok = true;
  size_t node = begin(s, G_NODE);
  put_text(s, N_NAME, d->instrs[i]);
  put_text(s, N_OP, instr->kind == TN__SEGMENT_LOOP ? "_TnLoop" : instr->op->type);
  for (uint32_t k = 0; ok && k < instr->n_inputs; k++) {
    uint32_t v = tn__instr_inputs(plan, instr)[k];
    ok = put_input(s, "", d->names[v], d->indices[v]);
  }
  for (uint32_t k = 0; ok && k < instr->n_after; k++)
    ok = put_input(s, "^", d->instrs[tn__instr_after(plan, instr)[k]], 0);
  put_text(s, N_DEVICE, d->m->devices[s - d->sinks]);
  if (ok && instr->kind != TN__SEGMENT_LOOP) ok = put_rest(s, instr->op);
  tn__sink_end(s, node);
  return ok;
}

/* ---- the plan ---- */

static bool name_instructions(drawing *d)
{
  const tn_plan *plan = d->plan;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const tn__plan_instr *instr = &plan->instrs[i];
    d->instrs[i] = free_name(d, instr->op->name);
    if (d->instrs[i] == NULL) return false;
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      d->names[tn__instr_outputs(plan, instr)[k]] = d->instrs[i];
      d->indices[tn__instr_outputs(plan, instr)[k]] = k;
    }
  }
  return true;
}

static bool put_all(drawing *d)
{
  const tn_plan *plan = d->plan;
  bool ok = name_instructions(d);
  for (uint32_t i = 0; ok && i < plan->n_inputs; i++)
    if (plan->inputs[i] != TN__NONE) ok = put_end(d, true, i, plan->inputs[i]);
  for (uint32_t v = 0; ok && v < plan->n_values; v++)
    if (plan->values[v].kind == TN_VALUE_CONSTANT && plan->values[v].n_uses > 0) ok = put_constant(d, v);
  for (uint32_t i = 0; ok && i < plan->n_instrs; i++) ok = put_instr(d, i);
  for (uint32_t o = 0; ok && o < plan->n_outputs; o++) ok = put_end(d, false, o, plan->outputs[o]);
  return ok;
}

/* Moves the graphs of devices that have nodes to the metadata. */
static bool finish(drawing *d)
{
  tn_run_metadata *m = d->m;
  m->graphs = tn__arena_array(&m->arena, d->n_sinks, sizeof *m->graphs);
  if (m->graphs == NULL) return false;
  for (uint32_t i = 0; i < d->n_sinks; i++) {
    tn__sink *s = &d->sinks[i];
    if (s->used == 0) continue; /* a device of the trace: this graph has no node on it */
    size_t versions = begin(s, G_VERSIONS);
    tn__sink_int(s, V_PRODUCER, PRODUCER);
    tn__sink_end(s, versions);
    if (s->status != TN_OK) return false;
    m->graphs[m->summary.partition_graphs++] = (tn__slice){ s->data, s->used };
    *s = tn__sink_memory(NULL);
  }
  return true;
}

bool tn__metadata_take_graphs(tn_run_metadata *m, tn_session *session, const tn_plan *plan)
{
  drawing d = { .m = m, .session = session, .plan = (tn_plan *)plan };
  tn__map_init(&d.taken);
  d.names = tn__arena_array(&m->arena, plan->n_values, sizeof *d.names);
  d.indices = tn__arena_array(&m->arena, plan->n_values, sizeof *d.indices);
  d.instrs = tn__arena_array(&m->arena, plan->n_instrs, sizeof *d.instrs);
  bool ok = d.names != NULL && d.indices != NULL && d.instrs != NULL && put_all(&d) && finish(&d);
  for (uint32_t i = 0; i < d.n_sinks; i++) tn__sink_fini(&d.sinks[i]);
  tn__free(d.sinks, d.n_sinks * sizeof *d.sinks);
  tn__map_fini(&d.taken);
  return ok;
}
