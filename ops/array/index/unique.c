/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct elements and set difference: Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2
 * ListDiff.
 *
 * An item is a slice of a tensor along an axis; in a vector, an element. Items are looked up in an
 * open-addressing hash table of item numbers in scratch memory. NaN equals nothing, not even
 * itself. 0 and -0 are equal, except in 2-byte types, as in TensorFlow. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#define EMPTY UINT32_MAX

/* ---- items ---- */

typedef struct items {
  const char *data;
  int64_t outer, n, inner; /* n items, each of `outer` runs of `inner` elements */
  tn_dtype dtype;
  size_t size;             /* of an element */
} items;

static const char *run_of(const items *x, int64_t item, int64_t o)
{
  return x->data + (size_t)((o * x->n + item) * x->inner) * x->size;
}

static inline uint64_t mix(uint64_t h, uint64_t v)
{
  h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 32;
}

static uint64_t hash_bytes(uint64_t h, const char *data, size_t n)
{
  uint64_t v;
  for (; n >= sizeof v; n -= sizeof v, data += sizeof v) {
    memcpy(&v, data, sizeof v);
    h = mix(h, v);
  }
  v = n;
  for (size_t i = 0; i < n; i++) v = v << 8 | (uint8_t)data[i];
  return mix(h, v);
}

static uint64_t hash_run(const items *x, uint64_t h, const char *run)
{
  switch (x->dtype) {
  case TN_FLOAT:
    for (int64_t i = 0; i < x->inner; i++) {
      uint32_t u = ((const uint32_t *)run)[i];
      h = mix(h, u == 0x80000000u ? 0 : u);
    }
    return h;
  case TN_DOUBLE:
    for (int64_t i = 0; i < x->inner; i++) {
      uint64_t u = ((const uint64_t *)run)[i];
      h = mix(h, u == UINT64_C(1) << 63 ? 0 : u);
    }
    return h;
  case TN_STRING:
    for (int64_t i = 0; i < x->inner; i++) {
      size_t n;
      const char *text = tn_string_data((const tn_string *)run + i, &n);
      h = mix(hash_bytes(h, text, n), n);
    }
    return h;
  default: return hash_bytes(h, run, (size_t)x->inner * x->size);
  }
}

static bool equal_strings(const tn_string *a, const tn_string *b, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    size_t na, nb;
    const char *ta = tn_string_data(a + i, &na), *tb = tn_string_data(b + i, &nb);
    if (na != nb || (na > 0 && memcmp(ta, tb, na) != 0)) return false;
  }
  return true;
}

static bool equal_shorts(const uint16_t *a, const uint16_t *b, int64_t n, int (*is_nan)(uint16_t))
{
  for (int64_t i = 0; i < n; i++)
    if (a[i] != b[i] || is_nan(a[i])) return false;
  return true;
}

static bool equal_runs(const items *x, const char *a, const char *b)
{
  switch (x->dtype) {
  case TN_FLOAT:
    for (int64_t i = 0; i < x->inner; i++)
      if (!(((const float *)a)[i] == ((const float *)b)[i])) return false;
    return true;
  case TN_DOUBLE:
    for (int64_t i = 0; i < x->inner; i++)
      if (!(((const double *)a)[i] == ((const double *)b)[i])) return false;
    return true;
  case TN_HALF: return equal_shorts((const uint16_t *)a, (const uint16_t *)b, x->inner, tn__half_is_nan);
  case TN_BFLOAT16: return equal_shorts((const uint16_t *)a, (const uint16_t *)b, x->inner, tn__bfloat16_is_nan);
  case TN_STRING: return equal_strings((const tn_string *)a, (const tn_string *)b, x->inner);
  default: return x->inner == 0 || memcmp(a, b, (size_t)x->inner * x->size) == 0;
  }
}

static uint64_t hash_item(const items *x, int64_t item)
{
  uint64_t h = 0;
  for (int64_t o = 0; o < x->outer; o++) h = hash_run(x, h, run_of(x, item, o));
  return mix(h, 0);
}

