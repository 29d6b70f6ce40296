/* SPDX-License-Identifier: Apache-2.0 */
/* Session options: a target and a configuration.
 *
 * The target names the runtime and its settings: "", "direct", "threaded:threads=4,pin=1". The
 * configuration is a set of named fields, each with a type and a default. Only one thread at a time
 * may use an options object; sessions copy it. Since 0.1 */
#ifndef TENON_OPTIONS_H
#define TENON_OPTIONS_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* X(name, KIND, default, text). Kinds are INT (int64), BOOL, STRING, FLOAT (double) and LIST. The
 * items of a list are a text, a number or both; lists are initially empty. */
#define TN_OPTION_MAP(X)                                                                                              \
  X(level, INT, 1, "optimisation level: 0 runs the graph unchanged, 1 is the default")                                \
  X(strict_shapes, BOOL, 0, "reject feeds whose shapes contradict the known part of the declared shape")              \
  X(static_graph, BOOL, 0, "reject extensions of the graph")                                                          \
  X(place_pruned_graph, BOOL, 0, "place only the nodes that a call requires")                                         \
  X(allow_soft_placement, BOOL, 0, "run a node on the CPU if its device is absent or has no kernel for it")           \
  X(log_device_placement, BOOL, 0, "log the device of each node")                                                     \
  X(isolate_session_state, BOOL, 0, "use private containers, not shared with other sessions")                         \
  X(use_per_session_threads, BOOL, 0, "use a private thread pool")                                                    \
  X(inter_op_threads, INT, 0, "maximum threads per step: 0 = usable CPUs, negative = only the calling thread")        \
  X(intra_op_threads, INT, 0, "threads per kernel: 0 = automatic, 1 = only the calling thread")                       \
  X(operation_timeout_ms, INT, 0, "time limit of each step in milliseconds, 0 = none")                                \
  X(memory_limit_bytes, INT, 0, "memory limit of the session in bytes, 0 = none")                                     \
  X(max_signatures, INT, 64, "maximum number of compiled signatures cached for Run")                                  \
  X(max_layouts, INT, 16, "maximum number of memory layouts cached per plan, one for each tuple of input shapes")     \
  X(session_name, STRING, "", "name of the session; name and version are unique among live sessions")                 \
  X(session_version, INT, 0, "version of the session, not negative")                                                  \
  X(disable_passes, STRING, "", "planner passes to disable, separated by commas")                                     \
  X(kernel_plugins, STRING, "auto", "when to use kernels from plugins: auto (for heavy graphs), always, never")       \
  X(reproducible, BOOL, 0, "same bits on every processor: no fused multiply-add, no kernels from plugins; CPU only") \
  X(weights, STRING, "float32", "type in which constants that products multiply by are kept: float32, bfloat16, int8") \
  X(runtime_ranks, STRING, "", "ranks of runtimes for an empty target, name=rank,...; override TENON_RANK")           \
  X(device_count, LIST, "", "number of devices of each type, TYPE=N,...; unknown types are ignored")                  \
  X(device_filters, LIST, "", "restrict the session to devices that match one of these, DEVICE,...")                  \
  X(session_inter_op_pools, LIST, "", "thread pools selectable per call, THREADS, or THREADS@NAME for a shared pool") \
  X(memory_fraction, FLOAT, 1.0, "fraction of GPU memory for the session, in (0,1]; ignored by CPU runtimes")         \
  X(disable_output_partition_graphs, BOOL, 0, "reject calls that request partition graphs")                           \
  X(read_folders, LIST, "", "folders whose files the graph may read, FOLDER,...; * = all files")                      \
  X(write_folders, LIST, "", "folders whose files the graph may write and read, FOLDER,...; * = all files")

enum { TN_OPTION_INT = 1, TN_OPTION_BOOL = 2, TN_OPTION_STRING = 3, TN_OPTION_FLOAT = 4, TN_OPTION_LIST = 5 };

#ifndef TN_PLUGIN
/* Creates options with an empty target and all fields at their defaults. Returns
 * TN_RESOURCE_EXHAUSTED. Since 0.1, S-OPT-01 */
