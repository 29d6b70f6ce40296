/* SPDX-License-Identifier: Apache-2.0 */
/* Level (a) of the kit with parts that the runtime runs. A tape is cut where a call is more than elements from
 * elements: what stands between is offered once for each layout. The kit keeps all memory: a part reads it and writes
 * it, by the views of the instance. */
#include <core/kit/executable.h>
#include <core/kit/layout.h>
#include <core/exec/offload.h>

#include <string.h>

#define MOST_LAYOUTS 4 /* of a segment whose layouts follow from values: with more, steps would ask again and again */

/* ---- cutting a tape ---- */

typedef struct cutter {
  tn_plan *plan;
  const tn__layout *layout;
  uint32_t depth;
  tn__offloaded *made;
  uint32_t *
      last_read; /* by slot that is a root: the last call that reads it, plus 1; TN__NONE: what comes later does, too */
  uint32_t *writer;      /* by root: the call of this part that wrote it last, plus 1 */
  uint32_t *written;     /* by root: the slot that it wrote */
  uint32_t *seen;        /* by slot: 1 + the number of the part that has it among its inputs */
} cutter;

static const tn__plan_instr *instr_of(const cutter *c, uint32_t tape)
{
  return &c->plan->instrs[c->layout->tape[tape].instr];
}

/* Other values of the operands change these calls. */
static bool varies(const tn__layout *l, uint32_t tape)
{
  for (uint32_t i = 0; !l->fixed && i < l->n_again; i++)
    if (l->again[i].tape == tape) return true;
  return false;
}

/* What is more than plain elements from plain elements. */
static bool breaks(const cutter *c, uint32_t tape)
{
  const tn__layout *l = c->layout;
  const tn__tape *t = &l->tape[tape];
  const uint32_t *slots = l->operands + t->operands;
  bool views = false;
  if ((t->flags & TN_TAPE_DYNAMIC) || varies(l, tape)) return true;
  if (instr_of(c, tape)->traits & (TN_TRAIT_STATEFUL | TN_TRAIT_FUNCTION_CALL | TN_TRAIT_MAY_WAIT)) return true;
  for (uint32_t k = 0; k < t->n_inputs + t->n_outputs; k++)
    if (tn__dtype_is_managed(l->slots[slots[k]].dtype)) return true;
  for (uint32_t k = t->n_inputs; k < t->n_inputs + t->n_outputs; k++) views |= l->slots[slots[k]].root != slots[k];
  return views && t->n_outputs > 1; /* one alone is written over an input, others may be views */
}

static uint32_t find_end(const cutter *c, uint32_t first)
{
  uint32_t end = first;
  while (end < c->layout->n_tape && !breaks(c, end)) end++;
  return end;
}

/* ---- what a part reads and gives ---- */

static void note_readers(cutter *c)
{
  const tn__layout *l = c->layout;
  for (uint32_t t = 0; t < l->n_tape; t++)
    for (uint32_t k = 0; k < l->tape[t].n_inputs; k++)
      c->last_read[l->slots[l->operands[l->tape[t].operands + k]].root] = t + 1;
  for (uint32_t s = 0; s < l->n_slots; s++) {
    const tn__slot *slot = &l->slots[s];
    if (slot->root == s && (slot->store == TN_STORE_HEAP || slot->store == TN_STORE_OUTPUT || slot->fetched))
      c->last_read[s] = TN__NONE;
  }
  for (uint32_t i = 0; i < l->segment->n_predicates; i++) c->last_read[l->slots[l->predicates[2 * i]].root] = TN__NONE;
}

static void add_slot(cutter *c, uint32_t slot)
{
  tn__offloaded *o = c->made;
  o->slots[o->n_slots++] = slot;
}

static bool is_inside(const cutter *c, const tn__part *p, uint32_t value)
{
  const tn__plan_value *v = &c->plan->values[value];
  return v->kind == TN_VALUE_COMPUTED && v->producer >= p->said.begin && v->producer < p->said.end;
}

static void add_inputs(cutter *c, tn__part *p)
{
  const tn__layout *l = c->layout;
  for (uint32_t i = p->said.begin; i < p->said.end; i++) {
    const tn__plan_instr *instr = &c->plan->instrs[i];
    for (uint32_t k = 0; k < instr->n_inputs; k++) {
      uint32_t s = c->plan->slots[instr->first + k];
      uint8_t store = l->slots[s].store;
      if (is_inside(c, p, tn__instr_inputs(c->plan, instr)[k]) || c->seen[s] == p->said.end) continue;
      if (store == TN_STORE_CONSTANT || store == TN_STORE_KNOWN) continue;
      c->seen[s] = p->said.end;
      add_slot(c, s);
      p->n_inputs++;
    }
  }
}

