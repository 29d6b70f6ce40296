/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: chooses which groups are open, so that the number of boxes stays readable, and creates the boxes and the
 * arrows between them. */
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>

/* ---- opening ---- */

/* Sorts larger groups first; groups with the same ops and depth are adjacent. */
typedef struct candidate {
  const picture_group *group;
  uint32_t number;
} candidate;

static int compare_kinds(const picture_group *x, const picture_group *y)
{
  if (x->n_nodes != y->n_nodes) return x->n_nodes > y->n_nodes ? -1 : 1;
  if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
  if (x->signature != y->signature) return x->signature < y->signature ? -1 : 1;
  return 0;
}

static int compare_candidates(const void *a, const void *b)
{
  const candidate *x = a, *y = b;
  int order = compare_kinds(x->group, y->group);
  if (order != 0) return order;
  return x->number < y->number ? -1 : 1;
}

static void open_group(picture *p, uint32_t number)
{
  p->groups[number].open = true;
  p->n_boxes += p->groups[number].n_units - 1;
}

/* Nodes selected by --around are always visible. */
static void open_around(picture *p)
{
  for (uint32_t i = 0; i < p->n; i++) {
    const picture_node *node = &p->nodes[i];
    bool in_scope = p->around_scope > 0 && strncmp(node->name, p->options->around, p->around_scope) == 0 &&
                    node->name[p->around_scope] == '/';
    if (!node->wanted || (!node->seed && !in_scope)) continue;
    uint32_t g = node->group;
    /* For a scope, open its enclosing groups and the scope itself. */
    while (in_scope && g != 0 && (p->groups[g].kind != GROUP_SCOPE || strlen(p->groups[g].name) > p->around_scope))
      g = p->groups[g].parent;
    for (; g != 0; g = p->groups[g].parent)
      if (!p->groups[g].open) open_group(p, g);
  }
}

/* With --around, groups that are only neighbours stay closed unless they are small. */
static bool is_aside(const picture *p, const picture_group *g)
{
  enum { SMALL = 6 };
  const char *around = p->options->around;
  if (around == NULL || p->options->boxes == 0 || g->n_units <= SMALL) return false;
  return p->around_scope == 0 || strncmp(g->name, around, p->around_scope) != 0 || g->name[p->around_scope] != '/';
}

/* Opens groups with the same ops together or not at all, so that repeated parts look the same. A group much smaller
 * than one that stays closed also stays closed, so that the level of detail is similar everywhere. */
static void open_groups(picture *p, uint32_t most)
{
  uint32_t least = 0;
  size_t n = p->n_groups - 1;
  candidate *list = tool_alloc(n, sizeof(*list));
  for (uint32_t i = 1; i < p->n_groups; i++) list[i - 1] = (candidate){ &p->groups[i], i };
  qsort(list, n, sizeof(*list), compare_candidates);
  for (size_t i = 0, end; i < n; i = end) {
    uint64_t cost = 0;
    for (end = i; end < n && compare_kinds(list[i].group, list[end].group) == 0; end++)
      if (!list[end].group->open && p->groups[list[end].group->parent].open) cost += list[end].group->n_units - 1;
    bool fits = cost == 0 || (p->n_boxes + cost <= most && list[i].group->n_nodes >= least);
    if (!fits && least == 0) least = list[i].group->n_nodes / 2;
    if (!fits) continue;
    for (size_t k = i; k < end; k++)
      if (!list[k].group->open && p->groups[list[k].group->parent].open && !is_aside(p, list[k].group))
        open_group(p, list[k].number);
  }
  free(list);
}

/* ---- boxes ---- */

