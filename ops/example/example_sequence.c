/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts features from serialized tf.SequenceExample messages, which have a context like a tf.Example and lists of
 * features: ParseSequenceExample ParseSequenceExampleV2.
 *
 * As in example_parse.c, messages are walked in parallel, all values are checked and counted, then outputs of unknown
 * size are allocated and filled. A row is a feature of a list. */
#include <core/tensor/tensor_internal.h>
#include <ops/example/messages.h>
#include <ops/example/values.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <string.h>

#define NAMES 1             /* the input with the messages' names */
#define MAY_MISS 8          /* of ParseSequenceExampleV2, an input: which dense lists may be missing */
#define CLEAR_AT_ONCE 16384 /* elements between two checks whether the step has ended */

#define CONTEXT_SPARSE(where)                                                                                 \
  { .kind = TN__FEATURE_SPARSE, .how = where, .keys = "context_sparse_keys", .types = "context_sparse_types", \
    .outputs = { "context_sparse_indices", "context_sparse_values", "context_sparse_shapes" } }
#define CONTEXT_DENSE(where)                                                                          \
  { .kind = TN__FEATURE_DENSE, .how = where, .keys = "context_dense_keys", .types = "Tcontext_dense", \
    .shapes = "context_dense_shapes", .defaults = "context_dense_defaults", .outputs = { "context_dense_values" } }
#define LIST_SPARSE(where)                                                                      \
  { .kind = TN__FEATURE_SPARSE, .list = true, .how = where, .keys = "feature_list_sparse_keys", \
    .types = "feature_list_sparse_types",                                                       \
    .outputs = { "feature_list_sparse_indices", "feature_list_sparse_values", "feature_list_sparse_shapes" } }
#define LIST_DENSE(where)                                                                     \
  { .kind = TN__FEATURE_DENSE, .list = true, .how = where, .keys = "feature_list_dense_keys", \
    .types = "feature_list_dense_types", .shapes = "feature_list_dense_shapes",               \
    .outputs = { "feature_list_dense_values", "feature_list_dense_lengths" } }

static const tn__feature_group groups_v1[] = { CONTEXT_SPARSE(TN__KEYS_ATTR), CONTEXT_DENSE(TN__KEYS_ATTR),
                                               LIST_SPARSE(TN__KEYS_ATTR), LIST_DENSE(TN__KEYS_ATTR) };
static const tn__feature_group groups_v2[] = {
  CONTEXT_SPARSE(TN__KEYS_VECTOR), CONTEXT_DENSE(TN__KEYS_VECTOR),
  { .kind = TN__FEATURE_RAGGED, .how = TN__KEYS_VECTOR, .keys = "context_ragged_keys",
    .types = "context_ragged_value_types", .splits = "context_ragged_split_types",
    .outputs = { "context_ragged_values", "context_ragged_row_splits" } },
  LIST_SPARSE(TN__KEYS_VECTOR), LIST_DENSE(TN__KEYS_VECTOR),
  { .kind = TN__FEATURE_RAGGED, .list = true, .how = TN__KEYS_VECTOR, .keys = "feature_list_ragged_keys",
    .types = "feature_list_ragged_value_types", .splits = "feature_list_ragged_split_types",
    .outputs = { "feature_list_ragged_values", "feature_list_ragged_outer_splits",
                 "feature_list_ragged_inner_splits" } },
};

#define LENGTH(array) (sizeof (array) / sizeof *(array))

static void destroy(void *state) { tn__features_destroy(state); }

/* Marks the dense lists that an attribute names. */
static tn_status read_may_miss(const tn_operation *op, tn__features *features, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = 1;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    tn__slice key;
    st = tn_operation_attr_string_at(op, "feature_list_dense_missing_assumed_empty", i, &key.data, &key.size, &n, err);
    for (uint32_t k = 0; st == TN_OK && i < n && k < features->n; k++)
      if (tn__slice_equal(features->items[k].key, key)) features->items[k].may_miss = true;
  }
  return st;
}

