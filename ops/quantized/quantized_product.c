/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizedMatMul and QuantizedConv2D: sums of products of bytes, less their zero points, in int32. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/bytes.h>
#include <ops/kernel/window/window.h>
#include <ops/quantized/levels.h>

/* What both have per shape: the product, and a copy of the second operand if it is constant. */
typedef struct plan {
  tn__bytes product;
  const void *packed; /* NULL: made in each step, in scratch */
  bool across_a;
  tn__window window;
} plan;

static void destroy_plan(void *p) { tn__free(p, sizeof(plan)); }

static tn_status pack_constant(void *user, const tn_view *from, void *to, tn_error *err)
{
  const tn__bytes *p = user;
  (void)err;
  tn__bytes_pack(p, from->data, 0, tn__bytes_panels(p), to);
  return TN_OK;
}

static tn_status keep_plan(tn_prepare_ctx *ctx, const plan *p, uint64_t key, tn_error *err)
{
  plan *kept = tn__alloc(sizeof *kept);
  if (kept == NULL) return tn__no_memory(err, "plan of a quantised product", sizeof *kept);
  *kept = *p;
  ctx->shape_state = kept;
  ctx->cost_ns = tn__bytes_cost(&p->product);
  size_t bytes = tn__bytes_packed(&p->product);
  if (bytes == 0 || !tn_prepare_is_constant(ctx, 1)) {
    ctx->scratch_bytes = bytes;
    return TN_OK;
  }
  return tn_prepare_pack(ctx, 1, key, bytes, pack_constant, &kept->product, &kept->packed, err);
}

/* Reads the four ends of the ranges and their zero points, and sets outputs 1 and 2. */
static void find_zeros(tn_kernel_ctx *ctx, int32_t *zero_a, int32_t *zero_b)
{
  tn_dtype a = ctx->inputs[0]->dtype, b = ctx->inputs[1]->dtype;
  float r[4], min, max;
  for (int i = 0; i < 4; i++) r[i] = tn__float_at(ctx->inputs[2 + i]);
  *zero_a = (int32_t)tn__value_unclamped(a, 0, r[0], r[1]);
  *zero_b = (int32_t)tn__value_unclamped(b, 0, r[2], r[3]);
  tn__product_range(a, r[0], r[1], b, r[2], r[3], ctx->outputs[0]->dtype, &min, &max);
  tn__set_range(ctx, min, max);
}

static const void *packed_of(tn_kernel_ctx *ctx, const plan *p)
{
  if (p->packed != NULL) return p->packed;
  tn__bytes_pack_parallel(&p->product, ctx, ctx->inputs[1]->data, ctx->scratch);
  return ctx->scratch;
}

static inline bool is_near(int32_t zero) { return zero >= -TN__BYTES_NEAR && zero <= TN__BYTES_NEAR; }

/* ---- QuantizedMatMul ---- */

static tn_status matmul_infer(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  bool ta = tn__attr_bool(op, "transpose_a", false), tb = tn__attr_bool(op, "transpose_b", false);
  tn__shape a, b, out = { .rank = 2 };
  tn_status st = tn__infer_rank(ctx, 0, 2, &a, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 2, &b, err);
  if (st != TN_OK) return st;
  int64_t inner = a.dims[!ta];
  if (!tn__dim_merge(&inner, b.dims[tb]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedMatMul: the inner dimensions are %lld and %lld",
                        (long long)inner, (long long)b.dims[tb]);
  out.dims[0] = a.dims[ta];
  out.dims[1] = b.dims[!tb];
  st = tn__infer_set(ctx, 0, &out, err);
  return st == TN_OK ? tn__infer_scalars(ctx, 1, 3, err) : st;
}

static tn_status matmul_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *a = &ctx->inputs[0], *b = &ctx->inputs[1];
  bool ta = tn__attr_bool(ctx->op, "transpose_a", false), tb = tn__attr_bool(ctx->op, "transpose_b", false);
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 2, err);
  if (st == TN_OK) st = tn__want_scalars(ctx, 2, 5, err);
  if (st != TN_OK) return st;
  plan p = { .product = { .m = a->dims[ta], .n = b->dims[!tb], .k = a->dims[!ta], .b_row = tb ? 1 : b->dims[1],
                          .b_col = tb ? b->dims[1] : 1, .b_signed = b->dtype == TN_QINT8, .factor = 1 },
             .across_a = ta };
  if (b->dims[tb] != p.product.k)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedMatMul: the inner dimensions are %lld and %lld",
                        (long long)p.product.k, (long long)b->dims[tb]);
  int64_t dims[2] = { p.product.m, p.product.n };
  st = tn_prepare_output(ctx, 0, dims, 2, err);
  if (st == TN_OK) st = tn__prepare_scalars(ctx, 1, err);
  return st == TN_OK ? keep_plan(ctx, &p, tb, err) : st;
}

