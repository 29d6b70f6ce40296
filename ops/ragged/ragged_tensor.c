/* SPDX-License-Identifier: Apache-2.0 */
/* RaggedTensorToTensor: a ragged tensor as a dense one, filled up with a default value.
 *
 * A ragged tensor is values and the partitions of its levels. Level by level, each row gets the place in the output
 * where it begins, or -1 if it is outside of the output; the values then are copied to theirs. Places count values, of
 * any number of elements. Partitions may say that there are more rows than the next level uses: places are kept for
 * those that it can use only, so memory is bounded by the inputs. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/ragged/ragged.h>
#include <string.h>

/* ---- create ---- */

typedef enum partition_kind { FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS, OTHER } partition_kind;

typedef struct to_tensor_state {
  uint32_t n, levels; /* number of partitions; of levels, for which FIRST_DIM_SIZE does not count */
  uint32_t first;     /* the input with the partition of level 0 */
  partition_kind kinds[];
} to_tensor_state;

static size_t state_bytes(uint32_t n) { return sizeof(to_tensor_state) + n * sizeof(partition_kind); }

static void destroy(void *state)
{
  to_tensor_state *s = state;
  tn__free(s, state_bytes(s->n));
}

static tn_status kind_of(const tn_operation *op, uint32_t i, partition_kind *out, tn_error *err)
{
  static const char *const names[] = { "FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS",
                                       "ROW_LENGTHS",    "ROW_LIMITS",   "ROW_STARTS" };
  tn__slice name;
  tn_status st = tn_operation_attr_string_at(op, "row_partition_types", i, &name.data, &name.size, NULL, err);
  for (int k = 0; st == TN_OK && k < 6; k++) {
    if (!tn__slice_is(name, names[k])) continue;
    *out = k < OTHER ? (partition_kind)k : OTHER;
    return TN_OK;
  }
  if (st != TN_OK) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "RaggedTensorToTensor: row_partition_types has '%.*s'",
                      (int)(name.size > 64 ? 64 : name.size), name.data);
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  tn__slice first;
  size_t inputs = tn_operation_n_inputs(op), all;
  *state = NULL;
  tn_status st = tn_operation_attr_string_at(op, "row_partition_types", 0, &first.data, &first.size, &all, err);
  if (st != TN_OK) return st;
  if (all == 0 || all + 3 > inputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "RaggedTensorToTensor: %zu row_partition_types for %zu partitions",
                        all, inputs - 3);
  uint32_t n = (uint32_t)all;
  to_tensor_state *s = tn__zalloc(state_bytes(n));
  if (s == NULL) return tn__no_memory(err, "state of RaggedTensorToTensor", state_bytes(n));
  s->n = n;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) st = kind_of(op, i, &s->kinds[i], err);
  bool sized = s->kinds[0] == FIRST_DIM_SIZE;
  s->levels = n - sized;
  s->first = 3 + sized;
  if (st == TN_OK) *state = s;
  else destroy(s);
  return st;
}

static partition_kind level_kind(const to_tensor_state *s, uint32_t level) { return s->kinds[level + s->first - 3]; }

/* ---- shapes ---- */

/* The default value has the shape of a value, or one that broadcasts to it. TensorFlow compares the leading dimensions.
 */
static tn_status check_default(const tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *values = &ctx->inputs[1], *v = &ctx->inputs[2];
  bool fits = v->rank < values->rank;
  for (int32_t d = 0; fits && d < v->rank; d++) {
    int64_t tail = values->dims[values->rank - v->rank + d];
    fits = v->dims[d] == 1 || (v->dims[d] == values->dims[d + 1] && v->dims[d] == tail);
  }
  return fits ? TN_OK
              : tn__shape_error(err, ctx, 2, values->dims + (values->rank > 0), values->rank - (values->rank > 0));
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const to_tensor_state *s = ctx->state;
  tn_status st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st == TN_OK) st = check_default(ctx, err);
  if (st == TN_OK && ctx->inputs[0].rank > 1) st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK && ctx->inputs[1].rank + (int64_t)s->levels > TN_MAX_RANK)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output would have more than %d dimensions",
                      tn_operation_type(ctx->op), TN_MAX_RANK);
  ctx->cost_ns = 200 + 5 * (double)ctx->inputs[1].count;
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

