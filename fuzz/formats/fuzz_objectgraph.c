/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give an object graph or a status. The input is a path, a zero byte, and the message. The path and those
 * that are listed are followed: each gives a key or a status. */
#include <fuzz/memory.h>

#include <string.h>

#include <core/formats/objectgraph/objectgraph.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory((size_t)256 << 20);
  return 0;
}

static void follow(const tn__object_graph *graph, const char *path)
{
  tn_error err = TN_ERROR_INIT;
  tn__object_key key;
  tn_status st = tn__object_graph_resolve(graph, path, &key, &err);
  if (st != TN_OK && (st != TN_NOT_FOUND || strstr(tn_error_message(&err), "'fuzz': path '") == NULL)) abort();
  if (st == TN_OK && key.suffix.size > 0 && strchr(path, ':') == NULL) abort();
  tn_error_clear(&err);
}

/* The paths of a key are at most eight. */
static void check_list(const tn__object_path *paths, size_t n)
{
  for (size_t i = 0; i < n && i < 200; i++) {
    size_t same = 0;
    for (size_t k = 0; k < n && k < 200; k++) same += tn__slice_equal(paths[i].key, paths[k].key);
    if (same > TN__OBJECT_PATHS || paths[i].key.size == 0) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__object_graph *graph = NULL;
  tn__arena arena;
  tn__object_path *paths = NULL;
  size_t n = 0;
  const uint8_t *zero = size == 0 ? NULL : memchr(data, 0, size);
  if (zero == NULL) return 0;
  const tn__slice message = { (const char *)zero + 1, size - (size_t)(zero - data) - 1 };
  tn__arena_init(&arena, 1024);
  tn_status st = tn__object_graph_read(message, "fuzz", &graph, &err);
  if ((st == TN_OK) != (graph != NULL) || (st != TN_OK && st != TN_DATA_LOSS && st != TN_RESOURCE_EXHAUSTED)) abort();
  if (st == TN_OK) st = tn__object_graph_paths(graph, &arena, &paths, &n, &err);
  if (st != TN_OK && st != TN_DATA_LOSS && st != TN_RESOURCE_EXHAUSTED) abort();
  if (graph != NULL) follow(graph, (const char *)data);
  for (size_t i = 0; i < n && i < 200; i++) follow(graph, paths[i].path);
  check_list(paths, n);
  tn__arena_fini(&arena);
  tn__object_graph_destroy(graph);
  tn_error_clear(&err);
  return 0;
}
