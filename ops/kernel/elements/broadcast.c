/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/broadcast.h>

#include <core/base/alloc.h>

/* Size of operand v along dimension i of a result of this rank. */
static int64_t operand_dim(const tn_view *v, int32_t rank, int32_t i)
{
  int32_t missing = rank - v->rank;
  return i < missing ? 1 : v->dims[i - missing];
}

/* Collects from the innermost dimension outwards, then reverses the lists. */
void tn__broadcast_merge(tn__broadcast *b, const int64_t *dims, int32_t rank, const tn_view *const *operands, int32_t n)
{
  int64_t step[TN__BROADCAST_OPERANDS] = { 1, 1, 1, 1 };
  uint32_t last = 0;
  b->rank = 0;
  b->n = n;
  b->count = 1;
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] == 0) b->count = 0;
  if (b->count == 0) return;
  for (int32_t i = rank - 1; i >= 0; i--) {
    if (dims[i] == 1) continue;
    b->count *= dims[i];
    uint32_t moving = 0;
    for (int32_t k = 0; k < n; k++)
      if (operand_dim(operands[k], rank, i) != 1) moving |= 1u << k;
    if (b->rank > 0 && moving == last) {
      b->dims[b->rank - 1] *= dims[i];
    } else {
      b->dims[b->rank] = dims[i];
      for (int32_t k = 0; k < n; k++) b->strides[k][b->rank] = moving >> k & 1u ? step[k] : 0;
      b->rank++;
      last = moving;
    }
    for (int32_t k = 0; k < n; k++)
      if (moving >> k & 1u) step[k] *= dims[i];
  }
  for (int32_t i = 0, j = b->rank - 1; i < j; i++, j--) {
    int64_t d = b->dims[i];
    b->dims[i] = b->dims[j];
    b->dims[j] = d;
    for (int32_t k = 0; k < n; k++) {
      d = b->strides[k][i];
      b->strides[k][i] = b->strides[k][j];
      b->strides[k][j] = d;
    }
  }
}

bool tn__broadcast_is_flat(const tn__broadcast *b)
{
  if (b->rank > 1) return false;
  for (int32_t k = 0; k < b->n; k++)
    if (b->rank == 1 && b->strides[k][0] != 1) return false;
  return true;
}

tn_status tn__broadcast_plan_create(const tn__broadcast *b, tn__broadcast_plan **out, tn_error *err)
{
  int32_t outer = b->rank > 0 ? b->rank - 1 : 0;
  size_t bytes = sizeof(tn__broadcast_plan) + (size_t)outer * (size_t)(b->n + 1) * sizeof(int64_t); /* at most 2.5 KB */
  *out = NULL;
  tn__broadcast_plan *plan = tn__alloc(bytes);
  if (plan == NULL) return tn__no_memory(err, "a broadcast", bytes);
  plan->rank = outer;
  plan->n = b->n;
  plan->count = b->count;
  plan->row = b->rank > 0 ? b->dims[outer] : b->count;
  plan->bytes = bytes;
  plan->tile = 0;
  for (int32_t k = 0; k < TN__BROADCAST_OPERANDS; k++)
    plan->row_strides[k] = k < b->n && b->rank > 0 ? b->strides[k][outer] : 1;
  int64_t *v = plan->v;
  for (int32_t i = 0; i < outer; i++) *v++ = b->dims[i];
  for (int32_t k = 0; k < b->n; k++)
    for (int32_t i = 0; i < outer; i++) *v++ = b->strides[k][i];
  *out = plan;
  return TN_OK;
}

void tn__broadcast_plan_destroy(tn__broadcast_plan *plan)
{
  if (plan != NULL) tn__free(plan, plan->bytes);
}

void tn__broadcast_start(tn__broadcast_cursor *c, const tn__broadcast_plan *plan, int64_t begin, int64_t end)
{
  c->plan = plan;
  c->at = begin;
  c->end = end;
  c->n = 0;
  c->skip = 0;
  for (int32_t k = 0; k < plan->n; k++) c->offsets[k] = 0;
  if (begin >= end) return;
  c->skip = begin % plan->row;
  int64_t row = begin / plan->row;
  for (int32_t i = plan->rank - 1; i >= 0; i--) {
    c->index[i] = row % plan->v[i];
    row /= plan->v[i];
    for (int32_t k = 0; k < plan->n; k++) c->offsets[k] += c->index[i] * plan->v[plan->rank * (k + 1) + i];
  }
  for (int32_t k = 0; k < plan->n; k++) c->offsets[k] += c->skip * plan->row_strides[k];
}

/* Slow path of tn__broadcast_next: advances to the next row, with carries. There must be a next row. */
void tn__broadcast_carry(tn__broadcast_cursor *c)
{
  const tn__broadcast_plan *plan = c->plan;
  for (int32_t k = 0; k < plan->n; k++) c->offsets[k] -= c->skip * plan->row_strides[k];
  c->skip = 0;
  c->n = plan->row;
  for (int32_t i = plan->rank - 1; i >= 0; i--) {
    const int64_t *strides = plan->v + plan->rank + i;
    if (++c->index[i] < plan->v[i]) {
      for (int32_t k = 0; k < plan->n; k++) c->offsets[k] += strides[plan->rank * k];
      return;
    }
    for (int32_t k = 0; k < plan->n; k++) c->offsets[k] -= (plan->v[i] - 1) * strides[plan->rank * k];
    c->index[i] = 0;
  }
}
