/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of a context: the first thread that needs one makes it, once; several may be made at a time. */
#define _GNU_SOURCE
#include "device/program.h"

#include "device/embedded.h"
#include "device/program_parts.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MOST_THREADS 16
#define N_CHAINS 64

enum { FAILED, MAKING, READY };
typedef struct program {
  struct program *next;
  uint64_t hash;
  int state; /* guarded by mu of gpu_programs; the thread that sets MAKING makes it */
  cl_program program;
  tn_error error; /* FAILED: why */
  char *label;
  const char *options, *text; /* after the struct */
} program;

struct gpu_programs {
  gpu_device *device;
  char *versions;
  const char *prelude;
  pthread_mutex_t mu;
  pthread_cond_t made; /* one is FAILED or READY */
  program *chains[N_CHAINS]; /* guarded by mu */
  size_t n_compiled, n_read; /* guarded by mu */
};

const char *gpu_source_find(const char *name, size_t *size)
{
  for (const gpu_embedded *e = gpu_embedded_files; e->name != NULL; e++) {
    if (strcmp(e->name, name) != 0) continue;
    if (size != NULL) *size = e->size;
    return e->text;
  }
  return NULL;
}

/* ---- the table ---- */

static char *platform_text(const gpu_device *d)
{
  char platform[256] = "", device[256] = "";
  (void)cl.GetPlatformInfo(d->platform, CL_PLATFORM_VERSION, sizeof platform - 1, platform, NULL);
  (void)cl.GetDeviceInfo(d->id, CL_DEVICE_VERSION, sizeof device - 1, device, NULL);
  size_t size = strlen(platform) + strlen(device) + 2;
  char *text = tn_alloc(size);
  if (text != NULL) snprintf(text, size, "%s\n%s", platform, device);
  return text;
}

tn_status gpu_programs_create(gpu_device *device, gpu_programs **out, tn_error *err)
{
  *out = NULL;
  gpu_programs *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for programs");
  *p = (gpu_programs){ .device = device,
                       .versions = platform_text(device),
                       .prelude = gpu_source_find("prelude", NULL) };
  if (p->versions == NULL) {
    tn_free(p);
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for programs");
  }
  pthread_mutex_init(&p->mu, NULL);
  pthread_cond_init(&p->made, NULL);
  *out = p;
  return TN_OK;
}

static void free_program(program *p)
{
  if (p->program != NULL) cl.ReleaseProgram(p->program);
  tn_error_clear(&p->error);
  tn_free(p->label);
  tn_free(p);
}

