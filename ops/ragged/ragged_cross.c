/* SPDX-License-Identifier: Apache-2.0 */
/* RaggedCross: feature crosses of ragged, sparse and dense columns. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/ragged/ragged.h>
#include <ops/sparse/cross.h>
#include <string.h>

/* Inputs: values and splits of ragged columns; indices, values and shapes of sparse ones; dense matrices. `order` has a
 * letter for each column: R, S or D. It is borrowed from the node. */
typedef struct cross_state {
  uint32_t ragged, sparse, dense;
  tn__slice order;
  int64_t buckets;
  uint64_t key;
} cross_state;

static uint32_t first_sparse(const cross_state *s) { return 2 * s->ragged; }
static uint32_t first_dense(const cross_state *s) { return 2 * s->ragged + 3 * s->sparse; }

static tn_status read_lists(const tn_operation *op, cross_state *s, tn_error *err)
{
  static const char *const lists[] = { "ragged_values_types", "ragged_splits_types", "sparse_values_types",
                                       "dense_types" };
  const tn_dtype *types;
  size_t n[4];
  tn_status st = TN_OK;
  for (int i = 0; st == TN_OK && i < 4; i++) st = tn_operation_attr_types(op, lists[i], &types, &n[i], err);
  if (st == TN_OK) st = tn_operation_attr_string(op, "input_order", &s->order.data, &s->order.size, err);
  if (st != TN_OK) return st;
  if (n[0] != n[1] || (int64_t)n[2] != tn__attr_int(op, "Nsparse", 0) || n[0] + n[2] + n[3] != s->order.size)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: %zu ragged values, %zu ragged splits, %zu sparse values and %zu dense inputs do not fit "
                        "each other or an input_order of %zu", tn_operation_type(op), n[0], n[1], n[2], n[3],
                        s->order.size);
  s->ragged = (uint32_t)n[0];
  s->sparse = (uint32_t)n[2];
  s->dense = (uint32_t)n[3];
  return TN_OK;
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  cross_state s = { .buckets = tn__attr_int(op, "num_buckets", 0), .key = (uint64_t)tn__attr_int(op, "hash_key", 0) };
  *state = NULL;
  tn_status st = read_lists(op, &s, err);
  uint32_t n[3] = { 0, 0, 0 };
  for (size_t i = 0; st == TN_OK && i < s.order.size; i++) {
    const char *letter = memchr("RSD", s.order.data[i], 3);
    if (letter == NULL)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input_order has '%c', wanted R, S or D", tn_operation_type(op),
                        s.order.data[i]);
    else n[*letter == 'R' ? 0 : 1 + (*letter == 'D')]++;
  }
  if (st == TN_OK && (n[0] != s.ragged || n[1] != s.sparse))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input_order has %u ragged and %u sparse columns, not %u and %u",
                      tn_operation_type(op), n[0], n[1], s.ragged, s.sparse);
  return st == TN_OK ? tn__keep_state(&s, sizeof s, "state of a cross", state, err) : st;
}

static void destroy(void *state) { tn__free(state, sizeof(cross_state)); }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const cross_state *s = ctx->state;
  uint32_t sparse = first_sparse(s);
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < sparse; i++) st = tn__want_rank(ctx, i, 1, err);
  for (uint32_t i = 0; st == TN_OK && i < s->sparse; i++) {
    const tn_view *values = &ctx->inputs[sparse + s->sparse + i], *shape = &ctx->inputs[sparse + 2 * s->sparse + i];
    const int64_t wanted[2] = { values->count, 2 }, two = 2;
    st = tn__want_rank(ctx, sparse + i, 2, err);
    if (st == TN_OK) st = tn__want_rank(ctx, sparse + s->sparse + i, 1, err);
    if (st == TN_OK && (shape->rank != 1 || shape->count != 2))
      st = tn__shape_error(err, ctx, sparse + 2 * s->sparse + i, &two, 1);
    if (st == TN_OK && (ctx->inputs[sparse + i].dims[0] != wanted[0] || ctx->inputs[sparse + i].dims[1] != 2))
      st = tn__shape_error(err, ctx, sparse + i, wanted, 2);
  }
  for (uint32_t i = 0; st == TN_OK && i < s->dense; i++) st = tn__want_rank(ctx, first_dense(s) + i, 2, err);
  ctx->scratch_bytes = s->order.size * sizeof(tn__cross_column);
  ctx->cost_ns = 10000;
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* Sets up column i, which is number k of its kind. *rows is its number of rows. */
static tn_status set_column(const tn_kernel_ctx *ctx, tn__cross_column *c, char kind, uint32_t k, int64_t *rows,
                            tn__poll *poll)
{
  const cross_state *s = ctx->state;
  uint32_t sparse = first_sparse(s) + k;
  memset(c, 0, sizeof *c);
  if (kind == 'R') {
    c->values = ctx->inputs[k];
    c->splits = ctx->inputs[s->ragged + k];
    *rows = c->splits->count - 1;
    return tn__splits_check(ctx, s->ragged + k, c->values->count, poll);
  }
  if (kind == 'S') {
    c->values = ctx->inputs[sparse + s->sparse];
    c->indices = ctx->inputs[sparse]->data;
    c->skip_low = true;
    *rows = ((const int64_t *)ctx->inputs[sparse + 2 * s->sparse]->data)[0];
  } else {
    c->values = ctx->inputs[first_dense(s) + k];
    c->width = c->values->dims[1];
    *rows = c->values->dims[0];
  }
  return TN_OK;
}

