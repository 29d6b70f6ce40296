/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: builds a tree of groups. Names define scopes. A group with too many members to show side by side is
 * divided further, by common name prefixes or else into runs of consecutive members. */
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>

enum {
  WIDE = 24,      /* divide larger groups by name, or where members repeat */
  VERY_WIDE = 48, /* always divide larger groups */
  RUN = 10,       /* members or repeated parts in a run */
  LONGEST_PERIOD = 1024,
  MOST_SCOPES = 32 /* maximum nesting; deeper scopes are merged into the last one */
};

/* ---- groups ---- */

static char *copy_text(const char *text, size_t length)
{
  char *copy = tool_alloc(length + 1, 1);
  memcpy(copy, text, length);
  return copy;
}

static uint32_t add_group(picture *p, char *name, uint32_t parent, uint32_t kind)
{
  p->groups = tool_grow(p->groups, p->n_groups, &p->groups_room, sizeof(*p->groups));
  picture_group *group = &p->groups[p->n_groups];
  memset(group, 0, sizeof(*group));
  group->name = name;
  group->parent = parent;
  group->kind = kind;
  group->order = PICTURE_NONE;
  return (uint32_t)p->n_groups++;
}

static void add_unit(picture_group *group, uint32_t unit)
{
  size_t room = group->units_room;
  group->units = tool_grow(group->units, group->n_units, &room, sizeof(*group->units));
  group->units_room = (uint32_t)room;
  group->units[group->n_units++] = unit;
}

/* A hash table of scopes by path. */
typedef struct scope_table {
  uint32_t *slots; /* group numbers; 0 = empty, as the root group is not in the table */
  size_t n, room;
} scope_table;

static uint64_t hash_text(const char *text, size_t length)
{
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
  return hash ^ hash >> 32;
}

/* Returns the slot of the scope or a free slot for it; the table is never full. */
static size_t find_slot(const picture *p, const scope_table *table, const char *path, size_t length)
{
  size_t i = hash_text(path, length) & (table->room - 1);
  for (; table->slots[i] != 0; i = (i + 1) & (table->room - 1)) {
    const char *name = p->groups[table->slots[i]].name;
    if (strncmp(name, path, length) == 0 && name[length] == '\0') break;
  }
  return i;
}

static void grow_table(const picture *p, scope_table *table)
{
  if (table->n * 2 < table->room) return;
  scope_table bigger = { NULL, table->n, table->room > 0 ? table->room * 2 : 64 };
  bigger.slots = tool_alloc(bigger.room, sizeof(*bigger.slots));
  for (size_t i = 0; i < table->room; i++) {
    if (table->slots[i] == 0) continue;
    const char *name = p->groups[table->slots[i]].name;
    bigger.slots[find_slot(p, &bigger, name, strlen(name))] = table->slots[i];
  }
  free(table->slots);
  *table = bigger;
}

/* Returns the group for the scope given by the first `length` characters of a name; creates it and its parents. */
static uint32_t scope_group(picture *p, scope_table *table, const char *name, size_t length)
{
  uint32_t parent = 0, depth = 0;
  for (size_t end = 1; end <= length && depth < MOST_SCOPES; end++) {
    if (end < length && name[end] != '/') continue;
    depth++;
    grow_table(p, table);
    size_t slot = find_slot(p, table, name, end);
    if (table->slots[slot] == 0) {
      table->slots[slot] = add_group(p, copy_text(name, end), parent, GROUP_SCOPE);
      table->n++;
    }
    parent = table->slots[slot];
  }
  return parent;
}

static bool is_inside(const picture *p, uint32_t group, uint32_t outer)
{
  while (group != 0 && group != outer) group = p->groups[group].parent;
  return group == outer;
}

