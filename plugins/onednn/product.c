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

/* A product as described to oneDNN: dimensions before the last two are batches, 1 if they are broadcast. */
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

/* all: rows of the matrices in memory, of which these are some. */
static dnnl_memory_desc_t matrices(const int64_t *batch, int n_batch, int64_t all, int64_t rows, int64_t columns,
                                   bool across, dnnl_data_type_t type)
{
  int64_t dims[DNNL_MAX_NDIMS], strides[DNNL_MAX_NDIMS], step = all * columns;
  for (int i = n_batch - 1; i >= 0; i--) {
    dims[i] = batch[i];
    strides[i] = step;
    step *= batch[i];
  }
  dims[n_batch] = rows;
  dims[n_batch + 1] = columns;
  strides[n_batch] = across ? 1 : columns;
  strides[n_batch + 1] = across ? all : 1;
  return dnn_strided(dims, strides, n_batch + 2, type);
}

/* Rows of weights at such distances map to the same cache sets, so oneDNN copies them in each step. */
static bool collide(int64_t n) { return n > 256 && (n & (n - 1)) == 0; }

/* Sizes at which the library's own loops are as fast or faster. Products by constants, which are packed: */
#define SMALL 30000
#define NARROW 8         /* columns */
#define SMALL_ROW \
  400000 /* one row, which memory limits in any case; also all products if a fused multiply-add is not faster */
#define RAGGED 256       /* the same for columns that do not fill vectors */
/* Products by values that are not constant: */
#define SMALL_FED 100000
#define NARROW_FED 32
#define SMALL_SHORT 16000 /* of bfloat16 */

/* Without AVX-512, oneDNN packs constants in each step. If their rows are multiples of 2 KiB apart, which map to few
 * cache sets, that takes as long as the product of some hundred rows: 256 rows by 512x2048 take 1.8 times as long as in
 * the library's own kernel. */
#define FEW_FOR_PACKING 512
static bool packs_slowly(const sizes *z)
{
  return z->n_batch == 0 && z->n % 512 == 0 && z->rows < FEW_FOR_PACKING && !dnn_packs_weights();
}

static bool is_small(const sizes *z, bool constant)
{
  if (constant && packs_slowly(z)) return true;
  bool faster = constant && z->n_batch == 0 && z->rows > 1 && dnn_fused_is_faster();
  if (z->n_batch == 0 && z->n < (faster ? NARROW : NARROW_FED)) return true;
  if (faster) return z->products < SMALL;
  if (constant) return z->products < SMALL_ROW || (z->n % 16 != 0 && z->n < RAGGED);
  return z->rows == 1 || z->products < SMALL_FED || collide(z->n);
}

/* Not if reading weights is most of the work, or if their rows do not begin at a cache line. */
bool dnn_rows_plain(int64_t rows, int64_t n)
{
  return n % 16 == 0 && !collide(n) && rows >= (n > 256 ? 64 : 4);
}

/* Rows of a product, or matrices of a batch, that make a part of it. */
typedef struct band {
  int64_t matrix, matrices, row, rows;
} band;

typedef struct layouts {
  dnnl_memory_desc_t source, plain, target, bias;
  size_t source_at, plain_at, target_at; /* bytes */
} layouts;

static int64_t matrices_of(const sizes *z)
{
  int64_t n = 1;
  for (int i = 0; i < z->n_batch; i++) n *= z->out[i];
  return n;
}

/* A band of some of the matrices only has one batch dimension. */
static layouts describe(const product_state *s, const sizes *z, const band *b, dnnl_data_type_t type)
{
  const int64_t wide[] = { 1, z->n }, one[] = { z->n, 1 };
  sizes part = *z;
  layouts l;
  if (b->matrices < matrices_of(z)) part.a[0] = part.b[0] = part.out[0] = b->matrices;
  l.source = matrices(part.a, z->n_batch, z->rows, b->rows, z->k, s->across_a, type);
  l.plain = matrices(part.b, z->n_batch, z->k, z->k, z->n, s->across_b, type);
  l.target = matrices(part.out, z->n_batch, z->rows, b->rows, z->n, false, type);
  l.bias = dnn_strided(wide, one, 2, type);
  size_t element = dnnl_data_type_size(type);
  l.source_at = ((size_t)(b->matrix * z->m * z->k) + (size_t)b->row * (s->across_a ? 1 : (size_t)z->k)) * element;
  l.plain_at = (size_t)(b->matrix * z->k) * (size_t)z->n * element;
  l.target_at = (size_t)(b->matrix * z->m + b->row) * (size_t)z->n * element;
  return l;
}

