/* SPDX-License-Identifier: Apache-2.0 */
/* The ICD loader, opened once, and the names of OpenCL's error codes. */
#include "device/cl.h"

#include "device/driver.h"

#include <dlfcn.h>
#include <string.h>

gpu_cl cl;

static gpu_cl found; /* as the loader has them */
static void *loader;

static const struct {
  const char *name;
  size_t at;
} functions[] = {
#define GPU_CL_ENTRY(name) { "cl" #name, offsetof(gpu_cl, name) },
  GPU_CL_FUNCTIONS(GPU_CL_ENTRY)
#undef GPU_CL_ENTRY
};

static void *open_loader(tn_error *err)
{
  void *handle = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) handle = dlopen("libOpenCL.so", RTLD_NOW | RTLD_LOCAL);
  if (handle != NULL) return handle;
  const char *why = dlerror();
  tn_error_set(err, TN_UNAVAILABLE, "there is no OpenCL on this machine (%s); Debian has it in ocl-icd-libopencl1",
               why != NULL ? why : "dlopen gives no reason");
  return NULL;
}

/* ---- calls in which drivers make threads ---- */

static cl_context create_context(const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
                                 void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
                                 cl_int *code)
{
  sigset_t before;
  gpu_signals_block(&before);
  cl_context context = found.CreateContext(properties, n, devices, notify, user, code);
  gpu_signals_restore(&before);
  return context;
}

static cl_command_queue create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                     cl_int *code)
{
  sigset_t before;
  gpu_signals_block(&before);
  cl_command_queue queue = found.CreateCommandQueue(context, device, properties, code);
  gpu_signals_restore(&before);
  return queue;
}

tn_status gpu_cl_load(tn_error *err)
{
  if (loader != NULL) return TN_OK;
  void *opened = open_loader(err);
  if (opened == NULL) return TN_UNAVAILABLE;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(opened, functions[i].name);
    if (function == NULL) {
      dlclose(opened);
      return tn_error_set(err, TN_UNAVAILABLE, "libOpenCL.so has no %s, which OpenCL has since version 1.2",
                          functions[i].name);
    }
    memcpy((char *)&found + functions[i].at, &function, sizeof function);
  }
  cl = found;
  cl.CreateContext = create_context;
  cl.CreateCommandQueue = create_queue;
  loader = opened;
  return TN_OK;
}

/* ---- errors ---- */

#define GPU_CL_CODES(X)                                                                                              \
  X(DEVICE_NOT_FOUND) X(DEVICE_NOT_AVAILABLE) X(COMPILER_NOT_AVAILABLE) X(MEM_OBJECT_ALLOCATION_FAILURE)               \
  X(OUT_OF_RESOURCES) X(OUT_OF_HOST_MEMORY) X(PROFILING_INFO_NOT_AVAILABLE) X(MEM_COPY_OVERLAP)                        \
  X(IMAGE_FORMAT_MISMATCH) X(IMAGE_FORMAT_NOT_SUPPORTED) X(BUILD_PROGRAM_FAILURE) X(MAP_FAILURE)                       \
  X(MISALIGNED_SUB_BUFFER_OFFSET) X(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) X(COMPILE_PROGRAM_FAILURE)              \
  X(LINKER_NOT_AVAILABLE) X(LINK_PROGRAM_FAILURE) X(DEVICE_PARTITION_FAILED) X(KERNEL_ARG_INFO_NOT_AVAILABLE)          \
  X(INVALID_VALUE) X(INVALID_DEVICE_TYPE) X(INVALID_PLATFORM) X(INVALID_DEVICE) X(INVALID_CONTEXT)                     \
  X(INVALID_QUEUE_PROPERTIES) X(INVALID_COMMAND_QUEUE) X(INVALID_HOST_PTR) X(INVALID_MEM_OBJECT)                       \
  X(INVALID_IMAGE_FORMAT_DESCRIPTOR) X(INVALID_IMAGE_SIZE) X(INVALID_SAMPLER) X(INVALID_BINARY)                        \
  X(INVALID_BUILD_OPTIONS) X(INVALID_PROGRAM) X(INVALID_PROGRAM_EXECUTABLE) X(INVALID_KERNEL_NAME)                     \
  X(INVALID_KERNEL_DEFINITION) X(INVALID_KERNEL) X(INVALID_ARG_INDEX) X(INVALID_ARG_VALUE) X(INVALID_ARG_SIZE)         \
  X(INVALID_KERNEL_ARGS) X(INVALID_WORK_DIMENSION) X(INVALID_WORK_GROUP_SIZE) X(INVALID_WORK_ITEM_SIZE)                \
  X(INVALID_GLOBAL_OFFSET) X(INVALID_EVENT_WAIT_LIST) X(INVALID_EVENT) X(INVALID_OPERATION) X(INVALID_GL_OBJECT)       \
  X(INVALID_BUFFER_SIZE) X(INVALID_MIP_LEVEL) X(INVALID_GLOBAL_WORK_SIZE) X(INVALID_PROPERTY)                          \
  X(INVALID_IMAGE_DESCRIPTOR) X(INVALID_COMPILER_OPTIONS) X(INVALID_LINKER_OPTIONS)                                    \
  X(INVALID_DEVICE_PARTITION_COUNT)

const char *gpu_cl_name(cl_int code)
{
  switch (code) {
  case CL_SUCCESS: return "CL_SUCCESS";
  case -1001: return "CL_PLATFORM_NOT_FOUND_KHR"; /* of the loader, cl_khr_icd */
#define GPU_CL_CASE(name) case CL_##name: return "CL_" #name;
  GPU_CL_CODES(GPU_CL_CASE)
#undef GPU_CL_CASE
  default: return "an error that OpenCL 1.2 does not know";
  }
}

tn_status gpu_cl_status(cl_int code)
{
  switch (code) {
  case CL_SUCCESS: return TN_OK;
  case CL_MEM_OBJECT_ALLOCATION_FAILURE:
  case CL_OUT_OF_RESOURCES:
  case CL_OUT_OF_HOST_MEMORY:
  case CL_INVALID_BUFFER_SIZE: return TN_RESOURCE_EXHAUSTED;
  default: return TN_UNAVAILABLE;
  }
}

/* Drivers say CL_OUT_OF_RESOURCES of a kernel that wrote where it must not, too: where work is queued or
 * waited for, it is no word of memory. */
static bool runs_work(const char *call)
{
  static const char *const calls[] = { "clEnqueue", "clFinish", "clFlush", "clWaitForEvents" };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (strncmp(call, calls[i], strlen(calls[i])) == 0) return true;
  return false;
}

tn_status gpu_cl_error(tn_error *err, cl_int code, const char *call, const char *device)
{
  tn_status st = gpu_cl_status(code);
  if (code == CL_OUT_OF_RESOURCES && runs_work(call)) st = TN_UNAVAILABLE;
  if (st == TN_OK) st = TN_INTERNAL; /* the caller says that it failed */
  return tn_error_set(err, st, "%s on '%.100s': %s (%d)", call, device, gpu_cl_name(code), (int)code);
}
