/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line values: converts numbers, true, false, strings and nested lists of these to a tensor of the type that
 * the graph expects. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

typedef struct parser {
  const char *text;
  const char *at;
  tn_dtype dtype;
  tn_error *err;
  int32_t rank; /* -1 until set by the first element or empty list */
  int64_t dims[TN_MAX_RANK];
  bool known[TN_MAX_RANK];    /* dims[i] is set by the first list of this level */
  int64_t index[TN_MAX_RANK]; /* current position */
  int64_t n;                  /* elements so far */
  tool_text bytes;            /* the elements; for strings, their concatenated bytes */
  size_t *ends;               /* for strings: end of each in `bytes` */
  size_t ends_room;
} parser;

/* Appends ", at [1][2] (character 9)". */
static void where(const parser *p, int32_t depth, tool_text *out)
{
  if (depth == 0 && p->at == p->text) {
    tool_text_add(out, "", 0);
    return;
  }
  if (depth > 0) tool_text_printf(out, ", at ");
  for (int32_t i = 0; i < depth; i++) tool_text_printf(out, "[%" PRId64 "]", p->index[i]);
  tool_text_printf(out, " (character %zu)", (size_t)(p->at - p->text) + 1);
}

static tn_status refuse(parser *p, int32_t depth, const char *message)
{
  tool_text place = { 0 };
  where(p, depth, &place);
  tn_status status = tn_error_set(p->err, TN_INVALID_ARGUMENT, "%s%s", message, place.data);
  tool_text_fini(&place);
  return status;
}

static void skip_space(parser *p)
{
  while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
}

/* ---- elements ---- */

/* Returns the word at the cursor, up to a comma, bracket or blank. */
static char *take_word(parser *p)
{
  size_t length = strcspn(p->at, ",[] \t\r\n");
  char *word = tool_alloc(length + 1, 1);
  memcpy(word, p->at, length);
  return word;
}

/* strtod without its extensions: rejects "nan(...)" and leading blanks. */
static bool read_double(const char *text, const char **end, double *out)
{
  const char *start = text + (*text == '+' || *text == '-' ? 1 : 0);
  if (!((*start >= '0' && *start <= '9') || *start == '.' || *start == 'i' || *start == 'I' || *start == 'n' ||
        *start == 'N'))
    return false;
  char *stop;
  *out = strtod(text, &stop);
  if (stop == text || strchr(text, '(') != NULL) return false;
  *end = stop;
  return true;
}

typedef enum element_result { GOOD, NO_NUMBER, OUT_OF_TYPE } element_result;

static element_result integer_element(const char *word, tn_dtype dtype, void *to)
{
  int64_t min = 0;
  uint64_t max = 0, magnitude;
  tool_integer_range(dtype, &min, &max);
  bool minus = *word == '-';
  const char *digits = word + (*word == '-' || *word == '+' ? 1 : 0);
  int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
  const char *first = digits + (base == 16 ? 2 : 0);
  if (first[strspn(first, base == 16 ? "0123456789abcdefABCDEF" : "0123456789")] != '\0' || *first == '\0')
    return NO_NUMBER;
  errno = 0;
  magnitude = strtoull(first, NULL, base);
  if (errno == ERANGE) return OUT_OF_TYPE;
  if (minus ? magnitude > 0 - (uint64_t)min : magnitude > max) return OUT_OF_TYPE;
  /* Little-endian two's complement: the low bytes are the element, for any size. */
  uint64_t value = minus ? 0 - magnitude : magnitude;
  memcpy(to, &value, tn_dtype_size(dtype));
  return GOOD;
}

/* Parses one real number of a float type; the word may continue after it. */
static element_result real_element(const char *word, const char **end, tn_dtype dtype, void *to)
{
  double value;
  if (!read_double(word, end, &value)) return NO_NUMBER;
  bool infinite = isinf(value) && strpbrk(word, "iI") != NULL && strpbrk(word, "iI") < *end;
  if (isinf(value) && !infinite) return OUT_OF_TYPE;
  if (dtype == TN_DOUBLE) {
    memcpy(to, &value, sizeof(value));
  } else if (dtype == TN_FLOAT) {
    /* not through double, which would round twice */
    float single = strtof(word, NULL);
    if (isinf(single) && !infinite) return OUT_OF_TYPE;
    memcpy(to, &single, sizeof(single));
  } else {
    uint32_t bits;
    if (!tool_float_encode(dtype, value, &bits)) return OUT_OF_TYPE;
    memcpy(to, &bits, tn_dtype_size(dtype));
  }
  return GOOD;
}

