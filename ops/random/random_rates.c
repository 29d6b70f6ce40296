/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of distributions with a parameter: RandomGamma RandomPoisson RandomPoissonV2, and
 * StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomPoisson, which are functions of a
 * seed. Gamma: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables". Poisson:
 * Knuth's products for small rates, otherwise Hormann, "The Transformed Rejection Method for
 * Generating Poisson Random Variables". Each sample has its own range of the generator. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <ops/random/random_source.h>

#define GRAIN 256     /* samples; fewer are not worth another thread */
#define COST_NS 120   /* per sample */
#define TRIES 1000    /* maximum per sample; ordinary parameters rarely need ten */
#define TRY_NS 40
#define FAR 40.0      /* standard deviations; samples this far below the rate do not occur */

/* ---- the numbers of one sample ---- */

/* Numbers are made in pairs, and the second of a pair is used first, as in TensorFlow. */
typedef struct source {
  tn__philox generator;
  double uniforms[2], normals[2];
  int uniforms_left, normals_left;
  int tries;
} source;

static source stretch_of(const tn__philox *from, int64_t sample)
{
  source s = { .generator = *from };
  tn__philox_skip(&s.generator, (uint64_t)sample * TN__RANDOM_BLOCKS);
  return s;
}

static double uniform(source *s)
{
  if (s->uniforms_left == 0) {
    uint32_t words[4];
    tn__philox_next(&s->generator, words);
    s->uniforms[0] = tn__uniform_double(words[0], words[1]);
    s->uniforms[1] = tn__uniform_double(words[2], words[3]);
    s->uniforms_left = 2;
  }
  return s->uniforms[--s->uniforms_left];
}

static double normal(source *s)
{
  if (s->normals_left == 0) {
    uint32_t words[4];
    tn__philox_next(&s->generator, words);
    tn__normal_doubles(words, s->normals);
    s->normals_left = 2;
  }
  return s->normals[--s->normals_left];
}

/* ---- one sample ---- */

static double gamma_sample(source *s, double alpha, double largest)
{
  (void)largest;
  if (alpha == 1) return -log1p(-uniform(s));
  double d = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  if (!(d >= 0)) return NAN; /* no sample would be accepted for such a parameter */
  while (s->tries++ < TRIES) {
    double x = normal(s), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    double u = uniform(s);
    if (!(u < 1 - 0.0331 * (x * x) * (x * x)) && !(log(u) < 0.5 * x * x + d * (1 - v + log(v)))) continue;
    return alpha < 1 ? d * v * pow(uniform(s), 1 / alpha) : d * v;
  }
  return alpha < 1 ? NAN : alpha;
}

/* log(k!) for integral k >= 0. Not lgamma, which stores the sign in a global variable and is not
 * thread-safe. */
static double log_factorial(double k)
{
  if (k < 20) {
    double product = 1;
    for (double i = 2; i <= k; i++) product *= i;
    return log(product);
  }
  double x = k + 1, r = 1 / (x * x); /* Stirling's series */
  return (x - 0.5) * log(x) - x + 0.918938533204672741780 +
         (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680)))) / x;
}

static double poisson_small(source *s, double rate, double largest)
{
  double bound = exp(-rate), product = 1;
  for (double k = 0;; k++) {
    product *= uniform(s);
    if (product <= bound && k <= largest) return k;
  }
}

/* Samples above the largest number of the output's dtype are drawn again, as in TensorFlow.
 * TensorFlow never ends if no smaller sample is possible; here the result is then the largest
 * number. */
static double poisson_sample(source *s, double rate, double largest)
{
  if (isnan(rate)) return rate;
  if (isinf(rate) && rate > 0) return rate;
  if (rate < 10) return poisson_small(s, rate, largest);
  if (rate - FAR * sqrt(rate) > largest) return largest;
  double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  while (s->tries++ < TRIES) {
    double u = uniform(s) - 0.5, v = uniform(s), tail = 0.5 - fabs(u);
    double k = floor((2 * a / tail + b) * u + rate + 0.43);
    if (k > largest) continue;
    if (tail >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (tail < 0.013 && v > tail)) continue;
    double weight = log(v * inverse_alpha / (a / (tail * tail) + b));
    if (weight <= -rate + k * log_rate - log_factorial(k)) return k;
  }
  return rate < largest ? floor(rate) : largest;
}

/* ---- elements ---- */

static double parameter(const tn_view *v, int64_t i)
{
  switch (v->dtype) {
  case TN_FLOAT: return (double)((const float *)v->data)[i];
  case TN_DOUBLE: return ((const double *)v->data)[i];
  case TN_HALF: return (double)tn__half_to_float(((const uint16_t *)v->data)[i]);
  case TN_BFLOAT16: return (double)tn__bfloat16_to_float(((const uint16_t *)v->data)[i]);
  default: return (double)tn__view_int_at(v, i);
  }
}

