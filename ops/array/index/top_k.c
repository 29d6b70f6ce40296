/* SPDX-License-Identifier: Apache-2.0 */
/* The largest elements of a row and their indices: TopK TopKV2 NthElement InTopK InTopKV2. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <math.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/order.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <string.h>

static tn_status order_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = (void *)tn__order_of(tn_operation_input_dtype(op, 0)); /* only read through it */
  return *state != NULL ? TN_OK : tn__no_kernel(err, op, tn_operation_input_dtype(op, 0));
}

/* If a dimension is 0, the product of the others may overflow; it wraps, and is not used. */
static int64_t rows_of(const tn_view *x)
{
  uint64_t rows = 1;
  for (int32_t i = 0; i < x->rank - 1; i++) rows *= (uint64_t)x->dims[i];
  return (int64_t)rows;
}

/* Calls fn for all rows, on several threads if that pays. */
static void for_rows(tn_kernel_ctx *ctx, int64_t rows, int64_t n, void (*fn)(void *user, int64_t begin, int64_t end),
                     void *user)
{
  if (rows > 0 && n <= INT64_MAX / rows && rows * n <= TN__SERIAL_ELEMENTS)
    fn(user, 0, rows);
  else
    tn_parallel_for(ctx, rows, TN__SERIAL_ELEMENTS / (n + 1) + 1, 2 * (double)n, fn, user);
}

/* ---- TopK ---- */

/* An element's rank in the order: larger keys first, equal keys by ascending index. Keys of 32 bits
 * and indices below 2^32 are packed into one number. */
typedef uint64_t narrow_place;
typedef struct wide_place {
  uint64_t key, index;
} wide_place;

#define NARROW_MAKE(key, index) ((uint64_t)(key) << 32 | (uint32_t)~(uint32_t)(index))
#define NARROW_KEY(p) ((uint32_t)((p) >> 32))
#define NARROW_INDEX(p) ((int64_t)(uint32_t)~(uint32_t)(p))
#define NARROW_AFTER(a, b) ((a) < (b))
#define WIDE_MAKE(key_, index_) ((wide_place){ (key_), (uint64_t)(index_) })
#define WIDE_KEY(p) ((p).key)
#define WIDE_INDEX(p) ((int64_t)(p).index)
#define WIDE_AFTER(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).index > (b).index))

typedef struct top_job {
  const tn__order *order;
  const char *in;
  char *values;
  tn_view *indices;
  void *places; /* k per row */
  int64_t n, k;
} top_job;

static void put_index(tn_view *out, int64_t at, int64_t index)
{
  if (out->dtype == TN_INT32) ((int32_t *)out->data)[at] = (int32_t)index;
  else if (out->dtype == TN_INT64) ((int64_t *)out->data)[at] = index;
  else ((int16_t *)out->data)[at] = (int16_t)index;
}

/* The best k so far form a heap whose root is the last of them in the order. Elements are visited
 * by ascending index, so one whose key equals the root's is not inserted. At the end the roots are
 * moved to the back one by one, which leaves the array sorted. */
