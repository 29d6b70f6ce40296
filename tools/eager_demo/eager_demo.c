/* SPDX-License-Identifier: Apache-2.0 */
/* tenon eager-demo: runs n operations in m iterations with each of the three strategies of eager sessions, and compares
 * the memory held. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tools/eager_demo/eager_demo.h>
#include <tools/picture/picture.h>

static const char help[] =
    "Usage: tenon eager-demo [OPTION...]\n"
    "\n"
    "Shows how the three strategies of eager sessions manage memory. Each iteration of a loop creates tensors by\n"
    "additions and releases all of them at its end. Prints the bytes held over time and a table.\n"
    "\n"
    "  --ops N                  additions per iteration; default 1000\n"
    "  --iterations N           number of iterations; default 100\n"
    "  --bytes N                size of each tensor; default 4096\n"
    "  --strategy NAME          IN_BACKGROUND, ON_SAFE_POINTS or ON_SESSION_CLOSE; may be repeated; default: all\n"
    "                           three\n"
    "  --runtime NAME[:K=V,...] the runtime, with settings\n"
    "  --option FIELD=VALUE     set another session option, such as kernel_plugins=always\n"
    "  --plain                  also release as many tensors without a session, for comparison\n"
    "  --svg FILE               also draw the memory as an SVG picture; /dev/stdout prints only the picture\n"
    "  --no-plot                print only the tables\n"
    "  --json                   print all results as JSON\n"
    "  -h, --help               show this help\n"
    "\n"
    "ON_SESSION_CLOSE holds all tensors until the session is closed. If they need more than half of the free\n"
    "memory, it runs fewer iterations and prints a note. Ctrl-C ends the loop and prints the results so far.\n"
    "\n"
    "Examples:\n"
    "  tenon eager-demo --svg memory.svg\n"
    "  tenon eager-demo --bytes 64 --iterations 1000 --plain\n"
    "  tenon eager-demo --strategy IN_BACKGROUND --iterations 10000\n";

#define MOST_OPS UINT64_C(10000000)
#define MOST_ITERATIONS UINT64_C(1000000000)
#define MOST_BYTES (UINT64_C(1) << 30)

static const char *const strategies[DEMO_STRATEGIES] = { "IN_BACKGROUND", "ON_SAFE_POINTS", "ON_SESSION_CLOSE" };

const char *demo_strategy_name(int32_t strategy) { return strategies[strategy]; }

double demo_in_iterations(const demo *d, uint64_t bytes) { return (double)bytes / ((double)d->ops * (double)d->bytes); }

static double per_second(uint64_t n, uint64_t ns) { return ns > 0 ? (double)n * 1e9 / (double)ns : 0; }

double demo_plain_per_second(const demo_plain *plain) { return per_second(plain->tensors, plain->ns); }

double demo_deletions_per_second(const demo_run *run)
{
  switch (run->strategy) {
  case TN_EAGER_ON_SAFE_POINTS: return run->pauses > 0 ? per_second(run->deleted_before, run->pause_ns) : 0;
  case TN_EAGER_ON_SESSION_CLOSE: return per_second(run->deleted - run->deleted_before, run->close_ns);
  default: return per_second(run->deleted_before, run->loop_ns);
  }
}

uint64_t demo_scale(const demo *d, const demo_run *run)
{
  uint64_t scale = run->peak_bytes;
  for (size_t i = 0; i < d->n_begun; i++) {
    uint64_t other = d->runs[i].peak_bytes;
    if (other > scale && other / 4 < run->peak_bytes) scale = other;
  }
  return scale > 0 ? scale : 1;
}

uint64_t demo_end_ns(const demo *d)
{
  uint64_t end = 1;
  for (size_t i = 0; i < d->n_begun; i++)
    if (d->runs[i].end_ns > end) end = d->runs[i].end_ns;
  return end;
}

/* ---- the command line ---- */

static int parse_count(const char *option, const char *text, uint64_t most, uint64_t *count)
{
  size_t digits = strspn(text, "0123456789");
  *count = digits > 0 && digits <= 12 && text[digits] == '\0' ? strtoull(text, NULL, 10) : 0;
  if (*count == 0 || *count > most)
    return tool_usage("eager-demo", "--%s '%s': expected a number from 1 to %" PRIu64, option, text, most);
  return TOOL_OK;
}

static int add_strategy(demo *d, const char *name)
{
  int32_t strategy = 0;
  while (strategy < DEMO_STRATEGIES && strcasecmp(strategies[strategy], name) != 0) strategy++;
  if (strategy == DEMO_STRATEGIES) {
    tool_near near;
    tool_text text = { 0 };
    tool_near_init(&near, name);
    for (int32_t i = 0; i < DEMO_STRATEGIES; i++) tool_near_offer(&near, strategies[i]);
    tool_near_text(&near, &text);
    int status =
        tool_usage("eager-demo", "--strategy '%s': expected IN_BACKGROUND, ON_SAFE_POINTS or ON_SESSION_CLOSE%s", name,
                   text.data != NULL ? text.data : "");
    tool_text_fini(&text);
    return status;
  }
  for (size_t i = 0; i < d->n_runs; i++)
    if (d->runs[i].strategy == strategy)
      return tool_usage("eager-demo", "--strategy '%s' was given twice", strategies[strategy]);
  d->runs[d->n_runs++].strategy = strategy;
  d->named = true;
  return TOOL_OK;
}

