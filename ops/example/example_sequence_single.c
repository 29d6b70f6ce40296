/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts features from one serialized tf.SequenceExample: ParseSingleSequenceExample.
 *
 * Unlike the other ops on these messages, TensorFlow's has its message parsed by protobuf: all of it must be
 * well-formed, fields may be in any order and form, and a message that occurs twice is merged, that is, it is as if the
 * bytes of both were one. */
#include <core/tensor/tensor_internal.h>
#include <ops/example/messages.h>
#include <ops/example/values.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/string/unicode/string_case.h>
#include <string.h>

#define MAY_MISS 1 /* the input with keys of dense lists that may be missing */

static const tn__feature_group groups[] = {
  { .kind = TN__FEATURE_SPARSE, .how = TN__KEYS_LIST, .keys = "context_sparse_keys", .types = "context_sparse_types",
    .outputs = { "context_sparse_indices", "context_sparse_values", "context_sparse_shapes" } },
  { .kind = TN__FEATURE_DENSE, .how = TN__KEYS_LIST, .keys = "context_dense_keys", .types = "Tcontext_dense",
    .shapes = "context_dense_shapes", .defaults = "context_dense_defaults", .outputs = { "context_dense_values" } },
  { .kind = TN__FEATURE_SPARSE, .list = true, .how = TN__KEYS_LIST, .keys = "feature_list_sparse_keys",
    .types = "feature_list_sparse_types",
    .outputs = { "feature_list_sparse_indices", "feature_list_sparse_values", "feature_list_sparse_shapes" } },
  { .kind = TN__FEATURE_DENSE, .list = true, .how = TN__KEYS_LIST, .keys = "feature_list_dense_keys",
    .types = "feature_list_dense_types", .shapes = "feature_list_dense_shapes",
    .outputs = { "feature_list_dense_values" } },
};
#define N_GROUPS (sizeof groups / sizeof *groups)

static void destroy(void *state) { tn__features_destroy(state); }

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  tn__features *features;
  *state = NULL;
  tn_status st = tn__features_create(op, groups, N_GROUPS, &features, err);
  if (st == TN_OK) *state = features;
  return st;
}

/* ---- prepare ---- */

static tn_status prepare_outputs(tn_prepare_ctx *ctx, const tn__feature *f, tn_error *err)
{
  const int64_t columns = 1 + f->list;
  if (f->kind == TN__FEATURE_DENSE && !f->list) {
    tn_status st = tn__features_check_default(ctx, f, err);
    return st == TN_OK ? tn_prepare_output(ctx, f->outputs[0], f->dims, f->rank, err) : st;
  }
  tn_status st = tn_prepare_dynamic(ctx, f->outputs[0], err);
  if (st != TN_OK || f->kind == TN__FEATURE_DENSE) return st;
  st = tn_prepare_dynamic(ctx, f->outputs[1], err);
  return st == TN_OK ? tn_prepare_output(ctx, f->outputs[2], &columns, 1, err) : st;
}

/* Where the map's entry of a feature is. */
typedef struct place {
  tn__slice entry;
  bool there;
} place;

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__features *features = ctx->state;
  const uint32_t name = ctx->n_inputs - 1;
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  if (st == TN_OK) st = tn__want_rank(ctx, MAY_MISS, 1, err);
  if (st == TN_OK && ctx->inputs[name].count > 0) st = tn__want_rank(ctx, name, 0, err);
  for (uint32_t i = 0; st == TN_OK && i < features->n; i++) {
    st = tn__want_rank(ctx, features->items[i].key_input, 0, err);
    if (st == TN_OK) st = prepare_outputs(ctx, &features->items[i], err);
  }
  return st == TN_OK ? tn__messages_scratch(ctx, features, sizeof(place), err) : st;
}

/* ---- checking a message ---- */

/* Checks a list of values of type `dtype`. */
static bool list_is_valid(tn__slice list, tn_dtype dtype, tn__poll *poll)
{
  tn__wire w = tn__wire_read(list);
  while (tn__wire_next(&w)) {
    if (tn__poll_over(poll, 10)) return false;
    if (dtype == TN_STRING || !tn__wire_is(&w, 1, TN__WIRE_BYTES)) continue;
    size_t n;
    if (dtype == TN_FLOAT && w.bytes.size % sizeof(float) != 0) return false;
    if (dtype == TN_INT64 && !tn__feature_varints(w.bytes, &n, poll)) return false;
  }
  return w.error == NULL;
}

