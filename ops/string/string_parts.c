/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of texts: Substr StringSplit StringSplitV2. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>

#include <string.h>

/* ---- Substr ---- */

static const char *const units[] = { "BYTE", "UTF8_CHAR" };

/* The state is NULL if the unit is bytes. */
static tn_status substr_create(const tn_operation *op, void **state, tn_error *err)
{
  static char characters;
  int unit;
  *state = NULL;
  tn_status st = tn__attr_choice(op, "unit", units, 2, &unit, err);
  if (st == TN_OK && unit == 1) *state = &characters;
  return st;
}

static tn_status substr_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *pos = &ctx->inputs[1];
  tn__shape out;
  tn_status st = tn__want_same_shape(ctx, 1, 2, err);
  if (st != TN_OK) return st;
  if (!tn__broadcast_shapes(x->dims, x->rank, pos->dims, pos->rank, &out))
    return tn__broadcast_error(err, "Substr", x->dims, x->rank, pos->dims, pos->rank);
  ctx->cost_ns = 20 + 40 * (double)x->count;
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

static bool goes_on(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* Finds where character `pos` begins, counted from the end if negative. The end of the text is
 * allowed. Returns false if there is no such character. */
static bool find_character(const char *text, size_t n, int64_t pos, size_t *out)
{
  size_t at = 0;
  if (pos >= 0) {
    for (; pos > 0 && at < n; pos--)
      for (at++; at < n && goes_on(text[at]);) at++;
    *out = at;
    return pos == 0;
  }
  for (at = n; pos < 0 && at > 0; pos++)
    for (at--; at > 0 && goes_on(text[at]);) at--;
  *out = at;
  return pos == 0;
}

/* As in TensorFlow, a negative length extends to the end if the unit is bytes, and is empty if it
 * is characters. */
static bool part_of(const char *text, size_t n, bool characters, int64_t pos, int64_t length, size_t *begin,
                    size_t *end)
{
  if (!characters) {
    if (pos < 0 ? (uint64_t)0 - (uint64_t)pos > n : (uint64_t)pos > n) return false;
    *begin = pos < 0 ? n - (size_t)-pos : (size_t)pos;
    *end = length < 0 || (uint64_t)length > n - *begin ? n : *begin + (size_t)length;
    return true;
  }
  if (!find_character(text, n, pos, begin)) return false;
  *end = *begin;
  if (length <= 0) return true;
  size_t more;
  find_character(text + *begin, n - *begin, length, &more);
  *end += more;
  return true;
}

static tn_status substr_one(const tn_kernel_ctx *ctx, const tn_string *from, int64_t k, int64_t i, tn_string *to)
{
  int64_t pos = tn__operand_int(ctx->inputs[1], k), length = tn__operand_int(ctx->inputs[2], k);
  size_t n, begin, end;
  const char *text = tn_string_data(from, &n);
  if (part_of(text, n, ctx->state != NULL, pos, length, &begin, &end))
    return tn_string_set(to, text + begin, end - begin, ctx->err);
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "Substr: position %lld of element %lld is outside of its text of %zu bytes", (long long)pos,
                      (long long)i, n);
}

/* Strides of an operand in the output's dimensions; 0 where it is broadcast. */
static void steps_of(const tn_view *v, const tn_view *out, int64_t *steps)
{
  int64_t stride = 1;
  for (int32_t d = out->rank - 1; d >= 0; d--) {
    int32_t own = d - (out->rank - v->rank);
    steps[d] = own < 0 || v->dims[own] == 1 ? 0 : stride;
    if (own >= 0) stride *= v->dims[own];
  }
}

