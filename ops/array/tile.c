/* SPDX-License-Identifier: Apache-2.0 */
/* Repetition: Tile BroadcastTo. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/operands.h>

static void destroy_copy(void *copy) { tn__free(copy, sizeof(tn__strided)); }

/* Creates the copy that becomes the shape state; it has no dimensions yet. */
static tn_status new_copy(tn_prepare_ctx *ctx, tn__strided **out, tn_error *err)
{
  *out = tn__zalloc(sizeof **out);
  if (*out == NULL) return tn__no_memory(err, "plan of copies", sizeof **out);
  tn__strided_init(*out, ctx->inputs[0].dtype);
  ctx->shape_state = *out;
  return TN_OK;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  if (ctx->shape_state == NULL) return TN_OK; /* no elements */
  return tn__strided_run(ctx->shape_state, ctx, ctx->inputs[0]->data, ctx->outputs[0]->data);
}

/* ---- Tile ---- */

static tn_status tile_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *times = &ctx->inputs[1];
  tn__shape out;
  tn__strided *copy;
  int64_t count;
  tn_status st = tn__want_vector(ctx, 1, in->rank, err);
  if (st != TN_OK) return st;
  tn__shape_set(&out, in->dims, in->rank);
  for (int32_t k = 0; k < in->rank; k++) {
    int64_t n = tn__operand_int(times, k);
    if (n < 0 || __builtin_mul_overflow(out.dims[k], n, &out.dims[k]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "Tile: dimension %d of size %lld cannot be repeated %lld times",
                          (int)k, (long long)in->dims[k], (long long)n);
  }
  st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st == TN_OK) st = tn_shape_elements(out.dims, out.rank, &count, err);
  if (st == TN_OK && count == in->count) return tn_prepare_view(ctx, 0, 0, err);
  if (st != TN_OK || count == 0) return st;
  st = new_copy(ctx, &copy, err);
  if (st != TN_OK) return st;
  int64_t from = in->count, to = count; /* strides in elements */
  for (int32_t k = 0; k < in->rank; k++) {
    to /= tn__operand_int(times, k);
    tn__strided_add(copy, tn__operand_int(times, k), 0, to);
    from /= in->dims[k];
    to /= in->dims[k];
    tn__strided_add(copy, in->dims[k], from, to);
  }
  tn__strided_plan(copy);
  ctx->cost_ns = copy->cost_ns;
  return TN_OK;
}

static tn_status infer_tile(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  const int64_t *times;
  tn__infer_get(ctx, 0, &s);
  int64_t n = tn_infer_input_ints(ctx, 1, &times);
  if (s.rank < 0) { /* one dimension per multiple */
    s.rank = tn__infer_length(ctx, 1);
    for (int32_t k = 0; k < s.rank; k++) s.dims[k] = -1;
  }
  if (n >= 0 && s.rank >= 0 && n != s.rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Tile: %lld multiples for %d dimensions", (long long)n, (int)s.rank);
  for (int32_t k = 0; k < s.rank; k++) {
    bool known = n >= 0 && times[k] >= 0 && (s.dims[k] >= 0 || times[k] == 0);
    if (!known) s.dims[k] = -1;
    else if (times[k] == 0) s.dims[k] = 0;
    else if (__builtin_mul_overflow(s.dims[k], times[k], &s.dims[k])) s.dims[k] = -1;
  }
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- BroadcastTo ---- */

/* The wanted shape, input 1. */
static tn_status wanted_shape(const tn_prepare_ctx *ctx, tn__shape *s, tn_error *err)
{
  const tn_view *shape = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_value(ctx, 1, err);
  if (st != TN_OK) return st;
  if (shape->count > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "BroadcastTo: a shape of %lld sizes", (long long)shape->count);
  s->rank = (int32_t)shape->count;
  for (int32_t k = 0; k < s->rank; k++) {
    s->dims[k] = tn__operand_int(shape, k);
    if (s->dims[k] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "BroadcastTo: size %d is %lld", (int)k, (long long)s->dims[k]);
  }
  return TN_OK;
}

/* Whether `dims` broadcasts to the shape, of which parts may be unknown. */
static bool broadcasts(const int64_t *dims, int32_t rank, const tn__shape *s)
{
  int32_t lead = s->rank - rank;
  if (lead < 0) return false;
  for (int32_t k = 0; k < rank; k++)
    if (dims[k] >= 0 && dims[k] != 1 && s->dims[lead + k] >= 0 && dims[k] != s->dims[lead + k]) return false;
  return true;
}

static tn_status does_not(const char *op, const int64_t *dims, int32_t rank, const tn__shape *s, tn_error *err)
{
  char from[160], to[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: shape %s does not broadcast to %s", op,
                      tn__format_shape(from, sizeof from, dims, rank),
                      tn__format_shape(to, sizeof to, s->dims, s->rank));
}

static tn_status broadcast_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__shape out;
  tn__strided *copy;
  int64_t count;
  tn_status st = wanted_shape(ctx, &out, err);
  if (st == TN_OK && !broadcasts(in->dims, in->rank, &out))
    return does_not("BroadcastTo", in->dims, in->rank, &out, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st == TN_OK) st = tn_shape_elements(out.dims, out.rank, &count, err);
  if (st == TN_OK && count == in->count) return tn_prepare_view(ctx, 0, 0, err);
  if (st != TN_OK || count == 0) return st;
  st = new_copy(ctx, &copy, err);
  if (st != TN_OK) return st;
  int64_t from = in->count, to = count;
  for (int32_t k = 0; k < out.rank; k++) {
    int32_t i = k - (out.rank - in->rank);
    int64_t size = i < 0 ? 1 : in->dims[i];
    from /= size;
    to /= out.dims[k];
    tn__strided_add(copy, out.dims[k], size == 1 ? 0 : from, to);
  }
  tn__strided_plan(copy);
  ctx->cost_ns = copy->cost_ns;
  return TN_OK;
}

static tn_status infer_broadcast_to(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  s.rank = tn_infer_input_as_shape(ctx, 1, s.dims);
  if (rank >= 0 && s.rank >= 0) {
    if (!broadcasts(dims, rank, &s)) return does_not("BroadcastTo", dims, rank, &s, err);
    for (int32_t k = 0; k < rank; k++) /* a size that is not 1 is kept */
      if (dims[k] > 1) tn__dim_merge(&s.dims[s.rank - rank + k], dims[k]);
  }
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define OP(op, in, attributes, shapes, text)                                                              \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes, \
    .shape_operands = 1u << 1, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("BroadcastTo", "input: T, shape: Tidx", "T: type; Tidx: {int32, int64} = int32", infer_broadcast_to,
     "broadcasts a tensor to a shape"),
  OP("Tile", "input: T, multiples: Tmultiples", "T: type; Tmultiples: {int32, int64} = int32", infer_tile,
     "repeats a tensor along its dimensions"),
};

#define KERNEL(which, title, prepare_fn)                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .destroy_shape_state = destroy_copy, .compute = compute }

static const tn_kernel_def kernels[] = {
  KERNEL("BroadcastTo", "broadcast_to_cpu", broadcast_prepare),
  KERNEL("Tile", "tile_cpu", tile_prepare),
};

TN_OP_FAMILY(tile)
