/* SPDX-License-Identifier: Apache-2.0 */
/* What the rooms above (formats, plan, session) may use of a graph beyond the public headers. Bodies of the structs are
 * in graph_structs.h, for core/graph and core/formats only. */
#ifndef TN_CORE_GRAPH_INTERNAL_H
#define TN_CORE_GRAPH_INTERNAL_H

#include <core/base/plugin_call.h>
#include <core/base/lock.h>
#include <core/base/text.h>
#include <tenon/op.h>
#include <tenon/rewrite.h>

/* Readers hold this while they walk a graph that may grow (compilation); the builder and imports write. */
void tn__graph_read_lock(tn_graph *graph);
void tn__graph_unlock(tn_graph *graph);

/* One object of core/plan that goes with the graph: made by the first who asks, freed by `free_data`. NULL without
 * memory. */
void *tn__graph_plan_data(tn_graph *graph, void *(*make)(void), void (*free_data)(void *data));

/* What a text like "/job:localhost/replica:0/task:0/device:CPU:0", or a part of one, or "/cpu:0" asks for. Of a part
 * that comes twice the last one counts. A star is as if the part was not there. */
typedef struct tn__device_name {
  tn__slice job, type;       /* in the text; no data: any */
  int32_t replica, task, id; /* -1: any */
  bool any_case;             /* the short form: its type is written in either case */
} tn__device_name;
bool tn__device_parse(const char *text, size_t size, tn__device_name *out); /* false when it is malformed, S-CFG-06 */
/* Whether a device with a whole name is meant; of another job, replica or task none in this process can be. */
bool tn__device_matches(const tn__device_name *asked, const tn__device_name *device);
bool tn__device_same_task(const tn__device_name *asked, const tn__device_name *device);

/* Whether some operation names a device; false is certain. */
bool tn__graph_names_devices(const tn_graph *graph);

/* Dense number of an operation within its graph, in order of addition from 0. */
uint32_t tn__operation_id(const tn_operation *op);
tn_graph *tn__operation_graph(const tn_operation *op);
/* Borrowed arrays, for walks that must be fast. */
const tn_output *tn__operation_inputs(const tn_operation *op, size_t *n);
tn_operation *const *tn__operation_control_inputs(const tn_operation *op, size_t *n);
/* The name without the way through calls that it has in a plan: what a resource without a name is called. */
const char *tn__operation_own_name(const tn_operation *op);
bool tn__operation_is_own(const tn_operation *op); /* its op comes with Tenon, so what it does is known */
uint32_t tn__operation_traits(const tn_operation *op); /* 0 for an op that is not registered */
/* Whether the value of input i decides shapes of outputs: it belongs to one of the op's shape_operands. */
bool tn__operation_is_shape_operand(const tn_operation *op, uint32_t i);
/* Whether the value that a shape function reads of input i is one of these outputs', or comes through one of them. */
bool tn__infer_reads_any(const tn_operation *op, size_t i, const tn_output *outputs, size_t n);

/* "op 'X' is not registered", and what plugins have to do with it: TN_NOT_FOUND. */
tn_status tn__op_not_registered(const char *type, tn_error *err);

/* Says that a placeholder is needed, with its type and its shape as far as they are known, and what was not done with
 * it: "fed". Sets the node. TN_INVALID_ARGUMENT. */
tn_status tn__placeholder_missing(const tn_operation *op, const char *lacks, tn_error *err);

/* The schema's def, NULL for an op that is not registered. */
const tn_op_def *tn__schema_def(const tn_op_schema *schema);

/* The op whose kernel reads a variable through a reference: the planner adds its nodes, graphs have none. */
#define TN__READ_REFERENCE_OP "_TnReadReference"
/* The plugin that registered a kernel; NULL: the library or the program did. */
const tn__guest *tn__kernel_guest(const tn_kernel_def *def);

/* Kernels of the operation for a device type that have a rank above 0, best first, its type attributes considered: *n
 * of them, at most `room`, at least one.
 * TN_NOT_FOUND when the op is not registered (names op and node); TN_UNIMPLEMENTED when no kernel fits (names op,
 * device, the type attributes found and what kernels there are). */