/* Items of two tensors whose items have one shape. */
static bool equal_items(const items *x, int64_t i, const items *y, int64_t k)
{
  for (int64_t o = 0; o < x->outer; o++)
    if (!equal_runs(x, run_of(x, i, o), run_of(y, k, o))) return false;
  return true;
}

/* ---- the table ---- */

/* Slots hold numbers assigned by the caller. At least half of the slots stay empty. */
typedef struct table {
  uint32_t *slots;
  uint64_t mask;
} table;

static uint64_t table_slots(int64_t n)
{
  uint64_t slots = 16;
  while (slots < (uint64_t)n * 2) slots *= 2;
  return slots;
}

/* Requests scratch memory for a table of n items followed by `more` numbers. */
static tn_status table_scratch(tn_prepare_ctx *ctx, int64_t n, int64_t more, tn_error *err)
{
  uint64_t bytes = (table_slots(n) + (uint64_t)more) * sizeof(uint32_t);
  if (bytes > PTRDIFF_MAX) return tn__no_memory(err, "table of items", SIZE_MAX);
  ctx->scratch_bytes = (size_t)bytes;
  return TN_OK;
}

static void table_clear(table *t, void *memory, int64_t n)
{
  t->slots = memory;
  t->mask = table_slots(n) - 1;
  memset(memory, 0xff, (t->mask + 1) * sizeof *t->slots);
}

/* Item numbers are stored in 32 bits. */
static tn_status check_length(const tn_prepare_ctx *ctx, uint32_t i, int64_t n, tn_error *err)
{
  if (n <= INT32_MAX) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld items, at most %d are possible",
                      tn_operation_type(ctx->op), i, (long long)n, INT32_MAX);
}

static void put_int(tn_view *out, int64_t k, int64_t number)
{
  if (out->dtype == TN_INT64)
    ((int64_t *)out->data)[k] = number;
  else
    ((int32_t *)out->data)[k] = (int32_t)number;
}

static int64_t get_int(const tn_view *v, int64_t k)
{
  return v->dtype == TN_INT64 ? ((const int64_t *)v->data)[k] : ((const int32_t *)v->data)[k];
}

/* ---- Unique ---- */

/* Shape state: how the input is divided into items. */
typedef struct unique_plan {
  int32_t axis;
  int64_t outer, n, inner;
} unique_plan;

static void free_unique_plan(void *shape_state) { tn__free(shape_state, sizeof(unique_plan)); }

/* The axis given by input 1. If there is none, the input must be a vector. */
static tn_status unique_axis(const char *op, int64_t n_axes, int64_t axis, int32_t rank, int32_t *out, tn_error *err)
{
  *out = 0;
  if (n_axes > 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has %lld axes, wanted one or none", op,
                        (long long)n_axes);
  if (n_axes == 1) return tn__shape_axis(op, axis, rank, out, err);
  if (rank == 1) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has rank %d, wanted rank 1 as no axis is given", op,
                      (int)rank);
}

static tn_status unique_prepare_axis(const tn_prepare_ctx *ctx, int32_t *axis, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  const char *op = tn_operation_type(ctx->op);
  if (ctx->n_inputs == 1) return unique_axis(op, 0, 0, x->rank, axis, err);
  const tn_view *axes = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  if (axes->count > 0 && axes->data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 1 is not known", op);
  return unique_axis(op, axes->count, axes->count > 0 ? tn__view_int_at(axes, 0) : 0, x->rank, axis, err);
}

static tn_status unique_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  int32_t axis;
  tn_status st = unique_prepare_axis(ctx, &axis, err);
  if (st != TN_OK) return st;
  unique_plan p = { .axis = axis, .outer = x->count > 0, .n = x->dims[axis], .inner = 1 };
  for (int32_t i = 0; i < x->rank && x->count > 0; i++) {
    if (i < axis) p.outer *= x->dims[i];
    if (i > axis) p.inner *= x->dims[i];
  }
  st = check_length(ctx, 0, p.n, err);
  if (st == TN_OK) st = tn_prepare_dynamic(ctx, 0, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 1, &p.n, 1, err);
  if (st == TN_OK && ctx->n_outputs > 2) st = tn_prepare_dynamic(ctx, 2, err);
  unique_plan *state = st == TN_OK ? tn__alloc(sizeof *state) : NULL;
  if (st == TN_OK && state == NULL) st = tn__no_memory(err, "plan of Unique", sizeof *state);
  if (st != TN_OK) return st;
  *state = p;
  ctx->shape_state = state;
  ctx->cost_ns = 50 + 10 * (double)p.n + (double)x->count;
  return table_scratch(ctx, p.n, p.n, err); /* the numbers: first occurrence of each distinct item */
}

