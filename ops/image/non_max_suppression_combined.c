/* SPDX-License-Identifier: Apache-2.0 */
/* CombinedNonMaxSuppression: suppression per image and class, then the best boxes of all classes of
 * an image. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/image/suppression.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <string.h>

typedef struct combined_plan {
  int64_t batch, n, sets, classes; /* sets of boxes: 1 for all classes, or one for each */
  int64_t most, total;             /* maximum per class; maximum per image */
  int64_t parts;                   /* batch * classes; distributed over bands, each with its own scratch */
  int64_t bands;
  size_t band_bytes, heap_bytes; /* scratch: bands, then a heap for each image, then lists */
} combined_plan;

static void combined_destroy_plan(void *plan) { tn__free(plan, sizeof(combined_plan)); }

/* Inputs 2 and 3: a number above 0. */
static tn_status read_number(const tn_prepare_ctx *ctx, uint32_t i, int64_t *out, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, i, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, i, err);
  if (st != TN_OK) return st;
  *out = tn__operand_int(&ctx->inputs[i], 0);
  if (*out > 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is %lld, wanted at least 1", tn_operation_type(ctx->op),
                      i == 2 ? "max_output_size_per_class" : "max_total_size", (long long)*out);
}

static tn_status check_shapes(const tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *boxes = &ctx->inputs[0], *scores = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 3, err);
  for (uint32_t i = 4; i < 6 && st == TN_OK; i++) st = tn__want_rank(ctx, i, 0, err);
  if (st != TN_OK) return st;
  const int64_t *b = boxes->dims, *s = scores->dims;
  if (b[0] == s[0] && b[1] == s[1] && (b[2] == 1 || b[2] == s[2]) && b[3] == 4) return TN_OK;
  char one[100], two[100];
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: boxes of shape %s and scores of shape %s, wanted [b,n,1 or c,4] and "
                      "[b,n,c]",
                      tn_operation_type(ctx->op), tn__format_shape(one, sizeof one, b, 4),
                      tn__format_shape(two, sizeof two, s, 3));
}

#define MOST_BANDS 32

/* Size of the list of kept boxes of one class: scores, indices and a count. */
static size_t list_bytes(const combined_plan *p) { return (size_t)p->most * (sizeof(float) + sizeof(int32_t)) + 8; }

static double part_ns(const combined_plan *p) { return 100 + 100 * (double)p->n; }

static tn_status plan_scratch(tn_prepare_ctx *ctx, combined_plan *p, tn_error *err)
{
  size_t bytes, lists, heaps;
  double cost = part_ns(p);
  if (__builtin_mul_overflow(p->batch, p->classes, &p->parts)) return tn__no_memory(err, "lists of boxes", SIZE_MAX);
  p->bands =
      cost * (double)p->parts < 20000.0 * MOST_BANDS ? (int64_t)(cost * (double)p->parts / 20000.0) + 1 : MOST_BANDS;
  if (p->bands > p->parts) p->bands = p->parts;
  ctx->cost_ns = cost * (double)p->parts;
  if (!tn__suppression_scratch(p->n, &bytes))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld boxes, wanted below 2^31", tn_operation_type(ctx->op),
                        (long long)p->n);
  p->band_bytes = tn__round_up(bytes, TN_ALIGN);
  if (!tn__size_mul(p->band_bytes, (size_t)p->bands, &bytes) ||
      !tn__size_mul((size_t)p->classes, sizeof(tn__candidate), &p->heap_bytes) ||
      !tn__size_mul(p->heap_bytes = tn__round_up(p->heap_bytes, 8), (size_t)p->batch, &heaps) ||
      !tn__size_mul(list_bytes(p), (size_t)p->parts, &lists) || !tn__size_add(bytes, heaps, &bytes) ||
      !tn__size_add(bytes, lists, &ctx->scratch_bytes))
    return tn__no_memory(err, "lists of boxes", SIZE_MAX);
  return TN_OK;
}