static bool feature_is_valid(tn__slice feature, tn__poll *poll)
{
  tn__wire w = tn__wire_read(feature);
  while (tn__wire_next(&w)) {
    tn_dtype dtype = w.type == TN__WIRE_BYTES && w.field <= 3 ? tn__feature_dtype(TN__TAG_BYTES(w.field))
                                                              : TN_DTYPE_INVALID;
    if (dtype != TN_DTYPE_INVALID && !list_is_valid(w.bytes, dtype, poll)) return false;
  }
  return w.error == NULL;
}

/* A FeatureList, or if not `list` a Feature. */
static bool value_is_valid(tn__slice value, bool list, tn__poll *poll)
{
  if (!list) return feature_is_valid(value, poll);
  tn__wire w = tn__wire_read(value);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, 1, TN__WIRE_BYTES) && !feature_is_valid(w.bytes, poll)) return false;
  return w.error == NULL;
}

static bool is_utf8(tn__slice s)
{
  bool bad = false;
  for (size_t at = 0; at < s.size && !bad;) tn__utf8_next(s.data, s.size, &at, &bad);
  return !bad;
}

/* Checks an entry of a map, and remembers it if its key is wanted. */
static bool note_entry(const tn__messages *m, tn__slice entry, bool list, tn__poll *poll)
{
  tn__slice key = { "", 0 };
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, 1, TN__WIRE_BYTES)) key = w.bytes;
    if (tn__wire_is(&w, 1, TN__WIRE_BYTES) && !is_utf8(key)) return false;
    if (tn__wire_is(&w, 2, TN__WIRE_BYTES) && !value_is_valid(w.bytes, list, poll)) return false;
  }
  if (w.error != NULL || tn__poll_over(poll, 30)) return false;
  uint32_t i = tn__key_index_find(&m->index, key, list);
  if (i != TN__NO_KEY) ((place *)m->memory)[i] = (place){ entry, true };
  return true;
}

/* A SequenceExample: maps in messages of their own, context and lists. */
static bool note_message(const tn__messages *m, tn__slice message, tn__poll *poll)
{
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) {
    if (w.type != TN__WIRE_BYTES || (w.field != 1 && w.field != 2)) continue;
    tn__wire map = tn__wire_read(w.bytes);
    while (tn__wire_next(&map))
      if (tn__wire_is(&map, 1, TN__WIRE_BYTES) && !note_entry(m, map.bytes, w.field == 2, poll)) return false;
    if (map.error != NULL) return false;
  }
  return w.error == NULL;
}

/* ---- reading the checked message ---- */

/* Walks the fields of a message that occurs any number of times, as field 2 of an entry, or that is given. */
typedef struct parts {
  tn__wire entry, message;
} parts;

static parts parts_of_entry(tn__slice entry)
{
  return (parts){ tn__wire_read(entry), tn__wire_read((tn__slice){ "", 0 }) };
}

static parts parts_of_message(tn__slice message)
{
  return (parts){ tn__wire_read((tn__slice){ "", 0 }), tn__wire_read(message) };
}

/* The next field of wire type bytes. */
static bool next_part(parts *p, uint32_t *field, tn__slice *bytes)
{
  for (;;) {
    while (tn__wire_next(&p->message)) {
      if (p->message.type != TN__WIRE_BYTES) continue;
      *field = p->message.field;
      *bytes = p->message.bytes;
      return true;
    }
    do {
      if (!tn__wire_next(&p->entry)) return false;
    } while (!tn__wire_is(&p->entry, 2, TN__WIRE_BYTES));
    p->message = tn__wire_read(p->entry.bytes);
  }
}

/* The values of a feature. Its lists are merged, but a list of another type replaces those before it. */
typedef struct merged {
  tn_dtype dtype; /* TN_DTYPE_INVALID: there is no list */
  int64_t first;  /* the first of its lists that counts */
  int64_t n;      /* number of values */
} merged;

