/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing: a new graph of one signature, in which variables are constants.
 *
 * A body is a list of nodes with their edges: that of a function of the library, or the main body, which has the nodes
 * of the model's graph that the signature's outputs need. A body is parsed once. What it becomes depends on which of
 * its arguments are variables, so a use is a body together with the types of its arguments; uses with equal types are
 * one object and become one function. A type is the dtype and shape of a variable's value.
 *
 * Steps: the main body is collected, with TN_FREEZE_INLINE also from the bodies of called functions (main.c,
 * inline.c); variables are traced from their nodes to the nodes that read them, through calls (flow.c);
 * uses get names (functions.c); nodes and functions are written with each variable as a plain value
 * (node.c, edit.c, functions.c), and imported into the new graph (freeze.c).
 *
 * Files, from the bottom up: kind, body, inline, main, attr, flow, edit, node,
 * functions, freeze. One thread uses all of it. */
#ifndef TN_CORE_MODEL_FREEZE_H
#define TN_CORE_MODEL_FREEZE_H

#include <core/base/arena.h>
#include <core/base/map.h>
#include <core/formats/sink.h>
#include <core/formats/wire.h>
#include <core/graph/function_instance.h>
#include <core/graph/functions.h>
#include <core/model/model.h>

/* Fields of GraphDef, FunctionDefLibrary, NodeDef and its map of attributes, AttrValue and its list, NameAttrList,
 * TensorShapeProto. */
enum { TN__FZ_G_NODE = 1, TN__FZ_G_LIBRARY = 2, TN__FZ_G_VERSIONS = 4, TN__FZ_LIB_FUNCTION = 1 };
enum { TN__FZ_N_NAME = 1, TN__FZ_N_OP = 2, TN__FZ_N_INPUT = 3, TN__FZ_N_DEVICE = 4, TN__FZ_N_ATTR = 5,
       TN__FZ_N_TYPE = 7, TN__FZ_KEY = 1, TN__FZ_VALUE = 2 };
enum { TN__FZ_A_LIST = 1, TN__FZ_A_S = 2, TN__FZ_A_I = 3, TN__FZ_A_TYPE = 6, TN__FZ_A_SHAPE = 7, TN__FZ_A_TENSOR = 8,
       TN__FZ_A_FUNC = 10, TN__FZ_L_S = 2, TN__FZ_L_TYPE = 6, TN__FZ_L_SHAPE = 7, TN__FZ_L_FUNC = 9 };
enum { TN__FZ_F_NAME = 1, TN__FZ_F_ATTR = 2, TN__FZ_S_DIM = 2, TN__FZ_S_UNKNOWN = 3, TN__FZ_D_SIZE = 1 };

/* The maximum number of nodes in all bodies that are made: a few bytes of a file can ask for any number. */
#define TN__FREEZE_NODES ((size_t)1 << 22)

/* ---- kinds of ops ---- */

typedef enum tn__freeze_kind {
  TN__FREEZE_OTHER,
  TN__FREEZE_ARGUMENT,       /* of a function */
  TN__FREEZE_HANDLE,         /* VarHandleOp: gives the resource of a variable */
  TN__FREEZE_REFERENCE,      /* VariableV2, Variable: gives a reference to a variable */
  TN__FREEZE_PASS,           /* hands its input on, to all outputs */
  TN__FREEZE_PASS_REFERENCE, /* the same for references */
  TN__FREEZE_PASS_EACH,      /* output i is input i */
  TN__FREEZE_MERGE,          /* output 0 is one of the inputs */
  TN__FREEZE_MERGE_REFERENCE,
  TN__FREEZE_READ, /* these take a variable's resource and need only its value */
  TN__FREEZE_GATHER,
  TN__FREEZE_GATHER_ND,
  TN__FREEZE_SHAPE,
  TN__FREEZE_IS_SET,
  TN__FREEZE_IS_SET_REFERENCE, /* takes a reference */
  TN__FREEZE_CALL,             /* calls: the inputs from the first argument on are those of the functions */
  TN__FREEZE_OWN_CALL,         /* the op is itself a function */
  TN__FREEZE_BRANCH,           /* argument 0 chooses the function */
  TN__FREEZE_LOOP,
} tn__freeze_kind;

