/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of pixels to batches and back: SpaceToBatch SpaceToBatchND BatchToSpace BatchToSpaceND.
 *
 * One side is the space [batch, sizes..., rest...]. The other has a batch for each place in a
 * block: [places x batch, cells..., rest...]. Cell j of place o of a block is index j * block + o -
 * before of the space. Without paddings and crops the op is a single transposition; with them each
 * place of a block is copied separately, within its own bounds. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#include <core/tensor/tensor_internal.h>

#define MAX_INNER_BLOCKS 4 /* TensorFlow's limit, not counting blocks of size 1 at either end */

/* ---- operands ---- */

typedef struct axis {
  int64_t block, before, after;
  int64_t space, cells; /* sizes on both sides, -1 = unknown */
} axis;

typedef struct form {
  const char *op;
  bool nd;       /* block sizes are input 1 */
  bool to_batch;
  uint32_t pads; /* the input with the paddings or crops */
} form;

static form form_of(const tn_operation *op)
{
  form f = { .op = tn_operation_type(op) };
  size_t n = strlen(f.op);
  f.nd = n > 2 && strcmp(f.op + n - 2, "ND") == 0;
  f.to_batch = f.op[0] == 'S';
  f.pads = f.nd ? 2 : 1;
  return f;
}

static tn_status check_axis(const form *f, int32_t i, const axis *a, tn_error *err)
{
  if (a->block < 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: block size %d is %lld, wanted 1 or more", f->op, (int)i,
                        (long long)a->block);
  if (a->before < 0 || a->after < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s of dimension %d are %lld and %lld, wanted 0 or more", f->op,
                        f->to_batch ? "paddings" : "crops", (int)i + 1, (long long)a->before, (long long)a->after);
  return TN_OK;
}

static tn_status axis_error(const form *f, int32_t i, const axis *a, int64_t size, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: dimension %d has size %lld, which does not fit blocks of %lld with %s %lld and %lld", f->op,
                      (int)i + 1, (long long)size, (long long)a->block, f->to_batch ? "paddings" : "crops",
                      (long long)a->before, (long long)a->after);
}

/* Computes the output's size of an axis from the input's; -1 stays -1. */
static tn_status fit_axis(const form *f, int32_t i, axis *a, int64_t size, tn_error *err)
{
  int64_t pads, all;
  a->space = a->cells = size;
  if (size < 0) return TN_OK;
  if (__builtin_add_overflow(a->before, a->after, &pads)) return axis_error(f, i, a, size, err);
  if (f->to_batch) {
    if (__builtin_add_overflow(size, pads, &all) || all % a->block != 0) return axis_error(f, i, a, size, err);
    a->cells = all / a->block;
  } else {
    if (__builtin_mul_overflow(size, a->block, &all) || all < pads) return axis_error(f, i, a, size, err);
    a->space = all - pads;
  }
  return TN_OK;
}

/* Dimension 0 of the output. */
static tn_status fit_batch(const form *f, const axis *axes, int32_t m, int64_t *batch, tn_error *err)
{
  int64_t places = 1;
  for (int32_t i = 0; i < m; i++)
    if (__builtin_mul_overflow(places, axes[i].block, &places))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the block sizes have too large a product", f->op);
  if (*batch < 0) return TN_OK;
  if (!f->to_batch && *batch % places != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension 0 has size %lld, not a multiple of %lld", f->op,
                        (long long)*batch, (long long)places);
  if (!f->to_batch)
    *batch /= places;
  else if (__builtin_mul_overflow(*batch, places, batch))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output has too many elements", f->op);
  return TN_OK;
}

/* Changes the input's shape to the output's. */
static tn_status output_shape(const form *f, axis *axes, int32_t m, int64_t *dims, tn_error *err)
{
  tn_status st = TN_OK;
  for (int32_t i = 0; st == TN_OK && i < m; i++) {
    st = fit_axis(f, i, &axes[i], dims[i + 1], err);
    dims[i + 1] = f->to_batch ? axes[i].cells : axes[i].space;
  }
  return st != TN_OK ? st : fit_batch(f, axes, m, &dims[0], err);
}

