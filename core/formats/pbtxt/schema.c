/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a GraphDef and of the messages in it: names and numbers of fields. */
#include <core/formats/pbtxt/pbtxt.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ONE(name, number, type, message, names) { name, number, TN__PB_##type, false, false, message, names }
#define MANY(name, number, type, message, names) { name, number, TN__PB_##type, true, false, message, names }
#define CHOICE(name, number, type, message, names) { name, number, TN__PB_##type, false, true, message, names }

int tn__pb_wire(const tn__pb_field *field)
{
  switch (field->type) {
  case TN__PB_DOUBLE:
  case TN__PB_FIXED64: return TN__WIRE_FIXED64;
  case TN__PB_FLOAT: return TN__WIRE_FIXED32;
  case TN__PB_TEXT:
  case TN__PB_MESSAGE: return TN__WIRE_BYTES;
  default: return TN__WIRE_VARINT;
  }
}

/* ---- enums ---- */

static const tn__pb_name data_type_values[] = {
  { 0, "DT_INVALID" }, { 1, "DT_FLOAT" }, { 2, "DT_DOUBLE" }, { 3, "DT_INT32" }, { 4, "DT_UINT8" }, { 5, "DT_INT16" },
  { 6, "DT_INT8" }, { 7, "DT_STRING" }, { 8, "DT_COMPLEX64" }, { 9, "DT_INT64" }, { 10, "DT_BOOL" },
  { 11, "DT_QINT8" }, { 12, "DT_QUINT8" }, { 13, "DT_QINT32" }, { 14, "DT_BFLOAT16" }, { 15, "DT_QINT16" },
  { 16, "DT_QUINT16" }, { 17, "DT_UINT16" }, { 18, "DT_COMPLEX128" }, { 19, "DT_HALF" }, { 20, "DT_RESOURCE" },
  { 21, "DT_VARIANT" }, { 22, "DT_UINT32" }, { 23, "DT_UINT64" }, { 24, "DT_FLOAT8_E5M2" },
  { 25, "DT_FLOAT8_E4M3FN" }, { 26, "DT_FLOAT8_E4M3FNUZ" }, { 27, "DT_FLOAT8_E4M3B11FNUZ" },
  { 28, "DT_FLOAT8_E5M2FNUZ" }, { 29, "DT_INT4" }, { 30, "DT_UINT4" }, { 31, "DT_INT2" }, { 32, "DT_UINT2" },
  { 33, "DT_FLOAT4_E2M1FN" }, { 101, "DT_FLOAT_REF" }, { 102, "DT_DOUBLE_REF" }, { 103, "DT_INT32_REF" },
  { 104, "DT_UINT8_REF" }, { 105, "DT_INT16_REF" }, { 106, "DT_INT8_REF" }, { 107, "DT_STRING_REF" },
  { 108, "DT_COMPLEX64_REF" }, { 109, "DT_INT64_REF" }, { 110, "DT_BOOL_REF" }, { 111, "DT_QINT8_REF" },
  { 112, "DT_QUINT8_REF" }, { 113, "DT_QINT32_REF" }, { 114, "DT_BFLOAT16_REF" }, { 115, "DT_QINT16_REF" },
  { 116, "DT_QUINT16_REF" }, { 117, "DT_UINT16_REF" }, { 118, "DT_COMPLEX128_REF" }, { 119, "DT_HALF_REF" },
  { 120, "DT_RESOURCE_REF" }, { 121, "DT_VARIANT_REF" }, { 122, "DT_UINT32_REF" }, { 123, "DT_UINT64_REF" },
  { 124, "DT_FLOAT8_E5M2_REF" }, { 125, "DT_FLOAT8_E4M3FN_REF" }, { 126, "DT_FLOAT8_E4M3FNUZ_REF" },
  { 127, "DT_FLOAT8_E4M3B11FNUZ_REF" }, { 128, "DT_FLOAT8_E5M2FNUZ_REF" }, { 129, "DT_INT4_REF" },
  { 130, "DT_UINT4_REF" }, { 131, "DT_INT2_REF" }, { 132, "DT_UINT2_REF" }, { 133, "DT_FLOAT4_E2M1FN_REF" }
};
const tn__pb_enum tn__pb_data_type = { "DataType", data_type_values, COUNT(data_type_values) };

