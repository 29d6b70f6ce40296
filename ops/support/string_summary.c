/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/support/string_summary.h>

#include <core/tensor/tensor_internal.h>
#include <inttypes.h>
#include <ops/support/half.h>
#include <string.h>

/* ---- elements ---- */

/* As few digits as give the number again, of two choices. */
static void put_float(tn__text *t, float v)
{
  char text[40];
  double back;
  tn__snprintf(text, sizeof text, "%.6g", (double)v);
  if (v == v && (!tn__parse_double(tn__slice_of(text), &back) || (float)back != v))
    tn__snprintf(text, sizeof text, "%.9g", (double)v);
  tn__text_puts(t, v == v ? text : "nan");
}

static void put_double(tn__text *t, double v)
{
  char text[40];
  double back;
  tn__snprintf(text, sizeof text, "%.15g", v);
  if (v == v && (!tn__parse_double(tn__slice_of(text), &back) || back != v))
    tn__snprintf(text, sizeof text, "%.17g", v);
  tn__text_puts(t, v == v ? text : "nan");
}

/* In quotes; what is no printable character of ASCII, and no part of another character, is escaped. */
static void put_string(tn__text *t, const tn_string *s)
{
  static const char plain[] = "\n\r\t\"'\\", names[] = "nrt\"'\\";
  size_t n;
  const char *text = tn_string_data(s, &n);
  tn__text_puts(t, "\"");
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    const char *known = c == 0 ? NULL : strchr(plain, c);
    if (known != NULL) tn__text_printf(t, "\\%c", names[known - plain]);
    else if (c >= 0x80 || (c >= 0x20 && c < 0x7f)) tn__text_append(t, text + i, 1);
    else tn__text_printf(t, "\\%03o", (unsigned)c);
  }
  tn__text_puts(t, "\"");
}

static void put_element(tn__text *t, const tn_view *v, int64_t i)
{
  const void *x = v->data;
  switch (v->dtype) {
  case TN_FLOAT: put_float(t, ((const float *)x)[i]); break;
  case TN_DOUBLE: put_double(t, ((const double *)x)[i]); break;
  case TN_HALF: put_float(t, tn__half_to_float(((const uint16_t *)x)[i])); break;
  case TN_BFLOAT16: put_float(t, tn__bfloat16_to_float(((const uint16_t *)x)[i])); break;
  case TN_INT8:
  case TN_QINT8: tn__text_printf(t, "%d", ((const int8_t *)x)[i]); break;
  case TN_UINT8:
  case TN_QUINT8: tn__text_printf(t, "%d", ((const uint8_t *)x)[i]); break;
  case TN_INT16:
  case TN_QINT16: tn__text_printf(t, "%d", ((const int16_t *)x)[i]); break;
  case TN_UINT16:
  case TN_QUINT16: tn__text_printf(t, "%d", ((const uint16_t *)x)[i]); break;
  case TN_INT32:
  case TN_QINT32: tn__text_printf(t, "%" PRId32, ((const int32_t *)x)[i]); break;
  case TN_UINT32: tn__text_printf(t, "%" PRIu32, ((const uint32_t *)x)[i]); break;
  case TN_INT64: tn__text_printf(t, "%" PRId64, ((const int64_t *)x)[i]); break;
  case TN_UINT64: tn__text_printf(t, "%" PRIu64, ((const uint64_t *)x)[i]); break;
  case TN_BOOL: tn__text_puts(t, ((const uint8_t *)x)[i] != 0 ? "1" : "0"); break;
  case TN_STRING: put_string(t, (const tn_string *)x + i); break;
  default: tn__text_puts(t, "?");
  }
}

/* ---- dimensions ---- */

/* Between entries of dimension d: a blank in the last one, else lines, and blanks up to the brackets. */
static void put_gap(tn__text *t, int32_t d, int32_t rank)
{
  if (d == rank - 1) tn__text_puts(t, " ");
  for (int32_t i = d; i < rank - 1; i++) tn__text_puts(t, "\n");
  for (int32_t i = 0; d < rank - 1 && i <= d; i++) tn__text_puts(t, " ");
}

/* Where the walk over all entries is, in dimension d; `inner` elements are one entry of a dimension. */
typedef struct walk {
  int64_t at[TN_MAX_RANK], inner[TN_MAX_RANK];
  int32_t d;
} walk;

/* Goes on in dimension d behind an entry, past those that are left out; false at its end. */
static bool step(tn__text *t, const tn_view *v, int64_t most, walk *w)
{
  int32_t d = w->d;
  int64_t n = v->dims[d], next = w->at[d] + 1;
  bool cut = n > 2 * most && next == most; /* most is at most the number of elements */
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

void tn__summarise(tn__text *t, const tn_view *v, int64_t most)
{
  walk w = { .d = 0 };
  if (v->rank == 0) {
    put_element(t, v, 0);
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
      put_element(t, v, i);
    }
  }
}
