/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/example/features.h>

#include <string.h>
#include <tenon/tensor.h>

/* ---- the node ---- */

void tn__features_destroy(tn__features *features)
{
  if (features != NULL) tn__free(features, sizeof *features + features->n * sizeof *features->items);
}

static tn_status bad_count(const tn_operation *op, const tn__feature_group *g, const char *what, size_t n,
                           size_t wanted, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: '%s' has %zu items, but '%s' has %zu", tn_operation_type(op), what,
                      n, g->types, wanted);
}

static tn_status read_key(const tn_operation *op, const tn__feature_group *g, uint32_t i, size_t n, tn__feature *f,
                          tn_error *err)
{
  size_t first, have;
  tn_status st;
  f->how = g->how;
  if (g->how == TN__KEYS_ATTR) {
    st = tn_operation_attr_string_at(op, g->keys, i, &f->key.data, &f->key.size, &have, err);
    return st == TN_OK && have != n ? bad_count(op, g, g->keys, have, n, err) : st;
  }
  st = tn_operation_input_range(op, g->keys, &first, &have, err);
  if (st != TN_OK) return st;
  if (g->how == TN__KEYS_LIST && have != n) return bad_count(op, g, g->keys, have, n, err);
  f->key_input = (uint32_t)first + (g->how == TN__KEYS_LIST ? i : 0);
  f->key_at = g->how == TN__KEYS_LIST ? 0 : i;
  return TN_OK;
}

/* The shape of dense values. Its elements are counted without a variable dimension. */
static tn_status read_shape(const tn_operation *op, const tn__feature_group *g, uint32_t i, size_t n, tn__feature *f,
                            tn_error *err)
{
  size_t have;
  char text[160];
  tn_status st = tn_operation_attr_shape_at(op, g->shapes, i, &f->dims, &f->rank, &have, err);
  if (st != TN_OK) return st;
  if (have != n) return bad_count(op, g, g->shapes, have, n, err);
  bool variable = g->variable && f->rank > 0 && f->dims[0] < 0;
  const int64_t *inner = variable ? f->dims + 1 : f->dims;
  if (f->rank < 0 || !tn__shape_is_known(inner, f->rank - variable))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: shape %u of '%s' is %s, which is not known",
                        tn_operation_type(op), i, g->shapes, tn__format_shape(text, sizeof text, f->dims, f->rank));
  if (variable) f->kind = TN__FEATURE_VARIABLE;
  return tn_shape_elements(inner, f->rank - variable, &f->row, err);
}

static tn_status read_outputs(const tn_operation *op, const tn__feature_group *g, uint32_t i, size_t n, tn__feature *f,
                              tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t k = 0; st == TN_OK && k < 3 && g->outputs[k] != NULL; k++) {
    size_t first, have;
    st = tn_operation_output_range(op, g->outputs[k], &first, &have, err);
    if (st == TN_OK && have != n) st = bad_count(op, g, g->outputs[k], have, n, err);
    if (st == TN_OK) f->outputs[k] = (uint32_t)first + i;
  }
  return st;
}

static tn_status read_default(const tn_operation *op, const tn__feature_group *g, uint32_t i, size_t n, tn__feature *f,
                              tn_error *err)
{
  size_t first, have;
  f->fallback = UINT32_MAX;
  if (g->defaults == NULL) return TN_OK;
  tn_status st = tn_operation_input_range(op, g->defaults, &first, &have, err);
  if (st != TN_OK) return st;
  f->fallback = (uint32_t)first + i;
  return have == n ? TN_OK : bad_count(op, g, g->defaults, have, n, err);
}

static tn_status read_splits(const tn_operation *op, const tn__feature_group *g, uint32_t i, size_t n, tn__feature *f,
                             tn_error *err)
{
  const tn_dtype *types = NULL;
  size_t have = 0;
  tn_status st = tn_operation_attr_types(op, g->splits, &types, &have, err);
  if (st != TN_OK) return st;
  if (have != n) return bad_count(op, g, g->splits, have, n, err);
  f->splits = types[i];
  return TN_OK;
}

static tn_status read_feature(const tn_operation *op, const tn__feature_group *g, uint32_t i, size_t n, tn__feature *f,
                              tn_error *err)
{
  f->kind = g->kind;
  f->list = g->list;
  f->row = 1;
  tn_status st = read_key(op, g, i, n, f, err);
  if (st == TN_OK) st = read_outputs(op, g, i, n, f, err);
  if (st == TN_OK) st = read_default(op, g, i, n, f, err);
  if (st == TN_OK && g->shapes != NULL) st = read_shape(op, g, i, n, f, err);
  if (st == TN_OK && g->splits != NULL) st = read_splits(op, g, i, n, f, err);
  return st;
}

