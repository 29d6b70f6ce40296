/* SPDX-License-Identifier: Apache-2.0 */
/* Struct definitions of graphs, operations, attributes and schemas, for core/graph and core/formats only.
 *
 * Unless a comment says otherwise, pointers in these structs point into the arena of the graph (or of the schema) that
 * the struct belongs to, and are freed with it. Members are written before the operation is published and never change
 * afterwards; the atomic ones are filled in later, once, by compare-and-swap. */
#ifndef TN_CORE_GRAPH_STRUCTS_H
#define TN_CORE_GRAPH_STRUCTS_H

#include <core/base/arena.h>
#include <core/base/map.h>
#include <core/graph/graph_internal.h>
#include <core/tensor/tensor_internal.h>
#include <stdatomic.h>

/* ---- attributes ---- */

typedef struct tn__shape {
  const int64_t *dims; /* -1 = unknown */
  int64_t rank;        /* -1 = unknown */
} tn__shape;

/* Base of heap blocks that readers add to a graph that is already shared. They are freed with the graph. */
typedef struct tn__owned {
  struct tn__owned *next;
  void (*free)(struct tn__owned *self);
} tn__owned;

/* A tensor attribute: a tensor set by the builder, or a message of a file that is decoded at the first read. */
typedef struct tn__lazy_tensor {
  _Atomic(tn_tensor *) tensor; /* NULL until decoded; the graph owns the reference */
  tn__slice proto;             /* serialized TensorProto; no data if the builder set the tensor */
  tn_buffer *holder;           /* owner of proto's bytes; borrowed, the graph has a reference */
} tn__lazy_tensor;

struct tn__decoded; /* below */

/* The attributes of a function that is itself an attribute value, decoded at the first read. */
typedef struct tn__func_attrs {
  _Atomic(struct tn__decoded_func *) value; /* NULL until decoded */
  tn__slice proto;                          /* serialized NameAttrList */
  tn_buffer *holder;                        /* owner of proto's bytes; borrowed */
  size_t n;                                 /* number of attributes */
} tn__func_attrs;

typedef struct tn__func {
  tn__slice name;        /* NUL-terminated */
  tn__func_attrs *attrs; /* NULL: none */
} tn__func;

typedef struct tn__functions tn__functions;
struct tn__function_body; /* functions.h */

typedef struct tn__attr {
  const char *name; /* NUL-terminated */
  uint32_t name_size;
  uint8_t kind;    /* TN_ATTR_...; TN_ATTR_LIST alone is an empty list of unknown kind */
  uint8_t lazy;    /* the value is still encoded: v.decoded is valid and filled in from `proto` on demand */
  uint16_t place;  /* position in the file, if the attributes were sorted */
  union {
    int64_t i;
    float f;
    tn_bool b;
    tn_dtype type;
    tn__slice text; /* string, placeholder; NUL-terminated */
    tn__func func;
    tn__shape shape;
    tn__lazy_tensor *tensor;
    struct {
      const void *items; /* int64_t, float, tn_bool, tn_dtype, tn__slice, tn__shape, tn__lazy_tensor *,
                            * tn__func */
      size_t n;
    } list;
    struct {
      _Atomic(struct tn__decoded *) value; /* NULL until decoded */
      tn_buffer *holder;                   /* owner of proto's bytes; borrowed */
    } decoded;
  } v;
  tn__slice proto; /* the serialized AttrValue of the file; no data if the builder set the value */
} tn__attr;

/* A decoded attribute and its memory. */
typedef struct tn__decoded {
  tn__owned owned;
  tn__arena arena;
  tn__attr value;
} tn__decoded;

/* The decoded attributes of a function value and their memory. */
typedef struct tn__decoded_func {
  tn__owned owned;
  tn__arena arena;
  tn__attr *attrs;
} tn__decoded_func;

/* Decoders of serialized parts, provided by core/formats: this room does not know file formats. A graph's codec is set
 * before the first encoded part enters the graph. */
