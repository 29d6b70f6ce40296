/* SPDX-License-Identifier: Apache-2.0 */
/* tf.Examples in protobuf's JSON form as serialized messages: DecodeJSONExample. Members are written in the order of
 * the text, each value of a list with its own tag, as protobuf writes them. */
#include <core/base/arena.h>
#include <core/base/map.h>
#include <core/formats/wire.h>
#include <core/tensor/tensor_internal.h>
#include <math.h>
#include <ops/example/json.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/string/string_number.h>
#include <string.h>

#define LARGEST_REAL 9007199254740992.0 /* of a number with a fraction or exponent that is read as int64: 2^53 */
#define OUTER_DEPTH 5                   /* objects around a list's values */

typedef enum list_kind { BYTES_LIST = 1, FLOAT_LIST, INT64_LIST } list_kind; /* field numbers */

typedef struct reader {
  tn__json json;
  tn__text out, name, text; /* the message; the last name and text */
  tn__arena *arena;         /* keys of the map that is being read */
  tn__map keys;
  tn__poll poll;
} reader;

/* ---- writing ---- */

static void put_varint(tn__text *t, uint64_t v)
{
  char bytes[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) bytes[n++] = (char)(v | 0x80);
  bytes[n++] = (char)v;
  tn__text_append(t, bytes, n);
}

static void put_tag(tn__text *t, uint32_t field, int type) { put_varint(t, field << 3 | (uint32_t)type); }

static void put_bytes(tn__text *t, uint32_t field, const char *data, size_t n)
{
  put_tag(t, field, TN__WIRE_BYTES);
  put_varint(t, n);
  tn__text_append(t, data, n);
}

/* Begins a message inside another one; returns where its contents begin. */
static size_t begin_message(tn__text *t, uint32_t field)
{
  put_tag(t, field, TN__WIRE_BYTES);
  return t->size;
}

/* Ends it: puts the length in front of the contents. */
static void end_message(tn__text *t, size_t begin)
{
  size_t n = t->size - begin, prefix;
  char length[10];
  put_varint(t, n);
  if (t->failed) return;
  prefix = t->size - begin - n;
  memcpy(length, t->data + begin + n, prefix);
  memmove(t->data + begin + prefix, t->data + begin, n);
  memcpy(t->data + begin, length, prefix);
}

/* ---- values ---- */

static bool read_float(reader *r, float *out)
{
  double value;
  tn__slice number;
  char c = tn__json_next(&r->json);
  bool quoted = c == '"' || c == '\'';
  if (quoted ? !tn__json_text(&r->json, &r->text) : !tn__json_number(&r->json, &number)) return false;
  if (quoted) number = (tn__slice){ tn__text_get(&r->text), r->text.size };
  if (!tn__text_to_number(TN_DOUBLE, number, &value)) return tn__json_fail(&r->json, "not a number");
  *out = (float)value;
  return isfinite(value) <= isfinite(*out) || tn__json_fail(&r->json, "a number is out of range");
}

static bool has_space(tn__slice s)
{
  for (size_t i = 0; i < s.size; i++)
    if (s.data[i] == ' ' || (s.data[i] >= '\t' && s.data[i] <= '\r')) return true;
  return false;
}

/* An integer, or a number of that value in another form. */
static bool read_int(reader *r, int64_t *out)
{
  double value;
  tn__slice number;
  char c = tn__json_next(&r->json);
  bool quoted = c == '"' || c == '\'';
  if (quoted ? !tn__json_text(&r->json, &r->text) : !tn__json_number(&r->json, &number)) return false;
  if (quoted) number = (tn__slice){ tn__text_get(&r->text), r->text.size };
  if (has_space(number)) return tn__json_fail(&r->json, "not a number");
  if (tn__text_to_number(TN_INT64, number, out)) return true;
  if (!tn__text_to_number(TN_DOUBLE, number, &value) || !isfinite(value))
    return tn__json_fail(&r->json, "not a number");
  if (value < -LARGEST_REAL || value > LARGEST_REAL) return tn__json_fail(&r->json, "a number is out of range");
  *out = (int64_t)value;
  return (double)*out == value || tn__json_fail(&r->json, "a number is no integer");
}

/* Base64 with either alphabet. */
static int sextet(char c)
{
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  return c == '/' || c == '_' ? 63 : -1;
}

