/* SPDX-License-Identifier: Apache-2.0 */
/* tenon run: the model, its session, and what the names on the command line denote in it. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tools/run/run.h>

/* ---- tensors and feeds ---- */

static tn_status find_feeds(const run_request *r, const tool_source *source, tool_tensor *feeds, tn_error *err)
{
  const tool_lookup lookup = { source, "feed", true, { source->signature.name, r->after_signature } };
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->feed_args.n && status == TN_OK; i++) {
    status = tool_source_find(&lookup, r->feed_names[i], &feeds[i], err);
    r->feed_tensors[i] = feeds[i].name;
    for (size_t j = 0; j < i && status == TN_OK; j++)
      if (feeds[i].output.op == feeds[j].output.op && feeds[i].output.index == feeds[j].output.index)
        status =
            tn_error_set(err, TN_INVALID_ARGUMENT, "feed '%s': this tensor is fed more than once", r->feed_names[i]);
  }
  return status;
}

static tn_status find_fetches(const run_request *r, const tool_source *source, tn_error *err)
{
  const tool_lookup lookup = { source, "fetch", false, { source->signature.name, NULL } };
  const tool_lookup after = { source, "fetch", false, { r->after_signature, source->signature.name } };
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->fetch_args.n && status == TN_OK; i++) {
    tool_tensor tensor;
    bool is_after = i >= r->n_stepped && r->after_signature != NULL;
    status = tool_source_find(is_after ? &after : &lookup, r->fetch_names[i], &tensor, err);
    r->fetch_tensors[i] = tensor.name;
  }
  return status;
}

static tn_status check_after_signature(const run_request *r, const tool_source *source, tn_error *err)
{
  tn_model_signature signature = { .struct_size = sizeof(signature) };
  if (r->after_signature == NULL) return TN_OK;
  return tn_model_signature_find(source->model, r->after_signature, &signature, err);
}

tn_status run_find_tensors(const run_request *r, const tool_source *source, tn_error *err)
{
  tool_tensor *feeds = tool_alloc(r->feed_args.n, sizeof(*feeds));
  tn_operation *node;
  tn_status status = check_after_signature(r, source, err);
  if (status == TN_OK) status = find_feeds(r, source, feeds, err);
  if (status == TN_OK) status = find_fetches(r, source, err);
  for (size_t i = 0; i < r->targets.n && status == TN_OK; i++)
    status = tool_find_node(source->graph, "target", r->targets.items[i], &node, err);
  for (size_t i = 0; i < r->inits.n && status == TN_OK; i++)
    status = tool_find_node(source->graph, "init", r->inits.items[i], &node, err);
  for (size_t i = 0; i < r->feed_args.n && status == TN_OK; i++) {
    status = tool_make_feed(r->feed_values[i], feeds[i].dtype, &r->feeds[i], err);
    if (status != TN_OK) tn_error_prefix(err, "feed '%s'", r->feed_names[i]);
  }
  free(feeds);
  return status;
}

/* Whether the message names the node of the tensor "node:0". */
static bool names_node(const char *message, const char *tensor)
{
  tool_text quoted = { 0 };
  tool_text_printf(&quoted, "'%.*s'", (int)strcspn(tensor, ":"), tensor);
  bool names = strstr(message, quoted.data) != NULL;
  tool_text_fini(&quoted);
  return names;
}

void run_explain_missing(const run_request *r, const tool_source *source, tn_error *err)
{
  const char *const signatures[] = { source->signature.name, r->after_signature };
  if (strstr(tn_error_message(err), "was not fed") == NULL) return;
  for (size_t k = 0; k < 2; k++) {
    tn_model_endpoint input = { .struct_size = sizeof(input) };
    if (signatures[k] == NULL) continue;
    for (size_t i = 0; tn_model_input_at(source->model, signatures[k], i, &input, NULL) == TN_OK; i++) {
      if (!names_node(tn_error_message(err), input.tensor)) continue;
      tn_error_wrap(err, TN_OK, "input '%s' of signature '%s' is needed: add --feed %s=VALUE", input.key, signatures[k],
                    input.key);
      return;
    }
  }
}

/* ---- the session ---- */

static tn_status set_folders(const run_request *r, tn_session_options *options, tn_error *err)
{
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->read_folders.n && status == TN_OK; i++)
    status = tn_session_options_add_read_folder(options, r->read_folders.items[i], err);
  for (size_t i = 0; i < r->write_folders.n && status == TN_OK; i++)
    status = tn_session_options_add_write_folder(options, r->write_folders.items[i], err);
  return status;
}

static tn_status set_option(tn_session_options *options, const char *item, tn_error *err)
{
  const char *equals = strchr(item, '=');
  tool_text field = { 0 };
  tool_text_add(&field, item, (size_t)(equals - item));
  tn_status status = tn_session_options_parse(options, field.data, equals + 1, err);
  tool_text_fini(&field);
  return status;
}

