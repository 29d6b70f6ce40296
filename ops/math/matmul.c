/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: MatMul, with and without an epilogue, SparseMatMul, which is the same of matrices with many zeros,
 * BatchMatMul V1 to V3 over leading dimensions, and products by constants that are kept in shorter types.
 * ops/kernel/product/gemm.c computes them; this file handles shapes, broadcasting, and types that are computed in a
 * wider type. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/product/after_product.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/product/pack_right.h>
#include <ops/kernel/product/pairs.h>
#include <ops/kernel/product/product_loops.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* ---- shapes ---- */

/* Variant of the product, from the op's name and attributes. */
typedef struct flavour {
  const char *op;
  bool matrices;     /* MatMul, SparseMatMul: rank 2 only */
  bool broadcast;    /* leading dimensions broadcast; otherwise they must be equal */
  bool across_a, across_b;
  bool conjugate_a, conjugate_b;
} flavour;

static flavour flavour_of(const tn_operation *op)
{
  flavour f = { .op = tn_operation_type(op) };
  f.matrices = strncmp(f.op, "Batch", 5) != 0 && strcmp(f.op, "_TnReducedBatchMatMul") != 0;
  f.broadcast = !f.matrices && strcmp(f.op, "BatchMatMul") != 0;
  f.across_a = tn__attr_bool(op, f.matrices ? "transpose_a" : "adj_x", false);
  f.across_b = tn__attr_bool(op, f.matrices ? "transpose_b" : "adj_y", false);
  tn_dtype a = tn_operation_input_dtype(op, 0), b = tn_operation_input_dtype(op, 1);
  f.conjugate_a = !f.matrices && f.across_a && (a == TN_COMPLEX64 || a == TN_COMPLEX128);
  f.conjugate_b = !f.matrices && f.across_b && (b == TN_COMPLEX64 || b == TN_COMPLEX128);
  return f;
}

static tn_status shapes_error(const flavour *f, const tn__shape *a, const tn__shape *b, const char *what, tn_error *err)
{
  char x[160], y[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs of shapes %s%s and %s%s %s", f->op,
                      tn__format_shape(x, sizeof x, a->dims, a->rank), f->across_a ? " (transposed)" : "",
                      tn__format_shape(y, sizeof y, b->dims, b->rank), f->across_b ? " (transposed)" : "", what);
}

/* Shape of the product of two shapes of known rank. Dimensions may be unknown. */
static tn_status product_shape(const flavour *f, const tn__shape *a, const tn__shape *b, tn__shape *out, tn_error *err)
{
  int32_t ra = a->rank, rb = b->rank;
  if (f->matrices ? ra != 2 || rb != 2 : ra < 2 || rb < 2)
    return shapes_error(f, a, b, f->matrices ? "are not two matrices" : "have fewer than two dimensions", err);
  if (!f->matrices && !f->broadcast && ra != rb) return shapes_error(f, a, b, "have different ranks", err);
  int64_t inner_a = a->dims[ra - (f->across_a ? 2 : 1)], inner_b = b->dims[rb - (f->across_b ? 1 : 2)];
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) return shapes_error(f, a, b, "cannot be multiplied", err);
  if (f->broadcast) {
    if (!tn__broadcast_shapes(a->dims, ra - 2, b->dims, rb - 2, out))
      return shapes_error(f, a, b, "have batch dimensions that do not broadcast", err);
  } else {
    tn__shape_set(out, a->dims, ra - 2);
    for (int32_t i = 0; i < ra - 2; i++)
      if (!tn__dim_merge(&out->dims[i], b->dims[i]))
        return shapes_error(f, a, b, "have different batch dimensions", err);
  }
  if (!tn__shape_append(out, a->dims[ra - (f->across_a ? 1 : 2)]) ||
      !tn__shape_append(out, b->dims[rb - (f->across_b ? 2 : 1)]))
    return shapes_error(f, a, b, "have too many dimensions", err);
  return TN_OK;
}

