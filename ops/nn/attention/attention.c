/* SPDX-License-Identifier: Apache-2.0 */
/* _TnAttention: softmax of scores times values, without the scores ever being written to memory as a whole. The
 * planner's pass "attention" makes it of the chains that exporters write (ops/rewrite/fuse_attention.c).
 *
 *   out = softmax(steps(query key^T)) value      for matrices query [rows, depth], key [keys, depth], value [keys,
 * size]
 *
 * Each step combines the scores with an argument: a scale, a mask, a bias; or it takes another value where a mask is
 * false. The query is multiplied by `scale` before. Batch dimensions broadcast. The matrices may be stored with their
 * dimensions in any order: canonical dimension i, as above after the batch dimensions, is dimension perm[i] of the
 * tensor. If key_repeat is n, each matrix of keys along the last batch dimension serves n matrices of the query.
 *
 * A block is LANES rows by some keys; its scores are stored key by key, so that rows are lanes of vectors. Then key and
 * query need not be transposed, and maxima and sums of a row are computed without moves across lanes. A row keeps its
 * maximum and sum over the blocks so far; when the maximum grows, its sums of values are scaled down. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/slots.h>
#include <string.h>

#define GROUP 16 /* rows that a loop over keys softens: their maxima and sums stay in registers */
#define LANES 32 /* rows of a block: a multiple of GROUP and of every kernel's panel */
#define KEYS 256 /* of a block: its scores and a panel of values fit the L1 cache */
#define FEW_ROWS 2 /* in a matrix: they are computed one by one, which reads keys and values in place */
#define MOST_STEPS 8
#define MOST_ARGS 12
#define NS_PER_TERM 0.02
#define NS_PER_SCORE 0.6
#define PARTS_OF_THREAD 4
#define SHAPE_TEXT 128

/* ---- loops ---- */

/* What is known of LANES rows. */
typedef struct row_stats {
  float most[LANES], sum[LANES];
  float factor[LANES]; /* by which this block's maxima scale the earlier sums */
} row_stats;

/* Replaces the scores of GROUP rows by their exponentials, less the largest one. */
TN__INLINED void soften_rows(const int fused, float *scores, int64_t keys, float *most, float *sum, float *factor)
{
  float now[GROUP], base[GROUP], total[GROUP] = { 0 };
  for (int i = 0; i < GROUP; i++) now[i] = most[i];
  for (int64_t k = 0; k < keys; k++)
    for (int i = 0; i < GROUP; i++) now[i] = scores[k * LANES + i] > now[i] ? scores[k * LANES + i] : now[i];
  for (int i = 0; i < GROUP; i++) {
    base[i] = now[i] == -INFINITY ? 0 : now[i]; /* all scores are -infinity so far */
    factor[i] = tn__expf_below_by(fused, most[i] - base[i]);
    most[i] = now[i];
  }
  for (int64_t k = 0; k < keys; k++)
    for (int i = 0; i < GROUP; i++) {
      float e = tn__expf_below_by(fused, scores[k * LANES + i] - base[i]);
      scores[k * LANES + i] = e;
      total[i] += e;
    }
  for (int i = 0; i < GROUP; i++) sum[i] = sum[i] * factor[i] + total[i];
}

typedef void (*soften_fn)(float *scores, int64_t keys, float *most, float *sum, float *factor);
static void soften(float *scores, int64_t keys, float *most, float *sum, float *factor)
{
  soften_rows(0, scores, keys, most, sum, factor);
}
#define SOFTEN(fused, name, end, attribute)                                                                \
  attribute static void name##_##end(float *scores, int64_t keys, float *most, float *sum, float *factor) \
  {                                                                                                        \
    soften_rows(fused, scores, keys, most, sum, factor);                                                   \
  }
#define SOFTEN_ALIKE(name, end, attribute) SOFTEN(0, name, end, attribute)
#define SOFTEN_FUSED(name, end, attribute) SOFTEN(1, name, end, attribute)
TN__AVX2_LOOPS(SOFTEN_ALIKE, soften)
TN__FUSED_LOOPS(SOFTEN_FUSED, soften)

/* ---- loops for masks ---- */

/* Bit i of bits[k] tells whether the mask of row i and key k is `right`. */
TN__INLINED void mark_rows(const uint8_t *mask, int64_t row, int64_t key, int64_t rows, int64_t keys, bool right,
                           uint32_t *bits)
{
  const uint8_t flip = !right;
  memset(bits, 0, (size_t)keys * sizeof *bits);
  for (int64_t i = 0; i < (row == 0 ? 1 : rows); i++, mask += row) {
    if (key == 1)
      for (int64_t k = 0; k < keys; k++) bits[k] |= (uint32_t)((mask[k] != 0) ^ flip) << i;
    else
      for (int64_t k = 0; k < keys; k++) bits[k] |= (uint32_t)((mask[k * key] != 0) ^ flip) << i;
  }
  if (row == 0)
    for (int64_t k = 0; k < keys; k++) bits[k] = 0 - bits[k];
}

