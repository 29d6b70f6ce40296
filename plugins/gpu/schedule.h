/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor's files share: executables, schedules, instances. */
#ifndef GPU_SCHEDULE_H
#define GPU_SCHEDULE_H

#include "base.h"
#include "executor.h"

#include <stdatomic.h>

#define GPU_NOWHERE SIZE_MAX
#define GPU_ALIGN ((size_t)256) /* of blocks in the arenas */

/* ---- constants on a device (constants.c) ---- */

/* A constant's elements, or a form of them, in device memory: shared by all plans that use the tensor. Counted. */
typedef struct gpu_constant gpu_constant;
struct gpu_constant {
  gpu_constant *next;
  const gpu_device *device;
  const tn_tensor *tensor; /* a reference */
  const void *form;        /* the function that made the form; NULL: the elements */
  uint64_t key;
  size_t bytes;
  size_t n_users;
  gpu_block block;
};
tn_status gpu_constant_get(gpu_budget *budget, gpu_device *device, cl_command_queue queue, const tn_tensor *tensor,
                           const gpu_pack *pack, gpu_constant **out, tn_error *err);
void gpu_constant_put(gpu_constant *constant); /* NULL allowed */

/* ---- schedules ---- */

enum {
  GPU_FROM_FEED,     /* the step has its tensor: feeds, and what earlier segments made */
  GPU_FROM_CONSTANT, /* `data` */
  GPU_FROM_KNOWN,    /* `data`: follows from the shapes */
  GPU_FROM_NODE,     /* computed, plain elements */
  GPU_FROM_OWN,      /* computed into a tensor made for the step: elements that own memory */
  GPU_FROM_GIVEN     /* a tensor that the kernel makes */
};

/* A block of an arena, and when it is used: numbers of actions. */
typedef struct gpu_span {
  uint32_t first, last; /* first GPU_NONE: not used */
  size_t at;
} gpu_span;

/* A queue of a step. Number 0 stands for the calling thread, which does what the CPU does; those of a device are in order, and
 * run beside each other. */
typedef struct gpu_lane {
  uint32_t site;     /* GPU_NONE: the calling thread */
  size_t scratch_at; /* in the site's arena: of nodes in this lane */
} gpu_lane;

/* A device of the session, as the schedule uses it. */
typedef struct gpu_site {
  gpu_device *device;
  gpu_budget *budget;
  bool used;                      /* nodes run there, or a feed lies there; else it has no lanes and no memory */
  uint32_t first_lane, n_lanes;   /* for kernels */
  bool may_fault;                 /* a launch there may find elements that it cannot take */
  uint32_t up, down;              /* lanes for what is sent there, and read from there; GPU_NONE: those of kernels */
  size_t arena_bytes;
  size_t part_bytes;              /* of which parts of it have so many, but for the last */
  uint32_t more_parts;            /* the second part's number among the arenas of an instance; the first one's is the site's */
  size_t statics_bytes;
  gpu_block statics;              /* tables and known values */
} gpu_site;

/* A value in the memory of a site: memory of its own for roots. */
typedef struct gpu_place {
  gpu_span span;
  uint32_t dynamic;  /* number of a memory that differs from step to step, GPU_NONE = none */
  uint32_t written;  /* while actions are made: which one wrote the content, GPU_NONE = none of them */
  bool there;        /* while actions are made: it has the content */
  gpu_constant *on;  /* of constants that the device reads */
} gpu_place;

