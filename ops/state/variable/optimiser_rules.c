/* SPDX-License-Identifier: Apache-2.0 */
/* The update rule of each optimiser, and the table of optimisers.
 *
 * SETUP_rule computes constants k[0] ... from n scalars h[0] ..., in the order of the op's inputs.
 * STEP_rule works on the element g of the gradient, v of the variable and a, b, c of the slots,
 * with the constants k0 ... k5. Rules that also support complex numbers multiply and divide with M
 * and Q.
 *
 * Each operation on half and bfloat16 is rounded, by R, as in TensorFlow: otherwise sums in which
 * large numbers cancel would differ. For wider types R does nothing. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/state/variable/optimiser.h>

#include <string.h>
#include <tgmath.h>
#undef I

#define M(x, y) TN__MUL(x, y)
#define Q(x, y) TN__DIV(x, y)
#define LARGER(x, y) ((x) < (y) ? (y) : (x))
/* -1, 0 or 1; NaN stays NaN */
#define SIGN(x) ((x) > 0 ? 1 : SIGN_BELOW(x))
#define SIGN_BELOW(x) ((x) < 0 ? -1 : (x))
/* Shrinks x towards 0 by t; 0 if that would change the sign. */
#define SHRINK(x, t) (((fabs(x) <= (t)) | ((x) == 0)) ? 0 : MOVE_TO_0(x, t))
#define MOVE_TO_0(x, t) ((x) < 0 ? (x) + (t) : (x) - (t))

/* Rounds a float to the nearest half, and to the nearest bfloat16, as tn__half_from_float does. */
static inline float round_half(float x)
{
  uint32_t u = tn__float_bits(x), sign = u & 0x80000000u;
  u ^= sign;
  uint32_t tiny = tn__float_bits((tn__float_of_bits(u) + 0.5f) - 0.5f); /* subnormal: the unit is 2^-24 */
  uint32_t normal = (u + 0xfffu + (u >> 13 & 1u)) & ~0x1fffu;
  uint32_t r = u < 113u << 23 ? tiny : normal;
  r = u >= 0x477ff000u ? 0x7f800000u : r; /* rounds to 2^16 or more */
  r = u > 0x7f800000u ? 0x7fc00000u : r;
  return tn__float_of_bits(r | sign);
}

static inline float round_bfloat16(float x)
{
  uint32_t u = tn__float_bits(x);
  uint32_t r = (u + 0x7fffu + (u >> 16 & 1u)) & ~0xffffu;
  return tn__float_of_bits((u & 0x7fffffffu) > 0x7f800000u ? (u & 0x80000000u) | 0x7fc00000u : r);
}

#define R_f32(x) (x)
#define R_f64(x) (x)
#define R_c64(x) (x)
#define R_c128(x) (x)
#define R_f16 round_half
#define R_bf16 round_bfloat16

/* For constants: not inlined, to save code. */
TN__APART static float round_half_apart(float x) { return round_half(x); }
TN__APART static float round_bfloat16_apart(float x) { return round_bfloat16(x); }
#define RK_f32(x) (x)
#define RK_f64(x) (x)
#define RK_c64(x) (x)
#define RK_c128(x) (x)
#define RK_f16 round_half_apart
#define RK_bf16 round_bfloat16_apart

/* ---- rules: gradient descent and momentum ---- */

#define SETUP_descent(C, R) k[0] = h[0];
#define STEP_descent(C, R) v = R(v - R(M(g, k0)));

/* alpha l1 l2; l1 is ignored unless above 0 */
#define SETUP_proximal(C, R)            \
  k[0] = h[0];                          \
  k[1] = h[1] > 0 ? R(h[0] * h[1]) : 0; \
  k[2] = R(1 + R(h[2] * h[0]));
#define STEP_proximal(C, R)  \
  C p = R(v - R(g * k0));    \
  v = R(R(SHRINK(p, k1)) / k2);

/* lr momentum */
#define SETUP_momentum(C, R) \
  k[0] = h[0];               \
  k[1] = h[1];               \
  k[2] = R(M(h[1], h[0]));
#define STEP_momentum(C, R)    \
  a = R(R(M(a, k1)) + g);      \
  v = R(v - R(M(a, k0)));
#define SETUP_nesterov SETUP_momentum
#define STEP_nesterov(C, R)    \
  a = R(R(M(a, k1)) + g);      \
  v = R(v - R(R(M(g, k0)) + R(M(R(M(a, k1)), k0))));
