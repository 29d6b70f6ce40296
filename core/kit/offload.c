/* SPDX-License-Identifier: Apache-2.0 */
/* Level (a) of the kit with parts that the runtime runs. The tape is split at calls that do more
 * than compute plain elements from plain elements (strings, resources, dynamic shapes). Each range
 * between two splits is a part, and is offered to the runtime once for each layout. The kit keeps
 * all memory: a part reads and writes it through the views of the instance.
 *
 * Ownership: the parts of a layout (tn__offloaded) belong to the layout, and are freed with it;
 * they are also in a list of the offload, by which the executable releases all handles when it is
 * released itself. A tn__offloaded is made without a lock and then published by a compare-exchange;
 * if several steps make one, the first is used. */
#include <core/exec/step/env.h>
#include <core/exec/step/offload.h>
#include <core/exec/step/run_state.h>
#include <core/exec/step/workspace.h>
#include <core/kit/executable.h>
#include <core/kit/layout.h>

#include <string.h>

/* If a segment has a layout for each value of its operands, parts are offered only while it has at
 * most so few layouts: otherwise most steps would have a new layout and offer its parts again. */
#define MOST_LAYOUTS 4

/* ---- cutting a tape ---- */

/* The arrays exist only while a tape is cut. Calls are places in the tape. */
typedef struct cutter {
  tn_plan *plan;
  const tn__layout *layout;
  uint32_t depth;        /* of function calls */
  tn__offloaded *made;   /* the result */
  uint32_t *last_read;   /* by root: the last call that reads it, plus 1; TN__NONE: it is also read after the tape */
  uint32_t *writer;      /* by root: the call of this part that wrote it last, plus 1 */
  uint32_t *written;     /* by root: the slot that it wrote */
  uint32_t *seen;        /* by slot: the end (an instruction) of the last part that has it among its inputs */
} cutter;

static const tn__plan_instr *instr_of(const cutter *c, uint32_t tape)
{
  return &c->plan->instrs[c->layout->tape[tape].instr];
}

/* Whether the call is different for other values of the operands, for which instances of this
 * layout are used, too. */
static bool varies(const tn__layout *l, uint32_t tape)
{
  for (uint32_t i = 0; !l->key.fixed && i < l->key.n_again; i++)
    if (l->key.again[i].tape == tape) return true;
  return false;
}

/* Whether a call does more than compute plain elements from plain elements. */
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
  return views && t->n_outputs > 1; /* a single output is written over an input; of several, some may be views */
}

/* The end of the part that begins at `first`; `first` if that call belongs to none. */
static uint32_t find_end(const cutter *c, uint32_t first)
{
  uint32_t end = first;
  while (end < c->layout->n_tape && !breaks(c, end)) end++;
  return end;
}

/* ---- inputs and outputs of a part ---- */

/* Fills last_read. Heap values, outputs and predicates are read after the tape. */
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

/* Whether the part computes the value. */
static bool is_inside(const cutter *c, const tn__part *p, uint32_t value)
{
  const tn__plan_value *v = &c->plan->values[value];
  return v->kind == TN_VALUE_COMPUTED && v->producer >= p->said.begin && v->producer < p->said.end;
}

/* Values that the part reads and does not compute, each once. The runtime has constants and known
 * values already. */
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

/* Memory that the part writes and that is read after it; for each root the slot that was written
 * last. */
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

/* Makes all parts of the tape. */
static void cut_tape(cutter *c)
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

/* Removes it from the list; nothing happens if it is not in it. */
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

/* The handles are released, and it is not in the list. */
static void free_parts(tn__offloaded *o)
{
  tn__kit_layout_alone_destroy(o->shapes);
  tn__free(o->slots, o->slots_bytes);
  offload_unref(o->offload);
  tn__free(o, o->block_bytes);
}

/* Called when the layout is freed. */
static void free_offloaded(tn__offloaded *o)
{
  tn__mutex_lock(&o->offload->mu);
  unlink_from(o->offload, o);
  tn__mutex_unlock(&o->offload->mu);
  release_handles(o);
  free_parts(o);
}

/* Called when the executable is released. The runtime's `release` is called without the lock. */
static void close_offload(tn__offload *offload)
{
  tn__mutex_lock(&offload->mu);
  offload->closed = true;
  while (offload->first != NULL) {
    tn__offloaded *o = offload->first;
    unlink_from(offload, o);
    tn__mutex_unlock(&offload->mu);
    release_handles(o); /* its layout exists, since the plan does, and no step runs */
    tn__mutex_lock(&offload->mu);
  }
  tn__mutex_unlock(&offload->mu);
  offload_unref(offload);
}

/* Allocates the parts, and room for all of their inputs and outputs. Parts are never moved:
 * runtimes keep their addresses. */
static tn__offloaded *offloaded_make(cutter *c, tn__offload *offload, tn_error *err)
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

/* Whether the number that a callback of the runtime returned is a status. */
static bool is_status(tn_status st) { return st >= TN_OK && st <= TN_UNAUTHENTICATED; }

/* Offers a part to the runtime, which may take it by setting a handle. The lists of ids are in the
 * arena of the tn_plan_layout, so they live as long as the parts. */
