/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tf.Example and tf.SequenceExample messages as TensorFlow's fast reader does. It accepts a part of protobuf's
 * wire format only: the known fields with tags of one byte, in their usual places. In one respect it is more lenient: a
 * length that exceeds the rest of the enclosing message means that rest. */
#ifndef TN_OPS_EXAMPLE_CURSOR_H
#define TN_OPS_EXAMPLE_CURSOR_H

#include <core/formats/wire.h>

/* Tags of one byte. */
#define TN__TAG_VARINT(field) ((uint8_t)((field) << 3 | TN__WIRE_VARINT))
#define TN__TAG_BYTES(field) ((uint8_t)((field) << 3 | TN__WIRE_BYTES))
#define TN__TAG_FIXED32(field) ((uint8_t)((field) << 3 | TN__WIRE_FIXED32))

/* A position in a message, and the end of the innermost message that is being read. */
typedef struct tn__cursor {
  const uint8_t *p, *end;
} tn__cursor;

static inline tn__cursor tn__cursor_of(tn__slice bytes)
{
  const uint8_t *p = (const uint8_t *)(bytes.data == NULL ? "" : bytes.data);
  return (tn__cursor){ p, p + bytes.size };
}

static inline size_t tn__cursor_left(const tn__cursor *c) { return (size_t)(c->end - c->p); }

/* Advances past the tag if it is next. */
static inline bool tn__cursor_tag(tn__cursor *c, uint8_t tag)
{
  if (c->p == c->end || *c->p != tag) return false;
  c->p++;
  return true;
}

/* Reads a length: the low 32 bits of a varint. */
static inline bool tn__cursor_length(tn__cursor *c, uint32_t *n)
{
  uint64_t value;
  if (!tn__wire_varint(&c->p, c->end, &value)) return false;
  *n = (uint32_t)value;
  return true;
}

/* Enters a message of n bytes. Returns the end of the enclosing message, which the caller stores in c->end to leave the
 * inner one, wherever the position is then. */
static inline const uint8_t *tn__cursor_enter(tn__cursor *c, uint32_t n)
{
  const uint8_t *outer = c->end;
  if (n <= INT32_MAX && n < tn__cursor_left(c)) c->end = c->p + n;
  return outer;
}

/* Reads a length and as many bytes, which must be there. */
static inline bool tn__cursor_bytes(tn__cursor *c, tn__slice *out)
{
  uint32_t n;
  if (!tn__cursor_length(c, &n) || n > tn__cursor_left(c)) return false;
  *out = (tn__slice){ (const char *)c->p, n };
  c->p += n;
  return true;
}

/* Skips a field of any number and any type but a group. A run of bytes that is cut short ends the message. */
bool tn__cursor_skip(tn__cursor *c);

/* Reads an entry of a map, whose tag has been read: key and value, each once. If `any_order`, the value may be first,
 * and of two keys (values) the last one counts. */
bool tn__cursor_entry(tn__cursor *c, bool any_order, tn__slice *key, tn__slice *value);

#endif
