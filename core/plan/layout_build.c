/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a layout in passes over the instructions of a segment:
 *
 *   prepare   kernels give output shapes, views, scratch
 *   outputs   fetched values get the memory of the step's outputs
 *   lives     from where to where each block is needed
 *   tasks     what may run at once, when more than one thread may work (tasks.h)
 *   in place  an output takes over the block of an input that ends there
 *   assign    offsets in the arena
 *   tape      the calls, with their operands
 *   aliases   what each step has to bind */
#include <core/plan/layout.h>
#include <core/plan/tasks.h>

#define FOREVER UINT32_MAX /* needed until the step ends */

/* Values that follow from shapes and are larger than this do not stay with the layout: a step computes them again. No
 * operand of a shape is: two int64 numbers for each of 254 dimensions, as paddings are. */
#define MOST_KNOWN_BYTES 4096

/* Of calls, for the cut into tasks: of any, and by element where the kernel does not say. */
#define CALL_NS 30.0
#define ELEMENT_NS 0.5

typedef struct instr_note {
  size_t scratch_bytes;
  double cost_ns;
  uint32_t scratch_life;
} instr_note;

/* A slot over which an output may be written. */
typedef struct place {
  uint32_t slot, next; /* next: of the same output, TN__NONE = none */
} place;

/* A known value for as long as the layout is made. */
typedef struct passing {
  struct passing *next;
  uint32_t slot;
  size_t bytes; /* of the allocation at l->slots[slot].known */
} passing;

typedef struct builder {
  tn_plan *plan;
  tn__segment *segment;
  tn__layout *layout;
  uint32_t *in_place; /* by slot: the first of its places, TN__NONE = none */
  place *places;
  tn__again *again;
  uint32_t *last;     /* by slot: last instruction that needs it */
  uint32_t *packed;   /* by slot: how many times it is read by a kernel that has a form of its own */
  bool *has_form;     /* by input of one instruction */
  instr_note *notes;  /* by instruction of the segment */
  tn_view *views;     /* inputs of one instruction */
  struct tn__prepared_output *prepared;
  tn__life *lives;
  passing *passing;
  tn__task_order *order; /* NULL = calls run one after the other */
  size_t again_room, n_lives, n_places, place_room, max_inputs, max_outputs, n_ids;
  tn_error *err;
} builder;

static tn_status no_memory(builder *b) { return tn__no_memory(b->err, "layout", b->segment->n_slots * sizeof(tn__slot)); }

static uint32_t root_of(const tn__layout *l, uint32_t slot)
{
  while (l->slots[slot].root != slot) slot = l->slots[slot].root;
  return slot;
}

static const uint32_t *input_slots(const builder *b, const tn__plan_instr *instr) { return b->plan->slots + instr->first; }
static const uint32_t *output_slots(const builder *b, const tn__plan_instr *instr)
{
  return b->plan->slots + instr->first + instr->n_inputs;
}

static tn__slot *new_slot(builder *b, uint32_t id, uint32_t value, uint8_t store)
{
  b->in_place[id] = TN__NONE;
  tn__slot *s = &b->layout->slots[id];
  *s = (tn__slot){ .value = value, .root = id, .store = store, .dtype = b->plan->values[value].dtype };
  return s;
}

/* ---- set-up ---- */

static tn_status allocate(builder *b)
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
  bool ok = b->layout->slots != NULL && b->layout->tape != NULL && b->layout->shape_states != NULL &&
            b->layout->choices != NULL && b->in_place != NULL && b->last != NULL && b->packed != NULL &&
            b->has_form != NULL && b->notes != NULL &&
            b->views != NULL && b->prepared != NULL && b->lives != NULL;
  return ok ? TN_OK : no_memory(b);
}

