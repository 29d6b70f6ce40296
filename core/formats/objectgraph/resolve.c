/* SPDX-License-Identifier: Apache-2.0 */
/* Follows paths through an object graph.
 *
 * Names may contain any character of the syntax. So the whole path is tried as names first, then as a slot, with the
 * first colon before which there is an object, then as an attribute, with the last colon. */
#include <core/base/near.h>
#include <core/formats/objectgraph/nodes.h>

#include <string.h>

/* Names that an error lists, the names among which it looks for the nearest ones, and bytes of each that are shown. */
#define NAMES_MOST 20
#define COMPARED_MOST 10000
#define SHOWN_MOST 200
#define TEXT_LIMIT ((size_t)16 << 10)

/* ---- names ---- */

/* The next byte of a part of a path, with '/' for %2F. */
static int next_byte(const char **p, const char *end)
{
  if (end - *p >= 3 && (*p)[0] == '%' && (*p)[1] == '2' && ((*p)[2] | 32) == 'f') {
    *p += 3;
    return '/';
  }
  return (unsigned char)*(*p)++;
}

/* Compares a part of a path, with %2F for '/', to a name. */
static int compare_encoded(tn__slice part, const tn__child *child)
{
  const char *p = part.data, *end = p + part.size;
  for (uint32_t i = 0; i < child->size; i++) {
    if (p == end) return -1;
    int order = next_byte(&p, end) - (unsigned char)child->name[i];
    if (order != 0) return order;
  }
  return p != end;
}

static int compare_plain(tn__slice part, const tn__child *child)
{
  return tn__compare_texts(part.data, part.size, child->name, child->size);
}