typedef struct tn__freeze_op {
  const char *op;
  uint8_t kind;
  const char *becomes; /* the op that takes values instead of variables; NULL: the same */
  const char *output;  /* the name of that op's output 0 if it differs; else NULL */
  const char *pure;    /* of a call: the op for functions without state; NULL: none */
  bool two;            /* it has two outputs that are its input */
} tn__freeze_op;

/* The row of an op; one of kind TN__FREEZE_OTHER if it has no row. */
const tn__freeze_op *tn__freeze_op_of(tn__slice op);
static inline bool tn__freeze_calls(uint8_t kind) { return kind >= TN__FREEZE_CALL; }
/* Whether the kind only reads a variable. */
static inline bool tn__freeze_reads(uint8_t kind)
{
  return kind >= TN__FREEZE_READ && kind <= TN__FREEZE_IS_SET_REFERENCE;
}
static inline bool tn__freeze_is_variable(uint8_t kind)
{
  return kind == TN__FREEZE_HANDLE || kind == TN__FREEZE_REFERENCE;
}
/* The number of the input of a call that is its function's argument 0. */
static inline uint32_t tn__freeze_first(uint8_t kind) { return kind == TN__FREEZE_BRANCH; }
/* Whether an op that is no variable gives a resource or a reference that outlives the step. */
bool tn__freeze_makes_resource(tn__slice op);
/* Whether an op has state or effects, as far as is known. */
bool tn__freeze_has_effect(tn__slice op);

/* ---- bodies ---- */

#define TN__FREEZE_NONE UINT32_MAX

/* An input of a node: an output of the node `from` of the same body. */
typedef struct tn__freeze_edge {
  uint32_t from, port; /* from is TN__FREEZE_NONE if the body has no such node */
  tn__slice text;      /* in a function: the input as the node names it; no data in the main body */
} tn__freeze_edge;

/* A function that a node calls. */
typedef struct tn__freeze_call {
  uint32_t node;
  bool nested;    /* in an attribute of a function value, or a gradient: it is not called with the node's inputs */
  tn__slice attr; /* the attribute that names it; no data: the op itself does */
  tn__slice name;
  struct tn__freeze_body *body; /* NULL: the library has no such function */
} tn__freeze_call;

typedef struct tn__freeze_node {
  const tn__freeze_op *row;
  uint8_t kind;
  bool by_reference; /* main body: a large constant, whose tensor the new graph shares; without bytes */
  bool left_out;     /* main body: nothing needs it after all */
  tn__slice name, op;
  tn__slice device;                   /* main body: the device if the bytes name none */
  tn__slice bytes;                    /* a NodeDef; its name and inputs do not count in the main body */
  const tn_operation *operation;      /* main body, and variables; NULL: none */
  tn_tensor *value;                   /* of a variable, once it was read; owned */
  uint32_t value_type;                /* the type of the value */
  uint32_t first, n_data, n_controls; /* edges: data, then controls */
  uint32_t first_call, n_calls;
} tn__freeze_node;

typedef struct tn__freeze_body {
  const tn_function *function; /* NULL: the main body */
  tn__freeze_node **nodes;     /* a function's first nodes are its arguments */
  size_t n_nodes, node_room, n_arguments;
  tn__freeze_edge *edges;
  size_t n_edges, edge_room;
  tn__freeze_edge *results; /* of a function: those of its outputs; of the main body: those of the signature */
  size_t n_results;
  tn__freeze_call *calls;
  size_t n_calls, call_room;
  tn__map names;                      /* node numbers plus 1 */
  uint32_t *readers;                  /* numbers of data edges, sorted by the node that they come from */
  uint32_t *first_reader;             /* for each node, and one more; NULL: not made yet */
  uint32_t *edge_node;                /* the node that each edge leads to */
  struct tn__freeze_callers *callers; /* bodies with calls of this one; temporary */
  size_t n_named;                     /* names that were tried for its uses */
  bool gives_resources;               /* an output of the function is a resource */
  bool has_variables;
  bool has_unknown; /* an op is not registered */
  bool has_lists;   /* an argument of the function is a list */
  bool has_effect;  /* one of its own nodes has state or effects even if variables are values */
  bool impure;      /* that, or a function that it calls is impure */
} tn__freeze_body;

