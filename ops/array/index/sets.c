/* SPDX-License-Identifier: Apache-2.0 */
/* Sets in the last dimension of dense or sparse tensors: DenseToDenseSetOperation DenseToSparseSetOperation
 * SparseToSparseSetOperation SetSize.
 *
 * A group is what shares all coordinates but the last: a row of a dense tensor, or adjacent entries of a sparse one.
 * The values of a group are sorted and made distinct; the results of all groups are kept in scratch memory until their
 * number is known. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <string.h>

typedef enum set_operation { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION } set_operation;

typedef struct set_state {
  set_operation operation;
  bool validate;
} set_state;

/* A value: an integer, or a text. */
typedef union slot {
  int64_t i;
  const tn_string *s;
} slot;

/* ---- values ---- */

static int compare(tn_dtype dtype, slot a, slot b)
{
  if (dtype != TN_STRING) return (a.i > b.i) - (a.i < b.i);
  size_t n, m;
  const char *s = tn_string_data(a.s, &n), *t = tn_string_data(b.s, &m);
  size_t both = n < m ? n : m;
  int c = both > 0 ? memcmp(s, t, both) : 0;
  return c != 0 ? c : (n > m) - (n < m);
}

static slot load(const tn_view *v, int64_t i)
{
  if (v->dtype == TN_STRING) return (slot){ .s = (const tn_string *)v->data + i };
  return (slot){ .i = tn__index_at(v, i) };
}

static void store(tn_dtype dtype, void *to, int64_t i, int64_t value)
{
  switch (tn_dtype_size(dtype)) {
  case 1: ((uint8_t *)to)[i] = (uint8_t)value; break;
  case 2: ((uint16_t *)to)[i] = (uint16_t)value; break;
  case 4: ((uint32_t *)to)[i] = (uint32_t)value; break;
  default: ((int64_t *)to)[i] = value; break;
  }
}

/* Merges two sorted runs of x. */
static void merge_runs(tn_dtype dtype, const slot *x, int64_t n, int64_t m, slot *to)
{
  int64_t a = 0, b = n;
  for (int64_t k = 0; k < n + m; k++) {
    bool first = b == n + m || (a < n && compare(dtype, x[a], x[b]) <= 0);
    to[k] = first ? x[a++] : x[b++];
  }
}

/* Sorts x[n] and drops equal values; `spare` has room for n. Returns how many are left, -1 if the step has ended. */
static int64_t make_set(tn_dtype dtype, slot *x, int64_t n, slot *spare, tn__poll *poll)
{
  slot *from = x, *to = spare;
  int64_t kept = 0;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t i = 0; i < n; i += 2 * width) {
      int64_t left = n - i < width ? n - i : width, right = n - i - left < width ? n - i - left : width;
      if (tn__poll_over(poll, 10 * (left + right))) return -1;
      merge_runs(dtype, from + i, left, right, to + i);
    }
    slot *sorted = to;
    to = from;
    from = sorted;
  }
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || compare(dtype, from[i], from[i - 1]) != 0) to[kept++] = from[i];
  if (to != x && kept > 0) memcpy(x, to, (size_t)kept * sizeof *x);
  return kept;
}

/* ---- operands ---- */

/* A tensor whose groups are walked in order. */
typedef struct operand {
  const tn_view *values, *indices; /* indices is NULL for a dense tensor */
  const int64_t *dims;
  int32_t rank;
  int64_t at, end; /* the group: values [at, end); at == values->count after the last one */
} operand;

static const int64_t *row_of(const operand *o, int64_t i) { return (const int64_t *)o->indices->data + i * o->rank; }

static bool same_group(const operand *o, int64_t i, int64_t k)
{
  return memcmp(row_of(o, i), row_of(o, k), (size_t)(o->rank - 1) * sizeof(int64_t)) == 0;
}

/* Finds the end of the group that begins at o->at, of a sparse tensor. */
static void find_end(operand *o)
{
  for (o->end = o->at; o->end < o->values->count && same_group(o, o->at, o->end);) o->end++;
}

static tn_status bad_index(const operand *o, int64_t i, const char *what, tn_error *err)
{
  char index[160], dims[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "index %lld of a sparse set, %s, %s, shape %s", (long long)i,
                      tn__format_shape(index, sizeof index, row_of(o, i), o->rank), what,
                      tn__format_shape(dims, sizeof dims, o->dims, o->rank));
}

