/* SPDX-License-Identifier: Apache-2.0 */
/* Diagonals of matrices: MatrixDiag MatrixDiagPart MatrixSetDiag and their V2 and V3 versions,
 * which support bands of diagonals.
 *
 * Diagonal d of a matrix has the elements [i, i + d]. A band k[0]..k[1] is stored as one row per
 * diagonal, the highest d first, each row as long as the longest diagonal. `align` says at which
 * end of its row a shorter diagonal is stored. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* ---- bands ---- */

typedef struct band {
  int64_t lower, upper;
  int64_t rows, cols, longest; /* size of the matrix; length of the rows of the stored band */
  bool left_above, left_below; /* alignment of shorter diagonals: those with d > 0 and those with d < 0 */
} band;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t length_of(const band *b, int64_t d)
{
  return larger(smaller(b->rows + smaller(d, 0), b->cols - larger(d, 0)), 0);
}

/* The position in its row at which diagonal d begins. */
static int64_t offset_of(const band *b, int64_t d)
{
  bool left = (d >= 0 && b->left_above) || (d <= 0 && b->left_below);
  return left ? 0 : b->longest - length_of(b, d);
}

static tn_status read_align(const tn_operation *op, band *b, tn_error *err)
{
  static const char *const choices[] = { "LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT" };
  const char *type = tn_operation_type(op);
  int align = 2;
  tn_status st = TN_OK;
  if (type[strlen(type) - 1] == '3') st = tn__attr_choice(op, "align", choices, 4, &align, err);
  b->left_above = align == 0 || align == 2;
  b->left_below = align == 1 || align == 2;
  return st;
}

/* One or two numbers: a diagonal or a band. */
static tn_status set_band(const char *op, band *b, const int64_t *k, int64_t n, tn_error *err)
{
  if (n < 1 || n > 2)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: k has %lld numbers, wanted one or two", op, (long long)n);
  b->lower = k[0];
  b->upper = k[n - 1];
  if (b->lower > b->upper)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: k is %lld to %lld, wanted an ascending range", op, (long long)b->lower,
                        (long long)b->upper);
  return TN_OK;
}

/* Checks that the band is inside a matrix of rows x cols, as far as these are known. Sets
 * `longest`, -1 if unknown. */
static tn_status check_band(const char *op, band *b, tn_error *err)
{
  int64_t ends[] = { b->lower, b->upper };
  for (int i = 0; i < 2; i++)
    if (ends[i] != 0 && ((b->rows >= 0 && ends[i] <= -b->rows) || (b->cols >= 0 && ends[i] >= b->cols)))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: diagonal %lld is not in a matrix of %lld x %lld", op,
                          (long long)ends[i], (long long)b->rows, (long long)b->cols);
  b->longest = -1;
  if (b->rows >= 0 && b->cols >= 0)
    b->longest = larger(smaller(b->rows + smaller(b->upper, 0), b->cols - larger(b->lower, 0)), 0);
  return TN_OK;
}

/* The size of the matrix for a stored band. Sizes that are -1 are computed from the band. */
static tn_status fit_matrix(const char *op, band *b, int64_t rows, int64_t cols, tn_error *err)
{
  if (b->longest > INT64_MAX / 2) /* possible for a tensor without elements */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: diagonals of length %lld are too long", op,
                        (long long)b->longest);
  int64_t least_rows = b->longest - smaller(b->upper, 0), least_cols = b->longest + larger(b->lower, 0);
  b->rows = rows != -1 ? rows : least_rows;
  b->cols = cols != -1 ? cols : least_cols;
  if (rows == -1 && cols == -1) b->rows = b->cols = larger(least_rows, least_cols);
  if (b->rows < least_rows || b->cols < least_cols || (b->rows != least_rows && b->cols != least_cols))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: a matrix of %lld x %lld does not fit diagonals %lld to %lld of length %lld", op,
                        (long long)b->rows, (long long)b->cols, (long long)b->lower, (long long)b->upper,
                        (long long)b->longest);
  return TN_OK;
}

