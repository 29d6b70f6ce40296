/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks, and the encoding of protobuf's wire format into them. */
#include <core/formats/sink.h>

#include <core/formats/wire.h>
#include <string.h>

void tn__sink_fini(tn__sink *s)
{
  tn_free(s->data);
  s->data = NULL;
  s->used = s->room = 0;
}

static void fail(tn__sink *s, tn_status st)
{
  if (s->status == TN_OK) s->status = st;
}

tn_status tn__sink_flush(tn__sink *s)
{
  if (s->file == NULL || s->used == 0 || s->status != TN_OK) return s->status;
  fail(s, tn__writer_write(s->file, s->data, s->used, s->err));
  s->before += s->used;
  s->used = 0;
  return s->status;
}

/* Replaces the memory by a larger block and keeps its content. */
static bool resize(tn__sink *s, size_t room)
{
  char *data = tn_alloc(room);
  if (data == NULL) {
    fail(s, tn__no_memory(s->err, "bytes to write", room));
    return false;
  }
  if (s->used > 0) memcpy(data, s->data, s->used);
  tn_free(s->data);
  s->data = data;
  s->room = room;
  return true;
}

/* A file sink makes room by writing; a memory sink doubles. */
char *tn__sink_reserve(tn__sink *s, size_t n)
{
  if (s->status != TN_OK) return NULL;
  if (n <= s->room - s->used) return s->data + s->used;
  if (s->file != NULL) {
    if (tn__sink_flush(s) != TN_OK || (s->room == 0 && !resize(s, TN__SINK_PIECE))) return NULL;
  } else {
    size_t room = s->room == 0 ? 1024 : s->room, wanted;
    if (!tn__size_add(s->used, n, &wanted) || wanted > SIZE_MAX / 2) {
      fail(s, tn__no_memory(s->err, "bytes to write", n));
      return NULL;
    }
    while (room < wanted) room *= 2;
    if (!resize(s, room)) return NULL;
  }
  return s->data + s->used;
}

void tn__sink_put_slow(tn__sink *s, const void *data, size_t n)
{
  if (s->status != TN_OK) return;
  if (s->counts) {
    if (!tn__size_add(s->before, n, &s->before)) fail(s, tn__no_memory(s->err, "bytes to write", n));
  } else if (s->file != NULL && n >= TN__SINK_PIECE) { /* large: written without a copy */
    if (tn__sink_flush(s) == TN_OK) fail(s, tn__writer_write(s->file, data, n, s->err));
    s->before += n;
  } else {
    char *to = tn__sink_reserve(s, n);
    if (to == NULL) return;
    memcpy(to, data, n);
    s->used += n;
  }
}

/* ---- protobuf's wire format ---- */

/* Encodes a varint; returns its size, at most 10. */
static size_t encode(uint8_t *to, uint64_t value)
{
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) to[n++] = (uint8_t)(value | 0x80);
  to[n++] = (uint8_t)value;
  return n;
}

void tn__sink_varint(tn__sink *s, uint64_t value)
{
  uint8_t bytes[10];
  tn__sink_put(s, bytes, encode(bytes, value));
}

void tn__sink_int(tn__sink *s, uint32_t field, uint64_t value)
{
  tn__sink_tag(s, field, TN__WIRE_VARINT);
  tn__sink_varint(s, value);
}

void tn__sink_bytes(tn__sink *s, uint32_t field, tn__slice bytes)
{
  tn__sink_tag(s, field, TN__WIRE_BYTES);
  tn__sink_varint(s, bytes.size);
  tn__sink_put(s, bytes.data, bytes.size);
}

/* Nested messages are counted again at each level above, so the cost grows with the depth. Messages of graphs
 * are shallow. */
void tn__sink_message(tn__sink *s, uint32_t field, tn__sink_body body, const void *what)
{
  if (s->status != TN_OK) return;
  tn__sink count = tn__sink_counter(s->err);
  body(&count, what);
  tn__sink_tag(s, field, TN__WIRE_BYTES);
  tn__sink_varint(s, count.before);
  if (count.status != TN_OK)
    s->status = count.status;
  else if (s->counts)
    s->before += count.before;
  else
    body(s, what);
}

/* Reserves one byte for the length, which is enough for most messages. tn__sink_end moves a longer message, at most
 * once per level of nesting. */
size_t tn__sink_begin(tn__sink *s)
{
  tn__sink_put(s, "", 1);
  return s->used;
}

void tn__sink_end(tn__sink *s, size_t place)
{
  if (s->status != TN_OK) return;
  uint8_t bytes[10];
  size_t size = s->used - place, n = encode(bytes, size);
  if (n > 1) {
    if (tn__sink_reserve(s, n - 1) == NULL) return;
    memmove(s->data + place + n - 1, s->data + place, size);
    s->used += n - 1;
  }
  memcpy(s->data + place - 1, bytes, n);
}
