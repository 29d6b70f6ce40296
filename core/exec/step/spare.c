/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary tensors of a step, and the reuse of their memory: sizes rarely change from one step to
 * the next. */
#include <core/exec/step/workspace.h>

#define UNUSED_STEPS 2 /* a spare that was not reused for more steps than this is freed at the next check */
#define MAX_SPARES 256 /* further ones are freed at once: a loop may release thousands */

/* Index of the smallest spare with at least that much room; the number of spares if there is none. */
static size_t find_room(const tn__workspace *w, size_t bytes)
{
  size_t begin = 0, end = w->n_spares;
  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (w->spares[middle].room < bytes) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

/* Bytes that a tensor has for elements; 0 if it cannot be reused, because it is shared, is not one
 * allocation, or has elements that own memory. */
static size_t room_of(const tn_tensor *t)
{
  const tn_buffer *b = t->buffer;
  bool plain = b->inside == t && b->managed == 0 && t->dims == t->inline_dims && t->data != NULL && t->offset == 0;
  return plain && tn_tensor_is_exclusive(t) ? t->alloc_size - (size_t)((const char *)t->data - (const char *)t) : 0;
}

/* A new tensor. In a session with a memory limit, the spares are freed before the limit counts as
 * reached: the first attempt sets no error. */
static tn_status spare_create(tn__workspace *w, tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count,
                              size_t bytes, tn_tensor **out, tn_error *err)
{
  if (tn__account_now == NULL || (w->guard == NULL && w->n_spares == 0))
    return tn__tensor_create_known(dtype, dims, rank, count, bytes, out, err);
  tn_status st = tn__tensor_create_known(dtype, dims, rank, count, bytes, out, NULL);
  if (st != TN_RESOURCE_EXHAUSTED) return st;
  tn__spare_drop(w);
  return tn__tensor_create_known(dtype, dims, rank, count, bytes, out, err);
}

/* The lock of the spares. Several threads use the workspace only while tasks run. */
static void spares_lock(const tn__workspace *w)
{
  if (__builtin_expect(w->guard != NULL, 0)) tn__mutex_lock(w->guard);
}
static void spares_unlock(const tn__workspace *w)
{
  if (__builtin_expect(w->guard != NULL, 0)) tn__mutex_unlock(w->guard);
}

/* Removes a spare that fits from the list; NULL: none fits. One that is more than four times too
 * large is left for other tensors. */
static tn_tensor *spare_take(tn__workspace *w, size_t bytes)
{
  spares_lock(w);
  size_t at = find_room(w, bytes);
  bool fits = at < w->n_spares && w->spares[at].room / 4 <= bytes + 1024;
  tn_tensor *t = fits ? w->spares[at].tensor : NULL;
  if (fits) w->n_spares--;
  for (size_t i = at; fits && i < w->n_spares; i++) w->spares[i] = w->spares[i + 1]; /* as a rule there are few */
  spares_unlock(w);
  return t;
}

tn_status tn__spare_tensor(tn__workspace *w, tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count,
                           size_t bytes, tn_tensor **out, tn_error *err)
{
  tn_tensor *t = rank > TN_INLINE_RANK || tn__dtype_is_managed(dtype) ? NULL : spare_take(w, bytes);
  if (t == NULL) return spare_create(w, dtype, dims, rank, count, bytes, out, err);
  t->dtype = dtype;
  t->rank = rank;
  t->count = count;
  t->bytes = bytes;
  for (int32_t d = 0; d < rank; d++) t->dims[d] = dims[d];
  *out = t;
  return TN_OK;
}

void tn__spare_give(tn__workspace *w, tn_tensor *t)
{
  if (t == NULL) return;
  size_t room = room_of(t);
  spares_lock(w);
  bool takes = room != 0 && w->n_spares < MAX_SPARES &&
               tn__grow((void **)&w->spares, &w->spare_room, w->n_spares + 1, sizeof *w->spares);
  size_t at = takes ? find_room(w, room) : 0;
  for (size_t i = w->n_spares; takes && i > at; i--) w->spares[i] = w->spares[i - 1];
  if (takes) w->spares[at] = (tn__spare){ t, room, w->step };
  w->n_spares += takes;
  spares_unlock(w);
  if (!takes) tn_tensor_unref(t);
}

void tn__spare_drop(tn__workspace *w)
{
  spares_lock(w);
  while (w->n_spares > 0) tn_tensor_unref(w->spares[--w->n_spares].tensor);
  spares_unlock(w);
}

void tn__spare_prune(tn__workspace *w)
{
  size_t n = 0;
  for (size_t i = 0; i < w->n_spares; i++) {
    if (w->step - w->spares[i].since > UNUSED_STEPS) tn_tensor_unref(w->spares[i].tensor);
    else w->spares[n++] = w->spares[i];
  }
  w->n_spares = n;
}