static tn_status create_v1(const tn_operation *op, void **state, tn_error *err)
{
  tn__features *features;
  *state = NULL;
  tn_status st = tn__features_create(op, groups_v1, LENGTH(groups_v1), &features, err);
  if (st != TN_OK) return st;
  st = read_may_miss(op, features, err);
  if (st == TN_OK) *state = features;
  else tn__features_destroy(features);
  return st;
}

static tn_status create_v2(const tn_operation *op, void **state, tn_error *err)
{
  tn__features *features;
  *state = NULL;
  tn_status st = tn__features_create(op, groups_v2, LENGTH(groups_v2), &features, err);
  if (st == TN_OK) *state = features;
  return st;
}

/* ---- prepare ---- */

/* The shape of dense values for `first` dimensions of the messages and rows. */
static tn_status dense_shape(const tn__feature *f, const int64_t *first, int32_t n, tn__shape *out, tn_error *err)
{
  bool fits = true;
  tn__shape_set(out, first, n);
  for (int32_t d = 0; fits && d < f->rank; d++) fits = tn__shape_append(out, f->dims[d]);
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "dense values would have more than %d dimensions", TN_MAX_RANK);
}

static tn_status prepare_dense(tn_prepare_ctx *ctx, const tn__feature *f, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__shape s;
  tn_status st = tn__features_check_default(ctx, f, err);
  if (st == TN_OK && f->list && f->row == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "a row of output %u has no elements", f->outputs[0]);
  if (st == TN_OK && f->list) st = tn_prepare_dynamic(ctx, f->outputs[0], err);
  if (st == TN_OK && f->list) return tn_prepare_output(ctx, f->outputs[1], in->dims, in->rank, err);
  if (st == TN_OK) st = dense_shape(f, in->dims, in->rank, &s, err);
  return st == TN_OK ? tn_prepare_output(ctx, f->outputs[0], s.dims, s.rank, err) : st;
}

/* A single message has one row split, which means nothing. */
static tn_status prepare_outputs(tn_prepare_ctx *ctx, const tn__feature *f, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  const int64_t columns = in->rank + 1 + f->list, splits = in->count + 1;
  if (f->kind == TN__FEATURE_DENSE) return prepare_dense(ctx, f, err);
  tn_status st = tn_prepare_dynamic(ctx, f->outputs[0], err);
  if (st == TN_OK && f->kind == TN__FEATURE_SPARSE) {
    st = tn_prepare_dynamic(ctx, f->outputs[1], err);
    return st == TN_OK ? tn_prepare_output(ctx, f->outputs[2], &columns, 1, err) : st;
  }
  if (st == TN_OK) st = tn_prepare_output(ctx, f->outputs[1], &splits, in->rank, err);
  return st == TN_OK && f->list ? tn_prepare_dynamic(ctx, f->outputs[2], err) : st;
}

/* The values of a feature in a message. */
typedef struct place {
  tn__feature_values values; /* of a context feature; of a list their number, and the bytes of the list */
  int64_t row;       /* the first row among all */
  uint32_t rows, widest; /* the number of rows, and of values of the longest one */
  bool there;
} place;

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__features *features = ctx->state;
  const tn_view *in = &ctx->inputs[0], *names = &ctx->inputs[NAMES];
  tn_status st = in->rank == 0 ? TN_OK : tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK && names->count > 0 && names->count != in->count)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld names for %lld messages", tn_operation_type(ctx->op),
                      (long long)names->count, (long long)in->count);
  if (st == TN_OK) st = tn__features_check_keys(ctx, features, err);
  for (uint32_t i = 0; st == TN_OK && i < features->n; i++) st = prepare_outputs(ctx, &features->items[i], err);
  return st == TN_OK ? tn__messages_scratch(ctx, features, sizeof(place), err) : st;
}

static tn_status prepare_v2(tn_prepare_ctx *ctx, tn_error *err)
{
  size_t first, n;
  tn_status st = tn_operation_output_range(ctx->op, "feature_list_dense_values", &first, &n, err);
  if (st == TN_OK && ctx->inputs[MAY_MISS].count != (int64_t)n)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %d has %lld elements, wanted %zu",
                      tn_operation_type(ctx->op), MAY_MISS, (long long)ctx->inputs[MAY_MISS].count, n);
  return st == TN_OK ? prepare(ctx, err) : st;
}

