/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors as rows of three elements, for indices, values and shape: SerializeSparse SerializeManySparse
 * DeserializeSparse DeserializeManySparse. An element is a serialized TensorProto, or of dtype variant and holds a
 * reference to a tensor. SerializeManySparse makes a row for each index of the first dimension; rows are read back as
 * one sparse tensor with all dimensions of their tensor but the last one in front. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/string/string_proto.h>
#include <stdatomic.h>
#include <string.h>

enum { INDICES, VALUES, SHAPE, PARTS };

/* ---- tensors in variants ---- */

typedef struct box {
  tn_handle handle; /* must be first: tensor elements point to it */
  _Atomic uint32_t refs;
  tn_tensor *tensor; /* a reference, of plain elements or strings, so boxes are not nested */
} box;

static void ref_box(tn_handle *h) { atomic_fetch_add_explicit(&((box *)h)->refs, 1, memory_order_relaxed); }

static void unref_box(tn_handle *h)
{
  box *b = (box *)h;
  if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
  tn_tensor_unref(b->tensor);
  tn__free(b, sizeof *b);
}

static const tn_handle_class box_class = { .struct_size = sizeof box_class, .type_name = "Tensor", .ref = ref_box,
                                           .unref = unref_box };

/* Stores a new box with the tensor. Takes over the caller's reference, also on failure. */
static tn_status put_box(tn_handle **place, tn_tensor *tensor, tn_error *err)
{
  box *b = tn__zalloc(sizeof *b);
  if (b == NULL) {
    tn_tensor_unref(tensor);
    return tn__no_memory(err, "variant", sizeof *b);
  }
  b->handle.cls = &box_class;
  atomic_init(&b->refs, 1);
  b->tensor = tensor;
  tn_handle *old = *place;
  *place = &b->handle;
  if (old != NULL) old->cls->unref(old);
  return TN_OK;
}

/* ---- writing ---- */

/* Stores a tensor as element i of the output. */
static tn_status put_part(tn_kernel_ctx *ctx, int64_t i, const tn_view *v)
{
  const tn_view *out = ctx->outputs[0];
  if (out->dtype == TN_VARIANT) {
    tn_tensor *copy;
    tn_status st = tn_tensor_create(v->dtype, v->dims, v->rank, &copy, ctx->err);
    if (st != TN_OK) return st;
    st = tn__copy_elements(v->dtype, copy->data, v->data, v->count, ctx->err);
    if (st == TN_OK) return put_box((tn_handle **)out->data + i, copy, ctx->err);
    tn_tensor_unref(copy);
    return st;
  }
  tn__text t;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__proto_put_content(&t, v);
  tn_status st = t.failed ? tn__no_memory(ctx->err, "serialized tensor", t.size)
                          : tn_string_set((tn_string *)out->data + i, tn__text_get(&t), t.size, ctx->err);
  tn__text_fini(&t);
  return st;
}

static tn_status want_sparse(const tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, INDICES, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, VALUES, 1, err);
  return st == TN_OK ? tn__want_rank(ctx, SHAPE, 1, err) : st;
}

static tn_status serialize_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const int64_t parts = PARTS;
  tn_status st = want_sparse(ctx, err);
  ctx->cost_ns = 500 + (double)ctx->inputs[VALUES].count * (double)(1 + ctx->inputs[SHAPE].count);
  return st == TN_OK ? tn_prepare_output(ctx, 0, &parts, 1, err) : st;
}

static tn_status serialize_compute(tn_kernel_ctx *ctx)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < PARTS; i++) {
    tn_tensor *kept;
    if (ctx->outputs[0]->dtype != TN_VARIANT) {
      st = put_part(ctx, i, ctx->inputs[i]);
      continue;
    }
    st = tn_kernel_keep_input(ctx, i, &kept);
    if (st == TN_OK) st = put_box((tn_handle **)ctx->outputs[0]->data + i, kept, ctx->err);
  }
  return st;
}

/* ---- writing rows ---- */

