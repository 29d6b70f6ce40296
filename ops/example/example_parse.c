/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts features from serialized tf.Example messages: ParseExample ParseExampleV2 ParseSingleExample.
 *
 * Messages are walked in parallel. The walk remembers where the values of each wanted feature are; of entries with the
 * same key the last one counts. Then values are checked and counted, and dense ones of a fixed size are copied. When
 * the number of all values of a feature is known, its outputs are allocated and filled, in parallel again. */
#include <core/tensor/tensor_internal.h>
#include <ops/example/messages.h>
#include <ops/example/values.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <string.h>

#define FILL_AT_ONCE 16384 /* elements between two checks whether the step has ended */

#define INDICES "sparse_indices"
#define VALUES "sparse_values"
#define SHAPES "sparse_shapes"

static const tn__feature_group groups_v1[] = {
  { .kind = TN__FEATURE_SPARSE, .how = TN__KEYS_LIST, .keys = "sparse_keys", .types = "sparse_types",
    .outputs = { INDICES, VALUES, SHAPES } },
  { .kind = TN__FEATURE_DENSE, .variable = true, .how = TN__KEYS_LIST, .keys = "dense_keys", .types = "Tdense",
    .shapes = "dense_shapes", .defaults = "dense_defaults", .outputs = { "dense_values" } },
};
static const tn__feature_group groups_v2[] = {
  { .kind = TN__FEATURE_SPARSE, .how = TN__KEYS_VECTOR, .keys = "sparse_keys", .types = "sparse_types",
    .outputs = { INDICES, VALUES, SHAPES } },
  { .kind = TN__FEATURE_DENSE, .variable = true, .how = TN__KEYS_VECTOR, .keys = "dense_keys", .types = "Tdense",
    .shapes = "dense_shapes", .defaults = "dense_defaults", .outputs = { "dense_values" } },
  { .kind = TN__FEATURE_RAGGED, .how = TN__KEYS_VECTOR, .keys = "ragged_keys", .types = "ragged_value_types",
    .splits = "ragged_split_types", .outputs = { "ragged_values", "ragged_row_splits" } },
};
static const tn__feature_group groups_single[] = {
  { .kind = TN__FEATURE_SPARSE, .how = TN__KEYS_ATTR, .keys = "sparse_keys", .types = "sparse_types",
    .outputs = { INDICES, VALUES, SHAPES } },
  { .kind = TN__FEATURE_DENSE, .variable = true, .how = TN__KEYS_ATTR, .keys = "dense_keys", .types = "Tdense",
    .shapes = "dense_shapes", .defaults = "dense_defaults", .outputs = { "dense_values" } },
};

static void destroy(void *state) { tn__features_destroy(state); }

#define CREATE(name, groups)                                                                        \
  static tn_status name(const tn_operation *op, void **state, tn_error *err)                        \
  {                                                                                                 \
    tn__features *features;                                                                         \
    *state = NULL;                                                                                  \
    tn_status st = tn__features_create(op, groups, sizeof groups / sizeof *groups, &features, err); \
    if (st == TN_OK) *state = features;                                                             \
    return st;                                                                                      \
  }
CREATE(create_v1, groups_v1)
CREATE(create_v2, groups_v2)
CREATE(create_single, groups_single)

/* ---- prepare ---- */

/* The shape of dense values for `first` dimensions of the messages and of a variable dimension. */
static tn_status dense_shape(const tn__feature *f, const int64_t *first, int32_t n, tn__shape *out, tn_error *err)
{
  bool fits = true;
  tn__shape_set(out, first, n);
  for (int32_t d = f->kind == TN__FEATURE_VARIABLE; fits && d < f->rank; d++) fits = tn__shape_append(out, f->dims[d]);
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "dense values would have more than %d dimensions", TN_MAX_RANK);
}

