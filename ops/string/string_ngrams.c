/* SPDX-License-Identifier: Apache-2.0 */
/* StringNGrams: joins runs of consecutive texts, for each row of a ragged tensor. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>

#include <string.h>

/* Texts and lists are borrowed from the node. */
typedef struct ngram_state {
  tn__slice separator, left, right;
  const int64_t *widths;
  size_t n_widths;
  int64_t pad; /* -1: as much as a width needs */
  bool keep_short;
} ngram_state;

static void ngram_destroy(void *state) { tn__free(state, sizeof(ngram_state)); }

static tn__slice attr_slice(const tn_operation *op, const char *name)
{
  tn__slice s;
  if (tn_operation_attr_string(op, name, &s.data, &s.size, NULL) != TN_OK) s = tn__slice_of("");
  return s;
}

static tn_status ngram_create(const tn_operation *op, void **state, tn_error *err)
{
  ngram_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->separator = attr_slice(op, "separator");
  s->left = attr_slice(op, "left_pad");
  s->right = attr_slice(op, "right_pad");
  s->pad = tn__attr_int(op, "pad_width", 0);
  s->keep_short = tn__attr_bool(op, "preserve_short_sequences", false);
  tn_status st = tn_operation_attr_ints(op, "ngram_widths", &s->widths, &s->n_widths, err);
  for (size_t i = 0; st == TN_OK && i < s->n_widths; i++)
    if (s->widths[i] < 1 || s->widths[i] > INT32_MAX)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "StringNGrams: attribute 'ngram_widths' has %lld, wanted at least 1",
                        (long long)s->widths[i]);
  if (st == TN_OK && s->pad > INT32_MAX)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "StringNGrams: attribute 'pad_width' is %lld, which is too large",
                      (long long)s->pad);
  if (st == TN_OK) *state = s;
  else ngram_destroy(s);
  return st;
}

static tn_status ngram_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn_prepare_dynamic(ctx, 0, err);
  ctx->cost_ns = 100 + 200 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_output_like(ctx, 1, 1, err) : st;
}

/* Padding texts at each end of a row, for runs of this width. */
static int64_t pad_of(const ngram_state *s, int64_t width)
{
  return s->pad < 0 || s->pad > width - 1 ? width - 1 : s->pad;
}

static int64_t runs_of(const ngram_state *s, int64_t length, int64_t width)
{
  int64_t n = length + 2 * pad_of(s, width) - width + 1;
  return n < 0 ? 0 : n;
}

/* If requested, a row too short for any width is a single run. */
static int64_t short_width(const ngram_state *s, int64_t length, int64_t runs)
{
  return s->keep_short && runs == 0 && length > 0 && s->pad >= 0 ? length + 2 * s->pad : 0;
}

static int64_t all_runs(const ngram_state *s, int64_t length)
{
  int64_t n = 0;
  for (size_t i = 0; i < s->n_widths; i++) n += runs_of(s, length, s->widths[i]);
  return n + (short_width(s, length, n) > 0);
}

static tn_status check_splits(const tn_kernel_ctx *ctx)
{
  const tn_view *splits = ctx->inputs[1];
  int64_t last = 0, n = ctx->inputs[0]->count;
  for (int64_t i = 0; i < splits->count; i++) {
    int64_t at = tn__operand_int(splits, i);
    if (i == 0 ? at != 0 : at < last)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "StringNGrams: split %lld is %lld, wanted %s %lld",
                          (long long)i, (long long)at, i == 0 ? "just" : "at least", (long long)last);
    last = at;
  }
  if (splits->count == 0 || last == n) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "StringNGrams: the last split is %lld, there are %lld texts",
                      (long long)last, (long long)n);
}

/* ---- runs ---- */

typedef struct run {
  const tn_string *texts;
  int64_t n, left, right; /* padding on each side */
} run;

static run run_of(const tn_string *row, int64_t i, int64_t n, int64_t width, int64_t pad)
{
  run r = { .left = pad > i ? pad - i : 0, .right = pad > n - 1 - i ? pad - (n - 1 - i) : 0 };
  r.n = width - r.left - r.right;
  r.texts = row + (r.left > 0 ? 0 : i - pad);
  return r;
}

static void append(char **to, const char *text, size_t n)
{
  if (n > 0) memcpy(*to, text, n);
  *to += n;
}

