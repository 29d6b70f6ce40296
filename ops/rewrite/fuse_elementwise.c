/* SPDX-License-Identifier: Apache-2.0 */
/* The pass "elementwise": a region of elementwise nodes whose results are read only within the region becomes one
 * _TnElementwise.
 *
 * A region starts at the node whose result is read from outside. It then takes in the producers of its operands, as
 * long as all readers of a producer are in the region already, so a node may be read several times. A producer that is
 * cheap to compute again, such as the half of a value, is copied into the region although others read it: then nothing
 * may have to store it. Gradients read such values of the forward pass. The kernel determines which operand broadcasts
 * to which. A concatenation along the last dimension that is read only by such
 * a region is absorbed, too: the region reads its parts. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/rewrite/program.h>
#include <string.h>
#include <tenon/rewrite.h>

#define MOST_TERMS 8 /* of a sum that becomes steps */

typedef struct region {
  const tn_rewriter *rw;
  uint32_t nodes[TN__PROGRAM_STEPS]; /* readers first */
  uint32_t args[TN__PROGRAM_ARGS];
  uint32_t n_nodes, n_args;
  uint32_t inputs[TN__PROGRAM_ARGS * TN__PROGRAM_PARTS]; /* inputs of all arguments, in order */
  int64_t joined[TN__PROGRAM_ARGS]; /* number of inputs of each argument */
  uint32_t n_inputs;
  bool joins; /* some argument has several inputs */
  int64_t dims[TN_MAX_RANK]; /* the result's shape, as far as known */
  int32_t rank;
} region;

static const tn__step_op *step_op_of(const tn_rewriter *rw, uint32_t node)
{
  const char *type = tn_operation_type(tn_rewrite_operation(rw, node));
  return tn__step_op_find(type, strlen(type));
}

static bool is_last_format(const tn_operation *op)
{
  const char *text;
  size_t size;
  return tn_operation_attr_string(op, "data_format", &text, &size, NULL) != TN_OK ||
         (size == 4 && memcmp(text, "NHWC", 4) == 0);
}

/* 2 or 3 for a square or a cube that is written as a power, else 0. */
static uint32_t power_of(const tn_rewriter *rw, uint32_t node)
{
  const tn_tensor *t = tn_rewrite_is(rw, node, "Pow") ? tn_rewrite_constant(rw, tn_rewrite_input(rw, node, 1)) : NULL;
  double power = 0;
  if (t == NULL || tn_tensor_rank(t) != 0 || tn_tensor_data(t) == NULL) return 0;
  if (tn_tensor_dtype(t) == TN_FLOAT) power = (double)*(const float *)tn_tensor_data(t);
  if (tn_tensor_dtype(t) == TN_DOUBLE) power = *(const double *)tn_tensor_data(t);
  if (power == 2) return 2;
  return power == 3 ? 3 : 0;
}

/* The inputs that the steps of a node read. */
static uint32_t reads_of(const tn_rewriter *rw, uint32_t node)
{
  return power_of(rw, node) > 0 ? 1 : tn_rewrite_n_inputs(rw, node);
}

/* A sum of several terms is steps of two in the same order, which round alike. A power is one product or two. */
static uint32_t steps_of(const tn_rewriter *rw, uint32_t node)
{
  if (tn_rewrite_is(rw, node, "AddN")) return tn_rewrite_n_inputs(rw, node) - 1;
  return power_of(rw, node) == 3 ? 2 : 1;
}

/* Excludes integers, which may determine shapes. */
static bool may_be_step(const tn_rewriter *rw, uint32_t node)
{
  const tn__step_op *op = step_op_of(rw, node);
  if (op == NULL) return false;
  tn_dtype dtype = tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0));
  if (dtype != TN_FLOAT && dtype != TN_DOUBLE && dtype != TN_HALF && dtype != TN_BFLOAT16) return false;
  const uint32_t n = tn_rewrite_n_inputs(rw, node);
  if (op->kind == TN__STEP_SAME) return tn_rewrite_cpu_only(rw) && n >= 2 && n <= MOST_TERMS;
  return op->kind != TN__STEP_BIAS || is_last_format(tn_rewrite_operation(rw, node));
}


static bool has_room(const region *r, uint32_t node)
{
  uint32_t n = steps_of(r->rw, node);
  for (uint32_t i = 0; i < r->n_nodes; i++) n += steps_of(r->rw, r->nodes[i]);
  return n <= TN__PROGRAM_STEPS;
}

/* A smaller result would be recomputed for each element that it is broadcast to, so its node stays outside. */
static bool may_have_shape(const region *r, uint32_t value)
{
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(r->rw, value, dims);
  if (rank < 0 || r->rank < 0) return true;
  if (rank != r->rank) return false;
  for (int32_t d = 0; d < rank; d++)
    if (dims[d] >= 0 && r->dims[d] >= 0 && dims[d] != r->dims[d]) return false;
  return true;
}

