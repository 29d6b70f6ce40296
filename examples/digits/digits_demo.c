/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies images of handwritten digits with a model trained by TensorFlow, on the requested
 * runtime.
 *
 * Shows how a program uses Tenon: read a model, open a session, prepare a callable, and run it step
 * by step without name look-up or copy: the images are views of one array, and the results are
 * written into reused tensors. */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tenon/tenon.h>

#ifndef DIGITS_DATA
#define DIGITS_DATA "."
#endif

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, SHOWN = 7 };

typedef struct demo {
  const char *folder;
  const char *runtime;
  tn_graph *graph;
  tn_session *session;
  tn_tensor *images;   /* float32 [n, 8, 8, 1] */
  tn_tensor *labels;   /* int64 [n] */
  tn_tensor *expected; /* float32 [n, 10] */
  int64_t n;
  int64_t *found;    /* the recognised digit of each image */
  double one_by_one; /* seconds */
  double batch;      /* seconds */
  double difference; /* maximum difference from TensorFlow's results */
  bool terminal, utf8, colour;
} demo;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- loading ---- */

static tn_status load_array(const demo *d, const char *file, tn_dtype dtype, tn_tensor **out, tn_error *err)
{
  char path[4096];
  if (snprintf(path, sizeof(path), "%s/%s", d->folder, file) >= (int)sizeof(path))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the folder's name is too long");
  tn_status status = tn_npy_load(path, dtype, out, err);
  if (status == TN_OK && tn_tensor_dtype(*out) != dtype)
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' holds %s, wanted %s", path,
                          tn_dtype_name(tn_tensor_dtype(*out)), tn_dtype_name(dtype));
  return status;
}

static tn_status load_model(demo *d, tn_error *err)
{
  char path[4096];
  if (snprintf(path, sizeof(path), "%s/digits.pb", d->folder) >= (int)sizeof(path))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the folder's name is too long");
  tn_status status = tn_graph_create(&d->graph, err);
  if (status == TN_OK) status = tn_graph_import_file(d->graph, path, NULL, err);
  return status;
}

static tn_status load(demo *d, tn_error *err)
{
  tn_status status = load_model(d, err);
  if (status == TN_OK) status = load_array(d, "images.npy", TN_FLOAT, &d->images, err);
  if (status == TN_OK) status = load_array(d, "labels.npy", TN_INT64, &d->labels, err);
  if (status == TN_OK) status = load_array(d, "expected.npy", TN_FLOAT, &d->expected, err);
  if (status != TN_OK) return status;
  d->n = tn_tensor_elements(d->labels);
  if (d->n < 1 || tn_tensor_elements(d->images) != d->n * PIXELS || tn_tensor_elements(d->expected) != d->n * CLASSES)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': images, labels and expected values do not belong together",
                        d->folder);
  d->found = calloc((size_t)d->n, sizeof(*d->found));
  return d->found != NULL ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
}

static tn_status open_session(demo *d, tn_error *err)
{
  tn_session_options *options = NULL;
  tn_status status = tn_session_options_create(&options, err);
  if (status == TN_OK) status = tn_session_options_set_target(options, d->runtime, err);
  if (status == TN_OK) status = tn_session_create(options, &d->session, err);
  if (status == TN_OK) status = tn_session_set_graph(d->session, d->graph, err);
  tn_session_options_destroy(options);
  return status;
}

/* ---- classifying ---- */

static void progress(const demo *d, int64_t done)
{
  enum { WIDTH = 40 };
  if (!d->terminal || (done % 4 != 0 && done != d->n)) return;
  printf("\r  [");
  const char *full = d->utf8 ? "\u2588" : "#", *empty = d->utf8 ? "\u2591" : ".";
  for (int i = 0; i < WIDTH; i++) fputs(i < done * WIDTH / d->n ? full : empty, stdout);
  printf("] %d/%d images", (int)done, (int)d->n);
  fflush(stdout);
}

static void compare(demo *d, int64_t first, const tn_tensor *probabilities)
{
  const float *got = tn_tensor_data(probabilities),
              *wanted = (const float *)tn_tensor_data(d->expected) + first * CLASSES;
  for (int64_t i = 0; i < tn_tensor_elements(probabilities); i++) {
    double difference = fabs((double)got[i] - (double)wanted[i]);
    /* Not "larger than", so that a NaN is kept. */
    if (!(difference <= d->difference)) d->difference = difference;
  }
}

/* A view of `count` images, starting with number `first`. */
static tn_status some_images(const demo *d, int64_t first, int64_t count, tn_tensor **out, tn_error *err)
{
  const int64_t dims[] = { count, SIDE, SIDE, 1 };
  return tn_tensor_from_buffer(TN_FLOAT, dims, 4, tn_tensor_buffer(d->images), (size_t)first * PIXELS * sizeof(float),
                               out, err);
}

