/* SPDX-License-Identifier: Apache-2.0 */
/* Prints values as NumPy does with its default options: 8 digits after the point, lines of 75 characters, and for more
 * than 1,000 elements only the first and last three of each axis. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

enum { LINE = 75, THRESHOLD = 1000, EDGE = 3, PRECISION = 8, LONGEST_STRING = 400 };

/* Format shared by all floats of an array, so that their points are aligned. */
typedef struct float_style {
  tn_dtype dtype;
  bool exponent;
  bool plus; /* always print a sign, for imaginary parts */
  int precision;
  int left;  /* characters before the point */
  int right; /* characters after it */
  int exponent_digits;
  /* collected by the first pass */
  double largest, least;
  bool any_finite, any_special, any_minus_infinity;
} float_style;

typedef struct printer {
  tool_text *out;
  const tn_tensor *tensor;
  const uint8_t *data;
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  int64_t edge; /* items shown at each end of an axis; INT64_MAX: all */
  float_style real, imaginary;
  int width; /* width of integers */
} printer;

/* ---- floats ---- */

static bool is_complex(tn_dtype dtype) { return dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128; }
static bool is_float(tn_dtype dtype) { return dtype == TN_FLOAT || dtype == TN_DOUBLE || tool_float_is_small(dtype); }

/* Parts of a number: sign and digits before the point, digits after it, exponent with its sign. */
typedef struct parts {
  char before[32];
  char behind[32];
  char exponent[16];
} parts;

/* Splits the output of printf's "%f" or "%e" at the point and drops trailing zeros. */
static void split(const char *text, parts *p)
{
  memset(p, 0, sizeof(*p));
  size_t n = strcspn(text, ".e");
  snprintf(p->before, sizeof(p->before), "%.*s", (int)n, text);
  if (text[n] == '.') {
    size_t m = strcspn(text + n + 1, "e");
    snprintf(p->behind, sizeof(p->behind), "%.*s", (int)m, text + n + 1);
    n += m + 1;
  }
  if (text[n] == 'e') snprintf(p->exponent, sizeof(p->exponent), "%s", text + n + 1);
  for (size_t end = strlen(p->behind); end > 0 && p->behind[end - 1] == '0'; end--) p->behind[end - 1] = '\0';
}

/* Places the point after the first `point` digits, padding with zeros. */
static void place_digits(const char *sign, const char *digits, int point, parts *p)
{
  size_t n = strlen(digits), at = 0;
  snprintf(p->before, sizeof(p->before), "%s", sign);
  size_t length = strlen(p->before);
  for (int i = 0; i < point && length + 1 < sizeof(p->before); i++) p->before[length++] = at < n ? digits[at++] : '0';
  if (point <= 0) p->before[length++] = '0';
  p->before[length] = '\0';
  length = 0;
  for (int i = point; i < 0 && length + 1 < sizeof(p->behind); i++) p->behind[length++] = '0';
  while (at < n && length + 1 < sizeof(p->behind)) p->behind[length++] = digits[at++];
  p->behind[length] = '\0';
}

/* Returns the shortest digits that read back as this value, at most `precision` of them after the point. Without
 * `exponent`, the value must be below 1e16. */
static void take_apart(tn_dtype dtype, double value, bool exponent, int precision, parts *p)
{
  char digits[TOOL_DIGITS] = "0";
  int point = 1;
  const char *sign = signbit(value) ? "-" : "";
  memset(p, 0, sizeof(*p));
  if (value != 0) tool_shortest_digits(dtype, fabs(value), digits, &point);
  if ((int)strlen(digits) - (exponent ? 1 : point) > precision) {
    char text[64];
    snprintf(text, sizeof(text), exponent ? "%.*e" : "%.*f", precision, value);
    split(text, p);
    return;
  }
  place_digits(sign, digits, exponent ? 1 : point, p);
  if (exponent) snprintf(p->exponent, sizeof(p->exponent), "%+03d", point - 1);
}

