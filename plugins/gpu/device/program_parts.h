/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the programs: the compiler, and the binaries on disk. */
#ifndef GPU_DEVICE_PROGRAM_PARTS_H
#define GPU_DEVICE_PROGRAM_PARTS_H

#include "device/program.h"

/* ---- program_build.c ---- */

/* What a program is made of, and for which compiler. */
typedef struct gpu_source {
  gpu_device *device;
  const char *versions; /* of platform and device */
  const char *prelude, *text, *options, *label;
} gpu_source;

/* Reads a program from disk, or compiles it and writes it there. *compiled says which. */
tn_status gpu_program_make(const gpu_source *source, cl_program *out, bool *compiled, tn_error *err);
#define GPU_PROGRAM_OPTIONS "-cl-std=CL1.2" /* in front of every request's */

/* ---- program_cache.c ---- */

/* The binary of a source, *bytes for tn_free. False when there is none, or what is there is not whole. */
bool gpu_cache_read(const gpu_source *source, unsigned char **bytes, size_t *size);
/* Keeps a binary. What goes wrong is logged: the program works without. */
void gpu_cache_write(const gpu_source *source, const unsigned char *bytes, size_t size);

#endif
