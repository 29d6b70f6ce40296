/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the conditions under which nodes run. A node runs if everything that it reads and waits for is live. A Switch
 * adds a condition to its outputs. A Merge, a loop, and a call that may wait begin a new condition. Nodes with equal
 * conditions can share a segment, which runs as a whole or not at all. */
#include <core/compile/lower/contexts.h>
#include <core/plan/frame.h>

#include <stdlib.h>
#include <string.h>

#define WAITS (TN_TRAIT_MAY_WAIT | TN_TRAIT_FUNCTION_CALL)

static bool is_loop(const tn__ir_node *node) { return node->frame != NULL; }

static bool loop_waits(const tn__ir_node *node) { return node->frame->body->has_waits; }

/* Whether any node may have a context other than 0. */
static bool matters(const tn__ir *ir)
{
  const uint32_t traits = TN_TRAIT_SWITCH | TN_TRAIT_MERGE | WAITS;
  if (ir->partial || (ir->spec->body != NULL && ir->spec->body->gated != NULL)) return true;
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next)
    if ((ir->nodes[id].traits & traits) || is_loop(&ir->nodes[id])) return true;
  return false;
}

/* ---- lists of atoms ---- */

static tn_status no_memory(const tn__ir *ir) { return tn__ir_no_memory(ir); }

/* The context with this list of atoms, which must be ascending. Creates it if it is new. */
static tn_status context_of(const tn__ir *ir, tn__contexts *c, const uint32_t *list, size_t n, uint32_t *out)
{
  *out = 0;
  if (n == 0) return TN_OK;
  uintptr_t known = (uintptr_t)tn__map_get(&c->known, (const char *)list, n * sizeof *list);
  *out = (uint32_t)known;
  if (known != 0) return TN_OK;
  if (c->n_lists + n >= TN__NONE)
    return tn_error_set(ir->err, TN_RESOURCE_EXHAUSTED, "too many conditions of control flow");
  void *key = tn__arena_alloc(&c->keys, n * sizeof *list);
  if (key == NULL || !tn__grow((void **)&c->contexts, &c->context_room, c->n_contexts + 1, sizeof *c->contexts) ||
      !tn__grow((void **)&c->lists, &c->list_room, c->n_lists + n, sizeof *c->lists))
    return no_memory(ir);
  memcpy(key, list, n * sizeof *list);
  if (!tn__map_put(&c->known, key, n * sizeof *list, (void *)(uintptr_t)c->n_contexts, NULL)) return no_memory(ir);
  memcpy(c->lists + c->n_lists, list, n * sizeof *list);
  c->contexts[c->n_contexts] = (tn__context){ (uint32_t)c->n_lists, (uint32_t)n };
  *out = (uint32_t)c->n_contexts++;
  c->n_lists += n;
  return TN_OK;
}

/* The context that holds if both hold: the union of two ascending lists. */
static tn_status both(const tn__ir *ir, tn__contexts *c, uint32_t a, uint32_t b, uint32_t *out)
{
  *out = a == 0 ? b : a;
  if (a == b || a == 0 || b == 0) return TN_OK;
  const tn__context x = c->contexts[a], y = c->contexts[b];
  uint32_t *list = tn__alloc_array((size_t)x.n + y.n, sizeof *list);
  if (list == NULL) return no_memory(ir);
  size_t n = 0, i = 0, k = 0;
  const uint32_t *xs = c->lists + x.first, *ys = c->lists + y.first;
  while (i < x.n || k < y.n) {
    bool left = k == y.n || (i < x.n && xs[i] <= ys[k]);
    if (i < x.n && k < y.n && xs[i] == ys[k]) k++;
    list[n++] = left ? xs[i++] : ys[k++];
  }
  tn_status st = context_of(ir, c, list, n, out);
  tn__free(list, ((size_t)x.n + y.n) * sizeof *list);
  return st;
}

/* ---- the condition of one node, united once at the end, since a node may have thousands of inputs ---- */

