/* SPDX-License-Identifier: Apache-2.0 */
/* Names and scalar types shared by all Tenon headers.
 *
 * A program includes <tenon/tenon.h>. A plugin includes <tenon/runtime.h> or <tenon/op.h> and is
 * compiled with -DTN_PLUGIN=<module>. The same function names are exported symbols in a program and
 * inline calls through the host table in a plugin (see host.h). Since 0.1 */
#ifndef TENON_TYPES_H
#define TENON_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/version.h>

#ifdef __cplusplus
#define TN_BEGIN_DECLS extern "C" {
#define TN_END_DECLS }
#else
#define TN_BEGIN_DECLS
#define TN_END_DECLS
#endif

#if defined(__GNUC__)
#define TN_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define TN_EXPORT __attribute__((visibility("default")))
#define TN_UNUSED __attribute__((unused))
#else
#define TN_PRINTF(fmt, first)
#define TN_EXPORT
#define TN_UNUSED
#endif

/* TN_API marks every public function. In a plugin each is a static inline call through the host
 * table. */
#ifdef TN_PLUGIN
#if defined(__cplusplus) || __STDC_VERSION__ >= 199901L
#define TN_API static inline TN_UNUSED
#else
#define TN_API static __inline__ TN_UNUSED
#endif
#else
#define TN_API TN_EXPORT extern
#endif

/* Size of struct `type` up to the end of `field`, its last known field. Tail padding never counts
 * (rule P-25). */
#define TN_SIZE_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* True if `object`, whose creator set struct_size, has all of `field` (rule P-26). */
#define TN_HAS_FIELD(object, type, field) ((object)->struct_size >= TN_SIZE_TO(type, field))

/* Maximum rank of a tensor. */
#define TN_MAX_RANK 254

typedef int32_t tn_status; /* one of TN_STATUS_MAP, status.h */
typedef int32_t tn_dtype;  /* one of TN_DTYPE_MAP, tensor.h; the numbers are those of TensorFlow's DataType */
typedef uint8_t tn_bool;   /* 0 or 1 */

typedef struct tn_error tn_error;
typedef struct tn_allocator tn_allocator;
typedef struct tn_buffer tn_buffer;
typedef struct tn_buffer_desc tn_buffer_desc;
typedef struct tn_string tn_string;
typedef struct tn_tensor tn_tensor;
typedef struct tn_graph tn_graph;
typedef struct tn_operation tn_operation;
typedef struct tn_operation_builder tn_operation_builder;
typedef struct tn_import_options tn_import_options;
typedef struct tn_import_mapping tn_import_mapping;
typedef struct tn_import_results tn_import_results;
typedef struct tn_op_schema tn_op_schema;
typedef struct tn_consumer tn_consumer;
typedef struct tn_op_arg tn_op_arg;
typedef struct tn_op_attr tn_op_attr;
typedef struct tn_attr_value tn_attr_value;
typedef struct tn_session_options tn_session_options;
typedef struct tn_session tn_session;
typedef struct tn_run_options tn_run_options;
typedef struct tn_run_metadata tn_run_metadata;
typedef struct tn_cancellation tn_cancellation;
typedef struct tn_device_info tn_device_info;
typedef struct tn_placement tn_placement;
typedef struct tn_runtime_info tn_runtime_info;

typedef struct tn_view tn_view;
typedef struct tn_op_def tn_op_def;
typedef struct tn_op_family tn_op_family;
typedef struct tn_kernel_def tn_kernel_def;
typedef struct tn_rewrite_def tn_rewrite_def;
typedef struct tn_cost_ctx tn_cost_ctx;
typedef struct tn_cost_def tn_cost_def;
typedef struct tn_rewriter tn_rewriter;
typedef struct tn_kernel_ctx tn_kernel_ctx;
typedef struct tn_prepare_ctx tn_prepare_ctx;
typedef struct tn_infer_ctx tn_infer_ctx;
typedef struct tn_wait_token tn_wait_token;
typedef struct tn_resource tn_resource;
typedef struct tn_resource_class tn_resource_class;
typedef struct tn_handle tn_handle;

typedef struct tn_host tn_host;
typedef struct tn_plugin tn_plugin;
typedef struct tn_session_factory tn_session_factory;
typedef struct tn_runtime_session tn_runtime_session;
typedef struct tn_plan tn_plan;
typedef struct tn_executable tn_executable;
typedef struct tn_step tn_step;
typedef struct tn_kit_scheduler tn_kit_scheduler;
typedef struct tn_kit_part tn_kit_part;
typedef struct tn_kit_offload tn_kit_offload;
typedef struct tn_kit_workers tn_kit_workers;
typedef struct tn_kit_workers_config tn_kit_workers_config;
typedef struct tn_plan_instruction tn_plan_instruction;
typedef struct tn_plan_value tn_plan_value;
typedef struct tn_plan_layout tn_plan_layout;
typedef struct tn_plan_segment tn_plan_segment;
typedef struct tn_layout_value tn_layout_value;
typedef struct tn_layout_segment tn_layout_segment;
typedef struct tn_layout_instruction tn_layout_instruction;
typedef struct tn_plan_report tn_plan_report;
typedef struct tn_plan_summary tn_plan_summary;
typedef struct tn_plan_pass tn_plan_pass;
typedef struct tn_plan_rewrite tn_plan_rewrite;
typedef struct tn_plan_call tn_plan_call;
typedef struct tn_plan_operand tn_plan_operand;
typedef struct tn_plan_layout_info tn_plan_layout_info;
typedef struct tn_pass_info tn_pass_info;

/* One output of an operation. `op` is borrowed from its graph. */
typedef struct tn_output {
  tn_operation *op;
  int32_t index;
} tn_output;

/* A prepared signature of one session: a slot and its generation, so that a stale one is detected. */
typedef struct tn_callable {
  uint64_t id;
} tn_callable;

/* A partial run of one session: a step that continues from call to call. The id is unique in the
 * process. */
typedef struct tn_partial_run {
  uint64_t id;
} tn_partial_run;

/* Called once, when memory that was handed to the library is no longer used. Any thread; must not
 * call back into the object that owned the memory. */
typedef void (*tn_release_fn)(void *user, void *data, size_t bytes);

#endif
