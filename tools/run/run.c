/* SPDX-License-Identifier: Apache-2.0 */
/* tenon run: feeds a model, runs it, and prints or saves the results. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tools/run/run.h>

static const char help[] =
    "Usage: tenon run MODEL [OPTION...]\n"
    "\n"
    "Runs a model: feeds tensors, runs steps and fetches tensors. MODEL is a GraphDef file. Without --fetch,\n"
    "--target and --init, shows the model's inputs and outputs and exits with status 2.\n"
    "\n"
    "  --feed TENSOR=FILE.npy   feed the array in a NumPy file\n"
    "  --feed TENSOR=FILE.npz:KEY\n"
    "                           feed one array of an archive; :KEY may be omitted if there is only one\n"
    "  --feed TENSOR=LITERAL    feed a number, true, false, a string or a nested list of these; the graph decides the\n"
    "                           type: 7  -1.5e3  1+2j  [[1, 2], [3, 4]]  '[\"a\", \"b\"]'\n"
    "  --feed TENSOR=@FILE      feed the bytes of a file as a scalar string\n"
    "  --fetch TENSOR           print a tensor, formatted as by NumPy\n"
    "  --fetch TENSOR=FILE.npy  save a tensor; the file is written completely or not at all\n"
    "  --fetch TENSOR=FILE.npz:KEY\n"
    "                           the same; tensors with different keys may share a file\n"
    "  --init NODE              run a node once, before the steps; in the order given\n"
    "  --target NODE            run a node for its effect in each step\n"
    "  --steps N                run N steps and print their duration; values of the last step are shown\n"
    "  --every K                also print fetched scalars after every K steps\n"
    "  --timeout MS             fail if a step takes longer than this many milliseconds\n"
    "  --warm-up                prepare for the feeds before the first step; not subject to --timeout\n"
    "  --after TENSOR[=FILE]    like --fetch, but once after the steps and without their targets\n"
    "  --runtime NAME[:K=V,...] the runtime, with settings; 'tenon runtimes' lists them; a path instead of a name "
    "loads\n"
    "                           the runtime in that file\n"
    "  --level N                optimisation level: 0 runs the graph unchanged, 1 is the default\n"
    "  --option FIELD=VALUE     set another session option, such as operation_timeout_ms=500; strict_shapes=false "
    "allows\n"
    "                           feeds of any shape\n"
    "  --config FILE            options from a TensorFlow ConfigProto, as bytes or text; command-line options override "
    "it\n"
    "  --soft-placement         run a node on the CPU if its device is absent or has no kernel for it\n"
    "  --log-placement          print the device of each node to standard error\n"
    "  --trace FILE.json        write a trace of every step's nodes for Perfetto (https://ui.perfetto.dev)\n"
    "  --trace FILE.pb          write the trace of the last step as a TensorFlow RunMetadata message\n"
    "  --timeline FILE.svg      draw the last steps, with a row for each thread and device\n"
    "  --profile                print the most expensive nodes and ops to standard error\n"
    "  -v, --verbose            print the chosen runtime and the duration of each phase to standard error\n"
    "  -h, --help               show this help\n"
    "\n"
    "TENSOR is node:output; node alone means node:0. Options that set one item may be repeated.\n"
    "Ctrl-C cancels the running step; output files are written completely or not at all. A second Ctrl-C ends the\n"
    "command immediately.\n"
    "\n"
    "Examples:\n"
    "  tenon run digits.pb --feed image:0=images.npy --fetch class:0 --fetch probabilities:0=out.npy\n"
    "  tenon run mlp.pb --init init --target train --feed x=x.npy --feed y=y.npy --fetch loss --steps 500 --every 50\n";

static void add_name(run_names *list, const char *name)
{
  list->items = tool_grow(list->items, list->n, &list->room, sizeof(*list->items));
  list->items[list->n++] = name;
}

/* ---- arguments ---- */

static int parse_count(const char *option, const char *text, uint64_t *count)
{
  size_t digits = strspn(text, "0123456789");
  *count = digits > 0 && digits <= 12 && text[digits] == '\0' ? strtoull(text, NULL, 10) : 0;
  if (*count == 0) return tool_usage("run", "--%s '%s': expected a number from 1 to 999999999999", option, text);
  return TOOL_OK;
}

