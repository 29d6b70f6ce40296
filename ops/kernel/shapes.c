/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/kernel/shapes.h>

#include <core/base/text.h>
#include <string.h>

#define SHAPE_TEXT 160 /* size in bytes of a shape printed in a message */

/* ---- shapes on the stack ---- */

void tn__shape_set(tn__shape *s, const int64_t *dims, int32_t rank)
{
  s->rank = rank;
  for (int32_t i = 0; i < rank; i++) s->dims[i] = dims[i];
}

bool tn__shape_is_known(const int64_t *dims, int32_t rank)
{
  if (rank < 0) return false;
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] < 0) return false;
  return true;
}

bool tn__dim_merge(int64_t *dim, int64_t other)
{
  if (other < 0 || *dim == other) return true;
  if (*dim >= 0) return false;
  *dim = other;
  return true;
}

bool tn__shape_merge(tn__shape *s, const int64_t *dims, int32_t rank)
{
  if (rank < 0) return true;
  if (s->rank < 0) {
    tn__shape_set(s, dims, rank);
    return true;
  }
  if (s->rank != rank) return false;
  for (int32_t i = 0; i < rank; i++)
    if (s->dims[i] >= 0 && dims[i] >= 0 && s->dims[i] != dims[i]) return false;
  for (int32_t i = 0; i < rank; i++) tn__dim_merge(&s->dims[i], dims[i]);
  return true;
}

bool tn__shape_append(tn__shape *s, int64_t dim)
{
  if (s->rank < 0) return true;
  if (s->rank >= TN_MAX_RANK) return false;
  s->dims[s->rank++] = dim;
  return true;
}

tn_status tn__shape_axis(const char *op, int64_t axis, int32_t rank, int32_t *out, tn_error *err)
{
  *out = 0;
  if (axis < -(int64_t)rank || axis >= rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: axis %lld is outside [%d, %d)", op, (long long)axis, -rank,
                        rank);
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return TN_OK;
}

/* ---- broadcasting ---- */

/* Broadcasts two dimensions; false if they do not fit. An unknown dimension may be 1 or equal to the other one. */
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out)
{
  if (a == b || b == 1) *out = a;
  else if (a == 1) *out = b;
  else if (a < 0) *out = b;
  else if (b < 0) *out = a;
  else return false;
  return true;
}

bool tn__broadcast_shapes(const int64_t *a, int32_t a_rank, const int64_t *b, int32_t b_rank, tn__shape *out)
{
  out->rank = -1;
  if (a_rank < 0 || b_rank < 0) return true;
  int32_t rank = a_rank > b_rank ? a_rank : b_rank;
  for (int32_t i = 0; i < rank; i++) {
    int64_t x = i < rank - a_rank ? 1 : a[i - (rank - a_rank)];
    int64_t y = i < rank - b_rank ? 1 : b[i - (rank - b_rank)];
    if (!broadcast_dim(x, y, &out->dims[i])) return false;
  }
  out->rank = rank;
  return true;
}

tn_status tn__broadcast_error(tn_error *err, const char *op, const int64_t *a, int32_t a_rank, const int64_t *b,
                              int32_t b_rank)
{
  char x[SHAPE_TEXT], y[SHAPE_TEXT];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: shapes %s and %s do not broadcast", op,
                      tn__format_shape(x, sizeof(x), a, a_rank), tn__format_shape(y, sizeof(y), b, b_rank));
}

/* ---- shape functions ---- */

const char *tn__infer_op(const tn_infer_ctx *ctx) { return tn_operation_type(tn_infer_operation(ctx)); }

void tn__infer_get(const tn_infer_ctx *ctx, size_t i, tn__shape *out)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, i, &dims);
  tn__shape_set(out, dims, rank);
}

tn_status tn__infer_set(tn_infer_ctx *ctx, size_t i, const tn__shape *s, tn_error *err)
{
  return tn_infer_output(ctx, i, s->dims, s->rank, err);
}