typedef struct tn__codec {
  /* Decodes a serialized AttrValue into kind and value of *out, allocated in arena. */
  tn_status (*attr)(tn__slice proto, tn_buffer *holder, tn__arena *arena, tn__attr *out, tn_error *err);
  /* Decodes a serialized TensorProto. */
  tn_status (*tensor)(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);
  /* Like `tensor`, but a large tensor gets its own copy of the elements. The holder may then discard their bytes; it
   * reads them from the file again on demand. */
  tn_status (*take)(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);
  /* Decodes dtype and shape of a large tensor, without elements. *out is NULL if the tensor is not large. */
  tn_status (*outline)(tn__slice proto, tn_tensor **out, tn_error *err);
  /* Decodes the of->n attributes of a function value into out, allocated in arena. */
  tn_status (*func)(const tn__func_attrs *of, tn__arena *arena, tn__attr *out, tn_error *err);
  /* Decodes the body of a function into an arena of its own; freed by owned.free. */
  tn_status (*body)(const tn_function *f, struct tn__function_body **out, tn_error *err);
} tn__codec;

/* The kind for messages: "an int", "a list of types". */
const char *tn__attr_kind_name(int32_t kind);
/* Bytes of an item in v.list.items; `kind` is that of an item. */
size_t tn__attr_item_size(int32_t kind);

/* ---- schemas ---- */

/* An attribute of a schema. */
typedef struct tn__attr_spec {
  tn__attr value; /* name and kind; the default value if has_default */
  bool has_default, has_minimum;
  int64_t minimum;          /* of an int, or of the length of a list */
  uint64_t types;           /* bit d: dtype d is allowed */
  const tn__slice *strings; /* allowed values, n_strings of them; NULL = any */
  uint32_t n_strings;
} tn__attr_spec;

/* An input or output of a schema: one tensor, number_attr tensors of one type, or one of each type in list_attr. */
typedef struct tn__arg_spec {
  const char *name;
  uint32_t name_size;
  bool is_ref;
  uint8_t dtype;       /* TN_DTYPE_INVALID: given by an attribute */
  int32_t type_attr;   /* index of the attribute with the dtype, -1 = none */
  int32_t number_attr; /* index of the attribute with the number of tensors, -1 = none */
  int32_t list_attr;   /* index of the attribute with a list of dtypes, -1 = none */
} tn__arg_spec;

/* A kernel's condition on a type attribute. */
typedef struct tn__constraint {
  uint32_t attr;  /* index in the schema */
  uint64_t types; /* bit d: dtype d is allowed */
} tn__constraint;

/* Guarded by the lock of the op table. */
typedef struct tn__kernel {
  const tn_kernel_def *def;    /* borrowed from the family, which outlives the entry */
  struct tn__kernel *next;     /* of the same op, not better than this one */
  tn_op_schema *schema;        /* NULL after the op was removed */
  tn__constraint *constraints; /* set when the schema is parsed; in its arena or in that of the family */
  uint32_t n_constraints;
  uint32_t order; /* of registration: among equal ranks the first wins */
} tn__kernel;

typedef struct tn__rewrite {
  const tn_rewrite_def *def;
  struct tn__rewrite *_Atomic next; /* of the same op, in order of registration */
} tn__rewrite;

/* State of a schema: its texts are not parsed yet, parsed, or malformed. */
enum { TN__SCHEMA_RAW = 0, TN__SCHEMA_READY = 1, TN__SCHEMA_BAD = 2 };

