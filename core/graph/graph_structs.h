/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of graphs, operations, attributes and schemas: for core/graph and core/formats only. */
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

/* Memory that reading calls made while the graph was already public: it goes with the graph. */
typedef struct tn__owned {
  struct tn__owned *next;
  void (*free)(struct tn__owned *self);
} tn__owned;

/* A tensor attribute: built with the tensor at hand, or bytes of a file that are read when somebody asks. */
typedef struct tn__lazy_tensor {
  _Atomic(tn_tensor *) tensor;
  tn__slice proto;
  tn_buffer *holder; /* of the bytes; borrowed, the graph holds it */
} tn__lazy_tensor;

struct tn__decoded; /* below */

/* Attributes that a function carries as a value: the message with them, which is read when somebody asks. */
typedef struct tn__func_attrs {
  _Atomic(struct tn__decoded_func *) value;
  tn__slice proto; /* NameAttrList */
  tn_buffer *holder;
  size_t n;
} tn__func_attrs;

typedef struct tn__func {
  tn__slice name;        /* a NUL follows */
  tn__func_attrs *attrs; /* NULL: none */
} tn__func;

typedef struct tn__functions tn__functions;
struct tn__function_body; /* functions.h */

typedef struct tn__attr {
  const char *name;
  uint32_t name_size;
  uint8_t kind;    /* TN_ATTR_..., also TN_ATTR_LIST alone: an empty list of no known kind */
  uint8_t lazy;    /* v.decoded is to be filled in from `proto` first */
  uint16_t place;  /* in its file, where attributes were sorted */
  union {
    int64_t i;
    float f;
    tn_bool b;
    tn_dtype type;
    tn__slice text; /* string, placeholder; a NUL follows */
    tn__func func;
    tn__shape shape;
    tn__lazy_tensor *tensor;
    struct {
      const void *items; /* int64_t, float, tn_bool, tn_dtype, tn__slice, tn__shape, tn__lazy_tensor *,
                            * tn__func */
      size_t n;
    } list;
    struct {
      _Atomic(struct tn__decoded *) value;
      tn_buffer *holder;
    } decoded;
  } v;
  tn__slice proto; /* the AttrValue as it stood in the file; no data when it was built */
} tn__attr;

typedef struct tn__decoded {
  tn__owned owned;
  tn__arena arena;
  tn__attr value;
} tn__decoded;

typedef struct tn__decoded_func {
  tn__owned owned;
  tn__arena arena;
  tn__attr *attrs;
} tn__decoded_func;

/* How core/formats reads what core/graph keeps as bytes. Set in a graph before the first such attribute gets in. */
typedef struct tn__codec {
  /* A serialized AttrValue -> kind and value of out, allocated in arena. */
  tn_status (*attr)(tn__slice proto, tn_buffer *holder, tn__arena *arena, tn__attr *out, tn_error *err);
  /* A serialized TensorProto -> tensor. */
  tn_status (*tensor)(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);
  /* The same with elements of its own when they are many; the holder may forget them, and reads them again when
   * asked. */
  tn_status (*take)(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err);
  /* What it is like, without elements, when they are many; else *out is NULL. */
  tn_status (*outline)(tn__slice proto, tn_tensor **out, tn_error *err);
  /* The attributes of a function -> of->n of them in arena. */
  tn_status (*func)(const tn__func_attrs *of, tn__arena *arena, tn__attr *out, tn_error *err);
  /* The body of a function, in an arena of its own; freed by owned.free. */
  tn_status (*body)(const tn_function *f, struct tn__function_body **out, tn_error *err);
} tn__codec;

/* Words for messages: "an int", "a list of types". */
const char *tn__attr_kind_name(int32_t kind);
/* Bytes of an item in v.list.items for a list of this kind. */
size_t tn__attr_item_size(int32_t kind);

/* ---- schemas ---- */

