/* SPDX-License-Identifier: Apache-2.0 */
/* Roll: cyclic shifts along dimensions. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#include <core/tensor/tensor_internal.h>

/* ---- shapes ---- */

/* Inputs 1 and 2 are scalars, or vectors of one length. */
static tn_status check_lists(const char *op, int32_t rank, const int64_t *shift, int32_t shift_rank,
                             const int64_t *axis, int32_t axis_rank, tn_error *err)
{
  if (rank == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 is a scalar, wanted rank 1 or more", op);
  if (shift_rank > 1 || axis_rank > 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %d has rank %d, wanted a scalar or a vector", op,
                        shift_rank > 1 ? 1 : 2, (int)(shift_rank > 1 ? shift_rank : axis_rank));
  if (shift_rank < 0 || axis_rank < 0) return TN_OK;
  if (shift_rank != axis_rank || (shift_rank == 1 && shift[0] >= 0 && axis[0] >= 0 && shift[0] != axis[0]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs 1 and 2, shifts and axes, have different shapes", op);
  return TN_OK;
}

static tn_status infer_roll(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in;
  const int64_t *shift, *axis;
  tn__infer_get(ctx, 0, &in);
  int32_t shift_rank = tn_infer_input(ctx, 1, &shift), axis_rank = tn_infer_input(ctx, 2, &axis);
  tn_status st = check_lists(tn__infer_op(ctx), in.rank, shift, shift_rank, axis, axis_rank, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &in, err);
}

/* ---- planning ---- */

/* The tensor as rows: dimensions after the last shifted one are merged into its elements. */
typedef struct roll_dim {
  int64_t size, shift; /* shift in [0, size) */
} roll_dim;

typedef struct roll_plan {
  int32_t rank; /* outer dimensions of size above 1; adjacent unshifted ones are merged */
  roll_dim dims[TN_MAX_RANK];
  int64_t rows;
  size_t row, head; /* bytes: of a row; of its tail, which moves to the front */
} roll_plan;

/* Sums up the shifts of each axis. */
static tn_status read_shifts(const tn_view *in, const tn_view *shift, const tn_view *axis, int64_t *shifts,
                             tn_error *err)
{
  for (int32_t i = 0; i < in->rank; i++) shifts[i] = 0;
  for (int64_t k = 0; k < axis->count; k++) {
    int32_t at;
    tn_status st = tn__shape_axis("Roll", tn__view_int_at(axis, k), in->rank, &at, err);
    if (st != TN_OK) return st;
    int64_t size = in->dims[at], by = size == 0 ? 0 : tn__view_int_at(shift, k) % size;
    if (by < 0) by += size;
    shifts[at] += by;
    if (shifts[at] >= size) shifts[at] -= size;
  }
  return TN_OK;
}

/* Requires a tensor with elements. */
static void plan_roll(roll_plan *p, const tn_view *in, const int64_t *shifts)
{
  int32_t last = in->rank - 1;
  p->row = tn_dtype_size(in->dtype);
  while (last > 0 && shifts[last] == 0) p->row *= (size_t)in->dims[last--];
  p->head = p->row * (size_t)shifts[last];
  p->row *= (size_t)in->dims[last];
  p->rank = 0;
  p->rows = 1;
  for (int32_t i = 0; i < last; i++) {
    p->rows *= in->dims[i];
    if (in->dims[i] == 1) continue;
    if (shifts[i] == 0 && p->rank > 0 && p->dims[p->rank - 1].shift == 0)
      p->dims[p->rank - 1].size *= in->dims[i];
    else
      p->dims[p->rank++] = (roll_dim){ in->dims[i], shifts[i] };
  }
}

static tn_status roll_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *shift = &ctx->inputs[1], *axis = &ctx->inputs[2];
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st == TN_OK)
    st = check_lists(tn_operation_type(ctx->op), in->rank, shift->dims, shift->rank, axis->dims, axis->rank, err);
  ctx->cost_ns = 50 + 0.5 * (double)in->count;
  if (st != TN_OK || axis->count == 0) return st != TN_OK ? st : tn_prepare_view(ctx, 0, 0, err);
  if (shift->data == NULL || axis->data == NULL) return TN_OK;
  int64_t shifts[TN_MAX_RANK], any = 0;
  st = read_shifts(in, shift, axis, shifts, err);
  if (st != TN_OK) return st;
  for (int32_t i = 0; i < in->rank; i++) any |= shifts[i];
  if (any == 0 || in->count == 0) return tn_prepare_view(ctx, 0, 0, err);
  roll_plan *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "the plan of a roll", sizeof *p);
  ctx->shape_state = p;
  plan_roll(p, in, shifts);
  return TN_OK;
}