/* A value of the plan. What stands behind `root` counts for values that are their own root. */
typedef struct gpu_slot {
  const int64_t *dims; /* the layout's */
  int64_t count;
  size_t bytes;
  const tn_operation *op; /* that it is an output of */
  const void *data;
  const tn_tensor *constant;
  const void *fed; /* while nodes are planned: elements of a feed that gives shapes, so that they are the same in all steps */
  tn_dtype dtype;
  int32_t rank;      /* -1: the kernel tells */
  uint32_t source;   /* what the layout says whose memory it shares */
  uint32_t output;   /* place in `outs` of what the layout has it written into, GPU_NONE = none */
  uint8_t kind;      /* GPU_FROM_... */
  uint32_t fed_at;   /* site of a feed that lies on a device, GPU_NONE = none */
  bool escapes;      /* an output of the step shows it */
  bool crosses;      /* of a root: a later segment reads it, or a view of it */

  uint32_t root;     /* value whose memory it is; GPU_NONE: not there yet */
  uint32_t last;     /* position of the item that reads it last */
  uint32_t home;     /* of roots, in the end: a site that has it and that is not the only memory's; GPU_NONE = none */
  bool sent;         /* a device reads it, or has it */
  bool unified;      /* one memory for host and device: the span is that of the site */
  bool on_host;      /* while actions are made: the content is in host memory */
  bool straight;     /* the host computes it into the output's tensor */
  gpu_span host;
} gpu_slot;

enum { GPU_ON_NOTHING, GPU_ON_HOST, GPU_ON_DEVICE };

/* An instruction of the plan. */
typedef struct gpu_item {
  tn_plan_instruction in;
  size_t host_scratch;
  bool computes;
  uint8_t where;  /* GPU_ON_... */
  uint8_t wanted; /* what the device of its node says: GPU_ON_NOTHING: nothing */
  uint32_t position; /* in the schedule's sequence */
  uint32_t site;  /* on the device: which */
  uint32_t lane;  /* and where its launches are enqueued */
  char *reason;   /* why it is not on the device; NULL */
  const gpu_op *op; /* of `built` */
  gpu_built *built; /* NULL: it cannot be on the device */
  uint32_t *reads;  /* bit i % 32 of word i / 32: the launches read input i */
  double device_ns, host_ns;
  uint32_t first_call, n_calls;
  gpu_constant **packs; /* by pack; NULL for tables */
  size_t *tables;       /* by pack: where it lies among the statics */
  uint32_t first_operand; /* of the views of an instance */
} gpu_item;

/* A launch. */
typedef struct gpu_call {
  const gpu_launch *launch;
  cl_program program; /* NULL: a copy, or a library's */
  uint32_t item;
  uint32_t action;
} gpu_call;

enum {
  GPU_DO_HOST,   /* item `id` on the CPU */
  GPU_DO_CALL,   /* call `id` */
  GPU_DO_UPLOAD, /* value `id` from host memory to the device */
  GPU_DO_READ,   /* value `id` from the device to host memory; `waits`: until it is there */
  GPU_DO_ENTER,  /* the host uses the shared arena from here */
  GPU_DO_LEAVE,  /* and no more */
  GPU_DO_AWAIT,  /* the calling thread waits for action `id` */
  GPU_DO_OUT     /* output `id` is read, or copied to memory that stays */
};
typedef struct gpu_action {
  uint8_t what;
  bool waits;
  bool awaited; /* another lane waits for it */
  uint32_t id;
  uint32_t lane;
  uint32_t first_wait, n_waits; /* in the schedule's `waits`: what of other lanes must be over before it begins */
  bool looks; /* what devices found in the elements is looked at: before an item of the host, after a wait */
} gpu_action;

enum {
  GPU_OUT_STRAIGHT, /* it is there */
  GPU_OUT_HOST,     /* copied from host memory */
  GPU_OUT_TENSOR,   /* OWN, GIVEN */
  GPU_OUT_READ,     /* read from the device */
  GPU_OUT_DYNAMIC,  /* device memory number `dynamic` becomes a tensor */
  GPU_OUT_COPY,     /* as that, after the value was copied there */
  GPU_OUT_FED       /* a view of what was fed on the device */
};
typedef struct gpu_out {
  uint32_t value;
  uint32_t number; /* of the step's outputs */
  uint8_t how;
  uint32_t dynamic;
  uint32_t site; /* where it is on a device */
} gpu_out;

