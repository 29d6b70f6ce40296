/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a schedule that one step at a time uses. */
#ifndef GPU_STEP_INSTANCE_H
#define GPU_STEP_INSTANCE_H

#include "schedule/schedule.h"

typedef struct gpu_found { /* as in prelude.cl */
  cl_uint words[4]; /* 1 + call, the lowest place counted down, notes made */
} gpu_found;

typedef struct gpu_instance gpu_instance;
struct gpu_instance {
  gpu_instance *next;
  gpu_schedule *schedule;
  gpu_block *arenas; /* by site: the first part of each; then the others */
  gpu_block *faults; /* by site: record of invalid elements: words, then notes; empty if no launch can find any */
  gpu_found *found;  /* by site: the words, as the host has read them */
  gpu_block pinned;  /* the host's arena, if it is separate: memory that the device reads fast */
  void *host_memory; /* ordinary memory, if there is no pinned memory */
  char *host;        /* aligned */
  void *scratch_memory, *scratch;
  cl_command_queue *queues, *timed; /* by lane; timed: with profiling; NULL until a step needs them */
  bool *busy;         /* by lane: something may be in flight */
  cl_event *events;   /* by action: for actions that others wait for, or whose times are recorded */
  cl_event *waits;    /* buffer for the wait list of one action */
  cl_kernel *kernels; /* by call */
  tn_view *views;     /* by value */
  tn_view **operands; /* by item */
  gpu_memory *bound;  /* by dynamic memory: the memory that kernel arguments are set to */
  /* of the step that uses it */
  tn_tensor **tensors; /* by value: made for the step */
  tn_tensor **outputs; /* by output: made, and not given yet */
  gpu_block *blocks;   /* by dynamic memory: fetched ones */
  tn_tensor **made;
};

tn_status gpu_instance_take(gpu_schedule *s, gpu_instance **out, tn_error *err);
/* After a step, when no command is in flight: keeps the instance for the next step, or frees it if the step
 * harmed it. */
void gpu_instance_leave(gpu_instance *in, bool unharmed);
void gpu_instances_destroy(gpu_instance *first); /* a list of idle ones, for tn_executable.instances_free */
gpu_memory gpu_memory_of(const gpu_instance *in, uint32_t root, uint32_t site);
gpu_memory gpu_argument(const gpu_instance *in, uint32_t call, const gpu_arg *arg); /* memory of a pointer argument */
cl_int gpu_set_memory(cl_kernel kernel, cl_uint arg, gpu_memory m); /* arguments arg and arg + 1 */

tn_status gpu_instance_queue(const gpu_schedule *s, uint32_t lane, cl_command_queue_properties properties,
                             cl_command_queue *out, tn_error *err);

#endif