static tn_status infer_all(tn_infer_ctx *ctx, const int64_t *dims, int32_t rank, tn_error *err)
{
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  for (size_t i = 0; i < n; i++) {
    tn_status st = tn_infer_output(ctx, i, dims, rank, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

tn_status tn__infer_unchanged(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  return infer_all(ctx, dims, rank, err);
}

tn_status tn__infer_merged(tn_infer_ctx *ctx, tn_error *err) { return tn__infer_merged_with(ctx, NULL, -1, err); }

tn_status tn__infer_merged_with(tn_infer_ctx *ctx, const int64_t *also, int32_t also_rank, tn_error *err)
{
  tn__shape s;
  tn__shape_set(&s, also, also_rank);
  size_t n = tn_infer_n_inputs(ctx);
  for (size_t i = 0; i < n; i++) {
    const int64_t *dims;
    int32_t rank = tn_infer_input(ctx, i, &dims);
    if (!tn__shape_merge(&s, dims, rank)) {
      char x[SHAPE_TEXT], y[SHAPE_TEXT];
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %zu has shape %s, wanted %s like the other inputs",
                          tn__infer_op(ctx), i, tn__format_shape(x, sizeof(x), dims, rank),
                          tn__format_shape(y, sizeof(y), s.dims, s.rank));
    }
  }
  return infer_all(ctx, s.dims, s.rank, err);
}

tn_status tn__infer_broadcast(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *a, *b;
  int32_t a_rank = tn_infer_input(ctx, 0, &a), b_rank = tn_infer_input(ctx, 1, &b);
  tn__shape s;
  if (!tn__broadcast_shapes(a, a_rank, b, b_rank, &s))
    return tn__broadcast_error(err, tn__infer_op(ctx), a, a_rank, b, b_rank);
  return tn_infer_output(ctx, 0, s.dims, s.rank, err);
}

tn_status tn__infer_scalar(tn_infer_ctx *ctx, tn_error *err) { return infer_all(ctx, NULL, 0, err); }

tn_status tn__infer_nothing(tn_infer_ctx *ctx, tn_error *err)
{
  (void)ctx, (void)err;
  return TN_OK;
}

tn_status tn__infer_unknown(tn_infer_ctx *ctx, tn_error *err) { return infer_all(ctx, NULL, -1, err); }

tn_status tn__infer_attr_shape(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims = NULL;
  int32_t rank = -1;
  tn_status st = tn_operation_attr_shape(tn_infer_operation(ctx), "shape", &dims, &rank, err);
  return st != TN_OK ? st : tn_infer_output(ctx, 0, dims, rank, err);
}

static tn_status rank_error(tn_error *err, const char *op, size_t i, const int64_t *dims, int32_t rank, int32_t wanted,
                            const char *how)
{
  char x[SHAPE_TEXT];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %zu has shape %s, wanted rank %d%s", op, i,
                      tn__format_shape(x, sizeof(x), dims, rank), wanted, how);
}

tn_status tn__infer_rank(const tn_infer_ctx *ctx, size_t i, int32_t rank, tn__shape *out, tn_error *err)
{
  const int64_t *dims;
  int32_t found = tn_infer_input(ctx, i, &dims);
  if (found >= 0 && found != rank) return rank_error(err, tn__infer_op(ctx), i, dims, found, rank, "");
  out->rank = rank;
  for (int32_t k = 0; k < rank; k++) out->dims[k] = found < 0 ? -1 : dims[k];
  return TN_OK;
}

tn_status tn__infer_rank_at_least(const tn_infer_ctx *ctx, size_t i, int32_t rank, tn__shape *out, tn_error *err)
{
  tn__infer_get(ctx, i, out);
  if (out->rank >= 0 && out->rank < rank)
    return rank_error(err, tn__infer_op(ctx), i, out->dims, out->rank, rank, " or more");
  return TN_OK;
}

bool tn__infer_ints(const tn_infer_ctx *ctx, size_t i, const tn_tensor **tensor, int64_t *n)
{
  const tn_tensor *t = tn_infer_input_value(ctx, i);
  *tensor = NULL;
  *n = 0;
  if (t == NULL || tn_tensor_rank(t) > 1) return false;
  if (tn_tensor_dtype(t) != TN_INT32 && tn_tensor_dtype(t) != TN_INT64) return false;
  if (tn_tensor_data(t) == NULL && tn_tensor_elements(t) != 0) return false;
  *tensor = t;
  *n = tn_tensor_elements(t);
  return true;
}

static int64_t int_at(const void *data, tn_dtype dtype, int64_t k)
{
  return dtype == TN_INT32 ? ((const int32_t *)data)[k] : ((const int64_t *)data)[k];
}

int64_t tn__tensor_int_at(const tn_tensor *tensor, int64_t k)
{
  return int_at(tn_tensor_data(tensor), tn_tensor_dtype(tensor), k);
}

/* ---- attributes ---- */

tn_dtype tn__attr_type(const tn_operation *op, const char *name)
{
  tn_dtype d = TN_DTYPE_INVALID;
  return tn_operation_attr_type(op, name, &d, NULL) == TN_OK ? d : TN_DTYPE_INVALID;
}

bool tn__attr_bool(const tn_operation *op, const char *name, bool otherwise)
{
  tn_bool v = 0;
  return tn_operation_attr_bool(op, name, &v, NULL) == TN_OK ? v != 0 : otherwise;
}

int64_t tn__attr_int(const tn_operation *op, const char *name, int64_t otherwise)
{
  int64_t v = 0;
  return tn_operation_attr_int(op, name, &v, NULL) == TN_OK ? v : otherwise;
}

float tn__attr_float(const tn_operation *op, const char *name, float otherwise)
{
  float v = 0;
  return tn_operation_attr_float(op, name, &v, NULL) == TN_OK ? v : otherwise;
}

tn_status tn__attr_choice(const tn_operation *op, const char *name, const char *const *choices, size_t n, int *out,
                          tn_error *err)
{
  const char *text = NULL;
  size_t length = 0;
  *out = 0;
  tn_status st = tn_operation_attr_string(op, name, &text, &length, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < n; i++) {
    if (strlen(choices[i]) == length && memcmp(choices[i], text, length) == 0) {
      *out = (int)i;
      return TN_OK;
    }
  }
  tn__text list;
  tn__text_init(&list, 4096);
  for (size_t i = 0; i < n; i++) tn__text_printf(&list, "%s'%s'", i == 0 ? "" : ", ", choices[i]);
  st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute '%s' is '%.*s', wanted one of %s", tn_operation_type(op),
                    name, (int)(length > 64 ? 64 : length), text, tn__text_get(&list));
  tn__text_fini(&list);
  return st;
}

