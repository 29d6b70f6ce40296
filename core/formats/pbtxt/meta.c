/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a SavedModel, a MetaGraphDef and the messages in them: names and numbers of fields. */
#include <core/formats/pbtxt/pbtxt.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ONE(name, number, type, message, names) { name, number, TN__PB_##type, false, false, message, names }
#define MANY(name, number, type, message, names) { name, number, TN__PB_##type, true, false, message, names }
#define CHOICE(name, number, type, message, names) { name, number, TN__PB_##type, false, true, message, names }
#define LIST(name, array) { name, array, COUNT(array) }

/* ---- enums ---- */

static const tn__pb_name saver_def_checkpoint_format_version_values[] = {
  { 0, "LEGACY" }, { 1, "V1" }, { 2, "V2" }
};
static const tn__pb_enum saver_def_checkpoint_format_version =
  LIST("SaverDef.CheckpointFormatVersion", saver_def_checkpoint_format_version_values);

static const tn__pb_name type_spec_proto_type_spec_class_values[] = {
  { 0, "UNKNOWN" }, { 1, "SPARSE_TENSOR_SPEC" }, { 2, "INDEXED_SLICES_SPEC" }, { 3, "RAGGED_TENSOR_SPEC" },
  { 4, "TENSOR_ARRAY_SPEC" }, { 5, "DATA_DATASET_SPEC" }, { 6, "DATA_ITERATOR_SPEC" }, { 7, "OPTIONAL_SPEC" },
  { 8, "PER_REPLICA_SPEC" }, { 9, "VARIABLE_SPEC" }, { 10, "ROW_PARTITION_SPEC" }, { 12, "REGISTERED_TYPE_SPEC" },
  { 13, "EXTENSION_TYPE_SPEC" }
};
static const tn__pb_enum type_spec_proto_type_spec_class =
  LIST("TypeSpecProto.TypeSpecClass", type_spec_proto_type_spec_class_values);

static const tn__pb_name function_spec_jit_compile_values[] = {
  { 0, "DEFAULT" }, { 1, "ON" }, { 2, "OFF" }
};
static const tn__pb_enum function_spec_jit_compile = LIST("FunctionSpec.JitCompile", function_spec_jit_compile_values);

static const tn__pb_name variable_synchronization_values[] = {
  { 0, "VARIABLE_SYNCHRONIZATION_AUTO" }, { 1, "VARIABLE_SYNCHRONIZATION_NONE" },
  { 2, "VARIABLE_SYNCHRONIZATION_ON_WRITE" }, { 3, "VARIABLE_SYNCHRONIZATION_ON_READ" }
};
static const tn__pb_enum variable_synchronization = LIST("VariableSynchronization", variable_synchronization_values);

static const tn__pb_name variable_aggregation_values[] = {
  { 0, "VARIABLE_AGGREGATION_NONE" }, { 1, "VARIABLE_AGGREGATION_SUM" }, { 2, "VARIABLE_AGGREGATION_MEAN" },
  { 3, "VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA" }
};
static const tn__pb_enum variable_aggregation = LIST("VariableAggregation", variable_aggregation_values);

/* ---- messages ---- */

static const tn__pb_message
  meta_info_def, op_list, meta_info_def_function_aliases_entry, saver_def, meta_graph_def_collection_def_entry,
  collection_def, collection_def_node_list, collection_def_bytes_list, collection_def_int64_list,
  collection_def_float_list, collection_def_any_list, meta_graph_def_signature_def_entry, signature_def,
  signature_def_inputs_entry, tensor_info, tensor_info_coo_sparse, tensor_info_composite_tensor, type_spec_proto,
  structured_value, none_value, tensor_spec_proto, bounded_tensor_spec_proto, list_value, tuple_value, dict_value,
  dict_value_fields_entry, named_tuple_value, pair_value, signature_def_outputs_entry, signature_def_defaults_entry,
  asset_file_def, saved_object_graph, saved_object, object_reference, slot_variable_reference, saved_user_object,
  saved_asset, saved_function, function_spec, saved_variable, saved_bare_concrete_function, saved_constant,
  saved_resource, captured_tensor, saved_object_saveable_objects_entry, saveable_object,
  saved_object_graph_concrete_functions_entry, saved_concrete_function;

