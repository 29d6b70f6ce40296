/* SPDX-License-Identifier: Apache-2.0 */
/* Feature crosses of sparse and dense columns: SparseCross SparseCrossV2 SparseCrossHashed. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/sparse/cross.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* Inputs: `sparse` times indices, values and shapes, `dense` matrices, and then the op's own. */
typedef struct cross_state {
  uint32_t sparse, dense;
  bool text;
  int64_t buckets;
  uint64_t key;
} cross_state;

/* The number of types in a list. With internal_type string, all must be strings. */
static tn_status count_types(const tn_operation *op, const char *list, size_t *n, tn_error *err)
{
  const tn_dtype *types;
  tn_status st = tn_operation_attr_types(op, list, &types, n, err);
  bool texts = tn__attr_type(op, "internal_type") == TN_STRING;
  for (size_t i = 0; st == TN_OK && i < *n; i++)
    if (texts && types[i] != TN_STRING)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: internal_type is string, but element %zu of '%s' is %s",
                        tn_operation_type(op), i, list, tn_dtype_name(types[i]));
  return st;
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  size_t sparse, dense;
  int64_t n = tn__attr_int(op, "N", 0);
  *state = NULL;
  tn_status st = count_types(op, "sparse_types", &sparse, err);
  if (st == TN_OK) st = count_types(op, "dense_types", &dense, err);
  if (st != TN_OK) return st;
  if (n < 0 || (size_t)n != sparse)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld tensors of indices for %zu of values",
                        tn_operation_type(op), (long long)n, sparse);
  cross_state s = { (uint32_t)sparse, (uint32_t)dense, tn_operation_output_dtype(op, 1) == TN_STRING,
                    tn__attr_int(op, "num_buckets", 0), (uint64_t)tn__attr_int(op, "hash_key", 0) };
  return tn__keep_state(&s, sizeof s, "state of a cross", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(cross_state)); }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const cross_state *s = ctx->state;
  const int64_t two = 2;
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < s->sparse; i++) {
    st = tn__want_sparse(ctx, i, s->sparse + i, 2 * s->sparse + i, err);
    if (st == TN_OK && ctx->inputs[2 * s->sparse + i].count != 2)
      st = tn__shape_error(err, ctx, 2 * s->sparse + i, &two, 1);
  }
  uint32_t first = 3 * s->sparse, own = first + s->dense;
  for (uint32_t i = 0; st == TN_OK && i < s->dense; i++) st = tn__want_rank(ctx, first + i, 2, err);
  if (st == TN_OK && ctx->n_inputs == own + 1) st = tn__want_rank(ctx, own, 0, err); /* sep */
  for (uint32_t i = own; st == TN_OK && ctx->n_inputs == own + 3 && i < own + 2; i++)
    if (ctx->inputs[i].count != 1) st = tn__want_rank(ctx, i, 0, err);
  if (st == TN_OK && ctx->n_inputs == own + 3 && ctx->inputs[own + 2].count != 2)
    st = tn__shape_error(err, ctx, own + 2, &two, 1);
  if (st != TN_OK) return st;
  ctx->scratch_bytes = (s->sparse + s->dense) * sizeof(tn__cross_column);
  ctx->cost_ns = 10000;
  return tn__prepare_all_dynamic(ctx, err);
}

/* Sets up the columns. *rows is the number of rows, which all must have. */
static tn_status columns_of(const tn_kernel_ctx *ctx, tn__cross *cross, int64_t *rows)
{
  const cross_state *s = ctx->state;
  *cross = (tn__cross){ ctx->scratch, s->sparse + s->dense, s->text ? TN__CROSS_TEXT : TN__CROSS_HASH, { 0, 0 } };
  *rows = 0;
  for (uint32_t i = 0; i < cross->n; i++) {
    bool sparse = i < s->sparse;
    const tn_view *values = ctx->inputs[sparse ? s->sparse + i : 2 * s->sparse + i];
    tn__cross_column *c = &cross->columns[i];
    memset(c, 0, sizeof *c);
    c->values = values;
    if (sparse) c->indices = ctx->inputs[i]->data;
    else c->width = values->dims[1];
    int64_t own = sparse ? ((const int64_t *)ctx->inputs[2 * s->sparse + i]->data)[0] : values->dims[0];
    if (i == 0) *rows = own;
    if (own != *rows)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "column %u has %lld rows, those before it %lld", i,
                          (long long)own, (long long)*rows);
  }
  if (*rows >= 0) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the columns have %lld rows", (long long)*rows);
}

static tn_status allocate(tn_kernel_ctx *ctx, tn__cross *cross, int64_t rows)
{
  int64_t total = 0, shape[2] = { rows, 0 };
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  tn__cross_rewind(cross);
  for (int64_t row = 0; st == TN_OK && cross->n > 0 && row < rows; row = tn__cross_next_row(cross, row)) {
    int64_t count;
    if (tn__poll_over(&poll, 20 * cross->n)) return TN_CANCELLED;
    st = tn__cross_row(cross, row, &count, ctx->err);
    if (st == TN_OK && __builtin_add_overflow(total, count, &total))
      st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are too many combinations");
    if (st == TN_OK && count > shape[1]) shape[1] = count;
  }
  if (st == TN_OK) st = tn__give_entries(ctx, 0, total, 2);
  return st == TN_OK ? tn__give_ints(ctx, 2, shape, 2) : st;
}

