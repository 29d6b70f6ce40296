/* SPDX-License-Identifier: Apache-2.0 */
/* The host table: through it a plugin calls the library without referencing any of its symbols.
 *
 * The lists below are the only definition: the tables, the inline functions that plugins call, and
 * the library's own tables are all generated from them. A list only grows, at its end; a new list
 * is a new table at the end of tn_host. F(type, name, parameters, arguments) returns a value,
 * P(name, parameters, arguments) does not. Since 0.1 */
#ifndef TENON_HOST_H
#define TENON_HOST_H

#include <tenon/types.h>

TN_BEGIN_DECLS

#define TN_HOST_BASE(F, P)                                                                                         \
  F(const char *, tn_status_name, (tn_status code), (code))                                                        \
  F(const char *, tn_status_text, (tn_status code), (code))                                                        \
  F(tn_status, tn_status_from_name, (const char *name, tn_status *out), (name, out))                               \
  P(tn_error_init, (tn_error *err), (err))                                                                         \
  P(tn_error_clear, (tn_error *err), (err))                                                                        \
  F(tn_status, tn_error_code, (const tn_error *err), (err))                                                        \
  F(const char *, tn_error_message, (const tn_error *err), (err))                                                  \
  F(const char *, tn_error_node, (const tn_error *err), (err))                                                     \
  F(size_t, tn_error_n_causes, (const tn_error *err), (err))                                                       \
  F(const char *, tn_error_cause, (const tn_error *err, size_t i), (err, i))                                       \
  F(size_t, tn_error_format, (const tn_error *err, char *buffer, size_t size), (err, buffer, size))                \
  P(tn_error_copy, (tn_error *to, const tn_error *from), (to, from))                                               \
  P(tn_error_set_node, (tn_error *err, const char *node), (err, node))                                             \
  F(const char *, tn_version, (void), ())                                                                          \
  F(tn_status, tn_set_allocator, (const tn_allocator *allocator, tn_error *err), (allocator, err))                 \
  F(void *, tn_alloc, (size_t bytes), (bytes))                                                                     \
  P(tn_free, (void *memory), (memory))                                                                             \
  P(tn_set_log_sink, (void (*sink)(void *, int32_t, const char *), void *user), (sink, user))                      \
  P(tn_set_log_level, (int32_t level), (level))                                                                    \
  F(tn_bool, tn_log_enabled, (int32_t level), (level))                                                             \
  F(const char *, tn_session_options_target, (const tn_session_options *o), (o))                                   \
  F(const char *, tn_session_options_runtime, (const tn_session_options *o), (o))                                  \
  F(const char *, tn_session_options_setting, (const tn_session_options *o, const char *key), (o, key))            \
  F(const char *, tn_session_options_setting_at, (const tn_session_options *o, size_t i, const char **value),      \
    (o, i, value))                                                                                                 \
  F(tn_status, tn_session_options_get_int,                                                                         \
    (const tn_session_options *o, const char *field, int64_t *out, tn_error *err), (o, field, out, err))           \
  F(tn_status, tn_session_options_get_bool,                                                                        \
    (const tn_session_options *o, const char *field, tn_bool *out, tn_error *err), (o, field, out, err))           \
  F(tn_status, tn_session_options_get_string,                                                                      \
    (const tn_session_options *o, const char *field, const char **out, tn_error *err), (o, field, out, err))       \
  F(tn_status, tn_session_options_check_settings,                                                                  \
    (const tn_session_options *o, const char *const *keys, size_t n, tn_error *err), (o, keys, n, err))            \
  F(tn_bool, tn_cancellation_is_cancelled, (const tn_cancellation *c), (c))                                        \
  F(uint64_t, tn_cancellation_register, (tn_cancellation *c, void (*callback)(void *user), void *user),            \
    (c, callback, user))                                                                                           \
  F(tn_bool, tn_cancellation_deregister, (tn_cancellation *c, uint64_t key), (c, key))                             \
  F(tn_bool, tn_cancellation_try_deregister, (tn_cancellation *c, uint64_t key), (c, key))                         \
  F(tn_status, tn_session_options_get_float,                                                                       \
    (const tn_session_options *o, const char *field, double *out, tn_error *err), (o, field, out, err))            \
  F(tn_status, tn_session_options_get_item,                                                                        \
    (const tn_session_options *o, const char *field, size_t i, const char **text, int64_t *number, tn_error *err), \
    (o, field, i, text, number, err))