/* Memory that is written last by a call of the part, and read by what comes after it. */
static void add_outputs(cutter *c, tn__part *p)
{
  const tn__layout *l = c->layout;
  for (uint32_t t = p->first; t < p->last; t++)
    for (uint32_t k = 0; k < l->tape[t].n_outputs; k++) {
      uint32_t s = l->operands[l->tape[t].operands + l->tape[t].n_inputs + k], root = l->slots[s].root;
      c->writer[root] = t + 1;
      c->written[root] = s;
    }
  for (uint32_t t = p->first; t < p->last; t++)
    for (uint32_t k = 0; k < l->tape[t].n_outputs; k++) {
      uint32_t s = l->operands[l->tape[t].operands + l->tape[t].n_inputs + k], root = l->slots[s].root;
      if (c->writer[root] != t + 1 || c->written[root] != s || l->slots[root].store == TN_STORE_KNOWN) continue;
      if (c->last_read[root] <= p->last) continue;
      add_slot(c, s);
      p->n_outputs++;
    }
}

static uint32_t count_parts(const cutter *c)
{
  uint32_t n = 0;
  for (uint32_t t = 0; t < c->layout->n_tape; t++) {
    uint32_t end = find_end(c, t);
    n += end > t;
    t = end;
  }
  return n;
}

static void cut(cutter *c)
{
  const tn__layout *l = c->layout;
  tn__offloaded *o = c->made;
  note_readers(c);
  for (uint32_t t = 0; t < l->n_tape; t++) {
    uint32_t end = find_end(c, t);
    if (end > t) {
      tn__part *p = &o->parts[o->n_parts++];
      *p = (tn__part){ .first = t, .last = end, .operands = o->n_slots,
                       .said = { .struct_size = sizeof p->said, .plan = c->plan, .begin = l->tape[t].instr,
                                 .end = l->tape[end - 1].instr + 1 } };
      add_inputs(c, p);
      add_outputs(c, p);
    }
    t = end;
  }
}

/* ---- offering ---- */

static void unlink_from(tn__offload *offload, tn__offloaded *o)
{
  tn__assert_held(&offload->mu);
  if (o->prev != NULL) o->prev->next = o->next;
  else if (offload->first == o) offload->first = o->next;
  if (o->next != NULL) o->next->prev = o->prev;
  o->next = o->prev = NULL;
}

static void release_handles(tn__offloaded *o)
{
  for (uint32_t i = 0; i < o->n_parts; i++) {
    if (o->parts[i].handle != NULL) o->offload->calls.release(o->offload->calls.user, o->parts[i].handle);
    o->parts[i].handle = NULL;
  }
}

static void offload_unref(tn__offload *offload)
{
  if (atomic_fetch_sub_explicit(&offload->refs, 1, memory_order_acq_rel) != 1) return;
  tn__mutex_fini(&offload->mu);
  tn__free(offload, sizeof *offload);
}

static void free_parts(tn__offloaded *o)
{
  tn__kit_layout_alone_free(o->shapes);
  tn__free(o->slots, o->slots_bytes);
  offload_unref(o->offload);
  tn__free(o, o->block_bytes);
}

/* With its layout. */
static void free_offloaded(tn__offloaded *o)
{
  tn__mutex_lock(&o->offload->mu);
  unlink_from(o->offload, o);
  tn__mutex_unlock(&o->offload->mu);
  release_handles(o);
  free_parts(o);
}

static void close_offload(tn__offload *offload)
{
  tn__mutex_lock(&offload->mu);
  offload->closed = true;
  while (offload->first != NULL) {
    tn__offloaded *o = offload->first;
    unlink_from(offload, o);
    tn__mutex_unlock(&offload->mu);
    release_handles(o); /* the plan is there, so its layouts are; and no step runs */
    tn__mutex_lock(&offload->mu);
  }
  tn__mutex_unlock(&offload->mu);
  offload_unref(offload);
}