/* How the combinations are written. */
typedef struct writing {
  tn__slice separator;
  const uint64_t *start;
  int64_t buckets;
} writing;

static tn_status write_row(tn_kernel_ctx *ctx, tn__cross *cross, const writing *w, int64_t row, int64_t count,
                           int64_t *at, tn__poll *poll)
{
  int64_t *indices = (int64_t *)ctx->outputs[0]->data + 2 * *at;
  tn_view *values = ctx->outputs[1];
  tn_status st = TN_OK;
  tn__cross_first(cross);
  for (int64_t k = 0; st == TN_OK && k < count; k++, (*at)++) {
    if (tn__poll_over(poll, 40 * cross->n)) return TN_CANCELLED;
    if (k > 0) tn__cross_next(cross);
    *indices++ = row;
    *indices++ = k;
    if (values->dtype == TN_STRING)
      st = tn__cross_text(cross, w->separator, (tn_string *)values->data + *at, ctx->err);
    else ((int64_t *)values->data)[*at] = tn__cross_number(cross, w->start, w->buckets);
  }
  return st;
}

static tn_status write_crosses(tn_kernel_ctx *ctx, tn__cross *cross, const writing *w, int64_t rows)
{
  int64_t at = 0;
  tn_status st = allocate(ctx, cross, rows);
  tn__poll poll = tn__poll_of(ctx);
  if (st == TN_OK) tn__cross_rewind(cross);
  for (int64_t row = 0; st == TN_OK && cross->n > 0 && row < rows; row = tn__cross_next_row(cross, row)) {
    int64_t count;
    if (tn__poll_over(&poll, 20 * cross->n)) return TN_CANCELLED;
    st = tn__cross_row(cross, row, &count, ctx->err);
    if (st == TN_OK && count > 0) st = write_row(ctx, cross, w, row, count, &at, &poll);
  }
  return st;
}

static tn_status cross_compute(tn_kernel_ctx *ctx)
{
  const cross_state *s = ctx->state;
  const writing w = { tn__slice_of("_X_"), &s->key, s->buckets };
  tn__cross cross;
  int64_t rows;
  tn_status st = columns_of(ctx, &cross, &rows);
  return st == TN_OK ? write_crosses(ctx, &cross, &w, rows) : st;
}

/* Input `own`: the separator. */
static tn_status cross_v2_compute(tn_kernel_ctx *ctx)
{
  const cross_state *s = ctx->state;
  writing w = { { NULL, 0 }, NULL, 0 };
  tn__cross cross;
  int64_t rows;
  w.separator.data = tn_string_data(ctx->inputs[3 * s->sparse + s->dense]->data, &w.separator.size);
  tn_status st = columns_of(ctx, &cross, &rows);
  return st == TN_OK ? write_crosses(ctx, &cross, &w, rows) : st;
}

/* Inputs from `own` on: the number of buckets, whether the hash is strong, and its key. */
static tn_status cross_hashed_compute(tn_kernel_ctx *ctx)
{
  const cross_state *s = ctx->state;
  uint32_t own = 3 * s->sparse + s->dense;
  const writing w = { { NULL, 0 }, NULL, *(const int64_t *)ctx->inputs[own]->data };
  const int64_t *salt = ctx->inputs[own + 2]->data;
  tn__cross cross;
  int64_t rows;
  tn_status st = columns_of(ctx, &cross, &rows);
  if (st != TN_OK) return st;
  cross.kind = *(const uint8_t *)ctx->inputs[own + 1]->data != 0 ? TN__CROSS_HASH_STRONG : TN__CROSS_HASH_KEYED;
  cross.key[0] = (uint64_t)salt[0];
  cross.key[1] = (uint64_t)salt[1];
  return write_crosses(ctx, &cross, &w, rows);
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err) { return tn__infer_sparse_output(ctx, 0, -1, 2, err); }

/* ---- tables ---- */

#define COLUMNS "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types"
#define TYPES "sparse_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0"
#define OP(op, in, type, attributes, text)                                                                     \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = COLUMNS in,                                           \
    .outputs = "output_indices: int64, output_values: " type ", output_shape: int64", .attrs = attributes,     \
    .traits = TN_TRAIT_DYNAMIC, .infer = infer, .summary = text }

static const tn_op_def ops[] = {
  OP("SparseCross", "", "out_type",
     "N: int >= 0; hashed_output: bool; num_buckets: int >= 0; hash_key: int; " TYPES
     "; out_type: {int64, string}; internal_type: {int64, string}",
     "combinations of the values in each row of several columns"),
  OP("SparseCrossHashed", ", num_buckets: int64, strong_hash: bool, salt: int64", "int64", "N: int >= 0; " TYPES,
     "hashes of combinations of the values in each row of several columns"),
  OP("SparseCrossV2", ", sep: string", "string", "N: int >= 0; " TYPES,
     "combinations of the values in each row of several columns, as texts"),
};

#define KERNEL(which, title, compute_fn)                                                                    \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,      \
    .create = create, .destroy = destroy, .prepare = prepare, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("SparseCross", "sparse_cross_cpu", cross_compute),
  KERNEL("SparseCrossHashed", "sparse_cross_hashed_cpu", cross_hashed_compute),
  KERNEL("SparseCrossV2", "sparse_cross_v2_cpu", cross_v2_compute),
};

TN_OP_FAMILY(sparse_cross)