void gpu_programs_destroy(gpu_programs *programs)
{
  if (programs == NULL) return;
  if (programs->n_compiled + programs->n_read > 0)
    tn_log(TN_LOG_INFO, "gpu: programs of '%s': %zu compiled, %zu read from disk", programs->device->name,
           programs->n_compiled, programs->n_read);
  for (size_t i = 0; i < N_CHAINS; i++)
    for (program *p = programs->chains[i], *next; p != NULL; p = next) {
      next = p->next;
      free_program(p);
    }
  pthread_cond_destroy(&programs->made);
  pthread_mutex_destroy(&programs->mu);
  tn_free(programs->versions);
  tn_free(programs);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
  for (; *text != 0; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static program *add(gpu_programs *programs, uint64_t hash, const gpu_program_request *r, const char *options)
{
  size_t n_options = strlen(options) + 1, n_text = strlen(r->text) + 1, n_label = strlen(r->label) + 1;
  program *p = tn_alloc(sizeof *p + n_options + n_text);
  char *label = tn_alloc(n_label);
  if (p == NULL || label == NULL) {
    tn_free(p);
    tn_free(label);
    return NULL;
  }
  char *behind = (char *)(p + 1);
  *p = (program){ .hash = hash, .label = label, .error = TN_ERROR_INIT, .options = behind, .text = behind + n_options };
  memcpy(behind, options, n_options);
  memcpy(behind + n_options, r->text, n_text);
  memcpy(label, r->label, n_label);
  p->next = programs->chains[hash % N_CHAINS];
  programs->chains[hash % N_CHAINS] = p;
  return p;
}

/* The program of a request, a new one FAILED: not made yet. NULL without memory. */
static program *find(gpu_programs *programs, const gpu_program_request *r)
{
  const char *options = r->options != NULL ? r->options : "";
  uint64_t hash = hash_text(hash_text(UINT64_C(0xcbf29ce484222325), options), r->text);
  for (program *p = programs->chains[hash % N_CHAINS]; p != NULL; p = p->next)
    if (p->hash == hash && strcmp(p->options, options) == 0 && strcmp(p->text, r->text) == 0) return p;
  return add(programs, hash, r, options);
}

/* ---- making ---- */

/* The programs that one call makes; its threads take one after another. */
typedef struct work {
  gpu_programs *programs;
  program **list;
  size_t n;
  atomic_size_t next, made;
} work;

/* The tenon command shows it as progress (tools/common/progress.c). */
static void tell(work *w, const program *p, bool compiled, const struct timespec *from)
{
  struct timespec to;
  size_t made = atomic_fetch_add(&w->made, 1) + 1;
  clock_gettime(CLOCK_MONOTONIC, &to);
  long ms = (to.tv_sec - from->tv_sec) * 1000 + (to.tv_nsec - from->tv_nsec) / 1000000;
  tn_log(compiled ? TN_LOG_INFO : TN_LOG_DEBUG, "gpu: program %zu of %zu, '%s' (%s), %s in %ld ms", made, w->n,
         p->label, p->options, compiled ? "compiled" : "read", ms);
}

static void make_one(work *w, size_t i)
{
  gpu_programs *programs = w->programs;
  program *p = w->list[i];
  const gpu_source source = { .device = programs->device, .versions = programs->versions, .prelude = programs->prelude,
                              .text = p->text, .options = p->options, .label = p->label };
  struct timespec from;
  cl_program made = NULL;
  bool compiled = false;
  clock_gettime(CLOCK_MONOTONIC, &from);
  tn_error e = TN_ERROR_INIT;
  tn_status st = gpu_program_build(&source, &made, &compiled, &e);
  if (st == TN_OK) tell(w, p, compiled, &from);
  pthread_mutex_lock(&programs->mu);
  p->program = made;
  p->state = st == TN_OK ? READY : FAILED;
  if (st == TN_OK) ++*(compiled ? &programs->n_compiled : &programs->n_read);
  else tn_error_copy(&p->error, &e);
  pthread_cond_broadcast(&programs->made);
  pthread_mutex_unlock(&programs->mu);
  tn_error_clear(&e);
}

static void *make_some(void *user)
{
  work *w = user;
  for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) make_one(w, i);
  return NULL;
}

static size_t usable_cpus(void)
{
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

/* The caller helps, and is alone when no thread can be had. */
static void make_all(gpu_programs *programs, program **list, size_t n)
{
  work w = { .programs = programs, .list = list, .n = n };
  pthread_t threads[MOST_THREADS];
  size_t most = n > 1 ? usable_cpus() : 1, started = 0;
  if (most > n) most = n;
  if (most > MOST_THREADS) most = MOST_THREADS;
  while (started + 1 < most && pthread_create(&threads[started], NULL, make_some, &w) == 0) started++;
  make_some(&w);
  for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* Finds all, and marks those that this call makes: the first *n_mine of `mine`. */
static tn_status take(gpu_programs *programs, gpu_program_request *requests, size_t n, program **all, program **mine,
                      size_t *n_mine, tn_error *err)
{
  tn_status st = TN_OK;
  *n_mine = 0;
  pthread_mutex_lock(&programs->mu);
  for (size_t i = 0; i < n && st == TN_OK; i++) {
    all[i] = find(programs, &requests[i]);
    if (all[i] == NULL)
      st = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for program '%s'", requests[i].label);
  }
  for (size_t i = 0; i < n && st == TN_OK; i++) {
    if (all[i]->state != FAILED) continue;
    all[i]->state = MAKING;
    tn_error_clear(&all[i]->error);
    mine[(*n_mine)++] = all[i];
  }
  pthread_mutex_unlock(&programs->mu);
  return st;
}

/* Waits for programs that other threads are making. */
static tn_status collect(gpu_programs *programs, gpu_program_request *requests, size_t n, program **all, tn_error *err)
{
  tn_status st = TN_OK;
  pthread_mutex_lock(&programs->mu);
  for (size_t i = 0; i < n && st == TN_OK; i++) {
    while (all[i]->state == MAKING) pthread_cond_wait(&programs->made, &programs->mu);
    if (all[i]->state == READY) {
      requests[i].program = all[i]->program;
    } else {
      st = tn_error_code(&all[i]->error);
      tn_error_copy(err, &all[i]->error);
    }
  }
  pthread_mutex_unlock(&programs->mu);
  for (size_t i = 0; i < n && st != TN_OK; i++) requests[i].program = NULL;
  return st;
}

tn_status gpu_programs_get(gpu_programs *programs, gpu_program_request *requests, size_t n, tn_error *err)
{
  size_t n_mine;
  for (size_t i = 0; i < n; i++) requests[i].program = NULL;
  program **all = tn_alloc((2 * n + 1) * sizeof *all);
  if (all == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for %zu programs", n);
  tn_status st = take(programs, requests, n, all, all + n, &n_mine, err);
  if (st == TN_OK) {
    if (n_mine > 0) make_all(programs, all + n, n_mine);
    st = collect(programs, requests, n, all, err);
  }
  tn_free(all);
  return st;
}
