/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of all optimisers: converts scalars to constants, locks the variables, and updates
 * their elements in one pass. */
#include <ops/state/variable/optimiser.h>

#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/indices.h>
#include <ops/state/variable/variable.h>
#include <ops/kernel/elements/widen.h>
#include <string.h>

#define WIDEST 16      /* bytes of an element */
#define BLOCK 256      /* elements gathered, or converted to float, at a time */
#define SHORT_ROW 16   /* rows with fewer elements are gathered */
#define SEEN 8192      /* bits of the filter that detects repeated rows */
#define MOST_SHARES 16 /* maximum shares of the rows of a sparse gradient: a power of two */

/* n_inputs counts all inputs except the indices. */
typedef struct training_state {
  const tn__training_row *row;
  const tn__training_rule *rule;
  tn_dtype dtype;
  bool sparse, by_reference, flag;
  uint32_t grad, n_scalars;
} training_state;

/* The input number of scalar j. */
static uint32_t scalar_input(const training_state *s, uint32_t j)
{
  if (j < s->row->n_before) return s->row->n_slots + j;
  return s->grad + (s->sparse ? 2 : 1) + j - s->row->n_before;
}

tn_status tn__training_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn__training_form form = tn__training_form_of(tn_operation_type(op));
  training_state s = { .row = form.row, .sparse = form.sparse, .by_reference = form.by_reference };
  s.dtype = tn__attr_type(op, "T");
  if (s.row == NULL) return tn__no_kernel(err, op, s.dtype);
  s.flag = s.row->flag != NULL && tn__attr_bool(op, s.row->flag, s.row->flag_default);
  s.rule = tn__training_rule_of(s.row, s.sparse, s.flag, s.dtype);
  s.grad = s.row->n_slots + s.row->n_before;
  s.n_scalars = (uint32_t)tn_operation_n_inputs(op) - s.row->n_slots - (s.sparse ? 2 : 1);
  if (s.rule == NULL || s.n_scalars > TN__TRAINING_SCALARS) return tn__no_kernel(err, op, s.dtype);
  training_state *made = tn__alloc(sizeof *made);
  if (made == NULL) return tn__no_memory(err, "state of an optimiser", sizeof *made);
  *made = s;
  *state = made;
  return TN_OK;
}

void tn__training_destroy(void *state) { tn__free(state, sizeof(training_state)); }

/* Checks what does not depend on the variables, whose shapes are known only in a step. */
tn_status tn__training_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const training_state *s = ctx->state;
  const tn_view *grad = &ctx->inputs[s->grad];
  tn_status st = TN_OK;
  for (uint32_t j = 0; j < s->n_scalars && st == TN_OK; j++) st = tn__want_rank(ctx, scalar_input(s, j), 0, err);
  if (st == TN_OK && s->sparse) {
    st = tn__want_rank(ctx, s->grad + 1, 1, err);
    if (st == TN_OK) st = tn__want_rank_at_least(ctx, s->grad, 1, err);
    if (st == TN_OK && grad->dims[0] != ctx->inputs[s->grad + 1].dims[0])
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld rows, input %u has %lld indices",
                          tn_operation_type(ctx->op), s->grad, (long long)grad->dims[0], s->grad + 1,
                          (long long)ctx->inputs[s->grad + 1].dims[0]);
  }
  ctx->cost_ns = 100 + s->row->cost_ns * (double)grad->count;
  if (st == TN_OK && s->by_reference) st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK && s->by_reference ? tn_prepare_view(ctx, 0, 0, err) : st;
}

/* ---- a step ---- */

/* size: bytes of an element. */
typedef struct training_run {
  const training_state *s;
  tn__training_fn fn;
  char *slots[TN__TRAINING_SLOTS];
  const char *grad;
  size_t size;
  _Alignas(16) char constants[TN__TRAINING_CONSTANTS * WIDEST];
  const tn_view *indices; /* from here on for sparse gradients */
  int64_t inner;          /* elements of a row */
  int64_t shares;
} training_run;

/* A real scalar. */
static double number_of(const tn_view *v)
{
  switch (v->dtype) {
  case TN_HALF: return (double)tn__half_to_float(*(const uint16_t *)v->data);
  case TN_BFLOAT16: return (double)tn__bfloat16_to_float(*(const uint16_t *)v->data);
  case TN_FLOAT: return (double)*(const float *)v->data;
  default: return *(const double *)v->data;
  }
}

