/* SPDX-License-Identifier: Apache-2.0 */
/* ResizeBicubic, ResizeArea, and the gradients of ResizeBicubic, ResizeBilinear and ResizeNearestNeighbor:
 * each pixel is a sum of others, by a weight for its row and one for its column. Which these are is worked
 * out here, when shapes are known, with the numbers of the CPU's. */
#include "ops/image/resize.h"

#include <math.h>
#include <string.h>

/* Line i is made of taps firsts[i] to firsts[i + 1]. */
typedef struct taps {
  int64_t n_in, n_out, n;
  cl_int *firsts, *indices; /* in one block, followed by the weights, as in the kernel */
  float *weights;
} taps;

static size_t bytes_of(int64_t lines, int64_t n) { return ((size_t)lines + 1 + 2 * (size_t)n) * sizeof(cl_int); }

static tn_status create(taps *t, int64_t in, int64_t out, int64_t n, tn_error *err)
{
  *t = (taps){ .n_in = in, .n_out = out, .n = n };
  if (out > INT32_MAX / 2 || n > INT32_MAX / 2) return gpu_decline(err, "%lld weights", (long long)n);
  t->firsts = tn_alloc(bytes_of(out, n));
  if (t->firsts == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for %lld weights", (long long)n);
  memset(t->firsts, 0, bytes_of(out, n));
  t->indices = t->firsts + out + 1;
  t->weights = (float *)(t->indices + n);
  return TN_OK;
}

static void add(taps *t, int64_t line, int64_t index, float weight)
{
  cl_int at = t->firsts[line + 1]++;
  t->indices[at] = (cl_int)index;
  t->weights[at] = weight;
}

static void begin_line(taps *t, int64_t line) { t->firsts[line + 1] = t->firsts[line]; }

/* ---- which pixels, and how much of them ---- */

typedef tn_status (*taps_fn)(taps *t, gpu_resize_mode m, int64_t in, int64_t out, tn_error *err);

static float place_of(gpu_resize_mode m, float scale, int64_t i)
{
  return m.half_pixels ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

/* Distances are multiples of 1/1024. */
static void cubic_weights(float delta, double a, float weights[4])
{
  long step = lrintf(delta * 1024);
  for (int k = 0; k < 2; k++) {
    float x = (float)(k == 0 ? step : 1024 - step) / 1024, y = x + 1;
    weights[k == 0 ? 1 : 2] = (float)(((a + 2) * x - (a + 3)) * x * x + 1);
    weights[k == 0 ? 0 : 3] = (float)(((a * y - 5 * a) * y + 8 * a) * y - 4 * a);
  }
}

/* With half_pixel_centers pixels beyond the edge do not count; else they are that at the edge. */
static void cubic_line(taps *t, bool keys, int64_t i, float place)
{
  float weights[4], sum = 0;
  int64_t first = (int64_t)floorf(place), at[4];
  cubic_weights(place - (float)first, keys ? -0.5 : -0.75, weights);
  for (int k = 0; k < 4; k++) {
    int64_t index = first - 1 + k;
    at[k] = index < t->n_in ? index : t->n_in - 1;
    if (index < 0) at[k] = 0;
    if (keys && at[k] != index) weights[k] = 0;
    sum += weights[k];
  }
  float scale = keys && fabsf(sum) >= 1000 * 0x1p-126f ? 1 / sum : 1;
  begin_line(t, i);
  for (int k = 0; k < 4; k++)
    if (weights[k] != 0) add(t, i, at[k], weights[k] * scale);
}

static tn_status cubic(taps *t, gpu_resize_mode m, int64_t in, int64_t out, tn_error *err)
{
  float scale = gpu_resize_scale(m, in, out);
  tn_status st = create(t, in, out, 4 * out, err);
  for (int64_t i = 0; st == TN_OK && i < out; i++) cubic_line(t, m.half_pixels, i, place_of(m, scale, i));
  return st;
}

static tn_status area(taps *t, gpu_resize_mode m, int64_t in, int64_t out, tn_error *err)
{
  float scale = in == 1 ? 1.0f / (float)out : gpu_resize_scale(m, in, out); /* never 0 */
  int64_t room = 0;
  for (int64_t i = 0; i < out; i++) room += (int64_t)ceilf((float)(i + 1) * scale) - (int64_t)floorf((float)i * scale);
  tn_status st = create(t, in, out, room, err);
  for (int64_t i = 0; st == TN_OK && i < out; i++) {
    float begin = (float)i * scale, end = (float)(i + 1) * scale;
    begin_line(t, i);
    for (int64_t k = (int64_t)floorf(begin); k < (int64_t)ceilf(end); k++) {
      float from = (float)k, to = (float)(k + 1), part = to > end ? end - from : 1;
      if (from < begin) part = to > end ? scale : to - begin;
      add(t, i, k < in ? k : in - 1, part / scale);
    }
  }
  return st;
}

static tn_status bilinear(taps *t, gpu_resize_mode m, int64_t in, int64_t out, tn_error *err)
{
  float scale = gpu_resize_scale(m, in, out);
  tn_status st = create(t, in, out, 2 * out, err);
  for (int64_t i = 0; st == TN_OK && i < out; i++) {
    float place = place_of(m, scale, i), below = floorf(place);
    int64_t upper = (int64_t)ceilf(place), lower = below > 0 ? (int64_t)below : 0;
    if (upper > in - 1) upper = in - 1;
    if (lower > upper) lower = upper;
    begin_line(t, i);
    if (upper == lower) {
      add(t, i, lower, 1);
      continue;
    }
    add(t, i, lower, 1 - (place - below));
    add(t, i, upper, place - below);
  }
  return st;
}

static tn_status nearest(taps *t, gpu_resize_mode m, int64_t in, int64_t out, tn_error *err)
{
  float scale = gpu_resize_scale(m, in, out);
  tn_status st = create(t, in, out, out, err);
  for (int64_t i = 0; st == TN_OK && i < out; i++) {
    float at = (m.half_pixels ? (float)i + 0.5f : (float)i) * scale;
    int64_t found = (int64_t)(m.corners ? roundf(at) : floorf(at));
    begin_line(t, i);
    add(t, i, found > in - 1 ? in - 1 : found, 1);
  }
  return st;
}

/* From the results back to the image. */
static tn_status turn_round(const taps *t, taps *out, tn_error *err)
{
  cl_int n = t->firsts[t->n_out];
  tn_status st = create(out, t->n_out, t->n_in, n, err);
  if (st != TN_OK) return st;
  cl_int *next = out->firsts + 1; /* where the next tap of a line is stored; ends with the line */
  for (cl_int k = 0; k < n; k++)
    if (t->indices[k] + 1 < out->n_out) next[t->indices[k] + 1]++;
  for (int64_t i = 1; i < out->n_out; i++) next[i] += next[i - 1];
  for (int64_t i = 0; i < t->n_out; i++)
    for (cl_int k = t->firsts[i]; k < t->firsts[i + 1]; k++) {
      cl_int at = next[t->indices[k]]++;
      out->indices[at] = (cl_int)i;
      out->weights[at] = t->weights[k];
    }
  return TN_OK;
}

static tn_status make_table(gpu_node *n, taps_fn fn, gpu_resize_mode m, bool gradient, int axis, uint32_t *table,
                            int64_t *taps_n, tn_error *err)
{
  int64_t in = n->inputs[0].dims[axis], out = n->outputs[0].dims[axis];
  taps forward = { 0 }, back = { 0 }, *t = gradient ? &back : &forward;
  tn_status st = gradient ? fn(&forward, m, out, in, err) : fn(&forward, m, in, out, err);
  if (st == TN_OK && gradient) st = turn_round(&forward, &back, err);
  if (st == TN_OK) *table = gpu_table(n, t->firsts, bytes_of(t->n_out, t->n));
  *taps_n = t->n;
  tn_free(forward.firsts);
  tn_free(back.firsts);
  return st;
}

static tn_status plan(gpu_node *n, taps_fn fn, bool gradient, tn_error *err)
{
  const gpu_resize_mode m = gpu_resize_mode_of(n);
  const int64_t *in = n->inputs[0].dims, *out = n->outputs[0].dims, count = n->outputs[0].count;
  int64_t places = count > n->inputs[0].count ? count : n->inputs[0].count, taps_n[2] = { 0 };
  uint32_t tables[2] = { 0 };
  tn_status st = gpu_resize_check(n, m, err);
  if (st == TN_OK && count == 0) return gpu_node_done(n, err);
  for (int k = 0; st == TN_OK && k < 2; k++) st = make_table(n, fn, m, gradient, k + 1, &tables[k], &taps_n[k], err);
  if (st != TN_OK) return st;
  gpu_launch *l = gpu_launch_file(n, "resize_taps", "resize_taps");
  gpu_define_elements(l, "_IN", n->inputs[0].dtype);
  gpu_define_elements(l, "_OUT", n->outputs[0].dtype);
  gpu_define_places(l, places);
  gpu_arg_input(l, 0);
  for (int k = 0; k < 2; k++) gpu_arg_packed(l, tables[k]);
  gpu_arg_output(l, 0);
  for (int k = 1; k < 4; k++) gpu_arg_int(l, in[k]);
  for (int k = 1; k < 3; k++) gpu_arg_int(l, out[k]);
  for (int k = 0; k < 2; k++) gpu_arg_int(l, taps_n[k]);
  gpu_arg_place(l, places, count);
  gpu_range_1d(l, count, 64);
  return gpu_node_done(n, err);
}

static tn_status plan_bicubic(gpu_node *n, tn_error *err) { return plan(n, cubic, false, err); }
static tn_status plan_area(gpu_node *n, tn_error *err) { return plan(n, area, false, err); }
static tn_status plan_bicubic_grad(gpu_node *n, tn_error *err) { return plan(n, cubic, true, err); }
static tn_status plan_bilinear_grad(gpu_node *n, tn_error *err) { return plan(n, bilinear, true, err); }
static tn_status plan_nearest_grad(gpu_node *n, tn_error *err) { return plan(n, nearest, true, err); }

#define NUMBERS "T=int8|uint8|int16|uint16|int32|int64|half|float|double|bfloat16"
extern const gpu_op gpu_resize_taps_ops[];
const gpu_op gpu_resize_taps_ops[] = {
  { "ResizeBicubic", NUMBERS, plan_bicubic },
  { "ResizeArea", NUMBERS, plan_area },
  { "ResizeBicubicGrad", "T=float|double", plan_bicubic_grad },
  { "ResizeNearestNeighborGrad", "T=half|float|bfloat16", plan_nearest_grad }, /* sums are floats */
  { "ResizeBilinearGrad", "T=half|float|double|bfloat16", plan_bilinear_grad },
  { NULL },
};
