/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: operations, attributes, building and importing.
 *
 * A graph may grow while sessions run it. Operations are never removed; their pointers stay valid
 * as long as the graph.
 * Any thread may call any function here. Calls that add operations exclude each other and the
 * compilation of signatures; calls that only read run concurrently. Only one thread at a time may
 * use a builder. Since 0.1 */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

#ifndef TN_PLUGIN
/* Creates an empty graph with one holder. Returns TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_graph_create(tn_graph **out, tn_error *err);
TN_API tn_graph *tn_graph_ref(tn_graph *graph); /* returns its argument */
TN_API void tn_graph_unref(tn_graph *graph); /* NULL allowed; the last holder frees the graph, its
                                              * operations and their tensors */

/* ---- import ---- */

enum {
  TN_IMPORT_REFUSE_UNKNOWN_OPS = 1, /* an operation whose op is not registered is NOT_FOUND instead
                                     * of being kept (S-GRA-06) */
  TN_IMPORT_TEXT = 2, /* protobuf's text form; also detected by the file name ending .pbtxt, or by the content */
  TN_IMPORT_UNIQUIFY_NAMES = 4,   /* a node whose name is taken becomes "name_1", or the next number that is free */
  TN_IMPORT_UNIQUIFY_PREFIX = 8,  /* a prefix that is taken becomes "prefix_1", ... */
  TN_IMPORT_SKIP_MAPPED_NODES = 16, /* omits nodes whose outputs are all in the input map */
  /* tn_graph_import_file: keeps all bytes of the file in memory. Without this flag the bytes of
   * large constants are freed once a session has made what it needs from them. A file above 1 MiB
   * then stays open, and bytes that are needed again are read from it: TN_DATA_LOSS if the file was
   * written to in between. Removing the file, or renaming another file over it, is harmless.
   * Since 0.1 */
  TN_IMPORT_KEEP_BYTES = 32
};

/* Replacement of an input named in the file: "node:1", "node" (its output 0) or "^node" (its
 * control edge) is replaced by an output of an existing operation. For a control edge only
 * target.op matters. */
struct tn_import_mapping {
  const char *source;
  tn_output target;
};

/* Only the first four fields are required; fields beyond struct_size count as 0. Everything is read
 * during the call only. */
struct tn_import_options {
  size_t struct_size;
  uint32_t flags;         /* TN_IMPORT_... */
  uint32_t reserved;
  const char *file;       /* used in messages; NULL = "GraphDef" */

  /* "net": node "x" becomes "net/x"; a trailing slash makes no difference. Inputs then name nodes
   * of the file only. A name counts as taken if an operation has this name, or if the name of an
   * operation begins with it and a slash. */
  const char *prefix;
  const char *default_device; /* for nodes that request no device */
  const tn_import_mapping *input_map; /* inputs by their names in the file, each at most once */
  size_t n_input_map;
  /* Operations that must run before the imported ones. They become control inputs of each new node
   * that does not depend on another new node. */
  tn_operation *const *control_inputs;
  size_t n_control_inputs;
  const char *const *return_outputs; /* "node:1", names in the file; read with tn_import_results_output */
  size_t n_return_outputs;
  const char *const *return_operations; /* "node", names in the file; read with tn_import_results_operation */
  size_t n_return_operations;
  tn_import_results **results; /* receives the results, NULL on failure; NULL = not wanted */
  uint64_t budget; /* maximum bytes of memory besides those of the file; 0 = 64 times its size plus 16 MiB */
};

/* Adds the nodes of a serialized GraphDef to the graph, in any order; inputs may name operations
 * that exist already. All or nothing: a failed import leaves the graph unchanged. Bytes that are
 * needed later are copied. Sessions may run the graph concurrently.
 * options  may be NULL.
 * Returns  TN_INVALID_ARGUMENT with the file and the node or byte offset: malformed bytes, unknown
 *          input, duplicate or invalid name, cycle, attribute missing or of the wrong kind, wrong
 *          input types, an invalid option (named), a return output or operation that is not in the
 *          file. TN_RESOURCE_EXHAUSTED: no memory, or budget exceeded. Since 0.1 */