/* Numbers the items: writes idx, and sets first[k] to the index of the k-th distinct item. Returns
 * the number of distinct items; -1 if the step was stopped. */
static int64_t number_items(const items *x, table *t, uint32_t *first, tn_view *idx, tn__poll *poll)
{
  const int64_t item_ns = 20 + x->outer * x->inner * (int64_t)x->size;
  uint32_t found = 0;
  for (int64_t i = 0; i < x->n; i++) {
    uint64_t at = hash_item(x, i) & t->mask;
    if (tn__poll_over(poll, item_ns)) return -1;
    while (t->slots[at] != EMPTY && !equal_items(x, i, x, first[t->slots[at]])) {
      if (tn__poll_over(poll, item_ns)) return -1; /* NaNs never match, so many of them make one long probe sequence */
      at = (at + 1) & t->mask;
    }
    if (t->slots[at] == EMPTY) {
      first[found] = (uint32_t)i;
      t->slots[at] = found++;
    }
    put_int(idx, i, t->slots[at]);
  }
  return found;
}

/* The same for single elements that are equal exactly if their bits are, in types of a standard
 * size. */
#define NUMBER_BITS(T)                                                                                    \
  static int64_t number_##T(const T *x, int64_t n, table *t, uint32_t *first, tn_view *idx, tn__poll *poll) \
  {                                                                                                       \
    uint32_t found = 0;                                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                     \
      uint64_t at = mix(mix(0, x[i]), 0) & t->mask;                                                       \
      if (tn__poll_over(poll, 20)) return -1;                                                             \
      while (t->slots[at] != EMPTY && x[i] != x[first[t->slots[at]]]) at = (at + 1) & t->mask;            \
      if (t->slots[at] == EMPTY) {                                                                        \
        first[found] = (uint32_t)i;                                                                       \
        t->slots[at] = found++;                                                                           \
      }                                                                                                   \
      put_int(idx, i, t->slots[at]);                                                                      \
    }                                                                                                     \
    return found;                                                                                         \
  }
NUMBER_BITS(uint32_t)
NUMBER_BITS(uint64_t)

static int64_t number(const items *x, table *t, uint32_t *first, tn_view *idx, tn__poll *poll)
{
  bool single = x->outer == 1 && x->inner == 1;
  if (single && (x->dtype == TN_INT32 || x->dtype == TN_UINT32))
    return number_uint32_t((const uint32_t *)x->data, x->n, t, first, idx, poll);
  if (single && (x->dtype == TN_INT64 || x->dtype == TN_UINT64))
    return number_uint64_t((const uint64_t *)x->data, x->n, t, first, idx, poll);
  return number_items(x, t, first, idx, poll);
}

/* Output 0: the items first[n]. */
static tn_status gather_items(tn_kernel_ctx *ctx, const items *x, const uint32_t *first, int64_t n, tn__poll *poll)
{
  tn_view *y = ctx->outputs[0];
  if (y->count == 0) return TN_OK;
  char *to = y->data;
  size_t bytes = (size_t)x->inner * x->size;
  for (int64_t o = 0; o < x->outer; o++) {
    for (int64_t k = 0; k < n; k++, to += bytes) {
      if (tn__poll_over(poll, 10 + (int64_t)bytes / 8)) return TN_CANCELLED;
      tn_status st = tn__copy_elements(x->dtype, to, run_of(x, first[k], o), x->inner, ctx->err);
      if (st != TN_OK) return st;
    }
  }
  return TN_OK;
}

