/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the machine's devices, and having their contexts by users. */
#include "device/device.h"

#include "device/clblast.h"
#include "device/memory.h"
#include "device/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Heads, one for each device of the hardware; more of the same hang at `next` when the head was lost with users. */
static gpu_device **heads;
static size_t n_heads;
static pid_t found_in;
static pthread_mutex_t list_mu = PTHREAD_MUTEX_INITIALIZER; /* guards the `next` chains */

/* ---- asking ---- */

static char *query_text(cl_platform_id platform, cl_device_id device, cl_uint what)
{
  size_t size = 0;
  cl_int code = device != NULL ? cl.GetDeviceInfo(device, what, 0, NULL, &size)
                               : cl.GetPlatformInfo(platform, what, 0, NULL, &size);
  if (code != CL_SUCCESS || size > (1u << 24)) return NULL;
  char *text = tn_alloc(size + 1);
  if (text == NULL) return NULL;
  memset(text, 0, size + 1);
  code = device != NULL ? cl.GetDeviceInfo(device, what, size, text, NULL)
                        : cl.GetPlatformInfo(platform, what, size, text, NULL);
  if (code == CL_SUCCESS) return text;
  tn_free(text);
  return NULL;
}

/* One number of a device; a query that fails leaves *ok false. */
static void query(cl_device_id id, cl_uint what, void *out, size_t size, bool *ok)
{
  if (cl.GetDeviceInfo(id, what, size, out, NULL) != CL_SUCCESS) *ok = false;
}

static bool has_word(const char *text, const char *word)
{
  size_t n = strlen(word);
  for (const char *p = strstr(text, word); p != NULL; p = strstr(p + n, word))
    if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0')) return true;
  return false;
}

static void read_extensions(gpu_device *d)
{
  cl_device_fp_config config = 0;
  char *text = query_text(NULL, d->id, CL_DEVICE_EXTENSIONS);
  if (text == NULL) return;
  d->has_half = has_word(text, "cl_khr_fp16");
  d->has_double = has_word(text, "cl_khr_fp64") &&
                  cl.GetDeviceInfo(d->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof config, &config, NULL) == CL_SUCCESS &&
                  config != 0;
  tn_free(text);
}

/* Why this runtime has no use for a device, or NULL. */
static const char *fault_of(const gpu_device *d, cl_bool available, cl_bool little, const char *version)
{
  if (!available) return "it is not available";
  if (!d->has_compiler) return "it has no compiler";
  if (!little) return "it is big-endian";
  bool old = strncmp(version, "OpenCL 1.0", 10) == 0 || strncmp(version, "OpenCL 1.1", 10) == 0;
  if (old) return "it is older than OpenCL 1.2";
  return NULL;
}

static const char *read_numbers(gpu_device *d, const char *version)
{
  cl_bool available = CL_FALSE, little = CL_FALSE, compiler = CL_FALSE, unified = CL_FALSE;
  cl_uint align_bits = 0;
  bool ok = true;
  query(d->id, CL_DEVICE_TYPE, &d->type, sizeof d->type, &ok);
  query(d->id, CL_DEVICE_AVAILABLE, &available, sizeof available, &ok);
  query(d->id, CL_DEVICE_ENDIAN_LITTLE, &little, sizeof little, &ok);
  query(d->id, CL_DEVICE_COMPILER_AVAILABLE, &compiler, sizeof compiler, &ok);
  query(d->id, CL_DEVICE_HOST_UNIFIED_MEMORY, &unified, sizeof unified, &ok);
  query(d->id, CL_DEVICE_GLOBAL_MEM_SIZE, &d->memory_bytes, sizeof d->memory_bytes, &ok);
  query(d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &d->max_alloc_bytes, sizeof d->max_alloc_bytes, &ok);
  query(d->id, CL_DEVICE_LOCAL_MEM_SIZE, &d->local_bytes, sizeof d->local_bytes, &ok);
  query(d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, &d->max_group, sizeof d->max_group, &ok);
  query(d->id, CL_DEVICE_MAX_COMPUTE_UNITS, &d->compute_units, sizeof d->compute_units, &ok);
  query(d->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align_bits, sizeof align_bits, &ok);
  if (!ok) return "its driver does not answer clGetDeviceInfo";
  d->align_bytes = align_bits < 64 ? 8 : align_bits / 8;
  d->has_compiler = compiler;
  d->host_visible = unified || (d->type & CL_DEVICE_TYPE_CPU) != 0;
  return fault_of(d, available, little, version);
}

static void texts_free(gpu_device *d)
{
  tn_free(d->name);
  tn_free(d->vendor);
  tn_free(d->driver);
  tn_free(d->platform_name);
}

static void free_chain(gpu_device *d)
{
  texts_free(d); /* of the head; the others borrow them */
  while (d != NULL) {
    gpu_device *next = d->next;
    pthread_mutex_destroy(&d->mu);
    tn_free(d);
    d = next;
  }
}