TN_API tn_status tn_graph_import(tn_graph *graph, const void *bytes, size_t size, const tn_import_options *options,
                                 tn_error *err);

/* The same from a file. The file is read once; as many of its bytes as its constants need stay in
 * memory (TN_IMPORT_KEEP_BYTES). Since 0.1 */
TN_API tn_status tn_graph_import_file(tn_graph *graph, const char *path, const tn_import_options *options,
                                      tn_error *err);

/* Results of an import. Operations are borrowed from the graph, strings from the results; the
 * results may outlive the graph. Any thread; every function accepts NULL. Since 0.1 */
TN_API void tn_import_results_free(tn_import_results *results);
/* Return output (operation) i of the options; {NULL,0} (NULL) past the end. For a mapped output,
 * the output that it is mapped to. */
TN_API tn_output tn_import_results_output(const tn_import_results *results, size_t i);
TN_API tn_operation *tn_import_results_operation(const tn_import_results *results, size_t i);
/* The new operations: tn_graph_operation(graph, *first) and those after it. Returns how many there
 * are. */
TN_API size_t tn_import_results_new_operations(const tn_import_results *results, size_t *first);
/* the prefix used: "net_1"; "" for none */
TN_API const char *tn_import_results_prefix(const tn_import_results *results);
/* Sources of the input map that no input of the file names; NULL past the end. *missing (may be
 * NULL) is set if the file has no such node or output at all, so that the name is probably wrong. */
TN_API size_t tn_import_results_n_unused(const tn_import_results *results);
TN_API const char *tn_import_results_unused(const tn_import_results *results, size_t i, tn_bool *missing);

/* ---- export ---- */

enum { TN_EXPORT_TEXT = 1 /* protobuf's text form: empty or ending in a line feed, then a NUL */ };

/* Serialises the graph as a GraphDef, operations in order of addition. Imported operations and the
 * other content of their files (versions, function library) are preserved bit for bit. Importing
 * the result gives an equal graph, and exporting that one the same bytes. The text form omits
 * fields unknown to TensorFlow 2.21 and the bits of a NaN.
 * bytes    receives memory to be freed with tn_free.
 * Returns  TN_INVALID_ARGUMENT: more than 2 GiB, or a malformed part that only the text form reads;
 *          TN_UNIMPLEMENTED: a constant of resources or variants; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_graph_export(tn_graph *graph, uint32_t flags, void **bytes, size_t *size, tn_error *err);

/* The same into a file. Writes a temporary file in the same folder and renames it. A path that ends
 * in .pbtxt selects the text form. Since 0.1 */
TN_API tn_status tn_graph_export_file(tn_graph *graph, const char *path, uint32_t flags, tn_error *err);
#endif

/* ---- reading a graph ---- */

/* Number of operations; a snapshot, since the graph may grow. Since 0.1 */
TN_API size_t tn_graph_n_operations(const tn_graph *graph);

/* Operation i in order of addition, NULL past the end. Since 0.1 */
TN_API tn_operation *tn_graph_operation(const tn_graph *graph, size_t i);

/* Operation of this name, NULL if there is none. O(1). Since 0.1 */
TN_API tn_operation *tn_graph_find(const tn_graph *graph, const char *name);

TN_API const char *tn_operation_name(const tn_operation *op);
TN_API const char *tn_operation_type(const tn_operation *op);   /* name of its op, for example "MatMul" */
TN_API const char *tn_operation_device(const tn_operation *op); /* "" if the node requests none */

/* The registered schema, or for a call of a function its signature; NULL for an op that is not
 * registered. Since 0.1 */
TN_API const tn_op_schema *tn_operation_schema(const tn_operation *op);

