/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions: RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/string/regex/regex.h>
#include <ops/string/unicode/string_case.h>

#include <string.h>

/* ---- a node ---- */

/* What does not change from step to step. */
typedef struct node {
  tn__regex *re;     /* of a static op, owned; else NULL */
  tn__slice rewrite; /* of a static op; borrowed from the node */
  bool global;
} node;

static void node_destroy(void *state)
{
  node *n = state;
  tn__regex_destroy(n->re);
  tn__free(n, sizeof *n);
}

static tn_status read_static(const tn_operation *op, node *n, tn_error *err)
{
  tn__slice pattern;
  tn_status st = tn_operation_attr_string(op, "pattern", &pattern.data, &pattern.size, err);
  if (st == TN_OK) st = tn__regex_compile(pattern, &n->re, err);
  if (st != TN_OK || strcmp(tn_operation_type(op), "StaticRegexReplace") != 0) return st;
  return tn_operation_attr_string(op, "rewrite", &n->rewrite.data, &n->rewrite.size, err);
}

static tn_status node_create(const tn_operation *op, void **state, tn_error *err)
{
  node *n = tn__zalloc(sizeof *n);
  *state = NULL;
  if (n == NULL) return tn__no_memory(err, "kernel", sizeof *n);
  n->global = tn__attr_bool(op, "replace_global", true);
  tn_status st = strncmp(tn_operation_type(op), "Static", 6) == 0 ? read_static(op, n, err) : TN_OK;
  if (st == TN_OK) *state = n;
  else node_destroy(n);
  return st;
}

static tn_status regex_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 1; st == TN_OK && i < ctx->n_inputs; i++) st = tn__want_rank(ctx, i, 0, err);
  ctx->cost_ns = 1000 + 500 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 0, err) : st;
}

static tn__slice text_of(const tn_view *view, int64_t i)
{
  tn__slice text;
  text.data = tn_string_data((const tn_string *)view->data + i, &text.size);
  return text;
}

/* ---- RegexFullMatch ---- */

static tn_status match_all(tn_kernel_ctx *ctx, const tn__regex *re)
{
  tn__re_run *run;
  tn__poll poll = tn__poll_of(ctx);
  uint8_t *to = ctx->outputs[0]->data;
  tn_status st = tn__re_run_create(re, 0, &poll, &run, ctx->err);
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) {
    to[i] = tn__regex_matches(run, text_of(ctx->inputs[0], i));
    st = tn__poll_status(&poll, 50);
  }
  tn__re_run_destroy(run);
  return st;
}

/* ---- RegexReplace ---- */

/* The most group that a rewrite names. */
static int most_group(tn__slice rewrite)
{
  int most = 0;
  for (size_t i = 0; i + 1 < rewrite.size; i++) {
    if (rewrite.data[i] != '\\') continue;
    int c = (unsigned char)rewrite.data[++i] - '0';
    if (c > most && c <= 9) most = c;
  }
  return most;
}

typedef struct replacement {
  tn__re_run *run;
  tn__slice rewrite;
  tn__text out;
  bool global;
} replacement;

/* Appends the rewrite of a match. False: a backslash is followed by neither a digit nor a backslash. */
static bool append_rewrite(replacement *r, tn__slice text, const size_t *slots)
{
  for (size_t i = 0; i < r->rewrite.size; i++) {
    const char *at = r->rewrite.data + i;
    if (*at != '\\') {
      tn__text_append(&r->out, at, 1);
      continue;
    }
    i++;
    if (i < r->rewrite.size && at[1] == '\\') tn__text_append(&r->out, at, 1);
    else if (i < r->rewrite.size && at[1] >= '0' && at[1] <= '9') {
      size_t begin = slots[2 * (at[1] - '0')], end = slots[2 * (at[1] - '0') + 1];
      if (begin != TN__RE_NOWHERE && end != TN__RE_NOWHERE) tn__text_append(&r->out, text.data + begin, end - begin);
    } else return false;
  }
  return true;
}

/* The first match. False: nothing is replaced. */
static bool replace_first(replacement *r, tn__slice text)
{
  size_t slots[TN__RE_SLOTS];
  if (!tn__regex_find(r->run, text, 0, slots)) return false;
  tn__text_append(&r->out, text.data, slots[0]);
  if (!append_rewrite(r, text, slots)) return false;
  tn__text_append(&r->out, text.data + slots[1], text.size - slots[1]);
  return true;
}