/* A node belongs to the box of its outermost closed group; if there is none, it has its own box. */
static void make_boxes(picture *p)
{
  uint32_t *of_group = tool_alloc(p->n_groups, sizeof(*of_group));
  p->boxes = tool_alloc(p->n_wanted, sizeof(*p->boxes));
  p->n_boxes = 0;
  for (uint32_t k = 0; k < p->n_wanted; k++) {
    uint32_t node = p->by_order[k], closed = 0;
    for (uint32_t g = p->nodes[node].group; g != 0; g = p->groups[g].parent)
      if (!p->groups[g].open) closed = g;
    if (closed != 0 && of_group[closed] != 0) {
      p->nodes[node].box = of_group[closed] - 1;
      continue;
    }
    p->boxes[p->n_boxes].unit = closed != 0 ? closed | PICTURE_IS_GROUP : node;
    p->nodes[node].box = p->n_boxes++;
    if (closed != 0) of_group[closed] = p->n_boxes;
    uint32_t outer = closed != 0 ? p->groups[closed].parent : p->nodes[node].group;
    for (uint32_t g = outer;; g = p->groups[g].parent) {
      p->groups[g].n_boxes++;
      if (g == 0) break;
    }
  }
  free(of_group);
}

/* ---- arrows ---- */

static int compare_edges(const void *a, const void *b)
{
  const picture_edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return x->output < y->output ? -1 : x->output > y->output;
}

/* An edge between boxes while arrows are created; `edge` identifies the source node. */
typedef struct link {
  uint32_t from, to;
  picture_edge edge;
} link;

static int compare_links(const void *a, const void *b)
{
  const link *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  bool cx = x->edge.output < 0, cy = y->edge.output < 0;
  if (cx != cy) return cx ? 1 : -1;
  return compare_edges(&x->edge, &y->edge);
}

static size_t collect_links(picture *p, link *links)
{
  size_t n = 0;
  for (size_t e = 0; e < p->n_edges; e++) {
    picture_edge edge = p->edges[e];
    const picture_node *from = &p->nodes[edge.from], *to = &p->nodes[edge.to];
    if (from->label || to->label) continue;
    if (from->wanted && to->wanted && (from->box != to->box || edge.from == edge.to))
      links[n++] = (link){ from->box, to->box, edge };
    else if (from->wanted && !to->wanted)
      p->boxes[from->box].more_out++;
    else if (!from->wanted && to->wanted)
      p->boxes[to->box].more_in++;
  }
  return n;
}

/* One arrow for all data edges between two boxes, or one for control edges if there are no data edges. */
static void make_arrows(picture *p)
{
  link *links = tool_alloc(p->n_edges, sizeof(*links));
  size_t n = collect_links(p, links);
  qsort(links, n, sizeof(*links), compare_links);
  p->merged = tool_alloc(n, sizeof(*p->merged));
  p->arrows = tool_alloc(n, sizeof(*p->arrows));
  for (size_t i = 0; i < n; i++) {
    bool control = links[i].edge.output < 0;
    picture_arrow *last = p->n_arrows > 0 ? &p->arrows[p->n_arrows - 1] : NULL;
    bool same = last != NULL && last->from == links[i].from && last->to == links[i].to;
    p->merged[i] = links[i].edge;
    if (same && control && !last->control) continue;
    if (same && control == last->control)
      last->n++;
    else
      p->arrows[p->n_arrows++] = (picture_arrow){ links[i].from, links[i].to, i, 1, control };
  }
  free(links);
}

static void fold_to(picture *p, uint32_t most)
{
  for (size_t i = 0; i < p->n_groups; i++) {
    p->groups[i].open = i == 0;
    p->groups[i].n_boxes = 0;
  }
  free(p->boxes);
  free(p->merged);
  free(p->arrows);
  p->n_arrows = 0;
  p->n_boxes = p->groups[0].n_units;
  if (p->options->around != NULL) open_around(p);
  open_groups(p, most);
  make_boxes(p);
  make_arrows(p);
}

/* Arrows affect readability as much as boxes: if there are many more arrows than boxes, use fewer boxes. */
void picture_fold(picture *p)
{
  uint32_t wanted = p->options->boxes;
  fold_to(p, wanted > 0 ? wanted : UINT32_MAX);
  for (uint32_t most = wanted; wanted > 0 && p->n_arrows > wanted + wanted / 10 && most > wanted / 4 && most > 4;) {
    most -= most / 8 + 1;
    if (p->n_boxes > most) fold_to(p, most);
  }
}
