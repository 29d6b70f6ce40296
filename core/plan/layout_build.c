/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a layout in passes over the instructions of a segment:
 *
 *   prepare   kernels give output shapes, views, scratch
 *   outputs   fetched values get the memory of the step's outputs
 *   lives     from where to where each block is needed
 *   in place  an output takes over the block of an input that ends there
 *   assign    offsets in the arena
 *   tape      the calls, with their operands
 *   aliases   what each step has to bind */
#include <core/plan/layout.h>

#define FOREVER UINT32_MAX /* needed until the step ends */

typedef struct instr_note {
  size_t scratch_bytes;
  uint32_t first_out; /* slot of output 0 */
  uint32_t scratch_life;
} instr_note;

typedef struct builder {
  tn_plan *plan;
  tn__segment *segment;
  tn__layout *layout;
  uint32_t *slot_of;  /* by value */
  uint32_t *in_place; /* by slot: the input's slot, TN__NONE = none */
  uint32_t *last;     /* by slot: last instruction that needs it */
  uint32_t *packed;   /* by slot: how many times it is read by a kernel that has a form of its own */
  bool *has_form;     /* by input of one instruction */
  instr_note *notes;  /* by instruction of the segment */
  tn_view *views;     /* inputs of one instruction */
  struct tn__prepared_output *prepared;
  tn__life *lives;
  size_t n_lives, max_slots, max_inputs, max_outputs, n_ids;
  tn_error *err;
} builder;

static tn_status no_memory(builder *b) { return tn__no_memory(b->err, "layout", b->max_slots * sizeof(tn__slot)); }

static uint32_t root_of(const tn__layout *l, uint32_t slot)
{
  while (l->slots[slot].root != slot) slot = l->slots[slot].root;
  return slot;
}

static tn__slot *new_slot(builder *b, uint32_t value, uint8_t store)
{
  uint32_t id = b->layout->n_slots++;
  b->slot_of[value] = id;
  b->in_place[id] = TN__NONE;
  b->last[id] = 0;
  tn__slot *s = &b->layout->slots[id];
  *s = (tn__slot){ .value = value, .root = id, .store = store, .dtype = b->plan->values[value].dtype };
  return s;
}

/* ---- set-up ---- */

static tn_status allocate(builder *b)
{
  const tn__segment *seg = b->segment;
  b->max_slots = seg->n_entries;
  for (uint32_t i = seg->begin; i < seg->end; i++) {
    const tn__plan_instr *in = &b->plan->instrs[i];
    b->max_slots += in->n_inputs + in->n_outputs;
    b->n_ids += in->n_inputs + in->n_outputs;
    if (in->n_inputs > b->max_inputs) b->max_inputs = in->n_inputs;
    if (in->n_outputs > b->max_outputs) b->max_outputs = in->n_outputs;
  }
  tn__arena *a = &b->layout->arena;
  size_t n_instr = seg->end - seg->begin;
  b->layout->slots = tn__arena_array(a, b->max_slots + 1, sizeof *b->layout->slots);
  b->layout->tape = tn__arena_array(a, n_instr + 1, sizeof *b->layout->tape);
  b->layout->shape_states = tn__arena_array(a, n_instr + 1, sizeof *b->layout->shape_states);
  b->layout->choices = tn__arena_array(a, n_instr + 1, sizeof *b->layout->choices);
  b->slot_of = tn__alloc_array((size_t)b->plan->n_values + 1, sizeof *b->slot_of);
  b->in_place = tn__alloc_array(b->max_slots + 1, sizeof *b->in_place);
  b->last = tn__alloc_array(b->max_slots + 1, sizeof *b->last);
  b->packed = tn__alloc_array(b->max_slots + 1, sizeof *b->packed);
  b->has_form = tn__alloc_array(b->max_inputs + 1, sizeof *b->has_form);
  b->notes = tn__alloc_array(n_instr + 1, sizeof *b->notes);
  b->views = tn__alloc_array(b->max_inputs + 1, sizeof *b->views);
  b->prepared = tn__alloc_array(b->max_outputs + 1, sizeof *b->prepared);
  b->lives = tn__alloc_array(b->max_slots + n_instr + 1, sizeof *b->lives);
  if (b->layout->slots == NULL || b->layout->tape == NULL || b->layout->shape_states == NULL ||
      b->layout->choices == NULL || b->slot_of == NULL || b->in_place == NULL || b->last == NULL ||
      b->packed == NULL || b->has_form == NULL || b->notes == NULL || b->views == NULL || b->prepared == NULL ||
      b->lives == NULL)
    return no_memory(b);
  for (uint32_t i = 0; i < b->plan->n_values; i++) b->slot_of[i] = TN__NONE;
  return TN_OK;
}

