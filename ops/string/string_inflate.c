/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeCompressed: texts that zlib compressed. zlib is loaded when a step first meets one. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/library.h>
#include <ops/kernel/shapes.h>

#define NEEDS "DecodeCompressed needs zlib"

enum { PLAIN, GZIP, ZLIB };

static tn_status inflate_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const types[] = { "", "GZIP", "ZLIB" };
  int type;
  *state = NULL;
  tn_status st = tn__attr_choice(op, "compression_type", types, 3, &type, err);
  return st != TN_OK ? st : tn__keep_state(&type, sizeof type, "options", state, err);
}

static void inflate_destroy(void *state) { tn__free(state, sizeof(int)); }

static tn_status inflate_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 100 + (double)ctx->inputs[0].count * 2000;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

#ifdef TN_LIBZ
#include <zlib.h>

#define MAP(F)      \
  F(inflate)        \
  F(inflateEnd)     \
  F(inflateInit2_)  \
  F(inflateReset)

typedef struct functions {
  MAP(TN__LIBRARY_MEMBER)
} functions;

enum { BLOCK = 32768 };

/* Appends a block to a text of `size` of `capacity` bytes. */
static bool append(char **text, size_t *size, size_t *capacity, const Bytef *block, size_t n)
{
  size_t wanted;
  if (!tn__size_add(*size, n, &wanted) || !tn__grow((void **)text, capacity, wanted, 1)) return false;
  if (n > 0) __builtin_memcpy(*text + *size, block, n);
  *size = wanted;
  return true;
}

static tn_status data_loss(tn_kernel_ctx *ctx, const z_stream *z)
{
  return tn_error_set(ctx->err, TN_DATA_LOSS, "DecodeCompressed: the data is not compressed correctly: %s",
                      z->msg != NULL ? z->msg : "wrong format");
}

/* Inflates the members of a text one after another. A text that ends early gives what it has. */
static tn_status inflate_members(tn_kernel_ctx *ctx, const functions *f, z_stream *z, tn_string *to)
{
  Bytef block[BLOCK];
  char *text = NULL;
  size_t size = 0, capacity = 0;
  tn_status st = TN_OK;
  for (bool more = z->avail_in > 0; more && st == TN_OK;) {
    z->next_out = block;
    z->avail_out = BLOCK;
    int got = f->inflate(z, Z_SYNC_FLUSH);
    size_t n = BLOCK - z->avail_out;
    if (tn_kernel_cancelled(ctx)) st = TN_CANCELLED;
    else if (!append(&text, &size, &capacity, block, n)) st = tn__no_memory(ctx->err, "an inflated text", size + n);
    else if (got == Z_STREAM_END) {
      more = z->avail_in > 0;
      f->inflateReset(z);
    } else if (got == Z_BUF_ERROR) more = false;
    else if (got == Z_MEM_ERROR) st = tn__no_memory(ctx->err, "zlib's state", 0);
    else if (got != Z_OK) st = data_loss(ctx, z);
  }
  if (st == TN_OK) st = tn_string_set(to, size > 0 ? text : "", size, ctx->err);
  tn__free(text, capacity);
  return st;
}

static tn_status inflate_text(tn_kernel_ctx *ctx, const functions *f, const tn_string *from, tn_string *to)
{
  size_t size;
  const char *data = tn_string_data(from, &size);
  z_stream z = { .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size };
  int bits = *(const int *)ctx->state == GZIP ? MAX_WBITS + 16 : MAX_WBITS;
  if (size > (uInt)-1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "DecodeCompressed: a text has %zu bytes, wanted below 2^32",
                        size);
  if (f->inflateInit2_(&z, bits, ZLIB_VERSION, (int)sizeof z) != Z_OK)
    return tn__no_memory(ctx->err, "zlib's state", 0);
  tn_status st = inflate_members(ctx, f, &z, to);
  f->inflateEnd(&z);
  return st;
}

static tn_status inflate_all(tn_kernel_ctx *ctx, const tn_string *from, tn_string *to, int64_t n)
{
  static const char *const names[] = { MAP(TN__LIBRARY_NAME) };
  functions f;
  tn_status st = tn__library_load(TN_LIBZ, NEEDS, names, &f, sizeof names / sizeof *names, ctx->err);
  for (int64_t i = 0; st == TN_OK && i < n; i++) st = inflate_text(ctx, &f, from + i, to + i);
  return st;
}
#else
static tn_status inflate_all(tn_kernel_ctx *ctx, const tn_string *from, tn_string *to, int64_t n)
{
  (void)from, (void)to, (void)n;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, ctx->err);
}
#endif

static tn_status inflate_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  const tn_string *from = in->data;
  tn_string *to = ctx->outputs[0]->data;
  tn_status st = TN_OK;
  if (*(const int *)ctx->state != PLAIN) return inflate_all(ctx, from, to, in->count);
  for (int64_t i = 0; st == TN_OK && i < in->count; i++) {
    size_t n;
    const char *text = tn_string_data(from + i, &n);
    st = tn_string_set(to + i, text, n, ctx->err);
  }
  return st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "DecodeCompressed", .inputs = "bytes: string", .outputs = "output: string",
    .attrs = "compression_type: string = ''", .infer = tn__infer_unchanged, .summary = "inflates compressed strings" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("DecodeCompressed", "decode_compressed_cpu", inflate_create, inflate_destroy, inflate_prepare,
             inflate_compute),
};

TN_OP_FAMILY(string_inflate)
