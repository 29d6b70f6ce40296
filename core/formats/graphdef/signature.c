/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the signature of a function, an OpDef, as a schema. So nodes that call it are checked like any other node. */
#include <core/formats/graphdef/functions.h>

#include <string.h>

/* Field numbers: OpDef; its ArgDef; its AttrDef. */
enum { S_INPUT = 2, S_OUTPUT = 3, S_ATTR = 4, S_SUMMARY = 5, S_STATEFUL = 17 };
enum { A_NAME = 1, A_TYPE = 3, A_TYPE_ATTR = 4, A_NUMBER_ATTR = 5, A_LIST_ATTR = 6, A_IS_REF = 16 };
enum { D_NAME = 1, D_TYPE = 2, D_DEFAULT = 3, D_HAS_MINIMUM = 5, D_MINIMUM = 6, D_ALLOWED = 7 };

#define TYPE_LIST (TN_ATTR_TYPE + TN_ATTR_LIST)

static uint64_t number_field(tn__slice message, uint32_t field)
{
  uint64_t value = 0;
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, field, TN__WIRE_VARINT)) value = w.value;
  return value;
}

/* Checks that all fields of a message are well-formed. */
static tn_status whole(tn__library_reader *r, tn__slice message)
{
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) { }
  return tn__library_after(r, &w);
}

/* ---- attributes ---- */

/* Parses a kind such as "int" or "list(type)"; TN_ATTR_NONE: not a kind. */
static int32_t kind_of(tn__slice text)
{
  static const char *const kinds[] = { "string", "int", "float", "bool", "type", "shape", "tensor", "func" };
  int32_t list = 0;
  if (text.size > 6 && memcmp(text.data, "list(", 5) == 0 && text.data[text.size - 1] == ')') {
    list = TN_ATTR_LIST;
    text = (tn__slice){ text.data + 5, text.size - 6 };
  }
  for (int32_t i = 0; i < 8; i++)
    if (tn__slice_is(text, kinds[i])) return list + 1 + i;
  return TN_ATTR_NONE;
}

/* Decodes a value without a holder: finish_default decodes the tensors that are left encoded. */
static tn_status decode(tn__library_reader *r, tn__slice proto, tn__attr *out)
{
  tn__attr_head head;
  tn__fault fault;
  if (!tn__attr_scan(proto, 5, &head, &fault)) return tn__library_malformed(r, fault.at, fault.what);
  return tn__attr_decode(&head, NULL, r->arena, out, r->err);
}

/* A reference to a default value. The table owns it, and later the graph. */
typedef struct owned_tensor {
  tn__owned owned;
  tn_tensor *tensor;
} owned_tensor;

static void free_tensor(tn__owned *owned)
{
  owned_tensor *o = (owned_tensor *)owned;
  tn_tensor_unref(o->tensor);
  tn__free(o, sizeof *o);
}

/* Decodes the tensor of a default now: a schema has no graph whose codec could do it on demand. */
static tn_status read_tensor(tn__library_reader *r, tn__lazy_tensor *lazy)
{
  size_t bytes;
  tn_status st = tn__tensorproto_bytes(lazy->proto, &bytes, r->err);
  if (st != TN_OK) return st;
  owned_tensor *o = tn__arena_charge(r->arena, bytes) ? tn__zalloc(sizeof *o) : NULL;
  if (o == NULL) return tn__library_no_memory(r);
  o->owned.free = free_tensor;
  st = tn__tensorproto_decode(lazy->proto, NULL, &o->tensor, r->err);
  if (st != TN_OK) {
    tn__free(o, sizeof *o);
    return st;
  }
  atomic_init(&lazy->tensor, o->tensor);
  o->owned.next = r->table->owned;
  r->table->owned = &o->owned;
  return TN_OK;
}

/* Completes a default. A function loses the attributes that it may have: they can only be read for an operation. */
static tn_status finish_default(tn__library_reader *r, tn__attr *a)
{
  tn_status st = TN_OK;
  switch (a->kind) {
  case TN_ATTR_FUNC: a->v.func.attrs = NULL; break;
  case TN_ATTR_FUNC + TN_ATTR_LIST:
    for (size_t i = 0; i < a->v.list.n; i++) ((tn__func *)a->v.list.items)[i].attrs = NULL;
    break;
  case TN_ATTR_TENSOR: st = read_tensor(r, a->v.tensor); break;
  case TN_ATTR_TENSOR + TN_ATTR_LIST:
    for (size_t i = 0; st == TN_OK && i < a->v.list.n; i++)
      st = read_tensor(r, ((tn__lazy_tensor *const *)a->v.list.items)[i]);
    break;
  default: break;
  }
  return st;
}

