/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_run: runs recorded cases and models on a runtime and compares the results. See
 * tests/oracle/README.md. */
#include "tests/oracle/run/oracle.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: oracle_run [OPTION]... DIR...\n"
    "Runs every case below the folders: recorded ones (index.json), packed families (*.zip), models (case.json).\n"
    "A case whose ops are all claimed must not be skipped. The last line is 'N passed, N failed, N skipped'.\n"
    "\n"
    "  --runtime NAME   the session's target, as direct or threaded:threads=4 (direct)\n"
    "  --level N        optimisation level (1, the library's default)\n"
    "  --option F=V     a field of the session's options, as kernel_plugins=always; may be repeated\n"
    "  --eager          stateless cases once more, operation by operation in an eager session\n"
    "  --eager-on NAME  the same, on a device where it has kernels: as /device:GPU:0\n"
    "  --only GLOB      only cases whose id (math/Abs-000, models/digits) matches; may be repeated\n"
    "  --sample FILE    of FILE, which 'tenon ops --json' printed: for each op and type that a kernel of --device "
    "claims, the\n"
    "                   first case in which it ran there; reports those without one\n"
    "  --few            two types of each op are enough for the sample\n"
    "  --within N       no case of the sample is started after N seconds\n"
    "  --device TYPE    of the sample (GPU)\n"
    "  --ops FILE       the claimed ops (tests/oracle/ops.txt of the source tree)\n"
    "  --json FILE      also writes the results to this file\n"
    "  --timeout N      seconds for one case (120)\n"
    "  --in-process     no child process, for debuggers\n"
    "  --list           lists the cases and runs none\n"
    "  --verbose        a line for each case\n"
    "  --help\n"
    "\n"
    "Exit status: 0 no case failed, 1 some failed, 2 wrong call or unreadable index.\n";

typedef struct arguments {
  oracle_config config;
  const char *ops;
  const char *json;
  const char *sample;
  const char *device; /* of the sample */
  bool few;
  int within;
  const char **globs;
  size_t n_globs;
  size_t globs_room;
  bool list_only;
  char **folders;
  int n_folders;
} arguments;

static int number(const char *option, const char *text, int low, int high)
{
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || *end || end == text || value < low || value > high)
    oracle_usage_error("%s: '%s' is not a number from %d to %d", option, text, low, high);
  return (int)value;
}

static void parse_arguments(int argc, char **argv, arguments *a)
{
  enum {
    RUNTIME = 1000,
    LEVEL,
    OPTION,
    EAGER,
    EAGER_ON,
    ONLY,
    SAMPLE,
    FEW,
    WITHIN,
    DEVICE,
    OPS,
    JSON,
    TIMEOUT,
    IN_PROCESS,
    LIST,
    VERBOSE,
    HELP
  };
  static const struct option options[] = { { "runtime", required_argument, NULL, RUNTIME },
                                           { "level", required_argument, NULL, LEVEL },
                                           { "option", required_argument, NULL, OPTION },
                                           { "eager", no_argument, NULL, EAGER },
                                           { "eager-on", required_argument, NULL, EAGER_ON },
                                           { "only", required_argument, NULL, ONLY },
                                           { "sample", required_argument, NULL, SAMPLE },
                                           { "few", no_argument, NULL, FEW },
                                           { "within", required_argument, NULL, WITHIN },
                                           { "device", required_argument, NULL, DEVICE },
                                           { "ops", required_argument, NULL, OPS },
                                           { "json", required_argument, NULL, JSON },
                                           { "timeout", required_argument, NULL, TIMEOUT },
                                           { "in-process", no_argument, NULL, IN_PROCESS },
                                           { "list", no_argument, NULL, LIST },
                                           { "verbose", no_argument, NULL, VERBOSE },
                                           { "help", no_argument, NULL, HELP },
                                           { NULL, 0, NULL, 0 } };
  *a = (arguments){ .device = "GPU", .config = { .target = "direct", .level = 1, .timeout_s = 120 } };
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
    case RUNTIME: a->config.target = optarg; break;
    case LEVEL: a->config.level = number("--level", optarg, -1, 100); break;
    case OPTION:
      a->config.options = oracle_grow(a->config.options, a->config.n_options, &a->config.options_room,
                                      sizeof(*a->config.options));
      a->config.options[a->config.n_options++] = optarg;
      break;
    case ONLY:
      a->globs = oracle_grow(a->globs, a->n_globs, &a->globs_room, sizeof(*a->globs));
      a->globs[a->n_globs++] = optarg;
      break;
    case SAMPLE: a->sample = optarg; break;
    case FEW: a->few = true; break;
    case WITHIN: a->within = number("--within", optarg, 1, 1000000); break;
    case DEVICE: a->device = optarg; break;
    case OPS: a->ops = optarg; break;
    case JSON: a->json = optarg; break;
    case TIMEOUT: a->config.timeout_s = number("--timeout", optarg, 1, 1000000); break;
    case IN_PROCESS: a->config.in_process = true; break;
    case LIST: a->list_only = true; break;
    case EAGER: a->config.eager = true; break;
    case EAGER_ON: a->config.eager = true, a->config.eager_device = optarg; break;
    case VERBOSE: a->config.verbose = true; break;
    case HELP: fputs(usage_text, stdout); exit(0);
    default: fputs(usage_text, stderr); exit(2);
    }
  a->folders = argv + optind;
  a->n_folders = argc - optind;
  if (a->n_folders == 0) {
    fputs(usage_text, stderr);
    exit(2);
  }
}