#define TOP(name, Key, Place, MAKE, KEY, INDEX, AFTER)                                                              \
  static void sift_##name(Place *heap, int64_t n, int64_t at)                                                       \
  {                                                                                                                 \
    Place p = heap[at];                                                                                             \
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {                                                     \
      if (child + 1 < n && AFTER(heap[child + 1], heap[child])) child++;                                            \
      if (!AFTER(heap[child], p)) break;                                                                            \
      heap[at] = heap[child];                                                                                       \
    }                                                                                                               \
    heap[at] = p;                                                                                                   \
  }                                                                                                                 \
  static bool collect_##name(const top_job *job, const void *row, Place *heap)                                      \
  {                                                                                                                 \
    Key keys[TN__ORDER_BLOCK];                                                                                      \
    int64_t k = job->k;                                                                                             \
    tn__poll poll = tn__poll_here();                                                                                \
    for (int64_t at = 0, m; at < job->n; at += m) {                                                                 \
      m = job->n - at < TN__ORDER_BLOCK ? job->n - at : TN__ORDER_BLOCK;                                            \
      if (tn__poll_over(&poll, 20 * m)) return false;                                                               \
      job->order->name(row, at, m, keys);                                                                           \
      int64_t i = 0;                                                                                                \
      for (; i < m && at + i < k; i++) heap[at + i] = MAKE(keys[i], at + i);                                        \
      if (i > 0 && at + i == k)                                                                                     \
        for (int64_t j = k / 2 - 1; j >= 0 && !tn__poll_over(&poll, 20); j--) sift_##name(heap, k, j);              \
      for (; i < m; i++) {                                                                                          \
        if (keys[i] <= KEY(heap[0])) continue;                                                                      \
        heap[0] = MAKE(keys[i], at + i);                                                                            \
        sift_##name(heap, k, 0);                                                                                    \
      }                                                                                                             \
    }                                                                                                               \
    for (int64_t left = k - 1; left > 0; left--) {                                                                  \
      if (tn__poll_over(&poll, 50)) return false;                                                                   \
      Place last = heap[0];                                                                                         \
      heap[0] = heap[left];                                                                                         \
      heap[left] = last;                                                                                            \
      sift_##name(heap, left, 0);                                                                                   \
    }                                                                                                               \
    return true;                                                                                                    \
  }                                                                                                                 \
  static void top_##name(void *user, int64_t begin, int64_t end)                                                    \
  {                                                                                                                 \
    const top_job *job = user;                                                                                      \
    size_t size = job->order->size;                                                                                 \
    for (int64_t r = begin; r < end; r++) {                                                                         \
      const char *row = job->in + (size_t)(r * job->n) * size;                                                      \
      Place *places = (Place *)job->places + r * job->k;                                                            \
      if (!collect_##name(job, row, places)) return; /* the step was stopped */                                     \
      char *values = job->values + (size_t)(r * job->k) * size;                                                     \
      for (int64_t i = 0; i < job->k; i++) {                                                                        \
        int64_t index = INDEX(places[i]);                                                                           \
        put_index(job->indices, r * job->k + i, index);                                                             \
        memcpy(values + (size_t)i * size, row + (size_t)index * size, size);                                        \
      }                                                                                                             \
    }                                                                                                               \
  }
TOP(narrow, uint32_t, narrow_place, NARROW_MAKE, NARROW_KEY, NARROW_INDEX, NARROW_AFTER)
TOP(wide, uint64_t, wide_place, WIDE_MAKE, WIDE_KEY, WIDE_INDEX, WIDE_AFTER)

/* The op's k: attribute of TopK, input 1 of TopKV2. */
static tn_status top_k_of(const tn_prepare_ctx *ctx, int64_t *k, tn_error *err)
{
  const char *op = tn_operation_type(ctx->op);
  *k = 0;
  if (ctx->n_inputs == 1) {
    *k = tn__attr_int(ctx->op, "k", 0);
    return TN_OK;
  }
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  if (st != TN_OK) return st;
  if (ctx->inputs[1].data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 1 is not known", op);
  *k = tn__index_at(&ctx->inputs[1], 0);
  return TN_OK;
}

static tn_status check_k(const char *op, int64_t k, int64_t n, tn_error *err)
{
  if (k < 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: k is %lld, wanted 0 or more", op, (long long)k);
  if (n >= 0 && k > n)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: k is %lld, the rows of input 0 have %lld elements", op,
                        (long long)k, (long long)n);
  return TN_OK;
}

/* Checks that indices in a row fit the output's dtype and, for narrow keys, 32 bits. */
static tn_status check_row(const tn_prepare_ctx *ctx, int64_t n, tn_error *err)
{
  tn_dtype dtype = tn_operation_output_dtype(ctx->op, 1);
  int64_t most = dtype == TN_INT32 ? INT32_MAX : UINT32_MAX;
  if (dtype == TN_INT16) most = INT16_MAX;
  if (n <= most) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: rows of %lld elements, at most %lld are possible with %s indices",
                      tn_operation_type(ctx->op), (long long)n, (long long)most, tn_dtype_name(dtype));
}

static tn_status top_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  const tn__order *order = ctx->state;
  int64_t k;
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = top_k_of(ctx, &k, err);
  if (st == TN_OK) st = check_k(tn_operation_type(ctx->op), k, x->dims[x->rank - 1], err);
  if (st == TN_OK) st = check_row(ctx, x->dims[x->rank - 1], err);
  if (st != TN_OK) return st;
  tn__shape s;
  tn__shape_set(&s, x->dims, x->rank);
  s.dims[s.rank - 1] = k;
  for (uint32_t i = 0; st == TN_OK && i < 2; i++) st = tn_prepare_output(ctx, i, s.dims, s.rank, err);
  size_t place = order->narrow != NULL ? sizeof(narrow_place) : sizeof(wide_place);
  size_t rows = k > 0 ? (size_t)rows_of(x) : 0;
  if (st == TN_OK && (!tn__size_mul(rows, (size_t)k, &ctx->scratch_bytes) ||
                      !tn__size_mul(ctx->scratch_bytes, place, &ctx->scratch_bytes)))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: too many elements", tn_operation_type(ctx->op));
  ctx->cost_ns = 50 + 2 * (double)x->count;
  return st;
}

