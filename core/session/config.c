/* SPDX-License-Identifier: Apache-2.0 */
/* Options from a serialized ConfigProto, and back. For both directions one table maps fields of the
 * message to options. The rest of the message is kept as bytes.
 *
 * Writing compares the options with those that the kept message stands for, and changes only the
 * fields that differ. So reading and writing a message without a change in between returns the same
 * bytes. */
#include <core/formats/file.h>
#include <core/formats/pbtxt/pbtxt.h>
#include <core/session/session_internal.h>

#define FILE_LIMIT ((uint64_t)64 << 20) /* bytes of a file with a configuration */

/* How a field's value is stored, and what it means for the option: LIMIT: negative = 0; LEVEL: -1,
 * 0 = 0, 1; COUNTS, FILTERS, POOLS: lists; INNER: a message with parts of its own. The order
 * matters: up to LEVEL numbers. */
typedef enum form { FLAG, INT32, INT64, LIMIT, LEVEL, REAL, TEXT, COUNTS, FILTERS, POOLS, INNER } form;

/* A field of a message and its option. */
typedef struct part {
  uint32_t field; /* number */
  form form;
  int option; /* TN__OPTION_... */
  const struct layer *inner;
} part;

/* The known fields of one message. */
typedef struct layer {
  const part *parts;
  size_t n;
} layer;

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define LAYER(name) static const layer name = { name##_parts, COUNT(name##_parts) }

static const part gpu_parts[] = { { 1, REAL, TN__OPTION_memory_fraction, NULL } };
LAYER(gpu);
static const part optimizer_parts[] = { { 3, LEVEL, TN__OPTION_level, NULL } };
LAYER(optimizer);
static const part graph_parts[] = { { 3, INNER, 0, &optimizer }, { 6, FLAG, TN__OPTION_place_pruned_graph, NULL } };
LAYER(graph);
static const part metadata_parts[] = { { 1, TEXT, TN__OPTION_session_name, NULL },
                                       { 2, INT64, TN__OPTION_session_version, NULL } };
LAYER(metadata);
static const part experimental_parts[] = { { 11, INNER, 0, &metadata },
                                           { 12, FLAG, TN__OPTION_static_graph, NULL },
                                           { 14, FLAG, TN__OPTION_disable_output_partition_graphs, NULL } };
LAYER(experimental);
static const part config_parts[] = {
  { 1, COUNTS, TN__OPTION_device_count, NULL },
  { 2, INT32, TN__OPTION_intra_op_threads, NULL },
  { 4, FILTERS, TN__OPTION_device_filters, NULL },
  { 5, INT32, TN__OPTION_inter_op_threads, NULL },
  { 6, INNER, 0, &gpu },
  { 7, FLAG, TN__OPTION_allow_soft_placement, NULL },
  { 8, FLAG, TN__OPTION_log_device_placement, NULL },
  { 9, FLAG, TN__OPTION_use_per_session_threads, NULL },
  { 10, INNER, 0, &graph },
  { 11, LIMIT, TN__OPTION_operation_timeout_ms, NULL },
  { 12, POOLS, TN__OPTION_session_inter_op_pools, NULL },
  { 15, FLAG, TN__OPTION_isolate_session_state, NULL },
  { 16, INNER, 0, &experimental },
};
LAYER(config);

/* The wire type of a field of this form. */
static int wire_of(form f)
{
  if (f == REAL) return TN__WIRE_FIXED64;
  return f >= TEXT ? TN__WIRE_BYTES : TN__WIRE_VARINT;
}

/* NULL: a field that is kept unchanged. */
static const part *find_part(const layer *l, const tn__wire *w)
{
  for (size_t i = 0; i < l->n; i++)
    if (tn__wire_is(w, l->parts[i].field, wire_of(l->parts[i].form))) return &l->parts[i];
  return NULL;
}

static const char *name_of(int option) { return tn_session_options_field((size_t)option, NULL, NULL); }

/* ---- checking ---- */

typedef struct reader {
  const uint8_t *begin; /* of the whole message, for errors */
  tn_session_options *to;
  tn_error *err;
} reader;

static tn_status malformed(const reader *r, const void *at, const char *what)
{
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "ConfigProto: byte %zu: %s",
                      (size_t)((const uint8_t *)at - r->begin), what);
}

