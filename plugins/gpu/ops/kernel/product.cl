/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, and computations that are products: convolutions and their gradients. Parts of both operands
 * are copied to local memory, where each item multiplies ITEM_M rows by ITEM_N columns of a tile. The next parts are
 * read meanwhile.
 *
 * T, C, LOAD, STORE   elements, see prelude.cl; sums are of type C MODE                where the elements of a row of
 * A are   MATRIX            in a matrix; ACROSS_A: in a column of it   WINDOWS           in the window of an image at
 * a place; a term is a tap and a channel. B is a filter   PLACES            in the results whose windows have a pixel
 * of the image; a term is a tap and a channel of the                     results. B is a filter, read across   TAPS
 * at a tap and a channel, in the windows at all places; a term is a place. B is the results ACROSS_B            rows
 * of B are its columns SPLIT               terms are divided among several groups, whose sums product_sum adds
 * BATCHES             `batches` describes where the matrices of a batch are STEPS               number of steps that
 * follow: STEP_i is the kind plus 16 times the number of its argument, of ARGS */
#define MATRIX 0
#define WINDOWS 1
#define PLACES 2
#define TAPS 3

/* The steps that may follow a product. */
enum { BIAS, ADD, RELU, RELU6, LEAKY_RELU, TANH, SIGMOID };

#ifndef ARGS
#define ARGS 0
#endif
#ifndef STEPS
#define STEPS 0
#endif
#if ARGS > 0
#define ARG_0 , IN(arg0)
#define GET_ARG_0 GET_IN(T, arg0); args[0] = arg0;
#else
#define ARG_0
#define GET_ARG_0
#endif
#if ARGS > 1
#define ARG_1 , IN(arg1)
#define GET_ARG_1 GET_IN(T, arg1); args[1] = arg1;
#else
#define ARG_1
#define GET_ARG_1
#endif
#if ARGS > 2
#define ARG_2 , IN(arg2)
#define GET_ARG_2 GET_IN(T, arg2); args[2] = arg2;
#else
#define ARG_2
#define GET_ARG_2
#endif
#if ARGS > 3
#define ARG_3 , IN(arg3)
#define GET_ARG_3 GET_IN(T, arg3); args[3] = arg3;
#else
#define ARG_3
#define GET_ARG_3
#endif
#define ARG_LIST ARG_0 ARG_1 ARG_2 ARG_3
#define GET_ARGS __global const T *args[ARGS + 1]; GET_ARG_0 GET_ARG_1 GET_ARG_2 GET_ARG_3

#ifdef ALPHA
#define LEAK(x) ((x) * (C)ALPHA)
#else
#define LEAK(x) (x)
#endif
static C step(C x, int code, __global const T **args, long place, long column)
{
  switch (code % 16) {
  case BIAS: return x + LOAD(args[code / 16], column);
  case ADD: return x + LOAD(args[code / 16], place);
  case RELU6:
    if (x > 6) return (C)6; /* otherwise as RELU */
  case RELU: return x < 0 ? (C)0 : x;
  case LEAKY_RELU: return x > 0 ? x : LEAK(x);
#ifdef FLOATING
  case TANH: return tanh(x);
  case SIGMOID: return 1 / (1 + exp(-x));
#endif
  default: return x;
  }
}

/* Applies a step to x, which is element `place` of the result, in channel `column`. */
static C finish(C x, __global const T **args, long place, long column)
{
#if STEPS > 0
  x = step(x, STEP_0, args, place, column);
#endif
#if STEPS > 1
  x = step(x, STEP_1, args, place, column);
#endif
#if STEPS > 2
  x = step(x, STEP_2, args, place, column);
#endif
#if STEPS > 3
  x = step(x, STEP_3, args, place, column);
#endif
#if STEPS > 4
  x = step(x, STEP_4, args, place, column);
#endif
#if STEPS > 5
  x = step(x, STEP_5, args, place, column);
#endif
#if STEPS > 6
  x = step(x, STEP_6, args, place, column);
#endif
#if STEPS > 7
  x = step(x, STEP_7, args, place, column);
#endif
  return x;
}

/* ---- sizes ---- */

/* Counts are elements unless they are said to be something else. Of a batch, or of the groups of a convolution, each
 * has m rows, n columns and k terms. */
