/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a TensorProto: in tensor_content, as in memory, or numbers in a field for the dtype. */
#include <core/formats/graphdef/tensor_values.h>

#include <string.h>

/* Types without a field of their own are stored as int_val. */
tn__values_field tn__values_field_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return (tn__values_field){ TN__TENSOR_FLOAT, TN__WIRE_FIXED32, 1, false };
  case TN_DOUBLE: return (tn__values_field){ TN__TENSOR_DOUBLE, TN__WIRE_FIXED64, 1, false };
  case TN_COMPLEX64: return (tn__values_field){ TN__TENSOR_SCOMPLEX, TN__WIRE_FIXED32, 2, false };
  case TN_COMPLEX128: return (tn__values_field){ TN__TENSOR_DCOMPLEX, TN__WIRE_FIXED64, 2, false };
  case TN_INT64: return (tn__values_field){ TN__TENSOR_INT64, TN__WIRE_VARINT, 1, false };
  case TN_BOOL: return (tn__values_field){ TN__TENSOR_BOOL, TN__WIRE_VARINT, 1, false };
  case TN_HALF:
  case TN_BFLOAT16: return (tn__values_field){ TN__TENSOR_HALF, TN__WIRE_VARINT, 1, false };
  case TN_UINT32: return (tn__values_field){ TN__TENSOR_UINT32, TN__WIRE_VARINT, 1, false };
  case TN_UINT64: return (tn__values_field){ TN__TENSOR_UINT64, TN__WIRE_VARINT, 1, false };
  case TN_STRING: return (tn__values_field){ TN__TENSOR_STRING, TN__WIRE_BYTES, 1, false };
  case TN_FLOAT8_E5M2:
  case TN_FLOAT8_E4M3FN:
  case TN_FLOAT8_E4M3FNUZ:
  case TN_FLOAT8_E4M3B11FNUZ:
  case TN_FLOAT8_E5M2FNUZ: return (tn__values_field){ TN__TENSOR_FLOAT8, TN__WIRE_BYTES, 1, true };
  case TN_RESOURCE:
  case TN_VARIANT: return (tn__values_field){ 0, 0, 0, false };
  default: return (tn__values_field){ TN__TENSOR_INT, TN__WIRE_VARINT, 1, false };
  }
}

/* ---- counting ---- */

/* The bytes of a number in a packed run. Not for varints. */
static size_t packed_size(int wire) { return wire == TN__WIRE_FIXED32 ? 4 : 8; }

/* The numbers in one occurrence of the field. */
static size_t count_in(const tn__wire *w, const tn__values_field *field)
{
  size_t n = 0;
  if (w->type != TN__WIRE_BYTES) return w->type == field->wire;
  if (field->wire == TN__WIRE_BYTES) return field->bytes ? w->bytes.size : 1;
  if (field->wire != TN__WIRE_VARINT) return w->bytes.size / packed_size(field->wire);
  tn__wire_count_varints(w->bytes, &n);
  return n;
}

size_t tn__values_count(tn__slice proto, tn_dtype dtype)
{
  const tn__values_field field = tn__values_field_of(dtype);
  size_t n = 0;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w))
    if (w.field == field.number) n += count_in(&w, &field);
  return n;
}

/* Whether a packed run has only whole numbers. */
static bool is_whole(tn__slice run, int wire)
{
  const uint8_t *p = (const uint8_t *)run.data, *end = p + run.size;
  uint64_t value;
  if (wire == TN__WIRE_BYTES) return true;
  if (wire != TN__WIRE_VARINT) return run.size % packed_size(wire) == 0;
  while (p < end)
    if (!tn__wire_varint(&p, end, &value)) return false;
  return true;
}

bool tn__values_elements(tn__slice proto, tn_dtype dtype, uint64_t *elements)
{
  const tn__values_field field = tn__values_field_of(dtype);
  tn__slice content = { NULL, 0 };
  uint64_t n = 0;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__TENSOR_CONTENT, TN__WIRE_BYTES)) content = w.bytes;
    if (w.field != field.number) continue;
    if (w.type == TN__WIRE_BYTES && !is_whole(w.bytes, field.wire)) return false;
    n += count_in(&w, &field);
  }
  if (w.error != NULL || field.number == 0 || (content.size > 0 && dtype == TN_STRING)) return false;
  const size_t unit = content.size > 0 ? tn_dtype_size(dtype) : field.parts;
  if (content.size > 0) n = content.size;
  *elements = n / unit;
  return n % unit == 0;
}

