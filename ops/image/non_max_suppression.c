/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression, its versions up to V5, and NonMaxSuppressionWithOverlaps. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <float.h>
#include <ops/image/suppression.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* Inputs and outputs of a version besides boxes, scores and the maximum number of boxes to keep. */
typedef struct version {
  const char *op;
  uint32_t iou, least, sigma; /* input numbers; 0 = none */
  bool overlaps, count, scores;
} version;

static const version versions[] = {
  { "NonMaxSuppression", 0, 0, 0, false, false, false },
  { "NonMaxSuppressionV2", 3, 0, 0, false, false, false },
  { "NonMaxSuppressionV3", 3, 4, 0, false, false, false },
  { "NonMaxSuppressionV4", 3, 4, 0, false, true, false },
  { "NonMaxSuppressionV5", 3, 4, 5, false, true, true },
  { "NonMaxSuppressionWithOverlaps", 3, 4, 0, true, false, false },
};

typedef struct nms_state {
  const version *version;
  float iou; /* for versions without that input */
  bool pad;
} nms_state;

static const version *version_of(const tn_operation *op)
{
  const version *v = versions;
  while (strcmp(v->op, tn_operation_type(op)) != 0) v++;
  return v;
}

static tn_status check_iou(const char *op, float iou, tn_error *err)
{
  if (iou >= 0 && iou <= 1) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: iou_threshold is %g, wanted 0 to 1", op, (double)iou);
}

static tn_status nms_create(const tn_operation *op, void **state, tn_error *err)
{
  nms_state s = { version_of(op), tn__attr_float(op, "iou_threshold", 0.5f),
                  tn__attr_bool(op, "pad_to_max_output_size", false) };
  *state = NULL;
  tn_status st = s.version->iou == 0 ? check_iou(s.version->op, s.iou, err) : TN_OK;
  if (st != TN_OK) return st;
  return tn__keep_state(&s, sizeof s, "suppression", state, err);
}

static void nms_destroy(void *state) { tn__free(state, sizeof(nms_state)); }

/* Checks the shapes: boxes [n, 4] or overlaps [n, n], scores [n], scalars. */
static tn_status check_inputs(const tn_prepare_ctx *ctx, bool overlaps, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  for (uint32_t i = 2; i < ctx->n_inputs && st == TN_OK; i++) st = tn__want_rank(ctx, i, 0, err);
  if (st != TN_OK) return st;
  int64_t n = ctx->inputs[0].dims[0];
  const int64_t wanted[] = { n, overlaps ? n : 4 };
  if (ctx->inputs[0].dims[1] != wanted[1]) return tn__shape_error(err, ctx, 0, wanted, 2);
  return ctx->inputs[1].dims[0] == n ? TN_OK : tn__shape_error(err, ctx, 1, &n, 1);
}

/* Bytes of scratch before that of tn__suppress: halves converted to floats, scores first. */
static size_t float_bytes(const tn_view *boxes)
{
  return boxes->dtype == TN_HALF ? tn__round_up((size_t)boxes->dims[0] * 5 * sizeof(float), TN_ALIGN) : 0;
}

static tn_status nms_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const nms_state *s = ctx->state;
  const tn_view *boxes = &ctx->inputs[0];
  tn_status st = check_inputs(ctx, s->version->overlaps, err);
  if (st != TN_OK) return st;
  size_t bytes;
  if (!tn__suppression_scratch(boxes->dims[0], &bytes) || !tn__size_add(bytes, float_bytes(boxes), &ctx->scratch_bytes))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld boxes, wanted below 2^31", s->version->op,
                        (long long)boxes->dims[0]);
  ctx->cost_ns = 100 + 100 * (double)boxes->dims[0];
  uint32_t i = 0;
  st = tn_prepare_dynamic(ctx, i++, err);
  if (st == TN_OK && s->version->scores) st = tn_prepare_dynamic(ctx, i++, err);
  if (st == TN_OK && s->version->count) st = tn_prepare_output(ctx, i, NULL, 0, err);
  return st;
}

/* ---- computing ---- */

static float number(const tn_kernel_ctx *ctx, uint32_t i)
{
  const tn_view *v = ctx->inputs[i];
  return v->dtype == TN_HALF ? tn__half_to_float(*(const uint16_t *)v->data) : *(const float *)v->data;
}

static tn_status read_limits(const tn_kernel_ctx *ctx, const nms_state *s, tn__suppression *p)
{
  const version *v = s->version;
  int32_t most = *(const int32_t *)ctx->inputs[2]->data;
  p->threshold = v->iou > 0 ? number(ctx, v->iou) : s->iou;
  p->least = p->half ? -65504.0f : -FLT_MAX;
  if (v->least > 0) p->least = number(ctx, v->least);
  p->sigma = v->sigma > 0 ? number(ctx, v->sigma) : 0;
  if (most < 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s: max_output_size is %d, wanted 0 or more", v->op, (int)most);
  p->most = most;
  if (!(p->sigma >= 0))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s: soft_nms_sigma is %g, wanted 0 or more", v->op,
                        (double)p->sigma);
  return v->overlaps ? TN_OK : check_iou(v->op, p->threshold, ctx->err);
}

static void put_scores(tn_view *out, const float *scores, int64_t n)
{
  if (out->dtype == TN_HALF) {
    tn__half_from_floats(scores, out->data, n);
    memset((uint16_t *)out->data + n, 0, (size_t)(out->count - n) * sizeof(uint16_t));
  } else {
    memcpy(out->data, scores, (size_t)n * sizeof *scores);
    memset((float *)out->data + n, 0, (size_t)(out->count - n) * sizeof *scores);
  }
}

