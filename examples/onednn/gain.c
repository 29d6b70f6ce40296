/* SPDX-License-Identifier: Apache-2.0 */
/* Shows how much oneDNN speeds up a convolution typical of image networks on this machine: its time
 * with and without the kernels of the plugin `onednn`.
 *
 * Demonstrates how a program builds a graph and opens sessions that differ in one option. The
 * sessions take turns, so that other load on the machine slows both equally. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

enum { SIDE = 56, CHANNELS = 64, WINDOW = 3, LEAST_TURNS = 3, MOST_TURNS = 40 };
#define SECONDS 0.15

typedef struct contender {
  const char *kernel_plugins; /* the option; "auto", the default, loads them after steps have been repeated */
  tn_session *session;
  tn_callable callable;
  tn_tensor *result; /* overwritten in each step */
  double seconds;    /* of the fastest step */
} contender;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static tn_status make_tensor(const int64_t *dims, tn_tensor **out, tn_error *err)
{
  tn_status status = tn_tensor_create(TN_FLOAT, dims, 4, out, err);
  if (status != TN_OK) return status;
  float *values = tn_tensor_data(*out);
  for (int64_t i = 0; i < tn_tensor_elements(*out); i++) values[i] = (float)(i % 17) / 17;
  return TN_OK;
}

/* ---- the graph ---- */

/* A constant weight, as in a trained network, so that kernels may pack it once. */
static tn_status add_filter(tn_graph *graph, tn_output *out, tn_error *err)
{
  const int64_t dims[] = { WINDOW, WINDOW, CHANNELS, CHANNELS };
  tn_tensor *values = NULL;
  tn_status status = make_tensor(dims, &values, err);
  if (status != TN_OK) return status;
  tn_operation_builder *b = tn_operation_begin(graph, "Const", "filter", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_tensor(b, "value", values);
  tn_tensor_unref(values);
  return tn_operation_finish(b, &out->op, err);
}

static tn_status add_convolution(tn_graph *graph, tn_error *err)
{
  const int64_t dims[] = { 1, SIDE, SIDE, CHANNELS };
  const int64_t strides[] = { 1, 1, 1, 1 };
  tn_output image = { 0 }, filter = { 0 };
  tn_operation *convolution;
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", "image", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", dims, 4);
  tn_status status = tn_operation_finish(b, &image.op, err);
  if (status == TN_OK) status = add_filter(graph, &filter, err);
  if (status != TN_OK) return status;
  b = tn_operation_begin(graph, "Conv2D", "convolution", 0);
  tn_operation_add_input(b, image);
  tn_operation_add_input(b, filter);
  tn_operation_set_ints(b, "strides", strides, 4);
  tn_operation_set_string(b, "padding", "SAME", 4);
  return tn_operation_finish(b, &convolution, err);
}

/* ---- measuring ---- */

static tn_status enter(contender *c, tn_graph *graph, const char *runtime, tn_error *err)
{
  const char *feed = "image:0", *fetch = "convolution:0";
  tn_session_options *options = NULL;
  tn_status status = tn_session_options_create(&options, err);
  if (status == TN_OK) status = tn_session_options_set_target(options, runtime, err);
  if (status == TN_OK) status = tn_session_options_set_string(options, "kernel_plugins", c->kernel_plugins, err);
  if (status == TN_OK) status = tn_session_create(options, &c->session, err);
  if (status == TN_OK) status = tn_session_set_graph(c->session, graph, err);
  if (status == TN_OK)
    status = tn_session_make_callable(c->session, NULL, &feed, 1, &fetch, 1, NULL, 0, &c->callable, err);
  tn_session_options_destroy(options);
  return status;
}

static tn_status take_turn(contender *c, tn_tensor *image, tn_error *err)
{
  double started = now();
  tn_status status = tn_session_run_callable(c->session, c->callable, &image, 1, &c->result, 1, NULL, err);
  c->seconds = fmin(c->seconds, now() - started);
  return status;
}

static tn_status take_turns(contender *both, tn_tensor *image, tn_error *err)
{
  double end = now() + SECONDS;
  tn_status status = TN_OK;
  for (int i = 0; status == TN_OK && i < MOST_TURNS && (i < LEAST_TURNS || now() < end); i++) {
    status = take_turn(&both[0], image, err);
    if (status == TN_OK) status = take_turn(&both[1], image, err);
  }
  return status;
}

static tn_status measure(contender *both, const char *runtime, tn_error *err)
{
  const int64_t dims[] = { 1, SIDE, SIDE, CHANNELS };
  tn_graph *graph = NULL;
  tn_tensor *image = NULL;
  tn_status status = tn_graph_create(&graph, err);
  if (status == TN_OK) status = add_convolution(graph, err);
  if (status == TN_OK) status = make_tensor(dims, &image, err);
  /* Kernels of a loaded plugin are available to all sessions, so the session without them runs a
   * step first. */
  if (status == TN_OK) status = enter(&both[1], graph, runtime, err);
  if (status == TN_OK) status = take_turn(&both[1], image, err);
  if (status == TN_OK) status = enter(&both[0], graph, runtime, err);
  if (status == TN_OK) status = take_turns(both, image, err);
  for (int i = 0; i < 2; i++) {
    tn_tensor_unref(both[i].result);
    tn_session_destroy(both[i].session);
  }
  tn_tensor_unref(image);
  tn_graph_unref(graph);
  return status;
}

/* ---- the program ---- */

static bool has_onednn(void)
{
  tn_runtime_info info = { .struct_size = sizeof(info) };
  for (size_t i = 0; tn_runtime_at(i, &info, NULL) == TN_OK; i++)
    if (strcmp(info.name, "onednn") == 0 && info.usable && !info.shadowed && !info.disabled) return true;
  return false;
}

static void report(const contender *with, const contender *without)
{
  double gain = without->seconds / with->seconds;
  if (gain < 1.05)
    printf("  oneDNN      gains nothing on this machine with this runtime");
  else
    printf("  oneDNN      %.1f times as fast as without it", gain);
  printf(": %.2f and %.2f ms\n              for a convolution of %d by %d, %d channels, %d by %d pixels\n",
         with->seconds * 1e3, without->seconds * 1e3, WINDOW, WINDOW, CHANNELS, SIDE, SIDE);
}

int main(int argc, char **argv)
{
  contender both[] = { { .kernel_plugins = "always", .seconds = INFINITY },
                       { .kernel_plugins = "never", .seconds = INFINITY } };
  tn_error err = TN_ERROR_INIT;
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    fputs("Usage: onednn_demo [RUNTIME]\n", stderr);
    return 2;
  }
  if (!has_onednn()) {
    puts("  oneDNN      is not installed; with it convolutions take less time (Debian: libdnnl-dev, then ./quickstart "
         "again)");
    return 0;
  }
  if (measure(both, argc == 2 ? argv[1] : "", &err) == TN_OK) {
    report(&both[0], &both[1]);
    return 0;
  }
  fprintf(stderr, "onednn_demo: %s\n", tn_error_message(&err));
  tn_error_clear(&err);
  return 1;
}
