/* SPDX-License-Identifier: Apache-2.0 */
/* The session options object: a target, parsed when it is set, and one value for each field of TN_OPTION_MAP.
 *
 * Options have no lock: one thread changes an object at a time. Texts that are returned are borrowed; they are valid
 * until the field is changed or the object is destroyed. A failed call leaves the object unchanged. */
#include <string.h>

#include <core/base/near.h>
#include <core/registry/options_internal.h>

#define DEF_INT(name, value, text) { #name, TN_OPTION_INT, text, value, 0, NULL },
#define DEF_BOOL(name, value, text) { #name, TN_OPTION_BOOL, text, value, 0, NULL },
#define DEF_FLOAT(name, value, text) { #name, TN_OPTION_FLOAT, text, 0, value, NULL },
#define DEF_STRING(name, value, text) { #name, TN_OPTION_STRING, text, 0, 0, value },
#define DEF_LIST(name, value, text) { #name, TN_OPTION_LIST, text, 0, 0, value },
#define DEF(name, KIND, value, text) DEF_##KIND(name, value, text)
const tn__option_def tn__option_defs[TN__N_OPTIONS] = { TN_OPTION_MAP(DEF) };
#define fields tn__option_defs
enum { N_FIELDS = TN__N_OPTIONS };

/* The ranges of those integer fields for which not every int64_t is valid. */
static const struct {
  const char *name;
  int64_t min, max;
} ranges[] = {
  { "level", 0, 1 },
  { "operation_timeout_ms", 0, INT64_MAX },
  { "memory_limit_bytes", 0, INT64_MAX },
  { "max_signatures", 1, INT64_MAX },
  { "max_layouts", 1, INT64_MAX },
  { "session_version", 0, INT64_MAX },
};

/* The same for floating-point fields. `above` itself is excluded; NaN is in no range. */
static const struct {
  const char *name;
  double above, most;
} real_ranges[] = {
  { "memory_fraction", 0, 1 },
};

/* ---- life ---- */

static bool is_number(size_t field)
{
  return fields[field].kind == TN_OPTION_INT || fields[field].kind == TN_OPTION_BOOL;
}

/* Does not free the field's old value. */
static void set_default(tn_session_options *options, size_t field)
{
  options->values[field] = (union tn__option_value){ .number = 0 };
  if (fields[field].kind == TN_OPTION_FLOAT) options->values[field].real = fields[field].real;
  else if (is_number(field)) options->values[field].number = fields[field].number;
}

static void free_value(tn_session_options *options, size_t field)
{
  if (fields[field].kind == TN_OPTION_STRING) tn__strfree(options->values[field].string);
  if (fields[field].kind == TN_OPTION_LIST) tn__option_list_destroy(options->values[field].list);
}

tn_status tn_session_options_create(tn_session_options **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "session options: the out pointer is NULL");
  *out = NULL;
  tn_session_options *options = tn__zalloc(sizeof(*options));
  if (options == NULL) return tn__no_memory(err, "session options", sizeof(*options));
  for (size_t i = 0; i < N_FIELDS; i++) set_default(options, i);
  *out = options;
  return TN_OK;
}

/* Leaves dangling pointers, which the caller overwrites or frees. */
static void free_target(tn_session_options *options)
{
  tn__strfree(options->target);
  tn__free(options->parts, options->parts_size);
  tn__free(options->settings, options->n_settings * sizeof(tn__option_setting));
}

void tn_session_options_destroy(tn_session_options *options)
{
  if (options == NULL) return;
  free_target(options);
  for (size_t i = 0; i < N_FIELDS; i++) free_value(options, i);
  tn__free(options->config, options->config_size);
  tn__free(options, sizeof(*options));
}

static tn_status copy_value(const union tn__option_value *from, tn_session_options *to, size_t field, tn_error *err)
{
  if (fields[field].kind == TN_OPTION_LIST) return tn__option_list_copy(from->list, &to->values[field].list, err);
  if (fields[field].kind != TN_OPTION_STRING) {
    to->values[field] = *from;
  } else if (from->string != NULL) {
    to->values[field].string = tn__strdup(from->string);
    if (to->values[field].string == NULL) return tn__no_memory(err, fields[field].name, strlen(from->string) + 1);
  }
  return TN_OK;
}

