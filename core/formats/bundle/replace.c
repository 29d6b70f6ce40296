/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a new bundle in the place of a former one, so that one of the two can be read wherever the process or the
 * machine stops.
 *
 * An index says only how many data files its bundle has: PREFIX.data-N-of-M. If old and new had the same M, the new
 * data would have to replace the old before the new index is in place. So the new bundle gets another M than the former
 * one: the wanted number of files, or one more, and then the last file is empty. Saving one file again and again gives
 * of-00001, of-00002, of-00001, ... In this order:
 *
 *   1  The data is written to files without names, or with temporary ones where the system has no such files.
 *   2  All are synced, and get their names PREFIX.data-N-of-M, which no index refers to. The folder is synced.
 *   3  The index is written to a file without a name, and synced.
 *   4  The index gets its name, in one system call. The new bundle has replaced the former one.
 *   5  The folder is synced.
 *   6  The data files of other numbers M are deleted.
 *
 * If it stops before 4, the former bundle is there, and perhaps data files that no index refers to; the next bundle
 * replaces or deletes them. After 4 the new bundle is there. If the machine stops between 4 and 5, the disk may have
 * either index; both have their data files. If 5 fails, the data files of the former bundle stay, too. If there is a
 * former index that cannot be read, M is a number that no data file in the folder has.
 *
 * A reader that has opened the former bundle finds no data file after 6. Two writers of one prefix at the same time are
 * not supported: CRCs tell if the index of one has got the data of the other. */
#include <core/formats/bundle/bundle.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- the number of data files ---- */

/* The numbers that are taken, as far as a free one among them is looked for. */
typedef struct counts {
  uint32_t wanted;
  uint64_t taken[4]; /* bit i: wanted + i */
} counts;

static void mark_taken(void *arg, const char *path, uint32_t shards)
{
  (void)path;
  counts *c = arg;
  uint32_t i = shards - c->wanted;
  if (shards >= c->wanted && i < 256) c->taken[i / 64] |= (uint64_t)1 << (i % 64);
}

/* Chooses a number that no data file in the folder has, because it is not known which of them have an index. */
static tn_status choose_unused(const char *prefix, uint32_t wanted, uint32_t *out, tn_error *err)
{
  counts c = { .wanted = wanted };
  tn_status s = tn__data_files(prefix, mark_taken, &c, err);
  for (uint32_t i = 0; i < 256 && s == TN_OK; i++) {
    *out = wanted + i;
    if ((c.taken[i / 64] >> (i % 64) & 1) == 0) return TN_OK;
  }
  if (s != TN_OK) return s;
  return tn_error_set(err, TN_FAILED_PRECONDITION,
                      "'%s.index' is damaged, and its folder has data files of too many bundles: delete '%s.*'", prefix,
                      prefix);
}

tn_status tn__bundle_choose_count(const char *prefix, uint32_t wanted, uint32_t *out, tn_error *err)
{
  tn_error why = TN_ERROR_INIT;
  uint32_t former = 0;
  char *index = tn__bundle_index_name(prefix);
  if (index == NULL) return tn__no_memory(err, "the name of an index", strlen(prefix));
  tn_status s = tn__bundle_index_shards(index, &former, &why);
  tn__strfree(index);
  *out = wanted == former ? wanted + 1 : wanted;
  if (s == TN_OK || s == TN_NOT_FOUND) {
    s = TN_OK;
  } else if (s == TN_DATA_LOSS || s == TN_INVALID_ARGUMENT || s == TN_UNIMPLEMENTED || s == TN_UNAVAILABLE) {
    s = choose_unused(prefix, wanted, out, err);
  } else if (err != NULL) {
    tn_error_copy(err, &why);
  }
  tn_error_clear(&why);
  return s;
}

/* ---- files ---- */

tn_status tn__bundle_writer_file(tn__writer *w, const char *path, tn_error *err)
{
  tn_status s = tn__writer_open(w, path, err);
  if (s != TN_OK || w->target != NULL) return s;
  tn__writer_abandon(w);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "cannot write '%s' as a part of a checkpoint: it is not a regular file",
                      path);
}

/* ---- the index ---- */

static void delete_other(void *arg, const char *path, uint32_t shards)
{
  if (shards == *(const uint32_t *)arg) return;
  if (unlink(path) != 0) tn_log(TN_LOG_DEBUG, "cannot delete '%s': %s", path, tn__strerror(errno));
}

/* Writes the index and puts it in place. Its folder is that of the file to which a symbolic link leads. */
static tn_status write_index(const char *path, tn__bundle_entry **entries, size_t n, uint32_t shards, bool *placed,
                             tn_error *err)
{
  tn__writer w;
  tn_status s = tn__bundle_writer_file(&w, path, err);
  if (s != TN_OK) return s;
  char *target = tn__strdup(w.target);
  if (target == NULL) s = tn__no_memory(err, "the name of an index", strlen(w.target));
  if (s == TN_OK) s = tn__bundle_index_write(&w, entries, n, shards, err);
  if (s == TN_OK) s = tn__writer_sync(&w, err);
  if (s == TN_OK)
    s = tn__writer_commit(&w, err);
  else
    tn__writer_abandon(&w);
  *placed = s == TN_OK;
  if (s == TN_OK) s = tn__folder_sync(target, err);
  tn__strfree(target);
  return s;
}

tn_status tn__bundle_put_index(const char *prefix, tn__bundle_entry **entries, size_t n, uint32_t shards, bool *placed,
                               tn_error *err)
{
  *placed = false;
  char *path = tn__bundle_index_name(prefix);
  if (path == NULL) return tn__no_memory(err, "the name of an index", strlen(prefix));
  tn_status s = tn__folder_sync(path, err);
  if (s == TN_OK) s = write_index(path, entries, n, shards, placed, err);
  if (s == TN_OK) tn__data_files(prefix, delete_other, &shards, NULL);
  tn__strfree(path);
  return s;
}
