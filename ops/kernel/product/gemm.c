/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/product/weights.h>
#include <string.h>

#define MR TN__GEMM_MR
#define KC TN__GEMM_KC
#define TERM_BYTES (MR * 8)     /* maximum bytes of a tile's rows per term; 16-byte elements have fewer rows */
#define PITCH 16                /* padding between copied rows, so that their distance is never a whole page */
#define CHUNK_BYTES (4 << 20)   /* size of a chunk of B in scratch */
#define LOCAL_BYTES (128 << 10) /* part of B used by a block of row groups: stays in the L2 cache */
#define TERMS_AT_ONCE 4         /* of a transposed A: terms a page apart share the ways of a set of the L1 cache */
#define LINES_AT_ONCE 8         /* of a B that is copied */
#define FEW_ROWS 16             /* copying B into panels pays off only above this */
#define FEW_TERMS 16
#define FEW_BLOCKS 16
#define NEAR_TERMS 2048
#define SERIAL_NS 8000.0
#define ROWS_TO_CUT 32          /* minimum rows of A for cutting by rows, so that each part has some groups */
#define NEAR_BYTES (384 << 10)  /* maximum size of a B that each thread reads whole: leaves room in its L2 cache */

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- planning ---- */

static double ns_per_term(tn__gemm_type type)
{
  switch (type) {
  case TN__GEMM_F32: return 0.04;
  case TN__GEMM_F64: return 0.08;
  case TN__GEMM_I32: return 0.08;
  case TN__GEMM_PAIRS: return 0.06;
  case TN__GEMM_I64: return 0.5;
  case TN__GEMM_C64: return 0.16;
  case TN__GEMM_C128: break;
  }
  return 0.3;
}

void tn__gemm_plan_choose(tn__gemm_plan *p)
{
  p->kernel = p->weights == TN__GEMM_FULL
                  ? tn__gemm_kernel_find(p->type, p->n, p->reproducible)
                  : tn__gemm_kernel_reduced(p->weights, tn__gemm_variant_find(p->type, p->n, p->reproducible));
  p->k_chunk = p->n_chunk = 0;
  p->scratch = 0;
  p->cost_ns = 30 + (double)p->m * (double)p->n * (double)p->k * ns_per_term(p->type);
  if (p->serial || p->packed || p->m == 0 || p->n == 0 || p->k == 0) return;
  if (p->b_col == 1 && p->m <= FEW_ROWS && p->windows == NULL) return;
  int64_t nr = p->kernel->nr, columns = round_up(p->n, nr), limit = CHUNK_BYTES / (int64_t)p->kernel->element;
  p->k_chunk = p->windows != NULL ? p->k : least(p->k, 4 * KC);
  p->n_chunk = least(columns, round_up(limit / p->k_chunk + 1, nr));
  if (p->n_chunk == columns && columns * p->k <= limit) p->k_chunk = p->k;
  p->scratch = (size_t)(p->k_chunk * p->n_chunk) * p->kernel->element;
}

int64_t tn__gemm_groups(const tn__gemm_plan *p, int64_t rows) { return (rows + p->kernel->mr - 1) / p->kernel->mr; }

/* True if the last group would have so few rows that it takes some from the group before it. */
static bool are_few(int64_t rows, int64_t mr) { return rows > 0 && rows < 3 && mr > 3; }

int64_t tn__gemm_group_begin(const tn__gemm_plan *p, int64_t rows, int64_t group)
{
  int64_t mr = p->kernel->mr, begin = group * mr;
  if (begin >= rows) return rows;
  return group > 0 && are_few(rows - begin, mr) ? begin - mr / 2 : begin;
}

int tn__gemm_group_rows(const tn__gemm_plan *p, int64_t left)
{
  int64_t mr = p->kernel->mr;
  return (int)(are_few(left - mr, mr) ? mr - mr / 2 : least(left, mr));
}

/* Copies `terms` pieces that are `apart` bytes from each other. The sizes that panels and groups have are constants of
 * the loop. */
static void copy_terms(const char *from, size_t apart, int64_t terms, size_t bytes, char *to)
{
#define COPY(BYTES)                                               \
  for (int64_t t = 0; t < terms; t++, from += apart, to += bytes) \
    memcpy(to, from, BYTES);
  switch (bytes) {
  case 12: COPY(12) break;
  case 24: COPY(24) break;
  case 32: COPY(32) break;
  case 48: COPY(48) break;
  case 64: COPY(64) break;
  default: COPY(bytes)
  }
#undef COPY
}