#define TN_HOST_TENSOR(F, P)                                                                                           \
  F(const char *, tn_dtype_name, (tn_dtype dtype), (dtype))                                                            \
  F(tn_dtype, tn_dtype_from_name, (const char *name), (name))                                                          \
  F(size_t, tn_dtype_size, (tn_dtype dtype), (dtype))                                                                  \
  F(tn_status, tn_shape_elements, (const int64_t *dims, int32_t rank, int64_t *elements, tn_error *err),               \
    (dims, rank, elements, err))                                                                                       \
  F(tn_status, tn_shape_bytes, (tn_dtype dtype, const int64_t *dims, int32_t rank, size_t *bytes, tn_error *err),      \
    (dtype, dims, rank, bytes, err))                                                                                   \
  F(const char *, tn_string_data, (const tn_string *s, size_t *length), (s, length))                                   \
  F(tn_status, tn_string_set, (tn_string *s, const void *data, size_t length, tn_error *err), (s, data, length, err))  \
  P(tn_string_clear, (tn_string *s), (s))                                                                              \
  F(tn_status, tn_buffer_create, (const tn_buffer_desc *desc, tn_buffer **out, tn_error *err), (desc, out, err))       \
  F(tn_buffer *, tn_buffer_ref, (tn_buffer *buffer), (buffer))                                                         \
  P(tn_buffer_unref, (tn_buffer *buffer), (buffer))                                                                    \
  F(const tn_buffer_desc *, tn_buffer_describe, (const tn_buffer *buffer), (buffer))                                   \
  F(tn_status, tn_tensor_create, (tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err),  \
    (dtype, dims, rank, out, err))                                                                                     \
  F(tn_status, tn_tensor_from_data,                                                                                    \
    (tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data, size_t bytes, tn_tensor **out,               \
     tn_error *err),                                                                                                   \
    (dtype, dims, rank, data, bytes, out, err))                                                                        \
  F(tn_status, tn_tensor_wrap,                                                                                         \
    (tn_dtype dtype, const int64_t *dims, int32_t rank, void *data, size_t bytes, tn_release_fn release, void *user,   \
     tn_tensor **out, tn_error *err),                                                                                  \
    (dtype, dims, rank, data, bytes, release, user, out, err))                                                         \
  F(tn_status, tn_tensor_from_buffer,                                                                                  \
    (tn_dtype dtype, const int64_t *dims, int32_t rank, tn_buffer *buffer, size_t offset, tn_tensor **out,             \
     tn_error *err),                                                                                                   \
    (dtype, dims, rank, buffer, offset, out, err))                                                                     \
  F(tn_status, tn_tensor_from_strings,                                                                                 \
    (const int64_t *dims, int32_t rank, const char *const *texts, const size_t *lengths, tn_tensor **out,              \
     tn_error *err),                                                                                                   \
    (dims, rank, texts, lengths, out, err))                                                                            \
  F(tn_status, tn_tensor_reshape, (tn_tensor *t, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err),   \
    (t, dims, rank, out, err))                                                                                         \
  F(tn_status, tn_tensor_copy, (const tn_tensor *t, tn_tensor **out, tn_error *err), (t, out, err))                    \
  F(tn_tensor *, tn_tensor_ref, (tn_tensor *t), (t))                                                                   \
  P(tn_tensor_unref, (tn_tensor *t), (t))                                                                              \
  F(tn_dtype, tn_tensor_dtype, (const tn_tensor *t), (t))                                                              \
  F(int32_t, tn_tensor_rank, (const tn_tensor *t), (t))                                                                \
  F(const int64_t *, tn_tensor_dims, (const tn_tensor *t), (t))                                                        \
  F(int64_t, tn_tensor_elements, (const tn_tensor *t), (t))                                                            \
  F(size_t, tn_tensor_bytes, (const tn_tensor *t), (t))                                                                \
  F(void *, tn_tensor_data, (const tn_tensor *t), (t))                                                                 \
  F(tn_buffer *, tn_tensor_buffer, (const tn_tensor *t), (t))                                                          \
  F(tn_bool, tn_tensor_is_exclusive, (const tn_tensor *t), (t))                                                        \
  F(tn_status, tn_tensor_read, (const tn_tensor *t, void *to, size_t bytes, tn_error *err), (t, to, bytes, err))       \
  F(tn_status, tn_tensor_get_string,                                                                                   \
    (const tn_tensor *t, int64_t i, const char **text, size_t *length, tn_error *err), (t, i, text, length, err))      \
  F(tn_status, tn_tensor_set_string, (tn_tensor *t, int64_t i, const void *text, size_t length, tn_error *err),        \
    (t, i, text, length, err))

