/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeCSV: records of comma-separated fields as columns of tensors. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/string/string_number.h>

#include <string.h>

/* Texts and lists are borrowed from the node. */
typedef struct csv_state {
  tn__slice missing;     /* na_value */
  const int64_t *columns; /* the wanted columns, ascending; NULL: all */
  size_t n_columns;
  char delimiter;
  bool quotes;
} csv_state;

static void csv_destroy(void *state) { tn__free(state, sizeof(csv_state)); }

static tn_status read_columns(const tn_operation *op, csv_state *s, tn_error *err)
{
  const int64_t *columns = NULL;
  size_t n = 0, wanted = tn_operation_n_outputs(op);
  if (tn_operation_attr_ints(op, "select_cols", &columns, &n, NULL) != TN_OK || n == 0) return TN_OK;
  if (n != wanted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "DecodeCSV: attribute 'select_cols' has %zu columns for %zu outputs",
                        n, wanted);
  for (size_t i = 0; i < n; i++)
    if (columns[i] < 0 || (i > 0 && columns[i] <= columns[i - 1]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "DecodeCSV: attribute 'select_cols' has column %lld at %zu, wanted "
                          "rising ones from 0", (long long)columns[i], i);
  s->columns = columns;
  s->n_columns = n;
  return TN_OK;
}

static tn_status csv_create(const tn_operation *op, void **state, tn_error *err)
{
  tn__slice delimiter = { ",", 1 };
  *state = NULL;
  if (tn_operation_attr_string(op, "field_delim", &delimiter.data, &delimiter.size, NULL) != TN_OK)
    delimiter = tn__slice_of(",");
  if (delimiter.size != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "DecodeCSV: attribute 'field_delim' has %zu bytes, wanted one",
                        delimiter.size);
  csv_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->delimiter = delimiter.data[0];
  s->quotes = tn__attr_bool(op, "use_quote_delim", true);
  if (tn_operation_attr_string(op, "na_value", &s->missing.data, &s->missing.size, NULL) != TN_OK)
    s->missing = tn__slice_of("");
  tn_status st = read_columns(op, s, err);
  if (st == TN_OK) *state = s;
  else csv_destroy(s);
  return st;
}

static tn_status csv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 1; st == TN_OK && i < ctx->n_inputs; i++) {
    const tn_view *d = &ctx->inputs[i];
    if (d->rank > 1 || d->count > 1)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "DecodeCSV: default %u has rank %d and %lld elements, wanted one or none",
                          i - 1, d->rank, (long long)d->count);
    st = tn_prepare_output_like(ctx, i - 1, 0, err);
  }
  ctx->cost_ns = 100 + 100 * (double)ctx->inputs[0].count * (double)ctx->n_inputs;
  return st;
}

/* ---- fields ---- */

typedef struct reader {
  const csv_state *how;
  const char *at, *end;
  tn__text *unquoted; /* contents of the last quoted field */
} reader;

static tn_status bad_record(tn_error *err, const char *what)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s", what);
}

static tn_status plain_field(reader *r, tn__slice *out, tn_error *err)
{
  const char *begin = r->at;
  for (; r->at < r->end && *r->at != r->how->delimiter; r->at++)
    if (*r->at == '\n' || *r->at == '\r' || (r->how->quotes && *r->at == '"'))
      return bad_record(err, "a field that is not in quotes has a quote or a line end inside");
  *out = (tn__slice){ begin, (size_t)(r->at - begin) };
  r->at += r->at < r->end; /* the delimiter */
  return TN_OK;
}

/* Called after the opening quote. Two quotes are a literal one; a delimiter or the end must follow
 * the closing quote. */
static tn_status quoted_field(reader *r, tn__slice *out, tn_error *err)
{
  tn__text *t = r->unquoted;
  t->size = 0;
  for (; r->at < r->end; r->at++) {
    bool last = r->at + 1 == r->end;
    if (*r->at == '"') {
      if (last || r->at[1] == r->how->delimiter) break;
      if (r->at[1] != '"') return bad_record(err, "a quote inside a field is not doubled");
      r->at++;
    }
    tn__text_append(t, r->at, 1);
  }
  if (r->at >= r->end) return bad_record(err, "a field in quotes has no quote at its end");
  r->at = r->at + 2 < r->end ? r->at + 2 : r->end;
  if (t->failed) return tn__no_memory(err, "field", t->size);
  *out = (tn__slice){ tn__text_get(t), t->size };
  return TN_OK;
}

