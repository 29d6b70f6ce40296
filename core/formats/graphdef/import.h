/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one import, shared by the files that read a GraphDef: import.c, importer.c, read.c, cycles.c, names.c,
 * map.c. */
#ifndef TN_CORE_FORMATS_GRAPHDEF_IMPORT_H
#define TN_CORE_FORMATS_GRAPHDEF_IMPORT_H

#include <core/formats/graphdef/graphdef.h>
#include <core/graph/functions.h>

/* A cache of recent texts and their copies: most nodes of a graph share a few. An evicted text is only copied again. */
#define TN__IMPORT_CACHE 128
typedef struct tn__cache_entry {
  tn__slice key;
  const void *value;
} tn__cache_entry;

typedef struct tn__slices {
  tn__slice *at;
  size_t n, room;
} tn__slices;

/* The memory of an entry of a map, which is at least three eighths full. */
#define TN__IMPORT_ENTRY (3 * sizeof(tn__map_entry))

/* An entry of the input map: an input of the file, and the output of the graph that replaces it. */
typedef struct tn__mapping {
  tn__slice node;
  int32_t index; /* -1 = its control edge */
  uint32_t number; /* in the options */
  tn_output target;
  size_t leader; /* of control edges: the first entry with this target */
  size_t pass;   /* of a leader: the last pass over a node's inputs that used it */
  bool used;
  bool there; /* the file has it, though no input names it */
} tn__mapping;

typedef struct tn__importer {
  tn_graph *graph;
  tn_buffer *file;
  tn__slice bytes;
  const char *name; /* of the file, for messages */
  uint32_t flags;
  bool translated; /* the bytes are not a file's: they were made from one in another format */
  tn_error *err;
  const tn_import_options *options; /* all fields are there */
  const tn__import_check *check; /* NULL: none */
  size_t first; /* id of the first new node */
  size_t n_nodes, n_rest, n_indexed;
  const tn__functions *functions; /* the graph's and those of the file */
  tn__slices inputs, entries; /* of the node that is read: inputs, and entries of its map of attributes */
  tn__attr *attrs;
  size_t n_attrs, attr_room;
  tn_operation **waiting; /* nodes with an input that was not there yet; then some edge may go backwards */
  size_t n_waiting, waiting_room;
  bool all_read;

  /* names (names.c) */
  bool renames;     /* names of nodes may differ from those in the file: `nodes` maps them */
  tn__map nodes;    /* from names of the file to operations, tn__import_left_out among them */
  tn__slice prefix; /* with its slash */
  tn__slices taken; /* names of the graph that new ones may meet, and those of the file: both sorted */
  tn__slices coming;
  tn__map unique; /* changed names: from that in the file to the new one */
  char *text;     /* a name that is put together */
  size_t text_room;

  /* inputs (map.c) */
  tn__mapping *map; /* by node and index */
  size_t n_map;
  size_t pass; /* over a node's inputs */

  /* memory: the arena has a limit while an import runs, and all else that an import keeps is counted there, too */
  size_t budget;
  tn__slice at; /* name of the node that is read */
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

/* Loads plugins that have ops which the file uses and which are not registered. The caller holds no lock. */
void tn__import_want_ops(const tn_graph *graph, tn__slice file);

/* ---- read.c ---- */

/* All nodes of the file, staged, with their inputs. */
tn_status tn__import_read(tn__importer *im);

/* ---- cycles.c ---- */

tn_status tn__import_check_cycles(tn__importer *im);

/* ---- names.c ---- */

/* Settles the prefix, and looks which names are taken. */
tn_status tn__import_begin_names(tn__importer *im);
void tn__import_end_names(tn__importer *im);
/* The name that a node of the file gets, in the graph's arena. */
tn_status tn__import_rename(tn__importer *im, tn__slice name, tn__slice *out);
/* Renames within an attribute "_class", which names nodes to be placed on the same device as this one. */
tn_status tn__import_rename_class(tn__importer *im, tn_operation *op, const tn__attr_head *head, tn__attr *a);
/* A node of the file, or one of the graph where its nodes can be meant; NULL when there is none (yet). */
tn_operation *tn__import_find(const tn__importer *im, tn__slice name);
/* The same, but of the file only. */
tn_operation *tn__import_find_new(const tn__importer *im, tn__slice name);
/* Represents a node that was skipped. */
extern const tn_operation tn__import_left_out;

/* ---- map.c ---- */

tn_status tn__import_begin_map(tn__importer *im);
void tn__import_end_map(tn__importer *im);
/* The entry of an input, marked as used; NULL: it is not mapped. */
tn__mapping *tn__import_mapped(tn__importer *im, const tn__edge_name *edge);
/* Whether a node, whose outputs are known, is left out because all of them are mapped. */
bool tn__import_is_left_out(tn__importer *im, tn__slice name, const tn_operation *op);
/* Adds the control inputs that the options ask for. */
tn_status tn__import_add_controls(tn__importer *im, tn_operation *op);
/* The results that the caller asked for. All nodes have been read. */
tn_status tn__import_make_results(tn__importer *im, tn_import_results **out);

#endif
