/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of steps that do not end on their own: graph pieces that block, and steps on separate threads. */
#ifndef TENON_CONFORMANCE_SUPPORT_BLOCKED_KIT_H
#define TENON_CONFORMANCE_SUPPORT_BLOCKED_KIT_H

#include <pthread.h>

#include "conformance/support/variable_kit.h"

#define QT LIST("component_types", "type: DT_FLOAT")
#define PUTS LIST("Tcomponents", "type: DT_FLOAT")
#define LIST(key, values) "attr { key: '" key "' value { list { " values " } } }"
#define SLOT(n) F INT("slot", n)
#define SCALARS LIST("shapes", "shape { }")
#define SCALAR(name, value) TENSOR(name, "DT_FLOAT", "", "float_val: " value)
#define TRUTH(name, value, inputs)                                                                      \
  NODE(name, "Const", inputs, TYPE("dtype", "DT_BOOL") "attr { key: 'value' value { tensor { dtype: DT_BOOL " \
       "tensor_shape { } bool_val: " value " } } }")

/* Placeholder "x" and "begun", which counts a step in slot BEGUN before it blocks. */
#define BEGUN 40
#define START ANY("x", "DT_FLOAT") NODE("begun", "TestCount", "input: 'x'", F INT("slot", 40))

/* Queue "q" of scalars: "get", "put" (x), "size"; `more` are its attributes. "late" is a dequeue that is counted
 * in slot BEGUN first. */
#define QUEUE(more)                                                                                           \
  NODE("q", "FIFOQueueV2", "", QT SCALARS more) NODE("get", "QueueDequeueV2", "input: 'q'", QT)               \
  NODE("put", "QueueEnqueueV2", "input: 'q' input: 'x'", PUTS) NODE("size", "QueueSizeV2", "input: 'q'", "")  \
  NODE("late", "QueueDequeueV2", "input: 'q' input: '^begun'", QT)

/* Queue "narrow" with capacity 1: "fill" and "drain"; "squeeze" is counted in slot BEGUN first. */
#define NARROW                                                                                 \
  NODE("narrow", "FIFOQueueV2", "", QT SCALARS INT("capacity", 1))                             \
  NODE("fill", "QueueEnqueueV2", "input: 'narrow' input: 'x'", PUTS)                           \
  NODE("drain", "QueueDequeueV2", "input: 'narrow'", QT)                                       \
  NODE("squeeze", "QueueEnqueueV2", "input: 'narrow' input: 'begun'", PUTS)

/* Infinite loops: "exit" as frames, "while" as functions (requires LOOP_LIBRARY). */
#define LOOP                                                                                              \
  NODE("enter", "Enter", "input: 'begun'", F TEXT_ATTR("frame_name", "w"))                                \
  NODE("merge", "Merge", "input: 'enter' input: 'next'", F INT("N", 2))                                   \
  TRUTH("always", "true", "input: '^merge'") NODE("cond", "LoopCond", "input: 'always'", "")              \
  NODE("switch", "Switch", "input: 'merge' input: 'cond'", F) NODE("body", "Identity", "input: 'switch:1'", F) \
  NODE("next", "NextIteration", "input: 'body'", F) NODE("exit", "Exit", "input: 'switch'", F)
#define LOOP_LIBRARY "library { " UNARY("Same", "DT_FLOAT", "", "x") UNARY("Ever", "DT_BOOL", INNER("c", "Const", "", \
  FILLED("DT_BOOL", "bool_val: true")), "c:output:0") UNARY("Few", "DT_BOOL", INNER("k", "Const", "", \
  FILLED("DT_FLOAT", "float_val: 10")) INNER("l", "Less", "input: 'x' input: 'k:output:0'", F), "l:z:0") \
  UNARY("More", "DT_FLOAT", INNER("k", "Const", "", FILLED("DT_FLOAT", "float_val: 1")) \
  INNER("a", "AddV2", "input: 'x' input: 'k:output:0'", F), "a:z:0") "}\n"
