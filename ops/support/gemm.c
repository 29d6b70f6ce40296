/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/support/gemm_kernel.h>
#include <string.h>

#define MR TN__GEMM_MR
#define KC TN__GEMM_KC
#define MAX_ELEMENT 16
#define CHUNK_BYTES (4 << 20)   /* of B in scratch */
#define LOCAL_BYTES (256 << 10) /* of B that a row group sweeps: stays in the second cache */
#define FEW_ROWS 16             /* copying B into panels pays above this */
#define SERIAL_NS 40000.0

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- planning ---- */

static double ns_per_term(tn__gemm_type type)
{
  switch (type) {
  case TN__GEMM_F32: return 0.04;
  case TN__GEMM_F64: return 0.08;
  case TN__GEMM_I32: return 0.08;
  case TN__GEMM_I64: return 0.5;
  case TN__GEMM_C64: return 0.16;
  case TN__GEMM_C128: break;
  }
  return 0.3;
}

void tn__gemm_plan_choose(tn__gemm_plan *p)
{
  p->kernel = tn__gemm_kernel_find(p->type, p->n);
  p->k_chunk = p->n_chunk = 0;
  p->scratch = 0;
  p->cost_ns = 30 + (double)p->m * (double)p->n * (double)p->k * ns_per_term(p->type);
  if (p->serial || p->packed || p->m == 0 || p->n == 0 || p->k == 0) return;
  if (p->b_col == 1 && p->m <= FEW_ROWS) return;
  int64_t nr = p->kernel->nr, columns = round_up(p->n, nr), limit = CHUNK_BYTES / (int64_t)p->kernel->element;
  p->k_chunk = least(p->k, 4 * KC);
  p->n_chunk = least(columns, round_up(limit / p->k_chunk + 1, nr));
  if (p->n_chunk == columns && columns * p->k <= limit) p->k_chunk = p->k;
  p->scratch = (size_t)(p->k_chunk * p->n_chunk) * p->kernel->element;
}

/* ---- panels of B: for each nr columns all terms, row after row, zeros past the last column ---- */

static void copy_panel(const tn__gemm_plan *p, const char *b, int64_t column, int64_t term, int64_t terms, char *to)
{
  size_t size = p->kernel->element;
  int64_t nr = p->kernel->nr, n = least(nr, p->n - column);
  const char *from = b + (size_t)(term * p->b_row + column * p->b_col) * size;
  if (p->b_col == 1) {
    for (int64_t t = 0; t < terms; t++, from += (size_t)p->b_row * size, to += (size_t)nr * size) {
      memcpy(to, from, (size_t)n * size);
      if (n < nr) memset(to + (size_t)n * size, 0, (size_t)(nr - n) * size);
    }
    return;
  }
#define COPY(T, WORDS)                        \
  for (int64_t j = 0; j < nr; j++)            \
    for (int64_t t = 0; t < terms; t++)       \
      for (int w = 0; w < WORDS; w++)         \
        ((T *)to)[(t * nr + j) * WORDS + w] = \
            j < n ? ((const T *)from)[(t * p->b_row + j * p->b_col) * WORDS + w] : 0;
  if (size == 4) {
    COPY(uint32_t, 1)
  } else if (size == 8) {
    COPY(uint64_t, 1)
  } else {
    COPY(uint64_t, 2)
  }
#undef COPY
}

size_t tn__gemm_packed_bytes(const tn__gemm_plan *p)
{
  return (size_t)(round_up(p->n, p->kernel->nr) * p->k) * p->kernel->element;
}

void tn__gemm_pack(const tn__gemm_plan *p, const void *b, void *to)
{
  int64_t nr = p->kernel->nr;
  for (int64_t j = 0; j < p->n; j += nr)
    copy_panel(p, b, j, 0, p->k, (char *)to + (size_t)(j * p->k) * p->kernel->element);
}

/* ---- rows of A ---- */

static int64_t rows_in_memory(const tn__gemm_plan *p, const char *a, int64_t row, int rows, int64_t term, int64_t terms,
                              char *room, const void **at, int64_t *step)
{
  size_t size = p->kernel->element;
  const char *from = a + (size_t)(row * p->a_row + term * p->a_col) * size;
  if (p->a_col == 1) {
    for (int i = 0; i < rows; i++) at[i] = from + (size_t)(i * p->a_row) * size;
    *step = 1;
    return terms;
  }
  /* A lies across: its terms are far apart, so they are copied together. */
#define COPY(T, WORDS)                \
  for (int64_t t = 0; t < terms; t++) \
    for (int i = 0; i < rows; i++)    \
      for (int w = 0; w < WORDS; w++) \
        ((T *)room)[(t * rows + i) * WORDS + w] = ((const T *)from)[(i * p->a_row + t * p->a_col) * WORDS + w];
  if (size == 4) {
    COPY(uint32_t, 1)
  } else if (size == 8) {
    COPY(uint64_t, 1)
  } else {
    COPY(uint64_t, 2)
  }
#undef COPY
  for (int i = 0; i < rows; i++) at[i] = room + (size_t)i * size;
  *step = rows;
  return terms;
}