/* The number of values in a field of a list; 0 if it is another field. */
static size_t values_in(const tn__wire *w, tn_dtype dtype)
{
  size_t n = 1;
  if (w->field != 1) return 0;
  switch (dtype) {
  case TN_STRING: return w->type == TN__WIRE_BYTES;
  case TN_FLOAT: return w->type == TN__WIRE_BYTES ? w->bytes.size / sizeof(float) : w->type == TN__WIRE_FIXED32;
  default:
    if (w->type == TN__WIRE_BYTES) tn__wire_count_varints(w->bytes, &n);
    return w->type == TN__WIRE_BYTES || w->type == TN__WIRE_VARINT ? n : 0;
  }
}

static int64_t count_list(tn__slice list, tn_dtype dtype)
{
  int64_t n = 0;
  tn__wire w = tn__wire_read(list);
  while (tn__wire_next(&w)) n += (int64_t)values_in(&w, dtype);
  return n;
}

static merged measure(parts p, tn__poll *poll)
{
  merged m = { .dtype = TN_DTYPE_INVALID };
  uint32_t field;
  tn__slice list;
  for (int64_t i = 0; next_part(&p, &field, &list);) {
    tn_dtype dtype = field <= 3 ? tn__feature_dtype(TN__TAG_BYTES(field)) : TN_DTYPE_INVALID;
    if (dtype == TN_DTYPE_INVALID) continue;
    if (dtype != m.dtype) m = (merged){ dtype, i, 0 };
    m.n += count_list(list, dtype);
    i++;
    if (tn__poll_over(poll, 20 + (int64_t)list.size)) break;
  }
  return m;
}

static tn_status copy_values(const tn__wire *w, tn_dtype dtype, size_t n, void *to, tn__poll *poll, tn_error *err)
{
  if (dtype == TN_STRING) return tn_string_set(to, w->bytes.data, w->bytes.size, err);
  if (w->type == TN__WIRE_BYTES) {
    const tn__feature_values run = { .at = (const uint8_t *)w->bytes.data, .size = (uint32_t)w->bytes.size,
                                     .n = (uint32_t)n, .dtype = (uint8_t)dtype, .packed = true };
    return tn__feature_copy(&run, to, poll, err);
  }
  if (dtype == TN_FLOAT) *(float *)to = tn__wire_float(w);
  else *(int64_t *)to = tn__wire_int(w);
  return TN_OK;
}

/* Copies the values that `m` measured. */
static tn_status copy_merged(parts p, const merged *m, char *to, tn__poll *poll, tn_error *err)
{
  uint32_t field;
  tn__slice list;
  tn_status st = TN_OK;
  for (int64_t i = 0; st == TN_OK && next_part(&p, &field, &list);) {
    if (field > 3 || tn__feature_dtype(TN__TAG_BYTES(field)) == TN_DTYPE_INVALID || i++ < m->first) continue;
    tn__wire w = tn__wire_read(list);
    while (st == TN_OK && tn__wire_next(&w)) {
      size_t n = values_in(&w, m->dtype);
      if (tn__poll_over(poll, 20)) return TN_CANCELLED;
      if (n > 0) st = copy_values(&w, m->dtype, n, to, poll, err);
      to += n * tn_dtype_size(m->dtype);
    }
  }
  return st;
}

/* ---- features ---- */

/* Checks the type of a feature; `may_be_empty`: it need not have a list. */
static tn_status check_type(const tn__messages *m, uint32_t i, const merged *found, bool may_be_empty)
{
  const tn__feature *f = &m->features->items[i];
  if (found->dtype == f->dtype || (may_be_empty && found->dtype == TN_DTYPE_INVALID)) return TN_OK;
  return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' has %s, wanted values of %s", TN__KEY(m, i),
                      found->dtype == TN_DTYPE_INVALID ? "no values" : tn_dtype_name(found->dtype),
                      tn_dtype_name(f->dtype));
}

/* Checks the values of a dense feature, and copies them. */
static tn_status put_dense(const tn__messages *m, uint32_t i, parts p, char *to, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  const merged found = measure(p, poll);
  tn_status st = check_type(m, i, &found, false);
  if (st == TN_OK && found.n != f->row)
    st = tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' has %lld values, wanted %lld", TN__KEY(m, i),
                      (long long)found.n, (long long)f->row);
  return st == TN_OK ? copy_merged(p, &found, to, poll, m->ctx->err) : st;
}