/* Scratch memory holds all indices without their first column. */
static tn_status many_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *indices = &ctx->inputs[INDICES], *shape = &ctx->inputs[SHAPE];
  tn_status st = want_sparse(ctx, err);
  if (st != TN_OK) return st;
  if (shape->count < 2 || shape->count > TN_MAX_RANK || indices->dims[1] != shape->count ||
      indices->dims[0] != ctx->inputs[VALUES].count)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "SerializeManySparse: indices of shape [%lld,%lld], %lld values and "
                        "%lld dimensions do not make a sparse tensor of rank 2 or more", (long long)indices->dims[0],
                        (long long)indices->dims[1], (long long)ctx->inputs[VALUES].count, (long long)shape->count);
  ctx->scratch_bytes = (size_t)indices->count * sizeof(int64_t);
  ctx->cost_ns = 500 + 5 * (double)indices->count;
  return tn_prepare_dynamic(ctx, 0, err);
}

static tn_status bad_index(const tn_kernel_ctx *ctx, int64_t i, const char *what)
{
  const tn_view *indices = ctx->inputs[INDICES];
  char text[160];
  const int64_t *row = (const int64_t *)indices->data + i * indices->dims[1];
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld, %s, %s", (long long)i,
                      tn__format_shape(text, sizeof text, row, (int32_t)indices->dims[1]), what);
}

/* Checks that indices are inside the shape, ascending and distinct. */
static tn_status check_indices(const tn_kernel_ctx *ctx, tn__poll *poll)
{
  const int64_t *row = ctx->inputs[INDICES]->data, *dims = ctx->inputs[SHAPE]->data;
  int64_t n = ctx->inputs[VALUES]->count, rank = ctx->inputs[SHAPE]->count;
  for (int64_t i = 0; i < n; i++, row += rank) {
    int64_t d = 0;
    if (tn__poll_over(poll, 5 * rank)) return TN_CANCELLED;
    for (int64_t k = 0; k < rank; k++)
      if (row[k] < 0 || row[k] >= dims[k]) return bad_index(ctx, i, "is outside the shape");
    if (i == 0) continue;
    while (d < rank && row[d] == row[d - rank]) d++;
    if (d == rank) return bad_index(ctx, i, "occurs twice");
    if (row[d] < row[d - rank]) return bad_index(ctx, i, "is out of order");
  }
  return TN_OK;
}

/* Stores row b of the output: n values from value `at` on. */
static tn_status put_row(tn_kernel_ctx *ctx, int64_t b, int64_t at, int64_t n)
{
  const tn_view *values = ctx->inputs[VALUES], *shape = ctx->inputs[SHAPE];
  const int64_t rank = shape->count - 1, dims[2] = { n, rank };
  const tn_view parts[PARTS] = {
    { .data = (int64_t *)ctx->scratch + at * rank, .dims = dims, .count = n * rank, .dtype = TN_INT64, .rank = 2 },
    { .data = (char *)values->data + (size_t)at * tn_dtype_size(values->dtype), .dims = dims, .count = n,
      .dtype = values->dtype, .rank = 1 },
    { .data = (int64_t *)shape->data + 1, .dims = dims + 1, .count = rank, .dtype = TN_INT64, .rank = 1 }
  };
  tn_status st = TN_OK;
  for (int i = 0; st == TN_OK && i < PARTS; i++) st = put_part(ctx, b * PARTS + i, &parts[i]);
  return st;
}

static tn_status many_compute(tn_kernel_ctx *ctx)
{
  const int64_t *from = ctx->inputs[INDICES]->data, *shape = ctx->inputs[SHAPE]->data;
  int64_t n = ctx->inputs[VALUES]->count, rank = ctx->inputs[SHAPE]->count, *to = ctx->scratch, unused;
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn_shape_elements(shape, (int32_t)rank, &unused, ctx->err);
  if (st == TN_OK) st = check_indices(ctx, &poll);
  if (st != TN_OK) return st;
  const int64_t dims[2] = { shape[0], PARTS };
  st = tn_kernel_allocate(ctx, 0, dims, 2);
  for (int64_t i = 0; i < n; i++) memcpy(to + i * (rank - 1), from + i * rank + 1, (size_t)(rank - 1) * sizeof *to);
  for (int64_t b = 0, at = 0; st == TN_OK && b < shape[0]; b++) {
    int64_t end = at;
    while (end < n && from[end * rank] == b) end++;
    if (tn__poll_over(&poll, 500 + 2 * rank * (end - at))) return TN_CANCELLED;
    st = put_row(ctx, b, at, end - at);
    at = end;
  }
  return st;
}

/* ---- reading ---- */

