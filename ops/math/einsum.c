/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: sums of products given by an equation.
 *
 * Indices that occur in a single operand only are summed first. With two operands, every other index is of one of
 * four kinds: BATCH occurs in both operands and the output, ROW in A and the output, COLUMN in B and the output,
 * TERM in both operands only. If the indices of each kind can be traversed with a single step, ops/kernel/product
 * multiplies the operands in place; otherwise they are rearranged first. The same applies to the output. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/product/pack_right.h>
#include <ops/kernel/product/product_loops.h>
#include <ops/kernel/reduce/reduce_plan.h>
#include <ops/math/equation.h>
#include <ops/math/index_group.h>
#include <string.h>

/* ---- shapes ---- */

static tn_status infer_einsum(tn_infer_ctx *ctx, tn_error *err)
{
  tn__equation e;
  tn__indices indices;
  tn__shape in[2], out;
  tn_status st = tn__equation_read(tn_infer_operation(ctx), &e, err);
  if (st != TN_OK) return st;
  for (int32_t t = 0; t < e.n_inputs; t++) tn__infer_get(ctx, (size_t)t, &in[t]);
  st = tn__equation_resolve(&e, in, &indices, &out, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &out, err);
}

/* ---- plans ---- */

enum { A, B, OUT };
enum { BATCH, ROW, COLUMN, TERM, KINDS };

typedef tn__index_group kind; /* indices of one kind */

/* Steps applied to an operand before the product. Each step is optional and reads the result of the step before it. */
typedef struct operand_plan {
  bool gathers, widens, orders;
  tn__strided gather; /* collects diagonals before they are summed */
  tn__reduce_plan *sums;
  tn__strided order;
  int64_t count; /* elements after the sums */
  size_t at_gather, at_sums, at_wide, at_order; /* offsets in scratch */
} operand_plan;

typedef struct einsum_plan {
  bool zero;             /* some index has size 0 */
  bool lines, dots;      /* products of vectors: by lines of the batch, or each one as a dot product */
  bool clears, arranges; /* steps on the output: zeroing it, rearranging the product into it */
  operand_plan in[2];
  int32_t first;         /* the operand on the left of the matrix product */
  tn__gemm_plan gemm;
  const void *packed;    /* the constant right operand in panels, or NULL */
  int64_t batch;
  tn__index_group batches; /* merged to as few indices as possible; steps of left, right and output */
  int64_t line_steps[2]; /* distance between terms, by operand */
  tn__strided arrange;
  int64_t count;         /* elements of the product */
  size_t at_gemm, at_product, at_narrow;
} einsum_plan;

typedef struct einsum_state {
  tn__equation equation;
  tn_dtype dtype, wide;
  tn__gemm_type type;
  tn__gemm_weights weights; /* of a constant right operand */
} einsum_state;

static tn_status einsum_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  einsum_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "einsum", sizeof *s);
  s->dtype = tn_operation_output_dtype(op, 0);
  s->wide = tn__wide_dtype(s->dtype);
  s->weights = tn__weights_of(op);
  tn_status st = tn__equation_read(op, &s->equation, err);
  if (st == TN_OK && !tn__gemm_type_of(s->wide, &s->type)) st = tn__no_kernel(err, op, s->dtype);
  if (st == TN_OK)
    *state = s;
  else
    tn__free(s, sizeof *s);
  return st;
}

static void einsum_destroy(void *state) { tn__free(state, sizeof(einsum_state)); }

static void einsum_destroy_plan(void *plan)
{
  einsum_plan *p = plan;
  tn__reduce_plan_destroy(p->in[A].sums);
  tn__reduce_plan_destroy(p->in[B].sums);
  tn__free(p, sizeof *p);
}

static size_t take(size_t *scratch, int64_t count, tn_dtype dtype)
{
  size_t at = *scratch;
  *scratch += tn__round_up((size_t)count * tn_dtype_size(dtype), TN_ALIGN);
  return at;
}

/* ---- sums over one operand ---- */

static bool goes_alone(const tn__index *index, int t) { return index->where == 1 << t; }

/* Plans the gathering of operand t's diagonals into a dense copy, which has the indices of `list`. Returns its element
 * count. */
