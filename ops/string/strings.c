/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops on texts: StringLength StringStrip StringLower StringUpper EncodeBase64
 * DecodeBase64. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/string/string_number.h>
#include <ops/string/unicode/string_case.h>

#include <string.h>

static tn_status unchanged_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 20 + 40 * (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

/* ---- StringLength ---- */

static const char *const units[] = { "BYTE", "UTF8_CHAR" };

/* The state is NULL if the unit is bytes. */
static tn_status length_create(const tn_operation *op, void **state, tn_error *err)
{
  static char characters;
  int unit;
  *state = NULL;
  tn_status st = tn__attr_choice(op, "unit", units, 2, &unit, err);
  if (st == TN_OK && unit == 1) *state = &characters;
  return st;
}

/* Every byte except continuation bytes begins a character. */
static size_t count_characters(const char *text, size_t n)
{
  size_t found = 0;
  for (size_t k = 0; k < n; k++) found += ((unsigned char)text[k] & 0xc0) != 0x80;
  return found;
}

static tn_status length_compute(tn_kernel_ctx *ctx)
{
  const tn_string *x = ctx->inputs[0]->data;
  int32_t *to = ctx->outputs[0]->data;
  bool characters = ctx->state != NULL;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    size_t n;
    const char *text = tn_string_data(x + i, &n);
    to[i] = (int32_t)(characters ? count_characters(text, n) : n);
  }
  return TN_OK;
}

/* ---- StringStrip ---- */

static tn_status strip_compute(tn_kernel_ctx *ctx)
{
  const tn_string *x = ctx->inputs[0]->data;
  tn_string *to = ctx->outputs[0]->data;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    tn__slice text;
    text.data = tn_string_data(x + i, &text.size);
    text = tn__text_strip(text);
    st = tn_string_set(to + i, text.data, text.size, ctx->err);
  }
  return st;
}

/* ---- StringLower, StringUpper ---- */

/* The state is NULL for ASCII. */
static tn_status case_create(const tn_operation *op, void **state, tn_error *err)
{
  static char utf8;
  const char *text = "";
  size_t n = 0;
  *state = NULL;
  if (tn_operation_attr_string(op, "encoding", &text, &n, NULL) != TN_OK || n == 0) return TN_OK;
  if (n == 5 && memcmp(text, "utf-8", 5) == 0) {
    *state = &utf8;
    return TN_OK;
  }
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'encoding' is '%.*s', wanted 'utf-8' or nothing",
                      tn_operation_type(op), n > 40 ? 40 : (int)n, text);
}

static tn_status change_utf8(tn_kernel_ctx *ctx, bool upper)
{
  const tn_string *x = ctx->inputs[0]->data;
  tn_string *out = ctx->outputs[0]->data;
  tn__text t;
  tn_status st = TN_OK;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) {
    if ((st = tn__poll_status(&poll, 100)) != TN_OK) break;
    size_t n;
    const char *text = tn_string_data(x + i, &n);
    t.size = 0;
    tn__change_case(&t, text, n, upper);
    st =
        t.failed ? tn__no_memory(ctx->err, "text", t.size) : tn_string_set(out + i, tn__text_get(&t), t.size, ctx->err);
  }
  tn__text_fini(&t);
  return st;
}

static tn_status change_case(tn_kernel_ctx *ctx, char first)
{
  const tn_string *x = ctx->inputs[0]->data;
  tn_string *out = ctx->outputs[0]->data;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    size_t n;
    const char *text = tn_string_data(x + i, &n);
    char *to = tn__string_reserve(out + i, n);
    if (to == NULL) return tn__no_memory(ctx->err, "text", n);
    for (size_t k = 0; k < n; k++) to[k] = (unsigned char)(text[k] - first) < 26 ? (char)(text[k] ^ 0x20) : text[k];
  }
  return TN_OK;
}

static tn_status lower_compute(tn_kernel_ctx *ctx)
{
  return ctx->state != NULL ? change_utf8(ctx, false) : change_case(ctx, 'A');
}

static tn_status upper_compute(tn_kernel_ctx *ctx)
{
  return ctx->state != NULL ? change_utf8(ctx, true) : change_case(ctx, 'a');
}