#define INNER(name, op, inputs, attrs) "node_def { name: '" name "' op: '" op "' " inputs " " attrs " } "
#define UNARY(name, type, nodes, value)                                                                      \
  "function { signature { name: '" name "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: " type \
  " } } " nodes "ret { key: 'y' value: '" value "' } } "
#define FILLED(type, value)                                                                                  \
  TYPE("dtype", type) "attr { key: 'value' value { tensor { dtype: " type " tensor_shape { } " value " } } } "
#define WHILE ROUND("while", "input: 'begun'", "Ever", "Same")
#define ROUND(name, inputs, cond, body)                                                             \
  NODE(name, "While", inputs, LIST("T", "type: DT_FLOAT") "attr { key: 'cond' value { func { name: '" cond "' } } }" \
       "attr { key: 'body' value { func { name: '" body "' } } }")

/* Loops that count x up to 10: "ten" as frames, "few" as functions. */
#define COUNTS                                                                                              \
  ROUND("few", "input: 'x'", "Few", "More") NODE("t_enter", "Enter", "input: 'x'", F TEXT_ATTR("frame_name", "t")) \
  NODE("t_merge", "Merge", "input: 't_enter' input: 't_next'", F INT("N", 2))                               \
  NODE("t_k", "Const", "input: '^t_merge'", FILLED("DT_FLOAT", "float_val: 10"))                            \
  NODE("t_less", "Less", "input: 't_merge' input: 't_k'", F) NODE("t_cond", "LoopCond", "input: 't_less'", "") \
  NODE("t_switch", "Switch", "input: 't_merge' input: 't_cond'", F) \
  NODE("t_body", "Identity", "input: 't_switch:1'", F) \
  NODE("t_one", "Const", "input: '^t_body'", FILLED("DT_FLOAT", "float_val: 1"))                            \
  NODE("t_add", "AddV2", "input: 't_body' input: 't_one'", F) NODE("t_next", "NextIteration", "input: 't_add'", F) \
  NODE("ten", "Exit", "input: 't_switch'", F)

/* Variable "v" of a scalar: "set" (to x), "add" (x), "read". */
#define SCALAR_VARIABLE(more)                                                                               \
  NODE("v", "VarHandleOp", "", DT SHAPE("") more) NODE("set", "AssignVariableOp", "input: 'v' input: 'x'", DT) \
  NODE("add", "AssignAddVariableOp", "input: 'v' input: 'x'", DT) NODE("read", "ReadVariableOp", "input: 'v'", DT)

/* One step; fetch, target or cancellation may be NULL. */
typedef struct bk_step {
  tn_session *session;
  const char *fetch, *target;
  float x;
  int64_t timeout_ms;
  tn_cancellation *cancellation;
  bool partial; /* as a partial run: one call feeds x, another fetches */
  int32_t pool;
  tn_run_metadata *metadata; /* not NULL: trace the step */
  /* results */
  tn_status status;
  float value; /* of a float or int32 fetch */
  tn_error err;
  atomic_bool ended;
  pthread_t thread;
} bk_step;

tn_status bk_run(bk_step *s);     /* err stays set until bk_done */
void bk_start(bk_step *s);        /* on a thread */
tn_status bk_join(bk_step *s);
void bk_done(bk_step *s);

/* Runs a step with x fed; returns the status, or the value (NAN on failure). */
tn_status bk_target(tn_session *session, const char *target, float x);
float bk_fetch(tn_session *session, const char *fetch);
tn_status bk_fails(tn_session *session, const char *fetch);

/* An isolated or shared session's graph and options, as vk_open; and another session of the same options and graph. */
void bk_open(ts *t, bool isolated, const char *text);
tn_session *bk_session(ts *t);

/* Waits until slot BEGUN has counted n more steps than `before`; false after ten seconds. */
bool bk_wait_begun(int n);
/* A step of this fetch or target that has begun. */
void bk_start_late(bk_step *s);

#endif