/* ---- one message ---- */

static place *places_of(const tn__messages *m, int64_t message)
{
  return (place *)m->memory + message * m->features->n;
}

static tn_status malformed(tn__slice message, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the %zu bytes are not a tf.SequenceExample", message.size);
}

/* Walks the entries of the context, or of the lists. */
static tn_status walk_entries(const tn__messages *m, tn__cursor *c, bool list, place *places, tn__poll *poll)
{
  while (c->p < c->end) {
    tn__slice key, value;
    if (tn__poll_over(poll, 30)) return TN_CANCELLED;
    if (!tn__cursor_tag(c, TN__TAG_BYTES(1)) || !tn__cursor_entry(c, false, &key, &value)) return TN_INVALID_ARGUMENT;
    uint32_t i = tn__key_index_find(&m->index, key, list);
    if (i == TN__NO_KEY) continue;
    places[i].there = true;
    places[i].values.at = (const uint8_t *)value.data;
    places[i].values.size = (uint32_t)value.size;
  }
  return TN_OK;
}

/* Of entries with the same key the last one counts. */
static tn_status walk(const tn__messages *m, tn__slice message, place *places, tn__poll *poll, tn_error *err)
{
  tn__cursor c = tn__cursor_of(message);
  if (message.size > INT32_MAX) return malformed(message, err);
  while (c.p < c.end) {
    uint32_t n;
    bool context = tn__cursor_tag(&c, TN__TAG_BYTES(1));
    if (!context && !tn__cursor_tag(&c, TN__TAG_BYTES(2))) {
      if (!tn__cursor_skip(&c)) return malformed(message, err);
      continue;
    }
    if (!tn__cursor_length(&c, &n)) return malformed(message, err);
    const uint8_t *outer = tn__cursor_enter(&c, n);
    tn_status st = walk_entries(m, &c, !context, places, poll);
    if (st != TN_OK) return st == TN_CANCELLED ? st : malformed(message, err);
    c.end = outer;
  }
  for (uint32_t i = 0; i < m->features->n; i++) places[i] = places[m->index.first[i]];
  return TN_OK;
}

static tn_status bad_values(const tn__messages *m, uint32_t i, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has no well-formed list of %s", TN__KEY(m, i),
                      tn_dtype_name(m->features->items[i].dtype));
}

/* The values of the feature at c: a tag and a list. */
static bool count_feature(tn__cursor *c, tn_dtype dtype, tn__feature_values *v, tn__poll *poll)
{
  if (c->p == c->end || tn__feature_dtype(*c->p) != dtype) return false;
  c->p++;
  v->dtype = (uint8_t)dtype;
  return tn__feature_count(c, true, v, poll);
}

/* The next row of a list: no values, if it has at most two bytes. */
static bool next_row(tn__cursor *c, tn_dtype dtype, tn__feature_values *v, tn__poll *poll)
{
  uint32_t n;
  *v = (tn__feature_values){ .at = c->p, .dtype = (uint8_t)dtype };
  if (tn__poll_over(poll, 20)) return false;
  if (!tn__cursor_tag(c, TN__TAG_BYTES(1)) || !tn__cursor_length(c, &n)) return false;
  if (n == 2) { /* an empty list */
    if (c->p == c->end || tn__feature_dtype(*c->p++) != dtype) return false;
    return tn__cursor_length(c, &n) && n == 0;
  }
  if (n < 2) return n == 0;
  const uint8_t *outer = tn__cursor_enter(c, n);
  bool whole = count_feature(c, dtype, v, poll);
  c->end = outer;
  return whole;
}

