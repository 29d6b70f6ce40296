/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of a graph for the rooms above (formats, plan, session), beyond the public headers. The struct
 * definitions are in graph_structs.h, for core/graph and core/formats only. */
#ifndef TN_CORE_GRAPH_INTERNAL_H
#define TN_CORE_GRAPH_INTERNAL_H

#include <core/base/plugin_call.h>
#include <core/base/threads/lock.h>
#include <core/base/text.h>
#include <tenon/op.h>
#include <tenon/rewrite.h>

/* Compilation holds this lock while it walks a graph that may grow; the builder and imports take it for writing. */
void tn__graph_read_lock(tn_graph *graph);
void tn__graph_unlock(tn_graph *graph);

/* Returns the object that core/plan keeps with the graph. The first call makes it; `free_data` frees it with the graph.
 * `make` may run in several threads at once, one result is kept. NULL: out of memory. Any thread. */
void *tn__graph_plan_data(tn_graph *graph, void *(*make)(void), void (*free_data)(void *data));

/* A parsed device name: "/job:localhost/replica:0/task:0/device:CPU:0", any subset of its parts, or "/cpu:0". If a part
 * occurs twice, the last one counts. A star is equal to a missing part. */
typedef struct tn__device_name {
  tn__slice job, type;       /* in the parsed text; no data: any */
  int32_t replica, task, id; /* -1: any */
  bool any_case;             /* short form: the case of the type is ignored */
} tn__device_name;
bool tn__device_parse(const char *text, size_t size, tn__device_name *out); /* false: malformed, S-CFG-06 */
/* Whether the request `asked` includes the device, which has a complete name. tn__device_same_task compares only job,
 * replica and task: if it is false, no device of this process can match. */
bool tn__device_matches(const tn__device_name *asked, const tn__device_name *device);
bool tn__device_same_task(const tn__device_name *asked, const tn__device_name *device);

/* Whether an operation may request a device. False is certain; true may be left over from an operation that failed. */
bool tn__graph_names_devices(const tn_graph *graph);

/* Like tn_graph_find, of a name that need not end in a zero byte. */
tn_operation *tn__graph_find_text(const tn_graph *graph, tn__slice name);

/* The index of an operation within its graph, in order of addition from 0. */
uint32_t tn__operation_id(const tn_operation *op);
tn_graph *tn__operation_graph(const tn_operation *op);
/* Borrowed arrays, for fast walks. */
const tn_output *tn__operation_inputs(const tn_operation *op, size_t *n);
tn_operation *const *tn__operation_control_inputs(const tn_operation *op, size_t *n);
/* The name without the call path that it has in an inlined body. A resource without a name is named by it. */
const char *tn__operation_own_name(const tn_operation *op);
bool tn__operation_is_own(const tn_operation *op); /* the library itself registered the op, so its effects are known */
uint32_t tn__operation_traits(const tn_operation *op); /* 0 for an unregistered op */
/* Whether the value of input i decides shapes of outputs: it belongs to one of the op's shape_operands. */
bool tn__operation_is_shape_operand(const tn_operation *op, uint32_t i);
/* Whether the value that a shape function reads from input i comes from one of these outputs, directly or through
 * identities. */
bool tn__infer_reads_any(const tn_operation *op, size_t i, const tn_output *outputs, size_t n);

/* Sets TN_NOT_FOUND "op 'X' is not registered", with any plugins that are concerned. */
tn_status tn__op_not_registered(const char *type, tn_error *err);

/* Sets TN_INVALID_ARGUMENT for a placeholder that is needed and was not `lacks` ("fed"), with its known type and shape.
 * Sets the error's node. */
tn_status tn__placeholder_missing(const tn_operation *op, const char *lacks, tn_error *err);

/* The schema's def, NULL for an unregistered op. */
const tn_op_def *tn__schema_def(const tn_op_schema *schema);

/* The op whose kernel reads a variable through a reference. Only the planner adds such nodes; graphs have none. */
#define TN__READ_REFERENCE_OP "_TnReadReference"
/* The plugin that registered a kernel; NULL: the library or the program did. */
const tn__guest *tn__kernel_guest(const tn_kernel_def *def);

