/* SPDX-License-Identifier: Apache-2.0 */
/* The memory pool of a device, and the limits of sessions.
 *
 * Sizes are rounded up to classes, eight between two powers of two, so at most an eighth is wasted; a block
 * from a free list is at most one class larger. Free blocks are kept until the context is released, the
 * driver has no more memory, or free blocks exceed the most memory ever in use at once: then the shapes have
 * changed, and they are returned to the driver. */
#include "device/memory.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define N_CLASSES (64 * 8)
#define KEPT_ANYHOW ((size_t)64 << 20) /* free bytes that are kept even if shapes change */

/* A free block of the driver's memory; while the block is in use, its node has no memory. */
typedef struct node {
  struct node *next;
  cl_mem mem;
  void *host;
  size_t bytes;
} node;

/* One kind of memory. */
typedef struct shelf {
  bool pinned;           /* host memory of the driver, mapped as long as the block exists */
  node *free[N_CLASSES];
  size_t free_bytes, used_bytes, most_bytes;
} shelf;

struct gpu_pool {
  gpu_device *device;
  cl_command_queue queue; /* for tensors that the host reads */
  pthread_mutex_t mu;
  shelf own, pinned; /* guarded by mu, as all below */
  node *spare;       /* one for each block in use */
  size_t n_created;  /* by the driver */
};

struct gpu_budget {
  atomic_size_t refs;
  gpu_device *device;
  gpu_pool *pool; /* the device's, while it has users */
  int64_t limit;
  int64_t used;   /* guarded by the pool's mu, but for reading */
};

/* ---- budgets ---- */

