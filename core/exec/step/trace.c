/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a step: recording. The lanes and their records are described in trace.h. */
#include <core/exec/step/env.h>
#include <core/exec/step/pending.h>
#include <core/exec/step/trace.h>

#include <core/exec/step/workspace.h>
#include <string.h>
#include <time.h>

#define CHUNK_BYTES ((size_t)32 << 10)
#define MOST_RECORDS (UINT32_C(4) << 20) /* of a lane; further ones are dropped */

static _Atomic uint64_t trace_counter;

/* The lane that this thread used last. The id of a trace is never reused, so the lane of a freed
 * trace is never used. */
static _Thread_local struct {
  uint64_t trace;
  tn__trace_lane *lane;
} mine;

/* ---- lanes ---- */

/* Whether a lane is this thread's: worker is its number in its pool, 0 = it is no worker. */
static bool is_own(const tn__trace_lane *lane, uint32_t worker, pthread_t self)
{
  return worker != 0 ? lane->thread == worker
                     : (lane->thread == 0 || lane->thread >= TN__TRACE_STRANGERS) && pthread_equal(lane->self, self);
}

/* The trace's lock is held. The first lane is that of the thread that begins the trace. NULL
 * without memory. */
static tn__trace_lane *add_lane(tn__trace *trace, uint32_t worker, pthread_t self)
{
  uint32_t strangers = 0;
  for (const tn__trace_lane *l = trace->lanes; l != NULL; l = l->next) strangers += l->thread >= TN__TRACE_STRANGERS;
  tn__trace_lane *lane = tn__zalloc(sizeof *lane);
  if (lane == NULL) return NULL;
  lane->self = self;
  lane->scope = &lane->top;
  if (worker != 0) lane->thread = worker;
  else lane->thread = trace->lanes == NULL ? 0 : TN__TRACE_STRANGERS + strangers;
  lane->next = trace->lanes;
  trace->lanes = lane;
  return lane;
}

/* This thread's lane; NULL without memory. caller: this thread runs the step, which counts more
 * than that it may be a worker. */
static tn__trace_lane *find_lane(tn__trace *trace, bool caller)
{
  if (mine.trace == trace->id) return mine.lane;
  pthread_t self = pthread_self();
  uint32_t worker = caller ? 0 : tn__worker_number();
  tn__mutex_lock(&trace->mu);
  tn__trace_lane *lane = trace->lanes;
  while (lane != NULL && !(lane->thread == 0 && pthread_equal(lane->self, self)) && !is_own(lane, worker, self))
    lane = lane->next;
  if (lane == NULL) lane = add_lane(trace, worker, self);
  tn__mutex_unlock(&trace->mu);
  if (lane == NULL) {
    atomic_store_explicit(&trace->cut, true, memory_order_relaxed);
    return NULL;
  }
  mine.trace = trace->id;
  mine.lane = lane;
  return lane;
}

/* ---- life ---- */

static int64_t unix_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

tn__trace *tn__trace_begin(void)
{
  tn__trace *trace = tn__zalloc(sizeof *trace);
  if (trace == NULL) return NULL;
  trace->id = atomic_fetch_add_explicit(&trace_counter, 1, memory_order_relaxed) + 1;
  tn__mutex_init(&trace->mu, "trace", TN_RANK_TRACE);
  if (find_lane(trace, true) == NULL) { /* the thread that runs the step may be a worker in the crew of another step */
    tn__trace_destroy(trace);
    return NULL;
  }
  trace->began_unix_ns = unix_ns();
  trace->began_ns = trace->ended_ns = tn__now_ns();
  return trace;
}

void tn__trace_end(tn__trace *trace) { trace->ended_ns = tn__now_ns(); }

/* Frees all scopes inside of `top`. Not recursive, since calls may be nested deeply: the leaves are
 * freed first. */
static void free_scopes(tn__trace_scope *top)
{
  tn__trace_scope *s = top;
  for (;;) {
    if (s->first != NULL) {
      tn__trace_scope *first = s->first;
      s->first = first->next;
      s = first;
    } else if (s == top) {
      return;
    } else {
      tn__trace_scope *around = s->around;
      tn__free(s, sizeof *s);
      s = around;
    }
  }
}

void tn__trace_destroy(tn__trace *trace)
{
  if (trace == NULL) return;
  while (trace->lanes != NULL) {
    tn__trace_lane *lane = trace->lanes;
    trace->lanes = lane->next;
    while (lane->first != NULL) {
      tn__trace_chunk *chunk = lane->first;
      lane->first = chunk->next;
      tn__free(chunk, sizeof *chunk + chunk->room);
    }
    free_scopes(&lane->top);
    tn__free(lane, sizeof *lane);
  }
  tn__mutex_fini(&trace->mu);
  tn__free(trace, sizeof *trace);
}

/* ---- records ---- */

