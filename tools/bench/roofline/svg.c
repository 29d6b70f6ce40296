/* SPDX-License-Identifier: Apache-2.0 */
/* tenon bench --roofline --svg FILE: for each row a chart of operations per second over operations per byte, both on
 * logarithmic scales, with a dot for each group. Groups that compute nothing have no place in it; the list beside it
 * has them too. Contains no scripts: tooltips describe the dots. */
#include <math.h>
#include <string.h>

#include <tools/bench/roofline/roofline.h>
#include <tools/picture/picture.h>

enum { WIDTH = 1000, LEFT = 76, TOP = 76, PLOT = 500, HIGH = 360, BOTTOM = 58, LIST = LEFT + PLOT + 28 };
enum {
  CHART = TOP + HIGH + BOTTOM,
  LINE = 26,
  MOST_LISTED = HIGH / LINE,
  MOST_COLOURS = 8,
  LABEL = 11,
  PEAK_NAME = 190
};

#define DOT_LEAST 4.0 /* radius in pixels of the smallest dot */
#define DOT_MORE 22.0 /* added for all of the time; areas grow with shares */
#define DEGREES 57.29577951308232

static const char *const colours[MOST_COLOURS] = { "#0072b2", "#d55e00", "#00855f", "#a0569b",
                                                   "#b58900", "#2a9d9d", "#7a6a50", "#5a66c4" };

/* Ends of the scales, as decimal logarithms. */
typedef struct chart {
  const roofline *r;
  tool_text *out;
  int y;
  double x_low, x_high, y_low, y_high;
} chart;

static double x_of(const chart *c, double log_x) { return LEFT + (log_x - c->x_low) / (c->x_high - c->x_low) * PLOT; }

static double y_of(const chart *c, double log_y)
{
  return c->y + TOP + HIGH - (log_y - c->y_low) / (c->y_high - c->y_low) * HIGH;
}

static bool is_drawn(const roof_group *g) { return g->flops > 0 && g->bytes > 0 && g->ns > 0; }

static double log_intensity(const roof_group *g) { return log10(g->flops / g->bytes); }
static double log_rate(const roof_group *g) { return log10(g->flops / g->ns) + 9; }

/* The scales have room for the ridge, where both roofs meet, and for all dots. */
static chart make_chart(const roofline *r, tool_text *out, int y)
{
  double peak = log10(r->most.flops), ridge = peak - log10(r->most.bandwidth);
  chart c = { r, out, y, ridge - 1.5, ridge + 1, peak - 2.5, peak + 0.3 };
  for (size_t i = 0; i < r->n_groups; i++) {
    const roof_group *g = &r->groups[i];
    if (!is_drawn(g)) continue;
    c.x_low = fmin(c.x_low, log_intensity(g) - 0.3);
    c.x_high = fmax(c.x_high, log_intensity(g) + 0.3);
    c.y_low = fmin(c.y_low, log_rate(g) - 0.3);
    c.y_high = fmax(c.y_high, log_rate(g) + 0.3);
  }
  return c;
}

/* ---- axes ---- */

/* 0.01, 1, 1000 or 1e+09 */
static const char *power_text(char text[32], double log_value)
{
  snprintf(text, 32, "%.6g", pow(10, log_value));
  return text;
}

