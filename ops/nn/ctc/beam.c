/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/nn/ctc/beam.h>
#include <string.h>

bool tn__labels_add(tn__labels *l, int64_t label)
{
  if (!tn__grow((void **)&l->items, &l->capacity, (size_t)l->n + 1, sizeof *l->items)) return false;
  l->items[l->n++] = label;
  return true;
}

void tn__labels_fini(tn__labels *l)
{
  tn__free(l->items, l->capacity * sizeof *l->items);
  *l = (tn__labels){ 0 };
}

static const tn__beam_odds impossible = { -INFINITY, -INFINITY, -INFINITY };

static double log_sum(double a, double b)
{
  if (a == -INFINITY) return b;
  if (b == -INFINITY) return a;
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* ---- the heap of leaves ---- */

/* Whether node i is less probable than node j; of two equal ones the newer is. */
static bool below(const tn__beam *b, int64_t i, int64_t j)
{
  double x = b->nodes[i].now.total, y = b->nodes[j].now.total;
  return x < y || (x == y && i > j);
}

static void sink(const tn__beam *b, int64_t *heap, int64_t n, int64_t at)
{
  for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
    if (child + 1 < n && below(b, heap[child + 1], heap[child])) child++;
    if (!below(b, heap[child], heap[at])) return;
    int64_t kept = heap[at];
    heap[at] = heap[child];
    heap[child] = kept;
    at = child;
  }
}

/* Adds a node to the beam; from a full one the least probable is removed. */
static bool push(tn__beam *b, int64_t node)
{
  if (b->n_leaves == b->width) {
    if (!below(b, b->leaves[0], node)) return true;
    b->leaves[0] = node;
    sink(b, b->leaves, b->n_leaves, 0);
    return true;
  }
  if (!tn__grow((void **)&b->leaves, &b->leaf_capacity, (size_t)b->n_leaves + 1, sizeof *b->leaves)) return false;
  int64_t at = b->n_leaves++;
  b->leaves[at] = node;
  for (; at > 0 && below(b, b->leaves[at], b->leaves[(at - 1) / 2]); at = (at - 1) / 2) {
    b->leaves[at] = b->leaves[(at - 1) / 2];
    b->leaves[(at - 1) / 2] = node;
  }
  return true;
}

void tn__beam_sort(tn__beam *b)
{
  for (int64_t n = b->n_leaves; n > 1;) { /* the least probable to the end */
    int64_t least = b->leaves[0];
    b->leaves[0] = b->leaves[--n];
    b->leaves[n] = least;
    sink(b, b->leaves, n, 0);
  }
}

/* ---- the tree ---- */

static bool add_node(tn__beam *b, int64_t parent, int64_t label, int64_t *node)
{
  if (!tn__grow((void **)&b->nodes, &b->node_capacity, (size_t)b->n_nodes + 1, sizeof *b->nodes)) return false;
  *node = b->n_nodes++;
  b->nodes[*node] = (tn__beam_node){ impossible, impossible, parent, label, -1 };
  return true;
}

/* Makes room for the children of a node. */
static bool open_node(tn__beam *b, int64_t node)
{
  size_t n = (size_t)b->classes - 1;
  if (b->nodes[node].children >= 0) return true;
  size_t wanted = (size_t)b->n_children + n;
  if (!tn__grow((void **)&b->children, &b->child_capacity, wanted, sizeof *b->children)) return false;
  b->nodes[node].children = b->n_children;
  for (size_t k = 0; k < n; k++) b->children[b->n_children++] = -1;
  return true;
}

bool tn__beam_start(tn__beam *b)
{
  int64_t root;
  b->n_nodes = b->n_children = b->n_leaves = 0;
  if (!tn__grow((void **)&b->y, &b->y_capacity, (size_t)b->classes, sizeof *b->y) || !add_node(b, -1, -1, &root))
    return false;
  b->nodes[root].now = (tn__beam_odds){ 0, 0, -INFINITY };
  return push(b, root);
}

void tn__beam_fini(tn__beam *b)
{
  tn__free(b->y, b->y_capacity * sizeof *b->y);
  tn__free(b->nodes, b->node_capacity * sizeof *b->nodes);
  tn__free(b->children, b->child_capacity * sizeof *b->children);
  tn__free(b->leaves, b->leaf_capacity * sizeof *b->leaves);
  tn__free(b->branches, b->branch_capacity * sizeof *b->branches);
}