/* Handles an option that has its own letter. */
static int take_option(run_request *r, int c)
{
  switch (c) {
  case 'f': add_name(&r->feed_args, optarg); break;
  case 'o': add_name(&r->fetch_args, optarg); break;
  case 'a': add_name(&r->after_args, optarg); break;
  case 'i': add_name(&r->inits, optarg); break;
  case 't': add_name(&r->targets, optarg); break;
  case 'p': add_name(&r->options, optarg); break;
  case 'r': r->runtime = optarg; break;
  case 'l': r->level = optarg; break;
  case 'v': r->verbose = true; break;
  case 'w': r->warm_up = true; break;
  case 'c': r->config = optarg; break;
  case 'S': r->soft_placement = true; break;
  case 'L': r->log_placement = true; break;
  case 'T': r->trace->file = optarg; break;
  case 'D': r->trace->timeline = optarg; break;
  case 'P': r->trace->profile = true; break;
  case 's': r->measure = true; return parse_count("steps", optarg, &r->steps);
  case 'e': return parse_count("every", optarg, &r->every);
  case 'm': return parse_count("timeout", optarg, &r->timeout_ms);
  }
  return TOOL_OK;
}

static int parse(run_request *r, int argc, char **argv)
{
  static const struct option options[] = {
    { "feed", required_argument, NULL, 'f' },
    { "fetch", required_argument, NULL, 'o' },
    { "init", required_argument, NULL, 'i' },
    { "target", required_argument, NULL, 't' },
    { "steps", required_argument, NULL, 's' },
    { "runtime", required_argument, NULL, 'r' },
    { "level", required_argument, NULL, 'l' },
    { "option", required_argument, NULL, 'p' },
    { "every", required_argument, NULL, 'e' },
    { "timeout", required_argument, NULL, 'm' },
    { "warm-up", no_argument, NULL, 'w' },
    { "after", required_argument, NULL, 'a' },
    { "config", required_argument, NULL, 'c' },
    { "soft-placement", no_argument, NULL, 'S' },
    { "log-placement", no_argument, NULL, 'L' },
    { "trace", required_argument, NULL, 'T' },
    { "timeline", required_argument, NULL, 'D' },
    { "profile", no_argument, NULL, 'P' },
    { "verbose", no_argument, NULL, 'v' },
    { NULL, 0, NULL, 0 },
  };
  int c;
  r->steps = 1;
  while ((c = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
    if (c == '?' || c == ':') return tool_bad_option("run", c, argv);
    if (take_option(r, c) != TOOL_OK) return TOOL_USAGE;
  }
  if (optind == argc) return tool_usage("run", "no model file was given");
  r->model = argv[optind];
  if (optind + 1 < argc) return tool_usage("run", "expected one model, but '%s' is a second one", argv[optind + 1]);
  r->n_stepped = r->fetch_args.n;
  for (size_t i = 0; i < r->after_args.n; i++) add_name(&r->fetch_args, r->after_args.items[i]);
  if (trace_wanted(r->trace) && r->n_stepped + r->targets.n == 0)
    return tool_usage("run", "--trace, --timeline and --profile require steps: add --fetch TENSOR or --target NODE");
  r->trace->model = r->model;
  if (r->every > 0 && r->n_stepped == 0) return tool_usage("run", "--every prints fetched values: add --fetch TENSOR");
  return TOOL_OK;
}

/* Splits "name=value"; *value is NULL if there is no "=". */
static char *split_argument(const char *argument, const char **value)
{
  size_t length = strcspn(argument, "=");
  char *name = tool_alloc(length + 1, 1);
  memcpy(name, argument, length);
  *value = argument[length] == '=' ? argument + length + 1 : NULL;
  return name;
}

static int split_arguments(run_request *r)
{
  r->feed_names = tool_alloc(r->feed_args.n, sizeof(*r->feed_names));
  r->feed_values = tool_alloc(r->feed_args.n, sizeof(*r->feed_values));
  r->feeds = tool_alloc(r->feed_args.n, sizeof(tn_tensor *));
  r->fetch_names = tool_alloc(r->fetch_args.n, sizeof(*r->fetch_names));
  r->fetch_files = tool_alloc(r->fetch_args.n, sizeof(*r->fetch_files));
  r->places = tool_alloc(r->fetch_args.n, sizeof(*r->places));
  r->fetched = tool_alloc(r->fetch_args.n, sizeof(tn_tensor *));
  for (size_t i = 0; i < r->feed_args.n; i++) {
    r->feed_names[i] = split_argument(r->feed_args.items[i], &r->feed_values[i]);
    if (r->feed_values[i] == NULL)
      return tool_usage("run", "--feed '%s': expected TENSOR=VALUE", r->feed_args.items[i]);
  }
  for (size_t i = 0; i < r->fetch_args.n; i++) {
    r->fetch_names[i] = split_argument(r->fetch_args.items[i], &r->fetch_files[i]);
    int status = tool_place_parse(&r->places[i], r->fetch_names[i], r->fetch_files[i]);
    if (status != TOOL_OK) return status;
  }
  for (size_t i = 0; i < r->options.n; i++)
    if (strchr(r->options.items[i], '=') == NULL)
      return tool_usage("run", "--option '%s': expected FIELD=VALUE", r->options.items[i]);
  return TOOL_OK;
}

/* ---- names and feeds ---- */

static tn_status find_names(const run_request *r, tn_graph *graph, tn_output *feeds, tn_error *err)
{
  tn_status status = TN_OK;
  tn_output output;
  tn_operation *node;
  for (size_t i = 0; i < r->feed_args.n && status == TN_OK; i++) {
    status = tool_find_output(graph, "feed", r->feed_names[i], &feeds[i], err);
    for (size_t j = 0; j < i && status == TN_OK; j++)
      if (feeds[i].op == feeds[j].op && feeds[i].index == feeds[j].index)
        status =
            tn_error_set(err, TN_INVALID_ARGUMENT, "feed '%s': this tensor is fed more than once", r->feed_names[i]);
  }
  for (size_t i = 0; i < r->fetch_args.n && status == TN_OK; i++)
    status = tool_find_output(graph, "fetch", r->fetch_names[i], &output, err);
  for (size_t i = 0; i < r->targets.n && status == TN_OK; i++)
    status = tool_find_node(graph, "target", r->targets.items[i], &node, err);
  for (size_t i = 0; i < r->inits.n && status == TN_OK; i++)
    status = tool_find_node(graph, "init", r->inits.items[i], &node, err);
  return status;
}

static tn_status make_feeds(const run_request *r, tn_graph *graph, tn_error *err)
{
  tn_output *outputs = tool_alloc(r->feed_args.n, sizeof(*outputs));
  tn_status status = find_names(r, graph, outputs, err);
  for (size_t i = 0; i < r->feed_args.n && status == TN_OK; i++) {
    status = tool_make_feed(r->feed_values[i], tool_output_dtype(graph, outputs[i]), &r->feeds[i], err);
    if (status != TN_OK) tn_error_prefix(err, "feed '%s'", r->feed_names[i]);
  }
  free(outputs);
  return status;
}

/* ---- the session ---- */

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
  for (size_t i = 0; i < r->options.n && status == TN_OK; i++) {
    const char *value;
    char *field = split_argument(r->options.items[i], &value);
    status = tn_session_options_parse(options, field, value, err);
    free(field);
  }
  return status;
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

static tn_status open_session(const run_request *r, tn_graph *graph, tn_session **out, tn_error *err)
{
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  uint64_t started = tool_now_ns();
  tn_status status = tn_session_options_create(&options, err);
  if (status == TN_OK) status = set_options(r, options, err);
  if (status == TN_OK && r->verbose) explain(options);
  if (status == TN_OK) status = tn_session_create(options, &session, err);
  if (status == TN_OK) status = tn_session_set_graph(session, graph, err);
  tn_session_options_destroy(options);
  if (status != TN_OK) {
    tn_session_destroy(session);
    return status;
  }
  if (r->verbose) {
    const tn_runtime_info *info = tn_session_runtime(session);
    fprintf(stderr, "runtime %s %s%s%s\n", info->name, info->version != NULL ? info->version : "",
            info->file != NULL && info->file[0] != '\0' ? ", " : "", info->file != NULL ? info->file : "");
    fprintf(stderr, "session opened in %.3f ms\n", (double)(tool_now_ns() - started) / 1e6);
  }
  *out = session;
  return TN_OK;
}

/* ---- results ---- */

static tn_status print_fetched(const run_request *r, tn_error *err)
{
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->fetch_args.n && status == TN_OK; i++) {
    const tn_tensor *tensor = r->fetched[i];
    tool_text text = { 0 };
    tool_text_printf(&text, "%s%s  %s ", i > 0 && r->fetch_files[i - 1] == NULL ? "\n" : "", r->fetch_names[i],
                     tn_dtype_name(tn_tensor_dtype(tensor)));
    tool_text_shape(&text, tn_tensor_dims(tensor), tn_tensor_rank(tensor));
    if (r->fetch_files[i] != NULL) {
      tool_text_printf(&text, "  saved in %s", r->fetch_files[i]);
    } else {
      tool_text_add(&text, "\n", 1);
      status = tool_text_tensor(&text, tensor, err);
    }
    tool_text_add(&text, "\n", 1);
    fwrite(text.data, 1, text.length, stdout);
    tool_text_fini(&text);
  }
  return status;
}

