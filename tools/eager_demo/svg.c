/* SPDX-License-Identifier: Apache-2.0 */
/* tenon eager-demo --svg FILE: draws all strategies on one time axis, and below it enlarged plots of those with small
 * peaks or short durations. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tools/eager_demo/eager_demo.h>
#include <tools/picture/picture.h>

enum { WIDTH = 900, LEFT = 84, RIGHT = 92, TOP = 84, HIGH = 220, LOW = 110, GAP = 66, PLOT = WIDTH - LEFT - RIGHT };

static const char *const colours[DEMO_STRATEGIES] = { "#0072b2", "#00855f", "#d55e00" };

/* A plot area of bytes over time. */
typedef struct panel {
  const demo *d;
  tool_text *out;
  int y, height;
  double ns, bytes; /* at its right and upper ends */
} panel;

/* ---- scales ---- */

/* 1, 2 or 5 times a power of ten, for at most `most` ticks. */
static double tick_of(double range, int most)
{
  double tick = 1;
  for (int k = 0; range / tick > most; k++) tick *= k % 3 == 1 ? 2.5 : 2;
  return tick;
}

/* Formats a tick, such as 400 MB or 0.5 s; ticks are round numbers. */
static const char *tick_text(char buffer[32], double value, const char *const *units)
{
  while (value >= 1000 && units[1] != NULL) {
    value /= 1000;
    units++;
  }
  snprintf(buffer, 32, value > 0 ? "%.4g %s" : "0", value, *units);
  return buffer;
}

static double x_of(const panel *p, double ns) { return LEFT + (ns < p->ns ? ns / p->ns : 1) * PLOT; }

static double y_of(const panel *p, double bytes) { return p->y + p->height - bytes / p->bytes * p->height; }

static panel make_panel(const demo *d, tool_text *out, int y, int height, uint64_t ns, uint64_t bytes)
{
  panel p = { d, out, y, height, (double)(ns > 0 ? ns : 1), (double)(bytes > 0 ? bytes : 1) * 1.08 };
  return p;
}

static void add_sizes(const panel *p)
{
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", NULL };
  char text[32];
  double tick = tick_of(p->bytes, p->height / 36);
  for (double at = 0; at <= p->bytes; at += tick) {
    double y = y_of(p, at);
    tool_text_printf(p->out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, LEFT + PLOT, y,
                     y);
    tool_text_printf(p->out, "<text class=\"tick end\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT - 8, y + 4,
                     tick_text(text, at, units));
  }
}

static void add_iterations(const panel *p)
{
  double iteration = (double)p->d->ops * (double)p->d->bytes;
  double tick = tick_of(p->bytes / iteration * 10, p->height / 36) / 10;
  for (double at = tick; at * iteration <= p->bytes; at += tick) {
    double y = y_of(p, at * iteration);
    tool_text_printf(p->out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT + PLOT,
                     LEFT + PLOT + 5, y, y);
    tool_text_printf(p->out, "<text class=\"tick\" x=\"%d\" y=\"%.1f\">%g iteration%s</text>\n", LEFT + PLOT + 9, y + 4,
                     at, at == 1 ? "" : "s");
  }
}

static void add_times(const panel *p)
{
  static const char *const units[] = { "ns", "us", "ms", "s", NULL };
  char text[32];
  double tick = tick_of(p->ns, 8);
  int ground = p->y + p->height;
  for (double at = 0; at <= p->ns; at += tick) {
    double x = x_of(p, at);
    tool_text_printf(p->out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, ground,
                     ground + 5);
    tool_text_printf(p->out, "<text class=\"tick middle\" x=\"%.1f\" y=\"%d\">%s</text>\n", x, ground + 18,
                     tick_text(text, at, units));
  }
}

static void add_axes(const panel *p)
{
  add_sizes(p);
  add_iterations(p);
  add_times(p);
  tool_text_printf(p->out, "<path class=\"axis\" d=\"M%d %dV%dH%dV%d\"/>\n", LEFT, p->y, p->y + p->height, LEFT + PLOT,
                   p->y);
}

/* ---- curves ---- */