static void builder_fini(builder *b)
{
  size_t n_instr = b->segment->end - b->segment->begin, n_slots = b->segment->n_slots;
  while (b->passing != NULL) {
    passing *p = b->passing;
    b->passing = p->next;
    tn__free_aligned(b->layout->slots[p->slot].known, p->bytes, TN_ALIGN);
    b->layout->slots[p->slot].known = NULL;
    tn__free(p, sizeof *p);
  }
  tn__task_order_free(b->order);
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

static tn_status add_entries(builder *b, const tn__entry *entries)
{
  for (uint32_t i = 0; i < b->segment->n_entries; i++) {
    const tn__entry *e = &entries[i];
    tn__slot *s = new_slot(b, i, b->segment->entries[i], TN_STORE_ENTRY);
    s->rank = e->rank;
    s->count = e->count;
    s->dims = tn__arena_array(&b->layout->arena, (size_t)e->rank, sizeof *s->dims);
    if (s->dims == NULL) return no_memory(b);
    if (e->rank > 0) __builtin_memcpy(s->dims, e->dims, (size_t)e->rank * sizeof *s->dims);
    s->bytes = (size_t)s->count * tn_dtype_size(s->dtype);
  }
  return TN_OK;
}

/* ---- prepare ---- */

static tn_status add_constant_slot(builder *b, uint32_t id, uint32_t value)
{
  const tn_tensor *t = b->plan->values[value].constant;
  if (b->layout->slots[id].dims == t->dims) return TN_OK; /* it was met before */
  tn__slot *s = new_slot(b, id, value, TN_STORE_CONSTANT);
  s->rank = t->rank;
  s->dims = t->dims;
  s->count = t->count;
  s->bytes = t->bytes;
  bool decides = t->dtype == TN_INT32 || t->dtype == TN_INT64; /* shapes may follow from it */
  if (decides) return tn__plan_need_elements(b->plan, value, &s->elements, b->err);
  s->elements = tn__plan_elements(b->plan, value);
  return TN_OK;
}

static tn_status fill_views(builder *b, const tn__plan_instr *instr, const tn__entry *entries)
{
  tn_status st = TN_OK;
  const uint32_t *in = tn__instr_inputs(b->plan, instr);
  for (uint32_t k = 0; st == TN_OK && k < instr->n_inputs; k++) {
    uint32_t slot = input_slots(b, instr)[k];
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

static tn_status add_output_slot(builder *b, const tn__plan_instr *instr, uint32_t k)
{
  const struct tn__prepared_output *o = &b->prepared[k];
  tn__slot *s = new_slot(b, output_slots(b, instr)[k], tn__instr_outputs(b->plan, instr)[k], TN_STORE_ARENA);
  s->rank = o->rank;
  s->dims = o->dims;
  s->count = o->count;
  s->dynamic = o->dynamic;
  s->given = o->given && o->view == TN__NONE;
  size_t bytes;
  if (!tn__size_mul((size_t)o->count, tn_dtype_size(s->dtype), &bytes) || bytes > PTRDIFF_MAX) {
    char text[128];
    tn_error_set(b->err, TN_RESOURCE_EXHAUSTED, "output %u has shape %s: too many bytes", k,
                 tn__format_shape(text, sizeof text, o->dims, o->rank));
    tn_error_set_node(b->err, tn_operation_name(instr->op));
    return TN_RESOURCE_EXHAUSTED;
  }
  s->bytes = bytes;
  if (o->view != TN__NONE) {
    s->root = root_of(b->layout, input_slots(b, instr)[o->view]);
    s->store = b->layout->slots[s->root].store;
  } else if (o->dynamic || o->given || tn__dtype_is_managed(s->dtype)) {
    s->store = TN_STORE_HEAP;
  }
  return TN_OK;
}

/* Where outputs may be written over inputs, in the order in which the kernel named them. */
static tn_status add_places(builder *b, const tn__plan_instr *instr, const tn__prepared *p)
{
  if (!tn__grow((void **)&b->places, &b->place_room, b->n_places + p->n_pairs, sizeof *b->places)) return no_memory(b);
  for (size_t i = p->n_pairs; i-- > 0;) {
    uint32_t out = output_slots(b, instr)[p->pairs[i].out];
    if (b->layout->slots[out].store != TN_STORE_ARENA || b->layout->slots[out].root != out) continue;
    b->places[b->n_places] = (place){ input_slots(b, instr)[p->pairs[i].in], b->in_place[out] };
    b->in_place[out] = (uint32_t)b->n_places++;
  }
  return TN_OK;
}

/* Whether an instruction is computed now: its outputs follow from shapes, and what it reads is at hand. */
static bool is_known(const builder *b, const tn__plan_instr *instr, const tn__prepared *p)
{
  if (p->kernel == NULL || instr->n_outputs == 0) return false;
  for (uint32_t k = 0; k < instr->n_outputs; k++)
    if (!b->plan->values[tn__instr_outputs(b->plan, instr)[k]].from_shapes) return false;
  for (uint32_t k = 0; k < instr->n_inputs && !(instr->traits & TN_TRAIT_SHAPE_ONLY); k++)
    if (b->views[k].data == NULL && b->views[k].count > 0) return false;
  return true;
}

/* Memory of the layout for a known value, or, for one that is too large to stay, until the layout is made. */
static tn_status give_memory(builder *b, uint32_t slot, bool stays)
{
  tn__slot *s = &b->layout->slots[slot];
  b->in_place[slot] = TN__NONE;
  if (stays) {
    s->store = TN_STORE_KNOWN;
    s->known = tn__arena_aligned(&b->layout->arena, s->bytes + 1, TN_ALIGN);
    return s->known == NULL ? no_memory(b) : TN_OK;
  }
  passing *p = tn__alloc(sizeof *p);
  if (p == NULL) return no_memory(b);
  *p = (passing){ b->passing, slot, s->bytes + 1 };
  s->known = tn__alloc_aligned(p->bytes, TN_ALIGN);
  b->passing = p;
  return s->known == NULL ? no_memory(b) : TN_OK;
}

static bool outputs_stay(const builder *b, const tn__plan_instr *instr)
{
  for (uint32_t k = 0; k < instr->n_outputs; k++)
    if (b->layout->slots[output_slots(b, instr)[k]].bytes > MOST_KNOWN_BYTES) return false;
  return true;
}

/* Gives the outputs memory and calls the kernel. Views of known inputs have their memory. */
static tn_status know(builder *b, const tn__plan_instr *instr, tn__prepared *p)
{
  const tn__layout *l = b->layout;
  size_t n = (size_t)instr->n_inputs + instr->n_outputs, computed = 0;
  tn_view *views = tn__alloc_array(instr->n_outputs, sizeof *views);
  tn_view **pointers = tn__alloc_array(n, sizeof *pointers);
  size_t scratch_bytes = p->ctx.scratch_bytes;
  void *scratch = scratch_bytes == 0 ? NULL : tn__alloc_aligned(scratch_bytes, TN_ALIGN);
  tn_status st = views == NULL || pointers == NULL || (scratch == NULL && scratch_bytes > 0) ? no_memory(b) : TN_OK;
  bool stay = outputs_stay(b, instr);
  for (uint32_t k = 0; st == TN_OK && k < instr->n_inputs; k++) pointers[k] = &b->views[k];
  for (uint32_t k = 0; st == TN_OK && k < instr->n_outputs; k++) {
    uint32_t slot = output_slots(b, instr)[k];
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
    st = b->plan->call_kernel(p->kernel, p->ctx.shape_state, pointers, instr->n_inputs, pointers + instr->n_inputs,
                              instr->n_outputs, scratch, b->err);
    if (st != TN_OK) st = tn__kernel_status(instr->op, p->kernel->def, "compute", st, b->err);
  }
  tn__free_aligned(scratch, scratch_bytes, TN_ALIGN);
  tn__free(pointers, n * sizeof *pointers);
  tn__free(views, instr->n_outputs * sizeof *views);
  return st;
}

static void count_packed(builder *b, const tn__plan_instr *instr)
{
  for (uint32_t k = 0; k < instr->n_inputs; k++)
    if (b->has_form[k]) b->packed[input_slots(b, instr)[k]]++;
}

/* Whether an input of the instruction is there while the layout is made, and perhaps not afterwards. */
static bool reads_passing(const builder *b, const tn__plan_instr *instr)
{
  const tn__layout *l = b->layout;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    const tn__slot *root = &l->slots[l->slots[input_slots(b, instr)[k]].root];
    if (root->known != NULL && root->store != TN_STORE_KNOWN) return true;
    if (root->store == TN_STORE_CONSTANT && b->plan->values[root->value].recipe != NULL) return true;
  }
  return false;
}

/* Notes what an instruction that reads an operand said, so that it can be asked again for another value. */
static tn_status note_again(builder *b, uint32_t i, const tn__prepared *p, bool known)
{
  tn__layout *l = b->layout;
  const tn__plan_instr *instr = p->instr;
  bool reads = false;
  for (uint32_t k = 0; k < instr->n_inputs; k++) reads |= tn__layout_reads_operand(b->plan, b->segment, instr, k);
  if (!reads || l->fixed) return TN_OK;
  if (known || reads_passing(b, instr)) {
    l->fixed = true;
    return TN_OK;
  }
  uint32_t *views = tn__arena_array(&l->arena, (size_t)instr->n_outputs + 1, sizeof *views);
  struct tn__pair *pairs = tn__arena_array(&l->arena, p->n_pairs + 1, sizeof *pairs);
  if (views == NULL || pairs == NULL || !tn__grow((void **)&b->again, &b->again_room, l->n_again + 1, sizeof *b->again))
    return no_memory(b);
  for (uint32_t k = 0; k < instr->n_outputs; k++) views[k] = p->outputs[k].view;
  for (size_t k = 0; k < p->n_pairs; k++) pairs[k] = p->pairs[k];
  b->again[l->n_again++] = (tn__again){ .instr = i, .tape = TN__NONE, .scratch_bytes = p->ctx.scratch_bytes,
                                        .views = views, .pairs = pairs, .n_pairs = p->n_pairs };
  return TN_OK;
}

/* Their calls are known in the end. */
static tn_status keep_again(builder *b)
{
  tn__layout *l = b->layout;
  l->again = tn__arena_array(&l->arena, (size_t)l->n_again + 1, sizeof *l->again);
  if (l->again == NULL) return no_memory(b);
  for (uint32_t i = 0, t = 0; i < l->n_again; i++) {
    l->again[i] = b->again[i];
    while (t < l->n_tape && l->tape[t].instr < l->again[i].instr) t++;
    if (t < l->n_tape && l->tape[t].instr == l->again[i].instr) l->again[i].tape = t;
  }
  return TN_OK;
}

static tn_status prepare_one(builder *b, uint32_t i, const tn__entry *entries, tn__prepared *p)
{
  const tn__plan_instr *instr = &b->plan->instrs[i];
  uint32_t at = i - b->segment->begin;
  tn_status st = fill_views(b, instr, entries);
  if (st != TN_OK) return st;
  p->instr = instr;
  p->ctx = (tn_prepare_ctx){ .n_inputs = instr->n_inputs, .n_outputs = instr->n_outputs, .inputs = b->views,
                              .threads = tn__plan_threads(b->plan) };
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

/* A large constant whose readers all have forms of their own is let go; what a kernel reads is had again, if need be. */
static tn_status settle_constants(builder *b)
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

static tn_status prepare_all(builder *b, const tn__entry *entries)
{
  tn__prepared p = { .plan = b->plan, .arena = &b->layout->arena, .layout = b->layout, .packed = b->has_form,
                     .outputs = b->prepared };
  tn_status st = TN_OK;
  for (uint32_t i = b->segment->begin; st == TN_OK && i < b->segment->end; i++)
    if (tn__instr_kernels(&b->plan->instrs[i]) != NULL || b->plan->instrs[i].n_outputs > 0)
      st = prepare_one(b, i, entries, &p);
  tn__free(p.pairs, p.pair_room * sizeof *p.pairs);
  return st;
}

/* ---- outputs, lives, in place ---- */

static const tn__plan_value *value_of(const builder *b, uint32_t slot)
{
  return &b->plan->values[b->layout->slots[slot].value];
}

static uint32_t slot_of_output(const builder *b, uint32_t at)
{
  return b->plan->values[b->plan->outputs[b->segment->outputs[at]]].slot;
}

/* Values of the arena that are fetched or outlive the segment go elsewhere. */
static void place_outputs(builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t at = 0; at < b->segment->n_outputs; at++) {
    tn__slot *s = &l->slots[slot_of_output(b, at)];
    tn__slot *root = &l->slots[s->root];
    root->fetched = true;
    if (root->store != TN_STORE_ARENA || root->bytes != s->bytes) continue;
    root->store = TN_STORE_OUTPUT;
    root->offset = b->segment->outputs[at];
    l->has_outputs = true;
  }
  for (uint32_t i = 0; i < b->segment->n_held; i++) {
    tn__slot *root = &l->slots[l->slots[b->plan->values[b->segment->held[i]].slot].root];
    if (root->store == TN_STORE_ARENA) root->store = TN_STORE_HEAP;
  }
  for (uint32_t i = 0; i < l->n_slots; i++) l->slots[i].store = l->slots[l->slots[i].root].store;
}

/* An earlier segment's value that nobody needs after this one: its memory goes with its last reader, so that a variable that
 * was read can be changed where it is. What waits may be read again. */
static bool ends_here(const builder *b, uint32_t slot)
{
  const tn__plan_value *v = value_of(b, slot);
  return slot < b->segment->n_entries && !b->plan->has_waits && v->kind == TN_VALUE_COMPUTED && v->held != TN__NONE &&
         !v->fetched && v->last_use != TN__NONE && v->last_use < b->segment->end;
}

static void find_lasts(builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t i = 0; i < l->n_slots; i++) {
    const tn__plan_value *v = value_of(b, i);
    uint32_t last = v->last_use == TN__NONE ? v->producer : v->last_use;
    bool outlives = v->dynamic_user || v->predicate != 0 || (last != TN__NONE && last >= b->segment->end);
    if (outlives && !ends_here(b, i)) last = FOREVER;
    uint32_t root = l->slots[i].root;
    if (last != TN__NONE && last > b->last[root]) b->last[root] = last;
    if (last == FOREVER) b->last[root] = FOREVER;
  }
  for (uint32_t at = 0; at < b->segment->n_outputs; at++) b->last[l->slots[slot_of_output(b, at)].root] = FOREVER;
}

/* ---- tasks ---- */

static bool only_views(const builder *b, const tn__plan_instr *instr)
{
  if (tn__instr_kernels(instr) == NULL) return true;
  if (instr->traits & TN_TRAIT_STATEFUL) return false; /* it may have an effect */
  for (uint32_t k = 0; k < instr->n_outputs; k++) {
    uint32_t out = output_slots(b, instr)[k];
    if (b->layout->slots[out].root == out && b->layout->slots[out].store != TN_STORE_KNOWN) return false;
    if (b->in_place[out] != TN__NONE) return false; /* shares memory, yet is computed */
  }
  return instr->n_outputs > 0;
}

/* Where a kernel does not say it, its operands do, roughly. */
static double cost_of(const builder *b, uint32_t i)
{
  const tn__plan_instr *instr = &b->plan->instrs[i];
  double said = b->notes[i - b->segment->begin].cost_ns, most = 0;
  if (only_views(b, instr)) return 0;
  for (uint32_t k = 0; k < instr->n_inputs + instr->n_outputs && !(said > 0); k++) {
    double count = (double)b->layout->slots[b->plan->slots[instr->first + k]].count;
    if (count > most) most = count;
  }
  return CALL_NS + (said > 0 ? said : most * ELEMENT_NS);
}

static tn_status find_tasks(builder *b)
{
  size_t n = (size_t)(b->segment->end - b->segment->begin) + 1;
  bool one = tn__plan_threads(b->plan) <= 1 && !atomic_load_explicit(&b->plan->scheduled, memory_order_relaxed);
  if (one) return TN_OK;
  double *costs = tn__alloc_array(n, sizeof *costs);
  if (costs == NULL) return no_memory(b);
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) costs[i - b->segment->begin] = cost_of(b, i);
  tn_status st = tn__task_order_make(b->plan, b->segment, costs, &b->order, b->err);
  tn__free(costs, n * sizeof *costs);
  return st;
}