/* Room for all that the parts read and give. They stay where they are: runtimes have their addresses. */
static tn__offloaded *make(cutter *c, tn__offload *offload, tn_error *err)
{
  const tn__layout *l = c->layout;
  uint32_t n_parts = count_parts(c);
  size_t size, slots = 0;
  for (uint32_t i = l->segment->begin; i < l->segment->end; i++)
    slots += c->plan->instrs[i].n_inputs + c->plan->instrs[i].n_outputs;
  bool ok = tn__size_mul(n_parts, sizeof(tn__part), &size) && tn__size_add(size, sizeof(tn__offloaded), &size);
  tn__offloaded *o = ok ? tn__zalloc(size) : NULL;
  if (o == NULL) {
    tn__no_memory(err, "parts of a plan", sizeof(tn__part) * n_parts);
    return NULL;
  }
  o->offload = offload;
  o->block_bytes = size;
  o->slots_bytes = (slots + 1) * sizeof *o->slots;
  o->slots = tn__alloc(o->slots_bytes);
  o->shapes = tn__kit_layout_alone(c->plan, (tn__layout *)l);
  atomic_fetch_add_explicit(&offload->refs, 1, memory_order_relaxed);
  if (o->slots != NULL && o->shapes != NULL) return o;
  tn__no_memory(err, "parts of a plan", o->slots_bytes);
  free_parts(o);
  return NULL;
}

/* The lists of ids live in the plan-layout's arena as long as the parts. */
static tn_status ask(cutter *c, tn__part *p, tn_error *err)
{
  tn__offloaded *o = c->made;
  const uint32_t *slots = o->slots + p->operands;
  size_t n = (size_t)p->n_inputs + p->n_outputs;
  uint32_t *ids = tn__kit_layout_ids(o->shapes, n);
  if (ids == NULL) return tn__no_memory(err, "parts of a plan", n * sizeof *ids);
  for (size_t i = 0; i < n; i++) ids[i] = c->layout->slots[slots[i]].value;
  p->said.layout = o->shapes;
  p->said.inputs = ids;
  p->said.outputs = ids + p->n_inputs;
  p->said.n_inputs = p->n_inputs;
  p->said.n_outputs = p->n_outputs;
  p->said.depth = c->depth;
  void *handle = NULL;
  tn_status st = o->offload->calls.take(o->offload->calls.user, &p->said, &handle, err);
  if (st == TN_OK) p->handle = handle;
  return st == TN_OK || (st > TN_OK && st <= TN_UNAUTHENTICATED)
             ? st : tn_error_wrap(err, TN_INTERNAL, "the runtime's offload: take returned %d, which is no status", st);
}

static tn_status offer(cutter *c, tn__offload *offload, tn_error *err)
{
  size_t n = (size_t)c->layout->n_slots + 1, bytes = 4 * n * sizeof(uint32_t);
  uint32_t *lists = tn__zalloc(bytes);
  if (lists == NULL) return tn__no_memory(err, "parts of a plan", bytes);
  c->last_read = lists;
  c->writer = lists + n;
  c->written = lists + 2 * n;
  c->seen = lists + 3 * n;
  c->made = make(c, offload, err);
  tn_status st = c->made == NULL ? TN_RESOURCE_EXHAUSTED : TN_OK;
  if (st == TN_OK) cut(c);
  for (uint32_t i = 0; st == TN_OK && i < c->made->n_parts; i++) st = ask(c, &c->made->parts[i], err);
  tn__free(lists, bytes);
  for (uint32_t i = 0; st == TN_OK && i < c->made->n_parts; i++) c->made->any |= c->made->parts[i].handle != NULL;
  if (st == TN_OK || c->made == NULL) return st;
  release_handles(c->made);
  free_parts(c->made);
  return st;
}

/* Another step may have asked meanwhile. */
static tn__offloaded *publish(tn__layout *base, tn__offloaded *made)
{
  tn__offload *offload = made->offload;
  tn__offloaded *there = NULL;
  tn__mutex_lock(&offload->mu);
  made->next = offload->first;
  if (offload->first != NULL) offload->first->prev = made;
  offload->first = made;
  bool first = atomic_compare_exchange_strong_explicit(&base->offloaded, &there, made, memory_order_acq_rel,
                                                       memory_order_acquire);
  tn__mutex_unlock(&offload->mu);
  if (first) return made;
  free_offloaded(made);
  return there;
}

/* ---- instances ---- */

/* Each new value of an operand would be asked for. */
static bool is_worth_asking(tn_plan *plan, const tn__layout *base)
{
  if (!base->fixed || base->segment->n_operands == 0) return true;
  tn__mutex_lock(&plan->mu);
  uint32_t n = base->segment->n_layouts;
  tn__mutex_unlock(&plan->mu);
  return n <= MOST_LAYOUTS;
}

