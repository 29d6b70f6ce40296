/* SPDX-License-Identifier: Apache-2.0 */
/* tenon inspect: what belongs to a model besides its graph: tags, who made it, assets, the checkpoint. */
#include <string.h>
#include <sys/stat.h>

#include <tools/inspect/inspect.h>

static const char OBJECT_GRAPH[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

static uint64_t size_of_file(const char *path)
{
  struct stat about;
  return stat(path, &about) == 0 && S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
}

/* The size of the file with the graph. */
uint64_t inspect_file_bytes(const tool_source *source)
{
  static const char *const names[] = { "saved_model.pb", "saved_model.pbtxt" };
  uint64_t bytes = size_of_file(source->request->path);
  for (size_t i = 0; i < 2 && bytes == 0; i++) {
    tool_text path = { 0 };
    tool_text_printf(&path, "%s/%s", source->request->path, names[i]);
    bytes = size_of_file(path.data);
    tool_text_fini(&path);
  }
  return bytes;
}

/* The part of a path below the model's folder. */
static const char *below(const tool_source *source, const char *path)
{
  size_t length = strlen(source->info.path);
  const char *slash;
  if (strncmp(path, source->info.path, length) == 0 && path[length] == '/') return path + length + 1;
  slash = strrchr(source->info.path, '/'); /* the opened path is a file */
  length = slash != NULL ? (size_t)(slash - source->info.path) + 1 : 0;
  return length > 1 && strncmp(path, source->info.path, length) == 0 ? path + length : path;
}

/* ---- the checkpoint ---- */

typedef struct variables {
  size_t n;
  uint64_t bytes;
  int32_t version;
  bool has_paths;
} variables;

static tn_status read_variables(const tool_source *source, variables *out, tn_error *err)
{
  tn_checkpoint *checkpoint;
  tn_checkpoint_entry entry = { .struct_size = sizeof(entry) };
  memset(out, 0, sizeof(*out));
  tn_status status = tn_checkpoint_open(source->info.checkpoint, &checkpoint, err);
  if (status != TN_OK) return status;
  for (size_t i = 0; tn_checkpoint_at(checkpoint, i, &entry, NULL) == TN_OK; i++) {
    if (strcmp(entry.key, OBJECT_GRAPH) == 0) continue;
    out->n++;
    out->bytes += entry.bytes;
  }
  out->version = tn_checkpoint_version(checkpoint);
  out->has_paths = tn_checkpoint_path_count(checkpoint) > 0;
  tn_checkpoint_close(checkpoint);
  return TN_OK;
}

/* ---- as text ---- */

static const char *kind_of(const tool_source *source)
{
  if (source->info.kind == TN_MODEL_SAVED) return "SavedModel";
  return source->info.kind == TN_MODEL_META_GRAPH ? "MetaGraph" : NULL;
}

static void add_line(tool_table *table, const char *title, const char *text)
{
  tool_table_cell(table, "%s", title);
  tool_table_cell(table, "%s", text);
}

static void add_tag_sets(const tool_source *source, tool_table *table)
{
  if (source->info.n_tag_sets == 1 && tn_model_tag(source->model, 0, 0) == NULL) return;
  for (size_t i = 0; i < source->info.n_tag_sets; i++) {
    tool_text tags = { 0 };
    tool_text_tags(&tags, source->model, i);
    if (source->info.n_tag_sets > 1)
      tool_text_printf(&tags, "%s", i == source->info.tag_set ? "  (shown here)" : "  (select it with --tags)");
    add_line(table, i == 0 ? "tags" : "", tags.data);
    tool_text_fini(&tags);
  }
}

static void add_variables(const tool_source *source, tool_table *table)
{
  tn_error err = TN_ERROR_INIT;
  tool_text text = { 0 };
  variables v;
  char bytes[32];
  if (source->info.checkpoint == NULL) return;
  if (read_variables(source, &v, &err) == TN_OK)
    tool_text_printf(&text, "%zu tensor%s with %s in %s (%sversion %d)", v.n, v.n == 1 ? "" : "s",
                     tool_bytes_text(bytes, v.bytes), below(source, source->info.checkpoint),
                     v.has_paths ? "object-based, " : "", (int)v.version);
  else
    tool_text_printf(&text, "cannot be read: %s", tn_error_message(&err));
  add_line(table, "variables", text.data);
  tool_text_fini(&text);
  tn_error_clear(&err);
}

void inspect_print_about(const inspect_summary *s)
{
  const tool_source *source = s->source;
  const tn_model_info *info = &source->info;
  const char *kind = kind_of(source);
  char bytes[32];
  tool_table table;
  printf("%s%s%s, %s\n", source->request->path, kind != NULL ? ", " : "", kind != NULL ? kind : "",
         tool_bytes_text(bytes, s->file_bytes));
  tool_table_init(&table, 2, 0);
  add_tag_sets(source, &table);
  if (info->made_by[0] != '\0') {
    tool_text made = { 0 };
    tool_text_maker(&made, info);
    if (info->git_version[0] != '\0') tool_text_printf(&made, " (%s)", info->git_version);
    add_line(&table, "made by", made.data);
    tool_text_fini(&made);
  }
  add_variables(source, &table);
  if (info->restore_op != NULL) add_line(&table, "restore op", info->restore_op);
  if (info->init_op != NULL) add_line(&table, "init op", info->init_op);
  tool_table_print(&table, "  ", stdout);
}

void inspect_print_files(const tool_source *source)
{
  const char *path, *tensor;
  char bytes[32];
  tool_table table;
  tool_table_init(&table, 3, 1);
  for (size_t i = 0; (path = tn_model_asset(source->model, i, &tensor)) != NULL; i++) {
    struct stat about;
    bool there = stat(path, &about) == 0;
    tool_table_cell(&table, "%s", there ? tool_bytes_text(bytes, (uint64_t)about.st_size) : "missing");
    tool_table_cell(&table, "%s", below(source, path));
    tool_table_cell(&table, "%s", tensor != NULL ? tensor : "");
  }
  if (table.n > 0) printf("\nAssets (with the tensors that get their paths)\n");
  tool_table_print(&table, "  ", stdout);
}

/* ---- as JSON ---- */

static json_t *json_tags(const tool_source *source, size_t i)
{
  json_t *array = json_array();
  const char *tag;
  for (size_t k = 0; (tag = tn_model_tag(source->model, i, k)) != NULL; k++)
    tool_json_append(array, tool_json_text(tag));
  return array;
}

static json_t *json_assets(const tool_source *source)
{
  json_t *array = json_array();
  const char *path, *tensor;
  for (size_t i = 0; (path = tn_model_asset(source->model, i, &tensor)) != NULL; i++) {
    json_t *asset = json_object();
    struct stat about;
    bool there = stat(path, &about) == 0;
    tool_json_set(asset, "file", tool_json_text(below(source, path)));
    tool_json_set(asset, "bytes", there ? json_integer((json_int_t)about.st_size) : json_null());
    tool_json_set(asset, "tensor", tensor != NULL ? tool_json_text(tensor) : json_null());
    tool_json_append(array, asset);
  }
  return array;
}

static json_t *json_checkpoint(const tool_source *source)
{
  tn_error err = TN_ERROR_INIT;
  variables v;
  if (source->info.checkpoint == NULL) return json_null();
  json_t *object = json_object();
  tool_json_set(object, "prefix", tool_json_text(below(source, source->info.checkpoint)));
  if (read_variables(source, &v, &err) == TN_OK) {
    tool_json_set(object, "tensors", json_integer((json_int_t)v.n));
    tool_json_set(object, "bytes", json_integer((json_int_t)v.bytes));
    tool_json_set(object, "version", json_integer(v.version));
    tool_json_set(object, "object_based", json_boolean(v.has_paths));
  } else {
    tool_json_set(object, "error", tool_json_text(tn_error_message(&err)));
  }
  tn_error_clear(&err);
  return object;
}

static json_t *text_or_null(const char *text) { return text != NULL ? tool_json_text(text) : json_null(); }

void inspect_json_about(const inspect_summary *s, json_t *root)
{
  const tool_source *source = s->source;
  const tn_model_info *info = &source->info;
  const char *kind = kind_of(source);
  json_t *sets = json_array();
  tool_text maker = { 0 };
  for (size_t i = 0; i < info->n_tag_sets; i++) tool_json_append(sets, json_tags(source, i));
  tool_json_set(root, "kind", tool_json_text(kind != NULL ? kind : "GraphDef"));
  if (kind == NULL) {
    json_decref(sets);
    return;
  }
  tool_text_maker(&maker, info);
  tool_json_set(root, "tag_sets", sets);
  tool_json_set(root, "tags", info->n_tag_sets > 0 ? json_tags(source, info->tag_set) : json_array());
  tool_json_set(root, "made_by", tool_json_text(maker.length > 0 ? maker.data : ""));
  tool_text_fini(&maker);
  tool_json_set(root, "git_version", tool_json_text(info->git_version));
  tool_json_set(root, "signatures", tool_json_signatures(source, &s->model));
  tool_json_set(root, "checkpoint", json_checkpoint(source));
  tool_json_set(root, "assets", json_assets(source));
  tool_json_set(root, "restore_op", text_or_null(info->restore_op));
  tool_json_set(root, "init_op", text_or_null(info->init_op));
}