/* The number of the input k; 0 for the first versions, which support only the main diagonal. */
static uint32_t input_of_k(const char *op)
{
  char last = op[strlen(op) - 1];
  if (last != '2' && last != '3') return 0;
  return strncmp(op, "MatrixSetDiag", 13) == 0 ? 2 : 1;
}

/* ---- shape functions ---- */

/* Reads k for a shape function. *known is false if its value is unknown. */
static tn_status infer_band(tn_infer_ctx *ctx, band *b, bool *known, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  const char *type = tn_operation_type(op);
  uint32_t at = input_of_k(type);
  const int64_t *dims;
  *b = (band){ 0, 0, -1, -1, -1, true, true };
  *known = at == 0;
  tn_status st = read_align(op, b, err);
  if (st != TN_OK || at == 0) return st;
  int32_t rank = tn_infer_input(ctx, at, &dims);
  if (rank > 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has rank %d, wanted a scalar or a vector", type, at,
                        (int)rank);
  const tn_tensor *value;
  int64_t n, k[2];
  *known = tn__infer_ints(ctx, at, &value, &n);
  if (!*known) return TN_OK;
  for (int64_t i = 0; i < n && i < 2; i++) k[i] = tn__tensor_int_at(value, i);
  return set_band(type, b, k, n, err);
}

/* Replaces the two dimensions of a matrix by those of a stored band. */
static void stored_shape(const band *b, bool known, tn__shape *s)
{
  if (!known) { /* one diagonal or several: the rank is unknown */
    tn__shape_unknown(s);
    return;
  }
  s->rank -= 2;
  if (b->lower != b->upper) s->dims[s->rank++] = b->upper - b->lower + 1;
  s->dims[s->rank++] = b->longest;
}

static tn_status infer_part(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  band b;
  bool known;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 2, &s, err);
  if (st == TN_OK) st = infer_band(ctx, &b, &known, err);
  if (st != TN_OK || s.rank < 0) return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
  b.rows = s.dims[s.rank - 2];
  b.cols = s.dims[s.rank - 1];
  if (known) st = check_band(tn__infer_op(ctx), &b, err);
  if (st != TN_OK) return st;
  stored_shape(&b, known, &s);
  return tn__infer_set(ctx, 0, &s, err);
}

static tn_status infer_set_diag(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, diagonal, wanted;
  band b;
  bool known;
  char x[160], y[160];
  tn_status st = tn__infer_rank_at_least(ctx, 0, 2, &s, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, 1, 1, &diagonal, err);
  if (st == TN_OK) st = infer_band(ctx, &b, &known, err);
  if (st != TN_OK) return st;
  if (s.rank >= 0 && known) {
    b.rows = s.dims[s.rank - 2];
    b.cols = s.dims[s.rank - 1];
    st = check_band(tn__infer_op(ctx), &b, err);
    if (st != TN_OK) return st;
    wanted = s;
    stored_shape(&b, known, &wanted);
    if (!tn__shape_merge(&wanted, diagonal.dims, diagonal.rank))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has shape %s, wanted %s", tn__infer_op(ctx),
                          tn__format_shape(x, sizeof x, diagonal.dims, diagonal.rank),
                          tn__format_shape(y, sizeof y, wanted.dims, wanted.rank));
  }
  return tn__infer_set(ctx, 0, &s, err);
}

/* The size given by input i: -1 means "compute it", -2 that it is unknown. */
static int64_t infer_size(const tn_infer_ctx *ctx, size_t i)
{
  const tn_tensor *value;
  int64_t n;
  return tn__infer_ints(ctx, i, &value, &n) && n == 1 ? tn__tensor_int_at(value, 0) : -2;
}

