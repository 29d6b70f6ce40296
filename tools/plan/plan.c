/* SPDX-License-Identifier: Apache-2.0 */
/* tenon plan: shows the plan of a model. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <tools/picture/picture.h>
#include <tools/plan/plan.h>

static const char help[] =
    "Usage: tenon plan MODEL [OPTION...]\n"
    "       tenon plan --passes\n"
    "\n"
    "Shows a model's plan: the ops before and after planning, the changes of each pass, the instructions of a\n"
    "step with their kernels, and the memory they use. Without --fetch and --target, all outputs of the signature\n"
    "are fetched, or all outputs that can run if the model has no signatures. Placeholders are always fed.\n"
    "\n"
    "  --signature NAME         the signature of a SavedModel; default: serving_default, or the only one\n"
    "  --tags TAG[,TAG...]      the MetaGraph with these tags; default: serve, or the only one\n"
    "  --checkpoint PREFIX      take the variables from this checkpoint instead of the model's own\n"
    "  --feed TENSOR[=VALUE]    also feed this tensor; with a VALUE as in 'tenon run', one step is run\n"
    "  --fetch TENSOR           fetch a tensor\n"
    "  --target NODE            run a node for its effect\n"
    "  --step                   run one step to determine shapes, memory and the selected kernels; feeds\n"
    "                           without a value are zeros, and unknown dimensions are 1\n"
    "  --disable PASS           disable a pass; may be repeated\n"
    "  --level N                optimisation level: 0 runs the graph unchanged, 1 is the default\n"
    "  --runtime NAME[:K=V,...] the runtime, with settings\n"
    "  --option FIELD=VALUE     set another session option, such as kernel_plugins=always\n"
    "  --all                    show every instruction: long lists are not cut, pictures not folded\n"
    "  --json                   print the plan as JSON\n"
    "  -o, --output FILE        draw the graph before and after planning; the suffix of FILE selects the format:\n"
    "                           .svg, .png, .pdf, or .dot and .gv for DOT text\n"
    "  --passes                 list the passes and describe each\n"
    "  -h, --help               show this help\n"
    "\n"
    "TENSOR is a key of the signature, or node:output; node alone means node:0.\n";

typedef struct list {
  const char **items;
  size_t n, room;
} list;

typedef struct request {
  tool_source_request source;
  const char *runtime, *level, *output;
  const char *format; /* dot's output format; NULL: DOT text */
  list feed_args, fetches, targets, disabled, options;
  bool step, all, json, passes;
  /* The signature; default names are used if none were given. */
  char **feeds;
  tn_tensor **values; /* NULL: zeros */
  size_t n_feeds, feed_room, value_room;
  char **made; /* names of default fetches */
  size_t n_made, made_room;
} request;

static void add(list *l, const char *item)
{
  l->items = tool_grow(l->items, l->n, &l->room, sizeof(*l->items));
  l->items[l->n++] = item;
}

/* ---- the command line ---- */

static int parse_output(request *r)
{
  static const struct {
    const char *ending, *format;
  } formats[] = { { ".svg", "svg" }, { ".png", "png" }, { ".pdf", "pdf" }, { ".dot", NULL }, { ".gv", NULL } };
  if (r->output == NULL) return TOOL_OK;
  const char *name = picture_last_part(r->output), *dot = strrchr(name, '.');
  for (size_t i = 0; dot != NULL && dot != name && i < sizeof(formats) / sizeof(formats[0]); i++)
    if (strcasecmp(dot, formats[i].ending) == 0) {
      r->format = formats[i].format;
      return TOOL_OK;
    }
  return tool_usage("plan", "-o '%s': the file must end in .svg, .png, .pdf, .dot or .gv", r->output);
}

static int check(request *r, int argc, char **argv)
{
  if (r->passes && optind < argc)
    return tool_usage("plan", "--passes does not take a model, but '%s' was given", argv[optind]);
  if (r->passes) return TOOL_OK;
  if (optind == argc) return tool_usage("plan", "no model file was given");
  if (optind + 1 < argc) return tool_usage("plan", "expected one model, but '%s' is a second one", argv[optind + 1]);
  for (size_t i = 0; i < r->options.n; i++)
    if (strchr(r->options.items[i], '=') == NULL)
      return tool_usage("plan", "--option '%s': expected FIELD=VALUE", r->options.items[i]);
  r->source.path = argv[optind];
  return parse_output(r);
}