TN__INLINED void take_marked(const uint32_t *bits, int64_t keys, const float *other, int64_t flat, float *scores)
{
  for (int64_t k = 0; k < keys; k++, scores += LANES, other += flat * LANES) {
    if (bits[k] == 0) continue;
    if (flat != 0)
      for (uint32_t i = 0; i < LANES; i++) scores[i] = (bits[k] >> i & 1u) != 0 ? other[i] : scores[i];
    else
      for (uint32_t i = 0; i < LANES; i++) scores[i] = (bits[k] >> i & 1u) != 0 ? other[0] : scores[i];
  }
}

typedef void (*mark_fn)(const uint8_t *mask, int64_t row, int64_t key, int64_t rows, int64_t keys, bool right,
                        uint32_t *bits);
typedef void (*take_fn)(const uint32_t *bits, int64_t keys, const float *other, int64_t flat, float *scores);
static void mark(const uint8_t *mask, int64_t row, int64_t key, int64_t rows, int64_t keys, bool right, uint32_t *bits)
{
  mark_rows(mask, row, key, rows, keys, right, bits);
}
static void take(const uint32_t *bits, int64_t keys, const float *other, int64_t flat, float *scores)
{
  take_marked(bits, keys, other, flat, scores);
}
#define MASKED(name, end, attribute)                                                                          \
  attribute static void mark_##end(const uint8_t *mask, int64_t row, int64_t key, int64_t rows, int64_t keys, \
                                   bool right, uint32_t *bits)                                                \
  {                                                                                                           \
    mark_rows(mask, row, key, rows, keys, right, bits);                                                       \
  }                                                                                                           \
  attribute static void take_##end(const uint32_t *bits, int64_t keys, const float *other, int64_t flat,      \
                                   float *scores)                                                             \
  {                                                                                                           \
    take_marked(bits, keys, other, flat, scores);                                                             \
  }
TN__AVX2_LOOPS(MASKED, 0)

/* ---- loops for single rows ---- */

#define SUMS 16 /* of a row, added together at the end (tn__add_lanes) */

/* The scores of one row: its products with keys that are `row` elements apart. */
TN__INLINED void score_row(const int fused, const float *query, const float *key, int64_t row, int64_t keys,
                           int64_t depth, float *scores)
{
  for (int64_t k = 0; k < keys; k++, key += row) {
    float sums[SUMS] = { 0 };
    int64_t d = 0;
    for (; d + SUMS <= depth; d += SUMS)
      for (int i = 0; i < SUMS; i++) sums[i] = TN__MADD(fused, query[d + i], key[d + i], sums[i]);
    for (int i = 0; d < depth; d++, i++) sums[i] = TN__MADD(fused, query[d], key[d], sums[i]);
    scores[k] = tn__add_lanes(sums);
  }
}

/* Replaces the scores of one row by their exponentials, less the largest one, and returns their sum. */
TN__INLINED float soften_row(const int fused, float *scores, int64_t keys)
{
  float most = -INFINITY, sums[SUMS] = { 0 };
  for (int64_t k = 0; k < keys; k++) most = scores[k] > most ? scores[k] : most;
  if (most == -INFINITY) return NAN;
  TN__IVDEP
  for (int64_t k = 0; k < keys; k++) scores[k] = tn__expf_below_by(fused, scores[k] - most);
  int64_t k = 0;
  for (; k + SUMS <= keys; k += SUMS)
    for (int i = 0; i < SUMS; i++) sums[i] += scores[k + i];
  for (int i = 0; k < keys; k++, i++) sums[i] += scores[k];
  return tn__add_lanes(sums);
}

typedef void (*score_fn)(const float *query, const float *key, int64_t row, int64_t keys, int64_t depth, float *scores);
typedef float (*soften_row_fn)(float *scores, int64_t keys);
static void score_one(const float *query, const float *key, int64_t row, int64_t keys, int64_t depth, float *scores)
{
  score_row(0, query, key, row, keys, depth, scores);
}
static float soften_one(float *scores, int64_t keys) { return soften_row(0, scores, keys); }
#define ONE(fused, end, attribute)                                                                                 \
  attribute static void score_one_##end(const float *query, const float *key, int64_t row, int64_t keys,           \
                                        int64_t depth, float *scores)                                              \
  {                                                                                                                \
    score_row(fused, query, key, row, keys, depth, scores);                                                        \
  }                                                                                                                \
  attribute static float soften_one_##end(float *scores, int64_t keys) { return soften_row(fused, scores, keys); }
TN__AVX2_LOOPS(ONE, 0)
TN__FUSED_LOOPS(ONE, 1)

/* ---- states ---- */

enum { QUERY, KEY, VALUE, OPERANDS };

typedef struct perm {
  int32_t rank; /* 0: as stored */
  int8_t at[TN_MAX_RANK];
} perm;

/* fn is NULL for a Select, which has two arguments: a mask, and the value that is taken where it is `right`. */
typedef struct step {
  tn__binary_fn fn;
  uint32_t arg;
  bool right; /* the scores are the step's second operand */
} step;

typedef struct attention_state {
  perm in[OPERANDS], out;
  int64_t repeat[OPERANDS];
  float scale;
  uint32_t n_steps, n_args;
  step steps[MOST_STEPS];
  uint8_t sizes[MOST_ARGS]; /* of an element */
} attention_state;

