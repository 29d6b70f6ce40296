/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <math.h>
#include <ops/kernel/operands.h>
#include <ops/image/resize.h>
#include <string.h>

/* ---- attributes, sizes, shapes ---- */

tn_status tn__resize_mode_read(const tn_operation *op, bool both, tn__resize_mode *mode, tn_error *err)
{
  mode->align_corners = tn__attr_bool(op, "align_corners", false);
  mode->half_pixel_centers = tn__attr_bool(op, "half_pixel_centers", false);
  if (both || !mode->align_corners || !mode->half_pixel_centers) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: align_corners and half_pixel_centers are both set, wanted one at most",
                      tn_operation_type(op));
}

float tn__resize_scale(tn__resize_mode mode, int64_t in, int64_t out)
{
  return mode.align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

int64_t tn__resize_nearest(tn__resize_mode mode, float scale, int64_t i, int64_t in)
{
  float at = (mode.half_pixel_centers ? (float)i + 0.5f : (float)i) * scale;
  int64_t place = (int64_t)(mode.align_corners ? roundf(at) : floorf(at));
  return place < in ? place : in - 1;
}

tn_status tn__want_images(const tn_prepare_ctx *ctx, uint32_t i, bool channels, tn_error *err)
{
  const tn_view *in = &ctx->inputs[i];
  tn_status st = tn__want_rank(ctx, i, 4, err);
  if (st != TN_OK) return st;
  bool fits = in->dims[1] > 0 && in->dims[2] > 0 && (!channels || in->dims[3] > 0);
  for (int k = 0; k < 4; k++) fits = fits && in->dims[k] <= INT32_MAX;
  if (fits) return TN_OK;
  char shape[100];
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: input %u has shape %s, wanted rows, columns%s, and below 2^31 of each",
                      tn_operation_type(ctx->op), i, tn__format_shape(shape, sizeof shape, in->dims, in->rank),
                      channels ? " and channels" : "");
}

tn_status tn__want_image_size(const tn_prepare_ctx *ctx, uint32_t i, int64_t size[2], tn_error *err)
{
  tn_status st = tn__want_vector(ctx, i, 2, err);
  if (st != TN_OK) return st;
  for (int k = 0; k < 2; k++) size[k] = tn__operand_int(&ctx->inputs[i], k);
  if (size[0] > 0 && size[1] > 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the size of the images is %lld x %lld, wanted at least 1 x 1",
                      tn_operation_type(ctx->op), (long long)size[0], (long long)size[1]);
}

tn_status tn__prepare_resized(tn_prepare_ctx *ctx, const int64_t size[2], tn__resize_sizes *out, tn_error *err)
{
  const int64_t *in = ctx->inputs[0].dims, dims[] = { in[0], size[0], size[1], in[3] };
  *out = (tn__resize_sizes){ .h = in[1], .w = in[2], .c = in[3], .oh = size[0], .ow = size[1] };
  tn_status st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st == TN_OK) st = tn_shape_elements(dims, 4, &out->elements, err);
  out->lines = st == TN_OK && out->elements > 0 ? dims[0] * dims[1] : 0;
  return st;
}

/* Reads the shape of images; the kernel reports a wrong one. */
static void images_of(const tn_infer_ctx *ctx, size_t i, tn__shape *s)
{
  tn__infer_get(ctx, i, s);
  if (s->rank == 4) return;
  s->rank = 4;
  for (int k = 0; k < 4; k++) s->dims[k] = -1;
}

tn_status tn__infer_resized(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  const int64_t *size;
  images_of(ctx, 0, &s);
  bool known = tn_infer_input_ints(ctx, 1, &size) == 2;
  for (int k = 0; k < 2; k++) s.dims[k + 1] = known && size[k] > 0 ? size[k] : -1;
  return tn__infer_set(ctx, 0, &s, err);
}