static int64_t plan_gather(operand_plan *o, tn__indices *x, int t, const int16_t *list, int32_t n, tn_dtype dtype)
{
  int64_t count = 1;
  for (int32_t i = 0; i < n; i++) count *= x->at[list[i]].size;
  o->gathers = true;
  tn__strided_init(&o->gather, dtype);
  int64_t to = count;
  for (int32_t i = 0; i < n; i++) {
    tn__index *index = &x->at[list[i]];
    to /= index->size;
    tn__strided_add(&o->gather, index->size, index->steps[t], to);
  }
  tn__strided_plan(&o->gather);
  return count;
}

/* Plans the sums over indices that occur only in operand t. Afterwards its steps are those of the remaining indices. */
static tn_status plan_sums(einsum_plan *p, tn__indices *x, int t, tn_dtype dtype, size_t *scratch, tn_error *err)
{
  operand_plan *o = &p->in[t];
  int16_t list[TN_MAX_RANK];
  int64_t sizes[TN_MAX_RANK];
  bool gone[TN_MAX_RANK], any = false;
  int32_t n = tn__indices_list(x, t, list);
  for (int32_t i = 0; i < n; i++) {
    sizes[i] = x->at[list[i]].size;
    gone[i] = goes_alone(&x->at[list[i]], t);
    any |= gone[i];
  }
  if (!any) return TN_OK;
  if (x->repeated[t]) o->at_gather = take(scratch, plan_gather(o, x, t, list, n, dtype), dtype);
  o->sums = tn__reduce_plan_create(tn__reduce_loops_find(TN__REDUCE_SUM, dtype), sizes, n, gone);
  if (o->sums == NULL) return tn__no_memory(err, "the plan of a sum", sizeof *o->sums);
  int64_t step = 1;
  for (int32_t i = n - 1; i >= 0; i--) {
    x->at[list[i]].steps[t] = step;
    if (gone[i])
      x->at[list[i]].where = 0;
    else
      step *= sizes[i];
  }
  o->at_sums = take(scratch, step, dtype);
  o->count = step;
  return TN_OK;
}

/* ---- kinds ---- */

static int kind_in_output(const tn__index *index)
{
  bool a = (index->where & TN__IN_A) != 0, b = (index->where & TN__IN_B) != 0;
  if (a && b) return BATCH;
  return a ? ROW : COLUMN;
}

/* Sorts the indices into kinds: indices of the output in the output's order, terms in A's order. */
static void sort_kinds(const tn__indices *x, kind *kinds)
{
  int16_t list[TN_MAX_RANK];
  for (int i = 0; i < KINDS; i++) kinds[i].n = 0, kinds[i].count = 1;
  int32_t n = tn__indices_list(x, OUT, list);
  for (int32_t i = 0; i < n; i++) {
    const tn__index *index = &x->at[list[i]];
    tn__group_add(&kinds[kind_in_output(index)], index);
  }
  n = tn__indices_list(x, A, list);
  for (int32_t i = 0; i < n; i++)
    if (x->at[list[i]].where == (TN__IN_A | TN__IN_B)) tn__group_add(&kinds[TERM], &x->at[list[i]]);
}

/* Plans a copy of operand t in which its three kinds of indices are in the given order. */
static void plan_order(operand_plan *o, kind *kinds, int t, const int order[3], tn_dtype wide, size_t *scratch)
{
  int64_t to[3], step = 1, size = 1;
  o->orders = true;
  tn__strided_init(&o->order, wide);
  for (int i = 2; i >= 0; i--) {
    to[i] = step;
    step *= kinds[order[i]].count;
  }
  for (int i = 0; i < 3; i++) {
    kind *k = &kinds[order[i]];
    int64_t at = to[i] * k->count;
    for (int32_t j = 0; j < k->n; j++) {
      size = k->at[j].size;
      at /= size;
      tn__strided_add(&o->order, size, k->at[j].steps[t], at);
    }
    tn__group_set_steps(k, t, to[i]);
  }
  tn__strided_plan(&o->order);
  o->at_order = take(scratch, step, wide);
}

/* ---- the product ---- */

/* True for products of vectors, one per batch position, that are best computed line by line because batch positions are
 * adjacent in memory. */
