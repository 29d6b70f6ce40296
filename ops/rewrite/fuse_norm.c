/* SPDX-License-Identifier: Apache-2.0 */
/* The pass "norm": layer and RMS normalisation along the last dimension becomes one _TnLayerNorm.
 *
 * Exporters write d = x - mean, or fold the scale into the deviation's inverse r = rsqrt(variance + epsilon):
 *
 *   moments   x * s + (shift - mean * s), where s = r or s = r * scale
 *   centred   d * s, d / sqrt(variance + epsilon)
 *   rms       x * s, x / sqrt(mean of x^2 + epsilon)
 *
 * The variance is the mean of SquaredDifference(x, mean) or of d^2. A product with a vector, or a sum with one, that
 * follows becomes the scale or the shift. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <string.h>
#include <tenon/rewrite.h>

typedef struct norm {
  uint32_t x, scale, shift; /* values; TN_NO_NODE: none */
  float epsilon;
  bool centered;
} norm;

/* ---- parts ---- */

/* The node of this op that computes a value; otherwise TN_NO_NODE. */
static uint32_t node_of(const tn_rewriter *rw, uint32_t value, const char *op)
{
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  return node != TN_NO_NODE && tn_rewrite_is(rw, node, op) ? node : TN_NO_NODE;
}

static uint32_t sum_of(const tn_rewriter *rw, uint32_t value)
{
  uint32_t node = node_of(rw, value, "AddV2");
  return node != TN_NO_NODE ? node : node_of(rw, value, "Add");
}

static uint32_t in(const tn_rewriter *rw, uint32_t node, uint32_t i) { return tn_rewrite_input(rw, node, i); }

/* The value of a constant of one float. */
static bool number_of(const tn_rewriter *rw, uint32_t value, float *number)
{
  if (!tn_rewrite_is_constant(rw, value) || tn_rewrite_dtype(rw, value) != TN_FLOAT) return false;
  const tn_tensor *t = tn_rewrite_constant(rw, value);
  if (t == NULL || tn_tensor_elements(t) != 1 || tn_tensor_rank(t) > 1 || tn_tensor_data(t) == NULL) return false;
  memcpy(number, tn_tensor_data(t), sizeof(*number));
  return true;
}

static bool is_number(const tn_rewriter *rw, uint32_t value, float wanted)
{
  float number;
  return number_of(rw, value, &number) && number == wanted;
}

/* True if the value is a vector with an element for each column of x. */
static bool fits(const tn_rewriter *rw, uint32_t value, uint32_t x)
{
  int64_t dims[TN_MAX_RANK], own[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, x, dims);
  return rank >= 1 && tn_rewrite_shape(rw, value, own) == 1 && own[0] > 0 && own[0] == dims[rank - 1];
}

/* The value whose mean along the last dimension, which is kept, a value is; otherwise TN_NO_NODE. */
static uint32_t averaged(const tn_rewriter *rw, uint32_t value)
{
  uint32_t node = node_of(rw, value, "Mean");
  tn_bool keeps = false;
  int64_t dims[TN_MAX_RANK], axis;
  if (node == TN_NO_NODE || tn_operation_attr_bool(tn_rewrite_operation(rw, node), "keep_dims", &keeps, NULL) != TN_OK)
    return TN_NO_NODE;
  int32_t rank = tn_rewrite_shape(rw, in(rw, node, 0), dims);
  const tn_tensor *t = tn_rewrite_constant(rw, in(rw, node, 1));
  if (!keeps || rank < 1 || t == NULL || tn_tensor_elements(t) != 1 || tn_tensor_data(t) == NULL) return TN_NO_NODE;
  if (tn_tensor_dtype(t) == TN_INT32) axis = *(const int32_t *)tn_tensor_data(t);
  else if (tn_tensor_dtype(t) == TN_INT64) axis = *(const int64_t *)tn_tensor_data(t);
  else return TN_NO_NODE;
  return axis == -1 || axis == rank - 1 ? in(rw, node, 0) : TN_NO_NODE;
}

