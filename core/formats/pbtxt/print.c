/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the bytes of messages to text, in the order of the fields in the bytes.
 *
 * Each message is walked twice: first to find which occurrence of each field counts, then to print. */
#include <core/formats/pbtxt/pbtxt.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define PIECE ((size_t)16 << 10) /* bytes of a text that are escaped at once, to at most four characters each */

typedef struct printer {
  tn__sink *out;
  tn_error *err;
  const uint8_t *begin;
} printer;

/* The first and last occurrence of each field of a message. Of a field that is not repeated only the last one
 * counts. */
typedef struct places {
  const uint8_t *first[TN__PB_MOST], *last[TN__PB_MOST]; /* their tags; NULL: the field does not occur */
  int choice; /* index of the member of the oneof that counts, -1 = none */
} places;

static tn_status print_fields(printer *pr, tn__slice bytes, const tn__pb_message *type, unsigned depth);

static tn_status malformed(printer *pr, const tn__pb_message *type, const char *what)
{
  return tn_error_set(pr->err, TN_INVALID_ARGUMENT, "malformed %s: %s", type->name, what);
}

static void puts_out(printer *pr, const char *text) { tn__sink_put(pr->out, text, strlen(text)); }

static void indent(printer *pr, unsigned depth)
{
  for (unsigned i = 0; i < depth; i++) tn__sink_put(pr->out, "  ", 2);
}

/* The index of the field in the table, -1: unknown, or of another wire type. */
static int find_field(const tn__pb_message *type, const tn__wire *w)
{
  for (size_t i = 0; i < type->n; i++) {
    const tn__pb_field *f = &type->fields[i];
    if (f->number != w->field) continue;
    int wire = tn__pb_wire(f);
    return w->type == wire || (f->repeated && w->type == TN__WIRE_BYTES) ? (int)i : -1;
  }
  return -1;
}

/* ---- values ---- */

/* The letter after the backslash in an escape of c; 0: c has no such escape. */
static char letter_of(unsigned char c)
{
  switch (c) {
  case '\n': return 'n';
  case '\r': return 'r';
  case '\t': return 't';
  case '"':
  case '\'':
  case '\\': return (char)c;
  default: return 0;
  }
}

/* Writes c, escaped if necessary; returns the end. Bytes beyond ASCII are written in octal, as protobuf does. */
static char *escape(char *to, unsigned char c)
{
  char letter = letter_of(c);
  if (letter == 0 && c >= 0x20 && c < 0x7f) {
    *to++ = (char)c;
    return to;
  }
  *to++ = '\\';
  if (letter != 0) {
    *to++ = letter;
    return to;
  }
  *to++ = (char)('0' + (c >> 6));
  *to++ = (char)('0' + (c >> 3 & 7));
  *to++ = (char)('0' + (c & 7));
  return to;
}

/* Escapes the text directly into the sink, in pieces that fit its memory. */
static void print_text(printer *pr, tn__slice text)
{
  tn__sink_put(pr->out, "\"", 1);
  for (size_t i = 0; i < text.size; i += PIECE) {
    size_t n = text.size - i < PIECE ? text.size - i : PIECE;
    char *to = tn__sink_reserve(pr->out, 4 * n), *end = to;
    if (to == NULL) return;
    for (size_t k = 0; k < n; k++) {
      unsigned char c = (unsigned char)text.data[i + k];
      end = escape(end, c);
    }
    pr->out->used += (size_t)(end - to);
  }
  tn__sink_put(pr->out, "\"", 1);
}

/* Prints the fewest digits that parse to the same value. */
static void print_real(printer *pr, double value, bool is_float)
{
  char text[40];
  double back;
  int digits = is_float ? 6 : 15, most = is_float ? 9 : 17;
  if (isnan(value)) {
    puts_out(pr, "nan");
    return;
  }
  if (isinf(value)) {
    puts_out(pr, value < 0 ? "-inf" : "inf");
    return;
  }
  for (;; digits++) {
    tn__snprintf(text, sizeof text, "%.*g", digits, value);
    if (digits == most || !tn__parse_double(tn__slice_of(text), &back)) break;
    if (is_float ? (float)back == (float)value : back == value) break;
  }
  puts_out(pr, text);
}

static const char *enum_name(const tn__pb_enum *names, int32_t value)
{
  for (size_t i = 0; i < names->n; i++)
    if (names->values[i].value == value) return names->values[i].name;
  return NULL;
}