/* The first child with a name. The comparison must have the order of the names. */
static const tn__child *search(const tn__object_graph *graph, uint32_t node, tn__slice part,
                               int (*compare)(tn__slice, const tn__child *))
{
  uint32_t low = graph->nodes[node].child, end = graph->nodes[node + 1].child, high = end;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (compare(part, &graph->children[middle]) > 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && compare(part, &graph->children[low]) == 0 ? &graph->children[low] : NULL;
}

/* A name that has "%2F" itself is found, too. */
static const tn__child *find_child(const tn__object_graph *graph, uint32_t node, tn__slice part)
{
  const tn__child *child = search(graph, node, part, compare_encoded);
  return child != NULL ? child : search(graph, node, part, compare_plain);
}

/* The end of a walk. */
typedef struct place {
  uint32_t node;
  tn__slice path; /* that leads to the node; empty: the root */
  tn__slice part; /* the next part, which leads nowhere */
} place;

static bool walk(const tn__object_graph *graph, tn__slice path, place *to)
{
  const char *p = path.data, *end = p + path.size;
  *to = (place){ 0, { path.data, 0 }, { path.data, 0 } };
  while (path.size > 0) {
    const char *slash = memchr(p, '/', (size_t)(end - p)), *stop = slash == NULL ? end : slash;
    to->part = (tn__slice){ p, (size_t)(stop - p) };
    const tn__child *child = find_child(graph, to->node, to->part);
    if (child == NULL) return false;
    to->node = child->node;
    to->path.size = (size_t)(stop - path.data);
    if (slash == NULL) break;
    p = slash + 1;
  }
  return true;
}

/* ---- errors ---- */

/* The names that are nearest to a wanted one, nearest first. */
typedef struct nearest {
  char wanted[72]; /* longer ones are compared to nothing (near.c) */
  struct {
    tn__slice name;
    size_t edits;
    bool attribute;
  } best[NAMES_MOST];
  size_t n, total;
} nearest;

static void nearest_init(nearest *near, tn__slice wanted)
{
  size_t size = wanted.size < sizeof near->wanted - 1 ? wanted.size : sizeof near->wanted - 1;
  memset(near, 0, sizeof *near);
  memcpy(near->wanted, wanted.data, size);
}

/* SIZE_MAX: not near. */
static size_t edits_of(const nearest *near, const char *name, size_t size)
{
  char copy[72];
  tn__near one;
  if (size >= sizeof copy || near->total > COMPARED_MOST) return SIZE_MAX;
  memcpy(copy, name, size);
  copy[size] = 0;
  tn__near_init(&one, near->wanted);
  tn__near_offer(&one, copy);
  return one.edits;
}

static void offer(nearest *near, const char *name, size_t size, bool attribute)
{
  near->total++;
  size_t edits = edits_of(near, name, size), i = near->n;
  if (i == NAMES_MOST && edits >= near->best[i - 1].edits) return;
  if (i < NAMES_MOST)
    near->n++;
  else
    i--;
  for (; i > 0 && near->best[i - 1].edits > edits; i--) near->best[i] = near->best[i - 1];
  near->best[i].name = (tn__slice){ name, size };
  near->best[i].edits = edits;
  near->best[i].attribute = attribute;
}

static void offer_children(nearest *near, const tn__object_graph *graph, uint32_t node)
{
  for (uint32_t i = graph->nodes[node].child; i < graph->nodes[node + 1].child; i++)
    offer(near, graph->children[i].name, graph->children[i].size, false);
}

static void offer_attributes(nearest *near, const tn__object_graph *graph, uint32_t node)
{
  for (uint32_t i = graph->nodes[node].attribute; i < graph->nodes[node + 1].attribute; i++)
    offer(near, graph->attributes[i].name, graph->attributes[i].size, true);
}

static void append_part(tn__text *text, tn__slice part)
{
  tn__text_append(text, part.data, part.size < SHOWN_MOST ? part.size : SHOWN_MOST);
  if (part.size > SHOWN_MOST) tn__text_puts(text, "...");
}

/* "'model/dense'", "the root". */
static void append_place(tn__text *text, tn__slice path)
{
  if (path.size == 0) {
    tn__text_puts(text, "the root");
    return;
  }
  tn__text_puts(text, "'");
  append_part(text, path);
  tn__text_puts(text, "'");
}

/* A name as paths have it. */
static void append_name(tn__text *text, tn__slice name)
{
  const char *p = name.data, *end = p + (name.size < SHOWN_MOST ? name.size : SHOWN_MOST);
  for (const char *slash; (slash = memchr(p, '/', (size_t)(end - p))) != NULL; p = slash + 1) {
    tn__text_append(text, p, (size_t)(slash - p));
    tn__text_puts(text, "%2F");
  }
  tn__text_append(text, p, (size_t)(end - p));
  if (name.size > SHOWN_MOST) tn__text_puts(text, "...");
}

/* "; it has 'layers', 'first', ':table' and 17 more". */
static void append_nearest(tn__text *text, const nearest *near)
{
  if (near->n == 0) tn__text_puts(text, "; it names nothing");
  for (size_t i = 0; i < near->n; i++) {
    tn__text_puts(text, i == 0 ? "; it has '" : ", '");
    if (near->best[i].attribute) tn__text_puts(text, ":");
    append_name(text, near->best[i].name);
    tn__text_puts(text, "'");
  }
  if (near->total > near->n) tn__text_printf(text, " and %zu more", near->total - near->n);
}

/* Begins a message. */
static void begin(tn__text *text, const tn__object_graph *graph, tn__slice path)
{
  tn__text_init(text, TEXT_LIMIT);
  tn__text_printf(text, "'%.4096s': path '", graph->file);
  append_part(text, path);
  tn__text_puts(text, "' leads nowhere: ");
}

static tn_status end(tn__text *text, const nearest *near, tn_error *err)
{
  append_nearest(text, near);
  tn_error_set(err, TN_NOT_FOUND, "%s", tn__text_get(text));
  tn__text_fini(text);
  return TN_NOT_FOUND;
}

/* "'model' has no 'layr'". */
static tn_status no_child(const tn__object_graph *graph, tn__slice path, const place *at, tn_error *err)
{
  tn__text text;
  nearest near;
  begin(&text, graph, path);
  append_place(&text, at->path);
  tn__text_puts(&text, " has no '");
  append_part(&text, at->part);
  tn__text_puts(&text, "'");
  nearest_init(&near, at->part);
  offer_children(&near, graph, at->node);
  return end(&text, &near, err);
}

/* name.size 0: the value of a variable is wanted. */
static tn_status no_attribute(const tn__object_graph *graph, tn__slice path, const place *at, tn__slice name,
                              tn_error *err)
{
  tn__text text;
  nearest near;
  begin(&text, graph, path);
  append_place(&text, at->path);
  if (name.size == 0) {
    tn__text_puts(&text, " is no variable");
  } else {
    tn__text_puts(&text, " has no attribute '");
    append_part(&text, name);
    tn__text_puts(&text, "'");
  }
  nearest_init(&near, name);
  offer_attributes(&near, graph, at->node);
  if (name.size == 0) offer_children(&near, graph, at->node);
  return end(&text, &near, err);
}

/* ---- attributes ---- */

static bool set_value(const tn__object_graph *graph, uint32_t node, tn__object_key *out)
{
  const uint32_t value = graph->nodes[node].value;
  if (value == TN__NO_VALUE) return false;
  const tn__attribute *a = &graph->attributes[value];
  *out = (tn__object_key){ { a->key, a->key_size }, { NULL, 0 } };
  return true;
}

/* Finds an attribute, or else the longest one with which the name begins: the rest is the suffix. */
static bool set_attribute(const tn__object_graph *graph, uint32_t node, tn__slice name, tn__object_key *out)
{
  const tn__attribute *best = NULL;
  for (uint32_t i = graph->nodes[node].attribute; i < graph->nodes[node + 1].attribute; i++) {
    const tn__attribute *a = &graph->attributes[i];
    if (a->size == 0 || a->size > name.size || memcmp(a->name, name.data, a->size) != 0) continue;
    if (best == NULL || a->size > best->size) best = a;
  }
  if (best == NULL || (best->size < name.size && tn__attribute_is_value(best))) return false;
  out->key = (tn__slice){ best->key, best->key_size };
  out->suffix = (tn__slice){ name.data + best->size, name.size - best->size };
  return true;
}

/* ---- slots ---- */

/* The parts of "OPTIMIZER:SLOT(VARIABLE)". */
typedef struct slot_path {
  tn__slice optimizer, slot, variable;
  place at; /* the optimizer */
  bool found;
} slot_path;

/* False: the path does not have this form. `found` is false if there is no object before any colon; then the parts are
 * those of the first colon. */
static bool split_slot(const tn__object_graph *graph, tn__slice path, slot_path *out)
{
  const char *end = path.data + path.size, *colon = path.data - 1;
  bool any = false;
  if (path.size == 0 || end[-1] != ')') return false;
  out->found = false;
  while (!out->found && (colon = memchr(colon + 1, ':', (size_t)(end - colon - 1))) != NULL) {
    const char *open = memchr(colon, '(', (size_t)(end - colon));
    if (open == NULL) break;
    place at;
    const tn__slice before = { path.data, (size_t)(colon - path.data) };
    out->found = walk(graph, before, &at);
    if (!any || out->found)
      *out = (slot_path){ .optimizer = before,
                          .slot = { colon + 1, (size_t)(open - colon - 1) },
                          .variable = { open + 1, (size_t)(end - open - 2) },
                          .at = at,
                          .found = out->found };
    any = true;
  }
  return any;
}

/* The slots of an optimizer for a variable: [*begin, *end) of graph->slots. */
static void slots_of(const tn__object_graph *graph, uint32_t optimizer, uint32_t variable, uint32_t *begin,
                     uint32_t *end)
{
  uint32_t low = graph->nodes[optimizer].slot, high = graph->nodes[optimizer + 1].slot;
  const uint32_t last = high;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (graph->slots[middle].variable < variable)
      low = middle + 1;
    else
      high = middle;
  }
  for (high = low; high < last && graph->slots[high].variable == variable; high++) { }
  *begin = low;
  *end = high;
}