#define TN_HOST_GRAPH(F, P)                                                                                            \
  F(size_t, tn_graph_n_operations, (const tn_graph *g), (g))                                                           \
  F(tn_operation *, tn_graph_operation, (const tn_graph *g, size_t i), (g, i))                                         \
  F(tn_operation *, tn_graph_find, (const tn_graph *g, const char *name), (g, name))                                   \
  F(const char *, tn_operation_name, (const tn_operation *op), (op))                                                   \
  F(const char *, tn_operation_type, (const tn_operation *op), (op))                                                   \
  F(const char *, tn_operation_device, (const tn_operation *op), (op))                                                 \
  F(const tn_op_schema *, tn_operation_schema, (const tn_operation *op), (op))                                         \
  F(size_t, tn_operation_n_inputs, (const tn_operation *op), (op))                                                     \
  F(tn_output, tn_operation_input, (const tn_operation *op, size_t i), (op, i))                                        \
  F(size_t, tn_operation_n_control_inputs, (const tn_operation *op), (op))                                             \
  F(tn_operation *, tn_operation_control_input, (const tn_operation *op, size_t i), (op, i))                           \
  F(size_t, tn_operation_n_outputs, (const tn_operation *op), (op))                                                    \
  F(tn_dtype, tn_operation_output_dtype, (const tn_operation *op, size_t i), (op, i))                                  \
  F(tn_dtype, tn_operation_input_dtype, (const tn_operation *op, size_t i), (op, i))                                   \
  F(tn_status, tn_operation_input_range,                                                                               \
    (const tn_operation *op, const char *arg, size_t *first, size_t *n, tn_error *err), (op, arg, first, n, err))      \
  F(tn_status, tn_operation_output_range,                                                                              \
    (const tn_operation *op, const char *arg, size_t *first, size_t *n, tn_error *err), (op, arg, first, n, err))      \
  F(tn_status, tn_output_shape, (tn_output output, int64_t *dims, int32_t room, int32_t *rank, tn_error *err),         \
    (output, dims, room, rank, err))                                                                                   \
  F(size_t, tn_operation_n_attrs, (const tn_operation *op), (op))                                                      \
  F(const char *, tn_operation_attr_name, (const tn_operation *op, size_t i), (op, i))                                 \
  F(int32_t, tn_operation_attr_kind, (const tn_operation *op, const char *name), (op, name))                           \
  F(tn_status, tn_operation_attr_int, (const tn_operation *op, const char *name, int64_t *out, tn_error *err),         \
    (op, name, out, err))                                                                                              \
  F(tn_status, tn_operation_attr_float, (const tn_operation *op, const char *name, float *out, tn_error *err),         \
    (op, name, out, err))                                                                                              \
  F(tn_status, tn_operation_attr_bool, (const tn_operation *op, const char *name, tn_bool *out, tn_error *err),        \
    (op, name, out, err))                                                                                              \
  F(tn_status, tn_operation_attr_type, (const tn_operation *op, const char *name, tn_dtype *out, tn_error *err),       \
    (op, name, out, err))                                                                                              \
  F(tn_status, tn_operation_attr_string,                                                                               \
    (const tn_operation *op, const char *name, const char **text, size_t *length, tn_error *err),                      \
    (op, name, text, length, err))                                                                                     \
  F(tn_status, tn_operation_attr_shape,                                                                                \
    (const tn_operation *op, const char *name, const int64_t **dims, int32_t *rank, tn_error *err),                    \
    (op, name, dims, rank, err))                                                                                       \
  F(tn_status, tn_operation_attr_tensor,                                                                               \
    (const tn_operation *op, const char *name, tn_tensor **tensor, tn_error *err), (op, name, tensor, err))            \
  F(tn_status, tn_operation_attr_func,                                                                                 \
    (const tn_operation *op, const char *name, const char **function, tn_error *err), (op, name, function, err))       \
  F(tn_status, tn_operation_attr_ints,                                                                                 \
    (const tn_operation *op, const char *name, const int64_t **values, size_t *n, tn_error *err),                      \
    (op, name, values, n, err))                                                                                        \
  F(tn_status, tn_operation_attr_floats,                                                                               \
    (const tn_operation *op, const char *name, const float **values, size_t *n, tn_error *err),                        \
    (op, name, values, n, err))                                                                                        \
  F(tn_status, tn_operation_attr_bools,                                                                                \
    (const tn_operation *op, const char *name, const tn_bool **values, size_t *n, tn_error *err),                      \
    (op, name, values, n, err))                                                                                        \
  F(tn_status, tn_operation_attr_types,                                                                                \
    (const tn_operation *op, const char *name, const tn_dtype **values, size_t *n, tn_error *err),                     \
    (op, name, values, n, err))                                                                                        \
  F(tn_status, tn_operation_attr_string_at,                                                                            \
    (const tn_operation *op, const char *name, size_t i, const char **text, size_t *length, size_t *n, tn_error *err), \
    (op, name, i, text, length, n, err))                                                                               \
  F(tn_status, tn_operation_attr_shape_at,                                                                             \
    (const tn_operation *op, const char *name, size_t i, const int64_t **dims, int32_t *rank, size_t *n,               \
     tn_error *err),                                                                                                   \
    (op, name, i, dims, rank, n, err))                                                                                 \
  F(tn_status, tn_operation_attr_tensor_at,                                                                            \
    (const tn_operation *op, const char *name, size_t i, tn_tensor **tensor, size_t *n, tn_error *err),                \
    (op, name, i, tensor, n, err))                                                                                     \
  F(tn_status, tn_operation_attr_func_at,                                                                              \
    (const tn_operation *op, const char *name, size_t i, const char **function, size_t *n, tn_error *err),             \
    (op, name, i, function, n, err))                                                                                   \
  F(size_t, tn_n_op_schemas, (void), ())                                                                               \
  F(const tn_op_schema *, tn_op_schema_at, (size_t i), (i))                                                            \
  F(const tn_op_schema *, tn_op_schema_find, (const char *op), (op))                                                   \
  F(const char *, tn_op_schema_name, (const tn_op_schema *s), (s))                                                     \
  F(uint32_t, tn_op_schema_traits, (const tn_op_schema *s), (s))                                                       \
  F(size_t, tn_op_schema_format, (const tn_op_schema *s, char *buffer, size_t size), (s, buffer, size))                \
  F(const tn_kernel_def *, tn_op_schema_kernel, (const tn_op_schema *s, size_t i), (s, i))                             \
  F(tn_status, tn_output_consumers, (tn_output output, tn_consumer *out, size_t room, size_t *n, tn_error *err),       \
    (output, out, room, n, err))                                                                                       \
  F(tn_status, tn_operation_control_consumers,                                                                         \
    (const tn_operation *op, tn_consumer *out, size_t room, size_t *n, tn_error *err), (op, out, room, n, err))        \
  F(size_t, tn_op_schema_n_inputs, (const tn_op_schema *s), (s))                                                       \
  F(size_t, tn_op_schema_n_outputs, (const tn_op_schema *s), (s))                                                      \
  F(size_t, tn_op_schema_n_attrs, (const tn_op_schema *s), (s))                                                        \
  F(tn_status, tn_op_schema_input, (const tn_op_schema *s, size_t i, tn_op_arg *out, tn_error *err), (s, i, out, err)) \
  F(tn_status, tn_op_schema_output, (const tn_op_schema *s, size_t i, tn_op_arg *out, tn_error *err),                  \
    (s, i, out, err))                                                                                                  \
  F(tn_status, tn_op_schema_attr, (const tn_op_schema *s, size_t i, tn_op_attr *out, tn_error *err), (s, i, out, err)) \
  F(const char *, tn_op_schema_attr_string, (const tn_op_schema *s, size_t i, size_t k), (s, i, k))                    \
  F(tn_status, tn_operation_attr_value,                                                                                \
    (const tn_operation *op, const char *name, size_t i, tn_attr_value *out, tn_error *err), (op, name, i, out, err))  \
  F(tn_status, tn_attr_value_attr,                                                                                     \
    (const tn_attr_value *func, size_t k, size_t i, const char **name, tn_attr_value *out, tn_error *err),             \
    (func, k, i, name, out, err))                                                                                      \
  F(tn_status, tn_operation_attr_size,                                                                                 \
    (const tn_operation *op, const char *name, int64_t *n, int64_t *total, tn_error *err), (op, name, n, total, err))  \
  F(tn_status, tn_operation_attr_proto,                                                                                \
    (const tn_operation *op, const char *name, void **bytes, size_t *size, tn_error *err),                             \
    (op, name, bytes, size, err))                                                                                      \
  F(tn_status, tn_operation_node_def, (const tn_operation *op, void **bytes, size_t *size, tn_error *err),             \
    (op, bytes, size, err))                                                                                            \
  F(tn_status, tn_op_schema_attr_default,                                                                              \
    (const tn_op_schema *s, size_t i, size_t k, tn_attr_value *out, tn_error *err), (s, i, k, out, err))               \
  F(tn_status, tn_op_schema_op_def, (const tn_op_schema *s, void **bytes, size_t *size, tn_error *err),                \
    (s, bytes, size, err))                                                                                             \
  F(tn_status, tn_operation_attr_tensor_shape,                                                                         \
    (const tn_operation *op, const char *name, tn_dtype *dtype, int64_t *dims, int32_t *rank, tn_error *err),          \
    (op, name, dtype, dims, rank, err))