static tn_status gather_atoms(const tn__ir *ir, tn__contexts *c, uint32_t context)
{
  const tn__context x = c->contexts[context];
  if (!tn__grow((void **)&c->gathered, &c->gather_room, c->n_gathered + x.n, sizeof *c->gathered)) return no_memory(ir);
  memcpy(c->gathered + c->n_gathered, c->lists + x.first, x.n * sizeof *c->gathered);
  c->n_gathered += x.n;
  return TN_OK;
}

/* Adds a context to the node's condition. */
static tn_status gather(const tn__ir *ir, tn__contexts *c, uint32_t context)
{
  if (context == 0 || context == c->only) return TN_OK;
  if (c->only == 0) {
    c->only = context;
    return TN_OK;
  }
  tn_status st = c->n_gathered == 0 ? gather_atoms(ir, c, c->only) : TN_OK;
  return st == TN_OK ? gather_atoms(ir, c, context) : st;
}

static int compare_atoms(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* The context of everything gathered. Begins anew for the next node. */
static tn_status gathered(const tn__ir *ir, tn__contexts *c, uint32_t *out)
{
  size_t n = 0;
  *out = c->only;
  c->only = 0;
  if (c->n_gathered == 0) return TN_OK;
  qsort(c->gathered, c->n_gathered, sizeof *c->gathered, compare_atoms);
  for (size_t i = 0; i < c->n_gathered; i++)
    if (n == 0 || c->gathered[n - 1] != c->gathered[i]) c->gathered[n++] = c->gathered[i];
  c->n_gathered = 0;
  return context_of(ir, c, c->gathered, n, out);
}

/* Creates an atom and adds it to a context. It gets the highest number, so all atoms on which it depends have lower
 * ones. */
static tn_status with_atom(const tn__ir *ir, tn__contexts *c, uint32_t context, tn__atom atom, uint32_t *out)
{
  if (!tn__grow((void **)&c->atoms, &c->atom_room, c->n_atoms + 1, sizeof *c->atoms)) return no_memory(ir);
  uint32_t number = (uint32_t)c->n_atoms, alone;
  c->atoms[c->n_atoms++] = atom;
  tn_status st = context_of(ir, c, &number, 1, &alone);
  return st == TN_OK ? both(ir, c, context, alone, out) : st;
}

/* The same for atoms that exist once, and are created when first needed: a side of a predicate, and "context
 * decided". */
static tn_status with_known(const tn__ir *ir, tn__contexts *c, uint32_t context, tn__atom atom, uint32_t *out)
{
  uint32_t *key = tn__arena_alloc(&c->keys, 3 * sizeof *key), alone;
  if (key == NULL) return no_memory(ir);
  key[0] = atom.kind;
  key[1] = atom.id;
  key[2] = atom.side;
  uintptr_t known = (uintptr_t)tn__map_get(&c->known_atoms, (const char *)key, 3 * sizeof *key);
  if (known != 0) return both(ir, c, context, (uint32_t)known, out);
  tn_status st = with_atom(ir, c, 0, atom, &alone);
  if (st != TN_OK) return st;
  if (!tn__map_put(&c->known_atoms, (const char *)key, 3 * sizeof *key, (void *)(uintptr_t)alone, NULL))
    return no_memory(ir);
  return both(ir, c, context, alone, out);
}

/* Whether a context has only "decided" atoms. It holds as soon as they are decided, so it needs no such atom itself. */
static bool only_waits(const tn__contexts *c, uint32_t context)
{
  const tn__context *x = &c->contexts[context];
  for (uint32_t k = 0; k < x->n; k++)
    if (c->atoms[c->lists[x->first + k]].kind != TN__ATOM_DONE) return false;
  return true;
}

/* The context that holds once `decided` is decided, either way. If no earlier node may wait, all earlier contexts are
 * decided already, because segments run in order. */
static tn_status when_decided(const tn__ir *ir, tn__contexts *c, uint32_t decided, uint32_t *out)
{
  *out = 0;
  if (!c->waits) return TN_OK;
  *out = decided;
  return only_waits(c, decided) ? TN_OK : with_known(ir, c, 0, (tn__atom){ TN__ATOM_DONE, decided, 0 }, out);
}

/* The context of a Merge of the two sides of one branch: the atoms that both sides have in common. *done is false if
 * its inputs are something else, or the Merge has a condition of its own. */
static tn_status merged_context(const tn__ir *ir, tn__contexts *c, const tn__ir_node *node, uint32_t *out, bool *done)
{
  *done = false;
  if (node->n_inputs != 2 || c->nodes[node - ir->nodes] != 0) return TN_OK;
  const tn__context x = c->contexts[c->values[tn__ir_input(ir, node, 0)]],
                    y = c->contexts[c->values[tn__ir_input(ir, node, 1)]];
  if (x.n == 0 || y.n == 0) return TN_OK;
  if (!tn__atoms_oppose(c->atoms, c->lists + x.first, x.n, c->lists + y.first, y.n)) return TN_OK;
  uint32_t *common = tn__alloc_array((size_t)x.n + 1, sizeof *common);
  if (common == NULL) return no_memory(ir);
  size_t n = 0;
  for (uint32_t k = 0; k < x.n; k++)
    if (c->lists[x.first + k] == c->lists[y.first + k]) common[n++] = c->lists[x.first + k];
  tn_status st = context_of(ir, c, common, n, out);
  tn__free(common, ((size_t)x.n + 1) * sizeof *common);
  *done = st == TN_OK;
  return st;
}

/* ---- nodes ---- */

/* The context of a value. Those of computed values are set with their node; others are found at first use. */
static tn_status value_context(const tn__ir *ir, tn__contexts *c, uint32_t value, uint32_t *out)
{
  const tn__ir_value *v = &ir->values[value];
  tn_status st = TN_OK;
  *out = c->values[value];
  if (*out != TN__NONE) return TN_OK;
  *out = 0;
  if (v->kind == TN_VALUE_CONSTANT && v->node != TN__NONE) *out = c->after[v->node];
  if (v->kind == TN_VALUE_FEED && ir->spec->body != NULL && ir->spec->body->gated != NULL &&
      ir->spec->body->gated[v->index])
    st = with_atom(ir, c, 0, (tn__atom){ TN__ATOM_FEED, v->index, 0 }, out);
  c->values[value] = *out;
  return st;
}

/* A Merge runs if one of its inputs is live, so they are no condition; their contexts are only computed. */
static tn_status gather_inputs(const tn__ir *ir, tn__contexts *c, const tn__ir_node *node)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < node->n_inputs; i++) {
    uint32_t one;
    st = value_context(ir, c, tn__ir_input(ir, node, i), &one);
    if (st == TN_OK && !(node->traits & TN_TRAIT_MERGE)) st = gather(ir, c, one);
  }
  return st;
}

