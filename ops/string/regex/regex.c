/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles expressions.
 *
 * Code is emitted while the pattern is read, without a tree. The code of an expression is contiguous, is entered at its
 * first instruction and left at its end. An alternative or a repetition inserts instructions before the code that it
 * applies to; a repetition with a count copies the code. Groups are a stack, so no pattern is nested too deeply. */
#include <ops/string/regex/regex.h>

#include <ops/string/unicode/string_case.h>
#include <string.h>

#define MOST_CODE ((size_t)1 << 16) /* instructions */
#define MOST_COUNT 1000             /* of a repetition, as in RE2 */
#define NONE SIZE_MAX
#define NO_END (-1)

enum { FOLD = 1, LINES = 2, DOT_NEWLINE = 4, UNGREEDY = 8 };

/* A group that is open; the first one is the whole pattern. */
typedef struct group {
  size_t begin;  /* of its code */
  size_t branch; /* begin of the current alternative */
  size_t jumps;  /* the last jump to the group's end; its x is the one before, -1: none. NONE: no jump */
  int32_t number; /* of a capturing group; 0: it does not capture */
  int flags;      /* of the code around it */
  size_t at;      /* byte of its parenthesis */
  bool empty;     /* an earlier alternative can match nothing */
  bool outer_empty; /* `empty` and `most` of the parser when the group began */
  int outer_most;
} group;

typedef struct parser {
  tn__regex *re;
  tn__slice text;
  size_t at; /* next byte */
  group *groups;
  size_t depth, room;
  int flags;
  size_t atom;     /* begin of the last expression that a repetition can apply to; NONE: none */
  bool atom_empty; /* it can match nothing */
  bool empty;      /* what is before it in this alternative can match nothing */
  bool repeated;   /* it is a repetition */
  int copies;      /* of its inner parts, by counted repetitions: at most MOST_COUNT */
  int most;        /* the most copies of an expression before it in this group */
  tn_error *err;
} parser;

/* ---- errors ---- */

static tn_status bad(const parser *p, size_t at, const char *what)
{
  return tn_error_set(p->err, TN_INVALID_ARGUMENT, "regular expression '%.*s': %s at byte %zu",
                      (int)(p->text.size < 200 ? p->text.size : 200), p->text.data, what, at);
}

static tn_status no_memory(const parser *p) { return tn__no_memory(p->err, "regular expression", p->text.size); }

/* ---- code ---- */

static tn_status reserve(parser *p, size_t more)
{
  if (p->re->n + more > MOST_CODE) return bad(p, p->at, "it is too large");
  return tn__grow((void **)&p->re->code, &p->re->room, p->re->n + more, sizeof(tn__re_code)) ? TN_OK : no_memory(p);
}

static tn_status emit(parser *p, int32_t op, int32_t x, int32_t y)
{
  tn_status st = reserve(p, 1);
  if (st == TN_OK) p->re->code[p->re->n++] = (tn__re_code){ op, x, y };
  return st;
}

static tn_status insert(parser *p, size_t at, int32_t op, int32_t x, int32_t y)
{
  tn_status st = reserve(p, 1);
  if (st != TN_OK) return st;
  memmove(p->re->code + at + 1, p->re->code + at, (p->re->n - at) * sizeof(tn__re_code));
  p->re->code[at] = (tn__re_code){ op, x, y };
  p->re->n++;
  return TN_OK;
}

static void end_atom(parser *p)
{
  if (p->atom == NONE) return;
  p->empty &= p->atom_empty;
  if (p->copies > p->most) p->most = p->copies;
  p->atom = NONE;
}

/* Begins an expression at the end of the code. */
static void begin_atom(parser *p, bool empty)
{
  end_atom(p);
  p->copies = 1;
  p->atom = p->re->n;
  p->atom_empty = empty;
  p->repeated = false;
}

/* ---- characters ---- */

/* Reads a character of the pattern. */
static tn_status next_char(parser *p, uint32_t *c)
{
  bool wrong;
  size_t at = p->at;
  *c = tn__utf8_next(p->text.data, p->text.size, &p->at, &wrong);
  return wrong ? bad(p, at, "invalid UTF-8") : TN_OK;
}