struct tn_op_schema {
  const tn_op_def *def; /* borrowed from the family */
  const char *name;
  uint32_t name_size;
  uint32_t traits;
  _Atomic int state; /* the texts are parsed at the first look-up; members below are valid and fixed once READY */
  tn__arena arena;   /* of all below */
  tn__arg_spec *inputs, *outputs;
  tn__attr_spec *attrs;
  uint32_t n_inputs, n_outputs, n_attrs;
  uint32_t shape_operands; /* bit i: the value of input argument i decides shapes of outputs */
  int32_t constant_attr;   /* index, -1 = none */
  bool plain_inputs;       /* each input argument is one tensor */
  bool plain_outputs;
  tn__kernel *kernels;           /* best first; guarded by the lock of the op table */
  tn__rewrite *_Atomic rewrites; /* read without a lock: a linked rewrite lives as long as its family */
  const tn_cost_def *_Atomic cost; /* NULL: the default (tn_cost_ctx); read without a lock, as rewrites are */
  bool is_function;              /* the signature of a library function: a node of this op calls it */
  bool is_own;                   /* registered by the library itself, not by a plugin or the program */
};

/* Parses the texts of schema->def. Sets everything but kernels and state; on failure the arena is empty. */
tn_status tn__schema_parse(tn_op_schema *schema, tn_error *err);
/* Parses def->types, such as "T=float|double,Tidx=int32". */
tn_status tn__constraints_parse(const tn_op_schema *schema, const tn_kernel_def *def, tn__arena *arena,
                                tn__constraint **out, uint32_t *n, tn_error *err);
int32_t tn__schema_attr_index(const tn_op_schema *schema, const char *name, size_t size); /* -1 = none */
const tn_op_schema *tn__schema_find(const char *name, size_t size);                       /* NULL = none */

/* Ops that plugins offer; implemented by core/host. Call with no lock held.
 * offered  whether a plugin that is not loaded declares this op; does not run the plugin's code
 * load     loads that plugin; if the op is still missing afterwards, the log and `explain` say why
 * explain  writes a suffix "; plugin ... " for the message that the op is not registered, like snprintf; "" if no
 *          plugin is concerned */
typedef struct tn__op_source_fns {
  bool (*offered)(const char *name, size_t size);
  void (*load)(const char *name, size_t size);
  void (*explain)(const char *name, char *buffer, size_t size);
} tn__op_source_fns;
extern const tn__op_source_fns tn__op_source;

/* Whether the operation's type attribute satisfies a constraint. */
bool tn__types_fit(const tn_operation *op, const tn__constraint *c);
/* Appends the operation's type attributes for messages: "T=float,U=[int32]". */
void tn__describe_types(const tn_operation *op, tn__text *to);

/* Like tn__schema_find, but loads a plugin that offers the op if necessary. */
const tn_op_schema *tn__schema_need(const char *name, size_t size);

/* Registers the library's own families, once. TN_RESOURCE_EXHAUSTED. */
tn_status tn__ops_ensure(tn_error *err);

static inline uint64_t tn__type_bit(tn_dtype dtype)
{
  return dtype > 0 && dtype < 64 ? UINT64_C(1) << dtype : 0;
}
bool tn__dtype_valid(tn_dtype base); /* a known type, not a reference */

/* ---- operations ---- */

/* Elements of a small integer output that are known before any step; an unknown one is TN_UNKNOWN_INT. */
typedef struct tn__ints {
  const int64_t *items;
  int64_t n; /* -1 = nothing is known */
} tn__ints;

/* Shapes of all outputs of an operation, in one heap block with their dims and ints at its end. Immutable once
 * published, but for the epoch. Readers borrow dims from it, so it lives as long as the graph. */
typedef struct tn__op_shapes {
  tn__owned owned;
  size_t size;            /* bytes of this block */
  _Atomic uint32_t epoch; /* shape epoch of the graph for which this block is valid */
  tn_bool failed;         /* the shape function refused the inputs; all outputs are unknown */
  tn__ints *ints;         /* n_outputs; NULL: no elements are known */
  tn__shape outputs[];    /* n_outputs */
} tn__op_shapes;

/* With more outputs their types are computed on demand: a few bytes of a file can claim a million outputs. */
#define TN__STORED_DTYPES 64
#define TN__MAX_OUTPUTS (1 << 20)

