/* SPDX-License-Identifier: Apache-2.0 */
/* Padding with a constant: Pad PadV2. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/padding.h>
#include <string.h>

/* Minimum bytes of rows for another thread. */
#define GRAIN_BYTES 65536
/* Bytes that are filled at a time from a short pattern, which stays in the L1 cache. */
#define PATTERN_BYTES 4096

/* The input is seen as rows of contiguous elements. In the output each gap between two rows is
 * padding. */
typedef struct pad_dim {
  int64_t size;
  size_t step; /* bytes of the output from one index to the next */
} pad_dim;

typedef struct pad_plan {
  size_t bytes; /* of this allocation */
  size_t row, all, first; /* bytes: of a row, of the whole output, before the first row */
  int64_t rows;
  int32_t rank;
  pad_dim dims[]; /* dimensions outside a row */
} pad_plan;

static void destroy_plan(void *plan)
{
  if (plan != NULL) tn__free(plan, ((pad_plan *)plan)->bytes);
}

/* The input's dimensions with their paddings. A dimension without padding is merged into the
 * previous one. */
typedef struct merged {
  int32_t rank;
  int64_t size[TN_MAX_RANK + 1], before[TN_MAX_RANK + 1], after[TN_MAX_RANK + 1];
} merged;

static void merge(merged *m, const int64_t *dims, const tn__paddings *p)
{
  m->rank = 1;
  m->size[0] = 1;
  m->before[0] = m->after[0] = 0;
  for (int32_t k = 0; k < p->rank; k++) {
    int32_t last = m->rank - 1;
    if (p->before[k] == 0 && p->after[k] == 0) {
      m->size[last] *= dims[k];
      m->before[last] *= dims[k];
      m->after[last] *= dims[k];
    } else {
      m->size[m->rank] = dims[k];
      m->before[m->rank] = p->before[k];
      m->after[m->rank++] = p->after[k];
    }
  }
}

/* Requires an output with elements. */
static pad_plan *new_plan(const merged *m, size_t element)
{
  size_t bytes = sizeof(pad_plan) + (size_t)(m->rank - 1) * sizeof(pad_dim), step = element;
  pad_plan *p = tn__zalloc(bytes);
  if (p == NULL) return NULL;
  p->bytes = bytes;
  p->rank = m->rank - 1;
  p->rows = 1;
  p->row = (size_t)m->size[p->rank] * element;
  for (int32_t k = p->rank; k >= 0; k--) {
    p->first += (size_t)m->before[k] * step;
    if (k < p->rank) {
      p->dims[k] = (pad_dim){ m->size[k], step };
      p->rows *= m->size[k];
    }
    step *= (size_t)(m->size[k] + m->before[k] + m->after[k]);
  }
  p->all = step;
  if (p->row == 0) p->rows = 0;
  return p;
}

static tn_status pad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__paddings paddings;
  tn__shape out;
  merged m;
  int64_t count;
  tn_status st = tn__paddings_read(ctx, 1, &paddings, err);
  if (st == TN_OK && ctx->n_inputs > 2) st = tn__want_rank(ctx, 2, 0, err);
  if (st != TN_OK) return st;
  tn__shape_set(&out, in->dims, in->rank);
  for (int32_t k = 0; k < out.rank; k++)
    if (__builtin_add_overflow(out.dims[k], paddings.before[k], &out.dims[k]) ||
        __builtin_add_overflow(out.dims[k], paddings.after[k], &out.dims[k]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension %d is too large with its paddings",
                          tn_operation_type(ctx->op), (int)k);
  st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st == TN_OK) st = tn_shape_elements(out.dims, out.rank, &count, err);
  if (st == TN_OK && count == in->count) return tn_prepare_view(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  merge(&m, in->dims, &paddings);
  pad_plan *p = new_plan(&m, tn_dtype_size(in->dtype));
  if (p == NULL) return tn__no_memory(err, "padding", sizeof *p);
  ctx->shape_state = p;
  ctx->cost_ns = 20 + (double)p->all * 0.06 + (double)p->rows * 4;
  return TN_OK;
}

/* ---- computing ---- */

/* The padding: one byte repeated, or a pattern of whole elements. */
typedef struct filling {
  const char *pattern; /* NULL: repeat `byte` */
  int byte;
  size_t size;
} filling;

static void fill(const filling *f, char *to, size_t n)
{
  if (f->pattern == NULL) {
    memset(to, f->byte, n);
    return;
  }
  for (; n > f->size; to += f->size, n -= f->size) memcpy(to, f->pattern, f->size);
  memcpy(to, f->pattern, n);
}

typedef struct pad_run {
  const pad_plan *plan;
  const char *in;
  char *out;
  filling filling;
} pad_run;

/* The position of a row in the output, for iteration over rows. */
typedef struct place {
  size_t at;
  int64_t index[TN__STRIDED_DIMS];
} place;

static void go_to(place *w, const pad_plan *p, int64_t row)
{
  w->at = p->first;
  for (int32_t k = p->rank - 1; k >= 0; k--) {
    w->index[k] = row % p->dims[k].size;
    row /= p->dims[k].size;
    w->at += (size_t)w->index[k] * p->dims[k].step;
  }
}