/* The set becomes the parser's. */
static tn_status add_set(parser *p, tn__char_set *set, int32_t *number)
{
  tn__regex *re = p->re;
  if (!tn__grow((void **)&re->sets, &re->room_sets, re->n_sets + 1, sizeof *re->sets)) {
    tn__char_set_fini(set);
    return no_memory(p);
  }
  *number = (int32_t)re->n_sets;
  re->sets[re->n_sets++] = *set;
  return TN_OK;
}

static tn_status emit_set(parser *p, tn__char_set *set)
{
  int32_t number = 0;
  tn_status st = add_set(p, set, &number);
  begin_atom(p, false);
  return st == TN_OK ? emit(p, TN__RE_SET, number, 0) : st;
}

static bool has_cases(uint32_t c) { return c >= 128 || (c | 0x20) - 'a' < 26; }

static tn_status emit_char(parser *p, uint32_t c)
{
  if ((p->flags & FOLD) == 0 || !has_cases(c)) {
    begin_atom(p, false);
    return emit(p, TN__RE_CHAR, (int32_t)c, 0);
  }
  tn__char_set set = { 0 };
  bool ok = tn__char_set_add(&set, c, c);
  if (ok) tn__char_set_close(&set);
  if (ok && tn__char_set_fold(&set)) return emit_set(p, &set);
  tn__char_set_fini(&set);
  return no_memory(p);
}

static tn_status emit_dot(parser *p)
{
  tn__char_set set = { 0 };
  bool ok = (p->flags & DOT_NEWLINE) != 0 ? tn__char_set_add(&set, 0, TN__LAST_CHAR)
                                          : tn__char_set_add(&set, 0, 9) && tn__char_set_add(&set, 11, TN__LAST_CHAR);
  if (!ok) {
    tn__char_set_fini(&set);
    return no_memory(p);
  }
  tn__char_set_close(&set);
  return emit_set(p, &set);
}

/* ---- escapes ---- */