static bool goes_by_lines(const kind *kinds)
{
  const kind *batch = &kinds[BATCH];
  if (kinds[ROW].count != 1 || kinds[COLUMN].count != 1 || batch->n == 0) return false;
  const int64_t *last = batch->at[batch->n - 1].steps;
  return kinds[TERM].count == 1 || last[A] == 1 || last[B] == 1;
}

static void plan_lines(einsum_plan *p, kind *kinds, tn_dtype wide, size_t *scratch)
{
  static const int order[3] = { TERM, BATCH, ROW };
  p->batch = kinds[BATCH].count;
  p->gemm.k = kinds[TERM].count;
  for (int t = A; t <= B; t++) {
    int64_t step;
    bool dense = tn__group_is_one(&kinds[BATCH], t, &step) && step == 1;
    if (!tn__group_is_one(&kinds[TERM], t, &step) || !dense) plan_order(&p->in[t], kinds, t, order, wide, scratch);
    tn__group_is_one(&kinds[TERM], t, &p->line_steps[t]);
  }
}

/* True for a matrix and a vector, or two vectors, with adjacent terms: each output element is then a dot product. */
static bool goes_by_dots(const kind *kinds)
{
  bool row = kinds[ROW].count == 1, column = kinds[COLUMN].count == 1;
  int64_t step;
  if (!(row || column) || kinds[TERM].count == 1) return false;
  return (row && column) || (tn__group_is_one(&kinds[TERM], column ? A : B, &step) && step == 1);
}

static void set_batches(einsum_plan *p, const kind *batch, const int which[3])
{
  tn__index_group *to = &p->batches;
  p->batch = to->count = batch->count;
  to->n = 0;
  for (int32_t i = 0; i < batch->n; i++) {
    int64_t size = batch->at[i].size, steps[3];
    bool same = to->n > 0;
    for (int t = 0; t < 3; t++) steps[t] = batch->at[i].steps[which[t]];
    for (int t = 0; t < 3 && same; t++) same = to->at[to->n - 1].steps[t] == steps[t] * size;
    int32_t at = same ? to->n - 1 : to->n++;
    to->at[at].size = same ? to->at[at].size * size : size;
    memcpy(to->at[at].steps, steps, sizeof steps);
  }
}

static void plan_dots(einsum_plan *p, kind *kinds, tn_dtype wide, size_t *scratch)
{
  p->gemm.k = kinds[TERM].count;
  for (int t = A; t <= B; t++) {
    int64_t step;
    if (tn__group_is_one(&kinds[TERM], t, &step) && step == 1) continue;
    plan_order(&p->in[t], kinds, t, (const int[]){ BATCH, t == A ? ROW : COLUMN, TERM }, wide, scratch);
  }
  kind *batch = &kinds[BATCH], *rows = &kinds[kinds[COLUMN].count == 1 ? ROW : COLUMN];
  memcpy(&batch->at[batch->n], rows->at, (size_t)rows->n * sizeof rows->at[0]);
  batch->n += rows->n;
  batch->count *= rows->count;
  set_batches(p, batch, (const int[]){ A, B, OUT });
}

/* Plans the matrix product. The left operand is the one whose rows are the rows of the output. */
static void plan_gemm(einsum_plan *p, kind *kinds, tn__gemm_type type, tn_dtype wide, size_t *scratch)
{
  tn__gemm_plan *g = &p->gemm;
  int left = p->first, right = left == A ? B : A, row = left == A ? ROW : COLUMN, column = left == A ? COLUMN : ROW;
  const int left_order[3] = { BATCH, row, TERM }, right_order[3] = { BATCH, TERM, column };
  if (!tn__group_is_one(&kinds[row], left, &g->a_row) || !tn__group_is_one(&kinds[TERM], left, &g->a_col))
    plan_order(&p->in[left], kinds, left, left_order, wide, scratch);
  if (!tn__group_is_one(&kinds[TERM], right, &g->b_row) || !tn__group_is_one(&kinds[column], right, &g->b_col))
    plan_order(&p->in[right], kinds, right, right_order, wide, scratch);
  tn__group_is_one(&kinds[row], left, &g->a_row);
  tn__group_is_one(&kinds[TERM], left, &g->a_col);
  tn__group_is_one(&kinds[TERM], right, &g->b_row);
  tn__group_is_one(&kinds[column], right, &g->b_col);
  g->type = type;
  g->m = kinds[row].count;
  g->k = kinds[TERM].count;
  g->n = kinds[column].count;
  tn__group_is_one(&kinds[row], OUT, &g->c_row);
  set_batches(p, &kinds[BATCH], (const int[]){ left, right, OUT });
  g->serial = p->batch > 1 && (double)g->m * (double)g->n * (double)g->k < 1e6;
}