static bool is_in(const uint32_t *list, uint32_t n, uint32_t item, uint32_t *at)
{
  for (*at = 0; *at < n; (*at)++)
    if (list[*at] == item) return true;
  return false;
}

/* The number of times nodes of the region read a value. */
static uint32_t uses_inside(const region *r, uint32_t value)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n_nodes; i++)
    for (uint32_t k = 0; k < reads_of(r->rw, r->nodes[i]); k++)
      n += tn_rewrite_input(r->rw, r->nodes[i], k) == value;
  return n;
}

static bool belongs(const region *r, uint32_t value, uint32_t *node)
{
  uint32_t at;
  *node = tn_rewrite_producer(r->rw, value, NULL);
  if (*node == TN_NO_NODE || is_in(r->nodes, r->n_nodes, *node, &at) || !may_be_step(r->rw, *node)) return false;
  return tn_rewrite_n_uses(r->rw, value) == uses_inside(r, value) && may_have_shape(r, value) &&
         strcmp(tn_operation_device(tn_rewrite_operation(r->rw, *node)),
                tn_operation_device(tn_rewrite_operation(r->rw, r->nodes[0]))) == 0;
}

static bool is_number(const tn_rewriter *rw, uint32_t value)
{
  int64_t dims[TN_MAX_RANK], count = 1;
  int32_t rank = tn_rewrite_is_constant(rw, value) ? tn_rewrite_shape(rw, value, dims) : -1;
  for (int32_t d = 0; d < rank; d++) count *= dims[d];
  return rank >= 0 && count == 1;
}

/* True if a node takes about as long as reading its result does. *from is the value that it reads. */
static bool is_cheap(const tn_rewriter *rw, uint32_t node, uint32_t *from)
{
  static const char *const ones[] = { "Neg", "Square", "Abs" };
  static const char *const twos[] = { "Mul", "AddV2", "Add", "Sub", "RealDiv" };
  *from = tn_rewrite_input(rw, node, 0);
  if (power_of(rw, node) > 0) return true;
  for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
    if (tn_rewrite_is(rw, node, ones[i])) return true;
  for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) {
    if (!tn_rewrite_is(rw, node, twos[i])) continue;
    if (is_number(rw, tn_rewrite_input(rw, node, 1))) return true;
    if (!is_number(rw, *from)) return false;
    *from = tn_rewrite_input(rw, node, 1);
    return true;
  }
  return false;
}

/* True if the producer of a value that others read, too, may be copied into the region. What it reads must be stored
 * anyway: others read it, or no step computes it. It is no cheap result itself, which keeps copies behind all their
 * readers in the region's order. */
static bool may_copy(const region *r, uint32_t value, uint32_t *node)
{
  uint32_t at, from, before, of_before;
  *node = tn_rewrite_producer(r->rw, value, NULL);
  if (*node == TN_NO_NODE || is_in(r->nodes, r->n_nodes, *node, &at) || !may_be_step(r->rw, *node)) return false;
  if (!is_cheap(r->rw, *node, &from) || !may_have_shape(r, value) || !may_have_shape(r, from)) return false;
  before = tn_rewrite_producer(r->rw, from, NULL);
  if (before != TN_NO_NODE && may_be_step(r->rw, before) &&
      (tn_rewrite_n_uses(r->rw, from) < 2 || is_cheap(r->rw, before, &of_before) ||
       is_in(r->nodes, r->n_nodes, before, &at)))
    return false;
  return strcmp(tn_operation_device(tn_rewrite_operation(r->rw, *node)),
                tn_operation_device(tn_rewrite_operation(r->rw, r->nodes[0]))) == 0;
}

/* Copies cheap producers into the region, once it has grown. */
static void copy_cheap(region *r)
{
  const uint32_t grown = r->n_nodes;
  for (uint32_t i = 0; i < grown; i++)
    for (uint32_t k = 0; k < reads_of(r->rw, r->nodes[i]); k++) {
      uint32_t node;
      if (may_copy(r, tn_rewrite_input(r->rw, r->nodes[i], k), &node) && has_room(r, node))
        r->nodes[r->n_nodes++] = node;
    }
}

/* Adds one node to the region. False if there is none to add. */
static bool grow(region *r)
{
  for (uint32_t i = 0; i < r->n_nodes; i++)
    for (uint32_t k = 0; k < reads_of(r->rw, r->nodes[i]); k++) {
      uint32_t node;
      if (!belongs(r, tn_rewrite_input(r->rw, r->nodes[i], k), &node) || !has_room(r, node)) continue;
      r->nodes[r->n_nodes++] = node;
      return true;
    }
  return false;
}

