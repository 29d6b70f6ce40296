/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes: reading them from a NodeDef, and writing them changed. */
#include <core/model/freeze/freeze.h>

#include <string.h>

/* Fields of a TensorProto. */
enum { T_DTYPE = 1, T_SHAPE = 2 };

/* ---- reading ---- */

tn__slice tn__freeze_attr(tn__slice node, const char *name)
{
  tn__slice found = { NULL, 0 };
  tn__wire w = tn__wire_read(node);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, TN__FZ_N_ATTR, TN__WIRE_BYTES) && tn__slice_is(tn__field_text(w.bytes, TN__FZ_KEY), name))
      found = tn__field_text(w.bytes, TN__FZ_VALUE);
  return found;
}

tn__slice tn__freeze_attr_text(tn__slice node, const char *name)
{
  return tn__field_text(tn__freeze_attr(node, name), TN__FZ_A_S);
}

int64_t tn__freeze_attr_int(tn__slice node, const char *name, int64_t otherwise)
{
  tn__wire w = tn__wire_read(tn__freeze_attr(node, name));
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, TN__FZ_A_I, TN__WIRE_VARINT)) otherwise = tn__wire_int(&w);
  return otherwise;
}

/* ---- writing ---- */

tn__freeze_places tn__freeze_open_attr(tn__sink *s, tn__slice name)
{
  tn__freeze_places places = { .entry = tn__freeze_open(s, TN__FZ_N_ATTR) };
  tn__sink_bytes(s, TN__FZ_KEY, name);
  places.value = tn__freeze_open(s, TN__FZ_VALUE);
  return places;
}

void tn__freeze_close_attr(tn__sink *s, tn__freeze_places places)
{
  tn__sink_end(s, places.value);
  tn__sink_end(s, places.entry);
}

void tn__freeze_put_type(tn__sink *s, const char *name, tn_dtype dtype)
{
  const tn__freeze_places places = tn__freeze_open_attr(s, tn__slice_of(name));
  tn__sink_int(s, TN__FZ_A_TYPE, (uint64_t)dtype);
  tn__freeze_close_attr(s, places);
}

void tn__freeze_put_scalar(tn__sink *s, const char *name, tn_dtype dtype, uint32_t field, uint64_t value)
{
  const tn__freeze_places places = tn__freeze_open_attr(s, tn__slice_of(name));
  size_t tensor = tn__freeze_open(s, TN__FZ_A_TENSOR);
  tn__sink_int(s, T_DTYPE, (uint64_t)dtype);
  tn__sink_bytes(s, T_SHAPE, (tn__slice){ NULL, 0 });
  tn__sink_int(s, field, value);
  tn__sink_end(s, tensor);
  tn__freeze_close_attr(s, places);
}

/* Writes a TensorShapeProto as a field. */
static void put_dims(tn__sink *s, uint32_t field, const int64_t *dims, int32_t rank)
{
  size_t shape = tn__freeze_open(s, field);
  if (rank < 0) tn__sink_int(s, TN__FZ_S_UNKNOWN, 1);
  for (int32_t i = 0; i < rank; i++) {
    size_t dim = tn__freeze_open(s, TN__FZ_S_DIM);
    tn__sink_int(s, TN__FZ_D_SIZE, (uint64_t)dims[i]);
    tn__sink_end(s, dim);
  }
  tn__sink_end(s, shape);
}

void tn__freeze_put_shape(tn__sink *s, const char *name, const int64_t *dims, int32_t rank)
{
  const tn__freeze_places places = tn__freeze_open_attr(s, tn__slice_of(name));
  put_dims(s, TN__FZ_A_SHAPE, dims, rank);
  tn__freeze_close_attr(s, places);
}

void tn__freeze_put_type_shape(tn__sink *s, uint32_t field, const tn__freeze_type *type)
{
  put_dims(s, field, type->dims, type->rank);
}
