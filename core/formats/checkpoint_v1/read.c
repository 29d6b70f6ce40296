/* SPDX-License-Identifier: Apache-2.0 */
/* Reads slices of a checkpoint (V1).
 *
 * Numbers that the file has as in memory are read into place, by any number of threads. For others (packed blocks,
 * numbers in varints, strings) the block is loaded again. The last such block is kept, under a lock, because a block
 * has many small slices; a large one is freed at once. */
#include <core/formats/checkpoint_v1/v1.h>
#include <core/formats/graphdef/tensor_values.h>
#include <core/formats/table/crc32c.h>
#include <core/formats/wire.h>

#include <inttypes.h>

#define PIECE ((size_t)1 << 20)       /* bytes read at once; their CRC is computed while they are in the cache */
#define KEPT_MOST ((uint64_t)1 << 20) /* the largest block that is kept */

/* The checkpoint was whole when it was opened. */
static tn_status changed(const tn__file *file, const tn__stored *entry, uint64_t at, tn_error *err)
{
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s': byte %" PRIu64 ": the value of '%.200s' is not that of the time when the file was opened",
                      file->path, at, entry->key);
}

static tn_status read_plain(const tn__file *file, const tn__stored *entry, const tn__v1_place *place, char *to,
                            tn_error *err)
{
  uint32_t crc = 0;
  tn_status st = TN_OK;
  for (uint64_t done = 0; st == TN_OK && done < place->size;) {
    size_t n = place->size - done < PIECE ? (size_t)(place->size - done) : PIECE;
    st = tn__file_read(file, place->at + done, to + done, n, err);
    if (st == TN_OK) crc = tn__crc32c(crc, to + done, n);
    done += n;
  }
  return st == TN_OK && crc != place->crc ? changed(file, entry, place->at, err) : st;
}

/* Loads the block of a place, unless it is the last one that was loaded. */
static tn_status load_block_locked(tn__v1 *own, const tn__file *file, const tn__v1_place *place, tn_error *err)
{
  tn__assert_held(&own->mu);
  if (own->block_file == file && own->block.handle.offset == place->block.offset) return TN_OK;
  own->block_file = NULL;
  tn_status st = tn__block_load(&own->block, file, place->block, &own->uncompress, err);
  if (st == TN_OK) own->block_file = file;
  return st;
}

static tn_status read_message_locked(tn__v1 *own, const tn__file *file, const tn__stored *entry,
                                     const tn__stored_part *part, void *to, tn_error *err)
{
  const tn__v1_place *place = &own->places[part->offset];
  tn_status st = load_block_locked(own, file, place, err);
  if (st != TN_OK) return st;
  const tn__block *block = &own->block;
  if (place->at > block->entries || place->size > block->entries - place->at ||
      tn__crc32c(0, block->data + place->at, (size_t)place->size) != place->crc)
    return changed(file, entry, place->block.offset, err);
  const tn__slice message = { block->data + place->at, (size_t)place->size };
  const tn__slice values = tn__field_text(tn__field_text(message, TN__V1_DATA), TN__V1_SLICE_DATA);
  return tn__values_read(values, entry->dtype, (uint64_t)tn__region_elements(&part->region), to, err);
}

tn_status tn__v1_read_part(tn__store *store, const tn__stored *entry, const tn__stored_part *part, void *to,
                           tn_error *err)
{
  tn__v1 *own = store->own;
  const tn__file *file = &own->files[part->file];
  const tn__v1_place *place = &own->places[part->offset];
  if (place->plain) return read_plain(file, entry, place, to, err);
  tn__mutex_lock(&own->mu);
  tn_status st = read_message_locked(own, file, entry, part, to, err);
  if (place->block.size > KEPT_MOST) {
    own->block_file = NULL;
    tn__block_fini(&own->block);
  }
  tn__mutex_unlock(&own->mu);
  return st;
}
