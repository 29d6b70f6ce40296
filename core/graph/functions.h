/* SPDX-License-Identifier: Apache-2.0 */
/* The function library of a graph: for core/graph and core/formats only. A table never changes once it is published; an
 * import that brings something new publishes a longer one. Everything lies in the graph's arena, but for bodies, which
 * are read when somebody asks and belong to graph->bodies. */
#ifndef TN_CORE_GRAPH_FUNCTIONS_H
#define TN_CORE_GRAPH_FUNCTIONS_H

#include <core/graph/graph_structs.h>

typedef struct tn__function_node {
  const char *name, *op;
  const char **inputs;
  size_t n_inputs;
} tn__function_node;

typedef struct tn__function_control {
  const char *name, *node;
} tn__function_control;

/* What is read late: operations that carry the attributes, and nothing else that an operation has. */
typedef struct tn__function_body {
  tn__owned owned;
  tn__arena arena;
  tn_operation *nodes;  /* n_nodes */
  tn_operation *self;   /* with the function's own attributes */
  tn_operation *inputs; /* with those of its arguments */
  int64_t *resources;   /* resource_arg_unique_id of each argument, -1 = none */
} tn__function_body;

struct tn_function {
  const char *name;
  tn_op_schema schema; /* the signature */
  tn_op_def def;       /* of the schema */
  tn_graph *graph;     /* whose library it is in */
  tn__slice proto;     /* the FunctionDef as it stood in its file */
  tn_buffer *holder;   /* of the file; borrowed, the graph holds it */
  tn__function_node *nodes;
  const char **rets; /* for each output of the signature what gives it; NULL = the file does not say */
  tn__function_control *controls;
  size_t n_nodes, n_controls;
  _Atomic(tn__function_body *) body; /* NULL: nobody asked yet */
};

typedef struct tn__gradient {
  const char *function, *gradient;
} tn__gradient;

/* What is looked up lies in parts, each at least twice as large as the one before it, so that a library that comes in
 * many small imports is neither copied by each of them nor slow to search. */
struct tn__functions {
  tn_function **items; /* all, in order of addition; a longer table goes on in the same array where it has room */
  size_t n, room;
  size_t n_nodes; /* in all bodies */
  const tn__functions *older; /* with the other parts, NULL = none */
  tn_function **sorted;       /* of this part, by name */
  tn__gradient *gradients;    /* by function */
  size_t n_sorted, n_gradients;
  tn__owned *owned; /* what goes with the graph once the table is published */
};

/* In a table that may be NULL; NULL when there is none. */
const tn_function *tn__functions_find(const tn__functions *table, const char *name, size_t size);
const char *tn__functions_gradient(const tn__functions *table, const char *function, size_t size);
/* Sorts the newest part, and joins it with older ones where they are not large enough. False: no memory. */
bool tn__functions_settle(tn__functions *table, tn__arena *arena);

/* Shows the table to everybody. What is new in it came from `file`, which the graph holds from now on. */
void tn__functions_publish(tn_graph *graph, const tn__functions *table, tn_buffer *file);

/* Frees what a table owns that is not published, after all; nothing to do for one that is, or NULL. */
void tn__functions_abandon(const tn__functions *table);

/* The schema of a node whose op is a function: its signature. NULL = there is no such function. */
const tn_op_schema *tn__functions_schema(const tn__functions *table, const char *name, size_t size);

/* The body, read at the first call. TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED. */
tn_status tn__function_body_get(const tn_function *f, const tn__function_body **out, tn_error *err);

/* "x", "x:1", "node:out", "node:out:1", "^node", in parts. */
typedef struct tn__function_edge {
  tn__slice node, output; /* an output without data: there is none */
  int64_t index;          /* -1 = all of them */
  bool is_control;
} tn__function_edge;
bool tn__function_edge_parse(const char *text, size_t size, tn__function_edge *out);

/* ---- bodies with shapes ---- */

/* A tensor that a function is called with, or gives. */
typedef struct tn__value_shape {
  tn__shape shape;
  tn__ints ints; /* n -1: nothing is known of its elements */
} tn__value_shape;

/* The body of a function as a graph of its own, made for one call: an operation for each argument, and the nodes. */
typedef struct tn__body_graph {
  tn_graph *graph;
  tn_output *outputs; /* n_outputs, in the graph's arena */
  size_t n_outputs;
  struct tn__call_state *state;
  int64_t size; /* that it took of the state's room */
} tn__body_graph;

/* What a call of a function is made in: shared by all that is called from it. */
typedef struct tn__call_state {
  const tn_graph *root;
  const tn__functions *functions;
  tn__arena arena;
  tn__map memo;    /* what a call with the same shapes gave */
  int64_t budget;  /* nodes that may still be made */
  int64_t room;    /* nodes that may be alive beside those that are */
  unsigned depth;
  bool exhausted;  /* budget or room ran out: what is not known yet stays so */
} tn__call_state;

/* In the graph of a body: who called. */
typedef struct tn__call_frame {
  tn__call_state *state;    /* NULL in a body that is run: each question of it has its own */
  const tn_operation *call; /* its schema is the function's, its attributes decide those of the nodes */
} tn__call_frame;

/* Makes the body for a call in two steps, so that what lives with the body can lie in its graph's arena. The inputs
 * have these shapes (flat, as many as the call's signature says); NULL: nothing is known of them. A body that is to be
 * run is whole: with control edges and all attributes. The messages of what is wrong name function and
 * node. tn__body_graph_fini when done, also after a failure. */
tn_status tn__body_graph_begin(tn__body_graph *out, const tn_function *f, tn_error *err);
tn_status tn__body_graph_fill(tn__body_graph *out, const tn_function *f, tn__call_frame *call, tn__call_state *state,
                              const tn__value_shape *inputs, bool whole, tn_error *err);
void tn__body_graph_fini(tn__body_graph *body);

/* The operation that stands for a call of f: op calls it through the value `func`. Its arguments are not set. In arena.
 */
tn_status tn__call_make(const tn_operation *op, const tn__func *func, const tn_function *f, tn__arena *arena,
                        tn_operation **out, tn_error *err);
/* What tells an attribute's value from others, for keys: values that lie elsewhere stand for themselves by their
 * address, since what is equal is mostly the same. */
void tn__attr_words(const tn__attr *a, int64_t words[3]);

/* The attribute of a call that a placeholder names. TN_INVALID_ARGUMENT: there is none. */
tn_status tn__call_attr(const tn_operation *call, const tn__slice *name, const tn__attr **out, tn_error *err);

/* How many tensors the arguments of a signature are for the attributes of `call`. */
tn_status tn__signature_count(const tn_operation *call, const tn__arg_spec *args, uint32_t n_args, size_t *out,
                              tn_error *err);

/* The shape function of a function's signature. */
tn_status tn__infer_own_call(tn_infer_ctx *ctx, tn_error *err);

#endif
