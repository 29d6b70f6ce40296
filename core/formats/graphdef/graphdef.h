/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of TensorFlow's graph format, read from and written to bytes.
 *
 * An attribute is read in two steps: a scan checks all of its bytes without a copy when the file is read; decoding sets
 * the value, at once or on demand. So bytes that a graph keeps are known to be well-formed. */
#ifndef TN_CORE_FORMATS_GRAPHDEF_GRAPHDEF_H
#define TN_CORE_FORMATS_GRAPHDEF_GRAPHDEF_H

#include <core/formats/format.h>
#include <core/formats/sink.h>
#include <core/formats/wire.h>
#include <core/graph/graph_structs.h>

/* The file of an import, for messages about malformed bytes. */
typedef struct tn__origin {
  const char *name;
  const void *begin; /* its first byte: positions are counted from there, also if the bytes are only a part of it */
  tn_status damage;  /* the code of malformed bytes */
} tn__origin;

/* The position of malformed bytes, and the reason. */
typedef struct tn__fault {
  const uint8_t *at;
  const char *what;
} tn__fault;

/* Copies the error of a wire reader. Always false. */
static inline bool tn__fault_of(const tn__wire *w, tn__fault *fault)
{
  *fault = (tn__fault){ w->at, w->error };
  return false;
}

/* The result of scanning an AttrValue, which is checked down to its last byte. Points into the bytes. */
typedef struct tn__attr_head {
  int32_t kind;    /* TN_ATTR_... */
  bool mixed;      /* a list with values of several kinds */
  uint64_t value;  /* of an int, bool or type; the bits of a float */
  tn__slice body;  /* of the other kinds: the text or the message */
} tn__attr_head;
/* `depth` is the nesting of the AttrValue in its file. False: malformed, see *fault. */
bool tn__attr_scan(tn__slice proto, unsigned depth, tn__attr_head *out, tn__fault *fault);

/* Sets kind and v of `out` from a scanned head. Allocates in arena; tensors and attributes of functions stay encoded in
 * the bytes, which `holder` owns. */
tn_status tn__attr_decode(const tn__attr_head *head, tn_buffer *holder, tn__arena *arena, tn__attr *out, tn_error *err);

/* Check the encoding of a TensorProto or a TensorShapeProto, but not its numbers. */
bool tn__tensorproto_check(tn__slice proto, tn__fault *fault);
bool tn__shapeproto_check(tn__slice proto, tn__fault *fault);

/* Decodes a shape; dims are allocated in arena. TN_INVALID_ARGUMENT: too many or bad dimensions. */
tn_status tn__shapeproto_decode(tn__slice proto, tn__arena *arena, tn__shape *out, tn_error *err);

/* The maximum memory of the tensor in bytes, which may be far more than its message. */
tn_status tn__tensorproto_bytes(tn__slice proto, size_t *bytes, tn_error *err);
/* Decodes a tensor, in place if possible: then it has a reference to `holder`. holder NULL: elements are copied. */
tn_status tn__tensorproto_decode(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);
/* Like tn__tensorproto_decode, but many elements are copied and the holder releases their bytes (file.h). */
tn_status tn__tensorproto_take(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);

/* Returns the tensor without elements (tn__tensor_outline) if tn__tensorproto_take would copy many elements; else *out
 * is NULL. */
tn_status tn__tensorproto_outline(tn__slice proto, tn_tensor **out, tn_error *err);

/* Reads the function library of a GraphDef, in addition to that of the graph. *out is the table to publish, the old one
 * if the file adds nothing, NULL if there is none. The graph's lock is held for writing. */
tn_status tn__functions_read(tn_graph *graph, tn__slice bytes, const tn__origin *origin, const tn__functions **out,
                             tn_error *err);

/* Bodies for tn__sink_message: encode a tn_operation as a NodeDef, and a tn__attr as an AttrValue. */
void tn__graphdef_write_node(tn__sink *s, const void *op);
void tn__graphdef_write_value(tn__sink *s, const void *attr);

/* import.c: adds a GraphDef to the graph. The source has an owner, of which the bytes may be a part. translated_from:
 * 0, or the size of the text that the bytes were translated from. All fields of options are set. */
tn_status tn__graphdef_import(tn_graph *graph, const tn__source *source, size_t translated_from,
                              const tn_import_options *options, const tn__import_check *check, tn_error *err);

/* write.c: a GraphDef that is written as a part of another message. The nodes are those of the moment of _create, which
 * also finds the size of the GraphDef in bytes; _put adds exactly these bytes to the sink. If the graph cannot be
 * written, _create fails. The graph must live until _destroy (NULL allowed). */
typedef struct tn__graph_writer tn__graph_writer;
tn_status tn__graph_writer_create(tn_graph *graph, tn__graph_writer **out, size_t *size, tn_error *err);
void tn__graph_writer_put(const tn__graph_writer *writer, tn__sink *to);
void tn__graph_writer_destroy(tn__graph_writer *writer);

/* write.c: writes the graph as a GraphDef to a file sink, or to an empty memory sink, which gets exactly its size. If
 * the graph cannot be written, nothing is written. */
tn_status tn__graphdef_write(tn_graph *graph, tn__sink *out, tn_error *err);

extern const tn__codec tn__graphdef_codec;

#endif