static const tn__pb_name full_type_id_values[] = {
  { 0, "TFT_UNSET" }, { 1, "TFT_VAR" }, { 2, "TFT_ANY" }, { 3, "TFT_PRODUCT" }, { 4, "TFT_NAMED" },
  { 20, "TFT_FOR_EACH" }, { 100, "TFT_CALLABLE" }, { 1000, "TFT_TENSOR" }, { 1001, "TFT_ARRAY" },
  { 1002, "TFT_OPTIONAL" }, { 1003, "TFT_LITERAL" }, { 1004, "TFT_ENCODED" }, { 1005, "TFT_SHAPE_TENSOR" },
  { 200, "TFT_BOOL" }, { 201, "TFT_UINT8" }, { 202, "TFT_UINT16" }, { 203, "TFT_UINT32" }, { 204, "TFT_UINT64" },
  { 205, "TFT_INT8" }, { 206, "TFT_INT16" }, { 207, "TFT_INT32" }, { 208, "TFT_INT64" }, { 209, "TFT_HALF" },
  { 210, "TFT_FLOAT" }, { 211, "TFT_DOUBLE" }, { 215, "TFT_BFLOAT16" }, { 212, "TFT_COMPLEX64" },
  { 213, "TFT_COMPLEX128" }, { 214, "TFT_STRING" }, { 10102, "TFT_DATASET" }, { 10103, "TFT_RAGGED" },
  { 10104, "TFT_ITERATOR" }, { 10202, "TFT_MUTEX_LOCK" }, { 10203, "TFT_LEGACY_VARIANT" }
};
static const tn__pb_enum full_type_id = { "FullTypeId", full_type_id_values, COUNT(full_type_id_values) };

/* ---- messages ---- */

static const tn__pb_message node_def, attr_value, tensor_shape_proto_dim, resource_handle_proto,
  resource_handle_proto_dtype_and_shape, variant_tensor_data_proto, attr_value_list_value, name_attr_list,
  node_def_experimental_debug_info, full_type_def, function_def_library, function_def, op_def_arg_def, op_def_attr_def,
  op_deprecation, arg_attr_entry, function_def_arg_attrs, resource_arg_unique_id_entry, ret_entry, control_ret_entry,
  gradient_def, registered_gradient, graph_debug_info, frames_by_id_entry, graph_debug_info_file_line_col,
  traces_by_id_entry, graph_debug_info_stack_trace, traces_entry, name_to_trace_id_entry;

static const tn__pb_field graph_def_fields[] = {
  MANY("node", 1, MESSAGE, &node_def, NULL), ONE("library", 2, MESSAGE, &function_def_library, NULL),
  ONE("version", 3, INT32, NULL, NULL), ONE("versions", 4, MESSAGE, &tn__pb_version, NULL),
  ONE("debug_info", 5, MESSAGE, &graph_debug_info, NULL)
};
const tn__pb_message tn__pb_graphdef = {
  "GraphDef", graph_def_fields, COUNT(graph_def_fields)
};

static const tn__pb_field node_def_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("op", 2, TEXT, NULL, NULL), MANY("input", 3, TEXT, NULL, NULL),
  ONE("device", 4, TEXT, NULL, NULL), MANY("attr", 5, MESSAGE, &tn__pb_attr_entry, NULL),
  ONE("experimental_debug_info", 6, MESSAGE, &node_def_experimental_debug_info, NULL),
  ONE("experimental_type", 7, MESSAGE, &full_type_def, NULL)
};
static const tn__pb_message node_def = {
  "NodeDef", node_def_fields, COUNT(node_def_fields)
};

static const tn__pb_field attr_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &attr_value, NULL)
};
const tn__pb_message tn__pb_attr_entry = {
  "AttrEntry", attr_entry_fields, COUNT(attr_entry_fields)
};