typedef struct tn__attr_spec {
  tn__attr value; /* name and kind; the default when has_default */
  bool has_default, has_minimum;
  int64_t minimum;          /* of an int, or of the length of a list */
  uint64_t types;           /* bit d: dtype d is allowed */
  const tn__slice *strings; /* those that are allowed; NULL = any */
  uint32_t n_strings;
} tn__attr_spec;

typedef struct tn__arg_spec {
  const char *name;
  uint32_t name_size;
  bool is_ref;
  uint8_t dtype;       /* TN_DTYPE_INVALID: an attribute says it */
  int32_t type_attr;   /* indexes of attributes, -1 = none */
  int32_t number_attr;
  int32_t list_attr;
} tn__arg_spec;

typedef struct tn__constraint {
  uint32_t attr;
  uint64_t types;
} tn__constraint;

typedef struct tn__kernel {
  const tn_kernel_def *def;
  struct tn__kernel *next; /* of the same op, not better than this one */
  tn_op_schema *schema;
  tn__constraint *constraints; /* made when the schema is parsed, in its arena or that of the family */
  uint32_t n_constraints;
  uint32_t order; /* of registration, so that the first of equal ranks wins */
} tn__kernel;

typedef struct tn__rewrite {
  const tn_rewrite_def *def;
  struct tn__rewrite *_Atomic next; /* of the same op, in order of registration */
} tn__rewrite;

enum { TN__SCHEMA_RAW = 0, TN__SCHEMA_READY = 1, TN__SCHEMA_BAD = 2 };

struct tn_op_schema {
  const tn_op_def *def;
  const char *name;
  uint32_t name_size;
  uint32_t traits;
  _Atomic int state;   /* texts are parsed when somebody asks for the op; then all below is set and stays */
  tn__arena arena;
  tn__arg_spec *inputs, *outputs;
  tn__attr_spec *attrs;
  uint32_t n_inputs, n_outputs, n_attrs;
  uint32_t shape_operands;
  int32_t constant_attr; /* index, -1 = none */
  bool plain_inputs;     /* no list among them */
  bool plain_outputs;
  tn__kernel *kernels; /* best first; guarded by the lock of the table */
  tn__rewrite *_Atomic rewrites; /* read without a lock: what is linked stays as long as the family */
  bool is_function;    /* of a library: a node of this op is a call of it */
  bool is_own;         /* of Tenon, not of a plugin or the program */
};

/* Parses the texts of schema->def. Sets everything but kernels and state; on failure the arena is empty. */
tn_status tn__schema_parse(tn_op_schema *schema, tn_error *err);
/* "T=float|double,Tidx=int32" */
tn_status tn__constraints_parse(const tn_op_schema *schema, const tn_kernel_def *def, tn__arena *arena,
                                tn__constraint **out, uint32_t *n, tn_error *err);
int32_t tn__schema_attr_index(const tn_op_schema *schema, const char *name, size_t size); /* -1 = none */
const tn_op_schema *tn__schema_find(const char *name, size_t size);                       /* NULL = none */

/* Ops that plugins would bring; core/host has it. Hold no lock.
 * offered  whether a plugin that is not loaded says that it brings this op; runs no code of it
 * load     loads that plugin; when the op is not there afterwards, the log and `explain` say why
 * explain  puts "; plugin ... " after a message that the op is not registered, as snprintf; "" when no plugin has to do
 * with it */
typedef struct tn__op_source_fns {
  bool (*offered)(const char *name, size_t size);
  void (*load)(const char *name, size_t size);
  void (*explain)(const char *name, char *buffer, size_t size);
} tn__op_source_fns;
extern const tn__op_source_fns tn__op_source;

/* Whether the operation's type attribute is among those of a constraint; and its types, "T=float,U=[int32]", for
 * messages. */
bool tn__types_fit(const tn_operation *op, const tn__constraint *c);
void tn__describe_types(const tn_operation *op, tn__text *to);

