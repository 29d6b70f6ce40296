/* SPDX-License-Identifier: Apache-2.0 */
/* ExtractGlimpse ExtractGlimpseV2: windows cut out of images; what is outside of an image is noise. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/image/resize.h>
#include <ops/kernel/family.h>
#include <ops/random/random_source.h>
#include <string.h>

typedef enum noise { UNIFORM, GAUSSIAN, ZERO } noise;

typedef struct glimpse_state {
  void *random; /* a generator */
  bool centered, normalized, second;
  int noise;
} glimpse_state;

static void glimpse_destroy(void *state)
{
  glimpse_state *s = state;
  if (s != NULL && s->random != NULL) tn__random_destroy(s->random);
  tn__free(s, sizeof *s);
}

static tn_status glimpse_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const noises[] = { "uniform", "gaussian", "zero", "" };
  bool uniform = tn__attr_bool(op, "uniform_noise", true);
  glimpse_state s = { .centered = tn__attr_bool(op, "centered", true),
                      .normalized = tn__attr_bool(op, "normalized", true),
                      .second = strcmp(tn_operation_type(op), "ExtractGlimpseV2") == 0 };
  *state = NULL;
  tn_status st = tn__attr_choice(op, "noise", noises, 4, &s.noise, err);
  if (st == TN_OK && uniform && (s.noise == GAUSSIAN || s.noise == ZERO))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: uniform_noise is set and noise is '%s', wanted one of them",
                      tn_operation_type(op), noises[s.noise]);
  if (s.noise == 3) s.noise = uniform ? UNIFORM : GAUSSIAN;
  if (st == TN_OK) st = tn__random_create(op, &s.random, err);
  if (st == TN_OK) st = tn__keep_state(&s, sizeof s, "options", state, err);
  if (st != TN_OK && s.random != NULL) tn__random_destroy(s.random);
  return st;
}

static tn_status glimpse_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  static const int64_t two = 2;
  const tn_view *in = &ctx->inputs[0], *size = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st != TN_OK) return st;
  const int64_t wanted[] = { in->dims[0], 2 };
  if (size->rank != 1 || size->count != 2) return tn__shape_error(err, ctx, 1, &two, 1);
  if (ctx->inputs[2].rank != 2 || ctx->inputs[2].dims[0] != wanted[0] || ctx->inputs[2].dims[1] != 2)
    return tn__shape_error(err, ctx, 2, wanted, 2);
  int64_t h = tn__view_int_at(size, 0), w = tn__view_int_at(size, 1);
  if (h < 0 || w < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the size of a glimpse is %lld x %lld, wanted 0 or more",
                        tn_operation_type(ctx->op), (long long)h, (long long)w);
  const int64_t dims[] = { in->dims[0], h, w, in->dims[3] };
  ctx->cost_ns = 50 + (double)h * (double)w * (double)in->dims[0] * (double)in->dims[3];
  return tn_prepare_output(ctx, 0, dims, 4, err);
}

/* The first row or column of a glimpse of `size` in a line of n. */
static int64_t first_of(const glimpse_state *s, float offset, int64_t n, int64_t size)
{
  float at = offset;
  bool halves = !s->second || (s->centered && s->normalized);
  if (s->normalized) at *= (float)n;
  if (s->centered && halves) at /= 2;
  if (s->centered) at += (float)n / 2;
  if (halves) at -= (float)size / 2;
  if (!(at > -4e9f)) return -(INT64_C(1) << 32);
  return at < 4e9f ? (int64_t)at : INT64_C(1) << 32;
}

/* Fills a glimpse of n numbers with noise like the image's numbers. */
static void fill_noise(const glimpse_state *s, const float *image, int64_t count, float *to, int64_t n)
{
  double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
  if (s->noise == ZERO || count == 0) {
    memset(to, 0, (size_t)n * sizeof *to);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    double v = (double)image[i];
    if (v < low) low = v;
    if (v > high) high = v;
    sum += v;
    squares += v * v;
  }
  double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
  tn__philox from = tn__random_reserve(s->random, n, 1);
  tn__philox_words words;
  tn__philox_words_init(&words, &from);
  for (int64_t i = 0; i < n; i++) {
    double u = (double)tn__uniform_float(tn__philox_word(&words));
    double v = (double)tn__uniform_float(tn__philox_word(&words));
    double normal = sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
    if (s->noise == UNIFORM) to[i] = (float)(low + u * (high - low));
    else to[i] = (float)(mean + normal * sqrt(variance > 0 ? variance : 0));
  }
}

static tn_status glimpse_compute(tn_kernel_ctx *ctx)
{
  const glimpse_state *s = ctx->state;
  const tn_view *in = ctx->inputs[0], *out = ctx->outputs[0];
  const float *offsets = ctx->inputs[2]->data, *image = in->data;
  int64_t h = in->dims[1], w = in->dims[2], c = in->dims[3], gh = out->dims[1], gw = out->dims[2];
  float *to = out->data;
  if (out->count == 0) return TN_OK;
  for (int64_t b = 0; b < in->dims[0]; b++, image += h * w * c, to += gh * gw * c) {
    int64_t top = first_of(s, offsets[2 * b], h, gh), left = first_of(s, offsets[2 * b + 1], w, gw);
    int64_t first = left < 0 ? -left : 0, last = w - left < gw ? w - left : gw;
    if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
    if (top < 0 || left < 0 || top + gh > h || left + gw > w) fill_noise(s, image, h * w * c, to, gh * gw * c);
    for (int64_t y = 0; y < gh && first < last; y++)
      if (top + y >= 0 && top + y < h)
        memcpy(to + (y * gw + first) * c, image + ((top + y) * w + left + first) * c,
               (size_t)((last - first) * c) * sizeof *to);
  }
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_glimpse(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in;
  const int64_t *size;
  tn_status st = tn__infer_rank(ctx, 0, 4, &in, err);
  bool known = tn_infer_input_ints(ctx, 1, &size) == 2;
  for (int k = 0; st == TN_OK && k < 2; k++) in.dims[k + 1] = known && size[k] >= 0 ? size[k] : -1;
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &in, err);
}

#define OP(op)                                                                                               \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: float, size: int32, offsets: float",        \
    .outputs = "glimpse: float",                                                                             \
    .attrs = "centered: bool = true; normalized: bool = true; uniform_noise: bool = true; "                  \
             "noise: string = 'uniform'",                                                                    \
    .shape_operands = 1u << 1, .infer = infer_glimpse, .summary = "windows of images, with noise around them" }

static const tn_op_def ops[] = { OP("ExtractGlimpse"), OP("ExtractGlimpseV2") };

static const tn_kernel_def kernels[] = {
  TN__KERNEL("ExtractGlimpse", "extract_glimpse_cpu", glimpse_create, glimpse_destroy, glimpse_prepare,
             glimpse_compute),
  TN__KERNEL("ExtractGlimpseV2", "extract_glimpse_v2_cpu", glimpse_create, glimpse_destroy, glimpse_prepare,
             glimpse_compute),
};

TN_OP_FAMILY(glimpse)
