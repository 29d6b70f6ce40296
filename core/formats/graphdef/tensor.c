/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto and TensorShapeProto.
 *
 * A tensor's elements are in tensor_content, as in memory, or are numbers in a field for its type. There may be fewer
 * numbers than elements (the last one is repeated, none means zeros) or more (the rest is ignored). A tensor with fewer
 * numbers is limited to SPLAT_LIMIT, so that a few bytes of a file cannot request all memory.
 *
 * Elements in one run of bytes are used in place if their address suits the type. */
#include <core/formats/file.h>
#include <core/formats/graphdef/graphdef.h>
#include <core/formats/graphdef/tensor_values.h>

#include <string.h>

/* TensorShapeProto and its dimensions */
enum { S_DIM = 2, S_UNKNOWN_RANK = 3, D_SIZE = 1 };

/* The maximum size in bytes of a tensor with repeated elements. One with all its elements in the file may be larger. */
#define SPLAT_LIMIT ((size_t)1 << 31)

/* ---- checks of the bytes ---- */

static bool check_dim(tn__slice proto, tn__fault *fault)
{
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) { }
  return w.error == NULL || tn__fault_of(&w, fault);
}

bool tn__shapeproto_check(tn__slice proto, tn__fault *fault)
{
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, S_DIM, TN__WIRE_BYTES) && !check_dim(w.bytes, fault)) return false;
  return w.error == NULL || tn__fault_of(&w, fault);
}

/* Checks a packed run of numbers of `size` bytes; 0: varints. */
static bool check_run(const tn__wire *w, size_t size, tn__fault *fault)
{
  const uint8_t *p = (const uint8_t *)w->bytes.data, *end = p + w->bytes.size;
  uint64_t value;
  *fault = (tn__fault){ w->at, "a run of numbers is cut short" };
  if (size != 0) return w->bytes.size % size == 0;
  while (p < end) {
    fault->at = p;
    if (!tn__wire_varint(&p, end, &value)) return false;
  }
  return true;
}

/* The packed runs of all fields are checked, also of those that the dtype does not use. */
bool tn__tensorproto_check(tn__slice proto, tn__fault *fault)
{
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    bool ok = true;
    if (w.type != TN__WIRE_BYTES) continue;
    switch (w.field) {
    case TN__TENSOR_SHAPE: ok = tn__shapeproto_check(w.bytes, fault); break;
    case TN__TENSOR_FLOAT:
    case TN__TENSOR_SCOMPLEX: ok = check_run(&w, 4, fault); break;
    case TN__TENSOR_DOUBLE:
    case TN__TENSOR_DCOMPLEX: ok = check_run(&w, 8, fault); break;
    case TN__TENSOR_INT:
    case TN__TENSOR_INT64:
    case TN__TENSOR_BOOL:
    case TN__TENSOR_HALF:
    case TN__TENSOR_UINT32:
    case TN__TENSOR_UINT64: ok = check_run(&w, 0, fault); break;
    default: break;
    }
    if (!ok) return false;
  }
  return w.error == NULL || tn__fault_of(&w, fault);
}

/* ---- shapes ---- */

static int64_t dim_size(tn__slice proto)
{
  int64_t size = 0;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, D_SIZE, TN__WIRE_VARINT)) size = tn__wire_int(&w);
  return size;
}

/* Reads a shape; dims has room for TN_MAX_RANK. *rank is -1 if unknown. */
static tn_status read_shape(tn__slice proto, int64_t *dims, int32_t *rank, tn_error *err)
{
  int32_t n = 0;
  bool unknown = false;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, S_UNKNOWN_RANK, TN__WIRE_VARINT)) unknown = w.value != 0;
    if (!tn__wire_is(&w, S_DIM, TN__WIRE_BYTES)) continue;
    if (n == TN_MAX_RANK)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "a shape has more than %d dimensions", TN_MAX_RANK);
    dims[n] = dim_size(w.bytes);
    if (dims[n] < -1)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "dimension %d of a shape is %lld, wanted at least -1", (int)n,
                          (long long)dims[n]);
    n++;
  }
  *rank = unknown ? -1 : n;
  return TN_OK;
}

