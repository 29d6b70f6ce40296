/* SPDX-License-Identifier: Apache-2.0 */
/* Factorisations and solutions of batches of matrices: Cholesky, Qr, Svd, SelfAdjointEigV2, MatrixDeterminant,
 * MatrixInverse, MatrixSolve and their like. Matrices of a batch are computed in parallel. */
#include <core/base/alloc.h>
#include <ops/kernel/bands.h>
#include <ops/kernel/family.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/linalg/matrix.h>
#include <stdatomic.h>
#include <string.h>

typedef struct linalg_op {
  const char *name; /* without the prefix Batch */
  tn__matrix_op op;
  bool square, right_side;
} linalg_op;

static const linalg_op all_ops[] = {
  { "Cholesky", TN__CHOLESKY, true, false },
  { "MatrixDeterminant", TN__DETERMINANT, true, false },
  { "LogMatrixDeterminant", TN__LOG_DETERMINANT, true, false },
  { "MatrixInverse", TN__INVERSE, true, false },
  { "MatrixSolve", TN__SOLVE, true, true },
  { "MatrixTriangularSolve", TN__SOLVE_TRIANGULAR, true, true },
  { "MatrixSolveLs", TN__SOLVE_LEAST, false, true },
  { "Qr", TN__QR, false, false },
  { "SelfAdjointEigV2", TN__EIGEN, true, false },
  { "Svd", TN__SINGULAR, false, false },
};

typedef struct linalg_state {
  const linalg_op *op;
  tn_dtype dtype;
  tn__matrix_fn fn;
  bool lower, adjoint, full, fast, vectors;
} linalg_state;

typedef struct linalg_plan {
  tn__matrix sizes;
  tn__bands bands;
  int64_t strides[3]; /* of the outputs, in elements */
  tn__form in[2], out[3]; /* half and bfloat16 are computed in float */
  int32_t batch_rank; /* if a triangular solution repeats matrices: dimensions of its batch, else 0 */
  int64_t dims[TN_MAX_RANK], a_steps[TN_MAX_RANK], b_steps[TN_MAX_RANK];
} linalg_plan;

static const linalg_op *find(const tn_operation *op)
{
  const char *name = tn_operation_type(op);
  if (strncmp(name, "Batch", 5) == 0) name += 5;
  for (size_t i = 0; i < sizeof all_ops / sizeof *all_ops; i++)
    if (strcmp(all_ops[i].name, name) == 0) return &all_ops[i];
  return NULL;
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  tn_dtype dtype = tn__attr_type(op, "T");
  linalg_state s = { .op = find(op), .dtype = dtype };
  *state = NULL;
  s.fn = tn__matrix_find(s.op->op, tn__wide_dtype(dtype));
  if (s.fn == NULL) return tn__no_kernel(err, op, dtype);
  s.lower = tn__attr_bool(op, "lower", true);
  s.adjoint = tn__attr_bool(op, "adjoint", false);
  s.full = tn__attr_bool(op, "full_matrices", false);
  s.fast = tn__attr_bool(op, "fast", true);
  s.vectors = tn__attr_bool(op, "compute_v", true) && tn__attr_bool(op, "compute_uv", true);
  return tn__keep_state(&s, sizeof s, "state of a matrix operation", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(linalg_state)); }
static void destroy_plan(void *shape_state) { tn__free(shape_state, sizeof(linalg_plan)); }

/* ---- shapes ---- */

/* The last dimensions of output i; returns their number. -1 is unknown. */
static int last_dims(tn__matrix_op op, uint32_t i, int64_t m, int64_t n, int64_t k, bool full, bool vectors,
                     int64_t *dims)
{
  const int64_t least = m < n ? m : n; /* unknown if one is */
  dims[0] = m;
  dims[1] = n;
  switch (op) {
  case TN__DETERMINANT:
  case TN__LOG_DETERMINANT: return 0;
  case TN__SOLVE:
  case TN__SOLVE_TRIANGULAR:
  case TN__SOLVE_LEAST: dims[0] = n, dims[1] = k; return 2;
  case TN__QR:
    if (i == 0) dims[1] = full ? m : least;
    else dims[0] = full ? m : least;
    return 2;
  case TN__EIGEN:
  case TN__SINGULAR:
    if (i == 0) {
      dims[0] = least;
      return 1;
    }
    if (!vectors) {
      dims[0] = 0;
      return 1;
    }
    dims[0] = i == 1 ? m : n;
    dims[1] = full ? dims[0] : least;
    return 2;
  default: return 2;
  }
}