static tn_status substr_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *out = ctx->outputs[0];
  int64_t text_steps[TN_MAX_RANK], pos_steps[TN_MAX_RANK], index[TN_MAX_RANK] = { 0 }, at = 0, k = 0;
  steps_of(x, out, text_steps);
  steps_of(ctx->inputs[1], out, pos_steps);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < out->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    tn_status st = substr_one(ctx, (const tn_string *)x->data + at, k, i, (tn_string *)out->data + i);
    if (st != TN_OK) return st;
    for (int32_t d = out->rank - 1; d >= 0; d--) {
      at += text_steps[d];
      k += pos_steps[d];
      if (++index[d] < out->dims[d]) break;
      at -= text_steps[d] * index[d];
      k -= pos_steps[d] * index[d];
      index[d] = 0;
    }
  }
  return TN_OK;
}

static tn_status infer_substr(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, pos, out;
  tn__infer_get(ctx, 0, &x);
  tn__infer_get(ctx, 1, &pos);
  if (!tn__broadcast_shapes(x.dims, x.rank, pos.dims, pos.rank, &out))
    return tn__broadcast_error(err, "Substr", x.dims, x.rank, pos.dims, pos.rank);
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- splitting ---- */

/* Iterates over the pieces of a text. */
typedef struct splitter {
  const char *at, *end; /* the rest */
  bool over;        /* for patterns: an empty text has no pieces */
  const char *separator;
  size_t n;         /* bytes of the separator */
  int64_t left;     /* splits left, -1 = unlimited */
  bool skip_empty;  /* for the first version */
} splitter;

typedef bool (*next_fn)(splitter *s, tn__slice *out);

static tn__slice rest_of(splitter *s)
{
  s->over = true;
  return (tn__slice){ s->at, (size_t)(s->end - s->at) };
}

/* Each byte of the separator ends a piece. Without a separator each byte is a piece. */
static bool next_v1(splitter *s, tn__slice *out)
{
  while (!s->over) {
    const char *stop = s->at;
    if (s->n == 0) stop++;
    else
      while (stop < s->end && memchr(s->separator, *stop, s->n) == NULL) stop++;
    *out = (tn__slice){ s->at, (size_t)(stop - s->at) };
    s->over = stop == s->end;
    s->at = stop + (s->n > 0 && !s->over);
    if (out->size > 0 || !s->skip_empty) return true;
  }
  return false;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Runs of white space separate pieces. Once all splits are done, the rest is a piece, even if empty. */
static bool next_words(splitter *s, tn__slice *out)
{
  if (s->over) return false;
  if (s->left == 0) {
    *out = rest_of(s);
    return true;
  }
  while (s->at < s->end && is_space(*s->at)) s->at++;
  if (s->at == s->end) return false;
  const char *stop = s->at;
  while (stop < s->end && !is_space(*stop)) stop++;
  *out = (tn__slice){ s->at, (size_t)(stop - s->at) };
  for (s->at = stop; s->at < s->end && is_space(*s->at);) s->at++;
  if (s->left > 0) s->left--;
  return true;
}

static const char *find_text(const char *at, const char *end, const char *what, size_t n)
{
  for (; (size_t)(end - at) >= n; at++) {
    at = memchr(at, what[0], (size_t)(end - at) - n + 1);
    if (at == NULL) return NULL;
    if (memcmp(at, what, n) == 0) return at;
  }
  return NULL;
}

static bool next_v2(splitter *s, tn__slice *out)
{
  if (s->over) return false;
  const char *stop = s->left == 0 ? NULL : find_text(s->at, s->end, s->separator, s->n);
  if (stop == NULL) {
    *out = rest_of(s);
    return true;
  }
  *out = (tn__slice){ s->at, (size_t)(stop - s->at) };
  s->at = stop + s->n;
  if (s->left > 0) s->left--;
  return true;
}

static void begin_text(splitter *s, const splitter *how, const tn_string *text)
{
  size_t n;
  *s = *how;
  s->at = tn_string_data(text, &n);
  s->end = s->at + n;
  s->over = how->over && n == 0;
}

static tn_status split_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  if (st == TN_OK) st = tn_prepare_dynamic(ctx, 0, err);
  if (st == TN_OK) st = tn_prepare_dynamic(ctx, 1, err);
  ctx->cost_ns = 100 + 200 * (double)ctx->inputs[0].count;
  const int64_t two = 2;
  return st == TN_OK ? tn_prepare_output(ctx, 2, &two, 1, err) : st;
}

/* Called once to count the pieces, and once to write them. */
static tn_status split_all(tn_kernel_ctx *ctx, const splitter *how, next_fn next)
{
  const tn_view *x = ctx->inputs[0];
  int64_t pieces[2] = { 0, 2 }, longest = 0;
  splitter s;
  tn__slice piece;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    int64_t n = 0;
    for (begin_text(&s, how, (const tn_string *)x->data + i); next(&s, &piece);) n++;
    pieces[0] += n;
    if (n > longest) longest = n;
  }
  tn_status st = tn_kernel_allocate(ctx, 0, pieces, 2);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 1, pieces, 1);
  if (st != TN_OK) return st;
  int64_t *index = ctx->outputs[0]->data, *shape = ctx->outputs[2]->data;
  tn_string *to = ctx->outputs[1]->data;
  for (int64_t i = 0; st == TN_OK && i < x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    int64_t n = 0;
    for (begin_text(&s, how, (const tn_string *)x->data + i); st == TN_OK && next(&s, &piece); n++, index += 2) {
      index[0] = i;
      index[1] = n;
      st = tn_string_set(to++, piece.data, piece.size, ctx->err);
    }
  }
  shape[0] = x->count;
  shape[1] = longest;
  return st;
}

