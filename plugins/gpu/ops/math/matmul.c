/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, alone and with what follows it, and BatchMatMul V1 to V3. */
#include "ops/kernel/product.h"

#include <string.h>

/* The dimension of a batch that an operand has at place i of the output's. */
static int64_t batch_dim(const gpu_value *v, int32_t rank, int32_t i)
{
  int32_t at = i - (rank - v->rank);
  return at < 0 ? 1 : v->dims[at];
}

/* Dimensions of the batch, from the last one on, joined where both operands go on as before. */
static bool add_batches(gpu_batches *s, const gpu_value *a, const gpu_value *b, const gpu_value *out)
{
  cl_long step_a = a->dims[a->rank - 2] * a->dims[a->rank - 1], step_b = b->dims[b->rank - 2] * b->dims[b->rank - 1];
  int rank = 0;
  for (int32_t i = out->rank - 3; i >= 0; i--) {
    const int64_t x = batch_dim(a, out->rank, i), y = batch_dim(b, out->rank, i), size = out->dims[i];
    if ((x != 1 && x != size) || (y != 1 && y != size)) return false;
    if (size == 1) continue;
    const cl_long to_a = x == 1 ? 0 : step_a, to_b = y == 1 ? 0 : step_b;
    step_a *= x;
    step_b *= y;
    if (rank > 0 && to_a == s->a[rank - 1] * s->size[rank - 1] && to_b == s->b[rank - 1] * s->size[rank - 1]) {
      s->size[rank - 1] *= size;
      continue;
    }
    if (rank == 8) return false;
    s->size[rank] = size;
    s->a[rank] = to_a;
    s->b[rank++] = to_b;
  }
  for (int i = 0; i < rank / 2; i++) { /* the kernel has the first dimension first */
    const int j = rank - 1 - i;
    const gpu_batches t = *s;
    s->size[i] = t.size[j], s->size[j] = t.size[i];
    s->a[i] = t.a[j], s->a[j] = t.a[i];
    s->b[i] = t.b[j], s->b[j] = t.b[i];
  }
  s->rank = rank;
  return true;
}

/* One dimension is a step from matrix to matrix; rows of all matrices that are multiplied by one are rows of one. */
static void simplify(gpu_product *p)
{
  gpu_batches *s = &p->batches;
  if (s->rank > 1) return;
  if (s->rank == 1) {
    p->a_batch = s->a[0];
    p->b_batch = s->b[0];
  }
  s->rank = 0;
  if (p->batch > 1 && p->b_batch == 0 && !p->across_a && p->a_batch == p->m * p->k) {
    p->m *= p->batch;
    p->batch = 1;
  }
}

static tn_status plan_product(gpu_node *n, tn_error *err)
{
  const gpu_value *a = &n->inputs[0], *b = &n->inputs[1], *out = &n->outputs[0];
  const bool batched = strncmp(tn_operation_type(n->op), "BatchMatMul", 11) == 0;
  gpu_product p = { .mode = GPU_MATRIX, .b = 1, .batch = 1, .first_arg = 2 };
  if (a->rank < 2 || b->rank < 2 || out->rank < 2 || out->rank < a->rank || out->rank < b->rank)
    return gpu_decline(err, "shapes that are no matrices");
  p.across_a = gpu_attr_bool(n, batched ? "adj_x" : "transpose_a", false);
  p.across_b = gpu_attr_bool(n, batched ? "adj_y" : "transpose_b", false);
  p.a_row = a->dims[a->rank - 1];
  p.b_row = b->dims[b->rank - 1];
  p.m = out->dims[out->rank - 2];
  p.n = p.out_row = out->dims[out->rank - 1];
  p.k = p.across_a ? a->dims[a->rank - 2] : p.a_row;
  p.out_batch = p.m * p.n;
  if (out->count == 0) return gpu_node_done(n, err);
  p.batch = out->count / p.out_batch;
  if (!add_batches(&p.batches, a, b, out)) return gpu_decline(err, "batches that do not fit the result");
  simplify(&p);
  tn_status st = gpu_after_read(n, 2, &p.after, err);
  if (st == TN_OK) st = gpu_product_launch(n, &p, err);
  return st == TN_OK ? gpu_node_done(n, err) : st;
}

#define NUMBERS "half|bfloat16|float|double|int32|int64"
#define V3(t) { "BatchMatMulV3", "Ta=" t ",Tb=" t ",Tout=" t, plan_product, 0, false }
const gpu_op gpu_matmul_ops[] = {
  { "MatMul", "T=" NUMBERS, plan_product, 0, false },
  { "_TnMatMul", "T=float", plan_product, 0, false },
  { "BatchMatMul", "T=" NUMBERS, plan_product, 0, false },
  { "BatchMatMulV2", "T=" NUMBERS "|int16", plan_product, 0, false },
  V3("half"), V3("bfloat16"), V3("float"), V3("double"), V3("int16"), V3("int32"), V3("int64"),
  { NULL, NULL, NULL, 0, false },
};
