/* SPDX-License-Identifier: Apache-2.0 */
/* Models with their signatures: opens one, and finds tensors by key or by name. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tools/tool.h>

enum { MOST_KEYS = 20 /* that a message lists */ };

/* ---- opening ---- */

/* To protobuf an empty file is a GraphDef without nodes; in practice it is a failed download. */
static tn_status check_empty(const tool_source *source, tn_error *err)
{
  struct stat about;
  const char *path = source->request->path;
  if (source->info.kind != TN_MODEL_GRAPH || tn_graph_n_operations(source->graph) > 0) return TN_OK;
  if (stat(path, &about) != 0 || about.st_size > 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is empty, wanted a GraphDef (.pb, .pbtxt)", path);
}

/* Without a name the default signature is chosen, if there is one. */
static tn_status choose_signature(tool_source *source, tn_error *err)
{
  const char *name = source->request->signature;
  source->signature.struct_size = sizeof(source->signature);
  tn_status status = tn_model_signature_find(source->model, name, &source->signature, name != NULL ? err : NULL);
  if (status == TN_OK) return TN_OK;
  source->signature.name = NULL;
  return name != NULL ? status : TN_OK;
}

/* Splits "a,b" into tags, in place; returns how many there are. */
static size_t split_tags(char *text, const char **tags)
{
  size_t n = 0;
  for (char *at = text; at != NULL && *text != '\0';) {
    tags[n++] = at;
    at = strchr(at, ',');
    if (at != NULL) *at++ = '\0';
  }
  return n;
}

static tn_status open_model(const tool_source_request *request, tn_model **out, tn_error *err)
{
  tn_model_options options;
  const char *list = request->tags != NULL ? request->tags : "";
  size_t length = strlen(list);
  char *text = tool_alloc(length + 1, 1);
  const char **tags = tool_alloc(length + 1, sizeof(*tags));
  memcpy(text, list, length);
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.n_tags = split_tags(text, tags);
  options.tags = options.n_tags > 0 ? tags : NULL;
  options.checkpoint = request->checkpoint;
  tool_progress *progress = tool_progress_start("reading", 0);
  tn_status status = tn_model_open(request->path, &options, out, err);
  tool_progress_end(progress);
  free(tags);
  free(text);
  return status;
}

tn_status tool_source_open(tool_source *source, const tool_source_request *request, tn_error *err)
{
  memset(source, 0, sizeof(*source));
  source->request = request;
  source->info.struct_size = sizeof(source->info);
  tn_status status = open_model(request, &source->model, err);
  if (status == TN_OK) status = tn_model_info_of(source->model, &source->info, err);
  if (status == TN_OK) source->graph = tn_model_graph(source->model);
  if (status == TN_OK) status = check_empty(source, err);
  if (status == TN_OK) status = choose_signature(source, err);
  if (status != TN_OK) tool_source_close(source);
  return status;
}

void tool_source_close(tool_source *source)
{
  tn_model_close(source->model);
  source->model = NULL;
  source->graph = NULL;
}

/* The size of the variables' checkpoint, for the progress; 0: unknown. */
static uint64_t checkpoint_bytes(const tool_source *source)
{
  tn_checkpoint *checkpoint;
  tn_checkpoint_entry entry = { .struct_size = sizeof(entry) };
  uint64_t bytes = 0;
  if (source->info.checkpoint == NULL || tn_checkpoint_open(source->info.checkpoint, &checkpoint, NULL) != TN_OK)
    return 0;
  for (size_t i = 0; tn_checkpoint_at(checkpoint, i, &entry, NULL) == TN_OK; i++) bytes += entry.bytes;
  tn_checkpoint_close(checkpoint);
  return bytes;
}

tn_status tool_source_session(const tool_source *source, const tn_session_options *options, tn_session **out,
                              tn_error *err)
{
  uint64_t bytes = tool_progress_is_shown() ? checkpoint_bytes(source) : 0;
  tool_progress *progress = tool_progress_start_reading("restoring the variables", bytes);
  tn_status status = tn_model_session(source->model, options, out, err);
  tool_progress_end(progress);
  return status;
}

tn_status tool_graph_open(const char *path, tn_graph **out, tn_error *err)
{
  const tool_source_request request = { .path = path };
  tool_source source;
  *out = NULL;
  tn_status status = tool_source_open(&source, &request, err);
  if (status != TN_OK) return status;
  *out = tn_graph_ref(source.graph);
  tool_source_close(&source);
  return TN_OK;
}

/* ---- keys ---- */

typedef tn_status (*endpoint_at_fn)(const tn_model *model, const char *signature, size_t i, tn_model_endpoint *out,
                                    tn_error *err);

static bool endpoint_at(const tool_lookup *lookup, const char *signature, size_t i, tn_model_endpoint *out)
{
  endpoint_at_fn at = lookup->input ? tn_model_input_at : tn_model_output_at;
  memset(out, 0, sizeof(*out));
  out->struct_size = sizeof(*out);
  return signature != NULL && at(lookup->source->model, signature, i, out, NULL) == TN_OK;
}

static bool find_key(const tool_lookup *lookup, const char *key, tn_model_endpoint *out, const char **signature)
{
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; endpoint_at(lookup, lookup->signatures[k], i, out); i++)
      if (strcmp(out->key, key) == 0) {
        *signature = lookup->signatures[k];
        return true;
      }
  return false;
}