/* All matches that do not overlap. An empty match right after another match does not count. */
static bool replace_all(replacement *r, tn__slice text)
{
  size_t slots[TN__RE_SLOTS], at = 0, end = TN__RE_NOWHERE, found = 0;
  while (at <= text.size && !r->out.failed && tn__regex_find(r->run, text, at, slots)) {
    tn__text_append(&r->out, text.data + at, slots[0] - at);
    if (slots[0] == end && slots[1] == end) {
      bool bad;
      size_t next = end;
      if (end < text.size) tn__utf8_next(text.data, text.size, &next, &bad);
      if (end < text.size && bad) next = end + 1;
      tn__text_append(&r->out, text.data + end, next - end);
      at = next > end ? next : end + 1;
      continue;
    }
    append_rewrite(r, text, slots);
    at = end = slots[1];
    found++;
  }
  if (at < text.size) tn__text_append(&r->out, text.data + at, text.size - at);
  return found > 0;
}

static tn_status replace_in(replacement *r, tn__slice text, tn_string *to, tn_error *err)
{
  r->out.size = 0;
  if (text.size == 0) text.data = "";
  bool replaced = r->run != NULL && (r->global ? replace_all(r, text) : replace_first(r, text));
  if (r->out.failed) return tn__no_memory(err, "text", r->out.size);
  return replaced ? tn_string_set(to, tn__text_get(&r->out), r->out.size, err)
                  : tn_string_set(to, text.data, text.size, err);
}

/* A rewrite that names a group which the pattern lacks replaces nothing, as in TensorFlow. */
static tn_status replace_each(tn_kernel_ctx *ctx, const tn__regex *re, tn__slice rewrite)
{
  replacement r = { .rewrite = rewrite, .global = ((const node *)ctx->state)->global };
  tn__poll poll = tn__poll_of(ctx);
  int most = most_group(rewrite);
  tn__text_init(&r.out, SIZE_MAX / 2);
  tn_status st = most <= re->groups ? tn__re_run_create(re, 2 * (most + 1), &poll, &r.run, ctx->err) : TN_OK;
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) {
    st = replace_in(&r, text_of(ctx->inputs[0], i), (tn_string *)ctx->outputs[0]->data + i, ctx->err);
    if (st == TN_OK) st = tn__poll_status(&poll, 50);
  }
  tn__re_run_destroy(r.run);
  tn__text_fini(&r.out);
  return st;
}

/* ---- kernels ---- */

static tn_status static_match_compute(tn_kernel_ctx *ctx) { return match_all(ctx, ((const node *)ctx->state)->re); }

static tn_status match_compute(tn_kernel_ctx *ctx)
{
  tn__regex *re;
  tn_status st = tn__regex_compile(text_of(ctx->inputs[1], 0), &re, ctx->err);
  if (st == TN_OK) st = match_all(ctx, re);
  tn__regex_destroy(re);
  return st;
}

static tn_status static_replace_compute(tn_kernel_ctx *ctx)
{
  const node *n = ctx->state;
  return replace_each(ctx, n->re, n->rewrite);
}

static tn_status replace_compute(tn_kernel_ctx *ctx)
{
  tn__regex *re;
  tn_status st = tn__regex_compile(text_of(ctx->inputs[1], 0), &re, ctx->err);
  if (st == TN_OK) st = replace_each(ctx, re, text_of(ctx->inputs[2], 0));
  tn__regex_destroy(re);
  return st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, text)                                                                     \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: " out, .attrs = attributes, \
    .infer = tn__infer_unchanged, .summary = text }

static const tn_op_def ops[] = {
  OP("RegexFullMatch", "input: string, pattern: string", "bool", "", "whether whole texts match an expression"),
  OP("StaticRegexFullMatch", "input: string", "bool", "pattern: string", "whether whole texts match an expression"),
  OP("RegexReplace", "input: string, pattern: string, rewrite: string", "string", "replace_global: bool = true",
     "replaces matches of an expression"),
  OP("StaticRegexReplace", "input: string", "string", "pattern: string; rewrite: string; replace_global: bool = true",
     "replaces matches of an expression"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("RegexFullMatch", "regex_full_match_cpu", node_create, node_destroy, regex_prepare, match_compute),
  TN__KERNEL("StaticRegexFullMatch", "static_regex_full_match_cpu", node_create, node_destroy, regex_prepare,
             static_match_compute),
  TN__KERNEL("RegexReplace", "regex_replace_cpu", node_create, node_destroy, regex_prepare, replace_compute),
  TN__KERNEL("StaticRegexReplace", "static_regex_replace_cpu", node_create, node_destroy, regex_prepare,
             static_replace_compute),
};

TN_OP_FAMILY(string_regex)
