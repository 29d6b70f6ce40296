/* SPDX-License-Identifier: Apache-2.0 */
/* RunMetadata in protobuf's wire format, filled in as TensorFlow does. Fields that are 0 are omitted. */
#include <core/formats/run_metadata.h>
#include <core/formats/wire.h>

#include <string.h>

/* Field numbers: RunMetadata; StepStats; DeviceStepStats and an entry of its thread names; NodeExecStats. */
enum { M_STEP_STATS = 1, M_PARTITION_GRAPH = 3, M_SESSION = 5 };
enum { S_DEVICE = 1 };
enum { D_NAME = 1, D_NODE = 2, D_THREAD_NAME = 3, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum {
  N_NAME = 1,
  N_START_US = 2,
  N_OP_END_US = 4,
  N_ALL_END_US = 5,
  N_MEMORY = 6,
  N_OUTPUT = 7,
  N_LABEL = 8,
  N_SCHEDULED_US = 9,
  N_THREAD = 10,
  N_MEMORY_STATS = 12,
  N_START_NS = 13,
  N_OP_END_NS = 15,
  N_ALL_END_NS = 16,
  N_SCHEDULED_NS = 17
};
enum { U_NAME = 1, U_TOTAL = 2, U_PEAK = 3, U_LIVE = 4 };       /* AllocatorMemoryUsed */
enum { O_SLOT = 1, O_TENSOR = 3 };                              /* NodeOutput */
enum { T_DTYPE = 1, T_SHAPE = 2, T_ALLOCATION = 4 };            /* TensorDescription */
enum { A_REQUESTED = 1, A_ALLOCATED = 2, A_NAME = 3 };          /* AllocationDescription */
enum { SHAPE_DIM = 2, DIM_SIZE = 1, TEMPORARY_BYTES = 1, SESSION_NAME = 1, SESSION_VERSION = 2 };

#define ALLOCATOR "cpu"

/* Begins a nested message; returns the place for tn__sink_end. */
static size_t begin(tn__sink *s, uint32_t field)
{
  tn__sink_tag(s, field, TN__WIRE_BYTES);
  return tn__sink_begin(s);
}

static void put_int(tn__sink *s, uint32_t field, int64_t value)
{
  if (value != 0) tn__sink_int(s, field, (uint64_t)value);
}

static void put_text(tn__sink *s, uint32_t field, const char *text)
{
  tn__sink_bytes(s, field, (tn__slice){ text, strlen(text) });
}

/* ---- nodes ---- */

static void put_shape(tn__sink *s, const tn_output_record *o)
{
  size_t shape = begin(s, T_SHAPE);
  for (int32_t d = 0; d < o->rank; d++) {
    size_t dim = begin(s, SHAPE_DIM);
    put_int(s, DIM_SIZE, o->dims[d]);
    tn__sink_end(s, dim);
  }
  tn__sink_end(s, shape);
}

static void put_output(tn__sink *s, uint32_t slot, const tn_output_record *o)
{
  if (o->dtype == TN_DTYPE_INVALID) return; /* an exit of a loop without a value */
  size_t output = begin(s, N_OUTPUT);
  put_int(s, O_SLOT, slot);
  size_t tensor = begin(s, O_TENSOR);
  put_int(s, T_DTYPE, o->dtype);
  put_shape(s, o);
  size_t allocation = begin(s, T_ALLOCATION);
  put_int(s, A_REQUESTED, (int64_t)o->bytes);
  put_int(s, A_ALLOCATED, (int64_t)o->bytes);
  put_text(s, A_NAME, ALLOCATOR);
  tn__sink_end(s, allocation);
  tn__sink_end(s, tensor);
  tn__sink_end(s, output);
}

/* TensorFlow's memory statistics of a node: outputs stay live, scratch memory counts for total and peak only. */
static void put_memory(tn__sink *s, const tn__metadata_record *r)
{
  uint64_t outputs = 0;
  for (uint32_t k = 0; k < r->n_outputs; k++) outputs += r->outputs[k].bytes;
  if (r->kind == TN_RECORD_EMPTY || outputs + r->scratch_bytes == 0) return;
  size_t memory = begin(s, N_MEMORY);
  put_text(s, U_NAME, ALLOCATOR);
  put_int(s, U_TOTAL, (int64_t)(outputs + r->scratch_bytes));
  put_int(s, U_PEAK, (int64_t)(outputs + r->scratch_bytes));
  put_int(s, U_LIVE, (int64_t)outputs);
  tn__sink_end(s, memory);
}

/* The fields in microseconds are differences of rounded times, so consecutive records do not overlap. */
static void put_times(tn__sink *s, int64_t start_ns, int64_t duration_ns)
{
  int64_t us = (start_ns + duration_ns) / 1000 - start_ns / 1000;
  put_int(s, N_START_US, start_ns / 1000);
  put_int(s, N_OP_END_US, us);
  put_int(s, N_ALL_END_US, us);
  put_int(s, N_SCHEDULED_US, start_ns / 1000);
  put_int(s, N_START_NS, start_ns);
  put_int(s, N_OP_END_NS, duration_ns);
  put_int(s, N_ALL_END_NS, duration_ns);
  put_int(s, N_SCHEDULED_NS, start_ns);
}

static void put_node(tn__sink *s, const tn_run_metadata *m, const tn__metadata_record *r)
{
  size_t node = begin(s, D_NODE);
  put_text(s, N_NAME, r->node->name);
  put_times(s, m->summary.start_unix_ns + r->start_ns, r->duration_ns);
  put_memory(s, r);
  for (uint32_t k = 0; k < r->n_outputs; k++) put_output(s, k, &r->outputs[k]);
  put_text(s, N_LABEL, r->node->label);
  put_int(s, N_THREAD, r->thread);
  size_t memory = begin(s, N_MEMORY_STATS);
  put_int(s, TEMPORARY_BYTES, (int64_t)r->scratch_bytes);
  tn__sink_end(s, memory);
  tn__sink_end(s, node);
}

/* ---- devices ---- */

/* A name for the thread, which viewers show. */
static void put_thread(tn__sink *s, uint32_t thread)
{
  char name[32] = "step";
  if (thread != 0) tn__snprintf(name, sizeof name, "worker %u", thread);
  size_t entry = begin(s, D_THREAD_NAME);
  tn__sink_int(s, ENTRY_KEY, thread);
  put_text(s, ENTRY_VALUE, name);
  tn__sink_end(s, entry);
}

/* All records of one device, except those of parts that a runtime runs as a whole. */
static void put_device(tn__sink *s, const tn_run_metadata *m, uint32_t device)
{
  size_t place = begin(s, S_DEVICE);
  uint32_t last = UINT32_MAX;
  put_text(s, D_NAME, m->devices[device]);
  for (size_t i = 0; s->status == TN_OK && i < m->summary.records; i++) {
    const tn__metadata_record *r = &m->records[i];
    if (r->node->device != device || r->kind == TN_RECORD_PART) continue;
    put_node(s, m, r);
    if (r->thread != last) put_thread(s, r->thread); /* a map entry: repeating it is harmless */
    last = r->thread;
  }
  tn__sink_end(s, place);
}

/* Step statistics are written only for a traced step; partition graphs and the session's name always. */
void tn__run_metadata_write(tn__sink *s, const tn_run_metadata *m)
{
  if (m->summary.traced) {
    size_t stats = begin(s, M_STEP_STATS);
    for (uint32_t d = 0; d < m->summary.devices; d++) put_device(s, m, d);
    tn__sink_end(s, stats);
  }
  for (size_t i = 0; i < m->summary.partition_graphs; i++) tn__sink_bytes(s, M_PARTITION_GRAPH, m->graphs[i]);
  if (m->session_name == NULL || *m->session_name == 0) return;
  size_t session = begin(s, M_SESSION);
  put_text(s, SESSION_NAME, m->session_name);
  put_int(s, SESSION_VERSION, m->session_version);
  tn__sink_end(s, session);
}
