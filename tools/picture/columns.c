/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: splits a long chain of boxes, which would be one very tall column, into several columns. A cut is made
 * where few arrows cross and no frame ends. An arrow that crosses a cut ends in a numbered circle and continues from
 * another circle with the same number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>

enum {
  TALL = 40,         /* minimum ranks of a picture to be split */
  RANK_HEIGHT = 64,  /* points, approximate */
  BOX_WIDTH = 280,   /* points, including the space and arrows beside it */
  MOST_COLUMNS = 12,
  MOST_ARROWS = 3    /* maximum arrows across a cut */
};

/* Between boxes i - 1 and i, in order. */
typedef struct cut {
  uint32_t rank;    /* ranks above it */
  uint32_t arrows;  /* arrows that cross it */
  uint32_t group;   /* the innermost frame around it */
  bool bad;         /* a backward arrow or a small frame is in the way */
} cut;

/* ---- possible cuts ---- */

static uint32_t find_ranks(const picture *p, cut *cuts)
{
  uint32_t *rank = tool_alloc(p->n_boxes, sizeof(*rank)), most = 0;
  for (size_t a = 0; a < p->n_arrows; a++) { /* sorted by start */
    const picture_arrow *arrow = &p->arrows[a];
    if (arrow->from < arrow->to && rank[arrow->to] <= rank[arrow->from]) rank[arrow->to] = rank[arrow->from] + 1;
  }
  for (uint32_t i = 0; i < p->n_boxes; i++) {
    cuts[i].rank = most;
    if (rank[i] + 1 > most) most = rank[i] + 1;
  }
  free(rank);
  return most;
}

static void count_arrows(const picture *p, cut *cuts)
{
  for (size_t a = 0; a < p->n_arrows; a++) {
    const picture_arrow *arrow = &p->arrows[a];
    bool back = arrow->from > arrow->to;
    uint32_t from = back ? arrow->to : arrow->from, to = back ? arrow->from : arrow->to;
    for (uint32_t i = from + 1; i <= to; i++) {
      cuts[i].arrows++;
      cuts[i].bad |= back;
    }
  }
}

static void look_at_frame(const picture *p, uint32_t group, uint32_t first, uint32_t last, cut *cuts)
{
  const picture_group *g = &p->groups[group];
  bool small = (uint64_t)g->n_boxes * 10 < (uint64_t)p->n_boxes * 6;
  for (uint32_t i = first + 1; i <= last; i++) {
    cuts[i].bad |= small;
    if (cuts[i].group == 0 || g->n_boxes < p->groups[cuts[i].group].n_boxes) cuts[i].group = group;
  }
}

static uint32_t group_of(const picture *p, uint32_t box)
{
  uint32_t unit = p->boxes[box].unit;
  return unit & PICTURE_IS_GROUP ? p->groups[unit & ~PICTURE_IS_GROUP].parent : p->nodes[unit].group;
}

static void find_frames(const picture *p, cut *cuts)
{
  uint32_t *first = tool_alloc(p->n_groups, sizeof(*first)), *last = tool_alloc(p->n_groups, sizeof(*last));
  for (uint32_t i = 0; i < p->n_boxes; i++)
    for (uint32_t g = group_of(p, i); g != 0; g = p->groups[g].parent) {
      if (last[g] == 0) first[g] = i;
      last[g] = i + 1;
    }
  for (uint32_t g = 1; g < p->n_groups; g++)
    if (last[g] > 0 && p->groups[g].open && picture_has_frame(&p->groups[g]))
      look_at_frame(p, g, first[g], last[g] - 1, cuts);
  free(first);
  free(last);
}

/* ---- choosing cuts ---- */

static uint32_t choose_columns(const picture *p, uint32_t ranks)
{
  if (p->options->columns > 0) return p->options->columns;
  if (ranks < TALL || p->n_boxes >= 2 * ranks) return 1;
  double height = (double)ranks * RANK_HEIGHT, width = BOX_WIDTH * (double)p->n_boxes / ranks;
  double n = sqrt(height / (1.3 * width));
  return n > MOST_COLUMNS ? MOST_COLUMNS : (uint32_t)(n + 0.5);
}

/* Returns the cut nearest to a rank, preferring few arrows; 0: none. */
static uint32_t best_cut(const picture *p, const cut *cuts, uint32_t rank, uint32_t reach, uint32_t after)
{
  uint32_t best = 0;
  double least = INFINITY;
  for (uint32_t i = after + 1; i < p->n_boxes; i++) {
    double away = fabs((double)cuts[i].rank - rank), cost = away + (double)cuts[i].arrows * reach / 2;
    bool same = after == 0 || cuts[i].group == cuts[after].group;
    if (cuts[i].bad || cuts[i].arrows == 0 || cuts[i].arrows > MOST_ARROWS || away > reach || !same || cost >= least)
      continue;
    best = i;
    least = cost;
  }
  return best;
}

static void turn_arrows(picture *p, uint32_t at)
{
  for (size_t a = 0; a < p->n_arrows; a++) {
    picture_arrow *arrow = &p->arrows[a];
    if (arrow->turn == 0 && arrow->from < at && at <= arrow->to) arrow->turn = ++p->n_turns;
  }
}

static bool is_in(const picture *p, uint32_t box, uint32_t group)
{
  uint32_t g = group_of(p, box);
  while (g != group && g != 0) g = p->groups[g].parent;
  return g == group;
}

void picture_divide(picture *p)
{
  if (p->n_boxes < 2 || p->n_boxes > PICTURE_MUCH || p->options->columns == 1) return;
  cut *cuts = tool_alloc(p->n_boxes, sizeof(*cuts));
  uint32_t ranks = find_ranks(p, cuts), columns = choose_columns(p, ranks), last = 0;
  if (columns > 1) {
    count_arrows(p, cuts);
    find_frames(p, cuts);
  }
  for (uint32_t k = 1; k < columns; k++) {
    uint32_t at = best_cut(p, cuts, (uint32_t)((uint64_t)k * ranks / columns), ranks / columns * 2 / 5 + 1, last);
    if (at == 0) continue;
    turn_arrows(p, at);
    last = at;
  }
  p->turn_group = cuts[last].group;
  while (last > 0 && !is_in(p, p->turn_box, p->turn_group)) p->turn_box++;
  free(cuts);
}