/* Parses "1", "2j", "1+2j" or "(1+2j)". */
static element_result complex_element(const char *word, tn_dtype dtype, void *to)
{
  tn_dtype part = dtype == TN_COMPLEX64 ? TN_FLOAT : TN_DOUBLE;
  size_t size = tn_dtype_size(part), length = strlen(word);
  uint8_t *real = to, *imaginary = real + size;
  char *inner = tool_alloc(length + 1, 1);
  bool wrapped = length > 2 && word[0] == '(' && word[length - 1] == ')';
  memcpy(inner, wrapped ? word + 1 : word, wrapped ? length - 2 : length);
  memset(to, 0, 2 * size);
  const char *end;
  element_result result = real_element(inner, &end, part, real);
  if (result == GOOD && end[0] == 'j' && end[1] == '\0') {
    memcpy(imaginary, real, size);
    memset(real, 0, size);
  } else if (result == GOOD && *end != '\0') {
    const char *second = end;
    result = *second != '+' && *second != '-' ? NO_NUMBER : real_element(second, &end, part, imaginary);
    if (result == GOOD && strcmp(end, "j") != 0) result = NO_NUMBER;
  }
  free(inner);
  return result;
}

static element_result bool_element(const char *word, void *to)
{
  static const char *const names[] = { "false", "False", "0", "true", "True", "1" };
  for (size_t i = 0; i < 6; i++) {
    if (strcmp(word, names[i]) != 0) continue;
    *(uint8_t *)to = i >= 3;
    return GOOD;
  }
  return NO_NUMBER;
}

static tn_status bad_element(parser *p, int32_t depth, const char *word, element_result result)
{
  tool_text message = { 0 };
  const char *type = tn_dtype_name(p->dtype);
  int64_t min;
  uint64_t max;
  if (result == OUT_OF_TYPE && tool_integer_range(p->dtype, &min, &max))
    tool_text_printf(&message, "%s is outside the range of %s, %" PRId64 " to %" PRIu64, word, type, min, max);
  else if (result == OUT_OF_TYPE)
    tool_text_printf(&message, "%s is outside the range of %s", word, type);
  else if (*word == '\0')
    tool_text_printf(&message, "expected a value of type %s", type);
  else
    tool_text_printf(&message, "'%s' is not a valid %s", word, type);
  tn_status status = refuse(p, depth, message.data);
  tool_text_fini(&message);
  return status;
}

static tn_status number(parser *p, int32_t depth)
{
  union { /* aligned for all types */
    double numbers[2];
    uint8_t bytes[16];
  } element;
  char *word = take_word(p);
  const char *end = NULL;
  element_result result;
  if (p->dtype == TN_BOOL) {
    result = bool_element(word, element.bytes);
  } else if (p->dtype == TN_COMPLEX64 || p->dtype == TN_COMPLEX128) {
    result = complex_element(word, p->dtype, element.bytes);
  } else if (p->dtype == TN_FLOAT || p->dtype == TN_DOUBLE || tool_float_is_small(p->dtype)) {
    result = real_element(word, &end, p->dtype, element.bytes);
    if (result == GOOD && *end != '\0') result = NO_NUMBER;
  } else {
    result = integer_element(word, p->dtype, element.bytes);
  }
  tn_status status = result == GOOD ? TN_OK : bad_element(p, depth, word, result);
  if (result == GOOD) {
    tool_text_add(&p->bytes, (const char *)element.bytes, tn_dtype_size(p->dtype));
    p->at += strlen(word);
  }
  free(word);
  return status;
}

/* ---- strings ---- */