/* The number of rows of level 0. */
static tn_status first_rows(const tn_kernel_ctx *ctx, int64_t *rows)
{
  const to_tensor_state *s = ctx->state;
  const tn_view *v = ctx->inputs[3];
  bool sized = s->kinds[0] == FIRST_DIM_SIZE;
  if (sized && v->count == 1) *rows = tn__view_int_at(v, 0);
  else if (s->kinds[0] == ROW_SPLITS && v->rank > 0 && v->count > 0) *rows = v->dims[0] - 1;
  else
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "input 3 has %lld elements and does not say how many rows there are", (long long)v->count);
  if (*rows >= 0) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are %lld rows", (long long)*rows);
}

/* The length of the longest row of a level. */
static tn_status longest_row(const tn_kernel_ctx *ctx, uint32_t level, int64_t *longest)
{
  const to_tensor_state *s = ctx->state;
  const tn_view *v = ctx->inputs[s->first + level];
  int64_t run = 0;
  *longest = 0;
  for (int64_t k = level_kind(s, level) == ROW_SPLITS; k < v->count; k++) {
    int64_t at = tn__view_int_at(v, k), before = k > 0 ? tn__view_int_at(v, k - 1) : at;
    if (level_kind(s, level) == ROW_SPLITS) {
      if (__builtin_sub_overflow(at, before, &run))
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "split %lld of input %u is %lld after %lld", (long long)k,
                            s->first + level, (long long)at, (long long)before);
    } else {
      run = at == before ? run + 1 : 1;
    }
    if (run > *longest) *longest = run;
  }
  return TN_OK;
}

/* Input 0: sizes, where -1 means as many as needed; or the scalar -1. */
static tn_status wanted_shape(const tn_kernel_ctx *ctx, int32_t rank, int64_t *dims)
{
  const tn_view *v = ctx->inputs[0];
  bool free = v->rank == 0 && tn__view_int_at(v, 0) == -1;
  if (!free && (v->rank != 1 || v->count != rank))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 0 is a shape of %lld sizes, wanted %d, or the scalar -1",
                        (long long)v->count, (int)rank);
  for (int32_t d = 0; d < rank; d++) {
    dims[d] = free ? -1 : tn__view_int_at(v, d);
    if (dims[d] < -1)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "size %d of the shape wanted is %lld", (int)d,
                          (long long)dims[d]);
  }
  return TN_OK;
}

static tn_status output_shape(const tn_kernel_ctx *ctx, int64_t rows, tn__shape *out)
{
  const to_tensor_state *s = ctx->state;
  const tn_view *values = ctx->inputs[1];
  int32_t levels = (int32_t)s->levels;
  out->rank = levels + values->rank;
  tn_status st = wanted_shape(ctx, out->rank, out->dims);
  for (int32_t d = 0; st == TN_OK && d < out->rank; d++) {
    if (d == 0 && out->dims[0] < 0) out->dims[0] = rows;
    else if (d > 0 && d <= levels && out->dims[d] < 0) st = longest_row(ctx, (uint32_t)d - 1, &out->dims[d]);
    if (d <= levels) continue;
    int64_t size = values->dims[d - levels];
    if (out->dims[d] >= 0 && out->dims[d] != size)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "size %d of the shape wanted is %lld, that of the values %lld",
                          (int)d, (long long)out->dims[d], (long long)size);
    out->dims[d] = size;
  }
  return st;
}

/* ---- places ---- */

/* Places of the rows of a level. There are n rows; the first `kept` have a place in `at`. At level 0, at is NULL: row i
 * has the place i * step if i is less than `kept`, the number of rows of the output. */
typedef struct places {
  int64_t n, kept, step;
  int64_t *at;
  tn_tensor *memory; /* of at */
} places;

static int64_t place_of(const places *p, int64_t row)
{
  if (p->at != NULL) return p->at[row];
  return row < p->kept ? row * p->step : -1;
}

static tn_status new_places(places *p, int64_t n, int64_t kept, tn_error *err)
{
  *p = (places){ .n = n, .kept = n < kept ? n : kept };
  tn_status st = tn_tensor_create(TN_INT64, &p->kept, 1, &p->memory, err);
  if (st == TN_OK) p->at = tn_tensor_data(p->memory);
  return st;
}