#define SETUP_nesterov_rows SETUP_momentum
#define STEP_nesterov_rows(C, R) \
  a = R(R(M(a, k1)) + g);        \
  v = R(v - R(R(M(g, k0)) + R(M(a, k2))));
#define SETUP_keras SETUP_momentum
#define STEP_keras(C, R)                 \
  a = R(R(M(a, k1)) - R(M(g, k0)));      \
  v = R(v + a);
#define SETUP_keras_nesterov SETUP_momentum
#define STEP_keras_nesterov(C, R)        \
  a = R(R(M(a, k1)) - R(M(g, k0)));      \
  v = R(v + R(R(M(a, k1)) - R(M(g, k0))));

/* ---- rules: moments ---- */

/* beta1_power beta2_power lr beta1 beta2 epsilon */
#define SETUP_adam(C, R)                                           \
  k[0] = R(Q(R(M(h[2], R(sqrt(R(1 - h[1]))))), R(1 - h[0])));      \
  k[1] = R(1 - h[3]);                                              \
  k[2] = R(1 - h[4]);                                              \
  k[3] = h[5];                                                     \
  k[4] = h[3];
#define MOMENTS(R)                 \
  a = R(a + R(M(R(g - a), k1)));   \
  b = R(b + R(M(R(R(M(g, g)) - b), k2)));
#define STEP_adam(C, R) MOMENTS(R) v = R(v - R(Q(R(M(a, k0)), R(R(sqrt(b)) + k3))));
#define SETUP_adam_nesterov SETUP_adam
#define STEP_adam_nesterov(C, R)                   \
  MOMENTS(R)                                       \
  C p = R(M(R(R(M(g, k1)) + R(M(k4, a))), k0));    \
  v = R(v - R(Q(p, R(R(sqrt(b)) + k3))));
#define SETUP_amsgrad SETUP_adam
#define STEP_amsgrad(C, R) \
  MOMENTS(R)               \
  c = LARGER(c, b);        \
  v = R(v - R(R(a * k0) / R(R(sqrt(c)) + k3)));

/* beta1_power lr beta1 beta2 epsilon */
#define SETUP_adamax(C, R)         \
  k[0] = R(h[1] / R(1 - h[0]));    \
  k[1] = R(1 - h[2]);              \
  k[2] = h[3];                     \
  k[3] = h[4];
#define STEP_adamax(C, R)          \
  a = R(a + R(R(g - a) * k1));     \
  C p = R(k2 * b), q = fabs(g);    \
  b = LARGER(p, q);                \
  v = R(v - R(k0 * R(a / R(b + k3))));

/* lr rho momentum epsilon */
#define SETUP_rmsprop(C, R) \
  k[0] = h[0];              \
  k[1] = R(1 - h[1]);       \
  k[2] = h[2];              \
  k[3] = h[3];              \
  k[4] = h[1];
#define STEP_rmsprop(C, R)                                          \
  a = R(a + R(M(R(R(M(g, g)) - a), k1)));                           \
  b = R(R(M(b, k2)) + R(Q(R(M(g, k0)), R(sqrt(R(a + k3))))));       \
  v = R(v - b);
#define SETUP_rmsprop_rows SETUP_rmsprop
#define STEP_rmsprop_rows(C, R)                                     \
  a = R(R(M(a, k4)) + R(M(R(M(g, g)), k1)));                        \
  C p = R(Q((C)1, sqrt(R(a + k3))));                                   \
  b = R(R(M(b, k2)) + R(M(R(M(p, k0)), g)));                        \
  v = R(v - b);
#define SETUP_centered SETUP_rmsprop
#define STEP_centered(C, R)                                         \
  a = R(a + R(M(R(g - a), k1)));                                    \
  b = R(b + R(M(R(R(M(g, g)) - b), k1)));                           \
  C p = R(sqrt(R(R(b - R(M(a, a))) + k3)));                         \
  c = R(R(M(c, k2)) + R(Q(R(M(g, k0)), p)));                        \
  v = R(v - c);
#define SETUP_centered_rows SETUP_rmsprop
#define STEP_centered_rows(C, R)                                    \
  a = R(R(M(a, k4)) + R(M(g, k1)));                                 \
  b = R(R(M(b, k4)) + R(M(R(M(g, g)), k1)));                        \
  C p = R(Q((C)1, sqrt(R(R(b + k3) - R(M(a, a))))));                   \
  c = R(R(M(c, k2)) + R(M(R(M(p, k0)), g)));                        \
  v = R(v - c);

