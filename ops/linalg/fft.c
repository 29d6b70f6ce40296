/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of one to three dimensions: FFT, IFFT, RFFT, IRFFT and their forms. A transform is a sequence of
 * jobs, one for each dimension. A long line is two jobs: it is treated as a matrix, whose columns are transformed and
 * multiplied by roots, then its rows. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/bands.h>
#include <ops/kernel/family.h>
#include <ops/kernel/fourier/fourier.h>
#include <ops/kernel/operands.h>
#include <string.h>

enum { COMPLEX, REAL_TO_HALF, HALF_TO_REAL };
enum { ELEMENTS, REALS, HALF }; /* what a job reads and writes: complex numbers, reals, or half of a symmetric line */
enum { INPUT, OUTPUT, CUT, TURN }; /* memory: the two last are in scratch */

#define LONG_LINE 4096
#define MOST_JOBS 6

/* Line l of a job begins at element l / inner * outer + l % inner * next, and has elements `step` apart. */
typedef struct lines {
  int memory, kind;
  int64_t outer, next, step;
} lines;

typedef struct job {
  lines from, to;
  tn__fourier fourier;
  tn__bands bands;
  int64_t count, inner, length; /* lines; lines side by side; length of the whole line, of which this may be a part */
  void *turns;                  /* roots by which the columns of a long line are multiplied, or NULL */
  size_t turn_bytes;
  double scale;
} job;

typedef struct fft_plan {
  int n;
  bool wide, inverse;
  job jobs[MOST_JOBS];
  int32_t rank;                     /* of the transform */
  int64_t batch, in[3], cut[3];     /* the input's dimensions, and of these the part that is used */
  size_t cut_at, turn_at;           /* in scratch */
} fft_plan;

typedef struct fft_state {
  int kind;
  int32_t rank;
  bool inverse, wide;
} fft_state;

/* ---- a job ---- */

typedef struct job_run {
  const job *j;
  const fft_plan *p;
  const char *from;
  char *to;
} job_run;

