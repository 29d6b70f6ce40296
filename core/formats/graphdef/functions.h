/* SPDX-License-Identifier: Apache-2.0 */
/* The state of reading a function library, and the functions that its readers share. */
#ifndef TN_CORE_FORMATS_GRAPHDEF_FUNCTIONS_H
#define TN_CORE_FORMATS_GRAPHDEF_FUNCTIONS_H

#include <core/formats/graphdef/graphdef.h>
#include <core/graph/functions.h>

/* FunctionDef, NodeDef, an entry of a map of attributes */
enum { TN__F_SIGNATURE = 1, TN__F_NODE = 3, TN__F_RET = 4, TN__F_ATTR = 5, TN__F_CONTROL = 6, TN__F_ARG_ATTR = 7,
       TN__F_RESOURCE = 8 };
enum { TN__N_NAME = 1, TN__N_OP = 2, TN__N_INPUT = 3, TN__N_DEVICE = 4, TN__N_ATTR = 5, TN__E_KEY = 1,
       TN__E_VALUE = 2 };

typedef struct tn__library_reader {
  tn__slice bytes;          /* of the whole graph */
  const char *file;         /* name of the file, for messages */
  const tn__origin *origin;
  tn_graph *graph;          /* its lock is held for writing */
  tn__arena *arena;         /* the graph's, with the limit of the import */
  const tn__functions *old; /* the graph's table so far, may be NULL */
  tn__functions *table;     /* the new table; has room for all new functions */
  tn__map functions, gradients; /* the new ones, by name: tn_function; name of the gradient */
  tn__map names;    /* of the current function: arguments (&tn__library_argument) and nodes (tn__function_node) */
  tn__map outputs;  /* of the current function's signature: tn__arg_spec by name */
  size_t attr_room; /* attributes for which the current signature has room */
  tn_error *err;
} tn__library_reader;

/* library.c */
/* The length at which a name is cut in messages. */
static inline int tn__library_shown(tn__slice text) { return text.size > 200 ? 200 : (int)text.size; }
/* Adds to a map. Its memory is charged to the import's limit, although it is freed after the import. */
tn_status tn__library_put(tn__library_reader *r, tn__map *map, tn__slice key, const void *value);
/* Represents each argument in the map of names. */
extern const tn__function_node tn__library_argument;
tn_status tn__library_no_memory(tn__library_reader *r);
tn_status tn__library_malformed(tn__library_reader *r, const uint8_t *at, const char *what);
/* Call it after the walk over a message: TN_OK, or the error that stopped the walk. */
tn_status tn__library_after(tn__library_reader *r, const tn__wire *w);
/* Sets an error such as "FILE: function 'F': argument 'x' has an unknown type". */
tn_status tn__in_function(tn__library_reader *r, const tn_function *f, const char *what, tn__slice name,
                          const char *wrong);
/* Copies a text, NUL-terminated, to the arena. */
tn_status tn__library_copy(tn__library_reader *r, tn__slice text, const char **out);
/* Whether the text has no control characters. */
bool tn__text_is_plain(tn__slice text);
/* Records the name of an argument or node of the current function; node is NULL for an argument. */
tn_status tn__function_add_name(tn__library_reader *r, const tn_function *f, tn__slice name,
                                const tn__function_node *node);

/* signature.c: reads the signature of f, whose name is set, into f->schema. */
tn_status tn__signature_read(tn__library_reader *r, tn_function *f, tn__slice signature);

/* body.c: for tn__graphdef_codec. */
tn_status tn__function_body_read(const tn_function *f, tn__function_body **out, tn_error *err);

#endif
