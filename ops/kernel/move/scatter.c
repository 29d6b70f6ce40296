/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters slices to indices; see scatter.h. */
#include <ops/kernel/poll.h>
#include <ops/kernel/move/scatter.h>

#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/elementwise.h>
#include <string.h>

/* ---- update of one element ---- */

#define STEP_add(a, x) ((a) + (x))
#define STEP_sub(a, x) ((a) - (x))
#define STEP_max(a, x) ((a) < (x) ? (x) : (a)) /* NaN: keeps a */
#define STEP_min(a, x) ((x) < (a) ? (x) : (a))
#define STEP_mul(a, x) TN__MUL(a, x)
#define STEP_div(a, x) TN__DIV(a, x)
#define STEP_quot(a, x) ((a) / (x))
#define STEP_quot_signed(a, x) ((x) == -1 ? 0 - (uint64_t)(a) : (uint64_t)((a) / (x))) /* wraps */
#define STEP_or(a, x) ((a) | (x))
#define STEP_xor(a, x) ((a) ^ (x))

#define SCATTER_LOOP(op, d, unused)                                                    \
  static void op##_##d(void *to, const void *from, int64_t n)                          \
  {                                                                                    \
    tn__S_##d *out = to;                                                               \
    const tn__S_##d *in = from;                                                        \
    for (int64_t i = 0; i < n; i++) {                                                  \
      tn__C_##d a = TN__L_##d(out[i]), x = TN__L_##d(in[i]);                           \
      out[i] = TN__P_##d(STEP_##op(a, x));                                             \
    }                                                                                  \
  }
#define SUMS(X, op) TN__SAME_FLOATS_COMPLEXES(X, op) TN__WRAP_SIGNED(X, op)
#define ORDERED(X, op) TN__SAME_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
#define BOOLS(X, op) X(op, b8, b8)
SUMS(SCATTER_LOOP, add)
SUMS(SCATTER_LOOP, sub)
ORDERED(SCATTER_LOOP, max)
ORDERED(SCATTER_LOOP, min)
SUMS(SCATTER_LOOP, mul)
TN__SAME_FLOATS_COMPLEXES(SCATTER_LOOP, div)
TN__SAME_SIGNED(SCATTER_LOOP, quot_signed)
TN__SAME_UNSIGNED(SCATTER_LOOP, quot)
BOOLS(SCATTER_LOOP, or)
BOOLS(SCATTER_LOOP, xor)

/* twin: the unsigned dtype with the same wrapping arithmetic, or the dtype itself. */
typedef struct scatter_loop {
  tn_dtype dtype, twin;
  tn__scatter_fn fn;
} scatter_loop;

#define ENTRY(op, d, unused) { TN__D_##d, TN__TWIN_##d, op##_##d },
static const scatter_loop add_loops[] = { SUMS(ENTRY, add) BOOLS(ENTRY, or) };
static const scatter_loop sub_loops[] = { SUMS(ENTRY, sub) BOOLS(ENTRY, xor) };
static const scatter_loop mul_loops[] = { SUMS(ENTRY, mul) };
static const scatter_loop div_loops[] = { TN__SAME_FLOATS_COMPLEXES(ENTRY, div) TN__SAME_SIGNED(ENTRY, quot_signed)
                                          TN__SAME_UNSIGNED(ENTRY, quot) };
static const scatter_loop max_loops[] = { ORDERED(ENTRY, max) };
static const scatter_loop min_loops[] = { ORDERED(ENTRY, min) };

static const struct {
  const scatter_loop *loops;
  size_t n;
} steps[] = {
#define STEP(number, list) [number] = { list, sizeof(list) / sizeof((list)[0]) }
  STEP(TN__SCATTER_ADD, add_loops), STEP(TN__SCATTER_JOIN, add_loops), STEP(TN__SCATTER_SUB, sub_loops),
  STEP(TN__SCATTER_MUL, mul_loops), STEP(TN__SCATTER_DIV, div_loops),  STEP(TN__SCATTER_MAX, max_loops),
  STEP(TN__SCATTER_MIN, min_loops),
};

tn_status tn__scatter_init(tn__scatter *s, const tn_operation *op, tn__scatter_step step, tn_dtype dtype, tn_error *err)
{
  *s = (tn__scatter){ .dtype = dtype, .append = step == TN__SCATTER_JOIN && dtype == TN_STRING };
  if (step == TN__SCATTER_SET || s->append) return TN_OK;
  for (size_t i = 0; i < steps[step].n && s->fn == NULL; i++) {
    const scatter_loop *l = &steps[step].loops[i];
    if (l->dtype == dtype || l->twin == dtype) s->fn = l->fn;
  }
  return s->fn != NULL ? TN_OK : tn__no_kernel(err, op, dtype);
}

/* ---- shapes ---- */

