/* SPDX-License-Identifier: Apache-2.0 */
/* tenon checkpoint list: the tensors of a checkpoint. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

typedef struct request {
  const char *path;
  char *const *patterns;
  int n_patterns;
  bool paths, json;
} request;

static void add_row(const tn_checkpoint_entry *entry, tool_table *table)
{
  char bytes[32];
  tool_text shape = { 0 };
  tool_text_shape(&shape, entry->dims, entry->rank);
  if (entry->n_slices > 0) tool_text_printf(&shape, " in %" PRIu64 " slices", entry->n_slices);
  tool_table_cell(table, "%s", tool_bytes_text(bytes, entry->bytes));
  tool_table_cell(table, "%s", tn_dtype_name(entry->dtype));
  tool_table_cell(table, "%s", shape.data);
  tool_table_cell(table, "%s", entry->key);
  tool_text_fini(&shape);
}

static void add_paths(const checkpoint_paths *paths, const char *key, tool_table *table)
{
  size_t n;
  const checkpoint_path *path = checkpoint_paths_find(paths, key, &n);
  for (size_t i = 0; i < n; i++) {
    for (int c = 0; c < 3; c++) tool_table_cell(table, "%s", "");
    tool_table_cell(table, "  = %s", path[i].path);
  }
}

static int print_text(const request *r, const tn_checkpoint *checkpoint, const checkpoint_paths *paths)
{
  tool_table table;
  uint64_t bytes = 0;
  size_t n = 0;
  char text[32];
  tool_table_init(&table, 4, 1);
  for (size_t i = 0; i < tn_checkpoint_count(checkpoint); i++) {
    tn_checkpoint_entry entry = checkpoint_entry_at(checkpoint, i);
    if (!checkpoint_matches(r->patterns, r->n_patterns, entry.key)) continue;
    add_row(&entry, &table);
    if (r->paths) add_paths(paths, entry.key, &table);
    bytes += entry.bytes;
    n++;
  }
  tool_table_print(&table, "", stdout);
  printf("%zu tensor%s with %s in %s (%sversion %d)\n", n, n == 1 ? "" : "s", tool_bytes_text(text, bytes),
         tn_checkpoint_prefix(checkpoint), tn_checkpoint_path_count(checkpoint) > 0 ? "object-based, " : "",
         (int)tn_checkpoint_version(checkpoint));
  return TOOL_OK;
}

static json_t *json_paths(const checkpoint_paths *paths, const char *key)
{
  size_t n;
  const checkpoint_path *path = checkpoint_paths_find(paths, key, &n);
  json_t *array = json_array();
  for (size_t i = 0; i < n; i++) tool_json_append(array, tool_json_text(path[i].path));
  return array;
}

static int print_json(const request *r, const tn_checkpoint *checkpoint, const checkpoint_paths *paths)
{
  json_t *root = json_object(), *tensors = json_array();
  for (size_t i = 0; i < tn_checkpoint_count(checkpoint); i++) {
    tn_checkpoint_entry entry = checkpoint_entry_at(checkpoint, i);
    if (!checkpoint_matches(r->patterns, r->n_patterns, entry.key)) continue;
    json_t *object = checkpoint_json_entry(&entry);
    if (r->paths) tool_json_set(object, "paths", json_paths(paths, entry.key));
    tool_json_append(tensors, object);
  }
  tool_json_set(root, "prefix", tool_json_text(tn_checkpoint_prefix(checkpoint)));
  tool_json_set(root, "version", json_integer(tn_checkpoint_version(checkpoint)));
  tool_json_set(root, "object_based", json_boolean(tn_checkpoint_path_count(checkpoint) > 0));
  tool_json_set(root, "tensors", tensors);
  return tool_json_print(root);
}

static int list(const request *r)
{
  tn_error err = TN_ERROR_INIT;
  tn_checkpoint *checkpoint;
  checkpoint_paths paths = { NULL, 0 };
  if (tn_checkpoint_open(r->path, &checkpoint, &err) != TN_OK) return tool_fail(&err);
  if (r->paths) paths = checkpoint_paths_read(checkpoint);
  int status = r->json ? print_json(r, checkpoint, &paths) : print_text(r, checkpoint, &paths);
  free(paths.items);
  tn_checkpoint_close(checkpoint);
  return status;
}

int checkpoint_list(int argc, char **argv)
{
  static const struct option options[] = {
    { "paths", no_argument, NULL, 'p' },
    { "json", no_argument, NULL, 'j' },
    { NULL, 0, NULL, 0 },
  };
  request r;
  int c;
  memset(&r, 0, sizeof(r));
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    switch (c) {
    case 'p': r.paths = true; break;
    case 'j': r.json = true; break;
    default: return tool_bad_option("checkpoint", c, argv);
    }
  }
  int status = checkpoint_arguments(argc, argv, 1, "PREFIX");
  if (status != TOOL_OK) return status;
  r.path = argv[optind];
  r.patterns = argv + optind + 1;
  r.n_patterns = argc - optind - 1;
  return list(&r);
}
