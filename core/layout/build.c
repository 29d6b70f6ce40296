/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a layout in passes over the instructions of a segment:
 *
 *   prepare   kernels determine output shapes, views and scratch
 *   outputs   fetched values are computed in the memory of the step's outputs
 *   lives     finds how long each block is needed
 *   tasks     finds calls that may run concurrently, if more than one thread may work (tasks.h)
 *   in place  an output takes over the block of an input whose last reader is its call
 *   assign    offsets in the arena
 *   tape      the calls, with their operands
 *   aliases   values that each step has to bind */
#include <core/base/threads/stop.h>
#include <core/layout/builder.h>

/* Maximum size of a value that is kept with the layout because it follows from shapes; steps compute larger ones again.
 * Operands of shapes are never larger: paddings, the largest, are two int64 for each of 254 dimensions. */
#define MOST_KNOWN_BYTES 4096

/* Initialises a slot that is not a view. */
static tn__slot *new_slot(tn__layout_builder *b, uint32_t id, uint32_t value, uint8_t store)
{
  b->in_place[id] = TN__NONE;
  tn__slot *s = &b->layout->slots[id];
  *s = (tn__slot){ .value = value, .root = id, .store = store, .dtype = b->plan->values[value].dtype };
  return s;
}

/* ---- set-up ---- */

/* The layout's arrays are in its arena, the builder's on the heap. */
static tn_status allocate(tn__layout_builder *b)
{
  const tn__segment *seg = b->segment;
  for (uint32_t i = seg->begin; i < seg->end; i++) {
    const tn__plan_instr *in = &b->plan->instrs[i];
    b->n_ids += in->n_inputs + in->n_outputs;
    if (in->n_inputs > b->max_inputs) b->max_inputs = in->n_inputs;
    if (in->n_outputs > b->max_outputs) b->max_outputs = in->n_outputs;
  }
  tn__arena *a = &b->layout->arena;
  size_t n_instr = seg->end - seg->begin, n_slots = seg->n_slots;
  b->layout->n_slots = seg->n_slots;
  b->layout->slots = tn__arena_array(a, n_slots + 1, sizeof *b->layout->slots);
  b->layout->tape = tn__arena_array(a, n_instr + 1, sizeof *b->layout->tape);
  b->layout->shape_states = tn__arena_array(a, n_instr + 1, sizeof *b->layout->shape_states);
  b->layout->choices = tn__arena_array(a, n_instr + 1, sizeof *b->layout->choices);
  b->in_place = tn__alloc_array(n_slots + 1, sizeof *b->in_place);
  b->last = tn__alloc_array(n_slots + 1, sizeof *b->last);
  b->packed = tn__alloc_array(n_slots + 1, sizeof *b->packed);
  b->has_form = tn__alloc_array(b->max_inputs + 1, sizeof *b->has_form);
  b->notes = tn__alloc_array(n_instr + 1, sizeof *b->notes);
  b->views = tn__alloc_array(b->max_inputs + 1, sizeof *b->views);
  b->prepared = tn__alloc_array(b->max_outputs + 1, sizeof *b->prepared);
  b->lives = tn__alloc_array(n_slots + n_instr + 1, sizeof *b->lives);
  if (seg->n_operands > 0)
    b->layout->key.by_value = tn__arena_array(a, (size_t)seg->n_entries + 1, sizeof *b->layout->key.by_value);
  bool ok = (b->layout->key.by_value != NULL || seg->n_operands == 0) && b->layout->slots != NULL &&
            b->layout->tape != NULL && b->layout->shape_states != NULL && b->layout->choices != NULL &&
            b->in_place != NULL && b->last != NULL && b->packed != NULL && b->has_form != NULL && b->notes != NULL &&
            b->views != NULL && b->prepared != NULL && b->lives != NULL;
  return ok ? TN_OK : tn__builder_no_memory(b);
}

static void builder_fini(tn__layout_builder *b)
{
  size_t n_instr = b->segment->end - b->segment->begin, n_slots = b->segment->n_slots;
  while (b->passing != NULL) {
    tn__passing *p = b->passing;
    b->passing = p->next;
    tn__free_aligned(b->layout->slots[p->slot].known, p->bytes, TN_ALIGN);
    b->layout->slots[p->slot].known = NULL;
    tn__free(p, sizeof *p);
  }
  tn__task_order_destroy(b->order);
  tn__free(b->places, b->place_room * sizeof *b->places);
  tn__free(b->again, b->again_room * sizeof *b->again);
  tn__free(b->in_place, (n_slots + 1) * sizeof *b->in_place);
  tn__free(b->last, (n_slots + 1) * sizeof *b->last);
  tn__free(b->packed, (n_slots + 1) * sizeof *b->packed);
  tn__free(b->has_form, (b->max_inputs + 1) * sizeof *b->has_form);
  tn__free(b->notes, (n_instr + 1) * sizeof *b->notes);
  tn__free(b->views, (b->max_inputs + 1) * sizeof *b->views);
  tn__free(b->prepared, (b->max_outputs + 1) * sizeof *b->prepared);
  tn__free(b->lives, (n_slots + n_instr + 1) * sizeof *b->lives);
}

