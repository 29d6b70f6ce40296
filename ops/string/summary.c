/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as text. */
#include <ops/string/summary.h>

#include <math.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/half.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements ---- */

/* Writes the shorter of two forms that reads back as the same number. */
static void put_float(tn__text *to, float x)
{
  char text[32];
  double back;
  int n = tn__snprintf(text, sizeof text, "%.6g", (double)x);
  tn__slice s = { text, n < 0 ? 0 : (size_t)n };
  if (isfinite(x) && (!tn__parse_double(s, &back) || (float)back != x))
    tn__snprintf(text, sizeof text, "%.9g", (double)x);
  tn__text_puts(to, isnan(x) ? "nan" : text);
}

static void put_double(tn__text *to, double x)
{
  char text[32];
  double back;
  int n = tn__snprintf(text, sizeof text, "%.15g", x);
  tn__slice s = { text, n < 0 ? 0 : (size_t)n };
  if (isfinite(x) && (!tn__parse_double(s, &back) || back != x)) tn__snprintf(text, sizeof text, "%.17g", x);
  tn__text_puts(to, isnan(x) ? "nan" : text);
}

static void put_complex(tn__text *to, double re, double im, bool wide)
{
  tn__text_puts(to, "(");
  if (wide) put_double(to, re);
  else put_float(to, (float)re);
  tn__text_puts(to, ",");
  if (wide) put_double(to, im);
  else put_float(to, (float)im);
  tn__text_puts(to, ")");
}

static void put_string(tn__text *to, const tn_string *s)
{
  size_t n;
  const char *text = tn_string_data(s, &n);
  tn__text_append(to, text, n);
}

/* Writes a quoted text. Quotes, backslashes and control characters of ASCII are escaped; bytes from
 * 0x80 on are not. */
static void put_quoted(tn__text *to, const tn_string *s)
{
  static const char plain[] = "\n\r\t\"'\\", names[] = "nrt\"'\\";
  size_t n;
  const char *text = tn_string_data(s, &n);
  tn__text_puts(to, "\"");
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    const char *known = c == 0 ? NULL : strchr(plain, c);
    if (known != NULL) tn__text_printf(to, "\\%c", names[known - plain]);
    else if (c >= 0x80 || (c >= 0x20 && c < 0x7f)) tn__text_append(to, text + i, 1);
    else tn__text_printf(to, "\\%03o", (unsigned)c);
  }
  tn__text_puts(to, "\"");
}

static void put_element(tn__text *to, const tn_view *v, int64_t k)
{
  const char *at = (const char *)v->data + (size_t)k * tn_dtype_size(v->dtype);
  const void *p = at;
  switch (v->dtype) {
  case TN_FLOAT: put_float(to, *(const float *)p); break;
  case TN_DOUBLE: put_double(to, *(const double *)p); break;
  case TN_HALF: put_float(to, tn__half_to_float(*(const uint16_t *)p)); break;
  case TN_BFLOAT16: put_float(to, tn__bfloat16_to_float(*(const uint16_t *)p)); break;
  case TN_COMPLEX64: put_complex(to, (double)((const float *)p)[0], (double)((const float *)p)[1], false); break;
  case TN_COMPLEX128: put_complex(to, ((const double *)p)[0], ((const double *)p)[1], true); break;
  case TN_UINT64: tn__text_printf(to, "%llu", (unsigned long long)*(const uint64_t *)p); break;
  case TN_UINT32: tn__text_printf(to, "%lu", (unsigned long)*(const uint32_t *)p); break;
  case TN_STRING: put_string(to, p); break;
  case TN_BOOL: case TN_INT8: case TN_INT16: case TN_INT32: case TN_INT64: case TN_UINT8: case TN_UINT16:
  case TN_QINT8: case TN_QINT16: case TN_QINT32: case TN_QUINT8: case TN_QUINT16:
    tn__text_printf(to, "%lld", (long long)tn__index_at(v, k));
    break;
  default: tn__text_puts(to, "?");
  }
}