/* ---- kernels ---- */

tn_status tn__no_kernel(tn_error *err, const tn_operation *op, tn_dtype dtype)
{
  return tn_error_set(err, TN_UNIMPLEMENTED, "%s: no kernel for dtype %s", tn_operation_type(op), tn_dtype_name(dtype));
}

tn_status tn__want_rank(const tn_prepare_ctx *ctx, uint32_t i, int32_t rank, tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  if (v->rank == rank) return TN_OK;
  return rank_error(err, tn_operation_type(ctx->op), i, v->dims, v->rank, rank, "");
}

tn_status tn__want_rank_at_least(const tn_prepare_ctx *ctx, uint32_t i, int32_t rank, tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  if (v->rank >= rank) return TN_OK;
  return rank_error(err, tn_operation_type(ctx->op), i, v->dims, v->rank, rank, " or more");
}

tn_status tn__shape_error(tn_error *err, const tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank)
{
  const tn_view *v = &ctx->inputs[i];
  char x[SHAPE_TEXT], y[SHAPE_TEXT];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has shape %s, wanted %s", tn_operation_type(ctx->op), i,
                      tn__format_shape(x, sizeof(x), v->dims, v->rank), tn__format_shape(y, sizeof(y), dims, rank));
}

bool tn__view_same_shape(const tn_view *a, const tn_view *b)
{
  if (a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

tn_status tn__want_same_shape(const tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err)
{
  const tn_view *a = &ctx->inputs[i], *b = &ctx->inputs[j];
  if (tn__view_same_shape(a, b)) return TN_OK;
  char x[SHAPE_TEXT], y[SHAPE_TEXT];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs %u and %u have shapes %s and %s, wanted equal shapes",
                      tn_operation_type(ctx->op), i, j, tn__format_shape(x, sizeof(x), a->dims, a->rank),
                      tn__format_shape(y, sizeof(y), b->dims, b->rank));
}

int64_t tn__view_int_at(const tn_view *view, int64_t k) { return int_at(view->data, view->dtype, k); }

tn_status tn__prepare_unchanged(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  tn_dtype in = ctx->inputs[0].dtype, out = tn_operation_output_dtype(ctx->op, 0);
  /* Elements that own memory cannot be overwritten in place. */
  if (in == TN_STRING || in == TN_RESOURCE || in == TN_VARIANT || tn_dtype_size(in) != tn_dtype_size(out)) return TN_OK;
  return tn_prepare_in_place(ctx, 0, 0, err);
}

tn_status tn__keep_state(const void *s, size_t bytes, const char *what, void **state, tn_error *err)
{
  *state = tn__alloc(bytes);
  if (*state == NULL) return tn__no_memory(err, what, bytes);
  memcpy(*state, s, bytes);
  return TN_OK;
}

tn_status tn__prepare_nothing(tn_prepare_ctx *ctx, tn_error *err)
{
  (void)ctx, (void)err;
  return TN_OK;
}

tn_status tn__prepare_scalar(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output(ctx, 0, NULL, 0, err); }

tn_status tn__prepare_all_dynamic(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_outputs; i++) st = tn_prepare_dynamic(ctx, i, err);
  return st;
}