static tn_status add_entries(tn__layout_builder *b, const tn__entry *entries)
{
  for (uint32_t i = 0; i < b->segment->n_entries; i++) {
    const tn__entry *e = &entries[i];
    tn__slot *s = new_slot(b, i, b->segment->entries[i], TN_STORE_ENTRY);
    s->rank = e->rank;
    s->count = e->count;
    s->dims = tn__arena_array(&b->layout->arena, (size_t)e->rank, sizeof *s->dims);
    if (s->dims == NULL) return tn__builder_no_memory(b);
    if (e->rank > 0) __builtin_memcpy(s->dims, e->dims, (size_t)e->rank * sizeof *s->dims);
    s->bytes = (size_t)s->count * tn_dtype_size(s->dtype);
  }
  return TN_OK;
}

/* ---- prepare ---- */

static tn_status add_constant_slot(tn__layout_builder *b, uint32_t id, uint32_t value)
{
  const tn_tensor *t = b->plan->values[value].constant;
  if (b->layout->slots[id].dims == t->dims) return TN_OK; /* it has its slot already */
  tn__slot *s = new_slot(b, id, value, TN_STORE_CONSTANT);
  s->rank = t->rank;
  s->dims = t->dims;
  s->count = t->count;
  s->bytes = t->bytes;
  bool decides = t->dtype == TN_INT32 || t->dtype == TN_INT64; /* prepare may derive shapes from it */
  if (decides) return tn__plan_need_elements(b->plan, value, &s->elements, b->err);
  s->elements = tn__plan_elements(b->plan, value);
  return TN_OK;
}

/* The inputs as prepare sees them. Only constants, operands and known values have data. */
static tn_status fill_views(tn__layout_builder *b, const tn__plan_instr *instr, const tn__entry *entries)
{
  tn_status st = TN_OK;
  const uint32_t *in = tn__instr_inputs(b->plan, instr);
  for (uint32_t k = 0; st == TN_OK && k < instr->n_inputs; k++) {
    uint32_t slot = tn__input_slots(b, instr)[k];
    if (b->plan->values[in[k]].kind == TN_VALUE_CONSTANT) st = add_constant_slot(b, slot, in[k]);
    const tn__slot *s = &b->layout->slots[slot];
    tn_view v = { .dims = s->dims, .count = s->count, .dtype = s->dtype, .rank = s->rank };
    if (s->store == TN_STORE_CONSTANT && s->root == slot) v.data = s->elements == NULL ? NULL : s->elements->data;
    if (tn__layout_reads_operand(b->plan, b->segment, instr, k)) v.data = entries[slot].data;
    if (b->layout->slots[s->root].known != NULL) v.data = b->layout->slots[s->root].known;
    b->views[k] = v;
  }
  return st;
}

/* Decides the store of an output, as far as prepare determines it. */
static tn_status add_output_slot(tn__layout_builder *b, const tn__plan_instr *instr, uint32_t k)
{
  const struct tn__prepared_output *o = &b->prepared[k];
  tn__slot *s = new_slot(b, tn__output_slots(b, instr)[k], tn__instr_outputs(b->plan, instr)[k], TN_STORE_ARENA);
  s->rank = o->rank;
  s->dims = o->dims;
  s->count = o->count;
  s->dynamic = o->dynamic;
  s->given = o->given && o->view == TN__NONE;
  size_t bytes;
  if (!tn__size_mul((size_t)o->count, tn_dtype_size(s->dtype), &bytes) || bytes > PTRDIFF_MAX) {
    char text[128];
    tn_error_set(b->err, TN_RESOURCE_EXHAUSTED, "output %u is too large: its shape is %s", k,
                 tn__format_shape(text, sizeof text, o->dims, o->rank));
    tn_error_set_node(b->err, tn_operation_name(instr->op));
    return TN_RESOURCE_EXHAUSTED;
  }
  s->bytes = bytes;
  if (o->view != TN__NONE) {
    s->root = tn__layout_root(b->layout, tn__input_slots(b, instr)[o->view]);
    s->store = b->layout->slots[s->root].store;
  } else if (o->dynamic || o->given || tn__dtype_is_managed(s->dtype)) {
    s->store = TN_STORE_HEAP;
  }
  return TN_OK;
}

