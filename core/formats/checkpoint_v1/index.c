/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of a checkpoint (V1) and makes its entries: tensors from the lists of the tables (meta), their parts
 * from the entries of slices. A slice that a list has and the table has not is missing when the tensor is read. */
#include <core/formats/checkpoint_v1/v1.h>
#include <core/formats/graphdef/graphdef.h>
#include <core/formats/graphdef/tensor_values.h>
#include <core/formats/table/crc32c.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A slice that was found. */
typedef struct found {
  tn__stored *tensor;
  tn__stored_part part;
} found;

struct tn__v1_index {
  tn__store *store;
  tn__v1 *own;
  tn__map by_name;      /* key -> tn__stored */
  tn__stored **tensors; /* in the store's arena; until finish, n_parts counts their slices */
  size_t n, capacity;
  found *slices;
  size_t n_slices, slices_capacity;
  /* Of the table that is read: */
  tn__table *table;
  uint32_t number;
};

tn_status tn__v1_index_create(tn__store *store, tn__v1_index **out, tn_error *err)
{
  tn__v1_index *x = tn__zalloc(sizeof *x);
  if (x == NULL) return tn__no_memory(err, "the index of a checkpoint", sizeof *x);
  x->store = store;
  x->own = store->own;
  tn__map_init(&x->by_name);
  *out = x;
  return TN_OK;
}

void tn__v1_index_destroy(tn__v1_index *x)
{
  if (x == NULL) return;
  tn__table_close(x->table);
  tn__free(x->slices, x->slices_capacity * sizeof *x->slices);
  tn__free(x->tensors, x->capacity * sizeof *x->tensors);
  tn__map_fini(&x->by_name);
  tn__free(x, sizeof *x);
}

/* ---- errors ---- */

/* "'FILE': byte N: ...", with the block of the current entry. */
static tn_status damaged(const tn__v1_index *x, tn_error *err, const char *format, ...) TN_PRINTF(3, 4);
static tn_status damaged(const tn__v1_index *x, tn_error *err, const char *format, ...)
{
  char text[400];
  va_list args;
  va_start(args, format);
  tn__vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tn_error_set(err, TN_DATA_LOSS, "'%s': byte %" PRIu64 ": %s", x->own->files[x->number].path,
                      tn__table_offset(x->table), text);
}

static int shown(size_t size) { return size < 200 ? (int)size : 200; }

/* ---- the list of tensors ---- */

/* Whether a number of the field bad_consumers, or a packed run of them, is our version. */
static bool is_bad(const tn__wire *w)
{
  if (w->type == TN__WIRE_VARINT) return w->value == TN__V1_VERSION;
  if (w->type != TN__WIRE_BYTES) return false;
  const uint8_t *p = (const uint8_t *)w->bytes.data, *end = p + w->bytes.size;
  uint64_t value = 0;
  bool bad = false;
  while (!bad && tn__wire_varint(&p, end, &value)) bad = value == TN__V1_VERSION;
  return bad;
}

static tn_status check_versions(const tn__v1_index *x, tn__slice message, tn_error *err)
{
  uint64_t min_consumer = 0;
  bool bad = false;
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__V1_MIN_CONSUMER, TN__WIRE_VARINT)) min_consumer = w.value;
    if (w.field == TN__V1_BAD_CONSUMER) bad = bad || is_bad(&w);
  }
  if (w.error != NULL) return damaged(x, err, "the version of the checkpoint is malformed: %s", w.error);
  if (bad)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' says that readers of version %d of the format cannot read it",
                        x->own->files[x->number].path, TN__V1_VERSION);
  if (min_consumer <= TN__V1_VERSION) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "'%s' needs a reader of version %" PRIu64 " of the format, this one has version %d",
                      x->own->files[x->number].path, min_consumer, TN__V1_VERSION);
}