static int hex_digit(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes the escape after a backslash and moves past it. False for an unknown escape. */
static bool escape(parser *p, char *c)
{
  static const char names[] = "ntr0\\\"'", values[] = "\n\t\r\0\\\"'";
  const char *name = *p->at != '\0' ? strchr(names, *p->at) : NULL;
  if (name != NULL) {
    *c = values[name - names];
    p->at++;
    return true;
  }
  if (*p->at != 'x' || hex_digit(p->at[1]) < 0 || hex_digit(p->at[2]) < 0) return false;
  *c = (char)(hex_digit(p->at[1]) * 16 + hex_digit(p->at[2]));
  p->at += 3;
  return true;
}

static void end_text(parser *p)
{
  p->ends = tool_grow(p->ends, (size_t)p->n, &p->ends_room, sizeof(*p->ends));
  p->ends[p->n] = p->bytes.length;
}

static tn_status quoted(parser *p, int32_t depth)
{
  char quote = *p->at;
  const char *start = p->at++;
  while (*p->at != quote) {
    char c = *p->at;
    if (c == '\0') {
      p->at = start;
      return refuse(p, depth, "the string has no closing quote");
    }
    p->at++;
    if (c == '\\' && !escape(p, &c))
      return refuse(p, depth, "unknown escape: a backslash must be followed by one of n t r 0 \\ \" ' xHH");
    tool_text_add(&p->bytes, &c, 1);
  }
  p->at++;
  end_text(p);
  return TN_OK;
}

static tn_status bare_text(parser *p, int32_t depth)
{
  /* A single string needs no quotes and keeps its blanks. In a list its end would be ambiguous. */
  if (depth > 0) return refuse(p, depth, "strings in a list must be quoted");
  p->at = p->text;
  tool_text_add(&p->bytes, p->at, strlen(p->at));
  p->at += strlen(p->at);
  end_text(p);
  return TN_OK;
}

/* ---- lists ---- */

static tn_status value(parser *p, int32_t depth);

static tn_status ragged_length(parser *p, int32_t depth, int64_t count)
{
  tool_text message = { 0 };
  tool_text_printf(&message, "ragged list: %" PRId64 " element%s here, %" PRId64 " in the first list of this level",
                   count, count == 1 ? "" : "s", p->dims[depth]);
  tn_status status = refuse(p, depth, message.data);
  tool_text_fini(&message);
  return status;
}

/* Parses the elements of a list after its opening bracket, including the closing one. */
static tn_status list_elements(parser *p, int32_t depth, int64_t *count)
{
  *count = 0;
  skip_space(p);
  if (*p->at == ']') {
    p->at++;
    return TN_OK;
  }
  for (;;) {
    p->index[depth] = *count;
    tn_status status = value(p, depth + 1);
    if (status != TN_OK) return status;
    ++*count;
    skip_space(p);
    char c = *p->at;
    if (c == '\0') return refuse(p, depth, "missing ']'");
    if (c != ',' && c != ']') return refuse(p, depth + 1, "expected ',' or ']'");
    p->at++;
    if (c == ']') return TN_OK;
  }
}

static tn_status list(parser *p, int32_t depth)
{
  if (depth == TN_MAX_RANK) return refuse(p, 0, "lists nest deeper than 254");
  if (p->rank >= 0 && depth >= p->rank)
    return refuse(p, depth, "ragged list: found a list, but its neighbours are values");
  const char *start = p->at++;
  int64_t count;
  tn_status status = list_elements(p, depth, &count);
  if (status != TN_OK) return status;
  if (count == 0 && p->rank < 0) p->rank = depth + 1;
  const char *end = p->at;
  p->at = start; /* messages refer to the start of the list */
  if (p->known[depth] && count != p->dims[depth]) return ragged_length(p, depth, count);
  p->at = end;
  p->known[depth] = true;
  p->dims[depth] = count;
  return TN_OK;
}

static tn_status value(parser *p, int32_t depth)
{
  skip_space(p);
  if (*p->at == '[') return list(p, depth);
  if (p->rank >= 0 && depth != p->rank)
    return refuse(p, depth, "ragged list: found a value, but its neighbours are lists");
  p->rank = depth;
  tn_status status;
  if (p->dtype != TN_STRING)
    status = number(p, depth);
  else if (*p->at == '"' || *p->at == '\'')
    status = quoted(p, depth);
  else
    status = bare_text(p, depth);
  p->n++;
  return status;
}

/* ---- tensors ---- */

static tn_status make_tensor(const parser *p, tn_tensor **out, tn_error *err)
{
  tn_tensor *tensor = NULL;
  tn_status status = tn_tensor_create(p->dtype, p->dims, p->rank, &tensor, err);
  if (status == TN_OK && p->dtype != TN_STRING && p->bytes.length > 0)
    memcpy(tn_tensor_data(tensor), p->bytes.data, p->bytes.length);
  for (int64_t i = 0; status == TN_OK && p->dtype == TN_STRING && i < p->n; i++) {
    size_t start = i > 0 ? p->ends[i - 1] : 0;
    status = tn_tensor_set_string(tensor, i, p->bytes.length > 0 ? p->bytes.data + start : "", p->ends[i] - start, err);
  }
  if (status != TN_OK) {
    tn_tensor_unref(tensor);
    return status;
  }
  *out = tensor;
  return TN_OK;
}

tn_status tool_literal(const char *text, tn_dtype dtype, tn_tensor **out, tn_error *err)
{
  *out = NULL;
  if (dtype == TN_RESOURCE || dtype == TN_VARIANT || tn_dtype_size(dtype) == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "values of type %s have no text form", tn_dtype_name(dtype));
  parser *p = tool_alloc(1, sizeof(*p));
  p->text = p->at = text;
  p->dtype = dtype;
  p->err = err;
  p->rank = -1;
  tn_status status = value(p, 0);
  if (status == TN_OK) {
    skip_space(p);
    if (*p->at != '\0') status = refuse(p, 0, "unexpected text after the value");
  }
  if (status == TN_OK) status = make_tensor(p, out, err);
  tool_text_fini(&p->bytes);
  free(p->ends);
  free(p);
  return status;
}
