/* SPDX-License-Identifier: Apache-2.0 */
/* Level (c) of the kit, for a runtime that manages memory itself: segments of a plan, the plan with
 * concrete shapes (a tn_plan_layout), and calls of its kernels.
 *
 * Segments are laid out one after the other: the first from the feeds, each further one when the
 * runtime has computed the values that it reads (tn_kit_layout_next). A tn_plan_layout is used by
 * one thread at a time while it grows; what was laid out is immutable. */
#include <core/exec/compute.h>
#include <core/exec/step/step.h>
#include <core/exec/step/workspace.h>
#include <core/kit/layout.h>

/* ---- segments, before there are shapes ---- */

/* Whether a shape follows from the value's elements: it is an operand of some segment. */
tn_bool tn_plan_value_gives_shapes(const tn_plan *plan, size_t i)
{
  if (plan == NULL || i >= plan->n_values) return 0;
  for (uint32_t k = 0; k < plan->n_segments; k++) {
    const tn__segment *s = &plan->segments[k];
    for (uint32_t o = 0; o < s->n_operands; o++)
      if (s->entries[s->operands[o]] == i) return 1;
  }
  return 0;
}

size_t tn_plan_n_segments(const tn_plan *plan) { return plan == NULL ? 0 : plan->n_segments; }