static tn_status combined_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t most = 0, total = 0, all;
  tn_status st = check_shapes(ctx, err);
  if (st == TN_OK) st = read_number(ctx, 2, &most, err);
  if (st == TN_OK) st = read_number(ctx, 3, &total, err);
  if (st != TN_OK) return st;
  const int64_t *b = ctx->inputs[0].dims, classes = ctx->inputs[1].dims[2];
  bool pad = tn__attr_bool(ctx->op, "pad_per_class", false);
  if (pad && !__builtin_mul_overflow(most, classes, &all) && all < total) total = all;
  const int64_t dims[] = { b[0], total, 4 };
  st = tn_prepare_output(ctx, 0, dims, 3, err);
  for (uint32_t i = 1; i < 4 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, dims, i < 3 ? 2 : 1, err);
  if (st != TN_OK) return st;
  combined_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "suppression", sizeof *p);
  *p = (combined_plan){
    .batch = b[0], .n = b[1], .sets = b[2], .classes = classes, .most = most < b[1] ? most : b[1], .total = total
  };
  ctx->shape_state = p;
  return plan_scratch(ctx, p, err);
}

static tn_status combined_create(const tn_operation *op, void **state, tn_error *err)
{
  static char clip;
  *state = tn__attr_bool(op, "clip_boxes", true) ? &clip : NULL;
  return TN_OK;
}

/* ---- computing ---- */

typedef struct combined_run {
  const combined_plan *plan;
  const float *boxes, *scores;
  float threshold, least;
  char *scratch;
  tn_view *const *outputs;
  bool clip;
} combined_run;

typedef struct list {
  int64_t *n;
  float *scores;
  int32_t *kept;
} list;

static list list_of(const combined_run *r, int64_t part)
{
  const combined_plan *p = r->plan;
  char *at = r->scratch + (size_t)p->bands * p->band_bytes + (size_t)p->batch * p->heap_bytes;
  /* Counts are first, for alignment. */
  int64_t *counts = (int64_t *)at;
  float *scores = (float *)(counts + p->parts) + part * p->most;
  int32_t *kept = (int32_t *)((float *)(counts + p->parts) + p->parts * p->most) + part * p->most;
  return (list){ counts + part, scores, kept };
}

static void band_part(void *user, int64_t begin, int64_t end)
{
  const combined_run *r = user;
  const combined_plan *p = r->plan;
  tn__poll poll = tn__poll_here();
  for (int64_t band = begin; band < end; band++)
    for (int64_t part = band * p->parts / p->bands; part < (band + 1) * p->parts / p->bands; part++) {
      if (tn__poll_over(&poll, (int64_t)part_ns(p))) return;
      int64_t image = part / p->classes, c = part % p->classes, set = p->sets == 1 ? 0 : c;
      const int32_t *kept;
      const float *scores;
      tn__suppression s = { .boxes = r->boxes + (image * p->n * p->sets + set) * 4,
                            .box_stride = p->sets * 4,
                            .scores = r->scores + image * p->n * p->classes + c,
                            .score_stride = p->classes,
                            .n = p->n,
                            .most = p->most,
                            .threshold = r->threshold,
                            .least = r->least };
      list l = list_of(r, part);
      *l.n = tn__suppress(&s, r->scratch + (size_t)band * p->band_bytes, &kept, &scores);
      memcpy(l.scores, scores, (size_t)*l.n * sizeof *scores);
      memcpy(l.kept, kept, (size_t)*l.n * sizeof *kept);
    }
}

static float to_unit(float x)
{
  if (x < 0) return 0;
  return x > 1 ? 1 : x;
}

static void put_box(const combined_run *r, int64_t image, int64_t set, int64_t i, float *to)
{
  const combined_plan *p = r->plan;
  const float *box = r->boxes + ((image * p->n + i) * p->sets + set) * 4;
  for (int k = 0; k < 4; k++) to[k] = r->clip ? to_unit(box[k]) : box[k];
}

