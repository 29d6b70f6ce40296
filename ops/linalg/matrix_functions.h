/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the functions of matrix.h for elements T with parts R, named NAME(...). MAKE, MUL, DIV, CONJ,
 * RE, IM and GEMM are those of T. */

#define NORM2(x) (RE(x) * RE(x) + IM(x) * IM(x))
#define SCALE(x, r) MAKE(RE(x) * (r), IM(x) * (r))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

static void NAME(copy)(const T *from, int64_t rows, int64_t columns, T *to)
{
  if (rows * columns > 0) memcpy(to, from, (size_t)(rows * columns) * sizeof(T));
}

static void NAME(identity)(T *to, int64_t rows, int64_t columns)
{
  if (rows * columns > 0) memset(to, 0, (size_t)(rows * columns) * sizeof(T));
  for (int64_t i = 0; i < rows && i < columns; i++) to[i * columns + i] = MAKE(1, 0);
}

/* The conjugate transpose of a matrix of rows x columns, whose rows are ld apart. */
static void NAME(turn)(const T *a, int64_t ld, int64_t rows, int64_t columns, T *to)
{
  for (int64_t i0 = 0; i0 < rows; i0 += 16)
    for (int64_t j = 0; j < columns; j++)
      for (int64_t i = i0; i < rows && i < i0 + 16; i++) to[j * rows + i] = CONJ(a[i * ld + j]);
}

static void NAME(minus_row)(T f, const T *restrict from, T *restrict to, int64_t n)
{
  for (int64_t j = 0; j < n; j++) to[j] = to[j] - MUL(f, from[j]);
}

/* c -= a b, of m x k and k x n; `room` has m x n elements. */
static void NAME(minus_product)(const T *a, int64_t a_row, const T *b, int64_t b_row, T *c, int64_t c_row, int64_t m,
                                int64_t n, int64_t k, T *room)
{
  if (m * n * k < SMALL) {
    for (int64_t i = 0; i < m; i++)
      for (int64_t t = 0; t < k; t++) NAME(minus_row)(a[i * a_row + t], b + t * b_row, c + i * c_row, n);
    return;
  }
  tn__gemm_plan plan = { .type = GEMM, .m = m, .n = n, .k = k, .a_row = a_row, .a_col = 1, .b_row = b_row, .b_col = 1,
                         .c_row = n, .serial = true };
  tn__gemm_plan_choose(&plan);
  tn__gemm_run(&plan, NULL, a, b, room, NULL);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) c[i * c_row + j] = c[i * c_row + j] - room[i * n + j];
}

/* b = inverse of the triangle of a, times b, which has k columns. `unit`: the diagonal counts as ones. */
static void NAME(triangle)(const T *a, int64_t n, bool lower, bool unit, T *b, int64_t k, T *room)
{
  for (int64_t done = 0; done < n; done += BLOCK) {
    const int64_t count = n - done < BLOCK ? n - done : BLOCK, first = lower ? done : n - done - count;
    if (lower) NAME(minus_product)(a + first * n, n, b, k, b + first * k, k, count, k, first, room);
    else
      NAME(minus_product)(a + first * n + first + count, n, b + (first + count) * k, k, b + first * k, k, count, k,
                          done, room);
    for (int64_t s = 0; s < count; s++) {
      const int64_t i = lower ? first + s : first + count - 1 - s;
      for (int64_t t = 0; t < s; t++) {
        const int64_t j = lower ? first + t : first + count - 1 - t;
        NAME(minus_row)(a[i * n + j], b + j * k, b + i * k, k);
      }
      for (int64_t c = 0; c < k && !unit; c++) b[i * k + c] = DIV(b[i * k + c], a[i * n + i]);
    }
  }
}

