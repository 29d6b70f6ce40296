/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of TensorFlow's graph format, read from their bytes. */
#ifndef TN_CORE_FORMATS_GRAPHDEF_GRAPHDEF_H
#define TN_CORE_FORMATS_GRAPHDEF_GRAPHDEF_H

#include <core/formats/format.h>
#include <core/formats/sink.h>
#include <core/formats/wire.h>
#include <core/graph/graph_structs.h>

/* The place of malformed bytes and their fault. */
typedef struct tn__fault {
  const uint8_t *at;
  const char *what;
} tn__fault;

/* Copies a reader's error. Always false. */
static inline bool tn__fault_of(const tn__wire *w, tn__fault *fault)
{
  *fault = (tn__fault){ w->at, w->error };
  return false;
}

/* An AttrValue, checked down to its last byte without a copy. */
typedef struct tn__attr_head {
  int32_t kind;
  bool mixed;      /* a list with values of several kinds */
  uint64_t value;  /* of an int, bool, type, or the bits of a float */
  tn__slice body;  /* of all others: text, or the message */
} tn__attr_head;
bool tn__attr_scan(tn__slice proto, unsigned depth, tn__attr_head *out, tn__fault *fault);

/* Sets kind and v of `out` from a head that was scanned. The data that they point to is in arena. */
tn_status tn__attr_decode(const tn__attr_head *head, tn_buffer *holder, tn__arena *arena, tn__attr *out, tn_error *err);

/* A TensorProto, and a TensorShapeProto, checked as bytes; their numbers are not looked at. */
bool tn__tensorproto_check(tn__slice proto, tn__fault *fault);
bool tn__shapeproto_check(tn__slice proto, tn__fault *fault);

/* dims in arena; -1 = unknown. TN_INVALID_ARGUMENT for too many or bad dimensions. */
tn_status tn__shapeproto_decode(tn__slice proto, tn__arena *arena, tn__shape *out, tn_error *err);

/* The maximum memory of the tensor, which may be far more than its message. */
tn_status tn__tensorproto_bytes(tn__slice proto, size_t *bytes, tn_error *err);
/* holder NULL: the elements are always copied. */
tn_status tn__tensorproto_decode(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);
/* If there are many elements, they are copied, and the holder releases their bytes (file.h). */
tn_status tn__tensorproto_take(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);

/* The tensor without its elements (tn__tensor_outline), when they are many and can be had by tn__tensorproto_take; else
 * *out is NULL. */
tn_status tn__tensorproto_outline(tn__slice proto, tn_tensor **out, tn_error *err);

/* Adds the function library of a GraphDef to that of the graph. *out is the table to publish, NULL for none. */
tn_status tn__functions_read(tn_graph *graph, tn__slice bytes, const char *file, const tn__functions **out,
                             tn_error *err);

/* Bodies for tn__sink_message: a tn_operation as a NodeDef from what is known of it, a tn__attr as an AttrValue. */
void tn__graphdef_write_node(tn__sink *s, const void *op);
void tn__graphdef_write_value(tn__sink *s, const void *attr);

/* import.c: adds a GraphDef to the graph. file holds its bytes. translated_from: 0; or the size of the text that they
 * were translated from. options: all fields are set. */
tn_status tn__graphdef_import(tn_graph *graph, tn_buffer *file, size_t translated_from, const char *name,
                              const tn_import_options *options, const tn__import_check *check, tn_error *err);

/* write.c: the graph as a GraphDef, into a file or into empty memory, which gets just its size. If it cannot be written
 * nothing is put. */
tn_status tn__graphdef_write(tn_graph *graph, tn__sink *out, tn_error *err);

extern const tn__codec tn__graphdef_codec;

#endif