/* One step for each image; answers[] are reused. */
static tn_status classify_each(demo *d, tn_callable callable, tn_tensor **answers, tn_error *err)
{
  tn_status status = TN_OK;
  for (int64_t i = -1; i < d->n && status == TN_OK; i++) {
    tn_tensor *image = NULL;
    status = some_images(d, i < 0 ? 0 : i, 1, &image, err);
    if (status != TN_OK) break;
    double started = now();
    status = tn_session_run_callable(d->session, callable, &image, 1, answers, 2, NULL, err);
    /* The first step, number -1, also lays out the memory for this batch size, and is not timed. */
    if (i >= 0) d->one_by_one += now() - started;
    tn_tensor_unref(image);
    if (status != TN_OK || i < 0) continue;
    d->found[i] = *(const int64_t *)tn_tensor_data(answers[0]);
    compare(d, i, answers[1]);
    progress(d, i + 1);
  }
  if (d->terminal) printf("\r\033[K");
  return status;
}

static tn_status make_answers(int64_t n, tn_tensor **answers, tn_error *err)
{
  const int64_t dims[] = { n, CLASSES };
  tn_status status = tn_tensor_create(TN_INT64, dims, 1, &answers[0], err);
  if (status == TN_OK) status = tn_tensor_create(TN_FLOAT, dims, 2, &answers[1], err);
  return status;
}

static tn_status classify_batch(demo *d, tn_callable callable, tn_error *err)
{
  tn_tensor *answers[2] = { NULL, NULL };
  tn_status status = make_answers(d->n, answers, err);
  for (int i = 0; i < 2 && status == TN_OK; i++) {
    double started = now();
    status = tn_session_run_callable(d->session, callable, &d->images, 1, answers, 2, NULL, err);
    d->batch = now() - started;
  }
  if (status == TN_OK) compare(d, 0, answers[1]);
  tn_tensor_unref(answers[0]);
  tn_tensor_unref(answers[1]);
  return status;
}

static tn_status classify(demo *d, tn_error *err)
{
  const char *feed = "image:0", *fetches[] = { "class:0", "probabilities:0" };
  tn_tensor *answers[2] = { NULL, NULL };
  tn_callable callable;
  tn_status status = tn_session_make_callable(d->session, NULL, &feed, 1, fetches, 2, NULL, 0, &callable, err);
  if (status == TN_OK) status = make_answers(1, answers, err);
  if (status == TN_OK) status = classify_each(d, callable, answers, err);
  if (status == TN_OK) status = classify_batch(d, callable, err);
  tn_tensor_unref(answers[0]);
  tn_tensor_unref(answers[1]);
  return status;
}

/* ---- showing ---- */

static double pixel(const demo *d, int64_t image, int x, int y)
{
  double value = (double)((const float *)tn_tensor_data(d->images))[image * PIXELS + y * SIDE + x];
  if (value < 0) return 0;
  return value > 1 ? 1 : value;
}

/* Two pixels in one character: the upper is the character's colour, the lower its background. */
static void draw_cell(const demo *d, double upper, double lower)
{
  static const char *const blocks[2][2] = { { " ", "\u2584" }, { "\u2580", "\u2588" } };
  if (d->colour)
    printf("\033[38;5;%d;48;5;%dm\u2580", 232 + (int)(upper * 23), 232 + (int)(lower * 23));
  else
    fputs(blocks[upper > 0.35][lower > 0.35], stdout);
}

static void draw_blocks(const demo *d, const int64_t *images, int n)
{
  for (int y = 0; y < SIDE; y += 2) {
    fputs("  ", stdout);
    for (int i = 0; i < n; i++) {
      for (int x = 0; x < SIDE; x++) draw_cell(d, pixel(d, images[i], x, y), pixel(d, images[i], x, y + 1));
      fputs(d->colour ? "\033[0m  " : "  ", stdout);
    }
    fputc('\n', stdout);
  }
}

/* Without UTF-8: one letter for two pixels, darker for higher values. */
static void draw_letters(const demo *d, const int64_t *images, int n)
{
  static const char letters[] = " .:-=+*#%@";
  for (int y = 0; y < SIDE; y++) {
    fputs("  ", stdout);
    for (int i = 0; i < n; i++) {
      for (int x = 0; x < SIDE; x++) fputc(letters[(int)(pixel(d, images[i], x, y) * 9)], stdout);
      fputs("  ", stdout);
    }
    fputc('\n', stdout);
  }
}

