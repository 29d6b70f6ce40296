/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from byte strings to pointers. Keys are borrowed: they must live as long as the map. Open addressing;
 * the hash is seeded per process so that a hostile file cannot choose collisions. Any number of threads may read a
 * map while none changes it. */
#ifndef TN_CORE_BASE_MAP_H
#define TN_CORE_BASE_MAP_H

#include <core/base/text.h>

typedef struct tn__map_entry {
  const char *key;
  size_t size;
  uint64_t hash;
  void *value; /* NULL = free place */
} tn__map_entry;
typedef struct tn__map {
  tn__map_entry *entries;
  size_t capacity; /* a power of two, or 0 */
  size_t count;
} tn__map;

void tn__map_init(tn__map *map);
void tn__map_fini(tn__map *map);
bool tn__map_reserve(tn__map *map, size_t count); /* false without memory */
void *tn__map_get(const tn__map *map, const char *key, size_t size); /* NULL if absent */
/* Sets key to value (not NULL). False: out of memory, nothing changed. *old, if not NULL, gets the previous value or
 * NULL. If the key was present, the map now borrows the new key. */
bool tn__map_put(tn__map *map, const char *key, size_t size, void *value, void **old);
void *tn__map_remove(tn__map *map, const char *key, size_t size); /* the value, NULL if absent */
/* Iterates in no particular order: *place starts at 0; NULL at the end. The map must not change meanwhile. */
tn__map_entry *tn__map_next(const tn__map *map, size_t *place);
uint64_t tn__hash(const void *data, size_t size); /* the same for equal bytes within one process only */

#endif