TN_API tn_status tn_session_options_create(tn_session_options **out, tn_error *err);
TN_API tn_status tn_session_options_copy(const tn_session_options *from, tn_session_options **out, tn_error *err);
TN_API void tn_session_options_destroy(tn_session_options *options); /* NULL allowed */

/* Sets the target; the text is copied. TN_INVALID_ARGUMENT for a malformed one:
 * "name[:key=value,...]" with a name [a-z][a-z0-9_.]{0,63}. Whether such a runtime exists is
 * checked when the session is created. Since 0.1, S-OPT-10 */
TN_API tn_status tn_session_options_set_target(tn_session_options *options, const char *target, tn_error *err);

/* Sets a field. TN_NOT_FOUND lists the existing fields; TN_INVALID_ARGUMENT for a wrong kind or
 * range. Since 0.1 */
TN_API tn_status tn_session_options_set_int(tn_session_options *options, const char *field, int64_t value,
                                            tn_error *err);
TN_API tn_status tn_session_options_set_bool(tn_session_options *options, const char *field, tn_bool value,
                                             tn_error *err);
TN_API tn_status tn_session_options_set_string(tn_session_options *options, const char *field, const char *value,
                                               tn_error *err);
TN_API tn_status tn_session_options_set_float(tn_session_options *options, const char *field, double value,
                                              tn_error *err);

/* Sets a field from text, for example from a command line: "1", "true", "no", "500", "0.5". For a
 * list, the text is its new items, separated by commas: "CPU=3,GPU=1" (device_count),
 * "/device:CPU:0,/device:GPU:*" (device_filters), "2,4@shared" (session_inter_op_pools), "in,/tmp"
 * (read_folders); "" empties it. In an item, a backslash escapes a comma or a backslash. Since 0.1 */
TN_API tn_status tn_session_options_parse(tn_session_options *options, const char *field, const char *text,
                                          tn_error *err);

/* Edit the lists item by item; texts are copied. TN_INVALID_ARGUMENT for a NULL or empty text and a
 * number beyond 32 bits. tn_session_create checks the meaning of an item.
 *   device_count   n devices of a type; replaces an earlier item of that type. Without a CPU,
 *                  tn_session_create returns TN_NOT_FOUND.
 *   device_filter  a device name, or part of one as a node may have it: "/device:CPU:1",
 *                  "/job:localhost". With filters the session sees only devices that match one of
 *                  them.
 *   inter_op_pool  a pool that a call selects by its index in the list (tn_run_options). threads: 0
 *                  = usable CPUs. A pool with a global_name is shared by all sessions that name it,
 *                  with the same number of threads; NULL or "": the session's own.
 *   read_folder    a folder, which need not exist, or a file: ops may read it and what is below it. In
 *                  a session of a model (<tenon/model.h>) they may also read the model's folder;
 *                  otherwise all files are refused, with TN_PERMISSION_DENIED. "*" allows all files. A
 *                  relative path begins at the folder that is current when the session is created.
 *                  Symbolic links are followed before a path is compared.
 *   write_folder   the same for ops that create, replace or delete files; these may also be read.
 * Since 0.1, S-CFG-13, S-CFG-18, S-CFG-19, S-CFG-25 */
TN_API tn_status tn_session_options_set_device_count(tn_session_options *options, const char *type, int64_t n,
                                                     tn_error *err);
TN_API tn_status tn_session_options_add_device_filter(tn_session_options *options, const char *filter, tn_error *err);
TN_API tn_status tn_session_options_add_inter_op_pool(tn_session_options *options, int64_t threads,
                                                      const char *global_name, tn_error *err);
TN_API tn_status tn_session_options_add_read_folder(tn_session_options *options, const char *folder, tn_error *err);
TN_API tn_status tn_session_options_add_write_folder(tn_session_options *options, const char *folder, tn_error *err);

/* Resets a field of any kind to its default. TN_NOT_FOUND lists the existing fields. Since 0.1 */
TN_API tn_status tn_session_options_clear(tn_session_options *options, const char *field, tn_error *err);

