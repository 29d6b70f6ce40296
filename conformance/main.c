/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of tenon-conformance. */
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
    "Tests a plugin and prints TAP: the rules for plugins (P-..) and, for a runtime, the rules for sessions (S-..).\n"
    "RUNTIME is a runtime's name, optionally with settings as in a target (\"threaded:threads=2\"), the name of a\n"
    "kernel plugin, or the file of either (\"./libmine.so\", \"./libmine.so:deep=1\").\n"
    "Each test runs in a separate process: a test that crashes, hangs or exits fails. The rules that a test\n"
    "covers follow its name. Tests of features that the runtime reports as unimplemented are skipped.\n"
    "\n"
    "  --list         list the tests with their rules without running them\n"
    "  --filter GLOB  run only matching tests, suites or rules, such as \"session_run__*\", \"plugin_*\" or \"P-39\";\n"
    "                 may be repeated\n"
    "  --jobs N       number of tests run in parallel; default 1\n"
    "  --timeout S    time limit of a test in seconds; default 60\n"
    "  -h, --help     show this help\n"
    "  -V, --version  show the version\n"
    "\n"
    "Environment:\n"
    "  TENON_PLUGIN_PATH  folders searched for runtimes before the installation's folder\n"
    "  TENON_LOG          log level: error, warning (the default), info or debug; the log is shown for failed tests\n"
    "\n"
    "Exit status: 0 if all tests that ran passed, 1 if a test failed, 2 for invalid arguments, 77 if none could run.\n";

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
  if (c == ':') return cf_usage("option '%s' requires a value", last);
  if (optopt != 0 && strncmp(last, "--", 2) != 0) return cf_usage("unknown option '-%c'", optopt);
  if (optopt != 0) return cf_usage("option '%s' does not take a value", last);
  return cf_usage("unknown option '%s'", last);
}

/* Parses an integer in [1, most]; 0: an error was printed. */
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
  if (strcmp(tn_version(), TN_VERSION_STRING) != 0) printf("with library version %s\n", tn_version());
  printf("plugin ABI %d.%d\n", TN_ABI_MAJOR, TN_ABI_MINOR);
}

/* Returns -1 to continue, or the exit status. */
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
  if (optind < argc) return cf_usage("unexpected argument '%s'", argv[optind]);
  if (options->list && options->runtime != NULL)
    return cf_usage("'--list' does not take a runtime: all runtimes have the same tests");
  if (!options->list && options->runtime == NULL)
    return cf_usage("no runtime was given; 'tenon runtimes' lists the installed ones");
  return -1;
}

static int no_test(const cf_options *options)
{
  return cf_usage("no test, suite or rule matches '%s'; '--list' shows them",
                  options->n_filters > 0 ? options->filters[0] : "");
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

/* Checks that the output was written. If the reader has closed the pipe, the process ends as by an uncaught SIGPIPE. */
static int finish(int status)
{
  if (cf_output_closed) {
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