/* The target is parsed again rather than copied, as its settings point into `parts`. */
tn_status tn_session_options_copy(const tn_session_options *from, tn_session_options **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "session options: the out pointer is NULL");
  *out = NULL;
  if (from == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "session options: the options to copy are NULL");
  tn_session_options *copy = NULL;
  tn_status status = tn_session_options_create(&copy, err);
  if (status != TN_OK) return status;
  if (from->target != NULL) status = tn_session_options_set_target(copy, from->target, err);
  for (size_t i = 0; status == TN_OK && i < N_FIELDS; i++) status = copy_value(&from->values[i], copy, i, err);
  if (status == TN_OK && from->config != NULL)
    status = tn__options_keep_config(copy, from->config, from->config_size, err);
  if (status == TN_OK)
    *out = copy;
  else
    tn_session_options_destroy(copy);
  return status;
}

/* ---- the target ---- */

bool tn__runtime_name_ok(const char *name, size_t size)
{
  if (size == 0 || size > TN_NAME_BYTES) return false;
  for (size_t i = 0; i < size; i++) {
    char c = name[i];
    bool letter = c >= 'a' && c <= 'z';
    if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '_' || c == '.'))) return false;
  }
  return true;
}

/* [a-z][a-z0-9_]{0,63} */
static bool key_ok(const char *key, size_t size)
{
  return tn__runtime_name_ok(key, size) && memchr(key, '.', size) == NULL;
}

const char *tn__option_shown(const char *text, size_t size, char *buffer, size_t room)
{
  size_t n = size < room - 4 ? size : room - 4;
  for (size_t i = 0; i < n; i++) buffer[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
  memcpy(buffer + n, n < size ? "..." : "", n < size ? 4 : 1);
  return buffer;
}

static tn_status bad_target(const char *target, size_t at, const char *what, tn_error *err)
{
  char text[100];
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "target '%s': %s at byte %zu; wanted \"name[:key=value,...]\" with a name of 1 to %d bytes "
                      "[a-z][a-z0-9_.]*",
                      tn__option_shown(target, strlen(target), text, sizeof(text)), what, at, TN_NAME_BYTES);
}

/* Cuts `parts`, a copy of the target, into settings from byte `at` on. `settings` has room for one more than there are
 * commas. Offsets in messages are those in the target. */
static tn_status cut_settings(const char *target, char *parts, size_t at, tn__option_setting *settings, size_t *n,
                              tn_error *err)
{
  size_t size = strlen(target);
  *n = 0;
  for (;;) {
    const char *comma = memchr(target + at, ',', size - at);
    size_t end = comma != NULL ? (size_t)(comma - target) : size;
    const char *equals = memchr(target + at, '=', end - at);
    if (equals == NULL) return bad_target(target, at, "a setting without '='", err);
    size_t value = (size_t)(equals - target) + 1;
    if (!key_ok(target + at, value - 1 - at))
      return bad_target(target, at, "a setting whose key is not [a-z][a-z0-9_]*", err);
    for (size_t i = value; i < end; i++)
      if ((unsigned char)target[i] < 0x20 || target[i] == 0x7f)
        return bad_target(target, i, "a control character", err);
    parts[value - 1] = parts[end] = 0;
    for (size_t i = 0; i < *n; i++)
      if (strcmp(settings[i].key, parts + at) == 0)
        return bad_target(target, at, "a repeated setting", err);
    settings[(*n)++] = (tn__option_setting){ parts + at, parts + value };
    if (comma == NULL) return TN_OK;
    at = end + 1;
  }
}

