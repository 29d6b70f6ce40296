/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the programs: the compiler, and the binaries on disk. */
#ifndef GPU_DEVICE_PROGRAM_PARTS_H
#define GPU_DEVICE_PROGRAM_PARTS_H

#include "device/program.h"

/* ---- program_build.c ---- */

/* The parts of a program, and its compiler. */
typedef struct gpu_source {
  gpu_device *device;
  const char *versions; /* of platform and device */
  const char *prelude, *text, *options, *label;
} gpu_source;

/* Reads a program from disk, or compiles it and writes it to disk. *compiled: which of the two. */
tn_status gpu_program_build(const gpu_source *source, cl_program *out, bool *compiled, tn_error *err);
#define GPU_PROGRAM_OPTIONS "-cl-std=CL1.2" /* precedes the options of every request */

/* ---- program_cache.c ---- */

/* The binary of a source; the caller frees *bytes with tn_free. False if there is none, or it is incomplete. */
bool gpu_cache_read(const gpu_source *source, unsigned char **bytes, size_t *size);
/* Stores a binary. Errors are logged only: the program works without. */
void gpu_cache_write(const gpu_source *source, const unsigned char *bytes, size_t size);

#endif