static tn_status prepare_outputs(tn_prepare_ctx *ctx, const tn__feature *f, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  const int64_t columns = in->rank + 1, splits = in->rank == 0 ? 0 : in->count + 1;
  tn__shape s;
  tn_status st = TN_OK;
  if (f->kind == TN__FEATURE_DENSE) {
    st = dense_shape(f, in->dims, in->rank, &s, err);
    return st == TN_OK ? tn_prepare_output(ctx, f->outputs[0], s.dims, s.rank, err) : st;
  }
  st = tn_prepare_dynamic(ctx, f->outputs[0], err);
  if (st == TN_OK && f->kind == TN__FEATURE_RAGGED) st = tn_prepare_output(ctx, f->outputs[1], &splits, 1, err);
  if (st != TN_OK || f->kind != TN__FEATURE_SPARSE) return st;
  st = tn_prepare_dynamic(ctx, f->outputs[1], err);
  return st == TN_OK ? tn_prepare_output(ctx, f->outputs[2], &columns, 1, err) : st;
}

static tn_status check_names(const tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *names = &ctx->inputs[1];
  if (names->count == 0 || tn__view_same_shape(names, &ctx->inputs[0])) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld names for %lld messages", tn_operation_type(ctx->op),
                      (long long)names->count, (long long)ctx->inputs[0].count);
}

static tn_status prepare_features(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__features *features = ctx->state;
  tn_status st = tn__features_check_keys(ctx, features, err);
  for (uint32_t i = 0; st == TN_OK && i < features->n; i++) {
    st = tn__features_check_default(ctx, &features->items[i], err);
    if (st == TN_OK) st = prepare_outputs(ctx, &features->items[i], err);
  }
  return st == TN_OK ? tn__messages_scratch(ctx, features, sizeof(tn__feature_values), err) : st;
}

static tn_status prepare_v1(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = check_names(ctx, err);
  return st == TN_OK ? prepare_features(ctx, err) : st;
}

static tn_status prepare_v2(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = ctx->inputs[0].rank == 0 ? TN_OK : tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = check_names(ctx, err);
  return st == TN_OK ? prepare_features(ctx, err) : st;
}

static tn_status prepare_single(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  return st == TN_OK ? prepare_features(ctx, err) : st;
}

/* ---- one message ---- */

static tn__feature_values *values_of(const tn__messages *m, int64_t message)
{
  return (tn__feature_values *)m->memory + message * m->features->n;
}

/* Remembers the feature of an entry. One without a list counts as missing. If the last entry of a key has no list, an
 * earlier one is used, but for sparse and ragged features of a batch. */
static tn_status note_entry(const tn__messages *m, tn__feature_values *values, tn__slice key, tn__slice feature,
                            tn_error *err)
{
  uint32_t i = tn__key_index_find(&m->index, key, false);
  if (i == TN__NO_KEY) return TN_OK;
  const tn__feature *f = &m->features->items[i];
  bool dense = f->kind == TN__FEATURE_DENSE || f->kind == TN__FEATURE_VARIABLE;
  if (feature.size == 0) {
    if (!dense && !m->single) values[i].at = NULL;
    return TN_OK;
  }
  uint8_t dtype = tn__feature_dtype((uint8_t)feature.data[0]);
  if (dtype == TN_DTYPE_INVALID)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has a list of an unknown type", TN__KEY(m, i));
  values[i] = (tn__feature_values){ .at = (const uint8_t *)feature.data + 1, .size = (uint32_t)feature.size - 1,
                                    .dtype = dtype };
  return TN_OK;
}

static tn_status malformed(tn__slice message, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the %zu bytes are not a tf.Example", message.size);
}

/* Concatenated messages are one message. */
static tn_status walk(const tn__messages *m, tn__slice message, tn__feature_values *values, tn_error *err)
{
  tn__cursor c = tn__cursor_of(message);
  tn__poll poll = tn__poll_here();
  if (message.size > INT32_MAX) return malformed(message, err);
  while (c.p < c.end) {
    uint32_t n;
    if (!tn__cursor_tag(&c, TN__TAG_BYTES(1))) {
      if (!tn__cursor_skip(&c)) return malformed(message, err);
      continue;
    }
    if (!tn__cursor_length(&c, &n)) return malformed(message, err);
    const uint8_t *outer = tn__cursor_enter(&c, n);
    while (c.p < c.end) {
      tn__slice key, feature;
      if (tn__poll_over(&poll, 30)) return TN_CANCELLED;
      if (!tn__cursor_tag(&c, TN__TAG_BYTES(1)) || !tn__cursor_entry(&c, true, &key, &feature))
        return malformed(message, err);
      tn_status st = note_entry(m, values, key, feature, err);
      if (st != TN_OK) return st;
    }
    c.end = outer;
  }
  return TN_OK;
}