/* ---- the command ---- */

/* The output of `tenon run MODEL` without other options. */
static int say_what_is_wanted(const run_request *r, tn_graph *graph)
{
  tool_model model;
  const char *input = NULL, *output = NULL;
  tool_model_scan(&model, graph);
  for (size_t i = 0; i < model.n; i++) {
    if (input == NULL && tool_node_is_input(&model.nodes[i])) input = tn_operation_name(model.nodes[i].op);
    if (output == NULL && tool_node_is_output(&model.nodes[i])) output = tn_operation_name(model.nodes[i].op);
  }
  printf("%s: %zu nodes\n", r->model, model.n);
  tool_describe_ends(&model, 20, stdout);
  if (output != NULL) {
    printf("\nFor example:\n  tenon run %s", r->model);
    if (input != NULL) printf(" --feed %s:0=FILE.npy", input);
    printf(" --fetch %s:0\n", output);
  }
  fputc('\n', stdout);
  tool_model_fini(&model);
  return tool_usage("run", "nothing to run: add --fetch TENSOR or --target NODE");
}

static tn_status run_graph(const run_request *r, tn_graph *graph, tn_error *err)
{
  tn_session *session = NULL;
  tool_interrupt_doing("the feeds were read");
  tn_status status = make_feeds(r, graph, err);
  tool_interrupt_doing("the session was opened");
  if (status == TN_OK) status = open_session(r, graph, &session, err);
  if (status == TN_OK) status = run_in_session(r, session, err);
  tn_session_destroy(session);
  return status;
}