/* What the instruction needs of memory that others may need, too. */
static void touch(const builder *b, uint32_t i)
{
  const tn__plan_instr *instr = &b->plan->instrs[i];
  if (b->order == NULL || only_views(b, instr)) return;
  for (uint32_t k = 0; k < instr->n_inputs + instr->n_outputs; k++)
    tn__task_touch(b->order, root_of(b->layout, b->plan->slots[instr->first + k]), i);
}

/* Whether all that needed the memory so far has ended when the instruction begins, whichever thread runs it. */
static bool is_last(const builder *b, uint32_t i, uint32_t root)
{
  if (b->last[root] != i) return false;
  return b->order == NULL || tn__task_follows(b->order, tn__task_touched(b->order, root), tn__task_of(b->order, i));
}

/* ---- in place ---- */

static bool may_take_over(const builder *b, uint32_t i, uint32_t out, uint32_t in)
{
  const tn__layout *l = b->layout;
  const tn__plan_instr *instr = &b->plan->instrs[i];
  uint32_t root = root_of(l, in);
  if (l->slots[out].store != TN_STORE_ARENA || l->slots[root].store != TN_STORE_ARENA) return false;
  if (!is_last(b, i, root) || l->slots[root].bytes != l->slots[out].bytes) return false;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    uint32_t s = input_slots(b, instr)[k];
    if (s != in && root_of(l, s) == root) return false;
  }
  for (uint32_t k = 0; k < instr->n_outputs; k++) { /* a second output over the same input would overwrite the first */
    uint32_t s = output_slots(b, instr)[k];
    if (s != out && root_of(l, s) == root) return false;
  }
  return true;
}