/* Builds the new target completely before it replaces the old one. */
tn_status tn_session_options_set_target(tn_session_options *options, const char *target, tn_error *err)
{
  tn__error_reset(err);
  if (options == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "target: the options are NULL");
  if (target == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "target: the text is NULL; \"\" selects by rank");
  size_t size = strlen(target), name = strcspn(target, ":"), room = 0;
  if (size > 0 && !tn__runtime_name_ok(target, name)) return bad_target(target, 0, "an invalid runtime name", err);
  tn_session_options made = { 0 };
  tn_status status = TN_OK;
  if (size > 0) {
    made.parts_size = size + 1;
    made.target = tn__strdup(target);
    made.parts = tn__alloc(made.parts_size);
    if (made.target == NULL || made.parts == NULL) status = tn__no_memory(err, "target", size + 1);
  }
  if (status == TN_OK && size > 0) {
    memcpy(made.parts, target, size + 1);
    made.parts[name] = 0;
  }
  if (status == TN_OK && name < size) {
    for (size_t i = name; i < size; i++) room += target[i] == ',' || i == name;
    tn__option_setting *settings = tn__alloc_array(room, sizeof(tn__option_setting));
    if (settings == NULL) status = tn__no_memory(err, "settings of a target", room * sizeof(tn__option_setting));
    made.settings = settings;
    made.n_settings = room;
    if (status == TN_OK) status = cut_settings(target, made.parts, name + 1, settings, &room, err);
  }
  if (status != TN_OK) {
    if (made.settings == NULL) made.n_settings = 0;
    free_target(&made);
    return status;
  }
  free_target(options);
  options->target = made.target;
  options->parts = made.parts;
  options->parts_size = made.parts_size;
  options->settings = made.settings;
  options->n_settings = made.n_settings;
  return TN_OK;
}

const char *tn_session_options_target(const tn_session_options *options)
{
  return options == NULL || options->target == NULL ? "" : options->target;
}

const char *tn_session_options_runtime(const tn_session_options *options)
{
  return options == NULL || options->parts == NULL ? "" : options->parts;
}

const char *tn_session_options_setting(const tn_session_options *options, const char *key)
{
  if (options == NULL || key == NULL) return NULL;
  for (size_t i = 0; i < options->n_settings; i++)
    if (strcmp(options->settings[i].key, key) == 0) return options->settings[i].value;
  return NULL;
}

const char *tn_session_options_setting_at(const tn_session_options *options, size_t i, const char **value)
{
  bool there = options != NULL && i < options->n_settings;
  if (value != NULL) *value = there ? options->settings[i].value : NULL;
  return there ? options->settings[i].key : NULL;
}

/* Writes " (did you mean 'level'?); available: level, ..." for a wrong name. The n names are `stride` bytes apart; NULL
 * entries are skipped. The caller frees the text. */
static void list_names(const char *const *first, size_t n, size_t stride, const char *wrong, tn__text *out)
{
  tn__near near;
  const char *between = "; available: ";
  tn__text_init(out, 4096);
  tn__near_init(&near, wrong);
  for (size_t i = 0; i < n; i++) {
    const char *name = *(const char *const *)((const char *)first + i * stride);
    if (name != NULL) tn__near_offer(&near, name);
  }
  tn__near_append(&near, out);
  for (size_t i = 0; i < n; i++) {
    const char *name = *(const char *const *)((const char *)first + i * stride);
    if (name == NULL) continue;
    tn__text_printf(out, "%s%s", between, name);
    between = ", ";
  }
}

/* For runtimes: refuses a target with a setting that is not among the keys. */
tn_status tn_session_options_check_settings(const tn_session_options *options, const char *const *keys, size_t n,
                                            tn_error *err)
{
  tn__error_reset(err);
  if (options == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "settings: the options are NULL");
  if (keys == NULL && n > 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "settings: the list of keys is NULL");
  for (size_t i = 0; i < options->n_settings; i++) {
    const char *key = options->settings[i].key;
    size_t k = 0;
    while (k < n && (keys[k] == NULL || strcmp(keys[k], key) != 0)) k++;
    if (k < n) continue;
    tn__text list;
    char text[100];
    list_names(keys, n, sizeof *keys, key, &list);
    tn_error_set(err, TN_INVALID_ARGUMENT, "target '%s': there is no setting '%s'%s",
                 tn__option_shown(options->target, strlen(options->target), text, sizeof(text)), key,
                 n > 0 ? tn__text_get(&list) : "; the runtime has none");
    tn__text_fini(&list);
    return TN_INVALID_ARGUMENT;
  }
  return TN_OK;
}

/* ---- the fields ---- */

static const char *kind_name(int32_t kind)
{
  switch (kind) {
  case TN_OPTION_INT:
  case TN_OPTION_FLOAT: return "a number";
  case TN_OPTION_BOOL: return "true or false";
  case TN_OPTION_LIST: return "a list";
  default: return "a text";
  }
}