/* As tn__schema_find, and loads a plugin that brings the op. */
const tn_op_schema *tn__schema_need(const char *name, size_t size);

/* Registers the families of the library if that was not done yet. TN_RESOURCE_EXHAUSTED. */
tn_status tn__ops_ensure(tn_error *err);

static inline uint64_t tn__type_bit(tn_dtype dtype)
{
  return dtype > 0 && dtype < 64 ? UINT64_C(1) << dtype : 0;
}
bool tn__dtype_valid(tn_dtype base); /* a type that is no reference */

/* ---- operations ---- */

/* Elements of a small integer output that are known before any step: TN_UNKNOWN_INT = not known. */
typedef struct tn__ints {
  const int64_t *items;
  int64_t n; /* -1 = nothing is known */
} tn__ints;

typedef struct tn__op_shapes {
  tn__owned owned;
  size_t size;       /* bytes of this block */
  _Atomic uint32_t epoch; /* of the graph, at which this was right */
  tn_bool failed;    /* the shape function refused the inputs; all outputs are unknown */
  tn__ints *ints;    /* n_outputs, NULL when nothing is known; they lie behind */
  tn__shape outputs[]; /* n_outputs; dims lie behind */
} tn__op_shapes;

/* Beyond this number the types of outputs are worked out when asked: a few bytes in a file can claim a million. */
#define TN__STORED_DTYPES 64
#define TN__MAX_OUTPUTS (1 << 20)

struct tn_operation {
  tn_graph *graph;
  const tn_op_schema *schema; /* NULL: not registered */
  const char *name, *type, *device;
  tn_output *inputs;
  tn_operation **controls;
  tn__attr *attrs;        /* as the node had them */
  uint16_t *slots;        /* for each attribute of the schema 1 + its index in attrs, 0 = the default */
  uint8_t *input_dtypes;  /* as the schema wants them; TN_DTYPE_INVALID: not known */
  uint8_t *output_dtypes; /* NULL above TN__STORED_DTYPES */
  _Atomic(tn__op_shapes *) shapes;
  _Atomic(tn__op_shapes *) given; /* by tn_graph_set_shape; NULL: nothing */
  uint64_t hash; /* of the name */
  uint32_t id, name_size;
  uint32_t n_inputs, n_controls, n_outputs, n_attrs;
  uint32_t traits;
  bool edited;     /* an import changed something: only fields that this library does not know are right in proto */
  bool sorted;     /* attributes are in order of their names, of equal ones the last one counts */
  tn__slice proto; /* the NodeDef in its file; no data when it was built */
};

/* The bytes to write an operation as; no data when it has to be encoded. */
static inline tn__slice tn__op_bytes(const tn_operation *op)
{
  return op->edited ? (tn__slice){ NULL, 0 } : op->proto;
}

/* The value of attribute i of the schema: the node's or the default. */
static inline const tn__attr *tn__op_attr(const tn_operation *op, uint32_t i)
{
  return op->slots[i] != 0 ? &op->attrs[op->slots[i] - 1] : &op->schema->attrs[i].value;
}
/* Makes many attributes quick to find: a file may have 65534 of them at one node. Before anything refers to them. */
void tn__op_sort_attrs(tn_operation *op);
/* What is read late of an operation's attributes goes with this graph. */
static inline tn_graph *tn__attr_owner(const tn_operation *op);
const tn__attr *tn__op_attr_named(const tn_operation *op, const char *name, size_t size); /* NULL = none */
/* The same with words. The value may still wait in the bytes: _resolve then exchanges it for what they say. */
tn_status tn__op_attr_find(const tn_operation *op, const char *name, const tn__attr **out, tn_error *err);
tn_status tn__op_attr_resolve(const tn_operation *op, const tn__attr **attr, tn_error *err);
size_t tn__arg_count(const tn_operation *op, const tn__arg_spec *arg);
tn_dtype tn__arg_dtype(const tn_operation *op, const tn__arg_spec *arg, size_t i);
/* The attributes that a function carries as a value; op is whose attribute it is in. */
tn_status tn__func_attrs_get(const tn_operation *op, tn__func_attrs *of, tn__decoded_func **out, tn_error *err);