static tn_status count_rows(const tn__messages *m, uint32_t i, place *p, tn__poll *poll, tn_error *err)
{
  const tn__feature *f = &m->features->items[i];
  tn__cursor c = tn__feature_cursor(&p->values);
  for (; c.p < c.end; p->rows++) {
    tn__feature_values v;
    if (!next_row(&c, f->dtype, &v, poll)) {
      tn_status st = bad_values(m, i, err);
      return err == NULL ? st : tn_error_prefix(err, "row %u", p->rows);
    }
    if (f->kind == TN__FEATURE_DENSE && v.n != f->row)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has %u values in row %u, wanted %lld", TN__KEY(m, i),
                          v.n, p->rows, (long long)f->row);
    p->values.n += v.n;
    if (v.n > p->widest) p->widest = v.n;
  }
  return TN_OK;
}

static tn_status use_default(const tn__messages *m, uint32_t i, char *to, tn_error *err)
{
  const tn__feature *f = &m->features->items[i];
  const tn_view *otherwise = m->ctx->inputs[f->fallback];
  if (otherwise->count > 0) return tn__copy_elements(f->dtype, to, otherwise->data, f->row, err);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' (%s) is missing in the context, and has no default",
                      TN__KEY(m, i), tn_dtype_name(f->dtype));
}

/* Copies dense values, too. */
static tn_status read_context(const tn__messages *m, uint32_t i, int64_t message, place *p, tn__poll *poll,
                              tn_error *err)
{
  const tn__feature *f = &m->features->items[i];
  tn__cursor c = tn__feature_cursor(&p->values);
  char *to = f->kind == TN__FEATURE_DENSE ? tn__messages_element(m->ctx->outputs[f->outputs[0]], message * f->row)
                                          : NULL;
  if (!p->there) return to == NULL ? TN_OK : use_default(m, i, to, err);
  if (c.p < c.end && !count_feature(&c, f->dtype, &p->values, poll)) return bad_values(m, i, err);
  if (to == NULL) return TN_OK;
  if (p->values.n == f->row) return tn__feature_copy(&p->values, to, poll, err);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has %u values, wanted %lld", TN__KEY(m, i), p->values.n,
                      (long long)f->row);
}

static tn_status read_list(const tn__messages *m, uint32_t i, place *p, tn__poll *poll, tn_error *err)
{
  const tn__feature *f = &m->features->items[i];
  if (p->there) return count_rows(m, i, p, poll, err);
  if (f->kind != TN__FEATURE_DENSE || f->may_miss) return TN_OK;
  if (f->how == TN__KEYS_VECTOR && ((const uint8_t *)m->ctx->inputs[MAY_MISS]->data)[f->key_at]) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' is missing in the lists, and is not assumed to be empty",
                      TN__KEY(m, i));
}

static tn_status parse_message(const tn__messages *m, int64_t message, tn_error *err)
{
  place *places = places_of(m, message);
  tn__poll poll = tn__poll_here();
  memset(places, 0, m->features->n * sizeof *places);
  tn_status st = walk(m, tn__messages_at(m, message), places, &poll, err);
  for (uint32_t i = 0; st == TN_OK && i < m->features->n; i++)
    st = m->features->items[i].list ? read_list(m, i, &places[i], &poll, err)
                                    : read_context(m, i, message, &places[i], &poll, err);
  return st;
}

static void parse_part(void *user, int64_t begin, int64_t end)
{
  for (int64_t i = begin; i < end; i++) {
    if (parse_message(user, i, NULL) == TN_OK) continue;
    tn__messages_fail(user, i);
    return;
  }
}

/* Parses the first bad message again, for its error. */
static tn_status explain(const tn__messages *m)
{
  tn_status st = parse_message(m, m->bad, m->ctx->err);
  return st == TN_OK ? tn__no_memory(m->ctx->err, "values of a tf.SequenceExample", 0) : tn__messages_error(m, m->bad);
}

/* ---- outputs whose size depends on the messages ---- */

/* Sums and maxima of a feature over all messages. */
typedef struct totals {
  int64_t values, rows, most_values, most_rows, widest;
} totals;

static void put_split(const tn__feature *f, void *splits, int64_t i, int64_t at)
{
  if (f->splits == TN_INT32) ((int32_t *)splits)[i] = (int32_t)at;
  else ((int64_t *)splits)[i] = at;
}