/* The value whose square a value is; otherwise TN_NO_NODE. */
static uint32_t squared(const tn_rewriter *rw, uint32_t value)
{
  uint32_t node = node_of(rw, value, "Square");
  if (node != TN_NO_NODE) return in(rw, node, 0);
  node = node_of(rw, value, "Mul");
  if (node != TN_NO_NODE && in(rw, node, 0) == in(rw, node, 1)) return in(rw, node, 0);
  node = node_of(rw, value, "Pow");
  return node != TN_NO_NODE && is_number(rw, in(rw, node, 1), 2) ? in(rw, node, 0) : TN_NO_NODE;
}

/* True if a value is x less its mean. */
static bool is_centred(const tn_rewriter *rw, uint32_t value, uint32_t *x, uint32_t *mean)
{
  uint32_t node = node_of(rw, value, "Sub");
  if (node == TN_NO_NODE || averaged(rw, in(rw, node, 1)) != in(rw, node, 0)) return false;
  *x = in(rw, node, 0);
  *mean = in(rw, node, 1);
  return true;
}

static bool is_variance(const tn_rewriter *rw, uint32_t value, uint32_t x, uint32_t mean)
{
  uint32_t square = averaged(rw, value), own_x, own_mean;
  if (square == TN_NO_NODE || averaged(rw, mean) != x) return false;
  uint32_t node = node_of(rw, square, "SquaredDifference");
  if (node != TN_NO_NODE)
    return (in(rw, node, 0) == x && in(rw, node, 1) == mean) || (in(rw, node, 0) == mean && in(rw, node, 1) == x);
  uint32_t d = squared(rw, square);
  return d != TN_NO_NODE && is_centred(rw, d, &own_x, &own_mean) && own_x == x && averaged(rw, own_mean) == x;
}

/* True if a value is variance + epsilon. */
static bool read_sum(const tn_rewriter *rw, uint32_t value, uint32_t *variance, float *epsilon)
{
  uint32_t node = sum_of(rw, value);
  for (uint32_t side = 0; node != TN_NO_NODE && side < 2; side++)
    if (number_of(rw, in(rw, node, 1 - side), epsilon) && *epsilon >= 0) {
      *variance = in(rw, node, side);
      return true;
    }
  return false;
}

static bool read_root(const tn_rewriter *rw, uint32_t value, uint32_t *variance, float *epsilon)
{
  uint32_t node = node_of(rw, value, "Sqrt");
  if (node != TN_NO_NODE) return read_sum(rw, in(rw, node, 0), variance, epsilon);
  node = node_of(rw, value, "Pow");
  return node != TN_NO_NODE && is_number(rw, in(rw, node, 1), 0.5f) && read_sum(rw, in(rw, node, 0), variance, epsilon);
}

/* True if a value is the inverse of the root of variance + epsilon. */
static bool read_inverse(const tn_rewriter *rw, uint32_t value, uint32_t *variance, float *epsilon)
{
  uint32_t node = node_of(rw, value, "Rsqrt");
  if (node != TN_NO_NODE) return read_sum(rw, in(rw, node, 0), variance, epsilon);
  node = node_of(rw, value, "Pow");
  if (node != TN_NO_NODE && is_number(rw, in(rw, node, 1), -0.5f))
    return read_sum(rw, in(rw, node, 0), variance, epsilon);
  node = node_of(rw, value, "Reciprocal");
  if (node != TN_NO_NODE) return read_root(rw, in(rw, node, 0), variance, epsilon);
  node = node_of(rw, value, "RealDiv");
  return node != TN_NO_NODE && is_number(rw, in(rw, node, 0), 1) && read_root(rw, in(rw, node, 1), variance, epsilon);
}