/* Stores 0 if an integer dtype cannot represent x. */
static void store(const tn_view *out, int64_t i, double x)
{
  switch (out->dtype) {
  case TN_FLOAT: ((float *)out->data)[i] = (float)x; break;
  case TN_DOUBLE: ((double *)out->data)[i] = x; break;
  case TN_HALF: ((uint16_t *)out->data)[i] = tn__half_from_double(x); break;
  case TN_BFLOAT16: ((uint16_t *)out->data)[i] = tn__bfloat16_from_double(x); break;
  case TN_INT32: ((int32_t *)out->data)[i] = x >= 0 && x <= INT32_MAX ? (int32_t)x : 0; break;
  default: ((int64_t *)out->data)[i] = x >= 0 && x < 0x1p63 ? (int64_t)x : 0;
  }
}

static double largest_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_INT32: return INT32_MAX;
  case TN_INT64: return 0x1.fffffffffffffp62;
  case TN_HALF: return 65504;
  case TN_FLOAT: return 0x1.fffffep127;
  default: return HUGE_VAL;
  }
}

typedef double (*sample_fn)(source *s, double parameter, double largest);

typedef struct job {
  tn__philox from;
  const tn_view *parameters, *out;
  sample_fn sample;
  int64_t each; /* samples per parameter */
  double largest;
} job;

/* Samples are numbered with all samples of one parameter together, but stored in the output with
 * the parameters as the inner dimension. */
static void draw_part(void *user, int64_t begin, int64_t end)
{
  const job *j = user;
  tn__poll poll = tn__poll_here();
  for (int64_t i = begin; i < end; i++) {
    source s = stretch_of(&j->from, i);
    int64_t which = i / j->each;
    store(j->out, i % j->each * j->parameters->count + which,
          j->sample(&s, parameter(j->parameters, which), j->largest));
    if (tn__poll_over(&poll, COST_NS + (int64_t)s.tries * TRY_NS)) return;
  }
}

static tn_status draw(tn_kernel_ctx *ctx, const tn__philox *from, uint32_t parameters, sample_fn sample)
{
  const tn_view *out = ctx->outputs[0];
  job j = { *from, ctx->inputs[parameters], out, sample, 0, largest_of(out->dtype) };
  if (out->count == 0) return TN_OK;
  j.each = out->count / j.parameters->count;
  if (out->count <= 2 * GRAIN)
    draw_part(&j, 0, out->count);
  else
    tn_parallel_for(ctx, out->count, GRAIN, COST_NS, draw_part, &j);
  return TN_OK;
}

/* ---- kernels ---- */

/* The output's shape is the wanted shape followed by that of the parameters. */
static tn_status appended_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *v = &ctx->inputs[1];
  tn__shape s;
  tn_status st = tn__random_shape(ctx, 0, &s, err);
  for (int32_t k = 0; st == TN_OK && k < v->rank; k++)
    if (!tn__shape_append(&s, v->dims[k]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output would have %d dimensions, at most %d are possible",
                          tn_operation_type(ctx->op), (int)(s.rank + v->rank - k), TN_MAX_RANK);
  if (st != TN_OK) return st;
  double count = COST_NS;
  for (int32_t k = 0; k < s.rank; k++) count *= (double)s.dims[k];
  ctx->cost_ns = 20 + count;
  return tn_prepare_output(ctx, 0, s.dims, s.rank, err);
}

/* The output's shape is the wanted shape, which must end in that of the parameters, input i. */
static tn_status ending_prepare(tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  tn__shape s;
  const tn_view *v = &ctx->inputs[i];
  tn_status st = tn__random_shape(ctx, 0, &s, err);
  if (st != TN_OK) return st;
  bool fits = v->rank <= s.rank;
  for (int32_t k = 0; fits && k < v->rank; k++) fits = v->dims[k] == s.dims[s.rank - v->rank + k];
  if (!fits) return tn__shape_error(err, ctx, i, s.dims, s.rank);
  return tn__random_prepare(ctx, COST_NS, err);
}

static tn_status seeded_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__random_want_seed(ctx, 1, err);
  return st != TN_OK ? st : ending_prepare(ctx, 2, err);
}

static tn_status keyed_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__random_want_key(ctx, 1, err);
  return st != TN_OK ? st : ending_prepare(ctx, 4, err);
}

