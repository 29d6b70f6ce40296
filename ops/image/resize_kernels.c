/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling kernels: functions of the distance in pixels. */
#include <math.h>
#include <ops/image/resize.h>

#define PI 3.14159265358979323846

static float lanczos(float radius, float x)
{
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return (float)((double)radius * sin(PI * (double)x) * sin(PI * (double)x / (double)radius) /
                 (PI * PI * (double)x * (double)x));
}

/* The radius is three standard deviations. */
static float gaussian(float radius, float x)
{
  float sigma = radius / 3;
  return x >= radius ? 0 : expf(-x * x / (2 * sigma * sigma));
}

static float box(float radius, float x)
{
  if (x == 0.5f) return 0.5f;
  return x < 0.5f ? 1 : 0;
}
static float triangle(float radius, float x) { return x < 1 ? 1 - x : 0; }

static float keys_cubic(float radius, float x)
{
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : ((1.5f * x - 2.5f) * x) * x + 1;
}

static float mitchell_cubic(float radius, float x)
{
  if (x >= 2) return 0;
  if (x >= 1) return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
  return ((7.0f / 6 * x - 2) * x) * x + 8.0f / 9;
}

static const struct {
  const char *name;
  float radius;
  float (*at)(float radius, float x);
} kernels[] = {
  { "lanczos1", 1, lanczos },
  { "lanczos3", 3, lanczos },
  { "lanczos5", 5, lanczos },
  { "gaussian", 1.5f, gaussian },
  { "box", 1, box },
  { "triangle", 1, triangle },
  { "keyscubic", 2, keys_cubic },
  { "mitchellcubic", 2, mitchell_cubic },
};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

tn_status tn__resize_sampler_read(const tn_operation *op, tn__resize_sampler *s, tn_error *err)
{
  const char *names[N_KERNELS];
  for (int i = 0; i < N_KERNELS; i++) names[i] = kernels[i].name;
  s->antialias = tn__attr_bool(op, "antialias", true);
  return tn__attr_choice(op, "kernel_type", names, N_KERNELS, &s->kernel, err);
}

typedef struct span {
  int64_t first, end;
  float middle;
} span;

/* The pixels within this radius of the centre of output pixel i; none if the centre is outside the
 * image. */
/* The nearest index to x in [0, in). */
static int64_t index_of(float x, int64_t in)
{
  if (!(x > 0)) return 0;
  return x < (float)in ? (int64_t)x : in - 1;
}

static span find_span(float radius, float inverse, float shift, int64_t i, int64_t in)
{
  span s = { 0, 0, ((float)i + 0.5f) * inverse + shift };
  if (!(s.middle >= 0 && s.middle <= (float)in)) return s;
  float first = ceilf(s.middle - radius - 0.5f), last = floorf(s.middle + radius - 0.5f);
  s.first = index_of(first, in);
  s.end = index_of(last, in);
  if (s.first >= in) s.first = in - 1;
  s.end = s.end >= in ? in : s.end + 1;
  return s;
}

/* Adds the taps of a span, with weights normalised to a sum of 1. */
static void add_span(tn__resize_taps *taps, int64_t i, span s, int kernel, float scale)
{
  float sum = 0;
  int64_t begin = taps->firsts[i], n = s.end - s.first;
  for (int64_t k = 0; k < n; k++) {
    float weight = kernels[kernel].at(kernels[kernel].radius, fabsf(((float)(s.first + k) + 0.5f - s.middle) * scale));
    sum += weight;
    tn__resize_taps_add(taps, i, s.first + k, weight);
  }
  float norm = fabsf(sum) >= 1000 * 0x1p-126f ? 1 / sum : 0;
  for (int64_t k = begin; k < begin + n; k++) taps->weights[k] *= norm;
}

tn_status tn__resize_taps_sampled(tn__resize_taps *taps, const tn__resize_sampler *s, float scale, float translation,
                                  int64_t in, int64_t out, tn_error *err)
{
  const float inverse = 1 / scale, shift = -inverse * translation;
  const float wide = s->antialias && inverse > 1 ? inverse : 1, radius = kernels[s->kernel].radius * wide;
  int64_t room = 0;
  for (int64_t i = 0; i < out; i++) {
    span it = find_span(radius, inverse, shift, i, in);
    room += it.end > it.first ? it.end - it.first : 0;
  }
  tn_status st = tn__resize_taps_create(taps, in, out, room, err);
  if (st != TN_OK) return st;
  for (int64_t i = 0; i < out; i++) {
    tn__resize_taps_line(taps, i);
    span it = find_span(radius, inverse, shift, i, in);
    if (it.end > it.first) add_span(taps, i, it, s->kernel, 1 / wide);
  }
  return TN_OK;
}
