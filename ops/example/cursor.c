/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/example/cursor.h>

static bool skip_fixed(tn__cursor *c, size_t n)
{
  if (tn__cursor_left(c) < n) return false;
  c->p += n;
  return true;
}

/* A length of 2 GiB or more is ignored, as TensorFlow ignores it: it is a negative number there. */
static bool skip_bytes(tn__cursor *c)
{
  uint32_t n;
  if (!tn__cursor_length(c, &n)) return false;
  if (n > INT32_MAX) return true;
  c->p = n < tn__cursor_left(c) ? c->p + n : c->end;
  return true;
}

bool tn__cursor_skip(tn__cursor *c)
{
  uint32_t tag, number;
  if (!tn__cursor_length(c, &tag)) return false;
  switch (tag & 7) {
  case TN__WIRE_VARINT: return tn__cursor_length(c, &number);
  case TN__WIRE_FIXED64: return skip_fixed(c, 8);
  case TN__WIRE_BYTES: return skip_bytes(c);
  case TN__WIRE_FIXED32: return skip_fixed(c, 4);
  default: return false;
  }
}

static bool read_fields(tn__cursor *c, bool any_order, tn__slice *key, tn__slice *value)
{
  for (int i = 0; i < 2; i++) {
    uint32_t tag;
    if (any_order) {
      if (!tn__cursor_length(c, &tag)) return false;
    } else {
      tag = TN__TAG_BYTES(i + 1);
      if (!tn__cursor_tag(c, (uint8_t)tag)) return false;
    }
    if (tag != TN__TAG_BYTES(1) && tag != TN__TAG_BYTES(2)) return false;
    if (!tn__cursor_bytes(c, tag == TN__TAG_BYTES(1) ? key : value)) return false;
  }
  return c->p == c->end;
}

bool tn__cursor_entry(tn__cursor *c, bool any_order, tn__slice *key, tn__slice *value)
{
  uint32_t n;
  *key = *value = (tn__slice){ "", 0 };
  if (!tn__cursor_length(c, &n)) return false;
  const uint8_t *outer = tn__cursor_enter(c, n);
  bool whole = read_fields(c, any_order, key, value);
  c->end = outer;
  return whole;
}