static void see_float(float_style *style, double value)
{
  if (!isfinite(value)) {
    style->any_special = true;
    if (isinf(value) && value < 0) style->any_minus_infinity = true;
    return;
  }
  double magnitude = fabs(value);
  style->any_finite = true;
  if (magnitude == 0) return;
  if (style->largest == 0 || magnitude > style->largest) style->largest = magnitude;
  if (style->least == 0 || magnitude < style->least) style->least = magnitude;
}

/* Rounds a value to the type, as NumPy compares in that type. */
static double in_type(tn_dtype dtype, double value)
{
  uint32_t bits;
  if (dtype == TN_DOUBLE) return value;
  if (dtype != TN_HALF && dtype != TN_BFLOAT16) return (double)(float)value;
  return tool_float_encode(dtype, value, &bits) ? tool_float_decode(dtype, bits) : (double)INFINITY;
}

/* Threshold above which integers have more digits than the type can represent. */
static double digits_end(tn_dtype dtype, double of_double)
{
  if (dtype == TN_DOUBLE) return of_double;
  return dtype == TN_HALF || dtype == TN_BFLOAT16 ? 1e3 : 1e6;
}

/* Between the passes: decides whether to use exponents. */
static void choose_style(float_style *style)
{
  style->precision = PRECISION;
  if (style->largest == 0) return;
  style->exponent = style->largest >= digits_end(style->dtype, 1e8) || style->least < in_type(style->dtype, 1e-4) ||
                    in_type(style->dtype, style->largest / style->least) > 1000;
}

static void widen(int *width, size_t length)
{
  if ((int)length > *width) *width = (int)length;
}

static void measure_float(float_style *style, double value)
{
  parts p;
  if (!isfinite(value)) return;
  take_apart(style->dtype, value, style->exponent, PRECISION, &p);
  widen(&style->left, strlen(p.before) + (style->plus && !signbit(value) ? 1 : 0));
  widen(&style->right, strlen(p.behind));
  if (style->exponent) widen(&style->exponent_digits, strlen(p.exponent) - 1);
}

/* After the second pass. With exponents all values have the same number of digits; "nan" and "-inf" must fit. */
static void settle_style(float_style *style)
{
  if (style->exponent) {
    style->precision = style->right;
    style->right += style->exponent_digits + 2;
  }
  if (!style->any_special) return;
  int around = style->right + 1, infinity = 3 + (style->plus || style->any_minus_infinity ? 1 : 0);
  if (style->left < 3 - around) style->left = 3 - around;
  if (style->left < infinity - around) style->left = infinity - around;
}

static void add_blanks(tool_text *out, int n)
{
  for (; n > 0; n--) tool_text_add(out, " ", 1);
}

/* The word for a value that is not finite. */
static const char *special_word(double value, bool plus)
{
  if (isnan(value)) return plus ? "+nan" : "nan";
  if (value < 0) return "-inf";
  return plus ? "+inf" : "inf";
}

static void add_float(tool_text *out, const float_style *style, double value)
{
  if (!isfinite(value)) {
    const char *word = special_word(value, style->plus);
    add_blanks(out, style->left + style->right + 1 - (int)strlen(word));
    tool_text_add(out, word, strlen(word));
    return;
  }
  parts p;
  if (style->exponent) {
    /* Pad to a common number of digits with further exact digits of the value, not zeros. */
    char text[64];
    snprintf(text, sizeof(text), "%.*e", style->precision, value);
    split(text, &p);
  } else {
    take_apart(style->dtype, value, false, style->precision, &p);
  }
  bool plus = style->plus && !signbit(value);
  int behind = (int)strlen(p.behind);
  add_blanks(out, style->left - (int)strlen(p.before) - (plus ? 1 : 0));
  tool_text_printf(out, "%s%s.%s", plus ? "+" : "", p.before, p.behind);
  if (!style->exponent) {
    add_blanks(out, style->right - behind);
    return;
  }
  for (; behind < style->precision; behind++) tool_text_add(out, "0", 1);
  tool_text_printf(out, "e%c", p.exponent[0]);
  for (int i = (int)strlen(p.exponent) - 1; i < style->exponent_digits; i++) tool_text_add(out, "0", 1);
  tool_text_printf(out, "%s", p.exponent + 1);
}

