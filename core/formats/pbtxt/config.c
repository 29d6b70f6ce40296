/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a ConfigProto and of the messages in it: names and numbers of fields. */
#include <core/formats/pbtxt/pbtxt.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ONE(name, number, type, message, names) { name, number, TN__PB_##type, false, false, message, names }
#define MANY(name, number, type, message, names) { name, number, TN__PB_##type, true, false, message, names }
#define LIST(name, array) { name, array, COUNT(array) }

/* ---- enums ---- */

static const tn__pb_name optimizer_options_level_values[] = {
  { 0, "L1" }, { -1, "L0" }
};
static const tn__pb_enum optimizer_options_level = LIST("OptimizerOptions.Level", optimizer_options_level_values);

static const tn__pb_name optimizer_options_global_jit_level_values[] = {
  { 0, "DEFAULT" }, { -1, "OFF" }, { 1, "ON_1" }, { 2, "ON_2" }
};
static const tn__pb_enum optimizer_options_global_jit_level =
  LIST("OptimizerOptions.GlobalJitLevel", optimizer_options_global_jit_level_values);

static const tn__pb_name rewriter_config_cpu_layout_values[] = {
  { 0, "NO_CONVERSION_ON_CPU" }, { 1, "NCHW_TO_NHWC" }, { 2, "NHWC_TO_NCHW" }
};
static const tn__pb_enum rewriter_config_cpu_layout =
  LIST("RewriterConfig.CpuLayout", rewriter_config_cpu_layout_values);

static const tn__pb_name rewriter_config_toggle_values[] = {
  { 0, "DEFAULT" }, { 1, "ON" }, { 2, "OFF" }, { 3, "AGGRESSIVE" }, { 4, "EXPERIMENTAL_MLIR" },
  { 5, "EXPERIMENTAL_BOTH" }
};
static const tn__pb_enum rewriter_config_toggle = LIST("RewriterConfig.Toggle", rewriter_config_toggle_values);

static const tn__pb_name rewriter_config_num_iterations_type_values[] = {
  { 0, "DEFAULT_NUM_ITERS" }, { 1, "ONE" }, { 2, "TWO" }
};
static const tn__pb_enum rewriter_config_num_iterations_type =
  LIST("RewriterConfig.NumIterationsType", rewriter_config_num_iterations_type_values);

static const tn__pb_name rewriter_config_mem_opt_type_values[] = {
  { 0, "DEFAULT_MEM_OPT" }, { 1, "NO_MEM_OPT" }, { 2, "MANUAL" }, { 4, "SWAPPING_HEURISTICS" },
  { 5, "RECOMPUTATION_HEURISTICS" }, { 6, "SCHEDULING_HEURISTICS" }, { 3, "HEURISTICS" }
};
static const tn__pb_enum rewriter_config_mem_opt_type =
  LIST("RewriterConfig.MemOptType", rewriter_config_mem_opt_type_values);

static const tn__pb_name verifier_config_toggle_values[] = {
  { 0, "DEFAULT" }, { 1, "ON" }, { 2, "OFF" }
};
static const tn__pb_enum verifier_config_toggle = LIST("VerifierConfig.Toggle", verifier_config_toggle_values);

static const tn__pb_name config_experimental_mlir_bridge_rollout_values[] = {
  { 0, "MLIR_BRIDGE_ROLLOUT_UNSPECIFIED" }, { 1, "MLIR_BRIDGE_ROLLOUT_ENABLED" },
  { 2, "MLIR_BRIDGE_ROLLOUT_DISABLED" }
};
static const tn__pb_enum config_experimental_mlir_bridge_rollout =
  LIST("ConfigProto.Experimental.MlirBridgeRollout", config_experimental_mlir_bridge_rollout_values);

/* ---- messages ---- */

static const tn__pb_message
  config_device_count_entry, thread_pool_option_proto, gpu_options, gpu_options_experimental,
  gpu_options_experimental_virtual_devices, gpu_options_experimental_stream_merge_options, graph_options,
  optimizer_options, rewriter_config, auto_parallel_options, scoped_allocator_options,
  rewriter_config_custom_graph_optimizer, verifier_config, rpc_options, cluster_def, job_def, job_def_tasks_entry,
  config_experimental, session_metadata, coordination_service_config, coordinated_job;

