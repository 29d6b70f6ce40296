/* SPDX-License-Identifier: Apache-2.0 */
/* The data files of a bundle that is read. A file is opened when its bytes are needed and stays open, at most MOST_OPEN
 * of them: when another one is opened, one that no thread reads is closed. A file that is opened again must be the one
 * that it was. */
#include <core/formats/bundle/bundle.h>

#include <inttypes.h>
#include <stdlib.h>

#define MOST_OPEN 64

typedef struct shard {
  uint32_t number;
  uint32_t users; /* threads that read it */
  char *path;     /* owned; NULL: not opened yet */
  tn__file file;  /* fd is -1 while it is closed */
  uint64_t size;  /* and times, of the first opening; valid if there is a path */
  int64_t changed_s, changed_ns;
} shard;

struct tn__bundle_shards {
  tn__mutex mu; /* guards the members below and those of each shard; a file is read without it */
  const char *prefix;
  uint32_t shards;
  shard *list; /* sorted by number */
  size_t n, open;
};

tn_status tn__bundle_shards_create(const char *prefix, uint32_t shards, const uint32_t *numbers, size_t n,
                                   tn__bundle_shards **out, tn_error *err)
{
  tn__bundle_shards *s = tn__zalloc(sizeof(*s));
  shard *list = n == 0 ? NULL : tn__alloc_array(n, sizeof(*list));
  if (s == NULL || (n > 0 && list == NULL)) {
    tn__free(s, sizeof(*s));
    tn__free(list, n * sizeof(*list));
    return tn__no_memory(err, "the data files of a checkpoint", sizeof(*s) + n * sizeof(*list));
  }
  for (size_t i = 0; i < n; i++) {
    list[i].number = numbers[i];
    list[i].file.fd = -1;
  }
  *s = (tn__bundle_shards){ .prefix = prefix, .shards = shards, .list = list, .n = n };
  tn__mutex_init(&s->mu, "data files of a checkpoint", TN_RANK_FILE);
  *out = s;
  return TN_OK;
}

void tn__bundle_shards_destroy(tn__bundle_shards *s)
{
  if (s == NULL) return;
  for (size_t i = 0; i < s->n; i++) {
    tn__file_close(&s->list[i].file);
    tn__strfree(s->list[i].path);
  }
  tn__mutex_fini(&s->mu);
  tn__free(s->list, s->n * sizeof(*s->list));
  tn__free(s, sizeof(*s));
}

static int compare(const void *number, const void *entry)
{
  uint32_t a = *(const uint32_t *)number, b = ((const shard *)entry)->number;
  return (a > b) - (a < b);
}

static shard *find(tn__bundle_shards *s, uint32_t number)
{
  return bsearch(&number, s->list, s->n, sizeof(*s->list), compare);
}

/* Closes files that no thread reads, at most `most` of them. False: there is none. */
static bool close_idle(tn__bundle_shards *s, size_t most)
{
  size_t before = s->open;
  for (size_t i = 0; i < s->n && before - s->open < most; i++)
    if (s->list[i].file.fd >= 0 && s->list[i].users == 0) {
      tn__file_close(&s->list[i].file);
      s->open--;
    }
  return s->open < before;
}

/* The process may have fewer descriptors left than this bundle would use. */
static tn_status open_file(tn__bundle_shards *s, shard *d, tn_error *err)
{
  if (s->open >= MOST_OPEN) close_idle(s, 1);
  tn_status st = tn__file_open(d->path, &d->file, err);
  if (st != TN_RESOURCE_EXHAUSTED || !close_idle(s, MOST_OPEN)) return st;
  tn__error_reset(err);
  return tn__file_open(d->path, &d->file, err);
}

static tn_status open_shard(tn__bundle_shards *s, shard *d, tn_error *err)
{
  bool first = d->path == NULL;
  if (first && (d->path = tn__bundle_data_name(s->prefix, d->number, s->shards)) == NULL)
    return tn__no_memory(err, "the name of a data file", 0);
  tn_status st = open_file(s, d, err);
  if (st == TN_OK && first) {
    d->size = d->file.size;
    d->changed_s = d->file.changed_s;
    d->changed_ns = d->file.changed_ns;
  } else if (st == TN_OK &&
             (d->size != d->file.size || d->changed_s != d->file.changed_s || d->changed_ns != d->file.changed_ns)) {
    tn__file_close(&d->file);
    st = tn_error_set(err, TN_DATA_LOSS, "'%s' was changed while the checkpoint was open", d->path);
  } else if (first) { /* a later try may find the file */
    tn__strfree(d->path);
    d->path = NULL;
  }
  s->open += st == TN_OK;
  return st;
}

tn_status tn__bundle_shard_get(tn__bundle_shards *s, uint32_t number, const tn__file **out, tn_error *err)
{
  tn__mutex_lock(&s->mu);
  shard *d = find(s, number);
  tn_status st = d->file.fd >= 0 ? TN_OK : open_shard(s, d, err);
  if (st == TN_OK) d->users++;
  *out = &d->file;
  tn__mutex_unlock(&s->mu);
  return st;
}

void tn__bundle_shard_put(tn__bundle_shards *s, uint32_t number)
{
  tn__mutex_lock(&s->mu);
  find(s, number)->users--;
  tn__mutex_unlock(&s->mu);
}

tn_status tn__bundle_wrong_crc(const tn__file *file, const tn__stored *entry, const tn__stored_part *part,
                               uint32_t masked, tn_error *err)
{
  char key[200];
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s': the %" PRIu64 " bytes of tensor '%s' from byte %" PRIu64 " on have the CRC %08" PRIx32
                      ", the index says %08" PRIx32 "%s",
                      file->path, part->size,
                      tn__bundle_show_key(key, sizeof(key), (tn__slice){ entry->key, entry->key_size }), part->offset,
                      masked, part->crc,
                      tn__file_unchanged(file) ? "" : "; the file was changed while the checkpoint was open");
}