static tn_status context_dense(const tn__messages *m, uint32_t i, const place *at, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  const tn_view *otherwise = m->ctx->inputs[f->fallback];
  char *to = m->ctx->outputs[f->outputs[0]]->data;
  if (at->there) return put_dense(m, i, parts_of_entry(at->entry), to, poll);
  if (otherwise->count > 0) return tn__copy_elements(f->dtype, to, otherwise->data, f->row, m->ctx->err);
  return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' (%s) is missing in the context, and has no default",
                      TN__KEY(m, i), tn_dtype_name(f->dtype));
}

static tn_status allocate_sparse(const tn__messages *m, const tn__feature *f, int64_t n)
{
  const int64_t dims[2] = { n, 1 + f->list };
  tn_status st = tn_kernel_allocate(m->ctx, f->outputs[0], dims, 2);
  return st == TN_OK ? tn_kernel_allocate(m->ctx, f->outputs[1], dims, 1) : st;
}

static tn_status context_sparse(const tn__messages *m, uint32_t i, const place *at, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  parts p = parts_of_entry(at->entry);
  const merged found = measure(p, poll);
  tn_status st = check_type(m, i, &found, true);
  if (st == TN_OK) st = allocate_sparse(m, f, found.n);
  if (st != TN_OK) return st;
  int64_t *indices = m->ctx->outputs[f->outputs[0]]->data;
  for (int64_t k = 0; k < found.n; k++) indices[k] = k;
  *(int64_t *)m->ctx->outputs[f->outputs[2]]->data = found.n;
  return copy_merged(p, &found, m->ctx->outputs[f->outputs[1]]->data, poll, m->ctx->err);
}

/* The next feature of a list. */
static bool next_row(parts *list, tn__slice *feature)
{
  uint32_t field;
  while (next_part(list, &field, feature))
    if (field == 1) return true;
  return false;
}

static bool may_miss(const tn__messages *m, uint32_t i)
{
  const tn_view *keys = m->ctx->inputs[MAY_MISS];
  for (int64_t k = 0; k < keys->count; k++) {
    tn__slice key;
    key.data = tn_string_data((const tn_string *)keys->data + k, &key.size);
    if (tn__slice_equal(key, m->index.keys[i])) return true;
  }
  return false;
}

static tn_status list_dense(const tn__messages *m, uint32_t i, const place *at, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  tn__slice feature;
  tn__shape s = { 1, { 0 } };
  bool fits = true;
  if (!at->there && !may_miss(m, i))
    return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT,
                        "key '%.*s' is missing in the lists, and is not assumed to be empty", TN__KEY(m, i));
  for (parts list = parts_of_entry(at->entry); next_row(&list, &feature);) s.dims[0]++;
  for (int32_t d = 0; fits && d < f->rank; d++) fits = tn__shape_append(&s, f->dims[d]);
  if (!fits)
    return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "key '%.*s' would have more than %d dimensions",
                        TN__KEY(m, i), TN_MAX_RANK);
  tn_status st = tn_kernel_allocate(m->ctx, f->outputs[0], s.dims, s.rank);
  parts list = parts_of_entry(at->entry);
  for (int64_t row = 0; st == TN_OK && next_row(&list, &feature); row++) {
    char *to = tn__messages_element(m->ctx->outputs[f->outputs[0]], row * f->row);
    st = put_dense(m, i, parts_of_message(feature), to, poll);
    if (st != TN_OK) tn_error_prefix(m->ctx->err, "row %lld", (long long)row);
    else if (tn__poll_over(poll, 50)) return TN_CANCELLED;
  }
  return st;
}

/* Counts the rows of a sparse list, all values, and those of its longest row, for which shape[2] has room. */
static tn_status measure_rows(const tn__messages *m, uint32_t i, parts list, int64_t *shape, int64_t *all,
                              tn__poll *poll)
{
  tn__slice feature;
  tn_status st = TN_OK;
  shape[0] = shape[1] = *all = 0;
  for (; st == TN_OK && next_row(&list, &feature); shape[0]++) {
    const merged found = measure(parts_of_message(feature), poll);
    st = check_type(m, i, &found, true);
    if (st != TN_OK) return tn_error_prefix(m->ctx->err, "row %lld", (long long)shape[0]);
    if (found.n > shape[1]) shape[1] = found.n;
    *all += found.n;
    if (tn__poll_over(poll, 50)) return TN_CANCELLED;
  }
  return st;
}

