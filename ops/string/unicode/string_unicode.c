/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of texts: UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeTranscode. Encodings are UTF-8,
 * UTF-16 and UTF-32 of both byte orders, ASCII and Latin 1. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <ops/string/unicode/string_case.h>

#include <string.h>

/* ---- encodings ---- */

/* As tn__utf8_next. */
typedef uint32_t (*next_fn)(const char *text, size_t n, size_t *at, bool *bad);

static uint32_t unit_at(const char *p, size_t bytes, bool big)
{
  uint32_t v = 0;
  for (size_t i = 0; i < bytes; i++) v |= (uint32_t)(unsigned char)p[i] << 8 * (big ? bytes - 1 - i : i);
  return v;
}

static uint32_t next_16(const char *text, size_t n, size_t *at, bool *bad, bool big)
{
  size_t left = n - *at;
  *bad = left < 2;
  if (*bad) {
    *at = n;
    return TN__NO_CHARACTER;
  }
  uint32_t c = unit_at(text + *at, 2, big), low = left < 4 ? 0 : unit_at(text + *at + 2, 2, big);
  *at += 2;
  if (c < 0xd800 || c > 0xdfff) return c;
  *bad = c > 0xdbff || low < 0xdc00 || low > 0xdfff;
  if (*bad) return TN__NO_CHARACTER;
  *at += 2;
  return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static bool is_character(uint32_t c) { return c < 0xd800 || (c > 0xdfff && c < 0x110000); }

static uint32_t next_32(const char *text, size_t n, size_t *at, bool *bad, bool big)
{
  size_t left = n - *at, bytes = left < 4 ? left : 4;
  uint32_t c = bytes == 4 ? unit_at(text + *at, 4, big) : 0x110000;
  *at += bytes;
  *bad = !is_character(c);
  return *bad ? TN__NO_CHARACTER : c;
}

static uint32_t next_16be(const char *text, size_t n, size_t *at, bool *bad) { return next_16(text, n, at, bad, true); }
static uint32_t next_16le(const char *text, size_t n, size_t *at, bool *bad)
{
  return next_16(text, n, at, bad, false);
}
static uint32_t next_32be(const char *text, size_t n, size_t *at, bool *bad) { return next_32(text, n, at, bad, true); }
static uint32_t next_32le(const char *text, size_t n, size_t *at, bool *bad)
{
  return next_32(text, n, at, bad, false);
}

static uint32_t next_latin(const char *text, size_t n, size_t *at, bool *bad)
{
  (void)n;
  *bad = false;
  return (unsigned char)text[(*at)++];
}

static uint32_t next_ascii(const char *text, size_t n, size_t *at, bool *bad)
{
  uint32_t c = next_latin(text, n, at, bad);
  *bad = c > 0x7f;
  return *bad ? TN__NO_CHARACTER : c;
}

/* Case, blanks, '-' and '_' are ignored in names. */
static const struct { const char *name; next_fn next; } encodings[] = {
  { "utf8", tn__utf8_next }, { "utf16be", next_16be }, { "utf16le", next_16le }, { "utf32be", next_32be },
  { "utf32le", next_32le }, { "usascii", next_ascii }, { "ascii", next_ascii }, { "iso88591", next_latin },
  { "latin1", next_latin },
};

static bool same_name(const char *text, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++) {
    char c = text[i];
    if (c == '-' || c == '_' || c == ' ') continue;
    if (c >= 'A' && c <= 'Z') c |= 0x20;
    if (*name == 0 || c != *name++) return false;
  }
  return *name == 0;
}

static tn_status find_encoding(const tn_operation *op, next_fn *out, tn_error *err)
{
  const char *text;
  size_t n;
  tn_status st = tn_operation_attr_string(op, "input_encoding", &text, &n, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
    *out = encodings[i].next;
    if (same_name(text, n, encodings[i].name)) return TN_OK;
  }
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'input_encoding' is '%.*s', wanted UTF-8, UTF-16-BE, "
                      "UTF-16-LE, UTF-32-BE, UTF-32-LE, US-ASCII or ISO-8859-1", tn_operation_type(op),
                      n > 60 ? 60 : (int)n, text);
}

