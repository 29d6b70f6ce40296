/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the session tests: the runtime under test, small graphs, ops that a test can observe, and hand-coded
 * GraphDefs.
 *
 * The suites run on the runtime named by TENON_TEST_RUNTIME ("direct"), so that all runtimes follow the same rules. */
#ifndef TENON_CONFORMANCE_SUPPORT_SESSION_KIT_H
#define TENON_CONFORMANCE_SUPPORT_SESSION_KIT_H

#include <stdatomic.h>
#include <string.h>

#include <tenon/kit.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"
#include "conformance/support/tap.h"

/* Target of the sessions under test. */
const char *ts_runtime(void);

/* The name of a runtime without its settings. */
const char *ts_runtime_name(void);

#define FOR_LEVELS(level) for (int level = 0; level <= 1; level++)

/* ---- sessions ---- */

typedef struct ts {
  tn_graph *graph;
  tn_session *session;
  tn_session_options *options; /* with target and level set; change them before ts_start */
  tn_error err;
} ts;

/* An empty graph and options; registers the test ops. Ends the test on failure. */
void ts_init(ts *t, int level);

/* Opens the session and gives it the graph. */
void ts_start(ts *t);
void ts_fini(ts *t);

/* Whether the runtime has a reset (S-RST-12). If so, closes its sessions. */
bool ts_has_reset(void);
#define TS_NEEDS_RESET() \
  if (!ts_has_reset()) TAP_SKIP("UNIMPLEMENTED: %s has no reset", ts_runtime_name())

/* Empties a container (NULL: the default one) for the next test, if the runtime has a reset. */
void ts_clean(ts *t, const char *container);

/* ts_init, the usual graph, ts_start. The graph (all float32):
 *   x, y placeholders; two = 2; half = 0.5; unused placeholder z
 *   sum = x + y; twice = sum * two; neg = -x; lone = z + two */
void ts_open(ts *t, int level);

/* For tn_test_oom_sweep: a session with containers of its own on a graph in text form, which may use the folder of the
 * test's files. May fail after setting *out; the caller destroys it. */
tn_status ts_open_isolated(const char *text, tn_session **out);
void ts_usual_graph(tn_graph *graph);

/* ---- graphs ---- */

/* Each ends the test if the operation cannot be created. */
tn_output ts_placeholder(tn_graph *graph, const char *name, tn_dtype dtype);
tn_output ts_const(tn_graph *graph, const char *name, float value);
tn_output ts_const_tensor(tn_graph *graph, const char *name, tn_tensor *value);
tn_output ts_op1(tn_graph *graph, const char *op, const char *name, tn_output x);
tn_output ts_op2(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y);

/* ---- tensors ---- */

tn_tensor *ts_scalar(float value);
tn_tensor *ts_vector(size_t n, const float *values);
/* Every element is `value`. */
tn_tensor *ts_filled(int32_t rank, const int64_t *dims, float value);
float ts_float(const tn_tensor *tensor); /* element 0; NAN for NULL or another dtype */

/* ---- runs ---- */

/* A feed, a fetch, a target. Lists are terminated by a NULL name. */
typedef struct ts_feed {
  const char *name;
  float value;
} ts_feed;
#define FEEDS(...) ((const ts_feed[]){ __VA_ARGS__, { NULL, 0 } })
#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Feeds scalars, fetches into fetched[], which need not be initialised. Any list may be NULL. */
tn_status ts_run(ts *t, const ts_feed *feeds, const char *const *fetches, tn_tensor **fetched,
                 const char *const *targets);

/* Feeds scalars and fetches one scalar; NAN on failure, with the error in t->err. */
float ts_run1(ts *t, const ts_feed *feeds, const char *fetch);

/* ---- observable ops ----
 *
 * TestCount   x: T -> y: T    stateful; forwards x and counts in slot `slot`
 * TestEffect  ->              stateful; counts and records its slot in the log
 * TestRandom  x: T -> y: T    random trait; forwards x and counts
 * TestPlain   x: T -> y: T    no trait; forwards x and counts: the library may fold and merge it
 * TestFail    x: T -> y: T    fails with status number `slot` and text "told to fail"
 * TestGate    x: T -> y: T    stateful; waits for the gate to open or its step to be cancelled
 * TestDeaf    x: T -> y: T    stateful; waits for the gate only and ignores cancellation
 * TestLazy    x: T -> y: T    leaves its dynamic output without a value
 * TestHead    x: T, n: int32 -> y: T  the first n elements; the shape is known only after it ran
 * TestRefuse  x: T -> y: T    its create fails with INVALID_ARGUMENT
 * TestNothing ->              no effect, for control edges
 * All have T: {float} and slot: int = 0. */
#define TS_SLOTS 64

typedef struct ts_watch {
  atomic_int count[TS_SLOTS];
  atomic_int created[TS_SLOTS];   /* calls of create */
  atomic_int destroyed[TS_SLOTS]; /* calls of destroy */
  atomic_int log[256];            /* slots of TestEffects, in execution order */
  atomic_int n_log;
  atomic_int at_gate;                     /* kernels waiting at the gate */
  atomic_int gate;                        /* nonzero: open */
  atomic_int passed;                      /* kernels that have passed the gate */
  atomic_uint_fast64_t step_id[TS_SLOTS]; /* id of the last step that ran a TestCount */
  atomic_uint_fast64_t live_bytes;        /* library memory when a TestCount last ran */
  atomic_uintptr_t thread[TS_SLOTS];      /* the thread that last ran a TestCount: ts_this_thread */
  atomic_uintptr_t input[TS_SLOTS];       /* the address of its input */
} ts_watch;

extern ts_watch ts_watched;

/* Registers the family once per process; ts_init calls it. */
void ts_register_ops(void);

/* Resets everything to 0 and closes the gate. */
void ts_watch_reset(void);

/* ts_init with a reset watch; adds a float placeholder "in" to the graph and returns it. */
tn_output ts_open_watched(ts *t, int level);

/* Number of runs of this slot's op. */
int ts_counted(int slot);

/* A number unique among live threads; never 0. */
uintptr_t ts_this_thread(void);

/* An op of the test family with one input, or none if it is NULL, and its slot. */
tn_operation *ts_test_op(tn_graph *graph, const char *op, const char *name, const tn_output *x, int slot,
                         tn_operation *const *controls, size_t n_controls);
/* Output 0 of a test op with one input. */
tn_output ts_watch_op(tn_graph *graph, const char *op, const char *name, tn_output x, int slot);

/* Waits until n kernels are at the gate; false after ten seconds. */
bool ts_wait_at_gate(int n);
void ts_open_gate(void);
void ts_sleep_ms(int ms);
int64_t ts_now_ms(void);

/* ---- hand-coded GraphDefs ---- */

typedef struct ts_bytes {
  unsigned char data[4096];
  size_t size;
} ts_bytes;

/* Appends a node: inputs as in a GraphDef ("a", "a:1", "^c"), terminated by NULL. dtype 0: no attribute T. */
void ts_node(ts_bytes *def, const char *op, const char *name, const char *const *inputs, const char *type_attr,
             tn_dtype dtype);
/* A float scalar constant. */
void ts_node_const(ts_bytes *def, const char *name, float value);

#endif