/* Decodes base64 in place. The padding of the last group may be left out. */
static bool decode_base64(tn__text *t)
{
  size_t n = t->size, size = 0;
  char *s = t->data;
  if (n > 0 && n % 4 == 0 && s[n - 1] == '=') n -= s[n - 2] == '=' ? 2 : 1;
  for (size_t i = 0; i < n; i += 4) {
    size_t group = n - i < 4 ? n - i : 4;
    uint32_t bits = 0;
    if (group == 1) return false;
    for (size_t k = 0; k < 4; k++) {
      int v = k < group ? sextet(s[i + k]) : 0;
      if (v < 0) return false;
      bits = bits << 6 | (uint32_t)v;
    }
    for (size_t k = 0; k + 1 < group; k++) s[size++] = (char)(bits >> (16 - 8 * k));
  }
  t->size = size;
  return true;
}

static bool read_value(reader *r, list_kind kind)
{
  float f = 0;
  int64_t i = 0;
  uint32_t bits;
  switch (kind) {
  case FLOAT_LIST:
    if (!read_float(r, &f)) return false;
    memcpy(&bits, &f, sizeof bits);
    put_tag(&r->out, 1, TN__WIRE_FIXED32);
    tn__text_append(&r->out, (const char *)&bits, sizeof bits); /* little-endian, like the machine */
    return true;
  case INT64_LIST:
    if (!read_int(r, &i)) return false;
    put_tag(&r->out, 1, TN__WIRE_VARINT);
    put_varint(&r->out, (uint64_t)i);
    return true;
  default:
    if (!tn__json_text(&r->json, &r->text)) return false;
    if (!decode_base64(&r->text)) return tn__json_fail(&r->json, "a text is not base64");
    put_bytes(&r->out, 1, tn__text_get(&r->text), r->text.size);
    return true;
  }
}

/* In an array null is a value: zero, or no bytes. */
static bool read_item(reader *r, list_kind kind)
{
  static const char zero[4];
  if (tn__json_next(&r->json) != 'n') return read_value(r, kind);
  if (!tn__json_expect(&r->json, "null")) return false;
  if (kind == BYTES_LIST) put_bytes(&r->out, 1, "", 0);
  else put_tag(&r->out, 1, kind == FLOAT_LIST ? TN__WIRE_FIXED32 : TN__WIRE_VARINT);
  if (kind == FLOAT_LIST) tn__text_append(&r->out, zero, sizeof zero);
  if (kind == INT64_LIST) put_varint(&r->out, 0);
  return true;
}

/* Values of an array. Those of arrays in it belong to it, too. */
static bool read_array(reader *r, list_kind kind)
{
  tn__json *j = &r->json;
  int depth = 0;
  bool item = true; /* an item must follow */
  while (item || depth > 0) {
    if (tn__poll_over(&r->poll, 50)) return tn__json_fail(j, "the step has ended");
    if (!item) {
      item = tn__json_take(j, ',');
      if (tn__json_take(j, ']')) {
        item = false;
        depth--;
      } else if (!item) {
        return tn__json_fail(j, "wanted ','");
      }
    } else if (tn__json_take(j, '[')) {
      if (++depth > TN__JSON_DEPTH - OUTER_DEPTH) return tn__json_fail(j, "arrays are nested too deeply");
      item = !tn__json_take(j, ']');
      if (!item) depth--;
    } else {
      if (!read_item(r, kind)) return false;
      item = false;
    }
  }
  return true;
}

/* ---- messages ---- */

static bool is_name(const reader *r, const char *name)
{
  return tn__slice_is((tn__slice){ tn__text_get(&r->name), r->name.size }, name);
}

/* A member that is null is skipped, as if it were not there. */
static bool is_null(reader *r) { return tn__json_next(&r->json) == 'n'; }
static bool skip_null(reader *r) { return tn__json_expect(&r->json, "null"); }

/* A single value may stand for an array of one. */
static bool read_list(reader *r, list_kind kind)
{
  for (bool first = true; tn__json_member(&r->json, &first, &r->name);) {
    if (!is_name(r, "value")) return tn__json_fail(&r->json, "an unknown member of a list");
    if (is_null(r)) skip_null(r);
    else if (tn__json_next(&r->json) == '[') read_array(r, kind);
    else read_value(r, kind);
  }
  return r->json.error == NULL;
}

static bool read_feature(reader *r)
{
  static const struct { const char *name, *other; } names[] = {
    [BYTES_LIST] = { "bytesList", "bytes_list" },
    [FLOAT_LIST] = { "floatList", "float_list" },
    [INT64_LIST] = { "int64List", "int64_list" },
  };
  bool has = false;
  for (bool first = true; tn__json_member(&r->json, &first, &r->name);) {
    list_kind kind = BYTES_LIST;
    while (kind <= INT64_LIST && !is_name(r, names[kind].name) && !is_name(r, names[kind].other)) kind++;
    if (kind > INT64_LIST) return tn__json_fail(&r->json, "an unknown member of a feature");
    if (is_null(r)) {
      skip_null(r);
      continue;
    }
    if (has) return tn__json_fail(&r->json, "a feature has two lists");
    has = true;
    size_t list = begin_message(&r->out, kind);
    if (!read_list(r, kind)) return false;
    end_message(&r->out, list);
  }
  return r->json.error == NULL;
}

