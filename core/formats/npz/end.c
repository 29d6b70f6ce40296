/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the end record of a zip archive, which locates the directory, before libzip sees the archive: libzip tries
 * every place that looks like an end record, and allocates as many entries as the record claims. */
#include <core/formats/npz/npz.h>

#include <inttypes.h>
#include <string.h>

/* Sizes in bytes */
#define END_SIZE 22       /* of the end record, without its comment */
#define LOCATOR_SIZE 20   /* of the locator, which precedes it in a large archive (zip64) */
#define LARGE_END_SIZE 56 /* of the zip64 end record, to which the locator points */
#define ENTRY_SIZE 46     /* of an entry of the directory, at least */
#define WINDOW (UINT16_MAX + END_SIZE + LOCATOR_SIZE) /* in which an end record with a comment can begin */
#define MOST_ENDS 16 /* places that may look like an end record */

tn_status tn__npz_read_raw(const tn_npz *npz, uint64_t offset, void *to, size_t n, tn_error *err)
{
  if (npz->bytes == NULL) return tn__file_read(&npz->file, offset, to, n, err);
  if (n > 0) memcpy(to, npz->bytes + offset, n);
  return TN_OK;
}

/* A little-endian number of n bytes. */
static uint64_t number(const uint8_t *p, size_t n)
{
  uint64_t value = 0;
  for (size_t i = 0; i < n; i++) value |= (uint64_t)p[i] << (8 * i);
  return value;
}

/* Checks a locator: the archive must have room for the number of entries in the end record to which it points. */
static tn_status check_locator(const tn_npz *npz, const uint8_t *p, tn_error *err)
{
  uint8_t end[LARGE_END_SIZE];
  uint64_t at = number(p + 8, 8);
  if (npz->size < LARGE_END_SIZE || at > npz->size - LARGE_END_SIZE) return TN_OK; /* libzip will report it */
  tn_status s = tn__npz_read_raw(npz, at, end, sizeof(end), err);
  if (s != TN_OK || memcmp(end, "PK\6\6", 4) != 0) return s;
  uint64_t entries = number(end + 32, 8);
  if (entries <= npz->size / ENTRY_SIZE) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "'%s': byte %" PRIu64 ": the archive claims %" PRIu64 " entries, but its %" PRIu64
                      " bytes have room for %" PRIu64 " at most",
                      npz->name, at + 32, entries, npz->size, npz->size / ENTRY_SIZE);
}

/* The error for a file without an end record. */
static tn_status no_archive(const tn_npz *npz, tn_error *err)
{
  uint8_t begin[6] = { 0 };
  if (npz->size == 0) return tn_error_set(err, TN_DATA_LOSS, "'%s' is empty, wanted an .npz file", npz->name);
  tn_status s = tn__npz_read_raw(npz, 0, begin, npz->size < sizeof(begin) ? (size_t)npz->size : sizeof(begin), err);
  if (s != TN_OK) return s;
  if (memcmp(begin, "PK", 2) == 0)
    return tn_error_set(
        err, TN_DATA_LOSS,
        "'%s' is cut short: it begins like an archive, but its %" PRIu64 " bytes do not include the directory, which "
        "is at the end",
        npz->name, npz->size);
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      memcmp(begin, "\x93NUMPY", 6) == 0
                          ? "'%s' is an .npy file, a single array without a key, wanted an .npz file"
                          : "'%s' is not an .npz file: it is not a zip archive",
                      npz->name);
}

/* Checks every place in the last n bytes of the archive that looks like an end record. */
static tn_status check_window(const tn_npz *npz, const uint8_t *p, size_t n, tn_error *err)
{
  int ends = 0;
  for (size_t i = 0; i + END_SIZE <= n; i++) {
    if (p[i] != 'P' || memcmp(p + i, "PK\5\6", 4) != 0) continue;
    if (++ends > MOST_ENDS)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "'%s': more than %d places in the last %zu bytes look like the end of an archive", npz->name,
                          MOST_ENDS, n);
    if (i < LOCATOR_SIZE || memcmp(p + i - LOCATOR_SIZE, "PK\6\7", 4) != 0) continue;
    tn_status s = check_locator(npz, p + i - LOCATOR_SIZE, err);
    if (s != TN_OK) return s;
  }
  return ends > 0 ? TN_OK : no_archive(npz, err);
}

tn_status tn__npz_check_end(const tn_npz *npz, tn_error *err)
{
  size_t n = npz->size < WINDOW ? (size_t)npz->size : WINDOW;
  if (npz->bytes != NULL) return check_window(npz, npz->bytes + (npz->size - n), n, err);
  if (n == 0) return no_archive(npz, err);
  uint8_t *window = tn__alloc(n);
  if (window == NULL) return tn__no_memory(err, "the end of an archive", n);
  tn_status s = tn__npz_read_raw(npz, npz->size - n, window, n, err);
  if (s == TN_OK) s = check_window(npz, window, n, err);
  tn__free(window, n);
  return s;
}
