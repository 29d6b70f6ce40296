/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the passes of a transform (Stockham's order) for numbers of type REAL, in functions named NAME(...)
 * with the attribute TARGET. Before a pass with factor p, transforms of length l are complete, in `ido` places each. */
typedef REAL NAME(vec) __attribute__((vector_size(32), may_alias));
typedef struct __attribute__((may_alias)) NAME(pair) {
  NAME(vec) re, im;
} NAME(pair);

#define IN(j) in[i + ido * ((j) + p * k)]
#define OUT(j) out[i + ido * (k + l * (j))]
/* Number j of the results, times its root. */
#define PUT(j, r_, i_)                                                        \
  do {                                                                        \
    const REAL c_ = roots[2 * (j) * l * i], s_ = roots[2 * (j) * l * i + 1];  \
    const NAME(vec) re_ = (r_), im_ = (i_);                                   \
    OUT(j) = (NAME(pair)){ re_ * c_ - im_ * s_, re_ * s_ + im_ * c_ };        \
  } while (0)

TARGET static void NAME(pass2)(const REAL *roots, int64_t l, int64_t ido, const NAME(pair) *in,
                               NAME(pair) *restrict out)
{
  const int64_t p = 2;
  for (int64_t k = 0; k < l; k++)
    for (int64_t i = 0; i < ido; i++) {
      const NAME(pair) a = IN(0), b = IN(1);
      OUT(0) = (NAME(pair)){ a.re + b.re, a.im + b.im };
      PUT(1, a.re - b.re, a.im - b.im);
    }
}

TARGET static void NAME(pass4)(const REAL *roots, int64_t l, int64_t ido, const NAME(pair) *in,
                               NAME(pair) *restrict out)
{
  const int64_t p = 4;
  for (int64_t k = 0; k < l; k++)
    for (int64_t i = 0; i < ido; i++) {
      const NAME(pair) a = IN(0), b = IN(1), c = IN(2), d = IN(3);
      const NAME(vec) sr = a.re + c.re, si = a.im + c.im, dr = a.re - c.re, di = a.im - c.im;
      const NAME(vec) tr = b.re + d.re, ti = b.im + d.im, er = b.re - d.re, ei = b.im - d.im;
      OUT(0) = (NAME(pair)){ sr + tr, si + ti };
      PUT(1, dr + ei, di - er);
      PUT(2, sr - tr, si - ti);
      PUT(3, dr - ei, di + er);
    }
}

/* An odd factor: sums and differences of numbers j and p - j share their products. */
TARGET __attribute__((always_inline)) static inline void NAME(odd)(const REAL *roots, int64_t m, int64_t p, int64_t l,
                                                                   int64_t ido, const NAME(pair) *in,
                                                                   NAME(pair) *restrict out)
{
  const int64_t half = p / 2, step = m / p;
  NAME(pair) sum[TN__FOURIER_PRIME / 2 + 1], dif[TN__FOURIER_PRIME / 2 + 1];
  for (int64_t k = 0; k < l; k++)
    for (int64_t i = 0; i < ido; i++) {
      const NAME(pair) first = IN(0);
      NAME(pair) all = first;
      for (int64_t j = 1; j <= half; j++) {
        const NAME(pair) a = IN(j), b = IN(p - j);
        sum[j] = (NAME(pair)){ a.re + b.re, a.im + b.im };
        dif[j] = (NAME(pair)){ a.re - b.re, a.im - b.im };
        all.re += sum[j].re;
        all.im += sum[j].im;
      }
      OUT(0) = all;
      for (int64_t q = 1; q <= half; q++) {
        NAME(pair) even = first, odd = { { 0 }, { 0 } };
        int64_t turn = 0;
        for (int64_t j = 1; j <= half; j++) {
          turn = turn + q >= p ? turn + q - p : turn + q;
          const REAL c = roots[2 * turn * step], s = roots[2 * turn * step + 1];
          even.re += sum[j].re * c;
          even.im += sum[j].im * c;
          odd.re -= dif[j].im * s;
          odd.im += dif[j].re * s;
        }
        PUT(q, even.re + odd.re, even.im + odd.im);
        PUT(p - q, even.re - odd.re, even.im - odd.im);
      }
    }
}

TARGET static void NAME(pass_odd)(const REAL *roots, int64_t m, int64_t p, int64_t l, int64_t ido, const NAME(pair) *in,
                                  NAME(pair) *restrict out)
{
  if (p == 3) NAME(odd)(roots, m, 3, l, ido, in, out);
  else if (p == 5) NAME(odd)(roots, m, 5, l, ido, in, out);
  else NAME(odd)(roots, m, p, l, ido, in, out);
}

TARGET static void *NAME(passes)(const tn__fourier *f, void *block, void *other)
{
  int64_t l = 1;
  for (int s = 0; s < f->n_factors; s++) {
    const int64_t p = f->factors[s], ido = f->m / (l * p);
    if (p == 4) NAME(pass4)(f->roots, l, ido, block, other);
    else if (p == 2) NAME(pass2)(f->roots, l, ido, block, other);
    else NAME(pass_odd)(f->roots, f->m, p, l, ido, block, other);
    void *t = block;
    block = other;
    other = t;
    l *= p;
  }
  return block;
}

/* Bluestein's form: a convolution with the chirp. The second transform is an inverse one, as the parts are swapped. */
TARGET static void *NAME(chirped)(const tn__fourier *f, void *block, void *other)
{
  const REAL *chirp = f->chirp, *filter = f->filter;
  NAME(pair) *a = block;
  for (int64_t k = 0; k < f->n; k++) {
    const REAL c = chirp[2 * k], s = chirp[2 * k + 1];
    const NAME(vec) re = a[k].re, im = a[k].im;
    a[k] = (NAME(pair)){ re * c - im * s, re * s + im * c };
  }
  for (int64_t k = f->n; k < f->m; k++) a[k] = (NAME(pair)){ { 0 }, { 0 } };
  a = NAME(passes)(f, block, other);
  other = a == block ? other : block;
  for (int64_t k = 0; k < f->m; k++) {
    const REAL c = filter[2 * k], s = filter[2 * k + 1];
    const NAME(vec) re = a[k].re, im = a[k].im;
    a[k] = (NAME(pair)){ re * s + im * c, re * c - im * s };
  }
  a = NAME(passes)(f, a, other);
  for (int64_t k = 0; k < f->n; k++) {
    const REAL c = chirp[2 * k], s = chirp[2 * k + 1];
    const NAME(vec) re = a[k].im, im = a[k].re;
    a[k] = (NAME(pair)){ re * c - im * s, re * s + im * c };
  }
  return a;
}

TARGET static void *NAME(run)(const tn__fourier *f, void *block, void *other)
{
  return f->chirp != NULL ? NAME(chirped)(f, block, other) : NAME(passes)(f, block, other);
}

#undef IN
#undef OUT
#undef PUT
#undef REAL
#undef NAME
#undef TARGET