/* Writes an output over the first of its places that nobody needs any more. */
static bool take_over(builder *b, uint32_t i, uint32_t out)
{
  for (uint32_t at = b->in_place[out]; at != TN__NONE; at = b->places[at].next) {
    if (!may_take_over(b, i, out, b->places[at].slot)) continue;
    uint32_t root = root_of(b->layout, b->places[at].slot);
    b->layout->slots[out].root = root;
    b->last[root] = b->last[out];
    b->layout->in_place_bytes += b->layout->slots[out].bytes;
    return true;
  }
  return false;
}

static tn_status find_lives(builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) {
    const tn__plan_instr *instr = &b->plan->instrs[i];
    instr_note *note = &b->notes[i - b->segment->begin];
    touch(b, i);
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      uint32_t out = output_slots(b, instr)[k];
      if (l->slots[out].root != out || l->slots[out].store != TN_STORE_ARENA || take_over(b, i, out)) continue;
      b->lives[b->n_lives++] = (tn__life){ .slot = out, .first = i, .bytes = l->slots[out].bytes };
    }
    if (note->scratch_bytes > 0) {
      note->scratch_life = (uint32_t)b->n_lives;
      b->lives[b->n_lives++] = (tn__life){ .slot = TN__NONE, .first = i, .last = i, .bytes = note->scratch_bytes };
    }
  }
  for (size_t i = 0; i < b->n_lives; i++)
    if (b->lives[i].slot != TN__NONE) b->lives[i].last = b->last[b->lives[i].slot];
  for (uint32_t i = 0; i < l->n_slots; i++) l->slots[i].root = root_of(l, i);
  tn_status st = b->order != NULL
                     ? tn__layout_assign_tasks(b->lives, b->n_lives, b->order, &l->arena_bytes, &l->live_bytes, b->err)
                     : tn__layout_assign(b->lives, b->n_lives, &l->arena_bytes, &l->live_bytes, b->err);
  for (size_t i = 0; st == TN_OK && i < b->n_lives; i++)
    if (b->lives[i].slot != TN__NONE) l->slots[b->lives[i].slot].offset = b->lives[i].offset;
  return st;
}