static int64_t capped(int64_t n, int64_t most) { return n < most ? n : most; }

/* The rows of a level whose rows are given by splits: `size` places are for each row above, `step` apart. */
static tn_status places_of_splits(const tn_kernel_ctx *ctx, uint32_t input, const places *above, int64_t size,
                                  int64_t step, int64_t most, places *out)
{
  const tn_view *splits = ctx->inputs[input];
  int64_t rows = splits->count - 1, total = 0, at = 0;
  bool fits = splits->count > 0 && rows <= above->n;
  for (int64_t k = 0; fits && k < rows; k++) {
    int64_t length;
    fits = !__builtin_sub_overflow(tn__view_int_at(splits, k + 1), tn__view_int_at(splits, k), &length);
    fits = fits && (length <= 0 || !__builtin_add_overflow(total, length, &total));
  }
  if (!fits || total != tn__view_int_at(splits, rows))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u: %lld row splits do not fit the %lld rows above",
                        input, (long long)splits->count, (long long)above->n);
  tn_status st = new_places(out, total, most, ctx->err);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t k = 0; st == TN_OK && k < rows && at < out->kept; k++) {
    int64_t length = tn__view_int_at(splits, k + 1) - tn__view_int_at(splits, k), place = place_of(above, k);
    if (length <= 0) continue;
    int64_t end = length < out->kept - at ? at + length : out->kept, used = place < 0 ? 0 : size;
    if (tn__poll_over(&poll, end - at)) return TN_CANCELLED;
    for (int64_t j = 0; at < end; at++, j++) out->at[at] = j < used ? place + j * step : -1;
  }
  return st;
}

/* The same for rows that are given by the number of the row above, for each row. */
static tn_status places_of_ids(const tn_kernel_ctx *ctx, uint32_t input, const places *above, int64_t size,
                               int64_t step, int64_t most, places *out)
{
  const tn_view *ids = ctx->inputs[input];
  int64_t last = -1, column = 0, place = -1;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t k = 0; k < ids->count; k++) {
    int64_t id = tn__view_int_at(ids, k);
    if (id < 0 || id >= above->n)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "row id %lld of input %u is %lld, wanted one in [0, %lld)",
                          (long long)k, input, (long long)id, (long long)above->n);
  }
  tn_status st = new_places(out, ids->count, most, ctx->err);
  for (int64_t k = 0; st == TN_OK && k < out->kept; k++) {
    int64_t id = tn__view_int_at(ids, k);
    if (tn__poll_over(&poll, 2)) return TN_CANCELLED;
    if (id != last || k == 0) {
      place = place_of(above, id);
      column = 0;
    } else if (place >= 0) {
      place = ++column < size ? place + step : -1;
    }
    last = id;
    out->at[k] = size > 0 ? place : -1;
  }
  return st;
}

/* How many rows of a level the next one can use: `levels` is the level of the values. */
static int64_t usable(const tn_kernel_ctx *ctx, uint32_t level)
{
  const to_tensor_state *s = ctx->state;
  if (level == s->levels) return ctx->inputs[1]->dims[0];
  const tn_view *next = ctx->inputs[s->first + level];
  if (level_kind(s, level) == ROW_SPLITS) return next->count;
  int64_t most = 0;
  for (int64_t k = 0; k < next->count; k++)
    if (tn__view_int_at(next, k) >= most && tn__view_int_at(next, k) < INT64_MAX) most = tn__view_int_at(next, k) + 1;
  return most;
}

/* Replaces the places of level 0 by those of the values. */
static tn_status descend(const tn_kernel_ctx *ctx, const tn__shape *out, places *p)
{
  const to_tensor_state *s = ctx->state;
  tn_status st = TN_OK;
  for (uint32_t l = 0; st == TN_OK && l < s->levels; l++) {
    int64_t step = 1;
    for (uint32_t d = l + 2; d <= s->levels; d++) step *= out->dims[d];
    places below = { 0 };
    int64_t most = usable(ctx, l + 1), size = out->dims[l + 1];
    if (level_kind(s, l) == ROW_SPLITS) st = places_of_splits(ctx, s->first + l, p, size, step, most, &below);
    else st = places_of_ids(ctx, s->first + l, p, size, step, most, &below);
    tn_tensor_unref(p->memory);
    *p = below;
  }
  return st;
}

