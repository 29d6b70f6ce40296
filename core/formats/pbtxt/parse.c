/* SPDX-License-Identifier: Apache-2.0 */
/* Translates text to the bytes of messages, in one pass. The bytes are at most five times as long as the text.
 *
 * The length of a message is known only at its end, so one byte is reserved for it and a longer message is moved
 * (tn__sink_begin). Line and column are computed only for an error. */
#include <core/formats/pbtxt/pbtxt.h>

#include <inttypes.h>
#include <string.h>

typedef struct parser {
  const char *begin, *p, *end; /* the text, and the current position in it */
  const char *file;            /* for messages */
  tn__sink *out;
  tn_error *err;
  unsigned depth; /* of nested messages */
} parser;

/* A message that is being read. */
typedef struct frame {
  const tn__pb_message *type;
  const char *closer;         /* "}" or ">"; NULL: the end of the text */
  const char *begin;          /* for the error that the closer is missing */
  uint64_t seen;              /* bit i: field i of the type has occurred */
  const tn__pb_field *choice; /* the member of the oneof that has occurred, NULL = none */
  const tn__pb_field *run;    /* a run of packed numbers that adjacent values may extend, NULL = none */
  size_t run_at;              /* place of the run's length */
} frame;

static tn_status parse_fields(parser *ps, frame *fr);

/* ---- positions and errors ---- */

static tn_status fail_at(parser *ps, const char *at, const char *format, ...) TN_PRINTF(3, 4);
/* Sets the error with the line and column of `at`, counted from 1; columns are bytes. */
static tn_status fail_at(parser *ps, const char *at, const char *format, ...)
{
  char what[400];
  va_list args;
  va_start(args, format);
  tn__vsnprintf(what, sizeof what, format, args);
  va_end(args);
  size_t line = 1;
  const char *start = ps->begin;
  for (const char *p = ps->begin; p < at && (p = memchr(p, '\n', (size_t)(at - p))) != NULL; p++) {
    line++;
    start = p + 1;
  }
  return tn_error_set(ps->err, TN_INVALID_ARGUMENT, "%s:%zu:%zu: %s", ps->file, line, (size_t)(at - start) + 1, what);
}

/* An error at the current position: what was found, what was wanted. */
static tn_status expected(parser *ps, const char *what)
{
  if (ps->p == ps->end) return fail_at(ps, ps->p, "the text ends, wanted %s", what);
  unsigned char c = (unsigned char)*ps->p;
  if (c >= 0x20 && c < 0x7f) return fail_at(ps, ps->p, "found '%c', wanted %s", c, what);
  return fail_at(ps, ps->p, "found byte 0x%02x, wanted %s", c, what);
}

static int shown(tn__slice text) { return text.size > 100 ? 100 : (int)text.size; }

/* ---- tokens ---- */

/* Skips blanks and comments. */
static void skip_space(parser *ps)
{
  for (; ps->p < ps->end; ps->p++) {
    char c = *ps->p;
    if (c == '#') {
      const char *eol = memchr(ps->p, '\n', (size_t)(ps->end - ps->p));
      ps->p = eol == NULL ? ps->end - 1 : eol;
    } else if (c != ' ' && c != '\n' && (c < '\t' || c > '\r')) {
      return;
    }
  }
}