static const tn__pb_field config_proto_fields[] = {
  MANY("device_count", 1, MESSAGE, &config_device_count_entry, NULL),
  ONE("intra_op_parallelism_threads", 2, INT32, NULL, NULL),
  ONE("inter_op_parallelism_threads", 5, INT32, NULL, NULL), ONE("use_per_session_threads", 9, BOOL, NULL, NULL),
  MANY("session_inter_op_thread_pool", 12, MESSAGE, &thread_pool_option_proto, NULL),
  ONE("placement_period", 3, INT32, NULL, NULL), MANY("device_filters", 4, TEXT, NULL, NULL),
  ONE("gpu_options", 6, MESSAGE, &gpu_options, NULL),
  ONE("pluggable_device_options", 18, MESSAGE, &gpu_options, NULL), ONE("allow_soft_placement", 7, BOOL, NULL, NULL),
  ONE("log_device_placement", 8, BOOL, NULL, NULL), ONE("graph_options", 10, MESSAGE, &graph_options, NULL),
  ONE("operation_timeout_in_ms", 11, INT64, NULL, NULL), ONE("rpc_options", 13, MESSAGE, &rpc_options, NULL),
  ONE("cluster_def", 14, MESSAGE, &cluster_def, NULL), ONE("isolate_session_state", 15, BOOL, NULL, NULL),
  ONE("share_cluster_devices_in_session", 17, BOOL, NULL, NULL),
  ONE("experimental", 16, MESSAGE, &config_experimental, NULL)
};
const tn__pb_message tn__pb_config = LIST("ConfigProto", config_proto_fields);

static const tn__pb_field config_device_count_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, INT32, NULL, NULL)
};
static const tn__pb_message config_device_count_entry =
  LIST("ConfigProto.DeviceCountEntry", config_device_count_entry_fields);

static const tn__pb_field thread_pool_option_proto_fields[] = {
  ONE("num_threads", 1, INT32, NULL, NULL), ONE("global_name", 2, TEXT, NULL, NULL)
};
static const tn__pb_message thread_pool_option_proto = LIST("ThreadPoolOptionProto", thread_pool_option_proto_fields);

static const tn__pb_field gpu_options_fields[] = {
  ONE("per_process_gpu_memory_fraction", 1, DOUBLE, NULL, NULL), ONE("allow_growth", 4, BOOL, NULL, NULL),
  ONE("allocator_type", 2, TEXT, NULL, NULL), ONE("deferred_deletion_bytes", 3, INT64, NULL, NULL),
  ONE("visible_device_list", 5, TEXT, NULL, NULL), ONE("polling_active_delay_usecs", 6, INT32, NULL, NULL),
  ONE("polling_inactive_delay_msecs", 7, INT32, NULL, NULL), ONE("force_gpu_compatible", 8, BOOL, NULL, NULL),
  ONE("experimental", 9, MESSAGE, &gpu_options_experimental, NULL)
};
static const tn__pb_message gpu_options = LIST("GPUOptions", gpu_options_fields);

static const tn__pb_field gpu_options_experimental_fields[] = {
  MANY("virtual_devices", 1, MESSAGE, &gpu_options_experimental_virtual_devices, NULL),
  ONE("num_virtual_devices_per_gpu", 15, INT32, NULL, NULL), ONE("use_unified_memory", 2, BOOL, NULL, NULL),
  ONE("num_dev_to_dev_copy_streams", 3, INT32, NULL, NULL), ONE("collective_ring_order", 4, TEXT, NULL, NULL),
  ONE("timestamped_allocator", 5, BOOL, NULL, NULL), ONE("kernel_tracker_max_interval", 7, INT32, NULL, NULL),
  ONE("kernel_tracker_max_bytes", 8, INT32, NULL, NULL), ONE("kernel_tracker_max_pending", 9, INT32, NULL, NULL),
  ONE("internal_fragmentation_fraction", 10, DOUBLE, NULL, NULL), ONE("use_cuda_malloc_async", 11, BOOL, NULL, NULL),
  ONE("disallow_retry_on_allocation_failure", 12, BOOL, NULL, NULL),
  ONE("gpu_host_mem_limit_in_mb", 13, FLOAT, NULL, NULL), ONE("gpu_host_mem_disallow_growth", 14, BOOL, NULL, NULL),
  ONE("gpu_system_memory_size_in_mb", 16, INT32, NULL, NULL),
  ONE("populate_pjrt_gpu_client_creation_info", 17, BOOL, NULL, NULL), ONE("node_id", 18, INT32, NULL, NULL),
  ONE("stream_merge_options", 19, MESSAGE, &gpu_options_experimental_stream_merge_options, NULL)
};
static const tn__pb_message gpu_options_experimental = LIST("GPUOptions.Experimental", gpu_options_experimental_fields);