typedef struct tn__freeze_callers {
  tn__freeze_body *body;
  struct tn__freeze_callers *next;
} tn__freeze_callers;

/* ---- uses ---- */

/* The type of a variable's value. Types are numbered from 1; 0 is no variable. */
typedef struct tn__freeze_type {
  tn_dtype dtype;
  bool is_reference;
  int32_t rank;
  const int64_t *dims;
  const char *variable; /* a variable of this type, for messages */
} tn__freeze_type;

typedef struct tn__freeze_mark {
  uint32_t node, port;
} tn__freeze_mark;

typedef struct tn__freeze_use {
  tn__freeze_body *body;
  uint32_t *arguments, *results;   /* their types */
  uint32_t **bound;                /* for each node the types of its outputs that may be variables; NULL: none is */
  struct tn__freeze_use **callees; /* for each call of the body; NULL: the library has no such function */
  enum { TN__FREEZE_NEW, TN__FREEZE_BEGUN, TN__FREEZE_DONE } state;
  tn__freeze_mark *marks; /* outputs found to be variables whose readers were not visited; a heap block */
  size_t n_marks, mark_room;
  uint32_t *waiting; /* calls whose function gives resources, and whose results are not known; a heap block */
  size_t n_waiting, waiting_room;
  struct tn__freeze_use *next; /* of all uses */
  struct tn__freeze_uses *callers;
  bool reached, changed, pure;
  const char *name; /* of the function that it becomes */
} tn__freeze_use;

typedef struct tn__freeze_uses {
  tn__freeze_use *use;
  struct tn__freeze_uses *next;
} tn__freeze_uses;

typedef struct tn__freeze {
  tn_session *session;
  const tn_model *model;
  tn_graph *graph; /* the model's */
  const tn__signature_def *signature;
  bool inlines;
  bool has_flow;   /* the model's graph has branches or loops that are made of nodes */
  tn__arena arena; /* of everything that has no other owner */
  tn__freeze_body *main;
  tn__freeze_use *main_use;
  tn__map bodies;        /* tn__freeze_body by the name of its function */
  tn__freeze_body **all; /* the same, n_bodies */
  size_t n_bodies, body_room;
  tn__freeze_type *types;
  size_t n_types, type_room;
  tn__map uses; /* by body and arguments */
  tn__freeze_use *first_use, **last_use;
  tn__map taken;                   /* names of functions that were given, and of calls that were replaced */
  struct tn__freeze_scope *scopes; /* all of inline.c */
  size_t n_made;                   /* nodes, counted against TN__FREEZE_NODES */
  tn_error *err;
} tn__freeze;

tn_status tn__freeze_no_memory(tn__freeze *fz);
/* Counts n nodes; TN_RESOURCE_EXHAUSTED above the limit. */
tn_status tn__freeze_count(tn__freeze *fz, size_t n);
/* Copies a text, NUL-terminated, to the arena; "a" and "b" joined. NULL: out of memory. */
const char *tn__freeze_join(tn__freeze *fz, tn__slice a, tn__slice b);
/* Returns the name, or NAME_1, NAME_2, ... that the body does not have yet, and for the main body the model's graph
 * neither. NULL: out of memory. */
const char *tn__freeze_unique(tn__freeze *fz, const tn__freeze_body *body, const char *name);
/* Begins a message about a node: "node 'x' (Op)", "function 'f': node 'x' (Op)"; also sets the error's node. */
tn_status tn__freeze_refuse(tn__freeze *fz, const tn__freeze_body *body, const tn__freeze_node *node, tn_status code,
                            const char *format, ...) TN_PRINTF(5, 6);