#define TN_HOST_OP(F, P)                                                                                              \
  F(tn_status, tn_register_ops, (const tn_op_family *family, tn_error *err), (family, err))                           \
  F(tn_status, tn_prepare_output,                                                                                     \
    (tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank, tn_error *err), (ctx, i, dims, rank, err))   \
  F(tn_status, tn_prepare_output_like, (tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err),                  \
    (ctx, i, j, err))                                                                                                 \
  F(tn_status, tn_prepare_view, (tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err), (ctx, i, j, err))       \
  F(tn_status, tn_prepare_in_place, (tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err), (ctx, i, j, err))   \
  F(tn_status, tn_prepare_dynamic, (tn_prepare_ctx *ctx, uint32_t i, tn_error *err), (ctx, i, err))                   \
  F(tn_status, tn_prepare_pack,                                                                                       \
    (tn_prepare_ctx *ctx, uint32_t i, uint64_t key, size_t bytes,                                                     \
     tn_status(*pack)(void *user, const tn_view *from, void *to, tn_error *err), void *user, const void **packed,     \
     tn_error *err),                                                                                                  \
    (ctx, i, key, bytes, pack, user, packed, err))                                                                    \
  F(tn_bool, tn_kernel_cancelled, (const tn_kernel_ctx *ctx), (ctx))                                                  \
  F(tn_status, tn_kernel_allocate, (tn_kernel_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank),               \
    (ctx, i, dims, rank))                                                                                             \
  F(tn_status, tn_kernel_set_output, (tn_kernel_ctx *ctx, uint32_t i, tn_tensor *tensor), (ctx, i, tensor))           \
  P(tn_parallel_for,                                                                                                  \
    (tn_kernel_ctx *ctx, int64_t n, int64_t grain, double cost_ns,                                                    \
     void (*fn)(void *user, int64_t begin, int64_t end), void *user),                                                 \
    (ctx, n, grain, cost_ns, fn, user))                                                                               \
  F(tn_status, tn_kernel_wait,                                                                                        \
    (tn_kernel_ctx *ctx, void (*cancel)(void *user, tn_wait_token *token), void *user, tn_wait_token **token),        \
    (ctx, cancel, user, token))                                                                                       \
  P(tn_wake, (tn_wait_token *token), (token))                                                                         \
  F(const tn_operation *, tn_infer_operation, (const tn_infer_ctx *ctx), (ctx))                                       \
  F(size_t, tn_infer_n_inputs, (const tn_infer_ctx *ctx), (ctx))                                                      \
  F(int32_t, tn_infer_input, (const tn_infer_ctx *ctx, size_t i, const int64_t **dims), (ctx, i, dims))               \
  F(const tn_tensor *, tn_infer_input_value, (const tn_infer_ctx *ctx, size_t i), (ctx, i))                           \
  F(tn_status, tn_infer_output, (tn_infer_ctx *ctx, size_t i, const int64_t *dims, int32_t rank, tn_error *err),      \
    (ctx, i, dims, rank, err))                                                                                        \
  F(int64_t, tn_infer_input_ints, (const tn_infer_ctx *ctx, size_t i, const int64_t **items), (ctx, i, items))        \
  F(int32_t, tn_infer_input_as_shape, (const tn_infer_ctx *ctx, size_t i, int64_t *dims), (ctx, i, dims))             \
  F(tn_status, tn_infer_output_ints, (tn_infer_ctx *ctx, size_t i, const int64_t *items, int64_t n, tn_error *err),   \
    (ctx, i, items, n, err))                                                                                          \
  F(tn_bool, tn_prepare_is_constant, (const tn_prepare_ctx *ctx, uint32_t i), (ctx, i))                               \
  F(tn_status, tn_prepare_given, (tn_prepare_ctx *ctx, uint32_t i, tn_error *err), (ctx, i, err))                     \
  F(tn_status, tn_kernel_keep_input, (tn_kernel_ctx *ctx, uint32_t i, tn_tensor **out), (ctx, i, out))                \
  F(tn_status, tn_kernel_call,                                                                                        \
    (tn_kernel_ctx *ctx, uint32_t k, tn_view *const *inputs, uint32_t n_inputs, tn_tensor **outputs,                  \
     uint32_t n_outputs),                                                                                             \
    (ctx, k, inputs, n_inputs, outputs, n_outputs))                                                                   \
  F(uint32_t, tn_operation_n_functions, (const tn_operation *op), (op))                                               \
  F(tn_resource *, tn_resource_ref, (tn_resource *resource), (resource))                                              \
  P(tn_resource_unref, (tn_resource *resource), (resource))                                                           \
  F(void *, tn_resource_object, (const tn_resource *resource), (resource))                                            \
  F(const char *, tn_resource_name, (const tn_resource *resource), (resource))                                        \
  F(const tn_resource_class *, tn_resource_class_of, (const tn_resource *resource), (resource))                       \
  F(tn_status, tn_resource_create,                                                                                    \
    (const tn_resource_class *cls, const char *name, void *object, tn_resource **out, tn_error *err),                 \
    (cls, name, object, out, err))                                                                                    \
  F(tn_bool, tn_resource_is_alive, (const tn_resource *resource), (resource))                                         \
  F(tn_handle *, tn_resource_handle, (tn_resource *resource), (resource))                                             \
  F(tn_resource *, tn_handle_resource, (tn_handle *handle), (handle))                                                 \
  F(tn_status, tn_kernel_obtain,                                                                                      \
    (tn_kernel_ctx *ctx, const char *container, const char *name, const tn_resource_class *cls,                       \
     tn_status (*make)(void *user, void **object, tn_error *err), void *user, tn_resource **out),                     \
    (ctx, container, name, cls, make, user, out))                                                                     \
  F(tn_status, tn_kernel_lookup,                                                                                      \
    (tn_kernel_ctx *ctx, const char *container, const char *name, const tn_resource_class *cls, tn_resource **out),   \
    (ctx, container, name, cls, out))                                                                                 \
  F(tn_status, tn_kernel_remove, (tn_kernel_ctx * ctx, tn_resource *resource), (ctx, resource))