/* Like StringFormat: complex numbers are not shown. */
static void put_element_for_format(tn__text *to, const tn_view *v, int64_t k)
{
  if (v->dtype == TN_STRING) put_quoted(to, (const tn_string *)v->data + k);
  else if (v->dtype == TN_COMPLEX64 || v->dtype == TN_COMPLEX128) tn__text_puts(to, "?");
  else put_element(to, v, k);
}

/* ---- the first elements ---- */

/* Rows of all dimensions but the outermost have their own brackets. */
static void put_brackets(tn__text *to, const tn_view *v, int64_t k, const char *bracket)
{
  int64_t block = 1;
  for (int32_t d = v->rank - 1; d > 0; d--) {
    block *= v->dims[d];
    if (k % block != 0) return;
    tn__text_puts(to, bracket);
  }
}

/* Closes the open brackets if the text is truncated after element k - 1. */
static void put_break(tn__text *to, const tn_view *v, int64_t k)
{
  int64_t block = 1;
  for (int32_t d = v->rank - 1; d > 0; d--) {
    block *= v->dims[d];
    if (k % block == 0) continue;
    tn__text_puts(to, d == v->rank - 1 ? "...]" : "]");
  }
  tn__text_puts(to, "...");
}

void tn__summarize_first(tn__text *to, const tn_view *v, int64_t most)
{
  int64_t n = most < 0 || most > v->count ? v->count : most, row = v->rank > 0 ? v->dims[v->rank - 1] : 1;
  tn__text_puts(to, "[");
  for (int64_t k = 0; k < n && !to->failed; k++) {
    put_brackets(to, v, k, "[");
    if (k % row != 0) tn__text_puts(to, " ");
    put_element(to, v, k);
    put_brackets(to, v, k + 1, "]");
  }
  if (n < v->count) put_break(to, v, n);
  tn__text_puts(to, "]");
}

/* ---- both ends of each dimension ---- */

/* The gap between entries of dimension d: a blank in the last dimension, else line breaks and
 * indentation. */
static void put_gap(tn__text *t, int32_t d, int32_t rank)
{
  if (d == rank - 1) tn__text_puts(t, " ");
  for (int32_t i = d; i < rank - 1; i++) tn__text_puts(t, "\n");
  for (int32_t i = 0; d < rank - 1 && i <= d; i++) tn__text_puts(t, " ");
}

/* The state of an iteration over all entries in dimension d. An entry has `inner` elements. */
typedef struct walk {
  int64_t at[TN_MAX_RANK], inner[TN_MAX_RANK];
  int32_t d;
} walk;

/* Advances past an entry of dimension d, and past omitted ones. Returns false at the end of the
 * dimension. */
static bool step(tn__text *t, const tn_view *v, int64_t most, walk *w)
{
  int32_t d = w->d;
  int64_t n = v->dims[d], next = w->at[d] + 1;
  bool cut = n > 2 * most && next == most; /* no overflow: most is at most the number of elements */
  if (cut) {
    put_gap(t, d, v->rank);
    tn__text_puts(t, "...");
    next = n - most;
  }
  w->at[d] = next;
  if (next >= n) return false;
  if (next > 0) put_gap(t, d, v->rank);
  return true;
}

void tn__summarize_ends(tn__text *t, const tn_view *v, int64_t most)
{
  walk w = { .d = 0 };
  if (v->rank == 0) {
    put_element_for_format(t, v, 0);
    return;
  }
  if (most < 0 || most > v->count) most = v->count;
  for (int32_t d = v->rank - 1; d >= 0; d--) w.inner[d] = d == v->rank - 1 ? 1 : w.inner[d + 1] * v->dims[d + 1];
  tn__text_puts(t, "[");
  w.at[0] = -1;
  while (w.d >= 0 && !t->failed) {
    if (!step(t, v, most, &w)) {
      tn__text_puts(t, "]");
      w.d--;
    } else if (w.d < v->rank - 1) {
      tn__text_puts(t, "[");
      w.at[++w.d] = -1;
    } else {
      int64_t i = 0;
      for (int32_t d = 0; d < v->rank; d++) i += w.at[d] * w.inner[d];
      put_element_for_format(t, v, i);
    }
  }
}