TN_API size_t tn_operation_n_inputs(const tn_operation *op); /* data inputs, lists counted flat */
TN_API tn_output tn_operation_input(const tn_operation *op, size_t i); /* {NULL,0} past the end */
TN_API size_t tn_operation_n_control_inputs(const tn_operation *op);
TN_API tn_operation *tn_operation_control_input(const tn_operation *op, size_t i);
TN_API size_t tn_operation_n_outputs(const tn_operation *op); /* 0 for an op that is not registered */
TN_API tn_dtype tn_operation_output_dtype(const tn_operation *op, size_t i);
TN_API tn_dtype tn_operation_input_dtype(const tn_operation *op, size_t i);

/* The first flat input (output) of the named argument of the schema and how many it has, as list
 * arguments have several. Returns TN_NOT_FOUND. Since 0.1 */
TN_API tn_status tn_operation_input_range(const tn_operation *op, const char *arg, size_t *first, size_t *n,
                                          tn_error *err);
TN_API tn_status tn_operation_output_range(const tn_operation *op, const char *arg, size_t *first, size_t *n,
                                           tn_error *err);

/* A consumer of an output: the operation and the index of its flat input, -1 for a control edge. */
struct tn_consumer {
  tn_operation *op;
  int32_t input;
};

/* Consumers of an output, and the operations that depend on an operation by a control edge, in
 * order of addition. *n is their number, a snapshot, since the graph may grow. The first `room` of
 * them are written to `out` (NULL if room is 0). The first call indexes all edges of the graph
 * (about 16 bytes per edge), later calls only the edges added since. Returns TN_INVALID_ARGUMENT:
 * no operation; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_output_consumers(tn_output output, tn_consumer *out, size_t room, size_t *n, tn_error *err);
TN_API tn_status tn_operation_control_consumers(const tn_operation *op, tn_consumer *out, size_t room, size_t *n,
                                                tn_error *err);

/* Inferred shape of an output. *rank is -1 if unknown, dims[i] is -1 if unknown. dims has `room`
 * elements and may be NULL. If there are more dimensions than room, returns TN_OUT_OF_RANGE with
 * *rank set. Since 0.1 */
TN_API tn_status tn_output_shape(tn_output output, int64_t *dims, int32_t room, int32_t *rank, tn_error *err);

/* Attributes. Each getter returns the node's value or the schema's default; TN_NOT_FOUND if there
 * is neither, TN_INVALID_ARGUMENT if the attribute is of another kind. Results are borrowed from
 * the operation. Since 0.1 */
enum {
  TN_ATTR_NONE = 0, TN_ATTR_STRING = 1, TN_ATTR_INT = 2, TN_ATTR_FLOAT = 3, TN_ATTR_BOOL = 4, TN_ATTR_TYPE = 5,
  TN_ATTR_SHAPE = 6, TN_ATTR_TENSOR = 7, TN_ATTR_FUNC = 8, TN_ATTR_PLACEHOLDER = 9,
  TN_ATTR_LIST = 16 /* added to a kind: a list of that kind */
};
TN_API size_t tn_operation_n_attrs(const tn_operation *op); /* only those that the node itself carries */
TN_API const char *tn_operation_attr_name(const tn_operation *op, size_t i);
TN_API int32_t tn_operation_attr_kind(const tn_operation *op, const char *name); /* TN_ATTR_NONE if there is none */
TN_API tn_status tn_operation_attr_int(const tn_operation *op, const char *name, int64_t *out, tn_error *err);
TN_API tn_status tn_operation_attr_float(const tn_operation *op, const char *name, float *out, tn_error *err);
TN_API tn_status tn_operation_attr_bool(const tn_operation *op, const char *name, tn_bool *out, tn_error *err);
TN_API tn_status tn_operation_attr_type(const tn_operation *op, const char *name, tn_dtype *out, tn_error *err);
TN_API tn_status tn_operation_attr_string(const tn_operation *op, const char *name, const char **text, size_t *length,
                                          tn_error *err);
TN_API tn_status tn_operation_attr_shape(const tn_operation *op, const char *name, const int64_t **dims, int32_t *rank,
                                         tn_error *err); /* rank -1 = unknown rank, dims -1 = unknown */