static tn_status infer_product(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape a, b, out;
  flavour f = flavour_of(tn_infer_operation(ctx));
  tn__infer_get(ctx, 0, &a);
  tn__infer_get(ctx, 1, &b);
  if (f.matrices) {
    for (int i = 0; i < 2; i++) {
      tn_status st = tn__infer_rank(ctx, (size_t)i, 2, i == 0 ? &a : &b, err);
      if (st != TN_OK) return st;
    }
  }
  if (a.rank < 0 || b.rank < 0) {
    tn__shape_unknown(&out);
    return tn__infer_set(ctx, 0, &out, err);
  }
  tn_status st = product_shape(&f, &a, &b, &out, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &out, err);
}

/* ---- planning ---- */

typedef struct product_state {
  flavour f;
  tn__gemm_type type;
  tn_dtype wide;            /* the compute type */
  tn_dtype a, b, out;
  tn__gemm_weights weights;      /* of a constant b */
  bool pairs;                    /* 8-bit operands: two terms in an element (pairs.h) */
  bool copy_a, copy_b, copy_out; /* copied through scratch: to widen, pair, conjugate or narrow */
  tn__epilogue epilogue;         /* single products only */
} product_state;

typedef struct product_plan {
  tn__gemm_plan gemm;
  const void *packed;           /* the constant B in panels, or NULL */
  int64_t batch;
  int64_t terms;                /* k of the operands: the plan's k may count pairs */
  int64_t copied_a, copied_b;   /* elements of operands in the product's form */
  size_t at_a, at_b, at_out, at_gemm; /* offsets in scratch */
  int64_t *offset_a, *offset_b; /* in elements, by batch */
  size_t bytes;                 /* size of this allocation */
} product_plan;

static tn_status product_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  product_state s = { .f = flavour_of(op) };
  s.a = tn_operation_input_dtype(op, 0);
  s.b = tn_operation_input_dtype(op, 1);
  s.out = tn_operation_output_dtype(op, 0);
  s.wide = tn__wide_dtype(s.out);
  tn_status st = tn__after_product_read(op, true, &s.epilogue, err);
  if (st != TN_OK) return st;
  if (!tn__gemm_type_of(s.wide, &s.type)) return tn__no_kernel(err, op, s.out);
  s.weights = tn__weights_of(op);
  s.pairs = s.wide == TN_INT32 && tn__pairs_can(s.a) && tn__pairs_can(s.b);
  if (s.pairs) s.type = TN__GEMM_PAIRS;
  s.copy_a = s.a != s.wide || s.f.conjugate_a;
  s.copy_b = s.b != s.wide || s.f.conjugate_b;
  s.copy_out = s.out != s.wide;
  return tn__keep_state(&s, sizeof s, "product", state, err);
}

static void product_destroy(void *state) { tn__free(state, sizeof(product_state)); }

static void product_destroy_plan(void *plan) { tn__free(plan, ((product_plan *)plan)->bytes); }

/* Computes the offset of each batch's matrix, in elements, of which a matrix has `step`. Dimensions of size 1 are
 * broadcast. */
static void batch_offsets(const tn__shape *out, const tn_view *in, int64_t step, int64_t *offsets, int64_t n)
{
  int32_t rank = out->rank - 2, lead = rank - (in->rank - 2);
  int64_t stride[TN_MAX_RANK], at[TN_MAX_RANK] = { 0 };
  for (int32_t i = rank - 1; i >= 0; i--) {
    int64_t size = i < lead ? 1 : in->dims[i - lead];
    stride[i] = size == 1 ? 0 : step;
    step *= size;
  }
  int64_t offset = 0;
  for (int64_t b = 0; b < n; b++) {
    offsets[b] = offset;
    for (int32_t i = rank - 1; i >= 0; i--) {
      offset += stride[i];
      if (++at[i] < out->dims[i]) break;
      offset -= stride[i] * out->dims[i];
      at[i] = 0;
    }
  }
}

typedef struct pairs_request {
  const product_plan *plan;
  bool across;
} pairs_request;