/* A restriction to an empty list means no restriction. */
static tn_status read_allowed(tn__library_reader *r, const tn_function *f, tn__slice proto, tn__attr_spec *spec)
{
  tn__attr list = { .kind = 0 };
  tn_status st = decode(r, proto, &list);
  if (st != TN_OK || (list.kind & TN_ATTR_LIST) == 0 || list.v.list.n == 0) return st;
  int32_t item = spec->value.kind & ~TN_ATTR_LIST;
  if (list.kind == TYPE_LIST && item == TN_ATTR_TYPE) {
    spec->types = 0;
    for (size_t i = 0; i < list.v.list.n; i++) spec->types |= tn__type_bit(((const tn_dtype *)list.v.list.items)[i]);
    return TN_OK;
  }
  if (list.kind != TN_ATTR_STRING + TN_ATTR_LIST || item != TN_ATTR_STRING || list.v.list.n > UINT32_MAX)
    return tn__in_function(r, f, "attribute", tn__slice_of(spec->value.name), "allows values of another kind");
  spec->strings = list.v.list.items;
  spec->n_strings = (uint32_t)list.v.list.n;
  return TN_OK;
}

/* An empty list of unknown kind takes the kind of the attribute. */
static tn_status read_default(tn__library_reader *r, const tn_function *f, tn__slice proto, tn__attr_spec *spec)
{
  tn__attr value = { .kind = 0 };
  tn_status st = decode(r, proto, &value);
  if (st != TN_OK) return st;
  if (value.kind == TN_ATTR_LIST && (spec->value.kind & TN_ATTR_LIST) != 0) value.kind = spec->value.kind;
  if (value.kind != spec->value.kind)
    return tn__in_function(r, f, "attribute", tn__slice_of(spec->value.name), "has a default of another kind");
  spec->value.v = value.v;
  spec->has_default = true;
  return finish_default(r, &spec->value);
}

/* Reads an AttrDef. A minimum counts only for ints and lists. */
static tn_status read_attr(tn__library_reader *r, const tn_function *f, tn__slice proto, tn__attr_spec *spec)
{
  tn_status st = whole(r, proto);
  tn__slice name = tn__field_text(proto, D_NAME), allowed = { NULL, 0 }, value = { NULL, 0 };
  if (st == TN_OK) st = tn__library_copy(r, name, &spec->value.name);
  if (st != TN_OK) return st;
  spec->value.name_size = (uint32_t)name.size;
  spec->value.kind = (uint8_t)kind_of(tn__field_text(proto, D_TYPE));
  spec->types = ~UINT64_C(0);
  if (name.size == 0 || name.size > UINT16_MAX || !tn__text_is_plain(name))
    return tn__in_function(r, f, "attribute", name, "has an invalid name");
  if (spec->value.kind == TN_ATTR_NONE) return tn__in_function(r, f, "attribute", name, "has an unknown kind");
  spec->has_minimum = number_field(proto, D_HAS_MINIMUM) != 0 &&
                      (spec->value.kind == TN_ATTR_INT || (spec->value.kind & TN_ATTR_LIST) != 0);
  spec->minimum = (int64_t)number_field(proto, D_MINIMUM);
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, D_ALLOWED, TN__WIRE_BYTES)) allowed = w.bytes;
    if (tn__wire_is(&w, D_DEFAULT, TN__WIRE_BYTES)) value = w.bytes;
  }
  if (allowed.data != NULL) st = read_allowed(r, f, allowed, spec);
  return st == TN_OK && value.data != NULL ? read_default(r, f, value, spec) : st;
}

/* ---- arguments ---- */

/* Finds the attribute that an argument names. One that the signature lacks is added: the argument implies its kind. */
static tn_status find_attr(tn__library_reader *r, tn_function *f, tn__slice arg, tn__slice name, int32_t kind,
                           int32_t *out)
{
  *out = -1;
  if (name.size == 0) return TN_OK;
  tn_op_schema *s = &f->schema;
  int32_t k = *out = tn__schema_attr_index(s, name.data, name.size);
  if (k >= 0 && s->attrs[k].value.kind != kind)
    return tn__in_function(r, f, "argument", arg, "names an attribute of the wrong kind");
  if (k < 0) {
    if (name.size > UINT16_MAX || !tn__text_is_plain(name))
      return tn__in_function(r, f, "attribute", name, "has an invalid name");
    if (s->n_attrs >= r->attr_room)
      return tn__in_function(r, f, "signature", tn__slice_of(f->name), "has more than 1024 attributes");
    k = *out = (int32_t)s->n_attrs++;
    tn__attr_spec *spec = &s->attrs[k];
    *spec = (tn__attr_spec){ .value = { .kind = (uint8_t)kind, .name_size = (uint32_t)name.size },
                             .types = ~UINT64_C(0) };
    tn_status st = tn__library_copy(r, name, &spec->value.name);
    if (st != TN_OK) return st;
  }
  if (kind == TN_ATTR_INT && (!s->attrs[k].has_minimum || s->attrs[k].minimum < 0)) {
    s->attrs[k].has_minimum = true; /* it is a number of tensors */
    s->attrs[k].minimum = 0;
  }
  return TN_OK;
}