/* ---- panels of B: nr columns each, all terms row after row, zeros past the last column ---- */

static void copy_panel(const tn__gemm_plan *p, const char *b, int64_t column, int64_t term, int64_t terms, char *to)
{
  size_t size = p->kernel->element;
  int64_t nr = p->kernel->nr, n = least(nr, p->n - column);
  const char *from = b + (size_t)(term * p->b_row + column * p->b_col) * size;
  if (p->b_col == 1 && n == nr) {
    copy_terms(from, (size_t)p->b_row * size, terms, (size_t)nr * size, to);
    return;
  }
  if (p->b_col == 1) {
    for (int64_t t = 0; t < terms; t++, from += (size_t)p->b_row * size, to += (size_t)nr * size) {
      memcpy(to, from, (size_t)n * size);
      memset(to + (size_t)n * size, 0, (size_t)(nr - n) * size);
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

/* Panels of int8 are followed by the scales of their columns. */
static size_t scales_at(const tn__gemm_plan *p)
{
  return (size_t)round_up(round_up(p->n, p->kernel->nr) * p->k, TN__GEMM_LINE);
}

size_t tn__gemm_packed_bytes(const tn__gemm_plan *p)
{
  int64_t columns = round_up(p->n, p->kernel->nr);
  if (p->weights == TN__GEMM_INT8) return scales_at(p) + (size_t)columns * sizeof(float);
  return (size_t)(columns * p->k) * p->kernel->weight;
}

/* Converts a panel piece by piece. The pieces are few enough for the stack. */
static void reduce_panel(const tn__gemm_plan *p, const void *b, int64_t column, const float *scales, char *to)
{
  _Alignas(64) char line[KC * TN__GEMM_LINE];
  const int64_t nr = p->kernel->nr;
  for (int64_t term = 0; term < p->k; term += KC) {
    const int64_t terms = least(KC, p->k - term);
    copy_panel(p, b, column, term, terms, line);
    void *at = to + (size_t)(term * nr) * p->kernel->weight;
    if (p->weights == TN__GEMM_INT8) tn__weights_to_int8((const float *)line, terms, nr, scales, at);
    else tn__weights_to_bfloat16((const float *)line, terms * nr, at);
  }
}

bool tn__gemm_pack(const tn__gemm_plan *p, const void *b, void *to)
{
  int64_t nr = p->kernel->nr;
  float *scales = (float *)((char *)to + (p->weights == TN__GEMM_INT8 ? scales_at(p) : 0));
  tn__poll poll = tn__poll_here();
  if (p->weights == TN__GEMM_INT8) {
    memset(scales, 0, (size_t)round_up(p->n, nr) * sizeof *scales);
    if (!tn__weights_scales(b, p->k, p->n, p->b_row, p->b_col, scales)) return false;
  }
  for (int64_t j = 0; j < p->n && !tn__poll_over(&poll, p->k * nr); j += nr) {
    char *panel = (char *)to + (size_t)(j * p->k) * p->kernel->weight;
    if (p->weights == TN__GEMM_FULL) copy_panel(p, b, j, 0, p->k, panel);
    else reduce_panel(p, b, j, scales + j, panel);
  }
  return true;
}

/* ---- rows of A ---- */

/* Rows [begin, end) of a transposed A whose terms are in a room, group after group. */
typedef struct gathered {
  int64_t begin, end;
} gathered;

/* Gathers as many groups, from row `begin` on, as the room holds, a few terms of all of them at a time: so each line of
 * memory is read once or twice rather than once for each group. */
static void gather_adjacent(const tn__gemm_plan *p, const char *a, int64_t begin, int64_t end, int64_t term,
                            int64_t terms, char *room, gathered *g)
{
  const size_t size = p->kernel->element, apart = (size_t)p->a_col * size;
  const int64_t most = TERM_BYTES / (int64_t)size;
  int sizes[TERM_BYTES], n = 0;
  int64_t to = begin;
  while (to < end && to - begin + tn__gemm_group_rows(p, end - to) <= most) {
    sizes[n] = tn__gemm_group_rows(p, end - to);
    to += sizes[n++];
  }
  *g = (gathered){ begin, to };
  for (int64_t t = 0; t < terms; t += TERMS_AT_ONCE) {
    const char *from = a + (size_t)(begin + (term + t) * p->a_col) * size;
    char *group = room;
    for (int i = 0; i < n; i++) {
      const size_t bytes = (size_t)sizes[i] * size;
      copy_terms(from, apart, least(TERMS_AT_ONCE, terms - t), bytes, group + (size_t)t * bytes);
      from += bytes;
      group += (size_t)terms * bytes;
    }
  }
}

/* Gathers rows whose elements are apart in each term, too. */
static void gather_apart(const tn__gemm_plan *p, const char *a, int64_t row, int rows, int64_t term, int64_t terms,
                         char *room)
{
  const size_t size = p->kernel->element;
  const char *from = a + (size_t)(row * p->a_row + term * p->a_col) * size;
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
}

/* Locates `rows` rows of A for `terms` terms; `end` is the end of the rows that are wanted after these. */
static void rows_in_memory(const tn__gemm_plan *p, const char *a, int64_t row, int rows, int64_t end, int64_t term,
                           int64_t terms, char *room, gathered *g, const void **at, int64_t *step)
{
  const size_t size = p->kernel->element;
  if (p->a_col == 1) {
    /* Rows that are a page apart evict each other from the L1 cache. */
    bool apart = rows > 6 && (size_t)p->a_row * size % 4096 == 0;
    const size_t from_row = (size_t)p->a_row * size, to_row = (size_t)(terms + PITCH) * size;
    const char *from = a + (size_t)(row * p->a_row + term) * size;
    for (int i = 0; i < rows; i++) {
      at[i] = from + (size_t)i * from_row;
      if (apart) at[i] = memcpy(room + (size_t)i * to_row, at[i], (size_t)terms * size);
    }
    *step = 1;
    return;
  }
  *step = rows;
  if (p->a_row == 1) {
    if (row < g->begin || row >= g->end) gather_adjacent(p, a, row, end, term, terms, room, g);
    room += (size_t)((row - g->begin) * terms) * size;
  } else {
    gather_apart(p, a, row, rows, term, terms, room);
  }
  for (int i = 0; i < rows; i++) at[i] = room + (size_t)i * size;
}

/* ---- a block of C ---- */

/* Where to read B, from a given column and term on. */
typedef struct source {
  const char *at;     /* the first term of the first column */
  int64_t row, panel; /* elements between terms, between panels */
  bool padded;        /* the last panel is padded with zeros */
  int64_t term;
} source;

typedef struct run {
  const tn__gemm_plan *plan;
  const char *a, *b;
  char *c;
  const tn__gemm_then *then;     /* or NULL */
  const float *scales;           /* of the columns of int8 weights, or NULL */
  char *chunk;                   /* panels of the chunk in scratch, or NULL */
  int64_t k_begin, k_end;        /* the chunk's terms; n_begin, n_end: its columns */
  int64_t n_begin, n_end;
  int64_t groups, group_block, group_blocks, column_block, column_blocks;
} run;

/* Runs a tile of any number of columns. All panels of B must be whole. */
static void run_tile(const tn__gemm_kernel *kernel, tn__gemm_tile *t)
{
  const int64_t nr = kernel->nr, all = t->columns, part = kernel->partial ? 0 : all % nr;
  const size_t size = kernel->element;
  t->columns -= part;
  if (t->columns > 0) kernel->run(t);
  t->columns = all;
  if (part == 0) return;
  /* The remaining columns go through a temporary tile. */
  _Alignas(64) char room[(MR + 1) * TN__GEMM_LINE];
  tn__gemm_tile edge = *t;
  const size_t at = (size_t)(t->column + all - part) * size, bytes = (size_t)part * size;
  edge.column = 0;
  edge.columns = nr;
  edge.b = (const char *)t->b + (size_t)((all - part) / nr * t->panel) * kernel->weight;
  for (int i = 0; i < t->rows; i++) {
    edge.c[i] = room + i * TN__GEMM_LINE;
    if (!t->first) memcpy(edge.c[i], (const char *)t->c[i] + at, bytes);
  }
  if (t->bias != NULL) edge.bias = memcpy(room + MR * TN__GEMM_LINE, (const char *)t->bias + at, bytes);
  if (t->scales != NULL) edge.scales = (const char *)t->scales + at; /* padded to whole panels */
  kernel->run(&edge);
  for (int i = 0; i < t->rows; i++) memcpy((char *)t->c[i] + at, edge.c[i], bytes);
}

/* Runs the last, incomplete panel of a B that is read in place. Reading beyond the end of a row is harmless: the excess
 * columns are discarded. Only the last rows, where this would read beyond the end of B, are copied first. */
static void edge_tile(const run *r, tn__gemm_tile *t, const source *s)
{
  const tn__gemm_plan *p = r->plan;
  const size_t size = p->kernel->element;
  const int64_t nr = p->kernel->nr, behind = p->b_row * (p->k - 1) + p->n - t->column - nr, terms = t->terms;
  const char *b = t->b;
  int64_t whole = behind < 0 ? 0 : behind / p->b_row + 1 - s->term;
  whole = whole < 0 ? 0 : least(whole, terms);
  const bool last = t->finish;
  t->terms = whole;
  t->finish = last && whole == terms;
  if (whole > 0) run_tile(p->kernel, t);
  t->finish = last;
  _Alignas(64) char line[TN__GEMM_LINE];
  const bool first = t->first, finish = t->finish;
  const void *a[MR];
  memcpy(a, t->a, sizeof a);
  t->terms = 1;
  for (int64_t k = whole; k < terms; k++) {
    memcpy(line, b + (size_t)(k * s->row) * size, (size_t)t->columns * size);
    memset(line + (size_t)t->columns * size, 0, (size_t)(nr - t->columns) * size);
    t->b = line;
    t->first = first && k == 0;
    t->finish = finish && k == terms - 1;
    for (int i = 0; i < t->rows; i++) t->a[i] = (const char *)a[i] + (size_t)(k * t->step) * size;
    run_tile(p->kernel, t);
  }
  memcpy(t->a, a, sizeof a);
  t->first = first;
  t->terms = terms;
}

/* Multiplies the tile's rows by columns [column, end) of the source. last: these are the last terms. */
static void sweep(const run *r, tn__gemm_tile *t, const source *s, int64_t column, int64_t end, bool last)
{
  const tn__gemm_kernel *kernel = r->plan->kernel;
  const int64_t nr = kernel->nr, edge = s->padded ? 0 : (end - column) % nr;
  t->finish = last && (r->then != NULL || r->scales != NULL);
  t->scales = r->scales;
  if (t->finish && r->then != NULL) {
    t->bias = r->then->bias;
    t->clamp = (uint8_t)r->then->clamp;
  }
  t->b_row = s->row;
  t->panel = s->panel;
  t->b = s->at;
  t->column = column;
  t->columns = end - column - edge;
  if (t->columns > 0) run_tile(kernel, t);
  if (edge == 0) return;
  t->b = s->at + (size_t)(t->columns / nr * s->panel) * kernel->weight;
  t->column = end - edge;
  t->columns = edge;
  edge_tile(r, t, s);
}

static void follow(const run *r, const tn__gemm_tile *t, int64_t column, int64_t end)
{
  void *c[MR];
  if (r->then == NULL || r->then->rows == NULL) return;
  for (int i = 0; i < t->rows; i++) c[i] = (char *)t->c[i] + (size_t)column * r->plan->kernel->element;
  r->then->rows(r->then, t->rows, c, column, end - column);
}

/* ---- fetching what comes next ----
 *
 * The block of B that is used is in the L2 cache. While it is, the block that comes next is fetched to it, a slice with
 * each group of rows: weights come from memory in each step. */

/* Where the panels of the next block begin, NULL if they are near or there are none. */
static const char *next_block(const run *r, const source *s, int64_t row_end, int64_t terms, int64_t column,
                              int64_t column_end)
{
  const tn__gemm_plan *p = r->plan;
  const size_t size = p->kernel->weight;
  if (!p->packed || r->chunk != NULL) return NULL;
  if (s->term + terms < p->k) return s->at + (size_t)(terms * s->row) * size;
  if (row_end < p->m) return s->term == 0 ? NULL : s->at - (size_t)(s->term * s->row) * size;
  if (column_end >= r->n_end) return NULL;
  return r->b + (size_t)((column_end - r->n_begin) / p->kernel->nr * s->panel) * size;
}

/* Sets the slice of the next block that is fetched with group `group` of `groups`. */
static void fetch_slice(tn__gemm_tile *t, const run *r, const source *s, const char *next, int64_t group,
                        int64_t groups, int64_t terms)
{
  const tn__gemm_kernel *kernel = r->plan->kernel;
  t->next = NULL;
  if (next == NULL) return;
  const int64_t line = kernel->nr * (int64_t)kernel->weight, step = (line + groups - 1) / groups;
  const int64_t begin = group * step * terms;
  if (begin < line * terms) t->next = next + begin;
  t->next_step = step;
  t->next_panel = s->panel * (int64_t)kernel->weight;
}

/* Multiplies rows, group by group, by `terms` terms and the given columns of s. */
static void sweep_rows(const run *r, int64_t row, int64_t row_end, int64_t terms, const source *s, int64_t column,
                       int64_t column_end)
{
  const tn__gemm_plan *p = r->plan;
  const size_t size = p->kernel->element;
  const bool last = s->term + terms == p->k;
  _Alignas(64) char room[TERM_BYTES * (KC + PITCH)];
  tn__gemm_tile t = { .outer = 1, .inner = 1 };
  const char *next = next_block(r, s, row_end, terms, column, column_end);
  const int64_t groups = tn__gemm_groups(p, row_end - row);
  gathered g = { 0, 0 };
  for (int64_t group = 0; row < row_end; row += t.rows, group++) {
    fetch_slice(&t, r, s, next, group, groups, terms);
    t.rows = tn__gemm_group_rows(p, row_end - row);
    for (int i = 0; i < t.rows; i++) t.c[i] = r->c + (size_t)((row + i) * p->c_row) * size;
    source from = *s;
    for (int64_t done = 0; done < terms; done += t.terms) {
      from.term = s->term + done;
      from.at = s->at + (size_t)(done * s->row) * p->kernel->weight;
      t.terms = terms; /* of rows in memory */
      if (p->rows != NULL) t.terms = p->rows(r->a, row, t.rows, from.term, terms - done, room, t.a, &t.step);
      else rows_in_memory(p, r->a, row, t.rows, row_end, from.term, terms, room, &g, t.a, &t.step);
      t.first = from.term == 0;
      sweep(r, &t, &from, column, column_end, from.term + t.terms == p->k);
    }
    if (last) follow(r, &t, column, column_end);
  }
}

/* The same for groups of windows: all terms at once. */
static void sweep_windows(const run *r, int64_t group, int64_t group_end, const source *s, int64_t column,
                          int64_t column_end)
{
  const tn__gemm_plan *p = r->plan;
  const int64_t group_ns = p->k * (column_end - column) / 4;
  tn__poll poll = tn__poll_here();
  const size_t size = p->kernel->element;
  tn__gemm_window w = { .rows = 0 };
  tn__gemm_tile t = { .first = true, .step = 1 };
  const char *next = next_block(r, s, p->m, p->k, column, column_end);
  for (; group < group_end && !tn__poll_over(&poll, group_ns); group++) {
    p->windows(r->a, group, &w);
    fetch_slice(&t, r, s, next, group, r->groups, p->k);
    t.rows = w.rows;
    t.outer = w.outer;
    t.inner = w.inner;
    t.terms = w.terms;
    t.a_outer = w.a_outer;
    t.a_inner = w.a_inner;
    t.b_outer = w.b_outer;
    t.b_inner = w.b_inner;
    for (int i = 0; i < w.rows; i++) {
      t.a[i] = w.a[i];
      t.c[i] = r->c + (size_t)(w.c[i] * p->c_row) * size;
    }
    source from = *s;
    from.at += (size_t)(w.b * s->row) * p->kernel->weight;
    sweep(r, &t, &from, column, column_end, true);
    follow(r, &t, column, column_end);
  }
}

/* The source for terms from `term` and columns from `column` on: the chunk, the packed copy, or B itself. */
static source source_of(const run *r, int64_t term, int64_t column)
{
  const tn__gemm_plan *p = r->plan;
  size_t size = p->kernel->weight;
  int64_t nr = p->kernel->nr;
  if (r->chunk != NULL) {
    int64_t panel = (r->k_end - r->k_begin) * nr, first = (column - r->n_begin) / nr;
    return (source){ r->chunk + (size_t)(first * panel + (term - r->k_begin) * nr) * size, nr, panel, true, term };
  }
  if (p->packed) {
    int64_t panel = p->k * nr;
    return (source){ r->b + (size_t)(column / nr * panel + term * nr) * size, nr, panel, true, term };
  }
  return (source){ r->b + (size_t)(term * p->b_row + column) * size, p->b_row, nr, false, term };
}

/* True for a single row by a large B, which is bound by memory: B is then read in the order in which it is stored. */
static bool by_lines(const tn__gemm_plan *p)
{
  return p->m == 1 && !p->packed && p->k_chunk == 0 && p->k * p->n > LOCAL_BYTES / 2;
}

/* The number of terms at a time. A few rows stay in the L1 cache whole; panels of reduced weights are then read from
 * one end to the other. */
static int64_t terms_at_once(const tn__gemm_plan *p)
{
  if (by_lines(p)) return FEW_TERMS;
  return p->weights != TN__GEMM_FULL && p->m <= 2 && p->rows == NULL && p->a_col == 1 ? NEAR_TERMS : KC;
}

static void run_rows(const run *r, int64_t row, int64_t row_end, int64_t column, int64_t column_end)
{
  tn__poll poll = tn__poll_here();
  int64_t some = terms_at_once(r->plan), some_ns = (row_end - row) * (column_end - column) * some / 16;
  for (int64_t term = r->k_begin; term < r->k_end && !tn__poll_over(&poll, some_ns); term += some) {
    source s = source_of(r, term, column);
    sweep_rows(r, row, row_end, least(some, r->k_end - term), &s, column, column_end);
  }
}

static void run_block(const run *r, int64_t group, int64_t group_end, int64_t column, int64_t column_end)
{
  const tn__gemm_plan *p = r->plan;
  if (p->windows == NULL) {
    run_rows(r, tn__gemm_group_begin(p, p->m, group), tn__gemm_group_begin(p, p->m, group_end), column, column_end);
    return;
  }
  source s = source_of(r, 0, column);
  sweep_windows(r, group, group_end, &s, column, column_end);
}

/* B is transposed: its panels are copied to the stack one by one. */
static void run_across(const run *r, tn_kernel_ctx *ctx)
{
  const tn__gemm_plan *p = r->plan;
  int64_t nr = p->kernel->nr, line_ns = KC * nr * (1 + p->m / 16);
  tn__poll poll = ctx != NULL ? tn__poll_of(ctx) : tn__poll_here();
  _Alignas(64) char line[KC * TN__GEMM_LINE];
  for (int64_t column = 0; column < p->n; column += nr) {
    for (int64_t term = 0; term < p->k && !tn__poll_over(&poll, line_ns); term += KC) {
      int64_t terms = least(KC, p->k - term);
      copy_panel(p, r->b, column, term, terms, line);
      source s = { line, nr, nr, true, term };
      sweep_rows(r, 0, p->m, terms, &s, column, least(p->n, column + nr));
    }
  }
}

/* ---- threads ---- */

static void block_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  for (int64_t i = begin; i < end; i++) {
    int64_t group = i % r->group_blocks * r->group_block, column = r->n_begin + i / r->group_blocks * r->column_block;
    run_block(r, group, least(r->groups, group + r->group_block), column, least(r->n_end, column + r->column_block));
  }
}

/* If there are only a few blocks, whose size is chosen for one thread's cache, the work is split into panels of columns
 * instead. Each part then reads its own part of B. */
static void panel_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  int64_t nr = r->plan->kernel->nr, first = r->n_begin + begin * nr, last = least(r->n_end, r->n_begin + end * nr);
  for (int64_t column = first; column < last; column += r->column_block)
    for (int64_t group = 0; group < r->groups; group += r->group_block)
      run_block(r, group, least(r->groups, group + r->group_block), column, least(last, column + r->column_block));
}

/* The same if B fits the L2 cache: each part reads all of B, but only its own rows of A. If the op that produced A was
 * split the same way, those rows were written by the same thread and need not be fetched from another core. */
static void row_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  for (int64_t column = r->n_begin; column < r->n_end; column += r->column_block)
    run_rows(r, begin, end, column, least(r->n_end, column + r->column_block));
}

