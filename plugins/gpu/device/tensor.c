/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in device memory.
 *
 * If device and host share memory, a tensor has an address, and is mapped for reading as long as it exists: the device
 * may read it meanwhile, as a feed. Writing to it is not allowed, so its buffer is immutable. On a device of
 * type CPU there is only one memory, and nothing is mapped. */
#include "device/tensor.h"

#ifdef TN_PLUGIN
#define MAKER TN_HOST_TABLE->self
#else
#define MAKER NULL /* part of a program */
#endif

/* The `user` of a buffer. */
typedef struct content {
  gpu_block block;
  cl_event ready; /* NULL: the content is complete */
  void *mapped;   /* as long as the tensor exists */
  size_t bytes;
} content;

static cl_command_queue queue_of(const content *c) { return gpu_pool_queue(c->block.device->pool); }

static cl_int map_for_reading(const content *c, void **address)
{
  cl_int code;
  *address = cl.EnqueueMapBuffer(queue_of(c), c->block.mem, CL_TRUE, CL_MAP_READ, 0, c->bytes > 0 ? c->bytes : 1,
                                 c->ready != NULL ? 1 : 0, c->ready != NULL ? &c->ready : NULL, NULL, &code);
  return code;
}

static void unmap_address(const content *c, void *address)
{
  cl_event done = NULL;
  if (cl.EnqueueUnmapMemObject(queue_of(c), c->block.mem, address, 0, NULL, &done) != CL_SUCCESS || done == NULL)
    return;
  (void)cl.WaitForEvents(1, &done);
  cl.ReleaseEvent(done);
}

static tn_status map(void *user, tn_buffer *buffer, void **address, tn_error *err)
{
  content *c = user;
  (void)buffer;
  *address = NULL;
  tn_status st = gpu_devices_forked(err);
  if (st != TN_OK) return st;
  if (c->block.device->lost)
    return tn_error_set(err, TN_UNAVAILABLE, "gpu: device '%s' was lost, and what its memory held",
                        c->block.device->name);
  cl_int code = map_for_reading(c, address);
  return code == CL_SUCCESS ? TN_OK : gpu_cl_error(err, code, "clEnqueueMapBuffer", c->block.device->name);
}

static void unmap(void *user, tn_buffer *buffer, void *address)
{
  (void)buffer;
  unmap_address(user, address);
}

/* Nothing of OpenCL may be called in the child of a fork: there the memory is the parent's. */
static void release(void *user, void *data, size_t bytes)
{
  content *c = user;
  gpu_device *device = c->block.device;
  (void)data, (void)bytes;
  if (device != NULL && gpu_devices_forked(NULL) == TN_OK) {
    if (c->mapped != NULL) unmap_address(c, c->mapped);
    if (c->ready != NULL) {
      (void)cl.WaitForEvents(1, &c->ready);
      cl.ReleaseEvent(c->ready);
    }
    gpu_free(&c->block);
    gpu_device_leave(device);
  }
  tn_free(c);
}

/* Memory with an address is read without asking, so its content has to be there now. */
static tn_status make_readable(content *c, tn_error *err)
{
  const gpu_device *d = c->block.device;
  cl_int code = CL_SUCCESS;
  if (c->block.host == NULL) return TN_OK;
  if (d->type & CL_DEVICE_TYPE_CPU) {
    if (c->ready != NULL) code = cl.WaitForEvents(1, &c->ready);
    if (code != CL_SUCCESS) return gpu_cl_error(err, code, "clWaitForEvents", d->name);
  } else {
    code = map_for_reading(c, &c->mapped);
    if (code != CL_SUCCESS) return gpu_cl_error(err, code, "clEnqueueMapBuffer", d->name);
  }
  c->ready = NULL;
  return TN_OK;
}

