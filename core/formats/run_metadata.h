/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a step behind <tenon/metadata.h>, and their encoding as TensorFlow's RunMetadata. Immutable once the
 * step has returned, so any thread may read them. */
#ifndef TN_CORE_FORMATS_RUN_METADATA_H
#define TN_CORE_FORMATS_RUN_METADATA_H

#include <core/base/arena.h>
#include <core/formats/sink.h>
#include <tenon/metadata.h>

/* The part that all records of a node share. */
typedef struct tn__metadata_node {
  const char *name, *op, *label;
  uint32_t device; /* index in devices */
} tn__metadata_node;

typedef struct tn__metadata_record {
  const tn__metadata_node *node;
  const char *kernel;
  const tn_output_record *outputs;
  int64_t start_ns, duration_ns; /* start: since the start of the step */
  uint64_t scratch_bytes, moved_bytes;
  double flops;
  uint32_t n_outputs, thread; /* thread: 0 is the one that ran the step, others are workers */
  tn_status status;
  uint8_t kind; /* TN_RECORD_... */
  bool waited;
} tn__metadata_record;

struct tn_run_metadata {
  tn_metadata_summary summary;
  tn__arena arena; /* of all texts, outputs and arrays below */
  tn__metadata_record *records; /* summary.records of them, in the order of their start */
  const char **devices;         /* summary.devices of them */
  tn__slice *graphs;            /* summary.partition_graphs of them; each from tn_alloc, owned */
  const char *session_name;     /* "" = none */
  int64_t session_version;
  bool one_device; /* the session has only one device */
};

/* Encodes the metadata into a memory sink. */
void tn__run_metadata_write(tn__sink *s, const tn_run_metadata *metadata);

#endif
