/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of float for steps of programs, for vectors of the machine that is there. A block lies in the first cache, where
 * wide vectors pay; the plain ops' own loops are for the baseline of the architecture. Expressions are those of the
 * plain ops (math_unary.c, math_binary.c, activation.c): no result differs by a bit. */
#include <ops/support/program.h>
#include <ops/support/rounding.h>
#include <ops/support/vector_math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)

static inline float sign_of(float x) { return x != x ? x : (float)(x > 0) - (float)(x < 0); }

/* X(target, attribute, op, expression of x) */
#define ONE(X, target, attribute)                              \
  X(target, attribute, Neg, -x)                                \
  X(target, attribute, Abs, fabsf(x))                          \
  X(target, attribute, Sign, sign_of(x))                       \
  X(target, attribute, Square, x *x)                           \
  X(target, attribute, Sqrt, sqrtf(x))                         \
  X(target, attribute, Rsqrt, 1 / sqrtf(x))                    \
  X(target, attribute, Exp, tn__expf(x))                       \
  X(target, attribute, Log, tn__logf(x))                       \
  X(target, attribute, Tanh, tn__tanhf(x))                     \
  X(target, attribute, Sigmoid, tn__sigmoidf(x))               \
  X(target, attribute, Floor, tn__floor_f(x))                  \
  X(target, attribute, Ceil, tn__ceil_f(x))                    \
  X(target, attribute, Round, tn__round_f(x))                  \
  X(target, attribute, Reciprocal, 1 / x)                      \
  X(target, attribute, Relu, x <= 0 ? 0 : x)                   \
  X(target, attribute, Relu6, x <= 0 ? 0 : x > 6 ? 6 : x)      \
  X(target, attribute, Softsign, x / (1 + fabsf(x)))

/* The same of x and y. */
#define TWO(X, target, attribute)                              \
  X(target, attribute, AddV2, x + y)                           \
  X(target, attribute, Sub, x - y)                             \
  X(target, attribute, Mul, x *y)                              \
  X(target, attribute, RealDiv, x / y)                         \
  X(target, attribute, Maximum, TN__MAX(x, y))                 \
  X(target, attribute, Minimum, TN__MIN(x, y))                 \
  X(target, attribute, SquaredDifference, (x - y) * (x - y))

#define ONE_LOOP(target, attribute, op, expression)                            \
  attribute static void op##_##target(const void *x_, void *out_, int64_t n)   \
  {                                                                            \
    const float *xs = x_;                                                      \
    float *out = out_;                                                         \
    TN__IVDEP                                                                  \
    for (int64_t i = 0; i < n; i++) {                                          \
      float x = xs[i];                                                         \
      out[i] = expression;                                                     \
    }                                                                          \
  }

#define TWO_FOR(expression, xi, yi)                \
  TN__IVDEP                                        \
  for (int64_t i = 0; i < n; i++) {                \
    float x = xi, y = yi;                          \
    out[i] = expression;                           \
  }
#define TWO_LOOP(target, attribute, op, expression)                                                    \
  attribute static bool op##_##target(const void *x_, int64_t sx, const void *y_, int64_t sy, void *out_, int64_t n) \
  {                                                                                                    \
    const float *xs = x_, *ys = y_;                                                                    \
    float *out = out_;                                                                                 \
    if (sx != 0 && sy != 0) {                                                                          \
      TWO_FOR(expression, xs[i], ys[i])                                                                \
    } else if (n > 0 && sx != 0) {                                                                     \
      float y0 = ys[0];                                                                                \
      TWO_FOR(expression, xs[i], y0)                                                                   \
    } else if (n > 0) {                                                                                \
      float x0 = xs[0];                                                                                \
      TWO_FOR(expression, x0, ys[i])                                                                   \
    }                                                                                                  \
    return false;                                                                                      \
  }

#define LOOPS(target, attribute)   \
  ONE(ONE_LOOP, target, attribute) \
  TWO(TWO_LOOP, target, attribute)
LOOPS(avx2, __attribute__((target("avx2"))))
LOOPS(avx512, __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))))

typedef struct one_loop {
  const char *op;
  tn__one_fn avx2, avx512;
} one_loop;
typedef struct two_loop {
  const char *op;
  tn__two_fn avx2, avx512;
} two_loop;

#define ENTRY(target, attribute, op, expression) { #op, op##_avx2, op##_avx512 },
static const one_loop ones[] = { ONE(ENTRY, , ) };
static const two_loop twos[] = { TWO(ENTRY, , ) };

/* The name under which an op's expression stands above. */
static const char *expression_of(const char *op)
{
  static const char *const same[][2] = { { "Add", "AddV2" }, { "BiasAdd", "AddV2" }, { "Div", "RealDiv" },
                                         { "Inv", "Reciprocal" } };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (strcmp(same[i][0], op) == 0) return same[i][1];
  return op;
}

void tn__step_widen(tn__step *s)
{
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (!wide && !__builtin_cpu_supports("avx2")) return;
  const char *name = expression_of(s->op->name);
  for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
    if (strcmp(ones[i].op, name) == 0) s->one = wide ? ones[i].avx512 : ones[i].avx2;
  for (size_t i = 0; i < sizeof twos / sizeof *twos; i++)
    if (strcmp(twos[i].op, name) == 0) s->two = wide ? twos[i].avx512 : twos[i].avx2;
}

#else
void tn__step_widen(tn__step *s) { (void)s; }
#endif
