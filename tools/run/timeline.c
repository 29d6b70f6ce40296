/* SPDX-License-Identifier: Apache-2.0 */
/* tenon run --timeline FILE.svg: a row for each thread and for each device other than a CPU, a bar for each node, with
 * nested nodes below it. Bars too narrow to be visible are merged. Contains no scripts: tooltips describe the bars. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>
#include <tools/run/trace.h>

enum {
  WIDTH = 1000,
  LEFT = 76,
  RIGHT = 16,
  TOP = 58,
  BAR = 18,
  ROW_GAP = 14,
  MOST_STEPS = 10,
  MOST_DEPTH = 12,
  MOST_COLOURS = 8
};

#define NARROW 0.6 /* pixels: narrower bars are merged */

static const char *const colours[MOST_COLOURS] = { "#7fa8d1", "#e8b26b", "#8fc08a", "#c99bc9",
                                                   "#d98880", "#76b7b2", "#b8a88a", "#9aa5e0" };
#define OTHER_COLOUR "#c3cad2"

typedef struct row {
  const char *device; /* "GPU:0"; NULL: a thread's row */
  uint32_t thread;    /* 0 for devices */
  uint32_t depth; /* levels of nested bars */
  int y;
} row;

typedef struct op_cost {
  const char *op;
  int64_t ns;
} op_cost;

/* A bar that merges events too narrow to be visible. */
typedef struct heap {
  double from, to;
  uint64_t n;
  int64_t ns;
} heap;

typedef struct drawing {
  const run_trace *t;
  tool_text *out;
  size_t first_step, first, end; /* range that is drawn */
  int64_t from_ns, ns;
  row *rows;
  size_t n_rows, row_room;
  uint8_t *depths; /* by event, starting at `first` */
  op_cost *ops;
  size_t n_ops, op_room;
  int height;
} drawing;

/* ---- selection and layout ---- */

static bool is_drawn(const trace_event *e) { return e->kind != TN_RECORD_EMPTY && e->duration_ns > 0; }

static void choose_steps(drawing *d)
{
  const run_trace *t = d->t;
  d->first_step = t->n_steps > MOST_STEPS ? t->n_steps - MOST_STEPS : t->n_steps > 1; /* the first one is much slower */
  d->first = t->n_steps > 0 ? t->steps[d->first_step].first : 0;
  d->end = t->n_events;
  if (t->n_steps == 0) return;
  const trace_step *last = &t->steps[t->n_steps - 1];
  d->from_ns = t->steps[d->first_step].start_ns;
  d->ns = last->start_ns + last->duration_ns - d->from_ns;
}

/* Returns "GPU:0" for "/job:localhost/replica:0/task:0/device:GPU:0", independent of the thread; NULL for a CPU. */
static const char *device_of(const drawing *d, const trace_event *e)
{
  static const char before[] = "device:", cpu[] = "CPU:";
  const char *at = strstr(d->t->nodes[e->node].device, before);
  if (at == NULL) return NULL;
  at += sizeof(before) - 1;
  return strncmp(at, cpu, sizeof(cpu) - 1) == 0 ? NULL : at;
}

static bool is_in(const drawing *d, const row *r, const trace_event *e)
{
  const char *device = device_of(d, e);
  if (device == NULL || r->device == NULL) return device == r->device && e->thread == r->thread;
  return strcmp(device, r->device) == 0;
}

static void add_new_row(drawing *d, const char *device, uint32_t thread)
{
  d->rows = tool_grow(d->rows, d->n_rows, &d->row_room, sizeof(*d->rows));
  d->rows[d->n_rows] = (row){ .device = device, .thread = device == NULL ? thread : 0, .depth = 1 };
  d->n_rows++;
}

static row *find_row(const drawing *d, const trace_event *e)
{
  for (size_t i = 0; i < d->n_rows; i++)
    if (is_in(d, &d->rows[i], e)) return &d->rows[i];
  return NULL;
}

