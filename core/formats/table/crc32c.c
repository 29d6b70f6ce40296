/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C. The processor's instruction takes 8 bytes at a time, but its result arrives only after about three cycles,
 * so large inputs are read as three streams whose CRCs are joined. Where the processor multiplies polynomials in wide
 * registers, too, another unit of it does half of the work meanwhile. Without the instruction: slicing by 8, with
 * tables.
 *
 * A CRC is a polynomial over GF(2) modulo P, the bit 31 being the coefficient of x^0. A byte that follows multiplies it
 * by x^8, so a run of n bytes that follows multiplies it by x^(8n). */
#include <core/formats/table/crc32c.h>

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HARDWARE __attribute__((target("sse4.2")))
#define TAKE_8(crc, word) (uint32_t)_mm_crc32_u64(crc, word)
#define TAKE_1(crc, byte) _mm_crc32_u8(crc, byte)
static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifdef __clang__
#define HARDWARE __attribute__((target("crc")))
#define TAKE_8(crc, word) __builtin_arm_crc32cd(crc, word)
#define TAKE_1(crc, byte) __builtin_arm_crc32cb(crc, byte)
#else
#define HARDWARE __attribute__((target("+crc")))
#define TAKE_8(crc, word) __builtin_aarch64_crc32cx(crc, word)
#define TAKE_1(crc, byte) __builtin_aarch64_crc32cb(crc, byte)
#endif
static bool has_instruction(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif

#define P 0x82f63b78u /* without x^32, which is implied */

/* a * b modulo P. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
  uint32_t product = 0;
  for (int i = 0; i < 32; i++) {
    product ^= b & (0 - (a >> 31));
    a <<= 1;
    b = b >> 1 ^ (P & (0 - (b & 1)));
  }
  return product;
}

uint32_t tn__crc32c_join(uint32_t first, uint32_t second, uint64_t size)
{
  uint32_t power = 1u << 23; /* x^8, then its squares */
  for (; size != 0; size >>= 1) {
    if (size & 1) first = multiply(first, power);
    power = multiply(power, power);
  }
  return first ^ second;
}

static inline uint64_t word_at(const uint8_t *p)
{
  uint64_t word;
  memcpy(&word, p, sizeof(word)); /* little-endian, like the machine */
  return word;
}

/* ---- by the processor ---- */

#ifdef HARDWARE
#define STREAM ((size_t)8192) /* bytes of one of the three streams */
#define SHIFT_1 0x28461564u   /* x^(8 * STREAM) */
#define SHIFT_2 0xbf455269u   /* x^(8 * 2 * STREAM) */

HARDWARE static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
  for (; size >= 3 * STREAM; p += 3 * STREAM, size -= 3 * STREAM) {
    uint32_t first = crc, second = 0, third = 0;
    for (size_t i = 0; i < STREAM; i += 8) {
      first = TAKE_8(first, word_at(p + i));
      second = TAKE_8(second, word_at(p + i + STREAM));
      third = TAKE_8(third, word_at(p + i + 2 * STREAM));
    }
    crc = multiply(first, SHIFT_2) ^ multiply(second, SHIFT_1) ^ third;
  }
  for (; size >= 8; p += 8, size -= 8) crc = TAKE_8(crc, word_at(p));
  for (; size > 0; p++, size--) crc = TAKE_1(crc, *p);
  return crc;
}
#endif

/* ---- by the instruction and wide products ---- */

#if defined(__x86_64__)
#define WIDE __attribute__((target("sse4.2,avx2,pclmul,vpclmulqdq")))
#define ROUNDS 64
#define FOLD 256 /* bytes of a round that are folded: 8 registers */
#define TAKE 80  /* bytes of a round of each of the three streams */
#define FOLDED ((size_t)ROUNDS * FOLD)
#define PART ((size_t)ROUNDS * TAKE)
#define BLOCK (FOLDED + 3 * PART)
/* x^(8 * FOLD + 63), x^(8 * FOLD - 1): bits 0 to 63 of 128 have the higher powers. */
#define FOLD_LOW ((int64_t)(UINT64_C(0xe9a5d8be) << 32))
#define FOLD_HIGH ((int64_t)(UINT64_C(0x1426a815) << 32))
#define SHIFT_BLOCK 0x30a53002   /* x^(8 * BLOCK - 33) */
#define SHIFT_3_PARTS 0x278840ed /* x^(8 * 3 * PART - 33) */
#define SHIFT_2_PARTS 0xe2f1a204 /* x^(8 * 2 * PART - 33) */
#define SHIFT_1_PART 0xca110698  /* x^(8 * PART - 33) */

static bool has_wide_products(void)
{
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

/* a * x^n, for the power x^(n - 33): the sum of such products is reduced by the instruction. */
WIDE static inline __m128i shifted(uint32_t a, uint32_t power)
{
  return _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)power), 0);
}

