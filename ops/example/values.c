/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/example/values.h>

#include <string.h>

#define POLL_BYTES 65536 /* read between two checks whether the step has ended; 1 ns for each */

/* ---- counting ---- */

/* Sets the values to the bytes from v->at to c, and n. */
static bool found(const tn__cursor *c, tn__feature_values *v, size_t n)
{
  v->size = (uint32_t)(c->p - v->at);
  v->n = (uint32_t)n;
  return true;
}

/* Packed floats. A run that is longer than its list is not an error as long as all whole floats are there. */
static bool count_packed_floats(tn__cursor *c, bool exact, tn__feature_values *v)
{
  uint32_t bytes;
  if (!tn__cursor_length(c, &bytes)) return false;
  tn__cursor_enter(c, bytes);
  if (exact) bytes = (uint32_t)tn__cursor_left(c);
  size_t n = bytes / sizeof(float);
  if (n * sizeof(float) > tn__cursor_left(c) || (exact && bytes % sizeof(float) != 0)) return false;
  v->at = c->p;
  c->p += n * sizeof(float);
  return found(c, v, n);
}

/* Floats with a tag each. */
static bool count_floats(tn__cursor *c, tn__feature_values *v, tn__poll *poll)
{
  size_t n = 0;
  for (; c->p < c->end; n++) {
    if (n % (POLL_BYTES / 4) == 0 && tn__poll_over(poll, POLL_BYTES / 4)) return false;
    if (*c->p != TN__TAG_FIXED32(1) || tn__cursor_left(c) < 1 + sizeof(float)) return false;
    c->p += 1 + sizeof(float);
  }
  return found(c, v, n);
}

bool tn__feature_varints(tn__slice run, size_t *n, tn__poll *poll)
{
  const uint8_t *p = (const uint8_t *)run.data;
  unsigned length = 0; /* of the unfinished varint */
  *n = 0;
  for (size_t i = 0; i < run.size;) {
    size_t stop = run.size - i < POLL_BYTES ? run.size : i + POLL_BYTES;
    if (tn__poll_over(poll, (int64_t)(stop - i))) return false;
    for (; i < stop; i++) {
      length = p[i] < 0x80 ? 0 : length + 1;
      *n += length == 0;
      if (length == 10) return false;
    }
  }
  return length == 0;
}

static bool count_packed_ints(tn__cursor *c, tn__feature_values *v, tn__poll *poll)
{
  uint32_t bytes;
  size_t n;
  if (!tn__cursor_length(c, &bytes)) return false;
  tn__cursor_enter(c, bytes);
  if (!tn__feature_varints((tn__slice){ (const char *)c->p, tn__cursor_left(c) }, &n, poll)) return false;
  v->at = c->p;
  c->p = c->end;
  return found(c, v, n);
}

/* Varints with a tag each. */
static bool count_ints(tn__cursor *c, tn__feature_values *v, tn__poll *poll)
{
  uint64_t value;
  size_t n = 0;
  for (; c->p < c->end; n++) {
    if (n % (POLL_BYTES / 4) == 0 && tn__poll_over(poll, POLL_BYTES / 4)) return false;
    if (!tn__cursor_tag(c, TN__TAG_VARINT(1)) || !tn__wire_varint(&c->p, c->end, &value)) return false;
  }
  return found(c, v, n);
}

static bool count_strings(tn__cursor *c, tn__feature_values *v, tn__poll *poll)
{
  tn__slice text;
  size_t n = 0;
  for (; c->p < c->end; n++) {
    if (n % (POLL_BYTES / 4) == 0 && tn__poll_over(poll, POLL_BYTES / 4)) return false;
    if (!tn__cursor_tag(c, TN__TAG_BYTES(1)) || !tn__cursor_bytes(c, &text)) return false;
  }
  return found(c, v, n);
}

/* Numbers, of which the first tag says whether they are packed. */
static bool count_numbers(tn__cursor *c, bool exact, tn__feature_values *v, tn__poll *poll)
{
  uint8_t single = v->dtype == TN_FLOAT ? TN__TAG_FIXED32(1) : TN__TAG_VARINT(1);
  v->packed = *c->p == TN__TAG_BYTES(1);
  if (!v->packed && *c->p != single) return false;
  if (!v->packed) return v->dtype == TN_FLOAT ? count_floats(c, v, poll) : count_ints(c, v, poll);
  c->p++;
  return v->dtype == TN_FLOAT ? count_packed_floats(c, exact, v) : count_packed_ints(c, v, poll);
}

bool tn__feature_count(tn__cursor *c, bool exact, tn__feature_values *v, tn__poll *poll)
{
  uint32_t bytes;
  bool whole = true;
  if (!tn__cursor_length(c, &bytes)) return false;
  const uint8_t *outer = tn__cursor_enter(c, bytes);
  v->at = c->p;
  v->packed = false;
  found(c, v, 0);
  if (v->dtype == TN_STRING) whole = count_strings(c, v, poll);
  else if (c->p < c->end) whole = count_numbers(c, exact, v, poll);
  else whole = !exact || bytes == 0;
  c->end = outer;
  return whole;
}

/* ---- copying ---- */

static void copy_floats(const tn__feature_values *v, float *to)
{
  const uint8_t *p = v->at;
  if (v->packed && v->n > 0) memcpy(to, p, v->n * sizeof *to); /* little-endian, like the machine */
  else
    for (uint32_t i = 0; i < v->n; i++, p += 1 + sizeof *to) memcpy(to + i, p + 1, sizeof *to);
}

static void copy_ints(const tn__feature_values *v, int64_t *to, tn__poll *poll)
{
  tn__cursor c = tn__feature_cursor(v);
  for (uint32_t i = 0; i < v->n; i++) {
    uint64_t value = 0;
    if (i % (POLL_BYTES / 4) == 0 && tn__poll_over(poll, POLL_BYTES / 4)) return;
    c.p += !v->packed; /* the tag */
    if (!tn__wire_varint(&c.p, c.end, &value)) return;
    to[i] = (int64_t)value;
  }
}

static tn_status copy_strings(const tn__feature_values *v, tn_string *to, tn__poll *poll, tn_error *err)
{
  tn__cursor c = tn__feature_cursor(v);
  for (uint32_t i = 0; i < v->n; i++) {
    tn__slice text;
    if (!tn__cursor_tag(&c, TN__TAG_BYTES(1)) || !tn__cursor_bytes(&c, &text)) break;
    if (tn__poll_over(poll, 20 + (int64_t)text.size / 8)) break;
    tn_status st = tn_string_set(to + i, text.data, text.size, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

tn_status tn__feature_copy(const tn__feature_values *v, void *to, tn__poll *poll, tn_error *err)
{
  switch (v->dtype) {
  case TN_FLOAT: copy_floats(v, to); return TN_OK;
  case TN_INT64: copy_ints(v, to, poll); return TN_OK;
  case TN_STRING: return copy_strings(v, to, poll, err);
  default: return TN_OK;
  }
}