static tn_status set_options(const run_request *r, tn_session_options *options, tn_error *err)
{
  /* A feed of a wrong shape is an error here; --option strict_shapes=false disables the check. */
  tn_status status = tn_session_options_set_bool(options, "strict_shapes", 1, err);
  if (status == TN_OK && r->config != NULL) status = tn_session_options_load_config(options, r->config, err);
  if (status == TN_OK && r->runtime != NULL) status = tool_set_target(options, r->runtime, err);
  if (status == TN_OK && r->level != NULL) status = tn_session_options_parse(options, "level", r->level, err);
  if (status == TN_OK && r->soft_placement)
    status = tn_session_options_set_bool(options, "allow_soft_placement", 1, err);
  if (status == TN_OK && r->log_placement)
    status = tn_session_options_set_bool(options, "log_device_placement", 1, err);
  for (size_t i = 0; i < r->options.n && status == TN_OK; i++) status = set_option(options, r->options.items[i], err);
  return status == TN_OK ? set_folders(r, options, err) : status;
}

static void explain(const tn_session_options *options)
{
  size_t needed = 0;
  tn_explain_selection(options, NULL, 0, &needed, NULL);
  char *text = tool_alloc(needed + 1, 1);
  tn_explain_selection(options, text, needed + 1, &needed, NULL);
  fputs(text, stderr);
  if (needed > 0 && text[needed - 1] != '\n') fputc('\n', stderr);
  free(text);
}

tn_status run_open_session(const run_request *r, const tool_source *source, tn_session **out, tn_error *err)
{
  tn_session_options *options = NULL;
  uint64_t started = tool_now_ns();
  tn_status status = tn_session_options_create(&options, err);
  if (status == TN_OK) status = set_options(r, options, err);
  if (status == TN_OK && r->verbose) explain(options);
  if (status == TN_OK) status = tool_source_session(source, options, out, err);
  tn_session_options_destroy(options);
  if (status != TN_OK || !r->verbose) return status;
  const tn_runtime_info *info = tn_session_runtime(*out);
  fprintf(stderr, "runtime %s %s%s%s\n", info->name, info->version != NULL ? info->version : "",
          info->file != NULL && info->file[0] != '\0' ? ", " : "", info->file != NULL ? info->file : "");
  fprintf(stderr, "session opened in %.3f ms\n", (double)(tool_now_ns() - started) / 1e6);
  return TN_OK;
}

/* ---- saving ---- */

static bool is_empty_folder(const char *path)
{
  DIR *folder = opendir(path);
  size_t n = 0;
  if (folder == NULL) return false;
  while (n <= 2 && readdir(folder) != NULL) n++; /* "." and ".." */
  closedir(folder);
  return n <= 2;
}

static tn_status check_saves(const run_request *r, tn_error *err)
{
  struct stat about;
  char *real = NULL;
  tn_status status = TN_OK;
  if (r->save != NULL) {
    size_t length = strlen(r->save);
    if (length == 0 || r->save[length - 1] == '/')
      status = tn_error_set(err, TN_INVALID_ARGUMENT, "--save '%s': expected a prefix, such as folder/model", r->save);
    if (status == TN_OK) status = tool_real_name(r->save, &real, err);
    free(real);
  }
  if (status != TN_OK || r->save_model == NULL) return status;
  if (stat(r->save_model, &about) == 0 && !is_empty_folder(r->save_model))
    return tn_error_set(err, TN_ALREADY_EXISTS, "--save-model '%s': it exists and is not an empty folder",
                        r->save_model);
  return TN_OK;
}

int run_check_saves(const run_request *r)
{
  tn_error err = TN_ERROR_INIT;
  return check_saves(r, &err) == TN_OK ? TOOL_OK : tool_fail(&err);
}

/* The key for a tensor: "x" for x and x:0, "x_1" for x:1. */
static char *key_of(const char *tensor)
{
  size_t length = strcspn(tensor, ":");
  tool_text key = { 0 };
  tool_text_add(&key, tensor, length);
  if (tensor[length] == ':' && strcmp(tensor + length, ":0") != 0) tool_text_printf(&key, "_%s", tensor + length + 1);
  return key.data;
}

/* The name "node:0" of a tensor. */
static char *full_name(const char *tensor)
{
  tool_text name = { 0 };
  tool_text_printf(&name, "%s%s", tensor, strchr(tensor, ':') == NULL ? ":0" : "");
  return name.data;
}

