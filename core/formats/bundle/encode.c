/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the index of a bundle: the header under the key "", then the entries in the order of their keys. As in
 * TensorFlow, numbers that are 0 are left out. */
#include <core/formats/bundle/bundle.h>

#include <stdlib.h>
#include <string.h>

#include <core/formats/sink.h>
#include <core/formats/table/table.h>
#include <core/formats/wire.h>

static void put_number(tn__sink *s, uint32_t field, int64_t value)
{
  if (value != 0) tn__sink_int(s, field, (uint64_t)value);
}

static void put_shape(tn__sink *s, const tn__bundle_entry *e)
{
  tn__sink_tag(s, TN__ENTRY_SHAPE, TN__WIRE_BYTES);
  size_t shape = tn__sink_begin(s);
  for (int32_t d = 0; d < e->rank; d++) {
    tn__sink_tag(s, TN__SHAPE_DIM, TN__WIRE_BYTES);
    size_t dim = tn__sink_begin(s);
    put_number(s, TN__DIM_SIZE, e->dims[d]);
    tn__sink_end(s, dim);
  }
  tn__sink_end(s, shape);
}

/* The extent of a whole dimension is empty; else it has a length even if that is 0. */
static void put_slice(tn__sink *s, const tn__region *slice)
{
  tn__sink_tag(s, TN__ENTRY_SLICES, TN__WIRE_BYTES);
  size_t place = tn__sink_begin(s);
  for (int32_t d = 0; d < slice->rank; d++) {
    tn__sink_tag(s, TN__SLICE_EXTENT, TN__WIRE_BYTES);
    size_t extent = tn__sink_begin(s);
    put_number(s, TN__EXTENT_START, slice->starts[d]);
    if (slice->lengths[d] != -1) tn__sink_int(s, TN__EXTENT_LENGTH, (uint64_t)slice->lengths[d]);
    tn__sink_end(s, extent);
  }
  tn__sink_end(s, place);
}

static void put_entry(tn__sink *s, const tn__bundle_entry *e)
{
  put_number(s, TN__ENTRY_DTYPE, e->dtype);
  put_shape(s, e);
  put_number(s, TN__ENTRY_SHARD, e->shard);
  put_number(s, TN__ENTRY_OFFSET, (int64_t)e->offset);
  put_number(s, TN__ENTRY_SIZE, (int64_t)e->size);
  if (e->crc != 0) {
    tn__sink_tag(s, TN__ENTRY_CRC, TN__WIRE_FIXED32);
    tn__sink_put(s, &e->crc, sizeof(e->crc)); /* little-endian, like the machine */
  }
  for (size_t i = 0; i < e->n_slices; i++) put_slice(s, &e->slices[i]);
}

static void put_header(tn__sink *s, uint32_t shards)
{
  put_number(s, TN__HEADER_SHARDS, shards);
  tn__sink_tag(s, TN__HEADER_VERSION, TN__WIRE_BYTES);
  size_t version = tn__sink_begin(s);
  put_number(s, TN__VERSION_PRODUCER, TN__BUNDLE_VERSION);
  tn__sink_end(s, version);
}

static int compare(const void *a, const void *b)
{
  const tn__slice *x = &(*(tn__bundle_entry *const *)a)->key, *y = &(*(tn__bundle_entry *const *)b)->key;
  int order = memcmp(x->data, y->data, x->size < y->size ? x->size : y->size);
  return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static tn_status put_entries(tn__table_writer *table, tn__bundle_entry *const *entries, size_t n, uint32_t shards,
                             tn_error *err)
{
  tn__sink sink = tn__sink_memory(err);
  put_header(&sink, shards);
  tn_status s = sink.status;
  if (s == TN_OK) s = tn__table_writer_add(table, (tn__slice){ "", 0 }, (tn__slice){ sink.data, sink.used }, err);
  for (size_t i = 0; i < n && s == TN_OK; i++) {
    sink.used = 0;
    put_entry(&sink, entries[i]);
    s = sink.status;
    if (s == TN_OK) s = tn__table_writer_add(table, entries[i]->key, (tn__slice){ sink.data, sink.used }, err);
  }
  tn__sink_fini(&sink);
  return s;
}

tn_status tn__bundle_index_write(tn__writer *file, tn__bundle_entry **entries, size_t n, uint32_t shards, tn_error *err)
{
  tn__table_writer *table = NULL;
  tn_status s = tn__table_writer_create(file, &table, err);
  if (s != TN_OK) return s;
  if (n > 0) qsort(entries, n, sizeof(*entries), compare);
  s = put_entries(table, entries, n, shards, err);
  if (s == TN_OK) s = tn__table_writer_finish(table, err);
  tn__table_writer_destroy(table);
  return s;
}
