/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a tensor's elements, and their histogram. */
#include <math.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

enum { WANTED_BINS = 16 };

static double magnitude_at(const tool_values *values, int64_t i)
{
  double imaginary, real = tool_value_at(values, i, &imaginary);
  bool complex = values->dtype == TN_COMPLEX64 || values->dtype == TN_COMPLEX128;
  return complex ? hypot(real, imaginary) : real;
}

static void add_value(checkpoint_statistics *s, double value, double *squares)
{
  s->n++;
  if (isnan(value)) s->nans++;
  if (isinf(value)) s->infinities++;
  if (!isfinite(value)) return;
  s->finite++;
  if (value == 0) s->zeros++;
  if (s->finite == 1 || value < s->min) s->min = value;
  if (s->finite == 1 || value > s->max) s->max = value;
  /* Welford's method: stable for a large mean and a small deviation. */
  double before = value - s->mean;
  s->mean += before / (double)s->finite;
  *squares += before * (value - s->mean);
}

void checkpoint_statistics_of(const tool_values *values, checkpoint_statistics *out)
{
  double squares = 0;
  memset(out, 0, sizeof(*out));
  for (int64_t i = 0; i < values->n; i++) add_value(out, magnitude_at(values, i), &squares);
  if (out->finite > 0) out->std = sqrt(squares / (double)out->finite);
}

/* ---- the histogram ---- */

/* The least of 1, 2 and 5 times a power of ten that is at least `width`. */
static double round_up(double width)
{
  double power = pow(10, floor(log10(width)));
  static const double steps[] = { 1, 2, 5 };
  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
    if (steps[i] * power >= width) return steps[i] * power;
  return 10 * power;
}

static bool is_whole(tn_dtype dtype)
{
  int64_t min;
  uint64_t max;
  return dtype == TN_BOOL || tool_integer_range(dtype, &min, &max);
}

static void choose_bins(const checkpoint_statistics *s, checkpoint_histogram *h)
{
  double width = s->max / WANTED_BINS - s->min / WANTED_BINS; /* the difference of the limits may overflow */
  if (h->whole && width < 1 && s->max > s->min) width = 1;
  if (width > 0) width = round_up(width);
  h->n = 1;
  h->first = s->min;
  if (!(width > 0) || !isfinite(width)) return;
  double first = floor(s->min / width), last = h->whole ? floor(s->max / width) + 1 : ceil(s->max / width);
  if (!(last - first >= 1 && last - first <= CHECKPOINT_BINS)) return; /* numbers too near for a double's digits */
  h->width = width;
  h->first = first;
  h->n = (size_t)(last - first);
}

void checkpoint_histogram_of(const tool_values *values, const checkpoint_statistics *s, checkpoint_histogram *out)
{
  memset(out, 0, sizeof(*out));
  out->whole = is_whole(values->dtype);
  if (s->finite == 0) return;
  choose_bins(s, out);
  for (int64_t i = 0; i < values->n; i++) {
    double value = magnitude_at(values, i);
    if (!isfinite(value)) continue;
    double bin = out->width > 0 ? floor(value / out->width) - out->first : 0;
    if (bin < 0) bin = 0;
    if (bin >= (double)out->n) bin = (double)(out->n - 1); /* the last bin includes its upper limit */
    out->counts[(size_t)bin]++;
  }
}

double checkpoint_bin_low(const checkpoint_histogram *h, size_t bin)
{
  return h->width > 0 ? (h->first + (double)bin) * h->width : h->first;
}

void checkpoint_print_histogram(const checkpoint_histogram *h, const checkpoint_statistics *s)
{
  tool_screen screen = tool_screen_look();
  uint64_t most = 1;
  for (size_t i = 0; i < h->n; i++)
    if (h->counts[i] > most) most = h->counts[i];
  for (size_t i = 0; i < h->n; i++) {
    tool_text line = { 0 };
    double low = checkpoint_bin_low(h, i), high = low + h->width;
    bool at_zero = low <= 0 && (high > 0 || h->n == 1);
    tool_text_printf(&line, "%11.5g  ", low);
    /* Reserve columns for the limit before the bar and the share after it. */
    tool_text_bar(&line, &screen, (double)h->counts[i] / (double)most, screen.width - 24, h->counts[i] > 0,
                  at_zero ? 33 : 36);
    tool_text_printf(&line, " %6.2f %%", (double)h->counts[i] / (double)s->finite * 100);
    puts(line.data);
    tool_text_fini(&line);
  }
}
