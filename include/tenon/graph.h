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
  TN_IMPORT_TEXT = 2 /* it is in protobuf's text form; also known by a file's ending .pbtxt, or by how it begins */
};
struct tn_import_options {
  size_t struct_size;
  uint32_t flags;         /* TN_IMPORT_... */
  uint32_t reserved;
  const char *file;       /* named in messages; NULL = "GraphDef" */
};

/* Adds the nodes of a serialized GraphDef, in any order, to the graph; inputs may name operations that are there already.
 * All or nothing: a failed import leaves the graph as it was. The bytes are copied where they are needed.
 * options  may be NULL.
 * Returns TN_INVALID_ARGUMENT with file and node or byte offset: malformed bytes, unknown input, duplicate or invalid
 *          name, cycle, attribute of a wrong kind or missing, wrong input types; TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_graph_import(tn_graph *graph, const void *bytes, size_t size, const tn_import_options *options,
                                 tn_error *err);

/* The same from a file, which is read once and kept in memory as long as constants lie in it. Since 0.1 */
TN_API tn_status tn_graph_import_file(tn_graph *graph, const char *path, const tn_import_options *options, tn_error *err);

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

/* The registered schema, NULL for an op that is not registered. Since 0.1 */
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

/* The function library that imports brought. Their bodies are checked in their structure (names, inputs, attributes), ops
 * need not be registered. A function of the same name is the same bytes, or the import is TN_INVALID_ARGUMENT. What these
 * give is borrowed from the graph; NULL, TN_DTYPE_INVALID or 0 past the end. Since 0.1 */
typedef struct tn_function tn_function;
TN_API size_t tn_graph_n_functions(const tn_graph *graph); /* a snapshot, it may grow */
TN_API const tn_function *tn_graph_function(const tn_graph *graph, size_t i);
TN_API const tn_function *tn_graph_find_function(const tn_graph *graph, const char *name);
TN_API const char *tn_graph_gradient(const tn_graph *graph, const char *function); /* its name; NULL = none */
TN_API const char *tn_function_name(const tn_function *f);
TN_API size_t tn_function_n_inputs(const tn_function *f);
TN_API const char *tn_function_input_name(const tn_function *f, size_t i);
TN_API tn_dtype tn_function_input_dtype(const tn_function *f, size_t i); /* TN_DTYPE_INVALID: an attribute says it */
TN_API size_t tn_function_n_outputs(const tn_function *f);
TN_API const char *tn_function_output_name(const tn_function *f, size_t i);
TN_API tn_dtype tn_function_output_dtype(const tn_function *f, size_t i);
TN_API size_t tn_function_n_attrs(const tn_function *f); /* of the signature */
TN_API const char *tn_function_attr_name(const tn_function *f, size_t i);
TN_API size_t tn_function_n_nodes(const tn_function *f);
TN_API const char *tn_function_node_name(const tn_function *f, size_t i);
TN_API const char *tn_function_node_type(const tn_function *f, size_t i);
TN_API size_t tn_function_node_n_inputs(const tn_function *f, size_t i); /* with control inputs */
TN_API const char *tn_function_node_input(const tn_function *f, size_t i, size_t k); /* "x", "node:out:0", "^node" */
#endif

/* ---- op schemas ---- */

/* Number of registered ops, and the i-th in order of names; NULL past the end. Since 0.1 */
TN_API size_t tn_n_op_schemas(void);
TN_API const tn_op_schema *tn_op_schema_at(size_t i);
TN_API const tn_op_schema *tn_op_schema_find(const char *op); /* NULL when not registered */
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

/* An attribute of a schema. Its default is in the field of its kind; those of lists and shapes are asked for by the getters
 * of an operation. */
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
/* Allowed string k of attribute i, NULL past the end. Since 0.1 */
TN_API const char *tn_op_schema_attr_string(const tn_op_schema *schema, size_t i, size_t k);

/* Kernels of an op: i-th, NULL past the end. Since 0.1 */
TN_API const tn_kernel_def *tn_op_schema_kernel(const tn_op_schema *schema, size_t i);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