/* Records the inputs over which outputs may be written, in the order in which the kernel named them. */
static tn_status add_places(tn__layout_builder *b, const tn__plan_instr *instr, const tn__prepared *p)
{
  if (!tn__grow((void **)&b->places, &b->place_room, b->n_places + p->n_pairs, sizeof *b->places))
    return tn__builder_no_memory(b);
  for (size_t i = p->n_pairs; i-- > 0;) {
    uint32_t out = tn__output_slots(b, instr)[p->pairs[i].out];
    if (b->layout->slots[out].store != TN_STORE_ARENA || b->layout->slots[out].root != out) continue;
    b->places[b->n_places] = (tn__place){ tn__input_slots(b, instr)[p->pairs[i].in], b->in_place[out] };
    b->in_place[out] = (uint32_t)b->n_places++;
  }
  return TN_OK;
}

/* Whether an instruction is computed now: its outputs follow from shapes, and the elements of its inputs are
 * available. */
static bool is_known(const tn__layout_builder *b, const tn__plan_instr *instr, const tn__prepared *p)
{
  if (p->kernel == NULL || instr->n_outputs == 0) return false;
  for (uint32_t k = 0; k < instr->n_outputs; k++)
    if (!b->plan->values[tn__instr_outputs(b->plan, instr)[k]].from_shapes) return false;
  for (uint32_t k = 0; k < instr->n_inputs && !(instr->traits & TN_TRAIT_SHAPE_ONLY); k++)
    if (b->views[k].data == NULL && b->views[k].count > 0) return false;
  return true;
}

/* Allocates memory for a known value: in the layout's arena, or, if it is too large to keep, until the layout is
 * made. */
static tn_status give_memory(tn__layout_builder *b, uint32_t slot, bool stays)
{
  tn__slot *s = &b->layout->slots[slot];
  b->in_place[slot] = TN__NONE;
  if (stays) {
    s->store = TN_STORE_KNOWN;
    s->known = tn__arena_aligned(&b->layout->arena, s->bytes + 1, TN_ALIGN);
    return s->known == NULL ? tn__builder_no_memory(b) : TN_OK;
  }
  tn__passing *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__builder_no_memory(b);
  *p = (tn__passing){ b->passing, slot, s->bytes + 1 };
  s->known = tn__alloc_aligned(p->bytes, TN_ALIGN);
  b->passing = p;
  return s->known == NULL ? tn__builder_no_memory(b) : TN_OK;
}

/* Whether all outputs are small enough to be kept. */
static bool outputs_stay(const tn__layout_builder *b, const tn__plan_instr *instr)
{
  for (uint32_t k = 0; k < instr->n_outputs; k++)
    if (b->layout->slots[tn__output_slots(b, instr)[k]].bytes > MOST_KNOWN_BYTES) return false;
  return true;
}

/* Computes the outputs now. Those that are views of known inputs use their memory; the kernel is called for the others,
 * if there are any. */
static tn_status know(tn__layout_builder *b, const tn__plan_instr *instr, tn__prepared *p)
{
  const tn__layout *l = b->layout;
  size_t n = (size_t)instr->n_inputs + instr->n_outputs, computed = 0;
  tn_view *views = tn__alloc_array(instr->n_outputs, sizeof *views);
  tn_view **pointers = tn__alloc_array(n, sizeof *pointers);
  size_t scratch_bytes = p->ctx.scratch_bytes;
  void *scratch = scratch_bytes == 0 ? NULL : tn__alloc_aligned(scratch_bytes, TN_ALIGN);
  tn_status st =
      views == NULL || pointers == NULL || (scratch == NULL && scratch_bytes > 0) ? tn__builder_no_memory(b) : TN_OK;
  bool stay = outputs_stay(b, instr);
  for (uint32_t k = 0; st == TN_OK && k < instr->n_inputs; k++) pointers[k] = &b->views[k];
  for (uint32_t k = 0; st == TN_OK && k < instr->n_outputs; k++) {
    uint32_t slot = tn__output_slots(b, instr)[k];
    const tn__slot *s = &l->slots[slot];
    if (s->root == slot) {
      st = give_memory(b, slot, stay);
      computed++;
    }
    views[k] = (tn_view){ .data = l->slots[s->root].known, .dims = s->dims, .count = s->count, .dtype = s->dtype,
                          .rank = s->rank };
    pointers[instr->n_inputs + k] = &views[k];
  }
  if (st == TN_OK && computed > 0) {
    st = b->plan->settings.call_kernel(b->plan, p->kernel, p->ctx.shape_state, pointers, instr->n_inputs,
                                       pointers + instr->n_inputs, instr->n_outputs, scratch, b->err);
    if (st != TN_OK) st = tn__kernel_status(instr->op, p->kernel->def, "compute", st, b->err);
  }
  tn__free_aligned(scratch, scratch_bytes, TN_ALIGN);
  tn__free(pointers, n * sizeof *pointers);
  tn__free(views, instr->n_outputs * sizeof *views);
  return st;
}

