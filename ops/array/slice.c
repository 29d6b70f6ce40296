/* SPDX-License-Identifier: Apache-2.0 */
/* A box of a tensor: Slice. */
#include <core/base/alloc.h>
#include <core/graph/prepare.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/slicing.h>
#include <ops/kernel/operands.h>

/* Size -1 means up to the end. */
static tn_status check_range(int32_t k, int64_t whole, int64_t begin, int64_t *size, tn_error *err)
{
  if (begin < 0 || begin > whole)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Slice: begin %lld is outside dimension %d of size %lld",
                        (long long)begin, (int)k, (long long)whole);
  if (*size == -1) *size = whole - begin;
  if (*size < 0 || *size > whole - begin)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Slice: size %lld from %lld on is outside dimension %d of size %lld",
                        (long long)*size, (long long)begin, (int)k, (long long)whole);
  return TN_OK;
}

typedef struct slice_state {
  tn__box_copy copy; /* if `moves`: planned for a box at the start of the tensor */
  bool moves;        /* compute reads where the box begins */
} slice_state;

static void destroy_state(void *state) { tn__free(state, sizeof(slice_state)); }

/* If the sizes determine the output's shape, the beginning of the box may vary from step to step. */
static bool may_move(tn_prepare_ctx *ctx, tn__box *box)
{
  for (int32_t k = 0; k < box->rank; k++)
    if (tn__operand_int(&ctx->inputs[2], k) == -1) return false;
  if (!tn__prepare_any_value(ctx, 1)) return false;
  for (int32_t k = 0; k < box->rank; k++) box->begin[k] = 0;
  return true;
}

static tn_status slice_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__box box = { .rank = in->rank };
  tn_status st = tn__want_vector(ctx, 1, in->rank, err);
  if (st == TN_OK) st = tn__want_vector(ctx, 2, in->rank, err);
  for (int32_t k = 0; k < in->rank && st == TN_OK; k++) {
    box.begin[k] = tn__operand_int(&ctx->inputs[1], k);
    box.size[k] = tn__operand_int(&ctx->inputs[2], k);
    box.step[k] = 1;
    st = check_range(k, in->dims[k], box.begin[k], &box.size[k], err);
  }
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, box.size, box.rank, err);
  if (st != TN_OK) return st;
  if (tn__box_is_all(&box, in->dims)) return tn_prepare_view(ctx, 0, 0, err);
  if (tn__box_is_empty(&box)) return TN_OK;
  slice_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "slice", sizeof *s);
  ctx->shape_state = s;
  s->moves = may_move(ctx, &box);
  tn__box_copy_init(&s->copy, in->dtype, in->dims, &box, NULL, false);
  ctx->cost_ns = s->copy.strided.cost_ns;
  return TN_OK;
}

/* The byte offset at which the box begins. */
static tn_status find_begin(const tn_kernel_ctx *ctx, size_t *offset)
{
  const tn_view *in = ctx->inputs[0];
  int64_t at = 0;
  for (int32_t k = 0; k < in->rank; k++) {
    int64_t begin = tn__operand_int(ctx->inputs[1], k), size = ctx->outputs[0]->dims[k];
    tn_status st = check_range(k, in->dims[k], begin, &size, ctx->err);
    if (st != TN_OK) return st;
    at = at * in->dims[k] + begin;
  }
  *offset = (size_t)at * tn_dtype_size(in->dtype);
  return TN_OK;
}

static tn_status slice_compute(tn_kernel_ctx *ctx)
{
  if (ctx->shape_state == NULL) return TN_OK; /* no elements */
  const slice_state *s = ctx->shape_state;
  size_t offset = 0;
  tn_status st = s->moves ? find_begin(ctx, &offset) : TN_OK;
  return st != TN_OK ? st
                     : tn__box_copy_run(&s->copy, ctx, (char *)ctx->inputs[0]->data + offset, ctx->outputs[0]->data);
}

/* The output's values are known where those of the input are. */
static tn_status infer_sliced_ints(tn_infer_ctx *ctx, int64_t size, tn_error *err)
{
  const int64_t *items, *begin;
  int64_t n = tn_infer_input_ints(ctx, 0, &items);
  if (n < 0 || tn_infer_input_ints(ctx, 1, &begin) != 1 || begin[0] < 0 || begin[0] > n) return TN_OK;
  if (size < 0 || size > n - begin[0]) return TN_OK;
  return tn_infer_output_ints(ctx, 0, items + begin[0], size, err);
}

static tn_status infer_slice(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  const int64_t *begin, *size;
  tn__infer_get(ctx, 0, &s);
  for (size_t i = 1; i < 3 && s.rank < 0; i++) {
    s.rank = tn__infer_length(ctx, i);
    for (int32_t k = 0; k < s.rank; k++) s.dims[k] = -1;
  }
  int64_t n_begin = tn_infer_input_ints(ctx, 1, &begin), n_size = tn_infer_input_ints(ctx, 2, &size);
  for (int32_t k = 0; k < s.rank; k++) {
    int64_t wanted = n_size == s.rank ? size[k] : TN_UNKNOWN_INT, from = n_begin == s.rank ? begin[k] : TN_UNKNOWN_INT;
    if (wanted >= 0) s.dims[k] = wanted;
    else if (wanted == -1 && from >= 0 && s.dims[k] >= from) s.dims[k] -= from;
    else s.dims[k] = -1;
  }
  tn_status st = tn__infer_set(ctx, 0, &s, err);
  return st == TN_OK && s.rank == 1 ? infer_sliced_ints(ctx, s.dims[0], err) : st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Slice", .inputs = "input: T, begin: Index, size: Index",
    .outputs = "output: T", .attrs = "T: type; Index: {int32, int64}", .shape_operands = 1u << 1 | 1u << 2,
    .infer = infer_slice, .summary = "extracts a box from a tensor" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Slice", .device = "CPU", .name = "slice_cpu", .rank = TN_RANK_C,
    .prepare = slice_prepare, .destroy_shape_state = destroy_state, .compute = slice_compute },
};

TN_OP_FAMILY(slice)