/* Factors a in place, rows of the lower triangle. False if it is not positive definite. room: n x n. */
static bool NAME(factor_positive)(T *a, int64_t n, T *room)
{
  T column[BLOCK];
  for (int64_t j0 = 0; j0 < n; j0 += BLOCK) {
    const int64_t j1 = j0 + BLOCK < n ? j0 + BLOCK : n, rest = n - j1, width = j1 - j0;
    for (int64_t j = j0; j < j1; j++) {
      const R square = RE(a[j * n + j]);
      if (!(square > 0)) return false;
      const R d = SQRT(square);
      a[j * n + j] = MAKE(d, 0);
      for (int64_t i = j + 1; i < n; i++) a[i * n + j] = MAKE(RE(a[i * n + j]) / d, IM(a[i * n + j]) / d);
      for (int64_t c = j + 1; c < j1; c++) column[c - j0] = CONJ(a[c * n + j]);
      for (int64_t i = j + 1; i < n; i++)
        NAME(minus_row)(a[i * n + j], column + (j + 1 - j0), a + i * n + j + 1, (i < j1 ? i + 1 : j1) - j - 1);
    }
    T *turned = room, *more = room + width * rest;
    NAME(turn)(a + j1 * n + j0, n, rest, width, turned);
    for (int64_t i = j1; i < n; i += BLOCK) {
      const int64_t rows = n - i < BLOCK ? n - i : BLOCK;
      NAME(minus_product)(a + i * n + j0, n, turned, rest, a + i * n + j1, n, rows, i + rows - j1, width, more);
    }
  }
  return true;
}

/* Factors a in place, with pivots by rows: row i was row order[i]. Returns the sign of the order. room: n x n. */
static int NAME(factor)(T *a, int64_t n, int64_t *order, T *room)
{
  int sign = 1;
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t j0 = 0; j0 < n; j0 += BLOCK) {
    const int64_t j1 = j0 + BLOCK < n ? j0 + BLOCK : n;
    for (int64_t j = j0; j < j1; j++) {
      int64_t best = j;
      for (int64_t i = j + 1; i < n; i++)
        if (ABS(a[i * n + j]) > ABS(a[best * n + j])) best = i;
      if (best != j) {
        for (int64_t c = 0; c < n; c++) {
          T t = a[j * n + c];
          a[j * n + c] = a[best * n + c];
          a[best * n + c] = t;
        }
        int64_t t = order[j];
        order[j] = order[best];
        order[best] = t;
        sign = -sign;
      }
      if (RE(a[j * n + j]) == 0 && IM(a[j * n + j]) == 0) continue;
      for (int64_t i = j + 1; i < n; i++) {
        a[i * n + j] = DIV(a[i * n + j], a[j * n + j]);
        NAME(minus_row)(a[i * n + j], a + j * n + j + 1, a + i * n + j + 1, j1 - j - 1);
      }
    }
    for (int64_t j = j0; j < j1; j++)
      for (int64_t i = j + 1; i < j1; i++) NAME(minus_row)(a[i * n + j], a + j * n + j1, a + i * n + j1, n - j1);
    NAME(minus_product)(a + j1 * n + j0, n, a + j0 * n + j1, n, a + j1 * n + j1, n, n - j1, n - j1, j1 - j0, room);
  }
  return sign;
}

static bool NAME(invertible)(const T *a, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    if (RE(a[i * n + i]) == 0 && IM(a[i * n + i]) == 0) return false;
  return true;
}

static bool NAME(cholesky)(const tn__matrix *m)
{
  const int64_t n = m->n;
  T *x = m->x;
  NAME(copy)(m->a, n, n, x);
  const bool good = NAME(factor_positive)(x, n, m->work);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      if (j > i) x[i * n + j] = MAKE(0, 0);
      else if (!good) x[i * n + j] = MAKE(NAN, 0);
  return true;
}

static bool NAME(determinant)(const tn__matrix *m)
{
  const int64_t n = m->n;
  T *a = m->work, *x = m->x, all = MAKE(1, 0);
  NAME(copy)(m->a, n, n, a);
  if (NAME(factor)(a, n, (int64_t *)(a + 2 * n * n), a + n * n) < 0) all = MAKE(-1, 0);
  for (int64_t i = 0; i < n; i++) all = MUL(all, a[i * n + i]);
  *x = all;
  return true;
}

