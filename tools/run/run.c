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
    "Runs a model: feeds tensors, runs steps and fetches tensors. MODEL is the folder of a SavedModel, a MetaGraph\n"
    "(X.meta) or a GraphDef file. Without --fetch, --target and --init, shows its signatures, or its inputs and\n"
    "outputs, and exits with status 2.\n"
    "\n"
    "  --signature NAME         the signature whose keys --feed and --fetch name; default: serving_default, or the\n"
    "                           only one\n"
    "  --tags TAG[,TAG...]      the MetaGraph with these tags; default: serve, or the only one\n"
    "  --checkpoint PREFIX      restore the variables from this checkpoint instead of the model's own; a folder means\n"
    "                           its newest checkpoint\n"
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
    "  --after-signature NAME   the signature whose keys --after names; --feed may name its keys, too\n"
    "  --save PREFIX            write the variables to a checkpoint when the steps have ended\n"
    "  --save-every N           also write it after every N steps; --checkpoint PREFIX resumes\n"
    "  --save-model FOLDER      write a SavedModel with the current values of the variables; FOLDER must not exist; a\n"
    "                           model without signatures gets one of the tensors that were fed and fetched\n"
    "  --allow-read FOLDER      allow the model to read files below this folder, besides its own\n"
    "  --allow-write FOLDER     allow the model to write files below this folder\n"
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
    "TENSOR is a key of the signature, such as x, or KEY/COMPONENT for one tensor of a sparse or ragged value; or\n"
    "the name of a tensor, node:output, where node alone means node:0. A key wins over a tensor of the same name.\n"
    "Options that set one item may be repeated.\n"
    "Ctrl-C cancels the running step; output files are written completely or not at all. A second Ctrl-C ends the\n"
    "command immediately.\n"
    "\n"
    "Examples:\n"
    "  tenon run half_plus_two --feed x='[1, 2, 5]' --fetch y\n"
    "  tenon run digits.pb --feed image:0=images.npy --fetch class:0 --fetch probabilities:0=out.npy\n"
    "  tenon run mlp.pb --init init --target train --feed x=x.npy --feed y=y.npy --fetch loss --steps 500 --every 50\n"
    "  tenon run model --signature train --feed x=x.npy --feed y=y.npy --fetch loss --steps 500 --save ckpt/model \\\n"
    "    --save-every 100\n"
    "  tenon run model --checkpoint ckpt/model --signature predict --feed x=x.npy --fetch y\n"
    "  tenon run graph.meta --checkpoint model.ckpt-100 --feed x=x.npy --fetch logits:0=logits.npy\n";

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
  case 'g': r->source.signature = optarg; break;
  case 'G': r->after_signature = optarg; break;
  case 'k': r->source.tags = optarg; break;
  case 'C': r->source.checkpoint = optarg; break;
  case 'V': r->save = optarg; break;
  case 'M': r->save_model = optarg; break;
  case 'R': add_name(&r->read_folders, optarg); break;
  case 'W': add_name(&r->write_folders, optarg); break;
  case 'E': return parse_count("save-every", optarg, &r->save_every);
  case 's': r->measure = true; return parse_count("steps", optarg, &r->steps);
  case 'e': return parse_count("every", optarg, &r->every);
  case 'm': return parse_count("timeout", optarg, &r->timeout_ms);
  }
  return TOOL_OK;
}

static const struct option long_options[] = {
  { "feed", required_argument, NULL, 'f' },
  { "fetch", required_argument, NULL, 'o' },
  { "signature", required_argument, NULL, 'g' },
  { "tags", required_argument, NULL, 'k' },
  { "checkpoint", required_argument, NULL, 'C' },
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
  { "after-signature", required_argument, NULL, 'G' },
  { "save", required_argument, NULL, 'V' },
  { "save-every", required_argument, NULL, 'E' },
  { "save-model", required_argument, NULL, 'M' },
  { "allow-read", required_argument, NULL, 'R' },
  { "allow-write", required_argument, NULL, 'W' },
  { "config", required_argument, NULL, 'c' },
  { "soft-placement", no_argument, NULL, 'S' },
  { "log-placement", no_argument, NULL, 'L' },
  { "trace", required_argument, NULL, 'T' },
  { "timeline", required_argument, NULL, 'D' },
  { "profile", no_argument, NULL, 'P' },
  { "verbose", no_argument, NULL, 'v' },
  { NULL, 0, NULL, 0 },
};