static tn_status columns_of(const tn_kernel_ctx *ctx, tn__cross *cross, int64_t *rows, tn__poll *poll)
{
  const cross_state *s = ctx->state;
  uint32_t next[3] = { 0, 0, 0 };
  bool text = ctx->outputs[0]->dtype == TN_STRING;
  *cross = (tn__cross){ ctx->scratch, (uint32_t)s->order.size, text ? TN__CROSS_TEXT : TN__CROSS_HASH, { 0, 0 } };
  *rows = 0;
  for (uint32_t i = 0; i < cross->n; i++) {
    char kind = s->order.data[i];
    int64_t own = 0;
    uint32_t *k = &next[kind == 'R' ? 0 : 1 + (kind == 'D')];
    tn_status st = set_column(ctx, &cross->columns[i], kind, (*k)++, &own, poll);
    if (st != TN_OK) return st;
    if (i == 0) *rows = own;
    if (own != *rows || own < 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "column %u has %lld rows, wanted %lld", i, (long long)own,
                          (long long)*rows);
  }
  return TN_OK;
}

/* Output 1: the splits of the combinations. */
static tn_status count_crosses(tn_kernel_ctx *ctx, tn__cross *cross, int64_t rows, tn__poll *poll)
{
  int64_t n, total = 0, done = 0;
  if (__builtin_add_overflow(rows, 1, &n))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are too many rows");
  tn_status st = tn_kernel_allocate(ctx, 1, &n, 1);
  if (st != TN_OK) return st;
  const tn_view *splits = ctx->outputs[1];
  tn__cross_rewind(cross);
  for (int64_t row = 0; cross->n > 0 && row < rows; row = tn__cross_next_row(cross, row)) {
    int64_t count;
    if (tn__poll_over(poll, 20 * cross->n + 2 * (row - done))) return TN_CANCELLED;
    st = tn__cross_row(cross, row, &count, ctx->err);
    if (st != TN_OK) return st;
    for (; done <= row; done++) tn__split_put(splits, done, total);
    if (__builtin_add_overflow(total, count, &total) || !tn__split_fits(splits->dtype, total))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are too many combinations");
  }
  for (; done <= rows; done++) tn__split_put(splits, done, total);
  return tn_kernel_allocate(ctx, 0, &total, 1);
}

static tn_status write_crosses(tn_kernel_ctx *ctx, tn__cross *cross, int64_t rows, tn__poll *poll)
{
  const cross_state *s = ctx->state;
  tn_view *out = ctx->outputs[0];
  int64_t at = 0, count;
  tn_status st = TN_OK;
  tn__cross_rewind(cross);
  for (int64_t row = 0; st == TN_OK && cross->n > 0 && row < rows; row = tn__cross_next_row(cross, row)) {
    st = tn__cross_row(cross, row, &count, ctx->err);
    for (int64_t k = 0; st == TN_OK && k < count; k++, at++) {
      if (tn__poll_over(poll, 40 * cross->n)) return TN_CANCELLED;
      if (k == 0) tn__cross_first(cross);
      else tn__cross_next(cross);
      if (out->dtype == TN_STRING)
        st = tn__cross_text(cross, tn__slice_of("_X_"), (tn_string *)out->data + at, ctx->err);
      else ((int64_t *)out->data)[at] = tn__cross_number(cross, &s->key, s->buckets);
    }
  }
  return st;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  tn__cross cross;
  int64_t rows;
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = columns_of(ctx, &cross, &rows, &poll);
  if (st == TN_OK) st = count_crosses(ctx, &cross, rows, &poll);
  return st == TN_OK ? write_crosses(ctx, &cross, rows, &poll) : st;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t unknown = -1;
  tn_status st = tn_infer_output(ctx, 0, &unknown, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, &unknown, 1, err) : st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedCross",
    .inputs = "ragged_values: ragged_values_types, ragged_row_splits: ragged_splits_types, "
              "sparse_indices: Nsparse * int64, sparse_values: sparse_values_types, sparse_shape: Nsparse * int64, "
              "dense_inputs: dense_types",
    .outputs = "output_values: out_values_type, output_row_splits: out_row_splits_type",
    .attrs = "Nsparse: int >= 0; input_order: string; hashed_output: bool; num_buckets: int >= 0; hash_key: int; "
             "ragged_values_types: list({int64, string}) >= 0; ragged_splits_types: list({int32, int64}) >= 0; "
             "sparse_values_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0; "
             "out_values_type: {int64, string}; out_row_splits_type: {int32, int64}",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer,
    .summary = "combinations of the values in each row of several columns, as a ragged tensor" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedCross", .device = "CPU", .name = "ragged_cross_cpu",
    .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(ragged_cross)
