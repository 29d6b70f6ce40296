/* SPDX-License-Identifier: Apache-2.0 */
/* The pass "attention": softmax(steps(query key^T)) value becomes one _TnAttention.
 *
 *   products    BatchMatMul, BatchMatMulV2, BatchMatMulV3, or an Einsum of matrices with batch dimensions
 *   steps       a scale, a mask, a bias: Mul, RealDiv, AddV2, Add or Sub with any other value; Select or SelectV2 by a
 *               mask
 *   scales      of query and key by a constant number, before or after their transposes
 *   repeats     of key and value along the last batch dimension, for heads that share them (repeats.h)
 *   transposes  of query, key, value and result are not made: the node reads and writes each in its own order
 *
 * The result's Transpose joins in a second rewrite. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/rewrite/repeats.h>
#include <string.h>
#include <tenon/rewrite.h>

#define MOST_STEPS 8
#define MOST_ARGS 12
#define MOST_DEPTH 6 /* of steps between the softmax and the product */
#define SMALL_SCALE 1e-15f
#define MOST_LAYERS 6 /* of scales, transposes and repeats around an operand */

/* A value whose dimensions are stored in another order: dimension i of a matrix with batch dimensions is dimension
 * perm[i] of the value. */
typedef struct operand {
  uint32_t value;
  int32_t rank;
  int64_t perm[TN_MAX_RANK];
} operand;

/* A product of matrices with batch dimensions: x is [rows, terms], y is [columns, terms]; out is how the result's
 * dimensions become batch dimensions, rows and columns. */
typedef struct product {
  operand x, y, out;
} product;

typedef struct step {
  const char *name;
  uint32_t args[2], n_args;
  int64_t right; /* the scores are the second operand */
} step;

typedef struct attention {
  operand query, key, value, out;
  float scale; /* of the query */
  int64_t key_repeat, value_repeat;
  uint32_t n_steps;
  step steps[MOST_STEPS]; /* from the last to the first */
} attention;

static uint32_t in(const tn_rewriter *rw, uint32_t node, uint32_t i) { return tn_rewrite_input(rw, node, i); }

static int32_t rank_of(const tn_rewriter *rw, uint32_t value)
{
  int64_t dims[TN_MAX_RANK];
  return tn_rewrite_shape(rw, value, dims);
}

static bool is_batch_matmul(const tn_rewriter *rw, uint32_t node)
{
  return tn_rewrite_is(rw, node, "BatchMatMulV2") || tn_rewrite_is(rw, node, "BatchMatMul") ||
         tn_rewrite_is(rw, node, "BatchMatMulV3");
}

static bool flag(const tn_rewriter *rw, uint32_t node, const char *name)
{
  return tn__attr_bool(tn_rewrite_operation(rw, node), name, false);
}

/* ---- orders of dimensions ---- */

static operand plain(uint32_t value, int32_t rank)
{
  operand o = { .value = value, .rank = rank };
  for (int32_t i = 0; i < rank; i++) o.perm[i] = i;
  return o;
}

static operand matrices(uint32_t value, int32_t rank, bool across)
{
  operand o = plain(value, rank);
  if (across) {
    o.perm[rank - 2] = rank - 1;
    o.perm[rank - 1] = rank - 2;
  }
  return o;
}

/* The constant permutation of a Transpose. */
static bool read_transpose(const tn_rewriter *rw, uint32_t node, int32_t rank, int64_t *perm)
{
  unsigned seen = 0;
  const tn_tensor *t = tn_rewrite_constant(rw, in(rw, node, 1));
  if (t == NULL || tn_tensor_elements(t) != rank || tn_tensor_data(t) == NULL) return false;
  for (int32_t i = 0; i < rank; i++) {
    if (tn_tensor_dtype(t) == TN_INT32) perm[i] = ((const int32_t *)tn_tensor_data(t))[i];
    else if (tn_tensor_dtype(t) == TN_INT64) perm[i] = ((const int64_t *)tn_tensor_data(t))[i];
    else return false;
    if (perm[i] >= 0 && perm[i] < rank) seen |= 1u << perm[i];
  }
  return seen == (1u << rank) - 1;
}