/* Multiplies; a zero point that does not fit the product is subtracted by a second one, of ones. */
static void run_product(tn__bytes *product, tn_kernel_ctx *ctx, const void *packed, int32_t zero_a, bool *ones)
{
  tn__bytes_run(product, ctx, packed, ctx->outputs[0]->data);
  if (is_near(zero_a)) return;
  *ones = true;
  product->factor = 0u - (uint32_t)zero_a;
  product->add = true;
  tn__bytes_run(product, ctx, packed, ctx->outputs[0]->data);
}

static tn_status matmul_compute(tn_kernel_ctx *ctx)
{
  const plan *p = ctx->shape_state;
  const tn_view *a = ctx->inputs[0];
  int32_t zero_a, zero_b;
  for (uint32_t i = 2; i <= 4; i += 2)
    if (!(tn__float_at(ctx->inputs[i]) < tn__float_at(ctx->inputs[i + 1])))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "QuantizedMatMul: the minimum of %s is %g, its maximum %g, "
                          "wanted a larger one", i == 2 ? "a" : "b", (double)tn__float_at(ctx->inputs[i]),
                          (double)tn__float_at(ctx->inputs[i + 1]));
  find_zeros(ctx, &zero_a, &zero_b);
  tn__bytes product = p->product;
  tn__bytes_matrix rows = { .data = a->data, .row = p->across_a ? 1 : a->dims[1], .col = p->across_a ? a->dims[1] : 1,
                            .is_signed = a->dtype == TN_QINT8, .zero = is_near(zero_a) ? zero_a : 0 };
  const void *packed = packed_of(ctx, p);
  product.rows = tn__bytes_matrix_rows;
  product.user = &rows;
  product.zero = zero_b != 0 ? &zero_b : NULL;
  run_product(&product, ctx, packed, zero_a, &rows.ones);
  return TN_OK;
}

/* ---- QuantizedConv2D ---- */

static tn_status conv_create(const tn_operation *op, void **state, tn_error *err)
{
  tn__window w;
  *state = NULL;
  tn_status st = tn__window_read(op, &w, err);
  if (st != TN_OK) return st;
  if (w.batch_stride != 1 || w.depth_stride != 1 || w.batch_dilation != 1 || w.depth_dilation != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedConv2D: strides and dilations of batch and channels must "
                        "be 1");
  return tn__keep_state(&w, sizeof w, "QuantizedConv2D", state, err);
}

static void conv_destroy(void *state) { tn__free(state, sizeof(tn__window)); }

static tn_status conv_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__window w;
  tn__shape in, filter;
  tn_status st = tn__window_read(tn_infer_operation(ctx), &w, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 0, 4, &in, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 4, &filter, err);
  if (st != TN_OK) return st;
  for (int i = 0; i < 2; i++) {
    w.axis[i].size = filter.dims[i];
    in.dims[1 + i] = tn__window_fit_unknown(&w.axis[i], w.padding, in.dims[1 + i]);
  }
  in.dims[3] = filter.dims[3];
  st = tn__infer_set(ctx, 0, &in, err);
  return st == TN_OK ? tn__infer_scalars(ctx, 1, 3, err) : st;
}

static tn_status conv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *filter = &ctx->inputs[1];
  plan p = { .window = *(const tn__window *)ctx->state };
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 4, err);
  if (st == TN_OK) st = tn__want_scalars(ctx, 2, 5, err);
  if (st != TN_OK) return st;
  if (filter->dims[2] != in->dims[3])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedConv2D: the input has %lld channels, the filter %lld",
                        (long long)in->dims[3], (long long)filter->dims[2]);
  int64_t dims[4] = { in->dims[0], 0, 0, filter->dims[3] };
  for (int i = 0; i < 2; i++) {
    tn__window_axis *a = &p.window.axis[i];
    a->size = filter->dims[i];
    if (a->size == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedConv2D: dimension %d of the filter is 0", i);
    st = tn__window_fit(a, p.window.padding, "QuantizedConv2D", in->dims[1 + i], &dims[1 + i], err);
    if (st != TN_OK) return st;
    /* Windows are centred even with padding VALID, and may begin inside the input. */
    a->before = ((dims[1 + i] - 1) * a->stride + (a->size - 1) * a->dilation + 1 - in->dims[1 + i]) / 2;
  }
  p.product = (tn__bytes){ .m = dims[0] * dims[1] * dims[2], .n = dims[3],
                           .k = filter->dims[0] * filter->dims[1] * filter->dims[2], .b_row = dims[3], .b_col = 1,
                           .b_signed = filter->dtype == TN_QINT8, .factor = 1 };
  st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st == TN_OK) st = tn__prepare_scalars(ctx, 1, err);
  return st == TN_OK ? keep_plan(ctx, &p, 0, err) : st;
}