static const tn__pb_field gpu_options_experimental_virtual_devices_fields[] = {
  MANY("memory_limit_mb", 1, FLOAT, NULL, NULL), MANY("priority", 2, INT32, NULL, NULL),
  MANY("device_ordinal", 3, INT32, NULL, NULL)
};
static const tn__pb_message gpu_options_experimental_virtual_devices =
  LIST("GPUOptions.Experimental.VirtualDevices", gpu_options_experimental_virtual_devices_fields);

static const tn__pb_field gpu_options_experimental_stream_merge_options_fields[] = {
  ONE("merge_host_to_device_stream", 1, BOOL, NULL, NULL), ONE("merge_device_to_host_stream", 2, BOOL, NULL, NULL),
  ONE("merge_device_to_device_stream", 3, BOOL, NULL, NULL)
};
static const tn__pb_message gpu_options_experimental_stream_merge_options =
  LIST("GPUOptions.Experimental.StreamMergeOptions", gpu_options_experimental_stream_merge_options_fields);

static const tn__pb_field graph_options_fields[] = {
  ONE("enable_recv_scheduling", 2, BOOL, NULL, NULL), ONE("optimizer_options", 3, MESSAGE, &optimizer_options, NULL),
  ONE("build_cost_model", 4, INT64, NULL, NULL), ONE("build_cost_model_after", 9, INT64, NULL, NULL),
  ONE("infer_shapes", 5, BOOL, NULL, NULL), ONE("place_pruned_graph", 6, BOOL, NULL, NULL),
  ONE("enable_bfloat16_sendrecv", 7, BOOL, NULL, NULL), ONE("timeline_step", 8, INT32, NULL, NULL),
  ONE("rewrite_options", 10, MESSAGE, &rewriter_config, NULL)
};
static const tn__pb_message graph_options = LIST("GraphOptions", graph_options_fields);

static const tn__pb_field optimizer_options_fields[] = {
  ONE("do_common_subexpression_elimination", 1, BOOL, NULL, NULL), ONE("do_constant_folding", 2, BOOL, NULL, NULL),
  ONE("max_folded_constant_in_bytes", 6, INT64, NULL, NULL), ONE("do_function_inlining", 4, BOOL, NULL, NULL),
  ONE("opt_level", 3, ENUM, NULL, &optimizer_options_level),
  ONE("global_jit_level", 5, ENUM, NULL, &optimizer_options_global_jit_level),
  ONE("cpu_global_jit", 7, BOOL, NULL, NULL)
};
static const tn__pb_message optimizer_options = LIST("OptimizerOptions", optimizer_options_fields);

