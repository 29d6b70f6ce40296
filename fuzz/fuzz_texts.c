/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that read external data: CSV, WAV, base64, raw bytes, numbers, Unicode, serialised tensors, and files of tables.
 *
 * The first byte is the op, the next four its attributes, the rest its text; for ops that take several texts, they
 * are separated by bytes 0xfe. Each text gives a result or a status with a message; base64 output decodes to the
 * same text. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_TEXTS 6
#define MOST_OUTPUTS 8

static tn_eager_session *session;
static char file[200];

static void quiet_log(void *user, int32_t level, const char *line) { (void)user, (void)level, (void)line; }
static void remove_file(void) { unlink(file); }

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  tn_eager_options options;
  (void)argc, (void)argv;
  fuzz_limit_memory((size_t)32 << 20);
  fuzz_make_options();
  tn_set_log_sink(quiet_log, NULL);
  tn_eager_options_init(&options);
  options.session = options_of[1];
  options.strategy = TN_EAGER_ON_SAFE_POINTS;
  snprintf(file, sizeof file, "%s/tenon-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  int fd = mkstemp(file);
  if (tn_session_options_add_read_folder(options_of[1], file, NULL) != TN_OK) abort();
  if (fd < 0 || tn_eager_session_create(&options, &session, NULL) != TN_OK) abort();
  close(fd);
  atexit(remove_file);
  return 0;
}

/* ---- tensors ---- */

static tn_eager_handle bring(tn_tensor *t)
{
  tn_eager_handle out;
  if (tn_eager_from_tensor(session, t, &out, NULL) != TN_OK) abort();
  tn_tensor_unref(t);
  return out;
}

/* A scalar, or a vector of the parts if `several`. */
static tn_eager_handle texts(const uint8_t *data, size_t size, bool several)
{
  int64_t n = 1;
  tn_tensor *t;
  for (size_t i = 0; several && i < size && n < MOST_TEXTS; i++) n += data[i] == 0xfe;
  if (tn_tensor_create(TN_STRING, &n, several, &t, NULL) != TN_OK) abort();
  for (int64_t i = 0; i < n; i++) {
    const uint8_t *end = several && i + 1 < n ? memchr(data, 0xfe, size) : NULL;
    size_t length = end != NULL ? (size_t)(end - data) : size;
    if (tn_tensor_set_string(t, i, data, length, NULL) != TN_OK) abort();
    if (end == NULL) break;
    data = end + 1, size -= length + 1;
  }
  return bring(t);
}

static tn_eager_handle word(const char *text) { return texts((const uint8_t *)text, strlen(text), false); }

static tn_eager_handle numbers(tn_dtype dtype, int64_t a, int64_t b, int32_t rank)
{
  int64_t dims[] = { 2 }, values[] = { a, b };
  int32_t narrow[] = { (int32_t)a, (int32_t)b };
  tn_tensor *t;
  if (tn_tensor_create(dtype, dims, rank, &t, NULL) != TN_OK) abort();
  size_t bytes = tn_tensor_bytes(t);
  memcpy(tn_tensor_data(t), dtype == TN_INT64 ? (void *)values : (void *)narrow, bytes);
  return bring(t);
}

/* ---- ops ---- */

#define INT(name_, i_) { .name = name_, .kind = TN_ATTR_INT, .i = i_ }
#define BOOL(name_, i_) { .name = name_, .kind = TN_ATTR_BOOL, .i = (i_) & 1 }
#define TYPE(name_, i_) { .name = name_, .kind = TN_ATTR_TYPE, .i = i_ }
#define TEXT(name_, at_) { .name = name_, .kind = TN_ATTR_STRING, .at = at_, .n = strlen(at_) }
#define CALL(op, inputs, n, attrs) call(op, attrs, sizeof attrs / sizeof attrs[0], inputs, n)

static tn_eager_handle call(const char *op, const tn_eager_attr *attrs, size_t n_attrs, const tn_eager_handle *inputs,
                            size_t n)
{
  tn_eager_handle outputs[MOST_OUTPUTS] = { { 0 } };
  tn_error err = TN_ERROR_INIT;
  size_t made = 0;
  tn_status st = tn_eager_call(session, op, attrs, n_attrs, inputs, n, outputs, MOST_OUTPUTS, &made, &err);
  check_status(st, &err);
#ifdef FUZZ_SHOW
  fprintf(stderr, "%s: %s %s\n", op, tn_status_name(st), tn_error_message(&err));
#endif
  if (st == TN_INTERNAL || st == TN_NOT_FOUND) abort();
  for (size_t i = 0; i < MOST_OUTPUTS; i++)
    if ((outputs[i].id != 0) != (st == TN_OK && i < made)) abort();
  tn_error_clear(&err);
  return outputs[0];
}

