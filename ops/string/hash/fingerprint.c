/* SPDX-License-Identifier: Apache-2.0 */
/* FarmHash's Fingerprint64 and Fingerprint128, MurmurHash64A and SipHash-2-4, from their published descriptions. Words
 * are read in little-endian order. */
#include <ops/string/hash/fingerprint.h>

#include <string.h>

static uint64_t load64(const unsigned char *p)
{
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static uint64_t load32(const unsigned char *p)
{
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* ---- Fingerprint64 ---- */

static const uint64_t k0 = UINT64_C(0xc3a5c85c97cb3127);
static const uint64_t k1 = UINT64_C(0xb492b66fbe98f273);
static const uint64_t k2 = UINT64_C(0x9ae16a3b2f90404f);

static uint64_t turn(uint64_t v, int right) { return v >> right | v << (64 - right); }
static uint64_t fold(uint64_t v) { return v ^ v >> 47; }

static uint64_t mix(uint64_t u, uint64_t v, uint64_t factor)
{
  uint64_t a = fold((u ^ v) * factor);
  return fold((v ^ a) * factor) * factor;
}

static uint64_t up_to_16(const unsigned char *p, size_t n)
{
  if (n >= 8) {
    uint64_t factor = k2 + n * 2, a = load64(p) + k2, b = load64(p + n - 8);
    return mix(turn(b, 37) * factor + a, (turn(a, 25) + b) * factor, factor);
  }
  if (n >= 4) return mix(n + (load32(p) << 3), load32(p + n - 4), k2 + n * 2);
  if (n == 0) return k2;
  uint64_t y = p[0] + ((uint64_t)p[n >> 1] << 8), z = n + ((uint64_t)p[n - 1] << 2);
  return fold(y * k2 ^ z * k0) * k2;
}

static uint64_t up_to_32(const unsigned char *p, size_t n)
{
  uint64_t factor = k2 + n * 2, a = load64(p) * k1, b = load64(p + 8);
  uint64_t c = load64(p + n - 8) * factor, d = load64(p + n - 16) * k2;
  return mix(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + k2, 18) + c, factor);
}

static uint64_t up_to_64(const unsigned char *p, size_t n)
{
  uint64_t factor = k2 + n * 2, a = load64(p) * k2, b = load64(p + 8);
  uint64_t c = load64(p + n - 8) * factor, d = load64(p + n - 16) * k2;
  uint64_t y = turn(a + b, 43) + turn(c, 30) + d, z = mix(y, a + turn(b + k2, 18) + c, factor);
  uint64_t e = load64(p + 16) * factor, f = load64(p + 24);
  uint64_t g = (y + load64(p + n - 32)) * factor, h = (z + load64(p + n - 24)) * factor;
  return mix(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, factor);
}

typedef struct pair {
  uint64_t a, b;
} pair;

/* Mixes 32 bytes and two seeds. */
static pair take_32(const unsigned char *p, uint64_t a, uint64_t b)
{
  uint64_t w = load64(p), z = load64(p + 24);
  a += w;
  b = turn(b + a + z, 21);
  uint64_t first = a;
  a += load64(p + 8) + load64(p + 16);
  b += turn(a, 44);
  return (pair){ a + z, b + first };
}

typedef struct state {
  uint64_t x, y, z;
  pair v, w;
} state;

/* Mixes in 64 bytes. The last ones use another factor and `nine`. */
static void take_64(state *s, const unsigned char *p, uint64_t factor, uint64_t nine)
{
  s->x = turn(s->x + s->y + s->v.a + load64(p + 8), 37) * factor;
  s->y = turn(s->y + s->v.b + load64(p + 48), 42) * factor;
  s->x ^= s->w.b * nine;
  s->y += s->v.a * nine + load64(p + 40);
  s->z = turn(s->z + s->w.a, 33) * factor;
  s->v = take_32(p, s->v.b * factor, s->x + s->w.a);
  s->w = take_32(p + 32, s->z + s->w.b, s->y + load64(p + 16));
  uint64_t z = s->z;
  s->z = s->x;
  s->x = z;
}

uint64_t tn__fingerprint64(const void *data, size_t size)
{
  const unsigned char *p = data, *last = p + size;
  if (size <= 16) return up_to_16(p, size);
  if (size <= 32) return up_to_32(p, size);
  if (size <= 64) return up_to_64(p, size);
  const uint64_t seed = 81;
  state s = { .y = seed * k1 + 113 };
  s.z = fold(s.y * k2 + 113) * k2;
  s.x = seed * k2 + load64(p);
  for (size_t left = size - 1; left >= 64; left -= 64, p += 64) take_64(&s, p, k1, 1);
  uint64_t factor = k1 + ((s.z & 0xff) << 1);
  s.w.a += (size - 1) & 63;
  s.v.a += s.w.a;
  s.w.a += s.v.a;
  take_64(&s, last - 64, factor, 9);
  return mix(mix(s.v.a, s.w.a, factor) + fold(s.y) * k0 + s.z, mix(s.v.b, s.w.b, factor) + s.x, factor);
}

/* ---- Fingerprint128 ---- */

static uint64_t join(uint64_t a, uint64_t b) { return mix(a, b, UINT64_C(0x9ddfea08eb382d69)); }

static pair below_128(const unsigned char *p, size_t size, uint64_t a, uint64_t b)
{
  uint64_t c, d;
  if (size <= 16) {
    a = fold(a * k1) * k1;
    c = b * k1 + up_to_16(p, size);
    d = fold(a + (size >= 8 ? load64(p) : c));
  } else {
    c = join(load64(p + size - 8) + k1, a);
    d = join(b + size, c + load64(p + size - 16));
    a += d;
    for (size_t done = 16; done < size; done += 16, p += 16) {
      a = (a ^ fold(load64(p) * k1) * k1) * k1;
      b ^= a;
      c = (c ^ fold(load64(p + 8) * k1) * k1) * k1;
      d ^= c;
    }
  }
  a = join(a, c);
  b = join(d, b);
  return (pair){ a ^ b, join(b, a) };
}

static pair from_128(const unsigned char *p, size_t size, uint64_t a, uint64_t b)
{
  state s = { .x = a, .y = b, .z = size * k1 };
  s.v.a = turn(b ^ k1, 49) * k1 + load64(p);
  s.v.b = turn(s.v.a, 42) * k1 + load64(p + 8);
  s.w.a = turn(b + s.z, 35) * k1 + a;
  s.w.b = turn(a + load64(p + 88), 53) * k1;
  for (; size >= 128; size -= 128, p += 128) {
    take_64(&s, p, k1, 1);
    take_64(&s, p + 64, k1, 1);
  }
  s.x += turn(s.v.a + s.z, 49) * k0;
  s.y = s.y * k0 + turn(s.w.b, 37);
  s.z = s.z * k0 + turn(s.w.a, 27);
  s.w.a *= 9;
  s.v.a *= k0;
  for (size_t done = 0; done < size;) { /* up to four times 32 bytes from the end */
    done += 32;
    const unsigned char *tail = p + size - done;
    s.y = turn(s.x + s.y, 42) * k0 + s.v.b;
    s.w.a += load64(tail + 16);
    s.x = s.x * k0 + s.w.a;
    s.z += s.w.b + load64(tail);
    s.w.b += s.v.a;
    s.v = take_32(tail, s.v.a + s.z, s.v.b);
    s.v.a *= k0;
  }
  uint64_t x = join(s.x, s.v.a), y = join(s.y + s.z, s.w.a);
  return (pair){ join(x + s.v.b, s.w.b) + y, join(x + s.w.b, y + s.v.b) };
}

void tn__fingerprint128(const void *data, size_t size, uint64_t out[2])
{
  const unsigned char *p = data;
  uint64_t a = k0, b = k1;
  if (size >= 16) {
    a = load64(p);
    b = load64(p + 8) + k0;
    p += 16;
    size -= 16;
  }
  pair h = size < 128 ? below_128(p, size, a, b) : from_128(p, size, a, b);
  out[0] = h.a;
  out[1] = h.b;
}

/* ---- MurmurHash64A ---- */

uint64_t tn__murmur64(const void *data, size_t size)
{
  const uint64_t m = UINT64_C(0xc6a4a7935bd1e995), seed = UINT64_C(0xdecafcaffe);
  const unsigned char *p = data;
  uint64_t h = seed ^ size * m;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t k = load64(p) * m;
    h = (h ^ (k ^ k >> 47) * m) * m;
  }
  if (size > 0) {
    for (size_t i = size; i-- > 0;) h ^= (uint64_t)p[i] << 8 * i;
    h *= m;
  }
  h = (h ^ h >> 47) * m;
  return h ^ h >> 47;
}

/* ---- SipHash-2-4 ---- */

static void sip_rounds(uint64_t v[4], int n)
{
  for (int i = 0; i < n; i++) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turn(v[1], 64 - 13) ^ v[0];
    v[3] = turn(v[3], 64 - 16) ^ v[2];
    v[0] = turn(v[0], 64 - 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = turn(v[1], 64 - 17) ^ v[2];
    v[3] = turn(v[3], 64 - 21) ^ v[0];
    v[2] = turn(v[2], 64 - 32);
  }
}

uint64_t tn__siphash(const uint64_t key[2], const void *data, size_t size)
{
  const unsigned char *p = data;
  uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                    key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) };
  uint64_t last = (uint64_t)size << 56;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t m = load64(p);
    v[3] ^= m;
    sip_rounds(v, 2);
    v[0] ^= m;
  }
  for (size_t i = 0; i < size; i++) last |= (uint64_t)p[i] << 8 * i;
  v[3] ^= last;
  sip_rounds(v, 2);
  v[0] ^= last;
  v[2] ^= 0xff;
  sip_rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
