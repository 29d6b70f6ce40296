/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, alone, with what follows them, and in batches. */
#include "onednn.h"

#include <string.h>

typedef struct product_state {
  dnn_epilogue epilogue;
  bool across_a, across_b;
  bool batched, broadcasts;
} product_state;

tn_status dnn_product_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *type = tn_operation_type(op);
  product_state s = { .batched = strncmp(type, "BatchMatMul", 11) == 0 };
  tn_bool a = 0, b = 0;
  *state = NULL;
  s.broadcasts = s.batched && type[11] != 0;
  if (!dnn_type_is_fast(tn_operation_input_dtype(op, 0)))
    return dnn_declined(err, "this processor has no such products");
  (void)tn_operation_attr_bool(op, s.batched ? "adj_x" : "transpose_a", &a, NULL);
  (void)tn_operation_attr_bool(op, s.batched ? "adj_y" : "transpose_b", &b, NULL);
  tn_status st = dnn_epilogue_read(op, &s.epilogue, err);
  if (st != TN_OK) return st;
  product_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a product");
  s.across_a = a != 0;
  s.across_b = b != 0;
  *p = s;
  *state = p;
  return TN_OK;
}

/* A product as oneDNN is told of it: dimensions in front of the last two are batches, 1 where they are broadcast. */
typedef struct sizes {
  int64_t m, k, n, rows; /* rows: m, or all rows of the batches where they can be taken as one matrix */
  int n_batch, rank;     /* batches that oneDNN sees; rank of the output */
  int64_t a[DNNL_MAX_NDIMS], b[DNNL_MAX_NDIMS], out[DNNL_MAX_NDIMS]; /* batches */
  int64_t shape[DNNL_MAX_NDIMS];
  double products;
} sizes;

static int64_t batch_dim(const tn_view *v, int rank, int i)
{
  int at = i - (rank - v->rank);
  return at < 0 ? 1 : v->dims[at];
}

static bool measure_batches(const product_state *s, const tn_view *a, const tn_view *b, sizes *z)
{
  bool one_b = true, alike = true;
  z->rank = a->rank > b->rank ? a->rank : b->rank;
  if (z->rank > DNNL_MAX_NDIMS || (!s->broadcasts && a->rank != b->rank)) return false;
  z->n_batch = z->rank - 2;
  int64_t all = 1;
  for (int i = 0; i < z->n_batch; i++) {
    int64_t x = batch_dim(a, z->rank, i), y = batch_dim(b, z->rank, i);
    if (x != y && (!s->broadcasts || (x != 1 && y != 1))) return false;
    z->a[i] = x;
    z->b[i] = y;
    z->out[i] = z->shape[i] = x == 1 ? y : x;
    one_b = one_b && y == 1;
    alike = alike && x == y;
    all *= z->out[i];
  }
  z->rows = z->m;
  if (one_b && !s->across_a) { /* one matrix with all rows */
    z->rows = all * z->m;
    z->n_batch = 0;
  } else if (alike && z->n_batch > 1) {
    z->a[0] = z->b[0] = z->out[0] = all;
    z->n_batch = 1;
  }
  z->products = (double)all * (double)z->m * (double)z->n * (double)z->k;
  return true;
}

static bool measure(const tn_prepare_ctx *ctx, const product_state *s, sizes *z)
{
  const tn_view *a = &ctx->inputs[0], *b = &ctx->inputs[1];
  if (a->rank < 2 || b->rank < 2 || (!s->batched && (a->rank > 2 || b->rank > 2))) return false;
  if (!dnn_fits(a) || !dnn_fits(b)) return false;
  const int64_t *last_a = a->dims + a->rank - 2, *last_b = b->dims + b->rank - 2;
  z->m = last_a[s->across_a];
  z->k = last_a[!s->across_a];
  z->n = last_b[!s->across_b];
  if (last_b[s->across_b] != z->k || !measure_batches(s, a, b, z)) return false;
  z->shape[z->rank - 2] = z->m;
  z->shape[z->rank - 1] = z->n;
  return dnn_dims_fit(z->shape, z->rank);
}

