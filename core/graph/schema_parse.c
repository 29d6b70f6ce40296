/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of op schemas (tn_op_def in op.h) and of kernel constraints.
 *
 *   arguments  name ':' type {',' ...}         type = [attr '*'] (dtype | attr) | 'Ref(' type ')'
 *   attributes name ':' kind ['>=' int] ['=' default] {';' ...}
 *   kind       string int float bool type shape tensor func | set | 'list(' kind ')'
 *   set        numbertype realnumbertype quantizedtype | '{' dtype or set {',' ...} '}' | '{' text {',' ...} '}'
 *   text       in ' or ", with \ before a quote or a backslash
 *   types      attr '=' (dtype or set) {'|' ...} {',' ...}
 *
 * Attributes are parsed before arguments, which refer to them. Arrays are allocated for the number of separators in the
 * text, which is never too small. Errors name the field and the position. */
#include <core/graph/graph_structs.h>

#include <string.h>

typedef struct parser {
  const char *op;       /* name, for messages */
  const char *field;    /* "attrs", "inputs", ... */
  const char *text, *p; /* the text and the current position in it */
  tn_op_schema *schema;
  tn__arena *arena;
  tn_error *err;
} parser;

#define TYPES_REAL                                                                                             \
  (BIT(FLOAT) | BIT(DOUBLE) | BIT(INT32) | BIT(INT64) | BIT(UINT8) | BIT(INT16) | BIT(INT8) | BIT(UINT16) |    \
   BIT(HALF) | BIT(UINT32) | BIT(UINT64) | BIT(BFLOAT16))
#define BIT(name) (UINT64_C(1) << TN_##name)

static const struct {
  const char *name;
  uint64_t types;
} type_sets[] = {
  { "numbertype", TYPES_REAL | BIT(COMPLEX64) | BIT(COMPLEX128) | BIT(QINT8) | BIT(QUINT8) | BIT(QINT32) },
  { "realnumbertype", TYPES_REAL },
  { "quantizedtype", BIT(QINT8) | BIT(QUINT8) | BIT(QINT16) | BIT(QUINT16) | BIT(QINT32) },
};

static const struct {
  const char *name;
  uint8_t kind;
} kinds[] = {
  { "string", TN_ATTR_STRING }, { "int", TN_ATTR_INT },     { "float", TN_ATTR_FLOAT },   { "bool", TN_ATTR_BOOL },
  { "type", TN_ATTR_TYPE },     { "shape", TN_ATTR_SHAPE }, { "tensor", TN_ATTR_TENSOR }, { "func", TN_ATTR_FUNC },
};

/* An error at the current position; `wanted` completes "wanted ...". */
static tn_status bad(parser *c, const char *wanted)
{
  return tn_error_set(c->err, TN_INVALID_ARGUMENT, "op '%s': %s: character %zu: wanted %s, found %s%.20s%s", c->op,
                      c->field, (size_t)(c->p - c->text) + 1, wanted, *c->p == 0 ? "the end" : "'", c->p,
                      *c->p == 0 ? "" : "'");
}

static tn_status no_memory(parser *c) { return tn__no_memory(c->err, "op schema", 0); }

/* ---- tokens ---- */

static void skip_space(parser *c)
{
  while (*c->p == ' ' || *c->p == '\n' || *c->p == '\t') c->p++;
}

static bool take(parser *c, const char *token)
{
  skip_space(c);
  size_t n = strlen(token);
  if (strncmp(c->p, token, n) != 0) return false;
  c->p += n;
  return true;
}

static bool word_char(char ch)
{
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_';
}

/* Takes an identifier; empty if there is none. */
static tn__slice take_word(parser *c)
{
  skip_space(c);
  tn__slice word = { c->p, 0 };
  if (*c->p >= '0' && *c->p <= '9') return word;
  while (word_char(*c->p)) c->p++;
  word.size = (size_t)(c->p - word.data);
  return word;
}

