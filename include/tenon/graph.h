/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: operations, attributes, building and importing.
 *
 * A graph may grow while sessions run it; operations are never removed and their pointers stay valid as long as the graph.
 * Every function here may be called from any thread; calls that add operations exclude each other and the compilation of
 * signatures, reading calls run beside each other. A builder belongs to one thread at a time. Since 0.1 */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

#ifndef TN_PLUGIN
/* A new, empty graph with one holder. TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_graph_create(tn_graph **out, tn_error *err);
TN_API tn_graph *tn_graph_ref(tn_graph *graph);
TN_API void tn_graph_unref(tn_graph *graph); /* NULL allowed; operations and their tensors go with the last holder */

/* ---- import ---- */

enum {
  TN_IMPORT_REFUSE_UNKNOWN_OPS = 1, /* an operation that is not registered is NOT_FOUND instead of being kept (S-GRA-06) */
  TN_IMPORT_TEXT = 2, /* it is in protobuf's text form; also known by a file's ending .pbtxt, or by how it begins */
  TN_IMPORT_UNIQUIFY_NAMES = 4,   /* a node whose name is taken becomes "name_1", or the next number that is free */
  TN_IMPORT_UNIQUIFY_PREFIX = 8,  /* a prefix that is taken becomes "prefix_1", ... */
  TN_IMPORT_SKIP_MAPPED_NODES = 16, /* nodes are left out of which the input map has every output */
  /* tn_graph_import_file: the file's bytes all stay in memory. Else those of large constants go when a session has made
   * what it needs of them; a file above 1 MiB stays open, and what is needed again is read from it then: TN_DATA_LOSS when it
   * was written to in between (removing it, or renaming another file over it, is no harm). Since 0.1 */
  TN_IMPORT_KEEP_BYTES = 32
};

/* What stands for an input of the file: "node:1", "node" (its output 0) or "^node" (its control edge) becomes an output of
 * an operation that is there already; of a control edge only target.op counts. */
struct tn_import_mapping {
  const char *source;
  tn_output target;
};

/* All but the first four fields may be left out (0, by struct_size). They are read during the call only. */
struct tn_import_options {
  size_t struct_size;
  uint32_t flags;         /* TN_IMPORT_... */
  uint32_t reserved;
  const char *file;       /* named in messages; NULL = "GraphDef" */

  /* "net": node "x" becomes "net/x"; a slash at its end makes no difference. Inputs then name nodes of the file only.
   * A name counts as taken when an operation has it or when one begins with it and a slash. */
  const char *prefix;
  const char *default_device; /* of nodes that ask for none */
  const tn_import_mapping *input_map; /* inputs of the file in its own names, each once at most */
  size_t n_input_map;
  /* Operations that are to run before what is imported: each node gets them as control inputs that does not wait for
   * another new one anyway. */
  tn_operation *const *control_inputs;
  size_t n_control_inputs;
  const char *const *return_outputs; /* "node:1" in the names of the file, for tn_import_results_output */
  size_t n_return_outputs;
  const char *const *return_operations; /* "node" */
  size_t n_return_operations;
  tn_import_results **results; /* where to put what came of it, NULL on failure; not wanted: NULL */
  uint64_t budget; /* most bytes of memory beside those of the file; 0 = 64 times its size and 16 MiB */
};

/* Adds the nodes of a serialized GraphDef, in any order, to the graph; inputs may name operations that are there already.
 * All or nothing: a failed import leaves the graph as it was. The bytes are copied where they are needed. Sessions that run
 * the graph go on beside it.
 * options  may be NULL.
 * Returns TN_INVALID_ARGUMENT with file and node or byte offset: malformed bytes, unknown input, duplicate or invalid
 *          name, cycle, attribute of a wrong kind or missing, wrong input types; an option that cannot be, named; a return
 *          output or operation that is not in the file. TN_RESOURCE_EXHAUSTED: no memory, or more than the budget.
 *          Since 0.1 */
TN_API tn_status tn_graph_import(tn_graph *graph, const void *bytes, size_t size, const tn_import_options *options,
                                 tn_error *err);

/* The same from a file, which is read once, and kept in memory as far as constants in it are needed (TN_IMPORT_KEEP_BYTES).
 * Since 0.1 */