static tn_status pack_pairs(void *user, const tn_view *from, void *to, tn_error *err)
{
  const pairs_request *r = user;
  const tn__gemm_plan *g = &r->plan->gemm;
  const int64_t k = r->plan->terms;
  size_t bytes = (size_t)r->plan->copied_b * sizeof(uint32_t);
  void *b = tn__alloc(bytes);
  if (b == NULL) return tn__no_memory(err, "packed constant", bytes);
  tn__pairs_right(NULL, from->dtype, from->data, 1, k, g->n, r->across ? 1 : g->n, r->across ? k : 1, b);
  tn__gemm_pack(g, b, to);
  tn__free(b, bytes);
  return TN_OK;
}

/* Without memory b is paired in each step, with the same result. */
static void try_pack_pairs(tn_prepare_ctx *ctx, product_plan *p, const product_state *s)
{
  tn__gemm_plan *g = &p->gemm;
  pairs_request r = { p, s->f.across_b };
  tn__gemm_plan_choose(g);
  const uint64_t key = 0x7061697200000000u | (uint64_t)g->kernel->nr << 1 | (uint64_t)s->f.across_b;
  if (tn_prepare_pack(ctx, 1, key, tn__gemm_packed_bytes(g), pack_pairs, &r, &p->packed, NULL) != TN_OK)
    p->packed = NULL;
  g->packed = p->packed != NULL;
  if (g->packed) p->copied_b = 0;
}

/* Packs a constant B into panels once. Even a single row is multiplied faster by panels than by an unpacked B. */
static tn_status try_pack(tn_prepare_ctx *ctx, product_plan *p, const product_state *s, tn_error *err)
{
  if (p->batch == 1 && s->pairs && p->copied_b > 0) try_pack_pairs(ctx, p, s);
  if (p->batch == 1 && !s->copy_b) return tn__pack_right(ctx, &p->gemm, s->weights, &p->packed, err);
  tn__gemm_plan_choose(&p->gemm);
  return TN_OK;
}

static size_t take(size_t *scratch, size_t bytes)
{
  size_t at = *scratch;
  *scratch += tn__round_up(bytes, TN_ALIGN);
  return at;
}

static void lay_out(tn_prepare_ctx *ctx, product_plan *p, const product_state *s, int64_t out_count)
{
  size_t wide = tn_dtype_size(s->wide), scratch = 0;
  if (s->copy_a) p->at_a = take(&scratch, (size_t)p->copied_a * wide);
  if (s->copy_b) p->at_b = take(&scratch, (size_t)p->copied_b * wide);
  if (s->copy_out) p->at_out = take(&scratch, (size_t)out_count * wide);
  p->at_gemm = take(&scratch, p->gemm.scratch);
  ctx->scratch_bytes = scratch;
  ctx->cost_ns = p->gemm.cost_ns * (double)p->batch;
}

static void set_matrices(tn__gemm_plan *g, const product_state *s, const tn_view *a, const tn_view *b)
{
  const int64_t *da = a->dims + a->rank - 2, *db = b->dims + b->rank - 2;
  g->type = s->type;
  g->m = s->f.across_a ? da[1] : da[0];
  g->k = s->f.across_a ? da[0] : da[1];
  g->n = s->f.across_b ? db[0] : db[1];
  g->a_row = s->f.across_a ? 1 : da[1];
  g->a_col = s->f.across_a ? da[1] : 1;
  g->b_row = s->f.across_b ? 1 : db[1];
  g->b_col = s->f.across_b ? db[1] : 1;
  g->c_row = g->n;
  if (!s->pairs) return;
  g->k = tn__pairs_of(g->k);
  g->a_row = g->k;
  g->b_row = g->n;
  g->a_col = g->b_col = 1;
}

