/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on staging areas. */
#include <core/base/alloc.h>
#include <ops/state/queue/staging_area.h>

static size_t state_size(size_t n) { return sizeof(tn__staging_state) + n * sizeof(tn_dtype); }

tn_status tn__staging_create(const tn_operation *op, void **state, tn_error *err)
{
  const tn_dtype *dtypes = NULL;
  size_t n = 0;
  *state = NULL;
  tn_status st = tn_operation_attr_types(op, "dtypes", &dtypes, &n, err);
  if (st != TN_OK) return st;
  tn__staging_state *s = tn__zalloc(state_size(n));
  if (s == NULL) return tn__no_memory(err, "kernel", state_size(n));
  s->n = (uint32_t)n;
  for (size_t i = 0; i < n; i++) s->dtypes[i] = dtypes[i];
  s->capacity = tn__attr_int(op, "capacity", 0);
  s->memory_limit = tn__attr_int(op, "memory_limit", 0);
  st = tn__resource_place_init(&s->place, op, err);
  if (st == TN_OK) *state = s;
  else tn__free(s, state_size(n));
  return st;
}

void tn__staging_destroy(void *state)
{
  tn__staging_state *s = state;
  tn__resource_place_fini(&s->place);
  tn__free(s, state_size(s->n));
}

int64_t tn__staging_bytes(const tn_tensor *tensor)
{
  int64_t bytes = (int64_t)tn_tensor_bytes(tensor);
  if (tn_tensor_dtype(tensor) != TN_STRING) return bytes;
  const tn_string *text = tn_tensor_data(tensor);
  for (int64_t i = 0; i < tn_tensor_elements(tensor); i++) {
    size_t length;
    tn_string_data(text + i, &length);
    bytes += (int64_t)length;
  }
  return bytes;
}

tn_status tn__staging_keep(tn_kernel_ctx *ctx, uint32_t first, uint32_t n, tn__queue_element **out, int64_t *bytes)
{
  tn__queue_element *e = tn__queue_element_create(n);
  tn_status st = e != NULL ? TN_OK : tn__no_memory(ctx->err, "a staged tuple", 0);
  *bytes = 0;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    e->parts[i].row = -1;
    st = tn_kernel_keep_input(ctx, first + i, &e->parts[i].whole);
    if (st == TN_OK) *bytes += tn__staging_bytes(e->parts[i].whole);
  }
  if (st != TN_OK && e != NULL) tn__queue_element_destroy(e);
  *out = st == TN_OK ? e : NULL;
  return st;
}

tn_status tn__staging_check_bytes(tn_kernel_ctx *ctx, const char *name, int64_t bytes, int64_t limit)
{
  if (limit <= 0 || bytes <= limit) return TN_OK;
  return tn_error_set(ctx->err, TN_RESOURCE_EXHAUSTED,
                      "tensors of %lld bytes do not fit into staging area '%s', whose memory_limit is %lld",
                      (long long)bytes, name, (long long)limit);
}

tn_status tn__staging_give(tn_kernel_ctx *ctx, uint32_t first, const tn__queue_element *tuple)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < tuple->n; i++)
    st = tn_kernel_set_output(ctx, first + i, tuple->parts[i].whole);
  return st;
}