static bool NAME(log_determinant)(const tn__matrix *m)
{
  const int64_t n = m->n;
  T *a = m->work, sign = MAKE(1, 0);
  R sum = 0;
  NAME(copy)(m->a, n, n, a);
  if (NAME(factor)(a, n, (int64_t *)(a + 2 * n * n), a + n * n) < 0) sign = MAKE(-1, 0);
  for (int64_t i = 0; i < n; i++) {
    const R size = ABS(a[i * n + i]);
    sum += LOG(size);
    sign = MUL(sign, MAKE(RE(a[i * n + i]) / size, IM(a[i * n + i]) / size));
  }
  if (!NAME(invertible)(a, n)) sign = MAKE(0, 0), sum = -INFINITY;
  *(T *)m->x = sign;
  *(T *)m->y = MAKE(sum, 0);
  return true;
}

/* Solves for a right side; for the inverse, b is NULL and the right side is the identity. */
static bool NAME(solve)(const tn__matrix *m)
{
  const int64_t n = m->n, k = m->b != NULL ? m->k : n;
  T *a = m->work, *room = a + n * n, *x = m->x;
  const T *b = m->b;
  int64_t *order = (int64_t *)(room + n * MOST(n, k));
  if (m->adjoint) NAME(turn)(m->a, n, n, n, a);
  else NAME(copy)(m->a, n, n, a);
  NAME(factor)(a, n, order, room);
  if (!NAME(invertible)(a, n)) return false;
  if (b == NULL) memset(x, 0, (size_t)(n * k) * sizeof(T));
  for (int64_t i = 0; i < n; i++)
    if (b == NULL) x[i * k + order[i]] = MAKE(1, 0);
    else if (k > 0) memcpy(x + i * k, b + order[i] * k, (size_t)k * sizeof(T));
  NAME(triangle)(a, n, true, true, x, k, room);
  NAME(triangle)(a, n, false, false, x, k, room);
  return true;
}

static bool NAME(solve_triangular)(const tn__matrix *m)
{
  const int64_t n = m->n;
  T *turned = m->work;
  const T *a = m->a;
  NAME(copy)(m->b, n, m->k, m->x);
  if (m->adjoint) {
    NAME(turn)(a, n, n, n, turned);
    a = turned;
  }
  NAME(triangle)(a, n, m->lower != m->adjoint, false, m->x, m->k, turned + n * n);
  return true;
}

/* ---- orthogonal factors ---- */

/* Rows [first, rows) of c, of `columns` columns: c -= f v (v^H c). sums: columns elements. */
static void NAME(reflect)(const T *v, int64_t v_row, T f, int64_t first, int64_t rows, T *c, int64_t ld,
                          int64_t columns, T *sums)
{
  for (int64_t j = 0; j < columns; j++) sums[j] = MAKE(0, 0);
  for (int64_t i = first; i < rows; i++) {
    const T minus = MUL(MAKE(-1, 0), CONJ(v[i * v_row]));
    NAME(minus_row)(minus, c + i * ld, sums, columns);
  }
  for (int64_t i = first; i < rows; i++) NAME(minus_row)(MUL(f, v[i * v_row]), sums, c + i * ld, columns);
}

/* a = Q R: x is Q, y is R. */
static bool NAME(qr)(const tn__matrix *m)
{
  const int64_t rows = m->m, n = m->n, least = rows < n ? rows : n, q = m->full ? rows : least;
  T *a = m->work, *v = a + rows * n, *factors = v + rows * least, *sums = factors + least, *x = m->x, *y = m->y;
  NAME(copy)(m->a, rows, n, a);
  for (int64_t j = 0; j < least; j++) {
    R tail = 0;
    for (int64_t i = j + 1; i < rows; i++) tail += NORM2(a[i * n + j]);
    const T alpha = a[j * n + j];
    R beta = SQRT(NORM2(alpha) + tail);
    factors[j] = MAKE(0, 0);
    if (tail == 0 && IM(alpha) == 0) continue;
    if (RE(alpha) >= 0) beta = -beta;
    const T head = MAKE(RE(alpha) - beta, IM(alpha));
    factors[j] = MAKE((beta - RE(alpha)) / beta, -IM(alpha) / beta);
    v[j * least + j] = MAKE(1, 0);
    for (int64_t i = j + 1; i < rows; i++) v[i * least + j] = DIV(a[i * n + j], head);
    NAME(reflect)(v + j, least, CONJ(factors[j]), j, rows, a + j + 1, n, n - j - 1, sums);
    a[j * n + j] = MAKE(beta, 0);
  }
  for (int64_t i = 0; i < (m->full ? rows : least); i++)
    for (int64_t j = 0; j < n; j++) y[i * n + j] = j < i ? MAKE(0, 0) : a[i * n + j];
  NAME(identity)(x, rows, q);
  for (int64_t j = least - 1; j >= 0; j--)
    if (RE(factors[j]) != 0 || IM(factors[j]) != 0)
      NAME(reflect)(v + j, least, factors[j], j, rows, x + j, q, q - j, sums);
  return true;
}