static tn_dtype dtype_of(tn__slice word)
{
  char name[32];
  if (word.size == 0 || word.size >= sizeof name) return TN_DTYPE_INVALID;
  memcpy(name, word.data, word.size);
  name[word.size] = 0;
  tn_dtype d = tn_dtype_from_name(name);
  return tn__dtype_valid(d) ? d : TN_DTYPE_INVALID;
}

/* The types that a word names, as bits: one dtype, or a named set; 0: neither. */
static uint64_t types_of(tn__slice word)
{
  for (size_t i = 0; i < sizeof type_sets / sizeof *type_sets; i++)
    if (tn__slice_is(word, type_sets[i].name)) return type_sets[i].types;
  return tn__type_bit(dtype_of(word));
}

static tn_status parse_text(parser *c, tn__slice *out)
{
  skip_space(c);
  char quote = *c->p;
  if (quote != '\'' && quote != '"') return bad(c, "a text in quotes");
  const char *end = ++c->p;
  while (*end != quote && *end != 0) end += *end == '\\' && end[1] != 0 ? 2 : 1;
  if (*end == 0) {
    c->p = end;
    return bad(c, "a quote");
  }
  char *to = tn__arena_alloc(c->arena, (size_t)(end - c->p) + 1);
  if (to == NULL) return no_memory(c);
  out->data = to;
  for (; c->p < end; c->p++) {
    if (*c->p == '\\') c->p++;
    *to++ = *c->p;
  }
  *to = 0;
  out->size = (size_t)(to - out->data);
  c->p++;
  return TN_OK;
}

static tn_status parse_int(parser *c, int64_t *out)
{
  skip_space(c);
  tn__slice digits = { c->p, 0 };
  const char *p = c->p + (*c->p == '-' || *c->p == '+');
  while (*p >= '0' && *p <= '9') p++;
  digits.size = (size_t)(p - c->p);
  if (!tn__parse_int(digits, out)) return bad(c, "an integer");
  c->p = p;
  return TN_OK;
}

static tn_status parse_float(parser *c, float *out)
{
  skip_space(c);
  const char *p = c->p;
  while (word_char(*p) || *p == '.' || *p == '-' || *p == '+') p++;
  tn__slice digits = { c->p, (size_t)(p - c->p) };
  double value;
  if (!tn__parse_double(digits, &value)) return bad(c, "a number");
  *out = (float)value;
  c->p = p;
  return TN_OK;
}

/* ---- default values ---- */

static tn_status parse_dims(parser *c, tn__shape *out)
{
  *out = (tn__shape){ NULL, -1 };
  if (take(c, "?")) return TN_OK;
  if (!take(c, "[")) return bad(c, "a shape, '[' or '?'");
  size_t most = 1;
  for (const char *p = c->p; *p != 0 && *p != ']'; p++) most += *p == ',';
  int64_t *dims = tn__arena_array(c->arena, most, sizeof *dims);
  if (dims == NULL) return no_memory(c);
  *out = (tn__shape){ dims, 0 };
  while (!take(c, "]")) {
    if (out->rank > 0 && !take(c, ",")) return bad(c, "',' or ']'");
    int64_t *d = &dims[out->rank];
    *d = -1;
    if (!take(c, "?") && parse_int(c, d) != TN_OK) return TN_INVALID_ARGUMENT;
    if (*d < -1) return bad(c, "a dimension of at least -1");
    out->rank++;
  }
  return out->rank <= TN_MAX_RANK ? TN_OK : bad(c, "at most 254 dimensions");
}

static tn_status parse_value(parser *c, int32_t kind, void *out)
{
  tn__slice word;
  switch (kind) {
  case TN_ATTR_STRING:
  case TN_ATTR_FUNC: return parse_text(c, out);
  case TN_ATTR_INT: return parse_int(c, out);
  case TN_ATTR_FLOAT: return parse_float(c, out);
  case TN_ATTR_SHAPE: return parse_dims(c, out);
  case TN_ATTR_BOOL:
    *(tn_bool *)out = take(c, "true");
    return *(tn_bool *)out || take(c, "false") ? TN_OK : bad(c, "true or false");
  case TN_ATTR_TYPE:
    skip_space(c);
    word = take_word(c);
    *(tn_dtype *)out = dtype_of(word);
    if (*(tn_dtype *)out != TN_DTYPE_INVALID) return TN_OK;
    c->p = word.data;
    return bad(c, "a type");
  default: return bad(c, "no default for a tensor");
  }
}