/* Counts the readers of constants that have packed forms of them. */
static void count_packed(tn__layout_builder *b, const tn__plan_instr *instr)
{
  for (uint32_t k = 0; k < instr->n_inputs; k++)
    if (b->has_form[k]) b->packed[tn__input_slots(b, instr)[k]]++;
}

/* Whether the elements of an input are available only while the layout is made: a known value that is not kept, or a
 * constant that may be released. prepare cannot be called again then. */
static bool reads_passing(const tn__layout_builder *b, const tn__plan_instr *instr)
{
  const tn__layout *l = b->layout;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    const tn__slot *root = &l->slots[l->slots[tn__input_slots(b, instr)[k]].root];
    if (root->known != NULL && root->store != TN_STORE_KNOWN) return true;
    if (root->store == TN_STORE_CONSTANT && b->plan->values[root->value].recipe != NULL) return true;
  }
  return false;
}

/* Marks the operands whose values decided something. Returns whether the instruction reads an operand. */
static bool note_operands(tn__layout_builder *b, const tn__prepared *p, bool known)
{
  const tn__plan_instr *instr = p->instr;
  bool reads = false;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    if (!tn__layout_reads_operand(b->plan, b->segment, instr, k)) continue;
    reads = true;
    if (known || k >= 32 || !(p->any_values >> k & 1)) b->layout->key.by_value[tn__input_slots(b, instr)[k]] = true;
  }
  return reads;
}

/* Records the result of prepare for an instruction that reads an operand, for comparison when it is prepared again with
 * another value. If that is impossible, the layout is fixed. */
static tn_status note_again(tn__layout_builder *b, uint32_t i, const tn__prepared *p, bool known)
{
  tn__layout *l = b->layout;
  tn__layout_key *key = &l->key;
  const tn__plan_instr *instr = p->instr;
  if (!note_operands(b, p, known) || key->fixed) return TN_OK;
  if (known || reads_passing(b, instr)) {
    key->fixed = true;
    return TN_OK;
  }
  uint32_t *views = tn__arena_array(&l->arena, (size_t)instr->n_outputs + 1, sizeof *views);
  struct tn__pair *pairs = tn__arena_array(&l->arena, p->n_pairs + 1, sizeof *pairs);
  if (views == NULL || pairs == NULL ||
      !tn__grow((void **)&b->again, &b->again_room, key->n_again + 1, sizeof *b->again))
    return tn__builder_no_memory(b);
  for (uint32_t k = 0; k < instr->n_outputs; k++) views[k] = p->outputs[k].view;
  for (size_t k = 0; k < p->n_pairs; k++) pairs[k] = p->pairs[k];
  b->again[key->n_again++] = (tn__prepare_memo){ .instr = i, .tape = TN__NONE, .scratch_bytes = p->ctx.scratch_bytes,
                                                 .views = views, .pairs = pairs, .n_pairs = p->n_pairs,
                                                 .any_values = p->any_values };
  return TN_OK;
}

/* Copies these results to the layout. Runs after the tape has been made, since they name their calls. */
static tn_status keep_again(tn__layout_builder *b)
{
  tn__layout *l = b->layout;
  tn__prepare_memo *again = tn__arena_array(&l->arena, (size_t)l->key.n_again + 1, sizeof *again);
  if (again == NULL) return tn__builder_no_memory(b);
  for (uint32_t i = 0, t = 0; i < l->key.n_again; i++) {
    again[i] = b->again[i];
    while (t < l->n_tape && l->tape[t].instr < again[i].instr) t++;
    if (t < l->n_tape && l->tape[t].instr == again[i].instr) again[i].tape = t;
  }
  l->key.again = again;
  return TN_OK;
}