/* ---- values ---- */

/* The default value as all elements of one value; a reference in *made if it had to be made. */
static tn_status default_row(tn_kernel_ctx *ctx, int64_t elements, const void **row, tn_tensor **made)
{
  const tn_view *values = ctx->inputs[1], *v = ctx->inputs[2];
  *row = v->data;
  *made = NULL;
  if (v->count == 1 || v->count == elements) return TN_OK;
  tn_status st = tn_tensor_create(v->dtype, values->dims + 1, values->rank - 1, made, ctx->err);
  size_t size = tn_dtype_size(v->dtype);
  for (int64_t e = 0; st == TN_OK && e < elements; e++) {
    int64_t rest = e, place = 0, step = 1;
    for (int32_t d = values->rank - 1, k = v->rank - 1; k >= 0; d--, k--) {
      place += v->dims[k] == 1 ? 0 : rest % values->dims[d] * step;
      step *= v->dims[k];
      rest /= values->dims[d];
    }
    st = tn__copy_elements(v->dtype, (char *)tn_tensor_data(*made) + (size_t)e * size,
                           (const char *)v->data + (size_t)place * size, 1, ctx->err);
  }
  if (*made != NULL) *row = tn_tensor_data(*made);
  return st;
}

typedef struct copying {
  const void *filler;
  bool single; /* the filler is one element, not all elements of a value */
  int64_t elements; /* of a value */
  size_t size;      /* of an element */
} copying;

static tn_status fill(tn_kernel_ctx *ctx, const copying *c, int64_t from, int64_t to, tn__poll *poll)
{
  tn_view *out = ctx->outputs[0];
  tn_status st = TN_OK;
  char *at = (char *)out->data + (size_t)(from * c->elements) * c->size;
  if (tn__poll_over(poll, (to - from) * c->elements)) return TN_CANCELLED;
  if (c->single) return tn__fill_elements(out->dtype, at, c->filler, (to - from) * c->elements, ctx->err);
  for (int64_t k = from; st == TN_OK && k < to; k++, at += (size_t)c->elements * c->size)
    st = tn__copy_elements(out->dtype, at, c->filler, c->elements, ctx->err);
  return st;
}

/* Copies the values from `value` on to the places [from, to). */
static tn_status copy_run(tn_kernel_ctx *ctx, const copying *c, int64_t value, int64_t from, int64_t to, tn__poll *poll)
{
  tn_view *out = ctx->outputs[0];
  if (from >= to) return TN_OK;
  if (tn__poll_over(poll, (to - from) * c->elements / 4)) return TN_CANCELLED;
  return tn__copy_elements(out->dtype, (char *)out->data + (size_t)(from * c->elements) * c->size,
                           (const char *)ctx->inputs[1]->data + (size_t)(value * c->elements) * c->size,
                           (to - from) * c->elements, ctx->err);
}

/* Copies runs of values whose places follow each other, and fills what is between. A value whose place is before that
 * of a value before it, which is so only if partitions are not sorted, gets the place after that, as in TensorFlow. */
