/* SPDX-License-Identifier: Apache-2.0 */
/* Where: the indices of elements that are true or not 0. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>

/* ---- flags ---- */

/* Numbers are tested as bit patterns; `mask` excludes the sign of a zero. Flags are computed for
 * BLOCK elements at a time. */
#define BLOCK 1024

#define FLAGS(name, T, N, mask)                                                                       \
  static void flags_##name(const void *data, int64_t at, int64_t n, uint8_t *flags)                   \
  {                                                                                                   \
    const T *x = (const T *)data + at * (N);                                                          \
    for (int64_t i = 0; i < n; i++) flags[i] = ((x[i * (N)] | x[i * (N) + (N) - 1]) & (mask)) != 0;   \
  }
FLAGS(8, uint8_t, 1, 0xffu)
FLAGS(16, uint16_t, 1, 0xffffu)
FLAGS(32, uint32_t, 1, 0xffffffffu)
FLAGS(64, uint64_t, 1, UINT64_MAX)
FLAGS(f16, uint16_t, 1, 0x7fffu)
FLAGS(f32, uint32_t, 1, 0x7fffffffu)
FLAGS(f64, uint64_t, 1, UINT64_MAX >> 1)
FLAGS(c64, uint32_t, 2, 0x7fffffffu)
FLAGS(c128, uint64_t, 2, UINT64_MAX >> 1)

typedef void (*flags_fn)(const void *data, int64_t at, int64_t n, uint8_t *flags);

static flags_fn flags_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return flags_f32;
  case TN_DOUBLE: return flags_f64;
  case TN_HALF:
  case TN_BFLOAT16: return flags_f16;
  case TN_COMPLEX64: return flags_c64;
  case TN_COMPLEX128: return flags_c128;
  default:
    switch (tn_dtype_size(dtype)) {
    case 1: return flags_8;
    case 2: return flags_16;
    case 4: return flags_32;
    default: return flags_64;
    }
  }
}

static int64_t count_flags(const uint8_t *flags, int64_t n)
{
  int64_t found = 0;
  for (int64_t i = 0; i < n; i++) found += flags[i];
  return found;
}

/* ---- the kernel ---- */

static tn_status where_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  ctx->cost_ns = 20 + 2 * (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn_prepare_dynamic(ctx, 0, err);
}

/* Writes the coordinates of the flagged elements of one row, starting at element `begin`. The first
 * rank - 1 coordinates are the row's. */
static int64_t *write_row(int64_t *to, const int64_t *index, int32_t rank, int64_t begin, const uint8_t *flags,
                          int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    if (!flags[i]) continue;
    for (int32_t d = 0; d < rank - 1; d++) *to++ = index[d];
    *to++ = begin + i;
  }
  return to;
}

static void next_row(int64_t *index, const int64_t *dims, int32_t rank)
{
  for (int32_t d = rank - 2; d >= 0; d--) {
    if (++index[d] < dims[d]) return;
    index[d] = 0;
  }
}

static tn_status where_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  flags_fn make = flags_of(x->dtype);
  uint8_t flags[BLOCK];
  int64_t found[2] = { 0, x->rank }, index[TN_MAX_RANK] = { 0 };
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t at = 0, n; at < x->count; at += n) {
    n = x->count - at < BLOCK ? x->count - at : BLOCK;
    if (tn__poll_over(&poll, n)) return TN_CANCELLED;
    make(x->data, at, n, flags);
    found[0] += count_flags(flags, n);
  }
  tn_status st = tn_kernel_allocate(ctx, 0, found, 2);
  if (st != TN_OK || found[0] == 0) return st;

  int64_t *to = ctx->outputs[0]->data, row = x->dims[x->rank - 1], column = 0;
  for (int64_t at = 0, n; at < x->count; at += n) {
    n = x->count - at < BLOCK ? x->count - at : BLOCK;
    if (tn__poll_over(&poll, 4 * n)) return TN_CANCELLED;
    make(x->data, at, n, flags);
    for (int64_t k = 0, run; k < n; k += run) { /* runs that belong to one row */
      run = row - column < n - k ? row - column : n - k;
      to = write_row(to, index, x->rank, column, flags + k, run);
      column += run;
      if (column < row) continue;
      column = 0;
      next_row(index, x->dims, x->rank);
    }
  }
  return TN_OK;
}

static tn_status infer_where(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *unused;
  int64_t dims[2] = { -1, tn_infer_input(ctx, 0, &unused) }; /* -1 means unknown for both */
  return tn_infer_output(ctx, 0, dims, 2, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Where", .inputs = "input: T", .outputs = "index: int64",
    .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
             "quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_where, .summary = "indices of elements that are true or nonzero" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Where", .device = "CPU",
    .types = "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128",
    .name = "where_cpu", .rank = TN_RANK_C, .prepare = where_prepare, .compute = where_compute },
};

TN_OP_FAMILY(where)