static tn_status gather_controls(const tn__ir *ir, tn__contexts *c, const tn__ir_node *node)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < node->n_controls; i++) {
    uint32_t one = c->after[tn__ir_control(ir, node, i)];
    if (one == 0) continue;
    if (node->traits & (TN_TRAIT_CONTROL_TRIGGER | TN_TRAIT_MERGE)) /* dead control inputs release these, too */
      st = when_decided(ir, c, one, &one);
    if (st == TN_OK) st = gather(ir, c, one);
  }
  return st;
}

static tn_status node_context(const tn__ir *ir, tn__contexts *c, const tn__ir_node *node, uint32_t *out)
{
  tn_status st = gather_inputs(ir, c, node);
  if (st == TN_OK) st = gather_controls(ir, c, node);
  return st == TN_OK ? gathered(ir, c, out) : st;
}

/* Sets c->after and the contexts of the outputs of a loop. */
static tn_status loop_contexts(const tn__ir *ir, tn__contexts *c, uint32_t id)
{
  const tn__ir_node *node = &ir->nodes[id];
  tn_status st = TN_OK;
  bool waits = loop_waits(node);
  c->waits |= waits;
  if (waits) st = with_atom(ir, c, 0, (tn__atom){ TN__ATOM_WAIT, id, 0 }, &c->after[id]); /* does not hold if skipped */
  for (uint32_t k = 0; st == TN_OK && k < node->n_outputs; k++) {
    uint32_t *of = &c->values[node->first_value + k];
    *of = c->after[id];
    if (!node->frame->simple) st = with_atom(ir, c, c->after[id], (tn__atom){ TN__ATOM_EXIT, id, k }, of);
  }
  return st;
}

