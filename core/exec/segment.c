/* SPDX-License-Identifier: Apache-2.0 */
/* One segment of a plan in a step: its instance with the step's entries, its tape, and the values that outlive it. */
#include <core/exec/control.h>
#include <core/exec/segment.h>
#include <core/exec/tasks.h>
#include <core/exec/values.h>

/* ---- the instance ---- */

/* The view of a value of an earlier segment. */
static const tn_view *earlier_view(const tn__run *run, uint32_t value)
{
  uint32_t slot;
  tn__instance *instance;
  return tn__run_view(run, value, &slot, &instance);
}

static void describe_entry(const tn__run *run, uint32_t value, tn__entry *e)
{
  const tn_tensor *t = tn__run_whole(run, value);
  const tn_view *v = t == NULL ? earlier_view(run, value) : NULL;
  *e = t != NULL ? (tn__entry){ .dims = t->dims, .rank = t->rank, .count = t->count, .data = t->data }
                 : (tn__entry){ .dims = v->dims, .rank = v->rank, .count = v->count, .data = v->data };
}

static bool same_shape(const tn__slot *slot, const int64_t *dims, int32_t rank)
{
  if (slot->rank != rank) return false;
  for (int32_t d = 0; d < rank; d++)
    if (slot->dims[d] != dims[d]) return false;
  return true;
}

/* Whether the instance that was used last fits this step's entries: the usual case, in which
 * nothing is looked up. */
static bool same_shapes(const tn__run *run, const tn__segment *s, const tn__instance *first)
{
  const tn__slot *slots = first->layout->slots;
  if (s->n_operands != 0) return false; /* the values of operands must be equal, too: instance_find compares them */
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn_tensor *t = tn__run_whole(run, s->entries[i]);
    const tn_view *v = t == NULL ? earlier_view(run, s->entries[i]) : NULL;
    if (!(t != NULL ? same_shape(&slots[i], t->dims, t->rank) : same_shape(&slots[i], v->dims, v->rank))) return false;
  }
  return true;
}

/* May make a layout, which ends early if the step that needs it is stopped. */
static tn_status instance_find(tn__run *run, uint32_t number)
{
  const tn__stop limits = tn__step_limits(run->step), *around = tn__stop_now;
  tn__stop_now = &limits;
  tn_status st = tn__instance_find(run->plan, run->workspace, number, run->workspace->entries, run->err);
  tn__stop_now = around;
  return st;
}

/* Moves the segment's instance for this step to the front of its list and binds it to the arena. */
static tn_status instance_take(tn__run *run, uint32_t number, tn__instance **out)
{
  const tn__segment *s = &run->plan->segments[number];
  tn__workspace *w = run->workspace;
  tn_status st = TN_OK;
  if (w->instances[number] == NULL || !same_shapes(run, s, w->instances[number])) {
    for (uint32_t i = 0; i < s->n_entries; i++) describe_entry(run, s->entries[i], &w->entries[i]);
    st = instance_find(run, number);
  }
  if (__builtin_expect(run->offload != NULL, 0) && st == TN_OK) st = run->offload->offer(run, w->instances[number]);
  if (st != TN_OK) return st;
  tn__instance *i = *out = w->instances[number];
  if (i->layout->memory.arena_bytes > w->used) w->used = i->layout->memory.arena_bytes;
  if (__builtin_expect(w->used > w->arena_bytes, 0)) {
    st = tn__workspace_reserve(w, w->used, tn__run_waits(run), run->err);
    if (st != TN_OK) w->used = 0; /* the next step may fit into the present arena */
  }
  if (st == TN_OK && i->arena != w->arena) tn__instance_bind_arena(i, w);
  return st;
}

/* Binds the memory of feeds and of values of earlier segments, which differs from step to step. */
static void bind_entries(const tn__run *run, const tn__segment *s, tn__instance *instance)
{
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn_tensor *t = tn__run_whole(run, s->entries[i]);
    const tn_view *v = t == NULL ? earlier_view(run, s->entries[i]) : NULL;
    if (t != NULL) tn__bind_data(instance, i, t->data, t->buffer);
    else tn__bind_data(instance, i, v->data, v->buffer);
  }
}