/* Threads, then devices. */
static int compare_rows(const void *a, const void *b)
{
  const row *x = a, *y = b;
  if (x->device != NULL && y->device != NULL) return strcmp(x->device, y->device);
  if (x->device != NULL || y->device != NULL) return x->device != NULL ? 1 : -1;
  return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* An event that begins while others of its row are running is drawn below them. Events are sorted by start time. */
static void find_depths(drawing *d)
{
  typedef struct lane {
    int64_t ends[MOST_DEPTH];
  } lane;
  add_new_row(d, NULL, 0);
  for (size_t i = d->first; i < d->end; i++) {
    const trace_event *e = &d->t->events[i];
    if (is_drawn(e) && find_row(d, e) == NULL) add_new_row(d, device_of(d, e), e->thread);
  }
  qsort(d->rows, d->n_rows, sizeof(*d->rows), compare_rows);
  lane *lanes = tool_alloc(d->n_rows, sizeof(*lanes));
  d->depths = tool_alloc(d->end - d->first + 1, 1);
  for (size_t i = d->first; i < d->end; i++) {
    const trace_event *e = &d->t->events[i];
    if (!is_drawn(e)) continue;
    row *r = find_row(d, e);
    lane *l = &lanes[r - d->rows];
    uint32_t depth = MOST_DEPTH;
    while (depth > 0 && l->ends[depth - 1] <= e->start_ns) depth--;
    if (depth == MOST_DEPTH) depth--;
    l->ends[depth] = e->start_ns + e->duration_ns;
    d->depths[i - d->first] = (uint8_t)depth;
    if (depth + 1 > r->depth) r->depth = depth + 1;
  }
  free(lanes);
  int y = TOP;
  for (size_t i = 0; i < d->n_rows; i++) {
    d->rows[i].y = y;
    y += (int)d->rows[i].depth * BAR + ROW_GAP;
  }
  d->height = y;
}

static int compare_ops(const void *a, const void *b)
{
  const op_cost *x = a, *y = b;
  if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
  return strcmp(x->op, y->op);
}

/* The most expensive ops get a colour each. */
static void choose_colours(drawing *d)
{
  for (size_t i = d->first; i < d->end; i++) {
    const trace_event *e = &d->t->events[i];
    const char *op = d->t->nodes[e->node].op;
    size_t k = 0;
    if (!is_drawn(e)) continue;
    while (k < d->n_ops && strcmp(d->ops[k].op, op) != 0) k++;
    if (k == d->n_ops) {
      d->ops = tool_grow(d->ops, d->n_ops, &d->op_room, sizeof(*d->ops));
      d->ops[d->n_ops++] = (op_cost){ op, 0 };
    }
    d->ops[k].ns += e->duration_ns;
  }
  if (d->n_ops > 0) qsort(d->ops, d->n_ops, sizeof(*d->ops), compare_ops);
}

static const char *colour_of(const drawing *d, const char *op)
{
  for (size_t k = 0; k < d->n_ops && k < MOST_COLOURS; k++)
    if (strcmp(d->ops[k].op, op) == 0) return colours[k];
  return OTHER_COLOUR;
}

/* ---- drawing elements ---- */

static double x_of(const drawing *d, int64_t ns)
{
  return d->ns <= 0 ? LEFT : LEFT + (double)(ns - d->from_ns) / (double)d->ns * (WIDTH - LEFT - RIGHT);
}

static void add_duration(tool_text *out, int64_t ns)
{
  if (ns < 1000000) tool_text_printf(out, "%.4g us", (double)ns / 1e3);
  else if (ns < 1000000000) tool_text_printf(out, "%.4g ms", (double)ns / 1e6);
  else tool_text_printf(out, "%.4g s", (double)ns / 1e9);
}

static void add_rect(const drawing *d, double from, double to, int y, const char *fill, const char *more)
{
  tool_text_printf(d->out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"%s>", from, y,
                   to - from > 0.3 ? to - from : 0.3, BAR - 2, fill, more);
}

static void add_label(const drawing *d, const trace_node *node, double from, double to, int y)
{
  enum { LETTER = 6 };
  size_t room = to - from < 24 ? 0 : (size_t)((to - from - 6) / LETTER);
  const char *text = node->name;
  if (strlen(text) > room) text = picture_last_part(node->name);
  if (strlen(text) > room) text = node->op;
  if (strlen(text) > room) return;
  tool_text_printf(d->out, "<text class=\"bar\" x=\"%.2f\" y=\"%d\">", from + 3, y + BAR - 6);
  picture_add_html(d->out, text, 0);
  tool_text_printf(d->out, "</text>");
}

static void add_bar(const drawing *d, const trace_event *e, double from, double to, int y)
{
  const trace_node *node = &d->t->nodes[e->node];
  const char *more = "", *what = "";
  if (e->waited) more = " fill-opacity=\"0.35\" stroke=\"#8a94a0\" stroke-dasharray=\"3 2\"";
  else if (e->kind == TN_RECORD_PART) more = " fill-opacity=\"0.7\"";
  else if (to - from >= 3) more = " stroke=\"white\" stroke-width=\"0.7\"";
  if (e->kind == TN_RECORD_PART) what = " of its loop";
  else if (e->waited) what = ", with waiting,";
  add_rect(d, from, to, y, colour_of(d, node->op), more);
  tool_text_printf(d->out, "<title>");
  picture_add_html(d->out, node->name, 0);
  tool_text_printf(d->out, "\n");
  picture_add_html(d->out, node->op, 0);
  if (node->kernel[0] != '\0') {
    tool_text_printf(d->out, ", ");
    picture_add_html(d->out, node->kernel, 0);
  }
  tool_text_printf(d->out, "\n");
  add_duration(d->out, e->duration_ns);
  tool_text_printf(d->out, "%s in step %" PRIu64, what, d->t->steps[e->step].number);
  if (node->outputs[0] != '\0') {
    tool_text_printf(d->out, "\n");
    picture_add_html(d->out, node->outputs, 0);
  }
  tool_text_printf(d->out, "</title></rect>");
  add_label(d, node, from, to, y);
  tool_text_add(d->out, "\n", 1);
}

/* ---- rows ---- */

static void end_heap(const drawing *d, heap *h, int y)
{
  if (h->n > 0) {
    add_rect(d, h->from, h->to, y, OTHER_COLOUR, "");
    tool_text_printf(d->out, "<title>%" PRIu64 " node%s, ", h->n, h->n == 1 ? "" : "s");
    add_duration(d->out, h->ns);
    tool_text_printf(d->out, "</title></rect>\n");
  }
  h->n = 0;
}

static void add_row(const drawing *d, const row *r)
{
  char name[32] = "step";
  if (r->device != NULL) snprintf(name, sizeof(name), "%.10s", r->device);
  else if (r->thread != 0) snprintf(name, sizeof(name), "worker %" PRIu32, r->thread);
  tool_text_printf(d->out,
                   "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#6b7a8c\" fill-opacity=\"0.07\"/>\n",
                   LEFT, r->y - 3, WIDTH - LEFT - RIGHT, (int)r->depth * BAR + 4);
  tool_text_printf(d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8, r->y + BAR - 6, name);
  heap heaps[MOST_DEPTH] = { { 0, 0, 0, 0 } };
  for (size_t i = d->first; i < d->end; i++) {
    const trace_event *e = &d->t->events[i];
    if (!is_drawn(e) || !is_in(d, r, e)) continue;
    uint8_t depth = d->depths[i - d->first];
    heap *h = &heaps[depth];
    double from = x_of(d, e->start_ns), to = x_of(d, e->start_ns + e->duration_ns);
    int y = r->y + depth * BAR;
    if (h->n > 0 && (to - from >= NARROW || from - h->to >= NARROW)) end_heap(d, h, y);
    if (to - from >= NARROW) {
      add_bar(d, e, from, to, y);
      continue;
    }
    if (h->n++ == 0) *h = (heap){ .from = from, .n = 1 };
    h->to = to;
    h->ns += e->duration_ns;
  }
  for (int k = 0; k < MOST_DEPTH; k++) end_heap(d, &heaps[k], r->y + k * BAR);
}

/* ---- axis, steps, legend ---- */

/* 1, 2 or 5 times a power of ten, for at most about ten ticks. */
static int64_t tick_of(int64_t ns)
{
  int64_t tick = 1;
  for (int k = 0; ns / tick > 10 && tick < INT64_MAX / 10; k++) tick = k % 3 == 1 ? tick / 2 * 5 : tick * 2;
  return tick;
}

static void add_axis(const drawing *d)
{
  if (d->ns <= 0) return;
  int64_t tick = tick_of(d->ns);
  for (int64_t at = 0; at <= d->ns; at += tick) {
    double x = x_of(d, d->from_ns + at);
    tool_text_printf(d->out, "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\" stroke=\"#dfe4ea\"/>", x, x, TOP - 8,
                     d->height);
    tool_text_printf(d->out, "<text class=\"tick\" x=\"%.2f\" y=\"%d\">", x, d->height + 14);
    if (at == 0) tool_text_printf(d->out, "0");
    else add_duration(d->out, at);
    tool_text_printf(d->out, "</text>\n");
  }
}

static void add_steps(const drawing *d)
{
  for (size_t i = d->first_step; i < d->t->n_steps; i++) {
    const trace_step *s = &d->t->steps[i];
    double from = x_of(d, s->start_ns), to = x_of(d, s->start_ns + s->duration_ns);
    tool_text_printf(d->out, "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\" stroke=\"#8a94a0\"/>", from, from,
                     TOP - 20, d->height);
    tool_text_printf(d->out,
                     "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\" stroke=\"#8a94a0\"><title>step %" PRIu64 ", ",
                     from, to, TOP - 10, TOP - 10, s->number);
    add_duration(d->out, s->duration_ns);
    tool_text_printf(d->out, "</title></line>");
    if (to - from >= 110) {
      tool_text_printf(d->out,
                       "<text class=\"tick\" style=\"text-anchor:start\" x=\"%.2f\" y=\"%d\">step %" PRIu64 ", ",
                       from + 4, TOP - 14, s->number);
      add_duration(d->out, s->duration_ns);
      tool_text_printf(d->out, "</text>");
    } else if (to - from >= 24) {
      tool_text_printf(d->out,
                       "<text class=\"tick\" style=\"text-anchor:start\" x=\"%.2f\" y=\"%d\">%" PRIu64 "</text>",
                       from + 4, TOP - 14, s->number);
    }
    tool_text_add(d->out, "\n", 1);
  }
}

/* Returns entry k of the legend, and its width in the widest substitute for Helvetica. */
static const char *legend_entry(const drawing *d, size_t k, double *width)
{
  const char *text = k < MOST_COLOURS ? d->ops[k].op : "others";
  *width = 30 + 7.6 * (double)strlen(text);
  return text;
}

static size_t legend_entries(const drawing *d) { return d->n_ops <= MOST_COLOURS ? d->n_ops : MOST_COLOURS + 1; }

/* Moves to the position of an entry, in this row or the next. */
static void place_entry(double width, double *x, int *line)
{
  if (*x > LEFT && *x + width > WIDTH - RIGHT) {
    *x = LEFT;
    ++*line;
  }
}

static int legend_rows(const drawing *d)
{
  double x = LEFT, width;
  int line = 0;
  for (size_t k = 0; k < legend_entries(d); k++, x += width) {
    legend_entry(d, k, &width);
    place_entry(width, &x, &line);
  }
  return line + 1;
}

static void add_legend(const drawing *d)
{
  double x = LEFT, width;
  int line = 0;
  for (size_t k = 0; k < legend_entries(d); k++, x += width) {
    const char *text = legend_entry(d, k, &width);
    place_entry(width, &x, &line);
    int y = d->height + 34 + 18 * line;
    tool_text_printf(d->out,
                     "<rect x=\"%.1f\" y=\"%d\" width=\"11\" height=\"11\" fill=\"%s\"/><text x=\"%.1f\" y=\"%d\">", x,
                     y - 10, k < MOST_COLOURS ? colours[k] : OTHER_COLOUR, x + 16, y);
    picture_add_html(d->out, text, 0);
    tool_text_printf(d->out, "</text>\n");
  }
}

static void add_title(const drawing *d)
{
  const run_trace *t = d->t;
  tool_text_printf(d->out, "<text class=\"title\" x=\"%d\" y=\"20\">", LEFT);
  picture_add_html(d->out, picture_last_part(t->model), 60);
  if (t->n_steps == 0) tool_text_printf(d->out, ": no step");
  else if (d->first_step + 1 == t->n_steps) tool_text_printf(d->out, ": step %" PRIu64, t->steps[d->first_step].number);
  else
    tool_text_printf(d->out, ": steps %" PRIu64 " to %" PRIu64, t->steps[d->first_step].number,
                     t->steps[t->n_steps - 1].number);
  if (t->all_steps > 1) tool_text_printf(d->out, " of %" PRIu64, t->all_steps);
  tool_text_printf(d->out, "</text>\n");
}

static void draw(drawing *d)
{
  int height = d->height + 34 + 18 * legend_rows(d);
  tool_text_printf(d->out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                   "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                   WIDTH, height, WIDTH, height);
  tool_text_printf(
      d->out,
      "<style>text{font:11px Helvetica,Arial,sans-serif;fill:#2b333d}.title{font-size:15px;font-weight:bold}"
      ".tick{font-size:10px;fill:#5a6673;text-anchor:middle}.bar{font-size:10px;pointer-events:none}</style>\n");
  tool_text_printf(d->out, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
  add_title(d);
  add_axis(d);
  for (size_t i = 0; i < d->n_rows; i++) add_row(d, &d->rows[i]);
  add_steps(d);
  add_legend(d);
  tool_text_printf(d->out, "</svg>\n");
}

void trace_timeline(const run_trace *t, tool_text *out)
{
  drawing d = { .t = t, .out = out };
  choose_steps(&d);
  find_depths(&d);
  choose_colours(&d);
  draw(&d);
  free(d.rows);
  free(d.depths);
  free(d.ops);
}
