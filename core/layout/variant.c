/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts for other values of the operands: for example, a slice from another position, mostly of the same shape. Only
 * the kernels that read an operand are prepared again. If their shapes and memory are as before, the new layout shares
 * everything else with the existing one. */
#include <core/layout/layout.h>

typedef struct varier {
  tn_plan *plan;
  const tn__layout *from;
  tn__layout *made; /* owned until it is returned */
  const tn__entry *entries;
  /* Scratch arrays: inputs and outputs of one instruction. */
  tn_view *views;
  struct tn__prepared_output *outputs;
} varier;

/* The inputs of an instruction as prepare sees them, with the new values of operands. */
static void fill_views(const varier *v, const tn__plan_instr *instr)
{
  const tn__layout *l = v->from;
  const uint32_t *slots = v->plan->slots + instr->first;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    const tn__slot *s = &l->slots[slots[k]];
    tn_view view = { .dims = s->dims, .count = s->count, .dtype = s->dtype, .rank = s->rank };
    if (s->store == TN_STORE_CONSTANT && s->root == slots[k])
      view.data = s->elements == NULL ? NULL : s->elements->data;
    if (s->store == TN_STORE_KNOWN) view.data = l->slots[s->root].known;
    if (tn__layout_reads_operand(v->plan, l->segment, instr, k)) view.data = v->entries[slots[k]].data;
    v->views[k] = view;
  }
}

static bool same_output(const struct tn__prepared_output *o, const tn__slot *s, uint32_t view)
{
  if (o->view != view || o->dynamic != s->dynamic || o->rank != s->rank || o->count != s->count) return false;
  for (int32_t d = 0; d < o->rank; d++)
    if (o->dims[d] != s->dims[d]) return false;
  return true;
}

/* Whether prepare had the same results as for the existing layout. Less scratch is fine, too. */
static bool same(const varier *v, const tn__prepared *p, const tn__prepare_memo *a)
{
  const tn__plan_instr *instr = p->instr;
  const uint32_t *out = v->plan->slots + instr->first + instr->n_inputs;
  if (p->kernel != tn__layout_kernel(v->from, a->instr) || p->ctx.scratch_bytes > a->scratch_bytes) return false;
  if (p->n_pairs != a->n_pairs || p->any_values != a->any_values) return false;
  for (size_t i = 0; i < p->n_pairs; i++)
    if (p->pairs[i].in != a->pairs[i].in || p->pairs[i].out != a->pairs[i].out) return false;
  for (uint32_t k = 0; k < instr->n_outputs; k++)
    if (!same_output(&p->outputs[k], &v->from->slots[out[k]], a->views[k])) return false;
  return true;
}

/* Prepares the instructions that read an operand. *as_before is true if the existing layout can be shared. */
static tn_status prepare_again(varier *v, bool *as_before, tn_error *err)
{
  tn__layout *made = v->made;
  tn__prepared p = { .plan = v->plan, .arena = &made->arena, .layout = made, .outputs = v->outputs };
  tn_status st = TN_OK;
  *as_before = true;
  for (uint32_t i = 0; st == TN_OK && *as_before && i < made->key.n_again; i++) {
    const tn__prepare_memo *a = &made->key.again[i];
    p.instr = &v->plan->instrs[a->instr];
    fill_views(v, p.instr);
    p.ctx = (tn_prepare_ctx){ .n_inputs = p.instr->n_inputs, .n_outputs = p.instr->n_outputs, .inputs = v->views,
                              .threads = tn__plan_threads(p.plan), .reproducible = v->plan->settings.reproducible };
    st = tn__prepare_run(&p, err);
    if (st == TN_OK) *as_before = same(v, &p, a);
    if (st == TN_OK && *as_before) {
      made->shape_states[a->instr - made->segment->begin] = p.ctx.shape_state;
      if (a->tape != TN__NONE) made->tape[a->tape].shape_state = p.ctx.shape_state;
    } else if (p.ctx.shape_state != NULL && p.kernel != NULL && p.kernel->def->destroy_shape_state != NULL) {
      p.kernel->def->destroy_shape_state(p.ctx.shape_state);
    }
  }
  tn__free(p.pairs, p.pair_room * sizeof *p.pairs);
  return st;
}

/* A copy with its own tape and states. It shares everything else with `from`, or with from's base, to which it holds a
 * reference. NULL if memory is exhausted. */
static tn__layout *copy(tn__layout *from)
{
  tn__layout *l = tn__alloc(sizeof *l);
  if (l == NULL) return NULL;
  tn__mutex_lock(&from->plan->caches.mu); /* guards from->next */
  *l = *from;
  tn__mutex_unlock(&from->plan->caches.mu);
  atomic_init(&l->refs, 1);
  l->next = NULL;
  l->key.bytes = NULL;
  l->key.n_bytes = 0;
  l->packs = NULL;
  atomic_init(&l->offloaded, NULL);
  l->base = from->base != NULL ? from->base : from;
  atomic_fetch_add_explicit(&l->base->refs, 1, memory_order_relaxed);
  tn__arena_init(&l->arena, 1024);
  l->tape = tn__arena_array(&l->arena, (size_t)l->n_tape + 1, sizeof *l->tape);
  l->shape_states =
      tn__arena_array(&l->arena, (size_t)(l->segment->end - l->segment->begin) + 1, sizeof *l->shape_states);
  if (l->tape == NULL || l->shape_states == NULL) {
    tn__layout_unref(l);
    return NULL;
  }
  if (l->n_tape > 0) __builtin_memcpy(l->tape, from->tape, l->n_tape * sizeof *l->tape);
  return l;
}

tn_status tn__layout_vary(tn_plan *plan, tn__layout *from, const tn__entry *entries, tn__layout **out, tn_error *err)
{
  size_t n_in = 1, n_out = 1;
  for (uint32_t i = 0; i < from->key.n_again; i++) {
    const tn__plan_instr *instr = &plan->instrs[from->key.again[i].instr];
    if (instr->n_inputs > n_in) n_in = instr->n_inputs;
    if (instr->n_outputs > n_out) n_out = instr->n_outputs;
  }
  *out = NULL;
  varier v = { .plan = plan, .from = from, .made = copy(from), .entries = entries };
  v.views = tn__alloc_array(n_in, sizeof *v.views);
  v.outputs = tn__alloc_array(n_out, sizeof *v.outputs);
  bool as_before = false;
  tn_status st =
      v.made == NULL || v.views == NULL || v.outputs == NULL ? tn__no_memory(err, "layout", sizeof *from) : TN_OK;
  if (st == TN_OK) st = prepare_again(&v, &as_before, err);
  tn__free(v.views, n_in * sizeof *v.views);
  tn__free(v.outputs, n_out * sizeof *v.outputs);
  if (st == TN_OK && as_before) *out = v.made;
  else tn__layout_unref(v.made);
  return st;
}