/* Makes a plan for a band. Packed weights have the layout that the primitive prefers, or that of an earlier plan,
 * `like`.
 */
static tn_status band_create(tn_prepare_ctx *ctx, const product_state *s, const sizes *z, const layouts *l,
                             const dnn_plan *like, dnn_plan **out, tn_error *err)
{
  const int64_t weights[] = { z->k, z->n };
  dnnl_data_type_t type = l->source.data_type;
  const dnnl_memory_desc_t any = dnn_any(weights, 2, type), *by = &l->plain;
  const dnnl_memory_desc_t *bias = dnn_has_bias(&s->epilogue) ? &l->bias : NULL;
  const dnn_setup setup = { &s->epilogue, &l->target, NULL };
  const dnn_follow follow = { .bias = &l->bias, .added = &l->target, .added_at = l->target_at };
  dnnl_matmul_desc_t desc;
  if (tn_prepare_is_constant(ctx, 1) && z->n_batch == 0 &&
      (type != dnnl_f32 || s->across_b || !dnn_rows_plain(z->rows, z->n)))
    by = like == NULL ? &any : dnnl_primitive_desc_query_md(like->desc, dnnl_query_weights_md, 0);
  tn_status st = dnn_status(dnnl_matmul_desc_init(&desc, &l->source, by, bias, &l->target), "product", err);
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &setup, out, err);
  if (st != TN_OK) return st;
  dnn_plan_input_piece(*out, DNNL_ARG_SRC, 0, l->source_at, &l->source);
  dnn_plan_output_piece(*out, DNNL_ARG_DST, l->target_at, &l->target);
  dnn_plan_epilogue(*out, &s->epilogue, 2, &follow);
  return TN_OK;
}

static tn_status band_end(tn_prepare_ctx *ctx, const layouts *l, dnn_plan *p, tn_error *err)
{
  tn_status st = TN_OK;
  if (l->plain_at > 0) dnn_plan_input_piece(p, DNNL_ARG_WEIGHTS, 1, l->plain_at, &l->plain);
  else st = dnn_plan_weights(p, ctx, DNNL_ARG_WEIGHTS, 1, &l->plain, false, err);
  return st == TN_OK ? dnn_plan_end(p, ctx, err) : st;
}

/* Divides a product: by its matrices if they are contiguous in both operands, otherwise by its rows. */
static band band_of(const sizes *z, uint32_t parts, uint32_t i)
{
  int64_t all = matrices_of(z);
  if (z->n_batch == 0) {
    int64_t row = dnn_part_begin(z->rows, parts, i);
    return (band){ 0, 1, row, dnn_part_begin(z->rows, parts, i + 1) - row };
  }
  int64_t matrix = dnn_part_begin(all, parts, i);
  return (band){ matrix, dnn_part_begin(all, parts, i + 1) - matrix, 0, z->rows };
}

/* Minimum rows of a band: each band reads all weights, and several rows are computed at once. */
#define MIN_ROWS 24
#define FEW_ROWS 4 /* if there are few rows */

static double cost_of(const sizes *z) { return dnn_product_ns(z->products, (double)z->k * (double)z->n); }

static uint32_t parts_of(const tn_prepare_ctx *ctx, const product_state *s, const sizes *z)
{
  uint32_t n = dnn_parts_worth(ctx, cost_of(z));
  int64_t least = z->rows < 2 * MIN_ROWS ? FEW_ROWS : MIN_ROWS;
  int64_t most = z->n_batch == 0 ? z->rows / least : matrices_of(z);
  if (z->n_batch > 1 || (z->n_batch == 1 && z->a[0] != z->b[0])) return 1;
  if (z->n_batch == 0 && s->across_a) n = 1; /* threads do not make it faster */
  return dnn_parts_long(ctx, n == 1 ? n : dnn_parts_at_most(ctx, n, most), cost_of(z), most);
}