static tn_status product_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const product_state *s = ctx->state;
  const tn_view *a = &ctx->inputs[0], *b = &ctx->inputs[1];
  tn__shape sa, sb, out;
  tn__shape_set(&sa, a->dims, a->rank);
  tn__shape_set(&sb, b->dims, b->rank);
  tn_status st = product_shape(&s->f, &sa, &sb, &out, err);
  if (st == TN_OK) st = tn__after_product_check(&s->epilogue, ctx, 2, out.dims, out.rank, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st != TN_OK) return st;
  int64_t batch = 1, count = 0;
  st = tn_shape_elements(out.dims, out.rank, &count, err);
  if (st != TN_OK) return st;
  for (int32_t i = 0; i < out.rank - 2 && count > 0; i++) batch *= out.dims[i];
  /* If there is one B for all batches, the matrices of A are treated as one tall matrix. */
  bool tall = batch > 1 && !s->f.across_a && b->count == b->dims[b->rank - 1] * b->dims[b->rank - 2] &&
              a->count == batch * a->dims[a->rank - 1] * a->dims[a->rank - 2];
  int64_t n = tall || count == 0 ? 1 : batch;
  size_t bytes;
  if (!tn__size_mul((size_t)n, 2 * sizeof(int64_t), &bytes) || !tn__size_add(bytes, sizeof(product_plan), &bytes))
    return tn__no_memory(err, "product plan", SIZE_MAX);
  product_plan *p = tn__zalloc(bytes);
  if (p == NULL) return tn__no_memory(err, "product plan", bytes);
  ctx->shape_state = p;
  p->bytes = bytes;
  p->batch = count == 0 ? 0 : n;
  p->offset_a = (int64_t *)(p + 1);
  p->offset_b = p->offset_a + n;
  set_matrices(&p->gemm, s, a, b);
  p->gemm.reproducible = ctx->reproducible;
  p->terms = a->dims[a->rank - (s->f.across_a ? 2 : 1)];
  p->copied_a = p->terms > 0 ? a->count / p->terms * p->gemm.k : 0;
  p->copied_b = p->terms > 0 ? b->count / p->terms * p->gemm.k : 0;
  if (p->batch > 1) {
    batch_offsets(&out, a, p->gemm.m * p->gemm.k, p->offset_a, n);
    batch_offsets(&out, b, p->gemm.k * p->gemm.n, p->offset_b, n);
  }
  if (tall) p->gemm.m *= batch;
  double terms = (double)p->gemm.m * (double)p->gemm.n * (double)p->gemm.k;
  p->gemm.serial = p->batch > 1 && terms < 1e6;
  st = try_pack(ctx, p, s, err);
  if (st != TN_OK) return st;
  lay_out(ctx, p, s, count);
  return TN_OK;
}

/* ---- computing ---- */

typedef struct conjugation {
  tn_dtype dtype;
  const void *from;
  void *to;
} conjugation;

static void conjugate(void *user, int64_t begin, int64_t end)
{
  const conjugation *c = user;
  if (c->dtype == TN_COMPLEX64) {
    const float *restrict a = c->from;
    float *restrict b = c->to;
    for (int64_t i = begin; i < end; i++) {
      b[2 * i] = a[2 * i];
      b[2 * i + 1] = -a[2 * i + 1];
    }
  } else {
    const double *restrict a = c->from;
    double *restrict b = c->to;
    for (int64_t i = begin; i < end; i++) {
      b[2 * i] = a[2 * i];
      b[2 * i + 1] = -a[2 * i + 1];
    }
  }
}

/* Returns an operand in the product's form: its own data, or a converted copy at `to`. */
static const char *operand(tn_kernel_ctx *ctx, const tn_view *in, tn_dtype wide, bool copy, char *to)
{
  if (!copy) return in->data;
  conjugation c = { wide, in->data, to };
  if (in->dtype == wide)
    tn_parallel_for(ctx, in->count, TN__SERIAL_ELEMENTS, 1, conjugate, &c);
  else
    tn__widen_all(ctx, in->dtype, in->data, wide, to, in->count);
  return to;
}