/* Sets name, dtype and shape. */
static tn_status parse_tensor(const tn__v1_index *x, tn__slice message, tn__stored *t, tn_error *err)
{
  tn__slice name = { "", 0 }, shape_proto = { "", 0 };
  tn__fault fault;
  tn__shape shape = { NULL, 0 };
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__V1_TENSOR_NAME, TN__WIRE_BYTES)) name = w.bytes;
    if (tn__wire_is(&w, TN__V1_TENSOR_SHAPE, TN__WIRE_BYTES)) shape_proto = w.bytes;
    if (tn__wire_is(&w, TN__V1_TENSOR_DTYPE, TN__WIRE_VARINT))
      t->dtype = w.value < INT32_MAX ? (tn_dtype)w.value : TN_DTYPE_INVALID;
  }
  if (w.error != NULL) return damaged(x, err, "a tensor of the list is malformed: %s", w.error);
  if (!tn__shapeproto_check(shape_proto, &fault))
    return damaged(x, err, "the shape of tensor '%.*s' is malformed: %s", shown(name.size), name.data, fault.what);
  if (!tn__dtype_valid(t->dtype) || tn__dtype_is_ref(t->dtype))
    return damaged(x, err, "tensor '%.*s' has the type number %d, which is no type", shown(name.size), name.data,
                   (int)t->dtype);
  if (name.size == 0) return damaged(x, err, "a tensor of the list has no name");
  tn_status st = tn__shapeproto_decode(shape_proto, &x->store->arena, &shape, NULL);
  if (st == TN_RESOURCE_EXHAUSTED) return tn__no_memory(err, "a shape", TN_MAX_RANK * sizeof(int64_t));
  char text[128];
  if (st != TN_OK || shape.rank < 0 || tn_shape_elements(shape.dims, shape.rank, &t->elements, NULL) != TN_OK ||
      tn_shape_bytes(t->dtype, shape.dims, shape.rank, NULL, NULL) != TN_OK)
    return damaged(x, err, "tensor '%.*s' of %s has the shape %s, which no tensor can have", shown(name.size),
                   name.data, tn_dtype_name(t->dtype), tn__format_shape(text, sizeof text, shape.dims, shape.rank));
  t->rank = shape.rank;
  t->dims = shape.dims;
  t->key_size = name.size;
  t->key = tn__arena_string(&x->store->arena, name.data, name.size);
  return t->key != NULL ? TN_OK : tn__no_memory(err, "a key", name.size + 1);
}

/* Shards that have slices of the same tensor must agree about it. */
static tn_status check_same(const tn__v1_index *x, const tn__stored *known, const tn__stored *t, tn_error *err)
{
  if (known->dtype == t->dtype && known->rank == t->rank &&
      (t->rank == 0 || memcmp(known->dims, t->dims, (size_t)t->rank * sizeof *t->dims) == 0))
    return TN_OK;
  char a[128], b[128];
  return damaged(x, err, "tensor '%.*s' is %s %s here, and %s %s before", shown(t->key_size), t->key,
                 tn_dtype_name(t->dtype), tn__format_shape(a, sizeof a, t->dims, t->rank), tn_dtype_name(known->dtype),
                 tn__format_shape(b, sizeof b, known->dims, known->rank));
}

static tn_status add_tensor(tn__v1_index *x, tn__slice message, tn_error *err)
{
  tn__stored *t = tn__arena_zalloc(&x->store->arena, sizeof *t);
  if (t == NULL) return tn__no_memory(err, "a tensor of a checkpoint", sizeof *t);
  tn_status st = parse_tensor(x, message, t, err);
  if (st != TN_OK) return st;
  const tn__stored *known = tn__map_get(&x->by_name, t->key, t->key_size);
  if (known != NULL) return check_same(x, known, t, err);
  if (!tn__grow((void **)&x->tensors, &x->capacity, x->n + 1, sizeof *x->tensors) ||
      !tn__map_put(&x->by_name, t->key, t->key_size, t, NULL))
    return tn__no_memory(err, "the tensors of a checkpoint", (x->n + 1) * sizeof *x->tensors);
  x->tensors[x->n++] = t;
  return TN_OK;
}

/* The value of the empty key. */
static tn_status read_list(tn__v1_index *x, tn__slice value, tn_error *err)
{
  tn_status st = TN_OK;
  tn__slice meta = { NULL, 0 };
  tn__wire w = tn__wire_read(value);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, TN__V1_META, TN__WIRE_BYTES)) meta = w.bytes;
  if (w.error != NULL) return damaged(x, err, "the list of tensors is malformed: %s", w.error);
  if (meta.data == NULL) return damaged(x, err, "the table has no list of tensors: it is no checkpoint (V1)");
  w = tn__wire_read(meta);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__V1_META_TENSOR, TN__WIRE_BYTES)) st = add_tensor(x, w.bytes, err);
    if (tn__wire_is(&w, TN__V1_META_VERSIONS, TN__WIRE_BYTES)) st = check_versions(x, w.bytes, err);
  }
  return st == TN_OK && w.error != NULL ? damaged(x, err, "the list of tensors is malformed: %s", w.error) : st;
}