tn_status gpu_budget_create(gpu_device *device, int64_t limit_bytes, gpu_budget **out, tn_error *err)
{
  *out = tn_alloc(sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for a session's budget");
  if (limit_bytes <= 0) limit_bytes = device->memory_bytes > INT64_MAX ? INT64_MAX : (int64_t)device->memory_bytes;
  **out = (gpu_budget){ .device = device, .pool = device->pool, .limit = limit_bytes };
  atomic_init(&(*out)->refs, 1);
  return TN_OK;
}

static gpu_budget *budget_ref(gpu_budget *budget)
{
  atomic_fetch_add_explicit(&budget->refs, 1, memory_order_relaxed);
  return budget;
}

void gpu_budget_unref(gpu_budget *budget)
{
  if (budget != NULL && atomic_fetch_sub_explicit(&budget->refs, 1, memory_order_acq_rel) == 1) tn_free(budget);
}

int64_t gpu_budget_used(const gpu_budget *budget)
{
  pthread_mutex_lock(&budget->pool->mu);
  int64_t used = budget->used;
  pthread_mutex_unlock(&budget->pool->mu);
  return used;
}

/* ---- the pool ---- */

tn_status gpu_pool_create(gpu_device *device, gpu_pool **out, tn_error *err)
{
  cl_int code;
  *out = NULL;
  gpu_pool *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for a pool");
  memset(p, 0, sizeof *p);
  p->device = device;
  p->queue = cl.CreateCommandQueue(device->context, device->id, 0, &code);
  if (p->queue == NULL) {
    tn_free(p);
    return gpu_cl_error(err, code, "clCreateCommandQueue", device->name);
  }
  p->pinned.pinned = true;
  pthread_mutex_init(&p->mu, NULL);
  *out = p;
  return TN_OK;
}

cl_command_queue gpu_pool_queue(const gpu_pool *pool) { return pool->queue; }

static void give_back(const gpu_pool *p, const shelf *from, node *n)
{
  if (from->pinned) (void)cl.EnqueueUnmapMemObject(p->queue, n->mem, n->host, 0, NULL, NULL);
  cl.ReleaseMemObject(n->mem);
  if (!from->pinned && n->host != NULL) munmap(n->host, n->bytes);
  tn_free(n);
}

static void give_back_all(const gpu_pool *p, const shelf *from, node *list)
{
  for (node *next; list != NULL; list = next) {
    next = list->next;
    give_back(p, from, list);
  }
}

/* Takes everything that is free off a shelf. */
static node *empty(shelf *s)
{
  node *all = NULL;
  for (size_t i = 0; s->free_bytes > 0 && i < N_CLASSES; i++)
    while (s->free[i] != NULL) {
      node *n = s->free[i];
      s->free[i] = n->next;
      s->free_bytes -= n->bytes;
      n->next = all;
      all = n;
    }
  return all;
}

void gpu_pool_trim(gpu_pool *pool)
{
  pthread_mutex_lock(&pool->mu);
  node *own = empty(&pool->own), *pinned = empty(&pool->pinned);
  pthread_mutex_unlock(&pool->mu);
  give_back_all(pool, &pool->own, own);
  give_back_all(pool, &pool->pinned, pinned);
}

void gpu_pool_destroy(gpu_pool *pool)
{
  if (pool == NULL) return;
  if (pool->n_created > 0)
    tn_log(TN_LOG_INFO, "gpu: memory of '%s': %zu allocations, at most %zu bytes in use at once", pool->device->name,
           pool->n_created, pool->own.most_bytes);
  gpu_pool_trim(pool);
  cl.ReleaseCommandQueue(pool->queue);
  pthread_mutex_destroy(&pool->mu);
  for (node *n = pool->spare, *next; n != NULL; n = next) { /* none, unless a block was lost */
    next = n->next;
    tn_free(n);
  }
  tn_free(pool);
}

void gpu_pool_stats_get(gpu_pool *pool, gpu_pool_stats *out)
{
  pthread_mutex_lock(&pool->mu);
  *out = (gpu_pool_stats){ .used_bytes = pool->own.used_bytes, .free_bytes = pool->own.free_bytes,
                           .most_bytes = pool->own.most_bytes, .n_created = pool->n_created };
  pthread_mutex_unlock(&pool->mu);
}

/* ---- sizes ---- */

static size_t top_bit(size_t n) { return (size_t)(63 - __builtin_clzll(n)); }

/* Returns 0 if the size is impossible. */
static size_t round_size(const gpu_device *device, size_t bytes)
{
  if (bytes <= PAGE) return PAGE;
  if (bytes > (size_t)PTRDIFF_MAX / 4) return 0;
  size_t step = (size_t)1 << (top_bit(bytes) - 3);
  if (step < PAGE) step = PAGE;
  size_t rounded = (bytes + step - 1) / step * step, pages = (bytes + PAGE - 1) / PAGE * PAGE;
  return rounded > device->max_alloc_bytes ? pages : rounded;
}

static size_t class_of(size_t bytes)
{
  size_t top = top_bit(bytes);
  return top * 8 + (bytes >> (top - 3) & 7);
}

/* ---- blocks ---- */

static node *take_free(shelf *s, size_t bytes)
{
  size_t first = class_of(bytes);
  for (size_t c = first; c <= first + 1 && c < N_CLASSES; c++)
    for (node **at = &s->free[c]; *at != NULL; at = &(*at)->next) {
      node *n = *at;
      if (n->bytes < bytes) continue;
      *at = n->next;
      s->free_bytes -= n->bytes;
      return n;
    }
  return NULL;
}

static void give(gpu_pool *p, shelf *s, node *n, gpu_budget *budget, gpu_block *out)
{
  *out = (gpu_block){ .mem = n->mem, .host = n->host, .bytes = n->bytes, .device = p->device };
  n->next = p->spare;
  p->spare = n;
  s->used_bytes += n->bytes;
  if (s->used_bytes > s->most_bytes) s->most_bytes = s->used_bytes;
  if (budget == NULL) return;
  out->budget = budget_ref(budget);
  budget->used += (int64_t)n->bytes;
}

static cl_int create_pinned(const gpu_pool *p, size_t bytes, node *n, const char **call)
{
  cl_int code;
  n->mem = cl.CreateBuffer(p->device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
  if (n->mem == NULL) return code;
  *call = "clEnqueueMapBuffer";
  n->host = cl.EnqueueMapBuffer(p->queue, n->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
  if (n->host != NULL) return CL_SUCCESS;
  cl.ReleaseMemObject(n->mem);
  return code == CL_MAP_FAILURE ? CL_OUT_OF_HOST_MEMORY : code;
}

/* Drivers may put off what they promise until the memory is used. Now it can be tried again. */
static cl_int touch(const gpu_pool *p, cl_mem mem)
{
  const cl_uchar zero = 0;
  cl_event done;
  cl_int code = cl.EnqueueFillBuffer(p->queue, mem, &zero, 1, 0, 1, 0, NULL, &done);
  if (code != CL_SUCCESS) return code;
  code = cl.WaitForEvents(1, &done);
  cl.ReleaseEvent(done);
  return code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_MEM_OBJECT_ALLOCATION_FAILURE : code;
}

static cl_int create_devices(const gpu_pool *p, size_t bytes, node *n, const char **call)
{
  cl_int code;
  n->mem = cl.CreateBuffer(p->device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
  if (n->mem == NULL) return code;
  *call = "clEnqueueFillBuffer";
  code = touch(p, n->mem);
  if (code != CL_SUCCESS) cl.ReleaseMemObject(n->mem);
  return code;
}

static cl_int create_shared(const gpu_pool *p, size_t bytes, node *n)
{
  cl_int code;
  n->host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (n->host == MAP_FAILED) return CL_OUT_OF_HOST_MEMORY;
  n->mem = cl.CreateBuffer(p->device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, n->host, &code);
  if (n->mem != NULL) return CL_SUCCESS;
  munmap(n->host, bytes);
  return code;
}

/* CL_SUCCESS, or what the driver says; *call is what it says it of. */
static cl_int create(const gpu_pool *p, const shelf *s, size_t bytes, node *n, const char **call)
{
  *n = (node){ .bytes = bytes };
  *call = "clCreateBuffer";
  if (s->pinned) return create_pinned(p, bytes, n, call);
  return p->device->host_visible ? create_shared(p, bytes, n) : create_devices(p, bytes, n, call);
}

/* A new block, if need be after what is free was given back. */
static tn_status create_node(gpu_pool *p, const shelf *s, size_t asked, size_t bytes, node **out, tn_error *err)
{
  const char *call;
  node *n = tn_alloc(sizeof *n);
  if (n == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for a block");
  cl_int code = create(p, s, bytes, n, &call);
  if (gpu_cl_status(code) == TN_RESOURCE_EXHAUSTED) {
    gpu_pool_trim(p);
    code = create(p, s, bytes, n, &call);
  }
  if (code == CL_SUCCESS) {
    *out = n;
    return TN_OK;
  }
  tn_free(n);
  tn_status st = gpu_cl_error(err, code, call, p->device->name);
  tn_error_prefix(err, "gpu: %zu bytes, after what was free had been given back", asked);
  return st;
}

static tn_status above_limit(const gpu_budget *b, size_t asked, tn_error *err)
{
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                      "gpu: %zu bytes of device '%s' were asked for; the session may have %" PRId64
                      " and uses %" PRId64,
                      asked, b->device->name, b->limit, b->used);
}

static tn_status obtain(gpu_pool *p, shelf *s, gpu_budget *budget, size_t asked, gpu_block *out, tn_error *err)
{
  size_t bytes = round_size(p->device, asked);
  tn_status st = TN_OK;
  *out = (gpu_block){ 0 };
  if (bytes == 0 || bytes > p->device->max_alloc_bytes)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "gpu: %zu bytes were asked for; device '%s' gives at most %" PRIu64 " at once", asked,
                        p->device->name, (uint64_t)p->device->max_alloc_bytes);
  pthread_mutex_lock(&p->mu);
  bool fits = budget == NULL || (int64_t)bytes <= budget->limit - budget->used;
  node *n = fits ? take_free(s, bytes) : NULL;
  if (!fits) st = above_limit(budget, asked, err);
  if (n == NULL && fits) {
    if (budget != NULL) budget->used += (int64_t)bytes; /* while the driver looks for it */
    pthread_mutex_unlock(&p->mu);
    st = create_node(p, s, asked, bytes, &n, err);
    pthread_mutex_lock(&p->mu);
    if (budget != NULL) budget->used -= (int64_t)bytes;
    p->n_created += n != NULL;
  }
  if (n != NULL) give(p, s, n, budget, out);
  pthread_mutex_unlock(&p->mu);
  return st;
}

static void take_back(gpu_pool *p, shelf *s, gpu_block *block)
{
  node *gone = NULL;
  pthread_mutex_lock(&p->mu);
  node *n = p->spare;
  p->spare = n->next;
  *n = (node){ .mem = block->mem, .host = block->host, .bytes = block->bytes };
  node **list = &s->free[class_of(n->bytes)];
  n->next = *list;
  *list = n;
  if (block->budget != NULL) block->budget->used -= (int64_t)n->bytes;
  s->used_bytes -= n->bytes;
  s->free_bytes += n->bytes;
  if (s->free_bytes > KEPT_ANYHOW && s->free_bytes > s->most_bytes) gone = empty(s);
  pthread_mutex_unlock(&p->mu);
  give_back_all(p, s, gone);
  gpu_budget_unref(block->budget);
  *block = (gpu_block){ 0 };
}

tn_status gpu_alloc(gpu_budget *budget, size_t bytes, gpu_block *out, tn_error *err)
{
  return obtain(budget->pool, &budget->pool->own, budget, bytes, out, err);
}

void gpu_free(gpu_block *block)
{
  if (block->mem != NULL) take_back(block->budget->pool, &block->budget->pool->own, block);
}

tn_status gpu_pinned_alloc(gpu_device *device, size_t bytes, gpu_block *out, tn_error *err)
{
  return obtain(device->pool, &device->pool->pinned, NULL, bytes, out, err);
}

void gpu_pinned_free(gpu_block *block)
{
  if (block->mem != NULL) take_back(block->device->pool, &block->device->pool->pinned, block);
}
