/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of one tensor or of another: Select SelectV2. */
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <string.h>

#define COST_NS 0.5

/* ---- rows ---- */

typedef struct pair {
  uint64_t a, b;
} pair;

typedef void (*pick_fn)(const uint8_t *c, const void *t, int64_t st, const void *e, int64_t se, void *out, int64_t n);

/* A row of n elements. The condition advances by one element, the other two by st and se, each 1 or
 * 0. */
#define PICK(st, se, count)                                                      \
  TN__IVDEP                                                                      \
  for (int64_t i = 0; i < (count); i++) out[i] = c[i] != 0 ? t[i * (st)] : e[i * (se)]
#define PICK_ALL(T, count)            \
  const T *t = t_, *e = e_;           \
  T *out = out_;                      \
  if (st != 0 && se != 0) {           \
    PICK(1, 1, count);                \
  } else if (st != 0) {               \
    PICK(1, 0, count);                \
  } else if (se != 0) {               \
    PICK(0, 1, count);                \
  } else {                            \
    PICK(0, 0, count);                \
  }
#define PICK_ROWS(name, T)                                                                                    \
  TN__APART static void name(const uint8_t *c, const void *t_, int64_t st, const void *e_, int64_t se,        \
                             void *out_, int64_t n)                                                           \
  {                                                                                                           \
    PICK_ALL(T, n)                                                                                            \
  }
#define PICK_WIDE(name, T, end, attribute)                                                                    \
  attribute static void name##_##end(const uint8_t *c, const void *t_, int64_t st, const void *e_, int64_t se, \
                                     void *out_, int64_t n)                                                   \
  {                                                                                                           \
    if (n < 64) {                                                                                             \
      name(c, t_, st, e_, se, out_, n);                                                                       \
      return;                                                                                                 \
    }                                                                                                         \
    int64_t whole = n & -INT64_C(64);                                                                         \
    PICK_ALL(T, whole)                                                                                        \
    if (whole < n) name(c + whole, t + whole * st, st, e + whole * se, se, out + whole, n - whole);           \
  }
#define PICKS(name, T)    \
  PICK_ROWS(name, T)      \
  TN__AVX2_LOOPS(PICK_WIDE, name, T)
PICKS(pick_8, uint8_t)
PICKS(pick_16, uint16_t)
PICKS(pick_32, uint32_t)
PICKS(pick_64, uint64_t)
PICK_ROWS(pick_128, pair)

static pick_fn pick_of(size_t size)
{
  static const pick_fn fns[5][TN__VECTORS] = { TN__AVX2_FNS(pick_8), TN__AVX2_FNS(pick_16), TN__AVX2_FNS(pick_32),
                                               TN__AVX2_FNS(pick_64), TN__SAME_FNS(pick_128) };
  int i = 0; /* the binary logarithm of size */
  while (i < 4 && (size_t)1 << i != size) i++;
  return fns[i][tn__vectors()];
}

typedef struct select_run {
  const tn__broadcast_plan *plan;
  const uint8_t *c;
  const char *t, *e;
  char *out;
  size_t size;
} select_run;

static void copy_row(const select_run *r, const char *from, int64_t stride, char *to, int64_t n)
{
  if (to == from) return; /* in place */
  if (stride != 0)
    memcpy(to, from, (size_t)n * r->size);
  else
    tn__fill_bytes(r->size, to, from, n);
}

static void select_part(void *user, int64_t begin, int64_t end)
{
  const select_run *r = user;
  const int64_t *strides = r->plan->row_strides;
  pick_fn pick = pick_of(r->size);
  tn__broadcast_cursor c;
  tn__broadcast_start(&c, r->plan, begin, end);
  while (tn__broadcast_next(&c)) {
    const uint8_t *condition = r->c + c.offsets[0];
    const char *t = r->t + (size_t)c.offsets[1] * r->size, *e = r->e + (size_t)c.offsets[2] * r->size;
    char *out = r->out + (size_t)c.at * r->size;
    if (strides[0] != 0)
      pick(condition, t, strides[1], e, strides[2], out, c.n);
    else if (*condition != 0)
      copy_row(r, t, strides[1], out, c.n);
    else
      copy_row(r, e, strides[2], out, c.n);
  }
}

/* Elements that own memory. */
static tn_status select_managed(tn_kernel_ctx *ctx, const select_run *r)
{
  const int64_t *strides = r->plan->row_strides;
  tn_dtype dtype = ctx->outputs[0]->dtype;
  tn__broadcast_cursor c;
  tn__broadcast_start(&c, r->plan, 0, r->plan->count);
  while (tn__broadcast_next(&c)) {
    for (int64_t i = 0; i < c.n; i++) {
      bool yes = r->c[c.offsets[0] + i * strides[0]] != 0;
      const char *from = yes ? r->t + (size_t)(c.offsets[1] + i * strides[1]) * r->size
                             : r->e + (size_t)(c.offsets[2] + i * strides[2]) * r->size;
      tn_status st = tn__copy_elements(dtype, r->out + (size_t)(c.at + i) * r->size, from, 1, ctx->err);
      if (st != TN_OK) return st;
    }
  }
  return TN_OK;
}

