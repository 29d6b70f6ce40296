/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto: fields of protobuf's wire format, read in sequence without copies. */
#include <ops/string/string_proto.h>

#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/elements.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* ---- writing ---- */

static void put_varint(tn__text *t, uint64_t v)
{
  char bytes[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) bytes[n++] = (char)(v | 0x80);
  bytes[n++] = (char)v;
  tn__text_append(t, bytes, n);
}

static size_t varint_size(uint64_t v)
{
  size_t n = 1;
  for (; v >= 0x80; v >>= 7) n++;
  return n;
}

static void put_bytes(tn__text *t, unsigned field, const void *data, size_t n)
{
  put_varint(t, field << 3 | BYTES);
  put_varint(t, n);
  tn__text_append(t, data, n);
}

/* A dimension is a nested message; a size of 0 is omitted from it. */
static size_t dim_size(int64_t dim) { return dim == 0 ? 0 : 1 + varint_size((uint64_t)dim); }

/* Writes dtype and shape. */
static void put_head(tn__text *t, const tn_view *v)
{
  size_t shape = 0;
  for (int32_t d = 0; d < v->rank; d++) shape += 2 + dim_size(v->dims[d]);
  put_varint(t, 1 << 3 | VARINT);
  put_varint(t, (uint64_t)v->dtype);
  put_varint(t, 2 << 3 | BYTES);
  put_varint(t, shape);
  for (int32_t d = 0; d < v->rank; d++) {
    put_varint(t, 2 << 3 | BYTES);
    put_varint(t, dim_size(v->dims[d]));
    if (v->dims[d] == 0) continue;
    put_varint(t, 1 << 3 | VARINT);
    put_varint(t, (uint64_t)v->dims[d]);
  }
}

static void put_plain(tn__text *t, const tn_view *v)
{
  if (v->count > 0) put_bytes(t, 4, v->data, (size_t)v->count * tn_dtype_size(v->dtype));
}

static const char *text_at(const tn_view *v, int64_t i, size_t *n)
{
  return tn_string_data((const tn_string *)v->data + i, n);
}

void tn__proto_put_tensor(tn__text *t, const tn_view *v)
{
  put_head(t, v);
  if (v->dtype != TN_STRING) {
    put_plain(t, v);
    return;
  }
  for (int64_t i = 0; i < v->count && !t->failed; i++) {
    size_t n;
    const char *text = text_at(v, i, &n);
    put_bytes(t, 8, text, n);
  }
}

void tn__proto_put_content(tn__text *t, const tn_view *v)
{
  size_t n, all = 0;
  put_head(t, v);
  if (v->dtype != TN_STRING || v->count == 0) {
    put_plain(t, v);
    return;
  }
  for (int64_t i = 0; i < v->count; i++) {
    text_at(v, i, &n);
    all += varint_size(n) + n;
  }
  put_varint(t, 4 << 3 | BYTES);
  put_varint(t, all);
  for (int64_t i = 0; i < v->count && !t->failed; i++) {
    text_at(v, i, &n);
    put_varint(t, n);
  }
  for (int64_t i = 0; i < v->count && !t->failed; i++) {
    const char *text = text_at(v, i, &n);
    tn__text_append(t, text, n);
  }
}

/* ---- reading ---- */

typedef struct wire {
  const char *at, *end;
  unsigned field, type;
  uint64_t value;  /* of numeric fields */
  tn__slice bytes;
  bool bad;
} wire;

static bool take_varint(wire *w, uint64_t *out)
{
  *out = 0;
  for (int shift = 0; shift < 70 && w->at < w->end; shift += 7) {
    uint64_t b = (unsigned char)*w->at++;
    if (shift < 64) *out |= (b & 0x7f) << shift;
    if (b < 0x80) return true;
  }
  return false;
}

static bool take_fixed(wire *w, size_t n)
{
  if ((size_t)(w->end - w->at) < n) return false;
  w->value = 0;
  memcpy(&w->value, w->at, n);
  w->at += n;
  return true;
}

static bool take_bytes(wire *w)
{
  uint64_t n;
  if (!take_varint(w, &n) || n > (uint64_t)(w->end - w->at)) return false;
  w->bytes = (tn__slice){ w->at, (size_t)n };
  w->at += n;
  return true;
}