static const tn__pb_field saved_model_fields[] = {
  ONE("saved_model_schema_version", 1, INT64, NULL, NULL), MANY("meta_graphs", 2, MESSAGE, &tn__pb_meta_graph, NULL)
};
const tn__pb_message tn__pb_saved_model = LIST("SavedModel", saved_model_fields);

static const tn__pb_field meta_graph_fields[] = {
  ONE("meta_info_def", 1, MESSAGE, &meta_info_def, NULL), ONE("graph_def", 2, MESSAGE, &tn__pb_graphdef, NULL),
  ONE("saver_def", 3, MESSAGE, &saver_def, NULL),
  MANY("collection_def", 4, MESSAGE, &meta_graph_def_collection_def_entry, NULL),
  MANY("signature_def", 5, MESSAGE, &meta_graph_def_signature_def_entry, NULL),
  MANY("asset_file_def", 6, MESSAGE, &asset_file_def, NULL),
  ONE("object_graph_def", 7, MESSAGE, &saved_object_graph, NULL)
};
const tn__pb_message tn__pb_meta_graph = LIST("MetaGraphDef", meta_graph_fields);

static const tn__pb_field meta_info_def_fields[] = {
  ONE("meta_graph_version", 1, TEXT, NULL, NULL), ONE("stripped_op_list", 2, MESSAGE, &op_list, NULL),
  ONE("any_info", 3, MESSAGE, &tn__pb_any, NULL), MANY("tags", 4, TEXT, NULL, NULL),
  ONE("tensorflow_version", 5, TEXT, NULL, NULL), ONE("tensorflow_git_version", 6, TEXT, NULL, NULL),
  ONE("stripped_default_attrs", 7, BOOL, NULL, NULL),
  MANY("function_aliases", 8, MESSAGE, &meta_info_def_function_aliases_entry, NULL)
};
static const tn__pb_message meta_info_def = LIST("MetaInfoDef", meta_info_def_fields);

static const tn__pb_field op_list_fields[] = {
  MANY("op", 1, MESSAGE, &tn__pb_op_def, NULL)
};
static const tn__pb_message op_list = LIST("OpList", op_list_fields);

static const tn__pb_field any_fields[] = {
  ONE("type_url", 1, TEXT, NULL, NULL), ONE("value", 2, TEXT, NULL, NULL)
};
const tn__pb_message tn__pb_any = LIST("Any", any_fields);

static const tn__pb_field meta_info_def_function_aliases_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, TEXT, NULL, NULL)
};
static const tn__pb_message meta_info_def_function_aliases_entry =
  LIST("MetaInfoDef.FunctionAliasesEntry", meta_info_def_function_aliases_entry_fields);

static const tn__pb_field saver_def_fields[] = {
  ONE("filename_tensor_name", 1, TEXT, NULL, NULL), ONE("save_tensor_name", 2, TEXT, NULL, NULL),
  ONE("restore_op_name", 3, TEXT, NULL, NULL), ONE("max_to_keep", 4, INT32, NULL, NULL),
  ONE("sharded", 5, BOOL, NULL, NULL), ONE("keep_checkpoint_every_n_hours", 6, FLOAT, NULL, NULL),
  ONE("version", 7, ENUM, NULL, &saver_def_checkpoint_format_version)
};
static const tn__pb_message saver_def = LIST("SaverDef", saver_def_fields);

static const tn__pb_field meta_graph_def_collection_def_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &collection_def, NULL)
};
static const tn__pb_message meta_graph_def_collection_def_entry =
  LIST("MetaGraphDef.CollectionDefEntry", meta_graph_def_collection_def_entry_fields);

static const tn__pb_field collection_def_fields[] = {
  CHOICE("node_list", 1, MESSAGE, &collection_def_node_list, NULL),
  CHOICE("bytes_list", 2, MESSAGE, &collection_def_bytes_list, NULL),
  CHOICE("int64_list", 3, MESSAGE, &collection_def_int64_list, NULL),
  CHOICE("float_list", 4, MESSAGE, &collection_def_float_list, NULL),
  CHOICE("any_list", 5, MESSAGE, &collection_def_any_list, NULL)
};
static const tn__pb_message collection_def = LIST("CollectionDef", collection_def_fields);