/* A group without features may still have lists that are too long. */
static tn_status check_empty(const tn_operation *op, const tn__feature_group *g, tn_error *err)
{
  size_t first, have = 0;
  tn__slice key;
  const int64_t *dims;
  int32_t rank;
  tn_status st = TN_OK;
  if (g->how == TN__KEYS_ATTR) st = tn_operation_attr_string_at(op, g->keys, 0, &key.data, &key.size, &have, err);
  else if (g->how == TN__KEYS_LIST) st = tn_operation_input_range(op, g->keys, &first, &have, err);
  if (st == TN_OK && have > 0) return bad_count(op, g, g->keys, have, 0, err);
  if (st == TN_OK && g->shapes != NULL) st = tn_operation_attr_shape_at(op, g->shapes, 0, &dims, &rank, &have, err);
  return st == TN_OK && have > 0 ? bad_count(op, g, g->shapes, have, 0, err) : st;
}

static tn_status read_group(const tn_operation *op, const tn__feature_group *g, tn__features *to, uint32_t *at,
                            tn_error *err)
{
  const tn_dtype *types = NULL;
  size_t n = 0;
  tn_status st = tn_operation_attr_types(op, g->types, &types, &n, err);
  if (st == TN_OK && n == 0) return check_empty(op, g, err);
  for (uint32_t i = 0; st == TN_OK && i < n; i++, (*at)++) {
    to->items[*at].dtype = types[i];
    st = read_feature(op, g, i, n, &to->items[*at], err);
  }
  return st;
}

tn_status tn__features_create(const tn_operation *op, const tn__feature_group *groups, size_t n_groups,
                              tn__features **out, tn_error *err)
{
  const tn_dtype *types;
  size_t n = 0, all = 0, bytes;
  uint32_t at = 0;
  tn_status st = TN_OK;
  *out = NULL;
  for (size_t i = 0; st == TN_OK && i < n_groups; i++) {
    st = tn_operation_attr_types(op, groups[i].types, &types, &n, err);
    if (st == TN_OK) all += n;
  }
  if (st != TN_OK) return st;
  if (all >= INT32_MAX || !tn__size_mul(all, sizeof(tn__feature), &bytes))
    return tn__no_memory(err, "kernel", SIZE_MAX);
  tn__features *features = tn__zalloc(sizeof *features + bytes);
  if (features == NULL) return tn__no_memory(err, "kernel", sizeof *features + bytes);
  features->groups = groups;
  features->n_groups = n_groups;
  features->n = (uint32_t)all;
  for (size_t i = 0; st == TN_OK && i < n_groups; i++) st = read_group(op, &groups[i], features, &at, err);
  if (st == TN_OK) *out = features;
  else tn__features_destroy(features);
  return st;
}

/* ---- shapes of inputs ---- */

static tn_status check_group(const tn_prepare_ctx *ctx, const tn__feature_group *g, tn_error *err)
{
  const tn_dtype *types;
  size_t first = 0, have = 0, n = 0;
  tn_status st = tn_operation_input_range(ctx->op, g->keys, &first, &have, err);
  if (st == TN_OK) st = tn_operation_attr_types(ctx->op, g->types, &types, &n, err);
  for (size_t i = first; st == TN_OK && i < first + have; i++) {
    size_t wanted = g->how == TN__KEYS_LIST ? 1 : n;
    if (ctx->inputs[i].count != (int64_t)wanted)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %zu, '%s', has %lld elements, wanted %zu",
                        tn_operation_type(ctx->op), i, g->keys, (long long)ctx->inputs[i].count, wanted);
  }
  return st;
}

tn_status tn__features_check_keys(const tn_prepare_ctx *ctx, const tn__features *features, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < features->n_groups; i++)
    if (features->groups[i].how != TN__KEYS_ATTR) st = check_group(ctx, &features->groups[i], err);
  return st;
}

tn_status tn__features_check_default(const tn_prepare_ctx *ctx, const tn__feature *f, tn_error *err)
{
  if (f->fallback == UINT32_MAX) return TN_OK;
  const tn_view *v = &ctx->inputs[f->fallback];
  char found[160], wanted[160];
  bool fits = f->kind == TN__FEATURE_VARIABLE ? v->count == 1 : v->count == 0;
  if (!fits && f->kind == TN__FEATURE_DENSE) {
    fits = v->rank == f->rank;
    for (int32_t d = 0; fits && d < f->rank; d++) fits = v->dims[d] == f->dims[d];
  }
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u, a default, has shape %s, wanted %s%s",
                      tn_operation_type(ctx->op), f->fallback, tn__format_shape(found, sizeof found, v->dims, v->rank),
                      f->kind == TN__FEATURE_VARIABLE ? "one element for " : "",
                      tn__format_shape(wanted, sizeof wanted, f->dims, f->rank));
}

/* ---- shapes of outputs ---- */

static tn_status infer_outputs(tn_infer_ctx *ctx, const char *name, const tn__shape *s, tn_error *err)
{
  size_t first, n;
  tn_status st = tn_operation_output_range(tn_infer_operation(ctx), name, &first, &n, err);
  for (size_t i = 0; st == TN_OK && i < n; i++) st = tn__infer_set(ctx, first + i, s, err);
  return st;
}

