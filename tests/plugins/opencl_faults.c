/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL that fails on demand: a library that replaces the ICD loader, passes every call on to the real one, counts
 * live objects, and fails selected calls. A test finds the functions at the end of this file with dlsym; before it can
 * call them, the environment controls the library:
 *
 *   TENON_TEST_OPENCL        path of the real loader
 *   TENON_TEST_OPENCL_FAIL   "clGetDeviceInfo:3:-5": the third call of it returns -5; "3+": all from the third on
 *   TENON_TEST_OPENCL_TYPES  "cpu,gpu": the types that the devices claim; a claimed gpu also claims memory of its own,
 *                            so that everything is copied to it and from it
 *   TENON_TEST_OPENCL_MOST   the largest allocation in bytes that a device claims to support */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* C(name, parameters, arguments, KIND, ±n): returns a code. N(type, name, parameters, arguments,
 * kind): returns an object and writes a code. A successful call changes the number of live
 * objects of that kind. */
enum { NOTHING, CONTEXTS, QUEUES, BUFFERS, PROGRAMS, KERNELS, EVENTS, MAPS, N_KINDS };

#define WAITS cl_uint n_waits, const cl_event *waits, cl_event *event
#define WAIT_ARGS n_waits, waits, event

#define CODES(C)                                                                                                       \
  C(GetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *found), (n, ids, found), NOTHING, 0)                     \
  C(GetPlatformInfo, (cl_platform_id p, cl_platform_info what, size_t n, void *to, size_t *size),                      \
    (p, what, n, to, size), NOTHING, 0)                                                                                \
  C(GetDeviceIDs, (cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *found),               \
    (p, type, n, ids, found), NOTHING, 0)                                                                              \
  C(ReleaseContext, (cl_context c), (c), CONTEXTS, -1)                                                                 \
  C(ReleaseCommandQueue, (cl_command_queue q), (q), QUEUES, -1)                                                        \
  C(ReleaseMemObject, (cl_mem m), (m), BUFFERS, -1)                                                                    \
  C(BuildProgram,                                                                                                      \
    (cl_program p, cl_uint n, const cl_device_id *ids, const char *options,                                            \
     void(CL_CALLBACK * notify)(cl_program, void *), void *user),                                                      \
    (p, n, ids, options, notify, user), NOTHING, 0)                                                                    \
  C(GetProgramInfo, (cl_program p, cl_program_info what, size_t n, void *to, size_t *size), (p, what, n, to, size),    \
    NOTHING, 0)                                                                                                        \
  C(GetProgramBuildInfo, (cl_program p, cl_device_id d, cl_program_build_info what, size_t n, void *to, size_t *size), \
    (p, d, what, n, to, size), NOTHING, 0)                                                                             \
  C(ReleaseProgram, (cl_program p), (p), PROGRAMS, -1)                                                                 \
  C(ReleaseKernel, (cl_kernel k), (k), KERNELS, -1)                                                                    \
  C(SetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void *value), (k, i, n, value), NOTHING, 0)                 \
  C(GetKernelWorkGroupInfo,                                                                                            \
    (cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t n, void *to, size_t *size),                   \
    (k, d, what, n, to, size), NOTHING, 0)                                                                             \
  C(EnqueueNDRangeKernel,                                                                                              \
    (cl_command_queue q, cl_kernel k, cl_uint n, const size_t *offset, const size_t *global, const size_t *local,      \
     WAITS),                                                                                                           \
    (q, k, n, offset, global, local, WAIT_ARGS), EVENTS, event != NULL ? 1 : 0)                                        \
  C(EnqueueReadBuffer, (cl_command_queue q, cl_mem m, cl_bool block, size_t at, size_t n, void *to, WAITS),            \
    (q, m, block, at, n, to, WAIT_ARGS), EVENTS, event != NULL ? 1 : 0)                                                \
  C(EnqueueWriteBuffer, (cl_command_queue q, cl_mem m, cl_bool block, size_t at, size_t n, const void *from, WAITS),   \
    (q, m, block, at, n, from, WAIT_ARGS), EVENTS, event != NULL ? 1 : 0)                                              \
  C(EnqueueCopyBuffer, (cl_command_queue q, cl_mem from, cl_mem to, size_t at, size_t to_at, size_t n, WAITS),         \
    (q, from, to, at, to_at, n, WAIT_ARGS), EVENTS, event != NULL ? 1 : 0)                                             \
  C(EnqueueFillBuffer, (cl_command_queue q, cl_mem m, const void *pattern, size_t size, size_t at, size_t n, WAITS),   \
    (q, m, pattern, size, at, n, WAIT_ARGS), EVENTS, event != NULL ? 1 : 0)                                            \
  C(EnqueueUnmapMemObject, (cl_command_queue q, cl_mem m, void *mapped, WAITS), (q, m, mapped, WAIT_ARGS), EVENTS,     \
    event != NULL ? 1 : 0)                                                                                             \
  C(EnqueueMarkerWithWaitList, (cl_command_queue q, WAITS), (q, WAIT_ARGS), EVENTS, event != NULL ? 1 : 0)             \
  C(WaitForEvents, (cl_uint n, const cl_event *events), (n, events), NOTHING, -1)                                      \
  C(ReleaseEvent, (cl_event e), (e), EVENTS, -1)                                                                       \
  C(RetainEvent, (cl_event e), (e), EVENTS, 1)                                                                         \
  C(GetEventInfo, (cl_event e, cl_event_info what, size_t n, void *to, size_t *size), (e, what, n, to, size), NOTHING, \
    0)                                                                                                                 \
  C(GetEventProfilingInfo, (cl_event e, cl_profiling_info what, size_t n, void *to, size_t *size),                     \
    (e, what, n, to, size), NOTHING, 0)                                                                                \
  C(Flush, (cl_command_queue q), (q), NOTHING, 0)                                                                      \
  C(Finish, (cl_command_queue q), (q), NOTHING, -1)                                                                    \
  C(UnloadPlatformCompiler, (cl_platform_id p), (p), NOTHING, 0)