/* Checks that indices are inside the shape, ascending and distinct. */
static tn_status check_order(const operand *o, tn__poll *poll, tn_error *err)
{
  for (int64_t i = 0; i < o->values->count; i++) {
    const int64_t *row = row_of(o, i), *before = row - o->rank;
    int32_t d = 0;
    if (tn__poll_over(poll, 5 * o->rank)) return TN_CANCELLED;
    for (int32_t k = 0; k < o->rank; k++)
      if (row[k] < 0 || row[k] >= o->dims[k]) return bad_index(o, i, "is outside the shape", err);
    if (i == 0) continue;
    while (d < o->rank && row[d] == before[d]) d++;
    if (d == o->rank) return bad_index(o, i, "occurs twice", err);
    if (row[d] < before[d]) return bad_index(o, i, "is out of order", err);
  }
  return TN_OK;
}

/* Checks the group's indices, if they were not checked before. Negative ones pass, as in TensorFlow. */
static tn_status check_group(const operand *o, tn_error *err)
{
  for (int64_t i = o->at; i < o->end; i++)
    for (int32_t d = 0; d < o->rank; d++)
      if (row_of(o, i)[d] >= o->dims[d]) return bad_index(o, i, "is outside the shape", err);
  return TN_OK;
}

static tn_status wanted_rank(const char *what, int64_t rank, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s has rank %lld, wanted at least 2", what, (long long)rank);
}

/* Initialises a sparse operand from inputs i to i + 2. */
static tn_status sparse_operand(const tn_kernel_ctx *ctx, uint32_t i, operand *o, tn__poll *poll)
{
  const set_state *s = ctx->state;
  const tn_view *shape = ctx->inputs[i + 2];
  int64_t unused;
  *o = (operand){ .indices = ctx->inputs[i], .values = ctx->inputs[i + 1], .dims = shape->data };
  if (shape->count < 2) return wanted_rank("a sparse set", shape->count, ctx->err);
  if (shape->count > TN_MAX_RANK || o->indices->dims[1] != shape->count || o->indices->dims[0] != o->values->count)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "a sparse set has %lld values, indices of shape [%lld,%lld], and a shape of %lld dimensions",
                        (long long)o->values->count, (long long)o->indices->dims[0], (long long)o->indices->dims[1],
                        (long long)shape->count);
  o->rank = (int32_t)shape->count;
  tn_status st = tn_shape_elements(o->dims, o->rank, &unused, ctx->err);
  if (st == TN_OK && s->validate) st = check_order(o, poll, ctx->err);
  if (st == TN_OK) find_end(o);
  return st;
}

static tn_status dense_operand(const tn_kernel_ctx *ctx, uint32_t i, operand *o)
{
  const tn_view *v = ctx->inputs[i];
  *o = (operand){ .values = v, .dims = v->dims, .rank = v->rank };
  if (v->rank < 2) return wanted_rank("a dense set", v->rank, ctx->err);
  o->end = v->dims[v->rank - 1];
  return TN_OK;
}

/* ---- results ---- */

/* A value of the result. Its group is a number for dense tensors; for sparse ones a row of the first operand's
 * indices, or ~ a row of the second's. */
typedef struct result {
  slot value;
  int64_t group;
} result;

typedef struct run {
  tn_kernel_ctx *ctx;
  operand a, b;
  slot *x, *y, *spare;
  result *results;
  int64_t n, largest; /* number of results, and of those of the largest group */
  tn__poll poll;
} run;

static void add(run *r, slot value, int64_t group) { r->results[r->n++] = (result){ value, group }; }

/* Appends the results of a group, whose sets are ascending. */
static void combine(run *r, int64_t n, int64_t m, int64_t group)
{
  const set_state *s = r->ctx->state;
  tn_dtype dtype = r->a.values->dtype;
  int64_t i = 0, k = 0, before = r->n;
  while (i < n || k < m) {
    int c;
    if (k == m) c = -1;
    else if (i == n) c = 1;
    else c = compare(dtype, r->x[i], r->y[k]);
    bool wanted = s->operation == UNION || (c == 0 && s->operation == INTERSECTION) ||
                  (c < 0 && s->operation == A_MINUS_B) || (c > 0 && s->operation == B_MINUS_A);
    if (wanted) add(r, c <= 0 ? r->x[i] : r->y[k], group);
    i += c <= 0;
    k += c >= 0;
  }
  if (r->n - before > r->largest) r->largest = r->n - before;
}