/* Whether the next character is this one. If so, skips it and the space after it. */
static bool accept(parser *ps, char c)
{
  if (ps->p == ps->end || *ps->p != c) return false;
  ps->p++;
  skip_space(ps);
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

static tn__slice read_word(parser *ps)
{
  const char *from = ps->p;
  while (ps->p < ps->end && is_word(*ps->p)) ps->p++;
  return (tn__slice){ from, (size_t)(ps->p - from) };
}

/* Reads a number or a name, without its sign; also "1e-5" and "0.5f". */
static tn__slice read_scalar(parser *ps)
{
  const char *from = ps->p;
  bool hex = ps->end - from > 1 && from[0] == '0' && (from[1] == 'x' || from[1] == 'X');
  for (; ps->p < ps->end; ps->p++) {
    char c = *ps->p;
    bool exponent = ps->p > from && (ps->p[-1] == 'e' || ps->p[-1] == 'E') && !hex && (is_digit(*from) || *from == '.');
    if (!is_word(c) && c != '.' && !(exponent && (c == '-' || c == '+'))) break;
  }
  return (tn__slice){ from, (size_t)(ps->p - from) };
}

/* ---- texts ---- */

static int digit_value(char c)
{
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Reads up to `most` digits; *n gets their number. */
static uint32_t read_digits(parser *ps, int base, int most, int *n)
{
  uint32_t value = 0;
  for (*n = 0; *n < most && ps->p < ps->end && digit_value(*ps->p) < base; ++*n)
    value = value * (uint32_t)base + (uint32_t)digit_value(*ps->p++);
  return value;
}

static size_t utf8_size(uint32_t c)
{
  if (c < 0x80) return 1;
  if (c < 0x800) return 2;
  return c < 0x10000 ? 3 : 4;
}

/* Writes a code point as UTF-8; returns its size. */
static size_t utf8(char *to, uint32_t c)
{
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  size_t n = utf8_size(c);
  for (size_t i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)((0xf00 >> n) | c); /* 0xc0, 0xe0, 0xf0 */
  return n;
}

/* Reads \uXXXX (a surrogate pair of them for a code point beyond 16 bits) or \UXXXXXXXX, from after the letter on. */
static tn_status read_unicode(parser *ps, const char *at, int digits)
{
  int n, m;
  uint32_t c = read_digits(ps, 16, digits, &n);
  if (n == digits && c >= 0xd800 && c < 0xdc00 && ps->end - ps->p >= 6 && ps->p[0] == '\\' && ps->p[1] == 'u') {
    ps->p += 2;
    uint32_t low = read_digits(ps, 16, 4, &m);
    c = m == 4 && low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
  }
  if (n < digits || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
    return fail_at(ps, at, "an escape is not a Unicode character");
  char bytes[4];
  tn__sink_put(ps->out, bytes, utf8(bytes, c));
  return TN_OK;
}

/* Reads one escape and writes its byte or character. ps->p is at the backslash. */
static tn_status read_escape(parser *ps)
{
  static const char letters[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
  const char *at = ps->p++;
  if (ps->p == ps->end) return fail_at(ps, at, "a text is not closed");
  char c = *ps->p;
  int n;
  uint32_t value;
  if (c >= '0' && c <= '7') {
    value = read_digits(ps, 8, 3, &n);
    if (value > 255) return fail_at(ps, at, "an escape is a number above 255");
  } else if (c == 'x' || c == 'X') {
    ps->p++;
    value = read_digits(ps, 16, 2, &n);
    if (n == 0) return fail_at(ps, at, "'\\x' has no digits");
  } else if (c == 'u' || c == 'U') {
    ps->p++;
    return read_unicode(ps, at, c == 'u' ? 4 : 8);
  } else {
    const char *letter = c == 0 ? NULL : strchr(letters, c);
    if (letter == NULL) return fail_at(ps, at, "a backslash must be followed by one of \"abfnrtvxuU\\'?\" or digits");
    value = (unsigned char)values[letter - letters];
    ps->p++;
  }
  tn__sink_put(ps->out, &(char){ (char)value }, 1);
  return TN_OK;
}

static bool is_octal(char c) { return c >= '0' && c <= '7'; }

/* The fast path: runs of \ooo, of which binary data in texts consists. */
static void read_octals(parser *ps)
{
  enum { PIECE = 4096 };
  for (bool more = true; more;) {
    size_t n = 0;
    unsigned char *to = (unsigned char *)tn__sink_reserve(ps->out, PIECE);
    if (to == NULL) return;
    while (n < PIECE && ps->end - ps->p >= 4 && ps->p[0] == '\\' && ps->p[1] >= '0' && ps->p[1] <= '3' &&
           is_octal(ps->p[2]) && is_octal(ps->p[3])) {
      to[n++] = (unsigned char)((ps->p[1] - '0') << 6 | (ps->p[2] - '0') << 3 | (ps->p[3] - '0'));
      ps->p += 4;
    }
    ps->out->used += n;
    more = n == PIECE;
  }
}

/* Reads one quoted piece. A text may not span lines, as in protobuf. */
static tn_status read_quoted(parser *ps)
{
  const char *open = ps->p++;
  for (;;) {
    const char *from = ps->p;
    while (ps->p < ps->end && *ps->p != *open && *ps->p != '\\' && *ps->p != '\n') ps->p++;
    tn__sink_put(ps->out, from, (size_t)(ps->p - from));
    if (ps->p == ps->end || *ps->p == '\n') return fail_at(ps, open, "a text is not closed in its line");
    if (*ps->p == *open) break;
    from = ps->p;
    read_octals(ps);
    tn_status st = ps->p > from ? ps->out->status : read_escape(ps);
    if (st != TN_OK) return st;
  }
  ps->p++;
  return TN_OK;
}

/* Parses a text of one or more quoted pieces. */
static tn_status parse_text(parser *ps, const tn__pb_field *f)
{
  if (ps->p == ps->end || (*ps->p != '"' && *ps->p != '\'')) return expected(ps, "a text in quotes");
  tn__sink_tag(ps->out, f->number, TN__WIRE_BYTES);
  size_t place = tn__sink_begin(ps->out);
  while (ps->p < ps->end && (*ps->p == '"' || *ps->p == '\'')) {
    tn_status st = read_quoted(ps);
    if (st != TN_OK) return st;
    skip_space(ps);
  }
  tn__sink_end(ps->out, place);
  return ps->out->status;
}

/* ---- numbers ---- */

/* Parses a natural number: decimal, 0x1f or 017. False: malformed, or above 64 bits. */
static bool to_natural(tn__slice text, uint64_t *out)
{
  uint64_t base = 10, value = 0;
  size_t i = 0;
  if (text.size > 1 && text.data[0] == '0') {
    bool hex = text.data[1] == 'x' || text.data[1] == 'X';
    base = hex ? 16 : 8;
    i = hex ? 2 : 1;
  }
  if (i == text.size) return false;
  for (; i < text.size; i++) {
    uint64_t digit = (uint64_t)digit_value(text.data[i]);
    if (digit >= base || value > (UINT64_MAX - digit) / base) return false;
    value = value * base + digit;
  }
  *out = value;
  return true;
}

/* `word` is in lower case. */
static bool is_nocase(tn__slice text, const char *word)
{
  size_t i = 0;
  for (; i < text.size && word[i] != 0; i++)
    if ((text.data[i] | 0x20) != word[i]) return false;
  return i == text.size && word[i] == 0;
}

/* Accepts what protobuf's text form does: also inf and nan in any case, and a trailing f. */
static bool to_real(tn__slice text, bool negative, double *out)
{
  bool named = is_nocase(text, "inf") || is_nocase(text, "infinity") || is_nocase(text, "nan");
  char last = text.size > 1 ? text.data[text.size - 1] : 0;
  if (!named && (last == 'f' || last == 'F')) text.size--;
  if (!named && (text.size == 0 || !(is_digit(text.data[0]) || text.data[0] == '.'))) return false;
  if (!tn__parse_double(text, out)) return false;
  if (negative) *out = -*out;
  return true;
}

/* Accepts the forms that protobuf does: true, True, t, 1, and so on. */
static bool to_bool(tn__slice text, uint64_t *out)
{
  bool yes = tn__slice_is(text, "true") || tn__slice_is(text, "True") || tn__slice_is(text, "t");
  bool no = tn__slice_is(text, "false") || tn__slice_is(text, "False") || tn__slice_is(text, "f");
  *out = yes;
  return yes || no || (to_natural(text, out) && *out <= 1);
}

/* The largest absolute value of an integer type. */
static uint64_t most_of(int type, bool negative)
{
  switch (type) {
  case TN__PB_INT64:
  case TN__PB_SINT64: return (uint64_t)INT64_MAX + negative;
  case TN__PB_UINT32: return negative ? 0 : UINT32_MAX;
  case TN__PB_UINT64:
  case TN__PB_FIXED64: return negative ? 0 : UINT64_MAX;
  default: return (uint64_t)INT32_MAX + negative;
  }
}

static bool to_integer(int type, tn__slice text, bool negative, uint64_t *out)
{
  if (!to_natural(text, out) || *out > most_of(type, negative)) return false;
  if (negative) *out = 0 - *out; /* of an int32 also the upper 32 bits, as protobuf writes it */
  if (type == TN__PB_SINT64) *out = *out << 1 ^ (negative ? UINT64_MAX : 0); /* the sign is bit 0 */
  return true;
}

/* By name or by number: numbers without a name are valid, too. */
static bool to_enum(const tn__pb_enum *names, tn__slice text, bool negative, uint64_t *out)
{
  for (size_t i = 0; !negative && i < names->n; i++)
    if (tn__slice_is(text, names->values[i].name)) {
      *out = (uint64_t)names->values[i].value;
      return true;
    }
  return to_integer(TN__PB_INT32, text, negative, out);
}

/* What a field wants, for messages. */
static const char *wanted_of(const tn__pb_field *f)
{
  switch (f->type) {
  case TN__PB_DOUBLE:
  case TN__PB_FLOAT: return "a number";
  case TN__PB_INT64:
  case TN__PB_SINT64: return "an integer of 64 bits";
  case TN__PB_UINT64:
  case TN__PB_FIXED64: return "an integer of 64 bits that is not negative";
  case TN__PB_UINT32: return "an integer of 32 bits that is not negative";
  case TN__PB_BOOL: return "true or false";
  default: return "an integer of 32 bits";
  }
}

/* Parses a number of the field's type into the bits of its wire form. */
static tn_status parse_number(parser *ps, const tn__pb_field *f, uint64_t *out)
{
  const char *at = ps->p;
  bool negative = accept(ps, '-'), ok = false;
  tn__slice text = read_scalar(ps);
  double real = 0;
  if (text.size == 0) return expected(ps, f->type == TN__PB_ENUM ? f->names->name : wanted_of(f));
  switch (f->type) {
  case TN__PB_DOUBLE:
    ok = to_real(text, negative, &real);
    memcpy(out, &real, sizeof real);
    break;
  case TN__PB_FLOAT: {
    ok = to_real(text, negative, &real);
    float single = (float)real;
    *out = 0;
    memcpy(out, &single, sizeof single);
    break;
  }
  case TN__PB_BOOL: ok = !negative && to_bool(text, out); break;
  case TN__PB_ENUM: ok = to_enum(f->names, text, negative, out); break;
  default: ok = to_integer(f->type, text, negative, out); break;
  }
  skip_space(ps);
  if (ok) return TN_OK;
  if (f->type == TN__PB_ENUM) return fail_at(ps, at, "%s has no value '%.*s'", f->names->name, shown(text), text.data);
  return fail_at(ps, at, "'%s%.*s' is not %s", negative ? "-" : "", shown(text), text.data, wanted_of(f));
}

static void put_number(tn__sink *out, int wire, uint64_t value)
{
  if (wire == TN__WIRE_VARINT)
    tn__sink_varint(out, value);
  else
    tn__sink_put(out, &value, wire == TN__WIRE_FIXED32 ? 4 : 8); /* little-endian, like the machine */
}

/* ---- fields ---- */

/* Completes a run of packed numbers, before anything else is written. */
static void end_run(parser *ps, frame *fr)
{
  if (fr->run != NULL) tn__sink_end(ps->out, fr->run_at);
  fr->run = NULL;
}

/* Writes a number. Adjacent numbers of a repeated field share one packed run. */
static tn_status parse_scalar(parser *ps, frame *fr, const tn__pb_field *f)
{
  uint64_t value = 0;
  tn_status st = parse_number(ps, f, &value);
  if (st != TN_OK) return st;
  int wire = tn__pb_wire(f);
  if (!f->repeated) {
    end_run(ps, fr);
    tn__sink_tag(ps->out, f->number, wire);
  } else if (fr->run != f) {
    end_run(ps, fr);
    tn__sink_tag(ps->out, f->number, TN__WIRE_BYTES);
    fr->run_at = tn__sink_begin(ps->out);
    fr->run = f;
  }
  put_number(ps->out, wire, value);
  return ps->out->status;
}

/* Parses a nested message in braces or angle brackets. */
static tn_status parse_message(parser *ps, const tn__pb_field *f)
{
  const char *at = ps->p;
  frame fr = { .type = f->message, .begin = at };
  if (accept(ps, '{'))
    fr.closer = "}";
  else if (accept(ps, '<'))
    fr.closer = ">";
  else
    return expected(ps, "'{'");
  if (++ps->depth > TN__PBTXT_DEPTH) return fail_at(ps, at, "messages are nested too deeply");
  tn__sink_tag(ps->out, f->number, TN__WIRE_BYTES);
  size_t place = tn__sink_begin(ps->out);
  tn_status st = parse_fields(ps, &fr);
  tn__sink_end(ps->out, place);
  ps->depth--;
  return st == TN_OK ? ps->out->status : st;
}

static tn_status parse_value(parser *ps, frame *fr, const tn__pb_field *f)
{
  if (f->type != TN__PB_MESSAGE && f->type != TN__PB_TEXT) return parse_scalar(ps, fr, f);
  end_run(ps, fr);
  return f->type == TN__PB_TEXT ? parse_text(ps, f) : parse_message(ps, f);
}

static tn_status parse_list(parser *ps, frame *fr, const tn__pb_field *f)
{
  if (accept(ps, ']')) return TN_OK;
  for (;;) {
    tn_status st = parse_value(ps, fr, f);
    if (st != TN_OK || accept(ps, ']')) return st;
    if (!accept(ps, ',')) return expected(ps, "',' or ']'");
  }
}

static const tn__pb_field *find_field(const tn__pb_message *type, tn__slice name)
{
  for (size_t i = 0; i < type->n; i++)
    if (tn__slice_is(name, type->fields[i].name)) return &type->fields[i];
  return NULL;
}

/* Refuses a second occurrence of a field that is not repeated, and a second member of the oneof. */
static tn_status check_once(parser *ps, frame *fr, const tn__pb_field *f, const char *at)
{
  uint64_t bit = UINT64_C(1) << (f - fr->type->fields);
  if (f->repeated) return TN_OK;
  if ((fr->seen & bit) != 0) return fail_at(ps, at, "%s has a field '%s' already", fr->type->name, f->name);
  if (f->choice && fr->choice != NULL)
    return fail_at(ps, at, "%s has a field '%s' already, which excludes '%s'", fr->type->name, fr->choice->name,
                   f->name);
  if (f->choice) fr->choice = f;
  fr->seen |= bit;
  return TN_OK;
}

/* The type of the message in an Any, by its address "type.googleapis.com/tensorflow.NAME"; NULL: not in the list. */
static const tn__pb_message *any_type(tn__slice url)
{
  static const char package[] = "/tensorflow.";
  for (const tn__pb_message *const *t = tn__pb_any_types; *t != NULL; t++) {
    size_t n = strlen((*t)->name), m = sizeof package - 1;
    const char *end = url.data + url.size;
    if (url.size > n + m && memcmp(end - n, (*t)->name, n) == 0 && memcmp(end - n - m, package, m) == 0) return *t;
  }
  return NULL;
}

/* Parses "[ADDRESS] { ... }" in an Any, and writes its two fields. */
static tn_status parse_any(parser *ps, frame *fr)
{
  const tn__pb_field *type_url = &tn__pb_any.fields[0];
  const char *at = ps->p, *end = memchr(at, ']', (size_t)(ps->end - at));
  if (fr->seen != 0) return fail_at(ps, at, "Any has a message already");
  if (end == NULL) return fail_at(ps, at, "the name of a type has no ']'");
  tn__slice url = { at + 1, (size_t)(end - at) - 1 };
  const tn__pb_field value = { "value", 2, TN__PB_MESSAGE, false, false, any_type(url), NULL };
  if (value.message == NULL) return fail_at(ps, at, "the type '%.*s' is not known", shown(url), url.data);
  fr->seen = 3; /* both fields */
  tn__sink_bytes(ps->out, type_url->number, url);
  ps->p = end;
  accept(ps, ']');
  accept(ps, ':');
  tn_status st = parse_message(ps, &value);
  if (st == TN_OK && !accept(ps, ',')) accept(ps, ';');
  return st;
}

/* Parses one field with its value or list. Fields may be separated by a comma or semicolon. */
static tn_status parse_field(parser *ps, frame *fr)
{
  const char *at = ps->p;
  tn__slice name = read_word(ps);
  if (name.size == 0 || is_digit(*at)) {
    ps->p = at;
    return expected(ps, "the name of a field");
  }
  const tn__pb_field *f = find_field(fr->type, name);
  if (f == NULL) return fail_at(ps, at, "%s has no field '%.*s'", fr->type->name, shown(name), name.data);
  tn_status st = check_once(ps, fr, f, at);
  if (st != TN_OK) return st;
  skip_space(ps);
  if (!accept(ps, ':') && f->type != TN__PB_MESSAGE) return expected(ps, "':'");
  st = f->repeated && accept(ps, '[') ? parse_list(ps, fr, f) : parse_value(ps, fr, f);
  if (st == TN_OK && !accept(ps, ',')) accept(ps, ';');
  return st;
}

/* Parses fields up to the closer of the message, which it skips. */
static tn_status parse_fields(parser *ps, frame *fr)
{
  for (;;) {
    if (ps->p == ps->end && fr->closer == NULL) break;
    if (ps->p == ps->end) return fail_at(ps, fr->begin, "%s has no '%s'", fr->type->name, fr->closer);
    if (fr->closer != NULL && accept(ps, *fr->closer)) break;
    bool expanded = fr->type == &tn__pb_any && *ps->p == '[';
    tn_status st = expanded ? parse_any(ps, fr) : parse_field(ps, fr);
    if (st != TN_OK) return st;
  }
  end_run(ps, fr);
  return ps->out->status;
}

tn_status tn__pbtxt_parse(tn__slice text, const char *file, const tn__pb_message *type, tn__sink *out, tn_error *err)
{
  const char *begin = text.data == NULL ? "" : text.data;
  parser ps = { .begin = begin, .p = begin, .end = begin + text.size, .file = file, .out = out, .err = err };
  if (text.size >= 3 && memcmp(begin, "\xef\xbb\xbf", 3) == 0) ps.p += 3; /* a byte order mark */
  skip_space(&ps);
  frame fr = { .type = type };
  return parse_fields(&ps, &fr);
}

/* ---- recognising text ---- */

/* Reads the name of the first field with the parser's tokens, without output or errors. *blank: there is only space. */
static tn__slice first_field(tn__slice bytes, bool *blank)
{
  const char *begin = bytes.data == NULL ? "" : bytes.data;
  parser ps = { .p = begin, .end = begin + bytes.size };
  if (bytes.size >= 3 && memcmp(begin, "\xef\xbb\xbf", 3) == 0) ps.p += 3;
  skip_space(&ps);
  *blank = ps.p == ps.end;
  if (*blank || is_digit(*ps.p)) return (tn__slice){ NULL, 0 };
  tn__slice word = read_word(&ps);
  while (ps.p < ps.end && (*ps.p == ' ' || *ps.p == '\t')) ps.p++;
  bool is_field = word.size > 1 && ps.p < ps.end && (*ps.p == ':' || *ps.p == '{' || *ps.p == '<');
  return is_field ? word : (tn__slice){ NULL, 0 };
}

tn__slice tn__pbtxt_first_field(tn__slice bytes)
{
  bool blank;
  return first_field(bytes, &blank);
}

bool tn__pbtxt_begins(tn__slice bytes)
{
  bool blank;
  return first_field(bytes, &blank).size > 0 || (blank && bytes.size > 0);
}