/* The operands as pairs. Matrices of b have k rows, unless they are transposed. */
static const char *paired(tn_kernel_ctx *ctx, const product_plan *p, bool left, char *to)
{
  const product_state *s = ctx->state;
  const tn_view *in = ctx->inputs[left ? 0 : 1];
  const int64_t *dims = in->dims + in->rank - 2, k = p->terms, size = dims[0] * dims[1];
  const bool across = left ? s->f.across_a : s->f.across_b;
  const int64_t row = across ? 1 : dims[1], column = across ? dims[1] : 1, matrices = size > 0 ? in->count / size : 0;
  if (left) tn__pairs_left(ctx, in->dtype, in->data, matrices, across ? dims[1] : dims[0], k, row, column, to);
  else tn__pairs_right(ctx, in->dtype, in->data, matrices, k, across ? dims[0] : dims[1], row, column, to);
  return to;
}

typedef struct product_run {
  const product_plan *plan;
  const char *a, *b;
  char *out;
  size_t element;
  const tn__gemm_then *then;
} product_run;

static void batch_part(void *user, int64_t begin, int64_t end)
{
  const product_run *r = user;
  const product_plan *p = r->plan;
  size_t out = (size_t)(p->gemm.m * p->gemm.n) * r->element;
  for (int64_t i = begin; i < end; i++)
    tn__gemm_run(&p->gemm, NULL, r->a + (size_t)p->offset_a[i] * r->element, r->b + (size_t)p->offset_b[i] * r->element,
                 r->out + (size_t)i * out, NULL);
}

static void run_batches(const product_run *r, tn_kernel_ctx *ctx)
{
  const product_plan *p = r->plan;
  if (p->gemm.serial) {
    int64_t grain = p->gemm.cost_ns < 20000.0 ? (int64_t)(20000.0 / p->gemm.cost_ns) + 1 : 1;
    tn_parallel_for(ctx, p->batch, grain, p->gemm.cost_ns, batch_part, (void *)r);
    return;
  }
  size_t out = (size_t)(p->gemm.m * p->gemm.n) * r->element;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < p->batch && !tn__poll_over(&poll, (int64_t)p->gemm.cost_ns); i++)
    tn__gemm_run_then(&p->gemm, ctx, r->a + (size_t)p->offset_a[i] * r->element,
                      p->packed != NULL ? p->packed : r->b + (size_t)p->offset_b[i] * r->element,
                      r->out + (size_t)i * out, (char *)ctx->scratch + p->at_gemm, r->then);
}

static tn_status product_compute(tn_kernel_ctx *ctx)
{
  const product_state *s = ctx->state;
  const product_plan *p = ctx->shape_state;
  tn_view *out = ctx->outputs[0];
  char *scratch = ctx->scratch;
  if (p->batch == 0) return TN_OK;
  tn__after_product after;
  product_run r = { .plan = p, .element = tn_dtype_size(s->wide) };
  r.then = tn__after_product_set(&after, &s->epilogue, ctx, 2, 0);
  if (s->pairs) {
    r.a = paired(ctx, p, true, scratch + p->at_a);
    r.b = p->packed != NULL ? NULL : paired(ctx, p, false, scratch + p->at_b);
  } else {
    r.a = operand(ctx, ctx->inputs[0], s->wide, s->copy_a, scratch + p->at_a);
    r.b = operand(ctx, ctx->inputs[1], s->wide, s->copy_b, scratch + p->at_b);
  }
  r.out = s->copy_out ? scratch + p->at_out : out->data;
  run_batches(&r, ctx);
  if (s->copy_out) tn__narrow_all(ctx, s->out, r.out, out->data, out->count);
  return TN_OK;
}

/* ---- tables ---- */

#define PRODUCT_OP(op, in, out, attributes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_CONTRACTION, .infer = infer_product, .summary = text }
#define GRADS_XY "adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false"
#define V3_INPUT "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}"
#define V3_OUTPUT "{bfloat16, half, float, double, int16, int32, int64, complex64, complex128}"