static tn_status allocate_sparse(const tn__messages *m, const tn__feature *f, const totals *t)
{
  const int64_t dims[2] = { t->values, 2 - m->single + f->list };
  int64_t *shape = m->ctx->outputs[f->outputs[2]]->data;
  if (!m->single) *shape++ = m->n;
  if (f->list) *shape++ = t->most_rows;
  *shape = f->list ? t->widest : t->most_values;
  tn_status st = tn_kernel_allocate(m->ctx, f->outputs[0], dims, 2);
  return st == TN_OK ? tn_kernel_allocate(m->ctx, f->outputs[1], dims, 1) : st;
}

/* Writes the outer row splits, too. */
static tn_status allocate_ragged(const tn__messages *m, uint32_t i, const totals *t)
{
  const tn__feature *f = &m->features->items[i];
  const int64_t inner = t->rows + 1;
  void *splits = m->ctx->outputs[f->outputs[1]]->data;
  if (f->splits == TN_INT32 && (t->values > INT32_MAX || t->rows > INT32_MAX))
    return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' has %lld values, too many for splits of int32",
                        TN__KEY(m, i), (long long)t->values);
  put_split(f, splits, 0, 0);
  for (int64_t e = 0; !m->single && e < m->n; e++) {
    const place *p = &places_of(m, e)[i];
    put_split(f, splits, e + 1, f->list ? p->row + p->rows : p->values.offset + p->values.n);
  }
  tn_status st = tn_kernel_allocate(m->ctx, f->outputs[0], &t->values, 1);
  if (st != TN_OK || !f->list) return st;
  st = tn_kernel_allocate(m->ctx, f->outputs[2], &inner, 1);
  if (st == TN_OK) put_split(f, m->ctx->outputs[f->outputs[2]]->data, 0, 0);
  return st;
}

/* Rows of all messages, as many as the longest list has. */
static tn_status allocate_dense(const tn__messages *m, uint32_t i, const totals *t)
{
  const tn__feature *f = &m->features->items[i];
  int64_t first[2] = { m->n, t->most_rows }, *lengths = m->ctx->outputs[f->outputs[1]]->data;
  tn__shape s;
  for (int64_t e = 0; e < m->n; e++) lengths[e] = places_of(m, e)[i].rows;
  tn_status st = dense_shape(f, first + m->single, 2 - m->single, &s, m->ctx->err);
  return st == TN_OK ? tn_kernel_allocate(m->ctx, f->outputs[0], s.dims, s.rank) : st;
}

/* Gives the values of each message their place in the outputs of feature i, and allocates these. */
static tn_status allocate(tn__messages *m, uint32_t i, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  totals t = { 0 };
  for (int64_t e = 0; e < m->n; e++) {
    place *p = &places_of(m, e)[i];
    if (tn__poll_over(poll, 10)) return TN_CANCELLED;
    p->values.offset = t.values;
    p->row = t.rows;
    t.values += p->values.n;
    t.rows += p->rows;
    if (p->values.n > t.most_values) t.most_values = p->values.n;
    if (p->rows > t.most_rows) t.most_rows = p->rows;
    if (p->widest > t.widest) t.widest = p->widest;
  }
  if (f->kind == TN__FEATURE_SPARSE) return allocate_sparse(m, f, &t);
  if (f->kind == TN__FEATURE_RAGGED) return allocate_ragged(m, i, &t);
  return f->list ? allocate_dense(m, i, &t) : TN_OK;
}

/* Sets n elements to zero, or the empty string. */
static void clear(const tn_view *out, int64_t at, int64_t n, tn__poll *poll)
{
  for (int64_t part; n > 0 && !tn__poll_over(poll, CLEAR_AT_ONCE); at += part, n -= part) {
    part = n < CLEAR_AT_ONCE ? n : CLEAR_AT_ONCE;
    if (out->dtype == TN_STRING) tn__elements_clear(TN_STRING, tn__messages_element(out, at), part);
    else memset(tn__messages_element(out, at), 0, (size_t)part * tn_dtype_size(out->dtype));
  }
}