/* Rows p and q become c p - s q and conj(s) p + c q. */
static void NAME(rotate)(T *restrict p, T *restrict q, int64_t n, R c, T s)
{
  for (int64_t i = 0; i < n; i++) {
    const T a = p[i], b = q[i];
    p[i] = SCALE(a, c) - MUL(s, b);
    q[i] = MUL(CONJ(s), a) + SCALE(b, c);
  }
}

/* The rotation that makes two entries with the product `cross` orthogonal, if their squares are a and b. */
static bool NAME(angle)(R a, R b, T cross, R *c, T *s)
{
  const R size = ABS(cross);
  if (!(size > EPSILON * SQRT(a < 0 ? -a : a) * SQRT(b < 0 ? -b : b)) || size == 0) return false;
  const R zeta = (b - a) / (2 * size), t = (zeta >= 0 ? 1 : -1) / ((zeta < 0 ? -zeta : zeta) + SQRT(1 + zeta * zeta));
  *c = 1 / SQRT(1 + t * t);
  *s = MAKE(RE(cross) / size * *c * t, IM(cross) / size * *c * t);
  return true;
}

/* Makes the rows of w orthogonal by rotations (Jacobi), which it applies to v as well: w = v a. */
static void NAME(orthogonal_rows)(T *w, int64_t rows, int64_t n, T *v, int64_t v_columns)
{
  bool again = true;
  for (int sweep = 0; sweep < 60 && again; sweep++) {
    again = false;
    for (int64_t p = 0; p < rows; p++)
      for (int64_t q = p + 1; q < rows; q++) {
        const T *a = w + p * n, *b = w + q * n;
        R aa = 0, bb = 0, c, re = 0, im = 0;
        T s;
        for (int64_t i = 0; i < n; i++) {
          aa += NORM2(a[i]);
          bb += NORM2(b[i]);
          const T t = MUL(a[i], CONJ(b[i]));
          re += RE(t);
          im += IM(t);
        }
        (void)im;
        if (!NAME(angle)(aa, bb, MAKE(re, im), &c, &s)) continue;
        again = true;
        NAME(rotate)(w + p * n, w + q * n, n, c, s);
        NAME(rotate)(v + p * v_columns, v + q * v_columns, v_columns, c, s);
      }
  }
}

/* Adds orthogonal unit rows to `rows` of them, until there are `all`. */
static void NAME(complete)(T *u, int64_t rows, int64_t all, int64_t n)
{
  for (int64_t t = 0; rows < all && t < n; t++) {
    T *row = u + rows * n;
    R square = 0;
    memset(row, 0, (size_t)n * sizeof(T));
    row[t] = MAKE(1, 0);
    for (int twice = 0; twice < 2; twice++)
      for (int64_t i = 0; i < rows; i++) {
        T dot = MAKE(0, 0);
        for (int64_t j = 0; j < n; j++) dot = dot + MUL(row[j], CONJ(u[i * n + j]));
        NAME(minus_row)(dot, u + i * n, row, n);
      }
    for (int64_t j = 0; j < n; j++) square += NORM2(row[j]);
    if (!(square * (R)(2 * n) > 1)) continue;
    for (int64_t j = 0; j < n; j++) row[j] = SCALE(row[j], 1 / SQRT(square));
    rows++;
  }
}

/* Singular values of a matrix w of rows x n, rows <= n, in place: w becomes orthogonal unit rows, v those of the other
 * side, so that the matrix is v^H diag(values) w. w has room for `all` rows. */