static tn_status rank_error(const form *f, int32_t rank, int64_t m, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has rank %d, wanted %s%lld", f->op, (int)rank,
                      f->nd ? "at least " : "", (long long)(f->nd ? m + 1 : 4));
}

/* ---- shape function ---- */

/* The number of block dimensions; -1 = unknown. */
static tn_status infer_count(tn_infer_ctx *ctx, const form *f, int64_t *m, tn_error *err)
{
  tn__shape pads, blocks;
  tn_status st = tn__infer_rank(ctx, f->pads, 2, &pads, err);
  *m = f->nd ? -1 : 2;
  if (st == TN_OK && f->nd) {
    st = tn__infer_rank(ctx, 1, 1, &blocks, err);
    *m = blocks.dims[0];
  }
  if (st != TN_OK) return st;
  if (!tn__dim_merge(m, pads.dims[0]) || (pads.dims[1] >= 0 && pads.dims[1] != 2))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u, %s, does not have a pair for each of %lld block sizes",
                        f->op, f->pads, f->to_batch ? "paddings" : "crops", (long long)*m);
  return TN_OK;
}

/* Reads the inputs' values. Returns how much is known: 0 nothing, 1 the block sizes, 2 everything. */
static int infer_axes(const tn_infer_ctx *ctx, const form *f, int32_t m, axis *axes)
{
  const tn_tensor *blocks = f->nd ? tn_infer_input_value(ctx, 1) : NULL, *pads = tn_infer_input_value(ctx, f->pads);
  int64_t block = f->nd ? 0 : tn__attr_int(tn_infer_operation(ctx), "block_size", 0);
  bool all = pads != NULL && tn_tensor_elements(pads) == 2 * (int64_t)m;
  if (f->nd && (blocks == NULL || tn_tensor_elements(blocks) != m)) return 0;
  for (int32_t i = 0; i < m; i++)
    axes[i] = (axis){ f->nd ? tn__tensor_int_at(blocks, i) : block, all ? tn__tensor_int_at(pads, 2 * i) : 0,
                      all ? tn__tensor_int_at(pads, 2 * i + 1) : 0, -1, -1 };
  return all ? 2 : 1;
}

