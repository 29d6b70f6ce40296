/* SPDX-License-Identifier: Apache-2.0 */
/* SparseTensorDenseMatMul: a sparse matrix times a dense one. Each entry of the sparse matrix adds a row of the dense
 * one to a row of the product. A part of the work is a range of rows of the product: if the entries are in the order of
 * these rows, as they usually are, it finds its own by bisection, otherwise it skips those of other parts. An element
 * of the product is summed in the order of the entries, whatever the number of parts. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <string.h>

/* ---- loops ---- */

/* n entries: pairs[2 * i + left] is the row of the product, pairs[2 * i + 1 - left] that of b. Adds those of rows
 * [low, high). Rows have p elements; half and bfloat16 are added up in float. */
typedef struct entries {
  const void *values;
  const int64_t *pairs;
  int64_t n, p, low, high;
  int left; /* 0, or 1 if the sparse matrix is transposed */
} entries;
typedef void (*add_fn)(const entries *e, const void *b, void *out);

#define CONJ_f32(x) (x)
#define CONJ_f64(x) (x)
#define CONJ_f16(x) (x)
#define CONJ_bf16(x) (x)
#define CONJ_wi32(x) (x)
#define CONJ_c64(x) conjf(x)
#define CONJ_c128(x) conj(x)

#define ADD_LOOP(d, name, attribute)                                                                  \
  attribute static void name(const entries *e, const void *b_, void *out_)                            \
  {                                                                                                   \
    const tn__S_##d *values = e->values, *b = b_;                                                     \
    tn__C_##d *out = out_;                                                                            \
    for (int64_t i = 0; i < e->n; i++) {                                                              \
      int64_t row = e->pairs[2 * i + e->left];                                                        \
      if (row < e->low || row >= e->high) continue;                                                   \
      tn__C_##d a = TN__L_##d(values[i]);                                                             \
      if (e->left != 0) a = CONJ_##d(a);                                                              \
      const tn__S_##d *from = b + e->pairs[2 * i + 1 - e->left] * e->p;                               \
      tn__C_##d *restrict to = out + row * e->p;                                                      \
      for (int64_t j = 0; j < e->p; j++) to[j] = to[j] + TN__MUL(a, TN__L_##d(from[j]));              \
    }                                                                                                 \
  }

/* Rows [begin, end) of the conjugate transpose of b, a matrix of `rows` rows and `columns` columns. */
typedef void (*turn_fn)(const void *b, int64_t rows, int64_t columns, void *to, int64_t begin, int64_t end);

#define TURN_LOOP(d)                                                                                        \
  static void turn_##d(const void *b_, int64_t rows, int64_t columns, void *to_, int64_t begin, int64_t end) \
  {                                                                                                         \
    const tn__S_##d *b = b_;                                                                                \
    tn__S_##d *to = to_;                                                                                    \
    for (int64_t c = begin; c < end; c++)                                                                   \
      for (int64_t r = 0; r < rows; r++) to[c * rows + r] = CONJ_##d(b[r * columns + c]);                   \
  }

/* Elements of a row of sums as elements of the product. */
#define ROUND_LOOP(d)                                                                     \
  static void round_##d(const void *sums_, void *out_, int64_t n)                         \
  {                                                                                       \
    const tn__C_##d *sums = sums_;                                                        \
    tn__S_##d *out = out_;                                                                \
    for (int64_t i = 0; i < n; i++) out[i] = TN__P_##d(sums[i]);                          \
  }

#define LOOPS(d) ADD_LOOP(d, add_##d, TN__APART) TURN_LOOP(d)
LOOPS(f32)
LOOPS(f64)
LOOPS(f16)
LOOPS(bf16)
LOOPS(c64)
LOOPS(c128)
LOOPS(wi32)
ROUND_LOOP(f16)
ROUND_LOOP(bf16)
#define WIDE_ADD(d, end, attribute) ADD_LOOP(d, add_##d##_##end, attribute)
TN__AVX2_LOOPS(WIDE_ADD, f32)
TN__AVX2_LOOPS(WIDE_ADD, f64)

typedef struct product_loops {
  tn_dtype dtype;
  add_fn add[TN__VECTORS];
  turn_fn turn;
  void (*round)(const void *sums, void *out, int64_t n); /* NULL: the sums are the elements */
} product_loops;

static const product_loops all_loops[] = {
  { TN_FLOAT, TN__AVX2_FNS(add_f32), turn_f32, NULL },
  { TN_DOUBLE, TN__AVX2_FNS(add_f64), turn_f64, NULL },
  { TN_HALF, TN__SAME_FNS(add_f16), turn_f16, round_f16 },
  { TN_BFLOAT16, TN__SAME_FNS(add_bf16), turn_bf16, round_bf16 },
  { TN_COMPLEX64, TN__SAME_FNS(add_c64), turn_c64, NULL },
  { TN_COMPLEX128, TN__SAME_FNS(add_c128), turn_c128, NULL },
  { TN_INT32, TN__SAME_FNS(add_wi32), turn_wi32, NULL },
};

/* ---- the kernel ---- */

typedef struct product_state {
  const product_loops *loops;
  bool adjoint_a, adjoint_b;
} product_state;

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  product_state s = { NULL, tn__attr_bool(op, "adjoint_a", false), tn__attr_bool(op, "adjoint_b", false) };
  tn_dtype dtype = tn_operation_output_dtype(op, 0);
  *state = NULL;
  for (size_t i = 0; i < sizeof all_loops / sizeof *all_loops; i++)
    if (all_loops[i].dtype == dtype) s.loops = &all_loops[i];
  if (s.loops == NULL) return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "state of a product", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(product_state)); }