static const tn__pb_field rewriter_config_fields[] = {
  ONE("cpu_layout_conversion", 50, ENUM, NULL, &rewriter_config_cpu_layout),
  ONE("layout_optimizer", 1, ENUM, NULL, &rewriter_config_toggle),
  ONE("constant_folding", 3, ENUM, NULL, &rewriter_config_toggle),
  ONE("shape_optimization", 13, ENUM, NULL, &rewriter_config_toggle),
  ONE("remapping", 14, ENUM, NULL, &rewriter_config_toggle),
  ONE("common_subgraph_elimination", 24, ENUM, NULL, &rewriter_config_toggle),
  ONE("arithmetic_optimization", 7, ENUM, NULL, &rewriter_config_toggle),
  ONE("dependency_optimization", 8, ENUM, NULL, &rewriter_config_toggle),
  ONE("loop_optimization", 9, ENUM, NULL, &rewriter_config_toggle),
  ONE("function_optimization", 10, ENUM, NULL, &rewriter_config_toggle),
  ONE("debug_stripper", 11, ENUM, NULL, &rewriter_config_toggle), ONE("disable_model_pruning", 2, BOOL, NULL, NULL),
  ONE("scoped_allocator_optimization", 15, ENUM, NULL, &rewriter_config_toggle),
  ONE("pin_to_host_optimization", 18, ENUM, NULL, &rewriter_config_toggle),
  ONE("implementation_selector", 22, ENUM, NULL, &rewriter_config_toggle),
  ONE("auto_mixed_precision", 23, ENUM, NULL, &rewriter_config_toggle),
  ONE("auto_mixed_precision_mkl", 25, ENUM, NULL, &rewriter_config_toggle),
  ONE("auto_mixed_precision_onednn_bfloat16", 31, ENUM, NULL, &rewriter_config_toggle),
  ONE("auto_mixed_precision_cpu", 29, ENUM, NULL, &rewriter_config_toggle),
  ONE("disable_meta_optimizer", 19, BOOL, NULL, NULL), ONE("disable_tfg_optimizer", 32, BOOL, NULL, NULL),
  ONE("use_plugin_optimizers", 28, ENUM, NULL, &rewriter_config_toggle),
  ONE("experimental_conditional_code_motion", 30, ENUM, NULL, &rewriter_config_toggle),
  ONE("meta_optimizer_iterations", 12, ENUM, NULL, &rewriter_config_num_iterations_type),
  ONE("min_graph_nodes", 17, INT32, NULL, NULL),
  ONE("experimental_disable_compressed_tensor_optimization", 26, BOOL, NULL, NULL),
  ONE("experimental_disable_folding_quantization_emulation", 27, BOOL, NULL, NULL),
  ONE("memory_optimization", 4, ENUM, NULL, &rewriter_config_mem_opt_type),
  ONE("memory_optimizer_target_node_name_scope", 6, TEXT, NULL, NULL),
  ONE("meta_optimizer_timeout_ms", 20, INT64, NULL, NULL),
  ONE("auto_parallel", 5, MESSAGE, &auto_parallel_options, NULL),
  ONE("fail_on_optimizer_errors", 21, BOOL, NULL, NULL),
  ONE("scoped_allocator_opts", 16, MESSAGE, &scoped_allocator_options, NULL),
  MANY("optimizers", 100, TEXT, NULL, NULL),
  MANY("custom_optimizers", 200, MESSAGE, &rewriter_config_custom_graph_optimizer, NULL),
  ONE("inter_optimizer_verifier_config", 300, MESSAGE, &verifier_config, NULL),
  ONE("post_optimization_verifier_config", 301, MESSAGE, &verifier_config, NULL)
};
static const tn__pb_message rewriter_config = LIST("RewriterConfig", rewriter_config_fields);

static const tn__pb_field auto_parallel_options_fields[] = {
  ONE("enable", 1, BOOL, NULL, NULL), ONE("num_replicas", 2, INT32, NULL, NULL)
};
static const tn__pb_message auto_parallel_options = LIST("AutoParallelOptions", auto_parallel_options_fields);

static const tn__pb_field scoped_allocator_options_fields[] = {
  MANY("enable_op", 1, TEXT, NULL, NULL)
};
static const tn__pb_message scoped_allocator_options = LIST("ScopedAllocatorOptions", scoped_allocator_options_fields);

static const tn__pb_field rewriter_config_custom_graph_optimizer_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), MANY("parameter_map", 2, MESSAGE, &tn__pb_attr_entry, NULL)
};
static const tn__pb_message rewriter_config_custom_graph_optimizer =
  LIST("RewriterConfig.CustomGraphOptimizer", rewriter_config_custom_graph_optimizer_fields);

static const tn__pb_field verifier_config_fields[] = {
  ONE("verification_timeout_in_ms", 1, INT64, NULL, NULL),
  ONE("structure_verifier", 2, ENUM, NULL, &verifier_config_toggle)
};
static const tn__pb_message verifier_config = LIST("VerifierConfig", verifier_config_fields);

static const tn__pb_field rpc_options_fields[] = {
  ONE("use_rpc_for_inprocess_master", 1, BOOL, NULL, NULL), ONE("compression_algorithm", 2, TEXT, NULL, NULL),
  ONE("compression_level", 3, INT32, NULL, NULL), ONE("cache_rpc_response", 4, BOOL, NULL, NULL),
  ONE("disable_session_connection_sharing", 5, BOOL, NULL, NULL),
  ONE("num_channels_per_target", 6, INT32, NULL, NULL)
};
static const tn__pb_message rpc_options = LIST("RPCOptions", rpc_options_fields);

static const tn__pb_field cluster_def_fields[] = {
  MANY("job", 1, MESSAGE, &job_def, NULL)
};
static const tn__pb_message cluster_def = LIST("ClusterDef", cluster_def_fields);

static const tn__pb_field job_def_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), MANY("tasks", 2, MESSAGE, &job_def_tasks_entry, NULL)
};
static const tn__pb_message job_def = LIST("JobDef", job_def_fields);

static const tn__pb_field job_def_tasks_entry_fields[] = {
  ONE("key", 1, INT32, NULL, NULL), ONE("value", 2, TEXT, NULL, NULL)
};
static const tn__pb_message job_def_tasks_entry = LIST("JobDef.TasksEntry", job_def_tasks_entry_fields);