/* A node named like a scope belongs to that scope if it is connected to a node in it: "dense" and "dense/MatMul". */
static void put_into_own_scopes(picture *p, const scope_table *table)
{
  uint32_t *own = tool_alloc(p->n, sizeof(*own));
  for (uint32_t i = 0; i < p->n; i++) {
    const char *name = p->nodes[i].name;
    if (p->nodes[i].wanted && table->room > 0) own[i] = table->slots[find_slot(p, table, name, strlen(name))];
  }
  for (size_t e = 0; e < p->n_edges; e++) {
    picture_node *from = &p->nodes[p->edges[e].from], *to = &p->nodes[p->edges[e].to];
    if (!from->wanted || !to->wanted) continue;
    uint32_t a = own[p->edges[e].from], b = own[p->edges[e].to];
    if (a != 0 && is_inside(p, to->group, a)) from->group = a;
    if (b != 0 && is_inside(p, from->group, b)) to->group = b;
  }
  free(own);
}

/* ---- units ---- */

static uint32_t unit_order(const picture *p, uint32_t unit)
{
  return unit & PICTURE_IS_GROUP ? p->groups[unit & ~PICTURE_IS_GROUP].order : p->nodes[unit].order;
}

static const char *unit_name(const picture *p, uint32_t unit)
{
  return picture_last_part(unit & PICTURE_IS_GROUP ? p->groups[unit & ~PICTURE_IS_GROUP].name : p->nodes[unit].name);
}

static uint64_t unit_signature(const picture *p, uint32_t unit)
{
  if (unit & PICTURE_IS_GROUP) return p->groups[unit & ~PICTURE_IS_GROUP].signature;
  const char *op = p->nodes[unit].type;
  return hash_text(op, strlen(op));
}

static uint32_t unit_nodes(const picture *p, uint32_t unit)
{
  return unit & PICTURE_IS_GROUP ? p->groups[unit & ~PICTURE_IS_GROUP].n_nodes : 1;
}

/* Adds a node to its group, and adds each group to its parent when it is first seen. This keeps units in
 * order. */
static void place_node(picture *p, uint32_t node)
{
  uint32_t unit = node, group = p->nodes[node].group;
  uint64_t signature = unit_signature(p, node);
  bool is_new = true;
  for (;; group = p->groups[group].parent) {
    picture_group *g = &p->groups[group];
    if (is_new) add_unit(g, unit);
    is_new = g->order == PICTURE_NONE;
    if (is_new) g->order = p->nodes[node].order;
    g->n_nodes++;
    g->signature += signature;
    unit = group | PICTURE_IS_GROUP;
    if (group == 0) break;
  }
}

/* Creates a group from some units of `parent`. The caller adds the group to `parent`. */
static uint32_t gather(picture *p, uint32_t parent, uint32_t kind, char *name, const uint32_t *units, size_t n)
{
  uint32_t group = add_group(p, name, parent, kind);
  for (size_t i = 0; i < n; i++) {
    picture_group *g = &p->groups[group];
    add_unit(g, units[i]);
    g->n_nodes += unit_nodes(p, units[i]);
    g->signature += unit_signature(p, units[i]);
    if (unit_order(p, units[i]) < g->order) g->order = unit_order(p, units[i]);
    if (units[i] & PICTURE_IS_GROUP)
      p->groups[units[i] & ~PICTURE_IS_GROUP].parent = group;
    else
      p->nodes[units[i]].group = group;
  }
  return group;
}

/* Returns the name for a new group in the scope of `parent`. */
static char *name_in_scope(const picture *p, uint32_t parent, const char *last, size_t length, const char *end)
{
  tool_text text = { 0 };
  while (p->groups[parent].kind != GROUP_SCOPE) parent = p->groups[parent].parent;
  if (parent != 0) tool_text_printf(&text, "%s/", p->groups[parent].name);
  tool_text_add(&text, last, length);
  tool_text_add(&text, end, strlen(end));
  return text.data;
}

/* ---- families ---- */

/* A unit with its position, used while searching for families. */
typedef struct member {
  const char *name;
  uint32_t unit, place;
  size_t base; /* length of the name without a trailing number */
  size_t key;  /* length of the prefix to compare, 0 for none */
} member;