/* Prepares one instruction, makes the slots of its outputs, and computes them if they are known. */
static tn_status prepare_one(tn__layout_builder *b, uint32_t i, const tn__entry *entries, tn__prepared *p)
{
  const tn__plan_instr *instr = &b->plan->instrs[i];
  uint32_t at = i - b->segment->begin;
  tn_status st = fill_views(b, instr, entries);
  if (st != TN_OK) return st;
  p->instr = instr;
  p->ctx = (tn_prepare_ctx){ .n_inputs = instr->n_inputs, .n_outputs = instr->n_outputs, .inputs = b->views,
                              .threads = tn__plan_threads(b->plan), .reproducible = b->plan->settings.reproducible };
  st = tn__prepare_run(p, b->err);
  if (st == TN_OK) count_packed(b, instr);
  b->layout->shape_states[at] = p->ctx.shape_state;
  b->layout->choices[at] = p->kernel;
  b->layout->cost_ns += p->ctx.cost_ns;
  b->notes[at].cost_ns = p->ctx.cost_ns;
  b->notes[at].scratch_bytes = p->ctx.scratch_bytes;
  for (uint32_t k = 0; st == TN_OK && k < instr->n_outputs; k++) st = add_output_slot(b, instr, k);
  if (st == TN_OK && p->n_pairs > 0) st = add_places(b, instr, p);
  bool known = st == TN_OK && is_known(b, instr, p);
  if (st == TN_OK && b->segment->n_operands > 0) st = note_again(b, i, p, known);
  return st == TN_OK && known ? know(b, instr, p) : st;
}

/* Releases the elements of large constants whose readers all have packed forms of them. Makes the elements of other
 * constants again if they have been released, and keeps them. */
static tn_status settle_constants(tn__layout_builder *b)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < b->layout->n_slots; i++) {
    tn__slot *s = &b->layout->slots[i];
    const tn__plan_value *v = &b->plan->values[s->value];
    if (s->store != TN_STORE_CONSTANT || s->root != i || v->recipe == NULL) continue;
    if (b->packed[i] == v->n_uses) {
      tn_tensor_unref(s->elements);
      s->elements = NULL;
      tn__plan_drop_elements(b->plan, s->value);
      continue;
    }
    if (s->elements == NULL) st = tn__plan_need_elements(b->plan, s->value, &s->elements, b->err);
    if (st == TN_OK) tn__plan_keep_elements(b->plan, s->value, s->elements);
  }
  return st;
}

static tn_status prepare_all(tn__layout_builder *b, const tn__entry *entries)
{
  tn__prepared p = { .plan = b->plan, .arena = &b->layout->arena, .layout = b->layout, .packed = b->has_form,
                     .outputs = b->prepared };
  tn_status st = TN_OK;
  for (uint32_t i = b->segment->begin; st == TN_OK && i < b->segment->end; i++) {
    const tn__plan_instr *instr = &b->plan->instrs[i];
    if (tn__instr_kernels(instr) != NULL || instr->n_outputs > 0) st = prepare_one(b, i, entries, &p);
    if (__builtin_expect(tn__stopped_now(), 0))
      st = tn__prepare_check(instr->op, b->err); /* replaces the kernel's status */
  }
  tn__free(p.pairs, p.pair_room * sizeof *p.pairs);
  return st;
}

tn_status tn__layout_build(tn_plan *plan, tn__segment *segment, const tn__entry *entries, tn__layout **out,
                           tn_error *err)
{
  *out = NULL;
  tn__layout *l = tn__zalloc(sizeof *l);
  if (l == NULL) return tn__no_memory(err, "layout", sizeof *l);
  atomic_init(&l->refs, 1);
  l->plan = plan;
  l->generation = atomic_load(&plan->upgrade.generation);
  l->segment = segment;
  tn__arena_init(&l->arena, 1024);
  tn__layout_builder b = { .plan = plan, .segment = segment, .layout = l, .err = err };
  tn_status st = allocate(&b);
  if (st == TN_OK) st = add_entries(&b, entries);
  if (st == TN_OK) st = prepare_all(&b, entries);
  if (st == TN_OK) st = settle_constants(&b);
  if (st == TN_OK) st = tn__layout_lives(&b);
  if (st == TN_OK) st = tn__layout_tape(&b);
  if (st == TN_OK) st = keep_again(&b);
  if (st == TN_OK) st = tn__layout_binds(&b);
  if (st == TN_OK && b.order != NULL) st = tn__tasks_build(b.order, l, err);
  builder_fini(&b);
  if (st == TN_OK) tn__packs_forget(plan);
  else if (tn__stopped_now()) tn__packs_leave(l);
  if (st != TN_OK) tn__layout_unref(l);
  else *out = l;
  return st;
}