static tn_status parse_list(parser *c, tn__attr *out)
{
  int32_t kind = out->kind - TN_ATTR_LIST;
  if (!take(c, "[")) return bad(c, "'['");
  size_t most = 1, size = tn__attr_item_size(kind), n = 0;
  for (const char *p = c->p; *p != 0 && *p != ';'; p++) most += *p == ',';
  char *items = tn__arena_array(c->arena, most, size);
  if (items == NULL) return no_memory(c);
  while (!take(c, "]")) {
    if (n > 0 && !take(c, ",")) return bad(c, "',' or ']'");
    tn_status st = parse_value(c, kind, items + n * size);
    if (st != TN_OK) return st;
    n++;
  }
  out->v.list.items = items;
  out->v.list.n = n;
  return TN_OK;
}

/* ---- attributes ---- */

/* Parses the rest of "{...}" as a set of texts if it begins with a quote, else as a set of types. */
static tn_status parse_set(parser *c, tn__attr_spec *a)
{
  skip_space(c);
  if (*c->p != '\'' && *c->p != '"') {
    a->value.kind = TN_ATTR_TYPE;
    a->types = 0;
    do {
      skip_space(c);
      tn__slice word = take_word(c);
      uint64_t types = types_of(word);
      if (types == 0) {
        c->p = word.data;
        return bad(c, "a type");
      }
      a->types |= types;
    } while (take(c, ","));
    return take(c, "}") ? TN_OK : bad(c, "',' or '}'");
  }
  a->value.kind = TN_ATTR_STRING;
  size_t most = 1;
  for (const char *p = c->p; *p != 0 && *p != '}'; p++) most += *p == ',';
  tn__slice *strings = tn__arena_array(c->arena, most, sizeof *strings);
  if (strings == NULL) return no_memory(c);
  do {
    if (a->n_strings == most) return bad(c, "'}'");
    tn_status st = parse_text(c, &strings[a->n_strings]);
    if (st != TN_OK) return st;
    a->n_strings++;
  } while (take(c, ","));
  a->strings = strings;
  return take(c, "}") ? TN_OK : bad(c, "',' or '}'");
}

static tn_status parse_kind(parser *c, tn__attr_spec *a)
{
  if (take(c, "{")) return parse_set(c, a);
  skip_space(c);
  tn__slice word = take_word(c);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!tn__slice_is(word, kinds[i].name)) continue;
    a->value.kind = kinds[i].kind;
    return TN_OK;
  }
  for (size_t i = 0; i < sizeof type_sets / sizeof *type_sets; i++) {
    if (!tn__slice_is(word, type_sets[i].name)) continue;
    a->value.kind = TN_ATTR_TYPE;
    a->types = type_sets[i].types;
    return TN_OK;
  }
  c->p = word.data;
  return bad(c, "a kind of attribute");
}