/* ---- tape ---- */

/* Heap values, and values held from earlier segments, whose memory is needed last by instruction i: they stand among its
 * operands. */
static uint32_t list_releases(builder *b, uint32_t i, const uint32_t *operands, uint32_t n, uint32_t *to)
{
  uint32_t n_out = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t root = b->layout->slots[operands[k]].root;
    bool held = b->layout->slots[root].store == TN_STORE_ENTRY && ends_here(b, root);
    if ((b->layout->slots[root].store != TN_STORE_HEAP && !held) || b->last[root] != i) continue;
    bool twice = false;
    for (uint32_t j = 0; j < n_out; j++) twice |= to[j] == root;
    if (!twice) to[n_out++] = root;
  }
  return n_out;
}

static tn_status make_tape(builder *b)
{
  tn__layout *l = b->layout;
  uint32_t *ids = tn__arena_array(&l->arena, b->n_ids * 2 + 1, sizeof *ids);
  if (ids == NULL) return no_memory(b);
  l->operands = ids;
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) {
    const tn__plan_instr *instr = &b->plan->instrs[i];
    const instr_note *note = &b->notes[i - b->segment->begin];
    if (only_views(b, instr)) continue;
    tn__tape *t = &l->tape[l->n_tape++];
    const tn__plan_kernel *kernel = tn__layout_kernel(l, i);
    *t = (tn__tape){ .compute = kernel->def->compute, .state = kernel->state, .instr = i, .operands = l->n_operands,
                     .shape_state = l->shape_states[i - b->segment->begin], .n_inputs = instr->n_inputs,
                     .n_outputs = instr->n_outputs };
    if (note->scratch_bytes > 0) t->scratch = b->lives[note->scratch_life].offset;
    t->scratch_units = (uint32_t)((note->scratch_bytes + TN_ALIGN - 1) / TN_ALIGN);
    for (uint32_t k = 0; k < instr->n_inputs; k++) ids[l->n_operands++] = input_slots(b, instr)[k];
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      uint32_t out = output_slots(b, instr)[k];
      ids[l->n_operands++] = out;
      if (l->slots[out].dynamic || l->slots[out].given) t->flags |= TN_TAPE_DYNAMIC;
      else if (l->slots[out].root == out && l->slots[out].store == TN_STORE_HEAP) t->flags |= TN_TAPE_HEAP;
    }
    t->release = l->n_operands;
    t->n_release = list_releases(b, i, ids + t->operands, t->n_inputs + t->n_outputs, ids + l->n_operands);
    l->n_operands += t->n_release;
    if (t->n_release > 0) t->flags |= TN_TAPE_RELEASE;
  }
  return TN_OK;
}