static void builder_fini(builder *b)
{
  size_t n_instr = b->segment->end - b->segment->begin;
  tn__free(b->slot_of, ((size_t)b->plan->n_values + 1) * sizeof *b->slot_of);
  tn__free(b->in_place, (b->max_slots + 1) * sizeof *b->in_place);
  tn__free(b->last, (b->max_slots + 1) * sizeof *b->last);
  tn__free(b->packed, (b->max_slots + 1) * sizeof *b->packed);
  tn__free(b->has_form, (b->max_inputs + 1) * sizeof *b->has_form);
  tn__free(b->notes, (n_instr + 1) * sizeof *b->notes);
  tn__free(b->views, (b->max_inputs + 1) * sizeof *b->views);
  tn__free(b->prepared, (b->max_outputs + 1) * sizeof *b->prepared);
  tn__free(b->lives, (b->max_slots + n_instr + 1) * sizeof *b->lives);
}

static tn_status add_entries(builder *b, const tn__entry *entries)
{
  for (uint32_t i = 0; i < b->segment->n_entries; i++) {
    const tn__entry *e = &entries[i];
    tn__slot *s = new_slot(b, b->segment->entries[i], TN_STORE_ENTRY);
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

static uint32_t input_slot(builder *b, uint32_t value)
{
  if (b->slot_of[value] == TN__NONE) { /* the first use of a constant: everything else has its slot */
    const tn_tensor *t = b->plan->values[value].constant;
    tn__slot *s = new_slot(b, value, TN_STORE_CONSTANT);
    s->rank = t->rank;
    s->dims = t->dims;
    s->count = t->count;
    s->bytes = t->bytes;
    s->elements = tn__plan_elements(b->plan, value);
  }
  return b->slot_of[value];
}

static void fill_views(builder *b, const tn__plan_instr *instr, const tn__entry *entries)
{
  const uint32_t *in = tn__instr_inputs(b->plan, instr);
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    uint32_t slot = input_slot(b, in[k]);
    const tn__slot *s = &b->layout->slots[slot];
    tn_view v = { .dims = s->dims, .count = s->count, .dtype = s->dtype, .rank = s->rank };
    if (s->store == TN_STORE_CONSTANT && s->root == slot) v.data = s->elements == NULL ? NULL : s->elements->data;
    bool operand = instr->shape_operands != 0 && tn__operation_is_shape_operand(instr->op, k);
    operand |= b->plan->values[in[k]].from_shapes;
    if (operand && slot < b->segment->n_entries) v.data = entries[slot].data;
    if (b->layout->slots[s->root].store == TN_STORE_KNOWN) v.data = b->layout->slots[s->root].known;
    b->views[k] = v;
  }
}

static tn_status add_output_slot(builder *b, const tn__plan_instr *instr, uint32_t k)
{
  const struct tn__prepared_output *o = &b->prepared[k];
  const uint32_t *in = tn__instr_inputs(b->plan, instr);
  uint32_t value = tn__instr_outputs(b->plan, instr)[k];
  tn__slot *s = new_slot(b, value, TN_STORE_ARENA);
  s->rank = o->rank;
  s->dims = o->dims;
  s->count = o->count;
  s->dynamic = o->dynamic;
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
    s->root = root_of(b->layout, b->slot_of[in[o->view]]);
    s->store = b->layout->slots[s->root].store;
  } else if (o->dynamic || tn__dtype_is_managed(s->dtype)) {
    s->store = TN_STORE_HEAP;
  } else if (o->in_place != TN__NONE) {
    b->in_place[b->slot_of[value]] = b->slot_of[in[o->in_place]];
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

/* Gives the outputs memory of the layout and calls the kernel. Views of known inputs have their memory. */
static tn_status know(builder *b, const tn__plan_instr *instr, tn__prepared *p, uint32_t first_out)
{
  tn__layout *l = b->layout;
  size_t n = (size_t)instr->n_inputs + instr->n_outputs, computed = 0;
  tn_view *views = tn__alloc_array(instr->n_outputs, sizeof *views);
  tn_view **pointers = tn__alloc_array(n, sizeof *pointers);
  size_t scratch_bytes = p->ctx.scratch_bytes;
  void *scratch = scratch_bytes == 0 ? NULL : tn__alloc_aligned(scratch_bytes, TN_ALIGN);
  tn_status st = views == NULL || pointers == NULL || (scratch == NULL && scratch_bytes > 0) ? no_memory(b) : TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < instr->n_inputs; k++) pointers[k] = &b->views[k];
  for (uint32_t k = 0; st == TN_OK && k < instr->n_outputs; k++) {
    tn__slot *s = &l->slots[first_out + k];
    if (s->root == first_out + k) {
      s->store = TN_STORE_KNOWN;
      s->known = tn__arena_aligned(&l->arena, s->bytes + 1, TN_ALIGN);
      b->in_place[first_out + k] = TN__NONE;
      if (s->known == NULL) st = no_memory(b);
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
  const uint32_t *in = tn__instr_inputs(b->plan, instr);
  for (uint32_t k = 0; k < instr->n_inputs; k++)
    if (b->has_form[k]) b->packed[b->slot_of[in[k]]]++;
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
  tn_plan *plan = b->plan;
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) {
    const tn__plan_instr *instr = &plan->instrs[i];
    instr_note *note = &b->notes[i - b->segment->begin];
    if (tn__instr_kernels(instr) == NULL && instr->n_outputs == 0) continue;
    fill_views(b, instr, entries);
    tn__prepared p = { .plan = plan, .instr = instr, .arena = &b->layout->arena, .layout = b->layout,
                       .packed = b->has_form, .outputs = b->prepared };
    p.ctx.n_inputs = instr->n_inputs;
    p.ctx.n_outputs = instr->n_outputs;
    p.ctx.inputs = b->views;
    tn_status st = tn__prepare_run(&p, b->err);
    b->layout->shape_states[i - b->segment->begin] = p.ctx.shape_state;
    b->layout->choices[i - b->segment->begin] = p.kernel;
    b->layout->cost_ns += p.ctx.cost_ns;
    if (st != TN_OK) return st;
    count_packed(b, instr);
    note->scratch_bytes = p.ctx.scratch_bytes;
    note->first_out = b->layout->n_slots;
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      st = add_output_slot(b, instr, k);
      if (st != TN_OK) return st;
    }
    if (is_known(b, instr, &p)) st = know(b, instr, &p, note->first_out);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* ---- outputs, lives, in place ---- */

static bool made_here(const builder *b, uint32_t value)
{
  const tn__plan_value *v = &b->plan->values[value];
  return v->kind == TN_VALUE_COMPUTED && v->producer >= b->segment->begin && v->producer < b->segment->end;
}

static void place_outputs(builder *b)
{
  for (uint32_t o = 0; o < b->plan->n_outputs; o++) {
    uint32_t value = b->plan->outputs[o];
    if (!made_here(b, value)) continue;
    tn__slot *s = &b->layout->slots[b->slot_of[value]];
    tn__slot *root = &b->layout->slots[s->root];
    if (root->store != TN_STORE_ARENA || root->bytes != s->bytes) continue;
    root->store = TN_STORE_OUTPUT;
    root->offset = o;
    b->layout->has_outputs = true;
  }
  for (uint32_t i = 0; i < b->layout->n_slots; i++) {
    tn__slot *s = &b->layout->slots[i];
    s->store = b->layout->slots[s->root].store;
  }
}

static void find_lasts(builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t i = 0; i < l->n_slots; i++) {
    const tn__plan_value *v = &b->plan->values[l->slots[i].value];
    uint32_t last = v->last_use == TN__NONE ? v->producer : v->last_use;
    if (v->dynamic_user || (last != TN__NONE && last >= b->segment->end)) last = FOREVER;
    uint32_t root = l->slots[i].root;
    if (last != TN__NONE && last > b->last[root]) b->last[root] = last;
    if (last == FOREVER) b->last[root] = FOREVER;
  }
  for (uint32_t o = 0; o < b->plan->n_outputs; o++)
    if (made_here(b, b->plan->outputs[o])) b->last[l->slots[b->slot_of[b->plan->outputs[o]]].root] = FOREVER;
}

static bool may_take_over(const builder *b, uint32_t i, uint32_t out, uint32_t in)
{
  const tn__layout *l = b->layout;
  const tn__plan_instr *instr = &b->plan->instrs[i];
  uint32_t root = root_of(l, in);
  if (l->slots[out].store != TN_STORE_ARENA || l->slots[root].store != TN_STORE_ARENA) return false;
  if (b->last[root] != i || l->slots[root].bytes != l->slots[out].bytes) return false;
  const uint32_t *inputs = tn__instr_inputs(b->plan, instr);
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    uint32_t s = b->slot_of[inputs[k]];
    if (s != in && root_of(l, s) == root) return false;
  }
  const uint32_t *outputs = tn__instr_outputs(b->plan, instr);
  for (uint32_t k = 0; k < instr->n_outputs; k++) { /* a second output over the same input would overwrite the first */
    uint32_t s = b->slot_of[outputs[k]];
    if (s != out && root_of(l, s) == root) return false;
  }
  return true;
}

static tn_status find_lives(builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) {
    const tn__plan_instr *instr = &b->plan->instrs[i];
    instr_note *note = &b->notes[i - b->segment->begin];
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      uint32_t out = note->first_out + k;
      if (l->slots[out].root != out || l->slots[out].store != TN_STORE_ARENA) continue;
      uint32_t in = b->in_place[out];
      if (in != TN__NONE && may_take_over(b, i, out, in)) {
        uint32_t root = root_of(l, in);
        l->slots[out].root = root;
        b->last[root] = b->last[out];
        continue;
      }
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
  tn_status st = tn__layout_assign(b->lives, b->n_lives, &l->arena_bytes, &l->live_bytes, b->err);
  for (size_t i = 0; st == TN_OK && i < b->n_lives; i++)
    if (b->lives[i].slot != TN__NONE) l->slots[b->lives[i].slot].offset = b->lives[i].offset;
  return st;
}

/* ---- tape ---- */

static bool only_views(const builder *b, const tn__plan_instr *instr, const instr_note *note)
{
  if (tn__instr_kernels(instr) == NULL) return true;
  for (uint32_t k = 0; k < instr->n_outputs; k++) {
    uint32_t out = note->first_out + k;
    if (b->layout->slots[out].root == out && b->layout->slots[out].store != TN_STORE_KNOWN) return false;
    if (b->in_place[out] != TN__NONE) return false; /* shares memory, yet is computed */
  }
  return instr->n_outputs > 0;
}

/* Heap values whose memory is needed last by instruction i: they stand among its operands. */
static uint32_t list_releases(builder *b, uint32_t i, const uint32_t *operands, uint32_t n, uint32_t *to)
{
  uint32_t n_out = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t root = b->layout->slots[operands[k]].root;
    if (b->layout->slots[root].store != TN_STORE_HEAP || b->last[root] != i) continue;
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
    if (only_views(b, instr, note)) continue;
    tn__tape *t = &l->tape[l->n_tape++];
    const tn__plan_kernel *kernel = tn__layout_kernel(l, i);
    *t = (tn__tape){ .compute = kernel->def->compute, .state = kernel->state, .instr = i, .operands = l->n_operands,
                     .shape_state = l->shape_states[i - b->segment->begin], .n_inputs = instr->n_inputs,
                     .n_outputs = instr->n_outputs };
    if (note->scratch_bytes > 0) t->scratch = b->lives[note->scratch_life].offset;
    const uint32_t *in = tn__instr_inputs(b->plan, instr);
    for (uint32_t k = 0; k < instr->n_inputs; k++) ids[l->n_operands++] = b->slot_of[in[k]];
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      const tn__slot *s = &l->slots[note->first_out + k];
      ids[l->n_operands++] = note->first_out + k;
      if (s->dynamic) t->flags |= TN_TAPE_DYNAMIC;
      else if (s->root == note->first_out + k && s->store == TN_STORE_HEAP) t->flags |= TN_TAPE_HEAP;
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
  uint32_t *roots = tn__arena_array(&l->arena, (size_t)b->plan->n_outputs + 1, sizeof *roots);
  uint32_t *first = tn__arena_array(&l->arena, (size_t)(b->segment->end - b->segment->begin) + 1, sizeof *first);
  if (roots == NULL || first == NULL) return no_memory(b);
  for (uint32_t i = 0; i < l->n_slots; i++) l->slots[i].next_alias = TN__NONE;
  for (uint32_t i = 0; i < l->n_slots; i++) {
    uint32_t root = l->slots[i].root;
    l->slots[i].store = l->slots[root].store;
    if (l->slots[i].store == TN_STORE_HEAP) l->has_heap = true;
    if (root == i) continue;
    l->slots[i].next_alias = l->slots[root].next_alias;
    l->slots[root].next_alias = i;
  }
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++)
    first[i - b->segment->begin] = b->notes[i - b->segment->begin].first_out;
  for (uint32_t o = 0; o < b->plan->n_outputs; o++) {
    uint32_t value = b->plan->outputs[o];
    roots[o] = TN__NONE;
    if (!made_here(b, value)) continue;
    uint32_t root = l->slots[b->slot_of[value]].root;
    if (l->slots[root].store == TN_STORE_OUTPUT && l->slots[root].offset == o) roots[o] = root;
  }
  l->output_root = roots;
  l->first_out = first;
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
    st = find_lives(&b);
  }
  if (st == TN_OK) st = make_tape(&b);
  if (st == TN_OK) st = link_aliases(&b);
  builder_fini(&b);
  if (st != TN_OK) tn__layout_unref(l);
  else *out = l;
  return st;
}