/* Lists the keys of a signature; with a prefix, those of the components of one key. Returns how many there are. */
static size_t list_keys(const tool_lookup *lookup, const char *signature, const char *prefix, tool_text *out)
{
  tn_model_endpoint endpoint;
  size_t n = 0, length = prefix != NULL ? strlen(prefix) : 0;
  for (size_t i = 0; endpoint_at(lookup, signature, i, &endpoint); i++) {
    if (prefix != NULL && (strncmp(endpoint.key, prefix, length) != 0 || endpoint.key[length] != '/')) continue;
    if (n++ < MOST_KEYS) tool_text_printf(out, "%s%s", n > 1 ? ", " : "", endpoint.key);
  }
  if (n > MOST_KEYS) tool_text_printf(out, " and %zu more", n - MOST_KEYS);
  return n;
}

static void list_signatures(const tool_source *source, tool_text *out)
{
  tn_model_signature signature = { .struct_size = sizeof(signature) };
  size_t n = 0;
  for (size_t i = 0; tn_model_signature_at(source->model, i, &signature, NULL) == TN_OK; i++)
    if (n++ < MOST_KEYS) tool_text_printf(out, "%s%s", n > 1 ? ", " : "", signature.name);
}

/* Appends the nearest keys and nodes. */
static void add_near(const tool_lookup *lookup, const char *name, tool_text *text)
{
  tool_near near;
  tn_model_endpoint endpoint;
  tn_graph *graph = lookup->source->graph;
  tool_near_init(&near, name);
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; endpoint_at(lookup, lookup->signatures[k], i, &endpoint); i++)
      tool_near_offer(&near, endpoint.key);
  for (size_t i = 0; i < tn_graph_n_operations(graph); i++)
    tool_near_offer(&near, tn_operation_name(tn_graph_operation(graph, i)));
  tool_near_text(&near, text);
}

/* The error for a name that is neither a key nor a tensor. */
static tn_status no_such_key(const tool_lookup *lookup, const char *name, tn_error *err)
{
  const char *kind = lookup->input ? "input" : "output";
  tool_text text = { 0 }, keys = { 0 };
  tool_text_printf(&text, "%s '%s': ", lookup->what, name);
  for (size_t k = 0; k < 2; k++) {
    const char *signature = lookup->signatures[k];
    if (signature == NULL) continue;
    keys.length = 0;
    if (list_keys(lookup, signature, name, &keys) > 0) {
      tool_text_printf(&text, "this %s of signature '%s' has several tensors; name one: %s", kind, signature,
                       keys.data);
      break;
    }
    size_t n = list_keys(lookup, signature, NULL, &keys);
    tool_text_printf(&text, "signature '%s' has no such %s: it has %s; ", signature, kind, n > 0 ? keys.data : "none");
  }
  keys.length = 0;
  if (lookup->signatures[0] == NULL) list_signatures(lookup->source, &keys);
  if (text.data[text.length - 1] == ' ') {
    tool_text_printf(&text, "the model has no node of this name");
    add_near(lookup, name, &text);
    if (keys.length > 0) tool_text_printf(&text, "; --signature NAME chooses one of %s", keys.data);
  }
  tn_error_clear(err);
  tn_status status = tn_error_set(err, TN_NOT_FOUND, "%s", text.data);
  tool_text_fini(&keys);
  tool_text_fini(&text);
  return status;
}

tn_status tool_source_find(const tool_lookup *lookup, const char *name, tool_tensor *out, tn_error *err)
{
  const tool_source *source = lookup->source;
  tn_model_endpoint endpoint;
  const char *signature;
  memset(out, 0, sizeof(*out));
  out->name = name;
  if (find_key(lookup, name, &endpoint, &signature)) {
    out->by_key = true;
    out->name = endpoint.tensor;
    tn_status status = tool_find_output(source->graph, lookup->what, endpoint.tensor, &out->output, err);
    if (status != TN_OK) {
      tn_error_prefix(err, "%s '%s' of signature '%s'", lookup->input ? "input" : "output", name, signature);
      return status;
    }
    out->dtype = tool_output_dtype(source->graph, out->output);
    if (out->dtype == TN_DTYPE_INVALID && tn_dtype_size(endpoint.dtype) > 0) out->dtype = endpoint.dtype;
    return TN_OK;
  }
  tn_status status = tool_find_output(source->graph, lookup->what, name, &out->output, err);
  if (status == TN_OK) out->dtype = tool_output_dtype(source->graph, out->output);
  if (status == TN_NOT_FOUND && source->info.n_signatures > 0) status = no_such_key(lookup, name, err);
  return status;
}