static const tn__pb_field config_experimental_fields[] = {
  ONE("collective_group_leader", 1, TEXT, NULL, NULL), ONE("executor_type", 3, TEXT, NULL, NULL),
  ONE("recv_buf_max_chunk", 4, INT32, NULL, NULL), ONE("use_numa_affinity", 5, BOOL, NULL, NULL),
  ONE("collective_deterministic_sequential_execution", 6, BOOL, NULL, NULL),
  ONE("collective_nccl", 7, BOOL, NULL, NULL),
  ONE("share_session_state_in_clusterspec_propagation", 8, BOOL, NULL, NULL),
  ONE("disable_thread_spinning", 9, BOOL, NULL, NULL), ONE("share_cluster_devices_in_session", 10, BOOL, NULL, NULL),
  ONE("session_metadata", 11, MESSAGE, &session_metadata, NULL),
  ONE("optimize_for_static_graph", 12, BOOL, NULL, NULL), ONE("enable_mlir_bridge", 13, BOOL, NULL, NULL),
  ONE("mlir_bridge_rollout", 17, ENUM, NULL, &config_experimental_mlir_bridge_rollout),
  ONE("enable_mlir_graph_optimization", 16, BOOL, NULL, NULL),
  ONE("disable_output_partition_graphs", 14, BOOL, NULL, NULL),
  ONE("xla_fusion_autotuner_thresh", 15, INT64, NULL, NULL), ONE("use_tfrt", 18, BOOL, NULL, NULL),
  ONE("enable_multi_host", 27, BOOL, NULL, NULL), ONE("tfrt_use_ifrt", 32, BOOL, NULL, NULL),
  ONE("backend_server_port", 28, INT32, NULL, NULL), ONE("target_tpu", 29, BOOL, NULL, NULL),
  ONE("target_gpu", 30, BOOL, NULL, NULL), ONE("stream_merge_threshold", 31, INT32, NULL, NULL),
  ONE("disable_functional_ops_lowering", 21, BOOL, NULL, NULL),
  ONE("xla_prefer_single_graph_cluster", 22, BOOL, NULL, NULL),
  ONE("coordination_config", 23, MESSAGE, &coordination_service_config, NULL),
  ONE("disable_optimize_for_static_graph", 24, BOOL, NULL, NULL),
  ONE("disable_eager_executor_streaming_enqueue", 26, BOOL, NULL, NULL),
  ONE("finalize_function_library_runtime", 33, BOOL, NULL, NULL),
  ONE("finalize_resource_manager", 34, BOOL, NULL, NULL), ONE("tf2xla_dump_dir", 35, TEXT, NULL, NULL),
  ONE("online_cost_analysis", 36, BOOL, NULL, NULL)
};
static const tn__pb_message config_experimental = LIST("ConfigProto.Experimental", config_experimental_fields);

static const tn__pb_field session_metadata_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("version", 2, INT64, NULL, NULL)
};
static const tn__pb_message session_metadata = LIST("SessionMetadata", session_metadata_fields);

static const tn__pb_field coordination_service_config_fields[] = {
  ONE("service_type", 1, TEXT, NULL, NULL), ONE("service_leader", 2, TEXT, NULL, NULL),
  ONE("enable_health_check", 3, BOOL, NULL, NULL), ONE("cluster_register_timeout_in_ms", 4, INT64, NULL, NULL),
  ONE("cluster_register_with_barrier", 14, BOOL, NULL, NULL), ONE("heartbeat_timeout_in_ms", 5, INT64, NULL, NULL),
  MANY("coordinated_job_list", 10, MESSAGE, &coordinated_job, NULL),
  ONE("shutdown_barrier_timeout_in_ms", 7, INT64, NULL, NULL),
  ONE("agent_destruction_without_shutdown", 8, BOOL, NULL, NULL), MANY("recoverable_jobs", 9, TEXT, NULL, NULL),
  ONE("allow_new_incarnation_to_reconnect", 11, BOOL, NULL, NULL), ONE("force_disable", 12, BOOL, NULL, NULL),
  ONE("poll_for_error_from_service_at_startup", 13, BOOL, NULL, NULL)
};
static const tn__pb_message coordination_service_config =
  LIST("CoordinationServiceConfig", coordination_service_config_fields);

static const tn__pb_field coordinated_job_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("num_tasks", 2, INT32, NULL, NULL)
};
static const tn__pb_message coordinated_job = LIST("CoordinatedJob", coordinated_job_fields);