/* The number whose sign is bit 0 of its encoding. */
static uint64_t unfold(uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

/* Prints a number, or the name of an enum's value if it has one. */
static void print_number(printer *pr, const tn__pb_field *f, uint64_t value)
{
  char text[32];
  const char *name = NULL;
  float single;
  double real;
  uint32_t low = (uint32_t)value;
  switch (f->type) {
  case TN__PB_DOUBLE: memcpy(&real, &value, sizeof real), print_real(pr, real, false); return;
  case TN__PB_FLOAT: memcpy(&single, &low, sizeof single), print_real(pr, (double)single, true); return;
  case TN__PB_BOOL: name = value != 0 ? "true" : "false"; break;
  case TN__PB_ENUM: name = enum_name(f->names, (int32_t)low); break;
  default: break;
  }
  if (name != NULL) {
    puts_out(pr, name);
    return;
  }
  if (f->type == TN__PB_UINT64 || f->type == TN__PB_FIXED64)
    tn__snprintf(text, sizeof text, "%" PRIu64, value);
  else if (f->type == TN__PB_UINT32)
    tn__snprintf(text, sizeof text, "%" PRIu32, low);
  else if (f->type == TN__PB_INT64 || f->type == TN__PB_SINT64)
    tn__snprintf(text, sizeof text, "%" PRId64, (int64_t)(f->type == TN__PB_INT64 ? value : unfold(value)));
  else
    tn__snprintf(text, sizeof text, "%" PRId32, (int32_t)low);
  puts_out(pr, text);
}

/* ---- fields ---- */

static void print_line(printer *pr, const tn__pb_field *f, uint64_t value, unsigned depth)
{
  indent(pr, depth);
  puts_out(pr, f->name);
  tn__sink_put(pr->out, ": ", 2);
  print_number(pr, f, value);
  tn__sink_put(pr->out, "\n", 1);
}

/* Prints a packed run as one line per number. */
static tn_status print_run(printer *pr, const tn__pb_message *type, const tn__pb_field *f, tn__slice run,
                           unsigned depth)
{
  const uint8_t *p = (const uint8_t *)run.data, *end = p + run.size;
  int wire = tn__pb_wire(f);
  size_t size = wire == TN__WIRE_FIXED32 ? 4 : 8;
  while (p < end && pr->out->status == TN_OK) {
    uint64_t value = 0;
    if (wire == TN__WIRE_VARINT) {
      if (!tn__wire_varint(&p, end, &value)) return malformed(pr, type, "a run of numbers is cut short");
    } else {
      if ((size_t)(end - p) < size) return malformed(pr, type, "a run of numbers is cut short");
      memcpy(&value, p, size);
      p += size;
    }
    print_line(pr, f, value, depth);
  }
  return pr->out->status;
}

static tn_status print_message(printer *pr, const tn__pb_field *f, tn__slice bytes, unsigned depth)
{
  indent(pr, depth);
  puts_out(pr, f->name);
  tn__sink_put(pr->out, " {\n", 3);
  tn_status st = print_fields(pr, bytes, f->message, depth + 1);
  indent(pr, depth);
  tn__sink_put(pr->out, "}\n", 2);
  return st;
}

/* Prints a message that occurs several times where one is allowed: the occurrences are concatenated, which merges
 * them. */
static tn_status print_merged(printer *pr, const tn__pb_field *f, tn__wire w, unsigned depth)
{
  tn__sink all = tn__sink_memory(pr->err);
  do {
    if (tn__wire_is(&w, f->number, TN__WIRE_BYTES)) tn__sink_put(&all, w.bytes.data, w.bytes.size);
  } while (tn__wire_next(&w));
  tn_status st = all.status;
  if (st == TN_OK) st = print_message(pr, f, (tn__slice){ all.data, all.used }, depth);
  tn__sink_fini(&all);
  return st;
}

/* Prints an occurrence of field i, unless another occurrence replaces it. */
static tn_status print_field(printer *pr, const tn__pb_message *type, int i, const tn__wire *w, const places *at,
                             unsigned depth)
{
  const tn__pb_field *f = &type->fields[i];
  if (f->choice && i != at->choice) return TN_OK;
  if (f->type == TN__PB_MESSAGE) {
    if (f->repeated || at->first[i] == at->last[i]) return print_message(pr, f, w->bytes, depth);
    return w->at == at->first[i] ? print_merged(pr, f, *w, depth) : TN_OK;
  }
  if (!f->repeated && w->at != at->last[i]) return TN_OK;
  if (f->type != TN__PB_TEXT && w->type == TN__WIRE_BYTES) return print_run(pr, type, f, w->bytes, depth);
  if (f->type != TN__PB_TEXT) {
    print_line(pr, f, w->value, depth);
    return pr->out->status;
  }
  indent(pr, depth);
  puts_out(pr, f->name);
  tn__sink_put(pr->out, ": ", 2);
  print_text(pr, w->bytes);
  tn__sink_put(pr->out, "\n", 1);
  return pr->out->status;
}

/* The first walk over a message: finds the occurrences of its fields that count. */
static tn_status find_places(printer *pr, tn__slice bytes, const tn__pb_message *type, places *at)
{
  memset(at, 0, sizeof *at);
  at->choice = -1;
  tn__wire w = tn__wire_read(bytes);
  while (tn__wire_next(&w)) {
    int i = find_field(type, &w);
    if (i < 0) continue;
    if (type->fields[i].choice && at->choice != i) {
      at->choice = i;
      at->first[i] = NULL; /* a later member of a oneof replaces an earlier one */
    }
    if (at->first[i] == NULL) at->first[i] = w.at;
    at->last[i] = w.at;
  }
  return w.error == NULL ? TN_OK : malformed(pr, type, w.error);
}

/* A field without a name cannot be parsed again, so it is only mentioned. */
static void print_unknown(printer *pr, uint32_t number, unsigned depth)
{
  char text[64];
  indent(pr, depth);
  tn__snprintf(text, sizeof text, "# field %" PRIu32 " is not known and is left out\n", number);
  puts_out(pr, text);
}

/* The second walk over a message: prints its fields. */
static tn_status print_fields(printer *pr, tn__slice bytes, const tn__pb_message *type, unsigned depth)
{
  if (depth > TN__PBTXT_DEPTH) return malformed(pr, type, "messages are nested too deeply");
  places at;
  tn_status st = find_places(pr, bytes, type, &at);
  tn__wire w = tn__wire_read(bytes);
  while (st == TN_OK && tn__wire_next(&w)) {
    int i = find_field(type, &w);
    if (i < 0)
      print_unknown(pr, w.field, depth);
    else if (!type->fields[i].choice || w.at >= at.first[i])
      st = print_field(pr, type, i, &w, &at, depth);
    if (st == TN_OK) st = pr->out->status;
  }
  return st;
}

tn_status tn__pbtxt_print(tn__slice message, const tn__pb_message *type, tn__sink *out, tn_error *err)
{
  printer pr = { .out = out, .err = err };
  return print_fields(&pr, message, type, 0);
}