/* Reads an ArgDef. A type number in the range of references means the same as is_ref. */
static tn_status read_arg(tn__library_reader *r, tn_function *f, tn__slice proto, tn__arg_spec *arg)
{
  tn_status st = whole(r, proto);
  tn__slice name = tn__field_text(proto, A_NAME), type = tn__field_text(proto, A_TYPE_ATTR);
  tn__slice number = tn__field_text(proto, A_NUMBER_ATTR), list = tn__field_text(proto, A_LIST_ATTR);
  uint64_t dtype = st == TN_OK ? number_field(proto, A_TYPE) : 0;
  if (st == TN_OK) st = tn__library_copy(r, name, &arg->name);
  if (st != TN_OK) return st;
  arg->name_size = (uint32_t)name.size;
  arg->is_ref = number_field(proto, A_IS_REF) != 0;
  if (dtype > TN_DTYPE_REF && dtype < 2 * TN_DTYPE_REF) {
    dtype -= TN_DTYPE_REF;
    arg->is_ref = true;
  }
  if (dtype != 0 && (dtype > INT32_MAX || !tn__dtype_valid((tn_dtype)dtype)))
    return tn__in_function(r, f, "argument", name, "has an unknown type");
  if ((dtype != 0) + (type.size != 0) + (list.size != 0) != 1)
    return tn__in_function(r, f, "argument", name, "needs either one type or one attribute that gives the type");
  if (list.size != 0 && number.size != 0)
    return tn__in_function(r, f, "argument", name, "has both a number_attr and a type_list_attr");
  arg->dtype = (uint8_t)dtype;
  st = find_attr(r, f, name, type, TN_ATTR_TYPE, &arg->type_attr);
  if (st == TN_OK) st = find_attr(r, f, name, number, TN_ATTR_INT, &arg->number_attr);
  if (st == TN_OK) st = find_attr(r, f, name, list, TYPE_LIST, &arg->list_attr);
  return st;
}

/* Names of inputs must be unique, because edges refer to them; names of outputs need not be. */
static tn_status read_args(tn__library_reader *r, tn_function *f, tn__slice signature, uint32_t field,
                           tn__arg_spec **out, uint32_t *n, bool *plain)
{
  *out = tn__arena_array(r->arena, tn__field_count(signature, field), sizeof **out);
  if (*out == NULL) return tn__library_no_memory(r);
  *plain = true;
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(signature);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, field, TN__WIRE_BYTES)) continue;
    tn__arg_spec *arg = &(*out)[(*n)++];
    st = read_arg(r, f, w.bytes, arg);
    if (arg->number_attr >= 0 || arg->list_attr >= 0) *plain = false;
    if (st == TN_OK && field == S_INPUT) st = tn__function_add_name(r, f, tn__field_text(w.bytes, A_NAME), NULL);
  }
  return st == TN_OK ? tn__library_after(r, &w) : st;
}

/* ---- as text, for tn_op_schema_format ---- */

static const char *type_text(const tn_op_schema *s, const tn__arg_spec *arg)
{
  int32_t attr = arg->type_attr >= 0 ? arg->type_attr : arg->list_attr;
  return attr >= 0 ? s->attrs[attr].value.name : tn_dtype_name(arg->dtype);
}

static void put_arg(tn__text *t, const tn_op_schema *s, const tn__arg_spec *arg)
{
  tn__text_printf(t, "%s%s: ", t->size == 0 ? "" : ", ", arg->name);
  if (arg->number_attr >= 0) tn__text_printf(t, "%s * ", s->attrs[arg->number_attr].value.name);
  tn__text_printf(t, arg->is_ref ? "Ref(%s)" : "%s", type_text(s, arg));
}

static void put_attr(tn__text *t, const tn__attr_spec *a)
{
  static const char *const kinds[] = { "", "string", "int", "float", "bool", "type", "shape", "tensor", "func" };
  bool is_list = (a->value.kind & TN_ATTR_LIST) != 0;
  tn__text_printf(t, "%s%s: %s%s%s", t->size == 0 ? "" : "; ", a->value.name, is_list ? "list(" : "",
                  kinds[a->value.kind & ~TN_ATTR_LIST], is_list ? ")" : "");
  if (a->has_minimum && (a->minimum != 0 || is_list)) tn__text_printf(t, " >= %lld", (long long)a->minimum);
}