tn_status tn__shapeproto_decode(tn__slice proto, tn__arena *arena, tn__shape *out, tn_error *err)
{
  int64_t dims[TN_MAX_RANK];
  int32_t rank = 0;
  *out = (tn__shape){ NULL, -1 };
  tn_status st = read_shape(proto, dims, &rank, err);
  if (st != TN_OK) return st;
  out->rank = rank;
  if (rank <= 0) return TN_OK;
  int64_t *copy = tn__arena_alloc(arena, (size_t)rank * sizeof *copy);
  if (copy == NULL) return tn__no_memory(err, "shape", (size_t)rank * sizeof *copy);
  memcpy(copy, dims, (size_t)rank * sizeof *copy);
  out->dims = copy;
  return TN_OK;
}

/* ---- the message ---- */

/* The parts of a TensorProto; slices point into it. */
typedef struct parsed {
  tn_dtype dtype;
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
  int64_t count;     /* number of elements */
  size_t bytes;      /* of all elements in memory */
  tn__slice content; /* tensor_content */
  tn__values_field field;
  size_t n_values; /* numbers in the field; not counted if there is tensor_content */
} parsed;

/* Everything but the elements. */
static tn_status parse(tn__slice proto, parsed *t, tn_error *err)
{
  tn__slice shape = { NULL, 0 };
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__TENSOR_DTYPE, TN__WIRE_VARINT)) t->dtype = (tn_dtype)w.value;
    if (tn__wire_is(&w, TN__TENSOR_SHAPE, TN__WIRE_BYTES)) shape = w.bytes;
    if (tn__wire_is(&w, TN__TENSOR_CONTENT, TN__WIRE_BYTES)) t->content = w.bytes;
  }
  if (w.error != NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "malformed tensor: %s", w.error);
  if (!tn__dtype_valid(t->dtype))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor's type is %d, which is not a valid type", (int)t->dtype);
  tn_status st = read_shape(shape, t->dims, &t->rank, err);
  if (st != TN_OK) return st;
  if (t->rank < 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "a tensor of unknown rank");
  st = tn_shape_elements(t->dims, t->rank, &t->count, err);
  if (st == TN_OK) st = tn_shape_bytes(t->dtype, t->dims, t->rank, &t->bytes, err);
  if (st != TN_OK) return tn_error_prefix(err, "the tensor's shape"), st;
  t->field = tn__values_field_of(t->dtype);
  if (t->content.size == 0) t->n_values = tn__values_count(proto, t->dtype);
  return TN_OK;
}

/* ---- elements from numbers ---- */

/* Fills the rest with copies of the last element that was written, or with zeros. Doubles the copied part each time. */
static void repeat_last(char *data, size_t size, size_t written, size_t bytes)
{
  if (written >= bytes) return;
  if (written == 0) {
    memset(data, 0, bytes);
    return;
  }
  size_t done = size; /* bytes from `from` on that are equal elements already */
  char *from = data + written - size, *to = data + written;
  size_t left = bytes - written;
  while (left > 0) {
    size_t n = done < left ? done : left;
    memcpy(to, from, n);
    to += n;
    left -= n;
    done += n;
  }
}

/* Limits a tensor with fewer values than elements, before it is allocated. */
static tn_status check_splat(const parsed *t, tn_error *err)
{
  size_t wanted = (size_t)t->count * t->field.parts;
  if (t->n_values >= wanted || t->bytes <= SPLAT_LIMIT) return TN_OK;
  char shape[128];
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                      "a tensor of shape %s takes %zu bytes, but has only %zu values; with repeated values it may take "
                      "at most %zu bytes",
                      tn__format_shape(shape, sizeof shape, t->dims, t->rank), t->bytes, t->n_values, SPLAT_LIMIT);
}

/* Complex elements have two numbers each; an odd number at the end is ignored. */
static tn_status make_numbers(tn__slice proto, const parsed *t, tn_tensor **out, tn_error *err)
{
  tn_status st = tn_tensor_create(t->dtype, t->dims, t->rank, out, err);
  if (st != TN_OK || t->count == 0) return st;
  size_t element = tn_dtype_size(t->dtype), parts = t->field.parts;
  size_t written = tn__values_store(proto, t->dtype, (*out)->data, (size_t)t->count * parts);
  repeat_last((*out)->data, element, written / parts * element, t->bytes);
  return TN_OK;
}