#define JOB(T, end, L)                                                                                             \
  static void load_##end(const job_run *r, int64_t first, int n, T *block)                                         \
  {                                                                                                                \
    const job *j = r->j;                                                                                           \
    const bool swap = r->p->inverse;                                                                               \
    const int64_t step = j->from.step;                                                                             \
    const T *x = (const T *)r->from;                                                                               \
    for (int l = 0; l < n; l++) {                                                                                  \
      const int64_t line = first + l, column = line % j->inner * j->from.next;                                     \
      const int64_t base = line / j->inner * j->from.outer + column;                                               \
      T *re = block + l + (swap ? L : 0), *im = block + l + (swap ? 0 : L);                                        \
      if (j->from.kind == ELEMENTS) {                                                                              \
        const T *at = x + 2 * base;                                                                                \
        for (int64_t q = 0; q < j->fourier.n; q++) re[q * 2 * L] = at[2 * q * step];                               \
        for (int64_t q = 0; q < j->fourier.n; q++) im[q * 2 * L] = at[2 * q * step + 1];                           \
      } else if (j->from.kind == REALS) {                                                                          \
        for (int64_t q = 0; q < j->fourier.n; q++) re[q * 2 * L] = x[base + q * step], im[q * 2 * L] = 0;          \
      } else                                                                                                       \
        for (int64_t q = 0; q < j->fourier.n; q++) {                                                               \
          const int64_t e = column + q * step, other = j->length - e;                                              \
          const bool mirrored = e > j->length / 2;                                                                 \
          const T *at = x + 2 * (base - column + (mirrored ? other : e));                                          \
          re[q * 2 * L] = at[0];                                                                                   \
          im[q * 2 * L] = mirrored ? -at[1] : at[1];                                                               \
          if (e == 0 || 2 * e == j->length) im[q * 2 * L] = 0;                                                     \
        }                                                                                                          \
    }                                                                                                              \
  }                                                                                                                \
  static void store_##end(const job_run *r, int64_t first, int n, const T *block)                                  \
  {                                                                                                                \
    const job *j = r->j;                                                                                           \
    const bool swap = r->p->inverse;                                                                               \
    const int64_t step = j->to.step;                                                                               \
    const T scale = (T)j->scale;                                                                                   \
    T *x = (T *)r->to;                                                                                             \
    for (int l = 0; l < n; l++) {                                                                                  \
      const int64_t line = first + l, column = line % j->inner * j->to.next;                                       \
      const int64_t base = line / j->inner * j->to.outer + column;                                                 \
      const T *re = block + l + (swap ? L : 0), *im = block + l + (swap ? 0 : L);                                  \
      if (j->to.kind == REALS) {                                                                                   \
        for (int64_t q = 0; q < j->fourier.n; q++) x[base + q * step] = re[q * 2 * L] * scale;                     \
        continue;                                                                                                  \
      }                                                                                                            \
      int64_t count = j->fourier.n, half = j->length / 2 + 1 - column;                                             \
      if (j->to.kind == HALF && count > (half + step - 1) / step) count = half > 0 ? (half + step - 1) / step : 0; \
      T *at = x + 2 * base;                                                                                        \
      for (int64_t q = 0; q < count; q++) {                                                                        \
        at[2 * q * step] = re[q * 2 * L] * scale;                                                                  \
        at[2 * q * step + 1] = im[q * 2 * L] * scale;                                                              \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  /* Lines that are side by side, L at a time: all are read at once. */                                            \
  static void load_row_##end(const job_run *r, int64_t first, T *block)                                            \
  {                                                                                                                \
    const job *j = r->j;                                                                                           \
    const T *at = (const T *)r->from + 2 * (first / j->inner * j->from.outer + first % j->inner);                  \
    const int even = r->p->inverse ? L : 0, odd = L - even;                                                        \
    for (int64_t q = 0; q < j->fourier.n; q++, block += 2 * L, at += 2 * j->from.step)                             \
      for (int l = 0; l < L; l++) {                                                                                \
        block[l + even] = at[2 * l];                                                                               \
        block[l + odd] = at[2 * l + 1];                                                                            \
      }                                                                                                            \
  }                                                                                                                \
  static void store_row_##end(const job_run *r, int64_t first, const T *block)                                     \
  {                                                                                                                \
    const job *j = r->j;                                                                                           \
    T *at = (T *)r->to + 2 * (first / j->inner * j->to.outer + first % j->inner);                                  \
    const int even = r->p->inverse ? L : 0, odd = L - even;                                                        \
    const T scale = (T)j->scale;                                                                                   \
    for (int64_t q = 0; q < j->fourier.n; q++, block += 2 * L, at += 2 * j->to.step)                               \
      for (int l = 0; l < L; l++) {                                                                                \
        at[2 * l] = block[l + even] * scale;                                                                       \
        at[2 * l + 1] = block[l + odd] * scale;                                                                    \
      }                                                                                                            \
  }                                                                                                                \
  static void turn_##end(const job *j, int64_t first, int n, T *block)                                             \
  {                                                                                                                \
    const T *turns = (const T *)j->turns;                                                                          \
    for (int64_t q = 0; q < j->fourier.n; q++, block += 2 * L)                                                     \
      for (int l = 0; l < n; l++) {                                                                                \
        const T *w = turns + 2 * (q * j->inner + (first + l) % j->inner);                                          \
        const T re = block[l], im = block[l + L];                                                                  \
        block[l] = re * w[0] - im * w[1];                                                                          \
        block[l + L] = re * w[1] + im * w[0];                                                                      \
      }                                                                                                            \
  }                                                                                                                \
  static void band_##end(void *user, int64_t begin, int64_t end_, char *buffers)                                   \
  {                                                                                                                \
    const job_run *r = user;                                                                                       \
    const job *j = r->j;                                                                                           \
    for (int64_t group = begin; group < end_; group++) {                                                           \
      const int64_t first = group * L, left = j->count - first;                                                    \
      const int n = left < L ? (int)left : L;                                                                      \
      const bool row = n == L && first % j->inner + L <= j->inner;                                                 \
      char *block = buffers, *other = buffers + j->fourier.m * 64;                                                 \
      if (n < L) memset(block, 0, (size_t)j->fourier.n * 64);                                                      \
      if (row && j->from.kind == ELEMENTS && j->from.next == 1) load_row_##end(r, first, (T *)(void *)block);      \
      else load_##end(r, first, n, (T *)(void *)block);                                                            \
      T *done = tn__fourier_run(&j->fourier, block, other);                                                        \
      if (j->turns != NULL) turn_##end(j, first, n, done);                                                         \
      if (row && j->to.kind == ELEMENTS && j->to.next == 1) store_row_##end(r, first, done);                       \
      else store_##end(r, first, n, done);                                                                         \
    }                                                                                                              \
  }
JOB(float, f32, 8)
JOB(double, f64, 4)

/* ---- the plan ---- */

static tn_status add_job(tn_prepare_ctx *ctx, fft_plan *p, int64_t n, job j, size_t *scratch, tn_error *err)
{
  size_t bytes;
  job *to = &p->jobs[p->n++];
  *to = j;
  tn_status st = tn__fourier_create(&to->fourier, n, p->wide, err);
  if (st != TN_OK) return st;
  if (!tn__fourier_block(&to->fourier, &bytes) || !tn__size_mul(bytes, 2, &bytes))
    return tn__no_memory(err, "blocks of a Fourier transform", SIZE_MAX);
  const int64_t lanes = TN__FOURIER_LANES(p->wide);
  const double cost = (double)(to->fourier.m > n ? 2 * to->fourier.m : n) * 2.0 * log2((double)to->fourier.m + 1);
  st = tn__bands_plan(ctx, (j.count + lanes - 1) / lanes, cost, bytes, &to->bands, err);
  if (*scratch < ctx->scratch_bytes) *scratch = ctx->scratch_bytes;
  return st;
}

/* The divisor of n nearest to its root, from below, or 0 if there is none worth it. */
static int64_t divide(int64_t n)
{
  for (int64_t d = (int64_t)sqrt((double)n) + 1; d >= 8; d--)
    if (n % d == 0 && n / d >= 8) return d;
  return 0;
}

static tn_status set_turns(job *j, int64_t rows, bool wide, tn_error *err)
{
  const int64_t n = j->length, columns = j->inner;
  if (!tn__size_mul((size_t)n, wide ? 16 : 8, &j->turn_bytes) || (j->turns = tn__alloc(j->turn_bytes)) == NULL)
    return tn__no_memory(err, "roots of a Fourier transform", j->turn_bytes);
  for (int64_t q = 0; q < rows; q++)
    for (int64_t c = 0; c < columns; c++) {
      const double angle = 2 * 3.14159265358979323846 * (double)(q * c) / (double)n, re = cos(angle), im = -sin(angle);
      const int64_t at = 2 * (q * columns + c);
      if (wide) ((double *)j->turns)[at] = re, ((double *)j->turns)[at + 1] = im;
      else ((float *)j->turns)[at] = (float)re, ((float *)j->turns)[at + 1] = (float)im;
    }
  return TN_OK;
}

/* Adds the jobs of one dimension: `outer` times `inner` lines of length n. from_line and to_line are elements per line
 * in memory, which are half of n and one more where the line is symmetric. */
static tn_status add_dimension(tn_prepare_ctx *ctx, fft_plan *p, int64_t outer, int64_t n, int64_t inner, lines from,
                               lines to, size_t *scratch, bool *turned, tn_error *err)
{
  const int64_t from_line = from.kind == HALF ? n / 2 + 1 : n, to_line = to.kind == HALF ? n / 2 + 1 : n;
  const double scale = p->inverse ? 1 / (double)n : 1;
  int64_t rows = inner == 1 && n >= LONG_LINE ? divide(n) : 0;
  if (rows == 0) {
    from.outer = from_line * inner;
    to.outer = to_line * inner;
    from.next = to.next = 1;
    from.step = to.step = inner;
    return add_job(ctx, p, n, (job){ .from = from, .to = to, .count = outer * inner, .inner = inner, .length = n,
                                     .scale = scale }, scratch, err);
  }
  const int64_t columns = n / rows;
  *turned = true;
  lines between = { TURN, ELEMENTS, n, 1, columns };
  from.outer = from_line;
  from.next = 1;
  from.step = columns;
  tn_status st = add_job(ctx, p, rows, (job){ .from = from, .to = between, .count = outer * columns, .inner = columns,
                                              .length = n, .scale = 1 }, scratch, err);
  if (st == TN_OK) st = set_turns(&p->jobs[p->n - 1], rows, p->wide, err);
  if (st != TN_OK) return st;
  between.next = columns;
  between.step = 1;
  to.outer = to_line;
  to.next = 1;
  to.step = rows;
  return add_job(ctx, p, columns, (job){ .from = between, .to = to, .count = outer * rows, .inner = rows, .length = n,
                                         .scale = scale }, scratch, err);
}

static tn_status plan_jobs(tn_prepare_ctx *ctx, fft_plan *p, int kind, const int64_t *lengths, tn_error *err)
{
  const int32_t d = p->rank;
  bool cut = false, turned = false;
  size_t scratch = 0, cut_bytes = 0, turn_bytes = 0, element = p->wide ? 16 : 8;
  int64_t wide_line = kind == COMPLEX ? lengths[d - 1] : lengths[d - 1] / 2 + 1, all = p->batch;
  for (int32_t a = 0; a < d; a++) cut |= p->in[a] != p->cut[a];
  for (int32_t a = 0; a < d; a++) all *= lengths[a];
  if (kind == HALF_TO_REAL && d > 1) cut = true; /* the other dimensions are transformed there, in place */
  lines now = { cut ? CUT : INPUT, ELEMENTS, 0, 0, 0 }, out = { OUTPUT, ELEMENTS, 0, 0, 0 };
  tn_status st = TN_OK;
  int64_t outer = all / lengths[d - 1];
  if (kind != HALF_TO_REAL) {
    now.kind = kind == COMPLEX ? ELEMENTS : REALS;
    out.kind = kind == COMPLEX ? ELEMENTS : HALF;
    st = add_dimension(ctx, p, outer, lengths[d - 1], 1, now, out, &scratch, &turned, err);
    now = (lines){ OUTPUT, ELEMENTS, 0, 0, 0 };
    out = now;
  }
  int64_t inner = wide_line;
  outer = all / lengths[d - 1];
  for (int32_t a = d - 2; a >= 0 && st == TN_OK; a--) {
    outer /= lengths[a];
    lines in_place = kind == HALF_TO_REAL ? (lines){ CUT, ELEMENTS, 0, 0, 0 } : out;
    st = add_dimension(ctx, p, outer, lengths[a], inner, in_place, in_place, &scratch, &turned, err);
    inner *= lengths[a];
  }
  if (kind == HALF_TO_REAL && st == TN_OK) {
    now.kind = HALF;
    out.kind = REALS;
    st = add_dimension(ctx, p, all / lengths[d - 1], lengths[d - 1], 1, now, out, &scratch, &turned, err);
  }
  if (st != TN_OK) return st;
  int64_t kept = p->batch;
  for (int32_t a = 0; a < d; a++) kept *= p->cut[a];
  bool fits = !cut || tn__size_mul((size_t)kept, element, &cut_bytes);
  fits = fits && (!turned || tn__size_mul((size_t)all, element, &turn_bytes));
  p->cut_at = tn__round_up(scratch, 64);
  p->turn_at = tn__round_up(p->cut_at + cut_bytes, 64);
  if (!fits || !tn__size_add(p->turn_at, turn_bytes, &ctx->scratch_bytes))
    return tn__no_memory(err, "a Fourier transform", SIZE_MAX);
  if (!cut) p->cut[0] = -1;
  ctx->cost_ns = 200 + 2.0 * (double)all * log2((double)all + 1);
  return TN_OK;
}

static void destroy_plan(void *shape_state)
{
  fft_plan *p = shape_state;
  for (int i = 0; i < p->n; i++) {
    tn__fourier_destroy(&p->jobs[i].fourier);
    if (p->jobs[i].turns != NULL) tn__free(p->jobs[i].turns, p->jobs[i].turn_bytes);
  }
  tn__free(p, sizeof *p);
}

/* ---- the kernel ---- */

static void read_op(const tn_operation *op, fft_state *s)
{
  const char *name = tn_operation_type(op);
  const bool real = strstr(name, "RFFT") != NULL;
  s->inverse = name[0] == 'I';
  s->kind = COMPLEX;
  if (real) s->kind = s->inverse ? HALF_TO_REAL : REAL_TO_HALF;
  const char *digit = strstr(name, "FFT") + 3;
  s->rank = *digit != 0 ? *digit - '0' : 1;
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  fft_state s = { 0 };
  read_op(op, &s);
  *state = NULL;
  tn_dtype c = tn__attr_type(op, "Tcomplex"), r = tn__attr_type(op, "Treal");
  s.wide = c == TN_COMPLEX128;
  if (s.kind != COMPLEX && (r == TN_DOUBLE) != s.wide)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: Tcomplex is %s and Treal is %s, wanted types of one size",
                        tn_operation_type(op), tn_dtype_name(c), tn_dtype_name(r));
  return tn__keep_state(&s, sizeof s, "Fourier transform", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(fft_state)); }

/* Reads the lengths, and checks that the input has enough elements. */
static tn_status read_lengths(tn_prepare_ctx *ctx, const fft_state *s, int64_t *lengths, int64_t *used, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, s->rank, err);
  if (st == TN_OK && s->kind != COMPLEX) st = tn__want_vector(ctx, 1, s->rank, err);
  if (st != TN_OK) return st;
  for (int32_t a = 0; a < s->rank; a++) {
    const int64_t have = in->dims[in->rank - s->rank + a];
    lengths[a] = s->kind == COMPLEX ? have : tn__operand_int(&ctx->inputs[1], a);
    used[a] = s->kind == HALF_TO_REAL && a == s->rank - 1 ? lengths[a] / 2 + 1 : lengths[a];
    if (s->kind != COMPLEX && lengths[a] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: fft_length[%d] is %lld, wanted 0 or more",
                          tn_operation_type(ctx->op), (int)a, (long long)lengths[a]);
    if (in->count > 0 && lengths[a] == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: fft_length[%d] is 0, wanted 1 or more",
                          tn_operation_type(ctx->op), (int)a);
    if (in->count > 0 && have < used[a])
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "%s: dimension %d of the input has %lld elements, wanted %lld or more for fft_length %lld",
                          tn_operation_type(ctx->op), (int)(in->rank - s->rank + a), (long long)have,
                          (long long)used[a], (long long)lengths[a]);
  }
  return TN_OK;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const fft_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  int64_t lengths[3] = { 0 }, used[3] = { 0 };
  tn__shape out;
  tn_status st = read_lengths(ctx, s, lengths, used, err);
  if (st != TN_OK) return st;
  tn__shape_set(&out, in->dims, in->rank);
  const int32_t lead = in->rank - s->rank;
  for (int32_t a = 0; a < s->rank; a++) out.dims[lead + a] = lengths[a];
  if (s->kind == REAL_TO_HALF) out.dims[in->rank - 1] = lengths[s->rank - 1] / 2 + 1;
  st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st != TN_OK || in->count == 0) return st;
  fft_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "Fourier transform", sizeof *p);
  ctx->shape_state = p;
  p->wide = s->wide;
  p->inverse = s->inverse;
  p->rank = s->rank;
  p->batch = 1;
  for (int32_t a = 0; a < lead; a++) p->batch *= in->dims[a];
  memcpy(p->in, in->dims + lead, (size_t)s->rank * sizeof *p->in);
  memcpy(p->cut, used, sizeof used);
  return plan_jobs(ctx, p, s->kind, lengths, err);
}

