/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest: key=value texts, each terminated by a NUL (P-15, P-18), and the check of ABI numbers (P-28, P-30).
 *
 * The bytes are untrusted. They are cut into pairs first, with limits on their number and sizes; then the known keys
 * are checked. Unknown keys are kept but have no effect, so a newer plugin's manifest can be read. */
#include <string.h>

#include <core/registry/registry_internal.h>

#define FORMAT "1"
#define ENTRY_TAIL "_LTX_tn_plugin_query"
#define MAX_ENTRY 256

/* ---- pieces of text ---- */

/* The number of bytes that follow the first byte of a UTF-8 sequence; 4: it begins none. */
static size_t bytes_after(unsigned first)
{
  if (first < 0x80) return 0;
  if (first < 0xc2 || first > 0xf4) return 4;
  if (first < 0xe0) return 1;
  return first < 0xf0 ? 2 : 3;
}

/* Checks for well-formed UTF-8 without control characters, as values are printed in terminals. Returns the offset of
 * the first byte at fault, or `size`. */
static size_t text_fault(const char *text, size_t size)
{
  const unsigned char *p = (const unsigned char *)text;
  for (size_t i = 0; i < size;) {
    unsigned c = p[i];
    size_t more = bytes_after(c);
    if (c < 0x20 || c == 0x7f || more == 4 || more > size - i - 1) return i;
    for (size_t k = 1; k <= more; k++)
      if ((p[i + k] & 0xc0) != 0x80) return i;
    /* Overlong forms, surrogates, numbers above U+10FFFF, the C1 controls. */
    if ((c == 0xe0 && p[i + 1] < 0xa0) || (c == 0xed && p[i + 1] > 0x9f) || (c == 0xf0 && p[i + 1] < 0x90) ||
        (c == 0xf4 && p[i + 1] > 0x8f) || (c == 0xc2 && p[i + 1] < 0xa0))
      return i;
    i += more + 1;
  }
  return size;
}

bool tn__path_is_plain(const char *path, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f) return false;
  return true;
}

bool tn__name_is_reserved(const char *name)
{
  static const char *const own[] = { "direct", "threaded", "gpu", "onednn", "cluster", "local", "remote" };
  for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
    if (strcmp(own[i], name) == 0) return true;
  return false;
}

/* [a-z][a-z0-9_]{0,63} */
static bool key_ok(const char *key, size_t size)
{
  return tn__runtime_name_ok(key, size) && memchr(key, '.', size) == NULL;
}

/* A C identifier with the ending that TN_PLUGIN_DEFINE gives it: no other symbol is ever looked up and called. */
static bool entry_ok(const char *entry)
{
  size_t size = strlen(entry), tail = strlen(ENTRY_TAIL);
  if (size <= tail || size > MAX_ENTRY || strcmp(entry + size - tail, ENTRY_TAIL) != 0) return false;
  for (size_t i = 0; i < size; i++) {
    char c = entry[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (i == 0 || c < '0' || c > '9')) return false;
  }
  return true;
}

/* "Op,Op"; "" lists none. */
static bool ops_ok(const char *ops)
{
  for (const char *at = ops; *at != 0;) {
    size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.>/-");
    if (n == 0 || (at[n] != 0 && at[n] != ',') || (at[n] == ',' && at[n + 1] == 0)) return false;
    at += n + (at[n] == ',');
  }
  return true;
}

/* "major.minor", each a number of up to six digits. */
static bool parse_version(const char *text, int32_t *major, int32_t *minor)
{
  int32_t *parts[2] = { major, minor };
  for (size_t i = 0; i < 2; i++) {
    size_t n = strspn(text, "0123456789");
    int64_t value = 0;
    if (n == 0 || n > 6 || text[n] != (i == 0 ? '.' : 0)) return false;
    if (!tn__parse_int((tn__slice){ text, n }, &value)) return false;
    *parts[i] = (int32_t)value;
    text += n + 1;
  }
  return true;
}

/* ---- cutting into pairs ---- */

typedef struct cutter {
  tn__arena *arena;
  tn__manifest_pair pairs[TN_MANIFEST_MAX_KEYS];
  size_t n;
} cutter;

