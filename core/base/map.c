/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing, at most three quarters full. A removal moves later entries back, so there are no tombstones.
 *
 * The hash folds 128-bit products, the public-domain construction of wyhash. Both factors are masked by keys that are
 * random for the process: no input can be chosen that makes a factor zero or two texts collide. */
#define _GNU_SOURCE
#include <core/base/map.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/random.h>
#endif

#define MIN_CAPACITY 16

/* ---- hash ---- */

static uint64_t keys[4];
static atomic_bool keys_ready;
static pthread_once_t keys_once = PTHREAD_ONCE_INIT;

static uint64_t scramble(uint64_t *state)
{
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static void make_keys(void)
{
  struct timespec now = { 0, 0 };
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t state =
      (uint64_t)(uintptr_t)&now ^ ((uint64_t)now.tv_nsec << 32) ^ (uint64_t)now.tv_sec ^ ((uint64_t)getpid() << 16);
  uint64_t random[4] = { 0 };
#if defined(__linux__)
  if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) memset(random, 0, sizeof(random));
#endif
  for (int i = 0; i < 4; i++) keys[i] = scramble(&state) ^ random[i];
  atomic_store_explicit(&keys_ready, true, memory_order_release);
}

static uint64_t fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
  uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
  uint64_t low = al * bl, mid = ah * bl + (low >> 32), mid2 = al * bh + (uint32_t)mid;
  return ((mid2 << 32) | (uint32_t)low) ^ (ah * bh + (mid >> 32) + (mid2 >> 32));
#endif
}

static uint64_t load64(const unsigned char *p)
{
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

static uint64_t load32(const unsigned char *p)
{
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

uint64_t tn__hash(const void *data, size_t size)
{
  if (!atomic_load_explicit(&keys_ready, memory_order_acquire)) pthread_once(&keys_once, make_keys);
  const unsigned char *p = data;
  uint64_t h = keys[0], a = 0, b = 0;
  size_t left = size;
  while (left > 16) {
    h = fold(load64(p) ^ keys[1], load64(p + 8) ^ h);
    p += 16;
    left -= 16;
  }
  if (left >= 8) {
    a = load64(p);
    b = load64(p + left - 8);
  } else if (left >= 4) {
    a = load32(p);
    b = load32(p + left - 4);
  } else if (left > 0) {
    a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
  }
  h = fold(a ^ keys[1], b ^ h);
  return fold(h ^ keys[2], (uint64_t)size ^ keys[3]);
}

/* ---- map ---- */

void tn__map_init(tn__map *map) { memset(map, 0, sizeof(*map)); }

void tn__map_fini(tn__map *map)
{
  tn__free(map->entries, map->capacity * sizeof(*map->entries));
  memset(map, 0, sizeof(*map));
}

static bool full(const tn__map *map) { return map->count + 1 > map->capacity / 4 * 3; }

/* Returns the entry of the key, or the free place where it belongs. The map always has a free place, which ends the
 * search. */
static tn__map_entry *find(const tn__map *map, const char *key, size_t size, uint64_t hash)
{
  size_t mask = map->capacity - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    tn__map_entry *e = &map->entries[i];
    if (e->value == NULL) return e;
    if (e->hash == hash && e->size == size && (size == 0 || memcmp(e->key, key, size) == 0)) return e;
  }
}

static bool rehash(tn__map *map, size_t capacity)
{
  tn__map_entry *entries = tn__alloc_array(capacity, sizeof(*entries));
  if (entries == NULL) return false;
  size_t mask = capacity - 1;
  for (size_t i = 0; i < map->capacity; i++) {
    const tn__map_entry *e = &map->entries[i];
    if (e->value == NULL) continue;
    size_t at = e->hash & mask;
    while (entries[at].value != NULL) at = (at + 1) & mask;
    entries[at] = *e;
  }
  tn__free(map->entries, map->capacity * sizeof(*map->entries));
  map->entries = entries;
  map->capacity = capacity;
  return true;
}

bool tn__map_reserve(tn__map *map, size_t count)
{
  size_t capacity = map->capacity < MIN_CAPACITY ? MIN_CAPACITY : map->capacity;
  while (capacity / 4 * 3 < count) {
    if (capacity > SIZE_MAX / 2) return false;
    capacity *= 2;
  }
  return capacity == map->capacity || rehash(map, capacity);
}

void *tn__map_get(const tn__map *map, const char *key, size_t size)
{
  return map->count == 0 ? NULL : find(map, key, size, tn__hash(key, size))->value;
}

bool tn__map_put(tn__map *map, const char *key, size_t size, void *value, void **old)
{
  if (old != NULL) *old = NULL;
  uint64_t hash = tn__hash(key, size);
  tn__map_entry *e = map->capacity == 0 ? NULL : find(map, key, size, hash);
  if (e == NULL || (e->value == NULL && full(map))) {
    if (!rehash(map, map->capacity == 0 ? MIN_CAPACITY : map->capacity * 2)) return false;
    e = find(map, key, size, hash);
  }
  if (e->value == NULL)
    map->count++;
  else if (old != NULL)
    *old = e->value;
  e->key = key;
  e->size = size;
  e->hash = hash;
  e->value = value;
  return true;
}

void *tn__map_remove(tn__map *map, const char *key, size_t size)
{
  if (map->count == 0) return NULL;
  tn__map_entry *e = find(map, key, size, tn__hash(key, size));
  void *value = e->value;
  if (value == NULL) return NULL;

  /* Up to the next free place, move each entry back into the hole unless its home place is after the hole. */
  size_t mask = map->capacity - 1, hole = (size_t)(e - map->entries);
  for (size_t i = (hole + 1) & mask; map->entries[i].value != NULL; i = (i + 1) & mask) {
    size_t home = map->entries[i].hash & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    map->entries[hole] = map->entries[i];
    hole = i;
  }
  memset(&map->entries[hole], 0, sizeof(map->entries[hole]));
  map->count--;
  return value;
}

tn__map_entry *tn__map_next(const tn__map *map, size_t *place)
{
  while (*place < map->capacity) {
    tn__map_entry *e = &map->entries[(*place)++];
    if (e->value != NULL) return e;
  }
  return NULL;
}