static tn_status read_perm(const tn_operation *op, const char *name, perm *out, tn_error *err)
{
  const int64_t *list;
  size_t n;
  unsigned seen = 0;
  tn_status st = tn_operation_attr_ints(op, name, &list, &n, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < n && n <= TN_MAX_RANK; i++) {
    if (list[i] >= 0 && list[i] < (int64_t)n) seen |= 1u << list[i];
    out->at[i] = (int8_t)list[i];
  }
  if (n == 1 || n > TN_MAX_RANK || seen != (1u << n) - 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnAttention: %s is not a permutation of two or more dimensions",
                        name);
  out->rank = (int32_t)n;
  return TN_OK;
}

static tn_status read_step(const tn_operation *op, uint32_t i, step *out, tn_error *err)
{
  static const char *const known[] = { "AddV2", "Sub", "Mul", "RealDiv" };
  const char *name;
  size_t size;
  tn_status st = tn_operation_attr_string_at(op, "steps", i, &name, &size, NULL, err);
  if (st != TN_OK) return st;
  if (size == strlen("Select") && memcmp(name, "Select", size) == 0) return TN_OK;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (strlen(known[k]) != size || memcmp(known[k], name, size) != 0) continue;
    const tn__binary_loop *loop = tn__binary_loop_of(known[k], op);
    if (loop == NULL) return tn__no_kernel(err, op, tn_operation_input_dtype(op, 0));
    out->fn = loop->fn[tn__vectors()];
    return TN_OK;
  }
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "_TnAttention: step %u is '%.*s', wanted AddV2, Sub, Mul, RealDiv or Select", (unsigned)i,
                      (int)(size > 99 ? 99 : size), name);
}

/* The next argument, which must be of this dtype. */
static tn_status read_arg(const tn_operation *op, attention_state *s, tn_dtype wanted, tn_error *err)
{
  const size_t have = tn_operation_n_inputs(op) - OPERANDS;
  if (s->n_args == MOST_ARGS || s->n_args >= have)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "_TnAttention: %zu arguments, wanted one or two for each step, at most %d", have, MOST_ARGS);
  const tn_dtype dtype = tn_operation_input_dtype(op, OPERANDS + s->n_args);
  if (dtype != wanted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnAttention: argument %u is %s, wanted %s", (unsigned)s->n_args,
                        tn_dtype_name(dtype), tn_dtype_name(wanted));
  s->sizes[s->n_args++] = (uint8_t)tn_dtype_size(dtype);
  return TN_OK;
}

static tn_status read_steps(const tn_operation *op, attention_state *s, tn_error *err)
{
  const int64_t *right;
  const char *name;
  size_t n = 0, n_right, size;
  tn_status st = tn_operation_attr_string_at(op, "steps", 0, &name, &size, &n, err);
  if (st == TN_OK) st = tn_operation_attr_ints(op, "right", &right, &n_right, err);
  if (st != TN_OK) return st;
  if (n > MOST_STEPS || n_right != n)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "_TnAttention: %zu steps and %zu sides, wanted as many, at most %d", n, n_right, MOST_STEPS);
  s->n_steps = (uint32_t)n;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    s->steps[i] = (step){ .arg = s->n_args, .right = right[i] != 0 };
    st = read_step(op, i, &s->steps[i], err);
    if (st == TN_OK && s->steps[i].fn == NULL) st = read_arg(op, s, TN_BOOL, err);
    if (st == TN_OK) st = read_arg(op, s, TN_FLOAT, err);
  }
  if (st == TN_OK && tn_operation_n_inputs(op) != OPERANDS + s->n_args)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "_TnAttention: %zu arguments, the steps have %u",
                      tn_operation_n_inputs(op) - OPERANDS, (unsigned)s->n_args);
  return st;
}

static tn_status read_repeat(const tn_operation *op, const char *name, int64_t *out, tn_error *err)
{
  *out = tn__attr_int(op, name, 1);
  return *out >= 1 ? TN_OK : tn_error_set(err, TN_INVALID_ARGUMENT, "_TnAttention: %s is %lld, wanted 1 or more", name,
                                          (long long)*out);
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  attention_state s = { .repeat = { 1, 1, 1 }, .scale = tn__attr_float(op, "scale", 1) };
  tn_status st = read_perm(op, "query_perm", &s.in[QUERY], err);
  if (st == TN_OK) st = read_perm(op, "key_perm", &s.in[KEY], err);
  if (st == TN_OK) st = read_perm(op, "value_perm", &s.in[VALUE], err);
  if (st == TN_OK) st = read_perm(op, "out_perm", &s.out, err);
  if (st == TN_OK) st = read_repeat(op, "key_repeat", &s.repeat[KEY], err);
  if (st == TN_OK) st = read_repeat(op, "value_repeat", &s.repeat[VALUE], err);
  if (st == TN_OK) st = read_steps(op, &s, err);
  return st == TN_OK ? tn__keep_state(&s, sizeof s, "attention", state, err) : st;
}

static void destroy(void *state) { tn__free(state, sizeof(attention_state)); }

/* ---- shapes ---- */

/* A tensor in canonical order: batch dimensions, then a matrix. A dimension of size 1 that others broadcast has stride
 * 0. */
typedef struct matrices {
  int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK];
  int64_t repeat; /* of each index of the last batch dimension */
} matrices;

