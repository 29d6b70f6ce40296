/* SPDX-License-Identifier: Apache-2.0 */
/* tenon bench: measures the duration of a model's steps, on one runtime or on several in turns. */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <tools/bench/bench.h>
#include <tools/bench/roofline/roofline.h>
#include <tools/picture/picture.h>

static const char help[] =
    "Usage: tenon bench MODEL [OPTION...]\n"
    "\n"
    "Measures the duration of a model's steps. Several runtimes and thread counts are measured in turns; the\n"
    "table shows the ratio of each median to the first row's. Without --fetch and --target, all outputs of the\n"
    "signature are fetched, or all that can run if the model has no signatures. Values are generated for inputs\n"
    "that are not fed.\n"
    "\n"
    "  --signature NAME         the signature of a SavedModel; default: serving_default, or the only one\n"
    "  --tags TAG[,TAG...]      the MetaGraph with these tags; default: serve, or the only one\n"
    "  --checkpoint PREFIX      take the variables from this checkpoint instead of the model's own\n"
    "  --runtime NAME[:K=V,...] a runtime, with settings; may be repeated\n"
    "  --threads N[,M...]       thread counts, each measured with every runtime\n"
    "  --seconds S              measuring time for each row; default 3\n"
    "  --concurrency N          number of concurrent clients on one session\n"
    "  --batch N                first dimension of generated inputs if the model leaves it open, and items per step\n"
    "  --feed TENSOR=VALUE      feed a file or a literal, as in 'tenon run'\n"
    "  --fetch TENSOR           fetch a tensor in each step\n"
    "  --target NODE            run a node for its effect in each step\n"
    "  --init NODE              run a node once in each session, before the steps; in the order given\n"
    "  --timeout MS             fail if a step takes longer than this many milliseconds\n"
    "  --reuse                  write results into the tensors of the previous step\n"
    "  --warm-up                prepare for the feeds before the first step, as a server does before it is ready;\n"
    "                           not subject to --timeout\n"
    "  --level N                optimisation level: 0 runs the graph unchanged, 1 is the default\n"
    "  --option FIELD=VALUE     set another session option, such as kernel_plugins=always\n"
    "  --roofline               also compare the time of each kind of kernel, in traced steps, with what memory and\n"
    "                           arithmetic of this machine allow\n"
    "  --svg FILE.svg           with --roofline: draw it as a chart\n"
    "  --no-histogram           print only the tables\n"
    "  --json                   print all results as JSON\n"
    "  -h, --help               show this help\n"
    "\n"
    "Ctrl-C stops measuring and prints the results so far.\n"
    "\n"
    "Examples:\n"
    "  tenon bench model.pb --batch 8\n"
    "  tenon bench model.pb --runtime direct --runtime threaded --threads 1,2 --seconds 10\n";

enum { MOST_CASES = 64, MOST_THREADS = 4096, MOST_CLIENTS = 1024 };
static const uint64_t MOST_MS = 999999999999;

void bench_list_add(bench_list *list, const char *item)
{
  list->items = tool_grow(list->items, list->n, &list->room, sizeof(*list->items));
  list->items[list->n++] = item;
}

void bench_note(bench *b, const char *format, ...)
{
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *text = tool_alloc((size_t)(length > 0 ? length : 0) + 1, 1);
  vsnprintf(text, (size_t)(length > 0 ? length : 0) + 1, format, again);
  va_end(again);
  for (size_t i = 0; i < b->n_notes; i++)
    if (strcmp(b->notes[i], text) == 0) {
      free(text);
      return;
    }
  b->notes = tool_grow(b->notes, b->n_notes, &b->note_room, sizeof(*b->notes));
  b->notes[b->n_notes++] = text;
  fprintf(stderr, "%s\n", text);
}

/* ---- the command line ---- */

static int parse_count(const char *option, const char *text, uint64_t most, uint64_t *count)
{
  size_t digits = strspn(text, "0123456789");
  *count = digits > 0 && digits <= 12 && text[digits] == '\0' ? strtoull(text, NULL, 10) : 0;
  if (*count == 0 || *count > most)
    return tool_usage("bench", "--%s '%s': expected a number from 1 to %" PRIu64, option, text, most);
  return TOOL_OK;
}

static int parse_threads(bench_request *r, const char *text)
{
  const char *at = text;
  for (;;) {
    size_t digits = strspn(at, "0123456789");
    uint64_t n = digits > 0 && digits <= 12 ? strtoull(at, NULL, 10) : 0;
    if (n == 0 || n > MOST_THREADS || (at[digits] != ',' && at[digits] != '\0'))
      return tool_usage("bench", "--threads '%s': expected numbers from 1 to %d, separated by commas", text,
                        MOST_THREADS);
    for (size_t i = 0; i < r->n_threads; i++)
      if (r->threads[i] == n) return tool_usage("bench", "--threads '%s': %" PRIu64 " occurs twice", text, n);
    r->threads = tool_grow(r->threads, r->n_threads, &r->thread_room, sizeof(*r->threads));
    r->threads[r->n_threads++] = n;
    if (at[digits] == '\0') return TOOL_OK;
    at += digits + 1;
  }
}