/* The next field; *found is false after the last one. */
static tn_status next_field(reader *r, tn__slice *out, bool *found, tn_error *err)
{
  while (r->at < r->end && (*r->at == '\n' || *r->at == '\r')) r->at++;
  *found = r->at < r->end;
  if (!*found) return TN_OK;
  if (!r->how->quotes || *r->at != '"') return plain_field(r, out, err);
  r->at++;
  return quoted_field(r, out, err);
}

static tn_status put_field(tn_kernel_ctx *ctx, uint32_t column, int64_t record, tn__slice field)
{
  const csv_state *s = ctx->state;
  const tn_view *out = ctx->outputs[column], *otherwise = ctx->inputs[column + 1];
  char *to = (char *)out->data + (size_t)record * tn_dtype_size(out->dtype);
  if (field.size == 0 || tn__slice_equal(field, s->missing)) {
    if (otherwise->count == 1) return tn__copy_elements(out->dtype, to, otherwise->data, 1, ctx->err);
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "field %u is missing, and has no default", column);
  }
  if (out->dtype == TN_STRING) return tn_string_set((tn_string *)to, field.data, field.size, ctx->err);
  if (tn__text_to_number(out->dtype, field, to)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "field %u is '%.*s', which is not a valid %s", column,
                      field.size > 100 ? 100 : (int)field.size, field.data, tn_dtype_name(out->dtype));
}

/* A trailing delimiter is followed by one more field, an empty one. */
static bool ends_in_delimiter(const csv_state *s, const char *text, size_t n)
{
  return n > 0 && text[n - 1] == s->delimiter;
}

static tn_status read_record(tn_kernel_ctx *ctx, int64_t record, tn__text *unquoted)
{
  const csv_state *s = ctx->state;
  size_t n;
  const char *text = tn_string_data((const tn_string *)ctx->inputs[0]->data + record, &n);
  reader r = { s, text, text + n, unquoted };
  uint32_t column = 0;
  bool more = true, last = ends_in_delimiter(s, text, n);
  for (int64_t k = 0; more; k++) {
    tn__slice field = { "", 0 };
    if (s->columns != NULL && column == s->n_columns) return TN_OK;
    tn_status st = next_field(&r, &field, &more, ctx->err);
    if (st != TN_OK) return st;
    if (!more && !last) break;
    if (s->columns != NULL && s->columns[column] != k) continue;
    if (column < ctx->n_outputs) st = put_field(ctx, column, record, field);
    if (st != TN_OK) return st;
    column++;
  }
  if (column == ctx->n_outputs) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are %u fields, wanted %u", column, ctx->n_outputs);
}

static tn_status csv_compute(tn_kernel_ctx *ctx)
{
  tn__text unquoted;
  tn_status st = TN_OK;
  tn__text_init(&unquoted, PTRDIFF_MAX / 8);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) {
    if ((st = tn__poll_status(&poll, 100)) != TN_OK) break;
    st = read_record(ctx, i, &unquoted);
    if (st != TN_OK) tn_error_prefix(ctx->err, "DecodeCSV: record %lld", (long long)i);
  }
  tn__text_fini(&unquoted);
  return st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "DecodeCSV", .inputs = "records: string, record_defaults: OUT_TYPE",
    .outputs = "output: OUT_TYPE",
    .attrs = "OUT_TYPE: list({float, double, int32, int64, string}) >= 1; field_delim: string = ','; "
             "use_quote_delim: bool = true; na_value: string = ''; select_cols: list(int) = []",
    .infer = tn__infer_unchanged, .summary = "parses the fields of CSV records" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "DecodeCSV", .device = "CPU", .name = "decode_csv_cpu", .rank = TN_RANK_C,
    .create = csv_create, .destroy = csv_destroy, .prepare = csv_prepare, .compute = csv_compute },
};

TN_OP_FAMILY(string_csv)
