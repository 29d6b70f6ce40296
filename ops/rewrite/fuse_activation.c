/* SPDX-License-Identifier: Apache-2.0 */
/* The pass "activation": activations that are written as several steps become one node, which the pass "fuse" can make
 * part of a product.
 *
 *   swish          x * sigmoid(x), x * sigmoid(alpha * x)
 *   hard sigmoid   min(max(x + 3, 0), 6) times alpha or divided by 6; min(max(x / 6 + 1/2, 0), 1)
 *   hard swish     x times this, in any order of the products
 *   mish           x * tanh(softplus(x)), with the softplus as one node or as log(1 + e^x)
 *   GELU           x / 2 * (1 + erf(alpha * x)), x / 2 * (1 + tanh(alpha * (x + 0.044715 * x^3))), in any order of the
 *                  products (with Erfc it stays, for this function is exact where results are small)
 *
 * Bounds may be Relu6, Relu, Maximum and Minimum, or ClipByValue. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <string.h>
#include <tenon/rewrite.h>

static uint32_t in(const tn_rewriter *rw, uint32_t node, uint32_t i) { return tn_rewrite_input(rw, node, i); }

/* The node of this op that computes a value which `uses` nodes read; otherwise TN_NO_NODE. */
static uint32_t made_by(const tn_rewriter *rw, uint32_t value, const char *op, uint32_t uses)
{
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  return tn_rewrite_is(rw, node, op) && tn_rewrite_n_uses(rw, value) == uses ? node : TN_NO_NODE;
}

/* ---- numbers ---- */

/* True if a value is one constant number that broadcasts to any shape of x. */
static bool read_number(const tn_rewriter *rw, uint32_t value, uint32_t x, double *out)
{
  int64_t dims[TN_MAX_RANK];
  const tn_tensor *t = tn_rewrite_is_constant(rw, value) ? tn_rewrite_constant(rw, value) : NULL;
  if (t == NULL || tn_tensor_elements(t) != 1 || tn_tensor_data(t) == NULL) return false;
  if (tn_tensor_rank(t) > 0 && tn_tensor_rank(t) > tn_rewrite_shape(rw, x, dims)) return false;
  const void *at = tn_tensor_data(t);
  switch (tn_tensor_dtype(t)) {
  case TN_FLOAT: *out = (double)*(const float *)at; return true;
  case TN_DOUBLE: *out = *(const double *)at; return true;
  case TN_HALF: *out = (double)tn__half_to_float(*(const uint16_t *)at); return true;
  case TN_BFLOAT16: *out = (double)tn__bfloat16_to_float(*(const uint16_t *)at); return true;
  default: return false;
  }
}

/* The other operand of a binary node of this op whose one operand is a number; otherwise TN_NO_NODE. Where the order
 * matters, the number is the second operand. */
static uint32_t beside_number(const tn_rewriter *rw, uint32_t node, const char *op, bool ordered, double *number)
{
  if (!tn_rewrite_is(rw, node, op)) return TN_NO_NODE;
  for (uint32_t side = 0; side < (ordered ? 1u : 2u); side++)
    if (read_number(rw, in(rw, node, 1 - side), in(rw, node, side), number)) return in(rw, node, side);
  return TN_NO_NODE;
}

/* The value that a node adds a number to. */
static uint32_t plus(const tn_rewriter *rw, uint32_t node, double *number)
{
  uint32_t x = beside_number(rw, node, "AddV2", false, number);
  if (x == TN_NO_NODE) x = beside_number(rw, node, "Add", false, number);
  if (x != TN_NO_NODE) return x;
  x = beside_number(rw, node, "Sub", true, number);
  *number = -*number;
  return x;
}

/* The value that a node multiplies by a number, or divides by its reciprocal. */
static uint32_t times(const tn_rewriter *rw, uint32_t node, double *number)
{
  uint32_t x = beside_number(rw, node, "Mul", false, number);
  if (x != TN_NO_NODE) return x;
  x = beside_number(rw, node, "RealDiv", true, number);
  if (x == TN_NO_NODE) x = beside_number(rw, node, "Div", true, number);
  *number = 1 / *number;
  return x;
}

/* The node that computes a value which only one node reads. */
static uint32_t only(const tn_rewriter *rw, uint32_t value)
{
  return tn_rewrite_n_uses(rw, value) == 1 ? tn_rewrite_producer(rw, value, NULL) : TN_NO_NODE;
}