/* ---- a step ---- */

static void normalise(tn__beam *b)
{
  double most = -INFINITY, sum = 0;
  for (int64_t k = 0; k < b->classes; k++)
    if (!(b->y[k] <= most)) most = b->y[k];
  for (int64_t k = 0; k < b->classes; k++) sum += exp(b->y[k] - most);
  sum = most + log(sum);
  for (int64_t k = 0; k < b->classes; k++) b->y[k] -= sum;
}

/* The probability that a node's sequence continues with a label. */
static double before(const tn__beam_node *node, int64_t label)
{
  return label == node->label ? node->old.blank : node->old.total;
}

/* The probability of a node in the beam at the new time. */
static void advance(tn__beam *b, tn__beam_node *node)
{
  if (node->parent >= 0) {
    const tn__beam_node *parent = &b->nodes[node->parent];
    if (parent->now.total != -INFINITY) node->now.label = log_sum(node->now.label, before(parent, node->label));
    node->now.label += b->y[node->label];
  }
  node->now.blank = node->old.total + b->y[b->classes - 1];
  node->now.total = log_sum(node->now.blank, node->now.label);
}

static bool may_enter(const tn__beam *b, double total)
{
  return total > -INFINITY && (b->n_leaves < b->width || total > b->nodes[b->leaves[0]].now.total);
}

/* Adds to the beam the node below `from` with this label, if it is probable enough. */
static bool extend(tn__beam *b, int64_t from, int64_t label)
{
  double total = b->y[label] + before(&b->nodes[from], label);
  int64_t *place = &b->children[b->nodes[from].children + label];
  if (*place >= 0 && b->nodes[*place].now.total != -INFINITY) return true;
  bool enters = may_enter(b, total);
  if (enters && *place < 0 && !add_node(b, from, label, place)) return false;
  if (*place < 0) return true;
  tn__beam_node *node = &b->nodes[*place];
  node->now = impossible;
  if (!enters) {
    node->old = impossible;
    return true;
  }
  node->now.label = node->now.total = total;
  if (b->n_leaves == b->width) b->nodes[b->leaves[0]].now = impossible;
  return push(b, *place);
}

bool tn__beam_step(tn__beam *b)
{
  int64_t n = b->n_leaves;
  if (!tn__grow((void **)&b->branches, &b->branch_capacity, (size_t)n, sizeof *b->branches)) return false;
  tn__beam_sort(b);
  if (n > 0) memcpy(b->branches, b->leaves, (size_t)n * sizeof *b->branches);
  normalise(b);
  b->n_leaves = 0;
  for (int64_t i = 0; i < n; i++) b->nodes[b->branches[i]].old = b->nodes[b->branches[i]].now;
  for (int64_t i = 0; i < n; i++) {
    advance(b, &b->nodes[b->branches[i]]);
    if (!push(b, b->branches[i])) return false;
  }
  for (int64_t i = 0; i < n && b->classes > 1; i++) {
    if (!may_enter(b, b->nodes[b->branches[i]].old.total)) continue;
    if (!open_node(b, b->branches[i])) return false;
    for (int64_t label = 0; label < b->classes - 1; label++)
      if (!extend(b, b->branches[i], label)) return false;
  }
  return true;
}

/* ---- results ---- */

double tn__beam_score(const tn__beam *b, int64_t place) { return b->nodes[b->leaves[place]].now.total; }

bool tn__beam_labels(const tn__beam *b, int64_t place, bool merge, tn__labels *to)
{
  int64_t first = to->n, last = -1;
  for (int64_t i = b->leaves[place]; b->nodes[i].parent >= 0; i = b->nodes[i].parent) {
    int64_t label = b->nodes[i].label;
    if (!(merge && label == last) && !tn__labels_add(to, label)) return false;
    last = label;
  }
  for (int64_t i = first, j = to->n - 1; i < j; i++, j--) {
    int64_t kept = to->items[i];
    to->items[i] = to->items[j];
    to->items[j] = kept;
  }
  return true;
}