/* Reads what a Transpose reads. */
static bool look_through_transpose(const tn_rewriter *rw, uint32_t node, operand *o)
{
  int64_t perm[TN_MAX_RANK];
  if (!tn_rewrite_is(rw, node, "Transpose") || rank_of(rw, in(rw, node, 0)) != o->rank ||
      !read_transpose(rw, node, o->rank, perm))
    return false;
  for (int32_t i = 0; i < o->rank; i++) o->perm[i] = perm[o->perm[i]];
  o->value = in(rw, node, 0);
  return true;
}

/* The value of a constant of one float that does not add dimensions to another value. */
static bool read_number(const tn_rewriter *rw, uint32_t value, int32_t rank, float *out)
{
  if (!tn_rewrite_is_constant(rw, value) || tn_rewrite_dtype(rw, value) != TN_FLOAT) return false;
  const tn_tensor *t = tn_rewrite_constant(rw, value);
  if (t == NULL || tn_tensor_elements(t) != 1 || tn_tensor_rank(t) > rank || tn_tensor_data(t) == NULL) return false;
  memcpy(out, tn_tensor_data(t), sizeof *out);
  return true;
}

/* Reads what is multiplied by a number or divided by one. */
static bool look_through_scale(const tn_rewriter *rw, uint32_t node, operand *o, float *scale)
{
  const bool times = tn_rewrite_is(rw, node, "Mul");
  float number;
  if (!times && !tn_rewrite_is(rw, node, "RealDiv")) return false;
  for (uint32_t side = 0; side < (times ? 2u : 1u); side++) {
    if (!read_number(rw, in(rw, node, 1 - side), o->rank, &number)) continue;
    const float all = *scale * (times ? number : 1 / number), size = all < 0 ? -all : all;
    if (rank_of(rw, in(rw, node, side)) != o->rank || !(size > SMALL_SCALE && size < 1 / SMALL_SCALE)) return false;
    *scale = all;
    o->value = in(rw, node, side);
    return true;
  }
  return false;
}

/* Reads what transposes, repeats of matrices and, if scale is not NULL, scales read, as long as nothing else reads
 * their results. A dimension is repeated at most once. */
static void look_through(const tn_rewriter *rw, operand *o, float *scale, int64_t *repeat)
{
  for (int i = 0; i < MOST_LAYERS; i++) {
    const uint32_t node = tn_rewrite_producer(rw, o->value, NULL);
    uint32_t from;
    if (node == TN_NO_NODE || tn_rewrite_n_uses(rw, o->value) != 1) return;
    if (look_through_transpose(rw, node, o) || (scale != NULL && look_through_scale(rw, node, o, scale))) continue;
    if (repeat == NULL || *repeat != 1 || o->rank < 3) return;
    if (!tn__repeated(rw, o->value, (int32_t)o->perm[o->rank - 3], &from, repeat)) return;
    o->value = from;
  }
}

/* ---- products ---- */

static bool read_batch_matmul(const tn_rewriter *rw, uint32_t node, product *p)
{
  uint32_t x = in(rw, node, 0), y = in(rw, node, 1), out = tn_rewrite_output(rw, node, 0);
  int32_t rank_x = rank_of(rw, x), rank_y = rank_of(rw, y), rank = rank_x > rank_y ? rank_x : rank_y;
  if (rank_x < 2 || rank_y < 2) return false;
  p->x = matrices(x, rank_x, flag(rw, node, "adj_x"));
  p->y = matrices(y, rank_y, !flag(rw, node, "adj_y"));
  p->out = plain(out, rank);
  return true;
}

static int32_t place_of(const char *labels, int32_t n, char label)
{
  for (int32_t i = 0; i < n; i++)
    if (labels[i] == label) return i;
  return -1;
}

static bool are_labels(const char *text, int32_t n)
{
  for (int32_t i = 0; i < n; i++) {
    bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
    if (!letter || place_of(text, i, text[i]) >= 0) return false;
  }
  return n >= 2 && n <= TN_MAX_RANK;
}