/* Takes c over, also when it fails. */
static tn_status make_tensor(content *c, tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out,
                             tn_error *err)
{
  bool shared = c->block.host != NULL;
  const tn_buffer_desc desc = { .struct_size = sizeof desc,
                                .memory = shared ? TN_MEMORY_SHARED : TN_MEMORY_DEVICE,
                                .ownership = c->mapped != NULL ? TN_BUFFER_IMMUTABLE : TN_BUFFER_OWNED,
                                .device = c->block.device->name,
                                .data = c->block.host,
                                .handle = c->block.mem,
                                .bytes = c->bytes,
                                .ready_event = c->ready,
                                .map = shared ? NULL : map,
                                .unmap = shared ? NULL : unmap,
                                .release = release,
                                .user = c,
                                .holder = MAKER };
  tn_buffer *buffer;
  tn_status st = tn_buffer_create(&desc, &buffer, err);
  if (st != TN_OK) {
    tn_free(c);
    return st;
  }
  st = tn_tensor_from_buffer(dtype, dims, rank, buffer, 0, out, err);
  if (st != TN_OK) c->block.device = NULL; /* the caller keeps the block: release must not free it */
  tn_buffer_unref(buffer);
  return st;
}

tn_status gpu_tensor(gpu_block *block, cl_event ready, tn_dtype dtype, const int64_t *dims, int32_t rank,
                     tn_tensor **out, tn_error *err)
{
  content made = { .block = *block, .ready = ready };
  *out = NULL;
  tn_status st = tn_shape_bytes(dtype, dims, rank, &made.bytes, err);
  if (st == TN_OK && made.bytes > block->bytes)
    st = tn_error_set(err, TN_INTERNAL, "gpu: a tensor of %zu bytes in a block of %zu", made.bytes, block->bytes);
  if (st == TN_OK) st = gpu_device_use(block->device, err);
  if (st != TN_OK) return st;
  content *c = tn_alloc(sizeof *c);
  if (c == NULL) st = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for a tensor");
  else st = make_readable(&made, err);
  if (st == TN_OK) {
    *c = made;
    st = make_tensor(c, dtype, dims, rank, out, err);
  } else {
    tn_free(c);
  }
  if (st != TN_OK) {
    if (made.mapped != NULL) unmap_address(&made, made.mapped);
    gpu_device_leave(block->device);
    return st;
  }
  if (made.ready != NULL) cl.RetainEvent(made.ready);
  *block = (gpu_block){ 0 };
  return TN_OK;
}

bool gpu_tensor_memory(const tn_tensor *tensor, const gpu_device *device, cl_mem *mem, size_t *offset, cl_event *ready)
{
  const tn_buffer_desc *d = tn_buffer_describe(tn_tensor_buffer(tensor));
  if (d == NULL || d->release != release) return false;
  const content *c = d->user;
  const char *data = tn_tensor_data(tensor);
  if (c->block.device != device || (data == NULL && tn_tensor_bytes(tensor) != c->bytes)) return false;
  *mem = c->block.mem;
  *offset = data != NULL ? (size_t)(data - (const char *)c->block.host) : 0;
  *ready = c->ready;
  return true;
}

/* ---- sending ---- */

static tn_status write_block(const gpu_block *block, const tn_tensor *tensor, tn_error *err)
{
  gpu_device *d = block->device;
  cl_int code = cl.EnqueueWriteBuffer(gpu_pool_queue(d->pool), block->mem, CL_TRUE, 0, tn_tensor_bytes(tensor),
                                      tn_tensor_data(tensor), 0, NULL, NULL);
  if (code == CL_SUCCESS) return TN_OK;
  tn_status st = gpu_cl_error(err, code, "clEnqueueWriteBuffer", d->name);
  if (st == TN_UNAVAILABLE) gpu_device_lost(d);
  return st;
}

tn_status gpu_tensor_send(gpu_budget *budget, const tn_tensor *tensor, tn_tensor **out, tn_error *err)
{
  gpu_block block = { 0 };
  tn_status st = gpu_alloc(budget, tn_tensor_bytes(tensor), &block, err);
  if (st == TN_OK) st = write_block(&block, tensor, err);
  if (st == TN_OK)
    st = gpu_tensor(&block, NULL, tn_tensor_dtype(tensor), tn_tensor_dims(tensor), tn_tensor_rank(tensor), out, err);
  gpu_free(&block);
  return st;
}
