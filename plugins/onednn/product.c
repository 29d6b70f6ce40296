/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul of float, alone and with what follows it. */
#include "onednn.h"

#include <string.h>

typedef struct product_state {
  dnn_epilogue epilogue;
  bool across_a, across_b;
} product_state;

static tn_status declined(tn_error *err, const char *why) { return tn_error_set(err, TN_UNIMPLEMENTED, "oneDNN: %s", why); }

static tn_status product_create(const tn_operation *op, void **state, tn_error *err)
{
  product_state s = { .across_a = false };
  tn_bool a = 0, b = 0;
  *state = NULL;
  (void)tn_operation_attr_bool(op, "transpose_a", &a, NULL);
  (void)tn_operation_attr_bool(op, "transpose_b", &b, NULL);
  tn_status st = dnn_epilogue_read(op, &s.epilogue, err);
  if (st != TN_OK) return st;
  product_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a product");
  s.across_a = a != 0;
  s.across_b = b != 0;
  *p = s;
  *state = p;
  return TN_OK;
}

static dnnl_memory_desc_t matrix(int64_t rows, int64_t columns, bool across)
{
  const int64_t dims[] = { rows, columns }, strides[] = { across ? 1 : columns, across ? rows : 1 };
  return dnn_strided(dims, strides, 2, dnnl_f32);
}

#define SMALL 4096 /* products that the library's own loop does before oneDNN has looked at its arguments */

static tn_status product_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const product_state *s = ctx->state;
  const tn_view *a = &ctx->inputs[0], *b = &ctx->inputs[1];
  if (a->rank != 2 || b->rank != 2 || a->count == 0 || b->count == 0) return declined(err, "no matrices");
  int64_t m = a->dims[s->across_a], k = a->dims[!s->across_a], n = b->dims[!s->across_b];
  if (b->dims[s->across_b] != k) return declined(err, "matrices that do not fit");
  const int64_t out[] = { m, n }, wide[] = { 1, n }, one[] = { n, 1 }, weights[] = { k, n };
  if (!dnn_epilogue_fits(&s->epilogue, ctx, 2, out, 2)) return declined(err, "fused tensors of other shapes");
  double products = (double)m * (double)n * (double)k;
  if (products < SMALL) return declined(err, "a product this small");
  dnnl_memory_desc_t source = matrix(m, k, s->across_a), plain = matrix(k, n, s->across_b), target = matrix(m, n, false);
  dnnl_memory_desc_t bias = dnn_strided(wide, one, 2, dnnl_f32), any = dnn_any(weights, 2, dnnl_f32);
  bool constant = b->data != NULL;
  dnnl_matmul_desc_t desc;
  tn_status st = dnn_status(dnnl_matmul_desc_init(&desc, &source, constant ? &any : &plain,
                                                  dnn_has_bias(&s->epilogue) ? &bias : NULL, &target), "product", err);
  dnn_plan *p = NULL;
  const dnn_setup setup = { &s->epilogue, &target };
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &setup, &p, err);
  if (st != TN_OK) return st;
  ctx->shape_state = p;
  dnn_plan_input(p, DNNL_ARG_SRC, 0, &source);
  dnn_plan_output(p, DNNL_ARG_DST, 0, &target);
  dnn_plan_epilogue(p, &s->epilogue, 2, &bias, &target);
  st = dnn_plan_weights(p, ctx, DNNL_ARG_WEIGHTS, 1, &plain, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out, 2, err);
  ctx->cost_ns = products * 0.02;
  return st;
}

#define KERNEL(type, text)                                                                                        \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = type, .device = "CPU", .types = "T=float", .name = text,             \
    .rank = DNN_RANK, .create = product_create, .destroy = tn_free, .prepare = product_prepare,                   \
    .destroy_shape_state = dnn_plan_free, .compute = dnn_compute }

const tn_kernel_def dnn_product_kernels[] = {
  KERNEL("MatMul", "matmul_onednn"),
  KERNEL("_TnMatMul", "fused_matmul_onednn"),
};
const size_t dnn_n_product_kernels = sizeof dnn_product_kernels / sizeof *dnn_product_kernels;
