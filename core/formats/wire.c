/* SPDX-License-Identifier: Apache-2.0 */
/* Reading protobuf's wire format. */
#include <core/formats/wire.h>

#include <string.h>

/* Wire types that a reader never returns. */
enum { GROUP_START = 3, GROUP_END = 4 };

/* Bits beyond 64 of a ten-byte varint are dropped, as in protobuf. */
bool tn__wire_varint_slow(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
  uint64_t value = 0;
  const uint8_t *at = *p;
  for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
    uint8_t byte = *at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      *p = at;
      return true;
    }
  }
  return false;
}

/* Always false. */
static bool fail(tn__wire *w, const char *what)
{
  w->error = what;
  return false;
}

/* Field number 0 is invalid, as in protobuf. */
static bool read_tag(tn__wire *w)
{
  uint64_t tag;
  w->at = w->p;
  if (!tn__wire_varint(&w->p, w->end, &tag)) return fail(w, "a field's tag is cut short");
  if (tag > UINT32_MAX || tag >> 3 == 0) return fail(w, "a field's number is out of range");
  w->field = (uint32_t)(tag >> 3);
  w->type = (uint8_t)(tag & 7);
  return true;
}

static bool read_fixed(tn__wire *w, size_t size)
{
  if ((size_t)(w->end - w->p) < size) return fail(w, "a number is cut short");
  w->value = 0;
  memcpy(&w->value, w->p, size); /* little-endian, like the machine */
  w->p += size;
  return true;
}

/* Reads the value of the field whose tag was read. The length of bytes is checked against the rest of the message. */
static bool read_value(tn__wire *w)
{
  switch (w->type) {
  case TN__WIRE_VARINT:
    return tn__wire_varint(&w->p, w->end, &w->value) || fail(w, "a number is cut short or longer than ten bytes");
  case TN__WIRE_FIXED64: return read_fixed(w, 8);
  case TN__WIRE_FIXED32: return read_fixed(w, 4);
  case TN__WIRE_BYTES: {
    uint64_t size;
    if (!tn__wire_varint(&w->p, w->end, &size)) return fail(w, "a length is cut short");
    if (size > (size_t)(w->end - w->p)) return fail(w, "a field is longer than its message");
    w->bytes = (tn__slice){ (const char *)w->p, (size_t)size };
    w->p += size;
    return true;
  }
  default: return fail(w, "a field has an unknown wire type");
  }
}

/* Skips a group, a deprecated form that messages may still contain. Its start tag has been read. */
static bool skip_group(tn__wire *w)
{
  uint32_t open[TN__WIRE_DEPTH];
  size_t depth = 0;
  open[depth++] = w->field;
  while (depth > 0) {
    if (w->p == w->end) return fail(w, "a group has no end");
    if (!read_tag(w)) return false;
    if (w->type == GROUP_START) {
      if (depth == TN__WIRE_DEPTH) return fail(w, "groups are nested too deeply");
      open[depth++] = w->field;
    } else if (w->type == GROUP_END) {
      if (open[--depth] != w->field) return fail(w, "the end of a group has no start");
    } else if (!read_value(w)) {
      return false;
    }
  }
  return true;
}

/* The fast path: a tag of one byte, then a small number or a short run of bytes. False: not such a field; nothing
 * changed. */
static bool next_short(tn__wire *w)
{
  const uint8_t *p = w->p;
  if (w->end - p < 2 || p[0] >= 0x80 || p[0] < 8 || p[1] >= 0x80) return false;
  unsigned type = p[0] & 7;
  if (type == TN__WIRE_BYTES) {
    if (p[1] > w->end - p - 2) return false;
    w->bytes = (tn__slice){ (const char *)p + 2, p[1] };
    w->p = p + 2 + p[1];
  } else if (type == TN__WIRE_VARINT) {
    w->value = p[1];
    w->p = p + 2;
  } else {
    return false;
  }
  w->at = p;
  w->field = p[0] >> 3;
  w->type = (uint8_t)type;
  return true;
}

/* Groups are skipped, so the caller sees only the other four wire types. */
bool tn__wire_next(tn__wire *w)
{
  if (next_short(w)) return true;
  while (w->error == NULL && w->p < w->end) {
    if (!read_tag(w)) return false;
    if (w->type == GROUP_END) return fail(w, "the end of a group has no start");
    if (w->type != GROUP_START) return read_value(w);
    if (!skip_group(w)) return false;
  }
  return false;
}

bool tn__wire_count_varints(tn__slice run, size_t *n)
{
  size_t count = 0;
  for (size_t i = 0; i < run.size; i++) count += (unsigned char)run.data[i] < 0x80;
  *n = count;
  return run.size == 0 || (unsigned char)run.data[run.size - 1] < 0x80;
}

size_t tn__field_count(tn__slice message, uint32_t field)
{
  size_t n = 0;
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) n += tn__wire_is(&w, field, TN__WIRE_BYTES);
  return n;
}

tn__slice tn__field_text(tn__slice message, uint32_t field)
{
  tn__slice found = { "", 0 };
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, field, TN__WIRE_BYTES)) found = w.bytes;
  return found;
}