/* ---- the end ---- */

/* Each value that outlives its segment takes a reference to the tensor whose memory it shows.
 * Several values may show the same tensor, so the segment's own references are released only after
 * that. */
static void hold_values(tn__run *run, const tn__instance *in)
{
  const tn__layout *l = in->layout;
  tn_tensor **held = run->workspace->held;
  for (uint32_t i = 0; i < l->n_holds; i++) {
    const tn__hold *h = &l->holds[i];
    held[h->held] = tn_tensor_ref(h->root != TN__NONE ? in->heap[h->root] : held[h->from]);
  }
  for (uint32_t i = 0; i < l->n_holds; i++) {
    uint32_t root = l->holds[i].root;
    if (root == TN__NONE || in->heap[root] == NULL) continue;
    tn_tensor_unref(in->heap[root]);
    in->heap[root] = NULL;
  }
}

/* If segments may wait, they need not end in order, so the last reader of a value is found by
 * counting (readers_left). Otherwise the plan knows it (s->ends). */
static void leave_entries(tn__run *run, const tn__segment *s)
{
  tn__workspace *w = run->workspace;
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn__plan_value *v = &run->plan->values[s->entries[i]];
    if (v->kind == TN_VALUE_COMPUTED && v->held != TN__NONE && --w->readers_left[v->held] == 0)
      tn__spare_give_from(w, &w->held[v->held]);
  }
}

void tn__segment_release(tn__run *run, const tn__segment *s)
{
  if (run->plan->has_waits) {
    leave_entries(run, s);
    return;
  }
  for (uint32_t i = 0; i < s->n_ends; i++) tn__spare_give_from(run->workspace, &run->workspace->held[s->ends[i]]);
}

void tn__segment_end(tn__run *run, uint32_t number)
{
  const tn__segment *s = &run->plan->segments[number];
  const tn__instance *in = run->workspace->instances[number];
  const tn__layout *l = in->layout;
  for (uint32_t i = 0; i < s->n_predicates; i++) {
    const tn_view *v = &in->views[l->predicates[2 * i]];
    run->workspace->predicates[l->predicates[2 * i + 1]] =
        v->count == 1 ? *(const uint8_t *)v->data != 0 : TN__NO_SCALAR;
  }
  if (l->n_holds > 0) hold_values(run, in);
  if (s->n_ends > 0 || run->plan->has_waits) tn__segment_release(run, s);
}

void tn__run_drop(tn__run *run)
{
  for (uint32_t i = 0; i < run->plan->n_held; i++) tn__spare_give_from(run->workspace, &run->workspace->held[i]);
  for (uint32_t i = 0; i < run->plan->n_segments; i++) {
    const tn__instance *in = run->workspace->instances[i];
    for (uint32_t k = 0; in != NULL && k < in->layout->n_heaps; k++)
      tn__spare_give_from(run->workspace, &in->heap[in->layout->heaps[k]]);
  }
}

/* ---- a run ---- */

tn_status tn__segment_begin(tn__run *run, uint32_t number, tn__instance **out)
{
  tn_status st = instance_take(run, number, out);
  if (st != TN_OK) return st;
  run->cost_ns += (*out)->layout->cost_ns;
  bind_entries(run, &run->plan->segments[number], *out);
  return (*out)->layout->has_outputs ? tn__outputs_bind(run, *out) : TN_OK;
}

/* Offloaded parts take precedence over tasks: a tape with parts is run in order. */
tn_status tn__segment_tape(tn__run *run, uint32_t number, tn__instance *instance)
{
  if (__builtin_expect(instance->layout->tasks != NULL, 0) && !tn__offload_takes(run, instance))
    return tn__tasks_tape(run, number, instance);
  return tn__tape_run(run, number, instance);
}