static const char *const encodings[] = { "UTF-8",     "UTF-16-BE", "UTF-32-BE", "UTF-16-LE",
                                         "UTF-32-LE", "US-ASCII",  "UTF-16" };
static const char *const errors[] = { "replace", "strict", "ignore" };
static const tn_dtype types[] = { TN_FLOAT, TN_INT32, TN_INT64, TN_DOUBLE, TN_UINT8, TN_HALF, TN_INT16, TN_STRING };

static void csv(const uint8_t *k, tn_eager_handle text)
{
  const char *delimiters[] = { ",", "\t", ";", " ", "\"", "", ",," }, *absent[] = { "", "NA", "0", "\"" };
  tn_eager_handle inputs[5] = { text };
  int64_t columns[] = { k[2] % 3, k[2] / 3 % 4 + 1, 9 };
  size_t n = 1 + k[0] % 4;
  for (size_t i = 1; i <= n; i++) {
    tn_tensor *t;
    int64_t dim = k[1] >> i & 1;
    if (tn_tensor_create((tn_dtype[]){ TN_FLOAT, TN_INT32, TN_INT64, TN_STRING, TN_DOUBLE }[(k[3] + i) % 5], &dim, 1,
                         &t, NULL) != TN_OK)
      abort();
    inputs[i] = bring(t);
  }
  const tn_eager_attr attrs[] = {
    TEXT("field_delim", delimiters[k[0] / 4 % 7]),
    BOOL("use_quote_delim", k[1]),
    TEXT("na_value", absent[k[1] / 64]),
    { .name = "select_cols", .kind = TN_ATTR_LIST + TN_ATTR_INT, .n = k[2] < 64 ? n % 4 : 0, .at = columns }
  };
  CALL("DecodeCSV", inputs, n + 1, attrs);
}

static void wav(const uint8_t *k, tn_eager_handle text)
{
  const tn_eager_attr attrs[] = { INT("desired_channels", k[0] < 200 ? k[0] % 4 - 1 : 100000),
                                  INT("desired_samples", k[1] < 240 ? k[1] % 9 - 1 : INT32_MAX) };
  CALL("DecodeWav", &text, 1, attrs);
}

static void split(const uint8_t *k, tn_eager_handle text)
{
  static const char *const words[] = { "", " ", ",", "ab", "\t", "," };
  const tn_eager_handle inputs[] = { text, word(words[k[0] % 6]) };
  const tn_eager_attr one[] = { BOOL("skip_empty", k[1]) }, two[] = { INT("maxsplit", k[1] % 5 - 1) };
  CALL("StringSplit", inputs, 2, one);
  CALL("StringSplitV2", inputs, 2, two);
}

static void decoded(const uint8_t *k, tn_eager_handle text)
{
  const tn_eager_attr raw[] = { TYPE("out_type", types[k[0] % 7]), BOOL("little_endian", k[1]) };
  const tn_eager_handle padded[] = { text, numbers(TN_INT32, k[2] < 200 ? k[2] % 32 : -k[2], 0, 0) };
  const tn_eager_attr any[] = { TYPE("out_type", k[3] % 26 + 1) }, number[] = { TYPE("out_type", types[k[3] % 4]) };
  CALL("DecodeRaw", &text, 1, raw);
  CALL("DecodePaddedRaw", padded, 2, raw);
  CALL("StringToNumber", &text, 1, number);
  CALL("ParseTensor", &text, 1, any);
}

/* Encoded text decodes to the same text. */
static void base64(const uint8_t *k, tn_eager_handle text)
{
  const tn_eager_attr pad[] = { BOOL("pad", k[0]) };
  call("DecodeBase64", NULL, 0, &text, 1);
  tn_eager_handle encoded = CALL("EncodeBase64", &text, 1, pad), again = call("DecodeBase64", NULL, 0, &encoded, 1);
  tn_tensor *a, *b;
  if (again.id == 0) abort();
  if (tn_eager_tensor(session, text, &a, NULL) != TN_OK || tn_eager_tensor(session, again, &b, NULL) != TN_OK) abort();
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    size_t n, m;
    const char *x, *y;
    if (tn_tensor_get_string(a, i, &x, &n, NULL) != TN_OK || tn_tensor_get_string(b, i, &y, &m, NULL) != TN_OK) abort();
    if (n != m || memcmp(x, y, n) != 0) abort();
  }
  tn_tensor_unref(a);
  tn_tensor_unref(b);
}

static void unicode(const uint8_t *k, tn_eager_handle text)
{
  const tn_eager_attr attrs[] = { TEXT("input_encoding", encodings[k[0] % 7]), TEXT("errors", errors[k[1] % 3]),
                                  INT("replacement_char", k[2] < 200 ? 65533 : k[2] * 70000 - 1),
                                  BOOL("replace_control_characters", k[3]),
                                  TEXT("output_encoding", encodings[k[3] / 2 % 3]) };
  call("UnicodeDecode", attrs, 4, &text, 1);
  call("UnicodeDecodeWithOffsets", attrs, 4, &text, 1);
  call("UnicodeTranscode", attrs, 5, &text, 1);
}