/* Adds the pair in the `size` bytes at `at`, copied into the arena. Messages give offsets from the section's start. */
static tn_status cut_pair(cutter *c, const char *bytes, size_t at, size_t size, tn_error *err)
{
  const char *text = bytes + at;
  const char *equals = memchr(text, '=', size);
  if (equals == NULL || !key_ok(text, (size_t)(equals - text)))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest, byte %zu: wanted \"key=value\" with a key [a-z][a-z0-9_]*",
                        at);
  size_t key_size = (size_t)(equals - text), value_size = size - key_size - 1;
  const char *value = equals + 1;
  char *key = tn__arena_string(c->arena, text, key_size);
  char *copy = tn__arena_string(c->arena, value, value_size);
  if (key == NULL || copy == NULL) return tn__no_memory(err, "a plugin's manifest", size);
  size_t most =
      strcmp(key, "kernels") == 0 || strcmp(key, "ops") == 0 ? TN_MANIFEST_MAX_KERNELS : TN_MANIFEST_MAX_VALUE;
  if (value_size > most)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "manifest, byte %zu: the value of '%s' has %zu bytes, at most %zu are allowed", at, key,
                        value_size, most);
  size_t fault = text_fault(value, value_size);
  if (fault < value_size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest, byte %zu: the value of '%s' is not UTF-8 text",
                        at + key_size + 1 + fault, key);
  for (size_t i = 0; i < c->n; i++)
    if (strcmp(c->pairs[i].key, key) == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest, byte %zu: the key '%s' is listed twice", at, key);
  if (c->n == TN_MANIFEST_MAX_KEYS)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest, byte %zu: more than %d keys", at, TN_MANIFEST_MAX_KEYS);
  c->pairs[c->n++] = (tn__manifest_pair){ key, copy };
  return TN_OK;
}

static tn_status cut(cutter *c, const char *bytes, size_t size, tn_error *err)
{
  if (size > TN_MANIFEST_MAX_BYTES)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest: %zu bytes, at most %d are allowed", size,
                        TN_MANIFEST_MAX_BYTES);
  for (size_t at = 0; at < size;) {
    const char *end = memchr(bytes + at, 0, size - at);
    if (end == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest, byte %zu: the last text is not terminated by a NUL", at);
    size_t length = (size_t)(end - bytes) - at;
    tn_status status = length > 0 ? cut_pair(c, bytes, at, length, err) : TN_OK; /* empty: padding of the section */
    if (status != TN_OK) return status;
    at += length + 1;
  }
  return TN_OK;
}

/* ---- the meaning of the pairs ---- */

static const char *value_of(const cutter *c, const char *key)
{
  for (size_t i = 0; i < c->n; i++)
    if (strcmp(c->pairs[i].key, key) == 0) return c->pairs[i].value;
  return NULL;
}