static tn_status list_sparse(const tn__messages *m, uint32_t i, const place *at, tn__poll *poll)
{
  const tn__feature *f = &m->features->items[i];
  parts list = parts_of_entry(at->entry);
  tn__slice feature;
  int64_t all;
  tn_status st = measure_rows(m, i, list, m->ctx->outputs[f->outputs[2]]->data, &all, poll);
  if (st == TN_OK) st = allocate_sparse(m, f, all);
  if (st != TN_OK) return st;
  int64_t *indices = m->ctx->outputs[f->outputs[0]]->data;
  char *to = m->ctx->outputs[f->outputs[1]]->data;
  for (int64_t row = 0; st == TN_OK && next_row(&list, &feature); row++) {
    const merged found = measure(parts_of_message(feature), poll);
    if (tn__poll_over(poll, 50)) return TN_CANCELLED;
    st = copy_merged(parts_of_message(feature), &found, to, poll, m->ctx->err);
    to += (size_t)found.n * tn_dtype_size(f->dtype);
    for (int64_t k = 0; k < found.n; k++) {
      *indices++ = row;
      *indices++ = k;
    }
  }
  return st;
}

/* ---- compute ---- */

static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn__features *features = ctx->state;
  tn__messages m;
  tn_status st = TN_OK;
  tn__messages_init(&m, ctx, ctx->n_inputs - 1);
  const place *places = m.memory;
  tn__slice message = tn__messages_at(&m, 0);
  tn__poll poll = tn__poll_of(ctx);
  memset(m.memory, 0, features->n * sizeof *places);
  if (message.size > INT32_MAX || !note_message(&m, message, &poll)) {
    if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the %zu bytes are not a tf.SequenceExample", message.size);
  }
  for (uint32_t i = 0; st == TN_OK && i < features->n; i++) {
    const tn__feature *f = &features->items[i];
    const place *at = &places[m.index.first[i]];
    if (f->kind == TN__FEATURE_DENSE)
      st = f->list ? list_dense(&m, i, at, &poll) : context_dense(&m, i, at, &poll);
    else
      st = f->list ? list_sparse(&m, i, at, &poll) : context_sparse(&m, i, at, &poll);
  }
  if (st != TN_OK && tn_kernel_cancelled(ctx)) return TN_CANCELLED;
  return st == TN_OK ? st : tn__messages_error(&m, 0);
}

/* ---- tables ---- */

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape message;
  tn_status st = tn__infer_rank(ctx, 0, 0, &message, err);
  for (size_t i = 0; st == TN_OK && i < N_GROUPS; i++) st = tn__features_infer(ctx, &groups[i], &message, err);
  return st;
}

#define VALUE_TYPES "list({float, int64, string}) >= 0 = []"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "ParseSingleSequenceExample",
    .inputs = "serialized: string, feature_list_dense_missing_assumed_empty: string, "
              "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, "
              "feature_list_sparse_keys: Nfeature_list_sparse * string, "
              "feature_list_dense_keys: Nfeature_list_dense * string, context_dense_defaults: Tcontext_dense, "
              "debug_name: string",
    .outputs = "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "
               "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "
               "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
               "feature_list_sparse_values: feature_list_sparse_types, "
               "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
               "feature_list_dense_values: feature_list_dense_types",
    .attrs = "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; Nfeature_list_sparse: int >= 0 = 0; "
             "Nfeature_list_dense: int >= 0 = 0; context_sparse_types: " VALUE_TYPES "; Tcontext_dense: " VALUE_TYPES
             "; feature_list_dense_types: " VALUE_TYPES "; context_dense_shapes: list(shape) >= 0 = []; "
             "feature_list_sparse_types: " VALUE_TYPES "; feature_list_dense_shapes: list(shape) >= 0 = []",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer, .summary = "features of one serialized tf.SequenceExample" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("ParseSingleSequenceExample", "parse_single_sequence_example_cpu", create, destroy, prepare, compute),
};

TN_OP_FAMILY(example_sequence_single)