/* Appends a record to the lane; NULL: no memory, or the lane is full, and the trace is cut. */
static tn__trace_record *new_record(tn__trace *trace, tn__trace_lane *lane, size_t bytes)
{
  tn__trace_chunk *chunk = lane->last;
  if (chunk == NULL || chunk->room - chunk->used < bytes) {
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    chunk = lane->n < MOST_RECORDS ? tn__alloc(sizeof *chunk + room) : NULL;
    if (chunk == NULL) {
      atomic_store_explicit(&trace->cut, true, memory_order_relaxed);
      return NULL;
    }
    *chunk = (tn__trace_chunk){ .room = room };
    if (lane->last != NULL) lane->last->next = chunk;
    else lane->first = chunk;
    lane->last = chunk;
  }
  tn__trace_record *r = (tn__trace_record *)((char *)(chunk + 1) + chunk->used);
  chunk->used += bytes;
  lane->n++;
  *r = (tn__trace_record){ .bytes = bytes, .scope = lane->scope };
  return r;
}

tn__trace_record *tn__trace_record_create(tn__trace *trace, size_t bytes)
{
  tn__trace_lane *lane = find_lane(trace, false);
  return lane == NULL ? NULL : new_record(trace, lane, bytes);
}

const tn__trace_record *tn__trace_next(const tn__trace_lane *lane, const tn__trace_chunk **chunk,
                                       const tn__trace_record *record)
{
  if (record == NULL) {
    *chunk = lane->first;
    return lane->first == NULL ? NULL : (const tn__trace_record *)(lane->first + 1);
  }
  const char *next = (const char *)record + record->bytes;
  if (next < (const char *)(*chunk + 1) + (*chunk)->used) return (const tn__trace_record *)next;
  *chunk = (*chunk)->next;
  return *chunk == NULL ? NULL : (const tn__trace_record *)(*chunk + 1);
}

static size_t view_bytes(const tn_view *v) { return (size_t)v->count * tn_dtype_size(v->dtype); }

/* Slots of a call's operands: those of its inputs, then those of its outputs. */
typedef struct operands {
  const uint32_t *slots;
  uint32_t n_inputs, n_outputs;
} operands;

static tn__trace_output *put_slots(tn__trace_output *o, const tn__instance *in, const uint32_t *slots, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++) {
    const tn_view *v = &in->views[slots[k]];
    o = tn__trace_put_output(o, v->dtype, v->dims, v->rank, view_bytes(v));
  }
  return o;
}

/* A record with the values of these slots; NULL: the trace is cut. */
static tn__trace_record *record_slots(tn__trace *trace, const tn__instance *in, operands of)
{
  size_t bytes = sizeof(tn__trace_record);
  for (uint32_t k = 0; k < of.n_inputs + of.n_outputs; k++)
    bytes += tn__trace_output_bytes(in->views[of.slots[k]].rank);
  tn__trace_record *r = tn__trace_record_create(trace, bytes);
  if (r == NULL) return NULL;
  r->n_outputs = of.n_outputs;
  r->n_inputs = of.n_inputs;
  tn__trace_output *o = put_slots((tn__trace_output *)(r + 1), in, of.slots + of.n_inputs, of.n_outputs);
  put_slots(o, in, of.slots, of.n_inputs);
  return r;
}

void tn__trace_call(tn__trace *trace, const tn__call *call, int64_t began_ns, bool waited, tn_status status)
{
  const tn__tape *t = call->tape;
  const tn__layout *l = call->instance->layout;
  int64_t now = tn__now_ns();
  operands of = { l->operands + t->operands, t->n_inputs, t->n_outputs };
  if (status != TN_OK) of.n_inputs = of.n_outputs = 0;
  tn__trace_record *r = record_slots(trace, call->instance, of);
  if (r == NULL) return;
  r->op = call->run->plan->instrs[t->instr].op;
  r->kernel = tn__layout_kernel(l, t->instr)->def;
  r->start_ns = began_ns;
  r->end_ns = now;
  r->status = status;
  r->waited = waited;
  r->scratch_bytes = (size_t)t->scratch_units * TN_ALIGN;
}

int64_t tn__call_began(tn__call *call)
{
  tn__pending *p = (tn__pending *)call; /* its first member */
  if (p->began_ns == 0) p->began_ns = tn__now_ns();
  return p->began_ns;
}

void tn__trace_empty(tn__trace *trace, const tn__run *run, const tn__instance *instance, uint32_t begin, uint32_t end)
{
  int64_t now = tn__now_ns();
  for (uint32_t i = begin; i < end; i++) {
    const tn__plan_instr *instr = &run->plan->instrs[i];
    operands of = { run->plan->slots + instr->first + instr->n_inputs, 0, instr->n_outputs };
    tn__trace_record *r = record_slots(trace, instance, of);
    if (r == NULL) return;
    r->op = instr->op;
    r->kind = TN_RECORD_EMPTY;
    r->start_ns = r->end_ns = now;
  }
}

