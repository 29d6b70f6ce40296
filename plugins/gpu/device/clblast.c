/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast: opening it, trying it, and calling it. */
#define _GNU_SOURCE /* dlinfo */
#include "device/clblast.h"

#include "device/memory.h"

struct gpu_clblast {
  bool used;                  /* CLBlast has programs of the context; guarded by `mu` of this file */
  pthread_mutex_t trying;     /* guards tried: a thread that needs an entry waits for the thread that compiles it */
  signed char tried[2][3][4]; /* by type, kind and across: 1 it works, -1 it does not */
};

#ifdef GPU_CLBLAST
#include <clblast_c.h>
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AUTO_WORTH ((double)(1 << 21)) /* m * n * k from which the setting `auto` selects CLBlast */
#define AUTO_ROWS 5                    /* fewer are read once by a kernel of our own */

/* ---- the library ---- */

#define FUNCTIONS(X)                                                                                         \
  X(SgemmWithTempBuffer) X(DgemmWithTempBuffer) X(SgemmStridedBatched) X(DgemmStridedBatched) X(SGemmTempBufferSize) \
  X(DGemmTempBufferSize) X(ClearCache)

static struct {
#define FIELD(name) __typeof__(&CLBlast##name) name;
  FUNCTIONS(FIELD)
#undef FIELD
  char file[64];
  int state; /* 0: not looked for, 1: loaded, -1: unavailable */
} lib;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* guards lib.state, used and n_used; taken last */
static size_t n_used;                                  /* contexts of which CLBlast has programs */