static void NAME(singular_rows)(T *w, int64_t rows, int64_t n, int64_t all, T *v, R *values)
{
  NAME(identity)(v, rows, rows);
  NAME(orthogonal_rows)(w, rows, n, v, rows);
  for (int64_t i = 0; i < rows; i++) {
    R square = 0;
    for (int64_t j = 0; j < n; j++) square += NORM2(w[i * n + j]);
    values[i] = SQRT(square);
  }
  for (int64_t i = 0; i < rows; i++) {
    int64_t best = i;
    for (int64_t j = i + 1; j < rows; j++)
      if (values[j] > values[best]) best = j;
    if (best == i) continue;
    R t = values[i];
    values[i] = values[best];
    values[best] = t;
    for (int64_t j = 0; j < n; j++) {
      T e = w[i * n + j];
      w[i * n + j] = w[best * n + j];
      w[best * n + j] = e;
    }
    for (int64_t j = 0; j < rows; j++) {
      T e = v[i * rows + j];
      v[i * rows + j] = v[best * rows + j];
      v[best * rows + j] = e;
    }
  }
  int64_t rank = 0;
  for (; rank < rows && !(values[rank] <= values[0] * EPSILON * (R)0.01); rank++)
    for (int64_t j = 0; j < n; j++) w[rank * n + j] = SCALE(w[rank * n + j], 1 / values[rank]);
  NAME(complete)(w, rank, all, n);
}

/* x are the values, y and z the vectors of the rows' side and the columns' side. */
static bool NAME(singular)(const tn__matrix *m)
{
  const int64_t rows = m->m, n = m->n, tall = rows > n, small = tall ? n : rows, large = tall ? rows : n;
  const int64_t all = m->full && m->y != NULL ? large : small;
  T *w = m->work, *v = w + large * large, *x = m->x, *far = tall ? m->y : m->z, *near = tall ? m->z : m->y;
  R *values = (R *)(v + small * small);
  if (tall) NAME(turn)(m->a, n, rows, n, w);
  else NAME(copy)(m->a, rows, n, w);
  NAME(singular_rows)(w, small, large, all, v, values);
  for (int64_t i = 0; i < small; i++) x[i] = MAKE(values[i], 0);
  if (m->y == NULL) return true;
  NAME(turn)(w, large, all, large, far);
  NAME(turn)(v, small, small, small, near);
  return true;
}

/* Eigenvalues x in ascending order, and vectors y as columns, of the lower triangle's Hermitian matrix. By
 * rotations. */
static bool NAME(eigen)(const tn__matrix *m)
{
  const int64_t n = m->n;
  T *a = m->work, *v = a + n * n, *x = m->x, *y = m->y;
  R all = 0;
  NAME(copy)(m->a, n, n, a);
  for (int64_t i = 0; i < n; i++) {
    a[i * n + i] = MAKE(RE(a[i * n + i]), 0);
    for (int64_t j = i + 1; j < n; j++) a[i * n + j] = CONJ(a[j * n + i]);
    for (int64_t j = 0; j <= i; j++) all += NORM2(a[i * n + j]);
  }
  NAME(identity)(v, n, n);
  bool again = true;
  for (int sweep = 0; sweep < 60 && again; sweep++) {
    again = false;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        const T cross = a[p * n + q];
        const R size = ABS(cross);
        if (!(size * size > EPSILON * EPSILON * (R)0.01 / (R)n * all)) continue;
        const R zeta = (RE(a[q * n + q]) - RE(a[p * n + p])) / (2 * size);
        const R t = (zeta >= 0 ? 1 : -1) / ((zeta < 0 ? -zeta : zeta) + SQRT(1 + zeta * zeta)), c = 1 / SQRT(1 + t * t);
        const T s = MAKE(RE(cross) / size * c * t, IM(cross) / size * c * t);
        again = true;
        NAME(rotate)(a + p * n, a + q * n, n, c, s);
        for (int64_t i = 0; i < n; i++) {
          const T e = a[i * n + p], f = a[i * n + q];
          a[i * n + p] = SCALE(e, c) - MUL(CONJ(s), f);
          a[i * n + q] = MUL(s, e) + SCALE(f, c);
        }
        a[p * n + q] = a[q * n + p] = MAKE(0, 0);
        NAME(rotate)(v + p * n, v + q * n, n, c, s);
      }
  }
  for (int64_t i = 0; i < n; i++) x[i] = MAKE(RE(a[i * n + i]), 0);
  for (int64_t i = 0; i < n; i++) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; j++)
      if (RE(x[j]) < RE(x[best])) best = j;
    const T e = x[i];
    x[i] = x[best];
    x[best] = e;
    for (int64_t j = 0; j < n && best != i; j++) {
      const T f = v[i * n + j];
      v[i * n + j] = v[best * n + j];
      v[best * n + j] = f;
    }
  }
  if (y != NULL) NAME(turn)(v, n, n, n, y);
  return true;
}