/* A generated name such as "MatMul_3" is not evidence of a family. */
static bool is_automatic(const picture *p, const member *m)
{
  if (m->unit & PICTURE_IS_GROUP) return false;
  const char *op = p->nodes[m->unit].type;
  size_t i = 0;
  for (; *op != '\0' && i < m->base; op++, i++) {
    if (m->name[i] == '_') i++;
    if ((m->name[i] | 0x20) != (*op | 0x20)) return false;
  }
  return *op == '\0' && i == m->base;
}

static size_t base_length(const char *name)
{
  size_t length = strlen(name), i = length;
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
  return i > 1 && i < length && name[i - 1] == '_' ? i - 1 : length;
}

/* Length of the first `parts` parts of a name with their underscores; 0 if nothing follows them. */
static size_t key_length(const member *m, uint32_t parts)
{
  for (size_t i = 0; i < m->base; i++)
    if (m->name[i] == '_' && --parts == 0) return i + 1 < m->base ? i + 1 : 0;
  return 0;
}

static int compare_members(const void *a, const void *b)
{
  const member *x = a, *y = b;
  size_t n = x->key < y->key ? x->key : y->key;
  int order = n > 0 ? memcmp(x->name, y->name, n) : 0;
  if (order != 0) return order;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->place < y->place ? -1 : 1;
}

static int compare_places(const void *a, const void *b)
{
  const member *x = a, *y = b;
  return x->place < y->place ? -1 : x->place > y->place;
}

/* Whether the members are close together in order and not the whole group. */
static bool is_family(const member *members, size_t n, size_t all)
{
  return n >= 2 && n < all && members[n - 1].place - members[0].place < 2 * n;
}

static void gather_family(picture *p, uint32_t group, const member *first, size_t key, member *members, size_t n,
                          member *out)
{
  uint32_t *units = tool_alloc(n, sizeof(*units));
  for (size_t i = 0; i < n; i++) units[i] = members[i].unit;
  char *name = name_in_scope(p, group, first->name, key, "*");
  *out = *first;
  out->unit = gather(p, group, GROUP_FAMILY, name, units, n) | PICTURE_IS_GROUP;
  free(units);
}

/* Divides members of `group` into families by the first `parts` parts of their names, then each family by further
 * parts. A family replaces its members; returns the number of remaining members. */
static size_t find_families(picture *p, uint32_t group, member *members, size_t n, uint32_t parts)
{
  enum { MOST_PARTS = 8, FEW = 6 };
  size_t kept = 0;
  if (n <= FEW || parts > MOST_PARTS) return n;
  for (size_t i = 0; i < n; i++) members[i].key = is_automatic(p, &members[i]) ? 0 : key_length(&members[i], parts);
  qsort(members, n, sizeof(*members), compare_members);
  for (size_t i = 0, end; i < n; i = end) {
    member first = members[i];
    for (end = i + 1; end < n && members[end].key == first.key; end++)
      if (memcmp(members[end].name, first.name, first.key) != 0) break;
    bool family = first.key > 0 && is_family(members + i, end - i, n);
    size_t m = first.key > 0 ? find_families(p, group, members + i, end - i, parts + 1) : end - i;
    if (family) {
      gather_family(p, group, &first, first.key, members + i, m, &members[kept++]);
    } else {
      memmove(members + kept, members + i, m * sizeof(*members));
      kept += m;
    }
  }
  qsort(members, kept, sizeof(*members), compare_places);
  return kept;
}

static void divide_by_name(picture *p, uint32_t group)
{
  uint32_t n = p->groups[group].n_units;
  member *members = tool_alloc(n, sizeof(*members));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t unit = p->groups[group].units[i];
    const char *name = unit_name(p, unit);
    members[i] = (member){ name, unit, i, base_length(name), 0 };
  }
  size_t kept = find_families(p, group, members, n, 1);
  for (size_t i = 0; i < kept; i++) p->groups[group].units[i] = members[i].unit;
  p->groups[group].n_units = (uint32_t)kept;
  free(members);
}

/* ---- runs ---- */

#define DOTS "\xE2\x80\xA6"