static tn_status top_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *values = ctx->outputs[0];
  if (values->count == 0) return TN_OK;
  const tn__order *order = ctx->state;
  int64_t n = x->dims[x->rank - 1], k = values->dims[values->rank - 1];
  top_job job = { order, x->data, values->data, ctx->outputs[1], ctx->scratch, n, k };
  for_rows(ctx, rows_of(x), n, order->narrow != NULL ? top_narrow : top_wide, &job);
  return TN_OK;
}

static tn_status infer_top(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, scalar;
  const tn_operation *op = tn_infer_operation(ctx);
  int64_t k = -1;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &s, err);
  if (st == TN_OK && tn_infer_n_inputs(ctx) == 1) {
    k = tn__attr_int(op, "k", 0);
  } else if (st == TN_OK) {
    st = tn__infer_rank(ctx, 1, 0, &scalar, err);
    const int64_t *items;
    if (tn_infer_input_ints(ctx, 1, &items) == 1 && items[0] != TN_UNKNOWN_INT) {
      k = items[0];
      if (st == TN_OK) st = check_k(tn__infer_op(ctx), k, -1, err);
    }
  }
  if (st == TN_OK && s.rank > 0) {
    if (k >= 0) st = check_k(tn__infer_op(ctx), k, s.dims[s.rank - 1], err);
    s.dims[s.rank - 1] = k;
  }
  for (size_t i = 0; st == TN_OK && i < 2; i++) st = tn__infer_set(ctx, i, &s, err);
  return st;
}

/* ---- NthElement ---- */

typedef struct nth_state {
  const tn__order *order;
  bool reverse;
} nth_state;

static tn_status nth_create(const tn_operation *op, void **state, tn_error *err)
{
  void *order;
  *state = NULL;
  tn_status st = order_create(op, &order, err);
  if (st != TN_OK) return st;
  nth_state *s = tn__alloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "state of NthElement", sizeof *s);
  s->order = order;
  s->reverse = tn__attr_bool(op, "reverse", false);
  *state = s;
  return TN_OK;
}

static void nth_destroy(void *state) { tn__free(state, sizeof(nth_state)); }

typedef struct nth_job {
  const tn__order *order;
  const char *in;
  char *out;
  int64_t n, nth; /* nth from the smallest */
} nth_job;

/* Radix selection: the key is determined byte by byte, the most significant first. A histogram of
 * the next byte, over the keys that match so far, says which value the nth key has there. No order
 * of the data is slow. */