/* Reads the list in the source tree; a program called by hand has no TENON_SRCDIR. */
static void read_claims(arguments *a)
{
  const char *top = getenv("TENON_SRCDIR");
  if (!top) top = ORACLE_SRCDIR;
  char *path = a->ops ? oracle_format("%s", a->ops) : oracle_format("%s/tests/oracle/ops.txt", top);
  oracle_claims_read(&a->config.claims, path);
  free(path);
}

/* If the process does not end normally after its last case, the last line but one says so, and
 * that counts as a failure. */
static int run(const arguments *a, const oracle_list *list)
{
  oracle_result *results = oracle_alloc(list->n * sizeof(*results));
  oracle_counts total;
  char why[300];
  bool ended_well = oracle_run_all(&a->config, list, results, why, sizeof(why));
  oracle_report(&a->config, list, results, &total);
  if (!ended_well) {
    printf("FAIL after the last case: %s\n", why);
    total.failed++;
  }
  if (a->config.kernels) oracle_kernels_report(a->config.kernels);
  bool written = !a->json || oracle_write_json(a->json, &a->config, list, results, &total);
  if (!written) fprintf(stderr, "oracle_run: %s cannot be written\n", a->json);
  printf("%zu passed, %zu failed, %zu skipped\n", total.passed, total.failed, total.skipped);
  free(results);
  if (total.failed) return 1;
  return written ? 0 : 2;
}

int main(int argc, char **argv)
{
  arguments a;
  oracle_list list = { 0 };
  int status = 0;
  parse_arguments(argc, argv, &a);
  /* In the build tree the plugins are not in the library's search path. */
  setenv("TENON_PLUGIN_PATH", ORACLE_PLUGIN_PATH, 0);
  read_claims(&a);
  if (a.sample) a.config.kernels = oracle_kernels_read(a.sample, a.device, a.few, a.within);
  for (int i = 0; i < a.n_folders; i++) oracle_find(&list, a.folders[i]);
  oracle_select(&list, a.globs, a.n_globs);
  if (a.list_only)
    for (size_t i = 0; i < list.n; i++) puts(list.cases[i].id);
  else if (list.n == 0)
    oracle_usage_error("no case found%s", a.n_globs ? " that --only selects" : "");
  else
    status = run(&a, &list);
  oracle_list_free(&list);
  oracle_claims_free(&a.config.claims);
  oracle_kernels_free(a.config.kernels);
  free(a.globs);
  free(a.config.options);
  return status;
}
