/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of slices, in ordered code: a form in which the bytes of two keys compare as the keys' parts do.
 *
 * A key is the unsigned number 0, the name, the rank as an unsigned number, and for each dimension start and length as
 * signed numbers.
 *   unsigned  a byte with the count of bytes, then these, the highest first, without leading zeros
 *   text      00 is written 00 ff, ff is written ff 00, the end is 00 01
 *   signed    n bytes that hold the two's complement of 7 n - 1 bits, the highest first. The first n bits are ones,
 * then follows a zero and the number; of a negative one all these n + 1 bits are inverted. */
#include <core/formats/checkpoint/slices.h>

#include <string.h>

#define LONGEST 10 /* bytes of a number */

/* ---- writing ---- */

static size_t put_unsigned(uint8_t *to, uint64_t value)
{
  size_t n = 0;
  while (n < 8 && value >> (8 * n) != 0) n++;
  to[0] = (uint8_t)n;
  for (size_t i = 0; i < n; i++) to[1 + i] = (uint8_t)(value >> (8 * (n - 1 - i)));
  return n + 1;
}

/* The bytes of a signed number: a bit more than its magnitude must fit into 7 n - 1 bits. */
static size_t signed_size(int64_t value)
{
  uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
  size_t bits = magnitude == 0 ? 0 : 64 - (size_t)__builtin_clzll(magnitude);
  return bits / 7 + 1;
}

/* The first two bytes of the mark of n bytes: n ones. */
static uint16_t mark_of(size_t n) { return (uint16_t)(0xffff0000u >> n); }

static size_t put_signed(uint8_t *to, int64_t value)
{
  size_t n = signed_size(value);
  for (size_t i = 0; i < n; i++) {
    size_t shift = 8 * (n - 1 - i);
    to[i] = (uint8_t)(value >> (shift < 64 ? shift : 63));
  }
  to[0] ^= (uint8_t)(mark_of(n) >> 8);
  if (n > 1) to[1] ^= (uint8_t)mark_of(n);
  return n;
}

static size_t put_text(uint8_t *to, tn__slice text)
{
  size_t used = 0;
  for (size_t i = 0; i < text.size; i++) {
    uint8_t c = (uint8_t)text.data[i];
    to[used++] = c;
    if (c == 0 || c == 0xff) to[used++] = c ^ 0xff;
  }
  to[used++] = 0;
  to[used++] = 1;
  return used;
}

tn_status tn__slice_key(tn__slice name, const tn__region *region, tn__arena *arena, tn__slice *out, tn_error *err)
{
  size_t room = 0;
  uint8_t *key = NULL;
  if (tn__size_mul(name.size, 2, &room) && tn__size_add(room, 2 + (2 + 2 * (size_t)region->rank) * LONGEST, &room))
    key = tn__arena_alloc(arena, room);
  if (key == NULL) return tn__no_memory(err, "the key of a slice", room);
  size_t used = put_unsigned(key, 0);
  used += put_text(key + used, name);
  used += put_unsigned(key + used, (uint64_t)region->rank);
  for (int32_t d = 0; d < region->rank; d++) {
    used += put_signed(key + used, region->starts[d]);
    used += put_signed(key + used, region->lengths[d]);
  }
  *out = (tn__slice){ (char *)key, used };
  return TN_OK;
}

/* ---- reading ---- */

typedef struct reader {
  const uint8_t *p, *end;
} reader;

static bool get_unsigned(reader *r, uint64_t *out)
{
  if (r->p == r->end || *r->p > 8 || *r->p > r->end - r->p - 1) return false;
  size_t n = *r->p++;
  *out = 0;
  while (n-- > 0) *out = *out << 8 | *r->p++;
  return true;
}

static bool get_signed(reader *r, int64_t *out)
{
  size_t left = (size_t)(r->end - r->p), n = 1;
  if (left == 0) return false;
  uint8_t flip = r->p[0] < 0x80 ? 0xff : 0; /* negative: as if all bits were inverted */
  uint32_t head = (uint32_t)(uint8_t)(r->p[0] ^ flip) << 8 | (left > 1 ? (uint8_t)(r->p[1] ^ flip) : 0u);
  while (n < LONGEST && head >> (15 - n) & 1) n++;
  if (n > left) return false;
  head &= 0xffffu >> n;
  uint64_t value = 0;
  for (size_t i = 0; i < n; i++) {
    uint8_t byte = (uint8_t)(r->p[i] ^ flip);
    if (i < 2) byte = (uint8_t)(i == 0 ? head >> 8 : head);
    if (value >> 55 != 0) return false; /* more than 63 bits */
    value = value << 8 | byte;
  }
  *out = flip != 0 ? ~(int64_t)value : (int64_t)value;
  r->p += n;
  return true;
}

/* Decodes a text to `to`, which has room for all bytes that are left. */
static bool get_text(reader *r, char *to, size_t *size)
{
  for (*size = 0; r->end - r->p >= 2; *size += 1) {
    uint8_t c = *r->p++;
    to[*size] = (char)c;
    if (c != 0 && c != 0xff) continue;
    uint8_t next = *r->p++;
    if (c == 0 && next == 1) return true;
    if ((next ^ c) != 0xff) return false;
  }
  return false;
}

bool tn__slice_key_parse(tn__slice key, tn__arena *arena, tn__slice *name, tn__region *region)
{
  reader r = { (const uint8_t *)key.data, (const uint8_t *)key.data + key.size };
  uint64_t number;
  if (key.size == 0 || !get_unsigned(&r, &number) || number != 0) return false;
  char *text = tn__arena_alloc(arena, key.size);
  if (text == NULL || !get_text(&r, text, &name->size)) return false;
  name->data = text;
  if (!get_unsigned(&r, &number) || number > TN_MAX_RANK) return false;
  int64_t *numbers = tn__arena_alloc(arena, 2 * (size_t)number * sizeof(*numbers));
  if (numbers == NULL) return false;
  *region = (tn__region){ (int32_t)number, numbers, numbers + number };
  for (int32_t d = 0; d < region->rank; d++)
    if (!get_signed(&r, &region->starts[d]) || !get_signed(&r, &region->lengths[d])) return false;
  return r.p == r.end;
}
