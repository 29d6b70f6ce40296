/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all files of the runtime: cleared memory, the error if there is none, the clock. */
#ifndef GPU_DEVICE_BASE_H
#define GPU_DEVICE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tenon/runtime.h>
#include <time.h>

#define GPU_NONE UINT32_MAX /* no number of any kind */

/* n cleared elements; NULL without memory. Goes with tn_free. */
static inline void *gpu_new(size_t n, size_t size)
{
  if (size > 0 && n > (size_t)PTRDIFF_MAX / size) return NULL;
  void *p = tn_alloc(n * size == 0 ? 1 : n * size);
  if (p != NULL) memset(p, 0, n * size);
  return p;
}
static inline tn_status gpu_no_memory(tn_error *err, const char *what)
{
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for %s of runtime 'gpu'", what);
}
/* Elements that are bytes, which a device can have. */
static inline bool gpu_is_plain(tn_dtype dtype)
{
  return dtype != TN_STRING && dtype != TN_RESOURCE && dtype != TN_VARIANT;
}

/* Nanoseconds of the monotonic clock. */
static inline int64_t gpu_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