/* Merges the sorted lists of all classes of an image, with a heap of the next box of each list. */
static void merge_image(const combined_run *r, int64_t image)
{
  const combined_plan *p = r->plan;
  tn__candidate *heap =
      (tn__candidate *)(r->scratch + (size_t)p->bands * p->band_bytes + (size_t)image * p->heap_bytes);
  float *boxes = (float *)r->outputs[0]->data + image * p->total * 4;
  float *scores = (float *)r->outputs[1]->data + image * p->total,
        *classes = (float *)r->outputs[2]->data + image * p->total;
  int64_t n = 0, k = 0;
  for (int64_t c = 0; c < p->classes; c++) {
    list l = list_of(r, image * p->classes + c);
    if (*l.n > 0) heap[n++] = (tn__candidate){ l.scores[0], (int32_t)c, 0 };
  }
  tn__candidates_heap(heap, n);
  for (; k < p->total && n > 0; k++) {
    int32_t c = heap[0].index, next = heap[0].seen + 1;
    list l = list_of(r, image * p->classes + c);
    scores[k] = heap[0].score;
    classes[k] = (float)c;
    put_box(r, image, p->sets == 1 ? 0 : c, l.kept[next - 1], boxes + 4 * k);
    if (next < *l.n)
      heap[0] = (tn__candidate){ l.scores[next], c, next };
    else
      heap[0] = heap[--n];
    if (n > 0) tn__candidates_sink(heap, n, 0);
  }
  ((int32_t *)r->outputs[3]->data)[image] = (int32_t)k;
  memset(scores + k, 0, (size_t)(p->total - k) * sizeof *scores);
  memset(classes + k, 0, (size_t)(p->total - k) * sizeof *classes);
  memset(boxes + 4 * k, 0, (size_t)(p->total - k) * 4 * sizeof *boxes);
}

static tn_status combined_compute(tn_kernel_ctx *ctx)
{
  const combined_plan *p = ctx->shape_state;
  combined_run r = { p,
                     ctx->inputs[0]->data,
                     ctx->inputs[1]->data,
                     *(const float *)ctx->inputs[4]->data,
                     *(const float *)ctx->inputs[5]->data,
                     ctx->scratch,
                     ctx->outputs,
                     ctx->state != NULL };
  if (!(r.threshold >= 0 && r.threshold <= 1))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "CombinedNonMaxSuppression: iou_threshold is %g, wanted 0 to 1",
                        (double)r.threshold);
  tn_parallel_for(ctx, p->bands, 1, part_ns(p) * (double)p->parts / (double)p->bands, band_part, &r);
  tn__poll poll = tn__poll_of(ctx);
  if (tn_kernel_cancelled(ctx)) return TN_CANCELLED; /* the lists may be incomplete */
  for (int64_t image = 0; image < p->batch; image++) {
    if (tn__poll_over(&poll, 100 + 50 * p->total)) return TN_CANCELLED;
    merge_image(&r, image);
  }
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_combined(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape boxes, scores;
  const int64_t *most, *total;
  int64_t dims[] = { -1, -1, 4 };
  tn__infer_get(ctx, 0, &boxes);
  tn__infer_get(ctx, 1, &scores);
  if (boxes.rank == 4) dims[0] = boxes.dims[0];
  if (tn_infer_input_ints(ctx, 3, &total) == 1 && total[0] > 0) {
    dims[1] = total[0];
    if (tn__attr_bool(tn_infer_operation(ctx), "pad_per_class", false)) {
      bool known = scores.rank == 3 && scores.dims[2] >= 0 && tn_infer_input_ints(ctx, 2, &most) == 1 && most[0] > 0;
      int64_t all;
      if (!known)
        dims[1] = -1;
      else if (!__builtin_mul_overflow(most[0], scores.dims[2], &all) && all < dims[1])
        dims[1] = all;
    }
  }
  tn_status st = tn_infer_output(ctx, 0, dims, 3, err);
  for (size_t i = 1; i < 4 && st == TN_OK; i++) st = tn_infer_output(ctx, i, dims, i < 3 ? 2 : 1, err);
  return st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "CombinedNonMaxSuppression",
    .inputs = "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, iou_threshold: "
              "float, score_threshold: float",
    .outputs = "nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, valid_detections: int32",
    .attrs = "pad_per_class: bool = false; clip_boxes: bool = true",
    .shape_operands = 1u << 2 | 1u << 3,
    .infer = infer_combined,
    .summary = "selects the best boxes of all classes for each image" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "CombinedNonMaxSuppression",
    .device = "CPU",
    .name = "combined_non_max_suppression_cpu",
    .rank = TN_RANK_C,
    .create = combined_create,
    .prepare = combined_prepare,
    .destroy_shape_state = combined_destroy_plan,
    .compute = combined_compute },
};

TN_OP_FAMILY(non_max_suppression_combined)
