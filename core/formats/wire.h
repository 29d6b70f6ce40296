/* SPDX-License-Identifier: Apache-2.0 */
/* Reading protobuf's wire format, without a schema compiler and without copies. A reader walks the fields of one
 * message and knows only its end; every length is checked against the remaining bytes. Of a field that occurs twice the
 * last one counts; that is up to the caller. */
#ifndef TN_CORE_FORMATS_WIRE_H
#define TN_CORE_FORMATS_WIRE_H

#include <core/base/text.h>

/* The maximum nesting of messages and groups; protobuf's own limit. */
#define TN__WIRE_DEPTH 100

enum { TN__WIRE_VARINT = 0, TN__WIRE_FIXED64 = 1, TN__WIRE_BYTES = 2, TN__WIRE_FIXED32 = 5 };

typedef struct tn__wire {
  const uint8_t *p, *end;
  /* Of the field that tn__wire_next read: */
  uint32_t field;
  uint8_t type;      /* TN__WIRE_... */
  uint64_t value;    /* varint, fixed64, fixed32 */
  tn__slice bytes;   /* TN__WIRE_BYTES */
  const uint8_t *at; /* the field's tag; after an error the position of the fault */
  const char *error; /* the fault, NULL = none; static */
} tn__wire;

static inline tn__wire tn__wire_read(tn__slice message)
{
  const uint8_t *p = (const uint8_t *)(message.data == NULL ? "" : message.data);
  tn__wire w = { .p = p, .end = p + message.size, .at = p };
  return w;
}

/* Reads a varint of up to ten bytes and advances *p; false: it is cut short or longer. */
bool tn__wire_varint_slow(const uint8_t **p, const uint8_t *end, uint64_t *out);
static inline bool tn__wire_varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
  if (*p < end && **p < 0x80) {
    *out = *(*p)++;
    return true;
  }
  return tn__wire_varint_slow(p, end, out);
}

/* Advances to the next field. False at the end and on malformed bytes, which set w->error. Groups are skipped. */
bool tn__wire_next(tn__wire *w);

/* Whether the field has this number and this wire type. As in protobuf, a field of another type is an unknown field. */
static inline bool tn__wire_is(const tn__wire *w, uint32_t field, int type)
{
  return w->field == field && w->type == type;
}

/* Numbers in a varint, a fixed field, or a packed run of them. */
static inline int64_t tn__wire_int(const tn__wire *w) { return (int64_t)w->value; }
static inline float tn__wire_float(const tn__wire *w)
{
  uint32_t bits = (uint32_t)w->value;
  float f;
  __builtin_memcpy(&f, &bits, sizeof f);
  return f;
}

/* Counts the varints of a packed run: each ends in a byte below 0x80. False: the last one does not end. */
bool tn__wire_count_varints(tn__slice run, size_t *n);

/* The number of times that a field of wire type bytes occurs in a message, and its last occurrence, "" if there is
 * none. Malformed bytes end the message. */
size_t tn__field_count(tn__slice message, uint32_t field);
tn__slice tn__field_text(tn__slice message, uint32_t field);

#endif