static int parse(request *r, int argc, char **argv)
{
  static const struct option options[] = {
    { "feed", required_argument, NULL, 'f' },    { "fetch", required_argument, NULL, 'e' },
    { "target", required_argument, NULL, 't' },  { "step", no_argument, NULL, 's' },
    { "disable", required_argument, NULL, 'd' }, { "level", required_argument, NULL, 'l' },
    { "runtime", required_argument, NULL, 'r' }, { "option", required_argument, NULL, 'p' },
    { "all", no_argument, NULL, 'a' },           { "json", no_argument, NULL, 'j' },
    { "passes", no_argument, NULL, 'P' },        { "output", required_argument, NULL, 'o' },
    { "tags", required_argument, NULL, 'k' },    { "signature", required_argument, NULL, 'g' },
    { "checkpoint", required_argument, NULL, 'c' },
    { NULL, 0, NULL, 0 },
  };
  int c;
  while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
    switch (c) {
    case 'f': add(&r->feed_args, optarg); break;
    case 'e': add(&r->fetches, optarg); break;
    case 't': add(&r->targets, optarg); break;
    case 'd': add(&r->disabled, optarg); break;
    case 'p': add(&r->options, optarg); break;
    case 'k': r->source.tags = optarg; break;
    case 'g': r->source.signature = optarg; break;
    case 'c': r->source.checkpoint = optarg; break;
    case 's': r->step = true; break;
    case 'a': r->all = true; break;
    case 'j': r->json = true; break;
    case 'P': r->passes = true; break;
    case 'l': r->level = optarg; break;
    case 'r': r->runtime = optarg; break;
    case 'o': r->output = optarg; break;
    default: return tool_bad_option("plan", c, argv);
    }
  }
  return check(r, argc, argv);
}

/* ---- the signature ---- */

static void add_feed(request *r, const char *name, size_t length, tn_tensor *value)
{
  r->feeds = tool_grow(r->feeds, r->n_feeds, &r->feed_room, sizeof(*r->feeds));
  r->values = tool_grow(r->values, r->n_feeds, &r->value_room, sizeof(tn_tensor *));
  r->feeds[r->n_feeds] = tool_alloc(length + 1, 1);
  memcpy(r->feeds[r->n_feeds], name, length);
  r->values[r->n_feeds++] = value;
}

static tn_status given_feed(request *r, const tool_source *source, size_t i, tn_output *fed, tn_error *err)
{
  const tool_lookup lookup = { source, "feed", true, { source->signature.name, NULL } };
  const char *arg = r->feed_args.items[i];
  size_t length = strcspn(arg, "=");
  tool_tensor tensor;
  char *name = tool_alloc(length + 1, 1);
  memcpy(name, arg, length);
  tn_status status = tool_source_find(&lookup, name, &tensor, err);
  if (status == TN_OK) {
    *fed = tensor.output;
    add_feed(r, tensor.name, strlen(tensor.name), NULL);
  }
  if (status == TN_OK && arg[length] == '=') {
    r->step = true;
    status = tool_make_feed(arg + length + 1, tensor.dtype, &r->values[i], err);
    if (status != TN_OK) tn_error_prefix(err, "feed '%s'", name);
  }
  free(name);
  return status;
}

static tn_status given_fetches(request *r, const tool_source *source, tn_error *err)
{
  const tool_lookup lookup = { source, "fetch", false, { source->signature.name, NULL } };
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->fetches.n && status == TN_OK; i++) {
    tool_tensor tensor;
    status = tool_source_find(&lookup, r->fetches.items[i], &tensor, err);
    r->fetches.items[i] = tensor.name;
  }
  return status;
}

/* Adds the inputs of the signature that are not fed. */
static void add_inputs(request *r, const tool_source *source, const tn_output *fed)
{
  tn_model_endpoint input = { .struct_size = sizeof(input) };
  tn_output output;
  size_t given = r->n_feeds;
  for (size_t i = 0; tn_model_input_at(source->model, source->signature.name, i, &input, NULL) == TN_OK; i++) {
    bool wanted = !input.has_default && tool_find_output(source->graph, "feed", input.tensor, &output, NULL) == TN_OK;
    for (size_t k = 0; wanted && k < given; k++) wanted = fed[k].op != output.op;
    if (wanted) add_feed(r, input.tensor, strlen(input.tensor), NULL);
  }
}

static void add_signature_outputs(request *r, const tool_source *source)
{
  tn_model_endpoint output = { .struct_size = sizeof(output) };
  for (size_t i = 0; tn_model_output_at(source->model, source->signature.name, i, &output, NULL) == TN_OK; i++)
    add(&r->fetches, output.tensor);
}

static void add_placeholders(request *r, const tool_model *model, const tn_output *fed)
{
  size_t given = r->n_feeds;
  for (size_t i = 0; i < model->n; i++) {
    const tool_node *node = &model->nodes[i];
    bool wanted = tool_node_is_input(node) && !tool_node_has_default(node);
    for (size_t k = 0; wanted && k < given; k++) wanted = fed[k].op != node->op;
    const char *name = tn_operation_name(node->op);
    if (wanted) add_feed(r, name, strlen(name), NULL);
  }
}