/* A single float, as Python prints it. */
static void add_lone_float(tool_text *out, tn_dtype dtype, double value, const char *whole)
{
  if (!isfinite(value)) {
    tool_text_printf(out, "%s", special_word(value, false));
    return;
  }
  parts p;
  double magnitude = fabs(value);
  bool exponent = magnitude != 0 && (magnitude < 1e-4 || magnitude >= digits_end(dtype, 1e16));
  take_apart(dtype, value, exponent, 40, &p);
  if (exponent)
    tool_text_printf(out, "%s%s%se%s", p.before, p.behind[0] != '\0' ? "." : "", p.behind, p.exponent);
  else
    tool_text_printf(out, "%s%s%s", p.before, p.behind[0] != '\0' ? "." : whole, p.behind);
}

static void add_lone_complex(tool_text *out, tn_dtype part, double real, double imaginary)
{
  if (real == 0 && !signbit(real)) {
    add_lone_float(out, part, imaginary, "");
    tool_text_add(out, "j", 1);
    return;
  }
  tool_text_add(out, "(", 1);
  add_lone_float(out, part, real, "");
  if (isnan(imaginary) || !signbit(imaginary)) tool_text_add(out, "+", 1);
  add_lone_float(out, part, imaginary, "");
  tool_text_add(out, "j)", 2);
}

/* ---- integers and strings ---- */

static int integer_text(tn_dtype dtype, const uint8_t *at, char text[32])
{
  int64_t min;
  uint64_t max, value = 0;
  size_t size = tn_dtype_size(dtype);
  tool_integer_range(dtype, &min, &max);
  memcpy(&value, at, size);
  if (min < 0) {
    int unused = 64 - 8 * (int)size;
    return snprintf(text, 32, "%" PRId64, (int64_t)(value << unused) >> unused);
  }
  return snprintf(text, 32, "%" PRIu64, value);
}

/* A string as Python prints bytes: b'...'. */
static void add_string(tool_text *out, const char *text, size_t length)
{
  size_t shown = length <= LONGEST_STRING ? length : LONGEST_STRING;
  char quote = memchr(text, '\'', length) != NULL && memchr(text, '"', length) == NULL ? '"' : '\'';
  tool_text_printf(out, "b%c", quote);
  for (size_t i = 0; i < shown; i++) {
    unsigned char c = (unsigned char)text[i];
    const char *names = "\t\n\r\\", *escapes = "tnr\\", *name = c != '\0' ? strchr(names, c) : NULL;
    if (name != NULL)
      tool_text_printf(out, "\\%c", escapes[name - names]);
    else if (c == (unsigned char)quote)
      tool_text_printf(out, "\\%c", c);
    else if (c < 0x20 || c >= 0x7F)
      tool_text_printf(out, "\\x%02x", c);
    else
      tool_text_add(out, text + i, 1);
  }
  tool_text_printf(out, "%c", quote);
  if (shown < length) tool_text_printf(out, "... (%zu bytes)", length);
}

static void add_string_element(printer *p, int64_t i)
{
  const char *text;
  size_t length;
  if (tn_tensor_get_string(p->tensor, i, &text, &length, NULL) == TN_OK) add_string(p->out, text, length);
}

/* ---- elements ---- */

static void see_element(printer *p, int64_t i)
{
  size_t size = tn_dtype_size(p->dtype);
  const uint8_t *at = p->data + (size_t)i * size;
  tn_dtype part = p->real.dtype;
  char text[32];
  if (is_float(p->dtype) || is_complex(p->dtype)) see_float(&p->real, tool_float_load(part, at));
  if (is_complex(p->dtype)) see_float(&p->imaginary, tool_float_load(part, at + size / 2));
  int64_t min;
  uint64_t max;
  if (tool_integer_range(p->dtype, &min, &max)) widen(&p->width, (size_t)integer_text(p->dtype, at, text));
}