/* Replaces the configuration by that of a serialized TensorFlow ConfigProto: each field above that
 * the message can express is set to its value, or to its default if the message does not set it.
 * The target and Tenon's own fields are unchanged. The message is kept, so that its other parts
 * (rewriter settings, clusters, XLA) are not lost.
 * Fields   device_count, intra_op_parallelism_threads, inter_op_parallelism_threads,
 *          use_per_session_threads, session_inter_op_thread_pool, device_filters,
 *          allow_soft_placement, log_device_placement, operation_timeout_in_ms (negative means
 *          none), isolate_session_state, gpu_options.per_process_gpu_memory_fraction (0 means the
 *          default), graph_options.place_pruned_graph, graph_options.optimizer_options.opt_level
 *          (negative is level 0, all else level 1), experimental.{session_metadata,
 *          optimize_for_static_graph, disable_output_partition_graphs}.
 * Returns  TN_INVALID_ARGUMENT for malformed bytes, naming the byte; the options are then
 *          unchanged. TN_RESOURCE_EXHAUSTED. Since 0.1, S-CFG */
TN_API tn_status tn_session_options_from_config(tn_session_options *options, const void *bytes, size_t size,
                                                tn_error *err);

/* The same from a file with a ConfigProto as bytes or in protobuf's text form, detected by its
 * content. In text, a field unknown to TensorFlow 2.21 is TN_INVALID_ARGUMENT with file, line and
 * column. Since 0.1 */
TN_API tn_status tn_session_options_load_config(tn_session_options *options, const char *path, tn_error *err);

/* The configuration as a serialized ConfigProto: the message that was read, if any, with the fields
 * replaced whose values have changed; otherwise the fields that are not at their defaults.
 * bytes    receives memory to be freed with tn_free; NULL on failure.
 * Returns  TN_INVALID_ARGUMENT for a number that a ConfigProto cannot hold, TN_RESOURCE_EXHAUSTED.
 *          Since 0.1 */
TN_API tn_status tn_session_options_to_config(const tn_session_options *options, void **bytes, size_t *size,
                                              tn_error *err);

/* The fields: name, kind and text of field i; NULL past the end. Static. Since 0.1 */
TN_API const char *tn_session_options_field(size_t i, int32_t *kind, const char **text);
#endif

/* Readers; results are borrowed from the options. Since 0.1 */
TN_API const char *tn_session_options_target(const tn_session_options *options);
/* The runtime's name in the target, "" if empty. Since 0.1 */
TN_API const char *tn_session_options_runtime(const tn_session_options *options);
/* Setting `key` of the target's "key=value" list, NULL if missing; setting i, NULL past the end.
 * Since 0.1 */
TN_API const char *tn_session_options_setting(const tn_session_options *options, const char *key);
TN_API const char *tn_session_options_setting_at(const tn_session_options *options, size_t i, const char **value);
TN_API tn_status tn_session_options_get_int(const tn_session_options *options, const char *field, int64_t *out,
                                            tn_error *err);
TN_API tn_status tn_session_options_get_bool(const tn_session_options *options, const char *field, tn_bool *out,
                                             tn_error *err);
TN_API tn_status tn_session_options_get_string(const tn_session_options *options, const char *field, const char **out,
                                               tn_error *err);
TN_API tn_status tn_session_options_get_float(const tn_session_options *options, const char *field, double *out,
                                              tn_error *err);
/* Item i of a list: its text ("" for none) and number (0 for none); either pointer may be NULL.
 * TN_OUT_OF_RANGE past the end, without an error text. Since 0.1 */
TN_API tn_status tn_session_options_get_item(const tn_session_options *options, const char *field, size_t i,
                                             const char **text, int64_t *number, tn_error *err);

/* Rejects settings of the target that are not among the n known keys: TN_INVALID_ARGUMENT naming
 * the setting and the known ones. For a runtime's accepts_options and explain_options. Since 0.1,
 * S-OPT-10 */
TN_API tn_status tn_session_options_check_settings(const tn_session_options *options, const char *const *keys, size_t n,
                                                   tn_error *err);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