/* ---- bounds ---- */

/* The value that is bounded below by 0. */
static uint32_t above_zero(const tn_rewriter *rw, uint32_t node)
{
  double zero;
  if (tn_rewrite_is(rw, node, "Relu")) return in(rw, node, 0);
  uint32_t x = beside_number(rw, node, "Maximum", false, &zero);
  return x != TN_NO_NODE && zero == 0 ? x : TN_NO_NODE;
}

/* The value that a node bounds to [0, top]; otherwise TN_NO_NODE. */
static uint32_t bounded(const tn_rewriter *rw, uint32_t node, double top)
{
  double number, low;
  if (node == TN_NO_NODE) return TN_NO_NODE;
  if (tn_rewrite_is(rw, node, "Relu6")) return top == 6 ? in(rw, node, 0) : TN_NO_NODE;
  if (tn_rewrite_is(rw, node, "ClipByValue")) {
    bool fits = read_number(rw, in(rw, node, 1), in(rw, node, 0), &low) && low == 0 &&
                read_number(rw, in(rw, node, 2), in(rw, node, 0), &number) && number == top;
    int64_t dims[TN_MAX_RANK]; /* a vector would be an error */
    fits = fits && tn_rewrite_shape(rw, in(rw, node, 1), dims) == 0 && tn_rewrite_shape(rw, in(rw, node, 2), dims) == 0;
    return fits ? in(rw, node, 0) : TN_NO_NODE;
  }
  uint32_t x = beside_number(rw, node, "Minimum", false, &number);
  if (x != TN_NO_NODE && number == top) return above_zero(rw, only(rw, x));
  x = above_zero(rw, node);
  if (x == TN_NO_NODE) return TN_NO_NODE;
  x = beside_number(rw, only(rw, x), "Minimum", false, &number);
  return x != TN_NO_NODE && number == top ? x : TN_NO_NODE;
}

/* The x of min(max(x + 3, 0), 6); otherwise TN_NO_NODE. */
static uint32_t gate_of(const tn_rewriter *rw, uint32_t value)
{
  double three;
  uint32_t sum = bounded(rw, only(rw, value), 6);
  if (sum == TN_NO_NODE) return TN_NO_NODE;
  uint32_t x = plus(rw, only(rw, sum), &three);
  return x != TN_NO_NODE && three == 3 ? x : TN_NO_NODE;
}

/* ---- making ---- */

static bool is_floating(const tn_rewriter *rw, uint32_t value)
{
  const tn_dtype dtype = tn_rewrite_dtype(rw, value);
  return dtype == TN_FLOAT || dtype == TN_DOUBLE || dtype == TN_HALF || dtype == TN_BFLOAT16;
}