/* ---- base 64 ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void encode(const unsigned char *from, size_t n, char *to, bool pad)
{
  for (; n >= 3; n -= 3, from += 3, to += 4) {
    uint32_t v = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
    for (int k = 0; k < 4; k++) to[k] = alphabet[v >> (18 - 6 * k) & 63];
  }
  if (n == 0) return;
  uint32_t v = (uint32_t)from[0] << 16 | (n > 1 ? (uint32_t)from[1] << 8 : 0);
  for (size_t k = 0; k < n + 1; k++) to[k] = alphabet[v >> (18 - 6 * k) & 63];
  for (size_t k = n + 1; pad && k < 4; k++) to[k] = '=';
}

static tn_status encode_compute(tn_kernel_ctx *ctx)
{
  const tn_string *x = ctx->inputs[0]->data;
  tn_string *out = ctx->outputs[0]->data;
  bool pad = ctx->state != NULL;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    size_t n;
    const char *text = tn_string_data(x + i, &n);
    size_t length = pad ? (n + 2) / 3 * 4 : (n * 4 + 2) / 3;
    if (n > PTRDIFF_MAX / 8) length = SIZE_MAX;
    char *to = tn__string_reserve(out + i, length);
    if (to == NULL) return tn__no_memory(ctx->err, "encoded text", length);
    encode((const unsigned char *)text, n, to, pad);
  }
  return TN_OK;
}

static tn_status encode_create(const tn_operation *op, void **state, tn_error *err)
{
  static char yes;
  (void)err;
  *state = tn__attr_bool(op, "pad", false) ? &yes : NULL; /* this is the whole state */
  return TN_OK;
}

static int value_of(char c)
{
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  return c == '_' ? 63 : -1;
}

/* Decodes characters without padding. Returns false if there is an invalid one. */
static bool decode(const char *from, size_t n, unsigned char *to)
{
  uint32_t bits = 0;
  int have = 0;
  for (size_t i = 0; i < n; i++) {
    int v = value_of(from[i]);
    if (v < 0) return false;
    bits = bits << 6 | (uint32_t)v;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    *to++ = (unsigned char)(bits >> have);
  }
  return true;
}

static tn_status decode_one(const tn_string *from, tn_string *to, int64_t i, tn_error *err)
{
  size_t n;
  const char *text = tn_string_data(from, &n);
  if (n > 0 && n % 4 == 0 && text[n - 1] == '=') n -= text[n - 2] == '=' ? 2 : 1;
  if (n % 4 == 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "DecodeBase64: element %lld has %zu characters, which no text gives",
                        (long long)i, n);
  char *place = tn__string_reserve(to, n / 4 * 3 + (n % 4 == 0 ? 0 : n % 4 - 1));
  if (place == NULL) return tn__no_memory(err, "decoded text", n);
  if (decode(text, n, (unsigned char *)place)) return TN_OK;
  tn_string_clear(to);
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "DecodeBase64: element %lld has a character that is none of A-Z, a-z, 0-9, '-' and '_'",
                      (long long)i);
}

static tn_status decode_compute(tn_kernel_ctx *ctx)
{
  const tn_string *x = ctx->inputs[0]->data;
  tn_string *to = ctx->outputs[0]->data;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    st = decode_one(x + i, to + i, i, ctx->err);
  }
  return st;
}

/* ---- tables ---- */

#define OP(op, out, attributes, text)                                                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: string", .outputs = "output: " out,         \
    .attrs = attributes, .infer = tn__infer_unchanged, .summary = text }

static const tn_op_def ops[] = {
  OP("StringLength", "int32", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'", "lengths of strings in bytes or characters"),
  OP("StringStrip", "string", "", "strips leading and trailing white space"),
  OP("StringLower", "string", "encoding: string = ''", "converts strings to lower case"),
  OP("StringUpper", "string", "encoding: string = ''", "converts strings to upper case"),
  OP("EncodeBase64", "string", "pad: bool = false", "encodes strings as web-safe base64"),
  OP("DecodeBase64", "string", "", "decodes web-safe base64 strings"),
};

#define KERNEL(which, title, make, run)                                                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,        \
    .create = make, .prepare = unchanged_prepare, .compute = run }

static const tn_kernel_def kernels[] = {
  KERNEL("StringLength", "string_length_cpu", length_create, length_compute),
  KERNEL("StringStrip", "string_strip_cpu", NULL, strip_compute),
  KERNEL("StringLower", "string_lower_cpu", case_create, lower_compute),
  KERNEL("StringUpper", "string_upper_cpu", case_create, upper_compute),
  KERNEL("EncodeBase64", "encode_base64_cpu", encode_create, encode_compute),
  KERNEL("DecodeBase64", "decode_base64_cpu", NULL, decode_compute),
};

TN_OP_FAMILY(strings)
