/* SPDX-License-Identifier: Apache-2.0 */
/* Cast: converts elements to another dtype. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

static tn_status cast_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn__convert c;
  tn_dtype from = tn_operation_input_dtype(op, 0), to = tn_operation_output_dtype(op, 0);
  if (!tn__convert_find(from, to, tn__attr_bool(op, "Truncate", false), &c))
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: %s cannot be cast to %s", tn_operation_type(op),
                        tn_dtype_name(from), tn_dtype_name(to));
  tn__convert *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "state of Cast", sizeof *s);
  *s = c;
  *state = s;
  return TN_OK;
}

static void cast_destroy(void *state) { tn__free(state, sizeof(tn__convert)); }

static tn_status cast_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__convert *c = ctx->state;
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  if (c->same) return tn_prepare_view(ctx, 0, 0, err);
  ctx->cost_ns = 20 + 0.5 * (double)ctx->inputs[0].count;
  return TN_OK;
}

typedef struct cast_run {
  const tn__convert *convert;
  const char *in;
  char *out;
} cast_run;

static void cast_part(void *user, int64_t begin, int64_t end)
{
  const cast_run *r = user;
  tn__convert_run(r->convert, r->in + (size_t)begin * r->convert->from_size,
                  r->out + (size_t)begin * r->convert->to_size, end - begin);
}

static tn_status cast_compute(tn_kernel_ctx *ctx)
{
  cast_run r = { ctx->state, ctx->inputs[0]->data, ctx->outputs[0]->data };
  int64_t n = ctx->outputs[0]->count;
  if (n <= 2 * TN__SERIAL_ELEMENTS)
    cast_part(&r, 0, n);
  else
    tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, 0.5, cast_part, &r);
  return TN_OK;
}

/* Known values, such as sizes, stay known when cast between int32 and int64. */
static tn_status infer_cast(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn__infer_unchanged(ctx, err);
  const int64_t *items, *dims;
  tn_dtype to = tn_operation_output_dtype(tn_infer_operation(ctx), 0);
  if (st != TN_OK || (to != TN_INT32 && to != TN_INT64)) return st;
  int64_t n = tn_infer_input_ints(ctx, 0, &items);
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  bool fits = rank == 0 ? n == 1 : rank == 1 && dims[0] == n;
  return fits && n >= 0 ? tn_infer_output_ints(ctx, 0, items, n, err) : st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Cast", .inputs = "x: SrcT", .outputs = "y: DstT",
    .attrs = "SrcT: type; DstT: type; Truncate: bool = false", .traits = TN_TRAIT_ELEMENTWISE,
    .infer = infer_cast, .summary = "converts elements to another dtype" },
};

#define NUMBERS                                                                                             \
  "float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|" \
  "float8_e5m2|float8_e4m3fn|int4|uint4|qint8|quint8|qint16|quint16|qint32"

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Cast", .device = "CPU", .types = "SrcT=" NUMBERS ",DstT=" NUMBERS,
    .name = "cast_cpu", .rank = TN_RANK_C, .create = cast_create, .destroy = cast_destroy, .prepare = cast_prepare,
    .compute = cast_compute },
};

TN_OP_FAMILY(cast)