static void parts(const uint8_t *k, tn_eager_handle text)
{
  const char *units[] = { "BYTE", "UTF8_CHAR" }, *names[] = { "", "utf-8" };
  const tn_eager_attr unit[] = { TEXT("unit", units[k[0] & 1]) },
                      encoding[] = { TEXT("encoding", names[k[0] >> 1 & 1]) };
  const tn_eager_handle inputs[] = { text, numbers(TN_INT32, k[1] - 100, 0, 0), numbers(TN_INT32, k[2] - 20, 0, 0) };
  const int64_t widths[] = { k[1] % 5, k[2] % 5 };
  const tn_eager_handle grams[] = { text, numbers(TN_INT64, 0, k[3] % 8, 1) };
  const tn_eager_attr how[] = {
    TEXT("separator", k[0] & 4 ? " " : ""),
    TEXT("left_pad", k[0] & 8 ? "<" : ""),
    TEXT("right_pad", k[0] & 16 ? ">" : ""),
    { .name = "ngram_widths", .kind = TN_ATTR_LIST + TN_ATTR_INT, .n = 1 + (k[3] >> 3 & 1), .at = widths },
    INT("pad_width", k[3] / 16 - 1),
    BOOL("preserve_short_sequences", k[0] >> 5)
  };
  CALL("Substr", inputs, 3, unit);
  CALL("StringLength", &text, 1, unit);
  CALL("StringLower", &text, 1, encoding);
  CALL("StringUpper", &text, 1, encoding);
  call("StringStrip", NULL, 0, &text, 1);
  CALL("StringNGrams", grams, 2, how);
}

static void formatted(const uint8_t *k, const uint8_t *data, size_t size, tn_eager_handle text)
{
  const char *places[] = { "{}", "%", "", "{" };
  const tn_eager_handle inputs[] = { text, numbers(TN_INT32, k[1], -k[2], 1) };
  const tn_eager_attr attrs[] = { { .name = "template", .kind = TN_ATTR_STRING, .at = data, .n = size },
                                  TEXT("placeholder", places[k[0] % 4]), INT("summarize", k[3] % 5 - 1) };
  CALL("StringFormat", inputs, 1 + (k[0] >> 2 & 1), attrs);
}

/* The text is a file of keys and values. */
static void table(const uint8_t *k, const uint8_t *data, size_t size)
{
  const char *delimiters[] = { "\t", ",", " ", "", "ab" };
  FILE *out = fopen(file, "wb");
  if (out == NULL || fwrite(data, 1, size, out) != size || fclose(out) != 0) abort();
  const tn_eager_attr of_table[] = { TYPE("key_dtype", types[k[0] & 1 ? 2 : 7]),
                                     TYPE("value_dtype", types[k[0] / 2 % 8]), TEXT("shared_name", "t") };
  const tn_eager_attr how[] = { INT("key_index", k[1] % 5 - 2), INT("value_index", k[2] % 5 - 2),
                                INT("vocab_size", k[3] < 100 ? -1 : k[3] % 6), TEXT("delimiter", delimiters[k[3] % 5]),
                                INT("offset", k[3] > 200) };
  tn_eager_handle inputs[] = { CALL("HashTableV2", NULL, 0, of_table), word(file) };
  if (inputs[0].id == 0) return;
  call("InitializeTableFromTextFileV2", how, 4 + (k[3] > 230), inputs, 2);
  call("LookupTableSizeV2", NULL, 0, inputs, 1);
  const tn_eager_attr all[] = { TYPE("Tkeys", types[k[0] & 1 ? 2 : 7]), TYPE("Tvalues", types[k[0] / 2 % 8]) };
  CALL("LookupTableExportV2", inputs, 1, all);
  call("DestroyResourceOp", NULL, 0, inputs, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 5) return 0;
  const uint8_t kind = data[0] % 9, *k = data + 1, *rest = data + 5;
  size -= 5;
  if (tn_eager_scope_push(session, NULL) != TN_OK) abort();
  tn_eager_handle text = texts(rest, size, kind != 1 && data[0] < 128);
  switch (kind) {
  case 0: csv(k, text); break;
  case 1: wav(k, text); break;
  case 2: split(k, text); break;
  case 3: decoded(k, text); break;
  case 4: base64(k, text); break;
  case 5: unicode(k, text); break;
  case 6: parts(k, text); break;
  case 7: formatted(k, rest, size, text); break;
  default: table(k, rest, size); break;
  }
  if (tn_eager_scope_pop(session, NULL, 0, NULL) != TN_OK || tn_eager_safe_point(session, NULL) != TN_OK) abort();
  return 0;
}