/* ---- body.c ---- */

/* Finds the body of a function, parsed at the first call. *out is NULL if the library has no such function. */
tn_status tn__freeze_body_get(tn__freeze *fz, tn__slice function, tn__freeze_body **out);
void tn__freeze_body_fini(tn__freeze_body *body);
/* Appends an empty node, edge. NULL: out of memory. */
tn__freeze_node *tn__freeze_add_node(tn__freeze *fz, tn__freeze_body *body);
tn_status tn__freeze_add_edge(tn__freeze *fz, tn__freeze_body *body, tn__freeze_edge edge);
/* Sets the op of a node and what follows from it; adds the calls that its bytes make. */
tn_status tn__freeze_set_op(tn__freeze *fz, tn__freeze_body *body, uint32_t node, tn__slice op);
/* Sets `calls[].body`, for which it parses those functions. */
tn_status tn__freeze_link(tn__freeze *fz, tn__freeze_body *body);
/* Sets `impure` of all bodies that are parsed and linked. */
tn_status tn__freeze_spread_impurity(tn__freeze *fz);
/* Sets readers, first_reader and edge_node. */
tn_status tn__freeze_index_readers(tn__freeze *fz, tn__freeze_body *body);

/* ---- inline.c: calls in the main body that are replaced by the nodes of their functions ---- */

/* A call that was replaced. */
typedef struct tn__freeze_scope {
  struct tn__freeze_scope *parent, *next; /* next: of all scopes */
  tn_operation *call;                     /* in the graph of the parent, or the model's */
  tn__function_instance f;
  tn__freeze_body *body;
  const char *name;      /* of the call in the new graph */
  tn__slice device;      /* that the call asks for */
  uint32_t *first_input; /* for each argument operation of f the number of its first tensor */
  uint32_t *arguments;   /* for each of its tensors 1 + the node that hands it in; 0: none yet */
  uint32_t join, gate;   /* 1 + their nodes; 0: none yet */
  bool effects;          /* the call does more than to compute its outputs */
  bool gated;            /* the call waits for others */
  bool anchored;         /* nodes without inputs must not run unless the call does */
  bool has_flow;         /* the function's body has branches or loops made of nodes */
} tn__freeze_scope;

/* Whether an operation is a call to be replaced. A function with ops that are not registered stays one: the order of
 * their outputs, which a function names, is not known. */
bool tn__freeze_is_inlined(const tn__freeze *fz, const tn_operation *op);
/* Returns the scope of a call, made at the first call. TN_UNIMPLEMENTED: its function calls itself. */
tn_status tn__freeze_scope_get(tn__freeze *fz, tn__map *scopes, tn__freeze_scope *parent, tn_operation *call,
                               tn__freeze_scope **out);
void tn__freeze_scopes_fini(tn__freeze *fz);
/* Whether one of the targets of the scope's function must run although nothing needs its outputs. */
bool tn__freeze_is_effect(const tn__freeze_scope *scope, const tn_operation *op);
/* The name of a scope's operation in the new graph, that is CALL/NAME; scope NULL: the name itself. NULL: out of
 * memory. */
const char *tn__freeze_inner_name(tn__freeze *fz, const tn__freeze_scope *scope, const char *name);
/* Whether a graph has branches or loops that are made of nodes. */
bool tn__freeze_has_flow(const tn_graph *graph);
/* The number of an argument's tensor; false: the operation is no argument. */
bool tn__freeze_argument(const tn__freeze_scope *scope, tn_output output, uint32_t *out);

/* ---- main.c ---- */

/* Collects the main body. A variable's node gets no bytes. */
tn_status tn__freeze_collect(tn__freeze *fz);

/* ---- flow.c ---- */