/* Output encodings; at most 4 bytes per character. */
enum { OUT_8, OUT_16, OUT_32 };

static size_t put_units(uint32_t c, int encoding, char *to)
{
  if (encoding == OUT_8) return tn__utf8_put(c, to);
  bool pair = encoding == OUT_16 && c > 0xffff;
  if (pair) c = (0xd800 + ((c - 0x10000) >> 10)) << 16 | (0xdc00 + ((c - 0x10000) & 0x3ff));
  size_t n = encoding == OUT_32 || pair ? 4 : 2;
  for (size_t i = 0; i < n; i++) to[i] = (char)(c >> 8 * (n - 1 - i));
  return n;
}

/* ---- shared by the ops ---- */

enum { STRICT, REPLACE, IGNORE };

typedef struct unicode_state {
  next_fn next;
  int errors, encoding;
  uint32_t replacement;
  bool controls; /* control characters are errors */
} unicode_state;

static void unicode_destroy(void *state) { tn__free(state, sizeof(unicode_state)); }

static tn_status unicode_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const policies[] = { "strict", "replace", "ignore" };
  static const char *const outputs[] = { "UTF-8", "UTF-16-BE", "UTF-32-BE" };
  unicode_state s = { .encoding = OUT_8 };
  *state = NULL;
  tn_status st = tn__attr_choice(op, "errors", policies, 3, &s.errors, err);
  if (st == TN_OK && tn_operation_attr_kind(op, "input_encoding") != 0) st = find_encoding(op, &s.next, err);
  if (st == TN_OK && tn_operation_attr_kind(op, "output_encoding") != 0)
    st = tn__attr_choice(op, "output_encoding", outputs, 3, &s.encoding, err);
  if (st != TN_OK) return st;
  int64_t replacement = tn__attr_int(op, "replacement_char", TN__NO_CHARACTER);
  if (replacement < 0 || replacement > 0x10ffff || !is_character((uint32_t)replacement))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'replacement_char' is %lld, which is not a character",
                        tn_operation_type(op), (long long)replacement);
  s.replacement = (uint32_t)replacement;
  s.controls = tn__attr_bool(op, "replace_control_characters", false);
  unicode_state *copy = tn__alloc(sizeof *copy);
  if (copy == NULL) return tn__no_memory(err, "kernel", sizeof *copy);
  *copy = s;
  *state = copy;
  return TN_OK;
}

/* Applies the error policy to an invalid character: replaces *c, sets *keep to false to omit it, or
 * fails. */
static tn_status judge(const unicode_state *s, uint32_t *c, bool bad, bool *keep, int64_t i, tn_error *err)
{
  *keep = true;
  if (!bad && !(s->controls && *c <= 0x1f)) return TN_OK;
  *keep = s->errors == REPLACE;
  *c = s->replacement;
  if (s->errors != STRICT) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "text %lld has an invalid character or a control character",
                      (long long)i);
}

/* ---- UnicodeDecode, UnicodeDecodeWithOffsets ---- */

static tn_status decode_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t n = ctx->inputs[0].count + 1;
  tn_status st = tn_prepare_output(ctx, 0, &n, 1, err);
  for (uint32_t i = 1; st == TN_OK && i < ctx->n_outputs; i++) st = tn_prepare_dynamic(ctx, i, err);
  ctx->cost_ns = 100 + 100 * (double)n;
  return st;
}