static tn_status infer_diag(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  band b;
  bool known;
  const char *op = tn__infer_op(ctx);
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &s, err);
  if (st == TN_OK) st = infer_band(ctx, &b, &known, err);
  if (st != TN_OK) return st;
  if (s.rank < 0 || !known) {
    tn__shape_unknown(&s);
    return tn__infer_set(ctx, 0, &s, err);
  }
  b.longest = s.dims[--s.rank];
  if (b.lower != b.upper) {
    if (s.rank < 1 || (s.dims[s.rank - 1] >= 0 && s.dims[s.rank - 1] != b.upper - b.lower + 1))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 does not have %lld diagonals", op,
                          (long long)(b.upper - b.lower + 1));
    s.rank--;
  }
  bool first = input_of_k(op) == 0;
  int64_t rows = first ? -1 : infer_size(ctx, 2), cols = first ? -1 : infer_size(ctx, 3);
  if (b.longest >= 0 && rows != -2 && cols != -2) {
    st = fit_matrix(op, &b, rows, cols, err);
    if (st != TN_OK) return st;
  }
  if (!tn__shape_append(&s, b.rows) || !tn__shape_append(&s, b.cols))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: more than %d dimensions are wanted", op, TN_MAX_RANK);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- planning ---- */

typedef struct diag_plan {
  band b;
  int64_t batch; /* number of matrices */
  size_t element;
  double cost_ns; /* of one matrix */
} diag_plan;

static tn_status prepare_band(const tn_prepare_ctx *ctx, band *b, tn_error *err)
{
  const char *op = tn_operation_type(ctx->op);
  uint32_t at = input_of_k(op);
  *b = (band){ 0, 0, -1, -1, -1, true, true };
  tn_status st = read_align(ctx->op, b, err);
  if (st != TN_OK || at == 0) return st;
  const tn_view *k = &ctx->inputs[at];
  if (k->rank > 1) return tn__want_rank(ctx, at, 1, err);
  if (k->count > 0 && k->data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input %u is not known", op, at);
  int64_t items[2];
  for (int64_t i = 0; i < k->count && i < 2; i++) items[i] = tn__view_int_at(k, i);
  return set_band(op, b, items, k->count, err);
}

/* Stores the plan. dims[rank] are the batch dimensions of the matrices. */
static tn_status keep_plan(tn_prepare_ctx *ctx, const band *b, const int64_t *dims, int32_t rank, tn_error *err)
{
  diag_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "the plan of diagonals", sizeof *p);
  ctx->shape_state = p;
  p->b = *b;
  p->batch = 1;
  p->element = tn_dtype_size(tn_operation_output_dtype(ctx->op, 0));
  if (b->rows == 0 || b->cols == 0) return TN_OK;
  /* If one size is 0, the product of the others may overflow. */
  for (int32_t i = 0; i < rank; i++) p->batch = (int64_t)((uint64_t)p->batch * (uint64_t)dims[i]);
  return TN_OK;
}

static void finish_plan(tn_prepare_ctx *ctx, double elements)
{
  diag_plan *p = ctx->shape_state;
  p->cost_ns = 20 + elements * 0.5;
  ctx->cost_ns = p->cost_ns * (double)p->batch;
}

static void diag_destroy_plan(void *plan) { tn__free(plan, sizeof(diag_plan)); }

static tn_status part_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  band b;
  tn__shape s;
  tn_status st = tn__want_rank_at_least(ctx, 0, 2, err);
  if (st == TN_OK) st = prepare_band(ctx, &b, err);
  if (st != TN_OK) return st;
  b.rows = in->dims[in->rank - 2];
  b.cols = in->dims[in->rank - 1];
  st = check_band(tn_operation_type(ctx->op), &b, err);
  if (st != TN_OK) return st;
  if (ctx->n_inputs > 2 && ctx->inputs[2].count < 1) return tn__want_rank(ctx, 2, 0, err);
  tn__shape_set(&s, in->dims, in->rank);
  stored_shape(&b, true, &s);
  st = tn_prepare_output(ctx, 0, s.dims, s.rank, err);
  if (st == TN_OK) st = keep_plan(ctx, &b, in->dims, in->rank - 2, err);
  if (st == TN_OK) finish_plan(ctx, (double)b.longest * (double)(b.upper - b.lower + 1));
  return st;
}