/* ---- the output ---- */

/* Plans the copy to the output from elements that have the steps of operand t. p->arranges is false if the order is
 * already that of the output. */
static void plan_arrange(einsum_plan *p, const tn__indices *x, int t, tn_dtype dtype)
{
  int16_t list[TN_MAX_RANK];
  int32_t n = tn__indices_list(x, OUT, list);
  tn__strided_init(&p->arrange, dtype);
  /* The step of a repeated index is the sum of its steps, so later indices may have longer steps: sort by step. */
  for (int32_t i = 1; i < n; i++)
    for (int32_t j = i; j > 0 && x->at[list[j]].steps[OUT] > x->at[list[j - 1]].steps[OUT]; j--) {
      int16_t other = list[j];
      list[j] = list[j - 1];
      list[j - 1] = other;
    }
  for (int32_t i = 0; i < n; i++) {
    const tn__index *index = &x->at[list[i]];
    tn__strided_add(&p->arrange, index->size, index->steps[t], index->steps[OUT]);
  }
  tn__strided_plan(&p->arrange);
  p->clears = x->repeated[OUT];
  p->arranges = p->clears || !tn__strided_is_flat(&p->arrange);
}

/* Sets steps[A] of the output's indices to their steps in the product, which stores the kinds in the given order. */
static void set_product_steps(tn__indices *x, kind *kinds, const int order[3])
{
  int16_t list[TN_MAX_RANK];
  int32_t n = tn__indices_list(x, OUT, list);
  int64_t step = 1;
  for (int i = 2; i >= 0; i--) step = tn__group_set_steps(&kinds[order[i]], OUT, step);
  int32_t next[KINDS] = { 0 };
  for (int32_t i = 0; i < n; i++) { /* same order as in sort_kinds */
    tn__index *index = &x->at[list[i]];
    int which = kind_in_output(index);
    index->steps[A] = kinds[which].at[next[which]++].steps[OUT];
  }
}

/* Decides how the product is stored in the output, and which operand is the left one. The product can be written
 * directly to the output if its columns are adjacent there. */
static void plan_output(einsum_plan *p, tn__indices *x, kind *kinds, const einsum_state *s)
{
  int64_t row, column;
  bool whole = tn__group_is_one(&kinds[ROW], OUT, &row);
  whole = tn__group_is_one(&kinds[COLUMN], OUT, &column) && whole && !x->repeated[OUT] && s->dtype == s->wide;
  /* The product is computed in vectors of columns, so a single column is better treated as a row. */
  p->first = !p->dots && kinds[COLUMN].count == 1 && kinds[ROW].count > 1 ? B : A;
  if (whole && kinds[ROW].count > 1 && kinds[COLUMN].count > 1 && column != 1 && row == 1) p->first = B;
  bool dense = p->first == A ? kinds[COLUMN].count == 1 || column == 1 : kinds[ROW].count == 1 || row == 1;
  int64_t batch;
  if (p->lines) dense = tn__group_is_one(&kinds[BATCH], OUT, &batch) && batch == 1;
  if (p->dots ? !x->repeated[OUT] && s->dtype == s->wide : whole && dense) return;
  const int order[3] = { BATCH, p->first == A ? ROW : COLUMN, p->first == A ? COLUMN : ROW };
  set_product_steps(x, kinds, order);
  plan_arrange(p, x, A, s->dtype);
}