/* All tensors have `rank` dimensions; missing ones are 1. Then come those of the arguments. */
typedef struct attention_plan {
  size_t bytes;
  int32_t rank;
  int64_t batch, rows, keys, depth, size;
  int64_t blocks; /* of rows, in a matrix */
  bool by_row;    /* see FEW_ROWS */
  const tn__gemm_kernel *kernel;
  int64_t padded; /* `size`, rounded up to whole panels */
  tn__slots slots;
  matrices query, key, value, out;
  matrices args[];
} attention_plan;

static bool arrange(const perm *p, int64_t repeat, const tn_view *view, int32_t rank, matrices *out)
{
  int64_t strides[TN_MAX_RANK], next = 1;
  const int32_t own = view->rank, skip = rank - own;
  if (own > rank || (p != NULL && p->rank != 0 && p->rank != own)) return false;
  for (int32_t i = own - 1; i >= 0; i--) {
    strides[i] = next;
    next *= view->dims[i];
  }
  for (int32_t i = 0; i < rank; i++) {
    int32_t at = i < skip ? -1 : i - skip;
    if (at >= 0 && p != NULL && p->rank != 0) at = p->at[at];
    out->dims[i] = at < 0 ? 1 : view->dims[at];
    out->strides[i] = out->dims[i] == 1 ? 0 : strides[at];
  }
  out->repeat = repeat;
  return repeat == 1 || (rank > 2 && !__builtin_mul_overflow(out->dims[rank - 3], repeat, &out->dims[rank - 3]));
}

/* Joins a dimension with one that it broadcasts with. */
static bool join(int64_t *dim, int64_t other)
{
  if (*dim != other && *dim != 1 && other != 1) return false;
  if (*dim == 1) *dim = other;
  return true;
}

static tn_status mismatch(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  const tn_view *query = &ctx->inputs[QUERY], *other = &ctx->inputs[i];
  char x[SHAPE_TEXT], y[SHAPE_TEXT];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnAttention: input %u of shape %s does not fit the query of shape %s",
                      (unsigned)i, tn__format_shape(x, sizeof x, other->dims, other->rank),
                      tn__format_shape(y, sizeof y, query->dims, query->rank));
}

/* Sets all sizes but those of the scratch. */
static tn_status measure(const tn_prepare_ctx *ctx, attention_plan *p, tn_error *err)
{
  const attention_state *s = ctx->state;
  const int32_t row = p->rank - 2, column = p->rank - 1;
  matrices *in[] = { &p->query, &p->key, &p->value };
  for (uint32_t i = 0; i < ctx->n_inputs; i++) {
    bool ok = arrange(i < OPERANDS ? &s->in[i] : NULL, i < OPERANDS ? s->repeat[i] : 1, &ctx->inputs[i], p->rank,
                      i < OPERANDS ? in[i] : &p->args[i - OPERANDS]);
    if (!ok || (i < OPERANDS && ctx->inputs[i].rank < 2)) return mismatch(ctx, i, err);
  }
  p->depth = p->query.dims[column];
  if (p->key.dims[column] != p->depth) return mismatch(ctx, KEY, err);
  p->rows = p->query.dims[row];
  p->out.repeat = 1;
  p->keys = p->key.dims[row];
  for (int32_t d = 0; d < row; d++) p->out.dims[d] = 1;
  for (uint32_t i = 0; i < ctx->n_inputs; i++) {
    const matrices *m = i < OPERANDS ? in[i] : &p->args[i - OPERANDS];
    bool ok = true;
    for (int32_t d = 0; d < row; d++) ok &= join(&p->out.dims[d], m->dims[d]);
    if (i >= OPERANDS) ok = join(&p->rows, m->dims[row]) && join(&p->keys, m->dims[column]) && ok;
    if (!ok) return mismatch(ctx, i, err);
  }
  if (p->value.dims[row] != p->keys) return mismatch(ctx, VALUE, err);
  p->size = p->value.dims[column];
  p->out.dims[row] = p->rows;
  p->out.dims[column] = p->size;
  p->batch = 1;
  for (int32_t d = 0; d < row; d++) p->batch *= p->out.dims[d];
  return TN_OK;
}

/* Sets the output's shape and the strides of the canonical one. */
static tn_status set_output(tn_prepare_ctx *ctx, attention_plan *p, tn_error *err)
{
  const perm *to = &((const attention_state *)ctx->state)->out;
  int64_t dims[TN_MAX_RANK], next = 1;
  if (to->rank != 0 && to->rank != p->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnAttention: out_perm has %d dimensions, the output %d",
                        (int)to->rank, (int)p->rank);
  for (int32_t i = 0; i < p->rank; i++) dims[to->rank == 0 ? i : to->at[i]] = p->out.dims[i];
  for (int32_t i = p->rank - 1; i >= 0; i--) {
    for (int32_t c = 0; c < p->rank; c++)
      if ((to->rank == 0 ? c : to->at[c]) == i) p->out.strides[c] = next;
    next *= dims[i];
  }
  return tn_prepare_output(ctx, 0, dims, p->rank, err);
}

/* ---- scratch of a part ---- */

typedef struct slot {
  float *query, *scores, *spread, *values, *sums;
} slot;