/* NULL with why: not for us; a text that says so. */
static gpu_device *open_device(cl_platform_id platform, cl_device_id id, const char **why)
{
  gpu_device *d = tn_alloc(sizeof *d);
  *why = "no memory for it";
  if (d == NULL) return NULL;
  *d = (gpu_device){ .platform = platform, .id = id };
  pthread_mutex_init(&d->mu, NULL);
  d->name = query_text(NULL, id, CL_DEVICE_NAME);
  d->vendor = query_text(NULL, id, CL_DEVICE_VENDOR);
  d->driver = query_text(NULL, id, CL_DRIVER_VERSION);
  d->platform_name = query_text(platform, NULL, CL_PLATFORM_NAME);
  char *version = query_text(NULL, id, CL_DEVICE_VERSION);
  bool named = d->name != NULL && d->vendor != NULL && d->driver != NULL && d->platform_name != NULL && version != NULL;
  *why = named ? read_numbers(d, version) : "its driver does not say its name";
  tn_free(version);
  if (*why == NULL) {
    read_extensions(d);
    return d;
  }
  tn_log(TN_LOG_WARNING, "gpu: device '%s' is left out: %s", d->name != NULL ? d->name : "", *why);
  free_chain(d);
  return NULL;
}

/* ---- finding ---- */

/* Why no device is usable; only the first reason is kept. */
typedef struct search {
  gpu_device **at;
  size_t n, room;
  char why[256];
} search;

static void note(search *s, const char *what, const char *why)
{
  if (s->why[0] == '\0') snprintf(s->why, sizeof s->why, "%s: %s", what, why);
}

static bool enter(search *s, gpu_device *d)
{
  if (s->n == s->room) {
    size_t room = s->room * 2 + 4;
    gpu_device **at = tn_alloc(room * sizeof *at);
    if (at == NULL) return false;
    if (s->n > 0) memcpy(at, s->at, s->n * sizeof *at);
    tn_free(s->at);
    s->at = at;
    s->room = room;
  }
  s->at[s->n++] = d;
  return true;
}

static void platform_fault(search *s, cl_platform_id platform, cl_int code)
{
  char *name = query_text(platform, NULL, CL_PLATFORM_NAME);
  char what[160];
  snprintf(what, sizeof what, "clGetDeviceIDs of platform '%.100s'", name != NULL ? name : "");
  note(s, what, gpu_cl_name(code));
  tn_log(code == CL_DEVICE_NOT_FOUND ? TN_LOG_INFO : TN_LOG_WARNING, "gpu: %s: %s (%d): it is left out", what,
         gpu_cl_name(code), (int)code);
  tn_free(name);
}

static tn_status search_platform(search *s, cl_platform_id platform, tn_error *err)
{
  cl_uint n = 0;
  cl_int code = cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n);
  if (code == CL_SUCCESS && n == 0) code = CL_DEVICE_NOT_FOUND;
  cl_device_id *ids = code == CL_SUCCESS ? tn_alloc(n * sizeof *ids) : NULL;
  if (code == CL_SUCCESS && ids == NULL)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for %u OpenCL devices", n);
  if (code == CL_SUCCESS) code = cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids, NULL);
  if (code != CL_SUCCESS) platform_fault(s, platform, code);
  tn_status st = TN_OK;
  for (cl_uint i = 0; i < n && code == CL_SUCCESS && st == TN_OK; i++) {
    const char *why;
    gpu_device *d = open_device(platform, ids[i], &why);
    if (d == NULL) note(s, "a device was left out", why);
    if (d == NULL || enter(s, d)) continue;
    free_chain(d);
    st = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for %u OpenCL devices", n);
  }
  tn_free(ids);
  return st;
}

