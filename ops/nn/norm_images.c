/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/nn/norm_images.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/kernel/elements/widen.h>

tn_status tn__norm_read(const tn_operation *op, tn__norm_state *s, tn_error *err)
{
  static const char *const formats[] = { "NHWC", "NCHW", "NDHWC", "NCDHW" };
  int format = 0;
  tn_status st = tn__attr_choice(op, "data_format", formats, 4, &format, err);
  const char *type = tn_operation_type(op);
  size_t length = __builtin_strlen(type);
  s->rank = format < 2 ? 4 : 5;
  s->axis = format % 2 == 1 ? 1 : s->rank - 1;
  s->epsilon = tn__attr_float(op, "epsilon", 0.0001f);
  s->factor = tn__attr_float(op, "exponential_avg_factor", 1);
  s->training = tn__attr_bool(op, "is_training", true);
  s->third = type[length - 1] == '3';
  s->dtype = tn_operation_input_dtype(op, 0);
  return st;
}

tn_status tn__norm_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn__norm_state s;
  tn_status st = tn__norm_read(op, &s, err);
  if (st != TN_OK) return st;
  return tn__keep_state(&s, sizeof s, "batch normalisation", state, err);
}

void tn__norm_destroy(void *state) { tn__free(state, sizeof(tn__norm_state)); }
void tn__norm_destroy_plan(void *plan) { tn__free(plan, sizeof(tn__norm_plan)); }

static size_t bytes_of_room(const tn__norm_plan *p)
{
  return (size_t)p->channels.c * (2 * sizeof(double) + 3 * sizeof(float)) + p->channels.scratch;
}

tn_status tn__norm_plan_create(tn_prepare_ctx *ctx, int images, tn_error *err)
{
  const tn__norm_state *s = ctx->state;
  const tn_view *x = &ctx->inputs[0];
  tn__norm_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "batch normalisation", sizeof *p);
  ctx->shape_state = p;
  tn__channels_plan(&p->channels, x->dims, x->rank, s->axis, x->count);
  p->count = x->count;
  size_t scratch = 0;
  tn__take(&scratch, bytes_of_room(p));
  for (int k = 0; k < images && s->dtype != TN_FLOAT; k++)
    p->at_images[k] = tn__take(&scratch, (size_t)x->count * sizeof(float));
  ctx->scratch_bytes = scratch;
  ctx->cost_ns = 50 + (s->training ? 1.0 : 0.3) * images * (double)x->count;
  return TN_OK;
}

tn__norm_room tn__norm_room_of(const tn__norm_plan *p, void *scratch)
{
  const int64_t c = p->channels.c;
  tn__norm_room r;
  r.sums = scratch;
  r.first = (double *)((char *)scratch + p->channels.scratch);
  r.second = r.first + c;
  r.scale = (float *)(r.second + c);
  r.shift = r.scale + c;
  r.by = r.shift + c;
  return r;
}

const float *tn__norm_load(tn_kernel_ctx *ctx, const tn__norm_plan *p, int k, const void *data)
{
  const tn__norm_state *s = ctx->state;
  if (s->dtype == TN_FLOAT) return data;
  float *to = (float *)((char *)ctx->scratch + p->at_images[k]);
  tn__widen_all(ctx, s->dtype, data, TN_FLOAT, to, p->count);
  return to;
}

float *tn__norm_result(tn_kernel_ctx *ctx, const tn__norm_plan *p, int k)
{
  const tn__norm_state *s = ctx->state;
  return s->dtype == TN_FLOAT ? ctx->outputs[0]->data : (float *)((char *)ctx->scratch + p->at_images[k]);
}

void tn__norm_store(tn_kernel_ctx *ctx, const tn__norm_plan *p, const float *result)
{
  const tn__norm_state *s = ctx->state;
  if (s->dtype != TN_FLOAT) tn__narrow_all(ctx, s->dtype, result, ctx->outputs[0]->data, p->count);
}