static const tn__pb_field collection_def_node_list_fields[] = {
  MANY("value", 1, TEXT, NULL, NULL)
};
static const tn__pb_message collection_def_node_list = LIST("CollectionDef.NodeList", collection_def_node_list_fields);

static const tn__pb_field collection_def_bytes_list_fields[] = {
  MANY("value", 1, TEXT, NULL, NULL)
};
static const tn__pb_message collection_def_bytes_list =
  LIST("CollectionDef.BytesList", collection_def_bytes_list_fields);

static const tn__pb_field collection_def_int64_list_fields[] = {
  MANY("value", 1, INT64, NULL, NULL)
};
static const tn__pb_message collection_def_int64_list =
  LIST("CollectionDef.Int64List", collection_def_int64_list_fields);

static const tn__pb_field collection_def_float_list_fields[] = {
  MANY("value", 1, FLOAT, NULL, NULL)
};
static const tn__pb_message collection_def_float_list =
  LIST("CollectionDef.FloatList", collection_def_float_list_fields);

static const tn__pb_field collection_def_any_list_fields[] = {
  MANY("value", 1, MESSAGE, &tn__pb_any, NULL)
};
static const tn__pb_message collection_def_any_list = LIST("CollectionDef.AnyList", collection_def_any_list_fields);

static const tn__pb_field meta_graph_def_signature_def_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &signature_def, NULL)
};
static const tn__pb_message meta_graph_def_signature_def_entry =
  LIST("MetaGraphDef.SignatureDefEntry", meta_graph_def_signature_def_entry_fields);

static const tn__pb_field signature_def_fields[] = {
  MANY("inputs", 1, MESSAGE, &signature_def_inputs_entry, NULL),
  MANY("outputs", 2, MESSAGE, &signature_def_outputs_entry, NULL), ONE("method_name", 3, TEXT, NULL, NULL),
  MANY("defaults", 4, MESSAGE, &signature_def_defaults_entry, NULL)
};
static const tn__pb_message signature_def = LIST("SignatureDef", signature_def_fields);

static const tn__pb_field signature_def_inputs_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &tensor_info, NULL)
};
static const tn__pb_message signature_def_inputs_entry =
  LIST("SignatureDef.InputsEntry", signature_def_inputs_entry_fields);

static const tn__pb_field tensor_info_fields[] = {
  CHOICE("name", 1, TEXT, NULL, NULL), CHOICE("coo_sparse", 4, MESSAGE, &tensor_info_coo_sparse, NULL),
  CHOICE("composite_tensor", 5, MESSAGE, &tensor_info_composite_tensor, NULL),
  ONE("dtype", 2, ENUM, NULL, &tn__pb_data_type), ONE("tensor_shape", 3, MESSAGE, &tn__pb_shape, NULL)
};
static const tn__pb_message tensor_info = LIST("TensorInfo", tensor_info_fields);

static const tn__pb_field tensor_info_coo_sparse_fields[] = {
  ONE("values_tensor_name", 1, TEXT, NULL, NULL), ONE("indices_tensor_name", 2, TEXT, NULL, NULL),
  ONE("dense_shape_tensor_name", 3, TEXT, NULL, NULL)
};
static const tn__pb_message tensor_info_coo_sparse = LIST("TensorInfo.CooSparse", tensor_info_coo_sparse_fields);

static const tn__pb_field tensor_info_composite_tensor_fields[] = {
  ONE("type_spec", 1, MESSAGE, &type_spec_proto, NULL), MANY("components", 2, MESSAGE, &tensor_info, NULL)
};
static const tn__pb_message tensor_info_composite_tensor =
  LIST("TensorInfo.CompositeTensor", tensor_info_composite_tensor_fields);