TN_API tn_status tn_graph_import_file(tn_graph *graph, const char *path, const tn_import_options *options, tn_error *err);

/* What came of an import. Operations are borrowed from the graph, texts from the results, which need not outlive it. Any
 * thread; every function takes NULL. Since 0.1 */
TN_API void tn_import_results_free(tn_import_results *results);
/* Return output (operation) i of the options; {NULL,0} (NULL) past the end. A mapped output is what it is mapped to. */
TN_API tn_output tn_import_results_output(const tn_import_results *results, size_t i);
TN_API tn_operation *tn_import_results_operation(const tn_import_results *results, size_t i);
/* The new operations: tn_graph_operation(graph, *first) and those behind it, as many as are returned. */
TN_API size_t tn_import_results_new_operations(const tn_import_results *results, size_t *first);
TN_API const char *tn_import_results_prefix(const tn_import_results *results); /* that was used: "net_1", "" for none */
/* Sources of the input map that no input of the file named; *missing (may be NULL): the file has no such output or node at
 * all, so that the name is probably wrong. NULL past the end. */
TN_API size_t tn_import_results_n_unused(const tn_import_results *results);
TN_API const char *tn_import_results_unused(const tn_import_results *results, size_t i, tn_bool *missing);

/* ---- export ---- */

enum { TN_EXPORT_TEXT = 1 /* protobuf's text form, which ends in a line feed or is empty, and a NUL behind it */ };

/* The graph as a GraphDef: operations in order of addition; those that were imported, and what else their files had
 * (versions, function library), bit for bit. Importing it gives an equal graph, and exporting that one the same bytes.
 * The text form cannot say fields that TensorFlow 2.21 does not know, nor the bits of a NaN; it leaves them out.
 * bytes  gets memory for tn_free.
 * Returns TN_INVALID_ARGUMENT: more than 2 GiB, or a malformed part that only the text form looks at; TN_UNIMPLEMENTED: a
 *         constant of resources or variants; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_graph_export(tn_graph *graph, uint32_t flags, void **bytes, size_t *size, tn_error *err);

/* The same into a file, which is written beside its place and renamed; a path that ends in .pbtxt means text. Since 0.1 */
TN_API tn_status tn_graph_export_file(tn_graph *graph, const char *path, uint32_t flags, tn_error *err);
#endif

/* ---- reading a graph ---- */

/* Number of operations; a snapshot, it may grow. Since 0.1 */
TN_API size_t tn_graph_n_operations(const tn_graph *graph);

/* Operation i in order of addition, NULL past the end. Since 0.1 */
TN_API tn_operation *tn_graph_operation(const tn_graph *graph, size_t i);

/* Operation of this name, NULL when there is none. O(1). Since 0.1 */
TN_API tn_operation *tn_graph_find(const tn_graph *graph, const char *name);

TN_API const char *tn_operation_name(const tn_operation *op);
TN_API const char *tn_operation_type(const tn_operation *op);   /* name of its op, as "MatMul" */
TN_API const char *tn_operation_device(const tn_operation *op); /* "" when none was asked for */

/* The registered schema, or the signature of the function that it calls; NULL for an op that is not registered. Since 0.1 */
TN_API const tn_op_schema *tn_operation_schema(const tn_operation *op);

TN_API size_t tn_operation_n_inputs(const tn_operation *op); /* data inputs, lists counted flat */
TN_API tn_output tn_operation_input(const tn_operation *op, size_t i); /* {NULL,0} past the end */
TN_API size_t tn_operation_n_control_inputs(const tn_operation *op);
TN_API tn_operation *tn_operation_control_input(const tn_operation *op, size_t i);
TN_API size_t tn_operation_n_outputs(const tn_operation *op); /* 0 for an op that is not registered */
TN_API tn_dtype tn_operation_output_dtype(const tn_operation *op, size_t i);
TN_API tn_dtype tn_operation_input_dtype(const tn_operation *op, size_t i);

/* First and number of the flat inputs (outputs) that belong to the named argument of the schema, as list inputs do.
 * TN_NOT_FOUND. Since 0.1 */
