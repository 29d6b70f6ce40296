/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of variables and of ops with side effects: sessions on text graphs at either level, single fetches and
 * targets. */
#ifndef TENON_CONFORMANCE_SUPPORT_VARIABLE_KIT_H
#define TENON_CONFORMANCE_SUPPORT_VARIABLE_KIT_H

#include "conformance/support/op_kit.h"

#define TEXT_ATTR(key, value) "attr { key: '" key "' value { s: '" value "' } }"
#define SHAPE(dims) "attr { key: 'shape' value { shape { " dims " } } }"
#define BOOL(key, value) "attr { key: '" key "' value { b: " value " } }"
#define DT TYPE("dtype", "DT_FLOAT")
#define TI TYPE("Tindices", "DT_INT32")
#define VALUES(name, n, values) TENSOR(name, "DT_FLOAT", D(n), values)
#define HANDLE(name, shared) NODE(name, "VarHandleOp", "", DT SHAPE(D(2)) TEXT_ATTR("shared_name", shared))
#define VARIABLE(name, shared) NODE(name, "VariableV2", "", DT SHAPE(D(2)) TEXT_ATTR("shared_name", shared))

/* A session of this level on the text; ends the test on failure. vk_fini closes it and empties its default
 * container. */
void vk_open(ts *t, int level, const char *text);
void vk_fini(ts *t);

/* Fetches without feeds and checks for success; NULL on failure. */
tn_tensor *vk_fetch(ts *t, const char *name);
bool vk_fetch_bool(ts *t, const char *name);
/* Fetches floats and compares them. */
void vk_check_floats(ts *t, const char *name, int64_t n, const float *wanted);
#define CHECK_FLOATS(t, name, ...) \
  vk_check_floats(t, name, (int64_t)(sizeof((float[]){ __VA_ARGS__ }) / sizeof(float)), (float[]){ __VA_ARGS__ })

/* The status of running a target, and of a fetch, without feeds. */
tn_status vk_target(ts *t, const char *name);
tn_status vk_fails(ts *t, const char *name);
/* The same for a target, with a vector fed. */
tn_status vk_feed(ts *t, const char *feed, size_t n, const float *values, const char *target);

/* For tn_test_oom_sweep: an isolated session on the text, targets "set" and "add", and a fetch of "read", whose first
 * element must be 2. */
tn_status vk_whole_life(void *text);

#endif