struct tn_operation {
  tn_graph *graph;            /* that it belongs to; borrowed */
  const tn_op_schema *schema; /* NULL: op not registered */
  const char *name, *type, *device;
  tn_output *inputs;
  tn_operation **controls;
  tn__attr *attrs;        /* the node's own, including those that the schema lacks */
  uint16_t *slots;        /* for each attribute of the schema: 1 + its index in attrs, 0 = the default */
  uint8_t *input_dtypes;  /* required by the schema; TN_DTYPE_INVALID: unknown */
  uint8_t *output_dtypes; /* NULL above TN__STORED_DTYPES */
  _Atomic(tn__op_shapes *) shapes; /* inferred; NULL: not yet. Valid only in its epoch */
  _Atomic(tn__op_shapes *) given;  /* set by tn_graph_set_shape; NULL: none */
  uint64_t hash;                   /* of the name */
  uint32_t id, name_size;          /* id: index in the graph */
  uint32_t n_inputs, n_controls, n_outputs, n_attrs;
  uint32_t traits; /* of the schema; 0 if not registered */
  bool edited;     /* changed by an import: of proto, only the fields that this library does not know are valid */
  bool sorted;     /* attrs are sorted by name; among equal names the last one counts */
  tn__slice proto; /* the serialized NodeDef of the file; no data if the operation was built */
};

/* The bytes that an export writes for the operation; no data: it must be encoded. */
static inline tn__slice tn__op_bytes(const tn_operation *op)
{
  return op->edited ? (tn__slice){ NULL, 0 } : op->proto;
}

/* Returns attribute i of the schema: the node's value or the default. */
static inline const tn__attr *tn__op_attr(const tn_operation *op, uint32_t i)
{
  return op->slots[i] != 0 ? &op->attrs[op->slots[i] - 1] : &op->schema->attrs[i].value;
}
/* Sorts the attributes by name if there are many: a file may have 65534 of them at one node. Call it before slots or
 * other pointers refer to them. */
void tn__op_sort_attrs(tn_operation *op);
/* The graph that owns the decoded values of an operation's attributes. */
static inline tn_graph *tn__attr_owner(const tn_operation *op);
const tn__attr *tn__op_attr_named(const tn_operation *op, const char *name, size_t size); /* NULL = none */
/* Like tn__op_attr_named, but sets an error if there is none. The value may still be encoded. */
tn_status tn__op_attr_find(const tn_operation *op, const char *name, const tn__attr **out, tn_error *err);
/* If *attr is still encoded, decodes it and replaces *attr by the decoded attribute. */
tn_status tn__op_attr_resolve(const tn_operation *op, const tn__attr **attr, tn_error *err);
/* The number of tensors of an argument, and the dtype of tensor i of it. */
size_t tn__arg_count(const tn_operation *op, const tn__arg_spec *arg);
tn_dtype tn__arg_dtype(const tn_operation *op, const tn__arg_spec *arg, size_t i);
/* Decodes the attributes of a function value at the first use; op has the attribute with that value. Borrowed. */
tn_status tn__func_attrs_get(const tn_operation *op, tn__func_attrs *of, tn__decoded_func **out, tn_error *err);

/* Decodes a tensor attribute at its first use. Borrowed from the graph. */
tn_status tn__attr_get_tensor(const tn_operation *op, tn__lazy_tensor *lazy, tn_tensor **out, tn_error *err);

/* Steps of making an operation, in this order, shared by the importer and the builder. Messages begin with the fault
 * itself; the caller prefixes file and node.
 *   attrs    needs op->schema, attrs and n_attrs; sets slots, checks kinds and missing attributes.
 *   outputs  sets n_outputs and output_dtypes.
 *   inputs   needs op->inputs and n_inputs; sets input_dtypes, checks number and types. */