/* Makes the set of an operand's group; none if `o` is NULL. */
static tn_status read_group(run *r, const operand *o, slot *to, int64_t *n)
{
  tn_status st = TN_OK;
  *n = 0;
  if (o == NULL) return TN_OK;
  if (o->indices != NULL) st = check_group(o, r->ctx->err);
  for (int64_t i = o->at; st == TN_OK && i < o->end; i++) to[i - o->at] = load(o->values, i);
  if (st != TN_OK) return st;
  *n = make_set(o->values->dtype, to, o->end - o->at, r->spare, &r->poll);
  return *n < 0 ? TN_CANCELLED : TN_OK;
}

static tn_status one_group(run *r, const operand *a, const operand *b, int64_t group)
{
  int64_t n, m;
  if (tn__poll_over(&r->poll, 20)) return TN_CANCELLED;
  tn_status st = read_group(r, a, r->x, &n);
  if (st == TN_OK) st = read_group(r, b, r->y, &m);
  if (st == TN_OK) combine(r, n, m, group);
  return st;
}

static void next_group(operand *o)
{
  int64_t width = o->end - o->at;
  o->at = o->end;
  if (o->indices != NULL) find_end(o);
  else o->end += width;
}

/* Whether the group of a sparse operand has this number. */
static bool is_group(const operand *o, int64_t group)
{
  if (o->at == o->values->count) return false;
  for (int32_t d = o->rank - 2; d >= 0; d--) {
    if (row_of(o, o->at)[d] != group % o->dims[d]) return false;
    group /= o->dims[d];
  }
  return true;
}

static tn_status dense_groups(run *r)
{
  int64_t groups;
  tn_status st = tn_shape_elements(r->a.dims, r->a.rank - 1, &groups, r->ctx->err);
  if (r->a.values->count == 0 && r->b.values->count == 0) return st;
  for (int64_t g = 0; st == TN_OK && g < groups; g++) {
    bool has = r->b.indices == NULL || is_group(&r->b, g);
    st = one_group(r, &r->a, has ? &r->b : NULL, g);
    next_group(&r->a);
    if (has) next_group(&r->b);
  }
  return st;
}

/* Which of the two groups is first: < 0 that of a, > 0 that of b, 0 both are one. */
static int compare_groups(const run *r)
{
  if (r->a.at == r->a.values->count) return 1;
  if (r->b.at == r->b.values->count) return -1;
  const int64_t *x = row_of(&r->a, r->a.at), *y = row_of(&r->b, r->b.at);
  for (int32_t d = 0; d < r->a.rank - 1; d++)
    if (x[d] != y[d]) return x[d] < y[d] ? -1 : 1;
  return 0;
}

static tn_status sparse_groups(run *r)
{
  tn_status st = TN_OK;
  while (st == TN_OK && (r->a.at < r->a.values->count || r->b.at < r->b.values->count)) {
    int c = compare_groups(r);
    st = one_group(r, c <= 0 ? &r->a : NULL, c >= 0 ? &r->b : NULL, c <= 0 ? r->a.at : ~r->b.at);
    if (c <= 0) next_group(&r->a);
    if (c >= 0) next_group(&r->b);
  }
  return st;
}

/* The coordinates of a group. */
static void put_group(const run *r, int64_t group, int64_t *to)
{
  size_t bytes = (size_t)(r->a.rank - 1) * sizeof *to;
  if (r->a.indices != NULL) {
    memcpy(to, group >= 0 ? row_of(&r->a, group) : row_of(&r->b, ~group), bytes);
    return;
  }
  for (int32_t d = r->a.rank - 2; d >= 0; d--) {
    to[d] = group % r->a.dims[d];
    group /= r->a.dims[d];
  }
}

static tn_status put_results(run *r)
{
  const int32_t rank = r->a.rank;
  const int64_t dims[2] = { r->n, rank };
  tn_dtype dtype = r->a.values->dtype;
  tn_status st = tn_kernel_allocate(r->ctx, 0, dims, 2);
  if (st == TN_OK) st = tn_kernel_allocate(r->ctx, 1, dims, 1);
  if (st == TN_OK) st = tn_kernel_allocate(r->ctx, 2, dims + 1, 1);
  if (st != TN_OK) return st;
  int64_t *indices = r->ctx->outputs[0]->data, *shape = r->ctx->outputs[2]->data;
  void *values = r->ctx->outputs[1]->data;
  for (int64_t i = 0, k = 0; st == TN_OK && i < r->n; i++, indices += rank) {
    const result *it = &r->results[i];
    k = i > 0 && it->group == it[-1].group ? k + 1 : 0;
    if (tn__poll_over(&r->poll, 10 + 3 * rank)) return TN_CANCELLED;
    put_group(r, it->group, indices);
    indices[rank - 1] = k;
    if (dtype == TN_STRING) st = tn__copy_elements(dtype, (tn_string *)values + i, it->value.s, 1, r->ctx->err);
    else store(dtype, values, i, it->value.i);
  }
  for (int32_t d = 0; d < rank - 1; d++) shape[d] = r->a.dims[d];
  shape[rank - 1] = r->largest;
  return st;
}

