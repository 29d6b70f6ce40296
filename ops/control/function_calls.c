/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops that call functions: calls, results, conditions. */
#include <ops/control/function_calls.h>

#include <string.h>

tn_status tn__prepare_results(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->scratch_bytes = (size_t)ctx->n_outputs * sizeof(tn_tensor *);
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_outputs; i++) st = tn_prepare_dynamic(ctx, i, err);
  return st;
}

tn_status tn__give_result(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *tensor)
{
  tn_dtype found = tn_tensor_dtype(tensor), wanted = ctx->outputs[i]->dtype;
  tn_status st = TN_OK;
  if (found != wanted)
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the function returns %s for output %u, which is %s",
                      tn_dtype_name(found), i, tn_dtype_name(wanted));
  if (st == TN_OK) st = tn_kernel_set_output(ctx, i, tensor);
  tn_tensor_unref(tensor);
  return st;
}

/* `waiting` holds the number of the function that waits, plus 1. */
tn_status tn__call_function(tn_kernel_ctx *ctx, uint32_t k, uint32_t first)
{
  tn_tensor **results = ctx->scratch;
  if (ctx->waiting != NULL) k = (uint32_t)(uintptr_t)ctx->waiting - 1;
  tn_status st = tn_kernel_call(ctx, k, ctx->inputs + first, ctx->n_inputs - first, results, ctx->n_outputs);
  ctx->waiting = st == TN_PENDING ? (void *)((uintptr_t)k + 1) : NULL;
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < ctx->n_outputs; i++) {
    if (st == TN_OK) st = tn__give_result(ctx, i, results[i]);
    else tn_tensor_unref(results[i]);
  }
  return st;
}

static bool any_byte(const void *data, size_t n)
{
  const unsigned char *bytes = data;
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != 0) return true;
  return false;
}

tn_status tn__is_true(const tn_view *v, bool *out, tn_error *err)
{
  *out = v->count > 0;
  if (v->rank != 0) return TN_OK;
  const uint16_t *half = v->data;
  const float *single = v->data;
  const double *whole = v->data;
  size_t n;
  switch (v->dtype) {
  case TN_HALF:
  case TN_BFLOAT16: *out = (*half & 0x7fff) != 0; break;
  case TN_FLOAT: *out = *single != 0; break;
  case TN_DOUBLE: *out = *whole != 0; break;
  case TN_COMPLEX64: *out = single[0] != 0 || single[1] != 0; break;
  case TN_COMPLEX128: *out = whole[0] != 0 || whole[1] != 0; break;
  case TN_STRING:
    tn_string_data(v->data, &n);
    *out = n != 0;
    break;
  case TN_RESOURCE:
  case TN_VARIANT:
    return tn_error_set(err, TN_INVALID_ARGUMENT, "a condition of type %s is neither true nor false",
                        tn_dtype_name(v->dtype));
  default: *out = any_byte(v->data, tn_dtype_size(v->dtype)); break;
  }
  return TN_OK;
}