static tn_status bind(tn__instance *in, tn__offloaded *o, tn_error *err)
{
  if (!o->any) return TN_OK;
  size_t n = (size_t)o->n_slots + 1;
  tn_view **views = tn__alloc_array(n, sizeof *views);
  if (views == NULL) return tn__no_memory(err, "memory of a step", o->n_slots * sizeof *views);
  for (uint32_t i = 0; i < o->n_slots; i++) views[i] = &in->views[o->slots[i]];
  in->part_views = views;
  in->part_views_bytes = n * sizeof *views;
  in->offloaded = o;
  return TN_OK;
}

static tn_status offer_parts(tn__run *run, tn__instance *in)
{
  if (in->offered) return TN_OK;
  tn__layout *base = in->layout->base != NULL ? in->layout->base : in->layout;
  tn__offloaded *o = atomic_load_explicit(&base->offloaded, memory_order_acquire);
  tn_status st = TN_OK;
  if (o == NULL && run->plan->segments[base->segment - run->plan->segments].kind == TN__SEGMENT_TAPE &&
      is_worth_asking(run->plan, base)) {
    cutter c = { .plan = run->plan, .layout = base, .depth = run->step->depth };
    atomic_store_explicit(&tn__offloaded_free, free_offloaded, memory_order_release);
    st = offer(&c, run->offload, run->err);
    if (st == TN_OK) o = publish(base, c.made);
  }
  if (st == TN_OK && o != NULL) st = bind(in, o, run->err);
  in->offered = st == TN_OK;
  return st;
}

static tn_status run_part(tn__run *run, tn__instance *in, const tn__part *p)
{
  const tn__offload *offload = in->offloaded->offload;
  tn_view **views = in->part_views + p->operands;
  tn_status st = offload->calls.run(offload->calls.user, p->handle, run->step, views, views + p->n_inputs, run->err);
  if (st == TN_OK || tn__step_failed(run->step)) return st; /* the first error was told (S-CAN-01) */
  int why = tn__step_stop(run->step);
  if (st == TN_CANCELLED && why != TN__GO_ON) {
    const tn_operation *op = run->plan->instrs[p->said.begin].op;
    tn_error_clear(run->err);
    return tn__step_stopped(why, op, run->err);
  }
  if (st > TN_OK && st <= TN_UNAUTHENTICATED)
    return tn_error_set(run->err, st, "the runtime's offload: run failed without a message");
  return tn_error_wrap(run->err, TN_INTERNAL, "the runtime's offload: run returned %d, which is no status", st);
}

/* ---- executables ---- */

tn_status tn_kit_part_instruction(const tn_kit_part *part, size_t i, tn_plan_instruction *out, tn_error *err)
{
  tn__error_reset(err);
  if (part == NULL || out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_kit_part_instruction: part or out is NULL, or its struct_size is not set");
  if (i < part->begin || i >= part->end)
    return tn_error_set(err, TN_OUT_OF_RANGE, "instruction %zu asked of a part with those from %u to %u", i,
                        part->begin, part->end);
  tn__plan_instruction(part->plan, (uint32_t)i, out);
  return TN_OK;
}

tn_status tn_kit_prepare_offloaded(const tn_plan *plan, uint32_t flags, const tn_kit_offload *offload,
                                   tn_executable **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare_offloaded: out is NULL");
  *out = NULL;
  if (offload == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare_offloaded: offload is NULL");
  if (offload->struct_size < TN_KIT_OFFLOAD_SIZE)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_kit_prepare_offloaded: struct_size of the offload is %zu, wanted %zu", offload->struct_size,
                        (size_t)TN_KIT_OFFLOAD_SIZE);
  if (offload->take == NULL || offload->run == NULL || offload->release == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare_offloaded: the offload has no %s",
                        offload->take == NULL ? "take" : offload->run == NULL ? "run" : "release");
  tn__offload *o = tn__zalloc(sizeof *o);
  if (o == NULL) return tn__no_memory(err, "executable", sizeof *o);
  atomic_init(&o->refs, 1);
  memcpy(&o->calls, offload, offload->struct_size < sizeof o->calls ? offload->struct_size : sizeof o->calls);
  tn__mutex_init(&o->mu, "offloaded parts", TN_RANK_OFFLOAD);
  o->offer = offer_parts;
  o->run = run_part;
  o->close = close_offload;
  tn_status st = tn_kit_prepare(plan, flags, out, err);
  if (st == TN_OK) (*out)->offload = o;
  else close_offload(o);
  return st;
}