/* Whether the value of a scalar is allowed. */
static bool within(char limit, bool flag, double value)
{
  switch (limit) {
  case '/': return flag ? value >= 0 : value > 0;
  case '+': return value > 0;
  case '0': return value >= 0;
  case '-': return value <= 0;
  default: return true;
  }
}

static tn_status check_limit(const training_state *s, tn_kernel_ctx *ctx, uint32_t j)
{
  const char *limits = s->row->limits[s->sparse];
  if (limits == NULL) return TN_OK;
  double value = number_of(ctx->inputs[scalar_input(s, j)]);
  if (within(limits[j], s->flag, value)) return TN_OK;
  const char *wanted = within(limits[j], s->flag, 0) ? "at least 0" : "above 0";
  if (limits[j] == '-') wanted = "at most 0";
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u is %g, wanted a number %s", scalar_input(s, j), value,
                      wanted);
}

/* Computes the rule's constants from the scalars. The last scalar of AdagradDA is the number of the
 * step. */
static tn_status set_up(training_run *run, tn_kernel_ctx *ctx)
{
  const training_state *s = run->s;
  const void *scalars[TN__TRAINING_SCALARS];
  uint32_t n = 0;
  int64_t step = 0;
  for (uint32_t j = 0; j < s->n_scalars; j++) {
    const tn_view *in = ctx->inputs[scalar_input(s, j)];
    if (in->dtype == s->dtype) scalars[n++] = in->data;
    else step = *(const int64_t *)in->data;
    tn_status st = check_limit(s, ctx, j);
    if (st != TN_OK) return st;
  }
  memset(run->constants, 0, sizeof run->constants);
  bool slow = s->rule->setup(scalars, n, step, s->flag, run->constants);
  run->fn = slow ? s->rule->slow : s->rule->fn[tn__vectors()];
  return TN_OK;
}

/* Elements of half or bfloat16 are computed in blocks as floats. Padding in the last block is
 * computed and discarded. */
static void apply_short(const training_run *run, void *const *slots, const void *grad, int64_t n)
{
  const training_state *s = run->s;
  float wide[TN__TRAINING_SLOTS + 1][BLOCK];
  void *places[TN__TRAINING_SLOTS] = { wide[1], wide[2], wide[3], wide[4] };
  for (int64_t at = 0, k, whole; at < n; at += k) {
    k = n - at < BLOCK ? n - at : BLOCK;
    whole = (k + TN__TRAINING_SHORTS - 1) & -TN__TRAINING_SHORTS;
    for (uint32_t i = 0; i <= s->row->n_slots; i++) {
      const uint16_t *from = i == 0 ? grad : slots[i - 1];
      tn__widen(s->dtype, from + at, TN_FLOAT, wide[i], k);
      memset(wide[i] + k, 0, (size_t)(whole - k) * sizeof(float));
    }
    run->fn(places, wide[0], run->constants, whole);
    for (uint32_t i = 0; i < s->row->n_slots; i++) tn__narrow(s->dtype, places[i], (uint16_t *)slots[i] + at, k);
  }
}

static void apply(const training_run *run, void *const *slots, const void *grad, int64_t n)
{
  if (run->size == 2) apply_short(run, slots, grad, n);
  else run->fn(slots, grad, run->constants, n);
}

/* Updates n elements, starting at element `to` of the variables and `from` of the gradient. */
static void apply_at(const training_run *run, int64_t to, int64_t from, int64_t n)
{
  void *slots[TN__TRAINING_SLOTS] = { NULL };
  for (uint32_t i = 0; i < run->s->row->n_slots; i++) slots[i] = run->slots[i] + (size_t)to * run->size;
  apply(run, slots, run->grad + (size_t)from * run->size, n);
}

static void dense_part(void *user, int64_t begin, int64_t end) { apply_at(user, begin, begin, end - begin); }

/* ---- rows ---- */

/* Short rows that are updated together, without repetition. `seen` has a bit set for each row that
 * may be included. */
typedef struct row_block {
  int64_t n, most;
  int64_t rows[BLOCK], at[BLOCK]; /* row numbers in the variables and in the gradient */
  uint64_t seen[SEEN / 64];
} row_block;

