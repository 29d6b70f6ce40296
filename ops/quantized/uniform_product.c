/* SPDX-License-Identifier: Apache-2.0 */
/* UniformQuantizedDot and UniformQuantizedConvolution, and their hybrid forms, which quantise a float operand first. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/bytes.h>
#include <ops/quantized/convolution.h>
#include <ops/quantized/uniform.h>
#include <string.h>

typedef struct state {
  tn__convolution_attrs attrs;
  bool hybrid;
  int64_t lhs_axis, rhs_axis, out_axis;
  int32_t low, high;
} state;

static tn_status create(const tn_operation *op, void **out, tn_error *err)
{
  const char *name = tn_operation_type(op);
  state s = { .hybrid = strstr(name, "Hybrid") != NULL, .lhs_axis = tn__attr_int(op, "lhs_quantization_axis", -1),
              .rhs_axis = tn__attr_int(op, "rhs_quantization_axis", -1),
              .out_axis = tn__attr_int(op, "output_quantization_axis", -1),
              .low = tn__attr_int32(op, "output_quantization_min_val"),
              .high = tn__attr_int32(op, "output_quantization_max_val") };
  *out = NULL;
  if (s.lhs_axis != -1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: lhs_quantization_axis is %lld, wanted -1", name,
                        (long long)s.lhs_axis);
  tn_status st = tn__convolution_read(op, &s.attrs, err);
  return st == TN_OK ? tn__keep_state(&s, sizeof s, name, out, err) : st;
}

static void destroy(void *s) { tn__free(s, sizeof(state)); }

/* What a call needs: the geometry and the places of its parts in scratch. */
typedef struct plan {
  tn__convolution c;
  tn__bytes product; /* of one group */
  int64_t groups;
  size_t kernel, packed, sums, lhs, scales, zeros, multipliers; /* offsets */
} plan;

static void destroy_plan(void *p) { tn__free(p, sizeof(plan)); }

static size_t room(size_t *total, int64_t n, size_t size)
{
  size_t at = *total;
  *total = (at + (size_t)n * size + 63) / 64 * 64;
  return at;
}

/* Checks the axes and the shapes of scales. */
static tn_status check_scales(tn_prepare_ctx *ctx, const tn__convolution *c, tn_error *err)
{
  const state *s = ctx->state;
  const tn_view *lhs = &ctx->inputs[0], *rhs = &ctx->inputs[1];
  uint32_t of_rhs = s->hybrid ? 2 : 4;
  if (s->rhs_axis != -1 && s->rhs_axis != c->rhs_feature)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: rhs_quantization_axis is %lld, wanted -1 or %lld",
                        tn_operation_type(ctx->op), (long long)s->rhs_axis, (long long)c->rhs_feature);
  tn_status st = tn__want_scales(ctx, of_rhs, s->rhs_axis, rhs->dims, rhs->rank, err);
  if (st != TN_OK || s->hybrid) return st;
  if (s->out_axis != -1 && (s->out_axis != c->out_feature || s->rhs_axis == -1))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: output_quantization_axis is %lld, wanted -1%s",
                        tn_operation_type(ctx->op), (long long)s->out_axis,
                        s->rhs_axis == -1 ? "" : " or the output's features");
  st = tn__want_scales(ctx, 2, -1, lhs->dims, lhs->rank, err);
  return st == TN_OK ? tn__want_scales(ctx, 6, s->out_axis, c->out, c->rank, err) : st;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const state *s = ctx->state;
  plan p;
  size_t total = 0;
  memset(&p, 0, sizeof p);
  const tn_view *lhs = &ctx->inputs[0], *rhs = &ctx->inputs[1];
  tn_status st = tn__convolution_fit(&s->attrs, tn_operation_type(ctx->op), lhs, rhs, &p.c, err);
  if (st == TN_OK) st = check_scales(ctx, &p.c, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, p.c.out, p.c.rank, err);
  if (st != TN_OK) return st;
  p.groups = tn__convolution_groups(&p.c);
  p.product = (tn__bytes){ .m = p.c.rows, .n = p.c.features / p.groups, .k = p.c.terms, .b_row = 1,
                           .b_col = p.c.terms, .b_signed = true, .factor = 1 };
  p.kernel = room(&total, ctx->inputs[1].count, 1);
  p.packed = room(&total, 1, tn__bytes_packed(&p.product));
  p.sums = room(&total, p.product.m * p.product.n, sizeof(int32_t));
  p.multipliers = room(&total, p.c.features, sizeof(tn__multiplier));
  p.lhs = room(&total, s->hybrid ? ctx->inputs[0].count : 0, 1);
  p.scales = room(&total, s->hybrid ? p.c.batches : 0, sizeof(float));
  p.zeros = room(&total, s->hybrid ? p.c.batches : 0, sizeof(int32_t));
  plan *kept = tn__alloc(sizeof *kept);
  if (kept == NULL) return tn__no_memory(err, "plan of a quantised product", sizeof *kept);
  *kept = p;
  ctx->shape_state = kept;
  ctx->scratch_bytes = total;
  ctx->cost_ns = (double)p.groups * tn__bytes_cost(&p.product);
  return TN_OK;
}

