/* SPDX-License-Identifier: Apache-2.0 */
#include <core/formats/checkpoint/block.h>

#define LEAST ((size_t)32 << 10) /* bytes of a tensor in a block */
#define MOST ((size_t)8 << 20)   /* from here on tensors have huge pages of their own (core/base/alloc.c) */
#define LEAST_BLOCK ((size_t)8 << 20)
#define PROBE ((size_t)256 << 10) /* at least a whole page, whatever its size */

struct tn__block {
  _Atomic size_t refs;
  char *data; /* owned */
  size_t size, used;
};

bool tn__block_suits(tn_dtype dtype, size_t bytes)
{
  return bytes >= LEAST && bytes < MOST && !tn__dtype_is_managed(dtype);
}

size_t tn__block_bytes(size_t bytes) { return tn__round_up(bytes, TN_ALIGN); }

tn__block *tn__block_create(size_t size)
{
  if (size < LEAST_BLOCK || tn__account_now != NULL) return NULL;
  tn__block *b = tn__zalloc(sizeof(*b));
  char *data = b == NULL ? NULL : tn__alloc_aligned(size, TN_ALIGN);
  if (data == NULL || !tn__discard(data, PROBE)) {
    tn__free_aligned(data, size, TN_ALIGN);
    tn__free(b, sizeof(*b));
    return NULL;
  }
  atomic_init(&b->refs, 1);
  b->data = data;
  b->size = size;
  return b;
}

void tn__block_unref(tn__block *b)
{
  if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
  tn__free_aligned(b->data, b->size, TN_ALIGN);
  tn__free(b, sizeof(*b));
}

/* The end of a tensor's buffer. */
static void release(void *user, void *data, size_t bytes)
{
  tn__block *b = user;
  if (atomic_load_explicit(&b->refs, memory_order_acquire) != 1) tn__discard(data, bytes);
  tn__block_unref(b);
}

tn_status tn__block_tensor(tn__block *b, tn_dtype dtype, const int64_t *dims, int32_t rank, size_t bytes,
                           tn_tensor **out, tn_error *err)
{
  tn_buffer_desc desc = { .struct_size = sizeof(desc),
                          .memory = TN_MEMORY_HOST,
                          .ownership = TN_BUFFER_OWNED,
                          .data = b->data + b->used,
                          .bytes = bytes,
                          .release = release,
                          .user = b };
  tn_buffer *buffer = NULL;
  *out = NULL;
  tn_status s = tn_buffer_create(&desc, &buffer, err);
  if (s != TN_OK) return s;
  b->used += tn__block_bytes(bytes);
  atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
  s = tn_tensor_from_buffer(dtype, dims, rank, buffer, 0, out, err);
  tn_buffer_unref(buffer);
  return s;
}