TN_API tn_status tn_operation_input_range(const tn_operation *op, const char *arg, size_t *first, size_t *n, tn_error *err);
TN_API tn_status tn_operation_output_range(const tn_operation *op, const char *arg, size_t *first, size_t *n, tn_error *err);

/* Who reads an output: operation and number of its flat input. Those of control edges have input -1. */
struct tn_consumer {
  tn_operation *op;
  int32_t input;
};

/* Consumers of an output, and the operations that wait for an operation by a control edge, in order of addition: *n is
 * how many there are, a snapshot for the graph may grow; the first `room` of them are written to `out` (NULL when room is
 * 0). The first call notes all edges of the graph (about 16 bytes an edge), later ones only those that were added since.
 * TN_INVALID_ARGUMENT: no operation; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_output_consumers(tn_output output, tn_consumer *out, size_t room, size_t *n, tn_error *err);
TN_API tn_status tn_operation_control_consumers(const tn_operation *op, tn_consumer *out, size_t room, size_t *n,
                                                tn_error *err);

/* Inferred shape of an output: *rank is -1 when unknown, dims[i] is -1 when unknown; dims has room for `room` numbers
 * and may be NULL; more dimensions than room is TN_OUT_OF_RANGE with *rank set. Since 0.1 */
TN_API tn_status tn_output_shape(tn_output output, int64_t *dims, int32_t room, int32_t *rank, tn_error *err);

/* Attributes. Each getter gives the node's value or the schema's default; TN_NOT_FOUND when there is neither,
 * TN_INVALID_ARGUMENT when it is of another kind. What they give is borrowed from the operation. */
enum {
  TN_ATTR_NONE = 0, TN_ATTR_STRING = 1, TN_ATTR_INT = 2, TN_ATTR_FLOAT = 3, TN_ATTR_BOOL = 4, TN_ATTR_TYPE = 5,
  TN_ATTR_SHAPE = 6, TN_ATTR_TENSOR = 7, TN_ATTR_FUNC = 8, TN_ATTR_PLACEHOLDER = 9,
  TN_ATTR_LIST = 16 /* added to a kind: a list of it */
};
TN_API size_t tn_operation_n_attrs(const tn_operation *op); /* those that the node itself carries */
TN_API const char *tn_operation_attr_name(const tn_operation *op, size_t i);
TN_API int32_t tn_operation_attr_kind(const tn_operation *op, const char *name); /* TN_ATTR_NONE when there is none */
TN_API tn_status tn_operation_attr_int(const tn_operation *op, const char *name, int64_t *out, tn_error *err);
TN_API tn_status tn_operation_attr_float(const tn_operation *op, const char *name, float *out, tn_error *err);
TN_API tn_status tn_operation_attr_bool(const tn_operation *op, const char *name, tn_bool *out, tn_error *err);
TN_API tn_status tn_operation_attr_type(const tn_operation *op, const char *name, tn_dtype *out, tn_error *err);
TN_API tn_status tn_operation_attr_string(const tn_operation *op, const char *name, const char **text, size_t *length,
                                          tn_error *err);
TN_API tn_status tn_operation_attr_shape(const tn_operation *op, const char *name, const int64_t **dims, int32_t *rank,
                                         tn_error *err); /* rank -1 = unknown rank, dims -1 = unknown */
TN_API tn_status tn_operation_attr_tensor(const tn_operation *op, const char *name, tn_tensor **tensor, tn_error *err);
/* Its dtype and shape alone, which leaves the elements of a large tensor in the file. dims has room for TN_MAX_RANK; each but
 * op and name may be NULL. Since 0.1 */
TN_API tn_status tn_operation_attr_tensor_shape(const tn_operation *op, const char *name, tn_dtype *dtype, int64_t *dims,
                                                int32_t *rank, tn_error *err);
TN_API tn_status tn_operation_attr_func(const tn_operation *op, const char *name, const char **function, tn_error *err);
TN_API tn_status tn_operation_attr_ints(const tn_operation *op, const char *name, const int64_t **values, size_t *n,
                                        tn_error *err);
TN_API tn_status tn_operation_attr_floats(const tn_operation *op, const char *name, const float **values, size_t *n,
                                          tn_error *err);