static void measure_element(printer *p, int64_t i)
{
  size_t size = tn_dtype_size(p->dtype);
  const uint8_t *at = p->data + (size_t)i * size;
  if (is_float(p->dtype) || is_complex(p->dtype)) measure_float(&p->real, tool_float_load(p->real.dtype, at));
  if (is_complex(p->dtype)) measure_float(&p->imaginary, tool_float_load(p->real.dtype, at + size / 2));
}

static void add_complex(printer *p, const uint8_t *at)
{
  size_t half = tn_dtype_size(p->dtype) / 2;
  add_float(p->out, &p->real, tool_float_load(p->real.dtype, at));
  add_float(p->out, &p->imaginary, tool_float_load(p->real.dtype, at + half));
  /* The j precedes the blanks that pad the imaginary part. */
  size_t end = p->out->length, blanks = 0;
  while (blanks < end && p->out->data[end - blanks - 1] == ' ') blanks++;
  tool_text_add(p->out, " ", 1);
  p->out->data[end - blanks] = 'j';
}

static void add_element(printer *p, int64_t i)
{
  const uint8_t *at = p->data + (size_t)i * tn_dtype_size(p->dtype);
  char text[32];
  if (p->dtype == TN_STRING)
    add_string_element(p, i);
  else if (p->dtype == TN_BOOL)
    tool_text_printf(p->out, "%s", *at != 0 ? " True" : "False");
  else if (is_float(p->dtype))
    add_float(p->out, &p->real, tool_float_load(p->dtype, at));
  else if (is_complex(p->dtype))
    add_complex(p, at);
  else {
    int length = integer_text(p->dtype, at, text);
    add_blanks(p->out, p->width - length);
    tool_text_add(p->out, text, (size_t)length);
  }
}

static void add_scalar(printer *p)
{
  char text[32];
  size_t half = tn_dtype_size(p->dtype) / 2;
  if (p->dtype == TN_STRING)
    add_string_element(p, 0);
  else if (p->dtype == TN_BOOL)
    tool_text_printf(p->out, "%s", *p->data != 0 ? "True" : "False");
  else if (is_float(p->dtype))
    add_lone_float(p->out, p->dtype, tool_float_load(p->dtype, p->data), ".0");
  else if (is_complex(p->dtype))
    add_lone_complex(p->out, p->real.dtype, tool_float_load(p->real.dtype, p->data),
                     tool_float_load(p->real.dtype, p->data + half));
  else
    tool_text_add(p->out, text, (size_t)integer_text(p->dtype, p->data, text));
}

/* ---- the array ---- */

/* Whether item i of an axis is omitted; *next is the next item to print. */
static bool left_out(const printer *p, int64_t n, int64_t i, int64_t *next)
{
  if (p->edge >= n - p->edge || i < p->edge || i >= n - p->edge) return false;
  *next = n - p->edge;
  return true;
}

static void each_shown(printer *p, int32_t axis, int64_t first, void (*visit)(printer *p, int64_t i))
{
  if (axis == p->rank) {
    visit(p, first);
    return;
  }
  int64_t n = p->dims[axis];
  for (int64_t i = 0; i < n; i++) {
    left_out(p, n, i, &i);
    each_shown(p, axis + 1, first * n + i, visit);
  }
}

static void drop_blanks(tool_text *out)
{
  while (out->length > 0 && out->data[out->length - 1] == ' ') out->data[--out->length] = '\0';
}