static void plan_product(einsum_plan *p, tn__indices *x, const einsum_state *s, size_t *scratch)
{
  kind kinds[KINDS];
  sort_kinds(x, kinds);
  p->lines = goes_by_lines(kinds);
  /* A row has the same bits as one of many rows, which needs the same weights. */
  bool reduced = s->weights != TN__GEMM_FULL && kinds[COLUMN].count > 1;
  p->dots = !p->lines && !reduced && goes_by_dots(kinds);
  p->count = kinds[BATCH].count * kinds[ROW].count * kinds[COLUMN].count;
  plan_output(p, x, kinds, s);
  if (p->lines)
    plan_lines(p, kinds, s->wide, scratch);
  else if (p->dots)
    plan_dots(p, kinds, s->wide, scratch);
  else
    plan_gemm(p, kinds, s->type, s->wide, scratch);
  if (s->dtype != s->wide || p->arranges) p->at_product = take(scratch, p->count, s->wide);
  if (s->dtype != s->wide && p->arranges) p->at_narrow = take(scratch, p->count, s->dtype);
}

/* Chooses the product's kernel. A constant right operand is packed once if it needs no other step. */
static tn_status choose_product(tn_prepare_ctx *ctx, einsum_plan *p, size_t *scratch, tn_error *err)
{
  const einsum_state *s = ctx->state;
  const operand_plan *o = &p->in[B];
  tn_status st = TN_OK;
  if (p->lines || p->dots) return TN_OK;
  if (p->first == A && p->batch == 1 && !o->gathers && o->sums == NULL && !o->widens && !o->orders)
    st = tn__pack_right(ctx, &p->gemm, s->weights, &p->packed, err);
  else
    tn__gemm_plan_choose(&p->gemm);
  p->at_gemm = *scratch;
  *scratch += tn__round_up(p->gemm.scratch, TN_ALIGN);
  return st;
}

/* Plans an equation with one operand: sums, then reordering of its indices. */
static tn_status plan_single(tn_prepare_ctx *ctx, einsum_plan *p, const tn__indices *x, tn_error *err)
{
  plan_arrange(p, x, A, ctx->inputs[0].dtype);
  return p->arranges || p->in[A].sums != NULL ? TN_OK : tn_prepare_view(ctx, 0, 0, err);
}

static double cost_of(const einsum_plan *p, const tn_prepare_ctx *ctx)
{
  double cost = 100;
  for (uint32_t i = 0; i < ctx->n_inputs; i++) cost += (double)ctx->inputs[i].count * (p->in[i].orders ? 1.0 : 0.3);
  if (p->lines || p->dots) return cost + (double)p->batch * (double)p->gemm.k * 0.5;
  return cost + (ctx->n_inputs > 1 ? p->gemm.cost_ns * (double)p->batch : 0);
}

/* Plans all steps. Only for shapes that have elements and terms. */
static tn_status plan_all(tn_prepare_ctx *ctx, einsum_plan *p, tn__indices *x, tn_error *err)
{
  const einsum_state *s = ctx->state;
  size_t scratch = 0, most = 0;
  for (uint32_t t = 0; t < ctx->n_inputs; t++) {
    operand_plan *o = &p->in[t];
    o->count = ctx->inputs[t].count;
    tn_status st = plan_sums(p, x, (int)t, s->dtype, &scratch, err);
    if (st != TN_OK) return st;
    o->widens = ctx->n_inputs > 1 && s->dtype != s->wide;
    if (o->widens) o->at_wide = take(&scratch, o->count, s->wide);
    size_t sums = o->sums != NULL ? tn__reduce_plan_scratch(o->sums) : 0;
    if (sums > most) most = sums;
  }
  if (ctx->n_inputs > 1) {
    plan_product(p, x, s, &scratch);
    tn_status st = choose_product(ctx, p, &scratch, err);
    if (st != TN_OK) return st;
  }
  /* The scratch memory of the sums comes first, so all other offsets are shifted. */
  ctx->scratch_bytes = scratch + tn__round_up(most, TN_ALIGN);
  size_t shift = ctx->scratch_bytes - scratch;
  for (int t = A; t <= B; t++) {
    operand_plan *o = &p->in[t];
    o->at_gather += shift, o->at_sums += shift, o->at_wide += shift, o->at_order += shift;
  }
  p->at_gemm += shift, p->at_product += shift, p->at_narrow += shift;
  ctx->cost_ns = cost_of(p, ctx);
  return ctx->n_inputs > 1 ? TN_OK : plan_single(ctx, p, x, err);
}