static tn_status infer_form(tn_infer_ctx *ctx, tn_error *err)
{
  form f = form_of(tn_infer_operation(ctx));
  tn__shape s;
  axis axes[TN_MAX_RANK];
  int64_t m;
  tn_status st = infer_count(ctx, &f, &m, err);
  if (st != TN_OK) return st;
  tn__infer_get(ctx, 0, &s);
  if (s.rank < 0 && !f.nd) {
    s.rank = 4;
    for (int i = 0; i < 4; i++) s.dims[i] = -1;
  }
  if (s.rank >= 0 && m >= 0 && (f.nd ? s.rank < m + 1 : s.rank != 4)) return rank_error(&f, s.rank, m, err);
  if (s.rank < 1 || m < 0) {
    for (int32_t i = 0; i < s.rank; i++) s.dims[i] = -1;
    return tn__infer_set(ctx, 0, &s, err);
  }
  int known = infer_axes(ctx, &f, (int32_t)m, axes);
  for (int32_t i = 0; st == TN_OK && i < m && known > 0; i++) st = check_axis(&f, i, &axes[i], err);
  for (int32_t i = known == 0 ? 0 : 1; i <= m && known < 2; i++) s.dims[i] = -1;
  if (st == TN_OK && known > 0) st = output_shape(&f, axes, (int32_t)m, s.dims, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- planning ---- */

typedef struct form_plan {
  size_t bytes;        /* of this allocation */
  tn__strided whole;   /* the single transposition, if `simple` */
  bool simple, to_batch, clear;
  int32_t m;
  int64_t batch, places; /* batches of the space; places in a block */
  int64_t space, cells;  /* elements of one batch on both sides */
  int64_t inner;
  axis axes[];
} form_plan;

/* Reads and checks the block sizes and paddings. */
static tn_status read_axes(const tn_prepare_ctx *ctx, const form *f, int32_t m, axis *axes, tn_error *err)
{
  const tn_view *pads = &ctx->inputs[f->pads];
  int64_t block = f->nd ? 0 : tn__attr_int(ctx->op, "block_size", 0);
  for (int32_t i = 0; i < m; i++) {
    axes[i] = (axis){ f->nd ? tn__view_int_at(&ctx->inputs[1], i) : block, tn__view_int_at(pads, 2 * i),
                      tn__view_int_at(pads, 2 * i + 1), -1, -1 };
    tn_status st = check_axis(f, i, &axes[i], err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

static bool does_nothing(const axis *a) { return a->block == 1 && a->before == 0 && a->after == 0; }

static tn_status check_inner(const form *f, const axis *axes, int32_t m, tn_error *err)
{
  int32_t first = 0, end = m;
  while (first < end && does_nothing(&axes[first])) first++;
  while (end > first && does_nothing(&axes[end - 1])) end--;
  if (end - first <= MAX_INNER_BLOCKS) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %d neighbouring dimensions have blocks, wanted at most %d", f->op,
                      (int)(end - first), MAX_INNER_BLOCKS);
}

/* Checks the inputs' shapes and returns the number of block dimensions. */
static tn_status check_inputs(const tn_prepare_ctx *ctx, const form *f, int32_t *m, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *pads = &ctx->inputs[f->pads];
  int64_t n = 2;
  if (f->nd) {
    tn_status st = tn__want_rank(ctx, 1, 1, err);
    if (st != TN_OK) return st;
    n = ctx->inputs[1].count;
  }
  if (f->nd ? in->rank - 1 < n : in->rank != 4) return rank_error(f, in->rank, n, err);
  if (pads->rank != 2 || pads->dims[0] != n || pads->dims[1] != 2)
    return tn__shape_error(err, ctx, f->pads, (int64_t[]){ n, 2 }, 2);
  if (n > 0 && (pads->data == NULL || (f->nd && ctx->inputs[1].data == NULL)))
    return tn_error_set(err, TN_INTERNAL, "%s: the values of its inputs are not known", f->op);
  *m = (int32_t)n;
  return TN_OK;
}

/* Strides of an axis on both sides, in elements. */
typedef struct steps {
  int64_t space, cells;
} steps;

static void steps_from(const form_plan *p, steps *all)
{
  steps s = { p->inner, p->inner };
  for (int32_t i = p->m - 1; i >= 0; i--) {
    all[i] = s;
    s.space *= p->axes[i].space;
    s.cells *= p->axes[i].cells;
  }
}

static void add(tn__strided *s, bool to_batch, int64_t size, int64_t space, int64_t cells)
{
  tn__strided_add(s, size, to_batch ? space : cells, to_batch ? cells : space);
}

/* Plans the single transposition; requires no paddings or crops. */
static void plan_whole(form_plan *p, tn_dtype dtype)
{
  steps all[TN_MAX_RANK];
  int64_t place = p->batch * p->cells * p->places; /* at the end of the loop: elements of one place of a block */
  tn__strided *s = &p->whole;
  steps_from(p, all);
  tn__strided_init(s, dtype);
  for (int32_t i = 0; i < p->m && p->to_batch; i++) {
    place /= p->axes[i].block;
    add(s, true, p->axes[i].block, all[i].space, place);
  }
  add(s, p->to_batch, p->batch, p->space, p->cells);
  for (int32_t i = 0; i < p->m; i++) {
    const axis *a = &p->axes[i];
    add(s, p->to_batch, a->cells, all[i].space * a->block, all[i].cells);
    if (p->to_batch) continue;
    place /= a->block;
    add(s, false, a->block, all[i].space, place);
  }
  add(s, p->to_batch, p->inner, 1, 1);
  tn__strided_plan(s);
}

static void set_plan(form_plan *p, const form *f, const int64_t *in, const int64_t *out, int32_t rank)
{
  const int64_t *space = f->to_batch ? in : out, *cells = f->to_batch ? out : in;
  p->to_batch = f->to_batch;
  p->batch = space[0];
  p->places = p->inner = 1;
  p->simple = true;
  for (int32_t i = p->m + 1; i < rank; i++) p->inner *= in[i];
  p->space = p->cells = p->inner;
  for (int32_t i = 0; i < p->m; i++) {
    axis *a = &p->axes[i];
    p->space *= space[i + 1];
    p->cells *= cells[i + 1];
    p->places *= a->block;
    if (a->before > 0 || a->after > 0) p->simple = false;
  }
  p->clear = !p->simple && f->to_batch;
}

static tn_status form_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  form f = form_of(ctx->op);
  int64_t dims[TN_MAX_RANK], count;
  axis axes[TN_MAX_RANK];
  int32_t m = 0;
  tn_status st = check_inputs(ctx, &f, &m, err);
  if (st == TN_OK) st = read_axes(ctx, &f, m, axes, err);
  if (st == TN_OK) st = check_inner(&f, axes, m, err);
  if (st != TN_OK) return st;
  memcpy(dims, in->dims, (size_t)in->rank * sizeof *dims);
  st = output_shape(&f, axes, m, dims, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, in->rank, err);
  if (st == TN_OK) st = tn_shape_elements(dims, in->rank, &count, err);
  if (st != TN_OK || count == 0) return st;
  size_t bytes = sizeof(form_plan) + (size_t)m * sizeof(axis);
  form_plan *p = tn__zalloc(bytes);
  if (p == NULL) return tn__no_memory(err, "the plan of blocks", bytes);
  ctx->shape_state = p;
  p->bytes = bytes;
  p->m = m;
  memcpy(p->axes, axes, (size_t)m * sizeof *axes);
  set_plan(p, &f, in->dims, dims, in->rank);
  if (p->simple) plan_whole(p, in->dtype);
  ctx->cost_ns = p->simple ? p->whole.cost_ns : 100 * (double)p->places + (double)count;
  return TN_OK;
}

static void form_destroy_plan(void *plan)
{
  form_plan *p = plan;
  tn__free(p, p->bytes);
}

/* ---- computing ---- */

typedef struct form_run {
  const form_plan *p;
  tn_kernel_ctx *ctx; /* set for strings only, else NULL */
  tn_dtype dtype;
  const char *in;
  char *out;
  tn_status status;
} form_run;

/* The range of cells [*first, end) whose place `at` is inside the space. Returns end. */
static int64_t cells_of(const axis *a, int64_t at, int64_t *first)
{
  int64_t before = a->before - at, low = before > 0 ? (before + a->block - 1) / a->block : 0;
  int64_t behind = a->space + before;
  int64_t high = behind > 0 ? (behind + a->block - 1) / a->block : 0;
  if (high > a->cells) high = a->cells;
  *first = low;
  return high > low ? high : low;
}

/* Copies one place of all blocks, in all batches. */
static tn_status run_place(const form_run *r, const steps *all, int64_t place)
{
  const form_plan *p = r->p;
  tn__strided s;
  int64_t at[TN_MAX_RANK], space = 0, cells = place * p->batch * p->cells, left = place;
  tn__strided_init(&s, r->dtype);
  if (p->clear && !tn__dtype_is_managed(r->dtype))
    memset(r->out + cells * (int64_t)s.element, 0, (size_t)(p->batch * p->cells) * s.element);
  for (int32_t i = p->m - 1; i >= 0; i--) {
    at[i] = left % p->axes[i].block;
    left /= p->axes[i].block;
  }
  add(&s, p->to_batch, p->batch, p->space, p->cells);
  for (int32_t i = 0; i < p->m; i++) {
    const axis *a = &p->axes[i];
    int64_t first, end = cells_of(a, at[i], &first);
    add(&s, p->to_batch, end - first, all[i].space * a->block, all[i].cells);
    space += (first * a->block + at[i] - a->before) * all[i].space;
    cells += first * all[i].cells;
  }
  if (s.empty) return TN_OK;
  add(&s, p->to_batch, p->inner, 1, 1);
  tn__strided_plan(&s);
  int64_t from = p->to_batch ? space : cells, to = p->to_batch ? cells : space;
  return tn__strided_run(&s, r->ctx, r->in + from * (int64_t)s.element, r->out + to * (int64_t)s.element);
}

static void run_places(void *user, int64_t begin, int64_t end)
{
  form_run *r = user;
  steps all[TN_MAX_RANK];
  steps_from(r->p, all);
  for (int64_t place = begin; place < end && r->status == TN_OK; place++) {
    tn_status st = run_place(r, all, place);
    if (st != TN_OK) r->status = st;
  }
}

static tn_status form_compute(tn_kernel_ctx *ctx)
{
  const form_plan *p = ctx->shape_state;
  const tn_view *in = ctx->inputs[0];
  tn_view *out = ctx->outputs[0];
  if (p == NULL) return TN_OK;
  if (p->simple) return tn__strided_run(&p->whole, ctx, in->data, out->data);
  bool managed = tn__dtype_is_managed(in->dtype);
  form_run r = { p, managed ? ctx : NULL, in->dtype, in->data, out->data, TN_OK };
  if (managed || out->count <= TN__SERIAL_ELEMENTS) {
    run_places(&r, 0, p->places);
  } else {
    int64_t each = out->count / p->places + 1;
    tn_parallel_for(ctx, p->places, TN__SERIAL_ELEMENTS / each + 1, 100 + (double)each, run_places, &r);
  }
  return r.status;
}

/* ---- tables ---- */

#define OP(op, in, attributes, operands, text)                                                            \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes, \
    .shape_operands = operands, .infer = infer_form, .summary = text }
#define BLOCK_INDEX "Tblock_shape: {int32, int64} = int32"

static const tn_op_def ops[] = {
  OP("BatchToSpace", "input: T, crops: Tidx", "T: type; block_size: int >= 2; Tidx: {int32, int64} = int32", 1u << 1,
     "rearranges batches into blocks of pixels"),
  OP("BatchToSpaceND", "input: T, block_shape: Tblock_shape, crops: Tcrops",
     "T: type; " BLOCK_INDEX "; Tcrops: {int32, int64} = int32", 1u << 1 | 1u << 2, "rearranges batches into blocks"),
  OP("SpaceToBatch", "input: T, paddings: Tpaddings",
     "T: type; Tpaddings: {int32, int64} = int32; block_size: int >= 2", 1u << 1,
     "rearranges blocks of pixels into batches"),
  OP("SpaceToBatchND", "input: T, block_shape: Tblock_shape, paddings: Tpaddings",
     "T: type; " BLOCK_INDEX "; Tpaddings: {int32, int64} = int32", 1u << 1 | 1u << 2,
     "rearranges blocks into batches"),
};

#define KERNEL(which, title)                                                                             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,   \
    .prepare = form_prepare, .destroy_shape_state = form_destroy_plan, .compute = form_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("BatchToSpace", "batch_to_space_cpu"),
  KERNEL("BatchToSpaceND", "batch_to_space_nd_cpu"),
  KERNEL("SpaceToBatch", "space_to_batch_cpu"),
  KERNEL("SpaceToBatchND", "space_to_batch_nd_cpu"),
};

TN_OP_FAMILY(space_batch)