/* True if a product of few blocks is split by rows of A rather than by panels of B, which also gathers a transposed A
 * once rather than in each part. */
static bool by_rows(const run *r)
{
  const tn__gemm_plan *p = r->plan;
  int64_t bytes = p->k * (r->n_end - r->n_begin) * (int64_t)p->kernel->weight;
  bool across = p->rows == NULL && p->a_col != 1;
  return p->windows == NULL && p->m >= ROWS_TO_CUT && (across || bytes <= NEAR_BYTES);
}

static void pack_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  int64_t nr = r->plan->kernel->nr, terms = r->k_end - r->k_begin;
  const size_t panel = (size_t)(nr * terms) * r->plan->kernel->element;
  /* Lines of B are read in the order in which they are stored, a few at a time. */
  const int64_t some = r->plan->b_col == 1 ? LINES_AT_ONCE : terms;
  for (int64_t t = 0; t < terms; t += some)
    for (int64_t i = begin; i < end; i++)
      copy_panel(r->plan, r->b, r->n_begin + i * nr, r->k_begin + t, least(some, terms - t),
                 r->chunk + (size_t)i * panel + (size_t)(t * nr) * r->plan->kernel->element);
}

static int64_t grain_of(double cost) { return cost < SERIAL_NS / 4 ? (int64_t)(SERIAL_NS / 4 / cost) + 1 : 1; }