/* Traces all variables of the main body and of what it calls. */
tn_status tn__freeze_trace(tn__freeze *fz);
/* Finds the use of a body in which no argument is a variable. *out is NULL if there is none. */
tn_status tn__freeze_plain_use(tn__freeze *fz, const tn__freeze_body *body, const tn__freeze_use **out);
/* Frees what only tracing needs. */
void tn__freeze_use_fini(tn__freeze_use *use);
/* The type of an edge's value in a use, 0: it is no variable. */
uint32_t tn__freeze_bound(const tn__freeze_use *use, const tn__freeze_edge *edge);
static inline const tn__freeze_type *tn__freeze_type_of(const tn__freeze *fz, uint32_t type)
{
  return &fz->types[type - 1];
}

/* ---- attr.c ---- */

/* The value of an attribute in a NodeDef; no data: it has none. */
tn__slice tn__freeze_attr(tn__slice node, const char *name);
/* The text of a string attribute, "" if the node has none. */
tn__slice tn__freeze_attr_text(tn__slice node, const char *name);
int64_t tn__freeze_attr_int(tn__slice node, const char *name, int64_t otherwise);
/* Writing of one NodeDef. */
typedef struct tn__freeze_writer {
  tn__freeze *fz;
  tn__sink *s; /* in memory */
  const tn__freeze_use *use;
  uint32_t number;
  const tn__freeze_node *node;
  uint32_t type; /* of input 0 */
  bool bound;    /* an input or an output is a variable */
  uint32_t next_call;
} tn__freeze_writer;
/* Begin and end a field with a message, and an attribute with its value. */
static inline size_t tn__freeze_open(tn__sink *s, uint32_t field)
{
  tn__sink_tag(s, field, TN__WIRE_BYTES);
  return tn__sink_begin(s);
}
typedef struct tn__freeze_places {
  size_t entry, value;
} tn__freeze_places;
tn__freeze_places tn__freeze_open_attr(tn__sink *s, tn__slice name);
void tn__freeze_close_attr(tn__sink *s, tn__freeze_places places);
/* Write attributes: a type; a scalar, whose TensorProto has the value in `field`; a shape. */
void tn__freeze_put_type(tn__sink *s, const char *name, tn_dtype dtype);
void tn__freeze_put_scalar(tn__sink *s, const char *name, tn_dtype dtype, uint32_t field, uint64_t value);
void tn__freeze_put_shape(tn__sink *s, const char *name, const int64_t *dims, int32_t rank);
/* Writes the shape of a type as a field. */
void tn__freeze_put_type_shape(tn__sink *s, uint32_t field, const tn__freeze_type *type);

/* ---- edit.c ---- */

/* Copies the attributes of the node's bytes. `edit` writes an attribute in another form or leaves it out, and then
 * returns true. */
typedef bool (*tn__freeze_edit)(tn__freeze_writer *w, tn__slice key, tn__slice value);
void tn__freeze_copy_attrs(tn__freeze_writer *w, tn__freeze_edit edit);
/* Edits. private: leaves out all but those that every op may have. */
bool tn__freeze_edit_private(tn__freeze_writer *w, tn__slice key, tn__slice value);
bool tn__freeze_edit_pass(tn__freeze_writer *w, tn__slice key, tn__slice value);
bool tn__freeze_edit_each(tn__freeze_writer *w, tn__slice key, tn__slice value);
bool tn__freeze_edit_call(tn__freeze_writer *w, tn__slice key, tn__slice value);

/* ---- node.c ---- */

/* Writes a node as field `field`. */
void tn__freeze_put_node(tn__freeze *fz, tn__sink *s, uint32_t field, const tn__freeze_use *use, uint32_t node);
/* Writes an edge's text, with the name that the output has now. */
void tn__freeze_put_edge_text(const tn__freeze *fz, tn__sink *s, uint32_t field, const tn__freeze_use *use,
                              tn__slice text);
/* Whether a node becomes another op. */
bool tn__freeze_converts(const tn__freeze *fz, const tn__freeze_use *use, uint32_t node);

/* ---- functions.c ---- */

/* Determines which uses the main body reaches, which change, which have no effects, and their names. */
tn_status tn__freeze_name_uses(tn__freeze *fz);
/* Writes the library, a field of the GraphDef. */
void tn__freeze_put_library(tn__freeze *fz, tn__sink *s);

#endif