static tn_status find_field(const tn_session_options *options, const char *name, size_t *index, tn_error *err)
{
  if (options == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s': the options are NULL", name ? name : "");
  if (name == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option: the name of the field is NULL");
  for (size_t i = 0; i < N_FIELDS; i++) {
    if (strcmp(fields[i].name, name) != 0) continue;
    *index = i;
    return TN_OK;
  }
  tn__text list;
  char text[100];
  list_names(&fields[0].name, N_FIELDS, sizeof fields[0], name, &list);
  tn_error_set(err, TN_NOT_FOUND, "there is no option '%s'%s",
               tn__option_shown(name, strlen(name), text, sizeof(text)), tn__text_get(&list));
  tn__text_fini(&list);
  return TN_NOT_FOUND;
}

tn_status tn__option_find(const tn_session_options *options, const char *name, int32_t kind, size_t *index,
                          tn_error *err)
{
  tn_status status = find_field(options, name, index, err);
  if (status == TN_OK && kind != 0 && fields[*index].kind != kind)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s' is %s, not %s", name, kind_name(fields[*index].kind),
                        kind_name(kind));
  return status;
}

/* For INT and BOOL. */
static tn_status set_number(tn_session_options *options, size_t field, int64_t value, tn_error *err)
{
  for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
    if (strcmp(ranges[i].name, fields[field].name) != 0) continue;
    if (value < ranges[i].min)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s' is %lld, wanted at least %lld", fields[field].name,
                          (long long)value, (long long)ranges[i].min);
    if (value > ranges[i].max)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s' is %lld, wanted at most %lld", fields[field].name,
                          (long long)value, (long long)ranges[i].max);
  }
  options->values[field].number = value;
  return TN_OK;
}

static tn_status set_real(tn_session_options *options, size_t field, double value, tn_error *err)
{
  for (size_t i = 0; i < sizeof(real_ranges) / sizeof(real_ranges[0]); i++)
    if (strcmp(real_ranges[i].name, fields[field].name) == 0 &&
        !(value > real_ranges[i].above && value <= real_ranges[i].most))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s' is %g, wanted above %g and at most %g",
                          fields[field].name, value, real_ranges[i].above, real_ranges[i].most);
  if (value != value || value - value != 0) /* NaN or infinite */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s' is %g, wanted a finite number", fields[field].name,
                        value);
  options->values[field].real = value;
  return TN_OK;
}

static tn_status set_string(tn_session_options *options, size_t field, const char *value, tn_error *err)
{
  if (value == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s': the text is NULL", fields[field].name);
  char *copy = tn__strdup(value);
  if (copy == NULL) return tn__no_memory(err, fields[field].name, strlen(value) + 1);
  tn__strfree(options->values[field].string);
  options->values[field].string = copy;
  return TN_OK;
}

tn_status tn_session_options_set_int(tn_session_options *options, const char *field, int64_t value, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  tn_status status = tn__option_find(options, field, TN_OPTION_INT, &i, err);
  return status == TN_OK ? set_number(options, i, value, err) : status;
}

tn_status tn_session_options_set_bool(tn_session_options *options, const char *field, tn_bool value, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  tn_status status = tn__option_find(options, field, TN_OPTION_BOOL, &i, err);
  return status == TN_OK ? set_number(options, i, value != 0, err) : status;
}

tn_status tn_session_options_set_string(tn_session_options *options, const char *field, const char *value,
                                        tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  tn_status status = tn__option_find(options, field, TN_OPTION_STRING, &i, err);
  return status == TN_OK ? set_string(options, i, value, err) : status;
}

tn_status tn_session_options_set_float(tn_session_options *options, const char *field, double value, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  tn_status status = tn__option_find(options, field, TN_OPTION_FLOAT, &i, err);
  return status == TN_OK ? set_real(options, i, value, err) : status;
}

tn_status tn_session_options_clear(tn_session_options *options, const char *field, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  tn_status status = find_field(options, field, &i, err);
  if (status != TN_OK) return status;
  free_value(options, i);
  set_default(options, i);
  return TN_OK;
}

/* Accepts 0 and 1, false and true, no and yes, off and on. */
static bool parse_bool(const char *text, int64_t *out)
{
  static const char *const words[][2] = { { "0", "1" }, { "false", "true" }, { "no", "yes" }, { "off", "on" } };
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
    for (int64_t value = 0; value < 2; value++) {
      if (strcmp(words[i][value], text) != 0) continue;
      *out = value;
      return true;
    }
  }
  return false;
}