/* ---- a block of C ---- */

/* A few rows of A. */
typedef struct lines {
  const void *at[MR];
  int64_t step;
  int n;
} lines;

/* Where B's terms [term, term + terms) of columns [column, column + columns) are read. */
typedef struct source {
  const char *at;     /* the first term of the first column */
  int64_t row, panel; /* elements between terms, between panels */
  bool padded;        /* the last panel ends in zeros */
} source;

typedef struct run {
  const tn__gemm_plan *plan;
  const char *a, *b;
  char *c;
  char *chunk;                   /* panels of the chunk in scratch, or NULL */
  int64_t k_begin, k_end;        /* the chunk */
  int64_t n_begin, n_end;
  int64_t row_block, column_block, column_blocks;
} run;

/* One tile that is not whole, or whose B would be read past its end: through copies on the stack. */
static void edge_tile(const run *r, const lines *a, int64_t terms, const char *b, const source *s, int64_t width,
                      char *c, bool first)
{
  const tn__gemm_kernel *kernel = r->plan->kernel;
  size_t size = kernel->element;
  int64_t nr = kernel->nr, row = s->row;
  _Alignas(64) char line[KC * TN__GEMM_LINE];
  _Alignas(64) char tile[MR * TN__GEMM_LINE];
  if (!s->padded) {
    for (int64_t t = 0; t < terms; t++) {
      memcpy(line + (size_t)(t * nr) * size, b + (size_t)(t * row) * size, (size_t)width * size);
      memset(line + (size_t)(t * nr + width) * size, 0, (size_t)(nr - width) * size);
    }
    b = line;
    row = nr;
  }
  for (int i = 0; i < a->n && !first; i++) {
    memcpy(tile + (size_t)(i * nr) * size, c + (size_t)(i * r->plan->c_row) * size, (size_t)width * size);
    memset(tile + (size_t)(i * nr + width) * size, 0, (size_t)(nr - width) * size);
  }
  kernel->tile(a->n, 1, terms, a->at, a->step, b, row, nr, tile, nr, first);
  for (int i = 0; i < a->n; i++)
    memcpy(c + (size_t)(i * r->plan->c_row) * size, tile + (size_t)(i * nr) * size, (size_t)width * size);
}

/* Rows of C against a line of panels. */
static void sweep(const run *r, int64_t row, const lines *a, int64_t terms, const source *s, int64_t column,
                  int64_t end, bool first)
{
  const tn__gemm_plan *p = r->plan;
  const tn__gemm_kernel *kernel = p->kernel;
  size_t size = kernel->element;
  int64_t nr = kernel->nr;
  const char *b = s->at;
  for (int64_t j = column; j < end;) {
    char *c = r->c + (size_t)(row * p->c_row + j) * size;
    int64_t width = least(nr, end - j);
    int pairs = 1;
    if (width < nr) {
      edge_tile(r, a, terms, b, s, width, c, first);
    } else {
      if (a->n == 1 && end - j >= 4 * nr) pairs = 4;
      kernel->tile(a->n, pairs, terms, a->at, a->step, b, s->row, s->panel, c, p->c_row, first);
    }
    j += pairs * nr;
    b += (size_t)(pairs * s->panel) * size;
  }
}

/* Rows [row, row_end) against the terms and columns of s. */
static void sweep_rows(const run *r, int64_t row, int64_t row_end, int64_t term, int64_t terms, const source *s,
                       int64_t column, int64_t column_end)
{
  const tn__gemm_plan *p = r->plan;
  _Alignas(64) char room[MR * KC * MAX_ELEMENT];
  for (; row < row_end; row += p->kernel->mr) {
    lines a = { .n = (int)least(p->kernel->mr, row_end - row) };
    for (int64_t done = 0; done < terms;) {
      int64_t t = term + done, some = terms - done;
      some = p->rows != NULL ? p->rows(r->a, row, a.n, t, some, room, a.at, &a.step)
                             : rows_in_memory(p, r->a, row, a.n, t, some, room, a.at, &a.step);
      source from = *s;
      from.at += (size_t)(done * s->row) * p->kernel->element;
      sweep(r, row, &a, some, &from, column, column_end, t == 0);
      done += some;
    }
  }
}