static void add_outputs(request *r, const tool_model *model)
{
  for (size_t i = 0; i < model->n; i++) {
    const tool_node *node = &model->nodes[i];
    if (node->blocked_by != NULL || !tool_node_is_output(node)) continue;
    for (size_t k = 0; k < tn_operation_n_outputs(node->op); k++) {
      tool_text name = { 0 };
      tool_text_printf(&name, "%s:%zu", tn_operation_name(node->op), k);
      r->made = tool_grow(r->made, r->n_made, &r->made_room, sizeof(*r->made));
      r->made[r->n_made++] = name.data;
      add(&r->fetches, name.data);
    }
  }
}

/* Adds what the command line does not name: from the signature, or else by guessing from the graph. */
static void add_defaults(request *r, const tool_source *source, const tn_output *fed)
{
  tool_model model;
  bool no_fetches = r->fetches.n + r->targets.n == 0;
  if (source->signature.name != NULL) {
    add_inputs(r, source, fed);
    if (no_fetches) add_signature_outputs(r, source);
    return;
  }
  tool_model_scan(&model, source->graph);
  add_placeholders(r, &model, fed);
  if (no_fetches) add_outputs(r, &model);
  tool_model_fini(&model);
}

static tn_status make_signature(request *r, const tool_source *source, tn_error *err)
{
  tn_output *fed = tool_alloc(r->feed_args.n + 1, sizeof(*fed));
  tn_operation *node;
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->feed_args.n && status == TN_OK; i++) status = given_feed(r, source, i, &fed[i], err);
  if (status == TN_OK) status = given_fetches(r, source, err);
  for (size_t i = 0; i < r->targets.n && status == TN_OK; i++)
    status = tool_find_node(source->graph, "target", r->targets.items[i], &node, err);
  if (status == TN_OK) add_defaults(r, source, fed);
  free(fed);
  if (status == TN_OK && r->fetches.n + r->targets.n == 0)
    status = tn_error_set(err, TN_INVALID_ARGUMENT,
                          "the model has no output that can run: select one with --fetch or --target");
  return status;
}

/* ---- sessions ---- */

static tn_status set_options(const request *r, const char *level, tn_session_options *options, tn_error *err)
{
  tool_text off = { 0 };
  tn_status status =
      tn_session_options_set_bool(options, "strict_shapes", 1, err); /* a feed of a wrong shape is an error */
  for (size_t i = 0; i < r->disabled.n; i++) tool_text_printf(&off, "%s%s", i == 0 ? "" : ",", r->disabled.items[i]);
  if (status == TN_OK && r->runtime != NULL) status = tool_set_target(options, r->runtime, err);
  if (status == TN_OK && level != NULL) status = tn_session_options_parse(options, "level", level, err);
  if (status == TN_OK && off.data != NULL)
    status = tn_session_options_set_string(options, "disable_passes", off.data, err);
  for (size_t i = 0; i < r->options.n && status == TN_OK; i++) {
    const char *equals = strchr(r->options.items[i], '=');
    size_t length = (size_t)(equals - r->options.items[i]);
    char *field = tool_alloc(length + 1, 1);
    memcpy(field, r->options.items[i], length);
    status = tn_session_options_parse(options, field, equals + 1, err);
    free(field);
  }
  tool_text_fini(&off);
  return status;
}

static tn_status open_session(const request *r, const char *level, const tool_source *source, tn_session **out,
                              tn_error *err)
{
  tn_session_options *options = NULL;
  *out = NULL;
  tn_status status = tn_session_options_create(&options, err);
  if (status == TN_OK) status = set_options(r, level, options, err);
  if (status == TN_OK) status = tool_source_session(source, options, out, err);
  tn_session_options_destroy(options);
  return status;
}

static tn_status read_plan(const request *r, tn_session *session, tn_plan_report **out, tn_error *err)
{
  return tn_session_plan_report(session, (const char *const *)r->feeds, r->n_feeds, r->fetches.items, r->fetches.n,
                                r->targets.items, r->targets.n, out, err);
}

/* Creates zeros with the graph's shape. */
static tn_status make_zeros(tn_graph *graph, const char *name, tn_tensor **out, tn_error *err)
{
  tn_output output;
  int32_t rank;
  tn_status status = tool_find_output(graph, "feed", name, &output, err);
  if (status != TN_OK) return status;
  int64_t *dims = tool_output_dims(output, &rank);
  tn_dtype dtype = tool_output_dtype(graph, output);
  if (rank < 0 || dtype == TN_DTYPE_INVALID)
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "feed '%s': its %s is unknown, so a step requires --feed %s=VALUE",
                          name, rank < 0 ? "shape" : "type", name);
  for (int32_t d = 0; d < rank; d++) dims[d] = dims[d] < 0 ? 1 : dims[d];
  if (status == TN_OK) status = tn_tensor_create(dtype, dims, rank, out, err);
  if (status == TN_OK && tn_tensor_data(*out) != NULL && dtype != TN_STRING)
    memset(tn_tensor_data(*out), 0, tn_tensor_bytes(*out));
  free(dims);
  return status;
}