static void draw_labels(const demo *d, const int64_t *images, int n)
{
  const int64_t *labels = tn_tensor_data(d->labels);
  fputs("  ", stdout);
  for (int i = 0; i < n; i++) {
    char text[32];
    int found = (int)d->found[images[i]], label = (int)labels[images[i]];
    if (found == label)
      snprintf(text, sizeof(text), "   %d", found);
    else
      snprintf(text, sizeof(text), "%d, is %d", found, label);
    printf("%-8s  ", text);
  }
  fputs("\n\n", stdout);
}

/* Shows the first images, and at the end up to two that were classified wrongly. */
static void show(const demo *d)
{
  const int64_t *labels = tn_tensor_data(d->labels);
  int64_t images[SHOWN], wrong[2];
  int n_wrong = 0, n = 0;
  for (int64_t i = 0; i < d->n && n_wrong < 2; i++)
    if (d->found[i] != labels[i]) wrong[n_wrong++] = i;
  for (int64_t i = 0; i < d->n && n < SHOWN - n_wrong; i++)
    if (d->found[i] == labels[i]) images[n++] = i;
  for (int i = 0; i < n_wrong; i++) images[n++] = wrong[i];
  if (d->utf8)
    draw_blocks(d, images, n);
  else
    draw_letters(d, images, n);
  draw_labels(d, images, n);
}

static void report(const demo *d)
{
  const int64_t *labels = tn_tensor_data(d->labels);
  const tn_runtime_info *runtime = tn_session_runtime(d->session);
  int64_t right = 0;
  for (int64_t i = 0; i < d->n; i++) right += d->found[i] == labels[i];
  printf("  recognised  %d of %d images (%.1f %%)\n", (int)right, (int)d->n, 100.0 * (double)right / (double)d->n);
  printf("  speed       %.0f images a second one by one, %.0f in one batch\n", (double)d->n / d->one_by_one,
         (double)d->n / d->batch);
  printf("  TensorFlow  computed the same probabilities, but for %.1e\n", d->difference);
  printf("  runtime     %s %s\n", runtime->name, runtime->version != NULL ? runtime->version : "");
  if (runtime->file != NULL && runtime->file[0] != '\0') printf("              %s\n", runtime->file);
}

/* ---- the program ---- */

static void look_at_terminal(demo *d)
{
  const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
  /* Only the character set, so that numbers keep their decimal point. */
  setlocale(LC_CTYPE, "");
  d->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  d->terminal = isatty(STDOUT_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
  d->colour = d->terminal && (no_colour == NULL || no_colour[0] == '\0');
}

static int parse(demo *d, int argc, char **argv)
{
  static const struct option options[] = {
    { "runtime", required_argument, NULL, 'r' },
    { "data", required_argument, NULL, 'd' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
  };
  int c;
  while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    if (c == 'r') {
      d->runtime = optarg;
    } else if (c == 'd') {
      d->folder = optarg;
    } else {
      fputs("Usage: digits_demo [--runtime NAME[:K=V,...]] [--data FOLDER]\n\n"
            "Classifies images of handwritten digits with a model that TensorFlow trained.\n\n"
            "  --runtime NAME  the runtime that runs it; 'tenon runtimes' lists them\n"
            "  --data FOLDER   where digits.pb and the arrays are\n",
            c == 'h' ? stdout : stderr);
      return c == 'h' ? 0 : 2;
    }
  }
  return -1;
}

int main(int argc, char **argv)
{
  demo d = { .folder = DIGITS_DATA, .runtime = "" };
  tn_error err = TN_ERROR_INIT;
  int exit_status = parse(&d, argc, argv);
  if (exit_status >= 0) return exit_status;
  exit_status = 0;
  look_at_terminal(&d);
  tn_status status = load(&d, &err);
  if (status == TN_OK) status = open_session(&d, &err);
  if (status == TN_OK) status = classify(&d, &err);
  if (status == TN_OK) {
    show(&d);
    report(&d);
  }
  if (status == TN_OK && !(d.difference <= 1e-4))
    status = tn_error_set(&err, TN_INTERNAL, "the probabilities differ from TensorFlow's by %g", d.difference);
  if (fflush(stdout) != 0 && status == TN_OK)
    status = tn_error_set(&err, TN_UNAVAILABLE, "standard output: %s", strerror(errno));
  if (status != TN_OK) {
    char text[2048];
    tn_error_format(&err, text, sizeof(text));
    fprintf(stderr, "digits_demo: %s\n", text);
    exit_status = 1;
  }
  free(d.found);
  tn_tensor_unref(d.images);
  tn_tensor_unref(d.labels);
  tn_tensor_unref(d.expected);
  tn_session_destroy(d.session);
  tn_graph_unref(d.graph);
  tn_error_clear(&err);
  return exit_status;
}
