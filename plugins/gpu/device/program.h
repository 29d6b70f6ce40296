/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs: shared in the process by device, and kept on disk. */
#ifndef GPU_DEVICE_PROGRAM_H
#define GPU_DEVICE_PROGRAM_H

#include "device/device.h"

/* The .cl files of this folder, embedded when the plugin is built. NULL for a name that is none. */
const char *gpu_source_find(const char *name, size_t *size);

tn_status gpu_programs_create(gpu_device *device, gpu_programs **out, tn_error *err);
void gpu_programs_destroy(gpu_programs *programs); /* NULL allowed */

/* A request for a program: the prelude (prelude.cl) and `text`, with `options`. Equal requests give one program. */
typedef struct gpu_program_request {
  const char *text;    /* borrowed for the call */
  const char *options; /* "-DT=float -DN=3" */
  const char *label;   /* for messages: a file's name, or a node's */
  cl_program program;  /* out; borrowed, steady until gpu_programs_destroy */
} gpu_program_request;
/* Reads missing programs from disk or compiles them, several at a time. A build failure is TN_INTERNAL with
 * the label, the compiler's log and the source line it names. Any thread. */
tn_status gpu_programs_get(gpu_programs *programs, gpu_program_request *requests, size_t n, tn_error *err);

#endif