tn_status tn_plan_get_segment(const tn_plan *plan, size_t i, tn_plan_segment *out, tn_error *err)
{
  tn__error_reset(err);
  if (plan == NULL || out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_plan_get_segment: plan or out is NULL, or its struct_size is not set");
  tn_status st = tn_plan_check_straight(plan, err);
  if (st != TN_OK) return st;
  if (i >= plan->n_segments)
    return tn_error_set(err, TN_OUT_OF_RANGE, "segment %zu requested from a plan with %u", i, plan->n_segments);
  const tn__segment *s = &plan->segments[i];
  const tn_plan_segment full = {
    .struct_size = sizeof full, .begin = s->begin, .end = s->end, .n_entries = s->n_entries, .entries = s->entries
  };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

/* ---- layouts ---- */

/* The shape of a feed, copied: the runtime may release the tensor. */
typedef struct feed_shape {
  int64_t *dims; /* in the layout's arena */
  int64_t count;
  int32_t rank;
} feed_shape;

/* There are two kinds: of a whole plan, and of a single segment (alone), which an offload gives to
 * the runtime with its parts. Of the fields, the second kind has only plan, arena and alone. */
struct tn_plan_layout {
  tn_plan *plan; /* a reference; borrowed if alone */
  tn__arena arena;
  feed_shape *feeds;   /* by input of the step */
  tn__entry *entries;  /* scratch for one segment */
  uint32_t n_known;    /* segments that are laid out */
  tn__layout **layouts; /* by segment: references */
  tn__layout *alone;   /* the layout of the only segment, borrowed; NULL: this is of a whole plan */
};

tn_plan_layout *tn__kit_layout_alone(tn_plan *plan, tn__layout *layout)
{
  tn_plan_layout *l = tn__zalloc(sizeof *l);
  if (l == NULL) return NULL;
  l->plan = plan;
  l->alone = layout;
  tn__arena_init(&l->arena, 512);
  return l;
}

void tn__kit_layout_alone_destroy(tn_plan_layout *layout)
{
  if (layout == NULL) return;
  tn__arena_fini(&layout->arena);
  tn__free(layout, sizeof *layout);
}

uint32_t *tn__kit_layout_ids(tn_plan_layout *layout, size_t n)
{
  return tn__arena_array(&layout->arena, n + 1, sizeof(uint32_t));
}

/* The layout of a segment, borrowed; NULL: it is not laid out. */
static const tn__layout *of_segment(const tn_plan_layout *l, size_t segment)
{
  if (l->alone != NULL) return l->alone->segment == &l->plan->segments[segment] ? l->alone : NULL;
  return segment < l->n_known ? l->layouts[segment] : NULL;
}

void tn_kit_layout_release(tn_plan_layout *layout)
{
  if (layout == NULL) return;
  for (uint32_t i = 0; i < layout->n_known; i++) tn__layout_unref(layout->layouts[i]);
  tn__plan_unref(layout->plan);
  tn__arena_fini(&layout->arena);
  tn__free(layout, sizeof *layout);
}

const tn_plan *tn__kit_layout_plan(const tn_plan_layout *layout) { return layout->plan; }

/* ---- making one ---- */

/* Keeps the shapes of the feeds, for tn_kit_layout_value. */
static tn_status copy_feeds(tn_plan_layout *l, tn_tensor *const *inputs, size_t n, tn_error *err)
{
  const char *const no_memory = "layout";
  l->feeds = tn__arena_array(&l->arena, n + 1, sizeof *l->feeds);
  if (l->feeds == NULL) return tn__no_memory(err, no_memory, 0);
  for (size_t i = 0; i < n; i++) {
    const tn_tensor *t = inputs[i];
    if (t == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_layout: input %zu is NULL", i);
    feed_shape *f = &l->feeds[i];
    *f = (feed_shape){ .count = t->count, .rank = t->rank };
    f->dims = tn__arena_array(&l->arena, (size_t)t->rank + 1, sizeof *f->dims);
    if (f->dims == NULL) return tn__no_memory(err, no_memory, 0);
    for (int32_t d = 0; d < t->rank; d++) f->dims[d] = t->dims[d];
  }
  return TN_OK;
}

/* A layout of the whole plan in which no segment is laid out. */
static tn_status layout_make(tn_plan *plan, tn_tensor *const *inputs, size_t n, tn_plan_layout **out, tn_error *err)
{
  tn_plan_layout *l = tn__zalloc(sizeof *l);
  if (l == NULL) return tn__no_memory(err, "layout", sizeof *l);
  l->plan = tn__plan_ref(plan);
  tn__arena_init(&l->arena, 512);
  l->entries = tn__arena_array(&l->arena, (size_t)plan->max_entries + 1, sizeof *l->entries);
  l->layouts = tn__arena_array(&l->arena, (size_t)plan->n_segments + 1, sizeof *l->layouts);
  bool ok = l->entries != NULL && l->layouts != NULL;
  tn_status st = ok ? copy_feeds(l, inputs, n, err) : tn__no_memory(err, "layout", 0);
  if (st == TN_OK) *out = l;
  else tn_kit_layout_release(l);
  return st;
}

/* The elements of operands must be in host memory. */
static tn_status check_operands(const tn_plan_layout *l, const tn__segment *s, tn_error *err)
{
  for (uint32_t k = 0; k < s->n_operands; k++) {
    const tn__entry *e = &l->entries[s->operands[k]];
    const tn__plan_value *v = &l->plan->values[s->entries[s->operands[k]]];
    if (e->data != NULL || e->count == 0) continue;
    tn_error_set(err, TN_FAILED_PRECONDITION, "a shape depends on value '%s:%d', which is not in host memory",
                 tn_operation_name(v->output.op), (int)v->output.index);
    tn_error_set_node(err, tn_operation_name(v->output.op));
    return TN_FAILED_PRECONDITION;
  }
  return TN_OK;
}

/* Lays out the next segment, with l->entries. */
static tn_status lay_out(tn_plan_layout *l, tn_error *err)
{
  tn__segment *s = &l->plan->segments[l->n_known];
  tn_status st = check_operands(l, s, err);
  if (st == TN_OK) st = tn__layout_get(l->plan, s, l->entries, &l->layouts[l->n_known], err);
  if (st == TN_OK) l->n_known++;
  return st;
}

tn_status tn_kit_layout(const tn_plan *plan, tn_tensor *const *inputs, size_t n, tn_plan_layout **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_layout: out is NULL");
  *out = NULL;
  if (plan == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_layout: plan is NULL");
  if (n != plan->n_inputs || (inputs == NULL && n > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_layout: %zu inputs for a plan with %u",
                        inputs == NULL ? 0 : n, plan->n_inputs);
  tn_plan_layout *l = NULL;
  tn_status st = tn_plan_check_straight(plan, err);
  if (st == TN_OK) st = layout_make((tn_plan *)plan, inputs, n, &l, err);
  if (st == TN_OK && plan->n_segments > 0) {
    const tn__segment *s = &plan->segments[0];
    for (uint32_t i = 0; i < s->n_entries; i++) {
      const tn_tensor *t = inputs[plan->values[s->entries[i]].index]; /* the first segment can only read feeds */
      l->entries[i] = (tn__entry){ .dims = t->dims, .rank = t->rank, .count = t->count, .data = t->data };
    }
    st = lay_out(l, err);
  }
  if (st == TN_OK) *out = l;
  else tn_kit_layout_release(l);
  return st;
}

tn_status tn_kit_layout_next(tn_plan_layout *layout, tn_view *const *values, size_t n, tn_error *err)
{
  tn__error_reset(err);
  if (layout == NULL || values == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_layout_next: %s is NULL",
                        layout == NULL ? "layout" : "values");
  const tn_plan *plan = layout->plan;
  if (n != plan->n_values)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_layout_next: %zu values for a plan with %u", n,
                        plan->n_values);
  if (layout->alone != NULL)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "tn_kit_layout_next: the layout is that of a part");
  if (layout->n_known >= plan->n_segments)
    return tn_error_set(err, TN_OUT_OF_RANGE, "all %u segments of the plan are laid out", plan->n_segments);
  const tn__segment *s = &plan->segments[layout->n_known];
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn_view *v = values[s->entries[i]];
    if (v == NULL || v->rank < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "tn_kit_layout_next: the next segment reads value %u, which has no view", s->entries[i]);
    layout->entries[i] = (tn__entry){ .dims = v->dims, .rank = v->rank, .count = v->count, .data = v->data };
  }
  return lay_out(layout, err);
}

/* ---- reading it ---- */

tn_status tn_kit_layout_segment(const tn_plan_layout *layout, size_t i, tn_layout_segment *out, tn_error *err)
{
  tn__error_reset(err);
  if (layout == NULL || out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_kit_layout_segment: layout or out is NULL, or its struct_size is not set");
  const tn__layout *l = i < layout->plan->n_segments ? of_segment(layout, i) : NULL;
  if (l == NULL) return tn_error_set(err, TN_OUT_OF_RANGE, "segment %zu requested from a layout with %u", i,
                                     layout->n_known);
  const tn__segment *s = l->segment;
  const tn_layout_segment full = { .struct_size = sizeof full, .begin = s->begin, .end = s->end,
                                   .arena_bytes = l->memory.arena_bytes,
                                   .is_last = i + 1 == layout->plan->n_segments };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

/* Where a value is, as runtimes see it. TN_PLACE_GIVEN: the kernel allocates it. */
static int32_t place_of(const tn__slot *s, const tn__slot *root)
{
  if (root->dynamic || root->given) return TN_PLACE_GIVEN;
  switch (s->store) {
  case TN_STORE_CONSTANT: return TN_PLACE_CONSTANT;
  case TN_STORE_ARENA: return TN_PLACE_ARENA;
  case TN_STORE_OUTPUT: return TN_PLACE_OUTPUT;
  case TN_STORE_KNOWN: return TN_PLACE_KNOWN;
  case TN_STORE_HEAP: return TN_PLACE_OWN;
  default: return TN_PLACE_INPUT;
  }
}

/* Describes a computed value of a segment that is laid out. A view has the place of the value whose
 * memory it shows, also if an earlier segment made that. A dynamic value has no shape yet. */
static void describe(const tn_plan_layout *layout, size_t i, tn_layout_value *out)
{
  const tn__plan_value *v = &layout->plan->values[i];
  const tn__layout *l = of_segment(layout, v->segment);
  const tn__slot *s = &l->slots[v->slot], *root = &l->slots[s->root];
  out->source = root->value;
  out->rank = s->dynamic ? -1 : s->rank;
  out->dims = s->dynamic ? NULL : s->dims;
  out->count = s->dynamic ? 0 : s->count;
  out->bytes = s->dynamic ? 0 : s->bytes;
  out->place = place_of(s, root);
  if (s->store == TN_STORE_ARENA) out->offset = root->offset;
  if (s->store == TN_STORE_OUTPUT) out->index = (uint32_t)root->offset;
  if (s->store == TN_STORE_KNOWN) out->data = root->known;
}

/* Describes a value that a single segment (alone) reads from outside. Other values stay unknown. */
static void describe_entry(const tn__layout *l, size_t i, tn_layout_value *out)
{
  for (uint32_t e = 0; e < l->segment->n_entries; e++) {
    if (l->segment->entries[e] != i) continue;
    const tn__slot *s = &l->slots[e];
    out->place = TN_PLACE_INPUT;
    out->rank = s->rank;
    out->dims = s->dims;
    out->count = s->count;
    out->bytes = s->bytes;
    return;
  }
}

/* Describes a constant or a feed. */
static void describe_outside(const tn_plan_layout *layout, size_t i, tn_layout_value *out)
{
  const tn__plan_value *v = &layout->plan->values[i];
  if (v->kind == TN_VALUE_CONSTANT) {
    out->place = TN_PLACE_CONSTANT;
    out->rank = v->constant->rank;
    out->dims = v->constant->dims;
    out->count = v->constant->count;
    out->bytes = v->constant->bytes;
  } else {
    const feed_shape *f = &layout->feeds[v->index];
    out->place = TN_PLACE_INPUT;
    out->index = v->index;
    out->rank = f->rank;
    out->dims = f->dims;
    out->count = f->count;
    out->bytes = (size_t)f->count * tn_dtype_size(v->dtype);
  }
}

/* A value is described as in the segment that computes it, also if later segments read it. A value
 * whose segment is not laid out has rank -1. */
tn_status tn_kit_layout_value(const tn_plan_layout *layout, size_t i, tn_layout_value *out, tn_error *err)
{
  tn__error_reset(err);
  if (layout == NULL || out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_kit_layout_value: layout or out is NULL, or its struct_size is not set");
  if (i >= layout->plan->n_values)
    return tn_error_set(err, TN_OUT_OF_RANGE, "value %zu requested from a layout with %u", i,
                        layout->plan->n_values);
  const tn__plan_value *v = &layout->plan->values[i];
  tn_layout_value full = { .struct_size = sizeof full, .dtype = v->dtype, .rank = -1, .source = (uint32_t)i };
  bool inside = v->kind == TN_VALUE_COMPUTED && of_segment(layout, v->segment) != NULL;
  if (inside) describe(layout, i, &full);
  else if (layout->alone != NULL && v->kind != TN_VALUE_CONSTANT) describe_entry(layout->alone, i, &full);
  else if (v->kind != TN_VALUE_COMPUTED) describe_outside(layout, i, &full);
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

/* The call of an instruction; NULL: there is nothing to compute. The tape is sorted by instruction. */
static const tn__tape *call_of(const tn__layout *l, uint32_t instruction)
{
  uint32_t begin = 0, end = l->n_tape;
  while (begin < end) {
    uint32_t middle = begin + (end - begin) / 2;
    if (l->tape[middle].instr < instruction) begin = middle + 1;
    else end = middle;
  }
  return begin < l->n_tape && l->tape[begin].instr == instruction ? &l->tape[begin] : NULL;
}

/* The layout of the segment that an instruction is in. */
static tn_status find_instruction(const tn_plan_layout *layout, size_t i, const tn__layout **out, tn_error *err)
{
  const tn_plan *plan = layout->plan;
  if (i >= plan->n_instrs)
    return tn_error_set(err, TN_OUT_OF_RANGE, "instruction %zu requested from a layout with %u", i, plan->n_instrs);
  uint32_t segment = plan->instrs[i].segment;
  *out = of_segment(layout, segment);
  if (*out != NULL) return TN_OK;
  return tn_error_set(err, TN_FAILED_PRECONDITION, "instruction %zu is in segment %u, which is not laid out yet", i,
                      segment);
}

tn_status tn_kit_layout_instruction(const tn_plan_layout *layout, size_t i, tn_layout_instruction *out, tn_error *err)
{
  tn__error_reset(err);
  if (layout == NULL || out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_kit_layout_instruction: layout or out is NULL, or its struct_size is not set");
  const tn__layout *l;
  tn_status st = find_instruction(layout, i, &l, err);
  if (st != TN_OK) return st;
  const tn__tape *t = call_of(l, (uint32_t)i);
  tn_layout_instruction full = { .struct_size = sizeof full, .computes = t != NULL };
  if (t != NULL) {
    full.kernel = tn__layout_kernel(l, (uint32_t)i)->def;
    full.scratch_bytes = (size_t)t->scratch_units * TN_ALIGN;
  }
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

/* ---- calling kernels ---- */

static tn_status bad_view(const tn__plan_instr *instr, const char *what, uint32_t k, const char *why, tn_error *err)
{
  tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_compute: %s %u of node '%s' %s", what, k, tn_operation_name(instr->op),
               why);
  tn_error_set_node(err, tn_operation_name(instr->op));
  return TN_INVALID_ARGUMENT;
}

/* Why a view does not suit its slot; NULL: it does. */
static const char *why_unsuitable(const tn_view *v, const tn__slot *s)
{
  if (v == NULL) return "has no view";
  if (v->dtype != s->dtype) return "has a view of another dtype";
  if (s->dynamic) return NULL;
  bool same = v->rank == s->rank;
  for (int32_t d = 0; same && d < s->rank; d++) same = v->dims[d] == s->dims[d];
  return same ? NULL : "has a view of another shape";
}

/* An output that the kernel allocates itself needs a place in `made`; its view is filled in by the
 * kernel. Other outputs need memory. */
static tn_status check_views(const tn__layout *l, const tn__tape *t, const tn__plan_instr *instr,
                             tn_view *const *inputs, tn_view *const *outputs, tn_tensor **made, tn_error *err)
{
  const uint32_t *slots = l->operands + t->operands;
  if ((inputs == NULL && t->n_inputs > 0) || (outputs == NULL && t->n_outputs > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_compute: %s is NULL", inputs == NULL ? "inputs" : "outputs");
  for (uint32_t k = 0; k < t->n_inputs; k++) {
    const char *why = why_unsuitable(inputs[k], &l->slots[slots[k]]);
    if (why != NULL) return bad_view(instr, "input", k, why, err);
  }
  for (uint32_t k = 0; k < t->n_outputs; k++) {
    const tn__slot *s = &l->slots[slots[t->n_inputs + k]];
    bool given = s->dynamic || s->given;
    if (given && made == NULL)
      return bad_view(instr, "output", k, "is allocated by the kernel, but made is NULL", err);
    const char *why = NULL;
    if (outputs[k] == NULL) why = "has no view";
    else if (!given) why = why_unsuitable(outputs[k], s);
    if (why == NULL && !given && outputs[k]->data == NULL && s->bytes > 0) why = "has no memory";
    if (why != NULL) return bad_view(instr, "output", k, why, err);
  }
  return TN_OK;
}

static void drop_made(tn_tensor **made, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++) {
    tn_tensor_unref(made[k]);
    made[k] = NULL;
  }
}

/* A kernel that returned TN_OK must have set each output that it allocates itself. */
static tn_status check_made(const tn__layout *l, const tn__tape *t, tn_tensor *const *made, tn_error *err)
{
  const uint32_t *slots = l->operands + t->operands + t->n_inputs;
  for (uint32_t k = 0; k < t->n_outputs; k++)
    if ((l->slots[slots[k]].dynamic || l->slots[slots[k]].given) && made[k] == NULL)
      return tn_error_set(err, TN_INTERNAL, "kernel '%s' returned OK without setting output %u",
                          tn__layout_kernel(l, t->instr)->def->name, k);
  return TN_OK;
}

/* Calls the kernel. After an error no output is left in `made`. */
static tn_status call_kernel(tn_step *step, const tn__layout *l, const tn__tape *t, tn_view *const *inputs,
                             tn_view *const *outputs, void *scratch, tn_tensor **made, tn_error *err)
{
  const tn__plan_kernel *kernel = tn__layout_kernel(l, t->instr);
  const tn__plan_instr *instr = &l->plan->instrs[t->instr];
  tn__external_call apart = { .layout = l, .outputs = outputs, .made = made };
  tn__call c = { .ctx = { .struct_size = sizeof c.ctx,
                          .state = t->state,
                          .shape_state = t->shape_state,
                          .scratch = tn__non_null(scratch),
                          .inputs = inputs,
                          .outputs = outputs,
                          .n_inputs = t->n_inputs,
                          .n_outputs = t->n_outputs,
                          .reproducible = l->plan->settings.reproducible,
                          .err = err,
                          .step = step },
                 .tape = t,
                 .apart = &apart };
  for (uint32_t k = 0; made != NULL && k < t->n_outputs; k++) made[k] = NULL;
  tn_status st = tn__call_compute(&c, l);
  if (st == TN_PENDING)
    st = tn_error_set(err, TN_INTERNAL, "kernel '%s' returned TN_PENDING, but its op lacks TN_TRAIT_MAY_WAIT",
                      kernel->def->name);
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_made(l, t, made, err);
  if (st == TN_OK) {
    tn_error_clear(err); /* the kernel set an error but returned TN_OK: discard the text */
    return TN_OK;
  }
  if (made != NULL) drop_made(made, t->n_outputs);
  return tn__kernel_status(instr->op, kernel->def, "compute", st, err);
}

tn_status tn_kit_compute(tn_step *step, const tn_plan_layout *layout, size_t instruction, tn_view *const *inputs,
                         tn_view *const *outputs, void *scratch, tn_tensor **made, tn_error *err)
{
  tn__error_reset(err);
  if (step == NULL || layout == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_compute: %s is NULL", step == NULL ? "step" : "layout");
  const tn__layout *l;
  tn_status st = find_instruction(layout, instruction, &l, err);
  if (st != TN_OK) return st;
  const tn__tape *t = call_of(l, (uint32_t)instruction);
  if (t == NULL) return TN_OK;
  const tn__plan_instr *instr = &l->plan->instrs[instruction];
  st = check_views(l, t, instr, inputs, outputs, made, err);
  if (st == TN_OK && scratch == NULL && t->scratch_units > 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_compute: node '%s' needs %zu bytes of scratch",
                      tn_operation_name(instr->op), (size_t)t->scratch_units * TN_ALIGN);
  if (st != TN_OK) return st;
  int why = tn__step_stop(step);
  if (why != TN__GO_ON) return tn__step_stopped(why, instr->op, err);
  tn_error unheard = TN_ERROR_INIT; /* kernels always have an error object */
  st = call_kernel(step, l, t, inputs, outputs, scratch, made, err != NULL ? err : &unheard);
  /* A kernel that noticed the stop does not know its cause; and its loops may have been cut short
   * without its knowledge. */
  why = st == TN_OK || st == TN_CANCELLED ? tn__step_stop(step) : TN__GO_ON;
  if (why != TN__GO_ON) {
    if (made != NULL) drop_made(made, t->n_outputs);
    tn_error_clear(err);
    st = tn__step_stopped(why, instr->op, err);
  }
  tn_error_clear(&unheard);
  return st;
}