TN_API tn_status tn_operation_attr_tensor(const tn_operation *op, const char *name, tn_tensor **tensor, tn_error *err);
/* Only the dtype and shape of a tensor; the elements of a large tensor stay in the file. dims has
 * room for TN_MAX_RANK; each output may be NULL. Since 0.1 */
TN_API tn_status tn_operation_attr_tensor_shape(const tn_operation *op, const char *name, tn_dtype *dtype,
                                                int64_t *dims, int32_t *rank, tn_error *err);
TN_API tn_status tn_operation_attr_func(const tn_operation *op, const char *name, const char **function, tn_error *err);
TN_API tn_status tn_operation_attr_ints(const tn_operation *op, const char *name, const int64_t **values, size_t *n,
                                        tn_error *err);
TN_API tn_status tn_operation_attr_floats(const tn_operation *op, const char *name, const float **values, size_t *n,
                                          tn_error *err);
TN_API tn_status tn_operation_attr_bools(const tn_operation *op, const char *name, const tn_bool **values, size_t *n,
                                         tn_error *err);
TN_API tn_status tn_operation_attr_types(const tn_operation *op, const char *name, const tn_dtype **values, size_t *n,
                                         tn_error *err);
/* Element i of a list of strings, shapes, tensors or functions. If `n` is not NULL it receives the
 * length of the list, and i may then be past its end (the outputs are NULL or 0). Since 0.1 */
TN_API tn_status tn_operation_attr_string_at(const tn_operation *op, const char *name, size_t i, const char **text,
                                             size_t *length, size_t *n, tn_error *err);
TN_API tn_status tn_operation_attr_shape_at(const tn_operation *op, const char *name, size_t i, const int64_t **dims,
                                            int32_t *rank, size_t *n, tn_error *err);
TN_API tn_status tn_operation_attr_tensor_at(const tn_operation *op, const char *name, size_t i, tn_tensor **tensor,
                                             size_t *n, tn_error *err);
TN_API tn_status tn_operation_attr_func_at(const tn_operation *op, const char *name, size_t i, const char **function,
                                           size_t *n, tn_error *err);

/* A value of any kind: that of an attribute, or an item of its list. Only the fields of its kind
 * are set, all others are 0. */
struct tn_attr_value {
  size_t struct_size;
  int32_t kind;       /* kind of the attribute, TN_ATTR_... */
  int32_t rank;       /* of a shape; -1 = unknown */
  size_t n;           /* items of a list; 1 if it is no list */
  int64_t i;
  float f;
  tn_dtype type;
  tn_bool b;
  const char *text;   /* string, name of a function or placeholder; NUL-terminated */
  size_t length;
  const int64_t *dims; /* -1 = unknown; NULL if the rank is 0 or -1 */
  tn_tensor *tensor;
  size_t n_attrs;     /* attributes that a function carries: f[T=float, n=2] has two; read with tn_attr_value_attr */
  const void *host[2]; /* used by the library */
};
#define TN_ATTR_VALUE_SIZE TN_SIZE_TO(tn_attr_value, host)

