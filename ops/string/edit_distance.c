/* SPDX-License-Identifier: Apache-2.0 */
/* Levenshtein distances between the sequences of two sparse tensors: EditDistance. A sequence is the entries that share
 * all coordinates but the last one. */
#include <core/base/text.h>
#include <ops/kernel/elements/complex.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <string.h>

enum { INDICES, VALUES, SHAPE, TRUTH }; /* the inputs of the hypothesis; those of the truth begin at TRUTH */

/* ---- one pair of sequences ---- */

static bool same_texts(const tn_string *a, const tn_string *b)
{
  size_t n, m;
  const char *s = tn_string_data(a, &n), *t = tn_string_data(b, &m);
  return n == m && (n == 0 || memcmp(s, t, n) == 0);
}

#define SAME(a, b) ((a) == (b))
#define SAME_HALF(a, b) (tn__half_to_float(a) == tn__half_to_float(b))
#define SAME_BFLOAT16(a, b) (tn__bfloat16_to_float(a) == tn__bfloat16_to_float(b))
#define SAME_TEXT(a, b) same_texts(&(a), &(b))

/* Fills row[m + 1], distances of the first k elements of a to all beginnings of b, for k from 0 to n. Returns the
 * distance of a and b, -1 if the step has ended. */
#define DISTANCE(name, T, same)                                                                              \
  static int64_t distance_##name(const T *a, int64_t n, const T *b, int64_t m, int64_t *row, tn__poll *poll) \
  {                                                                                                          \
    for (int64_t k = 0; k <= m; k++) row[k] = k;                                                             \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      int64_t before = row[0]; /* of the row above, one to the left */                                       \
      row[0] = i + 1;                                                                                        \
      if (tn__poll_over(poll, 5 + 3 * m)) return -1;                                                         \
      for (int64_t k = 0; k < m; k++) {                                                                      \
        int64_t changed = before + !same(a[i], b[k]), least = row[k] < row[k + 1] ? row[k] : row[k + 1];     \
        before = row[k + 1];                                                                                 \
        row[k + 1] = changed < least + 1 ? changed : least + 1;                                              \
      }                                                                                                      \
    }                                                                                                        \
    return row[m];                                                                                           \
  }
DISTANCE(1, uint8_t, SAME)
DISTANCE(2, uint16_t, SAME)
DISTANCE(4, uint32_t, SAME)
DISTANCE(8, uint64_t, SAME)
DISTANCE(float, float, SAME)
DISTANCE(double, double, SAME)
DISTANCE(half, uint16_t, SAME_HALF)
DISTANCE(bfloat16, uint16_t, SAME_BFLOAT16)
DISTANCE(complex64, tn__c64, SAME)
DISTANCE(complex128, tn__c128, SAME)
DISTANCE(text, tn_string, SAME_TEXT)

/* ---- groups ---- */

/* A sparse tensor and its current sequence, values [at, end); at == n after the last one. */
typedef struct operand {
  const tn_view *values;
  const int64_t *indices;
  int64_t n, rank, at, end;
} operand;

static void find_end(operand *o)
{
  const int64_t *group = o->indices + o->at * o->rank;
  size_t bytes = (size_t)(o->rank - 1) * sizeof *group;
  for (o->end = o->at; o->end < o->n && memcmp(group, o->indices + o->end * o->rank, bytes) == 0;) o->end++;
}

static operand operand_of(const tn_kernel_ctx *ctx, uint32_t first)
{
  tn_view *const *in = ctx->inputs + first;
  operand o = { .values = in[VALUES], .indices = in[INDICES]->data, .n = in[VALUES]->count, .rank = in[SHAPE]->count };
  find_end(&o);
  return o;
}

static void next_group(operand *o)
{
  o->at = o->end;
  find_end(o);
}

/* Which sequence is first: < 0 that of a, > 0 that of b, 0: they are a pair. */
static int compare(const operand *a, const operand *b)
{
  if (a->at == a->n || b->at == b->n) return a->at == a->n ? 1 : -1;
  const int64_t *x = a->indices + a->at * a->rank, *y = b->indices + b->at * b->rank;
  for (int64_t d = 0; d < a->rank - 1; d++)
    if (x[d] != y[d]) return x[d] < y[d] ? -1 : 1;
  return 0;
}

/* The element of the output for a sequence, NULL if its indices are outside. */
static float *place_of(const tn_view *out, const operand *o)
{
  uint64_t at = 0; /* may wrap */
  for (int32_t d = 0; d < out->rank; d++)
    at = at * (uint64_t)out->dims[d] + (uint64_t)o->indices[o->at * o->rank + d];
  return at < (uint64_t)out->count ? (float *)out->data + at : NULL;
}

static int64_t distance(const operand *a, const operand *b, int64_t *row, tn__poll *poll)
{
  tn_dtype dtype = a->values->dtype;
  size_t size = tn_dtype_size(dtype);
  int64_t n = a->end - a->at, m = b->end - b->at;
  const void *x = (const char *)a->values->data + (size_t)a->at * size;
  const void *y = (const char *)b->values->data + (size_t)b->at * size;
  switch (dtype) {
  case TN_FLOAT: return distance_float(x, n, y, m, row, poll);
  case TN_DOUBLE: return distance_double(x, n, y, m, row, poll);
  case TN_HALF: return distance_half(x, n, y, m, row, poll);
  case TN_BFLOAT16: return distance_bfloat16(x, n, y, m, row, poll);
  case TN_COMPLEX64: return distance_complex64(x, n, y, m, row, poll);
  case TN_COMPLEX128: return distance_complex128(x, n, y, m, row, poll);
  case TN_STRING: return distance_text(x, n, y, m, row, poll);
  default: break;
  }
  switch (size) {
  case 1: return distance_1(x, n, y, m, row, poll);
  case 2: return distance_2(x, n, y, m, row, poll);
  case 4: return distance_4(x, n, y, m, row, poll);
  default: return distance_8(x, n, y, m, row, poll);
  }
}