/* Returns the number of floats. */
static size_t place_slot(const attention_plan *p, float *base, slot *out)
{
  const size_t block = (size_t)(p->keys < KEYS ? p->keys : KEYS) * LANES;
  const size_t sizes[] = { (size_t)p->depth * LANES, block, block, p->by_row ? 0 : (size_t)(p->keys * p->padded),
                           (size_t)p->padded * LANES };
  float **const parts[] = { &out->query, &out->scores, &out->spread, &out->values, &out->sums };
  size_t at = 0;
  for (int i = 0; i < 5; i++) {
    if (base != NULL) *parts[i] = base + at;
    at += (sizes[i] + 15) / 16 * 16;
  }
  return at;
}

/* Whether the elements of rows are adjacent. */
static bool are_plain(const attention_plan *p)
{
  const int32_t column = p->rank - 1;
  return (p->query.strides[column] == 1 || p->depth == 1) && (p->key.strides[column] == 1 || p->depth == 1) &&
         p->value.strides[column] == 1 && p->out.strides[column] == 1;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const attention_state *s = ctx->state;
  const size_t bytes = sizeof(attention_plan) + s->n_args * sizeof(matrices);
  attention_plan *p = tn__zalloc(bytes);
  if (p == NULL) return tn__no_memory(err, "attention plan", bytes);
  ctx->shape_state = p;
  p->bytes = bytes;
  for (uint32_t i = 0; i < ctx->n_inputs; i++)
    if (ctx->inputs[i].rank > p->rank) p->rank = ctx->inputs[i].rank;
  if (p->rank < 2) return mismatch(ctx, QUERY, err);
  tn_status st = measure(ctx, p, err);
  if (st == TN_OK) st = set_output(ctx, p, err);
  if (st != TN_OK) return st;
  p->blocks = (p->rows + LANES - 1) / LANES;
  p->kernel = tn__gemm_kernel_find(TN__GEMM_F32, LANES, ctx->reproducible);
  p->padded = (p->size + p->kernel->nr - 1) / p->kernel->nr * p->kernel->nr;
  p->by_row = p->rows <= FEW_ROWS && p->keys <= KEYS * LANES && p->size % p->kernel->nr == 0 && are_plain(p);
  size_t bytes_of_slot;
  slot none;
  if (!tn__size_mul(place_slot(p, NULL, &none), sizeof(float), &bytes_of_slot) ||
      !tn__slots_plan(&p->slots, ctx, bytes_of_slot, &ctx->scratch_bytes))
    return tn__no_memory(err, "attention", SIZE_MAX);
  const double scores = (double)p->batch * (double)p->rows * (double)p->keys;
  ctx->cost_ns = scores * ((double)(p->depth + p->size) * NS_PER_TERM + NS_PER_SCORE);
  return TN_OK;
}

static void destroy_plan(void *plan) { tn__free(plan, ((attention_plan *)plan)->bytes); }

/* ---- a block ---- */

typedef struct run {
  const attention_state *state;
  const attention_plan *plan;
  soften_fn soften;
  score_fn score_one;
  soften_row_fn soften_one;
  mark_fn mark;
  take_fn take;
  const float *query, *key, *value;
  tn_view *const *args;
  float *out;
  char *scratch;
} run;

/* Where the matrices of a batch begin. */
typedef struct place {
  const float *query, *key, *value;
  const char *args[MOST_ARGS];
  float *out;
} place;

static int64_t offset_of(const attention_plan *p, const matrices *m, int64_t batch)
{
  int64_t offset = 0;
  for (int32_t d = p->rank - 3; d >= 0; d--) {
    const int64_t at = batch % p->out.dims[d];
    offset += (d == p->rank - 3 ? at / m->repeat : at) * m->strides[d];
    batch /= p->out.dims[d];
  }
  return offset;
}

static place find_place(const run *r, int64_t batch)
{
  const attention_plan *p = r->plan;
  place at = { r->query + offset_of(p, &p->query, batch), r->key + offset_of(p, &p->key, batch),
               r->value + offset_of(p, &p->value, batch), { NULL }, r->out + offset_of(p, &p->out, batch) };
  for (uint32_t i = 0; i < r->state->n_args; i++)
    at.args[i] = (const char *)r->args[i]->data + offset_of(p, &p->args[i], batch) * r->state->sizes[i];
  return at;
}

/* Copies rows of the query, times the scale, to panels, each with all columns of `width` rows, which are lanes:
 * to[panel][column][lane]. Lanes past the last row are 0. */
static void pack_rows(const attention_plan *p, float scale, const float *from, int64_t rows, float *to)
{
  const int64_t row = p->query.strides[p->rank - 2], column = p->query.strides[p->rank - 1], width = p->kernel->nr;
  for (int64_t i = 0; i < LANES; i++) {
    float *panel = to + i / width * p->depth * width + i % width;
    for (int64_t c = 0; c < p->depth; c++) panel[c * width] = i < rows ? from[i * row + c * column] * scale : 0;
  }
}