/* NULL, or what is wrong with it. */
static const char *find_functions(void *handle, char *text, size_t size)
{
  const char *missing = NULL;
  void *enqueue = dlsym(handle, "clEnqueueNDRangeKernel"), *ours;
  memcpy(&ours, &cl.EnqueueNDRangeKernel, sizeof ours);
#define FIND(name)                                                              \
  if ((*(void **)&lib.name = dlsym(handle, "CLBlast" #name)) == NULL) missing = "CLBlast" #name;
  FUNCTIONS(FIND)
#undef FIND
  snprintf(text, size, "it has no %s", missing == NULL ? "" : missing);
  if (missing != NULL) return text;
  return enqueue == NULL || enqueue == ours ? NULL : "it calls another OpenCL loader than this runtime";
}

static void note_file(void *handle)
{
  struct link_map *map;
  char path[4096];
  snprintf(lib.file, sizeof lib.file, "libclblast.so.1");
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || realpath(map->l_name, path) == NULL) return;
  const char *name = strrchr(path, '/');
  if (name != NULL) snprintf(lib.file, sizeof lib.file, "%s", name + 1);
}

static void open_library(bool wanted)
{
  char text[96];
  void *handle = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
  const char *why = handle == NULL ? dlerror() : find_functions(handle, text, sizeof text);
  lib.state = why == NULL ? 1 : -1;
  if (why == NULL) {
    note_file(handle);
    return;
  }
  tn_log(wanted ? TN_LOG_WARNING : TN_LOG_INFO, "gpu: products are computed by own kernels, CLBlast cannot be used: %s",
         why);
  if (handle != NULL) dlclose(handle);
}

const char *gpu_clblast_for(const gpu_device *device, int blas)
{
  if (blas == GPU_BLAS_OWN || (blas == GPU_BLAS_AUTO && (device->type & CL_DEVICE_TYPE_CPU) != 0)) return NULL;
  pthread_mutex_lock(&mu);
  if (lib.state == 0) open_library(blas == GPU_BLAS_CLBLAST);
  bool there = lib.state > 0;
  pthread_mutex_unlock(&mu);
  return there ? lib.file : NULL;
}

void gpu_clblast_destroy(gpu_clblast *clblast)
{
  if (clblast == NULL) return;
  pthread_mutex_lock(&mu);
  if (clblast->used && --n_used == 0) lib.ClearCache(); /* of all contexts: others would compile again in a step */
  pthread_mutex_unlock(&mu);
  pthread_mutex_destroy(&clblast->trying);
  tn_free(clblast);
}

/* ---- errors ---- */

static const char *text_of(int code)
{
  switch (code) {
  case CLBlastNotImplemented: return "it is not implemented";
  case CLBlastInvalidMatrixA: case CLBlastInvalidMatrixB: case CLBlastInvalidMatrixC: return "a matrix is not a buffer";
  case CLBlastInvalidDimension: return "a dimension is 0";
  case CLBlastInvalidLeadDimA:
  case CLBlastInvalidLeadDimB:
  case CLBlastInvalidLeadDimC: return "a row is longer than its stride";
  case CLBlastInsufficientMemoryA: case CLBlastInsufficientMemoryB: case CLBlastInsufficientMemoryC:
    return "a matrix exceeds its buffer";
  case CLBlastInsufficientMemoryTemp: return "its temporary buffer is too small";
  case CLBlastInvalidBatchCount: return "a batch of 0";
  case CLBlastInvalidLocalMemUsage: return "the device has too little local memory";
  case CLBlastNoHalfPrecision: case CLBlastNoDoublePrecision: return "the device does not have this precision";
  case CLBlastDatabaseError: return "it has no parameters for the device";
  default: return "an error that it does not explain";
  }
}

/* Its codes are OpenCL's, and more. */
static tn_status failed(const gpu_device *device, int code, const char *call, tn_error *err)
{
  if (code > -1000) return gpu_cl_error(err, code, call, device->name);
  return tn_error_set(err, TN_INTERNAL, "%s on '%.100s': %s (%d)", call, device->name, text_of(code), code);
}

/* ---- a product ---- */

typedef struct place { /* a matrix for CLBlast */
  cl_mem mem;
  size_t at; /* elements */
  bool made; /* mem is part of another */
} place;

typedef gpu_clblast_product product;

static CLBlastTranspose transpose(bool across) { return across ? CLBlastTransposeYes : CLBlastTransposeNo; }

/* CLBlast makes its table of parameters in its first call, without a lock. This call precedes any other with
 * the same product, so no other thread is in CLBlast while the table is made. */
static pthread_mutex_t sizing = PTHREAD_MUTEX_INITIALIZER;

static size_t temp_bytes(const gpu_gemm *g, cl_command_queue queue, int *code)
{
  const CLBlastTranspose a = transpose(g->across_a), b = transpose(g->across_b);
  const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
  size_t bytes = 0;
  pthread_mutex_lock(&sizing);
  /* Offsets of 1: matrices at offset 0 may need less. */
  *code = (g->dtype == TN_DOUBLE ? lib.DGemmTempBufferSize
                                 : lib.SGemmTempBufferSize)(CLBlastLayoutRowMajor, a, b, m, n, k, 1, (size_t)g->a_row,
                                                            1, (size_t)g->b_row, 1, (size_t)g->out_row, &queue, &bytes);
  pthread_mutex_unlock(&sizing);
  return bytes;
}

static int multiply(const gpu_gemm *g, place a, place b, place out, cl_mem temp, cl_command_queue queue,
                    cl_event *event)
{
  const CLBlastTranspose x = transpose(g->across_a), y = transpose(g->across_b);
  const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
  const size_t to_a = (size_t)g->a_row, to_b = (size_t)g->b_row, to_out = (size_t)g->out_row;
  return (int)(g->dtype == TN_DOUBLE
                   ? lib.DgemmWithTempBuffer(CLBlastLayoutRowMajor, x, y, m, n, k, 1, a.mem, a.at, to_a, b.mem, b.at,
                                             to_b, 0, out.mem, out.at, to_out, &queue, event, temp)
                   : lib.SgemmWithTempBuffer(CLBlastLayoutRowMajor, x, y, m, n, k, 1, a.mem, a.at, to_a, b.mem, b.at,
                                             to_b, 0, out.mem, out.at, to_out, &queue, event, temp));
}

static int multiply_batch(const gpu_gemm *g, place a, place b, place out, cl_command_queue queue, cl_event *event)
{
  const CLBlastTranspose x = transpose(g->across_a), y = transpose(g->across_b);
  const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k, batch = (size_t)g->batch;
  const size_t to_a = (size_t)g->a_row, to_b = (size_t)g->b_row, to_out = (size_t)g->out_row;
  const size_t next_a = (size_t)g->a_batch, next_b = (size_t)g->b_batch, next_out = (size_t)g->out_batch;
  return (int)(g->dtype == TN_DOUBLE ? lib.DgemmStridedBatched(CLBlastLayoutRowMajor, x, y, m, n, k, 1, a.mem, a.at,
                                                               to_a, next_a, b.mem, b.at, to_b, next_b, 0, out.mem,
                                                               out.at, to_out, next_out, batch, &queue, event)
                                     : lib.SgemmStridedBatched(CLBlastLayoutRowMajor, x, y, m, n, k, 1, a.mem, a.at,
                                                               to_a, next_a, b.mem, b.at, to_b, next_b, 0, out.mem,
                                                               out.at, to_out, next_out, batch, &queue, event));
}

/* The kernels of one matrix are large enough to fill the device where they need temporary memory, so they go
 * one after the other; the routine for batches would allocate that memory in each step. */
static int run(const product *p, place a, place b, place out, cl_mem temp, cl_command_queue queue, cl_event *event)
{
  const gpu_gemm *g = &p->g;
  if (g->batch > 1 && p->temp == 0) return multiply_batch(g, a, b, out, queue, event);
  int code = CLBlastSuccess;
  for (int64_t i = 0; code == CLBlastSuccess && i < g->batch; i++) {
    code = multiply(g, a, b, out, temp, queue, i + 1 == g->batch ? event : NULL);
    a.at += (size_t)g->a_batch;
    b.at += (size_t)g->b_batch;
    out.at += (size_t)g->out_batch;
  }
  return code;
}

/* Number of elements from the first of a matrix to the last of the batch. */
static double span(int64_t batch, int64_t step, int64_t rows, int64_t row, int64_t columns)
{
  return (double)(batch - 1) * (double)step + (double)(rows - 1) * (double)row + (double)columns;
}
static double span_a(const gpu_gemm *g)
{
  return span(g->batch, g->a_batch, g->across_a ? g->k : g->m, g->a_row, g->across_a ? g->m : g->k);
}
static double span_b(const gpu_gemm *g)
{
  return span(g->batch, g->b_batch, g->across_b ? g->n : g->k, g->b_row, g->across_b ? g->k : g->n);
}
static double span_out(const gpu_gemm *g) { return span(g->batch, g->out_batch, g->m, g->out_row, g->n); }

/* ---- in a step ---- */

static cl_int part_of(cl_mem mem, size_t at, size_t bytes, place *out)
{
  const cl_buffer_region region = { at, bytes };
  cl_int code;
  *out = (place){ .mem = cl.CreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code) };
  out->made = code == CL_SUCCESS;
  return code;
}

/* CLBlast counts in int: memory beyond that range in a large arena is passed as a sub-buffer. */
static cl_int reach(const gpu_device *d, gpu_memory m, double elements, size_t size, place *out)
{
  *out = (place){ .mem = m.mem, .at = m.at / size };
  if ((double)out->at + elements <= INT32_MAX) return CL_SUCCESS;
  const size_t front = m.at % d->align_bytes;
  cl_int code = part_of(m.mem, m.at - front, front + (size_t)elements * size, out);
  out->at = front / size;
  return code;
}

static void let_go(const place *p)
{
  if (p->made) cl.ReleaseMemObject(p->mem);
}

static size_t round_up(size_t at, size_t align) { return (at + align - 1) / align * align; }

tn_status gpu_clblast_enqueue(const gpu_device *d, cl_command_queue queue, const void *user, const gpu_memory *memory,
                              cl_event *event, tn_error *err)
{
  product p;
  memcpy(&p, user, sizeof p);
  const size_t size = tn_dtype_size(p.g.dtype);
  place a = { 0 }, b = { 0 }, out = { 0 }, temp = { 0 };
  cl_int code = reach(d, memory[0], span_a(&p.g), size, &a);
  if (code == CL_SUCCESS) code = reach(d, memory[1], span_b(&p.g), size, &b);
  if (code == CL_SUCCESS) code = reach(d, memory[2], span_out(&p.g), size, &out);
  if (code == CL_SUCCESS && p.temp > 0)
    code = part_of(memory[3].mem, round_up(memory[3].at, d->align_bytes), p.temp, &temp);
  tn_status st = code == CL_SUCCESS ? TN_OK : failed(d, code, "clCreateSubBuffer", err);
  int routine = st == TN_OK ? run(&p, a, b, out, temp.mem, queue, event) : CLBlastSuccess;
  if (routine != CLBlastSuccess) st = failed(d, routine, "CLBlast's Gemm", err);
  let_go(&a);
  let_go(&b);
  let_go(&out);
  let_go(&temp);
  return st;
}

/* ---- trying it ---- */

enum { DIRECT, INDIRECT, BATCHED };

/* The smallest product of square matrices for which CLBlast uses kernels of this kind. */
static bool small_product(int kind, const gpu_gemm *like, cl_command_queue queue, product *p)
{
  for (int64_t side = 8; side <= 4096; side *= 2) {
    const int64_t all = side * side;
    int code;
    p->g = (gpu_gemm){ .dtype = like->dtype, .across_a = like->across_a, .across_b = like->across_b,
                       .batch = kind == BATCHED ? 2 : 1, .m = side, .n = side, .k = side, .a_row = side, .b_row = side,
                       .out_row = side, .a_batch = all, .b_batch = all, .out_batch = all };
    p->temp = temp_bytes(&p->g, queue, &code);
    if (code != CLBlastSuccess) return false;
    if ((p->temp > 0) == (kind == INDIRECT)) return true;
  }
  return false;
}

static cl_int filled(const gpu_device *d, cl_command_queue queue, size_t bytes, place *out)
{
  const float zero = 0;
  cl_int code;
  *out = (place){ .mem = cl.CreateBuffer(d->context, CL_MEM_READ_WRITE, bytes, NULL, &code) };
  out->made = code == CL_SUCCESS;
  return out->made ? cl.EnqueueFillBuffer(queue, out->mem, &zero, sizeof zero, 0, bytes, 0, NULL, NULL) : code;
}

static int try_product(const gpu_device *d, const product *p, cl_command_queue queue)
{
  const size_t bytes = (size_t)span_out(&p->g) * tn_dtype_size(p->g.dtype);
  place at[4] = { { 0 } };
  cl_int code = CL_SUCCESS;
  for (int i = 0; code == CL_SUCCESS && i < (p->temp > 0 ? 4 : 3); i++)
    code = filled(d, queue, i < 3 ? bytes : round_up(p->temp, sizeof(float)), &at[i]);
  if (code == CL_SUCCESS) code = run(p, at[0], at[1], at[2], at[3].mem, queue, NULL);
  cl_int waited = cl.Finish(queue);
  for (int i = 0; i < 4; i++) let_go(&at[i]);
  return code == CL_SUCCESS ? waited : code;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void note_use(gpu_clblast *c)
{
  pthread_mutex_lock(&mu);
  if (!c->used) n_used++;
  c->used = true;
  pthread_mutex_unlock(&mu);
}

/* Whether CLBlast works on the device. The first caller compiles its kernels, so that no step has to. */
static bool works(const gpu_device *d, const gpu_gemm *g, int kind)
{
  static const char *const kinds[] = { "small", "large", "batched" };
  gpu_clblast *c = d->clblast;
  signed char *tried = &c->tried[g->dtype == TN_DOUBLE][kind][g->across_a * 2 + g->across_b];
  cl_command_queue queue = gpu_pool_queue(d->pool);
  product p;
  pthread_mutex_lock(&c->trying);
  if (*tried == 0 && !d->lost) {
    const double begun = now();
    note_use(c);
    int code = small_product(kind, g, queue, &p) ? try_product(d, &p, queue) : CLBlastUnexpectedError;
    tn_error why = TN_ERROR_INIT;
    tn_status st = code == CLBlastSuccess ? TN_OK : failed(d, code, "CLBlast's Gemm", &why);
    if (st != TN_RESOURCE_EXHAUSTED) *tried = st == TN_OK ? 1 : -1;
    if (st == TN_OK) tn_log(TN_LOG_INFO, "gpu: CLBlast for %s products of %s is there after %.0f ms", kinds[kind],
                            tn_dtype_name(g->dtype), 1e3 * (now() - begun));
    else tn_log(TN_LOG_WARNING, "gpu: products are computed by own kernels: %s", tn_error_message(&why));
    tn_error_clear(&why);
  }
  bool works = *tried > 0;
  pthread_mutex_unlock(&c->trying);
  return works;
}

/* ---- products for CLBlast ---- */

/* CLBlast counts elements in int, and sums half in half; our own kernels sum it in float. */
static bool fits(const gpu_gemm *g, const gpu_device *d)
{
  if (g->dtype != TN_FLOAT && (g->dtype != TN_DOUBLE || !d->has_double)) return false;
  return g->m > 0 && g->n > 0 && g->k > 0 && g->batch > 0 && span_a(g) <= INT32_MAX && span_b(g) <= INT32_MAX &&
         span_out(g) <= INT32_MAX;
}

bool gpu_clblast_takes(const gpu_device *device, int blas, const gpu_gemm *g, gpu_clblast_product *out)
{
  const double worth = (double)g->m * (double)g->n * (double)g->k;
  int code;
  *out = (product){ .g = *g };
  if (!fits(g, device) || (blas == GPU_BLAS_AUTO && (g->m < AUTO_ROWS || worth < AUTO_WORTH))) return false;
  if (gpu_clblast_for(device, blas) == NULL) return false;
  out->temp = temp_bytes(g, gpu_pool_queue(device->pool), &code);
  int way = g->batch > 1 ? BATCHED : DIRECT;
  if (out->temp > 0) way = INDIRECT;
  return code == CLBlastSuccess && works(device, g, way);
}

#else /* built without its header */

const char *gpu_clblast_for(const gpu_device *device, int blas)
{
  static _Atomic bool said;
  (void)device;
  if (blas == GPU_BLAS_CLBLAST && !said) {
    said = true;
    tn_log(TN_LOG_WARNING, "gpu: products are computed by own kernels: this plugin was built without CLBlast");
  }
  return NULL;
}

bool gpu_clblast_takes(const gpu_device *device, int blas, const gpu_gemm *g, gpu_clblast_product *out)
{
  *out = (gpu_clblast_product){ .g = *g };
  return gpu_clblast_for(device, blas) != NULL;
}

tn_status gpu_clblast_enqueue(const gpu_device *device, cl_command_queue queue, const void *product,
                              const gpu_memory *memory, cl_event *event, tn_error *err)
{
  (void)device, (void)queue, (void)product, (void)memory, (void)event;
  return tn_error_set(err, TN_INTERNAL, "this plugin was built without CLBlast");
}

void gpu_clblast_destroy(gpu_clblast *clblast)
{
  if (clblast == NULL) return;
  pthread_mutex_destroy(&clblast->trying);
  tn_free(clblast);
}
#endif

tn_status gpu_clblast_create(gpu_clblast **out, tn_error *err)
{
  *out = tn_alloc(sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for what is known of CLBlast");
  **out = (gpu_clblast){ 0 };
  pthread_mutex_init(&(*out)->trying, NULL);
  return TN_OK;
}