/* The place in b of the only label that a has and c lacks; otherwise -1. */
static int32_t only_in(const char *a, int32_t n_a, const char *c, int32_t n_c)
{
  int32_t found = -1;
  for (int32_t i = 0; i < n_a; i++) {
    if (place_of(c, n_c, a[i]) >= 0) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* "bqhd,bkhd->bhqk" and the like: each input has one dimension of its own, they share one that is summed, and all
 * others are batch dimensions. Whether the first input or the second one has the rows follows from the result: the
 * caller wants the columns last. rows_last: the rows instead. */
static bool read_einsum(const tn_rewriter *rw, uint32_t node, product *p)
{
  const char *text;
  size_t size;
  if (tn_rewrite_n_inputs(rw, node) != 2) return false;
  if (tn_operation_attr_string(tn_rewrite_operation(rw, node), "equation", &text, &size, NULL) != TN_OK) return false;
  const char *comma = memchr(text, ',', size), *arrow = memchr(text, '>', size);
  if (comma == NULL || arrow == NULL || arrow - comma < 3 || arrow[-1] != '-') return false;
  const char *a = text, *b = comma + 1, *c = arrow + 1;
  const int32_t n_a = (int32_t)(comma - a), n_b = (int32_t)(arrow - 1 - b), n_c = (int32_t)(text + size - c);
  if (!are_labels(a, n_a) || !are_labels(b, n_b) || !are_labels(c, n_c) || n_a != n_b || n_c != n_a) return false;
  const int32_t own_a = only_in(a, n_a, b, n_b), own_b = only_in(b, n_b, a, n_a), sum_a = only_in(a, n_a, c, n_c);
  if (own_a < 0 || own_b < 0 || sum_a < 0 || sum_a == own_a) return false;
  const int32_t sum_b = place_of(b, n_b, a[sum_a]);
  const int32_t rank = n_a;
  if (rank_of(rw, in(rw, node, 0)) != rank || rank_of(rw, in(rw, node, 1)) != rank) return false;
  if (place_of(c, n_c, a[own_a]) < 0 || place_of(c, n_c, b[own_b]) < 0 || sum_b < 0) return false;
  p->x = (operand){ .value = in(rw, node, 0), .rank = rank };
  p->y = (operand){ .value = in(rw, node, 1), .rank = rank };
  p->out = (operand){ .value = tn_rewrite_output(rw, node, 0), .rank = rank };
  for (int32_t i = 0, at = 0; i < n_c; i++) {
    if (c[i] == a[own_a] || c[i] == b[own_b]) continue;
    p->x.perm[at] = place_of(a, n_a, c[i]);
    p->y.perm[at] = place_of(b, n_b, c[i]);
    p->out.perm[at++] = i;
  }
  p->x.perm[rank - 2] = own_a;
  p->x.perm[rank - 1] = sum_a;
  p->y.perm[rank - 2] = own_b;
  p->y.perm[rank - 1] = sum_b;
  p->out.perm[rank - 2] = place_of(c, n_c, a[own_a]);
  p->out.perm[rank - 1] = place_of(c, n_c, b[own_b]);
  return true;
}

static bool read_product(const tn_rewriter *rw, uint32_t node, product *p)
{
  if (node == TN_NO_NODE || tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0)) != TN_FLOAT) return false;
  if (is_batch_matmul(rw, node)) return read_batch_matmul(rw, node, p);
  return tn_rewrite_is(rw, node, "Einsum") && read_einsum(rw, node, p);
}

/* The same product with rows and columns exchanged. */
static void turn(product *p)
{
  const operand x = p->x;
  const int32_t rank = p->out.rank;
  const int64_t row = p->out.perm[rank - 2];
  p->x = p->y;
  p->y = x;
  p->out.perm[rank - 2] = p->out.perm[rank - 1];
  p->out.perm[rank - 1] = row;
}

static bool is_plain(const operand *o)
{
  for (int32_t i = 0; i < o->rank; i++)
    if (o->perm[i] != i) return false;
  return true;
}

/* ---- scores ---- */