TN_API tn_status tn_operation_attr_bools(const tn_operation *op, const char *name, const tn_bool **values, size_t *n,
                                         tn_error *err);
TN_API tn_status tn_operation_attr_types(const tn_operation *op, const char *name, const tn_dtype **values, size_t *n,
                                         tn_error *err);
/* Element i of a list of strings, shapes, tensors or functions; *n, when asked for, is the list's length and i may then
 * be past its end (the outputs are NULL or 0). */
TN_API tn_status tn_operation_attr_string_at(const tn_operation *op, const char *name, size_t i, const char **text,
                                             size_t *length, size_t *n, tn_error *err);
TN_API tn_status tn_operation_attr_shape_at(const tn_operation *op, const char *name, size_t i, const int64_t **dims,
                                            int32_t *rank, size_t *n, tn_error *err);
TN_API tn_status tn_operation_attr_tensor_at(const tn_operation *op, const char *name, size_t i, tn_tensor **tensor,
                                             size_t *n, tn_error *err);
TN_API tn_status tn_operation_attr_func_at(const tn_operation *op, const char *name, size_t i, const char **function,
                                           size_t *n, tn_error *err);

/* A value of any kind: an attribute's, or an item of its list. Only the fields of its kind are set, the others are 0. */
struct tn_attr_value {
  size_t struct_size;
  int32_t kind;       /* of the attribute, TN_ATTR_... */
  int32_t rank;       /* of a shape: -1 = unknown */
  size_t n;           /* items of a list; 1 for what is no list */
  int64_t i;
  float f;
  tn_dtype type;
  tn_bool b;
  const char *text;   /* string, name of a function, placeholder; a NUL follows */
  size_t length;
  const int64_t *dims; /* -1 = unknown; NULL for rank 0 or -1 */
  tn_tensor *tensor;
  size_t n_attrs;     /* that a function carries: f[T=float, n=2] has two, for tn_attr_value_attr */
  const void *host[2]; /* the library's */
};
#define TN_ATTR_VALUE_SIZE TN_SIZE_TO(tn_attr_value, host)

/* The value of an attribute, the schema's default where the node has none, or item i of a list (0 for what is no list).
 * Past the end of a list only kind and n are set. What it points to is borrowed from the operation.
 * out->struct_size is set by the caller.
 * Returns TN_NOT_FOUND: no such attribute; TN_INVALID_ARGUMENT: no operation or name, a struct that is too small, bytes of
 *         a tensor that are no tensor; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_operation_attr_value(const tn_operation *op, const char *name, size_t i, tn_attr_value *out,
                                         tn_error *err);

/* Attribute k of the function that `func` is a value of, which an operation gave: its name and its value, or item i of its
 * list. They may be functions with attributes themselves. *out may be *func. Borrowed from the operation, which *func must
 * be asked of. name may be NULL.
 * Returns TN_INVALID_ARGUMENT: no function, a struct that is too small; TN_OUT_OF_RANGE; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_attr_value_attr(const tn_attr_value *func, size_t k, size_t i, const char **name, tn_attr_value *out,
                                    tn_error *err);

/* How large an attribute is, so that room for it can be made: *n is the number of items of a list, -1 for what is none;
 * *total the bytes of a string, of a function's name or of all in a list, the dimensions of a shape (-1 = unknown rank) or
 * of all known in a list, and -1 for all other kinds. Both may be NULL. TN_NOT_FOUND, TN_INVALID_ARGUMENT,
 * TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_operation_attr_size(const tn_operation *op, const char *name, int64_t *n, int64_t *total,
                                        tn_error *err);

/* An attribute as a serialized AttrValue, and an operation as a serialized NodeDef: bit for bit as they stood in the file
 * that they came from, or encoded. An attribute that the node does not carry is the schema's default.
 * bytes  gets memory for tn_free.
 * Returns TN_NOT_FOUND: no such attribute; TN_INVALID_ARGUMENT: something is NULL; TN_UNIMPLEMENTED: a tensor of resources
 *         or variants; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_operation_attr_proto(const tn_operation *op, const char *name, void **bytes, size_t *size,
                                         tn_error *err);
TN_API tn_status tn_operation_node_def(const tn_operation *op, void **bytes, size_t *size, tn_error *err);

#ifndef TN_PLUGIN
/* ---- building ---- */