/* Copies values to panels of `width` columns: to[panel][key][column]. */
static void pack_values(const attention_plan *p, const float *from, float *to)
{
  const int64_t width = p->kernel->nr, row = p->value.strides[p->rank - 2], column = p->value.strides[p->rank - 1];
  for (int64_t c = 0; c < p->padded; c += width, to += p->keys * width) {
    const int64_t n = p->size - c < width ? p->size - c : width;
    for (int64_t k = 0; k < p->keys; k++) {
      const float *line = from + k * row + c * column;
      float *panel = to + k * width;
      if (column == 1 && n == width) memcpy(panel, line, (size_t)width * sizeof(float));
      else
        for (int64_t i = 0; i < width; i++) panel[i] = i < n ? line[i * column] : 0;
    }
  }
}

static void make_scores(const attention_plan *p, const float *keys, int64_t n, int64_t rows, const slot *s)
{
  const int64_t row = p->key.strides[p->rank - 2], column = p->key.strides[p->rank - 1];
  const tn__gemm_kernel *kernel = p->kernel;
  tn__gemm_tile t = { .first = true,
                      .columns = (rows + kernel->nr - 1) / kernel->nr * kernel->nr,
                      .outer = 1,
                      .inner = 1,
                      .terms = p->depth,
                      .step = column,
                      .b_row = kernel->nr,
                      .panel = p->depth * kernel->nr,
                      .b = s->query };
  if (p->depth == 0) memset(s->scores, 0, (size_t)(n * LANES) * sizeof(float));
  for (int64_t k = 0; k < n && p->depth > 0; k += t.rows) {
    t.rows = (int)(n - k < kernel->mr ? n - k : kernel->mr);
    for (int i = 0; i < t.rows; i++) {
      t.a[i] = keys + (k + i) * row;
      t.c[i] = s->scores + (k + i) * LANES;
    }
    kernel->run(&t);
  }
}

/* The elements of a step's argument for each score of a block. */
static void spread(const float *arg, int64_t row, int64_t key, int64_t rows, int64_t keys, float *to)
{
  for (int64_t k = 0; k < keys; k++, arg += key, to += LANES) {
    if (row == 0)
      for (int64_t i = 0; i < LANES; i++) to[i] = *arg;
    else
      for (int64_t i = 0; i < LANES; i++) to[i] = i < rows ? arg[i * row] : 0;
  }
}

/* Takes other[0], or the element of `other` at the same place if it is flat, for scores where the mask is `right`. */
static void select_block(const run *r, const place *at, const step *how, int64_t first_row, int64_t rows,
                         int64_t first_key, int64_t keys, const float *other, int64_t flat, float *scores)
{
  const matrices *m = &r->plan->args[how->arg];
  const int64_t row = m->strides[r->plan->rank - 2], key = m->strides[r->plan->rank - 1];
  const uint8_t *mask = (const uint8_t *)at->args[how->arg] + first_row * row + first_key * key;
  uint32_t bits[KEYS];
  r->mark(mask, row, key, rows, keys, how->right, bits);
  r->take(bits, keys, other, flat, scores);
}

static void apply_steps(const run *r, const place *at, int64_t first_row, int64_t rows, int64_t first_key, int64_t keys,
                        const slot *s)
{
  for (uint32_t i = 0; i < r->state->n_steps; i++) {
    const step *how = &r->state->steps[i];
    const bool select = how->fn == NULL;
    const matrices *m = &r->plan->args[how->arg + select];
    const int64_t row = m->strides[r->plan->rank - 2], key = m->strides[r->plan->rank - 1], n = keys * LANES;
    const float *arg = (const float *)(const void *)at->args[how->arg + select] + first_row * row + first_key * key;
    const int64_t flat = row != 0 || key != 0;
    if (flat) {
      spread(arg, row, key, rows, keys, s->spread);
      arg = s->spread;
    }
    if (select) select_block(r, at, how, first_row, rows, first_key, keys, arg, flat, s->scores);
    else if (how->right) how->fn(arg, flat, s->scores, 1, s->scores, n);
    else how->fn(s->scores, 1, arg, flat, s->scores, n);
  }
}

static void scale_sums(const attention_plan *p, int64_t rows, const float *factor, float *sums)
{
  for (int64_t i = 0; i < rows; i++)
    if (factor[i] != 1)
      for (int64_t c = 0; c < p->padded; c++) sums[i * p->padded + c] *= factor[i];
}

/* Panel by panel, so that each stays in the L1 cache; the rows in groups of about equal size. A row or two would wait
 * for their own sums in one panel, so they get all at once. */
static void add_values(const attention_plan *p, int64_t rows, int64_t first_key, int64_t keys, const slot *s)
{
  const tn__gemm_kernel *kernel = p->kernel;
  const int64_t groups = (rows + kernel->mr - 1) / kernel->mr, most = (rows + groups - 1) / groups;
  const int64_t columns = rows <= 2 ? p->padded : kernel->nr;
  tn__gemm_tile t = { .first = first_key == 0, .columns = columns, .outer = 1, .inner = 1, .terms = keys,
                      .step = LANES, .b_row = kernel->nr, .panel = p->keys * kernel->nr };
  for (int64_t c = 0; c < p->padded; c += columns) {
    t.b = s->values + c * p->keys + first_key * kernel->nr;
    for (int64_t row = 0; row < rows; row += t.rows) {
      t.rows = (int)(rows - row < most ? rows - row : most);
      for (int i = 0; i < t.rows; i++) {
        t.a[i] = s->scores + row + i;
        t.c[i] = s->sums + (row + i) * p->padded + c;
      }
      kernel->run(&t);
    }
  }
}