tn_status tn__scatter_check(const char *op, const tn__shape *out, const tn__shape *indices, uint32_t i,
                            const tn__shape *updates, uint32_t u, tn_error *err)
{
  char x[160], y[160];
  if (indices->rank < 0 || indices->dims[indices->rank - 1] < 0 || out->rank < 0) return TN_OK;
  int64_t depth = indices->dims[indices->rank - 1];
  if (depth > out->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has indices of %lld numbers, the output has shape %s",
                        op, i, (long long)depth, tn__format_shape(x, sizeof x, out->dims, out->rank));
  tn__shape wanted;
  tn__shape_set(&wanted, indices->dims, indices->rank - 1);
  bool fits = true;
  for (int32_t d = (int32_t)depth; d < out->rank; d++) fits = fits && tn__shape_append(&wanted, out->dims[d]);
  tn__shape both = wanted;
  if (fits && tn__shape_merge(&both, updates->dims, updates->rank)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has shape %s, wanted %s", op, u,
                      tn__format_shape(x, sizeof x, updates->dims, updates->rank),
                      tn__format_shape(y, sizeof y, wanted.dims, wanted.rank));
}

tn_status tn__scatter_check_all(const char *op, const tn__shape *out, const tn_view *x, uint32_t i, const tn_view *up,
                                uint32_t u, tn_error *err)
{
  char text[160];
  tn__shape indices, updates;
  tn__shape_set(&indices, x->dims, x->rank);
  tn__shape_set(&updates, up->dims, up->rank);
  if (x->rank < 1 || up->rank < 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has shape %s, wanted rank 1 or more", op,
                        x->rank < 1 ? i : u, tn__format_shape(text, sizeof text, NULL, 0));
  bool empty = x->count == 0;
  for (int32_t d = 0; d < out->rank; d++) empty = empty || out->dims[d] == 0;
  if (out->rank < 1 || (empty && (x->count > 0 || up->count > 0)))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s", op,
                        out->rank < 1 ? "the output is a scalar, wanted rank 1 or more"
                                      : "the output or the indices have no elements, but there are updates or indices");
  return tn__scatter_check(op, out, &indices, i, &updates, u, err);
}

/* ---- iteration ---- */

static tn_status append_string(tn_string *to, const tn_string *more, tn_error *err)
{
  size_t n, m;
  const char *text = tn_string_data(to, &n), *tail = tn_string_data(more, &m);
  if (n == 0) return tn_string_set(to, tail, m, err);
  tn_string both;
  memset(&both, 0, sizeof both);
  char *room = m <= SIZE_MAX / 2 - n ? tn__string_reserve(&both, n + m) : NULL;
  if (room == NULL) return tn__no_memory(err, "a string element", n);
  memcpy(room, text, n);
  if (m > 0) memcpy(room + n, tail, m);
  tn_string_clear(to);
  *to = both;
  return TN_OK;
}

#define SAME_BYTES 1024

/* Applies one element n times. */
static tn_status put_same(const tn__scatter *s, char *to, const char *from, int64_t n, tn_error *err)
{
  _Alignas(16) char row[SAME_BYTES];
  size_t size = tn_dtype_size(s->dtype);
  if (s->fn == NULL) return tn__fill_elements(s->dtype, to, from, n, err);
  int64_t whole = (int64_t)(SAME_BYTES / size) < n ? (int64_t)(SAME_BYTES / size) : n;
  tn__fill_bytes(size, row, from, whole);
  for (int64_t at = 0; at < n; at += whole)
    s->fn(to + (size_t)at * size, row, n - at < whole ? n - at : whole);
  return TN_OK;
}

static tn_status put(const tn__scatter *s, char *to, const char *from, int64_t n, tn_error *err)
{
  tn_status st = TN_OK;
  if (s->fn != NULL)
    s->fn(to, from, n);
  else if (!s->append)
    st = tn__copy_elements(s->dtype, to, from, n, err);
  else
    for (int64_t i = 0; st == TN_OK && i < n; i++)
      st = append_string((tn_string *)(void *)to + i, (const tn_string *)(const void *)from + i, err);
  return st;
}

tn_status tn__scatter_run(const tn__scatter *s, const tn__index_space *space, void *to, const void *from, int64_t piece,
                          uint32_t flags, tn__poll *poll, tn_error *err)
{
  int64_t places[TN__INDEX_BLOCK];
  size_t bytes = (size_t)piece * tn_dtype_size(s->dtype);
  for (int64_t k = 0, n; k < space->n; k += n) {
    n = space->n - k < TN__INDEX_BLOCK ? space->n - k : TN__INDEX_BLOCK;
    if (poll != NULL && tn__poll_over(poll, n * (10 + piece))) return TN_CANCELLED;
    tn__space_places(space, k, n, places);
    for (int64_t i = 0; i < n; i++) {
      if (places[i] < 0 && (flags & TN__SCATTER_STOP) != 0) return TN_OK;
      if (places[i] < 0) continue;
      char *at = (char *)to + (size_t)places[i] * bytes;
      tn_status st = (flags & TN__SCATTER_SAME) != 0 ? put_same(s, at, from, piece, err)
                                                     : put(s, at, (const char *)from + (size_t)(k + i) * bytes, piece,
                                                           err);
      if (st != TN_OK) return st;
    }
  }
  return TN_OK;
}
