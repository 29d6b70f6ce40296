/* SPDX-License-Identifier: Apache-2.0 */
/* What a step did ("RunMetadata"): which kernels ran, when, on which thread and device, and how large their outputs were;
 * and the graphs that ran.
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
 * A Run that is given metadata empties it when its step begins, and fills in what its options ask for: any trace_level above 0
 * the records, output_partition_graphs the graphs. One that is refused before its step begins leaves it as it was; one that
 * fails later leaves what was recorded until then. A trace never makes a step fail: where memory runs out it ends early,
 * and `cut` says so. Without metadata nothing is recorded, whatever the options say. A partial run has its metadata from the options
 * of its setup (tn_run_options.metadata), and fills it in when it ends.
 *
 * One call at a time may use an object: it is the caller's. Texts and arrays that it gives are borrowed from it until it is
 * given to another Run, or destroyed; they do not need the session. Each struct's struct_size is set by the caller; the library
 * fills what it covers and zeroes what it does not know. Since 0.1, S-MD */
#ifndef TENON_METADATA_H
#define TENON_METADATA_H

#include <tenon/session.h>

TN_BEGIN_DECLS

typedef struct tn_metadata_summary tn_metadata_summary;
typedef struct tn_node_record tn_node_record;
typedef struct tn_output_record tn_output_record;

/* What there is in all. */
struct tn_metadata_summary {
  size_t struct_size;
  uint64_t step_id;         /* a number of the process, from 1 up, whatever the session; a step is given one when
                             * somebody first asks for it (tn_step_id, metadata), so it is no count of steps */
  int64_t start_unix_ns;    /* when the step began, in nanoseconds since 1970 */
  int64_t duration_ns;      /* until it had ended; 0: nothing was traced */
  uint64_t records;         /* of tn_run_metadata_record */
  uint64_t devices;
  uint64_t threads;         /* that recorded something */
  uint64_t partition_graphs;
  tn_bool traced;           /* a trace was asked for */
  tn_bool cut;              /* something is missing: memory ran out, or there was too much (some millions of records) */
  tn_bool reserved[6];
};

enum {
  TN_RECORD_NODE = 0, /* a node's kernel, from its beginning to its end */
  TN_RECORD_EMPTY = 1, /* a node that had nothing to compute: its outputs are its inputs, or were known before */
  TN_RECORD_PART = 2  /* what another thread did of a loop of the node's kernel */
};

/* Something that ran. */
struct tn_node_record {
  size_t struct_size;
  const char *node;    /* name; of a node in a function that was called, behind the names of the calls: "call/node" */
  const char *op;
  const char *kernel;  /* "" = the library's own executor */
  const char *label;   /* "name = Op(inputs)" */
  const char *device;  /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  int32_t kind;        /* TN_RECORD_... */
  uint32_t thread;     /* 0: the one that ran the step; else the number of a worker of the pool; from 65536 on: other threads
                        * that called a partial run which the first one set up */
  int64_t start_ns;    /* since the step began */
  int64_t duration_ns;
  uint64_t output_bytes;  /* of all outputs */
  uint64_t scratch_bytes; /* that the kernel had besides */
  uint32_t n_outputs;     /* of tn_run_metadata_output; 0 for a part, and after an error */
  tn_status status;       /* what it ended with */
  tn_bool waited;         /* it was called more than once, and other nodes ran in between */
  tn_bool reserved[7];
};

/* One output of a node. */
struct tn_output_record {
  size_t struct_size;
  const int64_t *dims;
  uint64_t bytes;
  tn_dtype dtype;
  int32_t rank;
};

#ifndef TN_PLUGIN
/* An empty one. TN_RESOURCE_EXHAUSTED; *out is the caller's. Any thread. Since 0.1 */
TN_API tn_status tn_run_metadata_create(tn_run_metadata **out, tn_error *err);
/* NULL allowed. No Run may use it any more. Since 0.1 */
TN_API void tn_run_metadata_destroy(tn_run_metadata *metadata);

/* TN_INVALID_ARGUMENT for NULL, or a struct_size that is not set. Since 0.1 */
TN_API tn_status tn_run_metadata_summary(const tn_run_metadata *metadata, tn_metadata_summary *out, tn_error *err);
/* Record i, in the order in which they began; TN_OUT_OF_RANGE past the end. Since 0.1, S-MD-02 */
TN_API tn_status tn_run_metadata_record(const tn_run_metadata *metadata, size_t i, tn_node_record *out, tn_error *err);
/* Output k of record i; TN_OUT_OF_RANGE past the end. Since 0.1 */
TN_API tn_status tn_run_metadata_output(const tn_run_metadata *metadata, size_t i, uint32_t k, tn_output_record *out,
                                        tn_error *err);
/* Device i that something ran on; NULL past the end. Since 0.1 */
TN_API const char *tn_run_metadata_device(const tn_run_metadata *metadata, size_t i);
/* Graph i of those that ran, one for each device, as a serialized GraphDef; TN_OUT_OF_RANGE past the end. Its nodes are those
 * of the plan: what the planner made of the program's. Bytes are borrowed. Since 0.1, S-RO-13 */
TN_API tn_status tn_run_metadata_partition_graph(const tn_run_metadata *metadata, size_t i, const void **bytes, size_t *size,
                                                 tn_error *err);

/* All of it as a serialized RunMetadata of TensorFlow: step statistics, partition graphs, the session's name. Parts of loops
 * (TN_RECORD_PART) are left out. *bytes is freed by tn_free. TN_RESOURCE_EXHAUSTED. Since 0.1, S-MD-05 */
TN_API tn_status tn_run_metadata_serialize(const tn_run_metadata *metadata, void **bytes, size_t *size, tn_error *err);
/* The same into a file, which is written whole or not at all. Codes of files: TN_NOT_FOUND, TN_PERMISSION_DENIED, ...
 * Since 0.1 */
TN_API tn_status tn_run_metadata_save(const tn_run_metadata *metadata, const char *path, tn_error *err);
#endif

TN_END_DECLS

#endif
