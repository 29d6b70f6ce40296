/* SPDX-License-Identifier: Apache-2.0 */
/* A step of one schedule, while it runs. */
#ifndef GPU_STEP_RUN_H
#define GPU_STEP_RUN_H

#include "step/instance.h"

typedef struct gpu_run gpu_run;

/* Where the outputs of a run are stored: tensors for a step, the kit's memory for a part. */
typedef struct gpu_output_policy {
  tn_status (*begin)(gpu_run *run, tn_error *err); /* prepares outputs that nodes write directly; NULL: none */
  tn_status (*read)(gpu_run *run, uint32_t action, tn_error *err); /* enqueues what reads or copies one */
  tn_status (*give)(gpu_run *run, tn_error *err);  /* when all outputs are computed */
} gpu_output_policy;
extern const gpu_output_policy gpu_step_outputs; /* outputs.c */

struct gpu_run {
  gpu_instance *in;
  const gpu_schedule *schedule;
  tn_step *step;
  gpu_values *values;
  const gpu_output_policy *policy;
  tn_tensor **tensors; /* the instance's, as the next three */
  tn_tensor **outputs;
  gpu_block *blocks;
  tn_tensor **made;
  void *map;           /* while the host has the shared arena */
  int64_t *first_ns;   /* by site: when its first call was enqueued; NULL: no times are recorded */
  int64_t begun_ns;    /* if records are requested */
  tn_view *const *given; /* the outputs of a part; else NULL */
  cl_event *marks;     /* by call: marker before a library's call, if times are recorded */
  bool records;
  bool unharmed;       /* it failed only because of invalid elements: the instance is usable */
};

/* Runs the actions of the schedule once. The caller takes the instance before, and leaves it afterwards. */
tn_status gpu_run_step(gpu_run *run, tn_error *err);

#endif