/* The value of an attribute, or the schema's default if the node has none; for a list, item i (i is
 * 0 if it is no list). Past the end of a list only kind and n are set. Pointers are borrowed from
 * the operation.
 * The caller sets out->struct_size.
 * Returns TN_NOT_FOUND: no such attribute; TN_INVALID_ARGUMENT: no operation or name, a struct that
 *         is too small, malformed bytes of a tensor; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_operation_attr_value(const tn_operation *op, const char *name, size_t i, tn_attr_value *out,
                                         tn_error *err);

/* Attribute k of a function that was read into *func from an operation: its name, and its value or
 * item i of its list. The value may itself be a function with attributes. *out may be *func. name
 * may be NULL. Results are borrowed from the operation that *func was read from.
 * Returns TN_INVALID_ARGUMENT: no function, a struct that is too small; TN_OUT_OF_RANGE;
 *         TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_attr_value_attr(const tn_attr_value *func, size_t k, size_t i, const char **name,
                                    tn_attr_value *out, tn_error *err);

/* The size of an attribute, for callers that allocate room for it; either pointer may be NULL.
 * n      items of a list, -1 if it is no list
 * total  bytes of a string, of a function's name, or of all of them in a list; dimensions of a
 *        shape (-1 = unknown rank), or of all shapes of known rank in a list; -1 for all other
 *        kinds
 * Returns TN_NOT_FOUND, TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_operation_attr_size(const tn_operation *op, const char *name, int64_t *n, int64_t *total,
                                        tn_error *err);

/* An attribute as a serialized AttrValue, an operation as a serialized NodeDef. Imported ones are
 * preserved bit for bit, others are encoded. For an attribute that the node does not carry, the
 * schema's default.
 * bytes  receives memory to be freed with tn_free.
 * Returns TN_NOT_FOUND: no such attribute; TN_INVALID_ARGUMENT: a NULL argument; TN_UNIMPLEMENTED:
 *         a tensor of resources or variants; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_operation_attr_proto(const tn_operation *op, const char *name, void **bytes, size_t *size,
                                         tn_error *err);
TN_API tn_status tn_operation_node_def(const tn_operation *op, void **bytes, size_t *size, tn_error *err);

#ifndef TN_PLUGIN
/* ---- building ---- */

enum { TN_BUILD_KEEP_UNKNOWN_OP = 1 /* accept an unregistered op, with opaque outputs */ };

/* Begins an operation. The setters below cannot fail: the first error is stored and returned by
 * tn_operation_finish. Returns NULL only if there is no memory. Free the builder with
 * tn_operation_finish or tn_operation_abandon. Since 0.1 */
TN_API tn_operation_builder *tn_operation_begin(tn_graph *graph, const char *op, const char *name, uint32_t flags);
/* Setters. Strings and arrays are copied. rank -1 is an unknown rank, a dimension of -1 an unknown
 * one. */
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
/* Adds a reference to the tensor, which must not change afterwards. So does
 * tn_operation_set_tensors. */
TN_API void tn_operation_set_tensor(tn_operation_builder *b, const char *attr, tn_tensor *tensor);
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

/* Adds the operation and frees the builder. Attributes determined by inputs (T, N, Tlist) may be
 * omitted; others without a default must be set. Attributes unknown to the schema are kept.
 * out      may be NULL; receives the operation, borrowed from the graph.
 * Returns  the first deferred error, or TN_INVALID_ARGUMENT (name taken or invalid, types do not
 *          match, attribute missing or not allowed, impossible shapes), TN_NOT_FOUND (op not
 *          registered), TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_operation_finish(tn_operation_builder *b, tn_operation **out, tn_error *err);
TN_API void tn_operation_abandon(tn_operation_builder *b); /* frees the builder without adding an
                                                            * operation */

/* Adds what the author of a graph knows about the shape of an output. It is merged with the
 * inferred shape, each supplying what the other does not know, and used for all further inference.
 * dims and rank as in tn_output_shape. Shapes returned earlier stay valid. A step does not check
 * the shape.
 * Returns TN_INVALID_ARGUMENT naming both shapes if they contradict each other, TN_OUT_OF_RANGE: no
 *         such output, TN_FAILED_PRECONDITION: an op that is not registered; TN_RESOURCE_EXHAUSTED.
 *         Since 0.1 */
TN_API tn_status tn_graph_set_shape(tn_output output, const int64_t *dims, int32_t rank, tn_error *err);
#endif

#ifndef TN_PLUGIN
/* ---- functions ---- */

/* The function library from imports. Its structure is checked: names, inputs, the sources of
 * outputs and control outputs, attributes; its ops need not be registered. An import is
 * TN_INVALID_ARGUMENT if it has a function with the name of an existing one and other bytes, or
 * with the name of a registered op. A node whose op is a function is checked like a node of any
 * other op; its schema is the function's signature. Results are borrowed from the graph; NULL,
 * TN_DTYPE_INVALID or 0 past the end. Since 0.1 */