static int digit_of(int c)
{
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static int peek(const parser *p) { return p->at < p->text.size ? (unsigned char)p->text.data[p->at] : -1; }

/* "\x7f", "\x{10ffff}"; p->at is after the x. */
static bool read_hex(parser *p, uint32_t *c)
{
  bool braces = peek(p) == '{';
  size_t n = 0;
  *c = 0;
  if (braces) p->at++;
  for (; (braces || n < 2) && digit_of(peek(p)) < 16 && *c <= TN__LAST_CHAR; n++, p->at++)
    *c = *c * 16 + (uint32_t)digit_of(peek(p));
  if (!braces) return n == 2;
  return n > 0 && *c <= TN__LAST_CHAR && peek(p) == '}' && ++p->at > 0;
}

/* Up to three octal digits, of which the first is read. */
static uint32_t read_octal(parser *p, uint32_t first)
{
  uint32_t c = first - '0';
  for (int n = 0; n < 2 && digit_of(peek(p)) < 8; n++, p->at++) c = c * 8 + (uint32_t)digit_of(peek(p));
  return c;
}

/* An escape that is a character; p->at is after the backslash, which is at byte `begin`. */
static tn_status read_escape(parser *p, size_t begin, uint32_t *c)
{
  static const char names[] = "aftnrv", values[] = "\a\f\t\n\r\v";
  if (peek(p) < 0) return bad(p, begin, "a backslash without a character");
  tn_status st = next_char(p, c);
  if (st != TN_OK) return st;
  const char *known = *c < 128 && *c != 0 ? strchr(names, (int)*c) : NULL;
  if (known != NULL) {
    *c = (unsigned char)values[known - names];
    return TN_OK;
  }
  bool letter = (*c | 0x20) - 'a' < 26, digit = *c - '0' < 10;
  if (*c == 'x' && read_hex(p, c)) return TN_OK;
  if (*c == '0' || (digit && *c < '8' && digit_of(peek(p)) < 8)) {
    *c = read_octal(p, *c);
    return TN_OK;
  }
  if (*c < 128 && !letter && !digit) return TN_OK;
  return bad(p, begin, "an unknown escape");
}

/* ---- named sets ---- */

typedef struct named {
  const char *name;
  uint8_t n;
  uint8_t ranges[8]; /* n pairs */
} named;

static const named names[] = {
  { "d", 1, { '0', '9' } },
  { "s", 3, { '\t', '\n', '\f', '\r', ' ', ' ' } },
  { "w", 4, { '0', '9', 'A', 'Z', '_', '_', 'a', 'z' } },
  { "[:alnum:]", 3, { '0', '9', 'A', 'Z', 'a', 'z' } },
  { "[:alpha:]", 2, { 'A', 'Z', 'a', 'z' } },
  { "[:ascii:]", 1, { 0, 127 } },
  { "[:blank:]", 2, { '\t', '\t', ' ', ' ' } },
  { "[:cntrl:]", 2, { 0, 31, 127, 127 } },
  { "[:digit:]", 1, { '0', '9' } },
  { "[:graph:]", 1, { '!', '~' } },
  { "[:lower:]", 1, { 'a', 'z' } },
  { "[:print:]", 1, { ' ', '~' } },
  { "[:punct:]", 4, { '!', '/', ':', '@', '[', '`', '{', '~' } },
  { "[:space:]", 2, { '\t', '\r', ' ', ' ' } },
  { "[:upper:]", 1, { 'A', 'Z' } },
  { "[:word:]", 4, { '0', '9', 'A', 'Z', '_', '_', 'a', 'z' } },
  { "[:xdigit:]", 3, { '0', '9', 'A', 'F', 'a', 'f' } },
};

/* Adds a named set, or all characters outside of it. */
static tn_status add_named(const parser *p, const named *from, bool negated, tn__char_set *to)
{
  tn__char_set set = { 0 };
  bool ok = true;
  for (int i = 0; ok && i < from->n; i++) ok = tn__char_set_add(&set, from->ranges[2 * i], from->ranges[2 * i + 1]);
  if (ok) tn__char_set_close(&set);
  if (ok && (p->flags & FOLD) != 0) ok = tn__char_set_fold(&set);
  if (ok && negated) ok = tn__char_set_negate(&set);
  ok = ok && tn__char_set_add_all(to, &set);
  tn__char_set_fini(&set);
  return ok ? TN_OK : no_memory(p);
}

/* "\d" and the like at p->at; *found is false if there is none. */
static tn_status take_class_escape(parser *p, tn__char_set *to, bool *found)
{
  const char *at = p->text.data + p->at;
  *found = false;
  if (p->text.size - p->at < 2 || at[0] != '\\') return TN_OK;
  if (at[1] == 'p' || at[1] == 'P')
    return tn_error_set(p->err, TN_UNIMPLEMENTED, "regular expression '%.*s': classes of Unicode, at byte %zu",
                        (int)(p->text.size < 200 ? p->text.size : 200), p->text.data, p->at);
  for (size_t i = 0; i < 3; i++) {
    if ((at[1] | 0x20) != names[i].name[0]) continue;
    *found = true;
    p->at += 2;
    return add_named(p, &names[i], at[1] < 'a', to);
  }
  return TN_OK;
}

/* "[:alpha:]" and "[:^alpha:]" at p->at. */
static tn_status take_posix(parser *p, tn__char_set *to, bool *found)
{
  tn__slice rest = { p->text.data + p->at, p->text.size - p->at };
  size_t n = 4;
  char text[16];
  *found = false;
  if (rest.size < 2 || rest.data[0] != '[' || rest.data[1] != ':') return TN_OK;
  while (n <= rest.size && (rest.data[n - 2] != ':' || rest.data[n - 1] != ']')) n++;
  if (n > rest.size) return TN_OK;
  bool negated = rest.data[2] == '^';
  n -= negated;
  if (n >= sizeof text) return bad(p, p->at, "an unknown class");
  memcpy(text, "[:", 2);
  memcpy(text + 2, rest.data + 2 + negated, n - 2);
  text[n] = 0;
  for (size_t i = 3; i < sizeof names / sizeof *names; i++) {
    if (strcmp(text, names[i].name) != 0) continue;
    *found = true;
    p->at += n + negated;
    return add_named(p, &names[i], negated, to);
  }
  return bad(p, p->at, "an unknown class");
}

/* ---- [...] ---- */

static tn_status set_char(parser *p, uint32_t *c)
{
  size_t begin = p->at;
  if (peek(p) != '\\') return next_char(p, c);
  p->at++;
  return read_escape(p, begin, c);
}

/* A character or a range. */
static tn_status take_range(parser *p, tn__char_set *to)
{
  uint32_t first, last;
  size_t begin = p->at;
  tn__char_set set = { 0 };
  tn_status st = set_char(p, &first);
  last = first;
  if (st == TN_OK && p->text.size - p->at >= 2 && p->text.data[p->at] == '-' && p->text.data[p->at + 1] != ']') {
    p->at++;
    st = set_char(p, &last);
    if (st == TN_OK && last < first) st = bad(p, begin, "a range that ends before it begins");
  }
  if (st != TN_OK) return st;
  bool ok = tn__char_set_add(&set, first, last);
  if (ok) tn__char_set_close(&set);
  if (ok && (p->flags & FOLD) != 0) ok = tn__char_set_fold(&set);
  ok = ok && tn__char_set_add_all(to, &set);
  tn__char_set_fini(&set);
  return ok ? TN_OK : no_memory(p);
}

static tn_status take_set_items(parser *p, size_t begin, tn__char_set *set)
{
  tn_status st = TN_OK;
  for (bool first = true; st == TN_OK && (first || peek(p) != ']'); first = false) {
    bool found;
    if (peek(p) < 0) return bad(p, begin, "a '[' without its ']'");
    st = take_posix(p, set, &found);
    if (st == TN_OK && !found) st = take_class_escape(p, set, &found);
    if (st == TN_OK && !found) st = take_range(p, set);
  }
  p->at++;
  return st;
}

static tn_status take_set(parser *p)
{
  tn__char_set set = { 0 };
  size_t begin = p->at++;
  bool negated = peek(p) == '^';
  p->at += negated;
  tn_status st = take_set_items(p, begin, &set);
  if (st == TN_OK) tn__char_set_close(&set);
  if (st == TN_OK && negated && !tn__char_set_negate(&set)) st = no_memory(p);
  if (st == TN_OK) return emit_set(p, &set);
  tn__char_set_fini(&set);
  return st;
}

/* ---- repetitions ---- */

/* Emits `copies` of the code from the atom on; the ones from `min` on are optional. */
static tn_status copy_atom(parser *p, size_t size, int copies, int min, bool lazy)
{
  tn_status st = reserve(p, (size_t)copies * (size + 1) + 2);
  tn__re_code *body = st == TN_OK && size > 0 ? tn__alloc(size * sizeof *body) : NULL;
  if (st == TN_OK && size > 0 && body == NULL) st = no_memory(p);
  if (st != TN_OK) return st;
  if (size > 0) memcpy(body, p->re->code + p->atom, size * sizeof *body);
  p->re->n = p->atom;
  size_t optional = copies > min ? (size_t)(copies - min) : 0, end = p->atom + (size_t)copies * size + optional;
  for (int i = 0; i < copies; i++) {
    int32_t skip = (int32_t)(end - p->re->n);
    if (i >= min) p->re->code[p->re->n++] = (tn__re_code){ TN__RE_SPLIT, lazy ? skip : 1, lazy ? 1 : skip };
    if (size > 0) memcpy(p->re->code + p->re->n, body, size * sizeof *body);
    p->re->n += size;
  }
  tn__free(body, size * sizeof *body);
  return TN_OK;
}

/* A split after the code of the last copy, which is repeated. */
static tn_status loop_back(parser *p, size_t size, bool lazy)
{
  int32_t back = -(int32_t)size;
  return emit(p, TN__RE_SPLIT, lazy ? 1 : back, lazy ? back : 1);
}

/* max NO_END: any number. x* is (x+)?, so that an empty x does not hide what follows it. */
static tn_status repeat(parser *p, int min, int max, bool lazy)
{
  size_t size = p->re->n - p->atom;
  tn_status st = TN_OK;
  if (max == 0) {
    p->re->n = p->atom;
  } else if (max != NO_END) {
    st = copy_atom(p, size, max, min, lazy);
  } else {
    st = copy_atom(p, size, min > 0 ? min : 1, min > 0 ? min : 1, lazy);
    if (st == TN_OK) st = loop_back(p, size, lazy);
    int32_t over = (int32_t)(p->re->n - p->atom) + 1;
    if (st == TN_OK && min == 0) st = insert(p, p->atom, TN__RE_SPLIT, lazy ? over : 1, lazy ? 1 : over);
  }
  p->atom_empty |= min == 0;
  p->repeated = true;
  return st;
}

/* A number of a repetition; false: there is none. It is at most MOST_COUNT + 1. */
static bool read_count(parser *p, int *out)
{
  size_t begin = p->at;
  for (*out = 0; peek(p) >= '0' && peek(p) <= '9'; p->at++)
    if (*out <= MOST_COUNT) *out = *out * 10 + (peek(p) - '0');
  return p->at > begin;
}

/* "{2,5}" at p->at, which does not move if it is not one. */
static bool read_counts(parser *p, int *min, int *max)
{
  size_t begin = p->at++;
  bool ok = read_count(p, min);
  *max = *min;
  if (ok && peek(p) == ',') {
    p->at++;
    if (!read_count(p, max)) *max = NO_END;
  }
  if (ok && peek(p) == '}') {
    p->at++;
    return true;
  }
  p->at = begin;
  return false;
}

static tn_status take_repetition(parser *p)
{
  size_t begin = p->at;
  int c = peek(p), min = c == '+', max = c == '?' ? 1 : NO_END;
  if (c == '{' && !read_counts(p, &min, &max)) {
    p->at++;
    return emit_char(p, '{');
  }
  if (c != '{') p->at++;
  if (p->atom == NONE) return bad(p, begin, "a repetition of nothing");
  if (p->repeated) return bad(p, begin, "a repetition of a repetition");
  if (min > MOST_COUNT || max > MOST_COUNT || (max != NO_END && max < min))
    return bad(p, begin, "a repetition with a wrong count");
  if (min > 1 || max > 1) p->copies *= max != NO_END ? max : min;
  if (p->copies > MOST_COUNT) return bad(p, begin, "repetitions with too large counts");
  bool lazy = peek(p) == '?';
  p->at += lazy;
  return repeat(p, min, max, lazy != ((p->flags & UNGREEDY) != 0));
}

/* ---- groups and alternatives ---- */

static group *top(parser *p) { return &p->groups[p->depth - 1]; }

/* Begins a group; p->flags are those inside of it, outer_flags those after it. */
static tn_status open_group(parser *p, size_t at, int32_t number, int outer_flags)
{
  if (!tn__grow((void **)&p->groups, &p->room, p->depth + 1, sizeof *p->groups)) return no_memory(p);
  end_atom(p);
  p->groups[p->depth++] = (group){ .begin = p->re->n, .jumps = NONE, .number = number, .flags = outer_flags, .at = at,
                                   .outer_empty = p->empty, .outer_most = p->most };
  tn_status st = number > 0 ? emit(p, TN__RE_SAVE, 2 * number, 0) : TN_OK;
  top(p)->branch = p->re->n;
  p->empty = true;
  p->most = 1;
  return st;
}

static tn_status take_alternative(parser *p)
{
  group *g = top(p);
  p->at++;
  end_atom(p);
  g->empty |= p->empty;
  tn_status st = insert(p, g->branch, TN__RE_SPLIT, 1, (int32_t)(p->re->n - g->branch) + 2);
  if (st == TN_OK) st = emit(p, TN__RE_JUMP, g->jumps == NONE ? -1 : (int32_t)g->jumps, 0);
  g->jumps = p->re->n - 1;
  g->branch = p->re->n;
  p->empty = true;
  return st;
}

/* Ends the innermost group, which becomes the last expression. */
static tn_status close_group(parser *p)
{
  group g = *top(p);
  end_atom(p);
  for (size_t at = g.jumps; at != NONE;) {
    int32_t before = p->re->code[at].x;
    p->re->code[at].x = (int32_t)(p->re->n - at);
    at = before < 0 ? NONE : (size_t)before;
  }
  p->depth--;
  p->flags = g.flags;
  p->atom = g.begin;
  p->atom_empty = g.empty || p->empty;
  p->copies = p->most;
  p->empty = g.outer_empty;
  p->most = g.outer_most;
  p->repeated = false;
  return g.number > 0 ? emit(p, TN__RE_SAVE, 2 * g.number + 1, 0) : TN_OK;
}

/* The name in "(?P<name>"; p->at is after the '<'. */
static tn_status skip_name(parser *p, size_t begin)
{
  size_t first = p->at;
  for (int c; (c = peek(p)) != '>'; p->at++)
    if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 0 && (unsigned)((c | 0x20) - 'a') < 26)))
      return bad(p, begin, "a malformed name of a group");
  if (p->at++ == first) return bad(p, begin, "a group with an empty name");
  return TN_OK;
}