/* ---- least squares ---- */

/* to = a^H b, of rows x n and rows x k. */
static void NAME(turned_product)(const T *a, int64_t rows, int64_t n, const T *b, int64_t k, T *to)
{
  memset(to, 0, (size_t)(n * k) * sizeof(T));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++) NAME(minus_row)(MUL(MAKE(-1, 0), CONJ(a[r * n + i])), b + r * k, to + i * k, k);
}

/* fast: by the normal equations, else by singular values, which ignores l2. */
static bool NAME(solve_least)(const tn__matrix *m)
{
  const int64_t rows = m->m, n = m->n, k = m->k, small = rows < n ? rows : n, large = rows < n ? n : rows;
  T *w = m->work, *v = w + large * large, *side = v + small * small, *room = side + large * MOST(k, 1), *x = m->x;
  if (k == 0) return true;
  if (!m->fast) {
    R *values = (R *)room;
    if (rows > n) NAME(turn)(m->a, n, rows, n, w);
    else NAME(copy)(m->a, rows, n, w);
    NAME(singular_rows)(w, small, large, small, v, values);
    /* v^H diag w is a, or its conjugate transpose: project, divide, and expand. */
    const T *from = rows > n ? w : v, *back = rows > n ? v : w;
    memset(side, 0, (size_t)(small * k) * sizeof(T));
    for (int64_t i = 0; i < small; i++)
      for (int64_t r = 0; r < rows; r++)
        NAME(minus_row)(MUL(MAKE(-1, 0), from[i * rows + r]), (const T *)m->b + r * k, side + i * k, k);
    for (int64_t i = 0; i < small; i++) {
      const bool none = values[i] <= values[0] * EPSILON * (R)large;
      for (int64_t c = 0; c < k; c++) side[i * k + c] = none ? MAKE(0, 0) : SCALE(side[i * k + c], 1 / values[i]);
    }
    NAME(turned_product)(back, small, n, side, k, x);
    return true;
  }
  T *turned = room;
  room = turned + rows * n;
  NAME(turn)(m->a, n, rows, n, turned);
  if (rows >= n) NAME(turned_product)(m->a, rows, n, m->a, n, w);
  else NAME(turned_product)(turned, n, rows, turned, rows, w);
  for (int64_t i = 0; i < small; i++) w[i * small + i] = w[i * small + i] + MAKE((R)m->l2, 0);
  if (!NAME(factor_positive)(w, small, room)) return false;
  if (rows >= n) NAME(turned_product)(m->a, rows, n, m->b, k, side);
  else NAME(copy)(m->b, rows, k, side);
  NAME(triangle)(w, small, true, false, side, k, room);
  NAME(turn)(w, small, small, small, v);
  NAME(triangle)(v, small, false, false, side, k, room);
  if (rows >= n) NAME(copy)(side, n, k, x);
  else NAME(turned_product)(m->a, rows, n, side, k, x);
  return true;
}

static const tn__matrix_fn NAME(fns)[TN__MATRIX_OPS] = {
  NAME(cholesky), NAME(determinant), NAME(log_determinant), NAME(solve), NAME(solve),
  NAME(solve_triangular), NAME(solve_least), NAME(qr), NAME(eigen), NAME(singular),
};

#undef NORM2
#undef SCALE
#undef MOST
#undef T
#undef R
#undef NAME
#undef MAKE
#undef MUL
#undef DIV
#undef CONJ
#undef RE
#undef IM
#undef ABS
#undef SQRT
#undef LOG
#undef EPSILON
#undef GEMM