static tn_status set_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *diagonal = &ctx->inputs[1];
  band b;
  tn__shape s;
  tn_status st = tn__want_rank_at_least(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st == TN_OK) st = prepare_band(ctx, &b, err);
  if (st != TN_OK) return st;
  b.rows = in->dims[in->rank - 2];
  b.cols = in->dims[in->rank - 1];
  st = check_band(tn_operation_type(ctx->op), &b, err);
  if (st != TN_OK) return st;
  tn__shape_set(&s, in->dims, in->rank);
  stored_shape(&b, true, &s);
  if (diagonal->rank != s.rank || memcmp(diagonal->dims, s.dims, (size_t)s.rank * sizeof *s.dims) != 0)
    return tn__shape_error(err, ctx, 1, s.dims, s.rank);
  st = tn__prepare_unchanged(ctx, err);
  if (st == TN_OK) st = keep_plan(ctx, &b, in->dims, in->rank - 2, err);
  if (st == TN_OK) finish_plan(ctx, (double)b.rows * (double)b.cols);
  return st;
}

/* Reads a scalar of int32 that determines a size. */
static tn_status read_size(const tn_prepare_ctx *ctx, uint32_t i, int64_t *out, tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  tn_status st = tn__want_rank(ctx, i, 0, err);
  if (st != TN_OK) return st;
  if (v->data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input %u is not known", tn_operation_type(ctx->op), i);
  *out = tn__view_int_at(v, 0);
  return TN_OK;
}

static tn_status diag_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  const char *op = tn_operation_type(ctx->op);
  int64_t rows = -1, cols = -1;
  band b;
  tn__shape s;
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = prepare_band(ctx, &b, err);
  if (st == TN_OK && ctx->n_inputs > 1) st = read_size(ctx, 2, &rows, err);
  if (st == TN_OK && ctx->n_inputs > 1) st = read_size(ctx, 3, &cols, err);
  if (st == TN_OK && ctx->n_inputs > 1) st = tn__want_rank(ctx, 4, 0, err);
  if (st != TN_OK) return st;
  tn__shape_set(&s, in->dims, in->rank);
  b.longest = s.dims[--s.rank];
  if (b.lower != b.upper) {
    int64_t n = b.upper - b.lower + 1;
    if (s.rank < 1 || s.dims[s.rank - 1] != n)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "%s: input 0 does not have the %lld diagonals from %lld to %lld", op,
                          (long long)n, (long long)b.lower, (long long)b.upper);
    s.rank--;
  }
  st = fit_matrix(op, &b, rows, cols, err);
  if (st != TN_OK) return st;
  int32_t outer = s.rank;
  if (!tn__shape_append(&s, b.rows) || !tn__shape_append(&s, b.cols))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: more than %d dimensions are wanted", op, TN_MAX_RANK);
  st = tn_prepare_output(ctx, 0, s.dims, s.rank, err);
  if (st == TN_OK) st = keep_plan(ctx, &b, in->dims, outer, err);
  if (st == TN_OK) finish_plan(ctx, (double)b.rows * (double)b.cols);
  return st;
}

/* ---- computing ---- */

typedef struct diag_run {
  const diag_plan *p;
  const char *matrix, *stored, *padding; /* padding: NULL means zero */
  char *out;
} diag_run;