/* A tensor of a row: a parsed TensorProto, or the tensor of a variant. */
typedef struct part {
  tn__proto_tensor proto;
  const tn_tensor *tensor; /* NULL: proto */
  tn_dtype dtype;
  const int64_t *dims;
  int32_t rank;
} part;

static tn_status read_part(const tn_kernel_ctx *ctx, int64_t i, part *out)
{
  const tn_view *in = ctx->inputs[0];
  size_t bytes;
  if (in->dtype == TN_VARIANT) {
    tn_handle *h = ((tn_handle *const *)in->data)[i];
    if (h == NULL || h->cls != &box_class)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %lld is not a tensor, it is %s", (long long)i,
                          h == NULL ? "nothing" : h->cls->type_name);
    out->tensor = ((box *)h)->tensor;
    out->dtype = out->tensor->dtype;
    out->dims = out->tensor->dims;
    out->rank = out->tensor->rank;
    return TN_OK;
  }
  tn__slice text;
  text.data = tn_string_data((const tn_string *)in->data + i, &text.size);
  tn_status st = tn__proto_read_tensor(text, &out->proto, ctx->err);
  if (st == TN_OK) st = tn__proto_tensor_bytes(&out->proto, &bytes, ctx->err);
  if (st != TN_OK) return tn_error_prefix(ctx->err, "element %lld", (long long)i);
  out->tensor = NULL;
  out->dtype = out->proto.dtype;
  out->dims = out->proto.shape.dims;
  out->rank = out->proto.shape.rank;
  return TN_OK;
}

static tn_status part_elements(const tn_kernel_ctx *ctx, const part *p, int64_t count, void *to)
{
  if (p->tensor != NULL) return tn__copy_elements(p->dtype, to, p->tensor->data, count, ctx->err);
  return tn__proto_read_elements(&p->proto, count, to, ctx->err);
}

/* Part k of a row must have this dtype and rank. */
static tn_status check_part(const tn_kernel_ctx *ctx, int64_t row, int k, const part *p, tn_dtype dtype, int32_t rank)
{
  static const char *const names[PARTS] = { "indices", "values", "shape" };
  if (p->dtype == dtype && p->rank == rank) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "the %s of sparse tensor %lld are of %s and rank %d, wanted %s and rank %d", names[k],
                      (long long)row, tn_dtype_name(p->dtype), p->rank, tn_dtype_name(dtype), rank);
}

/* A sparse tensor of the input. */
typedef struct row {
  part parts[PARTS];
  int64_t n;    /* number of values */
  int32_t rank;
} row;

static tn_status read_row(const tn_kernel_ctx *ctx, int64_t i, row *r)
{
  const tn_dtype dtypes[PARTS] = { TN_INT64, ctx->outputs[VALUES]->dtype, TN_INT64 };
  static const int32_t ranks[PARTS] = { 2, 1, 1 };
  tn_status st = TN_OK;
  for (int k = 0; st == TN_OK && k < PARTS; k++) {
    st = read_part(ctx, i * PARTS + k, &r->parts[k]);
    if (st == TN_OK) st = check_part(ctx, i, k, &r->parts[k], dtypes[k], ranks[k]);
  }
  if (st != TN_OK) return st;
  const int64_t *dims = r->parts[INDICES].dims, values = r->parts[VALUES].dims[0], shape = r->parts[SHAPE].dims[0];
  r->n = dims[0];
  if (dims[0] != values || dims[1] != shape || shape > TN_MAX_RANK)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "sparse tensor %lld has indices of shape [%lld,%lld], %lld values and %lld dimensions",
                        (long long)i, (long long)dims[0], (long long)dims[1], (long long)values, (long long)shape);
  r->rank = (int32_t)shape;
  return TN_OK;
}

static tn_status deserialize_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK && (in->dims[in->rank - 1] != PARTS || in->count == 0)) {
    int64_t wanted[TN_MAX_RANK];
    for (int32_t d = 0; d < in->rank; d++) wanted[d] = d == in->rank - 1 ? PARTS : -1;
    return tn__shape_error(err, ctx, 0, wanted, in->rank);
  }
  ctx->cost_ns = 1000 + 500 * (double)in->count;
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* The only row of a vector: its tensors are the outputs, whatever their values. */
static tn_status read_one(tn_kernel_ctx *ctx)
{
  row r;
  tn_status st = read_row(ctx, 0, &r);
  for (uint32_t k = 0; st == TN_OK && k < PARTS; k++) {
    st = tn_kernel_allocate(ctx, k, r.parts[k].dims, r.parts[k].rank);
    if (st == TN_OK) st = part_elements(ctx, &r.parts[k], ctx->outputs[k]->count, ctx->outputs[k]->data);
  }
  return st;
}