/* "(?i-s)" or "(?i:"; p->at is after the '?'. */
static tn_status take_flags(parser *p, size_t begin)
{
  static const char letters[] = "imsU";
  int flags = p->flags, outer = p->flags;
  bool off = false, any = false;
  for (int c; (c = peek(p)) != ':' && c != ')'; p->at++) {
    const char *letter = c > 0 ? strchr(letters, c) : NULL;
    if (c == '-' && !off) {
      off = true;
      any = false;
      continue;
    }
    if (letter == NULL) return bad(p, begin, "an unknown kind of group");
    int bit = 1 << (letter - letters);
    flags = off ? flags & ~bit : flags | bit;
    any = true;
  }
  if (off && !any) return bad(p, begin, "an unknown kind of group");
  p->flags = flags;
  if (p->text.data[p->at++] == ':') return open_group(p, begin, 0, outer);
  p->repeated = false; /* a repetition applies to what is before the flags */
  return TN_OK;
}

static tn_status take_group(parser *p)
{
  size_t begin = p->at++;
  tn__slice rest = { p->text.data + p->at, p->text.size - p->at };
  if (rest.size == 0 || rest.data[0] != '?') return open_group(p, begin, ++p->re->groups, p->flags);
  bool look = rest.size > 2 && rest.data[1] == '<' && (rest.data[2] == '=' || rest.data[2] == '!');
  size_t name = 0;
  if (rest.size > 2 && rest.data[1] == 'P' && rest.data[2] == '<') name = 3;
  if (rest.size > 1 && rest.data[1] == '<' && !look) name = 2;
  if (name == 0) {
    p->at++;
    return take_flags(p, begin);
  }
  p->at += name;
  tn_status st = skip_name(p, begin);
  return st == TN_OK ? open_group(p, begin, ++p->re->groups, p->flags) : st;
}