/* Writes the indices of n values: the message unless it is a single one, the row of a list, the column. */
static void put_indices(const tn__messages *m, const tn__feature *f, int64_t at, int64_t message, int64_t row,
                        uint32_t n)
{
  int64_t *to = (int64_t *)m->ctx->outputs[f->outputs[0]]->data + at * (2 - m->single + f->list);
  for (uint32_t k = 0; k < n; k++) {
    if (!m->single) *to++ = message;
    if (f->list) *to++ = row;
    *to++ = k;
  }
}

/* Copies the values of a list, row by row. */
static tn_status fill_list(const tn__messages *m, uint32_t i, int64_t message, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  const place *p = &places_of(m, message)[i];
  const tn_view *out = m->ctx->outputs[f->outputs[f->kind == TN__FEATURE_SPARSE]];
  int64_t each = f->kind == TN__FEATURE_DENSE ? out->count / m->n : 0;
  int64_t at = f->kind == TN__FEATURE_DENSE ? message * each : p->values.offset;
  tn__cursor c = tn__feature_cursor(&p->values);
  tn_status st = TN_OK;
  for (uint32_t row = 0; st == TN_OK && row < p->rows; row++) {
    tn__feature_values v;
    if (!next_row(&c, f->dtype, &v, poll)) return TN_OK;
    if (v.n > 0) st = tn__feature_copy(&v, tn__messages_element(out, at), poll, NULL);
    if (f->kind == TN__FEATURE_SPARSE) put_indices(m, f, at, message, row, v.n);
    at += v.n;
    if (f->kind == TN__FEATURE_RAGGED)
      put_split(f, m->ctx->outputs[f->outputs[2]]->data, p->row + row + 1, at);
  }
  if (f->kind == TN__FEATURE_DENSE) clear(out, at, message * each + each - at, poll);
  return st;
}

static tn_status fill(const tn__messages *m, uint32_t i, int64_t message, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  const tn__feature_values *v = &places_of(m, message)[i].values;
  if (f->list) return fill_list(m, i, message, poll);
  if (f->kind == TN__FEATURE_DENSE || v->n == 0) return TN_OK;
  if (f->kind == TN__FEATURE_SPARSE) put_indices(m, f, v->offset, message, 0, v->n);
  const tn_view *out = m->ctx->outputs[f->outputs[f->kind == TN__FEATURE_SPARSE]];
  return tn__feature_copy(v, tn__messages_element(out, v->offset), poll, NULL);
}

/* An item is a feature of a message. */
static void fill_part(void *user, int64_t begin, int64_t end)
{
  tn__messages *m = user;
  tn__poll poll = tn__poll_here();
  for (int64_t k = begin; k < end; k++) {
    if (fill(m, (uint32_t)(k % m->features->n), k / m->features->n, &poll) != TN_OK) atomic_store(&m->no_memory, true);
    if (tn__poll_over(&poll, 20)) return;
  }
}

/* ---- compute ---- */

/* Features of one key must be of one kind. Without messages, no dense feature of the context may be required. */
static tn_status check_features(const tn__messages *m)
{
  for (uint32_t i = 0; i < m->features->n; i++) {
    const tn__feature *f = &m->features->items[i];
    if (f->kind != m->features->items[m->index.first[i]].kind)
      return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' is wanted in two forms", TN__KEY(m, i));
    if (m->n == 0 && f->kind == TN__FEATURE_DENSE && !f->list && f->row > 0 && m->ctx->inputs[f->fallback]->count == 0)
      return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT,
                          "key '%.*s' has no default, and there are no messages", TN__KEY(m, i));
  }
  return TN_OK;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn__features *features = ctx->state;
  tn__messages m;
  tn__messages_init(&m, ctx, NAMES);
  tn_status st = check_features(&m);
  if (st != TN_OK) return st;
  tn__messages_loop(&m, m.n, 100 + 20 * (double)features->n + m.bytes, parse_part);
  if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
  if (m.bad != INT64_MAX) return explain(&m);
  tn__poll poll = tn__poll_of(ctx);
  for (uint32_t i = 0; st == TN_OK && i < features->n; i++) st = allocate(&m, i, &poll);
  if (st != TN_OK || features->n == 0) return st;
  tn__messages_loop(&m, m.n * features->n, 10 + 3 * m.bytes / (double)features->n, fill_part);
  return m.no_memory ? tn__no_memory(ctx->err, "values of tf.SequenceExamples", 0) : TN_OK;
}