static tn_status check_text(const reader *r, tn__slice text)
{
  const unsigned char *p = (const unsigned char *)text.data;
  for (size_t i = 0, n; i < text.size; i += n)
    if ((n = tn__utf8_size(p + i, text.size - i)) == 0) return malformed(r, p + i, "a text is not UTF-8");
  return TN_OK;
}

/* The field of a message type as TensorFlow defines it; NULL: unknown. */
static const tn__pb_field *find_field(const tn__pb_message *type, uint32_t number)
{
  for (size_t i = 0; i < type->n; i++)
    if (type->fields[i].number == number) return &type->fields[i];
  return NULL;
}

/* A run of packed numbers must consist of whole numbers. */
static tn_status check_run(const reader *r, const tn__pb_field *f, tn__slice run)
{
  const uint8_t *p = (const uint8_t *)run.data, *end = p + run.size;
  int wire = tn__pb_wire(f);
  uint64_t unused;
  if (wire != TN__WIRE_VARINT)
    return run.size % (wire == TN__WIRE_FIXED64 ? 8 : 4) == 0 ? TN_OK
                                                              : malformed(r, p, "a run of numbers is cut short");
  while (p < end)
    if (!tn__wire_varint(&p, end, &unused)) return malformed(r, p, "a number is cut short or longer than ten bytes");
  return TN_OK;
}

/* Checks every message that TensorFlow knows, down to its last byte. Texts in values of attributes need not be
 * UTF-8. */
static tn_status check(const reader *r, tn__slice message, const tn__pb_message *type, unsigned depth, bool texts)
{
  tn__wire w = tn__wire_read(message);
  tn_status st = TN_OK;
  if (depth > TN__WIRE_DEPTH) return malformed(r, w.p, "messages are nested too deeply");
  while (st == TN_OK && tn__wire_next(&w)) {
    const tn__pb_field *f = find_field(type, w.field);
    if (f == NULL || w.type != TN__WIRE_BYTES) continue;
    if (f->type == TN__PB_MESSAGE) st = check(r, w.bytes, f->message, depth + 1, texts && type != &tn__pb_attr_entry);
    else if (f->type == TN__PB_TEXT) st = texts ? check_text(r, w.bytes) : TN_OK;
    else if (f->repeated) st = check_run(r, f, w.bytes);
  }
  return st == TN_OK && w.error != NULL ? malformed(r, w.at, w.error) : st;
}

/* ---- reading ---- */

/* Copies a text for the options, with a NUL at its end. The caller frees *out. */
static tn_status copy_text(const reader *r, tn__slice text, char **out)
{
  *out = NULL;
  if (memchr(text.data, 0, text.size) != NULL) return malformed(r, text.data, "a text has a NUL in it");
  *out = text.size == 0 ? tn__strdup("") : tn__strndup(text.data, text.size);
  return *out != NULL ? TN_OK : tn__no_memory(r->err, "ConfigProto", text.size + 1);
}

/* Adds one element of a list: a device count (a map entry), a filter (a text), or a pool (a
 * message). */
static tn_status read_item(const reader *r, const part *p, tn__slice entry)
{
  tn__slice text = { "", 0 };
  int32_t number = 0;
  uint32_t text_field = p->form == POOLS ? 2 : 1;
  if (p->form == FILTERS) text = entry;
  tn__wire w = tn__wire_read(p->form == FILTERS ? (tn__slice){ "", 0 } : entry);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, text_field, TN__WIRE_BYTES)) text = w.bytes;
    if (tn__wire_is(&w, 3 - text_field, TN__WIRE_VARINT)) number = (int32_t)w.value;
  }
  if (p->form == COUNTS && text.size == 0) return TN_OK; /* a count for no type of device */
  char *copy;
  tn_status st = copy_text(r, text, &copy);
  if (st != TN_OK) return st;
  if (p->form == COUNTS) st = tn_session_options_set_device_count(r->to, copy, number, r->err);
  else if (p->form == FILTERS) st = tn_session_options_add_device_filter(r->to, copy, r->err);
  else st = tn_session_options_add_inter_op_pool(r->to, number, copy, r->err);
  tn__strfree(copy);
  return st;
}

