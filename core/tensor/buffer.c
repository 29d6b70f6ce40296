/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: reference-counted memory of any kind.
 *
 * A buffer's struct has its own allocation, or is inside the allocation of the tensor that it was made with. When the
 * last reference is released, the elements are cleared, then desc.release is called, then the plugin is released
 * (desc.release is its code), then the struct is freed.
 *
 * desc.map of a buffer is called by one thread at a time, and without any lock held: a thread that wants to map waits
 * until `busy` is false. */
#include <core/tensor/tensor_internal.h>

#include <inttypes.h>
#include <string.h>

void (*tn__plugin_hold)(void *self);
void (*tn__plugin_drop)(void *self);

struct tn__buffer_map {
  tn__mutex mu;
  tn__cond idle;
  bool busy; /* guarded by mu */
};

/* map and unmap belong together; device memory has no host address. */
static tn_status check_desc(const tn_buffer_desc *d, tn_error *err)
{
  if (d->memory < TN_MEMORY_HOST || d->memory > TN_MEMORY_SHARED)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "buffer: memory is %" PRId32 ", wanted one of TN_MEMORY_...",
                        d->memory);
  if (d->ownership < TN_BUFFER_OWNED || d->ownership > TN_BUFFER_FOREIGN)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "buffer: ownership is %" PRId32 ", wanted one of TN_BUFFER_...",
                        d->ownership);
  if (d->bytes > PTRDIFF_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "buffer: %zu bytes exceed the maximum size of an object", d->bytes);
  if (d->memory == TN_MEMORY_DEVICE && d->data != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "buffer: device memory has no host address, but data is set");
  if (d->memory != TN_MEMORY_DEVICE && d->data == NULL && d->bytes > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "buffer: %zu bytes of host memory, but data is NULL", d->bytes);
  if ((d->map == NULL) != (d->unmap == NULL))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "buffer: %s is set without %s", d->map != NULL ? "map" : "unmap",
                        d->map != NULL ? "unmap" : "map");
  return TN_OK;
}

tn_status tn_buffer_create(const tn_buffer_desc *desc, tn_buffer **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_buffer_create: out is NULL");
  *out = NULL;
  if (desc == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no buffer description is given");
  if (!TN_HAS_FIELD(desc, tn_buffer_desc, bytes))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_buffer_desc.struct_size is %zu, wanted at least %zu",
                        desc->struct_size, TN_SIZE_TO(tn_buffer_desc, bytes));
  tn_buffer_desc d;
  memset(&d, 0, sizeof(d));
  memcpy(&d, desc, desc->struct_size < sizeof(d) ? desc->struct_size : sizeof(d));
  d.struct_size = sizeof(d);
  tn_status s = check_desc(&d, err);
  if (s != TN_OK) return s;

  /* One block: the buffer, the lock for map if there is a map, a copy of the device's name. */
  size_t map_size = d.map != NULL ? sizeof(tn__buffer_map) : 0;
  size_t name_size = d.device != NULL ? strlen(d.device) + 1 : 0;
  size_t map_at = tn__round_up(sizeof(tn_buffer), _Alignof(tn__buffer_map)), size;
  if (!tn__size_add(map_at + map_size, name_size, &size) || size > PTRDIFF_MAX)
    return tn__no_memory(err, "a buffer", name_size);
  char *block = tn__alloc(size);
  if (block == NULL) return tn__no_memory(err, "a buffer", size);
  tn_buffer *b = (tn_buffer *)block;
  memset(b, 0, sizeof(*b));
  atomic_init(&b->refs, 1);
  b->desc = d;
  b->alloc_size = size;
  if (map_size != 0) {
    b->map = (tn__buffer_map *)(block + map_at);
    tn__mutex_init(&b->map->mu, "buffer", TN_RANK_BUFFER);
    tn__cond_init(&b->map->idle);
    b->map->busy = false;
  }
  if (name_size != 0) b->desc.device = memcpy(block + map_at + map_size, d.device, name_size);
  if (d.holder != NULL && tn__plugin_hold != NULL) tn__plugin_hold(d.holder);
  *out = b;
  return TN_OK;
}

tn_buffer *tn_buffer_ref(tn_buffer *buffer)
{
  if (buffer != NULL) atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
  return buffer;
}

/* The order matters: the plugin must be loaded while its release runs, and the account is credited for the allocation
 * of the tensor that the buffer is inside. */
static void destroy(tn_buffer *b)
{
  const tn_buffer_desc *d = &b->desc;
  if (b->managed != 0) tn__elements_clear(b->managed, d->data, (int64_t)(d->bytes / tn_dtype_size(b->managed)));
  if (d->release != NULL) d->release(d->user, d->data, d->bytes);
  if (d->holder != NULL && tn__plugin_drop != NULL) tn__plugin_drop(d->holder);
  if (b->map != NULL) {
    tn__cond_fini(&b->map->idle);
    tn__mutex_fini(&b->map->mu);
  }
  if (b->account != NULL) {
    tn__account_credit(b->account, b->inside->alloc_size);
    tn__account_unref(b->account);
  }
  if (b->inside != NULL)
    tn__free_aligned(b->inside, b->inside->alloc_size, TN_ALIGN);
  else
    tn__free(b, b->alloc_size);
}

/* If the count is 1, the caller has the last reference and no other thread can change the count, so the atomic
 * subtraction is skipped. */
void tn_buffer_unref(tn_buffer *buffer)
{
  if (buffer == NULL) return;
  if (atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) == 1)
    destroy(buffer);
}

const tn_buffer_desc *tn_buffer_describe(const tn_buffer *buffer) { return buffer == NULL ? NULL : &buffer->desc; }

/* ---- reading ---- */

static void map_begin(tn__buffer_map *map)
{
  tn__mutex_lock(&map->mu);
  while (map->busy) tn__cond_wait(&map->idle, &map->mu);
  map->busy = true;
  tn__mutex_unlock(&map->mu);
}

static void map_end(tn__buffer_map *map)
{
  tn__mutex_lock(&map->mu);
  map->busy = false;
  tn__cond_signal(&map->idle);
  tn__mutex_unlock(&map->mu);
}

/* Host memory without a pending write is copied directly; otherwise it is mapped, which waits for the device. */
tn_status tn__buffer_read(tn_buffer *b, size_t offset, void *to, size_t bytes, tn_error *err)
{
  const tn_buffer_desc *d = &b->desc;
  if (bytes == 0) return TN_OK;
  if (d->data != NULL && (d->map == NULL || d->ready_event == NULL)) {
    memcpy(to, (const char *)d->data + offset, bytes);
    return TN_OK;
  }
  const char *device = d->device != NULL ? d->device : "the host";
  if (d->map == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "memory of %s cannot be read from the host: its buffer has no map",
                        device);

  void *address = NULL;
  map_begin(b->map);
  tn_status s = d->map(d->user, b, &address, err);
  if (s == TN_OK && address != NULL) {
    memcpy(to, (const char *)address + offset, bytes);
    d->unmap(d->user, b, address);
  }
  map_end(b->map);
  if (s == TN_OK && address == NULL)
    return tn_error_set(err, TN_INTERNAL, "mapping memory of %s returned no address", device);
  if (s != TN_OK) tn_error_set(err, s, "mapping memory of %s failed without a message", device); /* keeps a message */
  return s;
}