/* The first operand's values and zero points. */
typedef struct rows_of {
  tn__convolution_rows rows;
  const float *scales;
} rows_of;

static tn_status read_lhs(tn_kernel_ctx *ctx, const plan *p, rows_of *r)
{
  const state *s = ctx->state;
  char *scratch = ctx->scratch;
  r->rows = (tn__convolution_rows){ .c = &p->c, .values = ctx->inputs[0]->data };
  if (!s->hybrid) {
    r->rows.zeros = ctx->inputs[3]->data;
    r->scales = ctx->inputs[2]->data;
    return TN_OK;
  }
  int8_t *values = (int8_t *)(scratch + p->lhs);
  float *scales = (float *)(scratch + p->scales);
  int32_t *zeros = (int32_t *)(scratch + p->zeros);
  if (ctx->inputs[0]->count > 0) tn__convolution_quantize(&p->c, ctx->inputs[0]->data, values, scales, zeros);
  r->rows.values = values;
  r->rows.zeros = zeros;
  r->rows.zero_step = 1;
  r->scales = scales;
  return TN_OK;
}

static tn_status find_multipliers(tn_kernel_ctx *ctx, const plan *p, tn__multiplier *m)
{
  const tn_view *rhs = ctx->inputs[4], *out = ctx->inputs[6];
  double lhs = tn__float_at(ctx->inputs[2]);
  tn_status st = TN_OK;
  for (int64_t i = 0; i < p->c.features && st == TN_OK; i++) {
    double scale = lhs * ((const float *)rhs->data)[rhs->rank > 0 ? i : 0];
    st = tn__multiplier_of(scale / ((const float *)out->data)[out->rank > 0 ? i : 0], "UniformQuantized", &m[i],
                           ctx->err);
  }
  return st;
}