/* A row whose scores are all -infinity has no result. */
static void store(const attention_plan *p, const row_stats *stats, int64_t rows, const float *sums, float *out)
{
  const int64_t row = p->out.strides[p->rank - 2], column = p->out.strides[p->rank - 1];
  for (int64_t i = 0; i < rows; i++, sums += p->padded) {
    const float by = stats->most[i] == -INFINITY ? NAN : 1 / stats->sum[i];
    float *to = out + i * row;
    if (column == 1)
      for (int64_t c = 0; c < p->size; c++) to[c] = sums[c] * by;
    else
      for (int64_t c = 0; c < p->size; c++) to[c * column] = sums[c] * by;
  }
}

static void run_block(const run *r, const place *at, int64_t first, const slot *s)
{
  const attention_plan *p = r->plan;
  const int64_t rows = p->rows - first < LANES ? p->rows - first : LANES;
  const int64_t key_row = p->key.strides[p->rank - 2];
  row_stats stats = { .sum = { 0 } };
  for (int i = 0; i < LANES; i++) stats.most[i] = -INFINITY;
  pack_rows(p, r->state->scale, at->query + first * p->query.strides[p->rank - 2], rows, s->query);
  for (int64_t key = 0, n; key < p->keys; key += n) {
    n = p->keys - key < KEYS ? p->keys - key : KEYS;
    make_scores(p, at->key + key * key_row, n, rows, s);
    apply_steps(r, at, first, rows, key, n, s);
    for (int64_t i = 0; i < rows; i += GROUP)
      r->soften(s->scores + i, n, stats.most + i, stats.sum + i, stats.factor + i);
    if (key > 0) scale_sums(p, rows, stats.factor, s->sums);
    add_values(p, rows, key, n, s);
  }
  store(p, &stats, rows, s->sums, at->out + first * p->out.strides[p->rank - 2]);
}

/* ---- a row ---- */

static void apply_step_to_row(const run *r, const place *at, const step *how, int64_t number, float *scores)
{
  const attention_plan *p = r->plan;
  const int32_t row = p->rank - 2;
  const matrices *first = &p->args[how->arg], *m = how->fn == NULL ? first + 1 : first;
  const int64_t key = m->strides[row + 1];
  const float *arg = (const float *)(const void *)at->args[how->arg + (how->fn == NULL)] + number * m->strides[row];
  if (how->fn == NULL) {
    const uint8_t *mask = (const uint8_t *)at->args[how->arg] + number * first->strides[row];
    for (int64_t k = 0; k < p->keys; k++)
      scores[k] = (mask[k * first->strides[row + 1]] != 0) == how->right ? arg[k * key] : scores[k];
  } else if (how->right) how->fn(arg, key, scores, 1, scores, p->keys);
  else how->fn(scores, 1, arg, key, scores, p->keys);
}

static void run_row(const run *r, const place *at, int64_t number, const slot *s)
{
  const attention_plan *p = r->plan;
  const int32_t row = p->rank - 2;
  float *const out = at->out + number * p->out.strides[row], *scores = s->scores;
  const float *query = at->query + number * p->query.strides[row];
  if (r->state->scale != 1) {
    for (int64_t d = 0; d < p->depth; d++) s->query[d] = query[d] * r->state->scale;
    query = s->query;
  }
  r->score_one(query, at->key, p->key.strides[row], p->keys, p->depth, scores);
  for (uint32_t i = 0; i < r->state->n_steps; i++) apply_step_to_row(r, at, &r->state->steps[i], number, scores);
  const float by = 1 / r->soften_one(scores, p->keys);
  tn__gemm_tile t = { .rows = 1, .first = true, .columns = p->size, .outer = 1, .inner = 1, .terms = p->keys,
                      .step = 1, .b_row = p->value.strides[row], .panel = p->kernel->nr, .a = { scores },
                      .b = at->value, .c = { out } };
  p->kernel->run(&t);
  for (int64_t c = 0; c < p->size; c++) out[c] *= by;
}

/* ---- the kernel ---- */