static tn_status parse_attr(parser *c, tn__attr_spec *a)
{
  tn__slice name = take_word(c);
  if (name.size == 0) return bad(c, "the name of an attribute");
  if (tn__schema_attr_index(c->schema, name.data, name.size) >= 0) {
    c->p = name.data;
    return bad(c, "an unused name");
  }
  a->value.name = tn__arena_string(c->arena, name.data, name.size);
  a->value.name_size = (uint32_t)name.size;
  if (a->value.name == NULL) return no_memory(c);
  if (!take(c, ":")) return bad(c, "':'");
  a->types = ~UINT64_C(0);
  bool is_list = take(c, "list(");
  tn_status st = parse_kind(c, a);
  if (st != TN_OK) return st;
  if (is_list && !take(c, ")")) return bad(c, "')'");
  if (is_list) a->value.kind += TN_ATTR_LIST;
  if (take(c, ">=")) {
    if (a->value.kind != TN_ATTR_INT && !is_list) return bad(c, "a minimum only for an int or a list");
    if ((st = parse_int(c, &a->minimum)) != TN_OK) return st;
    a->has_minimum = true;
  }
  if (!take(c, "=")) return TN_OK;
  const char *start = c->p;
  st = is_list ? parse_list(c, &a->value) : parse_value(c, a->value.kind, &a->value.v);
  if (st != TN_OK) return st;
  a->has_default = true;
  const char *end = c->p;
  c->p = start;
  tn_error why = TN_ERROR_INIT;
  st = tn__attr_check(a, &a->value, &why);
  if (st != TN_OK) bad(c, "a default that the attribute allows");
  tn_error_clear(&why);
  c->p = end;
  return st;
}

static tn_status parse_attrs(parser *c, tn_op_schema *s)
{
  size_t most = 1;
  for (const char *p = c->p; *p != 0; p++) most += *p == ';';
  s->attrs = tn__arena_array(c->arena, most, sizeof *s->attrs);
  if (s->attrs == NULL) return no_memory(c);
  for (skip_space(c); *c->p != 0; skip_space(c)) {
    tn_status st = parse_attr(c, &s->attrs[s->n_attrs]);
    if (st != TN_OK) return st;
    s->n_attrs++;
    if (!take(c, ";") && *c->p != 0) return bad(c, "';' or the end");
  }
  return s->n_attrs < UINT16_MAX ? TN_OK : bad(c, "fewer attributes");
}

/* ---- arguments ---- */

static tn_status parse_arg_type(parser *c, tn__arg_spec *a)
{
  bool ref = !a->is_ref && take(c, "Ref(");
  if (ref) a->is_ref = true;
  tn__slice word = take_word(c);
  if (word.size == 0) return bad(c, "a type");
  int32_t i = tn__schema_attr_index(c->schema, word.data, word.size);
  int32_t kind = i < 0 ? TN_ATTR_NONE : c->schema->attrs[i].value.kind;
  tn_status st = TN_OK;
  if (take(c, "*")) {
    if (kind != TN_ATTR_INT || a->number_attr >= 0) {
      c->p = word.data;
      return bad(c, "an int attribute before '*'");
    }
    /* A number of tensors cannot be negative. */
    tn__attr_spec *number = &c->schema->attrs[i];
    if (!number->has_minimum || number->minimum < 0) number->minimum = 0;
    number->has_minimum = true;
    a->number_attr = i;
    st = parse_arg_type(c, a);
    if (st == TN_OK && a->list_attr >= 0) return bad(c, "one type after '*', not a list of them");
  } else if (kind == TN_ATTR_TYPE) {
    a->type_attr = i;
  } else if (kind == TN_ATTR_LIST + TN_ATTR_TYPE) {
    a->list_attr = i;
  } else {
    a->dtype = (uint8_t)dtype_of(word);
    if (a->dtype == TN_DTYPE_INVALID) {
      c->p = word.data;
      return bad(c, "a type, or an attribute of kind type");
    }
  }
  if (st == TN_OK && ref && !take(c, ")")) return bad(c, "')'");
  return st;
}

static tn_status parse_args(parser *c, tn__arg_spec **out, uint32_t *n, bool *plain)
{
  *plain = true;
  skip_space(c);
  if (*c->p == 0) return TN_OK;
  size_t most = 1;
  for (const char *p = c->p; *p != 0; p++) most += *p == ',';
  *out = tn__arena_array(c->arena, most, sizeof **out);
  if (*out == NULL) return no_memory(c);
  do {
    tn__arg_spec *a = &(*out)[*n];
    tn__slice name = take_word(c);
    if (name.size == 0) return bad(c, "the name of an argument");
    a->name = tn__arena_string(c->arena, name.data, name.size);
    a->name_size = (uint32_t)name.size;
    a->type_attr = a->number_attr = a->list_attr = -1;
    if (a->name == NULL) return no_memory(c);
    if (!take(c, ":")) return bad(c, "':'");
    tn_status st = parse_arg_type(c, a);
    if (st != TN_OK) return st;
    if (a->number_attr >= 0 || a->list_attr >= 0) *plain = false;
    ++*n;
  } while (take(c, ","));
  skip_space(c);
  return *c->p == 0 ? TN_OK : bad(c, "',' or the end");
}