/* "optimizer 'opt' has no slot 'q' for 'w'". */
static tn_status no_slot(const tn__object_graph *graph, tn__slice path, const slot_path *p, uint32_t first,
                         uint32_t last, tn_error *err)
{
  tn__text text;
  nearest near;
  begin(&text, graph, path);
  append_place(&text, p->optimizer);
  tn__text_puts(&text, " has no slot '");
  append_part(&text, p->slot);
  tn__text_puts(&text, "' for ");
  append_place(&text, p->variable);
  nearest_init(&near, p->slot);
  for (; first < last; first++) offer(&near, graph->slots[first].name, graph->slots[first].size, false);
  return end(&text, &near, err);
}

static tn_status resolve_slot(const tn__object_graph *graph, tn__slice path, const slot_path *p, tn__object_key *out,
                              tn_error *err)
{
  place at;
  uint32_t first, last;
  if (!p->found) return no_child(graph, path, &p->at, err);
  if (!walk(graph, p->variable, &at)) return no_child(graph, path, &at, err);
  slots_of(graph, p->at.node, at.node, &first, &last);
  for (uint32_t i = first; i < last; i++) {
    const tn__slot *slot = &graph->slots[i];
    if (slot->size == p->slot.size && memcmp(slot->name, p->slot.data, slot->size) == 0 &&
        set_value(graph, slot->node, out))
      return TN_OK;
  }
  return no_slot(graph, path, p, first, last, err);
}

/* ---- paths ---- */

tn_status tn__object_graph_resolve(const tn__object_graph *graph, const char *path, tn__object_key *out, tn_error *err)
{
  place at, before;
  slot_path slot;
  const tn__slice whole = tn__slice_of(path);
  bool leads = walk(graph, whole, &at);
  *out = (tn__object_key){ { NULL, 0 }, { NULL, 0 } };
  if (leads && set_value(graph, at.node, out)) return TN_OK;
  if (split_slot(graph, whole, &slot)) return resolve_slot(graph, whole, &slot, out, err);
  const char *colon = strrchr(path, ':');
  bool has_object = colon != NULL && walk(graph, (tn__slice){ path, (size_t)(colon - path) }, &before);
  if (has_object) {
    const tn__slice name = tn__slice_of(colon + 1);
    return set_attribute(graph, before.node, name, out) ? TN_OK : no_attribute(graph, whole, &before, name, err);
  }
  if (leads) return no_attribute(graph, whole, &at, (tn__slice){ "", 0 }, err);
  return no_child(graph, whole, colon != NULL && before.path.size >= at.path.size ? &before : &at, err);
}

tn__slice tn__object_graph_name_of(const tn__object_graph *graph, tn__slice key)
{
  const tn__attribute *a = tn__map_get(&graph->by_key, key.data, key.size);
  return a == NULL || !tn__attribute_is_value(a) ? (tn__slice){ "", 0 } : (tn__slice){ a->full_name, a->full_size };
}