typedef struct tn_function tn_function;
TN_API size_t tn_graph_n_functions(const tn_graph *graph); /* a snapshot, since the graph may grow */
TN_API const tn_function *tn_graph_function(const tn_graph *graph, size_t i);
TN_API const tn_function *tn_graph_find_function(const tn_graph *graph, const char *name);
/* name of the gradient function; NULL = none */
TN_API const char *tn_graph_gradient(const tn_graph *graph, const char *function);
TN_API const char *tn_function_name(const tn_function *f);

/* The signature, for all tn_op_schema_... calls: arguments with their types and the attributes that
 * determine these; attributes with kinds, defaults and minima. TN_TRAIT_FUNCTION_CALL and
 * TN_TRAIT_DYNAMIC are set, and TN_TRAIT_STATEFUL if the signature says so. An attribute that only
 * an argument names is listed too. A default that is a function is given without attributes of its
 * own. Since 0.1 */
TN_API const tn_op_schema *tn_function_schema(const tn_function *f);
TN_API size_t tn_function_n_inputs(const tn_function *f);
TN_API const char *tn_function_input_name(const tn_function *f, size_t i);
/* TN_DTYPE_INVALID: determined by an attribute */
TN_API tn_dtype tn_function_input_dtype(const tn_function *f, size_t i);
TN_API size_t tn_function_n_outputs(const tn_function *f);
TN_API const char *tn_function_output_name(const tn_function *f, size_t i);
TN_API tn_dtype tn_function_output_dtype(const tn_function *f, size_t i);
/* "x", "node:out:0"; NULL if it has no source */
TN_API const char *tn_function_output_source(const tn_function *f, size_t i);
TN_API size_t tn_function_n_control_outputs(const tn_function *f);
TN_API const char *tn_function_control_output_name(const tn_function *f, size_t i);
TN_API const char *tn_function_control_output_node(const tn_function *f, size_t i);
TN_API size_t tn_function_n_attrs(const tn_function *f); /* of the signature */
TN_API const char *tn_function_attr_name(const tn_function *f, size_t i);
TN_API size_t tn_function_n_nodes(const tn_function *f);
TN_API const char *tn_function_node_name(const tn_function *f, size_t i);
TN_API const char *tn_function_node_type(const tn_function *f, size_t i);
TN_API size_t tn_function_node_n_inputs(const tn_function *f, size_t i); /* including control inputs */
TN_API const char *tn_function_node_input(const tn_function *f, size_t i, size_t k); /* "x", "node:out:0", "^node" */

/* A node of the body with its attributes, for tn_operation_name, _type, _device, _schema, _node_def
 * and all tn_operation_attr_... calls. Values determined by attributes of the call are of kind
 * TN_ATTR_PLACEHOLDER. The node belongs to no graph that can run; as an operation it has no inputs
 * or outputs, tn_function_node_input names its inputs.
 * Returns TN_OUT_OF_RANGE; TN_INVALID_ARGUMENT: a malformed attribute; TN_RESOURCE_EXHAUSTED.
 *         Since 0.1 */
TN_API tn_status tn_function_node(const tn_function *f, size_t i, const tn_operation **out, tn_error *err);
/* The same for the attributes of the function itself ("_noinline"), and for those of argument i
 * ("_user_specified_name"). *resource (may be NULL) receives its resource_arg_unique_id, -1 = none.
 * Since 0.1 */
TN_API tn_status tn_function_self(const tn_function *f, const tn_operation **out, tn_error *err);
TN_API tn_status tn_function_input(const tn_function *f, size_t i, const tn_operation **out, int64_t *resource,
                                   tn_error *err);
#endif

/* ---- op schemas ---- */

/* Number of registered ops, and op i in order of names; NULL past the end and if there is no
 * memory. Since 0.1 */
TN_API size_t tn_n_op_schemas(void);
TN_API const tn_op_schema *tn_op_schema_at(size_t i);
/* NULL if not registered. Loads no plugin; importing and building load the plugin that provides an
 * op. Since 0.1 */