/* Counts the characters, and writes them and their offsets unless these are NULL. */
static tn_status decode_text(const unicode_state *s, const tn_string *x, int64_t i, int64_t *count, int32_t *to,
                             int64_t *starts, tn_error *err)
{
  size_t n, at = 0;
  const char *text = tn_string_data(x, &n);
  while (at < n) {
    bool bad, keep;
    size_t start = at;
    uint32_t c = s->next(text, n, &at, &bad);
    if (!bad && s->controls && s->errors == STRICT && c <= 0x1f) c = s->replacement; /* not an error in TensorFlow */
    tn_status st = judge(s, &c, bad, &keep, i, err);
    if (st != TN_OK) return st;
    if (!keep) continue;
    if (to != NULL) to[*count] = (int32_t)c;
    if (starts != NULL) starts[*count] = (int64_t)start;
    ++*count;
  }
  return TN_OK;
}

static tn_status decode_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *splits = ctx->outputs[0];
  const tn_string *texts = x->data;
  int64_t total = 0, again = 0;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i <= x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    if (splits->dtype == TN_INT64) ((int64_t *)splits->data)[i] = total;
    else ((int32_t *)splits->data)[i] = (int32_t)total;
    if (i < x->count) st = decode_text(ctx->state, texts + i, i, &total, NULL, NULL, ctx->err);
  }
  if (st == TN_OK && splits->dtype == TN_INT32 && total > INT32_MAX)
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%lld characters do not fit splits of int32", (long long)total);
  for (uint32_t k = 1; st == TN_OK && k < ctx->n_outputs; k++) st = tn_kernel_allocate(ctx, k, &total, 1);
  if (st != TN_OK) return st;
  int64_t *starts = ctx->n_outputs > 2 ? ctx->outputs[2]->data : NULL;
  for (int64_t i = 0; i < x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    decode_text(ctx->state, texts + i, i, &again, ctx->outputs[1]->data, starts, NULL);
  }
  return TN_OK;
}

static tn_status infer_decode(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t unknown = -1;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < (size_t)tn_operation_n_outputs(tn_infer_operation(ctx)); i++)
    st = tn_infer_output(ctx, i, &unknown, 1, err);
  return st;
}

/* ---- UnicodeTranscode ---- */

static tn_status transcode_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 100 + 200 * (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status transcode_text(const unicode_state *s, const tn_string *x, int64_t i, tn__text *t, tn_error *err)
{
  size_t n, at = 0;
  const char *text = tn_string_data(x, &n);
  t->size = 0;
  while (at < n) {
    bool bad, keep;
    char bytes[4];
    uint32_t c = s->next(text, n, &at, &bad);
    tn_status st = judge(s, &c, bad, &keep, i, err);
    if (st != TN_OK) return st;
    if (keep) tn__text_append(t, bytes, put_units(c, s->encoding, bytes));
  }
  return TN_OK;
}

static tn_status set_text(tn_string *to, const tn__text *t, tn_error *err)
{
  return t->failed ? tn__no_memory(err, "text", t->size) : tn_string_set(to, tn__text_get(t), t->size, err);
}

static tn_status transcode_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  tn_string *out = ctx->outputs[0]->data;
  tn__text t;
  tn_status st = TN_OK;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < x->count; i++) {
    if ((st = tn__poll_status(&poll, 100)) != TN_OK) break;
    st = transcode_text(ctx->state, (const tn_string *)x->data + i, i, &t, ctx->err);
    if (st == TN_OK) st = set_text(out + i, &t, ctx->err);
  }
  tn__text_fini(&t);
  return st;
}

/* ---- UnicodeEncode ---- */

static tn_status encode_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  int64_t n = ctx->inputs[1].count - 1;
  if (st == TN_OK && n < 0) st = tn_error_set(err, TN_INVALID_ARGUMENT, "UnicodeEncode: there are no splits");
  ctx->cost_ns = 100 + 10 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_output(ctx, 0, &n, 1, err) : st;
}