/* value NULL: the key is missing. */
static tn_status bad_value(const char *key, const char *value, const char *wanted, tn_error *err)
{
  if (value == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest: the key '%s' is missing, wanted %s", key, wanted);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "manifest: '%s' is '%.80s', wanted %s", key, value, wanted);
}

static tn_status read_numbers(const cutter *c, tn__manifest *m, tn_error *err)
{
  const char *abi = value_of(c, "abi"), *min_host = value_of(c, "min_host"), *rank = value_of(c, "rank");
  int32_t major = 0;
  int64_t number = 0;
  if (abi == NULL || !parse_version(abi, &m->abi_major, &m->abi_minor))
    return bad_value("abi", abi, "\"major.minor\"", err);
  if (min_host == NULL || !parse_version(min_host, &major, &m->min_host_minor) || major != m->abi_major)
    return bad_value("min_host", min_host, "\"major.minor\" with the major of 'abi'", err);
  if (rank != NULL && (!tn__parse_int(tn__slice_of(rank), &number) || number < 0 || number > 1000))
    return bad_value("rank", rank, "a number from 0 to 1000", err);
  m->rank = (int32_t)number;
  return TN_OK;
}

/* A missing key is read as an empty text, which the checks of the required keys then refuse. */
static tn_status read_texts(const cutter *c, tn__manifest *m, tn_error *err)
{
  const struct {
    const char *key;
    const char **to;
  } texts[] = {
    { "name", &m->name },     { "kind", &m->kind },   { "types", &m->types }, { "version", &m->version },
    { "vendor", &m->vendor }, { "entry", &m->entry }, { "flags", &m->flags }, { "kernels", &m->kernels },
    { "ops", &m->ops },
  };
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    const char *value = value_of(c, texts[i].key);
    *texts[i].to = value != NULL ? value : "";
  }
  if (!tn__runtime_name_ok(m->name, strlen(m->name)))
    return bad_value("name", value_of(c, "name"), "1 to 64 bytes [a-z][a-z0-9_.]*", err);
  if (tn__name_is_reserved(m->name) && strcmp(m->vendor, TN_OWN_VENDOR) != 0)
    return bad_value("name", m->name, "one that is not reserved for the library's own plugins, such as \"acme.fast\"",
                     err);
  m->is_kernels = strcmp(m->kind, "kernels") == 0;
  if (!m->is_kernels && strcmp(m->kind, "runtime") != 0)
    return bad_value("kind", value_of(c, "kind"), "\"runtime\" or \"kernels\"", err);
  if (!ops_ok(m->ops)) return bad_value("ops", m->ops, "names of ops separated by ','", err);
  if (m->ops[0] != 0 && !m->is_kernels) return bad_value("ops", m->ops, "none in a plugin of kind \"runtime\"", err);
  if (!entry_ok(m->entry)) return bad_value("entry", value_of(c, "entry"), "\"<module>" ENTRY_TAIL "\"", err);
  return TN_OK;
}

tn_status tn__manifest_parse(const char *bytes, size_t size, tn__arena *arena, tn__manifest *out, tn_error *err)
{
  cutter c = { .arena = arena, .n = 0 };
  memset(out, 0, sizeof(*out));
  tn_status status = cut(&c, bytes, size, err);
  if (status != TN_OK) return status;
  const char *format = value_of(&c, "format");
  if (format == NULL || strcmp(format, FORMAT) != 0)
    return bad_value("format", format, "\"" FORMAT "\", the only format that this library reads", err);
  tn__manifest m = { 0 };
  status = read_texts(&c, &m, err);
  if (status == TN_OK) status = read_numbers(&c, &m, err);
  if (status != TN_OK) return status;
  tn__manifest_pair *pairs = tn__arena_array(arena, c.n, sizeof(*pairs));
  if (pairs == NULL) return tn__no_memory(err, "a plugin's manifest", c.n * sizeof(*pairs));
  memcpy(pairs, c.pairs, c.n * sizeof(*pairs));
  m.pairs = pairs;
  m.n_pairs = c.n;
  *out = m;
  return TN_OK;
}

/* ---- ABI ---- */

/* Within a major, a library runs plugins that need a minor up to its own. A plugin built for a newer minor says with
 * min_host that it does without the newer functions. */
tn_status tn__abi_check(int32_t plugin_major, int32_t plugin_minor, int32_t min_host_minor, int32_t host_major,
                        int32_t host_minor, tn_error *err)
{
  if (plugin_major != host_major) {
    bool plugin_older = plugin_major < host_major;
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "made for plugin ABI %d.%d, this library has %d.%d: the %s is older; %s", plugin_major,
                        plugin_minor, host_major, host_minor, plugin_older ? "plugin" : "library",
                        plugin_older ? "rebuild the plugin with this library's headers, or get a newer one"
                                     : "update the library, or rebuild the plugin with its headers");
  }
  if (min_host_minor > host_minor)
    return tn_error_set(
        err, TN_FAILED_PRECONDITION,
        "made for plugin ABI %d.%d and needs at least %d.%d, this library has %d.%d: the library is older; "
        "update the library, or build the plugin with a lower TN_PLUGIN_MIN_HOST",
        plugin_major, plugin_minor, plugin_major, min_host_minor, host_major, host_minor);
  return TN_OK;
}