/* Checks that a and b can be multiplied. *dims is the shape of the product. */
static tn_status product_shape(const tn_prepare_ctx *ctx, int64_t *dims, tn_error *err)
{
  const product_state *s = ctx->state;
  const tn_view *indices = &ctx->inputs[0], *values = &ctx->inputs[1], *shape = &ctx->inputs[2], *b = &ctx->inputs[3];
  const int64_t wanted[2] = { values->count, 2 };
  tn_status st = tn__want_rank(ctx, 3, 2, err);
  if (st == TN_OK) st = tn__want_vector(ctx, 2, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK && (indices->dims[0] != wanted[0] || indices->dims[1] != 2))
    st = tn__shape_error(err, ctx, 0, wanted, 2);
  if (st != TN_OK) return st;
  int64_t rows = tn__operand_int(shape, s->adjoint_a ? 1 : 0), inner = tn__operand_int(shape, s->adjoint_a ? 0 : 1);
  if (rows < 0 || inner < 0 || inner != b->dims[s->adjoint_b ? 1 : 0])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a matrix of %lld rows and %lld columns times one of %lld rows",
                        tn_operation_type(ctx->op), (long long)rows, (long long)inner,
                        (long long)b->dims[s->adjoint_b ? 1 : 0]);
  dims[0] = rows;
  dims[1] = b->dims[s->adjoint_b ? 0 : 1];
  return TN_OK;
}

/* Scratch memory: the transpose of b, if it is needed, then sums in float, for half and bfloat16. */
static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const product_state *s = ctx->state;
  const tn_view *b = &ctx->inputs[3];
  int64_t dims[2], count;
  tn_status st = product_shape(ctx, dims, err);
  if (st == TN_OK) st = tn_shape_elements(dims, 2, &count, err);
  if (st != TN_OK) return st;
  size_t turned = 0, sums = 0;
  if ((s->adjoint_b && !tn__size_mul((size_t)b->count, tn_dtype_size(b->dtype), &turned)) ||
      (s->loops->round != NULL && !tn__size_mul((size_t)count, sizeof(float), &sums)) ||
      !tn__size_add(tn__round_up(turned, TN_ALIGN), sums, &ctx->scratch_bytes))
    return tn__no_memory(err, "scratch memory", SIZE_MAX);
  ctx->cost_ns = 50 + (double)ctx->inputs[1].count * (5 + 0.3 * (double)dims[1]) + 0.1 * (double)count;
  ctx->shape_state = (void *)(uintptr_t)ctx->threads; /* a number, not an address */
  return tn_prepare_output(ctx, 0, dims, 2, err);
}

