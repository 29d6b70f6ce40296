/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the graph tests: a small family of ops, and GraphDefs encoded byte by byte. */
#ifndef TENON_CONFORMANCE_SUPPORT_GRAPH_KIT_H
#define TENON_CONFORMANCE_SUPPORT_GRAPH_KIT_H

#include <tenon/op.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"
#include "conformance/support/tap.h"

/* Ops named Gk...: GkIn (placeholder), GkConst, GkAdd (x: T, y: T), GkAddN (list), GkPack (Tlist), GkSplit (N outputs),
 * GkReshape (reads a value), GkVar and GkAssign (references), GkAttrs (every kind of attribute), GkMerge, GkNext,
 * GkPass (identity), GkRun (no inputs, no outputs). Registered once; the registry tests also use the family. */
extern const tn_op_family gk_family;
void gk_register(void);

/* ---- bytes ---- */

/* A growable byte buffer; release it with gk_bytes_free. */
typedef struct gk_bytes {
  uint8_t *data;
  size_t size, room;
} gk_bytes;

void gk_bytes_free(gk_bytes *b);
void gk_put(gk_bytes *b, const void *data, size_t size);
void gk_varint(gk_bytes *b, uint64_t value);

/* Fields of a message. */
void gk_int(gk_bytes *b, unsigned field, int64_t value);
void gk_float(gk_bytes *b, unsigned field, float value);
void gk_double(gk_bytes *b, unsigned field, double value);
void gk_data(gk_bytes *b, unsigned field, const void *data, size_t size);
void gk_text(gk_bytes *b, unsigned field, const char *text);
/* Adds a message to another one as a field and frees it. */
void gk_message(gk_bytes *b, unsigned field, gk_bytes *message);

/* ---- GraphDefs ---- */

/* A NodeDef; inputs are separated by spaces, NULL for none. */
void gk_node(gk_bytes *node, const char *name, const char *op, const char *inputs);
/* Attributes of a started node. */
void gk_attr(gk_bytes *node, const char *name, gk_bytes *value); /* moves an AttrValue */
void gk_attr_type(gk_bytes *node, const char *name, int64_t dtype);
void gk_attr_int(gk_bytes *node, const char *name, int64_t value);
void gk_attr_text(gk_bytes *node, const char *name, const char *text);
void gk_attr_shape(gk_bytes *node, const char *name, const int64_t *dims, int rank);
void gk_attr_tensor(gk_bytes *node, const char *name, gk_bytes *tensor); /* moves a TensorProto */
void gk_shape(gk_bytes *out, const int64_t *dims, int rank);             /* a TensorShapeProto; rank -1 = unknown */
/* A TensorProto with tensor_content. */
void gk_tensor(gk_bytes *out, int64_t dtype, const int64_t *dims, int rank, const void *content, size_t size);
/* Moves the node into the graph. */
void gk_add_node(gk_bytes *graph, gk_bytes *node);

/* Complete nodes. T is float. */
void gk_in(gk_bytes *graph, const char *name);
void gk_const(gk_bytes *graph, const char *name, float value);
void gk_add(gk_bytes *graph, const char *name, const char *x_and_y);

/* A new graph imported from the bytes; NULL with *err set on failure. */
tn_graph *gk_import(const gk_bytes *graph, tn_error *err);

/* ---- graphs made with the builder ---- */

/* An empty graph; registers the family. */
tn_graph *gk_new_graph(void);
/* A GkIn of this type and shape; rank -1 = unknown. */
tn_output gk_in_of(tn_graph *graph, const char *name, tn_dtype dtype, const int64_t *dims, int32_t rank);
tn_output gk_float_in(tn_graph *graph, const char *name);
/* An operation with two inputs. */
tn_status gk_build2(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y, tn_operation **out,
                    tn_error *err);

#endif