/* What is bound together, and where the step's outputs lie. */
static tn_status link_aliases(builder *b)
{
  tn__layout *l = b->layout;
  uint32_t *roots = tn__arena_array(&l->arena, (size_t)b->segment->n_outputs + 1, sizeof *roots);
  uint32_t n_heaps = 0;
  for (uint32_t i = 0; i < l->n_slots; i++) n_heaps += l->slots[i].root == i && l->slots[i].store == TN_STORE_HEAP;
  uint32_t *heaps = tn__arena_array(&l->arena, (size_t)n_heaps + 1, sizeof *heaps);
  if (roots == NULL || heaps == NULL) return no_memory(b);
  l->heaps = heaps;
  for (uint32_t i = 0; i < l->n_slots; i++) l->slots[i].next_alias = TN__NONE;
  for (uint32_t i = 0; i < l->n_slots; i++) {
    uint32_t root = l->slots[i].root;
    l->slots[i].store = l->slots[root].store;
    if (root == i && l->slots[i].store == TN_STORE_HEAP) heaps[l->n_heaps++] = i;
    if (root == i) continue;
    l->slots[i].next_alias = l->slots[root].next_alias;
    l->slots[root].next_alias = i;
  }
  for (uint32_t at = 0; at < b->segment->n_outputs; at++) {
    uint32_t root = l->slots[slot_of_output(b, at)].root;
    bool there = l->slots[root].store == TN_STORE_OUTPUT && l->slots[root].offset == b->segment->outputs[at];
    roots[at] = there ? root : TN__NONE;
  }
  l->output_root = roots;
  return TN_OK;
}

