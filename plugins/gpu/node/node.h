/* SPDX-License-Identifier: Apache-2.0 */
/* An op on the device is a function that is given the shapes and chooses the kernels to launch and their arguments.
 * Planning happens once for a plan and its shapes; a step only enqueues the planned launches.
 *
 *   static tn_status plan_softmax(gpu_node *n, tn_error *err)
 *   {
 *     const gpu_value *x = &n->inputs[0];
 *     int64_t columns = x->rank > 0 ? x->dims[x->rank - 1] : 1, rows = columns > 0 ? x->count / columns : 0;
 *     gpu_launch *l = gpu_launch_file(n, "softmax", "softmax_rows");
 *     gpu_define(l, "T", "%s", gpu_type(x->dtype));
 *     gpu_arg_input(l, 0);
 *     gpu_arg_output(l, 0);
 *     gpu_arg_long(l, columns);
 *     gpu_range_1d(l, rows * 64, 64);
 *     return gpu_node_done(n, err);
 *   }
 *   const gpu_op gpu_softmax_ops[] = { { "Softmax", "T=float|half", plan_softmax }, { NULL } };
 *
 * The builders below do nothing after the first that failed (also with l NULL); gpu_node_done says what it was. A step
 * with no elements, a range of 0, launches nothing. */
#ifndef GPU_NODE_NODE_H
#define GPU_NODE_NODE_H

#include "device/device.h"

/* A value as planning sees it. */
typedef struct gpu_value {
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  int64_t count;
  size_t bytes;
  const void *host; /* the elements, when planning can know them: constants, and what follows from shapes; else NULL */
  bool constant;    /* the same in every step */
} gpu_value;

/* An invalid element that a kernel found in a step, in the node's first launch that may find one (gpu_arg_fault). */
typedef struct gpu_fault {
  const tn_operation *op;
  int64_t place, value;            /* what the kernel said: of all it found, that with the lowest place */
  int64_t limit;                   /* the limit given to gpu_arg_fault */
  const struct gpu_value *inputs, *outputs; /* without elements */
} gpu_fault;
/* Says it as the CPU's kernel does, without the node's name. Returns the status; never TN_OK. */
typedef tn_status (*gpu_explain)(const gpu_fault *fault, tn_error *err);

typedef struct gpu_launch gpu_launch;
typedef struct gpu_node {
  const tn_operation *op;
  const gpu_device *device;
  uint32_t n_inputs, n_outputs;
  const gpu_value *inputs, *outputs; /* outputs have their shapes */
  int blas;         /* GPU_BLAS_..., of the session */
  double cost_ns;   /* out: rough time on a device of 1 TFlop/s and 100 GB/s; 0: from the bytes */
  struct gpu_built *built; /* node.c's */
} gpu_node;

/* An op that the device can run. `plan` returns TN_UNIMPLEMENTED, with the reason, for attributes or shapes
 * that it cannot have: the node stays on the CPU then. Output memory is never that of an input unless
 * in_place says so. */
typedef struct gpu_op {
  const char *op;
  const char *types;     /* constraint on type attributes as in tn_kernel_def.types */
  tn_status (*plan)(gpu_node *node, tn_error *err);
  uint32_t host_inputs;  /* bit i: `plan` needs the elements of input i: when they are not known the node stays on the
                          * CPU, and  otherwise the input is not sent to the device */
  bool in_place;         /* output 0 may use the memory of any input of its size */
} gpu_op;

/* ---- launches ---- */

gpu_launch *gpu_launch_file(gpu_node *n, const char *file, const char *kernel); /* ops/SUBJECT/FILE.cl, embedded */
gpu_launch *gpu_launch_text(gpu_node *n, const char *text, const char *kernel); /* text is copied */
/* No kernel of this runtime: in each step `enqueue` puts what a library has for it on `queue`. It is given
 * `user`, of which `size` bytes are copied, and the memory of the launch's arguments, at most
 * GPU_LIBRARY_ARGS, which are no values and not local. *event, where event is not NULL, is that of its last
 * command. TN_UNAVAILABLE: the device is lost. */
