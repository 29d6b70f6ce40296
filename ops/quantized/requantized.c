/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/quantized/requantized.h>

#define POINT 16

/* x * 2^POINT as an integer; 0 if it is not finite. */
static int64_t fixed_of(double x)
{
  int64_t i = tn__double_to_int(x);
  return i == INT64_MIN ? 0 : i;
}

static void plan_fixed(tn__requantized *r, float from_min, float from_max, float to_min, float to_max)
{
  float from_range = from_max - from_min, to_range = to_max - to_min;
  float inverse = to_range == 0 ? 0 : (float)(255.0 / to_range), middle = (float)((from_min + from_max) / 2.0);
  int64_t before = fixed_of((double)(middle * inverse * (1 << POINT)));
  int64_t after = to_range == 0 ? 0 : fixed_of(round((1 << POINT) * (to_min * 255.0) / to_range));
  r->fixed = true;
  r->factor = to_range == 0 ? 0 : fixed_of(255.0 * (1 << POINT) * from_range / to_range);
  r->add = (int64_t)((uint64_t)before - (uint64_t)after + (1u << (POINT - 1)));
}

tn__requantized tn__requantized_of(const tn_view *from, float from_min, float from_max, const tn_view *to,
                                   float to_min, float to_max)
{
  tn__requantized r = { .from_dtype = from->dtype, .to_dtype = to->dtype, .from = from->data, .to = to->data };
  if (from->dtype == TN_QINT32 && to->dtype == TN_QUINT8) {
    plan_fixed(&r, from_min, from_max, to_min, to_max);
    return r;
  }
  r.levels = tn__levels_of(from->dtype, from_min, from_max);
  r.quantizer = tn__quantizer_of(to->dtype, to_min, to_max);
  return r;
}

void tn__requantize_block(const tn__requantized *r, int64_t at, int64_t n, int32_t *q)
{
  tn__levels_load(r->from_dtype, r->from, at, n, q);
  if (!r->fixed) {
    const tn__levels levels = r->levels;
    const tn__quantizer quantizer = r->quantizer;
    for (int64_t i = 0; i < n; i++) q[i] = tn__quantizer_value(&quantizer, tn__levels_number(&levels, q[i]));
    return;
  }
  const int64_t factor = r->factor, add = r->add;
  for (int64_t i = 0; i < n; i++) {
    int64_t product = (int64_t)((uint64_t)factor * (uint64_t)(int64_t)q[i]);
    int64_t v = (int64_t)((uint64_t)(product >> 32) + (uint64_t)add) >> POINT;
    v = v < 0 ? 0 : v;
    q[i] = (int32_t)(v > 255 ? 255 : v);
  }
}

void tn__requantize_part(void *user, int64_t begin, int64_t end)
{
  const tn__requantized *r = user;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t at = begin, n; at < end; at += n) {
    n = end - at < TN__LEVELS_BLOCK ? end - at : TN__LEVELS_BLOCK;
    tn__requantize_block(r, at, n, q);
    tn__levels_store(r->to_dtype, r->to, at, n, q);
  }
}