/* Decodes a tensor attribute at its first use. Borrowed from the graph. */
tn_status tn__attr_get_tensor(const tn_operation *op, tn__lazy_tensor *lazy, tn_tensor **out, tn_error *err);

/* Steps of making an operation, for the importer and the builder. Messages begin with what is wrong; the caller puts
 * file and node in front.
 *   attrs    op->schema, attrs and n_attrs are set: sets slots, checks kinds and what is missing.
 *   outputs  sets n_outputs and output_dtypes.
 *   inputs   op->inputs and n_inputs are set: sets input_dtypes, checks number and types. */
tn_status tn__op_check_attrs(tn_operation *op, tn__arena *arena, tn_error *err);
tn_status tn__op_set_outputs(tn_operation *op, tn__arena *arena, tn_error *err);
tn_status tn__op_check_inputs(tn_operation *op, tn__arena *arena, tn_error *err);
/* One attribute against its spec; an empty list takes on the kind that is wanted. */
tn_status tn__attr_check(const tn__attr_spec *spec, tn__attr *attr, tn_error *err);

/* The edge that closes a loop. */
static inline bool tn__is_back_edge(const tn_operation *from, const tn_operation *to)
{
  return (from->traits & TN_TRAIT_NEXT_ITERATION) != 0 && (to->traits & TN_TRAIT_MERGE) != 0;
}

bool tn__name_is_valid(const char *name, size_t size);     /* S-GRA-07 */
bool tn__op_type_is_valid(const char *name, size_t size);  /* letters, digits, _ . > - : */
bool tn__device_is_valid(const char *device, size_t size); /* S-CFG-06 */
/* "node", "node:3", "^node"; false when it is malformed. */
typedef struct tn__edge_name {
  tn__slice node;
  int32_t index;
  bool is_control;
} tn__edge_name;
bool tn__edge_name_parse(const char *text, size_t size, tn__edge_name *out);

/* ---- graphs ---- */

/* Names to ids. Grows by a new table; old ones stay until the graph goes, because readers take no lock. A slot is the
 * upper half of the hash and 1 + id. Entries leave only in the reverse order of coming (a failed import). */
typedef struct tn__index {
  struct tn__index *older;
  size_t mask;
  _Atomic uint64_t slots[];
} tn__index;

/* What an import leaves in its graph: the file's bytes, and those of its parts that are no nodes (library, ...). */
typedef struct tn__import_record {
  struct tn__import_record *next;
  tn_buffer *file;
  tn__slice *rest; /* whole fields, with their tags */
  size_t n_rest;
} tn__import_record;

#define TN__FIRST_SEGMENT 8 /* bodies of functions are small, and there may be many */
#define TN__N_SEGMENTS 30