static const tn__pb_field attr_value_fields[] = {
  CHOICE("list", 1, MESSAGE, &attr_value_list_value, NULL), CHOICE("s", 2, TEXT, NULL, NULL),
  CHOICE("i", 3, INT64, NULL, NULL), CHOICE("f", 4, FLOAT, NULL, NULL), CHOICE("b", 5, BOOL, NULL, NULL),
  CHOICE("type", 6, ENUM, NULL, &tn__pb_data_type), CHOICE("shape", 7, MESSAGE, &tn__pb_shape, NULL),
  CHOICE("tensor", 8, MESSAGE, &tn__pb_tensor, NULL), CHOICE("placeholder", 9, TEXT, NULL, NULL),
  CHOICE("func", 10, MESSAGE, &name_attr_list, NULL)
};
static const tn__pb_message attr_value = {
  "AttrValue", attr_value_fields, COUNT(attr_value_fields)
};

static const tn__pb_field tensor_shape_proto_fields[] = {
  MANY("dim", 2, MESSAGE, &tensor_shape_proto_dim, NULL), ONE("unknown_rank", 3, BOOL, NULL, NULL)
};
const tn__pb_message tn__pb_shape = {
  "TensorShapeProto", tensor_shape_proto_fields, COUNT(tensor_shape_proto_fields)
};

static const tn__pb_field tensor_shape_proto_dim_fields[] = {
  ONE("size", 1, INT64, NULL, NULL), ONE("name", 2, TEXT, NULL, NULL)
};
static const tn__pb_message tensor_shape_proto_dim = {
  "TensorShapeProto.Dim", tensor_shape_proto_dim_fields, COUNT(tensor_shape_proto_dim_fields)
};

static const tn__pb_field tensor_proto_fields[] = {
  ONE("dtype", 1, ENUM, NULL, &tn__pb_data_type), ONE("tensor_shape", 2, MESSAGE, &tn__pb_shape, NULL),
  ONE("version_number", 3, INT32, NULL, NULL), ONE("tensor_content", 4, TEXT, NULL, NULL),
  MANY("float_val", 5, FLOAT, NULL, NULL), MANY("double_val", 6, DOUBLE, NULL, NULL),
  MANY("int_val", 7, INT32, NULL, NULL), MANY("string_val", 8, TEXT, NULL, NULL),
  MANY("scomplex_val", 9, FLOAT, NULL, NULL), MANY("int64_val", 10, INT64, NULL, NULL),
  MANY("bool_val", 11, BOOL, NULL, NULL), MANY("dcomplex_val", 12, DOUBLE, NULL, NULL),
  MANY("half_val", 13, INT32, NULL, NULL), MANY("resource_handle_val", 14, MESSAGE, &resource_handle_proto, NULL),
  MANY("variant_val", 15, MESSAGE, &variant_tensor_data_proto, NULL), MANY("uint32_val", 16, UINT32, NULL, NULL),
  MANY("uint64_val", 17, UINT64, NULL, NULL), ONE("float8_val", 18, TEXT, NULL, NULL)
};
const tn__pb_message tn__pb_tensor = {
  "TensorProto", tensor_proto_fields, COUNT(tensor_proto_fields)
};

static const tn__pb_field resource_handle_proto_fields[] = {
  ONE("device", 1, TEXT, NULL, NULL), ONE("container", 2, TEXT, NULL, NULL), ONE("name", 3, TEXT, NULL, NULL),
  ONE("hash_code", 4, UINT64, NULL, NULL), ONE("maybe_type_name", 5, TEXT, NULL, NULL),
  MANY("dtypes_and_shapes", 6, MESSAGE, &resource_handle_proto_dtype_and_shape, NULL)
};
static const tn__pb_message resource_handle_proto = {
  "ResourceHandleProto", resource_handle_proto_fields, COUNT(resource_handle_proto_fields)
};

static const tn__pb_field resource_handle_proto_dtype_and_shape_fields[] = {
  ONE("dtype", 1, ENUM, NULL, &tn__pb_data_type), ONE("shape", 2, MESSAGE, &tn__pb_shape, NULL)
};
static const tn__pb_message resource_handle_proto_dtype_and_shape = {
  "ResourceHandleProto.DtypeAndShape", resource_handle_proto_dtype_and_shape_fields,
  COUNT(resource_handle_proto_dtype_and_shape_fields)
};

