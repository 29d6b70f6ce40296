/* SPDX-License-Identifier: Apache-2.0 */
/* ResizeBilinear and ResizeNearestNeighbor. Places are worked out here, when shapes are known, with the numbers of
 * the CPU's. */
#include "ops/image/resize.h"

#include <math.h>

typedef struct place { /* of resize.cl */
  cl_int lower, upper;
  cl_float lerp;
} place;

gpu_resize_mode gpu_resize_mode_of(const gpu_node *n)
{
  return (gpu_resize_mode){ gpu_attr_bool(n, "align_corners", false), gpu_attr_bool(n, "half_pixel_centers", false) };
}

float gpu_resize_scale(gpu_resize_mode m, int64_t in, int64_t out)
{
  return m.corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

static place between(gpu_resize_mode m, float scale, int64_t i, int64_t in)
{
  const float at = m.half_pixels ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale, below = floorf(at);
  int64_t upper = (int64_t)ceilf(at), lower = below > 0 ? (int64_t)below : 0;
  if (upper > in - 1) upper = in - 1;
  if (lower > upper) lower = upper;
  return (place){ (cl_int)lower, (cl_int)upper, at - below };
}

static place nearest(gpu_resize_mode m, float scale, int64_t i, int64_t in)
{
  const float at = (m.half_pixels ? (float)i + 0.5f : (float)i) * scale;
  int64_t found = (int64_t)(m.corners ? roundf(at) : floorf(at));
  if (found > in - 1) found = in - 1;
  return (place){ (cl_int)found, (cl_int)found, 0 };
}

typedef place (*find_fn)(gpu_resize_mode m, float scale, int64_t i, int64_t in);

static tn_status make_places(gpu_node *n, gpu_resize_mode m, find_fn find, uint32_t *table, tn_error *err)
{
  const int64_t *in = n->inputs[0].dims, *out = n->outputs[0].dims;
  const size_t rows = (size_t)out[1], columns = (size_t)out[2], bytes = (rows + columns) * sizeof(place);
  place *p = tn_alloc(bytes == 0 ? 1 : bytes);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for places of images: %zu bytes", bytes);
  const float down = gpu_resize_scale(m, in[1], out[1]), along = gpu_resize_scale(m, in[2], out[2]);
  for (size_t i = 0; i < rows; i++) p[i] = find(m, down, (int64_t)i, in[1]);
  for (size_t i = 0; i < columns; i++) p[rows + i] = find(m, along, (int64_t)i, in[2]);
  *table = gpu_table(n, p, bytes);
  tn_free(p);
  return TN_OK;
}

tn_status gpu_resize_check(const gpu_node *n, gpu_resize_mode m, tn_error *err)
{
  const gpu_value *in = &n->inputs[0], *out = &n->outputs[0];
  if (m.corners && m.half_pixels) return gpu_decline(err, "align_corners and half_pixel_centers at once");
  if (in->rank != 4 || out->rank != 4) return gpu_decline(err, "shapes that are no images");
  for (int i = 1; i < 4; i++)
    if (in->dims[i] < 1 || in->dims[i] > INT32_MAX / 2 || out->dims[i] > INT32_MAX / 2)
      return gpu_decline(err, "images without pixels, or with more than 2^30 in a line");
  return TN_OK;
}

static tn_status plan(gpu_node *n, const char *kernel, const char *define, tn_dtype as, find_fn find, tn_error *err)
{
  const gpu_resize_mode m = gpu_resize_mode_of(n);
  const int64_t *in = n->inputs[0].dims, *out = n->outputs[0].dims, count = n->outputs[0].count;
  uint32_t table = 0;
  tn_status st = gpu_resize_check(n, m, err);
  if (st == TN_OK && count == 0) return gpu_node_done(n, err);
  if (st == TN_OK) st = make_places(n, m, find, &table, err);
  if (st != TN_OK) return st;
  gpu_launch *l = gpu_launch_file(n, "resize", kernel);
  gpu_define(l, define, "1");
  gpu_define_elements(l, "", as);
  gpu_define_places(l, count);
  gpu_arg_input(l, 0);
  gpu_arg_packed(l, table);
  gpu_arg_output(l, 0);
  for (int i = 1; i < 4; i++) gpu_arg_int(l, in[i]);
  for (int i = 1; i < 3; i++) gpu_arg_int(l, out[i]);
  gpu_arg_place(l, count, count);
  gpu_range_1d(l, count, 64);
  return gpu_node_done(n, err);
}

static tn_status plan_bilinear(gpu_node *n, tn_error *err)
{
  return plan(n, "bilinear", "BILINEAR", n->inputs[0].dtype, between, err);
}

static tn_status plan_nearest(gpu_node *n, tn_error *err)
{
  return plan(n, "nearest", "NEAREST", gpu_moved_as(n->inputs[0].dtype), nearest, err);
}

#define NUMBERS "T=int8|uint8|int16|uint16|int32|int64|half|float|double|bfloat16"
const gpu_op gpu_resize_ops[] = {
  { "ResizeBilinear", NUMBERS, plan_bilinear, 0, false },
  { "ResizeNearestNeighbor", NUMBERS, plan_nearest, 0, false },
  { NULL, NULL, NULL, 0, false },
};
