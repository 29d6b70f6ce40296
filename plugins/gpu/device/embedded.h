/* SPDX-License-Identifier: Apache-2.0 */
/* The .cl files as build-aux/embed.sh writes them. */
#ifndef GPU_DEVICE_EMBEDDED_H
#define GPU_DEVICE_EMBEDDED_H

#include <stddef.h>

typedef struct gpu_embedded {
  const char *name, *text;
  size_t size;
} gpu_embedded;
extern const gpu_embedded gpu_embedded_files[]; /* ends with a NULL */

#endif