static tn_status offer_part(cutter *c, tn__part *p, tn_error *err)
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
  if (is_status(st)) return st;
  return tn_error_wrap(err, TN_INTERNAL, "the runtime's offload: take returned %d, which is not a status", st);
}

/* Cuts the tape and offers all parts. After an error the handles of those that were taken are
 * released. */
static tn_status offer_all(cutter *c, tn__offload *offload, tn_error *err)
{
  size_t n = (size_t)c->layout->n_slots + 1, bytes = 4 * n * sizeof(uint32_t);
  uint32_t *lists = tn__zalloc(bytes);
  if (lists == NULL) return tn__no_memory(err, "parts of a plan", bytes);
  c->last_read = lists;
  c->writer = lists + n;
  c->written = lists + 2 * n;
  c->seen = lists + 3 * n;
  c->made = offloaded_make(c, offload, err);
  tn_status st = c->made == NULL ? TN_RESOURCE_EXHAUSTED : TN_OK;
  if (st == TN_OK) cut_tape(c);
  for (uint32_t i = 0; st == TN_OK && i < c->made->n_parts; i++) st = offer_part(c, &c->made->parts[i], err);
  tn__free(lists, bytes);
  for (uint32_t i = 0; st == TN_OK && i < c->made->n_parts; i++) c->made->any |= c->made->parts[i].handle != NULL;
  if (st == TN_OK || c->made == NULL) return st;
  release_handles(c->made);
  free_parts(c->made);
  return st;
}

/* Publishes the parts of a layout. If another step has offered them meanwhile, its parts are used,
 * and these are freed. */
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

/* Whether the parts of this layout are likely to be used by several steps. */
static bool is_worth_asking(tn_plan *plan, const tn__layout *base)
{
  if (!base->key.fixed || base->segment->n_operands == 0) return true;
  tn__mutex_lock(&plan->caches.mu);
  uint32_t n = base->segment->n_layouts;
  tn__mutex_unlock(&plan->caches.mu);
  return n <= MOST_LAYOUTS;
}

/* Collects pointers to the instance's views, in the order of the parts' operands. */
static tn_status bind_parts(tn__instance *in, tn__offloaded *o, tn_error *err)
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

/* tn__offload.offer. `offered` is also set if the runtime took none of the parts: each instance is
 * checked once. */
static tn_status offer_parts(tn__run *run, tn__instance *in)
{
  if (in->offered) return TN_OK;
  tn__layout *base = in->layout->base != NULL ? in->layout->base : in->layout;
  tn__offloaded *o = atomic_load_explicit(&base->offloaded, memory_order_acquire);
  tn_status st = TN_OK;
  if (o == NULL && run->plan->segments[base->segment - run->plan->segments].kind == TN__SEGMENT_TAPE &&
      is_worth_asking(run->plan, base)) {
    cutter c = { .plan = run->plan, .layout = base, .depth = run->step->depth };
    atomic_store_explicit(&tn__offloaded_destroy, free_offloaded, memory_order_release);
    st = offer_all(&c, run->offload, run->err);
    if (st == TN_OK) o = publish(base, c.made);
  }
  if (st == TN_OK && o != NULL) st = bind_parts(in, o, run->err);
  in->offered = st == TN_OK;
  return st;
}

/* tn__offload.run. */
static tn_status run_part(tn__run *run, tn__instance *in, const tn__part *p)
{
  const tn__offload *offload = in->offloaded->offload;
  tn_view **views = in->part_views + p->operands;
  tn_status st = offload->calls.run(offload->calls.user, p->handle, run->step, views, views + p->n_inputs, run->err);
  if (st == TN_OK || tn__step_failed(run->step)) return st; /* the first error has been reported (S-CAN-01) */
  int why = tn__step_stop(run->step);
  if (st == TN_CANCELLED && why != TN__GO_ON) {
    const tn_operation *op = run->plan->instrs[p->said.begin].op;
    tn_error_clear(run->err);
    return tn__step_stopped(why, op, run->err);
  }
  if (is_status(st))
    return tn_error_set(run->err, st, "the runtime's offload: run failed without a message");
  return tn_error_wrap(run->err, TN_INTERNAL, "the runtime's offload: run returned %d, which is not a status", st);
}

/* ---- executables ---- */

tn_status tn_kit_part_instruction(const tn_kit_part *part, size_t i, tn_plan_instruction *out, tn_error *err)
{
  tn__error_reset(err);
  if (part == NULL || out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_kit_part_instruction: part or out is NULL, or its struct_size is not set");
  if (i < part->begin || i >= part->end)
    return tn_error_set(err, TN_OUT_OF_RANGE, "instruction %zu requested from a part with instructions %u to %u", i,
                        part->begin, part->end - 1);
  tn__plan_instruction(part->plan, (uint32_t)i, out);
  return TN_OK;
}

/* The slot that an offload lacks; NULL: none. */
static const char *missing_slot(const tn_kit_offload *offload)
{
  if (offload->take == NULL) return "take";
  if (offload->run == NULL) return "run";
  return offload->release == NULL ? "release" : NULL;
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
  if (missing_slot(offload) != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare_offloaded: the offload has no %s",
                        missing_slot(offload));
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