/* Prints one row of the last axis: words separated by a blank, in lines of LINE characters. */
static void add_row(printer *p, int64_t first)
{
  int64_t n = p->dims[p->rank - 1];
  size_t indent = (size_t)p->rank, width = (size_t)(LINE - p->rank), column = indent;
  if (p->rank >= LINE) width = 0;
  for (int64_t i = 0; i < n; i++) {
    size_t start = p->out->length;
    if (left_out(p, n, i, &i)) {
      tool_text_add(p->out, "...", 3);
      i--;
    } else {
      add_element(p, first * n + i);
    }
    size_t length = p->out->length - start;
    if (column + length > width && column > indent) {
      /* The word does not fit: move it to a new line. */
      char *word = tool_alloc(length + 1, 1);
      memcpy(word, p->out->data + start, length);
      p->out->length = start;
      drop_blanks(p->out);
      tool_text_add(p->out, "\n", 1);
      add_blanks(p->out, (int)indent);
      tool_text_add(p->out, word, length);
      free(word);
      column = indent;
    }
    column += length + 1;
    if (i + 1 < n) tool_text_add(p->out, " ", 1);
  }
}

static void add_axis(printer *p, int32_t axis, int64_t first)
{
  tool_text_add(p->out, "[", 1);
  int64_t n = p->dims[axis];
  if (axis + 1 == p->rank) {
    add_row(p, first);
    tool_text_add(p->out, "]", 1);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) {
      for (int32_t line = axis + 1; line < p->rank; line++) tool_text_add(p->out, "\n", 1);
      add_blanks(p->out, axis + 1);
    }
    if (left_out(p, n, i, &i)) {
      tool_text_add(p->out, "...", 3);
      i--;
    } else {
      add_axis(p, axis + 1, first * n + i);
    }
  }
  tool_text_add(p->out, "]", 1);
}

/* Three items at each end of each axis, fewer for high ranks. */
static void choose_edge(printer *p)
{
  p->edge = INT64_MAX;
  if (tn_tensor_elements(p->tensor) <= THRESHOLD) return;
  for (p->edge = EDGE; p->edge > 1; p->edge--) {
    double shown = 1;
    for (int32_t i = 0; i < p->rank; i++)
      shown *= p->dims[i] > 2 * p->edge ? (double)(2 * p->edge) : (double)p->dims[i];
    if (shown <= 10 * THRESHOLD) return;
  }
}

static void add_array(printer *p)
{
  if (tn_tensor_elements(p->tensor) == 0) {
    tool_text_add(p->out, "[]", 2);
    return;
  }
  choose_edge(p);
  if (p->dtype != TN_STRING && p->dtype != TN_BOOL) {
    each_shown(p, 0, 0, see_element);
    choose_style(&p->real);
    choose_style(&p->imaginary);
    each_shown(p, 0, 0, measure_element);
    settle_style(&p->real);
    settle_style(&p->imaginary);
  }
  add_axis(p, 0, 0);
}

tn_status tool_text_tensor(tool_text *text, const tn_tensor *tensor, tn_error *err)
{
  printer p = { .out = text,
                .tensor = tensor,
                .dtype = tn_tensor_dtype(tensor),
                .rank = tn_tensor_rank(tensor),
                .dims = tn_tensor_dims(tensor),
                .data = tn_tensor_data(tensor) };
  uint8_t *copy = NULL;
  if (p.dtype == TN_RESOURCE || p.dtype == TN_VARIANT) {
    tool_text_printf(text, "<%s>", tn_dtype_name(p.dtype));
    return TN_OK;
  }
  if (p.data == NULL && p.dtype != TN_STRING) {
    size_t bytes = tn_tensor_bytes(tensor);
    p.data = copy = tool_alloc(bytes, 1);
    tn_status status = bytes > 0 ? tn_tensor_read(tensor, copy, bytes, err) : TN_OK;
    if (status != TN_OK) {
      free(copy);
      return status;
    }
  }
  p.real.dtype = p.dtype;
  if (p.dtype == TN_COMPLEX64) p.real.dtype = TN_FLOAT;
  if (p.dtype == TN_COMPLEX128) p.real.dtype = TN_DOUBLE;
  p.imaginary.dtype = p.real.dtype;
  p.imaginary.plus = true;
  if (p.rank == 0)
    add_scalar(&p);
  else
    add_array(&p);
  free(copy);
  return TN_OK;
}