static inline void copy_each(char *block, char *of, const int64_t *which, int64_t n, size_t bytes, bool back)
{
  for (int64_t i = 0; i < n; i++) {
    char *place = of + (size_t)which[i] * bytes, *row = block + (size_t)i * bytes;
    memcpy(back ? place : row, back ? row : place, bytes);
  }
}

/* Gathers rows of `bytes` bytes into a contiguous block, or scatters them back. */
static void copy_rows(char *block, char *of, const int64_t *which, int64_t n, size_t bytes, bool back)
{
  switch (bytes) {
  case 2: copy_each(block, of, which, n, 2, back); break;
  case 4: copy_each(block, of, which, n, 4, back); break;
  case 8: copy_each(block, of, which, n, 8, back); break;
  default: copy_each(block, of, which, n, bytes, back);
  }
}

static void finish_block(const training_run *run, row_block *b)
{
  _Alignas(64) char grad[BLOCK * WIDEST], slots[TN__TRAINING_SLOTS][BLOCK * WIDEST];
  void *places[TN__TRAINING_SLOTS] = { slots[0], slots[1], slots[2], slots[3] };
  size_t bytes = (size_t)run->inner * run->size;
  uint32_t n_slots = run->s->row->n_slots;
  copy_rows(grad, (char *)run->grad, b->at, b->n, bytes, false); /* only read */
  for (uint32_t k = 0; k < n_slots; k++) copy_rows(slots[k], run->slots[k], b->rows, b->n, bytes, false);
  apply(run, places, grad, b->n * run->inner);
  for (uint32_t k = 0; k < n_slots; k++) copy_rows(slots[k], run->slots[k], b->rows, b->n, bytes, true);
  b->n = 0;
  memset(b->seen, 0, sizeof b->seen);
}

static void add_row(const training_run *run, row_block *b, int64_t row, int64_t at)
{
  uint64_t hash = (uint64_t)row * UINT64_C(0x9e3779b97f4a7c15) >> 32, bit = UINT64_C(1) << (hash & 63);
  uint64_t *word = &b->seen[hash / 64 % (SEEN / 64)];
  if (b->n == b->most || (*word & bit) != 0) finish_block(run, b);
  *word |= bit;
  b->rows[b->n] = row;
  b->at[b->n++] = at;
}

/* Rows are divided into shares by the low bits of their number, so that repeated rows are updated
 * in order. */
static void sparse_part(void *user, int64_t begin, int64_t end)
{
  const training_run *run = user;
  int64_t rows[TN__INDEX_BLOCK];
  row_block block;
  bool blocks = run->inner < SHORT_ROW;
  block.n = 0;
  block.most = BLOCK / run->inner;
  if (blocks) memset(block.seen, 0, sizeof block.seen);
  for (int64_t at = 0, n; at < run->indices->count; at += n) {
    n = run->indices->count - at < TN__INDEX_BLOCK ? run->indices->count - at : TN__INDEX_BLOCK;
    tn__indices_load(run->indices, at, n, rows);
    for (int64_t i = 0; i < n; i++) {
      int64_t share = rows[i] & (run->shares - 1);
      if (share < begin || share >= end) continue;
      if (blocks) add_row(run, &block, rows[i], at + i);
      else apply_at(run, rows[i] * run->inner, (at + i) * run->inner, run->inner);
    }
  }
  if (block.n > 0) finish_block(run, &block);
}

/* ---- checks of variables and gradient ---- */

/* slot: NULL for the gradient. */
static tn_status wrong_shape(tn_kernel_ctx *ctx, const char *slot, const int64_t *dims, int32_t rank,
                             const tn__variable *v, const tn_tensor *var)
{
  char x[160], y[160];
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s%s%s has shape %s, variable '%s' has shape %s",
                      slot == NULL ? "the gradient" : "variable '", slot == NULL ? "" : slot, slot == NULL ? "" : "'",
                      tn__format_shape(x, sizeof x, dims, rank), v->name,
                      tn__format_shape(y, sizeof y, var->dims, var->rank));
}

/* Whether the shape is the same from dimension `first` on. */
static bool same_from(int32_t first, const tn_tensor *t, const int64_t *dims, int32_t rank)
{
  bool same = t->rank == rank;
  for (int32_t d = first; d < rank && same; d++) same = t->dims[d] == dims[d];
  return same;
}

