/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of quantised values from one range, and dtype, to another. */
#ifndef OPS_QUANTIZED_REQUANTIZED_H
#define OPS_QUANTIZED_REQUANTIZED_H

#include <ops/quantized/levels.h>

typedef struct tn__requantized {
  tn_dtype from_dtype, to_dtype;
  const void *from;
  void *to;
  tn__levels levels;
  tn__quantizer quantizer;
  /* From qint32 to quint8: fixed point with 16 bits after the point. */
  int64_t factor, add;
  bool fixed;
} tn__requantized;

tn__requantized tn__requantized_of(const tn_view *from, float from_min, float from_max, const tn_view *to,
                                   float to_min, float to_max);
/* Converts values [begin, end); user is a tn__requantized. */
void tn__requantize_part(void *user, int64_t begin, int64_t end);
/* Converts at most TN__LEVELS_BLOCK values from `at` on to int32. */
void tn__requantize_block(const tn__requantized *r, int64_t at, int64_t n, int32_t *q);

#endif
