/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of graphs. A format is one constant object, tn__format_NAME in NAME/NAME.c. The list TN_GRAPH_FORMATS in
 * core/core.mk names those files; build-aux/gen-table.sh makes the table from it. tn_graph_import*, tn_graph_export*
 * and the command's `convert` use the table only. */
#ifndef TN_CORE_FORMATS_FORMAT_H
#define TN_CORE_FORMATS_FORMAT_H

#include <core/formats/sink.h>
#include <core/graph/graph_internal.h>

/* The maximum size of a file that is read or written: protobuf's limit for a message. */
#define TN__FORMAT_LIMIT ((size_t)INT32_MAX)

/* The bytes of an import. */
typedef struct tn__source {
  tn__slice bytes;
  tn_buffer *file;  /* owner of the bytes; NULL: they are the caller's, so a reader that keeps them must copy them */
  const char *name; /* of the file, for messages */
  bool is_part;     /* the bytes are a field of a message that was read from the file: it is certain what they mean */
} tn__source;

/* A check of an import: called for each new operation that names a device, before the new operations are published. An
 * error ends the import, which then adds nothing. The graph is locked, and look-ups do not find the new operations. */
typedef struct tn__import_check {
  tn_status (*node)(void *user, const tn_operation *op, tn_error *err);
  void *user;
} tn__import_check;

typedef struct tn__format {
  const char *endings[4];            /* of file names; NULL-terminated */
  uint32_t import_flag, export_flag; /* the flag of a call that selects this format; 0 = none */
  bool is_text;
  /* Whether the bytes are certainly in this format. NULL in the one format that is used if no other one fits. */
  bool (*probe)(tn__slice bytes);
  /* Adds the source's graph to `graph`: all of it, or nothing. All fields of options are set. */
  tn_status (*read)(tn_graph *graph, const tn__source *source, const tn_import_options *options,
                    const tn__import_check *check, tn_error *err);
  /* Writes the graph to a file sink or to an empty memory sink. A graph that cannot be written is refused before any
   * byte is written. */
  tn_status (*write)(tn_graph *graph, tn__sink *out, tn_error *err);
} tn__format;

extern const tn__format *const tn__formats[]; /* NULL-terminated */
extern const size_t tn__n_formats;

/* Choose a format by the flags, else by the ending of path (may be NULL), else (to read) by the bytes; else the one
 * without a probe. */
const tn__format *tn__format_to_read(tn__slice bytes, const char *path, uint32_t import_flags);
const tn__format *tn__format_to_write(const char *path, uint32_t export_flags);
/* Lists all endings for messages: ".pb, .pbtxt". Returns buffer. */
const char *tn__format_endings(char *buffer, size_t size);

/* import_options.c: copies and checks `given`, which may be NULL or of an older header with fewer fields. graph NULL:
 * fields that refer to a graph are not checked. */
tn_status tn__import_options_read(const tn_import_options *given, tn_graph *graph, tn_import_options *out,
                                  tn_error *err);

/* import.c: adds a GraphDef, in wire format, that is a part of a file to the graph, which gets a reference to the file.
 * Positions in messages are counted from the file's beginning. Options as for tn_graph_import; name: of the file, for
 * messages, unless the options name one. Errors of tn_graph_import, but malformed bytes are TN_DATA_LOSS. */
tn_status tn__graph_import_slice(tn_graph *graph, tn__slice bytes, tn_buffer *file, const char *name,
                                 const tn_import_options *options, tn_error *err);

/* import.c: like tn_graph_import, with a check. */
tn_status tn__graph_import_checked(tn_graph *graph, const void *bytes, size_t size, const tn__import_check *check,
                                   tn_error *err);

#endif
