/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of parts of plugins/gpu that are linked into the test. TENON_TEST_GPU=required makes
 * a missing device a failure. */
#ifndef TENON_TESTS_SUPPORT_GPU_PARTS_H
#define TENON_TESTS_SUPPORT_GPU_PARTS_H

#include <stdlib.h>

#include "plugins/gpu/device/memory.h"
#include "plugins/gpu/device/program.h"
#include <conformance/support/tap.h>

/* A use of the first device, or NULL. */
static inline gpu_device *gpu_parts_use(tn_error *err)
{
  tn_status st = gpu_cl_load(err);
  if (st == TN_OK && gpu_devices_count() == 0) st = gpu_devices_find(err);
  if (st != TN_OK) return NULL;
  gpu_device *d = gpu_devices_at(0);
  return gpu_device_use(d, err) == TN_OK ? d : NULL;
}

static inline bool gpu_parts_required(void)
{
  const char *text = getenv("TENON_TEST_GPU");
  return text != NULL && strcmp(text, "required") == 0;
}

/* gpu_device *d: a use of the first device; the test is skipped, or fails, if there is none. */
#define GPU_PARTS_DEVICE(d)                                                                                            \
  tn_error gpu_parts_error = TN_ERROR_INIT;                                                                            \
  gpu_device *d = gpu_parts_use(&gpu_parts_error);                                                                     \
  if (d == NULL) tap_note("%s", tn_error_message(&gpu_parts_error));                                                   \
  tn_error_clear(&gpu_parts_error);                                                                                    \
  if (d == NULL && !gpu_parts_required()) TAP_SKIP("no OpenCL device");                                                \
  REQUIRE_PTR(d)

/* A command queue for the test. */
static inline cl_command_queue gpu_parts_queue(gpu_device *d)
{
  cl_int code;
  cl_command_queue q = cl.CreateCommandQueue(d->context, d->id, 0, &code);
  REQUIRE_INT(code, CL_SUCCESS);
  return q;
}

#endif