static tn_status check_variables(const training_state *s, tn_kernel_ctx *ctx, tn__variable *const *vars,
                                 tn_tensor *const *tensors)
{
  const tn_tensor *var = tensors[0];
  for (uint32_t k = 0; k < s->row->n_slots; k++) {
    const tn_tensor *t = tensors[k];
    if (t->dtype != s->dtype)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "variable '%s' is %s, wanted %s", vars[k]->name,
                          tn_dtype_name(t->dtype), tn_dtype_name(s->dtype));
    if (t->data == NULL && t->bytes > 0)
      return tn_error_set(ctx->err, TN_UNIMPLEMENTED, "variable '%s' is not in host memory", vars[k]->name);
    if (!same_from(0, t, var->dims, var->rank))
      return wrong_shape(ctx, vars[k]->name, t->dims, t->rank, vars[0], var);
  }
  const tn_view *grad = ctx->inputs[s->grad];
  if (s->sparse && var->rank < 1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "variable '%s' is a scalar, wanted one with rows",
                        vars[0]->name);
  if (!same_from(s->sparse ? 1 : 0, var, grad->dims, grad->rank))
    return wrong_shape(ctx, NULL, grad->dims, grad->rank, vars[0], var);
  return TN_OK;
}

/* Computes the number of elements per row, and checks that all indices are valid rows. */
static tn_status check_rows(training_run *run, tn_kernel_ctx *ctx, const tn__variable *v, const tn_tensor *var)
{
  const training_state *s = run->s;
  run->indices = ctx->inputs[s->grad + 1];
  run->inner = 1;
  for (int32_t d = 1; d < var->rank; d++) run->inner *= var->dims[d];
  if (run->inner == 0 && s->row->inner)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "rows of variable '%s' have no elements", v->name);
  int64_t rows[TN__INDEX_BLOCK], limit = var->dims[0];
  for (int64_t at = 0, n; at < run->indices->count; at += n) {
    n = run->indices->count - at < TN__INDEX_BLOCK ? run->indices->count - at : TN__INDEX_BLOCK;
    tn__indices_load(run->indices, at, n, rows);
    for (int64_t i = 0; i < n; i++)
      if ((uint64_t)rows[i] >= (uint64_t)limit)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld of input %u is %lld, wanted one in [0, %lld)",
                            (long long)(at + i), s->grad + 1, (long long)rows[i], (long long)limit);
  }
  return TN_OK;
}

static void update(training_run *run, tn_kernel_ctx *ctx, tn_tensor *const *tensors)
{
  const training_state *s = run->s;
  int64_t n = ctx->inputs[s->grad]->count;
  double cost = s->row->cost_ns;
  if (n == 0) return;
  run->grad = ctx->inputs[s->grad]->data;
  run->size = tn_dtype_size(s->dtype);
  for (uint32_t k = 0; k < s->row->n_slots; k++) run->slots[k] = tensors[k]->data;
  run->shares = 1;
  while (s->sparse && run->shares < MOST_SHARES && n / run->shares > TN__SERIAL_ELEMENTS) run->shares *= 2;
  if (s->sparse && run->shares > 1)
    tn_parallel_for(ctx, run->shares, 1, cost * (double)(n / run->shares), sparse_part, run);
  else if (s->sparse) sparse_part(run, 0, 1);
  else if (n <= TN__SERIAL_ELEMENTS) dense_part(run, 0, n);
  else tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, cost, dense_part, run);
}

tn_status tn__training_compute(tn_kernel_ctx *ctx)
{
  static const uint32_t which[TN__TRAINING_SLOTS] = { 0, 1, 2, 3 };
  const training_state *s = ctx->state;
  training_run run = { .s = s };
  tn__variable *vars[TN__TRAINING_SLOTS];
  tn_tensor *tensors[TN__TRAINING_SLOTS];
  tn_status st = tn__variables_open(ctx, which, s->row->n_slots, vars, tensors);
  if (st != TN_OK) return st;
  st = check_variables(s, ctx, vars, tensors);
  if (st == TN_OK && s->sparse) st = check_rows(&run, ctx, vars[0], tensors[0]);
  if (st == TN_OK) st = set_up(&run, ctx);
  if (st == TN_OK) update(&run, ctx, tensors);
  tn__variables_close(vars, tensors, s->row->n_slots);
  return st;
}