static tn_status einsum_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const einsum_state *s = ctx->state;
  tn__indices x;
  tn__shape in[2], out;
  int64_t count;
  for (uint32_t t = 0; t < ctx->n_inputs; t++) tn__shape_set(&in[t], ctx->inputs[t].dims, ctx->inputs[t].rank);
  tn_status st = tn__equation_resolve(&s->equation, in, &x, &out, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st == TN_OK) st = tn_shape_elements(out.dims, out.rank, &count, err);
  if (st != TN_OK) return st;
  einsum_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "the plan of an einsum", sizeof *p);
  ctx->shape_state = p;
  p->gemm.reproducible = ctx->reproducible;
  for (int32_t i = 0; i < x.n; i++) p->zero |= x.at[i].size == 0;
  if (p->zero || count == 0) return TN_OK;
  tn__indices_steps(&x, in, &out);
  return plan_all(ctx, p, &x, err);
}

/* ---- computing ---- */

/* Runs the steps of operand t and returns the result. If the sums are the last step, `last` is where to store them;
 * else it is NULL. */
static const char *make_operand(const einsum_plan *p, const einsum_state *s, tn_kernel_ctx *ctx, int t, char *last)
{
  const operand_plan *o = &p->in[t];
  char *scratch = ctx->scratch;
  const char *from = ctx->inputs[t]->data;
  if (o->gathers) {
    tn__strided_run(&o->gather, ctx, from, scratch + o->at_gather);
    from = scratch + o->at_gather;
  }
  if (o->sums != NULL) {
    char *to = last != NULL ? last : scratch + o->at_sums;
    tn__reduce_plan_run(o->sums, ctx, from, to);
    from = to;
  }
  if (o->widens) {
    tn__widen_all(ctx, s->dtype, from, s->wide, scratch + o->at_wide, o->count);
    from = scratch + o->at_wide;
  }
  if (o->orders) {
    tn__strided_run(&o->order, ctx, from, scratch + o->at_order);
    from = scratch + o->at_order;
  }
  return from;
}

typedef struct product_run {
  const einsum_plan *p;
  const char *in[2]; /* left and right; A and B for lines */
  char *out;
  size_t element;
  const tn__product_loops *loops;
} product_run;

/* Batch positions [begin, end), in pieces that stay in the L1 cache while all terms are added. */
static void run_lines(void *user, int64_t begin, int64_t end)
{
  const product_run *r = user;
  const einsum_plan *p = r->p;
  int64_t element = (int64_t)r->element;
  tn__poll poll = tn__poll_here();
  for (int64_t at = begin; at < end; at += 1024) {
    int64_t n = end - at < 1024 ? end - at : 1024;
    for (int64_t k = 0; k < p->gemm.k && !tn__poll_over(&poll, n); k++)
      r->loops->line(r->out + at * element, r->in[0] + (k * p->line_steps[0] + at) * element,
              r->in[1] + (k * p->line_steps[1] + at) * element, n, k == 0);
  }
}

/* Offsets of the three matrices of a batch, in elements. */
static void batch_offsets(const einsum_plan *p, int64_t number, int64_t *offsets)
{
  offsets[0] = offsets[1] = offsets[2] = 0;
  for (int32_t i = p->batches.n - 1; i >= 0; i--) {
    int64_t index = number % p->batches.at[i].size;
    number /= p->batches.at[i].size;
    for (int t = 0; t < 3; t++) offsets[t] += index * p->batches.at[i].steps[t];
  }
}

static void run_batch(const product_run *r, tn_kernel_ctx *ctx, int64_t number, void *scratch)
{
  int64_t offsets[3], element = (int64_t)r->element;
  batch_offsets(r->p, number, offsets);
  tn__gemm_run(&r->p->gemm, ctx, r->in[0] + offsets[0] * element, r->in[1] + offsets[1] * element,
               r->out + offsets[2] * element, scratch);
}

static void run_dots(void *user, int64_t begin, int64_t end)
{
  const product_run *r = user;
  int64_t offsets[3], element = (int64_t)r->element;
  for (int64_t i = begin; i < end; i++) {
    batch_offsets(r->p, i, offsets);
    r->loops->dot(r->out + offsets[2] * element, r->in[0] + offsets[0] * element, r->in[1] + offsets[1] * element,
                  r->p->gemm.k);
  }
}