/* Draws the minimum and maximum within each pixel, and horizontal lines where they are constant. */
static void add_points(const panel *p, const demo_run *run)
{
  double wide = p->ns / PLOT, last = -1, held = -1;
  for (int i = 0; i < PLOT && i * wide < (double)run->end_ns; i++) {
    demo_bin bin = demo_track_between(&run->track, (uint64_t)(i * wide), (uint64_t)((i + 1) * wide));
    double x = x_of(p, (i + 0.5) * wide < (double)run->end_ns ? (i + 0.5) * wide : (double)run->end_ns);
    double near = (double)bin.least, far = (double)bin.most;
    bool same = near == last && far == last;
    if (!same && held >= 0) tool_text_printf(p->out, "H%.1f", held);
    held = same ? x : -1;
    if (same) continue;
    if (last - near > far - last) {
      near = (double)bin.most;
      far = (double)bin.least;
    }
    tool_text_printf(p->out, "L%.1f %.1f", x, y_of(p, near));
    if (near != far) tool_text_printf(p->out, "V%.1f", y_of(p, far));
    last = far;
  }
  tool_text_printf(p->out, "H%.1fV%.1f", x_of(p, (double)run->end_ns), y_of(p, 0));
}

static void add_curve(const panel *p, const demo_run *run)
{
  const char *colour = colours[run->strategy];
  tool_text_printf(p->out, "<path fill=\"%s\" fill-opacity=\"0.16\" stroke=\"%s\" stroke-width=\"1.2\" ", colour,
                   colour);
  tool_text_printf(p->out, "stroke-linejoin=\"round\" d=\"M%d %.1f", LEFT, y_of(p, 0));
  add_points(p, run);
  tool_text_printf(p->out, "\"/>\n");
}

static void add_name(const panel *p, const demo_run *run, double x, double y, const char *anchor)
{
  char peak[32], loop[32];
  tool_text_printf(
      p->out,
      "<text class=\"name c%d\" style=\"text-anchor:%s\" x=\"%.1f\" y=\"%.1f\">%s<tspan class=\"more\" dx=\"7\">",
      (int)run->strategy, anchor, x, y, demo_strategy_name(run->strategy));
  tool_text_printf(p->out, "at most %s, %" PRIu64 " iteration%s in %s</tspan></text>\n",
                   tool_bytes_text(peak, run->peak_bytes), run->done, run->done == 1 ? "" : "s",
                   tool_duration_text(loop, (double)run->loop_ns));
}

static void add_title(const demo *d, tool_text *out)
{
  char text[32];
  tool_text_printf(out,
                   "<text class=\"title\" x=\"%d\" y=\"26\">Memory held by eager sessions</text>\n<text class=\"more\" "
                   "x=\"%d\" y=\"46\">",
                   LEFT, LEFT);
  tool_text_printf(out, "%" PRIu64 " addition%s in each iteration, of %s each, released at its end; runtime ", d->ops,
                   d->ops == 1 ? "" : "s", tool_bytes_text(text, d->bytes));
  picture_add_html(out, d->runtime, 40);
  tool_text_printf(out, "</text>\n");
}

static void add_legend(const demo *d, tool_text *out)
{
  int x = LEFT;
  for (size_t i = 0; i < d->n_begun; i++) {
    const char *name = demo_strategy_name(d->runs[i].strategy);
    tool_text_printf(out,
                     "<rect x=\"%d\" y=\"57\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/><text class=\"tick\" "
                     "x=\"%d\" y=\"67\">%s</text>\n",
                     x, colours[d->runs[i].strategy], x + 17, name);
    x += 40 + 8 * (int)strlen(name);
  }
}

/* Position at which the curve reaches the height of a name placed there. */
static double room_before(const panel *p, const demo_run *run, double y)
{
  double x = LEFT;
  for (uint64_t ns = 0, wide = run->end_ns / 256 + 1; ns < run->loop_ns; ns += wide) {
    if (y_of(p, (double)demo_track_between(&run->track, ns, ns + wide).most) < y + 8) break;
    x = x_of(p, (double)ns);
  }
  return x;
}

static bool is_low(const panel *p, const demo_run *run) { return (double)run->peak_bytes * 2 <= p->bytes; }

static bool name_is_left(const panel *p, const demo_run *run)
{
  return x_of(p, (double)run->end_ns) > LEFT + PLOT * 0.55;
}