/* ---- the pattern ---- */

static tn_status emit_assert(parser *p, int32_t condition)
{
  begin_atom(p, true);
  return emit(p, TN__RE_ASSERT, condition, 0);
}

/* "\Q...\E": the text in between is taken as it is. p->at is after the Q. */
static tn_status take_quoted(parser *p)
{
  tn_status st = TN_OK;
  for (uint32_t c; st == TN_OK && peek(p) >= 0;) {
    if (peek(p) == '\\' && p->at + 1 < p->text.size && p->text.data[p->at + 1] == 'E') {
      p->at += 2;
      return TN_OK;
    }
    st = next_char(p, &c);
    if (st == TN_OK) st = emit_char(p, c);
  }
  return st;
}

static tn_status take_escape(parser *p)
{
  static const struct {
    char letter;
    int32_t condition;
  } conditions[] = {
    { 'A', TN__RE_BEGIN_TEXT }, { 'z', TN__RE_END_TEXT }, { 'b', TN__RE_WORD }, { 'B', TN__RE_NO_WORD }
  };
  size_t begin = p->at;
  tn__char_set set = { 0 };
  bool found;
  int c = p->at + 1 < p->text.size ? (unsigned char)p->text.data[p->at + 1] : -1;
  for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
    if (c == conditions[i].letter) {
      p->at += 2;
      return emit_assert(p, conditions[i].condition);
    }
  if (c == 'C')
    return tn_error_set(p->err, TN_UNIMPLEMENTED, "regular expression '%.*s': \\C, which matches one byte, at byte %zu",
                        (int)(p->text.size < 200 ? p->text.size : 200), p->text.data, begin);
  if (c == 'Q') {
    p->at += 2;
    return take_quoted(p);
  }
  tn_status st = take_class_escape(p, &set, &found);
  if (st == TN_OK && found) {
    tn__char_set_close(&set);
    return emit_set(p, &set);
  }
  tn__char_set_fini(&set);
  uint32_t character;
  p->at++;
  if (st == TN_OK) st = read_escape(p, begin, &character);
  return st == TN_OK ? emit_char(p, character) : st;
}