static bool dies_here(const region *r, uint32_t value)
{
  return tn_rewrite_producer(r->rw, value, NULL) != TN_NO_NODE &&
         tn_rewrite_n_uses(r->rw, value) == uses_inside(r, value);
}

/* Finds the values that the region reads from outside. Values that nothing else reads come first: the result may reuse
 * their memory. False if there are too many. */
static bool find_args(region *r)
{
  r->n_args = 0;
  for (int others = 0; others <= 1; others++)
    for (uint32_t i = 0; i < r->n_nodes; i++)
      for (uint32_t k = 0; k < reads_of(r->rw, r->nodes[i]); k++) {
        uint32_t value = tn_rewrite_input(r->rw, r->nodes[i], k), at;
        uint32_t producer = tn_rewrite_producer(r->rw, value, NULL);
        if (producer != TN_NO_NODE && is_in(r->nodes, r->n_nodes, producer, &at)) continue;
        if (dies_here(r, value) == others || is_in(r->args, r->n_args, value, &at)) continue;
        if (r->n_args == TN__PROGRAM_ARGS) return false;
        r->args[r->n_args++] = value;
      }
  return true;
}

/* The concatenation along the last dimension that computes a value, if it can be absorbed; otherwise TN_NO_NODE. */
static uint32_t join_of(const region *r, uint32_t value, uint32_t *first, uint32_t *n)
{
  const tn_rewriter *rw = r->rw;
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  bool last = tn_rewrite_is(rw, node, "ConcatV2");
  int64_t dims[TN_MAX_RANK];
  if (!last && !tn_rewrite_is(rw, node, "Concat")) return TN_NO_NODE;
  *n = tn_rewrite_n_inputs(rw, node) - 1;
  *first = last ? 0 : 1;
  const tn_tensor *axis = tn_rewrite_constant(rw, tn_rewrite_input(rw, node, last ? *n : 0));
  int32_t rank = tn_rewrite_shape(rw, value, dims);
  if (axis == NULL || tn_tensor_rank(axis) != 0 || rank < 1) return TN_NO_NODE;
  int64_t at = tn_tensor_dtype(axis) == TN_INT64 ? *(const int64_t *)tn_tensor_data(axis)
                                                 : *(const int32_t *)tn_tensor_data(axis);
  if (at != -1 && at != rank - 1) return TN_NO_NODE;
  return strcmp(tn_operation_device(tn_rewrite_operation(rw, node)),
                tn_operation_device(tn_rewrite_operation(rw, r->nodes[0]))) == 0 ? node : TN_NO_NODE;
}

/* Appends the parts of a concatenation to parts[*n], recursively for parts that are concatenations themselves. Adds
 * at most `room` parts. */
static void add_parts(const region *r, uint32_t value, uint32_t *parts, uint32_t *n, uint32_t room)
{
  uint32_t first, count, node = join_of(r, value, &first, &count);
  if (node == TN_NO_NODE || count > room) {
    parts[(*n)++] = value;
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint32_t before = *n;
    add_parts(r, tn_rewrite_input(r->rw, node, first + i), parts, n, room - (count - 1 - i));
    room -= *n - before;
  }
}

/* True if an argument may be read part by part: it is a concatenation read only by this region, with its result's
 * shape. */
static bool may_join(const region *r, uint32_t value)
{
  uint32_t first, n;
  return dies_here(r, value) && may_have_shape(r, value) && join_of(r, value, &first, &n) != TN_NO_NODE;
}

static void find_inputs(region *r)
{
  r->n_inputs = 0;
  r->joins = false;
  for (uint32_t i = 0; i < r->n_args; i++) {
    uint32_t n = 0, *inputs = r->inputs + r->n_inputs;
    if (may_join(r, r->args[i])) add_parts(r, r->args[i], inputs, &n, TN__PROGRAM_PARTS);
    else inputs[n++] = r->args[i];
    r->joined[i] = n;
    r->joins |= n > 1;
    r->n_inputs += n;
  }
}

/* The number of a value in the program. Nodes were added after all their readers, so steps are in reverse order. */
static int64_t number_of(const region *r, uint32_t value)
{
  uint32_t at, producer = tn_rewrite_producer(r->rw, value, NULL);
  if (producer != TN_NO_NODE && is_in(r->nodes, r->n_nodes, producer, &at)) {
    int64_t number = (int64_t)r->n_args - 1;
    for (uint32_t i = at; i < r->n_nodes; i++) number += steps_of(r->rw, r->nodes[i]);
    return number;
  }
  is_in(r->args, r->n_args, value, &at);
  return at;
}

