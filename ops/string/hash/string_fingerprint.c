/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of rows and of texts that never change: Fingerprint SdcaFprint. */
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/string/hash/fingerprint.h>
#include <string.h>

#define BYTES 8 /* of a fingerprint */

/* ---- Fingerprint ---- */

/* Scratch memory holds the fingerprints of the texts of a row. */
static tn_status fingerprint_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  if (st != TN_OK) return st;
  const int64_t dims[2] = { x->dims[0], BYTES };
  if (x->dtype == TN_STRING && x->count > 0) ctx->scratch_bytes = (size_t)(x->count / x->dims[0]) * BYTES;
  ctx->cost_ns = 50 + 20 * (double)dims[0] + 0.3 * (double)x->count * (double)tn_dtype_size(x->dtype);
  return tn_prepare_output(ctx, 0, dims, 2, err);
}

static uint64_t hash_text(const tn_string *text)
{
  size_t n;
  const char *data = tn_string_data(text, &n);
  return tn__fingerprint64(data, n);
}

/* A row of several texts has the fingerprint of their fingerprints. */
static uint64_t hash_texts(const tn_string *row, int64_t n, uint64_t *hashes, tn__poll *poll)
{
  if (n == 1) return hash_text(row);
  for (int64_t i = 0; i < n && !tn__poll_over(poll, 30); i++) hashes[i] = hash_text(row + i);
  return tn__fingerprint64(n == 0 ? (const void *)"" : hashes, (size_t)n * BYTES);
}

static tn_status fingerprint_compute(tn_kernel_ctx *ctx)
{
  static const char wanted[] = "farmhash64";
  const tn_view *x = ctx->inputs[0];
  int64_t rows = x->dims[0], each = rows == 0 ? 0 : x->count / rows;
  size_t length, bytes = (size_t)each * tn_dtype_size(x->dtype);
  const char *method = tn_string_data(ctx->inputs[1]->data, &length);
  uint8_t *to = ctx->outputs[0]->data;
  tn__poll poll = tn__poll_of(ctx);
  if (length != sizeof wanted - 1 || memcmp(method, wanted, length) != 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "Fingerprint: method '%.*s' is unknown, wanted '%s'",
                        length < 100 ? (int)length : 100, method, wanted);
  for (int64_t i = 0; i < rows; i++, to += BYTES) {
    if (tn__poll_over(&poll, 20 + (int64_t)bytes / 8)) return TN_CANCELLED;
    const char *row = (const char *)x->data + (size_t)i * bytes;
    uint64_t h = x->dtype == TN_STRING ? hash_texts((const tn_string *)row, each, ctx->scratch, &poll)
                                       : tn__fingerprint64(row, bytes);
    memcpy(to, &h, BYTES);
  }
  return TN_OK;
}

static tn_status infer_fingerprint(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &x, err);
  const int64_t dims[2] = { x.rank > 0 ? x.dims[0] : -1, BYTES };
  return st == TN_OK ? tn_infer_output(ctx, 0, dims, 2, err) : st;
}

/* ---- SdcaFprint ---- */

static tn_status sdca_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const int64_t dims[2] = { ctx->inputs[0].count, 2 };
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  ctx->cost_ns = 20 + 30 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_output(ctx, 0, dims, 2, err) : st;
}

static tn_status sdca_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  uint64_t *to = ctx->outputs[0]->data;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < x->count; i++) {
    size_t n;
    const char *text = tn_string_data((const tn_string *)x->data + i, &n);
    if (tn__poll_over(&poll, 30 + (int64_t)n / 8)) return TN_CANCELLED;
    tn__fingerprint128(text, n, to + 2 * i);
  }
  return TN_OK;
}

static tn_status infer_sdca(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x;
  tn_status st = tn__infer_rank(ctx, 0, 1, &x, err);
  const int64_t dims[2] = { x.rank > 0 ? x.dims[0] : -1, 2 };
  return st == TN_OK ? tn_infer_output(ctx, 0, dims, 2, err) : st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Fingerprint", .inputs = "data: T, method: string",
    .outputs = "fingerprint: uint8", .attrs = "T: type", .infer = infer_fingerprint,
    .summary = "fingerprints of rows" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "SdcaFprint", .inputs = "input: string", .outputs = "output: int64",
    .attrs = "", .infer = infer_sdca, .summary = "fingerprints of strings, of 128 bits" },
};

#define TYPES                                                                                                        \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|string|" \
  "qint8|quint8|qint16|quint16|qint32"

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Fingerprint", .device = "CPU", .types = TYPES,
    .name = "fingerprint_cpu", .rank = TN_RANK_C, .prepare = fingerprint_prepare, .compute = fingerprint_compute },
  TN__KERNEL("SdcaFprint", "sdca_fprint_cpu", NULL, NULL, sdca_prepare, sdca_compute),
};

TN_OP_FAMILY(string_fingerprint)
