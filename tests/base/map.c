/* SPDX-License-Identifier: Apache-2.0 */
/* The hash map and its hash. */
#include "conformance/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/base/map.h>

#include "conformance/support/oom.h"

#define N 20000

typedef struct item {
  char key[24];
  size_t size;
  bool present;
} item;

static item items[N];

static void fill(void)
{
  for (int i = 0; i < N; i++) {
    items[i].size = (size_t)snprintf(items[i].key, sizeof(items[i].key), "layer_%d/w%d", i / 10, i);
    items[i].present = false;
  }
}

/* The map holds exactly what `present` says. */
static bool agrees(const tn__map *map)
{
  size_t wanted = 0, seen = 0, place = 0;
  for (int i = 0; i < N; i++) {
    wanted += items[i].present;
    if (tn__map_get(map, items[i].key, items[i].size) != (items[i].present ? &items[i] : NULL)) return false;
  }
  for (tn__map_entry *e = tn__map_next(map, &place); e != NULL; e = tn__map_next(map, &place)) {
    seen++;
    if (!((item *)e->value)->present) return false;
  }
  return seen == wanted && map->count == wanted;
}

static void map__finds_entries(void)
{
  tn__map map;
  void *old;
  int one = 1, two = 2;
  tn__map_init(&map);
  CHECK_NULL(tn__map_get(&map, "a", 1));
  CHECK_NULL(tn__map_remove(&map, "a", 1));
  CHECK(tn__map_put(&map, "a", 1, &one, &old));
  CHECK_NULL(old);
  CHECK(tn__map_put(&map, "a", 1, &two, &old));
  CHECK(old == &one);
  CHECK(tn__map_get(&map, "a", 1) == &two);
  CHECK_INT(map.count, 1);
  CHECK_NULL(tn__map_get(&map, "ab", 2));
  CHECK_NULL(tn__map_get(&map, "a\0", 2));
  CHECK(tn__map_put(&map, NULL, 0, &one, NULL));
  CHECK(tn__map_get(&map, "", 0) == &one);
  CHECK(tn__map_put(&map, "a\0b", 3, &one, NULL));
  CHECK(tn__map_get(&map, "a\0b", 3) == &one);
  CHECK_NULL(tn__map_get(&map, "a\0c", 3));
  CHECK(tn__map_remove(&map, "a", 1) == &two);
  CHECK_NULL(tn__map_get(&map, "a", 1));
  tn__map_fini(&map);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void map__holds_tens_of_thousands(void)
{
  tn__map map;
  tn__map_init(&map);
  fill();
  for (int i = 0; i < N; i++) {
    REQUIRE(tn__map_put(&map, items[i].key, items[i].size, &items[i], NULL));
    items[i].present = true;
  }
  CHECK(agrees(&map));
  tn__map_fini(&map);
}

/* Removal moves entries: in any order of calls none is lost or found twice. */
static void map__survives_puts_and_removals_in_any_order(void)
{
  tn__map map;
  unsigned state = 7;
  tn__map_init(&map);
  fill();
  for (int round = 0; round < 200000; round++) {
    state = state * 1664525u + 1013904223u;
    item *it = &items[(state >> 8) % 3000];
    if (state >> 31) {
      REQUIRE(tn__map_put(&map, it->key, it->size, it, NULL));
      it->present = true;
    } else {
      CHECK(tn__map_remove(&map, it->key, it->size) == (it->present ? it : NULL));
      it->present = false;
    }
    if (round % 50000 == 0) REQUIRE(agrees(&map));
  }
  CHECK(agrees(&map));
  tn__map_fini(&map);
}

static void map__reserve_makes_room_once(void)
{
  tn__map map;
  tn__map_init(&map);
  fill();
  REQUIRE(tn__map_reserve(&map, N));
  uint64_t before = tn_test_allocations();
  for (int i = 0; i < N; i++) REQUIRE(tn__map_put(&map, items[i].key, items[i].size, &items[i], NULL));
  CHECK_INT(tn_test_allocations() - before, 0);
  CHECK(!tn__map_reserve(&map, SIZE_MAX));
  CHECK(tn__map_get(&map, items[5].key, items[5].size) == &items[5]);
  tn__map_fini(&map);
}

static void map__without_memory_nothing_changes(void)
{
  tn__map map;
  tn__map_init(&map);
  fill();
  for (int i = 0; i < 12; i++) REQUIRE(tn__map_put(&map, items[i].key, items[i].size, &items[i], NULL));
  tn_test_fail_allocation(1, 1);
  CHECK(!tn__map_put(&map, items[12].key, items[12].size, &items[12], NULL));
  CHECK(tn__map_put(&map, items[3].key, items[3].size, &items[4], NULL)); /* no room is needed */
  tn_test_fail_allocation(0, 0);
  CHECK_INT(map.count, 12);
  CHECK(tn__map_get(&map, items[3].key, items[3].size) == &items[4]);
  CHECK_NULL(tn__map_get(&map, items[12].key, items[12].size));
  tn__map_fini(&map);
}

/* Every byte of a text of any length affects the hash, and so does the length. */
static void hash__depends_on_every_byte(void)
{
  unsigned char text[70] = { 0 };
  CHECK(tn__hash(text, 3) == tn__hash(text, 3));
  for (size_t n = 0; n <= sizeof(text); n++) {
    uint64_t h = tn__hash(text, n);
    if (n > 0) CHECK(h != tn__hash(text, n - 1));
    for (size_t i = 0; i < n; i++)
      for (int bit = 0; bit < 8; bit++) {
        text[i] ^= (unsigned char)(1 << bit);
        CHECK_MSG(tn__hash(text, n) != h, "byte %zu of %zu, bit %d", i, n, bit);
        text[i] ^= (unsigned char)(1 << bit);
      }
  }
}

/* Names that differ in their last digits only differ in the low bits of their hashes, which
 * select the bucket. */
static void hash__spreads_similar_names(void)
{
  static int buckets[1024];
  int most = 0;
  fill();
  memset(buckets, 0, sizeof(buckets));
  for (int i = 0; i < N; i++) buckets[tn__hash(items[i].key, items[i].size) % 1024]++;
  for (int i = 0; i < 1024; i++) most = buckets[i] > most ? buckets[i] : most;
  CHECK_MSG(most < 60, "the fullest of 1024 buckets has %d of %d names, about 20 are expected", most, N);
}

TAP_MAIN(
  TAP_TEST(map__finds_entries),
  TAP_TEST(map__holds_tens_of_thousands),
  TAP_TEST(map__survives_puts_and_removals_in_any_order),
  TAP_TEST(map__reserve_makes_room_once),
  TAP_TEST(map__without_memory_nothing_changes),
  TAP_TEST(hash__depends_on_every_byte),
  TAP_TEST(hash__spreads_similar_names))