static tn_status run_step(request *r, tn_graph *graph, tn_session *session, tn_error *err)
{
  tn_tensor **fetched = tool_alloc(r->fetches.n + 1, sizeof(tn_tensor *));
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->n_feeds && status == TN_OK; i++)
    if (r->values[i] == NULL) status = make_zeros(graph, r->feeds[i], &r->values[i], err);
  if (status == TN_OK)
    status = tn_session_run(session, NULL, (const char *const *)r->feeds, r->values, r->n_feeds, r->fetches.items,
                            fetched, r->fetches.n, r->targets.items, r->targets.n, NULL, err);
  for (size_t i = 0; i < r->fetches.n; i++) tn_tensor_unref(fetched[i]);
  free(fetched);
  return status;
}

/* ---- the command ---- */

static tn_status draw(const request *r, const plan_view *view, tn_error *err)
{
  tool_text dot = { 0 }, drawn = { 0 };
  tn_status status = TN_OK;
  plan_picture(view, r->all ? 0 : PICTURE_BOXES / 2, &dot);
  if (r->format != NULL) status = picture_render(r->format, &dot, &drawn, err);
  const tool_text *content = r->format != NULL ? &drawn : &dot;
  if (status == TN_OK) status = picture_save(r->output, content->data, content->length, err);
  if (status == TN_OK) fprintf(stderr, "%s: the graph before and after\n", r->output);
  tool_text_fini(&drawn);
  tool_text_fini(&dot);
  return status;
}

static tn_status show(request *r, const tool_source *source, int *exit_status, tn_error *err)
{
  tn_session *session = NULL, *plain = NULL;
  tn_plan_report *before = NULL, *after = NULL;
  tn_status status = make_signature(r, source, err);
  if (status == TN_OK) status = open_session(r, r->level, source, &session, err);
  if (status == TN_OK && r->step) status = run_step(r, source->graph, session, err);
  if (status == TN_OK) status = read_plan(r, session, &after, err);
  /* A model that needs passes to run has no plan at level 0; show it without that plan. */
  if (status == TN_OK && open_session(r, "0", source, &plain, NULL) == TN_OK) read_plan(r, plain, &before, NULL);
  plan_view view = { picture_last_part(r->source.path), before, after, r->fetches.items, r->targets.items, r->fetches.n,
                     r->targets.n, r->all };
  if (status == TN_OK && r->output != NULL) status = draw(r, &view, err);
  if (status == TN_OK && r->json) *exit_status = plan_print_json(&view);
  if (status == TN_OK && !r->json) plan_print_text(&view);
  tn_session_destroy(plain);
  tn_session_destroy(session);
  tn_plan_report_release(before);
  tn_plan_report_release(after);
  return status;
}

static void free_request(request *r)
{
  for (size_t i = 0; i < r->n_feeds; i++) {
    free(r->feeds[i]);
    tn_tensor_unref(r->values[i]);
  }
  for (size_t i = 0; i < r->n_made; i++) free(r->made[i]);
  free(r->feeds);
  free(r->values);
  free(r->made);
  list *lists[] = { &r->feed_args, &r->fetches, &r->targets, &r->disabled, &r->options };
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) free(lists[i]->items);
}

static int plan_model(request *r)
{
  tn_error err = TN_ERROR_INIT;
  tool_source source;
  int result = TOOL_OK;
  tn_status status = r->output != NULL ? picture_check_place(r->output, &err) : TN_OK;
  if (r->passes) plan_print_passes();
  if (status == TN_OK && !r->passes) {
    status = tool_source_open(&source, &r->source, &err);
    if (status == TN_OK) status = show(r, &source, &result, &err);
    tool_source_close(&source);
  }
  if (status != TN_OK) result = tool_fail(&err);
  tn_error_clear(&err);
  if (status == TN_NOT_FOUND) tool_hint_no_runtime();
  return result;
}

static int run(int argc, char **argv)
{
  request r;
  memset(&r, 0, sizeof(r));
  int status = parse(&r, argc, argv);
  if (status == TOOL_OK) status = plan_model(&r);
  free_request(&r);
  return status;
}

const tool_command tool_cmd_plan = { "plan", "show the plan of a model", help, run };
