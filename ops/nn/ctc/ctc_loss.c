/* SPDX-License-Identifier: Apache-2.0 */
/* CTCLoss: the loss of connectionist temporal classification and its gradient.
 *
 * inputs are logits [time, batch, classes], of which the last class is the blank. The labels of an item are extended
 * by blanks before, between and after them. alpha[t][u] is the logarithm of the probability of all paths that end at
 * extended label u at time t, beta[t][u] that of all paths from there to the end. Everything is computed in double. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <stdatomic.h>
#include <string.h>

static tn_status loss_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  static const int32_t ranks[] = { 3, 2, 1, 1 };
  const tn_view *in = ctx->inputs;
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < 4; i++) st = tn__want_rank(ctx, i, ranks[i], err);
  if (st != TN_OK) return st;
  int64_t time = in[0].dims[0], batch = in[0].dims[1], wanted[] = { in[2].dims[0], 2 };
  if (time == 0 || batch == 0 || in[0].dims[2] == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "CTCLoss: inputs have %lld times, %lld items and %lld classes, wanted "
                        "at least 1 of each", (long long)time, (long long)batch, (long long)in[0].dims[2]);
  if (in[1].dims[0] != wanted[0] || in[1].dims[1] != 2) return tn__shape_error(err, ctx, 1, wanted, 2);
  if (in[3].dims[0] != batch) return tn__shape_error(err, ctx, 3, &batch, 1);
  st = tn_prepare_output(ctx, 0, &batch, 1, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 1, 0, err);
  ctx->cost_ns = 100 + (double)in[0].count * 30 + (double)time * (double)in[2].count * 100;
  if (st == TN_OK && !tn__size_mul((size_t)batch + 1, sizeof(int64_t), &ctx->scratch_bytes))
    st = tn__no_memory(err, "labels of items", SIZE_MAX);
  return st;
}

typedef struct loss_options {
  bool collapse, merge, ignore_longer;
} loss_options;

static tn_status loss_create(const tn_operation *op, void **state, tn_error *err)
{
  loss_options s = { .collapse = tn__attr_bool(op, "preprocess_collapse_repeated", false),
                     .merge = tn__attr_bool(op, "ctc_merge_repeated", true),
                     .ignore_longer = tn__attr_bool(op, "ignore_longer_outputs_than_inputs", false) };
  return tn__keep_state(&s, sizeof s, "options", state, err);
}

static void loss_destroy(void *state) { tn__free(state, sizeof(loss_options)); }

typedef struct loss_run {
  const loss_options *options;
  const void *logits;
  void *loss, *gradient;
  const int32_t *labels, *lengths;
  const int64_t *firsts; /* item b has the labels [firsts[b], firsts[b + 1]) */
  int64_t times, batch, classes;
  bool twice; /* double, else float */
  _Atomic bool no_memory;
} loss_run;

/* ---- checks ---- */

/* Sets firsts and checks that the indices are of a sparse matrix in order. */
static tn_status find_labels(const tn_kernel_ctx *ctx, int64_t batch, int64_t *firsts)
{
  const tn_view *indices = ctx->inputs[1];
  const int64_t *at = indices->data;
  int64_t n = indices->dims[0], b = 0;
  firsts[0] = 0;
  for (int64_t i = 0; i < n; i++, at += 2) {
    bool ordered = i == 0 || at[0] > at[-2] || (at[0] == at[-2] && at[1] > at[-1]);
    if (at[0] < 0 || at[0] >= batch || at[1] < 0 || !ordered)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "CTCLoss: index %lld of the labels is [%lld,%lld], wanted increasing ones in [0, %lld)",
                          (long long)i, (long long)at[0], (long long)at[1], (long long)batch);
    while (b < at[0]) firsts[++b] = i;
  }
  while (b < batch) firsts[++b] = n;
  return TN_OK;
}

/* Calls for the labels of an item that remain: repeated ones are dropped if `collapse`, and those from the first blank.
 * Returns their number; *bad is the position of a wrong one, or -1. `to` may be NULL. */
static int64_t take_labels(const loss_run *r, int64_t b, int64_t *to, int64_t *bad)
{
  int64_t n = 0;
  bool over = false;
  *bad = -1;
  for (int64_t i = r->firsts[b]; i < r->firsts[b + 1]; i++) {
    int64_t label = r->labels[i];
    if (r->options->collapse && i > r->firsts[b] && label == r->labels[i - 1]) continue;
    if (label >= r->classes - 1) {
      over = true;
      continue;
    }
    if ((over || label < 0) && *bad < 0) *bad = i;
    if (to != NULL) to[n] = label;
    n++;
  }
  return n;
}