/* Digits with an optional point. strtod would also accept "inf", "0x1p3" and leading blanks. */
static int parse_seconds(bench_request *r, const char *text)
{
  size_t length = strspn(text, "0123456789."), points = 0;
  for (size_t i = 0; i < length; i++) points += text[i] == '.';
  r->seconds = length > points && points < 2 && length < 24 && text[length] == '\0' ? strtod(text, NULL) : 0;
  if (r->seconds >= 0.001 && r->seconds <= 86400) return TOOL_OK;
  return tool_usage("bench", "--seconds '%s': expected a number from 0.001 to 86400", text);
}

static bool ends_in_svg(const char *file)
{
  size_t n = strlen(file);
  return n > 4 && strcmp(file + n - 4, ".svg") == 0;
}

static int check(bench_request *r, int argc, char **argv)
{
  if (optind == argc) return tool_usage("bench", "no model file was given");
  if (optind + 1 < argc) return tool_usage("bench", "expected one model, but '%s' is a second one", argv[optind + 1]);
  r->source.path = argv[optind];
  if (r->svg != NULL && !r->roofline) return tool_usage("bench", "--svg '%s' draws what --roofline measures", r->svg);
  if (r->svg != NULL && !ends_in_svg(r->svg))
    return tool_usage("bench", "--svg '%s': the file name must end in .svg", r->svg);
  if (r->roofline && r->concurrency > 1)
    return tool_usage("bench", "--roofline is about the steps of one client, not of --concurrency %" PRIu64,
                      r->concurrency);
  for (size_t i = 0; i < r->options.n; i++)
    if (strchr(r->options.items[i], '=') == NULL)
      return tool_usage("bench", "--option '%s': expected FIELD=VALUE", r->options.items[i]);
  size_t runtimes = r->runtimes.n > 0 ? r->runtimes.n : 1, threads = r->n_threads > 0 ? r->n_threads : 1;
  if (runtimes > MOST_CASES || threads > MOST_CASES || runtimes * threads > MOST_CASES)
    return tool_usage("bench", "%zu runtimes with %zu thread counts each: at most %d rows are supported", runtimes,
                      threads, MOST_CASES);
  return TOOL_OK;
}

static int take_option(bench_request *r, int c)
{
  switch (c) {
  case 'f': bench_list_add(&r->feed_args, optarg); break;
  case 'o': bench_list_add(&r->fetches, optarg); break;
  case 't': bench_list_add(&r->targets, optarg); break;
  case 'i': bench_list_add(&r->inits, optarg); break;
  case 'p': bench_list_add(&r->options, optarg); break;
  case 'r': bench_list_add(&r->runtimes, optarg); break;
  case 'l': r->level = optarg; break;
  case 'g': r->source.signature = optarg; break;
  case 'k': r->source.tags = optarg; break;
  case 'C': r->source.checkpoint = optarg; break;
  case 'j': r->json = true; break;
  case 'u': r->reuse = true; break;
  case 'w': r->warm_up = true; break;
  case 'R': r->roofline = true; break;
  case 'S': r->svg = optarg; break;
  case 'H': r->no_histogram = true; break;
  case 'n': return parse_threads(r, optarg);
  case 's': return parse_seconds(r, optarg);
  case 'b': return parse_count("batch", optarg, INT32_MAX, &r->batch);
  case 'm': return parse_count("timeout", optarg, MOST_MS, &r->timeout_ms);
  case 'c': return parse_count("concurrency", optarg, MOST_CLIENTS, &r->concurrency);
  }
  return TOOL_OK;
}

static int parse(bench_request *r, int argc, char **argv)
{
  static const struct option options[] = {
    { "feed", required_argument, NULL, 'f' },
    { "fetch", required_argument, NULL, 'o' },
    { "target", required_argument, NULL, 't' },
    { "init", required_argument, NULL, 'i' },
    { "option", required_argument, NULL, 'p' },
    { "runtime", required_argument, NULL, 'r' },
    { "signature", required_argument, NULL, 'g' },
    { "tags", required_argument, NULL, 'k' },
    { "checkpoint", required_argument, NULL, 'C' },
    { "level", required_argument, NULL, 'l' },
    { "threads", required_argument, NULL, 'n' },
    { "seconds", required_argument, NULL, 's' },
    { "batch", required_argument, NULL, 'b' },
    { "json", no_argument, NULL, 'j' },
    { "concurrency", required_argument, NULL, 'c' },
    { "timeout", required_argument, NULL, 'm' },
    { "reuse", no_argument, NULL, 'u' },
    { "warm-up", no_argument, NULL, 'w' },
    { "roofline", no_argument, NULL, 'R' },
    { "svg", required_argument, NULL, 'S' },
    { "no-histogram", no_argument, NULL, 'H' },
    { NULL, 0, NULL, 0 },
  };
  int c;
  r->seconds = 3;
  r->concurrency = 1;
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    if (c == '?' || c == ':') return tool_bad_option("bench", c, argv);
    if (take_option(r, c) != TOOL_OK) return TOOL_USAGE;
  }
  return check(r, argc, argv);
}