/* Whether all values are of a fixed size and in one run of bytes, so that they can be used in place. */
static bool one_run(tn__slice proto, const parsed *t, tn__slice *run)
{
  if (t->field.wire == TN__WIRE_VARINT) return false;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w) && w.field != t->field.number) { }
  *run = (tn__slice){ w.bytes.data, t->bytes };
  return tn__wire_is(&w, t->field.number, TN__WIRE_BYTES) && w.bytes.size >= t->bytes;
}

/* ---- strings ---- */

/* Sets the elements from i on to the last text. All copies together are limited to SPLAT_LIMIT. */
static tn_status repeat_string(tn_tensor *tensor, tn__slice text, int64_t i, int64_t count, tn_error *err)
{
  size_t bytes;
  if (!tn__size_mul(text.size, (size_t)(count - i), &bytes) || bytes > SPLAT_LIMIT)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "a text of %zu bytes is repeated %lld times; repeated texts may take at most %zu bytes",
                        text.size, (long long)(count - i), SPLAT_LIMIT);
  tn_status st = TN_OK;
  for (; st == TN_OK && text.size > 0 && i < count; i++)
    st = tn_tensor_set_string(tensor, i, text.data, text.size, err);
  return st;
}

/* Strings of string_val. */
static tn_status make_strings(tn__slice proto, const parsed *t, tn_tensor **out, tn_error *err)
{
  tn_tensor *tensor = NULL;
  tn_status st = tn_tensor_create(TN_STRING, t->dims, t->rank, &tensor, err);
  tn__slice text = { NULL, 0 };
  int64_t i = 0;
  tn__wire w = tn__wire_read(proto);
  while (st == TN_OK && i < t->count && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, TN__TENSOR_STRING, TN__WIRE_BYTES)) continue;
    text = w.bytes;
    st = tn_tensor_set_string(tensor, i++, text.data, text.size, err);
  }
  if (st == TN_OK) st = repeat_string(tensor, text, i, t->count, err);
  if (st != TN_OK)
    tn_tensor_unref(tensor);
  else
    *out = tensor;
  return st;
}

/* The tensor_content of strings has all lengths as varints, then all texts. */
static tn_status make_strings_from_content(const parsed *t, tn_tensor **out, tn_error *err)
{
  const uint8_t *lengths = (const uint8_t *)t->content.data, *end = lengths + t->content.size, *p = lengths;
  uint64_t length;
  if ((uint64_t)t->count > t->content.size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tensor_content has %zu bytes, too few for %lld strings",
                        t->content.size, (long long)t->count);
  for (int64_t i = 0; i < t->count; i++)
    if (!tn__wire_varint(&p, end, &length))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tensor_content ends within the lengths of its strings");
  tn_tensor *tensor = NULL;
  tn_status st = tn_tensor_create(TN_STRING, t->dims, t->rank, &tensor, err);
  for (int64_t i = 0; st == TN_OK && i < t->count; i++) {
    if (!tn__wire_varint(&lengths, end, &length) || length > (uint64_t)(end - p))
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "tensor_content ends within string %lld", (long long)i);
    else
      st = tn_tensor_set_string(tensor, i, p, (size_t)length, err), p += length;
  }
  if (st == TN_OK && p != end)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "tensor_content has %zu bytes too many", (size_t)(end - p));
  if (st != TN_OK)
    tn_tensor_unref(tensor);
  else
    *out = tensor;
  return st;
}

/* ---- the tensor ---- */

/* Whether the bytes are valid elements without masking. Signed types are rare enough to be masked always. */
static bool all_narrow(tn_dtype dtype, tn__slice bytes)
{
  unsigned char any = 0;
  if (!tn__values_masked(dtype)) return true;
  if (dtype == TN_INT4 || dtype == TN_INT2) return false;
  for (size_t i = 0; i < bytes.size; i++) any |= (unsigned char)bytes.data[i];
  return tn__values_narrow(dtype, any) == any;
}

static tn_status make_narrow(const parsed *t, tn__slice bytes, tn_tensor **out, tn_error *err)
{
  tn_status st = tn_tensor_create(t->dtype, t->dims, t->rank, out, err);
  if (st != TN_OK) return st;
  unsigned char *to = (*out)->data;
  for (size_t i = 0; i < bytes.size; i++)
    to[i] = (unsigned char)tn__values_narrow(t->dtype, (unsigned char)bytes.data[i]);
  return TN_OK;
}