static tn_status read_text(const reader *r, const part *p, tn__slice text)
{
  char *copy;
  tn_status st = copy_text(r, text, &copy);
  if (st == TN_OK) st = tn_session_options_set_string(r->to, name_of(p->option), copy, r->err);
  tn__strfree(copy);
  return st;
}

static tn_status read_layer(const reader *r, const layer *l, tn__slice message);

/* Sets the option of one field. Protobuf's default for a real number means that the option is not
 * set. */
static tn_status read_part(const reader *r, const part *p, const tn__wire *w)
{
  const char *name = name_of(p->option);
  int64_t number = (int64_t)w->value;
  double real;
  switch (p->form) {
  case FLAG: return tn_session_options_set_bool(r->to, name, number != 0, r->err);
  case INT32: return tn_session_options_set_int(r->to, name, (int32_t)number, r->err);
  case INT64: return tn_session_options_set_int(r->to, name, number, r->err);
  case LIMIT: return tn_session_options_set_int(r->to, name, number < 0 ? 0 : number, r->err);
  case LEVEL: return tn_session_options_set_int(r->to, name, (int32_t)number < 0 ? 0 : 1, r->err);
  case REAL:
    memcpy(&real, &w->value, sizeof real);
    return real == 0 ? tn_session_options_clear(r->to, name, r->err)
                     : tn_session_options_set_float(r->to, name, real, r->err);
  case TEXT: return read_text(r, p, w->bytes);
  case INNER: return read_layer(r, p->inner, w->bytes);
  default: return read_item(r, p, w->bytes);
  }
}

/* The message has been checked. */
static tn_status read_layer(const reader *r, const layer *l, tn__slice message)
{
  tn__wire w = tn__wire_read(message);
  tn_status st = TN_OK;
  while (st == TN_OK && tn__wire_next(&w)) {
    const part *p = find_part(l, &w);
    if (p != NULL) st = read_part(r, p, &w);
  }
  return st;
}

/* Sets all options of the layer to their defaults: a message replaces them as a whole. */
static tn_status clear_layer(tn_session_options *o, const layer *l)
{
  tn_status st = TN_OK;
  for (size_t i = 0; i < l->n && st == TN_OK; i++) {
    const part *p = &l->parts[i];
    st = p->form == INNER ? clear_layer(o, p->inner) : tn_session_options_clear(o, name_of(p->option), NULL);
  }
  return st;
}

/* Reads into a copy, which then replaces the options: after an error they are unchanged. */
static tn_status read_config(tn_session_options *options, tn__slice bytes, tn_error *err)
{
  reader r = { .begin = (const uint8_t *)bytes.data, .err = err };
  tn_status st = check(&r, bytes, &tn__pb_config, 1, true);
  if (st == TN_OK) st = tn_session_options_copy(options, &r.to, err);
  if (st == TN_OK) st = clear_layer(r.to, &config);
  if (st == TN_OK) st = read_layer(&r, &config, bytes);
  if (st == TN_OK) st = tn__options_keep_config(r.to, bytes.data, bytes.size, err);
  if (st == TN_OK) tn__options_swap(options, r.to);
  tn_session_options_destroy(r.to);
  return st;
}

