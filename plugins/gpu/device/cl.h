/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL as this runtime uses it: entry points of version 1.2, looked up in the ICD loader when the plugin is
 * initialised, so that a process that does not use the runtime loads no part of OpenCL. */
#ifndef GPU_DEVICE_CL_H
#define GPU_DEVICE_CL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>
#include <tenon/runtime.h>

/* X(name): the function clNAME, called as cl.NAME(...). */
#define GPU_CL_FUNCTIONS(X)                                                                                          \
  X(GetPlatformIDs)                                                                                                  \
  X(GetPlatformInfo) X(GetDeviceIDs) X(GetDeviceInfo) X(CreateContext) X(ReleaseContext) X(CreateCommandQueue)       \
      X(ReleaseCommandQueue) X(CreateBuffer) X(CreateSubBuffer) X(ReleaseMemObject) X(CreateProgramWithSource)       \
          X(CreateProgramWithBinary) X(BuildProgram) X(GetProgramInfo) X(GetProgramBuildInfo) X(ReleaseProgram)      \
              X(CreateKernel) X(ReleaseKernel) X(SetKernelArg) X(GetKernelWorkGroupInfo) X(EnqueueNDRangeKernel)     \
                  X(EnqueueReadBuffer) X(EnqueueWriteBuffer) X(EnqueueCopyBuffer) X(EnqueueFillBuffer)               \
                      X(EnqueueMapBuffer) X(EnqueueUnmapMemObject) X(EnqueueMarkerWithWaitList) X(WaitForEvents)     \
                          X(ReleaseEvent) X(RetainEvent) X(GetEventInfo) X(GetEventProfilingInfo) X(Flush) X(Finish) \
                              X(UnloadPlatformCompiler)

typedef struct gpu_cl {
#define GPU_CL_FIELD(name) __typeof__(&cl##name) name;
  GPU_CL_FUNCTIONS(GPU_CL_FIELD)
#undef GPU_CL_FIELD
} gpu_cl;
extern gpu_cl cl; /* filled by gpu_cl_load */

/* Finds the loader and all functions. TN_UNAVAILABLE, with what is missing. */
tn_status gpu_cl_load(tn_error *err);
const char *gpu_cl_name(cl_int code); /* "CL_OUT_OF_RESOURCES"; "an error that OpenCL 1.2 does not know" for others */
/* TN_RESOURCE_EXHAUSTED for what has to do with memory, TN_UNAVAILABLE for the rest. */
tn_status gpu_cl_status(cl_int code);
/* The status of a call that failed, with a message: "clEnqueueNDRangeKernel on 'NAME': CL_OUT_OF_RESOURCES (-5)". */
tn_status gpu_cl_error(tn_error *err, cl_int code, const char *call, const char *device);

#endif