static tn_status draw_next(tn_kernel_ctx *ctx, sample_fn sample)
{
  tn__philox from = tn__random_reserve(ctx->state, ctx->outputs[0]->count, TN__RANDOM_BLOCKS);
  return draw(ctx, &from, 1, sample);
}

static tn_status draw_seeded(tn_kernel_ctx *ctx, sample_fn sample)
{
  tn__philox from = tn__random_seeded(ctx->inputs[1]);
  return draw(ctx, &from, 2, sample);
}

static tn_status gamma_compute(tn_kernel_ctx *ctx) { return draw_next(ctx, gamma_sample); }
static tn_status poisson_compute(tn_kernel_ctx *ctx) { return draw_next(ctx, poisson_sample); }
static tn_status seeded_gamma(tn_kernel_ctx *ctx) { return draw_seeded(ctx, gamma_sample); }
static tn_status seeded_poisson(tn_kernel_ctx *ctx) { return draw_seeded(ctx, poisson_sample); }

static tn_status keyed_gamma(tn_kernel_ctx *ctx)
{
  tn__philox from;
  tn_status st = tn__random_keyed(ctx, 1, "StatelessRandomGammaV3", &from);
  return st != TN_OK ? st : draw(ctx, &from, 4, gamma_sample);
}

/* ---- shape functions ---- */

static tn_status infer_appended(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, parameters;
  tn_status st = tn__infer_rank(ctx, 0, 1, &s, err);
  if (st != TN_OK) return st;
  s.rank = tn_infer_input_as_shape(ctx, 0, s.dims);
  tn__infer_get(ctx, 1, &parameters);
  if (parameters.rank < 0) tn__shape_unknown(&s);
  for (int32_t k = 0; k < parameters.rank; k++)
    if (!tn__shape_append(&s, parameters.dims[k]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output would have more than %d dimensions",
                          tn__infer_op(ctx), TN_MAX_RANK);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, is, shapes, text)                                             \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = is, .shape_operands = 1u << 0, .infer = shapes, .summary = text }
#define MOVING (TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM)
#define SEEDS "seed: int = 0; seed2: int = 0; "
#define FLOATS "{half, float, double}"
#define NUMBERS "{half, float, double, int32, int64}"
#define GAMMA "samples of gamma distributions"
#define POISSON "samples of Poisson distributions"

static const tn_op_def ops[] = {
  OP("RandomGamma", "shape: S, alpha: T", "output: T", SEEDS "S: {int32, int64}; T: " FLOATS, MOVING, infer_appended,
     GAMMA),
  OP("RandomPoisson", "shape: S, rate: dtype", "output: dtype", SEEDS "S: {int32, int64}; dtype: " FLOATS, MOVING,
     infer_appended, POISSON),
  OP("RandomPoissonV2", "shape: S, rate: R", "output: dtype",
     SEEDS "S: {int32, int64}; R: " NUMBERS " = double; dtype: " NUMBERS " = int64", MOVING, infer_appended, POISSON),
  OP("StatelessRandomGammaV2", "shape: T, seed: Tseed, alpha: dtype", "output: dtype",
     "dtype: " FLOATS "; T: {int32, int64}; Tseed: {int32, int64} = int64", 0, tn__infer_seeded, GAMMA),
  OP("StatelessRandomGammaV3", "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype",
     "output: dtype", "dtype: " FLOATS "; shape_dtype: {int32, int64} = int32", 0, tn__infer_keyed, GAMMA),
  OP("StatelessRandomPoisson", "shape: T, seed: Tseed, lam: Rtype", "output: dtype",
     "Rtype: " NUMBERS "; dtype: " NUMBERS "; T: {int32, int64}; Tseed: {int32, int64} = int64", 0, tn__infer_seeded,
     POISSON),
};

#define MOVING_KERNEL(which, title, compute_fn) \
  TN__KERNEL(which, title, tn__random_create, tn__random_destroy, appended_prepare, compute_fn)

static const tn_kernel_def kernels[] = {
  MOVING_KERNEL("RandomGamma", "random_gamma_cpu", gamma_compute),
  MOVING_KERNEL("RandomPoisson", "random_poisson_v1_cpu", poisson_compute),
  MOVING_KERNEL("RandomPoissonV2", "random_poisson_cpu", poisson_compute),
  TN__KERNEL("StatelessRandomGammaV2", "seeded_gamma_cpu", NULL, NULL, seeded_prepare, seeded_gamma),
  TN__KERNEL("StatelessRandomGammaV3", "keyed_gamma_cpu", NULL, NULL, keyed_prepare, keyed_gamma),
  TN__KERNEL("StatelessRandomPoisson", "seeded_poisson_cpu", NULL, NULL, seeded_prepare, seeded_poisson),
};

TN_OP_FAMILY(random_rates)