static tn_status check_item(const loss_run *r, int64_t b, tn_error *err)
{
  int64_t bad, n, length = r->lengths[b];
  if (length < 0 || length > r->times)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "CTCLoss: sequence %lld has length %lld, wanted [0, %lld]",
                        (long long)b, (long long)length, (long long)r->times);
  if (r->firsts[b] == r->firsts[b + 1])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "CTCLoss: item %lld has no labels", (long long)b);
  n = take_labels(r, b, NULL, &bad);
  if (bad >= 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "CTCLoss: label %lld is %d, wanted one of [0, %lld), and none after a blank", (long long)bad,
                        (int)r->labels[bad], (long long)r->classes - 1);
  if (n > length && !r->options->ignore_longer)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "CTCLoss: item %lld has %lld labels and length %lld", (long long)b,
                        (long long)n, (long long)length);
  return TN_OK;
}

/* ---- one item ---- */

static double log_sum(double a, double b)
{
  if (a == -INFINITY) return b;
  if (b == -INFINITY) return a;
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* The buffers of an item. */
typedef struct item {
  int64_t n, times, classes, blank; /* extended labels, times of this item */
  int64_t *labels;                  /* extended */
  double *y, *alpha, *beta, *sums;  /* y: logarithms of probabilities, times x classes */
  bool merge;
} item;

static double logit_at(const loss_run *r, int64_t i)
{
  return r->twice ? ((const double *)r->logits)[i] : (double)((const float *)r->logits)[i];
}

static void normalise(const loss_run *r, const item *m, int64_t b)
{
  for (int64_t t = 0; t < m->times; t++) {
    int64_t from = (t * r->batch + b) * m->classes;
    double *y = m->y + t * m->classes, most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < m->classes; k++) {
      y[k] = logit_at(r, from + k);
      if (!(y[k] <= most)) most = y[k];
    }
    for (int64_t k = 0; k < m->classes; k++) sum += exp(y[k] - most);
    sum = most + log(sum);
    for (int64_t k = 0; k < m->classes; k++) y[k] -= sum;
  }
}

/* Whether a path may pass from extended label u - 2 to u directly. */
static bool skips(const item *m, int64_t u)
{
  return m->labels[u] != m->blank && !(m->merge && m->labels[u] == m->labels[u - 2]);
}

static bool stays(const item *m, int64_t u) { return m->merge || m->labels[u] == m->blank; }

/* The extended labels that a path can have at time t: [*first, *last). */
static void reach(const item *m, int64_t t, int64_t *first, int64_t *last)
{
  *first = m->n - 2 * (m->times - t);
  *last = 2 * (t + 1);
  if (*first < 0) *first = 0;
  if (*last > m->n) *last = m->n;
}

static void go_forward(const item *m)
{
  int64_t first, last;
  for (int64_t i = 0; i < m->times * m->n; i++) m->alpha[i] = -INFINITY;
  for (int64_t u = 0; u < 2 && u < m->n; u++) m->alpha[u] = m->y[m->labels[u]];
  for (int64_t t = 1; t < m->times; t++) {
    const double *old = m->alpha + (t - 1) * m->n, *y = m->y + t * m->classes;
    reach(m, t, &first, &last);
    for (int64_t u = first; u < last; u++) {
      double sum = stays(m, u) ? old[u] : -INFINITY;
      if (u > 0) sum = log_sum(sum, old[u - 1]);
      if (u > 1 && skips(m, u)) sum = log_sum(sum, old[u - 2]);
      m->alpha[t * m->n + u] = y[m->labels[u]] + sum;
    }
  }
}

static void go_backward(const item *m)
{
  int64_t first, last;
  for (int64_t i = 0; i < m->times * m->n; i++) m->beta[i] = -INFINITY;
  for (int64_t u = m->n > 1 ? m->n - 2 : 0; u < m->n; u++) m->beta[(m->times - 1) * m->n + u] = 0;
  for (int64_t t = m->times - 2; t >= 0; t--) {
    const double *next = m->beta + (t + 1) * m->n, *y = m->y + (t + 1) * m->classes;
    reach(m, t, &first, &last);
    for (int64_t u = first; u < last; u++) {
      double sum = stays(m, u) ? next[u] + y[m->labels[u]] : -INFINITY;
      if (u + 1 < m->n) sum = log_sum(sum, next[u + 1] + y[m->labels[u + 1]]);
      if (u + 2 < m->n && skips(m, u + 2)) sum = log_sum(sum, next[u + 2] + y[m->labels[u + 2]]);
      m->beta[t * m->n + u] = sum;
    }
  }
}

static void put(const loss_run *r, void *to, int64_t i, double value)
{
  if (r->twice) ((double *)to)[i] = value;
  else ((float *)to)[i] = (float)value;
}

