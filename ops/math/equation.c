/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum equations: parsing, and matching with shapes. */
#include <ops/math/equation.h>

#include <core/base/text.h>
#include <string.h>

/* ---- reading ---- */

static tn_status read_term(const char *op, const char *text, size_t length, tn__term *term, tn_error *err)
{
  term->n = 0;
  term->ellipsis = -1;
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '.') {
      if (term->ellipsis >= 0 || length - i < 3 || text[i + 1] != '.' || text[i + 2] != '.')
        return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: '%.*s' has dots other than a single '...'", op,
                            (int)(length > 80 ? 80 : length), text);
      term->ellipsis = term->n;
      i += 2;
    } else if (term->n == TN_MAX_RANK) {
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: more than %d labels for one tensor", op, TN_MAX_RANK);
    } else {
      term->labels[term->n++] = (uint8_t)text[i];
    }
  }
  return TN_OK;
}

/* The position of "->" in text[from, length), or length if there is none. */
static size_t find_arrow(const char *text, size_t length, size_t from)
{
  for (size_t i = from; i + 1 < length; i++)
    if (text[i] == '-' && text[i + 1] == '>') return i;
  return length;
}

static tn_status read_inputs(const char *text, size_t length, tn__equation *e, tn_error *err)
{
  int64_t found = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= length; i++) {
    if (i < length && text[i] != ',') continue;
    if (found < e->n_inputs) {
      tn_status st = read_term(e->op, text + begin, i - begin, &e->in[found], err);
      if (st != TN_OK) return st;
    }
    found++;
    begin = i + 1;
  }
  if (found != e->n_inputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the equation has %lld inputs, the operation %d", e->op,
                        (long long)found, (int)e->n_inputs);
  return TN_OK;
}

tn_status tn__equation_read(const tn_operation *op, tn__equation *e, tn_error *err)
{
  const char *text;
  size_t length, n = tn_operation_n_inputs(op);
  e->op = tn_operation_type(op);
  tn_status st = tn_operation_attr_string(op, "equation", &text, &length, err);
  if (st != TN_OK) return st;
  if (n < 1 || n > 2)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %zu inputs, wanted one or two", e->op, n);
  e->n_inputs = (int32_t)n;
  size_t arrow = find_arrow(text, length, 0);
  if (arrow == length || find_arrow(text, length, arrow + 2) != length)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the equation '%.*s' must have exactly one '->'", e->op,
                        (int)(length > 80 ? 80 : length), text);
  st = read_inputs(text, arrow, e, err);
  return st != TN_OK ? st : read_term(e->op, text + arrow + 2, length - arrow - 2, &e->out, err);
}

/* ---- shapes ---- */

/* The code of dimension i of a term whose "..." stands for `extra` dimensions: its label, or for a dimension of
 * "..." 256 plus its distance from the last one. */
static int32_t code_of(const tn__term *t, int32_t i, int32_t extra)
{
  if (t->ellipsis < 0 || i < t->ellipsis) return t->labels[i];
  return i < t->ellipsis + extra ? 256 + (t->ellipsis + extra - 1 - i) : t->labels[i - extra];
}

static tn__index *index_of(tn__indices *x, int32_t code, int16_t *number)
{
  if (x->of[code] < 0) {
    x->of[code] = (int16_t)x->n;
    x->at[x->n++] = (tn__index){ .size = -2 }; /* -2: no size merged yet */
  }
  *number = x->of[code];
  return &x->at[*number];
}

/* Merges a size into an index; dimensions of "..." broadcast. */
static bool merge_size(tn__index *index, int32_t code, int64_t size)
{
  if (index->size == -2) {
    index->size = size;
    return true;
  }
  if (code < 256) return tn__dim_merge(&index->size, size);
  if (size == 1 || (size < 0 && index->size > 1)) return true;
  if (index->size == 1 || (index->size < 0 && size > 1)) {
    index->size = size;
    return true;
  }
  return size < 0 || index->size < 0 || size == index->size;
}