/* An argument that is set again in each step that brings another memory. */
typedef struct gpu_binding {
  uint32_t call;
  cl_uint arg; /* of the kernel */
  uint32_t dynamic;
} gpu_binding;

/* A device memory that differs from step to step. */
typedef struct gpu_dynamic {
  uint32_t value;
  uint32_t site;
  size_t bytes; /* of fetched ones, and what later segments read; 0: a feed's */
} gpu_dynamic;

typedef struct gpu_schedule gpu_schedule;
typedef struct gpu_order gpu_order; /* order.c */
typedef struct gpu_instance gpu_instance;

struct gpu_schedule {
  gpu_schedule *next; /* guarded by the executable's mu, as are users, state and idle */
  size_t n_users;     /* steps, and the list */
  int state;          /* 0: being made, 1: there, -1: it failed */
  gpu_instance *idle;
  int64_t *key;
  size_t n_key;

  tn_executable *executable;
  uint32_t segment;
  /* What is made; from here on it is cleared before it is made again. */
  int64_t *dims;           /* of values that earlier segments made */
  gpu_site *sites;         /* by device of the session */
  uint32_t n_sites;
  uint32_t n_arenas;       /* of an instance */
  gpu_lane *lanes;
  uint32_t n_lanes;
  tn_plan_layout *layout;
  gpu_slot *slots;
  uint32_t n_slots;
  gpu_place *places;       /* by site, then by slot */
  gpu_item *items;
  uint32_t n_items;
  gpu_call *calls;
  uint32_t n_calls;
  gpu_action *actions;
  uint32_t n_actions, actions_room;
  uint32_t *waits;         /* actions */
  uint32_t n_waits, waits_room;
  gpu_order *order;        /* while the schedule is made */
  uint32_t *sequence;      /* items, in the order in which they are gone through */
  gpu_out *outs;
  uint32_t n_outs, n_feeds;
  gpu_binding *bindings;
  uint32_t n_bindings, bindings_room;
  gpu_dynamic *dynamics;
  uint32_t n_dynamic;
  uint32_t n_operands;     /* pointers to views, of all host items */
  uint32_t max_outputs;    /* of an item */
  bool apart;              /* host and device have arenas of their own, also where they share their memory */
  bool too_large;          /* one arena for both is more than the device gives at once */
  bool part;               /* the kit runs what is around it, and has the memory of what it reads and gives */
  bool shared;             /* one arena for host and device, of which there is one */
  bool possible;           /* the device could run some of the nodes */
  bool looks;              /* after the last action that looks a launch may find elements that it cannot take */
  uint32_t *late;          /* values whose host memory differs from step to step */
  uint32_t n_late;
  size_t host_bytes, host_scratch, constant_bytes;
  uint32_t n_device, n_host, n_launches, n_copies; /* in one step */
};

/* A part of the plan whose shapes follow from what it reads. */
typedef struct gpu_segment {
  uint32_t begin, end; /* instructions */
  const uint32_t *entries;
  uint32_t n_entries;
  uint32_t *outputs; /* of the step, that it gives */
  uint32_t n_outputs;
} gpu_segment;

struct tn_executable {
  const tn_plan *plan;
  tn_executable *kit;
  tn_runtime_session *session;
  void (*instances_free)(struct gpu_instance *first); /* frees the idle instances of a schedule */
  bool straight;           /* steps run by schedules; else the kit has all of them, and the rest is not there */
  _Atomic bool hopeless;   /* no device can run any of the nodes */
  bool placed;             /* it was prepared for a device: outputs end there, whatever made them */
  uint32_t placed_at;      /* the device's number in the session */
  uint32_t n_values, n_outputs, n_segments;
  gpu_segment *segments;
  uint32_t *feeds;         /* value of each input of the step; GPU_NONE: nobody reads it */
  uint32_t *made_in;       /* by value: segment */
  uint32_t *read_in;       /* by value: the last segment that reads it from outside */
  uint32_t *computed_from; /* by value, a bit: an instruction makes it */
  bool *gives_shapes;      /* by value: shapes follow from its elements */
  bool *crosses;           /* by value: a later segment than its own reads it */
  pthread_mutex_t mu;
  pthread_cond_t made;     /* a schedule is there, or failed */
  gpu_schedule *schedules; /* used last first */
  size_t n_schedules;
  struct gpu_values *idle; /* of no step */
};