static tn_status make(tn_rewriter *rw, uint32_t node, const char *op, uint32_t x, double alpha, tn_error *err)
{
  uint32_t made;
  if (!isfinite((float)alpha)) return TN_OK;
  tn_operation_builder *b = tn_rewrite_begin(rw, op, node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_operation_set_type(b, "T", tn_rewrite_dtype(rw, x));
  tn_operation_set_float(b, "alpha", (float)alpha);
  tn_status st = tn_rewrite_finish(rw, b, &x, 1, TN_NO_LIST, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

/* ---- hard sigmoid and hard swish ---- */

/* True if a value is the hard sigmoid of x, made before. */
static bool read_made(const tn_rewriter *rw, uint32_t value, uint32_t x, double *alpha)
{
  uint32_t node = made_by(rw, value, "_TnHardSigmoid", 1);
  float number = 1;
  if (node == TN_NO_NODE || in(rw, node, 0) != x) return false;
  tn_operation_attr_float(tn_rewrite_operation(rw, node), "alpha", &number, NULL);
  *alpha = (double)number;
  return true;
}

/* True if a value is x times min(max(x + 3, 0), 6). */
static bool read_gated(const tn_rewriter *rw, uint32_t value, uint32_t *x)
{
  uint32_t node = made_by(rw, value, "Mul", 1);
  for (uint32_t side = 0; node != TN_NO_NODE && side < 2; side++) {
    *x = in(rw, node, side);
    if (gate_of(rw, in(rw, node, 1 - side)) == *x) return true;
  }
  return false;
}

/* (x * a) * min(max(x + 3, 0), 6) */
static bool read_scaled(const tn_rewriter *rw, uint32_t node, uint32_t *x, double *alpha)
{
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t gated = gate_of(rw, in(rw, node, 1 - side));
    *x = gated == TN_NO_NODE ? TN_NO_NODE : times(rw, only(rw, in(rw, node, side)), alpha);
    if (*x != TN_NO_NODE && *x == gated) return true;
  }
  return false;
}

static tn_status fuse_hard(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  double alpha;
  uint32_t x;
  if (!tn_rewrite_cpu_only(rw) || !is_floating(rw, tn_rewrite_output(rw, node, 0))) return TN_OK;
  const uint32_t value = times(rw, node, &alpha);
  if (value != TN_NO_NODE) {
    x = gate_of(rw, value);
    if (x != TN_NO_NODE) return make(rw, node, "_TnHardSigmoid", x, alpha, err);
    return read_gated(rw, value, &x) ? make(rw, node, "_TnHardSwish", x, alpha, err) : TN_OK;
  }
  if (!tn_rewrite_is(rw, node, "Mul")) return TN_OK;
  for (uint32_t side = 0; side < 2; side++) {
    x = in(rw, node, side);
    if (read_made(rw, in(rw, node, 1 - side), x, &alpha)) return make(rw, node, "_TnHardSwish", x, alpha, err);
  }
  return read_scaled(rw, node, &x, &alpha) ? make(rw, node, "_TnHardSwish", x, alpha, err) : TN_OK;
}

/* min(max(x * a + b, 0), 1), where b is 1/2 and 3 a rounds to it */
static tn_status fuse_line(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  double slope, half;
  if (!tn_rewrite_cpu_only(rw) || !is_floating(rw, tn_rewrite_output(rw, node, 0))) return TN_OK;
  const uint32_t sum = bounded(rw, node, 1);
  const uint32_t product = sum == TN_NO_NODE ? TN_NO_NODE : plus(rw, only(rw, sum), &half);
  const uint32_t x = product == TN_NO_NODE ? TN_NO_NODE : times(rw, only(rw, product), &slope);
  if (x == TN_NO_NODE || half != 0.5 || tn_rewrite_dtype(rw, x) != TN_FLOAT || fabs(3 * slope - half) > 1e-7)
    return TN_OK;
  return make(rw, node, "_TnHardSigmoid", x, slope, err);
}

/* ---- swish and mish ---- */

/* True if a value is sigmoid(x) or sigmoid(alpha * x). */
static bool read_sigmoid(const tn_rewriter *rw, uint32_t value, uint32_t x, double *alpha)
{
  uint32_t node = made_by(rw, value, "Sigmoid", 1);
  *alpha = 1;
  if (node == TN_NO_NODE) return false;
  return in(rw, node, 0) == x || times(rw, only(rw, in(rw, node, 0)), alpha) == x;
}

/* True if a value is log(1 + e^x). */
static bool read_softplus(const tn_rewriter *rw, uint32_t value, uint32_t x)
{
  double one = 1;
  uint32_t node = only(rw, value), e;
  if (tn_rewrite_is(rw, node, "Softplus")) return in(rw, node, 0) == x;
  if (tn_rewrite_is(rw, node, "Log1p")) e = in(rw, node, 0);
  else if (tn_rewrite_is(rw, node, "Log")) e = plus(rw, only(rw, in(rw, node, 0)), &one);
  else return false;
  if (e == TN_NO_NODE || one != 1) return false;
  node = made_by(rw, e, "Exp", 1);
  return node != TN_NO_NODE && in(rw, node, 0) == x;
}

/* ---- GELU ---- */

/* True if a value is x^3. */
static bool is_cube(const tn_rewriter *rw, uint32_t value, uint32_t x)
{
  double three;
  uint32_t node = only(rw, value);
  if (tn_rewrite_is(rw, node, "Pow"))
    return in(rw, node, 0) == x && read_number(rw, in(rw, node, 1), x, &three) && three == 3;
  if (!tn_rewrite_is(rw, node, "Mul")) return false;
  for (uint32_t side = 0; side < 2; side++) {
    if (in(rw, node, side) != x) continue;
    const uint32_t square = only(rw, in(rw, node, 1 - side));
    if (tn_rewrite_is(rw, square, "Square")) return in(rw, square, 0) == x;
    if (tn_rewrite_is(rw, square, "Mul")) return in(rw, square, 0) == x && in(rw, square, 1) == x;
  }
  return false;
}

/* True if a value is x + 0.044715 * x^3. */
static bool is_cubic(const tn_rewriter *rw, uint32_t value, uint32_t x)
{
  double by;
  const uint32_t sum = only(rw, value);
  if (!tn_rewrite_is(rw, sum, "AddV2") && !tn_rewrite_is(rw, sum, "Add")) return false;
  for (uint32_t side = 0; side < 2; side++) {
    if (in(rw, sum, side) != x) continue;
    const uint32_t cube = times(rw, only(rw, in(rw, sum, 1 - side)), &by);
    if (cube != TN_NO_NODE && fabs(by - 0.044715) < 1e-8 && is_cube(rw, cube, x)) return true;
  }
  return false;
}

/* True if a value is 1 + erf(alpha * x), or the like with tanh: *op is the node to make. */
static bool read_bell(const tn_rewriter *rw, uint32_t value, uint32_t x, double *alpha, const char **op)
{
  double one;
  const uint32_t f = plus(rw, only(rw, value), &one), node = f == TN_NO_NODE || one != 1 ? TN_NO_NODE : only(rw, f);
  if (node == TN_NO_NODE) return false;
  const uint32_t inner = times(rw, only(rw, in(rw, node, 0)), alpha);
  if (inner == TN_NO_NODE) return false;
  *op = tn_rewrite_is(rw, node, "Erf") ? "_TnGelu" : "_TnGeluTanh";
  if (tn_rewrite_is(rw, node, "Erf")) return inner == x;
  return tn_rewrite_is(rw, node, "Tanh") && is_cubic(rw, inner, x);
}

/* The value that a value is half of, if only one node reads it. */
static uint32_t doubled(const tn_rewriter *rw, uint32_t node)
{
  double half;
  const uint32_t x = times(rw, node, &half);
  return x != TN_NO_NODE && half == 0.5 ? x : TN_NO_NODE;
}

/* x times a bell, with a half at any of the three places. */
static bool read_gelu(const tn_rewriter *rw, uint32_t node, uint32_t *x, double *alpha, const char **op)
{
  const uint32_t whole = doubled(rw, node), product = whole == TN_NO_NODE ? node : only(rw, whole);
  if (!tn_rewrite_is(rw, product, "Mul")) return false;
  for (uint32_t side = 0; side < 2; side++) {
    const uint32_t a = in(rw, product, side), b = in(rw, product, 1 - side);
    const uint32_t a_half = doubled(rw, only(rw, a)), b_half = doubled(rw, only(rw, b));
    *x = a;
    if (whole != TN_NO_NODE && read_bell(rw, b, a, alpha, op)) return true;
    if (whole == TN_NO_NODE && b_half != TN_NO_NODE && read_bell(rw, b_half, a, alpha, op)) return true;
    *x = a_half;
    if (whole == TN_NO_NODE && a_half != TN_NO_NODE && read_bell(rw, b, a_half, alpha, op)) return true;
  }
  return false;
}

static tn_status fuse_product(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  double alpha;
  uint32_t whole;
  const char *op;
  if (!tn_rewrite_cpu_only(rw) || !is_floating(rw, tn_rewrite_output(rw, node, 0))) return TN_OK;
  for (uint32_t side = 0; side < 2 && tn_rewrite_is(rw, node, "Mul"); side++) {
    const uint32_t x = in(rw, node, side), other = in(rw, node, 1 - side);
    if (read_sigmoid(rw, other, x, &alpha)) return make(rw, node, "_TnSwish", x, alpha, err);
    const uint32_t tanh = made_by(rw, other, "Tanh", 1);
    if (tanh != TN_NO_NODE && read_softplus(rw, in(rw, tanh, 0), x)) return make(rw, node, "_TnMish", x, 1, err);
  }
  if (read_gelu(rw, node, &whole, &alpha, &op)) return make(rw, node, op, whole, alpha, err);
  return fuse_hard(rw, node, err);
}

#define REWRITE(title, type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "activation", .name = title, .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("gated_activation", "Mul", fuse_product),
  REWRITE("gated_activation", "RealDiv", fuse_product),
  REWRITE("gated_activation", "Div", fuse_product),
  REWRITE("hard_sigmoid", "Minimum", fuse_line),
  REWRITE("hard_sigmoid", "Maximum", fuse_line),
  REWRITE("hard_sigmoid", "ClipByValue", fuse_line),
};

TN_REWRITE_FAMILY(fuse_activation)