#define TN_HOST_KIT(F, P)                                                                                              \
  F(uint64_t, tn_step_id, (const tn_step *step), (step))                                                               \
  F(size_t, tn_step_n_inputs, (const tn_step *step), (step))                                                           \
  F(tn_tensor *, tn_step_input, (const tn_step *step, size_t i), (step, i))                                            \
  F(size_t, tn_step_n_outputs, (const tn_step *step), (step))                                                          \
  F(tn_tensor *, tn_step_output, (const tn_step *step, size_t i), (step, i))                                           \
  P(tn_step_set_output, (tn_step *step, size_t i, tn_tensor *tensor), (step, i, tensor))                               \
  F(tn_bool, tn_step_cancelled, (const tn_step *step), (step))                                                         \
  F(tn_cancellation *, tn_step_cancellation, (tn_step *step), (step))                                                  \
  F(tn_status, tn_kit_prepare, (const tn_plan *plan, uint32_t flags, tn_executable **out, tn_error *err),              \
    (plan, flags, out, err))                                                                                           \
  P(tn_kit_release, (tn_executable *executable), (executable))                                                         \
  F(tn_status, tn_kit_step, (tn_executable *executable, tn_step *step, tn_error *err), (executable, step, err))        \
  F(tn_status, tn_kit_reset,                                                                                           \
    (const tn_session_factory *factory, const char *const *containers, size_t n, uint32_t flags, tn_error *err),       \
    (factory, containers, n, flags, err))                                                                              \
  F(tn_status, tn_kit_prepare_scheduled,                                                                               \
    (const tn_plan *plan, const tn_kit_scheduler *scheduler, tn_executable **out, tn_error *err),                      \
    (plan, scheduler, out, err))                                                                                       \
  P(tn_kit_run_instructions, (tn_step *step, const uint32_t *instructions, size_t n), (step, instructions, n))         \
  F(size_t, tn_plan_n_instructions, (const tn_plan *plan), (plan))                                                     \
  F(size_t, tn_plan_n_values, (const tn_plan *plan), (plan))                                                           \
  F(size_t, tn_plan_n_inputs, (const tn_plan *plan), (plan))                                                           \
  F(size_t, tn_plan_n_outputs, (const tn_plan *plan), (plan))                                                          \
  F(tn_status, tn_plan_get_instruction, (const tn_plan *plan, size_t i, tn_plan_instruction *out, tn_error *err),      \
    (plan, i, out, err))                                                                                               \
  F(tn_status, tn_plan_get_value, (const tn_plan *plan, size_t i, tn_plan_value *out, tn_error *err),                  \
    (plan, i, out, err))                                                                                               \
  F(uint32_t, tn_plan_output, (const tn_plan *plan, size_t i), (plan, i))                                              \
  F(int64_t, tn_step_deadline_ns, (const tn_step *step), (step))                                                       \
  F(tn_status, tn_kit_layout,                                                                                          \
    (const tn_plan *plan, tn_tensor *const *inputs, size_t n, tn_plan_layout **out, tn_error *err),                    \
    (plan, inputs, n, out, err))                                                                                       \
  P(tn_kit_layout_release, (tn_plan_layout *layout), (layout))                                                         \
  F(tn_status, tn_kit_layout_value, (const tn_plan_layout *layout, size_t i, tn_layout_value *out, tn_error *err),     \
    (layout, i, out, err))                                                                                             \
  F(tn_status, tn_kit_layout_instruction,                                                                              \
    (const tn_plan_layout *layout, size_t i, tn_layout_instruction *out, tn_error *err), (layout, i, out, err))        \
  F(tn_status, tn_kit_compute,                                                                                         \
    (tn_step *step, const tn_plan_layout *layout, size_t instruction, tn_view *const *inputs,                          \
     tn_view *const *outputs, void *scratch, tn_tensor **made, tn_error *err),                                         \
    (step, layout, instruction, inputs, outputs, scratch, made, err))                                                  \
  F(tn_status, tn_plan_check_straight, (const tn_plan *plan, tn_error *err), (plan, err))                              \
  F(tn_status, tn_kit_workers_open, (const tn_kit_workers_config *config, tn_kit_workers **out, tn_error *err),        \
    (config, out, err))                                                                                                \
  P(tn_kit_workers_close, (tn_kit_workers *workers), (workers))                                                        \
  F(uint32_t, tn_kit_workers_threads, (const tn_kit_workers *workers), (workers))                                      \
  F(tn_status, tn_kit_step_with,                                                                                       \
    (tn_executable *executable, tn_step *step, tn_kit_workers *workers, tn_error *err),                                \
    (executable, step, workers, err))                                                                                  \
  F(int32_t, tn_step_pool, (const tn_step *step), (step))                                                              \
  F(tn_status, tn_kit_layout_next, (tn_plan_layout *layout, tn_view *const *values, size_t n, tn_error *err),          \
    (layout, values, n, err))                                                                                          \
  F(tn_status, tn_kit_layout_segment, (const tn_plan_layout *layout, size_t i, tn_layout_segment *out, tn_error *err), \
    (layout, i, out, err))                                                                                             \
  F(size_t, tn_kit_instructions_left, (const tn_step *step), (step))                                                   \
  F(tn_status, tn_step_check, (const tn_step *step, const tn_operation *op, tn_error *err), (step, op, err))           \
  F(tn_bool, tn_plan_value_gives_shapes, (const tn_plan *plan, size_t i), (plan, i))                                   \
  F(size_t, tn_plan_n_segments, (const tn_plan *plan), (plan))                                                         \
  F(tn_status, tn_plan_get_segment, (const tn_plan *plan, size_t i, tn_plan_segment *out, tn_error *err),              \
    (plan, i, out, err))                                                                                               \
  F(tn_bool, tn_step_wants_records, (const tn_step *step), (step))                                                     \
  P(tn_step_record,                                                                                                    \
    (tn_step *step, const tn_plan_layout *layout, size_t instruction, const char *device, int64_t start_ns,            \
     int64_t end_ns, tn_status status),                                                                                \
    (step, layout, instruction, device, start_ns, end_ns, status))                                                     \
  P(tn_kit_step_workers, (tn_step *step, const tn_plan *plan, tn_kit_workers *workers), (step, plan, workers))         \
  P(tn_step_explain_memory,                                                                                            \
    (tn_step *step, const tn_plan *plan, tn_tensor *const *values, size_t n, size_t other_bytes, tn_error *err),       \
    (step, plan, values, n, other_bytes, err))                                                                         \
  F(tn_status, tn_kit_prepare_offloaded,                                                                               \
    (const tn_plan *plan, uint32_t flags, const tn_kit_offload *offload, tn_executable **out, tn_error *err),          \
    (plan, flags, offload, out, err))                                                                                  \
  F(tn_status, tn_kit_part_instruction, (const tn_kit_part *part, size_t i, tn_plan_instruction *out, tn_error *err),  \
    (part, i, out, err))