/* Sets c->after and the contexts of the outputs of a node. */
static tn_status output_contexts(const tn__ir *ir, tn__contexts *c, uint32_t id)
{
  const tn__ir_node *node = &ir->nodes[id];
  tn_status st = TN_OK;
  c->after[id] = c->nodes[id];
  if (is_loop(node)) return loop_contexts(ir, c, id);
  if (node->traits & TN_TRAIT_SWITCH) {
    for (uint32_t k = 0; st == TN_OK && k < node->n_outputs; k++)
      st = with_known(ir, c, c->nodes[id], (tn__atom){ TN__ATOM_BRANCH, tn__ir_input(ir, node, 1), k },
                      &c->values[node->first_value + k]);
    return st;
  }
  bool merged = false;
  if (node->traits & TN_TRAIT_MERGE) st = merged_context(ir, c, node, &c->after[id], &merged);
  if (st != TN_OK) return st;
  if ((node->traits & TN_TRAIT_MERGE) && !merged)
    st = with_atom(ir, c, c->nodes[id], (tn__atom){ TN__ATOM_MERGE, id, 0 }, &c->after[id]);
  c->waits |= (node->traits & WAITS) != 0;
  if (!(node->traits & TN_TRAIT_MERGE) && (node->traits & WAITS))
    st = with_atom(ir, c, 0, (tn__atom){ TN__ATOM_WAIT, id, 0 }, &c->after[id]);
  for (uint32_t k = 0; k < node->n_outputs; k++) {
    uint32_t value = node->first_value + k;
    if (ir->values[value].kind == TN_VALUE_COMPUTED) c->values[value] = c->after[id];
  }
  return st;
}

tn_status tn__contexts_find(const tn__ir *ir, tn__contexts *c)
{
  *c = (tn__contexts){ .any = matters(ir), .n_nodes = ir->n_nodes + 1, .n_values = ir->n_values + 1 };
  tn__map_init(&c->known);
  tn__map_init(&c->known_atoms);
  tn__arena_init(&c->keys, 1024);
  if (!c->any) return TN_OK;
  c->nodes = tn__alloc_array(c->n_nodes, sizeof *c->nodes);
  c->after = tn__alloc_array(c->n_nodes, sizeof *c->after);
  c->values = tn__alloc_array(c->n_values, sizeof *c->values);
  bool ok = c->nodes != NULL && c->after != NULL && c->values != NULL &&
            tn__grow((void **)&c->contexts, &c->context_room, 1, sizeof *c->contexts);
  tn_status st = ok ? TN_OK : no_memory(ir);
  if (ok) c->contexts[c->n_contexts++] = (tn__context){ 0, 0 };
  for (size_t i = 0; ok && i < c->n_values; i++) c->values[i] = TN__NONE;
  for (uint32_t id = ir->first; st == TN_OK && id != TN__NONE; id = ir->nodes[id].next) {
    st = node_context(ir, c, &ir->nodes[id], &c->nodes[id]);
    if (st == TN_OK) st = output_contexts(ir, c, id);
  }
  for (size_t i = 0; st == TN_OK && i < ir->spec->n_fetches; i++) {
    uint32_t unused;
    st = value_context(ir, c, tn__ir_value_of(ir, ir->outputs[i]), &unused);
  }
  return st;
}

void tn__contexts_fini(tn__contexts *c)
{
  if (c->nodes != NULL) tn__free(c->nodes, c->n_nodes * sizeof *c->nodes);
  if (c->after != NULL) tn__free(c->after, c->n_nodes * sizeof *c->after);
  if (c->values != NULL) tn__free(c->values, c->n_values * sizeof *c->values);
  tn__free(c->atoms, c->atom_room * sizeof *c->atoms);
  tn__free(c->contexts, c->context_room * sizeof *c->contexts);
  tn__free(c->lists, c->list_room * sizeof *c->lists);
  tn__free(c->gathered, c->gather_room * sizeof *c->gathered);
  tn__map_fini(&c->known);
  tn__map_fini(&c->known_atoms);
  tn__arena_fini(&c->keys);
}