static void run_threads(run *r, tn_kernel_ctx *ctx)
{
  const tn__gemm_plan *p = r->plan;
  int64_t nr = p->kernel->nr, width = r->n_end - r->n_begin;
  int64_t together = p->windows != NULL && p->k > KC ? p->k : KC;
  r->column_block = round_up(LOCAL_BYTES / (together * (int64_t)p->kernel->weight) + 1 - nr / 2, nr);
  if (r->column_block < nr) r->column_block = nr;
  if (r->groups == 1 && p->windows == NULL) r->column_block = round_up(width, nr); /* nothing is used twice */
  if (by_lines(p)) r->column_block = round_up(4096 / (int64_t)p->kernel->element * 4, nr);
  r->group_block = p->windows != NULL ? 8 : 24;
  r->column_blocks = (width + r->column_block - 1) / r->column_block;
  r->group_blocks = (r->groups + r->group_block - 1) / r->group_block;
  int64_t blocks = r->group_blocks * r->column_blocks;
  if (p->serial || p->cost_ns < SERIAL_NS) {
    block_part(r, 0, blocks);
    return;
  }
  int64_t panels = (width + nr - 1) / nr;
  bool few = blocks < FEW_BLOCKS && panels > blocks && !by_lines(p), rows = blocks < FEW_BLOCKS && by_rows(r);
  int64_t n = blocks, grain = 1;
  void (*part)(void *user, int64_t begin, int64_t end) = block_part;
  if (rows) n = p->m, grain = 2 * MR, part = row_part;
  else if (few) n = panels, part = panel_part;
  double cost = p->cost_ns / (double)n;
  if (grain < grain_of(cost)) grain = grain_of(cost);
  tn_parallel_for(ctx, n, grain, cost, part, r);
}