/* ---- storing ---- */

typedef struct sink {
  char *to;        /* the numbers */
  size_t size;     /* bytes of a number in memory */
  size_t n, limit; /* numbers written, numbers wanted */
  tn_dtype dtype;
} sink;

uint64_t tn__values_narrow(tn_dtype dtype, uint64_t value)
{
  switch (dtype) {
  case TN_BOOL: return value != 0;
  case TN_INT4: return (value & 15) - ((value & 8) << 1);
  case TN_UINT4: return value & 15;
  case TN_INT2: return (value & 3) - ((value & 2) << 1);
  case TN_UINT2: return value & 3;
  default: return value;
  }
}

static void put(sink *s, uint64_t value)
{
  if (s->n == s->limit) return;
  value = tn__values_narrow(s->dtype, value);
  memcpy(s->to + s->n++ * s->size, &value, s->size); /* little-endian: the low bytes */
}

static void put_run(sink *s, tn__slice run)
{
  size_t n = run.size / s->size, room = s->limit - s->n;
  if (n > room) n = room;
  if (n > 0) memcpy(s->to + s->n * s->size, run.data, n * s->size);
  s->n += n;
}

static void put_varints(sink *s, tn__slice run)
{
  const uint8_t *p = (const uint8_t *)run.data, *end = p + run.size;
  uint64_t value;
  while (s->n < s->limit && p < end && tn__wire_varint(&p, end, &value)) put(s, value);
}

size_t tn__values_store(tn__slice proto, tn_dtype dtype, void *to, size_t limit)
{
  const tn__values_field field = tn__values_field_of(dtype);
  sink s = { .to = to, .size = tn_dtype_size(dtype) / field.parts, .limit = limit, .dtype = dtype };
  tn__wire w = tn__wire_read(proto);
  while (s.n < s.limit && tn__wire_next(&w)) {
    if (w.field != field.number) continue;
    if (w.type == field.wire && w.type != TN__WIRE_BYTES)
      put(&s, w.value);
    else if (w.type == TN__WIRE_BYTES && field.wire == TN__WIRE_VARINT)
      put_varints(&s, w.bytes);
    else if (w.type == TN__WIRE_BYTES)
      put_run(&s, w.bytes);
  }
  return s.n;
}

bool tn__values_run(tn__slice proto, tn_dtype dtype, tn__slice *run)
{
  const tn__values_field field = tn__values_field_of(dtype);
  tn__slice content = { NULL, 0 }, packed = { NULL, 0 };
  size_t n = 0;
  if (dtype == TN_STRING || field.number == 0 || tn__values_masked(dtype)) return false;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__TENSOR_CONTENT, TN__WIRE_BYTES)) content = w.bytes;
    if (w.field != field.number) continue;
    n++;
    packed = w.type == TN__WIRE_BYTES ? w.bytes : (tn__slice){ NULL, 0 };
  }
  *run = content.size > 0 ? content : packed;
  return content.size > 0 || (n == 1 && packed.size > 0 && field.wire != TN__WIRE_VARINT);
}

/* ---- reading ---- */

static tn_status read_strings(tn__slice proto, uint64_t elements, tn_string *to, tn_error *err)
{
  tn_status st = TN_OK;
  uint64_t i = 0;
  tn__wire w = tn__wire_read(proto);
  while (st == TN_OK && i < elements && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__TENSOR_STRING, TN__WIRE_BYTES))
      st = tn_string_set(&to[i++], w.bytes.data, w.bytes.size, err);
  return st;
}

tn_status tn__values_read(tn__slice proto, tn_dtype dtype, uint64_t elements, void *to, tn_error *err)
{
  const tn__slice content = tn__field_text(proto, TN__TENSOR_CONTENT);
  if (elements == 0) return TN_OK;
  if (dtype == TN_STRING) return read_strings(proto, elements, to, err);
  if (content.size == 0) {
    tn__values_store(proto, dtype, to, (size_t)elements * tn__values_field_of(dtype).parts);
    return TN_OK;
  }
  memcpy(to, content.data, (size_t)elements * tn_dtype_size(dtype));
  unsigned char *bytes = to;
  for (uint64_t i = 0; tn__values_masked(dtype) && i < elements; i++)
    bytes[i] = (unsigned char)tn__values_narrow(dtype, bytes[i]);
  return TN_OK;
}