#define TN__HOST_FIELD(type, name, params, args) type(*name) params;
#define TN__HOST_FIELD_VOID(name, params, args) void(*name) params;

/* Functions with printf arguments precede the lists: a plugin calls them directly through the
 * table. */
typedef struct tn_host_base {
  size_t struct_size;
  tn_status (*error_set)(tn_error *err, tn_status code, const char *format, ...) TN_PRINTF(3, 4);
  tn_status (*error_wrap)(tn_error *err, tn_status code, const char *format, ...) TN_PRINTF(3, 4);
  tn_status (*error_prefix)(tn_error *err, const char *format, ...) TN_PRINTF(2, 3);
  void (*log)(int32_t level, const char *format, ...) TN_PRINTF(2, 3);
  TN_HOST_BASE(TN__HOST_FIELD, TN__HOST_FIELD_VOID)
} tn_host_base;
typedef struct tn_host_tensor {
  size_t struct_size;
  TN_HOST_TENSOR(TN__HOST_FIELD, TN__HOST_FIELD_VOID)
} tn_host_tensor;
typedef struct tn_host_graph {
  size_t struct_size;
  TN_HOST_GRAPH(TN__HOST_FIELD, TN__HOST_FIELD_VOID)
} tn_host_graph;
typedef struct tn_host_op {
  size_t struct_size;
  TN_HOST_OP(TN__HOST_FIELD, TN__HOST_FIELD_VOID)
} tn_host_op;
typedef struct tn_host_kit {
  size_t struct_size;
  TN_HOST_KIT(TN__HOST_FIELD, TN__HOST_FIELD_VOID)
} tn_host_kit;

