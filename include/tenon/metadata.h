/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a step ("RunMetadata"): which kernels ran, when, on which thread and device, what they
 * cost, and the sizes of their outputs; and the graphs that ran.
 *
 *     tn_run_metadata *metadata = NULL;
 *     tn_run_options options;
 *     tn_run_options_init(&options);
 *     options.trace_level = 3;
 *     tn_run_metadata_create(&metadata, &err);
 *     tn_session_run(session, &options, ..., metadata, &err);
 *     tn_run_metadata_serialize(metadata, &bytes, &size, &err);   for TensorFlow's tools
 *     tn_run_metadata_destroy(metadata);
 *
 * A Run with metadata empties the object when its step begins and fills in what its options
 * request: with any trace_level above 0 the records, with output_partition_graphs the graphs. A Run
 * that is rejected before its step begins leaves the object unchanged; one that fails later leaves
 * what was recorded until then. Tracing never makes a step fail: if memory runs out, the trace ends
 * early and `cut` is set. Without metadata nothing is recorded, whatever the options say. A partial
 * run takes its metadata from the options of its setup (tn_run_options.metadata) and fills it in
 * when it ends.
 *
 * The caller owns the object; only one call at a time may use it. Strings and arrays are borrowed
 * from it until it is passed to another Run or destroyed; they do not depend on the session. The
 * caller sets each struct's struct_size; the library fills in the fields that it covers and zeroes
 * those that it does not know. Since 0.1, S-MD */
#ifndef TENON_METADATA_H
#define TENON_METADATA_H

#include <tenon/session.h>

TN_BEGIN_DECLS

typedef struct tn_metadata_summary tn_metadata_summary;
typedef struct tn_node_record tn_node_record;
typedef struct tn_output_record tn_output_record;

/* Totals. */
struct tn_metadata_summary {
  size_t struct_size;
  uint64_t step_id;         /* unique in the process, from 1 up, across all sessions; assigned on
                             * the first request (tn_step_id, metadata), so ids do not count steps */
  int64_t start_unix_ns;    /* start of the step, nanoseconds since 1970 */
  int64_t duration_ns;      /* until the end of the step, nanoseconds; 0: nothing was traced */
  uint64_t records;         /* number of entries of tn_run_metadata_record */
  uint64_t devices;         /* number of entries of tn_run_metadata_device */
  uint64_t threads;         /* threads with records */
  uint64_t partition_graphs; /* number of entries of tn_run_metadata_partition_graph */
  tn_bool traced;           /* a trace was requested */
  tn_bool cut;              /* records are missing: memory ran out, or there were too many (some millions) */
  tn_bool reserved[6];
};

enum {
  TN_RECORD_NODE = 0, /* a node's kernel, from start to end */
  TN_RECORD_EMPTY = 1, /* a node with nothing to compute: its outputs are its inputs, or were known before */
  TN_RECORD_PART = 2  /* work of another thread on a loop of the node's kernel */
};

/* A record of something that ran. */
struct tn_node_record {
  size_t struct_size;
  const char *node;    /* name; in a called function prefixed with the names of the calls: "call/node" */
  const char *op;      /* type of the node */
  const char *kernel;  /* "" = the library's own executor */
  const char *label;   /* "name = Op(inputs)" */
  const char *device;  /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  int32_t kind;        /* TN_RECORD_... */
  uint32_t thread;     /* 0: the thread that ran the step; else the number of a worker of the pool;
                        * from 65536: other threads that made calls on a partial run */
  int64_t start_ns;    /* nanoseconds since the step began */
  int64_t duration_ns;    /* nanoseconds */
  uint64_t output_bytes;  /* of all outputs */
  uint64_t scratch_bytes; /* scratch memory of the kernel */
  uint32_t n_outputs;     /* number of entries of tn_run_metadata_output; 0 for a part and after an error */
  tn_status status;       /* status of the kernel */
  tn_bool waited;         /* it was called more than once, and other nodes ran in between */
  tn_bool reserved[7];
  double flops;           /* floating-point operations of the node on these shapes (tn_cost_ctx of
                           * <tenon/op.h>); 0 for all but TN_RECORD_NODE, for calls and loops, whose
                           * inner nodes have their own, and after an error */
  uint64_t moved_bytes;   /* bytes of inputs and outputs that the node must read or write; 0 as above */
};

/* One output of a node. */
struct tn_output_record {
  size_t struct_size;
  const int64_t *dims; /* rank numbers */
  uint64_t bytes;
  tn_dtype dtype;
  int32_t rank;
};

#ifndef TN_PLUGIN
/* Creates an empty object, owned by the caller. Returns TN_RESOURCE_EXHAUSTED. Any thread.
 * Since 0.1 */
TN_API tn_status tn_run_metadata_create(tn_run_metadata **out, tn_error *err);
/* Frees the object; no Run may still use it. NULL allowed. Since 0.1 */
TN_API void tn_run_metadata_destroy(tn_run_metadata *metadata);

/* Totals. TN_INVALID_ARGUMENT for NULL, or a struct_size that is not set. Since 0.1 */
TN_API tn_status tn_run_metadata_summary(const tn_run_metadata *metadata, tn_metadata_summary *out, tn_error *err);
/* Record i, ordered by start time; TN_OUT_OF_RANGE past the end. Since 0.1, S-MD-02 */
TN_API tn_status tn_run_metadata_record(const tn_run_metadata *metadata, size_t i, tn_node_record *out, tn_error *err);
/* Output k of record i; TN_OUT_OF_RANGE past the end. Since 0.1 */
TN_API tn_status tn_run_metadata_output(const tn_run_metadata *metadata, size_t i, uint32_t k, tn_output_record *out,
                                        tn_error *err);
/* Name of device i with records; NULL past the end. Since 0.1 */
TN_API const char *tn_run_metadata_device(const tn_run_metadata *metadata, size_t i);
/* Graph i of those that ran, one per device, as a serialized GraphDef; TN_OUT_OF_RANGE past the
 * end. Its nodes are those of the plan, as the planner derived them from the program's graph. Bytes
 * are borrowed. Since 0.1, S-RO-13 */
TN_API tn_status tn_run_metadata_partition_graph(const tn_run_metadata *metadata, size_t i, const void **bytes,
                                                 size_t *size, tn_error *err);

/* Serialises everything as TensorFlow's RunMetadata: step statistics, partition graphs, the
 * session's name. Parts of loops (TN_RECORD_PART) are omitted. Free *bytes with tn_free. Returns
 * TN_RESOURCE_EXHAUSTED. Since 0.1, S-MD-05 */
TN_API tn_status tn_run_metadata_serialize(const tn_run_metadata *metadata, void **bytes, size_t *size, tn_error *err);
/* The same into a file, which is written completely or not at all. Returns file errors:
 * TN_NOT_FOUND, TN_PERMISSION_DENIED, ... Since 0.1 */
TN_API tn_status tn_run_metadata_save(const tn_run_metadata *metadata, const char *path, tn_error *err);
#endif

TN_END_DECLS

#endif