static tn_status copy_values(tn_kernel_ctx *ctx, const copying *c, const places *p)
{
  int64_t n = capped(p->at != NULL ? p->kept : p->n, ctx->inputs[1]->dims[0]),
          all = ctx->outputs[0]->count / c->elements;
  int64_t value = 0, from = 0, to = 0; /* the current run: its first value, its places */
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i <= n; i++) {
    int64_t place = i < n ? place_of(p, i) : -1;
    if (tn__poll_over(&poll, 2)) return TN_CANCELLED;
    if (place == to) {
      to++;
      continue;
    }
    st = copy_run(ctx, c, value, from, capped(to, all), &poll);
    if (i == n) place = all;
    if (st == TN_OK && place > to) {
      st = fill(ctx, c, to, place, &poll);
      to = place;
    }
    value = place < 0 ? i + 1 : i;
    from = to;
    if (place >= 0) to++;
  }
  return st;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const to_tensor_state *s = ctx->state;
  tn__shape out;
  int64_t rows = 0;
  tn_tensor *made = NULL;
  for (uint32_t l = 0; l < s->levels; l++)
    if (level_kind(s, l) != ROW_SPLITS && level_kind(s, l) != VALUE_ROWIDS)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "partition %u is neither ROW_SPLITS nor VALUE_ROWIDS", l);
  tn_status st = first_rows(ctx, &rows);
  if (st == TN_OK) st = output_shape(ctx, rows, &out);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, out.dims, out.rank);
  if (st != TN_OK || ctx->outputs[0]->count == 0) return st;
  places p = { .n = rows, .kept = capped(rows, out.dims[0]), .step = 1 };
  for (uint32_t d = 1; d <= s->levels; d++) p.step *= out.dims[d];
  copying c = { NULL, ctx->inputs[2]->count == 1, 1, tn_dtype_size(ctx->outputs[0]->dtype) };
  for (int32_t d = (int32_t)s->levels + 1; d < out.rank; d++) c.elements *= out.dims[d];
  st = descend(ctx, &out, &p);
  if (st == TN_OK) st = default_row(ctx, c.elements, &c.filler, &made);
  if (st == TN_OK) st = copy_values(ctx, &c, &p);
  tn_tensor_unref(made);
  tn_tensor_unref(p.memory);
  return st;
}

/* ---- the family ---- */

/* Checks the kinds of the partitions. *levels is the number of levels. */
static tn_status check_kinds(tn_infer_ctx *ctx, int64_t *levels, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  partition_kind kind = OTHER, before = OTHER;
  tn__slice name;
  size_t n;
  tn_status st = tn_operation_attr_string_at(op, "row_partition_types", 0, &name.data, &name.size, &n, err);
  int64_t partitions = tn__attr_int(op, "num_row_partition_tensors", 1);
  if (st == TN_OK && (n == 0 || (int64_t)n != partitions))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %zu row_partition_types for %lld partitions", tn__infer_op(ctx), n,
                      (long long)partitions);
  *levels = (int64_t)n;
  for (uint32_t i = 0; st == TN_OK && i < n; i++, before = kind) {
    st = kind_of(op, i, &kind, err);
    if (st == TN_OK && i == 0 && kind == FIRST_DIM_SIZE) --*levels;
    partition_kind other = i == 0 ? FIRST_DIM_SIZE : VALUE_ROWIDS;
    bool fits = kind == ROW_SPLITS ? before != FIRST_DIM_SIZE : kind == other;
    if (st == TN_OK && (!fits || (kind == FIRST_DIM_SIZE && n == 1)))
      st = tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: element %u of row_partition_types cannot be there; wanted ROW_SPLITS or VALUE_ROWIDS, and "
                        "FIRST_DIM_SIZE only before VALUE_ROWIDS at the beginning", tn__infer_op(ctx), i);
  }
  return st;
}

/* The sizes wanted, and those of a value; the rest is known from the partitions only. */
static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape values, out;
  int64_t levels;
  tn_status st = check_kinds(ctx, &levels, err);
  if (st != TN_OK) return st;
  tn__infer_get(ctx, 1, &values);
  tn__shape_unknown(&out);
  if (values.rank < 1 || levels + values.rank > TN_MAX_RANK) return tn__infer_set(ctx, 0, &out, err);
  out.rank = tn_infer_input_as_shape(ctx, 0, out.dims);
  tn__shape inner = { .rank = (int32_t)levels + values.rank };
  for (int32_t d = 0; d < inner.rank; d++) inner.dims[d] = d <= levels ? -1 : values.dims[d - levels];
  if (!tn__shape_merge(&inner, out.dims, out.rank))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the shape wanted does not fit the values", tn__infer_op(ctx));
  return tn__infer_set(ctx, 0, &inner, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedTensorToTensor",
    .inputs = "shape: Tshape, values: T, default_value: T, row_partition_tensors: num_row_partition_tensors * Tindex",
    .outputs = "result: T",
    .attrs = "T: type; Tindex: {int64, int32}; Tshape: {int64, int32}; num_row_partition_tensors: int >= 1; "
             "row_partition_types: list(string)",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer, .summary = "a ragged tensor as a dense one" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedTensorToTensor", .device = "CPU",
    .name = "ragged_tensor_to_tensor_cpu", .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare,
    .compute = compute },
};

TN_OP_FAMILY(ragged_tensor)
