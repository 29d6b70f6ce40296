/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of a bundle: the lengths as varints, 4 bytes of masked CRC of the lengths, the texts.
 *
 * The CRC of the lengths runs over each as a little-endian number of 4 bytes, or of 8 if it needs them. That of the
 * part goes on over the 4 bytes and the texts, so it is not the CRC of what the file has.
 *
 * Room is made for a text when its length is read; each length is at most what the part has left, so the texts never
 * need more memory than the part has bytes. */
#include <core/formats/bundle/bundle.h>

#include <inttypes.h>
#include <string.h>

#include <core/formats/table/crc32c.h>
#include <core/formats/wire.h>

#define WINDOW ((size_t)64 << 10) /* bytes read at once; longer texts are read into place */

/* The bytes of the part, read in order. */
typedef struct window {
  const tn__file *file;
  const tn__stored *entry;
  const tn__stored_part *part;
  uint8_t *bytes;  /* owned; WINDOW of them */
  size_t at, used; /* in bytes */
  uint64_t next;   /* offset in the file of the byte after those in `bytes` */
  uint64_t left;   /* bytes of the part from `next` on */
  tn_error *err;
} window;

static tn_status TN_PRINTF(2, 3) bad(const window *w, const char *format, ...)
{
  char what[200], key[200];
  va_list args;
  va_start(args, format);
  tn__vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  return tn_error_set(w->err, TN_DATA_LOSS, "'%s': the strings of tensor '%s' at byte %" PRIu64 " are damaged: %s",
                      w->file->path,
                      tn__bundle_show_key(key, sizeof(key), (tn__slice){ w->entry->key, w->entry->key_size }),
                      w->next - (w->used - w->at), what);
}

/* Moves the remaining bytes to the front and reads more. */
static tn_status refill(window *w)
{
  size_t kept = w->used - w->at, n = WINDOW - kept;
  if (n > w->left) n = (size_t)w->left;
  memmove(w->bytes, w->bytes + w->at, kept);
  w->at = 0;
  w->used = kept;
  tn_status s = tn__file_read(w->file, w->next, w->bytes + kept, n, w->err);
  if (s != TN_OK) return s;
  w->used += n;
  w->next += n;
  w->left -= n;
  return TN_OK;
}

/* Takes the next n bytes of the part, which has them. */
static tn_status take(window *w, void *to, uint64_t n)
{
  uint64_t held = w->used - w->at, first = n < held ? n : held;
  if (first > 0) memcpy(to, w->bytes + w->at, (size_t)first);
  w->at += (size_t)first;
  if (first == n) return TN_OK;
  to = (char *)to + first;
  n -= first;
  if (n < WINDOW / 2) {
    tn_status s = refill(w);
    if (s != TN_OK) return s;
    memcpy(to, w->bytes, (size_t)n);
    w->at = (size_t)n;
    return TN_OK;
  }
  tn_status s = tn__file_read(w->file, w->next, to, (size_t)n, w->err);
  w->next += n;
  w->left -= n;
  return s;
}

/* Bytes of the part that were not taken. */
static uint64_t rest_of(const window *w) { return w->left + (w->used - w->at); }

static tn_status read_length(window *w, uint64_t *length)
{
  if (w->used - w->at < 10 && w->left > 0) {
    tn_status s = refill(w);
    if (s != TN_OK) return s;
  }
  const uint8_t *p = w->bytes + w->at;
  if (!tn__wire_varint(&p, w->bytes + w->used, length))
    return bad(w, "a length is cut short or has more than ten bytes");
  w->at = (size_t)(p - w->bytes);
  return TN_OK;
}

/* Reads the lengths and makes room for the texts. */
static tn_status read_lengths(window *w, tn_string *to, int64_t n, uint32_t *crc)
{
  uint64_t sum = 0, length;
  for (int64_t i = 0; i < n; i++) {
    tn_status s = read_length(w, &length);
    if (s != TN_OK) return s;
    if (length > rest_of(w) || sum > rest_of(w) - length)
      return bad(w, "string %" PRId64 " has %" PRIu64 " bytes, more than are left", i, length);
    sum += length;
    *crc = tn__crc32c(*crc, &length, length <= UINT32_MAX ? 4 : 8); /* little-endian, like the machine */
    if (tn__string_reserve(&to[i], (size_t)length) == NULL)
      return tn__no_memory(w->err, "a string of a checkpoint", (size_t)length);
  }
  if (rest_of(w) < 4 || rest_of(w) - 4 != sum)
    return bad(w, "%" PRIu64 " bytes follow the lengths, wanted %" PRIu64 " and 4 of a CRC", rest_of(w), sum);
  return TN_OK;
}

static tn_status check_lengths(window *w, uint32_t *crc)
{
  uint32_t stored;
  tn_status s = take(w, &stored, sizeof(stored));
  if (s != TN_OK) return s;
  if (stored != tn__crc32c_mask(*crc))
    return bad(w, "the lengths have the CRC %08" PRIx32 ", wanted %08" PRIx32, tn__crc32c_mask(*crc), stored);
  *crc = tn__crc32c(*crc, &stored, sizeof(stored));
  return TN_OK;
}

tn_status tn__bundle_read_strings(const tn__file *file, const tn__stored *entry, const tn__stored_part *part,
                                  tn_string *to, tn_error *err)
{
  int64_t n = tn__region_elements(&part->region);
  uint32_t crc = 0;
  window w = { .file = file, .entry = entry, .part = part, .next = part->offset, .left = part->size, .err = err };
  w.bytes = tn__alloc(WINDOW);
  if (w.bytes == NULL) return tn__no_memory(err, "a buffer for strings of a checkpoint", WINDOW);
  tn_status s = read_lengths(&w, to, n, &crc);
  if (s == TN_OK) s = check_lengths(&w, &crc);
  for (int64_t i = 0; i < n && s == TN_OK; i++) {
    size_t length;
    char *text = (char *)tn_string_data(&to[i], &length);
    s = take(&w, text, length);
    if (s == TN_OK) crc = tn__crc32c(crc, text, length);
  }
  tn__free(w.bytes, WINDOW);
  if (s == TN_OK && tn__crc32c_mask(crc) != part->crc)
    s = tn__bundle_wrong_crc(file, entry, part, tn__crc32c_mask(crc), err);
  return s;
}