void tn__trace_whole(tn__trace *trace, const tn__run *run, uint32_t segment, int64_t began_ns, tn_status status)
{
  const tn_plan *plan = run->plan;
  const tn__plan_instr *instr = &plan->instrs[plan->segments[segment].begin];
  size_t bytes = sizeof(tn__trace_record);
  uint32_t n = 0;
  for (uint32_t k = 0; status == TN_OK && k < instr->n_outputs; k++, n++) {
    const tn_tensor *t = run->workspace->held[plan->values[tn__instr_outputs(plan, instr)[k]].held];
    bytes += tn__trace_output_bytes(t == NULL ? 0 : t->rank);
  }
  tn__trace_record *r = tn__trace_record_create(trace, bytes);
  if (r == NULL) return;
  r->op = instr->op;
  r->start_ns = began_ns;
  r->end_ns = tn__now_ns();
  r->status = status;
  r->n_outputs = n;
  tn__trace_output *o = (tn__trace_output *)(r + 1);
  for (uint32_t k = 0; k < n; k++) {
    const tn_tensor *t = run->workspace->held[plan->values[tn__instr_outputs(plan, instr)[k]].held];
    o = t == NULL ? tn__trace_put_output(o, TN_DTYPE_INVALID, NULL, 0, 0)
                  : tn__trace_put_output(o, t->dtype, t->dims, t->rank, t->bytes);
  }
}

/* ---- functions ---- */

static bool is_scope(const tn__trace_scope *s, const tn_operation *op, uint32_t k)
{
  return s != NULL && s->op == op && s->k == k;
}

/* The scope of function k of `op` inside of another one, made if it is not there. Loops repeat
 * calls in the same order, so the search begins after the scope that was used last. */
static tn__trace_scope *scope_in(tn__trace_scope *around, const tn_operation *op, uint32_t k)
{
  tn__trace_scope *last = around->last_used, *s = last;
  if (is_scope(s, op, k)) return s;
  for (s = last == NULL ? NULL : last->next; s != NULL && !is_scope(s, op, k); s = s->next) continue;
  if (s == NULL)
    for (s = around->first; s != NULL && !is_scope(s, op, k); s = s->next) continue;
  if (s == NULL) {
    s = tn__zalloc(sizeof *s);
    if (s == NULL) return NULL;
    s->around = around;
    s->op = op;
    s->k = k;
    tn__trace_scope **place = last == NULL ? &around->first : &last->next;
    s->next = *place;
    *place = s;
  }
  around->last_used = s;
  return s;
}

tn__trace_scope *tn__trace_enter(tn__trace *trace, const tn_operation *op, uint32_t k)
{
  tn__trace_lane *lane = find_lane(trace, false);
  if (lane == NULL) return NULL;
  tn__trace_scope *before = lane->scope, *s = scope_in(before, op, k);
  if (s == NULL) atomic_store_explicit(&trace->cut, true, memory_order_relaxed);
  else lane->scope = s;
  return before;
}

tn__trace_scope *tn__trace_scope_now(tn__trace *trace)
{
  tn__trace_lane *lane = find_lane(trace, false);
  return lane == NULL ? NULL : lane->scope;
}

tn__trace_scope *tn__trace_move(tn__trace *trace, tn__trace_scope *scope)
{
  tn__trace_lane *lane = find_lane(trace, false);
  if (lane == NULL) return NULL;
  tn__trace_scope *before = lane->scope;
  if (scope != NULL) lane->scope = scope;
  return before;
}

void tn__trace_leave(tn__trace *trace, tn__trace_scope *before)
{
  tn__trace_lane *lane = before == NULL ? NULL : find_lane(trace, false);
  if (lane != NULL) lane->scope = before;
}

/* ---- loops of kernels ---- */

/* A kernel's loop whose parts are recorded. */
typedef struct shared_loop {
  void (*fn)(void *user, int64_t begin, int64_t end);
  void *user;
  tn__trace *trace;
  const tn__call *call;
  const tn__trace_lane *caller; /* NULL: the trace is cut */
} shared_loop;

static void run_part(void *user, int64_t begin, int64_t end)
{
  const shared_loop *l = user;
  int64_t began = tn__now_ns();
  l->fn(l->user, begin, end);
  tn__trace_lane *lane = find_lane(l->trace, false);
  tn__trace_record *r = lane == NULL || lane == l->caller ? NULL : new_record(l->trace, lane, sizeof *r);
  if (r == NULL) return; /* the calling thread's parts are covered by the node's own record */
  r->op = l->call->run->plan->instrs[l->call->tape->instr].op;
  r->kernel = tn__layout_kernel(l->call->instance->layout, l->call->tape->instr)->def;
  r->scope = l->caller == NULL ? lane->scope : l->caller->scope;
  r->kind = TN_RECORD_PART;
  r->start_ns = began;
  r->end_ns = tn__now_ns();
}

void tn__trace_loop(const tn__call *call, int64_t n, int64_t grain, double cost_ns,
                    void (*fn)(void *user, int64_t begin, int64_t end), void *user)
{
  const tn__step_env *env = call->run->step->env;
  shared_loop l = { .fn = fn, .user = user, .trace = env->trace, .call = call, .caller = find_lane(env->trace, false) };
  tn__parallel_for(env->crew, n, grain, cost_ns, run_part, &l);
}