/* ---- the command ---- */

static void print_results(bench *b)
{
  if (b->request->json)
    bench_print_json(b);
  else
    bench_print(b);
}

static void say_unstable(bench *b)
{
  for (size_t i = 0; i < b->n_cases && tool_interrupted() == 0; i++) {
    tool_text name = { 0 };
    bench_case_text(&b->cases[i], &name);
    if (!b->cases[i].stable) bench_note(b, "%s: step times had not stabilised when the warm-up ended", name.data);
    tool_text_fini(&name);
  }
}

static tn_status measure_roofs(bench *b, tn_error *err)
{
  tn_status status = TN_OK;
  for (size_t i = 0; i < b->n_cases && b->request->roofline && status == TN_OK; i++)
    status = roof_measure(b, &b->cases[i], err);
  return status;
}

static tn_status save_svg(const bench *b, tn_error *err)
{
  tool_text text = { 0 };
  if (b->request->svg == NULL) return TN_OK;
  roof_svg(b, &text);
  tn_status status = picture_save(b->request->svg, text.data, text.length, err);
  tool_text_fini(&text);
  return status;
}

static tn_status bench_graph(bench *b, tn_error *err)
{
  tool_interrupt_doing("the inputs were made");
  tn_status status = bench_make_signature(b, err);
  tool_interrupt_doing("the runtimes were searched");
  if (status == TN_OK) status = bench_make_cases(b, err);
  tool_interrupt_doing(NULL);
  if (status != TN_OK) return status;
  status = bench_measure(b, err);
  bool any = false;
  for (size_t i = 0; i < b->n_cases; i++) any = any || b->cases[i].latencies->n > 0;
  if (status == TN_OK) say_unstable(b);
  b->peak_bytes = tool_peak_memory(); /* now, since the block that is read for the roofs would count */
  if (status == TN_OK) status = measure_roofs(b, err);
  tool_interrupt_doing("the results were printed");
  if (status == TN_OK || (tool_interrupted() != 0 && any)) print_results(b);
  return status == TN_OK ? save_svg(b, err) : status;
}

static int bench_model(const bench_request *r, tn_cancellation *cancellation)
{
  tn_error err = TN_ERROR_INIT;
  if (r->svg != NULL && picture_check_place(r->svg, &err) != TN_OK) return tool_fail(&err);
  bench b = { .request = r, .cancellation = cancellation };
  uint64_t started = tool_now_ns();
  tn_status status = tool_source_open(&b.source, &r->source, &err);
  b.load_ns = tool_now_ns() - started;
  if (status == TN_OK) status = bench_graph(&b, &err);
  int result = status == TN_OK ? TOOL_OK : tool_fail(&err);
  if (status == TN_NOT_FOUND) tool_hint_no_runtime();
  tn_error_clear(&err);
  bench_free_cases(&b);
  bench_free_signature(&b);
  for (size_t i = 0; i < b.n_notes; i++) free(b.notes[i]);
  free(b.notes);
  tool_source_close(&b.source);
  return result;
}

/* Handles Ctrl-C as tenon run does. */
static int bench_watched(const bench_request *r)
{
  tn_error err = TN_ERROR_INIT;
  tn_cancellation *cancellation;
  if (tool_interrupt_start("the model was read", &cancellation, &err) != TN_OK) return tool_fail(&err);
  int status = bench_model(r, cancellation);
  int number = status == TOOL_FAILED ? tool_interrupted() : 0;
  tool_interrupt_stop();
  return number != 0 ? 128 + number : status;
}

static int run(int argc, char **argv)
{
  bench_request r;
  memset(&r, 0, sizeof(r));
  int status = parse(&r, argc, argv);
  if (status == TOOL_OK) status = bench_watched(&r);
  bench_list *lists[] = { &r.feed_args, &r.fetches, &r.targets, &r.inits, &r.options, &r.runtimes };
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) free(lists[i]->items);
  free(r.threads);
  if (status <= 128) return status;
  fflush(stdout);
  return tool_end_by_signal(status - 128);
}

const tool_command tool_cmd_bench = { "bench", "measure the steps of a model", help, run };