/* Given to the entry point of a plugin, one for each plugin; valid until its shutdown has returned.
 * self           the plugin, for tn_buffer_desc.holder
 * get_extension  further interfaces, by name and version; NULL if the host does not have it (rule
 *                P-34). A function of this header's lists is available by its own name
 *                ("tn_kit_step"), version 1, for plugins in languages that cannot read the lists;
 *                cast the result to the function's type. Any thread. */
struct tn_host {
  size_t struct_size;
  int32_t abi_major;
  int32_t abi_minor;
  void *self;
  const void *(*get_extension)(const char *name, uint32_t version);
  const tn_host_base *base;
  const tn_host_tensor *tensor;
  const tn_host_graph *graph;
  const tn_host_op *op;
  const tn_host_kit *kit;
};
#define TN_HOST_SIZE TN_SIZE_TO(tn_host, kit)

#ifdef TN_PLUGIN
#define TN__HOST_CAT2(a, b) a##b
#define TN__HOST_CAT(a, b) TN__HOST_CAT2(a, b)
#define TN_HOST_TABLE TN__HOST_CAT(TN_PLUGIN, _LTX_tn__host)

extern __attribute__((visibility("hidden"))) const tn_host *TN_HOST_TABLE;

#define TN__BASE_CALL(type, name, params, args) TN_API type name params { return TN_HOST_TABLE->base->name args; }
#define TN__BASE_VOID(name, params, args) TN_API void name params { TN_HOST_TABLE->base->name args; }
#define TN__TENSOR_CALL(type, name, params, args) TN_API type name params { return TN_HOST_TABLE->tensor->name args; }
#define TN__TENSOR_VOID(name, params, args) TN_API void name params { TN_HOST_TABLE->tensor->name args; }
#define TN__GRAPH_CALL(type, name, params, args) TN_API type name params { return TN_HOST_TABLE->graph->name args; }
#define TN__GRAPH_VOID(name, params, args) TN_API void name params { TN_HOST_TABLE->graph->name args; }
#define TN__OP_CALL(type, name, params, args) TN_API type name params { return TN_HOST_TABLE->op->name args; }
#define TN__OP_VOID(name, params, args) TN_API void name params { TN_HOST_TABLE->op->name args; }
#define TN__KIT_CALL(type, name, params, args) TN_API type name params { return TN_HOST_TABLE->kit->name args; }
#define TN__KIT_VOID(name, params, args) TN_API void name params { TN_HOST_TABLE->kit->name args; }
TN_HOST_BASE(TN__BASE_CALL, TN__BASE_VOID)
TN_HOST_TENSOR(TN__TENSOR_CALL, TN__TENSOR_VOID)
TN_HOST_GRAPH(TN__GRAPH_CALL, TN__GRAPH_VOID)
TN_HOST_OP(TN__OP_CALL, TN__OP_VOID)
TN_HOST_KIT(TN__KIT_CALL, TN__KIT_VOID)
#endif

TN_END_DECLS

#endif