static tn_status split_compute(tn_kernel_ctx *ctx)
{
  splitter how = { .over = true, .left = -1, .skip_empty = ctx->state != NULL };
  how.separator = tn_string_data(ctx->inputs[1]->data, &how.n);
  return split_all(ctx, &how, next_v1);
}

static tn_status split_create(const tn_operation *op, void **state, tn_error *err)
{
  static char skip;
  (void)err;
  *state = tn__attr_bool(op, "skip_empty", true) ? &skip : NULL;
  return TN_OK;
}

static void split_v2_destroy(void *state) { tn__free(state, sizeof(int64_t)); }

static tn_status split_v2_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t *most = tn__alloc(sizeof *most);
  *state = most;
  if (most == NULL) return tn__no_memory(err, "kernel", sizeof *most);
  *most = tn__attr_int(op, "maxsplit", -1);
  if (*most < 0) *most = -1;
  return TN_OK;
}

static tn_status split_v2_compute(tn_kernel_ctx *ctx)
{
  splitter how = { .left = *(const int64_t *)ctx->state };
  how.separator = tn_string_data(ctx->inputs[1]->data, &how.n);
  return split_all(ctx, &how, how.n == 0 ? next_words : next_v2);
}

static tn_status infer_split(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  const int64_t dims[2] = { -1, 2 }, two = 2;
  tn_status st = tn__infer_rank(ctx, 0, 1, &unused, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 0, &unused, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 0, dims, 2, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 1, dims, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 2, &two, 1, err) : st;
}

/* ---- tables ---- */

#define SPLIT(op, in, attributes, text)                                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: string, " in ": string",                     \
    .outputs = "indices: int64, values: string, shape: int64", .attrs = attributes,                           \
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_split, .summary = text }

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Substr", .inputs = "input: string, pos: T, len: T",
    .outputs = "output: string", .attrs = "T: {int32, int64}; unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
    .infer = infer_substr, .summary = "substrings" },
  SPLIT("StringSplit", "delimiter", "skip_empty: bool = true", "splits strings into a sparse tensor"),
  SPLIT("StringSplitV2", "sep", "maxsplit: int = -1", "splits strings into a sparse tensor"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("Substr", "substr_cpu", substr_create, NULL, substr_prepare, substr_compute),
  TN__KERNEL("StringSplit", "string_split_cpu", split_create, NULL, split_prepare, split_compute),
  TN__KERNEL("StringSplitV2", "string_split_v2_cpu", split_v2_create, split_v2_destroy, split_prepare,
             split_v2_compute),
};

TN_OP_FAMILY(string_parts)
