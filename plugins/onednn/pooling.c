/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of float, channels last: the largest element or the mean of each window over images and volumes. */
#include "onednn.h"

#include <string.h>

typedef struct pool_state {
  dnn_window window;
  bool mean;
} pool_state;

tn_status dnn_pool_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *type = tn_operation_type(op);
  pool_state s = { .mean = type[0] == 'A' };
  *state = NULL;
  if (!dnn_window_read(op, strstr(type, "3D") != NULL ? 3 : 2, true, &s.window))
    return dnn_declined(err, "attributes that the library's own kernel judges");
  pool_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for pooling");
  *p = s;
  *state = p;
  return TN_OK;
}

/* Every window must hold an element of the image: what is said of others the library's own kernel knows. */
static bool measure(const tn_view *in, dnn_window *w, int64_t *out)
{
  const int n = w->axes + 2;
  if (in->rank != n || !dnn_fits(in)) return false;
  out[0] = in->dims[0];
  out[n - 1] = in->dims[n - 1];
  if (!dnn_window_fit(w, in->dims + 1, out + 1)) return false;
  for (int a = 0; a < w->axes; a++)
    if (w->before[a] >= w->size[a] || w->after[a] >= w->size[a]) return false;
  return dnn_dims_fit(out, n);
}

#define SMALL 2000 /* elements that are looked at, below which the library's own loops are as fast */

tn_status dnn_pool_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const pool_state *s = ctx->state;
  dnn_window w = s->window;
  int64_t out[5];
  if (!measure(&ctx->inputs[0], &w, out)) return dnn_declined(err, "shapes that the library's own kernel judges");
  double seen = 1;
  for (int i = 0; i < w.axes + 2; i++) seen *= (double)out[i];
  for (int a = 0; a < w.axes; a++) seen *= (double)w.size[a];
  if (seen < SMALL) return dnn_declined(err, "pooling this small");
  dnnl_memory_desc_t source = dnn_channels_last(ctx->inputs[0].dims, w.axes + 2, dnnl_f32);
  dnnl_memory_desc_t target = dnn_channels_last(out, w.axes + 2, dnnl_f32);
  dnnl_alg_kind_t kind = s->mean ? dnnl_pooling_avg_exclude_padding : dnnl_pooling_max;
  dnnl_pooling_desc_t desc;
  tn_status st = dnn_status(dnnl_pooling_forward_desc_init(&desc, dnnl_forward_inference, kind, &source, &target,
                                                           w.stride, w.size, w.before, w.after), "pooling", err);
  dnn_plan *p = NULL;
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &(dnn_setup){ NULL, NULL }, &p, err);
  if (st != TN_OK) return st;
  ctx->shape_state = p;
  dnn_plan_input(p, DNNL_ARG_SRC, 0, &source);
  dnn_plan_output(p, DNNL_ARG_DST, 0, &target);
  ctx->cost_ns = seen * 0.05;
  return tn_prepare_output(ctx, 0, out, w.axes + 2, err);
}