static const tn__pb_field type_spec_proto_fields[] = {
  ONE("type_spec_class", 1, ENUM, NULL, &type_spec_proto_type_spec_class),
  ONE("type_state", 2, MESSAGE, &structured_value, NULL), ONE("type_spec_class_name", 3, TEXT, NULL, NULL),
  ONE("num_flat_components", 4, INT32, NULL, NULL)
};
static const tn__pb_message type_spec_proto = LIST("TypeSpecProto", type_spec_proto_fields);

static const tn__pb_field structured_value_fields[] = {
  CHOICE("none_value", 1, MESSAGE, &none_value, NULL), CHOICE("float64_value", 11, DOUBLE, NULL, NULL),
  CHOICE("int64_value", 12, SINT64, NULL, NULL), CHOICE("string_value", 13, TEXT, NULL, NULL),
  CHOICE("bool_value", 14, BOOL, NULL, NULL), CHOICE("tensor_shape_value", 31, MESSAGE, &tn__pb_shape, NULL),
  CHOICE("tensor_dtype_value", 32, ENUM, NULL, &tn__pb_data_type),
  CHOICE("tensor_spec_value", 33, MESSAGE, &tensor_spec_proto, NULL),
  CHOICE("type_spec_value", 34, MESSAGE, &type_spec_proto, NULL),
  CHOICE("bounded_tensor_spec_value", 35, MESSAGE, &bounded_tensor_spec_proto, NULL),
  CHOICE("list_value", 51, MESSAGE, &list_value, NULL), CHOICE("tuple_value", 52, MESSAGE, &tuple_value, NULL),
  CHOICE("dict_value", 53, MESSAGE, &dict_value, NULL),
  CHOICE("named_tuple_value", 54, MESSAGE, &named_tuple_value, NULL),
  CHOICE("tensor_value", 55, MESSAGE, &tn__pb_tensor, NULL), CHOICE("numpy_value", 56, MESSAGE, &tn__pb_tensor, NULL)
};
static const tn__pb_message structured_value = LIST("StructuredValue", structured_value_fields);

static const tn__pb_message none_value = { "NoneValue", NULL, 0 };

static const tn__pb_field tensor_spec_proto_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("shape", 2, MESSAGE, &tn__pb_shape, NULL),
  ONE("dtype", 3, ENUM, NULL, &tn__pb_data_type)
};
static const tn__pb_message tensor_spec_proto = LIST("TensorSpecProto", tensor_spec_proto_fields);

static const tn__pb_field bounded_tensor_spec_proto_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("shape", 2, MESSAGE, &tn__pb_shape, NULL),
  ONE("dtype", 3, ENUM, NULL, &tn__pb_data_type), ONE("minimum", 4, MESSAGE, &tn__pb_tensor, NULL),
  ONE("maximum", 5, MESSAGE, &tn__pb_tensor, NULL)
};
static const tn__pb_message bounded_tensor_spec_proto =
  LIST("BoundedTensorSpecProto", bounded_tensor_spec_proto_fields);

static const tn__pb_field list_value_fields[] = {
  MANY("values", 1, MESSAGE, &structured_value, NULL)
};
static const tn__pb_message list_value = LIST("ListValue", list_value_fields);

static const tn__pb_field tuple_value_fields[] = {
  MANY("values", 1, MESSAGE, &structured_value, NULL)
};
static const tn__pb_message tuple_value = LIST("TupleValue", tuple_value_fields);

static const tn__pb_field dict_value_fields[] = {
  MANY("fields", 1, MESSAGE, &dict_value_fields_entry, NULL)
};
static const tn__pb_message dict_value = LIST("DictValue", dict_value_fields);

static const tn__pb_field dict_value_fields_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &structured_value, NULL)
};
static const tn__pb_message dict_value_fields_entry = LIST("DictValue.FieldsEntry", dict_value_fields_entry_fields);

static const tn__pb_field named_tuple_value_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), MANY("values", 2, MESSAGE, &pair_value, NULL)
};
static const tn__pb_message named_tuple_value = LIST("NamedTupleValue", named_tuple_value_fields);

static const tn__pb_field pair_value_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &structured_value, NULL)
};
static const tn__pb_message pair_value = LIST("PairValue", pair_value_fields);