static const tn_op_def ops[] = {
  PRODUCT_OP("BatchMatMul", "x: T, y: T", "output: T",
             "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}; " GRADS_XY,
             "products of matrix pairs"),
  PRODUCT_OP("BatchMatMulV2", "x: T, y: T", "output: T",
             "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
             "complex128}; " GRADS_XY, "products of matrix pairs with broadcast batches"),
  PRODUCT_OP("BatchMatMulV3", "x: Ta, y: Tb", "output: Tout",
             "Ta: " V3_INPUT "; Tb: " V3_INPUT "; Tout: " V3_OUTPUT "; " GRADS_XY,
             "products of matrix pairs with broadcast batches and mixed types"),
  PRODUCT_OP("MatMul", "a: T, b: T", "product: T",
             "transpose_a: bool = false; transpose_b: bool = false; "
             "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; "
             "grad_a: bool = false; grad_b: bool = false", "product of two matrices"),
  PRODUCT_OP("SparseMatMul", "a: Ta, b: Tb", "product: float",
             "transpose_a: bool = false; transpose_b: bool = false; a_is_sparse: bool = false; "
             "b_is_sparse: bool = false; Ta: {float, bfloat16} = float; Tb: {float, bfloat16} = float",
             "product of two matrices with many zeros"),
};

#define PRODUCT_KERNEL(which, set, title)                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = set, .name = title,        \
    .rank = TN_RANK_C, .create = product_create, .destroy = product_destroy, .prepare = product_prepare, \
    .destroy_shape_state = product_destroy_plan, .compute = product_compute }
#define SAME_TYPES(t, title) PRODUCT_KERNEL("BatchMatMulV3", "Ta=" t ",Tb=" t ",Tout=" t, title)

static const tn_kernel_def kernels[] = {
  PRODUCT_KERNEL("BatchMatMul", "T=bfloat16|half|float|double|int32|int64|complex64|complex128", "batch_matmul_cpu"),
  PRODUCT_KERNEL("BatchMatMulV2", "T=bfloat16|half|float|double|int16|int32|int64|complex64|complex128",
                 "batch_matmul_v2_cpu"),
  SAME_TYPES("bfloat16", "batch_matmul_v3_bf16_cpu"),
  SAME_TYPES("half", "batch_matmul_v3_f16_cpu"),
  SAME_TYPES("float", "batch_matmul_v3_f32_cpu"),
  SAME_TYPES("double", "batch_matmul_v3_f64_cpu"),
  SAME_TYPES("int16", "batch_matmul_v3_i16_cpu"),
  SAME_TYPES("int32", "batch_matmul_v3_i32_cpu"),
  SAME_TYPES("int64", "batch_matmul_v3_i64_cpu"),
  SAME_TYPES("complex64", "batch_matmul_v3_c64_cpu"),
  SAME_TYPES("complex128", "batch_matmul_v3_c128_cpu"),
  PRODUCT_KERNEL("BatchMatMulV3", "Ta=int8|uint8,Tb=int8|uint8,Tout=int32", "batch_matmul_v3_i8_cpu"),
  PRODUCT_KERNEL("BatchMatMulV3", "Ta=bfloat16,Tb=int8|uint8,Tout=bfloat16", "batch_matmul_v3_bf16_i8_cpu"),
  PRODUCT_KERNEL("BatchMatMulV3", "Ta=int8|uint8,Tb=bfloat16,Tout=bfloat16", "batch_matmul_v3_i8_bf16_cpu"),
  PRODUCT_KERNEL("MatMul", "T=bfloat16|half|float|double|int32|int64|complex64|complex128", "matmul_cpu"),
  PRODUCT_KERNEL("SparseMatMul", NULL, "sparse_matmul_cpu"),
  PRODUCT_KERNEL("_TnMatMul", "T=float", "fused_matmul_cpu"),
  PRODUCT_KERNEL("_TnReducedMatMul", "T=float,W=bfloat16", "matmul_bf16_weights_cpu"),
  PRODUCT_KERNEL("_TnReducedMatMul", "T=float,W=int8", "matmul_int8_weights_cpu"),
  PRODUCT_KERNEL("_TnReducedBatchMatMul", "T=float,W=bfloat16", "batch_matmul_bf16_weights_cpu"),
  PRODUCT_KERNEL("_TnReducedBatchMatMul", "T=float,W=int8", "batch_matmul_int8_weights_cpu"),
};

TN_OP_FAMILY(matmul)