/* Copies the part of the input that is used. */
static void cut_input(const fft_plan *p, size_t element, const char *from, char *to)
{
  const int32_t d = p->rank;
  const int64_t i0 = d > 2 ? p->in[0] : 1, c0 = d > 2 ? p->cut[0] : 1, i1 = d > 1 ? p->in[d - 2] : 1;
  const int64_t c1 = d > 1 ? p->cut[d - 2] : 1, line = p->in[d - 1];
  const size_t bytes = (size_t)p->cut[d - 1] * element;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t x = 0; x < c0; x++)
      for (int64_t y = 0; y < c1; y++, to += bytes)
        memcpy(to, from + (size_t)(((b * i0 + x) * i1 + y) * line) * element, bytes);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const fft_plan *p = ctx->shape_state;
  if (p == NULL) {
    if (ctx->outputs[0]->count > 0)
      memset(ctx->outputs[0]->data, 0, (size_t)ctx->outputs[0]->count * tn_dtype_size(ctx->outputs[0]->dtype));
    return TN_OK;
  }
  char *scratch = ctx->scratch;
  char *memory[] = { ctx->inputs[0]->data, ctx->outputs[0]->data, scratch + p->cut_at, scratch + p->turn_at };
  if (p->cut[0] >= 0) cut_input(p, tn_dtype_size(ctx->inputs[0]->dtype), memory[INPUT], memory[CUT]);
  for (int i = 0; i < p->n; i++) {
    const job *j = &p->jobs[i];
    job_run r = { j, p, memory[j->from.memory], memory[j->to.memory] };
    tn__bands_run(ctx, &j->bands, p->wide ? band_f64 : band_f32, &r);
  }
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_fft(tn_infer_ctx *ctx, tn_error *err)
{
  fft_state s = { 0 };
  tn__shape in;
  const int64_t *lengths = NULL;
  read_op(tn_infer_operation(ctx), &s);
  tn_status st = tn__infer_rank_at_least(ctx, 0, s.rank, &in, err);
  if (st != TN_OK || in.rank < 0 || s.kind == COMPLEX) return st != TN_OK ? st : tn__infer_set(ctx, 0, &in, err);
  if (tn_infer_input_ints(ctx, 1, &lengths) != s.rank) lengths = NULL; /* the kernel reports errors */
  for (int32_t a = 0; a < s.rank; a++) {
    int64_t n = lengths != NULL && lengths[a] >= 0 ? lengths[a] : -1;
    if (n >= 0 && s.kind == REAL_TO_HALF && a == s.rank - 1) n = n / 2 + 1;
    in.dims[in.rank - s.rank + a] = n;
  }
  return tn__infer_set(ctx, 0, &in, err);
}