tn_status tn__op_check_attrs(tn_operation *op, tn__arena *arena, tn_error *err);
tn_status tn__op_set_outputs(tn_operation *op, tn__arena *arena, tn_error *err);
tn_status tn__op_check_inputs(tn_operation *op, tn__arena *arena, tn_error *err);
/* Checks one attribute against its spec. An empty list of unknown kind gets the kind of the spec. */
tn_status tn__attr_check(const tn__attr_spec *spec, tn__attr *attr, tn_error *err);

/* Whether the edge closes a loop. */
static inline bool tn__is_back_edge(const tn_operation *from, const tn_operation *to)
{
  return (from->traits & TN_TRAIT_NEXT_ITERATION) != 0 && (to->traits & TN_TRAIT_MERGE) != 0;
}

bool tn__name_is_valid(const char *name, size_t size);     /* S-GRA-07 */
bool tn__op_type_is_valid(const char *name, size_t size);  /* letters, digits, _ . > - : */
bool tn__device_is_valid(const char *device, size_t size); /* S-CFG-06 */
/* Parses "node", "node:3" or "^node"; false: malformed. A control input has index -1. */
typedef struct tn__edge_name {
  tn__slice node;
  int32_t index;
  bool is_control;
} tn__edge_name;
bool tn__edge_name_parse(const char *text, size_t size, tn__edge_name *out);

/* ---- graphs ---- */

/* Hash table from names to ids, with linear probing. Readers take no lock, so it grows into a new table, and old tables
 * are kept until the graph is freed. A slot is the upper half of the hash and 1 + id; 0: free. Entries are removed only
 * in the reverse order of insertion (by a failed import), so probe chains stay intact. */
typedef struct tn__index {
  struct tn__index *older;
  size_t mask; /* number of slots - 1 */
  _Atomic uint64_t slots[];
} tn__index;

/* The data that an import keeps in its graph: the file's bytes, and its top-level fields other than nodes (the library,
 * ...), which an export writes again. */
typedef struct tn__import_record {
  struct tn__import_record *next;
  tn_buffer *file; /* a reference */
  tn__slice *rest; /* whole fields, with their tags */
  size_t n_rest;
} tn__import_record;

#define TN__FIRST_SEGMENT 8 /* operations; small, because there may be many small function bodies */
#define TN__N_SEGMENTS 30

struct tn_graph {
  _Atomic uint32_t refs;
  /* Building and importing take it for writing, compilation for reading. Other reading calls need no lock: an operation
   * is complete before `count` publishes it and never changes, and what readers compute later (shapes, tensors) they
   * publish by compare-and-swap. */
  tn__rwlock lock;
  tn__arena arena;      /* guarded by lock */
  size_t staged;        /* operations made so far; differs from count only inside a writer. Guarded by lock */
  _Atomic size_t count; /* published operations; release / acquire */
  tn_operation *segments[TN__N_SEGMENTS]; /* set before a count that needs them is published */
  _Atomic(tn__index *) index;
  tn__import_record *imports;               /* guarded by lock */
  _Atomic(tn__owned *) owned;               /* list of blocks to free with the graph */
  _Atomic(const tn__codec *) codec;         /* static; NULL until the first import */
  _Atomic(const tn__functions *) functions; /* the library, NULL: empty; in the arena (functions.h) */
  _Atomic uint32_t shape_epoch;             /* inferred shapes of another epoch are stale */
  _Atomic(struct tn__consumers *) consumers; /* made at the first query; in the list `owned` */
  _Atomic(struct tn__plan_data *) plan_data; /* likewise */
  _Atomic int64_t call_budget; /* nodes of function bodies that may still be made for shapes in this epoch */
  _Atomic uint32_t call_epoch; /* 1 + the epoch of call_budget */
  _Atomic bool names_devices;  /* an operation has requested a device */
  tn_graph *bodies; /* owner of the operations in function bodies (functions.h). Made with the first; guarded by lock */