static int check(run_request *r, int argc, char **argv)
{
  if (optind == argc) return tool_usage("run", "no model file was given");
  r->source.path = argv[optind];
  if (optind + 1 < argc) return tool_usage("run", "expected one model, but '%s' is a second one", argv[optind + 1]);
  r->n_stepped = r->fetch_args.n;
  for (size_t i = 0; i < r->after_args.n; i++) add_name(&r->fetch_args, r->after_args.items[i]);
  bool steps = r->n_stepped + r->targets.n > 0;
  if (trace_wanted(r->trace) && !steps)
    return tool_usage("run", "--trace, --timeline and --profile require steps: add --fetch TENSOR or --target NODE");
  r->trace->model = r->source.path;
  if (r->every > 0 && r->n_stepped == 0) return tool_usage("run", "--every prints fetched values: add --fetch TENSOR");
  if (r->save_every > 0 && r->save == NULL) return tool_usage("run", "--save-every requires --save PREFIX");
  if (r->save_every > 0 && !steps)
    return tool_usage("run", "--save-every requires steps: add --fetch TENSOR or --target NODE");
  return TOOL_OK;
}

static int parse(run_request *r, int argc, char **argv)
{
  int c;
  r->steps = 1;
  while ((c = getopt_long(argc, argv, ":v", long_options, NULL)) != -1) {
    if (c == '?' || c == ':') return tool_bad_option("run", c, argv);
    if (take_option(r, c) != TOOL_OK) return TOOL_USAGE;
  }
  return check(r, argc, argv);
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
  r->feed_tensors = tool_alloc(r->feed_args.n, sizeof(*r->feed_tensors));
  r->feeds = tool_alloc(r->feed_args.n, sizeof(tn_tensor *));
  r->fetch_names = tool_alloc(r->fetch_args.n, sizeof(*r->fetch_names));
  r->fetch_files = tool_alloc(r->fetch_args.n, sizeof(*r->fetch_files));
  r->fetch_tensors = tool_alloc(r->fetch_args.n, sizeof(*r->fetch_tensors));
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

static tn_status run_source(const run_request *r, const tool_source *source, tn_error *err)
{
  tn_session *session = NULL;
  tool_interrupt_doing("the feeds were read");
  tn_status status = run_find_tensors(r, source, err);
  tool_interrupt_doing("the session was opened");
  if (status == TN_OK) status = run_open_session(r, source, &session, err);
  if (status == TN_OK) {
    status = run_in_session(r, session, err);
    if (status == TN_INVALID_ARGUMENT) run_explain_missing(r, source, err);
  }
  if (status == TN_OK && r->save_model != NULL) status = run_save_model(r, source, session, err);
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

static bool is_nothing(const run_request *r)
{
  return r->fetch_args.n + r->targets.n + r->inits.n == 0 && r->save == NULL && r->save_model == NULL;
}

static int run_model(const run_request *r)
{
  tn_error err = TN_ERROR_INIT;
  tool_source source;
  uint64_t started = tool_now_ns();
  tn_status status = tool_source_open(&source, &r->source, &err);
  if (status == TN_OK && r->verbose)
    fprintf(stderr, "model read in %.3f ms\n", (double)(tool_now_ns() - started) / 1e6);
  if (status == TN_OK && is_nothing(r)) {
    int usage = run_describe(r, &source);
    tool_source_close(&source);
    return usage;
  }
  if (status == TN_OK) status = run_source(r, &source, &err);
  tool_source_close(&source);
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
  free(r->feed_tensors);
  free(r->fetch_tensors);
  free(r->feed_values);
  free(r->fetch_files);
  tool_places_destroy(r->places, r->fetch_args.n);
  free(r->feeds);
  free(r->fetched);
  run_names *lists[] = { &r->feed_args, &r->fetch_args, &r->after_args,   &r->inits,
                         &r->targets,   &r->options,    &r->read_folders, &r->write_folders };
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
  if (status == TOOL_OK) status = run_check_saves(&r);
  if (status == TOOL_OK) status = run_watched(&r);
  free_request(&r);
  trace_free(&trace);
  if (status <= 128) return status;
  fflush(stdout);
  return tool_end_by_signal(status - 128);
}

const tool_command tool_cmd_run = { "run", "run a model", help, run };
