/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a step: which calls ran, when, and on which thread. Each thread records into a lane
 * of its own, in chunks, without a lock; the first record of a thread takes a lock to make its
 * lane. A trace never fails a step: if memory runs out, further records are dropped and the trace
 * is marked as cut. */
#ifndef TN_CORE_EXEC_STEP_TRACE_H
#define TN_CORE_EXEC_STEP_TRACE_H

#include <core/base/threads/lock.h>
#include <tenon/metadata.h>
#include <tenon/op.h>

struct tn__call;
struct tn__instance;
struct tn__run;

/* The function that a record was made in: function `k` of node `op`, inside of `around`. A tree,
 * owned by its lane. Only the lane's thread changes it, but records of other lanes may point into
 * it. */
typedef struct tn__trace_scope {
  struct tn__trace_scope *around; /* NULL: the step itself */
  struct tn__trace_scope *first, *next; /* the calls inside of it, as a list; the next one in the same scope */
  struct tn__trace_scope *last_used;    /* of those inside of it: where the search for the next call begins */
  const tn_operation *op;
  uint32_t k;
} tn__trace_scope;

/* An output or input of a call: its type and shape, not its elements. */
typedef struct tn__trace_output {
  tn_dtype dtype; /* TN_DTYPE_INVALID: it has no value */
  int32_t rank;
  size_t bytes;
  int64_t dims[];
} tn__trace_output;

/* One call, or one part of its loop. Its outputs and then its inputs follow it in memory, one after the other. */
typedef struct tn__trace_record {
  const tn_operation *op;
  const tn_kernel_def *kernel; /* NULL = none */
  const char *device;          /* NULL = the device of the node */
  const tn__trace_scope *scope;
  int64_t start_ns, end_ns; /* monotonic */
  size_t bytes;             /* of the record with its outputs and inputs */
  size_t scratch_bytes;
  uint32_t n_outputs, n_inputs;
  tn_status status;
  uint8_t kind; /* TN_RECORD_... */
  bool waited;  /* the call returned TN_PENDING at least once */
} tn__trace_record;

/* Records follow the struct in memory. A chunk is never moved, so pointers to records stay valid. */
typedef struct tn__trace_chunk {
  struct tn__trace_chunk *next;
  size_t used, room; /* bytes */
} tn__trace_chunk;

/* The records of one thread. Only that thread writes to it, until the step has ended. */
typedef struct tn__trace_lane {
  struct tn__trace_lane *next; /* guarded by the trace's mu */
  uint32_t thread; /* 0 = the thread that runs the step; the number of a worker; other threads count from
                      TN__TRACE_STRANGERS */
  uint32_t n;      /* number of records */
  pthread_t self;  /* tells threads apart that are no workers */
  tn__trace_scope *scope; /* current function of the thread */
  tn__trace_scope top;    /* the scope of records outside of functions */
  tn__trace_chunk *first, *last;
} tn__trace_lane;
#define TN__TRACE_STRANGERS (1u << 16)

typedef struct tn__trace {
  uint64_t id; /* unique in the process: threads remember their lane by it */
  int64_t began_ns, ended_ns; /* monotonic */
  int64_t began_unix_ns;      /* the same moment as began_ns, on the wall clock */
  tn__mutex mu;
  tn__trace_lane *lanes; /* guarded by mu */
  _Atomic bool cut;      /* records are missing */
} tn__trace;

/* Begins a trace for a step that begins now on this thread; NULL without memory. */
tn__trace *tn__trace_begin(void);
void tn__trace_end(tn__trace *trace); /* sets the end time */
void tn__trace_destroy(tn__trace *trace); /* no thread may record any more; NULL allowed */

/* Records a kernel call that began at began_ns and ends now. Call it before the values that it reads last are
 * released. */
void tn__trace_call(tn__trace *trace, const struct tn__call *call, int64_t began_ns, bool waited, tn_status status);
/* The begin of a call that may wait: the time at which this function was first called for it.
 * `call` must be that of a tn__pending. */
int64_t tn__call_began(struct tn__call *call);
/* Records instructions [begin, end) of the instance's segment, which compute nothing. */
void tn__trace_empty(tn__trace *trace, const struct tn__run *run, const struct tn__instance *instance, uint32_t begin,
                     uint32_t end);
/* Records the end of the segment's one instruction, a Merge or a loop. */
void tn__trace_whole(tn__trace *trace, const struct tn__run *run, uint32_t segment, int64_t began_ns, tn_status status);

/* The current function of this thread. tn__trace_move sets it to that of another thread; pass its result to
 * tn__trace_leave to return. */
tn__trace_scope *tn__trace_scope_now(tn__trace *trace);
tn__trace_scope *tn__trace_move(tn__trace *trace, tn__trace_scope *scope);
/* This thread enters function k of a node; pass the result to tn__trace_leave, which leaves it. */
tn__trace_scope *tn__trace_enter(tn__trace *trace, const tn_operation *op, uint32_t k);
void tn__trace_leave(tn__trace *trace, tn__trace_scope *before);

/* tn__parallel_for for a kernel's loop; records each part that another thread runs. */
void tn__trace_loop(const struct tn__call *call, int64_t n, int64_t grain, double cost_ns,
                    void (*fn)(void *user, int64_t begin, int64_t end), void *user);

/* A new record on this thread's lane, in the thread's current function; bytes: with its outputs and inputs.
 * NULL: the trace is cut. */
tn__trace_record *tn__trace_record_create(tn__trace *trace, size_t bytes);
static inline size_t tn__trace_output_bytes(int32_t rank)
{
  return sizeof(tn__trace_output) + (size_t)rank * sizeof(int64_t);
}
/* Fills in an output; returns the place of the next one. */
static inline tn__trace_output *tn__trace_put_output(tn__trace_output *o, tn_dtype dtype, const int64_t *dims,
                                                     int32_t rank, size_t bytes)
{
  *o = (tn__trace_output){ .dtype = dtype, .rank = rank, .bytes = bytes };
  for (int32_t d = 0; d < rank; d++) o->dims[d] = dims[d];
  return (tn__trace_output *)(o->dims + rank);
}

/* ---- reading, once the step has ended ---- */

/* The lane's first record for NULL, then the next one; NULL at the end. */
const tn__trace_record *tn__trace_next(const tn__trace_lane *lane, const tn__trace_chunk **chunk,
                                       const tn__trace_record *record);
static inline const tn__trace_output *tn__trace_first_output(const tn__trace_record *r)
{
  return (const tn__trace_output *)(r + 1);
}
static inline const tn__trace_output *tn__trace_next_output(const tn__trace_output *o)
{
  return (const tn__trace_output *)(o->dims + o->rank);
}

#endif