static tn_status take_next(parser *p)
{
  uint32_t c;
  tn_status st;
  switch (peek(p)) {
  case '(': return take_group(p);
  case ')':
    if (p->depth == 1) return bad(p, p->at, "a ')' without its '('");
    p->at++;
    return close_group(p);
  case '|': return take_alternative(p);
  case '*':
  case '+':
  case '?':
  case '{': return take_repetition(p);
  case '[': return take_set(p);
  case '\\': return take_escape(p);
  case '.': p->at++; return emit_dot(p);
  case '^': p->at++; return emit_assert(p, (p->flags & LINES) != 0 ? TN__RE_BEGIN_LINE : TN__RE_BEGIN_TEXT);
  case '$': p->at++; return emit_assert(p, (p->flags & LINES) != 0 ? TN__RE_END_LINE : TN__RE_END_TEXT);
  default:
    st = next_char(p, &c);
    return st == TN_OK ? emit_char(p, c) : st;
  }
}

static tn_status parse(parser *p)
{
  tn_status st = open_group(p, 0, 0, 0);
  if (st == TN_OK) st = emit(p, TN__RE_SAVE, 0, 0);
  if (st == TN_OK) top(p)->branch = p->re->n;
  while (st == TN_OK && p->at < p->text.size) st = take_next(p);
  if (st == TN_OK && p->depth > 1) st = bad(p, top(p)->at, "a '(' without its ')'");
  if (st == TN_OK) st = close_group(p);
  if (st == TN_OK) st = emit(p, TN__RE_SAVE, 1, 0);
  return st == TN_OK ? emit(p, TN__RE_MATCH, 0, 0) : st;
}