static int take_option(demo *d, int c)
{
  switch (c) {
  case 'n': return parse_count("ops", optarg, MOST_OPS, &d->ops);
  case 'm': return parse_count("iterations", optarg, MOST_ITERATIONS, &d->iterations);
  case 'b': return parse_count("bytes", optarg, MOST_BYTES, &d->bytes);
  case 's': return add_strategy(d, optarg);
  case 'r': d->target = optarg; break;
  case 'v': d->svg = optarg; break;
  case 'a': d->plain = true; break;
  case 'P': d->no_plot = true; break;
  case 'j': d->json = true; break;
  case 'p':
    if (strchr(optarg, '=') == NULL) return tool_usage("eager-demo", "--option '%s': expected FIELD=VALUE", optarg);
    d->options = tool_grow(d->options, d->n_options, &d->option_room, sizeof(*d->options));
    d->options[d->n_options++] = optarg;
    break;
  }
  return TOOL_OK;
}

/* Whether the file is standard output's file. */
static bool is_stdout(const char *path)
{
  struct stat file, out;
  return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &out) == 0 && file.st_dev == out.st_dev &&
         file.st_ino == out.st_ino;
}

static int check(demo *d, int argc, char **argv)
{
  if (optind < argc) return tool_usage("eager-demo", "unexpected argument '%s'", argv[optind]);
  if (d->svg != NULL && d->svg[0] == '\0') return tool_usage("eager-demo", "--svg '': expected a file name");
  d->svg_on_stdout = d->svg != NULL && is_stdout(d->svg);
  if (d->svg_on_stdout && d->json)
    return tool_usage("eager-demo", "--svg '%s' and --json would both be written to standard output", d->svg);
  for (int32_t i = 0; i < DEMO_STRATEGIES && !d->named; i++) d->runs[d->n_runs++].strategy = i;
  for (size_t i = 0; i < d->n_runs; i++) d->runs[i].iterations = d->iterations;
  return TOOL_OK;
}

static int parse(demo *d, int argc, char **argv)
{
  static const struct option options[] = {
    { "ops", required_argument, NULL, 'n' },
    { "iterations", required_argument, NULL, 'm' },
    { "bytes", required_argument, NULL, 'b' },
    { "strategy", required_argument, NULL, 's' },
    { "runtime", required_argument, NULL, 'r' },
    { "option", required_argument, NULL, 'p' },
    { "svg", required_argument, NULL, 'v' },
    { "plain", no_argument, NULL, 'a' },
    { "no-plot", no_argument, NULL, 'P' },
    { "json", no_argument, NULL, 'j' },
    { NULL, 0, NULL, 0 },
  };
  int c;
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    if (c == '?' || c == ':') return tool_bad_option("eager-demo", c, argv);
    if (take_option(d, c) != TOOL_OK) return TOOL_USAGE;
  }
  return check(d, argc, argv);
}

/* ---- the picture ---- */

static tn_status save_svg(const demo *d, tn_error *err)
{
  tool_text svg = { 0 };
  tn_status status = TN_OK;
  demo_svg(d, &svg);
  if (d->svg_on_stdout)
    fwrite(svg.data, 1, svg.length, stdout); /* tool_finish reports errors */
  else
    status = tn_file_save(d->svg, svg.data, svg.length, err);
  tool_text_fini(&svg);
  return status;
}

/* ---- the command ---- */

static void print_results(const demo *d)
{
  if (d->svg_on_stdout) return;
  if (d->json)
    demo_print_json(d);
  else
    demo_print(d);
}

static bool is_regular_place(const char *path)
{
  struct stat about;
  return stat(path, &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode);
}

static int run_demo(demo *d)
{
  tn_error err = TN_ERROR_INIT;
  tn_status status = TN_OK;
  if (d->svg != NULL && !d->svg_on_stdout && is_regular_place(d->svg)) status = picture_check_place(d->svg, &err);
  if (status == TN_OK) status = demo_check_memory(d, &err);
  if (status == TN_OK) status = demo_run_all(d, &err);
  bool any = false;
  for (size_t i = 0; i < d->n_begun; i++) any = any || d->runs[i].made > 0;
  bool shown = status == TN_OK || (tool_interrupted() != 0 && any);
  tool_interrupt_doing("the results were printed");
  if (shown) print_results(d);
  if (status == TN_OK && d->svg != NULL) status = save_svg(d, &err);
  if (status == TN_OK) return TOOL_OK;
  int result = tool_fail(&err);
  if (status == TN_NOT_FOUND && !shown) tool_hint_no_runtime();
  return result;
}

/* Handles Ctrl-C as tenon bench does. */
static int run_watched(demo *d)
{
  tn_error err = TN_ERROR_INIT;
  tn_cancellation *cancellation;
  if (tool_interrupt_start("free memory was determined", &cancellation, &err) != TN_OK) return tool_fail(&err);
  int status = run_demo(d);
  int number = status == TOOL_FAILED ? tool_interrupted() : 0;
  tool_interrupt_stop();
  return number != 0 ? 128 + number : status;
}

static int run(int argc, char **argv)
{
  demo d = { .target = "", .ops = 1000, .iterations = 100, .bytes = 4096 };
  int status = parse(&d, argc, argv);
  if (status == TOOL_OK) status = run_watched(&d);
  for (size_t i = 0; i < DEMO_STRATEGIES; i++) free(d.runs[i].track.bins);
  free(d.options);
  free(d.runtime);
  free(d.version);
  tool_text_fini(&d.note);
  if (status <= 128) return status;
  fflush(stdout);
  return tool_end_by_signal(status - 128);
}

const tool_command tool_cmd_eager_demo = { "eager-demo", "show how eager sessions use memory", help, run };