static tn_status select_compute(tn_kernel_ctx *ctx)
{
  tn_view *const *in = ctx->inputs;
  tn_view *out = ctx->outputs[0];
  select_run r = { ctx->shape_state, in[0]->data, in[1]->data, in[2]->data, out->data, tn_dtype_size(out->dtype) };
  if (out->count == 0) return TN_OK;
  if (tn__dtype_is_managed(out->dtype)) return select_managed(ctx, &r);
  if (out->count <= TN__SERIAL_ELEMENTS)
    select_part(&r, 0, out->count);
  else
    tn_parallel_for(ctx, out->count, TN__SERIAL_ELEMENTS, COST_NS, select_part, &r);
  return TN_OK;
}

static void destroy_shape_state(void *shape_state) { tn__broadcast_plan_destroy(shape_state); }

/* Plans an output of this shape. `condition` may be a reshaped view of input 0. */
static tn_status plan(tn_prepare_ctx *ctx, const tn__shape *s, const tn_view *condition, tn_error *err)
{
  tn_status st = tn_prepare_output(ctx, 0, s->dims, s->rank, err);
  if (st != TN_OK) return st;
  const tn_view *in[] = { condition, &ctx->inputs[1], &ctx->inputs[2] };
  tn__broadcast b;
  tn__broadcast_merge(&b, s->dims, s->rank, in, 3);
  ctx->cost_ns = 20 + COST_NS * (double)b.count;
  for (uint32_t i = 1; st == TN_OK && i < 3; i++)
    if (ctx->inputs[i].count == b.count && !tn__dtype_is_managed(ctx->inputs[i].dtype))
      st = tn_prepare_in_place(ctx, 0, i, err);
  tn__broadcast_plan *p = NULL;
  if (st == TN_OK) st = tn__broadcast_plan_create(&b, &p, err);
  ctx->shape_state = p;
  return st;
}

/* ---- SelectV2: all three broadcast ---- */

static tn_status select_v2_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *c = &ctx->inputs[0], *t = &ctx->inputs[1], *e = &ctx->inputs[2];
  const char *op = tn_operation_type(ctx->op);
  tn__shape both, s;
  if (!tn__broadcast_shapes(t->dims, t->rank, e->dims, e->rank, &both))
    return tn__broadcast_error(err, op, t->dims, t->rank, e->dims, e->rank);
  if (!tn__broadcast_shapes(c->dims, c->rank, both.dims, both.rank, &s))
    return tn__broadcast_error(err, op, c->dims, c->rank, both.dims, both.rank);
  return plan(ctx, &s, c, err);
}

static tn_status infer_select_v2(tn_infer_ctx *ctx, tn_error *err)
{
  const char *op = tn__infer_op(ctx);
  tn__shape c, t, e, both, s;
  tn__infer_get(ctx, 0, &c);
  tn__infer_get(ctx, 1, &t);
  tn__infer_get(ctx, 2, &e);
  if (!tn__broadcast_shapes(t.dims, t.rank, e.dims, e.rank, &both))
    return tn__broadcast_error(err, op, t.dims, t.rank, e.dims, e.rank);
  if (!tn__broadcast_shapes(c.dims, c.rank, both.dims, both.rank, &s))
    return tn__broadcast_error(err, op, c.dims, c.rank, both.dims, both.rank);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- Select: a scalar, a vector for the rows, or the same shape ---- */

static tn_status select_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *t = &ctx->inputs[1];
  tn_view c = ctx->inputs[0];
  tn_status st = tn__want_same_shape(ctx, 1, 2, err);
  if (st != TN_OK) return st;
  tn__shape s, rows;
  tn__shape_set(&s, t->dims, t->rank);
  if (c.rank == 1 && t->rank > 1 && c.dims[0] == t->dims[0]) {
    rows.rank = t->rank;
    rows.dims[0] = c.dims[0];
    for (int32_t i = 1; i < rows.rank; i++) rows.dims[i] = 1;
    c.dims = rows.dims;
    c.rank = rows.rank;
  } else if (c.rank != 0 && !tn__view_same_shape(&c, t)) {
    return tn__shape_error(err, ctx, 0, t->dims, c.rank == 1 && t->rank > 0 ? 1 : t->rank);
  }
  return plan(ctx, &s, &c, err);
}

static tn_status infer_select(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  tn__shape c, s;
  tn__infer_get(ctx, 0, &c);
  tn__infer_get(ctx, 1, &s);
  int32_t rank = tn_infer_input(ctx, 2, &dims);
  if (!tn__shape_merge(&s, dims, rank)) {
    char x[160], y[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs 1 and 2 have different shapes, %s and %s",
                        tn__infer_op(ctx), tn__format_shape(x, sizeof x, s.dims, s.rank),
                        tn__format_shape(y, sizeof y, dims, rank));
  }
  /* A condition of rank above 1 must have the same shape; the step reports a mismatch. */
  if (c.rank > 1) tn__shape_merge(&s, c.dims, c.rank);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define OP(op, shapes, text)                                                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "condition: bool, t: T, e: T",                \
    .outputs = "output: T", .attrs = "T: type", .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Select", infer_select, "selects elements or rows of t where the condition is true, else of e"),
  OP("SelectV2", infer_select_v2, "selects elements of t where the condition is true, else of e; broadcasts"),
};

#define SELECT_TYPES                                                                                             \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|"    \
  "string|resource|variant"
#define KERNEL(which, title, prepare_fn)                                                                    \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = SELECT_TYPES, .name = title,  \
    .rank = TN_RANK_C, .prepare = prepare_fn, .destroy_shape_state = destroy_shape_state,                   \
    .compute = select_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("Select", "select_cpu", select_prepare),
  KERNEL("SelectV2", "select_v2_cpu", select_v2_prepare),
};

TN_OP_FAMILY(select)