struct tn_graph {
  _Atomic uint32_t refs;
  /* Building and importing write, compilation reads. Everything that an operation holds is set before it is published
   * by `count` and never changes, so reading calls take no lock; what they find out late (shapes, tensors) they publish
   * by compare-and-swap. */
  tn__rwlock lock;
  tn__arena arena;      /* guarded by lock */
  size_t staged;        /* operations that are made; = count but within a writer. guarded by lock */
  _Atomic size_t count; /* operations that are published */
  tn_operation *segments[TN__N_SEGMENTS]; /* set before the count that needs them is published */
  _Atomic(tn__index *) index;
  tn__import_record *imports; /* guarded by lock */
  _Atomic(tn__owned *) owned;
  _Atomic(const tn__codec *) codec;
  _Atomic(const tn__functions *) functions; /* the library, NULL when empty; in the arena (functions.h) */
  _Atomic uint32_t shape_epoch; /* shapes of another epoch count as not worked out */
  _Atomic(struct tn__consumers *) consumers; /* made when somebody asks; goes with `owned` */
  tn_graph *bodies; /* what operations of functions belong to (functions.h); made with the first. guarded by lock */
  tn_graph *lender; /* of a body that was made for a call: the attributes of its operations lie in this graph */
  struct tn__call_frame *frame; /* of such a body */
  _Atomic int64_t call_budget;   /* nodes of bodies that may still be made for shapes in this epoch */
  _Atomic uint32_t call_epoch;   /* 1 + the epoch that the budget is for */
  _Atomic(struct tn__plan_data *) plan_data; /* the same */
  tn_graph *caller;  /* of a body that is run: the graph of the call, a reference */
  tn_graph
      *library; /* of a body that is run: the graph that no call made, whose functions it calls; kept by `caller` */
  uint32_t path_size; /* of such a body: bytes in front of each operation's own name */
  _Atomic bool names_devices; /* some operation has a device of its own */
};

static inline tn_graph *tn__attr_owner(const tn_operation *op)
{
  return op->graph->lender != NULL ? op->graph->lender : op->graph;
}

tn_operation *tn__graph_at(const tn_graph *graph, size_t i);
/* Room for n more operations and their names. The writer's lock is held, as for all below. */
tn_status tn__graph_reserve(tn_graph *graph, size_t n, tn_error *err);
/* The next operation, zeroed, with graph and id set. There is room. */
tn_operation *tn__graph_stage(tn_graph *graph);
/* Puts the name (name, name_size, hash of op are set) into the index; false when it is there. */
bool tn__graph_index_add(tn_graph *graph, tn_operation *op);
/* Also finds operations that are staged. */
tn_operation *tn__graph_find_staged(const tn_graph *graph, const char *name, size_t size);
/* Shows the staged operations to everybody. */
void tn__graph_publish(tn_graph *graph);
/* Gives up the operations that were staged since there were n_staged, n_indexed of them (the first ones) with names. */
void tn__graph_unstage(tn_graph *graph, size_t n_staged, size_t n_indexed);
/* Memory that goes with the graph. Any thread. */
void tn__graph_own(tn_graph *graph, tn__owned *owned);

/* Works out the shapes of an operation and of all that it needs; *out is NULL when all its outputs are unknown. A shape
 * function that refuses its inputs makes them unknown. TN_RESOURCE_EXHAUSTED. */
tn_status tn__op_shapes_get(const tn_operation *op, const tn__op_shapes **out, tn_error *err);

/* What is known of one output: its shape, and elements of small integers (n -1: they are not), which may lie in arena;
 * all else is borrowed from the graph. */
tn_status tn__output_known(tn_output output, tn__arena *arena, tn__shape *shape, tn__ints *ints, tn_error *err);

/* One block of n shapes, and of elements where ints is not NULL. NULL: no memory. */
tn__op_shapes *tn__shapes_pack(const tn__shape *outputs, const tn__ints *ints, size_t n);
/* What both know, with dims in `dims`; false when they contradict each other. */
bool tn__shapes_merge(const tn__shape *a, const tn__shape *b, int64_t dims[TN_MAX_RANK], tn__shape *out);

/* ---- building ---- */

struct tn_operation_builder {
  tn_graph *graph;
  tn__arena arena;
  tn_error error; /* the first one */
  uint32_t flags;
  const tn_op_schema *schema;
  tn__slice type, name, device;
  struct tn__input_group {
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

/* A place for the attribute's value (the old one's when it was set before), with name set; NULL: an error is kept. */
tn__attr *tn__builder_attr(tn_operation_builder *b, const char *name);
/* Gives up the references that a builder's attribute holds. */
void tn__builder_drop_tensors(tn__attr *a);

#endif
