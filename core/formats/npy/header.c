/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the header of an .npy file. The dict literal is parsed by hand: it is never evaluated as Python. */
#define _GNU_SOURCE
#include <core/formats/npy/npy.h>

#include <inttypes.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define DATA_ALIGN 64 /* of the elements in a file that is written, in bytes, as NumPy does */

/* ---- magic, version, length ---- */

/* Every length is compared with the size of the file, so a header cannot request memory that the file does not have. */
tn_status tn__npy_prefix(const void *bytes, uint64_t size, const char *name, tn__npy_header *h, tn_error *err)
{
  const uint8_t *p = bytes;
  size_t have = size < MAGIC_SIZE ? (size_t)size : MAGIC_SIZE, length_size;
  memset(h, 0, offsetof(tn__npy_header, dims));
  if (have == 0) return tn_error_set(err, TN_DATA_LOSS, "'%s' is empty, wanted an .npy file", name);
  if (memcmp(p, MAGIC, have) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "'%s': byte 0: this is not an .npy file: it does not begin with \\x93NUMPY", name);
  if (size < MAGIC_SIZE + 4) return tn_error_set(err, TN_DATA_LOSS, "'%s' is cut short at byte %" PRIu64, name, size);
  if (p[6] < 1 || p[6] > 3 || p[7] != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': byte 6: format %d.%d, wanted 1.0, 2.0 or 3.0", name, p[6],
                        p[7]);
  length_size = p[6] == 1 ? 2 : 4;
  h->header_at = MAGIC_SIZE + 2 + length_size;
  if (size < h->header_at) return tn_error_set(err, TN_DATA_LOSS, "'%s' is cut short at byte %" PRIu64, name, size);
  size_t length = 0;
  for (size_t i = 0; i < length_size; i++) length |= (size_t)p[8 + i] << (8 * i);
  if (length > TN_NPY_MAX_HEADER)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': byte 8: a header of %zu bytes, at most %zu are read", name,
                        length, TN_NPY_MAX_HEADER);
  if (length > size - h->header_at)
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s': byte 8: a header of %zu bytes from byte %zu, but the file ends at byte %" PRIu64, name,
                        length, h->header_at, size);
  h->data_at = h->header_at + length;
  return TN_OK;
}

/* ---- the dict literal ---- */

typedef struct parser {
  const char *begin, *at, *end;
  const char *name;
  tn__npy_header *h;
  tn_error *err;
} parser;

static size_t offset_of(const parser *p, const char *at) { return p->h->header_at + (size_t)(at - p->begin); }

/* The error that `what` was wanted at the current position. */
static tn_status wanted(parser *p, const char *what)
{
  if (p->at == p->end)
    return tn_error_set(p->err, TN_INVALID_ARGUMENT, "'%s': byte %zu: the header ends, wanted %s", p->name,
                        offset_of(p, p->at), what);
  unsigned char c = (unsigned char)*p->at;
  return tn_error_set(p->err, TN_INVALID_ARGUMENT,
                      c > 0x20 && c < 0x7f ? "'%s': byte %zu: found '%c', wanted %s"
                                           : "'%s': byte %zu: found 0x%02x, wanted %s",
                      p->name, offset_of(p, p->at), c, what);
}

static void skip_space(parser *p)
{
  while (p->at < p->end && (*p->at == ' ' || (*p->at >= '\t' && *p->at <= '\r'))) p->at++;
}

static bool take(parser *p, char c)
{
  skip_space(p);
  if (p->at == p->end || *p->at != c) return false;
  p->at++;
  return true;
}

static bool take_word(parser *p, const char *word)
{
  size_t n = strlen(word);
  skip_space(p);
  if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
  p->at += n;
  return true;
}

/* Reads a string without escapes. Headers with escapes are refused; NumPy writes none. */
static tn_status parse_string(parser *p, const char *what, tn__slice *out)
{
  skip_space(p);
  if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return wanted(p, what);
  char quote = *p->at++;
  out->data = p->at;
  while (p->at < p->end && *p->at != quote) {
    if (*p->at == '\\' || *p->at == '\n') return wanted(p, "a plain character or the end of the string");
    p->at++;
  }
  if (p->at == p->end) return wanted(p, "the end of the string");
  out->size = (size_t)(p->at++ - out->data);
  return TN_OK;
}