static dnnl_memory_desc_t matrices(const int64_t *batch, int n_batch, int64_t rows, int64_t columns, bool across,
                                   dnnl_data_type_t type)
{
  int64_t dims[DNNL_MAX_NDIMS], strides[DNNL_MAX_NDIMS], step = rows * columns;
  for (int i = n_batch - 1; i >= 0; i--) {
    dims[i] = batch[i];
    strides[i] = step;
    step *= batch[i];
  }
  dims[n_batch] = rows;
  dims[n_batch + 1] = columns;
  strides[n_batch] = across ? 1 : columns;
  strides[n_batch + 1] = across ? rows : 1;
  return dnn_strided(dims, strides, n_batch + 2, type);
}


/* Rows of weights that far from each other fall on the same lines of a cache, so oneDNN copies them in each step. */
static bool collide(int64_t n) { return n > 256 && (n & (n - 1)) == 0; }

/* Where the library's own loops are as fast or faster: few products, narrow or ragged results, one row by what is not
 * packed. */
static bool is_small(const sizes *z, bool constant, tn_dtype dtype)
{
  if (dtype != TN_FLOAT) return z->products < 16000;
  if (z->n < 32 && z->n_batch == 0) return true;
  if (constant) return z->products < 400000 || (z->n % 16 != 0 && z->n < 256);
  return z->rows == 1 || z->products < 100000 || collide(z->n);
}

/* Not where reading weights is most of the work, or where their rows do not begin with a line of the cache. */
bool dnn_rows_plain(int64_t rows, int64_t n)
{
  return n % 16 == 0 && !collide(n) && rows >= (n > 256 ? 64 : 4);
}

static tn_status product_plan(tn_prepare_ctx *ctx, const product_state *s, const sizes *z, tn_error *err)
{
  dnnl_data_type_t type = dnn_type(ctx->inputs[0].dtype);
  const int64_t wide[] = { 1, z->n }, one[] = { z->n, 1 }, weights[] = { z->k, z->n };
  dnnl_memory_desc_t source = matrices(z->a, z->n_batch, z->rows, z->k, s->across_a, type);
  dnnl_memory_desc_t plain = matrices(z->b, z->n_batch, z->k, z->n, s->across_b, type);
  dnnl_memory_desc_t target = matrices(z->out, z->n_batch, z->rows, z->n, false, type);
  dnnl_memory_desc_t bias = dnn_strided(wide, one, 2, type), any = dnn_any(weights, 2, type);
  bool packs = tn_prepare_is_constant(ctx, 1) && z->n_batch == 0 &&
               (type != dnnl_f32 || s->across_b || !dnn_rows_plain(z->rows, z->n));
  dnnl_matmul_desc_t desc;
  tn_status st = dnn_status(dnnl_matmul_desc_init(&desc, &source, packs ? &any : &plain,
                                                  dnn_has_bias(&s->epilogue) ? &bias : NULL, &target), "product", err);
  dnn_plan *p = NULL;
  const dnn_setup setup = { &s->epilogue, &target, NULL };
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &setup, &p, err);
  if (st == TN_OK) st = dnn_plan_weights(p, ctx, DNNL_ARG_WEIGHTS, 1, &plain, false, err);
  if (st != TN_OK) return st;
  dnn_plan_input(p, DNNL_ARG_SRC, 0, &source, NULL);
  dnn_plan_output(p, DNNL_ARG_DST, &target, NULL);
  dnn_plan_epilogue(p, &s->epilogue, 2, &bias, &target);
  return dnn_plan_end(p, ctx, err);
}

tn_status dnn_rows_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, int64_t rows, int64_t k, int64_t n, tn_error *err)
{
  const product_state s = { .epilogue = *e };
  const sizes z = { .m = rows, .k = k, .n = n, .rows = rows, .rank = 2 };
  return product_plan(ctx, &s, &z, err);
}

tn_status dnn_product_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const product_state *s = ctx->state;
  sizes z;
  if (!measure(ctx, s, &z)) return dnn_declined(err, "shapes that the library's own kernel judges");
  if (!dnn_epilogue_fits(&s->epilogue, ctx, 2, z.shape, z.rank))
    return dnn_declined(err, "fused tensors of other shapes");
  if (is_small(&z, tn_prepare_is_constant(ctx, 1), ctx->inputs[0].dtype))
    return dnn_declined(err, "a product this small");
  tn_status st = product_plan(ctx, s, &z, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, z.shape, z.rank, err);
  ctx->cost_ns = z.products * 0.02;
  return st;
}