/* Makes a tensor from bytes that are as in memory: a view of the holder's bytes if possible, a copy if holder is NULL;
 * with `take` a copy, and the holder releases its bytes. */
static tn_status make_from_bytes(const parsed *t, tn__slice bytes, tn_buffer *holder, bool take, tn_tensor **out,
                                 tn_error *err)
{
  if (bytes.size != t->bytes) {
    char shape[128];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tensor_content has %zu bytes, wanted %zu for shape %s of %s",
                        bytes.size, t->bytes, tn__format_shape(shape, sizeof shape, t->dims, t->rank),
                        tn_dtype_name(t->dtype));
  }
  if (take && bytes.size >= TN__BYTES_PART && !tn__values_masked(t->dtype)) {
    tn_status st = tn_tensor_create(t->dtype, t->dims, t->rank, out, err);
    if (st == TN_OK) st = tn__bytes_take(holder, bytes.data, bytes.size, (*out)->data, err);
    if (st == TN_OK) return st;
    tn_tensor_unref(*out);
    *out = NULL;
    return st;
  }
  tn_status st = tn__bytes_keep(holder, bytes.data, bytes.size, err);
  if (st != TN_OK) return st;
  if (!all_narrow(t->dtype, bytes)) return make_narrow(t, bytes, out, err);
  if (holder == NULL) return tn_tensor_from_data(t->dtype, t->dims, t->rank, bytes.data, bytes.size, out, err);
  return tn__tensor_constant(t->dtype, t->dims, t->rank, bytes.data, bytes.size, holder, out, err);
}

/* Chooses the form: tensor_content, one run that can be used in place, or numbers. */
static tn_status decode(tn__slice proto, tn_buffer *holder, bool take, tn_tensor **out, tn_error *err)
{
  parsed t = { .dtype = TN_DTYPE_INVALID };
  *out = NULL;
  tn_status st = parse(proto, &t, err);
  if (st != TN_OK) return st;
  if (t.field.number == 0)
    return tn_error_set(err, TN_UNIMPLEMENTED, "a constant of type %s is not supported", tn_dtype_name(t.dtype));
  if (t.content.size > 0)
    return t.dtype == TN_STRING ? make_strings_from_content(&t, out, err) :
                                  make_from_bytes(&t, t.content, holder, take, out, err);
  if ((st = check_splat(&t, err)) != TN_OK) return st;
  if (t.dtype == TN_STRING) return make_strings(proto, &t, out, err);
  tn__slice run;
  if (t.count > 0 && one_run(proto, &t, &run)) return make_from_bytes(&t, run, holder, take, out, err);
  return make_numbers(proto, &t, out, err);
}

tn_status tn__tensorproto_decode(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err)
{
  return decode(proto, holder, false, out, err);
}

tn_status tn__tensorproto_take(tn__slice proto, tn_buffer *holder, tn_tensor **out, tn_error *err)
{
  return decode(proto, holder, true, out, err);
}

/* Only for the form that tn__tensorproto_take would release. */
tn_status tn__tensorproto_outline(tn__slice proto, tn_tensor **out, tn_error *err)
{
  parsed t = { .dtype = TN_DTYPE_INVALID };
  *out = NULL;
  tn_status st = parse(proto, &t, err);
  bool plain = t.field.number != 0 && t.dtype != TN_STRING && !tn__values_masked(t.dtype);
  if (st != TN_OK || !plain || t.content.size < TN__BYTES_PART || t.content.size != t.bytes) return st;
  return tn__tensor_outline(t.dtype, t.dims, t.rank, t.count, t.bytes, out, err);
}

tn_status tn__tensorproto_bytes(tn__slice proto, size_t *bytes, tn_error *err)
{
  parsed t = { .dtype = TN_DTYPE_INVALID };
  tn_status st = parse(proto, &t, err);
  *bytes = t.bytes;
  if (st != TN_OK || t.dtype != TN_STRING) return st;
  size_t n = t.n_values > 0 && (size_t)t.count > t.n_values ? (size_t)t.count - t.n_values : 0, texts;
  /* The last text is copied for each further element. */
  if (!tn__size_mul(n + 1, proto.size, &texts) || !tn__size_add(texts, t.bytes, bytes)) *bytes = SIZE_MAX;
  return TN_OK;
}