/* lr alpha sign_decay beta */
#define SETUP_add_sign(C, R) \
  k[0] = h[0];               \
  k[1] = h[1];               \
  k[2] = h[2];               \
  k[3] = h[3];               \
  k[4] = R(1 - h[3]);
#define STEP_add_sign(C, R)               \
  a = R(R(a * k3) + R(g * k4));           \
  C s = SIGN(g), t = SIGN(a);             \
  v = R(v - R(R(k0 * R(k1 + k2 * (s * t))) * g));

/* lr logbase sign_decay beta */
#define SETUP_power_sign(C, R)     \
  C p = R(h[1] * h[2]);            \
  k[0] = h[0];                     \
  k[1] = R(exp(p));                \
  k[2] = R(exp(-p));               \
  k[3] = h[3];                     \
  k[4] = R(1 - h[3]);
#define STEP_power_sign(C, R)                      \
  a = R(R(a * k3) + R(g * k4));                    \
  C s = SIGN(g), t = SIGN(a);                      \
  C p = s * t;                                     \
  C up = p > 0 ? k1 : 1, down = p < 0 ? k2 : 1;    \
  v = R(v - R(R(k0 * (up * down + (p - p))) * g));

/* ---- rules: sums of squares ---- */

/* lr */
#define SETUP_adagrad(C, R) k[0] = h[0];
#define STEP_adagrad(C, R)   \
  a = R(a + R(M(g, g)));     \
  STEP_adagrad_kept(C, R)
#define SETUP_adagrad_kept SETUP_adagrad
#define STEP_adagrad_kept(C, R)     \
  C p = R(Q((C)1, sqrt(a)));           \
  v = R(v - R(M(R(M(g, k0)), p)));

/* lr epsilon */
#define SETUP_adagrad_v2(C, R) \
  k[0] = h[0];                 \
  k[1] = h[1];
#define STEP_adagrad_v2(C, R) \
  a = R(a + R(M(g, g)));      \
  STEP_adagrad_v2_kept(C, R)
#define SETUP_adagrad_v2_kept SETUP_adagrad_v2
#define STEP_adagrad_v2_kept(C, R) v = R(v - R(Q(R(M(g, k0)), R(R(sqrt(a)) + k1))));

/* lr l1 l2, and the number of the step */
#define SETUP_adagrad_da(C, R)                        \
  C count = R((C)step);                               \
  k[0] = h[0];                                        \
  k[1] = h[1] > 0 ? R(h[1] * count) : 0;              \
  k[2] = R(R(h[2] * count) * h[0]);
#define STEP_adagrad_da(C, R)   \
  a = R(a + g);                 \
  b = R(b + R(g * g));          \
  v = R(R(k0 * -R(SHRINK(a, k1))) / R(k2 + R(sqrt(b))));

#define SETUP_adagrad_da_rows(C, R)                   \
  C count = R((C)step);                               \
  k[0] = count;                                       \
  k[1] = h[1] > 0 ? h[1] : 0;                         \
  k[2] = h[2];                                        \
  k[3] = R(count * h[0]);
#define STEP_adagrad_da_rows(C, R)                    \
  a = R(a + g);                                       \
  b = R(b + R(g * g));                                \
  C p = R(a / k0);                                    \
  v = R(-R(SHRINK(p, k1)) / R(k2 + R(R(sqrt(b)) / k3)));

/* lr l1 l2 */
#define SETUP_proximal_adagrad(C, R) \
  k[0] = h[0];                       \
  k[1] = h[1];                       \
  k[2] = h[2];
#define STEP_proximal_adagrad(C, R)           \
  a = R(a + R(g * g));                        \
  C r = R(k0 * R(1 / sqrt(a)));               \
  C p = R(v - R(g * r)), t = R(r * k1);       \
  v = R(R(SHRINK(p, t)) / R(1 + R(k2 * r)));

/* lr rho epsilon */
#define SETUP_adadelta(C, R) \
  k[0] = h[0];               \
  k[1] = h[1];               \
  k[2] = h[2];               \
  k[3] = R(1 - h[1]);
#define STEP_adadelta(C, R)                                          \
  a = R(R(M(a, k1)) + R(M(R(M(g, g)), k3)));                         \
  C r = R(Q((C)1, sqrt(R(a + k2))));                                    \
  C u = R(M(R(M(R(sqrt(R(b + k2))), r)), g));                        \
  v = R(v - R(M(u, k0)));                                            \
  b = R(R(M(b, k1)) + R(M(R(M(u, u)), k3)));