/* Writes the results of one group. */
static void put(tn_kernel_ctx *ctx, const plan *p, const rows_of *r, int64_t group)
{
  const state *s = ctx->state;
  const tn_view *rhs_scales = ctx->inputs[s->hybrid ? 2 : 4];
  const int32_t *sums = (const int32_t *)((char *)ctx->scratch + p->sums);
  const tn__multiplier *m = (const tn__multiplier *)((char *)ctx->scratch + p->multipliers);
  int64_t n = p->product.n;
  for (int64_t row = 0; row < p->product.m; row++) {
    int64_t at = tn__convolution_out(&p->c, row), batch = tn__convolution_batch(&p->c, row, group * n);
    for (int64_t j = 0; j < n; j++) {
      int64_t feature = group * n + j, to = at + feature * p->c.out_feature_stride;
      int32_t sum = sums[row * n + j];
      if (s->hybrid) {
        float scale = ((const float *)rhs_scales->data)[rhs_scales->rank > 0 ? feature : 0];
        ((float *)ctx->outputs[0]->data)[to] = (float)sum * r->scales[batch] * scale;
      } else {
        const int32_t *zeros = ctx->inputs[7]->data;
        int32_t v = tn__wrapped_sum(tn__multiply(&m[feature], sum), zeros[ctx->inputs[7]->rank > 0 ? feature : 0]);
        ((int32_t *)ctx->outputs[0]->data)[to] = tn__between(v, s->low, s->high);
      }
    }
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  const plan *p = ctx->shape_state;
  char *scratch = ctx->scratch;
  rows_of r;
  tn_status st = TN_OK;
  for (uint32_t i = 2; i < ctx->n_inputs && st == TN_OK; i += 2) st = tn__positive_scales(ctx, "UniformQuantized", i);
  if (st == TN_OK && !s->hybrid) st = find_multipliers(ctx, p, (tn__multiplier *)(scratch + p->multipliers));
  if (st != TN_OK || ctx->outputs[0]->count == 0) return st;
  st = read_lhs(ctx, p, &r);
  if (st != TN_OK) return st;
  int8_t *kernel = (int8_t *)(scratch + p->kernel);
  int32_t *sums = (int32_t *)(scratch + p->sums);
  tn__convolution_kernel(&p->c, ctx->inputs[1]->data, kernel);
  const tn_view *zeros = ctx->inputs[s->hybrid ? 3 : 5];
  bool far = !s->hybrid && (r.rows.zeros[0] < -TN__BYTES_NEAR || r.rows.zeros[0] > TN__BYTES_NEAR);
  static const int32_t none = 0;
  for (int64_t group = 0; group < p->groups; group++) {
    tn__bytes product = p->product;
    tn__convolution_rows rows = r.rows;
    rows.feature = group * product.n;
    if (far) rows.zeros = &none;
    product.rows = tn__convolution_read_row;
    product.user = &rows;
    product.zero = (const int32_t *)zeros->data + (zeros->rank > 0 ? group * product.n : 0);
    product.zero_step = zeros->rank > 0;
    tn__bytes_pack_parallel(&product, ctx, kernel + group * product.n * product.k, scratch + p->packed);
    tn__bytes_run(&product, ctx, scratch + p->packed, sums);
    if (far) {
      rows.ones = true;
      product.factor = 0u - (uint32_t)r.rows.zeros[0];
      product.add = true;
      tn__bytes_run(&product, ctx, scratch + p->packed, sums);
    }
    put(ctx, p, &r, group);
  }
  return TN_OK;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape a, b, out = { .rank = -1 };
  tn__infer_get(ctx, 0, &a);
  tn__infer_get(ctx, 1, &b);
  if (strstr(tn__infer_op(ctx), "Dot") != NULL && a.rank == 2 && b.rank == 2)
    out = (tn__shape){ .rank = 2, .dims = { a.dims[0], b.dims[1] } };
  return tn__infer_set(ctx, 0, &out, err);
}

#define RANGE(what)                                                              \
  what "quantization_axis: int = -1; " what "quantization_min_val: int; " what   \
       "quantization_max_val: int"
#define SCALES(what) ", " what "scales: float, " what "zero_points: int32"
#define BYTES "Tin: {qint8}; Tout: {qint32}; "
#define HYBRID "Tlhs: {float}; Trhs: {qint8}; Tout: {float}; "
#define WINDOWS                                                                                             \
  "window_strides: list(int) = []; padding: string; explicit_padding: list(int) = []; "                     \
  "lhs_dilation: list(int) = []; rhs_dilation: list(int) = []; batch_group_count: int = 1; "                \
  "feature_group_count: int = 1; dimension_numbers: string = ''; "
#define ALL RANGE("lhs_") "; " RANGE("rhs_") "; " RANGE("output_")
#define QUANTIZED "lhs: Tin, rhs: Tin" SCALES("lhs_") SCALES("rhs_") SCALES("output_")
#define OP(name_, in, attributes, text)                                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = in, .outputs = "output: Tout", .attrs = attributes, \
    .infer = infer, .summary = text }
static const tn_op_def ops[] = {
  OP("UniformQuantizedDot", QUANTIZED, BYTES ALL, "product of matrices of uniformly quantised values"),
  OP("UniformQuantizedDotHybrid", "lhs: Tlhs, rhs: Trhs" SCALES("rhs_"), HYBRID RANGE("rhs_"),
     "product of floats with uniformly quantised values"),
  OP("UniformQuantizedConvolution", QUANTIZED, BYTES WINDOWS ALL, "convolution of uniformly quantised values"),
  OP("UniformQuantizedConvolutionHybrid", "lhs: Tlhs, rhs: Trhs" SCALES("rhs_"), HYBRID WINDOWS RANGE("rhs_"),
     "convolution of floats with uniformly quantised values"),
};

#define KERNEL(op_, title)                                                                                 \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = title, .rank = TN_RANK_C,       \
    .create = create, .destroy = destroy, .prepare = prepare, .destroy_shape_state = destroy_plan,         \
    .compute = compute }
static const tn_kernel_def kernels[] = {
  KERNEL("UniformQuantizedDot", "uniform_dot_cpu"),
  KERNEL("UniformQuantizedDotHybrid", "uniform_dot_hybrid_cpu"),
  KERNEL("UniformQuantizedConvolution", "uniform_convolution_cpu"),
  KERNEL("UniformQuantizedConvolutionHybrid", "uniform_convolution_hybrid_cpu"),
};

TN_OP_FAMILY(uniform_product)