static const char *step_of(const tn_rewriter *rw, uint32_t node)
{
  static const char *const names[][2] = { { "AddV2", "AddV2" }, { "Add", "AddV2" }, { "Sub", "Sub" }, { "Mul", "Mul" },
                                          { "RealDiv", "RealDiv" } };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tn_rewrite_is(rw, node, names[i][0])) return names[i][1];
  return NULL;
}

static bool read_scores(const tn_rewriter *rw, uint32_t value, int32_t rank, int depth, attention *out);

static bool may_broadcast(const tn_rewriter *rw, uint32_t value, int32_t rank)
{
  const int32_t own = rank_of(rw, value);
  return own >= 0 && own <= rank;
}

/* A step of two operands. */
static bool read_binary(const tn_rewriter *rw, uint32_t node, int32_t rank, int depth, attention *out)
{
  const char *name = step_of(rw, node);
  const uint32_t i = out->n_steps;
  for (uint32_t side = 0; name != NULL && side < 2; side++) {
    out->steps[i] = (step){ name, { in(rw, node, 1 - side) }, 1, side };
    out->n_steps = i + 1;
    if (may_broadcast(rw, out->steps[i].args[0], rank) && read_scores(rw, in(rw, node, side), rank, depth + 1, out))
      return true;
  }
  return false;
}

/* A choice by a mask. The mask of Select has one element, or the shape of its result. */
static bool read_select(const tn_rewriter *rw, uint32_t node, int32_t rank, int depth, attention *out)
{
  const bool old = tn_rewrite_is(rw, node, "Select");
  const uint32_t i = out->n_steps;
  if (!old && !tn_rewrite_is(rw, node, "SelectV2")) return false;
  const uint32_t mask = in(rw, node, 0);
  if (!may_broadcast(rw, mask, rank) || (old && rank_of(rw, mask) != 0 && rank_of(rw, mask) != rank)) return false;
  for (uint32_t side = 0; side < 2; side++) {
    out->steps[i] = (step){ "Select", { mask, in(rw, node, 2 - side) }, 2, side };
    out->n_steps = i + 1;
    if (may_broadcast(rw, out->steps[i].args[1], rank) && read_scores(rw, in(rw, node, 1 + side), rank, depth + 1, out))
      return true;
  }
  return false;
}

/* Reads the steps from a value back to a product of the query and the key. */
static bool read_scores(const tn_rewriter *rw, uint32_t value, int32_t rank, int depth, attention *out)
{
  product p;
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  if (node == TN_NO_NODE || tn_rewrite_n_uses(rw, value) != 1 || rank_of(rw, value) != rank) return false;
  if (read_product(rw, node, &p)) {
    if (p.out.rank != rank) return false;
    if (!is_plain(&p.out)) turn(&p);
    out->query = p.x;
    out->key = p.y;
    return is_plain(&p.out);
  }
  if (depth == MOST_DEPTH || out->n_steps == MOST_STEPS) return false;
  return read_select(rw, node, rank, depth, out) || read_binary(rw, node, rank, depth, out);
}

/* Reads softmax(scores) values, with the rows of the scores as rows. */
static bool read_weighted(const tn_rewriter *rw, product *p, attention *out)
{
  for (int turned = 0; turned < 2; turned++, turn(p)) {
    uint32_t node = tn_rewrite_producer(rw, p->x.value, NULL);
    if (node == TN_NO_NODE || !tn_rewrite_is(rw, node, "Softmax") || tn_rewrite_n_uses(rw, p->x.value) != 1) continue;
    if (!is_plain(&p->x) || p->x.rank != p->out.rank) continue;
    out->n_steps = 0;
    if (!read_scores(rw, in(rw, node, 0), p->x.rank, 0, out)) continue;
    out->value = p->y; /* [columns, terms]: its rows are the keys if it is turned */
    const int64_t row = out->value.perm[p->y.rank - 2];
    out->value.perm[p->y.rank - 2] = out->value.perm[p->y.rank - 1];
    out->value.perm[p->y.rank - 1] = row;
    out->out = p->out;
    return true;
  }
  return false;
}

/* ---- the node ---- */

static void set_perm(tn_operation_builder *b, const char *name, const operand *o)
{
  if (!is_plain(o)) tn_operation_set_ints(b, name, o->perm, (size_t)o->rank);
}