typedef struct sizes {
  long a_row, b_row, out_row;       /* from a row to the next, as they lie */
  long a_batch, b_batch, out_batch; /* from one of the batch to the next */
  int m, n, k, tiles_m, tiles_n;
  int splits, split; /* groups that share the terms, terms of each */
} sizes;

typedef struct batches {
  long size[8], a[8], b[8]; /* of a dimension: how many, and from one to the next */
  int rank, unused;
} batches;

#ifdef TILE_M
#define GROUP_N 16
#define GROUP_M 16
#define ITEMS 256
#define ITEM_M (TILE_M / GROUP_M)
#define ITEM_N (TILE_N / GROUP_N)
/* An item's rows and columns are quads, those of all items side by side. */
#define QUAD_M (ITEM_M < 4 ? ITEM_M : 4)
#define QUAD_N (ITEM_N < 4 ? ITEM_N : 4)
#define ROW(i) ((i) / QUAD_M * (GROUP_M * QUAD_M) + item / GROUP_N * QUAD_M + (i) % QUAD_M)
#define COLUMN(j) ((j) / QUAD_N * (GROUP_N * QUAD_N) + item % GROUP_N * QUAD_N + (j) % QUAD_N)

/* The elements of a tile that an item reads: adjacent items read adjacent elements. */
#define A_LOADS (TILE_M * TILE_K / ITEMS)
#define B_LOADS (TILE_N * TILE_K / ITEMS)
#if MODE == TAPS || defined(ACROSS_A)
#define A_ROW(i) (item % TILE_M)
#define A_TERM(i) (item / TILE_M + (i) * (ITEMS / TILE_M))
#else
#define A_ROW(i) (item / TILE_K + (i) * (ITEMS / TILE_K))
#define A_TERM(i) (item % TILE_K)
#endif
#if MODE == PLACES || defined(ACROSS_B)
#define B_COLUMN(i) (item / TILE_K + (i) * (ITEMS / TILE_K))
#define B_TERM(i) (item % TILE_K)
#else
#define B_COLUMN(i) (item % TILE_N)
#define B_TERM(i) (item / TILE_N + (i) * (ITEMS / TILE_N))
#endif

/* ---- A ---- */

#define OUTSIDE (-(1 << 30))

#if MODE == MATRIX
typedef struct rows {
  int row[A_LOADS];
} rows;

static void rows_begin(rows *r, const sizes *z, const image_window *w, int item, int first, int term)
{
  for (int i = 0; i < A_LOADS; i++) r->row[i] = first + A_ROW(i);
}

static C row_term(const rows *r, __global const T *a, const sizes *z, const image_window *w, int item, int i, int term,
                  int end)
{
  if (r->row[i] >= z->m || term + A_TERM(i) >= end) return 0;
#ifdef ACROSS_A
  return LOAD(a, (term + A_TERM(i)) * z->a_row + r->row[i]);
#else
  return LOAD(a, r->row[i] * z->a_row + term + A_TERM(i));
#endif
}

static void rows_next(rows *r, const sizes *z, const image_window *w) {}

#elif MODE == WINDOWS || MODE == PLACES
/* Places or pixels, and the tap and channel that all of them have now. */
typedef struct rows {
  long at[A_LOADS]; /* of the image or the results, the first pixel's */
  int y[A_LOADS], x[A_LOADS];
  int ky, kx, c;
} rows;

#if MODE == WINDOWS
#define DEEP (w->kc)
#else
#define DEEP (z->b_batch)
#endif

static void rows_begin(rows *r, const sizes *z, const image_window *w, int item, int first, int term)
{
  const int deep = (int)DEEP, tap = (term + A_TERM(0)) / deep;
#if MODE == WINDOWS
  const int lines = w->oh, line = w->ow;
  const long image = (long)w->h * w->w * w->c;
#else
  const int lines = w->h, line = w->w;
  const long image = (long)w->oh * w->ow * w->oc;
#endif
  r->c = term + A_TERM(0) - tap * deep;
  r->ky = tap / w->kw;
  r->kx = tap - r->ky * w->kw;
  for (int i = 0; i < A_LOADS; i++) {
    const int row = first + A_ROW(i), y = row / line, n = y / lines;
    r->at[i] = n * image;
#if MODE == WINDOWS
    r->y[i] = row < z->m ? (y - n * lines) * w->stride_y - w->before_y : OUTSIDE;
    r->x[i] = (row - y * line) * w->stride_x - w->before_x;
#else
    r->y[i] = row < z->m ? y - n * lines + w->before_y : OUTSIDE;
    r->x[i] = row - y * line + w->before_x;
#endif
  }
}