enum { TN_BUILD_KEEP_UNKNOWN_OP = 1 /* keep an op that is not registered, with opaque outputs, instead of NOT_FOUND */ };

/* Begins an operation. Errors of the calls below are kept and returned by tn_operation_finish, the first one wins.
 * Returns NULL only when there is no memory. A builder is freed by _finish or _abandon. Since 0.1 */
TN_API tn_operation_builder *tn_operation_begin(tn_graph *graph, const char *op, const char *name, uint32_t flags);
TN_API void tn_operation_set_device(tn_operation_builder *b, const char *device);
TN_API void tn_operation_add_input(tn_operation_builder *b, tn_output input);
TN_API void tn_operation_add_input_list(tn_operation_builder *b, const tn_output *inputs, size_t n);
TN_API void tn_operation_add_control_input(tn_operation_builder *b, tn_operation *input);
TN_API void tn_operation_set_int(tn_operation_builder *b, const char *attr, int64_t value);
TN_API void tn_operation_set_float(tn_operation_builder *b, const char *attr, float value);
TN_API void tn_operation_set_bool(tn_operation_builder *b, const char *attr, tn_bool value);
TN_API void tn_operation_set_type(tn_operation_builder *b, const char *attr, tn_dtype value);
TN_API void tn_operation_set_string(tn_operation_builder *b, const char *attr, const void *text, size_t length);
TN_API void tn_operation_set_shape(tn_operation_builder *b, const char *attr, const int64_t *dims, int32_t rank);
TN_API void tn_operation_set_tensor(tn_operation_builder *b, const char *attr, tn_tensor *tensor); /* copied unless its only holder gives it away: the builder takes a reference and the tensor must not change afterwards */
TN_API void tn_operation_set_func(tn_operation_builder *b, const char *attr, const char *function);
TN_API void tn_operation_set_ints(tn_operation_builder *b, const char *attr, const int64_t *values, size_t n);
TN_API void tn_operation_set_floats(tn_operation_builder *b, const char *attr, const float *values, size_t n);
TN_API void tn_operation_set_bools(tn_operation_builder *b, const char *attr, const tn_bool *values, size_t n);
TN_API void tn_operation_set_types(tn_operation_builder *b, const char *attr, const tn_dtype *values, size_t n);
TN_API void tn_operation_set_strings(tn_operation_builder *b, const char *attr, const void *const *texts,
                                     const size_t *lengths, size_t n);
TN_API void tn_operation_set_shapes(tn_operation_builder *b, const char *attr, const int64_t *const *dims,
                                    const int32_t *ranks, size_t n);
TN_API void tn_operation_set_tensors(tn_operation_builder *b, const char *attr, tn_tensor *const *tensors, size_t n);
TN_API void tn_operation_set_funcs(tn_operation_builder *b, const char *attr, const char *const *functions, size_t n);
/* A serialized AttrValue, kept bit for bit. */
TN_API void tn_operation_set_proto(tn_operation_builder *b, const char *attr, const void *bytes, size_t size);

/* Adds the operation and frees the builder. Attributes that inputs decide (T, N, Tlist) may be left out; others without
 * default must be set. Attributes that the schema does not know are kept.
 * Returns the first deferred error, or TN_INVALID_ARGUMENT (name taken or invalid, types do not fit, attribute missing or
 *         not allowed, shapes impossible), TN_NOT_FOUND (op not registered), TN_RESOURCE_EXHAUSTED. *out (may be NULL) is
 *         borrowed from the graph. Since 0.1 */
TN_API tn_status tn_operation_finish(tn_operation_builder *b, tn_operation **out, tn_error *err);
TN_API void tn_operation_abandon(tn_operation_builder *b);

/* Says what the maker of a graph knows of an output's shape: merged with what is inferred (what one of them does not know
 * is taken from the other), and used for all that is inferred from it. dims and rank as in tn_output_shape. Shapes that
 * were asked for before stay valid. A step does not check it.
 * Returns TN_INVALID_ARGUMENT naming both shapes when they contradict each other, TN_OUT_OF_RANGE: no such output,
 *         TN_FAILED_PRECONDITION: an op that is not registered; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_graph_set_shape(tn_output output, const int64_t *dims, int32_t rank, tn_error *err);
#endif

#ifndef TN_PLUGIN
/* ---- functions ---- */