/* Write files first: the reader of standard output may close it. */
static tn_status show_results(const run_request *r, tn_error *err)
{
  tn_status status = tool_places_save(r->places, r->fetched, r->fetch_args.n, err);
  if (status != TN_OK) return status;
  if (tool_interrupted() != 0) return tn_error_set(err, TN_CANCELLED, "interrupted; all files are written");
  tool_interrupt_doing("the values were printed");
  return print_fetched(r, err);
}

static int run_model(const run_request *r)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  uint64_t started = tool_now_ns();
  tn_status status = tool_model_open(r->model, &graph, &err);
  if (status == TN_OK && r->verbose)
    fprintf(stderr, "model read in %.3f ms\n", (double)(tool_now_ns() - started) / 1e6);
  if (status == TN_OK && r->fetch_args.n + r->targets.n + r->inits.n == 0) {
    int usage = say_what_is_wanted(r, graph);
    tn_graph_unref(graph);
    return usage;
  }
  if (status == TN_OK) status = run_graph(r, graph, &err);
  tn_graph_unref(graph);
  if (status == TN_OK) status = trace_finish(r->trace, &err);
  if (status == TN_OK) status = show_results(r, &err);
  int result = status == TN_OK ? TOOL_OK : tool_fail(&err);
  tn_error_clear(&err);
  if (status == TN_NOT_FOUND) tool_hint_no_runtime();
  return result;
}

static void free_request(run_request *r)
{
  for (size_t i = 0; i < r->feed_args.n && r->feed_names != NULL; i++) {
    tn_tensor_unref(r->feeds[i]);
    free(r->feed_names[i]);
  }
  for (size_t i = 0; i < r->fetch_args.n && r->fetch_names != NULL; i++) {
    tn_tensor_unref(r->fetched[i]);
    free(r->fetch_names[i]);
  }
  free(r->feed_names);
  free(r->fetch_names);
  free(r->feed_values);
  free(r->fetch_files);
  tool_places_destroy(r->places, r->fetch_args.n);
  free(r->feeds);
  free(r->fetched);
  run_names *lists[] = { &r->feed_args, &r->fetch_args, &r->after_args, &r->inits, &r->targets, &r->options };
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) free(lists[i]->items);
}

/* Handles Ctrl-C. An interrupted run ends with the signal, so that a shell loop around it also ends. */
static int run_watched(run_request *r)
{
  tn_error err = TN_ERROR_INIT;
  if (tool_interrupt_start("the model was read", &r->cancellation, &err) != TN_OK) return tool_fail(&err);
  int status = run_model(r);
  int number = status == TOOL_FAILED ? tool_interrupted() : 0;
  tool_interrupt_stop();
  return number != 0 ? 128 + number : status;
}

static int run(int argc, char **argv)
{
  run_request r;
  run_trace trace = { 0 };
  memset(&r, 0, sizeof(r));
  r.trace = &trace;
  int status = parse(&r, argc, argv);
  if (status == TOOL_OK) status = split_arguments(&r);
  /* Check the output files before doing any work. */
  if (status == TOOL_OK) status = tool_places_check(r.places, r.fetch_args.n);
  if (status == TOOL_OK) status = trace_check(&trace);
  if (status == TOOL_OK) status = run_watched(&r);
  free_request(&r);
  trace_free(&trace);
  if (status <= 128) return status;
  fflush(stdout);
  return tool_end_by_signal(status - 128);
}

const tool_command tool_cmd_run = { "run", "run a model", help, run };