/* The registers are a sum of polynomials; each round multiplies it by x^(8 * FOLD) and adds the bytes that follow. */
WIDE static inline __m256i folded(__m256i sum, const uint8_t *p)
{
  const __m256i powers = _mm256_set_epi64x(FOLD_HIGH, FOLD_LOW, FOLD_HIGH, FOLD_LOW);
  __m256i low = _mm256_clmulepi64_epi128(sum, powers, 0x00), high = _mm256_clmulepi64_epi128(sum, powers, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), _mm256_loadu_si256((const __m256i *)p));
}

/* A block: first the bytes that are folded, then the three streams. */
WIDE static uint32_t take_block(uint32_t crc, const uint8_t *p)
{
  const uint8_t *q = p + FOLDED, *end = q;
  __m256i sums[FOLD / 32];
  uint32_t sum = 0, first = 0, second = 0, third = 0;
  for (int k = 0; k < FOLD / 32; k++) sums[k] = _mm256_setzero_si256();
  for (; p < end; p += FOLD) {
#pragma GCC unroll 8
    for (int k = 0; k < FOLD / 32; k++) sums[k] = folded(sums[k], p + 32 * k);
#pragma GCC unroll 10
    for (int i = 0; i < TAKE; i += 8, q += 8) {
      first = TAKE_8(first, word_at(q));
      second = TAKE_8(second, word_at(q + PART));
      third = TAKE_8(third, word_at(q + 2 * PART));
    }
  }
  for (int k = 0; k < FOLD / 32; k++) {
    sum = TAKE_8(sum, (uint64_t)_mm256_extract_epi64(sums[k], 0));
    sum = TAKE_8(sum, (uint64_t)_mm256_extract_epi64(sums[k], 1));
    sum = TAKE_8(sum, (uint64_t)_mm256_extract_epi64(sums[k], 2));
    sum = TAKE_8(sum, (uint64_t)_mm256_extract_epi64(sums[k], 3));
  }
  __m128i all = _mm_xor_si128(_mm_xor_si128(shifted(crc, SHIFT_BLOCK), shifted(sum, SHIFT_3_PARTS)),
                              _mm_xor_si128(shifted(first, SHIFT_2_PARTS), shifted(second, SHIFT_1_PART)));
  return TAKE_8(0, (uint64_t)_mm_cvtsi128_si64(all)) ^ third;
}

WIDE static uint32_t by_wide_products(uint32_t crc, const uint8_t *p, size_t size)
{
  for (; size >= BLOCK; p += BLOCK, size -= BLOCK) crc = take_block(crc, p);
  return by_instruction(crc, p, size);
}
#endif

/* ---- by tables ---- */

/* tables[k][i] is the CRC of the byte i and k zero bytes after it: a sum of powers of x, one for each bit of i. A row
 * has the powers for one k, from x^(8k + 39), of bit 0, down to x^(8k + 32). */
#define POWERS(ROW)                                                                                   \
  ROW(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78) \
  ROW(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9) \
  ROW(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743) \
  ROW(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f) \
  ROW(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c) \
  ROW(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6) \
  ROW(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4) \
  ROW(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664)
#define BIT(i, n, sum) ((i) >> (n)&1 ? (sum) : 0)
#define CRC(i, a, b, c, d, e, f, g, h) \
  BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^ BIT(i, 6, g) ^ BIT(i, 7, h)
#define CRC_4(i, ...) CRC(i, __VA_ARGS__), CRC(i + 1, __VA_ARGS__), CRC(i + 2, __VA_ARGS__), CRC(i + 3, __VA_ARGS__)
#define CRC_16(i, ...) \
  CRC_4(i, __VA_ARGS__), CRC_4(i + 4, __VA_ARGS__), CRC_4(i + 8, __VA_ARGS__), CRC_4(i + 12, __VA_ARGS__)
#define CRC_64(i, ...) \
  CRC_16(i, __VA_ARGS__), CRC_16(i + 16, __VA_ARGS__), CRC_16(i + 32, __VA_ARGS__), CRC_16(i + 48, __VA_ARGS__)
#define CRC_256(...) \
  { CRC_64(0, __VA_ARGS__), CRC_64(64, __VA_ARGS__), CRC_64(128, __VA_ARGS__), CRC_64(192, __VA_ARGS__) },
static const uint32_t tables[8][256] = { POWERS(CRC_256) };

static uint32_t by_tables(uint32_t crc, const uint8_t *p, size_t size)
{
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word = word_at(p) ^ crc;
    crc = 0;
    for (int k = 7; k >= 0; k--, word >>= 8) crc ^= tables[k][word & 0xff];
  }
  for (; size > 0; p++, size--) crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
  return crc;
}

uint32_t tn__crc32c_by_tables(uint32_t crc, const void *data, size_t size) { return ~by_tables(~crc, data, size); }

uint32_t tn__crc32c(uint32_t crc, const void *data, size_t size)
{
#if defined(__x86_64__)
  if (size >= BLOCK && has_wide_products()) return ~by_wide_products(~crc, data, size);
#endif
#ifdef HARDWARE
  if (has_instruction()) return ~by_instruction(~crc, data, size);
#endif
  return tn__crc32c_by_tables(crc, data, size);
}