#define NTH(name, Key)                                                                              \
  static const char *nth_##name##_of(const nth_job *job, const char *row)                           \
  {                                                                                                 \
    Key keys[TN__ORDER_BLOCK], prefix = 0, mask = 0;                                                \
    tn__poll poll = tn__poll_here();                                                                \
    int64_t left = job->nth;                                                                        \
    for (int shift = 8 * (int)job->order->size - 8; shift >= 0; shift -= 8) {                       \
      int64_t counts[256] = { 0 };                                                                  \
      for (int64_t at = 0, m; at < job->n; at += m) {                                               \
        m = job->n - at < TN__ORDER_BLOCK ? job->n - at : TN__ORDER_BLOCK;                          \
        if (tn__poll_over(&poll, 2 * m)) return row;                                                \
        job->order->name(row, at, m, keys);                                                         \
        for (int64_t i = 0; i < m; i++)                                                             \
          if ((keys[i] & mask) == prefix) counts[keys[i] >> shift & 255]++;                         \
      }                                                                                             \
      Key byte = 0;                                                                                 \
      while (left >= counts[byte]) left -= counts[byte++];                                          \
      prefix |= byte << shift;                                                                      \
      mask |= (Key)255 << shift;                                                                    \
    }                                                                                               \
    for (int64_t at = 0, m;; at += m) {                                                             \
      m = job->n - at < TN__ORDER_BLOCK ? job->n - at : TN__ORDER_BLOCK;                            \
      job->order->name(row, at, m, keys);                                                           \
      for (int64_t i = 0; i < m; i++)                                                               \
        if (keys[i] == prefix) return row + (size_t)(at + i) * job->order->size;                    \
    }                                                                                               \
  }                                                                                                 \
  static void nth_##name(void *user, int64_t begin, int64_t end)                                    \
  {                                                                                                 \
    const nth_job *job = user;                                                                      \
    size_t size = job->order->size;                                                                 \
    for (int64_t r = begin; r < end; r++)                                                           \
      memcpy(job->out + (size_t)r * size, nth_##name##_of(job, job->in + (size_t)(r * job->n) * size), size); \
  }
NTH(narrow, uint32_t)
NTH(wide, uint64_t)

static tn_status nth_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  ctx->cost_ns = 50 + 5 * (double)x->count;
  return st != TN_OK ? st : tn_prepare_output(ctx, 0, x->dims, x->rank - 1, err);
}

static tn_status nth_compute(tn_kernel_ctx *ctx)
{
  const nth_state *s = ctx->state;
  const tn_view *x = ctx->inputs[0];
  int64_t n = x->dims[x->rank - 1], nth = *(const int32_t *)ctx->inputs[1]->data;
  if (nth < 0 || nth >= n)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "NthElement: n is %lld, the rows of input 0 have %lld elements",
                        (long long)nth, (long long)n);
  if (ctx->outputs[0]->count == 0) return TN_OK;
  nth_job job = { s->order, x->data, ctx->outputs[0]->data, n, s->reverse ? n - 1 - nth : nth };
  for_rows(ctx, rows_of(x), n, s->order->narrow != NULL ? nth_narrow : nth_wide, &job);
  return TN_OK;
}

static tn_status infer_nth(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, scalar;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &s, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 0, &scalar, err);
  if (s.rank > 0) s.rank--;
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- InTopK ---- */

/* The state is the k of InTopK. InTopKV2 has it as input 2. */
static tn_status in_top_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t *k = tn__alloc(sizeof *k);
  *state = k;
  if (k == NULL) return tn__no_memory(err, "state of InTopK", sizeof *k);
  *k = tn__attr_int(op, "k", 0);
  return TN_OK;
}

static void in_top_destroy(void *state) { tn__free(state, sizeof(int64_t)); }

static tn_status in_top_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *targets = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK && ctx->n_inputs > 2) st = tn__want_rank(ctx, 2, 0, err);
  if (st == TN_OK && targets->dims[0] != x->dims[0]) st = tn__shape_error(err, ctx, 1, x->dims, 1);
  if (st != TN_OK) return st;
  ctx->cost_ns = 20 + (double)x->count;
  return tn_prepare_output_like(ctx, 0, 1, err);
}

