/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one import, shared by the files that read a GraphDef: import.c, importer.c, read.c, cycles.c, names.c,
 * map.c. */
#ifndef TN_CORE_FORMATS_GRAPHDEF_IMPORT_H
#define TN_CORE_FORMATS_GRAPHDEF_IMPORT_H

#include <core/formats/graphdef/graphdef.h>
#include <core/graph/functions.h>

/* A direct-mapped cache of recent texts and their copies: most nodes of a graph share a few. An evicted text is simply
 * copied again. */
#define TN__IMPORT_CACHE 128
typedef struct tn__cache_entry {
  tn__slice key;
  const void *value;
} tn__cache_entry;

typedef struct tn__slices {
  tn__slice *at;
  size_t n, room;
} tn__slices;

/* The memory charged for an entry of a map, which is at least three eighths full. */
#define TN__IMPORT_ENTRY (3 * sizeof(tn__map_entry))

/* An entry of the input map: an input of the file, and the output of the graph that replaces it. */
typedef struct tn__mapping {
  tn__slice node;
  int32_t index;   /* -1 = its control edge */
  uint32_t number; /* index of the entry in the options */
  tn_output target;
  size_t leader; /* of a control edge: index of the first entry with this target */
  size_t pass;   /* of a leader: the last pass over a node's inputs that used it */
  bool used;     /* an input of the file was replaced by it */
  bool there;    /* the file has this output, although no input may name it */
} tn__mapping;

/* Names of new nodes (names.c). */
typedef struct tn__importer_names {
  bool renames;      /* names of nodes may differ from those in the file: `nodes` maps them */
  tn__map nodes;     /* names in the file to operations, or to &tn__import_left_out */
  tn__slice prefix;  /* with its slash */
  tn__slices taken;  /* names in the graph that new ones may collide with, sorted */
  tn__slices coming; /* names in the file, sorted */
  tn__map unique;    /* changed names: name in the file to the new one */
  char *text;        /* buffer for composing a name */
  size_t text_room;
} tn__importer_names;

typedef struct tn__importer {
  tn_graph *graph;  /* its lock is held for writing */
  tn_buffer *file;  /* owner of the bytes; borrowed until the import is published */
  tn__slice bytes;  /* the GraphDef */
  const char *name; /* of the file, for messages */
  uint32_t flags;   /* TN_IMPORT_... */
  bool translated;  /* the bytes were translated from another format */
  bool is_part;     /* of a larger file: it is certain that they are a GraphDef */
  tn__origin origin;
  tn_error *err;
  const tn_import_options *options; /* all fields are set */
  const tn__import_check *check;    /* NULL: none */
  size_t first;                     /* id of the first new node */
  size_t n_nodes, n_rest;           /* nodes and other fields in the file */
  size_t n_indexed;                 /* new nodes whose names are in the graph's index */
  const tn__functions *functions;   /* the graph's and those of the file */
  tn__slices inputs, entries;       /* of the current node: its inputs, and entries of its map of attributes */
  tn__attr *attrs;                  /* of the current node */
  size_t n_attrs, attr_room;
  tn_operation **waiting; /* nodes with an input that names a later node: only then may there be cycles */
  size_t n_waiting, waiting_room;
  bool all_read; /* all nodes have been read: names that are still unknown do not exist */

  tn__importer_names names;

  /* Inputs (map.c) */
  tn__mapping *map; /* sorted by node and index */
  size_t n_map;
  size_t pass; /* number of the current pass over a node's inputs */

  /* Memory: the arena has a limit while an import runs, and all other memory of an import is charged to it. */
  size_t budget;  /* the limit in bytes */
  tn__slice at;   /* name of the current node, for the error that the budget is exceeded */
  tn__cache_entry types[TN__IMPORT_CACHE], texts[TN__IMPORT_CACHE];
} tn__importer;

/* ---- importer.c ---- */

tn_status tn__import_no_memory(tn__importer *im);
tn_status tn__import_malformed(tn__importer *im, const tn__fault *fault);
tn_status tn__import_malformed_field(tn__importer *im, const tn__wire *w);
/* tn__grow within the budget. */
bool tn__import_grow(tn__importer *im, void **array, size_t *room, size_t wanted, size_t size);
bool tn__import_add_slice(tn__importer *im, tn__slices *list, tn__slice slice);

static inline int tn__import_shown(tn__slice text) { return text.size > 200 ? 200 : (int)text.size; }

/* ---- wanted.c ---- */

/* Loads plugins that offer ops which the file uses and which are not registered. The caller holds no lock. */
void tn__import_want_ops(const tn_graph *graph, tn__slice file);

/* ---- read.c ---- */

/* Stages all nodes of the file, with their inputs. */
tn_status tn__import_read(tn__importer *im);

/* ---- cycles.c ---- */

/* Refuses cycles other than those of loops. */
tn_status tn__import_check_cycles(tn__importer *im);

/* ---- names.c ---- */

/* Determines the prefix, and collects the names that are taken. */
tn_status tn__import_begin_names(tn__importer *im);
void tn__import_end_names(tn__importer *im);
/* Returns the name that a node of the file gets, in the graph's arena. */
tn_status tn__import_rename(tn__importer *im, tn__slice name, tn__slice *out);
/* Renames within an attribute "_class", which names nodes to be placed on the same device as this one. */
tn_status tn__import_rename_class(tn__importer *im, tn_operation *op, const tn__attr_head *head, tn__attr *a);
/* Finds the node that an input names: one of the file, else one of the graph if inputs may refer to the graph. NULL:
 * there is none, or not yet. */
tn_operation *tn__import_find(const tn__importer *im, tn__slice name);
/* Finds a node of the file only. */
tn_operation *tn__import_find_new(const tn__importer *im, tn__slice name);
/* Represents a node of the file that was left out. Never published. */
extern const tn_operation tn__import_left_out;

/* ---- map.c ---- */

tn_status tn__import_begin_map(tn__importer *im);
void tn__import_end_map(tn__importer *im);
/* Returns the entry for an input and marks it as used; NULL: it is not mapped. */
tn__mapping *tn__import_mapped(tn__importer *im, const tn__edge_name *edge);
/* Whether a node is left out because all of its outputs (already known) are mapped. */
bool tn__import_is_left_out(tn__importer *im, tn__slice name, const tn_operation *op);
/* Adds the control inputs that the options request. */
tn_status tn__import_add_controls(tn__importer *im, tn_operation *op);
/* Makes the requested results. Call it after all nodes have been read. */
tn_status tn__import_make_results(tn__importer *im, tn_import_results **out);

#endif