static tn_status whole_plan(tn_prepare_ctx *ctx, const product_state *s, const sizes *z, const dnn_plan *like,
                            tn_error *err)
{
  const band whole = { 0, matrices_of(z), 0, z->rows };
  layouts l = describe(s, z, &whole, dnn_type(ctx->inputs[0].dtype));
  dnn_plan *p;
  tn_status st = band_create(ctx, s, z, &l, like, &p, err);
  return st == TN_OK ? band_end(ctx, &l, p, err) : st;
}

/* All primitives are made before the weights are packed: a packed form cannot be undone. */
static tn_status banded_plan(tn_prepare_ctx *ctx, const product_state *s, const sizes *z, uint32_t n, tn_error *err)
{
  dnnl_data_type_t type = dnn_type(ctx->inputs[0].dtype);
  tn_status st = dnn_parts_begin(ctx, n, cost_of(z), err);
  dnn_plan *p, *all = ctx->shape_state;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    band b = band_of(z, n, i);
    layouts l = describe(s, z, &b, type);
    st = band_create(ctx, s, z, &l, i == 0 ? NULL : all->parts[0], &p, err);
  }
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    band b = band_of(z, n, i);
    layouts l = describe(s, z, &b, type);
    st = band_end(ctx, &l, all->parts[i], err);
  }
  if (st != TN_OK) return st;
  dnn_whole_begin(ctx);
  dnn_whole_end(ctx, whole_plan(ctx, s, z, all->parts[0], err), err);
  return TN_OK;
}

static tn_status product_plan(tn_prepare_ctx *ctx, const product_state *s, const sizes *z, tn_error *err)
{
  uint32_t n = parts_of(ctx, s, z);
  if (z->n_batch == 0 && !s->across_a && !s->across_b) {
    tn_status st = dnn_columns_plan(ctx, &s->epilogue, z->rows, z->k, z->n, cost_of(z), err);
    if (st != TN_UNIMPLEMENTED) return st;
    dnn_plan_undo(ctx, err);
  }
  if (n > 1) {
    tn_status st = banded_plan(ctx, s, z, n, err);
    if (st != TN_UNIMPLEMENTED) return st;
    dnn_plan_undo(ctx, err);
  }
  return whole_plan(ctx, s, z, NULL, err);
}

static sizes sizes_of(int64_t rows, int64_t k, int64_t n)
{
  return (sizes){ .m = rows, .k = k, .n = n, .rows = rows, .rank = 2,
                  .products = (double)rows * (double)k * (double)n };
}

bool dnn_product_is_small(int64_t rows, int64_t k, int64_t n)
{
  const sizes z = sizes_of(rows, k, n);
  return is_small(&z, true);
}

tn_status dnn_rows_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, int64_t rows, int64_t k, int64_t n, tn_error *err)
{
  const product_state s = { .epilogue = *e };
  const sizes z = sizes_of(rows, k, n);
  return product_plan(ctx, &s, &z, err);
}

tn_status dnn_product_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const product_state *s = ctx->state;
  sizes z;
  if (!measure(ctx, s, &z)) return dnn_declined(err, "shapes that the library's own kernel judges");
  if (!dnn_epilogue_fits(&s->epilogue, ctx, 2, z.shape, z.rank))
    return dnn_declined(err, "fused tensors of other shapes");
  if (ctx->inputs[0].dtype == TN_FLOAT && !dnn_multiplies_faster())
    return dnn_declined(err, "a processor on which the library's own products are as fast");
  if (ctx->inputs[0].dtype != TN_FLOAT ? z.products < SMALL_SHORT : is_small(&z, tn_prepare_is_constant(ctx, 1)))
    return dnn_declined(err, "a product that the library's own kernel computes faster");
  if (dnn_too_long(cost_of(&z), parts_of(ctx, s, &z)))
    return dnn_declined(err, "a product that no time limit would end");
  tn_status st = product_plan(ctx, s, &z, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, z.shape, z.rank, err);
  ctx->cost_ns = cost_of(&z);
  return st;
}