static tn_status count_items(tn_kernel_ctx *ctx, int64_t found, tn__poll *poll)
{
  tn_status st = tn_kernel_allocate(ctx, 2, &found, 1);
  if (st != TN_OK) return st;
  tn_view *idx = ctx->outputs[1], *counts = ctx->outputs[2];
  for (int64_t k = 0; k < found; k++) put_int(counts, k, 0);
  for (int64_t i = 0; i < idx->count; i++) {
    if (tn__poll_over(poll, 5)) return TN_CANCELLED;
    int64_t k = get_int(idx, i);
    put_int(counts, k, get_int(counts, k) + 1);
  }
  return TN_OK;
}

static tn_status unique_compute(tn_kernel_ctx *ctx)
{
  const unique_plan *p = ctx->shape_state;
  const tn_view *in = ctx->inputs[0];
  items x = { in->data, p->outer, p->n, p->inner, in->dtype, tn_dtype_size(in->dtype) };
  table t;
  table_clear(&t, ctx->scratch, p->n);
  uint32_t *first = t.slots + t.mask + 1;
  tn__poll poll = tn__poll_of(ctx);
  int64_t found = number(&x, &t, first, ctx->outputs[1], &poll), dims[TN_MAX_RANK];
  if (found < 0) return TN_CANCELLED;
  for (int32_t i = 0; i < in->rank; i++) dims[i] = i == p->axis ? found : in->dims[i];
  tn_status st = tn_kernel_allocate(ctx, 0, dims, in->rank);
  if (st == TN_OK) st = gather_items(ctx, &x, first, found, &poll);
  return st == TN_OK && ctx->n_outputs > 2 ? count_items(ctx, found, &poll) : st;
}

/* The axis along which the items are; *axis is -1 if it is unknown. */
static tn_status infer_unique_axis(const tn_infer_ctx *ctx, const tn__shape *s, int32_t *axis, tn_error *err)
{
  const char *op = tn__infer_op(ctx);
  const int64_t *axes;
  tn__shape unused;
  *axis = -1;
  if (tn_infer_n_inputs(ctx) == 1) return s->rank < 0 ? TN_OK : unique_axis(op, 0, 0, s->rank, axis, err);
  tn_status st = tn__infer_rank(ctx, 1, 1, &unused, err);
  int64_t n = tn_infer_input_ints(ctx, 1, &axes);
  if (st != TN_OK || n < 0 || s->rank < 0 || (n == 1 && axes[0] == TN_UNKNOWN_INT)) return st;
  return unique_axis(op, n, n > 0 ? axes[0] : 0, s->rank, axis, err);
}

static tn_status infer_unique(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  int64_t length = -1, unknown = -1;
  int32_t axis;
  tn__infer_get(ctx, 0, &s);
  tn_status st = infer_unique_axis(ctx, &s, &axis, err);
  if (st != TN_OK) return st;
  if (s.rank < 0 && tn_infer_n_inputs(ctx) == 1) s.rank = 1, s.dims[0] = -1;
  if (axis >= 0) length = s.dims[axis];
  for (int32_t i = 0; i < s.rank; i++)
    if (axis < 0 || i == axis) s.dims[i] = -1;
  st = tn__infer_set(ctx, 0, &s, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 1, &length, 1, err);
  if (st == TN_OK && tn_operation_n_outputs(tn_infer_operation(ctx)) > 2)
    st = tn_infer_output(ctx, 2, &unknown, 1, err);
  return st;
}

/* ---- ListDiff ---- */

static tn_status diff_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < 2; i++) {
    st = tn__want_rank(ctx, i, 1, err);
    if (st == TN_OK) st = check_length(ctx, i, ctx->inputs[i].count, err);
    if (st == TN_OK) st = tn_prepare_dynamic(ctx, i, err);
  }
  int64_t n = ctx->inputs[0].count, m = ctx->inputs[1].count;
  if (st != TN_OK) return st;
  ctx->cost_ns = 50 + 10 * ((double)n + (double)m);
  return table_scratch(ctx, m, n, err); /* the numbers: indices of the elements of x that are kept */
}