/* Whether fewer than k elements of row[n] are above the target's. False if one of the compared
 * elements is not finite. */
static bool in_top(const float *row, int64_t n, int64_t target, int64_t k)
{
  if (target < 0 || target >= n || !isfinite(row[target])) return false;
  int64_t above = 0;
  int finite = 1;
  for (int64_t i = 0; i < n; i++) {
    finite &= isfinite(row[i]) != 0;
    above += row[i] > row[target];
  }
  return finite && above < k;
}

typedef struct in_top_job {
  const float *in;
  const tn_view *targets;
  uint8_t *out;
  int64_t n, k;
} in_top_job;

static void in_top_rows(void *user, int64_t begin, int64_t end)
{
  const in_top_job *job = user;
  for (int64_t r = begin; r < end; r++)
    job->out[r] = in_top(job->in + r * job->n, job->n, tn__view_int_at(job->targets, r), job->k);
}

static tn_status in_top_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  int64_t k = ctx->n_inputs > 2 ? tn__view_int_at(ctx->inputs[2], 0) : *(const int64_t *)ctx->state;
  in_top_job job = { x->data, ctx->inputs[1], ctx->outputs[0]->data, x->dims[1], k };
  for_rows(ctx, x->dims[0], x->dims[1], in_top_rows, &job);
  return TN_OK;
}

static tn_status infer_in_top(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, targets, scalar;
  tn_status st = tn__infer_rank(ctx, 0, 2, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &targets, err);
  if (st == TN_OK && tn_infer_n_inputs(ctx) > 2) st = tn__infer_rank(ctx, 2, 0, &scalar, err);
  if (st != TN_OK) return st;
  if (!tn__dim_merge(&targets.dims[0], x.dims[0]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld rows in input 0, %lld targets in input 1",
                        tn__infer_op(ctx), (long long)x.dims[0], (long long)targets.dims[0]);
  return tn__infer_set(ctx, 0, &targets, err);
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, operands, shapes, text)                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .shape_operands = operands, .infer = shapes, .summary = text }
#define T_REAL "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define INTS "{int16, int32, int64} = int32"

static const tn_op_def ops[] = {
  OP("InTopK", "predictions: float, targets: T", "precision: bool", "k: int; T: {int32, int64} = int32", 0,
     infer_in_top, "whether the target of each row is among its k largest"),
  OP("InTopKV2", "predictions: float, targets: T, k: T", "precision: bool", "T: {int32, int64} = int32", 0,
     infer_in_top, "whether the target of each row is among its k largest"),
  OP("NthElement", "input: T, n: int32", "values: T", "reverse: bool = false; " T_REAL, 0, infer_nth,
     "n-th smallest or largest element of each row"),
  OP("TopK", "input: T", "values: T, indices: int32", "k: int >= 0; sorted: bool = true; " T_REAL, 0, infer_top,
     "k largest elements of each row and their indices"),
  OP("TopKV2", "input: T, k: Tk", "values: T, indices: index_type",
     "sorted: bool = true; " T_REAL "; Tk: " INTS "; index_type: " INTS, 1u << 1, infer_top,
     "k largest elements of each row and their indices"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("InTopK", "in_top_k_cpu", in_top_create, in_top_destroy, in_top_prepare, in_top_compute),
  TN__KERNEL("InTopKV2", "in_top_k_v2_cpu", NULL, NULL, in_top_prepare, in_top_compute),
  TN__KERNEL("NthElement", "nth_element_cpu", nth_create, nth_destroy, nth_prepare, nth_compute),
  TN__KERNEL("TopK", "top_k_cpu", order_create, NULL, top_prepare, top_compute),
  TN__KERNEL("TopKV2", "top_k_v2_cpu", order_create, NULL, top_prepare, top_compute),
};

TN_OP_FAMILY(top_k)
