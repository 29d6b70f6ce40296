/* SPDX-License-Identifier: Apache-2.0 */
/* Ten rounds of two 32 x 32 bit multiplications over a counter and a key. */
#include <ops/random/philox.h>

#define ROUNDS 10
#define PRODUCT_0 0xd2511f53u
#define PRODUCT_1 0xcd9e8d57u
#define STEP_0 0x9e3779b9u
#define STEP_1 0xbb67ae85u
#define LANES TN__PHILOX_LANES

void tn__philox_init(tn__philox *p, uint64_t key, uint64_t counter_low, uint64_t counter_high)
{
  p->key[0] = (uint32_t)key;
  p->key[1] = (uint32_t)(key >> 32);
  p->counter[0] = (uint32_t)counter_low;
  p->counter[1] = (uint32_t)(counter_low >> 32);
  p->counter[2] = (uint32_t)counter_high;
  p->counter[3] = (uint32_t)(counter_high >> 32);
}

void tn__philox_skip(tn__philox *p, uint64_t blocks)
{
  uint64_t low = (uint64_t)p->counter[1] << 32 | p->counter[0];
  uint64_t sum = low + blocks;
  p->counter[0] = (uint32_t)sum;
  p->counter[1] = (uint32_t)(sum >> 32);
  if (sum < low && ++p->counter[2] == 0) p->counter[3]++;
}

void tn__philox_next(tn__philox *p, uint32_t *words)
{
  uint32_t a = p->counter[0], b = p->counter[1], c = p->counter[2], d = p->counter[3];
  uint32_t k0 = p->key[0], k1 = p->key[1];
  for (int round = 0; round < ROUNDS; round++, k0 += STEP_0, k1 += STEP_1) {
    uint64_t x = (uint64_t)PRODUCT_0 * a, y = (uint64_t)PRODUCT_1 * c;
    a = (uint32_t)(y >> 32) ^ b ^ k0;
    b = (uint32_t)y;
    c = (uint32_t)(x >> 32) ^ d ^ k1;
    d = (uint32_t)x;
  }
  words[0] = a;
  words[1] = b;
  words[2] = c;
  words[3] = d;
  tn__philox_skip(p, 1);
}

/* LANES blocks at a time, so that the inner loops are vectorised. */
static void lanes(tn__philox *p, uint32_t *words)
{
  uint32_t a[LANES], b[LANES], c[LANES], d[LANES], k0 = p->key[0], k1 = p->key[1];
  for (int i = 0; i < LANES; i++) {
    a[i] = p->counter[0];
    b[i] = p->counter[1];
    c[i] = p->counter[2];
    d[i] = p->counter[3];
    tn__philox_skip(p, 1);
  }
  for (int round = 0; round < ROUNDS; round++, k0 += STEP_0, k1 += STEP_1)
    for (int i = 0; i < LANES; i++) {
      uint64_t x = (uint64_t)PRODUCT_0 * a[i], y = (uint64_t)PRODUCT_1 * c[i];
      a[i] = (uint32_t)(y >> 32) ^ b[i] ^ k0;
      b[i] = (uint32_t)y;
      c[i] = (uint32_t)(x >> 32) ^ d[i] ^ k1;
      d[i] = (uint32_t)x;
    }
  for (int i = 0; i < LANES; i++, words += 4) {
    words[0] = a[i];
    words[1] = b[i];
    words[2] = c[i];
    words[3] = d[i];
  }
}

void tn__philox_blocks(tn__philox *p, uint32_t *words, int64_t n)
{
  for (; n >= LANES; n -= LANES, words += 4 * LANES) lanes(p, words);
  for (; n > 0; n--, words += 4) tn__philox_next(p, words);
}