/* The batch of the result, and for each of its dimensions the steps of both inputs in matrices; 0 repeats. */
static tn_status plan_batch(const tn_prepare_ctx *ctx, const linalg_state *s, linalg_plan *p, tn__shape *batch,
                            tn_error *err)
{
  const tn_view *a = &ctx->inputs[0], *b = &ctx->inputs[s->op->right_side ? 1 : 0];
  if (!tn__broadcast_shapes(a->dims, a->rank - 2, b->dims, b->rank - 2, batch))
    return tn__broadcast_error(err, tn_operation_type(ctx->op), a->dims, a->rank - 2, b->dims, b->rank - 2);
  if (s->op->op != TN__SOLVE_TRIANGULAR &&
      (a->rank != b->rank || memcmp(a->dims, b->dims, (size_t)(a->rank - 2) * sizeof *a->dims) != 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs 0 and 1 have different batches, wanted equal ones",
                        tn_operation_type(ctx->op));
  int64_t a_step = 1, b_step = 1;
  p->batch_rank = batch->rank;
  for (int32_t d = batch->rank - 1, i = a->rank - 3, j = b->rank - 3; d >= 0; d--, i--, j--) {
    p->dims[d] = batch->dims[d];
    p->a_steps[d] = i >= 0 && a->dims[i] != 1 ? a_step : 0;
    p->b_steps[d] = j >= 0 && b->dims[j] != 1 ? b_step : 0;
    if (i >= 0) a_step *= a->dims[i];
    if (j >= 0) b_step *= b->dims[j];
  }
  return TN_OK;
}

static tn_status check_inputs(const tn_prepare_ctx *ctx, const linalg_state *s, tn_error *err)
{
  const tn_view *a = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 2, err);
  if (st == TN_OK && s->op->right_side) st = tn__want_rank_at_least(ctx, 1, 2, err);
  if (st == TN_OK && s->op->op == TN__SOLVE_LEAST) st = tn__want_rank(ctx, 2, 0, err);
  if (st != TN_OK) return st;
  const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  if (s->op->square && m != n)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has matrices of %lld x %lld, wanted square ones",
                        tn_operation_type(ctx->op), (long long)m, (long long)n);
  const tn_view *b = &ctx->inputs[1];
  if (s->op->right_side && b->dims[b->rank - 2] != m)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has matrices of %lld rows, wanted %lld as in input 0",
                        tn_operation_type(ctx->op), (long long)b->dims[b->rank - 2], (long long)m);
  return TN_OK;
}

/* Scratch for the forms of inputs and outputs in which they are computed. */
static void plan_forms(tn_prepare_ctx *ctx, linalg_plan *p, int64_t count)
{
  const linalg_state *s = ctx->state;
  size_t scratch = (ctx->scratch_bytes + TN_ALIGN - 1) / TN_ALIGN * TN_ALIGN;
  for (uint32_t i = 0; i < (s->op->right_side ? 2 : 1); i++)
    tn__form_plan(&p->in[i], s->dtype, false, &(tn__volume){ 1, { 1, 1, ctx->inputs[i].count }, 1 }, &scratch);
  for (uint32_t i = 0; i < ctx->n_outputs; i++)
    tn__form_plan(&p->out[i], s->dtype, false, &(tn__volume){ 1, { 1, 1, count * p->strides[i] }, 1 }, &scratch);
  ctx->scratch_bytes = scratch;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const linalg_state *s = ctx->state;
  tn__shape batch;
  tn_status st = check_inputs(ctx, s, err);
  if (st != TN_OK) return st;
  linalg_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "matrix operation", sizeof *p);
  ctx->shape_state = p;
  const tn_view *a = &ctx->inputs[0], *b = s->op->right_side ? &ctx->inputs[1] : NULL;
  tn__matrix *sizes = &p->sizes;
  *sizes = (tn__matrix){ .m = a->dims[a->rank - 2], .n = a->dims[a->rank - 1],
                         .k = b != NULL ? b->dims[b->rank - 1] : 0, .lower = s->lower, .adjoint = s->adjoint,
                         .full = s->full, .fast = s->fast };
  st = plan_batch(ctx, s, p, &batch, err);
  int64_t count = 1;
  for (int32_t d = 0; d < batch.rank && st == TN_OK; d++) count *= batch.dims[d];
  for (uint32_t i = 0; i < ctx->n_outputs && st == TN_OK; i++) {
    int64_t dims[2];
    tn__shape out = batch;
    int last = last_dims(s->op->op, i, sizes->m, sizes->n, sizes->k, s->full, s->vectors, dims);
    if (i > 0 && !s->vectors) out.rank = 0; /* no vectors: an empty output */
    p->strides[i] = 1;
    for (int d = 0; d < last && st == TN_OK; d++) {
      p->strides[i] *= dims[d];
      if (!tn__shape_append(&out, dims[d])) st = tn__shape_error(err, ctx, 0, a->dims, a->rank);
    }
    if (st == TN_OK) st = tn_prepare_output(ctx, i, out.dims, out.rank, err);
  }
  size_t work;
  if (st != TN_OK) return st;
  if (!tn__matrix_work(sizes->m, sizes->n, sizes->k, &work) ||
      !tn__size_mul(work, tn_dtype_size(a->dtype) > 8 ? 16 : 8, &work))
    return tn__no_memory(err, "matrix operation", SIZE_MAX);
  const double n = (double)sizes->n, m = (double)sizes->m;
  st = tn__bands_plan(ctx, count, 100 + n * m * (n < m ? n : m) + n * (double)sizes->k * n, work, &p->bands, err);
  if (st == TN_OK) plan_forms(ctx, p, count);
  return st;
}

