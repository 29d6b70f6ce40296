/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/rnn/recurrent.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/window/volume.h>
#include <string.h>

#define ROWS 6          /* maximum rows of a tile */
#define TERMS 256       /* terms at a time: their part of a panel stays in the L1 cache */
#define WIDEST 16       /* maximum columns of a panel */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- tiles: up to ROWS rows by a panel of two vectors, two rows by two panels, one row by two or four ---- */

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define TILE(name, bytes, attribute)                                                                          \
  typedef float name##_vector __attribute__((vector_size(bytes)));                                            \
  attribute static inline __attribute__((always_inline)) void name##_body(                                    \
      const int rows, const int panels, int64_t terms, const float *const *at, const float *b, int64_t b_row, \
      int64_t panel, float *c, int64_t c_row, bool first)                                                     \
  {                                                                                                           \
    enum { LANES = bytes / 4 };                                                                               \
    const float *a[ROWS];                                                                                     \
    name##_vector sum[ROWS][8] = { { { 0 } } }, line[8];                                                      \
    UNROLL for (int i = 0; i < rows; i++)                                                                     \
    {                                                                                                         \
      a[i] = at[i];                                                                                           \
      UNROLL for (int v = 0; v < 2 * panels; v++)                                                             \
      {                                                                                                       \
        sum[i][v] = (name##_vector){ 0 };                                                                     \
        if (!first) memcpy(&sum[i][v], c + i * c_row + v * LANES, bytes);                                     \
      }                                                                                                       \
    }                                                                                                         \
    for (int64_t t = 0; t < terms; t++, b += b_row) {                                                         \
      UNROLL for (int v = 0; v < 2 * panels; v++) memcpy(&line[v], b + v / 2 * panel + v % 2 * LANES, bytes); \
      UNROLL for (int i = 0; i < rows; i++)                                                                   \
      {                                                                                                       \
        const float x = a[i][t];                                                                              \
        UNROLL for (int v = 0; v < 2 * panels; v++) sum[i][v] += line[v] * x;                                 \
      }                                                                                                       \
    }                                                                                                         \
    UNROLL for (int i = 0; i < rows; i++)                                                                     \
    {                                                                                                         \
      UNROLL for (int v = 0; v < 2 * panels; v++) memcpy(c + i * c_row + v * LANES, &sum[i][v], bytes);       \
    }                                                                                                         \
  }                                                                                                           \
  attribute static void name(int rows, int panels, int64_t terms, const float *const *a, const float *b,      \
                             int64_t b_row, int64_t panel, float *c, int64_t c_row, bool first)               \
  {                                                                                                           \
    switch (rows * 8 + panels) {                                                                              \
    case 1 * 8 + 4: name##_body(1, 4, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    case 1 * 8 + 2: name##_body(1, 2, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    case 1 * 8 + 1: name##_body(1, 1, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    case 2 * 8 + 2: name##_body(2, 2, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    case 2 * 8 + 1: name##_body(2, 1, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    case 3 * 8 + 1: name##_body(3, 1, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    case 4 * 8 + 1: name##_body(4, 1, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    case 5 * 8 + 1: name##_body(5, 1, terms, a, b, b_row, panel, c, c_row, first); break;                     \
    default: name##_body(6, 1, terms, a, b, b_row, panel, c, c_row, first); break;                            \
    }                                                                                                         \
  }

TILE(tile, 16, )
#if TN__VECTORS > 1
TILE(tile_avx2, 32, TN__FOR_AVX2)
#endif

/* Chooses the tile function and the panel width. Wide vectors are not used if they would be mostly empty. */
static void choose_tile(tn__recurrent *r, int64_t columns)
{
  r->tile = tile;
  r->panel = WIDEST / 2;
#if TN__VECTORS > 1
  const int64_t over = columns % WIDEST;
  if (tn__vectors() < TN__AVX2 || (columns < 4 * WIDEST && over != 0 && over <= WIDEST / 2)) return;
  r->tile = tile_avx2;
  r->panel = WIDEST;
#else
  (void)columns;
#endif
}

/* ---- weights ---- */

/* Columns of a block, rounded up to whole panels. */
static int64_t block_columns(const tn__recurrent *r, int64_t block)
{
  return (tn__recurrent_cells(r, block) * r->parts + r->panel - 1) / r->panel * r->panel;
}

void tn__recurrent_plan(tn__recurrent *r, int64_t cells, int64_t parts)
{
  *r = (tn__recurrent){ .cells = cells, .parts = parts };
  choose_tile(r, cells * parts);
  r->width = parts < 4 ? r->panel * (4 / parts) : r->panel;
  r->blocks = (cells + r->width - 1) / r->width;
  if (r->blocks > 0) r->columns = tn__recurrent_at(r, r->blocks - 1) + block_columns(r, r->blocks - 1);
}

size_t tn__recurrent_packed_bytes(const tn__recurrent *r, int64_t terms)
{
  return (size_t)(r->columns * terms) * sizeof(float);
}

/* The column of w that is column `column` of the block; -1 past the last one. */
static int64_t source_of(const tn__recurrent *r, int64_t block, int64_t column, const int64_t *order)
{
  int64_t cells = tn__recurrent_cells(r, block), part = column / cells;
  return part < r->parts ? order[part] * r->cells + block * r->width + column % cells : -1;
}

void tn__recurrent_pack(const tn__recurrent *r, const float *w, int64_t w_row, int64_t terms, const int64_t *order,
                        bool lines, float *to)
{
  const int64_t nr = r->panel;
  int64_t from[WIDEST];
  for (int64_t block = 0; block < r->blocks; block++) {
    const int64_t columns = block_columns(r, block), step = lines ? columns : nr;
    for (int64_t panel = 0; panel < columns; panel += nr) {
      float *line = to + (lines ? panel : panel * terms);
      for (int64_t k = 0; k < nr; k++) from[k] = source_of(r, block, panel + k, order);
      for (int64_t t = 0; t < terms; t++, line += step)
        for (int64_t k = 0; k < nr; k++) line[k] = from[k] < 0 ? 0 : w[t * w_row + from[k]];
    }
    to += columns * terms;
  }
}

/* ---- products ---- */

/* A product of some rows with one block. The rows are those of f, or of the matrices x if not NULL. */
typedef struct piece {
  const tn__recurrent *r;
  const tn__recurrent_factors *f;
  tn_view *const *x;
  int64_t batch;
  const float *packed;
  int64_t panels, b_row, panel; /* elements between terms, between panels */
  int64_t row, rows;
  float *sums;
} piece;

static void rows_at(const piece *w, int64_t row, int rows, int64_t term, const float **at)
{
  const int64_t a_row = w->f->a_row;
  if (w->x == NULL) {
    for (int k = 0; k < rows; k++) at[k] = w->f->a + (row + k) * a_row + term;
    return;
  }
  int64_t t = row / w->batch, i = row % w->batch;
  for (int k = 0; k < rows; k++) {
    at[k] = (const float *)w->x[t]->data + i * a_row + term;
    if (++i == w->batch) i = 0, t++;
  }
}

/* Adds some of the terms. A panel's part of these terms stays in the L1 cache while all rows are processed. */
static void multiply_terms(const piece *w, int64_t term, int64_t terms)
{
  const int64_t nr = w->r->panel, c_row = w->r->columns;
  for (int64_t p = 0, panels; p < w->panels; p += panels) {
    panels = w->rows <= 2 && w->panels - p >= 2 ? 2 : 1;
    if (w->rows == 1 && w->panels - p >= 4) panels = 4;
    for (int64_t i = 0; i < w->rows; i += ROWS) {
      const int n = (int)least(ROWS, w->rows - i);
      const float *at[ROWS];
      rows_at(w, w->row + i, n, term, at);
      w->r->tile(n, (int)panels, terms, at, w->packed + p * w->panel + term * w->b_row, w->b_row, w->panel,
                 w->sums + i * c_row + p * nr, c_row, w->f->first && term == 0);
    }
  }
}

static void multiply(const tn__recurrent *r, const tn__recurrent_factors *f, tn_view *const *x, int64_t batch,
                     int64_t block, int64_t row, int64_t rows, float *sums)
{
  const int64_t at = tn__recurrent_at(r, block), columns = block_columns(r, block);
  const piece w = { .r = r,
                    .f = f,
                    .x = x,
                    .batch = batch,
                    .packed = f->packed + at * f->packed_terms,
                    .panels = columns / r->panel,
                    .b_row = f->lines ? columns : r->panel,
                    .panel = f->lines ? r->panel : f->packed_terms * r->panel,
                    .row = row,
                    .rows = rows,
                    .sums = sums + at };
  for (int64_t term = 0; term < f->terms; term += TERMS) multiply_terms(&w, term, least(TERMS, f->terms - term));
}

void tn__recurrent_multiply(const tn__recurrent *r, const tn__recurrent_factors *f, int64_t block, int64_t row,
                            int64_t rows, float *sums)
{
  multiply(r, f, NULL, 1, block, row, rows, sums);
}

/* ---- over time ---- */

#define CHUNK_BYTES (128 << 10)
#define CHUNK_ROWS 24 /* minimum number of rows that justifies reading the weights */

int64_t tn__recurrent_chunk(const tn__recurrent *r, int64_t steps, int64_t batch)
{
  int64_t row = r->columns * (int64_t)sizeof(float), rows = row > 0 ? CHUNK_BYTES / row : steps;
  if (rows < CHUNK_ROWS) rows = CHUNK_ROWS;
  int64_t n = batch > 0 ? rows / batch : steps;
  return least(n < 1 ? 1 : n, steps);
}

typedef struct inputs {
  const tn__recurrent *r;
  tn__recurrent_factors f;
  tn_view *const *x;
  int64_t batch, rows;
  float *sums;
} inputs;

static void inputs_part(void *user, int64_t begin, int64_t end)
{
  const inputs *in = user;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row, rows, block = tn__recurrent_unit(in->r, in->rows, unit, false, &row, &rows);
    multiply(in->r, &in->f, in->x, in->batch, block, row, rows, in->sums + row * in->r->columns);
  }
}

void tn__recurrent_inputs(const tn__recurrent *r, tn_kernel_ctx *ctx, tn_view *const *x, int64_t steps, int64_t batch,
                          const float *packed, float *sums)
{
  const int64_t terms = x[0]->dims[1], rows = steps * batch, units = tn__recurrent_units(r, rows);
  inputs in = { .r = r, .x = x, .batch = batch, .rows = rows, .sums = sums,
                .f = { .packed = packed, .a_row = x[0]->dims[0] == 1 ? 0 : terms, .terms = terms, .packed_terms = terms,
                       .first = true } };
  if (terms == 0) memset(sums, 0, (size_t)(rows * r->columns) * sizeof *sums);
  else tn__run_parts(ctx, units, 0.04 * (double)(rows * r->columns) * (double)terms / (double)units, inputs_part, &in);
}
