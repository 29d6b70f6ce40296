/* SPDX-License-Identifier: Apache-2.0 */
/* The store kind of checkpoints (V1): opening and closing. */
#include <core/formats/checkpoint_v1/v1.h>

#include <string.h>

/* Makes the list of files; they are not open yet. */
static tn_status list_files(tn__store *store, tn__v1 *own, tn_error *err)
{
  uint32_t shards;
  size_t prefix_size;
  tn_status st = tn__v1_shards(store->prefix, &shards, &prefix_size, err);
  if (st != TN_OK) return st;
  uint32_t n = shards == 0 ? 1 : shards;
  own->files = tn__arena_array(&store->arena, n, sizeof *own->files);
  if (own->files == NULL) return tn__no_memory(err, "the files of a checkpoint", n * sizeof *own->files);
  for (uint32_t i = 0; i < n; i++) own->files[i] = (tn__file){ .fd = -1, .path = store->prefix };
  own->n_files = n;
  for (uint32_t i = 0; st == TN_OK && i < shards; i++)
    st = tn__v1_shard_path(store->prefix, prefix_size, i, shards, &store->arena, &own->files[i].path, err);
  return st;
}

static tn_status open_files(tn__v1 *own, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < own->n_files; i++) {
    const char *path = own->files[i].path;
    st = tn__file_open(path, &own->files[i], err);
    own->files[i].path = path;
  }
  return st;
}

static tn_status read_index(tn__store *store, const tn__v1 *own, tn_error *err)
{
  tn__v1_index *index = NULL;
  tn_status st = tn__v1_index_create(store, &index, err);
  for (uint32_t i = 0; st == TN_OK && i < own->n_files; i++) st = tn__v1_index_add(index, i, err);
  if (st == TN_OK) st = tn__v1_index_finish(index, err);
  tn__v1_index_destroy(index);
  return st;
}

static tn_status open_v1(tn__store *store, tn_error *err)
{
  tn__v1 *own = tn__zalloc(sizeof *own);
  if (own == NULL) return tn__no_memory(err, "a checkpoint", sizeof *own);
  tn__mutex_init(&own->mu, "block of a checkpoint", TN_RANK_FILE);
  store->own = own;
  tn_status st = list_files(store, own, err);
  if (st == TN_OK) st = open_files(own, err);
  if (st == TN_OK) st = read_index(store, own, err);
  return st;
}

static void close_v1(tn__store *store)
{
  tn__v1 *own = store->own;
  if (own == NULL) return;
  tn__block_fini(&own->block);
  tn__mutex_fini(&own->mu);
  for (uint32_t i = 0; i < own->n_files; i++) tn__file_close(&own->files[i]);
  tn__free(own->places, own->places_capacity * sizeof *own->places);
  tn__free(own, sizeof *own);
  store->own = NULL;
}

const tn__store_kind tn__store_v1 = { .version = 1,
                                      .name = "checkpoint (V1)",
                                      .fits = tn__v1_exists,
                                      .open = open_v1,
                                      .close = close_v1,
                                      .read_part = tn__v1_read_part };