/* ---- kernels ---- */

static void destroy(void *state) { tn__free(state, sizeof(set_state)); }

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const names[] = { "a-b", "b-a", "intersection", "union" };
  set_state s = { .validate = tn__attr_bool(op, "validate_indices", true) };
  tn__slice name = { "", 0 };
  *state = NULL;
  tn_status st = tn_operation_attr_string(op, "set_operation", &name.data, &name.size, err);
  if (st != TN_OK) return st;
  int k = 0;
  for (; k < 4; k++) { /* in either case */
    size_t i = 0, n = strlen(names[k]);
    while (i < n && n == name.size && (name.data[i] | (name.data[i] >= 'A' && name.data[i] <= 'Z') << 5) == names[k][i])
      i++;
    if (i == n) break;
  }
  if (k == 4)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: operation '%.*s' is unknown", tn_operation_type(op),
                        name.size < 100 ? (int)name.size : 100, name.data);
  s.operation = (set_operation)k;
  return tn__keep_state(&s, sizeof s, "kernel", state, err);
}

static tn_status create_size(const tn_operation *op, void **state, tn_error *err)
{
  const set_state s = { .operation = UNION, .validate = tn__attr_bool(op, "validate_indices", true) };
  return tn__keep_state(&s, sizeof s, "kernel", state, err);
}

/* Requests scratch memory for the values of both operands, the larger of them again, and all results. */
static tn_status scratch(tn_prepare_ctx *ctx, int64_t n, int64_t m, tn_error *err)
{
  size_t all, bytes;
  if (!tn__size_add((size_t)n, (size_t)m, &all) || !tn__size_mul(all, 2 * sizeof(slot) + sizeof(result), &bytes))
    return tn__no_memory(err, "sets", SIZE_MAX);
  ctx->scratch_bytes = bytes;
  ctx->cost_ns = 500 + 100 * (double)all;
  return TN_OK;
}

static void divide_scratch(run *r)
{
  int64_t n = r->a.values->count, m = r->b.values == NULL ? 0 : r->b.values->count;
  r->results = r->ctx->scratch;
  r->x = (slot *)(r->results + n + m);
  r->y = r->x + n;
  r->spare = r->y + m;
}

static tn_status want_sparse(tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, i, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, i + 1, 1, err);
  return st == TN_OK ? tn__want_rank(ctx, i + 2, 1, err) : st;
}

/* One input is a dense tensor, three are a sparse one; the second operand begins at input `second`. */
static tn_status prepare(tn_prepare_ctx *ctx, uint32_t second, tn_error *err)
{
  bool dense[2] = { second == 1, ctx->n_inputs - second == 1 };
  tn_status st = dense[0] ? TN_OK : want_sparse(ctx, 0, err);
  if (st == TN_OK && !dense[1]) st = want_sparse(ctx, second, err);
  if (st == TN_OK) st = tn__prepare_all_dynamic(ctx, err);
  if (st != TN_OK) return st;
  return scratch(ctx, ctx->inputs[dense[0] ? 0 : 1].count, ctx->inputs[dense[1] ? second : second + 1].count, err);
}

static tn_status prepare_dense(tn_prepare_ctx *ctx, tn_error *err) { return prepare(ctx, 1, err); }
static tn_status prepare_sparse(tn_prepare_ctx *ctx, tn_error *err) { return prepare(ctx, 3, err); }

static tn_status compute(tn_kernel_ctx *ctx)
{
  run r = { .ctx = ctx, .poll = tn__poll_of(ctx) };
  const bool dense[2] = { ctx->n_inputs < 6, ctx->n_inputs == 2 };
  const uint32_t second = dense[0] ? 1 : 3;
  char a[160], b[160];
  tn_status st = dense[0] ? dense_operand(ctx, 0, &r.a) : sparse_operand(ctx, 0, &r.a, &r.poll);
  if (st == TN_OK) st = dense[1] ? dense_operand(ctx, second, &r.b) : sparse_operand(ctx, second, &r.b, &r.poll);
  if (st != TN_OK) return st;
  if (r.a.rank != r.b.rank || memcmp(r.a.dims, r.b.dims, (size_t)(r.a.rank - 1) * sizeof *r.a.dims) != 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "sets have shapes %s and %s, which differ before the last "
                        "dimension", tn__format_shape(a, sizeof a, r.a.dims, r.a.rank),
                        tn__format_shape(b, sizeof b, r.b.dims, r.b.rank));
  divide_scratch(&r);
  st = dense[0] ? dense_groups(&r) : sparse_groups(&r);
  return st == TN_OK ? put_results(&r) : st;
}