#define OBJECTS(N)                                                                                                     \
  N(cl_context, CreateContext,                                                                                         \
    (const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,                                      \
     void(CL_CALLBACK * notify)(const char *, const void *, size_t, void *), void *user, cl_int *code),                \
    (properties, n, ids, notify, user, code), CONTEXTS)                                                                \
  N(cl_command_queue, CreateCommandQueue,                                                                              \
    (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *code), (c, d, p, code), QUEUES)              \
  N(cl_mem, CreateBuffer, (cl_context c, cl_mem_flags flags, size_t n, void *host, cl_int *code),                      \
    (c, flags, n, host, code), BUFFERS)                                                                                \
  N(cl_mem, CreateSubBuffer,                                                                                           \
    (cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *region, cl_int *code),                      \
    (m, flags, type, region, code), BUFFERS)                                                                           \
  N(cl_program, CreateProgramWithSource,                                                                               \
    (cl_context c, cl_uint n, const char **texts, const size_t *sizes, cl_int *code), (c, n, texts, sizes, code),      \
    PROGRAMS)                                                                                                          \
  N(cl_program, CreateProgramWithBinary,                                                                               \
    (cl_context c, cl_uint n, const cl_device_id *ids, const size_t *sizes, const unsigned char **bytes, cl_int *each, \
     cl_int *code),                                                                                                    \
    (c, n, ids, sizes, bytes, each, code), PROGRAMS)                                                                   \
  N(cl_kernel, CreateKernel, (cl_program p, const char *name, cl_int *code), (p, name, code), KERNELS)                 \
  N(void *, EnqueueMapBuffer,                                                                                          \
    (cl_command_queue q, cl_mem m, cl_bool block, cl_map_flags flags, size_t at, size_t n, WAITS, cl_int *code),       \
    (q, m, block, flags, at, n, WAIT_ARGS, code), MAPS)

/* ---- state ---- */