/* lr l1 l2 [l2_shrinkage] lr_power. With the flag everything is multiplied by lr instead of divided
 * by it. */
#define SETUP_ftrl(C, R)                              \
  C rate = h[0];                                      \
  k[0] = flag ? rate : 1;                             \
  k[1] = flag ? 1 : rate;                             \
  k[2] = flag ? R(R(2 * h[2]) * rate) : R(2 * h[2]);  \
  k[3] = flag ? R(h[1] * rate) : h[1];                \
  k[4] = n > 4 ? R(2 * h[3]) : 0;                     \
  k[5] = -h[n - 1];                                   \
  slow = k[5] != (C)0.5;
#define FTRL(C, R, POWER)                                             \
  C s = R(a + R(g * g)), old = R(POWER(a)), root = R(POWER(s));       \
  C grown = R(R(R(root - old) / k1) * v);                             \
  b = R(b + R(R(R(g + R(k4 * v)) * k0) - grown));                     \
  C l = SIGN(b) * k3;                                                 \
  l = R(R(l - b) / R(R(root / k1) + k2));                             \
  v = fabs(b) > k3 ? l : 0;                                           \
  a = s;
#define ANY_POWER(x) pow(x, k5)
#define STEP_ftrl(C, R) FTRL(C, R, sqrt)
#define STEP_ftrl_power(C, R) FTRL(C, R, ANY_POWER)

/* ---- loops ---- */

#define LOAD_1 C g = gs[i], v = p0[i];
#define LOAD_2 LOAD_1 C a = p1[i];
#define LOAD_3 LOAD_2 C b = p2[i];
#define LOAD_4 LOAD_3 C c = p3[i];
#define STORE_1 p0[i] = v;
#define STORE_2 STORE_1 p1[i] = a;
#define STORE_3 STORE_2 p2[i] = b;
#define STORE_4 STORE_3 p3[i] = c;
#define UNUSED(x) (void)(x)

#define ROWS(rule, n_slots, d, count)                                                             \
  typedef tn__C_##d C;                                                                            \
  C *p0 = slots[0], *p1 = slots[1], *p2 = slots[2], *p3 = slots[3];                               \
  const C *gs = grad, *k = constants;                                                             \
  C k0 = k[0], k1 = k[1], k2 = k[2], k3 = k[3], k4 = k[4], k5 = k[5];                             \
  UNUSED(p1), UNUSED(p2), UNUSED(p3), UNUSED(k1), UNUSED(k2), UNUSED(k3), UNUSED(k4), UNUSED(k5); \
  TN__IVDEP                                                                                       \
  for (int64_t i = 0; i < (count); i++) {                                                         \
    LOAD_##n_slots STEP_##rule(C, R_##d) STORE_##n_slots                                          \
  }

#define LOOP(rule, n_slots, d)                                                                              \
  TN__APART static void rule##_##d(void *const *slots, const void *grad, const void *constants, int64_t n)  \
  {                                                                                                         \
    ROWS(rule, n_slots, d, n)                                                                               \
  }