static C row_term(const rows *r, __global const T *a, const sizes *z, const image_window *w, int item, int i, int term,
                  int end)
{
  const bool within = term + A_TERM(i) < end;
#if MODE == WINDOWS
  const int y = r->y[i] + r->ky * w->dilation_y, x = r->x[i] + r->kx * w->dilation_x;
  if (!within || y < 0 || y >= w->h || x < 0 || x >= w->w) return 0;
  return LOAD(a, r->at[i] + ((long)y * w->w + x) * w->c + r->c);
#else
  int y = r->y[i] - r->ky * w->dilation_y, x = r->x[i] - r->kx * w->dilation_x;
  if (!within || y < 0 || x < 0 || y % w->stride_y != 0 || x % w->stride_x != 0) return 0;
  y /= w->stride_y;
  x /= w->stride_x;
  return y < w->oh && x < w->ow ? LOAD(a, r->at[i] + ((long)y * w->ow + x) * w->oc + r->c) : (C)0;
#endif
}

static void rows_next(rows *r, const sizes *z, const image_window *w)
{
  const int deep = (int)DEEP;
  for (r->c += TILE_K; r->c >= deep; r->c -= deep) {
    if (++r->kx < w->kw) continue;
    r->kx = 0;
    r->ky++;
  }
}

#else
/* The one tap and channel of an item. */
typedef struct rows {
  int y, x, c;
} rows;

static void rows_begin(rows *r, const sizes *z, const image_window *w, int item, int first, int term)
{
  const int row = first + A_ROW(0), tap = row / w->kc, ky = tap / w->kw;
  r->c = row - tap * w->kc;
  r->y = row < z->m ? ky * w->dilation_y - w->before_y : OUTSIDE;
  r->x = (tap - ky * w->kw) * w->dilation_x - w->before_x;
}

static C row_term(const rows *r, __global const T *a, const sizes *z, const image_window *w, int item, int i, int term,
                  int end)
{
  term += A_TERM(i);
  if (r->y == OUTSIDE || term >= end) return 0;
  const int line = term / w->ow, n = line / w->oh;
  const int y = r->y + (line - n * w->oh) * w->stride_y, x = r->x + (term - line * w->ow) * w->stride_x;
  if (y < 0 || y >= w->h || x < 0 || x >= w->w) return 0;
  return LOAD(a, (((long)n * w->h + y) * w->w + x) * w->c + r->c);
}

static void rows_next(rows *r, const sizes *z, const image_window *w) {}
#endif

/* ---- B ---- */

static C column_term(__global const T *b, const sizes *z, const image_window *w, int column, int term, int end)
{
  if (column >= z->n || term >= end) return 0;
#if MODE == PLACES
  const int deep = (int)DEEP, tap = term / deep;
  return LOAD(b, ((long)tap * w->kc + column) * w->oc + (term - tap * deep));
#elif defined(ACROSS_B)
  return LOAD(b, column * z->b_row + term);
#else
  return LOAD(b, term * z->b_row + column);
#endif
}

/* ---- the product ---- */

#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)

/* Where the matrices of a batch begin. */
static void find_batch(const sizes *z, const batches *s, long batch, long *a, long *b)
{
#ifdef BATCHES
  *a = *b = 0;
  for (int i = s->rank - 1; i >= 0; i--) {
    const long at = batch % s->size[i];
    batch /= s->size[i];
    *a += at * s->a[i];
    *b += at * s->b[i];
  }
#else
  *a = batch * z->a_batch;
  *b = batch * z->b_batch;
#endif
}

