/* SPDX-License-Identifier: Apache-2.0 */
/* fused_ops as post-ops: the bias is an argument of the primitive, the other steps follow in order. */
#include "onednn.h"

#include <math.h>
#include <string.h>

static const char *const names[] = { "BiasAdd", "Add", "Relu", "Relu6", "LeakyRelu", "Tanh", "Sigmoid",
                                     "_TnSwish", "_TnMish", "_TnHardSwish", "_TnGelu", "_TnGeluTanh" };

/* Whether oneDNN has the step with this factor. */
static bool has_step(size_t step, float alpha)
{
  switch (step) {
  case DNN_HARD_SWISH: return fabsf(alpha * 6 - 1) <= 2e-7f;
  case DNN_GELU: return fabsf(alpha - 0.70710678f) <= 2e-7f;
  case DNN_GELU_TANH: return fabsf(alpha - 0.79788456f) <= 2e-7f;
  default: return true;
  }
}

tn_status dnn_epilogue_read(const tn_operation *op, dnn_epilogue *out, tn_error *err)
{
  const char *text;
  size_t size, n = 0;
  *out = (dnn_epilogue){ .alpha = 0.2f };
  if (tn_operation_attr_kind(op, "fused_ops") == TN_ATTR_NONE) return TN_OK;
  (void)tn_operation_attr_float(op, "leakyrelu_alpha", &out->alpha, NULL);
  tn_status st = tn_operation_attr_string_at(op, "fused_ops", 0, &text, &size, &n, err);
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    st = tn_operation_attr_string_at(op, "fused_ops", i, &text, &size, NULL, err);
    size_t k = 0;
    while (st == TN_OK && k < sizeof names / sizeof *names &&
           (strlen(names[k]) != size || memcmp(names[k], text, size) != 0))
      k++;
    if (st == TN_OK && (k == sizeof names / sizeof *names || i == DNN_STEPS || (k == DNN_BIAS && i > 0) ||
                        !has_step(k, out->alpha)))
      st = tn_error_set(err, TN_UNIMPLEMENTED, "oneDNN kernels have no step '%.*s' at this place", (int)size, text);
    else if (st == TN_OK)
      out->steps[out->n++] = (uint8_t)k;
  }
  return st;
}

bool dnn_has_bias(const dnn_epilogue *e) { return e->n > 0 && e->steps[0] == DNN_BIAS; }

tn_status dnn_epilogue_append(const dnn_epilogue *e, const dnnl_memory_desc_t *added, dnnl_post_ops_t to, tn_error *err)
{
  dnnl_status_t st = dnnl_success;
  for (uint32_t i = 0; st == dnnl_success && i < e->n; i++) {
    switch (e->steps[i]) {
    case DNN_ADD: st = dnnl_post_ops_append_binary(to, dnnl_binary_add, added); break;
    case DNN_RELU: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_relu, 0, 0); break;
    case DNN_RELU6: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_clip, 0, 6); break;
    case DNN_LEAKY_RELU: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_relu, e->alpha, 0); break;
    case DNN_TANH: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_tanh, 0, 0); break;
    case DNN_SIGMOID: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_logistic, 0, 0); break;
    case DNN_SWISH: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_swish, e->alpha, 0); break;
    case DNN_MISH: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_mish, 0, 0); break;
    case DNN_HARD_SWISH: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_hardswish, 0, 0); break;
    case DNN_GELU: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_gelu_erf, 0, 0); break;
    case DNN_GELU_TANH: st = dnnl_post_ops_append_eltwise(to, 1, dnnl_eltwise_gelu_tanh, 0, 0); break;
    default: break;
    }
  }
  return dnn_status(st, "fused step", err);
}

bool dnn_epilogue_fits(const dnn_epilogue *e, const tn_prepare_ctx *ctx, uint32_t first, const int64_t *dims,
                       int32_t rank)
{
  uint32_t arg = first;
  for (uint32_t i = 0; i < e->n; i++) {
    if (e->steps[i] != DNN_BIAS && e->steps[i] != DNN_ADD) continue;
    if (arg >= ctx->n_inputs) return false;
    const tn_view *v = &ctx->inputs[arg++];
    int32_t skip = e->steps[i] == DNN_BIAS ? rank - 1 : 0;
    if (v->rank != rank - skip) return false;
    for (int32_t d = 0; d < v->rank; d++)
      if (v->dims[d] != dims[d + skip]) return false;
  }
  return true;
}
