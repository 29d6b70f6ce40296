/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/image/codec/pixels.h>
#include <string.h>

#define MOST_PIXELS (INT64_C(1) << 29)

tn_status tn__pixels_room(tn__pixels *p, const char *op, tn_error *err)
{
  int64_t n = 0;
  bool fits = p->frames > 0 && p->h > 0 && p->w > 0 && p->c > 0 && !__builtin_mul_overflow(p->h, p->w, &n) &&
              !__builtin_mul_overflow(n, p->frames, &n) && n < MOST_PIXELS;
  if (!fits)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: the image is %lld x %lld in %lld frames, wanted 1 pixel at least and below 2^29", op,
                        (long long)p->h, (long long)p->w, (long long)p->frames);
  p->bytes = (size_t)n * (size_t)p->c * (p->wide ? 2 : 1);
  p->data = tn__alloc(p->bytes);
  return p->data != NULL ? TN_OK : tn__no_memory(err, "pixels of an image", p->bytes);
}

void tn__pixels_fini(tn__pixels *p) { tn__free(p->data, p->bytes); }

bool tn__encoded_add(tn__encoded *e, const void *data, size_t size)
{
  size_t wanted;
  if (!tn__size_add(e->size, size, &wanted) || !tn__grow((void **)&e->data, &e->capacity, wanted, 1)) return false;
  if (size > 0) memcpy(e->data + e->size, data, size);
  e->size = wanted;
  return true;
}

void tn__encoded_fini(tn__encoded *e) { tn__free(e->data, e->capacity); }