static void run_batches(void *user, int64_t begin, int64_t end)
{
  for (int64_t i = begin; i < end; i++) run_batch(user, NULL, i, NULL);
}

static void run_product(product_run *r, tn_kernel_ctx *ctx, tn__gemm_type type)
{
  const einsum_plan *p = r->p;
  void (*run)(void *user, int64_t begin, int64_t end) = run_batches;
  double cost = p->gemm.cost_ns;
  if (p->lines) run = run_lines, cost = (double)p->gemm.k;
  else if (p->dots) run = run_dots, cost = 5 + 0.2 * (double)p->gemm.k;
  r->loops = tn__product_loops_of(type);
  if (!p->lines && !p->dots && !p->gemm.serial) {
    tn__poll poll = tn__poll_of(ctx);
    for (int64_t i = 0; i < p->batch && !tn__poll_over(&poll, (int64_t)cost); i++)
      run_batch(r, ctx, i, (char *)ctx->scratch + p->at_gemm);
    return;
  }
  int64_t grain = cost < 20000 ? (int64_t)(20000 / cost) + 1 : 1;
  tn_parallel_for(ctx, p->batch, grain, cost, run, r);
}

/* Copies elements of the output's dtype from the product's order into the output. */
static void arrange(const einsum_plan *p, tn_kernel_ctx *ctx, const char *from)
{
  tn_view *out = ctx->outputs[0];
  if (p->clears) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  tn__strided_run(&p->arrange, ctx, from, out->data);
}

static tn_status einsum_compute(tn_kernel_ctx *ctx)
{
  const einsum_state *s = ctx->state;
  const einsum_plan *p = ctx->shape_state;
  tn_view *out = ctx->outputs[0];
  char *scratch = ctx->scratch;
  if (out->count == 0) return TN_OK;
  if (p->zero) {
    memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
    return TN_OK;
  }
  if (ctx->n_inputs == 1) {
    const char *from = make_operand(p, s, ctx, A, p->arranges ? NULL : out->data);
    if (p->arranges) arrange(p, ctx, from);
    return TN_OK;
  }
  bool narrows = s->dtype != s->wide;
  const char *a = make_operand(p, s, ctx, A, NULL), *b = make_operand(p, s, ctx, B, NULL);
  product_run r = { .p = p, .in = { a, b }, .element = tn_dtype_size(s->wide) };
  if (!p->lines && p->first == B) r.in[0] = b, r.in[1] = a;
  if (p->packed != NULL) r.in[1] = p->packed; /* there is one batch, at offset 0 */
  r.out = narrows || p->arranges ? scratch + p->at_product : out->data;
  run_product(&r, ctx, s->type);
  char *product = r.out;
  if (narrows) {
    product = p->arranges ? scratch + p->at_narrow : out->data;
    tn__narrow_all(ctx, s->dtype, r.out, product, p->count);
  }
  if (p->arranges) arrange(p, ctx, product);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Einsum", .inputs = "inputs: N * T", .outputs = "output: T",
    .attrs = "equation: string; N: int >= 1; T: type", .infer = infer_einsum,
    .summary = "tensor contraction by the Einstein summation convention" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "_TnReducedEinsum", .inputs = "inputs: N * T", .outputs = "output: T",
    .attrs = "equation: string; N: int >= 1; T: {float}; W: {bfloat16, int8}", .infer = infer_einsum,
    .summary = "Einsum with a constant second operand that is kept in type W" },
};

#define EINSUM_KERNEL(which, set, title)                                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = set, .name = title, .rank = TN_RANK_C, \
    .create = einsum_create, .destroy = einsum_destroy, .prepare = einsum_prepare,                                \
    .destroy_shape_state = einsum_destroy_plan, .compute = einsum_compute }

static const tn_kernel_def kernels[] = {
  EINSUM_KERNEL("Einsum", "T=bfloat16|half|float|double|int32|int64|complex64|complex128", "einsum_cpu"),
  EINSUM_KERNEL("_TnReducedEinsum", "T=float,W=bfloat16", "einsum_bf16_weights_cpu"),
  EINSUM_KERNEL("_TnReducedEinsum", "T=float,W=int8", "einsum_int8_weights_cpu"),
};

TN_OP_FAMILY(einsum)