static const tn__pb_field variant_tensor_data_proto_fields[] = {
  ONE("type_name", 1, TEXT, NULL, NULL), ONE("metadata", 2, TEXT, NULL, NULL),
  MANY("tensors", 3, MESSAGE, &tn__pb_tensor, NULL)
};
static const tn__pb_message variant_tensor_data_proto = {
  "VariantTensorDataProto", variant_tensor_data_proto_fields, COUNT(variant_tensor_data_proto_fields)
};

static const tn__pb_field attr_value_list_value_fields[] = {
  MANY("s", 2, TEXT, NULL, NULL), MANY("i", 3, INT64, NULL, NULL), MANY("f", 4, FLOAT, NULL, NULL),
  MANY("b", 5, BOOL, NULL, NULL), MANY("type", 6, ENUM, NULL, &tn__pb_data_type),
  MANY("shape", 7, MESSAGE, &tn__pb_shape, NULL), MANY("tensor", 8, MESSAGE, &tn__pb_tensor, NULL),
  MANY("func", 9, MESSAGE, &name_attr_list, NULL)
};
static const tn__pb_message attr_value_list_value = {
  "AttrValue.ListValue", attr_value_list_value_fields, COUNT(attr_value_list_value_fields)
};

static const tn__pb_field name_attr_list_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), MANY("attr", 2, MESSAGE, &tn__pb_attr_entry, NULL)
};
static const tn__pb_message name_attr_list = {
  "NameAttrList", name_attr_list_fields, COUNT(name_attr_list_fields)
};

static const tn__pb_field node_def_experimental_debug_info_fields[] = {
  MANY("original_node_names", 1, TEXT, NULL, NULL), MANY("original_func_names", 2, TEXT, NULL, NULL)
};
static const tn__pb_message node_def_experimental_debug_info = { "NodeDef.ExperimentalDebugInfo",
                                                                 node_def_experimental_debug_info_fields,
                                                                 COUNT(node_def_experimental_debug_info_fields) };

static const tn__pb_field full_type_def_fields[] = {
  ONE("type_id", 1, ENUM, NULL, &full_type_id), MANY("args", 2, MESSAGE, &full_type_def, NULL),
  CHOICE("s", 3, TEXT, NULL, NULL), CHOICE("i", 4, INT64, NULL, NULL)
};
static const tn__pb_message full_type_def = {
  "FullTypeDef", full_type_def_fields, COUNT(full_type_def_fields)
};

static const tn__pb_field version_def_fields[] = {
  ONE("producer", 1, INT32, NULL, NULL), ONE("min_consumer", 2, INT32, NULL, NULL),
  MANY("bad_consumers", 3, INT32, NULL, NULL)
};
const tn__pb_message tn__pb_version = {
  "VersionDef", version_def_fields, COUNT(version_def_fields)
};

static const tn__pb_field function_def_library_fields[] = {
  MANY("function", 1, MESSAGE, &function_def, NULL), MANY("gradient", 2, MESSAGE, &gradient_def, NULL),
  MANY("registered_gradients", 3, MESSAGE, &registered_gradient, NULL)
};
static const tn__pb_message function_def_library = {
  "FunctionDefLibrary", function_def_library_fields, COUNT(function_def_library_fields)
};

static const tn__pb_field function_def_fields[] = {
  ONE("signature", 1, MESSAGE, &tn__pb_op_def, NULL), MANY("node_def", 3, MESSAGE, &node_def, NULL),
  MANY("ret", 4, MESSAGE, &ret_entry, NULL), MANY("attr", 5, MESSAGE, &tn__pb_attr_entry, NULL),
  MANY("control_ret", 6, MESSAGE, &control_ret_entry, NULL), MANY("arg_attr", 7, MESSAGE, &arg_attr_entry, NULL),
  MANY("resource_arg_unique_id", 8, MESSAGE, &resource_arg_unique_id_entry, NULL)
};
static const tn__pb_message function_def = {
  "FunctionDef", function_def_fields, COUNT(function_def_fields)
};