/* Number of names of low curves below this one, ordered so that the leader lines on one side do not cross. */
static int place_of(const panel *p, size_t at)
{
  const demo_run *run = &p->d->runs[at];
  bool left = name_is_left(p, run);
  int place = 0;
  for (size_t i = 0; i < p->d->n_begun; i++) {
    const demo_run *other = &p->d->runs[i];
    bool farther = other->end_ns != run->end_ns ? other->end_ns > run->end_ns : i < at;
    if (i != at && is_low(p, other)) place += name_is_left(p, other) != left ? left : farther != left;
  }
  return place;
}

static void add_low_name(const panel *p, const demo_run *run, int place)
{
  double x = x_of(p, (double)run->end_ns), y = y_of(p, (double)run->peak_bytes) - 14 - 17 * place;
  bool left = name_is_left(p, run);
  tool_text_printf(p->out, "<path fill=\"none\" stroke=\"%s\" d=\"M%.1f %.1fV%.1fh%d\"/>\n", colours[run->strategy], x,
                   y_of(p, 0), y - 4, left ? -6 : 6);
  add_name(p, run, x + (left ? -10 : 10), y, left ? "end" : "start");
}

/* Names of high curves are placed above them, on the left; names of low curves above their ends. */
static void add_names(const panel *p)
{
  int high = 0;
  for (size_t i = 0; i < p->d->n_begun; i++) {
    const demo_run *run = &p->d->runs[i];
    if (is_low(p, run)) {
      add_low_name(p, run, place_of(p, i));
      continue;
    }
    double y = p->y + 14 + 17 * high++, x = room_before(p, run, y) - 8;
    add_name(p, run, x > LEFT + 340 ? x : LEFT + 10, y, x > LEFT + 340 ? "end" : "start");
  }
}

/* Whether the curve is hardly visible among the others. */
static bool is_small(const demo *d, const demo_run *run, uint64_t most)
{
  return d->n_begun > 1 && (run->peak_bytes < most / 4 || run->end_ns < demo_end_ns(d) / 4);
}

static void add_overview(const demo *d, tool_text *out, uint64_t most)
{
  panel p = make_panel(d, out, TOP, HIGH, demo_end_ns(d), most);
  add_axes(&p);
  for (size_t i = d->n_begun; i > 0; i--) add_curve(&p, &d->runs[i - 1]);
  add_names(&p);
}

static void add_enlarged(const demo *d, const demo_run *run, tool_text *out, int y)
{
  panel p = make_panel(d, out, y, LOW, run->end_ns, demo_scale(d, run));
  add_axes(&p);
  add_curve(&p, run);
  tool_text_printf(
      out, "<text class=\"name c%d\" x=\"%d\" y=\"%d\">%s<tspan class=\"more\" dx=\"7\">enlarged</tspan></text>\n",
      (int)run->strategy, LEFT, y - 8, demo_strategy_name(run->strategy));
}

void demo_svg(const demo *d, tool_text *out)
{
  uint64_t most = 1;
  int height = TOP + HIGH + 40;
  for (size_t i = 0; i < d->n_begun; i++)
    if (d->runs[i].peak_bytes > most) most = d->runs[i].peak_bytes;
  for (size_t i = 0; i < d->n_begun; i++) height += is_small(d, &d->runs[i], most) ? LOW + GAP : 0;
  tool_text_printf(out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                   "height=\"%d\" "
                   "viewBox=\"0 0 %d %d\">\n",
                   WIDTH, height, WIDTH, height);
  tool_text_printf(
      out,
      "<style>text{font:12px Helvetica,Arial,sans-serif;fill:#2b333d}.title{font-size:17px;font-weight:bold}"
      ".more{font-size:12px;font-weight:normal;fill:#4a5563}.name{font-weight:bold}.tick{font-size:11px;fill:#4a5563}"
      ".end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#e3e7ec}.axis{stroke:#8a94a0;fill:none}"
      ".c0{fill:%s}.c1{fill:%s}.c2{fill:%s}</style>\n",
      colours[0], colours[1], colours[2]);
  tool_text_printf(out, "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"white\"/>\n");
  add_title(d, out);
  add_legend(d, out);
  add_overview(d, out, most);
  int y = TOP + HIGH + GAP;
  for (size_t i = 0; i < d->n_begun; i++) {
    if (!is_small(d, &d->runs[i], most)) continue;
    add_enlarged(d, &d->runs[i], out, y);
    y += LOW + GAP;
  }
  tool_text_printf(out, "</svg>\n");
}