/* The function library that imports brought. Its structure is checked: names, inputs, what outputs and control outputs name,
 * attributes; ops need not be registered. A function of the same name is the same bytes, and none has the name of a
 * registered op, or the import is TN_INVALID_ARGUMENT. A node whose op is a function is checked as one of any other op: its
 * schema is the function's signature. What these give is borrowed from the graph; NULL, TN_DTYPE_INVALID or 0 past the
 * end. Since 0.1 */
typedef struct tn_function tn_function;
TN_API size_t tn_graph_n_functions(const tn_graph *graph); /* a snapshot, it may grow */
TN_API const tn_function *tn_graph_function(const tn_graph *graph, size_t i);
TN_API const tn_function *tn_graph_find_function(const tn_graph *graph, const char *name);
TN_API const char *tn_graph_gradient(const tn_graph *graph, const char *function); /* its name; NULL = none */
TN_API const char *tn_function_name(const tn_function *f);

/* The signature: arguments with their types and the attributes that say them, kinds, defaults and minima of attributes, for
 * all tn_op_schema_... calls. TN_TRAIT_FUNCTION_CALL and TN_TRAIT_DYNAMIC are set, TN_TRAIT_STATEFUL where the signature says
 * so. An attribute that only an argument names is listed, too. A default that is a function goes without the attributes it
 * may carry. Since 0.1 */
TN_API const tn_op_schema *tn_function_schema(const tn_function *f);
TN_API size_t tn_function_n_inputs(const tn_function *f);
TN_API const char *tn_function_input_name(const tn_function *f, size_t i);
TN_API tn_dtype tn_function_input_dtype(const tn_function *f, size_t i); /* TN_DTYPE_INVALID: an attribute says it */
TN_API size_t tn_function_n_outputs(const tn_function *f);
TN_API const char *tn_function_output_name(const tn_function *f, size_t i);
TN_API tn_dtype tn_function_output_dtype(const tn_function *f, size_t i);
TN_API const char *tn_function_output_source(const tn_function *f, size_t i); /* "x", "node:out:0"; NULL: nothing gives it */
TN_API size_t tn_function_n_control_outputs(const tn_function *f);
TN_API const char *tn_function_control_output_name(const tn_function *f, size_t i);
TN_API const char *tn_function_control_output_node(const tn_function *f, size_t i);
TN_API size_t tn_function_n_attrs(const tn_function *f); /* of the signature */
TN_API const char *tn_function_attr_name(const tn_function *f, size_t i);
TN_API size_t tn_function_n_nodes(const tn_function *f);
TN_API const char *tn_function_node_name(const tn_function *f, size_t i);
TN_API const char *tn_function_node_type(const tn_function *f, size_t i);
TN_API size_t tn_function_node_n_inputs(const tn_function *f, size_t i); /* with control inputs */
TN_API const char *tn_function_node_input(const tn_function *f, size_t i, size_t k); /* "x", "node:out:0", "^node" */

/* A node of the body with its attributes: for tn_operation_name, _type, _device, _schema, _node_def and all
 * tn_operation_attr_... calls. What the attributes of a call decide is of kind TN_ATTR_PLACEHOLDER. It belongs to no graph
 * that can run, and as an operation it has neither inputs nor outputs: tn_function_node_input names its inputs.
 * Returns TN_OUT_OF_RANGE; TN_INVALID_ARGUMENT: a malformed attribute; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_function_node(const tn_function *f, size_t i, const tn_operation **out, tn_error *err);
/* The same with the attributes of the function itself ("_noinline"), and with those of argument i ("_user_specified_name");
 * *resource (may be NULL) is its resource_arg_unique_id, -1 = none. Since 0.1 */
TN_API tn_status tn_function_self(const tn_function *f, const tn_operation **out, tn_error *err);
TN_API tn_status tn_function_input(const tn_function *f, size_t i, const tn_operation **out, int64_t *resource,
                                   tn_error *err);