static tn_status infer_sparse(tn_infer_ctx *ctx, const tn__feature_group *g, int64_t columns, tn_error *err)
{
  const tn__shape indices = { 2, { -1, columns } }, values = { 1, { -1 } }, shape = { 1, { columns } };
  tn_status st = infer_outputs(ctx, g->outputs[0], &indices, err);
  if (st == TN_OK) st = infer_outputs(ctx, g->outputs[1], &values, err);
  return st == TN_OK ? infer_outputs(ctx, g->outputs[2], &shape, err) : st;
}

/* The row splits of a single message depend on the op. */
static tn_status infer_ragged(tn_infer_ctx *ctx, const tn__feature_group *g, const tn__shape *batch, tn_error *err)
{
  const tn__shape any = { 1, { -1 } };
  tn__shape splits = { -1, { -1 } };
  if (batch->rank == 1) splits = (tn__shape){ 1, { batch->dims[0] < 0 ? -1 : batch->dims[0] + 1 } };
  tn_status st = infer_outputs(ctx, g->outputs[0], &any, err);
  if (st == TN_OK) st = infer_outputs(ctx, g->outputs[1], &splits, err);
  return st == TN_OK && g->outputs[2] != NULL ? infer_outputs(ctx, g->outputs[2], &any, err) : st;
}

static tn_status infer_dense(tn_infer_ctx *ctx, const tn__feature_group *g, const tn__shape *batch, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  size_t first, n, have;
  tn_status st = tn_operation_output_range(op, g->outputs[0], &first, &n, err);
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    const int64_t *dims;
    int32_t rank;
    tn__shape s = *batch;
    st = tn_operation_attr_shape_at(op, g->shapes, i, &dims, &rank, &have, err);
    if (st != TN_OK) return st;
    if (g->list && !tn__shape_append(&s, -1)) s.rank = -1;
    if (i >= have || rank < 0) s.rank = -1;
    for (int32_t d = 0; s.rank >= 0 && d < rank; d++)
      if (!tn__shape_append(&s, dims[d])) s.rank = -1;
    st = tn__infer_set(ctx, first + i, &s, err);
  }
  return st == TN_OK && g->outputs[1] != NULL ? infer_outputs(ctx, g->outputs[1], batch, err) : st;
}

tn_status tn__features_infer(tn_infer_ctx *ctx, const tn__feature_group *group, const tn__shape *batch, tn_error *err)
{
  switch (group->kind) {
  case TN__FEATURE_SPARSE:
    return infer_sparse(ctx, group, batch->rank < 0 ? -1 : batch->rank + 1 + group->list, err);
  case TN__FEATURE_RAGGED: return infer_ragged(ctx, group, batch, err);
  default: return infer_dense(ctx, group, batch, err);
  }
}

/* ---- keys ---- */

static uint64_t slot_count(uint32_t n)
{
  uint64_t slots = 8;
  while (slots < (uint64_t)n * 2) slots *= 2;
  return slots;
}

size_t tn__key_index_bytes(uint32_t n)
{
  return n * (sizeof(tn__slice) + sizeof(uint32_t)) + slot_count(n) * sizeof(uint32_t);
}

static inline uint64_t mix(uint64_t h, uint64_t v)
{
  h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 32;
}

static uint64_t hash_key(tn__slice key, bool list)
{
  uint64_t h = key.size * 2 + list, v = 0;
  const char *at = key.data;
  size_t n = key.size;
  for (; n >= sizeof v; n -= sizeof v, at += sizeof v) {
    memcpy(&v, at, sizeof v);
    h = mix(h, v);
  }
  v = 0;
  if (n > 0) memcpy(&v, at, n);
  return mix(h, v);
}

/* The slot of a key, or the empty one where it belongs. */
static uint32_t *find_slot(const tn__key_index *index, tn__slice key, bool list)
{
  uint64_t at = hash_key(key, list) & index->mask;
  for (;; at = (at + 1) & index->mask) {
    uint32_t i = index->slots[at];
    if (i == TN__NO_KEY) break;
    if (index->features->items[i].list == list && tn__slice_equal(index->keys[i], key)) break;
  }
  return &index->slots[at];
}

void tn__key_index_init(tn__key_index *index, void *memory, const tn__features *features, tn_view *const *inputs)
{
  tn__slice *keys = memory;
  uint64_t slots = slot_count(features->n);
  index->features = features;
  index->keys = keys;
  index->first = (uint32_t *)(keys + features->n);
  index->slots = index->first + features->n;
  index->mask = slots - 1;
  memset(index->slots, 0xff, slots * sizeof *index->slots);
  for (uint32_t i = 0; i < features->n; i++) {
    const tn__feature *f = &features->items[i];
    keys[i] = f->key;
    if (f->how != TN__KEYS_ATTR)
      keys[i].data = tn_string_data((const tn_string *)inputs[f->key_input]->data + f->key_at, &keys[i].size);
    uint32_t *slot = find_slot(index, keys[i], f->list);
    if (*slot == TN__NO_KEY) *slot = i;
    index->first[i] = *slot;
  }
}

uint32_t tn__key_index_find(const tn__key_index *index, tn__slice key, bool list)
{
  return *find_slot(index, key, list);
}