static const tn__pb_field op_def_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), MANY("input_arg", 2, MESSAGE, &op_def_arg_def, NULL),
  MANY("output_arg", 3, MESSAGE, &op_def_arg_def, NULL), MANY("attr", 4, MESSAGE, &op_def_attr_def, NULL),
  ONE("summary", 5, TEXT, NULL, NULL), ONE("description", 6, TEXT, NULL, NULL),
  ONE("deprecation", 8, MESSAGE, &op_deprecation, NULL), ONE("is_aggregate", 16, BOOL, NULL, NULL),
  ONE("is_stateful", 17, BOOL, NULL, NULL), ONE("is_commutative", 18, BOOL, NULL, NULL),
  ONE("allows_uninitialized_input", 19, BOOL, NULL, NULL), MANY("control_output", 20, TEXT, NULL, NULL),
  ONE("is_distributed_communication", 21, BOOL, NULL, NULL)
};
const tn__pb_message tn__pb_op_def = {
  "OpDef", op_def_fields, COUNT(op_def_fields)
};

static const tn__pb_field op_def_arg_def_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("description", 2, TEXT, NULL, NULL),
  ONE("type", 3, ENUM, NULL, &tn__pb_data_type), ONE("type_attr", 4, TEXT, NULL, NULL),
  ONE("number_attr", 5, TEXT, NULL, NULL), ONE("type_list_attr", 6, TEXT, NULL, NULL),
  MANY("handle_data", 7, MESSAGE, &resource_handle_proto_dtype_and_shape, NULL), ONE("is_ref", 16, BOOL, NULL, NULL),
  ONE("experimental_full_type", 17, MESSAGE, &full_type_def, NULL)
};
static const tn__pb_message op_def_arg_def = {
  "OpDef.ArgDef", op_def_arg_def_fields, COUNT(op_def_arg_def_fields)
};

static const tn__pb_field op_def_attr_def_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("type", 2, TEXT, NULL, NULL),
  ONE("default_value", 3, MESSAGE, &attr_value, NULL), ONE("description", 4, TEXT, NULL, NULL),
  ONE("has_minimum", 5, BOOL, NULL, NULL), ONE("minimum", 6, INT64, NULL, NULL),
  ONE("allowed_values", 7, MESSAGE, &attr_value, NULL)
};
static const tn__pb_message op_def_attr_def = {
  "OpDef.AttrDef", op_def_attr_def_fields, COUNT(op_def_attr_def_fields)
};

static const tn__pb_field op_deprecation_fields[] = {
  ONE("version", 1, INT32, NULL, NULL), ONE("explanation", 2, TEXT, NULL, NULL)
};
static const tn__pb_message op_deprecation = {
  "OpDeprecation", op_deprecation_fields, COUNT(op_deprecation_fields)
};

static const tn__pb_field arg_attr_entry_fields[] = {
  ONE("key", 1, UINT32, NULL, NULL), ONE("value", 2, MESSAGE, &function_def_arg_attrs, NULL)
};
static const tn__pb_message arg_attr_entry = {
  "ArgAttrEntry", arg_attr_entry_fields, COUNT(arg_attr_entry_fields)
};

static const tn__pb_field function_def_arg_attrs_fields[] = {
  MANY("attr", 1, MESSAGE, &tn__pb_attr_entry, NULL)
};
static const tn__pb_message function_def_arg_attrs = {
  "FunctionDef.ArgAttrs", function_def_arg_attrs_fields, COUNT(function_def_arg_attrs_fields)
};

static const tn__pb_field resource_arg_unique_id_entry_fields[] = {
  ONE("key", 1, UINT32, NULL, NULL), ONE("value", 2, UINT32, NULL, NULL)
};
static const tn__pb_message resource_arg_unique_id_entry = {
  "ResourceArgUniqueIdEntry", resource_arg_unique_id_entry_fields, COUNT(resource_arg_unique_id_entry_fields)
};