/* ---- slices ---- */

/* Parses a key. A failure may be one of memory; then it is repeated once, and the arena tells. */
static tn_status parse_key(tn__v1_index *x, tn__slice key, tn__slice *name, tn__region *region, tn_error *err)
{
  tn__arena *arena = &x->store->arena;
  if (tn__slice_key_parse(key, arena, name, region)) return TN_OK;
  size_t room = key.size + 2 * TN_MAX_RANK * sizeof(int64_t);
  if (tn__arena_alloc(arena, room) == NULL) return tn__no_memory(err, "the key of a slice", room);
  if (tn__slice_key_parse(key, arena, name, region)) return TN_OK;
  return damaged(x, err, "a key of %zu bytes is not that of a slice", key.size);
}

/* Checks that a value has the elements of its slice. *values is its TensorProto. */
static tn_status check_value(const tn__v1_index *x, const tn__stored *t, const tn__region *region, tn__slice value,
                             tn__slice *values, tn_error *err)
{
  tn__slice slice = { NULL, 0 }, name = { "", 0 };
  uint64_t elements = 0, wanted = (uint64_t)tn__region_elements(region);
  *values = (tn__slice){ "", 0 };
  tn__wire w = tn__wire_read(value);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, TN__V1_DATA, TN__WIRE_BYTES)) slice = w.bytes;
  if (w.error == NULL) w = tn__wire_read(slice);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__V1_SLICE_NAME, TN__WIRE_BYTES)) name = w.bytes;
    if (tn__wire_is(&w, TN__V1_SLICE_DATA, TN__WIRE_BYTES)) *values = w.bytes;
  }
  if (w.error != NULL)
    return damaged(x, err, "a slice of tensor '%.*s' is malformed: %s", shown(t->key_size), t->key, w.error);
  if (!tn__slice_equal(name, (tn__slice){ t->key, t->key_size }))
    return damaged(x, err, "a slice of tensor '%.*s' says that it is one of '%.*s'", shown(t->key_size), t->key,
                   shown(name.size), name.data);
  if (!tn__values_elements(*values, t->dtype, &elements))
    return damaged(x, err, "the elements of a slice of tensor '%.*s' are no elements of %s", shown(t->key_size), t->key,
                   tn_dtype_name(t->dtype));
  if (elements != wanted)
    return damaged(x, err, "a slice of tensor '%.*s' has %" PRIu64 " elements, wanted %" PRIu64, shown(t->key_size),
                   t->key, elements, wanted);
  return TN_OK;
}

/* Notes where the elements are. */
static tn_status add_place(tn__v1_index *x, const tn__stored *t, tn__slice value, tn__slice values, tn_error *err)
{
  tn__v1 *own = x->own;
  tn__table_place place = tn__table_place_of(x->table);
  tn__slice bytes = value, run;
  bool plain = !place.packed && tn__values_run(values, t->dtype, &run);
  if (plain) bytes = run;
  if (!tn__grow((void **)&own->places, &own->places_capacity, own->n_places + 1, sizeof *own->places))
    return tn__no_memory(err, "the slices of a checkpoint", (own->n_places + 1) * sizeof *own->places);
  uint64_t at = place.at + (uint64_t)(bytes.data - value.data);
  own->places[own->n_places++] = (tn__v1_place){ .block = { place.block, place.block_size },
                                                 .at = plain ? place.block + at : at,
                                                 .size = bytes.size,
                                                 .crc = tn__crc32c(0, bytes.data, bytes.size),
                                                 .plain = plain };
  return TN_OK;
}