/* Remembers the key in r->name. */
static bool note_key(reader *r)
{
  size_t n = r->name.size;
  if (tn__map_get(&r->keys, tn__text_get(&r->name), n) != NULL) return tn__json_fail(&r->json, "a key occurs twice");
  char *key = tn__arena_string(r->arena, tn__text_get(&r->name), n);
  if (key == NULL || !tn__map_put(&r->keys, key, n, key, NULL)) r->out.failed = true;
  return !r->out.failed;
}

/* The map from keys to features. */
static bool read_map(reader *r)
{
  tn__map_fini(&r->keys);
  tn__map_init(&r->keys);
  for (bool first = true; tn__json_member(&r->json, &first, &r->name);) {
    if (!note_key(r)) return false;
    size_t entry = begin_message(&r->out, 1);
    put_bytes(&r->out, 1, tn__text_get(&r->name), r->name.size);
    if (tn__poll_over(&r->poll, 200)) return tn__json_fail(&r->json, "the step has ended");
    if (is_null(r)) {
      skip_null(r);
    } else {
      size_t value = begin_message(&r->out, 2);
      if (!read_feature(r)) return false;
      end_message(&r->out, value);
    }
    end_message(&r->out, entry);
  }
  return r->json.error == NULL;
}

static bool read_features(reader *r)
{
  for (bool first = true; tn__json_member(&r->json, &first, &r->name);) {
    if (!is_name(r, "feature")) return tn__json_fail(&r->json, "an unknown member of features");
    if (is_null(r) ? !skip_null(r) : !read_map(r)) return false;
  }
  return r->json.error == NULL;
}

static bool read_example(reader *r)
{
  for (bool first = true; tn__json_member(&r->json, &first, &r->name);) {
    if (!is_name(r, "features")) return tn__json_fail(&r->json, "an unknown member of an example");
    if (is_null(r)) {
      skip_null(r);
      continue;
    }
    size_t features = begin_message(&r->out, 1);
    if (!read_features(r)) return false;
    end_message(&r->out, features);
  }
  tn__json_next(&r->json);
  if (r->json.error != NULL) return false;
  return r->json.p == r->json.end || tn__json_fail(&r->json, "there is more after the object");
}

/* ---- the kernel ---- */

static tn_status decode(tn_kernel_ctx *ctx, reader *r, int64_t i)
{
  size_t n;
  const char *text = tn_string_data((const tn_string *)ctx->inputs[0]->data + i, &n);
  r->json = (tn__json){ .begin = text, .p = text, .end = text + n };
  r->out.size = 0;
  bool whole = read_example(r);
  if (r->out.failed || r->name.failed || r->text.failed) return tn__no_memory(ctx->err, "example", r->out.size);
  if (!whole && tn_kernel_cancelled(ctx)) return TN_CANCELLED;
  if (!whole)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "DecodeJSONExample: element %lld, byte %zu: %s", (long long)i,
                        (size_t)(r->json.p - r->json.begin), r->json.error);
  return tn_string_set((tn_string *)ctx->outputs[0]->data + i, tn__text_get(&r->out), r->out.size, ctx->err);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  reader r = { .poll = tn__poll_of(ctx) };
  tn_status st = TN_OK;
  tn__text_init(&r.out, PTRDIFF_MAX / 8);
  tn__text_init(&r.name, PTRDIFF_MAX / 8);
  tn__text_init(&r.text, PTRDIFF_MAX / 8);
  tn__map_init(&r.keys);
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) {
    tn__arena arena;
    tn__arena_init(&arena, 1024);
    r.arena = &arena;
    st = decode(ctx, &r, i);
    tn__arena_fini(&arena);
  }
  tn__map_fini(&r.keys);
  tn__text_fini(&r.text);
  tn__text_fini(&r.name);
  tn__text_fini(&r.out);
  return st;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 100 + 2000 * (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "DecodeJSONExample", .inputs = "json_examples: string",
    .outputs = "binary_examples: string", .attrs = "", .infer = tn__infer_unchanged,
    .summary = "serializes tf.Examples given as JSON" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("DecodeJSONExample", "decode_json_example_cpu", NULL, NULL, prepare, compute),
};

TN_OP_FAMILY(example_json)