static void add_axes(const chart *c)
{
  char text[32];
  int ground = c->y + TOP + HIGH;
  for (double at = ceil(c->x_low); at <= c->x_high; at++)
    tool_text_printf(c->out,
                     "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text class=\"tick middle\" "
                     "x=\"%.1f\" y=\"%d\">%s</text>\n",
                     x_of(c, at), x_of(c, at), c->y + TOP, ground, x_of(c, at), ground + 18, power_text(text, at));
  for (double at = ceil(c->y_low); at <= c->y_high; at++)
    tool_text_printf(c->out,
                     "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"tick end\" "
                     "x=\"%d\" y=\"%.1f\">%s</text>\n",
                     LEFT, LEFT + PLOT, y_of(c, at), y_of(c, at), LEFT - 8, y_of(c, at) + 4, power_text(text, at - 9));
  tool_text_printf(c->out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", LEFT, c->y + TOP, ground, LEFT + PLOT);
  tool_text_printf(c->out,
                   "<text class=\"tick middle\" x=\"%d\" y=\"%d\">floating-point operations for each byte "
                   "that is read or written</text>\n",
                   LEFT + PLOT / 2, ground + 40);
  tool_text_printf(c->out, "<text class=\"tick middle\" transform=\"translate(22 %d) rotate(-90)\">GFLOP/s</text>\n",
                   c->y + TOP + HIGH / 2);
}

/* ---- roofs ---- */

/* A slope of this bandwidth up to the peak, and its name beside it. */
static void add_slope(const chart *c, double bandwidth, const char *class, const char *name)
{
  double peak = log10(c->r->most.flops), slope = log10(bandwidth);
  double from = fmax(c->x_low, c->y_low - slope), to = fmin(c->x_high, peak - slope);
  if (to <= from) return;
  double x1 = x_of(c, from), y1 = y_of(c, from + slope), x2 = x_of(c, to), y2 = y_of(c, to + slope);
  double angle = atan2(y2 - y1, x2 - x1) * DEGREES, length = hypot(x2 - x1, y2 - y1);
  tool_text_printf(c->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class, x1, y1, x2, y2);
  if (length < 150) return;
  tool_text_printf(c->out,
                   "<text class=\"tick\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" x=\"%.1f\" y=\"-6\">%s %.*f "
                   "GB/s</text>\n",
                   x1, y1, angle, length * 0.15, name, tool_decimals(bandwidth / 1e9), bandwidth / 1e9);
}

static void add_roofs(const chart *c)
{
  const machine_limits *most = &c->r->most;
  double peak = log10(most->flops), ridge = peak - log10(most->bandwidth);
  if (c->r->cache_bandwidth > most->bandwidth * 1.2) add_slope(c, c->r->cache_bandwidth, "cache", "caches");
  add_slope(c, most->bandwidth, "roof", "memory");
  tool_text_printf(c->out, "<path class=\"roof\" d=\"M%.1f %.1fH%d\"/>\n", x_of(c, fmax(ridge, c->x_low)),
                   y_of(c, peak), LEFT + PLOT);
  double from = x_of(c, fmax(ridge, c->x_low));
  bool room = from < LEFT + PLOT - PEAK_NAME; /* dots are often at the other end */
  tool_text_printf(c->out, "<text class=\"tick%s\" x=\"%.1f\" y=\"%.1f\">%.*f GFLOP/s, %s, %d thread%s</text>\n",
                   room ? "" : " end", room ? from : LEFT + PLOT, y_of(c, peak) - 6, tool_decimals(most->flops / 1e9),
                   most->flops / 1e9, most->isa, c->r->threads, c->r->threads == 1 ? "" : "s");
}

/* ---- groups ---- */

static void add_name(tool_text *out, const roof_group *g, size_t longest)
{
  picture_add_html(out, g->op, longest);
  if (g->kernel[0] == '\0') return;
  tool_text_printf(out, ", ");
  picture_add_html(out, g->kernel, longest);
}

static void add_figures(tool_text *out, const roofline *r, const roof_group *g)
{
  char time[32];
  tool_text_printf(out, "%s, %.1f %%", tool_duration_text(time, g->ns), roof_part(r, g) * 100);
  if (g->roof_ns <= 0 || g->ns <= 0) return;
  const char *bound = roof_bound_of(g) == ROOF_COMPUTE ? "compute" : "memory";
  tool_text_printf(out, "; %.0f %% of its roof (%s)", fmin(roof_share(g), 99) * 100,
                   is_drawn(g) ? bound : "memory only");
}

static void add_dot(const chart *c, size_t i)
{
  const roof_group *g = &c->r->groups[i];
  double share = roof_part(c->r, g);
  double x = x_of(c, log_intensity(g)), y = y_of(c, log_rate(g)), radius = DOT_LEAST + DOT_MORE * sqrt(share);
  const char *colour = colours[i % MOST_COLOURS];
  tool_text_printf(c->out, "<g><title>");
  add_name(c->out, g, 0);
  tool_text_printf(c->out, ": ");
  add_figures(c->out, c->r, g);
  tool_text_printf(c->out,
                   "</title><circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" stroke=\"%s\"/>", x, y,
                   radius, colour, colour);
  if (i < MOST_LISTED && radius >= 8)
    tool_text_printf(c->out, "<text class=\"number middle\" x=\"%.1f\" y=\"%.1f\">%zu</text>", x, y + 4, i + 1);
  else if (i < MOST_LISTED)
    tool_text_printf(c->out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%zu</text>", x + radius + 2, y + 4, i + 1);
  tool_text_printf(c->out, "</g>\n");
}

static void add_list(const chart *c)
{
  const roofline *r = c->r;
  for (size_t i = 0; i < r->n_groups && i < MOST_LISTED; i++) {
    const roof_group *g = &r->groups[i];
    int y = c->y + TOP + LABEL + LINE * (int)i;
    const char *colour = colours[i % MOST_COLOURS];
    tool_text_printf(c->out,
                     "<circle cx=\"%d\" cy=\"%d\" r=\"5\" stroke=\"%s\" fill=\"%s\" fill-opacity=\"%s\"/><text "
                     "class=\"name\" x=\"%d\" y=\"%d\">%zu&#160; ",
                     LIST, y - 4, colour, colour, is_drawn(g) ? "0.55" : "0", LIST + 12, y, i + 1);
    add_name(c->out, g, 30);
    tool_text_printf(c->out, "</text><text class=\"tick\" x=\"%d\" y=\"%d\">", LIST + 30, y + 12);
    add_figures(c->out, r, g);
    tool_text_printf(c->out, "</text>\n");
  }
  if (r->n_groups > MOST_LISTED)
    tool_text_printf(c->out, "<text class=\"tick\" x=\"%d\" y=\"%d\">and %zu more</text>\n", LIST + 12,
                     c->y + TOP + HIGH + 4, r->n_groups - MOST_LISTED);
}

/* ---- the file ---- */

static void add_title(const chart *c, const bench *b, const bench_case *row)
{
  char text[32];
  const roofline *r = c->r;
  tool_text name = { 0 };
  bench_case_text(row, &name);
  tool_text_printf(c->out, "<text class=\"title\" x=\"%d\" y=\"%d\">Roofline of ", LEFT, c->y + 28);
  picture_add_html(c->out, picture_last_part(b->request->source.path), 60);
  tool_text_printf(c->out, ", ");
  picture_add_html(c->out, name.data, 60);
  tool_text_printf(c->out, "</text>\n<text class=\"more\" x=\"%d\" y=\"%d\">the fastest step takes %s", LEFT, c->y + 50,
                   tool_duration_text(text, r->step_ns));
  tool_text_printf(c->out, ", its kernels %s", tool_duration_text(text, r->nodes_ns));
  tool_text_printf(c->out, ", and at their roofs %s, %.0f %%; areas of dots are shares of the time</text>\n",
                   tool_duration_text(text, r->roof_ns), r->nodes_ns > 0 ? r->roof_ns / r->nodes_ns * 100 : 0);
  tool_text_fini(&name);
}

static void add_chart(const bench *b, const bench_case *row, tool_text *out, int y)
{
  chart c = make_chart(row->roofline, out, y);
  add_title(&c, b, row);
  add_axes(&c);
  add_roofs(&c);
  for (size_t i = 0; i < c.r->n_groups; i++)
    if (is_drawn(&c.r->groups[i])) add_dot(&c, i);
  add_list(&c);
}

void roof_svg(const bench *b, tool_text *out)
{
  int height = 0, y = 0;
  for (size_t i = 0; i < b->n_cases; i++) height += b->cases[i].roofline != NULL ? CHART : 0;
  tool_text_printf(out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                   "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                   WIDTH, height, WIDTH, height);
  tool_text_printf(
      out, "<style>text{font:12px Helvetica,Arial,sans-serif;fill:#2b333d}.title{font-size:17px;font-weight:bold}"
           ".more{fill:#4a5563}.name,.number{font-weight:bold}.tick{font-size:11px;fill:#4a5563}.end{text-anchor:end}"
           ".dot{fill-opacity:0.55}.middle{text-anchor:middle}.grid{stroke:#e3e7ec}.axis{stroke:#8a94a0;fill:none}"
           ".roof{stroke:#2b333d;stroke-width:2;fill:none}"
           ".cache{stroke:#8a94a0;stroke-width:1.5;stroke-dasharray:5 4;fill:none}</style>\n");
  tool_text_printf(out, "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"white\"/>\n");
  for (size_t i = 0; i < b->n_cases; i++) {
    if (b->cases[i].roofline == NULL) continue;
    add_chart(b, &b->cases[i], out, y);
    y += CHART;
  }
  tool_text_printf(out, "</svg>\n");
}