/* Adds TILE_K terms to an item's sums. Here they are alive at no barrier, so that a CPU has them in registers, too. */
static void multiply(__local C (*tile_a)[TILE_M + 4], __local C (*tile_b)[TILE_N + 4], int item, C (*sum)[ITEM_N])
{
  C part[ITEM_M][ITEM_N];
  EACH(i, ITEM_M) EACH(j, ITEM_N) part[i][j] = sum[i][j];
  for (int k = 0; k < TILE_K; k++) {
    C x[ITEM_M], y[ITEM_N];
    EACH(i, ITEM_M) x[i] = tile_a[k][ROW(i)];
    EACH(j, ITEM_N) y[j] = tile_b[k][COLUMN(j)];
    EACH(i, ITEM_M) EACH(j, ITEM_N) part[i][j] += x[i] * y[j];
  }
  EACH(i, ITEM_M) EACH(j, ITEM_N) sum[i][j] = part[i][j];
}

#define READ_TILE(term)                                                                                               \
  for (int i = 0; i < A_LOADS; i++) next_a[i] = row_term(&r, a, &z, &w, item, i, term, end);                          \
  for (int i = 0; i < B_LOADS; i++) next_b[i] = column_term(b, &z, &w, first_n + B_COLUMN(i), (term) + B_TERM(i), end)

/* Writes an item's sums: parts of them, or the result. */
#ifdef SPLIT
#define PUT_TILE                                                                                                      \
  GET_OUT(C, out);                                                                                                    \
  out += rest * z.m * z.n;                                                                                            \
  EACH(i, ITEM_M) EACH(j, ITEM_N)                                                                                     \
    if (first_m + ROW(i) < z.m && first_n + COLUMN(j) < z.n)                                                          \
      out[(long)(first_m + ROW(i)) * z.n + first_n + COLUMN(j)] = sum[i][j]