/* Reads the next field. Returns false at the end, or if the bytes are malformed; then w->bad is set. */
static bool next_field(wire *w)
{
  uint64_t tag;
  if (w->at >= w->end || w->bad) return false;
  bool fits = take_varint(w, &tag) && tag >> 3 != 0 && tag >> 3 < (1u << 29);
  if (fits) {
    w->field = (unsigned)(tag >> 3);
    w->type = tag & 7;
    switch (w->type) {
    case VARINT: fits = take_varint(w, &w->value); break;
    case FIXED64: fits = take_fixed(w, 8); break;
    case FIXED32: fits = take_fixed(w, 4); break;
    case BYTES: fits = take_bytes(w); break;
    default: fits = false;
    }
  }
  w->bad = !fits;
  return fits;
}

static wire begin(tn__slice s) { return (wire){ .at = s.data, .end = s.data + s.size }; }

static bool read_dim(tn__slice s, int64_t *dim)
{
  wire w = begin(s);
  *dim = 0;
  while (next_field(&w))
    if (w.field == 1 && w.type == VARINT) *dim = (int64_t)w.value;
  return !w.bad;
}

static bool read_shape(tn__slice s, tn__shape *shape, bool *unknown)
{
  wire w = begin(s);
  while (next_field(&w)) {
    int64_t dim;
    if (w.field == 3 && w.type == VARINT) *unknown = w.value != 0;
    if (w.field != 2 || w.type != BYTES) continue;
    if (!read_dim(w.bytes, &dim) || !tn__shape_append(shape, dim)) return false;
  }
  return !w.bad;
}

tn_status tn__proto_read_tensor(tn__slice text, tn__proto_tensor *out, tn_error *err)
{
  wire w = begin(text);
  bool unknown = false, shaped = true;
  *out = (tn__proto_tensor){ .all = text, .dtype = TN_DTYPE_INVALID };
  while (shaped && next_field(&w)) {
    if (w.field == 1 && w.type == VARINT) out->dtype = w.value < 256 ? (tn_dtype)w.value : TN_DTYPE_INVALID;
    if (w.field == 2 && w.type == BYTES) shaped = read_shape(w.bytes, &out->shape, &unknown);
    if (w.field == 4 && w.type == BYTES) out->content = w.bytes;
  }
  if (w.bad || !shaped)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the %zu bytes are not a TensorProto", text.size);
  for (int32_t d = 0; !unknown && d < out->shape.rank; d++)
    if (out->shape.dims[d] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "dimension %d of the tensor is %lld", d,
                          (long long)out->shape.dims[d]);
  if (unknown) out->shape.rank = 0;
  return TN_OK;
}

/* ---- values ---- */

/* How values of a dtype are encoded: the field number, the size of one in bytes (0: varints), and
 * its offset in an element. */
static unsigned field_of(tn_dtype dtype, size_t *fixed)
{
  *fixed = 0;
  switch (dtype) {
  case TN_FLOAT: *fixed = 4; return 5;
  case TN_DOUBLE: *fixed = 8; return 6;
  case TN_COMPLEX64: *fixed = 4; return 9;
  case TN_INT64: return 10;
  case TN_BOOL: return 11;
  case TN_COMPLEX128: *fixed = 8; return 12;
  case TN_HALF:
  case TN_BFLOAT16: return 13;
  case TN_UINT32: return 16;
  case TN_UINT64: return 17;
  default: return 7;
  }
}

typedef struct filler {
  char *to;
  int64_t n, room; /* in numbers: a complex element has two */
  size_t size;     /* bytes of a number */
  bool is_bool;
} filler;

static void add_value(filler *f, uint64_t value)
{
  if (f->n >= f->room) return;
  if (f->is_bool) value = value != 0;
  memcpy(f->to + (size_t)f->n++ * f->size, &value, f->size);
}

static bool add_run(filler *f, tn__slice run, size_t fixed)
{
  wire w = begin(run);
  while (w.at < w.end) {
    if (fixed > 0 ? !take_fixed(&w, fixed) : !take_varint(&w, &w.value)) return false;
    add_value(f, w.value);
  }
  return true;
}