static inline bool gpu_is_computed(const tn_executable *e, uint32_t v) { return (e->computed_from[v / 32] >> v % 32 & 1) != 0; }

/* What a step has of the plan's values: feeds, and what segments made that later ones read. */
typedef struct gpu_values {
  struct gpu_values *next; /* of those that wait for a step; guarded by the executable's mu */
  int64_t *key;            /* room for keys of schedules */
  size_t key_room;
  tn_tensor **tensors; /* by value */
  tn_tensor **feeds;   /* by input */
  size_t n_feeds;
  gpu_schedule **used; /* by segment: they have the shapes of what is gone by now */
  tn_view *views;      /* by value, for laying out; NULL with one segment. dtype 0: not there */
} gpu_values;

/* lookup.c: the schedule of a segment for these values, as a user of it. */
tn_status gpu_schedule_take(tn_executable *e, uint32_t segment, tn_step *step, gpu_values *values, gpu_schedule **out,
                            tn_error *err);
void gpu_schedule_leave(gpu_schedule *s);
void gpu_schedules_free(tn_executable *e);
/* Makes what gpu_schedule_take found missing. */
tn_status gpu_schedule_make(gpu_schedule *s, const gpu_values *values, tn_error *err);
void gpu_schedule_clear(gpu_schedule *s); /* what make made */
/* The rest of making, when values and instructions are read. */
tn_status gpu_schedule_sites(gpu_schedule *s, tn_error *err); /* before */
tn_status gpu_schedule_build(gpu_schedule *s, tn_error *err);
void gpu_schedule_log(const gpu_schedule *s, int64_t ns);

/* nodes.c: which items the device could run. */
tn_status gpu_nodes_plan(gpu_schedule *s, tn_error *err);
/* placement.c: sets `where` of all items. */
tn_status gpu_choose_places(gpu_schedule *s, tn_error *err);
void gpu_placement_note(const gpu_schedule *s); /* in the session's report of where nodes run */
/* transfer.c: lanes, actions, roots, spans, outputs. */
tn_status gpu_transfers(gpu_schedule *s, tn_error *err);
/* bindings.c: the arguments that differ from step to step. */
tn_status gpu_bindings(gpu_schedule *s, tn_error *err);
/* arena.c: where the blocks lie; the schedule's order is needed for it and goes. */
tn_status gpu_arenas(gpu_schedule *s, tn_error *err);
/* constants.c: what the device reads and no step changes. */
tn_status gpu_statics(gpu_schedule *s, tn_error *err);
/* faults.c: where the host looks what kernels found. */
void gpu_faults_plan(gpu_schedule *s);

/* A later segment reads value v, which this one makes. */
static inline bool gpu_hands_on(const gpu_schedule *s, uint32_t v)
{
  const tn_executable *e = s->executable;
  return e->crosses[v] && e->made_in[v] == s->segment && s->slots[v].root != GPU_NONE;
}
static inline gpu_place *gpu_place_at(const gpu_schedule *s, uint32_t site, uint32_t root)
{
  return &s->places[(size_t)site * s->n_slots + root];
}
/* What a device makes for the caller is given as it lies there. */
static inline bool gpu_outputs_stay(const gpu_schedule *s)
{
  return !s->part && (s->executable->placed || s->executable->session->settings.fetch_device);
}
static inline bool gpu_reads(const gpu_item *item, uint32_t i) { return (item->reads[i / 32] >> i % 32 & 1) != 0; }
static inline bool gpu_is_plain(tn_dtype dtype) { return dtype != TN_STRING && dtype != TN_RESOURCE && dtype != TN_VARIANT; }