/* Reads a dimension, also with a sign or out of range, so that the error can name it. */
static tn_status parse_dimension(parser *p)
{
  tn__npy_header *h = p->h;
  const char *begin = p->at;
  if (p->at < p->end && (*p->at == '-' || *p->at == '+')) p->at++;
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
  tn__slice digits = { begin, (size_t)(p->at - begin) };
  int64_t value;
  if (!tn__parse_int(digits, &value)) {
    int shown = digits.size > 40 ? 40 : (int)digits.size;
    if (shown > 1)
      return tn_error_set(p->err, TN_INVALID_ARGUMENT, "'%s': byte %zu: dimension %.*s is out of range", p->name,
                          offset_of(p, begin), shown, begin);
    p->at = begin;
    return wanted(p, "a dimension");
  }
  if (value < 0)
    return tn_error_set(p->err, TN_INVALID_ARGUMENT,
                        "'%s': byte %zu: dimension %" PRId32 " is %" PRId64 ", wanted 0 or more", p->name,
                        offset_of(p, begin), h->rank, value);
  if (h->rank == TN_MAX_RANK)
    return tn_error_set(p->err, TN_INVALID_ARGUMENT, "'%s': byte %zu: more than %d dimensions", p->name,
                        offset_of(p, begin), TN_MAX_RANK);
  if (p->at < p->end && *p->at == 'L') p->at++; /* written by Python 2 */
  h->dims[h->rank++] = value;
  return TN_OK;
}

/* Parses a tuple: "()", "(2,)", "(2, 3)", "(2, 3,)"; "(2)" is not a tuple. */
static tn_status parse_shape(parser *p)
{
  bool comma = true;
  if (!take(p, '(')) return wanted(p, "the shape, a tuple");
  while (!take(p, ')')) {
    if (!comma) return wanted(p, "',' or ')'");
    skip_space(p);
    tn_status s = parse_dimension(p);
    if (s != TN_OK) return s;
    comma = take(p, ',');
    if (!comma && p->h->rank == 1) return wanted(p, "',' because a shape is a tuple");
  }
  return TN_OK;
}

/* ---- element types ---- */

static const struct {
  char kind;
  uint8_t item;
  tn_dtype dtype;
} types[] = {
  { 'f', 4, TN_FLOAT },
  { 'f', 8, TN_DOUBLE },
  { 'f', 2, TN_HALF },
  { 'i', 1, TN_INT8 },
  { 'i', 2, TN_INT16 },
  { 'i', 4, TN_INT32 },
  { 'i', 8, TN_INT64 },
  { 'u', 1, TN_UINT8 },
  { 'u', 2, TN_UINT16 },
  { 'u', 4, TN_UINT32 },
  { 'u', 8, TN_UINT64 },
  { 'b', 1, TN_BOOL },
  { 'c', 8, TN_COMPLEX64 },
  { 'c', 16, TN_COMPLEX128 },
  /* Types that NumPy lacks are written as numbers with the same values, else as raw bits. The plain types must precede
   * them, because the first match of kind and size is the type of a file. */
  { 'i', 1, TN_QINT8 },
  { 'u', 1, TN_QUINT8 },
  { 'i', 2, TN_QINT16 },
  { 'u', 2, TN_QUINT16 },
  { 'i', 4, TN_QINT32 },
  { 'i', 1, TN_INT4 },
  { 'u', 1, TN_UINT4 },
  { 'i', 1, TN_INT2 },
  { 'u', 1, TN_UINT2 },
  { 'V', 2, TN_BFLOAT16 },
  { 'V', 1, TN_FLOAT8_E5M2 },
  { 'V', 1, TN_FLOAT8_E4M3FN },
  { 'V', 1, TN_FLOAT8_E4M3FNUZ },
  { 'V', 1, TN_FLOAT8_E4M3B11FNUZ },
  { 'V', 1, TN_FLOAT8_E5M2FNUZ },
  { 'f', 1, TN_FLOAT8_E5M2 }, /* only read: NumPy with ml_dtypes writes this form, NumPy alone cannot read it */
};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

