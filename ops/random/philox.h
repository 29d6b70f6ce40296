/* SPDX-License-Identifier: Apache-2.0 */
/* Philox 4x32-10, a counter-based random number generator: block n of four words can be computed
 * without those before it, so threads can fill parts of a tensor and get the same numbers as a
 * single thread. */
#ifndef TN_OPS_RANDOM_PHILOX_H
#define TN_OPS_RANDOM_PHILOX_H

#include <stdint.h>

typedef struct tn__philox {
  uint32_t counter[4]; /* of the next block, lowest word first */
  uint32_t key[2];
} tn__philox;

#define TN__PHILOX_LANES 16 /* blocks that are computed at a time */

/* The counter as two words of 64 bits, lowest first. */
void tn__philox_init(tn__philox *p, uint64_t key, uint64_t counter_low, uint64_t counter_high);
void tn__philox_skip(tn__philox *p, uint64_t blocks);
/* The next block, 4 words. */
void tn__philox_next(tn__philox *p, uint32_t *words);
/* The next n blocks. */
void tn__philox_blocks(tn__philox *p, uint32_t *words, int64_t n);

/* Reads words and numbers one by one. */
typedef struct tn__philox_words {
  tn__philox generator;
  uint32_t block[4];
  uint32_t used; /* words used of the block; 4 = none left */
} tn__philox_words;

static inline void tn__philox_words_init(tn__philox_words *w, const tn__philox *p)
{
  w->generator = *p;
  w->used = 4;
}

static inline uint32_t tn__philox_word(tn__philox_words *w)
{
  if (w->used == 4) {
    tn__philox_next(&w->generator, w->block);
    w->used = 0;
  }
  return w->block[w->used++];
}

/* Uniform numbers in [0, 1) from words: all bits of the fraction are random. */
static inline float tn__uniform_float(uint32_t word)
{
  union { uint32_t u; float f; } v = { (word & 0x7fffffu) | 0x3f800000u };
  return v.f - 1.0f;
}

static inline double tn__uniform_double(uint32_t high, uint32_t low)
{
  union { uint64_t u; double f; } v = { (uint64_t)((high & 0xfffffu) | 0x3ff00000u) << 32 | low };
  return v.f - 1.0;
}

#endif