/* Saves with a signature of what was fed and fetched. */
static tn_status save_with_signature(const run_request *r, tn_session *session, tn_error *err)
{
  size_t n = r->feed_args.n + r->fetch_args.n;
  char **keys = tool_alloc(n, sizeof(*keys)), **tensors = tool_alloc(n, sizeof(*tensors));
  for (size_t i = 0; i < n; i++) {
    const char *tensor = i < r->feed_args.n ? r->feed_tensors[i] : r->fetch_tensors[i - r->feed_args.n];
    keys[i] = key_of(tensor);
    tensors[i] = full_name(tensor);
  }
  const tn_model_signature_spec signature = { .struct_size = sizeof(signature),
                                              .name = "serving_default",
                                              .input_keys = (const char *const *)keys,
                                              .input_tensors = (const char *const *)tensors,
                                              .n_inputs = r->feed_args.n,
                                              .output_keys = (const char *const *)keys + r->feed_args.n,
                                              .output_tensors = (const char *const *)tensors + r->feed_args.n,
                                              .n_outputs = r->fetch_args.n };
  const tn_model_save_options options = { .struct_size = sizeof(options), .signatures = &signature, .n_signatures = 1 };
  tn_status status = tn_model_save(session, r->save_model, &options, err);
  for (size_t i = 0; i < n; i++) {
    free(keys[i]);
    free(tensors[i]);
  }
  free(keys);
  free(tensors);
  return status;
}

tn_status run_save_model(const run_request *r, const tool_source *source, tn_session *session, tn_error *err)
{
  bool own = source->info.n_signatures == 0 && r->fetch_args.n > 0;
  tool_progress *progress = tool_progress_start("saving", 0);
  tn_status status = own ? save_with_signature(r, session, err) : tn_model_save(session, r->save_model, NULL, err);
  tool_progress_end(progress);
  return status;
}

/* ---- what there is to run ---- */

static void print_example(const run_request *r, const char *signature, const char *input, const char *output)
{
  if (output == NULL) return;
  printf("\nFor example:\n  tenon run %s", r->source.path);
  if (r->source.checkpoint != NULL) printf(" --checkpoint %s", r->source.checkpoint);
  if (r->source.tags != NULL) printf(" --tags %s", r->source.tags);
  if (signature != NULL && (r->source.signature != NULL || strcmp(signature, "serving_default") != 0))
    printf(" --signature %s", signature);
  if (input != NULL) printf(" --feed %s=FILE.npy", input);
  printf(" --fetch %s\n", output);
}

/* Shows all signatures, or the one that --signature names. Returns false if there is none. */
static bool describe_signatures(const run_request *r, const tool_source *source)
{
  tn_model_signature signature = { .struct_size = sizeof(signature) };
  const char *example = source->signature.name;
  bool any = false;
  for (size_t i = 0; tn_model_signature_at(source->model, i, &signature, NULL) == TN_OK; i++) {
    if (r->source.signature != NULL && strcmp(signature.name, r->source.signature) != 0) continue;
    tool_print_signature(source, &signature, NULL, 20, stdout);
    if (example == NULL) example = signature.name;
    any = true;
  }
  if (!any) return false;
  tn_model_endpoint input = { .struct_size = sizeof(input) }, output = { .struct_size = sizeof(output) };
  bool fed = tn_model_input_at(source->model, example, 0, &input, NULL) == TN_OK;
  bool fetched = tn_model_output_at(source->model, example, 0, &output, NULL) == TN_OK;
  print_example(r, example, fed ? input.key : NULL, fetched ? output.key : NULL);
  return true;
}

static void describe_graph(const run_request *r, const tool_source *source)
{
  tool_model model;
  tool_text input = { 0 }, output = { 0 };
  tool_model_scan(&model, source->graph);
  for (size_t i = 0; i < model.n; i++) {
    const char *name = tn_operation_name(model.nodes[i].op);
    if (input.length == 0 && tool_node_is_input(&model.nodes[i])) tool_text_printf(&input, "%s:0", name);
    if (output.length == 0 && tool_node_is_output(&model.nodes[i])) tool_text_printf(&output, "%s:0", name);
  }
  tool_describe_ends(&model, 20, stdout);
  print_example(r, NULL, input.data, output.data);
  tool_text_fini(&input);
  tool_text_fini(&output);
  tool_model_fini(&model);
}

int run_describe(const run_request *r, const tool_source *source)
{
  printf("%s: %zu nodes", r->source.path, tn_graph_n_operations(source->graph));
  if (tn_model_tag(source->model, source->info.tag_set, 0) != NULL) {
    tool_text tags = { 0 };
    tool_text_tags(&tags, source->model, source->info.tag_set);
    printf(", tags %s", tags.data);
    tool_text_fini(&tags);
  }
  tool_text maker = { 0 };
  tool_text_maker(&maker, &source->info);
  if (maker.length > 0) printf(", made by %s", maker.data);
  tool_text_fini(&maker);
  fputc('\n', stdout);
  if (!describe_signatures(r, source)) describe_graph(r, source);
  fputc('\n', stdout);
  return tool_usage("run", "nothing to run: add --fetch TENSOR or --target NODE");
}