char tn__npy_kind(tn_dtype dtype)
{
  for (size_t i = 0; i < N_TYPES; i++)
    if (types[i].dtype == dtype) return types[i].kind;
  return dtype == TN_STRING ? 'S' : 0;
}

/* Why elements of a kind cannot be read, for messages. */
static const char *why_not(char kind)
{
  switch (kind) {
  case 'O': return "Python objects, which would have to be unpickled; that is never done";
  case 'm':
  case 'M': return "dates and times, for which there is no dtype";
  default: return "not a type that can be read";
  }
}

/* Parses a type such as '<f4': byte order, kind, size of an element. */
static tn_status parse_type(parser *p)
{
  tn__npy_header *h = p->h;
  tn__slice text;
  skip_space(p);
  const char *begin = p->at;
  if (begin < p->end && (*begin == '[' || *begin == '('))
    return tn_error_set(p->err, TN_UNIMPLEMENTED,
                        "'%s': byte %zu: elements are records of several fields, wanted one type", p->name,
                        offset_of(p, begin));
  tn_status s = parse_string(p, "the type, a string", &text);
  if (s != TN_OK) return s;
  tn__snprintf(h->type, sizeof(h->type), text.size >= sizeof(h->type) ? "%.*s..." : "%.*s",
               (int)(text.size >= sizeof(h->type) ? sizeof(h->type) - 4 : text.size), text.data);

  tn__slice width = { text.data + 2, text.size < 2 ? 0 : text.size - 2 };
  int64_t n = -1;
  char order = text.size > 0 ? text.data[0] : 0;
  h->kind = text.size > 1 ? text.data[1] : 0;
  bool ok = order != 0 && strchr("<>|=", order) != NULL && h->kind != 0 && strchr("biufcSUV", h->kind) != NULL &&
            width.size > 0 && width.data[0] >= '0' && width.data[0] <= '9' && tn__parse_int(width, &n) && n >= 1 &&
            n <= PTRDIFF_MAX / 4;
  h->dtype = TN_DTYPE_INVALID;
  h->item = ok ? (size_t)n : 0;
  if (ok && (h->kind == 'S' || h->kind == 'U')) {
    h->dtype = TN_STRING;
    if (h->kind == 'U') h->item *= 4; /* UCS-4 */
  }
  for (size_t i = 0; ok && i < N_TYPES && h->dtype == TN_DTYPE_INVALID && h->kind != 'V'; i++)
    if (types[i].kind == h->kind && types[i].item == n) h->dtype = types[i].dtype;
  if (!ok || (h->dtype == TN_DTYPE_INVALID && h->kind != 'V'))
    return tn_error_set(
        p->err, ok || h->kind == 'O' || h->kind == 'm' || h->kind == 'M' ? TN_UNIMPLEMENTED : TN_INVALID_ARGUMENT,
        "'%s': byte %zu: the elements' type '%s' is %s", p->name, offset_of(p, begin), h->type,
        why_not(ok ? 0 : h->kind));
  h->swap = order == '>' && h->kind != 'S' && h->kind != 'V' && (h->item > 1);
  return TN_OK;
}

/* ---- the whole dict ---- */

enum { DESCR = 1, FORTRAN_ORDER = 2, SHAPE = 4 }; /* bits of the keys, in the order of keys[] */

/* Reads a key with its value. Each key must occur once, in any order. */
static tn_status parse_pair(parser *p, unsigned *seen)
{
  static const char *const keys[] = { "descr", "fortran_order", "shape" };
  tn__slice key;
  skip_space(p);
  const char *begin = p->at;
  tn_status s = parse_string(p, "a key", &key);
  if (s != TN_OK) return s;
  unsigned bit = 0;
  for (unsigned i = 0; i < 3; i++)
    if (tn__slice_is(key, keys[i])) bit = 1u << i;
  if (bit == 0 || (*seen & bit) != 0)
    return tn_error_set(p->err, TN_INVALID_ARGUMENT, "'%s': byte %zu: key '%.*s' %s", p->name, offset_of(p, begin),
                        (int)(key.size > 40 ? 40 : key.size), key.data, bit == 0 ? "is not known" : "occurs twice");
  *seen |= bit;
  if (!take(p, ':')) return wanted(p, "':'");
  if (bit == DESCR) return parse_type(p);
  if (bit == SHAPE) return parse_shape(p);
  if (take_word(p, "True"))
    p->h->fortran = true;
  else if (!take_word(p, "False"))
    return wanted(p, "True or False");
  return TN_OK;
}