tn_status tn_session_options_parse(tn_session_options *options, const char *field, const char *text, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  int64_t number = 0;
  double real = 0;
  char cut[100];
  tn_status status = find_field(options, field, &i, err);
  if (status != TN_OK) return status;
  if (text == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s': the text is NULL", field);
  if (fields[i].kind == TN_OPTION_STRING) return set_string(options, i, text, err);
  if (fields[i].kind == TN_OPTION_LIST) return tn__option_list_parse(options, i, text, err);
  if (fields[i].kind == TN_OPTION_FLOAT && tn__parse_double(tn__slice_of(text), &real))
    return set_real(options, i, real, err);
  bool taken = fields[i].kind == TN_OPTION_INT ? tn__parse_int(tn__slice_of(text), &number) : parse_bool(text, &number);
  if (!taken || fields[i].kind == TN_OPTION_FLOAT)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s' is '%s', wanted %s", field,
                        tn__option_shown(text, strlen(text), cut, sizeof(cut)), kind_name(fields[i].kind));
  return set_number(options, i, number, err);
}

const char *tn_session_options_field(size_t i, int32_t *kind, const char **text)
{
  bool there = i < N_FIELDS;
  if (kind != NULL) *kind = there ? fields[i].kind : 0;
  if (text != NULL) *text = there ? fields[i].text : NULL;
  return there ? fields[i].name : NULL;
}

tn_status tn_session_options_get_int(const tn_session_options *options, const char *field, int64_t *out, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option: the out pointer is NULL");
  *out = 0;
  tn_status status = tn__option_find(options, field, TN_OPTION_INT, &i, err);
  if (status == TN_OK) *out = options->values[i].number;
  return status;
}

tn_status tn_session_options_get_bool(const tn_session_options *options, const char *field, tn_bool *out, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option: the out pointer is NULL");
  *out = 0;
  tn_status status = tn__option_find(options, field, TN_OPTION_BOOL, &i, err);
  if (status == TN_OK) *out = options->values[i].number != 0;
  return status;
}

tn_status tn_session_options_get_string(const tn_session_options *options, const char *field, const char **out,
                                        tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option: the out pointer is NULL");
  *out = NULL;
  tn_status status = tn__option_find(options, field, TN_OPTION_STRING, &i, err);
  if (status == TN_OK) *out = options->values[i].string != NULL ? options->values[i].string : fields[i].string;
  return status;
}

tn_status tn_session_options_get_float(const tn_session_options *options, const char *field, double *out, tn_error *err)
{
  tn__error_reset(err);
  size_t i = 0;
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option: the out pointer is NULL");
  *out = 0;
  tn_status status = tn__option_find(options, field, TN_OPTION_FLOAT, &i, err);
  if (status == TN_OK) *out = options->values[i].real;
  return status;
}

/* ---- for the rooms above ---- */

int64_t tn__option_number(const tn_session_options *options, int field) { return options->values[field].number; }
double tn__option_real(const tn_session_options *options, int field) { return options->values[field].real; }

const char *tn__option_string(const tn_session_options *options, int field)
{
  const char *string = options->values[field].string;
  return string != NULL ? string : fields[field].string;
}

const char *tn__options_config(const tn_session_options *options, size_t *size)
{
  *size = options->config_size;
  return options->config;
}

/* size 0: no ConfigProto is kept any more. */
tn_status tn__options_keep_config(tn_session_options *options, const void *bytes, size_t size, tn_error *err)
{
  char *copy = size > 0 ? tn__alloc(size) : NULL;
  if (size > 0 && copy == NULL) return tn__no_memory(err, "ConfigProto", size);
  if (size > 0) memcpy(copy, bytes, size);
  tn__free(options->config, options->config_size);
  options->config = copy;
  options->config_size = size;
  return TN_OK;
}

void tn__options_swap(tn_session_options *a, tn_session_options *b)
{
  tn_session_options c = *a;
  *a = *b;
  *b = c;
}
