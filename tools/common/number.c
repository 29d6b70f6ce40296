/* SPDX-License-Identifier: Apache-2.0 */
/* Number types: the small floats, ranges of integers, shortest decimal digits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

typedef struct small_float {
  tn_dtype dtype;
  int mantissa; /* bits */
  int bias;
  int bits;
  uint32_t largest;  /* the largest finite value */
  uint32_t infinity; /* 0: the type has no infinity */
  uint32_t nan;
  bool minus_zero;
} small_float;

static const small_float small_floats[] = {
  { TN_HALF, 10, 15, 16, 0x7BFF, 0x7C00, 0x7E00, true },  { TN_BFLOAT16, 7, 127, 16, 0x7F7F, 0x7F80, 0x7FC0, true },
  { TN_FLOAT8_E5M2, 2, 15, 8, 0x7B, 0x7C, 0x7E, true },   { TN_FLOAT8_E4M3FN, 3, 7, 8, 0x7E, 0, 0x7F, true },
  { TN_FLOAT8_E4M3FNUZ, 3, 8, 8, 0x7F, 0, 0x80, false },  { TN_FLOAT8_E4M3B11FNUZ, 3, 11, 8, 0x7F, 0, 0x80, false },
  { TN_FLOAT8_E5M2FNUZ, 2, 16, 8, 0x7F, 0, 0x80, false },
};

static const small_float *find_small(tn_dtype dtype)
{
  for (size_t i = 0; i < sizeof(small_floats) / sizeof(small_floats[0]); i++)
    if (small_floats[i].dtype == dtype) return &small_floats[i];
  return NULL;
}

bool tool_float_is_small(tn_dtype dtype) { return find_small(dtype) != NULL; }

double tool_float_decode(tn_dtype dtype, uint32_t bits)
{
  const small_float *f = find_small(dtype);
  uint32_t sign = 1u << (f->bits - 1), magnitude = bits & (sign - 1);
  bool minus = (bits & sign) != 0;
  if (!f->minus_zero && bits == f->nan) return NAN;
  if (f->infinity != 0 && magnitude == f->infinity) return minus ? -INFINITY : INFINITY;
  if (magnitude > f->largest) return NAN;
  int exponent = (int)(magnitude >> f->mantissa);
  double fraction = (double)(magnitude & ((1u << f->mantissa) - 1));
  if (exponent > 0) fraction += (double)(1u << f->mantissa);
  double value = ldexp(fraction, (exponent > 0 ? exponent : 1) - f->bias - f->mantissa);
  return minus ? -value : value;
}

double tool_float_load(tn_dtype dtype, const void *at)
{
  if (dtype == TN_FLOAT) {
    float single;
    memcpy(&single, at, sizeof(single));
    return (double)single;
  }
  if (dtype == TN_DOUBLE) {
    double value;
    memcpy(&value, at, sizeof(value));
    return value;
  }
  uint32_t bits = 0;
  memcpy(&bits, at, tn_dtype_size(dtype));
  return tool_float_decode(dtype, bits);
}

bool tool_float_encode(tn_dtype dtype, double value, uint32_t *bits)
{
  const small_float *f = find_small(dtype);
  uint32_t sign = signbit(value) ? 1u << (f->bits - 1) : 0;
  *bits = f->nan;
  if (isnan(value)) return true;
  if (isinf(value)) {
    *bits = f->infinity | sign;
    return f->infinity != 0;
  }
  int exponent;
  frexp(value, &exponent);
  int e = exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
  if (value == 0) e = 1 - f->bias;
  /* In units in the last place; a carry propagates into the exponent. */
  double units = nearbyint(ldexp(fabs(value), f->mantissa - e));
  double code = units + ldexp((double)(e + f->bias - 1), f->mantissa);
  if (code > (double)f->largest) return false;
  *bits = (uint32_t)code;
  if (*bits != 0 || f->minus_zero) *bits |= sign;
  return true;
}

bool tool_integer_range(tn_dtype dtype, int64_t *min, uint64_t *max)
{
  static const struct {
    tn_dtype dtype;
    int bits;
    bool has_sign;
  } types[] = {
    { TN_INT8, 8, true },      { TN_INT16, 16, true },   { TN_INT32, 32, true },   { TN_INT64, 64, true },
    { TN_UINT8, 8, false },    { TN_UINT16, 16, false }, { TN_UINT32, 32, false }, { TN_UINT64, 64, false },
    { TN_QINT8, 8, true },     { TN_QINT16, 16, true },  { TN_QINT32, 32, true },  { TN_QUINT8, 8, false },
    { TN_QUINT16, 16, false }, { TN_INT4, 4, true },     { TN_UINT4, 4, false },   { TN_INT2, 2, true },
    { TN_UINT2, 2, false },
  };
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
    if (types[i].dtype != dtype) continue;
    int magnitude = types[i].bits - (types[i].has_sign ? 1 : 0);
    *max = magnitude == 64 ? UINT64_MAX : (UINT64_C(1) << magnitude) - 1;
    *min = types[i].has_sign ? -(int64_t)*max - 1 : 0;
    return true;
  }
  return false;
}

static bool reads_back(tn_dtype dtype, const char *text, double value)
{
  if (dtype == TN_DOUBLE) return strtod(text, NULL) == value;
  /* Two digits identify every 8-bit value but would print 448 as 450, so require the float32 digits. */
  if (dtype == TN_FLOAT || tn_dtype_size(dtype) == 1) return strtof(text, NULL) == (float)value;
  uint32_t bits;
  return tool_float_encode(dtype, strtod(text, NULL), &bits) && tool_float_decode(dtype, bits) == value;
}

void tool_shortest_digits(tn_dtype dtype, double value, char digits[TOOL_DIGITS], int *exponent)
{
  char text[48];
  for (int n = 1; n <= 17; n++) {
    snprintf(text, sizeof(text), "%.*e", n - 1, value);
    if (reads_back(dtype, text, value)) break;
  }
  size_t length = 0;
  const char *at = text;
  for (; *at != 'e' && *at != '\0'; at++)
    if (*at >= '0' && *at <= '9' && length < TOOL_DIGITS - 1) digits[length++] = *at;
  while (length > 1 && digits[length - 1] == '0') length--;
  digits[length] = '\0';
  *exponent = (*at == 'e' ? (int)strtol(at + 1, NULL, 10) : 0) + 1;
}