/* Repeats the last complete element. */
static void repeat_last(filler *f, size_t element, int64_t count)
{
  size_t have = (size_t)f->n * f->size / element;
  if (have == 0) {
    memset(f->to, 0, (size_t)count * element);
    return;
  }
  for (size_t i = have; i < (size_t)count; i++) memcpy(f->to + i * element, f->to + (have - 1) * element, element);
}

static tn_status read_numbers(const tn__proto_tensor *proto, int64_t count, void *to, tn_error *err)
{
  size_t fixed, element = tn_dtype_size(proto->dtype);
  unsigned field = field_of(proto->dtype, &fixed);
  unsigned single = fixed == 8 ? FIXED64 : VARINT; /* the wire type of one number */
  if (fixed == 4) single = FIXED32;
  bool complex = proto->dtype == TN_COMPLEX64 || proto->dtype == TN_COMPLEX128, whole = true;
  filler f = { .to = to, .room = complex ? 2 * count : count, .size = complex ? element / 2 : element,
               .is_bool = proto->dtype == TN_BOOL };
  for (wire w = begin(proto->all); whole && next_field(&w);) {
    if (w.field != field) continue;
    if (w.type == BYTES) whole = add_run(&f, w.bytes, fixed);
    else if (w.type == single) add_value(&f, w.value);
  }
  if (!whole) return tn_error_set(err, TN_INVALID_ARGUMENT, "a run of values of the tensor is cut short");
  repeat_last(&f, element, count);
  return TN_OK;
}

static tn_status bad_strings(const tn__proto_tensor *proto, int64_t count, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor has %zu bytes, which are not %lld strings",
                      proto->content.size, (long long)count);
}

/* Strings in one run of bytes: all lengths, then all texts, exactly. */
static tn_status read_string_content(const tn__proto_tensor *proto, int64_t count, tn_string *to, tn_error *err)
{
  wire lengths = begin(proto->content), texts = lengths;
  uint64_t n;
  for (int64_t i = 0; i < count; i++)
    if (!take_varint(&texts, &n)) return bad_strings(proto, count, err);
  for (int64_t i = 0; i < count; i++) {
    if (!take_varint(&lengths, &n) || n > (uint64_t)(texts.end - texts.at)) return bad_strings(proto, count, err);
    tn_status st = tn_string_set(to + i, texts.at, (size_t)n, err);
    if (st != TN_OK) return st;
    texts.at += n;
  }
  return texts.at == texts.end ? TN_OK : bad_strings(proto, count, err);
}

static tn_status read_strings(const tn__proto_tensor *proto, int64_t count, tn_string *to, tn_error *err)
{
  if (proto->content.size > 0) return read_string_content(proto, count, to, err);
  int64_t n = 0;
  tn_status st = TN_OK;
  for (wire w = begin(proto->all); n < count && st == TN_OK && next_field(&w);)
    if (w.field == 8 && w.type == BYTES) st = tn_string_set(to + n++, w.bytes.data, w.bytes.size, err);
  for (int64_t i = n; st == TN_OK && i < count; i++) {
    if (n > 0) st = tn__copy_elements(TN_STRING, to + i, to + n - 1, 1, err);
    else tn_string_clear(to + i);
  }
  return st;
}

tn_status tn__proto_tensor_bytes(const tn__proto_tensor *proto, size_t *bytes, tn_error *err)
{
  const size_t most = (size_t)1 << 30;
  tn_status st = tn_shape_bytes(proto->dtype, proto->shape.dims, proto->shape.rank, bytes, err);
  if (st != TN_OK || *bytes <= most || (*bytes - most) / 100 <= proto->all.size) return st;
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "%zu bytes say that they are a tensor of %zu", proto->all.size,
                      *bytes);
}

tn_status tn__proto_read_elements(const tn__proto_tensor *proto, int64_t count, void *to, tn_error *err)
{
  if (count == 0) return TN_OK;
  if (proto->dtype == TN_STRING) return read_strings(proto, count, to, err);
  if (proto->content.size == 0) return read_numbers(proto, count, to, err);
  if (proto->content.size != (size_t)count * tn_dtype_size(proto->dtype))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor has %zu bytes for %lld elements of %s",
                        proto->content.size, (long long)count, tn_dtype_name(proto->dtype));
  memcpy(to, proto->content.data, proto->content.size);
  return TN_OK;
}