static tn_status use_default(const tn__messages *m, uint32_t i, char *to, tn_error *err)
{
  const tn__feature *f = &m->features->items[i];
  const tn_view *otherwise = m->ctx->inputs[f->fallback];
  if (otherwise->count > 0) return tn__copy_elements(f->dtype, to, otherwise->data, f->row, err);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' (%s) is missing, and has no default", TN__KEY(m, i),
                      tn_dtype_name(f->dtype));
}

/* Checks and counts the values of a feature that is there. */
static tn_status count_values(const tn__messages *m, uint32_t i, tn__feature_values *v, tn__poll *poll, tn_error *err)
{
  const tn__feature *f = &m->features->items[i];
  tn__cursor c = tn__feature_cursor(v);
  if (v->dtype != f->dtype)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has values of %s, wanted %s", TN__KEY(m, i),
                        tn_dtype_name(v->dtype), tn_dtype_name(f->dtype));
  if (!tn__feature_count(&c, false, v, poll))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has a malformed list of %s", TN__KEY(m, i),
                        tn_dtype_name(f->dtype));
  if (f->kind == TN__FEATURE_DENSE && v->n != f->row)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has %u values of %s, wanted %lld", TN__KEY(m, i), v->n,
                        tn_dtype_name(f->dtype), (long long)f->row);
  if (f->kind == TN__FEATURE_VARIABLE && (f->row == 0 || v->n % f->row != 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "key '%.*s' has %u values of %s, wanted a multiple of %lld",
                        TN__KEY(m, i), v->n, tn_dtype_name(f->dtype), (long long)f->row);
  return TN_OK;
}

static tn_status parse_message(const tn__messages *m, int64_t message, tn_error *err)
{
  tn__slice bytes;
  tn__feature_values *values = values_of(m, message);
  tn__poll poll = tn__poll_here();
  bytes.data = tn_string_data((const tn_string *)m->ctx->inputs[0]->data + message, &bytes.size);
  memset(values, 0, m->features->n * sizeof *values);
  tn_status st = walk(m, bytes, values, err);
  for (uint32_t i = 0; st == TN_OK && i < m->features->n; i++) {
    const tn__feature *f = &m->features->items[i];
    tn__feature_values *v = &values[i];
    if (v->at != NULL) st = count_values(m, i, v, &poll, err);
    if (st != TN_OK || f->kind != TN__FEATURE_DENSE) continue;
    const tn_view *out = m->ctx->outputs[f->outputs[0]];
    char *to = (char *)out->data + (size_t)(message * f->row) * tn_dtype_size(f->dtype);
    st = v->at == NULL ? use_default(m, i, to, err) : tn__feature_copy(v, to, &poll, err);
  }
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
  return st == TN_OK ? tn__no_memory(m->ctx->err, "values of a tf.Example", 0) : tn__messages_error(m, m->bad);
}

/* ---- outputs whose size depends on the messages ---- */

static tn_status allocate_sparse(const tn__messages *m, const tn__feature *f, int64_t total, int64_t most)
{
  const int64_t dims[2] = { total, m->single ? 1 : 2 };
  int64_t *shape = m->ctx->outputs[f->outputs[2]]->data;
  if (!m->single) *shape++ = m->n;
  *shape = most;
  tn_status st = tn_kernel_allocate(m->ctx, f->outputs[0], dims, 2);
  return st == TN_OK ? tn_kernel_allocate(m->ctx, f->outputs[1], dims, 1) : st;
}

