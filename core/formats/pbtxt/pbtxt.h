/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf's text form of the messages of a GraphDef, a SavedModel and a ConfigProto. One table of messages drives the
 * translation to and from bytes, so there is one importer and one exporter for both forms. A field or name that
 * TensorFlow adds is one line of the table (schema.c, meta.c, config.c). */
#ifndef TN_CORE_FORMATS_PBTXT_PBTXT_H
#define TN_CORE_FORMATS_PBTXT_PBTXT_H

#include <core/formats/sink.h>
#include <core/formats/wire.h>

/* The maximum nesting of messages. */
#define TN__PBTXT_DEPTH TN__WIRE_DEPTH

enum { TN__PB_DOUBLE, TN__PB_FLOAT, TN__PB_INT64, TN__PB_UINT64, TN__PB_INT32, TN__PB_UINT32, TN__PB_FIXED64,
       TN__PB_SINT64, TN__PB_BOOL, TN__PB_ENUM, TN__PB_TEXT, TN__PB_MESSAGE };

/* A value of an enum. */
typedef struct tn__pb_name {
  int32_t value;
  const char *name;
} tn__pb_name;

typedef struct tn__pb_enum {
  const char *name;
  const tn__pb_name *values;
  size_t n;
} tn__pb_enum;

typedef struct tn__pb_field {
  const char *name;
  uint16_t number;
  uint8_t type;  /* TN__PB_... */
  bool repeated; /* may occur several times; numbers are packed */
  bool choice;   /* member of the message's oneof: at most one of them is set */
  const struct tn__pb_message *message; /* of type TN__PB_MESSAGE, else NULL */
  const tn__pb_enum *names;             /* of type TN__PB_ENUM, else NULL */
} tn__pb_field;

typedef struct tn__pb_message {
  const char *name;
  const tn__pb_field *fields; /* n of them, at most TN__PB_MOST */
  size_t n;
} tn__pb_message;

#define TN__PB_MOST 40
extern const tn__pb_message tn__pb_graphdef;
extern const tn__pb_message tn__pb_config;     /* ConfigProto */
extern const tn__pb_message tn__pb_attr_entry; /* an attribute in a map */
extern const tn__pb_message tn__pb_saved_model;
extern const tn__pb_message tn__pb_meta_graph; /* MetaGraphDef */
/* Of a GraphDef, used by the other messages: TensorProto, TensorShapeProto, OpDef, VersionDef, DataType. */
extern const tn__pb_message tn__pb_tensor, tn__pb_shape, tn__pb_op_def, tn__pb_version;
extern const tn__pb_enum tn__pb_data_type;

/* google.protobuf.Any. Its text form is either its two fields, or "[type.googleapis.com/tensorflow.NAME] { ... }" with
 * one of the types in this list, which NULL ends. */
extern const tn__pb_message tn__pb_any;
extern const tn__pb_message *const tn__pb_any_types[];

/* The wire type of a value of the field: TN__WIRE_... */
int tn__pb_wire(const tn__pb_field *field);

/* Translates text to bytes. `out` is a memory sink. Returns TN_INVALID_ARGUMENT "FILE:LINE:COLUMN: ...". */
tn_status tn__pbtxt_parse(tn__slice text, const char *file, const tn__pb_message *type, tn__sink *out, tn_error *err);

/* Translates bytes to text. A field that the table lacks has no text form: a comment replaces it. Of a field that
 * occurs twice the last one counts, and messages are merged, as in protobuf. TN_INVALID_ARGUMENT: malformed bytes. */
tn_status tn__pbtxt_print(tn__slice message, const tn__pb_message *type, tn__sink *out, tn_error *err);

/* Whether bytes begin like a message in text form: with comments and blanks only, or with a name and the character that
 * follows a field's name. */
bool tn__pbtxt_begins(tn__slice bytes);

/* The name of the first field of a text; empty if the bytes do not begin like a message in text form. */
tn__slice tn__pbtxt_first_field(tn__slice bytes);

#endif
