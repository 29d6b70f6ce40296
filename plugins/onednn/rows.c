/* SPDX-License-Identifier: Apache-2.0 */
/* Float ops along the last dimension: Softmax, LRN. */
#include "onednn.h"

/* ---- Softmax ---- */

/* Makes a plan of one input and one output of the same shape. */
static tn_status plan_alike(tn_prepare_ctx *ctx, const_dnnl_op_desc_t desc, const dnnl_memory_desc_t *layout, double ns,
                            tn_error *err)
{
  dnn_plan *p;
  if (dnn_too_long(ns * (double)ctx->inputs[0].count, 1)) return dnn_declined(err, "rows that no time limit would end");
  tn_status st = dnn_plan_create(ctx, desc, &(dnn_setup){ NULL, NULL, NULL }, &p, err);
  if (st != TN_OK) return st;
  dnn_plan_input(p, DNNL_ARG_SRC, 0, layout, NULL);
  dnn_plan_output(p, DNNL_ARG_DST, layout, NULL);
  ctx->cost_ns = ns * (double)ctx->inputs[0].count;
  st = dnn_plan_end(p, ctx, err);
  return st != TN_OK ? st : tn_prepare_output_like(ctx, 0, 0, err);
}

/* Limits of a row's length: shorter ones do not fill a vector, and the library's own loop is faster for longer ones. */
#define MIN_ROW 16
#define MAX_ROW 128
#define SMALL_SOFTMAX 2000 /* elements */

tn_status dnn_softmax_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  if (in->rank < 1 || !dnn_fits(in)) return dnn_declined(err, "no rows");
  int64_t n = in->dims[in->rank - 1];
  if (in->count < SMALL_SOFTMAX || n < MIN_ROW || n > MAX_ROW) return dnn_declined(err, "rows of this size");
  const int64_t dims[] = { in->count / n, n }, strides[] = { n, 1 };
  dnnl_memory_desc_t layout = dnn_strided(dims, strides, 2, dnnl_f32);
  dnnl_softmax_v2_desc_t desc;
  tn_status st = dnn_status(dnnl_softmax_v2_forward_desc_init(&desc, dnnl_forward_inference, dnnl_softmax_accurate,
                                                              &layout, &layout, 1), "softmax", err);
  if (st == TN_OK) st = plan_alike(ctx, &desc, &layout, 0.5, err);
  return st == TN_OK ? tn_prepare_in_place(ctx, 0, 0, err) : st;
}

/* ---- LRN ---- */

typedef struct lrn_state {
  float bias, alpha, beta;
  int64_t window;
} lrn_state;

tn_status dnn_lrn_create(const tn_operation *op, void **state, tn_error *err)
{
  lrn_state s;
  int64_t radius;
  *state = NULL;
  if (tn_operation_attr_int(op, "depth_radius", &radius, NULL) != TN_OK || radius < 0 || radius > DNN_MOST / 2 ||
      tn_operation_attr_float(op, "bias", &s.bias, NULL) != TN_OK ||
      tn_operation_attr_float(op, "alpha", &s.alpha, NULL) != TN_OK ||
      tn_operation_attr_float(op, "beta", &s.beta, NULL) != TN_OK)
    return dnn_declined(err, "attributes that the library's own kernel judges");
  s.window = 2 * radius + 1;
  s.alpha *= (float)s.window; /* oneDNN takes the mean of the squares, TensorFlow their sum */
  lrn_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for LRN");
  *p = s;
  *state = p;
  return TN_OK;
}

tn_status dnn_lrn_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  const lrn_state *s = ctx->state;
  if (in->rank != 4 || !dnn_fits(in)) return dnn_declined(err, "no images");
  dnnl_memory_desc_t layout = dnn_channels_last(in->dims, 4, dnnl_f32);
  dnnl_lrn_desc_t desc;
  tn_status st = dnn_status(dnnl_lrn_forward_desc_init(&desc, dnnl_forward_inference, dnnl_lrn_across_channels, &layout,
                                                       s->window, s->alpha, s->beta, s->bias), "LRN", err);
  return st == TN_OK ? plan_alike(ctx, &desc, &layout, 1 + 0.05 * (double)s->window, err) : st;
}