TN_API const tn_op_schema *tn_op_schema_find(const char *op);
TN_API const char *tn_op_schema_name(const tn_op_schema *schema);
TN_API uint32_t tn_op_schema_traits(const tn_op_schema *schema); /* TN_TRAIT_..., op.h */

/* Writes the schema as text, "AddV2(x: T, y: T) -> (z: T); T: {...}", as snprintf does. Since 0.1 */
TN_API size_t tn_op_schema_format(const tn_op_schema *schema, char *buffer, size_t size);

/* An input or output of a schema. Attributes are given as indices for tn_op_schema_attr, -1 = none. */
struct tn_op_arg {
  size_t struct_size;
  const char *name;
  tn_dtype dtype;      /* TN_DTYPE_INVALID: determined by an attribute */
  int32_t type_attr;   /* attribute that determines the type */
  int32_t number_attr; /* attribute that determines the length of a list */
  int32_t list_attr;   /* attribute that determines the types of a list */
  tn_bool is_ref;      /* passed by reference, "Ref(T)" */
};
#define TN_OP_ARG_SIZE TN_SIZE_TO(tn_op_arg, is_ref)

/* An attribute of a schema. Its default is in the field of its kind; defaults that are lists,
 * shapes or functions are read with tn_op_schema_attr_default. */
struct tn_op_attr {
  size_t struct_size;
  const char *name;
  int32_t kind; /* TN_ATTR_... */
  tn_bool has_default;
  tn_bool has_minimum;
  int64_t minimum;  /* of an int, or of the length of a list */
  uint64_t types;   /* bit d: dtype d is allowed, for kinds with types */
  size_t n_strings; /* number of allowed strings, 0 = any string */
  int64_t default_int;
  float default_float;
  tn_bool default_bool;
  tn_dtype default_type;
  const char *default_string;
};
#define TN_OP_ATTR_SIZE TN_SIZE_TO(tn_op_attr, default_string)

/* Parts of a schema. The caller sets out->struct_size. Returns TN_OUT_OF_RANGE past the end,
 * TN_INVALID_ARGUMENT for a struct that is too small. Results live as long as the schema. Since 0.1 */
TN_API size_t tn_op_schema_n_inputs(const tn_op_schema *schema);
TN_API size_t tn_op_schema_n_outputs(const tn_op_schema *schema);
TN_API size_t tn_op_schema_n_attrs(const tn_op_schema *schema);
TN_API tn_status tn_op_schema_input(const tn_op_schema *schema, size_t i, tn_op_arg *out, tn_error *err);
TN_API tn_status tn_op_schema_output(const tn_op_schema *schema, size_t i, tn_op_arg *out, tn_error *err);
TN_API tn_status tn_op_schema_attr(const tn_op_schema *schema, size_t i, tn_op_attr *out, tn_error *err);
/* The default of attribute i, of any kind, or item k of its list, as in tn_operation_attr_value. It
 * lives as long as the schema. Returns TN_NOT_FOUND: no default; TN_OUT_OF_RANGE: no such
 * attribute; TN_INVALID_ARGUMENT. Since 0.1 */
TN_API tn_status tn_op_schema_attr_default(const tn_op_schema *schema, size_t i, size_t k, tn_attr_value *out,
                                           tn_error *err);
/* The schema as a serialized OpDef: arguments, attributes with defaults, minima and allowed values,
 * and whether the op is stateful or commutative. *bytes receives memory to be freed with tn_free.
 * Returns TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_op_schema_op_def(const tn_op_schema *schema, void **bytes, size_t *size, tn_error *err);
/* Allowed string k of attribute i, NULL past the end. Since 0.1 */
TN_API const char *tn_op_schema_attr_string(const tn_op_schema *schema, size_t i, size_t k);

/* Kernel i of an op, NULL past the end. Since 0.1 */
TN_API const tn_kernel_def *tn_op_schema_kernel(const tn_op_schema *schema, size_t i);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