/* ---- computing ---- */

typedef struct linalg_run {
  const tn_kernel_ctx *ctx;
  const linalg_state *state;
  const linalg_plan *plan;
  const char *in[2];
  char *out[3];
  double l2;
  atomic_int failed;
} linalg_run;

static void band(void *user, int64_t begin, int64_t end, char *buffers)
{
  linalg_run *r = user;
  const linalg_plan *p = r->plan;
  const tn_kernel_ctx *ctx = r->ctx;
  const size_t element = tn_dtype_size(tn__wide_dtype(r->state->dtype));
  for (int64_t i = begin; i < end; i++) {
    int64_t a = 0, b = 0, rest = i;
    for (int32_t d = p->batch_rank - 1; d >= 0; d--) {
      a += rest % p->dims[d] * p->a_steps[d];
      b += rest % p->dims[d] * p->b_steps[d];
      rest /= p->dims[d];
    }
    tn__matrix m = p->sizes;
    void *out[3] = { NULL };
    for (uint32_t o = 0; o < ctx->n_outputs; o++)
      if (o == 0 || r->state->vectors)
        out[o] = r->out[o] + (size_t)(i * p->strides[o]) * element;
    m.a = r->in[0] + (size_t)(a * m.m * m.n) * element;
    if (r->state->op->right_side) m.b = r->in[1] + (size_t)(b * m.m * m.k) * element;
    m.x = out[0];
    m.y = out[1];
    m.z = out[2];
    m.l2 = r->l2;
    m.work = buffers;
    if (!r->state->fn(&m)) atomic_store(&r->failed, 1);
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const linalg_plan *p = ctx->shape_state;
  linalg_run r = { .ctx = ctx, .state = ctx->state, .plan = p };
  const tn__matrix_op op = r.state->op->op;
  if (op == TN__SOLVE_LEAST) r.l2 = *(const double *)ctx->inputs[2]->data;
  if (r.l2 < 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "MatrixSolveLs: l2_regularizer is %g, wanted 0 or more", r.l2);
  if (p->bands.lines == 0) return TN_OK;
  char *scratch = ctx->scratch;
  for (int i = 0; i < (r.state->op->right_side ? 2 : 1); i++)
    r.in[i] = tn__form_load(&p->in[i], ctx, ctx->inputs[i]->data, scratch);
  for (uint32_t i = 0; i < ctx->n_outputs; i++) r.out[i] = tn__form_room(&p->out[i], ctx->outputs[i]->data, scratch);
  tn__bands_run(ctx, &p->bands, band, &r);
  for (uint32_t i = 0; i < ctx->n_outputs; i++)
    if (ctx->outputs[i]->count > 0) tn__form_store(&p->out[i], ctx, ctx->outputs[i]->data, scratch);
  if (atomic_load(&r.failed) == 0) return TN_OK;
  if (op == TN__SOLVE_LEAST)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "MatrixSolveLs: a matrix is rank deficient or ill-conditioned, wanted fast=false or a larger "
                        "l2_regularizer");
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s: a matrix is not invertible", r.state->op->name);
}

/* ---- tables ---- */

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  const linalg_op *which = find(op);
  tn__shape a, b = { .rank = -1 };
  tn_status st = tn__infer_rank_at_least(ctx, 0, 2, &a, err);
  if (st == TN_OK && which->right_side) st = tn__infer_rank_at_least(ctx, 1, 2, &b, err);
  if (st != TN_OK) return st;
  if (a.rank < 0 || (which->right_side && b.rank < 0)) return tn__infer_unknown(ctx, err);
  const int64_t m = a.dims[a.rank - 2], n = a.dims[a.rank - 1], k = which->right_side ? b.dims[b.rank - 1] : 0;
  const bool full = tn__attr_bool(op, "full_matrices", false);
  const bool vectors = tn__attr_bool(op, "compute_v", true) && tn__attr_bool(op, "compute_uv", true);
  const uint32_t n_outputs = (uint32_t)tn_operation_n_outputs(op);
  tn__shape batch = a;
  batch.rank = a.rank - 2;
  if (which->op == TN__SOLVE_TRIANGULAR && !tn__broadcast_shapes(a.dims, a.rank - 2, b.dims, b.rank - 2, &batch))
    return tn__infer_unknown(ctx, err); /* the kernel reports the error */
  for (uint32_t i = 0; i < n_outputs && st == TN_OK; i++) {
    int64_t dims[2];
    tn__shape out = batch;
    int last = last_dims(which->op, i, m, n, k, full, vectors, dims);
    if (i > 0 && !vectors) out.rank = 0;
    for (int d = 0; d < last; d++)
      if (!tn__shape_append(&out, dims[d])) return tn__infer_unknown(ctx, err);
    st = tn__infer_set(ctx, i, &out, err);
  }
  return st;
}