/* Writes the row splits, too. A single message has none. */
static tn_status allocate_ragged(const tn__messages *m, uint32_t i, int64_t total)
{
  const tn__feature *f = &m->features->items[i];
  void *splits = m->ctx->outputs[f->outputs[1]]->data;
  if (f->splits == TN_INT32 && total > INT32_MAX)
    return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' has %lld values, too many for splits of int32",
                        TN__KEY(m, i), (long long)total);
  for (int64_t e = 0; !m->single && e <= m->n; e++) {
    int64_t at = e < m->n ? values_of(m, e)[i].offset : total;
    if (f->splits == TN_INT32) ((int32_t *)splits)[e] = (int32_t)at;
    else ((int64_t *)splits)[e] = at;
  }
  return tn_kernel_allocate(m->ctx, f->outputs[0], &total, 1);
}

static tn_status allocate_variable(const tn__messages *m, uint32_t i, int64_t most)
{
  const tn__feature *f = &m->features->items[i];
  const int64_t rows = f->row > 0 ? most / f->row : 0, first[2] = { m->single ? rows : m->n, rows };
  tn__shape s;
  if (f->row == 0 && !m->single)
    return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' has a shape without elements", TN__KEY(m, i));
  tn_status st = dense_shape(f, first, m->single ? 1 : 2, &s, m->ctx->err);
  return st == TN_OK ? tn_kernel_allocate(m->ctx, f->outputs[0], s.dims, s.rank) : st;
}

/* Gives the values of each message their place in the outputs of feature i, and allocates these. */
static tn_status allocate(tn__messages *m, uint32_t i, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  int64_t total = 0, most = 0;
  for (int64_t e = 0; e < m->n; e++) {
    tn__feature_values *v = &values_of(m, e)[i];
    if (tn__poll_over(poll, 10)) return TN_CANCELLED;
    v->offset = total;
    total += v->n;
    if (v->n > most) most = v->n;
  }
  switch (f->kind) {
  case TN__FEATURE_SPARSE: return allocate_sparse(m, f, total, most);
  case TN__FEATURE_RAGGED: return allocate_ragged(m, i, total);
  case TN__FEATURE_VARIABLE: return allocate_variable(m, i, most);
  default: return TN_OK;
  }
}

/* Copies the values of a message and fills the rest of its part with the default. */
static tn_status fill_variable(const tn__messages *m, const tn__feature *f, const tn__feature_values *v,
                               int64_t message, tn__poll *poll)
{
  const tn_view *out = m->ctx->outputs[f->outputs[0]];
  int64_t each = out->count / m->n;
  if (out->count == 0) return TN_OK;
  tn_status st = tn__feature_copy(v, tn__messages_element(out, message * each), poll, NULL);
  for (int64_t at = v->n, n; st == TN_OK && at < each && !tn__poll_over(poll, FILL_AT_ONCE); at += n) {
    n = each - at < FILL_AT_ONCE ? each - at : FILL_AT_ONCE;
    st = tn__fill_elements(f->dtype, tn__messages_element(out, message * each + at), m->ctx->inputs[f->fallback]->data,
                           n, NULL);
  }
  return st;
}