static char *run_name(const picture *p, uint32_t group, uint32_t first, uint32_t last)
{
  const char *from = unit_name(p, first), *to = unit_name(p, last);
  const char *end = strstr(from, DOTS);
  for (const char *dots = strstr(to, DOTS); dots != NULL; dots = strstr(to, DOTS)) to = dots + strlen(DOTS);
  tool_text text = { 0 };
  tool_text_printf(&text, DOTS "%s", to);
  char *name = name_in_scope(p, group, from, end != NULL ? (size_t)(end - from) : strlen(from), text.data);
  tool_text_fini(&text);
  return name;
}

/* Creates runs of `size` units; some runs get one unit more to distribute a remainder. */
static void make_runs(picture *p, uint32_t group, uint32_t size, bool share)
{
  uint32_t n = p->groups[group].n_units, n_runs = (n + size - 1) / size, done = 0;
  for (uint32_t i = 0; i < n_runs; i++) {
    uint32_t end = (i + 1) * size < n ? (i + 1) * size : n;
    if (share) end = (uint32_t)((uint64_t)n * (i + 1) / n_runs);
    const uint32_t *units = p->groups[group].units + done;
    uint32_t unit = units[0];
    if (end - done > 1) {
      char *name = run_name(p, group, units[0], units[end - done - 1]);
      uint32_t *copy = tool_alloc(end - done, sizeof(*copy));
      memcpy(copy, units, (end - done) * sizeof(*copy));
      unit = gather(p, group, GROUP_RUN, name, copy, end - done) | PICTURE_IS_GROUP;
      free(copy);
    }
    p->groups[group].units[i] = unit;
    done = end;
  }
  p->groups[group].n_units = n_runs;
}

/* The period after which the same ops repeat, as in an unrolled loop; 0 if they do not repeat. */
static uint32_t find_period(const picture *p, uint32_t group)
{
  const picture_group *g = &p->groups[group];
  uint64_t *keys = tool_alloc(g->n_units, sizeof(*keys));
  uint32_t found = 0;
  for (uint32_t i = 0; i < g->n_units; i++) keys[i] = unit_signature(p, g->units[i]);
  for (uint32_t period = 1; found == 0 && period <= g->n_units / 3 && period <= LONGEST_PERIOD; period++) {
    uint32_t wrong = 0, allowed = g->n_units / 10;
    for (uint32_t i = 0; i + period < g->n_units && wrong <= allowed; i++) wrong += keys[i] != keys[i + period];
    if (wrong <= allowed) found = period;
  }
  free(keys);
  return found;
}

static void divide_in_order(picture *p, uint32_t group)
{
  if (p->groups[group].n_units <= WIDE) return;
  uint32_t period = find_period(p, group);
  if (period > 1) make_runs(p, group, period, false);
  while (p->groups[group].n_units > VERY_WIDE) make_runs(p, group, RUN, true);
}

void picture_group_names(picture *p)
{
  scope_table table = { 0 };
  add_group(p, copy_text("", 0), 0, GROUP_SCOPE);
  for (uint32_t i = 0; i < p->n; i++) {
    if (!p->nodes[i].wanted) continue;
    const char *name = p->nodes[i].name, *slash = strrchr(name, '/');
    p->nodes[i].group = scope_group(p, &table, name, slash != NULL ? (size_t)(slash - name) : 0);
  }
  put_into_own_scopes(p, &table);
  free(table.slots);
  for (uint32_t i = 0; i < p->n_wanted; i++) place_node(p, p->by_order[i]);
  /* Also processes the groups created here. */
  for (uint32_t i = 0; i < p->n_groups && p->options->boxes > 0; i++) {
    if (p->groups[i].kind == GROUP_SCOPE && p->groups[i].n_units > WIDE) divide_by_name(p, i);
    divide_in_order(p, i);
  }
  for (uint32_t i = 1; i < p->n_groups; i++)
    for (uint32_t g = i; g != 0; g = p->groups[g].parent) p->groups[i].depth++;
}