static tn_status add_slice(tn__v1_index *x, tn__slice key, tn__slice value, tn_error *err)
{
  tn__slice name, values;
  tn__region region;
  tn_status st = parse_key(x, key, &name, &region, err);
  if (st != TN_OK) return st;
  tn__stored *t = tn__map_get(&x->by_name, name.data, name.size);
  if (t == NULL)
    return damaged(x, err, "there is a slice of tensor '%.*s', which is not in the list of tensors", shown(name.size),
                   name.data);
  if (tn__region_resolve(&region, t->rank, t->dims, NULL) != TN_OK) {
    char shape[128];
    return damaged(x, err, "a slice of tensor '%.*s' does not lie within its shape %s", shown(name.size), name.data,
                   tn__format_shape(shape, sizeof shape, t->dims, t->rank));
  }
  st = check_value(x, t, &region, value, &values, err);
  if (st == TN_OK) st = add_place(x, t, value, values, err);
  if (st != TN_OK) return st;
  if (!tn__grow((void **)&x->slices, &x->slices_capacity, x->n_slices + 1, sizeof *x->slices))
    return tn__no_memory(err, "the slices of a checkpoint", (x->n_slices + 1) * sizeof *x->slices);
  /* The product is at most the tensor's bytes, which parse_tensor has checked. */
  uint64_t bytes =
      t->dtype == TN_STRING ? values.size : (uint64_t)tn__region_elements(&region) * tn_dtype_size(t->dtype);
  t->n_parts++;
  t->bytes += bytes;
  x->slices[x->n_slices++] =
      (found){ t, { .region = region, .offset = x->own->n_places - 1, .size = bytes, .file = x->number } };
  return TN_OK;
}

/* ---- the table ---- */

static tn_status read_entries(tn__v1_index *x, tn_error *err)
{
  tn__slice key, value;
  tn_status st = tn__table_next(x->table, &key, &value, err);
  if (st != TN_OK) return st;
  if (key.data == NULL || key.size != 0)
    return damaged(x, err, "the table has no list of tensors: it is no checkpoint (V1)");
  st = read_list(x, value, err);
  while (st == TN_OK) {
    st = tn__table_next(x->table, &key, &value, err);
    if (st != TN_OK || key.data == NULL) break;
    st = add_slice(x, key, value, err);
  }
  return st;
}

tn_status tn__v1_index_add(tn__v1_index *x, uint32_t number, tn_error *err)
{
  x->number = number;
  tn_status st = tn__table_open(x->own->files[number].path, &x->table, err);
  if (st == TN_OK) st = read_entries(x, err);
  tn__table_close(x->table);
  x->table = NULL;
  return st;
}

/* ---- the entries ---- */

static int compare_keys(const void *a, const void *b)
{
  const tn__stored *x = *(tn__stored *const *)a, *y = *(tn__stored *const *)b;
  int order = memcmp(x->key, y->key, x->key_size < y->key_size ? x->key_size : y->key_size);
  return order != 0 ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

/* Gives each tensor its slices. */
static tn_status set_parts(tn__v1_index *x, tn_error *err)
{
  for (size_t i = 0; i < x->n; i++) {
    tn__stored *t = x->tensors[i];
    t->parts = tn__arena_array(&x->store->arena, t->n_parts, sizeof *t->parts);
    if (t->parts == NULL) return tn__no_memory(err, "the slices of a tensor", t->n_parts * sizeof *t->parts);
    t->n_parts = 0;
  }
  for (size_t i = 0; i < x->n_slices; i++) {
    tn__stored *t = x->slices[i].tensor;
    t->parts[t->n_parts++] = x->slices[i].part;
  }
  for (size_t i = 0; i < x->n; i++) {
    tn__stored *t = x->tensors[i];
    t->sliced = t->n_parts != 1 || !tn__region_is_all(&t->parts[0].region, t->dims);
  }
  return TN_OK;
}

tn_status tn__v1_index_finish(tn__v1_index *x, tn_error *err)
{
  tn_status st = set_parts(x, err);
  if (st != TN_OK) return st;
  tn__stored *entries = tn__arena_array(&x->store->arena, x->n, sizeof *entries);
  if (entries == NULL) return tn__no_memory(err, "the tensors of a checkpoint", x->n * sizeof *entries);
  if (x->n > 1) qsort(x->tensors, x->n, sizeof *x->tensors, compare_keys);
  for (size_t i = 0; i < x->n; i++) entries[i] = *x->tensors[i];
  x->store->entries = entries;
  x->store->n = x->n;
  return TN_OK;
}