static const tn__pb_field ret_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, TEXT, NULL, NULL)
};
static const tn__pb_message ret_entry = {
  "RetEntry", ret_entry_fields, COUNT(ret_entry_fields)
};

static const tn__pb_field control_ret_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, TEXT, NULL, NULL)
};
static const tn__pb_message control_ret_entry = {
  "ControlRetEntry", control_ret_entry_fields, COUNT(control_ret_entry_fields)
};

static const tn__pb_field gradient_def_fields[] = {
  ONE("function_name", 1, TEXT, NULL, NULL), ONE("gradient_func", 2, TEXT, NULL, NULL)
};
static const tn__pb_message gradient_def = {
  "GradientDef", gradient_def_fields, COUNT(gradient_def_fields)
};

static const tn__pb_field registered_gradient_fields[] = {
  ONE("gradient_func", 1, TEXT, NULL, NULL), ONE("registered_op_type", 2, TEXT, NULL, NULL)
};
static const tn__pb_message registered_gradient = {
  "RegisteredGradient", registered_gradient_fields, COUNT(registered_gradient_fields)
};

static const tn__pb_field graph_debug_info_fields[] = {
  MANY("files", 1, TEXT, NULL, NULL), MANY("traces", 2, MESSAGE, &traces_entry, NULL),
  MANY("frames_by_id", 4, MESSAGE, &frames_by_id_entry, NULL),
  MANY("name_to_trace_id", 5, MESSAGE, &name_to_trace_id_entry, NULL),
  MANY("traces_by_id", 6, MESSAGE, &traces_by_id_entry, NULL)
};
static const tn__pb_message graph_debug_info = {
  "GraphDebugInfo", graph_debug_info_fields, COUNT(graph_debug_info_fields)
};

static const tn__pb_field frames_by_id_entry_fields[] = {
  ONE("key", 1, FIXED64, NULL, NULL), ONE("value", 2, MESSAGE, &graph_debug_info_file_line_col, NULL)
};
static const tn__pb_message frames_by_id_entry = {
  "FramesByIdEntry", frames_by_id_entry_fields, COUNT(frames_by_id_entry_fields)
};

static const tn__pb_field graph_debug_info_file_line_col_fields[] = {
  ONE("file_index", 1, INT32, NULL, NULL), ONE("line", 2, INT32, NULL, NULL), ONE("col", 3, INT32, NULL, NULL),
  ONE("func", 4, TEXT, NULL, NULL), ONE("code", 5, TEXT, NULL, NULL)
};
static const tn__pb_message graph_debug_info_file_line_col = {
  "GraphDebugInfo.FileLineCol", graph_debug_info_file_line_col_fields, COUNT(graph_debug_info_file_line_col_fields)
};

static const tn__pb_field traces_by_id_entry_fields[] = {
  ONE("key", 1, FIXED64, NULL, NULL), ONE("value", 2, MESSAGE, &graph_debug_info_stack_trace, NULL)
};
static const tn__pb_message traces_by_id_entry = {
  "TracesByIdEntry", traces_by_id_entry_fields, COUNT(traces_by_id_entry_fields)
};

static const tn__pb_field graph_debug_info_stack_trace_fields[] = {
  MANY("file_line_cols", 1, MESSAGE, &graph_debug_info_file_line_col, NULL), MANY("frame_id", 2, FIXED64, NULL, NULL)
};
static const tn__pb_message graph_debug_info_stack_trace = {
  "GraphDebugInfo.StackTrace", graph_debug_info_stack_trace_fields, COUNT(graph_debug_info_stack_trace_fields)
};

static const tn__pb_field traces_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &graph_debug_info_stack_trace, NULL)
};
static const tn__pb_message traces_entry = {
  "TracesEntry", traces_entry_fields, COUNT(traces_entry_fields)
};

static const tn__pb_field name_to_trace_id_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, FIXED64, NULL, NULL)
};
static const tn__pb_message name_to_trace_id_entry = {
  "NameToTraceIdEntry", name_to_trace_id_entry_fields, COUNT(name_to_trace_id_entry_fields)
};