/* ---- whole schemas and constraints ---- */

static void enter(parser *c, const char *field, const char *text)
{
  c->field = field;
  c->text = c->p = text == NULL ? "" : text;
}

static tn_status parse_constant(parser *c, tn_op_schema *s)
{
  const tn_op_def *def = s->def;
  s->constant_attr = -1;
  if ((def->traits & TN_TRAIT_CONSTANT) == 0) return TN_OK;
  const char *name = def->constant_attr == NULL ? "" : def->constant_attr;
  enter(c, "constant_attr", name);
  s->constant_attr = tn__schema_attr_index(s, name, strlen(name));
  if (s->constant_attr >= 0 && s->attrs[s->constant_attr].value.kind != TN_ATTR_TENSOR) s->constant_attr = -1;
  return s->constant_attr >= 0 ? TN_OK : bad(c, "the name of a tensor attribute");
}

tn_status tn__schema_parse(tn_op_schema *s, tn_error *err)
{
  parser c = { .op = s->name, .schema = s, .arena = &s->arena, .err = err };
  tn__arena_init(&s->arena, 512);
  s->n_attrs = s->n_inputs = s->n_outputs = 0;
  s->inputs = s->outputs = NULL;
  s->attrs = NULL;
  enter(&c, "attrs", s->def->attrs);
  tn_status st = parse_attrs(&c, s);
  enter(&c, "inputs", s->def->inputs);
  if (st == TN_OK) st = parse_args(&c, &s->inputs, &s->n_inputs, &s->plain_inputs);
  enter(&c, "outputs", s->def->outputs);
  if (st == TN_OK) st = parse_args(&c, &s->outputs, &s->n_outputs, &s->plain_outputs);
  if (st == TN_OK) st = parse_constant(&c, s);
  if (st == TN_OK) return TN_OK;
  tn__arena_fini(&s->arena);
  s->n_attrs = s->n_inputs = s->n_outputs = 0;
  return st;
}

tn_status tn__constraints_parse(const tn_op_schema *s, const tn_kernel_def *def, tn__arena *arena, tn__constraint **out,
                                uint32_t *n, tn_error *err)
{
  *out = NULL;
  *n = 0;
  if (def->types == NULL) return TN_OK;
  parser c = { .op = s->name, .schema = (tn_op_schema *)s, .arena = arena, .err = err };
  enter(&c, "types of a kernel", def->types);
  skip_space(&c);
  if (*c.p == 0) return TN_OK;
  size_t most = 1;
  for (const char *p = c.p; *p != 0; p++) most += *p == ',';
  tn__constraint *list = tn__arena_array(arena, most, sizeof *list);
  if (list == NULL) return no_memory(&c);
  do {
    tn__slice name = take_word(&c);
    int32_t i = tn__schema_attr_index(s, name.data, name.size);
    if (i < 0 || (s->attrs[i].value.kind & ~TN_ATTR_LIST) != TN_ATTR_TYPE) {
      c.p = name.data;
      return bad(&c, "an attribute of kind type");
    }
    if (!take(&c, "=")) return bad(&c, "'='");
    list[*n].attr = (uint32_t)i;
    do {
      skip_space(&c);
      tn__slice word = take_word(&c);
      uint64_t types = types_of(word);
      if (types == 0) {
        c.p = word.data;
        return bad(&c, "a type");
      }
      list[*n].types |= types;
    } while (take(&c, "|"));
    ++*n;
  } while (take(&c, ","));
  skip_space(&c);
  if (*c.p != 0) return bad(&c, "'|', ',' or the end");
  *out = list;
  return TN_OK;
}