/* All rows together. */
typedef struct rows {
  int64_t count, values; /* rows, values of all */
  int32_t outer, rank;   /* dimensions of the input but the last one, and of each sparse tensor */
  int64_t dims[TN_MAX_RANK]; /* the output's: those of the input, then the largest of all sparse tensors */
} rows;

static tn_status measure(const tn_kernel_ctx *ctx, rows *all, tn__poll *poll)
{
  const tn_view *in = ctx->inputs[0];
  int64_t shape[TN_MAX_RANK], unused;
  *all = (rows){ .count = in->count / PARTS, .outer = in->rank - 1 };
  for (int32_t d = 0; d < all->outer; d++) all->dims[d] = in->dims[d];
  for (int64_t i = 0; i < all->count; i++) {
    row r;
    if (tn__poll_over(poll, 500)) return TN_CANCELLED;
    tn_status st = read_row(ctx, i, &r);
    if (st == TN_OK) st = part_elements(ctx, &r.parts[SHAPE], r.rank, shape);
    if (st == TN_OK) st = tn_shape_elements(shape, r.rank, &unused, ctx->err);
    if (st != TN_OK) return st;
    if (i == 0) all->rank = r.rank;
    if (all->rank != r.rank || all->rank > TN_MAX_RANK - all->outer)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "sparse tensor %lld has rank %d, those before have rank %d",
                          (long long)i, r.rank, all->rank);
    for (int32_t d = 0; d < r.rank; d++)
      if (i == 0 || shape[d] > all->dims[all->outer + d]) all->dims[all->outer + d] = shape[d];
    if (__builtin_add_overflow(all->values, r.n, &all->values)) return tn__no_memory(ctx->err, "indices", SIZE_MAX);
  }
  return tn_shape_elements(all->dims, all->outer + all->rank, &unused, ctx->err);
}

/* Puts the coordinates of row i in front of n indices of `rank` columns at the end of to[n * columns]. */
static void spread(const rows *all, int64_t i, int64_t n, int64_t *to)
{
  const int32_t columns = all->outer + all->rank;
  const int64_t *from = to + n * all->outer;
  int64_t outer[TN_MAX_RANK];
  for (int32_t d = all->outer - 1; d >= 0; d--) {
    outer[d] = i % all->dims[d];
    i /= all->dims[d];
  }
  for (int64_t k = 0; k < n; k++, from += all->rank, to += columns) {
    if (all->rank > 0) memmove(to + all->outer, from, (size_t)all->rank * sizeof *to);
    memcpy(to, outer, (size_t)all->outer * sizeof *to);
  }
}

/* TensorFlow reads texts as one sparse tensor of the row's number and the other dimensions, and reshapes it unless the
 * input is a matrix. For an index outside the shape that gives another place. */
static tn_status reshape(const tn_kernel_ctx *ctx, const rows *all, int64_t i, int64_t n, int64_t *to)
{
  const int32_t columns = all->outer + all->rank;
  uint64_t strides[TN_MAX_RANK], size = 1;
  for (int32_t d = columns - 1; d >= 0; d--) {
    strides[d] = size;
    size *= (uint64_t)all->dims[d];
    if (size == 0 && n > 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "sparse tensor %lld has values in a shape without elements",
                          (long long)i);
  }
  for (int64_t k = 0; k < n; k++, to += columns) {
    uint64_t flat = (uint64_t)i * (all->outer > 0 ? strides[all->outer - 1] : 1);
    for (int32_t d = all->outer; d < columns; d++) flat += (uint64_t)to[d] * strides[d];
    int64_t left = (int64_t)flat;
    for (int32_t d = 0; d < columns; d++) {
      to[d] = left / (int64_t)strides[d];
      left %= (int64_t)strides[d];
    }
  }
  return TN_OK;
}