tn_status tn_session_options_from_config(tn_session_options *options, const void *bytes, size_t size, tn_error *err)
{
  tn__error_reset(err);
  if (options == NULL || (bytes == NULL && size > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "ConfigProto: the %s NULL",
                        options == NULL ? "options are" : "bytes are");
  return read_config(options, (tn__slice){ size > 0 ? bytes : "", size }, err);
}

tn_status tn_session_options_load_config(tn_session_options *options, const char *path, tn_error *err)
{
  tn__error_reset(err);
  if (options == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "ConfigProto: the options are NULL");
  tn_buffer *file;
  tn_status st = tn__bytes_load(path, FILE_LIMIT, &file, err);
  if (st != TN_OK) return st;
  const tn_buffer_desc *desc = tn_buffer_describe(file);
  tn__slice bytes = { desc->data, desc->bytes };
  tn__sink translated = tn__sink_memory(err);
  if (tn__pbtxt_begins(bytes)) {
    st = tn__pbtxt_parse(bytes, path, &tn__pb_config, &translated, err);
    if (st == TN_OK && tn__sink_reserve(&translated, 1) == NULL) st = translated.status;
    if (st == TN_OK) st = read_config(options, (tn__slice){ translated.data, translated.used }, err);
  } else {
    st = read_config(options, bytes, err);
    if (st != TN_OK) tn_error_prefix(err, "%s", path);
  }
  tn__sink_fini(&translated);
  tn_buffer_unref(file);
  return st;
}

/* ---- writing ---- */

typedef struct writer {
  const tn_session_options *now, *then; /* then: as the kept message has them */
  tn__sink *out;
} writer;

/* Whether a list has the same elements, in the same order. */
static bool same_lists(const writer *wr, int option)
{
  size_t n = tn__option_n_items(wr->now, option);
  bool same = n == tn__option_n_items(wr->then, option);
  for (size_t i = 0; i < n && same; i++) {
    int64_t a, b;
    same =
        strcmp(tn__option_item_at(wr->now, option, i, &a), tn__option_item_at(wr->then, option, i, &b)) == 0 && a == b;
  }
  return same;
}

static bool changed_layer(const writer *wr, const layer *l);

/* Whether the option differs from the kept message. */
static bool changed(const writer *wr, const part *p)
{
  switch (p->form) {
  case INNER: return changed_layer(wr, p->inner);
  case TEXT: return strcmp(tn__option_string(wr->now, p->option), tn__option_string(wr->then, p->option)) != 0;
  case REAL: {
    double a = tn__option_real(wr->now, p->option), b = tn__option_real(wr->then, p->option);
    return memcmp(&a, &b, sizeof a) != 0;
  }
  case COUNTS:
  case FILTERS:
  case POOLS: return !same_lists(wr, p->option);
  default: return tn__option_number(wr->now, p->option) != tn__option_number(wr->then, p->option);
  }
}

static bool changed_layer(const writer *wr, const layer *l)
{
  for (size_t i = 0; i < l->n; i++)
    if (changed(wr, &l->parts[i])) return true;
  return false;
}

/* Writes all elements of a list. */
static void write_items(const writer *wr, const part *p)
{
  for (size_t i = 0; i < tn__option_n_items(wr->now, p->option); i++) {
    int64_t number;
    tn__slice text = tn__slice_of(tn__option_item_at(wr->now, p->option, i, &number));
    if (p->form == FILTERS) {
      tn__sink_bytes(wr->out, p->field, text);
      continue;
    }
    tn__sink_tag(wr->out, p->field, TN__WIRE_BYTES);
    size_t place = tn__sink_begin(wr->out);
    if (p->form == COUNTS) tn__sink_bytes(wr->out, 1, text);
    if (p->form == COUNTS || number != 0) tn__sink_int(wr->out, p->form == COUNTS ? 2 : 1, (uint64_t)number);
    if (p->form == POOLS && text.size > 0) tn__sink_bytes(wr->out, 2, text);
    tn__sink_end(wr->out, place);
  }
}

/* Writes the current value of the option. A default of protobuf is not written. */
static void write_value(const writer *wr, const part *p)
{
  int64_t number = 0;
  if (p->form <= LEVEL) number = tn__option_number(wr->now, p->option);
  if (p->form == LEVEL) number--; /* 0, 1 to L0, L1 */
  if (p->form == COUNTS || p->form == FILTERS || p->form == POOLS) write_items(wr, p);
  else if (p->form == TEXT) tn__sink_bytes(wr->out, p->field, tn__slice_of(tn__option_string(wr->now, p->option)));
  else if (p->form == REAL) {
    double real = tn__option_real(wr->now, p->option);
    tn__sink_tag(wr->out, p->field, TN__WIRE_FIXED64);
    tn__sink_put(wr->out, &real, sizeof real); /* the machine is little-endian, as the format is */
  } else if (number != 0) {
    tn__sink_int(wr->out, p->field, (uint64_t)number);
  }
}

static void write_layer(const writer *wr, const layer *l, tn__slice old, bool add);

static void write_inner(const writer *wr, const part *p, tn__slice old, bool add)
{
  tn__sink_tag(wr->out, p->field, TN__WIRE_BYTES);
  size_t place = tn__sink_begin(wr->out);
  write_layer(wr, p->inner, old, add);
  tn__sink_end(wr->out, place);
}

/* Writes the old message without the changed fields, followed by the new values if `add` is set. A message that occurs
 * twice gets them once. */
static void write_layer(const writer *wr, const layer *l, tn__slice old, bool add)
{
  tn__wire w = tn__wire_read(old);
  const uint8_t *from = w.p;
  uint32_t seen = 0;
  while (tn__wire_next(&w)) {
    const part *p = find_part(l, &w);
    if (p == NULL || !changed(wr, p)) continue;
    tn__sink_put(wr->out, from, (size_t)(w.at - from)); /* groups, too */
    from = w.p;
    if (p->form != INNER) continue;
    uint32_t bit = UINT32_C(1) << (p - l->parts);
    write_inner(wr, p, w.bytes, add && (seen & bit) == 0);
    seen |= bit;
  }
  tn__sink_put(wr->out, from, (size_t)(w.end - from));
  for (size_t i = 0; i < l->n && add; i++) {
    const part *p = &l->parts[i];
    if ((seen & UINT32_C(1) << i) != 0 || !changed(wr, p)) continue;
    if (p->form == INNER) write_inner(wr, p, (tn__slice){ "", 0 }, true);
    else write_value(wr, p);
  }
}

/* The message has 32 bits for some options that have 64. */
static tn_status check_numbers(const tn_session_options *options, tn_error *err)
{
  static const int narrow[] = { TN__OPTION_intra_op_threads, TN__OPTION_inter_op_threads };
  for (size_t i = 0; i < COUNT(narrow); i++) {
    int64_t n = tn__option_number(options, narrow[i]);
    if (n < INT32_MIN || n > INT32_MAX)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s' is %lld, which no ConfigProto can hold",
                          name_of(narrow[i]), (long long)n);
  }
  return TN_OK;
}

tn_status tn_session_options_to_config(const tn_session_options *options, void **bytes, size_t *size, tn_error *err)
{
  tn__error_reset(err);
  if (bytes != NULL) *bytes = NULL;
  if (size != NULL) *size = 0;
  if (options == NULL || bytes == NULL || size == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "ConfigProto: the options, or a pointer for the result, are NULL");
  tn_session_options *then = NULL;
  tn__sink out = tn__sink_memory(err);
  tn__slice kept = { NULL, 0 };
  kept.data = tn__options_config(options, &kept.size);
  tn_status st = check_numbers(options, err);
  if (st == TN_OK) st = tn_session_options_create(&then, err);
  if (st == TN_OK) st = read_config(then, (tn__slice){ kept.size > 0 ? kept.data : "", kept.size }, err);
  if (st == TN_OK) {
    const writer wr = { options, then, &out };
    write_layer(&wr, &config, kept, true);
    if (tn__sink_reserve(&out, 1) == NULL) st = out.status; /* so that there is an address even for no bytes */
  }
  tn_session_options_destroy(then);
  if (st == TN_OK) {
    *bytes = out.data;
    *size = out.used;
  } else {
    tn__sink_fini(&out);
  }
  return st;
}