/* Checks the indices. *ascending: whether the rows of the product do not descend. */
static tn_status check_entries(const tn_kernel_ctx *ctx, int left, int64_t rows, int64_t inner, bool *ascending)
{
  const tn_view *indices = ctx->inputs[0];
  int64_t pairs[TN__INDEX_BLOCK], last = 0;
  tn__poll poll = tn__poll_of(ctx);
  *ascending = true;
  for (int64_t at = 0, n; at < indices->count; at += n) {
    n = indices->count - at < TN__INDEX_BLOCK ? indices->count - at : TN__INDEX_BLOCK;
    if (tn__poll_over(&poll, n)) return TN_CANCELLED;
    tn__indices_load(indices, at, n, pairs);
    for (int64_t i = 0; i < n; i += 2) {
      int64_t row = pairs[i + left], k = pairs[i + 1 - left];
      if (row < 0 || row >= rows || k < 0 || k >= inner)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                            "entry %lld is in row %lld and column %lld, outside of the matrix", (long long)(at + i) / 2,
                            (long long)pairs[i], (long long)pairs[i + 1]);
      *ascending = *ascending && row >= last;
      last = row;
    }
  }
  return TN_OK;
}

typedef struct product_run {
  const tn_kernel_ctx *ctx;
  const product_loops *loops;
  add_fn add;
  const void *b;
  void *sums; /* the output, unless it is rounded */
  int64_t rows, p, part, b_rows, b_columns;
  int left;
  bool ascending;
} product_run;