/* ---- first bytes ---- */

/* Notes with which bytes a character begins. */
static void note_first(tn__regex *re, const tn__re_code *code)
{
  if (code->op == TN__RE_CHAR) {
    char bytes[4];
    tn__utf8_put((uint32_t)code->x, bytes);
    re->first[(unsigned char)bytes[0]] = 1;
    return;
  }
  const tn__char_set *set = &re->sets[code->x];
  for (uint32_t c = 0; c < 128; c++) re->first[c] |= tn__char_set_has(set, c);
  bool more = set->n > 0 && set->ranges[set->n - 1].last >= 128;
  for (int c = 128; c < 256; c++) re->first[c] |= more;
}

/* Follows all paths from the beginning to the first character. */
static tn_status find_first(parser *p)
{
  tn__regex *re = p->re;
  size_t n = 0, room = 2 * re->n + 1;
  size_t *stack = tn__alloc_array(room, sizeof *stack);
  uint8_t *seen = tn__zalloc(re->n);
  re->begins = stack != NULL && seen != NULL;
  if (re->begins) stack[n++] = 0;
  while (n > 0 && re->begins) {
    size_t at = stack[--n];
    const tn__re_code *code = &re->code[at];
    if (seen[at]) continue;
    seen[at] = 1;
    if (code->op == TN__RE_MATCH) re->begins = false;
    else if (code->op == TN__RE_CHAR || code->op == TN__RE_SET) note_first(re, code);
    else stack[n++] = at + (size_t)(int64_t)(code->op == TN__RE_JUMP || code->op == TN__RE_SPLIT ? code->x : 1);
    if (code->op == TN__RE_SPLIT) stack[n++] = at + (size_t)(int64_t)code->y;
  }
  bool failed = stack == NULL || seen == NULL;
  tn__free(stack, room * sizeof *stack);
  tn__free(seen, re->n);
  return failed ? no_memory(p) : TN_OK;
}

tn_status tn__regex_compile(tn__slice pattern, tn__regex **out, tn_error *err)
{
  *out = NULL;
  if (pattern.size == 0) pattern.data = "";
  parser p = { .re = tn__zalloc(sizeof *p.re), .text = pattern, .atom = NONE, .err = err };
  if (p.re == NULL) return no_memory(&p);
  tn_status st = parse(&p);
  if (st == TN_OK) st = find_first(&p);
  tn__free(p.groups, p.room * sizeof *p.groups);
  if (st == TN_OK) *out = p.re;
  else tn__regex_destroy(p.re);
  return st;
}

void tn__regex_destroy(tn__regex *re)
{
  if (re == NULL) return;
  for (size_t i = 0; i < re->n_sets; i++) tn__char_set_fini(&re->sets[i]);
  tn__free(re->sets, re->room_sets * sizeof *re->sets);
  tn__free(re->code, re->room * sizeof *re->code);
  tn__free(re, sizeof *re);
}
