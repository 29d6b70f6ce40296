/* SPDX-License-Identifier: Apache-2.0 */
/* The overhead of the runtime gpu over OpenCL: a step of many nodes and the same kernels enqueued by hand, measured
 * alternately, and a session. Needs a device, such as PoCL's; without one there are no figures. */
#include <bench/bench.h>

#ifdef BENCH_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define TARGET "gpu:placement=device"
#define NODES 100
#define ELEMENTS 1024
#define GROUP 64
#define MOST_ROUNDS 2000

#define FUNCTIONS(X)                                                                                                  \
  X(GetPlatformIDs) X(GetDeviceIDs) X(CreateContext) X(CreateCommandQueue) X(CreateProgramWithSource) X(BuildProgram) \
  X(CreateBuffer) X(CreateKernel) X(SetKernelArg) X(EnqueueWriteBuffer) X(EnqueueReadBuffer) X(EnqueueNDRangeKernel)  \
  X(Finish) X(ReleaseKernel) X(ReleaseMemObject) X(ReleaseProgram) X(ReleaseCommandQueue) X(ReleaseContext)

static struct {
#define FIELD(name) __typeof__(&cl##name) name;
  FUNCTIONS(FIELD)
#undef FIELD
} cl;

static bool load(void)
{
  void *lib = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  bool ok = lib != NULL;
#define FIND(name) ok = ok && (*(void **)&cl.name = dlsym(lib, "cl" #name)) != NULL;
  FUNCTIONS(FIND)
#undef FIND
  return ok;
}

/* ---- by hand ---- */

static const char source[] =
    "__kernel void next(__global const float *x, __global float *y, const int n)\n"
    "{ const int i = get_global_id(0); if (i < n) y[i] = -x[i]; }\n";

typedef struct by_hand {
  cl_context context;
  cl_command_queue queue;
  cl_program program;
  cl_mem memory[2];
  cl_kernel kernels[NODES];
  float host[ELEMENTS];
} by_hand;

static void must(cl_int code, const char *what)
{
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "bench: %s: OpenCL error %d\n", what, (int)code);
  exit(1);
}