/* Items are blocks of rows, matrix after matrix. */
static void run_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const attention_plan *p = r->plan;
  void *taken = tn__slots_take(&p->slots, r->scratch);
  slot s;
  place at = { NULL };
  place_slot(p, taken, &s);
  for (int64_t i = begin; i < end; i++) {
    if (i == begin || i % p->blocks == 0) {
      at = find_place(r, i / p->blocks);
      if (!p->by_row) pack_values(p, at.value, s.values);
    }
    if (!p->by_row) run_block(r, &at, i % p->blocks * LANES, &s);
    for (int64_t row = 0; p->by_row && row < p->rows; row++) run_row(r, &at, row, &s);
  }
  tn__slots_give(&p->slots, r->scratch, taken);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  static const soften_fn softens[] = TN__FUSED_FNS(soften);
  static const score_fn scores[] = TN__FUSED_FNS(score_one);
  static const soften_row_fn rows[] = TN__FUSED_FNS(soften_one);
  static const mark_fn marks[] = TN__AVX2_FNS(mark);
  static const take_fn takes[] = TN__AVX2_FNS(take);
  const int kind = tn__vectors_for(ctx->reproducible);
  const attention_plan *p = ctx->shape_state;
  const tn_view *out = ctx->outputs[0];
  if (out->count == 0) return TN_OK;
  if (p->keys == 0) {
    memset(out->data, 0, (size_t)out->count * sizeof(float));
    return TN_OK;
  }
  tn__slots_begin(&p->slots, ctx->scratch);
  run r = { ctx->state, p, softens[kind], scores[kind], rows[kind], marks[kind], takes[kind], ctx->inputs[QUERY]->data,
            ctx->inputs[KEY]->data, ctx->inputs[VALUE]->data, ctx->inputs + OPERANDS, out->data, ctx->scratch };
  const int64_t n = p->batch * p->blocks, parts = (int64_t)p->slots.n * PARTS_OF_THREAD;
  const double cost = (double)LANES * (double)p->keys * ((double)(p->depth + p->size) * NS_PER_TERM + NS_PER_SCORE);
  tn_parallel_for(ctx, n, (n + parts - 1) / parts, cost, run_part, &r);
  return TN_OK;
}

/* The size of a dimension that others broadcast; -1 if it is not known. */
static int64_t joined(int64_t dim, int64_t other)
{
  if (dim > 1 || other > 1) return dim > other ? dim : other;
  if (dim == 0 || other == 0) return dim < 0 || other < 0 ? -1 : 0;
  return dim < 0 || other < 0 ? -1 : 1;
}

/* The dimensions of an input in canonical order; false if they do not fit a permutation. */
static bool infer_matrices(const tn_infer_ctx *ctx, const perm *p, uint32_t i, int32_t rank, int64_t *dims)
{
  tn__shape s;
  tn__infer_get(ctx, i, &s);
  if (p->rank != 0 && p->rank != s.rank) return false;
  for (int32_t d = 0; d < rank; d++) {
    int32_t at = d - (rank - s.rank);
    if (at >= 0 && p->rank != 0) at = p->at[at];
    dims[d] = at < 0 ? 1 : s.dims[at];
  }
  return true;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  const uint32_t n = (uint32_t)tn_operation_n_inputs(op);
  tn__shape s, out = { .rank = 0 };
  perm perms[OPERANDS + 1] = { { 0 } };
  static const char *const names[] = { "query_perm", "key_perm", "value_perm", "out_perm" };
  tn_status st = TN_OK;
  for (uint32_t i = 0; i < n && out.rank >= 0; i++) {
    tn__infer_get(ctx, i, &s);
    out.rank = s.rank < 0 || s.rank > out.rank ? s.rank : out.rank;
  }
  for (int i = 0; st == TN_OK && i <= OPERANDS; i++) st = read_perm(op, names[i], &perms[i], err);
  const int64_t repeat[OPERANDS] = { 1, tn__attr_int(op, "key_repeat", 1), tn__attr_int(op, "value_repeat", 1) };
  const perm *to = &perms[OPERANDS];
  if (st != TN_OK || out.rank < 2 || (to->rank != 0 && to->rank != out.rank)) out.rank = -1;
  int64_t all[TN_MAX_RANK], dims[TN_MAX_RANK];
  const int32_t row = out.rank - 2;
  for (int32_t d = 0; d < out.rank; d++) all[d] = 1;
  for (uint32_t i = 0; i < n && out.rank >= 0; i++) {
    static const perm none = { 0 };
    if (!infer_matrices(ctx, i < OPERANDS ? &perms[i] : &none, i, out.rank, dims)) {
      out.rank = -1;
      break;
    }
    if (i < OPERANDS && repeat[i] > 1 && row > 0 && dims[row - 1] >= 0 &&
        __builtin_mul_overflow(dims[row - 1], repeat[i], &dims[row - 1]))
      dims[row - 1] = -1;
    for (int32_t d = 0; d < row; d++) all[d] = joined(all[d], dims[d]);
    if (i == QUERY || i >= OPERANDS) all[row] = joined(all[row], dims[row]);
    if (i == VALUE) all[row + 1] = dims[row + 1];
  }
  for (int32_t d = 0; d < out.rank; d++) out.dims[to->rank == 0 ? d : to->at[d]] = all[d];
  return st == TN_OK ? tn__infer_set(ctx, 0, &out, err) : st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "_TnAttention", .inputs = "query: T, key: T, value: T, args: Targs",
    .outputs = "out: T",
    .attrs = "T: {float}; Targs: list(type) >= 0; scale: float = 1; key_repeat: int = 1; value_repeat: int = 1; "
             "steps: list(string) = []; right: list(int) = []; query_perm: list(int) = []; "
             "key_perm: list(int) = []; value_perm: list(int) = []; out_perm: list(int) = []",
    .infer = infer, .summary = "softmax of scores times values, fused from the operations that exporters write" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "_TnAttention", .device = "CPU", .types = "T=float",
    .name = "attention_cpu", .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare,
    .destroy_shape_state = destroy_plan, .compute = compute },
};

TN_OP_FAMILY(attention)