/* The first entry of a row that is `row` or more. */
static int64_t first_entry(const product_run *r, int64_t row)
{
  const tn_view *indices = r->ctx->inputs[0];
  int64_t low = 0, high = indices->dims[0];
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (tn__view_int_at(indices, 2 * middle + r->left) < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

static void product_part(void *user, int64_t begin, int64_t end)
{
  const product_run *r = user;
  const tn_view *values = r->ctx->inputs[1];
  tn_view *out = r->ctx->outputs[0];
  size_t size = tn_dtype_size(values->dtype), sum = r->loops->round != NULL ? sizeof(float) : size;
  int64_t pairs[TN__INDEX_BLOCK], low = begin * r->part, high = end * r->part < r->rows ? end * r->part : r->rows;
  int64_t at = r->ascending ? first_entry(r, low) : 0, to = r->ascending ? first_entry(r, high) : values->count;
  tn__poll poll = tn__poll_here();
  memset((char *)r->sums + (size_t)(low * r->p) * sum, 0, (size_t)((high - low) * r->p) * sum);
  for (int64_t n; at < to; at += n) {
    n = to - at < TN__INDEX_BLOCK / 2 ? to - at : TN__INDEX_BLOCK / 2;
    if (tn__poll_over(&poll, n * (5 + r->p / 4))) return;
    tn__indices_load(r->ctx->inputs[0], 2 * at, 2 * n, pairs);
    const entries e = { (const char *)values->data + (size_t)at * size, pairs, n, r->p, low, high, r->left };
    r->add(&e, r->b, r->sums);
  }
  if (r->loops->round != NULL)
    r->loops->round((const float *)r->sums + low * r->p, (char *)out->data + (size_t)(low * r->p) * size,
                    (high - low) * r->p);
}

static void turn_part(void *user, int64_t begin, int64_t end)
{
  const product_run *r = user;
  r->loops->turn(r->ctx->inputs[3]->data, r->b_rows, r->b_columns, r->ctx->scratch, begin, end);
}

static int64_t parts_of(const product_run *r, int64_t threads, int64_t n)
{
  double work = (double)n * (3 + 0.3 * (double)r->p) + 0.2 * (double)r->rows * (double)r->p;
  if (work < 100000 || (!r->ascending && r->p < 32)) return 1;
  int64_t parts = r->ascending ? 4 * threads : threads; /* rows may have very different numbers of entries */
  return parts < 1 ? 1 : parts;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const product_state *s = ctx->state;
  const tn_view *values = ctx->inputs[1], *b = ctx->inputs[3];
  tn_view *out = ctx->outputs[0];
  if (out->count == 0) return TN_OK;
  product_run r = { ctx, s->loops, s->loops->add[tn__vectors()], b->data, out->data, out->dims[0], out->dims[1], 0,
                    b->dims[0], b->dims[1], s->adjoint_a ? 1 : 0, true };
  size_t turned = s->adjoint_b ? tn__round_up((size_t)b->count * tn_dtype_size(b->dtype), TN_ALIGN) : 0;
  if (values->count == 0 || b->count == 0) { /* as in TensorFlow, the indices are not checked */
    memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
    return TN_OK;
  }
  tn_status st = check_entries(ctx, r.left, r.rows, b->dims[s->adjoint_b ? 1 : 0], &r.ascending);
  if (st != TN_OK) return st;
  if (s->adjoint_b) {
    tn_parallel_for(ctx, b->dims[1], 1, (double)b->dims[0], turn_part, &r);
    if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
    r.b = ctx->scratch;
  }
  if (s->loops->round != NULL) r.sums = (char *)ctx->scratch + turned;
  int64_t parts = parts_of(&r, (int64_t)(uintptr_t)ctx->shape_state, values->count);
  if (parts > r.rows) parts = r.rows;
  r.part = (r.rows + parts - 1) / parts;
  parts = (r.rows + r.part - 1) / r.part;
  double cost = (double)values->count * (3 + 0.3 * (double)r.p) / (double)parts + 1;
  if (parts == 1) product_part(&r, 0, 1);
  else tn_parallel_for(ctx, parts, 1, cost, product_part, &r);
  return TN_OK;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape indices, values, shape, b;
  const int64_t *sizes;
  const tn_operation *op = tn_infer_operation(ctx);
  bool adjoint_a = tn__attr_bool(op, "adjoint_a", false), adjoint_b = tn__attr_bool(op, "adjoint_b", false);
  tn_status st = tn__infer_rank(ctx, 0, 2, &indices, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &values, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 1, &shape, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 3, 2, &b, err);
  if (st != TN_OK) return st;
  int64_t a[2] = { -1, -1 }, inner = b.dims[adjoint_b ? 1 : 0];
  int64_t known = tn_infer_input_ints(ctx, 2, &sizes);
  for (int k = 0; known == 2 && k < 2; k++) a[k] = sizes[k] >= 0 ? sizes[k] : -1;
  if (!tn__dim_merge(&inner, a[adjoint_a ? 0 : 1]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a matrix of %lld columns times one of %lld rows",
                        tn__infer_op(ctx), (long long)a[adjoint_a ? 0 : 1], (long long)inner);
  const int64_t dims[2] = { a[adjoint_a ? 1 : 0], b.dims[adjoint_b ? 0 : 1] };
  return tn_infer_output(ctx, 0, dims, 2, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseTensorDenseMatMul",
    .inputs = "a_indices: Tindices, a_values: T, a_shape: int64, b: T", .outputs = "product: T",
    .attrs = "T: type; Tindices: {int32, int64} = int64; adjoint_a: bool = false; adjoint_b: bool = false",
    .shape_operands = 1u << 2, .infer = infer, .summary = "a sparse matrix times a dense one" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseTensorDenseMatMul", .device = "CPU",
    .types = "T=float|double|half|bfloat16|int32|complex64|complex128", .name = "sparse_tensor_dense_matmul_cpu",
    .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(sparse_product)