#else
#define PUT_TILE                                                                                                      \
  GET_OUT(T, out);                                                                                                    \
  EACH(i, ITEM_M) EACH(j, ITEM_N) {                                                                                   \
    const int row = first_m + ROW(i), column = first_n + COLUMN(j);                                                   \
    const long at = batch * z.out_batch + row * z.out_row + column;                                                   \
    if (row < z.m && column < z.n) STORE(out, at, finish(sum[i][j], args, at, batch * z.out_batch + column));         \
  }
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void product(IN(a), IN(b), OUT(out) ARG_LIST, const sizes z, const image_window w, const batches s)
{
  __local C tile_a[TILE_K][TILE_M + 4], tile_b[TILE_K][TILE_N + 4];
  GET_IN(T, a);
  GET_IN(T, b);
  GET_ARGS
  const int item = get_local_id(0);
  const long group = get_group_id(0), down = group / z.tiles_n, rest = down / z.tiles_m, batch = rest / z.splits;
  const int first_n = (int)(group - down * z.tiles_n) * TILE_N, first_m = (int)(down - rest * z.tiles_m) * TILE_M;
  const int share = (int)(rest - batch * z.splits), begin = share * z.split, end = min(z.k, begin + z.split);
  long at_a, at_b;
  find_batch(&z, &s, batch, &at_a, &at_b);
  a += at_a;
  b += at_b;

  rows r;
  C next_a[A_LOADS], next_b[B_LOADS], sum[ITEM_M][ITEM_N];
  EACH(i, ITEM_M) EACH(j, ITEM_N) sum[i][j] = 0;
  rows_begin(&r, &z, &w, item, first_m, begin);
  READ_TILE(begin);
  for (int term = begin; term < end; term += TILE_K) {
    for (int i = 0; i < A_LOADS; i++) tile_a[A_TERM(i)][A_ROW(i)] = next_a[i];
    for (int i = 0; i < B_LOADS; i++) tile_b[B_TERM(i)][B_COLUMN(i)] = next_b[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    rows_next(&r, &z, &w);
    READ_TILE(term + TILE_K);
    multiply(tile_a, tile_b, item, sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  PUT_TILE;
}
#endif

#ifdef SUM
/* Adds what the groups that shared the terms have. */
__kernel void product_sum(IN(parts), OUT(out) ARG_LIST, const sizes z, const long count)
{
  const long i = get_global_id(0), all = (long)z.m * z.n;
  if (i >= count) return;
  GET_IN(C, parts);
  GET_OUT(T, out);
  GET_ARGS
  const long batch = i / all, rest = i - batch * all, row = rest / z.n, column = rest - row * z.n;
  parts += batch * z.splits * all + rest;
  C x = 0;
  for (int k = 0; k < z.splits; k++) x += parts[k * all];
  const long at = batch * z.out_batch + row * z.out_row + column;
  STORE(out, at, finish(x, args, at, batch * z.out_batch + column));
}
#endif

#ifdef ROWS
/* Few rows: B is read once, and that is the work. Items of a group share the terms of its columns. */
#define SLICES (256 / COLUMNS)
#ifdef ACROSS_B
#define SLICE (item % SLICES)
#define OWN_COLUMN (item / SLICES)
#define ITEM_OF(slice, column) ((column) * SLICES + (slice))
#else
#define SLICE (item / COLUMNS)
#define OWN_COLUMN (item % COLUMNS)
#define ITEM_OF(slice, column) ((slice) * COLUMNS + (column))
#endif

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void product_rows(IN(a), IN(b), OUT(out) ARG_LIST, const sizes z)
{
  __local C parts[ROWS][256];
  GET_IN(T, a);
  GET_IN(T, b);
  GET_OUT(T, out);
  GET_ARGS
  const int item = get_local_id(0), column = get_group_id(0) * COLUMNS + OWN_COLUMN;
  C sum[ROWS];
  for (int i = 0; i < ROWS; i++) sum[i] = 0;
  if (column < z.n) {
    for (int k = SLICE; k < z.k; k += SLICES) {
#ifdef ACROSS_B
      const C y = LOAD(b, column * z.b_row + k);
#else
      const C y = LOAD(b, k * z.b_row + column);
#endif
#ifdef ACROSS_A
      for (int i = 0; i < ROWS; i++) sum[i] += LOAD(a, k * z.a_row + i) * y;
#else
      for (int i = 0; i < ROWS; i++) sum[i] += LOAD(a, i * z.a_row + k) * y;
#endif
    }
  }
  for (int i = 0; i < ROWS; i++) parts[i][item] = sum[i];
  for (int half_of = SLICES / 2; half_of > 0; half_of /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (SLICE < half_of)
      for (int i = 0; i < ROWS; i++) parts[i][item] += parts[i][ITEM_OF(SLICE + half_of, OWN_COLUMN)];
  }
  if (SLICE != 0 || column >= z.n) return;
  for (int i = 0; i < ROWS; i++) {
    const long at = i * z.out_row + column;
    STORE(out, at, finish(parts[i][item], args, at, column));
  }
}
#endif

#ifdef DEPTHWISE
/* Each channel has its own filters. An item computes VECTOR channels at a place; CV is C, or a vector of them. */
__kernel void depthwise(IN(x), IN(filter), OUT(out) ARG_LIST, const image_window w, const int times, const I count)
{
  const I i = get_global_id(0);
  if (i >= count) return;
  GET_IN(T, x);
  GET_IN(T, filter);
  GET_OUT(T, out);
  GET_ARGS
  const int items = w.oc / VECTOR;
  const I place = i / items, line = place / w.ow, n = line / w.oh;
  const int channel = (int)(i - place * items) * VECTOR;
  const int y0 = (int)(line - n * w.oh) * w.stride_y - w.before_y;
  const int x0 = (int)(place - line * w.ow) * w.stride_x - w.before_x;
  x += (long)n * w.h * w.w * w.c + channel / times;
  filter += channel;
  CV sum = 0;
  for (int ky = 0; ky < w.kh; ky++) {
    const int row = y0 + ky * w.dilation_y;
    if (row < 0 || row >= w.h) continue;
    for (int kx = 0; kx < w.kw; kx++) {
      const int at = x0 + kx * w.dilation_x;
      if (at >= 0 && at < w.w)
        sum += LOADV(x, ((long)row * w.w + at) * w.c) * LOADV(filter, ((long)ky * w.kw + kx) * w.oc);
    }
  }
  const long to = (long)place * w.oc + channel;
#if VECTOR > 1
  STOREV(out, to, ((CV)(finish(sum.s0, args, to, channel), finish(sum.s1, args, to + 1, channel + 1),
                        finish(sum.s2, args, to + 2, channel + 2), finish(sum.s3, args, to + 3, channel + 3))));
#else
  STOREV(out, to, finish(sum, args, to, channel));
#endif
}
#endif