#define COMPLEX_TYPE "Tcomplex: {complex64, complex128} = complex64"
#define BOTH_TYPES "Treal: {float, double} = float; " COMPLEX_TYPE
#define OP(which, text)                                                                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = which, .inputs = "input: Tcomplex", .outputs = "output: Tcomplex", \
    .attrs = COMPLEX_TYPE, .infer = infer_fft, .summary = text }
#define REAL_OP(which, in, out, text)                                                                             \
  { .struct_size = TN_OP_DEF_SIZE, .name = which, .inputs = "input: " in ", fft_length: int32",                   \
    .outputs = "output: " out, .attrs = BOTH_TYPES, .shape_operands = 1u << 1, .infer = infer_fft, .summary = text }

static const tn_op_def ops[] = {
  OP("FFT", "Fourier transform of the last dimension"),
  OP("FFT2D", "Fourier transform of the last two dimensions"),
  OP("FFT3D", "Fourier transform of the last three dimensions"),
  OP("IFFT", "inverse Fourier transform of the last dimension"),
  OP("IFFT2D", "inverse Fourier transform of the last two dimensions"),
  OP("IFFT3D", "inverse Fourier transform of the last three dimensions"),
  REAL_OP("RFFT", "Treal", "Tcomplex", "Fourier transform of real numbers"),
  REAL_OP("RFFT2D", "Treal", "Tcomplex", "Fourier transform of real matrices"),
  REAL_OP("RFFT3D", "Treal", "Tcomplex", "Fourier transform of real volumes"),
  REAL_OP("IRFFT", "Tcomplex", "Treal", "real numbers from half of their Fourier transform"),
  REAL_OP("IRFFT2D", "Tcomplex", "Treal", "real matrices from half of their Fourier transform"),
  REAL_OP("IRFFT3D", "Tcomplex", "Treal", "real volumes from half of their Fourier transform"),
};

#define KERNEL(which)                                                                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = "fft_cpu", .rank = TN_RANK_C,         \
    .create = create, .destroy = destroy, .prepare = prepare, .destroy_shape_state = destroy_plan,                 \
    .compute = compute }

static const tn_kernel_def kernels[] = {
  KERNEL("FFT"),  KERNEL("FFT2D"),  KERNEL("FFT3D"),  KERNEL("IFFT"),  KERNEL("IFFT2D"),  KERNEL("IFFT3D"),
  KERNEL("RFFT"), KERNEL("RFFT2D"), KERNEL("RFFT3D"), KERNEL("IRFFT"), KERNEL("IRFFT2D"), KERNEL("IRFFT3D"),
};

TN_OP_FAMILY(fft)
