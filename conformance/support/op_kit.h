/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of ops: graphs in text form, node by node, and their inferred shapes. */
#ifndef TENON_CONFORMANCE_SUPPORT_OP_KIT_H
#define TENON_CONFORMANCE_SUPPORT_OP_KIT_H

#include "conformance/support/session_kit.h"

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define TYPE(key, type) "attr { key: '" key "' value { type: " type " } }"
#define INT(key, n) "attr { key: '" key "' value { i: " #n " } }"
#define D(n) "dim { size: " #n " } "
#define F TYPE("T", "DT_FLOAT")
#define TENSOR(name, type, shape, values)                                                         \
  NODE(name, "Const", "", TYPE("dtype", type) "attr { key: 'value' value { tensor { dtype: " type \
       " tensor_shape { " shape " } " values " } } }")
#define INTS(name, shape, values) TENSOR(name, "DT_INT32", shape, values)
#define ANY(name, type) NODE(name, "Placeholder", "", TYPE("dtype", type))

/* A session of level 1 on the graph; ends the test on failure. ts_fini closes it. */
void ops_open_text(ts *t, const char *text);
/* The same; ops may read and write files in the folder (NULL: in none). */
void ops_open_text_in(ts *t, const char *folder, const char *text);
/* Shape of an output: "[2,?]", "?" for an unknown rank, "none" if there is no such output. Valid until the next
 * call. */
const char *ops_shape_of(const ts *t, const char *node, int32_t output);

#endif
