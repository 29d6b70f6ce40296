/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizedAvgPool and QuantizedMaxPool: windows over images of quantised values. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/window/window.h>
#include <ops/quantized/levels.h>

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  tn__window w;
  *state = NULL;
  tn_status st = tn__window_read(op, &w, err);
  if (st != TN_OK) return st;
  if (w.batch_size != 1 || w.batch_stride != 1 || w.depth_size != 1 || w.depth_stride != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: ksize and strides of batch and channels must be 1",
                        tn_operation_type(op));
  return tn__keep_state(&w, sizeof w, tn_operation_type(op), state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(tn__window)); }

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__window w;
  tn__shape s;
  tn_status st = tn__window_read(tn_infer_operation(ctx), &w, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 0, 4, &s, err);
  if (st != TN_OK) return st;
  for (int i = 0; i < 2; i++) s.dims[1 + i] = tn__window_fit_unknown(&w.axis[i], w.padding, s.dims[1 + i]);
  st = tn__infer_set(ctx, 0, &s, err);
  return st == TN_OK ? tn__infer_scalars(ctx, 1, 3, err) : st;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int64_t dims[4];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_scalars(ctx, 1, 2, err);
  if (st != TN_OK) return st;
  tn__window *w = tn__alloc(sizeof *w);
  if (w == NULL) return tn__no_memory(err, "plan of pooling", sizeof *w);
  *w = *(const tn__window *)ctx->state;
  ctx->shape_state = w;
  dims[0] = in->dims[0];
  dims[3] = in->dims[3];
  for (int i = 0; i < 2 && st == TN_OK; i++)
    st = tn__window_fit(&w->axis[i], w->padding, tn_operation_type(ctx->op), in->dims[1 + i], &dims[1 + i], err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, 4, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

typedef struct run {
  const tn__window *w;
  const tn_view *in, *out;
  bool average;
} run;

/* The part of an axis that window `at` covers. */
static void covered(const tn__window_axis *a, int64_t at, int64_t length, int64_t *begin, int64_t *end)
{
  int64_t first = at * a->stride - a->before, last = first + a->size;
  *begin = first < 0 ? 0 : first;
  *end = last > length ? length : last;
}

/* One window, for n channels from `channel` on. Averages are rounded towards zero. */
static void pool(const run *r, int64_t pixel, int64_t channel, int64_t n, int32_t *q)
{
  const int64_t *in = r->in->dims, *out = r->out->dims;
  int64_t x = pixel % out[2], y = pixel / out[2] % out[1], image = pixel / out[2] / out[1];
  int64_t top, bottom, left, right;
  int32_t some[TN__LEVELS_BLOCK], low = (int32_t)tn__levels_lowest(r->in->dtype);
  covered(&r->w->axis[0], y, in[1], &top, &bottom);
  covered(&r->w->axis[1], x, in[2], &left, &right);
  for (int64_t c = 0; c < n; c++) q[c] = r->average ? 0 : low;
  for (int64_t i = top; i < bottom; i++)
    for (int64_t k = left; k < right; k++) {
      tn__levels_load(r->in->dtype, r->in->data, ((image * in[1] + i) * in[2] + k) * in[3] + channel, n, some);
      if (r->average)
        for (int64_t c = 0; c < n; c++) q[c] = (int32_t)((uint32_t)q[c] + (uint32_t)some[c]);
      else
        for (int64_t c = 0; c < n; c++) q[c] = some[c] > q[c] ? some[c] : q[c];
    }
  int64_t count = (bottom - top) * (right - left);
  if (r->average && count > 0 && count <= INT32_MAX)
    for (int64_t c = 0; c < n; c++) q[c] /= (int32_t)count;
}

static void pool_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  int64_t channels = r->out->dims[3];
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t pixel = begin; pixel < end; pixel++)
    for (int64_t c = 0, n; c < channels; c += n) {
      n = channels - c < TN__LEVELS_BLOCK ? channels - c : TN__LEVELS_BLOCK;
      pool(r, pixel, c, n, q);
      tn__levels_store(r->out->dtype, r->out->data, pixel * channels + c, n, q);
    }
}

static tn_status compute(tn_kernel_ctx *ctx, bool average)
{
  const tn__window *w = ctx->shape_state;
  const tn_view *out = ctx->outputs[0];
  run r = { w, ctx->inputs[0], out, average };
  if (out->count > 0) {
    double cost = 5 + 0.3 * (double)out->dims[3] * (double)w->axis[0].size * (double)w->axis[1].size;
    tn_parallel_for(ctx, out->count / out->dims[3], (int64_t)(20000 / cost) + 1, cost, pool_part, &r);
  }
  tn__set_range(ctx, tn__float_at(ctx->inputs[1]), tn__float_at(ctx->inputs[2]));
  return TN_OK;
}

static tn_status average_compute(tn_kernel_ctx *ctx) { return compute(ctx, true); }
static tn_status max_compute(tn_kernel_ctx *ctx) { return compute(ctx, false); }

#define OP(name_, text)                                                                                  \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = "input: T, min_input: float, max_input: float", \
    .outputs = "output: T, min_output: float, max_output: float",                                        \
    .attrs = "T: " TN__QUANTIZED "; ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}",   \
    .infer = infer, .summary = text }
static const tn_op_def ops[] = {
  OP("QuantizedAvgPool", "averages of windows over images of quantised values"),
  OP("QuantizedMaxPool", "maxima of windows over images of quantised values"),
};

#define KERNEL(op_, title, compute_fn)                                                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = "T=quint8|qint8", .name = title, \
    .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare,                            \
    .destroy_shape_state = destroy, .compute = compute_fn }
static const tn_kernel_def kernels[] = {
  KERNEL("QuantizedAvgPool", "quantized_avg_pool_cpu", average_compute),
  KERNEL("QuantizedMaxPool", "quantized_max_pool_cpu", max_compute),
};

TN_OP_FAMILY(quantized_pool)