static tn_status search_all(search *s, tn_error *err)
{
  cl_uint n = 0;
  cl_int code = cl.GetPlatformIDs(0, NULL, &n);
  cl_platform_id *ids = code == CL_SUCCESS && n > 0 ? tn_alloc(n * sizeof *ids) : NULL;
  if (ids != NULL) code = cl.GetPlatformIDs(n, ids, NULL);
  if (code != CL_SUCCESS) note(s, "clGetPlatformIDs", gpu_cl_name(code));
  else if (n == 0) note(s, "clGetPlatformIDs", "there is no platform");
  else if (ids == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for %u OpenCL platforms", n);
  tn_status st = TN_OK;
  for (cl_uint i = 0; i < n && code == CL_SUCCESS && st == TN_OK; i++) st = search_platform(s, ids[i], err);
  tn_free(ids);
  return st;
}

static int order_of(const gpu_device *d)
{
  if (d->type & CL_DEVICE_TYPE_GPU) return 0;
  return d->type & CL_DEVICE_TYPE_ACCELERATOR ? 1 : 2;
}

/* GPUs first, so that the first device is the one that is usually wanted; otherwise in the drivers' order. */
static void sort(search *s)
{
  for (size_t i = 1; i < s->n; i++) {
    gpu_device *d = s->at[i];
    size_t k = i;
    for (; k > 0 && order_of(s->at[k - 1]) > order_of(d); k--) s->at[k] = s->at[k - 1];
    s->at[k] = d;
  }
}

tn_status gpu_devices_find(tn_error *err)
{
  search s = { 0 };
  found_in = getpid();
  tn_status st = search_all(&s, err);
  if (st == TN_OK && s.n == 0)
    st = tn_error_set(err, TN_UNAVAILABLE, "there is no OpenCL device (%s); without a graphics processor Debian's "
                      "pocl-opencl-icd makes one of the CPU", s.why);
  if (st == TN_OK) {
    sort(&s);
    heads = s.at;
    n_heads = s.n;
    return TN_OK;
  }
  for (size_t i = 0; i < s.n; i++) free_chain(s.at[i]);
  tn_free(s.at);
  return st;
}

size_t gpu_devices_count(void) { return n_heads; }

const char *gpu_device_kind(const gpu_device *d)
{
  static const char *const kinds[] = { "gpu", "accelerator", "cpu" };
  return kinds[order_of(d)];
}

void gpu_devices_text(char *text, size_t size)
{
  size_t at = 0;
  text[0] = '\0';
  for (size_t i = 0; i < n_heads && at < size; i++) {
    const gpu_device *d = heads[i];
    int n = snprintf(text + at, size - at, "%s%zu = '%.80s' (%s, %.60s)", i > 0 ? ", " : "", i, d->name,
                     gpu_device_kind(d), d->platform_name);
    at += n > 0 ? (size_t)n : 0;
  }
}

tn_status gpu_devices_forked(tn_error *err)
{
  if (found_in == 0 || found_in == getpid()) return TN_OK;
  return tn_error_set(
      err, TN_FAILED_PRECONDITION,
      "OpenCL was initialised before this process was forked, and cannot be used in it; exec a new program");
}

/* ---- contexts ---- */

static gpu_device *another(const gpu_device *lost)
{
  gpu_device *d = tn_alloc(sizeof *d);
  if (d == NULL) return NULL;
  *d = (gpu_device){ 0 };
  memcpy(d, lost, offsetof(gpu_device, mu)); /* what never changes; the texts are the head's */
  pthread_mutex_init(&d->mu, NULL);
  return d;
}

gpu_device *gpu_devices_at(size_t i)
{
  gpu_device *d = heads[i];
  pthread_mutex_lock(&list_mu);
  while (d->lost && d->next != NULL) d = d->next;
  if (d->lost && (d->next = another(d)) != NULL) d = d->next;
  pthread_mutex_unlock(&list_mu);
  return d;
}

static void close_context(gpu_device *d)
{
  gpu_clblast_destroy(d->clblast);
  gpu_programs_destroy(d->programs);
  gpu_pool_destroy(d->pool);
  if (d->context != NULL) cl.ReleaseContext(d->context);
  d->clblast = NULL;
  d->programs = NULL;
  d->pool = NULL;
  d->context = NULL;
}

static tn_status open_context(gpu_device *d, tn_error *err)
{
  const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)d->platform, 0 };
  cl_int code;
  d->context = cl.CreateContext(properties, 1, &d->id, NULL, NULL, &code);
  if (d->context == NULL) return gpu_cl_error(err, code, "clCreateContext", d->name);
  tn_status st = gpu_pool_create(d, &d->pool, err);
  if (st == TN_OK) st = gpu_programs_create(d, &d->programs, err);
  if (st == TN_OK) st = gpu_clblast_create(&d->clblast, err);
  if (st != TN_OK) close_context(d);
  return st;
}

tn_status gpu_device_use(gpu_device *d, tn_error *err)
{
  tn_status st = gpu_devices_forked(err);
  if (st != TN_OK) return st;
  pthread_mutex_lock(&d->mu);
  if (d->lost)
    st = tn_error_set(err, TN_UNAVAILABLE, "device '%.100s' was lost; a new session may use it again", d->name);
  else if (d->n_users == 0) st = open_context(d, err);
  if (st == TN_OK) d->n_users++;
  pthread_mutex_unlock(&d->mu);
  return st;
}

void gpu_device_leave(gpu_device *d)
{
  if (gpu_devices_forked(NULL) != TN_OK) return; /* releasing would wait for threads that are not here */
  pthread_mutex_lock(&d->mu);
  if (--d->n_users == 0) {
    close_context(d);
    d->lost = false; /* the next user makes a new context */
  }
  pthread_mutex_unlock(&d->mu);
}

void gpu_device_lost(gpu_device *d)
{
  if (!d->lost)
    tn_log(TN_LOG_WARNING, "gpu: device '%s' is lost; the sessions that use it are of no use any more", d->name);
  d->lost = true;
}

tn_status gpu_devices_forget(tn_error *err)
{
  size_t users = 0;
  for (size_t i = 0; i < n_heads; i++)
    for (gpu_device *d = heads[i]; d != NULL; d = d->next) {
      pthread_mutex_lock(&d->mu);
      users += d->n_users;
      pthread_mutex_unlock(&d->mu);
    }
  if (users > 0)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "%zu sessions and tensors still use OpenCL devices", users);
  for (size_t i = 0; i < n_heads; i++) free_chain(heads[i]);
  tn_free(heads);
  heads = NULL;
  n_heads = 0;
  return TN_OK;
}
