/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of functions: graphs with a function library as text, and runs whose results are compared. */
#ifndef TENON_CONFORMANCE_SUPPORT_CALLS_KIT_H
#define TENON_CONFORMANCE_SUPPORT_CALLS_KIT_H

#include "conformance/support/session_kit.h"

#define T(type) "attr { key: 'T' value { type: " type " } }"
#define SLOT(n) T("DT_FLOAT") " attr { key: 'slot' value { i: " n " } }"
#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define BODY(name, op, inputs, attrs) "node_def { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define IN(name, type) NODE(name, "Placeholder", "", "attr { key: 'dtype' value { type: " type " } }")
#define FUNC(key, name) "attr { key: '" key "' value { func { name: '" name "' } } }"
#define TYPES(key, types) "attr { key: '" key "' value { list { " types " } } }"
#define F "type: DT_FLOAT "
#define I "type: DT_INT32 "
#define ARG(name, type) "input_arg { name: '" name "' type: " type " } "
#define RESULT(name, type) "output_arg { name: '" name "' type: " type " } "
#define RET(name, from) "ret { key: '" name "' value: '" from "' } "
#define FUNCTION(name, args, body) "function { signature { name: '" name "' " args " } " body " }\n"
#define UNARY(name, body) FUNCTION(name, ARG("x", "DT_FLOAT") RESULT("y", "DT_FLOAT"), body)
#define FLOAT_OF(value)                                                                                               \
  "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape " \
  "{ } "                                                                                                              \
  "float_val: " value " } } }"
#define INT_OF(value)                                                                                                 \
  "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape " \
  "{ } "                                                                                                              \
  "int_val: " value " } } }"
#define LIBRARY(functions) "library { " functions "}\n"

#define TWICE UNARY("Twice", BODY("s", "AddV2", "input: 'x' input: 'x'", T("DT_FLOAT")) RET("y", "s:z:0"))
#define SQUARE UNARY("Square1", BODY("m", "Mul", "input: 'x' input: 'x'", T("DT_FLOAT")) RET("y", "m:z:0"))
#define CALL(name, op, f, input) NODE(name, op, "input: '" input "'", FUNC("f", f) TYPES("Tin", F) TYPES("Tout", F))

/* A constant's attributes. */
#define FILLED(type, value)                                                                          \
  "attr { key: 'dtype' value { type: " type " } } attr { key: 'value' value { tensor { dtype: " type \
  " tensor_shape { } " value " } } }"

/* A loop's condition, its counter, and a node with "zero" and the placeholder "n" for it. */
#define COUNTED(more) "input_arg { name: 'i' type: DT_INT32 } input_arg { name: 'n' type: DT_INT32 } " more
#define BELOW(more)                                        \
  FUNCTION("Below", COUNTED(more) RESULT("go", "DT_BOOL"), \
           BODY("l", "Less", "input: 'i' input: 'n'", T("DT_INT32")) RET("go", "l:z:0"))
#define NEXT \
  BODY("one", "Const", "", INT_OF("1")) BODY("next", "AddV2", "input: 'i' input: 'one:output:0'", T("DT_INT32"))
#define COUNT(name, op, cond, body, more, types) \
  NODE("zero", "Const", "", INT_OF("0")) IN("n", "DT_INT32") \
  NODE(name, op, "input: 'zero' input: 'n' " more, TYPES("T", I I types) FUNC("cond", cond) FUNC("body", body))

/* A session on this graph; ends the test on failure. */
void ck_open(ts *t, int level, const char *text);
/* With scalar x fed, at both levels and three times, checks that the fetch is this scalar, or that the run fails with
 * this error. */
void ck_expect(const char *text, float x, const char *fetch, float value);
void ck_expect_error(const char *text, float x, const char *fetch, tn_status code, const char *message);
/* One step with n and x fed. */
tn_status ck_run(ts *t, int32_t n, float x, const char *fetch, tn_tensor **out);

#endif