/* ---- shapes ---- */

static tn_status infer_groups(tn_infer_ctx *ctx, const tn__feature_group *groups, size_t n, tn_error *err)
{
  tn__shape batch, *s = &batch;
  tn__infer_get(ctx, 0, s);
  tn_status st = s->rank > 0 ? tn__infer_rank(ctx, 0, 1, s, err) : TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = tn__features_infer(ctx, &groups[i], s, err);
  return st;
}

static tn_status infer_v1(tn_infer_ctx *ctx, tn_error *err)
{
  return infer_groups(ctx, groups_v1, LENGTH(groups_v1), err);
}

static tn_status infer_v2(tn_infer_ctx *ctx, tn_error *err)
{
  return infer_groups(ctx, groups_v2, LENGTH(groups_v2), err);
}

/* ---- tables ---- */

#define VALUE_TYPES "list({float, int64, string}) >= 0"
#define SPLIT_TYPES "list({int32, int64}) >= 0"
#define SPARSE_CONTEXT                                                                             \
  "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, " \
  "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "
#define SPARSE_LISTS                                                                                                   \
  "feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, " \
  "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types, "    \
  "feature_list_dense_lengths: Nfeature_list_dense * int64"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "ParseSequenceExample",
    .inputs = "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense",
    .outputs = SPARSE_CONTEXT SPARSE_LISTS,
    .attrs = "feature_list_dense_missing_assumed_empty: list(string) >= 0; context_sparse_keys: list(string) >= 0; "
             "context_dense_keys: list(string) >= 0; feature_list_sparse_keys: list(string) >= 0; "
             "feature_list_dense_keys: list(string) >= 0; Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; "
             "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
             "context_sparse_types: " VALUE_TYPES " = []; Tcontext_dense: " VALUE_TYPES " = []; "
             "feature_list_dense_types: " VALUE_TYPES " = []; context_dense_shapes: list(shape) >= 0 = []; "
             "feature_list_sparse_types: " VALUE_TYPES " = []; feature_list_dense_shapes: list(shape) >= 0 = []",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_v1, .summary = "features of serialized tf.SequenceExamples" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ParseSequenceExampleV2",
    .inputs = "serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, "
              "context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, "
              "feature_list_ragged_keys: string, feature_list_dense_missing_assumed_empty: bool, "
              "context_dense_defaults: Tcontext_dense",
    .outputs = SPARSE_CONTEXT "context_ragged_values: context_ragged_value_types, "
               "context_ragged_row_splits: context_ragged_split_types, " SPARSE_LISTS ", "
               "feature_list_ragged_values: feature_list_ragged_value_types, "
               "feature_list_ragged_outer_splits: feature_list_ragged_split_types, "
               "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
    .attrs = "Ncontext_sparse: int >= 0 = 0; Tcontext_dense: " VALUE_TYPES " = []; "
             "context_sparse_types: " VALUE_TYPES " = []; context_ragged_value_types: " VALUE_TYPES " = []; "
             "context_ragged_split_types: " SPLIT_TYPES " = []; context_dense_shapes: list(shape) >= 0 = []; "
             "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
             "feature_list_dense_types: " VALUE_TYPES " = []; feature_list_sparse_types: " VALUE_TYPES " = []; "
             "feature_list_ragged_value_types: " VALUE_TYPES " = []; "
             "feature_list_ragged_split_types: " SPLIT_TYPES " = []; feature_list_dense_shapes: list(shape) >= 0 = []",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_v2,
    .summary = "features of serialized tf.SequenceExamples, also ragged ones" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("ParseSequenceExample", "parse_sequence_example_cpu", create_v1, destroy, prepare, compute),
  TN__KERNEL("ParseSequenceExampleV2", "parse_sequence_example_v2_cpu", create_v2, destroy, prepare_v2, compute),
};

TN_OP_FAMILY(example_sequence)