/* Sets the number of inputs of each argument, and the names of the original concatenations for error texts. */
static void describe_joins(const region *r, tn_operation_builder *b)
{
  const char *names[TN__PROGRAM_ARGS];
  size_t sizes[TN__PROGRAM_ARGS];
  if (!r->joins) return;
  for (uint32_t i = 0; i < r->n_args; i++) {
    uint32_t node = r->joined[i] > 1 ? tn_rewrite_producer(r->rw, r->args[i], NULL) : TN_NO_NODE;
    names[i] = node == TN_NO_NODE ? "" : tn_operation_name(tn_rewrite_operation(r->rw, node));
    sizes[i] = strlen(names[i]);
  }
  tn_operation_set_ints(b, "joined", r->joined, r->n_args);
  tn_operation_set_strings(b, "joins", (const void *const *)names, sizes, r->n_args);
}

/* The steps of a region as lists of attributes. */
typedef struct listing {
  const char *names[TN__PROGRAM_STEPS], *nodes[TN__PROGRAM_STEPS];
  size_t sizes[TN__PROGRAM_STEPS], node_sizes[TN__PROGRAM_STEPS], n_alphas, n;
  int64_t operands[2 * TN__PROGRAM_STEPS];
  float alphas[TN__PROGRAM_STEPS];
} listing;

static void list_step(listing *l, const char *name, const tn_operation *plain, int64_t x, int64_t y)
{
  l->names[l->n] = name;
  l->sizes[l->n] = strlen(name);
  l->nodes[l->n] = tn_operation_name(plain);
  l->node_sizes[l->n] = strlen(l->nodes[l->n]);
  l->operands[2 * l->n] = x;
  l->operands[2 * l->n + 1] = y;
  l->n++;
}

static void list_node(const region *r, uint32_t node, listing *l)
{
  const tn_operation *plain = tn_rewrite_operation(r->rw, node);
  const tn__step_op *op = step_op_of(r->rw, node);
  const uint32_t power = power_of(r->rw, node);
  int64_t x = number_of(r, tn_rewrite_input(r->rw, node, 0));
  if (power > 0) {
    list_step(l, "Square", plain, x, -1);
    if (power == 3) list_step(l, "Mul", plain, (int64_t)(r->n_args + l->n - 1), x);
    return;
  }
  for (uint32_t i = 0; i < steps_of(r->rw, node); i++, x = (int64_t)(r->n_args + l->n - 1))
    list_step(l, op->name, plain, x,
              tn__step_reads_two(op->kind) ? number_of(r, tn_rewrite_input(r->rw, node, i + 1)) : -1);
  if (op->kind == TN__STEP_LEAKY) l->alphas[l->n_alphas++] = tn__attr_float(plain, "alpha", 0.2f);
}

static void describe(const region *r, tn_operation_builder *b)
{
  listing l;
  l.n = l.n_alphas = 0;
  for (uint32_t i = r->n_nodes; i > 0; i--) list_node(r, r->nodes[i - 1], &l);
  tn_operation_set_type(b, "T", tn_rewrite_dtype(r->rw, tn_rewrite_output(r->rw, r->nodes[0], 0)));
  tn_operation_set_int(b, "N", r->n_inputs);
  tn_operation_set_strings(b, "steps", (const void *const *)l.names, l.sizes, l.n);
  tn_operation_set_ints(b, "operands", l.operands, 2 * l.n);
  tn_operation_set_floats(b, "alphas", l.alphas, l.n_alphas);
  tn_operation_set_strings(b, "nodes", (const void *const *)l.nodes, l.node_sizes, l.n);
  describe_joins(r, b);
}

static tn_status fuse_elementwise(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  if (!may_be_step(rw, node)) return TN_OK;
  region r;
  r.rw = rw;
  r.nodes[0] = node;
  r.n_nodes = 1;
  r.rank = tn_rewrite_shape(rw, tn_rewrite_output(rw, node, 0), r.dims);
  while (grow(&r)) {}
  copy_cheap(&r);
  while (r.n_nodes > 1 && !find_args(&r)) r.n_nodes--; /* the last node has all its readers before it */
  if (r.n_nodes < 2) return TN_OK;
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnElementwise", node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  find_inputs(&r);
  describe(&r, b);
  uint32_t made;
  tn_status st = tn_rewrite_finish(rw, b, r.inputs, r.n_inputs, 0, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

#define REWRITE(type, kind)                                                                                         \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "elementwise", .name = "elementwise_program", .op = #type,          \
    .apply = fuse_elementwise },

static const tn_rewrite_def rewrites[] = { TN__STEP_OPS(REWRITE) };

TN_REWRITE_FAMILY(fuse_elementwise)