enum {
#define INDEX(name, ...) I_##name,
#define INDEX_OF(type, name, ...) I_##name,
  CODES(INDEX) OBJECTS(INDEX_OF) I_GetDeviceInfo, N_FUNCTIONS
};

static const char *const names[] = {
#define NAME(name, ...) "cl" #name,
#define NAME_OF(type, name, ...) "cl" #name,
  CODES(NAME) OBJECTS(NAME_OF) "clGetDeviceInfo"
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *real;
static long calls[N_FUNCTIONS], alive[N_KINDS]; /* guarded by mu, like the following */
static struct {
  int function; /* -1: none */
  long nth, seen;
  int for_good, met;
  cl_int code;
} fault = { .function = -1 };

static int find(const char *name, size_t size)
{
  for (int i = 0; i < N_FUNCTIONS; i++)
    if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return i;
  return -1;
}

static void read_fault(const char *text)
{
  const char *colon = text != NULL ? strchr(text, ':') : NULL;
  if (colon == NULL) return;
  char *end;
  fault.function = find(text, (size_t)(colon - text));
  fault.nth = strtol(colon + 1, &end, 10);
  fault.for_good = *end == '+';
  if (*end == '+') end++;
  fault.code = *end == ':' ? (cl_int)strtol(end + 1, NULL, 10) : CL_OUT_OF_RESOURCES;
}

static void begin(void)
{
  const char *path = getenv("TENON_TEST_OPENCL");
  real = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (real == NULL) fprintf(stderr, "opencl_faults: %s\n", path != NULL ? dlerror() : "TENON_TEST_OPENCL is not set");
  read_fault(getenv("TENON_TEST_OPENCL_FAIL"));
}

/* Returns the real function, or NULL with the code if this call must fail. */
static void *enter(int function, cl_int *code)
{
  pthread_once(&once, begin);
  pthread_mutex_lock(&mu);
  calls[function]++;
  int fails = 0;
  if (fault.function == function) {
    fault.seen++;
    fails = fault.for_good ? fault.seen >= fault.nth : fault.seen == fault.nth;
    if (fails) fault.met = 1;
  }
  *code = real == NULL ? -1001 : CL_SUCCESS;
  if (fails) *code = fault.code;
  pthread_mutex_unlock(&mu);
  return *code == CL_SUCCESS ? dlsym(real, names[function]) : NULL;
}

static void count(int kind, int n)
{
  pthread_mutex_lock(&mu);
  alive[kind] += n;
  pthread_mutex_unlock(&mu);
}

/* ---- the functions ---- */

/* A function that releases or waits does so even if it must fail: a driver that fails there
 * keeps nothing, and nothing runs on, either. */
#define CODE_FUNCTION(name, parameters, arguments, kind, change)                   \
  EXPORT cl_int CL_API_CALL cl##name parameters                                    \
  {                                                                                \
    cl_int code;                                                                   \
    cl_int(CL_API_CALL * go) parameters = NULL;                                    \
    *(void **)&go = enter(I_##name, &code);                                        \
    if (go == NULL && (change) >= 0) return code;                                  \
    cl_int failed = code;                                                          \
    if (go == NULL && real != NULL) *(void **)&go = dlsym(real, "cl" #name);       \
    if (go == NULL) return code;                                                   \
    code = go arguments;                                                           \
    if (code == CL_SUCCESS && (change) != 0) count(kind, change);                  \
    return failed != CL_SUCCESS ? failed : code;                                   \
  }
CODES(CODE_FUNCTION)

#define OBJECT_FUNCTION(type, name, parameters, arguments, kind)                   \
  EXPORT type CL_API_CALL cl##name parameters                                      \
  {                                                                                \
    cl_int failed;                                                                 \
    type(CL_API_CALL * go) parameters = NULL;                                      \
    *(void **)&go = enter(I_##name, &failed);                                      \
    if (go == NULL) {                                                              \
      if (code != NULL) *code = failed;                                            \
      return NULL;                                                                 \
    }                                                                              \
    type made = go arguments;                                                      \
    if (made != NULL) count(kind, 1);                                              \
    return made;                                                                   \
  }
OBJECTS(OBJECT_FUNCTION)

/* The type that the environment assigns to the device; devices are numbered in the order of
 * their first query. */
static cl_device_type told_type(cl_device_id device, cl_device_type type)
{
  static cl_device_id seen[16];
  static const struct {
    const char *name;
    cl_device_type type;
  } types[] = { { "gpu", CL_DEVICE_TYPE_GPU },
                { "cpu", CL_DEVICE_TYPE_CPU },
                { "accelerator", CL_DEVICE_TYPE_ACCELERATOR } };
  const char *text = getenv("TENON_TEST_OPENCL_TYPES");
  int i = 0;
  pthread_mutex_lock(&mu);
  while (i < 15 && seen[i] != NULL && seen[i] != device) i++;
  seen[i] = device;
  pthread_mutex_unlock(&mu);
  for (; text != NULL && i > 0; i--) text = strchr(text, ',') != NULL ? strchr(text, ',') + 1 : NULL;
  for (size_t k = 0; text != NULL && k < sizeof types / sizeof *types; k++)
    if (strncmp(text, types[k].name, strlen(types[k].name)) == 0) return types[k].type;
  return type;
}

EXPORT cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t n, void *to, size_t *size)
{
  cl_int code;
  cl_int(CL_API_CALL * go)(cl_device_id, cl_device_info, size_t, void *, size_t *) = NULL;
  *(void **)&go = enter(I_GetDeviceInfo, &code);
  if (go == NULL) return code;
  code = go(device, what, n, to, size);
  if (code != CL_SUCCESS || to == NULL) return code;
  if (what == CL_DEVICE_TYPE) *(cl_device_type *)to = told_type(device, *(cl_device_type *)to);
  if (what == CL_DEVICE_HOST_UNIFIED_MEMORY && told_type(device, 0) == CL_DEVICE_TYPE_GPU) *(cl_bool *)to = CL_FALSE;
  const char *most = what == CL_DEVICE_MAX_MEM_ALLOC_SIZE ? getenv("TENON_TEST_OPENCL_MOST") : NULL;
  if (most != NULL) *(cl_ulong *)to = strtoull(most, NULL, 10);
  return code;
}

/* ---- for tests ---- */

EXPORT void opencl_faults_set(const char *function, long nth, int for_good, int code);
EXPORT int opencl_faults_met(void);
EXPORT const char *opencl_faults_function(int i);
EXPORT long opencl_faults_calls(int i);
EXPORT void opencl_faults_alive(char *text, size_t size);

/* From now on, the nth call of the function returns the code; with for_good all calls after it,
 * too. NULL ends this. */
void opencl_faults_set(const char *function, long nth, int for_good, int code)
{
  pthread_once(&once, begin);
  pthread_mutex_lock(&mu);
  fault.function = function != NULL ? find(function, strlen(function)) : -1;
  fault.nth = nth;
  fault.seen = 0;
  fault.met = 0;
  fault.for_good = for_good;
  fault.code = code;
  pthread_mutex_unlock(&mu);
}

/* Whether the failing call was made. */
int opencl_faults_met(void)
{
  pthread_mutex_lock(&mu);
  int met = fault.met;
  pthread_mutex_unlock(&mu);
  return met;
}

/* Function i, or NULL past the end; the number of its calls. */
const char *opencl_faults_function(int i) { return i >= 0 && i < N_FUNCTIONS ? names[i] : NULL; }
long opencl_faults_calls(int i)
{
  pthread_mutex_lock(&mu);
  long n = calls[i];
  pthread_mutex_unlock(&mu);
  return n;
}

/* "contexts 1, queues 0, ..." */
void opencl_faults_alive(char *text, size_t size)
{
  pthread_mutex_lock(&mu);
  snprintf(text, size, "contexts %ld, queues %ld, buffers %ld, programs %ld, kernels %ld, events %ld", alive[CONTEXTS],
           alive[QUEUES], alive[BUFFERS], alive[PROGRAMS], alive[KERNELS], alive[EVENTS]);
  pthread_mutex_unlock(&mu);
}
