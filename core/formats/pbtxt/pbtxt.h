/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf's text form of the messages of a GraphDef and of a ConfigProto: translated from and to their bytes by one
 * table, so that graphs are read and written by the same code in both forms. */
#ifndef TN_CORE_FORMATS_PBTXT_PBTXT_H
#define TN_CORE_FORMATS_PBTXT_PBTXT_H

#include <core/formats/sink.h>
#include <core/formats/wire.h>

/* Messages within messages. */
#define TN__PBTXT_DEPTH TN__WIRE_DEPTH

enum { TN__PB_DOUBLE, TN__PB_FLOAT, TN__PB_INT64, TN__PB_UINT64, TN__PB_INT32, TN__PB_UINT32, TN__PB_FIXED64,
       TN__PB_BOOL, TN__PB_ENUM, TN__PB_TEXT, TN__PB_MESSAGE };

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
  uint8_t type;
  bool repeated; /* numbers are packed */
  bool choice;   /* the message has one of these at most */
  const struct tn__pb_message *message;
  const tn__pb_enum *names;
} tn__pb_field;

typedef struct tn__pb_message {
  const char *name;
  const tn__pb_field *fields; /* at most TN__PB_MOST */
  size_t n;
} tn__pb_message;

#define TN__PB_MOST 40
extern const tn__pb_message tn__pb_graphdef;
extern const tn__pb_message tn__pb_config;     /* ConfigProto */
extern const tn__pb_message tn__pb_attr_entry; /* an attribute in a map */

/* The wire type of a value of the field: TN__WIRE_... */
int tn__pb_wire(const tn__pb_field *field);

/* Text to bytes. `out` is a memory sink. Returns TN_INVALID_ARGUMENT "FILE:LINE:COLUMN: ...". */
tn_status tn__pbtxt_parse(tn__slice text, const char *file, const tn__pb_message *type, tn__sink *out, tn_error *err);

/* Bytes to text. Fields that the table does not have cannot be written in text: each becomes a comment. Of a field
 * that occurs twice the last one counts, or both are merged, as in protobuf. TN_INVALID_ARGUMENT for malformed
 * bytes. */
tn_status tn__pbtxt_print(tn__slice message, const tn__pb_message *type, tn__sink *out, tn_error *err);

/* Whether bytes begin like a message in text form: with comments, or with a field's name and the character that follows
 * one. */
bool tn__pbtxt_begins(tn__slice bytes);

#endif