static tn_status make(tn_rewriter *rw, uint32_t node, const attention *a, tn_error *err)
{
  uint32_t inputs[3 + MOST_ARGS] = { a->query.value, a->key.value, a->value.value }, n = 3, made;
  const void *steps[MOST_STEPS];
  size_t sizes[MOST_STEPS];
  int64_t right[MOST_STEPS];
  for (uint32_t i = 0; i < a->n_steps; i++) {
    const step *from = &a->steps[a->n_steps - 1 - i];
    if (n + from->n_args > 3 + MOST_ARGS) return TN_OK;
    for (uint32_t k = 0; k < from->n_args; k++) inputs[n++] = from->args[k];
    steps[i] = from->name;
    sizes[i] = strlen(from->name);
    right[i] = from->right;
  }
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnAttention", node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_operation_set_type(b, "T", TN_FLOAT);
  tn_operation_set_float(b, "scale", a->scale);
  tn_operation_set_int(b, "key_repeat", a->key_repeat);
  tn_operation_set_int(b, "value_repeat", a->value_repeat);
  tn_operation_set_strings(b, "steps", steps, sizes, a->n_steps);
  tn_operation_set_ints(b, "right", right, a->n_steps);
  set_perm(b, "query_perm", &a->query);
  set_perm(b, "key_perm", &a->key);
  set_perm(b, "value_perm", &a->value);
  set_perm(b, "out_perm", &a->out);
  tn_status st = tn_rewrite_finish(rw, b, inputs, n, 3, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

static tn_status fuse_attention(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  product p;
  attention a = { .scale = 1, .key_repeat = 1, .value_repeat = 1 };
  if (!tn_rewrite_cpu_only(rw) || !read_product(rw, node, &p) || !read_weighted(rw, &p, &a)) return TN_OK;
  look_through(rw, &a.query, &a.scale, NULL);
  look_through(rw, &a.key, &a.scale, &a.key_repeat);
  look_through(rw, &a.value, NULL, &a.value_repeat);
  return make(rw, node, &a, err);
}

/* A Transpose of the result: dimension i of the Transpose is dimension perm[i] of the result. */
static tn_status fuse_transpose(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  static const char *const attrs = "T scale key_repeat value_repeat steps right query_perm key_perm value_perm";
  const uint32_t value = in(rw, node, 0), from = tn_rewrite_producer(rw, value, NULL);
  uint32_t inputs[3 + MOST_ARGS], n, made;
  int64_t perm[TN_MAX_RANK], to[TN_MAX_RANK];
  const int64_t *list;
  size_t n_list = 0;
  if (from == TN_NO_NODE || !tn_rewrite_is(rw, from, "_TnAttention") || tn_rewrite_n_uses(rw, value) != 1)
    return TN_OK;
  const int32_t rank = rank_of(rw, tn_rewrite_output(rw, node, 0));
  if (rank < 2 || !read_transpose(rw, node, rank, perm)) return TN_OK;
  tn_operation_attr_ints(tn_rewrite_operation(rw, from), "out_perm", &list, &n_list, NULL);
  if (n_list != 0 && n_list != (size_t)rank) return TN_OK;
  for (int32_t i = 0; i < rank; i++)
    for (int32_t k = 0; k < rank; k++)
      if (perm[k] == (n_list == 0 ? i : list[i])) to[i] = k;
  n = tn_rewrite_n_inputs(rw, from);
  for (uint32_t i = 0; i < n; i++) inputs[i] = in(rw, from, i);
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnAttention", from);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, from, attrs);
  tn_operation_set_ints(b, "out_perm", to, (size_t)rank);
  tn_status st = tn_rewrite_finish(rw, b, inputs, n, 3, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

#define REWRITE(title, type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "attention", .name = title, .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("attention", "BatchMatMul", fuse_attention),
  REWRITE("attention", "BatchMatMulV2", fuse_attention),
  REWRITE("attention", "BatchMatMulV3", fuse_attention),
  REWRITE("attention", "Einsum", fuse_attention),
  REWRITE("attention_transpose", "Transpose", fuse_transpose),
};

TN_REWRITE_FAMILY(fuse_attention)