#define WIDE_LOOP(rule, n_slots, d, end, attribute)                                                        \
  attribute static void rule##_##d##_##end(void *const *slots, const void *grad, const void *constants,    \
                                           int64_t n)                                                      \
  {                                                                                                        \
    int64_t whole = n & -(64 / (int64_t)sizeof(tn__C_##d));                                                \
    if (whole > 0) {                                                                                       \
      ROWS(rule, n_slots, d, whole)                                                                        \
    }                                                                                                      \
    if (whole == n) return;                                                                                \
    void *rest[TN__TRAINING_SLOTS] = { NULL };                                                             \
    for (int s = 0; s < n_slots; s++) rest[s] = (tn__C_##d *)slots[s] + whole;                             \
    rule##_##d(rest, (const tn__C_##d *)grad + whole, constants, n - whole);                               \
  }
/* For half and bfloat16, passed as floats: n is a multiple of TN__TRAINING_SHORTS. */
#define SHORT_LOOP_FOR(rule, n_slots, d, name, attribute)                                                   \
  attribute static void name(void *const *slots, const void *grad, const void *constants, int64_t n)        \
  {                                                                                                         \
    int64_t whole = n & -TN__TRAINING_SHORTS;                                                               \
    ROWS(rule, n_slots, d, whole)                                                                           \
  }
#define SHORT_LOOP(rule, n_slots, d) SHORT_LOOP_FOR(rule, n_slots, d, rule##_##d, )
#define WIDE_SHORT_LOOP(rule, n_slots, d, end, attribute) \
  SHORT_LOOP_FOR(rule, n_slots, d, rule##_##d##_##end, attribute)
#define SETUP(rule, d)                                                                                      \
  static bool rule##_setup_##d(const void *const *scalars, uint32_t n, int64_t step, bool flag, void *to)   \
  {                                                                                                         \
    typedef tn__C_##d C;                                                                                    \
    C h[TN__TRAINING_SCALARS] = { 0 }, *k = to;                                                             \
    bool slow = false;                                                                                      \
    UNUSED(step), UNUSED(flag);                                                                             \
    for (uint32_t j = 0; j < n; j++) h[j] = TN__L_##d(*(const tn__S_##d *)scalars[j]);                      \
    SETUP_##rule(C, RK_##d)                                                                                 \
    return slow;                                                                                            \
  }

#define FAST(rule, n_slots, d) SETUP(rule, d) LOOP(rule, n_slots, d) TN__AVX2_LOOPS(WIDE_LOOP, rule, n_slots, d)
#define NARROW(rule, n_slots, d) SETUP(rule, d) LOOP(rule, n_slots, d)
#define SHORT(rule, n_slots, d) \
  SETUP(rule, d)                \
  SHORT_LOOP(rule, n_slots, d)  \
  TN__AVX2_LOOPS(WIDE_SHORT_LOOP, rule, n_slots, d)
#define REAL_LOOPS(rule, n_slots) \
  FAST(rule, n_slots, f32)        \
  FAST(rule, n_slots, f64)        \
  SHORT(rule, n_slots, f16)       \
  SHORT(rule, n_slots, bf16)
#define ENTRY(rule, d, FNS, slow) { TN__D_##d, rule##_setup_##d, FNS(rule##_##d), slow }
#define REAL_ENTRIES(rule)                       \
  ENTRY(rule, f32, TN__AVX2_FNS, NULL),          \
  ENTRY(rule, f64, TN__AVX2_FNS, NULL),          \
  ENTRY(rule, f16, TN__AVX2_FNS, NULL),          \
  ENTRY(rule, bf16, TN__AVX2_FNS, NULL)

#define REALS(rule, n_slots) \
  REAL_LOOPS(rule, n_slots)  \
  static const tn__training_rule rule##_rules[] = { REAL_ENTRIES(rule) };
#define REALS_COMPLEXES(rule, n_slots)                                                        \
  REAL_LOOPS(rule, n_slots)                                                                   \
  NARROW(rule, n_slots, c64)                                                                  \
  NARROW(rule, n_slots, c128)                                                                 \
  static const tn__training_rule rule##_rules[] = { REAL_ENTRIES(rule),                       \
                                                    ENTRY(rule, c64, TN__SAME_FNS, NULL),     \
                                                    ENTRY(rule, c128, TN__SAME_FNS, NULL) };

REALS_COMPLEXES(descent, 1)
REALS(proximal, 1)
REALS_COMPLEXES(momentum, 2)
REALS_COMPLEXES(nesterov, 2)
REALS_COMPLEXES(nesterov_rows, 2)
REALS_COMPLEXES(keras, 2)
REALS_COMPLEXES(keras_nesterov, 2)
REALS_COMPLEXES(adam, 3)
REALS_COMPLEXES(adam_nesterov, 3)
REALS(amsgrad, 4)
REALS(adamax, 3)
REALS_COMPLEXES(rmsprop, 3)
REALS_COMPLEXES(rmsprop_rows, 3)
REALS_COMPLEXES(centered, 4)
REALS_COMPLEXES(centered_rows, 4)
REALS(add_sign, 2)
REALS(power_sign, 2)
REALS_COMPLEXES(adagrad, 2)
REALS_COMPLEXES(adagrad_kept, 2)
REALS_COMPLEXES(adagrad_v2, 2)
REALS_COMPLEXES(adagrad_v2_kept, 2)
REALS(adagrad_da, 3)
REALS(adagrad_da_rows, 3)
REALS(proximal_adagrad, 2)
REALS_COMPLEXES(adadelta, 3)

REAL_LOOPS(ftrl, 3)
LOOP(ftrl_power, 3, f32)
LOOP(ftrl_power, 3, f64)
SHORT_LOOP(ftrl_power, 3, f16)
SHORT_LOOP(ftrl_power, 3, bf16)
static const tn__training_rule ftrl_rules[] = { ENTRY(ftrl, f32, TN__AVX2_FNS, ftrl_power_f32),
                                                ENTRY(ftrl, f64, TN__AVX2_FNS, ftrl_power_f64),
                                                ENTRY(ftrl, f16, TN__AVX2_FNS, ftrl_power_f16),
                                                ENTRY(ftrl, bf16, TN__AVX2_FNS, ftrl_power_bf16) };

/* ---- the table ---- */

#define RULES(rule) { rule##_rules, sizeof rule##_rules / sizeof rule##_rules[0] }
#define BOTH(rule) { RULES(rule), RULES(rule) }
#define FLAG(name_, off, on) .flag = name_, .rules = { RULES(off), RULES(on) }
#define ROW(name_, slots_, before_, cost_) \
  .name = name_, .n_slots = slots_, .n_before = before_, .cost_ns = cost_

const tn__training_row tn__training_rows[] = {
  { ROW("GradientDescent", 1, 1, 0.2), .rules = BOTH(descent) },
  { ROW("ProximalGradientDescent", 1, 3, 0.4), .rules = BOTH(proximal), .inner = true },
  { ROW("Momentum", 2, 1, 0.3), FLAG("use_nesterov", momentum, nesterov),
    .of_rows = { RULES(momentum), RULES(nesterov_rows) } },
  { ROW("KerasMomentum", 2, 1, 0.3), FLAG("use_nesterov", keras, keras_nesterov) },
  { ROW("Adam", 3, 6, 0.8), FLAG("use_nesterov", adam, adam_nesterov) },
  { ROW("AdamWithAmsgrad", 4, 6, 0.9), .rules = BOTH(amsgrad) },
  { ROW("AdaMax", 3, 5, 0.6), .rules = BOTH(adamax) },
  { ROW("RMSProp", 3, 4, 0.8), .rules = BOTH(rmsprop), .of_rows = BOTH(rmsprop_rows) },
  { ROW("CenteredRMSProp", 4, 4, 0.9), .rules = BOTH(centered), .of_rows = BOTH(centered_rows) },
  { ROW("AddSign", 2, 4, 0.4), .rules = BOTH(add_sign) },
  { ROW("PowerSign", 2, 4, 0.4), .rules = BOTH(power_sign) },
  { ROW("Adagrad", 2, 1, 0.7), FLAG("update_slots", adagrad_kept, adagrad), .flag_default = true, .inner = true },
  { ROW("AdagradV2", 2, 2, 0.7), FLAG("update_slots", adagrad_v2_kept, adagrad_v2), .flag_default = true,
    .inner = true },
  { ROW("AdagradDA", 3, 0, 0.9), .rules = BOTH(adagrad_da), .of_rows = BOTH(adagrad_da_rows), .inner = true },
  { ROW("ProximalAdagrad", 2, 3, 0.9), .rules = BOTH(proximal_adagrad), .limits = { "+00", "+00" }, .inner = true },
  { ROW("Adadelta", 3, 3, 1.2), .rules = BOTH(adadelta) },
  { ROW("Ftrl", 3, 0, 1.5), FLAG("multiply_linear_by_lr", ftrl, ftrl), .limits = { NULL, "/00-" }, .inner = true },
  { ROW("FtrlV2", 3, 0, 1.5), FLAG("multiply_linear_by_lr", ftrl, ftrl), .limits = { NULL, "/000-" }, .inner = true },
};
const size_t tn__n_training_rows = sizeof tn__training_rows / sizeof tn__training_rows[0];

static bool take(const char **text, const char *word)
{
  size_t n = strlen(word);
  if (strncmp(*text, word, n) != 0) return false;
  *text += n;
  return true;
}

tn__training_form tn__training_form_of(const char *type)
{
  tn__training_form f = { .row = NULL };
  f.by_reference = !take(&type, "Resource");
  f.sparse = take(&type, "Sparse");
  if (!take(&type, "Apply")) return f;
  for (size_t i = 0; i < tn__n_training_rows && f.row == NULL; i++)
    if (strcmp(tn__training_rows[i].name, type) == 0) f.row = &tn__training_rows[i];
  return f;
}

const tn__training_rule *tn__training_rule_of(const tn__training_row *row, bool sparse, bool flag, tn_dtype dtype)
{
  const tn__training_rules *rules = sparse && row->of_rows[flag].n > 0 ? &row->of_rows[flag] : &row->rules[flag];
  for (size_t i = 0; i < rules->n; i++)
    if (rules->of[i].dtype == dtype) return &rules->of[i];
  return NULL;
}