  /* Only in a body that was made for a call (function_graph.c): */
  tn_graph *lender;             /* owner of its operations' attributes; borrowed */
  struct tn__call_frame *frame; /* the call; borrowed */

  /* Only in such a body that is run (function_instance.c): */
  tn_graph *caller;   /* the graph of the call; a reference */
  tn_graph *library;  /* the outermost graph, whose function library the body uses; kept alive by `caller` */
  uint32_t path_size; /* bytes of the call path before each operation's own name */
};

static inline tn_graph *tn__attr_owner(const tn_operation *op)
{
  return op->graph->lender != NULL ? op->graph->lender : op->graph;
}

tn_operation *tn__graph_at(const tn_graph *graph, size_t i);
/* Reserves room for n more operations and their names. This and the functions below, up to tn__graph_unstage, need the
 * graph's lock for writing, unless no other thread has the graph. */
tn_status tn__graph_reserve(tn_graph *graph, size_t n, tn_error *err);
/* Returns the next operation, zeroed, with graph and id set. The room must be reserved. */
tn_operation *tn__graph_stage(tn_graph *graph);
/* Adds op (with name, name_size and hash set) to the index; false: the name is taken. */
bool tn__graph_index_add(tn_graph *graph, tn_operation *op);
/* Like tn_graph_find, but also finds staged operations. */
tn_operation *tn__graph_find_staged(const tn_graph *graph, const char *name, size_t size);
/* Makes the staged operations visible to readers. */
void tn__graph_publish(tn_graph *graph);
/* Removes the operations staged beyond n_staged; the first n_indexed of them are in the index. */
void tn__graph_unstage(tn_graph *graph, size_t n_staged, size_t n_indexed);
/* Hands a heap block to the graph, which frees it at its end. Any thread, no lock. */
void tn__graph_own(tn_graph *graph, tn__owned *owned);

/* Infers the shapes of an operation and of everything that it depends on. *out is NULL if all its outputs are unknown;
 * they are also unknown if the shape function refuses its inputs. TN_RESOURCE_EXHAUSTED. */
tn_status tn__op_shapes_get(const tn_operation *op, const tn__op_shapes **out, tn_error *err);

/* The known facts of one output: its shape, and its elements if they are small integers (n is -1 if unknown). Elements
 * may be allocated in arena; everything else is borrowed from the graph. */
tn_status tn__output_known(tn_output output, tn__arena *arena, tn__shape *shape, tn__ints *ints, tn_error *err);

/* Packs copies of n shapes, and of n ints if that is not NULL, into one block. NULL: out of memory. */
tn__op_shapes *tn__shapes_pack(const tn__shape *outputs, const tn__ints *ints, size_t n);
/* Combines the facts of a and b, with the result's dims in `dims`; false: they contradict each other. */
bool tn__shapes_merge(const tn__shape *a, const tn__shape *b, int64_t dims[TN_MAX_RANK], tn__shape *out);

/* ---- building ---- */

/* One thread at a time. The arrays are heap blocks with room for *_room elements. */
struct tn_operation_builder {
  tn_graph *graph; /* a reference */
  tn__arena arena;
  tn_error error; /* the first one; setters do nothing after it */
  uint32_t flags;
  const tn_op_schema *schema; /* NULL: op not registered */
  tn__slice type, name, device;
  struct tn__input_group { /* one call of add_input or add_input_list */
    size_t first, n;
    bool is_list;
  } *groups;
  size_t n_groups, group_room;
  tn_output *inputs;
  size_t n_inputs, input_room;
  tn_operation **controls;
  size_t n_controls, control_room;
  tn__attr *attrs;
  size_t n_attrs, attr_room;
};

/* Returns an empty attribute of this name, replacing one that was set before. NULL: the builder has an error. */
tn__attr *tn__builder_attr(tn_operation_builder *b, const char *name);
/* Releases the tensor references that a builder's attribute holds. */
void tn__builder_drop_tensors(tn__attr *a);

#endif
