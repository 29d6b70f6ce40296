/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a schedule: items, launches, actions, outputs. */
#ifndef GPU_SCHEDULE_ACTIONS_H
#define GPU_SCHEDULE_ACTIONS_H

#include "schedule/constants.h"

enum { GPU_ON_NOTHING, GPU_ON_HOST, GPU_ON_DEVICE };

/* An instruction of the plan. */
typedef struct gpu_item {
  tn_plan_instruction in;
  size_t host_scratch;
  bool computes;
  uint8_t where;  /* GPU_ON_... */
  uint8_t wanted; /* as the device name of its node requires; GPU_ON_NOTHING: no device name */
  uint32_t position; /* in the schedule's sequence */
  uint32_t site;  /* if on a device: its site */
  uint32_t lane;  /* and the lane of its launches */
  char *reason;   /* why it is not on the device; NULL */
  const gpu_op *op; /* of `built` */
  gpu_built *built; /* NULL: it cannot be on the device */
  uint32_t *reads;  /* bit i % 32 of word i / 32: the launches read input i */
  double device_ns, host_ns;
  uint32_t first_call, n_calls;
  gpu_constant **packs; /* by pack; NULL for tables */
  size_t *tables;       /* by pack: offset in the statics */
  uint32_t first_operand; /* of the views of an instance */
} gpu_item;

/* A launch. */
typedef struct gpu_call {
  const gpu_launch *launch;
  cl_program program; /* NULL: a copy, or a launch of a library */
  uint32_t item;
  uint32_t action;
} gpu_call;

enum {
  GPU_DO_HOST,   /* item `id` on the CPU */
  GPU_DO_CALL,   /* call `id` */
  GPU_DO_UPLOAD, /* value `id` from host memory to the device */
  GPU_DO_READ,   /* value `id` from the device to host memory; `waits`: blocks until it is read */
  GPU_DO_ENTER,  /* the host maps the shared arena */
  GPU_DO_LEAVE,  /* the host unmaps it */
  GPU_DO_AWAIT,  /* the calling thread waits for action `id` */
  GPU_DO_OUT     /* output `id` is read, or copied to memory that stays */
};
typedef struct gpu_action {
  uint8_t what;
  bool waits;
  bool awaited; /* another lane waits for it */
  uint32_t id;
  uint32_t lane;
  uint32_t first_wait, n_waits; /* in the schedule's `waits`: actions of other lanes that must end before it begins */
  bool looks; /* check the devices' fault records: before host items and after waits */
} gpu_action;

enum {
  GPU_OUT_STRAIGHT, /* computed into the output's tensor */
  GPU_OUT_HOST,     /* copied from host memory */
  GPU_OUT_TENSOR,   /* OWN, GIVEN */
  GPU_OUT_READ,     /* read from the device */
  GPU_OUT_DYNAMIC,  /* device memory number `dynamic` becomes a tensor */
  GPU_OUT_COPY,     /* the same, after the value was copied into it */
  GPU_OUT_FED       /* a view of a feed on the device */
};
typedef struct gpu_out {
  uint32_t value;
  uint32_t number; /* of the step's outputs */
  uint8_t how;
  uint32_t dynamic;
  uint32_t site; /* where it is on a device */
} gpu_out;

/* A kernel argument that each step sets, since its memory differs from step to step. */
typedef struct gpu_binding {
  uint32_t call;
  cl_uint arg; /* of the kernel */
  uint32_t dynamic;
} gpu_binding;

/* A device memory that differs from step to step. */
typedef struct gpu_dynamic {
  uint32_t value;
  uint32_t site;
  size_t bytes; /* size, for outputs and values that later segments read; 0: the memory of a feed */
} gpu_dynamic;

#endif