static tn_status put_run(const ngram_state *s, const run *r, tn_string *out, tn_error *err)
{
  size_t total, part, ends, n;
  int64_t pieces = r->n + r->left + r->right, k = 0;
  if (!tn__size_mul((size_t)r->left, s->left.size, &total) || !tn__size_mul((size_t)r->right, s->right.size, &ends) ||
      !tn__size_add(total, ends, &total) || !tn__size_mul((size_t)(pieces - 1), s->separator.size, &part) ||
      !tn__size_add(total, part, &total))
    return tn__no_memory(err, "run of texts", SIZE_MAX);
  for (int64_t i = 0; i < r->n; i++) {
    tn_string_data(r->texts + i, &n);
    if (!tn__size_add(total, n, &total)) return tn__no_memory(err, "run of texts", SIZE_MAX);
  }
  char *to = tn__string_reserve(out, total);
  if (to == NULL) return tn__no_memory(err, "run of texts", total);
  for (; k < pieces; k++) {
    if (k > 0) append(&to, s->separator.data, s->separator.size);
    if (k < r->left) {
      append(&to, s->left.data, s->left.size);
    } else if (k >= r->left + r->n) {
      append(&to, s->right.data, s->right.size);
    } else {
      const char *text = tn_string_data(r->texts + k - r->left, &n);
      append(&to, text, n);
    }
  }
  return TN_OK;
}

static tn_status put_row(const ngram_state *s, const tn_string *row, int64_t length, tn_string **to, tn_error *err)
{
  tn_status st = TN_OK;
  int64_t all = 0;
  for (size_t w = 0; w < s->n_widths; w++) {
    int64_t width = s->widths[w], n = runs_of(s, length, width);
    all += n;
    for (int64_t i = 0; st == TN_OK && i < n; i++) {
      run r = run_of(row, i, n, width, pad_of(s, width));
      st = put_run(s, &r, (*to)++, err);
    }
  }
  if (short_width(s, length, all) == 0 || st != TN_OK) return st;
  run r = { row, length, s->pad, s->pad };
  return put_run(s, &r, (*to)++, err);
}

/* Without texts there are no runs, not even of padding. Without splits there are no rows; TensorFlow returns one empty
 * text per input text. */
static tn_status give_empty(tn_kernel_ctx *ctx)
{
  const tn_view *splits = ctx->outputs[1];
  if (splits->count > 0) memset(splits->data, 0, (size_t)splits->count * tn_dtype_size(splits->dtype));
  tn_status st = tn_kernel_allocate(ctx, 0, ctx->inputs[0]->dims, 1);
  if (st == TN_OK) tn__elements_clear(TN_STRING, ctx->outputs[0]->data, ctx->outputs[0]->count);
  return st;
}

static tn_status ngram_compute(tn_kernel_ctx *ctx)
{
  const ngram_state *s = ctx->state;
  const tn_view *splits = ctx->inputs[1];
  tn_view *out = ctx->outputs[1];
  int64_t total = 0, rows = splits->count - 1;
  tn_status st = check_splits(ctx);
  if (st != TN_OK) return st;
  if (splits->count == 0 || ctx->inputs[0]->count == 0) return give_empty(ctx);
  for (int64_t i = 0; i < splits->count; i++) {
    if (i > 0) total += all_runs(s, tn__operand_int(splits, i) - tn__operand_int(splits, i - 1));
    if (splits->dtype == TN_INT64) ((int64_t *)out->data)[i] = total;
    else ((int32_t *)out->data)[i] = (int32_t)total;
  }
  if (splits->dtype == TN_INT32 && total > INT32_MAX)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "StringNGrams: %lld runs do not fit splits of int32",
                        (long long)total);
  st = tn_kernel_allocate(ctx, 0, &total, 1);
  tn_string *to = st == TN_OK ? ctx->outputs[0]->data : NULL;
  for (int64_t i = 0; st == TN_OK && i < rows; i++) {
    int64_t begin = tn__operand_int(splits, i), end = tn__operand_int(splits, i + 1);
    st = put_row(s, (const tn_string *)ctx->inputs[0]->data + begin, end - begin, &to, ctx->err);
  }
  return st;
}

static tn_status infer_ngrams(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t unknown = -1;
  tn__shape data, splits;
  tn_status st = tn__infer_rank(ctx, 0, 1, &data, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &splits, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 0, &unknown, 1, err);
  return st == TN_OK ? tn__infer_set(ctx, 1, &splits, err) : st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "StringNGrams", .inputs = "data: string, data_splits: Tsplits",
    .outputs = "ngrams: string, ngrams_splits: Tsplits",
    .attrs = "separator: string; ngram_widths: list(int) >= 0; left_pad: string; right_pad: string; pad_width: int; "
             "preserve_short_sequences: bool; Tsplits: {int32, int64} = int64",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_ngrams, .summary = "n-grams of strings" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "StringNGrams", .device = "CPU", .name = "string_ngrams_cpu",
    .rank = TN_RANK_C, .create = ngram_create, .destroy = ngram_destroy, .prepare = ngram_prepare,
    .compute = ngram_compute },
};

TN_OP_FAMILY(string_ngrams)