/* Copies B to scratch chunk by chunk, and multiplies by each chunk. */
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

static void run_nothing(const run *r)
{
  const tn__gemm_plan *p = r->plan;
  const source s = { r->b, 0, 0, true, 0 };
  for (int64_t i = 0; i < p->m; i++) {
    tn__gemm_tile t = { .rows = 1, .first = true, .c = { r->c + (size_t)(i * p->c_row) * p->kernel->element } };
    sweep(r, &t, &s, 0, p->n, true);
    follow(r, &t, 0, p->n);
  }
}

void tn__gemm_run_then(const tn__gemm_plan *p, tn_kernel_ctx *ctx, const void *a, const void *b, void *c,
                       void *scratch, const tn__gemm_then *then)
{
  if (p->m == 0 || p->n == 0) return;
  run r = { .plan = p, .a = a, .b = b, .c = c, .then = then, .k_end = p->k, .n_end = p->n };
  if (p->weights == TN__GEMM_INT8) r.scales = (const float *)((const char *)b + scales_at(p));
  r.groups = p->windows != NULL ? p->groups : tn__gemm_groups(p, p->m);
  if (p->k == 0)
    run_nothing(&r);
  else if (p->k_chunk > 0)
    run_chunks(&r, ctx, scratch);
  else if (p->packed || p->b_col == 1)
    run_threads(&r, ctx);
  else
    run_across(&r, ctx);
}

void tn__gemm_run(const tn__gemm_plan *p, tn_kernel_ctx *ctx, const void *a, const void *b, void *c, void *scratch)
{
  tn__gemm_run_then(p, ctx, a, b, c, scratch, NULL);
}