static void go_on(place *w, const pad_plan *p)
{
  for (int32_t k = p->rank - 1; k >= 0; k--) {
    w->at += p->dims[k].step;
    if (++w->index[k] < p->dims[k].size) return;
    w->at -= (size_t)p->dims[k].size * p->dims[k].step;
    w->index[k] = 0;
  }
}

/* Writes rows, each with the gap before it. The last row also writes the gap after it. */
static void run_rows(void *user, int64_t begin, int64_t end)
{
  const pad_run *r = user;
  const pad_plan *p = r->plan;
  place w;
  size_t filled = 0;
  if (begin >= end) return;
  if (begin > 0) {
    go_to(&w, p, begin - 1);
    filled = w.at + p->row;
    go_on(&w, p);
  } else {
    go_to(&w, p, 0);
  }
  for (int64_t row = begin; row < end; row++, go_on(&w, p)) {
    fill(&r->filling, r->out + filled, w.at - filled);
    memcpy(r->out + w.at, r->in + (size_t)row * p->row, p->row);
    filled = w.at + p->row;
  }
  if (end == p->rows) fill(&r->filling, r->out + filled, p->all - filled);
}

/* Fills elements that own memory. The output is zeroed, so it already holds the empty strings that
 * Pad needs. */
static tn_status fill_managed(tn_dtype dtype, const tn_view *value, char *to, size_t n, tn_error *err)
{
  size_t element = tn_dtype_size(dtype);
  tn_status st = TN_OK;
  for (size_t at = 0; value != NULL && at < n && st == TN_OK; at += element)
    st = tn__elements_copy(dtype, to + at, value->data, 1, err);
  return st;
}

static tn_status run_managed(const pad_run *r, const tn_view *value, tn_dtype dtype, tn_error *err)
{
  const pad_plan *p = r->plan;
  size_t filled = 0;
  place w;
  tn_status st = TN_OK;
  if (p->rows > 0) go_to(&w, p, 0);
  for (int64_t row = 0; row < p->rows && st == TN_OK; row++, go_on(&w, p)) {
    st = fill_managed(dtype, value, r->out + filled, w.at - filled, err);
    if (st == TN_OK)
      st = tn__elements_copy(dtype, r->out + w.at, r->in + (size_t)row * p->row,
                             (int64_t)(p->row / tn_dtype_size(dtype)), err);
    filled = w.at + p->row;
  }
  return st == TN_OK ? fill_managed(dtype, value, r->out + filled, p->all - filled, err) : st;
}

/* Prepares the padding from one element. `room` has PATTERN_BYTES. */
static filling filling_of(const tn_view *value, size_t all, char *room)
{
  if (value == NULL) return (filling){ NULL, 0, 0 };
  size_t element = tn_dtype_size(value->dtype), n = all < PATTERN_BYTES ? all : PATTERN_BYTES;
  const unsigned char *bytes = value->data;
  bool one_byte = true;
  for (size_t i = 1; i < element; i++) one_byte &= bytes[i] == bytes[0];
  if (one_byte) return (filling){ NULL, bytes[0], 0 };
  tn__strided_line_of(element)(element, (int64_t)(n / element), value->data, 0, room, (int64_t)element);
  return (filling){ room, 0, n };
}

static tn_status pad_compute(tn_kernel_ctx *ctx)
{
  const pad_plan *p = ctx->shape_state;
  const tn_view *value = ctx->n_inputs > 2 ? ctx->inputs[2] : NULL;
  tn_dtype dtype = ctx->inputs[0]->dtype;
  pad_run r = { .plan = p, .in = ctx->inputs[0]->data, .out = ctx->outputs[0]->data };
  char pattern[PATTERN_BYTES];
  if (tn__dtype_is_managed(dtype)) return run_managed(&r, value, dtype, ctx->err);
  r.filling = filling_of(value, p->all, pattern);
  int64_t grain = p->rows > 0 ? GRAIN_BYTES / (int64_t)(p->all / (size_t)p->rows + 1) + 1 : 1;
  if (p->rows == 0)
    fill(&r.filling, r.out, p->all);
  else if (p->rows <= grain)
    run_rows(&r, 0, p->rows);
  else
    tn_parallel_for(ctx, p->rows, grain, (double)p->all / (double)p->rows * 0.06 + 4, run_rows, &r);
  return TN_OK;
}

static tn_status infer_pad(tn_infer_ctx *ctx, tn_error *err) { return tn__paddings_infer(ctx, 1, 1, err); }

/* ---- tables ---- */

#define OP(op, in, text)                                                                        \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T",            \
    .attrs = "T: type; Tpaddings: {int32, int64} = int32", .shape_operands = 1u << 1,           \
    .infer = infer_pad, .summary = text }

static const tn_op_def ops[] = {
  OP("Pad", "input: T, paddings: Tpaddings", "pads a tensor with zeros"),
  OP("PadV2", "input: T, paddings: Tpaddings, constant_values: T", "pads a tensor with a constant"),
};

#define KERNEL(which, title)                                                                           \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = pad_prepare, .destroy_shape_state = destroy_plan, .compute = pad_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("Pad", "pad_cpu"),
  KERNEL("PadV2", "pad_v2_cpu"),
};

TN_OP_FAMILY(pad)
