/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of tenon-conformance. */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <conformance/conformance.h>

#include <tenon/tenon.h>

enum { MOST_JOBS = 256, DEFAULT_TIMEOUT = 60, LONGEST_TIMEOUT = 86400 };

static const char help[] =
    "Usage: tenon-conformance RUNTIME [OPTION...]\n"
    "       tenon-conformance --list [--filter GLOB]...\n"
    "\n"
    "Tests a plugin and prints TAP: what its author owes to programs that load it (P-..), and for a runtime the\n"
    "rules of sessions (S-..). RUNTIME is a name, as in a target, with settings (\"threaded:threads=2\"), the name of\n"
    "a kernel plugin, or the file of either (\"./libmine.so\", \"./libmine.so:deep=1\").\n"
    "Each test is a process of its own: one that crashes, hangs or ends the process is a failed test. Behind\n"
    "its name are the rules that it is about. A test of what the runtime says it does not have is skipped.\n"
    "\n"
    "  --list         show the tests with their rules, and run none\n"
    "  --filter GLOB  only the tests, suites or rules that fit, as \"session_run__*\", \"plugin_*\" or \"P-39\";\n"
    "                 may be given several times\n"
    "  --jobs N       tests that run at once (1)\n"
    "  --timeout S    seconds that a test may take (60)\n"
    "  -h, --help     show this text\n"
    "  -V, --version  show the version\n"
    "\n"
    "Environment:\n"
    "  TENON_PLUGIN_PATH  folders with runtimes, before the installed one\n"
    "  TENON_LOG          how much is logged, shown with tests that fail: error, warning (the default), info or debug\n"
    "\n"
    "Exit status: 0 when all that ran passed, 1 when a test failed, 2 for wrong arguments, 77 when none could run.\n";

void *cf_alloc(size_t count, size_t size)
{
  void *memory = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
  if (memory != NULL) return memory;
  fputs("tenon-conformance: RESOURCE_EXHAUSTED: no memory\n", stderr);
  exit(CF_FAILED);
}

int cf_usage(const char *format, ...)
{
  va_list args;
  fflush(stdout);
  fputs("tenon-conformance: INVALID_ARGUMENT: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputs("\nSee 'tenon-conformance --help'.\n", stderr);
  return CF_USAGE;
}

static int bad_option(int c, char **argv)
{
  const char *last = argv[optind - 1];
  if (c == ':') return cf_usage("option '%s' needs a value", last);
  if (optopt != 0 && strncmp(last, "--", 2) != 0) return cf_usage("unknown option '-%c'", optopt);
  if (optopt != 0) return cf_usage("option '%s' takes no value", last);
  return cf_usage("unknown option '%s'", last);
}

/* A whole number of [1, most]; 0: an error was printed. */
static int number(const char *option, const char *text, int most)
{
  char *end;
  long n = strtol(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == '\0' && n >= 1 && n <= most) return (int)n;
  cf_usage("option '%s' is '%s', wanted a number from 1 to %d", option, text, most);
  return 0;
}

static void print_version(void)
{
  printf("tenon-conformance %s\n", TN_VERSION_STRING);
  if (strcmp(tn_version(), TN_VERSION_STRING) != 0) printf("with the library of %s\n", tn_version());
  printf("plugin ABI %d.%d\n", TN_ABI_MAJOR, TN_ABI_MINOR);
}

/* -1: go on; else the exit status. */
static int take_option(cf_options *options, int c, char **argv)
{
  switch (c) {
  case 'h':
    fputs(help, stdout);
    return CF_PASSED;
  case 'V':
    print_version();
    return CF_PASSED;
  case 'l':
    options->list = true;
    return -1;
  case 'f':
    if (options->n_filters == sizeof(options->filters) / sizeof(options->filters[0]))
      return cf_usage("more than %zu filters", options->n_filters);
    options->filters[options->n_filters++] = optarg;
    return -1;
  case 'j':
    options->jobs = number("--jobs", optarg, MOST_JOBS);
    return options->jobs > 0 ? -1 : CF_USAGE;
  case 't':
    options->timeout = number("--timeout", optarg, LONGEST_TIMEOUT);
    return options->timeout > 0 ? -1 : CF_USAGE;
  default:
    return bad_option(c, argv);
  }
}

static int read_options(cf_options *options, int argc, char **argv)
{
  static const struct option known[] = {
    { "list", no_argument, NULL, 'l' },          { "filter", required_argument, NULL, 'f' },
    { "jobs", required_argument, NULL, 'j' },    { "timeout", required_argument, NULL, 't' },
    { "help", no_argument, NULL, 'h' },          { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 },
  };
  int c;
  while ((c = getopt_long(argc, argv, ":hV", known, NULL)) != -1) {
    int status = take_option(options, c, argv);
    if (status >= 0) return status;
  }
  if (optind < argc) options->runtime = argv[optind++];
  if (optind < argc) return cf_usage("'%s' is one argument too many", argv[optind]);
  if (options->list && options->runtime != NULL)
    return cf_usage("'--list' takes no runtime: the tests are the same for all");
  if (!options->list && options->runtime == NULL)
    return cf_usage("which runtime? 'tenon runtimes' lists what is installed");
  return -1;
}

static int no_test(const cf_options *options)
{
  return cf_usage("no test, suite or rule fits '%s'; '--list' shows them", options->n_filters > 0 ? options->filters[0] : "");
}

static int list(const cf_options *options)
{
  size_t n;
  cf_test *tests = cf_select(options, NULL, &n);
  if (n > 0) cf_list(tests, n);
  free(tests);
  return n > 0 ? CF_PASSED : no_test(options);
}

static int run(const cf_options *options)
{
  cf_runtime runtime;
  size_t n;
  if (!cf_runtime_open(&runtime, options->runtime)) return CF_USAGE;
  cf_test *tests = cf_select(options, &runtime, &n);
  int status = n > 0 ? cf_run(options, &runtime, tests, n) : no_test(options);
  free(tests);
  cf_runtime_close(&runtime);
  return status;
}

/* What was printed must have arrived. When nobody reads it any more, the process ends as one does that never looked. */
static int finish(int status)
{
  if (cf_nobody_reads) {
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  fputs("tenon-conformance: UNAVAILABLE: standard output cannot be written\n", stderr);
  return status == CF_USAGE ? status : CF_FAILED;
}

int main(int argc, char **argv)
{
  cf_options options = { .jobs = 1, .timeout = DEFAULT_TIMEOUT };
  int status = read_options(&options, argc, argv);
  if (status >= 0) return finish(status);
  return finish(options.list ? list(&options) : run(&options));
}