/* The windows of an image batch as rows. */
typedef struct windows {
  const tn__window *w;
  const tn_view *in, *out;
  int32_t zero;
  bool ones; /* elements of the input count as 1, padding as 0 */
} windows;

/* Writes n terms of consecutive channels, from term `channel` of the pixel on, or zeros if the pixel is padding. */
static void window_pixel(const windows *r, int64_t image, int64_t y, int64_t x, int64_t channel, int64_t n, int16_t *to)
{
  const int64_t *d = r->in->dims;
  if (y < 0 || y >= d[1] || x < 0 || x >= d[2]) {
    for (int64_t i = 0; i < n; i++) to[i] = 0;
    return;
  }
  if (r->ones) {
    for (int64_t i = 0; i < n; i++) to[i] = 1;
    return;
  }
  const char *from = (const char *)r->in->data + ((image * d[1] + y) * d[2] + x) * d[3] + channel;
  tn__bytes_extend(from, r->in->dtype == TN_QINT8, 1, n, r->zero, to);
}

static void window_rows(const void *user, int64_t row, int64_t term, int64_t n, int16_t *to)
{
  const windows *r = user;
  const tn__window_axis *v = &r->w->axis[0], *h = &r->w->axis[1];
  const int64_t *out = r->out->dims;
  int64_t channels = r->in->dims[3], width = r->in->dims[2], image = row / out[2] / out[1];
  int64_t top = row / out[2] % out[1] * v->stride - v->before, left = row % out[2] * h->stride - h->before;
  while (n > 0) {
    int64_t channel = term % channels, kx = term / channels % h->size, ky = term / channels / h->size;
    int64_t y = top + ky * v->dilation, x = left + kx * h->dilation, length = channels - channel;
    /* Pixels of a window that are side by side inside the image are read at once. */
    if (h->dilation == 1 && x >= 0 && x < width) {
      int64_t more = h->size - kx - 1 < width - x - 1 ? h->size - kx - 1 : width - x - 1;
      length += more * channels;
    }
    if (length > n) length = n;
    window_pixel(r, image, y, x, channel, length, to);
    term += length;
    to += length;
    n -= length;
  }
}

static tn_status conv_compute(tn_kernel_ctx *ctx)
{
  const plan *p = ctx->shape_state;
  int32_t zero_a, zero_b;
  find_zeros(ctx, &zero_a, &zero_b);
  windows rows = { &p->window, ctx->inputs[0], ctx->outputs[0], is_near(zero_a) ? zero_a : 0, false };
  tn__bytes product = p->product;
  if (product.m == 0 || product.n == 0) return TN_OK;
  const void *packed = packed_of(ctx, p);
  product.rows = window_rows;
  product.user = &rows;
  product.zero = zero_b != 0 ? &zero_b : NULL;
  run_product(&product, ctx, packed, zero_a, &rows.ones);
  return TN_OK;
}

/* ---- the family ---- */

#define RANGES(a, b) ", min_" a ": float, max_" a ": float, min_" b ": float, max_" b ": float"
static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizedMatMul", .inputs = "a: T1, b: T2" RANGES("a", "b"),
    .outputs = "out: Toutput, min_out: float, max_out: float",
    .attrs = "T1: " TN__QUANTIZED "; T2: " TN__QUANTIZED "; Toutput: " TN__QUANTIZED " = qint32; "
             "transpose_a: bool = false; transpose_b: bool = false; Tactivation: " TN__QUANTIZED " = quint8",
    .infer = matmul_infer, .summary = "product of matrices of quantised values" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizedConv2D",
    .inputs = "input: Tinput, filter: Tfilter" RANGES("input", "filter"),
    .outputs = "output: out_type, min_output: float, max_output: float",
    .attrs = "Tinput: " TN__QUANTIZED "; Tfilter: " TN__QUANTIZED "; out_type: " TN__QUANTIZED " = qint32; "
             "strides: list(int); padding: {'SAME', 'VALID'}; dilations: list(int) = [1, 1, 1, 1]",
    .infer = conv_infer, .summary = "convolution of images of quantised values" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "QuantizedMatMul", .device = "CPU",
    .types = "T1=quint8|qint8,T2=quint8|qint8,Toutput=qint32", .name = "quantized_matmul_cpu", .rank = TN_RANK_C,
    .prepare = matmul_prepare, .destroy_shape_state = destroy_plan, .compute = matmul_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "QuantizedConv2D", .device = "CPU",
    .types = "Tinput=quint8|qint8,Tfilter=quint8|qint8,out_type=qint32", .name = "quantized_conv2d_cpu",
    .rank = TN_RANK_C, .create = conv_create, .destroy = conv_destroy, .prepare = conv_prepare,
    .destroy_shape_state = destroy_plan, .compute = conv_compute },
};

TN_OP_FAMILY(quantized_product)