static tn_status keep_text(tn__library_reader *r, tn__text *t, const char **out)
{
  tn_status st = t->failed ? tn__library_no_memory(r) : tn__library_copy(r, (tn__slice){ t->data, t->size }, out);
  tn__text_fini(t);
  return st;
}

/* Sets the texts of the def, which a registered op has from its family. */
static tn_status write_texts(tn__library_reader *r, tn_function *f)
{
  const tn_op_schema *s = &f->schema;
  tn__text t;
  tn__text_init(&t, SIZE_MAX);
  for (uint32_t i = 0; i < s->n_inputs; i++) put_arg(&t, s, &s->inputs[i]);
  tn_status st = keep_text(r, &t, &f->def.inputs);
  if (st != TN_OK) return st;
  tn__text_init(&t, SIZE_MAX);
  for (uint32_t i = 0; i < s->n_outputs; i++) put_arg(&t, s, &s->outputs[i]);
  st = keep_text(r, &t, &f->def.outputs);
  if (st != TN_OK) return st;
  tn__text_init(&t, SIZE_MAX);
  for (uint32_t i = 0; i < s->n_attrs; i++) put_attr(&t, &s->attrs[i]);
  return keep_text(r, &t, &f->def.attrs);
}

/* ---- the whole signature ---- */

/* The number of times that arguments name an attribute: a maximum for the attributes that find_attr adds. */
static size_t count_named(tn__slice signature)
{
  size_t n = 0;
  tn__wire w = tn__wire_read(signature);
  while (tn__wire_next(&w)) {
    if (!tn__wire_is(&w, S_INPUT, TN__WIRE_BYTES) && !tn__wire_is(&w, S_OUTPUT, TN__WIRE_BYTES)) continue;
    n += tn__field_text(w.bytes, A_TYPE_ATTR).size != 0;
    n += tn__field_text(w.bytes, A_NUMBER_ATTR).size != 0;
    n += tn__field_text(w.bytes, A_LIST_ATTR).size != 0;
  }
  return n;
}

#define MAX_ATTRS 1024 /* every call searches them linearly */

/* Reserves room for the attributes that arguments add. */
static tn_status read_attrs(tn__library_reader *r, tn_function *f, tn__slice signature, size_t *room)
{
  tn_op_schema *s = &f->schema;
  size_t n = tn__field_count(signature, S_ATTR), more = count_named(signature);
  if (n > MAX_ATTRS)
    return tn__in_function(r, f, "signature", tn__slice_of(f->name), "has more than 1024 attributes");
  *room = more > MAX_ATTRS - n ? MAX_ATTRS : n + more;
  s->attrs = tn__arena_array(r->arena, *room, sizeof *s->attrs);
  if (s->attrs == NULL) return tn__library_no_memory(r);
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(signature);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, S_ATTR, TN__WIRE_BYTES)) continue;
    tn__slice name = tn__field_text(w.bytes, D_NAME);
    if (tn__schema_attr_index(s, name.data, name.size) >= 0)
      st = tn__in_function(r, f, "attribute", name, "occurs twice");
    else
      st = read_attr(r, f, w.bytes, &s->attrs[s->n_attrs++]);
  }
  return st == TN_OK ? tn__library_after(r, &w) : st;
}

/* A function's schema is READY from the start: it is not in the op table and has no state to change. */
tn_status tn__signature_read(tn__library_reader *r, tn_function *f, tn__slice signature)
{
  tn_op_schema *s = &f->schema;
  s->name = f->name;
  s->name_size = (uint32_t)strlen(f->name);
  s->def = &f->def;
  s->constant_attr = -1;
  s->is_function = true;
  s->traits = TN_TRAIT_FUNCTION_CALL | TN_TRAIT_PLAIN_CALL | TN_TRAIT_DYNAMIC |
              (number_field(signature, S_STATEFUL) != 0 ? TN_TRAIT_STATEFUL | TN_TRAIT_READS : 0);
  atomic_init(&s->state, TN__SCHEMA_READY);
  f->def = (tn_op_def){ .struct_size = TN_OP_DEF_SIZE, .name = f->name, .traits = s->traits,
                        .infer = tn__infer_own_call };
  tn_status st = read_attrs(r, f, signature, &r->attr_room);
  if (st == TN_OK) st = read_args(r, f, signature, S_INPUT, &s->inputs, &s->n_inputs, &s->plain_inputs);
  if (st == TN_OK) st = read_args(r, f, signature, S_OUTPUT, &s->outputs, &s->n_outputs, &s->plain_outputs);
  if (st == TN_OK) st = tn__library_copy(r, tn__field_text(signature, S_SUMMARY), &f->def.summary);
  return st == TN_OK ? write_texts(r, f) : st;
}