/* ---- SetSize ---- */

static tn_status prepare_size(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = want_sparse(ctx, 0, err);
  if (st == TN_OK) st = tn_prepare_dynamic(ctx, 0, err);
  return st == TN_OK ? scratch(ctx, ctx->inputs[1].count, 0, err) : st;
}

static tn_status compute_size(tn_kernel_ctx *ctx)
{
  run r = { .ctx = ctx, .poll = tn__poll_of(ctx) };
  tn_status st = sparse_operand(ctx, 0, &r.a, &r.poll);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, r.a.dims, r.a.rank - 1);
  if (st != TN_OK) return st;
  divide_scratch(&r);
  const tn_view *out = ctx->outputs[0];
  int32_t *to = out->data;
  for (int64_t i = 0; i < out->count; i++) {
    if (tn__poll_over(&r.poll, 1)) return TN_CANCELLED;
    to[i] = 0;
  }
  for (; r.a.at < r.a.values->count; next_group(&r.a)) {
    int64_t n;
    uint64_t at = 0; /* wraps for indices that were not checked */
    st = read_group(&r, &r.a, r.x, &n);
    if (st != TN_OK) return st;
    for (int32_t d = 0; d < r.a.rank - 1; d++) at = at * (uint64_t)r.a.dims[d] + (uint64_t)row_of(&r.a, r.a.at)[d];
    if (at >= (uint64_t)out->count) return bad_index(&r.a, r.a.at, "is outside the shape", ctx->err);
    to[at] = (int32_t)n;
  }
  return TN_OK;
}

/* ---- shapes ---- */

/* The rank of a sparse tensor whose shape is input i; -1 if it is unknown. */
static int64_t sparse_rank(const tn_infer_ctx *ctx, size_t i)
{
  const int64_t *dims;
  return tn_infer_input(ctx, i, &dims) == 1 ? dims[0] : -1;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  size_t n = tn_infer_n_inputs(ctx);
  const int64_t *dims;
  int64_t rank = n == 6 ? sparse_rank(ctx, 2) : tn_infer_input(ctx, 0, &dims);
  if (rank < 0) rank = n == 2 ? tn_infer_input(ctx, 1, &dims) : sparse_rank(ctx, n - 1);
  const int64_t shape[2] = { -1, rank };
  tn_status st = tn_infer_output(ctx, 0, shape, 2, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 1, shape, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 2, shape + 1, 1, err) : st;
}

/* ---- tables ---- */

#define T_VALUES "T: {int8, int16, int32, int64, uint8, uint16, string}"
#define SPARSE(which) which "_indices: int64, " which "_values: T, " which "_shape: int64"
#define OP(op, in, text)                                                                                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = SPARSE("result"),                   \
    .attrs = "set_operation: string; validate_indices: bool = true; " T_VALUES, .traits = TN_TRAIT_DYNAMIC, \
    .infer = infer, .summary = text }

static const tn_op_def ops[] = {
  OP("DenseToDenseSetOperation", "set1: T, set2: T", "sets of two dense tensors combined"),
  OP("DenseToSparseSetOperation", "set1: T, " SPARSE("set2"), "sets of a dense and a sparse tensor combined"),
  OP("SparseToSparseSetOperation", SPARSE("set1") ", " SPARSE("set2"), "sets of two sparse tensors combined"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "SetSize", .inputs = SPARSE("set"), .outputs = "size: int32",
    .attrs = "validate_indices: bool = true; " T_VALUES, .traits = TN_TRAIT_DYNAMIC, .infer = tn__infer_unknown,
    .summary = "number of distinct values in the last dimension" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("DenseToDenseSetOperation", "dense_to_dense_set_cpu", create, destroy, prepare_dense, compute),
  TN__KERNEL("DenseToSparseSetOperation", "dense_to_sparse_set_cpu", create, destroy, prepare_dense, compute),
  TN__KERNEL("SparseToSparseSetOperation", "sparse_to_sparse_set_cpu", create, destroy, prepare_sparse, compute),
  TN__KERNEL("SetSize", "set_size_cpu", create_size, destroy, prepare_size, compute_size),
};

TN_OP_FAMILY(sets)
