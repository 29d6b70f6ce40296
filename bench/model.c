/* SPDX-License-Identifier: Apache-2.0 */
/* bench/model --case FOLDER [--tile N] [--threads N] [--target T] [--option FIELD=VALUE]... [--steps N]
 * bench/model --machine BYTES [--threads N]
 *
 * Runs one model on Tenon through the public API, as an optimised program would: a session, a callable, outputs written
 * to the same memory. Loads, runs the first step, checks its result, prints a line of JSON, then reads commands:
 *
 *     run SECONDS   runs steps for that time; prints {"n": steps, "us": [sorted times, at most 1000]}
 *     end           checks the result again and prints the memory used; so does the end of the input
 *
 * With --steps it runs that many steps instead and ends, for profilers. */
#include <bench/memory.h>
#include <bench/model.h>
#include <getopt.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROOM 16384

typedef struct state {
  model_case c;
  tn_graph *graph;
  tn_session *session;
  tn_callable callable;
  tn_tensor **out;
  double *times; /* of ROOM steps */
} state;

void model_fail(const char *format, ...)
{
  char text[2000];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  json_t *line = json_pack("{s:s}", "error", text);
  if (line != NULL) json_dumpf(line, stdout, 0);
  puts("");
  fflush(stdout);
  fprintf(stderr, "model: %s\n", text);
  exit(1);
}

void model_check(tn_status status, const tn_error *err, const char *what)
{
  if (status != TN_OK) model_fail("%s: %s: %s", what, tn_status_name(status), tn_error_message(err));
}

void *model_alloc(size_t bytes)
{
  void *p = calloc(1, bytes);
  if (p == NULL) model_fail("no memory");
  return p;
}

double model_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs a step. Passes in the outputs of the previous step, which it overwrites. */
static void step(state *s)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_session_run_callable(s->session, s->callable, s->c.feeds.values, s->c.feeds.n, s->out,
                                         s->c.fetches.n, NULL, &err);
  if (st != TN_OK) model_check(st, &err, "run");
}

static void load(state *s, const tn_session_options *options)
{
  tn_error err = TN_ERROR_INIT;
  model_check(tn_graph_create(&s->graph, &err), &err, "graph");
  model_check(tn_graph_import_file(s->graph, s->c.model, NULL, &err), &err, s->c.model);
  model_check(tn_session_create(options, &s->session, &err), &err, "session");
  model_check(tn_session_set_graph(s->session, s->graph, &err), &err, "set_graph");
  model_check(tn_session_make_callable(s->session, NULL, s->c.feeds.names, s->c.feeds.n, s->c.fetches.names,
                                       s->c.fetches.n, NULL, 0, &s->callable, &err),
              &err, "callable");
}

static void print(json_t *line)
{
  json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
  puts("");
  fflush(stdout);
  json_decref(line);
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Runs steps for a time. Of more than ROOM steps it keeps a random sample, and reports a thousand evenly spaced
 * values of the sorted sample. */
static void run_for(state *s, double seconds)
{
  uint64_t n = 0, random = 88172645463325252u;
  double now = model_now(), end = now + seconds;
  while (n < 3 || now < end) {
    double before = now;
    step(s);
    now = model_now();
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    uint64_t at = n < ROOM ? n : random % (n + 1);
    if (at < ROOM) s->times[at] = now - before;
    n++;
  }
  size_t kept = n < ROOM ? (size_t)n : ROOM, keep = kept < 1000 ? kept : 1000;
  qsort(s->times, kept, sizeof *s->times, by_value);
  json_t *list = json_array();
  for (size_t i = 0; i < keep; i++)
    json_array_append_new(list, json_real(s->times[(i * kept + kept / 2) / keep] * 1e6));
  print(json_pack("{s:I, s:o}", "n", (json_int_t)n, "us", list));
}

static void serve(state *s)
{
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, "run ", 4) == 0) run_for(s, atof(line + 4));
  double worst = model_case_compare(&s->c, s->out);
  print(json_pack("{s:I, s:I, s:f}", "anon_kb", (json_int_t)bench_memory_kb("RssAnon"), "peak_kb",
                  (json_int_t)bench_memory_kb("VmHWM"), "error_share", worst));
}

static void measure(state *s, const tn_session_options *options, const char *folder, int tile, int steps)
{
  model_case_read(&s->c, folder, tile);
  s->out = model_alloc((s->c.fetches.n + 1) * sizeof(tn_tensor *));
  s->times = model_alloc(ROOM * sizeof *s->times);
  for (size_t i = 0; i < ROOM; i++) s->times[i] = 1; /* touches the pages before memory is measured */
  json_int_t before = bench_memory_kb("VmRSS"), anonymous = bench_memory_kb("RssAnon");
  double started = model_now();
  load(s, options);
  double loaded = model_now();
  step(s);
  double first = model_now();
  double worst = model_case_compare(&s->c, s->out);
  print(json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:s}", "at", first, "start_s", started, "load_s",
                  loaded - started, "first_s", first - loaded, "before_kb", before, "before_anon_kb", anonymous,
                  "error_share", worst, "version", tn_version()));
  for (int i = 0; i < steps; i++) step(s);
  if (steps == 0) serve(s);
  for (size_t i = 0; i < s->c.fetches.n; i++) tn_tensor_unref(s->out[i]);
  free(s->out);
  free(s->times);
  tn_session_destroy(s->session);
  tn_graph_unref(s->graph);
  model_case_free(&s->c);
}

static void set_option(tn_session_options *options, char *text)
{
  tn_error err = TN_ERROR_INIT;
  char *value = strchr(text, '=');
  if (value == NULL) model_fail("--option wants FIELD=VALUE, not '%s'", text);
  *value++ = 0;
  model_check(tn_session_options_parse(options, text, value, &err), &err, text);
}

static void set_threads(tn_session_options *options, int threads)
{
  tn_error err = TN_ERROR_INIT;
  if (threads < 1) model_fail("--threads wants a number above 0");
  model_check(tn_session_options_set_int(options, "intra_op_threads", threads, &err), &err, "threads");
  model_check(tn_session_options_set_int(options, "inter_op_threads", threads > 1 ? threads : -1, &err), &err,
              "threads");
}

int main(int argc, char **argv)
{
  static const struct option known[] = { { "case", 1, 0, 'c' },    { "tile", 1, 0, 't' },   { "threads", 1, 0, 'n' },
                                         { "target", 1, 0, 'r' },  { "option", 1, 0, 'o' }, { "steps", 1, 0, 's' },
                                         { "machine", 1, 0, 'm' }, { 0, 0, 0, 0 } };
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options;
  state s = { .graph = NULL };
  const char *folder = NULL;
  int tile = 1, threads = 1, steps = 0;
  size_t machine = 0;
  model_check(tn_session_options_create(&options, &err), &err, "options");
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    if (c == 'c')
      folder = optarg;
    else if (c == 't')
      tile = atoi(optarg);
    else if (c == 'n')
      threads = atoi(optarg);
    else if (c == 'r')
      model_check(tn_session_options_set_target(options, optarg, &err), &err, "target");
    else if (c == 'o')
      set_option(options, optarg);
    else if (c == 's')
      steps = atoi(optarg);
    else if (c == 'm')
      machine = (size_t)strtoull(optarg, NULL, 10);
    else
      return 2;
  }
  set_threads(options, threads);
  if (machine > 0)
    model_machine(machine, threads);
  else if (folder == NULL)
    model_fail("--case FOLDER or --machine BYTES is wanted");
  else
    measure(&s, options, folder, tile, steps);
  tn_session_options_destroy(options);
  return 0;
}
