/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a SavedModel or a MetaGraph: finds out which of them a file is, translates text, and reads the MetaGraphs.
 *
 * The file stays in memory as a whole. The graphs in it are slices, which an import takes over without a copy; all
 * other parts are copied to the arena, which has a limit while the file is read: a file can name long keys often. */
#include <core/formats/savedmodel/reader.h>

#include <core/formats/file.h>
#include <core/formats/pbtxt/pbtxt.h>
#include <core/graph/graph_structs.h>

#include <string.h>

/* SavedModel */
enum { S_VERSION = 1, S_GRAPH = 2 };
/* GraphDef and NodeDef */
enum { G_NODE = 1, N_NAME = 1, N_OP = 2 };

/* The limit of the arena: a factor per byte of the file, plus a base in bytes. */
#define BUDGET_FACTOR 64
#define BUDGET_BASE ((size_t)1 << 20)

/* ---- what a file is ---- */

/* The message type of a text, by the name of its first field; NULL: it is not a text of either type. */
static const tn__pb_message *text_type(tn__slice bytes)
{
  static const tn__pb_message *const types[] = { &tn__pb_saved_model, &tn__pb_meta_graph };
  tn__slice word = tn__pbtxt_first_field(bytes);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (size_t k = 0; k < types[i]->n; k++)
      if (tn__slice_is(word, types[i]->fields[k].name)) return types[i];
  return NULL;
}

/* Whether an encoded message is a MetaGraph and not a SavedModel: in that, field 1 is a number, and there are only two
 * fields. */
static bool is_meta_graph(tn__slice bytes)
{
  tn__wire w = tn__wire_read(bytes);
  while (tn__wire_next(&w))
    if (w.type == TN__WIRE_BYTES && w.field <= TN__MG_OBJECTS && w.field != S_GRAPH) return true;
  return false;
}

/* The first field of this number with wire type bytes. */
static tn__slice first(tn__slice message, uint32_t field)
{
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, field, TN__WIRE_BYTES)) return w.bytes;
  return (tn__slice){ NULL, 0 };
}

/* Field 2 of a MetaGraph is a GraphDef; field 2 of a GraphDef is its library. In both, field 1 of that is a message,
 * but field 1 of a node is its name where a function has its signature. */
static bool has_graph(tn__slice meta)
{
  tn__slice node = first(first(meta, TN__MG_GRAPH), G_NODE), name = first(node, N_NAME), op = first(node, N_OP);
  return name.data != NULL && op.data != NULL && tn__name_is_valid(name.data, name.size) &&
         tn__op_type_is_valid(op.data, op.size);
}

bool tn__saved_model_fits(tn__slice bytes)
{
  if (text_type(bytes) != NULL) return true;
  return is_meta_graph(bytes) ? has_graph(bytes) : has_graph(first(bytes, S_GRAPH));
}

/* ---- text ---- */

static void free_translation(void *user, void *data, size_t bytes)
{
  (void)user;
  (void)bytes;
  tn_free(data);
}

/* Moves the bytes to a buffer. */
static tn_status wrap(tn__sink *bytes, tn_buffer **out, tn_error *err)
{
  if (tn__sink_reserve(bytes, 1) == NULL) return bytes->status; /* an empty message needs an address, too */
  tn_buffer_desc desc = { .struct_size = sizeof desc,
                          .memory = TN_MEMORY_HOST,
                          .ownership = TN_BUFFER_IMMUTABLE,
                          .data = bytes->data,
                          .bytes = bytes->used,
                          .release = free_translation };
  tn_status st = tn_buffer_create(&desc, out, err);
  if (st == TN_OK) *bytes = tn__sink_memory(NULL);
  return st;
}

/* Replaces the model's file by its translation. */
static tn_status translate(tn__saved_model *model, const tn__pb_message *type, tn__slice text, tn_error *err)
{
  tn_buffer *translated = NULL;
  tn__sink bytes = tn__sink_memory(err);
  tn_status st = tn__sm_damage(tn__pbtxt_parse(text, model->name, type, &bytes, err), err);
  if (st == TN_OK && bytes.used > TN__FORMAT_LIMIT)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the model has %zu bytes, at most %zu are read", model->name,
                      bytes.used, (size_t)TN__FORMAT_LIMIT);
  if (st == TN_OK) st = wrap(&bytes, &translated, err);
  tn__sink_fini(&bytes);
  if (st != TN_OK) return st;
  tn_buffer_unref(model->file);
  model->file = translated;
  model->is_text = true;
  return TN_OK;
}

/* ---- reading ---- */