/* What a step has to hold when the segment has run. */
static tn_status list_holds(builder *b)
{
  tn__layout *l = b->layout;
  const tn_plan *plan = b->plan;
  l->holds = tn__arena_array(&l->arena, (size_t)b->segment->n_held + 1, sizeof *l->holds);
  if (l->holds == NULL) return no_memory(b);
  l->predicates = tn__arena_array(&l->arena, 2 * (size_t)b->segment->n_predicates + 1, sizeof *l->predicates);
  if (l->predicates == NULL) return no_memory(b);
  for (uint32_t i = 0; i < b->segment->n_predicates; i++) {
    const tn__plan_value *v = &plan->values[b->segment->predicates[i]];
    l->predicates[2 * i] = v->slot;
    l->predicates[2 * i + 1] = v->predicate - 1;
  }
  for (uint32_t i = 0; i < b->segment->n_held; i++) {
    const tn__plan_value *v = &plan->values[b->segment->held[i]];
    uint32_t root = l->slots[v->slot].root;
    const tn__plan_value *from = &plan->values[l->slots[root].value];
    if (l->slots[root].store == TN_STORE_HEAP && !l->slots[root].fetched)
      l->holds[l->n_holds++] = (tn__hold){ root, TN__NONE, v->held };
    if (l->slots[root].store == TN_STORE_ENTRY && from->held != TN__NONE)
      l->holds[l->n_holds++] = (tn__hold){ TN__NONE, from->held, v->held };
  }
  return TN_OK;
}