/* The same, maybe times a scale: m->scale and m->epsilon are set. */
static bool read_factor(const tn_rewriter *rw, uint32_t value, norm *m, uint32_t *variance)
{
  m->scale = TN_NO_NODE;
  if (read_inverse(rw, value, variance, &m->epsilon)) return true;
  uint32_t node = node_of(rw, value, "Mul");
  for (uint32_t side = 0; node != TN_NO_NODE && side < 2; side++)
    if (read_inverse(rw, in(rw, node, side), variance, &m->epsilon)) {
      m->scale = in(rw, node, 1 - side);
      return true;
    }
  return false;
}

/* ---- whole norms ---- */

/* Sets the rest of a norm of `value`, which is x or x less its mean, whose variance or mean square is given. */
static bool read_rows(const tn_rewriter *rw, uint32_t value, uint32_t variance, norm *m)
{
  uint32_t mean;
  m->shift = TN_NO_NODE;
  m->centered = is_centred(rw, value, &m->x, &mean) && is_variance(rw, variance, m->x, mean);
  if (m->centered) return true;
  m->x = value;
  uint32_t square = averaged(rw, variance);
  return square != TN_NO_NODE && squared(rw, square) == value;
}

/* value * s */
static bool read_product(const tn_rewriter *rw, uint32_t node, norm *m)
{
  uint32_t variance;
  for (uint32_t side = 0; side < 2; side++)
    if (read_factor(rw, in(rw, node, 1 - side), m, &variance) && read_rows(rw, in(rw, node, side), variance, m) &&
        (m->scale == TN_NO_NODE || fits(rw, m->scale, m->x)))
      return true;
  return false;
}

/* True if a value is mean * s, or its negative. */
static bool is_mean_times(const tn_rewriter *rw, uint32_t value, uint32_t s, bool negative, uint32_t *mean)
{
  uint32_t node;
  if (negative && (node = node_of(rw, value, "Neg")) != TN_NO_NODE)
    return is_mean_times(rw, in(rw, node, 0), s, false, mean);
  node = node_of(rw, value, "Mul");
  for (uint32_t side = 0; node != TN_NO_NODE && side < 2; side++) {
    if (in(rw, node, 1 - side) != s) continue;
    *mean = in(rw, node, side);
    if (!negative) return true;
    node = node_of(rw, *mean, "Neg");
    if (node != TN_NO_NODE) *mean = in(rw, node, 0);
    return node != TN_NO_NODE;
  }
  return false;
}

/* True if a value is shift - mean * s: shift is TN_NO_NODE if the value is -mean * s. */
static bool read_offset(const tn_rewriter *rw, uint32_t value, uint32_t s, uint32_t *mean, uint32_t *shift)
{
  uint32_t node = node_of(rw, value, "Sub");
  *shift = TN_NO_NODE;
  if (node != TN_NO_NODE && is_mean_times(rw, in(rw, node, 1), s, false, mean)) {
    *shift = in(rw, node, 0);
    return true;
  }
  node = sum_of(rw, value);
  for (uint32_t side = 0; node != TN_NO_NODE && side < 2; side++)
    if (is_mean_times(rw, in(rw, node, side), s, true, mean)) {
      *shift = in(rw, node, 1 - side);
      return true;
    }
  return is_mean_times(rw, value, s, true, mean);
}

/* x * s + (shift - mean * s), or x * s - mean * s */
static bool read_moments(const tn_rewriter *rw, uint32_t node, norm *m)
{
  bool difference = tn_rewrite_is(rw, node, "Sub");
  for (uint32_t side = 0; side < (difference ? 1u : 2u); side++) {
    uint32_t product = node_of(rw, in(rw, node, side), "Mul"), variance, mean;
    for (uint32_t of = 0; product != TN_NO_NODE && of < 2; of++) {
      uint32_t s = in(rw, product, 1 - of), other = in(rw, node, 1 - side);
      m->x = in(rw, product, of);
      m->shift = TN_NO_NODE;
      m->centered = true;
      if (!read_factor(rw, s, m, &variance)) continue;
      if (difference ? !is_mean_times(rw, other, s, false, &mean) : !read_offset(rw, other, s, &mean, &m->shift))
        continue;
      if (is_variance(rw, variance, m->x, mean) && (m->scale == TN_NO_NODE || fits(rw, m->scale, m->x)) &&
          (m->shift == TN_NO_NODE || fits(rw, m->shift, m->x)))
        return true;
    }
  }
  return false;
}