static tn_status no_graph(const tn__sm_reader *r)
{
  if (r->file.size == 0)
    return tn_error_set(r->err, TN_NOT_FOUND, "%s: the file is empty, wanted a SavedModel or a MetaGraph",
                        r->model->name);
  tn__wire w = tn__wire_read(r->file);
  bool plain = true; /* nothing but a version */
  while (tn__wire_next(&w)) plain = plain && tn__wire_is(&w, S_VERSION, TN__WIRE_VARINT);
  if (!plain)
    return tn_error_set(r->err, TN_DATA_LOSS, "%s: this is no SavedModel: it has no MetaGraph", r->model->name);
  return tn_error_set(r->err, TN_NOT_FOUND, "%s: the SavedModel has no MetaGraph", r->model->name);
}

static tn_status read_saved_model(tn__sm_reader *r)
{
  tn__saved_model *model = r->model;
  tn_status st = tn__sm_count(r, r->file, S_GRAPH, &model->n_graphs);
  if (st == TN_OK && model->n_graphs == 0) return no_graph(r);
  if (st == TN_OK) st = tn__sm_array(r, model->n_graphs, sizeof *model->graphs, &model->graphs);
  tn__wire w = tn__wire_read(r->file);
  for (size_t i = 0; st == TN_OK && tn__wire_next(&w);)
    if (tn__wire_is(&w, S_GRAPH, TN__WIRE_BYTES)) st = tn__sm_read_metagraph(r, w.bytes, &model->graphs[i++]);
  return st;
}

static tn_status read_meta_graph(tn__sm_reader *r)
{
  r->model->is_meta = true;
  r->model->n_graphs = 1;
  tn_status st = tn__sm_array(r, 1, sizeof *r->model->graphs, &r->model->graphs);
  return st == TN_OK ? tn__sm_read_metagraph(r, r->file, r->model->graphs) : st;
}

static tn_status over_budget(tn__sm_reader *r, size_t budget, size_t refused)
{
  tn__error_reset(r->err); /* tn_error_set keeps an existing error */
  return tn_error_set(r->err, TN_RESOURCE_EXHAUSTED,
                      "%s: its signatures take more memory than %zu bytes (64 for each byte of the file and 1 MiB): "
                      "%zu more are needed",
                      r->model->name, budget, refused);
}

static tn_status read_bytes(tn__saved_model *model, bool is_meta, tn_error *err)
{
  const tn_buffer_desc *desc = tn_buffer_describe(model->file);
  tn__sm_reader r = { .model = model, .file = { desc->data, desc->bytes }, .err = err };
  bool huge = desc->bytes > (SIZE_MAX - BUDGET_BASE) / BUDGET_FACTOR;
  size_t budget = huge ? SIZE_MAX : desc->bytes * BUDGET_FACTOR + BUDGET_BASE;
  tn__arena_limit(&model->arena, budget);
  tn_status st = is_meta ? read_meta_graph(&r) : read_saved_model(&r);
  size_t refused = tn__arena_end_limit(&model->arena);
  return st == TN_RESOURCE_EXHAUSTED && refused > 0 ? over_budget(&r, budget, refused) : st;
}

static tn_status read_model(tn__saved_model *model, const char *name, tn_error *err)
{
  model->name = tn__arena_string(&model->arena, name, strlen(name));
  if (model->name == NULL) return tn__no_memory(err, name, strlen(name) + 1);
  const tn_buffer_desc *desc = tn_buffer_describe(model->file);
  tn__slice bytes = { desc->data, desc->bytes };
  const tn__pb_message *type = text_type(bytes);
  tn_status st = type == NULL ? TN_OK : translate(model, type, bytes, err);
  if (st != TN_OK) return st;
  return read_bytes(model, type == NULL ? is_meta_graph(bytes) : type == &tn__pb_meta_graph, err);
}

tn_status tn__saved_model_read(tn_buffer *file, const char *name, tn__saved_model **out, tn_error *err)
{
  *out = NULL;
  tn__saved_model *model = tn__zalloc(sizeof *model);
  if (model == NULL) return tn__no_memory(err, name, sizeof *model);
  tn__arena_init(&model->arena, 1024);
  model->file = file;
  tn_buffer_ref(file);
  tn_status st = read_model(model, name, err);
  if (st == TN_OK)
    *out = model;
  else
    tn__saved_model_close(model);
  return st;
}

tn_status tn__saved_model_open(const char *path, tn__saved_model **out, tn_error *err)
{
  *out = NULL;
  tn_buffer *file;
  tn_status st = tn__bytes_load(path, TN__FORMAT_LIMIT, &file, err);
  if (st != TN_OK) return st;
  st = tn__saved_model_read(file, path, out, err);
  tn_buffer_unref(file);
  return st;
}

void tn__saved_model_close(tn__saved_model *model)
{
  if (model == NULL) return;
  tn__arena_fini(&model->arena);
  tn_buffer_unref(model->file);
  tn__free(model, sizeof *model);
}
