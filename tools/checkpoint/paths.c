/* SPDX-License-Identifier: Apache-2.0 */
/* The object paths of a checkpoint by key. */
#include <stdlib.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

static int by_key(const void *a, const void *b)
{
  const checkpoint_path *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

checkpoint_paths checkpoint_paths_read(const tn_checkpoint *checkpoint)
{
  size_t n = tn_checkpoint_path_count(checkpoint);
  checkpoint_paths paths = { tool_alloc(n, sizeof(*paths.items)), 0 };
  for (size_t i = 0; i < n; i++) {
    checkpoint_path *item = &paths.items[paths.n];
    item->order = i;
    if (tn_checkpoint_path_at(checkpoint, i, &item->path, &item->key, NULL) == TN_OK) paths.n++;
  }
  if (paths.n > 0) qsort(paths.items, paths.n, sizeof(*paths.items), by_key);
  return paths;
}

const checkpoint_path *checkpoint_paths_find(const checkpoint_paths *paths, const char *key, size_t *n)
{
  size_t low = 0, high = paths->n;
  *n = 0;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(paths->items[middle].key, key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  while (low + *n < paths->n && strcmp(paths->items[low + *n].key, key) == 0) ++*n;
  return *n > 0 ? &paths->items[low] : NULL;
}