static void roll_destroy_plan(void *plan) { tn__free(plan, sizeof(roll_plan)); }

/* ---- computing ---- */

typedef struct roll_run {
  const roll_plan *p;
  const char *in;
  char *out;
  tn_dtype dtype;
  tn_error *err;
  tn_status status;
} roll_run;

static tn_status copy_bytes(const roll_run *r, char *to, const char *from, size_t bytes)
{
  if (tn__dtype_is_managed(r->dtype))
    return tn__elements_copy(r->dtype, to, from, (int64_t)(bytes / tn_dtype_size(r->dtype)), r->err);
  if (bytes > 0) memcpy(to, from, bytes);
  return TN_OK;
}

/* Returns the source row of output row `row`, and its index in each dimension of the output. */
static int64_t source_row(const roll_plan *p, int64_t row, int64_t *index)
{
  int64_t from = 0, step = 1;
  for (int32_t i = p->rank - 1; i >= 0; i--) {
    int64_t size = p->dims[i].size, at = row % size;
    row /= size;
    index[i] = at;
    from += (at >= p->dims[i].shift ? at - p->dims[i].shift : at - p->dims[i].shift + size) * step;
    step *= size;
  }
  return from;
}

/* Advances to the next output row. The source row advances by one, too, except where a dimension
 * wraps. */
static int64_t next_row(const roll_plan *p, int64_t from, int64_t *index)
{
  int64_t step = 1;
  for (int32_t i = p->rank - 1; i >= 0; i--) {
    int64_t size = p->dims[i].size;
    from += step;
    if (++index[i] == p->dims[i].shift) from -= size * step; /* past the end of the source */
    if (index[i] < size) return from;
    index[i] = 0;
    if (p->dims[i].shift == 0) from -= size * step;
    step *= size;
  }
  return from;
}

static void roll_rows(void *user, int64_t begin, int64_t end)
{
  roll_run *r = user;
  const roll_plan *p = r->p;
  int64_t index[TN_MAX_RANK];
  int64_t from = source_row(p, begin, index);
  for (int64_t row = begin; row < end; row++) {
    const char *in = r->in + from * (int64_t)p->row;
    char *out = r->out + row * (int64_t)p->row;
    tn_status st = copy_bytes(r, out, in + (p->row - p->head), p->head);
    if (st == TN_OK) st = copy_bytes(r, out + p->head, in, p->row - p->head);
    if (st != TN_OK) {
      r->status = st;
      return;
    }
    if (row + 1 < end) from = next_row(p, from, index);
  }
}

static tn_status roll_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  const roll_plan *p = ctx->shape_state;
  roll_plan here;
  if (p == NULL) {
    int64_t shifts[TN_MAX_RANK];
    tn_status st = read_shifts(in, ctx->inputs[1], ctx->inputs[2], shifts, ctx->err);
    if (st != TN_OK || in->count == 0) return st;
    plan_roll(&here, in, shifts);
    p = &here;
  }
  roll_run r = { p, in->data, ctx->outputs[0]->data, in->dtype, ctx->err, TN_OK };
  if (tn__dtype_is_managed(in->dtype) || in->count <= TN__SERIAL_ELEMENTS)
    roll_rows(&r, 0, p->rows);
  else
    tn_parallel_for(ctx, p->rows, (int64_t)(65536 / p->row) + 1, 10 + 0.06 * (double)p->row, roll_rows, &r);
  return r.status;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Roll", .inputs = "input: T, shift: Tshift, axis: Taxis",
    .outputs = "output: T", .attrs = "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}", .infer = infer_roll,
    .summary = "rotates elements along dimensions" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Roll", .device = "CPU", .name = "roll_cpu", .rank = TN_RANK_C,
    .prepare = roll_prepare, .destroy_shape_state = roll_destroy_plan, .compute = roll_compute },
};

TN_OP_FAMILY(roll)
