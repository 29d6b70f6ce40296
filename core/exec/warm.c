/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the layouts of a plan without running a step: segment by segment, as far as shapes follow
 * from those of the feeds. The plan caches the layouts, and with them the packed constants of
 * kernels. A workspace keeps an arena that is large enough. */
#include <core/exec/run.h>

#include <core/exec/step/step.h>
#include <core/exec/step/workspace.h>
#include <core/layout/layout.h>

typedef struct warming {
  tn_plan *plan;
  const tn_step *step;
  tn__layout **layouts; /* by segment: references; NULL = its shapes are not known */
  tn__entry *entries;   /* of one segment */
  size_t arena_bytes;   /* maximum of the segments */
} warming;

/* A value of an earlier segment: its shape is known from there, its elements only if they follow
 * from shapes. False: the shape is not known before a step. */
static bool describe_computed(const warming *w, const tn__plan_value *v, tn__entry *out)
{
  const tn__layout *l = w->layouts[v->segment];
  if (l == NULL || v->whole) return false;
  const tn__slot *s = &l->slots[v->slot], *root = &l->slots[s->root];
  *out = (tn__entry){
    .dims = s->dims, .rank = s->rank, .count = s->count, .data = s->store == TN_STORE_KNOWN ? root->known : NULL
  };
  return !s->dynamic;
}

static bool describe(const warming *w, uint32_t value, tn__entry *out)
{
  const tn__plan_value *v = &w->plan->values[value];
  if (v->kind == TN_VALUE_COMPUTED) return describe_computed(w, v, out);
  if (v->kind != TN_VALUE_FEED) return false;
  const tn_tensor *t = w->step->inputs[v->index];
  *out = (tn__entry){ .dims = t->dims, .rank = t->rank, .count = t->count, .data = t->data };
  return true;
}

/* Describes the entries of a segment. False: some input that decides its shapes is not known. */
static bool describe_entries(const warming *w, const tn__segment *s)
{
  for (uint32_t i = 0; i < s->n_entries; i++)
    if (!describe(w, s->entries[i], &w->entries[i])) return false;
  for (uint32_t i = 0; i < s->n_operands; i++) {
    const tn__entry *e = &w->entries[s->operands[i]];
    if (e->data == NULL && e->count > 0) return false;
  }
  return true;
}

static tn_status warm_segment(warming *w, uint32_t number, tn_error *err)
{
  tn__segment *s = &w->plan->segments[number];
  int why = tn__step_stop(w->step);
  if (why != TN__GO_ON) return tn__step_stopped(why, s->begin < s->end ? w->plan->instrs[s->begin].op : NULL, err);
  if ((s->kind != TN__SEGMENT_TAPE && s->kind != TN__SEGMENT_WAIT) || !describe_entries(w, s)) return TN_OK;
  tn_status st = tn__layout_get(w->plan, s, w->entries, &w->layouts[number], err);
  if (st != TN_OK) return st;
  size_t bytes = w->layouts[number]->memory.arena_bytes;
  if (bytes > w->arena_bytes) w->arena_bytes = bytes;
  return TN_OK;
}

/* Allocates the arena of a workspace, which the next step on this thread then takes. */
static tn_status reserve(const warming *w, tn_error *err)
{
  tn__workspace *workspace = tn__workspace_take(w->plan, err);
  if (workspace == NULL) return TN_RESOURCE_EXHAUSTED;
  tn_status st = TN_OK;
  if (w->arena_bytes > workspace->arena_bytes) st = tn__workspace_reserve(workspace, w->arena_bytes, false, err);
  if (st == TN_OK && w->arena_bytes > workspace->used) workspace->used = w->arena_bytes;
  tn__workspace_put(w->plan, workspace);
  return st;
}

tn_status tn__plan_warm(tn_plan *plan, const tn_step *step, tn_error *err)
{
  size_t n_entries = (size_t)plan->max_entries + 1, n_layouts = (size_t)plan->n_segments + 1;
  warming w = { .plan = plan, .step = step };
  w.entries = tn__alloc_array(n_entries, sizeof *w.entries);
  w.layouts = tn__alloc_array(n_layouts, sizeof *w.layouts);
  tn_status st =
      w.entries == NULL || w.layouts == NULL ? tn__no_memory(err, "layouts", n_layouts * sizeof *w.layouts) : TN_OK;
  for (size_t i = 0; w.layouts != NULL && i < n_layouts; i++) w.layouts[i] = NULL;
  for (uint32_t i = 0; st == TN_OK && i < plan->n_segments; i++) st = warm_segment(&w, i, err);
  if (st == TN_OK) st = reserve(&w, err);
  for (size_t i = 0; w.layouts != NULL && i < n_layouts; i++) tn__layout_unref(w.layouts[i]);
  if (w.layouts != NULL) tn__free(w.layouts, n_layouts * sizeof *w.layouts);
  if (w.entries != NULL) tn__free(w.entries, n_entries * sizeof *w.entries);
  return st;
}