static void hand_open(by_hand *h)
{
  cl_platform_id platform;
  cl_device_id device;
  cl_int code;
  const char *text = source;
  const cl_int n = ELEMENTS;
  must(cl.GetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  must(cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  h->context = cl.CreateContext(NULL, 1, &device, NULL, NULL, &code);
  must(code, "clCreateContext");
  h->queue = cl.CreateCommandQueue(h->context, device, 0, &code);
  must(code, "clCreateCommandQueue");
  h->program = cl.CreateProgramWithSource(h->context, 1, &text, NULL, &code);
  must(code, "clCreateProgramWithSource");
  must(cl.BuildProgram(h->program, 1, &device, "", NULL, NULL), "clBuildProgram");
  for (int i = 0; i < 2; i++) {
    h->memory[i] = cl.CreateBuffer(h->context, CL_MEM_READ_WRITE, sizeof h->host, NULL, &code);
    must(code, "clCreateBuffer");
  }
  for (int i = 0; i < NODES; i++) {
    h->kernels[i] = cl.CreateKernel(h->program, "next", &code);
    must(code, "clCreateKernel");
    must(cl.SetKernelArg(h->kernels[i], 0, sizeof(cl_mem), &h->memory[i % 2]), "clSetKernelArg");
    must(cl.SetKernelArg(h->kernels[i], 1, sizeof(cl_mem), &h->memory[(i + 1) % 2]), "clSetKernelArg");
    must(cl.SetKernelArg(h->kernels[i], 2, sizeof n, &n), "clSetKernelArg");
  }
}

static void hand_step(by_hand *h)
{
  const size_t global = ELEMENTS, local = GROUP;
  cl.EnqueueWriteBuffer(h->queue, h->memory[0], CL_FALSE, 0, sizeof h->host, h->host, 0, NULL, NULL);
  for (int i = 0; i < NODES; i++)
    cl.EnqueueNDRangeKernel(h->queue, h->kernels[i], 1, NULL, &global, &local, 0, NULL, NULL);
  cl.EnqueueReadBuffer(h->queue, h->memory[NODES % 2], CL_FALSE, 0, sizeof h->host, h->host, 0, NULL, NULL);
  must(cl.Finish(h->queue), "clFinish");
}

static void hand_close(by_hand *h)
{
  for (int i = 0; i < NODES; i++) cl.ReleaseKernel(h->kernels[i]);
  for (int i = 0; i < 2; i++) cl.ReleaseMemObject(h->memory[i]);
  cl.ReleaseProgram(h->program);
  cl.ReleaseCommandQueue(h->queue);
  cl.ReleaseContext(h->context);
}

/* ---- by the runtime ---- */

/* n0 = -x, n1 = -n0, ...: at level 0 each is one launch. */
static tn_graph *chain(void)
{
  tn_graph *graph;
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  char name[20];
  bench_check(tn_graph_create(&graph, &err), &err, "a graph");
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  bench_check(tn_operation_finish(b, &op, &err), &err, "x");
  for (int i = 0; i < NODES; i++) {
    snprintf(name, sizeof name, i + 1 == NODES ? "last" : "n%d", i);
    b = tn_operation_begin(graph, "Neg", name, 0);
    tn_operation_add_input(b, (tn_output){ op, 0 });
    bench_check(tn_operation_finish(b, &op, &err), &err, name);
  }
  return graph;
}

static tn_status open_session(tn_graph *graph, tn_session **out, tn_error *err)
{
  tn_session_options *options;
  bench_check(tn_session_options_create(&options, err), err, "options");
  bench_check(tn_session_options_set_target(options, TARGET, err), err, TARGET);
  bench_check(tn_session_options_set_int(options, "level", 0, err), err, "level");
  tn_status st = tn_session_create(options, out, err);
  if (st == TN_OK) st = tn_session_set_graph(*out, graph, err);
  tn_session_options_destroy(options);
  return st;
}

static void run_step(tn_session *session, tn_tensor *x)
{
  const char *const feed = "x", *const fetch = "last";
  tn_error err = TN_ERROR_INIT;
  tn_tensor *out;
  bench_check(tn_session_run(session, NULL, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, &err), &err,
              "a step on " TARGET);
  tn_tensor_unref(out);
}

static void sessions(bench *b, tn_graph *graph, tn_tensor *x)
{
  double samples[50];
  size_t n = 0;
  tn_session *s;
  tn_error err = TN_ERROR_INIT;
  for (double end = bench_now() + b->seconds; n < 50 && (n < 3 || bench_now() < end);) {
    double begin = bench_now();
    bench_check(open_session(graph, &s, &err), &err, "a session on " TARGET);
    run_step(s, x);
    samples[n++] = bench_now() - begin;
    tn_session_destroy(s);
  }
  double median, p99;
  bench_stats(samples, n, &median, &p99);
  bench_report(b, "gpu_session_and_step", median * 1e3, p99 * 1e3, "ms", "<= 60 ms");
}

static void steps(bench *b, tn_session *s, tn_tensor *x)
{
  static double runtime[MOST_ROUNDS], hand[MOST_ROUNDS];
  static by_hand h;
  size_t n = 0;
  double ours, theirs, p99, hand_p99;
  hand_open(&h);
  for (int i = 0; i < 5; i++) run_step(s, x), hand_step(&h);
  for (double end = bench_now() + b->seconds; n < MOST_ROUNDS && (n < 3 || bench_now() < end); n++) {
    double begin = bench_now();
    run_step(s, x);
    double middle = bench_now();
    hand_step(&h);
    runtime[n] = middle - begin;
    hand[n] = bench_now() - middle;
  }
  hand_close(&h);
  bench_stats(runtime, n, &ours, &p99);
  bench_stats(hand, n, &theirs, &hand_p99);
  bench_report(b, "gpu_100_nodes", ours * 1e6, p99 * 1e6, "us", "");
  bench_report(b, "gpu_100_by_hand", theirs * 1e6, hand_p99 * 1e6, "us", "");
  bench_report(b, "gpu_100_ratio", ours / theirs, -1, "x", "<= 1.2");
}

void bench_gpu(bench *b)
{
  static const char *const figures[] = { "gpu_session_and_step", "gpu_100_nodes", "gpu_100_by_hand", "gpu_100_ratio" };
  bool wanted = false;
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) wanted |= bench_wants(figures[i]);
  if (!wanted) return;
  tn_graph *graph = chain();
  tn_session *s = NULL;
  tn_tensor *x;
  tn_error err = TN_ERROR_INIT;
  const int64_t dims[] = { ELEMENTS };
  static const float zeros[ELEMENTS];
  bench_check(tn_tensor_from_data(TN_FLOAT, dims, 1, zeros, sizeof zeros, &x, &err), &err, "x");
  if (!load() || open_session(graph, &s, &err) != TN_OK) {
    printf("# no figures of gpu: %s\n", tn_error_message(&err));
  } else {
    run_step(s, x); /* builds programs that are not cached on disk */
    sessions(b, graph, x);
    steps(b, s, x);
  }
  tn_session_destroy(s);
  tn_error_clear(&err);
  tn_tensor_unref(x);
  tn_graph_unref(graph);
}
#else
void bench_gpu(bench *b) { (void)b; }
#endif
