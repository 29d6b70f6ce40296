/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a schedule, and where they are stored. */
#ifndef GPU_SCHEDULE_SLOTS_H
#define GPU_SCHEDULE_SLOTS_H

#include "schedule/constants.h"

#define GPU_NOWHERE SIZE_MAX
#define GPU_ALIGN ((size_t)256) /* of blocks in the arenas */

enum {
  GPU_FROM_FEED,     /* the step has its tensor: feeds, and outputs of earlier segments */
  GPU_FROM_CONSTANT, /* `data` */
  GPU_FROM_KNOWN,    /* `data`: follows from the shapes */
  GPU_FROM_NODE,     /* computed, plain elements */
  GPU_FROM_OWN,      /* computed into a tensor made for the step: elements that own memory */
  GPU_FROM_GIVEN     /* a tensor that the kernel makes */
};

/* A block of an arena, and the numbers of the first and the last action that use it. */
typedef struct gpu_span {
  uint32_t first, last; /* first GPU_NONE: not used */
  size_t at;
} gpu_span;

/* A queue of a step. Number 0 is the calling thread, which runs nodes on the CPU. The queues of a device are
 * in order, and run concurrently. */
typedef struct gpu_lane {
  uint32_t site;     /* GPU_NONE: the calling thread */
  size_t scratch_at; /* scratch memory of nodes in this lane, in the site's arena */
} gpu_lane;

/* A device of the session, as the schedule uses it. */
typedef struct gpu_site {
  gpu_device *device;
  gpu_budget *budget;
  bool used;                      /* it runs nodes or holds a feed; otherwise it has no lanes and no memory */
  uint32_t first_lane, n_lanes;   /* for kernels */
  bool may_fault;                 /* one of its launches may find invalid elements */
  uint32_t up, down;              /* lanes for uploads and reads; GPU_NONE: those of kernels */
  size_t arena_bytes;
  size_t part_bytes;              /* size of each arena part; the last one may be smaller */
  uint32_t more_parts; /* index of the second part in the arenas of an instance; the first part has the site's */
  size_t statics_bytes;
  gpu_block statics;              /* tables and known values */
} gpu_site;

/* A value in the memory of a site: memory of its own for roots. */
typedef struct gpu_place {
  gpu_span span;
  uint32_t dynamic;  /* number of a memory that differs from step to step, GPU_NONE = none */
  uint32_t written;  /* while actions are made: the one that wrote the content, GPU_NONE = none of them */
  bool there;        /* while actions are made: it has the content */
  gpu_constant *on;  /* of constants that the device reads */
} gpu_place;

/* A value of the plan. The fields after `root` apply to values that are their own root. */
typedef struct gpu_slot {
  const int64_t *dims; /* the layout's */
  int64_t count;
  size_t bytes;
  const tn_operation *op; /* whose output it is */
  const void *data;
  const tn_tensor *constant;
  const void
      *fed; /* while nodes are planned: elements of a feed that gives shapes, so that they are the same in all steps */
  tn_dtype dtype;
  int32_t rank;      /* -1: known after the kernel has run */
  uint32_t source;   /* the value whose memory it shares by the layout */
  uint32_t output;   /* index in `outs` of the output that the layout writes it into, GPU_NONE = none */
  uint8_t kind;      /* GPU_FROM_... */
  uint32_t fed_at;   /* site of a feed on a device, GPU_NONE = none */
  bool escapes;      /* an output of the step shows it */
  bool crosses;      /* of a root: a later segment reads it, or a view of it */

  uint32_t root;     /* value whose memory it is; GPU_NONE: not decided yet */
  uint32_t last;     /* position of the item that reads it last */
  uint32_t home;     /* of roots, in the end: a site that has it in a memory apart from the host's; GPU_NONE = none */
  bool sent;         /* a device reads it or has it */
  bool unified;      /* one memory for host and device: the span is that of the site */
  bool on_host;      /* while actions are made: the content is in host memory */
  bool straight;     /* the host computes it into the output's tensor */
  gpu_span host;
} gpu_slot;

#endif