static void put_gradient(const loss_run *r, const item *m, int64_t b, double total)
{
  for (int64_t t = 0; t < m->times; t++) {
    int64_t to = (t * r->batch + b) * m->classes;
    for (int64_t k = 0; k < m->classes; k++) m->sums[k] = -INFINITY;
    for (int64_t u = 0; u < m->n; u++) {
      double *sum = &m->sums[m->labels[u]], path = m->alpha[t * m->n + u] + m->beta[t * m->n + u];
      *sum = log_sum(*sum, path);
    }
    for (int64_t k = 0; k < m->classes; k++) {
      double taken = total == -INFINITY ? 0 : exp(m->sums[k] - total); /* 0: no path is possible */
      put(r, r->gradient, to + k, exp(m->y[t * m->classes + k]) - taken);
    }
  }
}

static void run_item(const loss_run *r, item *m, int64_t b, int64_t n)
{
  int64_t bad;
  double total = -INFINITY;
  for (int64_t i = take_labels(r, b, m->labels, &bad) - 1; i >= 0; i--) m->labels[2 * i + 1] = m->labels[i];
  for (int64_t i = 0; i <= n; i++) m->labels[2 * i] = m->blank;
  normalise(r, m, b);
  go_forward(m);
  go_backward(m);
  for (int64_t u = 0; u < m->n; u++) total = log_sum(total, m->alpha[u] + m->beta[u]);
  put(r, r->loss, b, -total);
  put_gradient(r, m, b, total);
}

/* Allocates the buffers of an item with n labels and computes it. */
static bool do_item(const loss_run *r, int64_t b, int64_t n)
{
  item m = { .n = 2 * n + 1, .times = r->lengths[b], .classes = r->classes, .blank = r->classes - 1,
             .merge = r->options->merge };
  size_t cells, logits, all = 0;
  bool fits = tn__size_mul((size_t)m.n, (size_t)m.times, &cells) && tn__size_mul(cells, 2, &cells) &&
              tn__size_mul((size_t)m.classes, (size_t)m.times + 1, &logits) && tn__size_add(cells, logits, &all) &&
              tn__size_add(all, (size_t)m.n, &all) && tn__size_mul(all, sizeof(double), &all);
  double *room = fits ? tn__alloc(all) : NULL;
  if (room == NULL) return false;
  m.y = room;
  m.sums = m.y + m.times * m.classes;
  m.alpha = m.sums + m.classes;
  m.beta = m.alpha + m.times * m.n;
  m.labels = (int64_t *)(m.beta + m.times * m.n);
  run_item(r, &m, b, n);
  tn__free(room, all);
  return true;
}

static void run_items(void *user, int64_t begin, int64_t end)
{
  loss_run *r = user;
  int64_t bad;
  for (int64_t b = begin; b < end; b++) {
    int64_t n = take_labels(r, b, NULL, &bad);
    put(r, r->loss, b, 0);
    if (r->lengths[b] > 0 && n <= r->lengths[b] && !do_item(r, b, n)) r->no_memory = true;
  }
}

static tn_status loss_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0], *gradient = ctx->outputs[1];
  loss_run r = { .options = ctx->state, .logits = in->data, .loss = ctx->outputs[0]->data, .gradient = gradient->data,
                 .labels = ctx->inputs[2]->data, .lengths = ctx->inputs[3]->data, .firsts = ctx->scratch,
                 .times = in->dims[0], .batch = in->dims[1], .classes = in->dims[2], .twice = in->dtype == TN_DOUBLE };
  atomic_init(&r.no_memory, false);
  tn_status st = find_labels(ctx, r.batch, ctx->scratch);
  for (int64_t b = 0; st == TN_OK && b < r.batch; b++) st = check_item(&r, b, ctx->err);
  if (st != TN_OK) return st;
  memset(gradient->data, 0, (size_t)gradient->count * tn_dtype_size(in->dtype));
  double cost = (double)r.times * ((double)r.classes * 30 + (double)ctx->inputs[2]->count / (double)r.batch * 100);
  tn_parallel_for(ctx, r.batch, 1, cost, run_items, &r);
  return r.no_memory ? tn__no_memory(ctx->err, "paths of an item", 0) : TN_OK;
}

/* ---- tables ---- */

static tn_status infer_loss(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in;
  tn_status st = tn__infer_rank(ctx, 0, 3, &in, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 0, &in.dims[1], 1, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 1, &in, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "CTCLoss",
    .inputs = "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32",
    .outputs = "loss: T, gradient: T",
    .attrs = "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "
             "ignore_longer_outputs_than_inputs: bool = false; T: {float, double} = float",
    .infer = infer_loss,
    .summary = "loss of connectionist temporal classification, with its gradient" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("CTCLoss", "ctc_loss_cpu", loss_create, loss_destroy, loss_prepare, loss_compute),
};

TN_OP_FAMILY(ctc_loss)