static const char *missing_key(unsigned seen)
{
  if ((seen & DESCR) == 0) return "descr";
  return (seen & SHAPE) == 0 ? "shape" : "fortran_order";
}

tn_status tn__npy_dict(const char *text, const char *name, tn__npy_header *h, tn_error *err)
{
  parser p = { text, text, text + (h->data_at - h->header_at), name, h, err };
  unsigned seen = 0;
  bool comma = true;
  if (!take(&p, '{')) return wanted(&p, "'{'");
  while (!take(&p, '}')) {
    if (!comma) return wanted(&p, "',' or '}'");
    tn_status s = parse_pair(&p, &seen);
    if (s != TN_OK) return s;
    comma = take(&p, ',');
  }
  skip_space(&p);
  if (p.at != p.end) return wanted(&p, "the end of the header");
  if (seen != (DESCR | FORTRAN_ORDER | SHAPE))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': byte %zu: the header has no '%s'", name, h->header_at,
                        missing_key(seen));
  return TN_OK;
}

/* ---- writing ---- */

/* The length of the longest string, at least 1. A string that ends in a zero byte is refused: readers take zeros at the
 * end for padding. */
static tn_status string_width(const tn_tensor *tensor, size_t *item, tn_error *err)
{
  *item = 1;
  for (int64_t i = 0; i < tn_tensor_elements(tensor); i++) {
    const char *text;
    size_t length;
    tn_status s = tn_tensor_get_string(tensor, i, &text, &length, err);
    if (s != TN_OK) return s;
    if (length > 0 && text[length - 1] == 0)
      return tn_error_set(err, TN_UNIMPLEMENTED,
                          "element %" PRId64 " ends in a zero byte, which the fixed-width strings of .npy cannot keep",
                          i);
    if (length > *item) *item = length;
  }
  return TN_OK;
}

/* Writes format 1.0, with blanks that align the elements. */
tn_status tn__npy_format_header(const tn_tensor *tensor, tn__text *out, size_t *item, tn_error *err)
{
  tn_dtype dtype = tn_tensor_dtype(tensor);
  char kind = tn__npy_kind(dtype);
  *item = tn_dtype_size(dtype);
  if (dtype == TN_STRING) {
    tn_status s = string_width(tensor, item, err);
    if (s != TN_OK) return s;
  }
  if (kind == 0)
    return tn_error_set(err, TN_UNIMPLEMENTED, "a tensor of dtype %s cannot be written as .npy", tn_dtype_name(dtype));

  const int64_t *dims = tn_tensor_dims(tensor);
  int32_t rank = tn_tensor_rank(tensor);
  tn__text_append(out, MAGIC "\1\0\0\0", MAGIC_SIZE + 4);
  tn__text_printf(out, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
                  kind == 'S' || (kind != 'V' && *item == 1) ? '|' : '<', kind, *item);
  for (int32_t i = 0; i < rank; i++) tn__text_printf(out, i == 0 ? "%" PRId64 : ", %" PRId64, dims[i]);
  tn__text_puts(out, rank == 1 ? ",), }" : "), }");
  while (!out->failed && (out->size + 1) % DATA_ALIGN != 0) tn__text_puts(out, " ");
  tn__text_puts(out, "\n");
  if (out->failed) return tn__no_memory(err, "the header of an .npy file", out->size);
  /* With at most 254 dimensions of 19 digits the length always fits in the two bytes of format 1.0. */
  size_t length = out->size - (MAGIC_SIZE + 4);
  out->data[8] = (char)(length & 0xff);
  out->data[9] = (char)(length >> 8);
  return TN_OK;
}