/* The source of terms from `term` and columns from `column`, when no copy is needed. */
static source source_of(const run *r, int64_t term, int64_t column)
{
  const tn__gemm_plan *p = r->plan;
  size_t size = p->kernel->element;
  int64_t nr = p->kernel->nr;
  if (r->chunk != NULL) {
    int64_t panel = (r->k_end - r->k_begin) * nr, first = (column - r->n_begin) / nr;
    return (source){ r->chunk + (size_t)(first * panel + (term - r->k_begin) * nr) * size, nr, panel, true };
  }
  if (p->packed) {
    int64_t panel = p->k * nr;
    return (source){ r->b + (size_t)(column / nr * panel + term * nr) * size, nr, panel, true };
  }
  return (source){ r->b + (size_t)(term * p->b_row + column) * size, p->b_row, nr, false };
}

static void run_block(const run *r, int64_t row, int64_t row_end, int64_t column, int64_t column_end)
{
  for (int64_t term = r->k_begin; term < r->k_end; term += KC) {
    source s = source_of(r, term, column);
    sweep_rows(r, row, row_end, term, least(KC, r->k_end - term), &s, column, column_end);
  }
}

/* B lies across: its panels are copied to the stack one after another. */
static void run_across(const run *r)
{
  const tn__gemm_plan *p = r->plan;
  int64_t nr = p->kernel->nr;
  _Alignas(64) char line[KC * TN__GEMM_LINE];
  for (int64_t column = 0; column < p->n; column += nr) {
    for (int64_t term = 0; term < p->k; term += KC) {
      int64_t terms = least(KC, p->k - term);
      copy_panel(p, r->b, column, term, terms, line);
      source s = { line, nr, nr, true };
      sweep_rows(r, 0, p->m, term, terms, &s, column, least(p->n, column + nr));
    }
  }
}

/* ---- threads ---- */

static void block_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  for (int64_t i = begin; i < end; i++) {
    int64_t row = i / r->column_blocks * r->row_block, column = r->n_begin + i % r->column_blocks * r->column_block;
    run_block(r, row, least(r->plan->m, row + r->row_block), column, least(r->n_end, column + r->column_block));
  }
}

static void pack_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  int64_t nr = r->plan->kernel->nr, terms = r->k_end - r->k_begin;
  for (int64_t i = begin; i < end; i++)
    copy_panel(r->plan, r->b, r->n_begin + i * nr, r->k_begin, terms,
               r->chunk + (size_t)(i * nr * terms) * r->plan->kernel->element);
}

static int64_t grain_of(double cost) { return cost < SERIAL_NS / 4 ? (int64_t)(SERIAL_NS / 4 / cost) + 1 : 1; }

static void run_threads(run *r, tn_kernel_ctx *ctx)
{
  const tn__gemm_plan *p = r->plan;
  int64_t nr = p->kernel->nr, width = r->n_end - r->n_begin;
  r->column_block = round_up(LOCAL_BYTES / (KC * (int64_t)p->kernel->element), nr);
  r->row_block = 8 * p->kernel->mr;
  r->column_blocks = (width + r->column_block - 1) / r->column_block;
  int64_t blocks = (p->m + r->row_block - 1) / r->row_block * r->column_blocks;
  if (p->serial || blocks == 1 || p->cost_ns < SERIAL_NS) {
    block_part(r, 0, blocks);
    return;
  }
  double cost = p->cost_ns / (double)blocks;
  tn_parallel_for(ctx, blocks, grain_of(cost), cost, block_part, r);
}

/* B goes through scratch, a chunk after another. */
static void run_chunks(run *r, tn_kernel_ctx *ctx, char *scratch)
{
  const tn__gemm_plan *p = r->plan;
  int64_t nr = p->kernel->nr;
  r->chunk = scratch;
  for (r->n_begin = 0; r->n_begin < p->n; r->n_begin = r->n_end) {
    r->n_end = least(p->n, r->n_begin + p->n_chunk);
    for (r->k_begin = 0; r->k_begin < p->k; r->k_begin = r->k_end) {
      r->k_end = least(p->k, r->k_begin + p->k_chunk);
      int64_t panels = (r->n_end - r->n_begin + nr - 1) / nr;
      double cost = (double)((r->k_end - r->k_begin) * nr) * 0.5;
      if (cost * (double)panels < SERIAL_NS)
        pack_part(r, 0, panels);
      else
        tn_parallel_for(ctx, panels, grain_of(cost), cost, pack_part, r);
      run_threads(r, ctx);
    }
  }
}

void tn__gemm_run(const tn__gemm_plan *p, tn_kernel_ctx *ctx, const void *a, const void *b, void *c, void *scratch)
{
  if (p->m == 0 || p->n == 0) return;
  if (p->k == 0) {
    for (int64_t i = 0; i < p->m; i++)
      memset((char *)c + (size_t)(i * p->c_row) * p->kernel->element, 0, (size_t)p->n * p->kernel->element);
    return;
  }
  run r = { .plan = p, .a = a, .b = b, .c = c, .k_end = p->k, .n_end = p->n };
  if (p->k_chunk > 0)
    run_chunks(&r, ctx, scratch);
  else if (p->packed || p->b_col == 1)
    run_threads(&r, ctx);
  else
    run_across(&r);
}
