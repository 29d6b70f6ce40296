/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a tensor with the expected one, and finds the first difference. A float is correct if
 * |got - want| <= atol + rtol * |want|; NaN equals NaN, infinities equal those of the same sign;
 * everything else must be equal, except for integers with an int_atol. */
#include "tests/oracle/run/oracle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* One element, read into the widest type of its kind. */
typedef enum element_kind { SIGNED, UNSIGNED, REAL, COMPLEX, TEXT, OPAQUE } element_kind;

typedef struct element {
  element_kind kind;
  int64_t i;
  uint64_t u;
  double re;
  double im;
  const char *text;
  size_t length;
} element;

static double half_to_double(uint16_t bits)
{
  int exponent = (bits >> 10) & 31;
  double value, fraction = bits & 1023;
  if (exponent == 31)
    value = fraction != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    value = ldexp(fraction, -24);
  else
    value = ldexp(fraction + 1024, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

static double bfloat16_to_double(uint16_t bits)
{
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
}

/* The first byte of a half. */
static double e5m2_to_double(uint8_t bits) { return half_to_double((uint16_t)(bits << 8)); }

/* No infinities; all ones is NaN. */
static double e4m3fn_to_double(uint8_t bits)
{
  int exponent = (bits >> 3) & 15, fraction = bits & 7;
  double value = exponent == 0 ? ldexp(fraction, -9) : ldexp(fraction + 8, exponent - 10);
  if (exponent == 15 && fraction == 7) value = NAN;
  return bits & 0x80 ? -value : value;
}

#define AS(type) ((const type *)data)[i]

static void read_int(tn_dtype dtype, const void *data, int64_t i, element *e)
{
  e->kind = SIGNED;
  switch (dtype) {
  case TN_INT8:
  case TN_QINT8:
  case TN_INT4:
  case TN_INT2: e->i = AS(int8_t); return;
  case TN_INT16:
  case TN_QINT16: e->i = AS(int16_t); return;
  case TN_INT32:
  case TN_QINT32: e->i = AS(int32_t); return;
  case TN_INT64: e->i = AS(int64_t); return;
  default: break;
  }
  e->kind = UNSIGNED;
  switch (dtype) {
  case TN_UINT8:
  case TN_QUINT8:
  case TN_BOOL:
  case TN_UINT4:
  case TN_UINT2: e->u = AS(uint8_t); return;
  case TN_UINT16:
  case TN_QUINT16: e->u = AS(uint16_t); return;
  case TN_UINT32: e->u = AS(uint32_t); return;
  case TN_UINT64: e->u = AS(uint64_t); return;
  default: e->kind = OPAQUE;
  }
}

static void read_element(const tn_tensor *tensor, int64_t i, element *e)
{
  const void *data = tn_tensor_data(tensor);
  tn_dtype dtype = tn_tensor_dtype(tensor);
  memset(e, 0, sizeof(*e));
  e->kind = REAL;
  switch (dtype) {
  case TN_FLOAT: e->re = AS(float); return;
  case TN_DOUBLE: e->re = AS(double); return;
  case TN_HALF: e->re = half_to_double(AS(uint16_t)); return;
  case TN_BFLOAT16: e->re = bfloat16_to_double(AS(uint16_t)); return;
  case TN_FLOAT8_E5M2: e->re = e5m2_to_double(AS(uint8_t)); return;
  case TN_FLOAT8_E4M3FN: e->re = e4m3fn_to_double(AS(uint8_t)); return;
  case TN_COMPLEX64:
    *e = (element){ .kind = COMPLEX, .re = ((const float *)data)[2 * i], .im = ((const float *)data)[2 * i + 1] };
    return;
  case TN_COMPLEX128:
    *e = (element){ .kind = COMPLEX, .re = ((const double *)data)[2 * i], .im = ((const double *)data)[2 * i + 1] };
    return;
  case TN_STRING:
    e->kind = TEXT;
    tn_tensor_get_string(tensor, i, &e->text, &e->length, NULL);
    return;
  default: read_int(dtype, data, i, e);
  }
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static void show_text(const element *e, char *out, size_t size)
{
  size_t n = 0;
  if (size < 8) return;
  out[n++] = '\'';
  for (size_t i = 0; i < e->length && n + 8 < size; i++) {
    unsigned char c = (unsigned char)e->text[i];
    if (c >= 32 && c < 127)
      out[n++] = (char)c;
    else
      n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
  }
  snprintf(out + n, size - n, "' (%zu bytes)", e->length);
}

static void show(const element *e, tn_dtype dtype, char *out, size_t size)
{
  int digits = dtype == TN_DOUBLE || dtype == TN_COMPLEX128 ? 17 : 9;
  switch (e->kind) {
  case SIGNED: snprintf(out, size, "%" PRId64, e->i); break;
  case UNSIGNED: snprintf(out, size, "%" PRIu64, e->u); break;
  case REAL: snprintf(out, size, "%.*g", digits, e->re); break;
  case COMPLEX: snprintf(out, size, "%.*g%+.*gj", digits, e->re, digits, e->im); break;
  case TEXT: show_text(e, out, size); break;
  case OPAQUE: snprintf(out, size, "?"); break;
  }
}

static void show_shape(const tn_tensor *tensor, char *out, size_t size)
{
  int32_t rank = tn_tensor_rank(tensor);
  size_t n = (size_t)snprintf(out, size, "[");
  for (int32_t d = 0; d < rank && n < size; d++)
    n += (size_t)snprintf(out + n, size - n, "%s%" PRId64, d ? "," : "", tn_tensor_dims(tensor)[d]);
  if (n < size) snprintf(out + n, size - n, "]");
}

/* The position of element `at`, as [2,0,1]. */
static void show_place(const tn_tensor *tensor, int64_t at, char *out, size_t size)
{
  int32_t rank = tn_tensor_rank(tensor);
  const int64_t *dims = tn_tensor_dims(tensor);
  int64_t below = tn_tensor_elements(tensor);
  size_t n = (size_t)snprintf(out, size, "[");
  for (int32_t d = 0; d < rank && n < size; d++) {
    below /= dims[d];
    n += (size_t)snprintf(out + n, size - n, "%s%" PRId64, d ? "," : "", at / below);
    at %= below;
  }
  if (n < size) snprintf(out + n, size - n, "]");
}

static bool report_element(const oracle_tolerance *tolerance, const char *name, const tn_tensor *want,
                           const tn_tensor *got, int64_t at, int64_t n_bad, oracle_result *result)
{
  element w, g;
  char place[120], wanted[160], found[160], rest[80] = "";
  read_element(got, at, &g);
  show(&g, tn_tensor_dtype(got), found, sizeof(found));
  show_place(got, at, place, sizeof(place));
  snprintf(rest, sizeof(rest), "%" PRId64 " of %" PRId64 " differ", n_bad, tn_tensor_elements(got));
  if (tolerance->mode == ORACLE_RANGE)
    return oracle_fail(result, "%s (%s): element %" PRId64 " at %s: got %s, expected one in [%g, %g] (%s)", name,
                       tn_dtype_name(tn_tensor_dtype(got)), at, place, found, tolerance->low, tolerance->high, rest);
  read_element(want, at, &w);
  show(&w, tn_tensor_dtype(want), wanted, sizeof(wanted));
  return oracle_fail(result, "%s (%s): element %" PRId64 " at %s: got %s, expected %s (%s)", name,
                     tn_dtype_name(tn_tensor_dtype(got)), at, place, found, wanted, rest);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static bool close_to(double want, double got, const oracle_tolerance *t)
{
  if (want == got || (isnan(want) && isnan(got))) return true;
  if (isinf(want) || isinf(got)) return false; /* the tolerance of an infinity is infinite */
  return fabs(got - want) <= t->atol + t->rtol * fabs(want);
}

/* A complex number is correct as a whole, or if each part is. */
static bool complex_close(const element *want, const element *got, const oracle_tolerance *t)
{
  double size = hypot(want->re, want->im), distance = hypot(got->re - want->re, got->im - want->im);
  if (isfinite(size) && distance <= t->atol + t->rtol * size) return true;
  return close_to(want->re, got->re, t) && close_to(want->im, got->im, t);
}

static double as_double(const element *e)
{
  if (e->kind == SIGNED) return (double)e->i;
  return e->kind == UNSIGNED ? (double)e->u : e->re;
}

static bool same(const element *want, const element *got, tn_dtype dtype, const oracle_tolerance *t)
{
  switch (want->kind) {
  case REAL: return close_to(want->re, got->re, t);
  case COMPLEX: return complex_close(want, got, t);
  case TEXT:
    return want->length == got->length && (want->length == 0 || memcmp(want->text, got->text, want->length) == 0);
  case SIGNED:
  case UNSIGNED:
    if (want->i == got->i && want->u == got->u) return true;
    return dtype != TN_BOOL && fabs(as_double(got) - as_double(want)) <= t->int_atol && t->int_atol > 0;
  case OPAQUE: return false;
  }
  return false;
}

static bool in_range(const element *got, const oracle_tolerance *t)
{
  double value = as_double(got);
  return value >= t->low && value <= t->high;
}

static bool compare_elements(const oracle_tolerance *t, const char *name, const tn_tensor *want, const tn_tensor *got,
                             oracle_result *result)
{
  int64_t n = tn_tensor_elements(got), n_bad = 0, first = 0;
  for (int64_t i = 0; i < n; i++) {
    element w, g;
    read_element(got, i, &g);
    read_element(want, i, &w);
    if (t->mode == ORACLE_RANGE ? in_range(&g, t) : same(&w, &g, tn_tensor_dtype(want), t)) continue;
    if (n_bad++ == 0) first = i;
  }
  return n_bad == 0 || report_element(t, name, want, got, first, n_bad, result);
}

static bool compare_mean(const oracle_tolerance *t, const char *name, const tn_tensor *want, const tn_tensor *got,
                         oracle_result *result)
{
  int64_t n = tn_tensor_elements(got);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    element w, g;
    read_element(got, i, &g);
    read_element(want, i, &w);
    sum += fabs(as_double(&g) - as_double(&w));
  }
  double mean = n ? sum / (double)n : 0;
  return mean <= t->limit ||
         oracle_fail(result, "%s: mean absolute difference %g, wanted at most %g", name, mean, t->limit);
}

bool oracle_compare(const oracle_tolerance *tolerance, const char *name, const tn_tensor *want, const tn_tensor *got,
                    oracle_result *result)
{
  if (tn_tensor_dtype(want) != tn_tensor_dtype(got))
    return oracle_fail(result, "%s: got dtype %s, expected %s", name, tn_dtype_name(tn_tensor_dtype(got)),
                       tn_dtype_name(tn_tensor_dtype(want)));
  int32_t rank = tn_tensor_rank(want);
  bool same_shape = rank == tn_tensor_rank(got);
  for (int32_t d = 0; same_shape && d < rank; d++) same_shape = tn_tensor_dims(want)[d] == tn_tensor_dims(got)[d];
  if (!same_shape) {
    char wanted[300], found[300];
    show_shape(want, wanted, sizeof(wanted));
    show_shape(got, found, sizeof(found));
    return oracle_fail(result, "%s: got shape %s, expected %s", name, found, wanted);
  }
  if (tolerance->mode == ORACLE_SHAPE) return true;
  if (tn_tensor_elements(got) > 0 && !tn_tensor_data(got))
    return oracle_fail(result, "%s: the fetched tensor is not in host memory", name);
  if (tolerance->mode == ORACLE_MEAN_ABS) return compare_mean(tolerance, name, want, got, result);
  return compare_elements(tolerance, name, want, got, result);
}