static tn_status add_input(const tn__equation *e, int32_t t, const tn__shape *s, tn__indices *x, int32_t *most,
                           tn_error *err)
{
  const tn__term *term = &e->in[t];
  int32_t rank = s->rank < 0 ? term->n : s->rank, extra = rank - term->n;
  char text[160];
  if (extra < 0 || (extra > 0 && term->ellipsis < 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %d has rank %d, the equation names %d dimensions", e->op,
                        (int)t, (int)rank, (int)term->n);
  if (extra > *most) *most = extra;
  x->rank[t] = rank;
  for (int32_t i = 0; i < rank; i++) {
    int32_t code = code_of(term, i, extra), bit = t == 0 ? TN__IN_A : TN__IN_B;
    int64_t size = s->rank < 0 ? -1 : s->dims[i];
    tn__index *index = index_of(x, code, &x->dims[t][i]);
    if (!merge_size(index, code, size))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %d has shape %s, whose dimension %d should be %lld",
                          e->op, (int)t, tn__format_shape(text, sizeof text, s->dims, s->rank), (int)i,
                          (long long)index->size);
    if ((index->where & bit) != 0) x->repeated[t] = true;
    if (code < 256 || size != 1) index->where |= bit;
  }
  return TN_OK;
}

static tn_status add_output(const tn__equation *e, int32_t extra, tn__indices *x, tn__shape *out, tn_error *err)
{
  const tn__term *term = &e->out;
  if (extra > 0 && term->ellipsis < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: '...' stands for %d dimensions of an input, but is not in the output",
                        e->op, (int)extra);
  if (term->ellipsis < 0) extra = 0;
  if (term->n + extra > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output has more than %d dimensions", e->op, TN_MAX_RANK);
  out->rank = 0;
  x->rank[2] = term->n + extra;
  for (int32_t i = 0; i < term->n + extra; i++) {
    int32_t code = code_of(term, i, extra);
    if (x->of[code] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: label '%c' of the output is not in any input", e->op,
                          code > 32 && code < 127 ? (char)code : '?');
    tn__index *index = index_of(x, code, &x->dims[2][out->rank]);
    if ((index->where & TN__IN_OUT) != 0) x->repeated[2] = true;
    index->where |= TN__IN_OUT;
    tn__shape_append(out, index->size);
  }
  return TN_OK;
}

tn_status tn__equation_resolve(const tn__equation *e, const tn__shape *in, tn__indices *x, tn__shape *out,
                               tn_error *err)
{
  int32_t extra = 0;
  bool unknown = false;
  x->n = 0;
  x->rank[1] = -1;
  memset(x->repeated, 0, sizeof x->repeated);
  for (size_t i = 0; i < sizeof x->of / sizeof x->of[0]; i++) x->of[i] = -1;
  for (int32_t t = 0; t < e->n_inputs; t++) {
    tn_status st = add_input(e, t, &in[t], x, &extra, err);
    if (st != TN_OK) return st;
    unknown |= in[t].rank < 0 && e->in[t].ellipsis >= 0;
  }
  if (unknown && e->out.ellipsis >= 0) { /* the number of dimensions of "..." is unknown */
    tn__shape_unknown(out);
    return TN_OK;
  }
  return add_output(e, extra, x, out, err);
}

static void add_steps(tn__indices *x, int32_t t, const tn__shape *s)
{
  uint64_t step = 1; /* may wrap if another size is 0 */
  for (int32_t i = s->rank - 1; i >= 0; i--) {
    tn__index *index = &x->at[x->dims[t][i]];
    if (s->dims[i] != 1) index->steps[t] = (int64_t)((uint64_t)index->steps[t] + step);
    step *= (uint64_t)s->dims[i];
  }
}

void tn__indices_steps(tn__indices *x, const tn__shape *in, const tn__shape *out)
{
  add_steps(x, 0, &in[0]);
  if (x->rank[1] >= 0) add_steps(x, 1, &in[1]);
  add_steps(x, 2, out);
}

int32_t tn__indices_list(const tn__indices *x, int t, int16_t *list)
{
  bool seen[2 * TN_MAX_RANK] = { false };
  int32_t n = 0;
  for (int32_t i = 0; i < x->rank[t]; i++) {
    int16_t number = x->dims[t][i];
    if (seen[number] || x->at[number].size == 1 || (x->at[number].where & 1 << t) == 0) continue;
    seen[number] = true;
    list[n++] = number;
  }
  return n;
}
