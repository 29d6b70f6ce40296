/* SPDX-License-Identifier: Apache-2.0 */
/* The function library of a graph, for core/graph, core/formats and core/model only.
 *
 * A published table never changes; an import that adds functions publishes a longer one. So readers need no lock.
 * Everything is in the graph's arena except the bodies, which are decoded on demand and belong to graph->bodies. */
#ifndef TN_CORE_GRAPH_FUNCTIONS_H
#define TN_CORE_GRAPH_FUNCTIONS_H

#include <core/graph/graph_structs.h>

typedef struct tn__function_node {
  const char *name, *op;
  const char **inputs; /* edge names (tn__function_edge_parse) */
  size_t n_inputs;
} tn__function_node;

/* A control output: its name in the signature, and the node that runs for it. */
typedef struct tn__function_control {
  const char *name, *node;
} tn__function_control;

/* The part of a function that is decoded on demand: operations that have attributes and no other member of an
 * operation. */
typedef struct tn__function_body {
  tn__owned owned;
  tn__arena arena;
  tn_operation *nodes;  /* n_nodes, with the attributes of the nodes */
  tn_operation *self;   /* with the function's own attributes */
  tn_operation *inputs; /* one for each argument, with its attributes */
  int64_t *resources;   /* resource_arg_unique_id of each argument, -1 = none */
} tn__function_body;

struct tn_function {
  const char *name;
  tn_op_schema schema; /* the signature */
  tn_op_def def;       /* of the schema */
  tn_graph *graph;     /* with the library that it is in; borrowed */
  tn__slice proto;     /* the serialized FunctionDef of its file */
  tn_buffer *holder;   /* the file; borrowed, the graph has a reference */
  tn__function_node *nodes;
  const char **rets; /* for each output of the signature the edge name of its source; NULL: missing in the file */
  tn__function_control *controls;
  size_t n_nodes, n_controls;
  _Atomic(tn__function_body *) body; /* NULL until decoded; owned by graph->bodies */
};

typedef struct tn__gradient {
  const char *function, *gradient; /* names of functions */
} tn__gradient;

/* The searched arrays are divided into parts, each at least twice as large as the next newer one, so that a library
 * from many small imports is neither copied by each import nor slow to search. */
struct tn__functions {
  tn_function **items;  /* all, in order of addition; a longer table shares the array if it has room */
  size_t n, room;       /* elements used and allocated */
  size_t n_nodes;       /* in all bodies */
  tn_function **sorted; /* of this part, by name */
  tn__gradient *gradients; /* of this part, by function */
  size_t n_sorted, n_gradients;
  const tn__functions *older; /* the table with the other parts, NULL = none */
  tn__owned *owned; /* list of blocks that the graph takes over when the table is published */
};

/* Look-up in a table, which may be NULL. NULL: not found. */
const tn_function *tn__functions_find(const tn__functions *table, const char *name, size_t size);
const char *tn__functions_gradient(const tn__functions *table, const char *function, size_t size);
/* Sorts the newest part and merges older parts into it that are less than twice as large. False: out of memory. */
bool tn__functions_settle(tn__functions *table, tn__arena *arena);

/* Makes the table visible to readers. Its new functions came from `file`, to which the graph now has a reference. */
void tn__functions_publish(tn_graph *graph, const tn__functions *table, tn_buffer *file);

/* Frees the blocks owned by a table that will not be published. Does nothing for a published table or NULL. */
void tn__functions_abandon(const tn__functions *table);

/* The schema of a node whose op is a function: its signature. NULL: no such function. */
const tn_op_schema *tn__functions_schema(const tn__functions *table, const char *name, size_t size);

/* Returns the body, decoded at the first call. TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED. */
tn_status tn__function_body_get(const tn_function *f, const tn__function_body **out, tn_error *err);

/* Parses an edge name of a function body: "x", "x:1", "node:out", "node:out:1" or "^node". False: malformed. */
typedef struct tn__function_edge {
  tn__slice node, output; /* output without data: not given */
  int64_t index;          /* -1 = all tensors of the output */
  bool is_control;
} tn__function_edge;
bool tn__function_edge_parse(const char *text, size_t size, tn__function_edge *out);

/* ---- bodies with shapes ---- */

/* The known facts of a tensor that is passed to or returned by a function. */
typedef struct tn__value_shape {
  tn__shape shape;
  tn__ints ints; /* n is -1 if no elements are known */
} tn__value_shape;

/* The body of a function as a separate graph, made for one call: an operation for each argument, then the nodes. */
typedef struct tn__body_graph {
  tn_graph *graph;    /* a reference */
  tn_output *outputs; /* n_outputs, in the graph's arena */
  size_t n_outputs;
  struct tn__call_state *state; /* borrowed; NULL: nothing to give back */
  int64_t size;                 /* units taken from the state's room */
} tn__body_graph;

/* State of one shape query through functions, shared by all nested calls. Used by one thread. */
typedef struct tn__call_state {
  const tn_graph *root;
  const tn__functions *functions;
  tn__arena arena;
  tn__map memo;   /* results, by function, attributes and shapes (tn__value_shape arrays in the arena) */
  int64_t budget; /* nodes and edges that may still be made */
  int64_t room;   /* nodes and edges that may still be alive at once */
  unsigned depth; /* of nested calls */
  bool exhausted; /* budget or room is used up: everything not known yet stays unknown */
} tn__call_state;

/* The call that a body graph was made for. */
typedef struct tn__call_frame {
  tn__call_state *state;    /* NULL in a body that is run: each shape query in it has its own state */
  const tn_operation *call; /* has the function's schema; its attributes replace placeholders in the nodes */
} tn__call_frame;

/* Makes the body for a call, in two steps so that the caller can allocate in the graph's arena in between. `inputs` are
 * the facts of the arguments, as many as the call's signature has tensors; NULL: nothing is known. A body that will be
 * run must be `whole`: with control edges and all attributes. Messages name the function and the node. Call
 * tn__body_graph_fini when done, also after a failure. */
tn_status tn__body_graph_begin(tn__body_graph *out, const tn_function *f, tn_error *err);
tn_status tn__body_graph_fill(tn__body_graph *out, const tn_function *f, tn__call_frame *call, tn__call_state *state,
                              const tn__value_shape *inputs, bool whole, tn_error *err);
void tn__body_graph_fini(tn__body_graph *body);

/* Makes the operation that represents a call of f by op through the attribute value `func`: it has the attributes, but
 * no inputs. Allocated in arena. */
tn_status tn__call_create(const tn_operation *op, const tn__func *func, const tn_function *f, tn__arena *arena,
                        tn_operation **out, tn_error *err);
/* Three words that identify an attribute's value in keys. A value that is stored elsewhere is represented by its
 * address: equal values are mostly the same object, and otherwise a key only misses a match. */
void tn__attr_words(const tn__attr *a, int64_t words[3]);

/* Returns the attribute of a call that replaces a placeholder. TN_INVALID_ARGUMENT: the call has none. */
tn_status tn__call_attr(const tn_operation *call, const tn__slice *name, const tn__attr **out, tn_error *err);

/* The number of tensors of the arguments `args`, given the attributes of `call`. */
tn_status tn__signature_count(const tn_operation *call, const tn__arg_spec *args, uint32_t n_args, size_t *out,
                              tn_error *err);

/* The shape function of every function signature. */
tn_status tn__infer_own_call(tn_infer_ctx *ctx, tn_error *err);

#endif