#define GPU_LIBRARY_ARGS 4
typedef tn_status (*gpu_library)(const gpu_device *device, cl_command_queue queue, const void *user,
                                 const gpu_memory *memory, cl_event *event, tn_error *err);
gpu_launch *gpu_launch_library(gpu_node *n, const char *name, gpu_library enqueue, const void *user, size_t size);
void gpu_define(gpu_launch *l, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Kinds of arguments. */
enum { GPU_ARG_INPUT, GPU_ARG_OUTPUT, GPU_ARG_SCRATCH, GPU_ARG_PACKED, GPU_ARG_VALUE, GPU_ARG_LOCAL, GPU_ARG_FAULT };
/* Arguments, in order. A pointer is two of the kernel's: PTR(name) in its list, see prelude.cl. */
void gpu_arg_input(gpu_launch *l, uint32_t i);
void gpu_arg_output(gpu_launch *l, uint32_t i);
void gpu_arg_scratch(gpu_launch *l, size_t at);  /* what gpu_scratch gave */
void gpu_arg_packed(gpu_launch *l, uint32_t id); /* what gpu_packed gave */
/* FAULT in the kernel's list: it may say FAULT_AT(place, value) when an element is none that it can take, and
 * must go on with another then, as the rest of the step runs until the host looks. The step ends with what
 * `explain` says. Once for a launch. */
void gpu_arg_fault(gpu_launch *l, gpu_explain explain, int64_t limit);
void gpu_arg_int(gpu_launch *l, int64_t value);  /* int in the kernel; TN_UNIMPLEMENTED beyond its range */
void gpu_arg_long(gpu_launch *l, int64_t value);
void gpu_arg_float(gpu_launch *l, float value);
void gpu_arg_bytes(gpu_launch *l, const void *bytes, size_t size); /* copied: structs, other scalars */
void gpu_arg_local(gpu_launch *l, size_t bytes);
/* Sizes; global is rounded up to a multiple of local, so kernels compare their id. local 0: the driver chooses. */
void gpu_range_1d(gpu_launch *l, int64_t global, int64_t local);
void gpu_range_2d(gpu_launch *l, const int64_t global[2], const int64_t local[2]);
void gpu_range_3d(gpu_launch *l, const int64_t global[3], const int64_t local[3]);

/* Scratch memory of the node: good during its launches only. */
size_t gpu_scratch(gpu_node *n, size_t bytes);
/* A form of constant input i that is made once, on the host, and stored on the device: `pack` writes bytes to
 * `to`. key distinguishes forms of one constant. `pack` is called after planning, and only if the device does
 * not have this form of the constant yet; it may fail only without memory. *user, user_bytes large, is
 * copied; NULL and 0 for none. */
uint32_t gpu_packed(gpu_node *n, uint32_t i, uint64_t key, size_t bytes,
                    tn_status (*pack)(const void *user, const gpu_value *from, void *to, tn_error *err),
                    const void *user, size_t user_bytes);
/* Bytes that are copied to the device when the node is planned: tables of indices and the like. */
uint32_t gpu_table(gpu_node *n, const void *bytes, size_t size);
/* Output i has the bytes of input j: copied on the device. */
void gpu_copy(gpu_node *n, uint32_t i, uint32_t j);

tn_status gpu_node_done(gpu_node *n, tn_error *err);
/* For plan: this node cannot be had on the device because of ... */
tn_status gpu_decline(tn_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "float", "int", "uchar", "half", ... as OpenCL C calls it; NULL for what it has not. bool is uchar. */
const char *gpu_type(tn_dtype dtype);
/* Attributes of the node; the default when the op does not have it. */
int64_t gpu_attr_int(const gpu_node *n, const char *name, int64_t otherwise);
bool gpu_attr_bool(const gpu_node *n, const char *name, bool otherwise);
float gpu_attr_float(const gpu_node *n, const char *name, float otherwise);
bool gpu_attr_text_is(const gpu_node *n, const char *name, const char *text);

#endif