#define ALL "T: {double, float, half, complex64, complex128}"
#define REALS "T: {double, float}"
#define OP(which, in, out, attributes, text)                                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = which, .inputs = in, .outputs = out, .attrs = attributes,  \
    .infer = infer, .summary = text }
#define ADJOINT "adjoint: bool = false; "
#define TRIANGLE "lower: bool = true; " ADJOINT
#define VECTORS "compute_v: bool = true; "
#define SVD "compute_uv: bool = true; full_matrices: bool = false; "
#define LEAST "matrix: T, rhs: T, l2_regularizer: double"

static const tn_op_def ops[] = {
  OP("Cholesky", "input: T", "output: T", ALL, "lower triangular factor of a positive definite matrix"),
  OP("BatchCholesky", "input: T", "output: T", REALS, "lower triangular factor of a positive definite matrix"),
  OP("MatrixDeterminant", "input: T", "output: T", ALL, "determinant"),
  OP("BatchMatrixDeterminant", "input: T", "output: T", "T: {float, double, complex64, complex128}", "determinant"),
  OP("LogMatrixDeterminant", "input: T", "sign: T, log_abs_determinant: T", ALL,
     "sign and logarithm of the determinant"),
  OP("MatrixInverse", "input: T", "output: T", ADJOINT ALL, "inverse of a matrix"),
  OP("BatchMatrixInverse", "input: T", "output: T", ADJOINT REALS, "inverse of a matrix"),
  OP("MatrixSolve", "matrix: T, rhs: T", "output: T", ADJOINT ALL, "solves linear equations"),
  OP("BatchMatrixSolve", "matrix: T, rhs: T", "output: T", ADJOINT REALS, "solves linear equations"),
  OP("MatrixTriangularSolve", "matrix: T, rhs: T", "output: T",
     TRIANGLE "T: {bfloat16, double, float, half, complex64, complex128}", "solves triangular equations"),
  OP("BatchMatrixTriangularSolve", "matrix: T, rhs: T", "output: T", TRIANGLE REALS, "solves triangular equations"),
  OP("MatrixSolveLs", LEAST, "output: T", ALL "; fast: bool = true", "solves least squares problems"),
  OP("BatchMatrixSolveLs", LEAST, "output: T", REALS "; fast: bool = true", "solves least squares problems"),
  OP("Qr", "input: T", "q: T, r: T", "full_matrices: bool = false; " ALL, "orthogonal and triangular factors"),
  OP("SelfAdjointEigV2", "input: T", "e: T, v: T", VECTORS ALL, "eigenvalues of a Hermitian matrix"),
  OP("BatchSelfAdjointEigV2", "input: T", "e: T, v: T", VECTORS REALS, "eigenvalues of a Hermitian matrix"),
  OP("Svd", "input: T", "s: T, u: T, v: T", SVD ALL, "singular values and vectors"),
  OP("BatchSvd", "input: T", "s: T, u: T, v: T", SVD "T: {double, float, complex64, complex128}",
     "singular values and vectors"),
};

#define KERNEL(which)                                                                                       \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = "linalg_cpu",                  \
    .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare,                            \
    .destroy_shape_state = destroy_plan, .compute = compute }

static const tn_kernel_def kernels[] = {
  KERNEL("Cholesky"), KERNEL("BatchCholesky"), KERNEL("MatrixDeterminant"), KERNEL("BatchMatrixDeterminant"),
  KERNEL("LogMatrixDeterminant"), KERNEL("MatrixInverse"), KERNEL("BatchMatrixInverse"), KERNEL("MatrixSolve"),
  KERNEL("BatchMatrixSolve"), KERNEL("MatrixTriangularSolve"), KERNEL("BatchMatrixTriangularSolve"),
  KERNEL("MatrixSolveLs"), KERNEL("BatchMatrixSolveLs"), KERNEL("Qr"), KERNEL("SelfAdjointEigV2"),
  KERNEL("BatchSelfAdjointEigV2"), KERNEL("Svd"), KERNEL("BatchSvd"),
};

TN_OP_FAMILY(linalg)