/* ---- rewrites ---- */

static tn_status make(tn_rewriter *rw, uint32_t node, const norm *m, tn_error *err)
{
  uint32_t inputs[3] = { m->x }, n = 1, made;
  if (tn_rewrite_dtype(rw, m->x) != TN_FLOAT) return TN_OK;
  if (m->scale != TN_NO_NODE) inputs[n++] = m->scale;
  if (m->shift != TN_NO_NODE) inputs[n++] = m->shift;
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnLayerNorm", node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_operation_set_type(b, "T", TN_FLOAT);
  tn_operation_set_int(b, "N", n - 1);
  tn_operation_set_float(b, "epsilon", m->epsilon);
  tn_operation_set_bool(b, "centered", m->centered);
  tn_operation_set_bool(b, "scaled", m->scale != TN_NO_NODE);
  tn_operation_set_bool(b, "shifted", m->shift != TN_NO_NODE);
  tn_status st = tn_rewrite_finish(rw, b, inputs, n, 1, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

/* The norm that a _TnLayerNorm computes, if nothing else reads it. */
static bool read_made(const tn_rewriter *rw, uint32_t value, norm *m)
{
  uint32_t node = node_of(rw, value, "_TnLayerNorm"), next = 1;
  if (node == TN_NO_NODE || tn_rewrite_n_uses(rw, value) != 1) return false;
  const tn_operation *op = tn_rewrite_operation(rw, node);
  tn_bool centered = true, scaled = false, shifted = false;
  tn_operation_attr_float(op, "epsilon", &m->epsilon, NULL);
  tn_operation_attr_bool(op, "centered", &centered, NULL);
  tn_operation_attr_bool(op, "scaled", &scaled, NULL);
  tn_operation_attr_bool(op, "shifted", &shifted, NULL);
  m->centered = centered;
  m->x = in(rw, node, 0);
  m->scale = scaled ? in(rw, node, next++) : TN_NO_NODE;
  m->shift = shifted ? in(rw, node, next) : TN_NO_NODE;
  return true;
}

static tn_status fuse_product(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  norm m;
  if (read_product(rw, node, &m)) return make(rw, node, &m, err);
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t by = in(rw, node, 1 - side);
    if (!read_made(rw, in(rw, node, side), &m) || m.scale != TN_NO_NODE || m.shift != TN_NO_NODE) continue;
    if (!fits(rw, by, m.x)) continue;
    m.scale = by;
    return make(rw, node, &m, err);
  }
  return TN_OK;
}

static tn_status fuse_quotient(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  norm m = { .scale = TN_NO_NODE };
  uint32_t variance;
  bool found =
      read_root(rw, in(rw, node, 1), &variance, &m.epsilon) && read_rows(rw, in(rw, node, 0), variance, &m);
  return found ? make(rw, node, &m, err) : TN_OK;
}

static tn_status fuse_sum(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  norm m;
  if (read_moments(rw, node, &m)) return make(rw, node, &m, err);
  for (uint32_t side = 0; side < 2 && !tn_rewrite_is(rw, node, "Sub"); side++) {
    uint32_t by = in(rw, node, 1 - side);
    if (!read_made(rw, in(rw, node, side), &m) || m.shift != TN_NO_NODE || !fits(rw, by, m.x)) continue;
    m.shift = by;
    return make(rw, node, &m, err);
  }
  return TN_OK;
}

#define REWRITE(type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "norm", .name = "layer_norm", .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("Mul", fuse_product),
  REWRITE("RealDiv", fuse_quotient),
  REWRITE("AddV2", fuse_sum),
  REWRITE("Add", fuse_sum),
  REWRITE("Sub", fuse_sum),
};

TN_REWRITE_FAMILY(fuse_norm)