/* ---- instances ---- */

typedef struct gpu_found { /* as in prelude.cl */
  cl_uint words[4]; /* 1 + call, the lowest place counted down, notes made */
} gpu_found;

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
void gpu_instance_give_back(gpu_instance *in);
void gpu_instance_destroy(gpu_instance *in); /* NULL allowed; nothing is in flight */
void gpu_instances_free(gpu_instance *first); /* a list of idle ones, for tn_executable.instances_free */
gpu_memory gpu_memory_of(const gpu_instance *in, uint32_t root, uint32_t site);
gpu_memory gpu_argument(const gpu_instance *in, uint32_t call, const gpu_arg *arg); /* where a pointer's memory is */
cl_int gpu_set_memory(cl_kernel kernel, cl_uint arg, gpu_memory m); /* arguments arg and arg + 1 */

tn_status gpu_make_queue(const gpu_schedule *s, uint32_t lane, cl_command_queue_properties properties, cl_command_queue *out,
                         tn_error *err);

/* ---- steps ---- */

typedef struct gpu_run gpu_run;

/* Where the outputs of a run go: those of a step are tensors, those of a part lie in the kit's memory. */
typedef struct gpu_output_policy {
  tn_status (*begin)(gpu_run *run, tn_error *err); /* what is written straight; NULL: nothing */
  tn_status (*read)(gpu_run *run, uint32_t action, tn_error *err); /* enqueues what reads or copies one */
  tn_status (*give)(gpu_run *run, tn_error *err);  /* when all is there */
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
  int64_t *first_ns;   /* by site: when its first call was enqueued; NULL: nobody wants times */
  int64_t begun_ns;    /* when somebody wants records */
  tn_view *const *given; /* of a part: where its outputs go; else NULL */
  cl_event *marks;     /* by call: in front of those of libraries, when times are wanted */
  bool records;
  bool unharmed;       /* it failed by its elements alone: the instance is as before */
};

/* What an action's call is told: what to wait for, and where to put its event. */
typedef struct gpu_links {
  cl_command_queue queue;
  cl_uint n_waits;
  const cl_event *waits; /* NULL without any */
  cl_event *event;       /* NULL: nobody asks */
} gpu_links;
/* lane.c */
gpu_links gpu_step_links(gpu_run *run, uint32_t action); /* and its lane is busy */
tn_status gpu_step_flush(gpu_run *run, tn_error *err);   /* all lanes with work in flight */
tn_status gpu_step_before_waiting(gpu_run *run, tn_error *err); /* flushes where lanes may wait for each other */
/* An OpenCL call for a lane failed; op NULL: of no node. */
tn_status gpu_step_failed(const gpu_run *run, uint32_t lane, cl_int code, const char *call, const tn_operation *op, tn_error *err);
tn_status gpu_step_finish(gpu_run *run, tn_error *err); /* nothing is in flight then, also when it fails */
/* step.c */
tn_status gpu_run_step(gpu_run *run, tn_error *err);
/* fault.c: memory for what kernels find; reading it, for who waits then or (`waits`) here; and what that means for the step. */
tn_status gpu_fault_make(gpu_instance *in, tn_error *err);
tn_status gpu_fault_read(gpu_run *run, bool waits, tn_error *err);
tn_status gpu_fault_check(gpu_run *run, tn_error *err);
/* profile.c: records for metadata. */
void gpu_profile_begin(gpu_run *run);
void gpu_profile_end(gpu_run *run, tn_status status);
/* instance.c: the instance goes back for the next step, or, after an error, goes. */
void gpu_run_end(gpu_run *run, tn_status status);
/* part.c: parts of plans that the kit runs; user is the plan's executable. */
tn_kit_offload gpu_parts_of(tn_executable *executable);

#endif