tn_status tn__infer_resized_like(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, like;
  images_of(ctx, 0, &s);
  images_of(ctx, 1, &like);
  for (int k = 1; k < 3; k++) s.dims[k] = like.dims[k];
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- lines as weighted sums ---- */

tn_status tn__resize_taps_create(tn__resize_taps *taps, int64_t n_in, int64_t n_out, int64_t room, tn_error *err)
{
  size_t firsts = 0, all = 0;
  *taps = (tn__resize_taps){ .n_in = n_in, .n_out = n_out, .room = room };
  if (!tn__size_mul((size_t)n_out + 1, sizeof(int64_t), &firsts) ||
      !tn__size_mul((size_t)room, sizeof(int32_t) + sizeof(float), &all) || !tn__size_add(all, firsts, &all))
    return tn__no_memory(err, "weights of rows", SIZE_MAX);
  taps->firsts = tn__zalloc(all);
  if (taps->firsts == NULL) return tn__no_memory(err, "weights of rows", all);
  taps->bytes = all;
  taps->indices = (int32_t *)(taps->firsts + n_out + 1);
  taps->weights = (float *)(taps->indices + room);
  return TN_OK;
}

void tn__resize_taps_fini(tn__resize_taps *taps)
{
  tn__free(taps->firsts, taps->bytes);
  *taps = (tn__resize_taps){ 0 };
}

/* Sets `same` if each line is a single tap of weight 1 at its own index. */
static void note_same(tn__resize_taps *taps)
{
  taps->same = taps->n_in == taps->n_out;
  for (int64_t i = 0; i < taps->n_out && taps->same; i++) {
    int64_t k = taps->firsts[i];
    taps->same = taps->firsts[i + 1] == k + 1 && taps->indices[k] == i && taps->weights[k] == 1;
  }
}

tn_status tn__resize_taps_transpose(const tn__resize_taps *taps, tn__resize_taps *out, tn_error *err)
{
  int64_t n = taps->firsts[taps->n_out];
  tn_status st = tn__resize_taps_create(out, taps->n_out, taps->n_in, n, err);
  if (st != TN_OK) return st;
  /* During filling firsts[i + 1] is the position of the next tap of line i. At the end that is the
   * end of line i. */
  int64_t *next = out->firsts + 1;
  for (int64_t k = 0; k < n; k++)
    if (taps->indices[k] + 1 < out->n_out) next[taps->indices[k] + 1]++;
  for (int64_t i = 1; i < out->n_out; i++) next[i] += next[i - 1];
  for (int64_t i = 0; i < taps->n_out; i++)
    for (int64_t k = taps->firsts[i]; k < taps->firsts[i + 1]; k++) {
      int64_t at = next[taps->indices[k]]++;
      out->indices[at] = (int32_t)i;
      out->weights[at] = taps->weights[k];
    }
  note_same(out);
  return TN_OK;
}

tn_status tn__resize_taps_bilinear(tn__resize_taps *taps, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err)
{
  tn__lerp l;
  tn_status st = tn__lerp_create(&l, mode, in, out, err);
  if (st != TN_OK) return st;
  st = tn__resize_taps_create(taps, in, out, 2 * out, err);
  for (int64_t i = 0; i < out && st == TN_OK; i++) {
    tn__resize_taps_line(taps, i);
    if (l.upper[i] == l.lower[i]) {
      tn__resize_taps_add(taps, i, l.lower[i], 1);
      continue;
    }
    tn__resize_taps_add(taps, i, l.lower[i], 1 - l.lerp[i]);
    tn__resize_taps_add(taps, i, l.upper[i], l.lerp[i]);
  }
  tn__lerp_destroy(&l);
  if (st == TN_OK) note_same(taps);
  return st;
}

/* ---- cubic convolution ---- */

/* Weights of the pixels at distances 1 + t, t, 1 - t and 2 - t, where t is rounded to a multiple of
 * 1/1024. */
static void cubic_weights(float delta, double a, float weights[4])
{
  long step = lrintf(delta * 1024);
  for (int k = 0; k < 2; k++) {
    float x = (float)(k == 0 ? step : 1024 - step) / 1024;
    float y = x + 1;
    weights[k == 0 ? 1 : 2] = (float)(((a + 2) * x - (a + 3)) * x * x + 1);
    weights[k == 0 ? 0 : 3] = (float)(((a * y - 5 * a) * y + 8 * a) * y - 4 * a);
  }
}

/* With half_pixel_centers, pixels beyond the edge are ignored; otherwise the edge pixel is repeated. */
static void cubic_line(tn__resize_taps *taps, bool keys, int64_t i, float place)
{
  float weights[4], sum = 0;
  int64_t first = (int64_t)floorf(place), at[4];
  cubic_weights(place - (float)first, keys ? -0.5 : -0.75, weights);
  for (int k = 0; k < 4; k++) {
    int64_t index = first - 1 + k;
    at[k] = index < taps->n_in ? index : taps->n_in - 1;
    if (index < 0) at[k] = 0;
    if (keys && at[k] != index) weights[k] = 0;
    sum += weights[k];
  }
  float scale = keys && fabsf(sum) >= 1000 * 0x1p-126f ? 1 / sum : 1;
  tn__resize_taps_line(taps, i);
  for (int k = 0; k < 4; k++)
    if (weights[k] != 0) tn__resize_taps_add(taps, i, at[k], weights[k] * scale);
}

tn_status tn__resize_taps_bicubic(tn__resize_taps *taps, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err)
{
  float scale = tn__resize_scale(mode, in, out);
  tn_status st = tn__resize_taps_create(taps, in, out, 4 * out, err);
  if (st != TN_OK) return st;
  for (int64_t i = 0; i < out; i++) cubic_line(taps, mode.half_pixel_centers, i, tn__resize_place(mode, scale, i));
  note_same(taps);
  return TN_OK;
}

/* ---- means of the covered area ---- */

tn_status tn__resize_taps_area(tn__resize_taps *taps, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err)
{
  float scale = in == 1 ? 1.0f / (float)out : tn__resize_scale(mode, in, out); /* never 0 */
  int64_t room = 0;
  for (int64_t i = 0; i < out; i++) room += (int64_t)ceilf((float)(i + 1) * scale) - (int64_t)floorf((float)i * scale);
  tn_status st = tn__resize_taps_create(taps, in, out, room, err);
  if (st != TN_OK) return st;
  for (int64_t i = 0; i < out; i++) {
    float begin = (float)i * scale, end = (float)(i + 1) * scale;
    tn__resize_taps_line(taps, i);
    for (int64_t k = (int64_t)floorf(begin); k < (int64_t)ceilf(end); k++) {
      float from = (float)k, to = (float)(k + 1), part = to > end ? end - from : 1;
      if (from < begin) part = to > end ? scale : to - begin;
      tn__resize_taps_add(taps, i, k < in ? k : in - 1, part / scale);
    }
  }
  note_same(taps);
  return TN_OK;
}

/* ---- bilinear lines ---- */

tn_status tn__lerp_create(tn__lerp *l, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err)
{
  const size_t each = 2 * sizeof(int32_t) + sizeof(float);
  float scale = tn__resize_scale(mode, in, out);
  *l = (tn__lerp){ .n = out, .same = in == out };
  l->lower = tn__alloc_array((size_t)out, each);
  if (l->lower == NULL) return tn__no_memory(err, "places of rows", (size_t)out * each);
  l->bytes = (size_t)out * each;
  l->upper = l->lower + out;
  l->lerp = (float *)(l->upper + out);
  for (int64_t i = 0; i < out; i++) {
    float place = tn__resize_place(mode, scale, i), below = floorf(place);
    int64_t upper = (int64_t)ceilf(place), lower = below > 0 ? (int64_t)below : 0;
    if (upper > in - 1) upper = in - 1;
    if (lower > upper) lower = upper;
    l->upper[i] = (int32_t)upper;
    l->lower[i] = (int32_t)lower;
    l->lerp[i] = place - below;
    l->same = l->same && lower == i && (upper == i || l->lerp[i] == 0);
    if (upper < in - 1) l->safe = i + 1;
  }
  return TN_OK;
}

void tn__lerp_destroy(tn__lerp *l)
{
  tn__free(l->lower, l->bytes);
  *l = (tn__lerp){ 0 };
}