/* ---- shapes ---- */

/* The larger of each dimension but the last. */
static tn_status output_shape(const tn_prepare_ctx *ctx, int64_t *dims, tn_error *err)
{
  const tn_view *a = &ctx->inputs[SHAPE], *b = &ctx->inputs[TRUTH + SHAPE];
  for (int64_t d = 0; d < a->count; d++) {
    int64_t x = tn__view_int_at(a, d), y = tn__view_int_at(b, d);
    if (x < 0 || y < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "EditDistance: dimension %lld of a shape is negative",
                          (long long)d);
    dims[d] = x > y ? x : y;
  }
  return TN_OK;
}

static tn_status check_operand(const tn_prepare_ctx *ctx, uint32_t first, tn_error *err)
{
  const tn_view *indices = &ctx->inputs[first + INDICES], *shape = &ctx->inputs[first + SHAPE];
  int64_t unused;
  tn_status st = tn__want_rank(ctx, first + INDICES, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, first + VALUES, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, first + SHAPE, 1, err);
  if (st == TN_OK) st = tn__want_value(ctx, first + SHAPE, err);
  if (st != TN_OK) return st;
  if (shape->count < 2 || shape->count > TN_MAX_RANK || indices->dims[1] != shape->count ||
      indices->dims[0] != ctx->inputs[first + VALUES].count)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "EditDistance: inputs from %u are indices of shape [%lld,%lld], %lld "
                        "values and %lld dimensions", first, (long long)indices->dims[0], (long long)indices->dims[1],
                        (long long)ctx->inputs[first + VALUES].count, (long long)shape->count);
  return tn_shape_elements(shape->data, (int32_t)shape->count, &unused, err);
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t dims[TN_MAX_RANK], n = ctx->inputs[VALUES].count;
  tn_status st = check_operand(ctx, 0, err);
  if (st == TN_OK) st = check_operand(ctx, TRUTH, err);
  if (st == TN_OK && ctx->inputs[SHAPE].count != ctx->inputs[TRUTH + SHAPE].count)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "EditDistance: the hypothesis has rank %lld, the truth %lld",
                      (long long)ctx->inputs[SHAPE].count, (long long)ctx->inputs[TRUTH + SHAPE].count);
  if (st == TN_OK) st = output_shape(ctx, dims, err);
  if (st != TN_OK) return st;
  ctx->scratch_bytes = ((size_t)n + 1) * sizeof(int64_t);
  ctx->cost_ns = 200 + 50 * (double)n;
  return tn_prepare_output(ctx, 0, dims, (int32_t)ctx->inputs[SHAPE].count - 1, err);
}

/* ---- compute ---- */

static tn_status compute(tn_kernel_ctx *ctx)
{
  const bool normalize = ctx->state != NULL;
  const tn_view *out = ctx->outputs[0];
  operand a = operand_of(ctx, 0), b = operand_of(ctx, TRUTH);
  tn__poll poll = tn__poll_of(ctx);
  if (out->count > 0) memset(out->data, 0, (size_t)out->count * sizeof(float));
  while (a.at < a.n || b.at < b.n) {
    int c = compare(&a, &b);
    float *to = place_of(out, c <= 0 ? &a : &b);
    if (tn__poll_over(&poll, 30)) return TN_CANCELLED;
    if (to == NULL)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "EditDistance: index %lld of the %s is outside its shape",
                          (long long)(c <= 0 ? a.at : b.at), c <= 0 ? "hypothesis" : "truth");
    int64_t n = b.end - b.at, d = c > 0 ? n : a.end - a.at; /* all of one is missing in the other */
    if (c == 0) d = distance(&b, &a, ctx->scratch, &poll);
    if (d < 0) return TN_CANCELLED;
    if (!normalize) *to = (float)d;
    else if (c < 0) *to = (float)d / 0.0f;
    else *to = c > 0 ? 1.0f : (float)d / (float)n;
    if (c <= 0) next_group(&a);
    if (c >= 0) next_group(&b);
  }
  return TN_OK;
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  static char normalize;
  (void)err;
  *state = tn__attr_bool(op, "normalize", true) ? &normalize : NULL;
  return TN_OK;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t a[TN_MAX_RANK], b[TN_MAX_RANK];
  int32_t rank = tn_infer_input_as_shape(ctx, SHAPE, a), other = tn_infer_input_as_shape(ctx, TRUTH + SHAPE, b);
  if (rank < 1 || rank != other) return tn_infer_output(ctx, 0, NULL, -1, err);
  for (int32_t d = 0; d < rank; d++)
    if (a[d] < 0 || b[d] < 0) a[d] = -1;
    else if (b[d] > a[d]) a[d] = b[d];
  return tn_infer_output(ctx, 0, a, rank - 1, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "EditDistance",
    .inputs = "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, "
              "truth_values: T, truth_shape: int64",
    .outputs = "output: float", .attrs = "normalize: bool = true; T: type",
    .shape_operands = 1u << SHAPE | 1u << (TRUTH + SHAPE), .infer = infer,
    .summary = "Levenshtein distances of sequences" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "EditDistance", .device = "CPU",
    .types = "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|"
             "string",
    .name = "edit_distance_cpu", .rank = TN_RANK_C, .create = create, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(edit_distance)