static tn_status give(tn_kernel_ctx *ctx, const nms_state *s, int64_t most, int64_t n, const int32_t *kept,
                      const float *scores)
{
  int64_t size = s->pad ? most : n;
  tn_status st = tn_kernel_allocate(ctx, 0, &size, 1);
  if (st == TN_OK && s->version->scores) st = tn_kernel_allocate(ctx, 1, &size, 1);
  if (st != TN_OK) return st;
  int32_t *indices = ctx->outputs[0]->data;
  memcpy(indices, kept, (size_t)n * sizeof *kept);
  memset(indices + n, 0, (size_t)(size - n) * sizeof *indices);
  if (s->version->scores) put_scores(ctx->outputs[1], scores, n);
  if (s->version->count) *(int32_t *)ctx->outputs[s->version->scores ? 2 : 1]->data = (int32_t)n;
  return TN_OK;
}

static tn_status nms_compute(tn_kernel_ctx *ctx)
{
  const nms_state *s = ctx->state;
  const tn_view *boxes = ctx->inputs[0];
  const int32_t *kept;
  const float *scores;
  tn__suppression p = { .boxes = boxes->data,
                        .scores = ctx->inputs[1]->data,
                        .n = boxes->dims[0],
                        .box_stride = 4,
                        .score_stride = 1,
                        .ctx = ctx,
                        .half = boxes->dtype == TN_HALF };
  tn_status st = read_limits(ctx, s, &p);
  if (st != TN_OK) return st;
  if (s->version->overlaps) p.overlaps = boxes->data;
  if (p.half) {
    float *floats = ctx->scratch;
    tn__half_to_floats(ctx->inputs[1]->data, floats, p.n);
    tn__half_to_floats(boxes->data, floats + p.n, 4 * p.n);
    p.scores = floats;
    p.boxes = floats + p.n;
    p.threshold = tn__half_to_float(tn__half_from_float(p.threshold));
    p.least = tn__half_to_float(tn__half_from_float(p.least));
  }
  int64_t n = tn__suppress(&p, (char *)ctx->scratch + float_bytes(boxes), &kept, &scores);
  return tn_kernel_cancelled(ctx) ? TN_CANCELLED : give(ctx, s, p.most, n, kept, scores);
}

/* ---- tables ---- */

static tn_status infer_nms(tn_infer_ctx *ctx, tn_error *err)
{
  const version *v = version_of(tn_infer_operation(ctx));
  const int64_t *most;
  int64_t size = -1;
  if (tn__attr_bool(tn_infer_operation(ctx), "pad_to_max_output_size", false) &&
      tn_infer_input_ints(ctx, 2, &most) == 1 && most[0] >= 0)
    size = most[0];
  tn_status st = tn_infer_output(ctx, 0, &size, 1, err);
  if (st == TN_OK && v->scores) st = tn_infer_output(ctx, 1, &size, 1, err);
  if (st == TN_OK && v->count) st = tn_infer_output(ctx, v->scores ? 2 : 1, NULL, 0, err);
  return st;
}

#define NMS_OP(op, in, out, attributes, text)                                                     \
  {                                                                                               \
    .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_nms, .summary = text                               \
  }
#define FLOATS "T: {half, float} = float"
#define TWO_FLOATS FLOATS "; T_threshold: {half, float} = float"
#define PAD "; pad_to_max_output_size: bool = false"
#define INDICES "selected_indices: int32"
#define SUMMARY "of boxes that cover each other the one with the highest score"

static const tn_op_def ops[] = {
  NMS_OP("NonMaxSuppression", "boxes: float, scores: float, max_output_size: int32", INDICES,
         "iou_threshold: float = 0.5", SUMMARY),
  NMS_OP("NonMaxSuppressionV2", "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold", INDICES,
         TWO_FLOATS, SUMMARY),
  NMS_OP("NonMaxSuppressionV3",
         "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold",
         INDICES, TWO_FLOATS, SUMMARY),
  NMS_OP("NonMaxSuppressionV4",
         "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold",
         INDICES ", valid_outputs: int32", TWO_FLOATS PAD, SUMMARY),
  NMS_OP("NonMaxSuppressionV5",
         "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T",
         INDICES ", selected_scores: T, valid_outputs: int32", FLOATS PAD, SUMMARY ", or lower scores"),
  NMS_OP("NonMaxSuppressionWithOverlaps",
         "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, score_threshold: float",
         INDICES, "", "selects the best boxes, suppressing overlapping ones"),
};

#define NMS_KERNEL(which, title)                                                                       \
  {                                                                                                    \
    .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = nms_create, .destroy = nms_destroy, .prepare = nms_prepare, .compute = nms_compute       \
  }

static const tn_kernel_def kernels[] = {
  NMS_KERNEL("NonMaxSuppression", "non_max_suppression_cpu"),
  NMS_KERNEL("NonMaxSuppressionV2", "non_max_suppression_v2_cpu"),
  NMS_KERNEL("NonMaxSuppressionV3", "non_max_suppression_v3_cpu"),
  NMS_KERNEL("NonMaxSuppressionV4", "non_max_suppression_v4_cpu"),
  NMS_KERNEL("NonMaxSuppressionV5", "non_max_suppression_v5_cpu"),
  NMS_KERNEL("NonMaxSuppressionWithOverlaps", "non_max_suppression_overlaps_cpu"),
};

TN_OP_FAMILY(non_max_suppression)
