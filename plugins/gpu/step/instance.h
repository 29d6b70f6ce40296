/* SPDX-License-Identifier: Apache-2.0 */
/* What one step at a time uses of a schedule. */
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
  gpu_block *faults; /* by site: what kernels find: words, and notes behind them; nothing where none can */
  gpu_found *found;  /* by site: the words, as the host has read them */
  gpu_block pinned;  /* the host's arena, where that is another: memory that the device reads fast */
  void *host_memory; /* where there is none: any memory */
  char *host;        /* aligned */
  void *scratch_memory, *scratch;
  cl_command_queue *queues, *timed; /* by lane; timed: take times; NULL until somebody wants them */
  bool *busy;         /* by lane: something may be in flight */
  cl_event *events;   /* by action: what others wait for, or whose times are wanted */
  cl_event *waits;    /* room for those that one action waits for */
  cl_kernel *kernels; /* by call */
  tn_view *views;     /* by value */
  tn_view **operands; /* by item */
  gpu_memory *bound;  /* by dynamic memory: what the kernels' arguments are */
  /* of the step that uses it */
  tn_tensor **tensors; /* by value: made for the step */
  tn_tensor **outputs; /* by output: made, and not given yet */
  gpu_block *blocks;   /* by dynamic memory: fetched ones */
  tn_tensor **made;
};

tn_status gpu_instance_take(gpu_schedule *s, gpu_instance **out, tn_error *err);
/* After a step, when nothing is in flight: it is kept for the next one, or, where the step harmed it, freed. */
void gpu_instance_leave(gpu_instance *in, bool unharmed);
void gpu_instances_free(gpu_instance *first); /* a list of idle ones, for tn_executable.instances_free */
gpu_memory gpu_memory_of(const gpu_instance *in, uint32_t root, uint32_t site);
gpu_memory gpu_argument(const gpu_instance *in, uint32_t call, const gpu_arg *arg); /* where a pointer's memory is */
cl_int gpu_set_memory(cl_kernel kernel, cl_uint arg, gpu_memory m); /* arguments arg and arg + 1 */

tn_status gpu_instance_queue(const gpu_schedule *s, uint32_t lane, cl_command_queue_properties properties, cl_command_queue *out,
                             tn_error *err);

#endif