/* Finds the kernels for a device type that fit the operation's type attributes and have a rank above 0, best first:
 * 1 <= *n <= room. TN_NOT_FOUND: the op is not registered (names op and node). TN_UNIMPLEMENTED: no kernel fits (names
 * op, device, the type attributes and the existing kernels). */
tn_status tn__kernels_find(const tn_operation *op, const char *device, const tn_kernel_def **out, size_t room,
                           size_t *n, tn_error *err);

/* Whether tn__kernels_find would find a kernel; *any (may be NULL): whether the op has kernels at all. */
bool tn__kernels_exist(const tn_operation *op, const char *device, bool *any);

/* Rewrite i that begins at an op, in order of registration; NULL past the end. */
const tn_rewrite_def *tn__schema_rewrite(const tn_op_schema *schema, size_t i);

/* Whether two operations have the same op and equal attributes, so that equal inputs give equal outputs. Attributes
 * that are expensive to compare count as different. Operations that compare equal have equal hashes. */
bool tn__operation_same_attrs(const tn_operation *a, const tn_operation *b);
uint64_t tn__operation_attrs_hash(const tn_operation *op);

/* An internal builder flag: inputs may belong to other graphs that outlive this one. Used for operations that a plan
 * adds. */
#define TN__BUILD_FOREIGN_INPUTS (1u << 31)

/* Adds a constant operation; the graph takes a reference to the tensor. */
tn_status tn__graph_add_constant(tn_graph *graph, const char *name, tn_tensor *tensor, tn_output *out, tn_error *err);

/* The tensor of output 0 of a TN_TRAIT_CONSTANT op; borrowed from the graph. */
tn_status tn__operation_constant(const tn_operation *op, tn_tensor **out, tn_error *err);

/* Like tn__operation_constant, for a caller that converts the constant to another form: returns a reference. A large
 * tensor of a file is copied and not kept by the graph, and its bytes in the file's memory are discarded; a later call
 * reads them from the file again. With `outline` a large tensor is returned without elements (tn__tensor_outline). */
#define TN__LARGE_CONSTANT ((size_t)64 << 10)                 /* bytes of the serialized tensor */
bool tn__operation_constant_is_large(const tn_operation *op); /* it is from a file and not decoded yet, too */
tn_status tn__operation_take_constant(const tn_operation *op, bool outline, tn_tensor **out, tn_error *err);

/* Calls the shape function of an operation and returns its error. Reading calls hide that error and report unknown
 * shapes, because an operation that cannot run may still be in a graph. TN_OK also if nothing is known. */
tn_status tn__operation_check_shapes(const tn_operation *op, tn_error *err);

/* Shape functions for ops that call library functions, named by attributes of kind func or list(func). The inputs from
 * `first` on are the arguments. If the library lacks a function, the outputs are unknown. TN_INVALID_ARGUMENT: the
 * arguments or results of a function do not fit the node, or its body is malformed. `shapes` (may be NULL) names an
 * attribute with known shapes of the outputs: a list that is empty or has one shape for each.
 *   call      the outputs are those of the function
 *   branches  the outputs are those of any one of the functions in n attributes
 *   loop      the outputs are the inputs after any number of calls of the body */
tn_status tn__infer_call(tn_infer_ctx *ctx, const char *function, size_t first, tn_error *err);
tn_status tn__infer_branches(tn_infer_ctx *ctx, const char *const *functions, size_t n, size_t first,
                             const char *shapes, tn_error *err);
tn_status tn__infer_loop(tn_infer_ctx *ctx, const char *cond, const char *body, const char *shapes, tn_error *err);

/* The library's own families, a table generated from the list ops/ops.mk. They are registered at the first look-up. */
extern const tn_op_family *const tn__op_families[];
extern const size_t tn__n_op_families;

/* Removes a family from the op table, for tests. No schema or kernel of it may be in use. Kernels that other families
 * have for its ops become unreachable. */
void tn__ops_remove(const tn_op_family *family);

/* Resolves "node:i", "node" or "^node" to an operation and an index. NOT_FOUND (no such node), OUT_OF_RANGE (no such
 * output, or a control name), INVALID_ARGUMENT (empty or malformed). S-NAM. The graph must be read-locked. */
tn_status tn__graph_parse_output(tn_graph *graph, const char *name, tn_output *out, tn_error *err);

#endif