/* The slot of item i of x in the table of y's items, or the empty slot for it. */
static uint64_t find(const table *t, const items *x, int64_t i, const items *y, tn__poll *poll)
{
  uint64_t at = hash_item(x, i) & t->mask;
  while (t->slots[at] != EMPTY && !equal_items(x, i, y, t->slots[at]) && !tn__poll_over(poll, 20))
    at = (at + 1) & t->mask;
  return at;
}

static tn_status diff_compute(tn_kernel_ctx *ctx)
{
  const tn_view *a = ctx->inputs[0], *b = ctx->inputs[1];
  size_t size = tn_dtype_size(a->dtype);
  items x = { a->data, 1, a->count, 1, a->dtype, size }, y = { b->data, 1, b->count, 1, b->dtype, size };
  table t;
  table_clear(&t, ctx->scratch, y.n);
  uint32_t *stay = t.slots + t.mask + 1;
  int64_t left = 0;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t k = 0; k < y.n && !tn__poll_over(&poll, 20); k++) {
    uint64_t at = find(&t, &y, k, &y, &poll);
    if (t.slots[at] == EMPTY) t.slots[at] = (uint32_t)k;
  }
  for (int64_t i = 0; i < x.n && !tn__poll_over(&poll, 20); i++)
    if (t.slots[find(&t, &x, i, &y, &poll)] == EMPTY) stay[left++] = (uint32_t)i;
  if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
  tn_status st = tn_kernel_allocate(ctx, 0, &left, 1);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 1, &left, 1);
  if (st == TN_OK) st = gather_items(ctx, &x, stay, left, &poll);
  for (int64_t i = 0; st == TN_OK && i < left; i++) put_int(ctx->outputs[1], i, stay[i]);
  return st;
}

static tn_status infer_diff(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  int64_t unknown = -1;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < 2; i++) st = tn__infer_rank(ctx, i, 1, &s, err);
  for (size_t i = 0; st == TN_OK && i < 2; i++) st = tn_infer_output(ctx, i, &unknown, 1, err);
  return st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, operands, shapes, text)                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_DYNAMIC, .shape_operands = operands, .infer = shapes, .summary = text }
#define OUT_IDX "out_idx: {int32, int64} = int32"
#define AXIS "T: type; Taxis: {int32, int64} = int64; " OUT_IDX

static const tn_op_def ops[] = {
  OP("ListDiff", "x: T, y: T", "out: T, idx: out_idx", "T: type; " OUT_IDX, 0, infer_diff,
     "elements of x that are not in y, and their indices"),
  OP("Unique", "x: T", "y: T, idx: out_idx", "T: type; " OUT_IDX, 0, infer_unique,
     "unique elements, and the index of each element among them"),
  OP("UniqueV2", "x: T, axis: Taxis", "y: T, idx: out_idx", AXIS, 1u << 1, infer_unique,
     "unique slices along an axis, and the index of each slice among them"),
  OP("UniqueWithCounts", "x: T", "y: T, idx: out_idx, count: out_idx", "T: type; " OUT_IDX, 0, infer_unique,
     "like Unique, with the count of each element"),
  OP("UniqueWithCountsV2", "x: T, axis: Taxis", "y: T, idx: out_idx, count: out_idx", AXIS, 1u << 1, infer_unique,
     "like UniqueV2, with the count of each slice"),
};

#define TYPES "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|string"
#define UNIQUE(which, title)                                                                                     \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = TYPES "|bool", .name = title,      \
    .rank = TN_RANK_C, .prepare = unique_prepare, .destroy_shape_state = free_unique_plan,                       \
    .compute = unique_compute }

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "ListDiff", .device = "CPU", .types = TYPES, .name = "list_diff_cpu",
    .rank = TN_RANK_C, .prepare = diff_prepare, .compute = diff_compute },
  UNIQUE("Unique", "unique_cpu"),
  UNIQUE("UniqueV2", "unique_v2_cpu"),
  UNIQUE("UniqueWithCounts", "unique_with_counts_cpu"),
  UNIQUE("UniqueWithCountsV2", "unique_with_counts_v2_cpu"),
};

TN_OP_FAMILY(unique)
