/* SPDX-License-Identifier: Apache-2.0 */
#include <core/tensor/tensor_internal.h>
#include <ops/sparse/cross.h>
#include <ops/string/hash/fingerprint.h>
#include <string.h>

/* ---- rows ---- */

void tn__cross_rewind(tn__cross *c)
{
  for (uint32_t i = 0; i < c->n; i++) {
    c->columns[i].at = c->columns[i].count = 0;
    c->columns[i].row = -1;
  }
}

/* The values of a row follow those of the rows before it, of which some may not have been visited. Entries whose rows
 * descend are never reached, unless skip_low is set: then they are in the row of the entry before them, and those of
 * rows below 0 in row 0. */
static void sparse_row(tn__cross_column *c, int64_t row)
{
  int64_t n = c->values->count, last = c->row + 1;
  bool low = c->skip_low && row == 0;
  c->at += c->count;
  for (; !low && c->at < n && c->indices[2 * c->at] < row; c->at++) {
    if (!c->skip_low && c->indices[2 * c->at] < last) break;
    last = c->indices[2 * c->at];
  }
  c->count = 0;
  c->row = row;
  for (int64_t i = c->at; i < n; i++) {
    int64_t of = c->indices[2 * i];
    if (c->skip_low ? of > row : of != row) break;
    c->count++;
  }
}

tn_status tn__cross_row(tn__cross *cross, int64_t row, int64_t *count, tn_error *err)
{
  bool fits = true;
  *count = 1;
  for (uint32_t i = 0; i < cross->n; i++) {
    tn__cross_column *c = &cross->columns[i];
    if (c->indices != NULL) {
      sparse_row(c, row);
    } else if (c->splits != NULL) {
      c->at = tn__view_int_at(c->splits, row);
      c->count = tn__view_int_at(c->splits, row + 1) - c->at;
    } else {
      c->at = row * c->width;
      c->count = c->width;
    }
    if (c->count < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "row %lld of column %u has %lld values", (long long)row, i,
                          (long long)c->count);
    fits = !__builtin_mul_overflow(*count, c->count, count) && fits;
  }
  for (uint32_t i = 0; i < cross->n; i++)
    if (cross->columns[i].count == 0) *count = 0, fits = true;
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "row %lld has too many combinations", (long long)row);
}

int64_t tn__cross_next_row(const tn__cross *cross, int64_t row)
{
  int64_t next = row + 1;
  for (uint32_t i = 0; i < cross->n; i++) {
    const tn__cross_column *c = &cross->columns[i];
    if (c->indices == NULL) continue;
    int64_t at = c->at + c->count;
    if (at >= c->values->count) return INT64_MAX;
    if (c->indices[2 * at] > next) next = c->indices[2 * at];
    else if (!c->skip_low && c->indices[2 * at] < row + 1) return INT64_MAX; /* never reached */
  }
  return next;
}

/* ---- combinations ---- */

/* The low 4 bytes of a number, the lowest first. TensorFlow hashes these only. */
static void low_bytes(int64_t number, unsigned char *out)
{
  for (int b = 0; b < 4; b++) out[b] = (unsigned char)((uint64_t)number >> 8 * b);
}

static void number_part(tn__cross_column *c, const tn__cross *cross, int64_t number)
{
  unsigned char low[4];
  low_bytes(number, low);
  if (cross->kind == TN__CROSS_TEXT)
    c->text = (tn__slice){ c->digits, (size_t)tn__snprintf(c->digits, sizeof c->digits, "%lld", (long long)number) };
  else if (cross->kind == TN__CROSS_HASH_STRONG) c->hash = tn__siphash(cross->key, low, sizeof low);
  else if (cross->kind == TN__CROSS_HASH_KEYED && c->indices != NULL) c->hash = tn__fingerprint64(low, sizeof low);
  else c->hash = (uint64_t)number;
}

/* Sets the column's part of the combination. */
static void set_part(tn__cross_column *c, const tn__cross *cross)
{
  size_t n;
  if (c->values->dtype == TN_INT64) {
    number_part(c, cross, ((const int64_t *)c->values->data)[c->at + c->k]);
    return;
  }
  const char *text = tn_string_data((const tn_string *)c->values->data + c->at + c->k, &n);
  if (cross->kind == TN__CROSS_TEXT) c->text = (tn__slice){ text, n };
  else if (cross->kind == TN__CROSS_HASH_STRONG) c->hash = tn__siphash(cross->key, text, n);
  else c->hash = tn__fingerprint64(text, n);
}

void tn__cross_first(tn__cross *cross)
{
  for (uint32_t i = 0; i < cross->n; i++) {
    cross->columns[i].k = 0;
    set_part(&cross->columns[i], cross);
  }
}

void tn__cross_next(tn__cross *cross)
{
  for (uint32_t i = cross->n; i-- > 0;) {
    tn__cross_column *c = &cross->columns[i];
    bool more = ++c->k < c->count;
    if (!more) c->k = 0;
    set_part(c, cross);
    if (more) return;
  }
}

tn_status tn__cross_text(const tn__cross *cross, tn__slice separator, tn_string *out, tn_error *err)
{
  size_t total = 0;
  bool fits = true;
  for (uint32_t i = 0; i < cross->n; i++) {
    fits = tn__size_add(total, cross->columns[i].text.size, &total) && fits;
    if (i > 0) fits = tn__size_add(total, separator.size, &total) && fits;
  }
  char *to = fits ? tn__string_reserve(out, total) : NULL;
  if (to == NULL) return tn__no_memory(err, "text of a cross", total);
  for (uint32_t i = 0; i < cross->n; i++) {
    tn__slice text = cross->columns[i].text;
    if (i > 0 && separator.size > 0) memcpy(to, separator.data, separator.size);
    if (i > 0) to += separator.size;
    if (text.size > 0) memcpy(to, text.data, text.size);
    to += text.size;
  }
  return TN_OK;
}

static uint64_t shift_mix(uint64_t x) { return x ^ x >> 47; }

/* The hash of two hashes in sequence, as TensorFlow joins fingerprints. */
static uint64_t join(uint64_t a, uint64_t b)
{
  const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
  uint64_t x = ((a ^ m) ^ shift_mix(b * m) * m) * m;
  return shift_mix(shift_mix(x) * m);
}

int64_t tn__cross_number(const tn__cross *cross, const uint64_t *start, int64_t buckets)
{
  uint64_t x = start != NULL ? *start : cross->columns[0].hash;
  for (uint32_t i = start != NULL ? 0 : 1; i < cross->n; i++) x = join(x, cross->columns[i].hash);
  return (int64_t)(x % (buckets > 0 ? (uint64_t)buckets : (uint64_t)INT64_MAX));
}