tn_status tn__layout_build(tn_plan *plan, tn__segment *segment, const tn__entry *entries, tn__layout **out, tn_error *err)
{
  *out = NULL;
  tn__layout *l = tn__zalloc(sizeof *l);
  if (l == NULL) return tn__no_memory(err, "layout", sizeof *l);
  atomic_init(&l->refs, 1);
  l->plan = plan;
  l->generation = atomic_load(&plan->generation);
  l->segment = segment;
  tn__arena_init(&l->arena, 1024);
  builder b = { .plan = plan, .segment = segment, .layout = l, .err = err };
  tn_status st = allocate(&b);
  if (st == TN_OK) st = add_entries(&b, entries);
  if (st == TN_OK) st = prepare_all(&b, entries);
  if (st == TN_OK) st = settle_constants(&b);
  if (st == TN_OK) {
    place_outputs(&b);
    find_lasts(&b);
    st = find_tasks(&b);
  }
  if (st == TN_OK) st = find_lives(&b);
  if (st == TN_OK) st = make_tape(&b);
  if (st == TN_OK) st = keep_again(&b);
  if (st == TN_OK) st = link_aliases(&b);
  if (st == TN_OK) st = list_holds(&b);
  if (st == TN_OK && b.order != NULL) st = tn__tasks_make(b.order, l, err);
  builder_fini(&b);
  if (st != TN_OK) tn__layout_unref(l);
  else *out = l;
  return st;
}