static const tn__pb_field signature_def_outputs_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &tensor_info, NULL)
};
static const tn__pb_message signature_def_outputs_entry =
  LIST("SignatureDef.OutputsEntry", signature_def_outputs_entry_fields);

static const tn__pb_field signature_def_defaults_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &tn__pb_tensor, NULL)
};
static const tn__pb_message signature_def_defaults_entry =
  LIST("SignatureDef.DefaultsEntry", signature_def_defaults_entry_fields);

static const tn__pb_field asset_file_def_fields[] = {
  ONE("tensor_info", 1, MESSAGE, &tensor_info, NULL), ONE("filename", 2, TEXT, NULL, NULL)
};
static const tn__pb_message asset_file_def = LIST("AssetFileDef", asset_file_def_fields);

static const tn__pb_field saved_object_graph_fields[] = {
  MANY("nodes", 1, MESSAGE, &saved_object, NULL),
  MANY("concrete_functions", 2, MESSAGE, &saved_object_graph_concrete_functions_entry, NULL)
};
static const tn__pb_message saved_object_graph = LIST("SavedObjectGraph", saved_object_graph_fields);

static const tn__pb_field saved_object_fields[] = {
  MANY("children", 1, MESSAGE, &object_reference, NULL), MANY("dependencies", 15, MESSAGE, &object_reference, NULL),
  MANY("slot_variables", 3, MESSAGE, &slot_variable_reference, NULL),
  CHOICE("user_object", 4, MESSAGE, &saved_user_object, NULL), CHOICE("asset", 5, MESSAGE, &saved_asset, NULL),
  CHOICE("function", 6, MESSAGE, &saved_function, NULL), CHOICE("variable", 7, MESSAGE, &saved_variable, NULL),
  CHOICE("bare_concrete_function", 8, MESSAGE, &saved_bare_concrete_function, NULL),
  CHOICE("constant", 9, MESSAGE, &saved_constant, NULL), CHOICE("resource", 10, MESSAGE, &saved_resource, NULL),
  CHOICE("captured_tensor", 12, MESSAGE, &captured_tensor, NULL),
  MANY("saveable_objects", 11, MESSAGE, &saved_object_saveable_objects_entry, NULL),
  ONE("registered_name", 13, TEXT, NULL, NULL), ONE("serialized_user_proto", 14, MESSAGE, &tn__pb_any, NULL),
  ONE("registered_saver", 16, TEXT, NULL, NULL)
};
static const tn__pb_message saved_object = LIST("SavedObject", saved_object_fields);

static const tn__pb_field object_reference_fields[] = {
  ONE("node_id", 1, INT32, NULL, NULL), ONE("local_name", 2, TEXT, NULL, NULL)
};
static const tn__pb_message object_reference =
  LIST("TrackableObjectGraph.TrackableObject.ObjectReference", object_reference_fields);

static const tn__pb_field slot_variable_reference_fields[] = {
  ONE("original_variable_node_id", 1, INT32, NULL, NULL), ONE("slot_name", 2, TEXT, NULL, NULL),
  ONE("slot_variable_node_id", 3, INT32, NULL, NULL)
};
static const tn__pb_message slot_variable_reference =
  LIST("TrackableObjectGraph.TrackableObject.SlotVariableReference", slot_variable_reference_fields);

static const tn__pb_field saved_user_object_fields[] = {
  ONE("identifier", 1, TEXT, NULL, NULL), ONE("version", 2, MESSAGE, &tn__pb_version, NULL),
  ONE("metadata", 3, TEXT, NULL, NULL)
};
static const tn__pb_message saved_user_object = LIST("SavedUserObject", saved_user_object_fields);

static const tn__pb_field saved_asset_fields[] = {
  ONE("asset_file_def_index", 1, INT32, NULL, NULL)
};
static const tn__pb_message saved_asset = LIST("SavedAsset", saved_asset_fields);

static const tn__pb_field saved_function_fields[] = {
  MANY("concrete_functions", 1, TEXT, NULL, NULL), ONE("function_spec", 2, MESSAGE, &function_spec, NULL)
};
static const tn__pb_message saved_function = LIST("SavedFunction", saved_function_fields);