tn_status tn__kernels_find(const tn_operation *op, const char *device, const tn_kernel_def **out, size_t room,
                           size_t *n, tn_error *err);

/* Whether there is such a kernel, of any rank; *any (may be NULL): whether the op has kernels at all. */
bool tn__kernels_exist(const tn_operation *op, const char *device, bool *any);

/* Rewrite i that begins at an op, in order of registration; NULL past the end. */
const tn_rewrite_def *tn__schema_rewrite(const tn_op_schema *schema, size_t i);

/* Whether two operations of one op have equal attributes, so that equal inputs give equal outputs; attributes whose
 * equality would take long to find out count as different. The hash is of what is compared. */
bool tn__operation_same_attrs(const tn_operation *a, const tn_operation *b);
uint64_t tn__operation_attrs_hash(const tn_operation *op);

/* A builder's flag beside the public ones: inputs may be of other graphs that outlive this one, as those of operations
 * that a plan makes for itself. */
#define TN__BUILD_FOREIGN_INPUTS (1u << 31)

/* A new operation that is this constant; the graph takes a reference. */
tn_status tn__graph_add_constant(tn_graph *graph, const char *name, tn_tensor *tensor, tn_output *out, tn_error *err);

/* A constant tensor of output 0 of a TN_TRAIT_CONSTANT op: borrowed, owned by the graph. */
tn_status tn__operation_constant(const tn_operation *op, tn_tensor **out, tn_error *err);

/* The same for who makes a form of its own of it: a reference. A large tensor of a file is copied out, nothing else
 * holds it, and its bytes in the file's memory go; the next time they are read from the file. `outline`: what is large
 * comes without its elements (tn__tensor_outline). */
#define TN__LARGE_CONSTANT ((size_t)64 << 10)
bool tn__operation_constant_is_large(const tn_operation *op); /* of a file, and with a message of that size */
tn_status tn__operation_take_constant(const tn_operation *op, bool outline, tn_tensor **out, tn_error *err);

/* Calls the shape function of an operation for its verdict alone: for reading calls an operation that it refuses is one
 * of unknown shapes, because that is an error of running it, not of having it. TN_OK also where nothing is known. */
tn_status tn__operation_check_shapes(const tn_operation *op, tn_error *err);

/* Shape functions of ops that call functions of the graph's library, named by attributes of kind func or list(func);
 * the inputs from `first` on are the arguments. A function that the library does not have makes the outputs unknown;
 * TN_INVALID_ARGUMENT where a function's arguments or results do not fit the node, or its body is malformed. `shapes`
 * (may be NULL) is an attribute with what is known of the outputs: a list that is empty or has one shape each.
 *   call      the outputs are those of the function
 *   branches  they are those of one of all functions in n attributes
 *   loop      they are the inputs after any number of times that the body was called with them */
tn_status tn__infer_call(tn_infer_ctx *ctx, const char *function, size_t first, tn_error *err);
tn_status tn__infer_branches(tn_infer_ctx *ctx, const char *const *functions, size_t n, size_t first,
                             const char *shapes, tn_error *err);
tn_status tn__infer_loop(tn_infer_ctx *ctx, const char *cond, const char *body, const char *shapes, tn_error *err);

/* The library's own families, a table made from the list ops/ops.mk. They are entered at the first look-up. */
extern const tn_op_family *const tn__op_families[];
extern const size_t tn__n_op_families;

/* Takes a family out of the table again, for a plugin that fails to start and for tests: nobody may hold a schema or a
 * kernel of it. Kernels of other families for its ops go with them. */
void tn__ops_remove(const tn_op_family *family);

/* Parses "node:i", "node", "^node" -> operation and index. NOT_FOUND (no such node), OUT_OF_RANGE (no such output or a
 * control name), INVALID_ARGUMENT (empty or malformed). S-NAM. The graph must be read-locked. */
tn_status tn__graph_parse_output(tn_graph *graph, const char *name, tn_output *out, tn_error *err);

#endif