static tn_status read_rows(tn_kernel_ctx *ctx, const rows *all, tn__poll *poll)
{
  const int32_t columns = all->outer + all->rank;
  const tn_view *values = ctx->outputs[VALUES];
  int64_t *indices = ctx->outputs[INDICES]->data;
  tn_status st = TN_OK;
  for (int64_t i = 0, at = 0; st == TN_OK && i < all->count; i++) {
    row r;
    int64_t *to = indices + at * columns;
    st = read_row(ctx, i, &r);
    if (st == TN_OK) st = part_elements(ctx, &r.parts[INDICES], r.n * r.rank, to + r.n * all->outer);
    if (st == TN_OK)
      st = part_elements(ctx, &r.parts[VALUES], r.n, (char *)values->data + (size_t)at * tn_dtype_size(values->dtype));
    if (st != TN_OK) return st;
    spread(all, i, r.n, to);
    if (ctx->inputs[0]->dtype == TN_STRING && all->outer > 1) st = reshape(ctx, all, i, r.n, to);
    if (tn__poll_over(poll, 500 + 10 * r.n * columns)) return TN_CANCELLED;
    at += r.n;
  }
  return st;
}

static tn_status deserialize_compute(tn_kernel_ctx *ctx)
{
  rows all;
  tn__poll poll = tn__poll_of(ctx);
  if (ctx->inputs[0]->rank == 1) return read_one(ctx);
  tn_status st = measure(ctx, &all, &poll);
  if (st != TN_OK) return st;
  const int64_t dims[2] = { all.values, all.outer + all.rank };
  st = tn_kernel_allocate(ctx, INDICES, dims, 2);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, VALUES, dims, 1);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, SHAPE, dims + 1, 1);
  if (st != TN_OK) return st;
  memcpy(ctx->outputs[SHAPE]->data, all.dims, (size_t)dims[1] * sizeof *all.dims);
  return read_rows(ctx, &all, &poll);
}

/* ---- shapes ---- */

static tn_status infer_serialize(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t parts = PARTS;
  return tn_infer_output(ctx, 0, &parts, 1, err);
}

static tn_status infer_many(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t dims[2] = { -1, PARTS };
  return tn_infer_output(ctx, 0, dims, 2, err);
}

static tn_status infer_deserialize(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t dims[2] = { -1, -1 };
  tn_status st = tn_infer_output(ctx, INDICES, dims, 2, err);
  if (st == TN_OK) st = tn_infer_output(ctx, VALUES, dims, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, SHAPE, dims, 1, err) : st;
}

/* ---- tables ---- */

#define SERIALIZE(op, shapes, bits, text)                                                               \
  { .struct_size = TN_OP_DEF_SIZE, .name = op,                                                          \
    .inputs = "sparse_indices: int64, sparse_values: T, sparse_shape: int64",                           \
    .outputs = "serialized_sparse: out_type", .attrs = "T: type; out_type: {string, variant} = string", \
    .traits = bits, .infer = shapes, .summary = text }
#define DESERIALIZE(op, in, attributes, text)                                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "serialized_sparse: " in,                      \
    .outputs = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64", .attrs = attributes, \
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_deserialize, .summary = text }

static const tn_op_def ops[] = {
  SERIALIZE("SerializeSparse", infer_serialize, 0, "serializes a sparse tensor"),
  SERIALIZE("SerializeManySparse", infer_many, TN_TRAIT_DYNAMIC, "serializes a batch of sparse tensors"),
  DESERIALIZE("DeserializeSparse", "Tserialized", "dtype: type; Tserialized: {string, variant} = string",
              "sparse tensors that were serialized, as one"),
  DESERIALIZE("DeserializeManySparse", "string", "dtype: type", "sparse tensors that were serialized, as one"),
};

#define TYPES                                                                                                      \
  "float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|string|" \
  "qint8|quint8|qint16|quint16|qint32"
#define KERNEL(which, allowed, title, plan, run)                                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = allowed, .name = title, \
    .rank = TN_RANK_C, .prepare = plan, .compute = run }

static const tn_kernel_def kernels[] = {
  KERNEL("SerializeSparse", "T=" TYPES, "serialize_sparse_cpu", serialize_prepare, serialize_compute),
  KERNEL("SerializeManySparse", "T=" TYPES, "serialize_many_sparse_cpu", many_prepare, many_compute),
  KERNEL("DeserializeSparse", "dtype=" TYPES, "deserialize_sparse_cpu", deserialize_prepare, deserialize_compute),
  KERNEL("DeserializeManySparse", "dtype=" TYPES, "deserialize_many_sparse_cpu", deserialize_prepare,
         deserialize_compute),
};

TN_OP_FAMILY(sparse_serialize)