/* Writes n copies of the element `pattern`, doubling the copied block each time. */
static void fill(char *to, const char *pattern, size_t element, size_t n)
{
  size_t bytes = n * element, done = element;
  bool zero = true;
  for (size_t i = 0; pattern != NULL && i < element; i++) zero &= pattern[i] == 0;
  if (bytes == 0) return;
  if (zero) {
    memset(to, 0, bytes);
    return;
  }
  memcpy(to, pattern, element);
  while (done < bytes) {
    size_t more = done < bytes - done ? done : bytes - done;
    memcpy(to + done, to, more);
    done += more;
  }
}

/* The index in the matrix of the first element of diagonal d. */
static int64_t start_of(const band *b, int64_t d) { return d >= 0 ? d : -d * b->cols; }

static void part_matrices(void *user, int64_t begin, int64_t end)
{
  const diag_run *r = user;
  const band *b = &r->p->b;
  size_t element = r->p->element;
  int64_t step = (int64_t)element, diagonals = b->upper - b->lower + 1;
  tn__strided_line line = tn__strided_line_of(element);
  for (int64_t i = begin; i < end; i++) {
    const char *matrix = r->matrix + i * b->rows * b->cols * step;
    char *row = r->out + i * diagonals * b->longest * step;
    for (int64_t d = b->upper; d >= b->lower; d--, row += b->longest * step) {
      int64_t n = length_of(b, d), at = offset_of(b, d);
      fill(row, r->padding, element, (size_t)at);
      line(element, n, matrix + start_of(b, d) * step, (b->cols + 1) * step, row + at * step, step);
      fill(row + (at + n) * step, r->padding, element, (size_t)(b->longest - at - n));
    }
  }
}

/* Copies the stored diagonals of matrix i into the output. */
static void put_diagonals(const diag_run *r, int64_t i)
{
  const band *b = &r->p->b;
  size_t element = r->p->element;
  int64_t step = (int64_t)element, diagonals = b->upper - b->lower + 1;
  tn__strided_line line = tn__strided_line_of(element);
  const char *row = r->stored + i * diagonals * b->longest * step;
  char *matrix = r->out + i * b->rows * b->cols * step;
  for (int64_t d = b->upper; d >= b->lower; d--, row += b->longest * step)
    line(element, length_of(b, d), row + offset_of(b, d) * step, step, matrix + start_of(b, d) * step,
         (b->cols + 1) * step);
}

static void set_matrices(void *user, int64_t begin, int64_t end)
{
  const diag_run *r = user;
  size_t bytes = (size_t)(r->p->b.rows * r->p->b.cols) * r->p->element;
  for (int64_t i = begin; i < end; i++) {
    if (r->out != r->matrix) memcpy(r->out + (size_t)i * bytes, r->matrix + (size_t)i * bytes, bytes);
    put_diagonals(r, i);
  }
}

static void diag_matrices(void *user, int64_t begin, int64_t end)
{
  const diag_run *r = user;
  size_t n = (size_t)(r->p->b.rows * r->p->b.cols);
  for (int64_t i = begin; i < end; i++) {
    fill(r->out + (size_t)i * n * r->p->element, r->padding, r->p->element, n);
    put_diagonals(r, i);
  }
}

static tn_status run(tn_kernel_ctx *ctx, diag_run *r, void (*fn)(void *user, int64_t begin, int64_t end))
{
  r->p = ctx->shape_state;
  r->out = ctx->outputs[0]->data;
  if (ctx->outputs[0]->count == 0) return TN_OK;
  int64_t n = r->p->batch, grain = (int64_t)(20000 / r->p->cost_ns) + 1;
  if (n <= grain)
    fn(r, 0, n);
  else
    tn_parallel_for(ctx, n, grain, r->p->cost_ns, fn, r);
  return TN_OK;
}

static tn_status part_compute(tn_kernel_ctx *ctx)
{
  diag_run r = { .matrix = ctx->inputs[0]->data, .padding = ctx->n_inputs > 2 ? ctx->inputs[2]->data : NULL };
  return run(ctx, &r, part_matrices);
}

