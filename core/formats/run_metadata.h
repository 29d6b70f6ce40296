/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a step, as <tenon/metadata.h> shows them, and their bytes as TensorFlow's RunMetadata. */
#ifndef TN_CORE_FORMATS_RUN_METADATA_H
#define TN_CORE_FORMATS_RUN_METADATA_H

#include <core/base/arena.h>
#include <core/formats/sink.h>
#include <tenon/metadata.h>

/* The part that all records of a node share. */
typedef struct tn__metadata_node {
  const char *name, *op, *label;
  uint32_t device; /* its number */
} tn__metadata_node;

typedef struct tn__metadata_record {
  const tn__metadata_node *node;
  const char *kernel;
  const tn_output_record *outputs;
  int64_t start_ns, duration_ns;
  uint64_t scratch_bytes;
  uint32_t n_outputs, thread;
  tn_status status;
  uint8_t kind;
  bool waited;
} tn__metadata_record;

struct tn_run_metadata {
  tn_metadata_summary summary;
  tn__arena arena; /* of all texts, outputs and arrays below */
  tn__metadata_record *records; /* in the order in which they began */
  const char **devices;
  tn__slice *graphs;         /* memory of tn_alloc */
  const char *session_name;  /* "" = none */
  int64_t session_version;
  bool one_device;           /* the session has no other */
};

/* Into a memory sink. */
void tn__run_metadata_write(tn__sink *s, const tn_run_metadata *metadata);

#endif