#endif

/* ---- op schemas ---- */

/* Number of registered ops, and the i-th in order of names; NULL past the end and without memory. Since 0.1 */
TN_API size_t tn_n_op_schemas(void);
TN_API const tn_op_schema *tn_op_schema_at(size_t i);
/* NULL when not registered; loads no plugin, as importing and building do for ops that one brings. */
TN_API const tn_op_schema *tn_op_schema_find(const char *op);
TN_API const char *tn_op_schema_name(const tn_op_schema *schema);
TN_API uint32_t tn_op_schema_traits(const tn_op_schema *schema); /* TN_TRAIT_..., op.h */

/* Writes the schema as text, "AddV2(x: T, y: T) -> (z: T); T: {...}", as snprintf does. Since 0.1 */
TN_API size_t tn_op_schema_format(const tn_op_schema *schema, char *buffer, size_t size);

/* An input or output of a schema. Attributes are numbers for tn_op_schema_attr, -1 = none. */
struct tn_op_arg {
  size_t struct_size;
  const char *name;
  tn_dtype dtype;      /* TN_DTYPE_INVALID: an attribute says it */
  int32_t type_attr;   /* its type */
  int32_t number_attr; /* it is a list of so many */
  int32_t list_attr;   /* it is a list of these types */
  tn_bool is_ref;
};
#define TN_OP_ARG_SIZE TN_SIZE_TO(tn_op_arg, is_ref)

/* An attribute of a schema. Its default is in the field of its kind; those of lists, shapes and functions are asked for by
 * tn_op_schema_attr_default. */
struct tn_op_attr {
  size_t struct_size;
  const char *name;
  int32_t kind; /* TN_ATTR_... */
  tn_bool has_default;
  tn_bool has_minimum;
  int64_t minimum;  /* of an int, or of the length of a list */
  uint64_t types;   /* bit d: dtype d is allowed, for kinds with types */
  size_t n_strings; /* allowed strings, 0 = any */
  int64_t default_int;
  float default_float;
  tn_bool default_bool;
  tn_dtype default_type;
  const char *default_string;
};
#define TN_OP_ATTR_SIZE TN_SIZE_TO(tn_op_attr, default_string)

/* Parts of a schema; out->struct_size is set by the caller. TN_OUT_OF_RANGE past the end, TN_INVALID_ARGUMENT for a struct
 * that is too small. What they give lives as long as the schema. Since 0.1 */
TN_API size_t tn_op_schema_n_inputs(const tn_op_schema *schema);
TN_API size_t tn_op_schema_n_outputs(const tn_op_schema *schema);
TN_API size_t tn_op_schema_n_attrs(const tn_op_schema *schema);
TN_API tn_status tn_op_schema_input(const tn_op_schema *schema, size_t i, tn_op_arg *out, tn_error *err);
TN_API tn_status tn_op_schema_output(const tn_op_schema *schema, size_t i, tn_op_arg *out, tn_error *err);
TN_API tn_status tn_op_schema_attr(const tn_op_schema *schema, size_t i, tn_op_attr *out, tn_error *err);
/* The default of attribute i, of any kind: it or item k of its list, as in tn_operation_attr_value; it lives as long as the
 * schema. Returns TN_NOT_FOUND: it has none; TN_OUT_OF_RANGE: no such attribute; TN_INVALID_ARGUMENT. Since 0.1 */
TN_API tn_status tn_op_schema_attr_default(const tn_op_schema *schema, size_t i, size_t k, tn_attr_value *out,
                                           tn_error *err);
/* The schema as a serialized OpDef: arguments, attributes with defaults, minima and allowed values, and whether the op is
 * stateful or commutative. bytes  gets memory for tn_free. TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_op_schema_op_def(const tn_op_schema *schema, void **bytes, size_t *size, tn_error *err);
/* Allowed string k of attribute i, NULL past the end. Since 0.1 */
TN_API const char *tn_op_schema_attr_string(const tn_op_schema *schema, size_t i, size_t k);

/* Kernels of an op: i-th, NULL past the end. Since 0.1 */
TN_API const tn_kernel_def *tn_op_schema_kernel(const tn_op_schema *schema, size_t i);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