static tn_status fill(const tn__messages *m, uint32_t i, int64_t message, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  const tn__feature_values *v = &values_of(m, message)[i];
  if (f->kind == TN__FEATURE_DENSE) return TN_OK;
  if (f->kind == TN__FEATURE_VARIABLE) return fill_variable(m, f, v, message, poll);
  if (f->kind == TN__FEATURE_SPARSE) {
    int64_t *at = (int64_t *)m->ctx->outputs[f->outputs[0]]->data + v->offset * (m->single ? 1 : 2);
    for (uint32_t k = 0; k < v->n; k++) {
      if (!m->single) *at++ = message;
      *at++ = k;
    }
  }
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

/* Two features cannot have one key. */
static tn_status check_keys(const tn__messages *m)
{
  for (uint32_t i = 0; i < m->features->n; i++)
    if (m->index.first[i] != i)
      return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' is wanted twice", TN__KEY(m, i));
  return TN_OK;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn__features *features = ctx->state;
  tn__messages m;
  tn__messages_init(&m, ctx, features->groups == groups_single ? UINT32_MAX : 1);
  tn_status st = check_keys(&m);
  if (st != TN_OK) return st;
  tn__messages_loop(&m, m.n, 100 + 20 * (double)features->n + m.bytes, parse_part);
  if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
  if (m.bad != INT64_MAX) return explain(&m);
  tn__poll poll = tn__poll_of(ctx);
  for (uint32_t i = 0; st == TN_OK && i < features->n; i++) st = allocate(&m, i, &poll);
  if (st != TN_OK || features->n == 0) return st;
  tn__messages_loop(&m, m.n * features->n, 10 + 3 * m.bytes / (double)features->n, fill_part);
  return m.no_memory ? tn__no_memory(ctx->err, "values of tf.Examples", 0) : TN_OK;
}

/* ---- shapes ---- */

static tn_status infer_groups(tn_infer_ctx *ctx, const tn__feature_group *groups, size_t n, const tn__shape *batch,
                              tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = tn__features_infer(ctx, &groups[i], batch, err);
  return st;
}

static tn_status infer_v1(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape batch;
  tn_status st = tn__infer_rank(ctx, 0, 1, &batch, err);
  return st == TN_OK ? infer_groups(ctx, groups_v1, sizeof groups_v1 / sizeof *groups_v1, &batch, err) : st;
}

static tn_status infer_v2(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape batch;
  tn__infer_get(ctx, 0, &batch);
  tn_status st = batch.rank > 0 ? tn__infer_rank(ctx, 0, 1, &batch, err) : TN_OK;
  return st == TN_OK ? infer_groups(ctx, groups_v2, sizeof groups_v2 / sizeof *groups_v2, &batch, err) : st;
}

static tn_status infer_single(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape batch;
  tn_status st = tn__infer_rank(ctx, 0, 0, &batch, err);
  return st == TN_OK ? infer_groups(ctx, groups_single, sizeof groups_single / sizeof *groups_single, &batch, err) : st;
}

/* ---- tables ---- */

#define VALUE_TYPES "list({float, int64, string})"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "ParseExample",
    .inputs = "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, "
              "dense_defaults: Tdense",
    .outputs = "sparse_indices: Nsparse * int64, sparse_values: sparse_types, sparse_shapes: Nsparse * int64, "
               "dense_values: Tdense",
    .attrs = "Nsparse: int >= 0; Ndense: int >= 0; sparse_types: " VALUE_TYPES " >= 0; Tdense: " VALUE_TYPES " >= 0; "
             "dense_shapes: list(shape) >= 0",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_v1, .summary = "features of serialized tf.Examples" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ParseExampleV2",
    .inputs = "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, "
              "dense_defaults: Tdense",
    .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64, "
               "dense_values: Tdense, ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types",
    .attrs = "Tdense: " VALUE_TYPES " >= 0; num_sparse: int >= 0; sparse_types: " VALUE_TYPES " >= 0; "
             "ragged_value_types: " VALUE_TYPES " >= 0; ragged_split_types: list({int32, int64}) >= 0; "
             "dense_shapes: list(shape) >= 0",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_v2, .summary = "features of serialized tf.Examples, also ragged ones" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ParseSingleExample",
    .inputs = "serialized: string, dense_defaults: Tdense",
    .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64, "
               "dense_values: Tdense",
    .attrs = "num_sparse: int >= 0; sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; "
             "sparse_types: " VALUE_TYPES " >= 0; Tdense: " VALUE_TYPES " >= 0; dense_shapes: list(shape) >= 0",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_single, .summary = "features of one serialized tf.Example" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("ParseExample", "parse_example_cpu", create_v1, destroy, prepare_v1, compute),
  TN__KERNEL("ParseExampleV2", "parse_example_v2_cpu", create_v2, destroy, prepare_v2, compute),
  TN__KERNEL("ParseSingleExample", "parse_single_example_cpu", create_single, destroy, prepare_single, compute),
};

TN_OP_FAMILY(example_parse)