static const tn__pb_field function_spec_fields[] = {
  ONE("fullargspec", 1, MESSAGE, &structured_value, NULL), ONE("is_method", 2, BOOL, NULL, NULL),
  ONE("input_signature", 5, MESSAGE, &structured_value, NULL),
  ONE("jit_compile", 6, ENUM, NULL, &function_spec_jit_compile)
};
static const tn__pb_message function_spec = LIST("FunctionSpec", function_spec_fields);

static const tn__pb_field saved_variable_fields[] = {
  ONE("dtype", 1, ENUM, NULL, &tn__pb_data_type), ONE("shape", 2, MESSAGE, &tn__pb_shape, NULL),
  ONE("trainable", 3, BOOL, NULL, NULL), ONE("synchronization", 4, ENUM, NULL, &variable_synchronization),
  ONE("aggregation", 5, ENUM, NULL, &variable_aggregation), ONE("name", 6, TEXT, NULL, NULL),
  ONE("device", 7, TEXT, NULL, NULL),
  MANY("experimental_distributed_variable_components", 8, MESSAGE, &saved_variable, NULL)
};
static const tn__pb_message saved_variable = LIST("SavedVariable", saved_variable_fields);

static const tn__pb_field saved_bare_concrete_function_fields[] = {
  ONE("concrete_function_name", 1, TEXT, NULL, NULL), MANY("argument_keywords", 2, TEXT, NULL, NULL),
  ONE("allowed_positional_arguments", 3, INT64, NULL, NULL), ONE("function_spec", 4, MESSAGE, &function_spec, NULL)
};
static const tn__pb_message saved_bare_concrete_function =
  LIST("SavedBareConcreteFunction", saved_bare_concrete_function_fields);

static const tn__pb_field saved_constant_fields[] = {
  ONE("operation", 1, TEXT, NULL, NULL)
};
static const tn__pb_message saved_constant = LIST("SavedConstant", saved_constant_fields);

static const tn__pb_field saved_resource_fields[] = {
  ONE("device", 1, TEXT, NULL, NULL)
};
static const tn__pb_message saved_resource = LIST("SavedResource", saved_resource_fields);

static const tn__pb_field captured_tensor_fields[] = {
  ONE("name", 1, TEXT, NULL, NULL), ONE("concrete_function", 2, TEXT, NULL, NULL)
};
static const tn__pb_message captured_tensor = LIST("CapturedTensor", captured_tensor_fields);

static const tn__pb_field saved_object_saveable_objects_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &saveable_object, NULL)
};
static const tn__pb_message saved_object_saveable_objects_entry =
  LIST("SavedObject.SaveableObjectsEntry", saved_object_saveable_objects_entry_fields);

static const tn__pb_field saveable_object_fields[] = {
  ONE("save_function", 2, INT32, NULL, NULL), ONE("restore_function", 3, INT32, NULL, NULL)
};
static const tn__pb_message saveable_object = LIST("SaveableObject", saveable_object_fields);

static const tn__pb_field saved_object_graph_concrete_functions_entry_fields[] = {
  ONE("key", 1, TEXT, NULL, NULL), ONE("value", 2, MESSAGE, &saved_concrete_function, NULL)
};
static const tn__pb_message saved_object_graph_concrete_functions_entry =
  LIST("SavedObjectGraph.ConcreteFunctionsEntry", saved_object_graph_concrete_functions_entry_fields);

static const tn__pb_field saved_concrete_function_fields[] = {
  MANY("bound_inputs", 2, INT32, NULL, NULL),
  ONE("canonicalized_input_signature", 3, MESSAGE, &structured_value, NULL),
  ONE("output_signature", 4, MESSAGE, &structured_value, NULL)
};
static const tn__pb_message saved_concrete_function = LIST("SavedConcreteFunction", saved_concrete_function_fields);

/* ---- messages in an Any ---- */

const tn__pb_message *const tn__pb_any_types[] = {
  &asset_file_def, &tensor_info, &signature_def, &tn__pb_graphdef, &tn__pb_tensor, &tn__pb_meta_graph, NULL
};