static tn_status check_splits(const tn_kernel_ctx *ctx)
{
  const tn_view *splits = ctx->inputs[1];
  int64_t last = 0, n = ctx->inputs[0]->count;
  for (int64_t i = 0; i < splits->count; i++) {
    int64_t at = tn__operand_int(splits, i);
    bool fits = i == 0 ? at == 0 : at >= last && at <= n;
    if (!fits)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "UnicodeEncode: split %lld is %lld, wanted rising ones from 0 to %lld",
                          (long long)i, (long long)at, (long long)n);
    last = at;
  }
  if (last == n) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "UnicodeEncode: the last split is %lld, there are %lld characters",
                      (long long)last, (long long)n);
}

static tn_status encode_compute(tn_kernel_ctx *ctx)
{
  const unicode_state *s = ctx->state;
  const int32_t *x = ctx->inputs[0]->data;
  tn_string *out = ctx->outputs[0]->data;
  tn__text t;
  tn_status st = check_splits(ctx);
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < ctx->outputs[0]->count; i++) {
    if ((st = tn__poll_status(&poll, 100)) != TN_OK) break;
    int64_t end = tn__operand_int(ctx->inputs[1], i + 1);
    t.size = 0;
    for (int64_t k = tn__operand_int(ctx->inputs[1], i); st == TN_OK && k < end; k++) {
      char bytes[4];
      bool keep;
      uint32_t c = (uint32_t)x[k];
      st = judge(s, &c, !is_character(c), &keep, i, ctx->err);
      if (st == TN_OK && keep) tn__text_append(&t, bytes, put_units(c, s->encoding, bytes));
    }
    if (st == TN_OK) st = set_text(out + i, &t, ctx->err);
  }
  tn__text_fini(&t);
  return st;
}

static tn_status infer_encode(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape splits;
  tn_status st = tn__infer_rank(ctx, 1, 1, &splits, err);
  if (st != TN_OK) return st;
  if (splits.dims[0] > 0) splits.dims[0]--;
  else splits.dims[0] = -1;
  return tn__infer_set(ctx, 0, &splits, err);
}

/* ---- tables ---- */

#define POLICY "errors: {'strict', 'replace', 'ignore'} = 'replace'; replacement_char: int = 65533"
#define INPUT "input_encoding: string; " POLICY "; replace_control_characters: bool = false"
#define OUTPUT "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}"
#define SPLITS "; Tsplits: {int32, int64} = int64"
#define OP(op, in, out, attributes, trait, shapes, text)                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = trait, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("UnicodeDecode", "input: string", "row_splits: Tsplits, char_values: int32", INPUT SPLITS, TN_TRAIT_DYNAMIC,
     infer_decode, "decodes strings to Unicode code points"),
  OP("UnicodeDecodeWithOffsets", "input: string", "row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
     INPUT SPLITS, TN_TRAIT_DYNAMIC, infer_decode, "decodes strings to Unicode code points and their byte offsets"),
  OP("UnicodeEncode", "input_values: int32, input_splits: Tsplits", "output: string", OUTPUT "; " POLICY SPLITS, 0,
     infer_encode, "encodes Unicode code points as strings"),
  OP("UnicodeTranscode", "input: string", "output: string", INPUT "; " OUTPUT, 0, tn__infer_unchanged,
     "transcodes strings to another Unicode encoding"),
};

#define KERNEL(which, title, ready, run)                                                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,         \
    .create = unicode_create, .destroy = unicode_destroy, .prepare = ready, .compute = run }

static const tn_kernel_def kernels[] = {
  KERNEL("UnicodeDecode", "unicode_decode_cpu", decode_prepare, decode_compute),
  KERNEL("UnicodeDecodeWithOffsets", "unicode_decode_with_offsets_cpu", decode_prepare, decode_compute),
  KERNEL("UnicodeEncode", "unicode_encode_cpu", encode_prepare, encode_compute),
  KERNEL("UnicodeTranscode", "unicode_transcode_cpu", transcode_prepare, transcode_compute),
};

TN_OP_FAMILY(string_unicode)