static tn_status set_compute(tn_kernel_ctx *ctx)
{
  diag_run r = { .matrix = ctx->inputs[0]->data, .stored = ctx->inputs[1]->data };
  return run(ctx, &r, set_matrices);
}

static tn_status diag_compute(tn_kernel_ctx *ctx)
{
  diag_run r = { .stored = ctx->inputs[0]->data, .padding = ctx->n_inputs > 4 ? ctx->inputs[4]->data : NULL };
  return run(ctx, &r, diag_matrices);
}

/* ---- tables ---- */

#define PLAIN                                                                                                    \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|"   \
  "qint8|quint8|qint16|quint16|qint32"
#define ALIGN "T: type; align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"
#define DIAG_IN "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T"
#define PART_IN "input: T, k: int32, padding_value: T"
#define SET_IN "input: T, diagonal: T, k: int32"
#define OP(op, in, out, attributes, operands, shapes, text)                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .shape_operands = operands, .infer = shapes, .summary = text }
#define DIAG(op, in, attributes, operands) \
  OP(op, in, "output: T", attributes, operands, infer_diag, "matrices with the given diagonals")
#define PART(op, in, attributes, operands) \
  OP(op, in, "diagonal: T", attributes, operands, infer_part, "diagonals of matrices")
#define SET(op, in, attributes, operands) \
  OP(op, in, "output: T", attributes, operands, infer_set_diag, "replaces the diagonals of matrices")

static const tn_op_def ops[] = {
  DIAG("BatchMatrixDiag", "diagonal: T", "T: type", 0),
  PART("BatchMatrixDiagPart", "input: T", "T: type", 0),
  SET("BatchMatrixSetDiag", "input: T, diagonal: T", "T: type", 0),
  DIAG("MatrixDiag", "diagonal: T", "T: type", 0),
  PART("MatrixDiagPart", "input: T", "T: type", 0),
  PART("MatrixDiagPartV2", PART_IN, "T: type", 1u << 1),
  PART("MatrixDiagPartV3", PART_IN, ALIGN, 1u << 1),
  DIAG("MatrixDiagV2", DIAG_IN, "T: type", 1u << 1 | 1u << 2 | 1u << 3),
  DIAG("MatrixDiagV3", DIAG_IN, ALIGN, 1u << 1 | 1u << 2 | 1u << 3),
  SET("MatrixSetDiag", "input: T, diagonal: T", "T: type", 0),
  SET("MatrixSetDiagV2", SET_IN, "T: type", 1u << 2),
  SET("MatrixSetDiagV3", SET_IN, ALIGN, 1u << 2),
};

#define KERNEL(which, title, prefix)                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = PLAIN, .name = title, \
    .rank = TN_RANK_C, .prepare = prefix##_prepare, .destroy_shape_state = diag_destroy_plan,       \
    .compute = prefix##_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("BatchMatrixDiag", "batch_matrix_diag_cpu", diag),
  KERNEL("BatchMatrixDiagPart", "batch_matrix_diag_part_cpu", part),
  KERNEL("BatchMatrixSetDiag", "batch_matrix_set_diag_cpu", set),
  KERNEL("MatrixDiag", "matrix_diag_cpu", diag),
  KERNEL("MatrixDiagPart", "matrix_diag_part_cpu", part),
  KERNEL("MatrixDiagPartV2", "matrix_diag_part_v2_cpu", part),
  KERNEL("MatrixDiagPartV3", "matrix_diag_part_v3_cpu", part),
  KERNEL("MatrixDiagV2", "matrix_diag_v2_cpu", diag),
  KERNEL("MatrixDiagV3", "matrix_diag_v3_cpu", diag),
  KERNEL("MatrixSetDiag", "matrix_set_diag_cpu", set),
  KERNEL("MatrixSetDiagV2", "matrix_set_diag_v2_cpu", set),
  KERNEL("MatrixSetDiagV3", "matrix_set_diag_v3_cpu", set),
};

TN_OP_FAMILY(matrix_diag)
